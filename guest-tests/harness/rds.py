# SPDX-License-Identifier: GPL-2.0-or-later
"""RDS over RDMA, by programs/rds-test.c in both guests."""
import itertools

_ports = itertools.count(4000, 4)


def start(first, second, cases, count):
    """One case in each guest: the first waits for the second. Gives both commands."""
    port, commands = next(_ports), []
    for guest, other, case in (first, second, cases[0]), (second, first, cases[1]):
        commands.append(guest.spawn(f'exec rds-test {case} {guest.card.address()} {other.card.address()} {port} {count}'))
        if not commands[1:]:
            commands[0].wait_output('ready')
    return commands
