// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The provider without a kernel and a card: this program answers uverbs
 * commands, reads WQEs as the card would, and writes CQEs.
 *
 * usage: rdma_hca_provider_test [-l] [-p CASE]...
 * Prints TAP; -l lists the cases, -p chooses one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/cmd_ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma_hca_cxt.h>
#include <util/util.h>

#include "../rhca.h"
#include "../rhca_uverbs.h"

/* --- checks ------------------------------------------------------------- */

static int failures;

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			failures++;                                            \
			printf("# %s:%d: %s\n", __func__, __LINE__, #cond);    \
		}                                                              \
	} while (0)

#define CHECK_EQ(a, b)                                                         \
	do {                                                                   \
		unsigned long long _a = (a), _b = (b);                         \
                                                                               \
		if (_a != _b) {                                                \
			failures++;                                            \
			printf("# %s:%d: %s is %#llx, not %#llx\n", __func__,  \
			       __LINE__, #a, _a, _b);                          \
		}                                                              \
	} while (0)

/* --- the kernel --------------------------------------------------------- */

static struct {
	uint32_t next_qpn;
	uint32_t next_cqn;
	struct rdma_hca_create_qp_req qp_req;
	struct rdma_hca_create_cq_req cq_req;
	struct rdma_hca_create_srq_req srq_req;
	uint32_t next_srqn;
	struct rdma_hca_modify_srq_req modify_srq_req;
	size_t modify_srq_size;
	int modify_srq_err;
	uint64_t resize_addr;
	int create_ah_err;
	int dereg_err;
	int create_cq_err;
	struct ibv_modify_cq_attr modify_cq;
	int ahs;
	int mws;
	int dms;
	uint64_t dm_length;
	int free_dm_err;
	struct ibv_alloc_dm_attr dm_attr;
	unsigned int dm_mr_access;
	int flows;
	int destroy_flow_err;
	/* called in the middle of RESIZE_CQ, as the card works on */
	void (*on_resize)(void);
} kernel = { .next_qpn = 0x40, .next_cqn = 7, .next_srqn = 0x123450 };

int ibv_dontfork_range(void *base, size_t size)
{
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	return 0;
}

int ibv_cmd_create_cq_ex(struct ibv_context *context,
			 const struct ibv_cq_init_attr_ex *attr,
			 struct verbs_cq *cq, struct ibv_create_cq_ex *cmd,
			 size_t cmd_size,
			 struct ib_uverbs_ex_create_cq_resp *resp,
			 size_t resp_size, uint32_t cmd_flags)
{
	struct rhca_create_cq_cmd *whole =
		container_of(cmd, struct rhca_create_cq_cmd, core);
	struct rhca_create_cq_resp *answer =
		container_of(resp, struct rhca_create_cq_resp, core);

	if (kernel.create_cq_err)
		return kernel.create_cq_err;
	CHECK_EQ(attr->cqe & (attr->cqe - 1), 0);
	kernel.cq_req = whole->drv;
	answer->drv.cqn = kernel.next_cqn++;
	answer->drv.entries = attr->cqe;
	cq->cq.context = context;
	cq->cq.cqe = attr->cqe;
	return 0;
}

int ibv_cmd_resize_cq(struct ibv_cq *cq, int cqe, struct ibv_resize_cq *cmd,
		      size_t cmd_size, struct ib_uverbs_resize_cq_resp *resp,
		      size_t resp_size)
{
	kernel.resize_addr =
		container_of(cmd, struct rhca_resize_cq_cmd, core)->drv.buf_addr;
	if (kernel.on_resize)
		kernel.on_resize();
	cq->cqe = cqe;
	return 0;
}

int ibv_cmd_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr,
		      struct ibv_modify_cq *cmd, size_t cmd_size)
{
	kernel.modify_cq = *attr;
	return 0;
}

int ibv_cmd_destroy_cq(struct ibv_cq *cq)
{
	return 0;
}

int ibv_cmd_create_qp_ex(struct ibv_context *context, struct verbs_qp *qp,
			 struct ibv_qp_init_attr_ex *attr,
			 struct ibv_create_qp *cmd, size_t cmd_size,
			 struct ib_uverbs_create_qp_resp *resp,
			 size_t resp_size)
{
	kernel.qp_req =
		container_of(cmd, struct rhca_create_qp_cmd, core)->drv;
	qp->qp.context = context;
	qp->qp.qp_num = kernel.next_qpn++;
	qp->qp.qp_type = attr->qp_type;
	qp->qp.send_cq = attr->send_cq;
	qp->qp.recv_cq = attr->recv_cq;
	qp->qp.state = IBV_QPS_RESET;
	qp->comp_mask = 0;
	return 0;
}

int ibv_cmd_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		     struct ibv_qp_init_attr *init, struct ibv_query_qp *cmd,
		     size_t cmd_size)
{
	return 0;
}

int ibv_cmd_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		      struct ibv_modify_qp *cmd, size_t cmd_size)
{
	return 0;
}

int ibv_cmd_destroy_qp(struct ibv_qp *qp)
{
	return 0;
}

int ibv_cmd_open_qp(struct ibv_context *context, struct verbs_qp *qp,
		    int vqp_sz, struct ibv_qp_open_attr *attr,
		    struct ibv_open_qp *cmd, size_t cmd_size,
		    struct ib_uverbs_create_qp_resp *resp, size_t resp_size)
{
	if (!(attr->comp_mask & IBV_QP_OPEN_ATTR_XRCD))
		return EINVAL;
	qp->qp.context = context;
	qp->qp.qp_num = attr->qp_num;
	qp->qp.qp_type = attr->qp_type;
	qp->qp.state = IBV_QPS_UNKNOWN;
	return 0;
}

int ibv_cmd_create_srq_ex(struct ibv_context *context, struct verbs_srq *srq,
			  struct ibv_srq_init_attr_ex *attr,
			  struct ibv_create_xsrq *cmd, size_t cmd_size,
			  struct ib_uverbs_create_srq_resp *resp,
			  size_t resp_size)
{
	kernel.srq_req =
		container_of(cmd, struct rhca_create_srq_cmd, core)->drv;
	srq->srq.context = context;
	srq->srq_type = attr->srq_type;
	if (attr->srq_type == IBV_SRQT_XRC) {
		srq->srq_num = kernel.next_srqn++;
		srq->cq = attr->cq;
	}
	return 0;
}

int ibv_cmd_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr,
		       int mask, struct ibv_modify_srq *cmd, size_t cmd_size)
{
	kernel.modify_srq_size = cmd_size;
	if (mask & IBV_SRQ_MAX_WR)
		kernel.modify_srq_req =
			((struct rhca_modify_srq_cmd *)cmd)->drv;
	return kernel.modify_srq_err;
}

int ibv_cmd_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr,
		      struct ibv_query_srq *cmd, size_t cmd_size)
{
	return 0;
}

int ibv_cmd_destroy_srq(struct ibv_srq *srq)
{
	return 0;
}

int ibv_cmd_open_xrcd(struct ibv_context *context, struct verbs_xrcd *xrcd,
		      int vxrcd_size, struct ibv_xrcd_init_attr *attr,
		      struct ibv_open_xrcd *cmd, size_t cmd_size,
		      struct ib_uverbs_open_xrcd_resp *resp, size_t resp_size)
{
	xrcd->xrcd.context = context;
	return 0;
}

int ibv_cmd_close_xrcd(struct verbs_xrcd *xrcd)
{
	return 0;
}

/* The address is resolved as that of a gateway would be. */
int ibv_cmd_create_ah(struct ibv_pd *ibpd, struct ibv_ah *ah,
		      struct ibv_ah_attr *attr,
		      struct ib_uverbs_create_ah_resp *resp, size_t resp_size)
{
	static const uint8_t mac[] = { 0x52, 0x54, 0x00, 0xaa, 0xbb, 0xcc };
	struct rhca_create_ah_resp *answer =
		container_of(resp, struct rhca_create_ah_resp, core);

	if (kernel.create_ah_err)
		return kernel.create_ah_err;
	CHECK_EQ(resp_size, sizeof(*answer));
	memcpy(answer->drv.dmac, mac, sizeof(mac));
	answer->drv.hop_limit = 64;
	kernel.ahs++;
	return 0;
}

int ibv_cmd_destroy_ah(struct ibv_ah *ah)
{
	kernel.ahs--;
	return 0;
}

int ibv_cmd_query_port(struct ibv_context *context, uint8_t port,
		       struct ibv_port_attr *attr, struct ibv_query_port *cmd,
		       size_t cmd_size)
{
	if (port != 1)
		return EINVAL;
	attr->lid = 0x20;
	attr->lmc = 1;
	attr->gid_tbl_len = 1;
	attr->link_layer = IBV_LINK_LAYER_INFINIBAND;
	return 0;
}

int ibv_cmd_query_device_any(struct ibv_context *context,
			     const struct ibv_query_device_ex_input *input,
			     struct ibv_device_attr_ex *attr, size_t attr_size,
			     struct ib_uverbs_ex_query_device_resp *resp,
			     size_t *resp_size)
{
	attr->orig_attr.max_qp_wr = 65536;
	attr->orig_attr.max_srq_wr = 65536;
	resp->base.fw_ver = 1ULL << 32 | 5;
	return 0;
}

int ibv_cmd_alloc_pd(struct ibv_context *context, struct ibv_pd *pd,
		     struct ibv_alloc_pd *cmd, size_t cmd_size,
		     struct ib_uverbs_alloc_pd_resp *resp, size_t resp_size)
{
	pd->context = context;
	pd->handle = 3;
	return 0;
}

int ibv_cmd_dealloc_pd(struct ibv_pd *pd)
{
	return 0;
}

int ibv_cmd_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
		   uint64_t hca_va, int access, struct verbs_mr *vmr,
		   struct ibv_reg_mr *cmd, size_t cmd_size,
		   struct ib_uverbs_reg_mr_resp *resp, size_t resp_size)
{
	return ENOMEM;
}

int ibv_cmd_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
			  uint64_t iova, int fd, int access,
			  struct verbs_mr *vmr,
			  struct ibv_command_buffer *driver)
{
	CHECK(!driver);
	if (fd < 0)
		return EBADF;
	vmr->ibv_mr.lkey = 0x77;
	vmr->ibv_mr.addr = (void *)(uintptr_t)iova;
	return 0;
}

/* Device memory is in the second page of a file. */
#define DM_HANDLE	9
#define DM_PAGE		4096

static void answer_dm(struct ibv_command_buffer *driver, uint16_t attr,
		      uint64_t length)
{
	struct rdma_hca_dm_resp resp = {
		.mmap_key = DM_PAGE,
		.length = length,
	};
	struct ib_uverbs_attr *a;

	for (a = driver->hdr.attrs; a != driver->next_attr; a++) {
		if (a->attr_id != attr)
			continue;
		CHECK_EQ(a->len, sizeof(resp));
		memcpy((void *)(uintptr_t)a->data, &resp, sizeof(resp));
		return;
	}
	CHECK(!"the driver's attribute");
}

int ibv_cmd_alloc_dm(struct ibv_context *context,
		     const struct ibv_alloc_dm_attr *attr, struct verbs_dm *dm,
		     struct ibv_command_buffer *driver)
{
	kernel.dm_attr = *attr;
	if (attr->length > 2 * DM_PAGE)
		return ENOMEM;
	answer_dm(driver, RDMA_HCA_ATTR_ALLOC_DM_RESP, attr->length);
	kernel.dms++;
	kernel.dm_length = attr->length;
	dm->handle = DM_HANDLE;
	dm->dm.context = context;
	return 0;
}

int ibv_cmd_free_dm(struct verbs_dm *dm)
{
	CHECK_EQ(dm->handle, DM_HANDLE);
	kernel.dms -= !kernel.free_dm_err;
	return kernel.free_dm_err;
}

int ibv_cmd_reg_dm_mr(struct ibv_pd *pd, struct verbs_dm *dm, uint64_t offset,
		      size_t length, unsigned int access,
		      struct verbs_mr *vmr, struct ibv_command_buffer *driver)
{
	kernel.dm_mr_access = access;
	if (!(access & IBV_ACCESS_ZERO_BASED))
		return EINVAL;
	vmr->ibv_mr.lkey = offset;
	vmr->ibv_mr.length = length;
	return 0;
}

/* The provider's own method. */
int execute_ioctl(struct ibv_context *context, struct ibv_command_buffer *cmd)
{
	CHECK_EQ(cmd->hdr.object_id, UVERBS_OBJECT_DM);
	CHECK_EQ(cmd->hdr.method_id, RDMA_HCA_METHOD_DM_QUERY);
	CHECK_EQ(cmd->hdr.attrs[0].attr_id, RDMA_HCA_ATTR_DM_QUERY_HANDLE);
	if (cmd->hdr.attrs[0].data != DM_HANDLE) {
		errno = ENOENT;
		return -1;
	}
	answer_dm(cmd, RDMA_HCA_ATTR_DM_QUERY_RESP, kernel.dm_length);
	return 0;
}

int ibv_cmd_query_mr(struct ibv_pd *pd, struct verbs_mr *vmr, uint32_t handle)
{
	if (handle != 5)
		return ENOENT;
	vmr->ibv_mr.handle = handle;
	vmr->ibv_mr.pd = pd;
	vmr->ibv_mr.lkey = 0x55;
	return 0;
}

int ibv_cmd_rereg_mr(struct verbs_mr *vmr, uint32_t flags, void *addr,
		     size_t length, uint64_t hca_va, int access,
		     struct ibv_pd *pd, struct ibv_rereg_mr *cmd,
		     size_t cmd_size, struct ib_uverbs_rereg_mr_resp *resp,
		     size_t resp_size)
{
	return EINVAL;
}

int ibv_cmd_dereg_mr(struct verbs_mr *vmr)
{
	return kernel.dereg_err;
}

int ibv_cmd_alloc_mw(struct ibv_pd *ibpd, enum ibv_mw_type type,
		     struct ibv_mw *mw, struct ibv_alloc_mw *cmd,
		     size_t cmd_size, struct ib_uverbs_alloc_mw_resp *resp,
		     size_t resp_size)
{
	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return EINVAL;
	mw->context = ibpd->context;
	mw->pd = ibpd;
	mw->type = type;
	mw->rkey = 0x1234ff;
	kernel.mws++;
	return 0;
}

int ibv_cmd_dealloc_mw(struct ibv_mw *mw)
{
	kernel.mws--;
	return 0;
}

int ibv_cmd_create_flow(struct ibv_qp *qp, struct ibv_flow *flow_id,
			struct ibv_flow_attr *flow_attr, void *ucmd,
			size_t ucmd_size)
{
	CHECK(!ucmd && !ucmd_size);
	if (flow_attr->port != 1)
		return EINVAL;
	flow_id->context = qp->context;
	kernel.flows++;
	return 0;
}

int ibv_cmd_destroy_flow(struct ibv_flow *flow_id)
{
	if (kernel.destroy_flow_err)
		return kernel.destroy_flow_err;
	kernel.flows--;
	return 0;
}

/* --- the card ----------------------------------------------------------- */

static uint8_t uar[RDMA_HCA_UAR_PAGE_SIZE] __attribute__((aligned(4096)));

static struct rhca_context ctx;
static struct ibv_pd *pd;

