/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The rdma-hca provider: its objects and what its files offer each other.
 *
 * Functions that stand for a verb return what its man page says. The others
 * return 0 or an errno value, pointers or NULL with errno set.
 */
#ifndef RHCA_H
#define RHCA_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ccan/array_size.h>
#include <ccan/list.h>
#include <ccan/minmax.h>
#include <infiniband/driver.h>
#include <util/mmio.h>
#include <util/udma_barrier.h>

#include <rdma_hca_regs.h>
#include <rdma_hca_user.h>
#include <rdma_hca_wqe.h>

/* A posted count of 16 bits must tell a full receive queue from an empty one. */
#define RHCA_MAX_WR		32768

struct rhca_op;
struct rhca_qp;
struct rhca_srq;

struct rhca_context {
	struct verbs_context vctx;
	void *uar;			/* this process's doorbell page */
	bool is_roce;
	/* The port when it was asked last: GIDs 31:8, LMC 7:0. */
	atomic_uint ah_limits;
	uint32_t null_key;		/* L_Key without memory, 0: none */
	bool has_clock;			/* in the UAR page, and in completions */
	bool has_dm;			/* device memory */
	uint64_t missing_ops;		/* IBV_QP_EX_WITH_* that the device has not */
	/* limits */
	uint32_t max_cqe;
	uint32_t max_wr;
	uint32_t max_send_wqe_size;	/* bytes */
	uint32_t max_inline;		/* bytes */
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_srq_wr;
	uint32_t max_srq_sge;
	/*
	 * QPs, and XRC SRQs, by the low bits of their number. Writers hold the
	 * mutex, and no command is sent meanwhile; readers hold the lock of a
	 * CQ of the QP, or of the SRQ's CQ.
	 */
	struct rhca_qp **qps;
	uint32_t qp_mask;
	struct rhca_srq **srqs;		/* NULL: the card has none */
	uint32_t srq_mask;
	pthread_mutex_t table_mutex;
	/* pages of doorbell records */
	struct list_head db_pages;
	pthread_mutex_t db_mutex;
};

/* A thread domain: what is made in it needs no locks. */
struct rhca_td {
	struct ibv_td ibv_td;
	atomic_uint users;		/* parent domains */
};

/* A protection domain, or a parent domain around one. */
struct rhca_pd {
	struct ibv_pd ibv_pd;
	atomic_uint users;		/* parent domains, or queues */
	/* of a parent domain */
	struct rhca_pd *contained;	/* NULL: it is none */
	struct rhca_td *td;		/* NULL: none */
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size,
		       size_t alignment, uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr,
		     uint64_t resource_type);
	void *alloc_context;
};

/*
 * What a parent domain's allocator is asked for; the upper 32 bits are those
 * of the driver, RDMA_DRIVER_UNKNOWN.
 */
enum rhca_resource {
	RHCA_RESOURCE_QP = 1,		/* one of its rings */
	RHCA_RESOURCE_CQ = 2,
	RHCA_RESOURCE_RECORD = 3,
	RHCA_RESOURCE_SRQ = 4,
};

/* Device memory, mapped. */
struct rhca_dm {
	struct verbs_dm vdm;
	void *addr;
	size_t length;			/* bytes */
	size_t mapped;			/* whole pages */
};

struct rhca_ah {
	struct ibv_ah ibv_ah;
	struct rdma_hca_ud_unit unit;	/* all but dqpn and qkey */
	bool in_kernel;			/* the kernel has it, too */
};

/* Page-aligned memory that the card reads or writes. */
struct rhca_buf {
	void *addr;
	size_t size;			/* bytes, a multiple of the page size */
	struct rhca_pd *from;		/* whose allocator it is of; NULL: ours */
	enum rhca_resource resource;
};

struct rhca_cq {
	struct verbs_cq vcq;
	pthread_spinlock_t lock;
	bool single_threaded;		/* the application promised: no lock */
	struct rhca_pd *parent;		/* parent domain, or NULL */
	struct rhca_buf buf;
	uint32_t entries;		/* power of two */
	uint32_t cqn;
	uint32_t ci;			/* not wrapped; the record lags in a poll */
	__le32 *ci_db;			/* consumer-index record */
	/* the entry being read */
	const struct rdma_hca_cqe *cur;
	struct rhca_qp *cur_qp;		/* NULL: an XRC target, perhaps another's */
	/* the card's clock and the time of day, read together */
	bool wants_wallclock;
	uint64_t sample_clock;
	uint64_t sample_wallclock;	/* ns; 0: not read yet */
};

