#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a failed case leaves, and what of it is printed: with machines that are made up, no guests."""
import contextlib
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
from unittest import mock

from bench.contenders import CONTENDERS
from harness import flight, paths, remains, tap
from harness.check import expect
from harness.devices import InfinibandCard, Nic, RoceCard
from harness.errors import GuestError, Refused
from harness.flight import Card
from harness.monitor import Monitor

PEER = 'qp 0x49 RC RTS dqpn 0x50'


def recorded(*events):
    """Lines, one a microsecond."""
    return [f'{number / 1e6:14.9f} {event}' for number, event in enumerate(events)]


def sent(psn, dqpn=0x50):
    return f'TX  dqpn {dqpn:#x} opcode 0x04 psn {psn:#x} length 290'


def received(psn, dqpn=0x49):
    return f'RX  dqpn {dqpn:#x} opcode 0x11 psn {psn:#x} length 20'


def completed(qpn, syndrome):
    return f'CQE cqn 0x81 qpn {qpn:#x} opcode 0x0 syndrome {syndrome:#x}'


def events(lines):
    return [line.split(None, 1)[1] for line in lines]


def chosen(*told, queues=(PEER,), **options):
    return events(flight.excerpt(recorded(*told), queues, **options))


# Which lines

def test_queue_pair_that_broke():
    """Events, what it received, and what was sent to its peer; and the last of all."""
    noise = [sent(9, 0x77), received(9, 0x33), 'QP_STATE qpn 0x33 old 3 new 6']
    story = [sent(1), received(1), 'NAK_RX qpn 0x49 psn 0x1 syndrome 0x62', 'QP_STATE qpn 0x49 old 3 new 6']
    found = chosen(*noise, *story[:2], *noise * 9, *story[2:], *noise)
    expect('the story', found == [*story, *noise], *found)


def test_every_kind_of_break():
    for event in ('WQE_ERROR qpn 0x49 offset 0x0 syndrome 0x2', 'NAK_TX qpn 0x49 psn 0x5', 'NAK_RX qpn 0x49 psn 0x5',
                  'TIMEOUT qpn 0x49 rnr 0 psn 0x5', 'PACKET_DROP qpn 0x49 opcode 0x4', completed(0x49, 0xc)):
        found = chosen(event, *[received(1, 0x33)] * 50)
        expect('it stays', found[0] == event and len(found) == 4, event, *found)
    for event in ('CQ_ERROR cqn 0x81 syndrome 0x1', 'SRQ_ERROR srqn 0x5 taken 3', 'V2P_ERROR key 0x100 state 3'):
        found = chosen(event, *[received(1, 0x33)] * 50)
        expect('it stays, with the last of all', found[0] == event and len(found) == flight.MOST_OF_CARD, event, *found)


def test_what_follows_is_no_cause():
    """A completion that could not be written: the QP is in error then, drops what comes, and has its queue flushed."""
    story = ['HOST_FAULT rule 0 place 1 action 6 what 0x1000', 'CQ_ERROR cqn 0x81 syndrome 0x2', 'EQE eqn 0x1 type 0x4 number 0x81',
             'QP_STATE qpn 0x49 old RTS new ERR']
    behind = ['PACKET_DROP qpn 0x49 opcode 0x11 psn 0x1 reason QP_STATE', *['WQE qpn 0x49 offset 0x40 opcode 0x8 length 0'] * 40]
    found = chosen(*[received(1)] * 40, *story, *behind)
    expect('the story', set(story) <= set(found), *found)
    found = chosen(*story[:2], *[f'PACKET_DROP qpn {number:#x} opcode 0x11 psn 0x1 reason QP_STATE' for number in range(40)])
    expect('what broke, where the QPs broke in what was forgotten', set(story[:2]) <= set(found), *found)
    found = chosen(*[received(1, 0x33)] * 5, *story, 'QP_STATE qpn 0x49 old ERR new RST', 'PACKET_DROP qpn 0x49 opcode 0x11', *[received(2)] * 20)
    expect('another life of the QP', 'PACKET_DROP qpn 0x49 opcode 0x11' in found, *found)