static void setup(void)
{
	memset(uar, 0, sizeof(uar));
	memset(&ctx, 0, sizeof(ctx));
	ctx.uar = uar;
	ctx.max_cqe = 1 << 16;
	ctx.max_wr = RHCA_MAX_WR;
	ctx.max_send_wqe_size = RDMA_HCA_MAX_SEND_WQE_SIZE;
	ctx.max_inline = 512;
	ctx.max_send_sge = RDMA_HCA_MAX_SGE;
	ctx.max_recv_sge = RDMA_HCA_MAX_SGE;
	ctx.qp_mask = 0xff;
	ctx.qps = calloc(ctx.qp_mask + 1, sizeof(*ctx.qps));
	ctx.has_dm = true;
	ctx.max_srq_wr = RHCA_MAX_WR;
	ctx.max_srq_sge = RDMA_HCA_MAX_SGE;
	ctx.srq_mask = 0xf;
	ctx.srqs = calloc(ctx.srq_mask + 1, sizeof(*ctx.srqs));
	pthread_mutex_init(&ctx.table_mutex, NULL);
	pthread_mutex_init(&ctx.db_mutex, NULL);
	list_head_init(&ctx.db_pages);
	pd = rhca_alloc_pd(&ctx.vctx.context);
}

/* What was allocated is gone: no page of records is left. */
static void teardown(void)
{
	rhca_dealloc_pd(pd);
	CHECK(list_empty(&ctx.db_pages));
	free(ctx.srqs);
	free(ctx.qps);
}

static uint32_t doorbell(unsigned int offset)
{
	__le32 word;

	memcpy(&word, uar + offset, sizeof(word));
	return le32toh(word);
}

/* A WQE as the card knows it: from the doorbell, or from the one before. */
struct seen {
	const struct rdma_hca_next_unit *next;
	uint8_t opcode;
	bool fence;
	uint32_t units;
};

static struct seen first_wqe(struct rhca_qp *qp)
{
	uint32_t low = doorbell(RDMA_HCA_SEND_DB);
	uint32_t high = doorbell(RDMA_HCA_SEND_DB + 4);

	CHECK_EQ(FIELD_GET(RDMA_HCA_SEND_DB_QPN, high), qp->vqp.qp.qp_num);
	return (struct seen){
		.next = (void *)((uint8_t *)qp->sq.buf.addr +
				 FIELD_GET(RDMA_HCA_SEND_DB_SQ_HEAD, low) *
					 RDMA_HCA_WQE_UNIT),
		.opcode = FIELD_GET(RDMA_HCA_SEND_DB_OPCODE, low),
		.fence = low & RDMA_HCA_SEND_DB_FENCE,
		.units = FIELD_GET(RDMA_HCA_SEND_DB_SIZE, high),
	};
}

static struct seen next_wqe(struct rhca_qp *qp, struct seen wqe)
{
	uint32_t nda_nop = le32toh(wqe.next->nda_nop);
	uint32_t nee_nds = le32toh(wqe.next->nee_nds);

	return (struct seen){
		.next = (void *)((uint8_t *)qp->sq.buf.addr +
				 (nda_nop & RDMA_HCA_NEXT_NDA)),
		.opcode = FIELD_GET(RDMA_HCA_NEXT_NOP, nda_nop),
		.fence = nee_nds & RDMA_HCA_NEXT_FENCE,
		.units = FIELD_GET(RDMA_HCA_NEXT_NDS, nee_nds),
	};
}

static void check_data(const struct rdma_hca_data_unit *unit, uint64_t addr,
		       uint32_t length, uint32_t lkey)
{
	CHECK_EQ(le32toh(unit->byte_cnt), length);
	CHECK_EQ(le32toh(unit->lkey), lkey);
	CHECK_EQ((uint64_t)le32toh(unit->addr_h) << 32 | le32toh(unit->addr_l),
		 addr);
}

static void check_raddr(const struct rdma_hca_raddr_unit *unit, uint64_t addr,
			uint32_t rkey)
{
	CHECK_EQ((uint64_t)le32toh(unit->raddr_h) << 32 |
			 le32toh(unit->raddr_l),
		 addr);
	CHECK_EQ(le32toh(unit->rkey), rkey);
}

/* Write @cqe as the card does, owner last, at producer index @pi. */
static void produce(struct rhca_cq *cq, uint32_t pi, struct rdma_hca_cqe cqe)
{
	struct rdma_hca_cqe *slot =
		(struct rdma_hca_cqe *)cq->buf.addr + (pi & (cq->entries - 1));

	CHECK_EQ(FIELD_GET(RDMA_HCA_CQE_OWNER, le32toh(slot->ctrl)),
		 RDMA_HCA_OWNER_HW);
	*slot = cqe;
}

static struct rdma_hca_cqe make_cqe(struct rhca_qp *qp, bool is_send,
				    uint32_t index, uint8_t opcode)
{
	struct rhca_wq *wq = is_send ? &qp->sq : &qp->rq;

	return (struct rdma_hca_cqe){
		.my_qpn = htole32(qp->vqp.qp.qp_num),
		.wqe = htole32(rhca_wq_offset(wq, index)),
		.ctrl = htole32(FIELD_PREP(RDMA_HCA_CQE_IS_SEND, is_send) |
				FIELD_PREP(RDMA_HCA_CQE_OPCODE, opcode)),
	};
}

/* --- helpers ------------------------------------------------------------ */

static struct rhca_cq *new_cq(int cqe)
{
	return to_rcq(rhca_create_cq(&ctx.vctx.context, cqe, NULL, 0));
}

static struct rhca_qp *new_qp(struct rhca_cq *cq, enum ibv_qp_type type,
			      const struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = &cq->vcq.cq,
		.recv_cq = &cq->vcq.cq,
		.cap = *cap,
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = rhca_send_ops(&ctx, type),
	};
	struct ibv_qp *qp = rhca_create_qp_ex(&ctx.vctx.context, &attr);

	if (!qp) {
		printf("# no QP: %s\n", strerror(errno));
		exit(1);
	}
	qp->state = IBV_QPS_RTS;
	return to_rqp(qp);
}

static const struct ibv_qp_cap small_cap = {
	.max_send_wr = 4,
	.max_recv_wr = 4,
	.max_send_sge = 2,
	.max_recv_sge = 2,
	.max_inline_data = 32,
};

static int post_nop_sends(struct rhca_qp *qp, int n, uint64_t wr_id)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };
	struct ibv_send_wr *bad;
	int err = 0;

	for (; n && !err; n--) {
		wr.wr_id = wr_id++;
		err = rhca_post_send(&qp->vqp.qp, &wr, &bad);
	}
	return err;
}

/* --- cases -------------------------------------------------------------- */

static void test_caps(void)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC,
						  IBV_QPT_UD };
	struct rhca_cq *cq = new_cq(1);
	struct ibv_qp_cap cap = {};
	struct rhca_qp *qp;
	uint32_t head;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		head = types[i] == IBV_QPT_UD ? 64 : 32;
		for (cap.max_send_sge = 0; cap.max_send_sge <= 30;
		     cap.max_send_sge++) {
			cap.max_recv_sge = cap.max_send_sge;
			cap.max_inline_data = cap.max_send_sge * 17;
			cap.max_send_wr = cap.max_recv_wr = 5;
			qp = new_qp(cq, types[i], &cap);
			CHECK_EQ(qp->cap.max_send_wr, 8);
			CHECK_EQ(qp->cap.max_recv_wr, 8);
			CHECK(qp->cap.max_send_sge >= cap.max_send_sge &&
			      qp->cap.max_recv_sge >= cap.max_recv_sge &&
			      qp->cap.max_inline_data >= cap.max_inline_data);
			CHECK(head + 16 * qp->cap.max_send_sge <=
			      qp->send_limit);
			CHECK(!qp->cap.max_inline_data ||
			      head + 4 + qp->cap.max_inline_data <=
				      qp->send_limit);
			CHECK(32 + 16 * qp->cap.max_recv_sge <=
			      1u << qp->rq.shift);
			CHECK(qp->sq.shift >= 6 && qp->sq.shift <= 10);
			CHECK(qp->rq.shift >= 6 && qp->rq.shift <= 9);
			CHECK(qp->send_limit <= RDMA_HCA_MAX_SEND_WQE_SIZE);
			CHECK_EQ(kernel.qp_req.sq_len, 8u << qp->sq.shift);
			CHECK_EQ(kernel.qp_req.rq_len, 8u << qp->rq.shift);
			CHECK_EQ(kernel.qp_req.sq_addr % 4096, 0);
			rhca_destroy_qp(&qp->vqp.qp);
		}
	}
	rhca_destroy_cq(&cq->vcq.cq);
}

static void check_refused(struct rhca_cq *cq, struct ibv_qp_cap cap,
			  enum ibv_qp_type type, int err)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = &cq->vcq.cq,
		.recv_cq = &cq->vcq.cq,
		.cap = cap,
		.qp_type = type,
	};

	errno = 0;
	CHECK(!rhca_create_qp(pd, &attr));
	CHECK_EQ(errno, err);
	CHECK(!memcmp(&attr.cap, &cap, sizeof(cap)));
}

static void test_bad_caps(void)
{
	struct rhca_cq *cq = new_cq(1);

	check_refused(cq, (struct ibv_qp_cap) { .max_send_wr = 32769 },
		      IBV_QPT_RC, EINVAL);
	check_refused(cq, (struct ibv_qp_cap) { .max_recv_wr = UINT32_MAX },
		      IBV_QPT_RC, EINVAL);
	check_refused(cq, (struct ibv_qp_cap) { .max_send_sge = 31 },
		      IBV_QPT_RC, EINVAL);
	check_refused(cq, (struct ibv_qp_cap) { .max_recv_sge = UINT32_MAX },
		      IBV_QPT_RC, EINVAL);
	check_refused(cq, (struct ibv_qp_cap) { .max_inline_data = UINT32_MAX },
		      IBV_QPT_RC, EINVAL);
	check_refused(cq, small_cap, IBV_QPT_RAW_PACKET, EOPNOTSUPP);
	CHECK(!rhca_create_cq(&ctx.vctx.context, 0, NULL, 0));
	CHECK_EQ(errno, EINVAL);
	CHECK(!rhca_create_cq(&ctx.vctx.context, -1, NULL, 0));
	CHECK(!rhca_create_cq(&ctx.vctx.context, 65537, NULL, 0));
	CHECK_EQ(errno, EINVAL);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* Three operations in one call: one doorbell, two links, one end. */
static void test_chain(void)
{
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &small_cap);
	char text[] = "seventeen bytes..";
	struct ibv_sge sge[] = {
		{ .addr = 0x1122334455667788, .length = 100, .lkey = 0xabc },
		{ .addr = 0x99, .length = 0, .lkey = 0xdef },
		{ .addr = (uintptr_t)text, .length = 17 },
	};
	struct ibv_send_wr wr[3] = {
		{
			.next = &wr[1],
			.opcode = IBV_WR_SEND,
			.sg_list = sge,
			.num_sge = 2,
			.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
		}, {
			.next = &wr[2],
			.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
			.imm_data = htobe32(0x01020304),
			.sg_list = &sge[2],
			.num_sge = 1,
			.send_flags = IBV_SEND_INLINE,
			.wr.rdma = { 0xa1a2a3a4a5a6a7a8, 0xbeef },
		}, {
			.opcode = IBV_WR_RDMA_READ,
			.sg_list = sge,
			.num_sge = 1,
			.send_flags = IBV_SEND_FENCE,
			.wr.rdma = { 0x5000, 0xcafe },
		},
	};
	struct ibv_send_wr *bad;
	const __le32 *inl;
	struct seen wqe;

	CHECK_EQ(rhca_post_send(&qp->vqp.qp, wr, &bad), 0);

	wqe = first_wqe(qp);
	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_SEND);
	CHECK_EQ(wqe.units, 2);
	CHECK(!wqe.fence);
	CHECK_EQ(le32toh(wqe.next->flags),
		 RDMA_HCA_WQE_CQ_UPDATE | RDMA_HCA_WQE_SOLICITED);
	check_data((void *)(wqe.next + 1), sge[0].addr, 100, 0xabc);

	wqe = next_wqe(qp, wqe);
	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_RDMA_WRITE_IMM);
	CHECK_EQ(wqe.units, 4);
	CHECK_EQ(wqe.next->flags, 0);
	CHECK_EQ(wqe.next->imm_data, htobe32(0x01020304));
	check_raddr((void *)(wqe.next + 1), 0xa1a2a3a4a5a6a7a8, 0xbeef);
	inl = (void *)(wqe.next + 2);
	CHECK_EQ(le32toh(*inl), RDMA_HCA_INLINE | 17);
	CHECK(!memcmp(inl + 1, text, 17));

	wqe = next_wqe(qp, wqe);
	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_RDMA_READ);
	CHECK_EQ(wqe.units, 3);
	CHECK(wqe.fence);
	CHECK_EQ(wqe.next->nee_nds, 0);

	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

static void test_atomics(void)
{
	static const struct ibv_qp_cap cap = { .max_send_wr = 4,
					       .max_send_sge = 2 };
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &cap);
	struct ibv_sge sge[2] = { { 0x1000, 8, 1 }, { 0x2000, 8, 1 } };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
		.sg_list = sge,
		.num_sge = 1,
		.wr.atomic = { .remote_addr = 0x3000,
			       .compare_add = 0x1111111122222222,
			       .swap = 0x3333333344444444,
			       .rkey = 5 },
	};
	const struct rdma_hca_atomic_unit *unit;
	struct ibv_send_wr *bad;
	struct seen wqe;

	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), 0);
	wqe = first_wqe(qp);
	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_ATOMIC_CS);
	CHECK_EQ(wqe.units, 4);
	check_raddr((void *)(wqe.next + 1), 0x3000, 5);
	unit = (void *)(wqe.next + 2);
	CHECK_EQ(le32toh(unit->swap_add_h), 0x33333333);
	CHECK_EQ(le32toh(unit->swap_add_l), 0x44444444);
	CHECK_EQ(le32toh(unit->cmp_h), 0x11111111);
	CHECK_EQ(le32toh(unit->cmp_l), 0x22222222);
	check_data((void *)(wqe.next + 3), 0x1000, 8, 1);

	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), 0);
	wqe = first_wqe(qp);
	unit = (void *)(wqe.next + 2);
	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_ATOMIC_FA);
	CHECK_EQ(le32toh(unit->swap_add_l), 0x22222222);
	CHECK_EQ(unit->cmp_l, 0);

	/* Two entries fit a Send's slot but not an atomic's. */
	wr.num_sge = 2;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_INLINE;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);

	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

static void check_bind(struct seen wqe, uint32_t access, uint32_t type,
		       uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	const struct rdma_hca_bind_unit *unit = (void *)(wqe.next + 1);

	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_BIND_MW);
	CHECK_EQ(wqe.units, 3);
	CHECK_EQ(le32toh(unit->access), access);
	CHECK_EQ(le32toh(unit->type), type);
	CHECK_EQ(le32toh(unit->rkey), rkey);
	CHECK_EQ(le32toh(unit->lkey), info->mr ? info->mr->lkey : 0);
	CHECK_EQ((uint64_t)le32toh(unit->addr_h) << 32 | le32toh(unit->addr_l),
		 info->addr);
	CHECK_EQ((uint64_t)le32toh(unit->length_h) << 32 |
			 le32toh(unit->length_l),
		 info->length);
}

static void check_inv(struct seen wqe, uint32_t key)
{
	const struct rdma_hca_inv_unit *unit = (void *)(wqe.next + 1);

	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_LOCAL_INV);
	CHECK_EQ(wqe.units, 2);
	CHECK_EQ(le32toh(unit->key), key);
	CHECK_EQ(unit->reserved[0] | unit->reserved[1] | unit->reserved[2], 0);
}

static struct ibv_mr some_mr = { .lkey = 0x56789a00 };

