# SPDX-License-Identifier: GPL-2.0-or-later
"""What checks the guests' kernel while it runs: make check-debug builds one that has it all."""
import os

from . import paths

CHECKERS = ('CONFIG_KASAN=y', 'CONFIG_PROVE_LOCKING=y', 'CONFIG_DEBUG_KMEMLEAK=y', 'CONFIG_FAILSLAB=y',
            'CONFIG_FAIL_PAGE_ALLOC=y')


def missing():
    """Those that it does not have."""
    with open(os.path.join(paths.OF_KERNEL, 'headers', '.config')) as config:
        have = set(config.read().splitlines())
    return [name for name in CHECKERS if name not in have]
