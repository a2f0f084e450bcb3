#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults of the host's side: memory that the card does not reach, commands that do not end or are refused, interrupts that are
lost, late or doubled, doorbells that are late, event queues that overflow. Programs get errors or are told that the device has
failed, and end; the driver begins anew where it has to; then all works, and nothing is left in use."""
import contextlib
import errno
import json
import re
import shlex

from harness import cm, events, faults, log, pci, resources, tap, verbs, wait
from harness.check import expect
from harness.faults import MS, Commands
from harness.guest import GuestError
from harness.labs import infiniband, kept, roce

FAILED, RESTARTS = 'card failed', 'rdma_hca .* restarting'
# Of event queues, as the driver makes them: that of asynchronous events, and the first one of completions.
ASYNC_EQN, COMPLETION_EQN = 1, 2


def counter(guest, name):
    return resources.counters(guest, 'cumulative')[f'host_fault {name}']


@contextlib.contextmanager
def faulty(guest, plan, *kinds):
    """Its card has these faults inside, of which each of the kinds has to come about: a card that fails by it begins to count
    anew."""
    before = {kind: counter(guest, kind) for kind in kinds}
    failures = log.times(guest, FAILED)
    with faults.planned([guest], plan):
        yield
    for kind in kinds:
        expect(f'there are faults: {kind}', counter(guest, kind) > before[kind] or log.times(guest, FAILED) > failures, plan)


class Failures:
    """What the driver of a guest has said of failures before, and of these reasons; works() is to come after them."""

    def __init__(self, both, *why):
        self.both, self.guest = both, both.a
        self.before = self._said()
        self.reasons = {text: log.times(self.guest, text) for text in why}

    def _said(self):
        return log.times(self.guest, FAILED), log.times(self.guest, RESTARTS)

    def happened(self):
        return self._said()[0] > self.before[0]

    def wait_failed(self):
        wait.until(self.happened, lambda: f'in the log of {self.guest.name}: {FAILED}', 60)
        for text, before in self.reasons.items():
            expect(f'the driver says: {text}', log.times(self.guest, text) > before, self.guest.kernel_log()[-2000:])

    def works(self, restarts=True):
        """A card that has failed has begun anew, by itself or (not restarts) with a driver that was loaded anew, and there is
        traffic."""
        def begun():
            failed, restarted = (now - before for now, before in zip(self._said(), self.before))
            return not failed or restarted
        if restarts:
            wait.until(begun, lambda: f'in the log of {self.guest.name}: {RESTARTS}', 60)
        self.both.wait_active()
        verbs.pingpong(self.both.a, self.both.b, '-e -n 20')
        verbs.pingpong(self.both.b, self.both.a, '-n 20')


@contextlib.contextmanager
def survived(make, *why, fails=False, restarts=True):
    """Whatever happens inside to the card of guest a of the kept lab: then it works, and nothing is in use that was not.
    fails: the driver gives the card up, and says why; restarts: and has it begin anew."""
    both = kept(make)
    failures = Failures(both, *why)
    with resources.given_back(both):
        yield both
        if fails:
            failures.wait_failed()
        failures.works(restarts)
    if not fails:
        expect('the driver keeps the card', not failures.happened(), both.a.kernel_log()[-2000:])


def lost_interrupts(guest):
    """How many the driver has found by itself."""
    output = guest.run('devlink -j health diagnose pci/$(basename $(readlink /sys/class/infiniband/'
                       f'{guest.card.name}/device)) reporter card').output
    return json.loads(output)['lost_interrupts']


def told(watching):
    """A program that has asked is told that its device has failed: once by the driver, and by the core, with port 0, when the
    device goes from its users."""
    watching.wait('DEVICE_FATAL')
    watching.end()
    expect('told once', watching.told.count(('DEVICE_FATAL', 1)) == 1, watching.told)


# --- commands -------------------------------------------------------------------------------------------------------------

def test_third_sw2hw_cq_never_ends():
    """The program that wants the CQ has an error after the driver's patience, others that wait for their commands too; all that
    have the device open are told."""
    with survived(infiniband, 'no answer to a command', fails=True) as both:
        watching = events.Watch(both.a)
        with faulty(both.a, [faults.of_command('hang', Commands.SW2HW_CQ, skip=2, count=1)], 'command_hang'):
            for _ in range(2):
                both.a.run('faulty-host send')
            third = both.a.spawn('exec faulty-host send')
            wait.until(lambda: counter(both.a, 'command_hang'), 'begun: the command that never ends')
            others = [both.a.spawn(f'ibv_devinfo -d {both.a.card.name} >&2; faulty-host read') for _ in range(3)]
            failed = third.wait(check=False)
            for other in others:
                other.wait(check=False)
        expect('the CQ could not be made', failed.status == 1 and 'ibv_create_cq' in failed.output, failed)
        told(watching)


def test_commands_late():
    with survived(infiniband) as both:
        with faulty(both.a, [faults.of_command('delay', **{'delay-ns': 5 * MS})], 'command_delay'):
            verbs.pingpong(both.a, both.b, '-n 20')
            both.a.run('faulty-host send && faulty-host read')


# What a program's life consists of, and whether the driver gives a card up that refuses it: what is to give memory back is.
LIFE = ((Commands.SW2HW_MPT, False), (Commands.WRITE_MTT, False), (Commands.SW2HW_CQ, False), (Commands.RST2INIT, False),
        (Commands.INIT2RTR, False), (Commands.RTR2RTS, False), (Commands.QUERY_PORT, False), (Commands.HW2SW_MPT, True),
        (Commands.HW2SW_CQ, True), (Commands.TO_RST, True))


@tap.seconds(300)
def test_commands_refused():
    """Each that a program's life consists of, the first one of its kind: the program has an error, or the card has failed."""
    for opcode, fails in LIFE:
        print(f'# command {opcode:#x}')
        with survived(infiniband, 'it refuses to give something back', fails=fails) as both:
            with faulty(both.a, [faults.of_command('fail', opcode, count=1)], 'command_fail'):
                result = both.a.run('faulty-host send', check=False)
            expect('it has an error', fails or result.status == 1, result)