/* Whatever was in the slots: a window's life in one chain, and Sends. */
static void test_invalidate(void)
{
	static const struct ibv_qp_cap cap = { .max_send_wr = 4 };
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &cap);
	struct ibv_mw *mw = rhca_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr[3] = {
		{ .next = &wr[1],
		  .opcode = IBV_WR_BIND_MW,
		  .bind_mw = { .mw = mw,
			       .rkey = 0x123401,
			       .bind_info = { .mr = &some_mr,
					      .addr = 0x123456789abcdef0,
					      .length = 0x200000001,
					      .mw_access_flags =
						      IBV_ACCESS_LOCAL_WRITE |
						      IBV_ACCESS_REMOTE_WRITE |
						      IBV_ACCESS_ZERO_BASED } } },
		{ .next = &wr[2],
		  .opcode = IBV_WR_LOCAL_INV,
		  .num_sge = 7,
		  .invalidate_rkey = 0x123402 },
		{ .opcode = IBV_WR_SEND_WITH_INV,
		  .send_flags = IBV_SEND_FENCE,
		  .invalidate_rkey = 0x11223344 },
	};
	struct ibv_send_wr *bad;
	struct seen wqe;

	memset(qp->sq.buf.addr, 0xff, qp->sq.buf.size);
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, wr, &bad), 0);
	wqe = first_wqe(qp);
	check_bind(wqe, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED, 2,
		   0x123401, &wr[0].bind_mw.bind_info);
	CHECK_EQ(wqe.next->imm_data, 0);
	wqe = next_wqe(qp, wqe);
	check_inv(wqe, 0x123402);
	wqe = next_wqe(qp, wqe);
	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_SEND_INV);
	CHECK_EQ(wqe.units, 1);
	CHECK(wqe.fence);
	CHECK_EQ(le32toh(wqe.next->inv_rkey), 0x11223344);

	rhca_destroy_qp(&qp->vqp.qp);
	CHECK_EQ(rhca_dealloc_mw(mw), 0);
	CHECK_EQ(kernel.mws, 0);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* The verb that binds windows of type 1 finds a key by itself. */
static void test_bind(void)
{
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_UC, &small_cap);
	struct ibv_mw *mw = rhca_alloc_mw(pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {
		.wr_id = 5,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { .mr = &some_mr,
			       .addr = 0x1000,
			       .length = 8,
			       .mw_access_flags = IBV_ACCESS_REMOTE_READ },
	};
	struct ibv_qp *ibqp = &qp->vqp.qp;
	int i;

	CHECK_EQ(rhca_bind_mw(ibqp, mw, &bind), 0);
	CHECK_EQ(mw->rkey, 0x123400);
	CHECK_EQ(qp->sq.wr_id[0], 5);
	check_bind(first_wqe(qp), IBV_ACCESS_REMOTE_READ, 1, 0x123400,
		   &bind.bind_info);
	/* No MR: it is unbound. */
	bind.bind_info = (struct ibv_mw_bind_info){};
	CHECK_EQ(rhca_bind_mw(ibqp, mw, &bind), 0);
	check_bind(first_wqe(qp), 0, 1, 0x123401, &bind.bind_info);
	for (i = 0; i < 2; i++)
		CHECK_EQ(rhca_bind_mw(ibqp, mw, &bind), 0);
	CHECK_EQ(rhca_bind_mw(ibqp, mw, &bind), ENOMEM);
	CHECK_EQ(mw->rkey, 0x123403);
	rhca_destroy_qp(ibqp);
	rhca_dealloc_mw(mw);
	rhca_destroy_cq(&cq->vcq.cq);
}

static int try_bind(struct rhca_qp *qp, struct ibv_mw *mw,
		    struct ibv_mw_bind_info info, unsigned int flags)
{
	struct ibv_mw_bind bind = { .bind_info = info, .send_flags = flags };

	return rhca_bind_mw(&qp->vqp.qp, mw, &bind);
}

/* One that a work request binds, or the builder. */
static int try_bind_wr(struct rhca_qp *qp, struct ibv_mw *mw,
		       struct ibv_mw_bind_info info)
{
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW,
				  .bind_mw = { .mw = mw, .bind_info = info } };
	struct ibv_send_wr *bad;
	int err;

	ibv_wr_start(ex);
	ibv_wr_bind_mw(ex, mw, 0, &info);
	err = ibv_wr_complete(ex);
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), err);
	return err;
}

static void test_bad_binds(void)
{
	const struct ibv_mw_bind_info good = { .mr = &some_mr, .length = 1 };
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &small_cap);
	struct rhca_qp *ud = new_qp(cq, IBV_QPT_UD, &small_cap);
	struct ibv_mw *one = rhca_alloc_mw(pd, IBV_MW_TYPE_1);
	struct ibv_mw *two = rhca_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info info = good;

	CHECK(!rhca_alloc_mw(pd, 3) && errno == EINVAL);
	CHECK_EQ(try_bind(qp, two, good, 0), EINVAL);
	CHECK_EQ(try_bind(ud, one, good, 0), EINVAL);
	CHECK_EQ(try_bind(qp, one, good, IBV_SEND_IP_CSUM), EINVAL);
	CHECK_EQ(try_bind_wr(qp, one, good), EINVAL);
	info.mr = NULL;
	CHECK_EQ(try_bind(qp, one, info, 0), EINVAL);
	info.length = 0;
	CHECK_EQ(try_bind_wr(qp, two, info), EINVAL);
	info = good;
	info.mw_access_flags = IBV_ACCESS_ZERO_BASED;
	CHECK_EQ(try_bind(qp, one, info, 0), EINVAL);
	info.mw_access_flags = IBV_ACCESS_MW_BIND;
	CHECK_EQ(try_bind(qp, one, info, 0), EINVAL);
	CHECK_EQ(try_bind_wr(qp, two, info), EINVAL);
	CHECK_EQ(doorbell(RDMA_HCA_SEND_DB + 4), 0);
	CHECK_EQ(try_bind_wr(qp, two, good), 0);
	qp->vqp.qp.state = IBV_QPS_RTR;
	CHECK_EQ(try_bind(qp, one, good, 0), EINVAL);
	CHECK_EQ(one->rkey, 0x1234ff);

	rhca_dealloc_mw(two);
	rhca_dealloc_mw(one);
	rhca_destroy_qp(&ud->vqp.qp);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* One key for all, if there is one; the kernel does not know of it. */
static void test_null_mr(void)
{
	struct ibv_mr *mr;

	CHECK(!rhca_alloc_null_mr(pd) && errno == EOPNOTSUPP);
	ctx.null_key = 0x4242;
	mr = rhca_alloc_null_mr(pd);
	CHECK_EQ(mr->lkey, 0x4242);
	CHECK(mr->pd == pd && mr->context == &ctx.vctx.context);
	kernel.dereg_err = EIO;
	CHECK_EQ(rhca_dereg_mr(verbs_get_mr(mr)), 0);
	kernel.dereg_err = 0;
}

static void test_ud(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.dlid = 0x1234,
		.sl = 3,
		.src_path_bits = 1,
		.port_num = 1,
		.grh = { .flow_label = 0xfffabcde, /* 20 bits count */
			 .hop_limit = 9,
			 .traffic_class = 0x55 },
	};
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_UD, &small_cap);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_IMM };
	const struct rdma_hca_ud_unit *unit;
	struct ibv_send_wr *bad;
	struct ibv_ah *ah;
	struct seen wqe;

	memset(attr.grh.dgid.raw, 0xfe, 16);
	ah = rhca_create_ah(pd, &attr);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = 0x77;
	wr.wr.ud.remote_qkey = 0x80000001;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), 0);
	wqe = first_wqe(qp);
	CHECK_EQ(wqe.units, 4);
	unit = (void *)(wqe.next + 1);
	CHECK_EQ(le32toh(unit->port), 0x80000931);
	CHECK_EQ(le32toh(unit->dlid_slid), 0x12340021);
	CHECK_EQ(le32toh(unit->flow), 0x055abcde);
	CHECK(!memcmp(unit->dgid, attr.grh.dgid.raw, 16));
	CHECK_EQ(le32toh(unit->dqpn), 0x77);
	CHECK_EQ(le32toh(unit->qkey), 0x80000001);

	wr.opcode = IBV_WR_RDMA_WRITE;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_SEND;
	wr.wr.ud.ah = NULL;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	rhca_destroy_ah(ah);
	/* InfiniBand needs no kernel for it. */
	CHECK_EQ(kernel.ahs, 0);

	attr.port_num = 2;
	CHECK(!rhca_create_ah(pd, &attr));
	attr.port_num = 1;
	attr.src_path_bits = 2;
	CHECK(!rhca_create_ah(pd, &attr));
	attr.src_path_bits = 0;
	attr.grh.sgid_index = 1;
	CHECK(!rhca_create_ah(pd, &attr));

	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

static void check_roce_unit(const struct seen *wqe, const uint8_t *dgid)
{
	const struct rdma_hca_ud_unit *unit = (void *)(wqe->next + 1);

	CHECK_EQ(le32toh(unit->port), 0x80054021);
	CHECK_EQ(le32toh(unit->dlid_slid), 0xbbcc0000);
	CHECK_EQ(le32toh(unit->dmac_h2), 0x525400aa);
	CHECK_EQ(le32toh(unit->flow), 0x06812345);
	CHECK(!memcmp(unit->dgid, dgid, 16));
	CHECK_EQ(le32toh(unit->dqpn), 0x77);
	CHECK_EQ(le32toh(unit->qkey), 0x11111111);
}

/* The MAC and the hop limit come from the kernel, the rest from the user. */
static void test_roce_ud(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.dlid = 0x1234,
		.sl = 2,
		.port_num = 1,
		.grh = { .flow_label = 0x12345,
			 .hop_limit = 1,
			 .sgid_index = 5,
			 .traffic_class = 0x68 },
	};
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_UD, &small_cap);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	struct ibv_send_wr *bad;
	struct ibv_ah *ah;
	struct seen wqe;

	ctx.is_roce = true;
	memset(attr.grh.dgid.raw, 0x3c, 16);
	ah = rhca_create_ah(pd, &attr);
	CHECK_EQ(kernel.ahs, 1);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = 0x77;
	wr.wr.ud.remote_qkey = 0x11111111;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), 0);
	wqe = first_wqe(qp);
	check_roce_unit(&wqe, attr.grh.dgid.raw);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, ah, 0x77, 0x11111111);
	CHECK_EQ(ibv_wr_complete(ex), 0);
	wqe = first_wqe(qp);
	check_roce_unit(&wqe, attr.grh.dgid.raw);
	CHECK_EQ(rhca_destroy_ah(ah), 0);
	CHECK_EQ(kernel.ahs, 0);

	/* Of a flow label that is too long its 20 bits count. */
	attr.grh.flow_label = 0xfff12345;
	ah = rhca_create_ah(pd, &attr);
	CHECK(ah);
	wr.wr.ud.ah = ah;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), 0);
	wqe = first_wqe(qp);
	check_roce_unit(&wqe, attr.grh.dgid.raw);
	CHECK_EQ(rhca_destroy_ah(ah), 0);

	attr.is_global = 0;
	CHECK(!rhca_create_ah(pd, &attr));
	CHECK_EQ(errno, EINVAL);
	attr.is_global = 1;
	kernel.create_ah_err = EHOSTUNREACH;
	CHECK(!rhca_create_ah(pd, &attr));
	CHECK_EQ(errno, EHOSTUNREACH);
	kernel.create_ah_err = 0;
	CHECK_EQ(kernel.ahs, 0);

	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* A frame is the whole message: nothing says where it goes. */
static void test_raw(void)
{
	struct ibv_flow_attr attr = { .type = IBV_FLOW_ATTR_SNIFFER, .port = 1,
				      .size = sizeof(attr) };
	struct rhca_cq *cq = new_cq(8);
	struct ibv_sge sge = { 0x1000, 60, 7 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge,
				  .num_sge = 1 };
	const struct rdma_hca_data_unit *unit;
	struct ibv_send_wr *bad;
	struct ibv_flow *flow;
	struct rhca_qp *qp;
	struct seen wqe;

	CHECK_EQ(rhca_send_ops(&ctx, IBV_QPT_RAW_PACKET), IBV_QP_EX_WITH_SEND);
	ctx.is_roce = true;
	qp = new_qp(cq, IBV_QPT_RAW_PACKET, &small_cap);
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), 0);
	wqe = first_wqe(qp);
	CHECK_EQ(wqe.units, 2);
	unit = (void *)(wqe.next + 1);
	CHECK_EQ(le32toh(unit->byte_cnt), 60);
	CHECK_EQ(le32toh(unit->lkey), 7);
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_RDMA_WRITE;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);

	flow = rhca_create_flow(&qp->vqp.qp, &attr);
	CHECK(flow);
	CHECK_EQ(kernel.flows, 1);
	kernel.destroy_flow_err = EIO;
	CHECK_EQ(rhca_destroy_flow(flow), EIO);
	kernel.destroy_flow_err = 0;
	CHECK_EQ(rhca_destroy_flow(flow), 0);
	CHECK_EQ(kernel.flows, 0);
	attr.port = 2;
	CHECK(!rhca_create_flow(&qp->vqp.qp, &attr));
	CHECK_EQ(errno, EINVAL);
	rhca_destroy_qp(&qp->vqp.qp);
	ctx.is_roce = false;
	rhca_destroy_cq(&cq->vcq.cq);
}

static void test_bad_sends(void)
{
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_UC, &small_cap);
	char data[4096] = {};
	struct ibv_sge sge[40] = { { (uintptr_t)data, 4096, 1 } };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_READ };
	struct ibv_send_wr *bad = NULL;

	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	CHECK(bad == &wr);
	wr.opcode = IBV_WR_TSO;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	wr.opcode = -1;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_SEND;
	wr.sg_list = sge;
	wr.num_sge = 40;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	wr.num_sge = -1;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_INLINE;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	sge[0].length = UINT32_MAX;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	wr.send_flags = 0;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	wr.num_sge = 0;
	wr.send_flags = IBV_SEND_IP_CSUM;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	wr.send_flags = 0;
	qp->vqp.qp.state = IBV_QPS_RTR;
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), EINVAL);
	qp->vqp.qp.state = IBV_QPS_ERR;
	CHECK_EQ(doorbell(RDMA_HCA_SEND_DB + 4), 0);
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad), 0);
	CHECK_EQ(first_wqe(qp).units, 1);

	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* A bad request in the middle: those before it go out. */
static void test_bad_wr(void)
{
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &small_cap);
	struct ibv_send_wr wr[3] = {
		{ .next = &wr[1], .opcode = IBV_WR_SEND },
		{ .next = &wr[2], .opcode = IBV_WR_TSO },
		{ .opcode = IBV_WR_SEND },
	};
	struct ibv_send_wr *bad = NULL;
	struct seen wqe;

	CHECK_EQ(rhca_post_send(&qp->vqp.qp, wr, &bad), EINVAL);
	CHECK(bad == &wr[1]);
	wqe = first_wqe(qp);
	CHECK_EQ(wqe.units, 1);
	CHECK_EQ(wqe.next->nee_nds, 0);
	CHECK_EQ(qp->sq.head, 1);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

static void test_full(void)
{
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &small_cap);
	struct ibv_wc wc[4];
	uint32_t pi = 0;
	int lap;

	CHECK_EQ(post_nop_sends(qp, 4, 0), 0);
	CHECK_EQ(post_nop_sends(qp, 1, 4), ENOMEM);
	/* One completion retires the unsignalled ones before it. */
	produce(cq, pi++, make_cqe(qp, true, 2, RDMA_HCA_OPCODE_SEND));
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 4, wc), 1);
	CHECK_EQ(wc[0].wr_id, 2);
	CHECK_EQ(post_nop_sends(qp, 3, 4), 0);
	CHECK_EQ(post_nop_sends(qp, 1, 7), ENOMEM);
	for (lap = 3; lap < 1000; lap++) {
		produce(cq, pi++,
			make_cqe(qp, true, lap, RDMA_HCA_OPCODE_SEND));
		CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 4, wc), 1);
		CHECK_EQ(wc[0].wr_id, lap);
		CHECK_EQ(post_nop_sends(qp, 1, lap + 4), 0);
		CHECK_EQ(post_nop_sends(qp, 1, 0), ENOMEM);
	}
	CHECK_EQ(le32toh(*cq->ci_db), pi);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

