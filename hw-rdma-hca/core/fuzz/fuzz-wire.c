/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hostile wire: frames of both link layers, with the right CRCs so that they
 * go deep, to live queue pairs and with PSNs near those that are expected; and
 * what connected cards say to each other, changed, lost, doubled, late and
 * repeated. Both guests are good. Side 0 is the one under attack.
 */
#include <string.h>

#include "lib-frame.h"

#define NEVER UINT32_MAX

/* What happens to a packet of one side. */
typedef struct Mishap {
    uint32_t packets; /* to go; NEVER */
    CableFate fate;
    uint8_t nedits;
    uint8_t edit[4][2]; /* place, bits to invert */
} Mishap;

typedef struct Wire {
    Fuzz *f;
    Mishap mishap[2];
    uint8_t last[2][FRAME_MOST]; /* seen from each side */
    size_t len[2];
    uint8_t frame[FRAME_MOST];
} Wire;

static CableFate tap(void *opaque, unsigned from, uint8_t *packet, size_t len)
{
    Wire *wire = opaque;
    Mishap *mishap = &wire->mishap[from];

    memcpy(wire->last[from], packet, len);
    wire->len[from] = len;
    if (mishap->packets == NEVER || mishap->packets--) {
        return CABLE_DELIVER;
    }
    for (unsigned i = 0; i < mishap->nedits; i++) {
        if (mishap->edit[i][0] < len) {
            packet[mishap->edit[i][0]] ^= mishap->edit[i][1];
        }
    }
    if (mishap->nedits) {
        frame_mend(wire->f->roce, packet, len);
    }
    return mishap->fate;
}

static void act_mishap(Fuzz *f)
{
    Wire *wire = f->own;
    Mishap *mishap = &wire->mishap[fuzz_take_side(f)];

    mishap->packets = take_below(&f->in, 8);
    mishap->fate = take_below(&f->in, CABLE_DELAY + 1);
    mishap->nedits = take_below(&f->in, G_N_ELEMENTS(mishap->edit) + 1);
    for (unsigned i = 0; i < mishap->nedits; i++) {
        take_bytes(&f->in, mishap->edit[i], sizeof(mishap->edit[i]));
        mishap->edit[i][0] %= 128;
    }
}

/* What the peer said last, once more and a little different. */
static void act_repeat(Fuzz *f)
{
    Wire *wire = f->own;
    unsigned from = fuzz_take_side(f);
    size_t len = wire->len[from];

    memcpy(wire->frame, wire->last[from], len);
    if (len && take_bool(&f->in)) {
        frame_edit(f, wire->frame, len);
        frame_mend(f->roce, wire->frame, len);
    }
    if (len) {
        frame_inject(f, from, wire->frame, len);
    }
}

/* ---- forged packets ---- */

/* Parts of a packet that differ from what they should be. */
enum {
    ODD_PSN = 0x01,
    ODD_MEMORY = 0x02,
    ODD_LENGTH = 0x04,
    ODD_ANSWER = 0x08,
    ODD_NETWORK = 0x10,
    ODD_KEYS = 0x20,
    ODD_FLAGS = 0x40,
    ODD_BYTES = 0x80, /* behind the card's idea of a packet */
};

static bool is_answer(uint8_t operation)
{
    return operation >= HCA_READ_RESP_FIRST && operation <= HCA_ATOMIC_ACK;
}

static uint32_t good_length(uint8_t operation)
{
    switch (operation) {
    case HCA_SEND_FIRST:
    case HCA_SEND_MIDDLE:
    case HCA_WRITE_FIRST:
    case HCA_WRITE_MIDDLE:
    case HCA_READ_RESP_FIRST:
    case HCA_READ_RESP_MIDDLE:
        return 256;
    case HCA_READ_REQUEST:
    case HCA_ACK:
    case HCA_ATOMIC_ACK:
    case HCA_CMP_SWAP:
    case HCA_FETCH_ADD:
    case HCA_FLUSH:
        return 0;
    case HCA_ATOMIC_WRITE:
        return 8;
    default:
        return 64;
    }
}

static uint32_t take_psn(Fuzz *f, const HcaQp *qp, bool answer, bool odd)
{
    uint32_t psn = answer ? qp->req.unacked_psn : qp->resp.expected_psn;

    if (odd) {
        uint32_t kind = take8(&f->in);

        if (kind < 0xf0) {
            psn += (int)kind - 0x78;
        } else {
            psn = kind & 1 ? qp->req.next_psn : take_odd(&f->in);
        }
    }
    return psn & HCA_PSN_MASK;
}

