#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""rdma-core's own tests (pyverbs) on the card, in one guest of a pair: both ends of their traffic are queue pairs of its card.
Those of the connection manager find a card by its IP address, and so they have a RoCE card.

How each test goes is written in pyverbs/ledger: passed, or skipped and why. Anything else than what is written there
fails, for the better too, so that the ledger is always true. `make ledger` (this program with --ledger) writes it
anew; look at what changed before it is committed. PYVERBS_SEED=N repeats the random choices of a run that failed.
"""
import dataclasses
import functools
import json
import os
import random
import sys

from harness import lab, paths, tap
from harness.guest import GuestError
from harness.labs import infiniband, kept, roce

# The modules of rdma-core's tests that the card is to pass, and the seconds that one may take.
MODULES = ['test_device', 'test_pd', 'test_mr', 'test_cq', 'test_cq_events', 'test_addr',
           'test_qp', 'test_qpex', 'test_cqex', 'test_atomic', 'test_relaxed_ordering', 'test_rdmacm']
ROCE = ['test_rdmacm']
LIMIT = 240

FOLDER = os.path.join(paths.TOP, 'guest-tests', 'pyverbs')
LEDGER = os.path.join(FOLDER, 'ledger')
HEAD = '''# SPDX-License-Identifier: GPL-2.0-or-later
# How rdma-core's tests go on the card, one a line. `make ledger` writes this file.
'''
UPDATE = '`make ledger` updates guest-tests/pyverbs/ledger'
MOUNT = '[ -e /mnt/tests ] || { mkdir -p /mnt && mount -t squashfs -o ro /dev/vdc /mnt; }'
PYTHON = 'LD_LIBRARY_PATH=/mnt/usr/lib/x86_64-linux-gnu /mnt/usr/bin/python3'
cut_short = []  # modules that did not come to their end
SEED = int(os.environ.get('PYVERBS_SEED') or random.randrange(10**6))


@dataclasses.dataclass
class Outcome:
    """How a test went: passed, skipped, failed; and why it was skipped or failed."""
    outcome: str
    reason: str = ''

    def __str__(self):
        return f'{self.outcome}: {self.reason}' if self.reason else self.outcome


def read_ledger():
    """Outcomes by name of test, "MODULE.CLASS.FUNCTION"."""
    outcomes = {}
    with open(LEDGER) as file:
        for line in file:
            if line.strip() and not line.startswith('#'):
                name, outcome, *reason = line.rstrip('\n').split(': ', 2)
                outcomes[name] = Outcome(outcome, *reason)
    return outcomes


def write_ledger(outcomes):
    with open(LEDGER + '.new', 'w') as file:
        file.write(HEAD)
        for name, outcome in outcomes.items():
            file.write(f'{name}: {outcome}\n')
    os.replace(LEDGER + '.new', LEDGER)


@functools.lru_cache(maxsize=None)
def run(module):
    """Run a module of tests; give the outcomes by name."""
    guest = kept(roce if module in ROCE else infiniband, disks=(paths.PYTHON_DISK,)).a
    with open(os.path.join(FOLDER, 'runner.py')) as file:
        runner = file.read()
    guest.run(MOUNT)
    arguments = f'/mnt/tests {guest.card.name} {SEED} {module}'
    command = guest.spawn(f"{PYTHON} - {arguments} <<'END_OF_RUNNER'\n{runner}\nEND_OF_RUNNER\n")
    try:
        output = command.wait(LIMIT, check=False).output
    except GuestError:
        output = command.output
    outcomes = {}
    for line in output.splitlines():
        word, _, rest = line.partition(' ')
        if word == 'outcome':
            found = json.loads(rest)
            reason = found['reason'] if found['outcome'] == 'failed' else ' '.join(found['reason'].split())
            outcomes[found['name']] = Outcome(found['outcome'], reason)
        elif line != 'end':
            print(f'# {line}')
    if output.splitlines()[-1:] != ['end']:
        cut_short.append(module)
    print(f'# {module}: {len(outcomes)} tests, PYVERBS_SEED={SEED}', flush=True)
    return outcomes


def check(name, wanted):
    module = name.split('.')[0]
    found = run(module).get(name)
    if found is None and module in cut_short:
        raise GuestError(f'{name} was not run, because {module} broke off (PYVERBS_SEED={SEED})')
    if found is None:
        raise GuestError(f'{name} was not run; if rdma-core has it no more, {UPDATE}')
    if found.outcome == 'failed':
        raise GuestError(f'{name} failed (PYVERBS_SEED={SEED})\n{found.reason}')
    if found != wanted:
        raise GuestError(f'{name}: {found}\nin the ledger: {wanted}\nIf it is right so, {UPDATE}.')
    if found.outcome == 'skipped':
        raise tap.Skip(found.reason)


def check_no_others():
    """Every test that was run is in the ledger."""
    ledger = read_ledger()
    others = [f'{name}: {found}' for module in MODULES for name, found in run(module).items() if name not in ledger]
    if others:
        raise GuestError('\n'.join(['not in the ledger:', *others, UPDATE]))


def cases():
    """One TAP case a line of the ledger, and one for what is not in it."""
    def case(name, wanted):
        return tap.seconds(LIMIT + 60)(lambda: check(name, wanted))

    found = {name: case(name, wanted) for name, wanted in read_ledger().items()}
    found['test_no_others'] = tap.seconds((LIMIT + 60) * len(MODULES))(check_no_others)
    return found


def update():
    """Write the ledger anew and say what changed; not while a test fails."""
    old = read_ledger() if os.path.exists(LEDGER) else {}
    new = {name: outcome for module in MODULES for name, outcome in run(module).items()}
    lab.stop_all()
    failed = [f'{name} failed\n{outcome.reason}' for name, outcome in new.items() if outcome.outcome == 'failed']
    failed += [f'{module} broke off' for module in cut_short]
    if failed:
        sys.exit('\n'.join([*failed, 'rdma-hca: the ledger is left as it was, because tests failed']))
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            print(f'{name}: {old.get(name, "not there")} -> {new.get(name, "not there")}')
    write_ledger(new)
    counts = [sum(outcome.outcome == each for outcome in new.values()) for each in ('passed', 'skipped')]
    print(f'{len(new)} tests: {counts[0]} passed, {counts[1]} skipped')


if __name__ == '__main__':
    if sys.argv[1:] == ['--ledger']:
        update()
    else:
        globals().update(cases())
        tap.main()