static void check_recv_wqe(const struct rdma_hca_next_unit *wqe,
			   const struct ibv_recv_wr *wr)
{
	static const struct rdma_hca_data_unit zero;
	const struct rdma_hca_data_unit *unit = (void *)(wqe + 1);
	int i;

	CHECK(FIELD_GET(RDMA_HCA_NEXT_NDS, le32toh(wqe->nee_nds)));
	for (i = 0; i < wr->num_sge; i++)
		if (wr->sg_list[i].length)
			check_data(unit++, wr->sg_list[i].addr,
				   wr->sg_list[i].length, wr->sg_list[i].lkey);
	CHECK(!memcmp(unit, &zero, sizeof(zero)));
}

static void test_recv(void)
{
	struct ibv_qp_cap cap = { .max_recv_wr = 32768, .max_recv_sge = 30 };
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &cap);
	struct ibv_sge sge[31];
	struct ibv_recv_wr wr = { .sg_list = sge };
	struct ibv_recv_wr *bad;
	struct ibv_wc wc;
	uint32_t i;

	for (i = 0; i < 31; i++)
		sge[i] = (struct ibv_sge) { 0x1000 + i, i % 5, i };
	for (i = 0; i < 70000; i++) {
		wr.wr_id = i;
		wr.num_sge = i % 31;
		CHECK_EQ(rhca_post_recv(&qp->vqp.qp, &wr, &bad), 0);
		CHECK_EQ(le32toh(*qp->rq_db), (i + 1) & 0xffff);
		check_recv_wqe(rhca_wq_slot(&qp->rq, i), &wr);
		if (i < 32767)
			continue;
		CHECK_EQ(rhca_post_recv(&qp->vqp.qp, &wr, &bad), ENOMEM);
		produce(cq, i - 32767, make_cqe(qp, false, i - 32767, 0x04));
		CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 1, &wc), 1);
		CHECK_EQ(wc.wr_id, i - 32767);
	}
	wr.num_sge = 31;
	CHECK_EQ(rhca_post_recv(&qp->vqp.qp, &wr, &bad), EINVAL);
	wr.num_sge = -1;
	CHECK_EQ(rhca_post_recv(&qp->vqp.qp, &wr, &bad), EINVAL);
	CHECK(bad == &wr);
	rhca_destroy_qp(&qp->vqp.qp);

	cap = (struct ibv_qp_cap) { .max_send_wr = 1 };
	qp = new_qp(cq, IBV_QPT_RC, &cap);
	CHECK_EQ(kernel.qp_req.rq_addr, 0);
	CHECK_EQ(kernel.qp_req.rq_len, 0);
	wr.num_sge = 0;
	CHECK_EQ(rhca_post_recv(&qp->vqp.qp, &wr, &bad), ENOMEM);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

static void test_recv_completions(void)
{
	static const struct {
		uint8_t bth;
		enum ibv_wc_opcode opcode;
		unsigned int flags;
	} rows[] = {
		{ 0x02, IBV_WC_RECV, 0 },
		{ 0x03, IBV_WC_RECV, IBV_WC_WITH_IMM },
		{ 0x04, IBV_WC_RECV, 0 },
		{ 0x05, IBV_WC_RECV, IBV_WC_WITH_IMM },
		{ 0x09, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM },
		{ 0x0b, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM },
		{ 0x23, IBV_WC_RECV, IBV_WC_WITH_IMM },
		{ 0x2b, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM },
		{ 0x64, IBV_WC_RECV, 0 },
		{ 0x65, IBV_WC_RECV, IBV_WC_WITH_IMM },
		{ 0x16, IBV_WC_RECV, IBV_WC_WITH_INV },
		{ 0x17, IBV_WC_RECV, IBV_WC_WITH_INV },
	};
	struct rhca_cq *cq = new_cq(16);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_UD, &small_cap);
	struct rdma_hca_cqe cqe;
	struct ibv_wc wc;
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		cqe = make_cqe(qp, false, 0, rows[i].bth);
		cqe.rqpn = htole32(0x123456);
		cqe.rlid_path = htole32(0xbeef8103);
		if (rows[i].flags == IBV_WC_WITH_INV)
			cqe.inv_rkey = htole32(0xdeadbeef);
		else
			cqe.imm = htobe32(0xdeadbeef);
		cqe.byte_cnt = htole32(140);
		produce(cq, i, cqe);
		memset(&wc, 0xff, sizeof(wc));
		CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 1, &wc), 1);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK_EQ(wc.opcode, rows[i].opcode);
		CHECK_EQ(wc.wc_flags, rows[i].flags | IBV_WC_GRH);
		CHECK_EQ(wc.src_qp, 0x123456);
		CHECK_EQ(wc.slid, 0xbeef);
		CHECK_EQ(wc.sl, 3);
		CHECK_EQ(wc.dlid_path_bits, 1);
		CHECK_EQ(wc.byte_len, 140);
		CHECK_EQ(wc.qp_num, qp->vqp.qp.qp_num);
		CHECK_EQ(wc.vendor_err, 0);
		if (rows[i].flags == IBV_WC_WITH_INV)
			CHECK_EQ(wc.invalidated_rkey, 0xdeadbeef);
		else if (rows[i].flags)
			CHECK_EQ(wc.imm_data, htobe32(0xdeadbeef));
	}
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

/*
 * With a VLAN and an IPv4 header or not, which are where InfiniBand has LIDs.
 * The SL of a datagram says which header it had, that of others the priority.
 */
static void check_roce_completion(enum ibv_qp_type type, uint8_t bth,
				  uint32_t ipv4, uint8_t sl)
{
	struct rhca_cq *cq = new_cq(4);
	struct rhca_qp *qp = new_qp(cq, type, &small_cap);
	struct rdma_hca_cqe cqe = make_cqe(qp, false, 0, bth);
	struct ibv_wc wc;

	cqe.rqpn = htole32(0x42);
	cqe.rlid_path = htole32(RDMA_HCA_CQE_HAS_VLAN | RDMA_HCA_CQE_GRH | ipv4 |
				FIELD_PREP(RDMA_HCA_CQE_VLAN, 0x123) |
				FIELD_PREP(RDMA_HCA_CQE_SL, 5));
	produce(cq, 0, cqe);
	memset(&wc, 0xff, sizeof(wc));
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 1, &wc), 1);
	CHECK_EQ(wc.wc_flags, IBV_WC_GRH);
	CHECK_EQ(wc.src_qp, 0x42);
	CHECK_EQ(wc.slid, 0);
	CHECK_EQ(wc.dlid_path_bits, 0);
	CHECK_EQ(wc.sl, sl);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

static void test_roce_completions(void)
{
	ctx.is_roce = true;
	check_roce_completion(IBV_QPT_UD, 0x64, RDMA_HCA_CQE_IPV4, 2);
	check_roce_completion(IBV_QPT_UD, 0x64, 0, 1);
	check_roce_completion(IBV_QPT_RC, 0x04, RDMA_HCA_CQE_IPV4, 5);
	check_roce_completion(IBV_QPT_RC, 0x04, 0, 5);
}

static void test_send_completions(void)
{
	static const struct {
		uint8_t card;
		enum ibv_wc_opcode opcode;
	} rows[] = {
		{ RDMA_HCA_OPCODE_SEND, IBV_WC_SEND },
		{ RDMA_HCA_OPCODE_SEND_IMM, IBV_WC_SEND },
		{ RDMA_HCA_OPCODE_RDMA_WRITE, IBV_WC_RDMA_WRITE },
		{ RDMA_HCA_OPCODE_RDMA_WRITE_IMM, IBV_WC_RDMA_WRITE },
		{ RDMA_HCA_OPCODE_RDMA_READ, IBV_WC_RDMA_READ },
		{ RDMA_HCA_OPCODE_ATOMIC_CS, IBV_WC_COMP_SWAP },
		{ RDMA_HCA_OPCODE_ATOMIC_FA, IBV_WC_FETCH_ADD },
		{ RDMA_HCA_OPCODE_ATOMIC_WRITE, IBV_WC_ATOMIC_WRITE },
		{ RDMA_HCA_OPCODE_FLUSH, IBV_WC_FLUSH },
		{ RDMA_HCA_OPCODE_SEND_INV, IBV_WC_SEND },
		{ RDMA_HCA_OPCODE_LOCAL_INV, IBV_WC_LOCAL_INV },
		{ RDMA_HCA_OPCODE_BIND_MW, IBV_WC_BIND_MW },
	};
	struct rhca_cq *cq = new_cq(16);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &small_cap);
	struct ibv_wc wc;
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		produce(cq, i, make_cqe(qp, true, i, rows[i].card));
		CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 1, &wc), 1);
		CHECK_EQ(wc.opcode, rows[i].opcode);
		CHECK_EQ(wc.wc_flags, 0);
	}
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

static void test_errors(void)
{
	static const struct {
		uint8_t syndrome;
		enum ibv_wc_status status;
	} rows[] = {
		{ 0x00, IBV_WC_GENERAL_ERR },
		{ 0x01, IBV_WC_LOC_LEN_ERR },
		{ 0x02, IBV_WC_LOC_QP_OP_ERR },
		{ 0x04, IBV_WC_LOC_PROT_ERR },
		{ 0x05, IBV_WC_WR_FLUSH_ERR },
		{ 0x06, IBV_WC_MW_BIND_ERR },
		{ 0x10, IBV_WC_BAD_RESP_ERR },
		{ 0x11, IBV_WC_LOC_ACCESS_ERR },
		{ 0x12, IBV_WC_REM_INV_REQ_ERR },
		{ 0x13, IBV_WC_REM_ACCESS_ERR },
		{ 0x14, IBV_WC_REM_OP_ERR },
		{ 0x15, IBV_WC_RETRY_EXC_ERR },
		{ 0x16, IBV_WC_RNR_RETRY_EXC_ERR },
		{ 0x20, IBV_WC_LOC_RDD_VIOL_ERR },
		{ 0x21, IBV_WC_REM_INV_RD_REQ_ERR },
		{ 0x22, IBV_WC_REM_ABORT_ERR },
		{ 0x23, IBV_WC_INV_EECN_ERR },
		{ 0x24, IBV_WC_INV_EEC_STATE_ERR },
		{ 0x07, IBV_WC_GENERAL_ERR },
		{ 0x25, IBV_WC_GENERAL_ERR },
		{ 0xff, IBV_WC_GENERAL_ERR },
	};
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &small_cap);
	struct rdma_hca_cqe cqe;
	struct ibv_wc wc;
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		qp->sq.wr_id[i % 4] = i;
		cqe = make_cqe(qp, true, i, RDMA_HCA_OPCODE_INVALID);
		cqe.err = htole32(0x0300 | rows[i].syndrome);
		produce(cq, i, cqe);
		CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 1, &wc), 1);
		CHECK_EQ(wc.status, rows[i].status);
		CHECK_EQ(wc.vendor_err, 3);
		CHECK_EQ(wc.wr_id, i);
		CHECK_EQ(wc.qp_num, qp->vqp.qp.qp_num);
	}
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* The entries of a QP that goes are gone; the others stay in order. */
static void test_clean(void)
{
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *a = new_qp(cq, IBV_QPT_RC, &small_cap);
	struct rhca_qp *b = new_qp(cq, IBV_QPT_RC, &small_cap);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_recv_wr recv = {}, *bad;
	struct ibv_wc wc[8];
	uint32_t pi = 0;
	int i;

	/* Begin in the middle of the ring, so that it wraps. */
	for (i = 0; i < 5; i++) {
		CHECK_EQ(post_nop_sends(a, 1, 0), 0);
		produce(cq, pi++, make_cqe(a, true, i, RDMA_HCA_OPCODE_SEND));
		CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 8, wc), 1);
	}
	CHECK_EQ(post_nop_sends(b, 4, 100), 0);
	CHECK_EQ(rhca_post_recv(&a->vqp.qp, &recv, &bad), 0);
	for (i = 0; i < 8; i++)
		produce(cq, pi++,
			i % 2 ? make_cqe(b, true, i / 2, RDMA_HCA_OPCODE_SEND) :
				make_cqe(a, true, 5 + i / 2,
					 RDMA_HCA_OPCODE_SEND));
	CHECK_EQ(rhca_modify_qp(&a->vqp.qp, &attr, IBV_QP_STATE), 0);
	CHECK_EQ(le32toh(*cq->ci_db), pi - 4);
	CHECK_EQ(a->sq.head + a->sq.tail + a->rq.head, 0);
	CHECK_EQ(*a->rq_db, 0);
	/* The freed places can be written again. */
	produce(cq, pi++, make_cqe(a, true, 0, RDMA_HCA_OPCODE_SEND));
	rhca_destroy_qp(&a->vqp.qp);
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 8, wc), 4);
	for (i = 0; i < 4; i++)
		CHECK_EQ(wc[i].wr_id, 100 + i);
	CHECK_EQ(le32toh(*cq->ci_db), pi);
	rhca_destroy_qp(&b->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

static struct {
	struct rhca_cq *cq;
	struct rhca_qp *qp;
	uint32_t pi;
} resizing;

static void produce_while_resizing(void)
{
	produce(resizing.cq, resizing.pi++,
		make_cqe(resizing.qp, true, 3, RDMA_HCA_OPCODE_SEND));
}

static void test_resize(void)
{
	struct rhca_cq *cq = new_cq(4);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &small_cap);
	struct ibv_wc wc[8];
	uint32_t i;

	CHECK_EQ(post_nop_sends(qp, 4, 10), 0);
	for (i = 0; i < 3; i++)
		produce(cq, i, make_cqe(qp, true, i, RDMA_HCA_OPCODE_SEND));
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 1, wc), 1);
	CHECK_EQ(rhca_resize_cq(&cq->vcq.cq, 1), EINVAL);
	CHECK_EQ(rhca_resize_cq(&cq->vcq.cq, 0), EINVAL);
	CHECK_EQ(rhca_resize_cq(&cq->vcq.cq, 65537), EINVAL);

	resizing.cq = cq;
	resizing.qp = qp;
	resizing.pi = 3;
	kernel.on_resize = produce_while_resizing;
	CHECK_EQ(rhca_resize_cq(&cq->vcq.cq, 60), 0);
	kernel.on_resize = NULL;
	CHECK_EQ(kernel.resize_addr, (uintptr_t)cq->buf.addr);
	CHECK_EQ(cq->vcq.cq.cqe, 64);
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 8, wc), 3);
	for (i = 0; i < 3; i++)
		CHECK_EQ(wc[i].wr_id, 11 + i);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

static void test_arm(void)
{
	struct rhca_cq *cq = new_cq(4);

	CHECK_EQ(rhca_req_notify_cq(&cq->vcq.cq, 0), 0);
	CHECK_EQ(doorbell(RDMA_HCA_CQ_DB), 2u << 24 | cq->cqn);
	CHECK_EQ(doorbell(RDMA_HCA_CQ_DB + 4), 0);
	cq->ci = 0x12345;
	rhca_store_record(cq->ci_db, cq->ci);
	CHECK_EQ(rhca_req_notify_cq(&cq->vcq.cq, 1), 0);
	CHECK_EQ(doorbell(RDMA_HCA_CQ_DB), 1u << 24 | cq->cqn);
	CHECK_EQ(doorbell(RDMA_HCA_CQ_DB + 4), 0x12345);
	rhca_destroy_cq(&cq->vcq.cq);
}

