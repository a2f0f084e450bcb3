/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: verbs-test CASE   Verbs that the common programs do not use, each on a fresh device, in one process: its QPs
 * talk to each other.
 */
#define _GNU_SOURCE
#include "common.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct device device;

static void expect_nothing(struct ibv_cq_ex *cq)
{
    struct ibv_wc wc;

    usleep(100000);
    check(!ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc));
}

/* A write of a few bytes arrives: all is well with this connection. */
static void expect_works(struct ibv_cq_ex *cq, struct ibv_qp *qp, struct region *region)
{
    static uint8_t stamp;

    region->addr[0] = ++stamp;
    post(qp, IBV_WR_RDMA_WRITE, 4711, sge_of(region, 0, 8), (uintptr_t)region->addr + 64, region->mr->rkey);
    expect_completion(cq, 4711, IBV_WC_SUCCESS);
    check(region->addr[64] == stamp);
}

/* --- work requests ------------------------------------------------------------------------------------------------ */

#define CHAIN_RECV 99
#define FENCED (IBV_SEND_SIGNALED | IBV_SEND_FENCE)

/* One chain: inline Send with immediate, Write without a signal, fenced Read of what it wrote, two atomics. */
static void post_chain(struct ibv_qp *qp, struct region *r)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    uint64_t base = (uintptr_t)r->addr;
    uint32_t lkey = r->mr->lkey, rkey = r->mr->rkey;

    ibv_wr_start(ex);
    ex->wr_id = 1;
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send_imm(ex, htonl(0x1234));
    ibv_wr_set_inline_data(ex, "hello, wide world!", 19);
    ex->wr_id = 2;
    ex->wr_flags = 0;
    ibv_wr_rdma_write(ex, rkey, base + 40960);
    ibv_wr_set_sge(ex, lkey, base + 4096, 3000);
    ex->wr_id = 3;
    ex->wr_flags = FENCED;
    ibv_wr_rdma_read(ex, rkey, base + 40960);
    ibv_wr_set_sge(ex, lkey, base + 49152, 3000);
    ex->wr_id = 4;
    ex->wr_flags = FENCED;
    ibv_wr_atomic_fetch_add(ex, rkey, base + 32768, 7);
    ibv_wr_set_sge(ex, lkey, base + 32776, 8);
    ex->wr_id = 5;
    ibv_wr_atomic_cmp_swp(ex, rkey, base + 32768, 12, 100);
    ibv_wr_set_sge(ex, lkey, base + 32784, 8);
    check(!ibv_wr_complete(ex));
}

static void check_chain_entry(struct ibv_cq_ex *cq)
{
    static const enum ibv_wc_opcode opcode[] = {
        [1] = IBV_WC_SEND,
        [3] = IBV_WC_RDMA_READ,
        [4] = IBV_WC_FETCH_ADD,
        [5] = IBV_WC_COMP_SWAP,
    };

    check(cq->status == IBV_WC_SUCCESS);
    if (cq->wr_id == CHAIN_RECV) {
        check(ibv_wc_read_opcode(cq) == IBV_WC_RECV);
        check(ibv_wc_read_byte_len(cq) == 19);
        check(ibv_wc_read_wc_flags(cq) & IBV_WC_WITH_IMM);
        check(ibv_wc_read_imm_data(cq) == htonl(0x1234));
    } else {
        check(cq->wr_id <= 5 && cq->wr_id != 2);
        check(ibv_wc_read_opcode(cq) == opcode[cq->wr_id]);
    }
}

static void take_chain(struct ibv_cq_ex *cq)
{
    double end = seconds_now() + 20;
    struct ibv_poll_cq_attr none = {};
    int seen = 0;

    while (seen < 5) {
        int more = ibv_start_poll(cq, &none);

        check(!more || more == ENOENT);
        check(seconds_now() < end);
        if (more) {
            continue;
        }
        for (; !more; more = ibv_next_poll(cq)) {
            check_chain_entry(cq);
            seen++;
        }
        ibv_end_poll(cq);
    }
}

