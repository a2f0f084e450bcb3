/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queues of an InfiniHost III Lx that are told by bus address, as iPXE does: no
 * region is made for any of them.
 */
#include <string.h>

#include "../cxtmgt/cxtmgt.h"
#include "lib-card.h"
#include "lib-mthca-pair.h"
#include "lib-test.h"

static uint8_t give_eq_on_bus(Mthca *m, uint32_t eqn, uint64_t bus)
{
    const struct mthca_eqc eqc = {
        .flags = GUINT32_TO_BE(0x01000a00), /* no TR, fired */
        .start_h = GUINT32_TO_BE(bus >> 32),
        .start_l = GUINT32_TO_BE((uint32_t)bus),
        .logsize = GUINT32_TO_BE(3u << 24),
        .intr = GUINT32_TO_BE(m->adapter[0x10]),
    };

    return mthca_cmd_in(m, RDMA_HCA_CMD_SW2HW_EQ, &eqc, sizeof(eqc), eqn, 0);
}

static void change_port(Mthca *m)
{
    const HcaEvent event = { .type = HCA_EVENT_PORT_CHANGE, .number = 1 };
    HcaEventPlace place = { 0 };

    hca_eq_event(m->host->hca->cm, &event, &place);
    lab_run(m->host->lab);
}

/* An EQ at a bus address, which is polled, as iPXE has it; also in another card. */
static void check_on_bus(uint32_t latency)
{
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 6, latency);
    Host *host = &lab->host[0];
    uint64_t page = host_alloc(host, 1);
    struct mthca_eqc eqc;
    struct mthca_eqe eqe;

    mthca_probe(m);
    g_assert_cmphex(give_eq_on_bus(m, 9, page + 1), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    mthca_must(give_eq_on_bus(m, 9, page));
    mthca_must(mthca_cmd(m, RDMA_HCA_CMD_MAP_EQ, 1 << HCA_EVENT_PORT_CHANGE, 9,
                         0, 0, NULL));
    for (unsigned i = 0; i < 20; i++) {
        host_fill(host, page, 0xff, 8 * sizeof(eqe));
        change_port(m);
        host_read(host, page + i % 8 * sizeof(eqe), &eqe, sizeof(eqe));
        g_assert_cmphex(eqe.type, ==, HCA_EVENT_PORT_CHANGE);
        g_assert_cmphex(eqe.owner, ==, MTHCA_OWNER_SW);
        mthca_write(m, MTHCA_EQ_SET_CI + 9 * MTHCA_EQ_SET_CI_STRIDE, i + 1);
        if (i == 10 && !latency) {
            host_reload(host);
        }
    }
    mthca_must(
        mthca_cmd_out(m, RDMA_HCA_CMD_QUERY_EQ, &eqc, sizeof(eqc), 9, 0));
    g_assert_cmphex(GUINT32_FROM_BE(eqc.flags) & 0x00040f00, ==, 0x00000a00);
    g_assert_cmphex(GUINT32_FROM_BE(eqc.start_l), ==, (uint32_t)page);
    mthca_lab_free(lab, m);
}

/*
 * Where there is no memory it fails, and another one says so, and the buffer for
 * catastrophic errors, until it is gone.
 */
static void test_eq_nowhere(void)
{
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 5, 0);
    uint8_t eqc[MTHCA_EQC_SIZE];
    struct mthca_eqe eqe;

    mthca_probe(m);
    mthca_must(give_eq_on_bus(m, 9, HOST_MMIO_BASE));
    mthca_must(mthca_cmd(m, RDMA_HCA_CMD_MAP_EQ, 1 << HCA_EVENT_PORT_CHANGE, 9,
                         0, 0, NULL));
    for (unsigned i = 0; i < MTHCA_CATAS_WORDS; i++) {
        g_assert_cmphex(mthca_read(m, MTHCA_CATAS + 4 * i), ==, 0);
    }
    change_port(m);
    g_assert_true(mthca_eq_take(m, &m->eq[MTHCA_EQ_ASYNC], &eqe));
    g_assert_cmphex(eqe.type, ==, HCA_EVENT_LOCAL_CATAS_ERROR);
    g_assert_cmphex(mthca_read(m, MTHCA_CATAS), ==, MTHCA_CATAS_INTERNAL);
    host_reload(m->host);
    g_assert_cmphex(mthca_read(m, MTHCA_CATAS), ==, MTHCA_CATAS_INTERNAL);
    mthca_must(mthca_cmd_out(m, RDMA_HCA_CMD_HW2SW_EQ, eqc, sizeof(eqc), 9, 0));
    g_assert_cmphex(mthca_read(m, MTHCA_CATAS), ==, 0);
    mthca_lab_free(lab, m);
}

