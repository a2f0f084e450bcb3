/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Paths: what a QP or an address vector says of the way to a peer. */
#ifndef HCA_PATH_H
#define HCA_PATH_H

#include "wire/bytes.h"
#include "wire/packet.h"

/* Where to send a packet. From the QP context, or for UD from the WQE. */
typedef struct HcaPath {
    uint16_t dlid;
    uint8_t sl;
    uint8_t path_bits; /* of the SLID, IBA 4.1.3 */
    bool grh;
    bool smp;            /* QP 0's: on VL 15, also to the permissive LID */
    uint16_t pkey_index; /* of a packet of QP 1 */
    uint8_t sgid_index;
    uint8_t tclass;
    uint8_t hop_limit;
    uint32_t flow_label;
    HcaGid dgid;     /* RoCE: the peer's address */
    uint8_t dmac[6]; /* RoCE */
    /* RoCE, not @grh: the source, which the GID table must have. */
    uint8_t smac[6];
    uint32_t sip; /* host byte order */
} HcaPath;

/* No number is wider than headers have room for. */
static inline bool hca_path_ok(const HcaPath *path)
{
    return path->sl <= 15 && path->path_bits <= 127 &&
           path->flow_label <= 0xfffff;
}

/* Where a packet came from, as its receiver is told. */
typedef struct HcaSource {
    uint16_t lid;      /* InfiniBand */
    uint16_t vlan;     /* RoCE; 0: none */
    uint8_t sl;        /* RoCE: priority */
    uint8_t path_bits; /* of the DLID, InfiniBand */
    bool grh;
    bool ipv4; /* RoCE */
} HcaSource;

/* A MAC of a context or WQE: bytes 0 to 3 in one word, 4 and 5 in another. */
static inline void hca_path_mac(uint8_t *mac, uint32_t high, uint16_t low)
{
    put_be32(mac, high);
    put_be16(mac + 4, low);
}

#endif /* HCA_PATH_H */
