#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The peer at the other end of the cable leaves and comes back; the port follows, with an event each time."""
import time

from harness import events, pci, tap, verbs
from harness.devices import InfinibandCard, Nic
from harness.lab import Lab, Machine
from harness.labs import infiniband, kept, roce_cable
from harness.links import stream, tcp_cable, unix_cable


def peer_leaves_and_returns(cable, leaver, lab=infiniband):
    with lab(cable) as both:
        leaves = both.guests[leaver]
        stays = both.guests[1 - leaver]
        watch = events.Watch(stays)
        for _ in range(2):
            before = len(watch.told)
            leaves.stop()
            stays.card.wait_port('DOWN')
            watch.wait('PORT_ERR', since=before)
            before = len(watch.told)
            leaves.start()
            both.wait_again(leaves)
            watch.wait('PORT_ACTIVE', since=before)
            verbs.pingpong(both.a, both.b, '-e -n 50')
        watch.end()


def test_unix_connecting_end_leaves():
    peer_leaves_and_returns(unix_cable, 1)


def test_unix_listening_end_leaves():
    peer_leaves_and_returns(unix_cable, 0)


def test_tcp_connecting_end_leaves():
    peer_leaves_and_returns(tcp_cable, 1)


@tap.only_long
def test_tcp_listening_end_leaves():
    peer_leaves_and_returns(tcp_cable, 0)


@tap.only_long
def test_roce_connecting_end_leaves():
    peer_leaves_and_returns(unix_cable, 1, roce_cable)


def test_roce_listening_end_leaves():
    peer_leaves_and_returns(unix_cable, 0, roce_cable)


def polling(cable):
    """Cards whose threads poll, as where there are processors to spare."""
    machine = Machine(Nic('net'), InfinibandCard('cable', polling=True))
    return Lab([machine, machine], {'net': stream(), 'cable': cable()})


def test_polling_connecting_end_leaves():
    peer_leaves_and_returns(unix_cable, 1, polling)


def test_polling():
    """Messages that find the other end's thread awake, or asleep, or that wait for room in the ring."""
    with polling(unix_cable) as both:
        verbs.perftest(both.a, both.b, 'ib_write_bw', '-s 65536 -n 2000')
        verbs.perftest(both.a, both.b, 'ib_send_bw', '-b -s 4096 -n 2000')
        verbs.perftest(both.a, both.b, 'ib_read_bw', '-q 8 -s 16384 -n 500')
        verbs.perftest(both.a, both.b, 'ib_write_lat', '-s 2 -n 500')
        verbs.perftest(both.a, both.b, 'ib_send_lat', '-e -s 2 -n 200')


def test_reset_of_the_peer():
    """The peer's card is reset and its driver brings it up again: the stream stays, but the link was down."""
    both = kept(infiniband)
    with events.watched(both.a) as watch:
        for _ in range(2):
            before = len(watch.told)
            pci.reset(both.b.card)
            watch.wait('PORT_ERR', 'PORT_ACTIVE', since=before)
            both.wait_active()
            verbs.pingpong(both.a, both.b, '-e -n 50')


def test_reset_of_the_roce_peer():
    """The stream stays, and so does the link, as a network card's does."""
    both = kept(roce_cable)
    for _ in range(2):
        pci.reset(both.b.card)
        both.b.card.configure()
        both.wait_active()
        verbs.pingpong(both.a, both.b, '-e -n 50')


def test_pause_of_both_guests():
    """The cards' timers follow their guests' clocks: a pause longer than every time-out loses nothing."""
    both = kept(infiniband)
    commands = verbs.start(both.a, both.b, 'ibv_rc_pingpong -c -e -n 3000')
    time.sleep(0.5)
    for guest in both.guests:
        guest.qmp('stop')
    time.sleep(3)
    for guest in both.guests:
        guest.qmp('cont')
    verbs.finish(commands)


if __name__ == '__main__':
    tap.main()
