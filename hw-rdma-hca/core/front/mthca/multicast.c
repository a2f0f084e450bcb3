/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Multicast groups of an InfiniHost III Lx: entries of chains, and the hash. */
#include "../../port/mcast_chains.h"
#include "mthca.h"

G_STATIC_ASSERT(sizeof(struct mthca_mgm) == RDMA_HCA_MGM_SIZE);
G_STATIC_ASSERT(G_N_ELEMENTS(((struct mthca_mgm *)0)->qp) ==
                RDMA_HCA_MGM_MAX_QPS);

/* The first QP that is not valid ends the list. */
static void get_entry(const struct mthca_mgm *mgm, HcaMcastEntry *entry)
{
    HcaMcastGroup *group = &entry->group;

    *entry = (HcaMcastEntry) {
        .next = RDMA_HCA_GET(MTHCA_MGM_NEXT, GUINT32_FROM_BE(mgm->next)),
    };
    memcpy(group->mgid.raw, mgm->mgid, sizeof(mgm->mgid));
    while (group->count < RDMA_HCA_MGM_MAX_QPS) {
        uint32_t qp = GUINT32_FROM_BE(mgm->qp[group->count]);

        if (!(qp & MTHCA_MGM_VALID)) {
            break;
        }
        group->qpn[group->count++] = RDMA_HCA_GET(MTHCA_MGM_QPN, qp);
    }
}

static void put_entry(const HcaMcastEntry *entry, struct mthca_mgm *mgm)
{
    const HcaMcastGroup *group = &entry->group;

    mgm->next = GUINT32_TO_BE(RDMA_HCA_PREP(MTHCA_MGM_NEXT, entry->next));
    memcpy(mgm->mgid, group->mgid.raw, sizeof(mgm->mgid));
    for (unsigned i = 0; i < group->count; i++) {
        mgm->qp[i] = GUINT32_TO_BE(MTHCA_MGM_VALID | group->qpn[i]);
    }
}

uint8_t hca_mthca_write_mgm(HcaCeu *ceu, HcaCommand *cmd)
{
    HcaMcastEntry entry;

    get_entry((const void *)cmd->inbox, &entry);
    return hca_mcast_chain_set(ceu->hca->port, cmd->in_modifier, &entry);
}

uint8_t hca_mthca_read_mgm(HcaCeu *ceu, HcaCommand *cmd)
{
    HcaMcastEntry entry;
    uint8_t status = hca_mcast_chain_get(ceu->hca->port, cmd->in_modifier,
                                         &entry);

    if (!status) {
        put_entry(&entry, (void *)cmd->outbox);
    }
    return status;
}

uint8_t hca_mthca_mgid_hash(HcaCeu *ceu, HcaCommand *cmd)
{
    HcaGid mgid;

    memcpy(mgid.raw, cmd->inbox, sizeof(mgid.raw));
    cmd->out_param = hca_mcast_hash(ceu->hca->port, &mgid);
    return HCA_STAT_OK;
}
