/* SPDX-License-Identifier: GPL-2.0-or-later OR Linux-OpenIB */
/*
 * InfiniHost III Lx: commands and their mailboxes, big-endian. Opcodes that are
 * not here are RDMA_HCA_CMD_'s, which have the same numbers.
 */
#ifndef MTHCA_CMD_H
#define MTHCA_CMD_H

#include "../rdma_hca_cmd.h"

#define MTHCA_CMD_MGID_HASH		0x027
#define MTHCA_CMD_RUN_FW		0xff6
#define MTHCA_CMD_ENABLE_LAM		0xff8
#define MTHCA_CMD_UNMAP_ICM_AUX		0xffb
#define MTHCA_CMD_MAP_ICM_AUX		0xffc
#define MTHCA_CMD_SET_ICM_SIZE		0xffd
#define MTHCA_CMD_UNMAP_FA		0xffe
#define MTHCA_CMD_MAP_FA		0xfff

/* Statuses that differ from RDMA_HCA_STAT_'s. */
#define MTHCA_STAT_BAD_RESOURCE		0x05
#define MTHCA_STAT_RESOURCE_BUSY	0x06
#define MTHCA_STAT_BAD_NVMEM		0x0b
#define MTHCA_STAT_LAM_NOT_PRE		0x22	/* no local memory */

/* QUERY_FW: outbox. Addresses are on the bus, in BAR 0. */
struct mthca_fw {
	__be16 pages;		/* of 4 KiB, of the firmware area */
	__be16 major;
	__be16 subminor;
	__be16 minor;
	__be32 cmd_interface;	/* and formats of queues */
	__u8 reserved0c[3];
	__u8 log_max_cmd;	/* commands at once */
	__be32 cmd_doorbells;
	__be32 reserved14[3];
	__be32 clear_int_h;
	__be32 clear_int_l;
	__be32 reserved28[2];
	__be32 catas_h;
	__be32 catas_l;
	__be32 catas_words;
	__be32 reserved3c;
	__be32 eq_arm_h;
	__be32 eq_arm_l;
	__be32 eq_set_ci_h;
	__be32 eq_set_ci_l;
	__be32 reserved50[44];
};

/* QUERY_DEV_LIM: outbox. log: to the base of 2; others are counts, or bytes. */
struct mthca_dev_lim {
	__u8 reserved00[16];
	__u8 log_max_srq_sz;	/* 10 */
	__u8 log_max_qp_sz;
	__u8 log_reserved_qps;
	__u8 log_qps;
	__u8 log_reserved_srqs;	/* 14: 7:4 */
	__u8 log_srqs;
	__u8 log_reserved_eecs;
	__u8 log_eecs;
	__u8 reserved18;
	__u8 log_max_cq_sz;
	__u8 log_reserved_cqs;
	__u8 log_cqs;
	__u8 log_max_eq_sz;	/* 1c */
	__u8 log_mpts;
	__u8 log_reserved_eqs;
	__u8 log_eqs;
	__u8 log_reserved_mtts;	/* 20: 7:4 */
	__u8 log_max_mr_sz;
	__u8 log_reserved_mpts;
	__u8 log_mtt_segs;
	__u8 reserved24[5];
	__u8 log_rd_atomic_qp;	/* 29: as requester */
	__u8 reserved2a;
	__u8 log_dest_rd_atomic_qp;
	__u8 reserved2c[3];
	__u8 log_dest_rd_atomic;	/* 2f: of all */
	__u8 reserved30[5];
	__u8 ack_delay;		/* 35 */
	__u8 mtu_width;		/* 7:4 code, 3:0 mask */
	__u8 vls_ports;		/* 7:4, 3:0 */
	__u8 reserved38[3];
	__u8 log_gids;		/* 3b */
	__be16 static_rates;
	__u8 reserved3e;
	__u8 log_pkeys;
	__u8 reserved40[4];
	__be32 flags;		/* 44 */
	__u8 reserved_uars;	/* 7:4 */
	__u8 log_uar_mbytes;	/* of the area */
	__u8 reserved4a;
	__u8 log_min_page_sz;
	__u8 reserved4c[5];
	__u8 max_sg;		/* 51: of the send queue */
	__be16 max_desc_sz;
	__u8 reserved54;
	__u8 max_sg_rq;
	__be16 max_desc_sz_rq;
	__u8 reserved58[9];
	__u8 log_qps_per_mgm;	/* 61 */
	__u8 reserved_mgms;
	__u8 log_mgms;
	__u8 reserved_pds;	/* 64: 7:4 */
	__u8 log_pds;
	__u8 reserved66[26];
	__be16 eec_sz;		/* 80 */
	__be16 qpc_sz;
	__be16 eeec_sz;
	__be16 eqpc_sz;
	__be16 eqc_sz;		/* 88 */
	__be16 cqc_sz;
	__be16 srqc_sz;
	__be16 uar_scratch_sz;
	__be16 mtt_sz;		/* 90: of a segment */
	__be16 mpt_sz;
	__be32 reserved94[3];
	__be32 max_icm_sz_h;	/* a0 */
	__be32 max_icm_sz_l;
	__be32 reserveda8[22];
};

