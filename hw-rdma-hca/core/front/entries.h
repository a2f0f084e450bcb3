/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Entries of completion and event queues (interface document 3.3). */
#ifndef HCA_FRONT_ENTRIES_H
#define HCA_FRONT_ENTRIES_H

#include "../cxtmgt/cxtmgt.h"

/* For HcaCxtFormat: all of an entry, given to software. */
void hca_front_put_cqe(const HcaCompletion *completion, int64_t time,
                       void *cqe);
void hca_front_put_eqe(const HcaEvent *event, void *eqe);

#endif /* HCA_FRONT_ENTRIES_H */
