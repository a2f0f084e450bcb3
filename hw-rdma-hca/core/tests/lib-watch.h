/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two RoCE cards whose every frame is looked at. */
#ifndef LIB_WATCH_H
#define LIB_WATCH_H

#include "lib-pair.h"

#define WATCH_MR_LEN 65536
#define WATCH_QKEY 0x11111111u

/* A kind of path: an entry of the GID table, or the document's own. */
typedef struct WatchKind {
    const char *name;
    uint8_t index;
    bool document;
    bool ipv4;
    uint16_t vlan;
} WatchKind;

typedef struct Watch {
    Pair *pair;
    Driver *drv[2];
    Hca *hca[2];
    const WatchKind *kind;    /* of all frames, if not NULL */
    uint8_t tclass, priority; /* and these */
    uint64_t frames[2];       /* sent by each side */
    uint8_t last[2][HCA_LINK_MAX_PACKET];
    size_t last_len[2];
} Watch;

#define NUM_WATCH_KINDS 6
extern const WatchKind watch_kinds[NUM_WATCH_KINDS];

void watch_init(Watch *watch, uint32_t seed);
void watch_free(Watch *watch);
void watch_run(Watch *watch);
uint64_t watch_drops(const Watch *watch, unsigned side, HcaDropReason reason);
/* Frames that the engine of side 1 left to the Ethernet function. */
uint64_t watch_left_alone(const Watch *watch);
void watch_attr(QpAttr *attr, const WatchKind *kind);
UdAddress watch_ud(Watch *watch, const WatchKind *kind, unsigned from,
                   const Qp *to);
void watch_post_datagram(Watch *watch, Qp *qp, unsigned side, uint8_t opcode,
                         const UdAddress *ud, uint32_t len);
void watch_expect_sent(Watch *watch, unsigned side);
void watch_expect_nothing(Watch *watch, unsigned side);

#endif /* LIB_WATCH_H */
