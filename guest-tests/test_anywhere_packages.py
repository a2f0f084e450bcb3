#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The packages of `make packages` in whole systems: Debian 12 and 13, as their archive has them (scripts/build-system), on the QEMU of
the package. It takes a quarter of an hour, as DKMS compiles there, and is `make check-packages`."""
import glob
import os
import re
import shutil
import subprocess
import tempfile

from harness import links, paths, tap, verbs
from harness.check import expect
from harness.devices import Nic
from harness.lab import Lab
from harness.system import SystemInfinibandCard, SystemMachine, SystemRoceCard

DEBS = os.path.join(paths.BUILD, 'debs')
PACKAGES = ['rdma-hca-dkms', 'qemu-system-rdma-hca', 'rdma-hca-tools']
# The suites, and the rdma-core of each.
PROVIDERS = {'bookworm': 'rdma-hca-provider44', 'trixie': 'rdma-hca-provider56'}
COMPILE_SECONDS = 1800  # a driver, by an emulated processor
LIMIT = 3600
# What comes and goes by itself is not looked at; of DKMS and apt what is about other packages stays.
FILES = ("find / -xdev \\( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/log -o -path /var/cache "
         "-o -path /var/tmp -o -path /var/lib/systemd -o -path /var/lib/dpkg -o -path /var/lib/apt -o -path /root "
         "\\) -prune -o -print | LC_ALL=C sort")
KINDS = {'infiniband': (SystemInfinibandCard, 'cable', links.unix_cable), 'roce': (SystemRoceCard, 'lan', links.stream)}


def deb(name):
    found = glob.glob(os.path.join(DEBS, f'{name}_*.deb'))
    expect(f'package {name}', len(found) == 1, found)
    return found[0]


class Installed:
    """The packages of a system, in a folder of the test's."""

    def __init__(self, suite, folder):
        self.suite, self.folder = suite, folder
        self.packages = [*PACKAGES, PROVIDERS[suite]]
        self.root = os.path.join(folder, 'root.img')
        self.disk = os.path.join(folder, 'packages.tar')
        self._qemu = os.path.join(folder, 'qemu')
        subprocess.run(['dpkg-deb', '-x', deb('qemu-system-rdma-hca'), self._qemu], check=True)
        shutil.copy(os.path.join(paths.BUILD, 'systems', suite, 'root.img'), self.root)
        subprocess.run(['tar', '-c', '-f', self.disk, '-C', DEBS, *(os.path.basename(deb(name)) for name in self.packages)], check=True)

    def launch(self):
        """Its firmware is where the package's dependencies have it, which need not be on this host."""
        return [os.path.join(self._qemu, 'usr/lib/rdma-hca/bin/qemu-system-x86_64'), '-L', paths.QEMU_DATA]

    def machine(self, *devices, **options):
        return SystemMachine(*devices, system=self.suite, root=self.root, launch=self.launch(), **options)

    def pair(self, kind):
        card, link, end = KINDS[kind]
        return Lab([self.machine(Nic('net'), card(link))] * 2, {'net': links.stream(), link: end()})


def install(installed):
    """In a machine that has no card."""
    with Lab([installed.machine(keeps=True, disks=(installed.disk,))]) as lab:
        guest = lab.a
        guest.run(f'{FILES} >/root/before')
        guest.run(f'mkdir /tmp/debs && cd /tmp/debs && tar -xf {guest.disk(0)} && apt-get install -y --no-install-recommends ./*.deb '
                  '>/root/install.log 2>&1 || { tail -n 50 /root/install.log; exit 1; }', COMPILE_SECONDS)
        expect('built by DKMS', ': installed' in guest.run('dkms status rdma-hca').output, guest.run('dkms status; tail /root/install.log').output)
        expect('its place', '/updates/dkms/rdma_hca.ko' in guest.run('modinfo -n rdma_hca').output, guest.run('modinfo rdma_hca').output)
        # It finds the firmware of a machine, of its screen and of its network card.
        guest.run('echo quit | qemu-system-rdma-hca -S -display none -monitor stdio -nic user,model=virtio -device rdma-hca', 120)
        guest.run('qemu-system-rdma-hca -device rdma-hca,help | grep -q link.*layer && hca-switch --help >/dev/null && '
                  'zcat /usr/share/man/man7/rdma-hca.7.gz | grep -q link.*layer')
        guest.switch_off()


