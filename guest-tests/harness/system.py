# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that are whole systems of a distribution's, with its kernel, systemd and udev: see scripts/build-system. Nothing of ours is in
them but the agent."""
import os

from . import clock, paths
from .devices import InfinibandCard, Nic, RoceCard
from .guest import Guest
from .lab import Machine

SYSTEMS = os.path.join(paths.BUILD, 'systems')
MEMORY, CPUS = 1024, 2
READY_SECONDS = 600  # an emulated systemd takes its time


class System(Guest):
    """folder: of the system, in SYSTEMS. root: its disk, if not the one that was built. keeps: whether what it writes there stays."""

    def __init__(self, *arguments, system, root=None, keeps=False, **options):
        super().__init__(*arguments, **options)
        self._system, self._keeps = os.path.join(SYSTEMS, system), keeps
        self._image = root or os.path.join(self._system, 'root.img')

    def wait_ready(self, timeout=READY_SECONDS):
        super().wait_ready(timeout)
        # Not all services are what one has who only boots: what matters is that they have come to an end.
        self.run('systemctl is-system-running --wait; udevadm settle', timeout, check=False)
        return self

    def kernel_line(self):
        return f'console=ttyS0 root=/dev/vda rw mitigations=off {clock.options()} loglevel=6 {self.append}'.strip()

    def switch_off(self):
        """As its user does, with all written."""
        self.spawn('systemctl poweroff')
        self.process.wait(READY_SECONDS)
        self.stop()

    def _root(self):
        return [self._image]

    def _boots(self):
        return ['-kernel', os.path.join(self._system, 'vmlinuz'), '-initrd', os.path.join(self._system, 'initrd.img'),
                '-append', self.kernel_line()]

    def _access(self, number):
        if number == 0:
            return 'cache=unsafe' if self._keeps else 'snapshot=on,file.locking=off'
        return super()._access(number)


class SystemMachine(Machine):
    """options: a System's."""

    def _guest(self, *arguments, **options):
        return System(*arguments, **{'memory': MEMORY, 'cpus': CPUS, **options})


class SystemNic(Nic):
    """Nobody has given it an address."""

    def configure(self):
        self.guest.run(f'name=$(basename /sys/bus/virtio/drivers/virtio_net/virtio*/net/*) && '
                       f'ip address replace {self.address()}/24 dev $name && ip link set $name up')


class NamedByUdev:
    """A card whose device has the name that udev gave it."""
    driver = 'rdma_hca'

    @property
    def name(self):
        return self.guest.run(f'ls /sys/bus/pci/drivers/{self.driver}/*/infiniband').output.strip()


class SystemInfinibandCard(NamedByUdev, InfinibandCard):
    pass


class SystemRoceCard(NamedByUdev, RoceCard):
    pass
