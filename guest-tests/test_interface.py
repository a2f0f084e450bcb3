#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The interface of a RoCE card in guests with two processors: its queues, how frames are spread over them, segmentation by
the card, interrupts that wait, and what ethtool says and sets of that."""
import ipaddress
import json
import re
import subprocess

from harness import ethernet, pci, tap, verbs, wait
from harness.devices import RoceCard
from harness.guest import GuestError
from harness.labs import kept, roce

CPUS = 2
MAX_QUEUES = 8
TABLE_SIZE = 128
# Microsoft's, of "Verifying the RSS hash calculation".
KEY = bytes.fromhex('6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa')
PORT = 5500


def captured():
    """Two cards that capture what passes their cable."""
    return roce(RoceCard('lan', capture=True), RoceCard('lan', capture=True), cpus=CPUS)


def name(guest):
    return guest.card.interface


def ethtool(guest, option, *arguments):
    """What ethtool says of the interface with an option."""
    return guest.run(' '.join(['ethtool', option, name(guest), *arguments])).output


def refused(guest, option, arguments='', why=''):
    result = guest.run(f'ethtool {option} {name(guest)} {arguments}', check=False)
    if result.status == 0 or why not in result.output:
        raise GuestError(f'ethtool {option} {arguments}: {result}')


def expect(what, found, wanted):
    if found != wanted:
        raise GuestError(f'{what}: {found} in place of {wanted}')


def queues(guest):
    """How many there are, as ethtool has it and as sysfs shows them."""
    current = ethtool(guest, '-l').split('Current')[1]
    listed = guest.run(f'ls /sys/class/net/{name(guest)}/queues').output.split()
    found = [sum(each.startswith(f'{kind}-') for each in listed) for kind in ('rx', 'tx')]
    return [int(re.search(r'Combined:\s*(\d+)', current)[1]), *found]


def received(guest):
    """Frames of each receive ring."""
    counters = guest.card.interface_counters()
    return [counters[key] for key in (f'queue_{number}_rx_packets' for number in range(MAX_QUEUES)) if key in counters]


def grown(guest, action):
    """By how much each ring's frames grow while an action runs."""
    before = received(guest)
    action()
    return [new - old for new, old in zip(received(guest), before)]


def ping(both, version=4, count=20):
    both.b.run(f'ping -{version} -c {count} -i 0.005 -W 20 {both.a.card.address(version)}')


def copy(both, address, megabytes=4):
    """A file from b to a: it arrives as it is."""
    # Who reads an end from its input says so, and the other one stops before it has sent all: here there is none.
    server = both.a.spawn(f'test -p /tmp/endless || mkfifo /tmp/endless; busybox nc -l -p {PORT} <>/tmp/endless | sha256sum')
    verbs.wait_listening(server, PORT)
    sent = both.b.run(f'dd if=/dev/urandom of=/tmp/file bs=1M count={megabytes} 2>/dev/null && sha256sum </tmp/file && '
                      f'busybox nc {address} {PORT} </tmp/file').output
    server.wait()
    if sent.split()[0] not in server.output:
        raise GuestError(f'sent {sent}, received {server.output}')


def works(both):
    for version in (4, 6):
        ping(both, version, 2)
    verbs.pingpong(both.a, both.b, '-n 50 -e')


# --- queues ----------------------------------------------------------------------------------------------------------------


def test_channels():
    """A queue for each processor; others, and as many as there may be, while frames fly."""
    both = kept(captured)
    for guest in both.guests:
        expect('queues', queues(guest), [CPUS] * 3)
        expect('the most', re.findall(r'Combined:\s*(\d+)', ethtool(guest, '-l').split('Current')[0]), [str(MAX_QUEUES)])
    flood = both.b.spawn(f'exec ping -q -f {both.a.card.address()}')
    for number in (MAX_QUEUES, 1, 5, 3, CPUS):
        ethtool(both.a, '-L', f'combined {number}')
        expect('queues', queues(both.a), [number] * 3)
        wait.until(lambda: sum(grown(both.a, lambda: None)) > 0, f'receiving with {number} queues')
    flood.end()
    for number in ('combined 9', 'combined 0', 'rx 1', 'tx 2'):
        refused(both.a, '-L', number)
    both.a.run(f'ip link set {name(both.a)} down')
    ethtool(both.a, '-L', 'combined 4')
    both.a.card.up()
    expect('queues', queues(both.a), [4] * 3)
    ethtool(both.a, '-L', f'combined {CPUS}')
    works(both)


