/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * addressing: what a path and the addresses of a packet mean, by link layer.
 * One of the two tables is the card's for its life (hca->addressing).
 */
#ifndef HCA_ADDRESSING_H
#define HCA_ADDRESSING_H

#include "cxtmgt/qp.h"
#include "hca.h"
#include "wire/wire.h"

/* Whom a packet that has arrived is for. */
typedef enum HcaArrival {
    HCA_ARRIVAL_OTHER, /* not the engine */
    HCA_ARRIVAL_OWN,   /* the QP that it names */
    HCA_ARRIVAL_GROUP, /* the QPs of a multicast group */
} HcaArrival;

typedef struct HcaAddressing {
    const HcaEncap *encap;
    /* Whether packets can be sent along @path as things are. */
    bool (*can_reach)(const Hca *hca, const HcaPath *path);
    /* Whether @path leads to the card itself; to a multicast group. */
    bool (*is_own)(const Hca *hca, const HcaPath *path);
    bool (*is_multicast)(const HcaPath *path);
    /* Fill in what a packet of @qp has before BTH. False: it cannot be sent. */
    bool (*fill)(const Hca *hca, const HcaQp *qp, const HcaPath *path,
                 HcaPacket *packet);
    /* Whether @packet came along @path, from its other end (IBA 9.6.1). */
    bool (*came_along)(const Hca *hca, const HcaPath *path,
                       const HcaPacket *packet);
    /* @loopback: it came from the card itself. */
    HcaArrival (*arrival)(const Hca *hca, const HcaPacket *packet,
                          bool loopback);
    /* Bits of a receive CQE's path word. */
    uint32_t (*cqe_path)(const HcaPacket *packet);
    /* The 40 bytes before a datagram in its receive buffer. */
    void (*datagram_header)(const HcaPacket *packet, uint8_t *header);
} HcaAddressing;

extern const HcaAddressing hca_addressing_ib;
extern const HcaAddressing hca_addressing_roce;

#endif /* HCA_ADDRESSING_H */
