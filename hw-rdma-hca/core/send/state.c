/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is saved of send queues beside the QP: doorbells, WQEs in hand. */
#include "../qp_state.h"
#include "send.h"

bool hca_send_load_qp(HcaQp *qp)
{
    HcaSendQueue *sq = &qp->send;
    uint32_t room = hca_qp_doorbells(&qp->attr);

    if (room) {
        sq->doorbells = g_new(HcaWqeRef, room);
        sq->doorbell_mask = room - 1;
    }
    sq->doorbell_tail = sq->doorbell_head;
    return sq->chained.opcode < HCA_NOPCODES;
}

/* Doorbells */

typedef struct Doorbell {
    uint32_t qpn;
    HcaWqeRef ref;
} Doorbell;

static const HcaField doorbell_fields[] = {
    HCA_SAVED(Doorbell, qpn),
    HCA_SAVED_STRUCT(Doorbell, ref, hca_wqe_ref_struct),
};
static const HcaStruct doorbell_struct = HCA_STRUCT(Doorbell, doorbell_fields);

static void save_doorbells(void *room, GArray *records)
{
    const Hca *hca = room;

    for (HcaQp *qp = hca_qp_next(hca->cm, NULL); qp;
         qp = hca_qp_next(hca->cm, qp)) {
        const HcaSendQueue *sq = &qp->send;

        for (uint32_t i = sq->doorbell_head; i != sq->doorbell_tail; i++) {
            Doorbell doorbell = { qp->qpn,
                                  sq->doorbells[i & sq->doorbell_mask] };

            g_array_append_val(records, doorbell);
        }
    }
}

static bool load_doorbells(void *room, const void *records, uint32_t n,
                           HcaStateError *error)
{
    const Hca *hca = room;
    const Doorbell *doorbell = records;

    for (; n; n--, doorbell++) {
        HcaQp *qp = hca_qp_peek(hca->cm, doorbell->qpn);
        HcaSendQueue *sq = qp ? &qp->send : NULL;

        if (!sq || !sq->doorbells || doorbell->ref.opcode >= HCA_NOPCODES ||
            sq->doorbell_tail - sq->doorbell_head > sq->doorbell_mask) {
            return hca_state_refuse(error, "no room in QP %u", doorbell->qpn);
        }
        sq->doorbells[sq->doorbell_tail & sq->doorbell_mask] = doorbell->ref;
        sq->doorbells[sq->doorbell_tail++ & sq->doorbell_mask].count = 0;
    }
    return true;
}

const HcaSection hca_doorbell_section = HCA_SECTION(
    "doorbell", 1, &doorbell_struct, save_doorbells, load_doorbells);

/* WQEs in hand */

typedef struct Wqe {
    uint32_t qpn;
    HcaWqe wqe;
    HcaMemOp mem; /* of one that has that, and no entries */
} Wqe;

static const HcaField wqe_fields[] = {
    HCA_SAVED(Wqe, qpn),
    HCA_SAVED_STRUCT(Wqe, wqe, hca_wqe_struct),
    HCA_SAVED_STRUCT(Wqe, mem, hca_mem_op_struct),
};
static const HcaStruct wqe_struct = HCA_STRUCT(Wqe, wqe_fields);

static bool has_mem(const HcaWqe *wqe)
{
    return hca_send_op(wqe->ref.opcode)->mem != HCA_MEM_NONE;
}

static void save_wqes(void *room, GArray *records)
{
    const Hca *hca = room;

    for (HcaQp *qp = hca_qp_next(hca->cm, NULL); qp;
         qp = hca_qp_next(hca->cm, qp)) {
        Wqe wqe = { .qpn = qp->qpn, .wqe = qp->send.wqe };

        if (!qp->send.wqe_valid) {
            continue;
        }
        if (has_mem(&wqe.wqe)) {
            wqe.mem = wqe.wqe.mem;
            wqe.wqe.nsge = 0;
        }
        memset(&wqe.wqe.sge[wqe.wqe.nsge], 0,
               (RDMA_HCA_MAX_SGE - wqe.wqe.nsge) * sizeof(HcaSge));
        g_array_append_val(records, wqe);
    }
}

/* Whether what is left of the message is what is left of its entries. */
static bool entries_ok(const HcaWqe *wqe)
{
    uint64_t left = 0;

    if (wqe->sge_at > wqe->nsge || wqe->sent > wqe->msg_len) {
        return false;
    }
    for (unsigned i = wqe->sge_at; i < wqe->nsge; i++) {
        left += wqe->sge[i].len;
    }
    return wqe->sge_done <= left &&
           left - wqe->sge_done == wqe->msg_len - wqe->sent &&
           (wqe->sge_at == wqe->nsge ||
            wqe->sge_done <= wqe->sge[wqe->sge_at].len);
}

