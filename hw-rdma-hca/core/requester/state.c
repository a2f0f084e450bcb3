/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is saved of requesters beside the QP: packets and Reads that are out, each
 * with its pieces in a section behind them, in the same order.
 */
#include "../qp_state.h"
#include "units.h"

bool hca_requester_load_qp(HcaQp *qp)
{
    HcaRequester *req = &qp->req;

    req->swpb = req->rpb = req->reb = (HcaMqList) { 0 };
    req->resend_swpb = req->resend_rpb = HCA_MQ_NONE;
    req->swpb_elements = req->swpb_memory = req->locals = 0;
    return req->next_psn <= HCA_PSN_MASK && req->unacked_psn <= HCA_PSN_MASK &&
           req->barrier.ref.opcode < HCA_NOPCODES;
}

/* Packets */

typedef struct Sent {
    uint32_t qpn;
    bool resend; /* it is the next one to be sent again */
    HcaSentPacket packet;
} Sent;

static const HcaField list_fields[] = {
    HCA_DERIVED(HcaMqList, head),
    HCA_DERIVED(HcaMqList, tail),
    HCA_DERIVED(HcaMqList, count),
};
static const HcaStruct list_struct = HCA_STRUCT(HcaMqList, list_fields);

static const HcaField packet_fields[] = {
    HCA_SAVED(HcaSentPacket, psn),
    HCA_SAVED(HcaSentPacket, wqe_offset),
    HCA_SAVED(HcaSentPacket, wqe_opcode),
    HCA_SAVED(HcaSentPacket, operation),
    HCA_SAVED(HcaSentPacket, flags),
    HCA_SAVED_STRUCT(HcaSentPacket, planned, hca_planned_struct),
    HCA_SAVED(HcaSentPacket, nrefs),
    HCA_SAVED(HcaSentPacket, len),
    HCA_SAVED(HcaSentPacket, msg_len),
    HCA_SAVED(HcaSentPacket, imm_be),
    HCA_SAVED(HcaSentPacket, rkey),
    HCA_SAVED(HcaSentPacket, srqn),
    HCA_SAVED(HcaSentPacket, sum),
    HCA_SAVED(HcaSentPacket, raddr),
};
static const HcaStruct packet_struct = HCA_STRUCT(HcaSentPacket, packet_fields);

static const HcaField sent_fields[] = {
    HCA_SAVED(Sent, qpn),
    HCA_SAVED(Sent, resend),
    HCA_SAVED_STRUCT(Sent, packet, packet_struct),
};
static const HcaStruct sent_struct = HCA_STRUCT(Sent, sent_fields);

static void save_sent(void *room, GArray *records)
{
    Hca *hca = room;

    for (HcaQp *qp = hca_qp_next(hca->cm, NULL); qp;
         qp = hca_qp_next(hca->cm, qp)) {
        uint32_t at = qp->req.swpb.count ? qp->req.swpb.head : HCA_MQ_NONE;

        while (at != HCA_MQ_NONE) {
            uint32_t next;
            Sent sent = { qp->qpn, qp->req.resend_swpb == at,
                          *hca_mq_swpb_at(hca, at, &next) };

            g_array_append_val(records, sent);
            at = next;
        }
    }
}

/* What its WQE has it be, or a plan of faults (spoil() in trans_control.c). */
static bool operation_ok(const HcaSentPacket *packet, const HcaSendOp *op)
{
    uint8_t operation = packet->operation;

    switch (packet->planned.way) {
    case HCA_PLANNED_KEY:
        if (operation == HCA_SEND_ONLY_INV || operation == HCA_SEND_LAST_INV) {
            return true;
        }
        break;
    case HCA_PLANNED_REQUEST:
        if (operation == HCA_SEND_LAST) {
            return true;
        }
        break;
    }
    return operation == op->first || operation == op->middle ||
           operation == op->last || operation == op->only;
}

static bool packet_ok(const HcaQp *qp, const HcaSentPacket *packet)
{
    const HcaSendOp *op;

    if (packet->wqe_opcode >= HCA_NOPCODES || packet->psn > HCA_PSN_MASK ||
        packet->nrefs > RDMA_HCA_MAX_SGE || packet->len > qp->pmtu ||
        packet->planned.way > HCA_PLANNED_ANSWER) {
        return false;
    }
    op = hca_send_op(packet->wqe_opcode);
    if (packet->local) {
        return !packet->nrefs && !packet->len;
    }
    return op->services >> qp->attr.service & 1 &&
           op->transfer == HCA_TRANSFER_PAYLOAD && operation_ok(packet, op);
}

