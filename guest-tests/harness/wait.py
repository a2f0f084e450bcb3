# SPDX-License-Identifier: GPL-2.0-or-later
"""Wait for what comes about sooner or later."""
import time

from .guest import GuestError
from .patience import patient


def until(condition, what, timeout=30, pause=0.1):
    """Wait until condition() gives something true; give that. what: the words for it, or a function that finds them when it
    did not come about."""
    deadline = time.monotonic() + patient(timeout)
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise GuestError(f'after {patient(timeout)} s still not {what() if callable(what) else what}')
        time.sleep(pause)
