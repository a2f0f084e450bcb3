/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-scene.h"

static void begin(Scene *s, uint32_t seed, uint64_t mr_len)
{
    s->pair = pair_new(seed, mr_len);
    s->drv = s->pair->drv[0];
    s->host = s->drv->host;
    pair_connect(s->pair, NULL, s->bystander);
}

void scene_init(Scene *s, uint32_t seed)
{
    begin(s, seed, 16384);
}

void scene_check(Scene *s)
{
    pair_check_works(s->pair, s->bystander, 0);
    pair_check_works(s->pair, s->bystander, 1);
}

void scene_free(Scene *s)
{
    scene_check(s);
    pair_free(s->pair);
}

static void reset(Lab *lab, Host *host)
{
    host_bar0_write(host, RDMA_HCA_RESET, 1);
    lab_run(lab);
    g_assert_cmphex(host_bar0_read(host, RDMA_HCA_RESET), ==, 0);
}

void scene_reset_card(Scene *s)
{
    reset(s->pair->lab, s->host);
}

void scene_recover(Scene *s)
{
    Pair *pair = s->pair;

    for (unsigned i = 0; i < 2; i++) {
        Host *host = &pair->lab->host[i];

        driver_free(pair->drv[i]);
        reset(pair->lab, host);
        pair->drv[i] = driver_new(host);
        pair->pd[i] = pd_new(pair->drv[i]);
        pair->cq[i] = cq_new(pair->drv[i], 6, CARD_UAR);
        pair->mr[i] = mr_new(pair->drv[i], pair->pd[i], 0x1000, 16384,
                             ACCESS_ALL);
    }
    s->drv = pair->drv[0];
    lab_run(pair->lab);
    pair_connect(pair, NULL, s->bystander);
    scene_check(s);
}

uint8_t scene_command(Scene *s, uint16_t op, uint64_t in_param,
                      uint32_t in_modifier, uint8_t op_modifier)
{
    return driver_cmd(s->drv, op, in_param, in_modifier, op_modifier,
                      s->drv->mbox_out, NULL);
}

uint8_t scene_command_in(Scene *s, uint16_t op, const void *inbox, size_t len,
                         uint32_t in_modifier)
{
    return driver_cmd_in(s->drv, op, inbox, len, in_modifier, 0);
}

uint8_t scene_map_icm(Scene *s, uint8_t kind, uint64_t virt, uint64_t page,
                      uint32_t npages)
{
    struct rdma_hca_icm_entry entry[2] = { 0 };

    entry[RDMA_HCA_ICM_SLOT(0)] = (struct rdma_hca_icm_entry) {
        .virt_h = GUINT32_TO_BE(RDMA_HCA_HI32(virt)),
        .virt_l = GUINT32_TO_BE(RDMA_HCA_LO32(virt)),
        .page_h = GUINT32_TO_BE(RDMA_HCA_HI32(page)),
        .page_l = GUINT32_TO_BE(RDMA_HCA_LO32(page) | npages),
    };
    return driver_cmd_in(s->drv, RDMA_HCA_CMD_MAP_ICM, entry, sizeof(entry), 1,
                         kind);
}

uint8_t scene_unmap_icm(Scene *s, uint8_t kind, uint64_t virt, uint32_t npages)
{
    return scene_command(s, RDMA_HCA_CMD_UNMAP_ICM, virt, npages, kind);
}

void scene_small_map(Scene *s)
{
    g_assert_cmphex(
        scene_map_icm(s, RDMA_HCA_ICM_CXT, 0, host_alloc(s->host, 3), 3), ==,
        0);
    g_assert_cmphex(
        scene_map_icm(s, RDMA_HCA_ICM_TPT, 0, host_alloc(s->host, 2), 2), ==,
        0);
}

uint8_t scene_small_init(Scene *s)
{
    struct rdma_hca_init_hca init = {
        .qpc_base_l = GUINT32_TO_BE(0x0000 | 4),
        .cqc_base_l = GUINT32_TO_BE(0x1000 | 4),
        .eqc_base_l = GUINT32_TO_BE(0x2000 | LOG_EQS),
        .mpt_base_l = GUINT32_TO_BE(0x0000 | 4),
        .mtt_base_l = GUINT32_TO_BE(0x1000),
    };

    return scene_command_in(s, RDMA_HCA_CMD_INIT_HCA, &init, sizeof(init), 0);
}

/* ---- a victim ---- */

static void scene_connect_victim(Scene *s)
{
    QpAttr attr;

    qp_attr_init(&attr);
    attr.timeout = 8;
    attr.retry_cnt = 1;
    attr.rnr_retry = 1;
    g_assert_cmphex(qp_to_rst(s->victim[0]), ==, 0);
    g_assert_cmphex(qp_to_rst(s->victim[1]), ==, 0);
    qp_connect(s->victim[0], s->victim[1], &attr);
}

void scene_init_victim(Scene *s, uint32_t seed)
{
    begin(s, seed, 65536);
    for (unsigned i = 0; i < 2; i++) {
        QpConfig config;

        s->victim_cq[i] = cq_new(s->pair->drv[i], 6, 3);
        qp_config_init(&config, s->pair->pd[i], s->victim_cq[i]);
        config.sq_entries = config.rq_entries = 16;
        s->victim[i] = qp_new(s->pair->drv[i], &config);
    }
    scene_connect_victim(s);
}