/* One of a QP's two rings, or an SRQ's. */
struct rhca_wq {
	pthread_spinlock_t lock;
	bool single_threaded;		/* of a thread domain: no lock */
	struct rhca_buf buf;
	uint32_t entries;		/* power of two, or 0: no such queue */
	uint8_t shift;			/* log of a slot's bytes */
	uint32_t head;			/* WQEs posted, not wrapped */
	_Atomic(uint32_t) tail;		/* WQEs retired, by whoever polls */
	uint64_t *wr_id;		/* by slot, or of an SRQ by tag */
};

/*
 * Slots are used in the order in which they are posted, and end in any other:
 * what tells of a WQE is its tag. There are as many tags as slots, so who has a
 * free one finds the slot at the head free, too.
 */
struct rhca_srq {
	struct verbs_srq vsrq;
	struct rhca_wq wq;		/* its lock is that of all here */
	struct rhca_pd *parent;		/* NULL: not in a parent domain */
	__le32 *db;			/* posted-count record */
	uint32_t max_sge;
	uint32_t *free_tags;		/* a stack */
	uint32_t num_free;
	uint32_t num_tags;		/* power of two; at least as many as entries */
};

/*
 * A chain of send WQEs in the making (interface document 3.4.1): what one
 * call posts. The first is announced by the doorbell, each other one by the
 * next_unit of the WQE before it.
 */
struct rhca_chain {
	uint32_t head;			/* the queue's head with this chain */
	struct rdma_hca_next_unit *last; /* last whole WQE; NULL: none */
	uint32_t db_low;
	uint32_t db_high;
	/* the WQE being written; NULL: none */
	struct rdma_hca_next_unit *wqe;
	void *data;			/* begin of inline or data units */
	void *end;
	const struct rhca_op *op;
	bool fence;
	bool has_addr;			/* ud_unit or xrc_unit, where one is needed */
	int err;			/* of the first failure; then all is void */
};

struct rhca_qp {
	struct verbs_qp vqp;
	struct rhca_wq sq;
	struct rhca_wq rq;
	__le32 *rq_db;			/* posted-count record */
	struct rhca_srq *srq;		/* instead of @rq */
	struct ibv_qp_cap cap;
	uint32_t send_limit;		/* bytes that a send WQE may have */
	bool sig_all;
	struct rhca_pd *parent;		/* parent domain, or NULL */
	struct rhca_chain chain;	/* under sq.lock */
};

static inline struct rhca_context *to_rctx(struct ibv_context *ctx)
{
	return container_of(ctx, struct rhca_context, vctx.context);
}

static inline struct rhca_cq *to_rcq(struct ibv_cq *cq)
{
	return container_of(cq, struct rhca_cq, vcq.cq);
}

static inline struct rhca_cq *to_rcq_ex(struct ibv_cq_ex *cq)
{
	return container_of(cq, struct rhca_cq, vcq.cq_ex);
}

static inline struct rhca_qp *to_rqp(struct ibv_qp *qp)
{
	return container_of(qp, struct rhca_qp, vqp.qp);
}

static inline struct rhca_qp *to_rqp_ex(struct ibv_qp_ex *qp)
{
	return container_of(qp, struct rhca_qp, vqp.qp_ex);
}

static inline struct rhca_srq *to_rsrq(struct ibv_srq *srq)
{
	return container_of(srq, struct rhca_srq, vsrq.srq);
}

/* Whether @qp has a queue for sends; its send_cq is valid then. */
static inline bool rhca_has_send(const struct rhca_qp *qp)
{
	return qp->vqp.qp.qp_type != IBV_QPT_XRC_RECV;
}

/* Whether it receives for itself, into whatever queue. */
static inline bool rhca_has_recv(const struct rhca_qp *qp)
{
	return qp->vqp.qp.qp_type != IBV_QPT_XRC_RECV &&
	       qp->vqp.qp.qp_type != IBV_QPT_XRC_SEND;
}

static inline struct rhca_pd *to_rpd(struct ibv_pd *pd)
{
	return container_of(pd, struct rhca_pd, ibv_pd);
}

static inline struct rhca_td *to_rtd(struct ibv_td *td)
{
	return container_of(td, struct rhca_td, ibv_td);
}

static inline struct rhca_dm *to_rdm(struct ibv_dm *dm)
{
	return container_of(dm, struct rhca_dm, vdm.dm);
}

static inline struct rhca_ah *to_rah(struct ibv_ah *ah)
{
	return container_of(ah, struct rhca_ah, ibv_ah);
}

static inline void rhca_wq_lock(struct rhca_wq *wq)
{
	if (!wq->single_threaded)
		pthread_spin_lock(&wq->lock);
}

static inline void rhca_wq_unlock(struct rhca_wq *wq)
{
	if (!wq->single_threaded)
		pthread_spin_unlock(&wq->lock);
}

