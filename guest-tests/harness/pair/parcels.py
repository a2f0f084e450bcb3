# SPDX-License-Identifier: GPL-2.0-or-later
"""What goes into the guests of a job, and what comes out: archives on disks of their own, as guests have no network to us."""
import os
import shutil
import tarfile

from .. import paths, remains
from ..errors import GuestError

HOME = '/root'  # where commands run
PROGRAMS = os.path.join(paths.TOP, 'ci', 'guest')  # that all guests get
IN, OUT = 'parcel-in', 'parcel-out'  # the disks' serial numbers
LAST_SLOT = 0x1d  # machines have something of their own behind it
MOST_IN = 16 << 30  # bytes of a guest; the files have holes
MOST_OUT = 4 << 30


def path_pair(text):
    """PATH[:DEST] of --copy-in."""
    path, _, where = text.partition(':')
    return path, os.path.join(HOME, where or os.path.basename(os.path.abspath(path)))


def device(serial):
    """A word of a shell for the disk with this serial number."""
    return f'/dev/$(cd /sys/block && grep -lx {serial} vd*/serial | cut -d / -f 1)'


class Parcel:
    """What all guests get. pairs: (PATH, DEST)."""

    def __init__(self, pairs):
        for path, _ in pairs:
            if not os.path.exists(path):
                raise GuestError(f'--copy-in: there is no {path}')
        self._pairs = pairs

    def drives(self, guest):
        """QEMU's arguments for the disks of a guest, which are made."""
        self._pack(os.path.join(guest.folder, f'{guest.name}-{IN}'))
        with open(out_of(guest), 'wb') as disk:
            disk.truncate(MOST_OUT)
        return [*self._drive(guest, IN, 0, ',readonly=on'), *self._drive(guest, OUT, 1, '')]

    @staticmethod
    def _drive(guest, serial, number, options):
        """Behind those of its root, which a guest that boots looks for by their order."""
        return ['-drive', f'if=none,id={serial},format=raw,file={guest.name}-{serial}{options}',
                '-device', f'virtio-blk-pci,drive={serial},serial={serial},addr={LAST_SLOT - number:#x},disable-legacy=on']

    def _pack(self, path):
        with tarfile.open(path, 'w', format=tarfile.GNU_FORMAT) as archive:
            for name in os.listdir(PROGRAMS):
                archive.add(os.path.join(PROGRAMS, name), f'usr/bin/{name}', filter=self._owned_by_root)
            for source, where in self._pairs:
                archive.add(source, where.lstrip('/'), filter=self._owned_by_root)
        # It is followed by nothing: all disks of this kind have one size, also those of a guest that was kept.
        os.truncate(path, MOST_IN)

    @staticmethod
    def _owned_by_root(member):
        member.uid = member.gid = 0
        member.uname = member.gname = 'root'
        return member


def out_of(guest):
    return os.path.join(guest.folder, f'{guest.name}-{OUT}')


def unpack(guest):
    guest.run(f'mkdir -p {HOME} && tar -x -f {device(IN)} -C /', 300)


def collect(lab, given):
    """Put into the folder of artifacts what the commands left and what the guests' consoles and cards say. Guests are switched off
    for it."""
    os.makedirs(given.artifacts, exist_ok=True)
    for guest in lab.guests:
        if given.copy_out:
            _copy_out(guest, given.copy_out, os.path.join(given.artifacts, guest.name))
    remains.leave([lab], 'end', [])
    for guest in lab.guests:
        guest.stop()
    for name in os.listdir(lab.folder):
        path = os.path.join(lab.folder, name)
        if os.path.isfile(path) and not name.endswith((IN, OUT)) and os.path.getsize(path):
            shutil.copy(path, given.artifacts)


def _copy_out(guest, wanted, folder):
    names = ' '.join(f"'{name}'" for name in wanted)
    there = guest.run(f'cd {HOME} && there= && for name in {names}; do [ -e "$name" ] && there="$there $name"; done; '
                      f'[ -z "$there" ] || {{ tar -c -f {device(OUT)} $there && sync && echo yes; }}', 300)
    if 'yes' not in there.output:
        return
    with tarfile.open(out_of(guest), 'r:') as archive:
        for member in archive:
            # A guest may say anything: nothing gets outside the folder, and all are files of ours.
            path = os.path.join(folder, os.path.normpath('/' + member.name).lstrip('/'))
            if member.isreg():
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, 'wb') as file:
                    shutil.copyfileobj(archive.extractfile(member), file)
