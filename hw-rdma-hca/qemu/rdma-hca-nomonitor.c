/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands for cards of a QEMU that does not have the device. */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-rdma-hca.h"

/* There is no card @id; that there is none at all is no error. */
static void refuse(const char *id, Error **errp)
{
    if (id) {
        error_set(errp, ERROR_CLASS_DEVICE_NOT_FOUND,
                  "'%s' is not an rdma-hca device", id);
    }
}

RdmaHcaCountersList *qmp_query_rdma_hca_counters(const char *id, Error **errp)
{
    refuse(id, errp);
    return NULL;
}

RdmaHcaLinesList *qmp_query_rdma_hca_recorder(const char *id, Error **errp)
{
    refuse(id, errp);
    return NULL;
}

RdmaHcaLinesList *qmp_query_rdma_hca_queues(const char *id, Error **errp)
{
    refuse(id, errp);
    return NULL;
}

RdmaHcaFaultsList *qmp_query_rdma_hca_faults(const char *id, Error **errp)
{
    refuse(id, errp);
    return NULL;
}

void qmp_rdma_hca_fault_add(const char *id, RdmaHcaFaultList *faults,
                            Error **errp)
{
    refuse(id, errp);
}

void qmp_rdma_hca_recorder_save(const char *id, const char *filename,
                                Error **errp)
{
    refuse(id, errp);
}
