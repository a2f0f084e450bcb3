# SPDX-License-Identifier: GPL-2.0-or-later
"""Who is compared with whom. All that are devices are in the same two guests, each on a link of its own, and are measured in
turn. A new one is a row of CONTENDERS."""
import functools

from harness import links
from harness.devices import InfinibandCard, Interface, Nic, RdmaDevice, RoceCard, SoftRoce
from harness.lab import Lab, Machine

# The first device of both guests, which programs say to each other by what they are about to do.
NET = 'net'


class Contender:
    """device(link, slot): describes it, in both machines; link(): what joins the two; without them it is no device of its own.
    against: those to whom its figures are put in proportion, beside the sockets."""

    def __init__(self, name, device=None, link=None, against=()):
        self.name, self.device, self.link, self.against = name, device, link, against


# What a flight recorder costs is not to be in the figures; CARD_OPTIONS=recorder=N shows it.

def _infiniband(link, slot):
    return InfinibandCard(link, recorder=0)


def _roce(link, slot):
    return RoceCard(link, subnet=slot, recorder=0)


def _cable(**options):
    # Looked up late: what joins cards is the links' business.
    return lambda: links.unix_cable(**options)


# virtio-net is the interface that Soft-RoCE speaks by. The sockets have no guests.
CONTENDERS = [
    Contender('ib-stream', _infiniband, _cable(shared_memory='off'), ('rxe',)),
    Contender('ib-shm', _infiniband, _cable(shared_memory='on'), ('rxe', 'ib-stream')),
    Contender('ib-tcp', _infiniband, links.tcp_cable, ('rxe', 'ib-stream')),
    Contender('ib-tls', _infiniband, links.tls_cable, ('rxe', 'ib-tcp')),
    Contender('roce-stream', _roce, _cable(shared_memory='off'), ('rxe', 'ib-stream', 'virtio-net')),
    Contender('roce-shm', _roce, _cable(shared_memory='on'), ('rxe', 'ib-stream', 'roce-stream', 'virtio-net')),
    Contender('roce-netdev', _roce, links.stream, ('rxe', 'ib-stream', 'virtio-net')),
    Contender('rxe'),
    Contender('virtio-net'),
    Contender('socket'),
    Contender('socket-beside'),
]
NAMES = [contender.name for contender in CONTENDERS]
STRANGERS = ['rxe', 'virtio-net']  # who may fail
SOCKETS = {'socket': 0, 'socket-beside': 2}  # and how many processes spin beside each
CARDS = ['ib-cards', 'roce-cards']  # alone, see host.py
# Columns of ratios, in this order.
BASES = ['rxe', 'ib-stream', 'ib-tcp', 'roce-stream', 'virtio-net', *SOCKETS]


@functools.cache
def bases(name):
    """To whom the figures of a contender are put in proportion."""
    against = {contender.name: contender.against for contender in CONTENDERS}.get(name, ())
    return [*against, *(SOCKETS if name not in SOCKETS else ())]


class Field:
    """The two guests, and in which slot of them each of the chosen contenders is."""

    def __init__(self, chosen, **options):
        """chosen: names; options: of the guests."""
        first = SoftRoce(NET, subnet=0, mtu=9000) if 'rxe' in chosen else Nic(NET)
        self.chosen = [name for name in NAMES if name in chosen]
        self.slots = {name: 0 for name in self.chosen if name in ('rxe', 'virtio-net')}
        devices, joined = [first], {NET: links.stream()}
        for contender in CONTENDERS:
            if contender.device and contender.name in chosen:
                self.slots[contender.name] = len(devices)
                devices.append(contender.device(contender.name, len(devices)))
                joined[contender.name] = contender.link()
        machine = Machine(*devices, boots=True, cpu='max', **options)
        self.both = Lab([machine, machine], joined)

    def device(self, guest, name):
        return guest.devices[self.slots[name]]

    def rdma(self):
        """Those with an RDMA device."""
        return [name for name in self.chosen if name in self.slots and name != 'virtio-net' and
                isinstance(self.device(self.both.a, name), RdmaDevice)]

    def ethernet(self):
        """Those with an Ethernet interface; that of Soft-RoCE is virtio-net's."""
        return [name for name in self.chosen if name in self.slots and name != 'rxe' and
                isinstance(self.device(self.both.a, name), Interface)]

    def sockets(self):
        return [name for name in self.chosen if name in SOCKETS]
