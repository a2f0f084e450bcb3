/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * addressing: what a path and the addresses of a packet mean, by link layer.
 * One of the two tables is the card's for its life (port->addressing).
 */
#ifndef HCA_ADDRESSING_H
#define HCA_ADDRESSING_H

#include "port.h"

typedef struct HcaAddressing {
    const HcaEncap *encap;
    /* Whether packets can be sent along @path as things are. */
    bool (*can_reach)(const HcaPort *port, const HcaPath *path);
    /* Whether @path leads to the card itself; to a multicast group. */
    bool (*is_own)(const HcaPort *port, const HcaPath *path);
    bool (*is_multicast)(const HcaPath *path);
    /* Fill in what a packet of @qpn has before BTH. False: it cannot be sent. */
    bool (*fill)(const HcaPort *port, uint32_t qpn, const HcaPath *path,
                 HcaPacket *packet);
    /* Whether @packet came along @path, from its other end (IBA 9.6.1). */
    bool (*came_along)(const HcaPort *port, const HcaPath *path,
                       const HcaPacket *packet);
    /* @loopback: it came from the card itself. */
    HcaArrival (*arrival)(const HcaPort *port, const HcaPacket *packet,
                          bool loopback);
    HcaSource (*source)(const HcaPort *port, const HcaPacket *packet);
    /* The 40 bytes before a datagram in its receive buffer. */
    void (*datagram_header)(const HcaPacket *packet, uint8_t *header);
} HcaAddressing;

extern const HcaAddressing hca_addressing_ib;
extern const HcaAddressing hca_addressing_roce;

#endif /* HCA_ADDRESSING_H */
