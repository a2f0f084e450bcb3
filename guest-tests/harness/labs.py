# SPDX-License-Identifier: GPL-2.0-or-later
"""The labs that most tests use: two guests with an RDMA device each, and an Ethernet between them for what programs say to
each other first. A test has its own (`with infiniband() as both:`) or shares one (`both = kept(infiniband)`)."""
from . import lab, links, pci
from .devices import InfinibandCard, Nic, RoceCard
from .lab import Lab, Machine
from .snapshot import Snapshot

# Options of guests that run applications.
APPLICATIONS = {'layers': ('apps',), 'memory': 1024, 'cpus': 2}


def infiniband(cable=links.unix_cable, properties=None, capture=False, **options):
    """Two cards on a cable. properties, capture: of the cards; options: of the guests."""
    machine = Machine(Nic('net'), InfinibandCard('cable', properties, capture), **options)
    return Lab([machine, machine], {'net': links.stream(), 'cable': cable()})


def roce(*cards, **options):
    """Two RDMA devices on an Ethernet segment of their own, 'lan': our cards, if not others are given."""
    machines = [Machine(Nic('net'), card, **options) for card in cards or [RoceCard('lan')] * 2]
    return Lab(machines, {'net': links.stream(), 'lan': links.stream()})


def roce_cable(cable=links.unix_cable, *cards, **options):
    """Two RoCE cards on a cable of their own."""
    machines = [Machine(Nic('net'), card, **options) for card in cards or [RoceCard('lan')] * 2]
    return Lab(machines, {'net': links.stream(), 'lan': cable()})


def slots(card=InfinibandCard('cable', slotted=True), link=links.unix_cable, **options):
    """Two cards, each in a slot that it can be taken out of."""
    machine = Machine(Nic('net'), card, machine=pci.NATIVE, **options)
    return Lab([machine, machine], {'net': links.stream(), card.link: link()})


class Unmanaged(Lab):
    """Its ports wait for a subnet manager, which its user starts."""

    def wait_active(self):
        """Whoever starts the manager waits."""


def unmanaged(layers=('apps',), **options):
    """Two managed cards on a cable, with the GUIDs that docs/applications.md says; opensm is in the applications' layer."""
    machines = [Machine(Nic('net'), InfinibandCard('cable', {'managed': 'on', 'guid': 0x525400fffe000000 + number}),
                        layers=layers, **options) for number in (1, 2)]
    return Unmanaged(machines, {'net': links.stream(), 'cable': links.unix_cable()})


def snapshots(link):
    """What was kept of the two guests of `make run`, for LINK=; None: of no such."""
    make = {'': infiniband, 'ib': infiniband, 'roce': roce}.get(link)
    return make and Snapshot(lambda: make(boots=True))


_kept = {}


def kept(make, **options):
    """The running lab make(**options), which tests share; it is started when it is first asked for."""
    key = (make, repr(sorted(options.items())))
    if _kept.get(key) not in lab.running():  # not started yet, or stopped after a test that failed
        for other in set(_kept.values()) & set(lab.running()):
            other.stop()  # two guests at a time are enough for a small machine
        _kept.clear()
        _kept[key] = make(**options).start()
    return _kept[key]
