/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared receive queues of cards with the interface of an InfiniHost III Lx:
 * lists, whose order of use is that of posting and not that of the places.
 */
#include <string.h>

#include "../cxtmgt/cxtmgt.h"
#include "lib-card.h"
#include "lib-mthca-pair.h"
#include "lib-test.h"

#define LOG_SIZE 4
#define SIZE (1u << LOG_SIZE)
#define LOG_STRIDE 6
#define SRQN 9
#define SLOT 2048 /* of data, for each entry */

/* Side 1 receives by an SRQ. */
typedef struct Bed {
    MthcaPair pair;
    MthcaSrq srq;
} Bed;

static MthcaSrq srq_of(Mthca *m, uint32_t srqn)
{
    return (MthcaSrq) {
        .srqn = srqn,
        .mr = mthca_mr(m, 1, 0),
        .log_size = LOG_SIZE,
        .log_stride = LOG_STRIDE,
        .uar = MTHCA_SIDE_UAR,
        .record = 0x7ffd,
    };
}

static void bed_init(Bed *bed, uint8_t service, uint32_t latency)
{
    MthcaPair *pair = &bed->pair;
    MthcaSide *s = &pair->side[1];

    pair->lab = mthca_lab(23, latency);
    lab_cable(pair->lab, true);
    mthca_side_init(&pair->side[0], &pair->lab->host[0], service, false);
    mthca_side_open(s, &pair->lab->host[1], service, false);
    bed->srq = srq_of(s->m, SRQN);
    g_assert_cmphex(mthca_sw2hw_srq(s->m, &bed->srq), ==, 0);
    s->qp.srq = &bed->srq;
    g_assert_cmphex(mthca_qp_to_init(s->m, &s->qp), ==, 0);
    mthca_pair_connect(pair);
    lab_run(pair->lab);
    mthca_side_fill(&pair->side[0], pair->lab->rand);
}

/* Its data go to its own place. */
static uint32_t post(Bed *bed)
{
    MthcaSide *s = &bed->pair.side[1];
    MthcaSge to = mthca_side_sge(s, (uint64_t)bed->srq.first_free * SLOT, SLOT);

    return mthca_srq_post(s->m, &bed->srq, &to, 1);
}

static void send_from(Bed *bed, uint64_t va, uint32_t len)
{
    MthcaSide *s = &bed->pair.side[0];
    MthcaWr wr = { .opcode = HCA_OP_SEND,
                   .signalled = true,
                   .nsge = 1,
                   .sge = { mthca_side_sge(s, va, len) } };

    mthca_side_send(s, &wr);
}

static void take_entry(Bed *bed, uint32_t index, uint64_t va, uint32_t len)
{
    struct mthca_cqe cqe = mthca_side_take(&bed->pair.side[1]);

    g_assert_cmphex(cqe.opcode, <, 0xfe);
    g_assert_cmphex(GUINT32_FROM_BE(cqe.wqe), ==, index << LOG_STRIDE);
    g_assert_cmpuint(GUINT32_FROM_BE(cqe.byte_cnt), ==, len);
    mthca_pair_same(&bed->pair, va, (uint64_t)index * SLOT, len);
}

/*
 * Entries come free in another order than that of their use, so the list is
 * soon in none; and there are never more of them than there are.
 */
static void check_list(uint32_t latency)
{
    Bed bed;
    GQueue posted = G_QUEUE_INIT, used = G_QUEUE_INIT;
    GRand *rand;

    bed_init(&bed, MTHCA_QPC_SERVICE_RC, latency);
    rand = bed.pair.lab->rand;
    for (uint32_t round = 0, sent = 0; round < 60; round++) {
        unsigned n = g_rand_int_range(rand, 1, 6);

        while (posted.length + used.length < SIZE - 1) {
            g_queue_push_tail(&posted, GUINT_TO_POINTER(post(&bed)));
        }
        for (unsigned i = 0; i < n; i++, sent++) {
            uint32_t len = g_rand_int_range(rand, 1, SLOT);
            gpointer index = g_queue_pop_head(&posted);

            send_from(&bed, sent % 1024, len);
            take_entry(&bed, GPOINTER_TO_UINT(index), sent % 1024, len);
            mthca_side_take_send(&bed.pair.side[0], sent);
            g_queue_push_tail(&used, index);
        }
        while (used.length) {
            gint nth = g_rand_int_range(rand, 0, used.length);

            mthca_srq_release(bed.pair.side[1].m, &bed.srq,
                              GPOINTER_TO_UINT(g_queue_pop_nth(&used, nth)));
        }
    }
    g_queue_clear(&posted);
    mthca_pair_free(&bed.pair);
}

