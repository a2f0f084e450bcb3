/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How contexts and the entries of completion and event queues lie in guest
 * memory: what the context manager needs of a programming interface.
 */
#ifndef HCA_CXT_FORMAT_H
#define HCA_CXT_FORMAT_H

#include "cxtmgt.h"

#define HCA_MAX_ENTRY_SIZE 64

struct HcaCxtFormat {
    /* Entries, in bytes; software owns them from their last word on. */
    uint8_t cqe_size;
    uint8_t eqe_size;
    void (*put_cqe)(const HcaCompletion *completion, void *cqe);
    void (*put_eqe)(const HcaEvent *event, void *eqe);
};

#endif /* HCA_CXT_FORMAT_H */
