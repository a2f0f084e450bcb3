#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets that the card has sent, taken apart by a decoder that shares nothing with it (tshark), their CRCs computed anew."""
import os
import subprocess

from harness import paths, tap
from harness.guest import GuestError


def capture_and_check(program, suffix, *arguments):
    """Have a unit test write its capture, and check that."""
    capture = os.path.join(paths.RUN, f'{program}-{os.getpid()}.{suffix}')
    os.makedirs(paths.RUN, exist_ok=True)
    program = os.path.join(paths.BUILD, 'unit', program)
    for command in ([program, *arguments], [os.path.join(paths.TOP, 'scripts', 'check-capture'), capture]):
        result = subprocess.run(command, env=dict(os.environ, HCA_CAPTURE=capture), stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, check=False)
        if result.returncode != 0:
            raise GuestError(result.stdout)
    print('#', result.stdout.strip())
    os.unlink(capture)


def test_exchange_of_every_operation():
    capture_and_check('test-capture', 'pcap')


def test_roce_frames_of_every_kind():
    """RoCEv2 over IPv4 and IPv6, with and without VLAN: also what scapy makes of the same headers, byte for byte."""
    capture_and_check('test-roce-wire', 'pcap', '-p', '/roce-wire/capture')


def test_file_of_a_card_with_faults():
    capture_and_check('test-capture-file', 'pcapng', '-p', '/capture-file/cards/faults')


def test_file_of_a_roce_card_with_faults():
    """Marks of congestion, too."""
    capture_and_check('test-capture-file', 'pcapng', '-p', '/roce/capture-file/cards/faults')


if __name__ == '__main__':
    tap.main()
