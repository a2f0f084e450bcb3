# SPDX-License-Identifier: GPL-2.0-or-later
"""Linux's SCSI target (LIO), by configfs: a logical unit on a file in memory, and the disk that an initiator has of it."""
from . import storage, wait

SIZE_MIB = 64
ROOT = '/sys/kernel/config/target'
UNIT = f'{ROOT}/core/fileio_0/unit'


def make_unit(guest):
    """Once in a guest, whatever serves it."""
    guest.run('modprobe -a target_core_mod target_core_file && '
              f'{storage.CONFIGFS} && '
              f'mkdir -p /back && mount -t tmpfs -o size={SIZE_MIB + 1}m none /back && truncate -s {SIZE_MIB}M /back/unit && '
              f'mkdir -p {UNIT} && echo fd_dev_name=/back/unit,fd_dev_size={SIZE_MIB << 20} >{UNIT}/control && '
              f'echo 1 >{UNIT}/enable')


def offer_unit(guest, group):
    """The unit is number 0 of a target's group."""
    guest.run(f'mkdir -p {group}/lun/lun_0 && ln -s {UNIT} {group}/lun/lun_0/unit')


def wait_disk(guest):
    """The disk that has come to the initiator."""
    found = wait.until(lambda: guest.run('cat /proc/partitions | grep -o "sd[a-z]$"', check=False).output.split(),
                       f'there: {guest.name}: a disk')
    return f'/dev/{found[0]}'
