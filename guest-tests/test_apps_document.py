#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/applications.md: what it says can be typed in two guests works."""
from harness import tap
from harness.examples import Document
from harness.guest import GuestError
from harness.labs import APPLICATIONS, kept, roce


DOCUMENT = Document('docs/applications.md')


def run(word, then=''):
    """The commands of both guests, those that have this word; then: more for the second."""
    both = kept(roce, **APPLICATIONS)
    first, second = DOCUMENT.examples(word)
    both.a.run(f'grep -q configfs /proc/mounts || {{ {DOCUMENT.example("mount -t configfs")}\n}}')
    both.a.run(f'set -e\n{first}')
    result = both.b.run(f'set -e\n{second}\n{then}', 150)
    if 'verify:' in result.output or 'err=' in result.output and 'err= 0' not in result.output:
        raise GuestError(f'{result}')


def test_nvme():
    run('modprobe nvme')


def test_nfs():
    run('modprobe -a nfs', 'cp -r /etc /mnt/nfs/ && umount /mnt/nfs')


def test_iser():
    run('iqn.2026-11.test')


if __name__ == '__main__':
    tap.main()
