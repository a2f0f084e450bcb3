#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of sockets, unchanged, whose streams librspreload makes streams of RDMA: that of rdma-core 65, which has epoll."""
import contextlib

from harness import apps, cm, faults, resources, tap
from harness.check import expect
from harness.labs import APPLICATIONS, kept, roce

PRELOAD = '/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so'
BY_RDMA = f'env LD_PRELOAD={PRELOAD}'
LARGE = 1 << 20
# What a packet has of a message.
PACKET = 4096


def lab():
    both = kept(roce, **APPLICATIONS)
    if both.a.run(f'grep -q epoll_ctl {PRELOAD}', check=False).status != 0:
        raise tap.Skip('librspreload has no epoll before rdma-core 65: RDMA_CORE=65')
    return both


@contextlib.contextmanager
def served(both, program, least):
    """A server in guest a; what its clients do moves at least so many bytes, by RDMA."""
    before = faults.counted(both)
    with resources.given_back(both):
        serving = cm.listen(both.a, f'{BY_RDMA} {program}')
        yield both.a.card.address()
        serving.end()
    apps.carried(both, before, 'port tx_packets', least // PACKET)


def iperf(both, options):
    with served(both, 'iperf3 -s -1', 8 * LARGE) as address:
        output = both.b.run(f'{BY_RDMA} iperf3 -c {address} -n 8M {options}').output
    expect('all of it was received', 'receiver' in output, output)


def test_iperf3():
    iperf(lab(), '')


def test_iperf3_streams():
    iperf(lab(), '-P 4')


def test_iperf3_reverse():
    iperf(lab(), '-R')


@tap.seconds(300)
def test_redis():
    """A value of a megabyte that is read again, and many requests of several clients at once."""
    both = lab()
    with served(both, "redis-server --bind '*' --protected-mode no --save '' --appendonly no", 2 * LARGE) as address:
        client = f'{BY_RDMA} redis-cli -h {address}'
        both.b.run(f'''head -c {LARGE} /dev/urandom | base64 -w 0 >/tmp/value
                       {client} -x set value </tmp/value && {client} get value | head -c -1 | cmp - /tmp/value''')
        both.b.run(f'''for client in $(seq 6); do
                           {{ seq 200 | sed "s/.*/set key-$client-& value-&/"; echo get key-$client-100; }} | {client} >/tmp/told-$client &
                       done
                       wait
                       for client in $(seq 6); do [ "$(tail -n 1 /tmp/told-$client)" = value-100 ] || exit; done
                       [ "$({client} dbsize)" = 1201 ]''')


@tap.seconds(300)
def test_memcached():
    """Values of many sizes that are read again, from several clients in turn, and others at once."""
    both = lab()
    with served(both, 'memcached -u root -U 0 -I 4m', 2 * LARGE) as address:
        of = f'--servers={address}'
        both.b.run(f'''cd /tmp && for size in 1 1000 100000 {LARGE}; do
                           head -c $size /dev/urandom >value-$size &&
                           {BY_RDMA} memccp {of} value-$size && {BY_RDMA} memccat {of} --file=read value-$size && cmp read value-$size || exit
                       done''')
        # It ends well whatever the server did, which has counted those before, too.
        both.b.run(f'''{BY_RDMA} memcslap {of} --concurrency=4 --execute-number=100 --test=set
                       {BY_RDMA} memcstat {of} | grep -w "cmd_set: 404"''')


if __name__ == '__main__':
    tap.main()
