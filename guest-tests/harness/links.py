# SPDX-License-Identifier: GPL-2.0-or-later
"""What joins the devices of machines: cables of InfiniBand cards, Ethernet segments. A new kind is a function or class here."""
import socket


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


class Link:
    """ends: for each device, in the order in which they are plugged in, the arguments of QEMU that make its backend. In them
    {id} stands for the backend's ID and {name} for the link's name, as sockets of a lab are files in its folder."""

    def __init__(self, *ends):
        self.ends = ends

    def end(self, name, number):
        """The backend of the number-th device (from 0): its ID, and the arguments that make it."""
        backend = f'{name}{number}'
        return backend, [argument.format(id=backend, name=name) for argument in self.ends[number]]

    def start(self, folder):
        """Before the machines start; for what is outside of them. folder: where they run, and sockets are files."""

    def stop(self):
        """After they have stopped."""


def stream():
    """An Ethernet segment of two: a unix socket, the first listens. The second connects again when the first was away."""
    where = 'stream,id={id},addr.type=unix,addr.path={name}'
    return Link(['-netdev', f'{where},server=on'], ['-netdev', f'{where},server=off,reconnect-ms=100'])


def _cable(where):
    options = f'rdma-hca-cable,id={{id}},{where},reconnect-ms=100'
    return Link(['-object', f'{options},server=on'], ['-object', f'{options},server=off'])


def unix_cable():
    return _cable('type=unix,path={name}')


def tcp_cable():
    return _cable(f'type=inet,host=127.0.0.1,port={free_port()}')


def hub(number):
    """An Ethernet segment of number machines: a hub in the first one's QEMU, and a unix socket to each of the others."""
    first = ['-netdev', 'hubport,id={id},hubid=0']
    for port in range(1, number):
        first += ['-netdev', f'stream,id={{id}}port{port},addr.type=unix,addr.path={{name}}{port},server=on',
                  '-netdev', f'hubport,id={{id}}hub{port},hubid=0,netdev={{id}}port{port}']
    return Link(first, *[['-netdev', f'stream,id={{id}},addr.type=unix,addr.path={{name}}{port},server=off,reconnect-ms=100']
                         for port in range(1, number)])
