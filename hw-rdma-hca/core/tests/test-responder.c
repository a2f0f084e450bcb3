/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The responder engine (engine document 4; IBA 9.7.4, 9.7.5, 9.8, 9.9.3),
 * packet by packet.
 *
 * Card 1 is the responder. Card 0 only lends its end of the cable: requests
 * are made up here and sent from there, whatever their PSN and opcode, and a
 * tap takes down what card 1 answers. Tests are named after the figures and
 * tables that they go through.
 */
#include <string.h>

#include "../responder/responder.h"
#include "../responder/units.h"
#include "lib-bed.h"

#define MTU BED_MTU
#define PSN BED_RQ_PSN

#define RC_OP(op) (HCA_BTH_RC << 5 | (op))
#define UC_OP(op) (HCA_BTH_UC << 5 | (op))
#define UD_OP(op) (HCA_BTH_UD << 5 | (op))
#define NAK(value) HCA_AETH(HCA_AETH_NAK, HCA_NAK_##value)
#define RNR(code) HCA_AETH(HCA_AETH_RNR, code)
#define RNR_CODE BED_RNR_CODE

static Bed *new_service(uint8_t service)
{
    BedConfig config = bed_responder(service);

    return bed_new_as(&config);
}

static Bed *new_rc(void)
{
    return new_service(RDMA_HCA_QP_ST_RC);
}

/* A request with the next PSN, of @op and the bed's service. */
static HcaPacket make(Bed *bed, uint8_t op, uint32_t len)
{
    static const uint8_t bth_service[] = {
        [RDMA_HCA_QP_ST_RC] = HCA_BTH_RC,
        [RDMA_HCA_QP_ST_UC] = HCA_BTH_UC,
        [RDMA_HCA_QP_ST_UD] = HCA_BTH_UD,
    };

    return (HcaPacket) {
        .opcode = bth_service[bed->service] << 5 | op,
        .ack_req = true,
        .dest_qp = bed->qp->qpn,
        .psn = bed->psn,
        .qkey = 0x11111111,
        .src_qp = 0x4321,
        .rkey = bed->mr->key,
        .va = bed->mr->va,
        .dma_len = len,
        .payload_len = len,
        .imm_be = 0x44332211,
    };
}

/* A Read of @len bytes at @offset of the region. */
static HcaPacket make_read(Bed *bed, uint32_t offset, uint32_t len)
{
    HcaPacket packet = make(bed, HCA_READ_REQUEST, len);

    packet.payload_len = 0;
    packet.va += offset;
    return packet;
}

/* An atomic on the first aligned 8 bytes of the region. */
static HcaPacket make_atomic(Bed *bed, uint8_t op)
{
    HcaPacket packet = make(bed, op, 0);

    packet.va = (packet.va + 7) & ~UINT64_C(7);
    return packet;
}

static void put_and_run(Bed *bed, HcaPacket *packet, uint32_t at)
{
    bed_put(bed, packet, at);
    lab_run(bed->lab);
}

/* Send one of @op with @len bytes from @at; the next has the next PSN. */
static void send_at(Bed *bed, uint8_t op, uint32_t at, uint32_t len)
{
    HcaPacket packet = make(bed, op, len);

    put_and_run(bed, &packet, at);
    bed->psn = hca_psn_add(bed->psn, 1);
}

static void send_op(Bed *bed, uint8_t op, uint32_t len)
{
    send_at(bed, op, 0, len);
}

/* Give the packet to the responder alone; its answer stays in the ring. */
static void give(Bed *bed, HcaPacket *packet, uint32_t at)
{
    packet->slid = bed->peer.slid;
    packet->pkey = HCA_DEFAULT_PKEY;
    packet->payload = bed->data + at;
    hca_responder_receive(bed->hca, bed->hqp, packet);
    bed->psn = hca_psn_add(packet->psn, 1);
}

/* Let the responder's card send what waits. */
static void run(Bed *bed)
{
    bed->lab->host[1].kicked = true;
    lab_run(bed->lab);
}

static void expect_ack(Bed *bed, uint32_t psn, uint32_t msn)
{
    g_autofree BedPacket *answer = bed_next(bed, HCA_ACK, psn);

    g_assert_cmphex(HCA_AETH_KIND(answer->packet.syndrome), ==, HCA_AETH_ACK);
    g_assert_cmphex(answer->packet.msn, ==, msn);
}

static void expect_nak(Bed *bed, uint32_t psn, uint8_t syndrome)
{
    g_autofree BedPacket *answer = bed_next(bed, HCA_ACK, psn);

    g_assert_cmphex(answer->packet.syndrome, ==, syndrome);
}

/* The responses to a Read of @len bytes at @offset, from @psn on. */
static void expect_read(Bed *bed, uint32_t psn, uint32_t offset, uint32_t len,
                        uint32_t msn)
{
    g_autofree uint8_t *want = g_malloc(len + 1);
    uint32_t done = 0;

    mr_read(bed->mr, offset, want, len);
    do {
        uint32_t n = MIN(len - done, MTU);
        bool last = done + n == len;
        uint8_t op = last ? HCA_READ_RESP_LAST : HCA_READ_RESP_MIDDLE;
        g_autofree BedPacket *answer = NULL;

        if (!done) {
            op = last ? HCA_READ_RESP_ONLY : HCA_READ_RESP_FIRST;
        }
        answer = bed_next(bed, op, psn);
        g_assert_cmpmem(answer->data, answer->packet.payload_len, want + done,
                        n);
        if (op != HCA_READ_RESP_MIDDLE) {
            g_assert_cmphex(answer->packet.msn, ==, msn);
        }
        psn = hca_psn_add(psn, 1);
        done += n;
    } while (done < len);
}

/* The QP has broken, with this event (0: none of its own). */
static void expect_broken(Bed *bed, uint8_t event)
{
    static const uint8_t events[] = {
        RDMA_HCA_EVENT_WQ_CATAS_ERROR,
        RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR,
        RDMA_HCA_EVENT_WQ_ACCESS_ERROR,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(events); i++) {
        struct rdma_hca_eqe eqe;

        if (events[i] == event) {
            g_assert_true(driver_event(bed->drv[1], event, &eqe));
            g_assert_cmphex(GUINT32_FROM_LE(eqe.qp.qpn), ==, bed->qp->qpn);
        }
        g_assert_cmpuint(driver_count_events(bed->drv[1], events[i]), ==, 0);
    }
    g_assert_cmpuint(bed->hqp->state, ==, RDMA_HCA_QP_STATE_ERR);
}

static void expect_region(Bed *bed, uint32_t offset, uint32_t at, uint32_t len)
{
    g_autofree uint8_t *got = g_malloc(len + 1);

    mr_read(bed->mr, offset, got, len);
    g_assert_cmpmem(got, len, bed->data + at, len);
}

static void post_recv(Bed *bed, uint64_t wr_id, uint64_t at, uint32_t len)
{
    pair_post_recv(bed->pair, 1, bed->qp, wr_id, at, len);
}

static void expect_recv(Bed *bed, uint64_t wr_id, uint8_t opcode,
                        uint32_t byte_len)
{
    Wc wc;

    cq_expect(bed->cq, &wc, wr_id, 0);
    g_assert_false(wc.is_send);
    g_assert_cmphex(wc.opcode, ==, opcode);
    g_assert_cmpuint(wc.byte_len, ==, byte_len);
    g_assert_cmphex(wc.qpn, ==, bed->qp->qpn);
    g_assert_cmphex(wc.rlid, ==, bed->peer.slid);
}

static void expect_recv_error(Bed *bed, uint64_t wr_id, uint8_t syndrome)
{
    Wc wc;

    cq_expect(bed->cq, &wc, wr_id, syndrome);
    g_assert_cmphex(wc.opcode, ==, RDMA_HCA_OPCODE_INVALID);
}

/* ---- figure 4.3: header checks ---- */

static void test_state(void)
{
    BedConfig config = bed_responder(RDMA_HCA_QP_ST_RC);
    Bed *bed;

    config.stay_in_rtr = true;
    bed = bed_new_as(&config);
    post_recv(bed, 1, 0, 4096);
    post_recv(bed, 2, 0, 4096);
    send_op(bed, HCA_SEND_ONLY, 10);
    expect_ack(bed, PSN, 1);
    expect_recv(bed, 1, RC_OP(HCA_SEND_ONLY), 10);
    g_assert_cmpuint(driver_count_events(bed->drv[1], RDMA_HCA_EVENT_COMM_EST),
                     ==, 1);
    g_assert_cmphex(qp_to_err(bed->qp), ==, 0);
    expect_recv_error(bed, 2, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    send_op(bed, HCA_SEND_ONLY, 10);
    bed_expect_drops(bed, HCA_DROP_QP_STATE, 1);
    g_assert_cmphex(qp_to_rst(bed->qp), ==, 0);
    send_op(bed, HCA_SEND_ONLY, 10);
    bed_expect_drops(bed, HCA_DROP_QPN, 1);
    bed_free(bed);
}

static void test_service(void)
{
    Bed *bed = new_rc();
    HcaPacket packet = make(bed, HCA_SEND_ONLY, 0);

    packet.opcode = UC_OP(HCA_SEND_ONLY);
    put_and_run(bed, &packet, 0);
    packet.opcode = UD_OP(HCA_SEND_ONLY);
    put_and_run(bed, &packet, 0);
    bed_expect_drops(bed, HCA_DROP_SERVICE, 2);
    bed_free(bed);
}

static void test_pkey(void)
{
    static const struct {
        uint16_t packet, qp;
        bool match;
    } c[] = {
        { 0xffff, 0xffff, true },  { 0x7fff, 0xffff, true },
        { 0xffff, 0x7fff, true },  { 0x7fff, 0x7fff, false },
        { 0xfffe, 0xffff, false }, { 0x8000, 0xffff, false },
        { 0x8001, 0x0001, true },  { 0x0001, 0x0001, false },
        { 0x8000, 0x8000, false }, /* no partition */
        { 0x8000, 0x0000, false },
    };
    Bed *bed = new_rc();
    uint64_t dropped = 0;
    unsigned matches = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(c); i++) {
        uint32_t psn = bed->psn;

        bed->peer.pkey = c[i].packet;
        bed->hca->port->pkeys[0] = c[i].qp;
        send_op(bed, HCA_WRITE_ONLY, 0);
        if (c[i].match) {
            expect_ack(bed, psn, ++matches);
        } else {
            bed->psn = psn;
            bed_expect_drops(bed, HCA_DROP_PKEY, ++dropped);
        }
    }
    bed_free(bed);
}

static void test_source(void)
{
    Bed *bed = new_rc();

    bed->peer.slid = 0x77;
    send_op(bed, HCA_WRITE_ONLY, 0);
    bed_expect_drops(bed, HCA_DROP_SOURCE, 1);
    bed_free(bed);
}

