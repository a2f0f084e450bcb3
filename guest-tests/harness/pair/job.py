# SPDX-License-Identifier: GPL-2.0-or-later
"""What the guests of a job do: commands, with variables that say who and where they are, and barriers between them."""
import contextlib
import shlex
import signal
import sys
import time

from .. import cm, verbs
from ..debugger import Batch
from ..devices import RoceDevice
from ..errors import GuestError
from . import parcels

OVER = 124  # the exit status when the time is over, as timeout's
PAUSE = 0.05  # seconds between looks at what commands have printed
GRACE_SECONDS = 5  # for a server that is done to end, when a client has failed
LAST_SECONDS = 10  # for a server to end by itself when it is told to

VARIABLES = ['RDMA_HCA_ROLE (server or client)', 'RDMA_HCA_NUMBER (of this guest, from 1)', 'RDMA_HCA_GUESTS (how many)',
             'RDMA_HCA_LINK (as of --link)', 'RDMA_HCA_DEVICE', 'RDMA_HCA_PORT', 'RDMA_HCA_GID_INDEX', 'RDMA_HCA_INTERFACE (of the card, if it has one)',
             'RDMA_HCA_ADDRESS (of that, else of the network between the guests)', 'RDMA_HCA_SERVER (the address of guest1)',
             'RDMA_HCA_PEER (of the other one, or the next)', 'RDMA_HCA_ADDRESSES (of all)']

FOLDER = '/run/rdma-hca'  # where rdma-hca-barrier says its name, and is let pass


def address(guest):
    """Of its card's interface, if it has one."""
    return guest.card.address() if hasattr(guest.card, 'address') else verbs.address(guest)


def variables(lab, guest, link):
    """What its commands see."""
    number, count = guest.number, len(lab.guests)
    following = lab.guests[number % count]
    card = guest.card
    return {'RDMA_HCA_ROLE': 'server' if number == 1 else 'client', 'RDMA_HCA_NUMBER': number, 'RDMA_HCA_GUESTS': count,
            'RDMA_HCA_LINK': link, 'RDMA_HCA_DEVICE': card.name, 'RDMA_HCA_PORT': 1,
            'RDMA_HCA_GID_INDEX': card.gid_index() if isinstance(card, RoceDevice) else 0,
            'RDMA_HCA_INTERFACE': getattr(card, 'interface', ''), 'RDMA_HCA_ADDRESS': address(guest),
            'RDMA_HCA_SERVER': address(lab.a), 'RDMA_HCA_PEER': address(following),
            'RDMA_HCA_ADDRESSES': ' '.join(map(address, lab.guests))}


def run(lab, given, debugger=None):
    """Run the commands of a lab that is up to their end; gives the exit status. debugger: of its first guest, if there is one."""
    _prepare(lab)
    with contextlib.ExitStack() as ends:
        job = Job(lab, given)
        ends.callback(job.end)
        if debugger:
            ends.callback(Batch(debugger, lab.a, given.gdb).end)
        return job.run()


def _prepare(lab):
    hosts = ''.join(f'{verbs.address(guest)} {guest.name}\\n' for guest in lab.guests)
    for guest in lab.guests:
        parcels.unpack(guest)
        guest.run(f"printf '127.0.0.1 localhost\\n{hosts}' >/etc/hosts; mkdir -p {FOLDER} && mkfifo {FOLDER}/events")


class Barriers:
    """Whom rdma-hca-barrier lets pass."""

    def __init__(self, lab):
        self._guests = lab.guests
        self._events = [guest.spawn(f'exec cat <>{FOLDER}/events') for guest in lab.guests]
        self._passed = [0] * len(lab.guests)

    def look(self):
        """Let those pass that are all there. A guest has one at a time."""
        waiting = [command.output.split()[passed:] for command, passed in zip(self._events, self._passed)]
        if not all(waiting):
            return
        names = {names[0] for names in waiting}
        if len(names) > 1:
            raise GuestError(f'guests wait at different barriers: {", ".join(sorted(names))}')
        for number, guest in enumerate(self._guests):
            guest.run(f'echo >{FOLDER}/passed-{waiting[number][0]}')
            self._passed[number] += 1

    def end(self):
        for command in self._events:
            command.end()


