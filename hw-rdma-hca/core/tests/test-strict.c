/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The strict mode: each thing that works here and breaks elsewhere is told once
 * for a QP, in a line and in the recorder; what is right is not; off, nothing is.
 */
#include "../strict.h"
#include "lib-bed.h"
#include "lib-mem.h"

#define SEND RDMA_HCA_OPCODE_SEND
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define MS NS_PER_MS

/* With a PSN of its own for each end. */
static void attr_init(QpAttr *attr)
{
    qp_attr_init(attr);
    attr->rq_psn = 0x777777;
    attr->timeout = BED_TIMEOUT;
}

static Bed *bed_new(bool strict, const QpAttr *attr)
{
    BedConfig config = bed_connection(RDMA_HCA_QP_ST_RC);
    HcaConfig cards[2];

    for (unsigned i = 0; i < 2; i++) {
        lab_config(&cards[i], i);
        cards[i].strict = strict;
        cards[i].recorder = 64;
    }
    config.seed = 4500;
    config.cards = cards;
    config.bystander = false;
    attr_init(&config.attr);
    if (attr) {
        config.attr = *attr;
    }
    return bed_new_as(&config);
}

typedef struct Found {
    const char *text;
    unsigned n;
} Found;

static void look(void *opaque, const char *line)
{
    Found *found = opaque;

    found->n += strstr(line, found->text) != NULL;
}

/* @n lines of @kind's of a side's card, which has told of nothing else. */
static void expect_told(Bed *bed, unsigned side, HcaStrictKind kind, unsigned n)
{
    Host *host = &bed->lab->host[side];
    g_autofree char *part = g_strdup_printf(", %s (index",
                                            hca_strict_name(kind));
    g_autofree char *event = g_strdup_printf(" kind %s index",
                                             hca_strict_name(kind));
    Found found = { .text = event };

    g_assert_cmpuint(host->warnings->len, ==, n);
    for (unsigned i = 0; i < n; i++) {
        const char *line = g_ptr_array_index(host->warnings, i);

        g_assert_true(g_str_has_prefix(line, "strict: QP 0x"));
        g_assert_nonnull(strstr(line, part));
    }
    hca_recorder_visit(host->hca, look, &found);
    g_assert_cmpuint(found.n, ==, n);
    g_ptr_array_set_size(host->warnings, 0);
}

static void expect_nothing(Bed *bed)
{
    for (unsigned i = 0; i < 2; i++) {
        g_assert_cmpuint(bed->lab->host[i].warnings->len, ==, 0);
    }
}

/* What is right is not told of. */
static void test_right(void)
{
    Bed *bed = bed_new(true, NULL);
    Wc wc;

    for (unsigned i = 0; i < 40; i++) {
        bed_post_recvs(bed, 1, 4096);
        bed_request(bed, 0,
                    i % 3 == 0   ? SEND
                    : i % 3 == 1 ? WRITE
                                 : READ,
                    3000);
        bed_post_requests(bed, 1);
        cq_expect(bed->cqs[0], &wc, 0, 0);
        if (i % 3 == 0) {
            cq_expect(bed->cqs[1], &wc, 0, 0);
        }
        if (i >= 12) {
            break;
        }
    }
    expect_nothing(bed);
    bed_free(bed);
}

/* A Send that comes before its receive, twice: told of once. */
static void no_receive(Bed *bed)
{
    Wc wc;

    for (unsigned i = 0; i < 2; i++) {
        bed_request(bed, 0, SEND, 100);
        bed_post_requests(bed, 1);
        lab_sleep(bed->lab, MS / 10);
        bed_post_recvs(bed, 1, 4096);
        cq_expect(bed->cqs[0], &wc, 0, 0);
        cq_expect(bed->cqs[1], &wc, 0, 0);
    }
}

static void test_no_receive(void)
{
    Bed *bed = bed_new(true, NULL);

    no_receive(bed);
    expect_told(bed, 1, HCA_STRICT_NO_RECEIVE, 1);
    expect_nothing(bed);
    bed_free(bed);
}