/* A GRH has to be for the port and, if the QP knows, from its peer. */
static void test_gid(void)
{
    Bed *bed = new_rc();

    bed->peer.has_grh = true;
    send_op(bed, HCA_WRITE_ONLY, 0);
    bed_expect_drops(bed, HCA_DROP_LID, 1);
    bed->psn = PSN;
    driver_gid(bed->drv[1], bed->peer.dgid.raw);
    send_op(bed, HCA_WRITE_ONLY, 0); /* the QP's path has none */
    expect_ack(bed, PSN, 1);
    bed->hqp->attr.path.grh = true;
    send_op(bed, HCA_WRITE_ONLY, 0);
    bed_expect_drops(bed, HCA_DROP_SOURCE, 1);
    bed->psn = PSN + 1;
    bed->hqp->attr.path.dgid = bed->peer.sgid;
    send_op(bed, HCA_WRITE_ONLY, 0);
    expect_ack(bed, PSN + 1, 2);
    bed_free(bed);
}

static void test_qkey(void)
{
    Bed *bed = new_service(RDMA_HCA_QP_ST_UD);
    HcaPacket packet = make(bed, HCA_SEND_ONLY, 8);

    post_recv(bed, 1, 0, 4096);
    packet.qkey++;
    put_and_run(bed, &packet, 0);
    bed_expect_drops(bed, HCA_DROP_QKEY, 1);
    bed_expect_none(bed);
    bed_free(bed);
}

/* An opcode that RC does not know is refused in its turn only. */
static void test_opcode_rc(void)
{
    Bed *bed = new_rc();
    uint8_t op = HCA_SEND_ONLY_INV + 1;

    bed->psn = hca_psn_add(PSN, 1);
    send_op(bed, op, 0);
    expect_nak(bed, PSN, NAK(PSN_SEQ));
    bed->psn = hca_psn_add(PSN, HCA_PSN_MASK);
    send_op(bed, op, 0);
    expect_ack(bed, PSN - 1, 0);
    g_assert_cmpuint(bed->hqp->state, ==, RDMA_HCA_QP_STATE_RTS);
    send_op(bed, op, 0);
    expect_nak(bed, PSN, NAK(INVALID_REQUEST));
    expect_broken(bed, RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR);
    bed_free(bed);
}

/* Operations that RC does not have: the same, wherever in a message. */
static void test_opcode_reserved(void)
{
    static const uint8_t op[] = { 0x15, 0x18, 0x1f };

    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(op); i++) {
        Bed *bed = new_rc();

        if (i % 2) {
            HcaPacket packet = make(bed, HCA_WRITE_FIRST, MTU);

            packet.dma_len = 2 * MTU;
            put_and_run(bed, &packet, 0);
            expect_ack(bed, PSN, 0);
        }
        bed->psn = PSN + 5;
        send_op(bed, op[i / 2], 60);
        expect_nak(bed, PSN + i % 2, NAK(PSN_SEQ));
        bed->psn = PSN + i % 2;
        send_op(bed, op[i / 2], 60);
        expect_nak(bed, PSN + i % 2, NAK(INVALID_REQUEST));
        expect_broken(bed, RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR);
        bed_free(bed);
    }
}

/* Send with Invalidate on the cable: its last packet, of no key, is refused. */
static void test_send_invalidate(void)
{
    Bed *bed = new_rc();

    post_recv(bed, 1, 0, 4096);
    send_op(bed, HCA_SEND_FIRST, MTU);
    expect_ack(bed, PSN, 0);
    send_op(bed, HCA_SEND_LAST_INV, 8);
    expect_nak(bed, PSN + 1, NAK(REMOTE_ACCESS));
    expect_recv_error(bed, 1, RDMA_HCA_SYNDROME_REMOTE_INVAL_REQ_ERR);
    bed_expect_state(bed, RDMA_HCA_QP_STATE_ERR);
    bed_free(bed);
}

/* Table A1-1: INIT and ERR take no packet; SQD and SQE receive like RTS. */
static void test_states(void)
{
    static const struct {
        uint8_t state;
        bool receives;
    } c[] = {
        { RDMA_HCA_QP_STATE_INIT, false }, { RDMA_HCA_QP_STATE_RTR, true },
        { RDMA_HCA_QP_STATE_RTS, true },   { RDMA_HCA_QP_STATE_SQD, true },
        { RDMA_HCA_QP_STATE_SQE, true },   { RDMA_HCA_QP_STATE_ERR, false },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(c); i++) {
        Bed *bed = new_service(RDMA_HCA_QP_ST_UC);

        post_recv(bed, 1, 0, 64);
        bed->hqp->state = c[i].state;
        send_op(bed, HCA_SEND_ONLY, 8);
        bed_expect_drops(bed, HCA_DROP_QP_STATE, !c[i].receives);
        if (c[i].receives) {
            expect_recv(bed, 1, UC_OP(HCA_SEND_ONLY), 8);
        } else {
            bed_expect_none(bed);
        }
        bed->hqp->state = RDMA_HCA_QP_STATE_RTS;
        bed_free(bed);
    }
}

/* COMM_EST: once, of a connected QP in RTR, for a packet that it takes. */
static void test_comm_est(void)
{
    for (unsigned service = 0; service <= RDMA_HCA_QP_ST_UD; service++) {
        BedConfig config = bed_responder(RDMA_HCA_QP_ST_RC);
        struct rdma_hca_eqe eqe;
        Bed *bed;

        if (service == RDMA_HCA_QP_ST_RD) {
            continue;
        }
        config.service = service;
        config.stay_in_rtr = true;
        bed = bed_new_as(&config);
        bed->peer.pkey = 0x8001;
        send_op(bed, HCA_SEND_ONLY, 1);
        bed->peer.pkey = HCA_DEFAULT_PKEY;
        bed->psn = PSN;
        g_assert_false(
            driver_event(bed->drv[1], RDMA_HCA_EVENT_COMM_EST, &eqe));
        for (unsigned i = 0; i < 3; i++) {
            post_recv(bed, i, 0, 64);
            send_op(bed, HCA_SEND_ONLY, 1);
        }
        if (service != RDMA_HCA_QP_ST_UD) {
            g_assert_true(
                driver_event(bed->drv[1], RDMA_HCA_EVENT_COMM_EST, &eqe));
            g_assert_cmphex(GUINT32_FROM_LE(eqe.qp.qpn), ==, bed->qp->qpn);
        }
        g_assert_false(
            driver_event(bed->drv[1], RDMA_HCA_EVENT_COMM_EST, &eqe));
        g_queue_clear_full(&bed->heard, g_free);
        bed_free(bed);
    }
}

/* ---- figure 4.2: PSN regions ---- */

static void test_ahead(void)
{
    Bed *bed = new_rc();

    post_recv(bed, 1, 0, 4096);
    for (unsigned i = 0; i < 3; i++) {
        bed->psn = hca_psn_add(PSN, 1 + i);
        send_op(bed, HCA_SEND_ONLY, 4);
    }
    expect_nak(bed, PSN, NAK(PSN_SEQ));
    bed_expect_quiet(bed);
    bed_expect_drops(bed, HCA_DROP_PSN, 2);
    bed->psn = PSN;
    send_op(bed, HCA_SEND_ONLY, 4);
    expect_ack(bed, PSN, 1);
    expect_recv(bed, 1, RC_OP(HCA_SEND_ONLY), 4);
    bed->psn = hca_psn_add(PSN, 2);
    send_op(bed, HCA_SEND_ONLY, 4);
    expect_nak(bed, hca_psn_add(PSN, 1), NAK(PSN_SEQ));
    bed_free(bed);
}

/* The circle is cut half way round. */
static void test_regions(void)
{
    Bed *bed = new_rc();

    bed->psn = (PSN - 0x800000) & HCA_PSN_MASK;
    send_op(bed, HCA_WRITE_ONLY, 0);
    expect_ack(bed, PSN - 1, 0);
    bed->psn = (PSN - 1) & HCA_PSN_MASK;
    send_op(bed, HCA_WRITE_ONLY, 0);
    expect_ack(bed, PSN - 1, 0);
    bed->psn = hca_psn_add(PSN, 0x7fffff);
    send_op(bed, HCA_WRITE_ONLY, 0);
    expect_nak(bed, PSN, NAK(PSN_SEQ));
    g_assert_cmpuint(card_counter(bed->hca, "responder_duplicates"), ==, 2);
    bed_free(bed);
}

static void test_duplicate_send(void)
{
    Bed *bed = new_rc();

    post_recv(bed, 1, 0, 4096);
    post_recv(bed, 2, 0, 4096);
    send_op(bed, HCA_SEND_ONLY, 100);
    expect_ack(bed, PSN, 1);
    expect_recv(bed, 1, RC_OP(HCA_SEND_ONLY), 100);
    send_op(bed, HCA_WRITE_ONLY, 100);
    expect_ack(bed, PSN + 1, 2);
    bed->psn = PSN;
    send_at(bed, HCA_SEND_ONLY, 1000, 100);
    expect_ack(bed, PSN + 1, 2);
    send_at(bed, HCA_WRITE_ONLY, 1000, 100);
    expect_ack(bed, PSN + 1, 2);
    bed_expect_none(bed);
    expect_region(bed, 0, 0, 100);
    bed_free(bed);
}

static void test_duplicate_read(void)
{
    Bed *bed = new_rc();
    HcaPacket packet;

    packet = make_read(bed, 5, 3 * MTU + 7);
    put_and_run(bed, &packet, 0);
    expect_read(bed, PSN, 5, 3 * MTU + 7, 1);
    /* Whole, and from its second packet on. */
    put_and_run(bed, &packet, 0);
    expect_read(bed, PSN, 5, 3 * MTU + 7, 1);
    bed->psn = PSN + 1;
    packet = make_read(bed, 5 + MTU, 2 * MTU + 7);
    put_and_run(bed, &packet, 0);
    expect_read(bed, PSN + 1, 5 + MTU, 2 * MTU + 7, 1);
    /* Beyond what was asked for. */
    packet = make_read(bed, 5, 3 * MTU + 1);
    put_and_run(bed, &packet, 0);
    bed_expect_drops(bed, HCA_DROP_DUPLICATE, 1);
    /* A ghost whose memory is gone harms nobody. */
    packet = make_read(bed, 5, MTU);
    packet.rkey ^= 0x100;
    put_and_run(bed, &packet, 0);
    bed_expect_drops(bed, HCA_DROP_ACCESS, 1);
    g_assert_cmpuint(bed->hqp->state, ==, RDMA_HCA_QP_STATE_RTS);
    bed_free(bed);
}

static uint64_t counter(Bed *bed)
{
    uint64_t value;

    mr_read(bed->mr, -bed->mr->va & 7, &value, sizeof(value));
    return GUINT64_FROM_LE(value);
}

static void expect_atomic(Bed *bed, uint32_t psn, uint64_t old, uint32_t msn)
{
    g_autofree BedPacket *answer = bed_next(bed, HCA_ATOMIC_ACK, psn);

    g_assert_cmphex(answer->packet.atomic_ack, ==, old);
    g_assert_cmphex(answer->packet.msn, ==, msn);
}

