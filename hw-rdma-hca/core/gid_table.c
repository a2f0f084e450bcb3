/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The GID table (IBA 4.1.1; on RoCE, RoCEv2 annex A17.4: IP addresses).
 *
 * It is searched from the front, for each packet: a port has a handful of
 * addresses.
 */
#include "card.h"

/* Subnet prefix of a subnet without a manager (IBA 4.1.1): link-local. */
static const uint8_t default_prefix[8] = { 0xfe, 0x80 };

static unsigned size_of_table(const Hca *hca)
{
    return hca_config_is_roce(&hca->config) ? 1u << hca->config.log_gids : 1;
}

/* EUI-64 of a MAC, its universal/local bit inverted (RFC 4291, A). */
static void eui64_of_mac(uint8_t *eui, const uint8_t *mac)
{
    memcpy(eui, mac, 3);
    eui[0] ^= 2;
    eui[3] = 0xff;
    eui[4] = 0xfe;
    memcpy(eui + 5, mac + 3, 3);
}

HcaGid hca_gid_default(const Hca *hca)
{
    uint64_t guid = GUINT64_TO_BE(hca->config.guid);
    HcaGid gid;

    memcpy(gid.raw, default_prefix, sizeof(default_prefix));
    if (hca_config_is_roce(&hca->config)) {
        eui64_of_mac(gid.raw + sizeof(default_prefix), hca->config.mac);
    } else {
        memcpy(gid.raw + sizeof(default_prefix), &guid, sizeof(guid));
    }
    return gid;
}

void hca_gid_reset(Hca *hca)
{
    memset(&hca->gids, 0, sizeof(hca->gids));
    if (!hca_config_is_roce(&hca->config)) {
        HcaGidEntry entry = { .gid = hca_gid_default(hca), .valid = true };

        hca_gid_set(hca, 0, &entry);
    }
}

const HcaGidEntry *hca_gid_get(const Hca *hca, unsigned index)
{
    const HcaGidTable *table = &hca->gids;

    return index < table->end && table->entry[index].valid
               ? &table->entry[index]
               : NULL;
}

bool hca_gid_set(Hca *hca, unsigned index, const HcaGidEntry *entry)
{
    HcaGidTable *table = &hca->gids;

    if (index >= size_of_table(hca)) {
        return false;
    }
    table->entry[index] = *entry;
    table->end = MAX(table->end, index + 1);
    while (table->end && !table->entry[table->end - 1].valid) {
        table->end--;
    }
    return true;
}

const HcaGidEntry *hca_gid_find(const Hca *hca, const HcaGid *gid,
                                uint16_t vlan, const uint8_t *mac)
{
    const HcaGidTable *table = &hca->gids;

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

bool hca_gid_has_vlan(const Hca *hca, uint16_t vlan)
{
    for (unsigned i = 0; i < hca->gids.end; i++) {
        const HcaGidEntry *entry = &hca->gids.entry[i];

        if (entry->valid && entry->vlan == vlan) {
            return true;
        }
    }
    return false;
}

bool hca_gid_has_mac(const Hca *hca, const uint8_t *mac)
{
    for (unsigned i = 0; i < hca->gids.end; i++) {
        const HcaGidEntry *entry = &hca->gids.entry[i];

        if (entry->valid && !memcmp(entry->mac, mac, sizeof(entry->mac))) {
            return true;
        }
    }
    return false;
}

bool hca_gid_is_ipv4(const HcaGid *gid)
{
    return memcmp(gid->raw, hca_ipv4_mapped, sizeof(hca_ipv4_mapped)) == 0;
}

/* IPv6: ff00::/8, which is IBA's as well; IPv4: 224.0.0.0/4. */
bool hca_gid_is_multicast(const HcaGid *gid)
{
    return gid->raw[0] == 0xff ||
           (hca_gid_is_ipv4(gid) && gid->raw[12] >> 4 == 0xe);
}

bool hca_gid_is_zero(const HcaGid *gid)
{
    static const HcaGid zero;

    return hca_gid_equal(gid, &zero);
}

HcaGid hca_gid_of_ipv4(uint32_t address)
{
    HcaGid gid;

    memcpy(gid.raw, hca_ipv4_mapped, sizeof(hca_ipv4_mapped));
    address = GUINT32_TO_BE(address);
    memcpy(gid.raw + sizeof(hca_ipv4_mapped), &address, sizeof(address));
    return gid;
}
