#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A card that does not answer any more is given up and reset; programs are told, and then all works again."""
import time

from harness import pair, tap, verbs
from harness.guest import GuestError

CARD = f'card=$(basename $(readlink /sys/class/infiniband/{pair.DEVICE}/device))'
# Bits of the command register of PCI configuration space: answer to accesses, do DMA.
MEMORY, MASTER = 2, 4


def clear(guest, bits):
    guest.run(f'{CARD}; setpci -s $card COMMAND=0:{bits:x}')


def reset(guest):
    guest.run(f'{CARD}; echo 1 >/sys/bus/pci/devices/$card/reset')


def wait_log(guest, text, timeout=30):
    """Wait until the guest's kernel has said this."""
    deadline = time.monotonic() + timeout
    while text not in guest.kernel_log():
        if time.monotonic() > deadline:
            raise GuestError(f'{guest.name}: the kernel did not say {text!r}')
        time.sleep(0.1)


def recovers(both, *log):
    """The driver of guest a says this in its log, starts the card anew, and traffic flows."""
    for text in log:
        wait_log(both.a, text)
    both.wait_active()
    verbs.pingpong(both.a, both.b, '-n 50')
    verbs.pingpong(both.b, both.a, '-e -n 50')


def ask(guest):
    """A verb that is a command of the card."""
    return guest.run(f'ibv_devinfo -d {pair.DEVICE}', check=False)


def no_answer(bits):
    """Commands end by event, and the card cannot write events any more: a command must not wait for ever."""
    with pair.Pair() as both:
        both.a.run('modprobe -r rdma_hca; modprobe rdma_hca command_events=1')
        both.wait_active()
        reset(both.a)  # the state of the function that the driver keeps outlives it
        both.wait_active()
        watch = both.a.spawn(f'exec ibv_asyncwatch -d {pair.DEVICE}')
        watch.wait_output('async event')
        clear(both.a, bits)
        ask(both.a)
        watch.wait_output('IBV_EVENT_DEVICE_FATAL')
        watch.kill()
        recovers(both, 'no event for a command', 'restarting')


def test_no_answer():
    no_answer(MASTER)


def test_configuration_lost():
    no_answer(MASTER | MEMORY)


def test_reset_under_traffic():
    """Somebody resets the function while a program uses it: the program ends, others work afterwards."""
    with pair.Pair() as both:
        client, server = verbs.start(both.a, both.b, f'ibv_rc_pingpong -d {pair.DEVICE} -c -e -n 1000000')
        client.wait_output('remote address')
        reset(both.a)
        for command in (client, server):
            command.kill()
            command.wait(check=False)
        recovers(both)


def test_many_resets():
    with pair.Pair() as both:
        for _ in range(10):
            reset(both.a)
            both.wait_active()
        recovers(both)


def test_commands_by_event():
    """What the driver can do with commands that end by interrupt: the same."""
    with pair.Pair() as both:
        for guest in both.guests:
            guest.run('modprobe -r rdma_hca; modprobe rdma_hca command_events=1')
        both.wait_active()
        verbs.pingpong(both.a, both.b, '-e -n 100')
        for line in both.a.run('mr-stress 4 2000 1; command-rate 2000').output.splitlines():
            print(f'# {line}')


if __name__ == '__main__':
    tap.main()
