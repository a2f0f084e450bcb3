// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues (interface document 3.3): a ring in this process's memory,
 * the same for ibv_poll_cq() and for ibv_start_poll() and its kin.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma_hca_cmd.h>
#include <util/compiler.h>
#include <util/util.h>

#include "rhca.h"
#include "rhca_uverbs.h"

static void rhca_cq_lock(struct rhca_cq *cq)
{
	if (!cq->single_threaded)
		pthread_spin_lock(&cq->lock);
}

static void rhca_cq_unlock(struct rhca_cq *cq)
{
	if (!cq->single_threaded)
		pthread_spin_unlock(&cq->lock);
}

/* Two CQs, perhaps the same one, always in the same order. */
void rhca_lock_cqs(struct rhca_cq *a, struct rhca_cq *b)
{
	if (a->cqn > b->cqn) {
		rhca_lock_cqs(b, a);
		return;
	}
	rhca_cq_lock(a);
	if (a != b)
		rhca_cq_lock(b);
}

void rhca_unlock_cqs(struct rhca_cq *a, struct rhca_cq *b)
{
	rhca_cq_unlock(a);
	if (a != b)
		rhca_cq_unlock(b);
}

/* --- entries ------------------------------------------------------------ */

static struct rdma_hca_cqe *rhca_cqe(const struct rhca_cq *cq, uint32_t index)
{
	struct rdma_hca_cqe *ring = cq->buf.addr;

	return &ring[index & (cq->entries - 1)];
}

static uint32_t rhca_cqe_ctrl(const struct rdma_hca_cqe *cqe)
{
	return le32toh(atomic_load_explicit(
		(const _Atomic(__le32) *)&cqe->ctrl, memory_order_relaxed));
}

static bool rhca_cqe_is_valid(const struct rdma_hca_cqe *cqe)
{
	return FIELD_GET(RDMA_HCA_CQE_OWNER, rhca_cqe_ctrl(cqe)) ==
	       RDMA_HCA_OWNER_SW;
}

/* The rest of the entry stays readable until the consumer index passes it. */
static void rhca_cqe_give_back(struct rdma_hca_cqe *cqe)
{
	cqe->ctrl |= htole32(FIELD_PREP(RDMA_HCA_CQE_OWNER, RDMA_HCA_OWNER_HW));
}

static uint32_t rhca_cqe_qpn(const struct rdma_hca_cqe *cqe)
{
	return le32toh(cqe->my_qpn) & RDMA_HCA_QPN_MASK;
}

/* A receive into an XRC SRQ. */
static bool rhca_cqe_is_xrc(const struct rdma_hca_cqe *cqe)
{
	return FIELD_GET(RDMA_HCA_CQE_XRC, rhca_cqe_ctrl(cqe));
}

static uint32_t rhca_cqe_srqn(const struct rdma_hca_cqe *cqe)
{
	return le32toh(cqe->rqpn) & RDMA_HCA_XRC_SRQN;
}

static bool rhca_cqe_is_send(const struct rdma_hca_cqe *cqe)
{
	return FIELD_GET(RDMA_HCA_CQE_IS_SEND, rhca_cqe_ctrl(cqe));
}

static uint8_t rhca_cqe_opcode(const struct rdma_hca_cqe *cqe)
{
	return FIELD_GET(RDMA_HCA_CQE_OPCODE, rhca_cqe_ctrl(cqe));
}

static bool rhca_cqe_is_error(const struct rdma_hca_cqe *cqe)
{
	return rhca_cqe_opcode(cqe) == RDMA_HCA_OPCODE_INVALID;
}

static void rhca_ring_init(const struct rhca_buf *buf, uint32_t entries)
{
	struct rdma_hca_cqe *cqe = buf->addr;
	uint32_t i;

	for (i = 0; i < entries; i++)
		rhca_cqe_give_back(&cqe[i]);
}

/* From here on the card may write entries before the consumer index. */
static uint32_t rhca_cq_published(const struct rhca_cq *cq)
{
	return le32toh(atomic_load_explicit((_Atomic(__le32) *)cq->ci_db,
					    memory_order_relaxed));
}

static void rhca_cq_publish(struct rhca_cq *cq)
{
	if (rhca_cq_published(cq) == cq->ci)
		return;
	/* They have been read. */
	udma_from_device_barrier();
	rhca_store_record(cq->ci_db, cq->ci);
}