static void take_memory(Fuzz *f, bool odd, HcaPacket *packet)
{
    const Mr *mr = f->mr[0][FUZZ_ALL];

    packet->rkey = mr->key;
    packet->va = mr->va + 0xcdd; /* aligned to 8 */
    packet->dma_len = packet->payload_len ? packet->payload_len : 1000;
    if (HCA_BTH_OPERATION(packet->opcode) == HCA_FLUSH) {
        packet->rkey = f->mr[0][FUZZ_WRITABLE]->key;
        packet->va = f->mr[0][FUZZ_WRITABLE]->va;
        packet->feth = HCA_FETH(HCA_FLUSH_GLOBAL, HCA_FLUSH_RANGE);
        packet->feth ^= odd ? take8(&f->in) : 0;
    }
    if (odd) {
        packet->rkey = fuzz_take_key(f, 0, false, &mr);
        packet->va = fuzz_take_va(f, mr);
        packet->dma_len = fuzz_take_len(f);
    }
}

static void take_network(Fuzz *f, HcaPacket *packet)
{
    packet->sl = take8(&f->in);
    packet->tclass = take8(&f->in);
    packet->dlid ^= take_below(&f->in, 4);
    packet->slid ^= take_below(&f->in, 4);
    packet->sgid.raw[15] ^= take_below(&f->in, 4);
    packet->dgid.raw[15] ^= take_below(&f->in, 4);
    packet->dmac[5] ^= take_below(&f->in, 4);
    packet->vlan_tci ^= take16(&f->in);
}

static void take_group(HcaPacket *packet, Fuzz *f)
{
    static const uint8_t gid[16] = { 0xff, 0x12, 0x40, 0x1b, [15] = 7 };
    static const uint8_t mac[6] = { 0x33, 0x33, [5] = 7 };

    packet->has_grh = true;
    packet->is_ipv4 = false;
    packet->dlid = 0xc001;
    packet->dest_qp = HCA_QPN_MULTICAST;
    memcpy(packet->dgid.raw, gid, sizeof(gid));
    memcpy(packet->dmac, mac, sizeof(mac));
}

static void take_keys(Fuzz *f, HcaPacket *packet)
{
    switch (take_below(&f->in, 6)) {
    case 0:
        packet->pkey = take_odd(&f->in);
        break;
    case 1:
        packet->qkey = take_odd(&f->in);
        break;
    case 2:
        packet->dest_qp = take_odd(&f->in) & HCA_QPN_MASK;
        break;
    case 3:
        packet->src_qp = take_odd(&f->in) & HCA_QPN_MASK;
        break;
    case 4:
        packet->dest_qp = f->qp[fuzz_take_qp(f)][0]->qpn;
        break;
    default:
        take_group(packet, f);
        break;
    }
}

static void take_answer(Fuzz *f, bool odd, const HcaQp *qp, HcaPacket *packet)
{
    packet->syndrome = HCA_AETH(HCA_AETH_ACK, HCA_AETH_CREDITS_INVALID);
    if (odd) {
        packet->syndrome = take8(&f->in);
        packet->msn = take_odd(&f->in) & HCA_PSN_MASK;
        packet->atomic_ack = take8(&f->in);
    }
}

static uint8_t take_opcode(Fuzz *f, unsigned which, uint8_t *operation)
{
    static const uint8_t service[FUZZ_NQPS] = {
        [FUZZ_RC] = HCA_BTH_RC,   [FUZZ_UC] = HCA_BTH_UC,
        [FUZZ_UD] = HCA_BTH_UD,   [FUZZ_SHARED] = HCA_BTH_RC,
        [FUZZ_XRC] = HCA_BTH_XRC, [FUZZ_XRC_BACK] = HCA_BTH_XRC,
    };
    uint8_t kind = take8(&f->in);

    *operation = kind & 0x1f;
    if (kind >> 5 == 7) {
        return take8(&f->in);
    }
    if (kind >> 5 == 6 && f->roce) {
        return HCA_BTH_CNP;
    }
    return service[which] << 5 | *operation;
}

