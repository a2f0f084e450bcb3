/* SPDX-License-Identifier: GPL-2.0-or-later OR Linux-OpenIB */
/*
 * rdma-hca programming interface: QP, CQ, EQ, SRQ and MPT contexts.
 *
 * Each is the mailbox of its command and the entry in ICM (interface
 * document 3.2.3 to 3.2.6, context document 4.2). Big-endian words.
 */
#ifndef RDMA_HCA_CXT_H
#define RDMA_HCA_CXT_H

#include "rdma_hca_sizes.h"
#include "rdma_hca_types.h"

/*
 * QP context (table 3-2-40). What the document leaves open is ours: the
 * unused bits of words 10h, 20h and 28h, words 68h, a0h to b8h and c0h to fch.
 *
 * On a RoCE card the path is, without GRH, the document's: both MACs, SIP and
 * DIP (IPv4). With GRH (ours) it is DMAC, RGID (IPv4 as ::ffff:a.b.c.d) and the
 * source of entry SGID_INDEX of the GID table.
 */
struct rdma_hca_qpc {
	__be32 opt_param_mask;		/* 00: RDMA_HCA_QP_ATTR_* */
	__be32 reserved0;
	__be32 flags;			/* 08 */
	__be32 mtu_msgmax_sz;		/* 0c */
	__be32 usr_page;		/* 10: UAR page of the SQ doorbell */
	__be32 local_qpn;		/* 14 */
	__be32 remote_qpn;		/* 18 */
	__be32 port_pkey;		/* 1c */
	__be32 rnr_retry_path;		/* 20 */
	__be32 ackto_path;		/* 24 */
	__be32 sl_tclass_flowlabel;	/* 28 */
	__be32 rgid[4];			/* 2c: high word first */
	__be32 dlid_slid;		/* 3c: or the low 16 bits of the MACs */
	__be32 smac_h;			/* 40 */
	__be32 dmac_h;			/* 44 */
	__be32 sip;			/* 48 */
	__be32 dip;			/* 4c */
	__be32 alt_path[3];		/* 50 */
	__be32 pd;			/* 5c */
	__be32 wqe_base;		/* 60: unused */
	__be32 wqe_lkey;		/* 64: unused */
	__be32 params1;			/* 68: ours */
	__be32 next_send_psn;		/* 6c */
	__be32 cqn_snd;			/* 70 */
	__be32 snd_wqe_base_l;		/* 74: L_Key of the send queue */
	__be32 snd_wqe_len;		/* 78: bytes */
	__be32 last_acked_psn;		/* 7c: oldest unacknowledged (UPSN) */
	__be32 ssn;			/* 80 */
	__be32 rnr_nextrecvpsn;		/* 84 */
	__be32 ra_buff_indx;		/* 88 */
	__be32 cqn_rcv;			/* 8c */
	__be32 rcv_wqe_base_l;		/* 90: L_Key of the receive queue */
	__be32 rcv_wqe_len;		/* 94: bytes */
	__be32 qkey;			/* 98 */
	__be32 rmsn;			/* 9c */
	__be32 rq_db_h;			/* a0: ours: posted-count record */
	__be32 rq_db_l;			/* a4 */
	__be32 xrcd;			/* a8: XRC_TGT */
	__be32 srq;			/* ac: mthca's */
	__be32 counter_set;		/* b0: ours */
	__be32 reserved1[2];		/* b4 */
	__be32 wqe_counter;		/* bc: RQ 31:16, SQ 15:0 */
	__be32 reserved2[16];		/* c0 */
};

