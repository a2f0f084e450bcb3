#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""SRP by RDMA CM: Linux's target in one guest, its initiator in the other, by our cards. What fio has written it reads again and
compares."""
import functools

from harness import faults, resources, srp, storage, tap
from harness.check import expect
from harness.labs import kept

LOSS = faults.loss(0.005)
SECONDS = 1800 if tap.LONG else tap.DEFAULT_SECONDS
LARGE = f'--rw=write --bs=1m --iodepth=4 --size={48 if tap.LONG else 16}m'
GOES_ON = f'{storage.MIXED} --loops=8'
# How the initiator says where a command's data is: by so many descriptors, each a piece of memory or of a registered region.
MANY = ',cmd_sg_entries=255,max_sect=8192'
ONE = ',cmd_sg_entries=1'


def prepare(both):
    srp.serve_at_address(both.a)
    load(both)


served = functools.partial(kept, storage.lab, prepare=prepare)


def load(both, options=''):
    both.b.run(f'modprobe sd_mod && modprobe ib_srp {options}')


def given_back(both):
    return resources.given_back(both, resources.in_use_but_cqs)


def logged_in(both, options=''):
    return srp.logged_in_at_address(both.b, both.a, options)


@tap.seconds(SECONDS)
def test_data():
    both = served()
    with given_back(both):
        with logged_in(both) as disk:
            storage.write(both.b, disk)
        with logged_in(both) as disk:
            storage.verify(both.b, disk)


def transfer_large(both, options):
    """How many regions were registered for it."""
    before = faults.counted(both)
    with given_back(both), logged_in(both, options) as disk:
        storage.fio(both.b, disk, LARGE)
    return faults.moved(both, before)['v2p fast_regs']


@tap.seconds(SECONDS)
def test_large_transfers():
    both = served()
    for options in MANY, ONE:
        registered = transfer_large(both, options)
        expect('registrations', registered > 0, registered)


@tap.seconds(SECONDS)
def test_without_registration():
    """All of the initiator's memory is one region, and the target is told many pieces of it."""
    both = served()
    if both.b.run('[ -e /sys/module/ib_srp/initstate ]', check=False).status:
        raise tap.Skip('the kernel has ib_srp built in')
    both.b.run('modprobe -r ib_srp')
    load(both, 'never_register=Y register_always=N')
    registered = transfer_large(both, MANY)
    expect('no registrations', registered == 0, registered)
    both.b.run('modprobe -r ib_srp')
    load(both)


@tap.seconds(SECONDS)
def test_loss():
    both = served()
    with given_back(both), logged_in(both) as disk, storage.loss(both, LOSS):
        storage.write(both.b, disk)


@tap.seconds(SECONDS)
def test_resets():
    """Of the unit: the commands that are under way are taken back by the target. Of the host: the initiator connects anew."""
    both = served()
    with given_back(both), logged_in(both) as disk:
        job = storage.writing(both, disk, GOES_ON)
        for kind in 'device', 'host', 'device':
            both.b.run(f'sg_reset --{kind} --no-escalate {disk}')
        storage.report(job)


@tap.seconds(SECONDS)
def test_target_leaves_and_returns():
    both = served()
    with given_back(both), logged_in(both) as disk:
        srp.set_patience(both.b, reconnect=1)
        job = storage.writing(both, disk, GOES_ON)
        srp.enable(both.a, 0)
        srp.enable(both.a, 1)
        storage.report(job)


@tap.seconds(SECONDS)
def test_target_dies_in_a_write():
    """It does not come back in the time that the initiator has been told to wait: who writes gets an error."""
    both = served()
    with given_back(both):
        with logged_in(both) as disk:
            srp.set_patience(both.b, reconnect=1, fail=2)
            job = storage.writing(both, disk, GOES_ON)
            srp.enable(both.a, 0)
            storage.fails(job, 'Input/output error')
            srp.enable(both.a, 1)
        with logged_in(both) as disk:
            storage.fio(both.b, disk, storage.MIXED)


if __name__ == '__main__':
    tap.main()
