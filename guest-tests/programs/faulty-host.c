/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: faulty-host [-s] [-r] OPERATION [TEXT]...   Two queue pairs of one process, one of which does something to the other
 * (see operations), waiting for completion events, while something of the host's side, or of verbs, goes wrong.
 * -s  the other one has a shared receive queue
 * -r  the patience for a peer without receives ends with the second time
 *
 * Without a text that is from the beginning: the program does its work, or says what did not go well and ends with an error.
 * With some the program says "ready" and the numbers of the two, and begins with SIGUSR1. Then it works until something goes wrong, and says what: each
 * completion in error, each event, until it has said all of the texts. It begins anew, by a reset of its queue pairs or, if its
 * completion queue has failed, with all of it, and says "works" when that does. When its device has failed it ends.
 */
#include "common.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE 1000 /* one packet */
#define ENTRIES 64
#define ROUNDS 1000
#define ROUNDS_TO_BELIEVE 20

enum { SEND_ID, RECV_ID };

static const struct operation {
    const char *name;
    enum ibv_wr_opcode opcode;
    bool has_receive;
} operations[] = {
    { "send", IBV_WR_SEND, true },
    { "send-imm", IBV_WR_SEND_WITH_IMM, true },
    { "write", IBV_WR_RDMA_WRITE, false },
    { "write-imm", IBV_WR_RDMA_WRITE_WITH_IMM, true },
    { "read", IBV_WR_RDMA_READ, false },
    { "fetch-add", IBV_WR_ATOMIC_FETCH_AND_ADD, false },
    { "bind", IBV_WR_BIND_MW, false },
    {},
};

static struct device device;
static const struct operation *operation;
static bool shared, impatient;

static struct bench {
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_srq *srq; /* of the second one, or none */
    struct ibv_qp *qp[2];
    struct region from, to;
    struct ibv_mw *window; /* to bind, to this region */
    struct ibv_mr *bound;
    unsigned int events; /* of the CQ, not acknowledged */
} bench;

/* What has gone wrong; and what of the texts that will be said of it has not been said yet. */
static struct trouble {
    bool any, cq, device;
} trouble;
static char **expected;

/* --- set-up ------------------------------------------------------------------------------------------------------- */

/* As connect_pair(), but that the first one gives up soon. */
static void connect_both(void)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 1,
        .max_rd_atomic = 4,
    };

    if (!impatient) {
        connect_pair(&device, bench.qp);
        return;
    }
    connect_qp(&device, bench.qp[1], bench.qp[0]->qp_num);
    prepare_qp(&device, bench.qp[0], bench.qp[1]->qp_num);
    check(!ibv_modify_qp(bench.qp[0], &attr,
                         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_MAX_QP_RD_ATOMIC));
}

static struct ibv_srq *create_srq(void)
{
    struct ibv_srq_init_attr attr = { .attr = { .max_wr = ENTRIES, .max_sge = 1 } };

    return ibv_create_srq(device.pd, &attr);
}

static void set_up(void)
{
    struct bench *b = &bench;
    struct ibv_qp_init_attr attr = {
        .cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
        .qp_type = IBV_QPT_RC,
    };

    check(b->channel = ibv_create_comp_channel(device.context));
    check(!fcntl(b->channel->fd, F_SETFL, O_NONBLOCK));
    check(b->cq = ibv_create_cq(device.context, ENTRIES, NULL, b->channel, 0));
    attr.send_cq = attr.recv_cq = b->cq;
    create_region(&device, &b->from, SIZE);
    create_region(&device, &b->to, SIZE);
    check(!shared || (b->srq = create_srq()));
    for (int i = 0; i < 2; i++) {
        attr.srq = i ? b->srq : NULL;
        check(b->qp[i] = ibv_create_qp(device.pd, &attr));
    }
    if (operation->opcode == IBV_WR_BIND_MW) {
        check(b->window = ibv_alloc_mw(device.pd, IBV_MW_TYPE_2));
        check(b->bound = ibv_reg_mr(device.pd, b->from.addr, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND));
    }
    connect_both();
}

