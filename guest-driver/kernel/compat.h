/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What differs between the kernels that the module is built for, as Kbuild
 * finds it in their headers. In a kernel's own tree nothing of it is needed.
 */
#ifndef RHCA_COMPAT_H
#define RHCA_COMPAT_H

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
	return &attrs->driver_udata;
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

#endif /* RHCA_COMPAT_H */
