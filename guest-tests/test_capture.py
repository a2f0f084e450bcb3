#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets that the card has sent, taken apart by a decoder that shares nothing with it (tshark), their CRCs computed anew."""
import os
import subprocess

from harness import paths, tap
from harness.guest import GuestError


def run_and_check(name, suffix):
    """Run the unit test that leaves a capture, then check what it left."""
    capture = os.path.join(paths.RUN, f'{name}-{os.getpid()}.{suffix}')
    os.makedirs(paths.RUN, exist_ok=True)
    program = os.path.join(paths.BUILD, 'unit', name)
    for command in ([program], [os.path.join(paths.TOP, 'scripts', 'check-capture'), capture]):
        result = subprocess.run(command, env=dict(os.environ, HCA_CAPTURE=capture), stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, check=False)
        if result.returncode != 0:
            raise GuestError(result.stdout)
    print('#', result.stdout.strip())
    os.unlink(capture)


def test_exchange_of_every_operation():
    run_and_check('test-capture', 'pcap')


def test_file_of_a_card_with_faults():
    run_and_check('test-capture-file', 'pcapng')


if __name__ == '__main__':
    tap.main()