#define RDMA_HCA_QPC_STATE		RDMA_HCA_MASK(31, 28)	/* flags */
#define RDMA_HCA_QPC_SERVICE		RDMA_HCA_MASK(23, 16)
#define RDMA_HCA_QPC_SQ_DRAINING	RDMA_HCA_MASK(0, 0)	/* ours, QUERY_QP */
#define RDMA_HCA_QPC_PRIVILEGED		RDMA_HCA_MASK(1, 1)	/* ours: may post REG_MR */
#define RDMA_HCA_QPC_BLOCK_LOOPBACK	RDMA_HCA_MASK(2, 2)	/* ours: UD */
#define RDMA_HCA_QPC_MTU		RDMA_HCA_MASK(31, 29)	/* IB MTU code 1..5 */
#define RDMA_HCA_QPC_MSGMAX		RDMA_HCA_MASK(28, 24)	/* log of bytes */
#define RDMA_HCA_QPC_RQ_ENTRY_SZ	RDMA_HCA_MASK(23, 16)	/* log of bytes */
#define RDMA_HCA_QPC_SQ_ENTRY_SZ	RDMA_HCA_MASK(15, 8)	/* log of bytes */
#define RDMA_HCA_QPC_UAR		RDMA_HCA_MASK(23, 0)
#define RDMA_HCA_QPC_PORT		RDMA_HCA_MASK(26, 24)
#define RDMA_HCA_QPC_PKEY_INDEX		RDMA_HCA_MASK(6, 0)
#define RDMA_HCA_QPC_RNR_RETRY		RDMA_HCA_MASK(26, 24)	/* rnr_retry_path */
#define RDMA_HCA_QPC_GRH		RDMA_HCA_MASK(23, 23)
#define RDMA_HCA_QPC_MLPATH		RDMA_HCA_MASK(22, 16)
#define RDMA_HCA_QPC_RETRY_COUNT	RDMA_HCA_MASK(10, 8)	/* ours */
#define RDMA_HCA_QPC_ACK_TIMEOUT	RDMA_HCA_MASK(28, 24)	/* ackto_path */
#define RDMA_HCA_QPC_SGID_INDEX		RDMA_HCA_MASK(23, 16)
#define RDMA_HCA_QPC_STATIC_RATE	RDMA_HCA_MASK(15, 8)
#define RDMA_HCA_QPC_HOP_LIMIT		RDMA_HCA_MASK(7, 0)
#define RDMA_HCA_QPC_SL			RDMA_HCA_MASK(31, 28)
#define RDMA_HCA_QPC_TCLASS		RDMA_HCA_MASK(27, 20)
#define RDMA_HCA_QPC_FLOW_LABEL		RDMA_HCA_MASK(19, 0)
#define RDMA_HCA_QPC_DLID		RDMA_HCA_MASK(31, 16)
#define RDMA_HCA_QPC_SLID		RDMA_HCA_MASK(15, 0)
#define RDMA_HCA_QPC_SRA_MAX		RDMA_HCA_MASK(31, 24)	/* max_rd_atomic */
#define RDMA_HCA_QPC_RRA_MAX		RDMA_HCA_MASK(23, 16)	/* max_dest_rd_atomic */
#define RDMA_HCA_QPC_ACCESS		RDMA_HCA_MASK(15, 8)	/* RDMA_HCA_ACCESS_* */
#define RDMA_HCA_QPC_FLUSH		RDMA_HCA_MASK(1, 0)	/* ours: RDMA_HCA_ACCESS_FLUSH */
#define RDMA_HCA_QPC_PSN		RDMA_HCA_MASK(23, 0)
#define RDMA_HCA_QPC_MIN_RNR_TIMER	RDMA_HCA_MASK(28, 24)	/* rnr_nextrecvpsn */
#define RDMA_HCA_QPC_XRCD		RDMA_HCA_MASK(23, 0)
#define RDMA_HCA_QPC_USES_SRQ		RDMA_HCA_MASK(24, 24)	/* srq */
#define RDMA_HCA_QPC_SRQN		RDMA_HCA_MASK(23, 0)
#define RDMA_HCA_QPC_RQ_COUNTER		RDMA_HCA_MASK(31, 16)
#define RDMA_HCA_QPC_SQ_COUNTER		RDMA_HCA_MASK(15, 0)

/* QP states (table 3-2-42). */
#define RDMA_HCA_QP_STATE_RST		0
#define RDMA_HCA_QP_STATE_INIT		1
#define RDMA_HCA_QP_STATE_RTR		2
#define RDMA_HCA_QP_STATE_RTS		3
#define RDMA_HCA_QP_STATE_SQE		4
#define RDMA_HCA_QP_STATE_SQD		5
#define RDMA_HCA_QP_STATE_ERR		6

