# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests on one Ethernet segment that speak RoCEv2: by our card, or by Linux's Soft-RoCE over a virtio network card."""
import ipaddress
import os
import time

from . import accelerator, pair, paths, verbs
from .guest import Guest, GuestError

# What a guest speaks RoCEv2 with: the RDMA device's name, and the machine's part of it.
CARDS = {
    'hca': ('rdma_hca0', 'rdma-hca,id=hca0,link-layer=roce,netdev=lan,iothread=io0,mac={mac}{options}'),
    'rxe': ('rxe0', 'virtio-net-pci,netdev=lan,mac={mac},romfile=,disable-legacy=on,host_mtu=9000'),
}
MTU = 4500  # so that an RDMA MTU of 4096 fits


def address(guest, version=4):
    """Of the interface that RDMA goes through."""
    return f'10.0.1.{guest.number}' if version == 4 else f'fd00:1::{guest.number}'


class Lan(pair.Pair):
    """Two guests; cards: what each has, 'hca' or 'rxe'. The guests' other Ethernet, as in a Pair, is for what programs say
    to each other first. options: of the cards, each after a comma. rxe_beside: Soft-RoCE on that other Ethernet, too."""

    def __init__(self, cards=('hca', 'hca'), cpus=1, mtu=MTU, options=('', ''), disks=(), append='', rxe_beside=False):
        self.cards, self.mtu, self.cable, self.driver = cards, mtu, 'roce', True
        self.rxe_beside = rxe_beside
        self.folder = os.path.join(paths.RUN, f'lan-{os.getpid()}-{next(pair._numbers)}')
        self.guests = []
        for number, card in enumerate(cards, 1):
            arguments = []
            for name, mac in (('net', 0), ('lan', 1)):
                end = 'server=on' if number == 1 else 'server=off,reconnect-ms=100'
                arguments += ['-netdev', f'stream,id={name},addr.type=unix,addr.path={name},{end}']
            arguments += ['-device', f'virtio-net-pci,netdev=net,mac=52:54:00:00:00:0{number},romfile=,disable-legacy=on,'
                                     'host_mtu=9000',
                          '-object', 'iothread,id=io0',
                          '-device', CARDS[card][1].format(mac=f'52:54:00:00:01:0{number}', options=options[number - 1])]
            guest = Guest(f'guest{number}', self.folder, number=number, cpus=cpus, arguments=arguments,
                          accelerator=accelerator.choose(), disks=disks, append=append)
            guest.card, guest.device = card, CARDS[card][0]
            self.guests.append(guest)
        self.a, self.b = self.guests
        pair._pairs.append(self)

    def configure(self):
        """After a start: interfaces, addresses, Soft-RoCE."""
        for guest in self.guests:
            set_up_interface(guest, self.mtu)
            if guest.card == 'rxe':
                add_rxe(guest, guest.interface)
            if self.rxe_beside:
                add_rxe(guest, 'eth0')
        self.wait_active()

    def wait_active(self, timeout=20):
        for guest in self.guests:
            pair.wait_port(guest, 'ACTIVE', timeout)
            for version in (4, 6):
                gid_index(guest, version, timeout)


def set_up_interface(guest, mtu=MTU):
    guest.interface = interface(guest)
    # As long as Linux makes sure that nobody else has its link-local address (it takes a second or two), the RDMA core
    # finds no neighbours by IPv6.
    guest.run(f'for name in default {guest.interface}; do echo 0 >/proc/sys/net/ipv6/conf/$name/accept_dad; done; '
              f'ip link set {guest.interface} mtu {mtu} up; '
              f'ip address add {address(guest)}/24 dev {guest.interface}; '
              f'ip address add {address(guest, 6)}/64 dev {guest.interface}')


def interface(guest):
    """The network interface whose MAC is that of the segment."""
    script = f'grep -l 52:54:00:00:01:0{guest.number} /sys/class/net/*/address'
    return guest.run(script).output.split('/')[4]


def add_rxe(guest, interface):
    # Soft-RoCE wants a CRC-32; under TCG the generic one is the fastest.
    guest.run(f'modprobe -a crc32_generic rdma_rxe && rdma link add rxe0 type rxe netdev {interface}')


