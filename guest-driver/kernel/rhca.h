/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * rdma-hca driver: the objects and the functions that its files share.
 *
 * The card's programming interface is in the rdma_hca_*.h headers; names
 * there begin with rdma_hca_, the driver's own with rhca_.
 */
#ifndef RHCA_H
#define RHCA_H

#include <linux/bitmap.h>
#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/dmapool.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <linux/version.h>
#include <linux/xarray.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include "rdma_hca_cmd.h"
#include "rdma_hca_cxt.h"
#include "rdma_hca_regs.h"
#include "rdma_hca_user.h"
#include "rdma_hca_wqe.h"

#define RHCA_NAME	"rdma_hca"
#define RHCA_PORT	1

/* What the card has: QUERY_FW, QUERY_ADAPTER and QUERY_DEV_LIM decoded. */
struct rhca_caps {
	u32 fw_version;
	u32 features;
	u64 board_id;

	/* logarithms to base 2 */
	u8 log_qps;
	u8 log_cqs;
	u8 log_eqs;
	u8 log_mpts;
	u8 log_mtts;
	u8 log_pds;
	u8 log_max_msg;
	u8 log_max_wqes;
	u8 log_max_cqes;

	/* counts, taken from the low end of each table */
	u32 reserved_qps;
	u32 reserved_cqs;
	u32 reserved_eqs;
	u32 reserved_mpts;
	u32 reserved_mtts;
	u32 reserved_pds;

	u32 num_uars;
	u32 num_pkeys;		/* places in the port's table */
	u32 max_send_sge;
	u32 max_recv_sge;
	u32 max_send_wqe_size;	/* bytes */
	u32 max_recv_wqe_size;	/* bytes */
	u32 max_inline;		/* bytes */
	u8 max_sra;
	u8 max_rra;
	u8 ack_delay;
	u8 max_mtu;		/* IB MTU code */
	u32 num_gids;
	u64 max_icm;		/* bytes */
};

/* A mailbox: RDMA_HCA_MAILBOX_SIZE bytes, zeroed. */
struct rhca_mailbox {
	void *buf;
	dma_addr_t dma;
};

struct rhca_cmd {
	struct mutex lock;	/* one command at a time */
	struct dma_pool *pool;
	bool use_events;
	u16 token;		/* of the command in progress */
	u8 status;
	struct completion done;
};

#define RHCA_ICM_CHUNK_SIZE	SZ_256K
#define RHCA_ICM_CHUNK_PAGES	(RHCA_ICM_CHUNK_SIZE >> RDMA_HCA_ICM_PAGE_SHIFT)

struct rhca_icm_chunk;

/* A table in ICM, whose memory is there chunk by chunk as it is needed. */
struct rhca_icm_table {
	struct mutex lock;	/* protects @chunk */
	u8 kind;		/* RDMA_HCA_ICM_CXT or _TPT */
	u64 virt;
	u64 size;		/* bytes, a multiple of the ICM page */
	u32 entry_size;
	u32 num_chunks;
	struct rhca_icm_chunk **chunk;
};

/*
 * Numbers 0 to @num - 1. They are handed out in ascending order, round and
 * round, so that a number comes back as late as possible; @lap counts the
 * rounds.
 */
struct rhca_bitmap {
	spinlock_t lock;	/* protects what follows */
	unsigned long *map;
	u32 num;
	u32 next;
	u32 lap;
};

/* Memory that a queue of the kernel lies in: contiguous, a power of two. */
struct rhca_buf {
	void *va;
	dma_addr_t dma;
	size_t size;
};

/* Translation of a region: MTT entries of one page size. */
struct rhca_mtt {
	u32 first;
	u32 count;		/* 0: none */
	u8 page_shift;
};

/* An MPT entry with its translation. */
struct rhca_region {
	u32 key;
	bool live;		/* in hardware */
	struct rhca_mtt mtt;
};

/* A doorbell record: a 32-bit word that the card reads. */
struct rhca_db_page;
struct rhca_db {
	dma_addr_t dma;
	__le32 *va;			/* the kernel's */
	struct rhca_db_page *page;	/* a process's */
};

