# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines of a QEMU that knows nothing of our card: one of a distribution. The cards are served to them by vfio-user, each by a
process of our QEMU's (hw-rdma-hca/server)."""
import json
import os
import signal
import subprocess

from . import paths
from .devices import Hca
from .guest import Guest, die_with
from .lab import Machine
from .monitor import Monitor

SERVER = os.path.join(paths.TOP, 'hw-rdma-hca', 'server', 'rdma-hca-server')


class Server:
    """What serves a card, with its sockets in its guest's folder. arguments: of QEMU, for what the card is plugged into."""

    def __init__(self, guest, card, arguments):
        self._guest, self._card, self._arguments = guest, card, arguments
        self.name = f'{guest.name}-{card.id}'
        self.socket = f'{self.name}.vfio'
        self._log = os.path.join(guest.folder, f'{self.name}.server')
        self.process = self.monitor = None

    def command_line(self):
        device = self._card.device()
        properties = ','.join(f'{name}={value}' for name, value in device.items() if name not in ('driver', 'id'))
        return [SERVER, self.socket, properties, '-qmp', f'unix:{self.name}.qmp,server=on,wait=off', '-trace', 'vfu_dma_*',
                *self._arguments]

    def start(self):
        """With what it needs of others: a cable's other end may come later."""
        if self.process and self.process.poll() is None:
            return
        with open(self._log, 'ab') as log:
            self.process = subprocess.Popen(self.command_line(), cwd=self._guest.folder, preexec_fn=die_with(os.getpid()),
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        # When the monitor answers, the server listens.
        self.monitor = Monitor(self.connect(f'{self.name}.qmp'), self.name, self.log)

    def connect(self, name):
        """To a socket of its."""
        return self._guest.connect(name, self.process, self.log)

    def log(self):
        with open(self._log, errors='replace') as log:
            return log.read()

    def trouble(self):
        if self.process and self.process.poll() is not None:
            return [f'{self.name}: the server ended by itself with status {self.process.returncode}', *self.log().splitlines()[-30:]]
        return []

    def stop(self):
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            if self.monitor:
                self.monitor.close()
            self.process = self.monitor = None


class StockGuest(Guest):
    """servers: of its cards, in the order of its devices."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, launch=[paths.STOCK_QEMU], **options)
        self.servers = []

    def _memory(self):
        return ['-object', f'memory-backend-memfd,id=ram,size={self.memory}M,share=on', '-machine', 'memory-backend=ram']

    def card_monitors(self):
        return [server.monitor for server in self.servers]

    def start(self):
        for server in self.servers:
            server.start()
        return super().start()

    def trouble(self):
        return super().trouble() + [line for server in self.servers for line in server.trouble()]

    def stop(self):
        super().stop()
        for server in self.servers:
            server.stop()

    def kill(self):
        """As if its QEMU had crashed; the servers stay. start() has it come again."""
        self.process.kill()
        self.process.wait()
        self.forget()


class StockMachine(Machine):
    """Of a QEMU without our card. Its cards are served to it."""

    def _guest(self, *arguments, **options):
        return StockGuest(*arguments, **options)

    def _put(self, guest, device, arguments):
        if not isinstance(device, Hca):
            super()._put(guest, device, arguments)
            return
        server = Server(guest, device, arguments)
        guest.servers.append(server)
        where = {'type': 'unix', 'path': server.socket}
        guest.arguments += ['-device', json.dumps({'driver': 'vfio-user-pci', 'socket': where})]
