# SPDX-License-Identifier: GPL-2.0-or-later
"""usage: runner.py TESTS DEVICE SEED MODULE...

Runs in a guest: modules of rdma-core's tests (in folder TESTS) on an RDMA device. Prints a line "module NAME" before each
module, a line "outcome JSON" for each test, with its name, one of passed, skipped, failed, and why it was skipped or failed,
and at last "end". The tests choose sizes and flags at random; the same SEED gives the same choices.
"""
import faulthandler
import importlib
import json
import random
import signal
import sys
import types
import unittest
import zlib

TEST_SECONDS = 40


class TookTooLong(Exception):
    pass


class Reporter(unittest.TestResult):
    """Prints how each test went when it has ended, the worst that was said of it."""

    def startTest(self, test):
        super().startTest(test)
        self.outcome, self.reason = 'passed', ''
        signal.alarm(TEST_SECONDS)
        # When the test does not come back to Python.
        faulthandler.dump_traceback_later(TEST_SECONDS + 10, exit=True)

    def stopTest(self, test):
        signal.alarm(0)
        faulthandler.cancel_dump_traceback_later()
        super().stopTest(test)
        report(name_of(test), self.outcome, self.reason)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        if self.outcome == 'passed':
            self.outcome, self.reason = 'skipped', reason

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.failed(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self.failed(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.failed(test, err)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.outcome, self.reason = 'failed', 'it was expected to fail'

    def failed(self, test, err):
        reason = self._exc_info_to_string(err, test)
        if not isinstance(test, unittest.TestCase):  # setUpClass and the like
            report(name_of(test), 'failed', reason)
        else:
            self.outcome, self.reason = 'failed', reason


def name_of(test):
    return test.id().removeprefix('tests.')


def report(name, outcome, reason):
    print('outcome', json.dumps({'name': name, 'outcome': outcome, 'reason': reason}), flush=True)


def each_test(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each_test(test)
        else:
            yield test


def on_alarm(number, frame):
    raise TookTooLong(f'still running after {TEST_SECONDS} s')


def main():
    folder, device, seed = sys.argv[1:4]
    modules = sys.argv[4:]
    sys.argv[1:] = ['--dev', device]
    sys.path.insert(0, folder)
    # The package's own __init__ imports every test that there is, which takes long.
    package = sys.modules['tests'] = types.ModuleType('tests')
    package.__path__ = [folder]
    importlib.import_module('args_parser').parser.parse_args()
    # Modules of helpers import each other; whoever begins with another one than this runs in a circle.
    importlib.import_module('tests.utils')
    signal.signal(signal.SIGALRM, on_alarm)
    reporter = Reporter()
    for name in modules:
        print('module', name, flush=True)
        module = importlib.import_module('tests.' + name)
        for test in each_test(unittest.defaultTestLoader.loadTestsFromModule(module)):
            random.seed(zlib.crc32(f'{seed} {test.id()}'.encode()))
            unittest.TestSuite([test]).run(reporter)
    print('end', flush=True)


main()
