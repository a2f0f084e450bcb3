# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest's kernel says, what does not come to its console included."""
from . import wait


def times(guest, text):
    """How often it has said that."""
    return int(guest.run(f"dmesg | grep -c '{text}'", check=False).output)


def wait_more(guest, text, before):
    """Wait until it has said that more often than before."""
    wait.until(lambda: times(guest, text) > before, f'in the log of {guest.name}: {text}')


def wait_started(guest):
    """Wait until the driver, which has said that it restarts its card, tells what it has found. Before that the device that goes may
    still be there."""
    wait.until(lambda: guest.run("dmesg | awk '/restarting/ { found = 0 } /event queues/ { found = 1 } END { exit !found }'",
                                 check=False).status == 0, f'started: the card of {guest.name}')


def wait_restarted(guest, before):
    """Wait until it has said more often than before that it restarts its card, and has done so."""
    wait_more(guest, 'restarting', before)
    wait_started(guest)