static void test_list(void)
{
    check_list(0);
}

static void test_list_late(void)
{
    check_list(2000);
}

/* As many as there are entries; then the sender waits until one is posted. */
static void test_all_entries(void)
{
    Bed bed;

    bed_init(&bed, MTHCA_QPC_SERVICE_RC, 0);
    for (uint32_t i = 0; i < SIZE; i++) {
        g_assert_cmpuint(post(&bed), ==, i);
    }
    for (uint32_t i = 0; i < SIZE; i++) {
        send_from(&bed, 8 * i, 100);
        take_entry(&bed, i, 8 * i, 100);
        mthca_side_take_send(&bed.pair.side[0], i);
    }
    send_from(&bed, 5, 100);
    lab_run_for(bed.pair.lab, 5 * NS_PER_MS);
    mthca_side_take_none(&bed.pair.side[1]);
    mthca_srq_release(bed.pair.side[1].m, &bed.srq, 11);
    bed.srq.first_free = 11;
    g_assert_cmpuint(post(&bed), ==, 11);
    /* The last one's link led to 0, which so is what was posted, by the card. */
    mthca_side_take(&bed.pair.side[1]);
    mthca_side_take_send(&bed.pair.side[0], SIZE);
    mthca_pair_free(&bed.pair);
}

static bool take_event(Bed *bed, uint8_t type, uint32_t number)
{
    Mthca *m = bed->pair.side[1].m;
    struct mthca_eqe eqe;

    lab_run(bed->pair.lab);
    if (!mthca_eq_take(m, &m->eq[MTHCA_EQ_ASYNC], &eqe)) {
        return false;
    }
    g_assert_cmphex(eqe.type, ==, type);
    g_assert_cmphex(GUINT32_FROM_BE(eqe.object.number), ==, number);
    return true;
}

/* Of the port, and that a connection works. */
static void forget_events(Bed *bed)
{
    Mthca *m = bed->pair.side[1].m;
    struct mthca_eqe eqe;

    lab_run(bed->pair.lab);
    while (mthca_eq_take(m, &m->eq[MTHCA_EQ_ASYNC], &eqe)) {
    }
}

/* ARM_SRQ: one event, when fewer are left; then there is no limit. */
static void test_limit(void)
{
    Bed bed;
    Mthca *m;
    struct mthca_srqc srqc;

    bed_init(&bed, MTHCA_QPC_SERVICE_RC, 0);
    m = bed.pair.side[1].m;
    for (uint32_t i = 0; i < 8; i++) {
        post(&bed);
    }
    forget_events(&bed);
    mthca_must(mthca_cmd(m, RDMA_HCA_CMD_ARM_SRQ, 6, SRQN, 0, 0, NULL));
    mthca_must(mthca_srq_query(m, &bed.srq, &srqc));
    g_assert_cmpuint(GUINT16_FROM_BE(srqc.limit), ==, 6);
    g_assert_cmpuint(GUINT16_FROM_BE(srqc.wqe_cnt), ==, 8);
    for (uint32_t i = 0; i < 5; i++) {
        bool due = i == 2; /* five are left */

        send_from(&bed, i, 10);
        take_entry(&bed, i, i, 10);
        g_assert_cmpint(take_event(&bed, 0x14, SRQN), ==, due);
    }
    mthca_must(mthca_srq_query(m, &bed.srq, &srqc));
    g_assert_cmpuint(GUINT16_FROM_BE(srqc.limit), ==, 0);
    g_assert_cmpuint(GUINT16_FROM_BE(srqc.wqe_cnt), ==, 3);
    mthca_pair_free(&bed.pair);
}

