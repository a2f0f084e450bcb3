/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whole cards whose memory takes its time: what they ask for, who waits, who
 * goes on, and what becomes of those that wait when something goes away.
 */
#include <string.h>

#include "../v2p/v2p_int.h"
#include "lib-bed.h"

#define SEND RDMA_HCA_OPCODE_SEND
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define FETCH_ADD RDMA_HCA_OPCODE_ATOMIC_FA
#define ATOMIC_WRITE RDMA_HCA_OPCODE_ATOMIC_WRITE
#define LATENCY 100000u

static Bed *late_new(uint8_t service, bool least_caches)
{
    BedConfig config = bed_connection(service);
    HcaConfig cards[2];

    for (unsigned i = 0; i < 2; i++) {
        lab_config(&cards[i], i);
        cards[i].memory_latency_ns = LATENCY;
        if (least_caches) {
            cards[i].cache_ways = 2;
            cards[i].mpt_cache_size = cards[i].mtt_cache_size = 128;
        }
    }
    config.seed = 4200;
    config.cards = cards;
    config.bystander = false;
    config.attr.access |= RDMA_HCA_ACCESS_FLUSH;
    return bed_new_as(&config);
}

static void post(Bed *bed, unsigned side, uint8_t opcode, Mr *near,
                 uint64_t remote_at, Mr *far)
{
    bool eight = wr_is_of_eight(opcode);
    Sge sge = mr_sge(near, 0, eight ? 8 : 64);
    SendWr wr = {
        .wr_id = side,
        .opcode = opcode,
        .flags = SEND_SIGNALED,
        .raddr = far->va + remote_at,
        .rkey = far->key,
        .nsge = 1,
        .sge = &sge,
    };

    wr.raddr = eight ? ROUND_UP8(wr.raddr) : wr.raddr;
    g_assert_true(qp_post_send(bed->qps[side], &wr, 1));
}

static Mr *region(Bed *bed, unsigned side)
{
    return mr_new(bed->drv[side], bed->pair->pd[side], 0x7000000, 4096,
                  ACCESS_ALL);
}

/* ---- what is asked for ---- */

/*
 * Requests in the order of their beginning: a letter for the channel (c CEU,
 * d DB, w WP_WQE, n WP_ND, t RTC, r RRC, m RWM, e EE), and one for whose memory
 * it is: s send queue, q receive queue, c completion queue, e event queue,
 * m region, - none.
 */
typedef struct Asked {
    Bed *bed;
    unsigned side;
    GString *text;
} Asked;

static char whose(const Asked *asked, uint64_t key)
{
    const Driver *drv = asked->bed->drv[asked->side];
    const Qp *qp = asked->bed->qps[asked->side];

    if (key == qp->sq.mr->key) {
        return 's';
    }
    if (qp->rq.mr && key == qp->rq.mr->key) {
        return 'q';
    }
    if (key == asked->bed->cqs[asked->side]->mr->key) {
        return 'c';
    }
    if (key == drv->eq[EQ_COMP].mr->key) {
        return 'e';
    }
    return key ? 'm' : '-';
}

static void hear(void *opaque, unsigned side, const HcaTrace *trace)
{
    Asked *asked = opaque;

    if (side == asked->side && trace->event == HCA_TRACE_V2P_REQUEST &&
        trace->arg[1] == HCA_V2P_QUEUED) {
        g_string_append_printf(
            asked->text, "%s%c%c", asked->text->len ? " " : "",
            "cdwntrme"[trace->qpn], whose(asked, trace->arg[2]));
    }
}

typedef struct AskCase {
    const char *name;
    uint8_t service;
    uint8_t opcode;
    unsigned side; /* of which the requests are looked at */
    bool arm;      /* its CQ */
    const char *asked;
    uint8_t syndrome; /* of the request */
} AskCase;

