/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How far a requester's PSNs get ahead of those acknowledged (IBA 9.7.5.1).
 */
#include "../requester/multi_queue.h"
#include "lib-requester.h"

#define MTU BED_MTU
#define PSN BED_PSN
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define SYNDROME(name) RDMA_HCA_SYNDROME_##name

/* A Read into 2 GiB that are 64 KiB again and again. */
static void post_long_read(Bed *bed, const Mr *mr, uint64_t wr_id, uint32_t len)
{
    Sge sge[2] = { mr_sge(mr, 0, len / 2), mr_sge(mr, len / 2, len - len / 2) };
    SendWr wr = bed_wr(bed, &(Sge) { 0 }, READ, wr_id, len);

    wr.nsge = 2;
    wr.sge = sge;
    bed_post_wr(bed, &wr);
}

/* As if all responses but the last had come. */
static void answer_all_but_last(Bed *bed)
{
    HcaSentRead *read = hca_mq_rpb_head(bed->hca, bed->hqp);
    uint32_t rest = read->len % MTU ? read->len % MTU : MTU;
    HcaSge *entry;

    hca_mq_reb_release(bed->hca, bed->hqp);
    entry = hca_mq_reb_head(bed->hca, bed->hqp);
    entry->va += entry->len - rest;
    entry->len = rest;
    read->answered = read->npsn - 1;
    read->received = read->len - rest;
    bed->hqp->req.unacked_psn = hca_psn_add(read->psn, read->answered);
}

static Bed *long_bed(Mr **mr)
{
    HcaConfig config[2];
    QpAttr attr;
    Bed *bed;

    lab_config(&config[0], 0);
    lab_config(&config[1], 1);
    config[0].log_mtts = 17;
    bed_attr_init(&attr);
    bed = bed_new_with(RDMA_HCA_QP_ST_RC, &attr, config);
    *mr = mr_new_repeated(bed->pair->drv[0], bed->pair->pd[0], 0x10000,
                          UINT64_C(1) << 31, RDMA_HCA_ACCESS_LOCAL_WRITE);
    return bed;
}

/* No more than half of all PSNs are on their way, and no less. */
static void test_window(void)
{
    const uint32_t half = 1u << 23;
    Bed *bed;
    Mr *mr;

    bed = long_bed(&mr);
    post_long_read(bed, mr, 1, half * MTU);
    bed_expect_read(bed, PSN, 0, half * MTU);
    bed_post(bed, WRITE, 2, 100);
    bed_post(bed, WRITE, 3, 100);
    bed_expect_quiet(bed);
    g_assert_cmpuint(bed_counter(bed, 0, "requester_wait_psns"), >, 0);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN, 0, MTU);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN + half);
    bed_expect_quiet(bed);
    answer_all_but_last(bed);
    bed_respond(bed, HCA_READ_RESP_LAST, PSN + half - 1, 0, MTU);
    bed_expect_done(bed, 1);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN + half + 1);
    bed_ack(bed, PSN + half + 1);
    bed_expect_done(bed, 2);
    bed_expect_done(bed, 3);
    bed_free(bed);
}

/*
 * The first Read's own PSN is more than half of the circle behind the Write.
 * All the same it comes first: when it is sent again, when the Write is
 * acknowledged, and when the queue is flushed.
 */
static void test_long_reads(void)
{
    const uint32_t first = 1u << 22, second = (1u << 23) - 2;
    const uint32_t write = PSN + first + second;
    Bed *bed;
    Mr *mr;

    bed = long_bed(&mr);
    post_long_read(bed, mr, 1, first * MTU);
    bed_expect_read(bed, PSN, 0, first * MTU);
    answer_all_but_last(bed);
    post_long_read(bed, mr, 2, second * MTU);
    bed_expect_read(bed, PSN + first, 0, second * MTU);
    bed_post(bed, WRITE, 3, 100);
    bed_expect_payload(bed, HCA_WRITE_ONLY, write, 3 * 4096, 100);
    lab_sleep(bed->pair->lab, BED_TIMEOUT_NS + NS_PER_MS);
    bed_expect_read(bed, PSN + first - 1, (first - 1) * MTU, MTU);
    bed_expect_read(bed, PSN + first, 0, second * MTU);
    bed_expect_payload(bed, HCA_WRITE_ONLY, write, 3 * 4096, 100);
    bed_ack(bed, write);
    bed_expect_none(bed);
    bed_expect_upsn(bed, PSN + first - 1);
    bed_forget_requests(bed);
    g_assert_cmphex(qp_to_err(bed->qp), ==, 0);
    for (unsigned n = 1; n <= 3; n++) {
        bed_expect_wc(bed, n, SYNDROME(WR_FLUSH_ERR));
    }
    bed_free(bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/requester/psn/window", test_window);
    test_add("/requester/psn/long-reads", test_long_reads);
    return g_test_run();
}