static bool load_sent(void *room, const void *records, uint32_t n,
                      HcaStateError *error)
{
    static const HcaSge none[RDMA_HCA_MAX_SGE];
    Hca *hca = room;
    const Sent *sent = records;

    for (; n; n--, sent++) {
        HcaQp *qp = hca_qp_peek(hca->cm, sent->qpn);

        if (!qp || !packet_ok(qp, &sent->packet) ||
            !hca_mq_swpb_holds(hca, sent->packet.nrefs)) {
            return hca_state_refuse(error, "a packet of QP %u", sent->qpn);
        }
        hca_mq_swpb_insert(hca, qp, &sent->packet, none);
        if (sent->resend) {
            qp->req.resend_swpb = qp->req.swpb.tail;
        }
    }
    return hca_mq_shares_ok(hca) ||
           hca_state_refuse(error, "more than the pool has");
}

const HcaSection hca_sent_section = HCA_SECTION(
    "sent", 1, &sent_struct, save_sent, load_sent, &list_struct, &hca_mq_struct,
    &hca_mq_packet_struct, &hca_mq_pool_struct);

static void save_pieces(void *room, GArray *records)
{
    Hca *hca = room;
    HcaSge refs[RDMA_HCA_MAX_SGE];

    for (HcaQp *qp = hca_qp_next(hca->cm, NULL); qp;
         qp = hca_qp_next(hca->cm, qp)) {
        uint32_t at = qp->req.swpb.count ? qp->req.swpb.head : HCA_MQ_NONE;

        while (at != HCA_MQ_NONE) {
            g_array_append_vals(records, refs, hca_mq_swpb_refs(hca, at, refs));
            hca_mq_swpb_at(hca, at, &at);
        }
    }
}

static uint64_t sum_of(const HcaSge *sge, unsigned n)
{
    uint64_t sum = 0;

    while (n--) {
        sum += sge++->len;
    }
    return sum;
}

/* Those of @qp's packets; NULL: they do not fit. */
static const HcaSge *load_pieces_of(Hca *hca, HcaQp *qp, const HcaSge *sge,
                                    uint32_t *n)
{
    uint32_t at = qp->req.swpb.count ? qp->req.swpb.head : HCA_MQ_NONE;

    while (at != HCA_MQ_NONE) {
        uint32_t next;
        const HcaSentPacket *packet = hca_mq_swpb_at(hca, at, &next);

        if (packet->nrefs > *n || sum_of(sge, packet->nrefs) != packet->len) {
            return NULL;
        }
        hca_mq_swpb_set_refs(hca, at, sge);
        sge += packet->nrefs;
        *n -= packet->nrefs;
        at = next;
    }
    return sge;
}

static bool load_pieces(void *room, const void *records, uint32_t n,
                        HcaStateError *error)
{
    Hca *hca = room;
    const HcaSge *sge = records;

    for (HcaQp *qp = hca_qp_next(hca->cm, NULL); qp;
         qp = hca_qp_next(hca->cm, qp)) {
        sge = load_pieces_of(hca, qp, sge, &n);
        if (!sge) {
            return hca_state_refuse(error, "pieces of QP %u", qp->qpn);
        }
    }
    return !n || hca_state_refuse(error, "%u pieces of no packet", n);
}

const HcaSection hca_sent_piece_section = HCA_SECTION(
    "sent-piece", 1, &hca_sge_struct, save_pieces, load_pieces);

/* Reads, atomics and FLUSHes */

typedef struct Read {
    uint32_t qpn;
    bool resend;
    HcaSentRead read;
} Read;

