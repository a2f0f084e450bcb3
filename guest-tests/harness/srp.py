# SPDX-License-Identifier: GPL-2.0-or-later
"""SCSI RDMA protocol, with Linux's target (ib_srpt) and initiator (ib_srp): on InfiniBand, where the initiator finds the target by
its device management, and at an address, by RDMA CM."""
import contextlib

from . import lio, storage, wait

PORT = 5555  # of a target at an address: there is none that is usual


def _name(guest):
    """Of its port, as the target has it: the GUID, which is in its first GID."""
    return guest.run(f'cut -d: -f5- /sys/class/infiniband/{guest.card.name}/ports/1/gids/0').output.strip()


def _group(guest):
    return f'{lio.ROOT}/srpt/{_name(guest)}/tpgt_1'


def _offer(guest, initiator):
    """Make a unit, for whom the target knows by this name."""
    lio.make_unit(guest)
    lio.offer_unit(guest, _group(guest))
    lun = f'{_group(guest)}/acls/{initiator}/lun_0'
    guest.run(f'mkdir -p {lun} && ln -s {_group(guest)}/lun/lun_0 {lun}/unit')
    enable(guest, 1)


def serve(guest, initiator):
    """Make the target in a guest, for another guest on the same fabric."""
    guest.run('modprobe ib_srpt')
    _offer(guest, _name(initiator))


def serve_at_address(guest):
    """Make the target in a guest, for whoever comes to its card's address."""
    guest.run(f'modprobe ib_srpt && {storage.CONFIGFS} && mkdir -p {lio.ROOT}/srpt && '
              f'echo {PORT} >{lio.ROOT}/srpt/discovery_auth/rdma_cm_port')
    _offer(guest, guest.card.address())  # Linux's target takes its own end's address for the initiator's name


def enable(guest, value):
    """The target takes connections, or ends those that there are and takes none."""
    guest.run(f'echo {value} >{_group(guest)}/enable')


def _targets(guest):
    """What the initiator can be told to log in to."""
    umad = guest.run(f'ls /sys/class/infiniband/{guest.card.name}/device/infiniband_mad | grep umad').output.strip()
    return guest.run(f'ibsrpdm -c -d /dev/infiniband/{umad}').output.split()


def _log_in(guest, target):
    """Give the disk."""
    script = f'echo {target} >/sys/class/infiniband_srp/srp-{guest.card.name}-1/add_target'
    # A connection that was ended a moment ago is in the way.
    wait.until(lambda: guest.run(script, check=False).status == 0, f'logged in: {guest.name}: {target}')
    return lio.wait_disk(guest)


def _log_out(guest):
    guest.run('for port in /sys/class/srp_remote_ports/*; do echo 1 >$port/delete; done')
    wait.until(lambda: guest.run('ls -A /sys/class/srp_remote_ports').output == '', f'gone: {guest.name}: targets')


@contextlib.contextmanager
def logged_in(guest):
    """Logged in inside; gives the disk."""
    guest.run('modprobe -a ib_srp sd_mod')
    target = wait.until(lambda: _targets(guest), f'found: {guest.name}: a target', 60)[0]
    yield _log_in(guest, target)
    _log_out(guest)


@contextlib.contextmanager
def logged_in_at_address(guest, server, options=''):
    """The same, at the address of another guest's card. options: of the target (Documentation/ABI/stable/sysfs-driver-ib_srp)."""
    service = server.run('cat /sys/module/ib_srpt/parameters/srpt_service_guid').output.strip()
    identity = f'{int(service, 0):016x}'
    yield _log_in(guest, f'id_ext={identity},ioc_guid={identity},dest={server.card.address()}:{PORT}{options}')
    _log_out(guest)


def set_patience(guest, reconnect, fail=None):
    """Seconds until the initiator connects anew, and until it has who writes fail when it could not; None: it does not."""
    guest.run(f'cd /sys/class/srp_remote_ports/port-* && echo off >fast_io_fail_tmo && echo {reconnect} >reconnect_delay'
              + (f' && echo {fail} >fast_io_fail_tmo' if fail is not None else ''))
