/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-driver-parts.h"

#include <string.h>

#define CMD_TIME_NS (10 * NS_PER_S)
#define LOG_EQ_SIZE 7
#define ICM_CHUNK_PAGES 16
#define ROUND_UP_PAGES(size)                                                   \
    (((size) + HOST_PAGE_SIZE - 1) / HOST_PAGE_SIZE * HOST_PAGE_SIZE)

/* ---- commands ---- */

static bool hcr_ready(void *opaque)
{
    Driver *drv = opaque;

    return !(host_bar0_read(drv->host, RDMA_HCA_HCR + RDMA_HCA_HCR_CTRL) &
             RDMA_HCA_HCR_GO);
}

static void hcr_write(Driver *drv, uint32_t reg, uint32_t value)
{
    host_bar0_write(drv->host, RDMA_HCA_HCR + reg, value);
}

static uint32_t hcr_read(Driver *drv, uint32_t reg)
{
    return host_bar0_read(drv->host, RDMA_HCA_HCR + reg);
}

static bool take_cmd_event(Driver *drv, struct rdma_hca_eqe *eqe);

typedef struct CmdWait {
    Driver *drv;
    struct rdma_hca_eqe eqe;
} CmdWait;

static bool cmd_event_came(void *opaque)
{
    CmdWait *wait = opaque;

    return take_cmd_event(wait->drv, &wait->eqe);
}

static uint8_t cmd_wait_event(Driver *drv, uint64_t *out)
{
    CmdWait wait = { .drv = drv };

    g_assert_true(lab_wait(drv->host->lab, cmd_event_came, &wait, CMD_TIME_NS));
    g_assert_cmphex(GUINT32_FROM_LE(wait.eqe.cmd.token), ==, drv->token);
    g_assert_true(hcr_ready(drv));
    if (out) {
        *out = (uint64_t)GUINT32_FROM_LE(wait.eqe.cmd.out_param_h) << 32 |
               GUINT32_FROM_LE(wait.eqe.cmd.out_param_l);
    }
    return GUINT32_FROM_LE(wait.eqe.cmd.status);
}

static uint8_t cmd_wait_go(Driver *drv, uint64_t *out)
{
    g_assert_true(lab_wait(drv->host->lab, hcr_ready, drv, CMD_TIME_NS));
    if (out) {
        *out = (uint64_t)hcr_read(drv, RDMA_HCA_HCR_OUT_PARAM_H) << 32 |
               hcr_read(drv, RDMA_HCA_HCR_OUT_PARAM_L);
    }
    return RDMA_HCA_GET(RDMA_HCA_HCR_STATUS, hcr_read(drv, RDMA_HCA_HCR_CTRL));
}

uint8_t driver_cmd(Driver *drv, uint16_t op, uint64_t in_param,
                   uint32_t in_modifier, uint8_t op_modifier,
                   uint64_t out_param, uint64_t *out)
{
    uint32_t ctrl = RDMA_HCA_HCR_GO |
                    RDMA_HCA_PREP(RDMA_HCA_HCR_OP_MODIFIER, op_modifier) |
                    RDMA_HCA_PREP(RDMA_HCA_HCR_OP, op);

    drv->token = drv->cmd_events ? (drv->token + 1) & 0x7fff
                                 : RDMA_HCA_CMD_POLL_TOKEN;
    g_assert_true(hcr_ready(drv));
    hcr_write(drv, RDMA_HCA_HCR_IN_PARAM_H, RDMA_HCA_HI32(in_param));
    hcr_write(drv, RDMA_HCA_HCR_IN_PARAM_L, RDMA_HCA_LO32(in_param));
    hcr_write(drv, RDMA_HCA_HCR_IN_MODIFIER, in_modifier);
    hcr_write(drv, RDMA_HCA_HCR_OUT_PARAM_H, RDMA_HCA_HI32(out_param));
    hcr_write(drv, RDMA_HCA_HCR_OUT_PARAM_L, RDMA_HCA_LO32(out_param));
    hcr_write(drv, RDMA_HCA_HCR_TOKEN,
              RDMA_HCA_PREP(RDMA_HCA_HCR_TOKEN_MASK, drv->token));
    hcr_write(drv, RDMA_HCA_HCR_CTRL,
              ctrl | (drv->cmd_events ? RDMA_HCA_HCR_EVENT : 0));
    return drv->cmd_events ? cmd_wait_event(drv, out) : cmd_wait_go(drv, out);
}