/* Offset in bytes of the slot of WQE @index, which need not be wrapped. */
static inline uint32_t rhca_wq_offset(const struct rhca_wq *wq, uint32_t index)
{
	return (index & (wq->entries - 1)) << wq->shift;
}

static inline void *rhca_wq_slot(const struct rhca_wq *wq, uint32_t index)
{
	return (uint8_t *)wq->buf.addr + rhca_wq_offset(wq, index);
}

/* The card sees @value only after all that was written before. */
static inline void rhca_store_record(__le32 *record, uint32_t value)
{
	udma_to_device_barrier();
	atomic_store_explicit((_Atomic(__le32) *)record, htole32(value),
			      memory_order_relaxed);
}

/* Ring a doorbell of the UAR page; the card sees all written before. */
static inline void rhca_ring(struct rhca_context *ctx, unsigned int offset,
			     uint32_t low, uint32_t high)
{
	udma_to_device_barrier();
	mmio_write64((uint8_t *)ctx->uar + offset, (uint64_t)high << 32 | low);
}

/* The card's clock; only if it has one. */
static inline uint64_t rhca_read_clock(struct rhca_context *ctx)
{
	const uint8_t *clock = (const uint8_t *)ctx->uar + RDMA_HCA_CLOCK;
#if SIZEOF_LONG == 8
	return mmio_read64(clock);
#else
	uint32_t high, low;

	do {
		high = mmio_read32(clock + 4);
		low = mmio_read32(clock);
	} while (high != mmio_read32(clock + 4));
	return (uint64_t)high << 32 | low;
#endif
}

/* mem.c */

/*
 * Zeroed memory of at least @size bytes; none, and no error, for @size 0.
 * @parent: a parent domain, whose allocator gives it if it has one, or NULL.
 */
int rhca_buf_alloc(struct rhca_buf *buf, size_t size, struct rhca_pd *parent,
		   enum rhca_resource resource);
void rhca_buf_free(struct rhca_buf *buf);

/*
 * A 32-bit doorbell record with value 0 in a page that holds only such, or in
 * the memory of the parent domain @parent.
 */
__le32 *rhca_record_alloc(struct rhca_context *ctx, struct rhca_pd *parent);
void rhca_record_free(struct rhca_context *ctx, struct rhca_pd *parent,
		      __le32 *record);

/* domain.c */

struct ibv_pd *rhca_alloc_pd(struct ibv_context *context);
int rhca_dealloc_pd(struct ibv_pd *pd);
struct ibv_pd *rhca_import_pd(struct ibv_context *context, uint32_t handle);
void rhca_unimport_pd(struct ibv_pd *pd);
struct ibv_td *rhca_alloc_td(struct ibv_context *context,
			     struct ibv_td_init_attr *attr);
int rhca_dealloc_td(struct ibv_td *td);
struct ibv_pd *
rhca_alloc_parent_domain(struct ibv_context *context,
			 struct ibv_parent_domain_init_attr *attr);
/* A queue is made in @pd: if it is a parent domain, keep it; else NULL. */
struct rhca_pd *rhca_pd_use(struct ibv_pd *pd);
void rhca_pd_release(struct rhca_pd *parent);
static inline bool rhca_is_single_threaded(const struct rhca_pd *parent)
{
	return parent && parent->td;
}

/* dm.c */

struct ibv_dm *rhca_alloc_dm(struct ibv_context *context,
			     struct ibv_alloc_dm_attr *attr);
int rhca_free_dm(struct ibv_dm *ibdm);
struct ibv_dm *rhca_import_dm(struct ibv_context *context, uint32_t handle);
void rhca_unimport_dm(struct ibv_dm *ibdm);
struct ibv_mr *rhca_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibdm,
			      uint64_t offset, size_t length,
			      unsigned int access);

/* verbs.c */

int rhca_query_device_ex(struct ibv_context *context,
			 const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t attr_size);
int rhca_query_port(struct ibv_context *context, uint8_t port,
		    struct ibv_port_attr *attr);
/* What of the port address handles have to keep to. */
void rhca_keep_ah_limits(struct rhca_context *ctx,
			 const struct ibv_port_attr *port);
int rhca_query_rt_values(struct ibv_context *context,
			 struct ibv_values_ex *values);
struct ibv_mr *rhca_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			   uint64_t hca_va, int access);
struct ibv_mr *rhca_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				  size_t length, uint64_t iova, int fd,
				  int access);
struct ibv_mr *rhca_import_mr(struct ibv_pd *pd, uint32_t handle);
void rhca_unimport_mr(struct ibv_mr *mr);
int rhca_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd,
		  void *addr, size_t length, int access);
