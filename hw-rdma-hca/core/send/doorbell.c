/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DoorbellProcessing (engine document 2.4.1, table 7.1).
 *
 * The document reads the WQE here and queues it (Q1). We queue the reference:
 * one queue for each QP, so that a QP that has to wait holds up no other. The
 * queue has a place for each slot of the send queue; more doorbells than that
 * cannot come from a driver that owns its slots.
 */
#include "send.h"

static void bad_doorbell(Hca *hca, uint64_t *counter, uint32_t qpn,
                         uint32_t uar, HcaDoorbellError error)
{
    (*counter)++;
    hca_trace(hca, HCA_TRACE_DOORBELL_BAD, qpn, uar, error, 0);
}

void hca_send_doorbell(Hca *hca, uint32_t uar, uint32_t qpn,
                       const HcaWqeRef *ref)
{
    HcaQp *qp = hca_qp_find(hca->cm, qpn);
    HcaSendQueue *sq;

    hca->send->counters.doorbells++;
    if (!qp) {
        bad_doorbell(hca, &hca->send->counters.db_bad_qpn, qpn, uar,
                     HCA_DB_QPN);
        return;
    }
    if (qp->attr.uar != uar) {
        bad_doorbell(hca, &hca->send->counters.db_bad_uar, qpn, uar,
                     HCA_DB_UAR);
        return;
    }
    if (qp->state < HCA_QP_RTS) {
        bad_doorbell(hca, &hca->send->counters.db_bad_state, qpn, uar,
                     HCA_DB_STATE);
        return;
    }
    sq = &qp->send;
    if (sq->doorbell_tail - sq->doorbell_head > sq->doorbell_mask ||
        !sq->doorbells) {
        bad_doorbell(hca, &hca->send->counters.db_overflow, qpn, uar,
                     HCA_DB_OVERFLOW);
        if (qp->state != HCA_QP_ERR) {
            hca_qp_event(hca->cm, qp, HCA_EVENT_WQ_CATAS_ERROR);
            hca_qp_set_state(hca->cm, qp, HCA_QP_ERR);
        }
        return;
    }
    hca_trace(hca, HCA_TRACE_DOORBELL, qpn, ref->offset, ref->size,
              ref->opcode);
    sq->doorbells[sq->doorbell_tail++ & sq->doorbell_mask] = *ref;
    hca_schedule_send(hca, qp);
}

HcaSender *hca_send_new(void)
{
    return g_new0(HcaSender, 1);
}

void hca_send_free(HcaSender *send)
{
    g_free(send);
}

void hca_send_reset(HcaSender *send)
{
    memset(&send->counters, 0, sizeof(send->counters));
}

static void make_queue(HcaQp *qp)
{
    HcaSendQueue *sq = &qp->send;
    uint32_t room = hca_qp_doorbells(&qp->attr);

    memset(sq, 0, sizeof(*sq));
    if (room) {
        sq->doorbells = g_new(HcaWqeRef, room);
        sq->doorbell_mask = room - 1;
    }
}

void hca_send_state(Hca *hca, HcaQp *qp, uint8_t old_state)
{
    switch (qp->state) {
    case HCA_QP_RST:
        g_free(qp->send.doorbells);
        memset(&qp->send, 0, sizeof(qp->send));
        break;
    case HCA_QP_INIT:
        if (old_state == HCA_QP_RST) {
            make_queue(qp);
        }
        break;
    default:
        if (old_state == HCA_QP_SQE) {
            qp->send.flushing = true;
            qp->send.flush_end = qp->send.doorbell_tail;
        } else if (qp->state == HCA_QP_RTS) {
            hca_wqe_parse_again(hca, qp);
        }
        /* WQEs may be runnable now, or have to be flushed. */
        hca_schedule_send(hca, qp);
        break;
    }
}
