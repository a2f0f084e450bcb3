# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that are measured: what `make bench` runs is bench.py."""
