/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: memory-test CASE   Memory windows, regions that begin at 0, and the region without memory, each case on a fresh
 * device, in one process: one QP has the memory, the other is its peer.
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE 20000
#define AT 5000 /* of windows, in the region */
#define LENGTH 9000
#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

enum { PEER, OWNER };

static struct device device;

/* What all cases have. */
static struct bench {
    struct ibv_cq_ex *cq;
    struct ibv_qp *qp[2];
    struct region peer;
    uint8_t *memory;
    struct ibv_mr *mr; /* the owner's, of memory */
} bench;

static void set_up(int access)
{
    struct bench *b = &bench;

    b->cq = create_cq(&device, 64);
    create_connection(&device, b->cq, 16, b->qp);
    create_region(&device, &b->peer, SIZE + 1);
    check(b->memory = aligned_alloc(64, SIZE));
    for (int i = 0; i < SIZE; i++) {
        b->memory[i] = rand();
    }
    check(b->mr = ibv_reg_mr(device.pd, b->memory, SIZE, access));
}

static void tear_down(void)
{
    struct bench *b = &bench;

    check(!ibv_dereg_mr(b->mr));
    free(b->memory);
    destroy_region(&b->peer);
    check(!ibv_destroy_qp(b->qp[0]) && !ibv_destroy_qp(b->qp[1]));
    destroy_cq(b->cq);
}

/* --- use ---------------------------------------------------------------------------------------------------------- */

/* Whatever was left in the queues and the CQ is gone. */
static void renew(void)
{
    reconnect(&device, bench.qp);
}

/* Between the peer's memory and what a key leads to. */
static void transfer(enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr, uint32_t length, enum ibv_wc_status status)
{
    post(bench.qp[PEER], opcode, 1, sge_of(&bench.peer, 0, length), addr, rkey);
    expect_completion(bench.cq, 1, status);
    if (status) {
        renew();
    }
}

/* All of a window or region that begins at from in memory and can be read and written. */
static void use(uint32_t rkey, uint64_t addr, uint32_t from, uint32_t length)
{
    transfer(IBV_WR_RDMA_READ, rkey, addr, length, IBV_WC_SUCCESS);
    check(!memcmp(bench.peer.addr, bench.memory + from, length));
    for (uint32_t i = 0; i < length; i++) {
        bench.peer.addr[i] = rand();
    }
    transfer(IBV_WR_RDMA_WRITE, rkey, addr, length, IBV_WC_SUCCESS);
    check(!memcmp(bench.peer.addr, bench.memory + from, length));
    transfer(IBV_WR_RDMA_READ, rkey, addr, length + 1, IBV_WC_REM_ACCESS_ERR);
    transfer(IBV_WR_RDMA_READ, rkey, addr - 1, 1, IBV_WC_REM_ACCESS_ERR);
}

/* Nobody gets in there. */
static void closed(uint32_t rkey, uint64_t addr)
{
    transfer(IBV_WR_RDMA_READ, rkey, addr, 1, IBV_WC_REM_ACCESS_ERR);
    transfer(IBV_WR_RDMA_WRITE, rkey, addr, 1, IBV_WC_REM_ACCESS_ERR);
}

static uint64_t here(void)
{
    return (uintptr_t)bench.memory + AT;
}

/* --- windows ------------------------------------------------------------------------------------------------------ */

static struct ibv_mw_bind_info part(uint32_t length, unsigned int access)
{
    return (struct ibv_mw_bind_info) { .mr = bench.mr, .addr = here(), .length = length, .mw_access_flags = access };
}

static struct ibv_mw *alloc_mw(enum ibv_mw_type type)
{
    struct ibv_mw *mw = ibv_alloc_mw(device.pd, type);

    check(mw);
    return mw;
}

/* The completion of what the owner has posted. */
static void ends(enum ibv_wc_opcode opcode, enum ibv_wc_status status)
{
    struct ibv_wc wc = next_completion(bench.cq);

    if (wc.wr_id != 2 || wc.status != status || (!status && wc.opcode != opcode)) {
        printf("completion of %ju has status %d, opcode %d (vendor %#x); expected are %d and %d\n", (uintmax_t)wc.wr_id,
               wc.status, wc.opcode, wc.vendor_err, status, opcode);
        exit(1);
    }
    if (status) {
        renew();
    }
}

