/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-driver.h"

#include <string.h>

#define CMD_TIME_NS (10 * NS_PER_S)
#define LOG_EQ_SIZE 7
#define ICM_CHUNK_PAGES 16
#define ROUND_UP_PAGES(size)                                                   \
    (((size) + HOST_PAGE_SIZE - 1) / HOST_PAGE_SIZE * HOST_PAGE_SIZE)

#define GET_BE(mask, word) RDMA_HCA_GET(mask, GUINT32_FROM_BE(word))
#define PREP_BE(mask, value) GUINT32_TO_BE(RDMA_HCA_PREP(mask, value))

typedef struct MttRange {
    uint32_t first, count;
} MttRange;

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
    uint32_t key = g_array_index(drv->free_mpts, uint32_t, 0);
    struct rdma_hca_mpt mpt = {
        .flags = GUINT32_TO_BE(RDMA_HCA_MPT_MIO | RDMA_HCA_MPT_REGION |
                               RDMA_HCA_MPT_PHYSICAL | ACCESS_ALL),
        .key = GUINT32_TO_BE(key),
        .pd = GUINT32_TO_BE(pd),
        .length_h = GUINT32_TO_BE(1u << 8),
    };

    g_assert_cmphex(
        driver_cmd_in(drv, RDMA_HCA_CMD_SW2HW_MPT, &mpt, sizeof(mpt), key, 0),
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

static void must(uint8_t status)
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
        must(driver_cmd_in(drv, RDMA_HCA_CMD_MAP_ICM, entry, sizeof(entry), n,
                           table->kind));
    }
}

static void unmap_icm(Driver *drv, const IcmTable *table)
{
    must(driver_cmd(drv, RDMA_HCA_CMD_UNMAP_ICM, table->base,
                    ROUND_UP_PAGES(table->size) / HOST_PAGE_SIZE, table->kind,
                    0, NULL));
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
    init_base(&init.mpt_base_h, &init.mpt_base_l, &icm[ICM_MPT], drv->log_mpts);
    init_base(&init.mtt_base_h, &init.mtt_base_l, &icm[ICM_MTT], 0);
    must(driver_cmd_in(drv, RDMA_HCA_CMD_INIT_HCA, &init, sizeof(init), 0, 0));
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
    drv->next_pd = 1u << GET_BE(RDMA_HCA_DEV_LIM_RESERVED_PD,
                                lim->reserved_pd_lkey);
}

static const uint64_t eq_mask[NUM_EQS] = {
    [EQ_COMP] = UINT64_C(1) << RDMA_HCA_EVENT_COMP,
    [EQ_ASYNC] = UINT64_C(1) << RDMA_HCA_EVENT_COMM_EST |
                 UINT64_C(1) << RDMA_HCA_EVENT_SQ_DRAINED |
                 UINT64_C(1) << RDMA_HCA_EVENT_CQ_ERROR |
                 UINT64_C(1) << RDMA_HCA_EVENT_WQ_CATAS_ERROR |
                 UINT64_C(1) << RDMA_HCA_EVENT_LOCAL_CATAS_ERROR |
                 UINT64_C(1) << RDMA_HCA_EVENT_PORT_CHANGE |
                 UINT64_C(1) << RDMA_HCA_EVENT_EQ_OVERFLOW |
                 UINT64_C(1) << RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR |
                 UINT64_C(1) << RDMA_HCA_EVENT_WQ_ACCESS_ERROR |
                 UINT64_C(1) << RDMA_HCA_EVENT_LAST_WQE_REACHED |
                 UINT64_C(1) << RDMA_HCA_EVENT_CONGESTION,
    [EQ_CMD] = UINT64_C(1) << RDMA_HCA_EVENT_CMD,
};

static uint64_t ring_slot(const Mr *mr, unsigned log_size, uint32_t index,
                          uint32_t entry_size)
{
    return (uint64_t)(index & ((1u << log_size) - 1)) * entry_size;
}

/* All entries of a CQ or EQ to the card. */
static void give_entries(Mr *mr, uint64_t start, unsigned log_size,
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
    struct rdma_hca_eqc eqc = { 0 };

    eq->eqn = which + (1u << GET_BE(RDMA_HCA_DEV_LIM_RESERVED_EQ,
                                    drv->lim.reserved_qp_cq_eq_mtt));
    eq->log_size = LOG_EQ_SIZE;
    eq->mr = mr_new(drv, drv->kernel_pd, UINT64_C(0x4000000000) + which * 8192,
                    RDMA_HCA_EQE_SIZE << LOG_EQ_SIZE,
                    RDMA_HCA_ACCESS_LOCAL_WRITE);
    give_entries(eq->mr, 0, eq->log_size, RDMA_HCA_EQE_SIZE);
    eqc.flags = PREP_BE(RDMA_HCA_EQC_OWNER, RDMA_HCA_EQ_OWNER_HW) |
                PREP_BE(RDMA_HCA_EQC_TR, 1) |
                PREP_BE(RDMA_HCA_EQC_STATE, RDMA_HCA_EQ_STATE_ARMED);
    eqc.logsize = PREP_BE(RDMA_HCA_EQC_LOGSIZE, eq->log_size);
    eqc.msix_vector = GUINT32_TO_BE(which);
    eqc.pd = GUINT32_TO_BE(drv->kernel_pd);
    eqc.lkey = GUINT32_TO_BE(eq->mr->key);
    must(driver_cmd_in(drv, RDMA_HCA_CMD_SW2HW_EQ, &eqc, sizeof(eqc), eq->eqn,
                       0));
    must(driver_cmd(drv, RDMA_HCA_CMD_MAP_EQ, eq_mask[which], eq->eqn, 0, 0,
                    NULL));
}

