/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults that have their time: events that are raised, each with what it tells;
 * links that go down and come up, at a time or at a packet, at one end or both.
 */
#include "../mad/node.h"
#include "../verbs.h"
#include "lib-bed.h"

#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define SEND RDMA_HCA_OPCODE_SEND
#define MS NS_PER_MS

static HcaFaultPlan plan_of(HcaFaultEvent event)
{
    return (HcaFaultPlan) {
        .nrules = 1,
        .rule[0] = { .place = HCA_FAULT_CARD,
                     .action = HCA_FAULT_RAISE,
                     .event = event,
                     .probability = HCA_FAULT_ALWAYS },
    };
}

/* RoCE cards, too, have a cable that can tell the peer. */
static Bed *bed_new_on(HcaCableProtocol roce_cable)
{
    BedConfig config = bed_connection(RDMA_HCA_QP_ST_RC);
    HcaConfig cards[2];

    for (unsigned i = 0; i < 2; i++) {
        lab_config(&cards[i], i);
        if (test_is_roce()) {
            cards[i].cable = roce_cable;
        }
    }
    config.seed = 4400;
    config.bystander = false;
    config.cards = cards;
    config.attr.timeout = BED_TIMEOUT;
    return bed_new_as(&config);
}

static Bed *bed_new(void)
{
    return bed_new_on(HCA_CABLE_CARD);
}

/* ---- events ---- */

typedef struct QpEvent {
    const char *name;
    HcaFaultEvent event;
    uint8_t type;
    bool breaks;
} QpEvent;

static const QpEvent qp_events[] = {
    { "qp-fatal", HCA_FAULT_QP_FATAL, RDMA_HCA_EVENT_WQ_CATAS_ERROR, true },
    { "qp-req-err", HCA_FAULT_QP_REQ_ERR, RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR,
      true },
    { "qp-access-err", HCA_FAULT_QP_ACCESS_ERR, RDMA_HCA_EVENT_WQ_ACCESS_ERROR,
      true },
    { "comm-est", HCA_FAULT_COMM_EST, RDMA_HCA_EVENT_COMM_EST, false },
    { "sq-drained", HCA_FAULT_SQ_DRAINED, RDMA_HCA_EVENT_SQ_DRAINED, false },
    { "path-mig", HCA_FAULT_PATH_MIG, RDMA_HCA_EVENT_PATH_MIG, false },
    { "path-mig-err", HCA_FAULT_PATH_MIG_ERR, RDMA_HCA_EVENT_PATH_MIG_FAILED,
      false },
    { "qp-last-wqe-reached", HCA_FAULT_LAST_WQE_REACHED,
      RDMA_HCA_EVENT_LAST_WQE_REACHED, false },
};

/* Once, of this QP; the first time that it is due. */
static void test_qp_event(gconstpointer data)
{
    const QpEvent *c = data;
    HcaFaultPlan plan = plan_of(c->event);
    struct rdma_hca_eqe eqe;
    Bed *bed = bed_new();

    driver_count_events(bed->drv[0], c->type);
    plan.rule[0].match_qpn = true;
    plan.rule[0].qpn = bed->qps[0]->qpn;
    plan.rule[0].after_ns = 5 * MS;
    bed_set_faults(bed, 0, &plan);
    bed_counted(bed, 0, "verb_fault_card_raise", 0);
    lab_sleep(bed->lab, 10 * MS);
    bed_counted(bed, 0, "verb_fault_card_raise", 1);
    g_assert_true(driver_event(bed->drv[0], c->type, &eqe));
    g_assert_cmphex(GUINT32_FROM_LE(eqe.raw[0]), ==, bed->qps[0]->qpn);
    g_assert_cmpuint(driver_count_events(bed->drv[0], c->type), ==, 0);
    g_assert_cmpuint(qp_state(bed->qps[0]), ==,
                     c->breaks ? RDMA_HCA_QP_STATE_ERR : RDMA_HCA_QP_STATE_RTS);
    bed_revive(bed);
    bed_free(bed);
}

