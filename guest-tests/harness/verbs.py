# SPDX-License-Identifier: GPL-2.0-or-later
"""The verbs programs that tests run: a server in one guest, its client in the other. Both use their guest's card, or the RDMA
device in the same slot of both guests; version, of IP, chooses among the addresses of one that speaks RoCE."""
import math
import re

from . import quota, wait
from .check import expect
from .guest import GuestError, end_all

PORT = 18515
_next_port = [PORT]


def new_port():
    """A TCP port that no program of an earlier test still holds."""
    _next_port[0] += 1
    return _next_port[0]


def address(guest):
    """Where the programs of others find the guest: at its first network card."""
    return guest.devices[0].address()


def wait_server(serving, listens):
    """Wait until listens() says that a server does."""
    def ready():
        return 'listens' if listens() else None if serving.running else 'ended'

    def trouble():
        return f'listening: {serving.guest.name}$ {serving.script}\n{serving.output}'

    if wait.until(ready, trouble, pause=0.05) == 'ended':
        raise GuestError(f'ended instead of {trouble()}')


def wait_listening(serving, port):
    """Wait until a server listens on a TCP port."""
    # state 0A is LISTEN
    script = f"grep -qi ':{port:04x} 0*:0000 0A ' /proc/net/tcp /proc/net/tcp6"
    wait_server(serving, lambda: serving.guest.run(script, check=False).status == 0)


def start(server, client, program, version=4, slot=None, percent=None):
    """Start a program as server and as client, each with so much of a processor; give both commands, the client's first."""
    port = new_port()

    def script(guest):
        device = guest.card if slot is None else guest.devices[slot]
        return quota.at(percent, f'exec {program} {device.options(program, version)} -p {port}')

    serving = server.spawn(script(server))
    wait_listening(serving, port)
    return client.spawn(f'{script(client)} {address(server)}'), serving


def forever(server, client, program='ibv_rc_pingpong -e -n 1000000000', percent=15):
    """Start traffic that only has to be there; give both commands, which have found each other."""
    commands = start(server, client, program, percent=percent)
    for command in commands:
        command.wait_output('remote address')
    return commands


def going_on(commands):
    """Traffic without an end is still there."""
    for command in commands:
        expect(f'going on: {command.script}', command.running, command.output)


def went_on(commands):
    """The same; then it is ended."""
    going_on(commands)
    end_all(commands)


def finish(commands, timeout=90):
    """Wait for the end of commands; give their outputs."""
    try:
        return [command.wait(timeout).output for command in commands]
    except GuestError as error:
        # It may be the other side that says why.
        others = '\n'.join(f'{each.guest.name}$ {each.script}\n{each.output}' for each in commands)
        raise GuestError(f'{error}\nof\n{others}') from error


def pingpong(server, client, options='', service='rc', version=4, timeout=90):
    """ibv_rc_pingpong (or uc, ud), each side checking what it received; gives the client's microseconds an exchange."""
    outputs = finish(start(server, client, f'ibv_{service}_pingpong -c {options}', version), timeout)
    found = [re.search(r'iters in .* seconds = ([0-9.]+) usec/iter', output) for output in outputs]
    for output, match in zip(outputs, found):
        if 'invalid data' in output or not match:
            raise GuestError(f'ibv_{service}_pingpong received wrong data, or did not come to its end:\n{output}')
    return float(found[0].group(1))


def perftest_rows(output):
    """The rows of numbers of a perftest program's table. Where its calibration of the cycle counter failed, rates are 0 and
    times "inf"; where times differ much, their standard deviation is "-nan"."""
    return [[float(word) for word in line.split()] for line in output.splitlines()
            if re.fullmatch(r'\s*\d+\s+\d+(\s+([0-9.]+|inf|-nan))+\s*', line)]


def perftest(server, client, program, options='', version=4, timeout=120, slot=None):
    """Run a perftest program; give the first row of the client's table. What it has measured may be nonsense: measured()."""
    output = finish(start(server, client, f'{program} -F {options}', version, slot), timeout)[0]
    rows = perftest_rows(output)
    if not rows:
        raise GuestError(f'nothing was reported:\n{output}')
    return rows[0]


def measured(run, *arguments, **options):
    """The figure that run(), one of perftest's, gives when the program knows its clock: 0.00 and inf say that its calibration
    failed, as it does on a busy machine, not that nothing was moved."""
    for _ in range(10):
        figure = run(*arguments, **options)
        if 0 < figure < math.inf:
            return figure
    raise GuestError(f'the clock was not calibrated ten times in a row: {arguments[2:]}')


def bandwidth(server, client, program, size, iterations, options=''):
    """Average MB/s, see perftest()."""
    return perftest(server, client, program, f'-s {size} -n {iterations} {options}')[3]


# What of perftest can sleep until a completion comes; ib_write_bw and ib_write_lat cannot.
EVENT_PROGRAMS = ('ib_send_lat', 'ib_send_lat -c UC', 'ib_send_lat -c UD', 'ib_read_lat', 'ib_atomic_lat', 'ib_send_bw',
                  'ib_send_bw -c UD', 'ib_read_bw', 'ib_atomic_bw')


def event_programs(server, client):
    for program in EVENT_PROGRAMS:
        perftest(server, client, program, '-e -n 100')


def ucx(server, client, transport, test, options=''):
    """A test of ucx_perftest by one transport of UCX's over the network: rc_v (connections) or ud_v (datagrams)."""
    port = new_port()

    def script(guest):
        return (f'UCX_TLS={transport},self,sm UCX_NET_DEVICES={guest.card.name}:1 UCX_WARN_UNUSED_ENV_VARS=n '
                f'exec ucx_perftest -t {test} {options} -p {port}')

    serving = server.spawn(script(server))
    wait_listening(serving, port)
    output = finish([client.spawn(f'{script(client)} {address(server)}'), serving])[0]
    if not re.search(r'^Final: +\d+ ', output, re.MULTILINE):
        raise GuestError(f'ucx_perftest -t {test} by {transport} {options} did not come to its end:\n{output}')


def ucx_tests(server, client, transport='ud_v'):
    """Messages of one packet; large ones, by UCX's rendezvous; a Get and an atomic, which UCX makes of messages if they are
    datagrams."""
    for test, options in (('tag_lat', '-n 50 -s 1000'), ('tag_bw', '-n 50 -s 65536'), ('ucp_get', '-n 20 -s 70000'),
                          ('ucp_fadd', '-n 20 -s 8')):
        ucx(server, client, transport, test, options)


def latency(server, client, program, size, iterations, options=''):
    """Average microseconds (half a round trip for ib_send_lat and ib_write_lat)."""
    return perftest(server, client, program, f'-s {size} -n {iterations} {options}')[5]
