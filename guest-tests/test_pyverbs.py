#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""rdma-core's own tests (harness/pyverbs.py) on an InfiniBand card with a subnet manager and on a RoCE card."""
from harness import fabric, links
from harness.devices import ManagedCard, Nic, RoceCard
from harness.lab import Machine
from harness.pyverbs import Suite


def both_links(**options):
    """A pair of guests, each with a card for each link layer; the InfiniBand subnet has a manager."""
    machine = Machine(Nic('net'), RoceCard('lan'), ManagedCard('cable'), layers=('apps',), **options)
    return fabric.FabricLab([machine, machine], {'net': links.stream(), 'lan': links.stream(), 'cable': links.unix_cable()})


# The link layers, and where in its guest the card of each is.
LINKS = {'infiniband': 2, 'roce': 1}

if __name__ == '__main__':
    Suite('ledger', {link: (both_links, place) for link, place in LINKS.items()}).main(globals())
