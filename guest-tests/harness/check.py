# SPDX-License-Identifier: GPL-2.0-or-later
"""What a test demands of what it has seen."""
from .guest import GuestError


def expect(what, good, *seen):
    """what: the words for it. seen: what tells why it is not."""
    if not good:
        raise GuestError(f'{what}: ' + '\n'.join(str(each) for each in seen))
