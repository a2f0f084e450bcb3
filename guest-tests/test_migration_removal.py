#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What befalls a card, its machine or its cable before a machine moves, while it does, and after it has: each is as it would be
without a move, and nothing else is lost. In the long form stands and stalls are of minutes."""
import time

from harness import fabric, links, moving, paths, pci, tap, traffic, wait
from harness.check import expect, expect_error
from harness.devices import InfinibandCard, ManagedCard, Nic
from harness.lab import Lab, Machine
from harness.lost import Traffic, plug, unplug, works
from harness.switches import Fabric

SECONDS = 100 if tap.LONG else 3
# Of a request that is tried for longer than that: two minutes, or 17 s.
PATIENT = 22 if tap.LONG else 19
LIMIT = {'move-limit-ms': 600000}



def pair(cable=None, card=InfinibandCard('cable', LIMIT), lab=Lab, **options):
    """The first machine can be in two QEMUs at once: what its devices are plugged into does not listen there."""
    machine = Machine(Nic('net'), card, **options)
    return lab([machine, machine], {'net': links.turned(links.stream()), 'cable': cable or links.turned_cable()})


def slots():
    return pair(card=InfinibandCard('cable', LIMIT, slotted=True), machine=pci.NATIVE)


# Out of its slot

def test_unplugged():
    """Under load. QEMU takes nothing from a machine that is on its way, and what works goes on."""
    with slots() as both:
        unplug(both)
        plug(both)
        commands = traffic.start(both)
        traffic.went_further(commands)
        with traffic.unseen(both), moving.migrating(both.a):
            expect_error('migrat', pci.unplug, both.a.card)
            traffic.went_further(commands)
        traffic.went_further(commands)
        traffic.end(both, commands)
        unplug(both)
        plug(both)


def moved_without_card(both, move):
    unplug(both)
    pci.wait_out(both.a.card)
    with pci.empty(both.a.card):
        move(both.a)
    plug(both)


def plugged_on_its_way(guest):
    """QEMU does not give a card to a machine that moves."""
    with moving.migrating(guest):
        expect_error('migrat', pci.plug, guest.card)


def test_moved_without_card():
    """A machine whose slot is empty moves, and gets a card where it is then."""
    with slots() as both:
        moved_without_card(both, plugged_on_its_way)
        if tap.LONG:
            moved_without_card(both, moving.by_file)


def test_pulled_out():
    """By the guest, which asks nobody, while it moves: in the other QEMU is a card that it has not had, until the operator
    takes it out and puts it in again."""
    with slots() as both:
        lost = Traffic(both)
        with moving.migrating(both.a):
            pci.tear_out(both.a.card)
            lost.end()
        pci.unplug(both.a.card)
        plug(both)


# Resets, sleep, other kernels

def again_and_again(guest, script):
    """Run a shell script in a guest, with the card's address in $card, all the time; gives a function that ends it."""
    card = pci.address(guest.card)
    guest.run('rm -f /tmp/enough')
    loop = guest.spawn(f'card={card}; while ! test -e /tmp/enough; do {script} || exit; echo again; sleep 0.2; done')

    def went_on():
        before = loop.output.count('again')
        wait.until(lambda: loop.output.count('again') > before + 1, lambda: f'going on: {loop.output}')

    def end():
        guest.run('touch /tmp/enough')
        loop.wait()

    return went_on, end


def all_the_way(script):
    with pair() as both:
        for guest, move in (both.b, moving.by_file), (both.a, moving.by_file), (both.a, moving.migrate):
            went_on, end = again_and_again(guest, script)
            went_on()
            move(guest)
            went_on()
            end()
            works(both)


def test_resets():
    """Function level resets without a pause."""
    all_the_way('echo 1 >/sys/bus/pci/devices/$card/reset')


def test_sleep():
    """The machine falls asleep and wakes up, all the time."""
    all_the_way('echo 0 >/sys/module/suspend/parameters/pm_test_delay; echo platform >/sys/power/pm_test && '
                'echo mem >/sys/power/state')


