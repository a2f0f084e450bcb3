#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines whose IOMMU translates the cards' DMA: the verbs programs, translation switched on and off again, traffic while
memory comes and goes, and a card that is handed to a user-space driver (programs/vfio-test.c)."""
import os
import subprocess

from harness import ethernet, links, log, moving, paths, pci, resources, tap, traffic, verbs
from harness.devices import InfinibandCard, Nic, RoceCard
from harness.guest import GuestError
from harness.lab import Lab, Machine
from harness.labs import kept

# How the kernel begins to tell of an access that the IOMMU has refused.
REFUSED = 'DMAR: \\[DMA '
# Those that need no more than a program's own memory.
VERBS = ('chain', 'datagrams', 'datagrams_grh', 'resize_cq', 'resize_cq_busy', 'threads', 'reset', 'access_error',
         'cq_overrun', 'sq_drained', 'comm_established', 'rereg', 'rereg_remapped', 'forked')
LIMITS = 'all_qps', 'all_translations', 'all_contexts'


class OnOtherBus(InfinibandCard):
    """On a bus that is translated where that of all others is not."""

    def arguments(self):
        return ['-device', 'pxb-pcie,id=other,bus_nr=64', '-device', 'pcie-root-port,id=translated,bus=other,chassis=1',
                *super().arguments()]


def machines(card, arguments, append):
    """Two processors: what is unmapped by one is used by the other, and by the card."""
    machine = Machine(Nic('net'), card, arguments=arguments, append=f'iommu.strict=1 {append}', cpus=2)
    return Lab([machine, machine], {'net': links.stream(), 'cable': links.unix_cable()})


def intel(append='intel_iommu=on'):
    """A card behind an IOMMU has no thread that could poll."""
    return machines(InfinibandCard('cable', polling=False), ['-device', 'intel-iommu'], append)


def intel_roce():
    return machines(RoceCard('cable', polling=False), ['-device', 'intel-iommu'], 'intel_iommu=on')


def virtio():
    """Before the driver of a virtio-iommu is loaded, Linux uses no device behind it, and the driver is on a disk."""
    card = OnOtherBus('cable', {'bus': 'translated'}, polling=False)
    return machines(card, ['-machine', 'default-bus-bypass-iommu=on', '-device', 'virtio-iommu-pci,addr=1e.0'], '')


def group_type(guest):
    """How Linux has the card translated: DMA, identity, ..."""
    return pci.run(guest.card, 'cat /sys/bus/pci/devices/$card/iommu_group/type').output.strip()


def expect_group_type(guest, wanted):
    found = group_type(guest)
    if found != wanted:
        raise GuestError(f'{guest.name}: the card is in a group of type {found}, not {wanted}')


def exchange(both):
    """Data each way, of pages and of parts of them."""
    for options in ('-s 5000 -n 200 -e', '-s 1048576 -n 10'):
        verbs.pingpong(both.a, both.b, options)
    verbs.bandwidth(both.b, both.a, 'ib_read_bw', 65536, 100)


def expect_no_refusal(both):
    for guest in both.guests:
        if log.times(guest, REFUSED):
            raise GuestError(f'{guest.name}: ' + guest.run(f"dmesg | grep '{REFUSED}'").output)


def run_programs(guest, verbs_cases, limits_cases=()):
    before = resources.in_use(guest)
    for case in [*(f'verbs-test {case}' for case in verbs_cases), *(f'limits-test {case}' for case in limits_cases)]:
        guest.run(f'ulimit -n 8192 && exec {case}', timeout=120)
    resources.wait_for(guest, before)


def test_intel_exchange():
    both = kept(intel)
    for guest in both.guests:
        expect_group_type(guest, 'DMA')
    exchange(both)
    for service in 'uc', 'ud':
        verbs.pingpong(both.a, both.b, '-s 2048 -n 200', service=service)
    expect_no_refusal(both)


def test_intel_verbs():
    both = kept(intel)
    run_programs(both.a, VERBS, LIMITS)
    both.a.run('exec uverbs-test')
    expect_no_refusal(both)


def test_intel_kernel_verbs():
    both = kept(intel)
    both.a.run('modprobe rdma_hca_test && modprobe -r rdma_hca_test', timeout=120)
    expect_no_refusal(both)


def test_intel_memory_comes_and_goes():
    """Regions are made and unmade, as fast as it goes, beside traffic: each end of one is an invalidation."""
    both = kept(intel)
    stress = [guest.spawn('exec mr-stress 2 4000 1') for guest in both.guests]
    exchange(both)
    for command in stress:
        command.wait()
    expect_no_refusal(both)


def test_intel_other_type():
    """The guest takes the translation away, and has it again; the other one's stays."""
    both = kept(intel)
    guest = both.a
    for wanted in ('identity', 'DMA'):
        pci.run(guest.card, f'''
            group=$(readlink -f /sys/bus/pci/devices/$card/iommu_group)
            echo $card >/sys/bus/pci/drivers/rdma_hca/unbind && echo {wanted} >$group/type &&
            echo $card >/sys/bus/pci/drivers/rdma_hca/bind''')
        both.wait_active()
        expect_group_type(guest, wanted)
        exchange(both)
    expect_no_refusal(both)


