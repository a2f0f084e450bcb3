#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine moves while its card works, and the other end of the cable sees a pause: no port goes down, nothing is lost, and
nothing comes twice (traffic-test compares all data). In the long form 20 times each."""
import contextlib

from harness import fabric, faults, ipoib, links, moving, nvme, quota, resources, storage, tap, traffic, verbs, wait
from harness.check import expect
from harness.devices import InfinibandCard, ManagedCard, Nic, RoceCard
from harness.lab import Lab, Machine
from harness.labs import APPLICATIONS
from harness.links import stream
from harness.switches import Fabric, TlsSwitch

MOVES = 20 if tap.LONG else 2
LOSS = faults.loss(0.01)
# However slow this machine is.
PATIENT = {'move-limit-ms': 600000}
SOCKET = {'shared_memory': 'off'}
WRITES = '--rw=randwrite --bsrange=512-128k --iodepth=8 --size=16m --rate=4m'


def pair(card, cable, lab=Lab, **options):
    machine = Machine(Nic('net'), card, **options)
    return lab([machine, machine], {'net': stream(), 'cable': cable})


def infiniband(cable):
    return pair(InfinibandCard('cable', properties=PATIENT), cable)


def roce(cable):
    return pair(RoceCard('cable', properties=PATIENT), cable)


SWITCH_OPTIONS = [f'--move-limit-ms={PATIENT["move-limit-ms"]}']


def switched(cables=None):
    """Two cards at a switch, with a subnet manager in the first guest."""
    return pair(ManagedCard('cable', managed=None, properties=PATIENT), cables or Fabric([0, 0], options=SWITCH_OPTIONS),
                fabric.FabricLab, layers=('apps',))


def move(both, number):
    """In turn guest a, by a file, and guest b, live."""
    (moving.by_file, moving.migrate)[number % 2](both.guests[number % 2])


def keep_moving(both, commands):
    for number in range(MOVES):
        move(both, number)
        traffic.went_further(commands)


def check(make, cable, plan=()):
    with make(cable) as both:
        commands = traffic.start(both)
        traffic.went_further(commands)
        with traffic.unseen(both), faults.planned(both.guests, plan):
            keep_moving(both, commands)
        for guest in both.guests:
            expect('moves', resources.counters(guest, 'cumulative')['link moves'] == MOVES)
        traffic.end(both, commands)


def test_infiniband_memory():
    check(infiniband, links.turned_cable())


def test_infiniband_socket():
    check(infiniband, links.unix_cable(**SOCKET))


def test_infiniband_loss():
    check(infiniband, links.turned_cable(**SOCKET), LOSS)


def test_roce_memory():
    check(roce, links.unix_cable())


def test_roce_socket():
    check(roce, links.turned_cable(**SOCKET))


def test_roce_loss():
    check(roce, links.unix_cable(), LOSS)


@tap.only_long
def test_tcp():
    check(infiniband, links.tcp_cable())


def test_tls():
    check(infiniband, links.tls_cable())


def check_switch(cables=None):
    with switched(cables) as both:
        commands = traffic.start(both)
        traffic.went_further(commands)
        with traffic.unseen(both):
            keep_moving(both, commands)
        traffic.end(both, commands)


@tap.only_long
def test_switch():
    check_switch()


def test_tls_switch():
    check_switch(TlsSwitch(2, SWITCH_OPTIONS))


def test_ipoib():
    with switched() as both, traffic.unseen(both):
        for number in range(MOVES):
            with ipoib.carrying(both.a, both.b, mebibytes=2, percent=3):
                move(both, number)
                quota.lift(both.b, 3)


def test_nvme():
    """The target's machine moves, and the host's; fio compares what it has written."""
    with pair(RoceCard('cable', properties=PATIENT), links.unix_cable(), **APPLICATIONS) as both:
        nvme.serve(both.a, both.a.card, kept=False)
        with nvme.connected(both.b, both.a.card) as name, traffic.unseen(both):
            for number in range(MOVES):
                job = storage.writing(both, nvme.disk(both.b, name), WRITES)
                move(both, number)
                storage.report(job)


# Snapshots: what runs in the guests tells a file, as a guest that goes back parts from who listens to it.

TOLD = '/tmp/traffic'


def traffic_apart(both):
    port = verbs.new_port()
    for guest, server in ((both.a, ''), (both.b, verbs.address(both.a))):
        options = guest.card.options('traffic-test', 4)
        guest.run(quota.at(20, f'setsid traffic-test {options} -p {port} {server} >{TOLD} 2>&1 &'))
        if not server:
            wait.until(lambda: guest.run(f"grep -qi ':{port:04x} 0*:0000 0A ' /proc/net/tcp", check=False).status == 0, 'listening')


def told(guest):
    return guest.run(f'cat {TOLD}').output


def went_further_apart(both):
    before = [len(told(guest)) for guest in both.guests]
    for guest, was in zip(both.guests, before):
        wait.until(lambda: len(told(guest)) > was, lambda: f'going on: {guest.name}: {told(guest)}')


def end_apart(both):
    for guest in both.guests:
        guest.run('killall traffic-test')
    for guest in both.guests:
        wait.until(lambda: 'ended: ' in told(guest), lambda: f'ended: {guest.name}: {told(guest)}')


@contextlib.contextmanager
def saved(make):
    """A lab, and snapshots of both its guests that fit: one stands still, and the other one waits for it."""
    with make(links.unix_cable()) as both:
        snapshots = [moving.Snapshots(guest) for guest in both.guests]
        traffic_apart(both)
        went_further_apart(both)
        with traffic.unseen(both):
            both.a.qmp('stop')
            for each in snapshots:
                each.save('moment')
            both.a.qmp('cont')
            went_further_apart(both)
        yield both, snapshots


def check_together(make):
    """Both stand until both are what they were: who has gone on would be somebody else to the one that went back."""
    with saved(make) as (both, snapshots):
        with traffic.unseen(both):
            for guest in both.guests:
                guest.qmp('stop')
            for each in snapshots:
                each.go_back('moment')
            for each in snapshots:
                each.go_on()
            went_further_apart(both)
        end_apart(both)


def check_apart(make):
    """One goes back, and the other one has gone on: connections break, and others are made."""
    with saved(make) as (both, snapshots):
        snapshots[0].load('moment')
        for guest in both.guests:
            wait.until(lambda: guest.run('killall -0 traffic-test', check=False).status, lambda: f'broken: {told(guest)}', 120)
        said = ''.join(told(guest) for guest in both.guests)
        expect('a connection that broke', 'retry counter exceeded' in said, said)
        both.wait_active()
        again = traffic.start(both, 1)
        traffic.went_further(again)
        traffic.end(both, again)


@tap.only_long
def test_infiniband_snapshots_together():
    check_together(infiniband)


def test_roce_snapshots_together():
    check_together(roce)


def test_infiniband_snapshots_apart():
    check_apart(infiniband)


@tap.only_long
def test_roce_snapshots_apart():
    check_apart(roce)


if __name__ == '__main__':
    tap.main()
