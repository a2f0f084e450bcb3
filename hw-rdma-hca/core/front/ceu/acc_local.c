/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * acc_local (CEU document 2.2, figure 2-4): commands that need only the
 * unit's own store: what the card is, what it can do, and its port.
 */
#include <string.h>

#include "../../../abi/rdma_hca_eth.h"
#include "../../../abi/rdma_hca_wqe.h"
#include "../../counters.h"
#include "ceu_int.h"

#define FW_VERSION RDMA_HCA_PREP(RDMA_HCA_MASK(31, 16), 1)
/* "RDMAHCA1" */
#define BOARD_ID 0x52444d4148434131ull

#define LOG_MAX_MSG 31
/* Of a RoCE card. */
#define ETH_FEATURES                                                           \
    (RDMA_HCA_FEATURE_ETH | RDMA_HCA_FEATURE_RAW | RDMA_HCA_FEATURE_ETH_TSO |  \
     RDMA_HCA_FEATURE_ETH_RSS | RDMA_HCA_FEATURE_ETH_MODERATION |              \
     RDMA_HCA_FEATURE_ETH_PAUSE | RDMA_HCA_FEATURE_SET_MTU)
/* Of clock_ns. */
#define CLOCK_KHZ 1000000
/* 4.096 us * 2^15, what a peer should allow for an answer of ours: 134 ms. */
#define ACK_DELAY 15
/* What the smallest send WQE, that of UD, leaves for data. */
#define MAX_INLINE                                                             \
    (RDMA_HCA_MAX_SEND_WQE_SIZE - sizeof(struct rdma_hca_next_unit) -          \
     sizeof(struct rdma_hca_ud_unit) - sizeof(__le32))

#define BE(x) GUINT32_TO_BE(x)
#define LIM(field, value) RDMA_HCA_PREP(RDMA_HCA_DEV_LIM_##field, value)

/* Logarithms: 2 reserved QPs (QP0, QP1), 1 of everything else. */
static void reserved_limits(struct rdma_hca_dev_lim *lim)
{
    lim->reserved_qp_cq_eq_mtt = BE(LIM(RESERVED_QP, 1) | LIM(RESERVED_CQ, 0) |
                                    LIM(RESERVED_EQ, 0) | LIM(RESERVED_MTT, 0));
    lim->reserved_pd_lkey = BE(LIM(RESERVED_PD, 0) | LIM(RESERVED_LKEY, 0));
}

/*
 * The table has room for a power of two of keys; the rest of it is empty. That
 * of an InfiniBand port a manager may fill.
 */
static unsigned log_pkeys(const HcaConfig *config)
{
    unsigned n = hca_config_is_roce(config) ? config->num_pkeys
                                            : RDMA_HCA_MAX_PKEYS;

    return n > 1 ? g_bit_storage(n - 1) : 0;
}

static void table_limits(struct rdma_hca_dev_lim *lim, const Hca *hca)
{
    const HcaConfig *config = &hca->config;
    bool roce = hca_config_is_roce(config);
    unsigned log_gids = hca_gid_log_size(hca->port);
    unsigned log_flows = roce ? config->log_flows : 0;
    uint64_t icm = (uint64_t)HCA_ICM_MAX_PAGES << RDMA_HCA_ICM_PAGE_SHIFT;

    lim->max_qp_cq_sz = BE(LIM(MAX_QP_SZ, HCA_MAX_LOG_WQES) |
                           LIM(MAX_CQ_SZ, HCA_MAX_LOG_CQ_SIZE));
    lim->max_qps_cqs_eqs_mpts = BE(
        LIM(MAX_QPS, config->log_qps) | LIM(MAX_CQS, config->log_cqs) |
        LIM(MAX_EQS, config->log_eqs) | LIM(MAX_MPTS, config->log_mpts));
    lim->max_pds_gids_pkeys = BE(LIM(MAX_PDS, config->log_pds) |
                                 LIM(MAX_GIDS, log_gids) |
                                 LIM(MAX_PKEYS, log_pkeys(config)));
    lim->mtt_seg_sz = BE(LIM(MTT_SEG_SZ, RDMA_HCA_MTT_SIZE));
    lim->qpc_cqc_entry_sz = BE(LIM(QPC_SZ, RDMA_HCA_QPC_SIZE) |
                               LIM(CQC_SZ, RDMA_HCA_CQC_SIZE));
    lim->eqc_mpt_entry_sz = BE(LIM(EQC_SZ, RDMA_HCA_EQC_SIZE) |
                               LIM(MPT_SZ, RDMA_HCA_MPT_SIZE));
    lim->srqs = BE(LIM(MAX_SRQS, config->log_srqs) |
                   LIM(MAX_SRQ_WQES, config->log_srq_wqes) |
                   LIM(SRQC_SZ, RDMA_HCA_SRQC_SIZE));
    lim->flows = BE(LIM(MAX_FLOWS, log_flows));
    lim->xrcds_counters = BE(LIM(MAX_XRCDS, HCA_LOG_XRCDS) |
                             LIM(MAX_COUNTER_SETS, HCA_LOG_COUNTER_SETS) |
                             LIM(SQ_SLOTS, config->log_sq_slots));
    lim->max_icm_sz_h = BE(RDMA_HCA_HI32(icm));
    lim->max_icm_sz_l = BE(RDMA_HCA_LO32(icm));
}

