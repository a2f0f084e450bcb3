#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver of a RoCE card: the interface, its settings, the port's state, and what becomes of them when the card fails."""
import json

from harness import cm, events, lies, log, pci, power, tap, verbs, wait
from harness.check import expect
from harness.devices import MTU, RoceCard
from harness.guest import GuestError, end_all
from harness.labs import kept, roce


def ping(both, version=4, size=1000, count=2):
    both.a.run(f'ping -{version} -c {count} -i 0.01 -W 10 -M do -s {size} {both.b.card.address(version)}')


def works(both):
    """The interface, RDMA and the connection manager."""
    both.wait_active()
    for version in (4, 6):
        ping(both, version)
    verbs.pingpong(both.a, both.b, '-n 50 -e')
    verbs.pingpong(both.b, both.a, '-n 50 -s 1000', 'ud', version=6)
    connect(both)


def connect(both):
    cm.connected(both.a, both.b, 'rping', '-s -a {server} -V -C 3', '-c -a {server} -V -C 3')


def gids(guest):
    """The indices of the port's GIDs, by their text."""
    files = f'/sys/class/infiniband/{guest.card.name}/ports/1/gids'
    lines = guest.run(f'{{ cd {files} && grep -v 0000:0000:0000:0000:0000:0000:0000:0000 *; }} 2>/dev/null', check=False).output.split()
    return {gid: int(index) for index, _, gid in (line.partition(':') for line in lines)}


def kernel_counts(guest):
    """What Linux has counted: (direction, name)."""
    link, = json.loads(guest.run(f'ip -s -j link show dev {guest.card.interface}').output)
    return {(direction, name): value for direction, counts in link['stats64'].items() for name, value in counts.items()}


# --- the interface ---------------------------------------------------------------------------------------------------------


def test_every_size():
    """Ping by both protocols, with the smallest MTU that IPv6 has, and the largest."""
    both = kept(roce)
    for mtu in (1280, 1500, 9000, MTU):
        for guest in both.guests:
            guest.run(f'ip link set {guest.card.interface} mtu {mtu}')
        for version in (4, 6):
            for size in (0, 1, 18, 1000, mtu - 48):
                ping(both, version, size)


def test_statistics():
    """The card has counted what Linux has, and RDMA is not among it."""
    both = kept(roce)
    before = [settled_counts(guest) for guest in both.guests]
    both.a.run(f'ping -c 30 -i 0.005 -s 1000 {both.b.card.address()}')
    verbs.pingpong(both.a, both.b, '-s 1000 -n 100')
    for guest, old in zip(both.guests, before):
        def agree():
            new = counts(guest)
            frames, byte_count, packets, errors, card_errors = (
                [new[name] - old[name] for name in names] for names in (
                    ('tx_frames', 'rx_frames'), ('tx_bytes', 'rx_bytes'), (('tx', 'packets'), ('rx', 'packets')),
                    (('tx', 'errors'), ('rx', 'errors')), ('tx_errors', 'rx_errors')))
            return frames == packets and errors == card_errors and all(30 <= each < 60 for each in frames) and \
                all(each >= 30 * 1042 for each in byte_count)

        # A frame may come between the counts of the one and of the other.
        wait.until(agree, lambda: f'{guest.name}: the card and Linux have counted the same, since {old} and now {counts(guest)}')


def counts(guest):
    return {**kernel_counts(guest), **guest.card.interface_counters()}


def settled_counts(guest):
    """The same at a time when no frame came between those of Linux and those of the card."""
    found = []

    def settled():
        found.append(counts(guest))
        return found[-2:-1] == found[-1:]

    wait.until(settled, f'{guest.name}: no frames for a moment')
    return found[-1]


