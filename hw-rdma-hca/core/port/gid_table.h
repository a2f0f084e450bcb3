/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gid_table: the port's GIDs. Those of an InfiniBand port are made of its prefix
 * and its GUIDs (node.h); a RoCE port has those that SET_GID writes, each with the MAC and
 * VLAN of the interface that the address belongs to.
 */
#ifndef HCA_GID_TABLE_H
#define HCA_GID_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "../wire/packet.h"

typedef struct HcaGidEntry {
    HcaGid gid;
    bool valid;
    bool has_vlan;
    uint16_t vlan; /* 0 if not @has_vlan */
    uint8_t mac[6];
} HcaGidEntry;

typedef struct HcaPort HcaPort;

/* Of an InfiniBand port: prefix or GUIDs have changed. */
void hca_gid_update(HcaPort *port);
/* Whether @gid is one of them, also by the default prefix (IBA 4.1.1). */
bool hca_gid_is_own(const HcaPort *port, const HcaGid *gid);

/* Places in the table, a logarithm to base 2. */
unsigned hca_gid_log_size(const HcaPort *port);

/* Entry @index, or NULL if there is none or it is empty. */
const HcaGidEntry *hca_gid_get(const HcaPort *port, unsigned index);
/* False: no such index. */
bool hca_gid_set(HcaPort *port, unsigned index, const HcaGidEntry *entry);
/*
 * The entry with this address in this VLAN (0: none) and, unless @mac is
 * NULL, of the interface with this MAC; NULL: the address is not the card's.
 */
const HcaGidEntry *hca_gid_find(const HcaPort *port, const HcaGid *gid,
                                uint16_t vlan, const uint8_t *mac);
/* The place of an entry that hca_gid_find() found. */
unsigned hca_gid_index(const HcaPort *port, const HcaGidEntry *entry);
/* Whether an interface is in @vlan (0: none); whether one has this MAC. */
bool hca_gid_has_vlan(const HcaPort *port, uint16_t vlan);
bool hca_gid_has_mac(const HcaPort *port, const uint8_t *mac);

#endif /* HCA_GID_TABLE_H */
