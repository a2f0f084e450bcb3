# SPDX-License-Identifier: GPL-2.0-or-later
"""Which accelerator the guests run with: ACCEL from the environment, else KVM where a guest gets through its boot with
it (there are hosts where /dev/kvm is there and a guest hangs), else TCG. What the trial gave is kept."""
import os
import shutil

from . import paths
from .guest import Guest, GuestError

CACHE = os.path.join(paths.STATE, 'accelerator')
TRIAL_SECONDS = 20


def choose():
    wanted = os.environ.get('ACCEL')
    if wanted:
        return wanted
    if not os.access('/dev/kvm', os.R_OK | os.W_OK):
        return 'tcg'
    try:
        with open(CACHE) as cache:
            return cache.read().strip()
    except FileNotFoundError:
        pass
    answer = 'kvm' if kvm_works() else 'tcg'
    with open(CACHE, 'w') as cache:
        cache.write(answer + '\n')
    return answer


def kvm_works():
    folder = os.path.join(paths.RUN, f'trial-{os.getpid()}')
    guest = Guest('trial', folder, accelerator='kvm')
    try:
        guest.start().wait_ready(TRIAL_SECONDS)
        guest.run('true', timeout=5)
        return True
    except (GuestError, OSError):
        return False
    finally:
        guest.stop()
        shutil.rmtree(folder, ignore_errors=True)
