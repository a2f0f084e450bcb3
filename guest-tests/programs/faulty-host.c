/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: faulty-host OPERATION [TEXT]...   Two queue pairs of one process, one of which sends to the other, writes its memory or
 * reads it (send, write, read), waiting for completion events, while something of the host's side goes wrong.
 *
 * Without a text that is from the beginning: the program does its work, or says what did not go well and ends with an error.
 * With some the program says "ready", and begins with SIGUSR1. Then it works until something goes wrong, and says what: each
 * completion in error, each event, until it has said all of the texts. It begins anew, by a reset of its queue pairs or, if its
 * completion queue has failed, with all of it, and says "works" when that does. When its device has failed it ends.
 */
#include "common.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 1000 /* one packet */
#define ENTRIES 64
#define ROUNDS 1000
#define ROUNDS_TO_BELIEVE 20

enum { SEND_ID, RECV_ID };

static struct device device;
static enum ibv_wr_opcode opcode;

static struct bench {
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_qp *qp[2];
    struct region from, to;
    unsigned int events; /* of the CQ, not acknowledged */
} bench;

/* What has gone wrong; and what of the texts that will be said of it has not been said yet. */
static struct trouble {
    bool any, cq, device;
} trouble;
static char **expected;

/* --- set-up ------------------------------------------------------------------------------------------------------- */

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
    for (int i = 0; i < 2; i++) {
        check(b->qp[i] = ibv_create_qp(device.pd, &attr));
    }
    connect_pair(&device, b->qp);
}

static void tear_down(void)
{
    struct bench *b = &bench;

    check(!ibv_destroy_qp(b->qp[0]) && !ibv_destroy_qp(b->qp[1]));
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
    if (trouble.cq) {
        tear_down();
        set_up();
        return;
    }
    for (int i = 0; i < 2; i++) {
        to_state(bench.qp[i], IBV_QPS_RESET);
    }
    connect_pair(&device, bench.qp);
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

static void take_event(const struct ibv_async_event *event)
{
    switch (event->event_type) {
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_PORT_ACTIVE:
        return;
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
    tell("event: %s", ibv_event_type_str(event->event_type));
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
            tell("%s: %s, vendor %#x", wc.wr_id == SEND_ID ? "send" : "recv", ibv_wc_status_str(wc.status), wc.vendor_err);
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

static unsigned int post_all(void)
{
    if (opcode == IBV_WR_SEND) {
        post_recv(bench.qp[1], RECV_ID, sge_of(&bench.to, 0, SIZE));
        post(bench.qp[0], opcode, SEND_ID, sge_of(&bench.from, 0, SIZE), 0, 0);
        return 1u << SEND_ID | 1u << RECV_ID;
    }
    post(bench.qp[0], opcode, SEND_ID, sge_of(&bench.from, 0, SIZE), (uintptr_t)bench.to.addr, bench.to.mr->rkey);
    return 1u << SEND_ID;
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

static void round_of(int number)
{
    unsigned int wanted;

    memset(bench.from.addr, number, SIZE);
    memset(bench.to.addr, opcode == IBV_WR_RDMA_READ ? number + 1 : 0, SIZE);
    wanted = post_all();
    wait_for(wanted);
    if (!trouble.any) {
        check(!memcmp(bench.from.addr, bench.to.addr, SIZE));
    }
}

static void await_start(void)
{
    sigset_t set;
    int number;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    check(!sigprocmask(SIG_BLOCK, &set, NULL));
    printf("ready\n");
    check(!sigwait(&set, &number));
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

static enum ibv_wr_opcode opcode_of(const char *name)
{
    if (!strcmp(name, "send")) {
        return IBV_WR_SEND;
    }
    check(!strcmp(name, "write") || !strcmp(name, "read"));
    return !strcmp(name, "write") ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
}

int main(int argc, char **argv)
{
    check(argc >= 2);
    setvbuf(stdout, NULL, _IOLBF, 0);
    opcode = opcode_of(argv[1]);
    open_device(&device);
    set_up();
    expected = argv + 2;
    if (argc > 2) {
        await_start();
        return work_till_trouble();
    }
    return work();
}
