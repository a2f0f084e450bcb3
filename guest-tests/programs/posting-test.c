/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: posting-test CASE
 *
 * Work requests where other cards have gone wrong: lists of several elements, of none, and of none in one, what a slot of the
 * queue still holds of the request before, a wrong one in the middle of a list. QPs of the card talk to each other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common.h"

#define DEPTH 16u
#define SGES 4
#define INLINE 200u
/* Halves of the region: what is sent, and where it arrives. */
#define HALF 65536u

static struct device device;
static struct region region;
static struct ibv_cq_ex *cq;
static struct ibv_qp *qp[2];

static void begin_case(void)
{
    create_region(&device, &region, 2 * HALF);
    cq = create_cq(&device, 8 * DEPTH);
    for (int i = 0; i < 2; i++) {
        qp[i] = create_qp(&device, cq, IBV_QPT_RC, DEPTH, INLINE);
    }
    connect_pair(&device, qp);
}

static void end_case(void)
{
    check(!ibv_destroy_qp(qp[0]) && !ibv_destroy_qp(qp[1]));
    destroy_cq(cq);
    destroy_region(&region);
}

/* After an error has broken them. */
static void renew(void)
{
    for (int i = 0; i < 2; i++) {
        to_state(qp[i], IBV_QPS_ERR);
    }
    reconnect(&device, qp);
    discard_completions(cq);
}

/* Each round has its own bytes. */
static void fill(unsigned round)
{
    for (unsigned i = 0; i < HALF; i++) {
        region.addr[i] = i * 7 + i / 251 + round * 31;
        region.addr[HALF + i] = 0xee;
    }
}

static struct ibv_send_wr request(enum ibv_wr_opcode opcode, uint64_t wr_id, struct ibv_sge *sge, int n)
{
    return (struct ibv_send_wr) {
        .wr_id = wr_id,
        .sg_list = sge,
        .num_sge = n,
        .opcode = opcode,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.rdma = { (uintptr_t)region.addr + HALF, region.mr->rkey },
    };
}

static int send_list(struct ibv_qp *from, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    *bad = NULL;
    return ibv_post_send(from, wr, bad);
}

static void send_it(struct ibv_send_wr wr)
{
    struct ibv_send_wr *bad;

    check(!send_list(qp[0], &wr, &bad));
}

static void receive_at(uint64_t wr_id, uint32_t length)
{
    post_recv(qp[1], wr_id, sge_of(&region, HALF, length));
}

/* One completion at each end: of a request, and of a receive of so many bytes. */
static void both_end(uint64_t sent, uint64_t received, uint32_t length)
{
    for (int i = 0; i < 2; i++) {
        struct ibv_wc wc = next_completion(cq);

        check(wc.status == IBV_WC_SUCCESS);
        if (wc.opcode & IBV_WC_RECV) {
            check(wc.wr_id == received && wc.byte_len == length && wc.qp_num == qp[1]->qp_num);
        } else {
            check(wc.wr_id == sent && wc.qp_num == qp[0]->qp_num);
        }
    }
}

/* What has arrived is these pieces, one behind the other, and nothing behind them. */
static void arrived(const struct ibv_sge *sge, int n)
{
    uint8_t *at = region.addr + HALF;

    for (int i = 0; i < n; i++) {
        check(!memcmp(at, (const void *)(uintptr_t)sge[i].addr, sge[i].length));
        at += sge[i].length;
    }
    check(*at == 0xee);
}

/* --- lists -------------------------------------------------------------------------------------------------------- */

static uint32_t sum(const struct ibv_sge *sge, int n)
{
    uint32_t length = 0;

    for (int i = 0; i < n; i++) {
        length += sge[i].length;
    }
    return length;
}

