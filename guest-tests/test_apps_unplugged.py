#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A card is taken out of its slot under applications, and put back: its user asks for it and Linux lets go of it, or somebody
pulls it out without a word. Those who use it are told or wait; the other side notices; what was acknowledged before is there
afterwards; and with the card back all goes on, by itself or after what an operator has to do (docs/compatibility.md).

That nothing is left of a card that has gone its driver sees to, which complains if there is."""
import contextlib
import functools
import re
import signal

from harness import cm, faults, iser, links, mpi, nfs, nvme, pci, rds, resources, storage, tap, ucx, verbs, wait
from harness.devices import RoceCard
from harness.guest import GuestError, end_all
from harness.labs import APPLICATIONS, kept, slots
from harness.patience import FACTOR, patient

SECONDS = 300
# fio keeps a record of what was acknowledged, by which it judges later: exact only where one write waits for the one before. It
# is slow so that it is not done too soon. Beside it another one does all it can.
STATE = '/tmp/fio'
RECORDED = f'--rw=randwrite --bs=4k --size=32m --aux-path={STATE}'
SLOWLY = f'--rate_iops={max(200 // FACTOR, 20)}'
# Not read again: of a disk that is gone Linux reads nothing, without an error, and fio compares what was in memory before.
LOAD = '--rw=randwrite --bsrange=512-128k --iodepth=16 --offset=32m --size=8m --time_based --runtime=10000 --do_verify=0'

_fresh = {}  # by the lab's folder, what is in use when it has started
_ready = set()


lab = functools.partial(slots, RoceCard('lan', slotted=True), links.stream, **APPLICATIONS)


def prepared(prepare=None):
    """The guests, where prepare(both) was called once."""
    both = kept(lab)
    _fresh.setdefault(both.folder, in_use(both))
    if prepare and (both.folder, prepare) not in _ready:
        prepare(both)
        _ready.add((both.folder, prepare))
    return both


# In and out

def let_go(card):
    """As the machine's user asks for."""
    pci.unplug(card)
    pci.wait_gone(card)


def put_back(both, card):
    pci.plug(card)
    card.configure()
    both.wait_active()


def in_use(both):
    """What users of the RDMA core have of each card. CQs the core shares among them, and keeps; and what listened at the address
    of a card that has gone does not any more."""
    counts = [resources.in_use(guest) for guest in both.guests]
    return [{**{name: count[f'core {name}'] for name in ('ctx', 'pd', 'mr', 'qp')}, 'connections': len(cm.connections(guest))}
            for count, guest in zip(counts, both.guests)]


@contextlib.contextmanager
def clean(both):
    """Afterwards nobody uses the cards, whichever they are, and they work."""
    yield
    fresh = _fresh[both.folder]
    wait.until(lambda: in_use(both) == fresh, lambda: f'free: in use are {in_use(both)}, and not {fresh}')
    verbs.pingpong(both.a, both.b, '-e -n 50')


def working(both, *jobs, least=100):
    """Wait until the cards have done some work from now on."""
    before = faults.counted(both)

    def moved():
        for job in jobs:
            if not job.running:
                raise GuestError(f'ended: {job.script}\n{job.output}')
        return faults.moved(both, before)['requester wqes_completed'] >= least

    wait.until(moved, 'moving: data', timeout=60)


# What fio writes

def begin(both, device, load=True):
    """Both fios, or the first alone, which have begun to write."""
    both.b.run(f'mkdir -p {STATE}')
    jobs = [storage.begin(both.b, device, f'{RECORDED} {SLOWLY}')]
    if load:
        jobs.append(storage.begin(both.b, device, LOAD, seed=2))
    working(both, *jobs)
    return jobs


def end(jobs):
    """They are told to end, which gives them a status of its own, and have had no error."""
    for job in jobs:
        job.kill(signal.SIGINT)
    for job in jobs:
        storage.report(job, check=False)


def all_there(guest, device):
    """What the first of them was told that it was written."""
    storage.fio(guest, device, f'{RECORDED} --verify_only --verify_state_load=1')


# NVMe

