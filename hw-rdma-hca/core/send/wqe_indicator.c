/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * WQEIndicatorTable (engine document 2.4.4): one flag for each QP, set while
 * a chain of WQEs is being followed. It lives in the QP, beside the link that
 * was found.
 */
#include "send.h"

void hca_wqe_indicate(HcaQp *qp, const HcaWqeRef *next)
{
    qp->send.indicator = true;
    qp->send.chained = *next;
}

void hca_wqe_indicate_end(HcaQp *qp)
{
    qp->send.indicator = false;
    qp->send.chain_len = 0;
}
