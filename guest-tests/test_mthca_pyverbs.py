#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""rdma-core's own tests (harness/pyverbs.py), of the version that is built here with its libmthca, on a card with the programming
interface of an InfiniHost III Lx, which Linux's ib_mthca drives."""
from harness import fabric, links, mthca
from harness.devices import Nic
from harness.lab import Machine
from harness.pyverbs import Suite


FOREIGN = {
    # More entries than the new size: MTHCA_CMD_STAT_BAD_SIZE, which Linux's driver makes ENOMEM.
    'test_cq.CQTest.test_resize_cq': 'it wants EINVAL where ib_mthca says ENOMEM',
    **{f'test_qp.QPTest.test_{test.format(service)}': 'it asks by chance for what libmthca has, or has not' for service in ('rc', 'uc', 'ud')
       for test in ('create_{}_qp_ex_no_attr', 'create_{}_qp_ex_with_attr', 'query_{}_qp', 'modify_{}_qp')},
}


def managed(**options):
    machine = Machine(Nic('net'), mthca.ManagedMthcaCard('cable'), layers=('apps',), append=mthca.APPEND, **options)
    return fabric.FabricLab([machine, machine], {'net': links.stream(), 'cable': links.unix_cable()})


if __name__ == '__main__':
    Suite('ledger-mthca', {'mthca': (managed, 1)}, FOREIGN).main(globals())
