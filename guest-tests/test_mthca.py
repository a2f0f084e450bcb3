#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that know nothing of us: Debian's kernel and rdma-core drive a card with the programming interface of an InfiniHost III Lx
(harness/mthca.py), without a subnet manager. With one: test_mthca_fabric.py."""
import re

from harness import captures, faults, links, moving, mthca, resources, tap, verbs, wait
from harness.check import expect
from harness.devices import InfinibandCard, Nic
from harness.lab import Lab, Machine
from harness.labs import kept

LIVES = 50 if tap.LONG else 3
SPOILED = [{'action': action, 'probability': 0.02, **more} for action, more in (
    ('drop', {}), ('duplicate', {}), ('reorder', {'distance': 2}), ('delay', {'delay-ns': 3000000}), ('corrupt', {'direction': 'rx'}))]


def mixed():
    """One of them, and our own card with our driver."""
    machines = [mthca.machine(mthca.MthcaCard('cable')), Machine(Nic('net'), InfinibandCard('cable'))]
    return Lab(machines, {'net': links.stream(), 'cable': links.unix_cable()})


def load(guest, parameters=''):
    """The driver anew."""
    guest.run(f'modprobe -r ib_mthca && modprobe ib_mthca {parameters}')
    guest.card.wait_active()


def interrupts(guest):
    """How many there have been of each of the driver's lines: of messages three, of the pin one."""
    lines = re.findall(r'^ *\d+:(.*)mthca', guest.run('cat /proc/interrupts').output, re.MULTILINE)
    return [sum(int(word) for word in line.split() if word.isdigit()) for line in lines]


def test_identity():
    for guest in kept(mthca.pair).guests:
        shown = guest.run('lspci -vnn -d 15b3:6274').output
        for text in ('InfiniBand [0c06]', '[15b3:6274] (rev a0)', 'size=1M', 'size=8M', 'MSI-X: Enable+', 'Kernel driver in use: ib_mthca'):
            expect(f'"{text}"', text in shown, shown)
        expect('no memory on the card', 'size=4M' not in shown, shown)
        sysfs = f'/sys/class/infiniband/{guest.card.name}'
        for name, value in (('hca_type', 'MT25204'), ('hw_rev', 'a0'), ('fw_ver', '1.2.0'), ('board_id', 'RDMA-HCA-MTHCA-1')):
            found = guest.run(f'cat {sysfs}/{name}').output.strip()
            expect(name, found == value, found)


def test_devinfo():
    shown = kept(mthca.pair).a.run('ibv_devinfo -v').output
    for text in ('vendor_part_id:\t\t\t25204', 'phys_port_cnt:\t\t\t1', 'max_qp_wr:\t\t\t16384', 'max_srq:\t\t\t8191', 'max_cqe:\t\t\t131071',
                 'atomic_cap:\t\t\tATOMIC_HCA', 'max_mtu:\t\t2048', 'max_mcast_grp:\t\t\t8192'):
        expect(f'"{text}"', text in shown, shown)


def test_pingpongs():
    both = kept(mthca.pair)
    for service in ('rc', 'uc', 'ud', 'srq'):
        verbs.pingpong(both.a, both.b, '-n 200', service)
        verbs.pingpong(both.b, both.a, '-e -n 200 -s 2000', service)
        verbs.pingpong(both.a, both.b, '-n 50 -g 0 -s 1', service)


def test_pingpongs_large():
    both = kept(mthca.pair)
    for service in ('rc', 'uc'):
        verbs.pingpong(both.a, both.b, '-n 10 -s 1000000 -m 2048', service)
    verbs.pingpong(both.b, both.a, '-n 200 -q 64 -s 5000', 'srq')


def test_perftest():
    both = kept(mthca.pair)
    for program in ('ib_send_bw', 'ib_write_bw', 'ib_read_bw', 'ib_atomic_bw -A FETCH_AND_ADD', 'ib_atomic_bw -A CMP_AND_SWAP',
                    'ib_send_lat', 'ib_write_lat', 'ib_read_lat', 'ib_atomic_lat'):
        verbs.perftest(both.a, both.b, program, '-n 200')


def test_perftest_options():
    """Other services, events, inline data to the limit, shared receive queues, many QPs, both ways."""
    both = kept(mthca.pair)
    programs = ('ib_send_bw -c UD', 'ib_send_bw -c UC', 'ib_write_bw -c UC', 'ib_send_lat -c UD', 'ib_send_lat -e', 'ib_send_bw -e',
                'ib_write_lat -s 400 -I 400', 'ib_send_lat -s 64 -I 64', 'ib_send_bw --use-srq -q 4', 'ib_write_bw -a',
                'ib_write_bw -q 16', 'ib_send_bw -b', 'ib_read_bw -b -o 4', 'ib_send_bw -r 1000 -t 1000 -s 1')
    for program in programs[::1 if tap.LONG else 2]:
        verbs.perftest(both.a, both.b, program, '-n 200')


def test_verbs():
    """What programs seldom do: CQs of another size with entries in them, and in use; overruns, errors, drains, other lives."""
    guest = kept(mthca.pair).a
    for case in ('resize_cq', 'resize_cq_busy', 'cq_overrun', 'sq_drained', 'access_error', 'reset', 'comm_established'):
        guest.run(f'exec verbs-test {case}', 120)


