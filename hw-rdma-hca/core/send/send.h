/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Send WQE processing (engine document 2).
 *
 * doorbell.c       2.4.1: from doorbell to WQE reference
 * wqe_scheduler.c  2.4.2: chained before doorbelled
 * wqe_indicator.c  2.4.4: which QPs follow a chain
 * wqe_parse.c      2.4.3: the checks of a WQE and their outcomes
 * special.c        WQEs of QP 0 and QP 1 with headers of their own
 * data_pack.c      2.4.5: payload of a packet gathered from the entries
 */
#ifndef HCA_SEND_H
#define HCA_SEND_H

#include "../card.h"
#include "../cxtmgt/cxtmgt.h"
#include "../port/port.h"
#include "../requester/requester.h"
#include "../send_op.h"
#include "../v2p/v2p.h"
#include "../wqe_format.h"

/* Which check of 2.4.3.1.2 a WQE failed; the CQE's vendor_err. */
typedef enum HcaWqeCheck {
    HCA_WQE_GOOD,
    HCA_WQE_BAD_PLACE,   /* reference outside the send queue */
    HCA_WQE_UNREADABLE,  /* the send queue's memory was refused */
    HCA_WQE_BAD_OPCODE,  /* of no use with this service type */
    HCA_WQE_BAD_UNITS,   /* units missing, too many or senseless */
    HCA_WQE_BAD_LENGTH,  /* above the message or packet limit */
    HCA_WQE_BAD_ENTRY,   /* a gather or scatter entry was refused */
    HCA_WQE_BAD_ADDRESS, /* UD: no source for the address vector */
    HCA_NWQE_CHECKS
} HcaWqeCheck;

/* Why a doorbell was ignored. */
typedef enum HcaDoorbellError {
    HCA_DB_QPN,      /* no such QP */
    HCA_DB_UAR,      /* the QP belongs to another UAR page */
    HCA_DB_STATE,    /* the QP does not send in its state */
    HCA_DB_OVERFLOW, /* more doorbells than the send queue has slots */
} HcaDoorbellError;

typedef struct HcaSendCounters {
    uint64_t doorbells, db_bad_uar, db_bad_qpn, db_bad_state, db_overflow;
    uint64_t wqes, wqes_chained;
    uint64_t wqe_opcodes[HCA_NOPCODES];
    uint64_t wqe_checks[HCA_NWQE_CHECKS];
} HcaSendCounters;

/* What is not a single QP's. */
typedef struct HcaSender {
    HcaSendCounters counters;
} HcaSender;

HcaSender *hca_send_new(void);
void hca_send_free(HcaSender *send);
void hca_send_reset(HcaSender *send);

/* A doorbell of UAR page @uar: @qpn is to send from @ref on. */
void hca_send_doorbell(Hca *hca, uint32_t uar, uint32_t qpn,
                       const HcaWqeRef *ref);

/*
 * Give @qp a turn: resend, then send up to @budget packets of its WQEs; in
 * ERR and SQE, flush up to @budget WQEs.
 */
HcaTurn hca_send_run(Hca *hca, HcaQp *qp, unsigned budget);

/* Units of the documents; used inside the room only. */

/* Whether the next WQE ends unsent. */
static inline bool hca_send_flushes(const HcaQp *qp)
{
    return qp->state == HCA_QP_ERR || qp->state == HCA_QP_SQE ||
           qp->send.flushing;
}

/* WQEScheduler: fetch and parse the next WQE into qp->send.wqe, if any. */
bool hca_wqe_schedule(Hca *hca, HcaQp *qp);
/* WQEIndicatorTable: the link that the last WQE held. */
void hca_wqe_indicate(HcaQp *qp, const HcaWqeRef *next);
void hca_wqe_indicate_end(HcaQp *qp);
/* Whether what parsing needs is here, if memory takes its time. */
bool hca_wqe_is_here(Hca *hca, HcaQp *qp, HcaV2pChannel channel,
                     const HcaWqeRef *ref);
/* WQEParse: @channel tells who found @ref. The next link is indicated. */
void hca_wqe_parse(Hca *hca, HcaQp *qp, HcaV2pChannel channel,
                   const HcaWqeRef *ref, HcaWqe *wqe);
/*
 * Whether WQEs of @qp have the packet's headers in memory; where (false: that is
 * no such WQE), with the payload's entries in @wqe; and who the peer is by them, of
 * which @headers is the card's copy.
 */
bool hca_special_has_headers(const Hca *hca, const HcaQp *qp);
bool hca_special_find_headers(const Hca *hca, const HcaQp *qp,
                              const uint8_t *bytes, HcaWqe *wqe,
                              HcaMatchInfo *info);
HcaWqeCheck hca_special_take_headers(const Hca *hca, const HcaQp *qp,
                                     const uint8_t *headers, uint32_t len,
                                     HcaWqe *wqe);
/*
 * Ask once what a plan of faults has in mind for the WQE in hand. True: the QP
 * has to break.
 */
bool hca_wqe_plan(Hca *hca, HcaQp *qp);
/* The QP may send again: look anew at the WQE in hand, if it is not begun. */
void hca_wqe_parse_again(Hca *hca, HcaQp *qp);
/* DataPack: offer the WQE in hand, packet by packet. */
HcaTurn hca_data_pack(Hca *hca, HcaQp *qp, unsigned *budget);

/* The QP's state changed: make or free the queue. */
void hca_send_state(Hca *hca, HcaQp *qp, uint8_t old_state);

/* state.c: what is saved beside the QP, in this order; the queue of one loaded. */
extern const HcaSection hca_doorbell_section, hca_wqe_section,
    hca_wqe_count_section;
bool hca_send_load_qp(HcaQp *qp);

#endif /* HCA_SEND_H */