struct rhca_dev;

struct rhca_eq {
	struct rhca_dev *dev;
	u32 eqn;
	u32 entries;
	u32 ci;
	int irq;
	struct rhca_buf buf;
	struct rhca_region region;
	char name[32];
};

/*
 * What outlives a restart of the card: the PCI function. @lock serialises
 * start and stop.
 */
struct rhca_pci {
	struct pci_dev *pdev;
	void __iomem *bar0;
	void __iomem *uar;	/* page RDMA_HCA_UAR_KERNEL */
	struct mutex lock;
	struct work_struct restart;
	bool removing;
	struct rhca_dev *dev;	/* NULL: stopped */
	struct net_device *ndev;	/* RoCE: since the first start */
};

/* A multicast group as the card has it; free: @count is 0. */
struct rhca_mgm {
	union ib_gid mgid;
	u32 count;
	u32 qpn[RDMA_HCA_MGM_MAX_QPS];
};

/* What the card counts; no counters: @num is 0. */
struct rhca_diag {
	u32 num;
	char (*names)[RDMA_HCA_DIAG_NAME_SIZE];
	struct rdma_stat_desc *descs;	/* priv: the counter's number */
	u32 num_port;			/* of them, those of the port */
	struct rdma_stat_desc *port_descs;
	u32 num_eth;			/* and of the Ethernet function */
	struct rdma_stat_desc *eth_descs;
};

struct rhca_dev {
	struct ib_device ibdev;
	struct rhca_pci *pci;
	struct pci_dev *pdev;
	struct rhca_caps caps;
	struct rhca_cmd cmd;
	unsigned long failed;	/* bit 0 */
	/* What device.c has those below it call: the card has failed, .. */
	void (*on_failure)(struct rhca_dev *dev);
	/* .. and it has written an event. */
	void (*on_event)(struct rhca_dev *dev, const struct rdma_hca_eqe *eqe);
	bool registered;	/* the core takes events */

	struct rhca_icm_table qpc_table;
	struct rhca_icm_table cqc_table;
	struct rhca_icm_table eqc_table;
	struct rhca_icm_table mpt_table;
	struct rhca_icm_table mtt_table;

	struct rhca_bitmap qp_map;
	struct rhca_bitmap cq_map;
	struct rhca_bitmap mpt_map;
	struct rhca_bitmap mtt_map;
	struct rhca_bitmap pd_map;
	struct rhca_bitmap uar_map;
	u32 pdn;		/* PD of the driver's own regions */

	struct xarray qps;	/* by QPN */
	struct xarray cqs;	/* by CQN */

	spinlock_t flush_lock;	/* keeps QPs and CQs while the card fails */

	struct rhca_eq *eq;	/* see eq.c for what each is for */
	u32 num_eqs;

	struct net_device *ndev;	/* RoCE: the interface */
	struct mutex link_lock;	/* protects setting @ndev, orders link changes */
	u32 eth_vector;		/* transmit; receive has the next one */
	u32 port_up;		/* RoCE: as users were last told */

	struct mutex mgm_lock;	/* protects @mgm */
	struct rhca_mgm *mgm;	/* RDMA_HCA_MGM_NUM */
	atomic_t congestion;	/* events */

	struct dma_pool *db_pool;
	struct dentry *debugfs;
	struct rhca_diag diag;
	u16 lid;		/* as QUERY_PORT last said */
	u8 active_mtu;		/* IB MTU code, likewise */
};

struct rhca_ucontext {
	struct ib_ucontext ibctx;
	u32 uar;
	struct rdma_user_mmap_entry *uar_entry;
	struct mutex db_lock;	/* protects @db_pages */
	struct list_head db_pages;
};

struct rhca_pd {
	struct ib_pd ibpd;
	u32 pdn;
};

struct rhca_ah {
	struct ib_ah ibah;
	struct rdma_ah_attr attr;
};

