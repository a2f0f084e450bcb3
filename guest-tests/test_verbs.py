#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Verbs that the common programs do not use (programs/verbs-test.c), as many objects as a card
has (programs/limits-test.c), and that each leaves the driver with nothing in use."""
from harness import resources, tap
from harness.guest import GuestError
from harness.labs import infiniband, kept


def run(case, prepare='true', cpus=1, program='verbs-test'):
    resources.run(kept(infiniband, cpus=cpus).a, f'{prepare} && ulimit -n 8192 && exec {program} {case}')


def run_limit(case, prepare='true'):
    run(case, prepare, program='limits-test')


def run_last(case, kind):
    """As many of a kind as users in the kernel leave."""
    run_limit(f"{case} {resources.in_use(kept(infiniband, cpus=1).a)[f'core {kind}']}")


def test_chain_of_work_requests():
    run('chain')


def test_datagrams():
    run('datagrams')


def test_datagrams_with_grh():
    run('datagrams_grh')


def test_resize_cq_with_entries():
    run('resize_cq')


def test_resize_cq_under_traffic():
    run('resize_cq_busy')


def test_two_posters_two_pollers():
    run('threads')


def test_reset_and_reuse():
    run('reset')


def test_remote_access_error():
    run('access_error')


def test_cq_overrun():
    run('cq_overrun')


def test_sq_drained():
    run('sq_drained')


def test_communication_established():
    run('comm_established')


def test_reregistration():
    run('rereg')


def test_reregistration_of_remapped_memory():
    run('rereg_remapped')


def test_forked():
    run('forked')


def test_huge_pages():
    run_limit('huge_pages', prepare='echo 8 >/proc/sys/vm/nr_hugepages')
    kept(infiniband, cpus=1).a.run('echo 0 >/proc/sys/vm/nr_hugepages')


def registration(guest, megabytes, kind):
    """Register a region; give the commands that write its translation, and what the program printed."""
    def written():
        return resources.counters(guest, 'cumulative')['ceu cmd_write_mtt']

    before = written()
    output = guest.run(f'mr-large {megabytes} {kind}').output
    print(f'# {megabytes} MiB, {kind}: {written() - before} commands, {output.strip()}')
    return written() - before


def test_large_region():
    """A command writes 508 pages of a translation, and pages are as large as they can be."""
    guest = kept(infiniband, cpus=1).a
    guest.run('echo 32 >/proc/sys/vm/nr_hugepages')
    queues = 5  # of the connection by which the program uses its region
    for kind, pages in (('small', 16384), ('fresh', 16384), ('huge', 32)):
        commands, most = registration(guest, 64, kind), -(-pages // 508) + queues
        if commands > most:
            raise GuestError(f'{commands} commands for {pages} pages, not {most}')
    guest.run('echo 0 >/proc/sys/vm/nr_hugepages')


def test_last_qp():
    run_limit('all_qps')


def test_last_cq():
    run_last('all_cqs', 'cq')


def test_last_pd():
    run_last('all_pds', 'pd')


def test_last_region():
    guest = kept(infiniband, cpus=1).a
    run_limit(f'all_regions {resources.keys_of_users(guest)}')


def test_last_translation():
    run_limit('all_translations')


def test_last_doorbell_page():
    run_limit('all_contexts')


def test_requests_by_hand():
    """What a provider would not ask the kernel for (programs/uverbs-test.c)."""
    guest = kept(infiniband, cpus=1).a
    before = resources.in_use(guest)
    for _ in range(2):
        guest.run('exec uverbs-test')
    resources.wait_for(guest, before)


def test_nothing_is_left():
    """After all that came before, the driver finds nothing left when it stops: it would complain."""
    guest = kept(infiniband, cpus=1).a
    guest.run('modprobe -r rdma_hca && modprobe rdma_hca')
    guest.card.wait_active()


def test_kernel_verbs():
    """What a kernel user has: the tests are in a module (rdma_hca_test: kernel/cases.c), which loads if they pass."""
    guest = kept(infiniband, cpus=1).a
    before = resources.in_use(guest)
    guest.run('modprobe rdma_hca_test && modprobe -r rdma_hca_test')
    resources.wait_for(guest, before)


# Two processors: what only seems to be locked shows there.

def test_two_cpus_posters_pollers():
    run('threads', cpus=2)


def test_two_cpus_resize_cq_under_traffic():
    run('resize_cq_busy', cpus=2)


def test_two_cpus_kernel_poster_poller():
    kept(infiniband, cpus=2).a.run('modprobe rdma_hca_test only=post-while-polling && modprobe -r rdma_hca_test')


def test_two_cpus_kernel_free_polled():
    kept(infiniband, cpus=2).a.run('modprobe rdma_hca_test only=free-polled && modprobe -r rdma_hca_test')


if __name__ == '__main__':
    tap.main()
