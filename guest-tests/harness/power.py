# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest that sleeps, and one that boots again by itself."""


def sleep(guest):
    """All of its devices, and back after a second: Linux's own test, as QEMU's machines do not all wake up under TCG."""
    guest.run('echo 1 >/sys/module/suspend/parameters/pm_test_delay; '
              'echo platform >/sys/power/pm_test && echo mem >/sys/power/state')


def reboot(guest):
    """As its software asks for; back when it is ready again."""
    guest.starts_again()
    guest.spawn('reboot -f')
    guest.wait_ready()
