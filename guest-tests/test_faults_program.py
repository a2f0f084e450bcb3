#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""rdma-hca-fault: what a user says to it, and what the card of a running machine then has."""
import os
import re
import subprocess

from harness import paths, resources, tap, verbs, wait
from harness.check import expect
from harness.labs import infiniband, kept

PROGRAM = os.path.join(paths.TOP, 'hw-rdma-hca/tools/rdma-hca-fault')


def fault(socket, *words, check=True):
    """What it prints, and its status."""
    result = subprocess.run([PROGRAM, socket, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if check:
        expect(f'it does so: {" ".join(words)}', result.returncode == 0, result.stdout)
    return result.stdout, result.returncode


def listed(socket):
    return fault(socket, 'list')[0].splitlines()


def test_add_list_clear():
    """Rules come one by one, and those before them go on; a list; JSON; none any more."""
    both = kept(infiniband)
    with both.a.lent_monitor() as socket:
        fault(socket, 'add', 'action=drop', 'kinds=ack,nak', 'skip=1000000')
        fault(socket, 'add', 'place=send', 'action=fail', 'wc-status=rem-access-err', 'qpn=0xfffff0', '--for', '30s', '--after', '1.5ms')
        fault(socket, 'add', '[{"place": "answer", "action": "delay", "delay-ns": 5, "qpn": 1}, {"action": "mark"}]')
        lines = listed(socket)
        expect('four', len(lines) == 4, lines)
        expect('each as it was said', lines[0].startswith('action=drop kinds=ack,nak skip=1000000: matched ')
               and 'for-ns=30000000000' in lines[1] and 'after-ns=1500000' in lines[1] and 'qpn=16777200' in lines[1], lines)
    verbs.pingpong(both.a, both.b, '-n 50')
    with both.a.lent_monitor() as socket:
        matched = int(re.search(r'matched (\d+), done 0$', listed(socket)[0])[1])
        expect('acknowledgements have matched', matched >= 50, matched)
        fault(socket, 'add', 'action=drop', 'direction=rx', 'probability=0')
        again = int(re.search(r'matched (\d+), done 0$', listed(socket)[0])[1])
        expect('the count goes on', again >= matched, matched, again)
        fault(socket, 'clear')
        expect('none', not listed(socket), listed(socket))


# What is said, and a part of the sentence that it ends with.
WRONG = (
    ('add action=lose', 'lose'), ('add action', 'KEY=VALUE'), ('add place=send action=fail', 'wc-status'), ('add [{', 'JSON'),
    ('add action=drop --for 30', 'no time'), ('flap some', 'number of times'), ('flap 1 2 3', 'no time'), ('raise', 'EVENT'),
    ('raise qp-fatal', 'qpn'), ('raise wq-fatal', 'wq-fatal'), ('-c nobody list', 'nobody'),
)


def test_wrong():
    """A sentence, a status of 1, and nothing has changed."""
    both = kept(infiniband)
    with both.a.lent_monitor() as socket:
        for words, part in WRONG:
            output, status = fault(socket, *words.split(), check=False)
            expect(f'it is refused: {words}', status == 1 and output.startswith('rdma-hca-fault: ') and part in output, output, status)
        expect('none', not listed(socket), listed(socket))
        for _ in range(32):
            fault(socket, 'add', 'action=mark')
        output, status = fault(socket, 'add', 'action=mark', check=False)
        expect('32 at the most', status == 1 and '32' in output, output)
        fault(socket, 'clear')
    output, status = fault('/nonexistent/qmp', 'list', check=False)
    expect('no monitor', status == 1 and 'No such file' in output, output)


def test_flap_and_raise():
    """The link goes down twice, and an event comes, while a connection lives through both."""
    both = kept(infiniband)
    watching = both.b.spawn(f'exec ibv_asyncwatch -d {both.b.card.name}')
    watching.wait_output('async event')
    client, server = verbs.start(both.b, both.a, 'ibv_rc_pingpong -n 5000')
    with both.a.lent_monitor() as socket:
        fault(socket, 'flap', '2', '20ms', '20ms', 'in-flight=delivered')
        fault(socket, 'raise', 'sm-change')
    wait.until(lambda: resources.counters(both.a, 'cumulative')['verb_fault card_down'] >= 2, lambda: 'down twice: the link', 60)
    verbs.finish([client, server])
    wait.until(lambda: watching.output.count('IBV_EVENT_PORT_ACTIVE') == 2, lambda: f'up twice: {watching.output}', 60)
    watching.end()
    expect('one event', resources.counters(both.a, 'cumulative')['verb_fault card_raise'] == 1)
    with both.a.lent_monitor() as socket:
        fault(socket, 'clear')


if __name__ == '__main__':
    tap.main()
