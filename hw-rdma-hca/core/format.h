/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a programming interface writes down what the engine works on. The engine
 * has forms of its own (verbs.h, qp.h); bytes in guest memory are read and
 * written by these tables alone. Who needs one declares it; front/ fills it.
 */
#ifndef HCA_FORMAT_H
#define HCA_FORMAT_H

typedef struct HcaFormat {
    const struct HcaCxtFormat *cxt; /* contexts, CQEs, EQEs: cxtmgt/ */
    const struct HcaWqeFormat *wqe; /* work queue entries: wqe_format.h */
    const struct HcaMptFormat *mpt; /* protection table: v2p/ */
    const struct HcaEthFormat *eth; /* descriptors: eth/ */
} HcaFormat;

#endif /* HCA_FORMAT_H */