# The errno of a verb whose command has ended with this status (docs/faults.md; docs/abi.md has the statuses).
ERRNOS = {0x01: errno.EIO, 0x02: errno.EOPNOTSUPP, 0x03: errno.EINVAL, 0x04: errno.EIO, 0x05: errno.EIO, 0x06: errno.EINVAL,
          0x07: errno.EBUSY, 0x08: errno.ENOMEM, 0x09: errno.EINVAL, 0x0a: errno.EINVAL, 0x10: errno.EINVAL, 0x20: errno.EFAULT,
          0x21: errno.EBUSY, 0x30: errno.EBADMSG, 0x40: errno.EINVAL, 0x3f: errno.EIO}


def test_errnos():
    """Each status that the card knows, and one that it does not: verbs' man pages have the errno, but for 0x30."""
    with survived(infiniband) as both:
        for status, expected in ERRNOS.items():
            with faulty(both.a, [faults.of_command('fail', Commands.SW2HW_CQ, status=status, count=1)], 'command_fail'):
                result = both.a.run('faulty-host send', check=False)
            expect(f'status {status:#x}: errno {expected}',
                   re.search(fr'ibv_create_cq.*\(errno {expected},', result.output), result)


def test_resize_not_taken_back():
    """A shared receive queue that is made larger and armed by one verb, when the card does not arm: what it has done holds."""
    with survived(infiniband) as both:
        with faulty(both.a, [faults.of_command('fail', Commands.ARM_SRQ)], 'command_fail'):
            both.a.run('srq-test resize_unarmed')


# What a card's start and end consist of.
START = (Commands.QUERY_FW, Commands.QUERY_ADAPTER, Commands.QUERY_DEV_LIM, Commands.MAP_ICM, Commands.INIT_HCA,
         Commands.SW2HW_MPT, Commands.WRITE_MTT, Commands.SW2HW_EQ, Commands.MAP_EQ, Commands.CONF_SPECIAL_QP, Commands.INIT_IB)
STOP = (Commands.CLOSE_IB, Commands.HW2SW_EQ, Commands.HW2SW_MPT, Commands.CLOSE_HCA, Commands.UNMAP_ICM, Commands.TO_RST,
        Commands.HW2SW_CQ)


def starts_in_vain(both, rule, kind):
    """There is no device, and the driver can be unloaded."""
    with faults.planned([both.a], [rule]):
        both.a.run('modprobe rdma_hca; ! test -e /sys/class/infiniband/' + both.a.card.name)
        # The card counts anew since the start.
        expect(f'there is a fault: {kind}', counter(both.a, kind), rule)
        both.a.run('modprobe -r rdma_hca')


