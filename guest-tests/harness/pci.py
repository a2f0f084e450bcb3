# SPDX-License-Identifier: GPL-2.0-or-later
"""A card as a function on its guest's PCI bus."""
import contextlib

from . import log, wait

# Bits of the command register of PCI configuration space: answer to accesses, do DMA.
MEMORY, MASTER = 2, 4


def address(card):
    """Of its function, which the card has also where no driver shows it any more."""
    return run(card, 'echo $card').output.strip()


def run(card, script):
    """Run a shell script in the guest with the card's address in $card."""
    return card.guest.run(f'card=$(basename $(readlink /sys/class/infiniband/{card.name}/device)); {script}')


def clear(card, bits):
    """Clear bits of the card's command register."""
    run(card, f'setpci -s $card COMMAND=0:{bits:x}')


def reset(card):
    """A function level reset."""
    run(card, 'echo 1 >/sys/bus/pci/devices/$card/reset')


def remove(guest, function):
    guest.run(f'echo 1 >/sys/bus/pci/devices/{function}/remove')


def rescan(guest):
    guest.run('echo 1 >/sys/bus/pci/rescan')


# A card in a slot (devices.py: slotted)

# Of a machine: slots are the operating system's to serve, as they are in most.
NATIVE = ['-global', 'ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off']
# Interrupts that are due are taken where a processor does anything; then what the threads of slots do that they woke.
_BUSY_SLOTS = """for cpu in $(seq $(nproc)); do taskset -c $((cpu - 1)) true; done; ps -o comm,stat | sed -n '/pciehp *[RD]/p'"""


def port(card):
    """The address of the port that its slot is behind."""
    return run(card, 'basename $(dirname $(readlink -f /sys/bus/pci/devices/$card))').output.strip()


def pull(card):
    """Out of its slot, without a word to anyone: QEMU does so when the slot has no power. Of the port's slot control that is
    the power indicator and the power controller."""
    card.guest.run(f'setpci -s {port(card)} CAP_EXP+18.w=0700:0700')


def tear_out(card):
    """Pull it; the driver finds out, and tries in vain, until the operator takes the function away."""
    said, function = 'restart failed', address(card)
    before = log.times(card.guest, said)
    pull(card)
    log.wait_more(card.guest, said, before)
    remove(card.guest, function)
    wait_gone(card)


def unplug(card):
    """As the machine's user asks for; the guest lets go of it, or does not."""
    card.guest.qmp('device_del', id=card.id)


def plug(card):
    """Again, into its slot, as soon as that is empty; wait until the guest offers it."""
    wait_out(card)
    card.guest.qmp('device_add', **card.device())
    # Linux gives a card that has gone and come the first name that is free.
    wait.until(lambda: _offered(card), f'there: {card.name} of {card.guest.name}')


@contextlib.contextmanager
def empty(card):
    """Inside, a QEMU that its guest gets has nothing in the slot."""
    arguments = card.guest.arguments
    made = card.arguments()
    at = next(i for i in range(len(arguments)) if arguments[i:i + len(made)] == made)
    card.guest.arguments = arguments[:at] + made[:-2] + arguments[at + len(made):]
    yield
    card.guest.arguments = arguments


def wait_gone(card):
    """Wait until the guest does not offer it any more."""
    wait.until(lambda: not _offered(card), f'gone: {card.name} of {card.guest.name}')


def wait_out(card):
    """Wait until its slot is empty, and Linux knows: who puts a card in before that has it come, and then has pressed the button
    of a slot that is in use."""
    wait.until(lambda: not _in_slot(card), f'gone: {card.id} of {card.guest.name}')
    wait.until(lambda: not card.guest.run(_BUSY_SLOTS).output, f'at rest: the slots of {card.guest.name}')


def _offered(card):
    return card.guest.run(f'test -e /sys/class/infiniband/{card.name}', check=False).status == 0


def _in_slot(card):
    return any(device['qdev_id'] == card.id for bus in card.guest.qmp('query-pci') for device in _functions(bus['devices']))


def _functions(devices):
    for device in devices:
        yield device
        yield from _functions(device.get('pci_bridge', {}).get('devices', []))


def bus_error(card, error):
    """The card finds an error on the bus, and says so (AER); for their names see QEMU's pcie_aer_inject_error."""
    card.guest.qmp('human-monitor-command', command_line=f'pcie_aer_inject_error {card.id} {error}')
