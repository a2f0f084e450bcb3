#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs on a cable that loses a packet in a hundred each way, that is made bad and good again while they run, and
whose other end dies.

UC and UD do not repeat what was lost, and most programs wait for it for ever: ibv_uc_pingpong, ibv_ud_pingpong and
perftest's latencies run on a good cable in test_programs.py. Over loss goes what does not count messages at the
receiver: ib_write_bw, and ib_send_bw for a time (-D) instead of a number of messages.
"""
import contextlib
import re

from harness import faults, tap, verbs
from harness.guest import GuestError
from harness.labs import infiniband, kept

LOSS = faults.loss(0.01)
# What repeats what was lost: programs that say that all went well, have seen all of it come.
RELIABLE = '-c RC'


def lossy():
    return kept(infiniband, properties={'faults': LOSS})


@contextlib.contextmanager
def losses(both, repeated=True):
    """What goes on inside loses packets, and the requesters send some again (or, without acknowledgements, none)."""
    before = faults.counted(both)
    yield
    change = faults.moved(both, before)
    lost, again = change['fault tx_drop'], change['requester retransmissions']
    print(f'# {change["link tx_packets"]} packets sent, {lost} lost, {again} sent again')
    if not lost:
        raise GuestError('nothing was lost')
    if bool(again) != repeated:
        raise GuestError(f'retransmissions: {again}')


def test_pingpong():
    both = lossy()
    for options in '-s 16384 -n 200 -m 1024', '-s 16384 -n 200 -m 1024 -e':
        with faults.planned(both.guests, faults.ending(LOSS, 16), LOSS), losses(both):
            verbs.pingpong(both.a, both.b, options)
        with faults.planned(both.guests, faults.ending(LOSS, 16), LOSS), losses(both):
            verbs.pingpong(both.b, both.a, options)


def test_bandwidth():
    both = lossy()
    for program in 'ib_send_bw', 'ib_write_bw', 'ib_read_bw':
        with losses(both):
            verbs.bandwidth(both.a, both.b, program, 65536, 100, RELIABLE)


def test_bandwidth_both_ways():
    both = lossy()
    for program in 'ib_send_bw', 'ib_write_bw', 'ib_read_bw':
        with losses(both):
            verbs.bandwidth(both.a, both.b, program, 65536, 100, f'{RELIABLE} -b')


@tap.only_long
def test_latency():
    both = lossy()
    for program in 'ib_send_lat', 'ib_write_lat', 'ib_read_lat':
        with losses(both):
            verbs.latency(both.a, both.b, program, 20000, 400, RELIABLE)


def test_atomics():
    both = lossy()
    for operation in 'FETCH_AND_ADD', 'CMP_AND_SWAP':
        with losses(both):
            verbs.perftest(both.a, both.b, 'ib_atomic_bw', f'-n 1000 -A {operation}')
        with losses(both):
            verbs.perftest(both.a, both.b, 'ib_atomic_lat', f'-n 1000 -A {operation}')


def test_unreliable():
    both = lossy()
    with losses(both, repeated=False):
        verbs.bandwidth(both.a, both.b, 'ib_write_bw', 65536, 100, '-c UC')
    for options in '-c UC -s 16384', '-c UD -s 4096':
        with losses(both, repeated=False):
            outputs = verbs.finish(verbs.start(both.a, both.b, f'ib_send_bw -F {options} -D 3 -f 1'))
            for output in outputs:
                rows = verbs.perftest_rows(output)
                if not rows or not rows[0][1] > 0:
                    raise GuestError(f'no messages:\n{output}')


def test_every_kind_of_fault():
    """All at once, from the middle of the headers to the end of the data, and the data are checked."""
    both = lossy()
    kinds = ['drop', 'duplicate', 'reorder', 'delay', 'corrupt']
    plan = [{'action': kind, 'probability': 0.005} for kind in kinds]
    plan[kinds.index('reorder')]['distance'] = 3
    plan[kinds.index('delay')]['delay-ns'] = 5000000
    before = faults.counted(both)
    with faults.planned(both.guests, faults.ending(plan, 20), LOSS):
        verbs.pingpong(both.a, both.b, '-s 65536 -n 60 -m 1024')
    change = faults.moved(both, before)
    for kind in kinds:
        if not change[f'fault tx_{kind}'] or not change[f'fault rx_{kind}']:
            raise GuestError(f'nothing happened: {kind}')


def test_changed_while_traffic_flows():
    """A good cable, bad, good: losses are counted while it is bad, and the program comes to its end."""
    both = lossy()
    with faults.planned(both.guests, [], LOSS):
        start = faults.counted(both)
        commands = verbs.start(both.a, both.b, 'ibv_rc_pingpong -c -s 4096 -n 100000000')
        faults.wait_moved(both, start, 'link tx_packets', 1000)
        if faults.moved(both, start)['fault tx_drop']:
            raise GuestError('a good cable loses packets')
        faults.set_faults(both.guests, LOSS)
        faults.wait_moved(both, start, 'requester retransmissions', 3)
        faults.set_faults(both.guests, [])
        good = faults.counted(both)
        faults.wait_moved(both, good, 'link tx_packets', 1000)
        if faults.moved(both, good)['fault tx_drop']:
            raise GuestError('the cable still loses packets')
        for command in commands:
            if not command.running:
                raise GuestError(f'it should still run:\n{command.output}')
            command.kill()
            if re.search('Failed status|invalid data', command.wait(check=False).output):
                raise GuestError(command.output)


# IBA 9.7.6.1.3: a time-out is from 4.096 us * 2^code to four times that. It is waited for after the first sending and
# after each retry.
CODE = 16
RETRIES = 7  # perftest's
TIMEOUT = 4.096e-6 * 2 ** CODE
PATIENCE = 60  # for a machine that does other things


def uptime(guest):
    return float(guest.run('cat /proc/uptime').output.split()[0])


def peer_dies(both, die):
    """Guest b, or its program, dies while guest a writes to it: the time that a takes to tell, by a's clock."""
    program = f'ib_write_bw -d {both.a.card.name} -F -s 65536 -n 2000000 -u {CODE}'
    port = verbs.new_port()
    server = both.b.spawn(f'exec {program} -p {port}')
    verbs.wait_listening(server, port)
    before = faults.counted(both)
    client = both.a.spawn(f'{program} -p {port} {verbs.address(both.b)}; echo "ended with $? at" $(cat /proc/uptime)')
    faults.wait_moved(both, before, 'requester wqes_completed', 100)
    start = uptime(both.a)
    die(server)
    output = client.wait(16 * TIMEOUT * RETRIES + 2 * PATIENCE).output
    end = re.search(r'ended with ([1-9]\d*) at ([0-9.]+)', output)
    if not end or not re.search(r'Failed status 12\b', output):  # IBV_WC_RETRY_EXC_ERR
        raise GuestError(f'no retry exceeded:\n{output}')
    seconds = float(end.group(2)) - start
    low, high = TIMEOUT * (RETRIES + 1), 4 * TIMEOUT * (RETRIES + 1)
    print(f'# retry exceeded after {seconds:.2f} s; the attributes promise {low:.2f} to {high:.2f} s')
    if not low <= seconds <= high + PATIENCE:
        raise GuestError(f'retry exceeded after {seconds:.2f} s, not {low:.2f} to {high:.2f}')


def test_peer_killed():
    both = kept(infiniband)
    peer_dies(both, lambda server: server.kill())
    verbs.pingpong(both.a, both.b, '-n 50')


def test_peer_switched_off():
    with infiniband() as both:
        peer_dies(both, lambda server: both.b.stop())
        both.b.start().wait_ready()
        both.wait_active()
        verbs.pingpong(both.a, both.b, '-n 50')


if __name__ == '__main__':
    tap.main()
