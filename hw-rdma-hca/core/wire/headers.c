/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The chain of headers behind BTH by opcode, as a table, and the same chain
 * written, for ReqPktGen and RespPktGen (engine document 3.9, 4.4).
 *
 * The table is table 5.2 of the document read with IBA 9.2 to 9.4, where it
 * has gaps: Send Middle and Write Last with immediate go on to the payload, an
 * Acknowledge ends at AETH, a UD packet passes through DETH first, and a request
 * of XRC through XRCETH (annex A14.2.2).
 */
#include <string.h>

#include "bytes.h"
#include "headers.h"

#define BIT(n) (1u << (n))

const uint8_t hca_ext_header_size[HCA_EXT_HEADERS] = {
    [HCA_DETH] = 8,        [HCA_RETH] = 16,          [HCA_ATOMIC_ETH] = 28,
    [HCA_AETH_HEADER] = 4, [HCA_ATOMIC_ACK_ETH] = 8, [HCA_IMMDT] = 4,
    [HCA_IETH] = 4,        [HCA_XRCETH] = 4,         [HCA_FETH] = 4,
};

static const HcaOpcodeFormat operation_format[] = {
    [HCA_SEND_FIRST] = { 0, true },
    [HCA_SEND_MIDDLE] = { 0, true },
    [HCA_SEND_LAST] = { 0, true },
    [HCA_SEND_LAST_IMM] = { BIT(HCA_IMMDT), true },
    [HCA_SEND_ONLY] = { 0, true },
    [HCA_SEND_ONLY_IMM] = { BIT(HCA_IMMDT), true },
    [HCA_WRITE_FIRST] = { BIT(HCA_RETH), true },
    [HCA_WRITE_MIDDLE] = { 0, true },
    [HCA_WRITE_LAST] = { 0, true },
    [HCA_WRITE_LAST_IMM] = { BIT(HCA_IMMDT), true },
    [HCA_WRITE_ONLY] = { BIT(HCA_RETH), true },
    [HCA_WRITE_ONLY_IMM] = { BIT(HCA_RETH) | BIT(HCA_IMMDT), true },
    [HCA_READ_REQUEST] = { BIT(HCA_RETH), false },
    [HCA_READ_RESP_FIRST] = { BIT(HCA_AETH_HEADER), true },
    [HCA_READ_RESP_MIDDLE] = { 0, true },
    [HCA_READ_RESP_LAST] = { BIT(HCA_AETH_HEADER), true },
    [HCA_READ_RESP_ONLY] = { BIT(HCA_AETH_HEADER), true },
    [HCA_ACK] = { BIT(HCA_AETH_HEADER), false },
    [HCA_ATOMIC_ACK] = { BIT(HCA_AETH_HEADER) | BIT(HCA_ATOMIC_ACK_ETH),
                         false },
    [HCA_CMP_SWAP] = { BIT(HCA_ATOMIC_ETH), false },
    [HCA_FETCH_ADD] = { BIT(HCA_ATOMIC_ETH), false },
    [HCA_SEND_LAST_INV] = { BIT(HCA_IETH), true },
    [HCA_SEND_ONLY_INV] = { BIT(HCA_IETH), true },
    [HCA_FLUSH] = { BIT(HCA_FETH) | BIT(HCA_RETH), false },
    [HCA_ATOMIC_WRITE] = { BIT(HCA_RETH), true },
};

#define SENDS                                                                  \
    (BIT(HCA_SEND_FIRST) | BIT(HCA_SEND_MIDDLE) | BIT(HCA_SEND_LAST) |         \
     BIT(HCA_SEND_LAST_IMM) | BIT(HCA_SEND_ONLY) | BIT(HCA_SEND_ONLY_IMM))
#define WRITES                                                                 \
    (BIT(HCA_WRITE_FIRST) | BIT(HCA_WRITE_MIDDLE) | BIT(HCA_WRITE_LAST) |      \
     BIT(HCA_WRITE_LAST_IMM) | BIT(HCA_WRITE_ONLY) | BIT(HCA_WRITE_ONLY_IMM))
#define READS_AND_ATOMICS                                                      \
    (BIT(HCA_READ_REQUEST) | BIT(HCA_READ_RESP_FIRST) |                        \
     BIT(HCA_READ_RESP_MIDDLE) | BIT(HCA_READ_RESP_LAST) |                     \
     BIT(HCA_READ_RESP_ONLY) | BIT(HCA_ACK) | BIT(HCA_ATOMIC_ACK) |            \
     BIT(HCA_CMP_SWAP) | BIT(HCA_FETCH_ADD))
#define SENDS_WITH_INVALIDATE (BIT(HCA_SEND_LAST_INV) | BIT(HCA_SEND_ONLY_INV))
#define PLACEMENTS (BIT(HCA_FLUSH) | BIT(HCA_ATOMIC_WRITE))

#define RELIABLE                                                               \
    (SENDS | WRITES | READS_AND_ATOMICS | SENDS_WITH_INVALIDATE | PLACEMENTS)