def passes(both, to, wanted):
    """Frames that b sends to an IP address end in a (wanted), or its filter keeps them out; sooner or later, as the filter
    is set when there is time for it."""
    count = 20

    def as_wanted():
        old = both.a.card.interface_counters()
        both.b.run(f'ping -c {count} -i 0.002 -W 0.1 -I {both.b.card.interface} {to}', check=False)
        new = both.a.card.interface_counters()
        return [new[name] - old[name] >= count for name in ('rx_frames', 'rx_filtered')] == [wanted, not wanted]

    wait.until(as_wanted, f'{"" if wanted else "not "}receiving {to}')


def test_receive_filter():
    both = kept(roce)
    name = both.a.card.interface
    stranger, group, mac = '10.0.1.99', '239.1.1.1', '01:00:5e:01:01:01'
    both.b.run(f'ip neighbour replace {stranger} lladdr 02:00:00:00:00:99 dev {both.b.card.interface}')
    for to, on, off in ((stranger, f'link set {name} promisc on', f'link set {name} promisc off'),
                        (group, f'maddress add {mac} dev {name}', f'maddress del {mac} dev {name}'),
                        (group, f'link set {name} allmulticast on', f'link set {name} allmulticast off')):
        passes(both, to, False)
        both.a.run(f'ip {on}')
        passes(both, to, True)
        both.a.run(f'ip {off}')
    passes(both, group, False)
    # More groups than the card's filter has room for: it lets all pass.
    for word, wanted in (('add', True), ('del', False)):
        both.a.run(f'for n in $(seq 130); do ip maddress {word} $(printf 01:00:5e:02:00:%02x $n) dev {name}; done')
        passes(both, group, wanted)
    before = kernel_counts(both.a)['rx', 'multicast']
    both.b.run(f'ping -c 3 -i 0.01 -W 0.1 -I {both.b.card.interface} 224.0.0.1', check=False)
    wait.until(lambda: kernel_counts(both.a)['rx', 'multicast'] >= before + 3, 'counted multicast frames')


def test_vlan():
    """An interface on the interface has GIDs of its own; they go with it."""
    both = kept(roce)
    before = [sorted(gids(guest)) for guest in both.guests]
    for guest in both.guests:
        guest.run(f'ip link add link {guest.card.interface} name vlan7 type vlan id 7 && '
                  'ip link set vlan7 up && '
                  f'ip address add 10.0.7.{guest.number}/24 dev vlan7 && ip address add fd00:7::{guest.number}/64 dev vlan7')
    for where in ('10.0.7', 'fd00:7:'):
        addresses = [f'{where}{":" if ":" in where else "."}{guest.number}' for guest in both.guests]
        both.a.run(f'ping -c 2 -i 0.01 -W 10 {addresses[1]}')
        for service in ('rc', 'ud'):
            port = verbs.new_port()
            script = [f'exec ibv_{service}_pingpong -c -s 3000 -n 50 -d {guest.card.name} -p {port} '
                      f'-g {guest.card.gid_index_of(ip)}' for guest, ip in zip(both.guests, addresses)]
            server = both.b.spawn(script[1])
            verbs.wait_listening(server, port)
            verbs.finish([both.a.spawn(f'{script[0]} {verbs.address(both.b)}'), server])
        server = cm.listen(both.b, f'rping -s -a {addresses[1]} -V -C 3')
        verbs.finish([both.a.spawn(f'exec rping -c -a {addresses[1]} -V -C 3'), server])
    for guest, old in zip(both.guests, before):
        guest.run('ip link delete vlan7')
        wait.until(lambda: sorted(gids(guest)) == old, f'the GIDs without the VLAN: {old}')


def test_address_changes():
    """A new MAC is that of the GIDs, too."""
    both = kept(roce)
    old = both.a.run(f'cat /sys/class/net/{both.a.card.interface}/address').output.strip()
    for mac in ('02:00:00:00:00:77', old):
        both.a.run(f'ip link set {both.a.card.interface} address {mac}')
        both.b.run(f'ip neighbour flush dev {both.b.card.interface}')
        works(both)
    if both.a.run(f'ip link set {both.a.card.interface} address 01:00:00:00:00:01', check=False).status == 0:
        raise GuestError('a multicast address was taken')


