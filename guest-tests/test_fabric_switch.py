#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Four guests at one switch (hca-switch), with a subnet manager in one of them: what infiniband-diags say of the switch, traffic
between all of them, groups, partitions, service levels; guests that go and come, and a switch that is killed. Its cards are
left as they are by default: a switch makes a port a managed one."""
import functools
import itertools
import re

from harness import diags, fabric, ipoib, links, tap, verbs, wait
from harness.check import expect
from harness.devices import ManagedCard, Nic
from harness.lab import Machine
from harness.labs import kept
from harness.switches import Fabric

GUESTS = 4
# Full members of another partition: the first two guests.
PARTITIONS = '''Default=0x7fff, ipoib : ALL=full ;
some=0x0001, ipoib : {0:#x}=full, {1:#x}=full ;
'''
LEVELS = {'qos': 'TRUE', 'qos_max_vls': 8, 'qos_sl2vl': '0,1,2,3,4,5,6,7,0,1,2,3,4,5,6,15'}


def star():
    machine = Machine(Nic('net'), ManagedCard('fabric', managed=None), layers=('apps',))
    return fabric.FabricLab([machine] * GUESTS, {'net': links.hub(GUESTS), 'fabric': Fabric([0] * GUESTS)})


lab = functools.partial(kept, star)


def switch():
    return lab().links['fabric'].switches[0]


def pairs():
    return list(itertools.permutations(lab().guests, 2))


def test_ports():
    """Each has a LID of its own, the same manager, and a P_Key that the manager has given."""
    ports = [fabric.port(guest) for guest in lab().guests]
    expect('four LIDs', len({port.lid for port in ports}) == GUESTS and all(0 < port.lid < 0xc000 for port in ports), *ports)
    expect('one manager', {port.sm_lid for port in ports} == {ports[0].lid}, *ports)


def test_topology():
    """The same from all ends: a switch with four cards."""
    seen = set()
    for guest in lab().guests:
        output = diags.run(guest, 'ibnetdiscover')
        expect('one switch', len(re.findall(r'^Switch\s+4 ', output, re.M)) == 1, output)
        expect('four cards', len(re.findall(r'^Ca\s+1 ', output, re.M)) == GUESTS, output)
        seen.add('\n'.join(sorted(re.findall(r'^\[\d+\].*', output, re.M))))
    expect('the same cables', len(seen) == 1, *seen)
    a = lab().a
    expect('by its name', 'switch1' in diags.run(a, 'ibswitches'), diags.run(a, 'ibswitches'))
    expect('all hosts', len(diags.lines(a, 'ibhosts')) == GUESTS, diags.run(a, 'ibhosts'))
    output = diags.run(a, 'iblinkinfo')
    expect('links', len(re.findall(r'Active/\s+LinkUp', output)) == 2 * GUESTS, output)


def switch_lid():
    return int(re.search(r'lid (\d+)', diags.run(lab().a, 'ibswitches')).group(1))


def test_smpquery_of_a_switch():
    """By its LID, and by directed route."""
    a = lab().a
    for way in (f'{switch_lid()}', '-D 0,1'):
        info = diags.fields(diags.run(a, 'smpquery', f'{"-D " if way.startswith("-D") else ""}nodeinfo {way.removeprefix("-D ")}'))
        expect('a switch', info['NodeType'] == 'Switch' and info['NumPorts'] == '4', info)
        info = diags.run(a, 'smpquery', f'{"-D " if way.startswith("-D") else ""}switchinfo {way.removeprefix("-D ")}')
        expect('forwarding tables', re.search(r'LinearFdbCap:\.+49152', info) and re.search(r'McastFdbCap:\.+1024', info), info)
    for port in range(1, GUESTS + 1):
        for operation in ('portinfo', 'pkeys', 'vlarb'):
            diags.run(a, 'smpquery', f'{operation} {switch_lid()} {port}')
        diags.run(a, 'smpquery', f'sl2vl {switch_lid()} {port}')


def test_ibroute():
    """The forwarding tables lead to all cards, and to the groups that they have joined."""
    a = lab().a
    output = diags.run(a, 'ibroute', switch_lid())
    found = dict(re.findall(r'^(0x[0-9a-f]+) (\d+)', output, re.M))
    wanted = {f'{fabric.lid(guest):#06x}': f'{number:03}' for number, guest in enumerate(lab().guests, 1)}
    expect('a port for each LID', wanted.items() <= found.items(), output)
    output = diags.run(a, 'ibroute', f'-M {switch_lid()}')
    expect('the group of all', re.search(r'^0xc000 ', output, re.M), output)
    diags.run(a, 'dump_fts')


def test_ibtracert():
    for source, target in pairs():
        output = diags.run(lab().a, 'ibtracert', f'{fabric.lid(source)} {fabric.lid(target)}')
        expect('through the switch', output.count('->') == 2, output)


def test_counters_of_a_switch():
    """What a guest sends comes in by its port, and goes out by another; all ports together are all of them."""
    a, lid = lab().a, switch_lid()
    diags.run(a, 'perfquery', f'-R -a {lid}')
    verbs.perftest(lab().guests[1], lab().guests[2], 'ib_write_bw', '-s 4096 -n 2000')
    ports = [diags.fields(diags.run(a, 'perfquery', f'-x {lid} {port}')) for port in range(1, GUESTS + 1)]
    sent, received = int(ports[1]['PortXmitPkts']), int(ports[2]['PortRcvPkts'])
    expect('by both ports', sent >= 2000 and received >= 2000, *ports)
    whole = diags.fields(diags.run(a, 'perfquery', f'-x -a {lid}'))
    expect('the sum', int(whole['PortRcvPkts']) >= sum(int(port['PortRcvPkts']) for port in ports), whole, *ports)


def test_all_pairs():
    """By reliable and unreliable connections and by datagrams."""
    for service in ('rc', 'uc', 'ud'):
        for one, other in itertools.combinations(lab().guests, 2):
            verbs.pingpong(one, other, '-n 30', service)
            verbs.pingpong(other, one, '-n 30 -g 0', service)


def test_all_pairs_by_ip():
    for one, other in pairs():
        ipoib.ping_all(one, other.card.address(), [other.card.address()])
        ipoib.ping(one, other.card.address(), '-s 1900')
    for one, other in itertools.combinations(lab().guests, 2):
        ipoib.carry(one, other, mebibytes=1)


def test_connections():
    """The connection manager, in a circle."""
    guests = lab().guests
    for guest, other in zip(guests, guests[1:] + guests[:1]):
        serving = other.spawn(f'exec rping -s -v -C 3 -p {verbs.PORT} -a {other.card.address()}')
        wait.until(lambda: guest.run(f'exec rping -c -V -C 3 -p {verbs.PORT} -a {other.card.address()}', check=False).status == 0,
                   f'connected: {guest.name} to {other.name}')
        serving.wait()


def test_groups():
    """All members get what is sent to a group, and nobody else."""
    guests = lab().guests
    members, sender, stranger = guests[:2], guests[2], guests[3]
    receiving = [guest.spawn(f'exec mckey -m 239.9.9.9 -c 2 -b {guest.card.address()}') for guest in members]
    other = stranger.spawn(f'exec mckey -m 239.9.9.10 -c 1 -b {stranger.card.address()}')
    for command in (*receiving, other):
        command.wait_output('joined')

    def sent():
        sender.run(f'exec mckey -s -m 239.9.9.9 -c 1 -b {sender.card.address()}')
        return not any(command.running for command in receiving)

    wait.until(sent, 'received by both', pause=0.5)
    expect('by no other', other.running, other.output)
    other.end()


def kept_out():
    """Packets that the switch has kept in, or out, for their P_Keys."""
    ports = [diags.fields(diags.run(lab().a, 'perfquery', f'{switch_lid()} {port}')) for port in range(1, GUESTS + 1)]
    return sum(int(port['PortXmitConstraintErrors']) + int(port['PortRcvConstraintErrors']) for port in ports)


def key(guest, index):
    return guest.run(f'cat /sys/class/infiniband/{guest.card.name}/ports/1/pkeys/{index}').output.strip()


def expect_kept_out(client, server, index):
    """Nothing of what a guest sends with a key of its arrives at another: the switch keeps it, and counts it."""
    before = kept_out()
    port = verbs.new_port()
    serving = server.spawn(f'exec ib_send_bw -F -d {server.card.name} -s 1000 -n 20 -p {port}')
    verbs.wait_listening(serving, port)
    script = f'exec ib_send_bw -F -d {client.card.name} -s 1000 -n 20 --pkey_index={index} -p {port} {verbs.address(server)}'
    result = client.run(script, check=False)
    serving.end()
    expect('nothing arrives', result.status and 'status 12' in result.output, result)
    expect('the switch has kept it out', kept_out() > before, before)


def test_partitions():
    """A manager's configuration keeps partitions apart, at the switch already."""
    a, b, c, _ = lab().guests
    guids = [fabric.port(guest).guid for guest in lab().guests]
    with lab().other_managers():
        lab().manage(a, partitions=PARTITIONS.format(*guids))
        lab().wait_active()
        keys = [key(guest, 1) for guest in (a, b, c)]
        expect('keys', keys == ['0x8001', '0x8001', '0x0000'], *keys)
        with ipoib.child(a, 0x8001) as one, ipoib.child(b, 0x8001) as other:
            for number, (guest, name) in enumerate(((a, one), (b, other)), 1):
                guest.run(f'ip link set {name} up && ip address add 10.7.0.{number}/24 dev {name}')
                wait.until(lambda: ipoib.has_carrier(guest, name), f'joined: {guest.name}: {name}')
            ipoib.ping_all(a, '10.7.0.2', ['10.7.0.2'])
        expect_kept_out(a, c, 1)  # a port that has not the key
    lab().wait_active()