uint8_t driver_cmd_in(Driver *drv, uint16_t op, const void *inbox, size_t len,
                      uint32_t in_modifier, uint8_t op_modifier)
{
    g_assert_cmpuint(len, <=, RDMA_HCA_MAILBOX_SIZE);
    host_fill(drv->host, drv->mbox_in, 0, RDMA_HCA_MAILBOX_SIZE);
    host_write(drv->host, drv->mbox_in, inbox, len);
    return driver_cmd(drv, op, drv->mbox_in, in_modifier, op_modifier, 0, NULL);
}

uint32_t driver_physical_region(Driver *drv, uint32_t pd)
{
    uint32_t index = g_array_index(drv->free_mpts, uint32_t, 0);
    uint32_t key = GOOD_KEY(index);
    struct rdma_hca_mpt mpt = good_mpt(key,
                                       RDMA_HCA_MPT_MIO | RDMA_HCA_MPT_REGION |
                                           RDMA_HCA_MPT_PHYSICAL | ACCESS_ALL,
                                       pd, 0, UINT64_C(1) << 40, 0);

    g_assert_cmphex(
        driver_cmd_in(drv, RDMA_HCA_CMD_SW2HW_MPT, &mpt, sizeof(mpt), index, 0),
        ==, 0);
    return key;
}

uint8_t driver_cmd_out(Driver *drv, uint16_t op, void *outbox, size_t len,
                       uint32_t in_modifier, uint8_t op_modifier)
{
    uint8_t status;

    g_assert_cmpuint(len, <=, RDMA_HCA_MAILBOX_SIZE);
    host_fill(drv->host, drv->mbox_out, 0x5a, RDMA_HCA_MAILBOX_SIZE);
    status = driver_cmd(drv, op, 0, in_modifier, op_modifier, drv->mbox_out,
                        NULL);
    host_read(drv->host, drv->mbox_out, outbox, len);
    return status;
}

void driver_must(uint8_t status)
{
    g_assert_cmphex(status, ==, RDMA_HCA_STAT_OK);
}

/* ---- bring-up ---- */

/* Map fresh memory of the machine at card-virtual @base, in odd chunks. */
static void map_icm(Driver *drv, const IcmTable *table)
{
    GRand *rand = drv->host->lab->rand;
    uint64_t virt = table->base & ~(uint64_t)(HOST_PAGE_SIZE - 1);
    uint64_t end = table->base + table->size;

    while (virt < end) {
        struct rdma_hca_icm_entry entry[8] = { 0 };
        unsigned n = 0;

        for (; n < G_N_ELEMENTS(entry) && virt < end; n++) {
            struct rdma_hca_icm_entry *e = &entry[RDMA_HCA_ICM_SLOT(n)];
            uint64_t left = (end - virt + HOST_PAGE_SIZE - 1) / HOST_PAGE_SIZE;
            unsigned pages = g_rand_int_range(rand, 1, ICM_CHUNK_PAGES + 1);
            uint64_t bus;

            pages = MIN(pages, left);
            bus = host_alloc(drv->host, pages);
            e->virt_h = GUINT32_TO_BE(RDMA_HCA_HI32(virt));
            e->virt_l = GUINT32_TO_BE(RDMA_HCA_LO32(virt));
            e->page_h = GUINT32_TO_BE(RDMA_HCA_HI32(bus));
            e->page_l = GUINT32_TO_BE(RDMA_HCA_LO32(bus) | pages);
            virt += (uint64_t)pages * HOST_PAGE_SIZE;
            for (; pages--; bus += HOST_PAGE_SIZE) {
                g_array_append_val(drv->icm_pages, bus);
            }
        }
        driver_must(driver_cmd_in(drv, RDMA_HCA_CMD_MAP_ICM, entry,
                                  sizeof(entry), n, table->kind));
    }
}

static void unmap_icm(Driver *drv, const IcmTable *table)
{
    driver_must(driver_cmd(drv, RDMA_HCA_CMD_UNMAP_ICM, table->base,
                           ROUND_UP_PAGES(table->size) / HOST_PAGE_SIZE,
                           table->kind, 0, NULL));
}

