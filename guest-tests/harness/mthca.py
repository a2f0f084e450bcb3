# SPDX-License-Identifier: GPL-2.0-or-later
"""Cards with the programming interface of an InfiniHost III Lx, in guests that have nothing of ours but the tests' programs: Debian's
kernel with its ib_mthca, and Debian's rdma-core."""
from . import fabric, links
from .devices import InfinibandCard, ManagedCard, Nic
from .lab import Lab, Machine

# Linux's driver takes fresh memory for zeroes, as Debian's kernels give it (CONFIG_INIT_ON_ALLOC_DEFAULT_ON): without, ib_uverbs
# meets in a region of it what was never written.
APPEND = 'init_on_alloc=1'


class _Mthca:
    prefix = 'mthca'

    def device(self):
        return {**super().device(), 'driver': 'rdma-hca-mthca'}


class MthcaCard(_Mthca, InfinibandCard):
    pass


class ManagedMthcaCard(_Mthca, ManagedCard):
    pass


def machine(card, layers=(), kind=Machine, **options):
    return kind(Nic('net'), card, layers=(*layers, 'debian'), append=APPEND, **options)


def pair(properties=None, capture=False, **options):
    """Two cards on a cable, with LIDs by their options. properties, capture: of the cards; options: of the guests."""
    return Lab([machine(MthcaCard('cable', properties, capture), **options)] * 2, {'net': links.stream(), 'cable': links.unix_cable()})


def managed(**options):
    """The same with a subnet manager in the first guest."""
    return fabric.FabricLab([machine(ManagedMthcaCard('cable'), ('apps',), **options)] * 2,
                            {'net': links.stream(), 'cable': links.unix_cable()})
