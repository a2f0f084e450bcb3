# SPDX-License-Identifier: GPL-2.0-or-later
"""A card as a function on its guest's PCI bus."""

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