/* Nobody has this number: nothing happens, and nothing is counted. */
static void test_nobody(void)
{
    static const HcaFaultEvent events[] = { HCA_FAULT_QP_FATAL,
                                            HCA_FAULT_CQ_ERR, HCA_FAULT_SRQ_ERR,
                                            HCA_FAULT_SRQ_LIMIT };
    Bed *bed = bed_new();

    for (unsigned i = 0; i < G_N_ELEMENTS(events); i++) {
        HcaFaultPlan plan = plan_of(events[i]);

        plan.rule[0].match_qpn = true;
        plan.rule[0].match_cqn = true;
        plan.rule[0].match_srqn = true;
        plan.rule[0].qpn = plan.rule[0].cqn = plan.rule[0].srqn = 0xffffff;
        bed_set_faults(bed, 0, &plan);
        bed_run(bed);
    }
    bed_counted(bed, 0, "verb_fault_card_raise", 0);
    pair_check_works(bed->pair, bed->qps, 0);
    bed_free(bed);
}

static void test_cq_err(void)
{
    HcaFaultPlan plan = plan_of(HCA_FAULT_CQ_ERR);
    struct rdma_hca_eqe eqe;
    Bed *bed = bed_new();

    plan.rule[0].match_cqn = true;
    plan.rule[0].cqn = bed->cqs[0]->cqn;
    bed_set_faults(bed, 0, &plan);
    bed_run(bed);
    g_assert_true(driver_event(bed->drv[0], RDMA_HCA_EVENT_CQ_ERROR, &eqe));
    g_assert_cmphex(GUINT32_FROM_LE(eqe.raw[0]), ==, bed->cqs[0]->cqn);
    bed_request(bed, 0, WRITE, 64);
    bed_post_requests(bed, 1);
    bed_run(bed);
    g_assert_cmpuint(qp_state(bed->qps[0]), ==, RDMA_HCA_QP_STATE_ERR);
    bed_free(bed);
}

static void test_srq(gconstpointer data)
{
    bool fails = GPOINTER_TO_UINT(data);
    HcaFaultPlan plan = plan_of(fails ? HCA_FAULT_SRQ_ERR
                                      : HCA_FAULT_SRQ_LIMIT);
    Bed *bed = bed_new();
    Driver *drv = bed->drv[0];
    struct rdma_hca_eqe eqe;
    SrqConfig config;
    Srq *srq;

    srq_config_init(&config, bed->pair->pd[0]);
    srq = srq_new(drv, &config);
    plan.rule[0].match_srqn = true;
    plan.rule[0].srqn = srq->srqn;
    bed_set_faults(bed, 0, &plan);
    bed_run(bed);
    g_assert_true(driver_event(
        drv, fails ? RDMA_HCA_EVENT_SRQ_CATAS_ERROR : RDMA_HCA_EVENT_SRQ_LIMIT,
        &eqe));
    g_assert_cmphex(GUINT32_FROM_LE(eqe.raw[0]), ==, srq->srqn);
    g_assert_cmphex(srq_arm(srq, 1), ==,
                    fails ? RDMA_HCA_STAT_BAD_RES_STATE : 0);
    bed_free(bed);
}

typedef struct PortEvent {
    const char *name;
    HcaFaultEvent event;
    uint32_t change;
} PortEvent;

static const PortEvent port_events[] = {
    { "lid-change", HCA_FAULT_LID_CHANGE, RDMA_HCA_PORT_MNG_LID },
    { "sm-change", HCA_FAULT_SM_CHANGE, RDMA_HCA_PORT_MNG_SM },
    { "pkey-change", HCA_FAULT_PKEY_CHANGE, RDMA_HCA_PORT_MNG_PKEYS },
    { "gid-change", HCA_FAULT_GID_CHANGE, RDMA_HCA_PORT_MNG_GIDS },
    { "client-reregister", HCA_FAULT_REREGISTER, RDMA_HCA_PORT_MNG_REREGISTER },
};

