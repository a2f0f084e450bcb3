/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: states-test CASE
 *
 * Queue pairs and what is said of them where other cards have gone wrong: states that change under who posts, attributes
 * that are not of the type or not meant, verbs that fail and do not say why, groups. QPs of the card talk to each other.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common.h"

#define DEPTH 32u
#define GRH 40

static struct device device;
static struct region region;
static struct ibv_cq_ex *cq;

static struct ibv_cq *plain_cq(void)
{
    return ibv_cq_ex_to_cq(cq);
}

static bool is_ethernet(void)
{
    return device.port.link_layer == IBV_LINK_LAYER_ETHERNET;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

struct poster {
    struct ibv_qp *qp;
    atomic_bool stop;
    uint64_t taken; /* requests for which ibv_post_send() returned 0 */
};

static void *post_until_told(void *opaque)
{
    struct poster *p = opaque;
    struct ibv_sge sge = sge_of(&region, 0, 8);
    struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
                              .wr.rdma = { (uintptr_t)region.addr + 64, region.mr->rkey } };
    struct ibv_send_wr *bad;

    while (!p->stop) {
        wr.wr_id = p->taken;
        if (!ibv_post_send(p->qp, &wr, &bad)) {
            p->taken++;
        }
    }
    return NULL;
}

/* Each request that was taken ends, in order, whoever moves the QP to ERR meanwhile. */
static void test_posted_while_it_breaks(void)
{
    struct ibv_qp *qp[2];
    uint64_t flushed = 0;

    create_connection(&device, cq, DEPTH, qp);
    for (unsigned round = 0; round < 200; round++) {
        struct poster poster = { .qp = qp[0] };
        uint64_t ended = 0, wanted = 1 + round % 50;
        bool broken = false;
        pthread_t thread;
        struct ibv_wc wc;

        check(!pthread_create(&thread, NULL, post_until_told, &poster));
        for (double end = seconds_now() + patience(); !poster.stop || ended < poster.taken;) {
            check(seconds_now() < end);
            if (ibv_poll_cq(plain_cq(), 1, &wc) != 1) {
                continue;
            }
            check(wc.wr_id == ended && wc.qp_num == qp[0]->qp_num);
            check(wc.status == IBV_WC_WR_FLUSH_ERR || (wc.status == IBV_WC_SUCCESS && !broken));
            broken = wc.status == IBV_WC_WR_FLUSH_ERR;
            flushed += broken;
            ended++;
            if (ended == wanted) {
                to_state(qp[0], IBV_QPS_ERR);
            } else if (ended == wanted + 3 * DEPTH) {
                poster.stop = true;
                pthread_join(thread, NULL);
            }
        }
        check(!ibv_poll_cq(plain_cq(), 1, &wc));
        reconnect(&device, qp);
    }
    check(flushed);
    destroy_pair(qp);
}

/* --- completions of many requests --------------------------------------------------------------------------------- */

/* What each completion of an endless row of requests is of, past the end of the queues many times. */
static void test_opcodes(void)
{
    static const struct {
        enum ibv_wr_opcode request;
        enum ibv_wc_opcode completion;
    } kinds[] = {
        { IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE },         { IBV_WR_RDMA_READ, IBV_WC_RDMA_READ },
        { IBV_WR_SEND, IBV_WC_SEND },                     { IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD },
        { IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP },  { IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE },
        { IBV_WR_SEND_WITH_IMM, IBV_WC_SEND },
    };
    const unsigned n = sizeof(kinds) / sizeof(kinds[0]);
    struct ibv_qp *qp[2];

    create_connection(&device, cq, DEPTH, qp);
    for (unsigned i = 0; i < 20 * DEPTH; i++) {
        unsigned kind = (i * 5 + i / 7) % n;
        struct ibv_sge sge = sge_of(&region, 0, 8);
        struct ibv_send_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = kinds[kind].request,
                                  .send_flags = i % 3 ? IBV_SEND_SIGNALED : 0, .imm_data = i };
        bool receives = kind == 2 || kind >= 5;
        struct ibv_send_wr *bad;

        if (kind == 3 || kind == 4) {
            wr.wr.atomic.remote_addr = (uintptr_t)region.addr + 64;
            wr.wr.atomic.rkey = region.mr->rkey;
        } else {
            wr.wr.rdma.remote_addr = (uintptr_t)region.addr + 64;
            wr.wr.rdma.rkey = region.mr->rkey;
        }
        if (receives) {
            post_recv(qp[1], 1000000 + i, sge_of(&region, 128, 8));
        }
        check(!ibv_post_send(qp[0], &wr, &bad));
        for (unsigned left = (i % 3 != 0) + receives; left; left--) {
            struct ibv_wc wc = next_completion(cq);
            bool of_receive = wc.wr_id == 1000000 + i;

            check(wc.status == IBV_WC_SUCCESS && wc.qp_num == qp[of_receive]->qp_num);
            if (of_receive) {
                check(wc.opcode == (kind == 5 ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV));
                check((wc.wc_flags & IBV_WC_WITH_IMM ? wc.imm_data : i) == i && (kind == 2) == !(wc.wc_flags & IBV_WC_WITH_IMM));
            } else {
                check(wc.wr_id == i && wc.opcode == kinds[kind].completion);
            }
        }
    }
    destroy_pair(qp);
}

