# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the build put things."""
import os

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))
BUILD = os.path.join(TOP, 'build')
QEMU = os.path.join(BUILD, 'qemu', 'qemu-system-x86_64')
QEMU_DATA = os.path.join(BUILD, 'qemu-data')
GUEST = os.path.join(BUILD, 'guest')
KERNEL = os.path.join(GUEST, 'vmlinux')
INITRAMFS = os.path.join(GUEST, 'initramfs')
DISKS = [os.path.join(GUEST, 'base.squashfs'), os.path.join(GUEST, 'own.squashfs')]
PYTHON_DISK = os.path.join(GUEST, 'python.squashfs')
RUN = os.path.join(BUILD, 'run')
