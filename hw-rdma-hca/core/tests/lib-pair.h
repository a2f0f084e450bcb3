/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The usual set-up of a whole-card test: two machines with drivers, cabled,
 * each with a protection domain, a completion queue and one big region.
 */
#ifndef LIB_PAIR_H
#define LIB_PAIR_H

#include "lib-card.h"
#include "lib-driver.h"

#define PAIR_MAX_SGE 14
/* Long enough for any retry of a default QpAttr. */
#define PAIR_PATIENCE (100 * NS_PER_S)

typedef struct Pair {
    Lab *lab;
    Driver *drv[2];
    uint32_t pd[2];
    Cq *cq[2];
    Mr *mr[2]; /* ACCESS_ALL, mr_len bytes */
} Pair;

/* Everything up, both ports ACTIVE. */
Pair *pair_new(uint32_t seed, uint64_t mr_len);
/* The same of RoCE cards. */
Pair *pair_new_roce(uint32_t seed, uint64_t mr_len, CableTap *tap,
                    void *opaque);
/* The same of cards after @config, and with a tap from the start. */
Pair *pair_new_with(uint32_t seed, uint64_t mr_len, const HcaConfig *config,
                    CableTap *tap, void *opaque);
/* The same, but for the ports: somebody has to activate them. */
Pair *pair_new_managed(uint32_t seed, uint64_t mr_len, const HcaConfig *config,
                       CableTap *tap, void *opaque);
void pair_free(Pair *pair);

/* A connected QP of RC on each side; @attr NULL: the defaults. */
void pair_connect(Pair *pair, const QpAttr *attr, Qp *qp[2]);

/* A QP of @service with the side's CQ, in RST; of UD in RTS. */
Qp *pair_new_qp(Pair *pair, unsigned side, uint8_t service);
Qp *pair_new_ud(Pair *pair, unsigned side);
/* A connected QP of @service on each side. */
void pair_connect_service(Pair *pair, uint8_t service, const QpAttr *attr,
                          Qp *qp[2]);

/* Of a side's card: a counter by its name, packets dropped. */
uint64_t pair_counter(const Pair *pair, unsigned side, const char *name);
uint64_t pair_drops(const Pair *pair, unsigned side, HcaDropReason reason);

/* Until @n more packets have come to a side. */
void pair_wait_packets(Pair *pair, unsigned side, uint64_t n);

/* A number from @begin to below @end. */
uint32_t pair_rand(Pair *pair, uint32_t begin, uint32_t end);
/* @len random bytes; g_free() them. */
uint8_t *pair_data(Pair *pair, size_t len);

/*
 * Split @len bytes into at most @max entries of @mr from @at on, with gaps,
 * empty entries and cuts at page ends, at random. Returns their number.
 */
unsigned pair_split(Pair *pair, const Mr *mr, uint64_t at, uint32_t len,
                    Sge *sge, unsigned max);
/* Copy to or from what a list of entries of @mr names. */
void sges_write(Mr *mr, const Sge *sge, unsigned n, const uint8_t *data);
void sges_read(Mr *mr, const Sge *sge, unsigned n, uint8_t *data);

/* The whole of a region; g_free() it. Compare it with the present state. */
uint8_t *mr_image(Mr *mr);
void mr_check_image(Mr *mr, const uint8_t *image);
/* What sges_write() would have made of @image. */
void image_write(uint8_t *image, const Mr *mr, const Sge *sge, unsigned n,
                 const uint8_t *data);

/* The next completion, which has to be this one. */
void cq_expect(Cq *cq, Wc *wc, uint64_t wr_id, uint8_t syndrome);
/* Nothing (more) comes, whatever time passes. */
/* @n flushed ones, from @first on; nothing. */
void cq_expect_flushed(Cq *cq, uint64_t first, unsigned n);
void cq_expect_none(Cq *cq);

/* A signalled work request with one entry at @at of the side's region. */
SendWr pair_send(Pair *pair, unsigned side, uint8_t opcode, uint64_t wr_id,
                 Sge *sge, uint64_t at, uint32_t len, uint64_t remote_at);
void pair_post_recv(Pair *pair, unsigned side, Qp *qp, uint64_t wr_id,
                    uint64_t at, uint32_t len);
/* One short Send from qp[@from] to the other; both completions. */
void pair_check_works(Pair *pair, Qp *qp[2], unsigned from);

#endif /* LIB_PAIR_H */
