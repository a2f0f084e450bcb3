# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines that leave their QEMU, and go on in another one. What runs in them goes on."""
import contextlib
import os

from . import wait
from .check import expect
from .errors import GuestError

SECONDS = 60


def allow(monitor, *capabilities, state=True):
    """Capabilities of migration; state=False takes them back."""
    monitor.execute('migrate-set-capabilities', {'capabilities': [{'capability': name, 'state': state} for name in capabilities]})


def moved(monitor):
    """Wait until what a machine is was written, or read."""
    def completed():
        found = monitor.execute('query-migrate')
        if found.get('status') == 'failed':
            raise GuestError(f'a machine did not move: {found}')
        return found.get('status') == 'completed'

    wait.until(completed, 'a machine written, or read', SECONDS, pause=0.005)


def write(monitor, path):
    """Write what a machine is to a file; it stands still then."""
    monitor.execute('migrate', {'uri': f'file:{path}'})
    moved(monitor)


def read(monitor, path):
    """Have a machine that was started with -incoming defer go on from it."""
    monitor.execute('migrate-incoming', {'uri': f'file:{path}'})
    moved(monitor)


def suspend(guest):
    """Write what it is to a file, and end its QEMU. The file is read once, by resume()."""
    path = os.path.join(guest.folder, f'{guest.name}.state')
    write(guest.monitor, path)
    guest.leave()
    return path


def resume(guest, path):
    """Go on from what suspend() wrote."""
    guest.enter()
    read(guest.monitor, path)
    os.unlink(path)


def by_file(guest):
    """Go on in another QEMU that was started when the first one had ended."""
    resume(guest, suspend(guest))


def _begin(guest, *capabilities):
    """Live, by a unix socket; gives the monitor of the other QEMU."""
    path = f'unix:{guest.name}.migration'  # in the folder that both are in: a whole path may be too long for a socket's name
    there = guest.enter_next()
    for monitor in there, guest.monitor:
        allow(monitor, *capabilities)
    there.execute('migrate-incoming', {'uri': path})
    guest.qmp('migrate', uri=path)
    return there


def _end(guest, there):
    """It goes on in the other QEMU; gives what QEMU has counted of its memory."""
    moved(guest.monitor)
    moved(there)
    memory = guest.qmp('query-migrate')['ram']
    guest.leave()
    return memory


def migrate(guest, *capabilities):
    """Go on in another QEMU, live; gives what QEMU has counted of its memory."""
    there = _begin(guest, *capabilities)
    if 'postcopy-ram' in capabilities:
        guest.qmp('migrate-start-postcopy')
    return _end(guest, there)


# Of a migration, in bytes a second: too little for it to come to its end, and enough.
SLOW, FAST = 1 << 20, 1 << 30


def _begin_slowly(guest):
    """It does not come to its end."""
    guest.qmp('migrate-set-parameters', max_bandwidth=SLOW)
    there = _begin(guest)
    wait.until(lambda: guest.qmp('query-migrate').get('status') == 'active', 'moving')
    return there


def fail(guest):
    """Begin to move live, and have the other QEMU end in the middle."""
    _begin_slowly(guest)
    guest.stay()
    wait.until(lambda: guest.qmp('query-migrate')['status'] == 'failed', 'failed: a move')
    guest.qmp('migrate-set-parameters', max_bandwidth=FAST)


@contextlib.contextmanager
def migrating(guest):
    """Live, and under way as long as the block lasts: then the guest goes on in another QEMU."""
    there = _begin_slowly(guest)
    yield
    expect('moving', guest.qmp('query-migrate')['status'] == 'active')
    guest.qmp('migrate-set-parameters', max_bandwidth=FAST)
    _end(guest, there)


class Snapshots:
    """States of a running machine, in a disk of its own that only QEMU sees (savevm, loadvm)."""

    def __init__(self, guest):
        self._guest = guest
        self._job('blockdev-create', options={'driver': 'file', 'filename': f'{guest.name}.qcow2', 'size': 0})
        file = {'driver': 'file', 'filename': f'{guest.name}.qcow2'}
        guest.qmp('blockdev-add', **file, node_name='snapshots-file')
        self._job('blockdev-create', options={'driver': 'qcow2', 'file': 'snapshots-file', 'size': 1 << 20})
        guest.qmp('blockdev-add', driver='qcow2', file='snapshots-file', node_name='snapshots')

    def save(self, tag):
        self._job('snapshot-save', tag=tag, vmstate='snapshots', devices=['snapshots'])

    def go_back(self, tag):
        """The machine stands, as it was then."""
        self._guest.qmp('stop')
        self._job('snapshot-load', tag=tag, vmstate='snapshots', devices=['snapshots'])

    def go_on(self):
        """From there; its agent does not know who listened to it."""
        self._guest.qmp('cont')
        self._guest.come_again()

    def load(self, tag):
        """The machine goes on, as it did then."""
        self.go_back(tag)
        self.go_on()

    def _job(self, command, **arguments):
        self._guest.qmp(command, job_id='snapshots', **arguments)
        job = wait.until(lambda: next((job for job in self._guest.qmp('query-jobs') if job['status'] == 'concluded'), None),
                         f'done: {command}', SECONDS, pause=0.01)
        self._guest.qmp('job-dismiss', id='snapshots')
        if 'error' in job:
            raise GuestError(f'{command}: {job["error"]}')
