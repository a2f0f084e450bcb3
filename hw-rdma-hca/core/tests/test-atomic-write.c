/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Atomic write (IBA annex A19): eight bytes that are written at once, answered
 * by a response without data, and never executed twice.
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
#define ATOMIC_WRITE RDMA_HCA_OPCODE_ATOMIC_WRITE
#define SYNDROME(name) RDMA_HCA_SYNDROME_##name
#define INVALID HCA_AETH(HCA_AETH_NAK, HCA_NAK_INVALID_REQUEST)
#define ACCESS HCA_AETH(HCA_AETH_NAK, HCA_NAK_REMOTE_ACCESS)

/* ---- the requester ---- */

/* The request has these bytes. */
static void expect_value(Bed *bed, uint32_t psn, const void *value)
{
    g_autofree BedPacket *heard = bed_next(bed, HCA_ATOMIC_WRITE, psn);

    g_assert_cmphex(heard->packet.va, ==, BED_RADDR);
    g_assert_cmphex(heard->packet.rkey, ==, BED_RKEY);
    g_assert_cmpuint(heard->packet.dma_len, ==, 8);
    g_assert_true(heard->packet.ack_req);
    g_assert_cmpmem(heard->data, heard->packet.payload_len, value, 8);
}

/* It completes when it is answered, and not before. */
static void test_request(void)
{
    Bed *bed = bed_new();
    uint8_t value[8];

    mr_read(bed->mr, 4096, value, sizeof(value));
    bed_post(bed, ATOMIC_WRITE, 1, 8);
    expect_value(bed, PSN, value);
    bed_expect_none(bed);
    bed_say_placed(bed, PSN);
    bed_expect_done(bed, 1);
    bed_expect_upsn(bed, PSN + 1);
    bed_expect_timer_off(bed);
    bed_counted(bed, 0, "send_wqe_atomic_write", 1);
    bed_free(bed);
}

static void test_inline(void)
{
    static const uint8_t value[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    Bed *bed = bed_new();
    Sge sge;
    SendWr wr = bed_wr(bed, &sge, ATOMIC_WRITE, 1, 0);

    wr.flags |= SEND_INLINE;
    wr.inline_data = value;
    wr.inline_len = sizeof(value);
    bed_post_wr(bed, &wr);
    expect_value(bed, PSN, value);
    bed_say_placed(bed, PSN);
    bed_expect_done(bed, 1);
    bed_free(bed);
}

/* Byte by byte out of places that are in two pages. */
static void test_gathered(void)
{
    uint64_t page_end;
    Bed *bed = bed_new();
    uint8_t value[8];
    Sge sge[8];
    SendWr wr;

    page_end = 4096 - (bed->mr->va & 4095);
    for (unsigned i = 0; i < 8; i++) {
        uint64_t at = i < 4 ? page_end - 2 + i : 300 * i;

        sge[i] = mr_sge(bed->mr, at, 1);
        mr_read(bed->mr, at, &value[i], 1);
    }
    wr = bed_wr(bed, &sge[0], ATOMIC_WRITE, 1, 8);
    sge[0] = mr_sge(bed->mr, page_end - 2, 1);
    wr.sge = sge;
    wr.nsge = 8;
    bed_post_wr(bed, &wr);
    expect_value(bed, PSN, value);
    bed_say_placed(bed, PSN);
    bed_expect_done(bed, 1);
    bed_free(bed);
}

static void test_bad_length(void)
{
    static const uint32_t lengths[] = { 0, 1, 4, 7, 9, 16, 4096 };
    static const uint8_t data[16];

    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(lengths) - 1; i++) {
        uint32_t len = lengths[i / 2];
        Bed *bed = bed_new();
        Sge sge;
        SendWr wr = bed_wr(bed, &sge, ATOMIC_WRITE, 1, len);

        if (i % 2) {
            wr.flags |= SEND_INLINE;
            wr.inline_data = data;
            wr.inline_len = len;
        }
        bed_post_wr(bed, &wr);
        bed_expect_refused(bed, SYNDROME(LOCAL_LENGTH_ERR), HCA_WQE_BAD_LENGTH);
    }
}

