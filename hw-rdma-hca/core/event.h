/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events of the card's, and where they wait for room in their event queue. */
#ifndef HCA_EVENT_H
#define HCA_EVENT_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* What happened to whom (table 3-2-25). */
typedef struct HcaEvent {
    uint8_t type; /* HcaEventType */
    uint8_t subtype;
    uint8_t status;    /* CMD: HcaStatus, and what else it gives */
    uint32_t number;   /* QPN, CQN, EQN, SRQN, port, or token of a command */
    uint32_t syndrome; /* CQ_ERROR; PORT_MNG: HCA_CHANGED_* */
    uint64_t out_param;
} HcaEvent;

/*
 * A place for one event, of who has it: its source, a QP, a CQ and so on. Of a
 * source that goes hca_eq_forget() takes it back.
 */
typedef struct HcaEventPlace {
    HcaEvent event; /* if one waits */
    GQueue *list;   /* eq.c's, that it waits in; NULL: none does */
    GList link;
} HcaEventPlace;

static inline bool hca_event_waits(const HcaEventPlace *place)
{
    return place->list;
}

#endif /* HCA_EVENT_H */
