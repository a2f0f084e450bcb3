/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * FLUSH (IBA annex A19): what has been written before it is where everybody
 * sees it when it is answered. Who may ask, for what, and how it is answered.
 */
#include <string.h>

#include "lib-bed.h"
#include "lib-mem.h"
#include "lib-requester.h"
#include "lib-responder.h"
#include "lib-test.h"

#define PSN BED_PSN
#define RQ_PSN BED_RQ_PSN
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define FLUSH RDMA_HCA_OPCODE_FLUSH
#define SYNDROME(name) RDMA_HCA_SYNDROME_##name
#define INVALID HCA_AETH(HCA_AETH_NAK, HCA_NAK_INVALID_REQUEST)
#define ACCESS HCA_AETH(HCA_AETH_NAK, HCA_NAK_REMOTE_ACCESS)
#define GLOBAL HCA_FLUSH_GLOBAL
#define PERSISTENT HCA_FLUSH_PERSISTENT
#define RANGE HCA_FLUSH_RANGE
#define REGION HCA_FLUSH_REGION
#define GLOBAL_RIGHT RDMA_HCA_ACCESS_FLUSH_GLOBAL
#define PERSISTENT_RIGHT RDMA_HCA_ACCESS_FLUSH_PERSISTENT
#define BOTH_RIGHTS RDMA_HCA_ACCESS_FLUSH
#define VA UINT64_C(0x550000000000)
#define LEN 8192u

/* ---- the requester ---- */

static SendWr make_wr(Bed *bed, Sge *sge, uint64_t wr_id, uint32_t len,
                      uint32_t flush)
{
    SendWr wr = bed_wr(bed, sge, FLUSH, wr_id, 0);

    wr.nsge = 0;
    wr.flush_len = len;
    wr.flush = flush;
    return wr;
}

static void post(Bed *bed, uint64_t wr_id, unsigned flags)
{
    Sge sge;
    SendWr wr = make_wr(bed, &sge, wr_id, LEN, HCA_FETH(GLOBAL, RANGE));

    wr.flags = flags;
    bed_post_wr(bed, &wr);
}

static void expect_flush(Bed *bed, uint32_t psn, uint32_t len, uint32_t feth)
{
    g_autofree BedPacket *heard = bed_next(bed, HCA_FLUSH, psn);

    g_assert_cmphex(heard->packet.va, ==, BED_RADDR);
    g_assert_cmphex(heard->packet.rkey, ==, BED_RKEY);
    g_assert_cmpuint(heard->packet.dma_len, ==, len);
    g_assert_cmphex(heard->packet.feth, ==, feth);
    g_assert_cmpuint(heard->packet.payload_len, ==, 0);
    g_assert_true(heard->packet.ack_req);
}

/* Every type and level; of bits that are reserved none leaves. */
static void test_request(void)
{
    Bed *bed = bed_new();
    unsigned n = 0;

    for (uint32_t level = RANGE; level <= REGION; level++) {
        for (uint32_t type = 1; type <= (GLOBAL | PERSISTENT); type++, n++) {
            uint32_t feth = HCA_FETH(type, level);
            uint32_t len = n % 2 ? 0x80000000 : n * 4097;
            Sge sge;
            SendWr wr = make_wr(bed, &sge, n, len, feth | 0xffffffc0);

            bed_post_wr(bed, &wr);
            expect_flush(bed, PSN + n, len, feth);
            bed_expect_none(bed);
            bed_say_placed(bed, PSN + n);
            bed_expect_done(bed, n);
        }
    }
    bed_expect_timer_off(bed);
    bed_counted(bed, 0, "send_wqe_flush", n);
    bed_free(bed);
}

/* Types and levels that there are not. */
static void test_bad_units(void)
{
    static const uint32_t bad[] = {
        0,    HCA_FETH(0, REGION), HCA_FETH(4, RANGE),  HCA_FETH(8, RANGE),
        0x0f, HCA_FETH(5, REGION), HCA_FETH(GLOBAL, 2), HCA_FETH(GLOBAL, 3),
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        Bed *bed = bed_new();
        Sge sge;
        SendWr wr = make_wr(bed, &sge, 1, 64, bad[i]);

        bed_post_wr(bed, &wr);
        bed_expect_refused(bed, SYNDROME(LOCAL_QP_OP_ERR), HCA_WQE_BAD_UNITS);
    }
}

