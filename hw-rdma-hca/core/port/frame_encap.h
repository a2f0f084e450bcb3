/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * FrameEncap (context document 3.2): from packet metadata and payload to a
 * packet on the cable, for the two packet generators; the transmit end of the
 * engine (engine document 6).
 */
#ifndef HCA_FRAME_ENCAP_H
#define HCA_FRAME_ENCAP_H

#include "../qp.h"
#include "port.h"

/* Whether hca_frame_send() may be called for a packet along this path. */
bool hca_frame_can_send(HcaPort *port, const HcaPath *path);

/*
 * A mark behind all that has been sent along @path so far, and whether it has
 * left the card since. 0 has.
 */
uint64_t hca_frame_mark(const HcaPort *port, const HcaPath *path);
bool hca_frame_has_left(const HcaPort *port, uint64_t mark);

/*
 * Send @packet of @qp along @path: fills in the link and network headers, the
 * P_Key, length and CRCs. The caller fills BTH and what follows. @payload lies
 * in at most HCA_MAX_PIECES pieces and is copied. A packet to a multicast group
 * of the card's goes to both the cable and, by loopback, the card (IBA 10.5.2).
 * One that has no source address is lost and counted.
 */
#define HCA_MAX_PIECES 64 /* entries of a WQE, each over two pages */
void hca_frame_send(HcaPort *port, HcaQp *qp, const HcaPath *path,
                    HcaPacket *packet, const struct iovec *payload,
                    unsigned iovcnt);

/*
 * A management datagram of the card's own agents, to QP 0 (@path's smp) or
 * another. False: it is lost, for want of room or of a way.
 */
typedef struct HcaMadAddress {
    HcaPath path;
    uint16_t pkey; /* not of an SMP */
    uint32_t qpn;  /* the same */
    uint32_t qkey;
} HcaMadAddress;

bool hca_frame_send_mad(HcaPort *port, const HcaMadAddress *to,
                        const uint8_t *mad);

/*
 * A frame of a raw packet QP, as it is in @payload, filled up if it is short. To
 * the card's own MAC address it turns round, to a multicast address it does
 * both; nothing else of it is looked at. Whether that may be called.
 */
void hca_frame_send_raw(HcaPort *port, const HcaQp *qp,
                        const struct iovec *payload, unsigned iovcnt);
bool hca_frame_can_send_raw(HcaPort *port);

#endif /* HCA_FRAME_ENCAP_H */
