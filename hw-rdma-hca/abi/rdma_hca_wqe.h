/* SPDX-License-Identifier: GPL-2.0-or-later OR Linux-OpenIB */
/*
 * rdma-hca programming interface: work, completion and event queue entries.
 *
 * All words are little-endian (interface document, 3.3 and 3.4).
 */
#ifndef RDMA_HCA_WQE_H
#define RDMA_HCA_WQE_H

#include "rdma_hca_sizes.h"
#include "rdma_hca_types.h"

/* Work request opcodes (table 3-3-3): doorbell, NOP field, send CQE. */
#define RDMA_HCA_OPCODE_NOP		0x00
#define RDMA_HCA_OPCODE_SEND_INV	0x01	/* ours, as are REG_MR and LOCAL_INV: mlx4's */
#define RDMA_HCA_OPCODE_RDMA_WRITE	0x08
#define RDMA_HCA_OPCODE_RDMA_WRITE_IMM	0x09
#define RDMA_HCA_OPCODE_SEND		0x0a
#define RDMA_HCA_OPCODE_SEND_IMM	0x0b
#define RDMA_HCA_OPCODE_RDMA_READ	0x10
#define RDMA_HCA_OPCODE_ATOMIC_CS	0x11
#define RDMA_HCA_OPCODE_ATOMIC_FA	0x12
#define RDMA_HCA_OPCODE_ATOMIC_WRITE	0x13	/* ours, as is FLUSH */
#define RDMA_HCA_OPCODE_FLUSH		0x14
#define RDMA_HCA_OPCODE_BIND_MW		0x18
#define RDMA_HCA_OPCODE_REG_MR		0x19
#define RDMA_HCA_OPCODE_LOCAL_INV	0x1b
#define RDMA_HCA_OPCODE_INVALID		0xff	/* in a CQE: an error */

/* next_unit (3.4.1): the first unit of every WQE. */
struct rdma_hca_next_unit {
	__le32 nda_nop;		/* about the next WQE of the chain */
	__le32 nee_nds;		/* about the next WQE; NDS 0 ends the chain */
	__le32 flags;		/* about this WQE */
	union {
		__be32 imm_data;	/* carried as it is, in network order */
		__le32 inv_rkey;	/* SEND_INV */
		__le32 tag;		/* ours: of a WQE of an SRQ, for its CQE */
	};
};

#define RDMA_HCA_NEXT_NDA		RDMA_HCA_MASK(31, 6)	/* 64-byte units */
#define RDMA_HCA_NEXT_NOP		RDMA_HCA_MASK(4, 0)
#define RDMA_HCA_NEXT_DBD		RDMA_HCA_MASK(7, 7)	/* next has a doorbell */
#define RDMA_HCA_NEXT_FENCE		RDMA_HCA_MASK(6, 6)
#define RDMA_HCA_NEXT_NDS		RDMA_HCA_MASK(5, 0)	/* 16-byte units */
#define RDMA_HCA_WQE_CQ_UPDATE		RDMA_HCA_MASK(3, 3)	/* signalled */
#define RDMA_HCA_WQE_EVENT		RDMA_HCA_MASK(2, 2)
#define RDMA_HCA_WQE_SOLICITED		RDMA_HCA_MASK(1, 1)

/*
 * xrc_unit (ours): behind next_unit in the WQEs of an XRC_INI QP, but for
 * those that send nothing.
 */
struct rdma_hca_xrc_unit {
	__le32 srqn;		/* the peer's SRQ, 23:0 */
	__le32 reserved[3];
};

#define RDMA_HCA_XRC_SRQN		RDMA_HCA_MASK(23, 0)

/* raddr_unit (3.4.2): RDMA and atomic operations, and FLUSH. */
struct rdma_hca_raddr_unit {
	__le32 raddr_l;
	__le32 raddr_h;
	__le32 rkey;
	__le32 reserved;
};

/* atomic_unit (3.4.3). */
struct rdma_hca_atomic_unit {
	__le32 swap_add_l;
	__le32 swap_add_h;
	__le32 cmp_l;
	__le32 cmp_h;
};

/* flush_unit (ours): FLUSH. */
struct rdma_hca_flush_unit {
	__le32 length;		/* bytes, RANGE */
	__le32 type_level;	/* as in FETH (IBA annex A19) */
	__le32 reserved[2];
};

