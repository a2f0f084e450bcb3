# SPDX-License-Identifier: GPL-2.0-or-later
"""One virtual machine: start it, run commands in it, talk QMP to it, read its kernel's log."""
import contextlib
import ctypes
import os
import re
import shlex
import signal
import socket
import string
import subprocess
import threading
import time

from . import clock
from .arch import ARCHES, HOST
from .errors import GuestError
from .monitor import Monitor
from .patience import FACTOR, patient

READY_TIMEOUT = 120
SLOT = 0x10  # on the bus, of the first disk; where other devices come in the command line does not change what is there

# What no kernel log of ours may have in it.
KERNEL_TROUBLE = re.compile(
    r'BUG:|BUG at|WARNING: |Oops|general protection fault|Call Trace:|Kernel panic|INFO: task .* blocked|'
    r'rcu: INFO:|rcu_\w+ self-detected stall|soft lockup|unable to handle|refcount_t:|UBSAN|KASAN|list_(add|del) corruption|'
    r'Unknown symbol|disagrees about version|nobody cared|invalid opcode|'
    # what kernels with checkers say
    r'BUG [\w-]+ \(|INFO: trying to register|DMA-API: (?!preallocated|debugging enabled|Mapped at)|ODEBUG:|'
    r'locking correctness validator|kmemleak: .*(annot|isabled)')
# MiB of those of which nothing else is said. Kernels that check themselves take more.
MEMORY = int(os.environ.get('GUEST_MEMORY') or 512)

# Programs may register the same memory twice, or more often than dma-debug can count, which has no notion of that.
MAPPED_TWICE = re.compile(r'cacheline tracking EEXIST|DMA-API: exceeded \d+ overlapping mappings|'
                          r'at kernel/dma/debug\.c:\d+ add_dma_entry\+')
# What tells of an allocation that failed, and may show where. Linux removes files in /proc/irq that it could not make, shows who
# called when it cannot make a folder of settings, and its page pools try a second time as if softirqs were on (xa_alloc_bh() of
# an array without XA_FLAGS_LOCK_BH).
FAILED_ALLOCATION = re.compile(r': (page allocation failure|vmalloc error)|remove_proc_entry\+|\bpage_pool_dma_map\+|'
                               r'kmemleak: Cannot allocate a scan area|DMA-API: cacheline tracking ENOMEM|'
                               r'sysctl could not get directory: .* -12')
# How the kernel begins to tell which process it ends for want of memory.
OOM_KILLER = re.compile(r' invoked oom-killer: ')
# Where ib_mthca of newer kernels begins anew, its work queue waits for one that may wait for memory, if there is work in that.
MTHCA_FLUSH = re.compile(r'WQ_MEM_RECLAIM mthca_catas:catas_reset .* is flushing')
# Linux's NVMe target, in 7.3, waits for handlers of the connection manager's with a lock that such a handler takes: how lockdep
# begins to tell, and what is before its trace.
LOCK_CYCLE = 'possible circular locking dependency'
NVMET_LOCKS = re.compile(LOCK_CYCLE + r'.*handler_mutex\).*\(nvmet_config_sem\)|\(nvmet_config_sem\).*Call Trace:', re.DOTALL)
# Nobody but a test asks for that.
CRASH = re.compile(r'sysrq triggered crash')


class Result:
    """How a command ended: its exit status (None: the guest went away under it) and what it printed."""

    def __init__(self, command, status, output):
        self.command, self.status, self.output = command, status, output

    def __str__(self):
        return f'{self.command.guest.name}$ {self.command.script}\n{self.output}[status {self.status}]'