/* Place a table of 2^@log entries behind @at, page aligned; moves @at. */
static void place_table(IcmTable *table, uint8_t kind, uint64_t *at,
                        unsigned log, unsigned entry_size)
{
    *table = (IcmTable) { *at, (uint64_t)entry_size << log, kind };
    *at += ROUND_UP_PAGES(table->size) + HOST_PAGE_SIZE;
}

static void init_base(__be32 *high, __be32 *low, const IcmTable *table,
                      unsigned log)
{
    *high = GUINT32_TO_BE(RDMA_HCA_HI32(table->base));
    *low = GUINT32_TO_BE(RDMA_HCA_LO32(table->base) | log);
}

static void init_hca(Driver *drv)
{
    const struct rdma_hca_dev_lim *lim = &drv->lim;
    unsigned log_qps = GET_BE(RDMA_HCA_DEV_LIM_MAX_QPS,
                              lim->max_qps_cqs_eqs_mpts);
    unsigned log_cqs = GET_BE(RDMA_HCA_DEV_LIM_MAX_CQS,
                              lim->max_qps_cqs_eqs_mpts);
    unsigned log_eqs = GET_BE(RDMA_HCA_DEV_LIM_MAX_EQS,
                              lim->max_qps_cqs_eqs_mpts);
    unsigned log_mtts = GET_BE(RDMA_HCA_DEV_LIM_MTTS, lim->uars_mtts_msg);
    unsigned log_srqs = GET_BE(RDMA_HCA_DEV_LIM_MAX_SRQS, lim->srqs);
    uint64_t cxt_at = 4 * HOST_PAGE_SIZE, tpt_at = 0;
    struct rdma_hca_init_hca init = { 0 };
    IcmTable *icm = drv->icm;

    drv->log_mpts = GET_BE(RDMA_HCA_DEV_LIM_MAX_MPTS,
                           lim->max_qps_cqs_eqs_mpts);
    place_table(&icm[ICM_QPC], RDMA_HCA_ICM_CXT, &cxt_at, log_qps,
                RDMA_HCA_QPC_SIZE);
    place_table(&icm[ICM_CQC], RDMA_HCA_ICM_CXT, &cxt_at, log_cqs,
                RDMA_HCA_CQC_SIZE);
    place_table(&icm[ICM_EQC], RDMA_HCA_ICM_CXT, &cxt_at, log_eqs,
                RDMA_HCA_EQC_SIZE);
    place_table(&icm[ICM_SRQC], RDMA_HCA_ICM_CXT, &cxt_at, log_srqs,
                RDMA_HCA_SRQC_SIZE);
    place_table(&icm[ICM_MPT], RDMA_HCA_ICM_TPT, &tpt_at, drv->log_mpts,
                RDMA_HCA_MPT_SIZE);
    place_table(&icm[ICM_MTT], RDMA_HCA_ICM_TPT, &tpt_at, log_mtts,
                RDMA_HCA_MTT_SIZE);
    for (unsigned i = 0; i < NUM_ICM_TABLES; i++) {
        map_icm(drv, &icm[i]);
    }
    init_base(&init.qpc_base_h, &init.qpc_base_l, &icm[ICM_QPC], log_qps);
    init_base(&init.cqc_base_h, &init.cqc_base_l, &icm[ICM_CQC], log_cqs);
    init_base(&init.eqc_base_h, &init.eqc_base_l, &icm[ICM_EQC], log_eqs);
    init_base(&init.srqc_base_h, &init.srqc_base_l, &icm[ICM_SRQC], log_srqs);
    init_base(&init.mpt_base_h, &init.mpt_base_l, &icm[ICM_MPT], drv->log_mpts);
    init_base(&init.mtt_base_h, &init.mtt_base_l, &icm[ICM_MTT], 0);
    driver_must(
        driver_cmd_in(drv, RDMA_HCA_CMD_INIT_HCA, &init, sizeof(init), 0, 0));
}

