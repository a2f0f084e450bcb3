/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What each service is: one row. Which operations it has is send_op.c's and
 * responder/header_check.c's, which attributes cxtmgt/qp_attr.c's.
 */
#ifndef HCA_SERVICE_H
#define HCA_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "verbs.h"

#define HCA_SERVICE_NO_BTH 0xff

typedef struct HcaServiceRow {
    uint8_t bth;   /* its number in a BTH opcode (IBA 9.2), or NO_BTH */
    bool reliable; /* requests are acknowledged, and sent again */
    bool sends;    /* has a send queue, and a CQ for it */
    bool serves;   /* executes requests of a peer */
    bool receives; /* has receives of its own, be it of an SRQ, and a CQ */
    bool xrc;      /* requests name an SRQ */
    bool datagram; /* a message is one packet */
    bool raw;      /* frames; its packets have no BTH */
} HcaServiceRow;

extern const HcaServiceRow hca_services[HCA_NSERVICES];

/* @service is an HcaService, or any number below HCA_NSERVICES. */
static inline const HcaServiceRow *hca_service(uint8_t service)
{
    return &hca_services[service];
}

/* Whether QPs may be of @service, any number. */
static inline bool hca_service_exists(uint8_t service)
{
    return service < HCA_NSERVICES &&
           (hca_service(service)->sends || hca_service(service)->serves);
}

#endif /* HCA_SERVICE_H */
