/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Congestion between two whole RoCE cards: the outstanding limit, CE marks,
 * CNPs and what they lead to (RoCE engine document 7.4, annex A17.9), and when
 * requests are acknowledged.
 */
#include <string.h>

#include "lib-bed.h"

#define SEND RDMA_HCA_OPCODE_SEND
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define RC RDMA_HCA_QP_ST_RC
#define UC RDMA_HCA_QP_ST_UC
#define UD RDMA_HCA_QP_ST_UD
#define MANY 40

static void config_init(HcaConfig config[2])
{
    lab_config_roce(&config[0], 0);
    lab_config_roce(&config[1], 1);
}

/* How many of MANY Writes leave when nothing comes back. */
static unsigned count_outstanding(Bed *bed)
{
    bed_set_weather(bed, 0, (BedWeather) { .nth = 0 });
    bed_set_weather(bed, 1, (BedWeather) { .lost = true });
    for (unsigned i = 0; i < MANY; i++) {
        bed_request(bed, i, WRITE, 64);
    }
    bed_post_requests(bed, MANY);
    bed_run(bed);
    return bed->seen[0];
}

/* They all arrive once the peer is heard again. */
static void finish_outstanding(Bed *bed)
{
    bed_set_weather(bed, 1, (BedWeather) { .nth = 0 });
    for (unsigned i = 0; i < MANY; i++) {
        bed_expect_end(bed, 0, 0);
    }
}

static void mark_one(Bed *bed)
{
    bed_set_weather(bed, 0, (BedWeather) { .nth = 1, .mark = true });
    bed_set_weather(bed, 1, (BedWeather) { .nth = 0 });
    bed_request(bed, 0, WRITE, 64);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_set_weather(bed, 0, (BedWeather) { .nth = 0 });
}

static void inject_cnp(Bed *bed)
{
    HcaPacket cnp = { .opcode = HCA_BTH_CNP, .becn = true };

    bed_headers(bed, 1, &cnp);
    bed_inject(bed, 1, &cnp);
}

/* ---- the limit ---- */

static void test_limit(void)
{
    static const uint32_t limits[] = { 16, 1, 2, 33 };

    for (unsigned i = 0; i < G_N_ELEMENTS(limits); i++) {
        HcaConfig config[2];
        Bed *bed;

        config_init(config);
        g_assert_cmpuint(config[0].osq_per_qp, ==, 16);
        config[0].osq_per_qp = limits[i];
        bed = bed_new_roce(RC, NULL, config);
        g_assert_cmpuint(count_outstanding(bed), ==, limits[i]);
        g_assert_cmpuint(bed_counter(bed, 0, "requester_wait_outstanding"), >,
                         0);
        finish_outstanding(bed);
        bed_free(bed);
    }
}

/* Reads count, too. */
static void test_limit_reads(void)
{
    HcaConfig config[2];
    Bed *bed;

    config_init(config);
    config[0].osq_per_qp = 3;
    bed = bed_new_roce(RC, NULL, config);
    bed_set_weather(bed, 1, (BedWeather) { .lost = true });
    for (unsigned i = 0; i < 8; i++) {
        bed_request(bed, i, i % 2 ? WRITE : READ, 64);
    }
    bed_post_requests(bed, 8);
    bed_run(bed);
    g_assert_cmpuint(bed->seen[0], ==, 3);
    bed_set_weather(bed, 1, (BedWeather) { .nth = 0 });
    for (unsigned i = 0; i < 8; i++) {
        bed_expect_end(bed, 0, 0);
    }
    bed_free(bed);
}

static CableFate lose_answers(void *opaque, unsigned from, uint8_t *packet,
                              size_t len)
{
    unsigned *sent = opaque;

    *sent += from == 0;
    return from == 0 ? CABLE_DELIVER : CABLE_DROP;
}

/* An InfiniBand card has no such limit. */
static void test_infiniband(void)
{
    unsigned sent = 0;
    Pair *pair = pair_new_with(6, 65536, NULL, lose_answers, &sent);
    SendWr wr[MANY];
    Sge sge[MANY];
    Qp *qp[2];

    pair_connect(pair, NULL, qp);
    for (unsigned i = 0; i < MANY; i++) {
        wr[i] = pair_send(pair, 0, WRITE, i, &sge[i], 0, 64, 0);
    }
    g_assert_true(qp_post_send(qp[0], wr, MANY));
    lab_run(pair->lab);
    g_assert_cmpuint(sent, ==, MANY);
    pair_free(pair);
}

