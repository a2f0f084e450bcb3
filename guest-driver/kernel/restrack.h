/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* restrack.c: what `rdma resource show` tells of objects. */
#ifndef RHCA_RESTRACK_H
#define RHCA_RESTRACK_H

#include <rdma/ib_verbs.h>

/* Put in @msg what the driver knows of it, and what its context says. */
int rhca_res_qp(struct sk_buff *msg, struct ib_qp *ibqp);
int rhca_res_cq(struct sk_buff *msg, struct ib_cq *ibcq);
int rhca_res_mr(struct sk_buff *msg, struct ib_mr *ibmr);
int rhca_res_srq(struct sk_buff *msg, struct ib_srq *ibsrq);

/* The context that the card has of it; -EAGAIN: none. */
int rhca_res_qp_context(struct sk_buff *msg, struct ib_qp *ibqp);
int rhca_res_cq_context(struct sk_buff *msg, struct ib_cq *ibcq);
int rhca_res_mr_context(struct sk_buff *msg, struct ib_mr *ibmr);
int rhca_res_srq_context(struct sk_buff *msg, struct ib_srq *ibsrq);

#endif /* RHCA_RESTRACK_H */
