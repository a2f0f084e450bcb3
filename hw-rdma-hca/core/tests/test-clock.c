/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The card's clock: its register in each UAR page, the time in CQEs. */
#include "lib-pair.h"

#define TIME_MASK ((UINT64_C(1) << RDMA_HCA_CQE_TIME_BITS) - 1)

static void test_register(void)
{
    static const uint32_t pages[] = { 0, 1, RDMA_HCA_NUM_UARS - 1 };
    static const int64_t times[] = { 1, UINT32_MAX, INT64_C(0x123456789a) };
    Pair *pair = pair_new(3, 4096);
    Host *host = &pair->lab->host[0];

    for (unsigned i = 0; i < G_N_ELEMENTS(times); i++) {
        uint32_t at = pages[i] * RDMA_HCA_UAR_PAGE_SIZE + RDMA_HCA_CLOCK;

        pair->lab->now = times[i];
        g_assert_cmphex(host_uar_read64(host, at), ==, (uint64_t)times[i]);
        g_assert_cmphex(host_uar_read32(host, at), ==, (uint32_t)times[i]);
        g_assert_cmphex(host_uar_read32(host, at + 4), ==, times[i] >> 32);
    }
    g_assert_cmpuint(GUINT32_FROM_BE(pair->drv[0]->lim.clock_khz), ==, 1000000);
    pair_free(pair);
}

/* There is nothing else to be read, and nothing to be written. */
static void test_others(void)
{
    Pair *pair = pair_new(3, 4096);
    Host *host = &pair->lab->host[0];

    pair->lab->now = INT64_C(0x1234567890);
    for (uint32_t at = 0; at < RDMA_HCA_UAR_PAGE_SIZE; at += 4) {
        uint32_t page = (at & 0xff) * RDMA_HCA_UAR_PAGE_SIZE;

        if (at - at % 8 != RDMA_HCA_CLOCK) {
            g_assert_cmphex(host_uar_read32(host, page + at), ==, 0);
            g_assert_cmphex(host_uar_read64(host, page + at - at % 8), ==, 0);
        }
    }
    host_uar_write64(host, RDMA_HCA_CLOCK, UINT64_MAX);
    host_uar_write32(host, RDMA_HCA_CLOCK, 0);
    host_uar_write32(host, RDMA_HCA_CLOCK + 4, UINT32_MAX);
    lab_run(pair->lab);
    g_assert_cmphex(host_uar_read64(host, RDMA_HCA_CLOCK), ==,
                    (uint64_t)pair->lab->now);
    g_assert_cmpuint(pair_counter(pair, 0, "send_db_bad_qpn"), ==, 0);
    g_assert_cmpuint(pair_counter(pair, 0, "cxtmgt_cq_doorbells"), ==, 0);
    pair_free(pair);
}

/* The clock of a completion is that of the register, low bits of it. */
static void check_time(const Pair *pair, const Wc *wc, int64_t from)
{
    uint64_t since = (wc->time - (uint64_t)from) & TIME_MASK;

    g_assert_cmphex(wc->time, <=, TIME_MASK);
    g_assert_cmpuint(since, <=, pair->lab->now - from);
}

/* Of sends and receives, of errors, before and after the bits are used up. */
static void test_cqe(gconstpointer start)
{
    Pair *pair = pair_new(7, 4096);
    int64_t from;
    Qp *qp[2];
    Wc wc;

    pair_connect(pair, NULL, qp);
    lab_run(pair->lab);
    pair->lab->now = *(const int64_t *)start;
    for (unsigned i = 0; i < 20; i++) {
        Sge sge;
        SendWr wr = pair_send(pair, 0, RDMA_HCA_OPCODE_SEND, i, &sge, 0, 8, 0);

        from = pair->lab->now;
        pair_post_recv(pair, 1, qp[1], i, 0, 8);
        qp_post_send(qp[0], &wr, 1);
        for (unsigned side = 0; side < 2; side++) {
            cq_expect(pair->cq[side], &wc, i, 0);
            check_time(pair, &wc, from);
        }
        lab_sleep(pair->lab, 100);
    }
    from = pair->lab->now;
    qp_to_err(qp[1]);
    pair_post_recv(pair, 1, qp[1], 99, 0, 8);
    cq_expect(pair->cq[1], &wc, 99, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    check_time(pair, &wc, from);
    pair_free(pair);
}

/* Entries have the order of their times. */
static void test_order(void)
{
    Pair *pair = pair_new(9, 4096);
    uint64_t last = 0;
    Qp *qp[2];
    Wc wc;

    pair_connect(pair, NULL, qp);
    for (unsigned i = 0; i < 10; i++) {
        Sge sge;
        SendWr wr = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, i, &sge, 0,
                              8, 0);

        qp_post_send(qp[0], &wr, 1);
        lab_sleep(pair->lab, 1000);
    }
    for (unsigned i = 0; i < 10; i++) {
        cq_expect(pair->cq[0], &wc, i, 0);
        g_assert_cmpuint(wc.time, >, last);
        last = wc.time;
    }
    pair_free(pair);
}

int main(int argc, char **argv)
{
    static const int64_t early = 1000;
    static const int64_t wrap = (INT64_C(1) << RDMA_HCA_CQE_TIME_BITS) - 1000;
    static const int64_t late = INT64_C(0x7123456789abcdef);

    g_test_init(&argc, &argv, NULL);
    test_add("/clock/register", test_register);
    test_add("/clock/others", test_others);
    test_add_data_each_link("/clock/cqe/early", &early, test_cqe);
    test_add_data_each_link("/clock/cqe/wrap", &wrap, test_cqe);
    test_add_data("/clock/cqe/late", &late, test_cqe);
    test_add("/clock/order", test_order);
    return g_test_run();
}
