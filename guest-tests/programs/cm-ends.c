/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: cm-ends listen ADDRESS | cm-ends part|told|removed|held ADDRESS
 *
 * How connections of the connection manager end. listen: takes one, says "up", and ends when it has been told of the end. The
 * others make one and say "up"; then
 *   part: parts when it reads a line, waits to be told, and parts once more;
 *   told: waits to be told that the other one has parted;
 *   removed: waits to be told that its device goes, and lets everything go;
 *   held: the same, but another thread destroys the ID before the event is acknowledged: it has to wait for that.
 * Each prints what it is told: the event and its status.
 */
#include "common.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PORT 7472
#define MILLISECONDS 20000

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id; /* of the connection */

static void create(void)
{
    struct ibv_qp_init_attr attr = {
        .cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
        .qp_type = IBV_QPT_RC,
    };

    check(!rdma_create_qp(id, NULL, &attr)); /* with CQs and a PD of librdmacm's */
}

static struct rdma_cm_event *next(void)
{
    struct rdma_cm_event *event;

    check(!rdma_get_cm_event(channel, &event));
    printf("%s %d\n", rdma_event_str(event->event), event->status);
    return event;
}

static void expect(enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event = next();

    check(event->event == type);
    check(!rdma_ack_cm_event(event));
}

/* The event of that type, not acknowledged; others that may come before are passed by. */
static struct rdma_cm_event *wait_for(enum rdma_cm_event_type type)
{
    for (;;) {
        struct rdma_cm_event *event = next();

        if (event->event == type) {
            return event;
        }
        check(!rdma_ack_cm_event(event));
    }
}

static struct rdma_conn_param parameters(void)
{
    return (struct rdma_conn_param){ .responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7 };
}

static void take_one(struct sockaddr *at)
{
    struct rdma_conn_param with = parameters();
    struct rdma_cm_id *listener;
    struct rdma_cm_event *event;

    check(!rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP));
    check(!rdma_bind_addr(listener, at) && !rdma_listen(listener, 1));
    event = wait_for(RDMA_CM_EVENT_CONNECT_REQUEST);
    id = event->id;
    check(!rdma_ack_cm_event(event));
    create();
    check(!rdma_accept(id, &with));
    expect(RDMA_CM_EVENT_ESTABLISHED);
    check(!rdma_destroy_id(listener));
}

static void make_one(struct sockaddr *to)
{
    struct rdma_conn_param with = parameters();

    check(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
    check(!rdma_resolve_addr(id, NULL, to, MILLISECONDS));
    expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    check(!rdma_resolve_route(id, MILLISECONDS));
    expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
    create();
    check(!rdma_connect(id, &with));
    expect(RDMA_CM_EVENT_ESTABLISHED);
}

static void let_go(void)
{
    rdma_destroy_qp(id);
    check(!rdma_destroy_id(id));
}

static void told(void)
{
    check(!rdma_ack_cm_event(wait_for(RDMA_CM_EVENT_DISCONNECTED)));
    check(!rdma_disconnect(id) || errno == EINVAL);
    let_go();
}

static void part(void)
{
    char line[16];

    check(fgets(line, sizeof(line), stdin));
    check(!rdma_disconnect(id));
    told();
}

static atomic_bool destroyed;

static void *destroy(void *unused)
{
    check(!rdma_destroy_id(id));
    destroyed = true;
    return unused;
}

static void go_with_device(void)
{
    check(!rdma_ack_cm_event(wait_for(RDMA_CM_EVENT_DEVICE_REMOVAL)));
    let_go();
}

static void go_while_held(void)
{
    struct rdma_cm_event *event = wait_for(RDMA_CM_EVENT_DEVICE_REMOVAL);
    pthread_t thread;

    rdma_destroy_qp(id);
    check(!pthread_create(&thread, NULL, destroy, NULL));
    usleep(300000);
    check(!destroyed);
    check(!rdma_ack_cm_event(event));
    pthread_join(thread, NULL);
}

static const struct {
    const char *name;
    void (*begin)(struct sockaddr *address);
    void (*end)(void);
} ways[] = {
    { "listen", take_one, told }, { "part", make_one, part },          { "told", make_one, told },
    { "removed", make_one, go_with_device }, { "held", make_one, go_while_held },
};

int main(int argc, char **argv)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT) };
    size_t i = 0;

    check(argc == 3 && inet_pton(AF_INET, argv[2], &address.sin_addr) == 1);
    while (strcmp(argv[1], ways[i].name)) {
        check(++i < sizeof(ways) / sizeof(ways[0]));
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    check(channel = rdma_create_event_channel());
    ways[i].begin((struct sockaddr *)&address);
    puts("up");
    ways[i].end();
    rdma_destroy_event_channel(channel);
}
