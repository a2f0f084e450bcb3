// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory that users in the kernel register by work requests, as protocols of
 * storage and files do. Loading the module runs the tests on the device that
 * it is told, with two QPs of it: one has the memory, the other is its peer.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dma-mapping.h>
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/rw.h>

#include "connect.h"

MODULE_AUTHOR("The rdma-hca project");
MODULE_DESCRIPTION("Tests of fast registration on an rdma_hca device");
MODULE_LICENSE("Dual BSD/GPL");

static char *device = "";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "its name");

static char *only = "";
module_param(only, charp, 0444);
MODULE_PARM_DESC(only, "the test to run, in place of all");

static bool forced;
module_param(forced, bool, 0444);
MODULE_PARM_DESC(forced, "ib_core has been told to register whatever is read or written");

#define DEPTH		16
#define PAGES		512
#define BUF_SIZE	SZ_64K
#define CHUNK		60000
#define PATIENCE	(20 * HZ)
#define ALL_RIGHTS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
			 IB_ACCESS_REMOTE_READ)

/* The QPs. */
#define PEER		0
#define OWNER		1

struct bench {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp[2];
	u32 rdma_ctxs;
	/* the peer's memory, which keys of the PD's own lead to */
	u8 *buf;
	u64 dma;
	u8 *copy;
	/* the owner's */
	struct page *page[PAGES];
	struct scatterlist sg[PAGES];
	int nents;
	/* completions that nobody has asked for yet */
	struct ib_wc wc[4 * DEPTH];
	u32 wcs;
};

/* --- set-up ------------------------------------------------------------- */

static void ignore_event(struct ib_cq *cq, void *context)
{
}

static int create_qp(struct bench *b, int i)
{
	struct ib_qp_init_attr attr = {
		.send_cq = b->cq,
		.recv_cq = b->cq,
		.cap = {
			.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 2,
			.max_recv_sge = 1,
			.max_rdma_ctxs = b->rdma_ctxs,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.port_num = PORT,
	};

	b->qp[i] = ib_create_qp(b->pd, &attr);
	CHECK(!IS_ERR(b->qp[i]));
	return 0;
}

static int connect(struct bench *b)
{
	CHECK(!connect_qp(b->qp[0], b->qp[1]->qp_num));
	CHECK(!connect_qp(b->qp[1], b->qp[0]->qp_num));
	return 0;
}

static int create_qps(struct bench *b)
{
	CHECK(!create_qp(b, 0));
	CHECK(!create_qp(b, 1));
	return connect(b);
}

static int destroy_qps(struct bench *b)
{
	CHECK(!ib_destroy_qp(b->qp[0]));
	CHECK(!ib_destroy_qp(b->qp[1]));
	b->wcs = 0;
	return 0;
}

/* After an error has broken them. */
static int renew(struct bench *b)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };

	CHECK(!ib_modify_qp(b->qp[0], &attr, IB_QP_STATE));
	CHECK(!ib_modify_qp(b->qp[1], &attr, IB_QP_STATE));
	b->wcs = 0;
	return connect(b);
}

/* --- memory ------------------------------------------------------------- */

/* Pages that are anywhere. */
static struct page *page_at(struct bench *b, int i)
{
	return b->page[i * 37 % PAGES];
}

static int map_dma(struct bench *b, int count)
{
	sg_mark_end(&b->sg[count - 1]);
	b->nents = ib_dma_map_sg(b->dev, b->sg, count, DMA_BIDIRECTIONAL);
	CHECK(b->nents == count);
	return 0;
}

static void unmap_dma(struct bench *b)
{
	ib_dma_unmap_sg(b->dev, b->sg, b->nents, DMA_BIDIRECTIONAL);
}

/* All of @count pages but the first @skip bytes and the last @lack. */
static int lay_pages(struct bench *b, int count, u32 skip, u32 lack)
{
	int i;

	sg_init_table(b->sg, PAGES);
	for (i = 0; i < count; i++)
		sg_set_page(&b->sg[i], page_at(b, i),
			    PAGE_SIZE - (i == 0 ? skip : 0) -
				    (i == count - 1 ? lack : 0),
			    i == 0 ? skip : 0);
	return map_dma(b, count);
}

