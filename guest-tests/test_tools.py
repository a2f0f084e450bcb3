#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What an operator sees of a card, and does to it, with the tools of iproute2: rdma and devlink. The numbers that a driver's
details have are compared in test_driver.py."""
import json

from harness import events, pci, resources, tap, verbs, wait
from harness.guest import GuestError, end_all
from harness.labs import infiniband, kept, roce


def expect(what, good, *seen):
    if not good:
        raise GuestError(f'{what}: {seen}')


def shown(guest, command):
    return json.loads(guest.run(command).output or '[]')


# Counters of QPs

def link(guest):
    return f'link {guest.card.name}/1'


def statistics(guest):
    """Those of the port, which have all that its QPs have counted."""
    return shown(guest, f'rdma -j statistic show {link(guest)}')[0]


def counters(guest):
    return shown(guest, f'rdma -j statistic qp show {link(guest)}')


def qp_of(guest, command):
    """The number of the QP that a program has."""
    return next(qp['lqpn'] for qp in shown(guest, f'rdma -j resource show qp {link(guest)}') if qp.get('comm') == command)


def test_statistic():
    """Names that do not change, in netlink and in sysfs; values that the traffic explains."""
    both = kept(infiniband)
    before = statistics(both.a)
    names = [name for name in before if name not in ('ifname', 'port')]
    expect('names of QPs first', names[:4] == ['tx_packets', 'tx_bytes', 'rx_packets', 'rx_bytes'], names)
    files = both.a.run(f'ls /sys/class/infiniband/{both.a.card.name}/ports/1/hw_counters').output.split()
    expect('the same in sysfs', set(files) - {'lifespan'} == set(names), files, names)
    verbs.bandwidth(both.b, both.a, 'ib_write_bw', 65536, 100)
    moved = {name: value - before[name] for name, value in statistics(both.a).items() if name in names}
    expect('bytes sent', 100 * 65536 <= moved['tx_bytes'] < 200 * 65536, moved)
    # Nothing else uses the port.
    expect('packets', moved['tx_packets'] == moved['port_tx_packets'], moved)


def test_bound_by_hand():
    both = kept(infiniband)
    free = resources.in_use(both.a)
    client, server = verbs.start(both.a, both.b, 'ibv_rc_pingpong -c -e -n 10000000')
    client.wait_output('remote address')
    number = qp_of(both.a, 'ibv_rc_pingpong')
    both.a.run(f'rdma statistic qp bind {link(both.a)} lqpn {number}')
    found = wait.until(lambda: [each for each in counters(both.a) if each['tx_bytes'] > 20 * 4096 < each['rx_bytes']],
                       'counting both ways: a QP that is bound')
    expect('its QP', len(found) == 1 and found[0]['lqpn'] == [number], found)
    shown_set = next(qp['drv_counter_set'] for qp in shown(both.a, 'rdma -j -dd resource show qp') if qp['lqpn'] == number)
    expect('the set in its context', shown_set == found[0]['cntn'], shown_set, found)
    again = both.a.run(f'rdma statistic qp bind {link(both.a)} lqpn {number}', check=False)
    expect('it cannot be bound twice', again.status != 0, again)

    before = statistics(both.a)['tx_packets']
    both.a.run(f'rdma statistic qp unbind {link(both.a)} cntn {found[0]["cntn"]} lqpn {number}')
    expect('no counter is left', not counters(both.a), counters(both.a))
    wait.until(lambda: statistics(both.a)['tx_packets'] > before + 20, 'counting: the port, with the QP again')
    end_all([client, server])
    resources.wait_for(both.a, free)


def test_goes_while_it_is_bound():
    """What a QP has counted is the port's when it has gone with its counter."""
    both = kept(infiniband)
    server = both.a.spawn(f'exec ibv_rc_pingpong -d {both.a.card.name}')
    server.wait_output('local address')
    before = statistics(both.a)['rx_packets']
    both.a.run(f'rdma statistic qp bind {link(both.a)} lqpn {qp_of(both.a, "ibv_rc_pingpong")}')
    both.b.run(f'ibv_rc_pingpong -d {both.b.card.name} {verbs.address(both.a)}')
    server.wait()
    expect('no counter is left', not counters(both.a), counters(both.a))
    moved = statistics(both.a)['rx_packets'] - before
    expect('1000 messages of 4096 bytes, and their acknowledgements', moved >= 1000, moved)


