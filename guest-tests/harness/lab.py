# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines, and the links between their devices."""
import atexit
import collections
import itertools
import os
import shutil

from . import accelerator, paths, template
from .arch import HOST
from .guest import Guest, GuestError


def _arch_of(number):
    """Of a machine by its number in its lab: PEER_ARCH in the environment is for each second one."""
    return os.environ.get('PEER_ARCH') or HOST if number % 2 == 0 else HOST


class Machine:
    """What a guest is to be. devices: see devices.py; the last one is its `card`. boots: by itself, where others go on from a
    template; if not said, those do that have arguments or a launch of their own. options: a Guest's."""

    def __init__(self, *devices, boots=None, **options):
        self.devices, self.options = devices, options
        self.boots = 'arguments' in options or 'launch' in options if boots is None else boots

    def guest(self, folder, number, plug):
        """The guest; plug(link) takes the next end of a link and gives the backend and arguments of QEMU."""
        options = {'arch': _arch_of(number), **self.options}
        if options['arch'] != HOST:
            options['accelerator'] = 'tcg'
        guest = self._guest(f'guest{number}', folder, number=number, **{'accelerator': accelerator.choose(), **options})
        for slot, description in enumerate(self.devices):
            backend, arguments = plug(description.link) if description.link else (None, [])
            self._put(guest, description.put_into(guest, slot, backend), arguments)
        return guest

    def _guest(self, *arguments, **options):
        guest = Guest(*arguments, **options)
        guest.template = None if self.boots else template.of(guest)
        return guest

    def _put(self, guest, device, arguments):
        """Have the guest's QEMU make it; arguments: those of what it is plugged into."""
        guest.arguments += arguments + device.arguments()


class Lab:
    """Guests, named guest1, guest2 and so on, and links (see links.py) by the names that their devices have for them.
    `with` starts them, and stops them after looking for complaints; where the inside raises, they are left to tap.py."""

    def __init__(self, machines, links=None):
        self.folder = os.path.join(paths.RUN, f'lab-{os.getpid()}-{next(_numbers)}')
        self.links = links or {}
        taken = collections.Counter()

        def plug(name):
            taken[name] += 1
            return self.links[name].end(name, taken[name] - 1)

        self.guests = [machine.guest(self.folder, number, plug) for number, machine in enumerate(machines, 1)]
        _labs.append(self)

    @property
    def a(self):
        return self.guests[0]

    @property
    def b(self):
        return self.guests[1]

    def start(self):
        """Start all guests at once, and wait until their devices can be used."""
        for link in self.links.values():
            link.start(self.folder)
        for guest in self.guests:
            guest.start()
        for guest in self.guests:
            guest.wait_ready()
        self.configure()
        return self

    def wait_again(self, guest):
        """Wait until a guest that starts once more is up, and has its devices as they were."""
        guest.wait_ready()
        self.configure(guest)

    def configure(self, *guests):
        """Give the devices of these guests (none: all) what a boot has not given them, and wait until they can be used."""
        for guest in guests or self.guests:
            for device in guest.devices:
                device.configure()
        self.wait_active()

    def devices(self):
        return [device for guest in self.guests for device in guest.devices]

    def wait_active(self):
        for device in self.devices():
            device.wait_active()

    def stop(self, keep=False):
        """Switch all off. keep: leave their consoles and logs in the folder."""
        for guest in self.guests:
            guest.stop()
        for link in self.links.values():
            link.stop()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)
        if self in _labs:
            _labs.remove(self)

    def check(self):
        """Raise what a guest's kernel, or a QEMU, complained of."""
        trouble = self.trouble()
        if trouble:
            raise GuestError('a guest complains:\n' + '\n'.join(trouble))

    def trouble(self):
        return [line for guest in self.guests for line in guest.trouble()]

    def __enter__(self):
        return self.start()

    def __exit__(self, *exception):
        if not any(exception):
            self.check()
            self.stop()


_labs = []  # those that were made, and not stopped
_numbers = itertools.count(1)


def running():
    return list(_labs)


@atexit.register
def stop_all(keep=False):
    for lab in running():
        lab.stop(keep)
