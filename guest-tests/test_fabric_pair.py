#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Two cards back to back, whose LIDs a subnet manager (opensm) gives: what infiniband-diags asks them, from either end, by LIDs,
by GUIDs and along the path; and that what it does to ports is done. All questions are answered, and the manager's log has no
errors (fabric.py)."""
import itertools
import re

from harness import diags, fabric, resources, tap, verbs, wait
from harness.check import expect
from harness.labs import kept

# What an HCA has not: attributes of switches, and of Mellanox's.
FOREIGN = ('switchinfo', 'mepi')
# By what smpdump knows them: node description and information, GUIDs, port, P_Keys, service levels, the LED.
ATTRIBUTES = (0x10, 0x11, 0x14, 0x15, 0x16, 0x17, 0x31)
# SwitchInfo, both forwarding tables, the vendor's.
FOREIGN_ATTRIBUTES = (0x12, 0x19, 0x1b, 0xff00, 0xff90)


def ends(both):
    """Who asks, and who is asked: each other, and themselves."""
    return [(asker, target) for asker in both.guests for target in both.guests]


def path(asker, target):
    """The directed route."""
    return '0' if asker is target else '0,1'


def test_ports():
    both = kept(fabric.pair)
    a, b = [fabric.port(guest) for guest in both.guests]
    expect('unicast LIDs', a.lid != b.lid and all(0 < lid < 0xc000 for lid in (a.lid, b.lid)), a, b)
    expect('the manager in the first guest', a.sm_lid == b.sm_lid == a.lid, a, b)
    expect('up', a.physical == b.physical == '5: LinkUp' and a.lmc == b.lmc == 0, a, b)
    expect('the bit of a manager where one is', a.capabilities & 2 and not b.capabilities & 2, a, b)


def test_pingpongs():
    """By the LIDs, and with GIDs beside them."""
    both = kept(fabric.pair)
    for service in ('rc', 'uc', 'ud'):
        verbs.pingpong(both.a, both.b, '-n 50', service)
        verbs.pingpong(both.b, both.a, '-n 50 -g 0', service)


def test_ibstat():
    for guest in kept(fabric.pair).guests:
        port = fabric.port(guest)
        output = guest.run(f'ibstat {guest.card.name}').output
        for text in ('State: Active', 'Physical state: LinkUp', f'Base lid: {port.lid}', 'LMC: 0', f'SM lid: {port.sm_lid}',
                     f'Capability mask: {port.capabilities:#010x}', f'Port GUID: {port.guid:#018x}', 'Link layer: InfiniBand'):
            expect(f'"{text}"', f'\t{text}\n' in output, output)
        rate = int(re.search(r'Rate: (\d+)', output).group(1))
        expect('enough for the group that all join', rate >= 10, output)
        expect('its name', guest.card.name in guest.run('ibstat -l').output.split(), guest.run('ibstat -l').output)
        expect('its GUID', f'{port.guid:#018x}' in guest.run('ibstat -p').output, guest.run('ibstat -p').output)


def test_ibstatus():
    for guest in kept(fabric.pair).guests:
        port = fabric.port(guest)
        output = guest.run(f'ibstatus {guest.card.name}:1').output
        found = dict(re.findall(r'^\t(\w[\w ]*):\s+(.*)$', output, re.MULTILINE))
        expect('what Linux says', found['default gid'] == port.gid and int(found['base lid'], 0) == port.lid and
               int(found['sm lid'], 0) == port.sm_lid and found['state'] == '4: ACTIVE', output)


# What shows both cards, and what it says of each.
VIEWS = (('ibnetdiscover', '', r'^Ca\t1 "H-.*"guest[12]"'), ('ibnetdiscover', '-p', r'^CA +\d+ +1 .* - CA'),
         ('iblinkinfo', '', r'Active/ +LinkUp'), ('iblinkinfo', '-l', r'Active/ +LinkUp'),
         ('ibhosts', '', r'^Ca\t: .* ports 1 "guest[12]"'), ('ibnodes', '', r'^Ca\t: .* ports 1 '))


def test_topology():
    """Both ends see the same fabric."""
    both = kept(fabric.pair)
    for program, options, pattern in VIEWS:
        first, second = [diags.lines(guest, program, options) for guest in both.guests]
        expect(f'{program} {options}: the same from both ends', first == second, *first, *second)
        expect(f'{program} {options}: both cards', len([line for line in first if re.search(pattern, line)]) == 2, *first)
    for guest in both.guests:
        for program in ('ibswitches', 'ibrouters', 'dump_fts'):
            expect(f'{program} finds none', not diags.lines(guest, program), diags.lines(guest, program))


def test_topology_kept():
    """What was seen once is shown from a file."""
    guest = kept(fabric.pair).a
    diags.run(guest, 'ibnetdiscover', '--cache /tmp/seen')
    for program in ('ibnetdiscover', 'iblinkinfo'):
        live, seen = diags.lines(guest, program), diags.lines(guest, program, '--load-cache /tmp/seen')
        expect(f'{program}: the same', live == seen, *live, *seen)
    guest.run('rm /tmp/seen')


def test_ibidsverify():
    for guest in kept(fabric.pair).guests:
        output = guest.run(f'ibidsverify.pl -R -C {guest.card.name} -P 1 2>&1').output
        expect('each LID and GUID once', 'ERR' not in output, output)


def test_sminfo():
    both = kept(fabric.pair)
    for guest in both.guests:
        for way in ('', fabric.lid(both.a), f'-D {path(guest, both.a)}'):
            output = diags.run(guest, 'sminfo', way)
            expect('the master', re.search(rf'sm guid {fabric.port(both.a).guid:#x}, .* state 3 SMINFO_MASTER', output), output)
        diags.refused(guest, 'sminfo', fabric.lid(both.b))


@tap.seconds(300)
def test_smpquery():
    """The same answers on every way."""
    both = kept(fabric.pair)
    for target in both.guests:
        port, answers = fabric.port(target), {}
        for asker in both.guests:
            for operation in ('nodeinfo', 'nodedesc', 'portinfo', 'pkeys', 'sl2vl', 'vlarb', 'guidinfo'):
                for way in (f'{operation} {port.lid}', f'-G {operation} {port.guid:#x}', f'-D {operation} {path(asker, target)}'):
                    answer = [line for line in diags.run(asker, 'smpquery', way).splitlines() if not line.startswith('# ')]
                    first = answers.setdefault(operation, answer)
                    expect(f'{asker.name}$ smpquery {way}: as before', answer == first, *answer, *first)
        judge(target, port, {name: '\n'.join(answer) for name, answer in answers.items()})


def judge(target, port, answers):
    """What the manager has given to a port, and what Linux has given to the card."""
    node, info = diags.fields(answers['nodeinfo']), diags.fields(answers['portinfo'])
    expect('the node', node['NodeType'] == 'Channel Adapter' and node['NumPorts'] == node['LocalPort'] == '1' and
           int(node['PortGuid'], 0) == port.guid, answers['nodeinfo'])
    expect('its description', answers['nodedesc'].endswith(f'.{target.name}'), answers['nodedesc'])
    expect('the port', int(info['Lid']) == port.lid and int(info['SMLid']) == port.sm_lid and info['LinkState'] == 'Active' and
           info['PhysLinkState'] == 'LinkUp' and int(info['CapMask'], 0) == port.capabilities and info['LMC'] == '0' and
           int(info['GidPrefix'], 0) == 0xfe80 << 48 and int(info['NeighborMTU']) >= 2048, answers['portinfo'])
    expect('the key of all', re.match(r' +0: 0xffff ', answers['pkeys']), answers['pkeys'])
    expect('the first GUID', re.match(rf' +0: {port.guid:#018x} ', answers['guidinfo']), answers['guidinfo'])


def test_smpquery_refused():
    for asker, target in ends(kept(fabric.pair)):
        for operation in FOREIGN:
            diags.refused(asker, 'smpquery', f'{operation} {fabric.lid(target)}')
            diags.refused(asker, 'smpquery', f'-D {operation} {path(asker, target)}')
        diags.refused(asker, 'smpquery', f'pie {fabric.lid(target)}', 'not supported')
        diags.refused(asker, 'smpquery', f'pkeys {fabric.lid(target)} 2', 'invalid port number')


def dumped(asker, way, attribute):
    """The data, and the status. Of an answer that does not come it would show what was asked: no data and status 0."""
    output = diags.run(asker, 'smpdump', f'{way} {attribute:#x}')
    status = re.search(r'SMP status: 0x(\w+)', output)
    return output.split('SMP')[0], int(status.group(1), 16) if status else 0


@tap.seconds(300)
def test_smpdump():
    for asker, target in ends(kept(fabric.pair)):
        directed, routed = f'-D {path(asker, target)}', str(fabric.lid(target))
        for attribute in ATTRIBUTES:
            data, status = dumped(asker, directed, attribute)
            expect(f'{asker.name}: {directed} {attribute:#x}: an answer on its way back', status == 0x8000, f'{status:#x}', data)
            expect(f'{asker.name}: {routed} {attribute:#x}: the same', dumped(asker, routed, attribute) == (data, 0), data)
        for attribute in FOREIGN_ATTRIBUTES:
            for way, wanted in (directed, 0x800c), (routed, 0xc):
                status = dumped(asker, way, attribute)[1]
                expect(f'{asker.name}: {way} {attribute:#x}: refused', status == wanted, f'{status:#x}')


# A ping-pong of DATA bytes each way, in packets of 1024.
PINGPONG, DATA = '-n 100 -s 8192 -m 1024', 100 * 8192


def test_perfquery():
    """What the programs send is counted at both ends, in words of four bytes."""
    both = kept(fabric.pair)
    lids = [fabric.lid(guest) for guest in both.guests]
    for options in ('', '-x'):
        before = [diags.counters(both.a, lid, options) for lid in lids]
        verbs.pingpong(both.a, both.b, PINGPONG)
        after = [diags.counters(both.b, lid, options) for lid in lids]
        for old, new in zip(before, after):
            for name, least in (('PortXmitData', DATA // 4), ('PortRcvData', DATA // 4), ('PortXmitPkts', DATA // 1024),
                                ('PortRcvPkts', DATA // 1024)):
                expect(f'{name} {options} has moved', least <= new[name] - old[name] <= 4 * least, old, new)
    for options in ('-a {}', '-l {} 1', '-a -l {}', '-x -a {}'):
        output = diags.run(both.a, 'perfquery', options.format(lids[1]))
        expect('counters', 'PortXmitData:' in output, output)
    diags.refused(both.a, 'perfquery', f'{lids[1]} 2', 'error status 0x1c')


def test_perfquery_reset():
    both = kept(fabric.pair)
    lid = fabric.lid(both.b)
    # By reading, then by writing alone; what has passed since are datagrams of management.
    for options in ('', '-x'):
        for how in ('-r', '-R'):
            verbs.pingpong(both.a, both.b, PINGPONG)
            diags.run(both.a, 'perfquery', f'{options} {how} {lid} 1')
            counters = diags.counters(both.a, lid, options)
            expect(f'{options} {how}', counters['PortXmitData'] < DATA // 8 and counters['PortRcvPkts'] < 100, counters)


def test_ibdiagnet():
    both = kept(fabric.pair)
    lids = [fabric.lid(guest) for guest in both.guests]
    for guest in both.guests:
        diags.ibutils(guest, 'ibdiagnet', '-c 10')
        for source, target in itertools.permutations(lids):
            diags.ibutils(guest, 'ibdiagpath', f'-l {source},{target}')


OPTIONAL = ('-c', '-X', '-S', '-D', '-E', '-T', '--oprcvcounters', '--flowctlcounters', '--vloppackets', '--vlopdata',
            '--vlxmitflowctlerrors', '--vlxmitcounters', '--swportvlcong', '--rcvcc', '--slrcvfecn', '--slrcvbecn', '--xmitcc',
            '--vlxmittimecc')


def test_perfquery_optional():
    """Whatever the card has of these, it answers."""
    both = kept(fabric.pair)
    lid = fabric.lid(both.b)
    for option in OPTIONAL:
        found = diags.result(both.a, 'perfquery', f'{option} {lid} 1')
        expect(f'{option}: an answer', found.status == 0 or 'completed with error status 0x' in found.output, found)


def test_ibqueryerrors():
    """With the errors of the other tests cleared there are none."""
    for guest in kept(fabric.pair).guests:
        diags.result(guest, 'ibqueryerrors', '--clear-errors --clear-counts')
        output = diags.run(guest, 'ibqueryerrors')
        expect('all is well', re.search(r'2 nodes checked, 0 bad nodes(.*\n)*.* 2 ports checked, 0 ports have errors', output) and
               'PMA query failures' not in output, output)
        output = diags.run(guest, 'ibqueryerrors', '--counters')
        expect('counters of both', output.count('PortXmitPkts') == 2, output)


def test_ibping():
    both = kept(fabric.pair)
    for client, server in (both.a, both.b), (both.b, both.a):
        port = fabric.port(server)
        with diags.serving(server, 'ibping', client, f'-c 1 {port.lid}'):
            for way, count in (f'-c 2 {port.lid}', 2), (f'-f -c 20 -G {port.guid:#x}', 20), (f'-f -c 200 {port.lid}', 200):
                output = diags.run(client, 'ibping', way)
                expect('all come back', f' {count} received' in output and f'--- {server.name}' in output, output)


def test_ibsysstat():
    """An answer of several packets, too."""
    both = kept(fabric.pair)
    for client, server in (both.a, both.b), (both.b, both.a):
        lid = fabric.lid(server)
        with diags.serving(server, 'ibsysstat', client, f'{lid} host'):
            for operation, text in ('ping', 'succeeded'), ('host', server.name), ('cpu', 'cpu 0: model'):
                output = diags.run(client, 'ibsysstat', f'{lid} {operation}')
                expect(operation, text in output, output)


def test_ibtracert():
    both = kept(fabric.pair)
    ports = [fabric.port(guest) for guest in both.guests]
    for source, target in ports, ports[::-1]:
        for way in (f'{source.lid} {target.lid}', f'-G {source.guid:#x} {target.guid:#x}'):
            first, second = [diags.run(guest, 'ibtracert', way) for guest in both.guests]
            expect('the same from both ends', first == second, first, second)
            expect('one hop', re.fullmatch(rf'From ca .* lid {source.lid}-.*\n\[1\] -> ca port .*\n'
                                           rf'To ca .* lid {target.lid}-.*\n', first), first)


def test_ibaddr():
    both = kept(fabric.pair)
    for asker, target in ends(both):
        port = fabric.port(target)
        for way in (port.lid, f'-G {port.guid:#x}', f'-D {path(asker, target)}'):
            output = diags.run(asker, 'ibaddr', f'{way}')
            expect('its range of LIDs', f'LID start {port.lid:#x} end {port.lid:#x}' in output, output)


# Records, and how many there are at least.
RECORDS = {'NR': 2, 'PIR': 2, 'LR': 2, 'PR': 4, 'SMIR': 1, 'PKTR': 2, 'GIR': 2, 'MCMR': 2, 'SL2VL': 0, 'VLAR': 0}
# There is no switch, nobody offers a service, nobody has asked to be told of anything.
NONE = ('LFTR', 'MFTR', 'SWIR', 'SR', 'IIR')


@tap.seconds(300)
def test_saquery():
    both = kept(fabric.pair)
    for guest in both.guests:
        for name, least in RECORDS.items():
            number, output = diags.records(guest, name)
            expect(f'{name}: {least} records', number >= least, output)
        for name in NONE:
            number, output = diags.records(guest, name)
            expect(f'{name}: no records', not number, output)
        for option in ('-p', '-N', '-g', '-m', '-x'):
            number, output = diags.records(guest, option)
            expect(f'{option}: records', number, output)


def test_saquery_by_name():
    both = kept(fabric.pair)
    a, b = [fabric.port(guest) for guest in both.guests]
    for guest in both.guests:
        for arguments, text in (('-c', 'SA ClassPortInfo:'), ('-L guest2', f'{b.lid}'), ('-l guest2', f'{b.lid}'),
                                ('-G guest2', f'{b.guid:#018x}'), (f'-O {b.lid}', 'guest2'), (f'NR {b.lid}', 'guest2'),
                                (f'PIR {b.lid}', f'EndPortLid..............{b.lid}'), ('--list', '"guest1"'),
                                ('-s', f'EndPortLid..............{a.lid}'),
                                (f'--src-to-dst {a.lid}:{b.lid}', f'dlid....................{b.lid}'),
                                ('--src-to-dst guest2:guest1', f'slid....................{b.lid}'),
                                (f'--sgid-to-dgid {a.gid}-{b.gid}', f'dlid....................{b.lid}')):
            output = diags.records(guest, arguments)[1]
            expect(f'saquery {arguments}: {text}', text in output, output)


def test_refused():
    """What asks for a switch, for control of congestion, for what Mellanox's have."""
    for asker, target in ends(kept(fabric.pair)):
        lid = fabric.lid(target)
        for options in ('', '-M'):
            diags.refused(asker, 'ibroute', f'{options} {lid}', 'not a switch')
        for operation in ('CP', 'CI', 'CK', 'CL', 'CS', 'CT', 'TI'):
            diags.refused(asker, 'ibccquery', f'{operation} {lid}')
        diags.refused(asker, 'ibccquery', f'SP {lid}', 'not a switch')
        diags.refused(asker, 'vendstat', f'-N {lid}', 'classportinfo query')