def test_gid_indices():
    """An address that comes has the first index that is free, others keep theirs; programs are told each time."""
    guest = kept(roce).a
    before, added = gids(guest), '0000:0000:0000:0000:0000:ffff:0a4d:0001'
    free = min(set(range(len(before) + 1)) - set(before.values()))
    with events.watched(guest) as watch:
        for what, wanted in 2 * (('add', {**before, added: free}), ('delete', before)):
            since = len(watch.told)
            guest.run(f'ip address {what} 10.77.0.1/24 dev {guest.card.interface}')
            watch.wait('GID_CHANGE', since=since)
            wait.until(lambda: gids(guest) == wanted, lambda: f'behind {what}: {wanted}: {gids(guest)}')  # pylint: disable=cell-var-from-loop


def test_settings_under_load():
    """Rings, offloads and the MTU change while frames fly in both directions: some are lost, none is wrong."""
    both = kept(roce)
    server = both.b.spawn('exec iperf3 -s -1')
    verbs.wait_listening(server, 5201)
    client = both.a.spawn(f'exec iperf3 -c {both.b.card.address()} --bidir -t 600')
    flood = both.b.spawn(f'exec ping -q -f {both.a.card.address()}')
    client.wait_output('connected')
    name = both.a.card.interface
    for command in (f'ethtool -G {name} rx 16 tx 32', f'ethtool -K {name} tx off rx off sg off',
                    f'ip link set {name} mtu 1500', f'ethtool -G {name} rx 4096 tx 4096',
                    f'ip link set {name} promisc on', f'ethtool -K {name} tx on rx on sg on',
                    f'ip link set {name} mtu 9000', f'ip link set {name} promisc off',
                    f'ethtool -G {name} rx 256 tx 256', f'ip link set {name} mtu {MTU}'):
        before = both.a.card.interface_counters()
        both.a.run(command)
        wait.until(lambda: all(both.a.card.interface_counters()[each] > before[each] for each in ('rx_frames', 'tx_frames')),
                   f'receiving and sending after {command}')
    end_all((flood, client, server))
    rings = both.a.run(f'ethtool -g {name}').output.split()
    if rings.count('256') != 2:
        raise GuestError(f'{rings}')
    works(both)


def test_settings_without_memory():
    """Other rings, for which there is no memory: the interface stays as it was."""
    both = kept(roce)
    name = both.a.card.interface
    both.a.run(f'ethtool -G {name} rx 64; ip link set {name} mtu 9000')
    # A kernel with huge pages reserves more than the rings take: it does not call that available, and gives it all the same.
    reserve = both.a.run('cat /proc/sys/vm/min_free_kbytes').output.strip()
    both.a.run('echo 4096 >/proc/sys/vm/min_free_kbytes')
    both.a.run('mount -o remount,size=100% /dev/shm; sync; echo 3 >/proc/sys/vm/drop_caches; '
               "free=$(awk '/MemAvailable/ { print int($2 / 1024) }' /proc/meminfo); "
               'dd if=/dev/zero of=/dev/shm/fill bs=1M count=$((free - 40)) 2>/dev/null')
    refused = both.a.run(f'ethtool -G {name} rx 4096', check=False)
    up = both.a.run(f'ip link show dev {name} up; ethtool -g {name}').output
    both.a.run(f'rm /dev/shm/fill; echo {reserve} >/proc/sys/vm/min_free_kbytes')
    if 'Cannot allocate memory' not in refused.output or 'state UP' not in up or up.split().count('64') != 1:
        raise GuestError(f'{refused}\n{up}')
    ping(both)
    both.a.run(f'ethtool -G {name} rx 256; ip link set {name} mtu {MTU}')
    works(both)


