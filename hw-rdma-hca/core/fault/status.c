/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which status can be planned where; the verbs' names are in docs/faults.md. */
#include "status.h"

#include <glib.h>

#include "../verbs.h"
#include "../wire/headers.h"

#define SEND(how) .way = HCA_PLANNED_##how
#define RECEIVE(code) .receive = true, .nak = HCA_NAK_##code
#define REQUEST(code, its_event)                                               \
    .request = true, .request_nak = HCA_NAK_##code,                            \
    .event = HCA_EVENT_##its_event

/* clang-format off */
#define ROW(name, ...) { .syndrome = HCA_SYNDROME_##name, __VA_ARGS__ }

static const HcaFaultStatus rows[] = {
    ROW(LOCAL_LENGTH_ERR, SEND(LOCAL), RECEIVE(INVALID_REQUEST)),
    ROW(LOCAL_QP_OP_ERR, SEND(LOCAL), RECEIVE(REMOTE_OP)),
    ROW(LOCAL_EEC_OP_ERR, SEND(LOCAL)),
    ROW(LOCAL_PROT_ERR, SEND(LOCAL), RECEIVE(REMOTE_OP)),
    ROW(MW_BIND_ERR, SEND(LOCAL)),
    ROW(BAD_RESP_ERR, SEND(ANSWER)),
    ROW(LOCAL_ACCESS_ERR, RECEIVE(REMOTE_OP)),
    ROW(REMOTE_INVAL_REQ_ERR, SEND(REQUEST), RECEIVE(REMOTE_ACCESS),
        REQUEST(INVALID_REQUEST, WQ_INVAL_REQ_ERROR)),
    ROW(REMOTE_ACCESS_ERR, SEND(KEY), REQUEST(REMOTE_ACCESS, WQ_ACCESS_ERROR)),
    /* Only the peer can say so; nothing in a request makes it. */
    ROW(REMOTE_OP_ERR, REQUEST(REMOTE_OP, WQ_CATAS_ERROR)),
    ROW(RETRY_EXC_ERR, SEND(LOST)),
    ROW(LOCAL_RDD_VIOL_ERR, SEND(LOCAL)),
    ROW(REMOTE_INVAL_RD_REQ_ERR, REQUEST(INVALID_RD, WQ_INVAL_REQ_ERROR)),
    ROW(REMOTE_ABORTED_ERR, SEND(ANSWER), RECEIVE(REMOTE_OP)),
    ROW(INVAL_EECN_ERR, SEND(LOCAL)),
    ROW(INVAL_EEC_STATE_ERR, SEND(LOCAL)),
    ROW(FATAL_ERR, SEND(ANSWER), RECEIVE(REMOTE_OP)),
    ROW(RESP_TIMEOUT_ERR, SEND(ANSWER)),
    ROW(GENERAL_ERR, SEND(ANSWER), RECEIVE(REMOTE_OP)),
    ROW(TM_ERR, RECEIVE(REMOTE_OP)),
    ROW(TM_RNDV_INCOMPLETE, RECEIVE(REMOTE_OP)),
};
/* clang-format on */

const HcaFaultStatus *hca_fault_status_at(unsigned i)
{
    return i < G_N_ELEMENTS(rows) ? &rows[i] : NULL;
}

const HcaFaultStatus *hca_fault_status(uint8_t syndrome)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (rows[i].syndrome == syndrome) {
            return &rows[i];
        }
    }
    return NULL;
}
