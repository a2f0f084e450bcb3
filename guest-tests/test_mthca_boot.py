#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine that boots over InfiniBand, by a driver that is not Linux's: see harness/ipxe.py. Not in the short form: on a busy
machine iPXE loses what the manager asks, and may not come to its end in time."""
from harness import ipxe, tap, verbs
from harness.check import expect


@tap.only_long
def test_boot():
    """iPXE finds the card, joins the fabric and fetches Linux, to whose driver it leaves the card."""
    with ipxe.NetBootLab() as both:
        shown = both.b.kernel_log()
        for text in ('using mt25204', '[Link:up'):
            expect(f'"{text}"', text in shown, shown[:4000])
        verbs.pingpong(both.a, both.b, '-n 50')
        both.b.run(f'exec ping -c 3 -i 0.2 {both.a.card.address()}')


if __name__ == '__main__':
    tap.main()