static void tear_down(void)
{
    struct bench *b = &bench;

    check(!b->window || (!ibv_dealloc_mw(b->window) && !ibv_dereg_mr(b->bound)));
    check(!ibv_destroy_qp(b->qp[0]) && !ibv_destroy_qp(b->qp[1]));
    check(!b->srq || !ibv_destroy_srq(b->srq));
    destroy_region(&b->to);
    destroy_region(&b->from);
    if (b->events) {
        ibv_ack_cq_events(b->cq, b->events);
    }
    b->events = 0;
    check(!ibv_destroy_cq(b->cq));
    check(!ibv_destroy_comp_channel(b->channel));
}

static void renew(void)
{
    if (trouble.cq || shared || bench.window) {
        tear_down();
        set_up();
        return;
    }
    for (int i = 0; i < 2; i++) {
        to_state(bench.qp[i], IBV_QPS_RESET);
    }
    connect_both();
}

/* --- what is told ------------------------------------------------------------------------------------------------- */

static void tell(const char *format, ...)
{
    char line[200], **left = expected;
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    puts(line);
    for (char **text = expected; *text; text++) {
        if (!strstr(line, *text)) {
            *left++ = *text;
        }
    }
    *left = NULL;
}

/* What a connection's life has, be it in trouble or not. */
static bool is_usual(const char *name)
{
    for (char **text = expected; *text; text++) {
        if (strstr(*text, name)) {
            return false;
        }
    }
    return true;
}

static void take_event(const struct ibv_async_event *event)
{
    const char *name = ibv_event_type_str(event->event_type);

    switch (event->event_type) {
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        if (is_usual(name)) {
            return;
        }
        break;
    case IBV_EVENT_CQ_ERR:
        trouble.cq = true;
        break;
    case IBV_EVENT_DEVICE_FATAL:
        trouble.device = true;
        break;
    default:
        break;
    }
    trouble.any = true;
    tell("event: %s", name);
}

static void take_events(void)
{
    struct pollfd fd = { .fd = device.context->async_fd, .events = POLLIN };
    struct ibv_async_event event;

    while (poll(&fd, 1, 0) == 1 && !ibv_get_async_event(device.context, &event)) {
        take_event(&event);
        ibv_ack_async_event(&event);
    }
}

/* Give bits for the work requests that have ended. */
static unsigned int take_completions(void)
{
    unsigned int ended = 0;
    struct ibv_wc wc;

    while (ibv_poll_cq(bench.cq, 1, &wc) == 1) {
        ended |= 1u << wc.wr_id;
        if (wc.status) {
            trouble.any = true;
            tell("%s: %s, vendor %#x, status %d", wc.wr_id == SEND_ID ? "send" : "recv", ibv_wc_status_str(wc.status),
                 wc.vendor_err, wc.status);
        }
    }
    return ended;
}

/* One round of waiting: some milliseconds at most. True: the CQ has told of completions. */
static bool wait_for_events(int milliseconds)
{
    struct pollfd fds[] = {
        { .fd = bench.channel->fd, .events = POLLIN },
        { .fd = device.context->async_fd, .events = POLLIN },
    };
    bool told = false;
    struct ibv_cq *cq;
    void *context;

    poll(fds, 2, milliseconds);
    while (!ibv_get_cq_event(bench.channel, &cq, &context)) {
        bench.events++;
        told = true;
    }
    take_events();
    return told;
}

/* --- work --------------------------------------------------------------------------------------------------------- */

static void bind_window(void)
{
    struct ibv_send_wr *bad, wr = {
        .wr_id = SEND_ID,
        .opcode = IBV_WR_BIND_MW,
        .send_flags = IBV_SEND_SIGNALED,
        .bind_mw = {
            .mw = bench.window,
            .rkey = ibv_inc_rkey(bench.window->rkey),
            .bind_info = { .mr = bench.bound, .addr = (uintptr_t)bench.from.addr, .length = SIZE,
                           .mw_access_flags = IBV_ACCESS_REMOTE_READ },
        },
    };

    check(!ibv_post_send(bench.qp[0], &wr, &bad));
    bench.window->rkey = wr.bind_mw.rkey;
}

