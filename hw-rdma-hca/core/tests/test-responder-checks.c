/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which requests a responder drops, and which it refuses: headers, keys,
 * lengths, and what may follow what (engine document, figure 4.3; IBA 9.6,
 * 9.7.4).
 */
#include "../responder/units.h"
#include "lib-responder.h"

#define MTU BED_MTU
#define PSN BED_RQ_PSN
#define RC_OP(op) (HCA_BTH_RC << 5 | (op))
#define UC_OP(op) (HCA_BTH_UC << 5 | (op))
#define UD_OP(op) (HCA_BTH_UD << 5 | (op))
#define NAK(value) HCA_AETH(HCA_AETH_NAK, HCA_NAK_##value)

/* ---- figure 4.3: header checks ---- */

static void test_state(void)
{
    BedConfig config = bed_responder(RDMA_HCA_QP_ST_RC);
    Bed *bed;

    config.stay_in_rtr = true;
    bed = bed_new_as(&config);
    resp_post_recv(bed, 1, 0, 4096);
    resp_post_recv(bed, 2, 0, 4096);
    request_send(bed, HCA_SEND_ONLY, 10);
    resp_expect_ack(bed, PSN, 1);
    resp_expect_recv(bed, 1, RC_OP(HCA_SEND_ONLY), 10);
    g_assert_cmpuint(driver_count_events(bed->drv[1], RDMA_HCA_EVENT_COMM_EST),
                     ==, 1);
    g_assert_cmphex(qp_to_err(bed->qp), ==, 0);
    resp_expect_recv_error(bed, 2, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    request_send(bed, HCA_SEND_ONLY, 10);
    bed_expect_drops(bed, HCA_DROP_QP_STATE, 1);
    g_assert_cmphex(qp_to_rst(bed->qp), ==, 0);
    request_send(bed, HCA_SEND_ONLY, 10);
    bed_expect_drops(bed, HCA_DROP_QPN, 1);
    bed_free(bed);
}

static void test_service(void)
{
    Bed *bed = resp_new();
    HcaPacket packet = request_make(bed, HCA_SEND_ONLY, 0);

    packet.opcode = UC_OP(HCA_SEND_ONLY);
    request_put(bed, &packet, 0);
    packet.opcode = UD_OP(HCA_SEND_ONLY);
    request_put(bed, &packet, 0);
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
    Bed *bed = resp_new();
    uint64_t dropped = 0;
    unsigned matches = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(c); i++) {
        uint32_t psn = bed->psn;

        bed->peer.pkey = c[i].packet;
        bed->hca->port->node->port[HCA_PORT_NUMBER].pkeys[0] = c[i].qp;
        request_send(bed, HCA_WRITE_ONLY, 0);
        if (c[i].match) {
            resp_expect_ack(bed, psn, ++matches);
        } else {
            bed->psn = psn;
            bed_expect_drops(bed, HCA_DROP_PKEY, ++dropped);
        }
    }
    bed_free(bed);
}

static void test_source(void)
{
    Bed *bed = resp_new();

    bed->peer.slid = 0x77;
    request_send(bed, HCA_WRITE_ONLY, 0);
    bed_expect_drops(bed, HCA_DROP_SOURCE, 1);
    bed_free(bed);
}

/* A GRH has to be for the port and, if the QP knows, from its peer. */
static void test_gid(void)
{
    Bed *bed = resp_new();

    bed->peer.has_grh = true;
    request_send(bed, HCA_WRITE_ONLY, 0);
    bed_expect_drops(bed, HCA_DROP_LID, 1);
    bed->psn = PSN;
    driver_gid(bed->drv[1], bed->peer.dgid.raw);
    request_send(bed, HCA_WRITE_ONLY, 0); /* the QP's path has none */
    resp_expect_ack(bed, PSN, 1);
    bed->hqp->attr.path.grh = true;
    request_send(bed, HCA_WRITE_ONLY, 0);
    bed_expect_drops(bed, HCA_DROP_SOURCE, 1);
    bed->psn = PSN + 1;
    bed->hqp->attr.path.dgid = bed->peer.sgid;
    request_send(bed, HCA_WRITE_ONLY, 0);
    resp_expect_ack(bed, PSN + 1, 2);
    bed_free(bed);
}

