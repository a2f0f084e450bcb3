#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shared receive queues and XRC: the common programs on both link layers, and what these do not do (programs/srq-test.c, programs/xrc-test.c)."""
from harness import resources, tap, verbs
from harness.labs import infiniband, kept, roce


def run(case, cpus=1, program='srq-test'):
    """A case of a program, in one guest; it leaves the driver with nothing in use."""
    resources.run(kept(infiniband, cpus=cpus).a, f'exec {program} {case}')


def test_limits_ignored():
    run('limits_ignored')


def test_exact_lists():
    run('exact_lists')


def test_limit():
    run('limit')


def test_resize():
    run('resize')


def test_last_wqe():
    run('last_wqe')


def test_shared_by_many():
    run('shared')


def test_destroyed_in_any_order():
    run('destroy')


def test_several_posters():
    run('threads')


def test_datagrams():
    run('datagrams')


def test_empty():
    run('empty')


def test_empty_immediate():
    run('empty_immediate')


def test_xrc():
    run('operations', program='xrc-test')


def test_xrc_windows():
    """A window that a sender binds, and its end: neither takes the SRQ's number of its request for its own."""
    run('windows', program='xrc-test')


def test_xrc_limits():
    run('limits', program='xrc-test')


def test_xrc_of_two_processes():
    run('shared', program='xrc-test')


def test_last_srq():
    run('all_srqs')


def pingpongs(make):
    both = kept(make)
    for options in '-q 1 -s 1 -n 100', '-q 16 -s 4096 -n 500', '-q 4 -s 20000 -n 100 -m 256', '-e -q 16 -n 500':
        verbs.pingpong(both.a, both.b, options, service='srq')
    for options in '-n 100', '-n 100 -e -s 20000':
        verbs.finish(verbs.start(both.a, both.b, f'ibv_xsrq_pingpong {options}'))


# perftest's table of numbers has the last one of a message that is sent in one direction: that has to suffice.
PERFTESTS = ('ib_send_bw --use-srq', 'ib_send_lat --use-srq', 'ib_send_bw --use-srq -q 4', 'ib_send_bw --use-srq -c UD',
             'ib_send_bw -c XRC', 'ib_send_lat -c XRC', 'ib_write_bw -c XRC', 'ib_read_bw -c XRC')


def perftests(make):
    both = kept(make)
    for program in PERFTESTS:
        verbs.perftest(both.a, both.b, program, f'-s {4096 if "UD" in program else 5000} -n 100')


def test_pingpongs():
    pingpongs(infiniband)


def test_perftests():
    perftests(infiniband)


def test_ucx():
    """UCX's connections share a receive queue, and an endpoint goes when its last entry has been reported."""
    both = kept(infiniband)
    verbs.ucx_tests(both.a, both.b, 'rc_v')


def test_roce_pingpongs():
    pingpongs(roce)


@tap.only_long
def test_roce_perftests():
    perftests(roce)


@tap.only_long
def test_roce_ucx():
    both = kept(roce)
    verbs.ucx_tests(both.a, both.b, 'rc_v')


# Two processors: what only seems to be locked shows there.

def test_two_cpus_several_posters():
    run('threads', cpus=2)


def test_two_cpus_shared_by_many():
    run('shared', cpus=2)


if __name__ == '__main__':
    tap.main()
