/* SPDX-License-Identifier: GPL-2.0-or-later */
/* query-rdma-hca-counters of a QEMU that does not have the device. */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-rdma-hca.h"

RdmaHcaCountersList *qmp_query_rdma_hca_counters(const char *id, Error **errp)
{
    if (id) {
        error_set(errp, ERROR_CLASS_DEVICE_NOT_FOUND,
                  "'%s' is not an rdma-hca device", id);
    }
    return NULL;
}