#define RDMA_HCA_FLUSH_LEVEL		RDMA_HCA_MASK(5, 4)
#define RDMA_HCA_FLUSH_TYPE		RDMA_HCA_MASK(3, 0)
/* Placement types, bits: enum ibv_placement_type. */
#define RDMA_HCA_FLUSH_TYPE_GLOBAL	(1u << 0)
#define RDMA_HCA_FLUSH_TYPE_PERSISTENT	(1u << 1)
/* Selectivity levels: enum ibv_selectivity_level. */
#define RDMA_HCA_FLUSH_LEVEL_RANGE	0
#define RDMA_HCA_FLUSH_LEVEL_MR		1

/*
 * fast_reg_unit (ours): REG_MR. The list is of 64-bit little-endian bus
 * addresses of pages; of a region with PIECES, of pairs: the address of a
 * piece, and the offset of its end from the start of the region.
 */
struct rdma_hca_fast_reg_unit {
	__le32 access;		/* RDMA_HCA_ACCESS_* */
	__le32 key;
	__le32 list_l;		/* bus address */
	__le32 list_h;
	__le32 start_l;
	__le32 start_h;
	__le32 length_l;
	__le32 length_h;
	__le32 page_size;	/* log of bytes */
	__le32 entries;		/* of the list: pages, or pieces */
	__le32 reserved[2];
};

/* bind_unit (ours): BIND_MW. */
struct rdma_hca_bind_unit {
	__le32 access;		/* RDMA_HCA_ACCESS_* */
	__le32 type;		/* 1 or 2 */
	__le32 rkey;		/* the window's new one */
	__le32 lkey;		/* of the region */
	__le32 addr_l;
	__le32 addr_h;
	__le32 length_l;
	__le32 length_h;
};

/* inv_unit (ours): LOCAL_INV. */
struct rdma_hca_inv_unit {
	__le32 key;
	__le32 reserved[3];
};

/*
 * ud_unit (3.4.4): the address vector. The document gives LIDs, MACs and
 * IPv4 addresses; words 18h, 1ch, 28h and 2ch and the use of PORT are ours.
 * On a RoCE card without GRH the MACs and IPv4 addresses are used; with it
 * DGID, DMAC_H2 with bits 31:16 of word 04h, and the source of entry
 * SGID_INDEX.
 */
struct rdma_hca_ud_unit {
	__le32 port;		/* see RDMA_HCA_UD_* */
	__le32 dlid_slid;	/* or the low 16 bits of the MACs */
	union {
		struct {
			__le32 smac_h;
			__le32 dmac_h;
			__le32 sip;
			__le32 dip;
		};
		__u8 dgid[16];	/* ours: with GRH, network order */
	};
	__le32 flow;		/* ours: traffic class 27:20, flow label 19:0 */
	union {
		__le32 dmac_h2;		/* ours: RoCE with GRH */
		__le32 pkey_index;	/* ours: InfiniBand, QP 1 */
	};
	__le32 dqpn;
	__le32 qkey;		/* bit 31 set: use the QP's own Q_Key */
	__le32 reserved2[2];
};

#define RDMA_HCA_UD_PORT		RDMA_HCA_MASK(3, 0)
#define RDMA_HCA_UD_SL			RDMA_HCA_MASK(7, 4)
#define RDMA_HCA_UD_HOP_LIMIT		RDMA_HCA_MASK(15, 8)
#define RDMA_HCA_UD_SGID_INDEX		RDMA_HCA_MASK(23, 16)
#define RDMA_HCA_UD_GRH			RDMA_HCA_MASK(31, 31)
#define RDMA_HCA_UD_DLID		RDMA_HCA_MASK(31, 16)
#define RDMA_HCA_UD_SLID		RDMA_HCA_MASK(15, 0)
#define RDMA_HCA_UD_PATH_BITS		RDMA_HCA_MASK(6, 0)	/* of the SLID */
#define RDMA_HCA_UD_PKEY_INDEX		RDMA_HCA_MASK(15, 0)

/* inline_unit (3.4.5): header word, then the data, padded to 16 bytes; not of none. */
#define RDMA_HCA_INLINE			RDMA_HCA_MASK(31, 31)
#define RDMA_HCA_INLINE_LENGTH		RDMA_HCA_MASK(30, 0)

/* The longest message: bit 31 alone, where an inline_unit would have no data. */
#define RDMA_HCA_MAX_BYTE_CNT		0x80000000u

