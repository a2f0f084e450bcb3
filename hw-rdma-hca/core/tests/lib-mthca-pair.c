/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two machines with a QP each; see lib-mthca-pair.h. */
#include <string.h>

#include "lib-mthca-pair.h"
#include "lib-test.h"

#define SQ_RECORD 1
#define RQ_RECORD 0x7ffe

void mthca_side_open(MthcaSide *s, Host *host, uint8_t service,
                     bool signals_all)
{
    Mthca *m = s->m = mthca_new(host);

    mthca_probe(m);
    g_assert_cmphex(mthca_cmd(m, RDMA_HCA_CMD_INIT_IB, 0, 1, 0, 0, NULL), ==,
                    0);
    s->cq = (MthcaCq) {
        .cqn = MTHCA_SIDE_CQN + host->side,
        .mr = mthca_mr(m, 2, 0),
        .log_size = 8,
        .uar = MTHCA_SIDE_UAR,
        .ci_record = 0x7fff,
        .arm_record = 0,
    };
    s->qp = (MthcaQp) {
        .qpn = MTHCA_SIDE_QPN + 0x10000 * host->side,
        .service = service,
        .send_cq = &s->cq,
        .recv_cq = &s->cq,
        .mr = mthca_mr(m, 4, 0),
        .log_sq = 5,
        .log_rq = 5,
        .log_stride = 7,
        .uar = MTHCA_SIDE_UAR,
        .sq_record = SQ_RECORD,
        .rq_record = RQ_RECORD,
        .sq_psn = 0x100,
        .rq_psn = 0x100,
        .signals_all = signals_all,
    };
    s->data = mthca_mr(m, MTHCA_SIDE_PAGES, 0x1234);
    g_assert_cmphex(mthca_sw2hw_cq(m, &s->cq), ==, 0);
}

void mthca_side_init(MthcaSide *s, Host *host, uint8_t service,
                     bool signals_all)
{
    mthca_side_open(s, host, service, signals_all);
    g_assert_cmphex(mthca_qp_to_init(s->m, &s->qp), ==, 0);
}

void mthca_pair_connect(MthcaPair *pair)
{
    for (unsigned i = 0; i < 2; i++) {
        MthcaSide *s = &pair->side[i], *peer = &pair->side[!i];

        g_assert_cmphex(mthca_qp_to_rtr(s->m, &s->qp, peer->m->host->config.lid,
                                        peer->qp.qpn),
                        ==, 0);
        g_assert_cmphex(mthca_qp_to_rts(s->m, &s->qp), ==, 0);
    }
}

void mthca_pair_init_of(MthcaPair *pair, uint8_t service, bool signals_all,
                        uint32_t latency)
{
    pair->lab = mthca_lab(17, latency);
    lab_cable(pair->lab, true);
    for (unsigned side = 0; side < 2; side++) {
        mthca_side_init(&pair->side[side], &pair->lab->host[side], service,
                        signals_all);
    }
    mthca_pair_connect(pair);
    lab_run(pair->lab);
}

void mthca_pair_init(MthcaPair *pair, uint8_t service)
{
    mthca_pair_init_of(pair, service, false, 0);
}

void mthca_pair_free(MthcaPair *pair)
{
    for (unsigned side = 0; side < 2; side++) {
        mthca_free(pair->side[side].m);
    }
    lab_free(pair->lab);
}

void mthca_side_fill(MthcaSide *s, GRand *rand)
{
    uint8_t page[HOST_PAGE_SIZE];

    for (unsigned i = 0; i < MTHCA_SIDE_PAGES; i++) {
        random_fill(rand, page, sizeof(page));
        host_write(s->m->host, s->data->page[i], page, sizeof(page));
    }
}

void mthca_side_read(MthcaSide *s, uint64_t va, void *to, size_t len)
{
    for (size_t done = 0; done < len;) {
        uint64_t at = va + done;
        size_t n = MIN(len - done, HOST_PAGE_SIZE - at % HOST_PAGE_SIZE);

        host_read(s->m->host,
                  s->data->page[at / HOST_PAGE_SIZE] + at % HOST_PAGE_SIZE,
                  (uint8_t *)to + done, n);
        done += n;
    }
}

void mthca_pair_same(MthcaPair *pair, uint64_t va0, uint64_t va1, size_t len)
{
    g_autofree uint8_t *a = g_malloc(len), *b = g_malloc(len);

    mthca_side_read(&pair->side[0], va0, a, len);
    mthca_side_read(&pair->side[1], va1, b, len);
    g_assert_cmpmem(a, len, b, len);
}

MthcaSge mthca_side_sge(const MthcaSide *s, uint64_t va, uint32_t len)
{
    return (MthcaSge) { va, len, s->data->key };
}

typedef struct TakeWait {
    MthcaSide *s;
    struct mthca_cqe cqe;
} TakeWait;

static bool has_come(void *opaque)
{
    TakeWait *wait = opaque;

    return mthca_cq_take(wait->s->m, &wait->s->cq, &wait->cqe);
}

struct mthca_cqe mthca_side_take(MthcaSide *s)
{
    TakeWait wait = { .s = s };

    g_assert_true(lab_wait(s->m->host->lab, has_come, &wait, 20 * NS_PER_S));
    mthca_cq_consume(s->m, &s->cq);
    g_assert_cmphex(GUINT32_FROM_BE(wait.cqe.my_qpn), ==, s->qp.qpn);
    return wait.cqe;
}

void mthca_side_take_none(MthcaSide *s)
{
    struct mthca_cqe cqe;

    lab_run(s->m->host->lab);
    g_assert_false(mthca_cq_take(s->m, &s->cq, &cqe));
}

/* The next send to complete is @index, without fault. */
struct mthca_cqe mthca_side_take_send(MthcaSide *s, uint32_t index)
{
    struct mthca_cqe cqe = mthca_side_take(s);

    g_assert_cmphex(cqe.is_send, ==, MTHCA_CQE_IS_SEND);
    g_assert_cmphex(cqe.opcode, <, 0x20);
    g_assert_cmphex(GUINT32_FROM_BE(cqe.wqe), ==,
                    32 * 128 + (index % 32) * 128);
    return cqe;
}

struct mthca_cqe mthca_side_take_recv(MthcaSide *s, uint32_t index,
                                      uint32_t len)
{
    struct mthca_cqe cqe = mthca_side_take(s);

    g_assert_cmphex(cqe.is_send, ==, 0);
    g_assert_cmphex(cqe.opcode, <, 0xfe);
    g_assert_cmphex(GUINT32_FROM_BE(cqe.wqe), ==, (index % 32) * 128);
    g_assert_cmpuint(GUINT32_FROM_BE(cqe.byte_cnt), ==, len);
    return cqe;
}

void mthca_side_send(MthcaSide *s, const MthcaWr *wr)
{
    mthca_post_send(s->m, &s->qp, wr);
    mthca_ring_send(s->m, &s->qp, 1);
}
