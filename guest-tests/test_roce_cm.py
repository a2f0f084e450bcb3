#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The connection manager on two of our cards: the example programs of librdmacm.

All but one: udpong (datagrams by rsockets) addresses its peer without a GRH, which RoCE does not have; it fails with
Soft-RoCE in the same way. The kernel's connection manager has no groups of RoCEv2 by IPv6 (mckey).
"""
from harness import cm, tap, verbs
from harness.labs import kept, roce


def each_way():
    """Both versions of IP, with a server in either guest."""
    both = kept(roce)
    return (both.a, both.b, 4), (both.b, both.a, 6)


def run(program, listening='-b {server}', connecting='-s {server}'):
    for server, client, version in each_way():
        cm.connected(server, client, program, listening, connecting, version)


def test_rping():
    """It looks at what it received."""
    run('rping -V -C 10 -S 4096', '-s -a {server}', '-c -a {server}')
    run('rping -V -C 10 -q', '-s -a {server}', '-c -a {server}')


def test_connections_in_turn():
    both = kept(roce)
    server = cm.listen(both.a, 'rping -s -P')
    for _ in range(5):
        both.b.run(f'exec rping -c -V -C 3 -a {both.a.card.address()}')
    server.kill()
    server.wait(check=False)


def test_connections_at_once():
    run('ucmatose -c 4 -C 5 -S 1000')
    # With the connections' identifiers moved to another channel of events.
    run('ucmatose -c 2 -C 5 -S 100000 -m')
    run('udaddy -c 4 -C 5 -S 1000')


def test_connection_rate():
    both = kept(roce)
    port = verbs.new_port()
    server = cm.listen(both.a, f'cmtime -c 20 -p {port} -b {both.a.card.address()}')
    # It is told by TCP how far its client is.
    verbs.wait_listening(server, port)
    both.b.run(f'exec cmtime -c 20 -p {port} -s {both.a.card.address()}')
    server.wait()


def test_simple_programs():
    for server, client, version in each_way():
        cm.connected(server, client, 'rdma_server', '-s {server}', '-s {server}', version, client_program='rdma_client')
    both = kept(roce)
    # The server listens on any IPv4 address, and on no other. The second time by XRC.
    for kind in 'rx':
        cm.connected(both.a, both.b, 'rdma_xserver', f'-c {kind}', f'-c {kind} -s {{server}}', client_program='rdma_xclient')


def test_streams():
    """By rsockets, which look at what they received; by calls that block, and that do not."""
    for program in ('rstream', 'riostream'):
        for way in ('b', 'n'):
            run(f'{program} -T {way} -T v -S 100000 -C 10')


def test_file_copy():
    # What follows the first colon of its argument is a name of a file: there is no IPv6 address.
    both = kept(roce)
    server = cm.listen(both.a, 'rcopy')
    both.b.run(f'exec rcopy /usr/bin/busybox {both.a.card.address()}:/tmp/copy')
    server.kill()
    server.wait(check=False)
    both.a.run('cmp /usr/bin/busybox /tmp/copy')


def test_multicast():
    """Each member of a group has every message: one that does not would wait for ever."""
    both = kept(roce)
    for receiver, sender, group in ((both.a, both.b, '239.1.2.3'), (both.b, both.a, '239.130.2.3')):
        options = f'-m {group} -C 10 -S 1000'
        receiving = receiver.spawn(f'exec mckey {options} -c 2 -b {receiver.card.address()}')
        receiving.wait_output('(joined.*\n.*){2}')
        sender.run(f'exec mckey -s {options} -c 1 -b {sender.card.address()}')
        receiving.wait()


if __name__ == '__main__':
    tap.main()
