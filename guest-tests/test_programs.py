#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The demonstration's programs, with their data checked, over a unix and over a TCP cable."""
import re

from harness import tap, verbs
from harness.guest import GuestError
from harness.labs import infiniband, kept
from harness.links import tcp_cable, unix_cable

MTUS = [256, 512, 1024, 2048, 4096]
BANDWIDTH = ['ib_send_bw', 'ib_write_bw', 'ib_read_bw']


def devinfo(cable):
    both = kept(infiniband, cable=cable)
    for guest in both.guests:
        output = guest.run(f'ibv_devinfo -v -d {guest.card.name}').output
        for pattern in (rf'hca_id:\s+{guest.card.name}', r'transport:\s+InfiniBand', r'state:\s+PORT_ACTIVE',
                        r'max_mtu:\s+4096', r'link_layer:\s+InfiniBand', rf'port_lid:\s+{guest.number}\b'):
            if not re.search(pattern, output):
                raise GuestError(f'{guest.name}: ibv_devinfo does not say {pattern!r}:\n{output}')


def pingpongs(cable, options):
    both = kept(infiniband, cable=cable)
    for size, count in ((1, 200), (4096, 1000), (65536, 100), (1048576, 10)):
        verbs.pingpong(both.a, both.b, f'-s {size} -n {count} {options}')


def all_mtus(cable):
    both = kept(infiniband, cable=cable)
    for mtu in MTUS:
        for size in (mtu - 1, mtu, mtu + 1, 10 * mtu + 3):
            verbs.pingpong(both.a, both.b, f'-m {mtu} -s {size} -n 30')


def perftests(cable):
    both = kept(infiniband, cable=cable)
    for program in BANDWIDTH:
        verbs.bandwidth(both.b, both.a, program, 65536, 200)
    for program in ('ib_send_lat', 'ib_write_lat', 'ib_read_lat'):
        verbs.latency(both.b, both.a, program, 64, 200)


def test_unix_devinfo():
    devinfo(unix_cable)


def test_unix_pingpong_polling():
    pingpongs(unix_cable, '')


def test_unix_pingpong_events():
    pingpongs(unix_cable, '-e')


def test_unix_pingpong_uc():
    both = kept(infiniband, cable=unix_cable)
    for options in '-s 1', '-s 4096 -n 1000', '-s 65536 -n 100', '-s 20000 -n 100 -m 256', '-e -s 4096':
        verbs.pingpong(both.a, both.b, options, service='uc')


def test_unix_pingpong_ud():
    both = kept(infiniband, cable=unix_cable)
    for options in '-s 1', '-s 1024 -n 1000', '-s 2048 -n 100', '-e -s 1024':
        verbs.pingpong(both.a, both.b, options, service='ud')


def test_unix_perftest_uc_ud():
    both = kept(infiniband, cable=unix_cable)
    for size, options in (65536, '-c UC'), (4096, '-c UD'):
        verbs.bandwidth(both.b, both.a, 'ib_send_bw', size, 200, options)
        verbs.latency(both.b, both.a, 'ib_send_lat', 64, 200, options)
    verbs.bandwidth(both.b, both.a, 'ib_write_bw', 65536, 200, '-c UC')
    verbs.latency(both.b, both.a, 'ib_write_lat', 64, 200, '-c UC')


def test_unix_perftest_atomic():
    both = kept(infiniband, cable=unix_cable)
    for operation in 'FETCH_AND_ADD', 'CMP_AND_SWAP':
        verbs.perftest(both.b, both.a, 'ib_atomic_bw', f'-n 500 -A {operation}')
        verbs.perftest(both.b, both.a, 'ib_atomic_lat', f'-n 500 -A {operation}')


@tap.seconds(300)
def test_unix_pingpong_every_mtu():
    all_mtus(unix_cable)


def test_unix_perftest():
    perftests(unix_cable)


def test_unix_perftest_events():
    both = kept(infiniband, cable=unix_cable)
    verbs.event_programs(both.b, both.a)


@tap.only_long
def test_unix_ucx():
    both = kept(infiniband, cable=unix_cable)
    verbs.ucx_tests(both.a, both.b)


def test_unix_perftest_every_mtu():
    both = kept(infiniband, cable=unix_cable)
    for number, mtu in enumerate(MTUS):
        for program in BANDWIDTH if tap.LONG else [BANDWIDTH[number % len(BANDWIDTH)]]:
            verbs.bandwidth(both.a, both.b, program, 32768, 30, f'-m {mtu}')


@tap.only_long
def test_tcp_devinfo():
    devinfo(tcp_cable)


@tap.only_long
def test_tcp_pingpong_polling():
    pingpongs(tcp_cable, '')


@tap.only_long
def test_tcp_pingpong_events():
    pingpongs(tcp_cable, '-e')


@tap.only_long
@tap.seconds(300)
def test_tcp_pingpong_every_mtu():
    all_mtus(tcp_cable)


def test_tcp_perftest():
    perftests(tcp_cable)


if __name__ == '__main__':
    tap.main()
