#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults of verbs, as docs/faults.md has them: for each status of a completion and each event the rule that makes it; links that
go down and come up. Each row of the tables is run, by a program that says what it has been told; then the program works again,
and nothing is in use that was not before."""
import contextlib
import json
import re
import shlex
from pathlib import Path

from harness import events, faults, log, paths, resources, tap, verbs, wait
from harness.check import expect
from harness.labs import infiniband, kept, roce

DOCUMENT = Path(paths.TOP) / 'docs/faults.md'
# Of <infiniband/verbs.h>.
STATUSES = ('SUCCESS LOC_LEN_ERR LOC_QP_OP_ERR LOC_EEC_OP_ERR LOC_PROT_ERR WR_FLUSH_ERR MW_BIND_ERR BAD_RESP_ERR LOC_ACCESS_ERR '
            'REM_INV_REQ_ERR REM_ACCESS_ERR REM_OP_ERR RETRY_EXC_ERR RNR_RETRY_EXC_ERR LOC_RDD_VIOL_ERR REM_INV_RD_REQ_ERR '
            'REM_ABORT_ERR INV_EECN_ERR INV_EEC_STATE_ERR FATAL_ERR RESP_TIMEOUT_ERR GENERAL_ERR TM_ERR TM_RNDV_INCOMPLETE').split()
EVENTS = ('CQ_ERR QP_FATAL QP_REQ_ERR QP_ACCESS_ERR COMM_EST SQ_DRAINED PATH_MIG PATH_MIG_ERR DEVICE_FATAL PORT_ACTIVE PORT_ERR '
          'LID_CHANGE PKEY_CHANGE SM_CHANGE SRQ_ERR SRQ_LIMIT_REACHED QP_LAST_WQE_REACHED CLIENT_REREGISTER GID_CHANGE '
          'WQ_FATAL').split()
# What no rule makes: a program that works, queues that the card has not, and what the kernel has of an interface's addresses.
NOT_PLANNED = {'SUCCESS', 'WQ_FATAL', 'GID_CHANGE'}
# Of ports of InfiniBand, which managers set up.
OF_MANAGERS = {'LID_CHANGE', 'PKEY_CHANGE', 'SM_CHANGE', 'CLIENT_REREGISTER'}


def rows(prefix):
    """Of the document's tables: the name, the rule as text, the rest of each row whose first cell has such a name."""
    return re.findall(rf'^\| `{prefix}(\w+)` \| `(\{{.*\}})` \| (.*) \|$', DOCUMENT.read_text(), re.MULTILINE)


def queues(guest):
    """What the card says of its queues: a line each."""
    return [line for card in guest.qmp('query-rdma-hca-queues') for line in card['lines']]


class Program:
    """faulty-host in a guest, which is ready; what it is to be told is said first."""

    def __init__(self, guest, arguments, *lines):
        self.guest, self.lines = guest, lines
        self.command = guest.spawn(f'exec faulty-host {arguments} {shlex.join(lines)}')
        self.command.wait_output('ready')
        self.qpns = [int(n) for n in re.search(r'ready: QP (\d+) and (\d+)', self.command.output).groups()]

    def srqn(self):
        """That of the second queue pair."""
        [line] = [line for line in queues(self.guest) if line.startswith(f'qp {self.qpns[1]:#x} ')]
        return int(re.search(r' srq (0x\w+)', line)[1], 16)

    def rule(self, text):
        """A rule of the document, with the program's numbers."""
        if 'SRQN' in text:
            text = text.replace('SRQN', str(self.srqn()))
        return json.loads(text.replace('QPN', str(self.qpns[0])))

    def told(self, rules, fails=False):
        """It works under these rules until it has been told its lines, and then again, unless the device has failed."""
        with faults.planned([self.guest], rules):
            self.command.kill(10)  # SIGUSR1
            output = self.command.wait(120).output
        for line in self.lines:
            expect(f'the program is told: {line}', line in output, rules, output)
        expect('it goes on', ('device failed\n' if fails else 'works\n') in output, rules, output)


@contextlib.contextmanager
def nothing_lost(make):
    """The kept lab, which works afterwards, with nothing in use that was not."""
    both = kept(make)
    with resources.given_back(both):
        yield both
        both.wait_active()
        verbs.pingpong(both.a, both.b, '-n 20')


def status_of(make):
    with nothing_lost(make) as both:
        for name, rule, seen in rows('IBV_WC_'):
            side, arguments = re.match(r'(send|recv), by `(.*)`', seen).groups()
            print(f'# {name}: {rule}')
            program = Program(both.a, arguments, f', status {STATUSES.index(name)}')
            program.told([program.rule(rule)])
            said = re.search(rf'^{side}: .*, status {STATUSES.index(name)}$', program.command.output, re.MULTILINE)
            expect(f'it is a {side}', said, program.command.output)


def test_documents_lists():
    """The document has a row for each status and event that there is."""
    for prefix, names in ('IBV_WC_', STATUSES), ('IBV_EVENT_', EVENTS):
        had = [name for name, *_ in rows(prefix)]
        expect(f'each once: {prefix}', sorted(had) == sorted(set(names) - NOT_PLANNED), had)


@tap.seconds(300)
def test_statuses():
    status_of(infiniband)


@tap.seconds(300)
def test_statuses_roce():
    status_of(roce)