def downs(guest, lid):
    return diags.counters(guest, lid)['LinkDownedCounter']


def comes_back(both):
    """The manager makes it work again."""
    both.wait_active()
    both.manager.wait_swept()
    verbs.pingpong(both.a, both.b, '-n 50')


def test_port_query():
    for asker, target in ends(kept(fabric.pair)):
        for way in (fabric.lid(target), f'-D {path(asker, target)}'):
            state = diags.fields(diags.run(asker, 'ibportstate', f'{way} 1'))
            expect('its state', state['LinkState'] == 'Active' and state['PhysLinkState'] == 'LinkUp' and
                   int(state['Lid']) == fabric.lid(target), state)


# Of PortInfo: PortState and LinkDownDefaultState "no change", PortPhysicalState Polling.
ENABLE = '0x15 1 32=0 33=0x20'


def test_port_disabled():
    """From the other end of the cable. Only who is there can enable it, though not by ibportstate, which opens no port that is
    down."""
    both = kept(fabric.pair)
    with both.manager.expecting(*fabric.TIMEOUTS):
        output = diags.run(both.a, 'ibportstate', f'{fabric.lid(both.b)} 1 disable')
        expect('the answer', output.count('Disabled') == 1, output)
        for guest in both.guests:
            guest.card.wait_port('DOWN')
        expect('disabled', fabric.port(both.b).physical == '3: Disabled', fabric.port(both.b))
        both.b.run(f'exec smp-set 0 {ENABLE}')
        comes_back(both)