static void test_bad_entry(void)
{
    Bed *bed = bed_new();
    Sge sge;
    SendWr wr = bed_wr(bed, &sge, ATOMIC_WRITE, 1, 8);

    sge.lkey ^= 0x100;
    bed_post_wr(bed, &wr);
    bed_expect_refused(bed, SYNDROME(LOCAL_PROT_ERR), HCA_WQE_BAD_ENTRY);
}

/* The region goes while it waits for its turn. */
static void test_region_gone(void)
{
    Bed *bed = bed_new();
    Mr *mr = mr_new(bed->drv[0], bed->pair->pd[0], 0x10000, 4096, 0);
    Sge sge[2];
    SendWr wr = bed_wr(bed, &sge[0], READ, 1, 8);

    bed_post_wr(bed, &wr);
    bed_expect_read(bed, PSN, 0, 8);
    wr = bed_wr(bed, &sge[1], ATOMIC_WRITE, 2, 8);
    sge[1] = mr_sge(mr, 0, 8);
    wr.flags |= SEND_FENCE;
    bed_post_wr(bed, &wr);
    g_assert_cmphex(mr_deregister(mr), ==, 0);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 8);
    bed_expect_done(bed, 1);
    bed_expect_broken(bed, 2, SYNDROME(LOCAL_PROT_ERR), 0);
    bed_free(bed);
}

/* What is sent again is what was sent, whatever has become of the memory. */
static void test_retransmission(void)
{
    Bed *bed = bed_new();
    uint8_t value[8];

    mr_read(bed->mr, 4096, value, sizeof(value));
    bed_post(bed, ATOMIC_WRITE, 1, 8);
    expect_value(bed, PSN, value);
    mr_fill(bed->mr, 4096, 0xee, 8);
    bed_run_for(bed, 3 * BED_TIMEOUT_NS);
    expect_value(bed, PSN, value);
    bed_forget_requests(bed);
    bed_say_placed(bed, PSN);
    bed_expect_done(bed, 1);
    bed_free(bed);
}

/* An ACK is no answer: the answer was lost, and is asked for again, once. */
static void test_only_acknowledged(void)
{
    Bed *bed = bed_new();
    uint8_t value[8];

    mr_read(bed->mr, 4096, value, sizeof(value));
    bed_post(bed, ATOMIC_WRITE, 1, 8);
    expect_value(bed, PSN, value);
    for (unsigned i = 0; i < 3; i++) {
        bed_ack(bed, PSN);
    }
    expect_value(bed, PSN, value);
    bed_expect_quiet(bed);
    bed_say_placed(bed, PSN);
    bed_expect_done(bed, 1);
    bed_free(bed);
}

/* Answers of other kinds, or with data, break the QP. */
static void test_bad_answers(void)
{
    static const struct {
        uint8_t op;
        uint32_t len;
    } bad[] = {
        { HCA_READ_RESP_ONLY, 8 },     { HCA_READ_RESP_ONLY, 1 },
        { HCA_READ_RESP_FIRST, 256 },  { HCA_READ_RESP_LAST, 8 },
        { HCA_READ_RESP_MIDDLE, 256 }, { HCA_ATOMIC_ACK, 0 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        Bed *bed = bed_new();

        bed_post(bed, ATOMIC_WRITE, 1, 8);
        bed_expect_request(bed, HCA_ATOMIC_WRITE, PSN);
        bed_respond(bed, bad[i].op, PSN, 0, bad[i].len);
        bed_expect_broken(bed, 1, SYNDROME(BAD_RESP_ERR), 0);
        bed_free(bed);
    }
}

/* One of max_rd_atomic, and what the fence waits for. */
static void test_limits(void)
{
    QpAttr attr;
    Bed *bed;

    bed_attr_init(&attr);
    attr.max_rd_atomic = 2;
    bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, NULL);
    bed_post(bed, READ, 1, 8);
    bed_post(bed, ATOMIC_WRITE, 2, 8);
    bed_post(bed, ATOMIC_WRITE, 3, 8);
    bed_expect_read(bed, PSN, 0, 8);
    bed_expect_request(bed, HCA_ATOMIC_WRITE, PSN + 1);
    bed_expect_quiet(bed);
    g_assert_cmpuint(bed_counter(bed, 0, "requester_wait_reads"), >, 0);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 8);
    bed_expect_done(bed, 1);
    bed_expect_request(bed, HCA_ATOMIC_WRITE, PSN + 2);
    bed_post_flags(bed, WRITE, 4, 8, SEND_SIGNALED | SEND_FENCE);
    bed_say_placed(bed, PSN + 1);
    bed_expect_done(bed, 2);
    bed_expect_quiet(bed);
    bed_say_placed(bed, PSN + 2);
    bed_expect_done(bed, 3);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN + 3);
    bed_ack(bed, PSN + 3);
    bed_expect_done(bed, 4);
    bed_free(bed);
}