/* Of an InfiniBand port; a RoCE card's has none of these. */
static void test_port_event(gconstpointer data)
{
    const PortEvent *c = data;
    HcaFaultPlan plan = plan_of(c->event);
    struct rdma_hca_eqe eqe;
    Bed *bed = bed_new();
    bool told;

    bed_set_faults(bed, 0, &plan);
    bed_run(bed);
    told = driver_event(bed->drv[0], RDMA_HCA_EVENT_PORT_MNG, &eqe);
    g_assert_cmpint(told, ==, !test_is_roce());
    if (told) {
        g_assert_cmphex(GUINT32_FROM_LE(eqe.port.changes), ==, c->change);
        g_assert_cmpuint(GUINT32_FROM_LE(eqe.raw[0]), ==, RDMA_HCA_NUM_PORTS);
    }
    bed_counted(bed, 0, "verb_fault_card_raise", told);
    pair_check_works(bed->pair, bed->qps, 0);
    bed_free(bed);
}

/* An event queue fails, and the driver would give the card up. */
static void test_device_fatal(void)
{
    HcaFaultPlan plan = plan_of(HCA_FAULT_DEVICE_FATAL);
    Bed *bed = bed_new();

    bed_set_faults(bed, 0, &plan);
    bed_run(bed);
    g_assert_cmpuint(
        driver_count_events(bed->drv[0], RDMA_HCA_EVENT_LOCAL_CATAS_ERROR), ==,
        1);
    bed_counted(bed, 0, "verb_fault_card_raise", 1);
    bed_set_faults(bed, 0, NULL);
    bed_free(bed);
}

/* ---- links ---- */

static HcaFaultPlan down_plan(HcaFaultPlace place)
{
    return (HcaFaultPlan) {
        .nrules = 1,
        .rule[0] = { .place = place,
                     .action = HCA_FAULT_DOWN,
                     .directions = 1u << HCA_FAULT_TX,
                     .probability = HCA_FAULT_ALWAYS,
                     .count = 1,
                     .down = { .down_ns = 10 * MS, .up_ns = 10 * MS } },
    };
}

/* Take the port's changes of a side: "DUDU", down and up. */
static char *port_changes(Bed *bed, unsigned side)
{
    GString *text = g_string_new(NULL);
    struct rdma_hca_eqe eqe;

    while (driver_event(bed->drv[side], RDMA_HCA_EVENT_PORT_CHANGE, &eqe)) {
        g_string_append_c(
            text, eqe.subtype == RDMA_HCA_PORT_CHANGE_ACTIVE ? 'U' : 'D');
        g_assert_cmpuint(GUINT32_FROM_LE(eqe.raw[0]), ==, RDMA_HCA_NUM_PORTS);
    }
    return g_string_free(text, FALSE);
}

static void expect_changes(Bed *bed, unsigned side, const char *changes)
{
    g_autofree char *had = port_changes(bed, side);

    g_assert_cmpstr(had, ==, changes);
}

static void forget_changes(Bed *bed)
{
    for (unsigned i = 0; i < 2; i++) {
        g_free(port_changes(bed, i));
    }
}

/* Three times; each is told once at each end, and then all works. */
static void test_flap(void)
{
    HcaFaultPlan plan = down_plan(HCA_FAULT_CARD);
    Bed *bed = bed_new();

    forget_changes(bed);
    plan.rule[0].count = 3;
    plan.rule[0].after_ns = 5 * MS;
    bed_set_faults(bed, 0, &plan);
    for (unsigned i = 0; i < 3; i++) {
        lab_sleep(bed->lab, 10 * MS); /* down */
        expect_changes(bed, 0, "D");
        expect_changes(bed, 1, "D");
        lab_sleep(bed->lab, 10 * MS);
        expect_changes(bed, 0, "U");
        expect_changes(bed, 1, "U");
    }
    lab_sleep(bed->lab, 100 * MS);
    expect_changes(bed, 0, "");
    expect_changes(bed, 1, "");
    bed_counted(bed, 0, "verb_fault_card_down", 3);
    pair_check_works(bed->pair, bed->qps, 0);
    bed_free(bed);
}

