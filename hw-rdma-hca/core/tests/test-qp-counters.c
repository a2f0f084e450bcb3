/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters of QPs: which set a QP counts in, and what each counter counts. */
#include <inttypes.h>

#include "lib-bed.h"

#define SEND RDMA_HCA_OPCODE_SEND
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define ADD RDMA_HCA_OPCODE_ATOMIC_FA
#define SET 5
#define NUM_SETS 256

static uint8_t put_into(Qp *qp, uint64_t set)
{
    return driver_cmd(qp->drv, RDMA_HCA_CMD_SET_QP_COUNTERS, set, qp->qpn, 0, 0,
                      NULL);
}

static uint8_t query(Driver *drv, uint32_t set, uint8_t what,
                     struct rdma_hca_diag *diag)
{
    return driver_cmd_out(drv, RDMA_HCA_CMD_QUERY_QP_COUNTERS, diag,
                          sizeof(*diag), set, what);
}

static unsigned number_of(Driver *drv, const char *name)
{
    struct rdma_hca_diag diag;

    g_assert_cmphex(query(drv, 0, RDMA_HCA_DIAG_NAMES, &diag), ==, 0);
    for (unsigned i = 0; i < GUINT32_FROM_BE(diag.count); i++) {
        if (g_str_equal(diag.name[i], name)) {
            return i;
        }
    }
    g_error("no counter %s", name);
}

static uint64_t value_of(Driver *drv, uint32_t set, const char *name)
{
    unsigned i = number_of(drv, name);
    struct rdma_hca_diag diag;

    g_assert_cmphex(query(drv, set, RDMA_HCA_DIAG_VALUES, &diag), ==, 0);
    return (uint64_t)GUINT32_FROM_BE(diag.value[i].h) << 32 |
           GUINT32_FROM_BE(diag.value[i].l);
}

/* Those of side @side's QP, in SET. */
static void counted(Bed *bed, unsigned side, const char *name, uint64_t n)
{
    uint64_t value = value_of(bed->drv[side], SET, name);

    if (value != n) {
        g_error("side %u: %s is %" PRIu64 ", not %" PRIu64, side, name, value,
                n);
    }
}

static void counts_nothing(Driver *drv, uint32_t set)
{
    struct rdma_hca_diag diag;

    g_assert_cmphex(query(drv, set, RDMA_HCA_DIAG_VALUES, &diag), ==, 0);
    for (unsigned i = 0; i < GUINT32_FROM_BE(diag.count); i++) {
        g_assert_cmphex(diag.value[i].h | diag.value[i].l, ==, 0);
    }
}

/* A connection, each QP in SET. */
static Bed *bed_in_set(void)
{
    BedConfig config = bed_connection(RDMA_HCA_QP_ST_RC);
    Bed *bed;

    config.attr.retry_cnt = 1;
    bed = bed_new_as(&config);
    for (unsigned side = 0; side < 2; side++) {
        g_assert_cmphex(put_into(bed->qps[side], SET), ==, 0);
    }
    return bed;
}

static void request(Bed *bed, uint8_t opcode, uint32_t len)
{
    SendWr *wr = bed_request(bed, 0, opcode, len);

    wr->raddr += -wr->raddr & 7;
    bed_post_requests(bed, 1);
    bed_run(bed);
}

static void done(Bed *bed, uint8_t opcode, uint32_t len)
{
    request(bed, opcode, len);
    bed_expect_end(bed, 0, 0);
}

static void test_traffic(void)
{
    Bed *bed = bed_in_set();

    done(bed, WRITE, 3000);
    done(bed, READ, 500);
    done(bed, ADD, 8);
    bed_post_recvs(bed, 1, 100);
    done(bed, SEND, 100);
    counted(bed, 0, "tx_bytes", 3100);
    counted(bed, 1, "rx_bytes", 3100);
    counted(bed, 0, "rx_bytes", 500);
    counted(bed, 1, "tx_bytes", 500);
    counted(bed, 1, "rx_write_requests", 1);
    counted(bed, 1, "rx_read_requests", 1);
    counted(bed, 1, "rx_atomic_requests", 1);
    counted(bed, 0, "retransmissions", 0);
    g_assert_cmpuint(value_of(bed->drv[0], SET, "tx_packets"), ==,
                     value_of(bed->drv[1], SET, "rx_packets"));
    g_assert_cmpuint(value_of(bed->drv[1], SET, "tx_packets"), ==,
                     value_of(bed->drv[0], SET, "rx_packets"));
    bed_free(bed);
}