/* Service types (table 3-2-42). */
#define RDMA_HCA_QP_ST_RC		0
#define RDMA_HCA_QP_ST_UC		1
#define RDMA_HCA_QP_ST_RD		2	/* refused */
#define RDMA_HCA_QP_ST_UD		3
#define RDMA_HCA_QP_ST_XRC_INI		5	/* ours; BTH's of both is 5 */
#define RDMA_HCA_QP_ST_XRC_TGT		6
#define RDMA_HCA_QP_ST_RAW		7	/* ours: Ethernet frames */

/* Bits of opt_param_mask (table A1-3): those of enum ib_qp_attr_mask. */
#define RDMA_HCA_QP_ATTR_STATE			(1u << 0)
#define RDMA_HCA_QP_ATTR_CUR_STATE		(1u << 1)
#define RDMA_HCA_QP_ATTR_EN_SQD_ASYNC_NOTIFY	(1u << 2)
#define RDMA_HCA_QP_ATTR_ACCESS_FLAGS		(1u << 3)
#define RDMA_HCA_QP_ATTR_PKEY_INDEX		(1u << 4)
#define RDMA_HCA_QP_ATTR_PORT			(1u << 5)
#define RDMA_HCA_QP_ATTR_QKEY			(1u << 6)
#define RDMA_HCA_QP_ATTR_AV			(1u << 7)
#define RDMA_HCA_QP_ATTR_PATH_MTU		(1u << 8)
#define RDMA_HCA_QP_ATTR_TIMEOUT		(1u << 9)
#define RDMA_HCA_QP_ATTR_RETRY_CNT		(1u << 10)
#define RDMA_HCA_QP_ATTR_RNR_RETRY		(1u << 11)
#define RDMA_HCA_QP_ATTR_RQ_PSN			(1u << 12)
#define RDMA_HCA_QP_ATTR_MAX_QP_RD_ATOMIC	(1u << 13)
#define RDMA_HCA_QP_ATTR_ALT_PATH		(1u << 14)
#define RDMA_HCA_QP_ATTR_MIN_RNR_TIMER		(1u << 15)
#define RDMA_HCA_QP_ATTR_SQ_PSN			(1u << 16)
#define RDMA_HCA_QP_ATTR_MAX_DEST_RD_ATOMIC	(1u << 17)
#define RDMA_HCA_QP_ATTR_PATH_MIG_STATE		(1u << 18)
#define RDMA_HCA_QP_ATTR_CAP			(1u << 19)
#define RDMA_HCA_QP_ATTR_DEST_QPN		(1u << 20)

/*
 * CQ context (table 3-2-32, context document 4.2.2). CI_DB is the bus address
 * of a 32-bit little-endian consumer index in guest memory (ours; 0: none,
 * the index comes only by the doorbell).
 */
struct rdma_hca_cqc {
	__be32 flags;			/* 00 */
	__be32 start_h;			/* 04: offset of the queue in its region */
	__be32 start_l;			/* 08 */
	__be32 logsize_usrpage;		/* 0c */
	__be32 comp_eqn;		/* 10 */
	__be32 pd;			/* 14 */
	__be32 lkey;			/* 18 */
	__be32 last_notified_index;	/* 1c */
	__be32 solicit_producer_index;	/* 20 */
	__be32 consumer_index;		/* 24 */
	__be32 producer_index;		/* 28 */
	__be32 cqn;			/* 2c */
	__be32 ci_db_h;			/* 30 */
	__be32 ci_db_l;			/* 34 */
	__be32 moderation;		/* 38: ours, QUERY_CQ; see MODIFY_CQ */
	__be32 reserved;
};

#define RDMA_HCA_CQC_STATUS		RDMA_HCA_MASK(31, 28)
#define RDMA_HCA_CQC_TR			RDMA_HCA_MASK(18, 18)	/* address translation */
#define RDMA_HCA_CQC_IGNORE_OVERRUN	RDMA_HCA_MASK(17, 17)	/* mthca's place */
#define RDMA_HCA_CQC_STATE		RDMA_HCA_MASK(11, 8)
#define RDMA_HCA_CQC_LOGSIZE		RDMA_HCA_MASK(31, 24)
#define RDMA_HCA_CQC_UAR		RDMA_HCA_MASK(23, 0)

