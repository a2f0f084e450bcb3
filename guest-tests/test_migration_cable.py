#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine moves while its card works, and the other end of the cable sees a pause: no port goes down, nothing is lost, and
nothing comes twice (traffic-test compares all data). In the long form 20 times each."""
import re

from harness import faults, links, moving, resources, tap, verbs, wait
from harness.check import expect
from harness.devices import InfinibandCard, Nic, RoceCard
from harness.lab import Lab, Machine
from harness.links import stream

MOVES = 20 if tap.LONG else 2
LOSS = faults.loss(0.01)
# However slow this machine is.
PATIENT = {'move-limit-ms': 600000}
SOCKET = {'shared_memory': 'off'}


def pair(card, cable):
    machine = Machine(Nic('net'), card, boots=True)
    return Lab([machine, machine], {'net': stream(), 'cable': cable})


def infiniband(cable):
    return pair(InfinibandCard('cable', properties=PATIENT), cable)


def roce(cable):
    return pair(RoceCard('cable', properties=PATIENT), cable)


def by_file(guest):
    moving.resume(guest, moving.suspend(guest))


def live(guest):
    moving.migrate(guest)


def downs(guest):
    """How often the port has gone down, as Linux has seen it."""
    if isinstance(guest.card, RoceCard):
        return guest.run(f'cat /sys/class/net/{guest.card.interface}/carrier_changes').output
    return guest.run(f'cat /sys/class/infiniband/{guest.card.name}/ports/1/counters/link_downed').output


def seen(guest):
    """What a guest can see of a cable that was not there for a while."""
    counters = resources.counters(guest, 'cumulative')
    return downs(guest), counters['link moves_lost'], counters['link tx_discarded']


def traffic(both, programs=2):
    return [command for _ in range(programs) for command in verbs.start(both.a, both.b, 'traffic-test', percent=15)]


def rounds(commands):
    return [len(command.output.splitlines()) for command in commands]


def went_further(commands):
    """All have said since that they have done something."""
    before = rounds(commands)

    def all_have():
        for command in commands:
            expect(f'going on: {command.script}', command.running, command.output)
        return all(now > was for now, was in zip(rounds(commands), before))

    wait.until(all_have, lambda: '\n'.join(command.output for command in commands))


def end(both, commands):
    """What they have seen, from end to end."""
    for guest in both.guests:
        guest.run('killall traffic-test')
    for command in commands:
        output = command.wait().output
        print(f'# {command.guest.name}: {output.splitlines()[-1]}')
        expect('ended', re.search(r'ended: [1-9]', output), output)


def check(make, cable, moves, plan=()):
    """moves: of guest a, and of guest b; how they go."""
    with make(cable) as both:
        commands = traffic(both)
        went_further(commands)
        before = [seen(guest) for guest in both.guests]
        with faults.planned(both.guests, plan):
            for number in range(MOVES):
                guest = both.guests[number % 2]
                moves[number % 2](guest)
                went_further(commands)
        expect('unseen', [seen(guest) for guest in both.guests] == before, before, *[seen(guest) for guest in both.guests])
        for guest in both.guests:
            expect('moves', resources.counters(guest, 'cumulative')['link moves'] == MOVES)
        end(both, commands)


def test_infiniband_memory():
    check(infiniband, links.turned_cable(), (by_file, live))


def test_infiniband_socket():
    check(infiniband, links.unix_cable(**SOCKET), (by_file, live))


def test_infiniband_loss():
    check(infiniband, links.turned_cable(**SOCKET), (by_file, live), LOSS)


def test_roce_memory():
    check(roce, links.unix_cable(), (by_file, live))


def test_roce_socket():
    check(roce, links.turned_cable(**SOCKET), (by_file, live))


def test_roce_loss():
    check(roce, links.unix_cable(), (by_file, live), LOSS)


def test_tcp():
    check(infiniband, links.tcp_cable(), (by_file, live))


if __name__ == '__main__':
    tap.main()
