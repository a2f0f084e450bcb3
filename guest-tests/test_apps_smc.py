#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that know TCP alone, over SMC-R: their sockets are made SMC's (programs/preload/smc.c), and the machines are set up
for it (programs/smc-admin.c). None may have fallen back to TCP.

SMC-Rv1 takes RoCEv1 addresses, which the card has not; this is SMC-Rv2, which knows its partners by a name (EID). Linux 6.1
proposes it without a MAC address unless there is RoCEv1, too, so the peer is told to be behind a router, which is itself: then
Linux looks up the MAC address.

Soft-RoCE of Linux 6.1 cannot carry SMC, which arms its CQs with both flags: it compares these with each of them, and is
silent."""
import re
import signal

from harness import apps, faults, tap, verbs, wait
from harness.guest import GuestError
from harness.labs import kept, roce

SIZE = (200 if tap.LONG else 5) << 20
SMC = 'exec env LD_PRELOAD=preload-smc.so'

def set_up(guest, other):
    card, peer = guest.card, other.card.address()
    guest.run('modprobe -a smc smc_diag && smc-admin eid RDMA-HCA.TEST && '
              f'ip route replace {peer}/32 via {peer} dev {card.interface} onlink')


def ready(guest):
    return guest.run('lsmod | grep -q "^smc "', check=False).status == 0


def prepared(make):
    both = kept(make, **apps.ALONE)
    for guest, other in (both.a, both.b), (both.b, both.a):
        if not ready(guest):
            set_up(guest, other)
    return both


def stats(guest):
    return {name: int(value) for name, value in re.findall(r'^(\w+) (\d+)$', guest.run('smc-admin stats').output, re.MULTILINE)}


class Watch:
    """Inside, a client's connections to a server are SMC-R's, and all of its bytes go by RDMA."""

    def __init__(self, both, server, client, connections, size):
        self.both, self.server, self.client, self.connections, self.size = both, server, client, connections, size

    def __enter__(self):
        self.before = [stats(guest) for guest in (self.client, self.server)]
        self.counted = faults.counted(self.both)

    def __exit__(self, *exception):
        if any(exception):
            return
        client, server = [{name: value - before.get(name, 0) for name, value in stats(guest).items()}
                          for guest, before in zip((self.client, self.server), self.before)]
        if (client['client_v2'], server['server_v2']) != (self.connections, self.connections):
            raise GuestError(f'not SMC-Rv2: {client}, {server}')
        if client.get('client_fallback', 0) or server.get('server_fallback', 0):
            raise GuestError(f'fell back to TCP: {client}, {server}')
        # Not by what they have read: of a connection whose link is gone Linux does not count all of that.
        if client['tx_bytes'] + server['tx_bytes'] < self.size:
            raise GuestError(f'only so much went by RDMA: {client}, {server}')
        apps.carried(self.both, self.counted, 'responder writes', self.size >> 15)


def listen(server, arguments):
    port = verbs.new_port()
    serving = server.spawn(f'{SMC} socat {arguments.format(listen=f"TCP-LISTEN:{port},reuseaddr")}')
    verbs.wait_listening(serving, port)
    return serving, f'TCP:{server.card.address()}:{port}'


def copy(both, server, client, size=SIZE):
    """A file to the server, and back."""
    client.run(f'rm -f /tmp/sent /tmp/back; head -c {size} /dev/urandom >/tmp/sent')
    server.run('rm -f /tmp/kept')
    with Watch(both, server, client, 2, 2 * size):
        serving, where = listen(server, '-u {listen} CREATE:/tmp/kept')
        client.run(f'{SMC} socat -u OPEN:/tmp/sent {where}', timeout=120)
        serving.wait()
        serving, where = listen(server, '-u OPEN:/tmp/kept {listen}')
        client.run(f'{SMC} socat -u {where} CREATE:/tmp/back', timeout=120)
        serving.wait()
        client.run('cmp /tmp/sent /tmp/back')


def echo(both, server, client, size=SIZE):
    """Both ways at once."""
    client.run(f'head -c {size} /dev/urandom >/tmp/sent')
    with Watch(both, server, client, 1, 2 * size):
        serving, where = listen(server, '{listen} EXEC:cat')
        client.run(f'{SMC} socat -t 100 STDIO {where} </tmp/sent >/tmp/back && cmp /tmp/sent /tmp/back', timeout=120)
        serving.wait()


def iperf(server, client, preload, options=''):
    port = verbs.new_port()
    serving = server.spawn(f'{preload} iperf3 -s -1 -p {port}')
    verbs.wait_listening(serving, port)
    output = client.run(f'{preload} iperf3 -c {server.card.address()} -p {port} -n {SIZE} {options}', timeout=120).output
    serving.wait()
    return re.search(r'([0-9.]+ \wbits/sec) +receiver', output).group(1)


def test_files():
    both = prepared(roce)
    copy(both, both.a, both.b)
    copy(both, both.b, both.a)


def test_echo():
    both = prepared(roce)
    echo(both, both.a, both.b)


def test_many_connections():
    """iperf3 has one connection more than streams, which come in both directions."""
    both = prepared(roce)
    for options in '-P 4', '-P 4 -R':
        with Watch(both, both.a, both.b, 5, SIZE):
            iperf(both.a, both.b, SMC, options)


def test_figures():
    both = prepared(roce)
    for name, preload in ('SMC-R', SMC), ('TCP', 'exec'):
        print(f'# iperf3 by {name}: {iperf(both.a, both.b, preload)}')


def test_loss():
    both = prepared(roce)
    with apps.loss(both):
        echo(both, both.a, both.b)


def sending(both):
    """Programs at work, of which the client sends without an end; the server, then the client."""
    serving, where = listen(both.a, '-u {listen} OPEN:/dev/null,wronly')
    before = faults.counted(both)
    client = both.b.spawn(f'{SMC} socat -u OPEN:/dev/zero {where}')
    faults.wait_moved(both, before, 'responder writes', 301)
    return serving, client


def full(both):
    """Whether who sends finds no room any more."""
    before = faults.counted(both)
    both.b.run('sleep 1')
    return not faults.moved(both, before)['responder writes']


def test_peer_killed():
    """The program that sends is told that nobody is there. What the one that is killed has not read makes it an abort; after a
    plain end Linux 6.1 does not wake who waits for room (docs/compatibility.md)."""
    both = prepared(roce)
    serving, client = sending(both)
    serving.kill(signal.SIGSTOP)
    wait.until(lambda: full(both), 'a full receive buffer')
    serving.end()
    ends_with_error(client)
    echo(both, both.a, both.b)


def ends_with_error(client):
    result = client.wait(120, check=False)
    if result.status != 1 or not re.search('Broken pipe|Connection (reset|aborted)', result.output):
        raise GuestError(f'nobody told of the death:\n{result}')
    print('# ' + result.output.strip().splitlines()[-1])


def unload(guest):
    """When its last socket has gone, which waits for the peer to tell that it has closed, too."""
    guest.run('rmmod smc_diag')

    def users():
        return guest.run('cat /sys/module/smc/refcnt; grep -E "SMC|TCP" /proc/net/protocols; ss -tanoe', check=False).output

    wait.until(lambda: guest.run('cat /sys/module/smc/refcnt').output.strip() == '0',
               lambda: f'SMC without a user in {guest.name}; it has\n{users()}', 180)
    guest.run('modprobe -r smc')


@tap.seconds(400)
def test_unloaded():
    """Before a peer is reset: then Linux 6.1 keeps a socket for ever now and then (docs/compatibility.md)."""
    both = prepared(roce)
    for guest in both.guests:
        unload(guest)


def test_peer_reset():
    """So it is when the other machine is gone without a word."""
    both = prepared(roce)
    serving, client = sending(both)
    both.a.reset()
    ends_with_error(client)
    both.wait_again(both.a)
    serving.wait(check=False)
    echo(prepared(roce), both.a, both.b)


if __name__ == '__main__':
    tap.main()
