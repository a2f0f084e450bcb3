# SPDX-License-Identifier: GPL-2.0-or-later
"""What a card has captured of its cable, taken apart by tshark."""
import collections
import os
import re
import subprocess

from . import paths
from .guest import GuestError

COMMENTS = {'drop': 'dropped', 'duplicate': 'duplicate', 'reorder': 'reordered', 'delay': 'delayed',
            'corrupt': 'corrupted', 'mark': 'marked'}


def check(path):
    """No packet is malformed, all CRCs are right but for those that a comment says are not."""
    result = subprocess.run([os.path.join(paths.TOP, 'scripts', 'check-capture'), path], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, check=False)
    print('#', os.path.basename(result.stdout.strip()))
    if result.returncode != 0:
        raise GuestError(result.stdout)


def fields(path, name, rule):
    """A field of each packet that a display filter of tshark's passes."""
    return subprocess.run(['tshark', '-n', '-r', path, '-Y', rule, '-T', 'fields', '-e', name],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False).stdout.split()


def packets(path):
    """(time, direction, comment) of each packet, as tshark has them; 1 is received, 2 is sent."""
    output = subprocess.run(['tshark', '-n', '-r', path, '-T', 'fields', '-E', 'separator=|', '-e', 'frame.time_epoch',
                             '-e', 'frame.packet_flags_direction', '-e', 'frame.comment'],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True).stdout
    fields = [line.split('|') for line in output.splitlines()]
    return [(float(time), int(direction, 0), comment) for time, direction, comment in fields]


def check_comments(path, counters, actions):
    """As many comments as faults were counted, by direction and action; and each action was taken."""
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
    for action in actions:
        if not any(seen[direction, COMMENTS[action]] for direction in (1, 2)):
            raise GuestError(f'nothing was {COMMENTS[action]}: {seen}')