/* Pieces that begin and end anywhere. */
static int lay_pieces(struct bench *b, int count)
{
	int i;

	sg_init_table(b->sg, PAGES);
	for (i = 0; i < count; i++)
		sg_set_page(&b->sg[i], page_at(b, i), 1 + i * 777 % 2000,
			    i * 321 % 2000);
	return map_dma(b, count);
}

static u32 total(struct bench *b)
{
	u32 i, length = 0;

	for (i = 0; i < b->nents; i++)
		length += b->sg[i].length;
	return length;
}

/* Whether @length bytes of buf are what the owner has from @offset on. */
static bool same(struct bench *b, u32 offset, u32 length)
{
	return sg_pcopy_to_buffer(b->sg, b->nents, b->copy, length, offset) ==
		       length &&
	       !memcmp(b->copy, b->buf, length);
}

/* --- work requests and completions -------------------------------------- */

static bool take_wc(struct bench *b, u64 wr_id, struct ib_wc *wc)
{
	u32 i;

	for (i = 0; i < b->wcs; i++) {
		if (b->wc[i].wr_id != wr_id)
			continue;
		*wc = b->wc[i];
		b->wc[i] = b->wc[--b->wcs];
		return true;
	}
	return false;
}

/* The completion of one work request, whatever else completes. */
static int wait_wc(struct bench *b, u64 wr_id, struct ib_wc *wc)
{
	unsigned long end = jiffies + PATIENCE;
	int n;

	while (!take_wc(b, wr_id, wc)) {
		n = ib_poll_cq(b->cq, 1, &b->wc[b->wcs]);
		b->wcs += n;
		CHECK(b->wcs < ARRAY_SIZE(b->wc));
		CHECK(n || time_before(jiffies, end));
		if (!n)
			usleep_range(10, 50);
	}
	return 0;
}

static int ends(struct bench *b, u64 wr_id, enum ib_wc_opcode opcode,
		enum ib_wc_status status)
{
	struct ib_wc wc;

	CHECK(!wait_wc(b, wr_id, &wc));
	if (wc.status == status && wc.opcode == opcode)
		return 0;
	pr_err("%llu has status %d and opcode %d, not %d %d\n", wr_id,
	       wc.status, wc.opcode, status, opcode);
	return -EIO;
}

static int post(struct bench *b, int i, struct ib_send_wr *wr)
{
	return ib_post_send(b->qp[i], wr, NULL);
}

static struct ib_reg_wr reg_request(struct ib_mr *mr, u64 wr_id, int access)
{
	return (struct ib_reg_wr) {
		.wr = {
			.wr_id = wr_id,
			.opcode = IB_WR_REG_MR,
			.send_flags = IB_SEND_SIGNALED,
		},
		.mr = mr,
		.key = mr->rkey,
		.access = access,
	};
}

static struct ib_send_wr inv_request(enum ib_wr_opcode opcode, u64 wr_id,
				     u32 key)
{
	return (struct ib_send_wr) {
		.wr_id = wr_id,
		.opcode = opcode,
		.send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = key,
	};
}

static int reg(struct bench *b, struct ib_mr *mr, int access,
	       enum ib_wc_status status)
{
	struct ib_reg_wr wr = reg_request(mr, 100, access);

	CHECK(!post(b, OWNER, &wr.wr));
	return ends(b, 100, IB_WC_REG_MR, status);
}

static int inv(struct bench *b, u32 key, enum ib_wc_status status)
{
	struct ib_send_wr wr = inv_request(IB_WR_LOCAL_INV, 101, key);

	CHECK(!post(b, OWNER, &wr));
	return ends(b, 101, IB_WC_LOCAL_INV, status);
}

/* Between buf and the owner's memory. */
static int transfer(struct bench *b, enum ib_wr_opcode opcode, u32 length,
		    u64 addr, u32 rkey, enum ib_wc_status status)
{
	struct ib_sge sge = {
		.addr = b->dma,
		.length = length,
		.lkey = b->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_id = 102,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = opcode,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = addr,
		.rkey = rkey,
	};

	CHECK(!post(b, PEER, &wr.wr));
	return ends(b, 102, opcode == IB_WR_RDMA_READ ? IB_WC_RDMA_READ :
							IB_WC_RDMA_WRITE,
		    status);
}

