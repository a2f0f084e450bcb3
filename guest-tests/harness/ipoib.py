# SPDX-License-Identifier: GPL-2.0-or-later
"""IP over InfiniBand: the interfaces of managed cards (devices.py), and what they carry."""
import contextlib
import re

from . import quota, verbs, wait
from .check import expect

DATAGRAM_MTU = 2044  # what a group with an MTU of 2048 leaves
CONNECTED_MTU = 65520
LATER = 3  # echoes


def set_mode(lab, mode, mtu):
    for guest in lab.guests:
        name = guest.card.interface
        guest.run(f'echo {mode} >/sys/class/net/{name}/mode && ip link set {name} mtu {mtu}')
    lab.wait_active()


@contextlib.contextmanager
def connected_mode(lab):
    set_mode(lab, 'connected', CONNECTED_MTU)
    yield
    set_mode(lab, 'datagram', DATAGRAM_MTU)


def forget_neighbours(lab):
    for guest in lab.guests:
        guest.run(f'ip neighbour flush dev {guest.card.interface}; ip -6 neighbour flush dev {guest.card.interface}')


def ping(guest, where, options='', count=5):
    """Each echo comes back. ping waits for the last one for two round trips, or an interval, and no longer; so there are some behind
    those that count."""
    output = guest.run(f'exec ping -c {count + LATER} -i 0.2 {options} {where}', check=False).output
    came = set(map(int, re.findall(r'bytes from .* icmp_seq=(\d+)', output)))
    expect('echoes', came >= set(range(1, count + 1)), output)


def ping_all(guest, where, answerers, options=''):
    """All of these addresses answer what goes to a group."""
    pinging = guest.spawn(f'exec ping -n -i 0.5 {options} {where}')
    for address in answerers:
        pinging.wait_output(rf'from {address}\b')
    pinging.end()


@contextlib.contextmanager
def carrying(server, client, version=4, mebibytes=4, percent=None):
    """By TCP, which gets so much of a processor; what has come, at the end, is what was sent."""
    port, family = verbs.new_port(), f'TCP{version}'
    where = server.card.address(version)
    client.run(f'dd if=/dev/urandom of=/tmp/sent bs=1M count={mebibytes} 2>/dev/null')
    serving = server.spawn(f'exec socat -u {family}-LISTEN:{port},reuseaddr CREATE:/tmp/received')
    verbs.wait_listening(serving, port)
    sending = client.spawn(quota.at(percent, f'exec socat -u OPEN:/tmp/sent {family}:{f"[{where}]" if version == 6 else where}:{port}'))
    yield sending
    verbs.finish([sending, serving])
    sums = [guest.run(f'md5sum </tmp/{name}; rm /tmp/{name}').output for guest, name in ((client, 'sent'), (server, 'received'))]
    expect('the same data', sums[0] == sums[1], *sums)


def carry(server, client, version=4, mebibytes=4):
    with carrying(server, client, version, mebibytes):
        pass


def multicast(receiver, sender, group):
    """A datagram to an IPv4 group arrives. As the receiver joins in its own time, more are sent until one does."""
    port = verbs.new_port()
    receiving = receiver.spawn(f'exec socat -u UDP4-RECVFROM:{port},ip-add-membership={group}:{receiver.card.address()} -')
    send = f'echo to all | socat -u - UDP4-DATAGRAM:{group}:{port},ip-multicast-if={sender.card.address()}'
    wait.until(lambda: sender.run(send) and not receiving.running, f'received: {receiver.name}: {group}', pause=0.5)
    expect('what was sent', receiving.wait().output == 'to all\n', receiving.output)


@contextlib.contextmanager
def child(guest, pkey):
    """Inside, an interface of another partition: its name."""
    parent = guest.card.interface
    name = f'{parent}.{pkey:04x}'
    guest.run(f'ip link add link {parent} name {name} type ipoib pkey {pkey:#x}')
    yield name
    guest.run(f'ip link delete {name}')


def has_carrier(guest, name):
    return guest.run(f'cat /sys/class/net/{name}/carrier 2>/dev/null', check=False).output.strip() == '1'
