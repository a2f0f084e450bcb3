/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* udata.c: the driver's part of requests of a process, and of responses. */
#ifndef RHCA_UDATA_H
#define RHCA_UDATA_H

#include <rdma/ib_verbs.h>

/*
 * The driver's part of a request: @size bytes, and behind them nothing that is
 * not 0. rhca_check_request() looks at comp_mask and reserved fields.
 */
int rhca_take_request(struct ib_udata *udata, void *req, size_t size);
/* For requests of which the driver knows no bit of comp_mask. */
int rhca_check_request(u32 comp_mask, u32 reserved);
/* The request has no part of the driver's. @udata: NULL of the kernel. */
int rhca_take_no_request(struct ib_udata *udata);
/* As much of the driver's part of a response as there is room for. */
int rhca_respond(struct ib_udata *udata, const void *resp, size_t size);

#endif /* RHCA_UDATA_H */
