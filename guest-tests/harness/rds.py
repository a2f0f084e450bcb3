# SPDX-License-Identifier: GPL-2.0-or-later
"""RDS over RDMA, by programs/rds-test.c in both guests."""
import itertools

_ports = itertools.count(4000, 4)


def load(lab, options=''):
    """RDS over RDMA, in all guests. options: of its module, if it is not loaded already."""
    for guest in lab.guests:
        guest.run(f'modprobe rds_rdma {options}')


def unload(lab):
    """Its connections go with it."""
    for guest in lab.guests:
        guest.run('modprobe -r rds_rdma')


def start(first, second, cases, count):
    """One case in each guest: the first waits for the second. Gives both commands."""
    port, commands = next(_ports), []
    for guest, other, case in (first, second, cases[0]), (second, first, cases[1]):
        commands.append(guest.spawn(f'exec rds-test {case} {guest.card.address()} {other.card.address()} {port} {count}'))
        if not commands[1:]:
            commands[0].wait_output('ready')
    return commands
