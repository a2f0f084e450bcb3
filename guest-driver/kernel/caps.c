// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the card is and has: QUERY_FW, QUERY_ADAPTER, QUERY_DEV_LIM
 * (interface document 3.2.1). Nothing of it is trusted unseen: a card that
 * this driver does not know is refused.
 */
#include <linux/sizes.h>

#include "rdma_hca_wqe.h"

#include "card.h"

#define RHCA_MAX_LOG_SQ_SLOTS 30

#define RHCA_FEATURES_NEEDED \
	(RDMA_HCA_FEATURE_RQ_DB_RECORD | RDMA_HCA_FEATURE_CQ_CI_RECORD)

static int rhca_check_fw(struct rhca_dev *dev, const struct rdma_hca_fw *fw)
{
	u32 version = be32_to_cpu(fw->interface_version);
	struct rhca_caps *caps = &dev->caps;

	if (be32_to_cpu(fw->magic) != RDMA_HCA_FW_MAGIC) {
		dev_err(&dev->pdev->dev, "not an rdma-hca: magic %#x\n",
			be32_to_cpu(fw->magic));
		return -ENODEV;
	}
	if (version != RDMA_HCA_INTERFACE_VERSION) {
		dev_err(&dev->pdev->dev,
			"card has interface version %u, driver knows %u\n",
			version, RDMA_HCA_INTERFACE_VERSION);
		return -ENODEV;
	}
	caps->features = be32_to_cpu(fw->features);
	caps->fw_version = be32_to_cpu(fw->fw_version);
	if (~caps->features & RHCA_FEATURES_NEEDED) {
		dev_err(&dev->pdev->dev,
			"card has features %#x, driver needs %#x\n",
			caps->features, RHCA_FEATURES_NEEDED);
		return -ENODEV;
	}
	return 0;
}

/* Only the low four bits of a reserved count are valid (3.2.1.1). */
static u32 rhca_reserved(u32 log)
{
	return 1u << (log & 15);
}

static void rhca_decode_reserved(struct rhca_caps *caps,
				 const struct rdma_hca_dev_lim *lim)
{
	__be32 word = lim->reserved_qp_cq_eq_mtt;

	caps->reserved_qps = rhca_reserved(
		be32_get_bits(word, RDMA_HCA_DEV_LIM_RESERVED_QP));
	caps->reserved_cqs = rhca_reserved(
		be32_get_bits(word, RDMA_HCA_DEV_LIM_RESERVED_CQ));
	caps->reserved_eqs = rhca_reserved(
		be32_get_bits(word, RDMA_HCA_DEV_LIM_RESERVED_EQ));
	caps->reserved_mtts = rhca_reserved(
		be32_get_bits(word, RDMA_HCA_DEV_LIM_RESERVED_MTT));
	word = lim->reserved_pd_lkey;
	caps->reserved_pds = rhca_reserved(
		be32_get_bits(word, RDMA_HCA_DEV_LIM_RESERVED_PD));
	caps->reserved_mpts = rhca_reserved(
		be32_get_bits(word, RDMA_HCA_DEV_LIM_RESERVED_LKEY));
	/* QPs 0 and 1 are the special ones. */
	caps->reserved_qps = max_t(u32, caps->reserved_qps, RHCA_SPECIAL_QPS);
	/* Where they are not in the table, others take their places. */
	if (caps->features & RDMA_HCA_FEATURE_MAD) {
		caps->special_qpn = caps->reserved_qps;
		caps->reserved_qps += RHCA_SPECIAL_QPS;
	}
}

/* Places in the port's GID table. */
static u32 rhca_decode_gids(const struct rhca_caps *caps, u32 log)
{
	/* An index has 8 bits. */
	if (caps->features & RDMA_HCA_FEATURE_ETH)
		return 1u << min_t(u32, log, 8);
	if (caps->features & RDMA_HCA_FEATURE_MAD)
		return 1u << min_t(u32, log, ilog2(RDMA_HCA_MAX_GUIDS));
	/* Nobody gives it another. */
	return 1;
}