/* One end does not run for a while: it hears of each change all the same. */
static void test_flap_unseen(void)
{
    HcaFaultPlan plan = down_plan(HCA_FAULT_CARD);
    Bed *bed = bed_new();

    forget_changes(bed);
    plan.rule[0].count = 5;
    bed_set_faults(bed, 0, &plan);
    host_set_running(&bed->lab->host[1], false);
    lab_sleep(bed->lab, 200 * MS);
    expect_changes(bed, 0, "DUDUDUDUDU");
    expect_changes(bed, 1, "");
    host_set_running(&bed->lab->host[1], true);
    lab_run(bed->lab);
    expect_changes(bed, 1, "DUDUDUDUDU");
    pair_check_works(bed->pair, bed->qps, 0);
    bed_free(bed);
}

/* However fast, if software keeps up: none is lost, none is doubled. */
static void test_fast(void)
{
    HcaFaultPlan plan = down_plan(HCA_FAULT_CARD);
    Bed *bed = bed_new();
    Driver *drv = bed->drv[0];
    unsigned n = 0;

    forget_changes(bed);
    plan.rule[0].count = 1000;
    plan.rule[0].down.down_ns = plan.rule[0].down.up_ns = 5000;
    bed_set_faults(bed, 0, &plan);
    for (unsigned i = 0; i < 20000; i++) {
        g_autofree char *changes = NULL;

        lab_sleep(bed->lab, 1000);
        changes = port_changes(bed, 0);
        for (char *c = changes; *c; c++) {
            g_assert_cmpint(*c, ==, n % 2 ? 'U' : 'D');
            n++;
        }
        driver_poll_eq(drv, EQ_ASYNC);
    }
    g_assert_cmpuint(n, ==, 2000);
    bed_counted(bed, 0, "verb_fault_card_down", 1000);
    forget_changes(bed);
    pair_check_works(bed->pair, bed->qps, 0);
    bed_free(bed);
}

/* Until the plan goes. */
static void test_down_for_good(void)
{
    HcaFaultPlan plan = down_plan(HCA_FAULT_CARD);
    Bed *bed = bed_new();

    forget_changes(bed);
    plan.rule[0].down = (HcaFaultDown) { 0 };
    bed_set_faults(bed, 0, &plan);
    lab_sleep(bed->lab, NS_PER_S);
    expect_changes(bed, 0, "D");
    expect_changes(bed, 1, "D");
    bed_set_faults(bed, 0, NULL);
    lab_sleep(bed->lab, MS);
    expect_changes(bed, 0, "U");
    expect_changes(bed, 1, "U");
    pair_check_works(bed->pair, bed->qps, 1);
    bed_free(bed);
}

/* One end sees nothing any more, and the other does not know. */
static void test_one_end(gconstpointer data)
{
    uint8_t ends = GPOINTER_TO_UINT(data);
    HcaFaultPlan plan = down_plan(HCA_FAULT_CARD);
    Bed *bed = bed_new();
    Wc wc;

    forget_changes(bed);
    plan.rule[0].down.ends = ends;
    bed_set_faults(bed, 0, &plan);
    lab_sleep(bed->lab, MS);
    expect_changes(bed, 0, ends == HCA_FAULT_OWN_END ? "D" : "");
    expect_changes(bed, 1, ends == HCA_FAULT_OWN_END ? "" : "D");
    /* Either way nothing passes; what was sent is sent again. */
    bed_post_recvs(bed, 1, 64);
    bed_request(bed, 0, SEND, 64);
    bed_post_requests(bed, 1);
    lab_sleep(bed->lab, MS);
    g_assert_false(cq_poll(bed->cqs[1], &wc));
    cq_expect(bed->cqs[0], &wc, 0, 0);
    cq_expect(bed->cqs[1], &wc, 0, 0);
    expect_changes(bed, 0, ends == HCA_FAULT_OWN_END ? "U" : "");
    expect_changes(bed, 1, ends == HCA_FAULT_OWN_END ? "" : "U");
    bed_free(bed);
}

