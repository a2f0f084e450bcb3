# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that talks to a terminal, at which a test sits."""
import os
import pty
import select
import subprocess
import time

from .guest import GuestError
from .patience import patient


class Terminal:
    """`with Terminal(command) as terminal`: the command runs inside, and is to end well."""

    def __init__(self, command, **environment):
        self._command, self._environment = command, {**os.environ, **environment}
        self.output, self._seen = '', 0

    def __enter__(self):
        self._fd, theirs = pty.openpty()
        self._process = subprocess.Popen(self._command, stdin=theirs, stdout=theirs, stderr=theirs, env=self._environment)
        os.close(theirs)
        return self

    def __exit__(self, kind, error, traceback):
        try:
            if kind:
                self._process.terminate()
            status = self._process.wait(patient(60))
        finally:
            self._process.kill()
            self._process.wait()
            os.close(self._fd)
        if status != 0 and not kind:
            raise GuestError(f'{self._command}: status {status}: {self.output}')

    def type(self, text):
        os.write(self._fd, text.encode())

    def wait_shown(self, text, timeout=120):
        """Wait until it has shown a text behind the one that was waited for last."""
        deadline = time.monotonic() + patient(timeout)
        while text not in self.output[self._seen:]:
            ready, _, _ = select.select([self._fd], [], [], max(0, deadline - time.monotonic()))
            data = os.read(self._fd, 4096).decode(errors='replace') if ready else ''
            if not data:
                raise GuestError(f'{self._command} did not show {text!r}: {self.output}')
            self.output += data
        self._seen = self.output.index(text, self._seen) + len(text)
