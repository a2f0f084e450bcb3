#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What befalls a card while it works: errors of the bus, being taken out of its slot, a kernel that ends without a word to
it, a machine that sleeps. Programs are told, and what comes afterwards finds a card that works."""
import glob
import os

from harness import links, log, paths, pci, power, resources, tap, verbs
from harness.devices import InfinibandCard, Nic, RoceCard
from harness.guest import GuestError, end_all
from harness.lab import Lab, Machine
from harness.labs import infiniband, kept, slots
from harness.lost import Traffic, plug, unplug, works


# Errors of the bus

FAILED, RECOVERED = 'card failed: the bus reports an error', 'AER: device recovery successful'


def bus_error(error):
    both = kept(slots)
    traffic = Traffic(both)
    failed, recovered = (log.times(both.a, text) for text in (FAILED, RECOVERED))
    pci.bus_error(both.a.card, error)
    traffic.end()
    log.wait_more(both.a, FAILED, failed)
    log.wait_more(both.a, RECOVERED, recovered)
    works(both)


def test_fatal_bus_error():
    """The link to the card is not to be trusted: Linux resets it."""
    bus_error('DLP')


def test_other_bus_error():
    bus_error('COMP_ABORT')


# Linux 7.3 says the latter.
CORRECTED = r'severity=Correct\(ed\|able\)'


def test_corrected_bus_error():
    """Nobody loses anything."""
    both = kept(slots)
    before = log.times(both.a, CORRECTED)
    programs = verbs.start(both.a, both.b, 'ibv_rc_pingpong -c -e -n 2000')
    programs[0].wait_output('remote address')
    pci.bus_error(both.a.card, 'BAD_TLP')
    verbs.finish(programs)
    log.wait_more(both.a, CORRECTED, before)


# In and out of its slot

def test_unplugged():
    """As the machine's user asks for, while programs use it."""
    both = kept(slots)
    unplug(both)
    plug(both)


def test_pulled_out():
    """Without a word to anyone: the driver finds out, and tries in vain, until the operator takes the function away."""
    both = kept(slots)
    for _ in range(2):
        traffic = Traffic(both)
        pci.tear_out(both.a.card)
        traffic.end()
        plug(both)


def test_unplugged_while_it_stands():
    """The machine stands still when its user asks; it lets go of the card when it goes on."""
    both = kept(slots)
    traffic = Traffic(both)
    both.a.qmp('stop')
    pci.unplug(both.a.card)
    verbs_peer = both.b.run(f'cat /sys/class/infiniband/{both.b.card.name}/ports/1/state').output
    if 'ACTIVE' not in verbs_peer:
        raise GuestError(f'the peer lost a card that is there: {verbs_peer}')
    both.a.qmp('cont')
    traffic.end()
    pci.wait_gone(both.a.card)
    plug(both)


# Users

def test_unload_and_remove():
    """The driver is unloaded, and the function taken from the bus, while programs are at work."""
    both = kept(slots)
    traffic = Traffic(both)
    both.a.run('modprobe -r rdma_hca')
    traffic.end()
    both.a.run('modprobe rdma_hca')
    works(both)
    traffic = Traffic(both)
    function = pci.address(both.a.card)
    pci.remove(both.a, function)
    traffic.end()
    pci.rescan(both.a)
    works(both)


# Other kernels, sleep

def boot_files():
    kernels = glob.glob(os.path.join(paths.BOOT, 'vmlinuz-*'))
    if not kernels:
        raise tap.Skip('of this kernel there is no bzImage')
    return [kernels[0], paths.INITRAMFS]


@tap.seconds(300)
def test_kernel_after_kernel():
    """A kernel ends without a word to the card, which the next one finds at work."""
    with infiniband(disks=boot_files(), memory=768) as both:
        both.a.run('modprobe rdma_hca_failure scene=left-running')
        client, server = verbs.start(both.a, both.b, 'ib_write_bw -F -s 65536 -D 100', percent=20)
        server.wait_output('Data ex. method')

        def at_work():
            left = resources.counters(both.a, 'instant')
            if not left['cxtmgt qps']:
                raise GuestError(f'the card was stopped: {left}')

        power.start_kernel(both.a, at_work)
        end_all((client, server))
        works(both)


def test_freeze():
    """The machine sleeps, and a button wakes it up."""
    both = kept(slots)
    for _ in range(2):
        traffic = Traffic(both)
        before = resources.counters(both.a, 'cumulative')['ceu cmd_close_hca']
        power.freeze(both.a, lambda: resources.counters(both.a, 'cumulative')['ceu cmd_close_hca'] > before)
        traffic.end()
        works(both)


# Three cards

def three():
    """A machine with three cards, each of which has a peer of its own in the other machine."""
    devices = [Nic('net'), InfinibandCard('one', slotted=True), InfinibandCard('two', slotted=True), RoceCard('lan', slotted=True)]
    machine = Machine(*devices, machine=pci.NATIVE, memory=768)
    return Lab([machine, machine], {'net': links.stream(), 'one': links.unix_cable(), 'two': links.unix_cable(),
                                    'lan': links.stream()})


def test_three_cards():
    """What befalls one of them the others do not notice."""
    with three() as both:
        running = [verbs.start(both.a, both.b, 'ibv_rc_pingpong -c -e -n 300', slot=slot) for slot in (1, 2, 3)]
        for programs in running:
            verbs.finish(programs)
        first = both.a.devices[1]
        others = [verbs.start(both.a, both.b, 'ibv_rc_pingpong -c -e -n 1500', slot=slot) for slot in (2, 3)]
        for programs in others:
            programs[0].wait_output('remote address')
        pci.reset(first)
        first.wait_active()
        pci.bus_error(first, 'DLP')
        log.wait_more(both.a, RECOVERED, 0)
        first.wait_active()
        pci.clear(first, pci.MASTER)
        log.wait_restarted(both.a, 0)
        first.wait_active()
        for programs in others:
            verbs.finish(programs)
        verbs.finish(verbs.start(both.a, both.b, 'ibv_rc_pingpong -c -e -n 100', slot=1))
        both.a.run('modprobe -r rdma_hca && modprobe rdma_hca')


if __name__ == '__main__':
    tap.main()
