/* SPDX-License-Identifier: GPL-2.0-or-later OR Linux-OpenIB */
/*
 * rdma-hca programming interface: commands and their mailboxes.
 *
 * Numbers and names are the interface document's (3.2) and, where it is
 * silent, those of Linux's mthca. Mailboxes are big-endian words.
 */
#ifndef RDMA_HCA_CMD_H
#define RDMA_HCA_CMD_H

#include "rdma_hca_sizes.h"
#include "rdma_hca_types.h"

#define RDMA_HCA_CMD_QUERY_DEV_LIM	0x003
#define RDMA_HCA_CMD_QUERY_FW		0x004
#define RDMA_HCA_CMD_QUERY_ADAPTER	0x006
#define RDMA_HCA_CMD_INIT_HCA		0x007
#define RDMA_HCA_CMD_CLOSE_HCA		0x008
#define RDMA_HCA_CMD_INIT_IB		0x009
#define RDMA_HCA_CMD_CLOSE_IB		0x00a
#define RDMA_HCA_CMD_SET_IB		0x00c
#define RDMA_HCA_CMD_SW2HW_MPT		0x00d
#define RDMA_HCA_CMD_QUERY_MPT		0x00e
#define RDMA_HCA_CMD_HW2SW_MPT		0x00f
#define RDMA_HCA_CMD_READ_MTT		0x010
#define RDMA_HCA_CMD_WRITE_MTT		0x011
#define RDMA_HCA_CMD_MAP_EQ		0x012
#define RDMA_HCA_CMD_SW2HW_EQ		0x013
#define RDMA_HCA_CMD_HW2SW_EQ		0x014
#define RDMA_HCA_CMD_QUERY_EQ		0x015
#define RDMA_HCA_CMD_SW2HW_CQ		0x016
#define RDMA_HCA_CMD_HW2SW_CQ		0x017
#define RDMA_HCA_CMD_QUERY_CQ		0x018
#define RDMA_HCA_CMD_RST2INIT_QPEE	0x019
#define RDMA_HCA_CMD_INIT2RTR_QPEE	0x01a
#define RDMA_HCA_CMD_RTR2RTS_QPEE	0x01b
#define RDMA_HCA_CMD_RTS2RTS_QPEE	0x01c
#define RDMA_HCA_CMD_SQERR2RTS_QPEE	0x01d
#define RDMA_HCA_CMD_2ERR_QPEE		0x01e
#define RDMA_HCA_CMD_RTS2SQD_QPEE	0x01f
#define RDMA_HCA_CMD_SQD2RTS_QPEE	0x020
#define RDMA_HCA_CMD_ERR2RST_QPEE	0x021
#define RDMA_HCA_CMD_QUERY_QP		0x022
#define RDMA_HCA_CMD_CONF_SPECIAL_QP	0x023
#define RDMA_HCA_CMD_MAD_IFC		0x024
#define RDMA_HCA_CMD_READ_MGM		0x025
#define RDMA_HCA_CMD_WRITE_MGM		0x026
#define RDMA_HCA_CMD_RESIZE_CQ		0x02c
#define RDMA_HCA_CMD_INIT2INIT_QPEE	0x02d
#define RDMA_HCA_CMD_SYNC_TPT		0x02f
#define RDMA_HCA_CMD_DIAG_RPRT		0x030
#define RDMA_HCA_CMD_NOP		0x031
#define RDMA_HCA_CMD_SW2HW_SRQ		0x035
#define RDMA_HCA_CMD_HW2SW_SRQ		0x036
#define RDMA_HCA_CMD_QUERY_SRQ		0x037
#define RDMA_HCA_CMD_SQD2SQD_QPEE	0x038
#define RDMA_HCA_CMD_ARM_SRQ		0x040
/* Ours, at mlx4's number: simpler than PortInfo through MAD_IFC. */
#define RDMA_HCA_CMD_QUERY_PORT		0x043
/* Ours: the GID table and the Ethernet function of a RoCE card. */
#define RDMA_HCA_CMD_SET_GID		0x050
#define RDMA_HCA_CMD_SETUP_ETH		0x051
#define RDMA_HCA_CMD_SET_RX_MODE	0x052
#define RDMA_HCA_CMD_SET_FLOW		0x053
/* Ours: moderation of completion events. */
#define RDMA_HCA_CMD_MODIFY_CQ		0x054
#define RDMA_HCA_CMD_RESIZE_SRQ		0x055
/* Ours: what is counted for QPs. */
#define RDMA_HCA_CMD_SET_QP_COUNTERS	0x058
#define RDMA_HCA_CMD_QUERY_QP_COUNTERS	0x059
/* Ours: receive-side scaling and interrupts of the Ethernet function. */
#define RDMA_HCA_CMD_SET_RSS		0x05a
#define RDMA_HCA_CMD_MODIFY_ETH		0x05b
/* Ours: flow control of the link. */
#define RDMA_HCA_CMD_SET_PAUSE		0x05c
/* Ours: the NodeDescription of an InfiniBand card. */
#define RDMA_HCA_CMD_SET_NODE_DESC	0x05d
/* Ours: what a packet of a RoCE port holds. */
#define RDMA_HCA_CMD_SET_MTU		0x05e
#define RDMA_HCA_CMD_UNMAP_ICM		0xff9
#define RDMA_HCA_CMD_MAP_ICM		0xffa