static void test_start_poll(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 4,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
	};
	struct ibv_cq_ex *ex = rhca_create_cq_ex(&ctx.vctx.context, &attr);
	struct rhca_cq *cq = to_rcq_ex(ex);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &small_cap);
	struct ibv_poll_cq_attr poll = {};
	struct rdma_hca_cqe stray;

	CHECK_EQ(ibv_start_poll(ex, &poll), ENOENT);
	CHECK_EQ(post_nop_sends(qp, 2, 20), 0);
	produce(cq, 0, make_cqe(qp, true, 0, RDMA_HCA_OPCODE_SEND));
	/* An entry of no QP is passed by. */
	stray = make_cqe(qp, true, 0, RDMA_HCA_OPCODE_SEND);
	stray.my_qpn = htole32(0xfe);
	produce(cq, 1, stray);
	produce(cq, 2, make_cqe(qp, true, 1, RDMA_HCA_OPCODE_RDMA_READ));
	CHECK_EQ(ibv_start_poll(ex, &poll), 0);
	CHECK_EQ(ex->wr_id, 20);
	CHECK_EQ(ex->status, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_wc_read_opcode(ex), IBV_WC_SEND);
	CHECK_EQ(ibv_next_poll(ex), 0);
	CHECK_EQ(ex->wr_id, 21);
	CHECK_EQ(ibv_wc_read_opcode(ex), IBV_WC_RDMA_READ);
	CHECK_EQ(ibv_wc_read_qp_num(ex), qp->vqp.qp.qp_num);
	/* What is being read is not given back yet. */
	CHECK_EQ(le32toh(*cq->ci_db), 0);
	CHECK_EQ(ibv_next_poll(ex), ENOENT);
	ibv_end_poll(ex);
	CHECK_EQ(le32toh(*cq->ci_db), 3);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

static void test_wr_api(void)
{
	struct rhca_cq *cq = new_cq(4);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &small_cap);
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	struct ibv_sge sge[3] = { { 0x10, 1, 2 }, { 0x20, 2, 3 } };
	char text[64] = "inline";
	struct seen wqe;
	int i;

	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, 7, 0x8000);
	ibv_wr_set_sge_list(ex, 2, sge);
	ex->wr_flags = IBV_SEND_FENCE;
	ibv_wr_send_imm(ex, htobe32(5));
	ibv_wr_set_inline_data(ex, text, 6);
	ibv_wr_atomic_cmp_swp(ex, 7, 0x8000, 1, 2);
	ibv_wr_set_sge(ex, 1, 0x1000, 8);
	CHECK_EQ(ibv_wr_complete(ex), 0);

	wqe = first_wqe(qp);
	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_RDMA_WRITE);
	CHECK_EQ(wqe.units, 4);
	check_raddr((void *)(wqe.next + 1), 0x8000, 7);
	check_data((void *)(wqe.next + 3), 0x20, 2, 3);
	wqe = next_wqe(qp, wqe);
	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_SEND_IMM);
	CHECK_EQ(wqe.units, 2);
	CHECK(wqe.fence);
	CHECK(!memcmp((char *)(wqe.next + 1) + 4, "inline", 6));
	wqe = next_wqe(qp, wqe);
	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_ATOMIC_CS);
	CHECK_EQ(wqe.units, 4);
	CHECK_EQ(wqe.next->nee_nds, 0);

	/* What sends nothing has no data. */
	ibv_wr_start(ex);
	ibv_wr_local_inv(ex, 5);
	ibv_wr_set_sge(ex, 1, 2, 3);
	CHECK_EQ(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ibv_wr_local_inv(ex, 5);
	ibv_wr_set_inline_data(ex, text, 1);
	CHECK_EQ(ibv_wr_complete(ex), EINVAL);

	/* Whatever fails or is aborted leaves nothing behind. */
	memset(uar, 0, sizeof(uar));
	ibv_wr_start(ex);
	for (i = 0; i < 3; i++) {
		ibv_wr_send(ex);
		ibv_wr_set_sge(ex, 1, 2, 3);
	}
	CHECK_EQ(ibv_wr_complete(ex), ENOMEM);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, text, SIZE_MAX);
	ibv_wr_send(ex);
	CHECK_EQ(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_abort(ex);
	CHECK_EQ(doorbell(RDMA_HCA_SEND_DB + 4), 0);
	CHECK_EQ(qp->sq.head, 3);

	atomic_store(&qp->sq.tail, 3);
	ibv_wr_start(ex);
	ex->wr_flags = 0;
	ibv_wr_local_inv(ex, 0x5678);
	ibv_wr_send_inv(ex, 0x9abc);
	ibv_wr_set_sge(ex, 1, 0x1000, 8);
	CHECK_EQ(ibv_wr_complete(ex), 0);
	wqe = first_wqe(qp);
	check_inv(wqe, 0x5678);
	wqe = next_wqe(qp, wqe);
	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_SEND_INV);
	CHECK_EQ(wqe.units, 2);
	CHECK_EQ(le32toh(wqe.next->inv_rkey), 0x9abc);

	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

static void check_flush(struct seen wqe, uint32_t len, uint8_t type,
			uint8_t level)
{
	const struct rdma_hca_flush_unit *unit = (void *)(wqe.next + 2);

	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_FLUSH);
	CHECK_EQ(wqe.units, 3);
	check_raddr((void *)(wqe.next + 1), 0x8000, 7);
	CHECK_EQ(le32toh(unit->length), len);
	CHECK_EQ(le32toh(unit->type_level), type | level << 4);
	CHECK_EQ(unit->reserved[0] | unit->reserved[1], 0);
}

static void test_flush(void)
{
	static const struct {
		uint64_t len;
		uint8_t type, level;
	} bad[] = {
		{ 8, 0, IBV_FLUSH_RANGE },
		{ 8, 4, IBV_FLUSH_RANGE },
		{ 8, 0x81, IBV_FLUSH_MR },
		{ 8, IBV_FLUSH_GLOBAL, 2 },
		{ 0x80000001, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE },
		{ 1ULL << 32, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE },
	};
	struct ibv_send_wr wr = { .opcode = IBV_WR_FLUSH }, *bad_wr;
	struct rhca_cq *cq = new_cq(4);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &small_cap);
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	struct seen wqe;
	size_t i;

	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_FENCE;
	ibv_wr_flush(ex, 7, 0x8000, 0x80000000, IBV_FLUSH_GLOBAL,
		     IBV_FLUSH_RANGE);
	ibv_wr_flush(ex, 7, 0x8000, SIZE_MAX,
		     IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR);
	CHECK_EQ(ibv_wr_complete(ex), 0);
	wqe = first_wqe(qp);
	check_flush(wqe, 0x80000000, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	CHECK(wqe.fence);
	wqe = next_wqe(qp, wqe);
	check_flush(wqe, 0, IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT,
		    IBV_FLUSH_MR);

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		ibv_wr_start(ex);
		ibv_wr_flush(ex, 7, 0x8000, bad[i].len, bad[i].type,
			     bad[i].level);
		CHECK_EQ(ibv_wr_complete(ex), EINVAL);
	}
	/* It has no data, and a struct ibv_send_wr no place for what it has. */
	ibv_wr_start(ex);
	ibv_wr_flush(ex, 7, 0x8000, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	ibv_wr_set_sge(ex, 1, 2, 3);
	CHECK_EQ(ibv_wr_complete(ex), EINVAL);
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad_wr), EINVAL);
	CHECK(bad_wr == &wr);
	CHECK_EQ(qp->sq.head, 2);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

static void check_atomic_write(struct seen wqe, const void *value)
{
	const __le32 *header = (void *)(wqe.next + 2);

	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_ATOMIC_WRITE);
	CHECK_EQ(wqe.units, 3);
	check_raddr((void *)(wqe.next + 1), 0x8000, 7);
	CHECK_EQ(le32toh(*header), RDMA_HCA_INLINE | 8);
	CHECK(!memcmp(header + 1, value, 8));
}

static void test_atomic_write(void)
{
	struct ibv_qp_cap cap = { .max_send_wr = 4, .max_send_sge = 1 };
	struct ibv_sge sge = { .addr = 0x1000, .length = 8, .lkey = 5 };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_ATOMIC_WRITE,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = { .remote_addr = 0x8000, .rkey = 7 },
	};
	struct rhca_cq *cq = new_cq(4);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_RC, &cap);
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	struct ibv_send_wr *bad_wr;
	const char *value = "8 bytes!";
	struct seen wqe;

	ibv_wr_start(ex);
	ibv_wr_atomic_write(ex, 7, 0x8000, value);
	ibv_wr_send(ex);
	CHECK_EQ(ibv_wr_complete(ex), 0);
	wqe = first_wqe(qp);
	check_atomic_write(wqe, value);
	wqe = next_wqe(qp, wqe);
	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_SEND);

	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad_wr), 0);
	wqe = first_wqe(qp);
	CHECK_EQ(wqe.opcode, RDMA_HCA_OPCODE_ATOMIC_WRITE);
	CHECK_EQ(wqe.units, 3);
	check_data((void *)(wqe.next + 2), 0x1000, 8, 5);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* A kernel that does not know them, or a card that has not got them. */
static void test_missing_ops(void)
{
	uint64_t ops = IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE;
	struct ibv_send_wr wr = { .opcode = IBV_WR_ATOMIC_WRITE }, *bad_wr;
	struct rhca_cq *cq = new_cq(4);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = &cq->vcq.cq,
		.recv_cq = &cq->vcq.cq,
		.cap = small_cap,
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
	};
	struct rhca_qp *qp;
	uint64_t op;

	CHECK_EQ(rhca_send_ops(&ctx, IBV_QPT_RC) & ops, ops);
	CHECK_EQ(rhca_send_ops(&ctx, IBV_QPT_XRC_SEND) & ops, ops);
	CHECK_EQ(rhca_send_ops(&ctx, IBV_QPT_UC) & ops, 0);
	CHECK_EQ(rhca_send_ops(&ctx, IBV_QPT_UD) & ops, 0);
	ctx.missing_ops = ops;
	CHECK_EQ(rhca_send_ops(&ctx, IBV_QPT_RC) & ops, 0);
	for (op = IBV_QP_EX_WITH_FLUSH; op <= IBV_QP_EX_WITH_ATOMIC_WRITE;
	     op *= 2) {
		attr.send_ops_flags = op;
		CHECK(!rhca_create_qp_ex(&ctx.vctx.context, &attr));
		CHECK_EQ(errno, EOPNOTSUPP);
	}
	qp = new_qp(cq, IBV_QPT_RC, &small_cap);
	CHECK_EQ(rhca_post_send(&qp->vqp.qp, &wr, &bad_wr), EINVAL);
	CHECK(!qp->vqp.qp_ex.wr_flush && !qp->vqp.qp_ex.wr_atomic_write);
	ctx.missing_ops = 0;
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

static void test_wr_api_ud(void)
{
	struct ibv_ah_attr attr = { .dlid = 1, .port_num = 1 };
	struct rhca_cq *cq = new_cq(4);
	struct rhca_qp *qp = new_qp(cq, IBV_QPT_UD, &small_cap);
	struct ibv_ah *ah = rhca_create_ah(pd, &attr);
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	struct seen wqe;

	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, 1, 0x1000, 8);
	ibv_wr_set_ud_addr(ex, ah, 9, 10);
	CHECK_EQ(ibv_wr_complete(ex), 0);
	wqe = first_wqe(qp);
	CHECK_EQ(wqe.units, 5);
	check_data((void *)(wqe.next + 4), 0x1000, 8, 1);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	CHECK_EQ(ibv_wr_complete(ex), EINVAL);
	rhca_destroy_ah(ah);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* --- shared receive queues ---------------------------------------------- */

static struct rhca_srq *new_srq(uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = max_wr, .max_sge = max_sge },
	};
	struct ibv_srq *srq = rhca_create_srq(pd, &attr);

	if (!srq) {
		printf("# no SRQ: %s\n", strerror(errno));
		exit(1);
	}
	CHECK(attr.attr.max_wr >= max_wr && attr.attr.max_sge >= max_sge);
	return to_rsrq(srq);
}

static struct rhca_qp *new_srq_qp(struct rhca_cq *cq, struct rhca_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = &cq->vcq.cq,
		.recv_cq = &cq->vcq.cq,
		.srq = &srq->vsrq.srq,
		/* Of the receive queue that it does not have. */
		.cap = { .max_send_wr = 4, .max_recv_wr = UINT32_MAX,
			 .max_recv_sge = UINT32_MAX },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = rhca_create_qp(pd, &attr);

	if (!qp) {
		printf("# no QP: %s\n", strerror(errno));
		exit(1);
	}
	CHECK_EQ(attr.cap.max_recv_wr, 0);
	CHECK_EQ(attr.cap.max_recv_sge, 0);
	CHECK_EQ(kernel.qp_req.rq_len, 0);
	qp->state = IBV_QPS_RTS;
	return to_rqp(qp);
}

static int post_srq(struct rhca_srq *srq, uint64_t wr_id)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id };
	struct ibv_recv_wr *bad;

	return rhca_post_srq_recv(&srq->vsrq.srq, &wr, &bad);
}

/* The tag of the WQE that was posted as number @index. */
static uint32_t tag_of(struct rhca_srq *srq, uint32_t index)
{
	struct rdma_hca_next_unit *wqe = rhca_wq_slot(&srq->wq, index);

	return le32toh(wqe->tag);
}

static struct rdma_hca_cqe make_srq_cqe(struct rhca_qp *qp, uint32_t tag)
{
	return (struct rdma_hca_cqe){
		.my_qpn = htole32(qp->vqp.qp.qp_num),
		.wqe = htole32(tag),
		.ctrl = htole32(FIELD_PREP(RDMA_HCA_CQE_OPCODE, 0x04)),
	};
}

static void test_srq_caps(void)
{
	struct ibv_srq_init_attr attr = {};
	struct rhca_srq *srq;
	uint32_t sges;

	for (sges = 0; sges <= 30; sges++) {
		srq = new_srq(5, sges);
		CHECK_EQ(srq->wq.entries, 8);
		CHECK_EQ(srq->num_free, 8);
		CHECK(srq->wq.shift >= 6 && srq->wq.shift <= 9);
		CHECK(32 + 16 * srq->max_sge <= 1u << srq->wq.shift);
		CHECK_EQ(kernel.srq_req.len, 8u << srq->wq.shift);
		CHECK_EQ(kernel.srq_req.entry_sz_log, srq->wq.shift);
		CHECK_EQ(kernel.srq_req.buf_addr, (uintptr_t)srq->wq.buf.addr);
		CHECK_EQ(kernel.srq_req.db_addr, (uintptr_t)srq->db);
		rhca_destroy_srq(&srq->vsrq.srq);
	}
	attr.attr.max_wr = RHCA_MAX_WR + 1;
	CHECK(!rhca_create_srq(pd, &attr));
	CHECK_EQ(errno, EINVAL);
	attr.attr.max_wr = 1;
	attr.attr.max_sge = 31;
	CHECK(!rhca_create_srq(pd, &attr));
	CHECK_EQ(errno, EINVAL);
	free(ctx.srqs);
	ctx.srqs = NULL;
	attr.attr.max_sge = 1;
	CHECK(!rhca_create_srq(pd, &attr));
	CHECK_EQ(errno, EOPNOTSUPP);
}

