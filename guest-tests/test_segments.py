#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""RoCE cards joined in the ways that rdma-hca.rst shows: two and three guests by streams, datagrams, sockets and a hub, and
by taps on a bridge, in a network of this program's own."""
import ctypes
import os
import subprocess

from harness import accelerator, lan, pair, paths, tap, verbs
from harness.guest import Guest, GuestError

STREAM = 'stream,id=lan,server={end},addr.type=unix,addr.path=segment'
TCP = 'stream,id=lan,server={end},addr.type=inet,addr.host=127.0.0.1,addr.port={port}'
AGAIN = ',reconnect-ms=100'
DATAGRAM = 'dgram,id=lan,local.type=unix,local.path={near},remote.type=unix,remote.path={far}'
UDP = 'dgram,id=lan,local.type=inet,local.host=127.0.0.1,local.port={near},' \
      'remote.type=inet,remote.host=127.0.0.1,remote.port={far}'
HUB = ['stream,id=c1,server=on,addr.type=unix,addr.path=port1', 'stream,id=c2,server=on,addr.type=unix,addr.path=port2',
       'hubport,id=p1,hubid=0,netdev=c1', 'hubport,id=p2,hubid=0,netdev=c2', 'hubport,id=lan,hubid=0']
TAP = 'tap,id=lan,ifname=tap{number},script=no,downscript=no'
BRIDGE = '10.0.1.100'


class Segment(pair.Pair):
    """Guests with nothing but a RoCE card each. netdevs: the -netdev options of each guest."""

    def __init__(self, *netdevs):
        self.folder = os.path.join(paths.RUN, f'segment-{os.getpid()}-{next(pair._numbers)}')
        self.guests = []
        for number, options in enumerate(netdevs, 1):
            arguments = [word for option in options for word in ('-netdev', option)]
            arguments += ['-device', f'rdma-hca,id=hca0,link-layer=roce,netdev=lan,mac=52:54:00:00:01:0{number}']
            guest = Guest(f'guest{number}', self.folder, number=number, cpus=1, arguments=arguments,
                          accelerator=accelerator.choose())
            guest.device = pair.DEVICE
            self.guests.append(guest)
        pair._pairs.append(self)

    def configure(self):
        for guest in self.guests:
            lan.set_up_interface(guest)
            pair.wait_port(guest, 'ACTIVE')


def talk(server, client):
    """The interface, the connection manager, and validated messages."""
    where = lan.address(server)
    client.run(f'ping -c 3 -i 0.2 {where}')
    lan.connected(server, client, 'rping', '-s -a {server} -C 20 -V', '-c -a {server} -C 20 -V')
    port = verbs.new_port()
    serving, asking = [f'exec ibv_rc_pingpong -d {pair.DEVICE} -c -n 50 -p {port} -g {lan.gid_index(guest)}'
                       for guest in (server, client)]
    command = server.spawn(serving)
    verbs.wait_listening(command, port)
    for output in verbs.finish([client.spawn(f'{asking} {where}'), command]):
        if 'invalid data' in output or 'iters in' not in output:
            raise GuestError(f'ibv_rc_pingpong went wrong:\n{output}')


def try_out(*netdevs):
    """Each speaks to the next, and the last to the first."""
    with Segment(*netdevs) as segment:
        guests = segment.guests
        for number in range(1, len(guests)):
            talk(guests[number - 1], guests[number])
        if len(guests) > 2:
            talk(guests[-1], guests[0])


def test_stream():
    try_out([STREAM.format(end='on')], [STREAM.format(end='off') + AGAIN])


def test_stream_over_tcp():
    port = pair.free_port()
    try_out([TCP.format(end='on', port=port)], [TCP.format(end='off', port=port) + AGAIN])


def test_datagrams():
    try_out([DATAGRAM.format(near='a', far='b')], [DATAGRAM.format(near='b', far='a')])


def test_datagrams_over_udp():
    near, far = pair.free_port(), pair.free_port()
    try_out([UDP.format(near=near, far=far)], [UDP.format(near=far, far=near)])


def test_socket():
    port = pair.free_port()
    try_out([f'socket,id=lan,listen=127.0.0.1:{port}'], [f'socket,id=lan,connect=127.0.0.1:{port}'])


def test_three_on_a_hub():
    try_out(HUB, *[[f'stream,id=lan,server=off,addr.type=unix,addr.path=port{number}{AGAIN}'] for number in (1, 2)])


CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000


def leave_the_network():
    """This process and its children have a network of their own from now on."""
    root, user, group = os.geteuid() == 0, os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET if root else CLONE_NEWNET | CLONE_NEWUSER):
        raise tap.Skip(f'no network namespace: {os.strerror(ctypes.get_errno())}')
    if not root:
        for name, text in (('setgroups', 'deny'), ('uid_map', f'0 {user} 1'), ('gid_map', f'0 {group} 1')):
            with open(f'/proc/self/{name}', 'w') as file:
                file.write(text)


# The last one: those above need the host's own loopback.
def test_taps_on_a_bridge():
    if not os.path.exists('/dev/net/tun'):
        raise tap.Skip('there is no /dev/net/tun')
    leave_the_network()
    script = f'ip link add br0 type bridge && ip address add {BRIDGE}/24 dev br0 && ip link set br0 up'
    for number in (1, 2):
        script += f' && ip tuntap add tap{number} mode tap && ip link set tap{number} master br0 up'
    subprocess.run(script, shell=True, check=True)
    with Segment(*[[TAP.format(number=number)] for number in (1, 2)]) as segment:
        for guest in segment.guests:
            guest.run(f'ping -c 3 -i 0.2 {BRIDGE}')  # the host
        talk(*segment.guests)


if __name__ == '__main__':
    tap.main()
