# SPDX-License-Identifier: GPL-2.0-or-later
"""make check SINCE=REV: the programs that a change can break. Who depends on a file is asked of whom knows it: of make, which units
and fuzz targets are made of it; of Python, which guest programs import it; and of scripts/depends the rest."""
import ast
import collections
import re
import subprocess
import sys

from .programs import Part, TOP

GUEST_TESTS = TOP / 'guest-tests'
MAKEFILES = {'scripts/unit.mk': 'unit/', 'scripts/fuzz.mk': 'fuzz/'}
# What make says when it makes a test program, or when a library of it is new.
MADE = re.compile(r'(?: -o |^touch )build/(?:unit/test-|fuzz/fuzz-)([\w-]+)(?: |$)', re.MULTILINE)


def changed(rev):
    """The files that are not as they were in a commit, and those that are new."""
    found = []
    for command in (['diff', '--name-only', '--no-renames', rev, '--'], ['ls-files', '--others', '--exclude-standard']):
        listed = subprocess.run(['git', *command], capture_output=True, text=True, check=False)
        if listed.returncode:
            sys.exit(f'rdma-hca: SINCE={rev}: {listed.stderr.strip()}')
        found += listed.stdout.splitlines()
    return sorted(set(found))


def made_of(paths):
    """The units and fuzz targets that would be made again if these files were new. All has to be built."""
    what_if = [word for path in paths for word in ('-W', path)]
    for makefile, level in MAKEFILES.items():
        plan = subprocess.run(['make', '-n', '-f', makefile, *what_if], capture_output=True, text=True, check=True)
        yield from (level + name for name in MADE.findall(plan.stdout))


class Uses:
    """Which files of guest-tests/ use which: Python's imports, and where it has the name of a program or a module for the kernel."""

    def __init__(self):
        self.users = collections.defaultdict(set)
        sources = list(GUEST_TESTS.rglob('*.c'))
        for user in GUEST_TESTS.rglob('*.py'):
            text = user.read_text()
            for used in self._imported(user, ast.parse(text)):
                self.users[used].add(user)
            words = set(re.findall(r'[\w-]+', text))
            for used in sources:
                if used.stem in words:
                    self.users[used].add(user)

    @staticmethod
    def _imported(user, tree):
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or '', *(f'{node.module or ""}.{alias.name}'.lstrip('.') for alias in node.names)]
            above = user.parent if isinstance(node, ast.ImportFrom) and node.level else GUEST_TESTS
            for name in names:
                path = above.joinpath(*name.split('.')).with_suffix('.py')
                if path.exists():
                    yield path

    def programs(self, paths):
        """The guest programs that use them, by whatever way."""
        seen, left = set(), [TOP / path for path in paths]
        while left:
            path = left.pop()
            if path not in seen:
                seen.add(path)
                left += self.users[path]
        return ['guest/' + path.stem.removeprefix('test_') for path in seen
                if path.parent == GUEST_TESTS and path.name.startswith('test_')]


def in_table(paths):
    """What scripts/depends has for them: regular expressions of names."""
    for line in (TOP / 'scripts/depends').read_text().splitlines():
        row = line.split('#')[0].split()
        if row and any(re.match(row[0], path) for path in paths):
            yield from row[1:]


def select(parts, rev):
    """Those of the parts that what changed since rev can break; of fuzz targets, what they keep. What is left out is said."""
    paths = changed(rev)
    names = {*made_of(paths), *Uses().programs(paths)}
    patterns = [re.compile(f'{pattern}$') for pattern in in_table(paths)]
    chosen = [part for part in parts if part.program.name in names or any(pattern.match(part.program.name) for pattern in patterns)]
    report(paths, chosen, [part for part in parts if part not in chosen])
    return [Part(part.program, ['/kept']) if part.program.name.startswith('fuzz/') else part for part in chosen]


def report(paths, chosen, left):
    print(f'{len(paths)} files changed; {len(chosen)} programs depend on them. Fuzz targets do not search. Left out:', flush=True)
    by_level = collections.defaultdict(list)
    for part in left:
        level, _, name = part.program.name.partition('/')
        by_level[level].append(name)
    for level, names in by_level.items():
        print(f'  {level}/: {" ".join(names)}', flush=True)