/* A WQE that ends in front of its flush_unit, or of its raddr_unit. */
static void test_short_wqe(void)
{
    for (unsigned units = 1; units < 3; units++) {
        Bed *bed = bed_new();
        uint32_t low, high;
        Sge sge;
        SendWr wr = make_wr(bed, &sge, 1, 64, HCA_FETH(GLOBAL, RANGE));

        g_assert_true(qp_write_send(bed->qp, &wr, 1, &low, &high));
        qp_ring(bed->qp, low, (high & ~RDMA_HCA_SEND_DB_SIZE) | units);
        bed_expect_refused(bed, SYNDROME(LOCAL_QP_OP_ERR), HCA_WQE_BAD_UNITS);
    }
}

static void test_bad_length(void)
{
    Bed *bed = bed_new();
    Sge sge;
    SendWr wr = make_wr(bed, &sge, 1, 0x80000001, HCA_FETH(GLOBAL, RANGE));

    bed_post_wr(bed, &wr);
    bed_expect_refused(bed, SYNDROME(LOCAL_LENGTH_ERR), HCA_WQE_BAD_LENGTH);
}

/* It takes one of max_rd_atomic; the fence waits for it, and it for the fence. */
static void test_limits(void)
{
    QpAttr attr;
    Bed *bed;

    bed_attr_init(&attr);
    attr.max_rd_atomic = 2;
    bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, NULL);
    bed_post(bed, READ, 1, 8);
    post(bed, 2, SEND_SIGNALED | SEND_FENCE);
    bed_expect_read(bed, PSN, 0, 8);
    bed_expect_quiet(bed);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 8);
    bed_expect_done(bed, 1);
    bed_expect_request(bed, HCA_FLUSH, PSN + 1);
    post(bed, 3, SEND_SIGNALED);
    post(bed, 4, SEND_SIGNALED);
    bed_expect_request(bed, HCA_FLUSH, PSN + 2);
    bed_expect_quiet(bed);
    bed_say_placed(bed, PSN + 1);
    bed_expect_done(bed, 2);
    bed_expect_request(bed, HCA_FLUSH, PSN + 3);
    bed_say_placed(bed, PSN + 2);
    bed_say_placed(bed, PSN + 3);
    bed_expect_done(bed, 3);
    bed_expect_done(bed, 4);
    bed_free(bed);
}

/* Behind Writes: answered, they are acknowledged, too. Alone it is not. */
static void test_order(void)
{
    Bed *bed = bed_new();

    bed_post(bed, WRITE, 1, 1000);
    post(bed, 2, SEND_SIGNALED);
    bed_post(bed, WRITE, 3, 8);
    bed_forget_requests(bed);
    bed_ack(bed, PSN + 3);
    bed_expect_done(bed, 1);
    bed_expect_none(bed);
    bed_say_placed(bed, PSN + 4);
    bed_expect_done(bed, 2);
    bed_ack(bed, PSN + 5);
    bed_expect_done(bed, 3);
    bed_free(bed);
}

static void test_retransmission(void)
{
    Bed *bed = bed_new();

    post(bed, 1, SEND_SIGNALED);
    expect_flush(bed, PSN, LEN, HCA_FETH(GLOBAL, RANGE));
    bed_run_for(bed, 3 * BED_TIMEOUT_NS / 2);
    expect_flush(bed, PSN, LEN, HCA_FETH(GLOBAL, RANGE));
    bed_forget_requests(bed);
    bed_say_placed(bed, PSN);
    bed_expect_done(bed, 1);
    bed_free(bed);
}