#define RDMA_HCA_CQ_STATUS_OK		0
#define RDMA_HCA_CQ_STATUS_OVERFLOW	9
#define RDMA_HCA_CQ_STATUS_WRITE_FAIL	10
#define RDMA_HCA_CQ_STATE_DISARMED	0
#define RDMA_HCA_CQ_STATE_ARMED		1
#define RDMA_HCA_CQ_STATE_ARMED_SOLICITED 4
#define RDMA_HCA_CQ_STATE_FIRED		10

/* EQ context (table 3-2-27, context document 4.2.3). */
struct rdma_hca_eqc {
	__be32 flags;			/* 00 */
	__be32 start_h;			/* 04: offset of the queue in its region */
	__be32 start_l;			/* 08 */
	__be32 logsize;			/* 0c: 31:24 */
	__be32 reserved0;
	__be32 msix_vector;		/* 14: 15:0 */
	__be32 pd;			/* 18 */
	__be32 lkey;			/* 1c */
	__be32 reserved1[2];
	__be32 consumer_index;		/* 28 */
	__be32 producer_index;		/* 2c */
	__be32 event_mask_h;		/* 30: ours, QUERY_EQ */
	__be32 event_mask_l;		/* 34 */
	__be32 reserved2[2];
};

#define RDMA_HCA_EQC_STATUS		RDMA_HCA_MASK(31, 28)
#define RDMA_HCA_EQC_OWNER		RDMA_HCA_MASK(27, 24)
#define RDMA_HCA_EQC_TR			RDMA_HCA_MASK(18, 18)
#define RDMA_HCA_EQC_STATE		RDMA_HCA_MASK(11, 8)
#define RDMA_HCA_EQC_LOGSIZE		RDMA_HCA_MASK(31, 24)
#define RDMA_HCA_EQC_VECTOR		RDMA_HCA_MASK(15, 0)

#define RDMA_HCA_EQ_STATUS_OK		0
#define RDMA_HCA_EQ_STATUS_OVERFLOW	9
#define RDMA_HCA_EQ_STATUS_WRITE_FAIL	10
#define RDMA_HCA_EQ_OWNER_SW		0
#define RDMA_HCA_EQ_OWNER_HW		1
#define RDMA_HCA_EQ_STATE_ARMED		1
#define RDMA_HCA_EQ_STATE_FIRED		2
#define RDMA_HCA_EQ_STATE_ALWAYS_ARMED	3

/*
 * SRQ context (ours): a shared receive queue. The queue begins at the start of
 * its region. CQN and XRCD are those of an XRC SRQ alone.
 */
struct rdma_hca_srqc {
	__be32 flags;			/* 00 */
	__be32 len;			/* 04: bytes */
	__be32 pd;			/* 08 */
	__be32 lkey;			/* 0c */
	__be32 db_h;			/* 10: posted-count record */
	__be32 db_l;			/* 14 */
	__be32 limit_wqes;		/* 18: QUERY_SRQ */
	__be32 taken;			/* 1c: QUERY_SRQ: WQEs, modulo 2^16 */
	__be32 cqn;			/* 20 */
	__be32 xrcd;			/* 24 */
	__be32 srqn;			/* 28: QUERY_SRQ */
	__be32 reserved[5];
};

#define RDMA_HCA_SRQC_STATUS		RDMA_HCA_MASK(31, 28)
#define RDMA_HCA_SRQC_XRC		RDMA_HCA_MASK(24, 24)
#define RDMA_HCA_SRQC_ENTRY_SZ		RDMA_HCA_MASK(23, 16)	/* log of bytes */
#define RDMA_HCA_SRQC_LIMIT		RDMA_HCA_MASK(31, 16)	/* 0: not armed */
#define RDMA_HCA_SRQC_WQES		RDMA_HCA_MASK(15, 0)	/* posted, not taken */

#define RDMA_HCA_SRQ_STATUS_OK		0
#define RDMA_HCA_SRQ_STATUS_FAILED	10