/* Status (table 3-1-5; from 0x06 on mthca's). */
#define RDMA_HCA_STAT_OK		0x00
#define RDMA_HCA_STAT_INTERNAL_ERR	0x01
#define RDMA_HCA_STAT_BAD_OP		0x02
#define RDMA_HCA_STAT_BAD_PARAM		0x03
#define RDMA_HCA_STAT_BAD_SYS_STATE	0x04
#define RDMA_HCA_STAT_BAD_NVMEM		0x05
#define RDMA_HCA_STAT_BAD_RESOURCE	0x06	/* already in that state */
#define RDMA_HCA_STAT_RESOURCE_BUSY	0x07	/* in use by another */
#define RDMA_HCA_STAT_EXCEED_LIM	0x08
#define RDMA_HCA_STAT_BAD_RES_STATE	0x09	/* not owned by hardware */
#define RDMA_HCA_STAT_BAD_INDEX		0x0a
#define RDMA_HCA_STAT_BAD_QP_STATE	0x10
#define RDMA_HCA_STAT_BAD_SEG_PARAM	0x20	/* ICM not mapped */
#define RDMA_HCA_STAT_REG_BOUND		0x21
#define RDMA_HCA_STAT_BAD_PKT		0x30
#define RDMA_HCA_STAT_BAD_SIZE		0x40

/* The token of a command that is polled for. */
#define RDMA_HCA_CMD_POLL_TOKEN		0xffff

/* QUERY_DEV_LIM (table 3-2-3): outbox. Words from 38h on are ours. */
struct rdma_hca_dev_lim {
	__be32 reserved_qp_cq_eq_mtt;
	__be32 reserved_pd_lkey;
	__be32 max_qp_cq_sz;
	__be32 max_qps_cqs_eqs_mpts;
	__be32 max_pds_gids_pkeys;
	__be32 mtt_seg_sz;
	__be32 qpc_cqc_entry_sz;
	__be32 eqc_mpt_entry_sz;
	__be32 port;
	__be32 min_page_sz;
	__be32 max_sg_desc_sz;
	__be32 max_sg_desc_sz_rq;
	__be32 max_icm_sz_h;
	__be32 max_icm_sz_l;
	__be32 rd_atomic_inline;
	__be32 uars_mtts_msg;
	__be32 srqs;			/* 40 */
	__be32 srq_page_list;		/* 44 */
	__be32 dev_mem_h;		/* 48: bytes of device memory */
	__be32 dev_mem_l;
	__be32 clock_khz;		/* 50: of the clock in UAR pages */
	__be32 flows;			/* 54: RoCE */
	__be32 xrcds_counters;		/* 58 */
	__be32 reserved5c;
};

