#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/applications.md: what it says can be typed in two guests works."""
import os
import re
import sys

from harness import lab, paths, tap
from harness.check import expect
from harness.examples import Document, ExampleCard, apart, machine
from harness.guest import GuestError
from harness.lab import Lab
from harness.labs import APPLICATIONS, kept, roce
from harness.terminal import Terminal

DOCUMENT = Document('docs/applications.md')


class ManagedCard(ExampleCard):
    """The first guest's gets the manager."""

    def configure(self):
        if self.guest.number == 1:
            self.guest.run(f'set -e\n{DOCUMENT.example("opensm -B")}', 120)


def managed():
    """Two guests with InfiniBand cards, as the document starts them, and its manager."""
    first = DOCUMENT.example('-object rdma-hca-cable')
    second = re.sub(r'guid=\w+', DOCUMENT.inline(r'guid=\w+'), first.replace('server=on', DOCUMENT.inline('server=off')))
    return Lab([machine(text, ManagedCard(), layers=APPLICATIONS['layers']) for text in apart(first, second)])


def run(both, first, second, then=''):
    """The commands of both guests; then: more for the second."""
    both.a.run(f'grep -q configfs /proc/mounts || {{ {DOCUMENT.example("mount -t configfs")}\n}}')
    both.a.run(f'set -e\n{first}')
    result = both.b.run(f'set -e\n{second}\n{then}', 150)
    if 'verify:' in result.output or 'err=' in result.output and 'err= 0' not in result.output:
        raise GuestError(f'{result}')


def run_scsi(both, first, second, then=''):
    """The same of a target, which needs a unit."""
    make = DOCUMENT.example('fd_dev_name')
    run(both, f'[ -e /back/unit ] || {{ {make}\n}}\n{first}', second, then)


def test_nvme():
    run(kept(roce, **APPLICATIONS), *DOCUMENT.examples('modprobe nvme'))


def test_nfs():
    run(kept(roce, **APPLICATIONS), *DOCUMENT.examples('modprobe -a nfs'), 'cp -r /etc /mnt/nfs/ && umount /mnt/nfs')


def test_iser():
    run_scsi(kept(roce, **APPLICATIONS), *DOCUMENT.examples('iqn.2026-11.test'))


# The second guest hears a moment after the end that the disk has gone.
GONE = 'until ! grep sda /proc/partitions; do sleep 0.2; done'


def test_srp_at_address():
    run_scsi(kept(roce, **APPLICATIONS), *DOCUMENT.examples('5555'), GONE)


def test_manager():
    output = kept(managed).b.run(f'set -e\n{DOCUMENT.example("ibnetdiscover")}', 120).output
    for guid in re.findall(r'guid=0x(\w+)', DOCUMENT.text):
        expect('the card, by ibnetdiscover and iblinkinfo', re.search(rf'^Ca.*{guid}', output, re.M) and
               re.search(rf'^ +0x{guid} .* Active/ +LinkUp', output, re.M), guid, output)


def test_ipoib():
    both = kept(managed)
    run(both, *DOCUMENT.examples('modprobe ib_ipoib'))
    for guest in both.guests:
        guest.run(f'set -e\n{DOCUMENT.example("echo connected")}')
    both.b.run(DOCUMENT.example('ping', '-s 65000'), 120)


def test_srp():
    run_scsi(kept(managed), DOCUMENT.example('acls/5254'), DOCUMENT.example('ibsrpdm'), GONE)


def test_shell():
    """The consoles of such guests, one after the other, as there is no tmux."""
    lab.stop_all()
    first, second = re.findall(r'guid=0x(\w+)', DOCUMENT.text)
    with Terminal([sys.executable, os.path.join(paths.TOP, 'guest-tests', 'shell.py')], LINK='managed', PATH='') as terminal:
        for guid in first, second:
            terminal.wait_shown('Ctrl-]')
            terminal.type('cat /sys/class/infiniband/*/ports/1/state /sys/class/infiniband/*/node_guid; which opensm\n')
            terminal.wait_shown('INIT')
            terminal.wait_shown(':'.join(guid[at:at + 4] for at in range(0, 16, 4)))
            terminal.wait_shown('/sbin/opensm')
            terminal.type('\x1d')


if __name__ == '__main__':
    tap.main()