/* Read and write all of a region, and not a byte more. */
static int use(struct bench *b, struct ib_mr *mr)
{
	u32 at, length;

	for (at = 0; at < total(b); at += CHUNK) {
		length = min_t(u32, CHUNK, total(b) - at);
		CHECK(!transfer(b, IB_WR_RDMA_READ, length, mr->iova + at,
				mr->rkey, IB_WC_SUCCESS));
		CHECK(same(b, at, length));
		get_random_bytes(b->buf, length);
		CHECK(!transfer(b, IB_WR_RDMA_WRITE, length, mr->iova + at,
				mr->rkey, IB_WC_SUCCESS));
		CHECK(same(b, at, length));
	}
	return 0;
}

/* Nobody gets in there; the QPs are as new then. */
static int closed(struct bench *b, u64 addr, u32 key)
{
	CHECK(!transfer(b, IB_WR_RDMA_READ, 1, addr, key,
			IB_WC_REM_ACCESS_ERR));
	return renew(b);
}

static int post_recv(struct bench *b, int i, u64 wr_id)
{
	struct ib_sge sge = {
		.addr = b->dma,
		.length = BUF_SIZE,
		.lkey = b->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
	};

	return ib_post_recv(b->qp[i], &wr, NULL);
}

static struct ib_mr *alloc_mr(struct bench *b, enum ib_mr_type type)
{
	return ib_alloc_mr(b->pd, type,
			   b->dev->attrs.max_fast_reg_page_list_len);
}

static int map(struct bench *b, struct ib_mr *mr, u32 page_size)
{
	CHECK(ib_map_mr_sg(mr, b->sg, b->nents, NULL, page_size) == b->nents);
	CHECK(mr->length == total(b));
	return 0;
}

/* --- tests -------------------------------------------------------------- */

static int test_attributes(struct bench *b)
{
	const struct ib_device_attr *attrs = &b->dev->attrs;

	CHECK(attrs->device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS);
	CHECK(attrs->kernel_cap_flags & IBK_SG_GAPS_REG);
	CHECK(attrs->max_fast_reg_page_list_len >= PAGES);
	CHECK(!attrs->max_pi_fast_reg_page_list_len);
	return 0;
}

/* As many pages as there may be, from the middle of one to that of another. */
static int test_pages(struct bench *b)
{
	struct ib_mr *mr = alloc_mr(b, IB_MR_TYPE_MEM_REG);
	u64 end;

	CHECK(!IS_ERR(mr) && mr->lkey == mr->rkey);
	CHECK(!lay_pages(b, PAGES, 100, 1000));
	CHECK(!map(b, mr, PAGE_SIZE));
	end = mr->iova + mr->length;
	CHECK(!closed(b, mr->iova, mr->rkey));
	CHECK(!reg(b, mr, ALL_RIGHTS, IB_WC_SUCCESS));
	CHECK(!use(b, mr));
	CHECK(!closed(b, mr->iova - 1, mr->rkey));
	CHECK(!closed(b, end, mr->rkey));
	CHECK(!transfer(b, IB_WR_RDMA_READ, 2, end - 2, mr->rkey,
			IB_WC_SUCCESS));
	CHECK(!inv(b, mr->rkey, IB_WC_SUCCESS));
	CHECK(!closed(b, mr->iova, mr->rkey));
	CHECK(!ib_dereg_mr(mr));
	unmap_dma(b);
	return 0;
}

#define LARGE		SZ_128K
#define LARGES		5

/* As rtrs maps its chunks. */
static int test_large_pages(struct bench *b)
{
	struct ib_mr *mr = alloc_mr(b, IB_MR_TYPE_MEM_REG);
	struct page *large[LARGES];
	int i;

	CHECK(!IS_ERR(mr));
	sg_init_table(b->sg, PAGES);
	for (i = 0; i < LARGES; i++) {
		large[i] = alloc_pages(GFP_KERNEL, get_order(LARGE));
		CHECK(large[i]);
		sg_set_page(&b->sg[LARGES - 1 - i], large[i], LARGE, 0);
	}
	CHECK(!map_dma(b, LARGES));
	CHECK(!map(b, mr, LARGE));
	CHECK(mr->page_size == LARGE);
	CHECK(!reg(b, mr, ALL_RIGHTS, IB_WC_SUCCESS));
	CHECK(!use(b, mr));
	CHECK(!ib_dereg_mr(mr));
	unmap_dma(b);
	for (i = 0; i < LARGES; i++)
		__free_pages(large[i], get_order(LARGE));
	return 0;
}

