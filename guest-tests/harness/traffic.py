# SPDX-License-Identifier: GPL-2.0-or-later
"""Traffic between two guests that compares all its data (traffic-test), and what guests can see of a cable meanwhile."""
import contextlib
import re

from . import resources, verbs, wait
from .check import expect
from .devices import RoceCard


def start(both, programs=2, timeout=18):
    """timeout: of a request, as ibv_modify_qp(3) has it; it is tried seven times more."""
    return [command for _ in range(programs) for command in verbs.start(both.a, both.b, f'traffic-test -t {timeout}', percent=15)]


def _rounds(commands):
    return [len(command.output.splitlines()) for command in commands]


def went_further(commands, timeout=30):
    """All have said since that they have done something."""
    before = _rounds(commands)

    def all_have():
        verbs.going_on(commands)
        return all(now > was for now, was in zip(_rounds(commands), before))

    wait.until(all_have, lambda: '\n'.join(command.output for command in commands), timeout)


def end(both, commands):
    """What they have seen, from end to end."""
    for guest in both.guests:
        guest.run('killall traffic-test')
    for command in commands:
        output = command.wait().output
        print(f'# {command.guest.name}: {output.splitlines()[-1]}')
        expect('ended', re.search(r'ended: [1-9]', output), output)


def _downs(guest):
    """How often the port has gone down, as Linux has seen it."""
    if isinstance(guest.card, RoceCard):
        return guest.run(f'cat /sys/class/net/{guest.card.interface}/carrier_changes').output
    return guest.run(f'cat /sys/class/infiniband/{guest.card.name}/ports/1/counters/link_downed').output


def _seen(guest):
    """What a guest can see of a cable that was not there for a while."""
    counters = resources.counters(guest, 'cumulative')
    return _downs(guest), counters['link moves_lost'], counters['link tx_discarded']


@contextlib.contextmanager
def unseen(both):
    """That the cable was not there for a while."""
    before = [_seen(guest) for guest in both.guests]
    yield
    after = [_seen(guest) for guest in both.guests]
    expect('unseen', after == before, before, after)
