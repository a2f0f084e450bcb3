/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: completion-test CASE
 *
 * Completion queues where those of other cards have gone wrong: polled past their end, full of the entries of a QP that has
 * gone, armed while an entry comes. QPs of the card talk to each other.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common.h"

static struct device device;
static struct region region;

static void write_one(struct ibv_qp *qp, uint64_t wr_id)
{
    post(qp, IBV_WR_RDMA_WRITE, wr_id, sge_of(&region, 0, 8), (uintptr_t)region.addr + 64, region.mr->rkey);
}

/* Requests that have ended since the card was reset, successfully. */
static uint64_t completed(void)
{
    char path[256];
    uint64_t n;
    FILE *file;

    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/hw_counters/requester_wqes_completed",
             ibv_get_device_name(device.context->device));
    file = fopen(path, "r");
    check(file && fscanf(file, "%" SCNu64, &n) == 1);
    fclose(file);
    return n;
}

/* Write n times, from that number on, and see that the card has written their entries; nobody has polled. */
static void write_unseen(struct ibv_qp *qp, uint64_t wr_id, unsigned n)
{
    double end = seconds_now() + patience();
    uint64_t before = completed();

    for (unsigned i = 0; i < n; i++) {
        write_one(qp, wr_id + i);
    }
    while (completed() < before + n) {
        check(seconds_now() < end);
        usleep(1000);
    }
}

/* --- polling ------------------------------------------------------------------------------------------------------ */

/* The one that is there, then none, however often one asks. */
static void test_past_the_end(void)
{
    struct ibv_poll_cq_attr attr = { 0 };
    struct ibv_cq_ex *cq = create_cq(&device, 4);
    struct ibv_qp *qp[2];

    create_connection(&device, cq, 4, qp);
    for (uint64_t i = 0; i < 1000; i++) {
        write_one(qp[0], i);
        start_poll(cq);
        check(cq->wr_id == i && cq->status == IBV_WC_SUCCESS);
        check(ibv_next_poll(cq) == ENOENT);
        ibv_end_poll(cq);
        check(ibv_start_poll(cq, &attr) == ENOENT);
        check(ibv_start_poll(cq, &attr) == ENOENT);
    }
    destroy_pair(qp);
    destroy_cq(cq);
}

/* Of a QP that has gone: its entries as they were, or none of them. */
static void test_last_qp_gone(void)
{
    struct ibv_cq_ex *cq = create_cq(&device, 16);
    struct ibv_qp *qp[2];
    struct ibv_wc wc;
    uint64_t next = 0;

    create_connection(&device, cq, 16, qp);
    write_unseen(qp[0], 0, 8);
    destroy_pair(qp);
    while (ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc) == 1) {
        check(wc.status == IBV_WC_SUCCESS && wc.wr_id == next);
        next++;
    }
    check(next == 0 || next == 8);
    destroy_cq(cq);
}

/* The QP of an entry goes while that is looked at; those of the other QP come next. */
static void test_gone_in_a_batch(void)
{
    struct ibv_cq_init_attr_ex attr = {
        .cqe = 16,
        .wc_flags = IBV_WC_STANDARD_FLAGS,
        .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
        .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
    };
    struct ibv_cq_ex *cq = ibv_create_cq_ex(device.context, &attr);
    struct ibv_poll_cq_attr poll = { 0 };
    struct ibv_qp *going[2], *staying[2];
    unsigned seen = 0;

    check(cq);
    create_connection(&device, cq, 16, going);
    create_connection(&device, cq, 16, staying);
    for (uint64_t i = 0; i < 3; i++) {
        write_unseen(going[0], i, 1);
        write_unseen(staying[0], 100 + i, 1);
    }
    check(!ibv_start_poll(cq, &poll));
    check(cq->wr_id == 0);
    destroy_pair(going);
    while (!ibv_next_poll(cq)) {
        if (ibv_wc_read_qp_num(cq) == staying[0]->qp_num) {
            check(cq->status == IBV_WC_SUCCESS && cq->wr_id == 100 + seen);
            seen++;
        }
    }
    ibv_end_poll(cq);
    check(seen == 3);
    destroy_pair(staying);
    destroy_cq(cq);
}

