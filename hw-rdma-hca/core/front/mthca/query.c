/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an InfiniHost III Lx says that it is, and what its engine can do. */
#include "mthca.h"

#include <string.h>

/* 1.2.0, the last one of such cards that was known to Linux. */
#define FW_MAJOR 1
#define FW_MINOR 2
#define FW_SUBMINOR 0
/* The firmware's area: of a driver that has to map one, the least. */
#define FW_PAGES 1

/* Ours, and told by board_id of sysfs. */
#define BOARD_ID "RDMA-HCA-MTHCA-1"
G_STATIC_ASSERT(sizeof(BOARD_ID) - 1 == MTHCA_BOARD_ID_LEN);

/* Logarithms of numbers that are the card's own, or nobody's. */
#define LOG_RESERVED_QPS 3
#define LOG_RESERVED_SRQS 0
#define LOG_RESERVED_CQS 0
#define LOG_RESERVED_EQS 0
#define LOG_RESERVED_MTTS 4
#define LOG_RESERVED_MPTS 4
/* Pages of UARs that are nobody's. */
#define RESERVED_UARS 1

/* Logarithms of the largest queues; a driver may ask for twice such an SRQ. */
#define LOG_MAX_WQES 14
#define LOG_MAX_CQES 17
#define LOG_MAX_EQES 17
/* As large as ib_mthca's int can be shifted; it limits nobody, and nor do we. */
#define LOG_MAX_REGION 31

/* A stride is a power of two, and a fetch of the receive queue brings this. */
#define MAX_DESC RDMA_HCA_MAX_RECV_WQE_SIZE
/* Bytes of segments in ICM, and of what a driver may keep there for the card. */
#define MTT_SEGMENT 64
#define EEC_SIZE 256
#define EXTENDED_SIZE 32
#define UAR_SCRATCH_SIZE 32

#define LOG_MTT_SEGS 24
#define LOG_PDS 15
#define LOG_MGMS 13
#define LOG_QPS_PER_MGM 6
#define LOG_GIDS 3
#define LOG_PKEYS 5
#define LOG_RD_ATOMIC 4
G_STATIC_ASSERT(HCA_MAX_RD_ATOMIC == 1 << LOG_RD_ATOMIC);
G_STATIC_ASSERT(RDMA_HCA_MAX_PKEYS == 1 << LOG_PKEYS);
G_STATIC_ASSERT(RDMA_HCA_MAX_GUIDS == 1 << LOG_GIDS);
#define LOG_ALL_RD_ATOMIC 24
#define ACK_DELAY 15
#define MAX_VLS 8
#define PORT_WIDTHS 3 /* 1X and 4X */
/* Of full, quarter, eighth and half rate all. */
#define STATIC_RATES 0xf

static void put64(uint64_t value, __be32 *high, __be32 *low)
{
    *high = GUINT32_TO_BE(RDMA_HCA_HI32(value));
    *low = GUINT32_TO_BE(RDMA_HCA_LO32(value));
}

uint8_t hca_mthca_query_fw(HcaCeu *ceu, HcaCommand *cmd)
{
    struct mthca_fw *fw = (void *)cmd->outbox;
    uint64_t base = hca_host_bar0(&ceu->hca->host);

    fw->pages = GUINT16_TO_BE(FW_PAGES);
    fw->major = GUINT16_TO_BE(FW_MAJOR);
    fw->minor = GUINT16_TO_BE(FW_MINOR);
    fw->subminor = GUINT16_TO_BE(FW_SUBMINOR);
    put64(base + MTHCA_CLEAR_INT, &fw->clear_int_h, &fw->clear_int_l);
    put64(base + MTHCA_CATAS, &fw->catas_h, &fw->catas_l);
    fw->catas_words = GUINT32_TO_BE(MTHCA_CATAS_WORDS);
    put64(base + MTHCA_EQ_ARM, &fw->eq_arm_h, &fw->eq_arm_l);
    put64(base + MTHCA_EQ_SET_CI, &fw->eq_set_ci_h, &fw->eq_set_ci_l);
    return HCA_STAT_OK;
}

