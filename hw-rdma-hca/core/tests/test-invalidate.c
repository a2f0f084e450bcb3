/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Invalidation of regions (IBA 10.6.5.3, 9.4.1.1.2, 9.9.4): by work requests of
 * one's own, and by the peer's Send with invalidate, which is looked at packet
 * by packet, too. Of windows: test-windows.c.
 */
#include <string.h>

#include "lib-bed.h"
#include "lib-mem.h"
#include "lib-responder.h"
#include "lib-test.h"

#define PAGES 4
#define VA UINT64_C(0x550000000000)
#define LEN (2 * HOST_PAGE_SIZE)
#define PSN BED_RQ_PSN
#define LOCAL_QP_OP_ERR RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR
#define REMOTE_ACCESS_ERR RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR
#define REFUSED(state) (0x10 | HCA_V2P_##state)

typedef struct Bench {
    Pair *pair;
    Driver *drv; /* of side 1, whose regions are invalidated */
    Qp *qp[2];
    Mr *mr;
} Bench;

static void bench_init(Bench *b, uint32_t seed)
{
    b->pair = pair_new(seed, 65536);
    b->drv = b->pair->drv[1];
    pair_connect(b->pair, NULL, b->qp);
    b->mr = mem_region_new(b->drv, b->pair->pd[1], PAGES);
}

static void bench_free(Bench *b)
{
    pair_free(b->pair);
}

/* Locally */

/* Whatever the region may be used for; again and again, also when it is free. */
static void test_local(void)
{
    static const uint32_t rights[] = { 0, RDMA_HCA_ACCESS_LOCAL_WRITE,
                                       ACCESS_ALL };
    Bench b;

    bench_init(&b, 5000);
    for (unsigned i = 0; i < G_N_ELEMENTS(rights); i++) {
        mem_register(b.qp[1], b.mr, VA, LEN, rights[i]);
        g_assert_false(mem_is_free(b.drv, b.mr->key));
        mem_invalidate(b.qp[1], b.mr);
        g_assert_true(mem_is_free(b.drv, b.mr->key));
        mem_invalidate(b.qp[1], b.mr);
        g_assert_true(mem_is_free(b.drv, b.mr->key));
    }
    bench_free(&b);
}

typedef struct Bad {
    const char *name;
    /* The key that is to be invalidated. */
    uint32_t (*key)(Bench *b);
    uint8_t vendor_err; /* 0: it is a matter of the peer's alone */
} Bad;

static uint32_t old_key(Bench *b)
{
    uint32_t old = b->mr->key;

    mem_invalidate(b->qp[1], b->mr);
    mem_register(b->qp[1], b->mr, VA, LEN, ACCESS_ALL);
    return old;
}

static uint32_t other_lap(Bench *b)
{
    return b->mr->key ^ 1u << 31;
}

static uint32_t no_entry(Bench *b)
{
    return 0xabcdef12;
}

static uint32_t plain_region(Bench *b)
{
    return b->pair->mr[1]->key;
}

static uint32_t other_pd(Bench *b)
{
    return mem_region_new(b->drv, pd_new(b->drv), PAGES)->key;
}

static uint32_t window_of_type_1(Bench *b)
{
    return mem_window_new(b->drv, b->pair->pd[1], 1);
}

static uint32_t window_of_other_qp(Bench *b)
{
    Mr *mr = mr_new(b->drv, b->pair->pd[1], VA, LEN,
                    ACCESS_ALL | RDMA_HCA_ACCESS_MW_BIND);
    uint32_t window = mem_window_new(b->drv, b->pair->pd[1], 2);
    Qp *qp[2];

    pair_connect(b->pair, NULL, qp);
    return mem_bind(qp[1], 2, window, mr, VA, 8, RDMA_HCA_ACCESS_REMOTE_READ);
}

static uint32_t software_entry(Bench *b)
{
    Mr *mr = mem_region_new(b->drv, b->pair->pd[1], PAGES);

    g_assert_cmphex(mr_deregister(mr), ==, 0);
    return mr->key;
}

static uint32_t free_region(Bench *b)
{
    return mem_region_new(b->drv, b->pair->pd[1], PAGES)->key;
}

static uint32_t free_window(Bench *b)
{
    return mem_window_new(b->drv, b->pair->pd[1], 2);
}

/* A peer that was given no access has nothing to take back. */
static uint32_t no_remote_rights(Bench *b)
{
    Mr *mr = mem_region_new(b->drv, b->pair->pd[1], PAGES);

    mem_register(b->qp[1], mr, VA, LEN, RDMA_HCA_ACCESS_LOCAL_WRITE);
    return mr->key;
}

