# SPDX-License-Identifier: GPL-2.0-or-later
"""How much longer than usual guests may take for everything: GUEST_PATIENCE from the environment, a factor. Limits of time are
given as for usual guests; what waits multiplies them."""
import os

FACTOR = int(os.environ.get('GUEST_PATIENCE') or 1)


def patient(seconds):
    return seconds * FACTOR