def known_to_udev(guest, kind):
    """Modules came by themselves, and the device has the name and description that such cards have."""
    prefix, described, module = {'infiniband': ('ibp', 'ID_RDMA_INFINIBAND', 'ib_ipoib'), 'roce': ('rocep', 'ID_RDMA_ROCE', 'rdma_ucm')}[kind]
    name = guest.card.name
    expect('name', re.fullmatch(rf'{prefix}\d+s\d+', name), name)
    told = guest.run(f'udevadm info /sys/class/infiniband/{name}').output
    expect('description', f'{described}=1' in told, told)
    expect('modules', module in guest.run('systemctl start rdma-hw.target; udevadm settle; lsmod').output, guest.run('lsmod').output)
    expect('anybody may use it', guest.run('stat -c %a /dev/infiniband/uverbs0').output.strip() == '666', name)


def as_user(guest, command):
    return guest.spawn(f"exec runuser -u user -- sh -c 'cd && {command}'")


def demonstrate(both):
    """What `make run` shows, by a user without rights and Debian's programs."""
    a, b = both.guests
    for guest in both.guests:
        guest.run(f'name=$(basename /sys/bus/virtio/drivers/virtio_net/virtio*/net/*) && '
                  f'ip address replace {verbs.address(guest)}/24 dev $name && ip link set $name up')
        found = as_user(guest, 'ibv_devinfo').wait().output
        expect('device', guest.card.name in found and 'PORT_ACTIVE' in found, found)
    for program in ('ibv_rc_pingpong -n 200', 'ib_write_bw -n 200', 'ib_read_bw -n 200', 'ib_send_lat -n 200', 'ib_atomic_lat -n 100'):
        line = {guest: f'{program} {guest.card.options(program.split()[0], 4)}' for guest in both.guests}
        server = as_user(b, line[b])
        b.run('until ss -ltn | grep -q :185; do sleep 0.1; done')
        client = as_user(a, f'{line[a]} {verbs.address(b)}')
        client.wait(120)
        server.wait(120)


def names(guest):
    """The rule for software that wants names of another driver's."""
    guest.run('cp /usr/share/doc/rdma-hca-dkms/examples/59-rdma-hca-names.rules /etc/udev/rules.d/ && udevadm control --reload && '
              'modprobe -r rdma_hca && modprobe rdma_hca && udevadm settle')
    expect('name', guest.card.name == 'mlx5_0', guest.card.name)
    expect('libfabric', 'mlx5_0' in guest.run('fi_info -p verbs').output, guest.run('fi_info -p verbs', check=False).output)
    guest.run('rm /etc/udev/rules.d/59-rdma-hca-names.rules')


def remove(guest, packages):
    """Nothing is left."""
    guest.run('modprobe -r rdma_hca')
    guest.run(f'apt-get purge -y {" ".join(packages)} >/tmp/purge 2>&1 || {{ cat /tmp/purge; exit 1; }}', COMPILE_SECONDS)
    left = guest.run(f'{FILES} >/root/after; LC_ALL=C comm -13 /root/before /root/after').output
    expect('left behind', not left, left)
    expect('gone', not guest.run('LC_ALL=C comm -23 /root/before /root/after').output, guest.run('LC_ALL=C comm -23 /root/before /root/after').output)
    expect('module', guest.run('modinfo rdma_hca', check=False).status != 0)


def in_system(suite):
    with tempfile.TemporaryDirectory(dir=paths.RUN) as folder:
        installed = Installed(suite, folder)
        install(installed)
        with installed.pair('roce') as both:
            for guest in both.guests:
                known_to_udev(guest, 'roce')
            demonstrate(both)
        with installed.pair('infiniband') as both:
            for guest in both.guests:
                known_to_udev(guest, 'infiniband')
            demonstrate(both)
            names(both.a)
            remove(both.a, installed.packages)


@tap.only_long
@tap.seconds(LIMIT)
def test_debian_12():
    in_system('bookworm')


@tap.only_long
@tap.seconds(LIMIT)
def test_debian_13():
    in_system('trixie')


def test_manual_pages():
    """Options that programs name are in their pages."""
    said = subprocess.run([paths.SWITCH, '--help'], capture_output=True, text=True, check=True).stdout
    with open(os.path.join(paths.TOP, 'packaging', 'man', 'hca-switch.1.rst')) as page:
        text = page.read()
    options = re.findall(r'^  (?:-\w, )?(--[a-z-]+)', said, re.MULTILINE)
    missing = [option for option in options if option not in text]
    expect('options', len(options) > 10 and not missing, missing)


if __name__ == '__main__':
    tap.main()
