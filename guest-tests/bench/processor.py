# SPDX-License-Identifier: GPL-2.0-or-later
"""What the host's processors do for a transfer: the time of both QEMUs, and that of their threads without those that run the
guests' processors, which poll and are always busy. Left are the cards, QEMU's main loops and, of Soft-RoCE, its backend."""
import os
import time

from harness import verbs
from harness.guest import GuestError

from .figures import Figures
from .perftest import COUNT, TIMEOUT

SIZE = 1 << 20
SECONDS = 3  # more, and perftest leaves out some at the ends
LEAD = 0.3
LOOK = 2
GB = 1 << 30
# In /proc/PID/stat, behind the name, which is in brackets.
UTIME, STIME = 11, 12
TICK = os.sysconf('SC_CLK_TCK')


def spent(path):
    with open(f'/proc/{path}/stat') as stat:
        words = stat.read().rpartition(')')[2].split()
    return (int(words[UTIME]) + int(words[STIME])) / TICK


def spent_by(guests, virtual):
    """Seconds: of all threads, and of all but those of virtual processors."""
    whole = sum(spent(guest.process.pid) for guest in guests)
    return whole, whole - sum(spent(f'{guest.process.pid}/task/{thread}')
                              for guest, threads in zip(guests, virtual) for thread in threads)


def seconds_a_gb(field, name):
    """In the middle of a steady write."""
    both = field.both
    virtual = [[cpu['thread-id'] for cpu in guest.qmp('query-cpus-fast')] for guest in both.guests]
    commands = verbs.start(both.a, both.b, f'ib_write_bw -F -s {SIZE} -D {SECONDS}', slot=field.slots[name])
    commands[0].wait_output('#bytes')
    time.sleep(LEAD)
    start, before = time.monotonic(), spent_by(both.guests, virtual)
    time.sleep(LOOK)
    passed, after = time.monotonic() - start, spent_by(both.guests, virtual)
    rows = verbs.perftest_rows(verbs.finish(commands, TIMEOUT)[0])
    if not rows or not rows[0][COUNT]:
        raise GuestError(f'nothing was complete after {SECONDS} s: {commands[0].output}')
    moved = rows[0][COUNT] / SECONDS * SIZE * passed / GB
    return [(late - early) / moved for early, late in zip(before, after)]


def processor(field, turns, plan):
    what = 'CPU seconds a GB'
    found = turns.take(what, field.rdma(), lambda name: seconds_a_gb(field, name))
    for column, end in enumerate(('', ', without guests')):
        yield Figures(what + end, SIZE, 's/GB', {name: given[0][column] for name, given in found.items()}, mode='steady')
