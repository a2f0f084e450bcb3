#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Several queue pairs, several processes, both directions, all at once."""
from harness import pair, tap, verbs
from harness.guest import GuestError


def rows(outputs):
    for output in outputs[::2]:
        if not verbs.perftest_rows(output):
            raise GuestError(f'perftest reported nothing:\n{output}')


def test_eight_queue_pairs():
    both = pair.kept()
    for program in ('ib_send_bw', 'ib_write_bw', 'ib_read_bw'):
        verbs.bandwidth(both.b, both.a, program, 8192, 100, '-q 8')


def test_eight_queue_pairs_both_ways():
    both = pair.kept()
    for program in ('ib_send_bw', 'ib_write_bw', 'ib_read_bw'):
        verbs.bandwidth(both.b, both.a, program, 8192, 50, '-q 8 -b')


@tap.seconds(300)
def test_two_processes_of_eight_queue_pairs():
    both = pair.kept()
    commands = []
    for program in ('ib_write_bw', 'ib_send_bw'):
        commands += verbs.start(both.b, both.a, f'{program} -d {pair.DEVICE} -F -q 8 -s 8192 -n 200')
    rows(verbs.finish(commands, 240))


@tap.seconds(300)
def test_processes_in_opposite_directions():
    both = pair.kept()
    commands = verbs.start(both.b, both.a, f'ib_write_bw -d {pair.DEVICE} -F -q 8 -s 8192 -n 200')
    commands += verbs.start(both.a, both.b, f'ib_read_bw -d {pair.DEVICE} -F -q 8 -s 8192 -n 200')
    rows(verbs.finish(commands, 240))


@tap.seconds(300)
def test_four_pingpongs_with_checked_data():
    both = pair.kept()
    commands = []
    for number in range(4):
        server, client = both.guests if number % 2 else reversed(both.guests)
        commands += verbs.start(server, client, f'ibv_rc_pingpong -d {pair.DEVICE} -c -e -s {1000 + 3000 * number} -n 100')
    for output in verbs.finish(commands, 240):
        if 'invalid data' in output:
            raise GuestError(f'wrong data:\n{output}')


def test_one_guest_talks_to_itself():
    guest = pair.kept().a
    verbs.pingpong(guest, guest, '-e -n 200')
    verbs.bandwidth(guest, guest, 'ib_send_bw', 65536, 50, '-e')


if __name__ == '__main__':
    tap.main()