/* The owner uses it, too, by the local key. */
static int test_gaps(struct bench *b)
{
	struct ib_mr *mr = alloc_mr(b, IB_MR_TYPE_SG_GAPS);
	struct ib_sge sge;
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_id = 1,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = b->dma,
		.rkey = b->pd->unsafe_global_rkey,
	};

	CHECK(!IS_ERR(mr));
	CHECK(!lay_pieces(b, PAGES));
	CHECK(!map(b, mr, PAGE_SIZE));
	CHECK(!reg(b, mr, ALL_RIGHTS, IB_WC_SUCCESS));
	CHECK(!use(b, mr));
	sge = (struct ib_sge) { mr->iova + 12345, 40000, mr->lkey };
	CHECK(!post(b, OWNER, &wr.wr));
	CHECK(!ends(b, 1, IB_WC_RDMA_WRITE, IB_WC_SUCCESS));
	CHECK(same(b, 12345, 40000));
	CHECK(!closed(b, mr->iova + mr->length, mr->rkey));
	CHECK(!ib_dereg_mr(mr));
	unmap_dma(b);
	return 0;
}

/* NFS puts an identifier into the upper half, RDS begins at 0. */
static int start_elsewhere(struct bench *b, enum ib_mr_type type)
{
	struct ib_mr *mr = alloc_mr(b, type);
	u32 page_size = PAGE_SIZE;

	CHECK(!IS_ERR(mr));
	CHECK(!lay_pages(b, 20, 300, 50));
	CHECK(!map(b, mr, page_size));
	mr->iova = lower_32_bits(mr->iova) | 0x87654321ULL << 32;
	CHECK(!reg(b, mr, ALL_RIGHTS, IB_WC_SUCCESS));
	CHECK(!use(b, mr));
	CHECK(!inv(b, mr->rkey, IB_WC_SUCCESS));
	unmap_dma(b);
	CHECK(!lay_pages(b, 20, 0, 0));
	CHECK(ib_map_mr_sg_zbva(mr, b->sg, b->nents, NULL, PAGE_SIZE) ==
	      b->nents);
	CHECK(!mr->iova);
	CHECK(!reg(b, mr, ALL_RIGHTS, IB_WC_SUCCESS));
	CHECK(!use(b, mr));
	CHECK(!ib_dereg_mr(mr));
	unmap_dma(b);
	return 0;
}

static int test_starts(struct bench *b)
{
	return start_elsewhere(b, IB_MR_TYPE_MEM_REG) ?:
	       start_elsewhere(b, IB_MR_TYPE_SG_GAPS);
}

/*
 * As iSER does: the last registration goes, the next one comes with another
 * byte in its key, and the peer is told, in one list.
 */
static int post_next(struct bench *b, struct ib_mr *mr, u8 byte)
{
	struct ib_send_wr inv = inv_request(IB_WR_LOCAL_INV, 1, mr->rkey);
	struct ib_send_wr send = { .wr_id = 3, .opcode = IB_WR_SEND,
				   .send_flags = IB_SEND_SIGNALED };
	struct ib_reg_wr reg;

	ib_update_fast_reg_key(mr, byte);
	reg = reg_request(mr, 2, ALL_RIGHTS);
	inv.send_flags = 0;
	reg.wr.send_flags = 0;
	inv.next = &reg.wr;
	reg.wr.next = &send;
	return post(b, OWNER, &inv);
}

static int test_key_bytes(struct bench *b)
{
	struct ib_mr *mr = alloc_mr(b, IB_MR_TYPE_MEM_REG);
	u32 old = 0;
	int n;

	CHECK(!IS_ERR(mr));
	CHECK(!lay_pages(b, 3, 1, 0));
	CHECK(!map(b, mr, PAGE_SIZE));
	CHECK(!reg(b, mr, ALL_RIGHTS, IB_WC_SUCCESS));
	for (n = 0; n < 300; n++) {
		old = mr->rkey;
		CHECK(!post_recv(b, PEER, 4));
		CHECK(!post_next(b, mr, n));
		CHECK(!ends(b, 4, IB_WC_RECV, IB_WC_SUCCESS));
		CHECK(!transfer(b, IB_WR_RDMA_READ, 5000, mr->iova + 1,
				mr->rkey, IB_WC_SUCCESS));
		CHECK(same(b, 1, 5000));
		CHECK(!ends(b, 3, IB_WC_SEND, IB_WC_SUCCESS));
	}
	CHECK(!closed(b, mr->iova, old));
	CHECK(!transfer(b, IB_WR_RDMA_READ, 1, mr->iova, mr->rkey,
			IB_WC_SUCCESS));
	CHECK(!ib_dereg_mr(mr));
	unmap_dma(b);
	return 0;
}

