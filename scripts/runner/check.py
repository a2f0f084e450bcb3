# SPDX-License-Identifier: GPL-2.0-or-later
"""make check: all programs once, and a second look at guest cases that failed.

A guest test is much software of others' on a busy machine, and each may fail by chance. A case that has failed runs again, alone,
twice: if it fails again, it is a failure; if it passes both times, it is shaky. A few shaky cases do not fail a check, but they
are named, and all files of their first run are kept."""
import os

from .programs import Part, TOP
from .runs import LOGS, Run, prove, scratch

MOST_SHAKY = 3  # that a good check has
MOST_LOOKS = 10  # where more has failed, it was not by chance
LOOKS = 2


class Suspect:
    """What has failed in the run of a guest program, and is looked at together: a case, or what the program left out when it ended
    early. cases: its names; all of the part, if None."""

    def __init__(self, run, cases, name):
        self.run, self.cases, self.name = run, cases, name
        self.shaky = False

    @property
    def wrong(self):
        return len(self.cases or [None])

    def look(self, folder):
        """Run it again, until it fails."""
        self.shaky = all(self._passes(f'again-{number}/{self.run.name}', folder) for number in range(1, LOOKS + 1))

    def _passes(self, name, folder):
        if self.cases and len(self.cases) == 1:
            name = f'{name}/{self.cases[0]}'
        run = Run(Part(self.run.part.program, self.cases), name, LOGS / 'tests', folder)
        passed = prove([run], alone=True, silent=True) and set(self.cases or ()) <= set(run.results.passed)
        print(f'  {self.name}: {"passes" if passed else "fails again"}', flush=True)
        return passed

    def keep(self, folder):
        """Keep the log and the files of its run; where."""
        self.run.keep(folder / self.run.name)
        return folder / self.run.name


def suspects_of(run):
    program, results = run.part.program, run.results
    found = [Suspect(run, [case], f'{program.name}/{case}') for case in results.failed]
    if results.ended_early:
        left = [case for case in run.part.expected() if case not in results.printed]
        found.append(Suspect(run, left or run.part.cases, f'{program.name} (ended early)'))
    return found


def second_look(suspects, folder):
    """See which of them are shaky."""
    if len(suspects) > MOST_LOOKS:
        print(f'\n{len(suspects)} guest cases failed: too many for a second look.', flush=True)
        return
    if suspects:
        print(f'\nA second look at what failed in guests, alone, {LOOKS} times:', flush=True)
    for suspect in suspects:
        suspect.look(folder)


def tell(title, rows):
    """A list of names, and where their files are."""
    if rows:
        print(f'\n{title}')
    for name, where in rows:
        print(f'  {name}: {where.relative_to(TOP)}')


def verdict(runs, folder):
    """What a check comes to in which something failed: its exit status."""
    others = [run for run in runs if not run.results.good and not run.part.program.is_guest]
    suspects = [suspect for run in runs if not run.results.good and run.part.program.is_guest for suspect in suspects_of(run)]
    second_look(suspects, folder)
    shaky = [suspect for suspect in suspects if suspect.shaky]
    failed = [suspect for suspect in suspects if not suspect.shaky]
    tell('Failed:', [(run.name, run.log) for run in others] + [(each.name, each.keep(LOGS / 'failed')) for each in failed])
    tell(f'Shaky, as it failed once and then passed {LOOKS} times alone:', [(each.name, each.keep(LOGS / 'shaky')) for each in shaky])
    wrong = sum(run.results.wrong for run in others) + sum(each.wrong for each in failed)
    if len(shaky) > MOST_SHAKY or (shaky and os.environ.get('SHAKY') == 'fail'):
        print(f'Shaky cases are failures {"with SHAKY=fail" if len(shaky) <= MOST_SHAKY else f"when there are more than {MOST_SHAKY}"}.')
        wrong += sum(each.wrong for each in shaky)
    if not others and not suspects:
        print('\nprove has found something wrong that no log shows.')
        wrong = 1
    print(f'\n{sum(run.results.total for run in runs) - wrong} passed, {wrong} failed', flush=True)
    return 1 if wrong else 0


def write_times(runs):
    """What each took, and all together, those first that cost most."""
    rows = sorted(((run.results.processor, run.results.seconds, run.name) for run in runs), reverse=True)
    total = [(sum(row[0] for row in rows), sum(row[1] for row in rows), 'all')]
    (LOGS / 'times').write_text('processor   clock  program\n' + ''.join(f'{cpu:9.1f} {clock:7.1f}  {name}\n' for cpu, clock, name in total + rows))


def check(parts):
    """Run them all; the exit status."""
    with scratch() as folder:
        runs = [Run(part, part.program.name, LOGS / 'tests', folder) for part in parts]
        good = prove(runs)
        write_times(runs)
        return 0 if good else verdict(runs, folder)