static void test_bad_answers(void)
{
    static const struct {
        uint8_t op;
        uint32_t len;
    } bad[] = {
        { HCA_READ_RESP_ONLY, 1 },
        { HCA_READ_RESP_FIRST, 256 },
        { HCA_READ_RESP_LAST, 8 },
        { HCA_ATOMIC_ACK, 0 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        Bed *bed = bed_new();

        post(bed, 1, SEND_SIGNALED);
        bed_expect_request(bed, HCA_FLUSH, PSN);
        bed_respond(bed, bad[i].op, PSN, 0, bad[i].len);
        bed_expect_broken(bed, 1, SYNDROME(BAD_RESP_ERR), 0);
        bed_free(bed);
    }
}

/* ---- the responder ---- */

/* QP and region with these rights. */
static Bed *new_responder(uint32_t qp_access, uint32_t mr_access, Mr **mr)
{
    BedConfig config = bed_responder(RDMA_HCA_QP_ST_RC);
    Bed *bed;

    config.attr.access |= qp_access;
    bed = bed_new_as(&config);
    *mr = mr_new(bed->drv[1], bed->pair->pd[1], VA, LEN, mr_access);
    return bed;
}

static HcaPacket make(Bed *bed, const Mr *mr, uint32_t feth)
{
    HcaPacket packet = request_make(bed, HCA_FLUSH, 0);

    packet.va = mr->va;
    packet.rkey = mr->key;
    packet.dma_len = mr->len;
    packet.feth = feth;
    return packet;
}

/* Each type needs its right of the QP and of the region, whatever the level. */
static void test_rights(void)
{
    for (unsigned i = 0; i < 2 * 3 * 4 * 4; i++) {
        uint32_t level = i % 2, type = 1 + i / 2 % 3;
        uint32_t qp = i / 6 % 4, region = i / 24;
        Mr *mr;
        Bed *bed = new_responder(
            RDMA_HCA_PREP(RDMA_HCA_ACCESS_FLUSH, qp),
            ACCESS_ALL | RDMA_HCA_PREP(RDMA_HCA_ACCESS_FLUSH, region), &mr);
        HcaPacket packet = make(bed, mr, HCA_FETH(type, level));

        request_put(bed, &packet, 0);
        if (type & ~qp) {
            resp_expect_nak(bed, RQ_PSN, INVALID);
            resp_expect_broken(bed, RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR);
        } else if (type & ~region) {
            resp_expect_nak(bed, RQ_PSN, ACCESS);
            resp_expect_broken(bed, RDMA_HCA_EVENT_WQ_ACCESS_ERROR);
        } else {
            resp_expect_placed(bed, RQ_PSN, 1);
            bed_counted(bed, 1, "responder_flushes", 1);
        }
        bed_free(bed);
    }
}

typedef struct Row {
    const char *name;
    uint32_t feth;
    uint32_t key;    /* changes */
    int64_t va;      /* is added */
    uint32_t length; /* of RETH */
    uint8_t nak;     /* 0: good */
} Row;

static const Row rows[] = {
    { "all", HCA_FETH(GLOBAL, RANGE), 0, 0, LEN, 0 },
    { "byte", HCA_FETH(PERSISTENT, RANGE), 0, 4097, 1, 0 },
    { "last-byte", HCA_FETH(GLOBAL, RANGE), 0, LEN - 1, 1, 0 },
    { "nothing", HCA_FETH(GLOBAL, RANGE), 0, 0, 0, 0 },
    { "nothing-at-end", HCA_FETH(GLOBAL, RANGE), 0, LEN, 0, 0 },
    { "region", HCA_FETH(GLOBAL | PERSISTENT, REGION), 0, 0, 0, 0 },
    { "region-anything", HCA_FETH(GLOBAL, REGION), 0, -VA, 12345678, 0 },
    { "region-any-length", HCA_FETH(GLOBAL, REGION), 0, 1, UINT32_MAX, 0 },
    { "reserved-bits", HCA_FETH(GLOBAL, RANGE) | 0xffffffc0, 0, 0, LEN, 0 },
    { "beyond", HCA_FETH(GLOBAL, RANGE), 0, 1, LEN, ACCESS },
    { "below", HCA_FETH(GLOBAL, RANGE), 0, -1, 1, ACCESS },
    { "behind", HCA_FETH(GLOBAL, RANGE), 0, LEN, 1, ACCESS },
    { "nothing-behind", HCA_FETH(GLOBAL, RANGE), 0, LEN + 1, 0, ACCESS },
    { "key", HCA_FETH(GLOBAL, RANGE), 0x100, 0, LEN, ACCESS },
    { "key-of-nothing", HCA_FETH(GLOBAL, RANGE), 0x7f00, 0, 0, ACCESS },
    { "key-of-region", HCA_FETH(GLOBAL, REGION), 1, 0, LEN, ACCESS },
    { "too-long", HCA_FETH(GLOBAL, RANGE), 0, 0, 0x80000001, INVALID },
    { "no-type", HCA_FETH(0, RANGE), 0, 0, LEN, INVALID },
    { "type-4", HCA_FETH(4, RANGE), 0, 0, LEN, INVALID },
    { "type-9", HCA_FETH(9, REGION), 0, 0, LEN, INVALID },
    { "level-2", HCA_FETH(GLOBAL, 2), 0, 0, LEN, INVALID },
    { "level-3", HCA_FETH(GLOBAL, 3), 0, 0, LEN, INVALID },
};

static void test_place(const void *opaque)
{
    const Row *row = opaque;
    Mr *mr;
    Bed *bed = new_responder(BOTH_RIGHTS, BOTH_RIGHTS, &mr);
    HcaPacket packet = make(bed, mr, row->feth);

    packet.rkey ^= row->key;
    packet.va += row->va;
    packet.dma_len = row->length;
    request_put(bed, &packet, 0);
    if (row->nak) {
        resp_expect_nak(bed, RQ_PSN, row->nak);
        resp_expect_broken(bed, row->nak == ACCESS
                                    ? RDMA_HCA_EVENT_WQ_ACCESS_ERROR
                                    : RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR);
    } else {
        resp_expect_placed(bed, RQ_PSN, 1);
    }
    bed_counted(bed, 1, "responder_flushes", !row->nak);
    bed_free(bed);
}

/* Rights are of regions: a window cannot have them, nor let one use them. A
 * region that a work request makes can. Its address may count from 0. */
static void test_kinds(void)
{
    Mr *mr, *fast;
    Bed *bed = new_responder(
        BOTH_RIGHTS, ACCESS_ALL | BOTH_RIGHTS | RDMA_HCA_ACCESS_MW_BIND, &mr);
    uint32_t window = mem_window_new(bed->drv[1], bed->pair->pd[1], 1);
    HcaPacket packet;
    SendWr wr;
    Qp *qp[2];

    pair_connect(bed->pair, NULL, qp);
    fast = mem_region_new(bed->drv[1], bed->pair->pd[1], 2);
    mem_register(qp[1], fast, 0, LEN, BOTH_RIGHTS | RDMA_HCA_ACCESS_ZERO_BASED);
    for (uint32_t level = RANGE; level <= REGION; level++) {
        packet = make(bed, fast, HCA_FETH(PERSISTENT, level));
        request_put(bed, &packet, 0);
        resp_expect_placed(bed, RQ_PSN + level, level + 1);
        bed->psn++;
    }
    window = mem_bind(qp[1], 1, window, mr, VA, LEN,
                      RDMA_HCA_ACCESS_REMOTE_WRITE);
    packet = make(bed, mr, HCA_FETH(GLOBAL, REGION));
    packet.rkey = window;
    request_put(bed, &packet, 0);
    resp_expect_nak(bed, RQ_PSN + 2, ACCESS);
    wr = mem_bind_wr(1, mem_next_key(window), mr, VA, LEN,
                     RDMA_HCA_ACCESS_REMOTE_WRITE | GLOBAL_RIGHT);
    mem_do(qp[1], &wr, SYNDROME(MW_BIND_ERR));
    bed_free(bed);
}

/* The entry says what it was given. */
static void test_query(void)
{
    for (uint32_t rights = 0; rights < 4; rights++) {
        uint32_t access = RDMA_HCA_PREP(RDMA_HCA_ACCESS_FLUSH, rights);
        struct rdma_hca_mpt mpt;
        struct rdma_hca_qpc qpc;
        Mr *mr;
        Bed *bed = new_responder(access, ACCESS_ALL | access, &mr);

        mpt = mem_query(bed->drv[1], mr->key);
        g_assert_cmphex(
            RDMA_HCA_GET(RDMA_HCA_MPT_FLUSH, GUINT32_FROM_BE(mpt.flags)), ==,
            rights);
        g_assert_cmphex(qp_query(bed->qp, &qpc), ==, 0);
        g_assert_cmphex(
            RDMA_HCA_GET(RDMA_HCA_QPC_FLUSH, GUINT32_FROM_BE(qpc.params1)), ==,
            rights);
        bed_free(bed);
    }
}

/* What was written before it is in memory when it is answered. */
static void test_executed_in_order(void)
{
    Mr *mr;
    Bed *bed = new_responder(BOTH_RIGHTS, ACCESS_ALL | BOTH_RIGHTS, &mr);
    HcaPacket packet = request_make(bed, HCA_WRITE_FIRST, BED_MTU);
    HcaPacket flush;

    packet.dma_len = 2 * BED_MTU;
    packet.ack_req = false;
    request_put(bed, &packet, 0);
    bed->psn++;
    flush = make(bed, mr, HCA_FETH(GLOBAL, RANGE));
    /* Not in the middle of it. */
    flush.psn = hca_psn_add(bed->psn, 1);
    request_put(bed, &flush, 0);
    resp_expect_nak(bed, RQ_PSN + 1, HCA_AETH(HCA_AETH_NAK, 0));
    packet = request_make(bed, HCA_WRITE_LAST, BED_MTU);
    packet.ack_req = false;
    request_put(bed, &packet, BED_MTU);
    bed_expect_region(bed, 0, 0, 2 * BED_MTU);
    request_put(bed, &flush, 0);
    resp_expect_placed(bed, RQ_PSN + 2, 2);
    bed_free(bed);
}

static void give_pair(Bed *bed, const Mr *mr)
{
    HcaPacket flush;

    request_give_op(bed, HCA_WRITE_ONLY, 4);
    flush = make(bed, mr, HCA_FETH(GLOBAL, RANGE));
    request_give(bed, &flush, 0);
}

/* A peer whose FLUSHes do not count for what it may ask at once has as many of
 * them answered as the ring has entries, and is told to send the rest again. */
static void test_ring_full(void)
{
    Mr *mr;
    Bed *bed = new_responder(BOTH_RIGHTS, ACCESS_ALL | BOTH_RIGHTS, &mr);

    for (unsigned i = 0; i < HCA_RESP_RING; i++) {
        give_pair(bed, mr);
    }
    g_assert_cmpuint(resp_waiting(bed), ==, HCA_RESP_RING);
    bed_expect_drops(bed, HCA_DROP_RESOURCES, 0);
    give_pair(bed, mr);
    bed_expect_drops(bed, HCA_DROP_RESOURCES, 2);
    bed->psn = RQ_PSN + 2 * HCA_RESP_RING;
    resp_run(bed);
    for (unsigned i = 1; i <= HCA_RESP_RING; i++) {
        resp_expect_placed(bed, RQ_PSN + 2 * i - 1, 2 * i);
    }
    resp_expect_nak(bed, bed->psn, HCA_AETH(HCA_AETH_NAK, 0));
    bed_expect_quiet(bed);
    give_pair(bed, mr);
    resp_run(bed);
    resp_expect_placed(bed, RQ_PSN + 2 * HCA_RESP_RING + 1,
                       2 * HCA_RESP_RING + 2);
    bed_free(bed);
}

static void test_out_of_place(void)
{
    Mr *mr;
    Bed *bed = new_responder(BOTH_RIGHTS, BOTH_RIGHTS, &mr);
    HcaPacket packet;

    resp_post_recv(bed, 1, 0, 4096);
    request_send(bed, HCA_SEND_FIRST, BED_MTU);
    resp_expect_ack(bed, RQ_PSN, 0);
    packet = make(bed, mr, HCA_FETH(GLOBAL, RANGE));
    request_put(bed, &packet, 0);
    resp_expect_nak(bed, RQ_PSN + 1, INVALID);
    resp_expect_recv_error(bed, 1, SYNDROME(WR_FLUSH_ERR));
    bed_free(bed);
}

/* One that comes again is answered again, whatever became of its region. */
static void test_duplicate(void)
{
    Mr *mr;
    Bed *bed = new_responder(BOTH_RIGHTS, BOTH_RIGHTS, &mr);
    HcaPacket packet = make(bed, mr, HCA_FETH(GLOBAL, REGION));

    request_put(bed, &packet, 0);
    resp_expect_placed(bed, RQ_PSN, 1);
    bed->psn++;
    g_assert_cmphex(mr_deregister(mr), ==, 0);
    for (unsigned i = 0; i < 5; i++) {
        request_put(bed, &packet, 0);
        resp_expect_placed(bed, RQ_PSN, 1);
    }
    bed_counted(bed, 1, "responder_flushes", 1);
    bed_counted(bed, 1, "responder_duplicates", 5);
    packet.psn = bed->psn;
    request_put(bed, &packet, 0);
    resp_expect_nak(bed, RQ_PSN + 1, ACCESS);
    bed_free(bed);
}

/*
 * A peer may have more of them out than max_dest_rd_atomic, be that 0: Linux'
 * rxe does. They take no place of a Read's, and are answered in order.
 */
static void test_many(void)
{
    BedConfig config = bed_responder(RDMA_HCA_QP_ST_RC);
    unsigned n = 20;
    Bed *bed;
    Mr *mr;

    config.attr.access |= BOTH_RIGHTS;
    config.attr.max_dest_rd_atomic = 1;
    bed = bed_new_as(&config);
    mr = mr_new(bed->drv[1], bed->pair->pd[1], VA, LEN, BOTH_RIGHTS);
    for (unsigned i = 0; i < n; i++) {
        HcaPacket packet = make(bed, mr, HCA_FETH(GLOBAL, RANGE));

        request_give(bed, &packet, 0);
    }
    {
        HcaPacket packet = request_make_read(bed, 0, 100);

        request_give(bed, &packet, 0);
    }
    g_assert_cmpuint(resp_waiting(bed), ==, n + 1);
    g_assert_cmpuint(bed->hqp->resp.rd_atomic, ==, 1);
    /* While they wait none is answered twice, and no more than 16 that have. */
    for (unsigned i = 0; i < n; i++) {
        HcaPacket packet = make(bed, mr, HCA_FETH(GLOBAL, RANGE));

        packet.psn = RQ_PSN + i;
        request_give(bed, &packet, 0);
    }
    g_assert_cmpuint(resp_waiting(bed), ==, n + 1);
    resp_run(bed);
    for (unsigned i = 0; i < n; i++) {
        resp_expect_placed(bed, RQ_PSN + i, i + 1);
    }
    resp_expect_read(bed, RQ_PSN + n, 0, 100, n + 1);
    for (unsigned i = 0; i < n; i++) {
        HcaPacket packet = make(bed, mr, HCA_FETH(GLOBAL, RANGE));

        packet.psn = RQ_PSN + i;
        request_give(bed, &packet, 0);
    }
    g_assert_cmpuint(resp_waiting(bed), ==, HCA_MAX_RD_ATOMIC);
    resp_run(bed);
    for (unsigned i = 0; i < HCA_MAX_RD_ATOMIC; i++) {
        resp_expect_placed(bed, RQ_PSN + i, n + 1);
    }
    bed_free(bed);
}

/* ---- both ---- */

/* Write and FLUSH, again and again: what was flushed is there. */
static void test_loss(void)
{
    enum {
        ROUNDS = 30,
        LENGTH = 3000
    };
    BedConfig config = bed_connection(RDMA_HCA_QP_ST_RC);
    Bed *bed;
    Mr *mr;

    config.attr.access |= BOTH_RIGHTS;
    config.attr.timeout = 10;
    config.attr.retry_cnt = 7;
    bed = bed_new_as(&config);
    mr = mr_new(bed->drv[1], bed->pair->pd[1], VA, LEN,
                ACCESS_ALL | BOTH_RIGHTS);
    for (unsigned round = 0; round < ROUNDS; round++) {
        g_autofree uint8_t *data = pair_data(bed->pair, LENGTH);
        g_autofree uint8_t *got = g_malloc(LENGTH);
        SendWr *wr;

        bed_set_weather(
            bed, round % 2,
            (BedWeather) { .nth = 1 + round % 5,
                           .fate = round % 3 ? CABLE_DROP : CABLE_DUPLICATE });
        mr_write(bed->pair->mr[0], 0, data, LENGTH);
        wr = bed_request(bed, 0, WRITE, LENGTH);
        wr->raddr = mr->va;
        wr->rkey = mr->key;
        wr->flags = 0;
        wr = bed_request(bed, 1, FLUSH, 0);
        wr->nsge = 0;
        wr->raddr = mr->va;
        wr->rkey = mr->key;
        wr->flush_len = LENGTH;
        wr->flush = HCA_FETH(GLOBAL | PERSISTENT, round % 2);
        bed_post_requests(bed, 2);
        bed_expect_end(bed, 0, 0);
        mr_read(mr, 0, got, LENGTH);
        g_assert_cmpmem(got, LENGTH, data, LENGTH);
    }
    bed_counted(bed, 1, "responder_flushes", ROUNDS);
    bed_free(bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/flush/request", test_request);
    test_add("/flush/bad-units", test_bad_units);
    test_add("/flush/short-wqe", test_short_wqe);
    test_add("/flush/bad-length", test_bad_length);
    test_add("/flush/limits", test_limits);
    test_add("/flush/order", test_order);
    test_add_each_link("/flush/retransmission", test_retransmission);
    test_add("/flush/bad-answers", test_bad_answers);
    test_add("/flush/rights", test_rights);
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        test_add_data_each_link(test_named("/flush/place/%s", rows[i].name),
                                &rows[i], test_place);
    }
    test_add("/flush/kinds", test_kinds);
    test_add("/flush/query", test_query);
    test_add_each_link("/flush/executed-in-order", test_executed_in_order);
    test_add("/flush/ring-full", test_ring_full);
    test_add("/flush/out-of-place", test_out_of_place);
    test_add_each_link("/flush/duplicate", test_duplicate);
    test_add("/flush/many", test_many);
    test_add_each_link("/flush/loss", test_loss);
    return g_test_run();
}
