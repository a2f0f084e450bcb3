#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The connection manager on two of our cards: the example programs of librdmacm.

All but one: udpong (datagrams by rsockets) addresses its peer without a GRH, which RoCE does not have; it fails with
Soft-RoCE in the same way. The kernel's connection manager has no groups of RoCEv2 by IPv6 (mckey).
"""
from harness import cm, cm_programs, tap
from harness.labs import kept, roce


def test_rping():
    cm_programs.rping(kept(roce))


def test_oneself():
    """Both ends in one guest: their address is the machine's own, and the card that has it is theirs."""
    guest = kept(roce).a
    for version in 4, 6:
        cm.connected(guest, guest, 'rping -V -C 10', '-s -a {server}', '-c -a {server}', version)


def test_connections_in_turn():
    cm_programs.connections_in_turn(kept(roce))


def test_connections_at_once():
    cm_programs.connections_at_once(kept(roce))


def test_connection_rate():
    cm_programs.connection_rate(kept(roce))


def test_simple_programs():
    cm_programs.simple(kept(roce))


def test_streams():
    cm_programs.streams(kept(roce))


def test_file_copy():
    cm_programs.file_copy(kept(roce))


def test_multicast():
    both = kept(roce)
    cm_programs.multicast(both.a, both.b, '239.1.2.3')
    cm_programs.multicast(both.b, both.a, '239.130.2.3')


if __name__ == '__main__':
    tap.main()