static bool wqe_ok(const HcaQp *qp, const HcaWqe *wqe)
{
    const HcaSendOp *op;

    if (wqe->ref.opcode >= HCA_NOPCODES || wqe->nsge > RDMA_HCA_MAX_SGE ||
        wqe->planned.way > HCA_PLANNED_ANSWER || !hca_path_ok(&wqe->path)) {
        return false;
    }
    if (wqe->syndrome) {
        return true;
    }
    op = hca_send_op(wqe->ref.opcode);
    return op->services >> qp->attr.service & 1 &&
           (op->transfer == HCA_TRANSFER_NONE || entries_ok(wqe)) &&
           wqe->dqpn <= HCA_QPN_MASK;
}

static bool load_wqes(void *room, const void *records, uint32_t n,
                      HcaStateError *error)
{
    const Hca *hca = room;
    const Wqe *wqe = records;

    for (; n; n--, wqe++) {
        HcaQp *qp = hca_qp_peek(hca->cm, wqe->qpn);

        if (!qp || !qp->send.wqe_valid || !wqe_ok(qp, &wqe->wqe)) {
            return hca_state_refuse(error, "a WQE of QP %u", wqe->qpn);
        }
        qp->send.wqe = wqe->wqe;
        qp->send.wqe.ref.count = 0;
        if (has_mem(&wqe->wqe)) {
            qp->send.wqe.mem = wqe->mem;
        }
    }
    return true;
}

const HcaSection hca_wqe_section = HCA_SECTION("wqe", 1, &wqe_struct, save_wqes,
                                               load_wqes);

/* How many WQEs references stand for, where these tell it */

typedef enum Place {
    PLACE_DOORBELL, /* the nth */
    PLACE_CHAINED,
    PLACE_WQE,
} Place;

typedef struct Count {
    uint32_t qpn;
    uint8_t place;
    uint8_t count;
    uint32_t nth;
} Count;

static const HcaField count_fields[] = {
    HCA_SAVED(Count, qpn),
    HCA_SAVED(Count, place),
    HCA_SAVED(Count, count),
    HCA_SAVED(Count, nth),
};
static const HcaStruct count_struct = HCA_STRUCT(Count, count_fields);

/* The reference of a QP there; NULL: there is none. */
static HcaWqeRef *ref_at(HcaQp *qp, uint8_t place, uint32_t nth)
{
    HcaSendQueue *sq = &qp->send;

    switch (place) {
    case PLACE_DOORBELL:
        return nth < sq->doorbell_tail - sq->doorbell_head
                   ? &sq->doorbells[(sq->doorbell_head + nth) &
                                    sq->doorbell_mask]
                   : NULL;
    case PLACE_CHAINED:
        return sq->indicator ? &sq->chained : NULL;
    case PLACE_WQE:
        return sq->wqe_valid ? &sq->wqe.ref : NULL;
    default:
        return NULL;
    }
}

static void save_count(HcaQp *qp, uint8_t place, uint32_t nth, GArray *records)
{
    const HcaWqeRef *ref = ref_at(qp, place, nth);

    if (ref && ref->count) {
        Count count = { qp->qpn, place, ref->count, nth };

        g_array_append_val(records, count);
    }
}

static void save_counts(void *room, GArray *records)
{
    const Hca *hca = room;

    for (HcaQp *qp = hca_qp_next(hca->cm, NULL); qp;
         qp = hca_qp_next(hca->cm, qp)) {
        for (uint32_t i = 0; ref_at(qp, PLACE_DOORBELL, i); i++) {
            save_count(qp, PLACE_DOORBELL, i, records);
        }
        save_count(qp, PLACE_CHAINED, 0, records);
        save_count(qp, PLACE_WQE, 0, records);
    }
}

static bool load_counts(void *room, const void *records, uint32_t n,
                        HcaStateError *error)
{
    const Hca *hca = room;
    const Count *count = records;

    for (; n; n--, count++) {
        HcaQp *qp = hca_qp_peek(hca->cm, count->qpn);
        HcaWqeRef *ref = qp ? ref_at(qp, count->place, count->nth) : NULL;

        if (!ref) {
            return hca_state_refuse(error, "nothing to count in QP %u",
                                    count->qpn);
        }
        ref->count = count->count;
    }
    return true;
}

const HcaSection hca_wqe_count_section = HCA_SECTION(
    "wqe-count", 1, &count_struct, save_counts, load_counts);
