/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of the driver (lib-driver, -mr, -cq, -qp, -wr) share. */
#ifndef LIB_DRIVER_PARTS_H
#define LIB_DRIVER_PARTS_H

#include "lib-driver.h"
#include "lib-make.h"

#define GET_BE(mask, word) RDMA_HCA_GET(mask, GUINT32_FROM_BE(word))
#define PREP_BE(mask, value) GUINT32_TO_BE(RDMA_HCA_PREP(mask, value))

typedef struct MttRange {
    uint32_t first, count;
} MttRange;

/* A command that a sound card cannot refuse. */
void driver_must(uint8_t status);

/* Rings of CQEs and EQEs in a region. */
uint64_t ring_slot(const Mr *mr, unsigned log_size, uint32_t index,
                   uint32_t entry_size);
/* All entries of a CQ or EQ to the card. */
void give_entries(Mr *mr, uint64_t start, unsigned log_size,
                  uint32_t entry_size);
/* Take the entries of QP @qpn out. */
void cq_clean(Cq *cq, uint32_t qpn);
/* A doorbell record: the bus address. */
uint64_t record_new(Driver *drv);

/* Forget a QP, an SRQ, without a word to the card. */
void qp_free(Qp *qp);
void srq_free(Srq *srq);

/* The work request of an SRQ that ended; its tag is free again. */
uint64_t srq_complete(Srq *srq, uint32_t tag);
/* A receive WQE of up to @size bytes, the next one at @next. */
GByteArray *build_recv(const RecvWr *wr, uint32_t size, uint32_t next,
                       uint32_t tag);

/* Fields of a path as contexts and WQEs have them. */
uint32_t mac_high(const uint8_t *mac);
uint16_t mac_low(const uint8_t *mac);
uint8_t hop_limit(const RocePath *path);

#endif /* LIB_DRIVER_PARTS_H */
