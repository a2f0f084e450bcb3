/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: nvme-breaker ADDRESS CASE [SEED]   A host that does not keep to NVMe over RDMA (NVMe over Fabrics 1.1, section 7.3, and
 * NVMe RDMA Transport): connects to the admin queue of a target at port 4420 and does what the case says. Prints what comes of
 * it, one line each: "connected", "rejected STATUS", "answered STATUS", "completed STATUS" (of its own work, if that fails),
 * "disconnected".
 *
 *   format, depth, zeros    the private data of the connection's request are wrong
 *   short, long             a capsule of 3 bytes; of more than the target takes
 *   noise                   capsules of random bytes
 *   key, length, offset     a Connect whose data are nowhere, are too many, are said to be in the capsule
 *   twice                   a right Connect, and then another
 *   write, read             an access to memory of the target's
 *   flood                   more capsules than the queue has room for
 *   leave                   a right Connect, and the process ends
 *   stay                    a right Connect, and then nothing, not even to a disconnect
 */
#include "common.h"

#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORT 4420
#define DEPTH 32u /* an admin queue's */
#define FLOOD 256u
#define CAPSULE 64u
#define ANSWER 16u
#define CONNECT_DATA 1024u
#define LONG_CAPSULE 20000u
#define BUFFER 32768u
#define OWN_ANSWERS 16384u /* where they begin in the buffer */

/* Of a queue's connection: NVMe RDMA Transport, figure "RDMA_CM_REQUEST private data". */
struct request {
    uint16_t format, queue, receives, sends, controller;
    uint8_t reserved[22];
} __attribute__((packed));

struct rejection {
    uint16_t format, status;
} __attribute__((packed));

/* The Connect command, with a keyed SGL descriptor for its data. */
struct connect {
    uint8_t opcode, flags;
    uint16_t id;
    uint8_t type, reserved[19];
    uint64_t address;
    uint8_t length[3], key[4], descriptor;
    uint16_t format, queue, depth;
    uint8_t attributes, reserved2;
    uint32_t keep_alive;
    uint8_t reserved3[12];
} __attribute__((packed));

_Static_assert(sizeof(struct request) == 32 && sizeof(struct connect) == CAPSULE, "the formats of the transport");

#define KEYED 0x40
#define IN_CAPSULE 0x01

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;
static struct ibv_mr *mr;
static uint8_t *buffer;

/* --- what comes of it --------------------------------------------------------------------------------------------- */

static struct rdma_cm_event *next_event(int milliseconds)
{
    struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
    struct rdma_cm_event *event = NULL;

    if (poll(&fd, 1, milliseconds) == 1) {
        check(rdma_get_cm_event(channel, &event) == 0);
    }
    return event;
}

static void expect_event(enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event = next_event((int)(1000 * patience()));

    check(event && event->event == type && event->status == 0);
    rdma_ack_cm_event(event);
}