def test_port_reset():
    both = kept(fabric.pair)
    lid = fabric.lid(both.b)
    for operation in ('reset', 'down'):
        before = downs(both.b, lid)
        with both.manager.expecting(*fabric.TIMEOUTS):
            diags.run(both.a, 'ibportstate', f'{lid} 1 {operation}')
            wait.until(lambda: downs(both.b, lid) > before, f'down: {operation}')
            comes_back(both)


def test_node_description():
    """A new name is seen at once by who asks, and by the manager, which a trap tells."""
    both = kept(fabric.pair)
    for name in ('another name', both.b.name):
        both.b.run(f"echo '{name}' >/sys/class/infiniband/{both.b.card.name}/node_desc")
        for way in (f'nodedesc {fabric.lid(both.b)}', '-D nodedesc 0,1'):
            output = diags.run(both.a, 'smpquery', way)
            expect('the name', output.strip().endswith(f'.{name}'), output)
        wait.until(lambda: name in diags.records(both.a, f'-O {fabric.lid(both.b)}')[1], f'known to the manager: {name}')


def test_manager_bit():
    """The port has it as long as somebody has its issm file open."""
    both = kept(fabric.pair)
    lid = fabric.lid(both.b)

    def has_bit():
        return int(diags.fields(diags.run(both.a, 'smpquery', f'portinfo {lid}'))['CapMask'], 0) & 2

    issm = both.b.run(f'ls /sys/class/infiniband/{both.b.card.name}/device/infiniband_mad | grep issm').output.strip()
    with both.manager.expecting(*fabric.NO_MANAGER):
        holder = both.b.spawn(f'exec sleep 1000 </dev/infiniband/{issm}')
        wait.until(has_bit, 'set: the bit of a manager')
        diags.refused(both.a, 'sminfo', lid)
        holder.end()
        wait.until(lambda: not has_bit(), 'cleared: the bit of a manager')
        both.manager.wait_swept()


def test_traps():
    """Those that a program sends come to the manager, and are its own where it is."""
    both = kept(fabric.pair)
    for guest in both.guests:
        for trap, number in (('link_speed_enabled_change', 144), ('local_link_integrity', 129), ('mkey_lid', 256), ('mkey_dr', 256),
                             ('pkey', 257), ('qkey', 258)):
            since = len(both.manager.log)
            diags.run(guest, 'ibsendtrap', trap)
            both.manager.wait_says(f' num:{number} ', since)
    both.manager.wait_swept()


def test_nothing_is_left():
    """All programs have given back what they had."""
    both = kept(fabric.pair)
    with resources.given_back(both):
        diags.run(both.a, 'saquery', 'PR')
        diags.run(both.a, 'ibnetdiscover')
        verbs.pingpong(both.a, both.b, '-n 50')


if __name__ == '__main__':
    tap.main()