/* The numbers that are free: all MPTs but the reserved, all MTTs. */
static void init_allocators(Driver *drv)
{
    const struct rdma_hca_dev_lim *lim = &drv->lim;
    uint32_t first_key = 1u << GET_BE(RDMA_HCA_DEV_LIM_RESERVED_LKEY,
                                      lim->reserved_pd_lkey);
    MttRange all = {
        .first = 1u << GET_BE(RDMA_HCA_DEV_LIM_RESERVED_MTT,
                              lim->reserved_qp_cq_eq_mtt),
    };

    all.count = (1u << GET_BE(RDMA_HCA_DEV_LIM_MTTS, lim->uars_mtts_msg)) -
                all.first;
    g_array_append_val(drv->free_mtts, all);
    for (uint32_t i = (1u << drv->log_mpts) - 1; i >= first_key; i--) {
        g_array_append_val(drv->free_mpts, i);
    }
    drv->next_qpn = 1u << GET_BE(RDMA_HCA_DEV_LIM_RESERVED_QP,
                                 lim->reserved_qp_cq_eq_mtt);
    drv->next_cqn = 1u << GET_BE(RDMA_HCA_DEV_LIM_RESERVED_CQ,
                                 lim->reserved_qp_cq_eq_mtt);
    drv->next_srqn = 1u << GET_BE(RDMA_HCA_DEV_LIM_RESERVED_SRQ,
                                  lim->srq_page_list);
    drv->next_pd = 1u << GET_BE(RDMA_HCA_DEV_LIM_RESERVED_PD,
                                lim->reserved_pd_lkey);
}

static const uint64_t eq_mask[NUM_EQS] = {
    [EQ_COMP] = UINT64_C(1) << RDMA_HCA_EVENT_COMP,
    [EQ_ASYNC] = UINT64_C(1) << RDMA_HCA_EVENT_COMM_EST |
                 UINT64_C(1) << RDMA_HCA_EVENT_PATH_MIG |
                 UINT64_C(1) << RDMA_HCA_EVENT_PATH_MIG_FAILED |
                 UINT64_C(1) << RDMA_HCA_EVENT_SQ_DRAINED |
                 UINT64_C(1) << RDMA_HCA_EVENT_CQ_ERROR |
                 UINT64_C(1) << RDMA_HCA_EVENT_WQ_CATAS_ERROR |
                 UINT64_C(1) << RDMA_HCA_EVENT_LOCAL_CATAS_ERROR |
                 UINT64_C(1) << RDMA_HCA_EVENT_PORT_CHANGE |
                 UINT64_C(1) << RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR |
                 UINT64_C(1) << RDMA_HCA_EVENT_WQ_ACCESS_ERROR |
                 UINT64_C(1) << RDMA_HCA_EVENT_SRQ_CATAS_ERROR |
                 UINT64_C(1) << RDMA_HCA_EVENT_LAST_WQE_REACHED |
                 UINT64_C(1) << RDMA_HCA_EVENT_SRQ_LIMIT |
                 UINT64_C(1) << RDMA_HCA_EVENT_CONGESTION |
                 UINT64_C(1) << RDMA_HCA_EVENT_PORT_MNG,
    [EQ_CMD] = UINT64_C(1) << RDMA_HCA_EVENT_CMD,
};

uint64_t ring_slot(const Mr *mr, unsigned log_size, uint32_t index,
                   uint32_t entry_size)
{
    return (uint64_t)(index & ((1u << log_size) - 1)) * entry_size;
}

/* All entries of a CQ or EQ to the card. */
void give_entries(Mr *mr, uint64_t start, unsigned log_size,
                  uint32_t entry_size)
{
    const uint8_t owner = RDMA_HCA_OWNER_HW;

    for (uint32_t i = 0; i < 1u << log_size; i++) {
        mr_write(mr, start + (i + 1) * entry_size - 1, &owner, 1);
    }
}

