#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The recipes of docs/faults.md, each with the plan that is there: what is acknowledged is there, what failed says so with the
status that was planned, and all works afterwards."""
import contextlib
import functools
import json
import re
from pathlib import Path

from harness import apps, cm, faults, mpi, nvme, paths, resources, storage, tap, ucx, verbs, wait
from harness.check import expect
from harness.labs import infiniband, kept, roce

TEXT = (Path(paths.TOP) / 'docs/faults.md').read_text()
FLAPS, ROUNDS = (50, 12000) if tap.LONG else (3, 900)


def recipe(heading):
    """Its plan."""
    return json.loads(re.search(rf'^### {re.escape(heading)}$.*?^```json$(.*?)^```$', TEXT, re.MULTILINE | re.DOTALL)[1])


def done(guest, what):
    return resources.counters(guest, 'cumulative')[what]


class During:
    """The plan of a recipe at a guest's card inside; the counter has to move by it, and what the guest is shown by as much."""

    def __init__(self, guest, plan, counter):
        self.guest, self.plan, self.counter = guest, plan, counter

    def __enter__(self):
        self.before = self.look()
        faults.set_faults([self.guest], self.plan)

    def __exit__(self, kind, *_):
        faults.set_faults([self.guest], [])
        if kind is None:
            counted, seen = (now - then for now, then in zip(self.look(), self.before))
            expect(f'there were faults: {self.counter}', counted > 0, self.plan)
            expect('the guest knows of them', seen == counted, seen, counted)

    def look(self):
        return done(self.guest, self.counter), resources.in_statistic(self.guest)[f'{self.counter.split()[0]}_all']


@contextlib.contextmanager
def mpi_job(both, case='all', rounds=1):
    """It has begun, goes on inside, and comes to its end, with what it has computed compared."""
    job = mpi.start(both, 2, 'rc_v', case, rounds)
    job.wait_output(r'rank \d of 2: begins')
    yield job
    output = verbs.finish([job], 300)[0]
    expect('both ranks are done', len(set(re.findall(r'rank (\d+) of 2: done', output))) == 2, output)


def prepared():
    both = kept(infiniband, **apps.ALONE)
    mpi.prepare(both)
    return both


@tap.seconds(400)
def test_watchdog():
    both = prepared()
    with During(both.b, recipe("My collective library's watchdog"), 'verb_fault answer_delay'), mpi_job(both):
        pass


@tap.seconds(600)
def test_port_flaps():
    """In its short form a few times. A job that is about to begin would not find the port, nor one that makes its first window:
    UCX looks for it then."""
    both = prepared()
    plan = [{**rule, 'count': FLAPS} for rule in recipe('The port flaps for a minute while MPI runs')]
    before = done(both.b, 'verb_fault card_down')
    with mpi_job(both, 'ring', ROUNDS) as job, During(both.b, plan, 'verb_fault card_down'):
        wait.until(lambda: done(both.b, 'verb_fault card_down') > before, lambda: 'gone down: the link')
        expect('the job meets a flap', job.running)
        wait.until(lambda: done(both.b, 'verb_fault card_down') == before + FLAPS, lambda: f'gone down {FLAPS} times: the link', 300)
        print(f'# the job {"goes on" if job.running else "is done"} after {FLAPS} flaps')
    both.wait_active()


# What UCX makes of a status, and the program's test.
UCX_STATUSES = (('retry-exc-err', 'Endpoint timeout', 'tag_lat'), ('rem-access-err', 'Connection reset by remote peer', 'ucp_put_bw'),
                ('loc-prot-err', 'Input/output error', 'stream_bw'))


def ucx_told(both, plan, text, case):
    """An endless test ends by this plan at the client's card: its error handler is told so, and others work afterwards."""
    with resources.given_back(both):
        client, server = ucx.start(both.a, both.b, ucx.mortal('rc_v'), [(case, 4000, 100000000, '-e')])
        client.wait_output(rf'\+{case}')
        with During(both.b, plan, 'verb_fault send_fail'):
            said = client.wait_output(r'error handler called with status .*', timeout=100)[0]
        for command in client, server:
            command.end()
    expect('it is told what was planned', text in said, plan, said)
    ucx.run(both.a, both.b, ucx.below_protocols('rc_v'), [('tag_lat', 4000, 50, ''), ('ucp_get', 65536, 20, '')])


@tap.seconds(600)
def test_ucx():
    both = prepared()
    [rule] = recipe('An endpoint of UCX fails')
    for status, text, case in UCX_STATUSES:
        ucx_told(both, [{**rule, 'wc-status': status}], text, case)


def test_every_thousandth_send():
    both = kept(infiniband)
    with resources.given_back(both):
        with During(both.a, recipe('Every 1000th send ends in REM_ACCESS_ERR'), 'verb_fault send_fail'):
            client, server = verbs.start(both.b, both.a, 'ibv_rc_pingpong -n 5000')
            failed = client.wait(check=False)
            server.end()
        expect('it ends so', 'Failed status remote access error' in failed.output, failed)
        verbs.pingpong(both.a, both.b, '-n 20')


def test_registration():
    both = kept(infiniband)
    with resources.given_back(both):
        with During(both.a, recipe('Registration fails with ENOMEM from the 200th on'), 'host_fault command_fail'):
            result = both.a.run('mr-hog memory 1 fresh', check=False)
        expect('it could not', 'Cannot allocate memory' in result.output, result)
        verbs.pingpong(both.a, both.b, '-n 20')


STORE_ROUNDS = 10


def test_store():
    """A server that stays, and clients of which each makes a connection, exchanges data that is compared, and leaves; one that fails
    tries again."""
    both = kept(roce)
    with resources.given_back(both):
        server = cm.listen(both.a, 'rping -s -P -v -a 0.0.0.0')
        with During(both.a, recipe('Ports flap while a key-value store rebuilds its connections'), 'fault tx_down'):
            for _ in range(STORE_ROUNDS):
                for attempt in range(20):
                    result = both.b.run(f'rping -c -V -C 10 -a {both.a.card.address()}', check=False)
                    if not result.status:
                        break
                expect('a client comes through', not result.status, attempt, result)
        server.end()
    both.wait_active()


def serve(both):
    nvme.serve(both.a, *both.a.devices[1:])
    nvme.disconnect(both.b, nvme.connect(both.b, both.a.card))  # the RDMA core makes CQs that all share, and keeps them


served = functools.partial(kept, storage.lab, prepare=serve, cpus=nvme.QUEUES)


@tap.seconds(400)
def test_nvme_path_dies():
    both = served()
    with resources.given_back(both), nvme.connected(both.b, both.a.card) as name:
        with During(both.b, recipe('An NVMe path dies under fio'), 'verb_fault send_break'):
            storage.fio(both.b, nvme.disk(both.b, name), '--rw=randwrite --bs=4k --iodepth=16 --size=8m')
        log = both.b.kernel_log()
        expect('the path was lost', re.search(r'nvme nvme\d+: (starting error recovery|Reconnecting)', log), log[-3000:])
        storage.fio(both.b, nvme.disk(both.b, name), '--rw=randwrite --bs=4k --iodepth=16 --size=1m', seed=2)


if __name__ == '__main__':
    tap.main()