static void test_qkey(void)
{
    Bed *bed = resp_new_service(RDMA_HCA_QP_ST_UD);
    HcaPacket packet = request_make(bed, HCA_SEND_ONLY, 8);

    resp_post_recv(bed, 1, 0, 4096);
    packet.qkey++;
    request_put(bed, &packet, 0);
    bed_expect_drops(bed, HCA_DROP_QKEY, 1);
    bed_expect_none(bed);
    bed_free(bed);
}

/* An opcode that RC does not know is refused in its turn only. */
static void test_opcode_rc(void)
{
    Bed *bed = resp_new();
    uint8_t op = HCA_SEND_ONLY_INV + 1;

    bed->psn = hca_psn_add(PSN, 1);
    request_send(bed, op, 0);
    resp_expect_nak(bed, PSN, NAK(PSN_SEQ));
    bed->psn = hca_psn_add(PSN, HCA_PSN_MASK);
    request_send(bed, op, 0);
    resp_expect_ack(bed, PSN - 1, 0);
    g_assert_cmpuint(bed->hqp->state, ==, RDMA_HCA_QP_STATE_RTS);
    request_send(bed, op, 0);
    resp_expect_nak(bed, PSN, NAK(INVALID_REQUEST));
    resp_expect_broken(bed, RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR);
    bed_free(bed);
}

/* Operations that RC does not have: the same, wherever in a message. */
static void test_opcode_reserved(void)
{
    static const uint8_t op[] = { 0x15, 0x18, 0x1f };

    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(op); i++) {
        Bed *bed = resp_new();

        if (i % 2) {
            HcaPacket packet = request_make(bed, HCA_WRITE_FIRST, MTU);

            packet.dma_len = 2 * MTU;
            request_put(bed, &packet, 0);
            resp_expect_ack(bed, PSN, 0);
        }
        bed->psn = PSN + 5;
        request_send(bed, op[i / 2], 60);
        resp_expect_nak(bed, PSN + i % 2, NAK(PSN_SEQ));
        bed->psn = PSN + i % 2;
        request_send(bed, op[i / 2], 60);
        resp_expect_nak(bed, PSN + i % 2, NAK(INVALID_REQUEST));
        resp_expect_broken(bed, RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR);
        bed_free(bed);
    }
}

