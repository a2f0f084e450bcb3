#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Two switches joined by two cables, with two guests at each: both cables are used, traffic goes on when one of them is pulled,
and several LIDs make several ways."""
import functools
import itertools
import re

from harness import diags, fabric, ipoib, links, tap, verbs, wait
from harness.check import expect
from harness.devices import ManagedCard, Nic
from harness.lab import Machine
from harness.labs import kept
from harness.switches import Fabric

ENDS = [0, 0, 1, 1]
TRUNKS = [(0, 1), (0, 1)]
# Traffic that waits for an answer for longer than a manager needs: 4 s, seven times.
PATIENT = 'ib_send_bw -F -u 20 -s 4096 -D 3600'
# As long as a cable is gone, what was on its way there is asked for in vain.
LOST = (*fabric.TIMEOUTS, r'ERR 3315', r'ERR 5413', r'ERR 1F')


def two():
    machine = Machine(Nic('net'), ManagedCard('fabric', managed=None), layers=('apps',))
    return fabric.FabricLab([machine] * len(ENDS), {'net': links.hub(len(ENDS)), 'fabric': Fabric(ENDS, TRUNKS)})


lab = functools.partial(kept, two)


def across():
    """Pairs of guests at different switches."""
    guests = lab().guests
    return list(itertools.product(guests[:2], guests[2:]))


def packets(trunk):
    """That a trunk's cable has carried, both ways."""
    switch, port = lab().links['fabric'].port_of_trunk(trunk, 0)
    lid = next(int(line.split(' lid ')[1].split()[0]) for line in diags.lines(lab().a, 'ibswitches') if switch.name in line)
    counters = diags.fields(diags.run(lab().a, 'perfquery', f'-x {lid} {port}'))
    return int(counters['PortXmitPkts']) + int(counters['PortRcvPkts'])


def cables_seen():
    """Between the switches; each has a line for its end."""
    return len(re.findall(r'^\[\d+\]\s+"S-', diags.run(lab().a, 'ibnetdiscover'), re.M)) // 2


def test_topology():
    output = diags.run(lab().a, 'ibnetdiscover')
    expect('two switches', output.count('\nSwitch\t') == 2, output)
    expect('four cards', output.count('\nCa\t') == len(ENDS), output)
    expect('both cables', cables_seen() == len(TRUNKS), output)
    for one, other in across():
        output = diags.run(lab().a, 'ibtracert', f'{fabric.lid(one)} {fabric.lid(other)}')
        expect('through both', output.count('->') == 3, output)


def test_routes():
    """As ibutils judge them, from each card to each. With -r ibdiagnet goes on to look for circles of credits, and crashes: so
    does ibdmchk, which reads what ibdiagnet has found from files."""
    diags.ibutils(lab().b, 'ibdiagnet', '-c 10')
    output = diags.ibutils_says(lab().b, 'ibdiagnet', '-r', check=False)
    ways = len(ENDS) * (len(ENDS) - 1)
    expect('each way is there', f'Scanned:{ways} CA to CA paths' in output and '-E-' not in output, output)
    expect('groups reach all', re.search(rf'Multicast Group:\S+ has:2 switches and:{len(ENDS)} HCAs', output), output)


def test_all_pairs():
    for one, other in itertools.combinations(lab().guests, 2):
        for service in ('rc', 'uc', 'ud'):
            verbs.pingpong(one, other, '-n 30', service)
        ipoib.ping_all(one, other.card.address(), [other.card.address()])
        ipoib.carry(one, other, mebibytes=1)


def test_both_cables():
    """The manager spreads LIDs over the trunk."""
    before = [packets(trunk) for trunk in range(len(TRUNKS))]
    for one, other in across():
        verbs.perftest(one, other, 'ib_write_bw', '-s 4096 -n 1000')
    after = [packets(trunk) for trunk in range(len(TRUNKS))]
    expect('both were used', all(now - then >= 1000 for now, then in zip(after, before)), before, after)


def test_cable_pulled():
    """Connections live through it, by the other cable; and then through the other one's loss, by the first."""
    guests = lab().guests
    traffic = [command for pair in ((guests[0], guests[2]), (guests[1], guests[3]))
               for command in verbs.forever(*pair, PATIENT)]
    with lab().manager.expecting(*LOST):
        for trunk in range(len(TRUNKS)):
            switch, port = lab().links['fabric'].port_of_trunk(trunk, 0)
            switch.ask(f'unplug {port}')
            for one, other in across():
                ipoib.ping_all(one, other.card.address(), [other.card.address()])
                verbs.pingpong(one, other, '-n 20')
            switch.ask(f'plug {port}')
            wait.until(lambda: cables_seen() == len(TRUNKS), lambda: f'seen: both cables: {cables_seen()}')
    verbs.went_on(traffic)


def test_several_ways():
    """With several LIDs a port each has ways of its own; datagrams go to all of them."""
    a, *_, d = lab().guests
    with lab().other_managers():
        lab().manage(a, lmc=1)
        lab().wait_active()
        base = fabric.lid(d)
        expect('two LIDs', fabric.port(d).lmc == 1, fabric.port(d))
        routes = {diags.run(a, 'ibtracert', f'{fabric.lid(a)} {base + bits}') for bits in range(2)}
        expect('two ways', len(routes) == 2, *routes)
        for bits in range(2):
            diags.run(a, 'smpquery', f'nodedesc {base + bits}')
            diags.run(a, 'perfquery', f'{base + bits} 1')


if __name__ == '__main__':
    tap.main()
