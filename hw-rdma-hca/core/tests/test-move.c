/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A machine moves while its card works: the other end of the cable waits, and both
 * go on with the next packet. Or it does not come back, or someone else comes.
 */
#include <string.h>

#include "lib-card.h"
#include "lib-move.h"
#include "lib-pair.h"
#include "lib-state.h"
#include "../link/link_int.h"

#define LEN 900000
#define MR_LEN (2 * 1024 * 1024)

/* Of two cards that greet, on either link layer. */
static void greeting_config(HcaConfig *config)
{
    for (unsigned side = 0; side < 2; side++) {
        lab_config(&config[side], side);
        config[side].cable = HCA_CABLE_CARD;
    }
}

static Pair *pair_new_greeting(uint32_t seed)
{
    HcaConfig config[2];

    greeting_config(config);
    return pair_new_with(seed, MR_LEN, config, NULL, NULL);
}

static void forget_events(Pair *pair)
{
    struct rdma_hca_eqe eqe;

    lab_run(pair->lab);
    for (unsigned i = 0; i < 2; i++) {
        while (driver_event(pair->drv[i], RDMA_HCA_EVENT_PORT_CHANGE, &eqe)) {
            continue;
        }
    }
}

/* Nobody has seen anything of it. */
static void expect_unseen(Pair *pair)
{
    struct rdma_hca_eqe eqe;

    for (unsigned i = 0; i < 2; i++) {
        g_assert_false(
            driver_event(pair->drv[i], RDMA_HCA_EVENT_PORT_CHANGE, &eqe));
        g_assert_cmpuint(pair_counter(pair, i, "requester_timeouts"), ==, 0);
        g_assert_cmpuint(pair_counter(pair, i, "requester_retransmissions"), ==,
                         0);
        g_assert_cmpuint(pair_counter(pair, i, "link_tx_discarded"), ==, 0);
        g_assert_cmpuint(pair_counter(pair, i, "link_moves_lost"), ==, 0);
    }
}

/* What side 0 has written is there. */
static void expect_data(Pair *pair, uint64_t at, const uint8_t *data)
{
    g_autofree uint8_t *got = g_malloc(LEN);

    mr_read(pair->mr[1], at, got, LEN);
    g_assert_cmpmem(got, LEN, data, LEN);
}

/*
 * Either end moves in the middle of messages, both ways, and is away for longer
 * than connections try. Nothing is lost, and nothing is sent again.
 */
static void test_mid_message(void)
{
    Pair *pair = pair_new_greeting(71);
    g_autofree uint8_t *data = pair_data(pair, LEN);
    Qp *qp[2];
    Wc wc;

    pair_connect(pair, NULL, qp);
    forget_events(pair);
    mr_write(pair->mr[0], 0, data, LEN);
    for (unsigned side = 0; side < 2; side++) {
        SendWr wr[2];
        Sge sge[2];

        wr[0] = pair_send(pair, side, RDMA_HCA_OPCODE_RDMA_WRITE, 1, &sge[0], 0,
                          side ? 5000 : LEN, side ? 1500000 : 0);
        wr[1] = pair_send(pair, side, RDMA_HCA_OPCODE_RDMA_READ, 2, &sge[1],
                          1000000, LEN / 2, 0);
        g_assert_true(qp_post_send(qp[side], wr, 2));
    }
    for (unsigned i = 0; i < 6; i++) {
        pair_wait_packets(pair, 1, 30);
        g_assert_true(move_depart(pair->lab, i & 1));
        lab_sleep(pair->lab, 8 * NS_PER_S);
        move_arrive(pair->lab, i & 1);
        lab_sleep(pair->lab, NS_PER_S);
        lab_cable(pair->lab, true);
    }
    for (unsigned side = 0; side < 2; side++) {
        cq_expect(pair->cq[side], &wc, 1, 0);
        cq_expect(pair->cq[side], &wc, 2, 0);
    }
    expect_data(pair, 0, data);
    expect_unseen(pair);
    g_assert_cmpuint(pair_counter(pair, 0, "link_moves"), ==, 6);
    g_assert_cmpuint(pair_counter(pair, 1, "link_moves"), ==, 6);
    pair_check_works(pair, qp, 0);
    pair_check_works(pair, qp, 1);
    pair_free(pair);
}

/* Ends that do not find each other */

