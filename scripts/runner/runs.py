# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs of parts of programs, through prove."""
import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from .programs import BUILD, TOP
from .results import Results

LOGS = BUILD / 'logs'
END_SECONDS = 30  # that programs have to stop their machines in


class Run:
    """One run of a Part. name: what prove calls it, and a path below the folders. log: all that it prints. files: a folder for the
    files of its labs, which is gone after a run that ended well."""

    def __init__(self, part, name, logs, scratch):
        self.part, self.name = part, name
        self.log = logs / f'{name}.log'
        self.files = scratch / 'files' / name
        self.scripts = scratch / 'scripts'  # by their names
        self._results = None

    def write_script(self):
        """What prove starts."""
        words = [TOP / 'scripts/tap-run', self.log, self.part.program.seconds, self.files, *self.part.command()]
        script = self.scripts / self.name
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f'#!/bin/sh\ncd {shlex.quote(str(TOP))} && exec {shlex.join(map(str, words))}\n')
        script.chmod(0o755)
        self.log.unlink(missing_ok=True)

    @property
    def results(self):
        if not self._results:
            self._results = Results(self.log)
        return self._results

    def keep(self, folder):
        """Copy its log and files into a folder, instead of what is there."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if self.files.is_dir():
            shutil.copytree(self.files, folder, symlinks=True, ignore=sockets, dirs_exist_ok=True)
        if self.log.exists():
            shutil.copy(self.log, folder / 'log')


def sockets(folder, names):
    """Those that a lab leaves behind which was killed."""
    return [name for name in names if (Path(folder) / name).is_socket()]


@contextlib.contextmanager
def scratch():
    """A folder for scripts and files of runs, while they are wanted."""
    (BUILD / 'run').mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix='check-', dir=BUILD / 'run') as folder:
        yield Path(folder)


def jobs():
    """How many programs run at a time: JOBS, or one more than there are processors, but no more than 3: the machines of a guest test
    wait for each other much of the time."""
    return int(os.environ.get('JOBS') or min(len(os.sched_getaffinity(0)) + 1, 3))


def prove(runs, alone=False, silent=False):
    """Run them; whether prove has found all good. silent: it says nothing; what failed is shown all the same."""
    for run in runs:
        run.write_script()
    command = ['prove', '--jobs', str(1 if alone else jobs()), '--timer', '--failures', '--exec', '',
               *(run.name for run in runs)]
    with subprocess.Popen(command, cwd=runs[0].scripts, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL if silent else None,
                          start_new_session=True) as process:
        try:
            return process.wait() == 0
        except BaseException:
            end(process)
            raise


def end(process):
    """End a process that has a group of its own, and all that is in the group: prove would leave the programs to themselves."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # make sends them once more
    deadline = time.monotonic() + END_SECONDS
    send(process.pid, signal.SIGTERM)
    while process.poll() is None or living(process.pid):
        if time.monotonic() > deadline:
            send(process.pid, signal.SIGKILL)
            break
        time.sleep(0.05)


def send(group, number):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def living(group):
    """Whether a process of the group has not ended; one that nobody has waited for has."""
    for stat in Path('/proc').glob('[0-9]*/stat'):
        with contextlib.suppress(OSError):
            # Behind the name, which may have anything in it: state, parent, group.
            state, _, its_group = stat.read_text(errors='replace').rpartition(')')[2].split()[:3]
            if int(its_group) == group and state not in 'ZX':
                return True
    return False
