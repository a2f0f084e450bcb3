# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks of the source as a test program: each is a function that gives what is wrong, a line each."""


def main(cases, arguments):
    """cases: checks by their names. As TAP, with GLib's options -l and -p; the status."""
    if '-l' in arguments:
        print('\n'.join(cases))
        return 0
    chosen = [b for a, b in zip(arguments, arguments[1:]) if a == '-p'] or list(cases)
    failed = 0
    print(f'1..{len(chosen)}')
    for number, name in enumerate(chosen, 1):
        complaints = cases[name]()
        for complaint in complaints:
            print('#', complaint)
        failed += bool(complaints)
        print('not ok' if complaints else 'ok', number, '-', name)
    return failed != 0