static void expect_event(Pair *pair, unsigned side, unsigned subtype)
{
    struct rdma_hca_eqe eqe;

    g_assert_true(
        driver_event(pair->drv[side], RDMA_HCA_EVENT_PORT_CHANGE, &eqe));
    g_assert_cmpuint(eqe.subtype, ==, subtype);
}

static void expect_no_event(Pair *pair, unsigned side)
{
    struct rdma_hca_eqe eqe;

    g_assert_false(
        driver_event(pair->drv[side], RDMA_HCA_EVENT_PORT_CHANGE, &eqe));
}

static void expect_flap(Pair *pair, unsigned side)
{
    expect_event(pair, side, RDMA_HCA_PORT_CHANGE_DOWN);
    expect_event(pair, side, RDMA_HCA_PORT_CHANGE_ACTIVE);
    expect_no_event(pair, side);
}

/* A message each way that nobody has answered yet. */
static void post_each_way(Pair *pair, Qp *qp[2])
{
    for (unsigned side = 0; side < 2; side++) {
        Sge sge;
        SendWr wr = pair_send(pair, side, RDMA_HCA_OPCODE_RDMA_WRITE, 7, &sge,
                              0, LEN, LEN);

        g_assert_true(qp_post_send(qp[side], &wr, 1));
    }
    pair_wait_packets(pair, 1, 30);
}

static void expect_ends(Pair *pair, uint8_t syndrome)
{
    Wc wc;

    for (unsigned side = 0; side < 2; side++) {
        cq_expect(pair->cq[side], &wc, 7, syndrome);
    }
}

static void connect_again(Pair *pair, Qp *qp[2])
{
    QpAttr attr;

    qp_attr_init(&attr);
    for (unsigned side = 0; side < 2; side++) {
        g_assert_cmphex(qp_to_rst(qp[side]), ==, 0);
    }
    qp_connect(qp[0], qp[1], &attr);
    pair_check_works(pair, qp, 0);
    pair_check_works(pair, qp, 1);
}

/* The limit passes: the link of who waits is down, and then connections break. */
static void test_limit(void)
{
    Pair *pair = pair_new_greeting(72);
    Qp *qp[2];

    pair_connect(pair, NULL, qp);
    forget_events(pair);
    post_each_way(pair, qp);
    g_assert_true(move_depart(pair->lab, 1));
    lab_sleep(pair->lab, 9900 * NS_PER_MS);
    expect_no_event(pair, 0);
    g_assert_cmpuint(qp_state(qp[0]), ==, RDMA_HCA_QP_STATE_RTS);
    lab_sleep(pair->lab, 200 * NS_PER_MS);
    expect_event(pair, 0, RDMA_HCA_PORT_CHANGE_DOWN);
    g_assert_cmpuint(pair_counter(pair, 0, "link_moves_lost"), ==, 1);
    lab_sleep(pair->lab, 20 * NS_PER_S);
    move_arrive(pair->lab, 1);
    lab_sleep(pair->lab, NS_PER_S);
    lab_cable(pair->lab, true);
    lab_sleep(pair->lab, 20 * NS_PER_S);
    expect_event(pair, 0, RDMA_HCA_PORT_CHANGE_ACTIVE);
    expect_flap(pair, 1);
    expect_ends(pair, RDMA_HCA_SYNDROME_RETRY_EXC_ERR);
    connect_again(pair, qp);
    pair_free(pair);
}

/* Who has moved finds nobody: its link is down after the same time. */
static void test_nobody(void)
{
    Pair *pair = pair_new_greeting(73);

    forget_events(pair);
    g_assert_true(move_depart(pair->lab, 1));
    move_arrive(pair->lab, 1);
    lab_sleep(pair->lab, 9900 * NS_PER_MS);
    expect_no_event(pair, 1);
    lab_sleep(pair->lab, 200 * NS_PER_MS);
    expect_event(pair, 1, RDMA_HCA_PORT_CHANGE_DOWN);
    lab_cable(pair->lab, true);
    lab_run(pair->lab);
    expect_event(pair, 1, RDMA_HCA_PORT_CHANGE_ACTIVE);
    pair_free(pair);
}

