# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that poll without end, at a part of a processor: where they only have to be there, the rest is for others."""
FOLDER = '/run/quota'


def at(percent, script):
    """The script, which then has no more than so much of one processor (cgroup v2) where the kernel can do that; None: all
    that there is."""
    if percent is None:
        return script
    group = f'{FOLDER}/{percent}'
    return (f'{{ mkdir -p {FOLDER} && {{ grep -q "{FOLDER} " /proc/mounts || mount -t cgroup2 none {FOLDER}; }} && '
            f'echo +cpu >{FOLDER}/cgroup.subtree_control && mkdir -p {group} && echo {percent}000 100000 >{group}/cpu.max && '
            f'echo $$ >{group}/cgroup.procs; }} 2>/dev/null; {script}')


def _change(guest, percent, limit):
    guest.run(f'echo {limit} 100000 >{FOLDER}/{percent}/cpu.max', check=False)


def lift(guest, percent):
    """What has so much of a processor has all that it wants from now on."""
    _change(guest, percent, 'max')


def lower(guest, percent, to):
    """It has only so much from now on: programs that start beside others that poll need more than later."""
    _change(guest, percent, f'{to}000')
