#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""rdma-core's own tests (pyverbs) on the card, in one guest of a pair: both ends of their traffic are queue pairs of its card.
All of them run, on an InfiniBand card with a subnet manager and on a RoCE card, those of other vendors' extensions too.

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

from harness import fabric, lab, links, paths, tap
from harness.devices import ManagedCard, Nic, RoceCard
from harness.guest import GuestError
from harness.lab import Machine
from harness.labs import kept

# The link layers, and where in its guest the card of each is.
LINKS = {'infiniband': 2, 'roce': 1}
LIMIT = 400  # seconds for all tests on one of them

FOLDER = os.path.join(paths.TOP, 'guest-tests', 'pyverbs')
# Another rdma-core, or kernel, has another: ledger-65-7.3.
LEDGER = os.path.join(FOLDER, '-'.join(['ledger', *paths.other_versions()]))
HEAD = '''# SPDX-License-Identifier: GPL-2.0-or-later
# How rdma-core's tests go on the card, one a line; with a link layer at the end of its name where that makes a difference.
# `make ledger` writes this file.
'''
UPDATE = '`make ledger` updates guest-tests/pyverbs/ledger'
# Some tests want huge pages.
PREPARE = '[ -e /mnt/tests ] || { mkdir -p /mnt && mount -t squashfs -o ro %s /mnt; }; echo 16 >/proc/sys/vm/nr_hugepages'
PYTHON = 'LD_LIBRARY_PATH=/mnt/usr/lib/x86_64-linux-gnu /mnt/usr/bin/python3'
cut_short = []  # modules that did not come to their end, by "MODULE.LINK"
SEED = int(os.environ.get('PYVERBS_SEED') or random.randrange(10**6))


@dataclasses.dataclass
class Outcome:
    """How a test went: passed, skipped, failed; and why it was skipped or failed."""
    outcome: str
    reason: str = ''

    def __str__(self):
        return f'{self.outcome}: {self.reason}' if self.reason else self.outcome


def read_ledger():
    """Outcomes by name of test, "MODULE.CLASS.FUNCTION.LINK"."""
    outcomes = {}
    with open(LEDGER) as file:
        for line in file:
            if line.strip() and not line.startswith('#'):
                name, outcome, *reason = line.rstrip('\n').split(': ', 2)
                for each in [name] if name.split('.')[-1] in LINKS else [f'{name}.{link}' for link in LINKS]:
                    outcomes[each] = Outcome(outcome, *reason)
    return outcomes


def write_ledger(outcomes):
    with open(LEDGER + '.new', 'w') as file:
        file.write(HEAD)
        for name in sorted({full.rpartition('.')[0] for full in outcomes}):
            found = {link: outcomes.get(f'{name}.{link}') for link in LINKS}
            first = next(iter(found.values()))
            if all(each == first for each in found.values()):
                file.write(f'{name}: {first}\n')
            else:
                file.writelines(f'{name}.{link}: {each}\n' for link, each in found.items() if each)
    os.replace(LEDGER + '.new', LEDGER)


def both_links(**options):
    """A pair of guests, each with a card for each link layer; the InfiniBand subnet has a manager."""
    machine = Machine(Nic('net'), RoceCard('lan'), ManagedCard('cable'), layers=('apps',), **options)
    return fabric.FabricLab([machine, machine], {'net': links.stream(), 'lan': links.stream(), 'cable': links.unix_cable()})


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


@functools.lru_cache(maxsize=None)
def run(link):
    """Run all tests on the card with this link; give the outcomes by name."""
    guest = kept(both_links, disks=(paths.PYTHON_DISK,)).a
    guest.run(PREPARE % guest.disk(0))
    left = [os.path.basename(path)[:-len('.py')] for path in guest.run('ls /mnt/tests/test_*.py').output.split()]
    outcomes = {}
    while left:
        output = run_modules(guest, guest.devices[LINKS[link]], left)
        module = left[0]
        for line in output.splitlines():
            word, _, rest = line.partition(' ')
            if word == 'outcome':
                found = json.loads(rest)
                reason = found['reason'] if found['outcome'] == 'failed' else ' '.join(found['reason'].split())
                outcomes[f'{found["name"]}.{link}'] = Outcome(found['outcome'], reason)
            elif word == 'module':
                module = rest
            elif line != 'end':
                print(f'# {line}')
        if output.splitlines()[-1:] == ['end']:
            break
        # Go on behind what broke off.
        cut_short.append(f'{module}.{link}')
        left = left[left.index(module) + 1:]
    print(f'# {link}: {len(outcomes)} tests, PYVERBS_SEED={SEED}', flush=True)
    return outcomes


def check(name, wanted):
    module, *_, link = name.split('.')
    found = run(link).get(name)
    if found is None and f'{module}.{link}' in cut_short:
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
    others = [f'{name}: {found}' for link in LINKS for name, found in run(link).items() if name not in ledger]
    if others:
        raise GuestError('\n'.join(['not in the ledger:', *others, UPDATE]))


def cases():
    """One TAP case for each test and link layer of the ledger, and one for what is not in it."""
    def case(name, wanted):
        return tap.seconds(LIMIT + 60)(lambda: check(name, wanted))

    def none():
        raise tap.Skip(f'nobody has written {os.path.basename(LEDGER)} yet: make ledger, for these versions')

    if paths.other_versions() and not os.path.exists(LEDGER):
        return {'test_no_ledger': none}
    found = {name: case(name, wanted) for name, wanted in read_ledger().items()}
    found['test_no_others'] = tap.seconds((LIMIT + 60) * len(LINKS))(check_no_others)
    return found


def update():
    """Write the ledger anew and say what changed; not while a test fails."""
    old = read_ledger() if os.path.exists(LEDGER) else {}
    new = {name: outcome for link in LINKS for name, outcome in run(link).items()}
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
