/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state of a card with a WQE in hand: what none can say of that. */
#include "lib-bed.h"
#include "lib-requester.h"
#include "lib-state.h"

typedef struct WqeLie {
    uint8_t service;
    StateLie as; /* a WQE of which less is looked at; or nothing */
    StateLie lie;
} WqeLie;

#define WQE(field, value)                                                      \
    {                                                                          \
        "wqe", -1, "wqe." field, value, NULL                                   \
    }
#define RC RDMA_HCA_QP_ST_RC
#define UD RDMA_HCA_QP_ST_UD

static const WqeLie wqe_lies[] = {
    { RC, { 0 }, WQE("nsge", RDMA_HCA_MAX_SGE + 1) },
    { RC, { 0 }, WQE("sge_at", 2) },
    { RC, { 0 }, WQE("sge_done", 4097) },
    { RC, { 0 }, WQE("sent", 1) },
    { RC, { 0 }, WQE("msg_len", 4097) },
    { RC, { 0 }, WQE("ref.opcode", HCA_NOPCODES) },
    { RC, { 0 }, WQE("planned.way", HCA_PLANNED_ANSWER + 1) },
    { UD, { 0 }, WQE("ref.opcode", HCA_OP_RDMA_WRITE) },
    { UD, { 0 }, WQE("dqpn", HCA_QPN_MASK + 1) },
    { UD, { 0 }, WQE("path.sl", 16) },
    { UD, { 0 }, WQE("path.path_bits", 128) },
    { UD, { 0 }, WQE("path.flow_label", 0x100000) },
    /* What is sent of neither is looked at; the next one who saves it does. */
    { RC, WQE("syndrome", HCA_SYNDROME_LOCAL_QP_OP_ERR),
      WQE("nsge", RDMA_HCA_MAX_SGE + 1) },
    { RC, WQE("ref.opcode", HCA_OP_NOP), WQE("nsge", RDMA_HCA_MAX_SGE + 1) },
};

/* What it sends is far away. */
static Bed *bed_new_in_hand(uint8_t service)
{
    BedConfig config = bed_requester(service);
    HcaConfig cards[2];
    UdAddress ud;
    SendWr wr;
    Bed *bed;
    Sge sge;

    for (unsigned i = 0; i < 2; i++) {
        lab_config(&cards[i], i);
        cards[i].memory_latency_ns = 100000;
    }
    config.cards = cards;
    bed = bed_new_as(&config);
    ud = (UdAddress) { .dlid = bed->peer.slid, .dqpn = BED_PEER_QPN };
    wr = bed_wr(bed, &sge, RDMA_HCA_OPCODE_SEND, 0, 4096);
    wr.ud = service == UD ? &ud : NULL;
    g_assert_true(qp_post_send(bed->qp, &wr, 1));
    for (unsigned n = 0; !bed->hqp->send.wqe_valid; n++) {
        g_assert_cmpuint(n, <, 1000);
        if (!lab_step(bed->lab)) {
            bed->lab->now += NS_PER_US;
        }
    }
    return bed;
}

static void test_wqe_lie(const void *opaque)
{
    const WqeLie *wqe = opaque;
    Bed *bed = bed_new_in_hand(wqe->service);
    Hca *hca = bed->lab->host[0].hca;
    HcaState *state = state_save(hca);
    HcaStateError error;

    if (wqe->as.section) {
        state_tell(state, &wqe->as);
    }
    g_assert_true(hca_load(hca, state, &error));
    state_tell(state, &wqe->lie);
    g_assert_false(hca_load(hca, state, &error));
    g_assert_true(g_str_has_prefix(error.text, "wqe: a WQE of QP"));
    hca_state_free(state);
    bed_drop(bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(wqe_lies); i++) {
        test_add_data(test_named("/state/wqe/lie/%u", i), &wqe_lies[i],
                      test_wqe_lie);
    }
    return g_test_run();
}