class Job:
    def __init__(self, lab, given):
        self._lab, self._given = lab, given
        self._barriers = Barriers(lab)
        self._commands, self._shown = {}, {}
        self._deadline = time.monotonic() + given.timeout

    def run(self):
        given, (server, *clients) = self._given, self._lab.guests
        if given.command:
            self._start(self._lab.guests, ' '.join(given.command))
        else:
            before = _listening(server)
            self._start([server], given.server)
            while self._commands[server].running and _listening(server) <= before and not self._over():
                self._look()
            if self._failed(server):
                self._show()
                return self._commands[server].wait(check=False).status
            self._start(clients, given.client)
        while self._waits_for(clients) and not self._over():
            self._look()
        ended = self._server_may_stay(clients) and self._commands[server].running
        if ended:
            self._end_server(server)
        self._show()
        return self._status(clients if ended or given.server_stays else self._lab.guests)

    def end(self):
        """Whatever still runs does so no more."""
        for command in self._commands.values():
            if command.running:
                command.end()
        self._barriers.end()

    def _start(self, guests, script):
        for guest in guests:
            exports = ' '.join(f'{name}={shlex.quote(str(value))}' for name, value in
                               variables(self._lab, guest, self._given.link).items())
            self._commands[guest] = guest.spawn(f'export {exports} HOME={parcels.HOME} && cd {parcels.HOME} && {script}')
            self._shown[guest] = 0

    def _waits_for(self, clients):
        waited = clients if self._server_may_stay(clients) else self._lab.guests
        return any(self._commands[guest].running for guest in waited)

    def _server_may_stay(self, clients):
        """It was said so, or a client that has failed will not have it end."""
        return self._given.server_stays or bool(self._given.client) and any(map(self._failed, clients))

    def _failed(self, guest):
        command = self._commands[guest]
        return not command.running and command.wait(check=False).status != 0

    def _over(self):
        return time.monotonic() > self._deadline

    def _look(self):
        self._show()
        self._barriers.look()
        time.sleep(PAUSE)

    def _show(self):
        """Whole lines, and what is left of a command that has ended."""
        for guest, command in self._commands.items():
            ended = not command.running
            text = command.output[self._shown[guest]:]
            whole = len(text) if ended else text.rfind('\n') + 1
            for line in text[:whole].splitlines():
                print(f'{guest.name}: {line}', flush=True)
            self._shown[guest] += whole

    def _end_server(self, server):
        if not self._given.server_stays:
            self._wait_ended(server, GRACE_SECONDS)
        self._commands[server].kill(signal.SIGTERM)
        self._wait_ended(server, LAST_SECONDS)
        self._commands[server].end()

    def _wait_ended(self, guest, seconds):
        until = time.monotonic() + seconds
        while self._commands[guest].running and time.monotonic() < until:
            time.sleep(PAUSE)

    def _status(self, judged):
        late = [guest.name for guest, command in self._commands.items() if command.running]
        if late:
            print(f'rdma-hca-pair: the time is over, and still there run the commands of {", ".join(late)}', file=sys.stderr)
            return OVER
        statuses = [self._commands[guest].wait(check=False).status for guest in judged]
        if None in statuses:
            raise GuestError('a guest went away under its command')
        return next((status for status in statuses if status), 0)


def _listening(guest):
    """What listens in a guest, by TCP or by the connection manager."""
    ports = guest.run("awk '$4 == \"0A\" { print $2 }' /proc/net/tcp /proc/net/tcp6").output.split()
    return {*ports, *cm.listeners(guest)}
