#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Device memory (programs/dm-test.c), on both link layers; that each case leaves the driver with nothing in use; and a card
that is lost while a program has it mapped."""
from harness import pci, resources, tap, verbs
from harness.labs import infiniband, kept, roce

CASES = ('zeroed', 'exhaustion', 'refused', 'isolated', 'imported', 'traffic')


def run(make_lab, case):
    resources.run(kept(make_lab, cpus=1).a, f'exec dm-test {case}')


def peers(make_lab):
    """Each of two machines writes, reads and counts in the other's memory."""
    both = kept(make_lab, cpus=1)
    before = resources.in_use(both.a)
    verbs.finish(verbs.start(both.a, both.b, 'dm-test peer'))
    resources.wait_for(both.a, before)


def test_lost():
    """The function is reset, and the machine's processor goes on with what was its memory."""
    both = kept(infiniband, cpus=1)
    program = both.a.spawn('exec dm-test lost')
    program.wait_output('in use')
    pci.reset(both.a.card)
    program.wait_output('lost')
    program.wait()
    both.wait_active()
    run(infiniband, 'zeroed')
    verbs.pingpong(both.a, both.b, '-n 50')


def test_none():
    """A card without device memory has none of its verbs."""
    with infiniband(properties={'device-memory': 0}) as both:
        output = both.a.run('ibv_devinfo -v').output
        assert 'max_dm_size' not in output, output
        assert both.a.run('dm-test traffic', check=False).status == 1
        verbs.pingpong(both.a, both.b, '-n 50')


def case(function, *arguments):
    return lambda: function(*arguments)


if __name__ == '__main__':
    for link in (infiniband, roce):
        globals().update({f'test_{link.__name__}_{name}': case(run, link, name) for name in CASES})
        globals()[f'test_{link.__name__}_peers'] = case(peers, link)
    tap.main()
