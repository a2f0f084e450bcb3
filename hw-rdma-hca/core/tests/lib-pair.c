/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-pair.h"

#include <string.h>

#define LOG_CQ_SIZE 9

static bool ports_active(void *opaque)
{
    Pair *pair = opaque;

    return driver_port_state(pair->drv[0]) == 4 &&
           driver_port_state(pair->drv[1]) == 4;
}

Pair *pair_new_managed(uint32_t seed, uint64_t mr_len, const HcaConfig *config,
                       CableTap *tap, void *opaque)
{
    Pair *pair = g_new0(Pair, 1);

    pair->lab = lab_new(seed, config);
    lab_tap(pair->lab, tap, opaque);
    lab_cable(pair->lab, true);
    for (unsigned i = 0; i < 2; i++) {
        Driver *drv = driver_new(&pair->lab->host[i]);

        pair->drv[i] = drv;
        pair->pd[i] = pd_new(drv);
        pair->cq[i] = cq_new(drv, LOG_CQ_SIZE, RDMA_HCA_UAR_KERNEL + 1);
        pair->mr[i] = mr_new(drv, pair->pd[i],
                             UINT64_C(0x7f0000001000) + 0x123 * (i + 1), mr_len,
                             ACCESS_ALL);
    }
    lab_run(pair->lab);
    return pair;
}

Pair *pair_new_with(uint32_t seed, uint64_t mr_len, const HcaConfig *config,
                    CableTap *tap, void *opaque)
{
    Pair *pair = pair_new_managed(seed, mr_len, config, tap, opaque);

    g_assert_true(ports_active(pair));
    return pair;
}

Pair *pair_new(uint32_t seed, uint64_t mr_len)
{
    return pair_new_with(seed, mr_len, NULL, NULL, NULL);
}

Pair *pair_new_roce(uint32_t seed, uint64_t mr_len, CableTap *tap, void *opaque)
{
    HcaConfig config[2];

    lab_config_roce(&config[0], 0);
    lab_config_roce(&config[1], 1);
    return pair_new_with(seed, mr_len, config, tap, opaque);
}

void pair_free(Pair *pair)
{
    driver_free(pair->drv[0]);
    driver_free(pair->drv[1]);
    lab_free(pair->lab);
    g_free(pair);
}

Qp *pair_new_qp(Pair *pair, unsigned side, uint8_t service)
{
    QpConfig config;

    qp_config_init(&config, pair->pd[side], pair->cq[side]);
    config.service = service;
    return qp_new(pair->drv[side], &config);
}

Qp *pair_new_ud(Pair *pair, unsigned side)
{
    Qp *qp = pair_new_qp(pair, side, RDMA_HCA_QP_ST_UD);
    QpAttr attr;

    qp_attr_init(&attr);
    qp_bring_up(qp, &attr);
    return qp;
}

void pair_connect_service(Pair *pair, uint8_t service, const QpAttr *attr,
                          Qp *qp[2])
{
    QpAttr defaults;

    qp_attr_init(&defaults);
    qp[0] = pair_new_qp(pair, 0, service);
    qp[1] = pair_new_qp(pair, 1, service);
    qp_connect(qp[0], qp[1], attr ? attr : &defaults);
}

void pair_connect(Pair *pair, const QpAttr *attr, Qp *qp[2])
{
    pair_connect_service(pair, RDMA_HCA_QP_ST_RC, attr, qp);
}

uint64_t pair_counter(const Pair *pair, unsigned side, const char *name)
{
    return card_counter(pair->lab->host[side].hca, name);
}

uint64_t pair_drops(const Pair *pair, unsigned side, HcaDropReason reason)
{
    return card_drops(pair->lab->host[side].hca, reason);
}

typedef struct Packets {
    const Pair *pair;
    unsigned side;
    uint64_t wanted;
} Packets;

static bool packets_came(void *opaque)
{
    const Packets *packets = opaque;

    return pair_counter(packets->pair, packets->side, "port_rx_packets") >=
           packets->wanted;
}

void pair_wait_packets(Pair *pair, unsigned side, uint64_t n)
{
    Packets packets = { pair, side,
                        pair_counter(pair, side, "port_rx_packets") + n };

    g_assert_true(lab_wait(pair->lab, packets_came, &packets, NS_PER_S));
}

uint32_t pair_rand(Pair *pair, uint32_t begin, uint32_t end)
{
    return begin + g_rand_int(pair->lab->rand) % (end - begin);
}

uint8_t *pair_data(Pair *pair, size_t len)
{
    uint8_t *data = g_malloc(len + sizeof(uint32_t));

    for (size_t i = 0; i < len; i += sizeof(uint32_t)) {
        uint32_t word = g_rand_int(pair->lab->rand);

        memcpy(data + i, &word, sizeof(word));
    }
    return data;
}