def crash(guest):
    """Its kernel panics, and it is about to boot again by itself."""
    panics = guest.kernel_log().count('Kernel panic')
    guest.run('echo 1 >/proc/sys/kernel/panic')
    guest.starts_again()
    guest.spawn('echo c >/proc/sysrq-trigger')
    wait.until(lambda: guest.kernel_log().count('Kernel panic') > panics, 'crashed')


def begin_again(begin):
    """Before, while and after a machine moves. It is up again before it goes on in another QEMU: QEMU's virtio does not load what
    a disk is between two kernels."""
    with pair() as both:
        begin(both.a)
        both.wait_again(both.a)
        moving.by_file(both.a)
        works(both)
        with moving.migrating(both.a):
            begin(both.a)
            both.wait_again(both.a)
        works(both)
        begin(both.a)
        both.wait_again(both.a)
        works(both)


def test_crash():
    begin_again(crash)


def test_reset_button():
    begin_again(lambda guest: guest.reset())


# A QEMU that ends

def test_failed():
    """The other QEMU ends in the middle: the machine goes on where it is, and where its cable listens is its own again."""
    with pair(links.unix_cable()) as both:
        commands = traffic.start(both)
        traffic.went_further(commands)
        with traffic.unseen(both):
            moving.fail(both.a)
            traffic.went_further(commands)
            moving.by_file(both.b)
            traffic.went_further(commands)
            moving.migrate(both.a)
            traffic.went_further(commands)
        traffic.end(both, commands)
        works(both)


# Machines that stand, cables that stall

@tap.seconds(1200)
def test_stopped():
    """A machine stands for a while: its peer tries again, until it goes on. One that moves while it stands does so, too."""
    with pair() as both:
        commands = traffic.start(both, timeout=PATIENT)
        traffic.went_further(commands)
        with traffic.unseen(both):
            for number in range(3):
                guest = both.guests[(number + 1) % 2]
                if number == 1:
                    with moving.migrating(guest):
                        guest.qmp('stop')
                        time.sleep(SECONDS / 2)
                else:
                    guest.qmp('stop')
                expect('standing', guest.qmp('query-status')['status'] in ('paused', 'postmigrate'), guest.qmp('query-status'))
                time.sleep(SECONDS)
                guest.qmp('cont')
                traffic.went_further(commands, 300)
        traffic.end(both, commands)


def switched():
    cables = Fabric([0, 0], options=[f'--move-limit-ms={LIMIT["move-limit-ms"]}'])
    return pair(cables, card=ManagedCard('cable', managed=None, properties=LIMIT), lab=fabric.FabricLab, layers=('apps',)), cables


@tap.seconds(1200)
def test_stalled():
    """A cable stands still: what is between the cards is a switch that takes nothing. A machine that moves then does not wait for
    it."""
    lab, cables = switched()
    switch = cables.switches[0]
    with lab as both, both.manager.expecting(*fabric.TIMEOUTS):
        commands = traffic.start(both, timeout=PATIENT)
        traffic.went_further(commands)
        for number in range(3):
            with switch.stalled():
                if number == 1:
                    moving.migrate(both.a)
                time.sleep(SECONDS)
            traffic.went_further(commands, 300)
            moving.by_file(both.b)
            traffic.went_further(commands, 300)
        traffic.end(both, commands)


# Disks that are full

FULL = 'cannot write the capture'


def limited(size):
    """The launch of a QEMU whose files cannot be longer."""
    return ['sh', '-c', f'trap "" XFSZ; exec prlimit --fsize={size} "$@"', 'sh', paths.QEMU, '-L', paths.QEMU_DATA]


def test_capture_on_full_disk():
    """A capture that cannot be written any more ends; the card goes on, and moves."""
    with pair(card=InfinibandCard('cable', LIMIT, capture=True), launch=limited(1 << 20)) as both:
        commands = traffic.start(both)
        for number in range(1, 3):
            wait.until(lambda: both.a.qemu_log().count(FULL) == number, 'a full disk')
            with traffic.unseen(both):
                traffic.went_further(commands)
                moving.migrate(both.a)
                traffic.went_further(commands)
        traffic.end(both, commands)


if __name__ == '__main__':
    tap.main()
