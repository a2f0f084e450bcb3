# SPDX-License-Identifier: GPL-2.0-or-later
"""rdma-core's own tests (pyverbs) on a card, in one guest of a pair: both ends of their traffic are queue pairs of its card.
All of them run, those of other vendors' extensions too.

How each test goes is written in a ledger: passed, or skipped and why. Anything else than what is written there
fails, for the better too, so that the ledger is always true. `make ledger` writes it anew; look at what changed before it is
committed. PYVERBS_SEED=N repeats the random choices of a run that failed."""
import dataclasses
import json
import os
import random
import sys

from . import lab, paths, tap
from .guest import GuestError
from .labs import kept

LIMIT = 400  # seconds for all tests on one card
FOLDER = os.path.join(paths.TOP, 'guest-tests', 'pyverbs')
HEAD = '''# SPDX-License-Identifier: GPL-2.0-or-later
# How rdma-core's tests go on the card, one a line; with the kind of card at the end of its name where that makes a difference.
# `make ledger` writes this file.
'''
# Some tests want huge pages.
PREPARE = '[ -e /mnt/tests ] || { mkdir -p /mnt && mount -t squashfs -o ro %s /mnt; }; echo 16 >/proc/sys/vm/nr_hugepages'
PYTHON = 'LD_LIBRARY_PATH=/mnt/usr/lib/x86_64-linux-gnu /mnt/usr/bin/python3'
SEED = int(os.environ.get('PYVERBS_SEED') or random.randrange(10**6))


@dataclasses.dataclass
class Outcome:
    """How a test went: passed, skipped, failed; and why it was skipped or failed."""
    outcome: str
    reason: str = ''

    def __str__(self):
        return f'{self.outcome}: {self.reason}' if self.reason else self.outcome


def run_modules(guest, device, modules):
    """What the runner prints of modules of tests on a device; it may break off."""
    with open(os.path.join(FOLDER, 'runner.py')) as file:
        runner = file.read()
    arguments = f'/mnt/tests {device.name} {SEED} {" ".join(modules)}'
    command = guest.spawn(f"{PYTHON} - {arguments} <<'END_OF_RUNNER'\n{runner}\nEND_OF_RUNNER\n")
    try:
        return command.wait(LIMIT, check=False).output
    except GuestError:
        return command.output


