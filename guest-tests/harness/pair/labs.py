# SPDX-License-Identifier: GPL-2.0-or-later
"""The machines of a job, by what joins their cards."""
from .. import fabric, links, switches
from ..devices import InfinibandCard, ManagedCard, Nic, RoceCard
from ..lab import Lab, Machine
from ..snapshot import Snapshot

MOST_GUESTS = 16
APPLICATIONS = 'apps'


def _segment(count):
    """An Ethernet segment of so many machines."""
    return links.stream() if count == 2 else links.hub(count)


def _joined(make, card, link, count, options):
    return make([Machine(Nic('net'), card, **options)] * count, {'net': _segment(count), card.link: link})


def _infiniband(count, capture, options):
    return _joined(Lab, InfinibandCard('cable', capture=capture), links.unix_cable(), count, options)


def _managed(count, capture, options):
    """guest1 has the subnet manager, which is among the applications."""
    layers = (APPLICATIONS, *(layer for layer in options['layers'] if layer != APPLICATIONS))
    options = {**options, 'layers': layers}
    if count == 2:
        return _joined(fabric.FabricLab, ManagedCard('cable', capture=capture), links.unix_cable(), count, options)
    return _joined(fabric.FabricLab, ManagedCard('fabric', managed=None, capture=capture), switches.Fabric([0] * count), count, options)


def _roce(count, capture, options):
    return _joined(Lab, RoceCard('lan', capture=capture), _segment(count), count, options)


# By what --link says.
LINKS = {'ib': _infiniband, 'managed': _managed, 'roce': _roce}


def made(given, layers, parcel):
    """The lab that was asked for, not started. layers: beside what all guests have; parcel: of all (see parcels.py)."""
    if given.apps:
        layers = (APPLICATIONS, *layers)
    options = {'cpus': given.cpus, 'memory': given.memory, 'layers': tuple(layers)}

    def make():
        lab = LINKS[given.link](given.guests, given.capture, options)
        for guest in lab.guests:
            guest.arguments += parcel.drives(guest)
        return lab

    if not given.snapshot:
        return make()
    options['boots'] = True
    return Snapshot(make).lab()
