#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A card that does not answer any more, or does not obey, is given up and reset; programs are told, and then all works
again."""
from harness import checkers, events, log, pci, power, tap, verbs, wait
from harness.guest import GuestError, end_all
from harness.labs import infiniband, kept


_seen = {}


def mark(guest):
    """What is in the guest's log now does not count any more."""
    _seen[guest] = len(guest.kernel_log())


def since(guest):
    return guest.kernel_log()[_seen.get(guest, 0):]


def recovers(both, *texts):
    """The driver of guest a says this in its log, starts the card anew, and traffic flows."""
    for text in texts:
        wait.until(lambda: text in since(both.a), lambda: f'in the log of {both.a.name}: {text}')
    if 'restarting' in texts:
        log.wait_started(both.a)
    both.wait_active()
    verbs.pingpong(both.a, both.b, '-n 50')
    verbs.pingpong(both.b, both.a, '-e -n 50')


def play(guest, scene):
    """A scene of kernel/rdma_hca_failure.c."""
    guest.run(f'modprobe -r rdma_hca_failure; modprobe rdma_hca_failure scene={scene}')


def notices(both, loses, *texts):
    """The card is lost in a way that nobody tells the driver of: it finds out without being asked."""
    mark(both.a)
    with events.watched(both.a) as watch:
        loses()
        watch.wait('DEVICE_FATAL')
    recovers(both, *texts, 'restarting')


def test_lost_mastering():
    both = kept(infiniband)
    notices(both, lambda: pci.clear(both.a.card, pci.MASTER), 'gone, or its configuration is lost')


def test_lost_configuration():
    both = kept(infiniband)
    notices(both, lambda: pci.clear(both.a.card, pci.MASTER | pci.MEMORY), 'gone, or its configuration is lost')


def test_reset_unseen():
    """Its function level reset, and that of its own register, behind the driver's back, who may ask it something before it knows."""
    both = kept(infiniband)
    notices(both, lambda: pci.run(both.a.card, 'setpci -s $card CAP_EXP+8.w=8000:8000'),
            'gone, or its configuration is lost')
    for scene in 'reset', 'ask-reset':
        notices(both, lambda: play(both.a, scene), 'it has been reset')  # pylint: disable=cell-var-from-loop


def refused(scene, *texts):
    """The card refuses to give memory back, which then is not given to others before the card is reset."""
    both = kept(infiniband)
    mark(both.a)
    play(both.a, scene)
    recovers(both, *texts, 'card failed: it refuses to give something back', 'restarting')


def test_refused_mr():
    refused('refused-mr')


def test_refused_cq():
    refused('refused-cq')


def test_refused_qp():
    refused('refused-qp')


def test_refused_detach():
    refused('refused-detach', 'command 0x26 ')


def test_refused_at_unload():
    both = kept(infiniband)
    mark(both.a)
    play(both.a, 'close')
    both.a.run('modprobe -r rdma_hca_failure rdma_hca && modprobe rdma_hca')
    recovers(both, 'card failed: it refuses to give something back')


def test_freed_cq():
    """A card that fails while a CQ is freed has nobody look at the CQ."""
    with infiniband() as both:
        play(both.a, 'freed-cq')
        recovers(both, 'restarting')


def test_drain():
    """Users in the kernel wait until all that they have posted has ended, and it does."""
    both = kept(infiniband)
    mark(both.a)
    play(both.a, 'drain')
    recovers(both, 'restarting')


def test_fails_in_reset():
    """A card that fails while a QP goes to RESET has nobody told of requests that the QP has no more."""
    checkers.need_probes()
    both = kept(infiniband, cpus=2)
    mark(both.a)
    play(both.a, 'fails-in-reset')
    recovers(both, 'restarting')


def test_flushed_first():
    """Users in the kernel that poll in softirqs know that their requests have ended before anybody takes the device from them."""
    both = kept(infiniband)
    mark(both.a)
    play(both.a, 'flushed-first')
    recovers(both, 'restarting')


def test_flushed_late():
    """So do those that come to poll some time after they were told, as softirqs may on a busy machine."""
    both = kept(infiniband)
    mark(both.a)
    play(both.a, 'late')
    recovers(both, 'restarting')
    seen = int(both.a.run('cat /sys/module/rdma_hca_failure/parameters/seen').output)
    if seen != 7:
        raise GuestError(f'{seen} of 7 had ended when the device went')


def test_left_later():
    """A user in the kernel has still to give back what it had when the device is taken from it: its card goes on so long, whether
    it is in order or has failed, and nothing is lost."""
    both = kept(infiniband)
    play(both.a, 'leaves-later')
    pci.run(both.a.card, 'devlink dev reload pci/$card')
    recovers(both)
    mark(both.a)
    play(both.a, 'leaves-later')
    pci.clear(both.a.card, pci.MASTER)
    recovers(both, 'restarting')


def test_drain_registrations():
    both = kept(infiniband)
    mark(both.a)
    play(both.a, 'drain-registrations')
    recovers(both, 'restarting')


def test_lost_windows():
    """A program has windows and the regions that they are bound to, in an order in which only the card could part them."""
    both = kept(infiniband)
    program = both.a.spawn('exec memory-test lost')
    program.wait_output('bound')
    mark(both.a)
    pci.reset(both.a.card)
    program.wait_output('lost')
    program.wait()
    recovers(both)


def test_lost_srq():
    """A user in the kernel that waits for the last entry of a shared queue is told, though the card has failed."""
    both = kept(infiniband)
    mark(both.a)
    play(both.a, 'lost-srq')
    recovers(both, 'restarting')


def test_restart_tried_again():
    """As long as the card cannot be reached its restart fails; afterwards it does not."""
    both = kept(infiniband)
    mark(both.a)
    lost = both.a.spawn('cd /sys/bus/pci/drivers/rdma_hca; card=$(ls -d 0000:*); '
                        'while :; do setpci -s $card COMMAND=0:6; done')
    wait.until(lambda: 'restart failed' in since(both.a), 'in the log: restart failed')
    lost.end()
    recovers(both)


def test_shutdown_during_restart():
    """A restart that cannot go on does not keep the machine from its reboot."""
    with infiniband() as both:
        play(both.a, 'hold')
        pci.clear(both.a.card, pci.MASTER)
        wait.until(lambda: 'rdma_hca_failure: holds' in both.a.kernel_log(), 'in the log: the device is held')
        power.reboot(both.a)
        both.wait_active()
        verbs.pingpong(both.a, both.b, '-n 50')


def test_sleep():
    """The machine sleeps and its card forgets everything: it is there again afterwards."""
    both = kept(infiniband)
    play(both.a, 'sleep')
    for _ in range(2):
        client, server = verbs.start(both.a, both.b, 'ibv_rc_pingpong -c -e -n 1000000')
        client.wait_output('remote address')
        power.sleep(both.a)
        end_all((client, server))
        recovers(both)
    both.a.run('modprobe -r rdma_hca_failure')


def test_reset_under_traffic():
    """Somebody resets the function while a program uses it: the program ends, others work afterwards."""
    with infiniband() as both:
        client, server = verbs.start(both.a, both.b, 'ibv_rc_pingpong -c -e -n 1000000')
        client.wait_output('remote address')
        pci.reset(both.a.card)
        end_all((client, server))
        recovers(both)


def test_many_resets():
    with infiniband() as both:
        for _ in range(10):
            pci.reset(both.a.card)
            both.wait_active()
        recovers(both)


if __name__ == '__main__':
    tap.main()