def backlog(guest):
    """Frames that wait in Linux's queues."""
    return sum(each['qlen'] for each in json.loads(guest.run(f'tc -s -j qdisc show dev {name(guest)}').output))


def test_waiting_frames():
    """What waits in Linux's queue when the rings are exchanged goes to the new ones, though nothing comes after it."""
    both = kept(captured)
    guest, peer = both.a, both.b.card.address()

    def held():
        """More frames, of a peer that takes none; how many wait."""
        guest.run(f'ping -q -c 150 -l 150 -s 1000 -S 1000000 -W 1 -w 1 {peer} || true')
        return backlog(guest) > 20

    ethtool(guest, '-L', 'combined 1')
    ethtool(guest, '-G', 'tx 64')
    ping(both)
    guest.run(f'ip neigh change {peer} dev {name(guest)} nud permanent')
    both.b.qmp('stop')
    wait.until(held, lambda: f'frames that wait: {backlog(guest)}')
    # Soon, as sooner or later another frame would take them along.
    guest.run(f'ethtool -G {name(guest)} tx 2048; for n in $(seq 20); do '
              f"tc -s qdisc show dev {name(guest)} | grep -q 'backlog [^0]' || exit 0; done; exit 1")
    both.b.qmp('cont')
    ethtool(guest, '-G', 'tx 256')
    ethtool(guest, '-L', f'combined {CPUS}')
    works(both)


def interrupt(guest, queue):
    """The number of a queue's."""
    line = guest.run(f'grep -- "-eth{queue}@" /proc/interrupts').output
    return int(line.split(':')[0])


def test_processors():
    """A queue stays on the processor that it was put on, when the interface or the card begins anew."""
    both = kept(captured)
    guest = both.a

    def places():
        return [int(guest.run(f'cat {path}').output.strip(), 16)
                for path in (f'/sys/class/net/{name(guest)}/queues/tx-0/xps_cpus',
                             f'/proc/irq/{interrupt(guest, 0)}/smp_affinity')]

    def moved():
        """Linux moves an interrupt when it comes the next time."""
        ethernet.iperf(both, '-P 4 -n 1M')
        return int(guest.run(f'cat /proc/irq/{interrupt(guest, 0)}/effective_affinity').output, 16) == 2

    expect('at first', places(), [1, 1])
    guest.run(f'echo 2 >/sys/class/net/{name(guest)}/queues/tx-0/xps_cpus && echo 2 >/proc/irq/{interrupt(guest, 0)}/smp_affinity')
    wait.until(moved, 'an interrupt on the other processor')
    guest.run(f'ip link set {name(guest)} down')
    guest.card.up()
    expect('after the interface was down', places(), [2, 2])
    pci.reset(guest.card)
    both.wait_active()
    expect('after a reset', places(), [2, 2])
    guest.run(f'echo 1 >/sys/class/net/{name(guest)}/queues/tx-0/xps_cpus && echo 1 >/proc/irq/{interrupt(guest, 0)}/smp_affinity')
    works(both)


