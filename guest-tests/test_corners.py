#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Completions and posted work where those of other cards have gone wrong (programs/completion-test.c, programs/posting-test.c), on
both link layers, and that each leaves the driver with nothing in use."""
from harness import resources, tap
from harness.labs import infiniband, kept, roce

CASES = {
    'completion-test': ('past_the_end', 'last_qp_gone', 'gone_in_a_batch', 'full_of_the_dead', 'both_ways', 'posted_in_error', 'sizes',
                        'too_small', 'armed_in_between', 'two_on_a_channel'),
    'posting-test': ('sums', 'inlined', 'zero_lengths', 'nothing', 'left_over', 'bad_in_the_middle', 'shapes_of_atomics',
                     'places_of_atomics', 'states', 'limits', 'lives', 'fenced', 'unsignalled', 'at_the_wrap'),
}


def case(make_lab, program, name):
    def run():
        resources.run(kept(make_lab, cpus=2).a, f'exec {program} {name}')
    return run


if __name__ == '__main__':
    globals().update({f'test_{link.__name__}_{name}': case(link, program, name)
                      for link in (infiniband, roce) for program, names in CASES.items() for name in names})
    tap.main()