# As ibv_event_type_str() has them.
TEXTS = {
    'CQ_ERR': 'CQ error', 'QP_FATAL': 'local work queue catastrophic error', 'QP_REQ_ERR': 'invalid request local work queue error',
    'QP_ACCESS_ERR': 'local access violation work queue error', 'COMM_EST': 'communication established',
    'SQ_DRAINED': 'send queue drained', 'PATH_MIG': 'path migrated', 'PATH_MIG_ERR': 'path migration request error',
    'DEVICE_FATAL': 'local catastrophic error', 'PORT_ACTIVE': 'port active', 'PORT_ERR': 'port error', 'LID_CHANGE': 'LID change',
    'PKEY_CHANGE': 'P_Key change', 'SM_CHANGE': 'SM change', 'SRQ_ERR': 'SRQ catastrophic error',
    'SRQ_LIMIT_REACHED': 'SRQ limit reached', 'QP_LAST_WQE_REACHED': 'last WQE reached', 'CLIENT_REREGISTER': 'client reregistration',
}


def event_of(make, skipped=()):
    with nothing_lost(make) as both:
        for name, rule, seen in rows('IBV_EVENT_'):
            if name in skipped:
                continue
            print(f'# {name}: {rule}')
            fails = name == 'DEVICE_FATAL'
            restarts = log.times(both.a, 'restarting')
            program = Program(both.a, re.match(r'`(.*)`', seen)[1], f'event: {TEXTS[name]}')
            program.told([program.rule(rule)], fails)
            if fails:
                log.wait_restarted(both.a, restarts)
                both.wait_active()


@tap.seconds(300)
def test_events():
    event_of(infiniband)


@tap.seconds(300)
def test_events_roce():
    event_of(roce, OF_MANAGERS)


def test_gids():
    """The last GID of an InfiniBand port comes and goes. Of a RoCE card's the kernel tells, with an address."""
    def last(guest):
        return guest.run(f'cat /sys/class/infiniband/{guest.card.name}/ports/1/gids/7', check=False).output.strip()

    with nothing_lost(infiniband) as both:
        before = last(both.a)
        for _ in range(2):
            now = last(both.a)
            with faults.planned([both.a], [{'place': 'card', 'action': 'raise', 'event': 'gid-change'}]):
                wait.until(lambda: last(both.a) != now, lambda: f'another GID: than {now}', 30)
        expect('as it was', last(both.a) == before, before, last(both.a))
    with nothing_lost(roce) as both, events.watched(both.a) as watching:
        for verb in 'add', 'del':
            heard = len(watching.told)
            both.a.run(f'ip address {verb} 10.99.0.1/24 dev '
                       f'$(ls /sys/class/infiniband/{both.a.card.name}/device/net)')
            watching.wait('GID_CHANGE', since=heard)


# --- links ----------------------------------------------------------------------------------------------------------------

MS = faults.MS


def port_changes(watching, since):
    return [name for name, port in watching.told[since:] if name in ('PORT_ERR', 'PORT_ACTIVE') and port == 1]


def test_link_flaps():
    """Ten times: each is told once at either end, in order, and a connection goes on through all of them."""
    with nothing_lost(infiniband) as both:
        with contextlib.ExitStack() as stack:
            watching = [stack.enter_context(events.watched(guest)) for guest in (both.a, both.b)]
            traffic = verbs.forever(both.b, both.a, 'ibv_rc_pingpong -n 1000000000 -s 1024')
            with faults.planned([both.a], [{'place': 'card', 'action': 'down', 'count': 10, 'down-ns': 20 * MS, 'up-ns': 20 * MS}]):
                wait.until(lambda: resources.counters(both.a, 'cumulative')['verb_fault card_down'] == 10,
                           lambda: 'gone down ten times: the link', 60)
                for watch in watching:
                    wait.until(lambda: port_changes(watch, 0) == 10 * ['PORT_ERR', 'PORT_ACTIVE'],
                               lambda: f'told of ten times: {watch.told}', 60)
            before = faults.counted(both)
            wait.until(lambda: faults.moved(both, before)['requester acks_rx'], 'acknowledged: what is sent afterwards', 60)
            verbs.went_on(traffic)


def test_link_goes_down_at_a_packet():
    """The hundredth packet of a connection's takes the link down for a time, at the sender alone: it is sent again."""
    with nothing_lost(infiniband) as both:
        before = faults.counted(both)
        with faults.planned([both.a], [{'action': 'down', 'direction': 'tx', 'kinds': ['send'], 'skip': 99, 'count': 1,
                                        'down-ns': 50 * MS, 'ends': 'own'}]):
            verbs.pingpong(both.a, both.b, '-n 500')
        moved = faults.moved(both, before)
        expect('once', moved['fault tx_down'] == 1, moved)
        expect('it is sent again', moved['requester retransmissions'] > 0, moved)


def test_link_comes_up_with_less():
    """Speed and MTU are less afterwards, until the plan goes and the link comes up once more."""
    def shown(guest):
        text = guest.run('ibv_devinfo -v').output
        return re.search(r'active_mtu:\s+(\d+)', text)[1], re.search(r'active_speed:\s+([\d.]+)', text)[1]

    down = {'place': 'card', 'action': 'down', 'count': 1, 'down-ns': 5 * MS}
    with nothing_lost(infiniband) as both:
        full = shown(both.a)
        for limits, want in ({'speed': 'sdr', 'mtu': 1024}, ('1024', '2.5')), ({}, full):
            with faults.planned([both.a], [{**down, **limits}]):
                wait.until(lambda: shown(both.a) == want, lambda: f'shown: {want}: {shown(both.a)}', 60)
            both.wait_active()
            verbs.pingpong(both.a, both.b, '-n 20 -m 1024')


if __name__ == '__main__':
    tap.main()
