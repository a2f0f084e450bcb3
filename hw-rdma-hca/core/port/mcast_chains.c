/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Multicast groups in hash chains; see mcast_chains.h. */
#include <glib.h>

#include "../verbs.h"
#include "../wire/bytes.h"
#include "port_int.h"

void hca_mcast_chains_end(HcaPort *port)
{
    HcaMcastChains *chains = &port->chains;

    for (unsigned i = 0; i < chains->number; i++) {
        g_free(chains->entry[i]);
    }
    g_clear_pointer(&chains->entry, g_free);
    chains->number = chains->buckets = 0;
}

bool hca_mcast_chains_begin(HcaPort *port, unsigned number, unsigned buckets)
{
    if (!number || number > HCA_MCAST_MAX_ENTRIES || !buckets ||
        buckets > number) {
        return false;
    }
    hca_mcast_chains_end(port);
    port->chains.number = number;
    port->chains.buckets = buckets;
    port->chains.entry = g_new0(HcaMcastEntry *, number);
    return true;
}

uint8_t hca_mcast_chain_set(HcaPort *port, unsigned index,
                            const HcaMcastEntry *entry)
{
    HcaMcastChains *chains = &port->chains;

    if (index >= chains->number) {
        return HCA_STAT_BAD_INDEX;
    }
    if (entry->next >= chains->number ||
        entry->group.count > RDMA_HCA_MGM_MAX_QPS) {
        return HCA_STAT_BAD_PARAM;
    }
    if (!chains->entry[index]) {
        chains->entry[index] = g_new(HcaMcastEntry, 1);
    }
    *chains->entry[index] = *entry;
    return HCA_STAT_OK;
}

uint8_t hca_mcast_chain_get(const HcaPort *port, unsigned index,
                            HcaMcastEntry *entry)
{
    if (index >= port->chains.number) {
        return HCA_STAT_BAD_INDEX;
    }
    *entry = port->chains.entry[index] ? *port->chains.entry[index]
                                       : (HcaMcastEntry) { .next = 0 };
    return HCA_STAT_OK;
}

unsigned hca_mcast_hash(const HcaPort *port, const HcaGid *mgid)
{
    uint64_t hash = get_be64(mgid->raw) ^ get_be64(mgid->raw + 8);

    hash ^= hash >> 32;
    hash ^= hash >> 16;
    return port->chains.buckets ? (uint16_t)hash % port->chains.buckets : 0;
}

/* A chain may be a circle: it has no more entries than there are. */
const HcaMcastGroup *hca_mcast_chain_find(const HcaPort *port,
                                          const HcaGid *mgid)
{
    const HcaMcastChains *chains = &port->chains;
    const HcaMcastEntry *entry = chains->entry[hca_mcast_hash(port, mgid)];

    for (unsigned left = chains->number; entry && left; left--) {
        if (hca_gid_equal(&entry->group.mgid, mgid)) {
            return entry->group.count ? &entry->group : NULL;
        }
        entry = entry->next ? chains->entry[entry->next] : NULL;
    }
    return NULL;
}