/* By the builder, elements of different lengths. */
static void test_sums(void)
{
    static const uint32_t lengths[][SGES] = { { 1, 4096, 0, 7 }, { 0, 0, 0, 1 }, { 4096, 1, 4095, 4097 }, { 20000, 1, 20000, 3 } };
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp[0]);

    for (unsigned round = 0; round < 8; round++) {
        struct ibv_sge sge[SGES];
        uint32_t at = 0;

        for (int i = 0; i < SGES; i++) {
            sge[i] = sge_of(&region, at, lengths[round / 2][i]);
            at += sge[i].length + 13;
        }
        fill(round);
        receive_at(2, HALF);
        ibv_wr_start(ex);
        ex->wr_id = 1;
        ex->wr_flags = IBV_SEND_SIGNALED;
        if (round % 2) {
            ibv_wr_rdma_write_imm(ex, region.mr->rkey, (uintptr_t)region.addr + HALF, 5);
        } else {
            ibv_wr_send(ex);
        }
        ibv_wr_set_sge_list(ex, SGES, sge);
        check(!ibv_wr_complete(ex));
        both_end(1, 2, sum(sge, SGES));
        arrived(sge, SGES);
    }
}

/* Inline data of several pieces, up to the limit; by either interface. */
static void test_inlined(void)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp[0]);
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    struct ibv_sge sge[SGES];
    struct ibv_send_wr wr, *bad;
    uint32_t limit;

    check(!ibv_query_qp(qp[0], &attr, IBV_QP_CAP, &init));
    limit = init.cap.max_inline_data;
    check(limit >= INLINE);
    for (int n = 1; n <= SGES; n++) {
        for (uint32_t total = 0; total <= limit; total += total + 8 > limit ? 1 : 7) {
            struct ibv_data_buf buf[SGES];

            for (int i = 0; i < n; i++) {
                sge[i] = sge_of(&region, 1000 * i, i < n - 1 ? total / n : total - total / n * (n - 1));
                sge[i].lkey = NO_KEY; /* inline data have none */
                buf[i] = (struct ibv_data_buf) { (void *)(uintptr_t)sge[i].addr, sge[i].length };
            }
            fill(total);
            receive_at(2, HALF);
            if (total % 2) {
                wr = request(IBV_WR_SEND, 1, sge, n);
                wr.send_flags |= IBV_SEND_INLINE;
                send_it(wr);
            } else {
                ibv_wr_start(ex);
                ex->wr_id = 1;
                ex->wr_flags = IBV_SEND_SIGNALED;
                ibv_wr_send(ex);
                ibv_wr_set_inline_data_list(ex, n, buf);
                check(!ibv_wr_complete(ex));
            }
            both_end(1, 2, total);
            arrived(sge, n);
        }
    }
    sge[0] = sge_of(&region, 0, limit);
    sge[1] = sge_of(&region, 0, 1);
    wr = request(IBV_WR_SEND, 1, sge, 2);
    wr.send_flags |= IBV_SEND_INLINE;
    check(send_list(qp[0], &wr, &bad) && bad == &wr);
    ibv_wr_start(ex);
    ex->wr_id = 1;
    ex->wr_flags = 0;
    ibv_wr_send(ex);
    ibv_wr_set_inline_data(ex, region.addr, limit + 1);
    check(ibv_wr_complete(ex));
    check(state_of(qp[0]) == IBV_QPS_RTS);
}

/* An element of length 0 is none, whatever else it says. */
static void test_zero_lengths(void)
{
    for (unsigned round = 0; round < 2 * SGES; round++) {
        struct ibv_sge sge[SGES];

        for (int i = 0; i < SGES; i++) {
            sge[i] = sge_of(&region, 100 * i, i == (int)round % SGES ? 0 : 50 + i);
            if (!sge[i].length) {
                sge[i].lkey = NO_KEY;
                sge[i].addr = round < SGES ? 0 : UINT64_MAX;
            }
        }
        fill(round);
        receive_at(2, HALF);
        send_it(request(IBV_WR_SEND, 1, sge, SGES));
        both_end(1, 2, sum(sge, SGES));
        for (int i = 0; i < SGES; i++) {
            sge[i].addr = sge[i].length ? sge[i].addr : (uintptr_t)region.addr;
        }
        arrived(sge, SGES);
    }
}

