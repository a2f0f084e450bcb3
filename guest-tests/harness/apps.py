# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests of applications share."""
from . import faults
from .devices import RoceCard, SoftRoce
from .guest import GuestError
from .labs import APPLICATIONS, roce

# Options of guests that run what is one process a guest.
ALONE = {**APPLICATIONS, 'cpus': 1}
# As many packets as a network that is about to be repaired loses.
LOSS = 0.005


def mixed(**options):
    """Our card, and Soft-RoCE."""
    return roce(RoceCard('lan'), SoftRoce('lan'), **options)


def stranger(**options):
    """Soft-RoCE on both sides: what figures stand beside."""
    return roce(SoftRoce('lan'), SoftRoce('lan'), **options)


def loss(lab, probability=LOSS):
    """The cards lose packets inside."""
    return faults.losing(lab, faults.loss(probability))


def carried(lab, before, name, least):
    """Since faults.counted() gave `before`, a counter of our cards has moved by so much: they did the work."""
    moved = faults.moved(lab, before)[name]
    if moved < least:
        raise GuestError(f'{name} has moved by {moved}, not by {least}: somebody else did the work')
