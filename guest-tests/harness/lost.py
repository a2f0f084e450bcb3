# SPDX-License-Identifier: GPL-2.0-or-later
"""A card that programs lose, and what they can do when there is one again."""
from . import events, pci, resources, verbs, wait
from .guest import end_all


class Traffic:
    """Programs of both guests, at work between them, and one that listens to what guest a's card has to tell."""

    def __init__(self, both):
        self.watch = events.Watch(both.a)
        self.programs = verbs.start(both.a, both.b, 'ib_write_bw -F -s 65536 -D 100', percent=20)
        before = resources.counters(both.a, 'cumulative')['responder writes']
        wait.until(lambda: resources.counters(both.a, 'cumulative')['responder writes'] > before + 200, 'moving: data')

    def end(self):
        """The card is lost: all of them are told."""
        self.watch.wait('DEVICE_FATAL')
        self.watch.end()
        end_all(self.programs)


def works(both):
    both.wait_active()
    verbs.pingpong(both.a, both.b, '-n 50')
    verbs.pingpong(both.b, both.a, '-e -n 50')


def unplug(both):
    """Guest a's card, as the machine's user asks for, while programs use it."""
    traffic = Traffic(both)
    pci.unplug(both.a.card)
    traffic.end()
    pci.wait_gone(both.a.card)


def plug(both):
    """It again."""
    pci.plug(both.a.card)
    works(both)
