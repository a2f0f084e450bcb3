#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What two cards capture of the cable between them while one of them spoils packets, taken apart by tshark."""
import collections
import os
import re
import subprocess

from harness import faults, pair, paths, resources, tap, verbs
from harness.guest import GuestError

# Packets that are corrupted are so where they are received: the capture of the other card has them whole.
FAULTS = [
    {'action': 'drop', 'probability': 0.01},
    {'action': 'duplicate', 'probability': 0.01},
    {'action': 'reorder', 'probability': 0.01, 'distance': 2},
    {'action': 'delay', 'probability': 0.01, 'delay-ns': 3000000},
    {'action': 'corrupt', 'direction': 'rx', 'probability': 0.01},
]
COMMENTS = {'drop': 'dropped', 'duplicate': 'duplicate', 'reorder': 'reordered', 'delay': 'delayed',
            'corrupt': 'corrupted'}


def check(path):
    """No packet is malformed, all CRCs are right but for those that a comment says are not."""
    result = subprocess.run([os.path.join(paths.TOP, 'scripts', 'check-capture'), path], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, check=False)
    print('#', os.path.basename(result.stdout.strip()))
    if result.returncode != 0:
        raise GuestError(result.stdout)


def packets(path):
    """(time, direction, comment) of each packet, as tshark has them; 1 is received, 2 is sent."""
    output = subprocess.run(['tshark', '-n', '-r', path, '-T', 'fields', '-E', 'separator=|', '-e', 'frame.time_epoch',
                             '-e', 'frame.packet_flags_direction', '-e', 'frame.comment'],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True).stdout
    fields = [line.split('|') for line in output.splitlines()]
    return [(float(time), int(direction, 0), comment) for time, direction, comment in fields]


def check_comments(path, counters):
    """As many comments as faults were counted, by direction and kind."""
    seen = collections.Counter()
    for _, direction, comment in packets(path):
        match = re.match(r'fault: (\w+)', comment)
        if match:
            seen[direction, match[1]] += 1
    for direction, name in (1, 'rx'), (2, 'tx'):
        for action, comment in COMMENTS.items():
            counted = counters[f'fault {name}_{action}']
            if seen[direction, comment] != counted:
                raise GuestError(f'{name}: {counted} packets {comment}, in the capture {seen[direction, comment]}')
    if not all(any(seen[direction, comment] for direction in (1, 2)) for comment in COMMENTS.values()):
        raise GuestError(f'some faults did not happen: {seen}')


def check_times(path, low, high):
    """Of the guest's clock, and in order."""
    times = [time for time, _, _ in packets(path)]
    if times != sorted(times):
        raise GuestError('the packets are not in the order of their times')
    if not low <= times[0] <= times[-1] <= high:
        raise GuestError(f'packets from {times[0]} to {times[-1]} s, not between {low} and {high}')


def test_faults_in_a_capture():
    with pair.Pair(capture=True) as both:
        for server, client in (both.a, both.b), (both.b, both.a):
            both.a.qmp('qom-set', path=faults.CARD, property='faults', value=faults.ending(FAULTS, 6))
            verbs.pingpong(server, client, '-s 8192 -n 100 -m 1024')
        both.a.qmp('qom-set', path=faults.CARD, property='faults', value=FAULTS)
        verbs.bandwidth(both.a, both.b, 'ib_read_bw', 8192, 50, '-m 1024 -t 2')
        # All that is held back leaves, so that what is counted has passed.
        both.a.qmp('qom-set', path=faults.CARD, property='faults', value=[])
        counters = resources.counters(both.a, 'cumulative')
        for guest in both.guests:
            check(both.captured(guest))
            # The virtual clock starts with the machine, before the guest's own.
            uptime = float(guest.run('cat /proc/uptime').output.split()[0])
            check_times(both.captured(guest), 0, uptime + guest.boot_seconds)
        check_comments(both.captured(both.a), counters)


if __name__ == '__main__':
    tap.main()
