/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Packet metadata: what header_parser hands to the engines (engine document
 * 7.2.8, 7.2.9) and the engines to the packet generators (7.2.6, 7.2.10).
 *
 * Numbers are in host byte order, immediate data excepted.
 */
#ifndef HCA_WIRE_PACKET_H
#define HCA_WIRE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HCA_PSN_MASK 0xffffffu
#define HCA_QPN_MASK 0xffffffu
#define HCA_SRQN_MASK 0xffffffu
#define HCA_QPN_MULTICAST 0xffffffu
#define HCA_LID_PERMISSIVE 0xffff

/* BTH opcode: service in 7:5, operation in 4:0 (IBA 9.2). */
#define HCA_BTH_SERVICE(opcode) ((opcode) >> 5)
#define HCA_BTH_OPERATION(opcode) ((opcode)&0x1f)
#define HCA_BTH_OPCODE(service, operation) ((service) << 5 | (operation))
#define HCA_BTH_RC 0
#define HCA_BTH_UC 1
#define HCA_BTH_RD 2
#define HCA_BTH_UD 3
#define HCA_BTH_XRC 5

enum HcaBthOperation {
    HCA_SEND_FIRST = 0x00,
    HCA_SEND_MIDDLE = 0x01,
    HCA_SEND_LAST = 0x02,
    HCA_SEND_LAST_IMM = 0x03,
    HCA_SEND_ONLY = 0x04,
    HCA_SEND_ONLY_IMM = 0x05,
    HCA_WRITE_FIRST = 0x06,
    HCA_WRITE_MIDDLE = 0x07,
    HCA_WRITE_LAST = 0x08,
    HCA_WRITE_LAST_IMM = 0x09,
    HCA_WRITE_ONLY = 0x0a,
    HCA_WRITE_ONLY_IMM = 0x0b,
    HCA_READ_REQUEST = 0x0c,
    HCA_READ_RESP_FIRST = 0x0d,
    HCA_READ_RESP_MIDDLE = 0x0e,
    HCA_READ_RESP_LAST = 0x0f,
    HCA_READ_RESP_ONLY = 0x10,
    HCA_ACK = 0x11,
    HCA_ATOMIC_ACK = 0x12,
    HCA_CMP_SWAP = 0x13,
    HCA_FETCH_ADD = 0x14,
    HCA_SEND_LAST_INV = 0x16,
    HCA_SEND_ONLY_INV = 0x17,
    HCA_FLUSH = 0x1c, /* this and the next: annex A19 */
    HCA_ATOMIC_WRITE = 0x1d,
};

/* Whether the packet answers a request. */
static inline bool hca_is_response(uint8_t opcode)
{
    uint8_t operation = HCA_BTH_OPERATION(opcode);

    return operation >= HCA_READ_RESP_FIRST && operation <= HCA_ATOMIC_ACK;
}

/* FETH (annex A19): what a FLUSH asks for. */
#define HCA_FETH_TYPES(feth) ((feth)&0xf)
#define HCA_FETH_LEVEL(feth) (((feth) >> 4) & 3)
#define HCA_FETH(types, level) ((level) << 4 | (types))

/* Congestion notification packet (RoCEv2 annex A17.9.3). */
#define HCA_BTH_CNP 0x81

/* ECN, the low bits of tclass (RFC 3168). */
#define HCA_ECN_MASK 3
#define HCA_ECN_ECT0 2
#define HCA_ECN_CE 3

/* AETH syndrome (IBA 9.7.5.1): kind in 6:5, value in 4:0. */
#define HCA_AETH_KIND(syndrome) (((syndrome) >> 5) & 3)
#define HCA_AETH_VALUE(syndrome) ((syndrome)&0x1f)
#define HCA_AETH_ACK 0
#define HCA_AETH_RNR 1
#define HCA_AETH_NAK 3
#define HCA_AETH(kind, value) ((uint8_t)((kind) << 5 | (value)))
#define HCA_AETH_CREDITS_INVALID 0x1f
/* Credits of a code below that (IBA 9.7.7.2): 0, 1, 2, 3, 4, 6, 8, 12, ... */
static inline uint32_t hca_aeth_credits(uint8_t code)
{
    uint32_t power = 1u << (code / 2);

    return code ? power + (code % 2 ? power / 2 : 0) : 0;
}

#define HCA_NAK_PSN_SEQ 0
#define HCA_NAK_INVALID_REQUEST 1
#define HCA_NAK_REMOTE_ACCESS 2
#define HCA_NAK_REMOTE_OP 3
#define HCA_NAK_INVALID_RD 4
/* NAK codes to count: those that the specification reserves are one. */
#define HCA_NNAKS 6

