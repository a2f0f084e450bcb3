# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of Ethernet interfaces: those of RoCE cards, and of the virtio network card that is under Soft-RoCE. The bytes of a
row of TCP are the interface's MTU."""
import json
import re

from harness import verbs
from harness.guest import GuestError

from .figures import Figures

PORT = 5201
PING_SIZE = 56
# The end of a row's name, and options of iperf3, which sends to the first guest.
CASES = [('', ''), (', back', '-R'), (', 4 streams', '-P 4')]
MB = 1 << 20


def interface(device):
    return getattr(device, 'interface', 'eth0')


def tcp_rate(field, name, options, seconds):
    both = field.both
    server = both.a.spawn(f'exec iperf3 -s -1 -p {PORT}')
    verbs.wait_listening(server, PORT)
    address = field.device(both.a, name).address()
    client = both.b.spawn(f'exec iperf3 -J -c {address} -p {PORT} -t {seconds} {options}')
    try:
        report = json.loads(verbs.finish([client, server])[0])
        return report['end']['sum_received']['bits_per_second'] / 8 / MB
    except (ValueError, KeyError) as error:
        raise GuestError(f'iperf3 reported no rate:\n{client.output}') from error
    finally:
        for command in client, server:
            if command.running:
                command.kill()


def tcp(field, turns, plan):
    for mtu in plan.mtus:
        for guest in field.both.guests:
            for name in field.ethernet():
                guest.run(f'ip link set {interface(field.device(guest, name))} mtu {mtu}')
        for end, options in CASES:
            def measure(name):
                return tcp_rate(field, name, options, plan.tcp_seconds)

            what = f'TCP bandwidth{end}'
            yield Figures(what, mtu, 'MB/s', turns.median(f'{what}, MTU {mtu}', field.ethernet(), measure, plan.rounds))


def ping_rate(field, name, seconds):
    both = field.both
    output = both.b.run(f'ping -f -q -s {PING_SIZE} -w {seconds} {field.device(both.a, name).address()}').output
    answers = re.search(r'(\d+) received.* time (\d+)ms', output)
    if not answers or not int(answers[1]):
        raise GuestError(f'no answers:\n{output}')
    return int(answers[1]) * 1000 / int(answers[2])


def ping(field, turns, plan):
    """As fast as the answers come (ping -f)."""
    def measure(name):
        return ping_rate(field, name, plan.ping_seconds)

    what = 'ping rate'
    yield Figures(what, PING_SIZE, '/s', turns.median(what, field.ethernet(), measure, plan.rounds))