/* Entries from the consumer index on that are the software's. */
static uint32_t rhca_cq_outstanding(const struct rhca_cq *cq)
{
	uint32_t n = 0;

	while (n < cq->entries && rhca_cqe_is_valid(rhca_cqe(cq, cq->ci + n)))
		n++;
	udma_from_device_barrier();
	return n;
}

/* --- what an entry says ------------------------------------------------- */

static enum ibv_wc_status rhca_wc_status(uint32_t syndrome)
{
	static const uint8_t table[] = {
		[RDMA_HCA_SYNDROME_LOCAL_LENGTH_ERR] = IBV_WC_LOC_LEN_ERR,
		[RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR] = IBV_WC_LOC_QP_OP_ERR,
		[RDMA_HCA_SYNDROME_LOCAL_EEC_OP_ERR] = IBV_WC_LOC_EEC_OP_ERR,
		[RDMA_HCA_SYNDROME_LOCAL_PROT_ERR] = IBV_WC_LOC_PROT_ERR,
		[RDMA_HCA_SYNDROME_WR_FLUSH_ERR] = IBV_WC_WR_FLUSH_ERR,
		[RDMA_HCA_SYNDROME_MW_BIND_ERR] = IBV_WC_MW_BIND_ERR,
		[RDMA_HCA_SYNDROME_BAD_RESP_ERR] = IBV_WC_BAD_RESP_ERR,
		[RDMA_HCA_SYNDROME_LOCAL_ACCESS_ERR] = IBV_WC_LOC_ACCESS_ERR,
		[RDMA_HCA_SYNDROME_REMOTE_INVAL_REQ_ERR] =
			IBV_WC_REM_INV_REQ_ERR,
		[RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR] = IBV_WC_REM_ACCESS_ERR,
		[RDMA_HCA_SYNDROME_REMOTE_OP_ERR] = IBV_WC_REM_OP_ERR,
		[RDMA_HCA_SYNDROME_RETRY_EXC_ERR] = IBV_WC_RETRY_EXC_ERR,
		[RDMA_HCA_SYNDROME_RNR_RETRY_EXC_ERR] =
			IBV_WC_RNR_RETRY_EXC_ERR,
		[RDMA_HCA_SYNDROME_LOCAL_RDD_VIOL_ERR] =
			IBV_WC_LOC_RDD_VIOL_ERR,
		[RDMA_HCA_SYNDROME_REMOTE_INVAL_RD_REQ_ERR] =
			IBV_WC_REM_INV_RD_REQ_ERR,
		[RDMA_HCA_SYNDROME_REMOTE_ABORTED_ERR] = IBV_WC_REM_ABORT_ERR,
		[RDMA_HCA_SYNDROME_INVAL_EECN_ERR] = IBV_WC_INV_EECN_ERR,
		[RDMA_HCA_SYNDROME_INVAL_EEC_STATE_ERR] =
			IBV_WC_INV_EEC_STATE_ERR,
		[RDMA_HCA_SYNDROME_FATAL_ERR] = IBV_WC_FATAL_ERR,
		[RDMA_HCA_SYNDROME_RESP_TIMEOUT_ERR] = IBV_WC_RESP_TIMEOUT_ERR,
		[RDMA_HCA_SYNDROME_TM_ERR] = IBV_WC_TM_ERR,
		[RDMA_HCA_SYNDROME_TM_RNDV_INCOMPLETE] =
			IBV_WC_TM_RNDV_INCOMPLETE,
	};

	/* No syndrome stands for success, whose number is 0. */
	if (syndrome >= ARRAY_SIZE(table) || !table[syndrome])
		return IBV_WC_GENERAL_ERR;
	return table[syndrome];
}

/*
 * Operations of the BTH (IBA 9.2.1) that end a message with something more:
 * the low five bits of its opcode, whatever the service type in the others.
 */
#define RHCA_BTH_OPERATION		0x1f
#define RHCA_BTH_SEND_LAST_IMM		0x03
#define RHCA_BTH_SEND_ONLY_IMM		0x05
#define RHCA_BTH_WRITE_LAST_IMM		0x09
#define RHCA_BTH_WRITE_ONLY_IMM		0x0b
#define RHCA_BTH_SEND_LAST_INV		0x16
#define RHCA_BTH_SEND_ONLY_INV		0x17