/* Whose each of very many completions in one queue is. */
static void test_of_many(void)
{
    enum { PAIRS = 150 };
    static struct ibv_qp *qp[PAIRS][2];
    struct ibv_cq_ex *large = create_cq(&device, 4 * PAIRS);
    static unsigned seen[PAIRS];

    for (int i = 0; i < PAIRS; i++) {
        create_connection(&device, large, 4, qp[i]);
    }
    for (int n = 0; n < 2; n++) {
        for (int i = 0; i < PAIRS; i++) {
            post(qp[i][n], IBV_WR_RDMA_WRITE, 2 * i + n, sge_of(&region, 0, 8), (uintptr_t)region.addr + 64, region.mr->rkey);
        }
    }
    for (int i = 0; i < 2 * PAIRS; i++) {
        struct ibv_wc wc = next_completion(large);

        check(wc.status == IBV_WC_SUCCESS && wc.wr_id < 2 * PAIRS);
        check(wc.qp_num == qp[wc.wr_id / 2][wc.wr_id % 2]->qp_num);
        check(!(seen[wc.wr_id / 2] & 1 << wc.wr_id % 2));
        seen[wc.wr_id / 2] |= 1 << wc.wr_id % 2;
    }
    for (int i = 0; i < PAIRS; i++) {
        destroy_pair(qp[i]);
    }
    destroy_cq(large);
}

/* A queue that runs over ends its own QPs; those of others go on. */
static void test_overrun_of_one(void)
{
    struct ibv_cq_ex *small = create_cq(&device, 4);
    struct ibv_async_event event;
    struct ibv_qp *over[2], *good[2];
    bool broken = false;

    create_connection(&device, small, DEPTH, over);
    create_connection(&device, cq, DEPTH, good);
    for (int i = 0; i < 20; i++) {
        post(over[0], IBV_WR_RDMA_WRITE, i, sge_of(&region, 0, 8), (uintptr_t)region.addr + 64, region.mr->rkey);
        post(good[0], IBV_WR_RDMA_WRITE, i, sge_of(&region, 0, 8), (uintptr_t)region.addr + 64, region.mr->rkey);
        expect_completion(cq, i, IBV_WC_SUCCESS);
    }
    while (!broken) {
        struct pollfd wait = { .fd = device.context->async_fd, .events = POLLIN };

        check(poll(&wait, 1, patience() * 1000) == 1);
        check(!ibv_get_async_event(device.context, &event));
        broken = event.event_type == IBV_EVENT_CQ_ERR;
        check(!broken || event.element.cq == ibv_cq_ex_to_cq(small));
        check(broken || event.element.qp == over[0] || event.element.qp == over[1]);
        ibv_ack_async_event(&event);
    }
    post(good[0], IBV_WR_RDMA_WRITE, 99, sge_of(&region, 0, 8), (uintptr_t)region.addr + 64, region.mr->rkey);
    expect_completion(cq, 99, IBV_WC_SUCCESS);
    destroy_pair(over);
    destroy_pair(good);
    destroy_cq(small);
}