/* Counts are logarithms to base 2 unless a comment says otherwise. */
#define RDMA_HCA_DEV_LIM_RESERVED_QP	RDMA_HCA_MASK(31, 24)
#define RDMA_HCA_DEV_LIM_RESERVED_CQ	RDMA_HCA_MASK(23, 16)
#define RDMA_HCA_DEV_LIM_RESERVED_EQ	RDMA_HCA_MASK(15, 8)
#define RDMA_HCA_DEV_LIM_RESERVED_MTT	RDMA_HCA_MASK(7, 0)
#define RDMA_HCA_DEV_LIM_RESERVED_PD	RDMA_HCA_MASK(23, 16)
#define RDMA_HCA_DEV_LIM_RESERVED_LKEY	RDMA_HCA_MASK(7, 0)
#define RDMA_HCA_DEV_LIM_MAX_QP_SZ	RDMA_HCA_MASK(31, 16)
#define RDMA_HCA_DEV_LIM_MAX_CQ_SZ	RDMA_HCA_MASK(15, 0)
#define RDMA_HCA_DEV_LIM_MAX_QPS	RDMA_HCA_MASK(31, 24)
#define RDMA_HCA_DEV_LIM_MAX_CQS	RDMA_HCA_MASK(23, 16)
#define RDMA_HCA_DEV_LIM_MAX_EQS	RDMA_HCA_MASK(15, 8)
#define RDMA_HCA_DEV_LIM_MAX_MPTS	RDMA_HCA_MASK(7, 0)
#define RDMA_HCA_DEV_LIM_MAX_PDS	RDMA_HCA_MASK(31, 24)
#define RDMA_HCA_DEV_LIM_MAX_GIDS	RDMA_HCA_MASK(15, 8)
#define RDMA_HCA_DEV_LIM_MAX_PKEYS	RDMA_HCA_MASK(7, 0)
#define RDMA_HCA_DEV_LIM_MTT_SEG_SZ	RDMA_HCA_MASK(23, 16)	/* bytes */
#define RDMA_HCA_DEV_LIM_QPC_SZ		RDMA_HCA_MASK(31, 16)	/* bytes */
#define RDMA_HCA_DEV_LIM_CQC_SZ		RDMA_HCA_MASK(15, 0)	/* bytes */
#define RDMA_HCA_DEV_LIM_EQC_SZ		RDMA_HCA_MASK(31, 16)	/* bytes */
#define RDMA_HCA_DEV_LIM_MPT_SZ		RDMA_HCA_MASK(15, 0)	/* bytes */
#define RDMA_HCA_DEV_LIM_ACK_DELAY	RDMA_HCA_MASK(27, 24)	/* 4.096 us * 2^n */
#define RDMA_HCA_DEV_LIM_MAX_MTU	RDMA_HCA_MASK(23, 20)	/* IB MTU code */
#define RDMA_HCA_DEV_LIM_MAX_WIDTH	RDMA_HCA_MASK(19, 16)	/* IB width code */
#define RDMA_HCA_DEV_LIM_MAX_VL		RDMA_HCA_MASK(7, 4)	/* count */
#define RDMA_HCA_DEV_LIM_NUM_PORTS	RDMA_HCA_MASK(3, 0)	/* count */
#define RDMA_HCA_DEV_LIM_MIN_PAGE_SZ	RDMA_HCA_MASK(23, 16)
#define RDMA_HCA_DEV_LIM_MAX_SG		RDMA_HCA_MASK(23, 16)	/* count */
#define RDMA_HCA_DEV_LIM_MAX_DESC_SZ	RDMA_HCA_MASK(15, 0)	/* bytes */
#define RDMA_HCA_DEV_LIM_SRA		RDMA_HCA_MASK(31, 24)	/* count, as requester */
#define RDMA_HCA_DEV_LIM_RRA		RDMA_HCA_MASK(23, 16)	/* count, as responder */
#define RDMA_HCA_DEV_LIM_MAX_INLINE	RDMA_HCA_MASK(15, 0)	/* bytes */
#define RDMA_HCA_DEV_LIM_UARS		RDMA_HCA_MASK(31, 24)
#define RDMA_HCA_DEV_LIM_MTTS		RDMA_HCA_MASK(23, 16)
#define RDMA_HCA_DEV_LIM_MAX_MSG	RDMA_HCA_MASK(7, 0)
#define RDMA_HCA_DEV_LIM_MAX_SRQS	RDMA_HCA_MASK(31, 24)
#define RDMA_HCA_DEV_LIM_MAX_SRQ_WQES	RDMA_HCA_MASK(23, 16)
#define RDMA_HCA_DEV_LIM_SRQC_SZ	RDMA_HCA_MASK(15, 0)	/* bytes */
#define RDMA_HCA_DEV_LIM_RESERVED_SRQ	RDMA_HCA_MASK(31, 24)
#define RDMA_HCA_DEV_LIM_MAX_SRQ_SGE	RDMA_HCA_MASK(23, 16)	/* count */
#define RDMA_HCA_DEV_LIM_MAX_PAGE_LIST	RDMA_HCA_MASK(15, 0)	/* count, of a REG_MR */
#define RDMA_HCA_DEV_LIM_MAX_FLOWS	RDMA_HCA_MASK(31, 24)
#define RDMA_HCA_DEV_LIM_MAX_XRCDS	RDMA_HCA_MASK(31, 24)
#define RDMA_HCA_DEV_LIM_MAX_COUNTER_SETS RDMA_HCA_MASK(23, 16)
/* Of all send queues; 0: not told. */
#define RDMA_HCA_DEV_LIM_SQ_SLOTS	RDMA_HCA_MASK(15, 8)

/* QUERY_FW (ours): outbox. */
struct rdma_hca_fw {
	__be32 magic;			/* RDMA_HCA_FW_MAGIC */
	__be32 interface_version;	/* RDMA_HCA_INTERFACE_VERSION */
	__be32 features;		/* RDMA_HCA_FEATURE_* */
	__be32 fw_version;		/* major 31:16, minor 15:0 */
	__be32 reserved[12];
};

