#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""NFS over RDMA: Linux's server in one guest, its client in the other, by our cards."""
import functools

from harness import faults, nfs, resources, storage, tap
from harness.guest import GuestError
from harness.labs import kept

LOSS = faults.loss(0.005)
# Files of many sizes, which both guests have.
TREE = '/usr/lib/modules /usr/lib/python3.11' if tap.LONG else '/usr/share/openmpi'
SECONDS = 1800 if tap.LONG else tap.DEFAULT_SECONDS
FILE = f'{nfs.MOUNT}/file'
WRITES = f'--rw=randwrite --bsrange=512-128k --iodepth=8 --size={32 if tap.LONG else 4}m'


def prepare(both):
    nfs.export_disk(both.a, make=True)
    nfs.serve(both.a)
    with nfs.mounted(both.b, both.a.card):
        pass


served = functools.partial(kept, storage.lab, prepare=prepare)


def copy(both):
    """A tree there, where it is read again by the client and by the server's own files."""
    there = f'{nfs.MOUNT}/tree'
    same = 'for folder in {}; do diff -r $folder {}/${{folder##*/}} || exit 1; done'
    both.b.run(f'mkdir {there} && cp -r {TREE} {there}/ && sync && echo 3 >/proc/sys/vm/drop_caches && '
               + same.format(TREE, there), SECONDS)
    both.a.run(same.format(TREE, f'{nfs.EXPORT}/tree'), SECONDS)
    both.b.run(f'rm -r {there}', SECONDS)


@tap.seconds(SECONDS)
def test_tree():
    both = served()
    with resources.given_back(both), nfs.mounted(both.b, both.a.card):
        copy(both)


@tap.seconds(SECONDS)
def test_large_requests():
    """Of as much as the server takes, past the page cache; of files with holes, and beyond their end."""
    both = served()
    with resources.given_back(both), nfs.mounted(both.b, both.a.card, ',rsize=1048576,wsize=1048576'):
        sizes = both.b.run("grep -o '[rw]size=[0-9]*' /proc/mounts | sort -u").output.split()
        if sizes != ['rsize=1048576', 'wsize=1048576']:
            raise GuestError(f'other sizes: {sizes}')
        storage.fio(both.b, FILE, f'--rw=write --bs=1m --direct=1 --size={32 if tap.LONG else 4}m')
        # Both ends see the same of a file that begins with a hole, has one, and ends in the middle of a page.
        both.b.run(f'''cd {nfs.MOUNT} && rm -f holes && for at in 1 5; do
                dd if=/dev/urandom of=holes bs=700001 seek=$at count=1 conv=notrunc status=none || exit 1
            done
            echo 3 >/proc/sys/vm/drop_caches
            for bs in 1M 300000 4095; do dd if=holes bs=$bs status=none | md5sum; done >/tmp/sums
            dd if=holes iflag=direct bs=1M status=none | md5sum >>/tmp/sums
            [ $(sort -u /tmp/sums | wc -l) = 1 ] && [ -z "$(dd if=holes bs=1M skip=5 status=none)" ]''', SECONDS)
        here = both.b.run('sort -u /tmp/sums').output
        there = both.a.run(f'md5sum <{nfs.EXPORT}/holes').output
        if here != there:
            raise GuestError(f'the client reads {here}, the server has {there}')
        both.b.run(f'rm {nfs.MOUNT}/holes')


@tap.seconds(SECONDS)
def test_loss():
    both = served()
    with resources.given_back(both), nfs.mounted(both.b, both.a.card), storage.loss(both, LOSS):
        if tap.LONG:
            copy(both)
        storage.fio(both.b, FILE, WRITES)


def locks(guest, kind, path, part=''):
    """Whether it can have a lock (kind: flock, fcntl) without waiting for others."""
    return guest.run(f'exec file-lock {kind} try {path} {part}').output.strip() == 'locked'


def holding(guest, kind, path, part=''):
    holder = guest.spawn(f'exec file-lock {kind} hold {path} {part}')
    holder.wait_output('locked', timeout=60)
    return holder


def expect(what, found, wanted):
    if found != wanted:
        raise GuestError(f'{what}: {"locked" if found else "refused"}')


def test_locks():
    """Of two processes of the client, and of one of the server's, which sees those of clients as fcntl's."""
    both = served()
    own = f'{nfs.EXPORT}/file'
    with resources.given_back(both), nfs.mounted(both.b, both.a.card):
        both.b.run(f'echo something >{FILE}')
        for kind in 'flock', 'fcntl':
            holder = holding(both.b, kind, FILE)
            expect('the other process', locks(both.b, kind, FILE), False)
            expect('the server', locks(both.a, 'fcntl', own), False)
            holder.end()
            expect('the server, of what is free', locks(both.a, 'fcntl', own), True)
            holder = holding(both.a, 'fcntl', own)
            expect('the client', locks(both.b, kind, FILE), False)
            holder.end()
            expect('the client, of what is free', locks(both.b, kind, FILE), True)
        holder = holding(both.b, 'fcntl', FILE, '0 100')
        expect('another part', locks(both.b, 'fcntl', FILE, '100 100'), True)
        expect('a part of both', locks(both.b, 'fcntl', FILE, '99 100'), False)
        holder.end()


def returns(both, leave, back):
    """The server goes while files are written and one is locked, and what it had is there again when it is back."""
    own = f'{nfs.EXPORT}/locked'
    with nfs.mounted(both.b, both.a.card):
        both.b.run(f'echo something >{nfs.MOUNT}/locked')
        holder = holding(both.b, 'fcntl', f'{nfs.MOUNT}/locked')
        before = faults.counted(both)
        job = storage.begin(both.b, FILE, f'{WRITES} --loops=4')
        storage.wait_sent(both, job, before)
        leave()
        back()
        storage.report(job)
        expect('the server, of what the client has kept', locks(both.a, 'fcntl', own), False)
        holder.end()
        expect('the server, of what is free', locks(both.a, 'fcntl', own), True)


@tap.seconds(SECONDS)
def test_server_leaves_and_returns():
    both = served()
    with resources.given_back(both):
        returns(both, lambda: nfs.leave(both.a), lambda: nfs.serve(both.a))


@tap.only_long
@tap.seconds(SECONDS)
def test_server_switched_off():
    both = served()

    def back():
        storage.again(both, both.a)
        nfs.export_disk(both.a)
        nfs.serve(both.a)

    returns(both, both.a.stop, back)


@tap.only_long
@tap.seconds(SECONDS)
def test_figures():
    """Our card and Soft-RoCE, in the same guests. Nobody judges them."""
    both = served()
    for device in both.a.card, both.a.devices[storage.SOFT]:
        with nfs.mounted(both.b, device):
            storage.figures(both.b, FILE, f'NFS over {device.name}')


if __name__ == '__main__':
    tap.main()