def test_our_card():
    """A card of ours with its own driver at the other end of the cable."""
    both = kept(mixed)
    for service in ('rc', 'uc', 'ud', 'srq'):
        verbs.pingpong(both.a, both.b, '-n 100', service)
        verbs.pingpong(both.b, both.a, '-n 100 -e', service)
    for program in ('ib_write_bw', 'ib_read_bw', 'ib_atomic_bw', 'ib_send_lat'):
        verbs.perftest(both.a, both.b, program, '-n 200 -m 2048')


def test_lives():
    """The driver goes and comes; the port of the other end sees it."""
    both = kept(mthca.pair)
    for _ in range(LIVES):
        load(both.a)
    verbs.pingpong(both.a, both.b, '-e -n 100')


def test_interrupt_pin():
    """Without messages: the pin, which the driver lowers by a register."""
    both = kept(mthca.pair)
    load(both.a, 'msi_x=0')
    before = interrupts(both.a)
    expect('one line', len(before) == 1, before)
    verbs.pingpong(both.a, both.b, '-e -n 200')
    verbs.pingpong(both.b, both.a, '-e -n 200', 'srq')
    after = interrupts(both.a)
    expect('interrupts by it', after[0] >= before[0] + 200, before, after)
    expect('nobody disabled it', 'nobody cared' not in both.a.run('dmesg').output, both.a.run('dmesg | tail -n 20').output)
    load(both.a)
    expect('messages', len(interrupts(both.a)) == 3, both.a.run('cat /proc/interrupts').output)


def test_parameters():
    """Those of the driver that give it other tables."""
    both = kept(mthca.pair)
    for parameters in ('num_qp=4096', 'num_mpt=2048', 'num_cq=1024 num_mcg=64', 'rdb_per_qp=8', 'tune_pci=1', 'fw_cmd_doorbell=1',
                       'log_mtts_per_seg=1', 'log_mtts_per_seg=5', 'num_mtt=4096 num_udav=64'):
        load(both.a, parameters)
        verbs.pingpong(both.a, both.b, '-n 50')
        verbs.perftest(both.b, both.a, 'ib_write_bw', '-n 50')
    load(both.a)


def test_catastrophe():
    """An event queue fails: the driver finds it in the buffer that it reads every 5 s, and begins anew with the card."""
    both = kept(mthca.pair)
    with faults.planned([both.a], [{'place': 'card', 'action': 'raise', 'event': 'device-fatal'}]):
        wait.until(lambda: 'Catastrophic error detected: internal error' in both.a.run('dmesg').output,
                   lambda: f'said: catastrophic error:\n{both.a.run("dmesg | tail -n 20").output}', 30)
    both.a.card.wait_active(60)
    verbs.pingpong(both.a, both.b, '-e -n 100')


def test_watched():
    """What is there to watch our own card is there for this one: faults of its cable, a capture, counters, the recorder, the strict mode."""
    with mthca.pair({'strict': True, 'recorder': 4096}, capture=True) as both:
        for server, client in (both.a, both.b), (both.b, both.a):
            with faults.planned([both.a], faults.ending(SPOILED, 6)):
                verbs.pingpong(server, client, '-s 8192 -n 100 -m 1024')
        both.a.run('faulty-host send')  # both of its PSNs are 0
        counters = resources.counters(both.a, 'cumulative')
        for guest in both.guests:
            captures.check(guest.card.captured)
        captures.check_comments(both.a.card.captured, counters, [rule['action'] for rule in SPOILED])
        expect('commands that our own card has not', counters['ceu cmd_run_fw'] > 0 and counters['ceu cmd_set_icm_size'] > 0, counters)
        expect('sends of the card that received', counters['send wqe_send'] >= 200, counters)
        recorded = '\n'.join(line for card in both.a.qmp('query-rdma-hca-recorder') for line in card['lines'])
        for event in ('COMMAND', 'QP_STATE', 'WQE', 'CQE', 'STRICT'):
            expect(event, f' {event} ' in recorded, recorded[-4000:])
        kinds = set(re.findall(r' STRICT .* kind (\S+)', recorded))
        expect('strict about what is wrong', kinds and not kinds - {'psn-alike', 'cq-small'}, kinds)


def sent(guest):
    return int(guest.run(f'cat /sys/class/infiniband/{guest.card.name}/ports/1/counters/port_xmit_packets').output)


def went_further(both, running):
    """Both cards send, and all programs run."""
    for guest in both.guests:
        before = sent(guest)
        wait.until(lambda: verbs.going_on(running) or sent(guest) > before + 100, f'sending: {guest.name}')


def test_moved():
    """A machine goes to another QEMU by a file, with its card and what it has out, both in turn; then live."""
    with mthca.pair() as both:
        running = [*verbs.forever(both.a, both.b), *verbs.forever(both.b, both.a, 'ib_write_bw -D 3600')]
        for move, guest in ((moving.by_file, both.a), (moving.by_file, both.b), (moving.migrate, both.b)):
            move(guest)
            went_further(both, running)
        verbs.end_all(running)
        verbs.pingpong(both.a, both.b, '-n 50')


if __name__ == '__main__':
    tap.main()
