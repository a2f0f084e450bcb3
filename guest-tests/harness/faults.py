# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults between cards and their links, and between cards and their machines; and what the cards have counted of them."""
import contextlib

from . import resources, wait
from .devices import Hca
from .guest import GuestError


def loss(probability):
    """The faults of a link that loses packets; all cards have them, each for what it sends."""
    return [{'action': 'drop', 'direction': 'tx', 'probability': probability}]


def ending(plan, count):
    """The same plan, each of its rules for so many packets only. A ping-pong leaves as soon as it has its last message: if
    the acknowledgement of that one is lost, nobody is there to repeat it, and its peer is right to complain."""
    return [{**rule, 'count': count} for rule in plan]


def set_faults(guests, plan):
    """The faults of our cards in these guests from now on, while the machines run."""
    for guest in guests:
        for card in guest.devices:
            if isinstance(card, Hca):
                guest.qmp('qom-set', path=f'/machine/peripheral/{card.id}', property='faults', value=plan)


@contextlib.contextmanager
def planned(guests, plan, afterwards=()):
    """The cards have these faults inside, and others afterwards."""
    set_faults(guests, plan)
    try:
        yield
    finally:
        set_faults(guests, list(afterwards))


def counted(lab):
    """The counters of events of all guests that speak by our card, added up, by "unit name"."""
    total = {}
    for guest in lab.guests:
        if isinstance(guest.card, Hca):
            for name, value in resources.counters(guest, 'cumulative').items():
                total[name] = total.get(name, 0) + value
    return total


def moved(lab, before):
    """By how much they have moved since."""
    return {name: value - before[name] for name, value in counted(lab).items()}


def wait_moved(lab, before, name, by, timeout=60):
    """Wait until one has moved by so much."""
    wait.until(lambda: moved(lab, before)[name] >= by, lambda: f'moved by {by}: {name} has by {moved(lab, before)[name]}', timeout,
               pause=0.05)


@contextlib.contextmanager
def losing(lab, plan):
    """The cards have these faults inside, and lose packets by them. Gives by what all counters have moved, when it is over."""
    before, change = counted(lab), {}
    with planned(lab.guests, plan):
        yield change
    change.update(moved(lab, before))
    print(f'# {change["link tx_packets"]} packets sent, {change["fault tx_drop"]} lost, '
          f'{change["requester retransmissions"]} sent again')
    if not change['fault tx_drop']:
        raise GuestError('nothing was lost')


# Of the host's side

class Commands:
    """Opcodes of commands (docs/abi.md) that tests name."""
    QUERY_DEV_LIM, QUERY_FW, QUERY_ADAPTER = 0x003, 0x004, 0x006
    INIT_HCA, CLOSE_HCA, INIT_IB, CLOSE_IB = 0x007, 0x008, 0x009, 0x00a
    SW2HW_MPT, HW2SW_MPT, WRITE_MTT = 0x00d, 0x00f, 0x011
    MAP_EQ, SW2HW_EQ, HW2SW_EQ = 0x012, 0x013, 0x014
    SW2HW_CQ, HW2SW_CQ = 0x016, 0x017
    RST2INIT, INIT2RTR, RTR2RTS, TO_ERR, TO_RST = 0x019, 0x01a, 0x01b, 0x01e, 0x021
    CONF_SPECIAL_QP, ARM_SRQ, QUERY_PORT, SET_GID = 0x023, 0x040, 0x043, 0x050
    UNMAP_ICM, MAP_ICM = 0xff9, 0xffa


MS = 1000000  # in ns

INTERNAL_ERR = 0x01  # a status that no card ends a command with by itself


def of_command(action, opcode=None, **more):
    """A command never ends (hang), is late (delay), or is not executed (fail, with this status)."""
    which = {} if opcode is None else {'opcode': opcode}
    status = {'status': INTERNAL_ERR} if action == 'fail' else {}
    return {'place': 'command', 'action': action, **which, **status, **more}


def of_memory(units=(), channels=(), action='fail', **more):
    """The card does not reach memory, or late."""
    which = {name: list(values) for name, values in (('units', units), ('channels', channels)) if values}
    return {'place': 'dma', 'action': action, **which, **more}


def of_interrupt(action, **more):
    return {'place': 'interrupt', 'action': action, **more}


def of_doorbell(delay_ns, **more):
    return {'place': 'doorbell', 'action': 'delay', 'delay-ns': delay_ns, **more}


def of_event_queue(**more):
    """Its next event finds no room, and is lost with all that follow."""
    return {'place': 'event-queue', 'action': 'overflow', 'count': 1, **more}
