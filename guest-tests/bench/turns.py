# SPDX-License-Identifier: GPL-2.0-or-later
"""Contenders are measured in turn, several times round, so that each ratio is of figures that were taken close together:
machines change. One program runs at a time: guests that poll keep the processors of a small machine busy."""
import statistics
import sys

from harness.guest import GuestError

from .contenders import STRANGERS


class Turns:
    """In words, repeated: what went wrong at first; missing: what could not be measured; failures: the same of what is ours.
    guests: when one has ended, there is nothing left to be measured."""

    def __init__(self, guests=()):
        self.guests, self.repeated, self.missing, self.failures = guests, [], [], []

    def once(self, what, name, measure):
        """measure(name), or, when it fails twice, None."""
        for kept in (self.repeated, self.missing if name in STRANGERS else self.failures):
            try:
                return measure(name)
            except GuestError as error:
                if any(guest.process.poll() is not None for guest in self.guests):
                    raise
                kept.append(f'{what}, {name}: {_reason(error)}')
                print(f'rdma-hca: {kept[-1]}', file=sys.stderr, flush=True)
                self.clear()
        return None

    def clear(self):
        """The other side of a program that failed may be waiting for it, and poll."""
        for guest in self.guests:
            guest.run('cd /usr/bin && killall -q -9 ib_*_bw ib_*_lat iperf3', check=False)

    def take(self, what, contenders, measure, repeats=1):
        """By contender all that measure(contender) gave in so many rounds. Who gave nothing is not in it."""
        found = {name: [] for name in contenders}
        for _ in range(repeats):
            for name, given in found.items():
                if None not in given:
                    given.append(self.once(what, name, measure))
        found = {name: [each for each in given if each is not None] for name, given in found.items()}
        return {name: given for name, given in found.items() if given}

    def median(self, what, contenders, measure, repeats=1):
        return {name: statistics.median(given) for name, given in self.take(what, contenders, measure, repeats).items()}


def _reason(error):
    """The line that says most."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if 'Failed status' in line), lines[0] if lines else 'it failed')