static void test_chain(void)
{
    struct ibv_cq_ex *cq = create_cq(&device, 64);
    struct ibv_sge pieces[2];
    struct ibv_recv_wr recv = { .wr_id = CHAIN_RECV, .sg_list = pieces, .num_sge = 2 };
    struct ibv_recv_wr *bad;
    struct ibv_qp *qp[2];
    struct region r;
    uint64_t *words;

    create_region(&device, &r, 65536);
    words = (uint64_t *)(r.addr + 32768);
    for (int i = 0; i < 2; i++) {
        qp[i] = create_qp(&device, cq, IBV_QPT_RC, 16, 100);
    }
    connect_qp(&device, qp[0], qp[1]->qp_num);
    connect_qp(&device, qp[1], qp[0]->qp_num);
    for (int round = 0; round < 20; round++) {
        memset(r.addr, round, r.length);
        words[0] = 5;
        pieces[0] = sge_of(&r, 8192, 10);
        pieces[1] = sge_of(&r, 12288, 100);
        check(!ibv_post_recv(qp[1], &recv, &bad));
        memset(r.addr + 4096, 'w', 3000);
        post_chain(qp[0], &r);
        take_chain(cq);
        check(!memcmp(r.addr + 8192, "hello, wid", 10) && !memcmp(r.addr + 12288, "e world!", 9));
        check(r.addr[12288 + 9] == round);
        check(!memcmp(r.addr + 49152, r.addr + 4096, 3000));
        check(words[0] == 100 && words[1] == 5 && words[2] == 12);
    }
    destroy_pair(qp);
    destroy_cq(cq);
    destroy_region(&r);
}

/* --- datagrams ---------------------------------------------------------------------------------------------------- */

#define GRH_LENGTH 40
#define FLOW_LABEL 0x54321
#define TRAFFIC_CLASS 0xa5
#define HOP_LIMIT 7

static void send_datagram(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t to, uint32_t qkey, struct ibv_sge sge)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);

    ibv_wr_start(ex);
    ex->wr_id = 1;
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send_imm(ex, htonl(77));
    ibv_wr_set_sge(ex, sge.lkey, sge.addr, sge.length);
    ibv_wr_set_ud_addr(ex, ah, to, qkey);
    check(!ibv_wr_complete(ex));
}

/* IBA 8.3; the same layout as an IPv6 header. */
static void check_grh(const uint8_t *grh)
{
    uint32_t first = ntohl(*(const uint32_t *)grh);

    check(first == (6u << 28 | TRAFFIC_CLASS << 20 | FLOW_LABEL));
    check(grh[6] == 0x1b && grh[7] == HOP_LIMIT);
    check(!memcmp(grh + 8, &device.gid, 16) && !memcmp(grh + 24, &device.gid, 16));
}

