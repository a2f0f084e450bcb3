#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine with a card is written to a file while its card works, and goes on in another QEMU: connections with more patience
than that takes find nothing lost, and nothing twice; and the driver finds its card as it was. In the long form 20 times."""
from harness import captures, links, moving, quota, resources, tap, verbs, wait
from harness.check import expect
from harness.devices import Nic, RoceCard
from harness.lab import Lab, Machine
from harness.labs import infiniband, roce

MOVES = 20 if tap.LONG else 2
STARTING, RUNNING = 60, 10  # percent of a processor, for all programs of a guest
PATIENT = '-u 18 -F -D 600'  # 1 s, and 7 times again


def traffic(both):
    """Of each operation, one way and the other. In the short form two go this way, and two that way."""
    programs = (f'ib_write_bw {PATIENT} -s 65536', f'ib_read_bw {PATIENT} -s 4096', f'ib_send_bw {PATIENT} -s 1000', f'ib_atomic_bw {PATIENT}')
    ways = ((both.a, both.b), (both.b, both.a))
    chosen = [(way, program) for number, program in enumerate(programs) for way in (ways if tap.LONG else [ways[number // 2]])]
    running = [command for way, program in chosen for command in verbs.start(*way, program, percent=STARTING)]
    for guest in both.guests:
        quota.lower(guest, STARTING, RUNNING)
    return running


def sent(guest):
    return resources.counters(guest, 'cumulative')['requester packets_sent']


def went_further(both, running):
    """The moved machine's card sends, and so does its peer's; all programs run."""
    for guest in both.guests:
        before = sent(guest)

        def has_sent():
            verbs.going_on(running)
            return sent(guest) > before + 100

        wait.until(has_sent, lambda: f'sending: {guest.name}: ' + '\n'.join(command.output for command in running))


def live(guest):
    moving.migrate(guest)


def multifd(guest):
    moving.migrate(guest, 'multifd')


def postcopy(guest):
    """Its memory comes when it is asked for, by the card, too."""
    memory = moving.migrate(guest, 'postcopy-ram')
    expect('memory that was asked for', memory['postcopy-requests'] > 0, memory)


def check_traffic(make_lab, move, movers, **options):
    """movers: numbers of the guests that move; options: of the machines."""
    with make_lab(**options) as both:
        before = [resources.in_use(guest) for guest in both.guests]
        running = traffic(both)
        went_further(both, running)
        for _ in range(MOVES):
            for number in movers:
                move(both.guests[number])
            went_further(both, running)
        for guest in both.guests:
            quota.lift(guest, STARTING)
        for command in running:
            command.end()
        for guest, was in zip(both.guests, before):
            resources.wait_for(guest, was)
        verbs.pingpong(both.a, both.b, '-n 50')
        for guest in both.guests:
            log = guest.run('dmesg').output
            expect('no interrupt lost', 'was lost' not in log, log[-2000:])


def test_infiniband_by_file():
    check_traffic(infiniband, moving.by_file, (0, 1))


def test_roce_by_file():
    check_traffic(roce, moving.by_file, (0, 1))


def test_infiniband_live():
    """The end that connects: the other's address is taken while it is in two QEMUs."""
    check_traffic(infiniband, live, (1,))


def test_roce_live():
    check_traffic(roce, multifd, (1,))


def test_infiniband_postcopy():
    """Linux tells of pages that are not there yet where memory is no file: these guests boot."""
    check_traffic(infiniband, postcopy, (1,), boots=True)


def test_idle():
    """Nothing runs: what the driver has of its card is there, addresses and counters, too."""
    with roce() as both:
        verbs.pingpong(both.a, both.b, '-n 50')
        before = sent(both.a), both.a.run('ibv_devinfo -v; ip -br addr').output
        moving.by_file(both.a)
        both.wait_active()
        after = sent(both.a), both.a.run('ibv_devinfo -v; ip -br addr').output
        expect('the same card', before == after, before, after)
        verbs.pingpong(both.a, both.b, '-n 50')


def announced(both, mover, other):
    moving.by_file(mover)
    verbs.pingpong(both.a, both.b, '-n 50')
    wait.until(lambda: mover.card.mac in captures.fields(other.card.captured, 'eth.src', 'arp.opcode == 3'), 'announced')


def test_announced():
    """On a segment bridges are told where the card is now: by RARP, with the address of its interface, as QEMU has it."""
    with roce(RoceCard('lan'), RoceCard('lan', capture=True)) as both:
        announced(both, both.a, both.b)


def test_announced_by_cable():
    """By the card itself, where it has a netdev at the other end of its cable."""
    machines = [Machine(Nic('net'), RoceCard('lan', capture=capture)) for capture in (True, False)]
    with Lab(machines, {'net': links.stream(), 'lan': links.cable_to_netdev()}) as both:
        announced(both, both.b, both.a)


def test_snapshots():
    """A machine goes back to what it was twice. Its peer has gone on, and they connect again."""
    with infiniband() as both:
        snapshots = moving.Snapshots(both.a)
        verbs.pingpong(both.a, both.b, '-n 50')
        snapshots.save('before')
        before = sent(both.a), both.a.run('ibv_devinfo -v').output
        for _ in range(2):
            verbs.pingpong(both.a, both.b, '-n 50')
            snapshots.load('before')
            both.wait_active()
            after = sent(both.a), both.a.run('ibv_devinfo -v').output
            expect('as it was', before == after, before, after)
        verbs.pingpong(both.a, both.b, '-n 50')


if __name__ == '__main__':
    tap.main()