/* Of a send and a receive in one queue either may come first; both come, once each. */
static void test_either_order(void)
{
    unsigned receive_first = 0;
    struct ibv_qp *qp[2];

    create_connection(&device, cq, DEPTH, qp);
    for (unsigned i = 0; i < 500; i++) {
        unsigned seen = 0;

        post_recv(qp[1], 2, sge_of(&region, 128, 8));
        post(qp[0], IBV_WR_SEND, 1, sge_of(&region, 0, 8), 0, 0);
        for (int n = 0; n < 2; n++) {
            struct ibv_wc wc = next_completion(cq);

            check(wc.status == IBV_WC_SUCCESS && wc.wr_id && wc.wr_id <= 2 && !(seen & wc.wr_id));
            receive_first += !seen && wc.wr_id == 2;
            seen |= wc.wr_id;
        }
    }
    printf("%u of 500 receives were there before their sends\n", receive_first);
    destroy_pair(qp);
}

/* --- attributes --------------------------------------------------------------------------------------------------- */

static void still_works(struct ibv_qp *qp)
{
    check(state_of(qp) == IBV_QPS_RTS);
    post(qp, IBV_WR_RDMA_WRITE, 7, sge_of(&region, 0, 8), (uintptr_t)region.addr + 64, region.mr->rkey);
    expect_completion(cq, 7, IBV_WC_SUCCESS);
}

/* A path is given at the way to RTR; in RTS there is none to be changed (ibv_modify_qp(3)). */
static void test_path_in_rts(void)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .ah_attr = own_path(&device), .path_mtu = IBV_MTU_512 };
    struct ibv_qp *qp[2];

    create_connection(&device, cq, DEPTH, qp);
    check(ibv_modify_qp(qp[0], &attr, IBV_QP_STATE | IBV_QP_AV) == EINVAL);
    still_works(qp[0]);
    check(ibv_modify_qp(qp[0], &attr, IBV_QP_STATE | IBV_QP_PATH_MTU) == EINVAL);
    still_works(qp[0]);
    destroy_pair(qp);
}

static const struct ibv_qp_attr good_init = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY,
                                             .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

static int init_mask(enum ibv_qp_type type)
{
    return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
}

static struct ibv_qp_attr good_rtr(uint32_t peer)
{
    return (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer,
                                  .max_dest_rd_atomic = 4, .min_rnr_timer = 1, .ah_attr = own_path(&device) };
}

static int rtr_mask(enum ibv_qp_type type)
{
    const int connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

    return IBV_QP_STATE | (type == IBV_QPT_UD ? 0 : connected) |
           (type == IBV_QPT_RC ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
}

static int rts_mask(enum ibv_qp_type type)
{
    return IBV_QP_STATE | IBV_QP_SQ_PSN |
           (type == IBV_QPT_RC ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0);
}

/* A step with each attribute that another type has, and without each that this one needs: EINVAL, and the QP where it was. */
static void try_step(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask, int of_others)
{
    enum ibv_qp_state before = state_of(qp);

    for (int bit = IBV_QP_STATE << 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
        if (bit & (mask | of_others)) {
            check(ibv_modify_qp(qp, &attr, mask ^ bit) == EINVAL);
            check(state_of(qp) == before);
        }
    }
    check(!ibv_modify_qp(qp, &attr, mask));
}

static void test_attributes_of_types(void)
{
    static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
    const int reliable = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                         IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4 };
        struct ibv_qp *qp = create_qp(&device, cq, types[i], DEPTH, 0);
        int others = types[i] == IBV_QPT_RC ? 0 : reliable;

        if (types[i] == IBV_QPT_UD) {
            others |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN;
        } else {
            others |= IBV_QP_QKEY;
        }
        printf("type %d\n", types[i]);
        try_step(qp, good_init, init_mask(types[i]), others);
        /* A Q_Key may be changed on the way (table of ibv_modify_qp(3)); of the others nothing. */
        try_step(qp, good_rtr(qp->qp_num), rtr_mask(types[i]), others);
        try_step(qp, rts, rts_mask(types[i]), others);
        check(state_of(qp) == IBV_QPS_RTS);
        check(!ibv_destroy_qp(qp));
    }
}

