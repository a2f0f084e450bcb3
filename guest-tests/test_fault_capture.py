#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What two cards capture of the cable between them while one of them spoils packets, taken apart by tshark."""
from harness import captures, faults, resources, tap, verbs
from harness.guest import GuestError
from harness.labs import infiniband

# Packets that are corrupted are so where they are received: the capture of the other card has them whole.
FAULTS = [
    {'action': 'drop', 'probability': 0.01},
    {'action': 'duplicate', 'probability': 0.01},
    {'action': 'reorder', 'probability': 0.01, 'distance': 2},
    {'action': 'delay', 'probability': 0.01, 'delay-ns': 3000000},
    {'action': 'corrupt', 'direction': 'rx', 'probability': 0.01},
]


def check_times(path, low, high):
    """Of the guest's clock, and in order."""
    times = [time for time, _, _ in captures.packets(path)]
    if times != sorted(times):
        raise GuestError('the packets are not in the order of their times')
    if not low <= times[0] <= times[-1] <= high:
        raise GuestError(f'packets from {times[0]} to {times[-1]} s, not between {low} and {high}')


def test_faults_in_a_capture():
    with infiniband(capture=True) as both:
        for server, client in (both.a, both.b), (both.b, both.a):
            with faults.planned([both.a], faults.ending(FAULTS, 6)):
                verbs.pingpong(server, client, '-s 8192 -n 100 -m 1024')
        # All that is held back leaves at the end of a plan, so that what is counted has passed.
        with faults.planned([both.a], FAULTS):
            verbs.bandwidth(both.a, both.b, 'ib_read_bw', 8192, 50, '-m 1024 -t 2')
        counters = resources.counters(both.a, 'cumulative')
        for guest in both.guests:
            captures.check(guest.card.captured)
            # The virtual clock starts with the machine, before the guest's own.
            uptime = float(guest.run('cat /proc/uptime').output.split()[0])
            check_times(guest.card.captured, 0, uptime + guest.boot_seconds)
        captures.check_comments(both.a.card.captured, counters, [rule['action'] for rule in FAULTS])


if __name__ == '__main__':
    tap.main()