static void test_eq_on_bus(void)
{
    check_on_bus(0);
}

static void test_eq_on_bus_late(void)
{
    check_on_bus(2000);
}

/* ---- work queues and completion queues ---- */

#define LOG_ENTRIES 3
#define LOG_STRIDE 7

/* A CQ in place of that which the side has, and a QP. */
static void open_on_bus(MthcaSide *s, Host *host, uint8_t service)
{
    mthca_side_open(s, host, service, true);
    mthca_must(mthca_hw2sw_cq(s->m, &s->cq));
    s->cq.mr = mthca_mr(s->m, 1, 0);
    s->cq.log_size = 5;
    s->cq.on_bus = true;
    mthca_must(mthca_sw2hw_cq(s->m, &s->cq));
    s->qp.mr = mthca_mr(s->m, 1, 0);
    s->qp.log_sq = s->qp.log_rq = LOG_ENTRIES;
    s->qp.log_stride = LOG_STRIDE;
    s->qp.on_bus = true;
    mthca_must(mthca_qp_to_init(s->m, &s->qp));
}

static uint32_t slot_bus(const MthcaSide *s, bool is_send, uint32_t index)
{
    uint32_t slot = index % (1u << LOG_ENTRIES) +
                    (is_send ? 1u << LOG_ENTRIES : 0);

    return s->qp.mr->page[0] + (slot << LOG_STRIDE);
}

/* Send number @i, of both queues; each tells where its WQE was on the bus. */
static void send_one(MthcaPair *pair, unsigned from, uint32_t i)
{
    MthcaSide *to = &pair->side[!from], *s = &pair->side[from];
    MthcaSge sge = mthca_side_sge(to, 4096 + i * 64, 2048);
    bool in_line = i % 3 == 1;
    uint32_t len = in_line ? 16 : 1000 + i;
    MthcaWr wr = { .opcode = HCA_OP_SEND,
                   .inline_data = in_line ? "sixteen and more" : NULL,
                   .inline_len = len,
                   .nsge = !in_line,
                   .sge = { mthca_side_sge(s, i * 64, len) },
                   .dlid = to->m->host->config.lid,
                   .dqpn = to->qp.qpn,
                   .qkey = 0x11111111 };
    uint32_t grh = s->qp.service == MTHCA_QPC_SERVICE_UD ? 40 : 0;
    struct mthca_cqe cqe;

    mthca_post_recv(to->m, &to->qp, &sge, 1);
    mthca_side_send(s, &wr);
    cqe = mthca_side_take(to);
    g_assert_cmphex(cqe.opcode, <, 0xfe);
    g_assert_cmpuint(GUINT32_FROM_BE(cqe.byte_cnt), ==, len + grh);
    if (in_line) {
        char got[16];

        mthca_side_read(to, sge.va + grh, got, sizeof(got));
        g_assert_cmpmem(got, sizeof(got), wr.inline_data, sizeof(got));
    }
    g_assert_cmphex(GUINT32_FROM_BE(cqe.wqe), ==, slot_bus(to, false, i));
    cqe = mthca_side_take(s);
    g_assert_cmphex(cqe.opcode, ==, HCA_OP_SEND);
    g_assert_cmphex(GUINT32_FROM_BE(cqe.wqe), ==, slot_bus(s, true, i));
}

static void check_contexts(MthcaSide *s)
{
    struct mthca_qp_mailbox box;
    struct mthca_cqc cqc;

    mthca_must(mthca_qp_query(s->m, &s->qp, &box));
    g_assert_cmphex(GUINT32_FROM_BE(box.qpc.wqe_base), ==,
                    s->qp.mr->page[0] >> 32);
    g_assert_cmphex(GUINT32_FROM_BE(box.qpc.snd_wqe_base), ==,
                    slot_bus(s, true, 0));
    g_assert_cmphex(GUINT32_FROM_BE(box.qpc.rcv_wqe_base), ==,
                    slot_bus(s, false, 0));
    mthca_must(mthca_cmd_out(s->m, RDMA_HCA_CMD_QUERY_CQ, &cqc, sizeof(cqc),
                             s->cq.cqn, 0));
    g_assert_cmphex(GUINT32_FROM_BE(cqc.flags) & 0x00040f00, ==, 0x00000a00);
    g_assert_cmphex(GUINT32_FROM_BE(cqc.start_h), ==, s->cq.mr->page[0] >> 32);
    g_assert_cmphex(GUINT32_FROM_BE(cqc.start_l), ==,
                    (uint32_t)s->cq.mr->page[0]);
}

