#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Other projects' own tests in ci/rdma-hca-pair, as their CI would run them: ci/examples."""
import os
import re
import subprocess

from harness import paths, tap
from harness.guest import GuestError
from harness.patience import patient

EXAMPLES = os.path.join(paths.TOP, 'ci', 'examples')
LIMIT = 900  # seconds


def example(name, link, *wanted):
    """Run it, and look for all that it has to print, as regular expressions of lines."""
    done = subprocess.run([os.path.join(EXAMPLES, name), '--link', link], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, text=True, timeout=patient(LIMIT), check=False)
    missing = [each for each in wanted if not re.search(f'^{each}$', done.stdout, re.MULTILINE)]
    if done.returncode != 0 or missing:
        raise GuestError(f'status {done.returncode}, not printed: {missing}\n{done.stdout}')


def rdma_core(link):
    example('rdma-core', link, r'guest1: Ran 2\d\d tests in .*', r'guest1: OK \(skipped=\d+\)')


def perftest(link):
    # Its last ones: messages up to 8 MiB, and four queue pairs.
    example('perftest', link, r'guest2:  *8388608  *100 .*', r'guest2:  *65536  *400 .*')


def ucx(link):
    example('ucx', link, *(fr'guest2: \+{name}-.*' for name in ('tag_lat', 'cswap', 'am_bw')))


@tap.only_long
def test_ucx_roce():
    ucx('roce')


@tap.only_long
def test_ucx_infiniband():
    ucx('ib')


@tap.only_long
def test_rdma_core_roce():
    rdma_core('roce')


@tap.only_long
def test_rdma_core_managed():
    rdma_core('managed')


@tap.only_long
def test_perftest_roce():
    perftest('roce')


@tap.only_long
def test_perftest_managed():
    perftest('managed')


if __name__ == '__main__':
    tap.main()
