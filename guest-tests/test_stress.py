#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory regions by the ten thousand, in the long form by the hundred thousand, with traffic; how many commands a second the card takes."""
import os
import random
import re

from harness import resources, tap, verbs
from harness.labs import infiniband, kept
from harness.patience import FACTOR

REGIONS = (100000 if tap.LONG else 30000) // FACTOR
PROCESSES = 4
SEED = int(os.environ.get('STRESS_SEED') or random.randrange(10**6))


def traffic(both):
    """A moment of traffic in both directions, with its data checked."""
    verbs.pingpong(both.a, both.b, '-e -s 20000 -n 200', timeout=120)
    # Its figures are of no interest here, and busy guests often spoil its calibration.
    verbs.finish(verbs.start(both.b, both.a, 'ib_write_bw -F -s 65536 -n 200'), timeout=120)


def hit_rates(before, after):
    """Of the card's two translation caches, between two readings of its counters."""
    rates = []
    for cache in ('mpt', 'mtt'):
        hits, misses = (after[f'v2p {cache}_{what}'] - before[f'v2p {cache}_{what}'] for what in ('hits', 'misses'))
        rates.append(f'{cache} cache: {hits} hits, {misses} misses, {100 * hits / max(1, hits + misses):.2f} % hit')
    return '; '.join(rates)


@tap.seconds(420)
def test_register_and_free():
    both = kept(infiniband, cpus=1)
    before = resources.in_use(both.a)
    counted = resources.counters(both.a, 'cumulative')
    stress = both.a.spawn(f'exec mr-stress {PROCESSES} {REGIONS} {SEED}')
    rounds = 0
    while stress.running:
        traffic(both)
        rounds += 1
    print(f'# {stress.wait(1).output.strip()}, during {rounds} rounds of traffic; STRESS_SEED={SEED}')
    print(f'# {hit_rates(counted, resources.counters(both.a, "cumulative"))}')
    resources.wait_for(both.a, before)
    both.a.run('modprobe -r rdma_hca && modprobe rdma_hca')  # complains of what is left of its own
    both.wait_active()
    traffic(both)


def test_command_rate():
    """Not a matter of right or wrong; but less than this means that something waits that should not."""
    output = kept(infiniband, cpus=1).a.run('command-rate 20000').output
    for line in output.splitlines():
        print(f'# {line}')
    for what, least in (('commands', 1000), ('registrations', 300)):
        rate = float(re.search(rf'{what}: (\d+) a second', output).group(1))
        assert rate >= least / FACTOR, f'only {rate} {what} a second'


def test_doorbells_without_end():
    """A program that rings as fast as it can, with much else for the card to do, holds up neither QEMU nor others."""
    both = kept(infiniband, cpus=1)
    flood = both.a.spawn('exec doorbell-flood')
    flood.wait_output('flooding')
    client, server = verbs.start(both.b, both.a, 'ib_write_bw -F -q 16 -s 65536 -D 100')
    for _ in range(100):
        assert both.a.qmp('query-status')['status'] == 'running'
    traffic(both)
    assert flood.running and client.running
    for command in client, server, flood:
        command.kill()
    traffic(both)


if __name__ == '__main__':
    tap.main()
