#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Cards served by vfio-user to guests of a distribution's QEMU, which has none: see docs/vfio-user.md."""
import contextlib
import random
import struct

from harness import captures, links, tap, verbs, wait
from harness.check import expect
from harness.devices import InfinibandCard, Nic, RoceCard
from harness.lab import Lab
from harness.labs import kept
from harness.stock import StockMachine

# A device with RAM behind a BAR: what the guest maps, and takes away, while the card works.
SHARED = ['-object', 'memory-backend-memfd,id=shared,size=1M,share=on', '-device', 'ivshmem-plain,memdev=shared,addr=0x1e']
TOGGLES = 100
CARD = '/machine/peripheral/card'


def header(command, size, flags=0):
    """Of a message of the vfio-user protocol."""
    return struct.pack('<HHIII', 1, command, size, flags, 0)


VERSION = struct.pack('<HH', 0, 1) + b'{"capabilities":{"max_msg_fds":8}}\0'
HELLO = header(1, 16 + len(VERSION)) + VERSION


def infiniband(capture=False):
    machine = StockMachine(Nic('net'), InfinibandCard('cable', capture=capture), arguments=SHARED)
    return Lab([machine, machine], {'net': links.stream(), 'cable': links.unix_cable()})


def roce(lan=links.unix_cable):
    machine = StockMachine(Nic('net'), RoceCard('lan'))
    return Lab([machine, machine], {'net': links.stream(), 'lan': lan()})


def counter(server, unit, name):
    units = server.monitor.execute('query-rdma-hca-counters')[0]['units']
    return next(counter['value'] for found in units if found['name'] == unit
                for counter in found['counters'] if counter['name'] == name)


def test_infiniband():
    """Ping-pongs of all services, that sleep, too (MSI-X); perftest's operations."""
    both = kept(infiniband)
    for service in ('rc', 'uc', 'ud', 'srq'):
        verbs.pingpong(both.a, both.b, '-e -n 200', service)
    for program in ('ib_send_bw', 'ib_write_bw', 'ib_read_bw', 'ib_atomic_bw', 'ib_send_lat -e', 'ib_write_lat'):
        verbs.perftest(both.a, both.b, program, '-n 200')


def test_mappings_change():
    """The guest takes memory out of the card's reach, and gives it back, while the card sends and receives."""
    both = kept(infiniband)
    server = both.b.servers[0]
    traffic = verbs.forever(both.a, both.b)
    before = server.log().count('unregistering')
    shared = '$(lspci -D -d 1af4:1110 | cut -d " " -f 1)'
    both.b.run(f'device={shared}; for time in $(seq {TOGGLES}); do '
               'setpci -s $device COMMAND=0:2; setpci -s $device COMMAND=2:2; done')
    expect('mappings gone', server.log().count('unregistering') - before >= TOGGLES)
    verbs.went_on(traffic)
    verbs.pingpong(both.a, both.b, '-n 100')


def test_monitor():
    """Faults, counters and the recorder by the server's monitor."""
    both = kept(infiniband)
    server = both.a.servers[0]
    plan = [{'action': 'drop', 'direction': 'tx', 'probability': 0.05}]
    server.monitor.execute('qom-set', {'path': CARD, 'property': 'faults', 'value': plan})
    verbs.pingpong(both.a, both.b, '-n 300')
    server.monitor.execute('qom-set', {'path': CARD, 'property': 'faults', 'value': []})
    expect('packets lost', counter(server, 'fault', 'tx_drop') > 0)
    expect('recorded', server.monitor.execute('query-rdma-hca-recorder')[0]['lines'])
    told = server.monitor.execute('human-monitor-command', {'command-line': 'info rdma-hca'})
    expect('said', 'tx_drop' in told, told)


def test_strange_clients():
    """Who says what cannot be understood, or nothing, before and after it has said who it is: the server parts with them, and a
    guest finds it as it should be."""
    both = infiniband()
    server = both.a.servers[0]
    server.start()
    chance = random.Random(1)
    for number in range(100):
        with server.connect(server.socket) as client, contextlib.suppress(OSError):
            if number % 4:
                client.sendall(HELLO)
                client.recv(4096)
            for _ in range(number % 7):
                body = chance.randbytes(chance.choice([0, 8, 16, 24, 32, 64, 100]))
                size = 16 + len(body) if number % 2 else chance.randrange(1 << 20)
                client.sendall(header(chance.randrange(20), size, chance.choice([0, 0x10])) + body)
        server.monitor.execute('query-status')
    with both:
        verbs.pingpong(both.a, both.b, '-e -n 100')


def test_reset():
    """The guest's machine is reset beside traffic; its card is another one then."""
    both = kept(infiniband)
    traffic = verbs.forever(both.a, both.b)
    both.b.reset()
    both.wait_again(both.b)
    for command in traffic:
        command.end()
    verbs.pingpong(both.a, both.b, '-e -n 100')


def test_card_resets():
    """The guest resets the function, parts the driver from it, reloads it: the card is found as it was."""
    both = kept(infiniband)
    device = '/sys/bus/pci/devices/$pci'
    driver = '/sys/bus/pci/drivers/rdma_hca'
    for script in (f'echo 1 >{device}/reset', f'echo $pci >{driver}/unbind && echo $pci >{driver}/bind', 'devlink dev reload pci/$pci'):
        both.b.run(f'pci=$(basename $(realpath /sys/class/infiniband/rdma_hca0/device)); {script}')
        both.wait_active()
        verbs.pingpong(both.a, both.b, '-e -n 100')


def test_client_killed():
    """Its QEMU goes without a word, beside traffic, and comes again; the server is still there."""
    both = kept(infiniband)
    server = both.b.servers[0]
    process = server.process.pid
    traffic = verbs.forever(both.a, both.b)
    both.b.kill()
    wait.until(lambda: not server.monitor.execute('query-rdma-hca-queues')[0]['lines'], 'empty: queues of a card nobody has', 20)
    both.b.start()
    both.wait_again(both.b)
    traffic[0].end()
    expect('the same server', server.process.pid == process)
    verbs.pingpong(both.a, both.b, '-e -n 100')


def test_roce():
    """By a cable, and by a network of QEMU's."""
    for lan in (links.unix_cable, links.stream):
        with roce(lan) as both:
            both.b.run(f'ping -q -c 3 -i 0.2 -s 4000 {both.a.card.address()}')
            verbs.pingpong(both.a, both.b, '-e -n 100')
            verbs.perftest(both.a, both.b, 'ib_write_bw', '-n 100')


def test_capture():
    with infiniband(capture=True) as both:
        verbs.pingpong(both.a, both.b, '-n 20')
        both.a.stop()
        captures.check(both.a.card.captured)


if __name__ == '__main__':
    tap.main()