/* What a QP does not find, and what it is told of it. */
static void test_no_receive(void)
{
    Bed *bed = bed_in_set();

    bed_request(bed, 0, SEND, 100);
    bed_post_requests(bed, 1);
    bed_run_for(bed, NS_PER_US);
    counted(bed, 1, "out_of_buffer", 1);
    counted(bed, 0, "rnr_nak_retry_err", 1);
    bed_post_recvs(bed, 1, 100);
    bed_expect_end(bed, 0, 0);
    counted(bed, 0, "retransmissions", 1);
    bed_free(bed);
}

/* Packets are lost: of three Writes the second; an answer; all of them. */
static void test_loss(void)
{
    Bed *bed = bed_in_set();

    bed_set_weather(bed, 0, (BedWeather) { .nth = 2, .fate = CABLE_DROP });
    for (unsigned i = 0; i < 3; i++) {
        bed_request(bed, i, WRITE, 10);
    }
    bed_post_requests(bed, 3);
    for (unsigned i = 0; i < 3; i++) {
        bed_expect_end(bed, 0, 0);
    }
    counted(bed, 1, "out_of_sequence", 1);
    counted(bed, 0, "packet_seq_err", 1);
    counted(bed, 0, "retransmissions", 2);
    counted(bed, 0, "local_ack_timeout_err", 0);

    bed_set_weather(bed, 1, (BedWeather) { .nth = 1, .fate = CABLE_DROP });
    done(bed, WRITE, 10);
    counted(bed, 0, "local_ack_timeout_err", 1);
    counted(bed, 1, "duplicate_request", 1);

    bed_set_weather(bed, 0, (BedWeather) { .lost = true });
    bed_request(bed, 0, WRITE, 10);
    bed_request(bed, 1, WRITE, 10);
    bed_post_requests(bed, 2);
    bed_expect_end(bed, 0, RDMA_HCA_SYNDROME_RETRY_EXC_ERR);
    bed_expect_end(bed, 0, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    counted(bed, 0, "req_cqe_error", 1);
    counted(bed, 0, "req_cqe_flush_error", 1);
    bed_free(bed);
}

/* A receive that is too short; the one behind it is flushed. */
static void test_receive_errors(void)
{
    Bed *bed = bed_in_set();

    bed_post_recvs(bed, 2, 10);
    request(bed, SEND, 11);
    bed_expect_end(bed, 0, RDMA_HCA_SYNDROME_REMOTE_INVAL_REQ_ERR);
    bed_expect_end(bed, 1, RDMA_HCA_SYNDROME_LOCAL_LENGTH_ERR);
    bed_expect_end(bed, 1, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    counted(bed, 1, "resp_cqe_error", 1);
    counted(bed, 1, "resp_cqe_flush_error", 1);
    bed_free(bed);
}

/* A QP counts in one set, and those that are in the same count together. */
static void test_sets(void)
{
    Pair *pair = pair_new(3, 65536);
    Qp *one[2], *other[2];

    pair_connect(pair, NULL, one);
    pair_connect(pair, NULL, other);
    pair_check_works(pair, one, 0);
    counts_nothing(pair->drv[0], SET);
    g_assert_cmpuint(value_of(pair->drv[0], 0, "tx_packets"), >, 0);

    g_assert_cmphex(put_into(one[0], SET), ==, 0);
    g_assert_cmphex(put_into(other[0], NUM_SETS - 1), ==, 0);
    driver_cmd_out(pair->drv[0], RDMA_HCA_CMD_QUERY_QP_COUNTERS,
                   &(struct rdma_hca_diag) { 0 }, sizeof(struct rdma_hca_diag),
                   0, RDMA_HCA_QP_COUNTERS_CLEAR);
    pair_check_works(pair, one, 0);
    counts_nothing(pair->drv[0], 0);
    counts_nothing(pair->drv[0], NUM_SETS - 1);
    {
        uint64_t before = value_of(pair->drv[0], SET, "tx_packets");

        g_assert_cmphex(put_into(other[0], SET), ==, 0);
        pair_check_works(pair, other, 0);
        g_assert_cmpuint(value_of(pair->drv[0], SET, "tx_packets"), ==,
                         2 * before);
    }
    g_assert_cmphex(put_into(one[0], 0), ==, 0);
    pair_free(pair);
}

/* The answer to CLEAR has what was counted; then the set begins anew. */
static void test_clear(void)
{
    Bed *bed = bed_in_set();
    struct rdma_hca_diag diag;
    unsigned i;

    done(bed, WRITE, 777);
    i = number_of(bed->drv[0], "tx_bytes");
    g_assert_cmphex(query(bed->drv[0], SET, RDMA_HCA_QP_COUNTERS_CLEAR, &diag),
                    ==, 0);
    g_assert_cmpuint(GUINT32_FROM_BE(diag.value[i].l), ==, 777);
    g_assert_cmpuint(GUINT32_FROM_BE(diag.total), ==,
                     GUINT32_FROM_BE(diag.count));
    counts_nothing(bed->drv[0], SET);
    done(bed, WRITE, 1);
    counted(bed, 0, "tx_bytes", 1);
    bed_free(bed);
}

/* The context names the set, to begin with and in QUERY_QP; a reset clears. */
static void test_context(void)
{
    Pair *pair = pair_new(3, 65536);
    struct rdma_hca_qpc qpc;
    QpConfig config;
    QpAttr attr;
    Qp *qp;

    qp_config_init(&config, pair->pd[0], pair->cq[0]);
    qp_attr_init(&attr);
    config.counter_set = NUM_SETS;
    qp = qp_new(pair->drv[0], &config);
    g_assert_cmphex(qp_to_init(qp, &attr), ==, RDMA_HCA_STAT_BAD_PARAM);
    qp->counter_set = NUM_SETS - 1;
    g_assert_cmphex(qp_to_init(qp, &attr), ==, 0);
    g_assert_cmphex(qp_query(qp, &qpc), ==, 0);
    g_assert_cmpuint(GUINT32_FROM_BE(qpc.counter_set), ==, NUM_SETS - 1);
    /* Further transitions leave it as it is. */
    g_assert_cmphex(put_into(qp, SET), ==, 0);
    g_assert_cmphex(qp_to_rtr(qp, &attr), ==, 0);
    g_assert_cmphex(qp_query(qp, &qpc), ==, 0);
    g_assert_cmpuint(GUINT32_FROM_BE(qpc.counter_set), ==, SET);
    g_assert_cmphex(qp_to_err(qp), ==, 0);
    g_assert_cmphex(put_into(qp, 0), ==, 0);
    qp_destroy(qp);
    pair_free(pair);
}

/* The card of side 0 is reset, and has a new driver. */
static void reset_card(Pair *pair)
{
    driver_free(pair->drv[0]);
    pair->drv[0] = NULL;
    host_reset(&pair->lab->host[0]);
    lab_run(pair->lab);
    pair->drv[0] = driver_new(&pair->lab->host[0]);
}

static void test_reset(void)
{
    Pair *pair = pair_new(3, 65536);
    Qp *qp[2];

    pair_connect(pair, NULL, qp);
    g_assert_cmphex(put_into(qp[0], SET), ==, 0);
    pair_check_works(pair, qp, 0);
    reset_card(pair);
    counts_nothing(pair->drv[0], SET);
    pair_free(pair);
}

/* What is refused changes nothing. */
static void test_bad(void)
{
    Pair *pair = pair_new(3, 65536);
    Driver *drv = pair->drv[0];
    uint64_t page = drv->icm[ICM_QPC].base & ~(uint64_t)(HOST_PAGE_SIZE - 1);
    struct rdma_hca_diag diag;
    struct rdma_hca_qpc qpc;
    Qp *qp[2];

    pair_connect(pair, NULL, qp);
    g_assert_cmphex(put_into(qp[0], SET), ==, 0);
    g_assert_cmphex(put_into(qp[0], NUM_SETS), ==, RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(put_into(qp[0], UINT64_C(1) << 32), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(query(drv, NUM_SETS, RDMA_HCA_DIAG_VALUES, &diag), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(query(drv, 0, RDMA_HCA_QP_COUNTERS_CLEAR + 1, &diag), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(driver_cmd(drv, RDMA_HCA_CMD_SET_QP_COUNTERS, 1,
                               qp[0]->qpn + 1, 0, 0, NULL),
                    ==, RDMA_HCA_STAT_BAD_RES_STATE);
    g_assert_cmphex(driver_cmd(drv, RDMA_HCA_CMD_UNMAP_ICM, page, 1,
                               RDMA_HCA_ICM_CXT, 0, NULL),
                    ==, 0);
    g_assert_cmphex(put_into(qp[0], 1), ==, RDMA_HCA_STAT_BAD_SEG_PARAM);
    g_assert_cmphex(qp_query(qp[0], &qpc), ==, 0);
    g_assert_cmpuint(GUINT32_FROM_BE(qpc.counter_set), ==, SET);
    pair_check_works(pair, qp, 0);
    counts_nothing(drv, 1);
    g_assert_cmpuint(value_of(drv, SET, "tx_packets"), >, 0);
    reset_card(pair);
    pair_free(pair);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/qp-counters/traffic", test_traffic);
    test_add_each_link("/qp-counters/no-receive", test_no_receive);
    test_add_each_link("/qp-counters/loss", test_loss);
    test_add_each_link("/qp-counters/receive-errors", test_receive_errors);
    test_add_each_link("/qp-counters/sets", test_sets);
    test_add_each_link("/qp-counters/clear", test_clear);
    test_add_each_link("/qp-counters/context", test_context);
    test_add_each_link("/qp-counters/reset", test_reset);
    test_add_each_link("/qp-counters/bad", test_bad);
    return g_test_run();
}