/* Nothing to send, or to receive into; where nothing is written or read, a key is not looked at. */
static void test_nothing(void)
{
    static const enum ibv_wr_opcode silent[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };
    struct ibv_sge empty = { .lkey = NO_KEY };
    struct ibv_recv_wr recv = { .wr_id = 2 }, *bad;

    fill(0);
    for (int with_element = 0; with_element < 2; with_element++) {
        for (int imm = 0; imm < 2; imm++) {
            struct ibv_send_wr wr = request(imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND, 1, &empty, with_element);

            check(!ibv_post_recv(qp[1], &recv, &bad));
            wr.wr.rdma.rkey = NO_KEY;
            send_it(wr);
            both_end(1, 2, 0);
        }
        for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++) {
            struct ibv_send_wr wr = request(silent[i], 3, &empty, with_element);

            wr.wr.rdma.rkey = NO_KEY;
            send_it(wr);
            expect_completion(cq, 3, IBV_WC_SUCCESS);
        }
    }
    check(region.addr[HALF] == 0xee);
}

/* --- what stays in a slot ----------------------------------------------------------------------------------------- */

/* A request with data, and behind it one without, in one list. */
static void test_left_over(void)
{
    struct ibv_sge sge = sge_of(&region, 0, 100);
    struct ibv_send_wr wr[2], *bad;

    for (unsigned round = 0; round < 2 * DEPTH; round++) {
        fill(round);
        receive_at(2, 200);
        wr[0] = request(IBV_WR_SEND, 1, &sge, 1);
        wr[1] = request(IBV_WR_SEND, 1, NULL, 0);
        wr[0].next = &wr[1];
        if (round % 2) {
            wr[0].send_flags |= IBV_SEND_INLINE;
        }
        check(!send_list(qp[0], wr, &bad));
        both_end(1, 2, 100);
        arrived(&sge, 1);
        receive_at(3, 200);
        both_end(1, 3, 0);
    }
}

/* Round the queue: with the requests that have most in them, then with plain ones in the same slots. */
static void test_at_the_wrap(void)
{
    struct ibv_sge sge[SGES];
    struct ibv_send_wr wr;

    for (int i = 0; i < SGES; i++) {
        sge[i] = sge_of(&region, 5000 * i, 1000 + i);
    }
    for (unsigned round = 0; round < 5 * DEPTH; round++) {
        int n = round % 2 ? SGES : 1;

        fill(round);
        receive_at(2, HALF);
        switch (round / DEPTH) {
        case 1: /* the largest */
            wr = request(IBV_WR_RDMA_WRITE_WITH_IMM, 1, sge, SGES);
            wr.imm_data = 0xffffffff;
            send_it(wr);
            both_end(1, 2, sum(sge, SGES));
            arrived(sge, SGES);
            break;
        case 3: /* with an answer into its element */
            wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, sge, 1);
            sge[0].length = 8;
            wr.wr.atomic.remote_addr = (uintptr_t)region.addr + HALF;
            wr.wr.atomic.compare_add = UINT64_MAX;
            wr.wr.atomic.swap = UINT64_MAX;
            wr.wr.atomic.rkey = region.mr->rkey;
            send_it(wr);
            sge[0].length = 1000;
            expect_completion(cq, 1, IBV_WC_SUCCESS);
            check(region.addr[HALF] == 0xed); /* one less */
            send_it(request(IBV_WR_SEND, 1, NULL, 0));
            both_end(1, 2, 0);
            break;
        default:
            send_it(request(IBV_WR_SEND, 1, sge, n));
            both_end(1, 2, sum(sge, n));
            arrived(sge, n);
        }
    }
}

/* --- what is refused ---------------------------------------------------------------------------------------------- */