#define RDMA_HCA_FW_MAGIC		0x72686361	/* "rhca" */
#define RDMA_HCA_FEATURE_RQ_DB_RECORD	RDMA_HCA_MASK(0, 0)
#define RDMA_HCA_FEATURE_CQ_CI_RECORD	RDMA_HCA_MASK(1, 1)
#define RDMA_HCA_FEATURE_CMD_EVENT	RDMA_HCA_MASK(2, 2)
#define RDMA_HCA_FEATURE_DIAG		RDMA_HCA_MASK(3, 3)
#define RDMA_HCA_FEATURE_ETH		RDMA_HCA_MASK(4, 4)	/* link layer RoCE */
#define RDMA_HCA_FEATURE_MCAST		RDMA_HCA_MASK(5, 5)
#define RDMA_HCA_FEATURE_SRQ		RDMA_HCA_MASK(6, 6)
#define RDMA_HCA_FEATURE_XRC		RDMA_HCA_MASK(7, 7)
#define RDMA_HCA_FEATURE_MEM_MGT	RDMA_HCA_MASK(8, 8)	/* REG_MR, invalidation */
#define RDMA_HCA_FEATURE_MW		RDMA_HCA_MASK(9, 9)	/* memory windows */
#define RDMA_HCA_FEATURE_TIMESTAMP	RDMA_HCA_MASK(10, 10)	/* clock, time in CQEs */
#define RDMA_HCA_FEATURE_CQ_MODERATION	RDMA_HCA_MASK(11, 11)
#define RDMA_HCA_FEATURE_RAW		RDMA_HCA_MASK(12, 12)	/* raw packet QPs, flow rules */
#define RDMA_HCA_FEATURE_DEV_MEM	RDMA_HCA_MASK(13, 13)	/* device memory, in BAR 4 */
#define RDMA_HCA_FEATURE_ATOMIC_WRITE	RDMA_HCA_MASK(14, 14)
#define RDMA_HCA_FEATURE_FLUSH		RDMA_HCA_MASK(15, 15)
#define RDMA_HCA_FEATURE_NULL_MR	RDMA_HCA_MASK(16, 16)
#define RDMA_HCA_FEATURE_ROCE_V1_GIDS	RDMA_HCA_MASK(17, 17)	/* they have places */
#define RDMA_HCA_FEATURE_QP_COUNTERS	RDMA_HCA_MASK(20, 20)
#define RDMA_HCA_FEATURE_ETH_TSO	RDMA_HCA_MASK(21, 21)	/* TCP segmentation */
#define RDMA_HCA_FEATURE_ETH_RSS	RDMA_HCA_MASK(22, 22)
#define RDMA_HCA_FEATURE_ETH_MODERATION	RDMA_HCA_MASK(23, 23)
#define RDMA_HCA_FEATURE_ETH_PAUSE	RDMA_HCA_MASK(24, 24)
#define RDMA_HCA_FEATURE_MAD		RDMA_HCA_MASK(25, 25)	/* special QPs, agents */
#define RDMA_HCA_FEATURE_SET_MTU	RDMA_HCA_MASK(26, 26)
#define RDMA_HCA_FEATURE_BLOCK_LOOPBACK	RDMA_HCA_MASK(27, 27)	/* of multicasts */

/* QUERY_ADAPTER (table 3-2-6): outbox. INTA_PIN is absent: MSI-X only. */
struct rdma_hca_adapter {
	__be32 reserved[6];
	__be32 board_id_h;
	__be32 board_id_l;
};

/* INIT_HCA (table 3-2-9): inbox. */
struct rdma_hca_init_hca {
	__be32 reserved[2];
	__be32 qpc_base_h;
	__be32 qpc_base_l;
	__be32 cqc_base_h;
	__be32 cqc_base_l;
	__be32 eqc_base_h;
	__be32 eqc_base_l;
	__be32 srqc_base_h;	/* 20: ours */
	__be32 srqc_base_l;
	__be32 reserved2[2];
	__be32 mpt_base_h;
	__be32 mpt_base_l;
	__be32 mtt_base_h;
	__be32 mtt_base_l;
};

/* In the low words of all bases but MTT's: address 31:8, log of the count. */
#define RDMA_HCA_INIT_BASE		RDMA_HCA_MASK(31, 8)
#define RDMA_HCA_INIT_LOG_NUM		RDMA_HCA_MASK(7, 0)

/*
 * MAP_ICM (table 3-2-13): inbox, IN_MODIFIER entries, OP_MODIFIER the kind.
 * Entries come in groups of two (32 bytes); in a group the lower-numbered
 * one is at the higher address.
 */
struct rdma_hca_icm_entry {
	__be32 virt_h;
	__be32 virt_l;
	__be32 page_h;
	__be32 page_l;		/* bus address 31:12, count of 4 KiB pages 11:0 */
};

