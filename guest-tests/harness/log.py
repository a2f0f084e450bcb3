# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest's kernel says, what does not come to its console included."""
from . import wait


def times(guest, text):
    """How often it has said that."""
    return int(guest.run(f"dmesg | grep -c '{text}'", check=False).output)


def wait_more(guest, text, before):
    """Wait until it has said that more often than before."""
    wait.until(lambda: times(guest, text) > before, f'in the log of {guest.name}: {text}')