static void repeat_atomics(unsigned n)
{
    BedConfig config = bed_responder(RDMA_HCA_QP_ST_RC);
    HcaPacket packet;
    Bed *bed;

    config.attr.max_dest_rd_atomic = n;
    bed = bed_new_as(&config);
    for (unsigned i = 0; i < 20; i++) {
        packet = make_atomic(bed, HCA_FETCH_ADD);
        packet.swap_add = 10;
        put_and_run(bed, &packet, 0);
        expect_atomic(bed, bed->psn, 10 * i, i + 1);
        bed->psn = hca_psn_add(bed->psn, 1);
    }
    for (unsigned i = 0; i < 20; i++) {
        bed->psn = hca_psn_add(PSN, i);
        packet = make_atomic(bed, HCA_FETCH_ADD);
        packet.swap_add = 10;
        put_and_run(bed, &packet, 0);
        if (i >= 20 - n) {
            expect_atomic(bed, bed->psn, 10 * i, 20);
        }
    }
    bed_expect_drops(bed, HCA_DROP_DUPLICATE, 20 - n);
    g_assert_cmpuint(counter(bed), ==, 200);
    bed_free(bed);
}

/* The replay store has a slot for each that the peer may have outstanding. */
static void test_duplicate_atomic(void)
{
    repeat_atomics(1);
    repeat_atomics(4);
    repeat_atomics(HCA_MAX_RD_ATOMIC);
}

/* A Read, a Write or nothing had this PSN: there is nothing to replay. */
static void test_duplicate_no_atomic(void)
{
    Bed *bed = new_rc();
    HcaPacket packet = make_atomic(bed, HCA_FETCH_ADD);

    packet.swap_add = 1;
    put_and_run(bed, &packet, 0);
    expect_atomic(bed, PSN, 0, 1);
    bed->psn = PSN + 1;
    send_op(bed, HCA_WRITE_ONLY, 0);
    expect_ack(bed, PSN + 1, 2);
    for (int i = -1; i <= 1; i += 2) {
        packet = make_atomic(bed, HCA_FETCH_ADD);
        packet.psn = PSN + i;
        packet.swap_add = 1;
        put_and_run(bed, &packet, 0);
        bed_expect_quiet(bed);
    }
    bed_expect_drops(bed, HCA_DROP_DUPLICATE, 2);
    g_assert_cmpuint(counter(bed), ==, 1);
    bed_free(bed);
}

/* Answers that are still to come are not queued twice. */
static void test_duplicate_pending(void)
{
    Bed *bed = new_rc();
    HcaPacket packet = make_read(bed, 0, 3 * MTU);

    give(bed, &packet, 0);
    give(bed, &packet, 0);
    bed_expect_drops(bed, HCA_DROP_DUPLICATE, 1);
    g_assert_true(hca_responder_send(bed->hca, bed->hqp, 1));
    /* Its first packet has gone: that is sent again, once. */
    for (unsigned i = 0; i < 6; i++) {
        bed->psn = PSN;
        packet = make_read(bed, 0, MTU);
        give(bed, &packet, 0);
    }
    bed_expect_drops(bed, HCA_DROP_DUPLICATE, 1 + 5);
    g_assert_cmpuint(hca_resp_duplicates(bed->hqp), ==, 1);
    run(bed);
    expect_read(bed, PSN, 0, 3 * MTU, 1);
    expect_read(bed, PSN, 0, MTU, 1);
    bed_free(bed);
}

/* ---- figure 4.5: Send ---- */

/* Entries are filled one after the other, across packets. */
static void test_scatter(void)
{
    static const struct {
        uint32_t at, len;
    } entry[] = { { 0, 100 }, { 1000, 256 }, { 3000, 1 }, { 4000, 400 } };
    Bed *bed = new_rc();
    Sge sge[G_N_ELEMENTS(entry)];
    RecvWr wr = { .wr_id = 7, .nsge = G_N_ELEMENTS(entry), .sge = sge };
    uint32_t done = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(entry); i++) {
        sge[i] = mr_sge(bed->mr, entry[i].at, entry[i].len);
    }
    g_assert_true(qp_post_recv(bed->qp, &wr, 1));
    send_at(bed, HCA_SEND_FIRST, 0, MTU);
    expect_ack(bed, PSN, 0);
    send_at(bed, HCA_SEND_MIDDLE, MTU, MTU);
    expect_ack(bed, PSN + 1, 0);
    bed_expect_none(bed);
    send_at(bed, HCA_SEND_LAST_IMM, 2 * MTU, 245);
    expect_ack(bed, PSN + 2, 1);
    expect_recv(bed, 7, RC_OP(HCA_SEND_LAST_IMM), 2 * MTU + 245);
    for (unsigned i = 0; i < G_N_ELEMENTS(entry); i++) {
        expect_region(bed, entry[i].at, done, entry[i].len);
        done += entry[i].len;
    }
    g_assert_cmpuint(done, ==, 2 * MTU + 245);
    bed_free(bed);
}

/* First and Middle: ENTRY_UPDATE when room is left in the entry... */
static void test_entry_update(void)
{
    Bed *bed = new_rc();
    const HcaRecvWqe *wqe = &bed->hqp->resp.wqe;

    post_recv(bed, 1, 0, 3 * MTU);
    send_at(bed, HCA_SEND_FIRST, 0, MTU);
    expect_ack(bed, PSN, 0);
    g_assert_cmpuint(wqe->sge_at, ==, 0);
    g_assert_cmpuint(wqe->sge[0].len - wqe->sge_done, ==, 2 * MTU);
    g_assert_cmphex(wqe->sge[0].va + wqe->sge_done, ==, bed->mr->va + MTU);
    send_at(bed, HCA_SEND_LAST, MTU, 10);
    expect_ack(bed, PSN + 1, 1);
    expect_recv(bed, 1, RC_OP(HCA_SEND_LAST), MTU + 10);
    expect_region(bed, 0, 0, MTU + 10);
    bed_free(bed);
}

/* ...and ENTRY_RELEASE when there is none. */
static void test_entry_release(void)
{
    Bed *bed = new_rc();
    const HcaResponder *resp = &bed->hqp->resp;
    Sge sge[3] = { mr_sge(bed->mr, 0, MTU), mr_sge(bed->mr, 4000, MTU),
                   mr_sge(bed->mr, 8000, 5) };
    RecvWr wr = { .wr_id = 1, .nsge = 3, .sge = sge };

    g_assert_true(qp_post_recv(bed->qp, &wr, 1));
    send_at(bed, HCA_SEND_FIRST, 0, MTU);
    expect_ack(bed, PSN, 0);
    g_assert_cmpuint(resp->wqe.sge_at, ==, 1);
    send_at(bed, HCA_SEND_MIDDLE, MTU, MTU);
    expect_ack(bed, PSN + 1, 0);
    g_assert_cmpuint(resp->wqe.sge_at, ==, 2);
    g_assert_true(resp->wqe_valid);
    send_at(bed, HCA_SEND_LAST, 2 * MTU, 5);
    expect_ack(bed, PSN + 2, 1);
    g_assert_false(resp->wqe_valid); /* WQE_RELEASE */
    expect_recv(bed, 1, RC_OP(HCA_SEND_LAST), 2 * MTU + 5);
    expect_region(bed, 4000, MTU, MTU);
    expect_region(bed, 8000, 2 * MTU, 5);
    bed_free(bed);
}

static void test_send_zero(void)
{
    Bed *bed = new_rc();
    RecvWr wr = { .wr_id = 3 };

    g_assert_true(qp_post_recv(bed->qp, &wr, 1));
    send_op(bed, HCA_SEND_ONLY, 0);
    expect_ack(bed, PSN, 1);
    expect_recv(bed, 3, RC_OP(HCA_SEND_ONLY), 0);
    bed_free(bed);
}

/* Not ready: EPSN stays, silence until the packet comes again. */
static void test_rnr(void)
{
    Bed *bed = new_rc();

    send_op(bed, HCA_SEND_ONLY, 4);
    expect_nak(bed, PSN, RNR(RNR_CODE));
    send_op(bed, HCA_SEND_ONLY, 4);
    bed_expect_quiet(bed);
    bed_expect_drops(bed, HCA_DROP_PSN, 1);
    bed->psn = PSN;
    send_op(bed, HCA_SEND_ONLY, 4);
    expect_nak(bed, PSN, RNR(RNR_CODE));
    post_recv(bed, 1, 0, 64);
    bed->psn = PSN;
    send_op(bed, HCA_SEND_ONLY, 4);
    expect_ack(bed, PSN, 1);
    expect_recv(bed, 1, RC_OP(HCA_SEND_ONLY), 4);
    bed_counted(bed, 1, "responder_rnrs_tx", 2);
    bed_free(bed);
}

