#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Completions, posted work, states of QPs and regions where those of other cards have gone wrong (programs/completion-test.c,
posting-test.c, states-test.c, on either link layer, and regions-test.c), and that each leaves the driver with nothing in use."""
from harness import resources, tap
from harness.labs import infiniband, kept, roce

CASES = {
    'completion-test': ('past_the_end', 'last_qp_gone', 'gone_in_a_batch', 'full_of_the_dead', 'both_ways', 'posted_in_error', 'sizes',
                        'too_small', 'armed_in_between', 'two_on_a_channel'),
    'posting-test': ('sums', 'inlined', 'zero_lengths', 'nothing', 'left_over', 'bad_in_the_middle', 'shapes_of_atomics',
                     'places_of_atomics', 'states', 'limits', 'lives', 'fenced', 'unsignalled', 'at_the_wrap'),
    'states-test': ('posted_while_it_breaks', 'opcodes', 'of_many', 'overrun_of_one', 'either_order', 'path_in_rts',
                    'attributes_of_types', 'garbage_not_meant', 'rates', 'too_many_reads', 'no_addresses', 'errno', 'two_readers',
                    'groups', 'not_oneself'),
}
# Of a card's memory, which knows nothing of links.
REGIONS = 'ends', 'overlapping', 'read_only', 'parent', 'lengths'


def links_of(number, name):
    """One of the link layers, in turn; in the long form both."""
    links = [roce] if name == 'no_addresses' else [infiniband, roce]
    return links if tap.LONG else [links[number % len(links)]]


def case(make_lab, program, name):
    def run():
        resources.run(kept(make_lab, cpus=2).a, f'exec {program} {name}')
    return run


def test_huge_ends():
    guest = kept(infiniband, cpus=2).a
    guest.run('echo 4 >/proc/sys/vm/nr_hugepages')
    resources.run(guest, 'exec regions-test huge_ends')
    guest.run('echo 0 >/proc/sys/vm/nr_hugepages')


if __name__ == '__main__':
    cases = [(program, name) for program, names in CASES.items() for name in names]
    globals().update({f'test_{link.__name__}_{name}': case(link, program, name)
                      for link in (infiniband, roce) for number, (program, name) in enumerate(cases)
                      if link in links_of(number, name)})
    globals().update({f'test_{name}': case(infiniband, 'regions-test', name) for name in REGIONS})
    tap.main()