static void eq_init(Driver *drv, unsigned which)
{
    Eq *eq = &drv->eq[which];
    struct rdma_hca_eqc eqc;

    eq->eqn = which + (1u << GET_BE(RDMA_HCA_DEV_LIM_RESERVED_EQ,
                                    drv->lim.reserved_qp_cq_eq_mtt));
    eq->log_size = LOG_EQ_SIZE;
    eq->mr = mr_new(drv, drv->kernel_pd, UINT64_C(0x4000000000) + which * 8192,
                    RDMA_HCA_EQE_SIZE << LOG_EQ_SIZE,
                    RDMA_HCA_ACCESS_LOCAL_WRITE);
    give_entries(eq->mr, 0, eq->log_size, RDMA_HCA_EQE_SIZE);
    eqc = good_eqc(drv->kernel_pd, eq->mr->key, 0, eq->log_size);
    eqc.msix_vector = GUINT32_TO_BE(which);
    driver_must(driver_cmd_in(drv, RDMA_HCA_CMD_SW2HW_EQ, &eqc, sizeof(eqc),
                              eq->eqn, 0));
    driver_must(driver_cmd(drv, RDMA_HCA_CMD_MAP_EQ, eq_mask[which], eq->eqn, 0,
                           0, NULL));
}

static void check_interface(Driver *drv)
{
    struct rdma_hca_fw fw;

    driver_must(
        driver_cmd_out(drv, RDMA_HCA_CMD_QUERY_FW, &fw, sizeof(fw), 0, 0));
    g_assert_cmphex(GUINT32_FROM_BE(fw.magic), ==, RDMA_HCA_FW_MAGIC);
    g_assert_cmpuint(GUINT32_FROM_BE(fw.interface_version), ==,
                     RDMA_HCA_INTERFACE_VERSION);
    drv->roce = GUINT32_FROM_BE(fw.features) & RDMA_HCA_FEATURE_ETH;
}

void driver_roce_headers(const Driver *from, const Driver *to, unsigned gid,
                         HcaPacket *packet)
{
    const Gid *source = &from->gid[gid];
    const Gid *dest = &to->gid[gid];

    packet->is_ipv4 = gid == GID_IPV4 || gid == GID_VLAN_IPV4;
    packet->has_vlan = source->vlan;
    packet->vlan_tci = source->vlan;
    memcpy(packet->sgid.raw, source->gid, sizeof(packet->sgid));
    memcpy(packet->dgid.raw, dest->gid, sizeof(packet->dgid));
    memcpy(packet->smac, source->mac, sizeof(packet->smac));
    memcpy(packet->dmac, dest->mac, sizeof(packet->dmac));
    packet->udp_sport = 0xc000;
    packet->hop_limit = 64;
}

uint8_t driver_set_gid(Driver *drv, unsigned index, const Gid *gid)
{
    struct rdma_hca_gid_entry entry = { 0 };

    if (index < NUM_GIDS) {
        drv->gid[index] = gid ? *gid : (Gid) { 0 };
    }
    if (gid) {
        memcpy(entry.gid, gid->gid, sizeof(entry.gid));
        entry.type_vlan = PREP_BE(RDMA_HCA_GID_TYPE,
                                  RDMA_HCA_GID_TYPE_ROCE_V2) |
                          PREP_BE(RDMA_HCA_GID_HAS_VLAN, gid->vlan != 0) |
                          PREP_BE(RDMA_HCA_GID_VLAN, gid->vlan);
        memcpy(&entry.mac_h, gid->mac, sizeof(gid->mac));
    }
    return driver_cmd_in(drv, RDMA_HCA_CMD_SET_GID, &entry, sizeof(entry),
                         index, 0);
}

/* What interfaces of a machine would have, by the port's GUID and MAC. */
static void set_default_gids(Driver *drv)
{
    static const uint8_t address[NUM_GIDS][16] = {
        [GID_IPV4] = { [10] = 0xff, [11] = 0xff, [12] = 10 },
        [GID_IPV6] = { 0xfd },
        [GID_VLAN_IPV4] = { [10] = 0xff, [11] = 0xff, [12] = 10, [13] = 5 },
        [GID_VLAN_IPV6] = { 0xfd, 5 },
    };
    struct rdma_hca_port port;

    driver_must(driver_cmd_out(drv, RDMA_HCA_CMD_QUERY_PORT, &port,
                               sizeof(port), 1, 0));
    for (unsigned i = 0; i < NUM_GIDS; i++) {
        Gid gid = { .vlan = i >= GID_VLAN_IPV4 ? VLAN_ID : 0 };

        memcpy(gid.mac, &port.mac_h, sizeof(gid.mac));
        memcpy(gid.gid, address[i], sizeof(gid.gid));
        gid.gid[15] = 1 + drv->host->side;
        if (i == GID_LINK_LOCAL) {
            memcpy(gid.gid, &port.gid_prefix_h, sizeof(gid.gid));
        }
        driver_must(driver_set_gid(drv, i, &gid));
    }
}