/* Room that the entries of a QP have had is there again when it has gone. */
static void test_full_of_the_dead(void)
{
    struct ibv_cq_ex *cq = create_cq(&device, 16);
    unsigned entries = ibv_cq_ex_to_cq(cq)->cqe;
    struct ibv_async_event event;
    struct ibv_qp *qp[2];

    for (unsigned round = 0; round < 20; round++) {
        create_connection(&device, cq, entries, qp);
        write_unseen(qp[0], 0, entries);
        destroy_pair(qp);
    }
    create_connection(&device, cq, entries, qp);
    write_unseen(qp[0], 0, entries);
    for (uint64_t i = 0; i < entries; i++) {
        expect_completion(cq, i, IBV_WC_SUCCESS);
    }
    check(!fcntl(device.context->async_fd, F_SETFL, O_NONBLOCK));
    check(ibv_get_async_event(device.context, &event));
    destroy_pair(qp);
    destroy_cq(cq);
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

struct mistake {
    const char *name;
    enum ibv_wr_opcode opcode;
    bool bad_lkey, bad_rkey, too_long;
    enum ibv_wc_status status;
};

static const struct mistake mistakes[] = {
    { "the key here", IBV_WR_RDMA_WRITE, .bad_lkey = true, .status = IBV_WC_LOC_PROT_ERR },
    { "the range here", IBV_WR_RDMA_WRITE, .too_long = true, .status = IBV_WC_LOC_PROT_ERR },
    { "the key there", IBV_WR_RDMA_WRITE, .bad_rkey = true, .status = IBV_WC_REM_ACCESS_ERR },
    { "the key there, to read", IBV_WR_RDMA_READ, .bad_rkey = true, .status = IBV_WC_REM_ACCESS_ERR },
};

static struct ibv_wc poll_new(struct ibv_cq_ex *cq)
{
    struct ibv_wc wc = { 0 };

    start_poll(cq);
    wc.wr_id = cq->wr_id;
    wc.status = cq->status;
    wc.vendor_err = ibv_wc_read_vendor_err(cq);
    wc.qp_num = ibv_wc_read_qp_num(cq);
    ibv_end_poll(cq);
    return wc;
}

/* What a request that is wrong ends with, and the one behind it, by either way to poll. */
static void make_mistake(const struct mistake *mistake, bool new_way, struct ibv_wc wc[2])
{
    struct ibv_cq_ex *cq = create_cq(&device, 16);
    struct ibv_sge sge = sge_of(&region, 0, mistake->too_long ? region.length + 1 : 8);
    struct ibv_qp *qp[2];

    create_connection(&device, cq, 8, qp);
    sge.lkey = mistake->bad_lkey ? NO_KEY : sge.lkey;
    post(qp[0], mistake->opcode, 1, sge, (uintptr_t)region.addr + 64, mistake->bad_rkey ? NO_KEY : region.mr->rkey);
    write_one(qp[0], 2);
    for (int i = 0; i < 2; i++) {
        wc[i] = new_way ? poll_new(cq) : next_completion(cq);
        check(wc[i].wr_id == (uint64_t)i + 1 && wc[i].qp_num == qp[0]->qp_num);
    }
    check(wc[0].status == mistake->status && wc[1].status == IBV_WC_WR_FLUSH_ERR);
    check(state_of(qp[0]) == IBV_QPS_ERR);
    destroy_pair(qp);
    destroy_cq(cq);
}

static void test_both_ways(void)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        struct ibv_wc old[2], new[2];

        printf("%s\n", mistakes[i].name);
        make_mistake(&mistakes[i], false, old);
        make_mistake(&mistakes[i], true, new);
        for (int n = 0; n < 2; n++) {
            check(old[n].status == new[n].status && old[n].vendor_err == new[n].vendor_err);
        }
    }
}

