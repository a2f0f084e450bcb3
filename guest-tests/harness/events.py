# SPDX-License-Identifier: GPL-2.0-or-later
"""Asynchronous events of a card, as a program hears them (ibv_asyncwatch)."""
import contextlib
import re

from . import wait


class Watch:
    """A program in a guest that listens to its card."""

    def __init__(self, guest):
        self.command = guest.spawn(f'exec ibv_asyncwatch -d {guest.card.name}')
        self.command.wait_output('async event')

    @property
    def told(self):
        """The events, in their order, each with the number that it came with: a port's, or 0."""
        return [(name, int(port)) for name, port in re.findall(r'event_type IBV_EVENT_(\w+) \(\d+\), port (-?\d+)', self.command.output)]

    def wait(self, *names, since=0, timeout=30):
        """Wait until these were told, in this order, behind the first so many; others may be between them."""
        def found():
            left = iter(name for name, _ in self.told[since:])
            return all(name in left for name in names)

        wait.until(found, lambda: f'told: {", ".join(names)}: {self.told[since:]}', timeout, pause=0.05)

    def end(self):
        self.command.end()


@contextlib.contextmanager
def watched(guest):
    """A watch that is there inside."""
    watch = Watch(guest)
    yield watch
    watch.end()