def test_intel_starts_again():
    """After a reset of the machine the IOMMU translates nothing until Linux says so."""
    both = kept(intel)
    both.a.reset()
    both.wait_again(both.a)
    expect_group_type(both.a, 'DMA')
    exchange(both)
    expect_no_refusal(both)


def test_intel_vfio():
    """A user-space driver has a card of which the IOMMU refuses much; afterwards it is the kernel's again, and as good."""
    both = kept(intel)
    guest, function = both.a, pci.address(both.a.card)
    output = guest.run(f'''modprobe -a vfio_pci vfio_iommu_type1
        cd /sys/bus/pci/devices/{function}
        echo {function} >driver/unbind && echo vfio-pci >driver_override && echo {function} >/sys/bus/pci/drivers_probe &&
        vfio-test $(basename $(readlink iommu_group)) {function}''', timeout=120).output
    for line in output.splitlines():
        print(f'# {line}')
    if not log.times(guest, REFUSED):
        raise GuestError(f'{guest.name}: the IOMMU has refused nothing')
    guest.run(f'''cd /sys/bus/pci/devices/{function}
        echo {function} >driver/unbind && echo >driver_override && echo {function} >/sys/bus/pci/drivers_probe''')
    both.wait_active()
    exchange(both)


@tap.only_long
def test_intel_not_used():
    """The IOMMU is there, and the guest lets it be."""
    both = kept(intel, append='intel_iommu=off')
    exchange(both)


def exchange_beside_interface(both):
    """The program gives a message half a second: one of many packets needs a card's turn for all of them in that time."""
    rdma = verbs.start(both.a, both.b, 'ibv_rc_pingpong -c -s 16384 -n 400')
    for direction in ('', '-R'):
        ethernet.iperf(both, f'-n 3M {direction}')
    verbs.finish(rdma)


def test_intel_roce():
    """The interface's rings and frames are translated, too; its memory is another one after it was down."""
    both = kept(intel_roce)
    for guest in both.guests:
        expect_group_type(guest, 'DMA')
    exchange_beside_interface(both)
    both.a.run(f'ip link set {both.a.card.interface} down')
    both.a.card.up()
    both.wait_active()
    exchange_beside_interface(both)
    run_programs(both.a, ['rereg'], ['all_translations'])
    expect_no_refusal(both)


def has_virtio_driver():
    with open(os.path.join(paths.OF_KERNEL, 'kernel-version')) as file:
        release = file.read().strip()
    found = subprocess.run(['modinfo', '-b', os.path.join(paths.OF_KERNEL, 'kernel'), '-k', release, 'virtio_iommu'],
                           capture_output=True, check=False)
    return found.returncode == 0


def test_virtio():
    if not has_virtio_driver():
        raise tap.Skip('the guests\' kernel has no driver of virtio-iommu: KERNEL=6.12')
    both = kept(virtio)
    for guest in both.guests:
        expect_group_type(guest, 'DMA')
    exchange(both)
    run_programs(both.a, ('chain', 'threads', 'rereg'))


@tap.only_long
def test_virtio_without_driver():
    """The IOMMU lets everything through."""
    if has_virtio_driver():
        raise tap.Skip('the guests\' kernel has a driver of virtio-iommu')
    both = kept(virtio)
    for guest in both.guests:
        pci.run(guest.card, '! [ -e /sys/bus/pci/devices/$card/iommu_group ]')
    exchange(both)


# Machines that move

def moves(make):
    """What an IOMMU translates is where it was, and so is what the card has of it."""
    with make() as both:
        commands = traffic.start(both)
        traffic.went_further(commands)
        with traffic.unseen(both):
            for move, guest in (moving.by_file, both.a), (moving.migrate, both.b):
                move(guest)
                traffic.went_further(commands)
        traffic.end(both, commands)
        expect_no_refusal(both)


@tap.only_long
def test_intel_moves():
    moves(intel)


def test_virtio_moves():
    moves(virtio)


@tap.only_long
def test_intel_roce_moves():
    moves(intel_roce)


if __name__ == '__main__':
    tap.main()
