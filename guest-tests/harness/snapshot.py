# SPDX-License-Identifier: GPL-2.0-or-later
"""Labs that go on from what was kept of one that was up, its cards and its cable included: see template.py, which keeps a machine
without devices. All its guests are of one moment: each that is kept stands still from then on, and the next one's card waits."""
import hashlib
import json
import os
import shutil

from . import moving, paths, template
from .patience import FACTOR

FOLDER = os.path.join(paths.STATE, 'snapshots')


class Moment:
    """What a guest of the lab goes on from: its template."""
    WAKES = 'wake'  # its devices are there, and set up

    def __init__(self, folder, guest):
        self.memory, self.state = (os.path.join(folder, f'{guest.name}.{kind}') for kind in ('memory', 'state'))

    def ensure(self):
        """It is there, or nobody would have it."""

    def wake(self, monitor):
        template.wake(monitor, self.state)


class Snapshot:
    """Of the lab that make() gives, whose guests boot. Made anew when what guests are made of has changed."""

    def __init__(self, make):
        self._make = make

    def ensure(self):
        """Have it; gives its folder."""
        lab = self._make()
        folder = self._folder(lab)
        with template.made(folder, self._ingredients(lab)) as fresh:
            if not fresh:
                self._take(lab, folder)
        lab.stop()
        return folder

    def lab(self):
        """A lab that goes on from it, not started."""
        folder = self.ensure()
        lab = self._make()
        for guest in lab.guests:
            guest.template = Moment(folder, guest)
        return lab

    @staticmethod
    def _folder(lab):
        made_of = [FACTOR, *[guest.command_line() for guest in lab.guests]]
        return os.path.join(FOLDER, hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:16])

    @staticmethod
    def _ingredients(lab):
        return sorted({path for guest in lab.guests for path in template.files_of(guest.arch, guest.layers, guest.disks)})

    @staticmethod
    def _take(lab, folder):
        moments = [Moment(f'{folder}.new', guest) for guest in lab.guests]
        shutil.rmtree(f'{folder}.new', ignore_errors=True)
        os.makedirs(f'{folder}.new')
        for guest, moment in zip(lab.guests, moments):
            guest.memory_file, guest.shares_memory = moment.memory, True
        with lab:
            for guest in lab.guests:
                guest.run('sync')
                moving.allow(guest.monitor, template.STAYS)
            for guest, moment in zip(lab.guests, moments):
                moving.write(guest.monitor, moment.state)
        # Guests may be using the files of before; these stay theirs.
        for moment in moments:
            for path in moment.memory, moment.state:
                os.rename(path, os.path.join(folder, os.path.basename(path)))
        os.rmdir(f'{folder}.new')