@tap.seconds(300)
def test_start_refused():
    """A card that refuses a command of its start, or does not end one, is no device; the next start is as ever."""
    with survived(infiniband) as both:
        both.a.run('modprobe -r rdma_hca')
        for opcode in START:
            print(f'# command {opcode:#x}')
            starts_in_vain(both, faults.of_command('fail', opcode, count=1), 'command_fail')
        starts_in_vain(both, faults.of_memory(['ceu'], count=1), 'dma_fail')
        both.a.run('modprobe rdma_hca')


def test_start_hangs():
    """After the driver's patience."""
    with survived(infiniband, 'no answer to a command', fails=True, restarts=False) as both:
        both.a.run('modprobe -r rdma_hca')
        starts_in_vain(both, faults.of_command('hang', Commands.INIT_HCA, count=1), 'command_hang')
        both.a.run('modprobe rdma_hca')


def test_stop_refused():
    """The driver goes though the card does not let go of something; the next start is as ever."""
    both = kept(infiniband)
    for opcode in STOP:
        said = 'port not closed' if opcode == Commands.CLOSE_IB else FAILED
        before = log.times(both.a, said)
        with faulty(both.a, [faults.of_command('fail', opcode)]):
            both.a.run('modprobe -r rdma_hca')
        expect(f'the driver says of command {opcode:#x}: {said}', log.times(both.a, said) > before)
        both.a.run('modprobe rdma_hca')
        both.wait_active()
    with faulty(both.a, [faults.of_command('hang', Commands.CLOSE_HCA, count=1)], 'command_hang'):
        both.a.run('modprobe -r rdma_hca')
    both.a.run('modprobe rdma_hca')
    both.wait_active()
    verbs.pingpong(both.a, both.b, '-e -n 20')


def test_restart_refused():
    """A card that fails, and then does not start again at once, is tried again."""
    said = 'restart failed'
    with survived(infiniband, fails=True) as both:
        before = log.times(both.a, said)
        with faulty(both.a, [faults.of_command('fail', Commands.HW2SW_CQ, count=1),
                             faults.of_command('fail', Commands.INIT_HCA, count=2)], 'command_fail'):
            both.a.run('faulty-host send', check=False)
            log.wait_more(both.a, said, before)


# --- memory ---------------------------------------------------------------------------------------------------------------

def test_every_hundredth_data_read_fails():
    """A program ends with the error that its request ends with; its peer with that of a peer that is gone."""
    with survived(infiniband) as both:
        with faulty(both.a, [faults.of_memory(['data'], ['read-data'], every=100)], 'dma_fail'):
            client, server = verbs.start(both.b, both.a, 'ibv_rc_pingpong -n 1000')
            failed = client.wait(check=False)
            server.end()
        expect('the request ends in a local protection error', 'Failed status local protection error' in failed.output, failed)


# What is not reached, while a program does what, and what it is told: the lines that have to be there.
SEND, RECV = 'send: ', 'recv: '
REFUSED = (
    ('send', faults.of_memory(['data'], ['read-data'], count=1), [SEND + 'local protection error']),
    ('send', faults.of_memory(['db'], ['read-wqe'], count=1), [SEND + 'local QP operation error, vendor 0x2']),
    ('send', faults.of_memory(['ee'], ['write-data'], count=1), [RECV + 'local protection error', SEND + 'remote operation error']),
    ('send', faults.of_memory(['rwm'], ['read-wqe'], count=1), ['event: local work queue catastrophic error',
                                                               SEND + 'remote operation error']),
    ('send', faults.of_memory(['ee'], ['write-data'], skip=1, count=1), ['event: CQ error']),
    ('write', faults.of_memory(['ee'], ['write-data'], count=1), [SEND + 'remote operation error']),
    ('read', faults.of_memory(['ee'], ['read-data'], count=1), [SEND + 'remote operation error']),
    ('read', faults.of_memory(['rrc'], ['write-data'], count=1), [SEND + 'local protection error']),
    ('write', faults.of_memory(['rtc'], ['write-data'], count=1), ['event: CQ error']),
)


FATAL = 'event: local catastrophic error'


def in_trouble(guest, operation, plan, kind, *lines):
    """A program under a plan, which has to be told these lines before it goes on: what it says."""
    program = guest.spawn(f'exec faulty-host {operation} {shlex.join(lines)}')
    program.wait_output('ready')
    with faulty(guest, plan, kind):
        program.kill(10)  # SIGUSR1
        output = program.wait(120).output
    for line in lines:
        expect(f'the program is told: {line}', line in output, output)
    return output