static const AskCase ask_cases[] = {
    { "rc", RDMA_HCA_QP_ST_RC, WRITE, 0, false, "ds nm nm tc", 0 },
    { "rc-event", RDMA_HCA_QP_ST_RC, WRITE, 0, true, "ds nm nm tc te", 0 },
    { "rc-read", RDMA_HCA_QP_ST_RC, READ, 0, false, "ds nm rm tc", 0 },
    { "uc", RDMA_HCA_QP_ST_UC, WRITE, 0, false, "ds nm nm tc", 0 },
    { "uc-event", RDMA_HCA_QP_ST_UC, WRITE, 0, true, "ds nm nm tc te", 0 },
    { "not-allowed", RDMA_HCA_QP_ST_UC, READ, 0, false, "ds",
      RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR },
    { "peer-write", RDMA_HCA_QP_ST_RC, WRITE, 1, false, "em", 0 },
    { "peer-read", RDMA_HCA_QP_ST_RC, READ, 1, false, "em em", 0 },
    { "peer-fetch-add", RDMA_HCA_QP_ST_RC, FETCH_ADD, 1, false, "em", 0 },
    { "peer-atomic-write", RDMA_HCA_QP_ST_RC, ATOMIC_WRITE, 1, false, "em", 0 },
    { "receive", RDMA_HCA_QP_ST_RC, SEND, 1, false, "m- mq em ec", 0 },
    { "receive-event", RDMA_HCA_QP_ST_UC, SEND, 1, true, "m- mq em ec ee", 0 },
};

/* A list, of which the message fills the first entry. */
static void post_list(Bed *bed, unsigned side)
{
    Mr *mr = bed->pair->mr[side];
    Sge sge[] = { mr_sge(mr, 0, 64), mr_sge(mr, 2048, 64) };
    RecvWr wr = { .wr_id = 2, .nsge = 2, .sge = sge };

    g_assert_true(qp_post_recv(bed->qps[side], &wr, 1));
}

static void test_asked(gconstpointer data)
{
    const AskCase *c = data;
    Bed *bed = late_new(c->service, false);
    Asked asked = { bed, c->side, g_string_new(NULL) };
    Wc wc;

    /* A CQ is armed when it is made. */
    pair_check_works(bed->pair, bed->qps, 0);
    pair_check_works(bed->pair, bed->qps, 1);
    if (c->arm) {
        cq_arm(bed->cqs[c->side], false);
    }
    if (c->opcode == SEND) {
        post_list(bed, 1);
    }
    lab_run(bed->lab);
    lab_listen(bed->lab, hear, &asked);
    post(bed, 0, c->opcode, bed->pair->mr[0], 0, bed->pair->mr[1]);
    lab_run(bed->lab);
    lab_listen(bed->lab, NULL, NULL);
    cq_expect(bed->cqs[0], &wc, 0, c->syndrome);
    if (c->opcode == SEND) {
        cq_expect(bed->cqs[1], &wc, 2, 0);
    }
    g_assert_cmpstr(asked.text->str, ==, c->asked);
    g_string_free(asked.text, TRUE);
    bed_free(bed);
}

/* Without latency nothing is asked for, and there is no place to do so. */
static void test_not_late(void)
{
    Bed *bed = bed_new_rc(4201, NULL);
    Asked asked = { bed, 0, g_string_new(NULL) };

    lab_listen(bed->lab, hear, &asked);
    for (; asked.side < 2; asked.side++) {
        const Hca *hca = bed->lab->host[asked.side].hca;

        pair_check_works(bed->pair, bed->qps, 0);
        pair_check_works(bed->pair, bed->qps, 1);
        g_assert_cmpstr(asked.text->str, ==, "");
        g_assert_null(hca->v2p->requests);
        g_assert_null(hca->v2p->posted);
        g_assert_null(hca->arrived);
    }
    lab_listen(bed->lab, NULL, NULL);
    g_string_free(asked.text, TRUE);
    bed_free(bed);
}

/* ---- who waits, who goes on ---- */

/* The next access of a unit by a channel is 10 ms late. */
static void delay_one(Bed *bed, unsigned side, HcaV2pChannel unit,
                      HcaFaultChannel channel)
{
    HcaFaultPlan plan = { .nrules = 1,
                          .rule[0] = { .place = HCA_FAULT_DMA,
                                       .action = HCA_FAULT_DELAY,
                                       .units = 1u << unit,
                                       .channels = 1u << channel,
                                       .delay_ns = 10 * NS_PER_MS,
                                       .probability = HCA_FAULT_ALWAYS,
                                       .count = 1 } };

    bed_set_faults(bed, side, &plan);
}

/* As lab_sleep(), but for memory that would take longer. */
static void run_for_ms(Bed *bed, unsigned ms)
{
    int64_t end = bed->lab->now + ms * NS_PER_MS;

    lab_run_for(bed->lab, ms * NS_PER_MS);
    bed->lab->now = MAX(bed->lab->now, end);
    while (lab_step(bed->lab)) {
    }
}

