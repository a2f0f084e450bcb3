#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""RoCE cards joined as the examples of rdma-hca.rst show: two and three guests by streams, datagrams, sockets and a hub, and
by taps on a bridge, in a network of this program's own."""
import ctypes
import os
import re
import subprocess

from harness import cm, examples, links, tap
from harness.examples import ExampleRoceCard
from harness.lab import Lab

PAGE = examples.Document('hw-rdma-hca/qemu/rdma-hca.rst')
STREAMS = PAGE.examples('-netdev stream,id=lan', '-device rdma-hca')


def with_netdev(netdev, number):
    """The number-th machine of a segment whose example says no more than the -netdev."""
    text = re.sub(r'-netdev \S+', lambda _: netdev, STREAMS[0])
    return re.sub(r'(mac=\S+:)\d+', rf'\g<1>{number:02}', text)


def lab(commands, **more):
    """commands: of each machine, as in an example."""
    return Lab([examples.machine(text, ExampleRoceCard()) for text in examples.apart(*commands)], more)


def try_out(*commands):
    """Each speaks to the next, and the last to the first."""
    with lab(commands) as segment:
        guests = segment.guests
        for number in range(1, len(guests)):
            cm.talk(guests[number - 1], guests[number])
        if len(guests) > 2:
            cm.talk(guests[-1], guests[0])


def try_netdevs(text):
    """text: a line for each machine."""
    try_out(*[with_netdev(line, number) for number, line in enumerate(text.splitlines(), 1)])


def test_stream():
    try_out(*STREAMS)


def test_stream_over_tcp():
    tcp = PAGE.inline('addr.type=inet,[^`]+')
    try_out(*[text.replace('addr.type=unix,addr.path=/tmp/segment', tcp) for text in STREAMS])


def test_cable_to_stream():
    try_out(STREAMS[0], PAGE.example('rdma-hca-cable', 'link-layer=roce'))


def test_datagrams():
    try_out(*PAGE.examples('-netdev dgram,id=lan,local.type=unix', '-device rdma-hca'))


def test_datagrams_over_udp():
    try_netdevs(PAGE.example('-netdev dgram,id=lan,local.type=inet'))


def test_socket():
    try_netdevs(PAGE.example('-netdev socket,id=lan,listen='))


def test_three_on_a_hub():
    hub = PAGE.example('-netdev hubport', '-device rdma-hca')
    ports = PAGE.example('-netdev stream,id=lan,server=off,', 'addr.path=/tmp/port1').splitlines()
    try_out(hub, *[with_netdev(line, number) for number, line in enumerate(ports, 2)])


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


class Bridge(links.Link):
    """A bridge of the host with a tap for each machine; script: what makes it."""

    def __init__(self, script):
        super().__init__()
        self.script = script

    def start(self, folder):
        subprocess.run(['bash', '-e', '-c', self.script], check=True)

    def stop(self):
        subprocess.run('ip -br link show master br0 | while read -r tap rest; do ip link delete $tap; done; '
                       'ip link delete br0', shell=True, check=False)


# The last one: those above need the host's own loopback.
def test_taps_on_a_bridge():
    if not os.path.exists('/dev/net/tun'):
        raise tap.Skip('there is no /dev/net/tun')
    leave_the_network()
    script, first = PAGE.example('ip link add br0'), PAGE.example('-netdev tap', '-device rdma-hca')
    host = re.search(r'ip addr add ([0-9.]+)/24 dev br0', script)[1]
    with lab([first, with_netdev(re.search(r'-netdev \S+', first)[0].replace('tap1', 'tap2'), 2)],
             bridge=Bridge(script)) as segment:
        for guest in segment.guests:
            guest.run(f'ping -c 3 -i 0.2 {host}')
        cm.talk(*segment.guests)


if __name__ == '__main__':
    tap.main()