/* ---- from a mark to the recovery ---- */

/* What one marked request of side 0 leads to, just now. */
static void check_back_off(Bed *bed)
{
    struct rdma_hca_eqe eqe;

    bed_expect_end(bed, 0, 0);
    bed_counted(bed, 1, "responder_ecn_marked_rx", 1);
    bed_counted(bed, 1, "responder_cnp_tx", 1);
    bed_counted(bed, 0, "requester_cnp_rx", 1);
    bed_counted(bed, 0, "requester_limit_halved", 1);
    bed_counted(bed, 0, "cxtmgt_event_congestion", 1);
    g_assert_true(driver_event(bed->drv[0], RDMA_HCA_EVENT_CONGESTION, &eqe));
    g_assert_cmphex(GUINT32_FROM_LE(eqe.qp.qpn), ==, bed->qps[0]->qpn);
    g_assert_false(driver_event(bed->drv[1], RDMA_HCA_EVENT_CONGESTION, NULL));

    g_assert_cmpuint(count_outstanding(bed), ==, 8);
    bed_counted(bed, 0, "requester_limit_restored", 0);
    lab_sleep(bed->lab, NS_PER_MS - NS_PER_US);
    g_assert_cmpuint(bed->seen[0], ==, 8);
    lab_sleep(bed->lab, NS_PER_US);
    bed_counted(bed, 0, "requester_limit_restored", 1);
    g_assert_cmpuint(bed->seen[0], ==, 16);
    finish_outstanding(bed);
}

static void test_back_off(void)
{
    Bed *bed;

    bed = bed_new_roce(RC, NULL, NULL);
    mark_one(bed);
    check_back_off(bed);
    bed_free(bed);
}

/* The same by a plan of faults, where the request leaves or where it arrives. */
static void check_fault(HcaFaultDirection direction, uint8_t sgid_index)
{
    unsigned side = direction == HCA_FAULT_RX;
    HcaFaultPlan plan = {
        .nrules = 1,
        .rule[0] = { .action = HCA_FAULT_MARK,
                     .directions = 1u << direction,
                     .kinds = 1u << HCA_FAULT_WRITE,
                     .probability = HCA_FAULT_ALWAYS,
                     .count = 1 },
    };
    QpAttr attr;
    Bed *bed;

    qp_attr_init(&attr);
    attr.roce.sgid_index = sgid_index;
    bed = bed_new_roce(RC, &attr, NULL);
    bed_set_faults(bed, side, &plan);
    bed_request(bed, 0, WRITE, 64);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, side, side ? "fault_rx_mark" : "fault_tx_mark", 1);
    check_back_off(bed);
    bed_free(bed);
}

static void test_faults(void)
{
    for (unsigned gid = 0; gid < NUM_GIDS; gid++) {
        check_fault(HCA_FAULT_TX, gid);
        check_fault(HCA_FAULT_RX, gid);
    }
}

/* As long as marks go on, the limit stays halved; afterwards it recovers. */
static void test_faults_go_on(void)
{
    HcaFaultPlan plan = {
        .nrules = 1,
        .rule[0] = { .action = HCA_FAULT_MARK,
                     .directions = 1u << HCA_FAULT_TX,
                     .every = 4,
                     .probability = HCA_FAULT_ALWAYS },
    };
    Bed *bed;

    bed = bed_new_roce(RC, NULL, NULL);
    bed_set_faults(bed, 0, &plan);
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < 16; i++) {
            bed_request(bed, i, WRITE, 64);
        }
        bed_post_requests(bed, 16);
        for (unsigned i = 0; i < 16; i++) {
            bed_expect_end(bed, 0, 0);
        }
        lab_sleep(bed->lab, NS_PER_MS / 2);
    }
    bed_counted(bed, 0, "fault_tx_mark", 40);
    bed_counted(bed, 1, "responder_ecn_marked_rx", 40);
    g_assert_cmpuint(bed_counter(bed, 1, "responder_cnp_tx"), >=, 10);
    bed_counted(bed, 0, "requester_limit_halved", 1);
    bed_counted(bed, 0, "requester_limit_restored", 0);
    bed_set_faults(bed, 0, NULL);
    lab_sleep(bed->lab, NS_PER_MS);
    bed_counted(bed, 0, "requester_limit_restored", 1);
    g_assert_cmpuint(count_outstanding(bed), ==, 16);
    finish_outstanding(bed);
    bed_free(bed);
}