static void check_interface(Driver *drv)
{
    struct rdma_hca_fw fw;

    must(driver_cmd_out(drv, RDMA_HCA_CMD_QUERY_FW, &fw, sizeof(fw), 0, 0));
    g_assert_cmphex(GUINT32_FROM_BE(fw.magic), ==, RDMA_HCA_FW_MAGIC);
    g_assert_cmpuint(GUINT32_FROM_BE(fw.interface_version), ==,
                     RDMA_HCA_INTERFACE_VERSION);
    drv->roce = GUINT32_FROM_BE(fw.features) & RDMA_HCA_FEATURE_ETH;
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

    must(driver_cmd_out(drv, RDMA_HCA_CMD_QUERY_PORT, &port, sizeof(port), 1,
                        0));
    for (unsigned i = 0; i < NUM_GIDS; i++) {
        Gid gid = { .vlan = i >= GID_VLAN_IPV4 ? VLAN_ID : 0 };

        memcpy(gid.mac, &port.mac_h, sizeof(gid.mac));
        memcpy(gid.gid, address[i], sizeof(gid.gid));
        gid.gid[15] = 1 + drv->host->side;
        if (i == GID_LINK_LOCAL) {
            memcpy(gid.gid, &port.gid_prefix_h, sizeof(gid.gid));
        }
        must(driver_set_gid(drv, i, &gid));
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
    drv->mrs = g_ptr_array_new_with_free_func(mr_free);
    drv->cqs = g_ptr_array_new_with_free_func(g_free);
    g_queue_init(&drv->events);
    drv->mbox_in = host_alloc(host, 1);
    drv->mbox_out = host_alloc(host, 1);

    check_interface(drv);
    must(driver_cmd_out(drv, RDMA_HCA_CMD_QUERY_DEV_LIM, &drv->lim,
                        sizeof(drv->lim), 0, 0));
    init_hca(drv);
    init_allocators(drv);
    drv->kernel_pd = pd_new(drv);
    for (unsigned i = 0; i < NUM_EQS; i++) {
        eq_init(drv, i);
    }
    must(driver_cmd(drv, RDMA_HCA_CMD_INIT_IB, 0, 1, 0, 0, NULL));
    if (drv->roce) {
        set_default_gids(drv);
    }
    return drv;
}

static void qp_free(Qp *qp)
{
    g_free(qp->sq.wr_id);
    g_free(qp->rq.wr_id);
    g_free(qp);
}

void driver_free(Driver *drv)
{
    GHashTableIter iter;
    gpointer qp;

    g_hash_table_iter_init(&iter, drv->qps);
    while (g_hash_table_iter_next(&iter, NULL, &qp)) {
        qp_free(qp);
    }
    g_hash_table_destroy(drv->qps);
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

    for (GList *item = qps; item; item = item->next) {
        qp_destroy(item->data);
    }
    g_list_free(qps);
    while (drv->cqs->len) {
        must(cq_destroy(g_ptr_array_index(drv->cqs, 0)));
    }
    driver_cmd_events(drv, false);
    must(driver_cmd(drv, RDMA_HCA_CMD_CLOSE_IB, 0, 1, 0, 0, NULL));
    for (unsigned i = 0; i < NUM_EQS; i++) {
        uint32_t unmap = RDMA_HCA_MAP_EQ_UNMAP | drv->eq[i].eqn;

        must(driver_cmd(drv, RDMA_HCA_CMD_MAP_EQ, eq_mask[i], unmap, 0, 0,
                        NULL));
        must(driver_cmd(drv, RDMA_HCA_CMD_HW2SW_EQ, 0, drv->eq[i].eqn, 0, 0,
                        NULL));
    }
    for (guint i = 0; i < drv->mrs->len; i++) {
        Mr *mr = g_ptr_array_index(drv->mrs, i);

        if (mr->registered) {
            must(mr_deregister(mr));
        }
    }
    must(driver_cmd(drv, RDMA_HCA_CMD_CLOSE_HCA, 0, 0, 0, 0, NULL));
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

    must(driver_cmd_out(drv, RDMA_HCA_CMD_QUERY_PORT, &port, sizeof(port), 1,
                        0));
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

/* ---- memory ---- */

uint32_t pd_new(Driver *drv)
{
    return drv->next_pd++;
}

static uint32_t mtt_alloc(Driver *drv, uint32_t count)
{
    for (guint i = 0; i < drv->free_mtts->len; i++) {
        MttRange *range = &g_array_index(drv->free_mtts, MttRange, i);
        uint32_t first = range->first;

        if (range->count >= count) {
            range->first += count;
            range->count -= count;
            if (!range->count) {
                g_array_remove_index(drv->free_mtts, i);
            }
            return first;
        }
    }
    g_error("out of MTT entries");
}

static void write_mtt(Mr *mr)
{
    struct rdma_hca_mtt_mailbox *mbox = g_malloc0(RDMA_HCA_MAILBOX_SIZE);

    for (unsigned done = 0; done < mr->npages;) {
        unsigned n = MIN(mr->npages - done, RDMA_HCA_MTT_MAX_ENTRIES);

        mbox->start_index_h = 0;
        mbox->start_index_l = GUINT32_TO_BE(mr->mtt + done);
        for (unsigned i = 0; i < n; i++) {
            uint64_t bus = mr->page[done + i];

            mbox->entry[RDMA_HCA_MTT_SLOT(i)].addr_h = GUINT32_TO_BE(
                RDMA_HCA_HI32(bus));
            mbox->entry[RDMA_HCA_MTT_SLOT(i)].addr_l = GUINT32_TO_BE(
                RDMA_HCA_LO32(bus));
        }
        must(driver_cmd_in(mr->drv, RDMA_HCA_CMD_WRITE_MTT, mbox,
                           RDMA_HCA_MAILBOX_SIZE, n, 0));
        done += n;
    }
    g_free(mbox);
}

static void write_mpt(Mr *mr, uint32_t access)
{
    struct rdma_hca_mpt mpt = {
        .flags = GUINT32_TO_BE(RDMA_HCA_MPT_MIO | RDMA_HCA_MPT_REGION | access),
        .page_size = GUINT32_TO_BE(mr->page_shift -
                                   RDMA_HCA_MPT_PAGE_SHIFT_MIN),
        .key = GUINT32_TO_BE(mr->key),
        .pd = GUINT32_TO_BE(mr->pd),
        .start_h = GUINT32_TO_BE(RDMA_HCA_HI32(mr->va)),
        .start_l = GUINT32_TO_BE(RDMA_HCA_LO32(mr->va)),
        .length_h = GUINT32_TO_BE(RDMA_HCA_HI32(mr->len)),
        .length_l = GUINT32_TO_BE(RDMA_HCA_LO32(mr->len)),
        .mtt_seg_l = GUINT32_TO_BE(mr->mtt),
        .mtt_sz = GUINT32_TO_BE(mr->npages),
    };

    must(driver_cmd_in(mr->drv, RDMA_HCA_CMD_SW2HW_MPT, &mpt, sizeof(mpt),
                       mr->key & ((1u << mr->drv->log_mpts) - 1), 0));
}

/* @repeated: all pages are the same one. */
static Mr *mr_make(Driver *drv, uint32_t pd, uint64_t va, uint64_t len,
                   uint32_t access, unsigned page_shift, bool repeated)
{
    uint64_t page_size = UINT64_C(1) << page_shift;
    Mr *mr = g_new0(Mr, 1);
    guint last = drv->free_mpts->len - 1;

    g_assert_cmpuint(drv->free_mpts->len, >, 0);
    mr->drv = drv;
    mr->key = g_array_index(drv->free_mpts, uint32_t, last) |
              drv->generation++ << drv->log_mpts;
    g_array_set_size(drv->free_mpts, last);
    mr->pd = pd;
    mr->va = va;
    mr->len = len;
    mr->page_shift = page_shift;
    mr->npages = ((va & (page_size - 1)) + len + page_size - 1) >> page_shift;
    mr->npages = MAX(mr->npages, 1);
    mr->page = g_new(uint64_t, mr->npages);
    for (unsigned i = 0; i < mr->npages; i++) {
        mr->page[i] = repeated && i
                          ? mr->page[0]
                          : host_alloc(drv->host, page_size / HOST_PAGE_SIZE);
    }
    mr->mtt = mtt_alloc(drv, mr->npages);
    mr->registered = true;
    g_ptr_array_add(drv->mrs, mr);
    write_mtt(mr);
    write_mpt(mr, access);
    return mr;
}

Mr *mr_new_pages(Driver *drv, uint32_t pd, uint64_t va, uint64_t len,
                 uint32_t access, unsigned page_shift)
{
    return mr_make(drv, pd, va, len, access, page_shift, false);
}

Mr *mr_new_repeated(Driver *drv, uint32_t pd, uint64_t va, uint64_t len,
                    uint32_t access)
{
    return mr_make(drv, pd, va, len, access, 16, true);
}

Mr *mr_new(Driver *drv, uint32_t pd, uint64_t va, uint64_t len, uint32_t access)
{
    return mr_new_pages(drv, pd, va, len, access, 12);
}

uint8_t mr_deregister(Mr *mr)
{
    MttRange range = { mr->mtt, mr->npages };
    uint32_t index = mr->key & ((1u << mr->drv->log_mpts) - 1);
    uint8_t status = driver_cmd(mr->drv, RDMA_HCA_CMD_HW2SW_MPT, 0, index, 0, 0,
                                NULL);

    if (status == RDMA_HCA_STAT_OK) {
        mr->registered = false;
        g_array_append_val(mr->drv->free_mpts, index);
        g_array_append_val(mr->drv->free_mtts, range);
    }
    return status;
}

uint64_t mr_bus(const Mr *mr, uint64_t offset)
{
    uint64_t page_size = UINT64_C(1) << mr->page_shift;
    uint64_t at = (mr->va & (page_size - 1)) + offset;

    g_assert_cmpuint(offset, <=, mr->len);
    return mr->page[at >> mr->page_shift] + (at & (page_size - 1));
}

/* How much of @len bytes at @offset lies in one page. */
static size_t in_page(const Mr *mr, uint64_t offset, size_t len)
{
    uint64_t page_size = UINT64_C(1) << mr->page_shift;

    return MIN(len, page_size - ((mr->va + offset) & (page_size - 1)));
}

void mr_read(Mr *mr, uint64_t offset, void *buf, size_t len)
{
    g_assert_cmpuint(len, <=, mr->len - offset);
    for (size_t n; len; offset += n, buf = (uint8_t *)buf + n, len -= n) {
        n = in_page(mr, offset, len);
        host_read(mr->drv->host, mr_bus(mr, offset), buf, n);
    }
}

void mr_write(Mr *mr, uint64_t offset, const void *buf, size_t len)
{
    g_assert_cmpuint(len, <=, mr->len - offset);
    for (size_t n; len; offset += n, buf = (const uint8_t *)buf + n, len -= n) {
        n = in_page(mr, offset, len);
        host_write(mr->drv->host, mr_bus(mr, offset), buf, n);
    }
}

void mr_fill(Mr *mr, uint64_t offset, int byte, size_t len)
{
    g_assert_cmpuint(len, <=, mr->len - offset);
    for (size_t n; len; offset += n, len -= n) {
        n = in_page(mr, offset, len);
        host_fill(mr->drv->host, mr_bus(mr, offset), byte, n);
    }
}

Sge mr_sge(const Mr *mr, uint64_t offset, uint32_t len)
{
    return (Sge) { .va = mr->va + offset, .len = len, .lkey = mr->key };
}

/* A 32-bit doorbell record. */
static uint64_t record_new(Driver *drv)
{
    if (!drv->record_page || drv->record_at == HOST_PAGE_SIZE) {
        drv->record_page = host_alloc(drv->host, 1);
        drv->record_at = 0;
    }
    drv->record_at += 8;
    return drv->record_page + drv->record_at - 8;
}

/* ---- completion queues ---- */

/* Half of the queues begin somewhere inside their region. */
static Mr *cq_buffer(Driver *drv, uint32_t cqn, uint64_t start,
                     unsigned log_size)
{
    return mr_new(drv, drv->kernel_pd, UINT64_C(0x5000000000) + cqn * 0x100000,
                  start + ((uint64_t)RDMA_HCA_CQE_SIZE << log_size),
                  RDMA_HCA_ACCESS_LOCAL_WRITE);
}

/* The number freed last is used first. */
static uint32_t cqn_alloc(Driver *drv)
{
    GArray *free = drv->free_cqns;
    uint32_t cqn;

    if (!free->len) {
        return drv->next_cqn++;
    }
    cqn = g_array_index(free, uint32_t, free->len - 1);
    g_array_set_size(free, free->len - 1);
    return cqn;
}

Cq *cq_new(Driver *drv, unsigned log_size, uint32_t uar)
{
    Cq *cq = g_new0(Cq, 1);
    struct rdma_hca_cqc cqc = { 0 };

    cq->drv = drv;
    cq->cqn = cqn_alloc(drv);
    cq->uar = uar;
    cq->log_size = log_size;
    cq->start = cq->cqn & 1 ? HOST_PAGE_SIZE : 0;
    cq->ci_record = cq->cqn & 2 ? record_new(drv) : 0;
    cq->mr = cq_buffer(drv, cq->cqn, cq->start, log_size);
    give_entries(cq->mr, cq->start, log_size, RDMA_HCA_CQE_SIZE);
    cqc.flags = PREP_BE(RDMA_HCA_CQC_TR, 1);
    cqc.start_h = GUINT32_TO_BE(RDMA_HCA_HI32(cq->start));
    cqc.start_l = GUINT32_TO_BE(RDMA_HCA_LO32(cq->start));
    cqc.logsize_usrpage = PREP_BE(RDMA_HCA_CQC_LOGSIZE, log_size) |
                          PREP_BE(RDMA_HCA_CQC_UAR, uar);
    cqc.comp_eqn = GUINT32_TO_BE(drv->eq[EQ_COMP].eqn);
    cqc.pd = GUINT32_TO_BE(drv->kernel_pd);
    cqc.lkey = GUINT32_TO_BE(cq->mr->key);
    cqc.cqn = GUINT32_TO_BE(cq->cqn);
    cqc.ci_db_h = GUINT32_TO_BE(RDMA_HCA_HI32(cq->ci_record));
    cqc.ci_db_l = GUINT32_TO_BE(RDMA_HCA_LO32(cq->ci_record));
    must(driver_cmd_in(drv, RDMA_HCA_CMD_SW2HW_CQ, &cqc, sizeof(cqc), cq->cqn,
                       0));
    g_ptr_array_add(drv->cqs, cq);
    return cq;
}

uint8_t cq_destroy(Cq *cq)
{
    uint8_t status = driver_cmd(cq->drv, RDMA_HCA_CMD_HW2SW_CQ, 0, cq->cqn, 0,
                                0, NULL);

    if (status == RDMA_HCA_STAT_OK) {
        must(mr_deregister(cq->mr));
        g_array_append_val(cq->drv->free_cqns, cq->cqn);
        g_ptr_array_remove(cq->drv->cqs, cq);
    }
    return status;
}

static void cq_doorbell(Cq *cq, uint32_t cmd)
{
    uint32_t at = cq->uar * RDMA_HCA_UAR_PAGE_SIZE + RDMA_HCA_CQ_DB;
    uint32_t low = RDMA_HCA_PREP(RDMA_HCA_CQ_DB_CMD, cmd) |
                   RDMA_HCA_PREP(RDMA_HCA_CQ_DB_CQN, cq->cqn);

    /* Both ways of writing a doorbell have to work. */
    if (cq->cqn & 1) {
        host_uar_write64(cq->drv->host, at, (uint64_t)cq->ci << 32 | low);
    } else {
        host_uar_write32(cq->drv->host, at, low);
        host_uar_write32(cq->drv->host, at + 4, cq->ci);
    }
}

void cq_arm(Cq *cq, bool solicited_only)
{
    cq_doorbell(cq, solicited_only ? RDMA_HCA_CQ_DB_CMD_ARM_SOLICITED
                                   : RDMA_HCA_CQ_DB_CMD_ARM_NEXT);
}

void cq_update_ci(Cq *cq)
{
    if (cq->ci_record) {
        host_write_le32(cq->drv->host, cq->ci_record, cq->ci);
    } else {
        cq_doorbell(cq, RDMA_HCA_CQ_DB_CMD_SET_CI);
    }
}

static uint64_t cqe_at(const Cq *cq, uint32_t index)
{
    return cq->start +
           ring_slot(cq->mr, cq->log_size, index, RDMA_HCA_CQE_SIZE);
}

static bool cqe_read(Cq *cq, uint32_t index, struct rdma_hca_cqe *cqe)
{
    mr_read(cq->mr, cqe_at(cq, index), cqe, sizeof(*cqe));
    return !(RDMA_HCA_GET(RDMA_HCA_CQE_OWNER, GUINT32_FROM_LE(cqe->ctrl)) &
             RDMA_HCA_OWNER_HW);
}

/* An entry keeps its index, and with it its place in each ring. */
static void move_cqes(Cq *cq, const Cq *old)
{
    for (uint32_t i = cq->ci; i != cq->ci + (1u << old->log_size); i++) {
        struct rdma_hca_cqe cqe;

        mr_read(old->mr, cqe_at(old, i), &cqe, sizeof(cqe));
        if (RDMA_HCA_GET(RDMA_HCA_CQE_OWNER, GUINT32_FROM_LE(cqe.ctrl)) &
            RDMA_HCA_OWNER_HW) {
            break;
        }
        mr_write(cq->mr, cqe_at(cq, i), &cqe, sizeof(cqe));
    }
}

uint8_t cq_resize(Cq *cq, unsigned log_size)
{
    Cq old = *cq;
    Mr *mr = cq_buffer(cq->drv, cq->cqn, cq->start, log_size);
    struct rdma_hca_resize_cq resize = {
        .logsize = PREP_BE(RDMA_HCA_RESIZE_CQ_LOGSIZE, log_size),
        .lkey = GUINT32_TO_BE(mr->key),
    };
    uint8_t status;

    give_entries(mr, cq->start, log_size, RDMA_HCA_CQE_SIZE);
    cq_update_ci(cq);
    status = driver_cmd_in(cq->drv, RDMA_HCA_CMD_RESIZE_CQ, &resize,
                           sizeof(resize), cq->cqn, 0);
    if (status == RDMA_HCA_STAT_OK) {
        cq->mr = mr;
        cq->log_size = log_size;
        move_cqes(cq, &old);
        must(mr_deregister(old.mr));
    } else {
        must(mr_deregister(mr));
    }
    return status;
}

static void cqe_give_back(Cq *cq, uint32_t index)
{
    const uint8_t owner = RDMA_HCA_OWNER_HW;

    mr_write(cq->mr, cqe_at(cq, index) + RDMA_HCA_CQE_SIZE - 1, &owner, 1);
}

/* The work request that ended; those before it in its queue did too. */
static uint64_t ring_complete(Ring *ring, uint32_t offset)
{
    uint32_t slot = offset >> ring->log_entry;
    uint32_t mask = ring->entries - 1;

    g_assert_cmpuint(slot, <, ring->entries);
    g_assert_cmpuint(offset & ((1u << ring->log_entry) - 1), ==, 0);
    ring->tail += ((slot - ring->tail) & mask) + 1;
    /* Never one that has not been posted, nor one twice. */
    g_assert_cmpint((int32_t)(ring->head - ring->tail), >=, 0);
    return ring->wr_id[slot];
}

bool cq_poll(Cq *cq, Wc *wc)
{
    struct rdma_hca_cqe cqe;
    uint32_t ctrl, path;
    Qp *qp;

    if (!cqe_read(cq, cq->ci, &cqe)) {
        return false;
    }
    cqe_give_back(cq, cq->ci);
    cq->ci++;
    cq_update_ci(cq);

    ctrl = GUINT32_FROM_LE(cqe.ctrl);
    path = GUINT32_FROM_LE(cqe.rlid_path);
    *wc = (Wc) {
        .qpn = GUINT32_FROM_LE(cqe.my_qpn),
        .is_send = RDMA_HCA_GET(RDMA_HCA_CQE_IS_SEND, ctrl),
        .opcode = RDMA_HCA_GET(RDMA_HCA_CQE_OPCODE, ctrl),
        .rqpn = GUINT32_FROM_LE(cqe.rqpn),
        .grh = RDMA_HCA_GET(RDMA_HCA_CQE_GRH, path),
        .sl = RDMA_HCA_GET(RDMA_HCA_CQE_SL, path),
    };
    if (cq->drv->roce) {
        wc->has_vlan = RDMA_HCA_GET(RDMA_HCA_CQE_HAS_VLAN, path);
        wc->vlan = RDMA_HCA_GET(RDMA_HCA_CQE_VLAN, path);
        wc->ipv4 = RDMA_HCA_GET(RDMA_HCA_CQE_IPV4, path);
    } else {
        wc->rlid = RDMA_HCA_GET(RDMA_HCA_CQE_RLID, path);
    }
    if (wc->opcode == RDMA_HCA_OPCODE_INVALID) {
        uint32_t err = GUINT32_FROM_LE(cqe.err);

        wc->syndrome = RDMA_HCA_GET(RDMA_HCA_CQE_SYNDROME, err);
        wc->vendor_err = RDMA_HCA_GET(RDMA_HCA_CQE_VENDOR_ERR, err);
        g_assert_cmphex(wc->syndrome, !=, 0);
    } else {
        wc->byte_len = GUINT32_FROM_LE(cqe.byte_cnt);
        wc->imm_be = cqe.imm;
    }
    qp = g_hash_table_lookup(cq->drv->qps, GUINT_TO_POINTER(wc->qpn));
    g_assert_nonnull(qp);
    g_assert_true(cq == (wc->is_send ? qp->send_cq : qp->recv_cq));
    wc->wr_id = ring_complete(wc->is_send ? &qp->sq : &qp->rq,
                              GUINT32_FROM_LE(cqe.wqe));
    return true;
}

typedef struct CqWait {
    Cq *cq;
    Wc *wc;
} CqWait;

static bool cq_has_one(void *opaque)
{
    CqWait *wait = opaque;

    return cq_poll(wait->cq, wait->wc);
}

bool cq_wait(Cq *cq, Wc *wc, int64_t ns)
{
    CqWait wait = { cq, wc };

    return lab_wait(cq->drv->host->lab, cq_has_one, &wait, ns);
}

/* Take the entries of @qpn out, keeping the order of the others. */
static void cq_clean(Cq *cq, uint32_t qpn)
{
    struct rdma_hca_cqe cqe;
    uint32_t end = cq->ci, removed = 0;

    while (end - cq->ci < 1u << cq->log_size && cqe_read(cq, end, &cqe)) {
        end++;
    }
    for (uint32_t i = end; i-- != cq->ci;) {
        cqe_read(cq, i, &cqe);
        if (GUINT32_FROM_LE(cqe.my_qpn) == qpn) {
            removed++;
        } else if (removed) {
            mr_write(cq->mr, cqe_at(cq, i + removed), &cqe, sizeof(cqe));
        }
    }
    for (uint32_t i = 0; i < removed; i++) {
        cqe_give_back(cq, cq->ci++);
    }
    cq_update_ci(cq);
}

/* ---- queue pairs ---- */

void qp_config_init(QpConfig *config, uint32_t pd, Cq *cq)
{
    *config = (QpConfig) {
        .service = RDMA_HCA_QP_ST_RC,
        .pd = pd,
        .uar = cq->uar,
        .send_cq = cq,
        .recv_cq = cq,
        .sq_entries = 64,
        .rq_entries = 64,
        .log_sq_entry = 8,
        .log_rq_entry = 7,
    };
}

static void ring_init(Driver *drv, Ring *ring, uint32_t pd, uint64_t va,
                      unsigned entries, unsigned log_entry)
{
    g_assert_true((entries & (entries - 1)) == 0);
    ring->entries = entries;
    ring->log_entry = log_entry;
    if (entries) {
        ring->wr_id = g_new0(uint64_t, entries);
        ring->mr = mr_new(drv, pd, va, (uint64_t)entries << log_entry, 0);
    }
}

Qp *qp_new_number(Driver *drv, const QpConfig *config, uint32_t qpn)
{
    Qp *qp = g_new0(Qp, 1);

    qp->drv = drv;
    qp->qpn = qpn;
    qp->service = config->service;
    qp->uar = config->uar;
    qp->pd = config->pd;
    qp->send_cq = config->send_cq;
    qp->recv_cq = config->recv_cq;
    qp->rq_record = record_new(drv);
    ring_init(drv, &qp->sq, qp->pd, UINT64_C(0x6000000000) + qpn * 0x100000,
              config->sq_entries, config->log_sq_entry);
    ring_init(drv, &qp->rq, qp->pd, UINT64_C(0x7000000000) + qpn * 0x100000,
              config->rq_entries, config->log_rq_entry);
    g_assert_null(g_hash_table_lookup(drv->qps, GUINT_TO_POINTER(qpn)));
    g_hash_table_insert(drv->qps, GUINT_TO_POINTER(qpn), qp);
    return qp;
}

Qp *qp_new(Driver *drv, const QpConfig *config)
{
    return qp_new_number(drv, config, drv->next_qpn++);
}

void qp_destroy(Qp *qp)
{
    Driver *drv = qp->drv;

    must(qp_to_rst(qp));
    g_hash_table_remove(drv->qps, GUINT_TO_POINTER(qp->qpn));
    if (qp->sq.mr) {
        must(mr_deregister(qp->sq.mr));
    }
    if (qp->rq.mr) {
        must(mr_deregister(qp->rq.mr));
    }
    qp_free(qp);
}

void qp_attr_init(QpAttr *attr)
{
    *attr = (QpAttr) {
        .access = RDMA_HCA_ACCESS_REMOTE_WRITE | RDMA_HCA_ACCESS_REMOTE_READ |
                  RDMA_HCA_ACCESS_REMOTE_ATOMIC,
        .mtu = 3,
        .sq_psn = 0x123456,
        .rq_psn = 0x123456,
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .min_rnr_timer = 12,
        .max_rd_atomic = 4,
        .max_dest_rd_atomic = 4,
        .qkey = 0x11111111,
    };
}

static void qpc_init(const Qp *qp, struct rdma_hca_qpc *qpc, unsigned state,
                     uint32_t mask)
{
    memset(qpc, 0, sizeof(*qpc));
    qpc->opt_param_mask = GUINT32_TO_BE(mask | RDMA_HCA_QP_ATTR_STATE);
    qpc->flags = PREP_BE(RDMA_HCA_QPC_STATE, state) |
                 PREP_BE(RDMA_HCA_QPC_SERVICE, qp->service);
    qpc->local_qpn = GUINT32_TO_BE(qp->qpn);
}

static uint8_t qp_modify(Qp *qp, uint16_t op, struct rdma_hca_qpc *qpc)
{
    return driver_cmd_in(qp->drv, op, qpc, sizeof(*qpc), qp->qpn, 0);
}

uint8_t qp_to_init(Qp *qp, const QpAttr *attr)
{
    struct rdma_hca_qpc qpc;
    uint32_t mask = RDMA_HCA_QP_ATTR_PKEY_INDEX | RDMA_HCA_QP_ATTR_PORT;

    mask |= qp->service == RDMA_HCA_QP_ST_UD ? RDMA_HCA_QP_ATTR_QKEY
                                             : RDMA_HCA_QP_ATTR_ACCESS_FLAGS;
    qpc_init(qp, &qpc, RDMA_HCA_QP_STATE_INIT, mask);
    qpc.mtu_msgmax_sz = PREP_BE(RDMA_HCA_QPC_MSGMAX, 31) |
                        PREP_BE(RDMA_HCA_QPC_SQ_ENTRY_SZ, qp->sq.log_entry) |
                        PREP_BE(RDMA_HCA_QPC_RQ_ENTRY_SZ, qp->rq.log_entry);
    qpc.usr_page = PREP_BE(RDMA_HCA_QPC_UAR, qp->uar);
    qpc.port_pkey = PREP_BE(RDMA_HCA_QPC_PORT, 1) |
                    PREP_BE(RDMA_HCA_QPC_PKEY_INDEX, attr->pkey_index);
    qpc.pd = GUINT32_TO_BE(qp->pd);
    qpc.params1 = PREP_BE(RDMA_HCA_QPC_ACCESS, attr->access);
    qpc.cqn_snd = GUINT32_TO_BE(qp->send_cq->cqn);
    qpc.cqn_rcv = GUINT32_TO_BE(qp->recv_cq->cqn);
    if (qp->sq.mr) {
        qpc.snd_wqe_base_l = GUINT32_TO_BE(qp->sq.mr->key);
        qpc.snd_wqe_len = GUINT32_TO_BE(qp->sq.mr->len);
    }
    if (qp->rq.mr) {
        qpc.rcv_wqe_base_l = GUINT32_TO_BE(qp->rq.mr->key);
        qpc.rcv_wqe_len = GUINT32_TO_BE(qp->rq.mr->len);
        qpc.rq_db_h = GUINT32_TO_BE(RDMA_HCA_HI32(qp->rq_record));
        qpc.rq_db_l = GUINT32_TO_BE(RDMA_HCA_LO32(qp->rq_record));
    }
    qpc.qkey = GUINT32_TO_BE(attr->qkey);
    return qp_modify(qp, RDMA_HCA_CMD_RST2INIT_QPEE, &qpc);
}

/* A MAC's first four bytes and its last two. */
static uint32_t mac_high(const uint8_t *mac)
{
    return (uint32_t)mac[0] << 24 | mac[1] << 16 | mac[2] << 8 | mac[3];
}

static uint16_t mac_low(const uint8_t *mac)
{
    return mac[4] << 8 | mac[5];
}

static void put_roce_path(struct rdma_hca_qpc *qpc, const RocePath *path)
{
    qpc->dlid_slid = PREP_BE(RDMA_HCA_QPC_DLID, mac_low(path->dmac));
    qpc->dmac_h = GUINT32_TO_BE(mac_high(path->dmac));
    if (path->document) {
        qpc->dlid_slid |= PREP_BE(RDMA_HCA_QPC_SLID, mac_low(path->smac));
        qpc->smac_h = GUINT32_TO_BE(mac_high(path->smac));
        qpc->sip = GUINT32_TO_BE(path->sip);
        qpc->dip = GUINT32_TO_BE(path->dip);
    }
    qpc->ackto_path |= PREP_BE(RDMA_HCA_QPC_SGID_INDEX, path->sgid_index);
}

static uint8_t hop_limit(const RocePath *path)
{
    return path->hop_limit ? path->hop_limit : 64;
}

static void put_path(const Driver *drv, struct rdma_hca_qpc *qpc,
                     const QpAttr *attr)
{
    if (drv->roce) {
        put_roce_path(qpc, &attr->roce);
    } else {
        qpc->dlid_slid = PREP_BE(RDMA_HCA_QPC_DLID, attr->dlid);
    }
    qpc->sl_tclass_flowlabel = PREP_BE(RDMA_HCA_QPC_SL, attr->sl) |
                               PREP_BE(RDMA_HCA_QPC_TCLASS, attr->tclass) |
                               PREP_BE(RDMA_HCA_QPC_FLOW_LABEL,
                                       attr->roce.flow_label);
    qpc->rnr_retry_path |= PREP_BE(RDMA_HCA_QPC_GRH, attr->grh);
    qpc->ackto_path |= PREP_BE(RDMA_HCA_QPC_HOP_LIMIT, hop_limit(&attr->roce));
    memcpy(qpc->rgid, attr->dgid, sizeof(attr->dgid));
}

uint8_t qp_to_rtr(Qp *qp, const QpAttr *attr)
{
    struct rdma_hca_qpc qpc;
    uint32_t mask = 0;

    if (qp->service != RDMA_HCA_QP_ST_UD) {
        mask |= RDMA_HCA_QP_ATTR_AV | RDMA_HCA_QP_ATTR_PATH_MTU |
                RDMA_HCA_QP_ATTR_DEST_QPN | RDMA_HCA_QP_ATTR_RQ_PSN;
    }
    if (qp->service == RDMA_HCA_QP_ST_RC) {
        mask |= RDMA_HCA_QP_ATTR_MIN_RNR_TIMER |
                RDMA_HCA_QP_ATTR_MAX_DEST_RD_ATOMIC;
    }
    qpc_init(qp, &qpc, RDMA_HCA_QP_STATE_RTR, mask);
    qpc.mtu_msgmax_sz = PREP_BE(RDMA_HCA_QPC_MTU, attr->mtu) |
                        PREP_BE(RDMA_HCA_QPC_MSGMAX, 31);
    qpc.remote_qpn = GUINT32_TO_BE(attr->dest_qpn);
    put_path(qp->drv, &qpc, attr);
    qpc.params1 = PREP_BE(RDMA_HCA_QPC_RRA_MAX, attr->max_dest_rd_atomic);
    qpc.rnr_nextrecvpsn = PREP_BE(RDMA_HCA_QPC_PSN, attr->rq_psn) |
                          PREP_BE(RDMA_HCA_QPC_MIN_RNR_TIMER,
                                  attr->min_rnr_timer);
    return qp_modify(qp, RDMA_HCA_CMD_INIT2RTR_QPEE, &qpc);
}

uint8_t qp_to_rts(Qp *qp, const QpAttr *attr)
{
    struct rdma_hca_qpc qpc;
    uint32_t mask = RDMA_HCA_QP_ATTR_SQ_PSN;

    if (qp->service == RDMA_HCA_QP_ST_RC) {
        mask |= RDMA_HCA_QP_ATTR_TIMEOUT | RDMA_HCA_QP_ATTR_RETRY_CNT |
                RDMA_HCA_QP_ATTR_RNR_RETRY | RDMA_HCA_QP_ATTR_MAX_QP_RD_ATOMIC;
    }
    qpc_init(qp, &qpc, RDMA_HCA_QP_STATE_RTS, mask);
    qpc.rnr_retry_path = PREP_BE(RDMA_HCA_QPC_RNR_RETRY, attr->rnr_retry) |
                         PREP_BE(RDMA_HCA_QPC_RETRY_COUNT, attr->retry_cnt);
    qpc.ackto_path = PREP_BE(RDMA_HCA_QPC_ACK_TIMEOUT, attr->timeout);
    qpc.params1 = PREP_BE(RDMA_HCA_QPC_SRA_MAX, attr->max_rd_atomic);
    qpc.next_send_psn = PREP_BE(RDMA_HCA_QPC_PSN, attr->sq_psn);
    return qp_modify(qp, RDMA_HCA_CMD_RTR2RTS_QPEE, &qpc);
}

uint8_t qp_to_err(Qp *qp)
{
    return driver_cmd(qp->drv, RDMA_HCA_CMD_2ERR_QPEE, 0, qp->qpn,
                      RDMA_HCA_MODIFY_NO_INBOX, 0, NULL);
}

uint8_t qp_to_rst(Qp *qp)
{
    uint8_t status = driver_cmd(qp->drv, RDMA_HCA_CMD_ERR2RST_QPEE, 0, qp->qpn,
                                RDMA_HCA_MODIFY_NO_INBOX, 0, NULL);

    if (status == RDMA_HCA_STAT_OK) {
        cq_clean(qp->send_cq, qp->qpn);
        cq_clean(qp->recv_cq, qp->qpn);
        qp->sq.head = qp->sq.tail = 0;
        qp->rq.head = qp->rq.tail = 0;
        host_write_le32(qp->drv->host, qp->rq_record, 0);
    }
    return status;
}

uint8_t qp_to_sqd(Qp *qp, bool event)
{
    return driver_cmd(qp->drv, RDMA_HCA_CMD_RTS2SQD_QPEE, 0,
                      qp->qpn | (event ? RDMA_HCA_RTS2SQD_EVENT : 0),
                      RDMA_HCA_MODIFY_NO_INBOX, 0, NULL);
}

static uint8_t back_to_rts(Qp *qp, uint16_t op)
{
    struct rdma_hca_qpc qpc;

    qpc_init(qp, &qpc, RDMA_HCA_QP_STATE_RTS, 0);
    return qp_modify(qp, op, &qpc);
}

uint8_t qp_sqd_to_rts(Qp *qp)
{
    return back_to_rts(qp, RDMA_HCA_CMD_SQD2RTS_QPEE);
}

uint8_t qp_sqe_to_rts(Qp *qp)
{
    return back_to_rts(qp, RDMA_HCA_CMD_SQERR2RTS_QPEE);
}

uint8_t qp_query(Qp *qp, struct rdma_hca_qpc *qpc)
{
    return driver_cmd_out(qp->drv, RDMA_HCA_CMD_QUERY_QP, qpc, sizeof(*qpc),
                          qp->qpn, 0);
}

unsigned qp_state(Qp *qp)
{
    struct rdma_hca_qpc qpc;

    must(qp_query(qp, &qpc));
    return GET_BE(RDMA_HCA_QPC_STATE, qpc.flags);
}

/* The addresses of the peer's table entry. */
static void roce_path_to(RocePath *path, bool *grh, uint8_t *dgid,
                         const Driver *from, const Driver *to)
{
    const Gid *source, *dest;

    *grh = !path->document;
    if (path->document) {
        path->sgid_index = GID_IPV4;
    }
    source = &from->gid[path->sgid_index];
    dest = &to->gid[path->sgid_index];
    memcpy(dgid, dest->gid, sizeof(dest->gid));
    memcpy(path->dmac, dest->mac, sizeof(path->dmac));
    memcpy(path->smac, source->mac, sizeof(path->smac));
    path->sip = mac_high(source->gid + 12);
    path->dip = mac_high(dest->gid + 12);
}

void qp_attr_to(QpAttr *attr, const Driver *from, const Driver *to)
{
    if (from->roce) {
        roce_path_to(&attr->roce, &attr->grh, attr->dgid, from, to);
    } else {
        attr->dlid = to->host->config.lid;
    }
}

void ud_address_to(UdAddress *ud, const Driver *from, const Driver *to)
{
    if (from->roce) {
        roce_path_to(&ud->roce, &ud->grh, ud->dgid, from, to);
    } else {
        ud->dlid = to->host->config.lid;
    }
}

/* RFC 1112, 6.4; RFC 2464, 7. */
void ud_address_to_group(UdAddress *ud, const uint8_t *mgid)
{
    uint8_t *mac = ud->roce.dmac;

    ud->grh = true;
    ud->dqpn = 0xffffff;
    memcpy(ud->dgid, mgid, sizeof(ud->dgid));
    if (mgid[0] == 0xff) {
        mac[0] = mac[1] = 0x33;
        memcpy(mac + 2, mgid + 12, 4);
    } else {
        mac[0] = 0x01;
        mac[1] = 0x00;
        mac[2] = 0x5e;
        mac[3] = mgid[13] & 0x7f;
        memcpy(mac + 4, mgid + 14, 2);
    }
}

void qp_connect(Qp *a, Qp *b, const QpAttr *attr)
{
    Qp *qp[2] = { a, b };

    for (unsigned i = 0; i < 2; i++) {
        Qp *peer = qp[!i];
        QpAttr own = *attr;

        if (i && a == b) {
            break;
        }
        own.dest_qpn = peer->qpn;
        qp_attr_to(&own, qp[i]->drv, peer->drv);
        if (i) {
            own.sq_psn = attr->rq_psn;
            own.rq_psn = attr->sq_psn;
        }
        must(qp_to_init(qp[i], &own));
        must(qp_to_rtr(qp[i], &own));
        must(qp_to_rts(qp[i], &own));
    }
}

/* ---- work requests ---- */

unsigned qp_send_room(const Qp *qp)
{
    return qp->sq.entries - (qp->sq.head - qp->sq.tail);
}

static bool has_raddr(uint8_t opcode)
{
    return opcode == RDMA_HCA_OPCODE_RDMA_WRITE ||
           opcode == RDMA_HCA_OPCODE_RDMA_WRITE_IMM ||
           opcode == RDMA_HCA_OPCODE_RDMA_READ ||
           opcode == RDMA_HCA_OPCODE_ATOMIC_CS ||
           opcode == RDMA_HCA_OPCODE_ATOMIC_FA;
}

static bool is_atomic(uint8_t opcode)
{
    return opcode == RDMA_HCA_OPCODE_ATOMIC_CS ||
           opcode == RDMA_HCA_OPCODE_ATOMIC_FA;
}

static void put_sge(GByteArray *wqe, const Sge *sge)
{
    struct rdma_hca_data_unit unit = {
        .byte_cnt = GUINT32_TO_LE(sge->len),
        .lkey = GUINT32_TO_LE(sge->lkey),
        .addr_l = GUINT32_TO_LE(RDMA_HCA_LO32(sge->va)),
        .addr_h = GUINT32_TO_LE(RDMA_HCA_HI32(sge->va)),
    };

    g_byte_array_append(wqe, (void *)&unit, sizeof(unit));
}

void driver_gid(const Driver *drv, uint8_t gid[16])
{
    const uint64_t half[2] = {
        GUINT64_TO_BE(UINT64_C(0xfe80000000000000)),
        GUINT64_TO_BE(drv->host->config.guid),
    };

    memcpy(gid, half, sizeof(half));
}

static void put_roce_ud(struct rdma_hca_ud_unit *unit, const UdAddress *ud)
{
    const RocePath *path = &ud->roce;
    uint32_t low = RDMA_HCA_PREP(RDMA_HCA_UD_DLID, mac_low(path->dmac));

    if (path->document) {
        low |= RDMA_HCA_PREP(RDMA_HCA_UD_SLID, mac_low(path->smac));
        unit->smac_h = GUINT32_TO_LE(mac_high(path->smac));
        unit->dmac_h = GUINT32_TO_LE(mac_high(path->dmac));
        unit->sip = GUINT32_TO_LE(path->sip);
        unit->dip = GUINT32_TO_LE(path->dip);
    } else {
        memcpy(unit->dgid, ud->dgid, sizeof(unit->dgid));
        unit->dmac_h2 = GUINT32_TO_LE(mac_high(path->dmac));
    }
    unit->dlid_slid = GUINT32_TO_LE(low);
}

static void put_ud(const Driver *drv, GByteArray *wqe, const UdAddress *ud)
{
    struct rdma_hca_ud_unit unit = {
        .port = GUINT32_TO_LE(
            RDMA_HCA_PREP(RDMA_HCA_UD_PORT, 1) |
            RDMA_HCA_PREP(RDMA_HCA_UD_SL, ud->sl) |
            RDMA_HCA_PREP(RDMA_HCA_UD_HOP_LIMIT, hop_limit(&ud->roce)) |
            RDMA_HCA_PREP(RDMA_HCA_UD_SGID_INDEX, ud->roce.sgid_index) |
            RDMA_HCA_PREP(RDMA_HCA_UD_GRH, ud->grh)),
        .flow = GUINT32_TO_LE(
            RDMA_HCA_PREP(RDMA_HCA_QPC_TCLASS, ud->tclass) |
            RDMA_HCA_PREP(RDMA_HCA_QPC_FLOW_LABEL, ud->roce.flow_label)),
        .dqpn = GUINT32_TO_LE(ud->dqpn),
        .qkey = GUINT32_TO_LE(ud->qkey),
    };

    if (drv->roce) {
        put_roce_ud(&unit, ud);
    } else {
        unit.dlid_slid = GUINT32_TO_LE(
            RDMA_HCA_PREP(RDMA_HCA_UD_DLID, ud->dlid));
        memcpy(unit.dgid, ud->dgid, sizeof(unit.dgid));
    }
    g_byte_array_append(wqe, (void *)&unit, sizeof(unit));
}

static void put_inline(GByteArray *wqe, const SendWr *wr)
{
    uint32_t header = GUINT32_TO_LE(RDMA_HCA_INLINE | wr->inline_len);
    static const uint8_t zero[RDMA_HCA_WQE_UNIT];

    g_byte_array_append(wqe, (void *)&header, sizeof(header));
    g_byte_array_append(wqe, wr->inline_data, wr->inline_len);
    if (wqe->len % RDMA_HCA_WQE_UNIT) {
        g_byte_array_append(wqe, zero,
                            RDMA_HCA_WQE_UNIT - wqe->len % RDMA_HCA_WQE_UNIT);
    }
}

/* All units of a send WQE; its next_unit has no link yet. */
static GByteArray *build_send(const Driver *drv, const SendWr *wr)
{
    GByteArray *wqe = g_byte_array_new();
    struct rdma_hca_next_unit next = { .imm_data = wr->imm_be };
    uint32_t flags = 0;

    flags |= wr->flags & SEND_SIGNALED ? RDMA_HCA_WQE_CQ_UPDATE : 0;
    flags |= wr->flags & SEND_SOLICITED ? RDMA_HCA_WQE_SOLICITED : 0;
    next.flags = GUINT32_TO_LE(flags);
    g_byte_array_append(wqe, (void *)&next, sizeof(next));
    if (wr->ud) {
        put_ud(drv, wqe, wr->ud);
    }
    if (has_raddr(wr->opcode)) {
        struct rdma_hca_raddr_unit raddr = {
            .raddr_l = GUINT32_TO_LE(RDMA_HCA_LO32(wr->raddr)),
            .raddr_h = GUINT32_TO_LE(RDMA_HCA_HI32(wr->raddr)),
            .rkey = GUINT32_TO_LE(wr->rkey),
        };

        g_byte_array_append(wqe, (void *)&raddr, sizeof(raddr));
    }
    if (is_atomic(wr->opcode)) {
        struct rdma_hca_atomic_unit atomic = {
            .swap_add_l = GUINT32_TO_LE(RDMA_HCA_LO32(wr->swap_add)),
            .swap_add_h = GUINT32_TO_LE(RDMA_HCA_HI32(wr->swap_add)),
            .cmp_l = GUINT32_TO_LE(RDMA_HCA_LO32(wr->compare)),
            .cmp_h = GUINT32_TO_LE(RDMA_HCA_HI32(wr->compare)),
        };

        g_byte_array_append(wqe, (void *)&atomic, sizeof(atomic));
    }
    if (wr->flags & SEND_INLINE) {
        put_inline(wqe, wr);
    } else {
        for (unsigned i = 0; i < wr->nsge; i++) {
            put_sge(wqe, &wr->sge[i]);
        }
    }
    return wqe;
}

/* Fill in what a next_unit says about the WQE that follows it. */
static void link_next(GByteArray *wqe, uint32_t offset, const SendWr *next,
                      uint32_t size)
{
    struct rdma_hca_next_unit *unit = (void *)wqe->data;

    unit->nda_nop = GUINT32_TO_LE(
        RDMA_HCA_PREP(RDMA_HCA_NEXT_NDA, offset / RDMA_HCA_WQE_ALIGN) |
        RDMA_HCA_PREP(RDMA_HCA_NEXT_NOP, next->opcode));
    unit->nee_nds = GUINT32_TO_LE(
        RDMA_HCA_PREP(RDMA_HCA_NEXT_NDS, size / RDMA_HCA_WQE_UNIT) |
        (next->flags & SEND_FENCE ? RDMA_HCA_NEXT_FENCE : 0));
}

static uint32_t slot_offset(const Ring *ring, uint32_t index)
{
    return (index & (ring->entries - 1)) << ring->log_entry;
}

bool qp_write_send(Qp *qp, const SendWr *wr, unsigned n, uint32_t *low,
                   uint32_t *high)
{
    Ring *ring = &qp->sq;
    GByteArray *wqe, *next;

    if (n == 0 || n > qp_send_room(qp)) {
        return false;
    }
    wqe = build_send(qp->drv, wr);
    *low = RDMA_HCA_PREP(RDMA_HCA_SEND_DB_SQ_HEAD,
                         slot_offset(ring, ring->head) / RDMA_HCA_WQE_UNIT) |
           (wr->flags & SEND_FENCE ? RDMA_HCA_SEND_DB_FENCE : 0) |
           RDMA_HCA_PREP(RDMA_HCA_SEND_DB_OPCODE, wr->opcode);
    *high = RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, qp->qpn) |
            RDMA_HCA_PREP(RDMA_HCA_SEND_DB_SIZE, wqe->len / RDMA_HCA_WQE_UNIT);
    for (unsigned i = 0; i < n; i++, wqe = next) {
        uint32_t index = ring->head++;

        next = i + 1 < n ? build_send(qp->drv, &wr[i + 1]) : NULL;
        if (next) {
            link_next(wqe, slot_offset(ring, ring->head), &wr[i + 1],
                      next->len);
        }
        g_assert_cmpuint(wqe->len, <=, 1u << ring->log_entry);
        g_assert_cmpuint(wqe->len, <=, RDMA_HCA_MAX_SEND_WQE_SIZE);
        ring->wr_id[index & (ring->entries - 1)] = wr[i].wr_id;
        mr_write(ring->mr, slot_offset(ring, index), wqe->data, wqe->len);
        g_byte_array_unref(wqe);
    }
    return true;
}

void qp_ring(Qp *qp, uint32_t low, uint32_t high)
{
    uint32_t at = qp->uar * RDMA_HCA_UAR_PAGE_SIZE + RDMA_HCA_SEND_DB;

    /* Both ways of writing a doorbell have to work. */
    if (qp->qpn & 1) {
        host_uar_write64(qp->drv->host, at, (uint64_t)high << 32 | low);
    } else {
        host_uar_write32(qp->drv->host, at, low);
        host_uar_write32(qp->drv->host, at + 4, high);
    }
}

bool qp_post_send(Qp *qp, const SendWr *wr, unsigned n)
{
    uint32_t low, high;

    if (!qp_write_send(qp, wr, n, &low, &high)) {
        return false;
    }
    qp_ring(qp, low, high);
    return true;
}

static void write_recv(Qp *qp, const RecvWr *wr)
{
    static const uint8_t zero[RDMA_HCA_WQE_UNIT];
    Ring *ring = &qp->rq;
    GByteArray *wqe = g_byte_array_new();
    uint32_t index = ring->head++;
    struct rdma_hca_next_unit next = {
        .nda_nop = GUINT32_TO_LE(
            RDMA_HCA_PREP(RDMA_HCA_NEXT_NDA,
                          slot_offset(ring, ring->head) / RDMA_HCA_WQE_ALIGN)),
        .nee_nds = GUINT32_TO_LE(RDMA_HCA_PREP(
            RDMA_HCA_NEXT_NDS, (1u << ring->log_entry) / RDMA_HCA_WQE_UNIT)),
        .flags = GUINT32_TO_LE(RDMA_HCA_WQE_CQ_UPDATE),
    };

    g_byte_array_append(wqe, (void *)&next, sizeof(next));
    for (unsigned i = 0; i < wr->nsge; i++) {
        /* An empty entry might look like the end of the list. */
        if (wr->sge[i].len) {
            put_sge(wqe, &wr->sge[i]);
        }
    }
    g_byte_array_append(wqe, zero, sizeof(zero));
    g_assert_cmpuint(wqe->len, <=, 1u << ring->log_entry);
    ring->wr_id[index & (ring->entries - 1)] = wr->wr_id;
    mr_write(ring->mr, slot_offset(ring, index), wqe->data, wqe->len);
    g_byte_array_unref(wqe);
}

bool qp_post_recv(Qp *qp, const RecvWr *wr, unsigned n)
{
    Ring *ring = &qp->rq;

    if (n > ring->entries - (ring->head - ring->tail)) {
        return false;
    }
    for (unsigned i = 0; i < n; i++) {
        write_recv(qp, &wr[i]);
    }
    host_write_le32(qp->drv->host, qp->rq_record, ring->head & 0xffff);
    return true;
}
