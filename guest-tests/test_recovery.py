#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A card that does not answer any more is given up and reset; programs are told, and then all works again."""
from harness import pci, tap, verbs, wait
from harness.labs import infiniband


def recovers(both, *log):
    """The driver of guest a says this in its log, starts the card anew, and traffic flows."""
    for text in log:
        wait.until(lambda: text in both.a.kernel_log(), f'in the log of {both.a.name}: {text}')
    both.wait_active()
    verbs.pingpong(both.a, both.b, '-n 50')
    verbs.pingpong(both.b, both.a, '-e -n 50')


def ask(guest):
    """A verb that is a command of the card."""
    return guest.run(f'ibv_devinfo -d {guest.card.name}', check=False)


def no_answer(bits):
    """Commands end by event, and the card cannot write events any more: a command must not wait for ever."""
    with infiniband() as both:
        both.a.run('modprobe -r rdma_hca; modprobe rdma_hca command_events=1')
        both.wait_active()
        pci.reset(both.a.card)  # the state of the function that the driver keeps outlives it
        both.wait_active()
        watch = both.a.spawn(f'exec ibv_asyncwatch -d {both.a.card.name}')
        watch.wait_output('async event')
        pci.clear(both.a.card, bits)
        ask(both.a)
        watch.wait_output('IBV_EVENT_DEVICE_FATAL')
        watch.kill()
        recovers(both, 'no event for a command', 'restarting')


def test_no_answer():
    no_answer(pci.MASTER)


def test_configuration_lost():
    no_answer(pci.MASTER | pci.MEMORY)


def test_reset_under_traffic():
    """Somebody resets the function while a program uses it: the program ends, others work afterwards."""
    with infiniband() as both:
        client, server = verbs.start(both.a, both.b, 'ibv_rc_pingpong -c -e -n 1000000')
        client.wait_output('remote address')
        pci.reset(both.a.card)
        for command in (client, server):
            command.kill()
            command.wait(check=False)
        recovers(both)


def test_many_resets():
    with infiniband() as both:
        for _ in range(10):
            pci.reset(both.a.card)
            both.wait_active()
        recovers(both)


def test_commands_by_event():
    """What the driver can do with commands that end by interrupt: the same."""
    with infiniband() as both:
        for guest in both.guests:
            guest.run('modprobe -r rdma_hca; modprobe rdma_hca command_events=1')
        both.wait_active()
        verbs.pingpong(both.a, both.b, '-e -n 100')
        for line in both.a.run('mr-stress 4 2000 1; command-rate 2000').output.splitlines():
            print(f'# {line}')


if __name__ == '__main__':
    tap.main()
