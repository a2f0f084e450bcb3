# SPDX-License-Identifier: GPL-2.0-or-later
"""What is in a machine. A device knows its part of QEMU's command line, what is to be set up in the guest, and when programs
can use it. A new one is a class here."""
import copy
import ipaddress
import json
import os
import random

from . import wait

MTU = 4500  # of an interface, so that an RDMA MTU of 4096 fits
ACTIVE_TIMEOUT = 20
RECORDED = 1024  # events and packets, what came before a failure
# For two guests of one processor each, and their cards.
HAS_SPARE_PROCESSORS = len(os.sched_getaffinity(0)) >= 4


def _card_options():
    """CARD_OPTIONS from the environment, NAME=VALUE,... or a JSON object: properties of all cards of ours that are not given
    others by a test. Faults in it are by chance, another one for each card."""
    given = os.environ.get('CARD_OPTIONS', '')
    if given.startswith('{'):
        options = json.loads(given)
    else:
        pairs = (option.split('=', 1) for option in given.split(',') if option)
        options = {name: int(value) if value.isdigit() else value for name, value in pairs}
    if 'faults' in options:
        options.setdefault('fault-seed', random.getrandbits(32))
    return options


class Device:
    """A device as a Machine describes it. link: the name of the link that it is plugged into."""

    def __init__(self, link=None):
        self.link = link

    def put_into(self, guest, slot, backend):
        """The device of a guest that is made after this; slot: its place in the guest's list; backend: its end of the link."""
        device = copy.copy(self)
        device.guest, device.slot, device.backend = guest, slot, backend
        guest.devices.append(device)
        return device

    def arguments(self):
        """Of QEMU, behind those of the backend."""
        raise NotImplementedError

    def configure(self):
        """Set it up in the guest, which has just started, or has just found the device."""

    def wait_active(self, timeout=ACTIVE_TIMEOUT):
        """Wait until programs can use it."""


class Interface(Device):
    """A device with an Ethernet interface in the guest, which has addresses in a subnet of its segment's."""
    subnet = 0

    @property
    def mac(self):
        return f'52:54:00:00:{self.slot:02x}:{self.guest.number:02x}'

    def address(self, version=4):
        number = self.guest.number
        return f'10.0.{self.subnet}.{number}' if version == 4 else f'fd00:{self.subnet}::{number}'


class Nic(Interface):
    """A virtio network card, for what programs say to each other first. The image sets up a machine's first one."""

    def arguments(self):
        return ['-device', f'virtio-net-pci,netdev={self.backend.id},mac={self.mac},romfile=,disable-legacy=on,host_mtu=9000']


class RdmaDevice(Device):
    """A device with a name among the guest's RDMA devices. Port 1 is all that there is."""
    prefix = None  # of the name

    @property
    def number(self):
        """Among those of the guest whose names begin so."""
        return [device for device in self.guest.devices if getattr(device, 'prefix', None) == self.prefix].index(self)

    @property
    def name(self):
        return f'{self.prefix}{self.number}'

    def options(self, program, version):
        """How a verbs program is told to use it; version: of IP, where its addresses are the interface's."""
        raise NotImplementedError

    def wait_port(self, state, timeout=ACTIVE_TIMEOUT):
        """Wait until the port is in a state (ACTIVE, DOWN, ...)."""
        path = f'/sys/class/infiniband/{self.name}/ports/1/state'

        def found():
            return self.guest.run(f'cat {path} 2>&1', check=False).output.strip()

        wait.until(lambda: found().endswith(f': {state}'), lambda: f'{state}: {self.guest.name}: {path}: {found()}', timeout)

    def wait_active(self, timeout=ACTIVE_TIMEOUT):
        self.wait_port('ACTIVE', timeout)


class Hca(RdmaDevice):
    """Our card. properties: more of the device's; capture: write all that passes the link to a file, see captured; slotted: it
    is in a slot of its own, which it can be taken out of (see pci.py). polling: its thread looks for work for some microseconds
    before it sleeps, which helps where it has a processor to itself. recorder: entries of its flight recorder, where neither the
    properties nor CARD_OPTIONS say how many."""
    prefix = 'rdma_hca'

    def __init__(self, link=None, properties=None, capture=False, slotted=False, polling=HAS_SPARE_PROCESSORS, recorder=RECORDED):
        super().__init__(link)
        self.properties, self.capture, self.slotted, self.polling = properties or {}, capture, slotted, polling
        self.recorder = recorder

    @property
    def id(self):
        return f'hca{self.number}'

    @property
    def captured(self):
        return os.path.join(self.guest.folder, f'{self.guest.name}-{self.id}.pcapng')

    def device(self):
        """QEMU's description of it."""
        device = {'driver': 'rdma-hca', 'id': self.id, 'recorder': self.recorder,
                  **self.kind(), **_card_options(), **self.properties}
        if self.polling:
            device['iothread'] = f'io{self.number}'
        if self.slotted:
            device['bus'] = self.slot_id
        if self.backend:
            device[self.backend.property] = self.backend.id
        if self.capture:
            device['capture'] = os.path.basename(self.captured)
        return device

    @property
    def number_of_keys(self):
        """Of memory: entries of the card's table."""
        return 1 << self.properties.get('log-mpts', 15)

    @property
    def slot_id(self):
        return f'slot{self.number}'

    def arguments(self):
        slot = ['-device', f'pcie-root-port,id={self.slot_id},chassis={self.number + 1}'] if self.slotted else []
        thread = ['-object', f'iothread,id=io{self.number}'] if self.polling else []
        return [*slot, *thread, '-device', json.dumps(self.device())]

    def kind(self):
        """Properties of this kind of card."""
        raise NotImplementedError