struct rhca_mr {
	struct ib_mr ibmr;
	struct rhca_region region;
	struct ib_umem *umem;	/* NULL: all memory */
	u64 iova;
	int access;
	u32 pdn;
};

struct rhca_cq {
	struct ib_cq ibcq;
	u32 cqn;
	u32 entries;		/* power of two */
	u32 ci;			/* kernel: counts without wrapping */
	spinlock_t lock;	/* kernel: protects the ring and @ci */
	struct rhca_buf buf;	/* kernel */
	struct ib_umem *umem;	/* process */
	struct rhca_region region;
	struct rhca_db db;
	struct rhca_eq *eq;
	struct mutex resize_lock;	/* one resize at a time */
};

/* A send or receive queue. */
struct rhca_wq {
	u32 len;		/* bytes */
	u32 entries;
	u8 shift;		/* log of an entry's bytes */
	struct ib_umem *umem;	/* process */
	struct rhca_region region;

	/* kernel: @entries is a power of two, indices do not wrap */
	spinlock_t lock;	/* one post at a time */
	struct rhca_buf buf;
	u32 head;
	u32 tail;
	u64 *wr_id;
	u8 *opcode;		/* send: enum ib_wc_opcode */
};

struct rhca_qp {
	struct ib_qp ibqp;
	struct mutex lock;	/* one state change at a time */
	enum ib_qp_state state;	/* as far as the driver knows */
	enum ib_sig_type sig_type;
	struct ib_qp_cap cap;
	u32 uar;
	struct rhca_wq sq;
	struct rhca_wq rq;
	struct rhca_db rq_db;
};

static inline struct rhca_dev *to_rhca(struct ib_device *ibdev)
{
	return container_of(ibdev, struct rhca_dev, ibdev);
}

static inline struct rhca_ucontext *to_rhca_ucontext(struct ib_ucontext *ibctx)
{
	return container_of(ibctx, struct rhca_ucontext, ibctx);
}

static inline struct rhca_pd *to_rhca_pd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct rhca_pd, ibpd);
}

static inline struct rhca_ah *to_rhca_ah(struct ib_ah *ibah)
{
	return container_of(ibah, struct rhca_ah, ibah);
}

static inline struct rhca_mr *to_rhca_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct rhca_mr, ibmr);
}

static inline struct rhca_cq *to_rhca_cq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct rhca_cq, ibcq);
}

static inline struct rhca_qp *to_rhca_qp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct rhca_qp, ibqp);
}

/* A RoCE card has an Ethernet function, an InfiniBand card has none. */
static inline bool rhca_is_roce(const struct rhca_dev *dev)
{
	return dev->caps.features & RDMA_HCA_FEATURE_ETH;
}

static inline bool rhca_is_datagram(const struct rhca_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_UD || qp->ibqp.qp_type == IB_QPT_GSI;
}

/* A MAC as the words of the interface have it: bytes 0 to 3, and 4 and 5. */
static inline u32 rhca_mac_high(const u8 *mac)
{
	return (u32)mac[0] << 24 | mac[1] << 16 | mac[2] << 8 | mac[3];
}

static inline u16 rhca_mac_low(const u8 *mac)
{
	return mac[4] << 8 | mac[5];
}

static inline struct rhca_ucontext *rhca_udata_ucontext(struct ib_udata *udata)
{
	return rdma_udata_to_drv_context(udata, struct rhca_ucontext, ibctx);
}

/* Set a field of a word of a mailbox, which was zero. */
static inline void rhca_put(__be32 *word, u32 field, u32 value)
{
	*word |= cpu_to_be32(RDMA_HCA_PREP(field, value));
}

static inline u32 rhca_get(__be32 word, u32 field)
{
	return RDMA_HCA_GET(field, be32_to_cpu(word));
}

static inline void rhca_put64(__be32 *high, __be32 *low, u64 value)
{
	*high = cpu_to_be32(upper_32_bits(value));
	*low = cpu_to_be32(lower_32_bits(value));
}

static inline u64 rhca_get64(__be32 high, __be32 low)
{
	return (u64)be32_to_cpu(high) << 32 | be32_to_cpu(low);
}

