/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: traffic-test -d DEVICE [-x GID_INDEX] [-t TIMEOUT] -p PORT [SERVER]
 *
 * Two of these, one in each machine, do the same to each other without an end: write, read what was written, add to a number
 * of the other's, send to its SRQ, send a datagram. All data is compared. Of what is reliable nothing may be lost, and nothing
 * done twice: the numbers tell. A datagram may be lost, but comes once and whole. SIGTERM ends it, and it says what it has seen.
 * A line is said each second, if something was done in it. TIMEOUT: of a request, as ibv_modify_qp(3) has it.
 */
#include "common.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE 40000u   /* what is written, and sent */
#define DATAGRAM 1024u /* and that, with its number */
#define RECEIVES 32u
#define GRH 40u

/* Where in a region. */
#define NUMBER 0u    /* that the other one adds to */
#define ANSWER 64u   /* of an addition */
#define WRITTEN 4096u /* by the other one */
#define OWN (WRITTEN + PIECE)
#define READ (OWN + PIECE)
#define DATAGRAM_OUT (READ + PIECE)
#define SRQ_IN (DATAGRAM_OUT + DATAGRAM)
#define UD_IN (SRQ_IN + RECEIVES * PIECE)
#define SIZE (UD_IN + RECEIVES * (GRH + DATAGRAM))

/* Work requests, by their kind; of receives the place is below. */
enum { SENT = 1u << 16, SRQ_RECEIVED = 2u << 16, UD_RECEIVED = 3u << 16, KIND = 0xffu << 16 };

struct end {
    union ibv_gid gid;
    uint64_t addr;
    uint32_t rkey, rc_qpn, ud_qpn;
    uint16_t lid;
};

static struct device device;
static struct region region;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_qp *rc, *ud;
static struct ibv_ah *ah;
static struct end other;
static volatile sig_atomic_t ended;
static uint32_t received, datagrams, last_datagram;
static double longest; /* seconds of a request */

static void end(int number)
{
    ended = number;
}

/* --- the two find each other ---------------------------------------------------------------------------------------- */

static struct ibv_ah_attr path(int gid_index)
{
    struct ibv_ah_attr path = { .dlid = other.lid, .port_num = 1 };

    if (gid_index >= 0) {
        path.is_global = 1;
        path.grh.dgid = other.gid;
        path.grh.sgid_index = gid_index;
        path.grh.hop_limit = 64;
    }
    return path;
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
    check(!ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE));
}

static struct ibv_qp *create(enum ibv_qp_type type)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .srq = type == IBV_QPT_RC ? srq : NULL,
        .cap = { .max_send_wr = 8, .max_send_sge = 1, .max_recv_wr = RECEIVES, .max_recv_sge = 1 },
        .qp_type = type,
    };
    struct ibv_qp *qp = ibv_create_qp(device.pd, &attr);

    check(qp);
    return qp;
}

