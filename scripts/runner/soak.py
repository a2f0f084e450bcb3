# SPDX-License-Identifier: GPL-2.0-or-later
"""make soak: rounds of guest programs beside processes that spin, to find what fails seldom. Each case is counted, and what its
first failure left is kept."""
import contextlib
import ctypes
import signal
import subprocess
import time

from .programs import TOP
from .runs import LOGS, Run, prove, scratch


class Count:
    """How often a case ran and failed, and where its first failure is."""

    def __init__(self):
        self.runs = self.failures = 0
        self.kept = None


class Tally:
    """The counts of a soak's cases, by program and case. folder: where its table is, and what failed."""

    def __init__(self, folder):
        self.folder, self.counts = folder, {}

    def add(self, run):
        """Count a run; the names of what failed in it."""
        program, results = run.part.program.name, run.results
        failed = list(results.failed)
        if results.ended_early:
            # It was at the first case that has no result.
            failed += [case for case in run.part.expected() if case not in results.printed][:1] or ['(the program)']
        for case in results.passed + failed:
            self.counts.setdefault((program, case), Count()).runs += 1
        for case in failed:
            count = self.counts[program, case]
            count.failures += 1
            if not count.kept:
                count.kept = self.folder / program / case.strip('()').replace('/', '.')
                run.keep(count.kept)
        return [f'{program}/{case}' for case in failed]

    def rows(self, every_case):
        """Of each program a row, and of its cases that failed, or of all."""
        for program in dict.fromkeys(program for program, _ in self.counts):
            cases = {case: count for (of, case), count in self.counts.items() if of == program}
            yield (program, max(count.runs for count in cases.values()), sum(count.failures for count in cases.values()), '')
            for case, count in cases.items():
                if count.failures or every_case:
                    yield f'  {case}', count.runs, count.failures, count.kept.relative_to(TOP) if count.kept else ''

    def table(self, every_case=False):
        rows = [('case', 'runs', 'failures', 'of the first'), *self.rows(every_case)]
        width = max(len(row[0]) for row in rows)
        return '\n'.join(f'{name:{width}} {runs:>6} {failures:>9}  {kept}'.rstrip() for name, runs, failures, kept in rows) + '\n'

    def write(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / 'table').write_text(self.table(every_case=True))


@contextlib.contextmanager
def spinning(count):
    """So many processes that do nothing, as fast as they can. They do not outlive this one."""
    def die_with_us():
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG

    spinners = [subprocess.Popen(['sh', '-c', 'while :; do :; done'], stdin=subprocess.DEVNULL, preexec_fn=die_with_us)
                for _ in range(count)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def soak(parts, rounds, load):
    """So many rounds of them; 1 if something failed."""
    tally = Tally(LOGS / 'soak' / time.strftime('%Y%m%d-%H%M%S'))
    try:
        with spinning(load):
            for number in range(1, rounds + 1):
                one_round(parts, tally, f'round {number} of {rounds}')
    finally:
        if tally.counts:
            print(f'\n{tally.table()}\nAll cases: {tally.folder.relative_to(TOP)}/table', flush=True)
    return 1 if any(count.failures for count in tally.counts.values()) else 0


def one_round(parts, tally, title):
    with scratch() as folder:
        runs = [Run(part, part.program.name, folder / 'logs', folder) for part in parts]
        started = time.monotonic()
        prove(runs, silent=True)
        failed = [name for run in runs for name in tally.add(run)]
    tally.write()
    print(f'{title}, {time.monotonic() - started:.0f} s: {", ".join(failed) + " failed" if failed else "all passed"}', flush=True)
