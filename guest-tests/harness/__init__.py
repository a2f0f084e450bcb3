# SPDX-License-Identifier: GPL-2.0-or-later
"""Two guests, a cable between their cards, and tests that print TAP."""
