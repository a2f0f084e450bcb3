/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-transfer.h"

#include <string.h>

#include "../wire/packet.h"

#define MIB (1024 * 1024)
#define RC RDMA_HCA_QP_ST_RC
#define UD RDMA_HCA_QP_ST_UD
#define MAX_RECV_SGE 6

typedef struct Transfer {
    const TransferCase *c;
    Pair *pair;
    Qp *qp[2];
    Sge local[PAIR_MAX_SGE];
    Sge body[MAX_RECV_SGE]; /* of a receive: GRH, if UD, and data */
    unsigned nlocal, nbody;
    const Sge *remote; /* the data in body */
    unsigned nremote;
    uint8_t *data;
    uint8_t *image[2];
} Transfer;

UdAddress transfer_address(const Qp *to, bool grh)
{
    UdAddress ud = {
        .dlid = to->drv->host->config.lid,
        .grh = grh,
        .dqpn = to->qpn,
        .qkey = 0x11111111,
    };

    driver_gid(to->drv, ud.dgid);
    return ud;
}

/*
 * Where the data lie. UD receives behind a GRH in an entry of its own; its
 * address takes the room of three entries from a send WQE.
 */
static void place(Transfer *t)
{
    const TransferCase *c = t->c;
    Pair *pair = t->pair;
    uint64_t at[2] = { pair_rand(pair, 0, 5000), pair_rand(pair, 0, 5000) };
    unsigned grh = c->service == UD;
    Sge *remote = t->body + grh;

    t->nlocal = c->inlined ? 0
                           : pair_split(pair, pair->mr[0], at[0], c->size,
                                        t->local, PAIR_MAX_SGE - 3 * grh);
    t->body[0] = mr_sge(pair->mr[1], at[1], GRH_SIZE);
    remote[0] = mr_sge(pair->mr[1], at[1] + 64, c->size);
    t->nremote = 1;
    if (wr_is_send(c->opcode)) {
        t->nremote = pair_split(pair, pair->mr[1], at[1] + 64, c->size, remote,
                                MAX_RECV_SGE - grh);
    }
    t->remote = remote;
    t->nbody = t->nremote + grh;
}

/* The 40 bytes before a datagram: its GRH (IBA 8.3), or nothing. */
static void grh_of(const Transfer *t, uint8_t grh[GRH_SIZE])
{
    uint32_t pad = -t->c->size & 3;
    /* BTH, DETH, immediate, ICRC. */
    uint32_t len = 12 + 8 + 4 * wr_has_imm(t->c->opcode) + t->c->size + pad + 4;

    memset(grh, 0, GRH_SIZE);
    if (t->c->grh) {
        grh[0] = 0x60;
        grh[4] = len >> 8;
        grh[5] = len;
        grh[6] = 0x1b;
        grh[7] = 64;
        driver_gid(t->pair->drv[0], grh + 8);
        driver_gid(t->pair->drv[1], grh + 24);
    }
}

/* Fill source and target with different bytes; what has to come of it. */
static void fill(Transfer *t)
{
    Pair *pair = t->pair;
    unsigned target = t->c->opcode == RDMA_HCA_OPCODE_RDMA_READ ? 0 : 1;
    const Sge *to = target ? t->remote : t->local;
    const Sge *from = target ? t->local : t->remote;
    unsigned nto = target ? t->nremote : t->nlocal;
    unsigned nfrom = target ? t->nlocal : t->nremote;
    uint8_t grh[GRH_SIZE];

    t->data = pair_data(pair, t->c->size);
    mr_fill(pair->mr[target], 0, 0xee, pair->mr[target]->len);
    sges_write(pair->mr[!target], from, nfrom, t->data);
    t->image[0] = mr_image(pair->mr[0]);
    t->image[1] = mr_image(pair->mr[1]);
    image_write(t->image[target], pair->mr[target], to, nto, t->data);
    if (t->c->service == UD) {
        grh_of(t, grh);
        image_write(t->image[1], pair->mr[1], t->body, 1, grh);
    }
}

