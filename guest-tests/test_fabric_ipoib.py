#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""IP over InfiniBand on two cards that a subnet manager has configured; what finds its peer by the addresses of these interfaces:
the example programs of librdmacm; and SRP, which finds it by the subnet manager."""
import functools
import ipaddress

from harness import apps, cm_programs, diags, fabric, faults, ipoib, resources, srp, storage, tap, wait
from harness.check import expect
from harness.labs import kept

pair = functools.partial(kept, fabric.pair)


def carries(both):
    """Echoes small and large, and data both ways, by the cards."""
    before = faults.counted(both)
    for client, server, version in (both.a, both.b, 4), (both.b, both.a, 6):
        ipoib.ping(client, server.card.address(version))
        ipoib.ping(client, server.card.address(version), '-s 20000')
        ipoib.carry(server, client, version)
    # Each datagram has no more than 64 KiB.
    apps.carried(both, before, 'port tx_packets', 8 << 20 >> 16)


def setting(guest, name):
    return guest.run(f'cat /sys/class/net/{guest.card.interface}/{name}').output.strip()


def test_datagram_mode():
    both = pair()
    for guest in both.guests:
        expect('datagrams of what the group takes', (setting(guest, 'mode'), setting(guest, 'mtu')) ==
               ('datagram', str(ipoib.DATAGRAM_MTU)), setting(guest, 'mode'), setting(guest, 'mtu'))
    carries(both)


def connections(guest):
    """Of the interface's: reliable ones."""
    return guest.run(f'rdma resource show qp link {guest.card.name}/1 type RC').output.count('[ib_ipoib]')


def test_connected_mode():
    both = pair()
    with ipoib.connected_mode(both):
        carries(both)
        ipoib.ping(both.a, both.b.card.address(), '-s 65000 -M do')
        expect('connections', all(connections(guest) for guest in both.guests), *map(connections, both.guests))
    carries(both)


def test_neighbours():
    """An interface's address is a QP and a GID; who has forgotten it asks all."""
    both = pair()
    for guest, other in (both.a, both.b), (both.b, both.a):
        gid = ipaddress.ip_address(fabric.port(other).gid).packed.hex(':')
        for version in (4, 6):
            address = other.card.address(version)
            ipoib.forget_neighbours(both)
            ipoib.ping(guest, address)
            output = guest.run(f'ip neighbour show {address} dev {guest.card.interface}').output
            expect('its GID', f':{gid} ' in output, output)


def test_groups():
    """All of a subnet, by both versions of IP."""
    both = pair()
    for guest in both.guests:
        guest.run('echo 0 >/proc/sys/net/ipv4/icmp_echo_ignore_broadcasts')
    for guest, other in (both.a, both.b), (both.b, both.a):
        on = f'-I {guest.card.interface}'
        for where, options in (('224.0.0.1', on), ('10.0.1.255', f'-b {on}')):
            ipoib.ping_all(guest, where, [other.card.address()], options)
        link_local = other.run(f'ip -6 -o address show dev {other.card.interface} scope link').output.split()[3].split('/')[0]
        ipoib.ping_all(guest, 'ff02::1', [link_local], f'-6 {on}')


def test_multicast():
    """The manager knows the group as long as it has a member."""
    both = pair()
    for receiver, sender, group, mgid in ((both.a, both.b, '239.2.3.4', 'ff12:401b:ffff::f02:304'),
                                          (both.b, both.a, '239.130.2.3', 'ff12:401b:ffff::f82:203')):
        member = receiver.spawn(f'exec socat -u UDP4-RECV:9,ip-add-membership={group}:{receiver.card.address()} -')
        wait.until(lambda: mgid in diags.records(both.a, '-g')[1], f'known: {mgid}')
        member.end()
        wait.until(lambda: mgid not in diags.records(both.a, '-g')[1], f'gone: {mgid}')
        ipoib.multicast(receiver, sender, group)


def test_interface_down_and_up():
    both = pair()
    name = both.b.card.interface
    both.b.run(f'ip link set {name} down')
    both.b.card.configure()
    both.wait_active()
    carries(both)


def test_unloaded():
    """Without IPoIB nothing of it is in use; with it again all is as before."""
    both = pair()
    with resources.given_back(both):
        for guest in both.guests:
            guest.run('modprobe -r ib_ipoib')
            output = guest.run('rdma resource show').output + guest.run('rdma resource show qp').output
            expect('nothing', '[ib_ipoib]' not in output, output)
        for guest in both.guests:
            guest.card.configure()
        both.wait_active()
        carries(both)


def test_rping():
    cm_programs.rping(pair())


def test_connections_in_turn():
    cm_programs.connections_in_turn(pair())


def test_connections_at_once():
    cm_programs.connections_at_once(pair())


def test_connection_rate():
    cm_programs.connection_rate(pair())


def test_simple_programs():
    cm_programs.simple(pair())


def test_streams():
    cm_programs.streams(pair())


def test_datagram_streams():
    cm_programs.datagram_streams(pair())


def test_file_copy():
    cm_programs.file_copy(pair())


def test_groups_of_programs():
    both = pair()
    cm_programs.multicast(both.a, both.b, '239.1.2.3')
    cm_programs.multicast(both.b, both.a, '239.130.2.3')
    cm_programs.multicast(both.b, both.a, 'ff15::1:2', 6)


@tap.seconds(1800 if tap.LONG else 300)
def test_srp():
    both = pair()
    srp.serve(both.a, both.b)
    before = faults.counted(both)
    with srp.logged_in(both.b) as disk:
        storage.write(both.b, disk)
    with srp.logged_in(both.b) as disk:
        storage.verify(both.b, disk)
    apps.carried(both, before, 'port tx_packets', 1000)
    # CQs the RDMA core keeps.
    for guest in both.guests:
        wait.until(lambda: 'ib_srp' not in guest.run('rdma resource show qp').output, f'gone: {guest.name}: connections of SRP')


if __name__ == '__main__':
    tap.main()
