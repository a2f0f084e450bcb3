# SPDX-License-Identifier: GPL-2.0-or-later
"""What goes wrong in guests."""


class GuestError(Exception):
    """A guest, or a command in it, did not do what it should."""


class Refused(GuestError):
    """QEMU answers that it does not do what it was asked for."""