static const Bad bad[] = {
    { "old-key", old_key, REFUSED(KEY_ERR) },
    { "other-lap", other_lap, REFUSED(KEY_ERR) },
    { "no-entry", no_entry, REFUSED(KEY_ERR) },
    { "plain-region", plain_region, REFUSED(FLAGS_ERR) },
    { "other-pd", other_pd, REFUSED(PD_ERR) },
    { "window-of-type-1", window_of_type_1, REFUSED(FLAGS_ERR) },
    { "window-of-other-qp", window_of_other_qp, REFUSED(PD_ERR) },
    { "software-entry", software_entry, REFUSED(KEY_ERR) },
    { "free-region", free_region, 0 },
    { "free-window", free_window, 0 },
    { "no-remote-rights", no_remote_rights, 0 },
};

static void test_local_refused(gconstpointer data)
{
    const Bad *row = data;
    Bench b;
    SendWr wr;

    bench_init(&b, 5010);
    mem_register(b.qp[1], b.mr, VA, LEN, ACCESS_ALL);
    wr = mem_inv_wr(row->key(&b));
    g_assert_cmphex(mem_do(b.qp[1], &wr, LOCAL_QP_OP_ERR), ==, row->vendor_err);
    g_assert_cmpuint(qp_state(b.qp[1]), ==, RDMA_HCA_QP_STATE_ERR);
    g_assert_false(mem_is_free(b.drv, b.mr->key));
    bench_free(&b);
}

/* By the peer */

/* FR-20, FR-21: with data or without, of one packet or of several. */
static void test_remote(void)
{
    static const uint32_t lengths[] = { 0, 1, 100, 1024, 1025, 9000 };
    Bench b;

    bench_init(&b, 5020);
    for (unsigned i = 0; i < G_N_ELEMENTS(lengths); i++) {
        uint32_t len = lengths[i];
        uint8_t *data = pair_data(b.pair, len);
        uint8_t *got = g_malloc0(len + 1);
        SendWr wr = mem_send_inv_wr(0);
        Sge sge;
        Wc wc;

        mem_register(b.qp[1], b.mr, VA, LEN, ACCESS_ALL);
        mr_write(b.pair->mr[0], 0, data, len);
        pair_post_recv(b.pair, 1, b.qp[1], 50 + i, 0, 9000);
        wr.rkey = b.mr->key;
        sge = mr_sge(b.pair->mr[0], 0, len);
        wr.sge = &sge;
        wr.nsge = len != 0;
        mem_do(b.qp[0], &wr, 0);
        cq_expect(b.pair->cq[1], &wc, 50 + i, 0);
        g_assert_cmphex(wc.opcode & 0x1f, ==,
                        len <= 1024 ? HCA_SEND_ONLY_INV : HCA_SEND_LAST_INV);
        g_assert_cmphex(wc.inv_rkey, ==, b.mr->key);
        g_assert_cmpuint(wc.byte_len, ==, len);
        g_assert_true(mem_is_free(b.drv, b.mr->key));
        mr_read(b.pair->mr[1], 0, got, len);
        g_assert_cmpmem(got, len, data, len);
        g_free(data);
        g_free(got);
    }
    g_assert_cmpuint(pair_counter(b.pair, 1, "v2p_remote_invs"), ==,
                     G_N_ELEMENTS(lengths));
    bench_free(&b);
}

/* Data may go into the region that is then gone: they are all there. */
static void test_remote_own_buffer(void)
{
    Bench b;
    SendWr wr;
    RecvWr recv;
    Sge from, to;
    uint8_t *data;
    uint8_t *got = g_malloc0(LEN);
    Wc wc;

    bench_init(&b, 5021);
    mem_register(b.qp[1], b.mr, VA, LEN, ACCESS_ALL);
    data = pair_data(b.pair, LEN);
    mr_write(b.pair->mr[0], 0, data, LEN);
    to = mr_sge(b.mr, 0, LEN);
    recv = (RecvWr) { .wr_id = 6, .nsge = 1, .sge = &to };
    g_assert_true(qp_post_recv(b.qp[1], &recv, 1));
    wr = mem_send_inv_wr(b.mr->key);
    from = mr_sge(b.pair->mr[0], 0, LEN);
    wr.sge = &from;
    wr.nsge = 1;
    mem_do(b.qp[0], &wr, 0);
    cq_expect(b.pair->cq[1], &wc, 6, 0);
    mr_read(b.mr, 0, got, LEN);
    g_assert_cmpmem(got, LEN, data, LEN);
    g_free(data);
    g_free(got);
    bench_free(&b);
}

