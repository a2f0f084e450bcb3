#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Two RoCE cards whose segment loses and spoils packets, or marks them as having met congestion."""
from harness import captures, faults, resources, tap, verbs, wait
from harness.devices import RoceCard
from harness.guest import GuestError
from harness.labs import kept, roce

LOSS = faults.loss(0.01)
# Of the card that receives; the other one's capture has all packets whole.
FAULTS = [{'action': action, 'probability': 0.01, **more} for action, more in (
    ('drop', {}), ('duplicate', {}), ('reorder', {'distance': 2}), ('delay', {'delay-ns': 3000000}), ('mark', {}),
    ('corrupt', {'direction': 'rx'}))]


def test_loss():
    """A packet in a hundred each way, for the services that repeat it."""
    both = kept(roce)
    before = faults.counted(both)
    for server, client, version in (both.a, both.b, 4), (both.b, both.a, 6):
        with faults.planned(both.guests, faults.ending(LOSS, 16)):
            verbs.pingpong(server, client, '-s 16384 -n 150 -m 1024', version=version)
        with faults.planned(both.guests, LOSS):
            for program in ('ib_send_bw', 'ib_write_bw', 'ib_read_bw'):
                verbs.perftest(server, client, program, '-s 65536 -n 50', version)
            verbs.perftest(server, client, 'ib_write_lat', '-s 20000 -n 100', version)
            verbs.perftest(server, client, 'ib_atomic_bw', '-n 300', version)
    change = faults.moved(both, before)
    print(f'# {change["link tx_packets"]} packets sent, {change["fault tx_drop"]} lost, '
          f'{change["requester retransmissions"]} sent again')
    if not change['fault tx_drop'] or not change['requester retransmissions']:
        raise GuestError('nothing was lost, or sent again')


def test_faults_in_a_capture():
    cards = RoceCard('lan', properties={'fault-seed': 1}, capture=True), RoceCard('lan', capture=True)
    with roce(*cards) as both:
        for server, client, version in (both.a, both.b, 4), (both.b, both.a, 6):
            # All that is held back leaves at the end of each plan, so that what is counted has passed.
            with faults.planned([both.a], faults.ending(FAULTS, 6)):
                verbs.pingpong(server, client, '-s 8192 -n 60 -m 1024', version=version)
            with faults.planned([both.a], FAULTS):
                verbs.perftest(server, client, 'ib_read_bw', '-s 8192 -n 30 -m 1024 -t 2', version)
        counters = resources.counters(both.a, 'cumulative')
        for guest in both.guests:
            guest.stop()
            captures.check(guest.card.captured)
        captures.check_comments(both.a.card.captured, counters, [rule['action'] for rule in FAULTS])


def since(guest, before):
    return {name: value - before[name] for name, value in resources.counters(guest, 'cumulative').items()}


def congested(both, server, client, version, plan):
    """Write from client to server with faults of the server's card; what both cards have counted of it."""
    before = [resources.counters(guest, 'cumulative') for guest in (server, client)]
    with faults.planned([server], plan):
        verbs.perftest(server, client, 'ib_write_bw', '-s 65536 -n 50 -m 1024', version)
    # The limit is restored some time after the last notification.
    def limits():
        counters = resources.counters(client, 'cumulative')
        return [counters[f'requester limit_{what}'] for what in ('halved', 'restored')]

    wait.until(lambda: len(set(limits())) == 1, lambda: f'restored: {client.name}: {limits()}')
    return [since(guest, old) for guest, old in zip((server, client), before)]


def expect(what, condition, *counters):
    if not condition:
        moved = [{name: value for name, value in each.items() if value} for each in counters]
        raise GuestError(f'{what}:\n' + '\n'.join(map(str, moved)))


def limited():
    """Cards whose QPs have few packets on their way, so that the limit is met."""
    return roce(*[RoceCard('lan', properties={'osq-per-qp': 16})] * 2)


def test_congestion():
    """Marks make the responder notify the requester, which halves what it has on its way, and recovers."""
    both = kept(limited)
    for server, client, version in (both.a, both.b, 4), (both.b, both.a, 6):
        responder, requester = congested(both, server, client, version,
                                         [{'action': 'mark', 'direction': 'rx', 'kinds': ['write'], 'every': 20}])
        counters = responder, requester
        marked = responder['responder ecn_marked_rx']
        print(f'# {marked} marked, {responder["responder cnp_tx"]} notifications, limit halved '
              f'{requester["requester limit_halved"]} times')
        expect('marks', marked > 0 and marked == responder['fault rx_mark'], *counters)
        expect('notifications sent', 0 < responder['responder cnp_tx'] <= marked, *counters)
        expect('notifications received', requester['requester cnp_rx'] == responder['responder cnp_tx'], *counters)
        expect('back-off', 0 < requester['requester limit_halved'] <= requester['requester cnp_rx'], *counters)
        expect('recovery', requester['requester limit_restored'] == requester['requester limit_halved'], *counters)
        expect('events', requester['cxtmgt event_congestion'] == requester['requester limit_halved'], *counters)
        expect('waiting for the limit', requester['requester wait_outstanding'] > 0, *counters)


def test_no_congestion():
    """Without marks there are no notifications, and nothing is halved."""
    both = kept(limited)
    responder, requester = congested(both, both.a, both.b, 4, [])
    for name in 'ecn_marked_rx', 'cnp_tx':
        expect(name, responder[f'responder {name}'] == 0, responder, requester)
    for name in 'cnp_rx', 'limit_halved', 'limit_restored':
        expect(name, requester[f'requester {name}'] == 0, responder, requester)


def test_congestion_while_packets_are_lost():
    """A lost notification is none; what is sent again is within the limit, too."""
    both = kept(limited)
    plan = [{'action': 'mark', 'direction': 'rx', 'kinds': ['write'], 'probability': 0.05}, *faults.loss(0.02)]
    responder, requester = congested(both, both.a, both.b, 6, plan)
    counters = responder, requester
    expect('notifications', 0 < requester['requester cnp_rx'] <= responder['responder cnp_tx'], *counters)
    expect('back-off and recovery',
           0 < requester['requester limit_halved'] == requester['requester limit_restored'], *counters)


if __name__ == '__main__':
    tap.main()
