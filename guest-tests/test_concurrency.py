#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Several queue pairs, several processes, both directions, all at once."""
from harness import tap, verbs
from harness.guest import GuestError
from harness.labs import infiniband, kept


def rows(outputs):
    for output in outputs[::2]:
        if not verbs.perftest_rows(output):
            raise GuestError(f'perftest reported nothing:\n{output}')


def test_eight_queue_pairs():
    both = kept(infiniband)
    for program in ('ib_send_bw', 'ib_write_bw', 'ib_read_bw'):
        verbs.bandwidth(both.b, both.a, program, 8192, 100, '-q 8')


def test_eight_queue_pairs_both_ways():
    both = kept(infiniband)
    for program in ('ib_send_bw', 'ib_write_bw', 'ib_read_bw'):
        verbs.bandwidth(both.b, both.a, program, 8192, 50, '-q 8 -b')


@tap.seconds(300)
def test_two_processes_of_eight_queue_pairs():
    both = kept(infiniband)
    commands = []
    for program in ('ib_write_bw', 'ib_send_bw'):
        commands += verbs.start(both.b, both.a, f'{program} -F -q 8 -s 8192 -n 200')
    rows(verbs.finish(commands, 240))


@tap.seconds(300)
def test_processes_in_opposite_directions():
    both = kept(infiniband)
    commands = verbs.start(both.b, both.a, 'ib_write_bw -F -q 8 -s 8192 -n 200')
    commands += verbs.start(both.a, both.b, 'ib_read_bw -F -q 8 -s 8192 -n 200')
    rows(verbs.finish(commands, 240))


@tap.seconds(300)
def test_four_pingpongs_with_checked_data():
    both = kept(infiniband)
    commands = []
    for number in range(4):
        server, client = both.guests if number % 2 else reversed(both.guests)
        commands += verbs.start(server, client, f'ibv_rc_pingpong -c -e -s {1000 + 3000 * number} -n 100')
    for output in verbs.finish(commands, 240):
        if 'invalid data' in output:
            raise GuestError(f'wrong data:\n{output}')


def test_one_guest_talks_to_itself():
    guest = kept(infiniband).a
    verbs.pingpong(guest, guest, '-e -n 200')
    verbs.bandwidth(guest, guest, 'ib_send_bw', 65536, 50, '-e')


if __name__ == '__main__':
    tap.main()