#define MTHCA_DEV_LIM_RC		0x000001
#define MTHCA_DEV_LIM_UC		0x000002
#define MTHCA_DEV_LIM_UD		0x000004
#define MTHCA_DEV_LIM_SRQ		0x000040
#define MTHCA_DEV_LIM_BAD_PKEY_CNT	0x000100
#define MTHCA_DEV_LIM_BAD_QKEY_CNT	0x000200
#define MTHCA_DEV_LIM_ATOMIC		0x040000
#define MTHCA_DEV_LIM_UD_AV_PORT	0x100000
#define MTHCA_DEV_LIM_UD_MCAST		0x200000

/* QUERY_ADAPTER: outbox. */
struct mthca_adapter {
	__be32 reserved00[4];
	__u8 inta_pin;
	__u8 reserved11[15];
	__u8 vsd[224];
};
/* In vsd: each word's bytes lie in the reverse order. */
#define MTHCA_VSD_BOARD_ID	0xd0
#define MTHCA_BOARD_ID_LEN	16

/* MAP_ICM, MAP_ICM_AUX and MAP_FA: inbox, IN_MODIFIER entries, in their order. */
struct mthca_icm_entry {
	__be32 virt_h;		/* of MAP_ICM alone */
	__be32 virt_l;
	__be32 page_h;
	__be32 page_l;
};
#define MTHCA_ICM_MAX_ENTRIES	256
#define MTHCA_ICM_LOG_PAGES	RDMA_HCA_MASK(4, 0)	/* page_l: of 4 KiB */

/*
 * INIT_HCA: inbox. The low bits of a table's base are the logarithm of its
 * number of entries.
 */
struct mthca_init_hca {
	__be32 reserved00[3];
	__be32 flags1;		/* 0c */
	__be32 reserved10;
	__be32 flags2;
	__be32 reserved18[6];
	__be32 qpc_base_h;	/* 30 */
	__be32 qpc_base_l;
	__be32 reserved38[2];
	__be32 eec_base_h;
	__be32 eec_base_l;
	__be32 srqc_base_h;	/* 48 */
	__be32 srqc_base_l;
	__be32 cqc_base_h;
	__be32 cqc_base_l;
	__be32 reserved58[2];
	__be32 eqpc_base_h;	/* 60 */
	__be32 eqpc_base_l;
	__be32 reserved68[2];
	__be32 eeec_base_h;
	__be32 eeec_base_l;
	__be32 reserved78[2];
	__be32 eqc_base_h;	/* 80 */
	__be32 eqc_base_l;
	__be32 reserved88[2];
	__be32 rdb_base_h;
	__be32 rdb_base_l;
	__be32 reserved98[10];
	__be32 mgm_base_h;	/* c0 */
	__be32 mgm_base_l;
	__be32 reservedc8[2];
	__be32 mgm_log_entry_sz;
	__be32 mgm_hash_sz;
	__be32 mgm_log_table_sz;
	__be32 reserveddc[5];
	__be32 mpt_base_h;	/* f0 */
	__be32 mpt_base_l;
	__be32 mpt_log_sz;
	__be32 reservedfc;
	__be32 mtt_base_h;	/* 100 */
	__be32 mtt_base_l;
	__be32 reserved108[6];
	__be32 uar_base_h;	/* 120 */
	__be32 uar_base_l;
	__be32 uar_sizes;
	__be32 reserved12c;
	__be32 uar_scratch_h;	/* 130 */
	__be32 uar_scratch_l;
	__be32 uarc_base_h;
	__be32 uarc_base_l;
	__be32 reserved140[48];
};

#define MTHCA_INIT_LOG_NUM	RDMA_HCA_MASK(4, 0)	/* bases: low word */
#define MTHCA_INIT_BIG_ENDIAN	RDMA_HCA_MASK(1, 1)	/* flags2: the host is */
#define MTHCA_INIT_MPT_LOG_NUM	RDMA_HCA_MASK(5, 0)	/* mpt_log_sz */
#define MTHCA_INIT_MGM_BUCKETS	RDMA_HCA_MASK(15, 0)	/* mgm_hash_sz */
#define MTHCA_INIT_MGM_LOG_NUM	RDMA_HCA_MASK(4, 0)	/* mgm_log_table_sz */
#define MTHCA_INIT_LOG_UARC	RDMA_HCA_MASK(23, 16)	/* uar_sizes: of 4 KiB */
#define MTHCA_MAX_LOG_UARC	20			/* of bytes */

/* RESIZE_CQ: inbox, with OP_MODIFIER 1. */
struct mthca_resize_cq {
	__be32 reserved00;
	__be32 start_h;
	__be32 start_l;
	__be32 logsize;
	__be32 reserved10[3];
	__be32 lkey;		/* 1c */
	__be32 reserved20[8];
};
#define MTHCA_RESIZE_CQ_LOGSIZE	RDMA_HCA_MASK(28, 24)

#endif /* MTHCA_CMD_H */
