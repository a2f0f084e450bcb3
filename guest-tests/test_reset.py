#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One guest is reset while the other is busy with it."""
import re
import time

from harness import faults, tap, verbs
from harness.guest import GuestError
from harness.labs import infiniband, kept


def reset_under(program, failure):
    """Reset the server of a program; the client must see errors in its completions, and both connect again."""
    both = kept(infiniband)
    before = faults.counted(both)
    client, _ = verbs.start(both.b, both.a, program)
    while faults.moved(both, before)['requester wqes_completed'] < 200:
        if not client.running:
            raise GuestError(f'the program ended before the reset:\n{client.output}')
        time.sleep(0.05)
    both.b.reset()
    result = client.wait(90, check=False)
    if result.status == 0 or not re.search(failure, result.output):
        raise GuestError(f'no error in a completion is reported:\n{result}')
    both.b.wait_ready()
    both.wait_active()
    verbs.pingpong(both.a, both.b, '-n 100')
    verbs.pingpong(both.b, both.a, '-n 100 -e')


# perftest prints the status; 12 is IBV_WC_RETRY_EXC_ERR. These programs always have something outstanding: one that
# merely waits for a message, as a ping-pong does half of the time, is told nothing when its peer is gone.
def test_reset_under_writes():
    reset_under('ib_write_bw -F -s 65536 -D 100', r'(?i)status:? *12\b|\(12\)')


def test_reset_under_sends():
    reset_under('ib_send_bw -F -s 65536 -D 100', r'(?i)status:? *12\b|\(12\)')


def test_reset_under_reads():
    reset_under('ib_read_bw -F -s 65536 -D 100', r'(?i)status:? *12\b|\(12\)')


def test_reset_under_atomics():
    reset_under('ib_atomic_bw -F -D 100', r'(?i)status:? *12\b|\(12\)')


def test_both_reset():
    both = kept(infiniband)
    for guest in both.guests:
        guest.reset()
    for guest in both.guests:
        guest.wait_ready()
    both.wait_active()
    verbs.pingpong(both.a, both.b, '-n 100')


if __name__ == '__main__':
    tap.main()
