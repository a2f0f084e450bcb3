# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/run-tests starts this, at the top of the tree. PATTERN is a regular expression for names, program or program/case;
'list' has them all printed."""
import argparse
import signal
import sys

from . import check, programs, since, soak


def positive(text):
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def main():
    parser = argparse.ArgumentParser(prog='run-tests', description='Run test programs through prove.')
    parser.add_argument('pattern', nargs='?', default='')
    parser.add_argument('--soak', type=positive, metavar='ROUNDS', help='guest programs, so often')
    parser.add_argument('--load', type=int, default=0, metavar='N', help='beside N processes that spin')
    parser.add_argument('--since', metavar='REV', help='only what the changes since this commit can break')
    options = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
            signal.signal(number, lambda number, frame: sys.exit(128 + number))
    if options.pattern == 'list':
        for program in programs.programs():
            for case in program.cases():
                print(f'{program.name}/{case.lstrip("/")}')
        return 0
    chosen = programs.select(options.pattern)
    if options.soak:
        chosen = [part for part in chosen if part.program.is_guest]
    if options.since:
        chosen = since.select(chosen, options.since)
        if not chosen:
            return 0
    if not chosen:
        sys.exit(f"rdma-hca: no test matches '{options.pattern}'; make check T=list names them")
    return soak.soak(chosen, options.soak, options.load) if options.soak else check.check(chosen)


if __name__ == '__main__':
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
