/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of the port. */
#ifndef HCA_PORT_INT_H
#define HCA_PORT_INT_H

#include "../../abi/rdma_hca_sizes.h"
#include "../mad/vl_arbiter.h"
#include "addressing.h"
#include "mcast_chains.h"
#include "port.h"

typedef struct HcaGidTable {
    unsigned end; /* behind the last valid entry */
    HcaGidEntry entry[1u << HCA_MAX_LOG_GIDS];
} HcaGidTable;

typedef struct HcaMcastTable {
    unsigned end; /* behind the last group in use */
    HcaMcastGroup group[RDMA_HCA_MGM_NUM];
} HcaMcastTable;

typedef struct HcaMcastChains {
    unsigned number; /* 0: groups are in the table */
    unsigned buckets;
    HcaMcastEntry **entry; /* NULL: never written */
} HcaMcastChains;

/* Rules of one kind, in the order in which they are tried. */
typedef struct HcaFlowList {
    unsigned count;
    uint16_t *index;
} HcaFlowList;

/* 2^log_flows rules, and whether there is one. */
typedef struct HcaFlowTable {
    HcaFlowRule *rule;
    bool *used;
    HcaFlowList list[HCA_FLOW_NKINDS];
} HcaFlowTable;

struct HcaPort {
    const HcaConfig *config;
    HcaLink *link;
    HcaHost host;
    const HcaAddressing *addressing; /* of the link layer */

    bool enabled;       /* INIT_IB done */
    bool managed;       /* by a subnet manager, and not by itself */
    HcaNode *node;      /* LID, P_Keys, state, and so on */
    HcaPortState told;  /* ACTIVE or DOWN, as last asked for, */
    bool fell;          /* and whether it has not been ACTIVE since */
    unsigned downs;     /* hca_link_downs() at the last look */
    bool limited;       /* by a fault: see limit_link() */
    uint32_t changes;   /* HCA_CHANGED_*, not asked for yet */
    int64_t disable_at; /* a manager has disabled the port; 0: no */
    uint32_t mad_psn;   /* of packets of the card's agents */
    HcaVlArbiter arbiter;
    uint64_t lane_sent; /* bytes, since hca_port_next_lane() */
    HcaGidTable gids;
    HcaMcastTable mcast;
    HcaMcastChains chains;
    HcaFlowTable flows;
    HcaPortCounters counters;
};

/* As after a reset: the default GID on InfiniBand, nothing on RoCE. */
void hca_gid_reset(HcaPort *port);
void hca_mcast_reset(HcaPort *port);
/* As hca_mcast_find(), if there are chains. */
const HcaMcastGroup *hca_mcast_chain_find(const HcaPort *port,
                                          const HcaGid *mgid);

void hca_flow_init(HcaPort *port);
void hca_flow_cleanup(HcaPort *port);
/* No rules. */
void hca_flow_reset(HcaPort *port);

#endif /* HCA_PORT_INT_H */
