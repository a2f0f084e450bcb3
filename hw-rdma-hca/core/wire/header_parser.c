/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * HeaderParser (engine document 5, figure 5.2): from BTH through the extended
 * headers that its opcode calls for to the payload.
 *
 * The states PARSE_RETH, PARSE_AETH and so on are the parse_* functions here;
 * which of them an opcode passes through is its HcaOpcodeFormat (headers.c).
 * Separating header from payload costs nothing: the payload stays where it is.
 */
#include <string.h>

#include "bytes.h"
#include "headers.h"

static void parse_xrceth(HcaPacket *packet, const uint8_t *p)
{
    packet->srqn = get_be24(p + 1);
}

static void parse_deth(HcaPacket *packet, const uint8_t *p)
{
    packet->qkey = get_be32(p);
    packet->src_qp = get_be24(p + 5);
}

static void parse_reth(HcaPacket *packet, const uint8_t *p)
{
    packet->va = get_be64(p);
    packet->rkey = get_be32(p + 8);
    packet->dma_len = get_be32(p + 12);
}

static void parse_atomic_eth(HcaPacket *packet, const uint8_t *p)
{
    packet->va = get_be64(p);
    packet->rkey = get_be32(p + 8);
    packet->swap_add = get_be64(p + 12);
    packet->compare = get_be64(p + 20);
}

static void parse_aeth(HcaPacket *packet, const uint8_t *p)
{
    packet->syndrome = p[0];
    packet->msn = get_be24(p + 1);
}

static void parse_atomic_ack_eth(HcaPacket *packet, const uint8_t *p)
{
    packet->atomic_ack = get_be64(p);
}

static void parse_immdt(HcaPacket *packet, const uint8_t *p)
{
    memcpy(&packet->imm_be, p, sizeof(packet->imm_be));
}

static void parse_feth(HcaPacket *packet, const uint8_t *p)
{
    packet->feth = get_be32(p);
}

static void parse_ieth(HcaPacket *packet, const uint8_t *p)
{
    packet->inv_rkey = get_be32(p);
}

static void (*const parse_ext[HCA_EXT_HEADERS])(HcaPacket *,
                                                const uint8_t *) = {
    [HCA_XRCETH] = parse_xrceth,    [HCA_DETH] = parse_deth,
    [HCA_RETH] = parse_reth,        [HCA_ATOMIC_ETH] = parse_atomic_eth,
    [HCA_AETH_HEADER] = parse_aeth, [HCA_ATOMIC_ACK_ETH] = parse_atomic_ack_eth,
    [HCA_IMMDT] = parse_immdt,      [HCA_IETH] = parse_ieth,
    [HCA_FETH] = parse_feth,
};

/* BTH (IBA 9.2). */
HcaParseError hca_bth_parse(HcaPacket *packet, const uint8_t *p)
{
    packet->opcode = p[0];
    packet->solicited = p[1] & 0x80;
    packet->mig_req = p[1] & 0x40;
    packet->pad = (p[1] >> 4) & 3;
    packet->pkey = get_be16(p + 2);
    packet->fecn = p[4] & 0x80;
    packet->becn = p[4] & 0x40;
    packet->dest_qp = get_be24(p + 5);
    packet->ack_req = p[8] & 0x80;
    packet->psn = get_be24(p + 9);
    return (p[1] & 0x0f) == 0 ? HCA_PARSE_OK : HCA_PARSE_VERSION;
}

static HcaParseError parse_payload(HcaPacket *packet, const uint8_t *p,
                                   size_t len, bool allowed)
{
    if (len < packet->pad || len - packet->pad > HCA_MAX_MTU) {
        return HCA_PARSE_LENGTH;
    }
    if (len && !allowed) { /* figure 5.2: straight to IDLE */
        return HCA_PARSE_LENGTH;
    }
    packet->payload = p;
    packet->payload_len = len - packet->pad;
    return HCA_PARSE_OK;
}

HcaParseError hca_header_parse(HcaPacket *packet, const uint8_t *bth,
                               size_t len)
{
    const uint8_t *p = bth;
    HcaOpcodeFormat format;
    HcaParseError error;

    if (len < HCA_BTH_SIZE) {
        return HCA_PARSE_SHORT;
    }
    error = hca_bth_parse(packet, p);
    if (error != HCA_PARSE_OK) {
        return error;
    }
    if (!hca_opcode_format(packet->opcode, &format)) {
        return HCA_PARSE_OPCODE;
    }
    p += HCA_BTH_SIZE;
    len -= HCA_BTH_SIZE;
    for (unsigned left = format.headers; left; left &= left - 1) {
        unsigned i = __builtin_ctz(left);

        if (len < hca_ext_header_size[i]) {
            return HCA_PARSE_SHORT;
        }
        parse_ext[i](packet, p);
        p += hca_ext_header_size[i];
        len -= hca_ext_header_size[i];
    }
    return parse_payload(packet, p, len, format.has_payload);
}