/* On a segment nobody else is told. (An InfiniBand card has none.) */
static void test_segment(void)
{
    HcaFaultPlan plan = down_plan(HCA_FAULT_CARD);
    Bed *bed = bed_new_on(HCA_CABLE_SEGMENT);

    if (!test_is_roce()) {
        bed_free(bed);
        return;
    }
    forget_changes(bed);
    bed_set_faults(bed, 0, &plan);
    lab_sleep(bed->lab, 50 * MS);
    expect_changes(bed, 0, "DU");
    expect_changes(bed, 1, "");
    pair_check_works(bed->pair, bed->qps, 0);
    bed_free(bed);
}

/* What the peer sends to an end that is down is lost there. */
static void test_unheard(void)
{
    HcaFaultPlan plan = down_plan(HCA_FAULT_CARD);
    Bed *bed = bed_new();
    Qp *turned[2] = { bed->qps[1], bed->qps[0] };

    plan.rule[0].down.ends = HCA_FAULT_OWN_END;
    bed_set_faults(bed, 0, &plan);
    lab_sleep(bed->lab, MS);
    bed_post_recvs_on(bed, 0, 0, 1, 64);
    {
        Sge sge;
        SendWr wr = pair_send(bed->pair, 1, SEND, 0, &sge, 0, 64, 0);

        g_assert_true(qp_post_send(turned[0], &wr, 1));
    }
    lab_sleep(bed->lab, MS);
    bed_counted(bed, 0, "link_rx_unheard", 1);
    bed_expect_end(bed, 1, 0);
    bed_free(bed);
}

