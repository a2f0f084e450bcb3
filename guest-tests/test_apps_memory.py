#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Too little memory for what applications want to register: a user who may lock little of it, a guest that has no more, a card
whose tables are full. They are told the documented error, and nothing stays in use."""
import contextlib
import functools
import re

from harness import nfs, nvme, resources, storage, tap, verbs, wait
from harness.devices import RoceCard
from harness.guest import GuestError
from harness.labs import kept

MIB = 64 if tap.LONG else 4
TIMES, LOOPS = (5000, 4) if tap.LONG else (500, 2)  # of messages; of what is written
# Guest a's card can translate few pages, b's has few keys.
CARDS = [RoceCard('lan', properties={'log-mtts': 18}), RoceCard('lan', properties={'log-mpts': 10})]
HOG = 'mr-hog'


def prepare(both):
    for guest in both.guests:
        guest.run("echo 'user:x:1000:1000::/tmp:/bin/sh' >>/etc/passwd && echo 'user:x:1000:' >>/etc/group")
        nvme.serve(guest, guest.card, kept=False)
    nfs.export_memory(both.a)
    nfs.serve(both.a)
    # What is made once and kept: CQs of the RDMA core's, modules.
    for client, server in (both.b, both.a), (both.a, both.b):
        nvme.disconnect(client, nvme.connect(client, server.card))
    with nfs.mounted(both.b, both.a.card):
        pass


def lab():
    return storage.lab(prepare, CARDS, memory=512)


shared = functools.partial(kept, lab)


def traffic(both):
    verbs.pingpong(both.a, both.b, '-n 50')


# --- a user who may lock little ---


def as_user(guest, kib, script):
    """Start a script as a user who may lock so many KiB."""
    return guest.spawn(f"ulimit -l {kib}; exec su user -c '{script}'")


def ucx_environment(card):
    return f'UCX_TLS=rc_v,self UCX_NET_DEVICES={card.name}:1 UCX_IB_GID_INDEX={card.gid_index()} UCX_WARN_UNUSED_ENV_VARS=n'


# How programs are started in a guest: as servers, or as clients of another guest.


def at(server):
    return verbs.address(server) if server else ''


def perftest(guest, port, server):
    return f'exec ib_write_bw -F {guest.card.options("ib_write_bw", 4)} -s 1048576 -n 5 -p {port} {at(server)}'


def pingpong(size):
    return lambda guest, port, server: (f'exec ibv_rc_pingpong {guest.card.options("ibv_rc_pingpong", 4)} -s {size} -n 20 -p {port} '
                                        f'{at(server)}')


def ucx(guest, port, server):
    return f'{ucx_environment(guest.card)} exec ucx_perftest -t tag_lat -n 50 -w 10 -p {port} {at(server)}'


def libfabric(provider, kind):
    def script(guest, port, server):
        return (f'FI_VERBS_GID_IDX={guest.card.gid_index()} exec fi_pingpong -p "{provider}" -e {kind} -I 20 '
                + (f'-P {port} {server.card.address()}' if server else f'-B {port}'))
    return script


# A program, what its user may lock, and how the program says that this is too little.
REFUSED = [
    (perftest, 256, "Couldn't allocate MR"),
    (pingpong(100000), 64, "Couldn't register MR"),
    (pingpong(100), 12, "Couldn't create CQ"),
    (pingpong(100), 28, "Couldn't create QP"),
    (ucx, 64, r'ibv_create_cq\(.*\) failed: Cannot allocate memory\. Please set max locked memory'),
    (libfabric('verbs', 'msg'), 64, r'fi_getinfo\(\): .*No data available'),
    (libfabric('verbs', 'msg'), 1024, r'fi_mr_reg\(\): .*Cannot allocate memory'),
    (libfabric('verbs;ofi_rxm', 'rdm'), 1024, r'fi_mr_reg\(\): .*Cannot allocate memory'),
    (libfabric('verbs;ofi_rxd', 'rdm'), 1024, r'inject\(\): .*Cannot allocate memory'),
]
ENOUGH = [(perftest, 4096), (pingpong(100), 64), (libfabric('verbs', 'dgram'), 4096)]


def run_as_user(both, program, kib):
    """The client as that user, whose server may lock all memory; how the client ended."""
    port = verbs.new_port()
    with resources.given_back(both):
        serving = both.a.spawn(f'{program(both.a, port, None)} 2>&1')
        verbs.wait_listening(serving, port)
        result = as_user(both.b, kib, f'{program(both.b, port, both.a)} 2>&1').wait(60, check=False)
        serving.end()
    return result


def test_verbs_of_a_user():
    both = shared()
    with resources.given_back(both):
        for line in both.b.run('exec memlock-test').output.splitlines():
            print(f'# {line}')


def test_memory_of_a_file():
    """Of a file system that has to write back what has changed."""
    both = shared()
    with resources.given_back(both):
        both.a.run('modprobe -a brd ext4 && mke2fs -q -t ext4 -F /dev/ram0 && mkdir -p /tmp/ext4 && mount -t ext4 /dev/ram0 /tmp/ext4')
        both.a.run('cd /tmp/ext4 && exec extended-test file')
        both.a.run('umount /tmp/ext4')


@tap.seconds(300)
def test_programs_of_a_user():
    both = shared()
    for program, kib, message in REFUSED:
        result = run_as_user(both, program, kib)
        if not result.status or not re.search(message, result.output):
            raise GuestError(f'with {kib} KiB it did not end and say {message!r}:\n{result}')
    for program, kib in ENOUGH:
        result = run_as_user(both, program, kib)
        if result.status:
            raise GuestError(f'{kib} KiB are enough:\n{result}')


def mpi(guest, options):
    """Two ranks in one guest."""
    return (f'cd /tmp; export {ucx_environment(guest.card)}; '
            f'exec mpirun --mca plm_rsh_agent false --oversubscribe {options} -np 2 mpi-test ring 1 2>&1')


@tap.seconds(300)
def test_mpi_of_a_user():
    """Told to use UCX it says that it cannot; else it finds another way."""
    both = shared()
    with resources.given_back(both):
        result = as_user(both.b, 64, mpi(both.b, '--mca pml ucx')).wait(150, check=False)
        if not result.status or not re.search('Failed to create UCP worker.*PML ucx cannot be selected', result.output, re.DOTALL):
            raise GuestError(f'nobody told that UCX cannot run:\n{result}')
        output = as_user(both.b, 64, mpi(both.b, '')).wait(150).output
        if len(re.findall('rank .* of 2: done', output)) != 2:
            raise GuestError(f'not all ranks came to their end:\n{output}')


# --- a guest that has no more memory ---


@contextlib.contextmanager
def hogs_die(both, guest):
    """Inside the guest runs out of memory. Afterwards nothing is in use, and no process was ended but the hogs."""
    begin = len(guest.kernel_log())
    guest.out_of_memory = True
    with resources.given_back(both):
        yield
    killed = re.findall(r'Killed process \d+ \((.*?)\)', guest.kernel_log()[begin:])
    print(f'# ended: {len(killed)}')
    if not killed or set(killed) != {HOG}:
        raise GuestError(f'the kernel ended {killed}')
    both.check()
    guest.out_of_memory = False


def exhaust(guest, number, how):
    """So many processes at a time register until they are ended."""
    hogs = [guest.spawn(f'exec {HOG} memory {size} {how}') for size in (16, 3)[:number]]
    for hog in hogs:
        result = hog.wait(120, check=False)
        if result.status != 128 + 9:
            raise GuestError(f'was not ended:\n{result}')


@tap.only_long
@tap.seconds(300)
def test_no_memory():
    both = shared()
    for number in 1, 2:
        for how in 'fresh', 'touched':
            with hogs_die(both, both.b):
                exhaust(both.b, number, how)
    traffic(both)


def exhaust_during(job, guest):
    """Again and again while a command runs."""
    times = 0
    while job.running or not times:
        exhaust(guest, 2, ('fresh', 'touched')[times % 2])
        times += 1
    print(f'# {times} times')


@tap.seconds(300)
def test_no_memory_beside_traffic():
    """Who is not to be ended goes on, and its data are right."""
    both = shared()
    with hogs_die(both, both.b):
        commands = verbs.start(both.a, both.b, f'ibv_rc_pingpong -c -s 65536 -n {TIMES}')
        both.b.run('for process in $(pidof ibv_rc_pingpong); do echo -1000 >/proc/$process/oom_score_adj; done')
        exhaust_during(commands[0], both.b)
        for output in verbs.finish(commands):
            if 'invalid data' in output:
                raise GuestError(f'wrong data:\n{output}')


@tap.seconds(300)
def test_no_memory_beside_storage():
    both = shared()
    with hogs_die(both, both.b), nvme.connected(both.b, both.a.card) as name:
        job = storage.begin(both.b, nvme.disk(both.b, name), f'--rw=randwrite --bsrange=512-128k --iodepth=8 --size={MIB}m --loops={LOOPS}')
        both.b.run('for process in $(pidof fio); do echo -1000 >/proc/$process/oom_score_adj; done')
        exhaust_during(job, both.b)
        storage.report(job)


# --- a card whose tables are full ---


@contextlib.contextmanager
def tables_full(guest, pages, left):
    """Regions of so many pages take all of the card's tables, but for what `left` of them had."""
    before = resources.in_use(guest)
    hog = guest.spawn(f'exec {HOG} tables {pages} {left}')
    taken = int(hog.wait_output(r'(\d+) regions', 60).group(1))
    shown = resources.in_use(guest)['core mr'] - before['core mr']
    if shown != taken:
        raise GuestError(f'{taken} regions are taken, rdma shows {shown}')
    yield
    hog.end()


