# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults between cards and their links, and what the cards have counted of them."""
import contextlib

from . import resources, wait
from .devices import Hca
from .guest import GuestError


def loss(probability):
    """The faults of a link that loses packets; all cards have them, each for what it sends."""
    return [{'action': 'drop', 'direction': 'tx', 'probability': probability}]


def ending(plan, count):
    """The same plan, each of its rules for so many packets only. A ping-pong leaves as soon as it has its last message: if
    the acknowledgement of that one is lost, nobody is there to repeat it, and its peer is right to complain."""
    return [{**rule, 'count': count} for rule in plan]


def set_faults(guests, plan):
    """The faults of our cards in these guests from now on, while the machines run."""
    for guest in guests:
        for card in guest.devices:
            if isinstance(card, Hca):
                guest.qmp('qom-set', path=f'/machine/peripheral/{card.id}', property='faults', value=plan)


@contextlib.contextmanager
def planned(guests, plan, afterwards=()):
    """The cards have these faults inside, and others afterwards."""
    set_faults(guests, plan)
    try:
        yield
    finally:
        set_faults(guests, list(afterwards))


def counted(lab):
    """The counters of events of all guests that speak by our card, added up, by "unit name"."""
    total = {}
    for guest in lab.guests:
        if isinstance(guest.card, Hca):
            for name, value in resources.counters(guest, 'cumulative').items():
                total[name] = total.get(name, 0) + value
    return total


def moved(lab, before):
    """By how much they have moved since."""
    return {name: value - before[name] for name, value in counted(lab).items()}


def wait_moved(lab, before, name, by, timeout=60):
    """Wait until one has moved by so much."""
    wait.until(lambda: moved(lab, before)[name] >= by, lambda: f'moved by {by}: {name} has by {moved(lab, before)[name]}', timeout,
               pause=0.05)


@contextlib.contextmanager
def losing(lab, plan):
    """The cards have these faults inside, and lose packets by them. Gives by what all counters have moved, when it is over."""
    before, change = counted(lab), {}
    with planned(lab.guests, plan):
        yield change
    change.update(moved(lab, before))
    print(f'# {change["link tx_packets"]} packets sent, {change["fault tx_drop"]} lost, '
          f'{change["requester retransmissions"]} sent again')
    if not change['fault tx_drop']:
        raise GuestError('nothing was lost')
