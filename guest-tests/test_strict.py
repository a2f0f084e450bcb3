#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The strict mode: programs that lean on luck are told of, and others are not."""
import re

from harness import tap, verbs
from harness.check import expect
from harness.labs import infiniband


def lines(guest):
    return re.findall(r'strict: QP \S+ (\S+) \(index', guest.qemu_log())


def recorded(guest):
    return [line for card in guest.qmp('query-rdma-hca-recorder') for line in card['lines'] if ' STRICT ' in line]


def test_programs():
    """A ping-pong of the usual programs has its receives in time; a queue pair whose numbers are alike is told of."""
    with infiniband(properties={'strict': True, 'recorder': 4096}) as both:
        verbs.pingpong(both.a, both.b, '-n 100')
        both.a.run('faulty-host send')  # both of its PSNs are 0
        kinds = {line.split(' kind ')[1].split()[0] for line in recorded(both.a)}
        expect('told of', 'psn-alike' in kinds, recorded(both.a))
        expect('each in a line, too', len(lines(both.a)) == len(recorded(both.a)) > 1, both.a.qemu_log(), recorded(both.a))
        expect('and of nothing that is right', not kinds - {'psn-alike', 'cq-small'}, recorded(both.a))


if __name__ == '__main__':
    tap.main()