static void act_packet(Fuzz *f)
{
    Wire *wire = f->own;
    unsigned which = fuzz_take_qp(f);
    uint8_t odd = take8(&f->in), operation;
    const HcaQp *qp = card_qp(f->lab->host[0].hca, f->qp[which][0]->qpn);
    HcaPacket packet = { .opcode = take_opcode(f, which, &operation) };
    bool answer = is_answer(operation);
    size_t len;

    frame_headers(f, 1, which, odd & ODD_NETWORK ? take8(&f->in) : 0, &packet);
    packet.payload_len = good_length(operation);
    packet.ack_req = !answer;
    packet.psn = take_psn(f, qp, answer, odd & ODD_PSN);
    if (odd & ODD_LENGTH) {
        packet.payload_len = fuzz_take_len(f) % (HCA_MAX_MTU + 1);
    }
    take_memory(f, odd & ODD_MEMORY, &packet);
    packet.srqn = f->srq[FUZZ_SRQ_XRC][0]->srqn;
    if (which >= FUZZ_XRC && (odd & ODD_KEYS)) {
        packet.srqn = take_below(&f->in, 10);
    }
    take_answer(f, odd & ODD_ANSWER, qp, &packet);
    if (odd & ODD_NETWORK) {
        take_network(f, &packet);
    }
    if (odd & ODD_KEYS) {
        take_keys(f, &packet);
    }
    if (odd & ODD_FLAGS) {
        uint8_t flags = take8(&f->in);

        packet.solicited = flags & 1;
        packet.ack_req = flags & 2;
        packet.mig_req = flags & 4;
        packet.becn = flags & 8;
        packet.tclass |= flags >> 6;
        packet.swap_add = packet.compare = flags >> 4 & 1;
    }
    len = frame_build(f->roce, &packet, wire->frame);
    if (odd & ODD_BYTES) {
        bool broken = take_below(&f->in, 4) == 0;

        if (take_below(&f->in, 4) == 0) {
            len = 1 + take_below(&f->in, len);
        }
        frame_edit(f, wire->frame, len);
        if (!broken) {
            frame_mend(f->roce, wire->frame, len);
        }
    }
    frame_inject(f, 1, wire->frame, len);
}

/* ---- what takes more than one step ---- */

/* Operations of a service, the usual ones first. */
static uint8_t take_operation(Fuzz *f, unsigned which)
{
    static const uint8_t datagram[] = { HCA_SEND_ONLY, HCA_SEND_ONLY_IMM };
    uint8_t operation;

    if (which == FUZZ_UD) {
        return datagram[take_bool(&f->in)];
    }
    operation = take_below(&f->in, which == FUZZ_UC ? HCA_READ_REQUEST
                                                    : HCA_FETCH_ADD + 3);
    /* Behind atomics there are numbers that are reserved. */
    return operation <= HCA_FETCH_ADD
               ? operation
               : HCA_FLUSH + (operation - HCA_FETCH_ADD - 1);
}

/* A good packet, with marks that a switch makes, or to a group. */
static void act_good_packet(Fuzz *f)
{
    static const uint8_t service[FUZZ_NQPS] = { HCA_BTH_RC, HCA_BTH_UC,
                                                HCA_BTH_UD };
    Wire *wire = f->own;
    unsigned which = fuzz_take_qp(f);
    uint8_t operation = take_operation(f, which), what = take8(&f->in);
    const HcaQp *qp = card_qp(f->lab->host[0].hca, f->qp[which][0]->qpn);
    HcaPacket packet = {
        .opcode = service[which] << 5 | operation,
        .payload_len = good_length(operation),
    };

    frame_headers(f, 1, which, what & 7, &packet);
    packet.psn = take_psn(f, qp, is_answer(operation), false);
    packet.tclass = what >> 3 & 3;
    packet.ack_req = what & 0x20;
    take_memory(f, false, &packet);
    take_answer(f, false, qp, &packet);
    if (what & 0x40) {
        take_group(&packet, f);
    }
    if (what & 0x80 && f->roce) {
        packet.opcode = HCA_BTH_CNP;
        packet.payload_len = 0;
    }
    frame_inject(f, 1, wire->frame, frame_build(f->roce, &packet, wire->frame));
}

/* A packet whose headers are odd, but agree with each other. */
static void act_odd_headers(Fuzz *f)
{
    Wire *wire = f->own;
    unsigned which = fuzz_take_qp(f);
    uint8_t operation;
    const HcaQp *qp = card_qp(f->lab->host[0].hca, f->qp[which][0]->qpn);
    HcaPacket packet = { .opcode = take_opcode(f, which, &operation) };
    size_t len;

    frame_headers(f, 1, which, take8(&f->in), &packet);
    packet.payload_len = good_length(operation);
    packet.psn = take_psn(f, qp, is_answer(operation), false);
    take_memory(f, false, &packet);
    len = frame_build(f->roce, &packet, wire->frame);
    len = frame_spoil(f, wire->frame, len);
    frame_inject(f, 1, wire->frame, len);
}

