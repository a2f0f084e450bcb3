/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wire: bytes to headers and back. No state, no memory of its own.
 *
 * header_parser.c  engine document 5: the chain of headers from BTH on
 * headers.c        the same chain written, for the packet generators
 * ib.c             LRH, GRH and packet length (IBA 7.7, 8.3); packets of an IB
 *                  link
 * roce.c           Ethernet, IP, UDP (RoCEv2 annex A17); frames of a RoCE link
 * icrc.c, vcrc.c   IBA 7.8.1, 7.8.2
 */
#ifndef HCA_WIRE_H
#define HCA_WIRE_H

#include "packet.h"

#define HCA_LRH_SIZE 8
#define HCA_GRH_SIZE 40
#define HCA_IPV4_HEADER_SIZE 20 /* without options */
#define HCA_IPV6_HEADER_SIZE 40
#define HCA_UDP_HEADER_SIZE 8
#define HCA_BTH_SIZE 12
#define HCA_ICRC_SIZE 4
#define HCA_VCRC_SIZE 2
/* LRH, GRH, BTH, AtomicETH; XRCETH, RETH and ImmDt are less than that and 8. */
#define HCA_MAX_HEADER_SIZE (8 + 40 + 12 + 28 + 8)
/* Of RoCEv2: Ethernet with VLAN, IPv6, UDP, BTH, AtomicETH, ImmDt. */
#define HCA_MAX_ROCE_HEADER_SIZE (18 + 40 + 8 + 12 + 28 + 8)
/* Pad, ICRC; VCRC or what a short Ethernet frame is filled up with. */
#define HCA_MAX_TRAILER_SIZE (3 + 4 + 2)
#define HCA_MAX_MTU 4096
/* Ethernet frames without FCS: addresses and EtherType; least and greatest. */
#define HCA_ETH_HEADER_SIZE 14
#define HCA_ETH_MIN_FRAME 60
#define HCA_ETH_MAX_FRAME (18 + 9000) /* with a VLAN tag */
#define HCA_MAX_PACKET_SIZE                                                    \
    (HCA_MAX_HEADER_SIZE + HCA_MAX_MTU + HCA_MAX_TRAILER_SIZE)

/* Why a packet was not taken; each is counted by its kind. */
typedef enum HcaParseError {
    HCA_PARSE_OK,
    HCA_PARSE_SHORT, /* ends inside a header or its CRCs */
    /*
     * PktLen or PayLen against what arrived, pad; a payload longer than any
     * MTU, or in a packet that can have none.
     */
    HCA_PARSE_LENGTH,
    HCA_PARSE_VERSION, /* LVer, IPVer or TVer */
    HCA_PARSE_LNH,     /* LNH, NxtHdr: not an IBA transport packet */
    HCA_PARSE_OPCODE, /* reserved (but for RC), or a service that the card lacks */
    HCA_PARSE_VCRC,
    HCA_PARSE_ICRC,
    /* RoCEv2 */
    HCA_PARSE_FRAGMENT,  /* the first part of an IP datagram */
    HCA_PARSE_IP_HEADER, /* options, checksum */
    HCA_PARSE_UDP,       /* length or checksum */
    HCA_PARSE_NOT_ROCE,  /* no error: a frame that is not RoCEv2 */
    HCA_PARSE_NERRORS
} HcaParseError;

/*
 * One packet of an IB link: LRH to VCRC, @len bytes. Fills @packet, whose
 * payload then points into @frame. Does not judge LIDs, keys or PSNs.
 */
HcaParseError hca_ib_parse(HcaPacket *packet, const uint8_t *frame, size_t len);

/*
 * The headers alone, LRH to the last extended one, as somebody has written them
 * for a packet of UD: payload_len is what PktLen has room for. Neither CRCs nor a
 * payload are looked at.
 */
HcaParseError hca_ib_parse_headers(HcaPacket *packet, const uint8_t *headers,
                                   size_t len);

/*
 * Write the headers of @packet (LRH to the last extended header) to @header
 * (HCA_MAX_HEADER_SIZE bytes); returns their length. Sets packet->pad.
 */
size_t hca_ib_build(HcaPacket *packet, uint8_t *header);

/*
 * Finish a packet: @frame holds its headers and payload, @len bytes in all,
 * and has room for HCA_MAX_TRAILER_SIZE more. Appends pad, ICRC and VCRC;
 * returns the whole length.
 */
size_t hca_ib_seal(const HcaPacket *packet, uint8_t *frame, size_t len);

/*
 * The same for an Ethernet frame without FCS. The parser says NOT_ROCE of one
 * that does not have UDP and port 4791 in their places: that one belongs to the
 * network interface, whatever it is. @frame of the last two has room for
 * HCA_MAX_ROCE_HEADER_SIZE and HCA_MAX_TRAILER_SIZE bytes.
 */
HcaParseError hca_roce_parse(HcaPacket *packet, const uint8_t *frame,
                             size_t len);
size_t hca_roce_build(HcaPacket *packet, uint8_t *header);
size_t hca_roce_seal(const HcaPacket *packet, uint8_t *frame, size_t len);

/*
 * Mark @frame as a switch does that is congested: ECN is CE, and the checksum
 * of IPv4 follows. False: it is no RoCEv2 frame.
 */
bool hca_roce_mark(uint8_t *frame, size_t len);

/*
 * Where BTH, whole, is in @frame, whatever else is wrong with it; NULL if
 * there is none.
 */
const uint8_t *hca_roce_bth(const uint8_t *frame, size_t len);

/*
 * How packets lie on a kind of link: the functions above, by link layer.
 */
typedef struct HcaEncap {
    size_t (*build)(HcaPacket *packet, uint8_t *header);
    size_t (*seal)(const HcaPacket *packet, uint8_t *frame, size_t len);
    HcaParseError (*parse)(HcaPacket *packet, const uint8_t *frame, size_t len);
    const uint8_t *(*bth)(const uint8_t *frame, size_t len);
    /* NULL: this kind of packet has no ECN. */
    bool (*mark)(uint8_t *frame, size_t len);
} HcaEncap;

extern const HcaEncap hca_encap_ib;
extern const HcaEncap hca_encap_roce;

#define HCA_ROCE_UDP_PORT 4791

#endif /* HCA_WIRE_H */