#define RDMA_HCA_ICM_PAGE		RDMA_HCA_MASK(31, 12)
#define RDMA_HCA_ICM_PAGE_NUM		RDMA_HCA_MASK(11, 0)
#define RDMA_HCA_ICM_SLOT(i)		((i) ^ 1)
#define RDMA_HCA_ICM_MAX_ENTRIES	256
/* OP_MODIFIER of MAP_ICM and UNMAP_ICM. */
#define RDMA_HCA_ICM_CXT		1	/* QPC, CQC, EQC, SRQC */
#define RDMA_HCA_ICM_TPT		2	/* MPT, MTT */

/*
 * WRITE_MTT (table 3-2-22): inbox, IN_MODIFIER entries. Entries come in
 * groups of four (32 bytes) in descending order. READ_MTT (ours): IN_PARAM
 * is the first index, the outbox has the same layout.
 */
struct rdma_hca_mtt_mailbox {
	__be32 reserved[6];
	__be32 start_index_h;
	__be32 start_index_l;
	struct {
		__be32 addr_h;
		__be32 addr_l;
	} entry[];
};

#define RDMA_HCA_MTT_SLOT(i)		((i) ^ 3)
#define RDMA_HCA_MTT_MAX_ENTRIES	508

/* MAP_EQ (3.2.4.1): IN_PARAM is the 64-bit event mask. */
#define RDMA_HCA_MAP_EQ_UNMAP		RDMA_HCA_MASK(31, 31)
#define RDMA_HCA_MAP_EQ_EQN		RDMA_HCA_MASK(30, 0)

/* MODIFY_QP (3.2.6.1): OP_MODIFIER of 2ERR and ERR2RST without an inbox. */
#define RDMA_HCA_MODIFY_NO_INBOX	3
/* IN_MODIFIER of RTS2SQD: QPN and whether to send SQ_DRAINED (mthca's). */
#define RDMA_HCA_RTS2SQD_EVENT		RDMA_HCA_MASK(31, 31)
#define RDMA_HCA_QPN_MASK		RDMA_HCA_MASK(23, 0)

/* RESIZE_CQ (table 3-2-37): inbox. */
struct rdma_hca_resize_cq {
	__be32 logsize;		/* 31:24 */
	__be32 lkey;
	__be32 reserved[6];
};

#define RDMA_HCA_RESIZE_CQ_LOGSIZE	RDMA_HCA_MASK(31, 24)

/*
 * RESIZE_SRQ (ours): inbox. The card goes on in another queue with slots of the
 * same size; WQE n since SW2HW_SRQ is there in slot n modulo their number.
 */
struct rdma_hca_resize_srq {
	__be32 len;		/* bytes: slots times a power of two */
	__be32 lkey;
	__be32 reserved[6];
};

/* ARM_SRQ (mthca's): IN_PARAM is the limit, 0 for none. */

/*
 * MODIFY_CQ (ours): IN_PARAM. An event of a CQ that is armed for the next
 * entry waits for COUNT entries, or for PERIOD (us) after the first of them.
 * Either one 0: it does not wait. Word 38h of the CQ context has the same.
 */
#define RDMA_HCA_MODERATION_COUNT	RDMA_HCA_MASK(31, 16)
#define RDMA_HCA_MODERATION_PERIOD	RDMA_HCA_MASK(15, 0)

/*
 * DIAG_RPRT (ours): outbox. IN_MODIFIER is the number of the first counter
 * wanted, OP_MODIFIER whether values or names are. A counter keeps its number
 * and its name; new ones get the next numbers.
 */
#define RDMA_HCA_DIAG_VALUES		0
#define RDMA_HCA_DIAG_NAMES		1
#define RDMA_HCA_DIAG_MAX_VALUES	510
#define RDMA_HCA_DIAG_MAX_NAMES		127
#define RDMA_HCA_DIAG_NAME_SIZE		32

struct rdma_hca_diag {
	__be32 total;		/* counters that the card has */
	__be32 first;		/* IN_MODIFIER */
	__be32 count;		/* entries that follow */
	__be32 reserved;
	union {
		struct {
			__be32 h;
			__be32 l;
		} value[RDMA_HCA_DIAG_MAX_VALUES];
		/* ASCII, ended by a zero */
		char name[RDMA_HCA_DIAG_MAX_NAMES][RDMA_HCA_DIAG_NAME_SIZE];
	};
};

/*
 * SET_QP_COUNTERS (ours): IN_MODIFIER is a QPN, IN_PARAM the number of the set
 * that the QP counts in from now on; 0 is that of QPs which are in no other.
 *
 * QUERY_QP_COUNTERS (ours): IN_MODIFIER is the number of a set; outbox as
 * DIAG_RPRT's, with all that a set has. OP_MODIFIER is whether values or names
 * are wanted, or values of which each begins anew.
 */
#define RDMA_HCA_QP_COUNTERS_CLEAR	2