/* What comes while the limit is halved makes the time begin anew. */
static void test_restart(void)
{
    Bed *bed;

    bed = bed_new_roce(RC, NULL, NULL);
    for (unsigned i = 0; i < 4; i++) {
        inject_cnp(bed);
        lab_sleep(bed->lab, 600 * NS_PER_US);
    }
    bed_counted(bed, 0, "requester_cnp_rx", 4);
    bed_counted(bed, 0, "requester_limit_halved", 1);
    bed_counted(bed, 0, "requester_limit_restored", 0);
    g_assert_cmpuint(
        driver_count_events(bed->drv[0], RDMA_HCA_EVENT_CONGESTION), ==, 1);
    lab_sleep(bed->lab, 400 * NS_PER_US);
    bed_counted(bed, 0, "requester_limit_restored", 1);
    inject_cnp(bed);
    bed_counted(bed, 0, "requester_limit_halved", 2);
    g_assert_cmpuint(
        driver_count_events(bed->drv[0], RDMA_HCA_EVENT_CONGESTION), ==, 1);
    bed_free(bed);
}

static void test_floor(void)
{
    static const uint32_t limits[][2] = {
        { 1, 1 }, { 2, 1 }, { 3, 1 }, { 5, 2 }
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(limits); i++) {
        HcaConfig config[2];
        Bed *bed;

        config_init(config);
        config[0].osq_per_qp = limits[i][0];
        bed = bed_new_roce(RC, NULL, config);
        inject_cnp(bed);
        bed_counted(bed, 0, "requester_limit_halved", 1);
        g_assert_cmpuint(count_outstanding(bed), ==, limits[i][1]);
        finish_outstanding(bed);
        bed_free(bed);
    }
}

/* Another QP's limit is its own; a QP that is made anew has all of it. */
static void test_one_qp(void)
{
    QpAttr attr;
    Bed *bed;

    bed = bed_new_roce(RC, NULL, NULL);
    inject_cnp(bed);
    g_assert_cmphex(qp_to_err(bed->qps[0]), ==, 0);
    g_assert_cmphex(qp_to_rst(bed->qps[0]), ==, 0);
    g_assert_cmphex(qp_to_err(bed->qps[1]), ==, 0);
    g_assert_cmphex(qp_to_rst(bed->qps[1]), ==, 0);
    bed_counted(bed, 0, "requester_timers", 0);
    qp_attr_init(&attr);
    qp_connect(bed->qps[0], bed->qps[1], &attr);
    g_assert_cmpuint(count_outstanding(bed), ==, 16);
    finish_outstanding(bed);
    bed_free(bed);
}

/* The timer runs out in a QP that has failed meanwhile. */
static void test_failed_qp(void)
{
    Bed *bed;

    bed = bed_new_roce(RC, NULL, NULL);
    inject_cnp(bed);
    g_assert_cmphex(qp_to_err(bed->qps[0]), ==, 0);
    lab_sleep(bed->lab, 2 * NS_PER_MS);
    bed_counted(bed, 0, "requester_limit_restored", 1);
    inject_cnp(bed);
    bed_counted(bed, 0, "port_drop_qp_state", 1);
    bed_free(bed);
}

/* ---- CNPs sent ---- */

/* One for each interval, however many marks there are. */
static void test_interval(void)
{
    Bed *bed;

    bed = bed_new_roce(RC, NULL, NULL);
    bed_set_weather(bed, 0, (BedWeather) { .mark = true });
    for (unsigned round = 1; round <= 3; round++) {
        for (unsigned i = 0; i < 10; i++) {
            bed_request(bed, i, WRITE, 64);
        }
        bed_post_requests(bed, 10);
        bed_run(bed);
        bed_counted(bed, 1, "responder_ecn_marked_rx", 10 * round);
        bed_counted(bed, 1, "responder_cnp_tx", (round + 1) / 2);
        lab_sleep(bed->lab, 25 * NS_PER_US);
        while (cq_poll(bed->cqs[0], &(Wc) { .qpn = 0 })) {
            continue;
        }
    }
    bed_free(bed);
}

