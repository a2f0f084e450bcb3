#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""iSER: Linux's iSCSI target in one guest, open-iscsi in the other, by our cards. What fio has written it reads again and
compares."""
import functools

from harness import faults, iser, resources, storage, tap
from harness.labs import kept

LOSS = faults.loss(0.005)
SECONDS = 1800 if tap.LONG else tap.DEFAULT_SECONDS
# One at a time: of commands that are about to be sent just when it gives its connection up, Linux's initiator has some fail.
GOES_ON = f'{storage.MIXED} --iodepth=1 --loops=8'


def prepare(both):
    iser.serve(both.a, *both.a.devices[1:])
    iser.prepare(both.b)
    # The RDMA core makes CQs that all share, and keeps them.
    with logged_in(both):
        pass


served = functools.partial(kept, storage.lab, prepare=prepare)


def logged_in(both, timeout=None):
    return iser.logged_in(both.b, both.a.card, timeout)


@tap.seconds(SECONDS)
def test_data():
    both = served()
    with resources.given_back(both):
        with logged_in(both) as disk:
            storage.write(both.b, disk)
        with logged_in(both) as disk:
            storage.verify(both.b, disk)


@tap.seconds(SECONDS)
def test_loss():
    both = served()
    with resources.given_back(both), logged_in(both) as disk, storage.loss(both, LOSS):
        storage.write(both.b, disk)


@tap.seconds(SECONDS)
def test_target_leaves_and_returns():
    both = served()
    with resources.given_back(both), logged_in(both) as disk:
        job = storage.writing(both, disk, GOES_ON)
        iser.enable(both.a, 0)
        iser.enable(both.a, 1)
        storage.report(job)


@tap.seconds(SECONDS)
def test_target_dies_in_a_write():
    """It does not come back in the time that the initiator has been told to wait: who writes gets an error. The initiator leaves
    before the target returns: Linux's waits 15 s for who connects and is gone, and has whoever comes next wait."""
    both = served()
    with resources.given_back(both):
        with logged_in(both, timeout=2) as disk:
            job = storage.writing(both, disk, GOES_ON)
            iser.enable(both.a, 0)
            storage.fails(job, 'Input/output error')
        iser.enable(both.a, 1)
        with logged_in(both) as disk:
            storage.fio(both.b, disk, storage.MIXED)


@tap.only_long
@tap.seconds(SECONDS)
def test_figures():
    """Our card and Soft-RoCE, in the same guests. Nobody judges them."""
    both = served()
    for device in both.a.card, both.a.devices[storage.SOFT]:
        with iser.logged_in(both.b, device) as disk:
            storage.figures(both.b, disk, f'iSER over {device.name}')


if __name__ == '__main__':
    tap.main()
