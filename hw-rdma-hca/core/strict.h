/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The strict mode (property strict): what a program does that works here and
 * breaks elsewhere is told, in the flight recorder and by a line of the machine's
 * log; once for each kind and QP. docs/strict.md has each kind with the clause that
 * it breaks. Off, it costs one look at the configuration where something like that
 * may happen.
 */
#ifndef HCA_STRICT_H
#define HCA_STRICT_H

#include <sys/uio.h>

#include "card.h"

typedef enum HcaStrictKind {
    HCA_STRICT_SQ_OVERRUN, /* a send WQE in the slot of one that is in use */
    HCA_STRICT_NO_RECEIVE, /* a message for which no receive is posted */
    HCA_STRICT_PAYLOAD,    /* it changed while its send was on its way */
    HCA_STRICT_KEY_GOING,  /* the peer used a key whose end was posted */
    HCA_STRICT_KEY_READ,   /* it invalidated one by which it still reads */
    HCA_STRICT_RD_ATOMIC,  /* more Reads and atomics than were agreed on */
    HCA_STRICT_PSN_ALIKE,  /* both ends begin with the same PSN */
    HCA_STRICT_QPN_SOON,   /* a number while its packets may be on their way */
    HCA_STRICT_CQ_SMALL,   /* for what its QPs may complete */
    HCA_STRICT_NKINDS
} HcaStrictKind;

typedef struct HcaStrict HcaStrict;

/* NULL unless the configuration asks for it. */
HcaStrict *hca_strict_new(const HcaConfig *config);
void hca_strict_free(HcaStrict *strict);
/* A reset: what was told, and QPs' last lives, are forgotten. */
void hca_strict_reset(HcaStrict *strict, const HcaConfig *config);

static inline bool hca_is_strict(const Hca *hca)
{
    return hca->strict;
}

/* Tell it, of a strict card; @index: of the work request, or what @kind has. */
void hca_strict_tell(Hca *hca, HcaQp *qp, HcaStrictKind kind, uint32_t index);
/* Of a strict card: a QP has changed its state. */
void hca_strict_state(Hca *hca, HcaQp *qp, uint8_t old_state);
/* What a payload is known by; never 0. */
uint32_t hca_strict_sum(const struct iovec *iov, unsigned iovcnt);
/* For people: the name that docs/strict.md has. */
const char *hca_strict_name(uint64_t kind);

/* What is saved of it. */
extern const HcaSection hca_strict_section;

#endif /* HCA_STRICT_H */