/* All entries can be posted, in slots one behind the other, each with a tag. */
static void test_srq_recv(void)
{
	struct rhca_srq *srq = new_srq(32768, 30);
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_srq_qp(cq, srq);
	struct ibv_sge sge[31];
	struct ibv_recv_wr wr = { .sg_list = sge };
	struct ibv_recv_wr *bad;
	struct ibv_wc wc;
	uint32_t i;

	for (i = 0; i < 31; i++)
		sge[i] = (struct ibv_sge) { 0x1000 + i, i % 5, i };
	for (i = 0; i < 70000; i++) {
		wr.wr_id = i;
		wr.num_sge = i % 31;
		CHECK_EQ(rhca_post_srq_recv(&srq->vsrq.srq, &wr, &bad), 0);
		CHECK_EQ(le32toh(*srq->db), (i + 1) & 0xffff);
		check_recv_wqe(rhca_wq_slot(&srq->wq, i), &wr);
		if (i < 32767)
			continue;
		CHECK_EQ(rhca_post_srq_recv(&srq->vsrq.srq, &wr, &bad), ENOMEM);
		produce(cq, i - 32767,
			make_srq_cqe(qp, tag_of(srq, i - 32767)));
		CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 1, &wc), 1);
		CHECK_EQ(wc.wr_id, i - 32767);
		CHECK_EQ(wc.qp_num, qp->vqp.qp.qp_num);
	}
	wr.num_sge = 31;
	CHECK_EQ(rhca_post_srq_recv(&srq->vsrq.srq, &wr, &bad), EINVAL);
	wr.num_sge = -1;
	CHECK_EQ(rhca_post_srq_recv(&srq->vsrq.srq, &wr, &bad), EINVAL);
	CHECK(bad == &wr);
	wr.num_sge = 1;
	sge[0].length = RDMA_HCA_INLINE;
	CHECK_EQ(rhca_post_srq_recv(&srq->vsrq.srq, &wr, &bad), EINVAL);
	/* What failed has taken nothing. */
	CHECK_EQ(post_srq(srq, 0), 0);
	CHECK_EQ(post_srq(srq, 0), ENOMEM);
	/* The QP has no queue of its own. */
	wr.num_sge = 0;
	CHECK_EQ(rhca_post_recv(&qp->vqp.qp, &wr, &bad), EINVAL);
	CHECK(bad == &wr);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_srq(&srq->vsrq.srq);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* Two QPs end what they took in any order; each is told what it was. */
static void test_srq_order(void)
{
	static const uint8_t order[] = { 3, 0, 7, 1, 2, 6, 5, 4 };
	struct rhca_srq *srq = new_srq(8, 1);
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp[] = { new_srq_qp(cq, srq), new_srq_qp(cq, srq) };
	uint32_t base, i, pi = 0;
	struct ibv_wc wc[8];

	for (base = 0; base < 80; base += 8) {
		for (i = 0; i < 8; i++)
			CHECK_EQ(post_srq(srq, base + i), 0);
		CHECK_EQ(post_srq(srq, 0), ENOMEM);
		for (i = 0; i < 8; i++)
			produce(cq, pi++,
				make_srq_cqe(qp[i % 2],
					     tag_of(srq, base + order[i])));
		CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 8, wc), 8);
		for (i = 0; i < 8; i++) {
			CHECK_EQ(wc[i].wr_id, base + order[i]);
			CHECK_EQ(wc[i].qp_num, qp[i % 2]->vqp.qp.qp_num);
		}
	}
	rhca_destroy_qp(&qp[1]->vqp.qp);
	rhca_destroy_qp(&qp[0]->vqp.qp);
	rhca_destroy_srq(&srq->vsrq.srq);
	rhca_destroy_cq(&cq->vcq.cq);
}

static int resize_srq(struct rhca_srq *srq, uint32_t max_wr)
{
	struct ibv_srq_attr attr = { .max_wr = max_wr };

	return rhca_modify_srq(&srq->vsrq.srq, &attr, IBV_SRQ_MAX_WR);
}

/* Entry @index is where the card will look for it, and names the next slot. */
static void check_moved(struct rhca_srq *srq, uint32_t index, uint32_t tag)
{
	struct rdma_hca_next_unit *wqe = rhca_wq_slot(&srq->wq, index);

	CHECK_EQ(le32toh(wqe->tag), tag);
	CHECK_EQ(le32toh(wqe->nda_nop) & RDMA_HCA_NEXT_NDA,
		 rhca_wq_offset(&srq->wq, index + 1));
	CHECK_EQ(srq->wq.wr_id[tag], index);
}

static void test_srq_resize(void)
{
	struct rhca_srq *srq = new_srq(8, 1);
	struct rhca_cq *cq = new_cq(16);
	struct rhca_qp *qp = new_srq_qp(cq, srq);
	uint32_t tag[16], i;
	struct ibv_wc wc[16];
	void *ring;

	for (i = 0; i < 13; i++) {
		CHECK_EQ(post_srq(srq, i), 0);
		tag[i] = tag_of(srq, i);
		if (i >= 8 - 3)
			continue;
		produce(cq, i, make_srq_cqe(qp, tag[i]));
		CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 1, wc), 1);
	}
	/* 5 to 12 are posted, in a ring of 8. */
	CHECK_EQ(post_srq(srq, 13), ENOMEM);
	ring = srq->wq.buf.addr;
	kernel.modify_srq_err = EIO;
	CHECK_EQ(resize_srq(srq, 16), EIO);
	kernel.modify_srq_err = 0;
	CHECK(srq->wq.buf.addr == ring && srq->wq.entries == 8);
	CHECK_EQ(post_srq(srq, 13), ENOMEM);
	CHECK_EQ(resize_srq(srq, 4), EINVAL);
	CHECK_EQ(resize_srq(srq, 0), EINVAL);
	CHECK_EQ(resize_srq(srq, UINT32_MAX), EINVAL);
	CHECK_EQ(resize_srq(srq, 13), 0);
	CHECK_EQ(kernel.modify_srq_size, sizeof(struct rhca_modify_srq_cmd));
	CHECK_EQ(kernel.modify_srq_req.buf_addr, (uintptr_t)srq->wq.buf.addr);
	CHECK_EQ(kernel.modify_srq_req.len, 16u << srq->wq.shift);
	for (i = 5; i < 13; i++)
		check_moved(srq, i, tag[i]);
	for (; i < 16 + 5; i++)
		CHECK_EQ(post_srq(srq, i), 0);
	CHECK_EQ(post_srq(srq, 0), ENOMEM);
	for (i = 5; i < 16 + 5; i++)
		produce(cq, i, make_srq_cqe(qp, tag_of(srq, i)));
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 16, wc), 16);
	for (i = 0; i < 16; i++)
		CHECK_EQ(wc[i].wr_id, i + 5);
	/* Tags are left from when it was larger; the room is the ring's. */
	CHECK_EQ(resize_srq(srq, 2), 0);
	CHECK_EQ(post_srq(srq, 0), 0);
	CHECK_EQ(post_srq(srq, 1), 0);
	CHECK_EQ(post_srq(srq, 2), ENOMEM);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_srq(&srq->vsrq.srq);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* What a QP had taken goes back when it goes, or is reset. */
static void test_srq_clean(void)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct rhca_srq *srq = new_srq(4, 1);
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *a = new_srq_qp(cq, srq);
	struct rhca_qp *b = new_srq_qp(cq, srq);
	struct ibv_wc wc[8];
	int i;

	for (i = 0; i < 4; i++)
		CHECK_EQ(post_srq(srq, i), 0);
	for (i = 0; i < 3; i++)
		produce(cq, i, make_srq_cqe(i == 1 ? b : a, tag_of(srq, i)));
	produce(cq, 3, make_cqe(a, true, 0, RDMA_HCA_OPCODE_SEND));
	CHECK_EQ(rhca_modify_qp(&a->vqp.qp, &reset, IBV_QP_STATE), 0);
	CHECK_EQ(srq->num_free, 2);
	produce(cq, 4, make_srq_cqe(a, tag_of(srq, 3)));
	rhca_destroy_qp(&a->vqp.qp);
	CHECK_EQ(srq->num_free, 3);
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 8, wc), 1);
	CHECK_EQ(wc[0].wr_id, 1);
	CHECK_EQ(srq->num_free, 4);
	rhca_destroy_qp(&b->vqp.qp);
	rhca_destroy_srq(&srq->vsrq.srq);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* --- several threads: each posts, and ends what it posted by its own CQ --- */

#define THREADS		4
#define THREAD_POSTS	20000

struct poster {
	pthread_t thread;
	struct rhca_srq *srq;
	struct rhca_cq *cq;
	struct rhca_qp *qp;
	uint32_t number;
	int bad;
};

/* The WQE with @wr_id, of those that are in the ring. */
static uint32_t find_tag(struct rhca_srq *srq, uint64_t wr_id)
{
	uint32_t tag;

	pthread_spin_lock(&srq->wq.lock);
	for (tag = 0; srq->wq.wr_id[tag] != wr_id; tag++)
		;
	pthread_spin_unlock(&srq->wq.lock);
	return tag;
}

static void *post_and_poll(void *arg)
{
	struct poster *p = arg;
	struct ibv_wc wc;
	uint64_t wr_id;
	uint32_t i;

	for (i = 0; i < THREAD_POSTS; i++) {
		wr_id = (uint64_t)p->number << 32 | i;
		p->bad += post_srq(p->srq, wr_id) != 0;
		produce(p->cq, i,
			make_srq_cqe(p->qp, find_tag(p->srq, wr_id)));
		p->bad += rhca_poll_cq(&p->cq->vcq.cq, 1, &wc) != 1 ||
			  wc.wr_id != wr_id;
	}
	return NULL;
}

static void test_srq_threads(void)
{
	struct rhca_srq *srq = new_srq(THREADS, 1);
	struct poster p[THREADS];
	int i;

	for (i = 0; i < THREADS; i++) {
		p[i] = (struct poster){ .srq = srq, .number = i + 1 };
		p[i].cq = new_cq(2);
		p[i].qp = new_srq_qp(p[i].cq, srq);
	}
	for (i = 0; i < THREADS; i++)
		pthread_create(&p[i].thread, NULL, post_and_poll, &p[i]);
	for (i = 0; i < THREADS; i++) {
		pthread_join(p[i].thread, NULL);
		CHECK_EQ(p[i].bad, 0);
		rhca_destroy_qp(&p[i].qp->vqp.qp);
		rhca_destroy_cq(&p[i].cq->vcq.cq);
	}
	CHECK_EQ(srq->num_free, THREADS);
	CHECK_EQ(le32toh(*srq->db), THREADS * THREAD_POSTS & 0xffff);
	rhca_destroy_srq(&srq->vsrq.srq);
}

/* --- XRC ---------------------------------------------------------------- */

static struct rhca_srq *new_xsrq(struct rhca_cq *cq, struct ibv_xrcd *xrcd)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = xrcd,
		.cq = &cq->vcq.cq,
	};
	struct ibv_srq *srq = rhca_create_srq_ex(&ctx.vctx.context, &attr);

	if (!srq) {
		printf("# no XRC SRQ: %s\n", strerror(errno));
		exit(1);
	}
	return to_rsrq(srq);
}

static struct ibv_xrcd *new_xrcd(void)
{
	struct ibv_xrcd_init_attr attr = { .fd = -1 };

	return rhca_open_xrcd(&ctx.vctx.context, &attr);
}

static struct rdma_hca_cqe make_xrc_cqe(struct rhca_srq *srq, uint32_t tag)
{
	return (struct rdma_hca_cqe){
		.my_qpn = htole32(0x777777), /* another process's */
		.rqpn = htole32(srq->vsrq.srq_num),
		.wqe = htole32(tag),
		.ctrl = htole32(RDMA_HCA_CQE_XRC |
				FIELD_PREP(RDMA_HCA_CQE_OPCODE, 0xa4)),
	};
}

static void test_xrc_completions(void)
{
	struct ibv_xrcd *xrcd = new_xrcd();
	struct rhca_cq *cq = new_cq(8);
	struct rhca_srq *srq[] = { new_xsrq(cq, xrcd), new_xsrq(cq, xrcd) };
	struct ibv_wc wc[8];
	uint32_t i, number;

	for (i = 0; i < 2; i++) {
		CHECK_EQ(rhca_get_srq_num(&srq[i]->vsrq.srq, &number), 0);
		CHECK_EQ(number, kernel.next_srqn - 2 + i);
		CHECK_EQ(post_srq(srq[i], 10 + i), 0);
		CHECK_EQ(post_srq(srq[i], 20 + i), 0);
	}
	for (i = 0; i < 4; i++)
		produce(cq, i, make_xrc_cqe(srq[i % 2],
					    tag_of(srq[i % 2], 1 - i / 2)));
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 3, wc), 3);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(wc[i].wr_id, (i < 2 ? 20 : 10) + i % 2);
		CHECK_EQ(wc[i].status, IBV_WC_SUCCESS);
		CHECK_EQ(wc[i].opcode, IBV_WC_RECV);
		CHECK_EQ(wc[i].qp_num, 0x777777);
		CHECK_EQ(wc[i].src_qp, 0);
	}
	/* An SRQ that goes takes along what the CQ has of it. */
	produce(cq, 4, make_xrc_cqe(srq[0], 0));
	rhca_destroy_srq(&srq[1]->vsrq.srq);
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 8, wc), 1);
	rhca_destroy_srq(&srq[0]->vsrq.srq);
	/* One that comes later is nobody's. */
	produce(cq, 5, make_xrc_cqe(srq[0], 0));
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 8, wc), 0);
	CHECK_EQ(rhca_close_xrcd(xrcd), 0);
	rhca_destroy_cq(&cq->vcq.cq);
}

static struct rhca_qp *new_xrc_sender(struct rhca_cq *cq)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = &cq->vcq.cq,
		.cap = { .max_send_wr = 4, .max_send_sge = 1,
			 .max_recv_wr = UINT32_MAX },
		.qp_type = IBV_QPT_XRC_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = rhca_send_ops(&ctx, IBV_QPT_RC),
	};
	struct ibv_qp *qp = rhca_create_qp_ex(&ctx.vctx.context, &attr);

	if (!qp) {
		printf("# no XRC sender: %s\n", strerror(errno));
		exit(1);
	}
	qp->state = IBV_QPS_RTS;
	return to_rqp(qp);
}

static void check_xrc_unit(const struct rdma_hca_next_unit *next, uint32_t srqn)
{
	const struct rdma_hca_xrc_unit *unit = (void *)(next + 1);

	CHECK_EQ(le32toh(unit->srqn), srqn);
	CHECK_EQ(unit->reserved[0] | unit->reserved[1] | unit->reserved[2], 0);
}

static void test_xrc_send(void)
{
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_xrc_sender(cq);
	struct ibv_sge sge = { 0x1000, 8, 1 };
	struct ibv_send_wr wr[3] = {
		{
			.next = &wr[1],
			.opcode = IBV_WR_SEND,
			.sg_list = &sge,
			.num_sge = 1,
			.qp_type.xrc.remote_srqn = 0xff123456,
		}, {
			.next = &wr[2],
			.opcode = IBV_WR_RDMA_WRITE,
			.sg_list = &sge,
			.num_sge = 1,
			.wr.rdma = { 0x5000, 0xcafe },
			.qp_type.xrc.remote_srqn = 2,
		}, {
			.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
			.sg_list = &sge,
			.num_sge = 1,
			.wr.atomic = { .remote_addr = 0x6000, .rkey = 7 },
			.qp_type.xrc.remote_srqn = 3,
		},
	};
	struct ibv_recv_wr recv = {}, *bad_recv;
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	struct seen wqe;

	CHECK_EQ(rhca_post_send(&qp->vqp.qp, wr, &bad), 0);
	wqe = first_wqe(qp);
	CHECK_EQ(wqe.units, 3);
	check_xrc_unit(wqe.next, 0x123456);
	check_data((void *)(wqe.next + 2), 0x1000, 8, 1);
	wqe = next_wqe(qp, wqe);
	CHECK_EQ(wqe.units, 4);
	check_xrc_unit(wqe.next, 2);
	check_raddr((void *)(wqe.next + 2), 0x5000, 0xcafe);
	check_data((void *)(wqe.next + 3), 0x1000, 8, 1);
	wqe = next_wqe(qp, wqe);
	CHECK_EQ(wqe.units, 5);
	check_xrc_unit(wqe.next, 3);
	check_raddr((void *)(wqe.next + 2), 0x6000, 7);
	check_data((void *)(wqe.next + 4), 0x1000, 8, 1);
	CHECK(5 * 16 <= 1 << qp->sq.shift);

	produce(cq, 0, make_cqe(qp, true, 2, RDMA_HCA_OPCODE_ATOMIC_FA));
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 1, &wc), 1);
	CHECK_EQ(wc.opcode, IBV_WC_FETCH_ADD);
	CHECK_EQ(rhca_post_recv(&qp->vqp.qp, &recv, &bad_recv), EINVAL);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