/* Whatever is posted in the error state is taken and flushed, behind all before it; when there is no room, it is refused. */
static void test_posted_in_error(void)
{
    struct ibv_cq_ex *cq = create_cq(&device, 64);
    struct ibv_sge sge = sge_of(&region, 0, 8);
    struct ibv_send_wr send = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;
    struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;
    struct ibv_qp *qp[2];
    int err;

    create_connection(&device, cq, 16, qp);
    to_state(qp[0], IBV_QPS_ERR);
    for (uint64_t round = 0; round < 100; round++) {
        for (uint64_t i = 0; i < 4; i++) {
            send.wr_id = 4 * round + i;
            check(!ibv_post_send(qp[0], &send, &bad));
        }
        for (uint64_t i = 0; i < 4; i++) {
            expect_completion(cq, 4 * round + i, IBV_WC_WR_FLUSH_ERR);
        }
        for (uint64_t i = 0; i < 4; i++) {
            recv.wr_id = 4 * round + i;
            check(!ibv_post_recv(qp[0], &recv, &bad_recv));
        }
        for (uint64_t i = 0; i < 4; i++) {
            expect_completion(cq, 4 * round + i, IBV_WC_WR_FLUSH_ERR);
        }
    }
    for (send.wr_id = 0; !(err = ibv_post_send(qp[0], &send, &bad)); send.wr_id++) {
        check(send.wr_id < 64);
    }
    check(err == ENOMEM && bad == &send && send.wr_id >= 16);
    for (uint64_t i = 0; i < send.wr_id; i++) {
        expect_completion(cq, i, IBV_WC_WR_FLUSH_ERR);
    }
    check(!ibv_post_send(qp[0], &send, &bad));
    expect_completion(cq, send.wr_id, IBV_WC_WR_FLUSH_ERR);
    destroy_pair(qp);
    destroy_cq(cq);
}

/* --- sizes -------------------------------------------------------------------------------------------------------- */

/* What is told can be had; what one gets can be had again. */
static void test_sizes(void)
{
    int sizes[] = { 1, 100, device.attr.max_cqe };
    struct ibv_cq *cq, *again;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        cq = ibv_create_cq(device.context, sizes[i], NULL, NULL, 0);
        check(cq && cq->cqe >= sizes[i] && cq->cqe <= device.attr.max_cqe);
        again = ibv_create_cq(device.context, cq->cqe, NULL, NULL, 0);
        check(again && again->cqe == cq->cqe);
        check(!ibv_destroy_cq(cq) && !ibv_destroy_cq(again));
    }
    errno = 0;
    check(!ibv_create_cq(device.context, device.attr.max_cqe + 1, NULL, NULL, 0) && errno == EINVAL);
    errno = 0;
    check(!ibv_create_cq(device.context, 0, NULL, NULL, 0) && errno == EINVAL);
}

/* A size that is too small for what waits is refused, and the queue goes on. */
static void test_too_small(void)
{
    struct ibv_cq_ex *cq = create_cq(&device, 64);
    struct ibv_qp *qp[2];

    create_connection(&device, cq, 64, qp);
    write_unseen(qp[0], 0, 40);
    check(ibv_resize_cq(ibv_cq_ex_to_cq(cq), 20) == EINVAL);
    for (uint64_t i = 0; i < 20; i++) {
        expect_completion(cq, i, IBV_WC_SUCCESS);
    }
    check(!ibv_resize_cq(ibv_cq_ex_to_cq(cq), 24));
    for (uint64_t i = 20; i < 40; i++) {
        expect_completion(cq, i, IBV_WC_SUCCESS);
    }
    destroy_pair(qp);
    destroy_cq(cq);
}

/* --- events ------------------------------------------------------------------------------------------------------- */

#define EVENTS 3000u

static void *post_at_random(void *opaque)
{
    struct ibv_qp *qp = opaque;
    unsigned seed = 1;

    for (unsigned i = 0; i < EVENTS; i++) {
        struct ibv_sge sge = sge_of(&region, 0, 8);
        struct ibv_send_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
                                  .send_flags = IBV_SEND_SIGNALED,
                                  .wr.rdma = { (uintptr_t)region.addr + 64, region.mr->rkey } };
        struct ibv_send_wr *bad;
        int err;

        do {
            err = ibv_post_send(qp, &wr, &bad);
        } while (err == ENOMEM);
        check(!err);
        if (rand_r(&seed) % 4) {
            usleep(rand_r(&seed) % 200);
        }
    }
    return NULL;
}