static bool rhca_bth_is_write(uint8_t opcode)
{
	opcode &= RHCA_BTH_OPERATION;
	return opcode == RHCA_BTH_WRITE_LAST_IMM ||
	       opcode == RHCA_BTH_WRITE_ONLY_IMM;
}

static bool rhca_bth_has_imm(uint8_t opcode)
{
	if (rhca_bth_is_write(opcode))
		return true;
	opcode &= RHCA_BTH_OPERATION;
	return opcode == RHCA_BTH_SEND_LAST_IMM ||
	       opcode == RHCA_BTH_SEND_ONLY_IMM;
}

static bool rhca_bth_has_inv(uint8_t opcode)
{
	opcode &= RHCA_BTH_OPERATION;
	return opcode == RHCA_BTH_SEND_LAST_INV ||
	       opcode == RHCA_BTH_SEND_ONLY_INV;
}

static enum ibv_wc_opcode rhca_read_opcode(struct ibv_cq_ex *ibcq)
{
	const struct rdma_hca_cqe *cqe = to_rcq_ex(ibcq)->cur;
	uint8_t opcode = rhca_cqe_opcode(cqe);

	if (rhca_cqe_is_send(cqe))
		return rhca_send_wc_opcode(opcode);
	return rhca_bth_is_write(opcode) ? IBV_WC_RECV_RDMA_WITH_IMM :
					   IBV_WC_RECV;
}

static uint32_t rhca_read_vendor_err(struct ibv_cq_ex *ibcq)
{
	const struct rdma_hca_cqe *cqe = to_rcq_ex(ibcq)->cur;

	if (!rhca_cqe_is_error(cqe))
		return 0;
	return FIELD_GET(RDMA_HCA_CQE_VENDOR_ERR, le32toh(cqe->err));
}

static uint32_t rhca_read_byte_len(struct ibv_cq_ex *ibcq)
{
	return le32toh(to_rcq_ex(ibcq)->cur->byte_cnt);
}

static __be32 rhca_read_imm_data(struct ibv_cq_ex *ibcq)
{
	const struct rdma_hca_cqe *cqe = to_rcq_ex(ibcq)->cur;

	/* The word has two meanings to a reader, too. */
	if (rhca_bth_has_inv(rhca_cqe_opcode(cqe)))
		return (__force __be32)le32toh(cqe->inv_rkey);
	return cqe->imm;
}

static uint32_t rhca_read_qp_num(struct ibv_cq_ex *ibcq)
{
	return rhca_cqe_qpn(to_rcq_ex(ibcq)->cur);
}

static uint32_t rhca_read_src_qp(struct ibv_cq_ex *ibcq)
{
	const struct rdma_hca_cqe *cqe = to_rcq_ex(ibcq)->cur;

	/* There it is the SRQ's number. */
	if (rhca_cqe_is_xrc(cqe))
		return 0;
	return le32toh(cqe->rqpn) & RDMA_HCA_QPN_MASK;
}

static unsigned int rhca_read_wc_flags(struct ibv_cq_ex *ibcq)
{
	const struct rdma_hca_cqe *cqe = to_rcq_ex(ibcq)->cur;
	unsigned int flags = 0;

	if (rhca_cqe_is_send(cqe) || rhca_cqe_is_error(cqe))
		return 0;
	if (le32toh(cqe->rlid_path) & RDMA_HCA_CQE_GRH)
		flags |= IBV_WC_GRH;
	if (rhca_bth_has_imm(rhca_cqe_opcode(cqe)))
		flags |= IBV_WC_WITH_IMM;
	if (rhca_bth_has_inv(rhca_cqe_opcode(cqe)))
		flags |= IBV_WC_WITH_INV;
	return flags;
}

/* A frame completes as a Send of UD, and so do datagrams: these have 0. */
static uint32_t rhca_read_flow_tag(struct ibv_cq_ex *ibcq)
{
	const struct rdma_hca_cqe *cqe = to_rcq_ex(ibcq)->cur;

	if (rhca_cqe_is_send(cqe) || rhca_cqe_is_error(cqe) ||
	    rhca_bth_has_imm(rhca_cqe_opcode(cqe)) ||
	    rhca_bth_has_inv(rhca_cqe_opcode(cqe)))
		return 0;
	return le32toh(cqe->flow_tag);
}

