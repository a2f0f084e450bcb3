# SPDX-License-Identifier: GPL-2.0-or-later
"""What is measured: figures of one thing, one of each contender."""
import json

# Units of which less is better.
TIMES = ('ns', 'us', 's/GB')


class Figures:
    """values: by contender. extra: more keys of the rows, where they make sense: qps, mode, statistic."""

    def __init__(self, name, size, unit, values, **extra):
        self.name, self.size, self.unit, self.values, self.extra = name, size, unit, values, extra

    def rows(self):
        return [{'name': self.name, 'bytes': self.size, 'unit': self.unit, 'contender': contender, 'value': round(value, 4),
                 **self.extra} for contender, value in self.values.items()]


def times_better(unit, value, base):
    """How many times better value is than base; None: nobody can say."""
    if not value or not base:
        return None
    return base / value if unit in TIMES else value / base


def write(path, rows):
    with open(path, 'w') as out:
        out.write('[\n' + ',\n'.join(json.dumps(row) for row in rows) + '\n]\n')


def read(path):
    with open(path) as rows:
        return json.load(rows)