static const HcaField of_read_fields[] = {
    HCA_SAVED(HcaSentRead, psn),
    HCA_SAVED(HcaSentRead, npsn),
    HCA_SAVED(HcaSentRead, wqe_opcode),
    HCA_SAVED(HcaSentRead, signalled),
    HCA_SAVED(HcaSentRead, wqe_offset),
    HCA_SAVED(HcaSentRead, raddr),
    HCA_SAVED(HcaSentRead, rkey),
    HCA_SAVED(HcaSentRead, len),
    HCA_SAVED(HcaSentRead, received),
    HCA_SAVED(HcaSentRead, answered),
    HCA_SAVED(HcaSentRead, asked),
    HCA_SAVED_STRUCT(HcaSentRead, planned, hca_planned_struct),
    HCA_SAVED(HcaSentRead, swap_add),
    HCA_SAVED(HcaSentRead, compare),
    HCA_SAVED(HcaSentRead, value),
    HCA_SAVED(HcaSentRead, feth),
    HCA_SAVED(HcaSentRead, flush_len),
    HCA_SAVED(HcaSentRead, srqn),
    HCA_SAVED(HcaSentRead, nentries),
};
static const HcaStruct of_read_struct = HCA_STRUCT(HcaSentRead, of_read_fields);

static const HcaField read_fields[] = {
    HCA_SAVED(Read, qpn),
    HCA_SAVED(Read, resend),
    HCA_SAVED_STRUCT(Read, read, of_read_struct),
};
static const HcaStruct read_struct = HCA_STRUCT(Read, read_fields);

static void save_reads(void *room, GArray *records)
{
    Hca *hca = room;

    for (HcaQp *qp = hca_qp_next(hca->cm, NULL); qp;
         qp = hca_qp_next(hca->cm, qp)) {
        uint32_t at = qp->req.rpb.count ? qp->req.rpb.head : HCA_MQ_NONE;

        while (at != HCA_MQ_NONE) {
            uint32_t next;
            Read read = { qp->qpn, qp->req.resend_rpb == at,
                          *hca_mq_rpb_at(hca, at, &next) };

            g_array_append_val(records, read);
            at = next;
        }
    }
}

static bool read_ok(const HcaQp *qp, const HcaSentRead *read)
{
    return read->wqe_opcode < HCA_NOPCODES &&
           hca_has_response(hca_send_op(read->wqe_opcode)) &&
           hca_send_op(read->wqe_opcode)->services >> qp->attr.service & 1 &&
           read->psn <= HCA_PSN_MASK && read->npsn &&
           read->npsn <= HCA_PSN_MASK / 2 && read->answered <= read->npsn &&
           read->asked <= read->npsn && read->received <= read->len &&
           read->nentries <= RDMA_HCA_MAX_SGE &&
           read->planned.way <= HCA_PLANNED_ANSWER;
}

static bool load_reads(void *room, const void *records, uint32_t n,
                       HcaStateError *error)
{
    static const HcaSge none[RDMA_HCA_MAX_SGE];
    Hca *hca = room;
    const Read *read = records;

    for (; n; n--, read++) {
        HcaQp *qp = hca_qp_peek(hca->cm, read->qpn);

        if (!qp || !read_ok(qp, &read->read) ||
            !hca_mq_read_holds(hca, read->read.nentries)) {
            return hca_state_refuse(error, "a Read of QP %u", read->qpn);
        }
        hca_mq_read_insert(hca, qp, &read->read, none);
        if (read->resend) {
            qp->req.resend_rpb = qp->req.rpb.tail;
        }
    }
    return hca_mq_shares_ok(hca) ||
           hca_state_refuse(error, "more than the pools have");
}

const HcaSection hca_read_section = HCA_SECTION(
    "read", 1, &read_struct, save_reads, load_reads, &hca_mq_read_struct);

static void save_entries(void *room, GArray *records)
{
    Hca *hca = room;

    for (HcaQp *qp = hca_qp_next(hca->cm, NULL); qp;
         qp = hca_qp_next(hca->cm, qp)) {
        hca_mq_reb_save(hca, qp, records);
    }
}

static bool load_entries(void *room, const void *records, uint32_t n,
                         HcaStateError *error)
{
    Hca *hca = room;
    const HcaSge *sge = records;

    for (HcaQp *qp = hca_qp_next(hca->cm, NULL); qp;
         qp = hca_qp_next(hca->cm, qp)) {
        if (qp->req.reb.count > n) {
            return hca_state_refuse(error, "entries of QP %u", qp->qpn);
        }
        hca_mq_reb_load(hca, qp, sge);
        sge += qp->req.reb.count;
        n -= qp->req.reb.count;
    }
    return !n || hca_state_refuse(error, "%u entries of no Read", n);
}

const HcaSection hca_read_entry_section = HCA_SECTION(
    "read-entry", 1, &hca_sge_struct, save_entries, load_entries,
    &hca_mq_entry_struct);
