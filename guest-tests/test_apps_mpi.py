#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Open MPI over UCX, with two and four ranks in two guests: programs/apps/mpi-test.c, which looks at all that it receives."""
import re

from harness import apps, faults, mpi, resources, tap, verbs, wait
from harness.guest import GuestError
from harness.labs import infiniband, kept, roce

ROUNDS = 10 if tap.LONG else 1

def prepared(make):
    both = kept(make, **apps.ALONE)
    mpi.prepare(both)
    return both


def run(both, ranks, transport, case='all', rounds=ROUNDS, timeout=170):
    """The job ends well, and its messages went by our cards; gives what it printed."""
    before = faults.counted(both)
    output = verbs.finish([mpi.start(both, ranks, transport, case, rounds)], timeout)[0]
    done = set(re.findall(rf'rank (\d+) of {ranks}: done', output))
    if len(done) != ranks:
        raise GuestError(f'not all ranks came to their end:\n{output}')
    if before:
        apps.carried(both, before, 'port tx_packets', 200)
    return output


def figures(make, name):
    for transport in 'rc_v', 'ud_v':
        for line in re.findall('.* us a way', run(prepared(make), 2, transport, 'figures', 50)):
            print(f'# {name} {transport}: {line}')


def peer_killed(both, case='for_ever'):
    """mpirun ends the job and says which rank was lost, and where."""
    before = faults.counted(both)
    job = mpi.start(both, 2, 'rc_v', case)
    wait.until(lambda: faults.moved(both, before)['port tx_packets'] > 1000, lambda: f'talking:\n{job.output}', timeout=150)
    both.b.run('killall -9 mpi-test')
    result = job.wait(120, check=False)
    if result.status in (None, 0) or not re.search(r'rank 1 .*guest2 exited on signal 9', result.output):
        raise GuestError(f'nobody told of the death:\n{result}')


@tap.seconds(300)
def test_two_ranks():
    run(prepared(infiniband), 2, 'rc_v')


@tap.seconds(300)
def test_four_ranks():
    run(prepared(infiniband), 4, 'rc_v')


@tap.seconds(300)
def test_datagrams():
    run(prepared(infiniband), 2, 'ud_v')


@tap.seconds(300)
def test_loss():
    both = prepared(infiniband)
    with apps.loss(both):
        run(both, 2, 'rc_v')


@tap.seconds(400)
def test_peer_killed():
    both = prepared(infiniband)
    with resources.given_back(both):
        peer_killed(both)
    run(both, 2, 'rc_v', 'ring')


@tap.only_long
@tap.seconds(300)
def test_roce_two_ranks():
    run(prepared(roce), 2, 'rc_v')


@tap.only_long
@tap.seconds(300)
def test_roce_datagrams_of_four_ranks():
    run(prepared(roce), 4, 'ud_v')


@tap.only_long
@tap.seconds(300)
def test_stranger():
    """The other rank's device is Soft-RoCE."""
    run(prepared(apps.mixed), 2, 'rc_v')


@tap.only_long
@tap.seconds(300)
def test_figures():
    figures(infiniband, 'InfiniBand')


@tap.only_long
@tap.seconds(300)
def test_roce_figures():
    figures(roce, 'RoCE')


@tap.only_long
@tap.seconds(300)
def test_stranger_figures():
    figures(apps.stranger, 'Soft-RoCE')


if __name__ == '__main__':
    tap.main()