/*
 * Let the victim's mess come to an end and make it a QP again. Its CQ may
 * have overrun, which is its own business: it gets a new one.
 */
void scene_revive_victim(Scene *s)
{
    lab_sleep(s->pair->lab, 50 * NS_PER_MS);
    for (unsigned i = 0; i < 2; i++) {
        Driver *drv = s->pair->drv[i];
        Cq *old = s->victim_cq[i];

        g_assert_cmphex(qp_to_rst(s->victim[i]), ==, 0);
        s->victim_cq[i] = cq_new(drv, 6, 3);
        s->victim[i]->send_cq = s->victim[i]->recv_cq = s->victim_cq[i];
        g_assert_cmphex(cq_destroy(old), ==, 0);
        driver_poll_eq(drv, EQ_COMP);
        driver_poll_eq(drv, EQ_ASYNC);
        g_queue_clear_full(&drv->events, g_free);
    }
    scene_connect_victim(s);
}

/* Traffic all the while, in both directions. */
void scene_keep_busy(Scene *s)
{
    for (unsigned side = 0; side < 2; side++) {
        for (unsigned i = 0; i < 4; i++) {
            SendWr wr;
            Sge sge;

            wr = pair_send(s->pair, side,
                           i & 1 ? RDMA_HCA_OPCODE_RDMA_READ
                                 : RDMA_HCA_OPCODE_RDMA_WRITE,
                           i, &sge, 0, 20000, 20000);
            qp_post_send(s->victim[side], &wr, 1);
        }
    }
    for (unsigned i = 0; i < 20; i++) {
        lab_step(s->pair->lab);
    }
}

/* ---- contexts ---- */

struct rdma_hca_mpt scene_mpt(const Scene *s, uint64_t start, uint64_t length,
                              uint32_t flags)
{
    return good_mpt(GOOD_KEY(SPARE_MPT),
                    RDMA_HCA_MPT_REGION | RDMA_HCA_MPT_MIO | ACCESS_ALL | flags,
                    s->pair->pd[0], start, length, SPARE_MTT);
}

struct rdma_hca_eqc scene_eqc(const Scene *s, unsigned log_size)
{
    return good_eqc(s->pair->pd[0], s->pair->mr[0]->key, 0, log_size);
}

struct rdma_hca_cqc scene_cqc(const Scene *s, unsigned log_size)
{
    return good_cqc(s->pair->pd[0], s->pair->mr[0]->key, 0, log_size, CARD_UAR,
                    s->drv->eq[EQ_COMP].eqn);
}

struct rdma_hca_qpc scene_qpc(const Scene *s, uint32_t sq_len, uint32_t rq_len)
{
    return (struct rdma_hca_qpc) {
        .mtu_msgmax_sz = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_QPC_SQ_ENTRY_SZ, 6) |
            RDMA_HCA_PREP(RDMA_HCA_QPC_RQ_ENTRY_SZ, 5)),
        .usr_page = GUINT32_TO_BE(CARD_UAR),
        .port_pkey = GUINT32_TO_BE(RDMA_HCA_PREP(RDMA_HCA_QPC_PORT, 1)),
        .pd = GUINT32_TO_BE(s->pair->pd[0]),
        .cqn_snd = GUINT32_TO_BE(s->pair->cq[0]->cqn),
        .cqn_rcv = GUINT32_TO_BE(s->pair->cq[0]->cqn),
        .snd_wqe_base_l = GUINT32_TO_BE(s->pair->mr[0]->key),
        .snd_wqe_len = GUINT32_TO_BE(sq_len),
        .rcv_wqe_base_l = GUINT32_TO_BE(s->pair->mr[0]->key),
        .rcv_wqe_len = GUINT32_TO_BE(rq_len),
    };
}

uint8_t scene_sw2hw_mpt(Scene *s, const struct rdma_hca_mpt *mpt)
{
    return scene_command_in(s, RDMA_HCA_CMD_SW2HW_MPT, mpt, sizeof(*mpt),
                            SPARE_MPT);
}

uint8_t scene_hw2sw_mpt(Scene *s)
{
    return scene_command(s, RDMA_HCA_CMD_HW2SW_MPT, 0, SPARE_MPT, 0);
}

uint8_t scene_to_rst(Scene *s, uint32_t qpn)
{
    return scene_command(s, RDMA_HCA_CMD_ERR2RST_QPEE, 0, qpn,
                         RDMA_HCA_MODIFY_NO_INBOX);
}

void scene_disconnect(Qp *qp[2])
{
    qp_destroy(qp[0]);
    qp_destroy(qp[1]);
}

SceneLive scene_live(const Scene *s)
{
    const Hca *hca = s->host->hca;

    return (SceneLive) {
        .qps = card_counter(hca, "cxtmgt_qps"),
        .cqs = card_counter(hca, "cxtmgt_cqs"),
        .eqs = card_counter(hca, "cxtmgt_eqs"),
        .srqs = card_counter(hca, "cxtmgt_srqs"),
        .mpts = card_counter(hca, "v2p_mpts"),
    };
}

void scene_expect_live(const Scene *s, const SceneLive *was)
{
    SceneLive now = scene_live(s);

    g_assert_cmpuint(now.qps, ==, was->qps);
    g_assert_cmpuint(now.cqs, ==, was->cqs);
    g_assert_cmpuint(now.eqs, ==, was->eqs);
    g_assert_cmpuint(now.srqs, ==, was->srqs);
    g_assert_cmpuint(now.mpts, ==, was->mpts);
}