/* What no bit of the mask names is not looked at, whatever it says. */
static void test_garbage_not_meant(void)
{
    struct ibv_qp *qp = create_qp(&device, cq, IBV_QPT_RC, DEPTH, 0);
    struct ibv_qp_attr attr, good, told;
    struct ibv_qp_init_attr init;

    memset(&attr, 0xa5, sizeof(attr));
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.pkey_index = 0;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    check(!ibv_modify_qp(qp, &attr, init_mask(IBV_QPT_RC)));
    memset(&attr, 0xa5, sizeof(attr));
    good = good_rtr(qp->qp_num);
    attr.qp_state = good.qp_state;
    attr.path_mtu = good.path_mtu;
    attr.dest_qp_num = good.dest_qp_num;
    attr.rq_psn = 0;
    attr.max_dest_rd_atomic = good.max_dest_rd_atomic;
    attr.min_rnr_timer = good.min_rnr_timer;
    attr.ah_attr = good.ah_attr;
    check(!ibv_modify_qp(qp, &attr, rtr_mask(IBV_QPT_RC)));
    memset(&attr, 0xa5, sizeof(attr));
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = 7;
    attr.rnr_retry = 7;
    attr.max_rd_atomic = 4;
    attr.sq_psn = 0;
    check(!ibv_modify_qp(qp, &attr, rts_mask(IBV_QPT_RC)));
    still_works(qp);
    check(!ibv_query_qp(qp, &told, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN, &init));
    check(told.path_mtu == IBV_MTU_1024 && told.dest_qp_num == qp->qp_num && told.ah_attr.port_num == 1);
    check(!ibv_destroy_qp(qp));
}

/* A rate that there is not is treated alike wherever it is said. */
static void test_rates(void)
{
    for (unsigned rate = 0; rate < 256; rate += rate < 32 ? 1 : 37) {
        struct ibv_qp *qp = create_qp(&device, cq, IBV_QPT_RC, DEPTH, 0);
        struct ibv_qp_attr init = good_init, rtr = good_rtr(qp->qp_num);
        struct ibv_ah_attr path = own_path(&device);
        struct ibv_ah *ah;
        int err;

        check(!ibv_modify_qp(qp, &init, init_mask(IBV_QPT_RC)));
        path.static_rate = rtr.ah_attr.static_rate = rate;
        err = ibv_modify_qp(qp, &rtr, rtr_mask(IBV_QPT_RC));
        check(!err || err == EINVAL);
        errno = 0;
        ah = ibv_create_ah(device.pd, &path);
        check(ah ? !err : err == EINVAL && errno == EINVAL);
        check(!ah || !ibv_destroy_ah(ah));
        check(!ibv_destroy_qp(qp));
    }
}

/* More Reads at once than the card has: EINVAL, the QP stays where it was, and fewer are right then. */
static void test_too_many_reads(void)
{
    struct ibv_qp *qp = create_qp(&device, cq, IBV_QPT_RC, DEPTH, 0);
    struct ibv_qp_attr init = good_init, rtr = good_rtr(qp->qp_num);
    struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 };

    check(!ibv_modify_qp(qp, &init, init_mask(IBV_QPT_RC)));
    rtr.max_dest_rd_atomic = device.attr.max_qp_rd_atom + 1;
    check(ibv_modify_qp(qp, &rtr, rtr_mask(IBV_QPT_RC)) == EINVAL && state_of(qp) == IBV_QPS_INIT);
    rtr.max_dest_rd_atomic = device.attr.max_qp_rd_atom;
    check(!ibv_modify_qp(qp, &rtr, rtr_mask(IBV_QPT_RC)));
    for (unsigned reads = device.attr.max_qp_init_rd_atom + 1; reads < 256; reads += 50) {
        rts.max_rd_atomic = reads;
        check(ibv_modify_qp(qp, &rts, rts_mask(IBV_QPT_RC)) == EINVAL && state_of(qp) == IBV_QPS_RTR);
    }
    rts.max_rd_atomic = 1;
    check(!ibv_modify_qp(qp, &rts, rts_mask(IBV_QPT_RC)));
    still_works(qp);
    check(!ibv_destroy_qp(qp));
}