class Suite:
    """cards: by the name of a kind, the function that makes a lab whose guests have one (it takes disks), and where in the guest it
    is. ledger: the name of its file. foreign: by name, why it says nothing how a test goes."""

    def __init__(self, ledger, cards, foreign=None):
        # Another rdma-core, or kernel, has another: ledger-65-7.3.
        self.ledger, self.cards = os.path.join(FOLDER, '-'.join([ledger, *paths.other_versions()])), cards
        self._foreign = foreign or {}
        self._advice = f'`make ledger` updates guest-tests/pyverbs/{ledger}'
        self._cut_short = []  # modules that did not come to their end, by "MODULE.CARD"
        self._outcomes = {}

    def read(self):
        """Outcomes by name of test, "MODULE.CLASS.FUNCTION.CARD"."""
        outcomes = {}
        with open(self.ledger) as file:
            for line in file:
                if line.strip() and not line.startswith('#'):
                    name, outcome, *reason = line.rstrip('\n').split(': ', 2)
                    for each in [name] if name.split('.')[-1] in self.cards else [f'{name}.{card}' for card in self.cards]:
                        outcomes[each] = Outcome(outcome, *reason)
        return outcomes

    def write(self, outcomes):
        with open(self.ledger + '.new', 'w') as file:
            file.write(HEAD)
            for name in sorted({full.rpartition('.')[0] for full in outcomes}):
                found = {card: outcomes.get(f'{name}.{card}') for card in self.cards}
                first = next(iter(found.values()))
                if all(each == first for each in found.values()):
                    file.write(f'{name}: {first}\n')
                else:
                    file.writelines(f'{name}.{card}: {each}\n' for card, each in found.items() if each)
        os.replace(self.ledger + '.new', self.ledger)

    def run(self, card):
        """Run all tests on this card, once; give the outcomes by name."""
        if card not in self._outcomes:
            self._outcomes[card] = self._run(card)
        return self._outcomes[card]

    def _run(self, card):
        make, place = self.cards[card]
        guest = kept(make, disks=(paths.PYTHON_DISK,)).a
        guest.run(PREPARE % guest.disk(0))
        left = [os.path.basename(path)[:-len('.py')] for path in guest.run('ls /mnt/tests/test_*.py').output.split()]
        outcomes = {}
        while left:
            output = run_modules(guest, guest.devices[place], left)
            module = left[0]
            for line in output.splitlines():
                word, _, rest = line.partition(' ')
                if word == 'outcome':
                    found = json.loads(rest)
                    reason = found['reason'] if found['outcome'] == 'failed' else ' '.join(found['reason'].split())
                    outcomes[f'{found["name"]}.{card}'] = self._judge(found['name'], Outcome(found['outcome'], reason))
                elif word == 'module':
                    module = rest
                elif line != 'end':
                    print(f'# {line}')
            if output.splitlines()[-1:] == ['end']:
                break
            # Go on behind what broke off.
            self._cut_short.append(f'{module}.{card}')
            left = left[left.index(module) + 1:]
        print(f'# {card}: {len(outcomes)} tests, PYVERBS_SEED={SEED}', flush=True)
        return outcomes

    def _judge(self, name, outcome):
        """One that need not be as it should counts as skipped, however it went."""
        return Outcome('skipped', self._foreign[name]) if name in self._foreign else outcome

    def _check(self, name, wanted):
        module, *_, card = name.split('.')
        found = self.run(card).get(name)
        if found is None and f'{module}.{card}' in self._cut_short:
            raise GuestError(f'{name} was not run, because {module} broke off (PYVERBS_SEED={SEED})')
        if found is None:
            raise GuestError(f'{name} was not run; if rdma-core has it no more, {self._advice}')
        if found.outcome == 'failed':
            raise GuestError(f'{name} failed (PYVERBS_SEED={SEED})\n{found.reason}')
        if found != wanted:
            raise GuestError(f'{name}: {found}\nin the ledger: {wanted}\nIf it is right so, {self._advice}.')
        if found.outcome == 'skipped':
            raise tap.Skip(found.reason)

    def _check_no_others(self):
        """Every test that was run is in the ledger."""
        ledger = self.read()
        others = [f'{name}: {found}' for card in self.cards for name, found in self.run(card).items() if name not in ledger]
        if others:
            raise GuestError('\n'.join(['not in the ledger:', *others, self._advice]))

    def cases(self):
        """One TAP case for each test and card of the ledger, and one for what is not in it."""
        def case(name, wanted):
            return tap.seconds(LIMIT + 60)(lambda: self._check(name, wanted))

        def none():
            raise tap.Skip(f'nobody has written {os.path.basename(self.ledger)} yet: make ledger, for these versions')

        if paths.other_versions() and not os.path.exists(self.ledger):
            return {'test_no_ledger': none}
        found = {name: case(name, wanted) for name, wanted in self.read().items()}
        found['test_no_others'] = tap.seconds((LIMIT + 60) * len(self.cards))(lambda: self._check_no_others())
        return found

    def update(self):
        """Write the ledger anew and say what changed; not while a test fails."""
        old = self.read() if os.path.exists(self.ledger) else {}
        new = {name: outcome for card in self.cards for name, outcome in self.run(card).items()}
        lab.stop_all()
        failed = [f'{name} failed\n{outcome.reason}' for name, outcome in new.items() if outcome.outcome == 'failed']
        failed += [f'{module} broke off' for module in self._cut_short]
        if failed:
            sys.exit('\n'.join([*failed, 'rdma-hca: the ledger is left as it was, because tests failed']))
        for name in sorted({*old, *new}):
            if old.get(name) != new.get(name):
                print(f'{name}: {old.get(name, "not there")} -> {new.get(name, "not there")}')
        self.write(new)
        counts = [sum(outcome.outcome == each for outcome in new.values()) for each in ('passed', 'skipped')]
        print(f'{len(new)} tests: {counts[0]} passed, {counts[1]} skipped')

    def main(self, names):
        """names: of the program, vars() or globals()."""
        if sys.argv[1:] == ['--ledger']:
            self.update()
        else:
            names.update(self.cases())
            tap.main()