def test_the_last_break_counts():
    """One that names a QP rather than one that does not; flushed work is what follows, even of others."""
    found = chosen('NAK_TX qpn 0x33 psn 0x1', 'NAK_TX qpn 0x49 psn 0x2', 'CQ_ERROR cqn 0x81 syndrome 0x1',
                   *[completed(0x22, 5)] * 3)
    expect('of QP 0x49', found == ['NAK_TX qpn 0x49 psn 0x2', *[completed(0x22, 5)] * 3], *found)
    found = chosen(*[received(1, 0x33)] * 20, completed(0x49, 5), *[completed(0x22, 0)] * 20)
    expect('flushed work where there is nothing else', found[0] == completed(0x49, 5), *found)


def test_nothing_broke():
    told = [sent(number, 0x77) for number in range(30)] + [completed(0x49, 0)]
    found = chosen(*told)
    expect('the last of all', found == told[-12:], *found)
    expect('nothing at all', chosen() == [])


def test_unknown_peer():
    """Then whatever was sent may be the QP's."""
    told = [sent(1, 0x77), received(1, 0x33), 'TIMEOUT qpn 0x49 rnr 0 psn 0x1', *[received(2, 0x33)] * 3]
    found = chosen(*told, queues=['stub'])
    expect('sent', found == [told[0], *told[2:]], *found)


def test_loopback():
    told = ['LOOP dqpn 0x50 opcode 0x4 psn 0x1 length 20', 'LOOP dqpn 0x49 opcode 0x11 psn 0x1 length 20',
            'LOOP dqpn 0x33 opcode 0x4 psn 0x1 length 20', 'TIMEOUT qpn 0x49 rnr 0 psn 0x1', *[received(2, 0x33)] * 3]
    found = chosen(*told)
    expect('both ways', found == told[:2] + told[3:], *found)


def test_no_more_than_asked_for():
    for most in range(4, 13):
        found = chosen('NAK_TX qpn 0x49 psn 0x2', *[received(number) for number in range(100)], most=most)
        expect('the break and the last ones', len(found) == most and found[0].startswith('NAK_TX') and
               found[-1] == received(99), *found)


def test_lines_of_any_form():
    for line in ('', ' ', 'stub', '1.0', '1.0 TX', '1.0 CQE syndrome', '1.0 TX dqpn 0xzz', '1.0 NAK_TX qpn', '1.0 CQE syndrome 007'):
        expect('as it is', flight.excerpt([line]) == [line], line)
        flight.title(Card('card', [line], [line]))


# A screen

def test_screen():
    """No more than one, whatever has happened; the end of what is wrong comes last."""
    long = [f'frame {number}' for number in range(500)], ['x' * 5000, *map(str, range(500))], ['WARNING', *['trace'] * 60, 'the end']
    calm, bad = recorded(*[sent(1)] * 100), recorded(*[sent(1)] * 100, 'NAK_RX qpn 0x49 psn 0x1')
    for blocks, cards, notes in itertools.product((long[:1], long), range(10), (0, 50)):
        taken = [Card(f'guest{number}-hca0', bad if number == 9 else calm, []) for number in range(10 - cards, 10)]
        lines = flight.screen(blocks, taken, '/folder/case-*', ['no answer'] * notes)
        expect('its length', 18 <= len(lines) <= flight.SCREEN, len(lines), *lines)
        expect('its width', max(len(line) for line in lines) < 210, *lines)
        expect('where, and why', lines[0].endswith('/folder/case-*') and lines[-1] == blocks[-1][-1], *lines)
        expect('each is there', all(block[0][:100] in ' '.join(lines) for block in blocks), *lines)
        expect('first what broke', not cards or next(line for line in lines if 'guest' in line).startswith('guest9-hca0: NAK_RX of'),
               *lines)


def test_short_failure():
    lines = flight.screen([['Traceback', '  frame'], ['GuestError: why']], [Card('guest1-hca0', [], [])], '/folder')
    expect('all of it', lines == ['all that it left: /folder', 'guest1-hca0: nothing was recorded', 'Traceback', '  frame',
                                  'GuestError: why'], *lines)


def test_cut():
    lines = [str(number) for number in range(100)]
    expect('the middle goes', flight.cut(lines, 6) == ['0', '1', '[... 95 lines ...]', '97', '98', '99'], flight.cut(lines, 6))
    expect('nothing goes', flight.cut(lines, 100) == lines)


# The monitor

