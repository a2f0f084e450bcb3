#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The card's counters as a guest sees them (hw_counters, `rdma statistic`) and as the monitor does."""
import re

from harness import resources, tap, verbs
from harness.guest import GuestError
from harness.labs import infiniband, kept


def at_monitor(guest):
    """Values of the card by the names that the driver has for them."""
    card, = guest.qmp('query-rdma-hca-counters')
    return {f'{unit["name"]}_{counter["name"]}': counter['value']
            for unit in card['units'] for counter in unit['counters']}


def in_sysfs(guest, folder='.'):
    output = guest.run(f'cd /sys/class/infiniband/{guest.card.name}/{folder}/hw_counters && grep . *').output
    return {name: int(value) for name, value in re.findall(r'^(\w+):(\d+)$', output, re.M) if name != 'lifespan'}


def of_port(guest):
    return in_sysfs(guest, 'ports/1')


def compare(guest, view, names):
    """What the view shows lies between what the monitor shows before and after, and is all that there is of that. What a port
    shows of its QPs the monitor has not (test_tools.py)."""
    before = at_monitor(guest)
    seen = {name: value for name, value in view(guest).items() if re.match(names, name)}
    after = at_monitor(guest)
    wanted = {name for name in before if re.match(names, name)}
    if seen.keys() != wanted:
        raise GuestError(f'{guest.name}: only one side has {sorted(seen.keys() ^ wanted)}')
    for name, value in seen.items():
        low, high = sorted((before[name], after[name]))
        if not low <= value <= high:
            raise GuestError(f'{guest.name}: {name} is {value}, at the monitor {low} to {high}')


def test_guest_and_monitor_agree():
    both = kept(infiniband)
    verbs.pingpong(both.a, both.b, '-n 100')
    for guest in both.guests:
        compare(guest, in_sysfs, '')
        for view in of_port, resources.in_statistic:
            compare(guest, view, '(port|link)_|(.*_)?fault_all$')


def test_pingpong_is_counted():
    """100 exchanges are 100 Sends each way, and nothing went wrong."""
    both = kept(infiniband)
    before = [in_sysfs(guest) for guest in both.guests]
    verbs.pingpong(both.a, both.b, '-n 100')
    for guest, old in zip(both.guests, before):
        new = in_sysfs(guest)
        for name, change in ('send_wqe_send', 100), ('requester_wqes_completed', 100), ('requester_naks_rx', 0), \
                ('send_wqe_bad_entry', 0), ('cxtmgt_qps', 0), ('cxtmgt_cqs', 0), ('v2p_mpts', 0):
            if new[name] - old[name] != change:
                raise GuestError(f'{guest.name}: {name} moved by {new[name] - old[name]}, not {change}')


def test_human_readable():
    guest = kept(infiniband).a
    text = guest.qmp('human-monitor-command', **{'command-line': 'info rdma-hca hca0'})
    for unit in 'ceu', 'send', 'requester', 'responder', 'cxtmgt', 'v2p', 'port', 'link':
        if not re.search(rf'^  {unit}\s*$', text, re.M):
            raise GuestError(f'no {unit} in\n{text}')
    if re.search(r'^    \w+ +0 ', text, re.M):
        raise GuestError(f'zeros in\n{text}')


if __name__ == '__main__':
    tap.main()
