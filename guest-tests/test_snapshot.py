#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Two guests that go on from what was kept of two that were up, cards and cable included."""
import os
import subprocess
import sys
import tempfile
import time

from harness import paths, resources, tap, verbs
from harness.check import expect
from harness.labs import snapshots
from harness.patience import patient

PAIR = os.path.join(paths.TOP, 'ci', 'rdma-hca-pair')


def check(link):
    """Twice from the same: neither sees what the other one has done, and nobody is somebody else's copy."""
    kept = snapshots(link)
    kept.ensure()
    seen = []
    for _ in range(2):
        lab = kept.lab()
        began = time.monotonic()
        with lab as both:
            print(f'# ready after {time.monotonic() - began:.2f} s')
            expect('untouched', both.a.run('ls /tmp/touched 2>&1', check=False).status)
            both.a.run('touch /tmp/touched')
            behind = abs(float(both.a.run('date +%s').output) - time.time())
            expect('the time of now', behind < patient(60), behind)
            seen.append(both.a.run('head -c 16 /dev/urandom | od -An -tx1').output)
            verbs.pingpong(both.a, both.b, '-n 100')
            verbs.pingpong(both.b, both.a, '-n 100 -e')
            for guest in both.guests:
                expect('no link went down', resources.counters(guest, 'cumulative')['link moves_lost'] == 0)
    expect('randomness', seen[0] != seen[1], *seen)


def test_infiniband():
    check('ib')


def test_roce():
    check('roce')


def pair(*arguments):
    return subprocess.run([PAIR, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                          timeout=patient(200), check=False)


def test_pair():
    """Of ci/rdma-hca-pair: a job's own files are there, the last job's are not."""
    with tempfile.TemporaryDirectory(dir=paths.RUN) as folder:
        for number in range(2):
            given = os.path.join(folder, f'given{number}')
            with open(given, 'w') as file:
                file.write(f'file {number}\n')
            done = pair('--snapshot', '--copy-in', given, 'cat given*; ibv_devinfo | grep -c PORT_ACTIVE')
            said = sorted(done.stdout.splitlines())
            expect('done', not done.returncode, done.stdout)
            expect('said', said == [f'guest{guest}: {line}' for guest in (1, 2) for line in ('1', f'file {number}')], done.stdout)
    done = pair('--snapshot', '--link', 'managed', 'true')
    expect('refused', done.returncode == 2 and '--snapshot' in done.stdout, done.stdout)


def test_demonstration():
    """make run SNAPSHOT=1 says that all went well."""
    done = subprocess.run([sys.executable, os.path.join(paths.TOP, 'guest-tests', 'demonstration.py')], stdout=subprocess.PIPE,
                          env={**os.environ, 'SNAPSHOT': '1', 'LINK': 'ib'}, stderr=subprocess.STDOUT, text=True,
                          timeout=patient(170), check=False)
    expect('all went well', 'All went well' in done.stdout, done.stdout)
    print(f'# {done.stdout.splitlines()[0]}')


if __name__ == '__main__':
    tap.main()
