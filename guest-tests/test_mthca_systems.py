#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""An InfiniHost III Lx in whole systems of Debian 12 and 13, as their archive has them (scripts/build-system), from their first boot:
nothing is done in them but what a test says. `make check-mthca` has these."""
import functools
import re

from harness import cm_programs, fabric, ipoib, links, mthca, srp, tap, verbs
from harness.check import expect
from harness.labs import kept
from harness.system import NamedByUdev, SystemMachine, SystemNic

LIVES = 50
SECONDS = 1800


class Card(NamedByUdev, mthca.ManagedMthcaCard):
    driver = 'ib_mthca'

    def configure(self):
        """When udev has named its interface."""
        self.guest.run('modprobe -a ib_umad ib_ipoib && udevadm settle')
        super().configure()


def pair(suite):
    """A subnet manager is in the first guest."""
    machine = SystemMachine(SystemNic('net'), Card('cable'), system=suite)
    return fabric.FabricLab([machine] * 2, {'net': links.stream(), 'cable': links.unix_cable()})


bookworm, trixie = functools.partial(pair, 'bookworm'), functools.partial(pair, 'trixie')


def check_known(both):
    """Kernel and udev have found it, and nobody complains."""
    for guest in both.guests:
        print(f'# {guest.run("uname -r").output.strip()}')
        shown = guest.run('ibv_devinfo -v').output
        expect('its kind', 'vendor_part_id:\t\t\t25204' in shown and 'PORT_ACTIVE' in shown, shown)
        log = guest.run('journalctl -k | grep mthca').output
        expect('no complaints', not re.search('fail|abort|error', log, re.IGNORECASE), log)


def check_verbs(both):
    for service in ('rc', 'uc', 'ud', 'srq'):
        verbs.pingpong(both.a, both.b, '-n 200', service)
        verbs.pingpong(both.b, both.a, '-e -n 200 -s 2000', service)
    for program in ('ib_send_bw', 'ib_write_bw', 'ib_read_bw', 'ib_atomic_bw', 'ib_send_lat -e', 'ib_write_lat -s 64 -I 64', 'ib_send_bw -c UD',
                    'ib_send_bw --use-srq -q 4', 'ib_read_lat', 'ib_write_bw -c UC'):
        verbs.perftest(both.a, both.b, program, '-n 200')


def check_fabric(both):
    for guest in both.guests:
        for program in ('ibnetdiscover', 'ibstat', 'perfquery', 'sminfo', 'saquery', f'smpquery portinfo {fabric.lid(both.b)}'):
            guest.run(f'exec {program}')
    ipoib.ping(both.a, both.b.card.address())
    with ipoib.connected_mode(both):
        ipoib.ping(both.a, both.b.card.address(), '-s 60000')
    cm_programs.rping(both)
    cm_programs.connections_at_once(both)
    cm_programs.multicast(both.a, both.b, '239.1.2.3')


def check_storage(both):
    srp.serve(both.a, both.b)
    with srp.logged_in(both.b) as disk:
        both.b.run(f'dd if=/dev/urandom of={disk} bs=1M count=8 oflag=direct && dd if={disk} of=/dev/null bs=1M count=8 iflag=direct')


def check_lives(both):
    with both.manager.expecting(*fabric.ANEW):
        for _ in range(LIVES):
            both.b.run('modprobe -r ib_srp ib_srpt ib_ipoib ib_umad; modprobe -r ib_mthca && modprobe ib_mthca', 120)
        both.b.card.configure()
        both.wait_active()
    verbs.pingpong(both.a, both.b, '-n 100')


CHECKS = (check_known, check_verbs, check_fabric, check_storage, check_lives)


def case(make, check):
    return tap.only_long(tap.seconds(SECONDS)(lambda: check(kept(make))))


for suite in ('bookworm', 'trixie'):
    for check in CHECKS:
        globals()[f'test_{suite}_{check.__name__.removeprefix("check_")}'] = case(globals()[suite], check)

if __name__ == '__main__':
    tap.main()