/* QUERY_PORT (ours): IN_MODIFIER is the port; outbox. */
struct rdma_hca_port {
	__be32 state;
	__be32 mtu_width_speed;
	__be32 lid;
	__be32 sm;
	__be32 cap_mask;
	__be32 link_layer;
	__be32 gid_prefix_h;
	__be32 gid_prefix_l;
	__be32 guid_h;
	__be32 guid_l;
	__be32 mac_h;		/* bytes 0 to 3 of the MAC */
	__be32 mac_l;		/* bytes 4 and 5 in 31:16 */
	__be32 violations;	/* packets with a wrong key, up to 65535 */
	__be32 eth;		/* the interface */
	__be32 mgmt;		/* what a subnet manager has set besides */
	__be32 reserved;
	__be32 pkeys[RDMA_HCA_MAX_PKEYS / 2];
	struct {
		__be32 h;
		__be32 l;
	} guids[RDMA_HCA_MAX_GUIDS];	/* InfiniBand; 0: none */
};

/* Key @i is in word @i / 2, the even ones in the high half; 0: no key. */
#define RDMA_HCA_PORT_PKEY(i)		((i) % 2 ? RDMA_HCA_MASK(15, 0) : \
					RDMA_HCA_MASK(31, 16))
#define RDMA_HCA_PORT_PKEY_VIOLATIONS	RDMA_HCA_MASK(31, 16)
#define RDMA_HCA_PORT_QKEY_VIOLATIONS	RDMA_HCA_MASK(15, 0)

#define RDMA_HCA_PORT_STATE		RDMA_HCA_MASK(3, 0)	/* enum ibv_port_state */
#define RDMA_HCA_PORT_PHYS_STATE	RDMA_HCA_MASK(7, 4)	/* IB PortPhysicalState */
#define RDMA_HCA_PORT_MAX_MTU		RDMA_HCA_MASK(3, 0)	/* IB MTU code */
#define RDMA_HCA_PORT_ACTIVE_MTU	RDMA_HCA_MASK(7, 4)
#define RDMA_HCA_PORT_WIDTH		RDMA_HCA_MASK(15, 8)	/* IB width code */
#define RDMA_HCA_PORT_SPEED		RDMA_HCA_MASK(23, 16)	/* IB speed code */
#define RDMA_HCA_PORT_MAX_VL		RDMA_HCA_MASK(27, 24)
#define RDMA_HCA_PORT_LID		RDMA_HCA_MASK(15, 0)
#define RDMA_HCA_PORT_LMC		RDMA_HCA_MASK(18, 16)
#define RDMA_HCA_PORT_SM_LID		RDMA_HCA_MASK(15, 0)
#define RDMA_HCA_PORT_SM_SL		RDMA_HCA_MASK(19, 16)
#define RDMA_HCA_PORT_SUBNET_TIMEOUT	RDMA_HCA_MASK(4, 0)
#define RDMA_HCA_PORT_INIT_TYPE_REPLY	RDMA_HCA_MASK(11, 8)
#define RDMA_HCA_PORT_LINK_LAYER	RDMA_HCA_MASK(0, 0)
#define RDMA_HCA_PORT_ETH_QUEUES	RDMA_HCA_MASK(19, 16)	/* pairs of rings */
#define RDMA_HCA_PORT_ETH_MAX_MTU	RDMA_HCA_MASK(15, 0)	/* bytes behind the header */
#define RDMA_HCA_LINK_LAYER_IB		0
#define RDMA_HCA_LINK_LAYER_ROCE	1

/*
 * SET_IB (mthca): IN_MODIFIER is the port; inbox. CAP_MASK is what software
 * wants to stand in the port's CapabilityMask, of which it may change the bits
 * of RDMA_HCA_CAP_SOFTWARE.
 */
struct rdma_hca_set_ib {
	__be32 flags;
	__be32 cap_mask;
	__be32 guid_h;		/* SystemImageGUID */
	__be32 guid_l;
	__be32 reserved[4];
};

#define RDMA_HCA_SET_IB_RESET_QKEY	RDMA_HCA_MASK(0, 0)	/* violations */
#define RDMA_HCA_SET_IB_SYSTEM_GUID	RDMA_HCA_MASK(18, 18)
/* IsSM, CM, SNMP tunnelling, device management, vendor class, boot management */
#define RDMA_HCA_CAP_SOFTWARE		0x009b0002

/* SET_NODE_DESC (ours): inbox of 64 bytes, filled up with zeros. */
#define RDMA_HCA_NODE_DESC_SIZE		64

/*
 * CONF_SPECIAL_QP (mthca): OP_MODIFIER says which one, IN_MODIFIER the number of
 * the QP that takes its place from now on, 0: none. That QP is in RST.
 */
