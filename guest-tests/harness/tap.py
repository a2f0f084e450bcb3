# SPDX-License-Identifier: GPL-2.0-or-later
"""Run the test_* functions of a module and print TAP. -l lists them; -p NAME (may be repeated) runs only these. With LONG=1 in
the environment (make check-long) tests take their long forms."""
import argparse
import faulthandler
import os
import signal
import sys
import time
import traceback

from . import lab
from .patience import patient

DEFAULT_SECONDS = 180
LONG = os.environ.get('LONG') == '1'


class Skip(Exception):
    """Raised by a test that cannot run here; says why."""


class TimeOut(Exception):
    pass


def seconds(limit):
    """Decorator: how long a test may take."""
    def mark(function):
        function.seconds = limit
        return function
    return mark


def only_long(function):
    """Decorator: a test that there is only in the long form."""
    function.only_long = True
    return function


def main(module=None):
    names = vars(module or sys.modules['__main__'])
    tests = [(name, function) for name, function in names.items() if name.startswith('test_') and callable(function)
             and (LONG or not getattr(function, 'only_long', False))]
    parser = argparse.ArgumentParser()
    parser.add_argument('-l', action='store_true', help='list the tests')
    parser.add_argument('-p', action='append', help='run this one')
    options = parser.parse_args()
    if options.l:
        for name, _ in tests:
            print(name)
        return
    if options.p:
        tests = [(name, function) for name, function in tests if name in options.p]

    def on_alarm(number, frame):
        raise TimeOut('the test took too long')

    def on_term(number, frame):
        sys.exit(1)

    faulthandler.enable()
    signal.signal(signal.SIGALRM, on_alarm)
    signal.signal(signal.SIGTERM, on_term)
    print(f'1..{len(tests)}', flush=True)
    failed = 0
    for number, (name, function) in enumerate(tests, 1):
        failed += not run(number, name, function)
    lab.stop_all()
    sys.exit(1 if failed else 0)


def run(number, name, function):
    start = time.monotonic()
    trouble, logs, skip = [], [], ''
    signal.alarm(patient(getattr(function, 'seconds', DEFAULT_SECONDS)))
    try:
        function()
    except Skip as reason:
        skip = f' # SKIP {reason}'
    except Exception:  # pylint: disable=broad-except
        trouble += traceback.format_exc().splitlines()
    finally:
        signal.alarm(0)
    for each in lab.running():
        found = each.trouble()
        trouble += found
        if trouble:
            logs.append(f'consoles and logs: {each.folder}')
            for guest in each.guests:
                guest.leave_state()
                logs += [f'{guest.name} console: {line}' for line in guest.kernel_log().splitlines()[-15:]]
                logs += [f'{guest.name} QEMU: {line}' for line in guest.qemu_log().splitlines()[-15:]]
    if trouble:
        # The next test is not to inherit what this one has broken.
        lab.stop_all(keep=True)
    # What is wrong comes last: of a long output it is the end that is read.
    for line in [*logs, *trouble]:
        print(f'# {line}')
    print(f'{"not " if trouble else ""}ok {number} - {name}{skip}', flush=True)
    print(f'# {time.monotonic() - start:.1f} s', flush=True)
    return not trouble
