/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The GID table (IBA 4.1.1; on RoCE, RoCEv2 annex A17.4: IP addresses).
 *
 * It is searched from the front, for each packet: a port has a handful of
 * addresses.
 */
#include <glib.h>
#include <string.h>

#include "port_int.h"

unsigned hca_gid_log_size(const HcaPort *port)
{
    return hca_port_is_roce(port) ? port->config->log_gids
                                  : g_bit_storage(HCA_NODE_GUIDS) - 1;
}

static HcaGid make_gid(uint64_t prefix, uint64_t guid)
{
    HcaGid gid;

    put_be64(gid.raw, prefix);
    put_be64(gid.raw + sizeof(prefix), guid);
    return gid;
}

void hca_gid_update(HcaPort *port)
{
    const HcaNodePort *node = hca_port_node_port(port);

    for (unsigned i = 0; i < HCA_NODE_GUIDS; i++) {
        HcaGidEntry entry = {
            .gid = make_gid(node->info.gid_prefix, node->guids[i]),
            .valid = node->guids[i],
        };

        hca_gid_set(port, i, &entry);
    }
}

bool hca_gid_is_own(const HcaPort *port, const HcaGid *gid)
{
    HcaGid ours;

    if (get_be64(gid->raw) != HCA_DEFAULT_GID_PREFIX) {
        return hca_gid_find(port, gid, 0, NULL);
    }
    ours = make_gid(hca_port_node_port(port)->info.gid_prefix,
                    get_be64(gid->raw + 8));
    return hca_gid_find(port, &ours, 0, NULL);
}

void hca_gid_reset(HcaPort *port)
{
    memset(&port->gids, 0, sizeof(port->gids));
    if (!hca_port_is_roce(port)) {
        hca_gid_update(port);
    }
}

const HcaGidEntry *hca_gid_get(const HcaPort *port, unsigned index)
{
    const HcaGidTable *table = &port->gids;

    return index < table->end && table->entry[index].valid
               ? &table->entry[index]
               : NULL;
}

bool hca_gid_set(HcaPort *port, unsigned index, const HcaGidEntry *entry)
{
    HcaGidTable *table = &port->gids;

    if (index >= 1u << hca_gid_log_size(port)) {
        return false;
    }
    table->entry[index] = *entry;
    table->end = MAX(table->end, index + 1);
    while (table->end && !table->entry[table->end - 1].valid) {
        table->end--;
    }
    return true;
}

const HcaGidEntry *hca_gid_find(const HcaPort *port, const HcaGid *gid,
                                uint16_t vlan, const uint8_t *mac)
{
    const HcaGidTable *table = &port->gids;

    for (unsigned i = 0; i < table->end; i++) {
        const HcaGidEntry *entry = &table->entry[i];

        if (entry->valid && entry->vlan == vlan &&
            hca_gid_equal(&entry->gid, gid) &&
            (!mac || !memcmp(entry->mac, mac, sizeof(entry->mac)))) {
            return entry;
        }
    }
    return NULL;
}

unsigned hca_gid_index(const HcaPort *port, const HcaGidEntry *entry)
{
    return entry - port->gids.entry;
}

bool hca_gid_has_vlan(const HcaPort *port, uint16_t vlan)
{
    for (unsigned i = 0; i < port->gids.end; i++) {
        const HcaGidEntry *entry = &port->gids.entry[i];

        if (entry->valid && entry->vlan == vlan) {
            return true;
        }
    }
    return false;
}

bool hca_gid_has_mac(const HcaPort *port, const uint8_t *mac)
{
    for (unsigned i = 0; i < port->gids.end; i++) {
        const HcaGidEntry *entry = &port->gids.entry[i];

        if (entry->valid && !memcmp(entry->mac, mac, sizeof(entry->mac))) {
            return true;
        }
    }
    return false;
}
