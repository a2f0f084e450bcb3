#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The harness itself: a test that cannot fail is no test."""
import os
import shutil
import time

from harness import captures, links, paths, remains, tap, verbs, wait
from harness.devices import Nic
from harness.guest import GuestError
from harness.lab import Lab, Machine
from harness.labs import infiniband, kept
from harness.template import Template


def fails(function, *arguments, **options):
    try:
        function(*arguments, **options)
    except GuestError:
        return
    raise GuestError('this should have failed')


def expect(truth, what):
    if not truth:
        raise GuestError(what)


def bare():
    """Two guests without cards."""
    return Lab([Machine(Nic('net'))] * 2, {'net': links.stream()})


def test_commands():
    guest = kept(bare).a
    expect(guest.run('echo out; echo err >&2; exit 3', check=False).output == 'out\nerr\n', 'output of both kinds')
    expect(guest.run('exit 3', check=False).status == 3, 'exit status')
    fails(guest.run, 'exit 3')
    text = guest.run('seq 1 20000').output
    expect(text == ''.join(f'{number}\n' for number in range(1, 20001)), 'long output')


def test_commands_at_once():
    guest = kept(bare).a
    commands = [guest.spawn(f'sleep 0.{9 - number}; echo {number}') for number in range(8)]
    for number, command in enumerate(commands):
        expect(command.wait().output == f'{number}\n', 'each command has its own output')


def test_output_as_it_comes():
    guest = kept(bare).a
    command = guest.spawn('echo first; sleep 100')
    command.wait_output('first', 5)
    fails(command.wait_output, 'second', 0.2)
    fails(command.wait, 0.2)
    expect(command.wait(check=False).status == 128 + 9, 'a command that takes too long is killed')


def test_clock():
    """A guest's clock goes as the host's does, however busy that was when it booted."""
    guest = kept(bare).a

    def look():
        begin = time.monotonic()
        seconds = float(guest.run('cat /proc/uptime').output.split()[0])
        return begin, seconds, time.monotonic()

    first, _, last = look(), time.sleep(2), look()
    least, seconds, most = last[0] - first[2], last[1] - first[1], last[2] - first[0]
    expect(0.98 * least - 0.02 < seconds < 1.02 * most + 0.02, f'{seconds} s, not {least} to {most}')


def test_kernel_trouble_is_seen():
    both = kept(bare)
    expect(both.trouble() == [], 'a quiet kernel')
    for line in ('WARNING: CPU: 0 PID: 1 at test', 'BUG: KASAN: use-after-free in test+0x1/0x2', ' Call Trace:',
                 'WARNING: possible circular locking dependency detected', '[ BUG: Invalid wait context ]',
                 'INFO: trying to register non-static key.', 'BUG kmalloc-64 (Not tainted): Redzone overwritten',
                 'DMA-API: rdma_hca 0000:00:05.0: device driver frees DMA memory with different size',
                 'ODEBUG: free active (active state 0) object type: timer_list hint: test',
                 'turning off the locking correctness validator.'):
        both.b.run(f"echo '<1>{line}' >/dev/kmsg")
        wait.until(both.trouble, f'trouble: {line}', 5)
        expect(both.trouble() == [], f'told twice: {line}')
    # What a test has asked for is none, nor is what dma-debug has no notion of, nor what is known of Linux.
    both.b.run("printf '<1>%s\\n' 'DMA-API: exceeded 7 overlapping mappings of cacheline 0x1' "
               "'WARNING: possible circular locking dependency detected' '(&id_priv->handler_mutex){+.+.}' "
               "'(nvmet_config_sem){++++}' 'Call Trace:' "
               "'WARNING: CPU: 0 PID: 1 at kernel/dma/debug.c:499 add_dma_entry+0x1/0x2' 'Call Trace:' | while read -r line; do "
               "echo \"$line\" >/dev/kmsg; done")
    both.b.short_of_memory = True
    both.b.run("printf '<1>%s\\n' 'test: vmalloc error: size 4096' 'CPU: 0 PID: 1' 'Call Trace:' | while read -r line; do "
               "echo \"$line\" >/dev/kmsg; done")
    time.sleep(0.5)
    expect(both.trouble() == [], 'an allocation that failed')
    both.b.run("echo '<1>Call Trace:' >/dev/kmsg; seq 40 >/dev/kmsg; echo '<1>Call Trace:' >/dev/kmsg")
    wait.until(both.trouble, 'trouble that is none of an allocation', 5)
    both.b.short_of_memory = False


