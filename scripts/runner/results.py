# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run of a program has left in its log: TAP, and in the last line '# status N' of tap-run's. Run with a log as its argument,
it shows what failed."""
import re
import sys
from pathlib import Path

RESULT = re.compile(r'(?P<failed>not )?ok \d+(?: -)? (?P<name>.*?)(?P<directive> # (?:SKIP|TODO)\b.*)?$', re.IGNORECASE)
PLAN = re.compile(r'1\.\.(\d+)')
TOOK = re.compile(r'# took ([\d.]+) s, of processors ([\d.]+) s and in the kernel ([\d.]+) s$')
STATUS = re.compile(r'# status (\d+)$')
MOST_LINES, MOST_CASES = 60, 3  # that are shown


class Results:
    """passed, failed: names of cases. planned: how many there were to be; None if it has not come to say so. printed: by case,
    the lines up to its result. rest: those behind the last result. status: as a shell has it; None if the run was cut off.
    seconds, processor: those that it took, of the clock and of processors."""

    def __init__(self, log):
        self.passed, self.failed, self.printed = [], [], {}
        self.planned, self.status, self.rest = None, None, []
        self.seconds = self.processor = 0
        try:
            lines = Path(log).read_text(errors='replace').splitlines()
        except FileNotFoundError:
            lines = []
        for line in lines:
            self._take(line)

    def _take(self, line):
        result, plan, took, status = (pattern.match(line) for pattern in (RESULT, PLAN, TOOK, STATUS))
        if result:
            failed = result['failed'] and 'todo' not in (result['directive'] or '').lower()
            (self.failed if failed else self.passed).append(result['name'])
            self.printed[result['name']], self.rest = [*self.rest, line], []
        elif plan:
            self.planned = max(self.planned or 0, int(plan[1]))  # GLib plans for each -p anew, with those before it
        elif took:
            self.seconds, self.processor = float(took[1]), float(took[2]) + float(took[3])
        elif status:
            self.status = int(status[1])
        else:
            self.rest.append(line)

    @property
    def missing(self):
        """How many cases have no result."""
        return max((self.planned or 0) - len(self.passed) - len(self.failed), 0)

    @property
    def ended_early(self):
        """It failed, and not by a case that has its result."""
        return self.planned is None or self.missing > 0 or (self.status != 0 and not self.failed)

    @property
    def wrong(self):
        """How much is wrong: cases, and no less than 1 if the run was not good."""
        return 0 if self.good else max(len(self.failed) + self.missing, 1)

    @property
    def total(self):
        return max(len(self.passed) + len(self.failed) + self.missing, self.wrong)

    @property
    def good(self):
        return self.status == 0 and not self.failed and not self.ended_early

    def show(self):
        """The end of what each case printed that failed, and of what came last, if it ended early."""
        shown = [self.printed[name] for name in self.failed[:MOST_CASES]] + ([self.rest] if self.ended_early else [])
        lines = [line for block in shown for line in block[-MOST_LINES:]]
        if len(self.failed) > MOST_CASES:
            lines.append(f'and {len(self.failed) - MOST_CASES} more cases')
        return lines


def main():
    results = Results(sys.argv[1])
    for line in results.show():
        print('# ' + re.sub('^#* *', '', line), file=sys.stderr)
    print(f'# status {results.status}; the whole output is in {sys.argv[1]}', file=sys.stderr)


if __name__ == '__main__':
    main()