def target(both):
    nvme.serve(both.a, both.a.card, kept=False)
    nvme.disconnect(both.b, nvme.connect(both.b, both.a.card))


def told(guest, job):
    """fio has an error. Or its request is lost: Linux 6.1's multipath puts one back without another look at whether the last path
    is still there, and nobody takes it out again when the disk has gone meanwhile."""
    try:
        job.wait(60, check=False)
    except GuestError:
        if 'no usable path - requeuing I/O' not in guest.kernel_log():
            raise
        print('# Linux has lost a request that it had put back', flush=True)
        return
    # A disk that is gone has no room, either.
    storage.fails(job, 'Input/output error', 'No space left on device')


def host_loses(take_out):
    """Linux deletes its controllers with the card: who writes gets an error. The operator connects anew."""
    both = prepared(target)
    with clean(both):
        name = nvme.connect(both.b, both.a.card)
        jobs = begin(both, nvme.disk(both.b, name))
        take_out(both.b.card)
        for job in jobs:
            told(both.b, job)
        wait.until(lambda: not nvme.state(both.b, name), f'gone: {name}')
        put_back(both, both.b.card)
        with nvme.connected(both.b, both.a.card) as name:
            all_there(both.b, nvme.disk(both.b, name))


@tap.seconds(SECONDS)
def test_nvme_host_unplugged():
    host_loses(let_go)


@tap.seconds(SECONDS)
def test_nvme_host_pulled_out():
    host_loses(pci.tear_out)


@tap.only_long
@tap.seconds(SECONDS)
def test_nvme_target_unplugged():
    """The host tries to come back. The target does not listen again by itself, where Linux had bound it to the card."""
    both = prepared(target)
    with clean(both), nvme.connected(both.b, both.a.card) as name:
        jobs = begin(both, nvme.disk(both.b, name))
        let_go(both.a.card)
        nvme.wait_state(both.b, name, 'connecting')
        put_back(both, both.a.card)
        nvme.leave(both.a.card)
        nvme.listen(both.a.card)
        nvme.wait_state(both.b, name, 'live')
        working(both, *jobs)
        end(jobs)
        all_there(both.b, nvme.disk(both.b, name))


# iSER. Commands that wait for the session's lock while Linux's initiator gives its connection up fail (iscsi_iser_task_init:
# -ENODEV), which is an error for who writes. So there is no load beside; but even the only writer is in it once in some twenty runs.
NOT_TAKEN = 'iscsi_iser_task_init: Failed to init task'


def portal(both):
    iser.serve(both.a, both.a.card)
    iser.prepare(both.b, patient(120))
    with iser.logged_in(both.b, both.a.card):
        pass


@contextlib.contextmanager
def writing(both, disk):
    """Beside a fio, which goes on afterwards; but if Linux has failed a command of it, as above, another one has begun."""
    job, = begin(both, disk, load=False)
    seen = len(both.b.kernel_log())
    yield
    try:
        working(both, job)
    except GuestError:
        if job.running or NOT_TAKEN not in both.b.kernel_log()[seen:]:
            raise
        print('# Linux has failed a command while it gave the connection up', flush=True)
        storage.fails(job, 'Input/output error')
        job, = begin(both, disk, load=False)
    end([job])
    all_there(both.b, disk)


@tap.only_long
@tap.seconds(SECONDS)
def test_iser_target_unplugged():
    """The initiator tries to come back. The operator has the portal listen anew."""
    both = prepared(portal)
    with clean(both), iser.logged_in(both.b, both.a.card) as disk:
        with writing(both, disk):
            let_go(both.a.card)
            put_back(both, both.a.card)
            iser.listen_anew(both.a.card)


@tap.only_long
@tap.seconds(SECONDS)
def test_iser_initiator_unplugged():
    """The session waits for another connection, which is made when the card is back. In sysfs it went with the card, whose function
    was its SCSI host's parent, so that iscsiadm cannot end it any more."""
    both = prepared(portal)
    with clean(both):
        disk = iser.login(both.b, both.a.card)
        with writing(both, disk):
            let_go(both.b.card)
            put_back(both, both.b.card)
        both.b.run('killall iscsid')
        iser.enable(both.a, 0)