/* Around all queues, in cards that go on elsewhere if they can. */
static void check_queues(uint8_t service, uint32_t latency)
{
    MthcaPair pair = { .lab = mthca_lab(18, latency) };

    lab_cable(pair.lab, true);
    for (unsigned side = 0; side < 2; side++) {
        open_on_bus(&pair.side[side], &pair.lab->host[side], service);
    }
    mthca_pair_connect(&pair);
    for (unsigned i = 0; i < 50; i++) {
        for (unsigned from = 0; from < 2; from++) {
            send_one(&pair, from, i);
            if (i % 10 == 5 && !latency) {
                host_reload(&pair.lab->host[from]);
            }
        }
    }
    check_contexts(&pair.side[0]);
    mthca_pair_free(&pair);
}

static void test_rc(void)
{
    check_queues(MTHCA_QPC_SERVICE_RC, 0);
}

static void test_ud(void)
{
    check_queues(MTHCA_QPC_SERVICE_UD, 0);
}

static void test_ud_late(void)
{
    check_queues(MTHCA_QPC_SERVICE_UD, 2000);
}

/* It has no region from which it could go to another one. */
static void test_resize(void)
{
    struct mthca_resize_cq resize = { .logsize = GUINT32_TO_BE(4u << 24) };
    Lab *lab = mthca_lab(19, 0);
    MthcaSide s;

    open_on_bus(&s, &lab->host[0], MTHCA_QPC_SERVICE_UD);
    resize.lkey = GUINT32_TO_BE(s.data->key);
    g_assert_cmphex(mthca_cmd_in(s.m, RDMA_HCA_CMD_RESIZE_CQ, &resize,
                                 sizeof(resize), s.cq.cqn, 1),
                    ==, RDMA_HCA_STAT_BAD_RES_STATE);
    mthca_lab_free(lab, s.m);
}

/* Where there is no memory it fails, with its event; so does the QP. */
static void test_cq_nowhere(void)
{
    uint64_t nowhere[] = { HOST_MMIO_BASE };
    MthcaMr mr = { .npages = 1, .page = nowhere };
    Mthca *m;
    Lab *lab = mthca_lab_with(&m, 5, 0);
    MthcaCq cq = { .cqn = 0x12, .mr = &mr, .on_bus = true, .log_size = 4 };
    HcaCompletion completion = { .qpn = 0x123456 };
    HcaQp qp = { .qpn = completion.qpn };
    struct mthca_cqc cqc;
    struct mthca_eqe eqe;

    mthca_probe(m);
    cq.uar = MTHCA_SIDE_UAR;
    mthca_put_cqc(&cq, m->pd, 1, &cqc);
    mthca_must(
        mthca_cmd_in(m, RDMA_HCA_CMD_SW2HW_CQ, &cqc, sizeof(cqc), cq.cqn, 0));
    g_assert_false(
        hca_cq_post(m->host->hca->cm, HCA_V2P_RTC, &qp, cq.cqn, &completion));
    lab_run(lab);
    g_assert_true(mthca_eq_take(m, &m->eq[MTHCA_EQ_ASYNC], &eqe));
    g_assert_cmphex(eqe.type, ==, HCA_EVENT_CQ_ERROR);
    g_assert_cmphex(eqe.cq.syndrome, ==, HCA_CQ_ERROR_ACCESS);
    mthca_lab_free(lab, m);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/mthca/bus/eq", test_eq_on_bus);
    test_add("/mthca/bus/eq-late", test_eq_on_bus_late);
    test_add("/mthca/bus/eq-nowhere", test_eq_nowhere);
    test_add("/mthca/bus/rc", test_rc);
    test_add("/mthca/bus/ud", test_ud);
    test_add("/mthca/bus/ud-late", test_ud_late);
    test_add("/mthca/bus/resize", test_resize);
    test_add("/mthca/bus/cq-nowhere", test_cq_nowhere);
    return g_test_run();
}
