# SPDX-License-Identifier: GPL-2.0-or-later
"""The example programs of librdmacm between two guests, whichever link layer their cards have."""
from . import cm, verbs


def each_way(both):
    """Both versions of IP, with a server in either guest."""
    return (both.a, both.b, 4), (both.b, both.a, 6)


def run(both, program, listening='-b {server}', connecting='-s {server}'):
    for server, client, version in each_way(both):
        cm.connected(server, client, program, listening, connecting, version)


def rping(both):
    """It looks at what it received."""
    run(both, 'rping -V -C 10 -S 4096', '-s -a {server}', '-c -a {server}')
    run(both, 'rping -V -C 10 -q', '-s -a {server}', '-c -a {server}')


def connections_in_turn(both):
    server = cm.listen(both.a, 'rping -s -P')
    for _ in range(5):
        both.b.run(f'exec rping -c -V -C 3 -a {both.a.card.address()}')
    server.end()


def connections_at_once(both):
    run(both, 'ucmatose -c 4 -C 5 -S 1000')
    # With the connections' identifiers moved to another channel of events.
    run(both, 'ucmatose -c 2 -C 5 -S 100000 -m')
    run(both, 'udaddy -c 4 -C 5 -S 1000')


def connection_rate(both):
    port = verbs.new_port()
    server = cm.listen(both.a, f'cmtime -c 20 -p {port} -b {both.a.card.address()}')
    # It is told by TCP how far its client is.
    verbs.wait_listening(server, port)
    both.b.run(f'exec cmtime -c 20 -p {port} -s {both.a.card.address()}')
    server.wait()


def simple(both):
    for server, client, version in each_way(both):
        cm.connected(server, client, 'rdma_server', '-s {server}', '-s {server}', version, client_program='rdma_client')
    # The server listens on any IPv4 address, and on no other. The second time by XRC.
    for kind in 'rx':
        cm.connected(both.a, both.b, 'rdma_xserver', f'-c {kind}', f'-c {kind} -s {{server}}', client_program='rdma_xclient')


def streams(both):
    """By rsockets, which look at what they received; by calls that block, and that do not."""
    for program in ('rstream', 'riostream'):
        for way in ('b', 'n'):
            run(both, f'{program} -T {way} -T v -S 100000 -C 10')


def datagram_streams(both):
    """By rsockets that are no connections. The server goes on to serve; it listens by UDP for who begins."""
    for way in ('b', 'n', 'e'):
        port = verbs.new_port()
        options = f'-T {way} -S 1000 -C 10 -p {port}'
        server = both.a.spawn(f'exec udpong {options} -b {both.a.card.address()}')
        verbs.wait_server(server, lambda: both.a.run(f'grep -i ":{port:04x} " /proc/net/udp', check=False).status == 0)
        both.b.run(f'exec udpong {options} -s {both.a.card.address()}')
        server.end()


def file_copy(both):
    # What follows the first colon of its argument is a name of a file: there is no IPv6 address.
    server = cm.listen(both.a, 'rcopy')
    both.b.run(f'exec rcopy /usr/bin/busybox {both.a.card.address()}:/tmp/copy')
    server.end()
    both.a.run('cmp /usr/bin/busybox /tmp/copy && rm /tmp/copy')


def multicast(receiver, sender, group, version=4):
    """Each member of a group has every message: one that does not would wait for ever."""
    options = f'-m {group} -C 10 -S 1000'
    receiving = receiver.spawn(f'exec mckey {options} -c 2 -b {receiver.card.address(version)}')
    receiving.wait_output('(joined.*\n.*){2}')
    sender.run(f'exec mckey -s {options} -c 1 -b {sender.card.address(version)}')
    receiving.wait()