def counters(guest):
    """What the card has counted of its Ethernet function (ethtool -S), by name."""
    lines = guest.run(f'ethtool -S {guest.interface}').output.splitlines()[1:]
    return {name.strip(): int(value) for name, value in (line.split(':') for line in lines)}


def gid_index(guest, version=4, timeout=20):
    """The index of the RoCEv2 GID that is the guest's address on the segment."""
    return gid_index_of(guest, guest.device, address(guest, version), timeout)


def gid_index_of(guest, device, ip, timeout=20):
    """The index of a device's RoCEv2 GID for an IP address."""
    ip = ipaddress.ip_address(ip)
    text = (ip if ip.version == 6 else ipaddress.ip_address(f'::ffff:{ip}')).exploded
    script = (f'cd /sys/class/infiniband/{device}/ports/1/gids && for index in $(grep -l {text} *); do '
              'grep -q v2 ../gid_attrs/types/$index && echo $index; done')
    deadline = time.monotonic() + timeout
    while True:
        found = guest.run(script, check=False).output.split()
        if found:
            return int(found[0])
        if time.monotonic() > deadline:
            raise GuestError(f'{guest.name}: {device} has no RoCEv2 GID for {ip} after {timeout} s')
        time.sleep(0.1)


def start(server, client, program, version=4, gid_option='-x', options='', port=None):
    """Start a verbs program with each side's device and GID; give both commands, the client's first. gid_option: how the
    program takes the GID's index (ibv_*_pingpong: -g, perftest: -x)."""
    port = port or verbs.new_port()
    script = [f'{program} -d {guest.device} {gid_option} {gid_index(guest, version)} -p {port} {options}'
              for guest in (server, client)]
    serving = server.spawn(f'exec {script[0]}')
    verbs.wait_listening(serving, port)
    return client.spawn(f'exec {script[1]} {verbs.address(server)}'), serving


_kept = {}


def kept(cards=('hca', 'hca'), **options):
    """A running segment that tests share."""
    key = (cards, tuple(sorted(options.items())))
    if _kept.get(key) not in pair.running():  # not started yet, or stopped after a test that failed
        stop_kept()
        _kept[key] = Lan(cards, **options).start()
    return _kept[key]


def stop_kept():
    for segment in _kept.values():
        segment.stop()
    _kept.clear()


def pingpong(server, client, service, version=4, options='', timeout=90):
    """ibv_<service>_pingpong, each side checking what it received."""
    for output in verbs.finish(start(server, client, f'ibv_{service}_pingpong -c', version, '-g', options), timeout):
        if 'invalid data' in output or 'iters in' not in output:
            raise GuestError(f'ibv_{service}_pingpong went wrong:\n{output}')


def perftest(server, client, program, version=4, options='', timeout=120):
    """Run a perftest program; give the rows of the client's table."""
    return verbs.calibrated(lambda: verbs.finish(
        start(server, client, f'{program} -F', version, '-x', options), timeout)[0])


def listeners(guest):
    """What listens in the guest by the connection manager."""
    return {line for line in guest.run('rdma resource show cm_id').output.splitlines() if 'state LISTEN' in line}


def listen(server, script, timeout=30):
    """Start a server that listens by the connection manager, and wait until it does."""
    before = listeners(server)
    serving = server.spawn(f'exec {script}')
    deadline = time.monotonic() + timeout
    while not listeners(server) - before:
        if not serving.running or time.monotonic() > deadline:
            raise GuestError(f'{server.name}: the server does not listen: {script}\n{serving.output}')
        time.sleep(0.05)
    return serving


def connected(server, client, program, listening, connecting, version=4, timeout=90, client_program=None):
    """Start a program of librdmacm, which finds the peer by its address; give the outputs, the client's first. listening,
    connecting: its options, with {server} for the server's address; client_program: if the client's is another one."""
    where = address(server, version)
    serving = listen(server, f'{program} {listening.format(server=where)}')
    result = client.run(f'exec {client_program or program} {connecting.format(server=where)}', timeout, check=False)
    if result.status != 0:
        raise GuestError(f'{result}\n{server.name}: {serving.output}')
    return result.output, serving.wait(timeout).output