@contextlib.contextmanager
def qemu(answer):
    """A monitor whose QEMU sends what answer(request) gives: a list of bytes and of messages; None: it closes."""
    ours, other = socket.socketpair()

    def serve():
        with other, other.makefile('rb', buffering=0) as requests:
            other.sendall(b'{"QMP": {}}\r\n')
            decoder, data = json.JSONDecoder(), ''
            while more := requests.read(4096):
                data += more.decode()
                while data:
                    request, end = decoder.raw_decode(data)
                    data = data[end:]
                    replies = [done(request)] if request['execute'] == 'qmp_capabilities' else answer(request)
                    if replies is None:
                        return
                    for reply in replies:
                        other.sendall(reply if isinstance(reply, bytes) else json.dumps(reply).encode() + b'\r\n')

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    monitor = Monitor(ours, 'guest1', lambda: 'its last words')
    yield monitor
    monitor.close()
    thread.join()


def done(request, value=None):
    return {'return': {} if value is None else value, 'id': request['id']}


def told(kind, function, *arguments, **options):
    """What it says when it raises this."""
    try:
        function(*arguments, **options)
    except GuestError as error:
        expect('the kind of error', type(error) is kind, repr(error))
        return str(error)
    raise GuestError('this should have failed')


def test_monitor():
    with qemu(lambda request: [{'event': 'RESUME'}, done(request, request.get('arguments', 'none'))]) as monitor:
        expect('its answer', monitor.execute('a', {'b': 1}) == {'b': 1})
        expect('without arguments', monitor.execute('a') == 'none')


def test_monitor_in_pieces():
    text = 'x' * 300000
    with qemu(lambda request: [b'{"return": "%s", ' % text.encode(), b'"id": %d}\r' % request['id'], b'\n']) as monitor:
        expect('a long one', monitor.execute('a') == text)


def test_monitor_refuses():
    with qemu(lambda request: [{'error': {'class': 'GenericError', 'desc': 'no such card'}, 'id': request['id']}]) as monitor:
        said = told(Refused, monitor.execute, 'a')
        expect('why', said == 'guest1: QMP a: no such card', said)


def test_monitor_is_silent():
    """And answers later: that is not taken for the next one's answer."""
    kept = []

    def answer(request):
        kept.append(request)
        return [] if len(kept) == 1 else [done(each, each['execute']) for each in kept]

    with qemu(answer) as monitor:
        said = told(GuestError, monitor.execute, 'first', seconds=0.1)
        expect('how long', said == 'guest1: QMP first: no answer in 0.1 s', said)
        expect('the answer to this one', monitor.execute('second', seconds=10) == 'second')
        expect('without a limit', monitor.execute('third') == 'third')


def test_monitor_closes():
    with qemu(lambda request: None) as monitor:
        said = told(GuestError, monitor.execute, 'a', seconds=10)
        expect('last words', said.endswith('closed its monitor: its last words'), said)


# What is left

class Answers:
    """A monitor."""

    def __init__(self, **answers):
        self.answers, self.asked = {**ANSWERS, **answers}, []

    def execute(self, command, arguments, seconds):
        expect('a limit of time', seconds <= 5 * remains.FACTOR)
        self.asked.append((command, arguments))
        answer = self.answers[command.replace('-', '_')]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, float):
            time.sleep(answer)
            raise GuestError('guest1: QMP: no answer')
        return answer


def lines_of(*lines):
    return [{'id': 'hca0', 'qom-path': '/machine/peripheral/hca0', 'lines': list(lines)},
            {'qom-path': '/machine/peripheral-anon/device[0]', 'lines': list(lines)}]


ANSWERS = {
    'query_rdma_hca_recorder': lines_of(*recorded(sent(1), 'TIMEOUT qpn 0x49 rnr 0 psn 0x1')),
    'query_rdma_hca_queues': lines_of(PEER),
    'query_rdma_hca_counters': [{'id': 'hca0', 'qom-path': '', 'units': [
        {'name': 'link', 'counters': [{'name': 'tx_packets', 'value': 7}]}]}],
    'rdma_hca_recorder_save': {},
}


class Said:
    """A command in a guest; error: it does not end."""

    def __init__(self, guest, error=None, status=0):
        self.guest, self.error, self.status, self.output = guest, error, status, 'first\nsecond\n'

    def wait(self, timeout, check):
        expect('a limit of time, and no look at the status', timeout <= 10 and not check)
        if self.error:
            raise self.error
        return self


