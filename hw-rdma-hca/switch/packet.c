/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a switch looks at: VCRC and LRH, and of the transport no more than it
 * needs for a P_Key. What the other headers say is for the ends of the path.
 */
#include "../core/wire/bytes.h"
#include "../core/wire/crc.h"
#include "switch_int.h"

#define LNH_IBA_LOCAL 2
#define LNH_IBA_GLOBAL 3
#define PKT_LEN_MASK 0x7ff
#define GRH_SGID 8
#define GRH_DGID 24
#define DETH_SIZE 8

static bool vcrc_is_good(const SwPacket *packet)
{
    size_t len = packet->len - HCA_VCRC_SIZE;
    uint16_t vcrc = hca_vcrc_update(HCA_VCRC_INIT, packet->data, len);

    return packet->data[len] == (vcrc & 0xff) &&
           packet->data[len + 1] == vcrc >> 8;
}

static void read_lrh(SwPacket *packet)
{
    const uint8_t *lrh = packet->data;

    packet->vl = lrh[0] >> 4;
    packet->sl = lrh[1] >> 4;
    packet->dlid = get_be16(lrh + 2);
    packet->slid = get_be16(lrh + 6);
    packet->has_grh = (lrh[1] & 3) == LNH_IBA_GLOBAL;
}

static size_t before_bth(const SwPacket *packet)
{
    return HCA_LRH_SIZE + (packet->has_grh ? HCA_GRH_SIZE : 0);
}

/* PktLen, and whether there is room for what the packet must have. */
static bool length_is_good(const SwPacket *packet, unsigned mtu_cap)
{
    size_t len = packet->len - HCA_VCRC_SIZE;
    size_t most = packet->vl == HCA_VL_MGMT ? HCA_LINK_MAX_MGMT - HCA_VCRC_SIZE
                                            : mtu_cap + SW_HEADER_ROOM;

    return (size_t)(get_be16(packet->data + 4) & PKT_LEN_MASK) * 4 == len &&
           len >= before_bth(packet) + HCA_BTH_SIZE + HCA_ICRC_SIZE &&
           len <= most;
}

SwDrop sw_packet_parse(SwPacket *packet, unsigned mtu_cap, unsigned vls)
{
    if (packet->len < HCA_LRH_SIZE + HCA_VCRC_SIZE) {
        return SW_DROP_MALFORMED;
    }
    read_lrh(packet);
    if (!vcrc_is_good(packet)) {
        return SW_DROP_VCRC;
    }
    if (packet->data[0] & 0x0f ||
        (packet->vl >= vls && packet->vl != HCA_VL_MGMT)) {
        return SW_DROP_MALFORMED;
    }
    if ((packet->data[1] & 3) < LNH_IBA_LOCAL) {
        return SW_DROP_RAW;
    }
    return length_is_good(packet, mtu_cap) ? SW_NO_DROP : SW_DROP_MALFORMED;
}

const uint8_t *sw_packet_bth(const SwPacket *packet)
{
    return packet->data + before_bth(packet);
}

/* DETH's source, if the packet has one and is long enough; 0: not known. */
static uint32_t source_qp(const SwPacket *packet)
{
    const uint8_t *bth = sw_packet_bth(packet);
    const uint8_t *end = packet->data + packet->len - HCA_VCRC_SIZE -
                         HCA_ICRC_SIZE;

    if (HCA_BTH_SERVICE(bth[0]) != HCA_BTH_UD ||
        end - bth < HCA_BTH_SIZE + DETH_SIZE) {
        return 0;
    }
    return get_be24(bth + HCA_BTH_SIZE + 5);
}

HcaKeyViolation sw_packet_violation(const SwPacket *packet)
{
    const uint8_t *bth = sw_packet_bth(packet);
    const uint8_t *grh = packet->has_grh ? packet->data + HCA_LRH_SIZE : NULL;

    return (HcaKeyViolation) {
        .slid = packet->slid,
        .dlid = packet->dlid,
        .key = get_be16(bth + 2),
        .sl = packet->sl,
        .src_qp = source_qp(packet),
        .dest_qp = get_be24(bth + 5),
        .sgid = grh ? grh + GRH_SGID : NULL,
        .dgid = grh ? grh + GRH_DGID : NULL,
    };
}