/* The answer acknowledges what is before it, and an ACK does not pass it. */
static void test_order(void)
{
    Bed *bed = bed_new();

    bed_post(bed, WRITE, 1, 8);
    bed_post(bed, ATOMIC_WRITE, 2, 8);
    bed_post(bed, WRITE, 3, 8);
    bed_forget_requests(bed);
    bed_say_placed(bed, PSN + 1);
    bed_expect_done(bed, 1);
    bed_expect_done(bed, 2);
    bed_expect_none(bed);
    bed_ack(bed, PSN + 2);
    bed_expect_done(bed, 3);
    bed_free(bed);
}

/* Without Reads there is none (table 1.1 as the card has it). */
static void test_no_depth(void)
{
    QpAttr attr;
    Bed *bed;

    bed_attr_init(&attr);
    attr.max_rd_atomic = 0;
    bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, NULL);
    bed_post(bed, ATOMIC_WRITE, 1, 8);
    bed_expect_refused(bed, SYNDROME(LOCAL_QP_OP_ERR), HCA_WQE_BAD_OPCODE);
}

/* ---- the responder ---- */

/* For the first aligned bytes of the region. */
static HcaPacket make(Bed *bed)
{
    HcaPacket packet = request_make_atomic(bed, HCA_ATOMIC_WRITE);

    packet.dma_len = packet.payload_len = 8;
    return packet;
}

static uint64_t value_at(const Bed *bed, uint32_t at)
{
    uint64_t value;

    memcpy(&value, bed->data + at, sizeof(value));
    return GUINT64_FROM_LE(value);
}

static void test_execute(void)
{
    Bed *bed = resp_new();

    for (unsigned i = 0; i < 5; i++) {
        HcaPacket packet = make(bed);

        request_put(bed, &packet, 8 * i);
        bed->psn++;
        resp_expect_placed(bed, RQ_PSN + i, i + 1);
        g_assert_cmphex(resp_atomic_word(bed), ==, value_at(bed, 8 * i));
    }
    bed_counted(bed, 1, "responder_atomic_writes", 5);
    bed_expect_none(bed); /* it ends no receive */
    bed_free(bed);
}

typedef struct Refusal {
    const char *name;
    uint32_t key; /* changes */
    int32_t va;   /* is added */
    uint32_t len; /* of the payload */
    uint32_t dma_len;
    uint8_t nak;
} Refusal;

static const Refusal refusals[] = {
    { "alignment-1", 0, 1, 8, 8, INVALID },
    { "alignment-4", 0, 4, 8, 8, INVALID },
    { "no-payload", 0, 0, 0, 8, INVALID },
    { "short-payload", 0, 0, 4, 8, INVALID },
    { "long-payload", 0, 0, 12, 8, INVALID },
    { "no-length", 0, 0, 8, 0, INVALID },
    { "short", 0, 0, 4, 4, INVALID },
    { "long", 0, 0, 16, 16, INVALID },
    { "packet", 0, 0, BED_MTU, BED_MTU, INVALID },
    { "key", 0x100, 0, 8, 8, ACCESS },
    { "key-byte", 1, 0, 8, 8, ACCESS },
    { "below", 0, -4096, 8, 8, ACCESS },
    { "above", 0, BED_AREA, 8, 8, ACCESS },
};