static bool done(Bed *bed, unsigned side, uint8_t syndrome)
{
    Wc wc;

    if (!cq_poll(bed->cqs[side], &wc)) {
        return false;
    }
    g_assert_cmphex(wc.syndrome, ==, syndrome);
    return true;
}

#define MARK UINT64_C(1)

/*
 * Write MARK to the beginning of @mr, of side 1, where memory is 10 ms late on
 * @channel; half of that time is over.
 */
static void write_held_up(Bed *bed, Mr *mr, HcaFaultChannel channel)
{
    uint64_t mark = MARK;

    mr_write(bed->pair->mr[0], 0, &mark, sizeof(mark));
    delay_one(bed, 1, HCA_V2P_EE, channel);
    post(bed, 0, WRITE, bed->pair->mr[0], 0, mr);
    run_for_ms(bed, 5);
}

static uint64_t first_word(Mr *mr)
{
    uint64_t word;

    mr_read(mr, 0, &word, sizeof(word));
    return word;
}

/* Fetches of contexts are the same: what is only asked for is none. */
static void test_lookups(void)
{
    static const char *const name[] = { "cxtmgt_qpc_lookups",
                                        "cxtmgt_cqc_lookups" };
    uint64_t fetched[2][2][2]; /* late or not; side; name */

    for (unsigned late = 0; late < 2; late++) {
        Bed *bed = late ? late_new(RDMA_HCA_QP_ST_RC, false)
                        : bed_new_rc(4200, NULL);

        for (unsigned side = 0; side < 2; side++) {
            for (unsigned i = 0; i < 2; i++) {
                fetched[late][side][i] = -bed_counter(bed, side, name[i]);
            }
        }
        pair_check_works(bed->pair, bed->qps, 0);
        pair_check_works(bed->pair, bed->qps, 1);
        for (unsigned side = 0; side < 2; side++) {
            for (unsigned i = 0; i < 2; i++) {
                fetched[late][side][i] += bed_counter(bed, side, name[i]);
            }
        }
        bed_free(bed);
    }
    g_assert_cmpmem(fetched[0], sizeof(fetched[0]), fetched[1],
                    sizeof(fetched[1]));
    g_assert_cmpuint(fetched[0][0][0], >, 0);
}

/* One channel waits for a line of a table; what the peer asks for goes on. */
static void test_others(void)
{
    Bed *bed = late_new(RDMA_HCA_QP_ST_RC, true);

    pair_check_works(bed->pair, bed->qps, 1);
    delay_one(bed, 0, HCA_V2P_DB, HCA_FAULT_READ_CTX);
    post(bed, 0, WRITE, bed->pair->mr[0], 0, bed->pair->mr[1]);
    post(bed, 1, WRITE, bed->pair->mr[1], 0, bed->pair->mr[0]);
    run_for_ms(bed, 8);
    g_assert_true(done(bed, 1, 0));
    g_assert_false(done(bed, 0, 0));
    run_for_ms(bed, 8);
    g_assert_true(done(bed, 0, 0));
    bed_counted(bed, 0, "host_fault_dma_delay", 1);
    bed_free(bed);
}

/* A packet that waits holds up those behind it, and none overtakes it. */
static void test_order(void)
{
    Bed *bed = late_new(RDMA_HCA_QP_ST_RC, true);
    Mr *cold = region(bed, 1);
    uint64_t one = 1, was;

    pair_check_works(bed->pair, bed->qps, 0);
    mr_write(bed->pair->mr[0], 0, &one, sizeof(one));
    delay_one(bed, 1, HCA_V2P_EE, HCA_FAULT_READ_CTX);
    post(bed, 0, WRITE, bed->pair->mr[0], 0, cold);
    post(bed, 0, WRITE, bed->pair->mr[0], 2048, bed->pair->mr[1]);
    run_for_ms(bed, 8);
    mr_read(bed->pair->mr[1], 2048, &was, sizeof(was));
    g_assert_cmphex(was, !=, one);
    g_assert_false(done(bed, 0, 0));
    run_for_ms(bed, 8);
    mr_read(bed->pair->mr[1], 2048, &was, sizeof(was));
    g_assert_cmphex(was, ==, one);
    g_assert_true(done(bed, 0, 0));
    g_assert_true(done(bed, 0, 0));
    bed_counted(bed, 1, "host_fault_dma_delay", 1);
    bed_free(bed);
}

