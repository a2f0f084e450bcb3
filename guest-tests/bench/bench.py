#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What `make bench` shows: our cards on InfiniBand and on RoCE, with every kind of link, beside Linux's Soft-RoCE and the
virtio network card, all in the same two guests, with the same programs, one after the other; and without guests two cards in
one process, and the bare socket between two processes, alone and beside two that spin, as guests do that poll. Soft-RoCE is at
its strongest: a virtio network card, an MTU of 9000, the generic CRC, -netdev stream. MB are of 2^20 bytes, GB of 2^30.

Prints a table as the figures come. It (bench.txt), its figures (bench.json) and a plot (bench.svg) go to build/bench. With
BASE=FILE in the environment, or --base, the figures are then compared with those of an earlier run."""
import argparse
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '..'))
sys.dont_write_bytecode = True

from bench import figures, report  # noqa: E402
from bench.compare import comparison  # noqa: E402
from bench.contenders import NAMES, Field  # noqa: E402
from bench.ethernet import ping, tcp  # noqa: E402
from bench.host import OUT, cards  # noqa: E402
from bench.objects import objects  # noqa: E402
from bench.perftest import atomics, bandwidth, latency, queue_pairs, short  # noqa: E402
from bench.plans import Plan, Quick  # noqa: E402
from bench.processor import processor  # noqa: E402
from bench.turns import Turns  # noqa: E402
from harness.guest import GuestError  # noqa: E402

# Each yields Figures. The first ones want no guests, and are to have the machine for themselves.
ALONE = [cards]
GUESTS = [bandwidth, short, queue_pairs, atomics, latency, processor, objects, tcp, ping]
PARTS = {part.__name__: part for part in ALONE + GUESTS}


class Paper:
    """What has been said, and the rows behind it."""

    def __init__(self, columns):
        self.columns, self.text, self.rows = columns, [], []

    def say(self, *lines):
        self.text += lines
        if lines:
            print('\n'.join(lines), flush=True)

    def add(self, found):
        if found.values:
            self.say(*report.lines(found, self.columns))
            self.rows += found.rows()

    def save(self, out):
        with open(os.path.join(out, 'bench.txt'), 'w') as file:
            file.write('\n'.join(self.text) + '\n')
        figures.write(os.path.join(out, 'bench.json'), self.rows)
        drawn = report.plot(out, self.rows)
        return ['bench.txt', 'bench.json', *(['bench.svg'] if drawn else [])]


def names(known):
    def parse(text):
        found = text.split(',')
        unknown = set(found) - set(known)
        if unknown:
            raise argparse.ArgumentTypeError(f'no {", ".join(sorted(unknown))}; there are {", ".join(known)}')
        return found
    return parse


def arguments():
    parser = argparse.ArgumentParser(description='see the beginning of the file')
    parser.add_argument('--contenders', type=names(NAMES), default=NAMES, help='only these, with commas between')
    parser.add_argument('--parts', type=names(PARTS), default=list(PARTS), help='only these, with commas between')
    parser.add_argument('--quick', action='store_true', help='few sizes, once: that all of it works')
    parser.add_argument('--base', default=os.environ.get('BASE') or None, help='bench.json of an earlier run')
    parser.add_argument('--out', default=OUT, help='the folder for what is written')
    return parser.parse_args()


def machine():
    with open('/proc/cpuinfo') as info:
        model = next((text.split(':', 1)[1].strip() for text in info if text.startswith('model name')), 'unknown CPU')
    return f'{os.cpu_count()} x {model}'


def measure(parts, field, turns, plan, paper):
    for part in parts:
        for found in part(field, turns, plan):
            paper.add(found)


def measure_guests(parts, field, turns, plan, paper):
    """Start the guests, and measure."""
    both = field.both
    both.start()
    turns.guests = both.guests
    paper.say(f'{machine()}, guests with {both.a.accelerator}', report.titles(paper.columns))
    measure(parts, field, turns, plan, paper)
    turns.failures += both.trouble()


def run(options, plan, paper):
    """All that was asked for; gives what went wrong."""
    field, turns = Field(options.contenders), Turns()
    alone = [part for part in ALONE if part.__name__ in options.parts]
    guests = [part for part in GUESTS if part.__name__ in options.parts]
    keep = False
    try:
        if alone:
            paper.say(f'{machine()}, without guests', report.titles([]))
            measure(alone, field, turns, plan, paper)
        if guests:
            measure_guests(guests, field, turns, plan, paper)
    except (GuestError, OSError) as error:
        print(f'rdma-hca: {error}', file=sys.stderr)
        turns.failures.append(f'the rest, since {str(error).splitlines()[0]}')
        keep = True
    finally:
        field.both.stop(keep)
    paper.say(*(f'measured a second time: {what}' for what in turns.repeated),
              *(f'not measured: {what}' for what in turns.missing), *(f'went wrong: {what}' for what in turns.failures))
    return turns.failures


def main():
    options = arguments()
    base = figures.read(options.base) if options.base else None  # it may be the file that will be written
    start = time.monotonic()
    os.makedirs(options.out, exist_ok=True)
    paper = Paper(report.columns_of(options.contenders))
    try:
        failures = run(options, Quick if options.quick else Plan, paper)
    finally:
        written = paper.save(options.out)
    if base is not None:
        print('\n' + '\n'.join(comparison(base, paper.rows)))
    print('\n' + ', '.join(os.path.join(options.out, name) for name in written), f'({time.monotonic() - start:.0f} s)')
    if failures:
        sys.exit('rdma-hca: not all went well')


if __name__ == '__main__':
    main()
