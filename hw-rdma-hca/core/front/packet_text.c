/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "packet_text.h"

#include "../wire/bytes.h"
#include "../wire/headers.h"

/* Packets of a RoCE card begin with this; those of the other with LRH. */
#define ETHERTYPE_AT 12
#define LRH_DLID_AT 2
#define LRH_SLID_AT 6
/* Of a MAD's common header (IBA 13.4.3). */
#define MAD_SIZE 24

static const char *const services[] = {
    [HCA_BTH_RC] = "RC", [HCA_BTH_UC] = "UC",   [HCA_BTH_RD] = "RD",
    [HCA_BTH_UD] = "UD", [HCA_BTH_XRC] = "XRC",
};

static const char *const operations[] = {
    [HCA_SEND_FIRST] = "SEND_FIRST",
    [HCA_SEND_MIDDLE] = "SEND_MIDDLE",
    [HCA_SEND_LAST] = "SEND_LAST",
    [HCA_SEND_LAST_IMM] = "SEND_LAST_IMM",
    [HCA_SEND_ONLY] = "SEND_ONLY",
    [HCA_SEND_ONLY_IMM] = "SEND_ONLY_IMM",
    [HCA_WRITE_FIRST] = "WRITE_FIRST",
    [HCA_WRITE_MIDDLE] = "WRITE_MIDDLE",
    [HCA_WRITE_LAST] = "WRITE_LAST",
    [HCA_WRITE_LAST_IMM] = "WRITE_LAST_IMM",
    [HCA_WRITE_ONLY] = "WRITE_ONLY",
    [HCA_WRITE_ONLY_IMM] = "WRITE_ONLY_IMM",
    [HCA_READ_REQUEST] = "READ_REQUEST",
    [HCA_READ_RESP_FIRST] = "READ_RESP_FIRST",
    [HCA_READ_RESP_MIDDLE] = "READ_RESP_MIDDLE",
    [HCA_READ_RESP_LAST] = "READ_RESP_LAST",
    [HCA_READ_RESP_ONLY] = "READ_RESP_ONLY",
    [HCA_ACK] = "ACK",
    [HCA_ATOMIC_ACK] = "ATOMIC_ACK",
    [HCA_CMP_SWAP] = "CMP_SWAP",
    [HCA_FETCH_ADD] = "FETCH_ADD",
    [HCA_SEND_LAST_INV] = "SEND_LAST_INV",
    [HCA_SEND_ONLY_INV] = "SEND_ONLY_INV",
    [HCA_FLUSH] = "FLUSH",
    [HCA_ATOMIC_WRITE] = "ATOMIC_WRITE",
};

static void add_opcode(GString *text, uint8_t opcode)
{
    unsigned service = HCA_BTH_SERVICE(opcode);
    unsigned operation = HCA_BTH_OPERATION(opcode);

    if (opcode == HCA_BTH_CNP) {
        g_string_append(text, "CNP");
    } else if (service < G_N_ELEMENTS(services) && services[service] &&
               operation < G_N_ELEMENTS(operations) && operations[operation]) {
        g_string_append_printf(text, "%s_%s", services[service],
                               operations[operation]);
    } else {
        g_string_append_printf(text, "opcode 0x%02x", opcode);
    }
}

/* @header of a packet with these; NULL if it has none, or not all is known. */
static const uint8_t *find(const uint8_t *bth, size_t known,
                           HcaExtHeader header)
{
    size_t at = HCA_BTH_SIZE;
    HcaOpcodeFormat format;

    if (!hca_opcode_format(bth[0], &format) ||
        !(format.headers >> header & 1)) {
        return NULL;
    }
    for (unsigned i = 0; i < header; i++) {
        at += format.headers >> i & 1 ? hca_ext_header_size[i] : 0;
    }
    return known < at + hca_ext_header_size[header] ? NULL : bth + at;
}

static void add_aeth(GString *text, const uint8_t *aeth)
{
    static const char *const kinds[] = {
        [HCA_AETH_ACK] = "ack",
        [HCA_AETH_RNR] = "rnr",
        [HCA_AETH_NAK] = "nak",
    };
    const char *kind = kinds[HCA_AETH_KIND(aeth[0])];

    g_string_append_printf(text, " %s 0x%02x msn 0x%x", kind ? kind : "aeth",
                           aeth[0], get_be24(aeth + 1));
}

static void add_mad(GString *text, const uint8_t *mad)
{
    g_string_append_printf(text,
                           " mad class 0x%02x method 0x%02x attribute 0x%04x "
                           "modifier 0x%x status 0x%04x tid 0x%x",
                           mad[1], mad[3], get_be16(mad + 16),
                           get_be32(mad + 20), get_be16(mad + 4),
                           get_be32(mad + 12));
}

static void add_bth(GString *text, const uint8_t *bth, size_t known)
{
    uint32_t dqpn = get_be24(bth + 5);
    const uint8_t *aeth = find(bth, known, HCA_AETH_HEADER);
    const uint8_t *deth = find(bth, known, HCA_DETH);

    g_string_append_printf(text, "dqpn 0x%x ", dqpn);
    add_opcode(text, bth[0]);
    g_string_append_printf(text, " psn 0x%x", get_be24(bth + 9));
    if (bth[8] & 0x80) {
        g_string_append(text, " ackreq");
    }
    if (aeth) {
        add_aeth(text, aeth);
    }
    if (deth) {
        g_string_append_printf(text, " sqpn 0x%x", get_be24(deth + 5));
        deth += hca_ext_header_size[HCA_DETH];
        if (dqpn <= 1 && deth + MAD_SIZE <= bth + known) {
            add_mad(text, deth);
        }
    }
}

void hca_packet_text(GString *text, const HcaEncap *encap,
                     const uint8_t *packet, size_t kept, size_t len)
{
    const uint8_t *bth = encap->bth(packet, kept);

    if (bth) {
        add_bth(text, bth, packet + kept - bth);
    } else if (encap == &hca_encap_roce && kept >= HCA_ETH_HEADER_SIZE) {
        g_string_append_printf(text, "ethertype 0x%04x",
                               get_be16(packet + ETHERTYPE_AT));
    } else {
        g_string_append(text, "no transport header");
    }
    if (encap == &hca_encap_ib && kept >= HCA_LRH_SIZE) {
        g_string_append_printf(text, " lid %u > %u",
                               get_be16(packet + LRH_SLID_AT),
                               get_be16(packet + LRH_DLID_AT));
    }
    g_string_append_printf(text, " length %zu", len);
}