def toeplitz(data, key=KEY):
    """The hash, bit by bit."""
    bits = int.from_bytes(key, 'big')
    result = 0
    for number in range(8 * len(data)):
        if data[number // 8] >> (7 - number % 8) & 1:
            result ^= bits >> (8 * len(key) - 32 - number) & 0xffffffff
    return result


def test_spread():
    """What the hash of the addresses says: each ring in its turn; what ethtool is told it says again."""
    both = kept(captured)
    ethtool(both.a, '-L', f'combined {MAX_QUEUES}')
    ethtool(both.a, '-X', f'hkey {KEY.hex(":")} equal {MAX_QUEUES}')
    shown = ethtool(both.a, '-x')
    if KEY.hex(':') not in shown or 'toeplitz: on' not in shown:
        raise GuestError(shown)
    for version in (4, 6):
        ends = [ipaddress.ip_address(guest.card.address(version)).packed for guest in (both.b, both.a)]
        ring = toeplitz(b''.join(ends)) % TABLE_SIZE % MAX_QUEUES
        counts = grown(both.a, lambda number=version: ping(both, number))
        if counts[ring] < 20 or sum(counts) > counts[ring] + 20:  # others are Linux's own
            raise GuestError(f'IPv{version}: {counts}, not to {ring}')
    counts = grown(both.a, lambda: ethernet.iperf(both, '-P 8 -n 8M'))
    if sum(each > 20 for each in counts) < 2:
        raise GuestError(f'eight streams: {counts}')
    ethtool(both.a, '-X', 'start 6 equal 1')
    counts = grown(both.a, lambda: ethernet.iperf(both, '-P 4 -n 4M'))
    if sum(counts) - counts[6] > 20 or not counts[6]:
        raise GuestError(f'all to ring 6: {counts}')
    refused(both.a, '-L', 'combined 4')  # the table has a ring that would be gone
    refused(both.a, '-X', 'hfunc xor')
    ethtool(both.a, '-X', 'default')
    ethtool(both.a, '-L', f'combined {CPUS}')
    works(both)


def test_flow_hash():
    """Of which fields the hash is."""
    both = kept(captured)
    guest = both.a
    for flow, ports in (('tcp4', True), ('udp4', False), ('tcp6', True), ('udp6', False)):
        def has_ports(kind=flow):
            return 'L4 bytes 0 & 1' in ethtool(guest, '-n', f'rx-flow-hash {kind}')

        expect(f'ports of {flow}', has_ports(), ports)
        for fields, wanted in (('sd', False), ('sdfn', True), ('sd', False)):
            ethtool(guest, '-N', f'rx-flow-hash {flow} {fields}')
            expect(f'ports of {flow} after {fields}', has_ports(), wanted)
        # ethtool ends well nevertheless.
        if 'Invalid argument' not in ethtool(guest, '-N', f'rx-flow-hash {flow} s'):
            raise GuestError(f'{flow}: a hash of the source alone was taken')
        ethtool(guest, '-N', f'rx-flow-hash {flow} {"sdfn" if ports else "sd"}')
    before = guest.card.interface_counters()['rx_hashed']
    ping(both)
    if guest.card.interface_counters()['rx_hashed'] < before + 20:
        raise GuestError('there are no hashes')
    # With one queue nobody but Linux wants them.
    ethtool(guest, '-L', 'combined 1')
    ethtool(guest, '-K', 'rxhash off')
    before = guest.card.interface_counters()['rx_hashed']
    ping(both)
    expect('hashes', guest.card.interface_counters()['rx_hashed'], before)
    ethtool(guest, '-K', 'rxhash on')
    ethtool(guest, '-L', f'combined {CPUS}')


def test_statistics():
    """The queues have together what Linux has counted of the interface."""
    both = kept(captured)

    def counts():
        link, = json.loads(both.a.run(f'ip -s -j link show dev {name(both.a)}').output)
        counters = both.a.card.interface_counters()
        queued = [sum(counters[f'queue_{number}_{kind}'] for number in range(CPUS))
                  for kind in ('rx_packets', 'tx_packets', 'rx_bytes', 'tx_bytes')]
        linux = [link['stats64'][direction][kind] for kind in ('packets', 'bytes') for direction in ('rx', 'tx')]
        return [new - old for new, old in zip(queued, linux)]

    def settled():
        found = counts()
        return found if counts() == found else None

    # A frame may come between the counts of the one and of the other.
    before = wait.until(settled, 'the same twice')
    ethernet.iperf(both, '-n 2M -P 2')
    wait.until(lambda: counts() == before, lambda: f'the same growth of both: {before}, {counts()}')


# --- segmentation ----------------------------------------------------------------------------------------------------------


def fields(path, display, *names):
    """Of the packets of a capture that match, by tshark, which looks at all checksums."""
    options = [each for protocol in ('ip', 'tcp', 'udp') for each in ('-o', f'{protocol}.check_checksum:TRUE')]
    # Bytes are bytes: a port that Linux takes by chance may be some protocol's, which they break.
    options += ['-d', 'tcp.port==1-65535,data']
    output = subprocess.run(['tshark', '-n', '-r', path, *options, '-Y', display, '-T', 'fields', '-E', 'separator=|',
                             *[each for field in names for each in ('-e', field)]],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True).stdout
    return [line.split('|') for line in output.splitlines()]


def long_segments(guest, action):
    """How many frames the card has cut while an action ran, into how many."""
    before = guest.card.interface_counters()
    action()
    after = guest.card.interface_counters()
    return [after[key] - before[key] for key in ('tx_tso', 'tx_segments')]


def addresses(both):
    """Of a: by IPv4, IPv6, and in a VLAN."""
    for guest in both.guests:
        guest.run(f'ip link add link {name(guest)} name vlan9 type vlan id 9 && ip link set vlan9 up && '
                  f'ip address add 10.0.9.{guest.number}/24 dev vlan9')
    return [both.a.card.address(4), both.a.card.address(6), f'10.0.9.{both.a.number}']


def test_segmentation():
    """Files, in segments that the card makes: they arrive as they were, and each segment is right to tshark."""
    both = kept(captured)
    for mtu in (1500, 4500):
        for guest in both.guests:
            guest.run(f'ip link set {name(guest)} mtu {mtu}; ip address replace {guest.card.address(6)}/64 dev {name(guest)}')
        for address in addresses(both):
            frames, segments = long_segments(both.b, lambda to=address: copy(both, to))
            if not frames or segments < 2 * frames:
                raise GuestError(f'{address}, MTU {mtu}: {frames} frames cut into {segments}')
        for guest in both.guests:
            guest.run('ip link delete vlan9')
    errors = both.b.card.interface_counters()['tx_errors'], both.a.card.interface_counters()['rx_errors']
    expect('errors', errors, (0, 0))
    path = both.b.card.captured
    bad = fields(path, 'ip.checksum.status == "Bad" || tcp.checksum.status == "Bad" || _ws.malformed || frame.len > 4518',
                 'frame.number', '_ws.col.Info')
    if bad:
        raise GuestError(f'in {path}: {bad[:5]}')
    sent = fields(path, f'tcp.dstport == {PORT} && tcp.len > 1000', 'ip.version', 'vlan.id', 'tcp.len')
    for wanted in (['4', ''], ['6', ''], ['4', '9']):
        if sum(each[:2] == wanted for each in sent) < 1000:
            raise GuestError(f'{wanted} is not among {len(sent)} segments')


def test_memory_of_frames():
    """A socket is charged for all of the memory that a frame keeps: of a frame that is longer than half of what the pool gives
    at a time that is all of it."""
    both = kept(captured)
    for mtu, least in ((9000, 16384), (1500, 2048)):
        for guest in both.guests:
            guest.run(f'ip link set {name(guest)} mtu {mtu}')
        program = both.a.spawn('exec frame-room')
        program.wait_output('ready')
        both.b.run(f'ping -c 8 -i 0.01 -W 20 -M do -s {mtu - 28} {both.a.card.address()}')
        program.kill(10)  # SIGUSR1
        found = re.search(r'(\d+) packets of (\d+) bytes', program.wait().output)
        print(f'# MTU {mtu}: {found[0]}')
        if int(found[1]) < 8 or not least <= int(found[2]) < 2 * least:
            raise GuestError(f'MTU {mtu}: {found[0]}')
    works(both)


def test_without_segmentation():
    """Linux cuts, if it is asked to: the same file arrives."""
    both = kept(captured)
    for settings, wanted in (('tso off gso off', False), ('tso off gso on', False), ('tso on gso on', True)):
        ethtool(both.b, '-K', settings)
        frames, _ = long_segments(both.b, lambda: copy(both, both.a.card.address(), 1))
        if bool(frames) != wanted:
            raise GuestError(f'with {settings} {frames} frames were cut')


# --- what else ethtool has -------------------------------------------------------------------------------------------------


def test_coalescing():
    """Interrupts wait for frames or their time, for all queues or one; and without a time for nothing."""
    both = kept(captured)
    guest = both.a

    def shown(output):
        return [re.findall(rf'{key}:\s*(\d+)', output) for key in ('rx-usecs', 'rx-frames', 'tx-usecs', 'tx-frames')]

    expect('at first', shown(ethtool(guest, '-c')), [['0']] * 4)
    ethtool(guest, '-C', 'rx-usecs 300 rx-frames 20 tx-usecs 200 tx-frames 10')
    expect('set', shown(ethtool(guest, '-c')), [['300'], ['20'], ['200'], ['10']])
    before = guest.card.interface_counters()['interrupts_held']
    ping(both)
    ethernet.iperf(both, '-n 1M')
    if guest.card.interface_counters()['interrupts_held'] <= before:
        raise GuestError('no interrupt has waited')
    guest.run(f'ethtool -Q {name(guest)} queue_mask 0x2 --coalesce rx-usecs 50')
    expect('of queue 0', shown(ethtool(guest, '-c')), [['300'], ['20'], ['200'], ['10']])
    one = guest.run(f'ethtool -Q {name(guest)} queue_mask 0x2 --show-coalesce').output
    expect('of queue 1', shown(one), [['50'], ['20'], ['200'], ['10']])
    refused(guest, '-C', 'rx-usecs 0 rx-frames 20')
    refused(guest, '-C', 'rx-usecs 65536')
    refused(guest, '-C', 'adaptive-rx on')
    # It stays when rings are exchanged, and when the card begins anew.
    ethtool(guest, '-G', 'rx 128')
    pci.reset(guest.card)
    both.wait_active()
    expect('after a reset', shown(ethtool(guest, '-c')), [['300'], ['20'], ['200'], ['10']])
    ethtool(guest, '-C', 'rx-usecs 0 rx-frames 0 tx-usecs 0 tx-frames 0')
    ethtool(guest, '-G', 'rx 256')
    works(both)


def pause(guest, **settings):
    """Switch PAUSE frames that count (rx) and that are sent (tx); ethtool says what was set."""
    ethtool(guest, '-A', *(f'{way} {"on" if on else "off"}' for way, on in settings.items()))
    for way, on in settings.items():
        expect(f'pause {way}', paused(guest)[way], on)


def paused(guest):
    """What ethtool says of that."""
    return {way.lower(): state == 'on' for way, state in re.findall(r'^(Autonegotiate|RX|TX):\s*(on|off)', ethtool(guest, '-a'), re.M)}


def flood(both, frames=3000):
    """Frames from b to a, faster than a takes them out of its ring: how much each counter of a and b has grown."""
    before = [guest.card.interface_counters() for guest in both.guests]
    # Whether ping sees its answers depends on the sockets' buffers.
    both.b.run(f'ping -q -f -l {frames} -c {frames} -s 16 -W 1 {both.a.card.address()}', check=False)
    wait.until(lambda: both.b.card.interface_counters()['tx_frames'] - before[1]['tx_frames'] >= frames, 'all frames of the flood')
    both.b.run(f'ping -c 1 -W 20 {both.a.card.address()}')  # behind the others
    after = [guest.card.interface_counters() for guest in both.guests]
    return [{key: new[key] - old[key] for key in new} for new, old in zip(after, before)]


def expect_lossless(both):
    receiver, sender = flood(both)
    expect('frames lost', receiver['rx_no_buffer'], 0)
    for who, key in ((receiver, 'tx_pause'), (receiver, 'rx_waited'), (sender, 'rx_pause'), (sender, 'tx_stopped')):
        if not who[key]:
            raise GuestError(f'{key} has not moved: {receiver}, {sender}')
    if receiver['rx_frames'] < 3000:
        raise GuestError(f'frames: {receiver}, {sender}')


def test_pause():
    """A small ring whose interrupt is late loses frames of a flood; with PAUSE frames none."""
    both = kept(captured)
    for guest in both.guests:
        expect('at first', paused(guest), {'autonegotiate': False, 'rx': False, 'tx': False})
        refused(guest, '-A', 'autoneg on', 'not supported')
    if 'Supported pause frame use: Symmetric Receive-only' not in ethtool(both.a, ''):
        raise GuestError(ethtool(both.a, ''))
    ethtool(both.a, '-G', 'rx 16')
    ethtool(both.a, '-C', 'rx-usecs 60000')
    receiver, sender = flood(both)
    if not receiver['rx_no_buffer'] or receiver['tx_pause'] or sender['tx_stopped']:
        raise GuestError(f'without: {receiver}, {sender}')
    pause(both.a, rx=False, tx=True)
    pause(both.b, rx=True, tx=False)
    expect_lossless(both)
    # Both stay when the card begins anew; and the statistics are the card's.
    for guest in both.guests:
        pci.reset(guest.card)
    both.wait_active()
    expect('after a reset', [paused(guest) for guest in both.guests],
           [{'autonegotiate': False, 'rx': False, 'tx': True}, {'autonegotiate': False, 'rx': True, 'tx': False}])
    expect_lossless(both)
    shown = ethtool(both.a, '-I -a')
    for way in ('tx', 'rx'):
        expect(f'{way} pause', re.search(rf'{way}_pause_frames: (\d+)', shown)[1], str(both.a.card.interface_counters()[f'{way}_pause']))
    for guest in both.guests:
        pause(guest, rx=False, tx=False)
    ethtool(both.a, '-C', 'rx-usecs 0')
    ethtool(both.a, '-G', 'rx 256')
    works(both)


def test_reset():
    """A card that begins anew has the queues, the key and the table that it had."""
    both = kept(captured)
    ethtool(both.a, '-L', 'combined 4')
    ethtool(both.a, '-X', f'hkey {KEY.hex(":")} weight 0 0 1 1')
    before = [ethtool(both.a, option) for option in ('-l', '-x')]
    pci.reset(both.a.card)
    both.wait_active()
    expect('after a reset', [ethtool(both.a, option) for option in ('-l', '-x')], before)
    counts = grown(both.a, lambda: ethernet.iperf(both, '-P 4 -n 2M'))
    if sum(counts[:2]) > 20 or not sum(counts[2:]):
        raise GuestError(f'by the table: {counts}')
    ethtool(both.a, '-X', 'default')
    ethtool(both.a, '-L', f'combined {CPUS}')
    works(both)


def test_beside_rdma():
    """Streams over all queues, and RDMA: nothing is lost, or stuck."""
    both = kept(captured)
    for guest in both.guests:
        ethtool(guest, '-L', f'combined {MAX_QUEUES}')
    rdma = verbs.start(both.a, both.b, 'ibv_rc_pingpong -c -s 65536 -n 50')
    ethernet.iperf(both, '-P 4 -n 4M')
    ethernet.iperf(both, '-P 4 -n 4M -R')
    verbs.finish(rdma)
    for guest in both.guests:
        ethtool(guest, '-L', f'combined {CPUS}')
        counters = guest.card.interface_counters()
        expect('errors', [counters[key] for key in ('tx_errors', 'rx_errors', 'bad_doorbells')], [0, 0, 0])
    works(both)


if __name__ == '__main__':
    tap.main()