/* What was written before a FLUSH is in memory when that has been answered. */
static void test_flush(void)
{
    Bed *bed = late_new(RDMA_HCA_QP_ST_RC, false);
    Mr *mr = mr_new(bed->drv[1], bed->pair->pd[1], 0x7000000, 4096,
                    ACCESS_ALL | RDMA_HCA_ACCESS_FLUSH);
    SendWr wr = {
        .opcode = RDMA_HCA_OPCODE_FLUSH,
        .flags = SEND_SIGNALED,
        .raddr = mr->va,
        .rkey = mr->key,
        .flush_len = 64,
        .flush = RDMA_HCA_FLUSH_TYPE_GLOBAL,
    };

    write_held_up(bed, mr, HCA_FAULT_WRITE_DATA);
    g_assert_true(done(bed, 0, 0));
    g_assert_cmphex(first_word(mr), !=, MARK);
    g_assert_true(qp_post_send(bed->qps[0], &wr, 1));
    run_for_ms(bed, 2);
    g_assert_true(done(bed, 0, 0));
    g_assert_cmphex(first_word(mr), ==, MARK);
    bed_free(bed);
}

/* A command waits for its mailbox; one without does not. */
static void test_mailbox(void)
{
    Bed *bed = late_new(RDMA_HCA_QP_ST_RC, false);
    uint8_t mgm[RDMA_HCA_MGM_SIZE] = { 0 };
    int64_t begin = bed->lab->now;

    driver_cmd(bed->drv[0], RDMA_HCA_CMD_NOP, 0, 0, 0, 0, NULL);
    g_assert_cmpint(bed->lab->now - begin, <, LATENCY);
    begin = bed->lab->now;
    g_assert_cmphex(driver_cmd_in(bed->drv[0], RDMA_HCA_CMD_WRITE_MGM, mgm,
                                  sizeof(mgm), 1, 0),
                    ==, 0);
    g_assert_cmpint(bed->lab->now - begin, >=, LATENCY);
    bed_free(bed);
}

/* ---- what goes while somebody waits ---- */

/* The memory of a request: it ends in an error, and its bytes go nowhere. */
static void test_deregistered(void)
{
    Bed *bed = late_new(RDMA_HCA_QP_ST_RC, false);
    Mr *mr = region(bed, 0);
    uint64_t one = MARK;

    mr_write(mr, 0, &one, sizeof(one));
    delay_one(bed, 0, HCA_V2P_WP_ND, HCA_FAULT_READ_DATA);
    post(bed, 0, WRITE, mr, 0, bed->pair->mr[1]);
    run_for_ms(bed, 5);
    g_assert_cmpint(bed->hqp->send_ask.stage, ==, HCA_V2P_DMA);
    g_assert_cmphex(mr_deregister(mr), ==, 0);
    run_for_ms(bed, 8);
    g_assert_true(done(bed, 0, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR));
    g_assert_cmphex(first_word(bed->pair->mr[1]), !=, MARK);
    bed_revive(bed);
    bed_free(bed);
}

/* The target of a packet that waits: refused, and not written. */
static void test_target_deregistered(void)
{
    Bed *bed = late_new(RDMA_HCA_QP_ST_RC, true);
    Mr *mr = region(bed, 1);

    pair_check_works(bed->pair, bed->qps, 0);
    write_held_up(bed, mr, HCA_FAULT_READ_CTX);
    g_assert_cmphex(mr_deregister(mr), ==, 0);
    run_for_ms(bed, 8);
    g_assert_true(done(bed, 0, RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR));
    g_assert_cmphex(first_word(mr), !=, MARK);
    bed_revive(bed);
    bed_free(bed);
}

/* What a peer has written arrives before a command says that its key is gone. */
static void test_posted_deregistered(void)
{
    Bed *bed = late_new(RDMA_HCA_QP_ST_RC, false);
    Mr *mr = region(bed, 1);

    write_held_up(bed, mr, HCA_FAULT_WRITE_DATA);
    g_assert_cmphex(first_word(mr), !=, MARK);
    g_assert_cmphex(mr_deregister(mr), ==, 0);
    g_assert_cmphex(first_word(mr), ==, MARK);
    mr_fill(mr, 0, 0, sizeof(uint64_t));
    run_for_ms(bed, 8);
    g_assert_cmphex(first_word(mr), ==, 0);
    bed_free(bed);
}

