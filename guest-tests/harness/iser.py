# SPDX-License-Identifier: GPL-2.0-or-later
"""iSER: iSCSI by RDMA, with Linux's target and open-iscsi."""
import contextlib

from . import lio

TARGET = 'iqn.2026-11.test:target'
INITIATOR = 'iqn.2026-11.test:initiator'
PORT = 3260
GROUP = f'{lio.ROOT}/iscsi/{TARGET}/tpgt_1'


def serve(guest, *devices):
    """Make the target in a guest, which listens at the addresses of these devices."""
    guest.run('modprobe -a iscsi_target_mod ib_isert')
    lio.make_unit(guest)
    lio.offer_unit(guest, GROUP)
    # Whoever comes may write.
    for name, value in (('authentication', 0), ('generate_node_acls', 1), ('cache_dynamic_acls', 0),
                        ('demo_mode_write_protect', 0)):
        guest.run(f'echo {value} >{GROUP}/attrib/{name}')
    for device in devices:
        guest.run(f'mkdir {_portal(device)} && echo 1 >{_portal(device)}/iser')
    enable(guest, 1)


def _portal(device):
    return f'{GROUP}/np/{device.address()}:{PORT}'


def listen_anew(device):
    """At a device's address, with what bears it now."""
    device.guest.run(f'echo 0 >{_portal(device)}/iser && echo 1 >{_portal(device)}/iser')


def enable(guest, value):
    """The target takes connections, or ends those that there are and takes none."""
    guest.run(f'echo {value} >{GROUP}/enable')


def prepare(guest, replacement_timeout=120):
    """Make the initiator ready. replacement_timeout: seconds that it waits for a connection to come back."""
    guest.run('modprobe -a ib_iser sd_mod && mkdir -p /etc/iscsi/nodes /run/lock/iscsi /var/lib/iscsi && '
              f'echo InitiatorName={INITIATOR} >/etc/iscsi/initiatorname.iscsi && '
              f'sed -i "s/^node.session.timeo.replacement_timeout.*/node.session.timeo.replacement_timeout = {replacement_timeout}/" '
              '/etc/iscsi/iscsid.conf && { pidof iscsid || iscsid; }')


def _node(device):
    return f'iscsiadm -m node -T {TARGET} -p {device.address()}:{PORT}'


def login(guest, device, timeout=None):
    """Log in at a device's address; give the disk."""
    options = '' if timeout is None else f' && {_node(device)} -o update -n node.session.timeo.replacement_timeout -v {timeout}'
    guest.run(f'{_node(device)},1 -o new -I iser && {_node(device)} -o update -n iface.transport_name -v iser{options} && '
              f'{_node(device)} -I iser --login')
    return lio.wait_disk(guest)


def logout(guest, device):
    guest.run(f'{_node(device)} --logout && {_node(device)} -o delete')


@contextlib.contextmanager
def logged_in(guest, device, timeout=None):
    """Logged in inside."""
    yield login(guest, device, timeout)
    logout(guest, device)
