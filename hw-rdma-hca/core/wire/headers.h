/* SPDX-License-Identifier: GPL-2.0-or-later */
/* headers: which headers follow BTH, for the parser and the builder. */
#ifndef HCA_WIRE_HEADERS_H
#define HCA_WIRE_HEADERS_H

#include "wire.h"

/* Extended transport headers, in the order in which they follow BTH. */
typedef enum HcaExtHeader {
    HCA_XRCETH,
    HCA_DETH,
    HCA_FETH,
    HCA_RETH,
    HCA_ATOMIC_ETH,
    HCA_AETH_HEADER,
    HCA_ATOMIC_ACK_ETH,
    HCA_IMMDT,
    HCA_IETH,
    HCA_EXT_HEADERS
} HcaExtHeader;

/* Bytes of each. */
extern const uint8_t hca_ext_header_size[HCA_EXT_HEADERS];

/* What a BTH opcode says of the rest of its packet. */
typedef struct HcaOpcodeFormat {
    uint16_t headers; /* bit n: HcaExtHeader n follows */
    bool has_payload; /* may have some */
} HcaOpcodeFormat;

/* False if @opcode is nothing that a QP of the card could answer. */
bool hca_opcode_format(uint8_t opcode, HcaOpcodeFormat *format);

/*
 * Parse a packet from BTH to the end of its payload and pad, @len bytes, into
 * @packet; its payload then points into @bth.
 */
HcaParseError hca_header_parse(HcaPacket *packet, const uint8_t *bth,
                               size_t len);

/* BTH alone, which is all there: fills in @packet, checks the version. */
HcaParseError hca_bth_parse(HcaPacket *packet, const uint8_t *bth);

/* Bytes from BTH to the last extended header of a packet of @opcode. */
size_t hca_header_size(uint8_t opcode);

/*
 * Write BTH and the extended headers of @packet, hca_header_size() bytes.
 * packet->pad must have been set.
 */
void hca_header_build(const HcaPacket *packet, uint8_t *bth);

/* BTH alone. */
void hca_bth_build(const HcaPacket *packet, uint8_t *bth);

#endif /* HCA_WIRE_HEADERS_H */