/* Send with Invalidate on the cable: its last packet, of no key, is refused. */
static void test_send_invalidate(void)
{
    Bed *bed = resp_new();

    resp_post_recv(bed, 1, 0, 4096);
    request_send(bed, HCA_SEND_FIRST, MTU);
    resp_expect_ack(bed, PSN, 0);
    request_send(bed, HCA_SEND_LAST_INV, 8);
    resp_expect_nak(bed, PSN + 1, NAK(REMOTE_ACCESS));
    resp_expect_recv_error(bed, 1, RDMA_HCA_SYNDROME_REMOTE_INVAL_REQ_ERR);
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
        Bed *bed = resp_new_service(RDMA_HCA_QP_ST_UC);

        resp_post_recv(bed, 1, 0, 64);
        bed->hqp->state = c[i].state;
        request_send(bed, HCA_SEND_ONLY, 8);
        bed_expect_drops(bed, HCA_DROP_QP_STATE, !c[i].receives);
        if (c[i].receives) {
            resp_expect_recv(bed, 1, UC_OP(HCA_SEND_ONLY), 8);
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
        request_send(bed, HCA_SEND_ONLY, 1);
        bed->peer.pkey = HCA_DEFAULT_PKEY;
        bed->psn = PSN;
        g_assert_false(
            driver_event(bed->drv[1], RDMA_HCA_EVENT_COMM_EST, &eqe));
        for (unsigned i = 0; i < 3; i++) {
            resp_post_recv(bed, i, 0, 64);
            request_send(bed, HCA_SEND_ONLY, 1);
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

/* ---- what is refused ---- */

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
    Bed *bed = resp_new();
    g_autofree uint8_t *image = mr_image(bed->mr);
    HcaPacket packet = request_make_atomic(bed, c->op);

    resp_post_recv(bed, 1, 0, 64);
    resp_post_recv(bed, 2, 0, 64);
    packet.va += c->va_add;
    packet.rkey ^= c->key_xor;
    packet.dma_len = c->dma_len;
    if (hca_operation(c->op)->kind == HCA_REQUEST_WRITE) {
        packet.va += bed->mr->va - request_make_atomic(bed, c->op).va;
        packet.payload_len = MIN(c->dma_len, MTU);
    }
    request_put(bed, &packet, 0);
    resp_expect_nak(bed, PSN, c->nak);
    resp_expect_recv_error(bed, 1, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    resp_expect_recv_error(bed, 2, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    resp_expect_broken(bed, c->event);
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

        request_send(bed, op[i], 0);
        resp_expect_nak(bed, PSN, NAK(INVALID_REQUEST));
        resp_expect_broken(bed, RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR);
        bed_free(bed);
    }
}

/* A length of 0: whatever the key (IBA 9.7.4.1.7). */
static void test_zero_length(void)
{
    Bed *bed = resp_new();
    HcaPacket packet = request_make(bed, HCA_WRITE_ONLY, 0);

    packet.rkey = 0xdead;
    packet.va = 0;
    request_put(bed, &packet, 0);
    resp_expect_ack(bed, PSN, 1);
    bed->psn++;
    packet = request_make_read(bed, 0, 0);
    packet.rkey = 0xdead;
    request_put(bed, &packet, 0);
    resp_expect_read(bed, PSN + 1, 0, 0, 2);
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
    Bed *bed = resp_new();
    HcaQp qp = *bed->hqp;

    for (unsigned state = NONE; state <= IN_WRITE; state++) {
        for (unsigned i = 0; i < G_N_ELEMENTS(ops); i++) {
            const HcaOperation *op = hca_operation(ops[i]);
            HcaPacket packet = request_make(bed, ops[i], op->last ? 10 : MTU);

            if (op->kind >= HCA_REQUEST_READ) {
                packet = request_make_atomic(bed, ops[i]);
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
    Bed *bed = resp_new();

    resp_post_recv(bed, 1, 0, 4096);
    request_send(bed, HCA_SEND_FIRST, MTU);
    resp_expect_ack(bed, PSN, 0);
    request_send(bed, HCA_WRITE_ONLY, 4);
    resp_expect_nak(bed, PSN + 1, NAK(INVALID_REQUEST));
    resp_expect_recv_error(bed, 1, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    resp_expect_broken(bed, RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR);
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
    Bed *bed = resp_new();
    HcaQp qp = *bed->hqp;

    for (unsigned i = 0; i < G_N_ELEMENTS(c); i++) {
        const HcaOperation *op = hca_operation(c[i].op);
        HcaPacket packet = request_make_atomic(bed, c[i].op);

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
        HcaPacket packet = request_make(bed, HCA_SEND_LAST, 128 + i);

        qp.resp.message_len = 1024 - 128;
        g_assert_cmpint(
            hca_check_request(&qp, &packet, hca_operation(HCA_SEND_LAST)), ==,
            i ? HCA_EXE_LENGTH : HCA_EXE_OK);
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
    test_add("/responder/refused/not-enabled", test_not_enabled);
    test_add("/responder/zero-length", test_zero_length);
    test_add("/responder/rules/sequences", test_sequences);
    test_add("/responder/rules/sequence-nak", test_sequence_nak);
    test_add("/responder/rules/lengths", test_lengths);
    for (unsigned i = 0; i < G_N_ELEMENTS(refused); i++) {
        const char *path = test_named("/responder/refused/%s", refused[i].name);

        test_add_data(path, &refused[i], test_refused);
    }
    return g_test_run();
}
