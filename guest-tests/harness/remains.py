# SPDX-License-Identifier: GPL-2.0-or-later
"""What a case that has failed leaves, in files of its lab's folder whose names begin with the case's: of each card flight recorder,
queues and counters, of each machine what its kernel holds of RDMA, and its log. Who does not answer leaves less, and a note."""
import os
import time

from . import flight
from .devices import Hca
from .errors import GuestError, Refused
from .patience import FACTOR, patient

MONITOR_SECONDS = 5  # QEMU answers, whatever its guest does
SHELL_SECONDS = 10
SECONDS = 60  # for all of it

RESOURCES = 'qp cq mr cm_id pd ctx srq'
SCRIPTS = {
    'rdma': f'rdma link; rdma resource; for kind in {RESOURCES}; do echo "# $kind"; rdma -d resource show $kind; done',
    'dmesg': 'echo w >/proc/sysrq-trigger; dmesg',  # with the stacks of tasks that wait
}


def leave(labs, case, failure):
    """Leave it; gives lines for people. failure: blocks of lines."""
    cards, notes = [], []
    for lab in labs:
        remains = Remains(lab.folder, case)
        remains.take(lab.guests)
        place = f'{os.path.basename(lab.folder)}: ' if len(labs) > 1 else ''
        cards += [flight.Card(place + name, *texts) for name, texts in remains.cards.items()]
        notes += [place + note for note in remains.notes]
        remains.write('failure', [line for block in failure for line in block] + remains.notes)
    return flight.screen(failure, cards, ' '.join(os.path.join(lab.folder, f'{case}-*') for lab in labs), notes)


class Remains:
    """cards: recorder and queues of each, by names of machine and card. notes: what could not be had, and why."""

    def __init__(self, folder, case):
        self.cards, self.notes = {}, []
        self._start = os.path.join(os.path.abspath(folder), f'{case}-')
        self._deadline = time.monotonic() + patient(SECONDS)

    def take(self, guests):
        """Cards first: what guests are asked for goes through their recorders. Guests are asked at once."""
        for guest in guests:
            self._try(guest.name, self._take_cards, guest)
        asked = [self._try(guest.name, self._ask, guest) or [] for guest in guests]
        until = time.monotonic() + patient(SHELL_SECONDS)
        for kind, command in sum(asked, []):
            self._try(f'{command.guest.name}: {kind}', self._take_output, kind, command, until)

    def write(self, kind, lines):
        self._try(kind, self._write, kind, lines)

    def _try(self, what, function, *arguments):
        try:
            if time.monotonic() > self._deadline:
                raise GuestError(f'{patient(SECONDS)} s are over')
            return function(*arguments)
        except Exception as error:  # pylint: disable=broad-except
            self.notes.append(f'{what}: not had: {(str(error) or repr(error)).splitlines()[0]}')
            return None

    def _write(self, kind, lines):
        with open(self._start + kind, 'w') as file:
            file.writelines(f'{line}\n' for line in lines)

    # cards

    def _take_cards(self, guest):
        """Of a machine; one whose monitor does not answer is asked for nothing more."""
        if not any(isinstance(device, Hca) for device in guest.devices):
            return
        find_running(guest)
        for number, answer in enumerate(self._query(guest, 'query-rdma-hca-recorder')):
            card = card_name(guest, number, answer)
            self.cards[card] = answer['lines'], []
            self._write(f'{card}.recorder', answer['lines'])
            if answer['lines']:
                self._query(guest, 'rdma-hca-recorder-save', id=answer.get('id') or answer['qom-path'],
                            filename=f'{self._start}{card}.pcapng')
        for number, answer in enumerate(self._query(guest, 'query-rdma-hca-queues')):
            card = card_name(guest, number, answer)
            self.cards.setdefault(card, ([], []))[1].extend(answer['lines'])
            self._write(f'{card}.queues', answer['lines'])
        for number, answer in enumerate(self._query(guest, 'query-rdma-hca-counters')):
            self._write(f'{card_name(guest, number, answer)}.counters', counters(answer))

    def _query(self, guest, command, **arguments):
        answers = []
        for monitor in guest.card_monitors():
            try:
                answers += monitor.execute(command, arguments, patient(MONITOR_SECONDS)) or []
            except Refused as error:
                self.notes.append(str(error).splitlines()[0])
        return answers

    # guests

    @staticmethod
    def _ask(guest):
        find_running(guest)
        if not guest.is_ready:
            raise GuestError('it takes no commands, as it is not up')
        return [(kind, guest.spawn(f'{{ {script}; }} 2>&1')) for kind, script in SCRIPTS.items()]

    def _take_output(self, kind, command, until):
        """What there is of it by then."""
        last = ''
        try:
            status = command.wait(max(until - time.monotonic(), 0) / FACTOR, check=False).status
            if status != 0:
                last = 'it went away' if status is None else f'status {status}'
        except GuestError:
            last = f'no end in {patient(SHELL_SECONDS)} s: the guest hangs, or is busy'
        lines = command.output.splitlines()
        self._write(f'{command.guest.name}.{kind}', lines + [f'# {last}'] * bool(last))
        if last:
            self.notes.append(f'{command.guest.name}: {kind}: {last}')


def find_running(guest):
    if not guest.process:
        raise GuestError('it was not running')
    if guest.process.poll() is not None:
        raise GuestError(f'QEMU has ended with status {guest.process.returncode}')


def card_name(guest, number, answer):
    """Of machine and card; a card need not have an ID."""
    return f'{guest.name}-{answer.get("id") or f"card{number}"}'


def counters(answer):
    return [f'{unit["name"]} {counter["name"]} {counter["value"]}' for unit in answer['units'] for counter in unit['counters']]