/* What create_cq() gets besides its attributes has changed in 6.11. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define RHCA_CQ_ARG struct uverbs_attr_bundle
static inline struct ib_udata *rhca_cq_udata(struct uverbs_attr_bundle *attrs)
{
	return attrs ? &attrs->driver_udata : NULL;
}
#else
#define RHCA_CQ_ARG struct ib_udata
static inline struct ib_udata *rhca_cq_udata(struct ib_udata *udata)
{
	return udata;
}
#endif

/* A doorbell of the kernel's UAR page: one 64-bit write, @low first. */
static inline void rhca_ring(struct rhca_dev *dev, u32 offset, u32 low,
			     u32 high)
{
	BUILD_BUG_ON(BITS_PER_LONG != 64);
	writeq((u64)high << 32 | low, dev->pci->uar + offset);
}

/* Whether the card has stopped answering; commands fail at once then. */
static inline bool rhca_failed(const struct rhca_dev *dev)
{
	return test_bit(0, &dev->failed);
}

/* card.c */
int rhca_reset(struct rhca_pci *pci);
/* Whether work that the card has may still end: else nobody may wait for it. */
bool rhca_is_there(struct rhca_pci *pci);
/* Give the card up: no more commands or DMA, users are told, it restarts. */
void rhca_fail(struct rhca_dev *dev, const char *why);

/* cmd.c */
int rhca_cmd_init(struct rhca_dev *dev);
void rhca_cmd_cleanup(struct rhca_dev *dev);
/*
 * Execute a command; may sleep. Returns 0, the errno for the card's status,
 * or -EIO once the card has failed.
 */
int rhca_cmd(struct rhca_dev *dev, u16 op, u8 op_modifier, u32 in_modifier,
	     u64 in_param, u64 out_param);
/* The asynchronous event queue had the completion of a command. */
void rhca_cmd_event(struct rhca_dev *dev, u16 token, u8 status);
/* Release whoever waits for the command in progress: the card has failed. */
void rhca_cmd_abort(struct rhca_dev *dev);
/* Whether the user wants commands to complete by event. */
bool rhca_cmd_wants_events(const struct rhca_dev *dev);
/* Complete commands by event from now on, or by polling again. */
int rhca_cmd_use_events(struct rhca_dev *dev);
void rhca_cmd_use_polling(struct rhca_dev *dev);
int rhca_mailbox_alloc(struct rhca_dev *dev, struct rhca_mailbox *box);
void rhca_mailbox_free(struct rhca_dev *dev, struct rhca_mailbox *box);

/* A command that has an inbox, an outbox, or neither. */
static inline int rhca_cmd_in(struct rhca_dev *dev, u16 op, u32 in_modifier,
			      const struct rhca_mailbox *box)
{
	return rhca_cmd(dev, op, 0, in_modifier, box->dma, 0);
}

static inline int rhca_cmd_out(struct rhca_dev *dev, u16 op, u32 in_modifier,
			       const struct rhca_mailbox *box)
{
	return rhca_cmd(dev, op, 0, in_modifier, 0, box->dma);
}

static inline int rhca_cmd_none(struct rhca_dev *dev, u16 op, u32 in_modifier)
{
	return rhca_cmd(dev, op, 0, in_modifier, 0, 0);
}

/* caps.c */
/* Ask the card what it is; -ENODEV if this driver cannot drive it. */
int rhca_query_caps(struct rhca_dev *dev);

/* icm.c */
int rhca_icm_init(struct rhca_dev *dev);
void rhca_icm_cleanup(struct rhca_dev *dev);
/* INIT_HCA, with the layout that rhca_icm_init() chose. */
int rhca_init_hca(struct rhca_dev *dev);
/* See that entries @first to @first + @count - 1 have memory. May sleep. */
int rhca_icm_get(struct rhca_dev *dev, struct rhca_icm_table *table, u32 first,
		 u32 count);