# --- the link --------------------------------------------------------------------------------------------------------------


def test_port_follows_interface():
    """Down and up, with its events; and what the interface can carry bounds the path's MTU."""
    both = kept(roce)
    with_events(both.a, lambda: both.a.run(f'ip link set {both.a.card.interface} down'), both.a.card.up)
    works(both)


def with_events(guest, down, again):
    """The port goes down and comes up: programs are told, each time once, and see it."""
    with events.watched(guest) as watch:
        for change, event, state in ((down, 'PORT_ERR', 'PORT_DOWN'), (again, 'PORT_ACTIVE', 'PORT_ACTIVE')):
            change()
            watch.wait(event)
            port = guest.run(f'ibv_devinfo -d {guest.card.name}').output
            if state not in port:
                raise GuestError(port)
        told = [name for name, _ in watch.told if name.startswith('PORT_')]
        if told != ['PORT_ERR', 'PORT_ACTIVE']:
            raise GuestError(f'told of the port: {told}')


def test_mtu_bounds():
    """What the interface can carry bounds the MTU of a path."""
    both = kept(roce)
    for mtu, active in ((68, 256), (1500, 1024), (2200, 2048), (4500, 4096), (9000, 4096)):
        both.a.run(f'ip link set {both.a.card.interface} mtu {mtu}')
        port = both.a.run(f'ibv_devinfo -d {both.a.card.name}').output
        if f'active_mtu:\t\t{active} ' not in port:
            raise GuestError(f'with an MTU of {mtu}:\n{port}')
    for mtu in (67, 9001):
        if both.a.run(f'ip link set {both.a.card.interface} mtu {mtu}', check=False).status == 0:
            raise GuestError(f'an MTU of {mtu} was taken')
    both.a.card.up()  # below 1280 there is no IPv6
    works(both)


def test_raised_mtu():
    """A datagram QP is bound to what the interface can carry, but not to what it could when the QP was made."""
    both = kept(roce)
    interface = both.a.card.interface
    both.a.run(f'ip link set {interface} mtu 1500')
    program = both.a.spawn('exec verbs-test raised_mtu')
    program.wait_output('raise it')
    both.a.run(f'ip link set {interface} mtu {MTU}')
    program.wait()


def test_carrier_follows_link():
    """The link of the card in the machine is the carrier of the interface, and the state of the port."""
    both = kept(roce)

    def set_link(name, is_up):
        both.a.qmp('set_link', name=name, up=is_up)
        detected = f'Link detected: {"yes" if is_up else "no"}'
        wait.until(lambda: detected in both.a.run(f'ethtool {both.a.card.interface}').output, detected)

    for name in ('hca0', 'lan0'):
        with_events(both.a, lambda: set_link(name, False), lambda: set_link(name, True))
    works(both)


# --- the card comes and goes -----------------------------------------------------------------------------------------------


def traffic(both):
    """What runs until the card goes: commands, for end_all()."""
    flood = both.b.spawn(f'exec ping -q -f {both.a.card.address()}')
    rdma = verbs.start(both.a, both.b, 'ibv_rc_pingpong -e -n 10000000')
    rdma[0].wait_output('remote address')
    return [flood, *rdma]


def test_reload_under_traffic():
    both = kept(roce)
    commands = traffic(both)
    both.a.run('modprobe -r rdma_hca && ! ls -d /sys/class/infiniband/*')
    end_all(commands)
    both.a.run('modprobe rdma_hca')
    both.a.card.configure()
    works(both)


def test_reset_under_traffic():
    """A function level reset: the interface, and its addresses, are there as before."""
    both = kept(roce)
    before = sorted(gids(both.a))
    for _ in range(3):
        commands = traffic(both)
        pci.reset(both.a.card)
        end_all(commands)
        both.wait_active()
    works(both)
    wait.until(lambda: sorted(gids(both.a)) == before, f'the GIDs as before: {before}')