/* No interval: as many as there are turns. */
static void test_no_interval(void)
{
    HcaConfig config[2];
    Bed *bed;

    config_init(config);
    config[1].cnp_interval_us = 0;
    bed = bed_new_roce(RC, NULL, config);
    for (unsigned i = 1; i <= 5; i++) {
        mark_one(bed);
        bed_counted(bed, 1, "responder_cnp_tx", i);
    }
    bed_free(bed);
}

static void check_cnp(Bed *bed, unsigned from, const Gid *source,
                      const Gid *dest)
{
    const HcaPacket *cnp = &bed->cnp;

    g_assert_cmpuint(bed->cnps[from], ==, 1);
    g_assert_true(cnp->becn);
    g_assert_false(cnp->fecn || cnp->ack_req || cnp->solicited);
    g_assert_cmphex(cnp->pkey, ==, 0xffff);
    g_assert_cmphex(cnp->dest_qp, ==, bed->qps[!from]->qpn);
    g_assert_cmpmem(cnp->sgid.raw, 16, source->gid, 16);
    g_assert_cmpmem(cnp->dgid.raw, 16, dest->gid, 16);
    g_assert_cmpmem(cnp->smac, 6, source->mac, 6);
    g_assert_cmpmem(cnp->dmac, 6, dest->mac, 6);
    g_assert_cmpuint(cnp->has_vlan, ==, source->vlan != 0);
    g_assert_cmpuint(cnp->vlan_tci & 0xfff, ==, source->vlan);
    g_assert_cmphex(cnp->tclass & HCA_ECN_MASK, ==, HCA_ECN_ECT0);
    g_assert_cmphex(cnp->udp_sport, >=, 0xc000);
}

static void test_connected(const void *opaque)
{
    uint8_t service = GPOINTER_TO_UINT(opaque);

    for (unsigned gid = 0; gid < NUM_GIDS; gid++) {
        QpAttr attr;
        Bed *bed;

        qp_attr_init(&attr);
        attr.roce.sgid_index = gid;
        bed = bed_new_roce(service, &attr, NULL);
        mark_one(bed);
        check_cnp(bed, 1, &bed->drv[1]->gid[gid], &bed->drv[0]->gid[gid]);
        bed_counted(bed, 0, "requester_cnp_rx", 1);
        bed_counted(bed, 0, "requester_limit_halved", 1);
        g_assert_true(
            driver_event(bed->drv[0], RDMA_HCA_EVENT_CONGESTION, NULL));
        lab_sleep(bed->lab, NS_PER_MS);
        bed_counted(bed, 0, "requester_limit_restored", 1);
        bed_free(bed);
    }
}

/* The way back of a datagram is its own way. */
static void test_datagram(void)
{
    for (unsigned gid = 0; gid < NUM_GIDS; gid++) {
        UdAddress ud = { .roce.sgid_index = gid, .qkey = 0x11111111 };
        Bed *bed;

        bed = bed_new_roce(UD, NULL, NULL);
        ud_address_to(&ud, bed->drv[0], bed->drv[1]);
        ud.dqpn = bed->qps[1]->qpn;
        bed_post_recvs(bed, 1, 256);
        bed_request(bed, 0, SEND, 64)->ud = &ud;
        bed_set_weather(bed, 0, (BedWeather) { .mark = true });
        bed_post_requests(bed, 1);
        bed_run(bed);
        bed_expect_end(bed, 1, 0);
        check_cnp(bed, 1, &bed->drv[1]->gid[gid], &bed->drv[0]->gid[gid]);
        bed_counted(bed, 0, "requester_cnp_rx", 1);
        bed_free(bed);
    }
}