@tap.seconds(300)
def test_memory_refused():
    """A program has the completion in error, or the event, that the interface documents, and goes on when it has reset its queue
    pairs or made its completion queue anew."""
    with survived(infiniband) as both:
        for operation, rule, lines in REFUSED:
            print(f'# {operation}: {rule}')
            output = in_trouble(both.a, operation, [rule], 'dma_fail', *lines)
            expect('it works again', 'works\n' in output, output)


def test_mailboxes_refused():
    """A command whose mailbox the card does not reach is one that ends in an error."""
    with survived(infiniband) as both:
        with faulty(both.a, [faults.of_memory(['ceu'], ['read-data'], every=3)], 'dma_fail'):
            for _ in range(4):
                both.a.run('faulty-host send', check=False)


def test_event_refused():
    """An event queue that cannot be written is one of a card that has failed: programs are told, and end."""
    with survived(infiniband, 'an event queue could not be written', fails=True) as both:
        output = in_trouble(both.a, 'send', [faults.of_memory(['ee'], ['write-data'], skip=2, count=1)], 'dma_fail', FATAL)
        expect('it ends', 'device failed' in output, output)


def test_memory_late():
    """Nothing depends on how soon memory answers."""
    with survived(infiniband) as both:
        with faulty(both.a, [faults.of_memory(action='delay', every=20, **{'delay-ns': 2 * MS})], 'dma_delay'):
            verbs.pingpong(both.a, both.b, '-e -n 50')
            for operation in 'send', 'read', 'write':
                both.a.run(f'faulty-host {operation}')


# --- interrupts -----------------------------------------------------------------------------------------------------------

def test_interrupts_50_ms_late():
    with survived(infiniband) as both:
        with faulty(both.a, [faults.of_interrupt('delay', **{'delay-ns': 50 * MS})], 'interrupt_delay'):
            verbs.pingpong(both.a, both.b, '-e -n 20')
            both.a.run('faulty-host send')


def test_interrupts_doubled():
    with survived(infiniband) as both:
        with faulty(both.a, [faults.of_interrupt('duplicate')], 'interrupt_duplicate'):
            verbs.pingpong(both.a, both.b, '-e -n 200')
            both.a.run('faulty-host send')


def test_interrupts_lost():
    """The driver finds what they were for, for a program that sleeps until a completion comes, and for one that waits for an
    event of a queue pair's."""
    with survived(infiniband) as both:
        before = lost_interrupts(both.a)
        with faulty(both.a, [faults.of_interrupt('drop', count=4)], 'interrupt_drop'):
            verbs.pingpong(both.a, both.b, '-e -n 20')
        between = lost_interrupts(both.a)
        expect('they are counted', between > before, before, between)
        output = in_trouble(both.a, 'send', [faults.of_memory(['rwm'], ['read-wqe'], count=1),
                                             faults.of_interrupt('drop', vector=0)], 'interrupt_drop',
                            'event: local work queue catastrophic error', SEND + 'remote operation error')
        expect('it works again', 'works\n' in output, output)
        expect('and that of the event', lost_interrupts(both.a) > between, between)


def test_interrupts_lost_between_lives():
    """An event that no interrupt has told of is of the life in which it came about: a queue pair that is reset has it before."""
    with survived(infiniband) as both:
        with faulty(both.a, [faults.of_interrupt('drop', vector=0)], 'interrupt_drop'):
            both.a.run('srq-test lives')


# --- doorbells and event queues -------------------------------------------------------------------------------------------

def test_doorbells_late():
    with survived(infiniband) as both:
        with faulty(both.a, [faults.of_doorbell(5 * MS, every=3)], 'doorbell_delay'):
            verbs.pingpong(both.a, both.b, '-e -n 50')
            for operation in 'send', 'read', 'write':
                both.a.run(f'faulty-host {operation}')


def overflows(both, plan, operation='send'):
    watching = events.Watch(both.a)
    output = in_trouble(both.a, operation, plan, 'event_overflow', FATAL)
    expect('it ends', 'device failed' in output, output)
    told(watching)


def test_completion_event_queue_overflows():
    with survived(infiniband, 'an event queue has overflowed', fails=True) as both:
        overflows(both, [faults.of_event_queue(eqn=COMPLETION_EQN)])


def test_asynchronous_event_queue_overflows():
    """The card cannot tell, but it answers who asks."""
    with survived(infiniband, 'its event queue has failed', fails=True) as both:
        overflows(both, [faults.of_event_queue(eqn=ASYNC_EQN), faults.of_memory(['rwm'], ['read-wqe'], count=1)])