static void post(Transfer *t, uint64_t wr_id, uint32_t imm_be)
{
    const TransferCase *c = t->c;
    UdAddress ud = transfer_address(t->qp[1], c->grh);
    /* The immediate of a Write takes a WQE, not its memory. */
    RecvWr recv = { .wr_id = ~wr_id,
                    .nsge = wr_is_send(c->opcode) ? t->nbody : 0,
                    .sge = t->body };
    SendWr send = {
        .wr_id = wr_id,
        .opcode = c->opcode,
        .flags = SEND_SIGNALED | (c->inlined ? SEND_INLINE : 0),
        .imm_be = imm_be,
        .raddr = t->remote[0].va,
        .rkey = t->remote[0].lkey,
        .ud = c->service == UD ? &ud : NULL,
        .inline_data = t->data,
        .inline_len = c->size,
        .nsge = t->nlocal,
        .sge = t->local,
    };

    if (wr_takes_receive(c->opcode)) {
        g_assert_true(qp_post_recv(t->qp[1], &recv, 1));
    }
    g_assert_true(qp_post_send(t->qp[0], &send, 1));
}

/* What a receive's completion names: the message's last packet. */
static uint8_t last_opcode(const TransferCase *c)
{
    static const uint8_t op[2][2][2] = {
        /* Send, only, immediate */
        { { HCA_WRITE_LAST, HCA_WRITE_LAST_IMM },
          { HCA_WRITE_ONLY, HCA_WRITE_ONLY_IMM } },
        { { HCA_SEND_LAST, HCA_SEND_LAST_IMM },
          { HCA_SEND_ONLY, HCA_SEND_ONLY_IMM } },
    };
    static const uint8_t bth_service[] = {
        [RDMA_HCA_QP_ST_RC] = HCA_BTH_RC,
        [RDMA_HCA_QP_ST_UC] = HCA_BTH_UC,
        [RDMA_HCA_QP_ST_UD] = HCA_BTH_UD,
    };

    return bth_service[c->service] << 5 |
           op[wr_is_send(c->opcode)][c->size <= 128u << c->mtu]
             [wr_has_imm(c->opcode)];
}

static void check_receive(const Transfer *t, uint64_t wr_id, uint32_t imm_be)
{
    const TransferCase *c = t->c;
    const Driver *sender = t->pair->drv[0];
    Wc wc;

    cq_expect(t->pair->cq[1], &wc, wr_id, 0);
    g_assert_false(wc.is_send);
    g_assert_cmphex(wc.opcode, ==, last_opcode(c));
    g_assert_cmpuint(wc.byte_len, ==,
                     c->size + (c->service == UD ? GRH_SIZE : 0));
    g_assert_cmphex(wc.rqpn, ==, t->qp[0]->qpn);
    g_assert_cmphex(wc.rlid, ==, sender->roce ? 0 : sender->host->config.lid);
    if (c->service != RC) {
        g_assert_cmpint(wc.grh, ==, c->grh);
    }
    if (wr_has_imm(c->opcode)) {
        g_assert_cmphex(wc.imm_be, ==, imm_be);
    }
}

static void check(Transfer *t, uint64_t wr_id, uint32_t imm_be)
{
    const TransferCase *c = t->c;
    Wc wc;

    cq_expect(t->pair->cq[0], &wc, wr_id, 0);
    g_assert_true(wc.is_send);
    g_assert_cmphex(wc.opcode, ==, c->opcode);
    g_assert_cmphex(wc.qpn, ==, t->qp[0]->qpn);
    if (c->opcode == RDMA_HCA_OPCODE_RDMA_READ) {
        g_assert_cmpuint(wc.byte_len, ==, c->size);
    }
    if (wr_takes_receive(c->opcode)) {
        check_receive(t, ~wr_id, imm_be);
    }
    if (c->service != RC) {
        lab_run(t->pair->lab);
    }
    mr_check_image(t->pair->mr[0], t->image[0]);
    mr_check_image(t->pair->mr[1], t->image[1]);
}