/* The peer writes, and gives the key back, with a message or an empty one. */
static int give_back(struct bench *b, struct ib_mr *mr, u32 length)
{
	struct ib_sge sge = { b->dma, length, b->pd->local_dma_lkey };
	struct ib_send_wr back = inv_request(IB_WR_SEND_WITH_INV, 1, mr->rkey);
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_id = 2,
			.next = &back,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IB_WR_RDMA_WRITE,
		},
		.remote_addr = mr->iova,
		.rkey = mr->rkey,
	};

	back.sg_list = &sge;
	back.num_sge = length ? 1 : 0;
	return post(b, PEER, &wr.wr);
}

static int test_remote_invalidation(struct bench *b)
{
	static const u32 lengths[] = { 5000, 0, 8 };
	struct ib_mr *mr = alloc_mr(b, IB_MR_TYPE_MEM_REG);
	struct ib_wc wc;
	int n;

	CHECK(!IS_ERR(mr));
	CHECK(!lay_pages(b, 4, 77, 0));
	CHECK(!map(b, mr, PAGE_SIZE));
	for (n = 0; n < ARRAY_SIZE(lengths); n++) {
		ib_update_fast_reg_key(mr, n);
		CHECK(!reg(b, mr, ALL_RIGHTS, IB_WC_SUCCESS));
		get_random_bytes(b->buf, 5000);
		CHECK(!post_recv(b, OWNER, 3));
		CHECK(!give_back(b, mr, lengths[n]));
		CHECK(!wait_wc(b, 3, &wc));
		CHECK(wc.status == IB_WC_SUCCESS && wc.opcode == IB_WC_RECV);
		CHECK(wc.byte_len == lengths[n]);
		CHECK(wc.wc_flags & IB_WC_WITH_INVALIDATE);
		CHECK(!(wc.wc_flags & IB_WC_WITH_IMM));
		CHECK(wc.ex.invalidate_rkey == mr->rkey);
		CHECK(!ends(b, 1, IB_WC_SEND, IB_WC_SUCCESS));
		CHECK(same(b, 0, lengths[n]));
	}
	CHECK(!closed(b, mr->iova, mr->rkey));
	CHECK(!ib_dereg_mr(mr));
	unmap_dma(b);
	return 0;
}

/* Of a key that the peer must not invalidate both are told. */
static int refuse_remote(struct bench *b, u32 key)
{
	struct ib_send_wr wr = inv_request(IB_WR_SEND_WITH_INV, 1, key);
	struct ib_wc wc;

	CHECK(!post_recv(b, OWNER, 2));
	CHECK(!post(b, PEER, &wr));
	CHECK(!ends(b, 1, IB_WC_SEND, IB_WC_REM_ACCESS_ERR));
	CHECK(!wait_wc(b, 2, &wc));
	CHECK(wc.status != IB_WC_SUCCESS);
	return renew(b);
}

static int refuse_reg(struct bench *b, struct ib_mr *mr, u32 key)
{
	struct ib_send_wr behind = inv_request(IB_WR_LOCAL_INV, 2, mr->rkey);
	struct ib_reg_wr wr = reg_request(mr, 1, ALL_RIGHTS);

	wr.key = key;
	wr.wr.next = &behind;
	behind.send_flags = 0;
	CHECK(!post(b, OWNER, &wr.wr));
	CHECK(!ends(b, 1, IB_WC_REG_MR, IB_WC_LOC_QP_OP_ERR));
	CHECK(!ends(b, 2, IB_WC_LOCAL_INV, IB_WC_WR_FLUSH_ERR));
	return renew(b);
}

