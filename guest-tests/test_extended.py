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
    resources.run(kept(make_lab, cpus=1, **options).a, f'{PREPARE.get(case, "true")} && exec extended-test {case}')


def case(make_lab, name):
    return lambda: run(make_lab, name)


def test_send_slots():
    run(infiniband, 'send_slots', properties=FEW_SLOTS)


if __name__ == '__main__':
    globals().update({f'test_{link.__name__}_{name}': case(link, name) for link in (infiniband, roce) for name in CASES})
    tap.main()
