#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver comes and goes."""
from harness import tap, verbs
from harness.guest import GuestError
from harness.labs import infiniband, kept


def test_bound_by_its_alias():
    # Nothing in the guest names the driver: it is loaded for the PCI identity of the card.
    for guest in kept(infiniband).guests:
        guest.run('ls -d /sys/bus/pci/drivers/rdma_hca/0000:*')
        guest.run(f'modprobe -R $(cat /sys/class/infiniband/{guest.card.name}/device/modalias) | grep -x rdma_hca')


@tap.seconds(300)
def test_reload():
    both = kept(infiniband)
    for _ in range(4):
        for guest in both.guests:
            guest.run('modprobe -r rdma_hca')
            guest.run('! ls -d /sys/class/infiniband/*')
        for guest in both.guests:
            guest.run('modprobe rdma_hca')
        both.wait_active()
        verbs.pingpong(both.a, both.b, '-e -n 50')


def test_reload_of_one_side():
    both = kept(infiniband)
    for guest in both.guests:
        guest.run('modprobe -r rdma_hca && modprobe rdma_hca')
        both.wait_active()
        verbs.pingpong(both.a, both.b, '-n 50')


def test_unload_under_a_program():
    """The driver goes away under a program that has the device open; the program ends, and all is well afterwards."""
    both = kept(infiniband)
    watch = both.a.spawn(f'exec ibv_asyncwatch -d {both.a.card.name}')
    watch.wait_output('async event')
    result = both.a.run('modprobe -r rdma_hca', check=False)
    if result.status != 0 and 'in use' not in result.output:
        raise GuestError(str(result))
    watch.kill()
    watch.wait(check=False)
    both.a.run('modprobe -r rdma_hca; modprobe rdma_hca')
    both.wait_active()
    verbs.pingpong(both.a, both.b, '-n 50')


def test_unbind_and_bind():
    both = kept(infiniband)
    both.a.run('cd /sys/bus/pci/drivers/rdma_hca; card=$(ls -d 0000:*); echo $card >unbind; echo $card >bind')
    both.wait_active()
    verbs.pingpong(both.a, both.b, '-n 50')


def test_function_level_reset():
    """A function level reset while no driver is bound leaves a card that a driver can start."""
    both = kept(infiniband)
    both.a.run('cd /sys/bus/pci/drivers/rdma_hca; card=$(ls -d 0000:*); echo $card >unbind; '
               'echo 1 >/sys/bus/pci/devices/$card/reset; echo $card >bind')
    both.wait_active()
    verbs.pingpong(both.a, both.b, '-n 50')


if __name__ == '__main__':
    tap.main()
