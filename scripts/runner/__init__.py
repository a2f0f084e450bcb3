# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs the test programs: which there are (programs.py), which of them a change can break (since.py), what one printed
(results.py), a run of several through prove (runs.py); and on top of these make check (check.py) with its second look, and make soak
(soak.py)."""