/* Type 1. */
static void bind(struct ibv_mw *mw, struct ibv_mw_bind_info info, enum ibv_wc_status status)
{
    struct ibv_mw_bind how = { .wr_id = 2, .send_flags = IBV_SEND_SIGNALED, .bind_info = info };
    uint32_t before = mw->rkey;

    check(!ibv_bind_mw(bench.qp[OWNER], mw, &how));
    check(mw->rkey != before && mw->rkey >> 8 == before >> 8);
    ends(IBV_WC_BIND_MW, status);
}

/* Type 2, by either QP. */
static void bind_by(int who, struct ibv_mw *mw, uint32_t rkey, struct ibv_mw_bind_info info, enum ibv_wc_status status)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(bench.qp[who]);

    ibv_wr_start(ex);
    ex->wr_id = 2;
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_bind_mw(ex, mw, rkey, &info);
    check(!ibv_wr_complete(ex));
    ends(IBV_WC_BIND_MW, status);
}

static void bind_as(struct ibv_mw *mw, uint32_t rkey, struct ibv_mw_bind_info info, enum ibv_wc_status status)
{
    bind_by(OWNER, mw, rkey, info, status);
}

static void invalidate(uint32_t rkey, enum ibv_wc_status status)
{
    struct ibv_send_wr wr = {
        .wr_id = 2,
        .opcode = IBV_WR_LOCAL_INV,
        .send_flags = IBV_SEND_SIGNALED,
        .invalidate_rkey = rkey,
    };
    struct ibv_send_wr *bad;

    check(!ibv_post_send(bench.qp[OWNER], &wr, &bad));
    ends(IBV_WC_LOCAL_INV, status);
}

/* Bound, bound to something else, to nothing; never invalidated. */
static void test_type1(void)
{
    struct ibv_mw *mw;
    uint32_t old;

    set_up(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    mw = alloc_mw(IBV_MW_TYPE_1);
    check(mw->rkey);
    closed(mw->rkey, here());
    closed(bench.mr->rkey, here());
    bind(mw, part(LENGTH, REMOTE), IBV_WC_SUCCESS);
    use(mw->rkey, here(), AT, LENGTH);
    invalidate(mw->rkey, IBV_WC_LOC_QP_OP_ERR);
    old = mw->rkey;
    bind(mw, part(LENGTH, IBV_ACCESS_REMOTE_READ), IBV_WC_SUCCESS);
    closed(old, here());
    transfer(IBV_WR_RDMA_READ, mw->rkey, here(), LENGTH, IBV_WC_SUCCESS);
    transfer(IBV_WR_RDMA_WRITE, mw->rkey, here(), 1, IBV_WC_REM_ACCESS_ERR);
    bind(mw, (struct ibv_mw_bind_info) {}, IBV_WC_SUCCESS);
    closed(mw->rkey, here());
    bind(mw, part(LENGTH, REMOTE), IBV_WC_SUCCESS);
    old = mw->rkey;
    check(!ibv_dealloc_mw(mw));
    closed(old, here());
    tear_down();
}

/* The peer's message that gives a key back: two completions, 2 of who sends it, 3 of who receives it. */
static void send_back(uint32_t rkey)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(bench.qp[PEER]);

    post_recv(bench.qp[OWNER], 3, sge_of(&bench.peer, 0, 100));
    ibv_wr_start(ex);
    ex->wr_id = 2;
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send_inv(ex, rkey);
    ibv_wr_set_sge(ex, bench.peer.mr->lkey, (uintptr_t)bench.peer.addr + 200, 50);
    check(!ibv_wr_complete(ex));
}

