#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Verbs beyond the classic ones (programs/extended-test.c), on both link layers, and that each leaves the driver with nothing
in use."""
from harness import resources, tap
from harness.labs import infiniband, kept, roce

CASES = {
    'clock': 'true',
    'timestamps': 'true',
    'moderation': 'true',
    'ignore_overrun': 'true',
    'domains': 'true',
    'import': 'true',
    'dmabuf': 'modprobe vgem',
    'access_flags': 'true',
    'refused': 'true',
}


def run(make_lab, case):
    guest = kept(make_lab, cpus=1).a
    before = resources.in_use(guest)
    for line in guest.run(f'{CASES[case]} && exec extended-test {case}', timeout=120).output.splitlines():
        print(f'# {line}')
    resources.wait_for(guest, before)


def case(make_lab, name):
    return lambda: run(make_lab, name)


if __name__ == '__main__':
    globals().update({f'test_{link.__name__}_{name}': case(link, name) for link in (infiniband, roce) for name in CASES})
    tap.main()