/* The QP: nobody is told, and what comes for it is nobody's. */
static void test_qp_reset(void)
{
    Bed *bed = late_new(RDMA_HCA_QP_ST_RC, false);

    delay_one(bed, 0, HCA_V2P_WP_ND, HCA_FAULT_READ_DATA);
    post(bed, 0, WRITE, bed->pair->mr[0], 0, bed->pair->mr[1]);
    run_for_ms(bed, 5);
    g_assert_cmpint(bed->hqp->send_ask.stage, ==, HCA_V2P_DMA);
    g_assert_cmphex(qp_to_rst(bed->qps[0]), ==, 0);
    run_for_ms(bed, 8);
    g_assert_false(done(bed, 0, 0));
    bed_revive(bed);
    bed_free(bed);
}

/* The cable, under a packet that waits: it is lost, and sent again. */
static void test_cable_gone(void)
{
    Bed *bed = late_new(RDMA_HCA_QP_ST_RC, true);
    Mr *mr = region(bed, 1);

    pair_check_works(bed->pair, bed->qps, 0);
    write_held_up(bed, mr, HCA_FAULT_READ_CTX);
    lab_cable(bed->lab, false);
    lab_cable(bed->lab, true);
    g_assert_cmphex(first_word(mr), !=, MARK);
    run_for_ms(bed, 1000);
    g_assert_true(done(bed, 0, 0));
    g_assert_cmphex(first_word(mr), ==, MARK);
    g_assert_cmpuint(bed_counter(bed, 0, "requester_retransmissions"), >, 0);
    bed_revive(bed);
    bed_free(bed);
}

/* The same under a packet that turned round: it has no need of the cable. */
static void test_cable_gone_loopback(void)
{
    Bed *bed = late_new(RDMA_HCA_QP_ST_RC, true);
    Qp *qps[2] = { bed->qps[1], bed->qps[1] };
    Mr *mr = region(bed, 1);
    uint64_t mark = MARK;
    QpAttr attr;

    qp_attr_init(&attr);
    g_assert_cmphex(qp_to_rst(qps[0]), ==, 0);
    qp_connect(qps[0], qps[1], &attr);
    mr_write(bed->pair->mr[1], 0, &mark, sizeof(mark));
    delay_one(bed, 1, HCA_V2P_EE, HCA_FAULT_READ_CTX);
    post(bed, 1, WRITE, bed->pair->mr[1], 0, mr);
    run_for_ms(bed, 5);
    lab_cable(bed->lab, false);
    g_assert_cmphex(first_word(mr), !=, MARK);
    run_for_ms(bed, 8);
    g_assert_cmphex(first_word(mr), ==, MARK);
    g_assert_true(done(bed, 1, 0));
    g_assert_cmpuint(bed_counter(bed, 1, "requester_retransmissions"), ==, 0);
    bed_free(bed);
}

/* The card: nothing of it comes afterwards. */
static void test_card_reset(void)
{
    Bed *bed = late_new(RDMA_HCA_QP_ST_RC, false);
    Host *host = &bed->lab->host[1];

    write_held_up(bed, bed->pair->mr[1], HCA_FAULT_WRITE_DATA);
    host_bar0_write(host, RDMA_HCA_RESET, 1);
    run_for_ms(bed, 20);
    g_assert_cmphex(first_word(bed->pair->mr[1]), !=, MARK);
    g_assert_cmpint(hca_v2p_deadline(host->hca->v2p), ==, INT64_MAX);
    driver_free(bed->drv[1]);
    bed->drv[1] = bed->pair->drv[1] = driver_new(host);
    bed_drop(bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(ask_cases); i++) {
        test_add_data(test_named("/late/asked/%s", ask_cases[i].name),
                      &ask_cases[i], test_asked);
    }
    test_add("/late/not-late", test_not_late);
    test_add("/late/lookups", test_lookups);
    test_add("/late/others", test_others);
    test_add_each_link("/late/order", test_order);
    test_add_each_link("/late/flush", test_flush);
    test_add("/late/mailbox", test_mailbox);
    test_add("/late/deregistered", test_deregistered);
    test_add("/late/target-deregistered", test_target_deregistered);
    test_add("/late/posted-deregistered", test_posted_deregistered);
    test_add("/late/qp-reset", test_qp_reset);
    test_add("/late/cable-gone", test_cable_gone);
    test_add_each_link("/late/cable-gone-loopback", test_cable_gone_loopback);
    test_add("/late/card-reset", test_card_reset);
    return g_test_run();
}
