# SPDX-License-Identifier: GPL-2.0-or-later
"""How many commands a second a device takes from one process, and how many objects it makes and ends: programs/verb-rates.c.
Of Soft-RoCE they are calls of the guest's kernel, without a card."""
import re

from .figures import Figures

# How the program's lines begin: row and bytes.
CASES = {'commands': ('commands', 0), 'registrations of 4096 bytes': ('registrations', 4096),
         'registrations of 1048576 bytes': ('registrations', 1048576), 'queue pairs': ('queue pairs', 0),
         'completion queues': ('completion queues', 0)}


def rates(output):
    return {what: float(rate) for what, rate in re.findall(r'^(.+): ([\d.]+) a second$', output, re.MULTILINE)}


def objects(field, turns, plan):
    def measure(name):
        guest = field.both.a
        return rates(guest.run(f'exec verb-rates {field.device(guest, name).name} {plan.verb_seconds}').output)

    found = turns.take('verb-rates', field.rdma(), measure)
    for case, (what, size) in CASES.items():
        yield Figures(what, size, '/s', {name: given[0][case] for name, given in found.items()})
