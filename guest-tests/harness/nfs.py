# SPDX-License-Identifier: GPL-2.0-or-later
"""NFS by RDMA, with Linux's server and client: the server exports the disk that is kept, with what it has to know of its
clients when it comes back, or a file system in memory."""
import contextlib

from . import storage

PORT = 20049
EXPORT = '/srv'
MOUNT = '/mnt/nfs'
# Seconds: how long a server that came back waits for clients to tell what they had. Linux's least are 10.
GRACE = 10


def export_disk(guest, make=False):
    """The export is a file system on the disk that is kept, whose journal makes it whole again; make: a new one."""
    disk = storage.disk(guest)
    mke2fs = f'mke2fs -q -t ext4 -F {disk} && ' if make else ''
    _export(guest, f'{mke2fs}modprobe ext4 && mount -t ext4 {disk}')


def export_memory(guest):
    """The export is in memory."""
    _export(guest, 'mount -t tmpfs none')


def _export(guest, mounts):
    guest.run(f'modprobe -a nfsd rpcrdma && mkdir -p {EXPORT} && {mounts} {EXPORT} && '
              f'mkdir -p {EXPORT}/.nfsd/v4recovery /var/lib /run && ln -sfn {EXPORT}/.nfsd /var/lib/nfs && '
              'mkdir -p /var/lib/nfs/rpc_pipefs /var/lib/nfs/nfsdcld && touch /var/lib/nfs/etab /var/lib/nfs/rmtab && sync')


def serve(guest):
    """Start the server. If it had clients when it was there the last time, it waits for them to tell what they had."""
    guest.run(f'grep -q /proc/fs/nfsd /proc/mounts || mount -t nfsd nfsd /proc/fs/nfsd; cd /proc/fs/nfsd && '
              f'echo {GRACE} >nfsv4leasetime && echo {GRACE} >nfsv4gracetime && '
              'echo 1048576 >max_block_size && '  # with so little memory it takes less by itself
              f'echo "{EXPORT} *(rw,no_root_squash,insecure,no_subtree_check,fsid=0)" >/etc/exports && '
              '{ pidof rpc.mountd >/dev/null || rpc.mountd -N 2 -N 3; } && exportfs -ra && '
              # nfsdcld keeps what the server has to know of its clients, newer kernels have no other way; a server does not wait
              # long for it to find the pipe.
              '{ grep -q rpc_pipefs /proc/mounts || mount -t rpc_pipefs rpc_pipefs /var/lib/nfs/rpc_pipefs; } && '
              '{ pidof nfsdcld >/dev/null || nfsdcld; } && '
              f'while rpc.nfsd -N 3 -V 4.2 --rdma={PORT} 4 || exit; do '
              "ls -l /proc/$(pidof nfsdcld)/fd | grep -q 'nfsd/cld$' && break; rpc.nfsd 0; done")


def leave(guest):
    """The server ends, and has no connections."""
    guest.run('rpc.nfsd 0')


def mount(guest, server, options=''):
    """Mount what is served at a device's address."""
    guest.run(f'modprobe -a nfsv4 rpcrdma && mkdir -p {MOUNT} && '
              f'mount.nfs4 -o rdma,port={PORT},vers=4.2{options} {server.address()}:/ {MOUNT}')


@contextlib.contextmanager
def mounted(guest, server, options=''):
    """Mounted inside."""
    mount(guest, server, options)
    yield
    guest.run(f'umount {MOUNT}')
