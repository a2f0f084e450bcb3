#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Other machines than the usual: of four processors, and on two hosts, which are network namespaces here."""
from harness import hosts, links, tap, verbs
from harness.check import expect
from harness.devices import InfinibandCard, Nic, RoceCard
from harness.lab import Lab, Machine
from harness.labs import infiniband, roce

CPUS = 4


def interrupted(guest):
    """The processors that the card has interrupted."""
    lines = [line.split()[1:CPUS + 1] for line in guest.run('grep rdma_hca /proc/interrupts').output.splitlines()]
    return {cpu for line in lines for cpu, count in enumerate(line) if int(count)}


def four_processors(make):
    """As many ping-pongs with events as processors, with checked data, and several of them have interrupts; then many queue pairs."""
    with make(cpus=CPUS, memory=768) as both:
        expect('processors', all(guest.run('nproc').output.strip() == str(CPUS) for guest in both.guests))
        commands = []
        for _ in range(CPUS):
            commands += verbs.start(both.a, both.b, 'ibv_rc_pingpong -c -e -n 100')
        for output in verbs.finish(commands, 120):
            expect('data', 'invalid data' not in output, output)
        for guest in both.guests:
            expect('interrupts', len(interrupted(guest)) > 1, guest.run('grep rdma_hca /proc/interrupts').output)
        verbs.bandwidth(both.a, both.b, 'ib_write_bw', 8192, 50, '-q 8 -b')


def test_four_processors_infiniband():
    four_processors(infiniband)


def test_four_processors_roce():
    four_processors(roce)


def on_two_hosts(link, card):
    machines = [Machine(Nic('net'), card, launch=link.launch(number), boots=False) for number in range(2)]
    return Lab(machines, {'net': links.stream(), card.link: link})


def pass_traffic(both):
    verbs.pingpong(both.a, both.b, '-c -n 100')
    for program in ('ib_write_bw', 'ib_read_bw'):
        verbs.bandwidth(both.a, both.b, program, 65536, 50)


def test_hosts_infiniband():
    """A cable over TCP between two hosts. When the network between them is away under traffic the cards wait, and go on when TCP
    does, which may take it longer than the half second for which QPs wait that were not told otherwise."""
    link = hosts.cable()
    with on_two_hosts(link, InfinibandCard('cable')) as both:
        pass_traffic(both)
        commands = verbs.start(both.a, both.b, 'ib_write_bw -F -s 4096 -D 6 -u 19')
        both.a.run('sleep 2')
        link.cut(True)
        both.a.run('sleep 1')
        link.cut(False)
        verbs.finish(commands, 120)
        both.wait_active()
        pass_traffic(both)


@tap.only_long
def test_hosts_roce_cable():
    with on_two_hosts(hosts.cable(), RoceCard('lan')) as both:
        pass_traffic(both)


def test_hosts_roce_netdev():
    with on_two_hosts(hosts.segment(), RoceCard('lan')) as both:
        pass_traffic(both)


if __name__ == '__main__':
    tap.main()