uint8_t driver_write_mgm(Driver *drv, unsigned index, const uint8_t *mgid,
                         const Qp *const *qp, unsigned n)
{
    union {
        struct rdma_hca_mgm mgm;
        uint8_t bytes[RDMA_HCA_MGM_SIZE];
    } box = { .bytes = { 0 } };

    g_assert_cmpuint(n, <=, RDMA_HCA_MGM_MAX_QPS);
    memcpy(box.mgm.mgid, mgid, sizeof(box.mgm.mgid));
    box.mgm.count = GUINT32_TO_BE(n);
    for (unsigned i = 0; i < n; i++) {
        box.mgm.qpn[i] = GUINT32_TO_BE(qp[i]->qpn);
    }
    return driver_cmd_in(drv, RDMA_HCA_CMD_WRITE_MGM, &box, sizeof(box), index,
                         0);
}

static void mr_free(gpointer data)
{
    Mr *mr = data;

    g_free(mr->page);
    g_free(mr);
}

Driver *driver_new(Host *host)
{
    Driver *drv = g_new0(Driver, 1);

    drv->host = host;
    drv->free_cqns = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    drv->free_mpts = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    drv->free_mtts = g_array_new(FALSE, FALSE, sizeof(MttRange));
    drv->icm_pages = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    drv->qps = g_hash_table_new(NULL, NULL);
    drv->srqs = g_hash_table_new(NULL, NULL);
    drv->mrs = g_ptr_array_new_with_free_func(mr_free);
    drv->cqs = g_ptr_array_new_with_free_func(g_free);
    g_queue_init(&drv->events);
    drv->mbox_in = host_alloc(host, 1);
    drv->mbox_out = host_alloc(host, 1);

    check_interface(drv);
    driver_must(driver_cmd_out(drv, RDMA_HCA_CMD_QUERY_DEV_LIM, &drv->lim,
                               sizeof(drv->lim), 0, 0));
    init_hca(drv);
    init_allocators(drv);
    drv->kernel_pd = pd_new(drv);
    for (unsigned i = 0; i < NUM_EQS; i++) {
        eq_init(drv, i);
    }
    driver_must(driver_cmd(drv, RDMA_HCA_CMD_INIT_IB, 0, 1, 0, 0, NULL));
    if (drv->roce) {
        set_default_gids(drv);
    }
    return drv;
}

void qp_free(Qp *qp)
{
    g_free(qp->sq.wr_id);
    g_free(qp->rq.wr_id);
    g_free(qp);
}

void driver_free(Driver *drv)
{
    GHashTableIter iter;
    gpointer qp, srq;

    g_hash_table_iter_init(&iter, drv->qps);
    while (g_hash_table_iter_next(&iter, NULL, &qp)) {
        qp_free(qp);
    }
    g_hash_table_iter_init(&iter, drv->srqs);
    while (g_hash_table_iter_next(&iter, NULL, &srq)) {
        srq_free(srq);
    }
    g_hash_table_destroy(drv->qps);
    g_hash_table_destroy(drv->srqs);
    g_ptr_array_free(drv->mrs, TRUE);
    g_ptr_array_free(drv->cqs, TRUE);
    g_array_free(drv->icm_pages, TRUE);
    g_array_free(drv->free_cqns, TRUE);
    g_array_free(drv->free_mpts, TRUE);
    g_array_free(drv->free_mtts, TRUE);
    g_queue_clear_full(&drv->events, g_free);
    g_free(drv);
}

