/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-lease.h"

#define ACCESS                                                                 \
    (RDMA_HCA_ACCESS_LOCAL_WRITE | RDMA_HCA_ACCESS_REMOTE_WRITE |              \
     RDMA_HCA_ACCESS_REMOTE_READ | RDMA_HCA_ACCESS_REMOTE_ATOMIC)
/* A region by work request is elsewhere than what it lends. */
#define AWAY UINT64_C(0x7f0000000000)

static unsigned window_type(const Lease *lease)
{
    return lease->kind == LEASE_WINDOW_2 ? 2 : 1;
}

void lease_init(Lease *lease, LeaseKind kind, const Mr *target)
{
    *lease = (Lease) { .kind = kind, .target = target };
    if (kind == LEASE_REGION) {
        lease->fast = mem_region_new(target->drv, target->pd, target->npages);
        lease->list = mem_list_new(target->drv, target->page, target->npages);
        lease->key = lease->fast->key;
    } else if (kind != LEASE_NONE) {
        lease->key = mem_window_new(target->drv, target->pd,
                                    window_type(lease));
    }
}

void lease_renew(Lease *lease)
{
    const Mr *target = lease->target;

    if (lease->kind == LEASE_REGION) {
        mem_region_renew(lease->fast);
    } else if (lease->kind != LEASE_NONE) {
        g_assert_cmphex(mem_window_free(target->drv, lease->key), ==, 0);
        lease->key = mem_window_new(target->drv, target->pd,
                                    window_type(lease));
    }
    lease->state = LEASE_FREE;
}

/* Windows of type 2 are here zero-based. */
uint64_t lease_va(const Lease *lease, uint64_t at)
{
    switch (lease->kind) {
    case LEASE_REGION:
        return lease->target->va + AWAY + at;
    case LEASE_WINDOW_2:
        return at;
    default:
        return lease->target->va + at;
    }
}

static SendWr make(const Lease *lease)
{
    const Mr *target = lease->target;
    Mr region = *target;

    region.key = lease->key;
    switch (lease->kind) {
    case LEASE_REGION:
        return mem_reg_wr(&region, lease->list, lease_va(lease, 0), target->len,
                          ACCESS);
    case LEASE_WINDOW_2:
        return mem_bind_wr(2, lease->key, target, target->va, target->len,
                           (ACCESS & ~RDMA_HCA_ACCESS_LOCAL_WRITE) |
                               RDMA_HCA_ACCESS_ZERO_BASED);
    default:
        return mem_bind_wr(1, lease->key, target, target->va, target->len,
                           ACCESS & ~RDMA_HCA_ACCESS_LOCAL_WRITE);
    }
}

SendWr lease_make(Lease *lease, uint64_t wr_id)
{
    SendWr wr;

    g_assert_cmpint(lease->state, ==, LEASE_FREE);
    lease->key = mem_next_key(lease->key);
    wr = make(lease);
    wr.wr_id = lease->request = wr_id;
    lease->state = LEASE_MAKING;
    return wr;
}

/* A window of type 1 is bound to nothing. */
SendWr lease_end(Lease *lease, uint64_t wr_id)
{
    SendWr wr;

    g_assert_cmpint(lease->state, ==, LEASE_CLOSING);
    if (lease->kind == LEASE_WINDOW_1) {
        lease->key = mem_next_key(lease->key);
        wr = mem_bind_wr(1, lease->key, NULL, 0, 0, 0);
    } else {
        wr = mem_inv_wr(lease->key);
    }
    wr.wr_id = lease->request = wr_id;
    lease->state = LEASE_ENDING;
    return wr;
}

bool lease_can_return(const Lease *lease)
{
    return lease->state == LEASE_LENT && lease->kind != LEASE_WINDOW_1;
}

void lease_complete(Lease *lease, uint64_t wr_id)
{
    if (wr_id != lease->request) {
        return;
    }
    if (lease->state == LEASE_MAKING) {
        lease->state = LEASE_LENT;
    } else if (lease->state == LEASE_ENDING) {
        lease->state = LEASE_FREE;
    }
}

void lease_returned(Lease *lease, uint32_t key)
{
    g_assert_cmpint(lease->state, ==, LEASE_ENDING);
    g_assert_cmphex(key, ==, lease->key);
    g_assert_true(mem_is_free(lease->target->drv, key));
    lease->state = LEASE_FREE;
}
