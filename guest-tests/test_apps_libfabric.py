#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""libfabric's provider verbs, by its own ping-pong, which looks at what it receives: connections, reliable datagrams made of
connections (rxm) and of datagrams (rxd), and datagrams. Connections need the connection manager: RoCE."""
import re

from harness import apps, faults, libfabric, resources, tap, verbs
from harness.guest import GuestError, end_all
from harness.labs import infiniband, kept, roce

SIZES = (64, 4096, 70000) if tap.LONG else (64, 70000)


def each_kind(server, client, providers=libfabric.KINDS, sizes=SIZES):
    for provider in providers:
        for size in sizes:
            libfabric.pingpong(server, client, provider, libfabric.KINDS[provider], size)
    libfabric.pingpong(server, client, 'verbs', 'dgram')


def endpoints(guest, provider):
    output = guest.run(f"fi_info -p '{provider}'").output
    return {(domain, kind) for domain, kind in re.findall(r'domain: (\S+)\n +version: .*\n +type: (\w+)', output)}


def test_endpoints():
    """What libfabric finds: no connections where there is no connection manager."""
    guest = kept(infiniband, **apps.ALONE).a
    found = endpoints(guest, 'verbs')
    if (f'{guest.card.name}-dgram', 'FI_EP_DGRAM') not in found:
        raise GuestError(f'no datagrams: {found}')


def test_datagrams():
    both = kept(infiniband, **apps.ALONE)
    before = faults.counted(both)
    libfabric.pingpong(both.a, both.b, 'verbs', 'dgram', at=verbs.address(both.a))
    apps.carried(both, before, 'port tx_packets', 4 * libfabric.TIMES)


def test_roce_endpoints():
    guest = kept(roce, **apps.ALONE).a
    name = guest.card.name
    for provider, wanted in (('verbs', {(name, 'FI_EP_MSG'), (f'{name}-dgram', 'FI_EP_DGRAM')}),
                             ('verbs;ofi_rxm', {(name, 'FI_EP_RDM')}), ('verbs;ofi_rxd', {(f'{name}-dgram', 'FI_EP_RDM')})):
        found = endpoints(guest, provider)
        if not wanted <= found:
            raise GuestError(f'{provider}: {found}')


@tap.seconds(300)
def test_roce_pingpongs():
    both = kept(roce, **apps.ALONE)
    before = faults.counted(both)
    each_kind(both.a, both.b)
    apps.carried(both, before, 'port tx_packets', 14 * libfabric.TIMES)


@tap.only_long
def test_roce_loss():
    both = kept(roce, **apps.ALONE)
    with apps.loss(both):
        for provider, kind in libfabric.KINDS.items():
            libfabric.pingpong(both.b, both.a, provider, kind, 70000, 2 * libfabric.TIMES)


def peer_killed(both, provider):
    """The ping-pong does not ask for events, so that a client that waits for a message goes on to."""
    before = faults.counted(both)
    client, server = libfabric.start(both.a, both.b, provider, libfabric.KINDS[provider], '-I 100000000 -S 4096')
    faults.wait_moved(both, before, 'port tx_packets', 501)
    end_all([server, client])


def test_roce_peer_killed():
    """What they had is free, and others can talk."""
    both = kept(roce, **apps.ALONE)
    for provider, kind in libfabric.KINDS.items():
        with resources.given_back(both):
            peer_killed(both, provider)
        libfabric.pingpong(both.a, both.b, provider, kind, 64)


@tap.only_long
@tap.seconds(300)
def test_stranger():
    """Without rxm, whose endpoints cannot be enabled on Soft-RoCE (EINVAL)."""
    both = kept(apps.mixed, **apps.ALONE)
    for server, client in (both.a, both.b), (both.b, both.a):
        each_kind(server, client, ['verbs', 'verbs;ofi_rxd'], SIZES)


if __name__ == '__main__':
    tap.main()
