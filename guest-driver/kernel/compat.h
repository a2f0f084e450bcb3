/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What differs between the kernels that the module is built for, as Kbuild
 * finds it in their headers. In a kernel's own tree nothing of it is needed.
 */
#ifndef RHCA_COMPAT_H
#define RHCA_COMPAT_H

#include <net/devlink.h>
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

/* The errno of @put; a message of devlink keeps the first itself (since 6.7). */
#ifdef RHCA_FMSG_KEEPS_ERRORS
#define rhca_fmsg(put) ({ put; 0; })
#else
#define rhca_fmsg(put) (put)
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