#define RDMA_HCA_SPECIAL_SMI		0
#define RDMA_HCA_SPECIAL_GSI		1

/*
 * MAD_IFC (mthca): a MAD for the card's agents; outbox: its answer, 256 bytes.
 * IN_MODIFIER: the port in 15:0, the SLID that the MAD came with in 31:16.
 * BAD_PKT: there is no answer. What is behind MAD comes with OP_MODIFIER's
 * EXTENDED alone.
 */
struct rdma_hca_mad_ifc {
	__u8 mad[RDMA_HCA_MAD_SIZE];
	__be32 my_qpn;		/* 100: 0 or 1 */
	__be32 reserved;
	__be32 rqpn;		/* 108 */
	__u8 sl;		/* 10c: in 7:4 */
	__u8 grh_path;		/* 10d: a GRH came 7, path bits 6:0 */
	__be16 slid;		/* 10e */
	__be16 reserved2;
	__be16 pkey_index;	/* 112 */
	__be32 reserved3[11];
	__u8 grh[40];		/* 140 */
	__be32 reserved4[38];
};

#define RDMA_HCA_MAD_IGNORE_MKEY	1
#define RDMA_HCA_MAD_IGNORE_BKEY	2	/* there is no such key */
#define RDMA_HCA_MAD_EXTENDED		4

/*
 * SET_GID (ours): IN_MODIFIER is the index; inbox. The table of a RoCE card
 * is empty after a reset. An entry that is in use may change: packets that
 * are made later have the new addresses.
 */
struct rdma_hca_gid_entry {
	__u8 gid[16];		/* network order; IPv4 as ::ffff:a.b.c.d */
	__be32 type_vlan;
	__be32 mac_h;		/* source MAC: bytes 0 to 3 */
	__be32 mac_l;		/* bytes 4 and 5 in 31:16 */
	__be32 reserved[9];
};

#define RDMA_HCA_GID_TYPE		RDMA_HCA_MASK(31, 28)
#define RDMA_HCA_GID_HAS_VLAN		RDMA_HCA_MASK(16, 16)
#define RDMA_HCA_GID_VLAN		RDMA_HCA_MASK(11, 0)
#define RDMA_HCA_GID_TYPE_NONE		0	/* the entry is empty */
#define RDMA_HCA_GID_TYPE_ROCE_V2	2

/*
 * WRITE_MGM, READ_MGM (mthca's numbers, our layout): IN_MODIFIER is the index
 * of a multicast group; inbox, outbox. A group whose count is 0 is free. A
 * packet to the group is delivered to each of its QPs that is a datagram QP.
 */
struct rdma_hca_mgm {
	__u8 mgid[16];		/* network order */
	__be32 count;
	__be32 reserved[3];
	__be32 qpn[];		/* RDMA_HCA_MGM_MAX_QPS */
};

/*
 * SETUP_ETH (ours): inbox to start the rings of pair IN_MODIFIER, none to stop
 * those of all pairs.
 */
struct rdma_hca_setup_eth {
	__be32 tx_ring_h;	/* bus addresses, aligned to 64 bytes */
	__be32 tx_ring_l;
	__be32 rx_ring_h;
	__be32 rx_ring_l;
	__be32 log_sizes;
	__be32 vectors;		/* MSI-X: transmit 31:16, receive 15:0 */
	__be32 reserved[10];
};

#define RDMA_HCA_SETUP_ETH_STOP		0	/* op_modifier */
#define RDMA_HCA_SETUP_ETH_START	1
#define RDMA_HCA_SETUP_ETH_LOG_TX	RDMA_HCA_MASK(31, 16)	/* descriptors */
#define RDMA_HCA_SETUP_ETH_LOG_RX	RDMA_HCA_MASK(15, 0)
#define RDMA_HCA_SETUP_ETH_TX_VECTOR	RDMA_HCA_MASK(31, 16)
#define RDMA_HCA_SETUP_ETH_RX_VECTOR	RDMA_HCA_MASK(15, 0)

/*
 * MODIFY_ETH (ours): IN_MODIFIER is the pair of rings, IN_PARAM what its
 * interrupts wait for: 63:32 of the transmit ring, 31:0 of the receive ring,
 * each as in MODIFY_CQ, with frames in place of entries.
 */

/*
 * SET_PAUSE (ours): IN_PARAM. Whether PAUSE frames (IEEE 802.3 annex 31B) of a
 * peer stop the port, and whether it sends some when receive rings run short.
 */
#define RDMA_HCA_PAUSE_RX		RDMA_HCA_MASK(0, 0)
#define RDMA_HCA_PAUSE_TX		RDMA_HCA_MASK(1, 1)

/*
 * SET_RSS (ours): inbox. Which receive ring a frame is for: that which @table
 * has for the Toeplitz hash of its addresses and ports, modulo the table's size.
 */