/* A card that is not the one that is waited for. */
static void test_someone_else(void)
{
    Pair *pair = pair_new_greeting(74);
    Host *host = &pair->lab->host[1];
    Qp *qp[2];
    Wc wc;

    pair_connect(pair, NULL, qp);
    forget_events(pair);
    post_each_way(pair, qp);
    g_assert_true(move_depart(pair->lab, 1));
    driver_free(pair->drv[1]);
    hca_free(host->hca);
    host->hca = hca_new(&host->config, &host->ops, host);
    host_set_running(host, true);
    lab_cable(pair->lab, true);
    pair->drv[1] = driver_new(host);
    lab_run(pair->lab);
    expect_flap(pair, 0);
    cq_expect(pair->cq[0], &wc, 7, RDMA_HCA_SYNDROME_RETRY_EXC_ERR);
    pair_free(pair);
}

/*
 * The other end does not read what it is told: its link goes down with the stream,
 * and what was on its way is sent again.
 */
static void test_deaf(void)
{
    Pair *pair = pair_new_greeting(75);
    g_autofree uint8_t *data = pair_data(pair, LEN);
    Qp *qp[2];

    pair_connect(pair, NULL, qp);
    mr_write(pair->mr[0], 0, data, LEN);
    forget_events(pair);
    post_each_way(pair, qp);
    host_set_running(&pair->lab->host[0], false);
    g_assert_false(move_depart(pair->lab, 1));
    host_set_running(&pair->lab->host[0], true);
    move_arrive(pair->lab, 1);
    lab_cable(pair->lab, true);
    lab_run(pair->lab);
    expect_flap(pair, 0);
    expect_flap(pair, 1);
    expect_ends(pair, 0);
    expect_data(pair, LEN, data);
    pair_free(pair);
}

/* Both machines at once; restored together they go on with the next packet. */
static void test_both(void)
{
    Pair *pair = pair_new_greeting(76);
    g_autofree uint8_t *data = pair_data(pair, LEN);
    Qp *qp[2];

    pair_connect(pair, NULL, qp);
    mr_write(pair->mr[0], 0, data, LEN);
    forget_events(pair);
    for (unsigned i = 0; i < 4; i++) {
        post_each_way(pair, qp);
        host_set_running(&pair->lab->host[0], false);
        host_set_running(&pair->lab->host[1], false);
        g_assert_true(hca_depart(pair->lab->host[0].hca));
        g_assert_true(hca_depart(pair->lab->host[1].hca));
        for (bool all = false; !all;) {
            all = hca_drain(pair->lab->host[i & 1].hca);
            all &= hca_drain(pair->lab->host[!(i & 1)].hca);
        }
        lab_cable(pair->lab, false);
        pair->lab->now += 100 * NS_PER_S;
        for (unsigned side = 0; side < 2; side++) {
            move_arrive(pair->lab, side);
            lab_sleep(pair->lab, NS_PER_S);
        }
        lab_cable(pair->lab, true);
        expect_ends(pair, 0);
    }
    expect_data(pair, LEN, data);
    expect_unseen(pair);
    pair_free(pair);
}

/* One that waits is saved, too, in the same moment of both. */
static void test_one_after_the_other(void)
{
    Pair *pair = pair_new_greeting(77);
    Qp *qp[2];

    pair_connect(pair, NULL, qp);
    forget_events(pair);
    post_each_way(pair, qp);
    g_assert_true(move_depart(pair->lab, 0));
    lab_sleep(pair->lab, NS_PER_S);
    g_assert_true(move_depart(pair->lab, 1));
    pair->lab->now += 100 * NS_PER_S;
    move_arrive(pair->lab, 0);
    move_arrive(pair->lab, 1);
    lab_cable(pair->lab, true);
    expect_ends(pair, 0);
    expect_unseen(pair);
    pair_free(pair);
}

/* A state of before, to which the other end does not fit any more. */
static void test_old_state(void)
{
    Pair *pair = pair_new_greeting(78);
    Host *host = &pair->lab->host[1];
    HcaStateError error;
    HcaState *state;
    Qp *qp[2];

    pair_connect(pair, NULL, qp);
    forget_events(pair);
    g_assert_true(move_depart(pair->lab, 1));
    state = state_save(host->hca);
    move_arrive(pair->lab, 1);
    lab_cable(pair->lab, true);
    pair_check_works(pair, qp, 0);
    expect_unseen(pair);

    g_assert_true(move_depart(pair->lab, 1));
    g_assert_true(hca_load(host->hca, state, &error));
    move_arrive(pair->lab, 1);
    lab_cable(pair->lab, true);
    lab_run(pair->lab);
    expect_flap(pair, 0);
    expect_flap(pair, 1);
    hca_state_free(state);
    pair_free(pair);
}

