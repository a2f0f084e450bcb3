# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's monitor for programs (QMP)."""
import json
import time

from .errors import GuestError, Refused


class Monitor:
    """connection: a socket; name: of the machine; said: a function that gives what QEMU has said elsewhere."""

    def __init__(self, connection, name, said=lambda: ''):
        self._connection, self._name, self._said = connection, name, said
        self._data, self._number = bytearray(), 0
        self._read(None)  # who is there
        self.execute('qmp_capabilities')

    def execute(self, command, arguments=None, seconds=None):
        """Run a command; seconds: how long to wait for its answer, however patient the harness is."""
        deadline = None if seconds is None else time.monotonic() + seconds
        self._number += 1
        request = {'execute': command, 'id': self._number, **({'arguments': arguments} if arguments else {})}
        try:
            self._wait_until(deadline)
            self._connection.sendall(json.dumps(request).encode())
            answer = self._answer(deadline)
        except TimeoutError as error:
            raise GuestError(f'{self._name}: QMP {command}: no answer in {seconds} s') from error
        if 'error' in answer:
            raise Refused(f'{self._name}: QMP {command}: {answer["error"]["desc"]}')
        return answer['return']

    def close(self):
        self._connection.close()

    def _answer(self, deadline):
        """Between events there may be answers that a test has not waited for, as its time was over. An error that has no number
        is of what could not be read."""
        while True:
            message = self._read(deadline)
            if message.get('id', self._number) == self._number and ('return' in message or 'error' in message):
                return message

    def _read(self, deadline):
        while b'\n' not in self._data:
            self._wait_until(deadline)
            data = self._connection.recv(65536)
            if not data:
                raise GuestError(f'{self._name}: QEMU closed its monitor: {self._said()[-2000:]}')
            self._data += data
        line, _, rest = self._data.partition(b'\n')
        self._data = rest
        return json.loads(line)

    def _wait_until(self, deadline):
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