static void test_refused(const void *opaque)
{
    const Refusal *row = opaque;
    Bed *bed = resp_new();
    g_autofree uint8_t *image = mr_image(bed->mr);
    HcaPacket packet = make(bed);

    packet.rkey ^= row->key;
    packet.va += row->va;
    packet.payload_len = row->len;
    packet.dma_len = row->dma_len;
    request_put(bed, &packet, 0);
    resp_expect_nak(bed, RQ_PSN, row->nak);
    resp_expect_broken(bed, row->nak == ACCESS
                                ? RDMA_HCA_EVENT_WQ_ACCESS_ERROR
                                : RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR);
    mr_check_image(bed->mr, image);
    bed_counted(bed, 1, "responder_atomic_writes", 0);
    bed_free(bed);
}

/* Of the QP it needs the right to write, not that to atomics, and a place. */
static void test_qp_rights(void)
{
    static const struct {
        uint16_t access;
        uint8_t depth;
        bool allowed;
    } rows[] = {
        { RDMA_HCA_ACCESS_REMOTE_WRITE, 1, true },
        { RDMA_HCA_ACCESS_REMOTE_WRITE, 0, false },
        { RDMA_HCA_ACCESS_REMOTE_READ | RDMA_HCA_ACCESS_REMOTE_ATOMIC |
              RDMA_HCA_ACCESS_FLUSH,
          4, false },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        BedConfig config = bed_responder(RDMA_HCA_QP_ST_RC);
        HcaPacket packet;
        Bed *bed;

        config.attr.access = rows[i].access;
        config.attr.max_dest_rd_atomic = rows[i].depth;
        bed = bed_new_as(&config);
        packet = make(bed);
        request_put(bed, &packet, 0);
        if (rows[i].allowed) {
            resp_expect_placed(bed, RQ_PSN, 1);
        } else {
            resp_expect_nak(bed, RQ_PSN, INVALID);
        }
        bed_free(bed);
    }
}

/* And of the region the same. */
static void test_region_rights(void)
{
    static const uint32_t rights[] = {
        RDMA_HCA_ACCESS_LOCAL_WRITE | RDMA_HCA_ACCESS_REMOTE_WRITE,
        RDMA_HCA_ACCESS_LOCAL_WRITE | RDMA_HCA_ACCESS_REMOTE_READ |
            RDMA_HCA_ACCESS_REMOTE_ATOMIC | RDMA_HCA_ACCESS_FLUSH,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rights); i++) {
        Bed *bed = resp_new();
        Mr *mr = mr_new(bed->drv[1], bed->pair->pd[1], 0x10000, 4096,
                        rights[i]);
        HcaPacket packet = make(bed);

        packet.va = mr->va;
        packet.rkey = mr->key;
        request_put(bed, &packet, 0);
        if (i) {
            resp_expect_nak(bed, RQ_PSN, ACCESS);
        } else {
            uint64_t value;

            resp_expect_placed(bed, RQ_PSN, 1);
            mr_read(mr, 0, &value, sizeof(value));
            g_assert_cmphex(GUINT64_FROM_LE(value), ==, value_at(bed, 0));
        }
        bed_free(bed);
    }
}

/* A window lets it through; of a region whose bytes are elsewhere aligned, or
 * in two pieces, nothing can be written at once. */