def test_reset_ends_commands():
    guest = kept(bare).a
    command = guest.spawn('sleep 100')
    guest.reset()
    guest.wait_ready()
    expect(command.wait(check=False).status is None, 'a command that was lost')
    guest.run('true')


def test_stop_and_start():
    guest = kept(bare).a
    guest.stop()
    guest.start().wait_ready()
    guest.run('true')


def test_guests_of_a_template():
    """Nothing that one is to have for itself is the other's, nor the template's."""
    both = kept(bare)
    if not both.a.template:
        raise tap.Skip('guests boot with this accelerator')
    expect(both.a.template.memory == both.b.template.memory, 'both are of one')
    for script in ('hostname', 'cat /proc/sys/kernel/random/boot_id', 'head -c 16 /dev/urandom | xxd -p', 'cat /sys/class/net/eth0/address',
                   'ip -4 -o address show eth0'):
        outputs = [guest.run(script).output for guest in both.guests]
        expect(outputs[0] != outputs[1], f'{script}: {outputs[0]}')
    for guest in both.guests:
        late = time.time() - float(guest.run('date +%s').output)
        expect(abs(late) < 60, f'{guest.name} has a time {late} s behind ours')
    both.a.run('echo mine >/dev/shm/mine')
    expect(both.b.run('cat /dev/shm/mine', check=False).status != 0, 'memory is not shared')
    both.a.stop()
    both.a.start().wait_ready()
    expect(both.a.run('cat /dev/shm/mine', check=False).status != 0, 'nor is it written to the template')


def test_template_made_anew():
    """When what it is made of has changed, and only then."""
    disk = os.path.join(paths.RUN, 'template-disk')
    template = Template(arch='amd64', cpus=1, cpu=None, memory=256, accelerator='tcg', append='', layers=[], disks=[disk])
    try:
        inodes = []
        for content in b'one', None, b'other':
            if content:
                with open(disk, 'wb') as file:
                    file.write(content.ljust(512))
            template.ensure()
            inodes.append(os.stat(template.memory).st_ino)
        expect(inodes[0] == inodes[1] != inodes[2], inodes)
    finally:
        shutil.rmtree(template.folder)
        os.unlink(disk)


def test_guest_that_boots():
    with Lab([Machine(Nic('net'), boots=True)] * 2, {'net': links.stream()}) as both:
        expect(not both.a.template, 'it boots')
        expect('Linux version' in both.a.kernel_log(), 'its console has all of it')


def test_logs_after_a_failure():
    both = kept(bare)
    both.stop(keep=True)
    expect(kept(bare) is not both, 'another lab')
    expect(os.path.exists(both.a.console), 'the logs of the first')
    shutil.rmtree(both.folder)


def test_what_a_failure_leaves():
    """What the kernel says, with tasks that wait; of a guest that is gone nothing, and no more trouble."""
    both = kept(bare)
    both.b.process.kill()
    both.b.process.wait()
    lines = remains.leave([both], 'case', [['why']])
    with open(os.path.join(both.folder, 'case-guest1.dmesg')) as file:
        expect('Show Blocked State' in file.read(), 'its log')
    with open(os.path.join(both.folder, 'case-guest1.rdma')) as file:
        expect('# cm_id' in file.read(), 'what it holds')
    expect(not os.path.exists(os.path.join(both.folder, 'case-guest2.dmesg')), 'of a guest that is gone')
    expect('guest2: not had: QEMU has ended with status -9' in lines, lines)
    expect(both.trouble(), 'a QEMU that was killed')
    both.stop()
    remains.leave([both], 'case', [['why']])


def test_what_a_card_leaves():
    """Recorder, queues and counters, also of one whose guest hangs."""
    both = kept(infiniband)
    verbs.pingpong(both.a, both.b, '-n 10')
    both.a.qmp('stop')
    lines = remains.leave([both], 'case', [['why']])
    both.a.qmp('cont')
    for guest in both.guests:
        for kind, words in (('recorder', ' TX '), ('queues', ''), ('counters', 'requester wqes_completed ')):
            with open(os.path.join(both.folder, f'case-{guest.name}-hca0.{kind}')) as file:
                expect(words in file.read(), f'{guest.name}: {kind}')
        expect(captures.packets(os.path.join(both.folder, f'case-{guest.name}-hca0.pcapng')), f'{guest.name}: packets')
        expect(any(line.startswith(f'{guest.name}-hca0: ') for line in lines), lines)
    expect(any(line.startswith('guest1: dmesg: no end in ') for line in lines), lines)
    both.a.run('true')


if __name__ == '__main__':
    tap.main()
