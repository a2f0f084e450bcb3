# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest that sleeps, and one that boots again by itself."""
import shlex

from . import wait
from .guest import READY_TIMEOUT, GuestError


def sleep(guest):
    """All of its devices, and back after a second: Linux's own test, as QEMU's machines do not all wake up under TCG."""
    before = wakings(guest)
    awake(guest, guest.spawn('echo 1 >/sys/module/suspend/parameters/pm_test_delay; '
                             'echo platform >/sys/power/pm_test && echo mem >/sys/power/state'), before)


def awake(guest, command, before, timeout=60, check=True):
    """To the end of what has the guest sleep. before: its wakings when that began. check: as of Command.wait()."""
    wait.until(lambda: not command.running or wakings(guest) > before, f'awake: {guest.name}', timeout)
    _greet(guest, command, check)


def reboot(guest):
    """As its software asks for; back when it is ready again."""
    guest.starts_again()
    guest.spawn('reboot -f')
    guest.wait_ready()


def freeze(guest, asleep):
    """All of its devices, by the kernel alone, until its power button is pressed, which it is when asleep() is true. Too soon,
    and it does not fall asleep: then it tries again."""
    guest.run('modprobe button')
    before = wakings(guest)
    frozen = guest.spawn('until echo freeze >/sys/power/state; do sleep 1; done')
    wait.until(asleep, f'asleep: {guest.name}')

    def is_awake():
        guest.qmp('system_powerdown')
        return not frozen.running or wakings(guest) > before

    wait.until(is_awake, f'awake: {guest.name}', pause=1)
    _greet(guest, frozen)


def wakings(guest):
    """How often it woke up."""
    return guest.kernel_log().count('on system resumption')


def _greet(guest, command, check=True):
    """To the end of what had the guest sleep. Linux 7.3 believes after a sleep that nobody is at a virtio console's other end,
    and lets its agent wait, until somebody comes."""
    try:
        wait.until(lambda: not command.running, 'heard', timeout=3)
    except GuestError:
        guest.come_again()
    command.wait(check=check)


def start_kernel(guest, begun):
    """The same kernel again, by the running one and without firmware; the cards are not reset on the way. The guest has the
    kernel and its initramfs as its `disks`. begun() is called when the new kernel has just begun."""
    guest.run(f'cat {guest.disk(0)} >/tmp/kernel; cat {guest.disk(1)} >/tmp/initrd')
    kernels = guest.kernel_log().count('Linux version')
    guest.starts_again()
    guest.spawn(f'start-kernel /tmp/kernel /tmp/initrd {shlex.quote(guest.kernel_line())}')
    wait.until(lambda: guest.kernel_log().count('Linux version') > kernels, f'there: another kernel in {guest.name}', READY_TIMEOUT)
    begun()
    guest.wait_ready()