def test_limited_members():
    """As opensm's manual page has it: the manager's guest is a full member, all others are limited ones. They speak to it, find
    their paths and join their group, but nothing passes between them."""
    a, b, c, _ = lab().guests
    with lab().other_managers():
        lab().manage(a, partitions='Default=0x7fff, ipoib : ALL, SELF=full ;\n')
        lab().wait_active()
        wait.until(lambda: [key(guest, 0) for guest in (a, b, c)] == ['0xffff', '0x7fff', '0x7fff'], 'there: keys of limited members')
        for member in b, c:
            ipoib.ping_all(member, a.card.address(), [a.card.address()])
            verbs.pingpong(member, a, '-n 50')
        expect_kept_out(b, c, 0)
    lab().wait_active()
    wait.until(lambda: all(key(guest, 0) == '0xffff' for guest in (a, b, c)), 'gone: keys of limited members')


def test_service_levels():
    """The virtual lanes that a manager gives to service levels are those on the wire; one leads nowhere."""
    a, b, *_ = lab().guests
    with lab().other_managers():
        lab().manage(a, **LEVELS)
        lab().wait_active()
        output = diags.run(a, 'smpquery', f'sl2vl {switch_lid()} 1')
        expect('at the switch', '| 1| 2| 3|' in output, output)
        for level in (0, 3, 9):
            verbs.pingpong(a, b, f'-n 20 -l {level}')


def test_guest_reset():
    """Its port is down for a while, and then like before; the others do not notice."""
    guests = lab().guests
    traffic = verbs.forever(guests[0], guests[1])
    lid = fabric.lid(guests[3])
    guests[3].reset()
    lab().wait_again(guests[3])
    expect('the same LID', fabric.lid(guests[3]) == lid, fabric.lid(guests[3]))
    verbs.went_on(traffic)
    verbs.pingpong(guests[2], guests[3], '-n 30')


def test_switch_killed():
    """It forgets everything; the manager makes it work again."""
    with lab().manager.expecting(*fabric.TIMEOUTS, r'ERR 3315', r'ERR 1F\w\w'):
        switch().restart()
        lab().wait_active()
        for one, other in itertools.combinations(lab().guests, 2):
            ipoib.ping_all(one, other.card.address(), [other.card.address()])
            verbs.pingpong(one, other, '-n 20')


if __name__ == '__main__':
    tap.main()
