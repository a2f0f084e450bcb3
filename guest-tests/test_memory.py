#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory that work requests register, share out and take back: windows of programs (programs/memory-test.c), fast
registration by users in the kernel (kernel/rdma_hca_memory.c), on an InfiniBand card and on a RoCE card; and that nothing
of it stays in use."""
from harness import resources, tap
from harness.labs import infiniband, kept, roce


def run(lab, case):
    resources.run(kept(lab, cpus=1).a, f'exec memory-test {case}')


def load(guest, *arguments):
    """The tests are in a module, which loads if they pass."""
    before = resources.in_use(guest)
    guest.run(f'modprobe rdma_hca_memory device={guest.card.name} {" ".join(arguments)} && modprobe -r rdma_hca_memory')
    resources.wait_for(guest, before)


def test_windows_of_type_1():
    run(infiniband, 'type1')


def test_windows_of_type_2():
    run(infiniband, 'type2')


def test_windows_in_a_chain():
    run(infiniband, 'chain')


def test_windows_not_given_back():
    run(infiniband, 'not_given_back')


def test_window_of_another_qp():
    run(infiniband, 'other_qp')


def test_binds_that_are_refused():
    run(infiniband, 'bad_binds')


def test_region_with_windows():
    run(infiniband, 'bound_region')


def test_last_window():
    run(infiniband, f'all_windows {resources.keys_of_users(kept(infiniband, cpus=1).a)}')


def test_windows_left_to_the_kernel():
    run(infiniband, 'forgotten')


def test_zero_based_region():
    run(infiniband, 'zero_based')


def test_region_without_memory():
    run(infiniband, 'null')


def test_fast_registration():
    load(kept(infiniband, cpus=1).a)


def test_nothing_is_left():
    """After all that came before, the driver finds nothing left when it stops: it would complain."""
    guest = kept(infiniband, cpus=1).a
    guest.run('modprobe -r rdma_hca && modprobe rdma_hca')
    guest.card.wait_active()


def test_forced_registration():
    """The core's own reads and writes, which it is told to register memory for."""
    load(kept(infiniband, cpus=1, append='ib_core.force_mr=1').a, 'only=core-rw', 'forced=1')


def test_roce_windows_of_type_1():
    run(roce, 'type1')


def test_roce_windows_of_type_2():
    run(roce, 'type2')


def test_roce_region_with_windows():
    run(roce, 'bound_region')


def test_roce_zero_based_region():
    run(roce, 'zero_based')


def test_roce_region_without_memory():
    run(roce, 'null')


def test_roce_fast_registration():
    load(kept(roce, cpus=1).a)


if __name__ == '__main__':
    tap.main()