static void test_places(void)
{
    for (unsigned i = 0; i < 3; i++) {
        Bed *bed = resp_new();
        Qp *qp[2];
        HcaPacket packet = make(bed);
        Mr *mr;

        pair_connect(bed->pair, NULL, qp);
        if (i == 0) {
            uint32_t window = mem_window_new(bed->drv[1], bed->pair->pd[1], 1);

            mr = mr_new(bed->drv[1], bed->pair->pd[1], 0x10000, 4096,
                        ACCESS_ALL | RDMA_HCA_ACCESS_MW_BIND);
            packet.rkey = mem_bind(qp[1], 1, window, mr, mr->va, 64,
                                   RDMA_HCA_ACCESS_REMOTE_WRITE);
        } else {
            /* Two pieces: of 4 bytes and the rest; or one, 4 bytes off. */
            uint64_t bus = mr_bus(bed->mr, -bed->mr->va & 7);
            MemPiece piece[] = {
                { bus + (i == 1 ? 0 : 4), i == 1 ? 4 : 64 },
                { bus + 64, 64 },
            };
            SendWr wr;

            mr = mem_pieces_new(bed->drv[1], bed->pair->pd[1], 2);
            mr->key = mem_next_key(mr->key);
            mr->va = 0x10000;
            wr = mem_reg_wr(mr, mem_piece_list_new(bed->drv[1], piece, 2),
                            mr->va, 64, ACCESS_ALL);
            mem_reg_unit(&wr)->entries = GUINT32_TO_LE(i == 1 ? 2 : 1);
            mem_do(qp[1], &wr, 0);
            packet.rkey = mr->key;
        }
        packet.va = mr->va;
        request_put(bed, &packet, 0);
        if (i == 0) {
            resp_expect_placed(bed, RQ_PSN, 1);
        } else {
            resp_expect_nak(bed, RQ_PSN, ACCESS);
        }
        bed_free(bed);
    }
}

/* Executed once: what was written since stays. Also when the key is gone. */
static void test_duplicate(void)
{
    Bed *bed = resp_new();
    HcaPacket first = make(bed);

    request_put(bed, &first, 0);
    resp_expect_placed(bed, RQ_PSN, 1);
    bed->psn++;
    for (unsigned i = 0; i < 3; i++) {
        mr_fill(bed->mr, -bed->mr->va & 7, i, 8);
        request_put(bed, &first, 0);
        resp_expect_placed(bed, RQ_PSN, 1);
        g_assert_cmphex(resp_atomic_word(bed), ==,
                        UINT64_C(0x0101010101010101) * i);
    }
    g_assert_cmphex(mr_deregister(bed->mr), ==, 0);
    request_put(bed, &first, 0);
    resp_expect_placed(bed, RQ_PSN, 1);
    bed_counted(bed, 1, "responder_atomic_writes", 1);
    bed_counted(bed, 1, "responder_duplicates", 4);
    g_assert_cmpuint(bed->hqp->state, ==, RDMA_HCA_QP_STATE_RTS);
    bed_free(bed);
}

/* Those of atomics in between find their own answers. */
static void test_among_atomics(void)
{
    Bed *bed = resp_new();
    HcaPacket packet[4];
    uint64_t old[4];

    for (unsigned i = 0; i < 4; i++) {
        packet[i] = i % 2 ? make(bed) : request_make_atomic(bed, HCA_FETCH_ADD);
        old[i] = resp_atomic_word(bed);
        request_put(bed, &packet[i], 0);
        bed->psn++;
        if (i % 2) {
            resp_expect_placed(bed, RQ_PSN + i, i + 1);
        } else {
            resp_expect_atomic(bed, RQ_PSN + i, old[i], i + 1);
        }
    }
    for (unsigned i = 0; i < 4; i++) {
        request_put(bed, &packet[i], 0);
        if (i % 2) {
            resp_expect_placed(bed, RQ_PSN + i, 4);
        } else {
            resp_expect_atomic(bed, RQ_PSN + i, old[i], 4);
        }
    }
    bed_free(bed);
}