/* FR-22: NAK remote access, the receive in error, both QPs broken. */
static void test_remote_refused(gconstpointer data)
{
    const Bad *row = data;
    Bench b;
    SendWr wr;
    Wc wc;

    bench_init(&b, 5030);
    mem_register(b.qp[1], b.mr, VA, LEN, ACCESS_ALL);
    pair_post_recv(b.pair, 1, b.qp[1], 7, 0, 64);
    wr = mem_send_inv_wr(row->key(&b));
    mem_do(b.qp[0], &wr, REMOTE_ACCESS_ERR);
    cq_expect(b.pair->cq[1], &wc, 7, RDMA_HCA_SYNDROME_REMOTE_INVAL_REQ_ERR);
    g_assert_cmpuint(wc.vendor_err, ==, HCA_EXE_INVALIDATION);
    for (unsigned side = 0; side < 2; side++) {
        g_assert_cmpuint(qp_state(b.qp[side]), ==, RDMA_HCA_QP_STATE_ERR);
    }
    g_assert_false(mem_is_free(b.drv, b.mr->key));
    g_assert_cmpuint(pair_counter(b.pair, 1, "responder_refused_invalidation"),
                     ==, 1);
    g_assert_cmpuint(pair_counter(b.pair, 1, "responder_nak_tx_access"), ==, 1);
    bench_free(&b);
}

/* Of RC alone (IBA table 38); a packet of UC is none. */
static void test_services(void)
{
    Bench b;
    Qp *qp[2];
    SendWr wr;

    bench_init(&b, 5040);
    pair_connect_service(b.pair, RDMA_HCA_QP_ST_UC, NULL, qp);
    wr = mem_send_inv_wr(b.mr->key);
    g_assert_cmpuint(mem_do(qp[0], &wr, LOCAL_QP_OP_ERR), ==,
                     HCA_WQE_BAD_OPCODE);
    bench_free(&b);
}

/* Packet by packet */

typedef struct Peer {
    Bed *bed;
    Mr *mr; /* of the QP under test, registered by another */
    Qp *owner;
} Peer;

static void peer_init(Peer *p)
{
    BedConfig config = bed_responder(RDMA_HCA_QP_ST_RC);
    Qp *qp[2];

    p->bed = bed_new_as(&config);
    pair_connect(p->bed->pair, NULL, qp);
    p->owner = qp[1];
    p->mr = mem_region_new(p->bed->drv[1], p->bed->pair->pd[1], PAGES);
    mem_register(p->owner, p->mr, VA, LEN, ACCESS_ALL);
}

static void say(Peer *p, uint8_t op, uint32_t psn, uint32_t len)
{
    HcaPacket packet = {
        .opcode = op,
        .ack_req = true,
        .dest_qp = p->bed->qp->qpn,
        .psn = psn,
        .payload_len = len,
        .inv_rkey = p->mr->key,
    };

    bed_put(p->bed, &packet, 0);
    lab_run(p->bed->lab);
}

static void post_recv(Peer *p, uint64_t wr_id)
{
    Sge sge = mr_sge(p->bed->mr, 0, 4096);
    RecvWr wr = { .wr_id = wr_id, .nsge = 1, .sge = &sge };

    g_assert_true(qp_post_recv(p->bed->qp, &wr, 1));
}

static void expect_answer(Peer *p, uint32_t psn, uint8_t kind)
{
    g_autofree BedPacket *answer = bed_next(p->bed, HCA_ACK, psn);

    g_assert_cmphex(HCA_AETH_KIND(answer->packet.syndrome), ==, kind);
}

/* A Read by the key that is still being answered is answered to its end; then
 * the Send is asked for again. */
static void test_behind_read(void)
{
    Peer p;
    Wc wc;
    HcaPacket read;

    peer_init(&p);
    post_recv(&p, 1);
    read = request_make_read(p.bed, 0, 8 * BED_MTU);
    read.rkey = p.mr->key;
    read.va = VA;
    bed_put(p.bed, &read, 0);
    for (unsigned i = 0; i < 2; i++) { /* the second is ahead */
        HcaPacket send = request_make(p.bed, HCA_SEND_ONLY_INV, 10);

        send.inv_rkey = p.mr->key;
        send.psn = PSN + 8 + i;
        bed_put(p.bed, &send, 0);
    }
    lab_run(p.bed->lab); /* all three have come when the first is answered */
    g_assert_false(mem_is_free(p.bed->drv[1], p.mr->key));
    for (unsigned i = 0; i < 8; i++) {
        uint8_t op = i == 0   ? HCA_READ_RESP_FIRST
                     : i == 7 ? HCA_READ_RESP_LAST
                              : HCA_READ_RESP_MIDDLE;

        g_free(bed_next(p.bed, op, PSN + i));
    }
    resp_expect_nak(p.bed, PSN + 8, HCA_AETH(HCA_AETH_NAK, HCA_NAK_PSN_SEQ));
    bed_expect_quiet(p.bed);
    say(&p, HCA_SEND_ONLY_INV, PSN + 8, 10);
    expect_answer(&p, PSN + 8, HCA_AETH_ACK);
    cq_expect(p.bed->cq, &wc, 1, 0);
    g_assert_true(mem_is_free(p.bed->drv[1], p.mr->key));
    bed_free(p.bed);
}