static int refuse_inv(struct bench *b, u32 key)
{
	CHECK(!inv(b, key, IB_WC_LOC_QP_OP_ERR));
	return renew(b);
}

/* An MR of another protection domain. */
static int refuse_foreign(struct bench *b)
{
	struct ib_pd *pd = ib_alloc_pd(b->dev, 0);
	struct ib_mr *mr;

	CHECK(!IS_ERR(pd));
	mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 8);
	CHECK(!IS_ERR(mr));
	CHECK(!map(b, mr, PAGE_SIZE));
	CHECK(!refuse_reg(b, mr, mr->rkey));
	CHECK(!ib_dereg_mr(mr));
	ib_dealloc_pd(pd);
	return 0;
}

static int test_errors(struct bench *b)
{
	struct ib_mr *mr = alloc_mr(b, IB_MR_TYPE_MEM_REG);

	CHECK(!IS_ERR(mr));
	CHECK(!lay_pages(b, 2, 0, 0));
	CHECK(!map(b, mr, PAGE_SIZE));
	CHECK(!refuse_reg(b, mr, mr->rkey + 0x100));
	CHECK(!refuse_remote(b, mr->rkey));
	/* Free as it is. */
	CHECK(!inv(b, mr->rkey, IB_WC_SUCCESS));
	CHECK(!reg(b, mr, IB_ACCESS_REMOTE_READ, IB_WC_SUCCESS));
	CHECK(!refuse_reg(b, mr, mr->rkey));
	CHECK(!refuse_inv(b, mr->rkey ^ 1));
	CHECK(!refuse_inv(b, b->pd->unsafe_global_rkey));
	CHECK(!refuse_remote(b, mr->rkey ^ 1));
	CHECK(!refuse_remote(b, b->pd->unsafe_global_rkey));
	CHECK(!refuse_foreign(b));
	/* None of which has changed it. */
	CHECK(!transfer(b, IB_WR_RDMA_READ, PAGE_SIZE, mr->iova, mr->rkey,
			IB_WC_SUCCESS));
	CHECK(!transfer(b, IB_WR_RDMA_WRITE, 1, mr->iova, mr->rkey,
			IB_WC_REM_ACCESS_ERR));
	CHECK(!renew(b));
	CHECK(!ib_dereg_mr(mr));
	unmap_dma(b);
	return 0;
}

static bool is_refused(struct bench *b, enum ib_mr_type type, u32 count)
{
	struct ib_mr *mr = ib_alloc_mr(b->pd, type, count);

	return PTR_ERR_OR_ZERO(mr) == -EINVAL;
}

/* What cannot be is refused before the card sees it. */
static int test_refused_calls(struct bench *b)
{
	struct ib_mr *mr = ib_alloc_mr(b->pd, IB_MR_TYPE_MEM_REG, 3);
	u32 most = b->dev->attrs.max_fast_reg_page_list_len;
	struct ib_reg_wr wr;

	CHECK(!IS_ERR(mr));
	CHECK(is_refused(b, IB_MR_TYPE_MEM_REG, 0));
	CHECK(is_refused(b, IB_MR_TYPE_MEM_REG, most + 1));
	CHECK(is_refused(b, IB_MR_TYPE_SG_GAPS, most + 1));
	wr = reg_request(mr, 1, ALL_RIGHTS);
	CHECK(post(b, OWNER, &wr.wr) == -EINVAL);
	CHECK(!lay_pages(b, 5, 0, 0));
	CHECK(ib_map_mr_sg(mr, b->sg, 5, NULL, 3000) == -EINVAL);
	CHECK(ib_map_mr_sg(mr, b->sg, 5, NULL, 2048) == -EINVAL);
	CHECK(ib_map_mr_sg(mr, b->sg, 5, NULL, PAGE_SIZE) == 3);
	CHECK(mr->length == 3 * PAGE_SIZE);
	wr = reg_request(mr, 1, IB_ACCESS_ON_DEMAND);
	CHECK(post(b, OWNER, &wr.wr) == -EINVAL);
	CHECK(!reg(b, mr, ALL_RIGHTS, IB_WC_SUCCESS));
	CHECK(!ib_dereg_mr(mr));
	unmap_dma(b);
	return 0;
}

/* --- drain -------------------------------------------------------------- */

struct counted {
	struct ib_cqe cqe;
	int flushed;
	bool wrong;
};