static void datagrams(bool global)
{
    struct ibv_ah_attr address = {
        .dlid = device.port.lid,
        .port_num = 1,
        .is_global = global,
        .grh = {
            .dgid = device.gid,
            .flow_label = FLOW_LABEL,
            .traffic_class = TRAFFIC_CLASS,
            .hop_limit = HOP_LIMIT,
        },
    };
    struct ibv_ah *ah = ibv_create_ah(device.pd, &address);
    struct ibv_cq_ex *cq = create_cq(&device, 16);
    struct ibv_qp *qp[2];
    struct region r;

    check(ah);
    create_region(&device, &r, 8192);
    for (int i = 0; i < 2; i++) {
        qp[i] = create_qp(&device, cq, IBV_QPT_UD, 4, 0);
        connect_qp(&device, qp[i], 0);
    }
    memset(r.addr + 4096, 'u', 150);
    post_recv(qp[1], 2, sge_of(&r, 0, 1024));
    /* One with another Q_Key is not for this QP. */
    send_datagram(qp[0], ah, qp[1]->qp_num, QKEY + 1, sge_of(&r, 4096, 10));
    expect_completion(cq, 1, IBV_WC_SUCCESS);
    expect_nothing(cq);
    send_datagram(qp[0], ah, qp[1]->qp_num, QKEY, sge_of(&r, 4096, 150));
    for (int i = 0; i < 2; i++) {
        struct ibv_wc wc = next_completion(cq);

        check(wc.status == IBV_WC_SUCCESS);
        if (wc.wr_id == 2) {
            check(wc.byte_len == GRH_LENGTH + 150 && wc.src_qp == qp[0]->qp_num && wc.slid == device.port.lid);
            check(wc.imm_data == htonl(77));
            check(!(wc.wc_flags & IBV_WC_GRH) == !global);
        }
    }
    check(!memcmp(r.addr + GRH_LENGTH, r.addr + 4096, 150) && !r.addr[GRH_LENGTH + 150]);
    if (global) {
        check_grh(r.addr);
    }
    check(!ibv_destroy_ah(ah));
    destroy_pair(qp);
    destroy_cq(cq);
    destroy_region(&r);
}

static void test_datagrams(void)
{
    datagrams(false);
}

static void test_datagrams_grh(void)
{
    datagrams(true);
}

/* On a RoCE card: a QP sends as much as the port can carry now, and no more, whatever it could when the QP was made. */
static void test_raised_mtu(void)
{
    struct ibv_ah_attr address = {
        .port_num = 1,
        .is_global = true,
        .grh = { .dgid = device.gid, .hop_limit = 1 },
    };
    struct ibv_qp_attr again = { .qp_state = IBV_QPS_RTS }; /* after an error */
    double start = seconds_now();
    struct ibv_cq_ex *cq = create_cq(&device, 16);
    struct ibv_qp *qp[2];
    struct ibv_ah *ah;
    struct region r;

    check(device.port.active_mtu < IBV_MTU_4096);
    create_region(&device, &r, 16384);
    for (int i = 0; i < 2; i++) {
        qp[i] = create_qp(&device, cq, IBV_QPT_UD, 4, 0);
        connect_qp(&device, qp[i], 0);
    }
    ah = ibv_create_ah(device.pd, &address);
    check(ah);
    send_datagram(qp[0], ah, qp[1]->qp_num, QKEY, sge_of(&r, 8192, 4096));
    expect_completion(cq, 1, IBV_WC_LOC_LEN_ERR);
    check(!ibv_modify_qp(qp[0], &again, IBV_QP_STATE));
    puts("raise it");
    while (device.port.active_mtu < IBV_MTU_4096 && seconds_now() < start + 60) {
        usleep(10000);
        check(!ibv_query_port(device.context, 1, &device.port));
    }
    post_recv(qp[1], 2, sge_of(&r, 0, GRH_LENGTH + 4096));
    send_datagram(qp[0], ah, qp[1]->qp_num, QKEY, sge_of(&r, 8192, 4096));
    for (int i = 0; i < 2; i++) {
        struct ibv_wc wc = next_completion(cq);

        check(wc.status == IBV_WC_SUCCESS && (wc.wr_id == 1 || wc.byte_len == GRH_LENGTH + 4096));
    }
    check(!ibv_destroy_ah(ah));
    destroy_pair(qp);
    destroy_cq(cq);
    destroy_region(&r);
}

/* --- completion queues -------------------------------------------------------------------------------------------- */

static void post_writes(struct ibv_qp *qp, struct region *r, uint64_t *next, unsigned int n)
{
    while (n--) {
        post(qp, IBV_WR_RDMA_WRITE, (*next)++, sge_of(r, 0, 8), (uintptr_t)r->addr + 64, r->mr->rkey);
    }
}

static void expect_writes(struct ibv_cq_ex *cq, uint64_t *next, unsigned int n)
{
    while (n--) {
        expect_completion(cq, (*next)++, IBV_WC_SUCCESS);
    }
}