static bool rhca_cq_is_roce(const struct rhca_cq *cq)
{
	return to_rctx(cq->vcq.cq.context)->is_roce;
}

static uint64_t rhca_read_completion_ts(struct ibv_cq_ex *ibcq)
{
	const struct rdma_hca_cqe *cqe = to_rcq_ex(ibcq)->cur;
	uint64_t high = FIELD_GET(RDMA_HCA_CQE_TIME_H, rhca_cqe_ctrl(cqe));

	return high << 32 | le32toh(cqe->time_l);
}

/*
 * Both clocks count nanoseconds, at rates that hardly differ. They are read
 * together again when much time has passed, or when somebody has set the time.
 */
#define RHCA_NS_PER_S		1000000000ull
#define RHCA_SAMPLE_NS		(10 * 1000 * 1000)

static uint64_t rhca_wallclock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * RHCA_NS_PER_S + now.tv_nsec;
}

static void rhca_sample_clocks(struct rhca_cq *cq)
{
	uint64_t before = rhca_wallclock();

	if (cq->sample_wallclock &&
	    before - cq->sample_wallclock < RHCA_SAMPLE_NS)
		return;
	cq->sample_clock = rhca_read_clock(to_rctx(cq->vcq.cq.context));
	cq->sample_wallclock = before + (rhca_wallclock() - before) / 2;
}

static uint64_t rhca_read_wallclock_ns(struct ibv_cq_ex *ibcq)
{
	struct rhca_cq *cq = to_rcq_ex(ibcq);
	uint64_t since = rhca_read_completion_ts(ibcq) - cq->sample_clock;
	unsigned int spare = 64 - RDMA_HCA_CQE_TIME_BITS;

	/* Before the sample or after it, by the bits that there are. */
	return cq->sample_wallclock + ((int64_t)(since << spare) >> spare);
}

/* The tag as it was on the Ethernet: priority and VLAN; 0: none. */
static uint16_t rhca_read_cvlan(struct ibv_cq_ex *ibcq)
{
	struct rhca_cq *cq = to_rcq_ex(ibcq);
	uint32_t path = le32toh(cq->cur->rlid_path);

	if (!rhca_cq_is_roce(cq) || !(path & RDMA_HCA_CQE_HAS_VLAN))
		return 0;
	return FIELD_GET(RDMA_HCA_CQE_SL, path) << 13 |
	       FIELD_GET(RDMA_HCA_CQE_VLAN, path);
}

/* RoCE has no LIDs: other things are in their places. */
static uint32_t rhca_read_slid(struct ibv_cq_ex *ibcq)
{
	struct rhca_cq *cq = to_rcq_ex(ibcq);

	return rhca_cq_is_roce(cq) ? 0 :
				     FIELD_GET(RDMA_HCA_CQE_RLID,
					       le32toh(cq->cur->rlid_path));
}

/*
 * On RoCE the completion of a datagram has to say which header came (RoCEv2
 * annex, A17.4.5.1), and struct ibv_wc has no field for it. The SL is where
 * other vendors' providers say it, and where programs look.
 */
enum {
	RHCA_PACKET_IPV6 = 1,
	RHCA_PACKET_IPV4 = 2,
};

static uint8_t rhca_read_sl(struct ibv_cq_ex *ibcq)
{
	struct rhca_cq *cq = to_rcq_ex(ibcq);
	uint32_t path = le32toh(cq->cur->rlid_path);

	if (rhca_cq_is_roce(cq) && cq->cur_qp &&
	    cq->cur_qp->vqp.qp.qp_type == IBV_QPT_UD)
		return path & RDMA_HCA_CQE_IPV4 ? RHCA_PACKET_IPV4 :
						  RHCA_PACKET_IPV6;
	return FIELD_GET(RDMA_HCA_CQE_SL, path);
}

static uint8_t rhca_read_dlid_path_bits(struct ibv_cq_ex *ibcq)
{
	struct rhca_cq *cq = to_rcq_ex(ibcq);

	return rhca_cq_is_roce(cq) ? 0 :
				     FIELD_GET(RDMA_HCA_CQE_MLPATH,
					       le32toh(cq->cur->rlid_path));
}

