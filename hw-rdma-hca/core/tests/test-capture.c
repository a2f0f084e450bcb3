/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One exchange of every operation, with a NAK of each kind, as a pcap file
 * for a decoder that shares no code with the card (tshark). The file is
 * $HCA_CAPTURE, or rdma-hca.pcap in the build folder of the tests.
 *
 * What can be said without another decoder is checked here: each packet is
 * parsed by the card's own parser, and every opcode that RC and XRC have is
 * there.
 */
#include <unistd.h>

#include "../wire/wire.h"
#include "lib-pair.h"
#include "lib-pcap.h"

typedef struct Capture {
    Pcap *pcap;
    Lab *lab;
    bool opcode[256];
    bool aeth_kind[4];
    bool nak[32];
    bool grh;
    unsigned packets;
} Capture;

static bool has_aeth(uint8_t operation)
{
    return operation == HCA_READ_RESP_FIRST ||
           operation == HCA_READ_RESP_LAST || operation == HCA_READ_RESP_ONLY ||
           operation == HCA_ACK || operation == HCA_ATOMIC_ACK;
}

static CableFate capture(void *opaque, unsigned from, uint8_t *bytes,
                         size_t len)
{
    Capture *c = opaque;
    HcaPacket packet = { 0 };
    uint8_t operation;

    g_assert_cmpint(hca_ib_parse(&packet, bytes, len), ==, HCA_PARSE_OK);
    g_assert_cmphex(packet.slid, ==, c->lab->host[from].config.lid);
    g_assert_cmphex(packet.dlid, ==, c->lab->host[!from].config.lid);
    operation = HCA_BTH_OPERATION(packet.opcode);
    c->opcode[packet.opcode] = true;
    c->grh |= packet.has_grh;
    if (has_aeth(operation)) {
        unsigned kind = HCA_AETH_KIND(packet.syndrome);

        c->aeth_kind[kind] = true;
        if (kind == HCA_AETH_NAK) {
            c->nak[HCA_AETH_VALUE(packet.syndrome)] = true;
        }
    }
    c->packets++;
    pcap_add(c->pcap, c->lab->now, bytes, len);
    return CABLE_DELIVER;
}

/* The packet's number that the tap loses, to provoke a sequence NAK. */
typedef struct Loser {
    Capture *capture;
    unsigned lose;
    unsigned seen;
} Loser;

static CableFate capture_and_lose(void *opaque, unsigned from, uint8_t *bytes,
                                  size_t len)
{
    Loser *loser = opaque;

    capture(loser->capture, from, bytes, len);
    return from == 0 && ++loser->seen == loser->lose ? CABLE_DROP
                                                     : CABLE_DELIVER;
}

static const uint8_t operations[] = {
    RDMA_HCA_OPCODE_SEND,       RDMA_HCA_OPCODE_SEND_IMM,
    RDMA_HCA_OPCODE_RDMA_WRITE, RDMA_HCA_OPCODE_RDMA_WRITE_IMM,
    RDMA_HCA_OPCODE_RDMA_READ,  RDMA_HCA_OPCODE_ATOMIC_FA,
    RDMA_HCA_OPCODE_ATOMIC_CS,
};

/* Every operation at sizes of one, two and four packets, odd ones too. */
static void exchange_all(Pair *pair, Qp *qp[2])
{
    static const uint32_t size[] = { 0, 1, 6, 1024, 1027, 3 * 1024 + 2 };

    for (unsigned op = 0; op < G_N_ELEMENTS(operations); op++) {
        for (unsigned i = 0; i < G_N_ELEMENTS(size); i++) {
            bool atomic = wr_is_atomic(operations[op]);
            SendWr wr;
            Sge sge;
            Wc wc;

            if (atomic && i) {
                break;
            }
            wr = pair_send(pair, 0, operations[op], i, &sge, 0,
                           atomic ? 8 : size[i],
                           4096 - (pair->mr[1]->va & 4095));
            wr.swap_add = UINT64_C(0x0123456789abcdef);
            wr.compare = 7;
            wr.flags |= SEND_SOLICITED;
            pair_post_recv(pair, 1, qp[1], i, 20000, 8192);
            g_assert_true(qp_post_send(qp[0], &wr, 1));
            cq_expect(pair->cq[0], &wc, i, 0);
        }
    }
}

static Qp *xrc_qp(Pair *pair, unsigned side, uint8_t service)
{
    QpConfig config;

    qp_config_init(&config, pair->pd[side], pair->cq[side]);
    config.service = service;
    config.rq_entries = 0;
    config.recv_cq = NULL;
    if (service == RDMA_HCA_QP_ST_XRC_TGT) {
        config.sq_entries = 0;
        config.send_cq = NULL;
    }
    return qp_new(pair->drv[side], &config);
}

/* The same by XRC. */
static void exchange_xrc(Pair *pair)
{
    static const uint32_t size[] = { 1, 3 * 1024 + 2 };
    Qp *ini = xrc_qp(pair, 0, RDMA_HCA_QP_ST_XRC_INI);
    Qp *tgt = xrc_qp(pair, 1, RDMA_HCA_QP_ST_XRC_TGT);
    SrqConfig config;
    QpAttr attr;
    Srq *srq;

    srq_config_init(&config, pair->pd[1]);
    srq_config_xrc(&config, pair->cq[1], 0);
    srq = srq_new(pair->drv[1], &config);
    qp_attr_init(&attr);
    qp_connect(ini, tgt, &attr);
    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(operations); i++) {
        uint8_t opcode = operations[i / 2];
        Sge sge, to = mr_sge(pair->mr[1], 20000, 8192);
        RecvWr recv = { .nsge = 1, .sge = &to };
        SendWr wr = pair_send(pair, 0, opcode, i, &sge, 0,
                              wr_is_atomic(opcode) ? 8 : size[i % 2],
                              4096 - (pair->mr[1]->va & 4095));
        Wc wc;

        wr.xrc = true;
        wr.srqn = srq->srqn;
        g_assert_true(srq_post(srq, &recv, 1));
        g_assert_true(qp_post_send(ini, &wr, 1));
        cq_expect(pair->cq[0], &wc, i, 0);
    }
}