/* At the n-th packet: with it lost, or behind it. */
static void test_at_packet(gconstpointer data)
{
    bool delivered = GPOINTER_TO_UINT(data) & 1;
    bool received = GPOINTER_TO_UINT(data) & 2;
    HcaFaultPlan plan = down_plan(HCA_FAULT_CABLE);
    HcaFaultRule *rule = &plan.rule[0];
    Bed *bed = bed_new();
    unsigned side = received;
    Wc wc;

    forget_changes(bed);
    rule->directions = 1u << (received ? HCA_FAULT_RX : HCA_FAULT_TX);
    rule->match_qpn = true;
    rule->qpn = bed->qps[1]->qpn;
    rule->skip = 2;
    rule->down.delivered = delivered;
    bed_set_faults(bed, side, &plan);
    bed_post_recvs(bed, 4, 64);
    for (unsigned i = 0; i < 4; i++) {
        bed_request(bed, 0, SEND, 64);
        bed_post_requests(bed, 1);
        lab_sleep(bed->lab, 2 * MS); /* one by one */
    }
    for (unsigned i = 0; i < 2u + delivered; i++) {
        g_assert_true(cq_poll(bed->cqs[1], &wc));
    }
    g_assert_false(cq_poll(bed->cqs[1], &wc));
    for (unsigned i = 2u + delivered; i < 4; i++) {
        bed_expect_end(bed, 1, 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        bed_expect_end(bed, 0, 0);
    }
    bed_counted(bed, side, received ? "fault_rx_down" : "fault_tx_down", 1);
    expect_changes(bed, 0, "DU");
    expect_changes(bed, 1, "DU");
    bed_free(bed);
}

/* It comes up with less, and with all that it has when there is no plan. */
static void test_limits(void)
{
    HcaFaultPlan plan = down_plan(HCA_FAULT_CARD);
    Bed *bed = bed_new();
    const HcaPortInfo *info =
        &hca_port_node_port(bed->lab->host[0].hca->port)->info;
    uint8_t speed = info->speed_active, mtu = info->mtu;

    plan.rule[0].down.speed = 1; /* SDR */
    plan.rule[0].down.mtu = 2;   /* 512 */
    bed_set_faults(bed, 0, &plan);
    lab_sleep(bed->lab, 20 * MS);
    g_assert_cmpuint(info->speed_active, ==, 1);
    g_assert_cmpuint(info->mtu, ==, 2);
    pair_check_works(bed->pair, bed->qps, 0);
    plan.rule[0].down.speed = plan.rule[0].down.mtu = 0;
    bed_set_faults(bed, 0, &plan);
    lab_sleep(bed->lab, 20 * MS);
    g_assert_cmpuint(info->speed_active, ==, speed);
    g_assert_cmpuint(info->mtu, ==, mtu);
    bed_free(bed);
}

/* A reset has the driver begin anew; the link is still down. */
static void test_reset_while_down(void)
{
    HcaFaultPlan plan = down_plan(HCA_FAULT_CARD);
    Pair *pair = pair_new(4401, 4096);
    Host *host = &pair->lab->host[1];

    plan.rule[0].down = (HcaFaultDown) { 0 };
    host_set_faults(host, &plan);
    lab_run(pair->lab);
    driver_free(pair->drv[1]);
    host_reset(host);
    lab_run(pair->lab);
    pair->drv[1] = driver_new(host);
    lab_run(pair->lab);
    g_assert_cmpuint(pair_counter(pair, 1, "link_up"), ==, 0);
    g_assert_cmpuint(pair_counter(pair, 0, "link_up"), ==, 0);
    host_set_faults(host, NULL);
    lab_run(pair->lab);
    g_assert_cmpuint(pair_counter(pair, 1, "link_up"), ==, 1);
    g_assert_cmpuint(pair_counter(pair, 0, "link_up"), ==, 1);
    pair->pd[1] = pd_new(pair->drv[1]);
    pair->cq[1] = cq_new(pair->drv[1], 8, 1);
    pair->mr[1] = mr_new(pair->drv[1], pair->pd[1], 0x10000, 4096, ACCESS_ALL);
    pair_free(pair);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(qp_events); i++) {
        test_add_data_each_link(
            test_named("/fault-verbs/events/%s", qp_events[i].name),
            &qp_events[i], test_qp_event);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(port_events); i++) {
        test_add_data_each_link(
            test_named("/fault-verbs/events/%s", port_events[i].name),
            &port_events[i], test_port_event);
    }
    test_add("/fault-verbs/events/nobody", test_nobody);
    test_add_each_link("/fault-verbs/events/cq-err", test_cq_err);
    test_add_data("/fault-verbs/events/srq-err", GUINT_TO_POINTER(true),
                  test_srq);
    test_add_data("/fault-verbs/events/srq-limit-reached",
                  GUINT_TO_POINTER(false), test_srq);
    test_add_each_link("/fault-verbs/events/device-fatal", test_device_fatal);
    test_add_each_link("/fault-verbs/link/flap", test_flap);
    test_add_each_link("/fault-verbs/link/flap-unseen", test_flap_unseen);
    test_add_each_link("/fault-verbs/link/fast", test_fast);
    test_add_each_link("/fault-verbs/link/for-good", test_down_for_good);
    test_add_data_each_link("/fault-verbs/link/own-end",
                            GUINT_TO_POINTER(HCA_FAULT_OWN_END), test_one_end);
    test_add_data_each_link("/fault-verbs/link/peer-end",
                            GUINT_TO_POINTER(HCA_FAULT_PEER_END), test_one_end);
    test_add_each_link("/fault-verbs/link/segment", test_segment);
    test_add_each_link("/fault-verbs/link/unheard", test_unheard);
    test_add_data_each_link("/fault-verbs/link/packet/sent/lost",
                            GUINT_TO_POINTER(0), test_at_packet);
    test_add_data_each_link("/fault-verbs/link/packet/sent/delivered",
                            GUINT_TO_POINTER(1), test_at_packet);
    test_add_data_each_link("/fault-verbs/link/packet/received/lost",
                            GUINT_TO_POINTER(2), test_at_packet);
    test_add_data_each_link("/fault-verbs/link/packet/received/delivered",
                            GUINT_TO_POINTER(3), test_at_packet);
    test_add("/fault-verbs/link/limits", test_limits);
    test_add("/fault-verbs/link/reset", test_reset_while_down);
    return g_test_run();
}