class Command:
    """A command that runs in a guest."""

    def __init__(self, guest, number, script):
        self.guest, self.number, self.script = guest, number, script
        self._data = bytearray()
        self._status = None
        self._ended = False
        self._changed = threading.Condition()

    # called by the guest's reader
    def received(self, data):
        with self._changed:
            self._data += data
            self._changed.notify_all()

    def ended(self, status):
        with self._changed:
            if not self._ended:
                self._ended, self._status = True, status
            self._changed.notify_all()

    # called by tests
    @property
    def output(self):
        with self._changed:
            return self._data.decode(errors='replace')

    @property
    def running(self):
        with self._changed:
            return not self._ended

    def wait_output(self, pattern, timeout=30):
        """Wait until the output matches a regular expression; give the match."""
        deadline = time.monotonic() + patient(timeout)
        with self._changed:
            while True:
                match = re.search(pattern, self._data.decode(errors='replace'))
                if match:
                    return match
                left = deadline - time.monotonic()
                if self._ended or left <= 0:
                    raise GuestError(f'never printed {pattern!r}:\n{self._describe()}')
                self._changed.wait(left)

    def wait(self, timeout=60, check=True):
        """Wait for the end. With check, a status other than 0 is an error."""
        deadline = time.monotonic() + patient(timeout)
        with self._changed:
            while not self._ended:
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            timed_out = not self._ended
        if timed_out:
            self.kill()
            raise GuestError(f'still running after {patient(timeout)} s:\n{self._describe()}')
        if check and self._status != 0:
            raise GuestError(f'failed:\n{self._describe()}')
        return Result(self, self._status, self.output)

    def kill(self, number=signal.SIGKILL):
        self.guest.send(b'kill %d %d\n' % (self.number, number))

    def end(self):
        """Have it killed, however far it is."""
        self.kill()
        self.wait(check=False)

    def _describe(self):
        text = self._data.decode(errors='replace')
        return f'{self.guest.name}$ {self.script}\n{text}[status {self._status if self._ended else "none yet"}]'


def die_with(parent):
    """For Popen's preexec_fn: no guest outlives its harness, the process parent."""
    def die_with_us():
        libc = ctypes.CDLL(None)
        libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)
    return die_with_us


def end_all(commands):
    """Each is killed and waited for before the next one."""
    for command in commands:
        command.end()


