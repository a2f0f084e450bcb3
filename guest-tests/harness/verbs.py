# SPDX-License-Identifier: GPL-2.0-or-later
"""The verbs programs that tests run: a server in one guest, its client in the other."""
import math
import re
import time

from .guest import GuestError
from .pair import DEVICE

PORT = 18515
_next_port = [PORT]


def new_port():
    """A TCP port that no program of an earlier test still holds."""
    _next_port[0] += 1
    return _next_port[0]


def address(guest):
    return f'10.0.0.{guest.number}'


def wait_listening(command, port, timeout=30):
    """Wait until a server in a guest listens on a TCP port."""
    deadline = time.monotonic() + timeout
    while command.running:
        # state 0A is LISTEN
        if command.guest.run(f"grep -qi ':{port:04x} 0*:0000 0A ' /proc/net/tcp /proc/net/tcp6", check=False).status == 0:
            return
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    raise GuestError(f'{command.guest.name}: the server does not listen on port {port}: {command.script}\n{command.output}')


def start(server, client, program, port=None, server_only='', client_only=''):
    """Start a program as server and as client; give both commands, the client's first."""
    port = port or new_port()
    serving = server.spawn(f'exec {program} -p {port} {server_only}')
    wait_listening(serving, port)
    return client.spawn(f'exec {program} -p {port} {client_only} {address(server)}'), serving


def finish(commands, timeout=90):
    """Wait for the end of commands; give their outputs."""
    try:
        return [command.wait(timeout).output for command in commands]
    except GuestError as error:
        # It may be the other side that says why.
        others = '\n'.join(f'{each.guest.name}$ {each.script}\n{each.output}' for each in commands)
        raise GuestError(f'{error}\nof\n{others}') from error


def pingpong(server, client, options='', timeout=90, service='rc'):
    """ibv_rc_pingpong (or uc, ud), each side checking what it received; gives the client's microseconds an exchange."""
    program = f'ibv_{service}_pingpong'
    outputs = finish(start(server, client, f'{program} -d {DEVICE} -c {options}'), timeout)
    for output in outputs:
        if re.search('invalid data', output):
            raise GuestError(f'{program} received wrong data:\n{output}')
    match = re.search(r'iters in .* seconds = ([0-9.]+) usec/iter', outputs[0])
    if not match:
        raise GuestError(f'{program} did not report:\n{outputs[0]}')
    return float(match.group(1))


def perftest_rows(output):
    """The rows of numbers of a perftest program's table. Where its calibration of the cycle counter failed, rates are 0 and
    times "inf"; where times differ much, their standard deviation is "-nan"."""
    return [[float(word) for word in line.split()] for line in output.splitlines()
            if re.fullmatch(r'\s*\d+\s+\d+(\s+([0-9.]+|inf|-nan))+\s*', line)]


def calibrated(run):
    """Run a perftest program until it knows its clock; give the rows of its table."""
    for _ in range(10):
        output = run()
        rows = perftest_rows(output)
        if not rows:
            raise GuestError(f'nothing was reported:\n{output}')
        # 0.00 and inf say that perftest's calibration of the cycle counter failed, not that nothing was moved.
        if all(0 < value < math.inf for value in rows[0][2:4]):
            return rows
    raise GuestError(f'the clock was not calibrated ten times in a row:\n{output}')


def perftest(server, client, program, options='', timeout=90):
    """Run a perftest program; give the first row of the client's table."""
    return calibrated(lambda: finish(start(server, client, f'{program} -d {DEVICE} -F {options}'), timeout)[0])[0]


def bandwidth(server, client, program, size, iterations, options=''):
    """Average MB/s."""
    return perftest(server, client, program, f'-s {size} -n {iterations} {options}')[3]


def latency(server, client, program, size, iterations, options=''):
    """Average microseconds (half a round trip for ib_send_lat and ib_write_lat)."""
    return perftest(server, client, program, f'-s {size} -n {iterations} {options}')[5]
