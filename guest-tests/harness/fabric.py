# SPDX-License-Identifier: GPL-2.0-or-later
"""InfiniBand fabrics: guests with managed cards, and subnet managers (opensm) in them."""
import collections
import contextlib
import re
import signal

from . import links, wait
from .devices import ManagedCard, Nic
from .guest import GuestError
from .lab import Lab, Machine
from .patience import FACTOR, patient

FOLDER = '/tmp/opensm'  # in a guest
# Seconds and milliseconds. A manager sweeps often, as here nothing but a sweep tells it of a port that comes back; and waits
# for answers for longer than slow guests take.
CONFIGURATION = {
    'sweep_interval': 2 * FACTOR, 'transaction_timeout': patient(2000), 'long_transaction_timeout': patient(4000),
    'sminfo_polling_timeout': patient(1000), 'polling_retry_number': 4,
    'log_file': 'stdout', 'force_log_flush': 'TRUE', 'dump_files_dir': FOLDER,
}

# What a manager says
UP, NO_PORT = 'SUBNET UP', 'SM port is down'
DISCOVERING, MASTER, STANDBY = (f'Entering {state} state' for state in ('DISCOVERING', 'MASTER', 'STANDBY'))
# Its errors where a port goes while it is asked, and where another manager has gone.
TIMEOUTS = (r'ERR 541[01]:', r'ERR 3113:', r'ERR 3119:', r'ERR 3120:')
# And where one is there anew in the middle of a sweep: it has lost what it was told, and takes no step from there.
ANEW = (*TIMEOUTS, r'ERR 3111:', r'ERR 0F10:', r'ERR 3322:')
# On a busy machine: an asker is tired of waiting and asks again, and ib_umad sends no second answer beside the first (-EINVAL), or
# a group that was left is left again; a trap comes before the first sweep has come to its port.
BUSY = (r'ERR 5430: .*Method 0x[89].*Invalid argument', r'ERR 4C04:', r'ERR 1B25:', r'ERR 7504:', r'ERR 3809:')
# Where a node with the bit of a manager has none, its answer says so.
NO_MANAGER = (r'ERR 3111:',)


class Manager:
    """opensm in a guest, which tells the output of its command what it does. partitions: the text of a file of partitions;
    expected: errors that are none; options: more of its configuration, such as sm_priority and lmc."""

    def __init__(self, guest, partitions='', expected=(), **options):
        self.guest = guest
        self._expected, self._judged, self._errors = [*BUSY, *expected], 0, []
        options = {**CONFIGURATION, 'guid': f'{port(guest).guid:#x}', 'partition_config_file': f'{FOLDER}/partitions', **options}
        lines = '\n'.join(f'{name} {value}' for name, value in options.items())
        write = f"printf '%s' '{partitions}' >partitions" if partitions else 'rm -f partitions'
        guest.run(f"mkdir -p {FOLDER} && cd {FOLDER} && {write} && printf '%s\\n' '{lines}' >configuration")
        self.command = guest.spawn(f'OSM_CACHE_DIR={FOLDER} exec opensm -F {FOLDER}/configuration')

    @property
    def running(self):
        return self.command.running

    @property
    def log(self):
        return self.command.output

    def wait_says(self, text, since=0, times=1, timeout=120):
        """Wait until it has said something. since: a length that the log had before."""
        def said():
            if not self.running:
                raise GuestError(f'{self.guest.name}: opensm has ended:\n{self.log}')
            return self.log.count(text, since) >= times

        wait.until(said, lambda: f'said: {text!r}: {self.guest.name}: opensm:\n{self.log[since:]}', timeout)

    def wait_swept(self):
        """Wait for the end of a sweep that begins after this; the first that ends may have begun before."""
        self.wait_says(UP, len(self.log), times=2)

    def stop(self, number=signal.SIGTERM):
        self.command.kill(number)
        self.command.wait(check=False)

    @contextlib.contextmanager
    def expecting(self, *patterns):
        """Inside, errors that match these are none."""
        self._judge()
        self._expected += patterns
        yield
        self._judge()
        del self._expected[-len(patterns):]

    def errors(self):
        """What it has complained of since the last time of asking."""
        self._judge()
        found, self._errors = self._errors, []
        return [f'{self.guest.name}: opensm: {line}' for line in found]

    def _judge(self):
        end = self.log.rfind('\n') + 1
        self._errors += [line for line in self.log[self._judged:end].splitlines() if re.search(r'ERR [0-9A-F]{4}:', line) and
                         not any(re.search(pattern, line) for pattern in self._expected)]
        self._judged = end


class FabricLab(Lab):
    """Its first guest has the subnet manager, if no other has."""

    def __init__(self, machines, cables):
        super().__init__(machines, cables)
        self.managers = []  # also those that have ended

    @property
    def manager(self):
        return next((manager for manager in self.managers if manager.running), None)

    def manage(self, guest, says=UP, **options):
        """Have a manager in a guest; it says this when it is ready."""
        manager = Manager(guest, **options)
        self.managers.append(manager)
        manager.wait_says(says)
        return manager

    def wait_active(self):
        if not self.manager:
            self.manage(self.a)
        super().wait_active()

    @contextlib.contextmanager
    def other_managers(self):
        """Inside there is no manager but those that the inside starts."""
        self._stop_managers()
        yield
        self._stop_managers()
        self.manage(self.a)
        self.wait_active()

    def _stop_managers(self):
        for manager in self.managers:
            if manager.running:
                manager.stop()

    def trouble(self):
        return super().trouble() + [line for manager in self.managers for line in manager.errors()]


def pair(**options):
    """Two cards on a cable, whose ports a manager in the first guest makes work."""
    machine = Machine(Nic('net'), ManagedCard('cable'), **{'layers': ('apps',), **options})
    return FabricLab([machine, machine], {'net': links.stream(), 'cable': links.unix_cable()})


class Port(collections.namedtuple('Port', 'lid sm_lid lmc capabilities gid state physical')):
    """What Linux knows of a port."""

    @property
    def guid(self):
        return int(self.gid.replace(':', '')[16:], 16)


def port(guest):
    files = 'lid sm_lid lid_mask_count cap_mask gids/0 state phys_state'
    lines = guest.run(f'cd /sys/class/infiniband/{guest.card.name}/ports/1 && cat {files}').output.splitlines()
    return Port(*[int(text, 0) for text in lines[:4]], *lines[4:])


def lid(guest):
    return port(guest).lid


def wait_manager(lab, guest):
    """Wait until all ports know that the manager is in this guest."""
    def known():
        return {each.name: port(each).sm_lid for each in lab.guests}

    wait.until(lambda: set(known().values()) == {lid(guest)}, lambda: f'known: the manager in {guest.name}: {known()}', 60)