/* alloc.c */
int rhca_bitmap_init(struct rhca_bitmap *bitmap, u32 num, u32 reserved);
void rhca_bitmap_cleanup(struct rhca_bitmap *bitmap);
/* @lap may be NULL. -ENOMEM if all are taken. */
int rhca_bitmap_alloc(struct rhca_bitmap *bitmap, u32 *number, u32 *lap);
int rhca_bitmap_alloc_range(struct rhca_bitmap *bitmap, u32 count, u32 *first);
void rhca_bitmap_free(struct rhca_bitmap *bitmap, u32 first, u32 count);
/* How many are taken, those reserved among them. */
u32 rhca_bitmap_used(struct rhca_bitmap *bitmap);
int rhca_buf_alloc(struct rhca_dev *dev, struct rhca_buf *buf, size_t size);
void rhca_buf_free(struct rhca_dev *dev, struct rhca_buf *buf);

/* mr.c */
/*
 * A region for a queue of its own, from offset 0 on. @access: what the card
 * may do, 0 (read) or RDMA_HCA_ACCESS_LOCAL_WRITE.
 */
int rhca_region_create_umem(struct rhca_dev *dev, struct rhca_region *region,
			    u32 pdn, u32 access, struct ib_umem *umem);
int rhca_region_create_buf(struct rhca_dev *dev, struct rhca_region *region,
			   u32 pdn, u32 access, const struct rhca_buf *buf);
void rhca_region_destroy(struct rhca_dev *dev, struct rhca_region *region);
struct ib_mr *rhca_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *rhca_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
			       u64 iova, int access, struct ib_udata *udata);
struct ib_mr *rhca_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				 u64 length, u64 iova, int access,
				 struct ib_pd *ibpd, struct ib_udata *udata);
int rhca_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

/* eq.c */
int rhca_eqs_init(struct rhca_dev *dev);
void rhca_eqs_cleanup(struct rhca_dev *dev);
/* Wait until no handler that runs now uses an object that was looked up. */
void rhca_eq_synchronize(struct rhca_eq *eq);
/* The event queue of a completion vector. */
struct rhca_eq *rhca_eq_of_vector(struct rhca_dev *dev, u32 vector);

/* cq.c */
int rhca_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		   RHCA_CQ_ARG *arg);
int rhca_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int rhca_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata);
int rhca_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc);
int rhca_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
/* Remove what a QP of the kernel has left in a CQ of the kernel. */
void rhca_cq_clean(struct rhca_cq *cq, u32 qpn);
/*
 * The card has failed: have users in the kernel poll, whose requests all end
 * with a flush. What is posted from now on is refused.
 */
void rhca_flush_kernel(struct rhca_dev *dev);
/* Wait until that no longer uses a QP or CQ that it has found. */
void rhca_flush_synchronize(struct rhca_dev *dev);
void rhca_cq_completion(struct rhca_dev *dev, u32 cqn);
void rhca_cq_error(struct rhca_dev *dev, u32 cqn, u32 syndrome);

/* qp.c */
int rhca_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr,
		   struct ib_udata *udata);
int rhca_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_udata *udata);
int rhca_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_qp_init_attr *init_attr);
int rhca_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
/* @type: RDMA_HCA_EVENT_* of a QP. */
void rhca_qp_event(struct rhca_dev *dev, u32 qpn, u8 type);

/* wqe.c */
/* Room for a kernel QP's queues; @cap is rounded up to what there is. */
int rhca_wqe_size_queues(struct rhca_dev *dev, struct rhca_qp *qp,
			 struct ib_qp_cap *cap);
/* Both queues empty, as the card expects them after a reset of the QP. */
void rhca_wqe_reset_queues(struct rhca_qp *qp);
int rhca_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad_wr);
int rhca_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad_wr);

/* ah.c */
int rhca_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *attr,
		   struct ib_udata *udata);
int rhca_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int rhca_destroy_ah(struct ib_ah *ibah, u32 flags);

/* gid.c */
int rhca_add_gid(const struct ib_gid_attr *attr, void **context);
int rhca_del_gid(const struct ib_gid_attr *attr, void **context);

