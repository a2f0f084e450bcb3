#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""UCX, by its own program: its transports rc_verbs (connections) and ud_verbs (datagrams), alone (UCT) and under its protocols
(UCP). The program does not look at the data; what UCX carries is looked at by test_apps_mpi.py."""
import re

from harness import apps, faults, resources, tap, ucx
from harness.guest import GuestError
from harness.labs import infiniband, kept, roce

LIMIT = 900 if tap.LONG else 300  # seconds

# Test, size, times, and how data are given to the transport. No card by verbs has a swap.
CONNECTIONS = [('am_lat', 8, 100, '-D short'), ('am_lat', 4000, 100, '-D bcopy'), ('am_bw', 8000, 200, '-D zcopy'),
               ('put_lat', 8, 200, '-D short'), ('put_lat', 4000, 100, '-D bcopy'), ('put_bw', 65536, 200, '-D zcopy'),
               ('get', 4000, 200, '-D bcopy'), ('get', 65536, 200, '-D zcopy'), ('add_lat', 8, 100, ''), ('add_mr', 8, 200, ''),
               ('fadd', 8, 200, ''), ('cswap', 8, 200, '')]
DATAGRAMS = [('am_lat', 8, 100, '-D short'), ('am_lat', 4000, 100, '-D bcopy'), ('am_bw', 4000, 200, '-D zcopy')]

# Of UCP's, by either: what the transport cannot do it makes of messages.
PROTOCOLS = [('tag_lat', 8, 100, ''), ('tag_lat', 30000, 50, ''), ('tag_bw', 100000, 50, ''), ('tag_bw', 2000, 100, '-U -C'),
             ('tag_sync_lat', 8, 50, ''), ('tag_lat', '100,3000,8000', 30, '-D iov,iov'), ('ucp_put_lat', 8, 50, ''),
             ('ucp_put_bw', 65536, 50, ''), ('ucp_get', 65536, 50, ''), ('ucp_add', 8, 50, ''), ('ucp_fadd', 8, 50, ''),
             ('ucp_fadd', 4, 50, ''), ('ucp_swap', 8, 50, ''), ('ucp_cswap', 8, 50, ''), ('stream_bw', 20000, 50, ''),
             ('stream_lat', 100, 50, '-r recv_data'), ('ucp_am_lat', 100, 50, '-H 16'), ('ucp_am_bw', 100000, 50, '')]

# A datagram that is lost is waited for.
ACROSS_LOSS = [('tag_lat', 30000, 100, ''), ('tag_bw', 100000, 50, ''), ('ucp_put_bw', 65536, 50, ''), ('ucp_get', 65536, 50, ''),
               ('ucp_fadd', 8, 50, ''), ('ucp_am_bw', 100000, 50, '')]

FIGURES = [('tag_lat', 8, 50, ''), ('tag_bw', 65536, 50, ''), ('ucp_get', 65536, 20, '')]


def directly(both, version=4):
    ucx.run(both.a, both.b, ucx.alone('rc_verbs'), CONNECTIONS, version)
    ucx.run(both.b, both.a, ucx.alone('ud_verbs'), DATAGRAMS, version)


def protocols(both, version=4, rc=PROTOCOLS, ud=PROTOCOLS):
    ucx.run(both.a, both.b, ucx.below_protocols('rc_v'), rc, version)
    ucx.run(both.b, both.a, ucx.below_protocols('ud_v'), ud, version)


# Each transport takes half of them. On RoCE they differ by their addresses only: a quarter; with Soft-RoCE, another one.
HALVES = {} if tap.LONG else {'rc': PROTOCOLS[::2], 'ud': PROTOCOLS[1::2]}
QUARTERS = {} if tap.LONG else {'rc': PROTOCOLS[::4], 'ud': PROTOCOLS[2::4]}
OTHERS = {} if tap.LONG else {'rc': PROTOCOLS[1::4], 'ud': PROTOCOLS[3::4]}


def across_loss(both):
    with apps.loss(both):
        for number, transport in enumerate(('rc_v', 'ud_v')):
            ucx.run(both.a, both.b, ucx.below_protocols(transport), ACROSS_LOSS if tap.LONG else ACROSS_LOSS[number::2])


def peer_killed(both, transport):
    """UCX tells its user of the dead, who does nothing about it: the program goes on to wait."""
    endless = [('tag_lat', 4000, 100000000, '-e')]
    before = faults.counted(both)
    client, server = ucx.start(both.a, both.b, ucx.mortal(transport), endless)
    faults.wait_moved(both, before, 'port tx_packets', 1001)
    server.end()
    found = client.wait_output(r'error handler called with status .*', timeout=100).group(0)
    if not re.search('Endpoint timeout|Destination is unreachable|Connection reset', found):
        raise GuestError(f'another error: {found}')
    print(f'# {transport}: {found}')
    client.end()
    ucx.run(both.a, both.b, ucx.below_protocols(transport), PROTOCOLS[:2])


def figures(both, name):
    for transport in 'rc_v', 'ud_v':
        rows = ucx.run(both.a, both.b, ucx.below_protocols(transport), FIGURES, 6)
        for (test, size, *_), row in zip(FIGURES, rows):
            print(f'# {name} {transport} {test}, {size} bytes: {row[2]} us, {row[4]} MB/s')


def test_capabilities():
    """What UCX finds out about the card."""
    both = kept(infiniband)
    output = both.a.run('ucx_info -d').output
    for transport, wanted in (('rc_verbs', ('put_zcopy: <= ', 'get_zcopy: ', 'am_zcopy: <= ', 'atomic_fadd: 64 bit',
                                            'error handling: peer failure')),
                              ('ud_verbs', ('am_zcopy: <= ', 'connection: to ep, to iface'))):
        found = re.search(rf'Transport: {transport}\n(?:#.*\n)*?# *\n# *\n', output)
        for text in wanted:
            if not found or text not in found.group(0):
                raise GuestError(f'{transport} has no {text!r}:\n{output}')


@tap.seconds(LIMIT)
def test_transports():
    directly(kept(infiniband))


@tap.seconds(LIMIT)
def test_protocols():
    protocols(kept(infiniband), **HALVES)


@tap.only_long
def test_loss():
    across_loss(kept(infiniband))


@tap.seconds(LIMIT)
def test_peer_killed():
    both = kept(infiniband)
    for transport in 'rc_v', 'ud_v':
        with resources.given_back(both):
            peer_killed(both, transport)


@tap.only_long
@tap.seconds(LIMIT)
def test_figures():
    figures(kept(infiniband), 'InfiniBand')


@tap.only_long
@tap.seconds(LIMIT)
def test_roce_transports():
    directly(kept(roce), 6)


@tap.seconds(LIMIT)
def test_roce_protocols():
    protocols(kept(roce), **QUARTERS)


def test_roce_loss():
    across_loss(kept(roce))


@tap.only_long
@tap.seconds(LIMIT)
def test_roce_figures():
    figures(kept(roce), 'RoCE')


@tap.seconds(LIMIT)
def test_stranger():
    """Without UCT, as the program has the server take the device of the client's name. By IPv6: UCX 1.13 finds the addresses of a
    datagram by IPv4 only if the completion's service level tells of IPv4, as ours do, and Soft-RoCE's do not."""
    protocols(kept(apps.mixed), 6, **OTHERS)


@tap.only_long
@tap.seconds(LIMIT)
def test_stranger_figures():
    figures(kept(apps.stranger), 'Soft-RoCE')


if __name__ == '__main__':
    tap.main()