/* A group's packet tells nobody. */
static void test_group(void)
{
    static const uint8_t mgid[16] = { 0xff, 0x0e, [15] = 7 };
    UdAddress ud = { .qkey = 0x11111111 };
    const Qp *member;
    Bed *bed;

    bed = bed_new_roce(UD, NULL, NULL);
    member = bed->qps[1];
    g_assert_cmphex(driver_write_mgm(bed->drv[1], 0, mgid, &member, 1), ==, 0);
    ud_address_to_group(&ud, mgid);
    bed_post_recvs(bed, 1, 256);
    bed_request(bed, 0, SEND, 64)->ud = &ud;
    bed_set_weather(bed, 0, (BedWeather) { .mark = true });
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_expect_end(bed, 1, 0);
    bed_counted(bed, 1, "responder_ecn_marked_rx", 1);
    bed_counted(bed, 1, "responder_cnp_tx", 0);
    bed_free(bed);
}

/* Answers can be marked as well; a CNP's own mark means nothing. */
static void test_answers(void)
{
    Bed *bed;

    bed = bed_new_roce(RC, NULL, NULL);
    bed_set_weather(bed, 1, (BedWeather) { .mark = true });
    bed_request(bed, 0, READ, 3000);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_expect_end(bed, 0, 0);
    bed_counted(bed, 0, "responder_ecn_marked_rx", 3);
    bed_counted(bed, 0, "responder_cnp_tx", 1);
    bed_counted(bed, 1, "requester_cnp_rx", 1);
    check_cnp(bed, 0, &bed->drv[0]->gid[GID_LINK_LOCAL],
              &bed->drv[1]->gid[GID_LINK_LOCAL]);

    inject_cnp(bed);
    bed_counted(bed, 0, "requester_cnp_rx", 1);
    bed_set_weather(bed, 0, (BedWeather) { .mark = true });
    bed_set_weather(bed, 1, (BedWeather) { .mark = true });
    bed_request(bed, 0, WRITE, 64);
    bed_post_requests(bed, 1);
    bed_run(bed);
    g_assert_cmpuint(bed->cnps[1], ==, 1);
    bed_counted(bed, 0, "requester_cnp_rx", 2);
    bed_counted(bed, 0, "responder_ecn_marked_rx", 4); /* the ACK */
    bed_free(bed);
}

/* ---- CNPs that are not taken ---- */

static void expect_dropped(Bed *bed, HcaPacket *cnp, const char *reason)
{
    uint64_t before = bed_counter(bed, 0, reason);

    bed_inject(bed, 1, cnp);
    bed_counted(bed, 0, reason, before + 1);
    bed_counted(bed, 0, "requester_cnp_rx", 0);
    bed_counted(bed, 0, "requester_limit_halved", 0);
}

static void test_refused_cnps(void)
{
    HcaPacket good = { .opcode = HCA_BTH_CNP, .becn = true }, cnp;
    QpConfig config;
    QpAttr attr;
    Bed *bed;
    Qp *idle;

    bed = bed_new_roce(RC, NULL, NULL);
    bed_headers(bed, 1, &good);
    cnp = good;
    cnp.dest_qp = 0xabcdef;
    expect_dropped(bed, &cnp, "port_drop_qpn");
    cnp = good;
    cnp.pkey = 0x8123;
    expect_dropped(bed, &cnp, "port_drop_pkey");
    cnp = good;
    cnp.sgid.raw[15] ^= 1;
    expect_dropped(bed, &cnp, "port_drop_source");
    qp_config_init(&config, bed->pair->pd[0], bed->cqs[0]);
    idle = qp_new(bed->drv[0], &config);
    qp_attr_init(&attr);
    g_assert_cmphex(qp_to_init(idle, &attr), ==, 0);
    cnp = good;
    cnp.dest_qp = idle->qpn;
    expect_dropped(bed, &cnp, "port_drop_qp_state");
    attr.dest_qpn = bed->qps[1]->qpn;
    qp_attr_to(&attr, bed->drv[0], bed->drv[1]);
    g_assert_cmphex(qp_to_rtr(idle, &attr), ==, 0);
    expect_dropped(bed, &cnp, "port_drop_qp_state");
    bed_inject(bed, 1, &good);
    bed_counted(bed, 0, "requester_cnp_rx", 1);
    bed_free(bed);
}

