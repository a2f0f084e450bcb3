#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Atomic write and FLUSH (programs/placement-test.c), which Linux knows since 6.2: `KERNEL=6.12`. With an older
kernel nothing of them is offered, and that is all that is looked at."""
import functools
import json

from harness import faults, paths, resources, tap, verbs
from harness.devices import RoceCard, SoftRoce
from harness.guest import GuestError
from harness.labs import infiniband, kept, roce
from harness.pyverbs import LIMIT, PREPARE, run_modules
from test_pyverbs import LINKS, both_links

SINCE = (6, 2)
LOSS = [{'action': 'drop', 'direction': 'both', 'probability': 0.01}]


def mixed():
    """Our card and Soft-RoCE."""
    return roce(RoceCard('lan'), SoftRoce('lan'))


def version_of(guest):
    return tuple(int(number) for number in guest.run('uname -r').output.split('-')[0].split('.')[:2])


def needs_kernel(test):
    """Skip a test where the kernel does not know the operations; the test gets its lab."""
    @functools.wraps(test)
    def case(make):
        both = kept(make)
        if version_of(both.a) < SINCE:
            raise tap.Skip(f'Linux before {".".join(map(str, SINCE))}')
        return test(both)
    return case


def run(both, case):
    resources.run(both.a, f'exec placement-test {case}')


def offered(make):
    """All of it, or nothing."""
    both = kept(make)
    for case in ['atomic_write', 'flush', 'rights', 'refused'] if version_of(both.a) >= SINCE else ['missing']:
        run(both, case)


def exchange(both, clients):
    """Of Soft-RoCE (Linux 6.12) atomic write alone: the ICRC of its FLUSH counts the headers twice, so that it takes no other
    and nobody takes its own."""
    options = '-n' if isinstance(both.b.card, SoftRoce) else ''
    for client in clients:
        server = both.a if client is both.b else both.b
        verbs.finish(verbs.start(server, client, f'placement-test {options}'))


@needs_kernel
def peers(both):
    exchange(both, both.guests)


@needs_kernel
def peers_over_loss(both):
    # An atomic write that Soft-RoCE sends again is for address 0.
    ours = [guest for guest in both.guests if not isinstance(guest.card, SoftRoce)]
    before = faults.counted(both)
    with faults.planned(ours, LOSS):
        exchange(both, ours)
    change = faults.moved(both, before)
    for name in 'fault tx_drop', 'fault rx_drop', 'requester retransmissions':
        print(f'# {name}: {change[name]}')
        if not change[name]:
            raise GuestError(f'none were counted: {name}')


def with_python():
    return both_links(disks=(paths.PYTHON_DISK,))


# rdma-core's own tests of it; that these are skipped on an older kernel is in the ledger of test_pyverbs.py.
RDMA_CORE = [f'test_qpex.QpExTestCase.test_qp_ex_rc_{name}' for name in ('atomic_write', 'flush', 'flush_type_violate')]


@needs_kernel
def rdma_core(both):
    both.a.run(PREPARE % both.a.disk(0))
    for link, slot in LINKS.items():
        found = {}
        for line in run_modules(both.a, both.a.devices[slot], ['test_qpex']).splitlines():
            word, _, rest = line.partition(' ')
            if word == 'outcome':
                outcome = json.loads(rest)
                found[outcome['name']] = f'{outcome["outcome"]}: {outcome["reason"]}'
        for name in RDMA_CORE:
            print(f'# {link}: {name}: {found.get(name)}')
        if [name for name in RDMA_CORE if not found.get(name, '').startswith('passed')]:
            raise GuestError('not all of them passed')


def test_infiniband():
    offered(infiniband)


def test_infiniband_peers():
    peers(infiniband)


def test_infiniband_over_loss():
    peers_over_loss(infiniband)


def test_roce():
    offered(roce)


def test_roce_over_loss():
    peers_over_loss(roce)


def test_soft_roce():
    peers(mixed)


def test_soft_roce_over_loss():
    peers_over_loss(mixed)


@tap.seconds(LIMIT + 60)
def test_rdma_core():
    rdma_core(with_python)


if __name__ == '__main__':
    tap.main()
