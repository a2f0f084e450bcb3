# SPDX-License-Identifier: GPL-2.0-or-later
"""SCSI RDMA protocol, with Linux's target (ib_srpt) and initiator (ib_srp), which finds the target by its device management."""
import contextlib

from . import fabric, lio, wait


def _name(guest):
    """Of its port, as the target has it."""
    digits = f'{fabric.port(guest).guid:016x}'
    return ':'.join(digits[at:at + 4] for at in range(0, 16, 4))


def serve(guest, initiator):
    """Make the target in a guest, for another guest."""
    guest.run('modprobe ib_srpt')
    lio.make_unit(guest)
    group = f'{lio.ROOT}/srpt/{_name(guest)}/tpgt_1'
    lio.offer_unit(guest, group)
    lun = f'{group}/acls/{_name(initiator)}/lun_0'
    guest.run(f'mkdir -p {lun} && ln -s {group}/lun/lun_0 {lun}/unit && echo 1 >{group}/enable')


def targets(guest):
    """What the initiator can be told to log in to."""
    umad = guest.run(f'ls /sys/class/infiniband/{guest.card.name}/device/infiniband_mad | grep umad').output.strip()
    return guest.run(f'ibsrpdm -c -d /dev/infiniband/{umad}').output.split()


def login(guest):
    """Give the disk."""
    guest.run('modprobe -a ib_srp sd_mod')
    target = wait.until(lambda: targets(guest), f'found: {guest.name}: a target', 60)[0]
    script = f'echo {target} >/sys/class/infiniband_srp/srp-{guest.card.name}-1/add_target'
    # A connection that was ended a moment ago is in the way.
    wait.until(lambda: guest.run(script, check=False).status == 0, f'logged in: {guest.name}: {target}')
    return lio.wait_disk(guest)


def logout(guest):
    guest.run('for port in /sys/class/srp_remote_ports/*; do echo 1 >$port/delete; done')
    wait.until(lambda: guest.run('ls -A /sys/class/srp_remote_ports').output == '', f'gone: {guest.name}: targets')


@contextlib.contextmanager
def logged_in(guest):
    """Logged in inside."""
    yield login(guest)
    logout(guest)
