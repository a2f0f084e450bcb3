/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: cm-crowd listen NUMBER ADDRESS | cm-crowd connect NUMBER ADDRESS
 * NUMBER connections, made by the connection manager, some at a time. When all are there the client says its number on each,
 * and the server answers on the same; then they part. Prints what it took.
 */
#include "common.h"

#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT 7471
#define AT_A_TIME 64u /* connections that are being made */
#define MILLISECONDS 20000
#define TURNED 0x80000000u /* what an answer has beside the number */

struct connection {
    struct rdma_cm_id *id;
    uint32_t *said, *heard;
};

static struct rdma_event_channel *channel;
static struct connection *connections;
static unsigned int number, made, up, parted;
/* Of the device, once the first connection has found it. */
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static uint32_t *words;

static void prepare(struct ibv_context *context)
{
    if (pd)
        return;
    check(pd = ibv_alloc_pd(context));
    check(cq = ibv_create_cq(context, (int)(4 * number), NULL, NULL, 0));
    check(words = calloc(2 * number, sizeof(*words)));
    check(mr = ibv_reg_mr(pd, words, 2 * number * sizeof(*words), IBV_ACCESS_LOCAL_WRITE));
}

static struct ibv_sge sge_of_word(uint32_t *word)
{
    return (struct ibv_sge){.addr = (uintptr_t)word, .length = sizeof(*word), .lkey = mr->lkey};
}

/* A QP for the next connection, which is at that number. */
static struct connection *create(struct rdma_cm_id *id)
{
    struct connection *connection = &connections[made];
    struct ibv_qp_init_attr attr = {
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
    };
    struct ibv_recv_wr *bad, receive = {.wr_id = made, .num_sge = 1};
    struct ibv_sge sge;

    prepare(id->verbs);
    attr.send_cq = attr.recv_cq = cq;
    check(!rdma_create_qp(id, pd, &attr));
    id->context = connection;
    connection->id = id;
    connection->said = &words[2 * made];
    connection->heard = &words[2 * made + 1];
    sge = sge_of_word(connection->heard);
    receive.sg_list = &sge;
    check(!ibv_post_recv(id->qp, &receive, &bad));
    made++;
    return connection;
}

static void say(struct connection *connection, uint32_t word)
{
    struct ibv_sge sge = sge_of_word(connection->said);
    struct ibv_send_wr *bad, send = {
        .wr_id = (uint64_t)(connection - connections),
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
    };

    *connection->said = word;
    check(!ibv_post_send(connection->id->qp, &send, &bad));
}

/* The next completion that comes within seconds. */
static struct ibv_wc next(void)
{
    double end = seconds_now() + patience();
    struct ibv_wc wc;
    int n;

    while (!(n = ibv_poll_cq(cq, 1, &wc)))
        check(seconds_now() < end);
    check(n == 1 && wc.status == IBV_WC_SUCCESS);
    return wc;
}

static struct rdma_conn_param parameters(void)
{
    return (struct rdma_conn_param){.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};
}

/* What the manager tells, and what comes next. */
static void step(void)
{
    struct rdma_conn_param with = parameters();
    struct rdma_cm_event *event;
    struct rdma_cm_id *id;
    enum rdma_cm_event_type type;

    check(!rdma_get_cm_event(channel, &event));
    type = event->event;
    id = event->id;
    if (event->status)
        fprintf(stderr, "%s: %d, at %u of %u\n", rdma_event_str(type), event->status, up, made);
    check(!event->status);
    check(!rdma_ack_cm_event(event));
    switch (type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        check(!rdma_resolve_route(id, MILLISECONDS));
        break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        create(id);
        check(!rdma_connect(id, &with));
        break;
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        create(id);
        check(!rdma_accept(id, &with));
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        up++;
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
        rdma_disconnect(id); /* the other side may have gone first */
        parted++;
        break;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
        break;
    default:
        fprintf(stderr, "%s\n", rdma_event_str(type));
        check(!"expected");
    }
}

static long available_kib(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char line[128];
    long kib = 0;

    check(file);
    while (fgets(line, sizeof(line), file) && sscanf(line, "MemAvailable: %ld", &kib) != 1)
        ;
    fclose(file);
    return kib;
}

static void connect_all(struct sockaddr *to)
{
    unsigned int begun = 0;

    while (up < number) {
        while (begun < number && begun - up < AT_A_TIME) {
            struct rdma_cm_id *id;

            check(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
            check(!rdma_resolve_addr(id, NULL, to, MILLISECONDS));
            begun++;
        }
        step();
    }
}

static void accept_all(struct sockaddr *at)
{
    struct rdma_cm_id *listener;

    check(!rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP));
    check(!rdma_bind_addr(listener, at));
    check(!rdma_listen(listener, AT_A_TIME));
    while (up < number)
        step();
    check(!rdma_destroy_id(listener));
}

/* The client's word on each connection, and the answer on the same. */
static void talk(bool first)
{
    unsigned int sent = 0, heard = 0;

    for (unsigned int i = 0; first && i < number; i++)
        say(&connections[i], i);
    while (sent < number || heard < number) {
        struct ibv_wc wc = next();
        struct connection *connection = &connections[wc.wr_id];

        check(wc.qp_num == connection->id->qp->qp_num);
        if (wc.opcode != IBV_WC_RECV) {
            sent++;
            continue;
        }
        heard++;
        check(wc.byte_len == sizeof(uint32_t));
        if (first)
            check(*connection->heard == (wc.wr_id | TURNED));
        else
            say(connection, *connection->heard | TURNED);
    }
}

static void part(bool first)
{
    for (unsigned int i = 0; first && i < number; i++)
        check(!rdma_disconnect(connections[i].id));
    while (parted < number)
        step();
    for (unsigned int i = 0; i < number; i++) {
        rdma_destroy_qp(connections[i].id);
        check(!rdma_destroy_id(connections[i].id));
    }
    check(!ibv_dereg_mr(mr));
    check(!ibv_destroy_cq(cq));
    check(!ibv_dealloc_pd(pd));
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    double began, connected, talked;
    bool first;
    long kib;

    check(argc == 4 && inet_pton(AF_INET, argv[3], &address.sin_addr) == 1);
    first = !strcmp(argv[1], "connect");
    number = (unsigned int)strtoul(argv[2], NULL, 0);
    check(connections = calloc(number, sizeof(*connections)));
    check(channel = rdma_create_event_channel());
    kib = available_kib();
    began = seconds_now();
    if (first)
        connect_all((struct sockaddr *)&address);
    else
        accept_all((struct sockaddr *)&address);
    connected = seconds_now();
    kib -= available_kib();
    talk(first);
    talked = seconds_now();
    part(first);
    rdma_destroy_event_channel(channel);
    printf("%u connections in %.1f s, %.0f a second, %.1f KiB each; a message and its answer on each in %.1f s; parted in "
           "%.1f s\n",
           number, connected - began, number / (connected - began), (double)kib / number, talked - connected,
           seconds_now() - talked);
    free(words);
    free(connections);
    return 0;
}
