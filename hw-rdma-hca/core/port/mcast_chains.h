/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mcast_chains: multicast groups as a hash table that software keeps. It asks for
 * the hash of an MGID, and links entries behind that bucket. What no chain leads
 * to may have any content.
 */
#ifndef HCA_MCAST_CHAINS_H
#define HCA_MCAST_CHAINS_H

#include "mcast_table.h"

#define HCA_MCAST_MAX_ENTRIES 8192

typedef struct HcaMcastEntry {
    HcaMcastGroup
        group;     /* without QPs it is none, but has its place in the chain */
    uint32_t next; /* 0: none */
} HcaMcastEntry;

/*
 * From here on groups are in chains: @number entries without content, of which
 * the first @buckets are hashed to. False: there cannot be such a table.
 */
bool hca_mcast_chains_begin(HcaPort *port, unsigned number, unsigned buckets);
/* There are none. */
void hca_mcast_chains_end(HcaPort *port);

/* Each returns a status; of an entry that was never written all is 0. */
uint8_t hca_mcast_chain_set(HcaPort *port, unsigned index,
                            const HcaMcastEntry *entry);
uint8_t hca_mcast_chain_get(const HcaPort *port, unsigned index,
                            HcaMcastEntry *entry);
/* The bucket of @mgid, if there are chains, else 0. */
unsigned hca_mcast_hash(const HcaPort *port, const HcaGid *mgid);

#endif /* HCA_MCAST_CHAINS_H */