/* In front of its turn, in the middle of a message: not executed. */
static void test_not_executed(void)
{
    Bed *bed = resp_new();
    HcaPacket packet = make(bed);
    uint64_t before = resp_atomic_word(bed);

    packet.psn = RQ_PSN + 1;
    request_put(bed, &packet, 0);
    resp_expect_nak(bed, RQ_PSN, HCA_AETH(HCA_AETH_NAK, HCA_NAK_PSN_SEQ));
    g_assert_cmphex(resp_atomic_word(bed), ==, before);
    resp_post_recv(bed, 1, 8192, 4096);
    request_send(bed, HCA_SEND_FIRST, BED_MTU);
    resp_expect_ack(bed, RQ_PSN, 0);
    request_put(bed, &packet, 0);
    resp_expect_nak(bed, RQ_PSN + 1, INVALID);
    g_assert_cmphex(resp_atomic_word(bed), ==, before);
    resp_expect_recv_error(bed, 1, SYNDROME(WR_FLUSH_ERR));
    bed_free(bed);
}

/* ---- both ---- */

/* A counter that never goes back, whatever the cable does. */
static void test_loss(void)
{
    enum {
        ROUNDS = 40,
        EACH = 8
    };
    BedConfig config = bed_connection(RDMA_HCA_QP_ST_RC);
    uint64_t next = 0;
    Bed *bed;

    config.attr.timeout = 10;
    config.attr.retry_cnt = 7;
    bed = bed_new_as(&config);
    for (unsigned round = 0; round < ROUNDS; round++) {
        Mr *to = bed->pair->mr[1];
        uint64_t at = -to->va & 7, value;

        bed_set_weather(
            bed, round % 2,
            (BedWeather) { .nth = 1 + round % 7,
                           .fate = round % 3 ? CABLE_DROP : CABLE_DUPLICATE });
        for (unsigned i = 0; i < EACH; i++) {
            SendWr *wr = bed_request(bed, i, ATOMIC_WRITE, 8);

            next++;
            value = GUINT64_TO_LE(next);
            mr_write(bed->pair->mr[0], 8 * i, &value, sizeof(value));
            bed->sge[i] = mr_sge(bed->pair->mr[0], 8 * i, 8);
            wr->raddr += at;
        }
        bed_post_requests(bed, EACH);
        for (unsigned i = 0; i < EACH; i++) {
            bed_expect_end(bed, 0, 0);
        }
        mr_read(to, at, &value, sizeof(value));
        g_assert_cmpuint(GUINT64_FROM_LE(value), ==, next);
    }
    bed_counted(bed, 1, "responder_atomic_writes", ROUNDS * EACH);
    g_assert_cmpuint(bed_counter(bed, 1, "responder_duplicates"), >, 0);
    bed_free(bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/atomic-write/request", test_request);
    test_add_each_link("/atomic-write/inline", test_inline);
    test_add_each_link("/atomic-write/gathered", test_gathered);
    test_add("/atomic-write/bad-length", test_bad_length);
    test_add("/atomic-write/bad-entry", test_bad_entry);
    test_add("/atomic-write/region-gone", test_region_gone);
    test_add_each_link("/atomic-write/retransmission", test_retransmission);
    test_add_each_link("/atomic-write/only-acknowledged",
                       test_only_acknowledged);
    test_add("/atomic-write/bad-answers", test_bad_answers);
    test_add("/atomic-write/limits", test_limits);
    test_add("/atomic-write/order", test_order);
    test_add("/atomic-write/no-depth", test_no_depth);
    test_add_each_link("/atomic-write/execute", test_execute);
    for (unsigned i = 0; i < G_N_ELEMENTS(refusals); i++) {
        test_add_data_each_link(
            test_named("/atomic-write/refused/%s", refusals[i].name),
            &refusals[i], test_refused);
    }
    test_add("/atomic-write/qp-rights", test_qp_rights);
    test_add("/atomic-write/region-rights", test_region_rights);
    test_add("/atomic-write/places", test_places);
    test_add_each_link("/atomic-write/duplicate", test_duplicate);
    test_add("/atomic-write/among-atomics", test_among_atomics);
    test_add("/atomic-write/not-executed", test_not_executed);
    test_add_each_link("/atomic-write/loss", test_loss);
    return g_test_run();
}
