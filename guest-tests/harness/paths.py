# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the build put things."""
import os

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))
BUILD = os.path.join(TOP, 'build')
QEMU = os.path.join(BUILD, 'qemu', 'qemu-system-x86_64')
QEMU_DATA = os.path.join(BUILD, 'qemu-data')
SWITCH = os.path.join(BUILD, 'hca-switch')
GUEST = os.path.join(BUILD, 'guest')
# What was built for another kernel than Debian's is in a folder of that kernel's own: make KERNEL=...
OF_KERNEL = os.path.join(os.environ.get('GUEST_KERNEL') or BUILD, 'guest')
KERNEL = os.path.join(OF_KERNEL, 'vmlinux')
# As a boot loader wants it; not there if the kernel is somebody's vmlinux.
BOOT = os.path.join(os.environ.get('GUEST_KERNEL') or BUILD, 'guest', 'kernel', 'boot')
INITRAMFS = os.path.join(OF_KERNEL, 'initramfs')
DISKS = [os.path.join(GUEST, 'base.squashfs'), os.path.join(OF_KERNEL, 'own.squashfs')]
LAYERS = {'apps': os.path.join(GUEST, 'apps.squashfs')}
PYTHON_DISK = os.path.join(GUEST, 'python.squashfs')
# Of one run of a program; scripts/tap-run gives each a folder of its own.
RUN = os.environ.get('RUN_FOLDER') or os.path.join(BUILD, 'run')


def disks_of(layers):
    """What the root of a guest with these layers is made of."""
    return DISKS + [LAYERS[layer] for layer in layers]
