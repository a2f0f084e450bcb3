/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A cable between two machines on which packets are lost, doubled, overtaken,
 * delayed and changed, and which tells the reference model of the verbs what of UC
 * and UD leaves and arrives.
 */
#ifndef LIB_BAD_CABLE_H
#define LIB_BAD_CABLE_H

#include "lib-model.h"

/* Of 10000 packets, how many suffer. */
typedef struct CableWeather {
    unsigned drop, duplicate, overtaken, delay, corrupt;
} CableWeather;

typedef struct BadCable {
    Lab *lab; /* to be set before packets pass */
    const CableWeather *weather;
    GRand *dice;
    bool bad;              /* now */
    GHashTable *by_qpn[2]; /* ModelQp, not owned */
    GQueue held[2];
    unsigned dropped, duplicated, overtaken, delayed, corrupted;
    unsigned refused; /* for which there was no receive */
} BadCable;

void bad_cable_init(BadCable *cable, const CableWeather *weather,
                    uint32_t seed);
void bad_cable_destroy(BadCable *cable);
/* What is for, or from, QP @qpn of a side is @qp's. NULL: there is no such. */
void bad_cable_add(BadCable *cable, unsigned side, uint32_t qpn, ModelQp *qp);
ModelQp *bad_cable_find(const BadCable *cable, unsigned side, uint32_t qpn);
/* A CableTap; its opaque is the BadCable. */
CableFate bad_cable_tap(void *opaque, unsigned from, uint8_t *packet,
                        size_t len);

#endif /* LIB_BAD_CABLE_H */