static void test_off(void)
{
    Bed *bed = bed_new(false, NULL);

    no_receive(bed);
    expect_nothing(bed);
    bed_free(bed);
}

/* Memory that is written while its packet has to be sent again. */
static void test_payload(gconstpointer data)
{
    bool changes = GPOINTER_TO_UINT(data);
    Bed *bed;
    QpAttr attr;
    Wc wc;

    attr_init(&attr);
    bed = bed_new(true, &attr);
    bed_set_weather(bed, 0, (BedWeather) { .nth = 1, .fate = CABLE_DROP });
    bed_request(bed, 0, WRITE, 100);
    bed_post_requests(bed, 1);
    lab_sleep(bed->lab, MS);
    if (changes) {
        mr_write(bed->pair->mr[0], 50, "x", 1);
    }
    cq_expect(bed->cqs[0], &wc, 0, 0);
    if (changes) {
        expect_told(bed, 0, HCA_STRICT_PAYLOAD, 1);
    }
    expect_nothing(bed);
    bed_free(bed);
}

/* Both ends have the same number: one that was not exchanged would do. */
static void test_psn_alike(void)
{
    QpAttr attr;
    Bed *bed;

    qp_attr_init(&attr);
    attr.rq_psn = attr.sq_psn;
    bed = bed_new(true, &attr);
    for (unsigned i = 0; i < 2; i++) {
        expect_told(bed, i, HCA_STRICT_PSN_ALIKE, 1);
    }
    bed_free(bed);
}

/*
 * A number comes back at once, in a card that has come for the other one; and when
 * nothing of it can be on its way.
 */
static void test_qpn_soon(void)
{
    QpAttr attr;
    Bed *bed;

    attr_init(&attr);
    bed = bed_new(true, &attr);
    for (unsigned i = 0; i < 2; i++) {
        g_assert_cmphex(qp_to_rst(bed->qps[i]), ==, 0);
    }
    bed->lab->now += NS_PER_S; /* 67 ms, and seven times again */
    qp_connect(bed->qps[0], bed->qps[1], &attr);
    expect_nothing(bed);
    for (unsigned i = 0; i < 2; i++) {
        g_assert_cmphex(qp_to_rst(bed->qps[i]), ==, 0);
        host_reload(&bed->lab->host[i]);
    }
    qp_connect(bed->qps[0], bed->qps[1], &attr);
    for (unsigned i = 0; i < 2; i++) {
        expect_told(bed, i, HCA_STRICT_QPN_SOON, 1);
    }
    bed_free(bed);
}

static void cq_small(bool sends, bool receives)
{
    Bed *bed = bed_new(true, NULL);
    Cq *large = cq_new(bed->drv[0], 10, 1), *small = cq_new(bed->drv[0], 2, 1);
    QpConfig config;
    QpAttr attr;
    Qp *qp;

    qp_config_init(&config, bed->pair->pd[0], sends ? small : large);
    config.recv_cq = receives ? small : large;
    qp = qp_new(bed->drv[0], &config);
    qp_attr_init(&attr);
    g_assert_cmphex(qp_to_init(qp, &attr), ==, 0);
    expect_told(bed, 0, HCA_STRICT_CQ_SMALL, sends || receives);
    bed_free(bed);
}

/* A CQ of 4 entries for a QP that may complete more, of either kind. */
static void test_cq_small(void)
{
    cq_small(false, false);
    cq_small(false, true);
    cq_small(true, false);
    cq_small(true, true);
}

/* More Reads than the responder was told of. */
static void test_rd_atomic(void)
{
    QpAttr attr;
    Bed *bed;

    attr_init(&attr);
    attr.max_rd_atomic = 4;
    attr.max_dest_rd_atomic = 1;
    bed = bed_new(true, &attr);
    for (unsigned i = 0; i < 4; i++) {
        bed_request(bed, i, READ, 3000);
    }
    bed_post_requests(bed, 4);
    lab_sleep(bed->lab, MS);
    expect_told(bed, 1, HCA_STRICT_RD_ATOMIC, 1);
    bed_free(bed);
}

