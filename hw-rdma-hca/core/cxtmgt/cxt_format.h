/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How contexts and the entries of completion and event queues lie in guest
 * memory: what the context manager needs of a programming interface.
 */
#ifndef HCA_CXT_FORMAT_H
#define HCA_CXT_FORMAT_H

#include "cxtmgt.h"

#define HCA_MAX_CXT_SIZE 256
#define HCA_MAX_ENTRY_SIZE 64

struct HcaCxtFormat {
    /* Numbers of QPs and CQs have 24 bits, whatever their tables have. */
    bool tagged_numbers;
    /* Receives of an SRQ are a list (recv_link()); else they lie in a ring. */
    bool linked_srqs;
    /* An EQ may have the interrupt pin in place of a message: HCA_VECTOR_PIN. */
    bool has_pin;
    /* Contexts in ICM, in bytes; each size divides a page. */
    uint16_t qpc_size;
    uint16_t cqc_size;
    uint16_t eqc_size;
    uint16_t srqc_size;
    /* NULL: one that is not in use. @events: those that come to @eq, bits. */
    void (*put_qp)(uint32_t qpn, const HcaQp *qp, void *cxt);
    void (*put_cq)(const HcaCq *cq, void *cxt);
    void (*put_eq)(const HcaEq *eq, uint64_t events, void *cxt);
    void (*put_srq)(const HcaSrq *srq, void *cxt);
    /* Entries, in bytes. The last word of one gives it to software. */
    uint8_t cqe_size;
    uint8_t eqe_size;
    /* @time: when it is written, clock_ns. */
    void (*put_cqe)(const HcaCompletion *completion, int64_t time, void *cqe);
    void (*put_eqe)(const HcaEvent *event, void *eqe);
};

#endif /* HCA_CXT_FORMAT_H */