void driver_close(Driver *drv)
{
    GList *qps = g_hash_table_get_values(drv->qps);
    GList *srqs = g_hash_table_get_values(drv->srqs);

    for (GList *item = qps; item; item = item->next) {
        qp_destroy(item->data);
    }
    for (GList *item = srqs; item; item = item->next) {
        driver_must(srq_destroy(item->data));
    }
    g_list_free(qps);
    g_list_free(srqs);
    while (drv->cqs->len) {
        driver_must(cq_destroy(g_ptr_array_index(drv->cqs, 0)));
    }
    driver_cmd_events(drv, false);
    driver_must(driver_cmd(drv, RDMA_HCA_CMD_CLOSE_IB, 0, 1, 0, 0, NULL));
    for (unsigned i = 0; i < NUM_EQS; i++) {
        uint32_t unmap = RDMA_HCA_MAP_EQ_UNMAP | drv->eq[i].eqn;

        driver_must(driver_cmd(drv, RDMA_HCA_CMD_MAP_EQ, eq_mask[i], unmap, 0,
                               0, NULL));
        driver_must(driver_cmd(drv, RDMA_HCA_CMD_HW2SW_EQ, 0, drv->eq[i].eqn, 0,
                               0, NULL));
    }
    for (guint i = 0; i < drv->mrs->len; i++) {
        Mr *mr = g_ptr_array_index(drv->mrs, i);

        if (mr->registered) {
            driver_must(mr_deregister(mr));
        }
    }
    driver_must(driver_cmd(drv, RDMA_HCA_CMD_CLOSE_HCA, 0, 0, 0, 0, NULL));
    for (unsigned i = 0; i < NUM_ICM_TABLES; i++) {
        unmap_icm(drv, &drv->icm[i]);
    }
    driver_free(drv);
}

void driver_cmd_events(Driver *drv, bool on)
{
    drv->cmd_events = on;
}

unsigned driver_port_state(Driver *drv)
{
    struct rdma_hca_port port;

    driver_must(driver_cmd_out(drv, RDMA_HCA_CMD_QUERY_PORT, &port,
                               sizeof(port), 1, 0));
    return GET_BE(RDMA_HCA_PORT_STATE, port.state);
}

/* ---- events ---- */

static bool take_eqe(Driver *drv, Eq *eq, struct rdma_hca_eqe *eqe)
{
    uint64_t at = ring_slot(eq->mr, eq->log_size, eq->ci, RDMA_HCA_EQE_SIZE);
    const uint8_t owner = RDMA_HCA_OWNER_HW;

    mr_read(eq->mr, at, eqe, sizeof(*eqe));
    if (eqe->owner & RDMA_HCA_OWNER_HW) {
        return false;
    }
    mr_write(eq->mr, at + sizeof(*eqe) - 1, &owner, 1);
    eq->ci++;
    return true;
}

static void eq_doorbell(Driver *drv, const Eq *eq)
{
    host_bar0_write(drv->host, RDMA_HCA_EQ_DB + eq->eqn * RDMA_HCA_EQ_DB_STRIDE,
                    RDMA_HCA_EQ_DB_ARM | (eq->ci & RDMA_HCA_EQ_DB_CI));
}

static bool take_cmd_event(Driver *drv, struct rdma_hca_eqe *eqe)
{
    Eq *eq = &drv->eq[EQ_CMD];

    if (!take_eqe(drv, eq, eqe)) {
        return false;
    }
    eq_doorbell(drv, eq);
    return true;
}

unsigned driver_poll_eq(Driver *drv, unsigned which)
{
    Eq *eq = &drv->eq[which];
    struct rdma_hca_eqe eqe;
    unsigned n;

    for (n = 0; take_eqe(drv, eq, &eqe); n++) {
        g_queue_push_tail(&drv->events, g_memdup2(&eqe, sizeof(eqe)));
    }
    eq_doorbell(drv, eq);
    return n;
}

bool driver_event(Driver *drv, uint8_t type, struct rdma_hca_eqe *eqe)
{
    driver_poll_eq(drv, EQ_COMP);
    driver_poll_eq(drv, EQ_ASYNC);
    for (GList *item = drv->events.head; item; item = item->next) {
        struct rdma_hca_eqe *found = item->data;

        if (found->type == type) {
            if (eqe) {
                *eqe = *found;
            }
            g_free(found);
            g_queue_delete_link(&drv->events, item);
            return true;
        }
    }
    return false;
}

unsigned driver_count_events(Driver *drv, uint8_t type)
{
    unsigned n = 0;

    while (driver_event(drv, type, NULL)) {
        n++;
    }
    return n;
}