static inline unsigned hca_nak_index(uint8_t syndrome)
{
    unsigned code = HCA_AETH_VALUE(syndrome);

    return code < HCA_NNAKS ? code : HCA_NNAKS - 1;
}

typedef struct HcaGid {
    uint8_t raw[16];
} HcaGid;

/* How the GID of an IPv4 address begins (RFC 4291 2.5.5.2). */
extern const uint8_t hca_ipv4_mapped[12];

typedef struct HcaPacket {
    /* LRH and GRH */
    uint8_t vl;
    uint8_t sl;
    uint16_t dlid;
    uint16_t slid;
    bool has_grh;
    uint8_t tclass;
    uint8_t hop_limit;
    uint32_t flow_label;
    HcaGid sgid;
    HcaGid dgid;
    /*
     * RoCEv2: Ethernet, IP and UDP. The network fields above are the IP
     * header's: tclass is TOS or Traffic Class with the ECN bits, hop_limit TTL,
     * GIDs of IPv4 are ::ffff:a.b.c.d. has_grh is set in what was received.
     */
    const uint8_t *ip_header; /* received: in the frame */
    bool is_ipv4;
    bool has_vlan;
    uint16_t vlan_tci; /* priority, VLAN identifier */
    uint16_t udp_sport;
    uint8_t dmac[6];
    uint8_t smac[6];
    /* BTH */
    uint8_t opcode;
    bool solicited;
    bool fecn, becn; /* RoCEv2: becn in a CNP */
    bool mig_req;
    bool ack_req;
    uint8_t pad; /* filled by the builder from payload_len */
    uint16_t pkey;
    uint32_t dest_qp;
    uint32_t psn;
    /* XRCETH */
    uint32_t srqn;
    /* FETH */
    uint32_t feth;
    /* DETH */
    uint32_t qkey;
    uint32_t src_qp;
    /* RETH, AtomicETH */
    uint64_t va;
    uint32_t rkey;
    uint32_t dma_len;
    uint64_t swap_add;
    uint64_t compare;
    /* AETH, AtomicAckETH */
    uint8_t syndrome;
    uint32_t msn;
    uint64_t atomic_ack;
    /* ImmDt (as on the wire), IETH */
    uint32_t imm_be;
    uint32_t inv_rkey;
    /* A frame of a raw packet QP's: of the rule that it came by */
    uint32_t flow_tag;
    /* Received: where the payload is; to send: only its length counts. */
    const uint8_t *payload;
    uint32_t payload_len; /* without pad */
} HcaPacket;

/* b - a as a signed distance on the circle of 2^24 PSNs. */
static inline int32_t hca_psn_diff(uint32_t b, uint32_t a)
{
    return (int32_t)((b - a) << 8) >> 8;
}

/*
 * Whether members of a partition with these P_Keys may talk (IBA 10.9.3): it
 * is the same one, not both are limited members, and 0 is no partition.
 */
static inline bool hca_pkey_match(uint16_t a, uint16_t b)
{
    return ((a ^ b) & 0x7fff) == 0 && (a & 0x7fff) && ((a | b) & 0x8000);
}

/*
 * Whether who has @entry in its P_Key table may send with @pkey: the question
 * of the switch port that it is at (IBA 10.9.3, 18.2.4). A limited member
 * may be heard by full ones, and must not say that it is one.
 */
static inline bool hca_pkey_may_send(uint16_t entry, uint16_t pkey)
{
    return ((entry ^ pkey) & 0x7fff) == 0 && (entry & 0x7fff) &&
           (entry & 0x8000 || !(pkey & 0x8000));
}

/*
 * Of a frame's 802.1Q tag; 0 without one. A priority tag (VLAN 0) is no VLAN
 * (IEEE 802.1Q 6.9).
 */
#define HCA_VLAN_PRIORITY_SHIFT 13
static inline uint16_t hca_packet_vlan(const HcaPacket *packet)
{
    return packet->has_vlan ? packet->vlan_tci & 0xfff : 0;
}

static inline uint8_t hca_packet_priority(const HcaPacket *packet)
{
    return packet->has_vlan ? packet->vlan_tci >> HCA_VLAN_PRIORITY_SHIFT : 0;
}

static inline uint32_t hca_psn_add(uint32_t psn, uint32_t n)
{
    return (psn + n) & HCA_PSN_MASK;
}

#endif /* HCA_WIRE_PACKET_H */
