/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two RoCE cards with a connection that suffers and one that must not, and a
 * tap that counts, marks, loses and rewrites the RoCEv2 packets between them.
 */
#ifndef LIB_ROCE_H
#define LIB_ROCE_H

#include "../wire/wire.h"
#include "lib-pair.h"

/* Change a packet; its lengths and opcode format have to stay as they are. */
typedef void RoceEdit(HcaPacket *packet);

/* What happens to packets of one side. */
typedef struct RoceWeather {
    bool lost;     /* all of them */
    unsigned nth;  /* what follows is for its nth, from 1 on... */
    unsigned last; /* ...to its last-th; 0: all of them */
    bool mark;     /* CE */
    RoceEdit *edit;
    CableFate fate;
} RoceWeather;

typedef struct RoceBed {
    Pair *pair;
    Lab *lab;
    Driver *drv[2];
    Cq *cq[2]; /* of @qp alone */
    Qp *qp[2]; /* side 0 asks, side 1 answers */
    Qp *bystander[2];
    RoceWeather weather[2];
    unsigned seen[2];    /* packets since the weather was set */
    unsigned cnps[2];    /* CNPs among them */
    uint64_t interrupts; /* of side 1 for events, when set up */
    HcaPacket cnp;       /* the last one; its pointers are dead */
    SendWr wr[64];
    Sge sge[64];
} RoceBed;

/* @config: of both cards, or NULL; @attr NULL: the defaults. */
void roce_init(RoceBed *bed, const HcaConfig config[2], uint8_t service,
               const QpAttr *attr);
/* The bystanders still work; the end. */
void roce_free(RoceBed *bed);

/* From now on; the counts begin anew. */
void roce_weather(RoceBed *bed, unsigned side, RoceWeather weather);

/* @n requests of @len bytes from side 0, by one doorbell. */
SendWr *roce_request(RoceBed *bed, unsigned i, uint8_t opcode, uint32_t len);
void roce_post(RoceBed *bed, unsigned n);
/* @n receives of @len bytes on side 1. */
void roce_post_recv(RoceBed *bed, unsigned n, uint32_t len);
/* All rests, or @ns have passed. */
void roce_run(RoceBed *bed, int64_t ns);
/* The next completion of side @side's QP. */
void roce_expect(RoceBed *bed, unsigned side, uint8_t syndrome);

/* A counter by its name, unit and all. */
uint64_t roce_counter(RoceBed *bed, unsigned side, const char *name);
void roce_counted(RoceBed *bed, unsigned side, const char *name, uint64_t n);

/* A frame with @packet and a payload of zeros, as if from side @from. */
void roce_inject(RoceBed *bed, unsigned from, HcaPacket *packet);
/* The same of a frame as it is. */
void roce_inject_frame(RoceBed *bed, unsigned from, const uint8_t *frame,
                       size_t len);
/* The network headers of what @from's QP sends to its peer. */
void roce_headers(RoceBed *bed, unsigned from, HcaPacket *packet);
/* The same along another entry of the GID tables. */
void roce_headers_along(RoceBed *bed, unsigned from, unsigned gid,
                        HcaPacket *packet);

#endif /* LIB_ROCE_H */
