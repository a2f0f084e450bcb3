/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Congestion control of a RoCE card: how many packets of a QP may be on their
 * way (RoCE engine document 7.4, OSQ_PER_QP), and what a CNP does to that.
 */
#ifndef HCA_REQUESTER_CONGESTION_H
#define HCA_REQUESTER_CONGESTION_H

#include "../card.h"

/* Requests of @qp that may be on their way now. */
uint32_t hca_congestion_limit(const Hca *hca, const HcaQp *qp);

/* A CNP for @qp (annex A17.9.3), in RTS or SQD. */
void hca_congestion_receive(Hca *hca, HcaQp *qp);

/* A deadline of @qp may have come. */
void hca_congestion_timer(Hca *hca, HcaQp *qp, int64_t now);

#endif /* HCA_REQUESTER_CONGESTION_H */
