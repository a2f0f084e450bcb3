#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""usage: compare.py OLD.json NEW.json   Two runs of the benchmark, row by row. A ratio above 1: the new figure is better."""
import os
import statistics
import sys

if __name__ == '__main__':
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '..'))
    sys.dont_write_bytecode = True

from bench.figures import read, times_better  # noqa: E402


def key(row):
    return row['name'], row['bytes'], row['contender']


def pairs(old, new):
    """Rows that are in both, in the order of the new ones, with how many times better the new one is."""
    known = {key(row): row for row in old}
    for row in new:
        before = known.get(key(row))
        if before and before['unit'] == row['unit']:
            times = times_better(row['unit'], row['value'], before['value'])
            if times:
                yield before, row, times


def comparison(old, new):
    """Lines of text."""
    found = list(pairs(old, new))
    lines = [f'{"":37}{"bytes":>8} {"contender":<14}{"old":>12}{"new":>12}{"ratio":>9}']
    for before, row, times in found:
        lines.append(f'{row["name"]:37}{row["bytes"] or "":>8} {row["contender"]:<14}{before["value"]:12.2f}'
                     f'{row["value"]:12.2f}{times:9.2f}  {row["unit"]}')
    by_contender = {}
    for _, row, times in found:
        by_contender.setdefault(row['contender'], []).append(times)
    for contender, ratios in by_contender.items():
        lines.append(f'{"all, geometric mean":37}{"":>8} {contender:<14}{"":24}{statistics.geometric_mean(ratios):9.2f}')
    for what, rows, others in (('old', old, new), ('new', new, old)):
        alone = len({key(row) for row in rows} - {key(row) for row in others})
        if alone:
            lines.append(f'only in the {what} run: {alone} rows')
    return lines


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print('\n'.join(comparison(read(sys.argv[1]), read(sys.argv[2]))))


if __name__ == '__main__':
    main()