/* ---- acknowledgement policies ---- */

static void ask_no_ack(HcaPacket *packet)
{
    packet->ack_req = false;
}

/* ACKs for ten Writes of which only the last @asked ask for one. */
static uint64_t count_acks(HcaAckPolicy policy, unsigned asked)
{
    HcaConfig config[2];
    uint64_t acks;
    Bed *bed;

    config_init(config);
    g_assert_cmpint(config[1].ack_policy, ==, HCA_ACK_COALESCED);
    config[1].ack_policy = policy;
    bed = bed_new_roce(RC, NULL, config);
    if (asked < 10) {
        bed_set_weather(
            bed, 0,
            (BedWeather) { .nth = 1, .last = 10 - asked, .edit = ask_no_ack });
    }
    for (unsigned i = 0; i < 10; i++) {
        bed_request(bed, i, WRITE, 64);
    }
    bed_post_requests(bed, 10);
    bed_run(bed);
    acks = bed_counter(bed, 1, "responder_acks_tx");
    for (unsigned i = 0; i < 10; i++) {
        bed_expect_end(bed, 0, 0);
    }
    bed_counted(bed, 0, "requester_timeouts", 0);
    bed_free(bed);
    return acks;
}

static void test_ack_policies(void)
{
    uint64_t joined = count_acks(HCA_ACK_COALESCED, 10);

    g_assert_cmpuint(joined, >, 0);
    g_assert_cmpuint(joined, <, 10);
    g_assert_cmpuint(count_acks(HCA_ACK_COALESCED, 1), ==, 1);
    g_assert_cmpuint(count_acks(HCA_ACK_REQUESTED, 10), ==, 10);
    g_assert_cmpuint(count_acks(HCA_ACK_REQUESTED, 4), ==, 4);
    g_assert_cmpuint(count_acks(HCA_ACK_REQUESTED, 1), ==, 1);
    g_assert_cmpuint(count_acks(HCA_ACK_EACH, 10), ==, 10);
    g_assert_cmpuint(count_acks(HCA_ACK_EACH, 1), ==, 10);
}

/* More acknowledgements than there is room for: they join, none is lost. */
static void test_ack_room(void)
{
    HcaConfig config[2];
    Bed *bed;

    config_init(config);
    config[0].osq_per_qp = 1024;
    config[1].ack_policy = HCA_ACK_EACH;
    bed = bed_new_roce(RC, NULL, config);
    for (unsigned i = 0; i < 60; i++) {
        bed_request(bed, i, WRITE, 3000);
    }
    bed_post_requests(bed, 60);
    bed_run(bed);
    for (unsigned i = 0; i < 60; i++) {
        bed_expect_end(bed, 0, 0);
    }
    bed_counted(bed, 1, "port_drop_resources", 0);
    bed_counted(bed, 0, "requester_retransmissions", 0);
    bed_free(bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/roce-congestion/limit", test_limit);
    test_add("/roce-congestion/limit-reads", test_limit_reads);
    test_add("/roce-congestion/infiniband", test_infiniband);
    test_add("/roce-congestion/back-off", test_back_off);
    test_add("/roce-congestion/faults", test_faults);
    test_add("/roce-congestion/faults-go-on", test_faults_go_on);
    test_add("/roce-congestion/restart", test_restart);
    test_add("/roce-congestion/floor", test_floor);
    test_add("/roce-congestion/one-qp", test_one_qp);
    test_add("/roce-congestion/failed-qp", test_failed_qp);
    test_add("/roce-congestion/interval", test_interval);
    test_add("/roce-congestion/no-interval", test_no_interval);
    test_add_data("/roce-congestion/rc", GUINT_TO_POINTER(RC), test_connected);
    test_add_data("/roce-congestion/uc", GUINT_TO_POINTER(UC), test_connected);
    test_add("/roce-congestion/ud", test_datagram);
    test_add("/roce-congestion/group", test_group);
    test_add("/roce-congestion/answers", test_answers);
    test_add("/roce-congestion/refused-cnps", test_refused_cnps);
    test_add("/roce-congestion/ack-policies", test_ack_policies);
    test_add("/roce-congestion/ack-room", test_ack_room);
    return g_test_run();
}