/*
 * Wait until all that was posted to qp[0] has its entry, without a look at them: a fenced Send starts when the Read before it
 * has completed, and requests complete in order.
 */
static void wait_completed(struct ibv_qp *qp[2], struct ibv_cq_ex *arrivals, struct region *r)
{
    struct ibv_sge local[] = { sge_of(r, 256, 8), sge_of(r, 0, 8) };
    struct ibv_send_wr send = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_FENCE, .sg_list = &local[1], .num_sge = 1 };
    struct ibv_send_wr read = {
        .opcode = IBV_WR_RDMA_READ,
        .sg_list = &local[0],
        .num_sge = 1,
        .wr.rdma = { .remote_addr = (uintptr_t)r->addr + 64, .rkey = r->mr->rkey },
        .next = &send,
    };
    struct ibv_send_wr *bad;

    post_recv(qp[1], 1, sge_of(r, 128, 8));
    check(!ibv_post_send(qp[0], &read, &bad));
    expect_completion(arrivals, 1, IBV_WC_SUCCESS);
}

/* Resize with entries outstanding, to any size that they fit in, at any place of the ring. */
static void test_resize_cq(void)
{
    struct ibv_cq_ex *ex = create_cq(&device, 8), *arrivals = create_cq(&device, 4);
    struct ibv_cq *cq = ibv_cq_ex_to_cq(ex);
    uint64_t posted = 1, taken = 1;
    struct ibv_qp *qp[2];
    struct region r;

    create_region(&device, &r, 4096);
    /* Room for the Writes, and for what tells of them. */
    qp[0] = create_qp(&device, ex, IBV_QPT_RC, 1024, 0);
    qp[1] = create_qp(&device, arrivals, IBV_QPT_RC, 4, 0);
    connect_pair(&device, qp);
    srand(1);
    for (int round = 0; round < 200; round++) {
        unsigned int outstanding = posted - taken;
        unsigned int entries = 1 + rand() % 128;
        int err = ibv_resize_cq(cq, entries);

        check(err == 0 || ((err == EINVAL || err == ENOMEM) && outstanding > entries)); /* ib_mthca's is the other one */
        check(err || (unsigned int)cq->cqe >= entries);
        post_writes(qp[0], &r, &posted, rand() % (cq->cqe - outstanding + 1));
        wait_completed(qp, arrivals, &r);
        expect_writes(ex, &taken, rand() % (posted - taken + 1));
    }
    expect_writes(ex, &taken, posted - taken);
    expect_nothing(ex);
    destroy_pair(qp);
    destroy_cq(arrivals);
    destroy_cq(ex);
    destroy_region(&r);
}

#define BUSY_WRITES 5000

struct busy {
    struct ibv_cq_ex *cq;
    struct ibv_qp *qp[2];
    struct region r;
};

static void *keep_busy(void *opaque)
{
    uint64_t posted = 1, taken = 1;
    struct busy *busy = opaque;

    while (taken <= BUSY_WRITES) {
        if (posted - taken < 16) {
            post_writes(busy->qp[0], &busy->r, &posted, 16 - (posted - taken));
        }
        expect_writes(busy->cq, &taken, 5);
    }
    expect_writes(busy->cq, &taken, posted - taken);
    return NULL;
}

