#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Raw packet QPs and flow rules: programs/raw-test.c on one card, between two, and perftest's programs; the interface, which
has the same cable, goes on."""
import re

from harness import ethernet, resources, tap, verbs, wait
from harness.guest import GuestError
from harness.labs import kept, roce

CASES = ('self', 'priority', 'tags', 'sniffer', 'refused_rules', 'all_rules', 'left_behind', 'unprivileged', 'errors')


def run(case):
    resources.run(kept(roce).a, f'exec raw-test {case}')


def ping(one, other):
    echoes = ethernet.Echoes(one)
    one.run(f'ping -c 20 -i 0.02 -q -W 5 {other.card.address()}')
    echoes.wait(20)


def mac(guest):
    return guest.run(f'cat /sys/class/net/{guest.card.interface}/address').output.strip()


def unreachable(guest):
    """Datagrams that came by the interface to a port that nobody has."""
    return ethernet.counted(guest, 'Udp', 'NoPorts')


def test_between_guests():
    """What matches comes to the QP, in order; what does not comes to the interface. Nothing holds back who sends, so there are
    never more on the way than were posted (256)."""
    both = kept(roce)
    to = f'{mac(both.b)} {both.b.card.address()}'
    ping(both.a, both.b)
    receiving = both.b.spawn('exec raw-test receive 5000 1000')
    receiving.wait_output('ready')
    old = unreachable(both.b)
    for sent in range(0, 800, 200):
        both.a.run(f'exec raw-test send {to} 5000 {sent} 200')
        receiving.wait_output(f'{sent + 200} received')
    ping(both.a, both.b)
    both.a.run(f'exec raw-test send {to} 5001 0 100')
    wait.until(lambda: unreachable(both.b) >= old + 100, lambda: f'at the interface: {unreachable(both.b) - old} of 100 datagrams')
    ping(both.b, both.a)
    both.a.run(f'exec raw-test send {to} 5000 800 200')
    verbs.finish([receiving])
    if unreachable(both.b) != old + 100:
        raise GuestError(f'{unreachable(both.b) - old} datagrams came to the interface')
    # One that goes without a word.
    receiving = both.b.spawn('exec raw-test receive 5000 1000')
    receiving.wait_output('ready')
    receiving.kill()
    wait.until(lambda: resources.counters(both.b, 'instant')['port flow_rules'] == 0, 'free of the rule')


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


def processor_time(guest, program):
    """Of the only process of that name, in ticks (proc(5): utime)."""
    return int(guest.run(f'cat /proc/$(pidof {program})/stat').output.rsplit(')', 1)[1].split()[11])


def wait_polling(serving, program):
    """Wait until a server of perftest has posted its receives: behind the head of its table it does that, then it polls."""
    serving.wait_output('#bytes')
    begin = processor_time(serving.guest, program)
    wait.until(lambda: processor_time(serving.guest, program) >= begin + 20, 'polling')


def test_perftest():
    """Its programs for raw Ethernet. They do not speak before: the server is there first, and there are no more
    frames than are posted. Any frame counts as one of the peer's, so neighbours must have no reason to ask for each other."""
    both = kept(roce)
    device = both.a.card.name
    addresses = mac(both.a), mac(both.b)
    for guest in both.a, both.b:
        guest.run('ip neigh flush all')
    for program, options in (('raw_ethernet_bw', '-F -s 1000 -n 400 -r 512'), ('raw_ethernet_lat', '-F -s 200 -n 200')):
        server = both.a.spawn(f'exec {program} -d {device} --server -B {addresses[0]} -E {addresses[1]} {options}')
        wait_polling(server, program)
        client = both.b.spawn(f'exec {program} -d {device} --client -B {addresses[1]} -E {addresses[0]} {options}')
        for output in verbs.finish([client, server]):
            print(f'# {output.splitlines()[-2]}')


def case(name):
    return lambda: run(name)


if __name__ == '__main__':
    globals().update({f'test_{name}': case(name) for name in CASES})
    tap.main()
