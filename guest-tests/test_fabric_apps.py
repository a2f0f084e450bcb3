#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Applications that find their peers by the connection manager, on InfiniBand cards that a subnet manager has configured: each of
those of test_apps_*.py once, by the addresses of IPoIB's interfaces."""
import functools

from harness import apps, cm, fabric, faults, iser, libfabric, mpi, nfs, nvme, rds, resources, storage, tap, verbs
from harness.labs import APPLICATIONS, kept

pair = functools.partial(kept, fabric.pair, **APPLICATIONS)
SECONDS = 1800 if tap.LONG else 300
MIB = 64 if tap.LONG else 4
WRITES = f'--rw=randwrite --bsrange=512-128k --iodepth=8 --size={MIB}m'
TREE = '/usr/share/openmpi'


@tap.seconds(SECONDS)
def test_nvme():
    both = pair()
    nvme.serve(both.a, both.a.card, kept=False)
    # The RDMA core makes CQs that all share, and keeps them.
    nvme.disconnect(both.b, nvme.connect(both.b, both.a.card))
    with resources.given_back(both):
        before = faults.counted(both)
        with nvme.connected(both.b, both.a.card) as name:
            storage.fio(both.b, nvme.disk(both.b, name), WRITES)
        with nvme.connected(both.b, both.a.card) as name:
            storage.fio(both.b, nvme.disk(both.b, name), f'{WRITES} --verify_only')
        apps.carried(both, before, 'port tx_packets', 1000)


@tap.seconds(SECONDS)
def test_iser():
    both = pair()
    iser.serve(both.a, both.a.card)
    iser.prepare(both.b)
    with iser.logged_in(both.b, both.a.card):
        pass
    with resources.given_back(both):
        with iser.logged_in(both.b, both.a.card) as disk:
            storage.fio(both.b, disk, WRITES)
        with iser.logged_in(both.b, both.a.card) as disk:
            storage.fio(both.b, disk, f'{WRITES} --verify_only')


@tap.seconds(SECONDS)
def test_nfs():
    both = pair()
    nfs.export_memory(both.a)
    nfs.serve(both.a)
    with nfs.mounted(both.b, both.a.card):
        pass
    with resources.given_back(both), nfs.mounted(both.b, both.a.card):
        storage.fio(both.b, f'{nfs.MOUNT}/file', WRITES)
        both.b.run(f'cp -r {TREE} {nfs.MOUNT}/tree && sync && echo 3 >/proc/sys/vm/drop_caches && diff -r {TREE} {nfs.MOUNT}/tree',
                   SECONDS)
        both.a.run(f'diff -r {TREE} {nfs.EXPORT}/tree')


@tap.seconds(SECONDS)
def test_rds():
    both = pair()
    rds.load(both)
    for first, second in (both.a, both.b), (both.b, both.a):
        verbs.finish(rds.start(first, second, ('answers', 'messages'), 200))
        verbs.finish(rds.start(first, second, ('borrow', 'lend'), 20))
    rds.unload(both)


@tap.only_long
@tap.seconds(SECONDS)
def test_mpi():
    mpi.run_pair(pair())


@tap.only_long
@tap.seconds(SECONDS)
def test_libfabric():
    both = pair()
    for server, client in (both.a, both.b), (both.b, both.a):
        for provider, kind in libfabric.KINDS.items():
            libfabric.pingpong(server, client, provider, kind, 70000)
    libfabric.pingpong(both.a, both.b, 'verbs', 'dgram')


@tap.seconds(SECONDS)
def test_perftest():
    both = pair()
    for program in ('ib_write_bw', 'ib_read_bw', 'ib_send_bw', 'ib_atomic_bw', 'ib_send_lat', 'ib_write_lat', 'ib_send_bw -c UD'):
        cm.perftest(both.a, both.b, program, '-F -n 50' if 'atomic' in program else '-F -s 1000 -n 50')


if __name__ == '__main__':
    tap.main()