/* A request is tried seven times more. */
static void connect_rc(int gid_index, int timeout)
{
    modify(rc, (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS_ALL },
           IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    modify(rc,
           (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
                                 .path_mtu = IBV_MTU_1024,
                                 .dest_qp_num = other.rc_qpn,
                                 .max_dest_rd_atomic = 4,
                                 .min_rnr_timer = 12,
                                 .ah_attr = path(gid_index) },
           IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    modify(rc,
           (struct ibv_qp_attr){
               .qp_state = IBV_QPS_RTS, .timeout = timeout, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4 },
           IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void prepare_ud(int gid_index)
{
    struct ibv_ah_attr there = path(gid_index);

    modify(ud, (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY },
           IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    modify(ud, (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR }, 0);
    modify(ud, (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS }, IBV_QP_SQ_PSN);
    ah = ibv_create_ah(device.pd, &there);
    check(ah);
}

/* --- receives --------------------------------------------------------------------------------------------------------- */

static void offer_srq(uint32_t place)
{
    post_srq(srq, SRQ_RECEIVED | place, sge_of(&region, SRQ_IN + place * PIECE, PIECE));
}

static void offer_ud(uint32_t place)
{
    post_recv(ud, UD_RECEIVED | place, sge_of(&region, UD_IN + place * (GRH + DATAGRAM), GRH + DATAGRAM));
}

static uint32_t number_at(size_t offset)
{
    uint32_t number;

    memcpy(&number, region.addr + offset, sizeof(number));
    return number;
}

/* Their numbers have no gap. */
static void take_message(const struct ibv_wc *wc)
{
    uint32_t place = wc->wr_id & ~KIND;

    check(wc->byte_len == PIECE && ntohl(wc->imm_data) == received);
    check_pattern(region.addr + SRQ_IN + place * PIECE, received, PIECE);
    received++;
    offer_srq(place);
}

/* Their numbers grow. */
static void take_datagram(const struct ibv_wc *wc)
{
    uint32_t place = wc->wr_id & ~KIND;
    size_t at = UD_IN + place * (GRH + DATAGRAM) + GRH;
    uint32_t number = number_at(at);

    check(wc->byte_len == GRH + DATAGRAM && wc->src_qp == other.ud_qpn);
    check(number > last_datagram);
    check_pattern(region.addr + at + sizeof(number), number, DATAGRAM - sizeof(number));
    last_datagram = number;
    datagrams++;
    offer_ud(place);
}

/* --- requests --------------------------------------------------------------------------------------------------------- */

/* What has come; whether it is the end of the request. */
static bool take(void)
{
    struct ibv_wc wc;
    int n = ibv_poll_cq(cq, 1, &wc);

    check(n >= 0);
    if (!n) {
        usleep(100);
        return false;
    }
    if (wc.status != IBV_WC_SUCCESS) {
        printf("%#jx: %s\n", (uintmax_t)wc.wr_id, ibv_wc_status_str(wc.status));
        exit(1);
    }
    switch (wc.wr_id & KIND) {
    case SRQ_RECEIVED:
        take_message(&wc);
        return false;
    case UD_RECEIVED:
        take_datagram(&wc);
        return false;
    default:
        return true;
    }
}

static void finish(void)
{
    while (!take()) {
    }
}

static void request(struct ibv_qp *qp, struct ibv_send_wr wr, struct ibv_sge sge)
{
    double began = seconds_now();
    struct ibv_send_wr *bad;

    wr.wr_id = SENT;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.send_flags = IBV_SEND_SIGNALED;
    check(!ibv_post_send(qp, &wr, &bad));
    finish();
    if (seconds_now() - began > longest) {
        longest = seconds_now() - began;
    }
}

static void write_and_read(uint32_t n)
{
    struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .wr.rdma = { other.addr + WRITTEN, other.rkey } };

    fill_pattern(region.addr + OWN, n, PIECE);
    request(rc, wr, sge_of(&region, OWN, PIECE));
    memset(region.addr + READ, 0, PIECE);
    wr.opcode = IBV_WR_RDMA_READ;
    request(rc, wr, sge_of(&region, READ, PIECE));
    check_pattern(region.addr + READ, n, PIECE);
}

static void add(uint32_t n)
{
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
        .wr.atomic = { .remote_addr = other.addr + NUMBER, .compare_add = 1, .rkey = other.rkey },
    };
    uint64_t was;

    request(rc, wr, sge_of(&region, ANSWER, sizeof(was)));
    memcpy(&was, region.addr + ANSWER, sizeof(was));
    check(was == n);
}

static void send_both(uint32_t n)
{
    struct ibv_send_wr message = { .opcode = IBV_WR_SEND_WITH_IMM, .imm_data = htonl(n) };
    struct ibv_send_wr datagram = {
        .opcode = IBV_WR_SEND,
        .wr.ud = { .ah = ah, .remote_qpn = other.ud_qpn, .remote_qkey = QKEY },
    };
    uint32_t number = n + 1;

    request(rc, message, sge_of(&region, OWN, PIECE));
    memcpy(region.addr + DATAGRAM_OUT, &number, sizeof(number));
    fill_pattern(region.addr + DATAGRAM_OUT + sizeof(number), number, DATAGRAM - sizeof(number));
    request(ud, datagram, sge_of(&region, DATAGRAM_OUT, DATAGRAM));
}

/* The other one may have a round more, or not yet have said that it has ended. */
static void leave(int fd, uint32_t rounds)
{
    char byte = 0;

    check(write(fd, &byte, 1) == 1);
    while (recv(fd, &byte, 1, MSG_DONTWAIT) != 1) {
        take();
    }
    check(write(fd, &rounds, sizeof(rounds)) == sizeof(rounds));
    check(recv(fd, &rounds, sizeof(rounds), MSG_WAITALL) == sizeof(rounds));
    while (received < rounds) {
        take();
    }
    check(received == rounds && *(volatile uint64_t *)(region.addr + NUMBER) == rounds && datagrams <= rounds);
    check(write(fd, &byte, 1) == 1 && recv(fd, &byte, 1, MSG_WAITALL) == 1);
}

static uint32_t go_on(void)
{
    double said = seconds_now();
    uint32_t n = 0;

    for (; !ended; n++) {
        write_and_read(n);
        add(n);
        send_both(n);
        if (seconds_now() > said + 1) {
            said = seconds_now();
            printf("%u rounds\n", n);
        }
    }
    return n;
}

static void prepare(const char *name, int gid_index, struct end *own)
{
    struct ibv_srq_init_attr attr = { .attr = { .max_wr = RECEIVES, .max_sge = 1 } };

    open_device_named(&device, name);
    create_region(&device, &region, SIZE);
    check((cq = ibv_create_cq(device.context, 4 * RECEIVES, NULL, NULL, 0)));
    check((srq = ibv_create_srq(device.pd, &attr)));
    rc = create(IBV_QPT_RC);
    ud = create(IBV_QPT_UD);
    *own = (struct end){
        .addr = (uintptr_t)region.addr,
        .rkey = region.mr->rkey,
        .rc_qpn = rc->qp_num,
        .ud_qpn = ud->qp_num,
        .lid = device.port.lid,
    };
    if (gid_index >= 0) {
        check(!ibv_query_gid(device.context, 1, gid_index, &own->gid));
    }
}

int main(int argc, char **argv)
{
    struct sigaction action = { .sa_handler = end };
    const char *name = NULL, *port = NULL;
    int option, fd, gid_index = -1, timeout = 18;
    struct end own;
    uint32_t rounds;

    while ((option = getopt(argc, argv, "d:x:t:p:")) != -1) {
        name = option == 'd' ? optarg : name;
        port = option == 'p' ? optarg : port;
        gid_index = option == 'x' ? atoi(optarg) : gid_index;
        timeout = option == 't' ? atoi(optarg) : timeout;
    }
    check(name && port);
    setlinebuf(stdout);
    sigaction(SIGTERM, &action, NULL);
    prepare(name, gid_index, &own);
    fd = meet_peer(port, argv[optind]);
    exchange_with(fd, &own, &other, sizeof(own));
    connect_rc(gid_index, timeout);
    prepare_ud(gid_index);
    for (uint32_t i = 0; i < RECEIVES; i++) {
        offer_srq(i);
        offer_ud(i);
    }
    exchange_with(fd, &own, &other, sizeof(own)); /* both are ready */
    rounds = go_on();
    leave(fd, rounds);
    printf("ended: %u rounds, %u messages, %u datagrams; longest request: %.0f ms\n", rounds, received, datagrams,
           longest * 1000);
    return 0;
}