static void work_limits(struct rdma_hca_dev_lim *lim, const HcaConfig *config)
{
    lim->port = BE(LIM(ACK_DELAY, ACK_DELAY) | LIM(MAX_MTU, config->max_mtu) |
                   LIM(MAX_WIDTH, HCA_PORT_WIDTH) | LIM(MAX_VL, 8) |
                   LIM(NUM_PORTS, RDMA_HCA_NUM_PORTS));
    lim->min_page_sz = BE(LIM(MIN_PAGE_SZ, RDMA_HCA_MPT_PAGE_SHIFT_MIN));
    lim->max_sg_desc_sz = BE(LIM(MAX_SG, RDMA_HCA_MAX_SGE) |
                             LIM(MAX_DESC_SZ, RDMA_HCA_MAX_SEND_WQE_SIZE));
    lim->max_sg_desc_sz_rq = BE(LIM(MAX_SG, RDMA_HCA_MAX_SGE) |
                                LIM(MAX_DESC_SZ, RDMA_HCA_MAX_RECV_WQE_SIZE));
    lim->rd_atomic_inline = BE(LIM(SRA, HCA_MAX_RD_ATOMIC) |
                               LIM(RRA, HCA_MAX_RD_ATOMIC) |
                               LIM(MAX_INLINE, MAX_INLINE));
    lim->uars_mtts_msg = BE(LIM(UARS, g_bit_storage(RDMA_HCA_NUM_UARS) - 1) |
                            LIM(MTTS, config->log_mtts) |
                            LIM(MAX_MSG, LOG_MAX_MSG));
    lim->srq_page_list = BE(LIM(RESERVED_SRQ, 0) |
                            LIM(MAX_SRQ_SGE, RDMA_HCA_MAX_SGE) |
                            LIM(MAX_PAGE_LIST, RDMA_HCA_MAX_PAGE_LIST));
    lim->clock_khz = BE(CLOCK_KHZ);
    lim->dev_mem_h = BE(0);
    lim->dev_mem_l = BE(config->device_memory);
}

uint8_t hca_ceu_query_dev_lim(HcaCeu *ceu, HcaCommand *cmd)
{
    struct rdma_hca_dev_lim *lim = (void *)cmd->outbox;

    reserved_limits(lim);
    table_limits(lim, ceu->hca);
    work_limits(lim, &ceu->hca->config);
    return RDMA_HCA_STAT_OK;
}

