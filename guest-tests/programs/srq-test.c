/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: srq-test CASE   Shared receive queues, each case on a fresh device: QPs of the card talk to each other.
 */
#define _GNU_SOURCE
#include "common.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVENT_MS 20000
#define QUIET_MS 300
/* After which the driver has found what no interrupt told of: it looks once a second, and again. */
#define LOOKS_MS 3000

static struct device device;

/* --- queues ------------------------------------------------------------------------------------------------------- */

static struct ibv_srq *create_srq(unsigned int entries)
{
    struct ibv_srq_init_attr attr = { .attr = { .max_wr = entries, .max_sge = 2 } };
    struct ibv_srq *srq = ibv_create_srq(device.pd, &attr);

    check(srq && attr.attr.max_wr >= entries && attr.attr.max_sge >= 2);
    return srq;
}

static struct ibv_qp *create_srq_qp(struct ibv_cq_ex *cq, struct ibv_srq *srq, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = ibv_cq_ex_to_cq(cq),
        .recv_cq = ibv_cq_ex_to_cq(cq),
        .srq = srq,
        .cap = { .max_send_wr = 64, .max_send_sge = 2 },
        .qp_type = type,
    };
    struct ibv_qp *qp = ibv_create_qp(device.pd, &attr);

    check(qp);
    return qp;
}

/* Two RC QPs with each other, both with the SRQ. */
static void create_sharing_pair(struct ibv_cq_ex *cq, struct ibv_srq *srq, struct ibv_qp *qp[2])
{
    for (int i = 0; i < 2; i++) {
        qp[i] = create_srq_qp(cq, srq, IBV_QPT_RC);
    }
    connect_pair(&device, qp);
}

/* Two QPs that share a receive queue, and memory for their messages: what most cases work with. */
struct sharing {
    struct ibv_cq_ex *cq;
    struct ibv_srq *srq;
    struct ibv_qp *qp[2];
    struct region r;
};

static void set_up(struct sharing *s, size_t length)
{
    s->cq = create_cq(&device, 256);
    s->srq = create_srq(16);
    create_region(&device, &s->r, length);
    create_sharing_pair(s->cq, s->srq, s->qp);
}

static void tear_down(struct sharing *s)
{
    destroy_pair(s->qp);
    check(!ibv_destroy_srq(s->srq));
    destroy_cq(s->cq);
    destroy_region(&s->r);
}

static int try_post(struct ibv_srq *srq, uint64_t wr_id, struct ibv_sge sge)
{
    struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };
    struct ibv_recv_wr *bad;

    return ibv_post_srq_recv(srq, &wr, &bad);
}

/* What is free of the SRQ, all of which is posted then. */
static unsigned int fill_srq(struct ibv_srq *srq, struct region *r)
{
    unsigned int n = 0;
    int err;

    while (!(err = try_post(srq, 1000 + n, sge_of(r, 0, 8)))) {
        n++;
    }
    check(err == ENOMEM);
    return n;
}

static uint32_t limit_of(struct ibv_srq *srq)
{
    struct ibv_srq_attr attr;

    check(!ibv_query_srq(srq, &attr));
    return attr.srq_limit;
}

static uint32_t size_of(struct ibv_srq *srq)
{
    struct ibv_srq_attr attr;

    check(!ibv_query_srq(srq, &attr));
    return attr.max_wr;
}