/* Of a list those before a wrong one are sent, and it is pointed at; the queue goes on. */
static void test_bad_in_the_middle(void)
{
    struct ibv_sge sge[1] = { sge_of(&region, 0, 50) };
    struct ibv_send_wr wr[3], *bad;

    for (unsigned round = 0; round < 3 * DEPTH; round++) {
        fill(round);
        receive_at(2, 200);
        for (int i = 0; i < 3; i++) {
            wr[i] = request(IBV_WR_SEND, i, sge, 1);
            wr[i].next = i < 2 ? &wr[i + 1] : NULL;
        }
        if (round % 3 == 0) {
            wr[1].num_sge = device.attr.max_sge + 1;
        } else if (round % 3 == 1) {
            wr[1].opcode = 77;
        } else {
            wr[1].num_sge = -1;
        }
        check(send_list(qp[0], wr, &bad) > 0 && bad == &wr[1]);
        both_end(0, 2, 50);
        arrived(sge, 1);
        receive_at(2, 200);
        send_it(request(IBV_WR_SEND, 5, sge, 1));
        both_end(5, 2, 50);
    }
}

static struct ibv_send_wr atomic(uint64_t at, struct ibv_sge *sge, int n, uint32_t rkey)
{
    struct ibv_send_wr wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, sge, n);

    wr.wr.atomic.remote_addr = at;
    wr.wr.atomic.compare_add = 1;
    wr.wr.atomic.swap = 0;
    wr.wr.atomic.rkey = rkey;
    return wr;
}

/* A result of other than 8 bytes is refused, here or by an error, and nothing is written; in two places it has its bytes. */
static void test_shapes_of_atomics(void)
{
    static const struct {
        uint32_t length[2];
        int n;
    } shapes[] = { { { 8, 0 }, 0 }, { { 4, 4 }, 2 }, { { 8, 8 }, 2 }, { { 4 }, 1 }, { { 16 }, 1 }, { { 0 }, 1 } };
    uint64_t *there = (uint64_t *)(region.addr + HALF), at = (uintptr_t)there, old = UINT64_MAX - 1;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct ibv_sge sge[2] = { sge_of(&region, 0, shapes[i].length[0]), sge_of(&region, 64, shapes[i].length[1]) };
        struct ibv_send_wr wr = atomic(at, sge, shapes[i].n, region.mr->rkey), *bad;
        const uint64_t five = 5;
        bool done = false;

        memset(region.addr, 0xaa, 128);
        *there = five;
        if (!send_list(qp[0], &wr, &bad)) {
            struct ibv_wc wc = next_completion(cq);

            printf("%d elements, %u and %u bytes: status %d\n", shapes[i].n, shapes[i].length[0], shapes[i].length[1], wc.status);
            check((wc.status == IBV_WC_SUCCESS) == (sum(sge, shapes[i].n) == 8));
            done = wc.status == IBV_WC_SUCCESS;
            if (done) {
                check(!memcmp(region.addr, &five, 4) && !memcmp(region.addr + 64, (uint8_t *)&five + 4, 4));
                memset(region.addr, 0xaa, 4);
                memset(region.addr + 64, 0xaa, 4);
            } else {
                renew();
            }
        }
        for (unsigned b = 0; b < 128; b++) {
            check(region.addr[b] == 0xaa);
        }
        check(*there == five + done);
    }
    *there = old;
    for (unsigned i = 0; i < 4; i++) {
        static const uint64_t add[] = { 0, 1, 1, UINT64_MAX };
        struct ibv_sge sge = sge_of(&region, 0, 8);
        struct ibv_send_wr wr = atomic(at, &sge, 1, region.mr->rkey);

        wr.wr.atomic.compare_add = add[i];
        send_it(wr);
        expect_completion(cq, 1, IBV_WC_SUCCESS);
        check(*(uint64_t *)region.addr == old);
        old += add[i];
        check(*there == old);
    }
}

