# SPDX-License-Identifier: GPL-2.0-or-later
"""Architectures of guests, by Debian's names: what a machine is, and where what it is made of lies."""
import dataclasses
import os

from . import paths

HOST = 'amd64'


@dataclasses.dataclass(frozen=True)
class Arch:
    """qemu, data: the emulator and what it loads. machine: QEMU's, as the usual guests have it. cpu: the model when it is emulated.
    console: Linux's name of its serial port. base, built: of its root, see disks_of()."""
    name: str
    qemu: str
    data: str
    machine: str
    cpu: str
    console: str
    kernel: str
    initramfs: str
    base: str
    built: tuple

    def disks_of(self, layers):
        """What the root of a guest with these layers is made of, from the ground."""
        built = paths.DEBIAN if 'debian' in layers else self.built
        return [self.base, *(paths.LAYERS[layer] for layer in layers if layer != 'debian'), *built]


def _foreign(name, program, **options):
    """One whose guests are built in a folder of their own: make build ARCH=NAME."""
    folder = os.path.join(paths.BUILD, name)
    guest = os.path.join(folder, 'guest')
    built = tuple(os.path.join(guest, f'{part}.squashfs') for part in ('rdma-core', 'programs', 'modules'))
    return Arch(name=name, qemu=os.path.join(folder, 'qemu', program), data=os.path.join(folder, 'qemu-data'),
                kernel=os.path.join(guest, 'vmlinux'), initramfs=os.path.join(guest, 'initramfs'), base=os.path.join(guest, 'base.squashfs'), built=built, **options)


_ARCHES = (
    # With what the processor `max` has beside it (SMAP, LA57, AVX, fast string instructions) Linux does what an emulator has a fifth
    # more work with.
    Arch(name=HOST, qemu=paths.QEMU, data=paths.QEMU_DATA, machine='q35,usb=off,vmport=off,sata=off,smbus=off,hpet=off,i8042=off',
         cpu='Westmere,+rdrand,+arat', console='ttyS0', kernel=paths.KERNEL, initramfs=paths.INITRAMFS, base=paths.BASE,
         built=tuple(paths.BUILT)),
    # Message-signalled interrupts want a GICv3 with its translation service.
    _foreign('arm64', 'qemu-system-aarch64', machine='virt,gic-version=3', cpu='cortex-a57', console='ttyAMA0'),
)
ARCHES = {arch.name: arch for arch in _ARCHES}