# NFS

TREE = '/usr/lib/x86_64-linux-gnu/ucx'
COPIES = f"""
until [ -e /tmp/enough ]; do
    rm -rf {nfs.MOUNT}/tree
    mkdir {nfs.MOUNT}/tree && cp -r {TREE} {nfs.MOUNT}/tree/ && sync && echo 3 >/proc/sys/vm/drop_caches || exit
    for folder in {TREE}; do diff -r $folder {nfs.MOUNT}/tree/${{folder##*/}} || exit; done
done"""


def server(both):
    nfs.export_memory(both.a)
    nfs.serve(both.a)
    with nfs.mounted(both.b, both.a.card):
        pass


def files_survive(side):
    """Who copies waits until the card is back; nobody has to do anything."""
    both = prepared(server)
    with clean(both), nfs.mounted(both.b, both.a.card):
        job = both.b.spawn(COPIES)
        working(both, job)
        card = side(both).card
        let_go(card)
        put_back(both, card)
        working(both, job)
        both.b.run('touch /tmp/enough')
        job.wait(120)
        both.b.run('rm /tmp/enough')
        both.a.run(f'for folder in {TREE}; do diff -r $folder {nfs.EXPORT}/tree/${{folder##*/}} || exit; done')


@tap.seconds(SECONDS)
def test_nfs_client_unplugged():
    files_survive(lambda both: both.b)


@tap.only_long
@tap.seconds(SECONDS)
def test_nfs_server_unplugged():
    files_survive(lambda both: both.a)


# Programs

@tap.seconds(SECONDS)
def test_ucx():
    """UCX tells its user at both ends: of the card that is lost, and of a peer that does not answer."""
    both = prepared()
    with clean(both):
        programs = ucx.start(both.a, both.b, ucx.mortal('rc_v'), [('tag_lat', 4000, 100000000, '-e')], percent=20)
        working(both, *programs)
        let_go(both.a.card)
        client, server = programs
        server.wait_output('IB Async event on .*: local catastrophic error', timeout=60)
        # Which error of the lost card's UCX hears of first is chance: of the device, or of a receive into memory that the RDMA
        # core has deregistered, for which it ends itself.
        handled = r'error handler called with status -\d+ '
        server.wait_output(rf'{handled}\((Input/output error|Request canceled|Endpoint timeout)\)|'
                           'Fatal: receive completion.* local protection error', timeout=100)
        # The peer hears nothing more, or still hears of that receive, or that it may not reach such memory.
        client.wait_output(rf'{handled}\((Endpoint timeout|Input/output error|Connection reset by remote peer)\)', timeout=100)
        # The one goes on to wait, the other ends itself.
        end_all(programs)
        put_back(both, both.a.card)
        ucx.run(both.a, both.b, ucx.below_protocols('rc_v'), [('tag_lat', 30000, 50, '')])


@tap.only_long
@tap.seconds(SECONDS)
def test_mpi():
    """UCX ends the rank that has lost its card, and mpirun the job."""
    both = prepared(mpi.prepare)
    with clean(both):
        job = mpi.start(both, 2, 'rc_v', 'for_ever')
        working(both, job)
        let_go(both.b.card)
        result = job.wait(120, check=False)
        if result.status in (None, 0) or not re.search(r'rank 1 .*guest2 exited on signal', result.output):
            raise GuestError(f'nobody told of the loss:\n{result}')
        put_back(both, both.b.card)
        mpi.start(both, 2, 'rc_v', 'ring').wait(120)


# RDS

@tap.seconds(SECONDS)
def test_rds():
    """Sockets stay, and what is in them: when the card is back, another connection carries it."""
    both = prepared(rds.load)
    with clean(both):
        programs = rds.start(both.a, both.b, ('answers', 'messages'), 100000000)
        working(both, *programs)
        let_go(both.b.card)
        put_back(both, both.b.card)
        working(both, *programs)
        end_all(programs)
        verbs.finish(rds.start(both.a, both.b, ('answers', 'messages'), 200))
        rds.unload(both)


if __name__ == '__main__':
    tap.main()
