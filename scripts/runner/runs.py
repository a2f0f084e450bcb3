# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs of parts of programs, through prove."""
import contextlib
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from .programs import BUILD, TOP
from .results import Results

LOGS = BUILD / 'logs'


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
    """How many programs run at a time: JOBS, or 2, where there are so many processors: the machines of a guest test wait for each
    other much of the time."""
    return int(os.environ.get('JOBS') or min(len(os.sched_getaffinity(0)), 2))


def prove(runs, alone=False, silent=False):
    """Run them; whether prove has found all good. silent: it says nothing; what failed is shown all the same."""
    for run in runs:
        run.write_script()
    command = ['prove', '--jobs', str(1 if alone else jobs()), '--timer', '--failures', '--exec', '',
               *(run.name for run in runs)]
    return subprocess.run(command, cwd=runs[0].scripts, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL if silent else None,
                          check=False).returncode == 0
