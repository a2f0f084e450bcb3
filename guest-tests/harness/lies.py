# SPDX-License-Identifier: GPL-2.0-or-later
"""A card that lies of what it is and has (kernel/rdma_hca_lie.c): its driver takes nothing unseen. It refuses the card, or goes
by what it was told and takes each error that the card then has for it; the kernel has nothing to complain of."""
import contextlib
import re

from . import checkers, pci, verbs
from .check import expect

QUERY_DEV_LIM, QUERY_FW, DIAG_RPRT, QUERY_QP_COUNTERS = 0x003, 0x004, 0x030, 0x059  # rdma_hca_cmd.h
DEV_LIM_SIZE = 0x5c
FIRMWARE, FEATURES = range(8), range(8, 12)  # in QUERY_FW's answer: magic and version; a bit a feature
MANY = (0, 1, 2, 4, 7, 8, 15, 16, 24, 25, 31, 32, 64, 128, 255)  # of a byte
TOTAL, COUNT, NAME = 0, 8, 16  # in DIAG_RPRT's; the highest byte of a number, the first one of a name

# What the driver has a bound for, by its byte in QUERY_DEV_LIM's answer, and the first value beyond.
BOUNDS = {0x0b: ('max_cq_sz', 25), 0x0c: ('max_qps', 25), 0x0d: ('max_cqs', 25), 0x0e: ('max_eqs', 25), 0x0f: ('max_mpts', 25),
          0x10: ('max_pds', 25), 0x3d: ('mtts', 31), 0x3f: ('max_msg', 32), 0x40: ('max_srqs', 25), 0x45: ('max_srq_sge', 31),
          0x54: ('max_flows', 25), 0x58: ('max_xrcds', 25), 0x59: ('max_counter_sets', 25), 0x5a: ('sq_slots', 31)}

# The card is bound with each value of a byte.
TELL = '''cd /sys/bus/pci/drivers/rdma_hca; lie=/sys/module/rdma_hca_lie/parameters
echo {op} >$lie/op; echo {offset} >$lie/offset; echo {bits} >$lie/bits
for value in {values}; do
    [ -e {card} ] && echo {card} >unbind
    echo $value >$lie/value; echo 0 >$lie/told
    echo {card} >bind
    if ! [ -e {card} ]; then result=refused; elif ibv_devinfo -v -d {name} >/dev/null; then result=taken; else result=dead; fi
    echo "$value: $(cat $lie/told) $result"
done 2>/dev/null
echo 0 >$lie/op'''


@contextlib.contextmanager
def _liar(both):
    """Guest a's card, to give to _tell(). At the end it speaks the truth again, and works."""
    checkers.need_probes()
    card = pci.address(both.a.card)
    both.a.run('modprobe rdma_hca_lie')
    yield card
    both.a.run(f'modprobe -r rdma_hca_lie; cd /sys/bus/pci/drivers/rdma_hca; [ ! -e {card} ] || echo {card} >unbind; echo {card} >bind')
    both.configure()
    verbs.pingpong(both.a, both.b, '-n 50')


def _tell(guest, card, op, offset, values, bits=0xff):
    """Returns by value whether the driver took the card."""
    output = guest.run(TELL.format(op=op, offset=offset, bits=bits, values=' '.join(map(str, values)), card=card,
                                   name=guest.card.name), 100).output
    results = {int(value): result for value, result in re.findall(r'^(\d+): [1-9]\d* (taken|refused)$', output, re.MULTILINE)}
    expect(f'byte {offset:#x} of the answer to {op:#x} is each of {values}, bits {bits:#x}', sorted(results) == sorted(values), output)
    return {value: result == 'taken' for value, result in results.items()}


def of_limits(both, values):
    """Each byte of the limits has each of the values, and what has a bound the first one beyond."""
    with _liar(both) as card:
        for offset in range(DEV_LIM_SIZE):
            name, beyond = BOUNDS.get(offset, ('', None))
            taken = _tell(both.a, card, QUERY_DEV_LIM, offset, sorted({*values, beyond}) if name else values)
            expect(f'a card is refused whose {name} is {beyond}', not (name and taken[beyond]))


def of_features(both):
    """Each feature is missing, or told although it is not there; and what is no firmware of ours."""
    with _liar(both) as card:
        for offset in FIRMWARE:
            taken = _tell(both.a, card, QUERY_FW, offset, (0xff,))
            expect('what is no firmware of ours is refused', not taken[0xff], offset)
        for offset in FEATURES:
            for bit in range(8):
                _tell(both.a, card, QUERY_FW, offset, (0, 1 << bit), bits=1 << bit)


def of_counters(both):
    """How many counters there are, and what their names are: a card without any sense in them has none, but works."""
    with _liar(both) as card:
        for op in (DIAG_RPRT, QUERY_QP_COUNTERS):
            for offset in (TOTAL, COUNT, NAME):
                taken = _tell(both.a, card, op, offset, (0xff,))
                expect('the card is taken', taken[0xff], op, offset)
                both.a.run(f'cd /sys/class/infiniband/{both.a.card.name} && ! [ -e hw_counters ] && ! [ -e ports/1/hw_counters ]')