def connect_fails(guest, server):
    """The host is told that there is no memory, wherever it comes to its end; but of a PD that it does not get it says that the
    connection was refused."""
    where = f'transport=rdma,traddr={server.card.address()},trsvcid={nvme.PORT},nqn={nvme.NQN},nr_io_queues={nvme.QUEUES}'
    result = guest.run(f"echo '{where}' >/tmp/where && cat /tmp/where 2>&1 >/dev/nvme-fabrics", check=False)
    print(f'# {result.output.strip()}')
    if not result.status or not re.search('Cannot allocate memory|Connection refused', result.output):
        raise GuestError(f'it was not refused:\n{result}')


def connect_works(client, server):
    with nvme.connected(client, server.card) as name:
        storage.fio(client, nvme.disk(client, name), '--rw=randwrite --bs=4k --iodepth=16 --size=1m')


@tap.seconds(300)
def test_connect_without_keys():
    """A host needs some 295: for two queues, as many as it has processors, and for the memory of their requests."""
    both = shared()
    for left in 0, 1, 2, 3, 35, 36, 165, 280:
        with resources.given_back(both), tables_full(both.b, 1, left):
            connect_fails(both.b, both.a)
    with resources.given_back(both):
        with tables_full(both.b, 1, 320):
            connect_works(both.b, both.a)
        connect_works(both.b, both.a)