/* --- poll --------------------------------------------------------------- */

/*
 * Retire the WQE that an entry names and all before it, which, if they were
 * not signalled, have no entry of their own. Returns its wr_id.
 */
static uint64_t rhca_wq_retire(struct rhca_wq *wq,
			       const struct rdma_hca_cqe *cqe)
{
	uint32_t mask = wq->entries - 1;
	uint32_t index = (le32toh(cqe->wqe) >> wq->shift) & mask;
	uint32_t tail = atomic_load_explicit(&wq->tail, memory_order_relaxed);
	uint64_t wr_id = wq->wr_id[index];

	/* Whoever sees the new tail may write to the slot. */
	atomic_store_explicit(&wq->tail, tail + ((index - tail) & mask) + 1,
			      memory_order_release);
	return wr_id;
}

/* An XRC target has no queues, and may be another process's. */
static bool rhca_cqe_retire_xrc(struct rhca_cq *cq,
				const struct rdma_hca_cqe *cqe)
{
	struct rhca_context *ctx = to_rctx(cq->vcq.cq.context);
	struct rhca_srq *srq = ctx->srqs[rhca_cqe_srqn(cqe) & ctx->srq_mask];

	cq->cur_qp = NULL;
	if (unlikely(!srq))
		return false;
	cq->vcq.cq_ex.wr_id = rhca_srq_retire(srq, le32toh(cqe->wqe));
	return true;
}

/*
 * Retire the WQE of @cqe. Returns false if its QP or SRQ is gone, or has no such
 * queue: then there is no one to tell.
 */
static bool rhca_cqe_retire(struct rhca_cq *cq, const struct rdma_hca_cqe *cqe)
{
	struct rhca_context *ctx = to_rctx(cq->vcq.cq.context);
	struct rhca_qp *qp = ctx->qps[rhca_cqe_qpn(cqe) & ctx->qp_mask];
	bool is_send = rhca_cqe_is_send(cqe);
	struct rhca_wq *wq;

	if (unlikely(!qp))
		return false;
	cq->cur_qp = qp;
	if (!is_send && qp->srq) {
		cq->vcq.cq_ex.wr_id =
			rhca_srq_retire(qp->srq, le32toh(cqe->wqe));
		return true;
	}
	wq = is_send ? &qp->sq : &qp->rq;
	if (unlikely(!wq->entries))
		return false;
	cq->vcq.cq_ex.wr_id = rhca_wq_retire(wq, cqe);
	return true;
}

/* Make @cqe the current entry. Returns false if it is nobody's. */
static bool rhca_cq_set_current(struct rhca_cq *cq,
				const struct rdma_hca_cqe *cqe)
{
	bool found = unlikely(rhca_cqe_is_xrc(cqe)) ?
			     rhca_cqe_retire_xrc(cq, cqe) :
			     rhca_cqe_retire(cq, cqe);

	if (unlikely(!found))
		return false;
	cq->cur = cqe;
	cq->vcq.cq_ex.status =
		likely(!rhca_cqe_is_error(cqe)) ?
			IBV_WC_SUCCESS :
			rhca_wc_status(FIELD_GET(RDMA_HCA_CQE_SYNDROME,
						 le32toh(cqe->err)));
	return true;
}

/* Go to the next entry. Returns false if there is none. */
static bool rhca_cq_advance(struct rhca_cq *cq)
{
	struct rdma_hca_cqe *cqe;
	bool found;

	do {
		cqe = rhca_cqe(cq, cq->ci);
		if (!rhca_cqe_is_valid(cqe))
			return false;
		/* Read the rest only after the owner. */
		udma_from_device_barrier();
		found = rhca_cq_set_current(cq, cqe);
		rhca_cqe_give_back(cqe);
		cq->ci++;
	} while (unlikely(!found));
	return true;
}