/* On Ethernet a path without a GRH leads nowhere. */
static void test_no_addresses(void)
{
    struct ibv_qp *qp = create_qp(&device, cq, IBV_QPT_RC, DEPTH, 0);
    struct ibv_qp_attr init = good_init, rtr = good_rtr(qp->qp_num);
    struct ibv_ah_attr bare = { .dlid = 7, .port_num = 1 };

    check(is_ethernet());
    check(!ibv_modify_qp(qp, &init, init_mask(IBV_QPT_RC)));
    errno = 0;
    check(!ibv_create_ah(device.pd, &bare) && errno == EINVAL);
    rtr.ah_attr = bare;
    check(ibv_modify_qp(qp, &rtr, rtr_mask(IBV_QPT_RC)) == EINVAL && state_of(qp) == IBV_QPS_INIT);
    rtr.ah_attr = own_path(&device);
    check(!ibv_modify_qp(qp, &rtr, rtr_mask(IBV_QPT_RC)));
    check(!ibv_destroy_qp(qp));
}

/* --- errno -------------------------------------------------------------------------------------------------------- */

/* A verb that returns a pointer says by errno why there is none. */
#define refused(verb, why)                     \
    do {                                       \
        errno = 0;                             \
        check(!(verb) && errno == (why));      \
    } while (0)

static struct ibv_qp *qp_of(struct ibv_qp_init_attr_ex attr)
{
    return ibv_create_qp_ex(device.context, &attr);
}

static void test_errno(void)
{
    struct ibv_qp_init_attr_ex good = { .send_cq = plain_cq(), .recv_cq = plain_cq(), .cap = { 1, 1, 1, 1, 0 },
                                        .qp_type = IBV_QPT_RC, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = device.pd };
    struct ibv_qp_init_attr_ex attr = good;
    struct ibv_srq_init_attr srq = { .attr = { .max_wr = device.attr.max_srq_wr + 1, .max_sge = 1 } };
    struct ibv_cq_init_attr_ex extended = { .cqe = 4, .wc_flags = 1ull << 40 };
    struct ibv_ah_attr path = own_path(&device);
    struct ibv_alloc_dm_attr dm = { .length = device.attr.max_mr_size };

    attr.cap.max_send_wr = device.attr.max_qp_wr + 1;
    refused(qp_of(attr), EINVAL);
    attr = good;
    attr.qp_type = 77;
    refused(qp_of(attr), EOPNOTSUPP);
    attr = good;
    attr.comp_mask |= 1u << 30;
    refused(qp_of(attr), EOPNOTSUPP);
    attr = good;
    attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
    attr.create_flags = IBV_QP_CREATE_CVLAN_STRIPPING;
    refused(qp_of(attr), EOPNOTSUPP);
    refused(ibv_create_srq(device.pd, &srq), EINVAL);
    srq.attr.max_wr = 1;
    srq.attr.max_sge = device.attr.max_srq_sge + 1;
    refused(ibv_create_srq(device.pd, &srq), EINVAL);
    refused(ibv_create_cq(device.context, -1, NULL, NULL, 0), EINVAL);
    refused(ibv_create_cq(device.context, 4, NULL, NULL, device.context->num_comp_vectors), EINVAL);
    refused(ibv_create_cq_ex(device.context, &extended), EOPNOTSUPP);
    refused(ibv_reg_mr(device.pd, region.addr, 0, ACCESS_ALL), EINVAL);
    refused(ibv_reg_mr_iova(device.pd, region.addr, 0, 0, ACCESS_ALL), EINVAL);
    refused(ibv_reg_mr(device.pd, (void *)16, 4096, ACCESS_ALL), EFAULT);
    refused(ibv_reg_mr(device.pd, region.addr, SIZE_MAX, ACCESS_ALL), EINVAL);
    refused(ibv_reg_dmabuf_mr(device.pd, 0, 4096, 0, -1, ACCESS_ALL), EBADF);
    refused(ibv_alloc_mw(device.pd, 9), EINVAL);
    refused(ibv_alloc_dm(device.context, &dm), EINVAL);
    path.port_num = 2;
    refused(ibv_create_ah(device.pd, &path), EINVAL);
}

/* Two who wait for events of QPs: each has one of them, and none twice. What the port has to tell is no matter. */
static void *take_event(void *opaque)
{
    struct ibv_async_event *event = opaque;

    while (!ibv_get_async_event(device.context, event) && event->event_type != IBV_EVENT_QP_ACCESS_ERR) {
        check(event->event_type >= IBV_EVENT_PORT_ACTIVE);
        ibv_ack_async_event(event);
    }
    return NULL;
}