static void unbind_window(void)
{
    struct ibv_send_wr *bad, wr = {
        .wr_id = SEND_ID,
        .opcode = IBV_WR_LOCAL_INV,
        .send_flags = IBV_SEND_SIGNALED,
        .invalidate_rkey = bench.window->rkey,
    };

    check(!ibv_post_send(bench.qp[0], &wr, &bad));
}

static unsigned int post_all(void)
{
    uint32_t length = operation->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : SIZE;

    if (operation->has_receive && bench.srq) {
        post_srq(bench.srq, RECV_ID, sge_of(&bench.to, 0, SIZE));
    } else if (operation->has_receive) {
        post_recv(bench.qp[1], RECV_ID, sge_of(&bench.to, 0, SIZE));
    }
    if (operation->opcode == IBV_WR_BIND_MW) {
        bind_window();
    } else {
        post(bench.qp[0], operation->opcode, SEND_ID, sge_of(&bench.from, 0, length), (uintptr_t)bench.to.addr,
             bench.to.mr->rkey);
    }
    return 1u << SEND_ID | (unsigned)operation->has_receive << RECV_ID;
}

/* Completions are waited for by events; in trouble, all that is to be said of it. */
static void wait_for(unsigned int wanted)
{
    double end = seconds_now() + patience();
    unsigned int ended = 0;

    for (;;) {
        check(!ibv_req_notify_cq(bench.cq, 0));
        ended |= take_completions();
        take_events();
        if ((ended & wanted) == wanted || trouble.any) {
            break;
        }
        do {
            check(seconds_now() < end);
        } while (!wait_for_events(100) && !trouble.any);
    }
    while (trouble.any && *expected && !trouble.device) {
        check(seconds_now() < end);
        wait_for_events(100);
        take_completions();
    }
}

static bool moves_data(void)
{
    return operation->opcode != IBV_WR_ATOMIC_FETCH_AND_ADD && operation->opcode != IBV_WR_BIND_MW;
}

static void round_of(int number)
{
    unsigned int wanted;

    memset(bench.from.addr, number, SIZE);
    memset(bench.to.addr, operation->opcode == IBV_WR_RDMA_READ ? number + 1 : 0, SIZE);
    wanted = post_all();
    wait_for(wanted);
    if (!trouble.any && operation->opcode == IBV_WR_BIND_MW) {
        unbind_window();
        wait_for(1u << SEND_ID);
    }
    if (!trouble.any && moves_data()) {
        check(!memcmp(bench.from.addr, bench.to.addr, SIZE));
    }
}

/* Whatever can be given back to a device that has failed is; the rest goes with the process. */
static int end_of_device(void)
{
    printf("device failed\n");
    return 0;
}

static int work_till_trouble(void)
{
    for (int i = 0; i < ROUNDS && !trouble.any; i++) {
        round_of(i);
    }
    check(trouble.any);
    if (trouble.device) {
        return end_of_device();
    }
    renew();
    take_events();
    trouble = (struct trouble) {};
    for (int i = 0; i < ROUNDS_TO_BELIEVE; i++) {
        round_of(i);
    }
    check(!trouble.any);
    printf("works\n");
    tear_down();
    close_device(&device);
    return 0;
}

static int work(void)
{
    for (int i = 0; i < 3; i++) {
        round_of(i);
    }
    check(!trouble.any);
    tear_down();
    close_device(&device);
    return 0;
}

static const struct operation *operation_of(const char *name)
{
    const struct operation *o = operations;

    while (o->name && strcmp(o->name, name)) {
        o++;
    }
    check(o->name);
    return o;
}

static void parse(int argc, char **argv)
{
    int option;

    while ((option = getopt(argc, argv, "+sr")) != -1) {
        check(option == 's' || option == 'r');
        shared |= option == 's';
        impatient |= option == 'r';
    }
    check(optind < argc);
    operation = operation_of(argv[optind]);
    expected = argv + optind + 1;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    parse(argc, argv);
    open_device(&device);
    set_up();
    if (*expected) {
        await_start("ready: QP %u and %u", bench.qp[0]->qp_num, bench.qp[1]->qp_num);
        return work_till_trouble();
    }
    return work();
}
