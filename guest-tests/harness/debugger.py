# SPDX-License-Identifier: GPL-2.0-or-later
"""gdb at a guest's kernel. Of a kernel with gdb's scripts in its build tree (CONFIG_GDB_SCRIPTS) it has all symbols, and lx-symbols
finds those of modules as they come; of another one it has the driver's, as it is loaded when gdb begins."""
import os
import subprocess
import threading

from . import paths, wait
from .errors import GuestError

ATTACHED = 'rdma-hca: gdb is at '  # and the guest stands still
SECONDS = 60  # to read the symbols of a kernel
SECTIONS = 'cd /sys/module/rdma_hca/sections && for name in .[a-z]*; do echo "-s $name $(cat $name)"; done'


class Debugger:
    """Of a guest that is not started yet."""

    def __init__(self, guest):
        self._guest = guest
        guest.arguments += ['-gdb', f'unix:{guest.name}.gdb,server=on,wait=off']

    def command(self):
        """The command line of a gdb that stops the guest, which is up, and has symbols. It wants the guest's folder as its own."""
        script = f'{self._guest.name}.gdbinit'
        with open(os.path.join(self._guest.folder, script), 'w') as file:
            file.write('\n'.join(self._first()) + '\n')
        return ['gdb', '-q', '-nx', '-x', script]

    def _first(self):
        tree = os.path.realpath(os.path.join(paths.OF_KERNEL, 'headers'))
        driver = os.path.join(paths.DRIVER, 'rdma_hca.ko')
        scripts = os.path.join(tree, 'vmlinux-gdb.py')
        yield from ('set pagination off', 'set confirm off', 'set width 0', 'set print thread-events off')
        if os.path.exists(scripts):
            yield from (f'file {tree}/vmlinux', f'source {scripts}', self._target(), f'lx-symbols {paths.DRIVER} {tree}')
        else:
            sections = self._guest.run(SECTIONS).output.split('\n')
            yield from ('set architecture i386:x86-64', self._target(), f'add-symbol-file {driver} {" ".join(sections)}')
        yield f'echo {ATTACHED}{self._guest.name}\\n'

    def _target(self):
        return f'target remote {self._guest.name}.gdb'


class Batch:
    """A gdb that runs the commands of a file, and prints what they print, each line behind 'gdb: '. When it is there, it is at the
    guest, which goes on as the commands say."""

    def __init__(self, debugger, guest, commands):
        self._said, self._ending = [], False
        line = [*debugger.command(), '-batch', '-x', os.path.abspath(commands)]
        try:
            self._process = subprocess.Popen(line, cwd=guest.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                             stderr=subprocess.STDOUT, text=True, errors='replace')
        except FileNotFoundError as error:
            raise GuestError('there is no gdb: apt-get install gdb') from error
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            wait.until(self._attached, 'at a guest: gdb', SECONDS)
        except GuestError:
            self.end()
            raise

    def end(self):
        """Whatever it waits for does not come any more, and what it says of that nobody wants to know."""
        self._ending = True
        self._process.terminate()
        self._process.wait()
        self._reader.join()

    def _attached(self):
        if self._process.poll() is not None and not self._reader.is_alive() and not self._is_attached():
            raise GuestError('gdb ended: ' + ''.join(self._said[-5:]))
        return self._is_attached()

    def _is_attached(self):
        return any(line.startswith(ATTACHED) for line in self._said)

    def _read(self):
        for line in self._process.stdout:
            if self._is_attached() and not self._ending:
                print(f'gdb: {line}', end='', flush=True)
            self._said.append(line)
