#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""RoCE cards on a cable: with each other, and with what is behind a -netdev stream, another card or Soft-RoCE."""
from harness import cm, faults, tap, verbs
from harness.devices import RoceCard, SoftRoce
from harness.labs import kept, roce_cable
from harness.links import cable_to_netdev, tcp_cable

LOSS = [{'action': 'drop', 'direction': 'both', 'probability': 0.01}]


def programs(both):
    """Every service, both ways, by both versions of IP, with data that are checked."""
    for server, client, version in ((both.a, both.b, 4), (both.b, both.a, 6)):
        for service in ('rc', 'uc', 'ud'):
            verbs.pingpong(server, client, '-s 4096 -n 50', service, version)
        verbs.pingpong(server, client, '-s 100001 -n 50 -e', version=version)
        for program in ('ib_send_bw', 'ib_write_bw', 'ib_read_bw -o 16'):
            verbs.perftest(server, client, program, '-s 65536 -n 50', version)
        verbs.perftest(server, client, 'ib_atomic_bw -A FETCH_AND_ADD -o 16', '-n 50', version)


def some(both):
    """Of these, what shows that a cable carries frames of all sizes each way; in the long form all."""
    if tap.LONG:
        programs(both)
        return
    verbs.pingpong(both.a, both.b, '-s 100001 -n 50 -e', version=4)
    verbs.pingpong(both.b, both.a, '-s 4096 -n 50', 'ud', 6)
    verbs.perftest(both.b, both.a, 'ib_write_bw', '-s 65536 -n 50', 6)


def losses(both):
    """Some packets are lost, and all arrives."""
    with faults.losing(both, faults.ending(LOSS, 64)):
        verbs.pingpong(both.a, both.b, '-s 65536 -n 200 -c')


def test_unix():
    programs(kept(roce_cable))


def test_unix_events_and_connection_manager():
    both = kept(roce_cable)
    verbs.event_programs(both.a, both.b)
    cm.talk(both.a, both.b)


def test_unix_losses():
    losses(kept(roce_cable))


def test_tcp():
    some(kept(roce_cable, cable=tcp_cable))


def between(first):
    """first: behind a -netdev stream."""
    return roce_cable(cable_to_netdev, first, RoceCard('lan'))


def netdev():
    return between(RoceCard('lan'))


def soft_roce():
    return between(SoftRoce('lan'))


def test_netdev():
    both = kept(netdev)
    some(both)
    cm.talk(both.a, both.b)


def test_netdev_losses():
    losses(kept(netdev))


def test_soft_roce():
    both = kept(soft_roce)
    some(both)
    cm.talk(both.a, both.b)


if __name__ == '__main__':
    tap.main()