/* FR-23: what comes again was executed. The region has a new life by then, with
 * the same key. */
static void test_duplicate(void)
{
    Peer p;
    Wc wc;
    SendWr wr;

    peer_init(&p);
    post_recv(&p, 1);
    say(&p, HCA_SEND_ONLY_INV, PSN, 10);
    expect_answer(&p, PSN, HCA_AETH_ACK);
    cq_expect(p.bed->cq, &wc, 1, 0);
    g_assert_true(mem_is_free(p.bed->drv[1], p.mr->key));
    wr = mem_reg_wr(p.mr, mem_list_new(p.mr->drv, p.mr->page, PAGES), VA, LEN,
                    ACCESS_ALL);
    mem_do(p.owner, &wr, 0);
    for (unsigned i = 0; i < 3; i++) {
        say(&p, HCA_SEND_ONLY_INV, PSN, 10);
        expect_answer(&p, PSN, HCA_AETH_ACK);
        g_assert_false(mem_is_free(p.bed->drv[1], p.mr->key));
    }
    g_assert_cmpuint(bed_counter(p.bed, 1, "v2p_remote_invs"), ==, 1);
    g_assert_cmpuint(bed_counter(p.bed, 1, "responder_duplicates"), ==, 3);
    bed_free(p.bed);
}

/* Without a receive nothing happens, and later once. */
static void test_not_ready(void)
{
    Peer p;
    Wc wc;

    peer_init(&p);
    say(&p, HCA_SEND_ONLY_INV, PSN, 10);
    expect_answer(&p, PSN, HCA_AETH_RNR);
    g_assert_false(mem_is_free(p.bed->drv[1], p.mr->key));
    post_recv(&p, 1);
    say(&p, HCA_SEND_ONLY_INV, PSN, 10);
    expect_answer(&p, PSN, HCA_AETH_ACK);
    cq_expect(p.bed->cq, &wc, 1, 0);
    g_assert_true(mem_is_free(p.bed->drv[1], p.mr->key));
    bed_free(p.bed);
}

/* One that is ahead of its turn, and one that is too long for its receive. */
static void test_not_executed(void)
{
    Peer p;

    peer_init(&p);
    post_recv(&p, 1);
    say(&p, HCA_SEND_ONLY_INV, PSN + 1, 10);
    expect_answer(&p, PSN, HCA_AETH_NAK);
    g_assert_false(mem_is_free(p.bed->drv[1], p.mr->key));
    say(&p, HCA_SEND_LAST_INV, PSN, 10); /* of nothing */
    expect_answer(&p, PSN, HCA_AETH_NAK);
    g_assert_false(mem_is_free(p.bed->drv[1], p.mr->key));
    bed_free(p.bed);
}

/* The last packet alone does it. */
static void test_last_packet(void)
{
    Peer p;
    Wc wc;

    peer_init(&p);
    post_recv(&p, 1);
    say(&p, HCA_SEND_FIRST, PSN, BED_MTU);
    expect_answer(&p, PSN, HCA_AETH_ACK);
    say(&p, HCA_SEND_MIDDLE, PSN + 1, BED_MTU);
    expect_answer(&p, PSN + 1, HCA_AETH_ACK);
    g_assert_false(mem_is_free(p.bed->drv[1], p.mr->key));
    say(&p, HCA_SEND_LAST_INV, PSN + 2, 1);
    expect_answer(&p, PSN + 2, HCA_AETH_ACK);
    cq_expect(p.bed->cq, &wc, 1, 0);
    g_assert_cmpuint(wc.byte_len, ==, 2 * BED_MTU + 1);
    g_assert_true(mem_is_free(p.bed->drv[1], p.mr->key));
    bed_free(p.bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/local/life", test_local);
    test_add_each_link("/remote/life", test_remote);
    test_add_each_link("/remote/own-buffer", test_remote_own_buffer);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        if (bad[i].vendor_err) {
            test_add_data_each_link(
                test_named("/local/refused/%s", bad[i].name), &bad[i],
                test_local_refused);
        }
        test_add_data_each_link(test_named("/remote/refused/%s", bad[i].name),
                                &bad[i], test_remote_refused);
    }
    test_add_each_link("/remote/services", test_services);
    test_add_each_link("/remote/behind-read", test_behind_read);
    test_add_each_link("/remote/duplicate", test_duplicate);
    test_add_each_link("/remote/not-ready", test_not_ready);
    test_add_each_link("/remote/not-executed", test_not_executed);
    test_add_each_link("/remote/last-packet", test_last_packet);
    return g_test_run();
}
