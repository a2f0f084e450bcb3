/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a GID is. On Ethernet it is an IP address; IPv4 ones are ::ffff:a.b.c.d. */
#ifndef HCA_WIRE_GID_H
#define HCA_WIRE_GID_H

#include <string.h>

#include "bytes.h"
#include "packet.h"

static inline bool hca_gid_equal(const HcaGid *a, const HcaGid *b)
{
    return memcmp(a->raw, b->raw, sizeof(a->raw)) == 0;
}

static inline bool hca_gid_is_ipv4(const HcaGid *gid)
{
    return memcmp(gid->raw, hca_ipv4_mapped, sizeof(hca_ipv4_mapped)) == 0;
}

/* IPv6: ff00::/8, which is IBA's as well; IPv4: 224.0.0.0/4. */
static inline bool hca_gid_is_multicast(const HcaGid *gid)
{
    return gid->raw[0] == 0xff ||
           (hca_gid_is_ipv4(gid) && gid->raw[12] >> 4 == 0xe);
}

static inline bool hca_gid_is_zero(const HcaGid *gid)
{
    static const HcaGid zero;

    return hca_gid_equal(gid, &zero);
}

/* @address in host byte order. */
static inline HcaGid hca_gid_of_ipv4(uint32_t address)
{
    HcaGid gid;

    memcpy(gid.raw, hca_ipv4_mapped, sizeof(hca_ipv4_mapped));
    put_be32(gid.raw + sizeof(hca_ipv4_mapped), address);
    return gid;
}

#endif /* HCA_WIRE_GID_H */
