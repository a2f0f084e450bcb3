#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What only a kernel with checkers can do (make check-debug): each allocation of the driver's fails once
(programs/fail-nth.c), and nothing is lost when it is unloaded."""
import re

from harness import checkers, pci, resources, tap, verbs
from harness.guest import GuestError
from harness.labs import infiniband, kept, roce

DEBUGFS = '/sys/kernel/debug'
KMEMLEAK = f'{DEBUGFS}/kmemleak'
DRIVER = '/sys/bus/pci/drivers/rdma_hca'
# Failures are to be seen by all who allocate, and not to be told in the log.
INJECT = ('cd {0}; '
          'for folder in failslab fail_page_alloc fail_usercopy; do echo 0 >$folder/verbose; done; '
          'for folder in failslab fail_page_alloc; do echo N >$folder/ignore-gfp-wait; done; '
          'echo 0 >fail_page_alloc/min-order').format(DEBUGFS)


def lab(make):
    """A lab whose kernels have the checkers."""
    missing = checkers.missing()
    if missing:
        raise tap.Skip(f'the guests\' kernel has no {missing[0]}: make check-debug')
    both = kept(make)
    both.a.run(INJECT)
    both.a.short_of_memory = True
    return both


def fail_each(both, operation, *arguments, first='true', finally_='true', seconds=500):
    """The operation with each failure, in guest a; afterwards there is traffic as before."""
    script = f'{first} && fail-nth {operation} {" ".join(arguments)} && {finally_}'
    print('#', both.a.run(script, seconds).output.strip())
    both.check()


def works(both):
    both.configure()
    verbs.pingpong(both.a, both.b, '-n 50')


# Verbs of both link layers.
VERBS = ('open', 'pd', 'cq', 'resize', 'srq', 'srq-resize', 'xrcd', 'mr', 'mw', 'dm', 'dm-mr', 'rereg', 'qp', 'connect', 'exit')


def verbs_fail(make, *others):
    both = lab(make)
    before = resources.in_use(both.a)
    for operation in VERBS + others:
        fail_each(both, operation)
        resources.wait_for(both.a, before)
    works(both)


def probe_fails(make):
    both = lab(make)
    card = pci.address(both.a.card)
    fail_each(both, 'bind', card, first=f'echo {card} >{DRIVER}/unbind', finally_=f'echo {card} >{DRIVER}/bind')
    works(both)
    fail_each(both, 'unbind', card)
    works(both)


def reset_fails(make):
    """A reset that ends without a working card is one that a rebind mends."""
    both = lab(make)
    card = pci.address(both.a.card)
    fail_each(both, 'reset', card)
    works(both)


# What the RDMA core loses for want of memory, up to Linux 7.3 at least. Where it cannot register a context it keeps the task, and
# what belongs to that (uverbs_std_types_device.c: it frees the context, and not by its restrack entry). Where it cannot list a
# device's methods it keeps nodes of a tree: radix_tree_insert() that fails leaves empty ones, which uverbs_destroy_api() does not
# see. Of a flow's two arrays it frees one (flow_resources_alloc() in uverbs_cmd.c). And what SRP's target loses with a device that
# goes while its GIDs change: srpt_remove_one() hears events longer than it has its MAD agent, and an event has it register another.
LOST_BY_LINUX = re.compile(r'\b(copy_process|prepare_creds|alloc_task_exec_state|flow_resources_alloc)\+|'
                           r'\bradix_tree_insert\+.*\buverbs_alloc_api\+|'
                           r'\bib_register_mad_agent\+.*\bsrpt_refresh_port_work\+', re.DOTALL)


def lost(guest):
    """What kmemleak has found of the driver's: its reports."""
    # What is younger than 5 s is no leak, nor is what is on its way from one place to another.
    found = guest.run(f'sleep 6; echo scan >{KMEMLEAK}; sleep 1; echo scan >{KMEMLEAK}; cat {KMEMLEAK}', 60).output
    reports = re.split(r'^(?=unreferenced object)', found, flags=re.MULTILINE)
    return ''.join(report for report in reports if not LOST_BY_LINUX.search(report))


def nothing_lost(make):
    both = lab(make)
    for guest in both.guests:
        guest.run(f'modprobe -r rdma_hca; echo clear >{KMEMLEAK}; modprobe rdma_hca')
    works(both)
    for guest in both.guests:
        # It says nothing any more where lockdep gave up.
        guest.run("grep -q 'debug_locks: *1' /proc/lockdep_stats")
    both.a.run('mr-stress 2 200 1')
    for when in ('with the driver', 'without it'):
        for guest in both.guests:
            found = lost(guest)
            if found:
                raise GuestError(f'{guest.name}, {when}, has lost\n{found}')
            guest.run('modprobe -r rdma_hca', check=when == 'with the driver')
    for guest in both.guests:
        guest.run('modprobe rdma_hca')
    works(both)


@tap.seconds(600)
def test_verbs_without_memory():
    verbs_fail(infiniband)


@tap.seconds(600)
def test_probe_without_memory():
    probe_fails(infiniband)


@tap.seconds(600)
def test_reset_without_memory():
    reset_fails(infiniband)


def test_nothing_lost():
    nothing_lost(infiniband)


@tap.seconds(600)
def test_roce_verbs_without_memory():
    verbs_fail(roce, 'flow')


@tap.seconds(600)
def test_roce_probe_without_memory():
    probe_fails(roce)


@tap.seconds(600)
def test_roce_interface_without_memory():
    both = lab(roce)
    fail_each(both, 'up', both.a.card.interface)
    fail_each(both, 'mtu', both.a.card.interface, '3000')
    works(both)


@tap.seconds(600)
def test_roce_reset_without_memory():
    reset_fails(roce)


def test_roce_nothing_lost():
    nothing_lost(roce)


if __name__ == '__main__':
    tap.main()
