# SPDX-License-Identifier: GPL-2.0-or-later
"""Cards with the programming interface of an InfiniHost III Lx, in guests that have nothing of ours but the tests' programs: Debian's
kernel with its ib_mthca, and Debian's rdma-core."""
from .devices import InfinibandCard, ManagedCard

# What a guest of theirs is. Linux's driver takes fresh memory for zeroes, as Debian's kernels give it (CONFIG_INIT_ON_ALLOC_DEFAULT_ON):
# without, ib_uverbs meets what is not one in a region of it.
GUEST = {'append': 'init_on_alloc=1'}


class _Mthca:
    prefix = 'mthca'

    def device(self):
        return {**super().device(), 'driver': 'rdma-hca-mthca'}


class MthcaCard(_Mthca, InfinibandCard):
    pass


class ManagedMthcaCard(_Mthca, ManagedCard):
    pass