uint8_t hca_ceu_query_fw(HcaCeu *ceu, HcaCommand *cmd)
{
    struct rdma_hca_fw *fw = (void *)cmd->outbox;
    const HcaConfig *config = &ceu->hca->config;
    bool roce = hca_config_is_roce(config);
    uint32_t link = roce ? ETH_FEATURES : RDMA_HCA_FEATURE_MAD;
    uint32_t dev_mem = config->device_memory ? RDMA_HCA_FEATURE_DEV_MEM : 0;
    uint32_t gids = roce && config->roce_v1_gids ? RDMA_HCA_FEATURE_ROCE_V1_GIDS
                                                 : 0;

    fw->magic = BE(RDMA_HCA_FW_MAGIC);
    fw->interface_version = BE(RDMA_HCA_INTERFACE_VERSION);
    fw->features = BE(
        RDMA_HCA_FEATURE_RQ_DB_RECORD | RDMA_HCA_FEATURE_CQ_CI_RECORD |
        RDMA_HCA_FEATURE_CMD_EVENT | RDMA_HCA_FEATURE_DIAG |
        RDMA_HCA_FEATURE_MCAST | RDMA_HCA_FEATURE_SRQ | RDMA_HCA_FEATURE_XRC |
        RDMA_HCA_FEATURE_MEM_MGT | RDMA_HCA_FEATURE_MW |
        RDMA_HCA_FEATURE_TIMESTAMP | RDMA_HCA_FEATURE_CQ_MODERATION |
        RDMA_HCA_FEATURE_ATOMIC_WRITE | RDMA_HCA_FEATURE_FLUSH |
        RDMA_HCA_FEATURE_NULL_MR | RDMA_HCA_FEATURE_QP_COUNTERS |
        RDMA_HCA_FEATURE_BLOCK_LOOPBACK | link | dev_mem | gids);
    fw->fw_version = BE(FW_VERSION);
    return RDMA_HCA_STAT_OK;
}

uint8_t hca_ceu_query_adapter(HcaCeu *ceu, HcaCommand *cmd)
{
    struct rdma_hca_adapter *adapter = (void *)cmd->outbox;

    adapter->board_id_h = BE(RDMA_HCA_HI32(BOARD_ID));
    adapter->board_id_l = BE(RDMA_HCA_LO32(BOARD_ID));
    return RDMA_HCA_STAT_OK;
}

#define PORT(field, value) RDMA_HCA_PREP(RDMA_HCA_PORT_##field, value)

/* What a manager sets, of which a RoCE port has the least. */
static void port_info(struct rdma_hca_port *port, const HcaPortInfo *info)
{
    port->state = BE(PORT(STATE, info->state) |
                     PORT(PHYS_STATE, info->phys_state));
    port->mtu_width_speed = BE(
        PORT(MAX_MTU, info->mtu_cap) | PORT(ACTIVE_MTU, info->mtu) |
        PORT(WIDTH, info->width_active) | PORT(SPEED, info->speed_active) |
        PORT(MAX_VL, info->vl_cap));
    port->lid = BE(PORT(LID, info->lid) | PORT(LMC, info->lmc));
    port->sm = BE(PORT(SM_LID, info->sm_lid) | PORT(SM_SL, info->sm_sl));
    port->violations = BE(PORT(PKEY_VIOLATIONS, info->p_key_violations) |
                          PORT(QKEY_VIOLATIONS, info->q_key_violations));
    port->mgmt = BE(PORT(SUBNET_TIMEOUT, info->subnet_timeout));
    port->gid_prefix_h = BE(RDMA_HCA_HI32(info->gid_prefix));
    port->gid_prefix_l = BE(RDMA_HCA_LO32(info->gid_prefix));
}

/* What the two link layers do not have in common. */
static void port_link(struct rdma_hca_port *port, const Hca *hca,
                      const HcaNodePort *node)
{
    if (!hca_port_is_roce(hca->port)) {
        port->link_layer = BE(RDMA_HCA_LINK_LAYER_IB);
        port->cap_mask = BE(node->info.cap_mask);
        return;
    }
    port->link_layer = BE(RDMA_HCA_LINK_LAYER_ROCE);
    /* Six bytes in the order of the mailbox. */
    memcpy(&port->mac_h, hca->config.mac, sizeof(hca->config.mac));
    port->eth = BE(PORT(ETH_MAX_MTU, RDMA_HCA_ETH_MAX_MTU) |
                   PORT(ETH_QUEUES, RDMA_HCA_ETH_MAX_QUEUES));
}

