#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Raw packet QPs and flow rules: programs/raw-test.c on one card, between two, and perftest's programs; the interface, which
has the same cable, goes on."""
import re

from harness import resources, tap, verbs
from harness.guest import GuestError
from harness.labs import kept, roce

CASES = ('self', 'priority', 'tags', 'sniffer', 'refused_rules', 'all_rules', 'left_behind', 'unprivileged', 'errors')


def run(case):
    guest = kept(roce).a
    before = resources.in_use(guest)
    for line in guest.run(f'exec raw-test {case}', timeout=120).output.splitlines():
        print(f'# {line}')
    resources.wait_for(guest, before)


def ping(one, other):
    output = one.run(f'ping -c 20 -i 0.02 -q -W 5 {other.card.address()}').output
    if ' 0% packet loss' not in output:
        raise GuestError(f'ping:\n{output}')


def mac(guest):
    return guest.run(f'cat /sys/class/net/{guest.card.interface}/address').output.strip()


def unreachable(guest):
    """Datagrams that came by the interface to a port that nobody has."""
    names, values = re.findall(r'^Udp: (.*)$', guest.run('cat /proc/net/snmp').output, re.M)
    return int(dict(zip(names.split(), values.split()))['NoPorts'])


def test_between_guests():
    """What matches comes to the QP, in order; what does not comes to the interface."""
    both = kept(roce)
    to = f'{mac(both.b)} {both.b.card.address()}'
    ping(both.a, both.b)
    receiving = both.b.spawn('exec raw-test receive 5000 2000')
    receiving.wait_output('ready')
    old = unreachable(both.b)
    both.a.run(f'exec raw-test send {to} 5000 1000')
    ping(both.a, both.b)
    both.a.run(f'exec raw-test send {to} 5001 100')
    if unreachable(both.b) != old + 100:
        raise GuestError(f'{unreachable(both.b) - old} of 100 datagrams came to the interface')
    ping(both.b, both.a)
    receiving.kill()
    receiving = both.b.spawn('exec raw-test receive 5000 1000')
    receiving.wait_output('ready')
    both.a.run(f'exec raw-test send {to} 5000 1000')
    verbs.finish([receiving])


def test_sniffer_sees_rdma():
    """All packets of both sides, and what the interface sends and gets, while both go on."""
    both = kept(roce)
    sniffing = both.b.spawn('exec raw-test sniff /tmp/sniffed')
    sniffing.wait_output('ready')
    verbs.pingpong(both.a, both.b, '-s 1000 -n 100 -c')
    ping(both.a, both.b)
    both.b.run('touch /tmp/sniffed')
    output = verbs.finish([sniffing])[0]
    print(f'# {output.splitlines()[-1]}')
    counts = [int(n) for n in re.findall(r'\d+', output.splitlines()[-1])]
    if counts[0] < 200 or counts[1] < 200 or counts[2] < 20 or counts[3] < 20:
        raise GuestError(f'too little was seen: {output}')


def test_perftest():
    """Its programs for raw Ethernet, which need no connection: the server is there first."""
    both = kept(roce)
    addresses = mac(both.a), mac(both.b)
    for program, options in (('raw_ethernet_bw', '-s 1000 -n 1000'), ('raw_ethernet_lat', '-s 200 -n 200')):
        device = both.b.run('ls /sys/class/infiniband').output.split()[0]
        server = both.a.spawn(f'exec {program} -d {device} --server -B {addresses[0]} -E {addresses[1]} {options}')
        both.b.run('sleep 3')
        client = both.b.spawn(f'exec {program} -d {device} --client -B {addresses[1]} -E {addresses[0]} {options}')
        for output in verbs.finish([client, server]):
            print(f'# {output.splitlines()[-2]}')


def case(name):
    return lambda: run(name)


if __name__ == '__main__':
    globals().update({f'test_{name}': case(name) for name in CASES})
    tap.main()