/* Requests of the card, and an answer before the peer's own. */
static void act_answer(Fuzz *f)
{
    Wire *wire = f->own;
    unsigned n = 1 + take_below(&f->in, FUZZ_MOST_WRS);
    HcaQp *qp = card_qp(f->lab->host[0].hca, f->qp[FUZZ_RC][0]->qpn);
    HcaPacket packet = { 0 };
    uint8_t operation, odd;

    fuzz_post(f, 0, FUZZ_RC, n);
    for (unsigned turns = take_below(&f->in, 4); turns; turns--) {
        lab_step(f->lab);
    }
    odd = take8(&f->in);
    operation = HCA_ACK - take_below(&f->in, 5) + (odd & 1);
    packet.opcode = HCA_BTH_RC << 5 | operation;
    frame_headers(f, 1, FUZZ_RC, 0, &packet);
    packet.psn = qp->req.unacked_psn + take_below(&f->in, 16);
    packet.psn &= HCA_PSN_MASK;
    packet.payload_len = odd & 2 ? fuzz_take_len(f) % (HCA_MAX_MTU + 1)
                                 : good_length(operation);
    take_answer(f, odd & 4, qp, &packet);
    frame_inject(f, 1, wire->frame, frame_build(f->roce, &packet, wire->frame));
}

/* A long Read whose memory goes while it is answered, or before. */
static void act_fleeting(Fuzz *f)
{
    Wire *wire = f->own;
    const HcaQp *qp = card_qp(f->lab->host[0].hca, f->qp[FUZZ_RC][0]->qpn);
    const Mr *mr = f->mr[0][FUZZ_READABLE];
    HcaPacket packet = { .opcode = HCA_READ_REQUEST, .ack_req = true };
    unsigned turns = take_below(&f->in, 4);

    frame_headers(f, 1, FUZZ_RC, 0, &packet);
    packet.psn = (qp->resp.expected_psn - take_below(&f->in, 64)) &
                 HCA_PSN_MASK;
    packet.rkey = mr->key;
    packet.va = mr->va;
    packet.dma_len = 256 * take_below(&f->in, 24);
    for (unsigned n = 1 + take_bool(&f->in); n; n--) {
        frame_inject(f, 1, wire->frame,
                     frame_build(f->roce, &packet, wire->frame));
    }
    for (; turns && lab_step(f->lab); turns--) {
        continue;
    }
    driver_cmd(f->pair->drv[0], RDMA_HCA_CMD_HW2SW_MPT, 0, mr_index(mr), 0, 0,
               NULL);
    fuzz_rest(f);
    fuzz_bring_back(f, mr);
}

/* Anything, as long as the input goes. */
static void act_noise(Fuzz *f)
{
    Wire *wire = f->own;
    size_t len = 1 + take_below(&f->in, 120);

    take_bytes(&f->in, wire->frame, len);
    if (take_bool(&f->in)) {
        frame_mend(f->roce, wire->frame, len);
    }
    frame_inject(f, fuzz_take_side(f), wire->frame, len);
}

static const FuzzAction actions[] = {
    { "packet", act_packet },      { "packet", act_packet },
    { "repeat", act_repeat },      { "mishap", act_mishap },
    { "noise", act_noise },        { "send", fuzz_act_send },
    { "recv", fuzz_act_recv },     { "poll", fuzz_act_poll },
    { "turns", fuzz_act_turns },   { "rest", fuzz_act_rest },
    { "time", fuzz_act_time },     { "revive", fuzz_act_revive },
    { "modify", fuzz_act_modify }, { "group", fuzz_act_group },
    { "cable", fuzz_act_cable },   { "events", fuzz_act_events },
    { "gid", fuzz_act_gid },       { "multicast", fuzz_act_multicast },
    { "region", fuzz_act_region }, { "good packet", act_good_packet },
    { "answer", act_answer },      { "odd headers", act_odd_headers },
    { "fleeting", act_fleeting },  { "exchange", fuzz_act_exchange },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static Wire wire;
    Fuzz f;

    wire.f = &f;
    wire.mishap[0].packets = wire.mishap[1].packets = NEVER;
    wire.len[0] = wire.len[1] = 0;
    fuzz_begin(&f, data, size, FUZZ_GUEST_GOOD);
    f.own = &wire;
    lab_tap(f.lab, tap, &wire);
    fuzz_play(&f, actions, G_N_ELEMENTS(actions));
    fuzz_end(&f);
    return 0;
}