/* WQEs beyond the queue's end, as if some had been done. */
static void test_sq_overrun(void)
{
    Bed *bed = bed_new(true, NULL);
    Qp *qp = bed->qps[0];
    unsigned entries = qp->sq.entries;

    bed_set_weather(bed, 1, (BedWeather) { .lost = true });
    for (unsigned i = 0; i < entries + 2; i++) {
        if (i == entries) {
            qp->sq.tail += 2; /* software has lost count */
        }
        bed_request(bed, 0, WRITE, 8);
        bed_post_requests(bed, 1);
        lab_sleep(bed->lab, 100);
    }
    expect_told(bed, 0, HCA_STRICT_SQ_OVERRUN, 1);
    bed_free(bed);
}

/* A region of side 1 that its QP may invalidate. */
static Mr *leased(Bed *bed)
{
    Mr *mr = mem_region_new(bed->drv[1], bed->pair->pd[1], 2);

    mem_register(bed->qps[1], mr, 0x10000, 8192, ACCESS_ALL);
    return mr;
}

/* The peer writes by a key whose invalidation waits for something else. */
static void test_key_going(void)
{
    Bed *bed = bed_new(true, NULL);
    Mr *mr = leased(bed);
    Sge sge;
    SendWr wr = pair_send(bed->pair, 1, WRITE, 1, &sge, 0, 64, 0);
    SendWr inv = mem_inv_wr(mr->key);

    bed_set_weather(bed, 1, (BedWeather) { .nth = 1, .fate = CABLE_DROP });
    g_assert_true(qp_post_send(bed->qps[1], &wr, 1));
    g_assert_true(qp_post_send(bed->qps[1], &inv, 1));
    lab_sleep(bed->lab, MS);
    expect_nothing(bed);
    bed_request(bed, 0, WRITE, 64);
    bed->wr[0].rkey = mr->key;
    bed->wr[0].raddr = mr->va;
    bed_post_requests(bed, 1);
    bed_expect_end(bed, 0, 0);
    expect_told(bed, 1, HCA_STRICT_KEY_GOING, 1);
    bed_free(bed);
}

/* It invalidates one by which it has not read all yet. */
static void test_key_read(void)
{
    Bed *bed = bed_new(true, NULL);
    Mr *mr = leased(bed);

    bed_post_recvs(bed, 1, 64);
    bed_request(bed, 0, READ, 3000);
    bed->wr[0].rkey = mr->key;
    bed->wr[0].raddr = mr->va;
    bed->wr[1] = mem_send_inv_wr(mr->key);
    bed->wr[1].wr_id = 1;
    bed_post_requests(bed, 2);
    for (unsigned i = 0; i < 2; i++) {
        bed_expect_end(bed, 0, 0);
    }
    expect_told(bed, 1, HCA_STRICT_KEY_READ, 1);
    bed_free(bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/strict/right", test_right);
    test_add_each_link("/strict/no-receive", test_no_receive);
    test_add("/strict/off", test_off);
    test_add_data_each_link("/strict/payload/changed", GUINT_TO_POINTER(1),
                            test_payload);
    test_add_data_each_link("/strict/payload/same", GUINT_TO_POINTER(0),
                            test_payload);
    test_add_each_link("/strict/psn-alike", test_psn_alike);
    test_add_each_link("/strict/qpn-soon", test_qpn_soon);
    test_add("/strict/cq-small", test_cq_small);
    test_add("/strict/rd-atomic", test_rd_atomic);
    test_add("/strict/sq-overrun", test_sq_overrun);
    test_add("/strict/key-going", test_key_going);
    test_add("/strict/key-read", test_key_read);
    return g_test_run();
}