static void rhca_decode_counts(struct rhca_caps *caps,
			       const struct rdma_hca_dev_lim *lim)
{
	__be32 word = lim->max_qps_cqs_eqs_mpts;
	u32 log_pkeys, log_uars;

	caps->log_qps = be32_get_bits(word, RDMA_HCA_DEV_LIM_MAX_QPS);
	caps->log_cqs = be32_get_bits(word, RDMA_HCA_DEV_LIM_MAX_CQS);
	caps->log_eqs = be32_get_bits(word, RDMA_HCA_DEV_LIM_MAX_EQS);
	caps->log_mpts = be32_get_bits(word, RDMA_HCA_DEV_LIM_MAX_MPTS);
	word = lim->max_pds_gids_pkeys;
	caps->log_pds = be32_get_bits(word, RDMA_HCA_DEV_LIM_MAX_PDS);
	caps->num_gids = rhca_decode_gids(
		caps, be32_get_bits(word, RDMA_HCA_DEV_LIM_MAX_GIDS));
	log_pkeys = be32_get_bits(word, RDMA_HCA_DEV_LIM_MAX_PKEYS);
	caps->num_pkeys = 1u << min_t(u32, log_pkeys,
				      ilog2(RDMA_HCA_MAX_PKEYS));
	word = lim->max_qp_cq_sz;
	/* A posted count of 16 bits must tell full from empty. */
	caps->log_max_wqes =
		min_t(u32, 15, be32_get_bits(word, RDMA_HCA_DEV_LIM_MAX_QP_SZ));
	caps->log_max_cqes = be32_get_bits(word, RDMA_HCA_DEV_LIM_MAX_CQ_SZ);
	word = lim->uars_mtts_msg;
	caps->log_mtts = be32_get_bits(word, RDMA_HCA_DEV_LIM_MTTS);
	caps->log_max_msg = be32_get_bits(word, RDMA_HCA_DEV_LIM_MAX_MSG);
	log_uars = be32_get_bits(word, RDMA_HCA_DEV_LIM_UARS);
	caps->num_uars = 1u << min_t(u32, log_uars, ilog2(RDMA_HCA_NUM_UARS));
}

static void rhca_decode_limits(struct rhca_caps *caps,
			       const struct rdma_hca_dev_lim *lim)
{
	__be32 word = lim->max_sg_desc_sz;

	caps->max_send_sge = be32_get_bits(word, RDMA_HCA_DEV_LIM_MAX_SG);
	caps->max_send_wqe_size =
		be32_get_bits(word, RDMA_HCA_DEV_LIM_MAX_DESC_SZ);
	word = lim->max_sg_desc_sz_rq;
	caps->max_recv_sge = be32_get_bits(word, RDMA_HCA_DEV_LIM_MAX_SG);
	caps->max_recv_wqe_size =
		be32_get_bits(word, RDMA_HCA_DEV_LIM_MAX_DESC_SZ);
	word = lim->rd_atomic_inline;
	caps->max_sra = be32_get_bits(word, RDMA_HCA_DEV_LIM_SRA);
	caps->max_rra = be32_get_bits(word, RDMA_HCA_DEV_LIM_RRA);
	caps->max_inline = be32_get_bits(word, RDMA_HCA_DEV_LIM_MAX_INLINE);
	caps->ack_delay = be32_get_bits(lim->port, RDMA_HCA_DEV_LIM_ACK_DELAY);
	caps->max_mtu = be32_get_bits(lim->port, RDMA_HCA_DEV_LIM_MAX_MTU);
	if (caps->features & RDMA_HCA_FEATURE_MEM_MGT)
		caps->max_page_list =
			be32_get_bits(lim->srq_page_list,
				      RDMA_HCA_DEV_LIM_MAX_PAGE_LIST);
	caps->max_icm = rhca_get64(lim->max_icm_sz_h, lim->max_icm_sz_l);
	if (caps->features & RDMA_HCA_FEATURE_TIMESTAMP)
		caps->clock_khz = be32_to_cpu(lim->clock_khz);
}

