# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults on the cable of a pair, and what the cards have counted of them."""
from . import pair, resources

CARD = '/machine/peripheral/hca0'


def cards(both):
    """The guests that have our card."""
    return [guest for guest in both.guests if guest.device == pair.DEVICE]


def loss(probability):
    """The faults of a cable that loses packets; both cards have them, each for what it sends."""
    return [{'action': 'drop', 'direction': 'tx', 'probability': probability}]


def ending(plan, count):
    """The same plan, each of its rules for so many packets only. A ping-pong leaves as soon as it has its last message: if
    the acknowledgement of that one is lost, nobody is there to repeat it, and its peer is right to complain."""
    return [{**rule, 'count': count} for rule in plan]


def set_faults(both, faults):
    """From now on, while the machines run."""
    for guest in cards(both):
        guest.qmp('qom-set', path=CARD, property='faults', value=faults)


def counted(both):
    """The counters of events of both cards, added up, by "unit name"."""
    total = {}
    for guest in cards(both):
        for name, value in resources.counters(guest, 'cumulative').items():
            total[name] = total.get(name, 0) + value
    return total


def moved(both, before):
    """By how much they have moved since."""
    return {name: value - before[name] for name, value in counted(both).items()}
