#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Verbs beyond the classic ones (programs/extended-test.c), on both link layers, and that each leaves the driver with nothing
in use."""
from harness import resources, tap
from harness.labs import infiniband, kept, roce

CASES = ('clock', 'timestamps', 'moderation', 'ignore_overrun', 'domains', 'import', 'dmabuf', 'access_flags', 'refused')
PREPARE = {'dmabuf': 'modprobe vgem'}
FEW_SLOTS = {'log-sq-slots': 17}  # so that a process can have them all


def run(make_lab, case, **options):
    guest = kept(make_lab, cpus=1, **options).a
    before = resources.in_use(guest)
    prepare = PREPARE.get(case, 'true')
    for line in guest.run(f'{prepare} && exec extended-test {case}', timeout=120).output.splitlines():
        print(f'# {line}')
    resources.wait_for(guest, before)


def case(make_lab, name):
    return lambda: run(make_lab, name)


def test_send_slots():
    run(infiniband, 'send_slots', properties=FEW_SLOTS)


if __name__ == '__main__':
    globals().update({f'test_{link.__name__}_{name}': case(link, name) for link in (infiniband, roce) for name in CASES})
    tap.main()