static void table_limits(struct mthca_dev_lim *lim, const HcaConfig *config)
{
    lim->log_reserved_qps = LOG_RESERVED_QPS;
    lim->log_qps = config->log_qps;
    lim->log_reserved_srqs = LOG_RESERVED_SRQS << 4;
    lim->log_srqs = config->log_srqs;
    lim->log_reserved_cqs = LOG_RESERVED_CQS;
    lim->log_cqs = config->log_cqs;
    lim->log_reserved_eqs = LOG_RESERVED_EQS;
    lim->log_eqs = config->log_eqs;
    lim->log_reserved_mtts = LOG_RESERVED_MTTS << 4;
    lim->log_mtt_segs = LOG_MTT_SEGS;
    lim->log_reserved_mpts = LOG_RESERVED_MPTS;
    lim->log_mpts = config->log_mpts;
    lim->log_pds = LOG_PDS;
    lim->log_qps_per_mgm = LOG_QPS_PER_MGM;
    lim->log_mgms = LOG_MGMS;
    lim->reserved_uars = RESERVED_UARS << 4;
    lim->log_uar_mbytes = g_bit_storage(RDMA_HCA_BAR2_SIZE >> 20) - 1;
    put64((uint64_t)HCA_ICM_MAX_PAGES << RDMA_HCA_ICM_PAGE_SHIFT,
          &lim->max_icm_sz_h, &lim->max_icm_sz_l);
}

static void queue_limits(struct mthca_dev_lim *lim)
{
    lim->log_max_srq_sz = LOG_MAX_WQES;
    lim->log_max_qp_sz = LOG_MAX_WQES;
    lim->log_max_cq_sz = LOG_MAX_CQES;
    lim->log_max_eq_sz = LOG_MAX_EQES;
    lim->log_max_mr_sz = LOG_MAX_REGION;
    lim->log_min_page_sz = RDMA_HCA_MPT_PAGE_SHIFT_MIN;
    lim->log_rd_atomic_qp = LOG_RD_ATOMIC;
    lim->log_dest_rd_atomic_qp = LOG_RD_ATOMIC;
    lim->log_dest_rd_atomic = LOG_ALL_RD_ATOMIC;
    lim->max_sg = lim->max_sg_rq = RDMA_HCA_MAX_SGE;
    lim->max_desc_sz = lim->max_desc_sz_rq = GUINT16_TO_BE(MAX_DESC);
}

static void port_limits(struct mthca_dev_lim *lim, const HcaConfig *config)
{
    lim->ack_delay = ACK_DELAY;
    lim->mtu_width = config->max_mtu << 4 | PORT_WIDTHS;
    lim->vls_ports = MAX_VLS << 4 | RDMA_HCA_NUM_PORTS;
    lim->log_gids = LOG_GIDS;
    lim->log_pkeys = LOG_PKEYS;
    lim->static_rates = GUINT16_TO_BE(STATIC_RATES);
    lim->flags = GUINT32_TO_BE(
        MTHCA_DEV_LIM_RC | MTHCA_DEV_LIM_UC | MTHCA_DEV_LIM_UD |
        MTHCA_DEV_LIM_SRQ | MTHCA_DEV_LIM_BAD_PKEY_CNT |
        MTHCA_DEV_LIM_BAD_QKEY_CNT | MTHCA_DEV_LIM_ATOMIC |
        MTHCA_DEV_LIM_UD_AV_PORT | MTHCA_DEV_LIM_UD_MCAST);
}

static void entry_sizes(struct mthca_dev_lim *lim)
{
    lim->eec_sz = GUINT16_TO_BE(EEC_SIZE);
    lim->qpc_sz = GUINT16_TO_BE(MTHCA_QPC_SIZE);
    lim->eeec_sz = lim->eqpc_sz = GUINT16_TO_BE(EXTENDED_SIZE);
    lim->eqc_sz = GUINT16_TO_BE(MTHCA_EQC_SIZE);
    lim->cqc_sz = GUINT16_TO_BE(MTHCA_CQC_SIZE);
    lim->srqc_sz = GUINT16_TO_BE(MTHCA_SRQC_SIZE);
    lim->uar_scratch_sz = GUINT16_TO_BE(UAR_SCRATCH_SIZE);
    lim->mtt_sz = GUINT16_TO_BE(MTT_SEGMENT);
    lim->mpt_sz = GUINT16_TO_BE(MTHCA_MPT_SIZE);
}

uint8_t hca_mthca_query_dev_lim(HcaCeu *ceu, HcaCommand *cmd)
{
    struct mthca_dev_lim *lim = (void *)cmd->outbox;

    table_limits(lim, &ceu->hca->config);
    queue_limits(lim);
    port_limits(lim, &ceu->hca->config);
    entry_sizes(lim);
    return HCA_STAT_OK;
}

uint8_t hca_mthca_query_adapter(HcaCeu *ceu, HcaCommand *cmd)
{
    static const char board[] = BOARD_ID;
    struct mthca_adapter *adapter = (void *)cmd->outbox;

    adapter->inta_pin = MTHCA_INTA_PIN;
    for (unsigned i = 0; i < MTHCA_BOARD_ID_LEN; i++) {
        adapter->vsd[MTHCA_VSD_BOARD_ID + (i ^ 3)] = board[i];
    }
    return HCA_STAT_OK;
}