static void count_flushed(struct ib_cq *cq, struct ib_wc *wc)
{
	struct counted *c = container_of(wc->wr_cqe, struct counted, cqe);

	c->flushed += wc->status == IB_WC_WR_FLUSH_ERR;
	c->wrong |= wc->opcode != (c->flushed & 1 ? IB_WC_REG_MR :
						    IB_WC_LOCAL_INV);
}

static int post_to_drain(struct bench *b, struct ib_mr *mr, struct counted *c)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct ib_send_wr inv = inv_request(IB_WR_LOCAL_INV, 0, mr->rkey);
	struct ib_reg_wr reg = reg_request(mr, 0, ALL_RIGHTS);
	int n;

	inv.wr_cqe = &c->cqe;
	reg.wr.wr_cqe = &c->cqe;
	CHECK(!ib_modify_qp(b->qp[OWNER], &attr, IB_QP_STATE));
	for (n = 0; n < 7; n++) {
		CHECK(!post(b, OWNER, &reg.wr));
		CHECK(!post(b, OWNER, &inv));
	}
	return 0;
}

/* What is in the queue of a QP that is broken ends as what it is. */
static int test_drain(struct bench *b)
{
	struct counted c = { .cqe.done = count_flushed };
	struct ib_mr *mr = alloc_mr(b, IB_MR_TYPE_MEM_REG);
	struct ib_cq *cq = b->cq;

	CHECK(!IS_ERR(mr));
	CHECK(!lay_pages(b, 2, 0, 0));
	CHECK(!map(b, mr, PAGE_SIZE));
	CHECK(!destroy_qps(b));
	b->cq = ib_alloc_cq(b->dev, NULL, 4 * DEPTH, 0, IB_POLL_WORKQUEUE);
	CHECK(!IS_ERR(b->cq));
	CHECK(!create_qps(b));
	CHECK(!post_to_drain(b, mr, &c));
	ib_drain_qp(b->qp[OWNER]);
	CHECK(c.flushed == 14 && !c.wrong);
	CHECK(!destroy_qps(b));
	ib_free_cq(b->cq);
	b->cq = cq;
	CHECK(!create_qps(b));
	CHECK(!closed(b, mr->iova, mr->rkey));
	CHECK(!ib_dereg_mr(mr));
	unmap_dma(b);
	return 0;
}

/* --- the core's reads and writes ---------------------------------------- */

struct done {
	struct ib_cqe cqe;
	struct completion completion;
	enum ib_wc_status status;
};

static void rw_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct done *d = container_of(wc->wr_cqe, struct done, cqe);

	d->status = wc->status;
	complete(&d->completion);
}

/* All of buf, to or from the owner's memory. */
static int read_or_write(struct bench *b, enum dma_data_direction dir)
{
	struct done d = { .cqe.done = rw_done };
	struct ib_qp *qp = b->qp[OWNER];
	struct rdma_rw_ctx ctx;
	u32 count = BUF_SIZE / PAGE_SIZE;

	init_completion(&d.completion);
	CHECK(rdma_rw_ctx_init(&ctx, qp, PORT, b->sg, count, 0, b->dma,
			       b->pd->unsafe_global_rkey, dir) > 0);
	CHECK(forced == (qp->mrs_used > 0));
	CHECK(!rdma_rw_ctx_post(&ctx, qp, PORT, &d.cqe, NULL));
	CHECK(wait_for_completion_timeout(&d.completion, PATIENCE));
	rdma_rw_ctx_destroy(&ctx, qp, PORT, b->sg, count, dir);
	CHECK(d.status == IB_WC_SUCCESS);
	CHECK(same(b, 0, BUF_SIZE));
	return 0;
}

static int read_and_write(struct bench *b)
{
	int n;

	for (n = 0; n < 5; n++) {
		get_random_bytes(b->buf, BUF_SIZE);
		CHECK(!read_or_write(b, DMA_FROM_DEVICE));
		get_random_bytes(page_address(page_at(b, n)), PAGE_SIZE);
		CHECK(!read_or_write(b, DMA_TO_DEVICE));
	}
	return 0;
}