/* The peer frees it by a message, which says so at both ends. */
static void give_back(uint32_t rkey)
{
    struct ibv_poll_cq_attr none = {};
    bool received = false;

    send_back(rkey);
    for (int i = 0; i < 2; i++) {
        while (ibv_start_poll(bench.cq, &none)) {
        }
        check(!bench.cq->status);
        if (bench.cq->wr_id == 3) {
            received = true;
            check(ibv_wc_read_opcode(bench.cq) == IBV_WC_RECV && ibv_wc_read_byte_len(bench.cq) == 50);
            check((ibv_wc_read_wc_flags(bench.cq) & (IBV_WC_WITH_INV | IBV_WC_WITH_IMM)) == IBV_WC_WITH_INV);
            check(ibv_wc_read_invalidated_rkey(bench.cq) == rkey);
        }
        ibv_end_poll(bench.cq);
    }
    check(received);
}

/* Free, bound under a key of the program's choice, freed from here or from there. */
static void test_type2(void)
{
    struct ibv_mw *mw;
    uint32_t key;

    set_up(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    mw = alloc_mw(IBV_MW_TYPE_2);
    closed(mw->rkey, here());
    key = ibv_inc_rkey(mw->rkey);
    bind_as(mw, key, part(LENGTH, REMOTE), IBV_WC_SUCCESS);
    use(key, here(), AT, LENGTH);
    bind_as(mw, key + 1, part(LENGTH, REMOTE), IBV_WC_MW_BIND_ERR);
    invalidate(key ^ 0x80, IBV_WC_LOC_QP_OP_ERR);
    invalidate(key, IBV_WC_SUCCESS);
    closed(key, here());
    key ^= 0x55;
    bind_as(mw, key, part(LENGTH, REMOTE), IBV_WC_SUCCESS);
    use(key, here(), AT, LENGTH);
    give_back(key);
    closed(key, here());
    bind_as(mw, key, part(LENGTH, REMOTE | IBV_ACCESS_ZERO_BASED), IBV_WC_SUCCESS);
    use(key, 0, AT, LENGTH);
    check(!ibv_dealloc_mw(mw));
    closed(key, 0);
    tear_down();
}

/* Two binds and a fenced message that tells of them, in one list; one given back by the answer, one by its owner; and again. */
static void test_chain(void)
{
    enum { ROUNDS = 260 }; /* more than there are keys of a window */
    struct ibv_mw *mw[2];
    uint32_t key[2], old;

    set_up(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    for (int i = 0; i < 2; i++) {
        mw[i] = alloc_mw(IBV_MW_TYPE_2);
        key[i] = mw[i]->rkey;
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(bench.qp[OWNER]);
        struct ibv_mw_bind_info info = part(LENGTH, REMOTE);

        old = key[0];
        post_recv(bench.qp[PEER], 3, sge_of(&bench.peer, 0, 100));
        ibv_wr_start(ex);
        ex->wr_id = 2;
        ex->wr_flags = 0;
        for (int i = 0; i < 2; i++) {
            key[i] = ibv_inc_rkey(key[i]);
            ibv_wr_bind_mw(ex, mw[i], key[i], &info);
        }
        ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
        ibv_wr_send(ex);
        ibv_wr_set_sge(ex, bench.mr->lkey, (uintptr_t)bench.memory, 16);
        check(!ibv_wr_complete(ex));
        for (int i = 0; i < 2; i++) {
            struct ibv_wc wc = next_completion(bench.cq);

            check(!wc.status && (wc.wr_id == 2 || wc.wr_id == 3));
        }
        for (int i = 0; i < 2; i++) { /* who has the message finds them bound */
            transfer(IBV_WR_RDMA_WRITE, key[i], here() + i, 8, IBV_WC_SUCCESS);
        }
        give_back(key[0]);
        invalidate(key[1], IBV_WC_SUCCESS);
    }
    closed(old, here());
    closed(key[0], here());
    check(!ibv_dealloc_mw(mw[0]) && !ibv_dealloc_mw(mw[1]));
    tear_down();
}

/* Asked of the owner by its peer: what is not that QP's to give back stays, and the QP breaks. */
static void refuse_to_give_back(uint32_t rkey)
{
    struct ibv_wc wc;

    send_back(rkey);
    for (int i = 0; i < 2; i++) {
        wc = next_completion(bench.cq);
        check(wc.wr_id == 3 ? wc.status != IBV_WC_SUCCESS : wc.wr_id == 2 && wc.status == IBV_WC_REM_ACCESS_ERR);
    }
    check(state_of(bench.qp[OWNER]) == IBV_QPS_ERR && state_of(bench.qp[PEER]) == IBV_QPS_ERR);
    renew();
}

static void test_not_given_back(void)
{
    struct ibv_pd *other = ibv_alloc_pd(device.context);
    struct ibv_mw *elsewhere, *of_the_peer, *one;
    uint32_t key;

    check(other);
    set_up(ACCESS_ALL | IBV_ACCESS_MW_BIND);
    refuse_to_give_back(0xdead00);
    refuse_to_give_back(bench.mr->rkey); /* of ibv_reg_mr(): its owner's alone */
    use(bench.mr->rkey, (uintptr_t)bench.memory, 0, SIZE);
    check(elsewhere = ibv_alloc_mw(other, IBV_MW_TYPE_2));
    refuse_to_give_back(elsewhere->rkey);
    one = alloc_mw(IBV_MW_TYPE_1);
    bind(one, part(LENGTH, REMOTE), IBV_WC_SUCCESS);
    refuse_to_give_back(one->rkey);
    use(one->rkey, here(), AT, LENGTH);
    /* Bound to the other QP, whose peer is this one. */
    of_the_peer = alloc_mw(IBV_MW_TYPE_2);
    key = ibv_inc_rkey(of_the_peer->rkey);
    bind_by(PEER, of_the_peer, key, part(LENGTH, REMOTE), IBV_WC_SUCCESS);
    refuse_to_give_back(key);
    post(bench.qp[OWNER], IBV_WR_RDMA_READ, 1, sge_of(&bench.peer, 0, 8), here(), key);
    expect_completion(bench.cq, 1, IBV_WC_SUCCESS);
    check(!ibv_dealloc_mw(of_the_peer) && !ibv_dealloc_mw(elsewhere) && !ibv_dealloc_mw(one));
    check(!ibv_dealloc_pd(other));
    tear_down();
}

/* It is its QP's: another one of the same protection domain does not get in by it. */
static void test_other_qp(void)
{
    struct ibv_mw *mw;
    uint32_t key;

    set_up(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    mw = alloc_mw(IBV_MW_TYPE_2);
    key = ibv_inc_rkey(mw->rkey);
    bind_as(mw, key, part(LENGTH, REMOTE), IBV_WC_SUCCESS);
    post(bench.qp[OWNER], IBV_WR_RDMA_READ, 1, sge_of(&bench.peer, 0, 8), here(), key);
    expect_completion(bench.cq, 1, IBV_WC_REM_ACCESS_ERR);
    renew();
    transfer(IBV_WR_RDMA_READ, key, here(), LENGTH, IBV_WC_SUCCESS);
    check(!ibv_dealloc_mw(mw));
    tear_down();
}

/* A bind that cannot be, of each type; the window is as it was. */
static void refuse(struct ibv_mw_bind_info info)
{
    struct ibv_mw *one = alloc_mw(IBV_MW_TYPE_1), *two = alloc_mw(IBV_MW_TYPE_2);
    uint32_t key = ibv_inc_rkey(two->rkey);

    if (info.mr->pd == one->pd) { /* else libibverbs knows already */
        bind(one, info, IBV_WC_MW_BIND_ERR);
        closed(one->rkey, info.addr);
    }
    bind_as(two, key, info, IBV_WC_MW_BIND_ERR);
    closed(key, info.addr);
    check(!ibv_dealloc_mw(one) && !ibv_dealloc_mw(two));
}

static void refuse_region(struct ibv_pd *pd, int access, unsigned int window_access)
{
    struct ibv_mw_bind_info info = part(100, window_access);

    info.mr = ibv_reg_mr(pd, bench.memory, SIZE, access);
    check(info.mr);
    refuse(info);
    check(!ibv_dereg_mr(info.mr));
}

static void test_bad_binds(void)
{
    struct ibv_pd *other = ibv_alloc_pd(device.context);
    struct ibv_mw_bind_info info;
    struct ibv_mw *mw;

    check(other);
    set_up(ACCESS_ALL | IBV_ACCESS_MW_BIND);
    mw = alloc_mw(IBV_MW_TYPE_2);
    bind_as(mw, mw->rkey + 0x100, part(1, REMOTE), IBV_WC_MW_BIND_ERR);
    bind_as(mw, mw->rkey + 1, part(0, REMOTE), IBV_WC_MW_BIND_ERR);
    check(!ibv_dealloc_mw(mw));
    refuse(part(SIZE - AT + 1, REMOTE));
    info = part(1, REMOTE);
    info.addr = (uintptr_t)bench.memory - 1;
    refuse(info);
    refuse_region(device.pd, ACCESS_ALL, REMOTE);
    refuse_region(other, ACCESS_ALL | IBV_ACCESS_MW_BIND, REMOTE);
    refuse_region(device.pd, IBV_ACCESS_MW_BIND, IBV_ACCESS_REMOTE_WRITE);
    refuse_region(device.pd, IBV_ACCESS_MW_BIND, IBV_ACCESS_REMOTE_ATOMIC);
    refuse_region(device.pd, ACCESS_ALL | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED, REMOTE);
    check(!ibv_dealloc_pd(other));
    tear_down();
}

/* A region that windows are bound to stays as it is, and can be used, until they are gone. */
static void test_bound_region(void)
{
    struct ibv_mw *one, *two;
    uint32_t key;

    set_up(ACCESS_ALL | IBV_ACCESS_MW_BIND);
    one = alloc_mw(IBV_MW_TYPE_1);
    two = alloc_mw(IBV_MW_TYPE_2);
    key = ibv_inc_rkey(two->rkey);
    bind(one, part(LENGTH, REMOTE), IBV_WC_SUCCESS);
    bind_as(two, key, part(LENGTH, REMOTE), IBV_WC_SUCCESS);
    for (int i = 0; i < 2; i++) {
        check(ibv_dereg_mr(bench.mr) == EBUSY);
        check(ibv_rereg_mr(bench.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE) ==
              IBV_REREG_MR_ERR_CMD);
        check(ibv_rereg_mr(bench.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, bench.peer.addr, SIZE, 0) ==
              IBV_REREG_MR_ERR_CMD);
        use(bench.mr->rkey, (uintptr_t)bench.memory, 0, SIZE);
        use(key, here(), AT, LENGTH);
        if (i == 0) {
            use(one->rkey, here(), AT, LENGTH);
            check(!ibv_dealloc_mw(one));
        }
    }
    invalidate(key, IBV_WC_SUCCESS);
    check(!ibv_rereg_mr(bench.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ACCESS_ALL));
    use(bench.mr->rkey, (uintptr_t)bench.memory, 0, SIZE);
    check(!ibv_dealloc_mw(two));
    tear_down();
}

/* Keys that the kernel has: the second argument. */
static int taken;

/* Windows as many as there may be. */
static void test_all_windows(void)
{
    struct ibv_device_attr *attr = &device.attr;
    struct ibv_mw **mw = calloc(attr->max_mw + 1, sizeof(*mw));
    int made;

    check(mw && attr->max_mw > 1000);
    check(attr->device_cap_flags & IBV_DEVICE_MEM_WINDOW && attr->device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
    for (made = 0; made <= attr->max_mw; made++) {
        mw[made] = ibv_alloc_mw(device.pd, made % 2 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
        if (!mw[made]) {
            break;
        }
    }
    check(made + taken == attr->max_mw && errno == ENOMEM);
    while (made--) {
        check(!ibv_dealloc_mw(mw[made]));
    }
    free(mw);
}

/* Windows that were there before the regions that they are bound to, all left to the kernel. */
static void bind_and_leave(void)
{
    struct ibv_mw *one = alloc_mw(IBV_MW_TYPE_1), *two = alloc_mw(IBV_MW_TYPE_2);

    set_up(ACCESS_ALL | IBV_ACCESS_MW_BIND);
    bind(one, part(LENGTH, REMOTE), IBV_WC_SUCCESS);
    bind_as(two, ibv_inc_rkey(two->rkey), part(LENGTH, REMOTE), IBV_WC_SUCCESS);
}

static void test_forgotten(void)
{
    bind_and_leave();
    exit(0);
}

/* The card fails meanwhile. What it had is free then, whatever it was. */
static void test_lost(void)
{
    struct ibv_async_event event;

    bind_and_leave();
    printf("bound\n");
    do {
        check(!ibv_get_async_event(device.context, &event));
        ibv_ack_async_event(&event);
    } while (event.event_type != IBV_EVENT_DEVICE_FATAL);
    printf("lost\n");
    exit(0);
}

/* --- regions ------------------------------------------------------------------------------------------------------ */

/* Addresses count from 0, those of the region's own process, too. */
static void test_zero_based(void)
{
    struct ibv_sge sge;

    set_up(ACCESS_ALL | IBV_ACCESS_ZERO_BASED);
    use(bench.mr->rkey, 0, 0, SIZE);
    closed(bench.mr->rkey, (uintptr_t)bench.memory);
    sge = (struct ibv_sge) { .addr = 333, .length = 7000, .lkey = bench.mr->lkey };
    post(bench.qp[OWNER], IBV_WR_RDMA_WRITE, 1, sge, (uintptr_t)bench.peer.addr, bench.peer.mr->rkey);
    expect_completion(bench.cq, 1, IBV_WC_SUCCESS);
    check(!memcmp(bench.peer.addr, bench.memory + 333, 7000));
    tear_down();
}

/* A Send of what is not there between what is; the other end keeps the middle of it. */
static void test_null(void)
{
    struct ibv_mr *null = ibv_alloc_null_mr(device.pd);
    struct ibv_sge from[3], to[3];
    struct ibv_send_wr send = { .wr_id = 1, .sg_list = from, .num_sge = 3, .opcode = IBV_WR_SEND };
    struct ibv_recv_wr recv = { .wr_id = 2, .sg_list = to, .num_sge = 3 };
    struct ibv_send_wr *bad;
    struct ibv_recv_wr *bad_recv;

    check(null);
    set_up(ACCESS_ALL);
    from[0] = (struct ibv_sge) { (uintptr_t)bench.memory, 100, bench.mr->lkey };
    from[1] = (struct ibv_sge) { 0x123456, 5000, null->lkey };
    from[2] = (struct ibv_sge) { (uintptr_t)bench.memory + 100, 100, bench.mr->lkey };
    to[0] = (struct ibv_sge) { 0, 50, null->lkey };
    to[1] = sge_of(&bench.peer, 0, 5100);
    to[2] = (struct ibv_sge) { 1000, 50, null->lkey };
    memset(bench.peer.addr, 0xee, SIZE);
    check(!ibv_post_recv(bench.qp[PEER], &recv, &bad_recv));
    check(!ibv_post_send(bench.qp[OWNER], &send, &bad));
    expect_completion(bench.cq, 2, IBV_WC_SUCCESS);
    check(!memcmp(bench.peer.addr, bench.memory + 50, 50));
    for (int i = 50; i < 5050; i++) {
        check(!bench.peer.addr[i]);
    }
    check(!memcmp(bench.peer.addr + 5050, bench.memory + 100, 50) && bench.peer.addr[5100] == 0xee);
    closed(null->lkey, 0);
    check(!ibv_dereg_mr(null));
    tear_down();
}

/* ------------------------------------------------------------------------------------------------------------------ */

static const struct test_case cases[] = {
    { "type1", test_type1 },
    { "type2", test_type2 },
    { "chain", test_chain },
    { "not_given_back", test_not_given_back },
    { "other_qp", test_other_qp },
    { "bad_binds", test_bad_binds },
    { "bound_region", test_bound_region },
    { "all_windows", test_all_windows },
    { "forgotten", test_forgotten },
    { "lost", test_lost },
    { "zero_based", test_zero_based },
    { "null", test_null },
    { NULL, NULL },
};

int main(int argc, char **argv)
{
    taken = argc == 3 ? atoi(argv[2]) : 0;
    return run_case(argc, argv, cases, &device, NULL, NULL);
}