static void rhca_fill_wc(struct rhca_cq *cq, struct ibv_wc *wc)
{
	struct ibv_cq_ex *ex = &cq->vcq.cq_ex;

	wc->wr_id = ex->wr_id;
	wc->status = ex->status;
	wc->opcode = rhca_read_opcode(ex);
	wc->vendor_err = rhca_read_vendor_err(ex);
	wc->byte_len = rhca_read_byte_len(ex);
	wc->imm_data = rhca_read_imm_data(ex);
	wc->qp_num = rhca_read_qp_num(ex);
	wc->src_qp = rhca_read_src_qp(ex);
	wc->wc_flags = rhca_read_wc_flags(ex);
	wc->pkey_index = 0;
	wc->slid = rhca_read_slid(ex);
	wc->sl = rhca_read_sl(ex);
	wc->dlid_path_bits = rhca_read_dlid_path_bits(ex);
}

int rhca_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
	struct rhca_cq *cq = to_rcq(ibcq);
	int n;

	rhca_cq_lock(cq);
	for (n = 0; n < num_entries && rhca_cq_advance(cq); n++)
		rhca_fill_wc(cq, &wc[n]);
	rhca_cq_publish(cq);
	rhca_cq_unlock(cq);
	return n;
}

static int rhca_start_poll(struct ibv_cq_ex *ibcq,
			   struct ibv_poll_cq_attr *attr)
{
	struct rhca_cq *cq = to_rcq_ex(ibcq);

	if (attr->comp_mask)
		return EINVAL;
	rhca_cq_lock(cq);
	if (rhca_cq_advance(cq)) {
		if (cq->wants_wallclock)
			rhca_sample_clocks(cq);
		return 0;
	}
	rhca_cq_publish(cq);
	rhca_cq_unlock(cq);
	return ENOENT;
}

static int rhca_next_poll(struct ibv_cq_ex *ibcq)
{
	return rhca_cq_advance(to_rcq_ex(ibcq)) ? 0 : ENOENT;
}

static void rhca_end_poll(struct ibv_cq_ex *ibcq)
{
	struct rhca_cq *cq = to_rcq_ex(ibcq);

	rhca_cq_publish(cq);
	rhca_cq_unlock(cq);
}

/*
 * The index is the published one: a thread between start_poll and end_poll
 * still reads entries after it. The card sends an event at once for an entry
 * that is there already and that no event has told of, so none is missed.
 */
int rhca_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct rhca_cq *cq = to_rcq(ibcq);
	uint32_t cmd = solicited_only ? RDMA_HCA_CQ_DB_CMD_ARM_SOLICITED :
					RDMA_HCA_CQ_DB_CMD_ARM_NEXT;

	rhca_ring(to_rctx(ibcq->context), RDMA_HCA_CQ_DB,
		  FIELD_PREP(RDMA_HCA_CQ_DB_CMD, cmd) |
			  FIELD_PREP(RDMA_HCA_CQ_DB_CQN, cq->cqn),
		  rhca_cq_published(cq));
	return 0;
}

/* Whether @cqe is @qp's, or, with @qp NULL, one of the XRC SRQ @srq. */
static bool rhca_cqe_is_of(const struct rdma_hca_cqe *cqe,
			   const struct rhca_qp *qp, const struct rhca_srq *srq)
{
	if (qp)
		return rhca_cqe_qpn(cqe) == qp->vqp.qp.qp_num;
	return rhca_cqe_is_xrc(cqe) &&
	       rhca_cqe_srqn(cqe) == srq->vsrq.srq_num;
}

/*
 * The entries that stay move towards the producer, into the place of those
 * that go, which are of @qp or @srq. What they name of an SRQ is free then.
 */
static void rhca_cq_remove(struct rhca_cq *cq, const struct rhca_qp *qp,
			   struct rhca_srq *srq)
{
	uint32_t n = rhca_cq_outstanding(cq);
	uint32_t gone = 0;

	while (n--) {
		struct rdma_hca_cqe *cqe = rhca_cqe(cq, cq->ci + n);

		if (rhca_cqe_is_of(cqe, qp, srq)) {
			if (srq && !rhca_cqe_is_send(cqe))
				rhca_srq_retire(srq, le32toh(cqe->wqe));
			gone++;
		} else if (gone) {
			*rhca_cqe(cq, cq->ci + n + gone) = *cqe;
		}
	}
	if (!gone)
		return;
	for (; gone; gone--)
		rhca_cqe_give_back(rhca_cqe(cq, cq->ci++));
	rhca_cq_publish(cq);
}