/* Either has no patience: that the other one moves is a loss, as it was. */
static void test_impatient(gconstpointer opaque)
{
    HcaConfig config[2];
    Pair *pair;
    Qp *qp[2];

    greeting_config(config);
    config[GPOINTER_TO_UINT(opaque)].move_limit_ms = 0;
    pair = pair_new_with(79, MR_LEN, config, NULL, NULL);
    pair_connect(pair, NULL, qp);
    forget_events(pair);
    host_set_running(&pair->lab->host[1], false);
    g_assert_false(hca_depart(pair->lab->host[1].hca));
    lab_cable(pair->lab, false);
    lab_run(pair->lab);
    expect_event(pair, 0, RDMA_HCA_PORT_CHANGE_DOWN);
    move_arrive(pair->lab, 1);
    lab_cable(pair->lab, true);
    lab_run(pair->lab);
    pair_check_works(pair, qp, 0);
    g_assert_cmpuint(pair_counter(pair, 0, "link_moves"), ==, 0);
    pair_free(pair);
}

/* It is disabled while the other end is away, which is told so; or for a moment. */
static void test_disabled_meanwhile(gconstpointer opaque)
{
    bool moment = GPOINTER_TO_UINT(opaque);
    Pair *pair = pair_new_greeting(80);

    forget_events(pair);
    g_assert_true(move_depart(pair->lab, 1));
    for (unsigned i = 0; i < (moment ? 2 : 1); i++) {
        uint16_t op = i ? RDMA_HCA_CMD_INIT_IB : RDMA_HCA_CMD_CLOSE_IB;

        g_assert_cmphex(driver_cmd(pair->drv[0], op, 0, 1, 0, 0, NULL), ==,
                        RDMA_HCA_STAT_OK);
    }
    lab_run(pair->lab);
    move_arrive(pair->lab, 1);
    lab_cable(pair->lab, true);
    lab_run(pair->lab);
    if (moment) {
        expect_flap(pair, 1);
    } else {
        expect_event(pair, 1, RDMA_HCA_PORT_CHANGE_DOWN);
        expect_no_event(pair, 1);
    }
    pair_free(pair);
}

/* What came by the stream of before, and is saved, is frames and nothing else. */
static void test_lie(void)
{
    Pair *pair = pair_new_greeting(81);
    Hca *hca = pair->lab->host[1].hca;
    g_autoptr(GByteArray) bytes = NULL;
    unsigned refused = 0;
    Qp *qp[2];

    pair_connect(pair, NULL, qp);
    post_each_way(pair, qp);
    while (pair->lab->pipe[0]->len < 1000) {
        g_assert_true(lab_step(pair->lab));
    }
    g_assert_true(move_depart(pair->lab, 1));
    g_assert_cmpuint(hca->link->old_left, >=, 1000);
    bytes = state_write(state_save(hca));
    for (unsigned i = 0; i < bytes->len; i += 97) {
        HcaStateError error;
        HcaState *state;

        bytes->data[i] ^= 0x80;
        state = state_read(bytes->data, bytes->len, &error);
        bytes->data[i] ^= 0x80;
        if (state && !hca_load(hca, state, &error)) {
            refused += strstr(error.text, "link-rx: what is no frames") != NULL;
        }
        hca_state_free(state);
    }
    g_assert_cmpuint(refused, >, 0);
    host_set_running(&pair->lab->host[1], true);
    pair_free(pair);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/move/mid-message", test_mid_message);
    test_add_each_link("/move/limit", test_limit);
    test_add("/move/nobody", test_nobody);
    test_add("/move/someone-else", test_someone_else);
    test_add("/move/deaf", test_deaf);
    test_add_each_link("/move/both", test_both);
    test_add_each_link("/move/one-after-the-other", test_one_after_the_other);
    test_add("/move/old-state", test_old_state);
    test_add_data("/move/impatient/waits", GUINT_TO_POINTER(0), test_impatient);
    test_add_data("/move/impatient/moves", GUINT_TO_POINTER(1), test_impatient);
    test_add_data("/move/disabled/stays", GUINT_TO_POINTER(0),
                  test_disabled_meanwhile);
    test_add_data("/move/disabled/moment", GUINT_TO_POINTER(1),
                  test_disabled_meanwhile);
    test_add("/move/lie", test_lie);
    return g_test_run();
}
