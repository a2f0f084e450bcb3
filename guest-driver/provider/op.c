// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What can be sent (interface document 3.4): a row for each operation. */
#include "wqe.h"

/* Types of QP; one that sends by XRC does what RC does. */
#define RHCA_RC	(1u << IBV_QPT_RC | 1u << IBV_QPT_XRC_SEND)
#define RHCA_UC	(1u << IBV_QPT_UC)
#define RHCA_UD	(1u << IBV_QPT_UD)
#define RHCA_RAW	(1u << IBV_QPT_RAW_PACKET)

const struct rhca_op rhca_ops[RHCA_NUM_OPS] = {
	[IBV_WR_RDMA_WRITE] = {
		.qp_ex = IBV_QP_EX_WITH_RDMA_WRITE,
		.qp_types = RHCA_RC | RHCA_UC,
		.opcode = RDMA_HCA_OPCODE_RDMA_WRITE,
		.has_raddr = true,
	},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {
		.qp_ex = IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
		.qp_types = RHCA_RC | RHCA_UC,
		.opcode = RDMA_HCA_OPCODE_RDMA_WRITE_IMM,
		.has_imm = true,
		.has_raddr = true,
	},
	[IBV_WR_SEND] = {
		.qp_ex = IBV_QP_EX_WITH_SEND,
		.qp_types = RHCA_RC | RHCA_UC | RHCA_UD | RHCA_RAW,
		.opcode = RDMA_HCA_OPCODE_SEND,
	},
	[IBV_WR_SEND_WITH_IMM] = {
		.qp_ex = IBV_QP_EX_WITH_SEND_WITH_IMM,
		.qp_types = RHCA_RC | RHCA_UC | RHCA_UD,
		.opcode = RDMA_HCA_OPCODE_SEND_IMM,
		.has_imm = true,
	},
	[IBV_WR_RDMA_READ] = {
		.qp_ex = IBV_QP_EX_WITH_RDMA_READ,
		.qp_types = RHCA_RC,
		.opcode = RDMA_HCA_OPCODE_RDMA_READ,
		.has_raddr = true,
		.is_response = true,
	},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {
		.qp_ex = IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP,
		.qp_types = RHCA_RC,
		.opcode = RDMA_HCA_OPCODE_ATOMIC_CS,
		.has_raddr = true,
		.has_atomic = true,
		.has_compare = true,
		.is_response = true,
	},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {
		.qp_ex = IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
		.qp_types = RHCA_RC,
		.opcode = RDMA_HCA_OPCODE_ATOMIC_FA,
		.has_raddr = true,
		.has_atomic = true,
		.is_response = true,
	},
	[IBV_WR_ATOMIC_WRITE] = {
		.qp_ex = IBV_QP_EX_WITH_ATOMIC_WRITE,
		.qp_types = RHCA_RC,
		.opcode = RDMA_HCA_OPCODE_ATOMIC_WRITE,
		.has_raddr = true,
	},
#ifdef RHCA_HAS_FLUSH
	[IBV_WR_FLUSH] = {
		.qp_ex = IBV_QP_EX_WITH_FLUSH,
		.qp_types = RHCA_RC,
		.opcode = RDMA_HCA_OPCODE_FLUSH,
		.has_raddr = true,
		.has_flush = true,
	},
#endif
	[IBV_WR_SEND_WITH_INV] = {
		.qp_ex = IBV_QP_EX_WITH_SEND_WITH_INV,
		.qp_types = RHCA_RC,
		.opcode = RDMA_HCA_OPCODE_SEND_INV,
		.has_inv = true,
	},
	[IBV_WR_LOCAL_INV] = {
		.qp_ex = IBV_QP_EX_WITH_LOCAL_INV,
		.qp_types = RHCA_RC | RHCA_UC,
		.opcode = RDMA_HCA_OPCODE_LOCAL_INV,
		.is_local = true,
	},
	[IBV_WR_BIND_MW] = {
		.qp_ex = IBV_QP_EX_WITH_BIND_MW,
		.qp_types = RHCA_RC | RHCA_UC,
		.opcode = RDMA_HCA_OPCODE_BIND_MW,
		.is_local = true,
		.has_bind = true,
	},
};

uint64_t rhca_send_ops(const struct rhca_context *ctx, enum ibv_qp_type type)
{
	uint64_t ops = 0;
	size_t i;

	for (i = 0; i < RHCA_NUM_OPS; i++)
		if (rhca_has_op(type, &rhca_ops[i]))
			ops |= rhca_ops[i].qp_ex;
	return ops & ~ctx->missing_ops;
}

/* What it is in its completion, enum ibv_wc_opcode: by RDMA_HCA_OPCODE_*. */
static const uint8_t rhca_wc_opcodes[] = {
	[RDMA_HCA_OPCODE_SEND] = IBV_WC_SEND,
	[RDMA_HCA_OPCODE_SEND_IMM] = IBV_WC_SEND,
	[RDMA_HCA_OPCODE_SEND_INV] = IBV_WC_SEND,
	[RDMA_HCA_OPCODE_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
	[RDMA_HCA_OPCODE_RDMA_WRITE_IMM] = IBV_WC_RDMA_WRITE,
	[RDMA_HCA_OPCODE_RDMA_READ] = IBV_WC_RDMA_READ,
	[RDMA_HCA_OPCODE_ATOMIC_CS] = IBV_WC_COMP_SWAP,
	[RDMA_HCA_OPCODE_ATOMIC_FA] = IBV_WC_FETCH_ADD,
	[RDMA_HCA_OPCODE_ATOMIC_WRITE] = IBV_WC_ATOMIC_WRITE,
#ifdef RHCA_HAS_FLUSH
	[RDMA_HCA_OPCODE_FLUSH] = IBV_WC_FLUSH,
#endif
	[RDMA_HCA_OPCODE_LOCAL_INV] = IBV_WC_LOCAL_INV,
	[RDMA_HCA_OPCODE_BIND_MW] = IBV_WC_BIND_MW,
};

enum ibv_wc_opcode rhca_send_wc_opcode(uint8_t opcode)
{
	return likely(opcode < ARRAY_SIZE(rhca_wc_opcodes)) ?
		       rhca_wc_opcodes[opcode] : IBV_WC_SEND;
}
