# SPDX-License-Identifier: GPL-2.0-or-later
"""InfiniBand switches (hca-switch), processes of the host, with cables to guests and to each other."""
import contextlib
import os
import re
import signal
import socket
import subprocess

from . import paths, wait
from .guest import GuestError
from .links import TLS_FOLDER, Link, free_port, make_credentials, with_tls
from .patience import patient


class Switch:
    """A process. addresses: of its ports, in their order, files in the folder where it runs."""

    def __init__(self, name, number, addresses, options=()):
        self.name, self.addresses, self.options = name, addresses, [f'--guid={number}', f'--name={name}', *options]
        self.process = self._folder = None

    def start(self, folder):
        self._folder = folder
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f'{self.name}.log'), 'a') as log:
            command = [paths.SWITCH, *self.options, '--verbose', f'--control={self.name}-control', *self.addresses]
            self.process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait.until(self._answers, lambda: f'answering: {self.name}: {self.log}')

    @property
    def log(self):
        with open(os.path.join(self._folder, f'{self.name}.log')) as file:
            return file.read()

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.wait()

    @contextlib.contextmanager
    def stalled(self):
        """It takes nothing, and gives nothing."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def restart(self):
        self.kill()
        self.start(self._folder)

    def stop(self):
        """It ends well, and has not done so before."""
        if self.process and self.process.poll() is None:
            self.kill(signal.SIGTERM)
        if self.process and self.process.returncode:
            raise GuestError(f'{self.name} ended with {self.process.returncode}: {self.log}')

    def ask(self, command):
        """The answer to a command of its control socket, without the last line, which says that it was done."""
        here = os.open(self._folder, os.O_PATH)
        try:
            with socket.socket(socket.AF_UNIX) as control:
                # A path of its own length: those of sockets are short.
                control.connect(f'/proc/self/fd/{here}/{self.name}-control')
                control.settimeout(patient(10))
                control.sendall(f'{command}\n'.encode())
                answer = ''
                while not re.search(r'^(ok|error: .*)\n', answer, re.M):
                    answer += control.recv(65536).decode()
        finally:
            os.close(here)
        *lines, last = answer.splitlines()
        if last != 'ok':
            raise GuestError(f'{self.name}: {command}: {last}')
        return lines

    def _answers(self):
        if self.process.poll() is not None:
            raise GuestError(f'{self.name} has ended: {self.log}')
        try:
            return self.ask('ports')
        except OSError:
            return None


class Fabric(Link):
    """ends: for each end the number of its switch, from 0; trunks: pairs of switches that a cable joins. Ports are in this order:
    those of the ends, then those of the trunks."""

    def __init__(self, ends, trunks=(), options=()):
        super().__init__(*(['-object', f'rdma-hca-cable,id={{id}},type=unix,path={{name}}-end{number},reconnect-ms=100']
                           for number in range(len(ends))))
        self._where, self._trunks, self._options, self.switches = ends, trunks, options, []

    def end(self, name, number):
        if not self.switches:
            self._make(name)
        return super().end(name, number)

    def _make(self, name):
        number = 1 + max([*self._where, *(at for trunk in self._trunks for at in trunk)])
        addresses = [[] for _ in range(number)]
        for end, at in enumerate(self._where):
            addresses[at].append(f'unix-listen:{name}-end{end}')
        for trunk, (one, other) in enumerate(self._trunks):
            addresses[one].append(f'unix-listen:{name}-trunk{trunk}')
            addresses[other].append(f'unix:{name}-trunk{trunk}')
        self.switches = [Switch(f'switch{at + 1}', at + 1, addresses[at], self._options) for at in range(number)]

    def port_of_end(self, end):
        """The switch of an end, and the port's number."""
        at = self._where[end]
        return self.switches[at], 1 + self._where[:end].count(at)

    def port_of_trunk(self, trunk, side):
        at = self._trunks[trunk][side]
        before = sum(at in each for each in self._trunks[:trunk])
        return self.switches[at], 1 + self._where.count(at) + before

    def start(self, folder):
        for switch in self.switches:
            switch.start(folder)

    def stop(self):
        """All of them, whatever one says of its end."""
        with contextlib.ExitStack() as ends:
            for switch in self.switches:
                ends.callback(switch.stop)


class TlsSwitch(Link):
    """A switch whose ends come over TLS, by keys that both have."""

    def __init__(self, number, options=()):
        ports = [free_port() for _ in range(number)]
        super().__init__(*(with_tls('psk', 'client', ['-object', 'rdma-hca-cable,id={id},type=inet,host=localhost,'
                                                      f'port={port},reconnect-ms=100']) for port in ports))
        addresses = [f'tls-listen:127.0.0.1:{port}' for port in ports]
        self.switches = [Switch('switch1', 1, addresses, [f'--tls-psk={TLS_FOLDER}', *options])]

    def start(self, folder):
        make_credentials(folder)
        self.switches[0].start(folder)

    def stop(self):
        self.switches[0].stop()