struct rdma_hca_rss {
	__be32 types;		/* what is hashed, RDMA_HCA_RSS_*; 0: all to ring 0 */
	__be32 reserved[3];
	__u8 key[RDMA_HCA_RSS_KEY_SIZE];
	__u8 reserved2[8];
	__u8 table[RDMA_HCA_RSS_TABLE_SIZE];
};

/* Addresses of IP; addresses and ports of TCP and UDP. */
#define RDMA_HCA_RSS_IPV4		RDMA_HCA_MASK(0, 0)
#define RDMA_HCA_RSS_TCP_IPV4		RDMA_HCA_MASK(1, 1)
#define RDMA_HCA_RSS_UDP_IPV4		RDMA_HCA_MASK(2, 2)
#define RDMA_HCA_RSS_IPV6		RDMA_HCA_MASK(3, 3)
#define RDMA_HCA_RSS_TCP_IPV6		RDMA_HCA_MASK(4, 4)
#define RDMA_HCA_RSS_UDP_IPV6		RDMA_HCA_MASK(5, 5)
#define RDMA_HCA_RSS_ALL		RDMA_HCA_MASK(5, 0)

/*
 * SET_RX_MODE (ours): inbox. What the Ethernet function receives besides
 * broadcasts. RDMA packets do not depend on it.
 */
struct rdma_hca_rx_mode {
	__be32 flags;
	__be32 count;		/* of multicast addresses that follow */
	__be32 mac_h;		/* own unicast address: bytes 0 to 3 */
	__be32 mac_l;		/* bytes 4 and 5 in 31:16 */
	__u8 multicast[][8];	/* address in the first six bytes */
};

#define RDMA_HCA_RX_MODE_PROMISC	RDMA_HCA_MASK(0, 0)
#define RDMA_HCA_RX_MODE_ALLMULTI	RDMA_HCA_MASK(1, 1)
#define RDMA_HCA_RX_MODE_MAX_MULTICAST	128
#define RDMA_HCA_RX_MODE_SIZE		1040	/* read by the card in any case */

/*
 * SET_FLOW (ours): IN_MODIFIER is the number of a flow rule. Inbox to add it,
 * none to remove it. Of a frame that arrives, each bit that is set in @mask has
 * to be as in @value; bytes are in network order.
 */
struct rdma_hca_flow_match {
	__u8 dmac[6];
	__u8 smac[6];
	__be16 ether_type;	/* behind the VLAN tags */
	__be16 vlan_tci;	/* of the first one */
	__u8 sip[16];		/* IPv4: ::ffff:a.b.c.d */
	__u8 dip[16];
	__be16 sport;		/* of TCP and UDP */
	__be16 dport;
	__u8 protocol;		/* IPv6: Next Header */
	__u8 tclass;		/* IPv4: TOS */
	__u8 hop_limit;		/* IPv4: TTL */
	__u8 layers;		/* RDMA_HCA_FLOW_HAS_* */
	__be32 flow_label;	/* IPv6, 19:0 */
	__u8 reserved[4];
};

/* What a frame has; the fields of what it does not have are 0. */
#define RDMA_HCA_FLOW_HAS_VLAN		RDMA_HCA_MASK(0, 0)
#define RDMA_HCA_FLOW_HAS_IPV4		RDMA_HCA_MASK(1, 1)
#define RDMA_HCA_FLOW_HAS_IPV6		RDMA_HCA_MASK(2, 2)
#define RDMA_HCA_FLOW_HAS_PORTS		RDMA_HCA_MASK(3, 3)

struct rdma_hca_flow {
	__be32 qpn;
	__be32 kind_priority;
	__be32 tag;		/* in completions of the frames that it gives */
	__be32 reserved;
	struct rdma_hca_flow_match value;
	struct rdma_hca_flow_match mask;
};

#define RDMA_HCA_SET_FLOW_REMOVE	0	/* op_modifier */
#define RDMA_HCA_SET_FLOW_ADD		1
#define RDMA_HCA_FLOW_DONT_TRAP		RDMA_HCA_MASK(31, 31)
#define RDMA_HCA_FLOW_KIND		RDMA_HCA_MASK(19, 16)
#define RDMA_HCA_FLOW_PRIORITY		RDMA_HCA_MASK(15, 0)	/* 0: the first */
/* Kinds. Those other than NORMAL look at neither @value nor the priority. */
#define RDMA_HCA_FLOW_NORMAL		0
#define RDMA_HCA_FLOW_ALL_DEFAULT	1	/* what nothing else takes */
#define RDMA_HCA_FLOW_MC_DEFAULT	2	/* multicast of that */
#define RDMA_HCA_FLOW_SNIFFER		3	/* all that is received or sent */

#endif /* RDMA_HCA_CMD_H */