/* A datagram is as long as the port's MTU allows. */
static Pair *new_pair(const TransferCase *c)
{
    HcaConfig config[2];

    for (unsigned i = 0; i < 2; i++) {
        lab_config(&config[i], i);
        if (c->service != RC) {
            config[i].max_mtu = c->mtu;
        }
    }
    return pair_new_with(c->size * 31 + c->mtu * 7 + c->opcode, c->size + 8192,
                         config, NULL, NULL);
}

static void connect_qps(Transfer *t)
{
    QpAttr attr;

    qp_attr_init(&attr);
    attr.mtu = t->c->mtu;
    attr.sq_psn = 0xfffffe; /* PSNs wrap at once */
    attr.rq_psn = 0x7fffff;
    if (t->c->service == UD) {
        t->qp[0] = pair_new_ud(t->pair, 0);
        t->qp[1] = pair_new_ud(t->pair, 1);
    } else {
        pair_connect_service(t->pair, t->c->service, &attr, t->qp);
    }
}

static void test_transfer(const void *opaque)
{
    const TransferCase *c = opaque;
    Transfer t = { .c = c, .pair = new_pair(c) };

    connect_qps(&t);
    for (unsigned i = 0; i < (c->size > 65536 ? 1 : 4); i++) {
        uint32_t imm_be = g_rand_int(t.pair->lab->rand);

        place(&t);
        fill(&t);
        post(&t, 1000 + i, imm_be);
        check(&t, 1000 + i, imm_be);
        g_free(t.data);
        g_free(t.image[0]);
        g_free(t.image[1]);
    }
    cq_expect_none(t.pair->cq[0]);
    cq_expect_none(t.pair->cq[1]);
    pair_free(t.pair);
}

void transfer_add(TransferCase c)
{
    static const char *const service[] = {
        [RDMA_HCA_QP_ST_RC] = "rc",
        [RDMA_HCA_QP_ST_UC] = "uc",
        [RDMA_HCA_QP_ST_UD] = "ud",
    };
    static const char *const operation[] = {
        [RDMA_HCA_OPCODE_SEND] = "send",
        [RDMA_HCA_OPCODE_SEND_IMM] = "send-imm",
        [RDMA_HCA_OPCODE_RDMA_WRITE] = "write",
        [RDMA_HCA_OPCODE_RDMA_WRITE_IMM] = "write-imm",
        [RDMA_HCA_OPCODE_RDMA_READ] = "read",
    };
    const char *path = test_named(
        "/%s/%s%s%s/mtu%u/%u", service[c.service], operation[c.opcode],
        c.inlined ? "-inline" : "", c.grh ? "-grh" : "", 128u << c.mtu, c.size);
    gconstpointer copy = test_copy(&c, sizeof(c));

    if (c.service == RC) {
        test_add_data_each_link(path, copy, test_transfer);
    } else {
        test_add_data(path, copy, test_transfer);
    }
}

static void add_at_mtu(TransferCase c)
{
    uint32_t mtu = 128u << c.mtu;
    const uint32_t size[] = { 0, 1, mtu - 1, mtu, mtu + 1, 3 * mtu + 5, MIB };
    /* A datagram is one packet. */
    unsigned n = c.service == UD ? 4 : G_N_ELEMENTS(size);

    for (unsigned i = 0; i < n; i++) {
        c.size = size[i];
        transfer_add(c);
    }
}

void transfer_add_all(uint8_t service, uint8_t opcode)
{
    static const uint32_t inlined[] = { 0, 1, 3, 64, 128 };
    TransferCase c = { .service = service, .opcode = opcode };

    for (c.mtu = 1; c.mtu <= 5; c.mtu++) {
        c.grh = false;
        add_at_mtu(c);
        if (service == UD) {
            c.grh = true;
            add_at_mtu(c);
        }
    }
    if (opcode == RDMA_HCA_OPCODE_RDMA_READ) {
        return;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(inlined); i++) {
        transfer_add((TransferCase) {
            .service = service,
            .opcode = opcode,
            .mtu = 3,
            .size = inlined[i],
            .inlined = true,
        });
    }
}
