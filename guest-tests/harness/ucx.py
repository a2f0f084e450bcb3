# SPDX-License-Identifier: GPL-2.0-or-later
"""ucx_perftest, in both guests, by one of UCX's transports."""
import re

from . import quota, tap, verbs
from .guest import GuestError

MORE = 20 if tap.LONG else 1


def lines(tests):
    """A batch file of the program, which does not take a flag at the end of a line."""
    return '\n'.join(f'{name} {options} -t {name} -s {size} -n {times * MORE} -w 10' for name, size, times, options in tests)


def start(server, client, options, tests, version=4, percent=None):
    """Start tests in both guests, as options(card) say, each with so much of a processor; give both commands, the client's
    first."""
    port = verbs.new_port()

    def script(guest):
        environment, rest = options(guest.card)
        if hasattr(guest.card, 'gid_index'):
            environment += f' UCX_IB_GID_INDEX={guest.card.gid_index(version)}'
        program = f'{environment} UCX_WARN_UNUSED_ENV_VARS=n exec ucx_perftest {rest} -b /tmp/batch -p {port}'
        return f"cat >/tmp/batch <<'END'\n{lines(tests)}\nEND\n{quota.at(percent, program)}"

    serving = server.spawn(script(server))
    verbs.wait_listening(serving, port)
    return client.spawn(f'{script(client)} {verbs.address(server)}'), serving


def alone(transport):
    return lambda card: ('', f'-d {card.name}:1 -x {transport}')


def below_protocols(transport):
    return lambda card: (f'UCX_TLS={transport},self UCX_NET_DEVICES={card.name}:1', '')


def run(server, client, options, tests, version=4, timeout=150):
    """Each test comes to its end; gives the columns of each one's last row."""
    output = verbs.finish(start(server, client, options, tests, version), timeout)[0]
    begun = re.findall(r'^\+(\w+?)-+\+', output, re.MULTILINE)
    rows = [row.split() for row in re.findall(r'^Final: +(.*)', output, re.MULTILINE)]
    if begun != [name for name, *_ in tests] or len(rows) != len(tests) or 'ERROR' in output:
        raise GuestError(f'not every test came to its end:\n{output}')
    return rows


def mortal(transport):
    """With handling of errors, and less patience: UCX's own is five minutes for a datagram's acknowledgement, and of who is silent it
    asks each 20 s. All the time it polls."""
    environment = below_protocols(transport)
    return lambda card: (f'UCX_UD_TIMEOUT=5s UCX_KEEPALIVE_INTERVAL=3s UCX_RC_RETRY_COUNT=3 {environment(card)[0]}', '')