static void test_xrc_wr_api(void)
{
	struct rhca_cq *cq = new_cq(8);
	struct rhca_qp *qp = new_xrc_sender(cq);
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	struct seen wqe;

	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, 7, 0x8000);
	ibv_wr_set_xrc_srqn(ex, 9);
	ibv_wr_set_sge(ex, 1, 0x1000, 8);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, 1, 0x1000, 8);
	ibv_wr_set_xrc_srqn(ex, 10);
	CHECK_EQ(ibv_wr_complete(ex), 0);
	wqe = first_wqe(qp);
	CHECK_EQ(wqe.units, 4);
	check_xrc_unit(wqe.next, 9);
	check_raddr((void *)(wqe.next + 2), 0x8000, 7);
	wqe = next_wqe(qp, wqe);
	CHECK_EQ(wqe.units, 3);
	check_xrc_unit(wqe.next, 10);
	check_data((void *)(wqe.next + 2), 0x1000, 8, 1);
	/* It has to be said where a message goes. */
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	CHECK_EQ(ibv_wr_complete(ex), EINVAL);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

/* A target has no CQs and no queues, however one comes by it. */
static void test_xrc_target(void)
{
	struct ibv_xrcd *xrcd = new_xrcd();
	struct ibv_qp_init_attr_ex attr = {
		.cap = { .max_send_wr = UINT32_MAX, .max_recv_wr = 7 },
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};
	struct ibv_qp_open_attr open = {
		.comp_mask = IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_NUM |
			     IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = 0x42,
		.xrcd = xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_send_wr send = {}, *bad_send;
	struct ibv_recv_wr recv = {}, *bad_recv;
	struct ibv_qp *qp[2];
	int i;

	qp[0] = rhca_create_qp_ex(&ctx.vctx.context, &attr);
	qp[1] = rhca_open_qp(&ctx.vctx.context, &open);
	CHECK_EQ(attr.cap.max_send_wr | attr.cap.max_recv_wr, 0);
	for (i = 0; i < 2; i++) {
		CHECK_EQ(rhca_post_send(qp[i], &send, &bad_send), EINVAL);
		CHECK_EQ(rhca_post_recv(qp[i], &recv, &bad_recv), EINVAL);
		CHECK_EQ(rhca_modify_qp(qp[i], &reset, IBV_QP_STATE), 0);
		CHECK_EQ(rhca_destroy_qp(qp[i]), 0);
	}
	open.comp_mask = 0;
	CHECK(!rhca_open_qp(&ctx.vctx.context, &open));
	CHECK_EQ(errno, EINVAL);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	CHECK(!rhca_create_qp_ex(&ctx.vctx.context, &attr));
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(rhca_close_xrcd(xrcd), 0);
}

static void test_bad_srqs(void)
{
	struct ibv_xrcd *xrcd = new_xrcd();
	struct rhca_cq *cq = new_cq(8);
	struct rhca_srq *xsrq = new_xsrq(cq, xrcd);
	struct rhca_srq *srq = new_srq(1, 1);
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 1, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
	};
	struct ibv_qp_init_attr qp = {
		.send_cq = &cq->vcq.cq,
		.recv_cq = &cq->vcq.cq,
		.qp_type = IBV_QPT_RC,
		.srq = &xsrq->vsrq.srq,
	};
	uint32_t number;

	CHECK_EQ(rhca_get_srq_num(&srq->vsrq.srq, &number), EINVAL);
	CHECK(!rhca_create_srq_ex(&ctx.vctx.context, &attr));
	CHECK_EQ(errno, EINVAL);
	attr.srq_type = IBV_SRQT_TM;
	CHECK(!rhca_create_srq_ex(&ctx.vctx.context, &attr));
	CHECK_EQ(errno, EOPNOTSUPP);
	attr.srq_type = IBV_SRQT_BASIC;
	attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
	CHECK(!rhca_create_srq_ex(&ctx.vctx.context, &attr));
	CHECK_EQ(errno, EINVAL);
	/* An XRC SRQ is for targets; a sender has none. */
	CHECK(!rhca_create_qp(pd, &qp));
	CHECK_EQ(errno, EINVAL);
	qp.qp_type = IBV_QPT_XRC_SEND;
	CHECK(!rhca_create_qp(pd, &qp));
	CHECK_EQ(errno, EINVAL);
	rhca_destroy_srq(&srq->vsrq.srq);
	rhca_destroy_srq(&xsrq->vsrq.srq);
	rhca_close_xrcd(xrcd);
	rhca_destroy_cq(&cq->vcq.cq);
}

static void test_records(void)
{
	__le32 *record[200];
	size_t i, j;

	for (i = 0; i < 200; i++) {
		record[i] = rhca_record_alloc(&ctx, NULL);
		CHECK_EQ(*record[i], 0);
		*record[i] = htole32(~0u);
		for (j = 0; j < i; j++)
			CHECK(record[i] != record[j]);
	}
	for (i = 0; i < 200; i += 2)
		rhca_record_free(&ctx, NULL, record[i]);
	for (i = 0; i < 200; i += 2) {
		record[i] = rhca_record_alloc(&ctx, NULL);
		CHECK_EQ(*record[i], 0);
	}
	for (i = 0; i < 200; i++)
		rhca_record_free(&ctx, NULL, record[i]);
}

static void test_query_device(void)
{
	struct ibv_device_attr_ex attr = {};

	CHECK_EQ(rhca_query_device_ex(&ctx.vctx.context, NULL, &attr,
				      sizeof(attr)), 0);
	CHECK_EQ(attr.orig_attr.max_qp_wr, RHCA_MAX_WR);
	CHECK_EQ(attr.orig_attr.max_srq_wr, RHCA_MAX_WR);
	CHECK(!strcmp(attr.orig_attr.fw_ver, "1.5"));
}

/* --- time --------------------------------------------------------------- */

#define NS_PER_S	1000000000ull

static void set_clock(uint64_t now)
{
	__le64 word = htole64(now);

	memcpy(uar + RDMA_HCA_CLOCK, &word, sizeof(word));
}

static uint64_t wallclock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static struct rhca_cq *new_cq_ex(uint64_t wc_flags)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 8, .wc_flags = wc_flags };
	struct ibv_cq_ex *ex = rhca_create_cq_ex(&ctx.vctx.context, &attr);

	return ex ? to_rcq_ex(ex) : NULL;
}

static struct rdma_hca_cqe timed_cqe(struct rhca_qp *qp, uint32_t index,
				     uint64_t now)
{
	struct rdma_hca_cqe cqe =
		make_cqe(qp, true, index, RDMA_HCA_OPCODE_SEND);

	cqe.time_l = htole32((uint32_t)now);
	cqe.ctrl |= htole32(FIELD_PREP(RDMA_HCA_CQE_TIME_H,
				       (now >> 32) & 0x7f));
	return cqe;
}

static void test_timestamps(void)
{
	/* Around the end of what an entry has of the clock. */
	const uint64_t start = (1ull << RDMA_HCA_CQE_TIME_BITS) * 5 - 1000;
	struct ibv_poll_cq_attr poll = {};
	uint64_t before, after, wall;
	struct rhca_cq *cq;
	struct rhca_qp *qp;
	uint32_t i;

	CHECK(!new_cq_ex(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP));
	CHECK_EQ(errno, EOPNOTSUPP);
	ctx.has_clock = true;
	cq = new_cq_ex(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
		       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	qp = new_qp(cq, IBV_QPT_RC, &small_cap);
	for (i = 0; i < 4; i++) {
		uint64_t now = start + i * 600;

		CHECK_EQ(post_nop_sends(qp, 1, i), 0);
		produce(cq, i, timed_cqe(qp, i, now));
		set_clock(start + 1000);
		before = wallclock();
		CHECK_EQ(ibv_start_poll(&cq->vcq.cq_ex, &poll), 0);
		after = wallclock();
		CHECK_EQ(ibv_wc_read_completion_ts(&cq->vcq.cq_ex),
			 now & ((1ull << RDMA_HCA_CQE_TIME_BITS) - 1));
		/* The clock stands still here, but for 10 ms at most. */
		wall = ibv_wc_read_completion_wallclock_ns(&cq->vcq.cq_ex);
		CHECK(wall + 1000 - i * 600 + 10000000 >= before);
		CHECK(wall + 1000 - i * 600 <= after);
		ibv_end_poll(&cq->vcq.cq_ex);
		if (i == 1)
			cq->sample_wallclock = 1; /* long ago */
		if (i == 2)
			cq->sample_wallclock += NS_PER_S; /* set back */
	}
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

static void test_rt_values(void)
{
	struct ibv_values_ex values = {
		.comp_mask = IBV_VALUES_MASK_RAW_CLOCK | 1u << 31,
	};

	set_clock(0x123456789abcdef);
	CHECK_EQ(rhca_query_rt_values(&ctx.vctx.context, &values), EOPNOTSUPP);
	ctx.has_clock = true;
	CHECK_EQ(rhca_query_rt_values(&ctx.vctx.context, &values), 0);
	CHECK_EQ(values.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	CHECK_EQ(values.raw_clock.tv_sec, 0);
	CHECK_EQ(values.raw_clock.tv_nsec, 0x123456789abcdef);
	values.comp_mask = 0;
	CHECK_EQ(rhca_query_rt_values(&ctx.vctx.context, &values), 0);
	CHECK_EQ(values.comp_mask, 0);
}

/* Each field for itself, and those that there are not. */
static void test_wc_flags(void)
{
	struct rhca_cq *cq;
	int bit;

	ctx.has_clock = true;
	for (bit = 0; bit < 64; bit++) {
		cq = new_cq_ex(1ull << bit);
		if (bit > 11 || 1ull << bit == IBV_WC_EX_WITH_FLOW_TAG ||
		    1ull << bit == IBV_WC_EX_WITH_TM_INFO) {
			CHECK(!cq);
			CHECK_EQ(errno, EOPNOTSUPP);
			continue;
		}
		CHECK(cq);
		rhca_destroy_cq(&cq->vcq.cq);
	}
}

static void check_cvlan(bool is_roce, uint32_t path, uint16_t tag)
{
	struct ibv_poll_cq_attr poll = {};
	struct rdma_hca_cqe cqe;
	struct rhca_cq *cq;
	struct rhca_qp *qp;

	ctx.is_roce = is_roce;
	cq = new_cq_ex(IBV_WC_EX_WITH_CVLAN);
	qp = new_qp(cq, IBV_QPT_UD, &small_cap);
	cqe = make_cqe(qp, false, 0, 0x64);
	cqe.rlid_path = htole32(path);
	produce(cq, 0, cqe);
	CHECK_EQ(ibv_start_poll(&cq->vcq.cq_ex, &poll), 0);
	CHECK_EQ(ibv_wc_read_cvlan(&cq->vcq.cq_ex), tag);
	ibv_end_poll(&cq->vcq.cq_ex);
	rhca_destroy_qp(&qp->vqp.qp);
	rhca_destroy_cq(&cq->vcq.cq);
}

static void test_cvlan(void)
{
	check_cvlan(true, RDMA_HCA_CQE_HAS_VLAN | 0x123 << 16 | 5, 0xa123);
	check_cvlan(true, 0x123 << 16 | 5, 0);
	check_cvlan(false, RDMA_HCA_CQE_HAS_VLAN | 0x123 << 16, 0);
}

static void test_cq_attr(void)
{
	struct ibv_modify_cq_attr modify = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = 7, .cq_period = 8 },
	};
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 1,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
	};
	struct ibv_cq_ex *ex = rhca_create_cq_ex(&ctx.vctx.context, &attr);

	CHECK(ex);
	CHECK(!to_rcq_ex(ex)->single_threaded);
	CHECK_EQ(rhca_modify_cq(ibv_cq_ex_to_cq(ex), &modify), 0);
	CHECK(!memcmp(&modify, &kernel.modify_cq, sizeof(modify)));
	rhca_destroy_cq(ibv_cq_ex_to_cq(ex));
	attr.flags = 1 << 2;
	CHECK(!rhca_create_cq_ex(&ctx.vctx.context, &attr));
	CHECK_EQ(errno, EOPNOTSUPP);
	attr.comp_mask = 1 << 2;
	CHECK(!rhca_create_cq_ex(&ctx.vctx.context, &attr));
	CHECK_EQ(errno, EOPNOTSUPP);
	/* The domain of a CQ is a parent domain. */
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
	CHECK(!rhca_create_cq_ex(&ctx.vctx.context, &attr));
	CHECK_EQ(errno, EINVAL);
	attr.parent_domain = pd;
	CHECK(!rhca_create_cq_ex(&ctx.vctx.context, &attr));
	CHECK_EQ(errno, EINVAL);
}

/* --- domains ------------------------------------------------------------ */

static struct {
	int live;
	int calls;
	int fail_at;			/* the call that gets no memory */
	bool odd;			/* a byte off */
	bool use_default;
} memory;

static void *domain_alloc(struct ibv_pd *ibpd, void *pd_context, size_t size,
			  size_t alignment, uint64_t resource_type)
{
	uint8_t *p;

	CHECK(pd_context == &memory);
	CHECK(resource_type >= RHCA_RESOURCE_QP &&
	      resource_type <= RHCA_RESOURCE_SRQ);
	if (++memory.calls == memory.fail_at)
		return NULL;
	if (memory.use_default)
		return IBV_ALLOCATOR_USE_DEFAULT;
	if (posix_memalign((void **)&p, alignment, size + alignment))
		return NULL;
	memset(p, 0, size + alignment);
	memory.live++;
	return p + memory.odd;
}

static void domain_free(struct ibv_pd *ibpd, void *pd_context, void *ptr,
			uint64_t resource_type)
{
	CHECK(pd_context == &memory);
	memory.live--;
	free((uint8_t *)ptr - memory.odd);
}

static struct ibv_pd *new_parent(struct ibv_td *td, bool allocators)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = pd,
		.td = td,
		.comp_mask = allocators ?
				     IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
					 IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT :
				     0,
		.alloc = domain_alloc,
		.free = domain_free,
		.pd_context = &memory,
	};

	memset(&memory, 0, sizeof(memory));
	return rhca_alloc_parent_domain(&ctx.vctx.context, &attr);
}

static void test_domains(void)
{
	struct ibv_td_init_attr td_attr = {};
	struct ibv_td *td = rhca_alloc_td(&ctx.vctx.context, &td_attr);
	struct ibv_pd *parent = new_parent(td, false);

	CHECK_EQ(parent->handle, pd->handle);
	CHECK(parent->context == pd->context);
	/* Each stays while another one is made of it. */
	CHECK_EQ(rhca_dealloc_td(td), EBUSY);
	CHECK_EQ(rhca_dealloc_pd(pd), EBUSY);
	CHECK_EQ(rhca_dealloc_pd(parent), 0);
	CHECK_EQ(rhca_dealloc_td(td), 0);
	td_attr.comp_mask = 1;
	CHECK(!rhca_alloc_td(&ctx.vctx.context, &td_attr));
	CHECK_EQ(errno, EOPNOTSUPP);
}

static void check_bad_parent(struct ibv_parent_domain_init_attr attr, int err)
{
	errno = 0;
	CHECK(!rhca_alloc_parent_domain(&ctx.vctx.context, &attr));
	CHECK_EQ(errno, err);
}

static void test_bad_domains(void)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = pd,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
		.alloc = domain_alloc,
	};
	struct ibv_pd *parent = new_parent(NULL, false);

	check_bad_parent(attr, EINVAL);
	attr.alloc = NULL;
	attr.free = domain_free;
	check_bad_parent(attr, EINVAL);
	attr.comp_mask = 1 << 2;
	check_bad_parent(attr, EOPNOTSUPP);
	attr.comp_mask = 0;
	attr.pd = NULL;
	check_bad_parent(attr, EINVAL);
	attr.pd = parent;
	check_bad_parent(attr, EINVAL);
	CHECK_EQ(rhca_dealloc_pd(parent), 0);
}

