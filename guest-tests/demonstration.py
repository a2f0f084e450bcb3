#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What `make run` shows: two guests, their cards, and unmodified verbs programs that talk through them. SNAPSHOT=1 in the
environment: they go on from what `make snapshot` has kept, or keeps now. LINK=roce: with RoCE cards."""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
sys.dont_write_bytecode = True

from harness import verbs  # noqa: E402
from harness.guest import GuestError  # noqa: E402
from harness.labs import infiniband, roce, snapshots  # noqa: E402

SIZES = [64, 4096, 65536, 1048576]
BANDWIDTH = ['ib_send_bw', 'ib_write_bw', 'ib_read_bw']


def say(text=''):
    print(text, flush=True)


def iterations(size):
    return max(20, min(1000, 16 * 1048576 // size))


def demonstrate(lab):
    a, b = lab.guests
    say(f'Two guests are up ({a.boot_seconds:.1f} s and {b.boot_seconds:.1f} s after their start, '
        f'accelerator {a.accelerator}).')
    for guest in lab.guests:
        show = f'ibv_devinfo -d {guest.card.name}'
        say(f'\n{guest.name}$ {show}')
        say(guest.run(show).output.rstrip())

    say()
    for how, options in (('polling', ''), ('with events', '-e')):
        say(f'ibv_rc_pingpong {how:12} {verbs.pingpong(b, a, options):8.1f} us an exchange, data checked')

    say(f'\n{"bytes":>9}' + ''.join(f'{program:>14}' for program in BANDWIDTH) + f'{"ib_send_lat":>14}')
    say(f'{"":9}' + f'{"MB/s":>14}' * len(BANDWIDTH) + f'{"us, average":>14}')
    for size in SIZES:
        row = [verbs.measured(verbs.bandwidth, b, a, program, size, iterations(size)) for program in BANDWIDTH]
        row.append(verbs.measured(verbs.latency, b, a, 'ib_send_lat', size, min(500, iterations(size))))
        say(f'{size:9}' + ''.join(f'{value:14.2f}' for value in row))

    lab.check()


def main():
    link = os.environ.get('LINK', '')
    kept = snapshots(link)
    if not kept:
        sys.exit('rdma-hca: make run: LINK is ib or roce')
    lab = kept.lab() if os.environ.get('SNAPSHOT') == '1' else (roce if link == 'roce' else infiniband)(boots=True)
    start = time.monotonic()
    try:
        demonstrate(lab.start())
    except (GuestError, OSError) as error:
        lab.stop(keep=True)
        print(f'rdma-hca: the demonstration failed: {error}', file=sys.stderr)
        print(f'rdma-hca: the consoles of the guests are in {lab.folder}', file=sys.stderr)
        sys.exit(1)
    lab.stop()
    say(f'\nAll went well: both guests, ping-pong by polling and by events, and every row of the table '
        f'({time.monotonic() - start:.0f} s).')


main()
