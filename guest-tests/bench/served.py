#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What `make bench-served` shows: cards that are served to a distribution's QEMU by vfio-user, beside the same cards in ours, each
kind in two guests of its own; all are up at once, and measured in turn. Of several rounds the median of bandwidths and rates,
the least of latencies; MB are of 2^20 bytes."""
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '..'))
sys.dont_write_bytecode = True

from harness import links, verbs  # noqa: E402
from harness.devices import InfinibandCard, Nic, RoceCard  # noqa: E402
from harness.lab import Lab, Machine  # noqa: E402
from harness.stock import StockMachine  # noqa: E402

ROUNDS = 5
COUNT, AVERAGE_MB, MEDIAN_US = 1, 3, 4  # columns of perftest's
SECONDS = 2
# What is measured: a program of perftest, its options, the column, what it is divided by, of which rounds' figures.
ROWS = [('send latency, 8 bytes, median us', 'ib_send_lat', '-s 8 -n 1000', MEDIAN_US, 1, min),
        ('write latency, 8 bytes, median us', 'ib_write_lat', '-s 8 -n 1000', MEDIAN_US, 1, min),
        ('writes of 64 bytes a second', 'ib_write_bw', f'-s 64 -D {SECONDS}', COUNT, SECONDS, statistics.median),
        *((f'write bandwidth, {size} bytes, MB/s', 'ib_write_bw', f'-s {size} -D {SECONDS}', COUNT, SECONDS * (1 << 20) / size,
           statistics.median) for size in (4096, 65536, 1048576))]
LINKS = {'InfiniBand, cable': (InfinibandCard, links.unix_cable), 'RoCE, cable': (RoceCard, links.unix_cable),
         'RoCE, -netdev stream': (RoceCard, links.stream)}
MACHINES = {'built in': Machine, 'served': StockMachine}


def pair(make, card, link):
    options = {'boots': True} if make is Machine else {}
    machine = make(Nic('net'), card('link', recorder=0), **options)
    return Lab([machine, machine], {'net': links.stream(), 'link': link()})


def measure(labs):
    for what, program, options, column, divisor, judge in ROWS:
        found = {name: [] for name in labs}
        for _ in range(ROUNDS):
            for name, both in labs.items():
                found[name].append(verbs.perftest(both.a, both.b, program, options)[column] / divisor)
        print(f'{what:40}' + ''.join(f'{judge(found[name]):14.1f}' for name in labs), flush=True)


def main():
    for link, (card, make) in LINKS.items():
        print(f'\n{link:40}' + ''.join(f'{name:>14}' for name in MACHINES), flush=True)
        labs = {name: pair(machine, card, make) for name, machine in MACHINES.items()}
        try:
            for both in labs.values():
                both.start()
            measure(labs)
        finally:
            for both in labs.values():
                both.stop()


main()