static void test_two_readers(void)
{
    struct ibv_async_event event[2], third;
    struct ibv_qp *qp[2][2];
    pthread_t reader[2];

    for (int i = 0; i < 2; i++) {
        create_connection(&device, cq, 4, qp[i]);
        memset(&event[i], 0xff, sizeof(event[i]));
        check(!pthread_create(&reader[i], NULL, take_event, &event[i]));
    }
    for (int i = 0; i < 2; i++) { /* of the QP that is written to */
        post(qp[i][0], IBV_WR_RDMA_WRITE, i, sge_of(&region, 0, 8), (uintptr_t)region.addr, NO_KEY);
        expect_completion(cq, i, IBV_WC_REM_ACCESS_ERR);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(reader[i], NULL);
        check(event[i].event_type == IBV_EVENT_QP_ACCESS_ERR);
    }
    check(event[0].element.qp == qp[0][1] ? event[1].element.qp == qp[1][1]
                                          : event[0].element.qp == qp[1][1] && event[1].element.qp == qp[0][1]);
    usleep(50000);
    check(!fcntl(device.context->async_fd, F_SETFL, O_NONBLOCK));
    while (!ibv_get_async_event(device.context, &third)) {
        check(third.event_type >= IBV_EVENT_PORT_ACTIVE);
        ibv_ack_async_event(&third);
    }
    check(errno == EAGAIN);
    for (int i = 0; i < 2; i++) { /* before either QP goes: who had which is chance */
        ibv_ack_async_event(&event[i]);
    }
    for (int i = 0; i < 2; i++) {
        destroy_pair(qp[i]);
    }
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

#define MEMBERS 3
#define GROUP_LID 0xc012

static struct ibv_qp *datagram_qp(uint32_t create_flags)
{
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = plain_cq(),
        .recv_cq = plain_cq(),
        .cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1 },
        .qp_type = IBV_QPT_UD,
        .comp_mask = IBV_QP_INIT_ATTR_PD | (create_flags ? IBV_QP_INIT_ATTR_CREATE_FLAGS : 0),
        .pd = device.pd,
        .create_flags = create_flags,
    };
    struct ibv_qp *qp = ibv_create_qp_ex(device.context, &attr);

    check(qp);
    connect_qp(&device, qp, 0);
    return qp;
}

/* A group that nobody else has; on Ethernet that of an IPv4 address. */
static union ibv_gid group_gid(void)
{
    static const uint8_t ib[16] = { 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [13] = 0x12, 0x34, 0x56 };
    static const uint8_t ethernet[16] = { 0xff, 0x0e, [10] = 0xff, 0xff, 239, 1, 2, 3 };
    union ibv_gid gid;

    memcpy(gid.raw, is_ethernet() ? ethernet : ib, sizeof(gid.raw));
    return gid;
}

static struct ibv_ah *group_ah(void)
{
    struct ibv_ah_attr path = { .dlid = GROUP_LID, .port_num = 1, .is_global = 1, .grh = { .dgid = group_gid(), .hop_limit = 1 } };
    struct ibv_ah *ah = ibv_create_ah(device.pd, &path);

    check(ah);
    return ah;
}

/* Who has a datagram that was sent to the group: bits, by number. Each has at most one. */
static unsigned who_hears(struct ibv_qp *from, struct ibv_ah *ah, struct ibv_qp **qp)
{
    static uint8_t round;
    struct ibv_sge sge = sge_of(&region, 0, 100);
    struct ibv_send_wr wr = { .wr_id = 99, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
                              .wr.ud = { ah, 0xffffff, QKEY } };
    struct ibv_send_wr *bad;
    unsigned heard = 0;
    bool sent = false;
    double end;

    memset(region.addr, ++round, 100);
    for (int i = 0; i < MEMBERS; i++) {
        post_recv(qp[i], 2 * i, sge_of(&region, 1024 * (2 * i + 1), 200));
        post_recv(qp[i], 2 * i + 1, sge_of(&region, 1024 * (2 * i + 2), 200));
    }
    check(!ibv_post_send(from, &wr, &bad));
    /* What a group has comes before what is sent behind it to oneself. */
    end = seconds_now() + 0.3;
    while (!sent || seconds_now() < end) {
        struct ibv_wc wc;

        if (ibv_poll_cq(plain_cq(), 1, &wc) == 1) {
            check(wc.status == IBV_WC_SUCCESS);
            if (wc.wr_id == 99) {
                sent = true;
            } else {
                unsigned i = wc.wr_id / 2;

                check(!(heard & 1u << i) && wc.qp_num == qp[i]->qp_num && wc.src_qp == from->qp_num);
                check(wc.byte_len == 100 + GRH && wc.wc_flags & IBV_WC_GRH);
                check(region.addr[1024 * (wc.wr_id + 1) + GRH] == round);
                heard |= 1u << i;
            }
        }
    }
    for (int i = 0; i < MEMBERS; i++) { /* back to where it began */
        to_state(qp[i], IBV_QPS_RESET);
        connect_qp(&device, qp[i], 0);
    }
    discard_completions(cq);
    return heard;
}

