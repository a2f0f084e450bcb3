/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Contexts as they are in mailboxes and in ICM (interface document 3.2.4 to
 * 3.2.6). get: what software says; put: all of a context.
 */
#ifndef HCA_FRONT_CONTEXTS_H
#define HCA_FRONT_CONTEXTS_H

#include "../../abi/rdma_hca_cxt.h"
#include "../cxtmgt/cxtmgt.h"

/* @roce: the link layer's, which says what its addresses mean. */
void hca_front_get_qp(const struct rdma_hca_qpc *qpc, bool roce,
                      HcaQpAttr *attr);
/* False: it is no context to give to the card. */
bool hca_front_get_cq(const struct rdma_hca_cqc *cqc, HcaCqAttr *attr);
bool hca_front_get_eq(const struct rdma_hca_eqc *eqc, HcaEqAttr *attr);
bool hca_front_get_srq(const struct rdma_hca_srqc *srqc, HcaSrqAttr *attr);

/* For HcaCxtFormat. */
void hca_front_put_qp(uint32_t qpn, const HcaQp *qp, void *cxt);
void hca_front_put_cq(const HcaCq *cq, void *cxt);
void hca_front_put_eq(const HcaEq *eq, uint64_t events, void *cxt);
void hca_front_put_srq(const HcaSrq *srq, void *cxt);

/* What the low word of a CQ doorbell asks for. */
HcaCqArm hca_front_cq_arm(uint32_t low);

#endif /* HCA_FRONT_CONTEXTS_H */
