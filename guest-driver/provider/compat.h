/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * How versions of rdma-core differ, for a provider that is built in more than
 * one of them. CMakeLists.txt finds out what its headers have; in rdma-core's
 * own tree neither is needed.
 */
#ifndef RHCA_COMPAT_H
#define RHCA_COMPAT_H

/* An argument that the provider has no use for, where a command has it. */
#ifdef RHCA_CREATE_CQ_HAS_PROV_ATTR
#define rhca_prov_attr_arg(arg) arg,
#else
#define rhca_prov_attr_arg(arg)
#endif

#ifdef RHCA_GET_CONTEXT_HAS_FDS
#define rhca_fds_arg(arg) arg,
#else
#define rhca_fds_arg(arg)
#endif

#ifdef RHCA_CREATE_QP_HAS_DRIVER
#define rhca_driver_arg(last, arg) last, arg
#else
#define rhca_driver_arg(last, arg) last
#endif

/* What a port can carry: the kernel says, if it is new enough. */
#ifdef RHCA_HAS_PORT_SPEED
#define RHCA_PORT_SPEED_OP .query_port_speed = ibv_cmd_query_port_speed,
#else
#define RHCA_PORT_SPEED_OP
#endif

/* FLUSH: no version without it says that a QP may have it. */
#ifndef RHCA_HAS_FLUSH
#define IBV_QP_EX_WITH_FLUSH 0
#endif

#endif