/* Each member once, however often it was attached; who is not in a group cannot leave it. */
static void test_groups(void)
{
    union ibv_gid gid = group_gid();
    struct ibv_ah *ah = group_ah();
    struct ibv_qp *qp[MEMBERS], *connected[2];

    for (int i = 0; i < MEMBERS; i++) {
        qp[i] = datagram_qp(0);
    }
    check(who_hears(qp[0], ah, qp) == 0);
    check(!ibv_attach_mcast(qp[0], &gid, GROUP_LID) && !ibv_attach_mcast(qp[1], &gid, GROUP_LID));
    check(who_hears(qp[0], ah, qp) == 3);
    check(who_hears(qp[2], ah, qp) == 3);
    check(!ibv_attach_mcast(qp[1], &gid, GROUP_LID));
    check(who_hears(qp[2], ah, qp) == 3);
    check(ibv_detach_mcast(qp[2], &gid, GROUP_LID) == EINVAL);
    check(ibv_destroy_qp(qp[0]) == EBUSY);
    check(who_hears(qp[2], ah, qp) == 3);
    check(!ibv_detach_mcast(qp[0], &gid, GROUP_LID));
    check(who_hears(qp[0], ah, qp) == 2);
    check(!ibv_detach_mcast(qp[1], &gid, GROUP_LID));
    check(who_hears(qp[0], ah, qp) == 0);
    create_connection(&device, cq, 4, connected);
    check(ibv_attach_mcast(connected[0], &gid, GROUP_LID) == EINVAL);
    destroy_pair(connected);
    for (int i = 0; i < MEMBERS; i++) {
        check(!ibv_destroy_qp(qp[i]));
    }
    check(!ibv_destroy_ah(ah));
}

/* Who does not want to hear itself does not; others of the port hear it, and it hears others. */
static void test_not_oneself(void)
{
    union ibv_gid gid = group_gid();
    struct ibv_ah *ah = group_ah();
    struct ibv_qp *qp[MEMBERS];

    for (int i = 0; i < MEMBERS; i++) {
        qp[i] = datagram_qp(i == 0 ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0);
        check(!ibv_attach_mcast(qp[i], &gid, GROUP_LID));
    }
    check(who_hears(qp[0], ah, qp) == 6);
    check(who_hears(qp[1], ah, qp) == 7);
    for (int i = 0; i < MEMBERS; i++) {
        check(!ibv_detach_mcast(qp[i], &gid, GROUP_LID));
        check(!ibv_destroy_qp(qp[i]));
    }
    check(!ibv_destroy_ah(ah));
}

/* --- main --------------------------------------------------------------------------------------------------------- */

static const struct test_case cases[] = {
    { "posted_while_it_breaks", test_posted_while_it_breaks },
    { "opcodes", test_opcodes },
    { "of_many", test_of_many },
    { "overrun_of_one", test_overrun_of_one },
    { "either_order", test_either_order },
    { "path_in_rts", test_path_in_rts },
    { "attributes_of_types", test_attributes_of_types },
    { "garbage_not_meant", test_garbage_not_meant },
    { "rates", test_rates },
    { "too_many_reads", test_too_many_reads },
    { "no_addresses", test_no_addresses },
    { "errno", test_errno },
    { "two_readers", test_two_readers },
    { "groups", test_groups },
    { "not_oneself", test_not_oneself },
    { NULL, NULL },
};

static void begin(void)
{
    create_region(&device, &region, 16384);
    cq = create_cq(&device, 256);
}

static void end(void)
{
    destroy_cq(cq);
    destroy_region(&region);
}

int main(int argc, char **argv)
{
    return run_case(argc, argv, cases, &device, begin, end);
}