int rhca_dereg_mr(struct verbs_mr *vmr);
struct ibv_mr *rhca_alloc_null_mr(struct ibv_pd *pd);
struct ibv_mw *rhca_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int rhca_dealloc_mw(struct ibv_mw *mw);
struct ibv_ah *rhca_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int rhca_destroy_ah(struct ibv_ah *ah);

/* cq.c */

struct ibv_cq *rhca_create_cq(struct ibv_context *context, int cqe,
			      struct ibv_comp_channel *channel,
			      int comp_vector);
struct ibv_cq_ex *rhca_create_cq_ex(struct ibv_context *context,
				    struct ibv_cq_init_attr_ex *attr);
int rhca_resize_cq(struct ibv_cq *ibcq, int cqe);
int rhca_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr);
int rhca_destroy_cq(struct ibv_cq *ibcq);
int rhca_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc);
int rhca_req_notify_cq(struct ibv_cq *ibcq, int solicited_only);

void rhca_lock_cqs(struct rhca_cq *a, struct rhca_cq *b);
void rhca_unlock_cqs(struct rhca_cq *a, struct rhca_cq *b);
/*
 * Take the entries of @qp, to which the card adds no more, out of @cq, which
 * is locked. The WQEs of an SRQ that they tell of go back there.
 */
void rhca_clean_cq(struct rhca_cq *cq, const struct rhca_qp *qp);
/* The same of an XRC SRQ, which is in @place; under @cq's lock, which it takes. */
void rhca_cq_forget_srq(struct rhca_cq *cq, struct rhca_srq *srq,
			struct rhca_srq **place);

/* qp.c */

struct ibv_qp *rhca_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *rhca_create_qp_ex(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *attr);
int rhca_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask,
		  struct ibv_qp_init_attr *init_attr);
int rhca_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr,
		   int attr_mask);
int rhca_destroy_qp(struct ibv_qp *ibqp);
struct ibv_qp *rhca_open_qp(struct ibv_context *context,
			    struct ibv_qp_open_attr *attr);

/* ring.c */

/* Slots for WQEs of @wqe_size bytes. */
void rhca_size_wq(struct rhca_wq *wq, uint32_t wqe_size, uint32_t wrs);
/* For receive WQEs; both are made what there is, up to @most entries. */
void rhca_size_recv(struct rhca_wq *wq, uint32_t *wrs, uint32_t *sges,
		    uint32_t most);
/* @parent, @resource: as in rhca_buf_alloc(). */
int rhca_wq_init(struct rhca_wq *wq, struct rhca_pd *parent,
		 enum rhca_resource resource);
void rhca_wq_destroy(struct rhca_wq *wq);
/* Copy the last @n posted to @to, which has slots of the same size. */
void rhca_recv_copy(const struct rhca_wq *from, struct rhca_wq *to, uint32_t n);
/* Nothing is in it, as the card expects of a new one. */
void rhca_wq_reset(struct rhca_wq *wq);
void rhca_recv_reset(struct rhca_wq *rq);

/* srq.c */

struct ibv_srq *rhca_create_srq(struct ibv_pd *pd,
				struct ibv_srq_init_attr *attr);
struct ibv_srq *rhca_create_srq_ex(struct ibv_context *context,
				   struct ibv_srq_init_attr_ex *attr);
int rhca_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr,
		    int attr_mask);
int rhca_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr);
int rhca_destroy_srq(struct ibv_srq *ibsrq);
int rhca_get_srq_num(struct ibv_srq *ibsrq, uint32_t *srq_num);
/* The WQE of @tag has ended; what it was. */
uint64_t rhca_srq_retire(struct rhca_srq *srq, uint32_t tag);
struct ibv_xrcd *rhca_open_xrcd(struct ibv_context *context,
				struct ibv_xrcd_init_attr *attr);
int rhca_close_xrcd(struct ibv_xrcd *xrcd);

/* flow.c */

struct ibv_flow *rhca_create_flow(struct ibv_qp *qp,
				 struct ibv_flow_attr *attr);
int rhca_destroy_flow(struct ibv_flow *flow);

/* op.c */

/* What a completion calls the card's @opcode of a send; an error has none. */
enum ibv_wc_opcode rhca_send_wc_opcode(uint8_t opcode);
/* The operations (IBV_QP_EX_WITH_*) that QPs of @type can be asked for. */
uint64_t rhca_send_ops(const struct rhca_context *ctx, enum ibv_qp_type type);

/* send.c */

int rhca_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr);
int rhca_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw,
		 struct ibv_mw_bind *mw_bind);

/* recv.c */

int rhca_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad_wr);
int rhca_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr);

/* wr.c */

/* Make @qp one for ibv_wr_*(). */
void rhca_init_qp_ex(struct rhca_qp *qp);

#endif /* RHCA_H */