/* data_unit (3.4.6). In a receive WQE an all-zero unit ends the list. */
struct rdma_hca_data_unit {
	__le32 byte_cnt;	/* at most RDMA_HCA_MAX_BYTE_CNT */
	__le32 lkey;
	__le32 addr_l;
	__le32 addr_h;
};

/* Completion queue entry (3.3.1). */
struct rdma_hca_cqe {
	__le32 my_qpn;
	__le32 time_l;		/* ours, in the place of my_ee: see CQE_TIME */
	__le32 rqpn;		/* with XRC: the SRQN */
	__le32 rlid_path;	/* see RDMA_HCA_CQE_RLID and following */
	union {
		__be32 imm;	/* as it came: network order */
		__le32 err;	/* error CQE: syndrome and vendor_err */
		__le32 inv_rkey;	/* receive of a Send with invalidate */
		__le32 flow_tag;	/* receive of a frame: of its rule */
		__le32 pkey_index;	/* receive of QP 1; in 31:16 */
	};
	__le32 byte_cnt;
	__le32 wqe;		/* offset of the WQE in its queue; of an SRQ's, its tag */
	__le32 ctrl;
};

#define RDMA_HCA_CQE_RLID		RDMA_HCA_MASK(31, 16)
#define RDMA_HCA_CQE_GRH		RDMA_HCA_MASK(15, 15)
#define RDMA_HCA_CQE_MLPATH		RDMA_HCA_MASK(14, 8)
/* RoCE, in their places. */
#define RDMA_HCA_CQE_HAS_VLAN		RDMA_HCA_MASK(31, 31)
#define RDMA_HCA_CQE_VLAN		RDMA_HCA_MASK(27, 16)
#define RDMA_HCA_CQE_IPV4		RDMA_HCA_MASK(8, 8)
#define RDMA_HCA_CQE_SL			RDMA_HCA_MASK(7, 0)
#define RDMA_HCA_CQE_VENDOR_ERR		RDMA_HCA_MASK(15, 8)
#define RDMA_HCA_CQE_SYNDROME		RDMA_HCA_MASK(7, 0)
#define RDMA_HCA_CQE_OWNER		RDMA_HCA_MASK(31, 24)
#define RDMA_HCA_CQE_XRC		RDMA_HCA_MASK(23, 23)	/* ours: recv of an XRC SRQ */
/* When it was written, by the card's clock: bits 38:32; 31:0 are in time_l. */
#define RDMA_HCA_CQE_TIME_H		RDMA_HCA_MASK(22, 16)
#define RDMA_HCA_CQE_TIME_BITS		39
#define RDMA_HCA_CQE_PKEY_INDEX		RDMA_HCA_MASK(31, 16)
#define RDMA_HCA_CQE_IS_SEND		RDMA_HCA_MASK(15, 8)
#define RDMA_HCA_CQE_OPCODE		RDMA_HCA_MASK(7, 0)	/* recv: BTH opcode */
/* Software writes OWNER_HW before it gives an entry back. */
#define RDMA_HCA_OWNER_SW		0x00
#define RDMA_HCA_OWNER_HW		0x80

/* Syndromes (second table 3-3-3). */
#define RDMA_HCA_SYNDROME_LOCAL_LENGTH_ERR	0x01
#define RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR	0x02
#define RDMA_HCA_SYNDROME_LOCAL_EEC_OP_ERR	0x03
#define RDMA_HCA_SYNDROME_LOCAL_PROT_ERR	0x04
#define RDMA_HCA_SYNDROME_WR_FLUSH_ERR		0x05
#define RDMA_HCA_SYNDROME_MW_BIND_ERR		0x06
#define RDMA_HCA_SYNDROME_BAD_RESP_ERR		0x10
#define RDMA_HCA_SYNDROME_LOCAL_ACCESS_ERR	0x11
#define RDMA_HCA_SYNDROME_REMOTE_INVAL_REQ_ERR	0x12
#define RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR	0x13
#define RDMA_HCA_SYNDROME_REMOTE_OP_ERR		0x14
#define RDMA_HCA_SYNDROME_RETRY_EXC_ERR		0x15
#define RDMA_HCA_SYNDROME_RNR_RETRY_EXC_ERR	0x16
#define RDMA_HCA_SYNDROME_LOCAL_RDD_VIOL_ERR	0x20
#define RDMA_HCA_SYNDROME_REMOTE_INVAL_RD_REQ_ERR 0x21
#define RDMA_HCA_SYNDROME_REMOTE_ABORTED_ERR	0x22
#define RDMA_HCA_SYNDROME_INVAL_EECN_ERR	0x23
#define RDMA_HCA_SYNDROME_INVAL_EEC_STATE_ERR	0x24
/* Not of the document's; by a plan of faults alone */
#define RDMA_HCA_SYNDROME_FATAL_ERR		0x30
#define RDMA_HCA_SYNDROME_RESP_TIMEOUT_ERR	0x31
#define RDMA_HCA_SYNDROME_GENERAL_ERR		0x32
#define RDMA_HCA_SYNDROME_TM_ERR		0x33
#define RDMA_HCA_SYNDROME_TM_RNDV_INCOMPLETE	0x34