void rhca_clean_cq(struct rhca_cq *cq, const struct rhca_qp *qp)
{
	rhca_cq_remove(cq, qp, qp->srq);
}

void rhca_cq_forget_srq(struct rhca_cq *cq, struct rhca_srq *srq,
			struct rhca_srq **place)
{
	rhca_cq_lock(cq);
	rhca_cq_remove(cq, NULL, srq);
	*place = NULL;
	rhca_cq_unlock(cq);
}

/* --- create, resize, destroy -------------------------------------------- */

static void rhca_fill_readers(struct rhca_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ex = &cq->vcq.cq_ex;

	ex->start_poll = rhca_start_poll;
	ex->next_poll = rhca_next_poll;
	ex->end_poll = rhca_end_poll;
	ex->read_opcode = rhca_read_opcode;
	ex->read_vendor_err = rhca_read_vendor_err;
	ex->read_wc_flags = rhca_read_wc_flags;
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = rhca_read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		ex->read_imm_data = rhca_read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		ex->read_qp_num = rhca_read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		ex->read_src_qp = rhca_read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		ex->read_slid = rhca_read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		ex->read_sl = rhca_read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ex->read_dlid_path_bits = rhca_read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = rhca_read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ex->read_completion_wallclock_ns = rhca_read_wallclock_ns;
	if (wc_flags & IBV_WC_EX_WITH_CVLAN)
		ex->read_cvlan = rhca_read_cvlan;
	if (wc_flags & IBV_WC_EX_WITH_FLOW_TAG)
		ex->read_flow_tag = rhca_read_flow_tag;
}

/* What there is to know; tag matching is not. */
static uint64_t rhca_wc_flags(const struct rhca_context *ctx)
{
	uint64_t flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_CVLAN |
			 IBV_WC_EX_WITH_FLOW_TAG;

	if (ctx->has_clock)
		flags |= IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	return flags;
}

static int rhca_check_cq_attr(const struct rhca_context *ctx,
			      const struct ibv_cq_init_attr_ex *attr)
{
	if (!check_comp_mask(attr->comp_mask,
			     IBV_CQ_INIT_ATTR_MASK_FLAGS |
				     IBV_CQ_INIT_ATTR_MASK_PD) ||
	    !check_comp_mask(attr->wc_flags, rhca_wc_flags(ctx)))
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
	    !check_comp_mask(attr->flags,
			     IBV_CREATE_CQ_ATTR_SINGLE_THREADED |
				     IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN))
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) &&
	    (!attr->parent_domain || !to_rpd(attr->parent_domain)->contained))
		return EINVAL;
	if (!attr->cqe || attr->cqe > ctx->max_cqe)
		return EINVAL;
	return 0;
}

static int rhca_alloc_ring(struct rhca_cq *cq, struct rhca_buf *buf,
			   uint32_t entries)
{
	int err = rhca_buf_alloc(buf, (size_t)entries * RDMA_HCA_CQE_SIZE,
				 cq->parent, RHCA_RESOURCE_CQ);

	if (!err)
		rhca_ring_init(buf, entries);
	return err;
}

static int rhca_cq_command(struct rhca_context *ctx, struct rhca_cq *cq,
			   struct ibv_cq_init_attr_ex *attr)
{
	struct rhca_create_cq_cmd cmd = {
		.drv.buf_addr = (uintptr_t)cq->buf.addr,
		.drv.ci_db_addr = (uintptr_t)cq->ci_db,
	};
	struct rhca_create_cq_resp resp = {};
	int err;

	err = ibv_cmd_create_cq_ex(&ctx->vctx.context, attr,
				   rhca_prov_attr_arg(NULL) &cq->vcq,
				   &cmd.core, sizeof(cmd), &resp.core,
				   sizeof(resp), 0);
	if (err)
		return err;
	cq->cqn = resp.drv.cqn;
	cq->entries = resp.drv.entries;
	return 0;
}

static int rhca_cq_init(struct rhca_context *ctx, struct rhca_cq *cq,
			struct ibv_cq_init_attr_ex *attr)
{
	int err;

	err = rhca_alloc_ring(cq, &cq->buf, attr->cqe);
	if (err)
		return err;
	cq->ci_db = rhca_record_alloc(ctx, cq->parent);
	err = cq->ci_db ? rhca_cq_command(ctx, cq, attr) : errno;
	if (err) {
		rhca_record_free(ctx, cq->parent, cq->ci_db);
		rhca_buf_free(&cq->buf);
	}
	return err;
}

