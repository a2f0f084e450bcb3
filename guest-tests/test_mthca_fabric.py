#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that know nothing of us (test_mthca.py) with a subnet manager: what test_fabric_pair.py and test_fabric_ipoib.py have for our
own cards, as it is there; MPI and UCX; and a switch between them and ours."""
import functools
import itertools
import re

from harness import fabric, links, mpi, mthca, tap, ucx, verbs
from harness.check import expect
from harness.devices import ManagedCard, Nic
from harness.lab import Machine
from harness.labs import APPLICATIONS, kept
from harness.switches import Fabric

fabric.pair = mthca.managed  # whose tests these are
import test_apps_ucx  # noqa: E402
import test_fabric_ipoib  # noqa: E402
import test_fabric_managers  # noqa: E402
import test_fabric_pair  # noqa: E402

MODULES = (test_fabric_pair, test_fabric_ipoib, test_fabric_managers)
# What cannot be so here, and why.
LEFT_OUT = {
    'test_ibidsverify': "Debian's package has it by another name",
    'test_traps': "Debian's package has no ibsendtrap",
    'test_smpquery_refused': 'ib_mthca does not ask its card for attributes of a vendor, and nobody answers',
    'test_smpdump': 'the same',
    'test_node_description': 'ib_mthca tells nobody of a new one',
    'test_connection_rate': "Debian's cmtime tells nobody that it listens",
    'test_simple_programs': 'such a card has no XRC',
    'test_failover': 'ib_mthca does not tell programs that the manager is another one',
    'test_driver_loaded_again': "it is our driver's; test_mthca.py has another's",
}
# In the short form.
SHORT = ('test_ports', 'test_pingpongs', 'test_topology', 'test_smpquery', 'test_perfquery', 'test_ibping', 'test_saquery',
         'test_port_disabled', 'test_several_lids', 'test_datagram_mode', 'test_connected_mode', 'test_multicast', 'test_rping',
         'test_connections_at_once', 'test_groups_of_programs', 'test_srp')

for name, function in itertools.chain.from_iterable(vars(module).items() for module in MODULES):
    if name.startswith('test_') and name not in LEFT_OUT and (tap.LONG or name in SHORT):
        globals()[name] = function

applications = functools.partial(kept, mthca.managed, memory=APPLICATIONS['memory'], cpus=APPLICATIONS['cpus'])
SECONDS = 1800 if tap.LONG else 300


@tap.only_long
@tap.seconds(SECONDS)
def test_mpi():
    mpi.run_pair(applications())


@tap.seconds(SECONDS)
def test_ucx():
    both = applications()
    ucx.run(both.a, both.b, ucx.below_protocols('rc_v'), test_apps_ucx.PROTOCOLS[::1 if tap.LONG else 4])
    if tap.LONG:
        ucx.run(both.b, both.a, ucx.below_protocols('ud_v'), test_apps_ucx.PROTOCOLS)


def star():
    """Two of them, and one card of ours, at a switch."""
    machines = [mthca.machine(mthca.ManagedMthcaCard('fabric', managed=None), ('apps',)) for _ in range(2)]
    machines.append(Machine(Nic('net'), ManagedCard('fabric', managed=None), layers=('apps',)))
    return fabric.FabricLab(machines, {'net': links.hub(3), 'fabric': Fabric([0] * 3)})


def test_switch():
    """All talk to all, by verbs and by IPoIB."""
    lab = kept(star)
    for server, client in itertools.permutations(lab.guests, 2):
        verbs.pingpong(server, client, '-n 50', 'ud')
        verbs.pingpong(server, client, '-n 50 -e', 'rc')
        client.run(f'exec ping -c 3 -i 0.2 {server.card.address()}')
    shown = lab.a.run('ibnetdiscover').output
    expect('three cards and a switch', len(re.findall(r'^Ca\t', shown, re.MULTILINE)) == 3 and
           len(re.findall(r'^Switch\t', shown, re.MULTILINE)) == 1, shown)


if __name__ == '__main__':
    tap.main()