def test_bound_by_rule():
    """Each new QP counts with others of its type and process."""
    both = kept(infiniband)
    both.a.run(f'rdma statistic qp set {link(both.a)} auto type,pid on')
    before = statistics(both.a)['rx_packets']
    programs = [both.a.spawn(f'exec ibv_{kind}_pingpong -d {both.a.card.name} -p {verbs.new_port()}') for kind in ('rc', 'uc')]
    for program in programs:
        program.wait_output('local address')
    found = counters(both.a)
    expect('a counter for each', len(found) == 2 and {each['qp-type'] for each in found} == {'RC', 'UC'}, found)
    end_all(programs)
    wait.until(lambda: not counters(both.a), lambda: f'gone: {counters(both.a)}')
    verbs.pingpong(both.a, both.b, '-n 100')
    expect('the sum has what they counted', statistics(both.a)['rx_packets'] >= before + 100, before)
    both.a.run(f'rdma statistic qp set {link(both.a)} auto off')


def test_no_set_left():
    """There are 255 beside that of all others."""
    both = kept(infiniband)
    free = resources.in_use(both.a)
    client, server = verbs.start(both.a, both.b, 'ib_write_bw -F -q 260 -s 8 -D 60')
    client.wait_output('BW average')
    numbers = [qp['lqpn'] for qp in shown(both.a, f'rdma -j resource show qp {link(both.a)}') if qp['type'] == 'RC']
    lines = '\n'.join(f'statistic qp bind {link(both.a)} lqpn {number}' for number in numbers)
    both.a.run(f"printf '{lines}\\n' >/tmp/binds; rdma -f -b /tmp/binds", check=False)
    expect('all sets in use', len(numbers) == 260 and len(counters(both.a)) == 255, len(numbers), len(counters(both.a)))
    end_all([client, server])
    resources.wait_for(both.a, free)
    expect('no counter is left', not counters(both.a), counters(both.a))


def test_bad_bindings():
    guest = kept(infiniband).a
    for arguments in (f'bind {link(guest)} lqpn 12345', f'unbind {link(guest)} cntn 7', f'bind {link(guest)} cntn 300 lqpn 12345'):
        result = guest.run(f'rdma statistic qp {arguments}', check=False)
        expect('refused', result.status != 0, result)
    expect('no counter is left', not counters(guest), counters(guest))


# devlink

def handle(guest):
    return 'pci/' + pci.address(guest.card)


def diagnosis(guest, where):
    """What the reporter says of the card, as one dictionary."""
    return shown(guest, f'devlink -j health diagnose {where} reporter card')


def reporter(guest, where):
    return shown(guest, f'devlink -j health show {where} reporter card')['health'][where][0]


def wait_running(both, where):
    wait.until(lambda: diagnosis(both.a, where).get('state') == 'running', lambda: f'running: {diagnosis(both.a, where)}')
    both.wait_active()


def test_health():
    """A card that fails is dumped and recovered; then all is well."""
    both = kept(infiniband)
    where = handle(both.a)
    before = reporter(both.a, where)
    pci.clear(both.a.card, pci.MASTER)
    wait.until(lambda: reporter(both.a, where)['error'] > before['error'], 'reported: the failure')
    wait_running(both, where)
    now = reporter(both.a, where)
    expect('recovered', now['state'] == 'healthy' and now['recover'] == before['recover'] + 1, now)
    dump = shown(both.a, f'devlink -j health dump show {where} reporter card')
    expect('the dump', dump['state'] == 'failed' and 'configuration is lost' in dump['last_failure'] and
           not dump['pci_command'] & pci.MASTER and dump['hcr']['ctrl'] & 0xfff, dump)
    both.a.run(f'devlink health dump clear {where} reporter card')
    verbs.pingpong(both.a, both.b, '-n 50')


def test_health_by_hand():
    """The operator has said that a card that fails be left to him."""
    both = kept(infiniband)
    where = handle(both.a)
    both.a.run(f'devlink health set {where} reporter card auto_recover false')
    with events.watched(both.a) as watch:
        pci.clear(both.a.card, pci.MASTER)
        watch.wait('DEVICE_FATAL')
    wait.until(lambda: reporter(both.a, where)['state'] == 'error', 'reported: the failure')
    both.a.run('sleep 2')
    expect('it stays failed', diagnosis(both.a, where)['state'] == 'failed', diagnosis(both.a, where))
    both.a.run(f'devlink health recover {where} reporter card')
    wait_running(both, where)
    verbs.pingpong(both.a, both.b, '-n 50')
    both.a.run(f'devlink health set {where} reporter card auto_recover true')
    expect('recovered', reporter(both.a, where)['state'] == 'healthy', reporter(both.a, where))