/* Ends the connection with a NAK of this syndrome. */
static void exchange_bad(Pair *pair, SendWr *wr, uint8_t syndrome)
{
    Qp *qp[2];
    Wc wc;

    pair_connect(pair, NULL, qp);
    pair_post_recv(pair, 1, qp[1], 0, 0, 16);
    g_assert_true(qp_post_send(qp[0], wr, 1));
    do {
        g_assert_true(cq_wait(pair->cq[0], &wc, PAIR_PATIENCE));
    } while (wc.qpn != qp[0]->qpn);
    g_assert_cmphex(wc.syndrome, ==, syndrome);
}

static void exchange_naks(Pair *pair)
{
    Mr *readonly = mr_new(pair->drv[1], pair->pd[1], 0, 4096, 0);
    SendWr wr;
    Sge sge, to;
    Qp *qp[2];
    RecvWr recv = { .nsge = 1, .sge = &to };

    wr = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, 1, &sge, 0, 100, 0);
    wr.rkey = readonly->key;
    exchange_bad(pair, &wr, RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR);
    wr.opcode = RDMA_HCA_OPCODE_SEND;
    exchange_bad(pair, &wr, RDMA_HCA_SYNDROME_REMOTE_INVAL_REQ_ERR);

    pair_connect(pair, NULL, qp);
    to = mr_sge(readonly, 0, 4096);
    g_assert_true(qp_post_recv(qp[1], &recv, 1));
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    lab_sleep(pair->lab, NS_PER_S);
    g_assert_cmpuint(qp_state(qp[0]), ==, RDMA_HCA_QP_STATE_ERR);

    pair_connect(pair, NULL, qp); /* not ready, then ready */
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    lab_sleep(pair->lab, 20 * NS_PER_MS);
    pair_post_recv(pair, 1, qp[1], 0, 0, 4096);
    lab_sleep(pair->lab, NS_PER_S);
}

/* The second packet of four is lost. */
static void exchange_loss(Pair *pair, Capture *c)
{
    Loser loser = { .capture = c, .lose = 2 };
    SendWr wr;
    Sge sge;
    Qp *qp[2];

    pair_connect(pair, NULL, qp);
    lab_tap(pair->lab, capture_and_lose, &loser);
    wr = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, 1, &sge, 0, 4000, 0);
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    lab_sleep(pair->lab, NS_PER_S);
    lab_tap(pair->lab, capture, c);
}

/* A Global Route Header on every packet of a connection. */
static void exchange_grh(Pair *pair)
{
    QpAttr attr;
    Qp *qp[2];

    for (unsigned i = 0; i < 2; i++) {
        uint64_t gid[2] = {
            GUINT64_TO_BE(UINT64_C(0xfe80000000000000)),
            GUINT64_TO_BE(pair->lab->host[!i].config.guid),
        };
        QpConfig config;

        qp_config_init(&config, pair->pd[i], cq_new(pair->drv[i], 4, 1));
        qp[i] = qp_new(pair->drv[i], &config);
        qp_attr_init(&attr);
        attr.grh = true;
        memcpy(attr.dgid, gid, sizeof(gid));
        attr.dlid = pair->lab->host[!i].config.lid;
        /* The next number of the peer: the two QPs are made in step. */
        attr.dest_qpn = i ? qp[0]->qpn : pair->drv[1]->next_qpn;
        qp_bring_up(qp[i], &attr);
    }
    pair_check_works(pair, qp, 0);
    pair_check_works(pair, qp, 1);
}

static void test_capture(void)
{
    g_autofree char *path = pcap_path("rdma-hca.pcap");
    Capture c = { .pcap = pcap_create(path) };
    Pair *pair;
    Qp *qp[2];

    pair = pair_new_with(2001, 65536, NULL, capture, &c);
    c.lab = pair->lab;
    pair_connect(pair, NULL, qp);
    exchange_all(pair, qp);
    exchange_xrc(pair);
    exchange_naks(pair);
    exchange_loss(pair, &c);
    exchange_grh(pair);
    pair_free(pair);
    pcap_close(c.pcap);

    for (unsigned op = HCA_SEND_FIRST; op <= HCA_FETCH_ADD; op++) {
        g_test_message("opcode %#x", op);
        g_assert_true(c.opcode[HCA_BTH_OPCODE(HCA_BTH_RC, op)]);
        g_assert_true(c.opcode[HCA_BTH_OPCODE(HCA_BTH_XRC, op)]);
    }
    g_assert_true(c.aeth_kind[HCA_AETH_ACK]);
    g_assert_true(c.aeth_kind[HCA_AETH_RNR]);
    for (unsigned nak = HCA_NAK_PSN_SEQ; nak <= HCA_NAK_REMOTE_OP; nak++) {
        g_test_message("NAK %u", nak);
        g_assert_true(c.nak[nak]);
    }
    g_assert_true(c.grh);
    g_test_message("%u packets in %s", c.packets, path);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/capture/all-operations", test_capture);
    return g_test_run();
}