/* mcast.c */
int rhca_mcast_init(struct rhca_dev *dev);
void rhca_mcast_cleanup(struct rhca_dev *dev);
int rhca_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int rhca_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);

/* netdev.c: the interface of a RoCE card. */
/* Offer it or, after a restart of the card, continue it. */
int rhca_eth_start(struct rhca_dev *dev);
/* Nothing of the card is used any more. */
void rhca_eth_stop(struct rhca_dev *dev);
/* The card has failed: nobody should wait for frames to go. */
void rhca_eth_fail(struct rhca_dev *dev);
/* Remove the interface, if there is one. */
void rhca_eth_destroy(struct rhca_pci *pci);
/* Ask the card about its link; tell users of the port what has changed. */
void rhca_eth_update_link(struct rhca_dev *dev);

/* pd.c */
int rhca_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int rhca_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);

/* uctx.c */
int rhca_alloc_ucontext(struct ib_ucontext *ibctx, struct ib_udata *udata);
void rhca_dealloc_ucontext(struct ib_ucontext *ibctx);
void rhca_disassociate_ucontext(struct ib_ucontext *ibctx);
int rhca_mmap(struct ib_ucontext *ibctx, struct vm_area_struct *vma);
void rhca_mmap_free(struct rdma_user_mmap_entry *entry);
/* The record at address @addr of the calling process. */
int rhca_db_map_user(struct rhca_ucontext *ctx, u64 addr, struct rhca_db *db);
/* @ctx: whose record it is, NULL: the kernel's. */
void rhca_db_free(struct rhca_dev *dev, struct rhca_ucontext *ctx,
		  struct rhca_db *db);
int rhca_db_alloc(struct rhca_dev *dev, struct rhca_db *db);

/* debugfs.c */
void rhca_debugfs_init(void);
void rhca_debugfs_exit(void);
/* A folder with what @dev has in use; that there is none is no error. */
void rhca_debugfs_add(struct rhca_dev *dev);
void rhca_debugfs_remove(struct rhca_dev *dev);

/* diag.c */
/* Find out what the card counts, before the device is registered. */
void rhca_diag_init(struct rhca_dev *dev);
void rhca_diag_cleanup(struct rhca_dev *dev);
/* Those of the Ethernet function: name of the @i-th, and all values. */
const char *rhca_diag_eth_name(const struct rhca_dev *dev, u32 i);
int rhca_diag_read_eth(struct rhca_dev *dev, u64 *value);

/* port.c */
/* The card's answer to QUERY_PORT. */
int rhca_read_port(struct rhca_dev *dev, struct rdma_hca_port *port);
/* RoCE: tell users of the port if it has come up or gone down. */
void rhca_tell_port(struct rhca_dev *dev);
/* What the port's packets hold at most. */
enum ib_mtu rhca_active_mtu(const struct rhca_dev *dev);
/* The port's GUID: the node's too. */
int rhca_query_guid(struct rhca_dev *dev, __be64 *guid);
/* QUERY_PORT, and what the driver keeps of it. */
int rhca_query_port(struct ib_device *ibdev, u32 port,
		    struct ib_port_attr *attr);
int rhca_query_gid(struct ib_device *ibdev, u32 port, int index,
		   union ib_gid *gid);
int rhca_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey);
int rhca_get_port_immutable(struct ib_device *ibdev, u32 port,
			    struct ib_port_immutable *immutable);
enum rdma_link_layer rhca_get_link_layer(struct ib_device *ibdev, u32 port);

/* verbs.c */
/* Tell the RDMA core what verbs @dev has. */
void rhca_set_verbs(struct rhca_dev *dev);

/* event.c */
/* What the card has written to an event queue. */
void rhca_event(struct rhca_dev *dev, const struct rdma_hca_eqe *eqe);

/* device.c */
/* The card offers its device, or no more; caller holds pci->lock. */
int rhca_start(struct rhca_pci *pci);
/* Does nothing if the card is stopped. */
void rhca_stop(struct rhca_pci *pci);

#endif /* RHCA_H */
