#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What `make loss` shows: goodput and retransmissions of RDMA Writes, Sends and Reads on a cable that loses packets."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
sys.dont_write_bytecode = True

from harness import faults, verbs  # noqa: E402
from harness.guest import GuestError  # noqa: E402
from harness.labs import infiniband  # noqa: E402

SIZE = 65536
ITERATIONS = 2000
LOSSES = [0, 0.001, 0.01, 0.05]
PROGRAMS = ['ib_write_bw', 'ib_send_bw', 'ib_read_bw']
# What both cards have counted.
COLUMNS = [('sent', 'port tx_packets'), ('lost', 'fault tx_drop'), ('sent again', 'requester retransmissions'),
           ('time-outs', 'requester timeouts')]


def row(both, program, loss):
    faults.set_faults(both.guests, faults.loss(loss) if loss else [])
    before = faults.counted(both)
    goodput = verbs.measured(verbs.bandwidth, both.a, both.b, program, SIZE, ITERATIONS, '-c RC')
    change = faults.moved(both, before)
    return f'{program:12} {loss:6.1%} {goodput:9.1f}' + ''.join(f'{change[name]:12}' for _, name in COLUMNS)


def main():
    both = infiniband(boots=True)
    print(f'{ITERATIONS} messages of {SIZE} bytes, RC, MTU 4096; packets of both directions\n')
    print(f'{"":12} {"loss":>6} {"MB/s":>9}' + ''.join(f'{title:>12}' for title, _ in COLUMNS), flush=True)
    try:
        both.start()
        for program in PROGRAMS:
            for loss in LOSSES:
                print(row(both, program, loss), flush=True)
        both.check()
    except (GuestError, OSError) as error:
        sys.exit(f'rdma-hca: {error}')
    finally:
        both.stop()


main()
