#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Reliable datagrams (RDS) over RDMA, by programs/rds-test.c, which looks at what it receives and in which order. RDS connects by
the connection manager: RoCE."""
from harness import apps, faults, rds, tap, verbs
from harness.guest import GuestError, end_all
from harness.labs import kept, roce

MESSAGES = 10000 if tap.LONG else 200


def prepared(make):
    both = kept(make)
    rds.load(both)
    return both


def run(first, second, *cases, count=MESSAGES, timeout=90):
    verbs.finish(rds.start(first, second, cases, count), timeout)


def each_case(both):
    for first, second in (both.a, both.b), (both.b, both.a):
        run(first, second, 'answers', 'messages')
        run(first, second, 'read_late', 'fill_up', count=5 * MESSAGES)
        run(first, second, 'borrow', 'lend', count=MESSAGES // 10)


def test_messages():
    both = prepared(roce)
    before = faults.counted(both)
    each_case(both)
    for name, least in ('responder sends', 100), ('responder writes', 100), ('responder reads', 20):
        apps.carried(both, before, name, least)


def test_loss():
    """Of itself RDS gives a connection up when a packet was lost twice, and then both sides connect and reject each other for
    a minute now and then: an operator has it repeat more often, as others do."""
    both = kept(roce)
    rds.unload(both)
    rds.load(both, 'rds_ib_retry_count=7')
    with apps.loss(both):
        run(both.a, both.b, 'answers', 'messages', timeout=150)
        run(both.b, both.a, 'borrow', 'lend', count=10, timeout=150)
    rds.unload(both)


def test_peer_killed():
    """RDS does not tell of sockets that are gone: what they have not read is dropped. Others go on."""
    both = prepared(roce)
    before = faults.counted(both)
    first, second = rds.start(both.a, both.b, ('answers', 'messages'), 100000000)
    faults.wait_moved(both, before, 'responder sends', 301)
    end_all([first, second])
    run(both.a, both.b, 'answers', 'messages')


def test_peer_reset():
    """The other machine starts again, with its connections open."""
    both = prepared(roce)
    before = faults.counted(both)
    first, second = rds.start(both.a, both.b, ('answers', 'messages'), 100000000)
    faults.wait_moved(both, before, 'responder sends', 301)
    both.b.reset()
    both.wait_again(both.b)
    first.kill()
    both = prepared(roce)
    run(both.a, both.b, 'answers', 'messages', timeout=150)
    run(both.b, both.a, 'answers', 'messages')


def test_unloaded():
    """The module goes with its connections."""
    both = prepared(roce)
    run(both.a, both.b, 'answers', 'messages')
    rds.unload(both)
    for guest in both.guests:
        found = guest.run('rdma resource show qp').output
        if 'rdma_cm' in found:
            raise GuestError(f'RDS left a QP:\n{found}')


@tap.only_long
def test_stranger():
    each_case(prepared(apps.mixed))


if __name__ == '__main__':
    tap.main()
