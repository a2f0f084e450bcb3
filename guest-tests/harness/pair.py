# SPDX-License-Identifier: GPL-2.0-or-later
"""Two guests whose cards are cabled together, with an Ethernet between them for what programs say to each other first."""
import atexit
import itertools
import json
import os
import shutil
import socket
import time

from . import accelerator, paths
from .guest import Guest, GuestError

DEVICE = 'rdma_hca0'


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


class Pair:
    """Two guests, a and b. The cable is 'unix', 'tcp', or None for guests without cards. disks: as a Guest's.
    properties: more of the cards' properties. capture: write what passes the cable, see captured()."""

    def __init__(self, cable='unix', cpus=1, driver=True, append='', disks=(), properties=None, capture=False):
        self.cable, self.driver = cable, driver
        self.folder = os.path.join(paths.RUN, f'pair-{os.getpid()}-{next(_numbers)}')
        port = free_port() if cable == 'tcp' else None
        self.guests = []
        for number in (1, 2):
            listens = number == 1
            arguments = ['-netdev', f'stream,id=net0,addr.type=unix,addr.path=net,server={"on" if listens else "off"}'
                                    + ('' if listens else ',reconnect-ms=100'),
                         '-device', f'virtio-net-pci,netdev=net0,mac=52:54:00:00:00:0{number},romfile=,disable-legacy=on']
            if cable:
                where = 'type=unix,path=cable' if cable == 'unix' else \
                    f'type=inet,host=127.0.0.1,port={port}'
                # Two cards with the same faults are not to have the same chances.
                device = {'driver': 'rdma-hca', 'id': 'hca0', 'cable': 'cable0', 'iothread': 'io0', 'lid': number,
                          'fault-seed': number, **(properties or {})}
                if capture:
                    device['capture'] = f'guest{number}.pcapng'
                arguments += ['-object', 'iothread,id=io0',
                              '-object', f'rdma-hca-cable,id=cable0,{where},server={"on" if listens else "off"},'
                                         'reconnect-ms=100',
                              '-device', json.dumps(device)]
            self.guests.append(Guest(f'guest{number}', self.folder, number=number, cpus=cpus, arguments=arguments,
                                     accelerator=accelerator.choose(), disks=disks,
                                     append=append if driver else f'{append} guest.driver=0'))
            self.guests[-1].device = DEVICE
        self.a, self.b = self.guests
        _pairs.append(self)

    def start(self):
        for guest in self.guests:
            guest.start()
        for guest in self.guests:
            guest.wait_ready()
        self.configure()
        return self

    def configure(self):
        """After a start: until the cards can be used."""
        if self.cable and self.driver:
            self.wait_active()

    def wait_active(self, timeout=20):
        for guest in self.guests:
            wait_port(guest, 'ACTIVE', timeout)

    def captured(self, guest):
        """The path of what the guest's card has captured."""
        return os.path.join(self.folder, f'{guest.name}.pcapng')

    def stop(self, keep=False):
        """Switch both off. keep: leave their consoles and logs in the folder."""
        for guest in self.guests:
            guest.stop()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)
        if self in _pairs:
            _pairs.remove(self)

    def check(self):
        """Raise what a guest's kernel, or a QEMU, complained of."""
        trouble = self.trouble()
        if trouble:
            raise GuestError('a guest complains:\n' + '\n'.join(trouble))

    def trouble(self):
        return [line for guest in self.guests for line in guest.trouble()]

    def __enter__(self):
        return self.start()

    def __exit__(self, *exception):
        if not any(exception):
            self.check()
            self.stop()


def wait_port(guest, state, timeout=20):
    """Wait until the guest's port is in a state (ACTIVE, DOWN, ...)."""
    path = f'/sys/class/infiniband/{guest.device}/ports/1/state'
    deadline = time.monotonic() + timeout
    while True:
        found = guest.run(f'cat {path} 2>&1', check=False).output.strip()
        if found.endswith(': ' + state):
            return
        if time.monotonic() > deadline:
            raise GuestError(f'{guest.name}: after {timeout} s {path} has {found!r}, not {state}')
        time.sleep(0.1)


_pairs = []  # those that run
_numbers = itertools.count(1)
_kept = {}


def kept(**options):
    """A running pair that tests share; it is started when it is first asked for."""
    key = repr(sorted(options.items()))
    if key not in _kept:
        stop_kept()  # two guests at a time are enough for a small machine
        _kept[key] = Pair(**options).start()
    return _kept[key]


def stop_kept(keep=False):
    for pair in _kept.values():
        pair.stop(keep)
    _kept.clear()


def running():
    return list(_pairs)


@atexit.register
def stop_all(keep=False):
    for pair in running():
        pair.stop(keep)
