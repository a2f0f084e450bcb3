#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a managed subnet has on its cable, taken apart by a decoder that shares nothing with the card (tshark): management
datagrams of all classes, none of them malformed, and the virtual lanes that a manager gives to service levels."""
import collections
import functools
import subprocess

from harness import captures, cm, cm_programs, diags, fabric, links, tap, verbs
from harness.check import expect
from harness.devices import ManagedCard, Nic
from harness.lab import Machine
from harness.labs import kept

# SMPs by LIDs and by directed route, subnet administration, performance management, connections.
CLASSES = {0x01, 0x81, 0x03, 0x04, 0x07}
LANES = [0, 1, 2, 3, 4, 5, 6, 7, 7, 6, 5, 4, 3, 2, 1, 15]
LEVELS = {'qos': 'TRUE', 'qos_max_vls': 8, 'qos_sl2vl': ','.join(map(str, LANES))}


def captured_pair():
    machine = Machine(Nic('net'), ManagedCard('cable', capture=True), layers=('apps',))
    return fabric.FabricLab([machine, machine], {'net': links.stream(), 'cable': links.unix_cable()})


lab = functools.partial(kept, captured_pair)


def fields(guest, *names):
    """Fields of all packets of a guest's capture, a tuple each, where there is the first one."""
    arguments = [word for name in names for word in ('-e', name)]
    output = subprocess.run(['tshark', '-n', '-r', guest.card.captured, '-T', 'fields', '-E', 'separator=,', '-E', 'occurrence=f',
                             *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    rows = [tuple(int(word, 0) if word else None for word in line.split(',')) for line in output.splitlines()]
    return [row for row in rows if row[0] is not None]


def test_lanes():
    """Each service level goes by its lane; what has none is not on the cable."""
    both = lab()
    with both.other_managers():
        both.manage(both.a, **LEVELS)
        both.wait_active()
        for level in range(15):
            verbs.pingpong(both.a, both.b, f'-n 5 -l {level}')
        lost = verbs.start(both.a, both.b, 'ibv_ud_pingpong -n 5 -l 15')
        for command in lost:
            command.wait_output('remote address')
            command.end()
    for guest in both.guests:
        seen = collections.defaultdict(set)
        for level, lane in fields(guest, 'infiniband.lrh.sl', 'infiniband.lrh.vl'):
            seen[level].add(lane)
        # Those of level 0 may have been sent before the manager came that gives lanes, and SMPs have level 0.
        expect('lanes', all(seen[level] == {LANES[level]} for level in range(1, 15)) and not seen[15], dict(seen))


def test_management():
    """Whatever was on the cable: all kinds of management datagrams, whole, with the CRCs that they should have."""
    both = lab()
    for server, client, version in cm_programs.each_way(both):
        cm.wait_reachable(server, client, version)
    cm_programs.rping(both)
    for command in (f'perfquery {fabric.lid(both.b)} 1', f'smpquery nodeinfo {fabric.lid(both.b)}', 'saquery'):
        diags.run(both.a, *command.split(' ', 1))
    for guest in both.guests:
        captures.check(guest.card.captured)
        rows = fields(guest, 'infiniband.mad.mgmtclass', 'infiniband.lrh.vl')
        expect('all classes', CLASSES <= {number for number, _ in rows}, *sorted({number for number, _ in rows}))
        lanes = {lane for number, lane in rows if number in (0x01, 0x81)}
        expect('SMPs on lane 15 alone', lanes == {15}, *lanes)


if __name__ == '__main__':
    tap.main()
