#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Many: connections between two guests, guests on a segment. The long forms (make check-long) have more of both."""
from harness import cm, links, resources, tap, verbs
from harness.devices import RoceCard
from harness.guest import end_all
from harness.lab import Lab, Machine
from harness.labs import kept, roce

CONNECTIONS = 4000 if tap.LONG else 1000
GUESTS = 8 if tap.LONG else 4
ROUNDS = 5


@tap.seconds(1200 if tap.LONG else 300)
def test_connections():
    """All are there at the same time, and each carries its own data. What it took is not a matter of right or wrong."""
    both = kept(roce, memory=1024)
    with resources.given_back(both):
        address = both.a.card.address()
        serving = cm.listen(both.a, f'cm-crowd listen {CONNECTIONS} {address}')
        lines = [both.b.run(f'exec cm-crowd connect {CONNECTIONS} {address}', timeout=1000).output, serving.wait(60).output]
    for who, line in zip(('connects', 'accepts'), lines):
        print(f'# who {who}: {line.strip()}')


def test_many_queue_pairs():
    """Of perftest, each with little room; by the connection manager more than a thousand, with one completion queue."""
    both = kept(roce, memory=1024)
    with resources.given_back(both):
        verbs.perftest(both.a, both.b, 'ib_send_bw', f'-q 96 -s 64 -t 4 -r 4 -n {1000 if tap.LONG else 100}')
        cm.perftest(both.a, both.b, 'ib_write_bw', f'-F -n 10 -q {1026 if tap.LONG else 130} -s 32')


def segment(number):
    machine = Machine(RoceCard('lan'))
    return Lab([machine] * number, {'lan': links.hub(number)})


@tap.seconds(1200 if tap.LONG else 300)
def test_all_to_all():
    """Each guest serves all others at the same time, and each talks to all others."""
    with segment(GUESTS) as lab:
        servers = [cm.listen(guest, f'rping -s -P -a {guest.card.address()}') for guest in lab.guests]
        talks = [guest.spawn('set -e; ' + '; '.join(f'rping -c -V -C {ROUNDS} -S 5000 -a {other.card.address()}'
                                                    for other in lab.guests if other is not guest))
                 for guest in lab.guests]
        for talk in talks:
            talk.wait(900)
        end_all(servers)


if __name__ == '__main__':
    tap.main()