def test_together():
    """Looking, reloading, failing and unloading at the same time."""
    both = kept(infiniband)
    where = handle(both.a)
    looks = [both.a.spawn(f'while :; do {command}; sleep 0.2; done >/dev/null 2>&1') for command in (
        f'devlink dev info {where}', f'devlink health diagnose {where} reporter card', 'rdma -dd resource show qp',
        f'rdma statistic show {link(both.a)}')]
    for _ in range(3):
        both.a.run(f'devlink dev reload {where} & setpci -s {where[4:]} COMMAND=0:4; wait', check=False)
        both.a.run('modprobe -r rdma_hca; modprobe rdma_hca')
    end_all(looks)
    both.wait_active()
    verbs.pingpong(both.a, both.b, '-n 50')


def test_reload():
    """As if the driver were unloaded and loaded: under a program, too, which is told."""
    for make in (infiniband, roce):
        both = kept(make)
        where = handle(both.a)
        with events.watched(both.a) as watch:
            both.a.run(f'devlink dev reload {where} action driver_reinit')
            watch.wait('DEVICE_FATAL')
        if make is roce:
            both.a.card.up()
        both.wait_active()
        verbs.pingpong(both.a, both.b, '-n 50')
        refused = both.a.run(f'ip netns add away; devlink dev reload {where} netns away', check=False)
        expect('its namespace stays', refused.status != 0, refused)
        both.a.run('ip netns delete away')
        both.wait_active()


def test_info():
    for make in (roce, infiniband):
        guest = kept(make).a
        where = handle(guest)
        info = shown(guest, f'devlink -j dev info {where}')['info'][where]
        node = guest.run(f'cat /sys/class/infiniband/{guest.card.name}/node_guid').output.strip().replace(':', '')
        board = guest.run(f'cat /sys/class/infiniband/{guest.card.name}/board_id').output.strip()
        firmware = guest.run(f'cat /sys/class/infiniband/{guest.card.name}/fw_ver').output.strip()
        expect('identity', info == {'driver': 'rdma_hca', 'serial_number': node,
                                    'versions': {'fixed': {'board.id': board, 'board.rev': '1'}, 'running': {'fw': firmware}}}, info)


# Namespaces, and tools for what a card is not

POD = 'ip netns exec pod '


def devices(guest, where=''):
    return [device['ifname'] for device in shown(guest, f'{where}rdma -j dev show')]


def test_namespaces():
    """A card and its interface that a namespace has been given are there alone, and come back when it ends."""
    with roce() as both:
        guest, card = both.a, both.a.card
        guest.run('rdma system set netns exclusive && ip netns add pod')
        index = card.gid_index()
        guest.run(f'ip link set {card.interface} netns pod')
        gid = f'/sys/class/infiniband/{card.name}/ports/1/gids/{index}'
        wait.until(lambda: not int(guest.run(f'cat {gid}').output.replace(':', ''), 16), 'gone: the GID of an interface that has')
        guest.run(f'rdma dev set {card.name} netns pod')
        expect('there alone', devices(guest) == [] and devices(guest, POD) == [card.name], devices(guest))
        guest.run(f'ip -n pod link set lo up && ip -n pod address add {card.address()}/24 dev {card.interface} && '
                  f'ip -n pod link set {card.interface} up')
        wait.until(lambda: guest.run(f"{POD} grep -l ffff:0a00 {gid[:gid.rindex('/')]}/*", check=False).output, 'there: a GID of its address')
        server = guest.spawn(f'exec {POD} rping -s -a {card.address()} -C 20 -V')
        wait.until(lambda: both.b.run(f'rping -c -a {card.address()} -C 20 -V', check=False).status == 0, 'well: rping', pause=0.5)
        server.wait()
        guest.run('ip netns delete pod')
        wait.until(lambda: devices(guest) == [card.name], lambda: f'back: the card: {devices(guest)}')
        wait.until(lambda: guest.run(f'ip link show {card.interface}', check=False).status == 0, 'back: the interface')
        guest.run('rdma system set netns shared')


def test_tools_of_fabrics():
    """They end, and say that a port of Ethernet is none of a fabric's; ibstat shows it."""
    guest = kept(roce).a
    expect('Ethernet', 'Link layer: Ethernet' in guest.run(f'ibstat {guest.card.name}').output)
    for command in 'ibnetdiscover', 'perfquery', 'smpquery nodeinfo 1', 'ibhosts', 'iblinkinfo', 'saquery', 'ibping -c 1 1':
        ended = guest.run(f'timeout 30 {command}', check=False)
        # ibping counts what it has sent, whether or not it could, and ends well.
        refused = ended.status not in (0, 124) or 'send failed' in ended.output
        expect(f'an error of {command}', refused, ended.status, ended.output)


if __name__ == '__main__':
    tap.main()
