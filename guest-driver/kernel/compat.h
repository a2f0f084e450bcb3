/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What differs between the kernels that the module is built for, as Kbuild
 * finds it in their headers. In a kernel's own tree nothing of it is needed.
 */
#ifndef RHCA_COMPAT_H
#define RHCA_COMPAT_H

#include <linux/ethtool.h>
#include <net/devlink.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_counter.h>
#include <rdma/uverbs_ioctl.h>

/* What create_cq() gets besides its attributes (changed in 6.11). */
#ifdef RHCA_CREATE_CQ_HAS_BUNDLE
#define rhca_cq_arg uverbs_attr_bundle
static inline struct ib_udata *rhca_cq_udata(struct uverbs_attr_bundle *attrs)
{
	return attrs ? &attrs->driver_udata : NULL;
}
#else
#define rhca_cq_arg ib_udata
static inline struct ib_udata *rhca_cq_udata(struct ib_udata *udata)
{
	return udata;
}
#endif

/* And reg_user_mr_dmabuf() (changed in 6.12). */
#ifdef RHCA_REG_DMABUF_HAS_BUNDLE
#define rhca_dmabuf_arg uverbs_attr_bundle
static inline struct ib_udata *
rhca_dmabuf_udata(struct uverbs_attr_bundle *attrs)
{
	return attrs ? &attrs->driver_udata : NULL;
}
#else
#define rhca_dmabuf_arg ib_udata
static inline struct ib_udata *rhca_dmabuf_udata(struct ib_udata *udata)
{
	return udata;
}
#endif

/*
 * Hints of how memory is to be reached, which reg_user_mr() and
 * reg_user_mr_dmabuf() get (since 6.18): the card takes none.
 */
#ifdef RHCA_REG_MR_HAS_DMAH
#define rhca_dmah_arg struct ib_dmah *dmah,
#define rhca_check_dmah() (dmah ? -EOPNOTSUPP : 0)
#else
#define rhca_dmah_arg
#define rhca_check_dmah() 0
#endif

/* A QP whose counter changes comes with its port (since 6.19). */
#ifdef RHCA_COUNTER_HAS_PORT
#define rhca_with_port(qp) qp, u32 port
#else
#define rhca_with_port(qp) qp
#endif

/* A counter of QPs is an object of the driver's (since 6.16). */
#ifdef RHCA_HAS_COUNTER_INIT
struct rhca_counter {
	struct rdma_counter counter;
};

static inline void rhca_counter_init(struct rdma_counter *counter)
{
}

#define RHCA_COUNTER_OBJECT                   \
	.counter_init = rhca_counter_init,    \
	INIT_RDMA_OBJ_SIZE(rdma_counter, rhca_counter, counter),
#else
#define RHCA_COUNTER_OBJECT
#endif

/* Processes' CQs alone can be resized (since 7.2). */
#ifdef RHCA_HAS_RESIZE_USER_CQ
#define rhca_cqe_arg unsigned int
#else
#define rhca_cqe_arg int
#define resize_user_cq resize_cq
#endif

/* Memory of a process can come in other ways than by its address (since 7.2). */
#ifndef RHCA_HAS_UMEM_GET_VA
#define ib_umem_get_va ib_umem_get
#endif

/* Where a process has its CQEs it may tell the core (since 7.2). */
#ifdef RHCA_HAS_CREATE_USER_CQ
#define rhca_umem_get_cq(ibdev, arg, addr, size) \
	ib_umem_get_cq_buf_or_va(ibdev, arg, addr, size, IB_ACCESS_LOCAL_WRITE)
#define RHCA_CREATE_USER_CQ .create_user_cq = rhca_create_cq,
#else
#define rhca_umem_get_cq(ibdev, arg, addr, size) \
	ib_umem_get_va(ibdev, addr, size, IB_ACCESS_LOCAL_WRITE)
#define RHCA_CREATE_USER_CQ
#endif

/* What a port can carry is asked for by itself (7.2 has it). */
#ifdef RHCA_HAS_QUERY_PORT_SPEED
#define RHCA_QUERY_PORT_SPEED .query_port_speed = rhca_query_port_speed,
#else
#define RHCA_QUERY_PORT_SPEED
#endif

/*
 * The core tells of a port whose interface comes and goes, if the driver has
 * no function for it (7.2 has that).
 */
#ifdef RHCA_HAS_REPORT_PORT_EVENT
#define RHCA_REPORT_PORT_EVENT .report_port_event = rhca_report_port_event,
#else
#define RHCA_REPORT_PORT_EVENT
#endif

/* Others' memory that moves (renamed in 7.1). */
#ifndef RHCA_HAS_INVALIDATE_MAPPINGS
#define invalidate_mappings move_notify
#endif

/* FLUSH and atomic write (since 6.2): rights, and what a device can do. */
#ifdef RHCA_HAS_FLUSH
#define RHCA_ACCESS_FLUSH (IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_FLUSH_PERSISTENT)
#define RHCA_DEVICE_FLUSH (IB_DEVICE_FLUSH_GLOBAL | IB_DEVICE_FLUSH_PERSISTENT)
#define RHCA_DEVICE_ATOMIC_WRITE IB_DEVICE_ATOMIC_WRITE
#else
#define RHCA_ACCESS_FLUSH 0
#define RHCA_DEVICE_FLUSH 0
#define RHCA_DEVICE_ATOMIC_WRITE 0
#endif

/*
 * What ethtool asks of how flows are hashed, by calls of its own (since 6.17);
 * it asks for the number of rings by another (since 6.19).
 */
#ifdef RHCA_HAS_RXFH_FIELDS
#define rhca_hash_fields ethtool_rxfh_fields
#else
#define rhca_hash_fields ethtool_rxnfc
#endif

/* The errno of @put; a message of devlink keeps the first itself (since 6.7). */
#ifdef RHCA_FMSG_KEEPS_ERRORS
#define rhca_fmsg(put) ({ put; 0; })
#else
#define rhca_fmsg(put) (put)
#endif

/* How long it waits between two recoveries is the operations' (since 6.18). */
#ifdef RHCA_REPORTER_HAS_PERIODS
#define rhca_reporter_create devlink_health_reporter_create
#else
#define rhca_reporter_create(devlink, ops, priv) \
	devlink_health_reporter_create(devlink, ops, 0, priv)
#endif

/* Its core finds out what the driver is called (since 6.2), */
static inline int rhca_info_driver_put(struct devlink_info_req *req,
				       const char *name)
{
#ifdef RHCA_INFO_NEEDS_DRIVER
	return devlink_info_driver_name_put(req, name);
#else
	return 0;
#endif
}

/* and that it can reload. */
static inline void rhca_devlink_allow_reload(struct devlink *devlink)
{
#ifdef RHCA_DEVLINK_HAS_FEATURES
	devlink_set_features(devlink, DEVLINK_F_RELOAD);
#endif
}

/* Pages for what is received: pieces of them are asked for (until 6.6). */
#ifdef RHCA_HAS_PAGE_POOL_FOLDER
#include <net/page_pool/helpers.h>
#define RHCA_PP_FLAG_FRAG 0
#else
#include <net/page_pool.h>
#define RHCA_PP_FLAG_FRAG PP_FLAG_PAGE_FRAG
#endif

#endif /* RHCA_COMPAT_H */
