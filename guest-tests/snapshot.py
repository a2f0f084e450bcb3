#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What `make snapshot` does: boot the two guests of `make run`, and keep what they are then. LINK=roce in the environment: those
with RoCE cards."""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
sys.dont_write_bytecode = True

from harness.labs import snapshots  # noqa: E402


def main():
    began = time.monotonic()
    kept = snapshots(os.environ.get('LINK', ''))
    if not kept:
        sys.exit('rdma-hca: make snapshot: LINK is ib or roce')
    folder = kept.ensure()
    size = sum(os.stat(os.path.join(folder, name)).st_blocks for name in os.listdir(folder)) >> 11
    print(f'Two guests with their cards are kept in {folder} ({size} MiB, {time.monotonic() - began:.1f} s).')


main()
