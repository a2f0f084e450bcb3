# SPDX-License-Identifier: GPL-2.0-or-later
"""Open MPI over UCX with ranks in both guests, which run programs/apps/mpi-test.c."""
import re

from . import verbs
from .check import expect

LAUNCH_PORT = 5000

# How mpirun starts its daemon in another guest: there is no sshd. The daemon wants to have it, too.
LAUNCHER = f'''cat >/tmp/launch <<'END'
#!/bin/sh
host=$1
shift
echo "$*" | nc "$host" {LAUNCH_PORT}
END
chmod +x /tmp/launch'''

# Ranks outnumber processors, so those that wait step aside; and what is not used need not be loaded.
MPIRUN = ('OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 exec mpirun --mca plm_rsh_agent /tmp/launch '
          '--mca pml ucx --mca osc ucx --mca btl self --mca mtl ^ofi,psm,psm2 --mca mpi_yield_when_idle 1')

_ready = set()


def device(guest):
    """How UCX is told of the guest's device, in the environment of its ranks. By IPv6, see test_apps_ucx.py."""
    card = guest.card
    index = f'UCX_IB_GID_INDEX={card.gid_index(6)}' if hasattr(card, 'gid_index') else ''
    return f'export UCX_NET_DEVICES={card.name}:1 UCX_WARN_UNUSED_ENV_VARS=n {index}'


def prepare(both):
    """Have mpirun find the guests, once."""
    if both.folder not in _ready:
        _ready.add(both.folder)
        for guest in both.guests:
            guest.run(LAUNCHER)
        verbs.wait_listening(both.b.spawn(f'{device(both.b)}; exec nc -ll -p {LAUNCH_PORT} -e sh'), LAUNCH_PORT)


def start(both, ranks, transport, case, rounds=1):
    """Half of the ranks in each guest."""
    hosts = ','.join(f'{guest.name}:{ranks // 2}' for guest in both.guests)
    return both.a.spawn(f'{device(both.a)}; {MPIRUN} --host {hosts} -np {ranks} -x UCX_TLS={transport},self '
                        f'mpi-test {case} {rounds} 2>&1')


def run_pair(both):
    """All of the program's cases by a rank in each guest, connected and by datagrams."""
    prepare(both)
    for transport in ('rc_v', 'ud_v'):
        output = start(both, 2, transport, 'all').wait(170).output
        expect('both ranks at their end', len(set(re.findall(r'rank (\d+) of 2: done', output))) == 2, output)