/* The operations of a service (IBA table 38), and what all its requests have. */
static const struct {
    uint32_t operations;
    uint16_t headers;
    bool answers_all; /* also what it does not know */
} service_format[8] = {
    [HCA_BTH_RC] = { RELIABLE, 0, true },
    [HCA_BTH_UC] = { SENDS | WRITES, 0, false },
    [HCA_BTH_UD] = { BIT(HCA_SEND_ONLY) | BIT(HCA_SEND_ONLY_IMM), BIT(HCA_DETH),
                     false },
    [HCA_BTH_XRC] = { RELIABLE, BIT(HCA_XRCETH), true },
};

/*
 * What is reserved is no packet, but to RC and XRC: their responder has to say
 * that it does not know the operation (figure 4.3; IBA 9.7.5.2.4).
 */
static bool find_format(uint8_t opcode, HcaOpcodeFormat *format)
{
    unsigned service = HCA_BTH_SERVICE(opcode);
    unsigned operation = HCA_BTH_OPERATION(opcode);

    if (!(service_format[service].operations & BIT(operation))) {
        *format = (HcaOpcodeFormat) { .has_payload = true };
        return service_format[service].answers_all;
    }
    *format = operation_format[operation];
    if (!hca_is_response(opcode)) {
        format->headers |= service_format[service].headers;
    }
    return true;
}

/* The same for each opcode, found once. */
static struct {
    HcaOpcodeFormat format;
    uint8_t size; /* bytes of BTH and what follows it */
    bool known;
} opcodes[UINT8_MAX + 1];

static void __attribute__((constructor)) init_opcodes(void)
{
    for (unsigned opcode = 0; opcode <= UINT8_MAX; opcode++) {
        HcaOpcodeFormat *format = &opcodes[opcode].format;

        opcodes[opcode].known = find_format(opcode, format);
        opcodes[opcode].size = HCA_BTH_SIZE;
        for (unsigned i = 0; i < HCA_EXT_HEADERS; i++) {
            if (format->headers & BIT(i)) {
                opcodes[opcode].size += hca_ext_header_size[i];
            }
        }
    }
}

bool hca_opcode_format(uint8_t opcode, HcaOpcodeFormat *format)
{
    *format = opcodes[opcode].format;
    return opcodes[opcode].known;
}

size_t hca_header_size(uint8_t opcode)
{
    return opcodes[opcode].size;
}

static void build_xrceth(const HcaPacket *packet, uint8_t *p)
{
    put_be32(p, packet->srqn & HCA_SRQN_MASK);
}

static void build_deth(const HcaPacket *packet, uint8_t *p)
{
    put_be32(p, packet->qkey);
    p[4] = 0;
    put_be24(p + 5, packet->src_qp);
}

static void build_reth(const HcaPacket *packet, uint8_t *p)
{
    put_be64(p, packet->va);
    put_be32(p + 8, packet->rkey);
    put_be32(p + 12, packet->dma_len);
}

static void build_atomic_eth(const HcaPacket *packet, uint8_t *p)
{
    put_be64(p, packet->va);
    put_be32(p + 8, packet->rkey);
    put_be64(p + 12, packet->swap_add);
    put_be64(p + 20, packet->compare);
}

static void build_aeth(const HcaPacket *packet, uint8_t *p)
{
    p[0] = packet->syndrome;
    put_be24(p + 1, packet->msn);
}

static void build_atomic_ack_eth(const HcaPacket *packet, uint8_t *p)
{
    put_be64(p, packet->atomic_ack);
}

static void build_immdt(const HcaPacket *packet, uint8_t *p)
{
    memcpy(p, &packet->imm_be, sizeof(packet->imm_be));
}

static void build_feth(const HcaPacket *packet, uint8_t *p)
{
    put_be32(p, packet->feth);
}

static void build_ieth(const HcaPacket *packet, uint8_t *p)
{
    put_be32(p, packet->inv_rkey);
}

static void (*const build_ext[HCA_EXT_HEADERS])(const HcaPacket *,
                                                uint8_t *) = {
    [HCA_XRCETH] = build_xrceth,    [HCA_DETH] = build_deth,
    [HCA_RETH] = build_reth,        [HCA_ATOMIC_ETH] = build_atomic_eth,
    [HCA_AETH_HEADER] = build_aeth, [HCA_ATOMIC_ACK_ETH] = build_atomic_ack_eth,
    [HCA_IMMDT] = build_immdt,      [HCA_IETH] = build_ieth,
    [HCA_FETH] = build_feth,
};

void hca_bth_build(const HcaPacket *packet, uint8_t *p)
{
    p[0] = packet->opcode;
    p[1] = packet->solicited << 7 | packet->mig_req << 6 | packet->pad << 4;
    put_be16(p + 2, packet->pkey);
    p[4] = packet->fecn << 7 | packet->becn << 6;
    put_be24(p + 5, packet->dest_qp);
    p[8] = packet->ack_req << 7;
    put_be24(p + 9, packet->psn);
}

void hca_header_build(const HcaPacket *packet, uint8_t *bth)
{
    uint8_t *p = bth + HCA_BTH_SIZE;

    hca_bth_build(packet, bth);
    for (unsigned left = opcodes[packet->opcode].format.headers; left;
         left &= left - 1) {
        unsigned i = __builtin_ctz(left);

        build_ext[i](packet, p);
        p += hca_ext_header_size[i];
    }
}