/* With regions if ib_core is told so: its parameter force_mr. */
static int test_core_rw(struct bench *b)
{
	struct ib_cq *cq = b->cq;
	int err;

	CHECK(!destroy_qps(b));
	b->cq = ib_alloc_cq(b->dev, NULL, 16 * DEPTH, 0, IB_POLL_WORKQUEUE);
	CHECK(!IS_ERR(b->cq));
	b->rdma_ctxs = 2;
	CHECK(!create_qps(b));
	CHECK(!lay_pages(b, BUF_SIZE / PAGE_SIZE, 0, 0));
	unmap_dma(b);	/* that is the core's work here */
	err = read_and_write(b);
	b->rdma_ctxs = 0;
	CHECK(!destroy_qps(b));
	ib_free_cq(b->cq);
	b->cq = cq;
	return err ?: create_qps(b);
}

static const struct {
	const char *name;
	int (*run)(struct bench *b);
} tests[] = {
	{ "attributes", test_attributes },
	{ "pages", test_pages },
	{ "large-pages", test_large_pages },
	{ "gaps", test_gaps },
	{ "starts", test_starts },
	{ "key-bytes", test_key_bytes },
	{ "remote-invalidation", test_remote_invalidation },
	{ "errors", test_errors },
	{ "refused-calls", test_refused_calls },
	{ "drain", test_drain },
	{ "core-rw", test_core_rw },
};

/* --- module ------------------------------------------------------------- */

static int memory_init(struct bench *b)
{
	int i;

	b->buf = kzalloc(BUF_SIZE, GFP_KERNEL);
	b->copy = kzalloc(BUF_SIZE, GFP_KERNEL);
	CHECK(b->buf && b->copy);
	b->dma = ib_dma_map_single(b->dev, b->buf, BUF_SIZE,
				   DMA_BIDIRECTIONAL);
	CHECK(!ib_dma_mapping_error(b->dev, b->dma));
	for (i = 0; i < PAGES; i++) {
		b->page[i] = alloc_page(GFP_KERNEL);
		CHECK(b->page[i]);
		get_random_bytes(page_address(b->page[i]), PAGE_SIZE);
	}
	return 0;
}

static int bench_init(struct bench *b, struct ib_device *dev)
{
	struct ib_cq_init_attr attr = { .cqe = 4 * DEPTH };

	b->dev = dev;
	b->pd = ib_alloc_pd(dev, IB_PD_UNSAFE_GLOBAL_RKEY);
	CHECK(!IS_ERR(b->pd));
	b->cq = ib_create_cq(dev, ignore_event, NULL, b, &attr);
	CHECK(!IS_ERR(b->cq));
	CHECK(!memory_init(b));
	return create_qps(b);
}

static int bench_cleanup(struct bench *b)
{
	int i;

	CHECK(!destroy_qps(b));
	for (i = 0; i < PAGES; i++)
		__free_page(b->page[i]);
	ib_dma_unmap_single(b->dev, b->dma, BUF_SIZE, DMA_BIDIRECTIONAL);
	kfree(b->copy);
	kfree(b->buf);
	ib_destroy_cq(b->cq);
	ib_dealloc_pd(b->pd);
	return 0;
}

static int tested = -ENODEV;

/* A test that fails leaves what it has made: the guest is of no more use. */
static int test_device(struct ib_device *dev)
{
	struct bench *b = kzalloc(sizeof(*b), GFP_KERNEL);
	int i, err;

	CHECK(b);
	err = bench_init(b, dev);
	for (i = 0; i < ARRAY_SIZE(tests) && !err; i++) {
		if (*only && strcmp(only, tests[i].name))
			continue;
		err = tests[i].run(b);
		pr_info("%s: %s\n", tests[i].name,
			err ? "failed" : "passed");
	}
	if (err)
		return err;
	err = bench_cleanup(b);
	kfree(b);
	return err;
}

static int add_device(struct ib_device *dev)
{
	if (!strcmp(dev_name(&dev->dev), device))
		tested = test_device(dev);
	return -EOPNOTSUPP;	/* not to be told when it goes */
}

static struct ib_client client = {
	.name = "rdma_hca_memory",
	.add = add_device,
};

static int __init rdma_hca_memory_init(void)
{
	return run_tests(&client, &tested);
}
module_init(rdma_hca_memory_init);

static void __exit rdma_hca_memory_exit(void)
{
	ib_unregister_client(&client);
}
module_exit(rdma_hca_memory_exit);
