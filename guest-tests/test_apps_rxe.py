#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Storage between our card and Linux's Soft-RoCE: each is the target, or server, of the other; also over a link that loses
packets. In the long form by iSER and NFS, too."""
from harness import iser, nfs, nvme, storage, tap
from harness.devices import RoceCard, SoftRoce
from harness.labs import kept

# Between the card and all else: it loses what it sends, and what comes to it.
LOSS = [{'action': 'drop', 'direction': 'both', 'probability': 0.005}]
SECONDS = 1800 if tap.LONG else 2 * tap.DEFAULT_SECONDS  # Soft-RoCE is slow
WRITES = f'--rw=randwrite --bsrange=512-128k --iodepth=8 --size={48 if tap.LONG else 1}m'


def prepare(both):
    for guest in both.guests:
        nvme.serve(guest, guest.card, kept=False)
        iser.serve(guest, guest.card)
        iser.prepare(guest)
        nfs.export_memory(guest)
        nfs.serve(guest)


def each_way(use, path):
    """Write by what use(client, server's device) gives, each way, also while packets are lost, and compare. path(client,
    that): the file."""
    both = kept(storage.lab, prepare=prepare, cards=(RoceCard('lan'), SoftRoce('lan')))
    for server, client in (both.a, both.b), (both.b, both.a):
        with use(client, server.card) as name:
            storage.fio(client, path(client, name), WRITES)
            with storage.loss(both, LOSS):
                storage.fio(client, path(client, name), WRITES, seed=2)


@tap.seconds(SECONDS)
def test_nvme():
    each_way(nvme.connected, nvme.disk)


@tap.only_long
@tap.seconds(SECONDS)
def test_iser():
    each_way(iser.logged_in, lambda _, disk: disk)


@tap.only_long
@tap.seconds(SECONDS)
def test_nfs():
    each_way(nfs.mounted, lambda *_: f'{nfs.MOUNT}/file')


if __name__ == '__main__':
    tap.main()