class InfinibandCard(Hca):
    def kind(self):
        # Two cards with the same faults are not to have the same chances.
        return {'lid': self.guest.number, 'fault-seed': self.guest.number}

    def options(self, program, version):
        return f'-d {self.name}'


class ManagedCard(InfinibandCard, Interface):
    """It has no LID, and its port does not work, before a subnet manager says so (see fabric.py). Its interface is IPoIB's.
    managed: the property; None leaves it to the other end of the cable, a switch."""

    def __init__(self, link=None, subnet=1, managed='on', **options):
        super().__init__(link, **options)
        self.subnet, self.managed = subnet, managed

    def kind(self):
        managed = {'managed': self.managed} if self.managed else {}
        return {'guid': 0x525400fffe0a0000 + (self.slot << 8) + self.guest.number, 'fault-seed': self.guest.number, **managed}

    def configure(self):
        sysfs = f'/sys/class/infiniband/{self.name}'
        self.guest.run(f'modprobe -a ib_umad ib_ipoib && echo -n {self.guest.name} >{sysfs}/node_desc')
        self.interface = self.guest.run(f'ls {sysfs}/device/net').output.strip()
        self.guest.run(f'echo 0 >/proc/sys/net/ipv6/conf/{self.interface}/accept_dad; ip link set {self.interface} up && '
                       f'ip address replace {self.address()}/24 dev {self.interface} && '
                       f'ip address replace {self.address(6)}/64 dev {self.interface}')

    def wait_active(self, timeout=60):
        """The interface has a carrier when it has joined the group that it broadcasts to."""
        super().wait_active(timeout)
        wait.until(lambda: self.guest.run(f'cat /sys/class/net/{self.interface}/carrier', check=False).output.strip() == '1',
                   f'joined: {self.guest.name}: {self.interface}', timeout)


class RoceDevice(RdmaDevice, Interface):
    """Speaks RoCEv2 by its interface, whose addresses are its GIDs."""

    def __init__(self, link=None, subnet=1, mtu=MTU, **options):
        super().__init__(link, **options)
        self.subnet, self.mtu = subnet, mtu

    def configure(self):
        self.interface = self.guest.run(f'grep -l {self.mac} /sys/class/net/*/address').output.split('/')[4]
        # As long as Linux makes sure that nobody else has its link-local address (it takes a second or two), the RDMA core
        # finds no neighbours by IPv6.
        self.guest.run(f'for name in default {self.interface}; do echo 0 >/proc/sys/net/ipv6/conf/$name/accept_dad; done; '
                       f'ip address replace {self.address()}/24 dev {self.interface}')
        self.up()

    def up(self):
        """The interface is up; IPv6 addresses go when it goes down."""
        self.guest.run(f'ip link set {self.interface} mtu {self.mtu} up; '
                       f'ip address replace {self.address(6)}/64 dev {self.interface}')

    def wait_active(self, timeout=ACTIVE_TIMEOUT):
        super().wait_active(timeout)
        # Linux takes up to a second to see that the carrier is there, and has no way to the link-local address before.
        wait.until(lambda: 'fe80:' in self.guest.run(f'ip -6 route show table local dev {self.interface}', check=False).output,
                   f'a way to its link-local address: {self.guest.name}: {self.interface}', timeout)
        for version in (4, 6):
            self.gid_index(version, timeout)

    def options(self, program, version):
        return f'-d {self.name} {"-g" if program.startswith("ibv_") else "-x"} {self.gid_index(version)}'

    def gid_index(self, version=4, timeout=ACTIVE_TIMEOUT):
        """The index of the RoCEv2 GID that is the interface's address."""
        return self.gid_index_of(self.address(version), timeout)

    def gid_index_of(self, ip, timeout=ACTIVE_TIMEOUT):
        """The index of the RoCEv2 GID for an IP address."""
        ip = ipaddress.ip_address(ip)
        text = (ip if ip.version == 6 else ipaddress.ip_address(f'::ffff:{ip}')).exploded
        script = (f'cd /sys/class/infiniband/{self.name}/ports/1/gids && for index in $(grep -l {text} *); do '
                  'grep -q v2 ../gid_attrs/types/$index && echo $index; done')
        found = wait.until(lambda: self.guest.run(script, check=False).output.split(),
                           f'there: {self.guest.name}: a RoCEv2 GID of {self.name} for {ip}', timeout)
        return int(found[0])


class RoceCard(RoceDevice, Hca):
    def kind(self):
        return {'link-layer': 'roce', 'mac': self.mac}

    def interface_counters(self):
        """What the card has counted of its Ethernet function (ethtool -S), by name."""
        lines = self.guest.run(f'ethtool -S {self.interface}').output.splitlines()[1:]
        return {name.strip(): int(value) for name, value in (line.split(':') for line in lines)}


class SoftRoce(RoceDevice, Nic):
    """A virtio network card with Linux's Soft-RoCE on it."""
    prefix = 'rxe'

    def configure(self):
        super().configure()
        # Soft-RoCE wants a CRC-32; under TCG the generic one is the fastest. Newer kernels have one of their own.
        self.guest.run('modprobe -q crc32_generic; modprobe rdma_rxe && '
                       f'rdma link add {self.name} type rxe netdev {self.interface}')
