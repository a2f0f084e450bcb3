# SPDX-License-Identifier: GPL-2.0-or-later
"""libfabric's own ping-pong, in both guests, by one of its providers."""
import re

from . import tap, verbs
from .guest import GuestError, end_all

TIMES = 500 if tap.LONG else 20
KINDS = {'verbs': 'msg', 'verbs;ofi_rxm': 'rdm', 'verbs;ofi_rxd': 'rdm'}
# Of 1.17. rxm: who hears that its peer has gone before it has read all that came ends with an error, or waits for ever.
# rxd: who has all ends, though it has not yet acknowledged it, and its peer sends again to nobody, for minutes.
END_BADLY, RXM_ERROR = ('verbs;ofi_rxm', 'verbs;ofi_rxd'), '[error] util/pingpong.c:1119: cq_readerr: Work Request Flushed Error'


def start(server, client, provider, kind, options, at=None):
    """The ping-pong in both guests; gives both commands, the client's first. at: the server's address, if not its card's."""
    port = verbs.new_port()

    def script(guest, ports, rest=''):
        environment = f'FI_VERBS_GID_IDX={guest.card.gid_index()}' if hasattr(guest.card, 'gid_index') else ''
        return f"{environment} exec fi_pingpong -p '{provider}' -e {kind} {options} {ports} {rest} 2>&1"

    serving = server.spawn(script(server, f'-B {port}'))
    verbs.wait_listening(serving, port)
    return client.spawn(script(client, f'-P {port}', at or server.card.address())), serving


def pingpong(server, client, provider, kind, size=None, times=TIMES, at=None, timeout=90):
    """Its usual sizes, or one."""
    sizes = f'-S {size}' if size else ''
    commands = start(server, client, provider, kind, f'-c -I {times} {sizes}', at)
    row = rf'(?m)^\w+ +{times} +=?{times} .*$'
    if provider in END_BADLY:
        for command in commands:
            command.wait_output(row, timeout)
        # Who is killed while a message comes is no good peer: its region goes before its queue pair, and the other one's error is
        # the one of a NAK for that.
        outputs = [command.output.replace(RXM_ERROR, '') for command in commands]
        end_all(commands)
    else:
        outputs = verbs.finish(commands, timeout)
    for output in outputs:
        rows = re.findall(row, output)
        if len(rows) < (1 if size else 3) or 'rror' in output:
            raise GuestError(f'not every size came to its end:\n{output}')
    return rows
