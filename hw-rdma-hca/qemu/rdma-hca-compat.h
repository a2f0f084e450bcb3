/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How versions of QEMU differ, for a device that is built in more than one of
 * them. Which headers there are says what else there is. In QEMU's own tree
 * what is newest of each goes where it is used, and this file goes.
 */
#ifndef RDMA_HCA_COMPAT_H
#define RDMA_HCA_COMPAT_H

/*
 * Since 10.1 memory regions are in system/, and what classes are made with is
 * constant; 10.2 lets a handler of the machine's state fail.
 */
#if __has_include("system/memory.h")
#include "system/address-spaces.h"
#include "system/memory.h"
#define RDMA_HCA_CLASS_DATA const void
#define rdma_hca_add_vm_state_handler(dev, handler, opaque)                    \
    qdev_add_vm_change_state_handler(dev, handler, NULL, opaque)
#else
#include "exec/address-spaces.h"
#include "exec/memory.h"
#define RDMA_HCA_CLASS_DATA void
#define rdma_hca_add_vm_state_handler(dev, handler, opaque)                    \
    qdev_add_vm_change_state_handler(dev, handler, opaque)
#endif

/* Since 11.0 devices are in hw/core/, ... */
#if __has_include("hw/core/qdev.h")
#include "hw/core/qdev-properties.h"
#include "hw/core/qdev.h"
#else
#include "hw/qdev-core.h"
#include "hw/qdev-properties.h"
#endif

/* ... and since 11.1 event loops are not of blocks. */
#if __has_include("qemu/aio.h")
#include "qemu/aio.h"
#else
#include "block/aio.h"
#endif

#endif
