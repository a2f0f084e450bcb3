#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Domains of libvirt, as docs/libvirt has them, validated and started. `make check-libvirt`: libvirt is not among what is installed for
the other tests."""
import contextlib
import os
import tempfile

from harness import paths, tap, verbs, wait
from harness.check import expect
from harness.errors import GuestError
from harness.libvirt import EXAMPLES, Domain, Session


@contextlib.contextmanager
def domains(example, *replaced, layers=()):
    """Two machines of an example, each with what it has in place of something there."""
    with tempfile.TemporaryDirectory(prefix='rdma-hca-') as folder, contextlib.ExitStack() as ends:
        session = Session(folder)
        ends.callback(session.stop)
        session.start()
        guests = [Domain(session, number, example, each, layers) for number, each in enumerate(replaced, 1)]
        for guest in guests:
            ends.callback(guest.stop)
            guest.start()
        for guest in guests:
            guest.wait_ready()
        yield session, guests


def wait_port(guest, state):
    wait.until(lambda: state in guest.run('cat /sys/class/infiniband/rdma_hca0/ports/1/state').output, f'{state}: {guest.name}', 60)


def pass_traffic(guests, options=''):
    """With checked data."""
    a, b = guests
    for guest in guests:
        wait_port(guest, 'ACTIVE')
    for program in (f'ibv_rc_pingpong -d rdma_hca0 -c -n 100 {options}', f'ibv_ud_pingpong -d rdma_hca0 -c -n 100 {options}'):
        serving = a.spawn(program)
        verbs.wait_listening(serving, verbs.PORT)
        for command in (b.spawn(f'{program} 10.1.0.1'), serving):
            output = command.wait(60).output
            expect('data', '100 iters' in output and 'invalid' not in output, output)


@tap.only_long
def test_infiniband():
    cable = {'path=/tmp/rdma-cable': 'path={folder}/cable'}
    with domains('infiniband.xml', cable, {**cable, 'server=on': 'reconnect-ms=100', 'lid=1': 'lid=2'}) as (_, guests):
        for guest in guests:
            guest.set_address()
        pass_traffic(guests)


@tap.only_long
def test_roce():
    lan = {'addr.path=/tmp/rdma-lan': 'addr.path={folder}/lan'}
    mac = '52:54:00:00:01:0'
    with domains('roce.xml', lan, {**lan, 'server=on': 'server=off,reconnect-ms=100', f'mac={mac}1': f'mac={mac}2'}) as (_, guests):
        for guest in guests:
            guest.set_address(f'{mac}{guest.number}')
        # Index 0 is a GID of the link-local address, the next one of the other.
        pass_traffic(guests, '-g 1')


@tap.only_long
def test_switch():
    port = {'path=/tmp/rdma-port1': 'path={folder}/port1'}
    other = {'path=/tmp/rdma-port1': 'path={folder}/port2', 'guid=0x525400fffe000001': 'guid=0x525400fffe000002'}
    with domains('switch.xml', port, other, layers=('apps',)) as (session, guests):
        switch = session.spawn([paths.SWITCH, f'unix-listen:{session.folder}/port1', f'unix-listen:{session.folder}/port2'])
        try:
            for guest in guests:
                guest.set_address()
                guest.run('modprobe ib_umad')
                wait_port(guest, 'INIT')
            manager = guests[0].spawn('exec opensm -f stdout')
            try:
                pass_traffic(guests)
            except GuestError as error:
                raise GuestError(f'{error}\nopensm: {manager.output}') from error
        finally:
            switch.terminate()
            switch.wait()


def test_files():
    """Each says what it is, and has the card."""
    for name in ('infiniband.xml', 'roce.xml', 'switch.xml'):
        with open(os.path.join(EXAMPLES, name)) as file:
            expect(name, "<qemu:arg value='rdma-hca," in file.read(), name)


if __name__ == '__main__':
    tap.main()