struct ibv_cq_ex *rhca_create_cq_ex(struct ibv_context *context,
				    struct ibv_cq_init_attr_ex *attr)
{
	struct rhca_context *ctx = to_rctx(context);
	struct ibv_cq_init_attr_ex rounded;
	struct rhca_cq *cq;
	int err;

	err = rhca_check_cq_attr(ctx, attr);
	if (err) {
		errno = err;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	rounded = *attr;
	rounded.cqe = roundup_pow_of_two(attr->cqe);
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD)
		cq->parent = rhca_pd_use(attr->parent_domain);
	err = rhca_cq_init(ctx, cq, &rounded);
	if (err) {
		rhca_pd_release(cq->parent);
		free(cq);
		errno = err;
		return NULL;
	}
	pthread_spin_init(&cq->lock, PTHREAD_PROCESS_PRIVATE);
	cq->single_threaded =
		rhca_is_single_threaded(cq->parent) ||
		((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
		 (attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED));
	cq->wants_wallclock = attr->wc_flags &
			      IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	rhca_fill_readers(cq, attr->wc_flags);
	return &cq->vcq.cq_ex;
}

struct ibv_cq *rhca_create_cq(struct ibv_context *context, int cqe,
			      struct ibv_comp_channel *channel,
			      int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = max_t(int, cqe, 0),
		.channel = channel,
		.comp_vector = comp_vector,
	};
	struct ibv_cq_ex *ex = rhca_create_cq_ex(context, &attr);

	return ex ? ibv_cq_ex_to_cq(ex) : NULL;
}

/*
 * Have the card use @ring. Indices are not wrapped, so an entry that is still
 * in the old ring has its place in the new one.
 */
static int rhca_cq_move(struct rhca_cq *cq, struct rhca_buf *ring,
			uint32_t entries)
{
	struct rhca_resize_cq_cmd cmd = {
		.drv.buf_addr = (uintptr_t)ring->addr,
	};
	struct ib_uverbs_resize_cq_resp resp;
	struct rdma_hca_cqe *cqe = ring->addr;
	struct rhca_buf old = cq->buf;
	uint32_t n, i;
	int err;

	if (rhca_cq_outstanding(cq) > entries)
		return EINVAL;
	err = ibv_cmd_resize_cq(&cq->vcq.cq, entries, &cmd.core, sizeof(cmd),
				&resp, sizeof(resp));
	if (err)
		return err;
	n = rhca_cq_outstanding(cq);
	for (i = cq->ci; i != cq->ci + n; i++)
		cqe[i & (entries - 1)] = *rhca_cqe(cq, i);
	cq->buf = *ring;
	cq->entries = entries;
	*ring = old;
	return 0;
}

int rhca_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct rhca_context *ctx = to_rctx(ibcq->context);
	struct rhca_cq *cq = to_rcq(ibcq);
	struct rhca_buf ring;
	uint32_t entries;
	int err;

	if (cqe <= 0 || (uint32_t)cqe > ctx->max_cqe)
		return EINVAL;
	entries = roundup_pow_of_two(cqe);
	err = rhca_alloc_ring(cq, &ring, entries);
	if (err)
		return err;
	rhca_cq_lock(cq);
	if (entries != cq->entries)
		err = rhca_cq_move(cq, &ring, entries);
	rhca_cq_unlock(cq);
	rhca_buf_free(&ring);
	return err;
}

int rhca_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	struct ibv_modify_cq cmd;

	return ibv_cmd_modify_cq(ibcq, attr, &cmd, sizeof(cmd));
}

int rhca_destroy_cq(struct ibv_cq *ibcq)
{
	struct rhca_context *ctx = to_rctx(ibcq->context);
	struct rhca_cq *cq = to_rcq(ibcq);
	int err;

	err = ibv_cmd_destroy_cq(ibcq);
	if (err)
		return err;
	rhca_record_free(ctx, cq->parent, cq->ci_db);
	rhca_buf_free(&cq->buf);
	rhca_pd_release(cq->parent);
	pthread_spin_destroy(&cq->lock);
	free(cq);
	return 0;
}
