#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""An aarch64 guest and an x86-64 one: `make check-arm64`, which has many other tests run in such pairs, too."""
import os

from harness import links, tap, verbs
from harness.arch import ARCHES
from harness.check import expect
from harness.devices import InfinibandCard, Nic, RoceCard
from harness.lab import Lab, Machine

PROGRAMS = ('ib_send_bw', 'ib_write_bw', 'ib_read_bw')


def pair(card, link, arches=('amd64', 'arm64')):
    if not os.path.exists(ARCHES['arm64'].initramfs):
        raise tap.Skip('they are not built: make build ARCH=arm64')
    machines = [Machine(Nic('net'), card, arch=arch) for arch in arches]
    return Lab(machines, {'net': links.stream(), card.link: link})


def pass_traffic(both):
    """Each way, with checked data."""
    for guest, machine in zip(both.guests, ('x86_64', 'aarch64')):
        expect('machine', guest.run('uname -m').output.strip() == machine, guest.run('uname -a').output)
    for server, client in (both.guests, both.guests[::-1]):
        for service in ('rc', 'uc', 'ud', 'srq'):
            verbs.pingpong(server, client, '-c -e -n 100' if service != 'srq' else '-n 100', service)
        for program in PROGRAMS:
            verbs.bandwidth(server, client, program, 65536, 50)
        verbs.perftest(server, client, 'ib_atomic_lat', '-n 50')


def test_infiniband():
    with pair(InfinibandCard('cable'), links.unix_cable()) as both:
        pass_traffic(both)


def test_roce_cable():
    with pair(RoceCard('lan'), links.unix_cable()) as both:
        pass_traffic(both)


def test_roce_netdev():
    with pair(RoceCard('lan'), links.stream()) as both:
        pass_traffic(both)


def test_two_of_them():
    with pair(RoceCard('lan'), links.unix_cable(), ('arm64', 'arm64')) as both:
        verbs.pingpong(both.a, both.b, '-c -e -n 100')


if __name__ == '__main__':
    tap.main()