static void rhca_decode_srqs(struct rhca_caps *caps,
			     const struct rdma_hca_dev_lim *lim)
{
	__be32 word = lim->srqs;

	caps->log_srqs = be32_get_bits(word, RDMA_HCA_DEV_LIM_MAX_SRQS);
	/* As of a receive queue. */
	caps->log_max_srq_wqes = min_t(u32, 15,
		be32_get_bits(word, RDMA_HCA_DEV_LIM_MAX_SRQ_WQES));
	word = lim->srq_page_list;
	caps->reserved_srqs = rhca_reserved(
		be32_get_bits(word, RDMA_HCA_DEV_LIM_RESERVED_SRQ));
	caps->max_srq_sge = be32_get_bits(word, RDMA_HCA_DEV_LIM_MAX_SRQ_SGE);
	caps->log_xrcds = be32_get_bits(lim->xrcds_counters,
					RDMA_HCA_DEV_LIM_MAX_XRCDS);
	caps->log_counter_sets =
		be32_get_bits(lim->xrcds_counters,
			      RDMA_HCA_DEV_LIM_MAX_COUNTER_SETS);
	caps->log_sq_slots = be32_get_bits(lim->xrcds_counters,
					   RDMA_HCA_DEV_LIM_SQ_SLOTS);
	/* A card that does not tell may have as many as can be counted. */
	if (!caps->log_sq_slots)
		caps->log_sq_slots = RHCA_MAX_LOG_SQ_SLOTS;
	caps->log_flows = be32_get_bits(lim->flows, RDMA_HCA_DEV_LIM_MAX_FLOWS);
}

static bool rhca_srqs_ok(const struct rhca_caps *caps,
			 const struct rdma_hca_dev_lim *lim)
{
	if (!(caps->features & RDMA_HCA_FEATURE_SRQ))
		return !(caps->features & RDMA_HCA_FEATURE_XRC);
	return be32_get_bits(lim->srqs, RDMA_HCA_DEV_LIM_SRQC_SZ) ==
		       RDMA_HCA_SRQC_SIZE &&
	       caps->log_srqs <= 24 && caps->log_xrcds <= 24 &&
	       caps->reserved_srqs < 1u << caps->log_srqs &&
	       caps->max_srq_sge && caps->max_srq_sge <= RDMA_HCA_MAX_SGE;
}

static bool rhca_entry_sizes_ok(const struct rdma_hca_dev_lim *lim)
{
	u32 qpc = be32_get_bits(lim->qpc_cqc_entry_sz, RDMA_HCA_DEV_LIM_QPC_SZ);
	u32 cqc = be32_get_bits(lim->qpc_cqc_entry_sz, RDMA_HCA_DEV_LIM_CQC_SZ);
	u32 eqc = be32_get_bits(lim->eqc_mpt_entry_sz, RDMA_HCA_DEV_LIM_EQC_SZ);
	u32 mpt = be32_get_bits(lim->eqc_mpt_entry_sz, RDMA_HCA_DEV_LIM_MPT_SZ);

	return qpc == RDMA_HCA_QPC_SIZE && cqc == RDMA_HCA_CQC_SIZE &&
	       eqc == RDMA_HCA_EQC_SIZE && mpt == RDMA_HCA_MPT_SIZE;
}

