# SPDX-License-Identifier: GPL-2.0-or-later
"""Run the test_* functions of a module and print TAP. -l lists them; -p NAME (may be repeated) runs only these. With LONG=1 in
the environment (make check-long) tests take their long forms."""
import argparse
import contextlib
import faulthandler
import os
import signal
import sys
import time
import traceback
from pathlib import Path

from . import lab, remains
from .patience import patient

DEFAULT_SECONDS = 180
LEAVE_SECONDS = remains.SECONDS + 30  # more than it takes by itself
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


def processor_seconds():
    """What this process has taken, with its children: those that have ended, and those that run, as machines do."""
    ticks = os.sysconf('SC_CLK_TCK')
    total = sum(os.times()[:4])
    for stat in Path('/proc').glob('[0-9]*/stat'):
        with contextlib.suppress(OSError):
            fields = stat.read_text(errors='replace').rpartition(')')[2].split()  # behind the name: from the state on
            if int(fields[1]) == os.getpid():
                total += sum(map(int, fields[11:15])) / ticks
    return total


def run(number, name, function):
    start, used = time.monotonic(), processor_seconds()
    failure, skip = [], ''
    signal.alarm(patient(getattr(function, 'seconds', DEFAULT_SECONDS)))
    try:
        function()
    except Skip as reason:
        skip = f' # SKIP {reason}'
    except Exception as error:  # pylint: disable=broad-except
        failure += blocks_of(error)
    finally:
        signal.alarm(0)
    labs = lab.running()
    failure += [block for block in (each.trouble() for each in labs) if block]
    for line in report(labs, name, failure) if failure else []:
        print(f'# {line}')
    if failure:
        # The next test is not to inherit what this one has broken.
        lab.stop_all(keep=True)
    print(f'{"not " if failure else ""}ok {number} - {name}{skip}', flush=True)
    print(f'# {time.monotonic() - start:.1f} s, of processors {processor_seconds() - used:.1f} s', flush=True)
    return not failure


def blocks_of(error):
    """The way to it, and what it says."""
    lines = [line for text in traceback.format_exception(error) for line in text.splitlines()]
    said = sum(len(text.splitlines()) for text in traceback.format_exception_only(error))
    return [lines[:-said], lines[-said:]]


def report(labs, name, failure):
    """What is printed of a failure; the rest is left in files. Whatever that meets, the failure is told."""
    whole = [line for block in failure for line in block]
    if not labs:
        return whole
    # Who catches the first one may hang in what follows.
    signal.setitimer(signal.ITIMER_REAL, patient(LEAVE_SECONDS), 10)
    try:
        return remains.leave(labs, name, failure)
    except Exception as error:  # pylint: disable=broad-except
        return [f'consoles and logs: {each.folder}' for each in labs] + [f'no more than these: {error!r}', *whole]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