/* A QP of an SRQ that fails says when it has had its last entry. */
static void test_last_wqe(void)
{
    Bed bed;
    Mthca *m;

    bed_init(&bed, MTHCA_QPC_SERVICE_RC, 0);
    m = bed.pair.side[1].m;
    post(&bed);
    forget_events(&bed);
    mthca_must(mthca_cmd(m, RDMA_HCA_CMD_2ERR_QPEE, m->mbox_in,
                         bed.pair.side[1].qp.qpn, 0, 0, NULL));
    g_assert_true(take_event(&bed, 0x13, bed.pair.side[1].qp.qpn));
    mthca_side_take_none(&bed.pair.side[1]); /* the entry is the SRQ's */
    mthca_pair_free(&bed.pair);
}

/* Datagrams, too, take from it; each lies behind room for a GRH. */
static void test_datagrams(void)
{
    Bed bed;
    MthcaSide *from, *to;
    MthcaWr wr;

    bed_init(&bed, MTHCA_QPC_SERVICE_UD, 0);
    from = &bed.pair.side[0];
    to = &bed.pair.side[1];
    wr = (MthcaWr) {
        .opcode = HCA_OP_SEND,
        .signalled = true,
        .nsge = 1,
        .sge = { mthca_side_sge(from, 64, 500) },
        .dlid = to->m->host->config.lid,
        .dqpn = to->qp.qpn,
        .qkey = 0x11111111,
    };
    for (uint32_t i = 0; i < 3; i++) {
        struct mthca_cqe cqe;

        post(&bed);
        mthca_side_send(from, &wr);
        mthca_side_take_send(from, i);
        cqe = mthca_side_take(to);
        g_assert_cmphex(GUINT32_FROM_BE(cqe.wqe), ==, i << LOG_STRIDE);
        mthca_pair_same(&bed.pair, 64, i * SLOT + 40, 500);
    }
    mthca_pair_free(&bed.pair);
}

/* ---- contexts ---- */

static void test_query(void)
{
    Bed bed;
    Mthca *m;
    struct mthca_srqc box;
    const uint8_t *srqc = (const uint8_t *)&box;

    bed_init(&bed, MTHCA_QPC_SERVICE_RC, 0);
    m = bed.pair.side[1].m;
    mthca_must(mthca_srq_query(m, &bed.srq, &box));
    g_assert_cmphex(srqc[0x00], ==, LOG_SIZE);
    g_assert_cmphex(srqc[0x03], ==, SRQN);
    g_assert_cmphex(GUINT32_FROM_BE(box.lkey), ==, bed.srq.mr->key);
    g_assert_cmphex(srqc[0x0c] >> 5, ==, LOG_STRIDE - 4);
    g_assert_cmphex(GUINT32_FROM_BE(box.eqn_pd) & 0xffffff, ==, m->pd);
    /* It is used, and so stays; then it goes. */
    g_assert_cmphex(mthca_hw2sw_srq(m, &bed.srq), ==, MTHCA_STAT_RESOURCE_BUSY);
    mthca_must(mthca_qp_destroy(m, &bed.pair.side[1].qp));
    mthca_must(mthca_hw2sw_srq(m, &bed.srq));
    g_assert_cmphex(mthca_srq_query(m, &bed.srq, &box), ==,
                    RDMA_HCA_STAT_BAD_RES_STATE);
    mthca_pair_free(&bed.pair);
}

