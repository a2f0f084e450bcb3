# SPDX-License-Identifier: GPL-2.0-or-later
"""What joins the devices of machines: cables of InfiniBand cards, Ethernet segments. A new kind is a function or class here."""
import collections
import os
import socket
import subprocess

from . import paths

# What a device is plugged into: QEMU's ID of it, and the device's property that takes this.
Backend = collections.namedtuple('Backend', 'id property')


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
        """The backend of the number-th device (from 0), and the arguments that make it."""
        backend = Backend(f'{name}{number}', 'cable' if self.ends[number][0] == '-object' else 'netdev')
        return backend, [argument.format(id=backend.id, name=name) for argument in self.ends[number]]

    def start(self, folder):
        """Before the machines start; for what is outside of them. folder: where they run, and sockets are files."""

    def stop(self):
        """After they have stopped."""


def stream():
    """An Ethernet segment of two: a unix socket, the first listens. The second connects again when the first was away."""
    where = 'stream,id={id},addr.type=unix,addr.path={name}'
    return Link(['-netdev', f'{where},server=on'], ['-netdev', f'{where},server=off,reconnect-ms=100'])


def _cable(where, **options):
    """options: more of the cables' properties, with _ for -."""
    more = ''.join(f',{name.replace("_", "-")}={value}' for name, value in options.items())
    options = f'rdma-hca-cable,id={{id}},{where},reconnect-ms=100{more}'
    return Link(['-object', f'{options},server=on'], ['-object', f'{options},server=off'])


def unix_cable(**options):
    return _cable('type=unix,path={name}', **options)


def turned(link):
    """The second machine's end listens."""
    return Link(*reversed(link.ends))


def turned_cable(**options):
    return turned(unix_cable(**options))


def tcp_cable(**options):
    return _cable(f'type=inet,host=127.0.0.1,port={free_port()}', **options)


# TLS: the credentials of both ends are in a folder beside the sockets.
TLS_FOLDER = 'tls'


def make_credentials(folder):
    subprocess.run([paths.MAKE_CREDENTIALS, os.path.join(folder, TLS_FOLDER)], check=True)


def with_tls(kind, endpoint, arguments):
    """The arguments of a cable's end, with credentials of a kind: x509 or psk. endpoint: server or client."""
    option, cable = arguments
    return [option, f'tls-creds-{kind},id={{id}}tls,dir={TLS_FOLDER},endpoint={endpoint}', option, f'{cable},tls-creds={{id}}tls']


class _TlsCable(Link):
    def __init__(self):
        plain = _cable(f'type=inet,host=localhost,port={free_port()}')
        super().__init__(*(with_tls('x509', *end) for end in zip(('server', 'client'), plain.ends)))

    def start(self, folder):
        make_credentials(folder)


def tls_cable():
    return _TlsCable()


def cable_to_netdev():
    """A RoCE card's cable that speaks as QEMU's -netdev stream does, and such a netdev, which listens."""
    return Link(['-netdev', 'stream,id={id},addr.type=unix,addr.path={name},server=on'],
                ['-object', 'rdma-hca-cable,id={id},type=unix,path={name},reconnect-ms=100,protocol=netdev'])


def hub(number):
    """An Ethernet segment of number machines: a hub in the first one's QEMU, and a unix socket to each of the others."""
    first = ['-netdev', 'hubport,id={id},hubid=0']
    for port in range(1, number):
        first += ['-netdev', f'stream,id={{id}}port{port},addr.type=unix,addr.path={{name}}{port},server=on',
                  '-netdev', f'hubport,id={{id}}hub{port},hubid=0,netdev={{id}}port{port}']
    return Link(first, *[['-netdev', f'stream,id={{id}},addr.type=unix,addr.path={{name}}{port},server=off,reconnect-ms=100']
                         for port in range(1, number)])
