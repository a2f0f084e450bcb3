# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest has in use: as the RDMA core counts it (`rdma resource`) and the card (QMP). What the driver has, its numbers
and its translations, it looks after itself: with something left of them it complains when it stops."""
import contextlib
import re

from . import wait


def counters(guest, kind):
    """The card's counters of a kind ('cumulative', 'instant', 'peak') by "unit name"."""
    card, = guest.qmp('query-rdma-hca-counters')
    return {f'{unit["name"]} {counter["name"]}': counter['value']
            for unit in card['units'] for counter in unit['counters'] if counter['type'] == kind}


def in_use(guest):
    """Counts by name, "core mr", "card v2p mpts" and so on."""
    counts = {}
    output = guest.run(f'rdma resource show {guest.card.name}').output
    for name, value in re.findall(r'(\w+) (\d+)', output.split(':', 2)[2]):
        counts[f'core {name}'] = int(value)
    for name, value in counters(guest, 'instant').items():
        # Memory for the card's tables is added as it is needed, and stays.
        if not name.endswith(' icm_pages'):
            counts[f'card {name}'] = value
    return counts


def wait_for(guest, counts):
    """Wait until the counts are these again: what a process has goes a moment after it."""
    def trouble():
        now = in_use(guest)
        wrong = [f'{name}: {now.get(name)}, not {counts.get(name)}' for name in sorted({*now, *counts})
                 if now.get(name) != counts.get(name)]
        return f'free: {guest.name} has still in use\n' + '\n'.join(wrong)

    wait.until(lambda: in_use(guest) == counts, trouble, timeout=10)


@contextlib.contextmanager
def given_back(lab):
    """What comes into use inside is free afterwards, in all guests."""
    before = [in_use(guest) for guest in lab.guests]
    yield
    for guest, counts in zip(lab.guests, before):
        wait_for(guest, counts)