/* Take what is there; the number of the next. */
static uint64_t drain(struct ibv_cq *cq, uint64_t next)
{
    struct ibv_wc wc;

    while (ibv_poll_cq(cq, 1, &wc) == 1) {
        check(wc.status == IBV_WC_SUCCESS && wc.wr_id == next);
        next++;
    }
    return next;
}

/* Who polls until there is nothing, arms, polls once more and sleeps is woken by whatever comes then. */
static void test_armed_in_between(void)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(device.context);
    struct ibv_cq *cq = ibv_create_cq(device.context, 64, NULL, channel, 0), *told;
    struct pollfd wait = { .fd = channel ? channel->fd : -1, .events = POLLIN };
    struct ibv_qp *qp[2];
    uint64_t next = 0;
    pthread_t poster;
    unsigned events = 0;
    void *context;

    check(channel && cq);
    create_connection(&device, (struct ibv_cq_ex *)cq, 32, qp);
    check(!pthread_create(&poster, NULL, post_at_random, qp[0]));
    while (next < EVENTS) {
        check(!ibv_req_notify_cq(cq, 0));
        next = drain(cq, next);
        if (next < EVENTS) {
            check(poll(&wait, 1, patience() * 1000) == 1);
            check(!ibv_get_cq_event(channel, &told, &context) && told == cq);
            ibv_ack_cq_events(cq, 1);
            events++;
            next = drain(cq, next);
        }
    }
    pthread_join(poster, NULL);
    printf("%u completions, %u events\n", EVENTS, events);
    destroy_pair(qp);
    check(!ibv_destroy_cq(cq));
    check(!ibv_destroy_comp_channel(channel));
}

/* One channel: an event of a CQ that was armed, none of another. */
static void test_two_on_a_channel(void)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(device.context);
    struct pollfd wait = { .fd = channel ? channel->fd : -1, .events = POLLIN };
    struct ibv_cq *cq[2], *told;
    struct ibv_qp *qp[2][2];
    void *context;

    check(channel);
    for (int i = 0; i < 2; i++) {
        cq[i] = ibv_create_cq(device.context, 16, &cq[i], channel, 0);
        check(cq[i]);
        create_connection(&device, (struct ibv_cq_ex *)cq[i], 16, qp[i]);
    }
    for (int i = 0; i < 2; i++) {
        struct ibv_wc wc;

        while (ibv_poll_cq(cq[i], 1, &wc) == 1) { /* of what is there an arm may tell at once */
        }
        check(!ibv_req_notify_cq(cq[i], 0));
        write_unseen(qp[1 - i][0], 1, 1);
        check(poll(&wait, 1, 50) == 0);
        write_one(qp[i][0], 1);
        check(poll(&wait, 1, patience() * 1000) == 1);
        check(!ibv_get_cq_event(channel, &told, &context));
        check(told == cq[i] && context == &cq[i]);
        ibv_ack_cq_events(told, 1);
        write_unseen(qp[i][0], 2, 1);
        check(poll(&wait, 1, 50) == 0);
    }
    for (int i = 0; i < 2; i++) {
        destroy_pair(qp[i]);
        check(!ibv_destroy_cq(cq[i]));
    }
    check(!ibv_destroy_comp_channel(channel));
}

/* --- main --------------------------------------------------------------------------------------------------------- */

static const struct test_case cases[] = {
    { "past_the_end", test_past_the_end },
    { "last_qp_gone", test_last_qp_gone },
    { "gone_in_a_batch", test_gone_in_a_batch },
    { "full_of_the_dead", test_full_of_the_dead },
    { "both_ways", test_both_ways },
    { "posted_in_error", test_posted_in_error },
    { "sizes", test_sizes },
    { "too_small", test_too_small },
    { "armed_in_between", test_armed_in_between },
    { "two_on_a_channel", test_two_on_a_channel },
    { NULL, NULL },
};

static void begin(void)
{
    create_region(&device, &region, 4096);
}

static void end(void)
{
    destroy_region(&region);
}

int main(int argc, char **argv)
{
    return run_case(argc, argv, cases, &device, begin, end);
}