def test_connect_without_translations():
    """A request's memory has 257 pages."""
    both = shared()
    for left in 0, 1, 100, 2000:
        with resources.given_back(both), tables_full(both.a, 16, left):
            connect_fails(both.a, both.b)
    with resources.given_back(both):
        connect_works(both.a, both.b)


@tap.seconds(300)
def test_mount_without_keys():
    """Where there is none for the queues it fails; where there are some, but none for memory, it waits until there are."""
    both = shared()
    mount = f'exec mount.nfs4 -o rdma,port={nfs.PORT},vers=4.2 {both.a.card.address()}:/ {nfs.MOUNT} 2>&1'
    for left in 0, 1, 2, 3, 4:
        with resources.given_back(both), tables_full(both.b, 1, left):
            result = both.b.run(mount, check=False)
            if not result.status or 'Cannot allocate memory' not in result.output:
                raise GuestError(f'it was not refused:\n{result}')
    with resources.given_back(both):
        with tables_full(both.b, 1, 6):
            waiting = both.b.spawn(mount)
            # It has its queues.
            wait.until(lambda: resources.in_use(both.b)['core qp'] > 1 or not waiting.running, 'connected')
        waiting.wait()
        storage.fio(both.b, f'{nfs.MOUNT}/file', '--rw=randwrite --bs=64k --size=1m')
        both.b.run(f'umount {nfs.MOUNT}')


if __name__ == '__main__':
    tap.main()