/* The length of the next entry when @left bytes are left for @entries. */
static uint32_t piece(Pair *pair, uint64_t va, uint32_t left)
{
    uint32_t to_page_end = HOST_PAGE_SIZE - (va & (HOST_PAGE_SIZE - 1));
    uint32_t few = pair_rand(pair, 1, 64);

    switch (pair_rand(pair, 0, 4)) {
    case 0:
        return 0;
    case 1:
        return MIN(left, to_page_end);
    case 2:
        return MIN(left, few);
    default:
        return left ? pair_rand(pair, 1, left + 1) : 0;
    }
}

unsigned pair_split(Pair *pair, const Mr *mr, uint64_t at, uint32_t len,
                    Sge *sge, unsigned max)
{
    unsigned n = pair_rand(pair, 1, max + 1);

    for (unsigned i = 0; i < n; i++) {
        uint32_t take = i + 1 == n ? len : piece(pair, mr->va + at, len);

        sge[i] = mr_sge(mr, at, take);
        at += take + pair_rand(pair, 0, 32);
        len -= take;
    }
    return n;
}

void sges_write(Mr *mr, const Sge *sge, unsigned n, const uint8_t *data)
{
    for (unsigned i = 0; i < n; data += sge[i].len, i++) {
        mr_write(mr, sge[i].va - mr->va, data, sge[i].len);
    }
}

void sges_read(Mr *mr, const Sge *sge, unsigned n, uint8_t *data)
{
    for (unsigned i = 0; i < n; data += sge[i].len, i++) {
        mr_read(mr, sge[i].va - mr->va, data, sge[i].len);
    }
}

uint8_t *mr_image(Mr *mr)
{
    uint8_t *image = g_malloc(mr->len);

    mr_read(mr, 0, image, mr->len);
    return image;
}

void mr_check_image(Mr *mr, const uint8_t *image)
{
    uint8_t *now = mr_image(mr);

    for (uint64_t i = 0; memcmp(now, image, mr->len) && i < mr->len; i++) {
        if (now[i] != image[i]) {
            g_error("byte %#" G_GINT64_MODIFIER "x of region %#x is %#x, "
                    "not %#x",
                    i, mr->key, now[i], image[i]);
        }
    }
    g_free(now);
}

void image_write(uint8_t *image, const Mr *mr, const Sge *sge, unsigned n,
                 const uint8_t *data)
{
    for (unsigned i = 0; i < n; data += sge[i].len, i++) {
        memcpy(image + (sge[i].va - mr->va), data, sge[i].len);
    }
}

void cq_expect(Cq *cq, Wc *wc, uint64_t wr_id, uint8_t syndrome)
{
    g_assert_true(cq_wait(cq, wc, PAIR_PATIENCE));
    g_assert_cmphex(wc->syndrome, ==, syndrome);
    g_assert_cmphex(wc->wr_id, ==, wr_id);
}

void cq_expect_flushed(Cq *cq, uint64_t first, unsigned n)
{
    Wc wc;

    for (unsigned i = 0; i < n; i++) {
        cq_expect(cq, &wc, first + i, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    }
}

void cq_expect_none(Cq *cq)
{
    Wc wc;

    g_assert_false(cq_wait(cq, &wc, NS_PER_S));
}

SendWr pair_send(Pair *pair, unsigned side, uint8_t opcode, uint64_t wr_id,
                 Sge *sge, uint64_t at, uint32_t len, uint64_t remote_at)
{
    const Mr *remote = pair->mr[!side];

    *sge = mr_sge(pair->mr[side], at, len);
    return (SendWr) {
        .wr_id = wr_id,
        .opcode = opcode,
        .flags = SEND_SIGNALED,
        .imm_be = GUINT32_TO_BE(0x01020304),
        .raddr = remote->va + remote_at,
        .rkey = remote->key,
        .nsge = 1,
        .sge = sge,
    };
}

void pair_post_recv(Pair *pair, unsigned side, Qp *qp, uint64_t wr_id,
                    uint64_t at, uint32_t len)
{
    Sge sge = mr_sge(pair->mr[side], at, len);
    RecvWr wr = { .wr_id = wr_id, .nsge = 1, .sge = &sge };

    g_assert_true(qp_post_recv(qp, &wr, 1));
}

void pair_check_works(Pair *pair, Qp *qp[2], unsigned from)
{
    static const char hello[] = "are you there?";
    char got[sizeof(hello)] = "";
    SendWr wr;
    Sge sge;
    Wc wc;

    mr_write(pair->mr[from], 0, hello, sizeof(hello));
    pair_post_recv(pair, !from, qp[!from], 0xbeef, 0, sizeof(hello));
    wr = pair_send(pair, from, RDMA_HCA_OPCODE_SEND, 0xcafe, &sge, 0,
                   sizeof(hello), 0);
    g_assert_true(qp_post_send(qp[from], &wr, 1));
    cq_expect(qp[!from]->recv_cq, &wc, 0xbeef, 0);
    g_assert_cmpuint(wc.byte_len, ==, sizeof(hello));
    cq_expect(qp[from]->send_cq, &wc, 0xcafe, 0);
    mr_read(pair->mr[!from], 0, got, sizeof(got));
    g_assert_cmpmem(got, sizeof(got), hello, sizeof(hello));
}