/* Resize while another thread posts and polls. */
static void test_resize_cq_busy(void)
{
    struct busy busy = { .cq = create_cq(&device, 64) };
    pthread_t thread;

    create_region(&device, &busy.r, 4096);
    create_connection(&device, busy.cq, 64, busy.qp);
    check(!pthread_create(&thread, NULL, keep_busy, &busy));
    for (int i = 0; i < 100; i++) {
        check(!ibv_resize_cq(ibv_cq_ex_to_cq(busy.cq), 32 << i % 4));
        usleep(2000);
    }
    check(!pthread_join(thread, NULL));
    destroy_pair(busy.qp);
    destroy_cq(busy.cq);
    destroy_region(&busy.r);
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

#define POSTS 2000 /* of each thread */

struct crowd {
    struct ibv_cq_ex *cq;
    struct ibv_qp *qp[2];
    struct region r;
    unsigned int number; /* of the next thread */
    unsigned int taken[2][POSTS];
    unsigned int done;
};

/* The queue is shared and may be full; work is posted through both interfaces. */
static void *post_some(void *opaque)
{
    struct crowd *crowd = opaque;
    uint64_t number = __sync_fetch_and_add(&crowd->number, 1);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(crowd->qp[0]);
    uint64_t to = (uintptr_t)crowd->r.addr + 4096 * (1 + number);

    for (uint64_t i = 0; i < POSTS;) {
        int err;

        ibv_wr_start(ex);
        ex->wr_id = number << 32 | i;
        ex->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_rdma_write(ex, crowd->r.mr->rkey, to);
        ibv_wr_set_sge(ex, crowd->r.mr->lkey, (uintptr_t)crowd->r.addr, 300);
        err = ibv_wr_complete(ex);
        check(!err || err == ENOMEM);
        i += !err;
    }
    return NULL;
}

static void *poll_some(void *opaque)
{
    double end = seconds_now() + 60;
    struct crowd *crowd = opaque;
    struct ibv_wc wc[8];

    while (__sync_fetch_and_add(&crowd->done, 0) < 2 * POSTS) {
        int n = ibv_poll_cq(ibv_cq_ex_to_cq(crowd->cq), 8, wc);

        check(n >= 0 && seconds_now() < end);
        for (int i = 0; i < n; i++) {
            check(wc[i].status == IBV_WC_SUCCESS && wc[i].wr_id >> 32 < 2 && (uint32_t)wc[i].wr_id < POSTS);
            __sync_fetch_and_add(&crowd->taken[wc[i].wr_id >> 32][(uint32_t)wc[i].wr_id], 1);
        }
        __sync_fetch_and_add(&crowd->done, n);
    }
    return NULL;
}

/* Two threads post to one queue and two poll it: each work request completes once. */
static void test_threads(void)
{
    static struct crowd crowd;
    pthread_t thread[4];

    crowd.cq = create_cq(&device, 64);
    create_region(&device, &crowd.r, 3 * 4096);
    create_connection(&device, crowd.cq, 32, crowd.qp);
    for (int i = 0; i < 4; i++) {
        check(!pthread_create(&thread[i], NULL, i < 2 ? post_some : poll_some, &crowd));
    }
    for (int i = 0; i < 4; i++) {
        check(!pthread_join(thread[i], NULL));
    }
    for (int i = 0; i < POSTS; i++) {
        check(crowd.taken[0][i] == 1 && crowd.taken[1][i] == 1);
    }
    destroy_pair(crowd.qp);
    destroy_cq(crowd.cq);
    destroy_region(&crowd.r);
}

/* --- states and errors -------------------------------------------------------------------------------------------- */

/* RESET takes a QP's completions away and gives its slots back; the QP works again afterwards. */
static void test_reset(void)
{
    struct ibv_cq_ex *cq = create_cq(&device, 64);
    uint64_t posted = 1;
    struct ibv_qp *qp[2];
    struct region r;

    create_region(&device, &r, 4096);
    create_connection(&device, cq, 8, qp);
    for (int round = 0; round < 50; round++) {
        post_writes(qp[0], &r, &posted, 1 + round % 8);
        post_recv(qp[0], 1, sge_of(&r, 128, 8));
        usleep(round % 3 * 1000);
        to_state(qp[0], IBV_QPS_RESET);
        to_state(qp[1], IBV_QPS_RESET);
        expect_nothing(cq);
        connect_qp(&device, qp[0], qp[1]->qp_num);
        connect_qp(&device, qp[1], qp[0]->qp_num);
        expect_works(cq, qp[0], &r);
        expect_works(cq, qp[1], &r);
    }
    destroy_pair(qp);
    destroy_cq(cq);
    destroy_region(&r);
}

/* The next asynchronous event, which has to be of this type. */
static struct ibv_async_event expect_event(enum ibv_event_type type)
{
    struct ibv_async_event event;

    alarm(20); /* the program ends if none comes */
    check(!ibv_get_async_event(device.context, &event));
    alarm(0);
    if (event.event_type != type) {
        printf("event %s; expected is %s\n", ibv_event_type_str(event.event_type), ibv_event_type_str(type));
        exit(1);
    }
    ibv_ack_async_event(&event);
    return event;
}

/* A Write with a wrong key: error and flush at the requester, an event at the responder, errors to all posted later. */
static void test_access_error(void)
{
    struct ibv_cq_ex *cq = create_cq(&device, 64);
    struct ibv_qp *qp[2];
    struct region r;

    create_region(&device, &r, 4096);
    create_connection(&device, cq, 8, qp);
    post_recv(qp[0], 3, sge_of(&r, 128, 8));
    post(qp[0], IBV_WR_RDMA_WRITE, 1, sge_of(&r, 0, 8), (uintptr_t)r.addr, r.mr->rkey ^ 0x80000000);
    post(qp[0], IBV_WR_RDMA_WRITE, 2, sge_of(&r, 0, 8), (uintptr_t)r.addr, r.mr->rkey);
    expect_completion(cq, 1, IBV_WC_REM_ACCESS_ERR);
    for (unsigned int seen = 0; seen != (1 << 2 | 1 << 3);) {
        struct ibv_wc wc = next_completion(cq);

        check(wc.status == IBV_WC_WR_FLUSH_ERR && (wc.wr_id == 2 || wc.wr_id == 3) && !(seen & 1 << wc.wr_id));
        seen |= 1 << wc.wr_id;
    }
    check(expect_event(IBV_EVENT_QP_ACCESS_ERR).element.qp == qp[1]);
    check(state_of(qp[0]) == IBV_QPS_ERR && state_of(qp[1]) == IBV_QPS_ERR);
    post(qp[0], IBV_WR_RDMA_WRITE, 4, sge_of(&r, 0, 8), (uintptr_t)r.addr, r.mr->rkey);
    expect_completion(cq, 4, IBV_WC_WR_FLUSH_ERR);
    post_recv(qp[1], 5, sge_of(&r, 128, 8));
    expect_completion(cq, 5, IBV_WC_WR_FLUSH_ERR);
    destroy_pair(qp);
    destroy_cq(cq);
    destroy_region(&r);
}

/* More completions than there is room for: an event names the CQ, and everything can still be destroyed. */
static void test_cq_overrun(void)
{
    struct ibv_cq_ex *small = create_cq(&device, 4), *cq = create_cq(&device, 64);
    uint64_t posted = 1;
    struct ibv_qp *qp[2], *well[2];
    struct region r;

    create_region(&device, &r, 4096);
    create_connection(&device, small, 32, qp);
    create_connection(&device, cq, 4, well);
    post_writes(qp[0], &r, &posted, 32);
    check(expect_event(IBV_EVENT_CQ_ERR).element.cq == ibv_cq_ex_to_cq(small));
    expect_works(cq, well[0], &r);
    destroy_pair(qp);
    destroy_cq(small);
    expect_works(cq, well[0], &r);
    destroy_pair(well);
    destroy_cq(cq);
    destroy_region(&r);
}

static void test_sq_drained(void)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
    struct ibv_cq_ex *cq = create_cq(&device, 64);
    uint64_t posted = 1, taken = 1;
    struct ibv_qp *qp[2];
    struct region r;

    create_region(&device, &r, 4096);
    create_connection(&device, cq, 32, qp);
    post_writes(qp[0], &r, &posted, 16);
    check(!ibv_modify_qp(qp[0], &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
    check(expect_event(IBV_EVENT_SQ_DRAINED).element.qp == qp[0]);
    check(state_of(qp[0]) == IBV_QPS_SQD);
    /* What has not been begun waits. */
    to_state(qp[0], IBV_QPS_RTS);
    expect_writes(cq, &taken, 16);
    expect_works(cq, qp[0], &r);
    destroy_pair(qp);
    destroy_cq(cq);
    destroy_region(&r);
}

/* The first message comes while the receiver is in RTR only. */
static void test_comm_established(void)
{
    struct ibv_cq_ex *cq = create_cq(&device, 16);
    struct ibv_qp *qp[2];
    struct region r;

    create_region(&device, &r, 4096);
    for (int i = 0; i < 2; i++) {
        qp[i] = create_qp(&device, cq, IBV_QPT_RC, 4, 0);
    }
    connect_qp(&device, qp[0], qp[1]->qp_num);
    prepare_qp(&device, qp[1], qp[0]->qp_num);
    expect_works(cq, qp[0], &r);
    check(expect_event(IBV_EVENT_COMM_EST).element.qp == qp[1]);
    destroy_pair(qp);
    destroy_cq(cq);
    destroy_region(&r);
}

/* --- regions ------------------------------------------------------------------------------------------------------ */

#define REGION 20000

struct rereg {
    struct ibv_cq_ex *cq;
    struct ibv_qp *qp[2];
    struct region from;
    uint8_t *memory[2];
    struct ibv_mr *mr;
};

/* Write to the region, which must be at at now; or must be refused, which costs the connection. */
static void write_to(struct rereg *t, uint8_t *at, enum ibv_wc_status status)
{
    memset(t->from.addr, 0, REGION);
    for (int i = 0; i < REGION; i++) {
        t->from.addr[i] = rand();
    }
    post(t->qp[0], IBV_WR_RDMA_WRITE, 1, sge_of(&t->from, 0, REGION), (uintptr_t)at, t->mr->rkey);
    expect_completion(t->cq, 1, status);
    check(!memcmp(at, t->from.addr, REGION) == !status);
    if (status) {
        expect_event(IBV_EVENT_QP_ACCESS_ERR);
        to_state(t->qp[0], IBV_QPS_RESET);
        to_state(t->qp[1], IBV_QPS_RESET);
        connect_qp(&device, t->qp[0], t->qp[1]->qp_num);
        connect_qp(&device, t->qp[1], t->qp[0]->qp_num);
    }
}

static void rereg(struct rereg *t, int flags, struct ibv_pd *pd, uint8_t *at, int access)
{
    check(!ibv_rereg_mr(t->mr, flags, pd, at, at ? REGION : 0, access));
}

static void test_rereg(void)
{
    struct ibv_pd *other = ibv_alloc_pd(device.context);
    struct rereg t = { .cq = create_cq(&device, 16) };

    check(other);
    create_connection(&device, t.cq, 8, t.qp);
    create_region(&device, &t.from, REGION);
    for (int i = 0; i < 2; i++) {
        check(t.memory[i] = malloc(REGION));
    }
    check(t.mr = ibv_reg_mr(device.pd, t.memory[0], REGION, 0));

    write_to(&t, t.memory[0], IBV_WC_REM_ACCESS_ERR);
    rereg(&t, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, ACCESS_ALL);
    write_to(&t, t.memory[0], IBV_WC_SUCCESS);
    rereg(&t, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, t.memory[1], 0);
    write_to(&t, t.memory[1], IBV_WC_SUCCESS);
    rereg(&t, IBV_REREG_MR_CHANGE_PD, other, NULL, 0);
    write_to(&t, t.memory[1], IBV_WC_REM_ACCESS_ERR);
    rereg(&t, IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, device.pd,
          t.memory[0], ACCESS_ALL);
    write_to(&t, t.memory[0], IBV_WC_SUCCESS);
    rereg(&t, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, IBV_ACCESS_REMOTE_READ);
    write_to(&t, t.memory[0], IBV_WC_REM_ACCESS_ERR);

    check(!ibv_dereg_mr(t.mr));
    check(!ibv_dealloc_pd(other));
    destroy_pair(t.qp);
    destroy_cq(t.cq);
    destroy_region(&t.from);
}

/* A right is added to the memory that is registered, not to what is at its address by then. */
static void test_rereg_remapped(void)
{
    struct rereg t = { .cq = create_cq(&device, 16) };
    int file = memfd_create("rereg", 0);
    uint8_t *at, *same;

    create_connection(&device, t.cq, 8, t.qp);
    create_region(&device, &t.from, REGION);
    check(file >= 0 && !ftruncate(file, REGION));
    at = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    same = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    check(at != MAP_FAILED && same != MAP_FAILED);
    check(t.mr = ibv_reg_mr(device.pd, at, REGION, 0));
    check(mmap(at, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
    check(!ibv_rereg_mr(t.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ACCESS_ALL));
    memset(t.from.addr, 0x5a, REGION);
    post(t.qp[0], IBV_WR_RDMA_WRITE, 1, sge_of(&t.from, 0, REGION), (uintptr_t)at, t.mr->rkey);
    expect_completion(t.cq, 1, IBV_WC_SUCCESS);
    check(!memcmp(same, t.from.addr, REGION));
    check(!at[0]);

    /* Memory that can only be read stays so. */
    check(!ibv_dereg_mr(t.mr));
    check(mmap(at, REGION, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
    check(t.mr = ibv_reg_mr(device.pd, at, REGION, 0));
    check(ibv_rereg_mr(t.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ACCESS_ALL) && errno == EPERM);
    check(!ibv_dereg_mr(t.mr));

    check(!munmap(at, REGION) && !munmap(same, REGION) && !close(file));
    destroy_pair(t.qp);
    destroy_cq(t.cq);
    destroy_region(&t.from);
}

/* A child has the device of its parent and memory of its own, at the same addresses. */
static void test_forked(void)
{
    struct ibv_cq_ex *cq = create_cq(&device, 16);
    pid_t child = fork();
    int status;

    check(child >= 0);
    if (child == 0) {
        struct ibv_cq_ex *own = create_cq(&device, 16);
        struct region region;
        struct ibv_qp *qp[2];

        create_connection(&device, own, 8, qp);
        create_region(&device, &region, 64);
        for (int n = 0; n < 200; n++) {
            post(qp[0], IBV_WR_RDMA_WRITE, n, sge_of(&region, 0, 8), (uintptr_t)region.addr + 32, region.mr->rkey);
            expect_completion(own, n, IBV_WC_SUCCESS);
        }
        destroy_pair(qp);
        destroy_cq(own);
        destroy_region(&region);
        _exit(0);
    }
    check(waitpid(child, &status, 0) == child);
    check(WIFEXITED(status) && !WEXITSTATUS(status));
    destroy_cq(cq);
}

/* ------------------------------------------------------------------------------------------------------------------ */

static const struct test_case cases[] = {
    { "chain", test_chain },
    { "datagrams", test_datagrams },
    { "datagrams_grh", test_datagrams_grh },
    { "raised_mtu", test_raised_mtu },
    { "resize_cq", test_resize_cq },
    { "resize_cq_busy", test_resize_cq_busy },
    { "threads", test_threads },
    { "reset", test_reset },
    { "access_error", test_access_error },
    { "cq_overrun", test_cq_overrun },
    { "sq_drained", test_sq_drained },
    { "comm_established", test_comm_established },
    { "rereg", test_rereg },
    { "rereg_remapped", test_rereg_remapped },
    { "forked", test_forked },
    { NULL, NULL },
};

int main(int argc, char **argv)
{
    return run_case(argc, argv, cases, &device, NULL, NULL);
}
