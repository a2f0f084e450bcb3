#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a subnet manager can ask of two cards back to back: several LIDs, partitions, keys, another prefix; that it may go, and
another comes."""
import contextlib
import functools
import signal

from harness import cm_programs, diags, events, fabric, ipoib, tap, verbs, wait
from harness.check import expect
from harness.guest import GuestError
from harness.labs import kept

pair = functools.partial(kept, fabric.pair)

# Full members of another partition; of one of their own; and limited members, who may speak to full ones only.
PARTITIONS = '''Default=0x7fff, ipoib : ALL=full ;
both=0x0001, ipoib : ALL=full ;
one=0x0002, ipoib : {a:#x}=full ;
other=0x0003, ipoib : {b:#x}=full ;
limited=0x0004, ipoib : ALL=limited ;
'''
SUBNET = 9  # of the interfaces of partitions


def works(both):
    """IPoIB joins its groups anew where the manager is another one, and meanwhile loses what it is given."""
    verbs.pingpong(both.a, both.b, '-n 50')
    for guest, other in (both.a, both.b), (both.b, both.a):
        ipoib.ping_all(guest, other.card.address(), [other.card.address()])
        ipoib.ping(guest, other.card.address())


# One manager after the other

def groups_work(both, number):
    """What has joined before knows the new manager, or has joined anew; and others can join."""
    for guest, other in (both.a, both.b), (both.b, both.a):
        ipoib.multicast(guest, other, f'239.7.{number}.{guest.number}')
        cm_programs.multicast(guest, other, f'239.8.{number}.{guest.number}')


def state(asker, target):
    return diags.run(asker, 'sminfo', fabric.lid(target)).split('state ')[1].split()[1]


@contextlib.contextmanager
def told(guest, *names):
    """Inside, who listens is told these, of its port, in this order."""
    with events.watched(guest) as watch:
        yield
        watch.wait(*names, timeout=60)
    expect('of the port', all(port == 1 for _, port in watch.told), watch.told)


@tap.seconds(400)
def test_failover():
    """The second takes over when the first is killed, and gives back when it returns, which has the higher priority."""
    both = pair()
    with both.other_managers():
        first = both.manage(both.a, sm_priority=10)
        second = both.manage(both.b, says=fabric.STANDBY, sm_priority=5)
        with second.expecting(*fabric.TIMEOUTS, *fabric.NO_MANAGER):
            expect('their states', (state(both.b, both.a), state(both.a, both.b)) == ('SMINFO_MASTER', 'SMINFO_STANDBY'),
                   first.log, second.log)
            fabric.wait_manager(both, both.a)
            traffic = verbs.forever(both.a, both.b, percent=10)
            with told(both.b, 'SM_CHANGE'):
                first.stop(signal.SIGKILL)
                second.wait_says(fabric.MASTER)
                second.wait_says(fabric.UP)
                fabric.wait_manager(both, both.b)
            works(both)
            groups_work(both, 1)
            second.wait_swept()
        since = len(second.log)
        back = both.manage(both.a, sm_priority=10, expected=fabric.TIMEOUTS)
        second.wait_says(fabric.STANDBY, since)
        fabric.wait_manager(both, both.a)
        expect('their states', (state(both.b, both.a), state(both.a, both.b)) == ('SMINFO_MASTER', 'SMINFO_STANDBY'),
               back.log, second.log)
        works(both)
        groups_work(both, 2)
        verbs.went_on(traffic)


def test_equal_priorities():
    """Then the lower GUID is master."""
    both = pair()
    expect('the order of their GUIDs', fabric.port(both.a).guid < fabric.port(both.b).guid)
    with both.other_managers():
        second = both.manage(both.b)
        fabric.wait_manager(both, both.b)
        # Whoever tells of itself (trap 144) may tell one that is just leaving.
        both.manage(both.a, expected=fabric.TIMEOUTS)
        second.wait_says(fabric.STANDBY)
        fabric.wait_manager(both, both.a)
        works(both)


def test_manager_restarted():
    """It keeps the LIDs, and gets to know the groups. While there is none, who knows the other goes on."""
    both = pair()
    works(both)
    before = [fabric.lid(guest) for guest in both.guests]
    traffic = verbs.forever(both.a, both.b, percent=10)
    with both.other_managers():
        works(both)
    expect('the same LIDs', [fabric.lid(guest) for guest in both.guests] == before, before)
    verbs.went_on(traffic)
    groups_work(both, 3)


def test_manager_elsewhere():
    both = pair()
    with both.other_managers():
        both.manage(both.b)
        fabric.wait_manager(both, both.b)
        works(both)
        groups_work(both, 4)


# What it asks of the cards

def test_several_lids():
    """A port has four, and answers to each; its own packets have the first."""
    both = pair()
    with both.other_managers():
        with told(both.b, 'LID_CHANGE'):
            both.manage(both.a, lmc=2)
            both.wait_active()
        wait.until(lambda: all(fabric.port(guest).lmc == 2 for guest in both.guests), 'known: the number of LIDs')
        for asker, target in (both.a, both.b), (both.b, both.a), (both.a, both.a):
            base = fabric.lid(target)
            expect('aligned', base % 4 == 0, base)
            with diags.serving(target, 'ibping', asker, f'-c 1 {base}'):
                for lid in range(base, base + 4):
                    node = diags.fields(diags.run(asker, 'smpquery', f'nodeinfo {lid}'))
                    expect('the card', int(node['PortGuid'], 0) == fabric.port(target).guid, node)
                    expect('echoes', ' 5 received' in diags.run(asker, 'ibping', f'-f -c 5 {lid}'), lid)
                    diags.counters(asker, lid)
        number, output = diags.records(both.b, f'--sgid-to-dgid {fabric.port(both.a).gid}-{fabric.port(both.b).gid}')
        expect('paths to each', number >= 4, output)
        works(both)
    expect('one again', all(fabric.port(guest).lmc == 0 for guest in both.guests), *map(fabric.port, both.guests))
    works(both)


def pkeys(guest):
    """The P_Keys of a port, and their indices."""
    files = f'/sys/class/infiniband/{guest.card.name}/ports/1/pkeys'
    lines = guest.run(f'cd {files} && grep -v 0x0000 *').output.split()
    return {int(value, 0): int(index) for index, value in (line.split(':') for line in lines)}


def send(both, client_key, server_key):
    """A Send from the first guest to the second by QPs with these keys; gives what the client says."""
    port = verbs.new_port()

    def script(guest, key):
        return f'exec ib_send_bw -F -d {guest.card.name} -s 1000 -n 20 --pkey_index={pkeys(guest)[key]} -p {port}'

    server = both.b.spawn(script(both.b, server_key))
    verbs.wait_listening(server, port)
    result = both.a.run(f'{script(both.a, client_key)} {verbs.address(both.b)}', check=False)
    if result.status:
        server.kill()
    server.wait(check=False)
    return result


def violations(asker, target):
    return int(diags.fields(diags.run(asker, 'smpquery', f'portinfo {fabric.lid(target)}'))['PkeyViolations'])


def judge_keys(both):
    """QPs of one partition hear each other; of others, and of limited members, nothing."""
    expect('heard', send(both, 0x8001, 0x8001).status == 0)
    for client_key, server_key in (0x8001, 0xffff), (0x8002, 0x8003), (0x0004, 0x0004):
        before = violations(both.a, both.b)
        result = send(both, client_key, server_key)
        expect('nothing is heard', result.status and 'status 12' in result.output, result)
        expect('counted', violations(both.a, both.b) > before, before)


def judge_interfaces(both):
    with ipoib.child(both.a, 0x8001) as name, ipoib.child(both.b, 0x8001):
        for guest in both.guests:
            guest.run(f'ip address add 10.0.{SUBNET}.{guest.number}/24 dev {name} && ip link set {name} up')
            wait.until(lambda: ipoib.has_carrier(guest, name), f'joined: {guest.name}: {name}')
        ipoib.ping(both.a, f'10.0.{SUBNET}.2', f'-I {name}')
        ipoib.ping(both.b, f'10.0.{SUBNET}.1', f'-s 20000 -I {name}')
    with ipoib.child(both.a, 0x8002) as member, ipoib.child(both.b, 0x8002) as stranger:
        for guest, name in (both.a, member), (both.b, stranger):
            guest.run(f'ip link set {name} up')
        wait.until(lambda: ipoib.has_carrier(both.a, member), f'joined: {member}')
        expect('only a member joins', not ipoib.has_carrier(both.b, stranger))


@tap.seconds(300)
def test_partitions():
    both = pair()
    guids = {guest.name[-1]: fabric.port(guest).guid for guest in both.guests}
    with both.other_managers():
        with told(both.b, 'PKEY_CHANGE'):
            both.manage(both.a, partitions=PARTITIONS.format(a=guids['1'], b=guids['2']))
            both.wait_active()
        for guest, own in (both.a, 0x8002), (both.b, 0x8003):
            wait.until(lambda: set(pkeys(guest)) == {0xffff, 0x8001, own, 0x0004}, lambda: f'there: keys: {pkeys(guest)}')
            expect('the default one first', pkeys(guest)[0xffff] == 0, pkeys(guest))
            output = diags.run(both.a, 'smpquery', f'pkeys {fabric.lid(guest)}')
            expect('the same in its table', all(f'{key:#06x}' in output for key in pkeys(guest)), output)
        judge_keys(both)
        judge_interfaces(both)
        works(both)
    wait.until(lambda: all(set(pkeys(guest)) == {0xffff} for guest in both.guests), 'gone: keys of other partitions')
    works(both)


def test_prefix():
    """Another one of the subnet's is in all GIDs. Linux's core keeps IB_EVENT_GID_CHANGE of an InfiniBand port to itself."""
    both = pair()
    with both.other_managers():
        with told(both.b, 'CLIENT_REREGISTER'):
            both.manage(both.a, subnet_prefix='0xfec0000000000000')
        wait.until(lambda: all(fabric.port(guest).gid.startswith('fec0:0000:0000:0000:') for guest in both.guests),
                   lambda: f'known: the prefix: {[fabric.port(guest).gid for guest in both.guests]}')
        both.wait_active()
        verbs.pingpong(both.a, both.b, '-n 50 -g 0')
        ipoib.forget_neighbours(both)
        works(both)
    wait.until(lambda: all(fabric.port(guest).gid.startswith('fe80:') for guest in both.guests), 'as it was: the prefix')
    ipoib.forget_neighbours(both)
    works(both)


def test_management_key():
    """Without it nobody changes a port, and nobody learns it; what asks without it is not answered at all. The manager finds it
    in its files when it takes it away."""
    both = pair()
    key = 0x1234567812345678
    with both.other_managers():
        both.manage(both.a, m_key=f'{key:#x}', m_key_protection_level=1)
        lid = fabric.lid(both.b)
        for options, shown in ('-K', 0), (f'-K -y {key:#x}', key):
            info = diags.fields(diags.run(both.a, 'smpquery', f'{options} portinfo {lid}'))
            expect('the key', int(info['Mkey'], 0) == shown, info)
        before = int(info['MkeyViolations'])
        result = both.a.run(f'exec ibportstate -C {both.a.card.name} -t 200 {lid} 1 speed 1', check=False)
        expect('no answer', result.status and 'set portinfo failed' in result.output, result)
        info = diags.fields(diags.run(both.a, 'smpquery', f'-y {key:#x} portinfo {lid}'))
        expect('counted', int(info['MkeyViolations']) > before, info)
        diags.run(both.a, 'ibportstate', f'-y {key:#x} {lid} 1')
        both.manager.wait_swept()
        works(both)
    info = diags.fields(diags.run(both.a, 'smpquery', f'-K portinfo {fabric.lid(both.b)}'))
    expect('no key', int(info['Mkey'], 0) == 0, info)


def test_quality_of_service():
    """The manager sets up all tables that the cards have for it."""
    both = pair()
    with both.other_managers():
        both.manage(both.a, qos='TRUE', max_op_vls=5)
        both.manager.wait_swept()
        for target in both.guests:
            for table in ('sl2vl', 'vlarb'):
                diags.run(both.b, 'smpquery', f'{table} {fabric.lid(target)}')
        works(both)


# The cable, the machine

def test_peer_reset():
    """The other machine starts again; its port is made to work again, with its LID."""
    both = pair()
    lid = fabric.lid(both.b)
    with both.manager.expecting(*fabric.TIMEOUTS), told(both.a, 'PORT_ERR', 'CLIENT_REREGISTER', 'PORT_ACTIVE'):
        both.b.reset()
        both.wait_again(both.b)
        both.manager.wait_swept()
    expect('its LID', fabric.lid(both.b) == lid, lid, fabric.port(both.b))
    works(both)


def test_manager_reset():
    """The manager's machine starts again, and another manager there, which has lost its files."""
    both = pair()
    both.a.reset()
    both.wait_again(both.a)
    both.manager.wait_swept()
    works(both)
    groups_work(both, 5)


def test_driver_loaded_again():
    """Under the manager, in the other guest."""
    both = pair()
    with both.manager.expecting(*fabric.TIMEOUTS):
        both.b.run('modprobe -r rdma_hca && modprobe rdma_hca')
        both.b.card.configure()
        both.wait_active()
        both.manager.wait_swept()
    works(both)


def test_osmtest():
    """opensm's own test of what it answers, which asks for much that it must refuse."""
    both = pair()
    with both.manager.expecting('.'):
        for guest in both.guests:
            run = f'exec osmtest -g {fabric.port(guest).guid:#x} -i /tmp/inventory -l /tmp/osmtest.log'
            for flow in ('c', 'v', 's', 'm'):
                result = guest.run(f'{run} -f {flow}', 90, check=False)
                if result.status or 'FAIL' in result.output:
                    raise GuestError(f'{result}\n{guest.run("tail -n 50 /tmp/osmtest.log").output}')
            guest.run('rm /tmp/inventory /tmp/osmtest.log')
        both.manager.wait_swept()


if __name__ == '__main__':
    tap.main()
