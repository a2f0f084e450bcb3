#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""NVMe over Fabrics: Linux's target in one guest, its host in the other, by our cards. What fio has written it reads again and
compares."""
import functools

from harness import faults, nvme, resources, storage, tap, wait
from harness.check import expect
from harness.guest import GuestError
from harness.labs import kept

LOSS = faults.loss(0.005)
MIB = 64 if tap.LONG else 4  # how much is written
SECONDS = 1800 if tap.LONG else tap.DEFAULT_SECONDS
MIXED = '--rw=randwrite --bsrange=512-128k --iodepth=8'
# One job for each queue, each with a part of the disk.
FOUR = f'--rw=randwrite --bs=4k --iodepth=16 --numjobs=4 --size={MIB // 4}m --offset_increment={MIB // 4}m'
POLLED = f'--ioengine=io_uring --hipri --iodepth=4 --rw=randwrite --bs=4k --size={MIB // 4}m'
# For longer than a test takes to do something to the target.
GOES_ON = f'{MIXED} --size=16m --loops={40 if tap.LONG else 4}'


def prepare(both):
    nvme.serve(both.a, *both.a.devices[1:])
    # The RDMA core makes CQs that all share, and keeps them.
    nvme.disconnect(both.b, nvme.connect(both.b, both.a.card))


served = functools.partial(kept, storage.lab, prepare=prepare, cpus=nvme.QUEUES)  # a host has no more than it has processors


def connected(both, options=''):
    return nvme.connected(both.b, both.a.card, options)


@tap.seconds(SECONDS)
def test_four_queues():
    both = served()
    with resources.given_back(both):
        with connected(both) as name:
            queues = both.b.run(f'cat /sys/class/nvme/{name}/queue_count').output.strip()
            if queues != str(1 + nvme.QUEUES):
                raise GuestError(f'{queues} queues')
            storage.fio(both.b, nvme.disk(both.b, name), FOUR)
            storage.fio(both.b, nvme.disk(both.b, name, nvme.KEPT), f'{MIXED} --size={MIB}m', seed=2)
        # It is there for another connection, too.
        with connected(both) as name:
            storage.fio(both.b, nvme.disk(both.b, name, nvme.KEPT), f'{MIXED} --size={MIB}m --verify_only', seed=2)


def told_of_completions(guest):
    return resources.counters(guest, 'cumulative')['cxtmgt event_comp']


@tap.seconds(SECONDS)
def test_kinds_of_queues():
    """Some for reads, others for writes, and one whose completions nobody is told of: who waits polls."""
    both = served()
    with resources.given_back(both), connected(both, ',nr_write_queues=1,nr_poll_queues=1') as name:
        queues = both.b.run(f'cat /sys/class/nvme/{name}/queue_count').output.strip()
        if queues != str(1 + nvme.QUEUES + 2):
            raise GuestError(f'{queues} queues')
        storage.fio(both.b, nvme.disk(both.b, name), FOUR)
        storage.fio(both.b, nvme.disk(both.b, name), f'{MIXED} --size={MIB}m', seed=2)
        told = told_of_completions(both.b)
        job = storage.fio(both.b, nvme.disk(both.b, name), POLLED, seed=3)
        told = told_of_completions(both.b) - told
        # Now and then of a connection that is kept alive.
        expect('polled', told < job['write']['total_ios'] // 4, told, job['write']['total_ios'])


@tap.seconds(SECONDS)
def test_loss():
    both = served()
    with resources.given_back(both), connected(both) as name, storage.loss(both, LOSS):
        storage.fio(both.b, nvme.disk(both.b, name), FOUR)
        storage.fio(both.b, nvme.disk(both.b, name), f'{MIXED} --size={MIB}m', seed=2)


@tap.seconds(SECONDS)
def test_target_leaves_and_returns():
    both = served()
    with resources.given_back(both), connected(both) as name:
        job = storage.writing(both, nvme.disk(both.b, name), GOES_ON)
        nvme.leave(both.a.card)
        nvme.wait_state(both.b, name, 'connecting')
        nvme.listen(both.a.card)
        nvme.wait_state(both.b, name, 'live')
        storage.report(job)


@tap.seconds(SECONDS)
def test_resets_in_a_write():
    """The host gives its queues up and makes them anew: who writes waits."""
    both = served()
    with resources.given_back(both), connected(both) as name:
        job = storage.writing(both, nvme.disk(both.b, name), GOES_ON)
        for _ in range(3):
            both.b.run(f'echo 1 >/sys/class/nvme/{name}/reset_controller')
            nvme.wait_state(both.b, name, 'live')
        storage.report(job)


@tap.seconds(SECONDS)
def test_host_leaves_in_a_write():
    both = served()
    with resources.given_back(both):
        name = nvme.connect(both.b, both.a.card)
        job = storage.writing(both, nvme.disk(both.b, name), GOES_ON)
        nvme.disconnect(both.b, name)
        storage.fails(job, 'Input/output error', 'No such device')
        wait.until(lambda: not nvme.state(both.b, name), f'gone: {name}')


@tap.seconds(SECONDS)
def test_target_dies_in_a_write():
    """It does not come back in the time that the host has been told to wait: who writes gets an error."""
    both = served()
    with resources.given_back(both):
        name = nvme.connect(both.b, both.a.card, ',ctrl_loss_tmo=2')
        job = storage.writing(both, nvme.disk(both.b, name), GOES_ON)
        nvme.leave(both.a.card)
        storage.fails(job, 'Input/output error')
        wait.until(lambda: not nvme.state(both.b, name), f'gone: {name}')
        nvme.listen(both.a.card)
        with connected(both) as name:
            storage.fio(both.b, nvme.disk(both.b, name), FOUR)


@tap.only_long
@tap.seconds(SECONDS + 120)
def test_target_switched_off():
    """What it said that it had written is on its disk when it is back; and nobody noticed but by the time that it took."""
    both = served()
    with connected(both) as name:
        job = storage.writing(both, nvme.disk(both.b, name, nvme.KEPT), GOES_ON)
        both.a.stop()
        nvme.wait_state(both.b, name, 'connecting')
        storage.again(both, both.a)
        nvme.serve(both.a, *both.a.devices[1:])
        nvme.wait_state(both.b, name, 'live')
        storage.report(job)


# What comes of what nvme-breaker does. Statuses of rejections: NVMe RDMA Transport, RDMA_CM_REJECT; of completions: enum
# ibv_wc_status; of answers: NVMe, 0x4000 is "do not retry".
BREAKERS = {
    'format': 'rejected 2',
    'depth': 'rejected 4',
    'zeros': 'connected',
    'short': 'connected disconnected',
    'long': 'connected completed 9 disconnected',
    'key': 'connected disconnected',
    'length': 'connected',
    'offset': 'connected answered 0x4016',
    'twice': 'connected answered 0x0 answered 0x6001',
    'write': 'connected completed 10',
    'read': 'connected completed 2',  # nobody may read from a target, which says so when it accepts
    'leave': 'connected answered 0x0',
}


def breaks(both, case, seed=1):
    return ' '.join(both.b.run(f'exec nvme-breaker {both.a.card.address()} {case} {seed}').output.split())


def test_host_breaks_the_protocol():
    both = served()
    # Who keeps to it does not notice.
    with resources.given_back(both), connected(both) as name:
        job = storage.begin(both.b, nvme.disk(both.b, name), FOUR)
        for case, wanted in BREAKERS.items():
            found = breaks(both, case)
            if found != wanted:
                raise GuestError(f'nvme-breaker {case}: {found}, not {wanted}')
        storage.report(job)


def test_host_says_anything():
    both = served()
    with resources.given_back(both):
        for seed in range(100 if tap.LONG else 4):
            breaks(both, 'noise', seed)
            breaks(both, 'flood', seed)
        with connected(both) as name:
            storage.fio(both.b, nvme.disk(both.b, name), FOUR)


def test_host_that_does_not_answer():
    """It is connected and stays silent when it is disconnected."""
    both = served()
    with resources.given_back(both):
        silent = both.b.spawn(f'exec nvme-breaker {both.a.card.address()} stay')
        silent.wait_output('answered 0x0')
        nvme.leave(both.a.card)
        nvme.listen(both.a.card)
        with connected(both) as name:
            storage.fio(both.b, nvme.disk(both.b, name), FOUR)
        silent.end()


@tap.only_long
@tap.seconds(SECONDS)
def test_figures():
    """Our card and Soft-RoCE, in the same guests. Nobody judges them."""
    both = served()
    for device in both.a.card, both.a.devices[storage.SOFT]:
        with nvme.connected(both.b, device) as name:
            storage.figures(both.b, nvme.disk(both.b, name), f'NVMe over {device.name}')


if __name__ == '__main__':
    tap.main()
