#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""gdb at a guest's kernel, as `make guest GDB=` has it. With gdb's scripts of a kernel's own tree: scripts/circle."""
import os
import subprocess
import tempfile

from harness import paths, tap
from harness.check import expect
from harness.guest import GuestError
from harness.patience import patient

PINGPONG = 'ibv_rc_pingpong -d $RDMA_HCA_DEVICE -g $RDMA_HCA_GID_INDEX -n 10'


def debug(*commands, arguments=()):
    """The lines that gdb prints while guests run a ping-pong, and all that is printed."""
    with tempfile.NamedTemporaryFile('w', dir=paths.RUN, suffix='.gdb') as file:
        file.write('\n'.join(commands) + '\n')
        file.flush()
        done = subprocess.run(
            [os.path.join(paths.TOP, 'ci', 'rdma-hca-pair'), '--gdb', file.name, *arguments, '--server', PINGPONG,
             '--client', f'{PINGPONG} $RDMA_HCA_SERVER'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=patient(120), check=False)
    if done.returncode != 0:
        raise GuestError(f'status {done.returncode}: {done.stdout}')
    return [line[len('gdb: '):] for line in done.stdout.splitlines() if line.startswith('gdb: ')], done.stdout


def test_breakpoint():
    """In the driver, with its source's lines and its variables; then the guests go on, and their traffic is whole."""
    said, output = debug('break rhca_create_cq', 'continue', 'backtrace 1', 'print attr->cqe > 500', 'delete', 'continue')
    expect('stopped', any('Breakpoint 1, rhca_create_cq (' in line and 'cq.c:' in line for line in said), output)
    expect('its variables', '$1 = 1' in said, output)
    expect('traffic', output.count('10 iters in') == 2, output)


def test_leaves_well():
    """Commands that are over let the guests go on."""
    _, output = debug('print 6 * 7', arguments=('--link', 'roce'))
    expect('said', 'gdb: $1 = 42' in output, output)
    expect('traffic', output.count('10 iters in') == 2, output)


def test_mistake():
    """What gdb complains of is shown."""
    said, output = debug('break no_such_function')
    expect('complaint', any('no_such_function' in line for line in said), output)


if __name__ == '__main__':
    tap.main()
