#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Two things befall a card: one behind the other, in either order, and both at once. Whichever they are, it works afterwards, as it
does in the end of each; kernels with checkers (make check-debug) see more of what happens on the way."""
import itertools

from harness import checkers, pci, power, tap, verbs
from harness.labs import kept, slots

# What a guest does to its card, whose address is $card. Each may find that the other has been quicker.
SCRIPTS = {
    'fail': 'setpci -s $card COMMAND=0:4',
    'flr': 'echo 1 >/sys/bus/pci/devices/$card/reset',
    'reload': 'devlink dev reload pci/$card',
    'recover': 'devlink health recover pci/$card reporter card',
    'sleep': 'cd /sys; echo 0 >module/suspend/parameters/pm_test_delay && echo devices >power/pm_test && echo mem >power/state',
    # A probe fails with its card, and is not tried again but by who binds.
    'unbind': 'cd /sys/bus/pci; echo $card >drivers/rdma_hca/unbind || exit; '
              'while [ -e devices/$card ] && ! [ -e drivers/rdma_hca/$card ]; do echo $card >drivers/rdma_hca/bind; sleep 0.1; done',
}
EVENTS = [*SCRIPTS, 'aer', 'unplug']


def begin(card, event, address):
    """Its command in the guest, if it is one."""
    if event == 'aer':
        pci.bus_error(card, 'COMP_ABORT')
    elif event == 'unplug':
        pci.unplug(card)
    else:
        return card.guest.spawn(f'card={address}; {SCRIPTS[event]}')
    return None


def befall(card, address, *events, check=False):
    """All of them at once; a card that was unplugged is plugged in again. check: none finds that it comes too late."""
    wakings = power.wakings(card.guest)
    commands = {event: begin(card, event, address) for event in events}
    if 'sleep' in events:
        power.awake(card.guest, commands['sleep'], wakings, 120, check)
    for command in filter(None, commands.values()):
        command.wait(120, check)
    if 'unplug' in events:
        pci.plug(card)


def works(both):
    both.wait_active()
    verbs.pingpong(both.a, both.b, '-n 20')
    both.check()


def in_turn(*steps, check=False):
    """steps: the events that are at once, of each step."""
    both = kept(slots)
    card = both.a.card
    address = pci.address(card)
    print(f'# {" then ".join(" and ".join(events) for events in steps)}', flush=True)
    for events in steps:
        befall(card, address, *events, check=check)
    works(both)


def test_alone():
    """Each comes to its end as it should."""
    for event in EVENTS:
        in_turn([event], check=True)


@tap.seconds(600)
def test_at_once():
    for events in itertools.combinations(EVENTS, 2):
        in_turn(events)


@tap.seconds(1200)
def test_one_behind_the_other():
    if not tap.LONG and checkers.missing():
        raise tap.Skip('make check-debug, or check-long')
    for first, second in itertools.permutations(EVENTS, 2):
        in_turn([first], [second])


if __name__ == '__main__':
    tap.main()