/* Event types: the bits of MAP_EQ's mask (table 3-2-25) and ours (mthca's). */
#define RDMA_HCA_EVENT_COMP			0x00
#define RDMA_HCA_EVENT_PATH_MIG			0x01	/* by a fault alone */
#define RDMA_HCA_EVENT_COMM_EST			0x02
#define RDMA_HCA_EVENT_SQ_DRAINED		0x03
#define RDMA_HCA_EVENT_CQ_ERROR			0x04
#define RDMA_HCA_EVENT_WQ_CATAS_ERROR		0x05
#define RDMA_HCA_EVENT_PATH_MIG_FAILED		0x07	/* the same */
#define RDMA_HCA_EVENT_LOCAL_CATAS_ERROR	0x08
#define RDMA_HCA_EVENT_PORT_CHANGE		0x09
#define RDMA_HCA_EVENT_CMD			0x0a
#define RDMA_HCA_EVENT_EQ_OVERFLOW		0x0f
#define RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR	0x10
#define RDMA_HCA_EVENT_WQ_ACCESS_ERROR		0x11
#define RDMA_HCA_EVENT_SRQ_CATAS_ERROR		0x12
#define RDMA_HCA_EVENT_LAST_WQE_REACHED		0x13
#define RDMA_HCA_EVENT_SRQ_LIMIT		0x14
#define RDMA_HCA_EVENT_CONGESTION		0x15	/* ours: a QP got a CNP */
/* Ours, at mlx4's number: a subnet manager has changed the port. */
#define RDMA_HCA_EVENT_PORT_MNG			0x1d

/* PORT_CHANGE subtypes. */
#define RDMA_HCA_PORT_CHANGE_DOWN		1
#define RDMA_HCA_PORT_CHANGE_ACTIVE		4
/* PORT_MNG: what has changed; QUERY_PORT says to what. */
#define RDMA_HCA_PORT_MNG_LID			RDMA_HCA_MASK(0, 0)	/* or LMC */
#define RDMA_HCA_PORT_MNG_SM			RDMA_HCA_MASK(1, 1)	/* its LID or SL */
#define RDMA_HCA_PORT_MNG_PKEYS			RDMA_HCA_MASK(2, 2)
#define RDMA_HCA_PORT_MNG_GIDS			RDMA_HCA_MASK(3, 3)	/* or the prefix */
#define RDMA_HCA_PORT_MNG_REREGISTER		RDMA_HCA_MASK(4, 4)	/* ClientReregister */
/* CQ_ERROR syndromes. */
#define RDMA_HCA_CQ_ERROR_OVERRUN		1
#define RDMA_HCA_CQ_ERROR_ACCESS		2

/* Event queue entry (ours). */
struct rdma_hca_eqe {
	__u8 type;
	__u8 subtype;
	__le16 reserved;
	union {
		__le32 raw[6];
		struct {
			__le32 cqn;
			__le32 syndrome;	/* CQ_ERROR only */
		} cq;
		struct {
			__le32 qpn;
		} qp;
		struct {
			__le32 srqn;
		} srq;
		struct {
			__le32 port;
			__le32 changes;	/* PORT_MNG: see RDMA_HCA_PORT_MNG_* */
		} port;
		struct {
			__le32 token;
			__le32 status;
			__le32 out_param_h;
			__le32 out_param_l;
		} cmd;
	};
	__u8 reserved2[3];
	__u8 owner;		/* as in a CQE */
};

#endif /* RDMA_HCA_WQE_H */