/* Where an atomic may not be. */
static void test_places_of_atomics(void)
{
    struct ibv_sge sge = sge_of(&region, 0, 8);
    uint64_t at = (uintptr_t)region.addr + HALF;
    struct ibv_mr *mr = ibv_reg_mr(device.pd, region.addr + HALF, 4096,
                                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);

    check(mr);
    fill(0);
    for (unsigned off = 1; off < 8; off++) {
        send_it(atomic(at + off, &sge, 1, region.mr->rkey));
        expect_completion(cq, 1, IBV_WC_REM_INV_REQ_ERR);
        renew();
    }
    send_it(atomic(at, &sge, 1, mr->rkey));
    expect_completion(cq, 1, IBV_WC_REM_ACCESS_ERR);
    renew();
    send_it(atomic((uintptr_t)region.addr + region.length, &sge, 1, region.mr->rkey));
    expect_completion(cq, 1, IBV_WC_REM_ACCESS_ERR);
    renew();
    for (unsigned i = 0; i < 64; i++) {
        check(region.addr[HALF + i] == 0xee);
    }
    check(!ibv_dereg_mr(mr));
}

/* What each state takes, as ibv_post_send(3) and ibv_post_recv(3) say: a positive errno, and who was refused. */
static void test_states(void)
{
    struct ibv_sge sge = sge_of(&region, 0, 8);
    struct ibv_send_wr send = request(IBV_WR_SEND, 1, &sge, 1), *bad;
    struct ibv_recv_wr recv = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 }, *bad_recv;
    struct ibv_qp *fresh = create_qp(&device, cq, IBV_QPT_RC, DEPTH, 0);
    struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
    unsigned n;
    int err;

    bad_recv = NULL;
    check(ibv_post_recv(fresh, &recv, &bad_recv) == EINVAL && bad_recv == &recv);
    check(send_list(fresh, &send, &bad) == EINVAL && bad == &send);
    check(!ibv_modify_qp(fresh, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    check(send_list(fresh, &send, &bad) == EINVAL && bad == &send);
    check(!ibv_post_recv(fresh, &recv, &bad_recv));
    to_state(fresh, IBV_QPS_RESET);
    prepare_qp(&device, fresh, fresh->qp_num);
    check(send_list(fresh, &send, &bad) == EINVAL && bad == &send);
    for (n = 0; !(err = ibv_post_recv(fresh, &recv, &bad_recv)); n++) {
        check(n < 64);
    }
    check(err == ENOMEM && bad_recv == &recv && n >= DEPTH);
    check(!ibv_destroy_qp(fresh));
}

/* --- limits ------------------------------------------------------------------------------------------------------- */

static struct ibv_qp *create_with(struct ibv_qp_cap cap)
{
    struct ibv_qp_init_attr init = { .send_cq = ibv_cq_ex_to_cq(cq), .recv_cq = ibv_cq_ex_to_cq(cq), .cap = cap, .qp_type = IBV_QPT_RC };
    struct ibv_qp *created;

    errno = 0;
    created = ibv_create_qp(device.pd, &init);
    if (created) {
        struct ibv_qp_init_attr told;
        struct ibv_qp_attr attr;

        check(init.cap.max_send_wr >= cap.max_send_wr && init.cap.max_recv_wr >= cap.max_recv_wr);
        check(init.cap.max_send_sge >= cap.max_send_sge && init.cap.max_recv_sge >= cap.max_recv_sge);
        check(init.cap.max_inline_data >= cap.max_inline_data);
        check(!ibv_query_qp(created, &attr, IBV_QP_CAP, &told));
        check(!memcmp(&attr.cap, &init.cap, sizeof(attr.cap)) && !memcmp(&told.cap, &init.cap, sizeof(told.cap)));
    }
    return created;
}

/* What is told can be had, each by itself, and is told again of what one has; one more is EINVAL. */
static void test_limits(void)
{
    const struct ibv_qp_cap least = { 1, 1, 1, 1, 0 };
    uint32_t most[] = { device.attr.max_qp_wr, device.attr.max_qp_wr, device.attr.max_sge, device.attr.max_sge };

    for (unsigned i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
        struct ibv_qp_cap cap = least;
        uint32_t *field = i == 0 ? &cap.max_send_wr : i == 1 ? &cap.max_recv_wr : i == 2 ? &cap.max_send_sge : &cap.max_recv_sge;
        struct ibv_qp *created;

        *field = most[i];
        created = create_with(cap);
        check(created && !ibv_destroy_qp(created));
        *field = most[i] + 1;
        check(!create_with(cap) && errno == EINVAL);
        *field = UINT32_MAX;
        check(!create_with(cap) && errno == EINVAL);
    }
}

/* RESET from each state, and from RESET; then another life. */
static void test_lives(void)
{
    struct ibv_sge sge = sge_of(&region, 0, 8);

    for (unsigned round = 0; round < 5; round++) {
        for (int i = 0; i < 2; i++) {
            to_state(qp[i], IBV_QPS_RESET);
        }
        reconnect(&device, qp); /* and RESET once more */
        fill(round);
        receive_at(2, 8);
        send_it(request(IBV_WR_SEND, 1, &sge, 1));
        both_end(1, 2, 8);
        arrived(&sge, 1);
        /* What is left over of this life is not of the next one. */
        receive_at(3, 8);
        receive_at(4, 8);
    }
}

/* --- order -------------------------------------------------------------------------------------------------------- */

/* A Send of what the Read before it has brought waits for that. */
static void test_fenced(void)
{
    for (unsigned round = 0; round < 50; round++) {
        struct ibv_sge from_there = sge_of(&region, 0, 20000);
        struct ibv_send_wr wr[2], *bad;
        struct ibv_recv_wr recv, *bad_recv;
        struct ibv_sge into = sge_of(&region, HALF + 30000, 20000);

        memset(region.addr, 0, 20000);
        for (unsigned i = 0; i < 20000; i++) {
            region.addr[HALF + i] = i * 3 + round;
        }
        recv = (struct ibv_recv_wr) { .wr_id = 3, .sg_list = &into, .num_sge = 1 };
        check(!ibv_post_recv(qp[1], &recv, &bad_recv));
        wr[0] = request(IBV_WR_RDMA_READ, 1, &from_there, 1);
        wr[1] = request(IBV_WR_SEND, 2, &from_there, 1);
        wr[1].send_flags |= IBV_SEND_FENCE;
        wr[0].next = &wr[1];
        check(!send_list(qp[0], wr, &bad));
        expect_completion(cq, 1, IBV_WC_SUCCESS);
        both_end(2, 3, 20000);
        check(!memcmp(region.addr + HALF + 30000, region.addr + HALF, 20000));
    }
}

/* A completion frees the slots of all before it, which have none. */
static void test_unsignalled(void)
{
    struct ibv_sge sge = sge_of(&region, 0, 8);
    uint64_t next = 0;

    for (unsigned round = 0; round < 100; round++) {
        struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, 0, &sge, 1), *bad;
        unsigned n = 0;

        wr.send_flags = 0;
        for (; n < DEPTH - 1; n++) {
            wr.wr_id = next++;
            check(!send_list(qp[0], &wr, &bad));
        }
        wr.send_flags = IBV_SEND_SIGNALED;
        wr.wr_id = next++;
        check(!send_list(qp[0], &wr, &bad));
        expect_completion(cq, next - 1, IBV_WC_SUCCESS);
    }
}

/* --- main --------------------------------------------------------------------------------------------------------- */

static const struct test_case cases[] = {
    { "sums", test_sums },
    { "inlined", test_inlined },
    { "zero_lengths", test_zero_lengths },
    { "nothing", test_nothing },
    { "left_over", test_left_over },
    { "at_the_wrap", test_at_the_wrap },
    { "bad_in_the_middle", test_bad_in_the_middle },
    { "shapes_of_atomics", test_shapes_of_atomics },
    { "places_of_atomics", test_places_of_atomics },
    { "states", test_states },
    { "limits", test_limits },
    { "lives", test_lives },
    { "fenced", test_fenced },
    { "unsignalled", test_unsignalled },
    { NULL, NULL },
};

int main(int argc, char **argv)
{
    return run_case(argc, argv, cases, &device, begin_case, end_case);
}