/* MPT entry (table 3-2-17, VirtToPhys document 5.6.2). */
struct rdma_hca_mpt {
	__be32 flags;			/* 00 */
	__be32 page_size;		/* 04: log of bytes, less 12 */
	__be32 key;			/* 08: see RDMA_HCA_KEY_* */
	__be32 pd;			/* 0c */
	__be32 start_h;			/* 10 */
	__be32 start_l;			/* 14 */
	__be32 length_h;		/* 18 */
	__be32 length_l;		/* 1c */
	__be32 lkey;			/* 20: of the region a window is bound to */
	union {
		struct {
			__be32 window_count;	/* 24: bound to a region */
			__be32 window_count_limit; /* 28: unused */
		};
		struct {
			__be32 offset_h;	/* 24: of a bound window */
			__be32 offset_l;
		};
	};
	__be32 mtt_seg_h;		/* 2c: index of the first MTT entry */
	__be32 mtt_seg_l;		/* 30 */
	__be32 mtt_sz;			/* 34: ours: number of MTT entries */
	__be32 qpn;			/* 38: ours: of a bound window of type 2 */
	__be32 pieces;			/* 3c: ours: their number, PIECES */
};

/*
 * A key: the number of its entry, modulo the size of the table, and a byte
 * that is its consumer's. The whole key has to be the entry's.
 */
#define RDMA_HCA_KEY_INDEX		RDMA_HCA_MASK(31, 8)
#define RDMA_HCA_KEY_BYTE		RDMA_HCA_MASK(7, 0)

/* A free entry has all SW_OWNS bits set; one in hardware has none. */
#define RDMA_HCA_MPT_SW_OWNS		RDMA_HCA_MASK(31, 28)
#define RDMA_HCA_MPT_WINDOW2		RDMA_HCA_MASK(23, 23)	/* ours: window of type 2 */
#define RDMA_HCA_MPT_DEV_MEM		RDMA_HCA_MASK(22, 22)	/* ours: PHYSICAL, in device memory */
#define RDMA_HCA_MPT_NULL		RDMA_HCA_MASK(21, 21)	/* ours: no memory, any PD */
#define RDMA_HCA_MPT_PIECES		RDMA_HCA_MASK(20, 20)	/* ours: pieces of any length */
#define RDMA_HCA_MPT_FAST_REG		RDMA_HCA_MASK(19, 19)	/* ours: for REG_MR, LOCAL_INV */
#define RDMA_HCA_MPT_FREE		RDMA_HCA_MASK(18, 18)	/* ours: no access as yet */
#define RDMA_HCA_MPT_MIO		RDMA_HCA_MASK(17, 17)	/* local access allowed */
#define RDMA_HCA_MPT_BIND_ENABLE	RDMA_HCA_MASK(15, 15)
#define RDMA_HCA_MPT_FLUSH		RDMA_HCA_MASK(11, 10)	/* ours: RDMA_HCA_ACCESS_FLUSH */
#define RDMA_HCA_MPT_PHYSICAL		RDMA_HCA_MASK(9, 9)	/* address is the bus address */
#define RDMA_HCA_MPT_REGION		RDMA_HCA_MASK(8, 8)	/* else a window */
/* Access flags, in an MPT's flags and a QPC's params1: IBV_ACCESS_*. */
#define RDMA_HCA_ACCESS_LOCAL_WRITE	(1u << 0)
#define RDMA_HCA_ACCESS_REMOTE_WRITE	(1u << 1)
#define RDMA_HCA_ACCESS_REMOTE_READ	(1u << 2)
#define RDMA_HCA_ACCESS_REMOTE_ATOMIC	(1u << 3)
#define RDMA_HCA_ACCESS_MW_BIND		(1u << 4)
#define RDMA_HCA_ACCESS_ZERO_BASED	(1u << 5)
#define RDMA_HCA_ACCESS_ON_DEMAND	(1u << 6)
/* The same in a fast_reg_unit; elsewhere in fields of their own. */
#define RDMA_HCA_ACCESS_FLUSH_GLOBAL	(1u << 8)
#define RDMA_HCA_ACCESS_FLUSH_PERSISTENT (1u << 9)
#define RDMA_HCA_ACCESS_FLUSH		RDMA_HCA_MASK(9, 8)

#endif /* RDMA_HCA_CXT_H */
