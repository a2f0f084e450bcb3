# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that use the connection manager: they find their peer, and the device, by IP addresses."""
from . import quota, verbs
from .guest import GuestError


def _identifiers(guest):
    return {line for line in guest.run('rdma resource show cm_id').output.splitlines() if line.strip()}


def listeners(guest):
    """What listens in the guest by the connection manager."""
    return {line for line in _identifiers(guest) if 'state LISTEN' in line}


def connections(guest):
    """What is, or is about to be, connected in the guest by the connection manager."""
    return _identifiers(guest) - listeners(guest)


def listen(server, program, percent=None):
    """Start a server that listens by the connection manager, with so much of a processor, and wait until it does."""
    before = listeners(server)
    serving = server.spawn(quota.at(percent, f'exec {program}'))
    verbs.wait_server(serving, lambda: listeners(server) - before)
    return serving


def connected(server, client, program, listening, connecting, version=4, timeout=90, client_program=None):
    """Start a program of librdmacm on both sides; give the outputs, the client's first. listening, connecting: its options,
    with {server} for the server's address; client_program: if the client's is another one."""
    where = server.card.address(version)
    serving = listen(server, f'{program} {listening.format(server=where)}')
    result = client.run(f'exec {client_program or program} {connecting.format(server=where)}', timeout, check=False)
    if result.status != 0:
        serving.kill()
        raise GuestError(f'{result}\n{server.name}: {serving.output}')
    return result.output, serving.wait(timeout).output


# Nobody listens: an invalid service ID, as a connection is told (IBA table 99), and as who asks for a datagram QP is (SIDR).
NOBODY_LISTENS = 'RDMA_CM_EVENT_REJECTED; error: 8', 'RDMA_CM_EVENT_UNREACHABLE; error: 1'


def wait_reachable(server, client, version=4):
    """Behind a manager that has just set up the subnet its interfaces find each other late, and programs are less patient."""
    client.run(f'exec ping -q -c 1 -w 60 {server.card.address(version)}')


def perftest(server, client, program, options, tries=10):
    """A program of perftest with -R. It listens anew for the QPs of the measurement, and its client does not wait for that:
    where the client is first, both start again."""
    for attempt in range(tries):
        try:
            return connected(server, client, f'{program} -R {options} -p {verbs.new_port()}', '', '{server}')
        except GuestError as error:
            if not any(told in str(error) for told in NOBODY_LISTENS) or attempt == tries - 1:
                raise


def talk(server, client):
    """The interface, the connection manager, and validated messages."""
    client.run(f'ping -c 3 -i 0.2 {server.card.address()}')
    connected(server, client, 'rping', '-s -a {server} -C 20 -V', '-c -a {server} -C 20 -V')
    verbs.pingpong(server, client, '-n 50')
