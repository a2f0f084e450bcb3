#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Our card and a stranger, Linux's Soft-RoCE, on one Ethernet segment: each is server and client of every program, over
a good cable and over one that loses packets."""
import contextlib

from harness import captures, cm, faults, resources, tap, verbs
from harness.devices import RoceCard, SoftRoce
from harness.guest import GuestError
from harness.labs import kept, roce

# RDMA Reads and atomics that a QP may have on their way: perftest asks for what its own device can, which is 128 with
# Soft-RoCE, and the peer cannot.
DEPTH = '-o 16'
BANDWIDTH = ['ib_send_bw', 'ib_write_bw', f'ib_read_bw {DEPTH}']
LATENCY = ['ib_send_lat', 'ib_write_lat', f'ib_read_lat {DEPTH}']
ATOMIC = [f'ib_atomic_{what} -A {how} {DEPTH}' for what in ('bw', 'lat') for how in ('FETCH_AND_ADD', 'CMP_AND_SWAP')]
# Each way, between the card and all else: the card loses what it sends, and what comes to it.
LOSS = [{'action': 'drop', 'direction': 'both', 'probability': 0.01}]


def mixed(**options):
    """Our card, with these options, and Soft-RoCE."""
    return roce(RoceCard('lan', **options), SoftRoce('lan'))


def directions():
    both = kept(mixed)
    return (both.a, both.b), (both.b, both.a)


# The path MTU by version of IP; in the long form ping-pongs have each with each.
MTUS = {4: 1024, 6: 4096}


def pingpongs(version):
    """With data that are checked."""
    for server, client in directions():
        for mtu in MTUS.values() if tap.LONG else [MTUS[version]]:
            for service in ('rc', 'uc'):
                verbs.pingpong(server, client, f'-s {3 * mtu + 1} -n 50 -m {mtu}', service, version)
            verbs.pingpong(server, client, f'-s {mtu} -n 50', 'ud', version)


def programs(names, options, version=None):
    """Each way; if no version of IP is given, each way by another one, and in the long form by both."""
    for way, its_own in zip(directions(), MTUS):
        for used in [version] if version else MTUS if tap.LONG else [its_own]:
            for name in names:
                verbs.perftest(*way, name, f'-m {MTUS[used]} {options}', used)


@contextlib.contextmanager
def losses(plan):
    """What goes on inside loses packets in both directions, and some are sent again by each side."""
    both = kept(mixed)
    before = faults.counted(both)
    with faults.planned(both.guests, plan):
        yield
    change = faults.moved(both, before)
    for name in 'fault tx_drop', 'fault rx_drop', 'requester retransmissions', 'responder duplicates':
        print(f'# {name}: {change[name]}')
        if not change[name]:
            raise GuestError(f'none were counted: {name}')


def test_pingpongs_ipv4():
    pingpongs(4)


def test_pingpongs_ipv6():
    pingpongs(6)


def test_bandwidth():
    programs(BANDWIDTH, '-s 65536 -n 50')


@tap.only_long
def test_latency():
    programs(LATENCY, '-s 64 -n 100')


def test_atomics():
    for version in MTUS:
        programs(ATOMIC[version // 4::2], '-n 100', version)


def test_unreliable_bandwidth():
    programs([f'ib_send_bw -c {service}' for service in ('UC', 'UD')] + ['ib_write_bw -c UC'], '-s 1000 -n 100')


@tap.only_long
def test_unreliable_latency():
    programs(['ib_send_lat -c UD', 'ib_write_lat -c UC'], '-s 1000 -n 50')


def rping(server, client, version):
    options = '-V -C 20 -S 4096 -v'
    for output in cm.connected(server, client, 'rping', f'-s -a {{server}} {options}', f'-c -a {{server}} {options}', version):
        if 'mismatch' in output or 'error' in output.lower():
            raise GuestError(f'rping:\n{output}')


def test_rping():
    for server, client in directions():
        for version in (4, 6):
            rping(server, client, version)


@tap.only_long
def test_pingpongs_over_loss():
    with losses(LOSS):
        for server, client in directions():
            for version, mtu in MTUS.items():
                faults.set_faults(kept(mixed).guests, faults.ending(LOSS, 12))
                verbs.pingpong(server, client, f'-s 16384 -n 150 -m {mtu}', version=version)


def test_bandwidth_over_loss():
    with losses(LOSS):
        programs(BANDWIDTH, '-s 32768 -n 50')


@tap.only_long
def test_latency_over_loss():
    with losses(LOSS):
        programs(LATENCY, '-s 20000 -n 100', 6)


def test_atomics_over_loss():
    with losses(LOSS):
        programs(ATOMIC[1::2], '-n 200', 4)


def test_rping_over_loss():
    """The messages of the connection manager are lost as well."""
    both = kept(mixed)
    before = faults.counted(both)
    for (server, client), its_own in zip(directions(), MTUS):
        for version in MTUS if tap.LONG else [its_own]:
            with faults.planned(both.guests, faults.ending([{**LOSS[0], 'probability': 0.03}], 3)):
                rping(server, client, version)
    if not faults.moved(both, before)['fault rx_drop']:
        raise GuestError('nothing was lost')


def test_unreliable_over_loss():
    """What does not count messages at the receiver: UC and UD do not repeat what was lost."""
    both = kept(mixed)
    before = faults.counted(both)
    with faults.planned(both.guests, LOSS):
        programs(['ib_write_bw -c UC'], '-s 65536 -n 50', 4)
    change = faults.moved(both, before)
    if not change['fault tx_drop'] or not change['fault rx_drop']:
        raise GuestError('nothing was lost')


def test_capture():
    """What the card captures of all this is as the standards have it, also what the stranger sent."""
    with mixed(properties={'fault-seed': 1}, capture=True) as both:
        for (version, mtu), (server, client) in zip(MTUS.items(), ((both.a, both.b), (both.b, both.a))):
            for service in ('uc', 'ud'):
                verbs.pingpong(server, client, '-s 1000 -n 10', service, version)
            with faults.planned(both.guests, faults.ending(LOSS, 3)):
                verbs.pingpong(server, client, f'-s 8191 -n 30 -m {mtu}', version=version)
            with faults.planned(both.guests, LOSS):
                for name in f'ib_read_bw -s 8191 {DEPTH}', ATOMIC[1]:
                    verbs.perftest(server, client, name, f'-m {mtu} -n 10', version)
            rping(server, client, version)
        counters = resources.counters(both.a, 'cumulative')
        both.a.stop()
        captures.check(both.a.card.captured)
        captures.check_comments(both.a.card.captured, counters, ['drop'])


def test_marked_by_a_queue():
    """The queue of the stranger's interface finds that some of its packets meet congestion: the card notifies it."""
    both = kept(mixed)
    for version in (4, 6):
        before = faults.counted(both)
        both.b.run(f'tc qdisc replace dev {both.b.card.interface} root netem loss 5% ecn')
        try:
            # Soft-RoCE leaves the ECN bits as the traffic class has them, and 2 is what may be marked.
            verbs.perftest(both.a, both.b, 'ib_write_bw', '-s 65536 -n 50 -m 1024 --tclass=2', version)
        finally:
            both.b.run(f'tc qdisc delete dev {both.b.card.interface} root')
        change = faults.moved(both, before)
        marked, notified = change['responder ecn_marked_rx'], change['responder cnp_tx']
        print(f'# {marked} marked, {notified} notifications')
        if not 0 < notified <= marked:
            raise GuestError(f'{marked} packets marked, {notified} notifications sent')


if __name__ == '__main__':
    tap.main()