static void post_answer(uint64_t slot)
{
    struct ibv_sge sge = {(uintptr_t)buffer + OWN_ANSWERS + slot * ANSWER, ANSWER, mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

    (void)ibv_post_recv(id->qp, &wr, &bad); /* too late when it is disconnected */
}

/* The next completion that says something. */
static bool tell_completion(void)
{
    struct ibv_wc wc;

    while (ibv_poll_cq(id->qp->recv_cq, 1, &wc) == 1) {
        if (wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV) {
            const uint8_t *answer = buffer + OWN_ANSWERS + wc.wr_id * ANSWER;

            printf("answered 0x%x\n", (answer[14] | answer[15] << 8) >> 1);
            post_answer(wc.wr_id);
            return true;
        }
        if (wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_WR_FLUSH_ERR) {
            printf("completed %d\n", wc.status);
            return true;
        }
    }
    return false;
}

static bool tell_event(int milliseconds)
{
    struct rdma_cm_event *event = next_event(milliseconds);
    struct rejection reason = {0};

    if (!event) {
        return false;
    }
    switch (event->event) {
    case RDMA_CM_EVENT_ESTABLISHED:
        printf("connected\n");
        break;
    case RDMA_CM_EVENT_REJECTED:
        memcpy(&reason, event->param.conn.private_data,
               event->param.conn.private_data_len < sizeof(reason) ? 0 : sizeof(reason));
        printf("rejected %d\n", le16toh(reason.status));
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
        tell_completion(); /* what it is disconnected for was there before */
        printf("disconnected\n");
        break;
    default:
        printf("%s %d\n", rdma_event_str(event->event), event->status);
    }
    rdma_ack_cm_event(event);
    return true;
}

/* The next things that come of it; fewer if the target disconnects. */
static void tell(int things)
{
    double end = seconds_now() + patience();

    while (things > 0) {
        check(seconds_now() < end);
        if (tell_completion()) {
            things--;
        } else if (tell_event(10)) {
            return;
        }
    }
}

/* --- what it says ------------------------------------------------------------------------------------------------- */

static void resolve(const char *address)
{
    struct sockaddr_in target = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int milliseconds = (int)(1000 * patience());

    check(inet_pton(AF_INET, address, &target.sin_addr) == 1);
    channel = rdma_create_event_channel();
    check(channel && rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
    check(rdma_resolve_addr(id, NULL, (struct sockaddr *)&target, milliseconds) == 0);
    expect_event(RDMA_CM_EVENT_ADDR_RESOLVED);
    check(rdma_resolve_route(id, milliseconds) == 0);
    expect_event(RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static void make_queue(void)
{
    struct ibv_cq *cq = ibv_create_cq(id->verbs, 4 * FLOOD, NULL, NULL, 0);
    struct ibv_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = FLOOD, .max_recv_wr = FLOOD, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
    };

    buffer = calloc(1, BUFFER);
    check(cq && buffer && rdma_create_qp(id, NULL, &attr) == 0);
    mr = ibv_reg_mr(id->pd, buffer, BUFFER, ACCESS_ALL);
    check(mr);
    for (unsigned int slot = 0; slot < FLOOD; slot++) {
        post_answer(slot);
    }
}

static struct request good_request(void)
{
    return (struct request){.receives = htole16(DEPTH), .sends = htole16(DEPTH - 1)};
}

static void ask(const struct request *request)
{
    struct rdma_conn_param param = {
        .private_data = request,
        .private_data_len = sizeof(*request),
        .responder_resources = 1,
        .initiator_depth = 1,
        .retry_count = 7,
        .rnr_retry_count = 1,
    };

    check(rdma_connect(id, &param) == 0);
    check(tell_event((int)(1000 * patience())));
}

static void send_capsule(uint32_t length)
{
    struct ibv_sge sge = {(uintptr_t)buffer, length, mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

    (void)ibv_post_send(id->qp, &wr, &bad);
}

/* A Connect lies at the beginning of the buffer, its data 64 bytes behind. */
static struct connect *good_connect(void)
{
    struct connect *connect = (struct connect *)buffer;
    uint8_t *data = buffer + CAPSULE;
    uint32_t key = htole32(mr->rkey);

    memset(buffer, 0, CAPSULE + CONNECT_DATA);
    *connect = (struct connect){.opcode = 0x7f, .flags = 0x40, .id = 1, .type = 1, .descriptor = KEYED};
    connect->address = htole64((uintptr_t)data);
    connect->length[1] = CONNECT_DATA >> 8;
    memcpy(connect->key, &key, sizeof(key));
    connect->depth = htole16(DEPTH - 1);
    memset(data, 7, 16); /* the host's identifier */
    data[16] = data[17] = 0xff; /* any controller */
    strcpy((char *)data + 256, "test");
    strcpy((char *)data + 512, "nqn.2014-08.org.nvmexpress:uuid:07070707-0707-0707-0707-070707070707");
    return connect;
}

static void do_connect(void)
{
    good_connect();
    send_capsule(CAPSULE);
    tell(1);
}

static void touch(enum ibv_wr_opcode opcode)
{
    struct ibv_sge sge = {(uintptr_t)buffer, 4096, mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode}, *bad;

    wr.wr.rdma.remote_addr = (uintptr_t)buffer;
    wr.wr.rdma.rkey = mr->rkey;
    check(ibv_post_send(id->qp, &wr, &bad) == 0);
    tell(1);
}

/* --- the cases ---------------------------------------------------------------------------------------------------- */

static void wrong_format(void)
{
    struct request request = good_request();

    request.format = htole16(7);
    ask(&request);
}

static void wrong_depth(void)
{
    struct request request = good_request();

    request.sends = 0xffff;
    ask(&request);
}

static void zeros(void)
{
    ask(&(struct request){0});
}

static void connected(void)
{
    struct request request = good_request();

    ask(&request);
}

static void short_capsule(void)
{
    connected();
    send_capsule(3);
    tell(1);
}

static void long_capsule(void)
{
    connected();
    send_capsule(LONG_CAPSULE);
    tell(2);
}

static void noise(void)
{
    connected();
    for (int n = 0; n < 16; n++) {
        for (unsigned int at = 0; at < CAPSULE; at++) {
            buffer[at] = (uint8_t)rand();
        }
        send_capsule(CAPSULE);
        tell(1);
    }
}

static void wrong_key(void)
{
    connected();
    good_connect()->key[1] ^= 0x55;
    send_capsule(CAPSULE);
    tell(1);
}

static void wrong_length(void)
{
    connected();
    /* More than Linux has work requests for: it waits, for ever, for those. */
    memset(good_connect()->length, 0xff, 3);
    send_capsule(CAPSULE);
}

static void wrong_offset(void)
{
    struct connect *connect;

    connected();
    connect = good_connect();
    connect->descriptor = IN_CAPSULE;
    connect->address = htole64(1ull << 40);
    send_capsule(CAPSULE);
    tell(1);
}

static void twice(void)
{
    connected();
    do_connect();
    do_connect();
}

static void write_to_target(void)
{
    connected();
    touch(IBV_WR_RDMA_WRITE);
}

static void read_from_target(void)
{
    connected();
    touch(IBV_WR_RDMA_READ);
}

static void flood(void)
{
    connected();
    good_connect();
    for (unsigned int n = 0; n < FLOOD; n++) {
        send_capsule(CAPSULE);
    }
    tell(FLOOD);
}

static void leave(void)
{
    connected();
    do_connect();
    fflush(stdout);
    _exit(0);
}

static void stay(void)
{
    connected();
    do_connect();
    fflush(stdout);
    pause();
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"format", wrong_format}, {"depth", wrong_depth},   {"zeros", zeros},           {"short", short_capsule},
    {"long", long_capsule},   {"noise", noise},         {"key", wrong_key},         {"length", wrong_length},
    {"offset", wrong_offset}, {"twice", twice},         {"write", write_to_target}, {"read", read_from_target},
    {"flood", flood},         {"leave", leave},         {"stay", stay},
};

int main(int argc, char **argv)
{
    check(argc >= 3);
    srand(argc > 3 ? (unsigned int)atoi(argv[3]) : 1);
    for (unsigned int n = 0; n < sizeof(cases) / sizeof(*cases); n++) {
        if (strcmp(cases[n].name, argv[2]) == 0) {
            resolve(argv[1]);
            make_queue();
            cases[n].run();
            return 0;
        }
    }
    fprintf(stderr, "no such case: %s\n", argv[2]);
    return 1;
}