def machine(name='guest1', monitor=None, ready=True, devices=(InfinibandCard(),), status=None, **said):
    guest = types.SimpleNamespace(name=name, monitor=monitor or Answers(), is_ready=ready, devices=devices)
    guest.process = types.SimpleNamespace(poll=lambda: status, returncode=status)
    guest.spawn = lambda script: Said(guest, **said)
    guest.card_monitors = lambda: [guest.monitor]
    return guest


@contextlib.contextmanager
def left(*guests):
    """What they leave: files by their names, and what is printed."""
    os.makedirs(paths.RUN, exist_ok=True)
    folder = tempfile.mkdtemp(prefix='flight-', dir=paths.RUN)
    try:
        lines = remains.leave([types.SimpleNamespace(folder=folder, guests=guests)], 'case', [['Traceback'], ['why']])
        files = {}
        for name in os.listdir(folder):
            with open(os.path.join(folder, name)) as file:
                files[name] = file.read()
        yield files, lines
    finally:
        shutil.rmtree(folder)


def test_files():
    monitor = Answers()
    with left(machine(monitor=monitor)) as (files, lines):
        cards = [f'case-guest1-{card}.{kind}' for card in ('hca0', 'card1') for kind in ('recorder', 'queues')]
        expect('their names', sorted(files) == sorted([*cards, 'case-guest1-hca0.counters', 'case-guest1.rdma',
                                                       'case-guest1.dmesg', 'case-failure']), *files)
        expect('of the card', files['case-guest1-hca0.queues'] == f'{PEER}\n' and
               files['case-guest1-hca0.counters'] == 'link tx_packets 7\n', files)
        expect('of the guest', files['case-guest1.dmesg'] == 'first\nsecond\n', files)
        expect('why', files['case-failure'] == 'Traceback\nwhy\n', files)
        saved = [arguments for command, arguments in monitor.asked if command == 'rdma-hca-recorder-save']
        expect('saved by ID or path', [each['id'] for each in saved] == ['hca0', '/machine/peripheral-anon/device[0]'], saved)
        expect('where', os.path.isabs(saved[0]['filename']) and saved[0]['filename'].endswith('/case-guest1-hca0.pcapng'), saved)
        expect('printed', lines[1] == 'guest1-hca0: TIMEOUT of QP 0x49; from 2 lines' and lines[-1] == 'why', *lines)


def test_machine_without_cards():
    guest = machine(devices=(Nic('net'),))
    with left(guest) as (files, lines):
        expect('the guest alone', 'case-guest1.dmesg' in files and not guest.monitor.asked and len(lines) == 3, *lines)


def test_monitor_that_hangs():
    """It is asked once; the guest and other machines leave what they have."""
    silent = Answers(query_rdma_hca_recorder=GuestError('guest1: QMP query-rdma-hca-recorder: no answer in 5 s'))
    with left(machine(monitor=silent), machine('guest2')) as (files, lines):
        expect('once', len(silent.asked) == 1, silent.asked)
        expect('the others', {'case-guest1.dmesg', 'case-guest2-hca0.recorder'} <= set(files), *files)
        expect('a note', 'guest1: not had: guest1: QMP query-rdma-hca-recorder: no answer in 5 s' in lines, *lines)
        expect('which is kept', 'no answer' in files['case-failure'], files)


def test_refused():
    """A QEMU that does not know one thing is asked for the others."""
    monitor = Answers(query_rdma_hca_queues=Refused('guest1: QMP query-rdma-hca-queues: no such command'),
                      rdma_hca_recorder_save=Refused('guest1: QMP rdma-hca-recorder-save: disk full'))
    with left(machine(monitor=monitor)) as (files, lines):
        expect('the others', {'case-guest1-hca0.recorder', 'case-guest1-hca0.counters'} <= set(files), *files)
        expect('notes', sum('QMP' in line for line in lines) == 3, *lines)


def test_card_without_recorder():
    monitor = Answers(query_rdma_hca_recorder=lines_of())
    with left(machine(monitor=monitor)) as (_, lines):
        expect('nothing to save', not any(command == 'rdma-hca-recorder-save' for command, _ in monitor.asked), monitor.asked)
        expect('said', 'guest1-hca0: nothing was recorded' in lines, *lines)