/* Contexts that are none, each by one thing. */
static void test_refused(void)
{
    static const struct {
        unsigned at;
        uint32_t flip;
    } wrong[] = {
        { 0x00, 0x00000000 }, /* nothing is */
        { 0x00, 0xf0000000 }, /* failed */
        { 0x08, 0x00008000 }, /* a record that its page has not */
        { 0x0c, 0x40000000 }, /* strides of 16 bytes */
        { 0x0c, 0x00800000 }, /* a page that is none */
        { 0x10, 0x00000001 }, /* an address */
        { 0x14, 0x00001000 },
    };
    Bed bed;
    Mthca *m;

    bed_init(&bed, MTHCA_QPC_SERVICE_RC, 0);
    m = bed.pair.side[1].m;
    for (unsigned i = 0; i < G_N_ELEMENTS(wrong); i++) {
        MthcaSrq srq = srq_of(m, SRQN + 1);
        struct mthca_srqc srqc;
        uint32_t *word = (uint32_t *)((uint8_t *)&srqc + wrong[i].at);

        mthca_put_srqc(&srq, m->pd, &srqc);
        *word ^= GUINT32_TO_BE(wrong[i].flip);
        g_assert_cmphex(mthca_cmd_in(m, RDMA_HCA_CMD_SW2HW_SRQ, &srqc,
                                     sizeof(srqc), srq.srqn, 0),
                        ==, wrong[i].flip ? RDMA_HCA_STAT_BAD_PARAM : 0);
        if (!wrong[i].flip) {
            mthca_must(mthca_hw2sw_srq(m, &srq));
        }
    }
    mthca_pair_free(&bed.pair);
}

/* ---- what no driver does ---- */

/* A link to itself, and links to nowhere: messages go on to some entry. */
static void test_circles(void)
{
    static const uint32_t links[] = { 0x00000001, 0xffffffff, 0x00000400,
                                      0x00000041, 0x7fffffc0 };
    Bed bed;
    Mthca *m;
    uint32_t sent = 0;

    bed_init(&bed, MTHCA_QPC_SERVICE_RC, 0);
    m = bed.pair.side[1].m;
    for (unsigned i = 0; i < G_N_ELEMENTS(links); i++) {
        uint32_t link = GUINT32_TO_BE(links[i]);

        for (uint32_t at = 0; at < SIZE; at++) {
            MthcaSge to = mthca_side_sge(&bed.pair.side[1], at * SLOT, SLOT);

            bed.srq.first_free = at;
            mthca_srq_post(m, &bed.srq, &to, 1);
            host_write(m->host, mthca_mr_bus(bed.srq.mr, at << LOG_STRIDE),
                       &link, sizeof(link));
        }
        for (uint32_t at = 0; at < SIZE; at++, sent++) {
            struct mthca_cqe cqe;

            send_from(&bed, sent, 20);
            cqe = mthca_side_take(&bed.pair.side[1]);
            g_assert_cmphex(cqe.opcode, <, 0xfe);
            g_assert_cmphex(GUINT32_FROM_BE(cqe.wqe), <, SIZE << LOG_STRIDE);
            mthca_side_take_send(&bed.pair.side[0], sent);
        }
    }
    mthca_pair_free(&bed.pair);
}

/* More than there are, or fewer than before: it has failed, and says so. */
static void test_record(void)
{
    static const uint16_t records[] = { SIZE + 1, 0xffff };

    for (unsigned i = 0; i < G_N_ELEMENTS(records); i++) {
        Bed bed;

        bed_init(&bed, MTHCA_QPC_SERVICE_RC, 0);
        forget_events(&bed);
        bed.srq.posted = (uint16_t)(records[i] - 1);
        post(&bed);
        send_from(&bed, 0, 10);
        g_assert_true(take_event(&bed, 0x12, SRQN));
        mthca_pair_free(&bed.pair);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/mthca/srq/list", test_list);
    test_add("/mthca/srq/list-late", test_list_late);
    test_add("/mthca/srq/all-entries", test_all_entries);
    test_add("/mthca/srq/limit", test_limit);
    test_add("/mthca/srq/last-wqe", test_last_wqe);
    test_add("/mthca/srq/datagrams", test_datagrams);
    test_add("/mthca/srq/query", test_query);
    test_add("/mthca/srq/refused", test_refused);
    test_add("/mthca/srq/circles", test_circles);
    test_add("/mthca/srq/record", test_record);
    return g_test_run();
}
