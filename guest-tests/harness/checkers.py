# SPDX-License-Identifier: GPL-2.0-or-later
"""What the guests' kernel is built with. That which checks it while it runs: make check-debug builds one that has it all."""
import os

from . import paths, tap

CHECKERS = ('CONFIG_KASAN=y', 'CONFIG_PROVE_LOCKING=y', 'CONFIG_DEBUG_KMEMLEAK=y', 'CONFIG_FAILSLAB=y',
            'CONFIG_FAIL_PAGE_ALLOC=y')
PROBES = 'CONFIG_KPROBES=y', 'CONFIG_KRETPROBES=y'  # by which modules of tests come between the driver and its card


def missing(wanted=CHECKERS):
    """Those that it does not have."""
    with open(os.path.join(paths.OF_KERNEL, 'headers', '.config')) as config:
        have = set(config.read().splitlines())
    return [name for name in wanted if name not in have]


def need_probes():
    if missing(PROBES):
        raise tap.Skip('the guests\' kernel has no kprobes')
