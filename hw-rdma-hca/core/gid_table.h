/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gid_table: the port's GIDs. An InfiniBand port has one, made of the prefix
 * and its GUID; a RoCE port those that SET_GID writes, each with the MAC and
 * VLAN of the interface that the address belongs to.
 */
#ifndef HCA_GID_TABLE_H
#define HCA_GID_TABLE_H

#include <string.h>

#include "hca.h"
#include "wire/packet.h"

typedef struct HcaGidEntry {
    HcaGid gid;
    bool valid;
    bool has_vlan;
    uint16_t vlan; /* 0 if not @has_vlan */
    uint8_t mac[6];
} HcaGidEntry;

typedef struct HcaGidTable {
    unsigned end; /* behind the last valid entry */
    HcaGidEntry entry[1u << HCA_MAX_LOG_GIDS];
} HcaGidTable;

/* As after a reset: the default GID on InfiniBand, nothing on RoCE. */
void hca_gid_reset(Hca *hca);
/* The GID of prefix and GUID (RoCE: made of the MAC). */
HcaGid hca_gid_default(const Hca *hca);

/* Entry @index, or NULL if there is none or it is empty. */
const HcaGidEntry *hca_gid_get(const Hca *hca, unsigned index);
/* False: no such index. */
bool hca_gid_set(Hca *hca, unsigned index, const HcaGidEntry *entry);
/*
 * The entry with this address in this VLAN (0: none) and, unless @mac is
 * NULL, of the interface with this MAC; NULL: the address is not the card's.
 */
const HcaGidEntry *hca_gid_find(const Hca *hca, const HcaGid *gid,
                                uint16_t vlan, const uint8_t *mac);
/* Whether an interface is in @vlan (0: none); whether one has this MAC. */
bool hca_gid_has_vlan(const Hca *hca, uint16_t vlan);
bool hca_gid_has_mac(const Hca *hca, const uint8_t *mac);

/* What an address is: IPv4 ones are ::ffff:a.b.c.d. */
bool hca_gid_is_ipv4(const HcaGid *gid);
bool hca_gid_is_multicast(const HcaGid *gid);
bool hca_gid_is_zero(const HcaGid *gid);
HcaGid hca_gid_of_ipv4(uint32_t address);

static inline bool hca_gid_equal(const HcaGid *a, const HcaGid *b)
{
    return memcmp(a->raw, b->raw, sizeof(a->raw)) == 0;
}

#endif /* HCA_GID_TABLE_H */
