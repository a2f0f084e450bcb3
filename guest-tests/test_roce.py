#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""RoCEv2 between two of our cards, by IPv4 and IPv6, and beside what goes through the interface."""
from harness import cm, ethernet, tap, verbs
from harness.guest import GuestError
from harness.labs import kept, roce

MTUS = (1024, 4096)


def pingpongs(version):
    """Each side checks what it received; in both directions."""
    both = kept(roce)
    for mtu in MTUS:
        for service in ('rc', 'uc'):
            verbs.pingpong(both.a, both.b, f'-m {mtu} -s {3 * mtu + 1} -n 50', service, version)
        verbs.pingpong(both.a, both.b, f'-s {mtu} -n 50', 'ud', version)
    verbs.pingpong(both.b, both.a, '-s 1000 -n 50 -e', version=version)


def test_pingpongs_ipv4():
    pingpongs(4)


def test_pingpongs_ipv6():
    pingpongs(6)


def perftests(programs, options, every=tap.LONG):
    """At the smaller MTU by IPv4, at the larger one by IPv6: every program, or each of them in turn."""
    both = kept(roce)
    for turn, (version, mtu) in enumerate(zip((4, 6), MTUS)):
        for program in programs if every else programs[turn::2]:
            verbs.perftest(both.a, both.b, program, f'-m {mtu} {options}', version)


def test_bandwidth():
    perftests(['ib_send_bw', 'ib_write_bw', 'ib_read_bw'], '-s 65536 -n 50', every=True)


def test_latency():
    perftests(['ib_send_lat', 'ib_write_lat', 'ib_read_lat'], '-s 64 -n 50')


def test_atomics():
    perftests(['ib_atomic_bw -A CMP_AND_SWAP', 'ib_atomic_lat -A FETCH_AND_ADD'], '-n 50')


def test_unconnected_and_unreliable():
    perftests(['ib_send_bw -c UC', 'ib_write_lat -c UC', 'ib_send_bw -c UD', 'ib_send_lat -c UD'], '-s 1000 -n 50')


def test_events():
    both = kept(roce)
    verbs.event_programs(both.a, both.b)


@tap.only_long
def test_ucx():
    both = kept(roce)
    verbs.ucx_tests(both.a, both.b)


def test_connection_manager():
    """By IPv4 only: the programs know no other address of the peer."""
    both = kept(roce)
    for program in ('ib_send_bw', 'ib_write_bw', 'ib_read_lat', 'ib_send_lat -c UD'):
        cm.perftest(both.a, both.b, program, '-F -s 1000 -n 50')


def test_ethernet_beside_rdma():
    """TCP in each direction, with offloads and without, and a flood of pings while RDMA runs: nothing is lost, or stuck."""
    both = kept(roce)
    for guest in both.guests:
        # There is room for all that TCP may have on the way.
        guest.run(f'ethtool -G {guest.card.interface} rx 4096')
    before = [guest.card.interface_counters() for guest in both.guests]
    for state in ('on', 'off'):
        for guest in both.guests:
            guest.run(f'ethtool -K {guest.card.interface} tx {state} rx {state} sg {state}')
        rdma = verbs.start(both.a, both.b, 'ibv_rc_pingpong -c -s 65536 -n 100')
        echoes = ethernet.Echoes(both.a)
        flood = both.a.spawn(f'exec ping -f -q -c 300 -s 4000 -W 20 {both.b.card.address()}')
        for direction in ('', '-R'):
            ethernet.iperf(both, f'-n 3M {direction}')
        verbs.finish([flood, *rdma])
        echoes.wait(300)
    for guest, old in zip(both.guests, before):
        new = guest.card.interface_counters()
        wrong = {name: new[name] - old[name] for name in ('tx_errors', 'rx_errors', 'rx_no_buffer', 'bad_doorbells')}
        if any(wrong.values()):
            raise GuestError(f'{guest.name}: {wrong}')


if __name__ == '__main__':
    tap.main()
