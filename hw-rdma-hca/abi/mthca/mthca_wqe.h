/* SPDX-License-Identifier: GPL-2.0-or-later OR Linux-OpenIB */
/*
 * InfiniHost III Lx: work queue entries, in segments of 16 bytes, big-endian.
 * Opcodes are those of rdma_hca_wqe.h.
 */
#ifndef MTHCA_WQE_H
#define MTHCA_WQE_H

#include "../rdma_hca_types.h"

/* How each WQE begins: the next one of its queue, and what it is itself. */
struct mthca_next_seg {
	__be32 nda_op;
	__be32 ee_nds;
	__be32 flags;
	__be32 imm;
};

#define MTHCA_NEXT_NDA		RDMA_HCA_MASK(31, 6)	/* nda_op: in 64 bytes */
#define MTHCA_NEXT_NOP		RDMA_HCA_MASK(4, 0)
#define MTHCA_NEXT_DBD		RDMA_HCA_MASK(7, 7)	/* ee_nds: always set */
#define MTHCA_NEXT_FENCE	RDMA_HCA_MASK(6, 6)
#define MTHCA_NEXT_NDS		RDMA_HCA_MASK(5, 0)
#define MTHCA_NEXT_SOLICITED	RDMA_HCA_MASK(1, 1)	/* flags */
#define MTHCA_NEXT_CQ_UPDATE	RDMA_HCA_MASK(3, 3)

/* An address vector, and whose datagram it is. */
struct mthca_ud_seg {
	__be32 port_pd;
	__u8 reserved04;
	__u8 g_mlpath;
	__be16 dlid;
	__u8 reserved08;
	__u8 gid_index;
	__u8 msg_sr;
	__u8 hop_limit;
	__be32 sl_tclass_flow;
	__u8 dgid[16];
	__be32 dqpn;
	__be32 qkey;
	__be32 reserved28[2];
};

#define MTHCA_AV_PORT		RDMA_HCA_MASK(25, 24)	/* port_pd */
#define MTHCA_AV_GRH		0x80			/* g_mlpath */
#define MTHCA_AV_MLPATH		0x7f
#define MTHCA_AV_SL		RDMA_HCA_MASK(31, 28)	/* sl_tclass_flow */
#define MTHCA_AV_TCLASS		RDMA_HCA_MASK(27, 20)
#define MTHCA_AV_FLOW		RDMA_HCA_MASK(19, 0)

struct mthca_raddr_seg {
	__be32 addr_h;
	__be32 addr_l;
	__be32 rkey;
	__be32 reserved;
};

struct mthca_atomic_seg {
	__be32 swap_add_h;
	__be32 swap_add_l;
	__be32 cmp_h;
	__be32 cmp_l;
};

struct mthca_data_seg {
	__be32 byte_cnt;
	__be32 lkey;
	__be32 addr_h;
	__be32 addr_l;
};

/* In place of byte_cnt: data follow, filled up to 16 bytes. */
#define MTHCA_INLINE_SEG	RDMA_HCA_MASK(31, 31)
#define MTHCA_INLINE_LENGTH	RDMA_HCA_MASK(30, 0)
/* The L_Key that ends the entries of a receive WQE. */
#define MTHCA_INVAL_LKEY	0x100

#endif /* MTHCA_WQE_H */
