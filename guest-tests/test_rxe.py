#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Our card and a stranger, Linux's Soft-RoCE, on one Ethernet segment: each is server and client of every program, over
a good cable and over one that loses packets."""
import contextlib

from harness import captures, faults, lan, resources, tap
from harness.guest import GuestError

MIXED = ('hca', 'rxe')
# RDMA Reads and atomics that a QP may have on their way: perftest asks for what its own device can, which is 128 with
# Soft-RoCE, and the peer cannot.
DEPTH = '-o 16'
BANDWIDTH = ['ib_send_bw', 'ib_write_bw', f'ib_read_bw {DEPTH}']
LATENCY = ['ib_send_lat', 'ib_write_lat', f'ib_read_lat {DEPTH}']
ATOMIC = [f'ib_atomic_{what} -A {how} {DEPTH}' for what in ('bw', 'lat') for how in ('FETCH_AND_ADD', 'CMP_AND_SWAP')]
# Each way, between the card and all else: the card loses what it sends, and what comes to it.
LOSS = [{'action': 'drop', 'direction': 'both', 'probability': 0.01}]


def directions():
    segment = lan.kept(MIXED)
    return (segment.a, segment.b), (segment.b, segment.a)


def pingpongs(version):
    """With data that are checked, at both MTUs."""
    for server, client in directions():
        for mtu in (1024, 4096):
            for service in ('rc', 'uc'):
                lan.pingpong(server, client, service, version, f'-s {3 * mtu + 1} -n 50 -m {mtu}')
            lan.pingpong(server, client, 'ud', version, f'-s {mtu} -n 50')


# The program's path MTU by version of IP; the ping-pongs have them all.
MTUS = {4: 1024, 6: 4096}


def programs(version, names, options):
    for server, client in directions():
        for name in names:
            lan.perftest(server, client, name, version, f'-m {MTUS[version]} {options}')


@contextlib.contextmanager
def losses(plan):
    """What goes on inside loses packets in both directions, and some are sent again by each side."""
    both = lan.kept(MIXED)
    before = faults.counted(both)
    faults.set_faults(both, plan)
    try:
        yield
    finally:
        faults.set_faults(both, [])
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
    for version in MTUS:
        programs(version, BANDWIDTH, '-s 65536 -n 50')


def test_latency():
    for version in MTUS:
        programs(version, LATENCY, '-s 64 -n 100')


def test_atomics():
    for version in MTUS:
        programs(version, ATOMIC[version // 4::2], '-n 100')


def test_unreliable_bandwidth():
    for version in MTUS:
        programs(version, [f'ib_send_bw -c {service}' for service in ('UC', 'UD')] + ['ib_write_bw -c UC'],
                 '-s 1000 -n 100')


def test_unreliable_latency():
    for version in MTUS:
        programs(version, ['ib_send_lat -c UD', 'ib_write_lat -c UC'], '-s 1000 -n 50')


def rping(server, client, version):
    options = '-V -C 20 -S 4096 -v'
    for output in lan.connected(server, client, 'rping', f'-s -a {{server}} {options}', f'-c -a {{server}} {options}', version):
        if 'mismatch' in output or 'error' in output.lower():
            raise GuestError(f'rping:\n{output}')


def test_rping():
    for server, client in directions():
        for version in (4, 6):
            rping(server, client, version)


def test_pingpongs_over_loss():
    with losses(LOSS):
        for server, client in directions():
            for version, mtu in MTUS.items():
                faults.set_faults(lan.kept(MIXED), faults.ending(LOSS, 12))
                lan.pingpong(server, client, 'rc', version, f'-s 16384 -n 150 -m {mtu}')


def test_bandwidth_over_loss():
    with losses(LOSS):
        for version in MTUS:
            programs(version, BANDWIDTH, '-s 32768 -n 50')


def test_latency_over_loss():
    with losses(LOSS):
        programs(6, LATENCY, '-s 20000 -n 100')


def test_atomics_over_loss():
    with losses(LOSS):
        programs(4, ATOMIC[1::2], '-n 200')


def test_rping_over_loss():
    """The messages of the connection manager are lost as well."""
    both = lan.kept(MIXED)
    before = faults.counted(both)
    try:
        for server, client in directions():
            for version in (4, 6):
                faults.set_faults(both, faults.ending([{**LOSS[0], 'probability': 0.03}], 3))
                rping(server, client, version)
    finally:
        faults.set_faults(both, [])
    if not faults.moved(both, before)['fault rx_drop']:
        raise GuestError('nothing was lost')


def test_unreliable_over_loss():
    """What does not count messages at the receiver: UC and UD do not repeat what was lost."""
    both = lan.kept(MIXED)
    before = faults.counted(both)
    faults.set_faults(both, LOSS)
    try:
        programs(4, ['ib_write_bw -c UC'], '-s 65536 -n 50')
    finally:
        faults.set_faults(both, [])
    change = faults.moved(both, before)
    if not change['fault tx_drop'] or not change['fault rx_drop']:
        raise GuestError('nothing was lost')


def test_capture():
    """What the card captures of all this is as the standards have it, also what the stranger sent."""
    with lan.Lan(MIXED, options=(',fault-seed=1,capture=guest1.pcapng', '')) as both:
        for version, mtu in MTUS.items():
            for server, client in (both.a, both.b), (both.b, both.a):
                for service in ('uc', 'ud'):
                    lan.pingpong(server, client, service, version, '-s 1000 -n 10')
                faults.set_faults(both, faults.ending(LOSS, 3))
                lan.pingpong(server, client, 'rc', version, f'-s 8191 -n 30 -m {mtu}')
                faults.set_faults(both, LOSS)
                for name in f'ib_read_bw -s 8191 {DEPTH}', ATOMIC[1]:
                    lan.perftest(server, client, name, version, f'-m {mtu} -n 10')
                faults.set_faults(both, [])
                rping(server, client, version)
        counters = resources.counters(both.a, 'cumulative')
        both.a.stop()
        captures.check(both.captured(both.a))
        captures.check_comments(both.captured(both.a), counters, ['drop'])


def test_marked_by_a_queue():
    """The queue of the stranger's interface finds that some of its packets meet congestion: the card notifies it."""
    both = lan.kept(MIXED)
    for version in (4, 6):
        before = faults.counted(both)
        both.b.run(f'tc qdisc replace dev {both.b.interface} root netem loss 5% ecn')
        try:
            # Soft-RoCE leaves the ECN bits as the traffic class has them, and 2 is what may be marked.
            lan.perftest(both.a, both.b, 'ib_write_bw', version, '-s 65536 -n 50 -m 1024 --tclass=2')
        finally:
            both.b.run(f'tc qdisc delete dev {both.b.interface} root')
        change = faults.moved(both, before)
        marked, notified = change['responder ecn_marked_rx'], change['responder cnp_tx']
        print(f'# {marked} marked, {notified} notifications')
        if not 0 < notified <= marked:
            raise GuestError(f'{marked} packets marked, {notified} notifications sent')


if __name__ == '__main__':
    tap.main()