static struct ibv_cq_ex *domain_cq(struct ibv_pd *parent)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 4,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = parent,
	};

	return rhca_create_cq_ex(&ctx.vctx.context, &attr);
}

static struct ibv_qp *domain_qp(struct ibv_pd *parent, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = small_cap,
		.qp_type = IBV_QPT_RC,
	};

	return rhca_create_qp(parent, &attr);
}

/* Queues and records lie in the application's memory, all or none of it. */
static void test_allocators(void)
{
	struct ibv_pd *parent = new_parent(NULL, true);
	struct ibv_cq *cq = ibv_cq_ex_to_cq(domain_cq(parent));
	struct ibv_qp *qp = domain_qp(parent, cq);
	int i;

	CHECK_EQ(memory.live, 5);
	CHECK_EQ(kernel.cq_req.buf_addr % 4096, 0);
	CHECK(list_empty(&ctx.db_pages));
	CHECK_EQ(rhca_dealloc_pd(parent), EBUSY);
	CHECK_EQ(rhca_resize_cq(cq, 64), 0);
	CHECK_EQ(memory.live, 5);
	CHECK_EQ(rhca_destroy_qp(qp), 0);
	for (i = 1; i <= 3; i++) {
		memory.fail_at = memory.calls + i;
		CHECK(!domain_qp(parent, cq));
		CHECK_EQ(errno, ENOMEM);
		CHECK_EQ(memory.live, 2);
	}
	CHECK_EQ(rhca_destroy_cq(cq), 0);
	for (i = 1; i <= 2; i++) {
		memory.fail_at = memory.calls + i;
		CHECK(!domain_cq(parent));
		CHECK_EQ(errno, ENOMEM);
	}
	kernel.create_cq_err = EMFILE;
	CHECK(!domain_cq(parent));
	CHECK_EQ(errno, EMFILE);
	kernel.create_cq_err = 0;
	memory.odd = true;
	CHECK(!domain_cq(parent));
	CHECK_EQ(errno, EINVAL);
	memory.odd = false;
	CHECK_EQ(memory.live, 0);

	memory.use_default = true;
	cq = ibv_cq_ex_to_cq(domain_cq(parent));
	qp = domain_qp(parent, cq);
	CHECK_EQ(memory.live, 0);
	CHECK(!list_empty(&ctx.db_pages));
	CHECK_EQ(rhca_destroy_qp(qp), 0);
	CHECK_EQ(rhca_destroy_cq(cq), 0);
	CHECK_EQ(rhca_dealloc_pd(parent), 0);
}

/* In a thread domain nobody waits for a lock, not even one that is taken. */
static void test_thread_domain(void)
{
	struct ibv_td_init_attr td_attr = {};
	struct ibv_td *td = rhca_alloc_td(&ctx.vctx.context, &td_attr);
	struct ibv_pd *parent = new_parent(td, false);
	struct ibv_cq_ex *ex = domain_cq(parent);
	struct rhca_cq *cq = to_rcq_ex(ex);
	struct rhca_qp *qp = to_rqp(domain_qp(parent, &cq->vcq.cq));
	struct ibv_recv_wr recv = {}, *bad;
	struct ibv_wc wc;

	qp->vqp.qp.state = IBV_QPS_RTS;
	pthread_spin_lock(&cq->lock);
	pthread_spin_lock(&qp->sq.lock);
	pthread_spin_lock(&qp->rq.lock);
	CHECK_EQ(post_nop_sends(qp, 1, 9), 0);
	CHECK_EQ(rhca_post_recv(&qp->vqp.qp, &recv, &bad), 0);
	produce(cq, 0, make_cqe(qp, true, 0, RDMA_HCA_OPCODE_SEND));
	CHECK_EQ(rhca_poll_cq(&cq->vcq.cq, 1, &wc), 1);
	CHECK_EQ(wc.wr_id, 9);
	CHECK_EQ(rhca_destroy_qp(&qp->vqp.qp), 0);
	CHECK_EQ(rhca_destroy_cq(&cq->vcq.cq), 0);
	CHECK_EQ(rhca_dealloc_pd(parent), 0);
	CHECK_EQ(rhca_dealloc_td(td), 0);
}

static void test_import(void)
{
	struct ibv_pd *imported = rhca_import_pd(&ctx.vctx.context, 17);
	struct ibv_mr *mr = rhca_import_mr(imported, 5);

	CHECK_EQ(imported->handle, 17);
	CHECK(imported->context == &ctx.vctx.context);
	CHECK_EQ(mr->lkey, 0x55);
	CHECK(!rhca_import_mr(imported, 6));
	CHECK_EQ(errno, ENOENT);
	rhca_unimport_mr(mr);
	rhca_unimport_pd(imported);
}

/* There is no paging on demand, whatever the kernel says of it. */
static void test_on_demand(void)
{
	CHECK(!rhca_reg_mr(pd, NULL, SIZE_MAX, 0, IBV_ACCESS_ON_DEMAND));
	CHECK_EQ(errno, EOPNOTSUPP);
	CHECK(!rhca_reg_mr(pd, NULL, 1, 0, 0));
	CHECK_EQ(errno, ENOMEM);
}

static void test_dmabuf(void)
{
	struct ibv_mr *mr = rhca_reg_dmabuf_mr(pd, 0, 4096, 0x5000, 3, 0);

	CHECK_EQ(mr->lkey, 0x77);
	CHECK_EQ(rhca_dereg_mr(verbs_get_mr(mr)), 0);
	CHECK(!rhca_reg_dmabuf_mr(pd, 0, 4096, 0x5000, -1, 0));
	CHECK_EQ(errno, EBADF);
}

/* --- device memory ------------------------------------------------------ */

/* The file that stands for the BAR, and where it begins there. */
static uint8_t *open_device_memory(void)
{
	uint8_t *file;
	int fd = memfd_create("bar", 0);

	CHECK(fd >= 0 && !ftruncate(fd, 4 * DM_PAGE));
	ctx.vctx.context.cmd_fd = fd;
	file = mmap(NULL, 4 * DM_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    0);
	CHECK(file != MAP_FAILED);
	return file;
}

static void close_device_memory(uint8_t *file)
{
	munmap(file, 4 * DM_PAGE);
	close(ctx.vctx.context.cmd_fd);
	CHECK_EQ(kernel.dms, 0);
}

static struct ibv_dm *alloc_dm(size_t length)
{
	struct ibv_alloc_dm_attr attr = {
		.length = length,
		.log_align_req = 5,
	};

	return rhca_alloc_dm(&ctx.vctx.context, &attr);
}

static void test_device_memory(void)
{
	uint8_t *file = open_device_memory();
	struct ibv_dm *dm = alloc_dm(4100);
	char text[9] = "\0textual", got[9] = "";

	CHECK(dm);
	CHECK_EQ(kernel.dm_attr.log_align_req, 5);
	CHECK_EQ(dm->context == &ctx.vctx.context, 1);
	/* From and to anywhere in the host's memory. */
	CHECK_EQ(ibv_memcpy_to_dm(dm, 4092, text + 1, 8), 0);
	CHECK(!memcmp(file + DM_PAGE + 4092, text + 1, 8));
	CHECK_EQ(ibv_memcpy_from_dm(got + 1, dm, 4092, 8), 0);
	CHECK(!memcmp(got, text, 9));
	CHECK_EQ(ibv_memcpy_to_dm(dm, 4100, NULL, 0), 0);
	/* Nothing else. */
	memset(file + DM_PAGE + 4092, 0, 8);
	for (size_t i = 0; i < 4 * DM_PAGE; i++)
		CHECK_EQ(file[i], 0);
	CHECK_EQ(rhca_free_dm(dm), 0);
	close_device_memory(file);
}

static void test_bad_device_memory(void)
{
	static const struct {
		uint64_t offset;
		size_t length;
		int err;
	} copies[] = {
		{ 0, 104, EFAULT },	     { 100, 4, EFAULT },
		{ 104, 0, EFAULT },	     { UINT64_MAX - 3, 4, EFAULT },
		{ UINT64_MAX - 3, 8, EFAULT }, { 4, SIZE_MAX - 3, EFAULT },
		{ 0, SIZE_MAX - 3, EFAULT }, { 2, 4, EINVAL },
		{ 4, 3, EINVAL },	     { 97, 3, EINVAL },
	};
	struct ibv_alloc_dm_attr attr = { .length = 4, .comp_mask = 1 };
	uint8_t *file = open_device_memory();
	struct ibv_dm *dm = alloc_dm(100);
	uint8_t data[128] = { 1 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(copies); i++) {
		CHECK_EQ(ibv_memcpy_to_dm(dm, copies[i].offset, data,
					  copies[i].length),
			 copies[i].err);
		CHECK_EQ(ibv_memcpy_from_dm(data, dm, copies[i].offset,
					    copies[i].length),
			 copies[i].err);
	}
	CHECK_EQ(file[DM_PAGE], 0);
	CHECK(!alloc_dm(1 << 20));
	CHECK_EQ(errno, ENOMEM);
	CHECK(!rhca_alloc_dm(&ctx.vctx.context, &attr));
	CHECK_EQ(errno, EINVAL);
	ctx.has_dm = false;
	CHECK(!alloc_dm(100));
	CHECK_EQ(errno, EOPNOTSUPP);
	ctx.has_dm = true;
	CHECK_EQ(kernel.dms, 1);
	/* What is in use stays, and is mapped. */
	kernel.free_dm_err = EBUSY;
	CHECK_EQ(rhca_free_dm(dm), EBUSY);
	CHECK_EQ(ibv_memcpy_to_dm(dm, 0, data, 4), 0);
	kernel.free_dm_err = 0;
	CHECK_EQ(rhca_free_dm(dm), 0);
	/* What cannot be mapped is given back. */
	close(ctx.vctx.context.cmd_fd);
	CHECK(!alloc_dm(100));
	CHECK_EQ(errno, EBADF);
	close_device_memory(file);
}

static void test_dm_mr(void)
{
	const unsigned int access =
		IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE;
	uint8_t *file = open_device_memory();
	struct ibv_dm *dm = alloc_dm(100);
	struct ibv_mr *mr = rhca_reg_dm_mr(pd, dm, 20, 80, access);

	CHECK(mr);
	CHECK_EQ(mr->lkey, 20);
	CHECK_EQ(mr->length, 80);
	CHECK_EQ(kernel.dm_mr_access, access);
	CHECK_EQ(rhca_dereg_mr(verbs_get_mr(mr)), 0);
	mr = rhca_reg_dm_mr(pd, dm, 100, 0, access);
	CHECK(mr);
	CHECK_EQ(rhca_dereg_mr(verbs_get_mr(mr)), 0);
	CHECK(!rhca_reg_dm_mr(pd, dm, 20, 81, access) && errno == EINVAL);
	CHECK(!rhca_reg_dm_mr(pd, dm, 101, 0, access) && errno == EINVAL);
	CHECK(!rhca_reg_dm_mr(pd, dm, UINT64_MAX, 2, access) &&
	      errno == EINVAL);
	CHECK(!rhca_reg_dm_mr(pd, dm, 1, SIZE_MAX, access) && errno == EINVAL);
	CHECK(!rhca_reg_dm_mr(pd, dm, 0, 4, 0) && errno == EINVAL);
	CHECK_EQ(rhca_free_dm(dm), 0);
	close_device_memory(file);
}

/* Two see the same; the one that has it imported frees nothing. */
static void test_import_dm(void)
{
	uint8_t *file = open_device_memory();
	struct ibv_dm *dm = alloc_dm(100), *imported;
	uint32_t word = 0x12345678, got = 0;

	imported = rhca_import_dm(&ctx.vctx.context, DM_HANDLE);
	CHECK(imported);
	CHECK_EQ(imported->handle, DM_HANDLE);
	CHECK_EQ(ibv_memcpy_to_dm(dm, 96, &word, 4), 0);
	CHECK_EQ(ibv_memcpy_from_dm(&got, imported, 96, 4), 0);
	CHECK_EQ(got, word);
	CHECK_EQ(ibv_memcpy_from_dm(&got, imported, 100, 4), EFAULT);
	rhca_unimport_dm(imported);
	CHECK_EQ(kernel.dms, 1);
	CHECK(!rhca_import_dm(&ctx.vctx.context, 8));
	CHECK_EQ(errno, ENOENT);
	CHECK_EQ(rhca_free_dm(dm), 0);
	close_device_memory(file);
}

/* --- main --------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "caps", test_caps },
	{ "bad-caps", test_bad_caps },
	{ "chain", test_chain },
	{ "atomics", test_atomics },
	{ "invalidate", test_invalidate },
	{ "bind", test_bind },
	{ "bad-binds", test_bad_binds },
	{ "null-mr", test_null_mr },
	{ "ud", test_ud },
	{ "roce-ud", test_roce_ud },
	{ "raw", test_raw },
	{ "bad-sends", test_bad_sends },
	{ "bad-wr", test_bad_wr },
	{ "full", test_full },
	{ "recv", test_recv },
	{ "recv-completions", test_recv_completions },
	{ "roce-completions", test_roce_completions },
	{ "send-completions", test_send_completions },
	{ "errors", test_errors },
	{ "clean", test_clean },
	{ "resize", test_resize },
	{ "arm", test_arm },
	{ "start-poll", test_start_poll },
	{ "wr-api", test_wr_api },
	{ "wr-api-ud", test_wr_api_ud },
	{ "flush", test_flush },
	{ "atomic-write", test_atomic_write },
	{ "missing-ops", test_missing_ops },
	{ "srq-caps", test_srq_caps },
	{ "srq-recv", test_srq_recv },
	{ "srq-order", test_srq_order },
	{ "srq-resize", test_srq_resize },
	{ "srq-clean", test_srq_clean },
	{ "srq-threads", test_srq_threads },
	{ "xrc-completions", test_xrc_completions },
	{ "xrc-send", test_xrc_send },
	{ "xrc-wr-api", test_xrc_wr_api },
	{ "xrc-target", test_xrc_target },
	{ "bad-srqs", test_bad_srqs },
	{ "records", test_records },
	{ "query-device", test_query_device },
	{ "timestamps", test_timestamps },
	{ "rt-values", test_rt_values },
	{ "wc-flags", test_wc_flags },
	{ "cvlan", test_cvlan },
	{ "cq-attr", test_cq_attr },
	{ "domains", test_domains },
	{ "bad-domains", test_bad_domains },
	{ "allocators", test_allocators },
	{ "thread-domain", test_thread_domain },
	{ "import", test_import },
	{ "on-demand", test_on_demand },
	{ "dmabuf", test_dmabuf },
	{ "device-memory", test_device_memory },
	{ "bad-device-memory", test_bad_device_memory },
	{ "dm-mr", test_dm_mr },
	{ "import-dm", test_import_dm },
};

static bool is_chosen(const char *name, int argc, char **argv)
{
	bool any = false;
	int i;

	for (i = 1; i + 1 < argc; i++) {
		if (strcmp(argv[i], "-p"))
			continue;
		any = true;
		if (!strcmp(argv[i + 1], name))
			return true;
	}
	return !any;
}

int main(int argc, char **argv)
{
	int before, bad = 0, n = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		if (argc > 1 && !strcmp(argv[1], "-l")) {
			puts(cases[i].name);
			continue;
		}
		if (!is_chosen(cases[i].name, argc, argv))
			continue;
		before = failures;
		setup();
		cases[i].run();
		teardown();
		bad += failures != before;
		printf("%sok %d %s\n", failures == before ? "" : "not ", ++n,
		       cases[i].name);
	}
	if (n)
		printf("1..%d\n", n);
	return bad != 0;
}
