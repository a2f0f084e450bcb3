#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How connections of the connection manager end (programs/cm-ends.c): in order, unheard, with who dies, and with a device that is
taken away; and streams of rsockets whose peer is there no more."""
import contextlib

from harness import cm, faults, pci, quota, resources, tap
from harness.check import expect
from harness.guest import end_all
from harness.labs import kept, roce

# A plan of faults by which nothing of the connection manager's arrives.
UNHEARD = [{'action': 'drop', 'qpn': 1}]
# One by which nothing leaves a card.
SILENT = [{'action': 'drop', 'direction': 'tx'}]


@contextlib.contextmanager
def connected(both, way):
    """A connection, made by the program in guest b: gives that, and the listening one."""
    address = both.a.card.address()
    with resources.given_back(both):
        listening = cm.listen(both.a, f'cm-ends listen {address}')
        both.b.run('rm -f /tmp/go && mkfifo /tmp/go')
        program = both.b.spawn(f'exec cm-ends {way} {address} <>/tmp/go')
        for each in program, listening:
            each.wait_output('(?m)^up$')
        yield program, listening
        listening.end()


def go(both):
    both.b.run('echo >/tmp/go')


def expect_told(command, event):
    command.wait_output(f'(?m)^RDMA_CM_EVENT_{event}$', timeout=200)


def test_in_order():
    both = kept(roce)
    with connected(both, 'part') as (program, listening):
        go(both)
        for each in program, listening:
            expect_told(each, 'DISCONNECTED 0')
            each.wait()


@tap.seconds(400)
def test_unheard():
    """The peer does not answer: who parts is told so when the manager has asked often enough, ETIMEDOUT."""
    both = kept(roce)
    with connected(both, 'part') as (program, listening):
        with faults.planned(both.guests, UNHEARD):
            go(both)
            expect_told(program, 'DISCONNECTED -110')
            program.wait()
        expect('the peer knows nothing', listening.running, listening)


def test_killed():
    both = kept(roce)
    with connected(both, 'told') as (program, listening):
        listening.kill()
        expect_told(program, 'DISCONNECTED 0')
        program.wait()


def device_removed(way):
    both = kept(roce)
    function = pci.address(both.b.card)
    with connected(both, way) as (program, _):
        pci.remove(both.b, function)
        expect_told(program, 'DEVICE_REMOVAL 0')
        program.wait()
        pci.rescan(both.b)
        both.b.card.configure()
        both.wait_active()


def test_device_removed():
    device_removed('removed')


def test_device_removed_while_destroyed():
    device_removed('held')


@contextlib.contextmanager
def stream(both):
    """Of rsockets, without end: gives both programs, that of guest b first."""
    address = both.a.card.address()
    with resources.given_back(both):
        serving = cm.listen(both.a, f'rstream -b {address} -S 100000 -C 100000000', percent=20)
        sending = both.b.spawn(quota.at(20, f'exec rstream -s {address} -S 100000 -C 100000000'))
        before = faults.counted(both)
        faults.wait_moved(both, before, 'port tx_packets', 1000)
        yield sending, serving
        end_all([sending, serving])


@tap.seconds(400)
def test_stream_of_the_dead():
    both = kept(roce)
    with stream(both) as (sending, serving):
        serving.kill()
        sending.wait(200, check=False)


@tap.seconds(400)
def test_stream_of_the_silent():
    """Nothing of who sends arrives any more, while what allows it to send does: it ends, as its last requests do. Who receives
    is told of the end by 0 bytes, of which rstream asks for more, again and again."""
    both = kept(roce)
    with stream(both) as (sending, _):
        with faults.planned([both.b], SILENT):
            sending.wait(200, check=False)


if __name__ == '__main__':
    tap.main()