class Guest:
    """A virtual machine that runs the image of the project."""

    def __init__(self, name, folder, number=1, arch=HOST, cpus=1, cpu=None, memory=None, accelerator=None, machine=(), arguments=(),
                 append='', layers=(), disks=(), launch=None):
        """arch: see arch.py. cpus, cpu: how many, and of which model when they are emulated, the usual if not said. memory: MiB. folder: its
        sockets and logs, made here. machine: options of QEMU's that make it another machine, before it has devices. arguments: more of the command line; paths of sockets in it are
        relative to the folder. append: more of the kernel's. layers: what its root
        has beside the usual, by names of paths.LAYERS. disks: images that it sees, read-only, behind those of its root: see
        disk(). launch: the command that has QEMU's options behind it, if not the usual QEMU."""
        self.name, self.folder, self.number = name, folder, number
        self.arch = ARCHES[arch]
        self.cpus, self.cpu, self.memory, self.append = cpus, cpu or self.arch.cpu, memory or MEMORY, append
        self.launch = list(launch or (self.arch.qemu, '-L', self.arch.data))
        self.accelerator, self.machine, self.arguments, self.disks = accelerator, list(machine), list(arguments), list(disks)
        self.layers = list(layers)
        self.console = os.path.join(folder, f'{name}.console')
        self._log = os.path.join(folder, f'{name}.qemu')
        self.devices = []  # a lab puts them in
        self.process = None
        self.monitor = self._agent = self._reader = None
        self._heard = bytearray()  # of the agent, and not understood
        self._commands = {}
        self._next = 0
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self.template = None  # that it goes on from instead of booting (see template.py)
        self.memory_file, self.shares_memory = None, False  # where its memory is, and whether what it writes gets there
        self._waking = None  # the command with which it becomes itself
        self.short_of_memory = False  # allocations that fail are no trouble
        self.out_of_memory = False  # nor are processes that the kernel ends because there is no more
        self._log_seen = 0
        self._found = []
        self.qemu, self._going_to = 0, None  # the how many-th it is in; process and monitor of one that it is going to
        self.boot_seconds = None
        os.makedirs(folder, exist_ok=True)

    def socket(self, kind):
        """The name of a socket of its QEMU's: qmp, agent, tty. Of two that it is in at once each has its own."""
        return f'{self.name}.{kind}{self.qemu % 2 or ""}'

    @property
    def card(self):
        """The device that programs use."""
        return self.devices[-1]

    def _root(self):
        """The images that its root is made of: its first disks."""
        return self.arch.disks_of(self.layers)

    def _boots(self):
        """QEMU's options for the kernel that it boots."""
        return ['-kernel', self.arch.kernel, '-initrd', self.arch.initramfs, '-append', self.kernel_line()]

    def _access(self, number):
        """QEMU's options for how it may use a disk."""
        return 'readonly=on,file.locking=off'

    def disk(self, number):
        """Where it sees the one of its `disks` with this number, from 0."""
        return f'/dev/vd{string.ascii_lowercase[len(self._root()) + number]}'

    def _memory(self):
        """Options of QEMU's for memory that is a file."""
        if not self.memory_file:
            return []
        shares = 'on' if self.shares_memory else 'off'
        return ['-object', f'memory-backend-file,id=ram,size={self.memory}M,mem-path={self.memory_file},share={shares}',
                '-machine', 'memory-backend=ram']

    def kernel_line(self):
        """What its kernel is told when it boots. Its log has to have all that it said: see log.py."""
        times = '' if self.accelerator == 'kvm' else f'{clock.options()} '
        return (f'{times}console={self.arch.console} rdinit=/init mitigations=off nokaslr no_timer_check cryptomgr.notests init_on_alloc=0 '
                f'rcupdate.rcu_expedited=1 panic=0 loglevel=6 log_buf_len=1M guest.n={self.number} GUEST_PATIENCE={FACTOR} GUEST_DISKS={len(self._root())} {self.append}').strip()

    def command_line(self):
        accelerator = self.accelerator or 'tcg'
        line = [*self.launch, '-name', self.name, '-nodefaults', '-no-user-config', '-display', 'none',
                '-machine', self.arch.machine, '-accel', accelerator,
                '-cpu', 'host' if accelerator == 'kvm' else self.cpu, '-smp', str(self.cpus), '-m', f'{self.memory}M',
                *self._boots(), '-qmp', f'unix:{self.socket("qmp")},server=on,wait=off']
        line += self.machine + self._memory() + (['-incoming', 'defer'] if self.template else [])
        for number, disk in enumerate(self._root() + self.disks):
            line += ['-drive', f'if=none,id=disk{number},format=raw,{self._access(number)},file={disk}',
                     '-device', f'virtio-blk-pci,drive=disk{number},addr={SLOT + number:#x},disable-legacy=on']
        line += ['-device', f'virtio-serial-pci,addr={SLOT - 1:#x},disable-legacy=on',
                 '-chardev', f'socket,id=agent,path={self.socket("agent")},server=on,wait=off',
                 '-device', 'virtserialport,chardev=agent,name=rdma-hca.agent']
        line += ['-chardev', f'socket,id=console,path={self.socket("tty")},server=on,wait=off,'
                             f'logfile={self.name}.console,logappend=on',
                 '-serial', 'chardev:console']
        return line + self.arguments

    def start(self):
        """Start QEMU; wait_ready() waits for Linux in it."""
        if self.template:
            self.template.ensure()
            self.memory_file = self.template.memory
        for kind in ('qmp', 'agent', 'tty'):
            self._remove(self.socket(kind))
        self._ready.clear()
        self._started = time.monotonic()
        self._heard.clear()
        self.process, self.monitor = self._launch()
        self._come()
        if self.template:
            self.template.wake(self.monitor)
            program = self.template.WAKES.format(number=self.number)
            self._waking = self.spawn(f'echo {time.time():.9f} {os.urandom(64).hex(" ")} | {program}')
        return self

    def enter(self):
        """Start a QEMU that waits for what it is (-incoming defer)."""
        self.process, self.monitor = self._launch('-incoming', 'defer')
        self._come()

    def enter_next(self):
        """The same while it is in another one; gives the monitor of the new one."""
        self.qemu += 1
        try:
            self._going_to = self._launch('-incoming', 'defer')
        finally:
            self.qemu -= 1
        return self._going_to[1]

    def stay(self):
        """It does not get into the one that it is going to, which is killed."""
        (process, monitor), self._going_to = self._going_to, None
        process.kill()
        process.wait()
        monitor.close()

    def leave(self):
        """Its QEMU ends. What it is, and what runs in it, goes on in the next one; or somebody has kept it for enter()."""
        self._found += self.trouble()
        agent, self._agent = self._agent, None
        self._quit()
        self.process.wait()
        self._reader.join()
        agent.close()
        self.forget()
        if self._going_to:
            self.qemu += 1
            (self.process, self.monitor), self._going_to = self._going_to, None
            self._come()

    def wait_ready(self, timeout=READY_TIMEOUT):
        if self._waking:
            self._waking.wait(timeout)
            self._waking = None
            self._become_ready()
        deadline = time.monotonic() + patient(timeout)
        while not self._ready.wait(0.2):
            if self.process.poll() is not None:
                raise GuestError(f'{self.name}: QEMU ended (status {self.process.returncode}): {self.qemu_log()}')
            if time.monotonic() > deadline:
                raise GuestError(f'{self.name} is not up after {patient(timeout)} s; its console ends\n' + self.kernel_log()[-2000:])
        return self

    @property
    def is_ready(self):
        return self._ready.is_set()

    # commands

    def spawn(self, script):
        """Start a shell script in the guest."""
        with self._lock:
            self._next += 1
            command = self._commands[self._next] = Command(self, self._next, script)
        data = script.encode()
        self.send(b'run %d %d\n%s' % (command.number, len(data), data))
        return command

    def run(self, script, timeout=60, check=True):
        """Run a shell script in the guest to its end."""
        return self.spawn(script).wait(timeout, check)

    def send(self, data):
        try:
            self._agent.sendall(data)
        except OSError as error:
            raise GuestError(f'{self.name} is gone: {error}') from error

    def come_again(self):
        """Part from the agent, and come anew. What it says just then is lost."""
        before, self._agent = self._agent, None
        before.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        before.close()
        self._heard.clear()
        self._come()

    # QMP

    def qmp(self, command, **arguments):
        """Run a QMP command; '_' in the arguments' names stands for '-'."""
        return self.monitor.execute(command, {name.replace('_', '-'): value for name, value in arguments.items()})

    @contextlib.contextmanager
    def lent_monitor(self):
        """The path of its QMP socket, at which somebody else may be inside: it takes one client at a time."""
        self.monitor.close()
        try:
            yield os.path.join(self.folder, self.socket('qmp'))
        finally:
            self.monitor = Monitor(self._connect('qmp'), self.name, self.qemu_log)

    def card_monitors(self):
        """Of the processes that its cards are in."""
        return [self.monitor]

    def reset(self):
        """Push the reset button. wait_ready() waits for the new start."""
        self.starts_again()
        self.qmp('system_reset')

    def starts_again(self):
        """It is about to: wait_ready() waits for that."""
        self._ready.clear()
        self._started = time.monotonic()

    # logs

    def kernel_log(self):
        return self._read(self.console)

    def qemu_log(self):
        return self._read(self._log)

    def trouble(self):
        """What the kernel, or QEMU, complained of since the last time of asking."""
        found, self._found = self._found, []
        log = self.kernel_log()
        new, self._log_seen = log[self._log_seen:], len(log)
        lines = new.splitlines()
        for number, line in enumerate(lines):
            if KERNEL_TROUBLE.search(line) and not self._expected(lines, number):
                found += [f'{self.name}: {text}' for text in lines[max(0, number - 3):number + 30]]
                break
        status = self.process.poll() if self.process else None
        if status:
            found.append(f'{self.name}: QEMU ended by itself with status {status}')
            found += [f'{self.name}: {text}' for text in self.qemu_log().splitlines()[-30:]]
        return found

    def _expected(self, lines, number):
        before = 30 if 'Call Trace:' in lines[number] else 1 if 'WARNING: ' in lines[number] else 0
        after = 30 if 'BUG: sleeping function' in lines[number] else 9 if LOCK_CYCLE in lines[number] else 0
        where = '\n'.join(lines[max(0, number - before):number + after + 1])
        known = [MAPPED_TWICE, CRASH, MTHCA_FLUSH, NVMET_LOCKS] + [FAILED_ALLOCATION] * self.short_of_memory + [OOM_KILLER] * self.out_of_memory
        if LOCK_CYCLE in lines[number]:
            known = [NVMET_LOCKS]
        return any(pattern.search(where) for pattern in known)

    def stop(self):
        """Switch the machine off."""
        if not self.process:
            return
        self._found = self.trouble()
        if self._going_to:
            self.stay()
        if self.process.poll() is None:
            self._quit()
        self.process.wait()
        self.forget()

    # within

    def _launch(self, *more):
        """A process of QEMU, and its monitor."""
        with open(self._log, 'ab') as log:
            process = subprocess.Popen([*self.command_line(), *more], cwd=self.folder, preexec_fn=die_with(os.getpid()),
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return process, Monitor(self.connect(self.socket('qmp'), process, self.qemu_log), self.name, self.qemu_log)

    def forget(self):
        """A process that has ended."""
        for kind in ('qmp', 'agent', 'tty'):
            self._remove(self.socket(kind))
        for connection in (self.monitor, self._agent):
            if connection:
                connection.close()
        self.process = None

    def _become_ready(self):
        self.boot_seconds = time.monotonic() - self._started
        self._ready.set()

    def _quit(self):
        try:
            if self.monitor:
                self.monitor.execute('quit', seconds=5)
                self.process.wait(10)
        except (OSError, GuestError, subprocess.TimeoutExpired):
            pass
        self.process.kill()

    def _path(self, name):
        return os.path.join(self.folder, name)

    @staticmethod
    def _read(path):
        try:
            with open(path, errors='replace') as log:
                return log.read()
        except FileNotFoundError:
            return ''

    def _remove(self, name):
        try:
            os.unlink(self._path(name))
        except FileNotFoundError:
            pass

    def connect(self, name, process, said):
        """Connect to a socket of a process in the folder, whose full path may be too long for a socket address. said(): what it had
        to say when it ended."""
        folder = os.open(self.folder, os.O_PATH)
        try:
            deadline = time.monotonic() + 20
            while True:
                connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                try:
                    connection.connect(f'/proc/self/fd/{folder}/{name}')
                    return connection
                except OSError:
                    connection.close()
                    if process.poll() is not None:
                        raise GuestError(f'{self.name}: QEMU did not start: {said()}\n{shlex.join(process.args)}')
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.01)
        finally:
            os.close(folder)

    def _connect(self, kind):
        return self.connect(self.socket(kind), self.process, self.qemu_log)

    def _come(self):
        self._agent = self._connect('agent')
        self._reader = threading.Thread(target=self._read_agent, args=(self._agent,), daemon=True)
        self._reader.start()

    def _read_agent(self, connection):
        """What it says ends in the middle of a word where the machine leaves its QEMU, and goes on in the next one."""
        try:
            while data := connection.recv(65536):
                self._heard += data
                while self._understand():
                    pass
        except (OSError, ValueError):
            pass
        if connection is self._agent:
            self._lose_commands()

    def _understand(self):
        """Take the next thing that it has said; False: it is not whole yet."""
        line, end, rest = self._heard.partition(b'\n')
        words = line.split()
        size = int(words[2]) if len(words) == 3 and words[0] == b'out' else 0
        if not end or len(rest) < size:
            return False
        del self._heard[:len(line) + 1 + size]
        if words[:1] == [b'ready']:
            self._lose_commands()
            self._become_ready()
        elif len(words) == 3 and words[0] == b'out':
            command = self._commands.get(int(words[1]))
            if command:
                command.received(bytes(rest[:size]))
        elif len(words) == 3 and words[0] == b'exit':
            with self._lock:
                command = self._commands.pop(int(words[1]), None)
            if command:
                command.ended(int(words[2]))
        return True

    def _lose_commands(self):
        with self._lock:
            lost = list(self._commands.values())
            self._commands.clear()
        for command in lost:
            command.ended(None)
