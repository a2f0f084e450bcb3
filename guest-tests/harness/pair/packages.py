# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian packages that the guests of a job are to have: a layer of their root, made once for each list."""
import fcntl
import hashlib
import os
import subprocess

from .. import paths
from ..errors import GuestError

FOLDER = os.path.join(paths.STATE, 'packages')


def layers(given):
    """The names of layers for --packages: none, or one."""
    names = sorted(set(given.packages.split()))
    if not names:
        return ()
    # The layer has what the guest image has not.
    made_of = [*names, *sorted(os.listdir(os.path.join(paths.GUEST, 'debs')))]
    layer = hashlib.sha256(' '.join(made_of).encode()).hexdigest()[:16]
    path = os.path.join(FOLDER, layer)
    paths.LAYERS[layer] = f'{path}.squashfs'
    os.makedirs(FOLDER, exist_ok=True)
    with open(f'{path}.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another job may be making it
        if not os.path.exists(paths.LAYERS[layer]):
            _make(path, names)
    return (layer,)


def _make(path, names):
    log = f'{path}.log'
    with open(log, 'w') as output:
        done = subprocess.run([os.path.join(paths.TOP, 'scripts', 'build-package-layer'), path, *names],
                              stdout=output, stderr=output, check=False)
    if done.returncode != 0:
        with open(log) as output:
            raise GuestError(f'no packages {" ".join(names)}: {output.read()[-1000:]}')
