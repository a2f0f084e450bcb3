/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mcast_table: the multicast groups of WRITE_MGM and the QPs attached to them.
 */
#ifndef HCA_MCAST_TABLE_H
#define HCA_MCAST_TABLE_H

#include "../../abi/rdma_hca_sizes.h"
#include "../wire/packet.h"

typedef struct HcaMcastGroup {
    HcaGid mgid;
    unsigned count; /* 0: free */
    uint32_t qpn[RDMA_HCA_MGM_MAX_QPS];
} HcaMcastGroup;

typedef struct HcaPort HcaPort;

/* WRITE_MGM; returns a status. */
uint8_t hca_mcast_set(HcaPort *port, unsigned index,
                      const HcaMcastGroup *group);
/* READ_MGM: NULL if there is no such index. */
const HcaMcastGroup *hca_mcast_get(const HcaPort *port, unsigned index);
/* The group with this MGID, or NULL. */
const HcaMcastGroup *hca_mcast_find(const HcaPort *port, const HcaGid *mgid);

#endif /* HCA_MCAST_TABLE_H */