static void port_tables(struct rdma_hca_port *port, const HcaNodePort *node)
{
    port->guid_h = BE(RDMA_HCA_HI32(node->guids[0]));
    port->guid_l = BE(RDMA_HCA_LO32(node->guids[0]));
    for (unsigned i = 0; i < RDMA_HCA_MAX_PKEYS; i++) {
        port->pkeys[i / 2] |= BE(
            RDMA_HCA_PREP(RDMA_HCA_PORT_PKEY(i), node->pkeys[i]));
    }
    for (unsigned i = 0; i < RDMA_HCA_MAX_GUIDS; i++) {
        port->guids[i].h = BE(RDMA_HCA_HI32(node->guids[i]));
        port->guids[i].l = BE(RDMA_HCA_LO32(node->guids[i]));
    }
}

uint8_t hca_ceu_query_port(HcaCeu *ceu, HcaCommand *cmd)
{
    const Hca *hca = ceu->hca;
    const HcaNodePort *node = hca_port_node_port(hca->port);
    struct rdma_hca_port *port = (void *)cmd->outbox;

    if (cmd->in_modifier != HCA_PORT_NUMBER) {
        return RDMA_HCA_STAT_BAD_INDEX;
    }
    hca_port_refresh(hca->port);
    port_info(port, &node->info);
    port_link(port, hca, node);
    port_tables(port, node);
    return RDMA_HCA_STAT_OK;
}

static uint8_t enable_port(HcaCeu *ceu, const HcaCommand *cmd, bool enable)
{
    if (cmd->in_modifier != HCA_PORT_NUMBER) {
        return RDMA_HCA_STAT_BAD_INDEX;
    }
    hca_port_enable(ceu->hca->port, enable);
    return RDMA_HCA_STAT_OK;
}

uint8_t hca_ceu_init_ib(HcaCeu *ceu, HcaCommand *cmd)
{
    return enable_port(ceu, cmd, true);
}

uint8_t hca_ceu_close_ib(HcaCeu *ceu, HcaCommand *cmd)
{
    return enable_port(ceu, cmd, false);
}

uint8_t hca_ceu_nop(HcaCeu *ceu, HcaCommand *cmd)
{
    return RDMA_HCA_STAT_OK;
}

/* A name is cut off rather than not ended by a zero. */
static void diag_name(struct rdma_hca_diag *diag, unsigned slot,
                      const HcaCounter *counter)
{
    char *name = diag->name[slot];

    g_strlcpy(name, counter->unit, RDMA_HCA_DIAG_NAME_SIZE);
    g_strlcat(name, "_", RDMA_HCA_DIAG_NAME_SIZE);
    g_strlcat(name, counter->name, RDMA_HCA_DIAG_NAME_SIZE);
}

static void diag_value(struct rdma_hca_diag *diag, unsigned slot,
                       const HcaCounter *counter)
{
    diag->value[slot].h = BE(RDMA_HCA_HI32(counter->value));
    diag->value[slot].l = BE(RDMA_HCA_LO32(counter->value));
}

/*
 * Counters are only read: more than one may read them, and who wants to know
 * what happened in a while takes the difference.
 */
uint8_t hca_ceu_diag_rprt(HcaCeu *ceu, HcaCommand *cmd)
{
    struct rdma_hca_diag *diag = (void *)cmd->outbox;
    bool names = cmd->op_modifier == RDMA_HCA_DIAG_NAMES;
    unsigned room = names ? G_N_ELEMENTS(diag->name)
                          : G_N_ELEMENTS(diag->value);
    unsigned total = hca_counters_number();
    uint32_t first = cmd->in_modifier;
    unsigned count;

    if (!names && cmd->op_modifier != RDMA_HCA_DIAG_VALUES) {
        return RDMA_HCA_STAT_BAD_PARAM;
    }
    if (first >= total) {
        return RDMA_HCA_STAT_BAD_INDEX;
    }
    count = MIN(total - first, room);
    diag->total = BE(total);
    diag->first = BE(first);
    diag->count = BE(count);
    for (unsigned slot = 0; slot < count; slot++) {
        HcaCounter counter;

        hca_counter_get(ceu->hca, first + slot, &counter);
        (names ? diag_name : diag_value)(diag, slot, &counter);
    }
    return RDMA_HCA_STAT_OK;
}