def test_guest_that_hangs():
    """Its cards and what it has said are there."""
    with left(machine(error=GuestError('still running'))) as (files, lines):
        expect('what it said', files['case-guest1.rdma'].startswith('first\nsecond\n# no end in '), files)
        expect('the card', 'case-guest1-hca0.recorder' in files, *files)
        expect('a note', any(line.startswith('guest1: dmesg: no end in ') for line in lines), *lines)


def test_guest_that_is_gone():
    for guest, note in ((machine(status=-9), 'QEMU has ended with status -9'), (machine(ready=False), 'it takes no commands')):
        with left(guest, machine('guest2')) as (files, lines):
            expect('the other', 'case-guest2.dmesg' in files and 'case-guest1.dmesg' not in files, *files)
            expect('a note', any(f'guest1: not had: {note}' in line for line in lines), *lines)
    guest = machine()
    guest.process = guest.monitor = None
    with left(guest) as (files, _):
        expect('a lab that was not started', list(files) == ['case-failure'], *files)


def test_it_takes_too_long():
    """Then the rest is left out."""
    with mock.patch.object(remains, 'SECONDS', 0.2 / remains.FACTOR):
        slow = [machine(f'guest{number}', Answers(query_rdma_hca_recorder=0.15)) for number in range(1, 9)]
        with left(*slow) as (_, lines):
            expect('the first ones', sum(bool(guest.monitor.asked) for guest in slow) in (1, 2), *lines)
            expect('why', lines[-1] == 'why', *lines)


FAILING = '''
import types
from harness import lab, remains, tap
folder = {folder!r}
guest = types.SimpleNamespace(name='guest1', devices=[], process=None)
each = types.SimpleNamespace(folder=folder, guests=[guest], trouble=lambda: ['WARNING of a kernel'] * 100)
each.stop = lambda keep: lab._labs.remove(each)
lab._labs.append(each)

def test_one():
    raise ValueError('why\\n' * 300 + 'the last word')

def test_two():
    pass

{more}
tap.main()
'''


def fail(folder, more=''):
    """The output of a program whose first case fails."""
    return subprocess.run([sys.executable, '-c', FAILING.format(folder=folder, more=more)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False).stdout.splitlines()


def test_printed():
    """A screen of comments in front of the result, and the rest in a file."""
    folder = tempfile.mkdtemp(prefix='flight-')
    try:
        lines = fail(folder)
        end = lines.index('not ok 1 - test_one')
        expect('a screen', 20 < end <= flight.SCREEN + 1 and all(line.startswith('# ') for line in lines[1:end]), *lines)
        expect('what and where', {f'# all that it left: {folder}/test_one-*', '# ValueError: why', '# the last word',
                                  '# WARNING of a kernel'} <= set(lines), *lines)
        expect('the next one', 'ok 2 - test_two' in lines, *lines)
        with open(os.path.join(folder, 'test_one-failure')) as file:
            text = file.read()
        expect('the rest', text.count('why') >= 300 and text.count('WARNING') == 100, text)
    finally:
        shutil.rmtree(folder)


def test_leaving_hangs():
    """The failure is told all the same."""
    hang = 'import time\ntap.LEAVE_SECONDS = 0.2\nremains.leave = lambda *arguments: time.sleep(100)'
    lines = fail('/nowhere', hang)
    expect('told', {'# the last word', "# no more than these: TimeOut('the test took too long')", 'not ok 1 - test_one',
                    'ok 2 - test_two'} <= set(lines), *lines)


# The cards

def recorder_of(card):
    guest = types.SimpleNamespace(number=1, devices=[])
    return card.put_into(guest, 0, None).device()['recorder']


def test_recorders():
    """All cards have one; a test, or who runs it, may want another; what is measured has none."""
    with mock.patch.dict(os.environ, CARD_OPTIONS=''):
        expect('all', {recorder_of(kind()) for kind in (InfinibandCard, RoceCard)} == {1024})
        expect('a test', recorder_of(InfinibandCard(properties={'recorder': 16})) == 16)
        measured = [each.device('link', 1) for each in CONTENDERS if each.device]
        expect('the benchmark', {recorder_of(card) for card in measured} == {0})
    with mock.patch.dict(os.environ, CARD_OPTIONS='recorder=64'):
        expect('who runs it', {recorder_of(card) for card in (InfinibandCard(), measured[0])} == {64})
        expect('a test first', recorder_of(InfinibandCard(properties={'recorder': 16})) == 16)


if __name__ == '__main__':
    tap.main()
