# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the build put things."""
import os

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))
BUILD = os.path.join(TOP, 'build')
# Other versions than the usual ones have folders of their own: make gives them.
OF_QEMU = os.environ.get('HOST_QEMU') or BUILD
OF_RDMA_CORE = os.environ.get('GUEST_RDMA_CORE') or BUILD
_KERNEL = os.environ.get('GUEST_KERNEL') or BUILD
QEMU = os.path.join(OF_QEMU, 'qemu', 'qemu-system-x86_64')
QEMU_DATA = os.path.join(OF_QEMU, 'qemu-data')
# Of a distribution, without our card: see scripts/fetch-stock-qemu.
STOCK_QEMU = os.path.join(BUILD, 'stock', 'qemu-system-x86_64')
SWITCH = os.path.join(BUILD, 'hca-switch')
MAKE_CREDENTIALS = os.path.join(TOP, 'scripts', 'make-credentials')
GUEST = os.path.join(BUILD, 'guest')
OF_KERNEL = os.path.join(_KERNEL, 'guest')
KERNEL = os.path.join(OF_KERNEL, 'vmlinux')
# As a boot loader wants it; not there if the kernel is somebody's vmlinux.
BOOT = os.path.join(OF_KERNEL, 'kernel', 'boot')
DRIVER = os.path.join(_KERNEL, 'driver')
INITRAMFS = os.path.join(OF_KERNEL, 'initramfs')
# What the root of guests is made of, from the ground: what Debian has; layers that some have; and what is built here.
BASE = os.path.join(GUEST, 'base.squashfs')
LAYERS = {'apps': os.path.join(GUEST, 'apps.squashfs')}
BUILT = [os.path.join(OF_RDMA_CORE, 'guest', 'rdma-core.squashfs'), os.path.join(OF_RDMA_CORE, 'guest', 'programs.squashfs'),
         os.path.join(OF_KERNEL, 'modules.squashfs')]
# In their place in guests with the layer `debian`, which have nothing of ours but the tests' programs.
DEBIAN = [os.path.join(GUEST, 'debian.squashfs'), os.path.join(OF_RDMA_CORE, 'guest', 'programs.squashfs'),
          os.path.join(OF_KERNEL, 'debian-modules.squashfs')]
PYTHON_DISK = os.path.join(OF_RDMA_CORE, 'guest', 'python.squashfs')


def _state():
    """Where we write: what was built may be somebody else's."""
    if os.environ.get('RDMA_HCA_CACHE') or os.access(BUILD, os.W_OK):
        return os.environ.get('RDMA_HCA_CACHE') or BUILD
    return os.path.join(os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache'), 'rdma-hca')


STATE = _state()
# Of one run of a program; scripts/tap-run gives each a folder of its own.
RUN = os.environ.get('RUN_FOLDER') or os.path.join(STATE, 'run')
TEMPLATES = os.path.join(STATE, 'templates')


def other_versions():
    """The names of rdma-core and of the guests' kernel, where these are not the usual ones."""
    return [os.path.basename(folder) for folder in map(os.environ.get, ('GUEST_RDMA_CORE', 'GUEST_KERNEL')) if folder]
