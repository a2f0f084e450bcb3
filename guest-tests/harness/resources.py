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


def in_statistic(guest):
    """What the guest is shown of its port's counters, by name."""
    link = f'{guest.card.name}/1'
    output = guest.run(f'rdma statistic show link {link}').output
    return {name: int(value) for name, value in re.findall(r'(\w+) (\d+)', output.split(link, 1)[1])}


def in_use(guest):
    """Counts by name, "core mr", "card v2p mpts" and so on."""
    counts = {}
    output = guest.run(f'rdma resource show {guest.card.name}').output
    for name, value in re.findall(r'(\w+) (\d+)', output.split(':', 2)[2]):
        counts[f'core {name}'] = int(value)
    for name, value in counters(guest, 'instant').items():
        # Memory for the card's tables is added as it is needed, and stays; caches are filled, and stay so.
        if not name.endswith((' icm_pages', '_lines', '_capacity')):
            counts[f'card {name}'] = value
    return counts


def keys_of_users(guest):
    """Memory keys that users in the kernel have: those of the card's table that the driver neither has nor offers. Key 0 is nobody's."""
    offered = int(re.search(r'max_mr:\s+(\d+)', guest.run(f'ibv_devinfo -v -d {guest.card.name}').output).group(1))
    return in_use(guest)['card v2p mpts'] - (guest.card.number_of_keys - 1 - offered)


def in_use_but_cqs(guest):
    """The same without CQs and the keys of their rings: the RDMA core makes some that all its users share, more when connections
    come before others have gone, and keeps them."""
    counts = in_use(guest)
    counts['card v2p mpts'] -= counts.pop('card cxtmgt cqs')
    del counts['core cq']
    return counts


def wait_for(guest, counts, count=in_use):
    """Wait until no more is in use than these counts: what a process has goes a moment after it. Less may be: of what was in use
    before them, something may have been about to go."""
    def more():
        now = count(guest)
        return [f'{name}: {now[name]}, not {counts.get(name, 0)}' for name in sorted(now) if now[name] > counts.get(name, 0)]

    wait.until(lambda: not more(), lambda: f'free: {guest.name} has still in use\n' + '\n'.join(more()))


def run(guest, script, timeout=120):
    """Run what prints for people, and leaves nothing in use."""
    before = in_use(guest)
    for line in guest.run(script, timeout).output.splitlines():
        print(f'# {line}')
    wait_for(guest, before)


@contextlib.contextmanager
def given_back(lab, count=in_use):
    """What comes into use inside is free afterwards, in all guests."""
    before = [count(guest) for guest in lab.guests]
    yield
    for guest, counts in zip(lab.guests, before):
        wait_for(guest, counts, count)
