#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Two things befall a card: one behind the other, in either order, and both at once. Whichever they are, it works afterwards, as it
does in the end of each; kernels with checkers (make check-debug) see more of what happens on the way."""
import itertools

from harness import checkers, links, pci, tap, verbs
from harness.devices import InfinibandCard, Nic
from harness.lab import Lab, Machine
from harness.labs import kept

# What a guest does to its card, whose address is $card. Each may find that the other has been quicker.
SCRIPTS = {
    'fail': 'setpci -s $card COMMAND=0:4',
    'flr': 'echo 1 >/sys/bus/pci/devices/$card/reset',
    'reload': 'devlink dev reload pci/$card',
    'recover': 'devlink health recover pci/$card reporter card',
    'sleep': 'cd /sys; echo 0 >module/suspend/parameters/pm_test_delay; echo devices >power/pm_test; echo mem >power/state',
    'unbind': 'cd /sys/bus/pci/drivers/rdma_hca; echo $card >unbind; echo $card >bind',
}
EVENTS = [*SCRIPTS, 'aer', 'unplug']


def slots():
    machine = Machine(Nic('net'), InfinibandCard('cable', slotted=True), machine=pci.NATIVE)
    return Lab([machine, machine], {'net': links.stream(), 'cable': links.unix_cable()})


def begin(card, event, address):
    """Its command in the guest, if it is one."""
    if event == 'aer':
        pci.bus_error(card, 'COMP_ABORT')
    elif event == 'unplug':
        pci.unplug(card)
    else:
        return card.guest.spawn(f'card={address}; {SCRIPTS[event]}')
    return None


def end(card, events, command):
    if command:
        command.wait(120, check=False)
    if 'unplug' in events:
        pci.plug(card)


def works(both):
    both.wait_active()
    verbs.pingpong(both.a, both.b, '-n 20')
    both.check()


def pair(first, second, at_once):
    both = kept(slots)
    card = both.a.card
    address = pci.address(card)
    print(f'# {first} {"and" if at_once else "then"} {second}', flush=True)
    commands = []
    for event in first, second:
        commands.append(begin(card, event, address))
        if not at_once:
            end(card, [event], commands.pop())
    for command in commands:
        end(card, [], command)
    if at_once:
        end(card, [first, second], None)
    works(both)


@tap.seconds(600)
def test_at_once():
    for first, second in itertools.combinations(EVENTS, 2):
        pair(first, second, True)


@tap.seconds(1200)
def test_one_behind_the_other():
    if not tap.LONG and checkers.missing():
        raise tap.Skip('make check-debug, or check-long')
    for first, second in itertools.permutations(EVENTS, 2):
        pair(first, second, False)


if __name__ == '__main__':
    tap.main()
