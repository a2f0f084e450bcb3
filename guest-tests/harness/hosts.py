# SPDX-License-Identifier: GPL-2.0-or-later
"""Two hosts: network namespaces with an Ethernet between them, in each of which a machine of a lab runs."""
import contextlib
import os
import signal
import subprocess

from . import paths, wait
from .errors import GuestError
from .guest import die_with
from .links import Link

ADDRESSES = ['10.77.0.1', '10.77.0.2']
PORT = 7471  # of a namespace that nobody else is in


class Hosts(Link):
    """The link of two machines, over TCP between their hosts. ends: as of Link, with {host1} for the address of the first one. The
    machines are launched by launch(0) and launch(1)."""

    def __init__(self, *ends):
        super().__init__(*[[argument.replace('{host1}', ADDRESSES[0]) for argument in end] for end in ends])
        self._holders = []

    @staticmethod
    def launch(number):
        """The launch of a Guest that runs on a host."""
        return [f'./host{number}', paths.QEMU, '-L', paths.QEMU_DATA]

    def start(self, folder):
        """Who is not root has a user namespace, too, where he is."""
        first = self._hold(['unshare', *([] if os.getuid() == 0 else ['--user', '--map-root-user']), '--net', 'sleep', 'infinity'])
        self._hold([*self._enter(first), 'unshare', '--net', 'sleep', 'infinity'])
        for number, holder in enumerate(self._holders):
            path = os.path.join(folder, f'host{number}')
            with open(path, 'w') as script:
                script.write(f'#!/bin/sh\nexec {" ".join(self._enter(holder))} "$@"\n')
            os.chmod(path, 0o755)
        a, b = self._holders
        self._run(a, f'ip link add wire type veth peer name wire netns {b.pid}')
        for holder, address in zip(self._holders, ADDRESSES):
            self._run(holder, f'ip address add {address}/24 dev wire && ip link set lo up && ip link set wire up')

    def stop(self):
        for holder in self._holders:
            with contextlib.suppress(ProcessLookupError):
                holder.send_signal(signal.SIGKILL)
            holder.wait()
        self._holders = []

    def cut(self, is_cut):
        """Whether nothing passes between the hosts."""
        self._run(self._holders[0], f'ip link set wire {"down" if is_cut else "up"}')

    def _hold(self, command):
        before = os.readlink('/proc/self/ns/net') if not self._holders else os.readlink(f'/proc/{self._holders[0].pid}/ns/net')
        holder = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=die_with(os.getpid()))
        self._holders.append(holder)

        def is_there():
            with contextlib.suppress(OSError):
                return os.readlink(f'/proc/{holder.pid}/ns/net') not in (before, os.readlink('/proc/self/ns/net'))
            return False

        wait.until(is_there, 'there: a network namespace', 10, pause=0.01)
        return holder

    @staticmethod
    def _enter(holder):
        return ['nsenter', '-t', str(holder.pid), *([] if os.getuid() == 0 else ['--user', '--preserve-credentials']), '--net']

    def _run(self, holder, script):
        done = subprocess.run([*self._enter(holder), 'sh', '-c', script], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise GuestError(f'{script}: {done.stderr}')


def cable():
    """Of cards."""
    where = f'rdma-hca-cable,id={{id}},type=inet,host={{host1}},port={PORT},reconnect-ms=100'
    return Hosts(['-object', f'{where},server=on'], ['-object', f'{where},server=off'])


def segment():
    """Of any network cards."""
    where = f'stream,id={{id}},addr.type=inet,addr.host={{host1}},addr.port={PORT}'
    return Hosts(['-netdev', f'{where},server=on'], ['-netdev', f'{where},server=off,reconnect-ms=100'])
