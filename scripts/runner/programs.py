# SPDX-License-Identifier: GPL-2.0-or-later
"""The test programs that there are. Each prints TAP, and knows GLib's options -l (list the cases) and -p (run one)."""
import os
import re
import subprocess
from pathlib import Path

TOP = Path.cwd()
BUILD = TOP / 'build'
PYTHON = '/usr/bin/python3'
# For each program: many times what it takes, as a busy machine gives it little. In the long form guest tests have more.
SECONDS, LONG_SECONDS = 900, 3600
# Those of the guests that take longest go first: none of them is to be alone at the end.
SLOW = ('pyverbs', 'fabric_managers', 'apps_unplugged', 'apps_memory', 'host_faults', 'apps_ucx', 'apps_libfabric', 'rxe', 'life', 'roce_cable')
# Units whose cards are exchanged for others that go on, in front of one turn of so many (HCA_RELOAD, see docs/testing.md): they
# hold on to nothing in a card.
RELOAD, LONG_RELOAD = 40, 20
RELOADED = '''
atomic-write bad-commands bad-contexts cxtmgt-cq cxtmgt-eq cxtmgt-icm cxtmgt-qp dev-mem errors eth-beside eth-control
eth-pause eth-queues eth-receive eth-rss eth-transmit eth-tso fault-actions fault-held fault-verbs-receive flow flush
invalidate local-ops loss mad-card mad-card-commands mad-card-gsi mad-card-paths moderation qp-counters raw rc
requester-acks requester-credits requester-life requester-psn requester-reads requester-timers responder-answers
responder-operations responder-psn responder-uc-ud roce-checks roce-congestion send share uc-ud windows xrc
'''.split()


class Program:
    """name: LEVEL/PROGRAM. command: how it is started. seconds: its limit of time."""

    def __init__(self, name, *command, seconds=SECONDS):
        self.name, self.seconds, self.command = name, seconds, [str(word) for word in command]

    @property
    def is_guest(self):
        return self.name.startswith('guest/')

    def cases(self):
        """The names of its cases, as -p takes them."""
        listed = subprocess.run([*self.command, '-l'], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return [line for line in listed.stdout.splitlines() if line and not re.match(r'#|\d+\.\.', line)]


class Part:
    """Some cases of a program; all of them, if cases is None."""

    def __init__(self, program, cases=None):
        self.program, self.cases = program, cases

    def expected(self):
        """The names of its cases."""
        return self.program.cases() if self.cases is None else self.cases

    def command(self):
        return [*self.program.command, *(word for case in self.cases or () for word in ('-p', case))]


def _is_long():
    return os.environ.get('LONG') == '1'


def units(folder):
    """The units that are built there, and those whose cards are exchanged."""
    built = [path for path in sorted(folder.glob('test-*')) if path.suffix == '']
    for path in built:
        yield Program('unit/' + path.name.removeprefix('test-'), path, '--tap')
    turns = LONG_RELOAD if _is_long() else RELOAD
    for name in RELOADED if built else ():
        yield Program(f'reload/{name}', 'env', f'HCA_RELOAD={turns}', folder / f'test-{name}', '--tap')


def programs():
    """All that is built, in the order of their run."""
    yield from units(BUILD / 'unit')
    for path in sorted((BUILD / 'fuzz').glob('fuzz-*')):
        if path.suffix == '':
            name = path.name.removeprefix('fuzz-')
            yield Program(f'fuzz/{name}', TOP / 'scripts/fuzz', 'test', name)
    yield Program('docs/figures', TOP / 'scripts/check-figures')
    yield Program('bench/cards', TOP / 'scripts/check-cards')
    yield Program('source/style', TOP / 'scripts/check-style')
    yield Program('source/floors', TOP / 'scripts/check-floors')
    yield Program('source/state', TOP / 'scripts/check-state')
    yield Program('source/runner', PYTHON, TOP / 'scripts/check-runner')
    yield Program('source/driver', TOP / 'scripts/check-driver')
    of_rdma_core, of_qemu = (Path(os.environ.get(name) or BUILD) for name in ('GUEST_RDMA_CORE', 'HOST_QEMU'))
    for name, path, options in (('unit/provider', of_rdma_core / 'rdma-core/bin/rdma_hca_provider_test', ()),
                                ('qtest/rdma-hca', of_qemu / 'qemu/tests/qtest/rdma-hca-test', ('--tap', '-k'))):
        if path.exists():
            yield Program(name, path, *options)
    seconds = (LONG_SECONDS if _is_long() else SECONDS) * int(os.environ.get('GUEST_PATIENCE') or 1)
    names = sorted(path.stem.removeprefix('test_') for path in (TOP / 'guest-tests').glob('test_*.py'))
    for name in sorted(names, key=lambda name: SLOW.index(name) if name in SLOW else len(SLOW)):
        yield Program(f'guest/{name}', PYTHON, TOP / f'guest-tests/test_{name}.py', seconds=seconds)


def select(pattern):
    """The parts whose name matches: whole programs, or those cases of one whose PROGRAM/CASE does."""
    chosen = []
    for program in programs():
        if re.search(pattern, program.name):
            chosen.append(Part(program))
        else:
            cases = [case for case in program.cases() if re.search(pattern, f'{program.name}/{case.lstrip("/")}')]
            chosen += [Part(program, cases)] if cases else []
    return chosen
