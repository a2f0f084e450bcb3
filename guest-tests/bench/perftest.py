# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of RDMA devices, by the programs of perftest: ib_write_bw and the like. MB are of 2^20 bytes, as theirs.

A steady run lasts so many seconds (-D), and what it has moved in them is its figure: perftest's own needs the clock of a
processor, which it cannot calibrate on a busy machine. A short run moves so many messages (-n), start and end included."""
import math

from harness import verbs
from harness.guest import GuestError

from . import host
from .contenders import SOCKETS
from .figures import Figures

MB = 1 << 20
BANDWIDTH = ['send', 'write', 'read']
QP_SIZE = 65536
RATE_SIZE = 64
ATOMIC_SIZE = 8
# Columns of perftest's tables.
COUNT, AVERAGE_MB, MEDIAN_US, AVERAGE_US, P99_US = 1, 3, 4, 5, 7
ATTEMPTS = 10
TIMEOUT = 300


def row(field, name, program, options):
    both = field.both
    return verbs.perftest(both.a, both.b, program, options, timeout=TIMEOUT, slot=field.slots[name])


def messages_a_second(field, name, program, options, seconds):
    # Up to 3 seconds perftest leaves out nothing at either end.
    count = row(field, name, program, f'{options} -D {seconds}')[COUNT]
    if not count:
        raise GuestError(f'nothing was complete after {seconds} s: {program} {options}')
    return count / seconds


def calibrated(field, name, program, options, columns):
    """Columns of a run that knew its clock: 0.00 and inf say that the calibration failed."""
    for _ in range(ATTEMPTS):
        given = row(field, name, program, options)
        figures = [given[column] for column in columns]
        if all(0 < figure < math.inf for figure in figures):
            return figures
    raise GuestError(f'the clock was not calibrated {ATTEMPTS} times in a row: {program} {options}')


def short_count(size):
    return max(16, min(2000, 16 * MB // size))


def bandwidth(field, turns, plan):
    """Steady."""
    contenders = field.rdma() + field.sockets()
    for kind in BANDWIDTH:
        for size in plan.sizes:
            def measure(name):
                if name in SOCKETS:
                    return host.socket_bandwidth(name, size, plan.socket_seconds)
                return messages_a_second(field, name, f'ib_{kind}_bw', f'-s {size}', plan.seconds) * size / MB

            what = f'{kind} bandwidth'
            found = turns.median(f'{what}, {size} bytes', contenders, measure, plan.rounds)
            yield Figures(what, size, 'MB/s', found, mode='steady')


def short(field, turns, plan):
    for kind in BANDWIDTH:
        for size in plan.short_sizes:
            def measure(name):
                return calibrated(field, name, f'ib_{kind}_bw', f'-s {size} -n {short_count(size)}', [AVERAGE_MB])[0]

            what = f'{kind} bandwidth, short'
            yield Figures(what, size, 'MB/s', turns.median(f'{what}, {size} bytes', field.rdma(), measure), mode='short')


def queue_pairs(field, turns, plan):
    """Large messages on many, and how many small ones a second. Large ones on a single one are bandwidth()'s."""
    # -Q: one completion for so many messages of a queue pair. With as many as usual slow devices have hardly any to count.
    cases = [('write bandwidth', QP_SIZE, '-Q 1', qps, 'MB/s', QP_SIZE / MB) for qps in plan.queue_pairs if qps > 1]
    cases += [('message rate', RATE_SIZE, '-Q 16', qps, 'k/s', 1e-3) for qps in plan.queue_pairs]
    for what, size, options, qps, unit, scale in cases:
        def measure(name):
            return messages_a_second(field, name, 'ib_write_bw', f'-s {size} -q {qps} {options}', plan.seconds) * scale

        name = f'{what}, {qps} QP{"s" if qps > 1 else ""}'
        yield Figures(name, size, unit, turns.median(name, field.rdma(), measure, plan.rounds), mode='steady', qps=qps)


def atomics(field, turns, plan):
    for title, kind in plan.atomics:
        def measure(name):
            return messages_a_second(field, name, 'ib_atomic_bw', f'-A {kind}', plan.seconds) / 1e3

        what = f'{title} rate'
        yield Figures(what, ATOMIC_SIZE, 'k/s', turns.median(what, field.rdma(), measure, plan.rounds), mode='steady')


def latency(field, turns, plan):
    """Half of there and back; of a read and of an atomic, which have an answer, all of it."""
    cases = [(f'{kind} latency', f'ib_{kind}_lat', f'-s {size}', size, 2 if kind == 'read' else 1)
             for kind in BANDWIDTH for size in plan.latency_sizes]
    for what, program, options, size, ways in [*cases, ('fetch-and-add latency', 'ib_atomic_lat', '-A FETCH_AND_ADD', 8, 2)]:
        def measure(name):
            if name in SOCKETS:
                return [ways * time for time in host.socket_latency(name, size, plan.socket_seconds)]
            return calibrated(field, name, program, f'{options} -n {plan.latency_messages}', [AVERAGE_US, MEDIAN_US, P99_US])

        found = turns.take(f'{what}, {size} bytes', field.rdma() + field.sockets(), measure, plan.latency_rounds)
        for column, (end, statistic) in enumerate((('', 'average'), (' median', 'median'), (' p99', 'p99'))):
            least = {name: min(given[column] for given in rounds) for name, rounds in found.items()}
            yield Figures(what + end, size, 'us', least, statistic=statistic)
