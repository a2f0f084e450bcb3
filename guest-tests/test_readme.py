#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""README.md's commands, as they stand there."""
import os
import re
import subprocess

from harness import cm, examples, links, paths, tap, verbs
from harness.devices import Nic, RoceDevice, SoftRoce
from harness.examples import ExampleCard, ExampleRoceCard
from harness.guest import GuestError
from harness.lab import Lab, Machine

README = examples.Document('README.md')
BUILT = ['build', 'build/stamps/unit', 'build/stamps/python-disk']


def host(command):
    """Run a command in the project's folder; give what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith('MAKE') and name != 'MFLAGS'}
    result = subprocess.run(['bash', '-c', command], cwd=paths.TOP, env=environment, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode != 0:
        raise GuestError(f'{command}: status {result.returncode}\n{result.stdout}')
    return result.stdout


def need_build():
    """What follows is a matter of minutes, or of an hour, if sources are newer than what was built."""
    try:
        host('make -q ' + ' '.join(BUILT))
    except GuestError as error:
        raise tap.Skip('sources are newer than what was built') from error


# --- make ------------------------------------------------------------------------------------------------------------------


def test_environment():
    """`make env` names what is there, and what the text says that it names."""
    README.inline('make env')
    values = {}
    for line in host('make -s env').splitlines():
        name, value = re.fullmatch(r'(RDMA_HCA_\w+)=(.*)', line).groups()
        values[name] = value
        if value.startswith('/') and not os.path.exists(value):
            raise GuestError(f'there is no {value}')
    if os.path.basename(values['RDMA_HCA_DRIVER']) != README.inline(r'rdma_hca\.ko'):
        raise GuestError(f'{values}')
    host(f'ls {values["RDMA_HCA_RDMA_CORE"]}')


def test_targets():
    """Whatever the text has one make can be made, and `make help` tells of it."""
    summary = host(README.inline('make help'))
    targets = set(re.findall(r'^ *make ([\w-]+)|`make (?:-s )?([\w-]+)', README.text, re.M))
    names = {name for pair in targets for name in pair if name}
    if not {'run', 'check', 'check-debug', 'guest', 'env', 'bench', 'loss', 'ledger'} <= names:
        raise GuestError(f'only {names}')
    for name in names:
        host(f'make -n {name}')
        if name != 'help' and f'make {name}' not in summary:
            raise GuestError(f'no {name} in\n{summary}')


@tap.seconds(300)
def test_check():
    """Tests are named by `T=list`, and one that is named there runs alone."""
    need_build()
    listed = host(f'make check {README.inline("T=list")}').splitlines()
    case = 'source/style/licence'
    if case not in listed:
        raise GuestError(f'{case} is not among {len(listed)} tests')
    output = host(README.inline('make check T=PATTERN').replace('PATTERN', f"'^{case}$'"))
    if 'Files=1, Tests=1,' not in output or 'Result: PASS' not in output:
        raise GuestError(output)


@tap.seconds(300)
def test_run():
    need_build()
    command = README.example('make run').splitlines()[0]
    output = host(command)
    if 'All went well' not in output:
        raise GuestError(output)


# --- machines --------------------------------------------------------------------------------------------------------------


def other_end(text, *changes):
    """The other machine, which "is the same" but for this."""
    for old, new in (('server=on', README.inline('server=off')), *changes):
        if old not in text:
            raise GuestError(f'no {old} in\n{text}')
        text = text.replace(old, new)
    return text


def cabled(first, more=''):
    """Two guests whose cards are cabled together by README's command for the first; more: of the second's command line."""
    second = other_end(first, ('lid=1', README.inline('lid=2'))) + more
    return Lab([examples.machine(text, Nic('net'), ExampleCard()) for text in examples.apart(first, second)],
               {'net': links.stream()})


def test_cable():
    """The port is ACTIVE while the peer is there, and so again when it was away."""
    with cabled(README.example('-object rdma-hca-cable')) as both:
        verbs.pingpong(both.a, both.b, '-n 50')
        both.a.stop()
        both.b.card.wait_port('DOWN')
        both.a.start().wait_ready()
        both.wait_active()
        verbs.pingpong(both.b, both.a, '-n 50')


def test_cable_over_tcp_looked_into():
    """One card is seen by its traces, in the monitor and in the guest."""
    text = README.example('-object rdma-hca-cable')
    unix = re.search('type=unix,path=[^,]+', text)[0]
    with cabled(text.replace(unix, README.inline('type=inet,[^`]+')),
                more=' ' + README.inline("-trace 'rdma_hca_[*]'")) as both:
        verbs.pingpong(both.a, both.b, '-n 50')
        if 'rdma_hca_doorbell' not in both.b.qemu_log():
            raise GuestError('no doorbell among the traces')
        command = README.inline('info rdma-hca')
        counters = both.b.qmp('human-monitor-command', **{'command-line': command})
        if not re.search(r'^    wqes_completed +[1-9]', counters, re.M):
            raise GuestError(f'{command}:\n{counters}')
        both.b.run(f'grep . /sys/class/infiniband/{both.b.card.name}/{README.inline("hw_counters")}/requester_wqes_completed')


def roce_example():
    return README.example('-netdev stream', '-device rdma-hca,link-layer=roce')


def test_roce():
    first = roce_example()
    second = other_end(first, (':01:01', ':01:02'))
    with Lab([examples.machine(text, ExampleRoceCard()) for text in examples.apart(first, second)]) as both:
        cm.talk(both.a, both.b)


class ReadmeSoftRoce(SoftRoce):
    """Soft-RoCE as README.md makes it."""

    def configure(self):
        RoceDevice.configure(self)
        _, command = README.example('guest#').split(' ', 1)
        self.guest.run(command)


def test_soft_roce():
    first, = examples.apart(roce_example())
    name = re.search(r'addr\.path=(\w+)', first)[1]
    connecting = links.Link(links.stream().ends[1])
    with Lab([examples.machine(first, ExampleRoceCard()), Machine(ReadmeSoftRoce(name))], {name: connecting}) as both:
        cm.talk(both.a, both.b)
        cm.talk(both.b, both.a)


if __name__ == '__main__':
    tap.main()
