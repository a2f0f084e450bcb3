/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two machines with cards of an InfiniHost III Lx, a QP on each, and memory for
 * what they send: the usual set-up of a test.
 */
#ifndef LIB_MTHCA_PAIR_H
#define LIB_MTHCA_PAIR_H

#include "lib-mthca.h"

#define MTHCA_SIDE_UAR 2
#define MTHCA_SIDE_QPN 0x770010u /* with a tag, of side 0 */
#define MTHCA_SIDE_CQN 0x330005u
#define MTHCA_SIDE_PAGES 16

/* One side: a QP with a CQ, and a region for data. */
typedef struct MthcaSide {
    Mthca *m;
    MthcaCq cq;
    MthcaQp qp;
    MthcaMr *data;
} MthcaSide;

typedef struct MthcaPair {
    Lab *lab;
    MthcaSide side[2];
} MthcaPair;

/*
 * A card that was probed, whose port is on, with a CQ; @s's QP is ready to go
 * to INIT, or is there.
 */
void mthca_side_open(MthcaSide *s, Host *host, uint8_t service,
                     bool signals_all);
void mthca_side_init(MthcaSide *s, Host *host, uint8_t service,
                     bool signals_all);

/* Both, with QPs in RTS. @latency: of their memory, ns. */
void mthca_pair_init_of(MthcaPair *pair, uint8_t service, bool signals_all,
                        uint32_t latency);
void mthca_pair_init(MthcaPair *pair, uint8_t service);
/* Both QPs from INIT to RTS, with each other. */
void mthca_pair_connect(MthcaPair *pair);
void mthca_pair_free(MthcaPair *pair);

/* The region for data: fill it; read, by addresses in it; an entry for it. */
void mthca_side_fill(MthcaSide *s, GRand *rand);
void mthca_side_read(MthcaSide *s, uint64_t va, void *to, size_t len);
MthcaSge mthca_side_sge(const MthcaSide *s, uint64_t va, uint32_t len);
/* What lies there on side 0, and on side 1, is the same. */
void mthca_pair_same(MthcaPair *pair, uint64_t va0, uint64_t va1, size_t len);

/* Post and ring. */
void mthca_side_send(MthcaSide *s, const MthcaWr *wr);
/* Wait for the next completion, of @s's QP; see that none comes. */
struct mthca_cqe mthca_side_take(MthcaSide *s);
void mthca_side_take_none(MthcaSide *s);
/* It is of send or receive number @index of the QP, without fault. */
struct mthca_cqe mthca_side_take_send(MthcaSide *s, uint32_t index);
struct mthca_cqe mthca_side_take_recv(MthcaSide *s, uint32_t index,
                                      uint32_t len);

#endif /* LIB_MTHCA_PAIR_H */
