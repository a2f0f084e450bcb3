# SPDX-License-Identifier: GPL-2.0-or-later
"""NVMe over Fabrics by RDMA, with Linux's target and host: namespace 1 of the target is a RAM disk, 2 a disk that is kept."""
import contextlib

from . import storage, wait

NQN = 'test'
PORT = 4420
QUEUES = 4
RAM, KEPT = 1, 2  # namespaces
RAM_KIB = 64 << 10
UUID = '07070707-0707-0707-0707-07070707070'  # with its number, a namespace's: the same when the target has started anew
SUBSYSTEM = f'/sys/kernel/config/nvmet/subsystems/{NQN}'


def serve(guest, *devices, kept=True):
    """Make the target in a guest, which listens at the addresses of these devices."""
    disks = ['/dev/ram0'] + ([storage.disk(guest)] if kept else [])
    guest.run(f'modprobe -a nvmet_rdma && modprobe brd rd_nr=1 rd_size={RAM_KIB} && '
              f'{storage.CONFIGFS} && '
              f'mkdir {SUBSYSTEM} && echo 1 >{SUBSYSTEM}/attr_allow_any_host')
    for number, disk in enumerate(disks, 1):
        namespace = f'{SUBSYSTEM}/namespaces/{number}'
        guest.run(f'mkdir {namespace} && echo -n {disk} >{namespace}/device_path && '
                  f'echo {UUID}{number} >{namespace}/device_uuid && echo 1 >{namespace}/enable')
    for device in devices:
        guest.run(f'mkdir {_port(device)} && cd {_port(device)} && echo -n rdma >addr_trtype && echo -n ipv4 >addr_adrfam && '
                  f'echo -n {device.address()} >addr_traddr && echo -n {PORT} >addr_trsvcid')
        listen(device)


def listen(device):
    """The target listens at a device's address."""
    device.guest.run(f'ln -s {SUBSYSTEM} {_port(device)}/subsystems/{NQN}')


def leave(device):
    """It does not any more, and who was connected there is not."""
    device.guest.run(f'rm {_port(device)}/subsystems/{NQN}')


def _port(device):
    return f'/sys/kernel/config/nvmet/ports/{device.slot}'


def connect(guest, target, options='', check=True):
    """Connect to the target at a device's address. What Linux knows of the connection: the name of the controller."""
    where = f'transport=rdma,traddr={target.address()},trsvcid={PORT},nqn={NQN},nr_io_queues={QUEUES},reconnect_delay=1'
    result = guest.run(f'modprobe nvme_rdma && exec 3<>/dev/nvme-fabrics && echo "{where}{options}" >&3 && cat <&3', check=check)
    if result.status:
        return None
    name = f'nvme{result.output.split("instance=")[1].split(",")[0]}'
    disk(guest, name)
    return name


def disk(guest, name, namespace=RAM):
    """The device of a namespace. Linux numbers them as it finds them: from 6.11 on at once, so in any order."""
    found = []

    def is_there():
        found[:] = guest.run(f'cd /dev && for disk in {name}n*; do [ "$(cat /sys/block/$disk/nsid)" != {namespace} ] || echo $disk; done',
                             check=False).output.split()
        return len(found) == 1

    wait.until(is_there, f'there: {guest.name}: namespace {namespace} of {name}')
    return f'/dev/{found[0]}'


def disconnect(guest, name):
    guest.run(f'echo 1 >/sys/class/nvme/{name}/delete_controller')


@contextlib.contextmanager
def connected(guest, target, options=''):
    """Connected inside."""
    name = connect(guest, target, options)
    yield name
    disconnect(guest, name)


def state(guest, name):
    return guest.run(f'cat /sys/class/nvme/{name}/state 2>/dev/null', check=False).output.strip()


def wait_state(guest, name, wanted, timeout=60):
    wait.until(lambda: state(guest, name) == wanted, lambda: f'{wanted}: {guest.name}: {name}: {state(guest, name)}', timeout)
