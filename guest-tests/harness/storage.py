# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of storage protocols share: guests with a card and, beside it, Soft-RoCE; fio; a disk that outlives its
machine; losses."""
import contextlib
import json
import os

from . import faults, links, tap, wait
from .devices import Hca, Nic, RoceCard, SoftRoce
from .guest import GuestError
from .lab import Lab, Machine
from .labs import APPLICATIONS

DISK_MIB = 64
DISK = 'kept'  # its serial number, and its file in the lab's folder
SOFT = 1  # the slot of Soft-RoCE among a machine's devices

FIGURE_SECONDS = 20
TIMEOUT = 1500 if tap.LONG else 150  # of a fio
# Of every write fio keeps a checksum in the block, with its number, and compares all that it reads again. A
# process that has seen an error ends with one.
FIO = ('fio --name=t --direct=1 --ioengine=libaio --verify=crc32c --verify_fatal=1 --do_verify=1 --group_reporting '
       '--output-format=json')
SMALL = f'--rw=randwrite --bs=4k --iodepth=16 --size={48 if tap.LONG else 2}m'
MIXED = f'--rw=randwrite --bsrange=512-128k --iodepth=8 --size={48 if tap.LONG else 4}m'


class StorageLab(Lab):
    """prepare(lab) is called when it has started."""
    prepare = None

    def start(self):
        super().start()
        if self.prepare:
            self.prepare(self)
        return self


def lab(prepare=None, cards=(), **options):
    """Guest a has the storage, b uses it. Both have a card on one segment and Soft-RoCE on another; a has a disk that keeps what
    was written when it is switched off. cards: what else they are to have on the one segment."""
    cards = cards or [RoceCard('lan')] * 2
    devices = [(Nic('net'), SoftRoce('soft', subnet=2), card) for card in cards]
    drive = ['-drive', f'if=none,id={DISK},format=raw,file={DISK}',
             '-device', f'virtio-blk-pci,drive={DISK},serial={DISK},disable-legacy=on']
    options = {**APPLICATIONS, **options}
    both = StorageLab([Machine(*devices[0], arguments=drive, boots=False, **options), Machine(*devices[1], **options)],
                      {name: links.stream() for name in ('net', 'soft', 'lan')})
    both.prepare = prepare
    with open(os.path.join(both.folder, DISK), 'wb') as disk:
        disk.truncate(DISK_MIB << 20)
    return both


# Of kernels that have targets: where these are made.
CONFIGFS = '{ grep -q configfs /proc/mounts || mount -t configfs none /sys/kernel/config; }'


def disk(guest):
    """The device of the disk that is kept."""
    return guest.run(f'cd /sys/block && for disk in vd*; do [ "$(cat $disk/serial)" != {DISK} ] || echo /dev/$disk; done').output.strip()


def again(both, guest):
    """A guest that was stopped is started."""
    guest.start()
    both.wait_again(guest)


def fio(guest, device, options, seed=1, timeout=TIMEOUT):
    """Write to a device or file and compare; gives what fio reports of the job."""
    return report(begin(guest, device, options, seed), timeout)


def write(guest, device):
    """Write small blocks and others to a device, and compare."""
    fio(guest, device, SMALL)
    fio(guest, device, MIXED, seed=2)


def verify(guest, device):
    """Compare what the last of write() has left."""
    fio(guest, device, f'{MIXED} --verify_only', seed=2)


def begin(guest, device, options, seed=1):
    """Begin to write to a device or file, and compare."""
    return guest.spawn(f'exec {FIO} --filename={device} --randseed={seed} {options}')


def fails(command, *errors, timeout=TIMEOUT):
    """Wait for the end of a fio that has to tell of one of these errors."""
    result = command.wait(timeout, check=False)
    if not result.status or not any(error in result.output for error in errors):
        raise GuestError(f'fio did not fail with {" or ".join(errors)}:\n{result}')


def figures(guest, device, title):
    """Print how fast a device or file is."""
    for options in '--rw=randread --bs=4k --iodepth=16', '--rw=read --bs=128k --iodepth=4', '--rw=write --bs=128k --iodepth=4':
        script = (f'exec fio --name=t --direct=1 --ioengine=libaio --output-format=json --filename={device} --size=16m '
                  f'--time_based --runtime={FIGURE_SECONDS} {options}')
        job = report(guest.spawn(script))
        way = job['write' if '=write' in options else 'read']
        print(f'# {title}: {options}: {way["iops"]:.0f}/s, {way["bw"] / 1024:.2f} MiB/s')


def report(command, timeout=TIMEOUT, check=True):
    """Wait for the end of a fio that was started; what it reports of its job. check: as of Command.wait()."""
    output = command.wait(timeout, check).output
    try:
        job, = json.loads(output[output.index('{'):])['jobs']
    except (ValueError, KeyError) as error:
        raise GuestError(f'fio reported nothing:\n{output}') from error
    if job['error']:
        raise GuestError(f'fio: error {job["error"]}:\n{output}')
    return job


def writing(both, device, options):
    """A fio of guest b that has begun to write."""
    before = faults.counted(both)
    job = begin(both.b, device, options)
    wait_sent(both, job, before)
    return job


def wait_sent(both, job, before):
    """Wait until the cards have done some work since, unless the job has come to its end."""
    wait.until(lambda: faults.moved(both, before)['requester wqes_completed'] > 500 or not job.running, 'working', timeout=60)


@contextlib.contextmanager
def loss(both, plan):
    """Packets are lost inside, and some were sent again: by us, unless the other side is a stranger, who may have had to."""
    with faults.losing(both, plan) as change:
        yield
    stranger = any(not isinstance(guest.card, Hca) for guest in both.guests)
    if not (stranger or change['requester retransmissions']):
        raise GuestError('nothing was sent again')