static void set_limit(struct ibv_srq *srq, uint32_t limit)
{
    struct ibv_srq_attr attr = { .srq_limit = limit };

    check(!ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
}

/* A message of one packet, both of whose completions are taken: the receive's wr_id. */
static uint64_t message(struct ibv_cq_ex *cq, struct ibv_qp *qp, struct region *r)
{
    uint64_t wr_id = 0;

    post(qp, IBV_WR_SEND, 4711, sge_of(r, 4096, 8), 0, 0);
    for (int i = 0; i < 2; i++) {
        struct ibv_wc wc = next_completion(cq);

        check(wc.status == IBV_WC_SUCCESS);
        if (wc.opcode == IBV_WC_RECV) {
            wr_id = wc.wr_id;
        }
    }
    return wr_id;
}

/* --- limits of what is asked ---------------------------------------------------------------------------------------- */

/* What a QP with an SRQ asks of its own receive queue, which it does not have, is not looked at (ibv_create_qp(3)). */
static void test_limits_ignored(void)
{
    struct ibv_cq_ex *cq = create_cq(&device, 16);
    struct ibv_srq *srq = create_srq(16);
    struct ibv_qp_init_attr init = {
        .send_cq = ibv_cq_ex_to_cq(cq),
        .recv_cq = ibv_cq_ex_to_cq(cq),
        .srq = srq,
        .cap = { .max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = UINT32_MAX, .max_recv_sge = UINT32_MAX },
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp *qp = ibv_create_qp(device.pd, &init);
    struct ibv_qp_attr attr;

    check(qp);
    check(!ibv_query_qp(qp, &attr, IBV_QP_CAP, &init));
    check(attr.cap.max_recv_wr == 0 && init.cap.max_recv_wr == 0 && attr.cap.max_send_wr >= 4);
    check(!ibv_destroy_qp(qp) && !ibv_destroy_srq(srq));
    destroy_cq(cq);
}

/* A list of as many requests as there are slots is taken; of one that is longer, all but those that do not fit. */
static void test_exact_lists(void)
{
    struct ibv_srq *srq = create_srq(16);
    unsigned int n = size_of(srq);
    struct ibv_recv_wr *wr = calloc(n + 2, sizeof(*wr)), *bad;
    struct ibv_sge sge;
    struct region r;

    check(wr);
    create_region(&device, &r, 4096);
    sge = sge_of(&r, 0, 8);
    for (unsigned int i = 0; i < n + 2; i++) {
        wr[i] = (struct ibv_recv_wr) { .wr_id = i, .sg_list = &sge, .num_sge = 1, .next = i < n + 1 ? &wr[i + 1] : NULL };
    }
    wr[n - 1].next = NULL;
    check(!ibv_post_srq_recv(srq, wr, &bad));
    check(ibv_post_srq_recv(srq, &wr[n], &bad) == ENOMEM && bad == &wr[n]);
    check(!ibv_destroy_srq(srq));
    srq = create_srq(16);
    wr[n - 1].next = &wr[n];
    check(ibv_post_srq_recv(srq, wr, &bad) == ENOMEM && bad == &wr[n]);
    check(try_post(srq, 1, sge) == ENOMEM);
    check(!ibv_destroy_srq(srq));
    destroy_region(&r);
    free(wr);
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static bool event_is_there(int ms)
{
    struct pollfd fd = { .fd = device.context->async_fd, .events = POLLIN };

    return poll(&fd, 1, ms) == 1;
}

/* Of events that come at about the same time others may come first. */
static struct ibv_async_event next_event(enum ibv_event_type type)
{
    struct ibv_async_event event;

    do {
        check(event_is_there(EVENT_MS));
        check(!ibv_get_async_event(device.context, &event));
        ibv_ack_async_event(&event);
    } while (event.event_type != type && event.event_type == IBV_EVENT_COMM_EST);
    check(event.event_type == type);
    return event;
}

static void expect_no_event(void)
{
    check(!event_is_there(QUIET_MS));
}

static void test_limit(void)
{
    struct sharing s;
    struct ibv_srq_attr attr = {};

    set_up(&s, 8192);
    attr.srq_limit = size_of(s.srq) + 1;
    check(ibv_modify_srq(s.srq, &attr, IBV_SRQ_LIMIT) == EINVAL);
    for (int i = 0; i < 10; i++) {
        post_srq(s.srq, i, sge_of(&s.r, 0, 8));
    }
    set_limit(s.srq, 7);
    check(limit_of(s.srq) == 7);
    for (int i = 0; i < 3; i++) {
        check(message(s.cq, s.qp[0], &s.r) == (uint64_t)i);
    }
    expect_no_event();
    check(limit_of(s.srq) == 7);
    check(message(s.cq, s.qp[0], &s.r) == 3);
    check(next_event(IBV_EVENT_SRQ_LIMIT_REACHED).element.srq == s.srq);
    check(limit_of(s.srq) == 0);
    check(message(s.cq, s.qp[1], &s.r) == 4);
    expect_no_event();
    /* Five are left. */
    set_limit(s.srq, 6);
    next_event(IBV_EVENT_SRQ_LIMIT_REACHED);
    check(limit_of(s.srq) == 0);
    set_limit(s.srq, 5);
    expect_no_event();
    set_limit(s.srq, 0);
    check(message(s.cq, s.qp[1], &s.r) == 5);
    expect_no_event();
    tear_down(&s);
}

/* By a change of state, and by an error: once each, behind what the QP had taken; what it had not stays. */
static int resize(struct ibv_srq *srq, uint32_t max_wr)
{
    struct ibv_srq_attr attr = { .max_wr = max_wr };

    return ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
}

/* What is posted goes on in the order in which it was posted, whatever the size becomes. */
static void test_resize(void)
{
    struct sharing s;
    static const uint32_t sizes[] = { 32, 256, 1024, 64, 128, 64 };
    struct ibv_srq_attr attr = { .max_wr = 128, .srq_limit = 20 };
    uint64_t posted = 0, taken = 0;

    set_up(&s, 8192);
    for (int round = 0; round < 300; round++) {
        for (; posted < taken + 16; posted++) {
            post_srq(s.srq, posted, sge_of(&s.r, 0, 8));
        }
        check(!resize(s.srq, sizes[round % 6]) && size_of(s.srq) == sizes[round % 6]);
        for (; posted < taken + 30; posted++) {
            post_srq(s.srq, posted, sge_of(&s.r, 0, 8));
        }
        check(resize(s.srq, 16) == EINVAL && size_of(s.srq) == sizes[round % 6]);
        for (int i = 0; i < 25; i++, taken++) {
            check(message(s.cq, s.qp[round % 2], &s.r) == taken);
        }
    }
    check(resize(s.srq, 0) == EINVAL && resize(s.srq, UINT32_MAX) == EINVAL);
    attr.srq_limit = 129;
    check(ibv_modify_srq(s.srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) == EINVAL && size_of(s.srq) == 64);
    attr.srq_limit = posted - taken;
    check(!ibv_modify_srq(s.srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) && size_of(s.srq) == 128);
    check(fill_srq(s.srq, &s.r) == 128 - (posted - taken));
    expect_no_event();
    tear_down(&s);
}

/* For a card that does not arm: a resize that it has done before holds, for who asked as for the card. */
static void test_resize_unarmed(void)
{
    struct sharing s;
    struct ibv_srq_attr attr = { .max_wr = 64, .srq_limit = 20 };

    set_up(&s, 8192);
    check(fill_srq(s.srq, &s.r) == 16);
    check(!ibv_modify_srq(s.srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) && size_of(s.srq) == 64);
    check(fill_srq(s.srq, &s.r) == 64 - 16);
    for (unsigned int i = 0; i < 64; i++) {
        check(message(s.cq, s.qp[i % 2], &s.r) == 1000 + (i < 16 ? i : i - 16));
    }
    check(ibv_modify_srq(s.srq, &attr, IBV_SRQ_LIMIT) == EIO);
    expect_no_event();
    tear_down(&s);
}

static void test_last_wqe(void)
{
    struct ibv_cq_ex *cq = create_cq(&device, 64);
    struct ibv_srq *srq = create_srq(16);
    struct ibv_qp *qp[2], *other[2];
    struct ibv_wc wc;
    struct region r;

    create_region(&device, &r, 8192);
    create_sharing_pair(cq, srq, qp);
    create_sharing_pair(cq, srq, other);
    for (int i = 0; i < 4; i++) {
        post_srq(srq, i, sge_of(&r, 0, 8));
    }
    check(message(cq, qp[0], &r) == 0);
    to_state(qp[0], IBV_QPS_ERR);
    check(next_event(IBV_EVENT_QP_LAST_WQE_REACHED).element.qp == qp[0]);
    check(!ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc));
    to_state(qp[0], IBV_QPS_ERR);
    expect_no_event();

    /* A message that is too long breaks both ends, the receiver with the WQE that it took. */
    post(other[0], IBV_WR_SEND, 5, sge_of(&r, 4096, 9), 0, 0);
    for (int i = 0; i < 2; i++) {
        wc = next_completion(cq);
        check(wc.status == (wc.wr_id == 5 ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_LOC_LEN_ERR));
        check(wc.wr_id == 5 || (wc.wr_id == 1 && wc.qp_num == other[1]->qp_num));
    }
    for (int left = 2; left;) {
        struct ibv_async_event event;

        check(event_is_there(EVENT_MS) && !ibv_get_async_event(device.context, &event));
        ibv_ack_async_event(&event);
        left -= event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED;
    }
    expect_no_event();
    destroy_pair(qp);
    destroy_pair(other);

    create_sharing_pair(cq, srq, qp);
    check(message(cq, qp[0], &r) == 2 && message(cq, qp[1], &r) == 3);
    destroy_pair(qp);
    check(fill_srq(srq, &r) == size_of(srq));
    check(!ibv_destroy_srq(srq));
    destroy_cq(cq);
    destroy_region(&r);
}

/*
 * For a card whose interrupts of events are lost: what a QP's life has had is told before a reset ends it, but for what the
 * reset itself brings about; the next one knows nothing of it.
 */
static void test_lives(void)
{
    struct sharing s;
    struct ibv_async_event event;

    set_up(&s, 8192);
    to_state(s.qp[0], IBV_QPS_ERR);
    to_state(s.qp[0], IBV_QPS_RESET);
    check(event_is_there(0) && !ibv_get_async_event(device.context, &event));
    check(event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED && event.element.qp == s.qp[0]);
    ibv_ack_async_event(&event);
    reconnect(&device, s.qp);
    to_state(s.qp[0], IBV_QPS_RESET);
    reconnect(&device, s.qp);
    check(!event_is_there(LOOKS_MS));
    tear_down(&s);
}

/* --- many QPs ----------------------------------------------------------------------------------------------------- */

#define PAIRS 16
#define SLOTS 32
#define SLOT 8192
#define MESSAGES 3000

/* A QP with one message on its way at a time, which says who sent it. */
struct sender {
    struct ibv_qp *qp[2];
    unsigned int sent;
    uint32_t length;
};

static void send_next(struct sender *s, int number, struct region *out)
{
    uint8_t *at = out->addr + number * SLOT;

    s->length = 1 + rand() % SLOT;
    fill_pattern(at, number * 1000 + s->sent++, s->length);
    post(s->qp[0], IBV_WR_SEND, number, sge_of(out, number * SLOT, s->length), 0, 0);
}

static struct sender *sender_of(struct sender *senders, uint32_t qpn)
{
    for (int i = 0; i < PAIRS; i++) {
        if (senders[i].qp[1]->qp_num == qpn) {
            return &senders[i];
        }
    }
    fail(__FILE__, __LINE__, "a QP has it");
}

/* Messages of many packets of many QPs at once, that end in another order than they began. */
static void test_shared(void)
{
    struct ibv_cq_ex *cq = create_cq(&device, 4 * PAIRS);
    struct ibv_srq *srq = create_srq(SLOTS);
    unsigned int received = 0, sent = 0;
    struct sender s[PAIRS] = {};
    struct region in, out;

    srand(1);
    create_region(&device, &in, SLOTS * SLOT);
    create_region(&device, &out, PAIRS * SLOT);
    for (int i = 0; i < SLOTS; i++) {
        post_srq(srq, i, sge_of(&in, i * SLOT, SLOT));
    }
    for (int i = 0; i < PAIRS; i++) {
        create_sharing_pair(cq, srq, s[i].qp);
        send_next(&s[i], i, &out);
        sent++;
    }
    while (received < MESSAGES) {
        struct ibv_wc wc = next_completion(cq);
        struct sender *from;

        check(wc.status == IBV_WC_SUCCESS);
        if (wc.opcode != IBV_WC_RECV) {
            continue;
        }
        from = sender_of(s, wc.qp_num);
        check(wc.wr_id < SLOTS && wc.byte_len == from->length);
        check_pattern(in.addr + wc.wr_id * SLOT, (from - s) * 1000 + from->sent - 1, wc.byte_len);
        post_srq(srq, wc.wr_id, sge_of(&in, wc.wr_id * SLOT, SLOT));
        received++;
        if (sent++ < MESSAGES) {
            send_next(from, from - s, &out);
        }
    }
    for (int i = PAIRS - 1; i >= 0; i--) {
        destroy_pair(s[i].qp);
    }
    check(!ibv_destroy_srq(srq));
    destroy_cq(cq);
    destroy_region(&in);
    destroy_region(&out);
}

/* QPs go in the middle of what they do, in any order, and the SRQ loses nothing by it; it goes last. */
static void test_destroy(void)
{
    struct ibv_cq_ex *cq[2] = { create_cq(&device, 256), create_cq(&device, 256) };
    struct ibv_srq *srq = create_srq(SLOTS);
    struct ibv_qp *qp[8][2];
    struct region r;

    srand(2);
    create_region(&device, &r, 1 << 20);
    for (int round = 0; round < 20; round++) {
        struct ibv_wc wc;

        for (int i = 0; i < SLOTS; i++) {
            try_post(srq, i, sge_of(&r, 0, 1 << 19));
        }
        for (int i = 0; i < 8; i++) {
            create_sharing_pair(cq[i % 2], srq, qp[i]);
            for (int n = 0; n < 3; n++) {
                post(qp[i][0], IBV_WR_SEND, n, sge_of(&r, 1 << 19, 1 + rand() % (1 << 18)), 0, 0);
            }
        }
        check(ibv_destroy_srq(srq) == EBUSY);
        usleep(rand() % 5000);
        for (int i = 0; i < 8; i++) {
            int first = rand() % 2;

            check(!ibv_destroy_qp(qp[i][first]));
            check(!ibv_destroy_qp(qp[i][1 - first]));
        }
        for (int i = 0; i < 2; i++) {
            check(!ibv_poll_cq(ibv_cq_ex_to_cq(cq[i]), 1, &wc));
        }
    }
    /* Those that are posted still are used: one pair takes them all, and then all can be posted again. */
    create_sharing_pair(cq[0], srq, qp[0]);
    fill_srq(srq, &r);
    for (uint32_t i = 0; i < size_of(srq); i++) {
        message(cq[0], qp[0][0], &r);
    }
    check(fill_srq(srq, &r) == size_of(srq));
    destroy_pair(qp[0]);
    check(!ibv_destroy_srq(srq));
    destroy_cq(cq[0]);
    destroy_cq(cq[1]);
    destroy_region(&r);
}

/* --- several threads ---------------------------------------------------------------------------------------------- */

#define THREADS 4
#define THREAD_POSTS 500

struct poster {
    pthread_t thread;
    struct ibv_srq *srq;
    struct region *region;
    uint64_t number;
};

static void *post_many(void *context)
{
    struct poster *p = context;

    for (uint64_t i = 0; i < THREAD_POSTS;) {
        if (!try_post(p->srq, p->number << 32 | i, sge_of(p->region, 0, 8))) {
            i++;
        } else {
            sched_yield();
        }
    }
    return NULL;
}

/*
 * All post to one SRQ, whose size changes, and which a stream of messages empties: each that was posted ends once, in its
 * thread's order.
 */
static void test_threads(void)
{
    struct sharing s;
    uint64_t next[THREADS] = {};
    struct poster p[THREADS];
    unsigned int sent = 0, received = 0;

    set_up(&s, 8192);
    for (int i = 0; i < THREADS; i++) {
        p[i] = (struct poster) { .srq = s.srq, .region = &s.r, .number = i };
        check(!pthread_create(&p[i].thread, NULL, post_many, &p[i]));
    }
    for (int i = 0; i < 32; i++, sent++) {
        post(s.qp[0], IBV_WR_SEND, 0, sge_of(&s.r, 4096, 8), 0, 0);
    }
    while (received < THREADS * THREAD_POSTS) {
        struct ibv_wc wc = next_completion(s.cq);

        check(wc.status == IBV_WC_SUCCESS);
        if (wc.opcode == IBV_WC_RECV) {
            check(wc.wr_id >> 32 < THREADS && (wc.wr_id & UINT32_MAX) == next[wc.wr_id >> 32]++);
            if (++received % 50 == 0) {
                /* Too small for what is posted, now and then. */
                int err = resize(s.srq, 16u << received / 50 % 4);

                check(!err || err == EINVAL);
            }
        } else if (sent < THREADS * THREAD_POSTS) {
            post(s.qp[0], IBV_WR_SEND, 0, sge_of(&s.r, 4096, 8), 0, 0);
            sent++;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        check(!pthread_join(p[i].thread, NULL));
    }
    tear_down(&s);
}

/* --- services ----------------------------------------------------------------------------------------------------- */

static void send_datagram(struct ibv_qp *from, struct ibv_ah *ah, uint32_t to, struct ibv_sge sge)
{
    struct ibv_send_wr wr = {
        .wr_id = 1,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.ud = { .ah = ah, .remote_qpn = to, .remote_qkey = QKEY },
    };
    struct ibv_send_wr *bad;

    check(!ibv_post_send(from, &wr, &bad));
}

/* Sent is not arrived: what was sent before has arrived when this has. */
static void expect_passed(struct ibv_qp *from, struct ibv_qp *to, struct ibv_ah *ah, struct ibv_cq_ex *cq, struct region *r)
{
    struct ibv_sge sge = sge_of(r, 2048, 1024);
    struct ibv_recv_wr recv = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 }, *bad;

    check(!ibv_post_recv(to, &recv, &bad));
    send_datagram(from, ah, to->qp_num, sge_of(r, 4096, 100));
    for (int i = 0; i < 2; i++) {
        check(next_completion(cq).status == IBV_WC_SUCCESS);
    }
}

/* Without a WQE a datagram is lost; with one it comes. */
static void test_datagrams(void)
{
    struct ibv_ah_attr address = { .dlid = device.port.lid, .port_num = 1 };
    struct ibv_ah *ah = ibv_create_ah(device.pd, &address);
    struct ibv_cq_ex *cq = create_cq(&device, 64);
    struct ibv_srq *srq = create_srq(16);
    struct ibv_qp *qp[2], *other;
    struct region r;

    check(ah);
    create_region(&device, &r, 8192);
    for (int i = 0; i < 2; i++) {
        qp[i] = create_srq_qp(cq, srq, IBV_QPT_UD);
        connect_qp(&device, qp[i], 0);
    }
    other = create_qp(&device, cq, IBV_QPT_UD, 16, 1);
    connect_qp(&device, other, 0);
    send_datagram(qp[0], ah, qp[1]->qp_num, sge_of(&r, 4096, 100));
    expect_completion(cq, 1, IBV_WC_SUCCESS);
    expect_passed(qp[0], other, ah, cq, &r);
    post_srq(srq, 7, sge_of(&r, 0, 1024));
    memset(r.addr + 4096, 'd', 100);
    send_datagram(qp[0], ah, qp[1]->qp_num, sge_of(&r, 4096, 100));
    for (int i = 0; i < 2; i++) {
        struct ibv_wc wc = next_completion(cq);

        check(wc.status == IBV_WC_SUCCESS && (wc.wr_id == 1 || wc.wr_id == 7));
        check(wc.wr_id == 1 || (wc.byte_len == 140 && wc.src_qp == qp[0]->qp_num && wc.qp_num == qp[1]->qp_num));
    }
    check(!memcmp(r.addr + 40, r.addr + 4096, 100));
    check(!ibv_destroy_ah(ah));
    destroy_pair(qp);
    check(!ibv_destroy_qp(other));
    check(!ibv_destroy_srq(srq));
    destroy_cq(cq);
    destroy_region(&r);
}

/* A reliable message waits until there is a WQE. An SRQ is not its QPs' own queue. */
static void test_empty(void)
{
    struct sharing s;
    struct ibv_recv_wr recv = {}, *bad;
    struct ibv_wc wc;

    set_up(&s, 8192);
    check(ibv_post_recv(s.qp[1], &recv, &bad) == EINVAL && bad == &recv);
    post(s.qp[0], IBV_WR_SEND, 1, sge_of(&s.r, 4096, 8), 0, 0);
    usleep(100000);
    check(!ibv_poll_cq(ibv_cq_ex_to_cq(s.cq), 1, &wc));
    post_srq(s.srq, 2, sge_of(&s.r, 0, 8));
    for (int i = 0; i < 2; i++) {
        wc = next_completion(s.cq);
        check(wc.status == IBV_WC_SUCCESS && (wc.wr_id == 1 || wc.wr_id == 2));
    }
    tear_down(&s);
}

/* So does a Write with immediate data, of one packet and of many: nothing is told before, and it is told once. */
static void test_empty_immediate(void)
{
    struct sharing s;
    static const uint32_t lengths[] = { 8, 20000 };

    set_up(&s, 65536);
    for (unsigned round = 0; round < 6; round++) {
        uint32_t length = lengths[round % 2];
        unsigned seen = 0;
        struct ibv_wc wc;

        fill_pattern(s.r.addr, round, length);
        memset(s.r.addr + 32768, 0, length);
        post(s.qp[0], IBV_WR_RDMA_WRITE_WITH_IMM, 1, sge_of(&s.r, 0, length), (uintptr_t)s.r.addr + 32768, s.r.mr->rkey);
        usleep(20000);
        check(!ibv_poll_cq(ibv_cq_ex_to_cq(s.cq), 1, &wc));
        post_srq(s.srq, 2, sge_of(&s.r, 65000, 8));
        for (int i = 0; i < 2; i++) {
            wc = next_completion(s.cq);
            check(wc.status == IBV_WC_SUCCESS && (wc.wr_id == 1 || wc.wr_id == 2) && !(seen & wc.wr_id));
            check(wc.wr_id == 1 || (wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.byte_len == length));
            seen |= wc.wr_id;
        }
        check_pattern(s.r.addr + 32768, round, length);
        check(!ibv_poll_cq(ibv_cq_ex_to_cq(s.cq), 1, &wc));
    }
    tear_down(&s);
}

/* --- the last one ------------------------------------------------------------------------------------------------- */

static void test_all_srqs(void)
{
    unsigned int most = device.attr.max_srq, made = 0;
    struct ibv_srq_init_attr attr = { .attr = { .max_wr = 1, .max_sge = 1 } };
    struct ibv_srq **srq = calloc(most + 1, sizeof(*srq));

    check(srq);
    while (made <= most && (srq[made] = ibv_create_srq(device.pd, &attr))) {
        made++;
    }
    check(errno == ENOMEM);
    printf("%u SRQs\n", made);
    check(made == most || made > 1000);
    for (unsigned int i = 0; i < made; i++) {
        check(!ibv_destroy_srq(srq[i]));
    }
    free(srq);
    check(device.attr.max_srq_wr >= 4096 && device.attr.max_srq_sge >= 16);
    check(!ibv_destroy_srq(create_srq(device.attr.max_srq_wr)));
}

/* ------------------------------------------------------------------------------------------------------------------ */

static const struct test_case cases[] = {
    { "limits_ignored", test_limits_ignored },
    { "exact_lists", test_exact_lists },
    { "limit", test_limit },
    { "resize", test_resize },
    { "resize_unarmed", test_resize_unarmed },
    { "last_wqe", test_last_wqe },
    { "lives", test_lives },
    { "shared", test_shared },
    { "destroy", test_destroy },
    { "threads", test_threads },
    { "datagrams", test_datagrams },
    { "empty", test_empty },
    { "empty_immediate", test_empty_immediate },
    { "all_srqs", test_all_srqs },
    { NULL, NULL },
};

int main(int argc, char **argv)
{
    return run_case(argc, argv, cases, &device, NULL, NULL);
}