# --- users in the kernel --------------------------------------------------------------------------------------------------

def play(guest, scene):
    guest.run(f'modprobe -r rdma_hca_failure; modprobe rdma_hca_failure scene={scene} && modprobe -r rdma_hca_failure')


def test_kernel_drains_faulty_card():
    """A user in the kernel that waits for the end of what it has posted comes to that end: the card is given up if it does not
    end it, does not take the queue pair's new state, or cannot write the completions."""
    for why, rule, kind in (
            ('it does not end what was posted', faults.of_memory(['rwm']), 'dma_fail'),
            ('it does not end a queue pair', faults.of_command('fail', Commands.TO_ERR), 'command_fail'),
            ('it could not write a completion queue', faults.of_memory(['ee'], ['write-data'], count=1), 'dma_fail')):
        print(f'# {why}')
        with survived(infiniband, why, fails=True) as both, faulty(both.a, [rule], kind):
            play(both.a, 'drain-faulty')


# --- RoCE -----------------------------------------------------------------------------------------------------------------

def ping(guest, peer, count=3):
    guest.run(f'ping -c {count} -i 0.2 -W 3 {peer.card.address()}')


def wait_ping(guest, peer):
    wait.until(lambda: guest.run(f'ping -c 1 -W 1 {peer.card.address()}', check=False).status == 0,
               f'answered: {guest.name} by {peer.name}', 60)


def test_interface_interrupts_lost():
    """Frames that no interrupt has told of are found."""
    with survived(roce) as both:
        def lost():
            return sum(value for name, value in both.a.card.interface_counters().items() if name.endswith('_lost_interrupts'))
        ping(both.b, both.a)
        before = lost()
        with faulty(both.a, [faults.of_interrupt('drop', count=3)], 'interrupt_drop'):
            wait_ping(both.b, both.a)
            wait.until(lambda: lost() > before, 'counted: interrupts that were lost')
        ping(both.b, both.a)


def test_interface_interrupts_late_and_doubled():
    with survived(roce) as both:
        for rule, kind in ((faults.of_interrupt('delay', **{'delay-ns': 50 * MS}), 'interrupt_delay'),
                           (faults.of_interrupt('duplicate'), 'interrupt_duplicate')):
            with faulty(both.a, [rule], kind):
                ping(both.b, both.a)
                verbs.pingpong(both.a, both.b, '-e -n 20')


@tap.seconds(300)
def test_interface_ring_stands_still():
    """The card does not reach the rings of the interface for a moment, while frames come: they are exchanged, where the driver
    has not seen before that the card reaches nothing."""
    both = kept(roce)
    failures, still = Failures(both), 'a ring stands still'
    before = log.times(both.a, still)
    for _ in range(20):
        flood = both.b.spawn(f'exec ping -i 0.005 -W 1 {both.a.card.address()}')
        flood.wait_output('bytes from')
        pci.run(both.a.card, 'setpci -s $card COMMAND=0:4; setpci -s $card COMMAND=4:4')
        flood.end()
        wait_ping(both.b, both.a)
        failures.works()
        if log.times(both.a, still) > before:
            return
    raise GuestError('no ring stood still')


def test_address_not_given_back():
    """A card that goes on to speak for an address that its interface has no more is given up."""
    with survived(roce, 'it refuses to give something back', fails=True) as both:
        address = '10.0.1.77'
        both.a.run(f'ip address add {address}/24 dev {both.a.card.interface}')
        both.a.card.gid_index_of(address)
        failures = log.times(both.a, FAILED)
        with faulty(both.a, [faults.of_command('fail', Commands.SET_GID, count=1)], 'command_fail'):
            both.a.run(f'ip address del {address}/24 dev {both.a.card.interface}')
            log.wait_more(both.a, FAILED, failures)


def test_connection_manager_loses_its_queue_pair():
    """QP 1 breaks when the card cannot write what it receives: the card begins anew, and there are connections again."""
    with survived(roce, 'management broke', fails=True) as both:
        failures = log.times(both.a, FAILED)
        listening = cm.listen(both.a, f'rping -s -a {both.a.card.address()} -C 5')
        with faulty(both.a, [faults.of_memory(['ee'], ['write-data'], count=1)], 'dma_fail'):
            calling = both.b.spawn(f'exec rping -c -a {both.a.card.address()} -C 5')
            log.wait_more(both.a, FAILED, failures)
        calling.end()
        listening.end()
    cm.talk(kept(roce).a, kept(roce).b)


if __name__ == '__main__':
    tap.main()
