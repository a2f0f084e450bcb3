/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Statuses of completions that can be planned, and how each comes about: as much
 * of it as can be is not told but happens, and the peer judges for itself.
 */
#ifndef HCA_FAULT_STATUS_H
#define HCA_FAULT_STATUS_H

#include <stdbool.h>
#include <stdint.h>

/* How a send work request comes to its end. */
typedef enum HcaPlannedWay {
    HCA_PLANNED_NOT,
    HCA_PLANNED_LOCAL,   /* the card refuses it: nothing is sent */
    HCA_PLANNED_KEY,     /* it is sent with a key that the peer refuses... */
    HCA_PLANNED_REQUEST, /* ...or out of place in its message */
    HCA_PLANNED_LOST,    /* none of its packets leaves */
    HCA_PLANNED_ANSWER,  /* it is sent, and what is answered is no answer */
} HcaPlannedWay;

/* What a plan has in mind for a send work request. */
typedef struct HcaPlanned {
    uint8_t way; /* HcaPlannedWay */
    uint8_t syndrome;
    uint8_t vendor_err;
} HcaPlanned;

/* A status, and where it can be planned. */
typedef struct HcaFaultStatus {
    uint8_t syndrome; /* HcaSyndrome */
    uint8_t way;      /* of a send work request; HCA_PLANNED_NOT */
    bool receive;     /* of a receive... */
    uint8_t nak;      /* ...with this code, HCA_NAK_* */
    bool request;     /* to a request of the peer's... */
    uint8_t event;    /* ...with HcaEventType here, and with this code: */
    uint8_t request_nak;
} HcaFaultStatus;

/* NULL: it cannot be planned at all. */
const HcaFaultStatus *hca_fault_status(uint8_t syndrome);

/* The @i-th of them; NULL behind the last. */
const HcaFaultStatus *hca_fault_status_at(unsigned i);

#endif /* HCA_FAULT_STATUS_H */
