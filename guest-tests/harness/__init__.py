# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests, links between their devices, and tests that print TAP."""