/* The bounds within which all arithmetic of this driver holds. */
static bool rhca_limits_ok(const struct rhca_caps *caps)
{
	return caps->log_qps <= 24 && caps->log_cqs <= 24 &&
	       caps->log_eqs <= ilog2(RDMA_HCA_MAX_EQS) &&
	       caps->log_mpts <= 24 && caps->log_mtts <= 30 &&
	       caps->log_pds <= 24 && caps->log_max_cqes <= 24 &&
	       caps->log_max_msg <= 31 && caps->log_flows <= 24 &&
	       caps->log_counter_sets <= 24 &&
	       caps->log_sq_slots <= RHCA_MAX_LOG_SQ_SLOTS &&
	       caps->reserved_qps < 1u << caps->log_qps &&
	       caps->reserved_cqs < 1u << caps->log_cqs &&
	       caps->reserved_eqs < 1u << caps->log_eqs &&
	       caps->reserved_mpts < 1u << caps->log_mpts &&
	       caps->reserved_mtts < 1u << caps->log_mtts &&
	       caps->reserved_pds < 1u << caps->log_pds &&
	       caps->num_uars > RHCA_UARS_PER_PAGE &&
	       caps->max_send_sge && caps->max_recv_sge &&
	       caps->max_send_wqe_size >= RDMA_HCA_WQE_ALIGN &&
	       caps->max_send_wqe_size <= RDMA_HCA_MAX_SEND_WQE_SIZE &&
	       caps->max_recv_wqe_size >= RDMA_HCA_WQE_ALIGN &&
	       caps->max_recv_wqe_size <= RDMA_HCA_MAX_RECV_WQE_SIZE &&
	       caps->max_mtu >= IB_MTU_256 && caps->max_mtu <= IB_MTU_4096;
}

/* Device memory that the kernel can map, and struct ib_dm can tell of. */
static u64 rhca_dev_mem(struct rhca_dev *dev,
			const struct rdma_hca_dev_lim *lim)
{
	u64 size = rhca_get64(lim->dev_mem_h, lim->dev_mem_l);

	if (!(dev->caps.features & RDMA_HCA_FEATURE_DEV_MEM) ||
	    !(pci_resource_flags(dev->pdev, RDMA_HCA_BAR4) & IORESOURCE_MEM))
		return 0;
	size = min_t(u64, size, pci_resource_len(dev->pdev, RDMA_HCA_BAR4));
	return min_t(u64, size, SZ_2G) & PAGE_MASK;
}

static int rhca_check_dev_lim(struct rhca_dev *dev,
			      const struct rdma_hca_dev_lim *lim)
{
	struct rhca_caps *caps = &dev->caps;
	u64 uars = pci_resource_len(dev->pdev, RDMA_HCA_BAR2) /
		   RDMA_HCA_UAR_PAGE_SIZE;

	rhca_decode_reserved(caps, lim);
	rhca_decode_counts(caps, lim);
	rhca_decode_limits(caps, lim);
	rhca_decode_srqs(caps, lim);
	caps->num_uars = min_t(u64, caps->num_uars, uars);
	caps->dev_mem = rhca_dev_mem(dev, lim);
	if (rhca_entry_sizes_ok(lim) && rhca_limits_ok(caps) &&
	    rhca_srqs_ok(caps, lim))
		return 0;
	dev_err(&dev->pdev->dev, "card's limits make no sense\n");
	return -ENODEV;
}

int rhca_query_caps(struct rhca_dev *dev)
{
	const struct rdma_hca_adapter *adapter;
	struct rhca_mailbox box;
	int err;

	err = rhca_mailbox_alloc(dev, &box);
	if (err)
		return err;

	err = rhca_cmd_out(dev, RDMA_HCA_CMD_QUERY_FW, 0, &box);
	if (!err)
		err = rhca_check_fw(dev, box.buf);
	if (!err)
		err = rhca_cmd_out(dev, RDMA_HCA_CMD_QUERY_ADAPTER, 0, &box);
	if (!err) {
		adapter = box.buf;
		dev->caps.board_id = rhca_get64(adapter->board_id_h,
						adapter->board_id_l);
		err = rhca_cmd_out(dev, RDMA_HCA_CMD_QUERY_DEV_LIM, 0, &box);
	}
	if (!err)
		err = rhca_check_dev_lim(dev, box.buf);
	rhca_mailbox_free(dev, &box);
	return err;
}