static void test_send_too_long(void)
{
    Bed *bed = new_rc();

    post_recv(bed, 1, 0, MTU + 10);
    post_recv(bed, 2, 0, MTU + 10);
    send_op(bed, HCA_SEND_FIRST, MTU);
    expect_ack(bed, PSN, 0);
    send_op(bed, HCA_SEND_LAST, 11);
    expect_nak(bed, PSN + 1, NAK(INVALID_REQUEST));
    expect_recv_error(bed, 1, RDMA_HCA_SYNDROME_LOCAL_LENGTH_ERR);
    expect_recv_error(bed, 2, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    expect_broken(bed, 0);
    bed_free(bed);
}

static void test_send_bad_entry(void)
{
    Bed *bed = new_rc();
    Sge sge = mr_sge(bed->mr, 0, 100);
    RecvWr wr = { .wr_id = 1, .nsge = 1, .sge = &sge };

    sge.lkey ^= 0x100;
    g_assert_true(qp_post_recv(bed->qp, &wr, 1));
    send_op(bed, HCA_SEND_ONLY, 10);
    expect_nak(bed, PSN, NAK(REMOTE_OP));
    expect_recv_error(bed, 1, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR);
    expect_broken(bed, 0);
    bed_free(bed);
}

/* The completion queue is full: what was received cannot be told. */
static void test_cq_overrun(void)
{
    BedConfig config = bed_responder(RDMA_HCA_QP_ST_RC);
    Bed *bed;

    config.log_cq = 0;
    bed = bed_new_as(&config);
    post_recv(bed, 1, 0, 64);
    post_recv(bed, 2, 0, 64);
    send_op(bed, HCA_SEND_ONLY, 1);
    expect_ack(bed, PSN, 1);
    send_op(bed, HCA_SEND_ONLY, 1);
    expect_nak(bed, PSN + 1, NAK(REMOTE_OP));
    g_assert_cmpuint(driver_count_events(bed->drv[1], RDMA_HCA_EVENT_CQ_ERROR),
                     ==, 1);
    expect_broken(bed, RDMA_HCA_EVENT_WQ_CATAS_ERROR);
    bed_free(bed);
}

/* Answers that were owed before are given, and then the NAK. */
static void test_cq_overrun_owing(void)
{
    BedConfig config = bed_responder(RDMA_HCA_QP_ST_RC);
    HcaPacket packet;
    Bed *bed;

    config.log_cq = 0;
    bed = bed_new_as(&config);
    post_recv(bed, 1, 0, 64);
    post_recv(bed, 2, 0, 64);
    send_op(bed, HCA_SEND_ONLY, 1);
    expect_ack(bed, PSN, 1);
    packet = make_read(bed, 0, MTU + 1);
    give(bed, &packet, 0);
    bed->psn = hca_psn_add(PSN, 3);
    packet = make_atomic(bed, HCA_FETCH_ADD);
    give(bed, &packet, 0);
    packet = make(bed, HCA_SEND_ONLY, 1);
    give(bed, &packet, 0);
    g_assert_cmphex(bed->hqp->state, ==, RDMA_HCA_QP_STATE_ERR);
    run(bed);
    expect_read(bed, PSN + 1, 0, MTU + 1, 2);
    g_free(bed_next(bed, HCA_ATOMIC_ACK, PSN + 3));
    expect_nak(bed, PSN + 4, NAK(REMOTE_OP));
    expect_broken(bed, RDMA_HCA_EVENT_WQ_CATAS_ERROR);
    bed_free(bed);
}

static void test_solicited(void)
{
    Bed *bed = new_rc();
    Driver *drv = bed->drv[1];

    post_recv(bed, 1, 0, 64);
    post_recv(bed, 2, 0, 64);
    driver_count_events(drv, RDMA_HCA_EVENT_COMP);
    cq_arm(bed->cq, true);
    for (unsigned i = 0; i < 2; i++) {
        HcaPacket packet = make(bed, HCA_SEND_ONLY, 1);

        packet.solicited = i;
        put_and_run(bed, &packet, 0);
        expect_ack(bed, bed->psn, i + 1);
        bed->psn++;
        g_assert_cmpuint(driver_count_events(drv, RDMA_HCA_EVENT_COMP), ==, i);
    }
    bed_free(bed);
}

/* ---- figure 4.6: Write ---- */

static void test_write(void)
{
    Bed *bed = new_rc();
    HcaPacket packet = make(bed, HCA_WRITE_FIRST, MTU);

    packet.va += 33;
    packet.dma_len = 2 * MTU + 3;
    put_and_run(bed, &packet, 0);
    expect_ack(bed, PSN, 0);
    bed->psn++;
    send_at(bed, HCA_WRITE_MIDDLE, MTU, MTU);
    expect_ack(bed, PSN + 1, 0);
    send_at(bed, HCA_WRITE_LAST, 2 * MTU, 3);
    expect_ack(bed, PSN + 2, 1);
    expect_region(bed, 33, 0, 2 * MTU + 3);
    send_at(bed, HCA_WRITE_ONLY, 5000, MTU);
    expect_ack(bed, PSN + 3, 2);
    expect_region(bed, 0, 5000, MTU);
    bed_expect_none(bed);
    bed_free(bed);
}

/* Acknowledged only when asked. */
static void test_ack_req(void)
{
    Bed *bed = new_rc();
    HcaPacket packet = make(bed, HCA_WRITE_ONLY, 4);

    packet.ack_req = false;
    put_and_run(bed, &packet, 0);
    bed_expect_quiet(bed);
    bed->psn++;
    send_op(bed, HCA_WRITE_ONLY, 4);
    expect_ack(bed, PSN + 1, 2);
    bed_free(bed);
}

static void test_write_imm(void)
{
    Bed *bed = new_rc();
    HcaPacket packet = make(bed, HCA_WRITE_FIRST, MTU);
    static const uint8_t zero[5];
    uint8_t got[5];

    packet.dma_len = MTU + 5;
    put_and_run(bed, &packet, 0);
    expect_ack(bed, PSN, 0);
    bed->psn++;
    send_at(bed, HCA_WRITE_LAST_IMM, MTU, 5);
    expect_nak(bed, PSN + 1, RNR(RNR_CODE));
    mr_read(bed->mr, MTU, got, sizeof(got));
    g_assert_cmpmem(got, sizeof(got), zero, sizeof(zero));
    post_recv(bed, 1, 9000, 1);
    bed->psn = PSN + 1;
    send_at(bed, HCA_WRITE_LAST_IMM, MTU, 5);
    expect_ack(bed, PSN + 1, 1);
    expect_recv(bed, 1, RC_OP(HCA_WRITE_LAST_IMM), MTU + 5);
    expect_region(bed, 0, 0, MTU + 5);
    bed_free(bed);
}

typedef struct RefusedCase {
    const char *name;
    uint8_t op;
    uint32_t key_xor;
    uint64_t va_add;
    uint32_t dma_len;
    uint8_t nak;
    uint8_t event;
} RefusedCase;

#define ACCESS NAK(REMOTE_ACCESS), RDMA_HCA_EVENT_WQ_ACCESS_ERROR
#define INVALID NAK(INVALID_REQUEST), RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR

static const RefusedCase refused[] = {
    { "write-key", HCA_WRITE_ONLY, 0x100, 0, 8, ACCESS },
    { "write-below", HCA_WRITE_ONLY, 0, -1ull, 8, ACCESS },
    { "write-above", HCA_WRITE_ONLY, 0, BED_AREA - 7, 8, ACCESS },
    { "write-wrap", HCA_WRITE_ONLY, 0, 1ull << 63, 8, ACCESS },
    { "write-total", HCA_WRITE_FIRST, 0, 0, BED_AREA + 1, ACCESS },
    { "write-too-long", HCA_WRITE_FIRST, 0, 0, 0x80000001, INVALID },
    { "write-imm-key", HCA_WRITE_ONLY_IMM, 0x100, 0, 8, ACCESS },
    { "read-key", HCA_READ_REQUEST, 0x100, 0, 8, ACCESS },
    { "read-above", HCA_READ_REQUEST, 0, 1, BED_AREA, ACCESS },
    { "read-too-long", HCA_READ_REQUEST, 0, 0, 0x80000001, INVALID },
    { "atomic-key", HCA_FETCH_ADD, 0x100, 0, 0, ACCESS },
    { "atomic-above", HCA_CMP_SWAP, 0, BED_AREA, 0, ACCESS },
    { "atomic-alignment", HCA_FETCH_ADD, 0, 4, 0, INVALID },
};

/* The NAK, the event, the flush, and no memory touched. */
static void test_refused(const void *opaque)
{
    const RefusedCase *c = opaque;
    Bed *bed = new_rc();
    g_autofree uint8_t *image = mr_image(bed->mr);
    HcaPacket packet = make_atomic(bed, c->op);

    post_recv(bed, 1, 0, 64);
    post_recv(bed, 2, 0, 64);
    packet.va += c->va_add;
    packet.rkey ^= c->key_xor;
    packet.dma_len = c->dma_len;
    if (hca_operation(c->op)->kind == HCA_REQUEST_WRITE) {
        packet.va += bed->mr->va - make_atomic(bed, c->op).va;
        packet.payload_len = MIN(c->dma_len, MTU);
    }
    put_and_run(bed, &packet, 0);
    expect_nak(bed, PSN, c->nak);
    expect_recv_error(bed, 1, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    expect_recv_error(bed, 2, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    expect_broken(bed, c->event);
    mr_check_image(bed->mr, image);
    bed_free(bed);
}

static void test_not_enabled(void)
{
    static const uint8_t op[] = { HCA_WRITE_ONLY, HCA_READ_REQUEST,
                                  HCA_CMP_SWAP, HCA_FETCH_ADD };
    BedConfig config = bed_responder(RDMA_HCA_QP_ST_RC);

    config.attr.access = RDMA_HCA_ACCESS_LOCAL_WRITE;
    for (unsigned i = 0; i < G_N_ELEMENTS(op); i++) {
        Bed *bed = bed_new_as(&config);

        send_op(bed, op[i], 0);
        expect_nak(bed, PSN, NAK(INVALID_REQUEST));
        expect_broken(bed, RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR);
        bed_free(bed);
    }
}

/* A length of 0: whatever the key (IBA 9.7.4.1.7). */
static void test_zero_length(void)
{
    Bed *bed = new_rc();
    HcaPacket packet = make(bed, HCA_WRITE_ONLY, 0);

    packet.rkey = 0xdead;
    packet.va = 0;
    put_and_run(bed, &packet, 0);
    expect_ack(bed, PSN, 1);
    bed->psn++;
    packet = make_read(bed, 0, 0);
    packet.rkey = 0xdead;
    put_and_run(bed, &packet, 0);
    expect_read(bed, PSN + 1, 0, 0, 2);
    bed_free(bed);
}

/* ---- figure 4.7: Read; atomics ---- */

static void test_read(void)
{
    static const uint32_t len[] = { 1,       MTU - 1, MTU,         MTU + 1,
                                    2 * MTU, 3 * MTU, 5 * MTU + 77 };
    Bed *bed = new_rc();

    mr_write(bed->mr, 0, bed->data, BED_AREA);
    for (unsigned i = 0; i < G_N_ELEMENTS(len); i++) {
        HcaPacket packet = make_read(bed, 3, len[i]);

        put_and_run(bed, &packet, 0);
        expect_read(bed, bed->psn, 3, len[i], i + 1);
        bed->psn = hca_psn_add(bed->psn, (len[i] + MTU - 1) / MTU);
    }
    send_op(bed, HCA_WRITE_ONLY, 0);
    expect_ack(bed, hca_psn_add(bed->psn, HCA_PSN_MASK), G_N_ELEMENTS(len) + 1);
    bed_free(bed);
}

static void test_atomics(void)
{
    Bed *bed = new_rc();
    HcaPacket packet = make_atomic(bed, HCA_FETCH_ADD);

    packet.swap_add = UINT64_C(0x123456789abcdef0);
    put_and_run(bed, &packet, 0);
    expect_atomic(bed, PSN, 0, 1);
    bed->psn++;
    packet = make_atomic(bed, HCA_CMP_SWAP);
    packet.compare = 5;
    packet.swap_add = 6;
    put_and_run(bed, &packet, 0);
    expect_atomic(bed, PSN + 1, UINT64_C(0x123456789abcdef0), 2);
    bed->psn++;
    packet = make_atomic(bed, HCA_CMP_SWAP);
    packet.compare = UINT64_C(0x123456789abcdef0);
    packet.swap_add = 6;
    put_and_run(bed, &packet, 0);
    expect_atomic(bed, PSN + 2, UINT64_C(0x123456789abcdef0), 3);
    g_assert_cmpuint(counter(bed), ==, 6);
    bed_free(bed);
}

/* One more than rra_max breaks the QP, behind the answers to those before. */
static void test_rd_atomic_limit(void)
{
    Bed *bed = new_rc();
    HcaPacket packet;

    for (unsigned i = 0; i < 5; i++) {
        packet = i % 2 ? make_atomic(bed, HCA_FETCH_ADD)
                       : make_read(bed, 0, 10);
        give(bed, &packet, 0);
    }
    run(bed);
    expect_read(bed, PSN, 0, 10, 1);
    expect_atomic(bed, PSN + 1, 0, 2);
    expect_read(bed, PSN + 2, 0, 10, 3);
    expect_atomic(bed, PSN + 3, 0, 4);
    expect_nak(bed, PSN + 4, NAK(INVALID_REQUEST));
    expect_broken(bed, RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR);
    bed_free(bed);
}

/* The region goes while its Read is being answered. */
static void test_read_deregistered(void)
{
    Bed *bed = new_rc();
    uint32_t index = mr_index(bed->mr);
    HcaPacket packet = make_read(bed, 0, 3 * MTU);

    give(bed, &packet, 0);
    bed->psn = PSN + 3;
    packet = make_read(bed, 0, 3 * MTU);
    give(bed, &packet, 0);
    g_assert_true(hca_responder_send(bed->hca, bed->hqp, 1));
    g_assert_cmphex(hca_v2p_invalidate_mpt(bed->hca->v2p, index), ==, 0);
    run(bed);
    g_free(bed_next(bed, HCA_READ_RESP_FIRST, PSN));
    expect_nak(bed, PSN + 1, NAK(REMOTE_ACCESS));
    expect_broken(bed, RDMA_HCA_EVENT_WQ_ACCESS_ERROR);
    bed_free(bed);
}

/* Middle responses tell no credits: the posted-count record is not read. */
static void test_read_record(void)
{
    Bed *bed = new_rc();
    HcaPacket packet = make_read(bed, 0, 20 * MTU);
    uint64_t reads = bed_counter(bed, 1, "responder_rq_record_reads");

    put_and_run(bed, &packet, 0);
    expect_read(bed, PSN, 0, 20 * MTU, 1);
    bed_counted(bed, 1, "responder_rq_record_reads", reads + 2);
    bed_free(bed);
}

/* No more Reads are answered again at a time than may be outstanding. */
static void test_duplicates_limit(void)
{
    Bed *bed = new_rc();
    HcaPacket packet;

    for (unsigned i = 0; i < 6; i++) {
        packet = make_read(bed, 0, 4);
        put_and_run(bed, &packet, 0);
        expect_read(bed, bed->psn, 0, 4, i + 1);
        bed->psn++;
    }
    bed->psn = PSN;
    for (unsigned i = 0; i < 6; i++) {
        packet = make_read(bed, 0, 4);
        give(bed, &packet, 0);
    }
    bed_expect_drops(bed, HCA_DROP_RESOURCES, 2);
    run(bed);
    for (unsigned i = 0; i < 4; i++) {
        expect_read(bed, PSN + i, 0, 4, 6);
    }
    bed_free(bed);
}

/* The region goes while a duplicate waits: the QP lives on. */
static void test_duplicate_deregistered(void)
{
    Bed *bed = new_rc();
    uint32_t index = mr_index(bed->mr);
    HcaPacket packet = make_read(bed, 0, 4);

    put_and_run(bed, &packet, 0);
    expect_read(bed, PSN, 0, 4, 1);
    give(bed, &packet, 0);
    g_assert_cmphex(hca_v2p_invalidate_mpt(bed->hca->v2p, index), ==, 0);
    run(bed);
    bed_expect_drops(bed, HCA_DROP_ACCESS, 1);
    send_op(bed, HCA_WRITE_ONLY, 0);
    expect_ack(bed, PSN + 1, 2);
    bed_free(bed);
}

/* 24 bits, counted by messages of every kind when their last packet is done. */
static void test_msn(void)
{
    Bed *bed = new_rc();
    HcaPacket packet;

    bed->hqp->resp.msn = HCA_PSN_MASK - 1;
    post_recv(bed, 1, 0, 4096);
    send_op(bed, HCA_SEND_FIRST, MTU);
    expect_ack(bed, PSN, HCA_PSN_MASK - 1);
    send_op(bed, HCA_SEND_LAST, 1);
    expect_ack(bed, PSN + 1, HCA_PSN_MASK);
    bed->psn = PSN + 2;
    packet = make_read(bed, 0, 3 * MTU);
    put_and_run(bed, &packet, 0);
    expect_read(bed, PSN + 2, 0, 3 * MTU, 0);
    bed->psn = PSN + 5;
    packet = make_atomic(bed, HCA_FETCH_ADD);
    put_and_run(bed, &packet, 0);
    g_assert_cmpuint(bed->heard.length, ==, 1);
    g_assert_cmphex(((BedPacket *)g_queue_peek_head(&bed->heard))->packet.msn,
                    ==, 1);
    g_free(bed_next(bed, HCA_ATOMIC_ACK, PSN + 5));
    bed_free(bed);
}

/* ---- sequence and length rules ---- */

/* What may follow what: each operation in each state of a message. */
static void test_sequences(void)
{
    enum {
        NONE,
        IN_SEND,
        IN_WRITE
    };
    static const uint8_t ops[] = {
        HCA_SEND_FIRST,     HCA_SEND_MIDDLE,  HCA_SEND_LAST,
        HCA_SEND_LAST_IMM,  HCA_SEND_ONLY,    HCA_SEND_ONLY_IMM,
        HCA_WRITE_FIRST,    HCA_WRITE_MIDDLE, HCA_WRITE_LAST,
        HCA_WRITE_LAST_IMM, HCA_WRITE_ONLY,   HCA_WRITE_ONLY_IMM,
        HCA_READ_REQUEST,   HCA_CMP_SWAP,     HCA_FETCH_ADD,
    };
    static const char *const legal[] = {
        [NONE] = "100011100011111",
        [IN_SEND] = "011100000000000",
        [IN_WRITE] = "000000011100000",
    };
    Bed *bed = new_rc();
    HcaQp qp = *bed->hqp;

    for (unsigned state = NONE; state <= IN_WRITE; state++) {
        for (unsigned i = 0; i < G_N_ELEMENTS(ops); i++) {
            const HcaOperation *op = hca_operation(ops[i]);
            HcaPacket packet = make(bed, ops[i], op->last ? 10 : MTU);

            if (op->kind >= HCA_REQUEST_READ) {
                packet = make_atomic(bed, ops[i]);
            }
            if (op->first && !op->last) {
                packet.dma_len = 3 * MTU;
            }
            qp.resp.in_message = state != NONE;
            qp.resp.message = state == IN_WRITE ? HCA_REQUEST_WRITE
                                                : HCA_REQUEST_SEND;
            qp.resp.write_left = op->last ? 10 : 2 * MTU;
            g_assert_cmpint(hca_check_request(&qp, &packet, op), ==,
                            legal[state][i] == '1' ? HCA_EXE_OK
                                                   : HCA_EXE_OPCODE);
        }
    }
    bed_free(bed);
}

/* On the cable: the NAK, and the WQE of the broken message is flushed. */
static void test_sequence_nak(void)
{
    Bed *bed = new_rc();

    post_recv(bed, 1, 0, 4096);
    send_op(bed, HCA_SEND_FIRST, MTU);
    expect_ack(bed, PSN, 0);
    send_op(bed, HCA_WRITE_ONLY, 4);
    expect_nak(bed, PSN + 1, NAK(INVALID_REQUEST));
    expect_recv_error(bed, 1, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    expect_broken(bed, RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR);
    bed_free(bed);
}

static void test_lengths(void)
{
    static const struct {
        uint8_t op;
        uint32_t payload, dma_len, left;
        bool ok;
    } c[] = {
        { HCA_SEND_FIRST, MTU, 0, 0, true },
        { HCA_SEND_FIRST, MTU - 1, 0, 0, false },
        { HCA_SEND_FIRST, MTU + 4, 0, 0, false },
        { HCA_SEND_MIDDLE, MTU, 0, 0, true },
        { HCA_SEND_MIDDLE, 0, 0, 0, false },
        { HCA_SEND_LAST, 1, 0, 0, true },
        { HCA_SEND_LAST, MTU, 0, 0, true },
        { HCA_SEND_LAST, 0, 0, 0, false },
        { HCA_SEND_LAST, MTU + 1, 0, 0, false },
        { HCA_SEND_ONLY, 0, 0, 0, true },
        { HCA_SEND_ONLY, MTU, 0, 0, true },
        { HCA_SEND_ONLY, MTU + 1, 0, 0, false },
        { HCA_WRITE_FIRST, MTU, MTU + 1, 0, true },
        { HCA_WRITE_FIRST, MTU, MTU, 0, false },
        { HCA_WRITE_FIRST, MTU - 1, 3 * MTU, 0, false },
        { HCA_WRITE_FIRST, MTU, 0x80000000, 0, true },
        { HCA_WRITE_FIRST, MTU, 0x80000001, 0, false },
        { HCA_WRITE_MIDDLE, MTU, 0, MTU + 1, true },
        { HCA_WRITE_MIDDLE, MTU, 0, MTU, false },
        { HCA_WRITE_LAST, 7, 0, 7, true },
        { HCA_WRITE_LAST, 7, 0, 8, false },
        { HCA_WRITE_LAST, 7, 0, 6, false },
        { HCA_WRITE_LAST, 0, 0, 0, false },
        { HCA_WRITE_ONLY, 0, 0, 0, true },
        { HCA_WRITE_ONLY, MTU, MTU, 0, true },
        { HCA_WRITE_ONLY, 4, 5, 0, false },
        { HCA_WRITE_ONLY, MTU + 1, MTU + 1, 0, false },
        { HCA_READ_REQUEST, 0, 0x80000000, 0, true },
        { HCA_READ_REQUEST, 0, 0x80000001, 0, false },
        { HCA_READ_REQUEST, 4, 8, 0, false },
        { HCA_FETCH_ADD, 0, 0, 0, true },
        { HCA_FETCH_ADD, 4, 0, 0, false },
    };
    Bed *bed = new_rc();
    HcaQp qp = *bed->hqp;

    for (unsigned i = 0; i < G_N_ELEMENTS(c); i++) {
        const HcaOperation *op = hca_operation(c[i].op);
        HcaPacket packet = make_atomic(bed, c[i].op);

        packet.payload_len = c[i].payload;
        packet.dma_len = c[i].dma_len;
        qp.resp.in_message = !op->first;
        qp.resp.message = op->kind;
        qp.resp.write_left = c[i].left;
        g_assert_cmpint(hca_check_request(&qp, &packet, op), ==,
                        c[i].ok ? HCA_EXE_OK : HCA_EXE_LENGTH);
    }
    /* A Send that grows beyond the longest message. */
    qp.max_msg = 1024;
    qp.resp.in_message = true;
    qp.resp.message = HCA_REQUEST_SEND;
    for (unsigned i = 0; i < 2; i++) {
        HcaPacket packet = make(bed, HCA_SEND_LAST, 128 + i);

        qp.resp.message_len = 1024 - 128;
        g_assert_cmpint(
            hca_check_request(&qp, &packet, hca_operation(HCA_SEND_LAST)), ==,
            i ? HCA_EXE_LENGTH : HCA_EXE_OK);
    }
    bed_free(bed);
}

/* ---- table 4.5: RQWQEManager ---- */

static void receive_one(Bed *bed, uint64_t wr_id)
{
    uint32_t psn = bed->psn;

    send_op(bed, HCA_SEND_ONLY, 8);
    g_assert_cmpuint(bed->heard.length, ==, 1);
    expect_ack(bed, psn, bed->hqp->resp.msn);
    expect_recv(bed, wr_id, RC_OP(HCA_SEND_ONLY), 8);
}

static void receive_none(Bed *bed)
{
    uint32_t psn = bed->psn;

    send_op(bed, HCA_SEND_ONLY, 8);
    expect_nak(bed, psn, RNR(RNR_CODE));
    bed->psn = psn;
}

/* A fetch brings what is posted, no more than 512 bytes or the queue's end. */
static void test_prefetch(void)
{
    Bed *bed = new_rc();
    HcaRecvQueue *rq = &bed->hqp->rq;

    for (unsigned i = 0; i < 3; i++) {
        post_recv(bed, i, 0, 64);
    }
    receive_one(bed, 0);
    g_assert_cmpuint(rq->prefetched, ==, 2);
    for (unsigned i = 3; i < 16; i++) {
        post_recv(bed, i, 0, 64);
    }
    receive_one(bed, 1);
    g_assert_cmpuint(rq->prefetched, ==, 1);
    receive_one(bed, 2);
    receive_one(bed, 3);
    g_assert_cmpuint(rq->prefetched, ==, 3);
    for (unsigned i = 4; i < 15; i++) {
        receive_one(bed, i);
    }
    /* The fetch ended with the queue: one of slot 15 alone. */
    for (unsigned i = 16; i < 20; i++) {
        post_recv(bed, i, 0, 64);
    }
    receive_one(bed, 15);
    g_assert_cmpuint(rq->prefetched, ==, 0);
    g_assert_cmpuint(rq->offset, ==, 0);
    for (unsigned i = 16; i < 20; i++) {
        receive_one(bed, i);
    }
    receive_none(bed);
    bed_free(bed);
}

/* Each slot size; many laps, so that old entries lie everywhere. */
static void test_slot_sizes(void)
{
    for (unsigned log = 6; log <= 9; log++) {
        BedConfig config = bed_responder(RDMA_HCA_QP_ST_RC);
        Bed *bed;

        config.log_rq_entry = log;
        config.rq_entries = 8;
        bed = bed_new_as(&config);
        for (unsigned i = 0; i < 50; i += 3) {
            post_recv(bed, i, 0, 64);
            post_recv(bed, i + 1, 0, 64);
            receive_one(bed, i);
            post_recv(bed, i + 2, 0, 64);
            receive_one(bed, i + 1);
            receive_one(bed, i + 2);
            receive_none(bed);
        }
        bed_free(bed);
    }
}

/* The record says more than the queue holds, runs backwards, or is no RAM. */
static void test_bad_record(void)
{
    for (unsigned i = 0; i < 3; i++) {
        Bed *bed = new_rc();
        Host *host = &bed->lab->host[1];

        post_recv(bed, 1, 0, 64);
        receive_one(bed, 1);
        if (i == 0) {
            host_write_le32(host, bed->qp->rq_record, 1 + 17);
        } else if (i == 1) {
            host_write_le32(host, bed->qp->rq_record, 0);
        } else {
            bed->hqp->rq.record = HOST_MMIO_BASE;
        }
        send_op(bed, HCA_SEND_ONLY, 8);
        expect_nak(bed, PSN + 1, NAK(REMOTE_OP));
        expect_broken(bed, RDMA_HCA_EVENT_WQ_CATAS_ERROR);
        bed_expect_none(bed);
        bed_free(bed);
    }
}

/* The record's high half is not looked at; its count wraps. */
static void test_record_wrap(void)
{
    Bed *bed = new_rc();
    Host *host = &bed->lab->host[1];

    bed->hqp->rq.consumed = bed->hqp->rq.posted = 0xffff;
    post_recv(bed, 1, 0, 64);
    post_recv(bed, 2, 0, 64);
    host_write_le32(host, bed->qp->rq_record, 0xabcd0001);
    receive_one(bed, 1);
    receive_one(bed, 2);
    receive_none(bed);
    bed_free(bed);
}

static void test_queue_refused(void)
{
    Bed *bed = new_rc();

    post_recv(bed, 1, 0, 64);
    bed->hqp->rq.lkey ^= 0x100;
    send_op(bed, HCA_SEND_ONLY, 8);
    expect_nak(bed, PSN, NAK(REMOTE_OP));
    expect_broken(bed, RDMA_HCA_EVENT_WQ_CATAS_ERROR);
    bed_expect_none(bed);
    bed_free(bed);
}

static void test_no_queue(void)
{
    Bed *bed = new_rc();

    bed->hqp->rq.len = 0;
    receive_none(bed);
    bed->hqp->rq.len = 2048;
    bed->hqp->rq.entry_log = 10;
    receive_none(bed);
    bed->hqp->rq.entry_log = 200;
    receive_none(bed);
    bed->hqp->rq.entry_log = 7;
    bed_free(bed);
}

/* Write a slot of the queue by hand. */
static void write_slot(Bed *bed, unsigned slot, uint32_t nds, uint32_t len)
{
    struct {
        struct rdma_hca_next_unit next;
        struct rdma_hca_data_unit unit[7];
    } wqe = { .next.nee_nds = GUINT32_TO_LE(nds),
              .next.flags = GUINT32_TO_LE(RDMA_HCA_WQE_CQ_UPDATE) };

    G_STATIC_ASSERT(sizeof(wqe) == 128);
    wqe.unit[0] = (struct rdma_hca_data_unit) {
        .byte_cnt = GUINT32_TO_LE(len),
        .lkey = GUINT32_TO_LE(bed->mr->key),
        .addr_l = GUINT32_TO_LE(RDMA_HCA_LO32(bed->mr->va)),
        .addr_h = GUINT32_TO_LE(RDMA_HCA_HI32(bed->mr->va)),
    };
    mr_write(bed->qp->rq.mr, slot * 128, &wqe, sizeof(wqe));
}

static void clear_slot(Bed *bed, unsigned slot)
{
    mr_fill(bed->qp->rq.mr, slot * 128, 0, 128);
}

/* Without a record: WQE_SPLIT by zeros and next sizes. */
static void test_no_record(void)
{
    Bed *bed = new_rc();
    HcaRecvQueue *rq = &bed->hqp->rq;

    bed->hqp->rq.record = 0;
    receive_none(bed); /* FLUSH_DATA 1 */
    write_slot(bed, 0, 8, 64);
    write_slot(bed, 1, 0, 64); /* FLUSH_DATA 3: no next size */
    write_slot(bed, 2, 8, 64);
    send_op(bed, HCA_SEND_ONLY, 8);
    expect_ack(bed, PSN, 1);
    g_assert_cmpuint(rq->prefetched, ==, 1);
    send_op(bed, HCA_SEND_ONLY, 8);
    expect_ack(bed, PSN + 1, 2);
    g_assert_cmpuint(rq->prefetched, ==, 0);
    send_op(bed, HCA_SEND_ONLY, 8); /* slot 2; slot 3 is empty */
    expect_ack(bed, PSN + 2, 3);
    g_assert_cmpuint(rq->prefetched, ==, 0);
    receive_none(bed);
    for (unsigned i = 3; i < 16; i++) { /* four of 128 fill a fetch */
        write_slot(bed, i, 8, 64);
    }
    send_op(bed, HCA_SEND_ONLY, 8);
    expect_ack(bed, PSN + 3, 4);
    g_assert_cmpuint(rq->prefetched, ==, 3);
    clear_slot(bed, 0);
    for (unsigned i = 4; i < 16; i++) {
        send_op(bed, HCA_SEND_ONLY, 8);
        expect_ack(bed, hca_psn_add(PSN, i), i + 1);
    }
    receive_none(bed);
    bed_free(bed);
}

/* A list without an end is as long as its slot; an inline unit is no entry. */
static void test_odd_wqes(void)
{
    Bed *bed = new_rc();
    struct rdma_hca_data_unit unit = {
        .byte_cnt = GUINT32_TO_LE(1),
        .lkey = GUINT32_TO_LE(bed->mr->key),
        .addr_l = GUINT32_TO_LE(RDMA_HCA_LO32(bed->mr->va)),
        .addr_h = GUINT32_TO_LE(RDMA_HCA_HI32(bed->mr->va)),
    };

    post_recv(bed, 1, 0, 64);
    post_recv(bed, 2, 0, 64);
    for (unsigned i = 1; i < 8; i++) {
        mr_write(bed->qp->rq.mr, i * 16, &unit, sizeof(unit));
    }
    send_op(bed, HCA_SEND_ONLY, 7);
    expect_ack(bed, PSN, 1);
    expect_recv(bed, 1, RC_OP(HCA_SEND_ONLY), 7);
    g_assert_cmpuint(bed->hqp->resp.wqe.nsge, ==, 7);
    bed->hqp->rq.prefetched = 0; /* fetch slot 1 again */
    unit.byte_cnt = GUINT32_TO_LE(RDMA_HCA_INLINE | 4);
    mr_write(bed->qp->rq.mr, 128 + 16, &unit, sizeof(unit));
    send_op(bed, HCA_SEND_ONLY, 1);
    expect_nak(bed, PSN + 1, NAK(REMOTE_OP));
    expect_recv_error(bed, 2, RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR);
    expect_broken(bed, 0);
    bed_free(bed);
}

/* Credit codes of IBA table 45, with the WQE in use counted in. */
static void test_credits(void)
{
    static const struct {
        unsigned posted, code;
    } c[] = { { 0, 0 },  { 1, 1 },  { 2, 2 }, { 3, 3 }, { 4, 4 },
              { 5, 4 },  { 6, 5 },  { 7, 5 }, { 8, 6 }, { 11, 6 },
              { 12, 7 }, { 15, 7 }, { 16, 8 } };
    Bed *bed = new_rc();
    Host *host = &bed->lab->host[1];

    for (unsigned i = 0; i < G_N_ELEMENTS(c); i++) {
        g_autofree BedPacket *answer = NULL;

        host_write_le32(host, bed->qp->rq_record, c[i].posted);
        send_op(bed, HCA_WRITE_ONLY, 0);
        answer = bed_next(bed, HCA_ACK, hca_psn_add(PSN, i));
        g_assert_cmphex(answer->packet.syndrome, ==, c[i].code);
    }
    host_write_le32(host, bed->qp->rq_record, 17);
    g_assert_cmphex(hca_rwm_credits(bed->hca, bed->hqp), ==,
                    HCA_AETH_CREDITS_INVALID);
    bed->hqp->rq.len = 16384 * 128;
    for (unsigned code = 0; code < 29; code++) {
        static const uint32_t value[] = { 0,    1,    2,    3,     4,    6,
                                          8,    12,   16,   24,    32,   48,
                                          64,   96,   128,  192,   256,  384,
                                          512,  768,  1024, 1536,  2048, 3072,
                                          4096, 6144, 8192, 12288, 16384 };

        host_write_le32(host, bed->qp->rq_record, value[code]);
        g_assert_cmpuint(hca_rwm_credits(bed->hca, bed->hqp), ==, code);
    }
    bed->hqp->rq.record = 0;
    g_assert_cmphex(hca_rwm_credits(bed->hca, bed->hqp), ==,
                    HCA_AETH_CREDITS_INVALID);
    bed_free(bed);
}

/* ---- 4.4.4: the queue to RespPktGen ---- */

static void give_op(Bed *bed, uint8_t op, uint32_t len)
{
    HcaPacket packet = make(bed, op, len);

    give(bed, &packet, 0);
}

static uint32_t waiting(const Bed *bed)
{
    return bed->hqp->resp.ring_tail - bed->hqp->resp.ring_head;
}

static void test_coalesce(void)
{
    Bed *bed = new_rc();
    HcaPacket packet;

    for (unsigned i = 0; i < 100; i++) {
        give_op(bed, HCA_WRITE_ONLY, 4);
    }
    g_assert_cmpuint(waiting(bed), ==, 1);
    packet = make_read(bed, 0, 4);
    give(bed, &packet, 0);
    give_op(bed, HCA_WRITE_ONLY, 4);
    give_op(bed, HCA_WRITE_ONLY, 4);
    g_assert_cmpuint(waiting(bed), ==, 3);
    /* A NAK says what the ACK did; the ACK after it more again. */
    bed->psn = hca_psn_add(bed->psn, 1);
    give_op(bed, HCA_WRITE_ONLY, 4);
    g_assert_cmpuint(waiting(bed), ==, 3);
    bed->psn = PSN; /* duplicate: nothing to add */
    give_op(bed, HCA_WRITE_ONLY, 4);
    g_assert_cmpuint(waiting(bed), ==, 3);
    g_assert_cmphex(
        bed->hqp->resp.ring[(bed->hqp->resp.ring_tail - 1) % HCA_RESP_RING]
            .syndrome,
        ==, NAK(PSN_SEQ));
    bed->psn = hca_psn_add(PSN, 103);
    give_op(bed, HCA_WRITE_ONLY, 4);
    g_assert_cmpuint(waiting(bed), ==, 3);
    run(bed);
    expect_ack(bed, hca_psn_add(PSN, 99), 100);
    expect_read(bed, hca_psn_add(PSN, 100), 0, 4, 101);
    expect_ack(bed, hca_psn_add(PSN, 103), 104);
    bed_free(bed);
}

/* A peer that asks and asks while nothing can be sent. */
static void test_ring_full(void)
{
    BedConfig config = bed_responder(RDMA_HCA_QP_ST_RC);
    HcaPacket packet;
    Bed *bed;

    config.attr.max_dest_rd_atomic = HCA_MAX_RD_ATOMIC;
    bed = bed_new_as(&config);
    for (unsigned i = 0; i < HCA_MAX_RD_ATOMIC; i++) {
        packet = make_read(bed, 0, 4);
        give(bed, &packet, 0);
        give_op(bed, HCA_WRITE_ONLY, 0);
    }
    g_assert_cmpuint(waiting(bed), ==, 2 * HCA_MAX_RD_ATOMIC);
    g_assert_cmpuint(bed->hqp->resp.rd_atomic, ==, HCA_MAX_RD_ATOMIC);
    run(bed);
    g_assert_cmpuint(bed->heard.length, ==, 2 * HCA_MAX_RD_ATOMIC);
    g_queue_clear_full(&bed->heard, g_free);
    /* The same again: duplicates, with acknowledgements between them. */
    bed->psn = PSN;
    for (unsigned i = 0; i < 2 * HCA_MAX_RD_ATOMIC; i++) {
        if (i % 2) {
            give_op(bed, HCA_WRITE_ONLY, 0);
        } else {
            packet = make_read(bed, 0, 4);
            give(bed, &packet, 0);
        }
    }
    for (unsigned i = 0; i < HCA_MAX_RD_ATOMIC; i++) {
        packet = make_read(bed, 0, 4);
        give(bed, &packet, 0);
        give_op(bed, HCA_WRITE_ONLY, 0);
    }
    g_assert_cmpuint(waiting(bed), ==, HCA_RESP_RING);
    bed_expect_drops(bed, HCA_DROP_RESOURCES, 0);
    give_op(bed, HCA_WRITE_ONLY, 0);
    bed_expect_drops(bed, HCA_DROP_RESOURCES, 1);
    run(bed);
    g_queue_clear_full(&bed->heard, g_free);
    bed_free(bed);
}

static void test_budget(void)
{
    Bed *bed = new_rc();
    HcaPacket packet = make_read(bed, 0, 10 * MTU);

    give(bed, &packet, 0);
    g_assert_true(hca_responder_send(bed->hca, bed->hqp, 4));
    g_assert_true(hca_responder_send(bed->hca, bed->hqp, 4));
    g_assert_false(hca_responder_send(bed->hca, bed->hqp, 4));
    run(bed);
    expect_read(bed, PSN, 0, 10 * MTU, 1);
    bed_free(bed);
}

/* ---- flush ---- */

static void test_flush(void)
{
    BedConfig config = bed_responder(RDMA_HCA_QP_ST_RC);
    Bed *bed;

    config.rq_entries = 256;
    config.log_cq = 10;
    bed = bed_new_as(&config);
    for (unsigned i = 0; i < 200; i++) {
        post_recv(bed, i, 0, 4096);
    }
    send_op(bed, HCA_SEND_FIRST, MTU);
    expect_ack(bed, PSN, 0);
    g_assert_cmphex(qp_to_err(bed->qp), ==, 0);
    for (unsigned i = 0; i < 200; i++) {
        expect_recv_error(bed, i, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    }
    bed_expect_none(bed);
    /* Posted later; after a long time, too. */
    for (unsigned i = 200; i < 230; i++) {
        Wc wc;

        post_recv(bed, i, 0, 4096);
        g_assert_true(cq_wait(bed->cq, &wc, 65 * NS_PER_MS));
        g_assert_cmphex(wc.wr_id, ==, i);
        g_assert_cmphex(wc.syndrome, ==, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
        lab_sleep(bed->lab, i * NS_PER_MS);
    }
    g_assert_cmphex(qp_to_rst(bed->qp), ==, 0);
    bed_free(bed);
}

/* Without a record one lap is flushed, not more. */
static void test_flush_no_record(void)
{
    Bed *bed = new_rc();
    Wc wc;

    bed->hqp->rq.record = 0;
    for (unsigned i = 0; i < 16; i++) {
        post_recv(bed, i, 0, 64);
    }
    g_assert_cmphex(qp_to_err(bed->qp), ==, 0);
    lab_sleep(bed->lab, NS_PER_S);
    for (unsigned i = 0; i < 16; i++) {
        g_assert_true(cq_poll(bed->cq, &wc));
        g_assert_cmphex(wc.syndrome, ==, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    }
    bed_expect_none(bed);
    bed_free(bed);
}

/* By command: what waits to be answered is forgotten. */
static void test_error_silences(void)
{
    Bed *bed = new_rc();
    HcaPacket packet = make_read(bed, 0, 10);

    give(bed, &packet, 0);
    give_op(bed, HCA_WRITE_ONLY, 4);
    hca_qp_set_state(bed->hca->cm, bed->hqp, RDMA_HCA_QP_STATE_ERR);
    g_assert_cmpuint(waiting(bed), ==, 0);
    g_assert_cmpuint(bed->hqp->resp.rd_atomic, ==, 0);
    run(bed);
    bed_free(bed);
}

/* ---- UC ---- */

static void test_uc(void)
{
    Bed *bed = new_service(RDMA_HCA_QP_ST_UC);

    post_recv(bed, 1, 0, 4096);
    post_recv(bed, 2, 0, 4096);
    send_at(bed, HCA_SEND_FIRST, 0, MTU);
    send_at(bed, HCA_SEND_LAST, MTU, 9);
    expect_recv(bed, 1, UC_OP(HCA_SEND_LAST), MTU + 9);
    expect_region(bed, 0, 0, MTU + 9);
    send_at(bed, HCA_WRITE_ONLY_IMM, 5000, 100);
    expect_recv(bed, 2, UC_OP(HCA_WRITE_ONLY_IMM), 100);
    expect_region(bed, 0, 5000, 100);
    send_op(bed, HCA_SEND_ONLY, 1);
    bed_expect_drops(bed, HCA_DROP_NO_WQE, 1);
    bed_free(bed);
}

/* A packet is lost: its message is, and the next one has the whole WQE. */
static void test_uc_loss(void)
{
    Bed *bed = new_service(RDMA_HCA_QP_ST_UC);

    post_recv(bed, 1, 0, 2 * MTU);
    send_op(bed, HCA_SEND_FIRST, MTU);
    bed->psn = hca_psn_add(bed->psn, 1);
    send_op(bed, HCA_SEND_MIDDLE, MTU);
    bed_expect_drops(bed, HCA_DROP_PSN, 1);
    send_op(bed, HCA_SEND_LAST, 1);
    bed_expect_drops(bed, HCA_DROP_OPCODE_SEQ, 1);
    /* Cut short by the next, of which a packet is lost; then a whole one. */
    send_op(bed, HCA_SEND_FIRST, MTU);
    send_op(bed, HCA_SEND_FIRST, MTU);
    bed->psn = hca_psn_add(bed->psn, 5);
    send_at(bed, HCA_SEND_FIRST, 777, MTU);
    send_at(bed, HCA_SEND_LAST, 777 + MTU, MTU);
    expect_recv(bed, 1, UC_OP(HCA_SEND_LAST), 2 * MTU);
    expect_region(bed, 0, 777, 2 * MTU);
    g_assert_cmpuint(bed->hqp->state, ==, RDMA_HCA_QP_STATE_RTS);
    bed_free(bed);
}

/* Operations that UC does not have, Send with Invalidate among them. */
static void test_uc_opcodes(void)
{
    static const uint8_t op[] = { HCA_SEND_ONLY_INV, HCA_SEND_LAST_INV,
                                  HCA_READ_REQUEST, HCA_FETCH_ADD, 0x1f };
    Bed *bed = new_service(RDMA_HCA_QP_ST_UC);

    post_recv(bed, 1, 0, 64);
    for (unsigned i = 0; i < G_N_ELEMENTS(op); i++) {
        send_op(bed, op[i], 0);
    }
    bed_expect_drops(bed, HCA_DROP_PARSE_OPCODE, G_N_ELEMENTS(op));
    bed->psn = PSN;
    send_op(bed, HCA_SEND_ONLY, 8);
    expect_recv(bed, 1, UC_OP(HCA_SEND_ONLY), 8);
    bed_free(bed);
}

/* Remote faults are nobody's business; local ones break the QP. */
static void test_uc_errors(void)
{
    Bed *bed = new_service(RDMA_HCA_QP_ST_UC);
    HcaPacket packet = make(bed, HCA_WRITE_ONLY, 8);
    Sge sge = mr_sge(bed->mr, 0, 100);
    RecvWr wr = { .wr_id = 2, .nsge = 1, .sge = &sge };

    packet.rkey ^= 0x100;
    put_and_run(bed, &packet, 0);
    bed_expect_drops(bed, HCA_DROP_ACCESS, 1);
    bed->psn++;
    post_recv(bed, 1, 0, 10);
    send_op(bed, HCA_SEND_ONLY, 11);
    bed_expect_drops(bed, HCA_DROP_LENGTH, 1);
    send_op(bed, HCA_SEND_ONLY, 10);
    expect_recv(bed, 1, UC_OP(HCA_SEND_ONLY), 10);
    sge.lkey ^= 0x100;
    g_assert_true(qp_post_recv(bed->qp, &wr, 1));
    send_op(bed, HCA_SEND_ONLY, 10);
    expect_recv_error(bed, 2, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR);
    expect_broken(bed, 0);
    bed_free(bed);
}

/* ---- UD ---- */

static void test_ud(void)
{
    static const uint8_t zero[HCA_GRH_SIZE];
    Bed *bed = new_service(RDMA_HCA_QP_ST_UD);
    uint8_t grh[HCA_GRH_SIZE];
    Wc wc;

    mr_fill(bed->mr, 0, 0xee, 4096);
    post_recv(bed, 1, 0, 4096);
    send_op(bed, HCA_SEND_ONLY_IMM, 100);
    cq_expect(bed->cq, &wc, 1, 0);
    g_assert_cmphex(wc.opcode, ==, UD_OP(HCA_SEND_ONLY_IMM));
    g_assert_cmpuint(wc.byte_len, ==, 140);
    g_assert_cmphex(wc.rqpn, ==, 0x4321);
    g_assert_cmphex(wc.imm_be, ==, 0x44332211);
    mr_read(bed->mr, 0, grh, sizeof(grh));
    g_assert_cmpmem(grh, sizeof(grh), zero, sizeof(zero));
    expect_region(bed, 40, 0, 100);

    post_recv(bed, 2, 0, 4096);
    bed->peer.has_grh = true;
    bed->peer.flow_label = 0x12345;
    bed->peer.tclass = 0x67;
    bed->peer.hop_limit = 9;
    driver_gid(bed->drv[1], bed->peer.dgid.raw);
    send_op(bed, HCA_SEND_ONLY, 101);
    expect_recv(bed, 2, UD_OP(HCA_SEND_ONLY), 141);
    mr_read(bed->mr, 0, grh, sizeof(grh));
    g_assert_cmpmem(grh, 8, "\x66\x71\x23\x45\x00\x80\x1b\x09", 8);
    g_assert_cmpmem(grh + 8, 16, &bed->peer.sgid, 16);
    g_assert_cmpmem(grh + 24, 16, &bed->peer.dgid, 16);
    expect_region(bed, 40, 0, 101);
    bed_free(bed);
}

static void test_ud_drops(void)
{
    Bed *bed = new_service(RDMA_HCA_QP_ST_UD);

    send_op(bed, HCA_SEND_ONLY, 8);
    bed_expect_drops(bed, HCA_DROP_NO_WQE, 1);
    post_recv(bed, 1, 0, 48);
    send_op(bed, HCA_SEND_ONLY, 9);
    bed_expect_drops(bed, HCA_DROP_LENGTH, 1);
    bed_expect_none(bed);
    send_op(bed, HCA_SEND_ONLY, 8);
    expect_recv(bed, 1, UD_OP(HCA_SEND_ONLY), 48);
    bed_free(bed);
}

/* ---- anything at all ---- */

static uint32_t pick(Bed *bed, uint32_t end)
{
    return pair_rand(bed->pair, 0, end);
}

/* Nearly right in most fields, wrong in some. */
static HcaPacket make_random(Bed *bed)
{
    static const uint32_t len[] = { 0,          1,         8,       MTU - 1,
                                    MTU,        MTU + 1,   4 * MTU, BED_AREA,
                                    0x7fffffff, 0xffffffff };
    HcaPacket packet = make(bed, pick(bed, 0x18), 0);

    packet.psn = bed->hqp->resp.expected_psn;
    if (!pick(bed, 3)) {
        packet.psn = hca_psn_add(packet.psn, pick(bed, 20) - 15);
    }
    packet.ack_req = pick(bed, 2);
    packet.payload_len = len[pick(bed, 6)];
    packet.dma_len = pick(bed, 2) ? packet.payload_len
                                  : len[pick(bed, G_N_ELEMENTS(len))];
    packet.va = (packet.va + 7) & ~UINT64_C(7);
    if (!pick(bed, 40)) {
        packet.va += pick(bed, UINT32_MAX);
    }
    if (!pick(bed, 40)) {
        packet.rkey = pick(bed, UINT32_MAX);
    }
    packet.has_grh = pick(bed, 2);
    return packet;
}

static void check_ring(const Bed *bed)
{
    const HcaResponder *resp = &bed->hqp->resp;
    unsigned rd_atomic = 0;

    g_assert_cmpuint(waiting(bed), <=, HCA_RESP_RING);
    for (uint32_t i = resp->ring_head; i != resp->ring_tail; i++) {
        const HcaResp *entry = &resp->ring[i % HCA_RESP_RING];

        rd_atomic += entry->kind != HCA_RESP_ACK && !entry->duplicate;
    }
    g_assert_cmpuint(rd_atomic, ==, resp->rd_atomic);
    g_assert_cmpuint(rd_atomic, <=, bed->hqp->attr.rra_max);
}

static void random_packets(Bed *bed)
{
    for (unsigned n = 0; n < 300; n++) {
        HcaPacket packet = make_random(bed);
        uint8_t operation = HCA_BTH_OPERATION(packet.opcode);

        if ((operation >= HCA_READ_RESP_FIRST && operation <= HCA_ATOMIC_ACK) ||
            bed->hqp->state == RDMA_HCA_QP_STATE_ERR) {
            continue;
        }
        give(bed, &packet, pick(bed, 1000));
        check_ring(bed);
        if (!pick(bed, 4)) {
            hca_responder_send(bed->hca, bed->hqp, pick(bed, 5));
            check_ring(bed);
        }
        if (!pick(bed, 10) && bed->qp->rq.head - bed->qp->rq.tail < 16) {
            post_recv(bed, n, pick(bed, 1000), pick(bed, 3 * MTU));
        }
    }
    run(bed);
    g_queue_clear_full(&bed->heard, g_free);
}

static void test_random(const void *opaque)
{
    BedConfig config = bed_responder(RDMA_HCA_QP_ST_RC);
    Bed *bed;

    config.service = GPOINTER_TO_UINT(opaque);
    bed = bed_new_as(&config);
    for (unsigned i = 0; i < 100; i++) {
        Wc wc;

        random_packets(bed);
        while (cq_poll(bed->cq, &wc)) {
        }
        qp_destroy(bed->qp);
        g_assert_cmphex(cq_destroy(bed->cq), ==, 0);
        bed_make_qp(bed, &config);
    }
    bed_free(bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    test_add("/responder/4.3/state", test_state);
    test_add("/responder/4.3/service", test_service);
    test_add("/responder/4.3/pkey", test_pkey);
    test_add("/responder/4.3/source", test_source);
    test_add("/responder/4.3/gid", test_gid);
    test_add("/responder/4.3/qkey", test_qkey);
    test_add("/responder/4.3/opcode-rc", test_opcode_rc);
    test_add("/responder/4.3/opcode-reserved", test_opcode_reserved);
    test_add("/responder/4.3/send-invalidate", test_send_invalidate);
    test_add("/responder/4.3/states", test_states);
    test_add("/responder/comm-est", test_comm_est);
    test_add("/responder/4.2/ahead", test_ahead);
    test_add("/responder/4.2/regions", test_regions);
    test_add("/responder/4.2/send-again", test_duplicate_send);
    test_add("/responder/4.2/read-again", test_duplicate_read);
    test_add("/responder/4.2/atomic-again", test_duplicate_atomic);
    test_add("/responder/4.2/no-atomic-again", test_duplicate_no_atomic);
    test_add("/responder/4.2/pending", test_duplicate_pending);
    test_add("/responder/4.5/scatter", test_scatter);
    test_add("/responder/4.5/entry-update", test_entry_update);
    test_add("/responder/4.5/entry-release", test_entry_release);
    test_add("/responder/4.5/zero", test_send_zero);
    test_add("/responder/4.5/rnr", test_rnr);
    test_add("/responder/4.5/too-long", test_send_too_long);
    test_add("/responder/4.5/bad-entry", test_send_bad_entry);
    test_add("/responder/4.5/cq-overrun", test_cq_overrun);
    test_add("/responder/4.5/cq-overrun-owing", test_cq_overrun_owing);
    test_add("/responder/4.5/solicited", test_solicited);
    test_add("/responder/4.6/write", test_write);
    test_add("/responder/4.6/ack-req", test_ack_req);
    test_add("/responder/4.6/imm", test_write_imm);
    for (unsigned i = 0; i < G_N_ELEMENTS(refused); i++) {
        const char *path = test_named("/responder/refused/%s", refused[i].name);

        test_add_data(path, &refused[i], test_refused);
    }
    test_add("/responder/refused/not-enabled", test_not_enabled);
    test_add("/responder/zero-length", test_zero_length);
    test_add("/responder/4.7/read", test_read);
    test_add("/responder/4.7/atomics", test_atomics);
    test_add("/responder/4.7/limit", test_rd_atomic_limit);
    test_add("/responder/4.7/deregistered", test_read_deregistered);
    test_add("/responder/4.7/duplicates", test_duplicates_limit);
    test_add("/responder/4.7/read-record", test_read_record);
    test_add("/responder/4.7/duplicate-deregistered",
             test_duplicate_deregistered);
    test_add("/responder/rules/msn", test_msn);
    test_add("/responder/rules/sequences", test_sequences);
    test_add("/responder/rules/sequence-nak", test_sequence_nak);
    test_add("/responder/rules/lengths", test_lengths);
    test_add("/responder/t4.5/prefetch", test_prefetch);
    test_add("/responder/t4.5/slot-sizes", test_slot_sizes);
    test_add("/responder/t4.5/bad-record", test_bad_record);
    test_add("/responder/t4.5/record-wrap", test_record_wrap);
    test_add("/responder/t4.5/queue-refused", test_queue_refused);
    test_add("/responder/t4.5/no-queue", test_no_queue);
    test_add("/responder/t4.5/no-record", test_no_record);
    test_add("/responder/t4.5/odd-wqes", test_odd_wqes);
    test_add("/responder/t4.5/credits", test_credits);
    test_add("/responder/4.10/coalesce", test_coalesce);
    test_add("/responder/4.10/ring-full", test_ring_full);
    test_add("/responder/4.10/budget", test_budget);
    test_add("/responder/flush/all", test_flush);
    test_add("/responder/flush/no-record", test_flush_no_record);
    test_add("/responder/flush/silence", test_error_silences);
    test_add("/responder/uc/all", test_uc);
    test_add("/responder/uc/loss", test_uc_loss);
    test_add("/responder/uc/opcodes", test_uc_opcodes);
    test_add("/responder/uc/errors", test_uc_errors);
    test_add("/responder/ud/all", test_ud);
    test_add("/responder/ud/drops", test_ud_drops);
    test_add_data("/responder/random/rc", GUINT_TO_POINTER(RDMA_HCA_QP_ST_RC),
                  test_random);
    test_add_data("/responder/random/uc", GUINT_TO_POINTER(RDMA_HCA_QP_ST_UC),
                  test_random);
    test_add_data("/responder/random/ud", GUINT_TO_POINTER(RDMA_HCA_QP_ST_UD),
                  test_random);
    return g_test_run();
}