def test_sleep():
    """The machine sleeps: the interface, and its addresses, are there as before."""
    both = kept(roce)
    before = sorted(gids(both.a))
    commands = traffic(both)
    power.sleep(both.a)
    end_all(commands)
    works(both)
    wait.until(lambda: sorted(gids(both.a)) == before, f'the GIDs as before: {before}')


def strand_datagram(both):
    """A request of the connection manager for a card that does not answer any more, before anybody has noticed."""
    connect(both)  # the peers know each other's addresses
    both.b.run(f'ip link set {both.b.card.interface} down')
    # As if the card were gone: its registers do not answer, and it reaches no memory.
    pci.clear(both.a.card, pci.MEMORY | pci.MASTER)
    return both.a.spawn(f'exec rping -c -a {both.b.card.address()} -C 1')


def test_restart_with_stranded_datagram():
    """The card fails: the driver restarts it, and the interface and its addresses are there as before."""
    both = kept(roce)
    before = sorted(gids(both.a))
    client = strand_datagram(both)
    wait.until(lambda: 'card failed' in both.a.kernel_log(), 'in the log: card failed')
    log.wait_restarted(both.a, 0)
    client.end()
    both.b.card.up()
    works(both)
    wait.until(lambda: sorted(gids(both.a)) == before, f'the GIDs as before: {before}')


def test_removal():
    """The function goes away, in order and while frames fly, or without a word, a datagram with it; and comes back."""
    both = kept(roce)
    function = pci.address(both.a.card)
    commands = traffic(both)
    remove(both.a, function)
    end_all(commands)
    both.a.card.configure()
    works(both)
    client = strand_datagram(both)
    remove(both.a, function)  # the driver may have noticed by now
    client.end()
    both.b.card.up()
    both.a.card.configure()
    works(both)


def remove(guest, function):
    pci.remove(guest, function)
    if guest.run(f'ls /sys/class/net/{guest.card.interface}', check=False).status == 0:
        raise GuestError('the interface is still there')
    pci.rescan(guest)


def test_gids_beside_those_of_roce_v1():
    """With roce-v1-gids GIDs are where cards that speak RoCEv1, too, have them: IPv4 at 3. Nobody speaks by the others."""
    with roce(*[RoceCard('lan', properties={'roce-v1-gids': 1})] * 2) as both:
        for guest in both.guests:
            expect('the index of IPv4', guest.card.gid_index() == 3, guest.card.gid_index())
            types = guest.run(f'cd /sys/class/infiniband/{guest.card.name}/ports/1/gid_attrs/types && cat 0 1 2 3').output
            expect('types', types.splitlines() == ['IB/RoCE v1', 'RoCE v2'] * 2, types)
        verbs.pingpong(both.a, both.b, '-n 50')
        verbs.pingpong(both.a, both.b, '-n 50', 'ud')
        cm.talk(both.a, both.b)
        peer = both.a.spawn(f'exec ibv_rc_pingpong -d {both.a.card.name} -g 3')
        peer.wait_output('local address')
        for service, said in (('rc', 'Failed to modify QP to RTR'), ('ud', 'Failed to create AH')):
            refused = both.b.run(f'ibv_{service}_pingpong -d {both.b.card.name} -g 2 {both.a.devices[0].address()}', check=False)
            expect(said, refused.status == 1 and said in refused.output, refused)
            if service == 'rc':
                peer.end()
                peer = both.a.spawn(f'exec ibv_ud_pingpong -d {both.a.card.name} -g 3')
                peer.wait_output('local address')
        peer.end()


def test_features_that_lie():
    lies.of_features(kept(roce))


# What differs from an InfiniBand card is the features.
@tap.only_long
@tap.seconds(600)
def test_limits_that_lie():
    lies.of_limits(kept(roce), lies.MANY)


if __name__ == '__main__':
    tap.main()
