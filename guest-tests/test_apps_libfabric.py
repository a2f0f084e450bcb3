#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""libfabric's provider verbs, by its own ping-pong, which looks at what it receives: connections, reliable datagrams made of
connections (rxm) and of datagrams (rxd), and datagrams. Connections need the connection manager: RoCE."""
import re

from harness import apps, faults, resources, tap, verbs
from harness.guest import GuestError
from harness.labs import infiniband, kept, roce

TIMES = 500 if tap.LONG else 20
# Of 1.17: who hears that its peer has gone before it has read all that came ends with an error, or waits for ever.
ENDS_BADLY, ITS_ERROR = 'verbs;ofi_rxm', '[error] util/pingpong.c:1119: cq_readerr: Work Request Flushed Error'
SIZES = 64, 4096, 70000
KINDS = {'verbs': 'msg', 'verbs;ofi_rxm': 'rdm', 'verbs;ofi_rxd': 'rdm'}


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
    if provider == ENDS_BADLY:
        for command in commands:
            command.wait_output(row, timeout)
            command.kill()
        outputs = [command.wait(check=False).output.replace(ITS_ERROR, '') for command in commands]
    else:
        outputs = verbs.finish(commands, timeout)
    for output in outputs:
        rows = re.findall(row, output)
        if len(rows) < (1 if size else 3) or 'rror' in output:
            raise GuestError(f'not every size came to its end:\n{output}')
    return rows


def each_kind(server, client, providers=KINDS, sizes=SIZES):
    for provider in providers:
        for size in sizes:
            pingpong(server, client, provider, KINDS[provider], size)
    pingpong(server, client, 'verbs', 'dgram')


def endpoints(guest, provider):
    output = guest.run(f"fi_info -p '{provider}'").output
    return {(domain, kind) for domain, kind in re.findall(r'domain: (\S+)\n +version: .*\n +type: (\w+)', output)}


def test_endpoints():
    """What libfabric finds: no connections where there is no connection manager."""
    guest = kept(infiniband, **apps.ALONE).a
    found = endpoints(guest, 'verbs')
    if (f'{guest.card.name}-dgram', 'FI_EP_DGRAM') not in found:
        raise GuestError(f'no datagrams: {found}')


def test_datagrams():
    both = kept(infiniband, **apps.ALONE)
    before = faults.counted(both)
    pingpong(both.a, both.b, 'verbs', 'dgram', at=verbs.address(both.a))
    apps.carried(both, before, 'port tx_packets', 4 * TIMES)


def test_roce_endpoints():
    guest = kept(roce, **apps.ALONE).a
    name = guest.card.name
    for provider, wanted in (('verbs', {(name, 'FI_EP_MSG'), (f'{name}-dgram', 'FI_EP_DGRAM')}),
                             ('verbs;ofi_rxm', {(name, 'FI_EP_RDM')}), ('verbs;ofi_rxd', {(f'{name}-dgram', 'FI_EP_RDM')})):
        found = endpoints(guest, provider)
        if not wanted <= found:
            raise GuestError(f'{provider}: {found}')


@tap.seconds(300)
def test_roce_pingpongs():
    both = kept(roce, **apps.ALONE)
    before = faults.counted(both)
    each_kind(both.a, both.b)
    apps.carried(both, before, 'port tx_packets', 20 * TIMES)


def test_roce_loss():
    both = kept(roce, **apps.ALONE)
    with apps.loss(both):
        for provider, kind in KINDS.items():
            pingpong(both.b, both.a, provider, kind, 70000, 2 * TIMES)


def peer_killed(both, provider):
    """The ping-pong does not ask for events, so that a client that waits for a message goes on to."""
    before = faults.counted(both)
    client, server = start(both.a, both.b, provider, KINDS[provider], '-I 100000000 -S 4096')
    faults.wait_moved(both, before, 'port tx_packets', 501)
    for command in server, client:
        command.kill()
        command.wait(check=False)


def test_roce_peer_killed():
    """What they had is free, and others can talk."""
    both = kept(roce, **apps.ALONE)
    for provider, kind in KINDS.items():
        with resources.given_back(both):
            peer_killed(both, provider)
        pingpong(both.a, both.b, provider, kind, 64)


@tap.seconds(300)
def test_stranger():
    """Without rxm, whose endpoints cannot be enabled on Soft-RoCE (EINVAL)."""
    both = kept(apps.mixed, **apps.ALONE)
    for server, client, sizes in (both.a, both.b, SIZES[1:]), (both.b, both.a, SIZES[:1]):
        each_kind(server, client, ['verbs', 'verbs;ofi_rxd'], SIZES if tap.LONG else sizes)


if __name__ == '__main__':
    tap.main()
