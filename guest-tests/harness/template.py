# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that do not boot: each goes on from what was kept of a machine that had, as they all have the same in memory then. A
template is made when it is first asked for, and made anew when what guests are made of has changed. Its memory is a file, which
guests map for themselves: what they do not write they share."""
import contextlib
import fcntl
import hashlib
import json
import os
import shutil

from . import moving, paths
from .arch import ARCHES
from .errors import GuestError
from .guest import Guest
from .patience import FACTOR

STAYS = 'x-ignore-shared'  # the capability: memory is where it was


def wake(monitor, state):
    """Have a machine that was started with -incoming defer go on from a file. It may move afterwards as any other."""
    rounds = monitor.execute('query-migrate-parameters')['announce-rounds']
    moving.allow(monitor, STAYS)
    # It has not come from elsewhere. And QEMU 10.0 may crash when it announces a card by a stream that does not listen yet.
    monitor.execute('migrate-set-parameters', {'announce-rounds': 0})
    moving.read(monitor, state)
    monitor.execute('migrate-set-parameters', {'announce-rounds': rounds})
    moving.allow(monitor, STAYS, state=False)


def files_of(arch, layers, disks):
    """What a guest is made of."""
    return [arch.qemu, arch.kernel, arch.initramfs, *arch.disks_of(layers), *disks]


@contextlib.contextmanager
def made(folder, files):
    """Nobody else makes what is in the folder, and the inside does, unless it is told that this is not older than the files; then
    it is there."""
    os.makedirs(folder, exist_ok=True)
    of = os.path.join(folder, 'made-of')
    machine = os.path.join(os.path.dirname(__file__), 'guest.py')
    with open(os.path.join(folder, 'lock'), 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another program may be making it
        ingredients = json.dumps([[path, os.stat(path).st_mtime_ns, os.stat(path).st_size] for path in [machine, *files]])
        if _read(of) == ingredients:
            yield True
            return
        with contextlib.suppress(FileNotFoundError):
            os.unlink(of)
        yield False
        with open(of, 'w') as file:
            file.write(ingredients)


def _read(path):
    with contextlib.suppress(FileNotFoundError):
        with open(path) as file:
            return file.read()


class Template:
    """What guests of one kind go on from. kind: arch, cpus, cpu, memory, accelerator, machine, append, layers and disks, as of Guest."""

    WAKES = 'guest-wake {number}'  # the program with which a guest becomes itself

    def __init__(self, **kind):
        self.kind = kind
        made_of = [kind, FACTOR, self._files()]
        name = hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:16]
        self.folder = os.path.join(paths.TEMPLATES, name)
        self.memory, self._state = (os.path.join(self.folder, name) for name in ('memory', 'state'))

    def ensure(self):
        """Have it there."""
        with made(self.folder, self._files()) as fresh:
            if not fresh:
                self._make()

    def wake(self, monitor):
        wake(monitor, self._state)

    def _files(self):
        return files_of(ARCHES[self.kind['arch']], self.kind['layers'], self.kind['disks'])

    def _make(self):
        """Guests may be using the files of before; these stay theirs."""
        new = {path: f'{path}.new' for path in (self.memory, self._state)}
        for path in new.values():
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        folder = os.path.join(paths.RUN, f'template-{os.getpid()}-{os.path.basename(self.folder)}')
        kind = {**self.kind, 'append': f'{self.kind["append"]} guest.template=1'.strip()}
        guest = Guest('template', folder, **kind)
        guest.memory_file, guest.shares_memory = new[self.memory], True
        try:
            guest.start().wait_ready()
            guest.run('sync')
            moving.allow(guest.monitor, STAYS)
            moving.write(guest.monitor, new[self._state])
            trouble = guest.trouble()
            if trouble:
                raise GuestError('a template complains:\n' + '\n'.join(trouble))
        finally:
            guest.stop()
        shutil.rmtree(folder)
        for path, made in new.items():
            os.rename(made, path)


def of(guest):
    """What it can go on from; None with TEMPLATES=0 in the environment, and with KVM, which boots in a second."""
    if os.environ.get('TEMPLATES') == '0' or guest.accelerator != 'tcg':
        return None
    return Template(arch=guest.arch.name, cpus=guest.cpus, cpu=guest.cpu, memory=guest.memory, accelerator=guest.accelerator, machine=guest.machine,
                    append=guest.append, layers=guest.layers, disks=guest.disks)
