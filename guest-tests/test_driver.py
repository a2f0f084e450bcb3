#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver comes and goes; and what tools show of it."""
import json

from harness import events, lies, tap, verbs
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
    with events.watched(both.a):
        result = both.a.run('modprobe -r rdma_hca', check=False)
        if result.status != 0 and 'in use' not in result.output:
            raise GuestError(str(result))
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


def test_interface_without_a_manager():
    """IP over InfiniBand waits for a subnet manager: until then its interface has no carrier."""
    guest = kept(infiniband).a
    carrier = guest.run('modprobe ib_ipoib && ip link set ib0 up && cat /sys/class/net/ib0/carrier').output
    guest.run('ip link set ib0 down; modprobe -r ib_ipoib', check=False)  # it may be part of the kernel
    if carrier.strip() != '0':
        raise GuestError(carrier)


def test_ibstat():
    """What kind of card it is."""
    guest = kept(infiniband).a
    guest.run('modprobe ib_umad')
    output = guest.run(f'ibstat {guest.card.name}').output
    for line in 'CA type: rdma_hca', 'Number of ports: 1', 'Hardware version: 1', 'State: Active', 'Link layer: InfiniBand':
        if line not in output:
            raise GuestError(f'ibstat does not say "{line}":\n{output}')
    guest.run(f'grep -Ex "[0-9a-f]{{16}}" /sys/class/infiniband/{guest.card.name}/board_id')


def shown(guest, kind, options):
    """The objects of a kind, as `rdma resource` tells of them."""
    return json.loads(guest.run(f'rdma -j {options} resource show {kind}').output)


def test_resources():
    """What a program has in use: what the driver knows of it, and its contexts as the card has them."""
    guest = kept(infiniband).a
    server = guest.spawn(f'exec ibv_rc_pingpong -d {guest.card.name} -r 100')
    server.wait_output('local address')
    qp, cq, mr = [[each for each in shown(guest, kind, '-dd') if 'pid' in each][0] for kind in ('qp', 'cq', 'mr')]
    for each, wanted in (qp, {'rq_entries': 128, 'sq_entries': 1}), (cq, {'entries': 128}), (mr, {'translations': 1}):
        if any(each.get(f'drv_{name}') != value for name, value in wanted.items()):
            raise GuestError(f'{wanted}, but {each}')
    for kind, number, offset, size in (('qp', qp['lqpn'], 0x14, 256), ('cq', cq['drv_cqn'], 0x2c, 64), ('mr', mr['drv_key'], 0x08, 64)):
        contexts = [bytes(raw['data']) for raw in shown(guest, kind, '-r')]
        if not any(len(context) == size and number == int.from_bytes(context[offset:offset + 4], 'big') for context in contexts):
            raise GuestError(f'no context of {kind} {number:#x}: {contexts}')
    server.end()


@tap.seconds(300)
def test_limits_that_lie():
    lies.of_limits(kept(infiniband), lies.MANY if tap.LONG else (0, 255))


def test_features_that_lie():
    lies.of_features(kept(infiniband))


def test_counters_that_lie():
    lies.of_counters(kept(infiniband))


if __name__ == '__main__':
    tap.main()
