/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flight recorder: the last events of a card's units, and the first bytes of
 * the last packets that passed its cable or turned round in front of it, in a
 * ring. It is there to be read after something went wrong, and costs as little as
 * can be while nothing does: memory is written, and the clock is asked once in a
 * turn of the card. When something breaks, what was recorded just before and
 * just after it is kept until the next thing breaks, as what follows, thousands
 * of packets for a QP that is in error, says nothing about the cause.
 */
#ifndef HCA_RECORDER_H
#define HCA_RECORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "../state.h"

/* Of a packet: all headers that there can be, and a MAD's. */
#define HCA_RECORD_HEAD 112

typedef enum HcaRecordKind {
    HCA_RECORD_NONE, /* not used yet */
    HCA_RECORD_EVENT,
    HCA_RECORD_TX,
    HCA_RECORD_RX,
    HCA_RECORD_LOOPBACK,
} HcaRecordKind;

/* What the plan of faults did to a packet; action HCA_RECORD_NO_FAULT: nothing. */
#define HCA_RECORD_NO_FAULT 0xff

/* Two lines of a processor's cache; an event is all in the first. */
typedef struct HcaRecord {
    _Alignas(64) int64_t at_ns; /* when its turn had its first */
    uint8_t kind;               /* HcaRecordKind */
    uint8_t event;              /* HcaTraceEvent */
    uint8_t fault;              /* of a packet: HcaFaultAction */
    uint8_t rule;
    uint32_t len; /* of a packet; or the number that the event is about */
    union {
        uint64_t arg[3];
        uint8_t head[HCA_RECORD_HEAD]; /* as many bytes as there are */
    };
} HcaRecord;

_Static_assert(sizeof(HcaRecord) == 128, "two lines");

/* Records are counted, without wrapping; a count has its place by the mask. */
typedef struct HcaRecordRing {
    HcaRecord *records;
    uint64_t begin, end; /* written since it began: more than it holds */
} HcaRecordRing;

#define HCA_RECORDER_NEVER UINT64_MAX

typedef struct HcaRecorder {
    HcaRecordRing ring; /* that is written */
    uint32_t mask;      /* of both */
    uint64_t keep_at;   /* count of the ring's at which it is kept */
    HcaRecordRing kept; /* about what broke last */
    int64_t now;
    bool late;  /* a turn has ended since @now */
    bool broke; /* something has, since the last reset */
    bool told;  /* and the machine knows */
    int64_t (*clock_ns)(void *opaque);
    void *opaque;
} HcaRecorder;

/*
 * @entries: how many there are at least; a power of two. @clock_ns and @opaque:
 * the machine's.
 */
HcaRecorder *hca_recorder_new(uint32_t entries,
                              int64_t (*clock_ns)(void *opaque), void *opaque);
void hca_recorder_free(HcaRecorder *recorder);

/* The @i-th of the records that there are, the oldest first; NULL: no more. */
const HcaRecord *hca_recorder_get(const HcaRecorder *recorder, uint32_t i);

/* The ring becomes what is kept, and the other one is written. */
void hca_recorder_keep(HcaRecorder *recorder);

/*
 * Something has broken. Half a ring later the ring is kept, with as much before
 * as after it; what breaks until then breaks as a consequence.
 */
static inline void hca_recorder_broke(HcaRecorder *recorder)
{
    recorder->broke = true;
    if (recorder->keep_at == HCA_RECORDER_NEVER) {
        recorder->keep_at = recorder->ring.end + (recorder->mask + 1) / 2;
    }
}

/* The record that is written next. */
static inline HcaRecord *hca_recorder_next(HcaRecorder *recorder)
{
    HcaRecord *record;

    if (recorder->ring.end == recorder->keep_at) {
        hca_recorder_keep(recorder);
    }
    record = &recorder->ring.records[recorder->ring.end++ & recorder->mask];
    if (recorder->late) {
        recorder->late = false;
        recorder->now = recorder->clock_ns(recorder->opaque);
    }
    record->at_ns = recorder->now;
    return record;
}

static inline void hca_recorder_event(HcaRecorder *recorder, unsigned event,
                                      uint32_t number, uint64_t a, uint64_t b,
                                      uint64_t c)
{
    HcaRecord *record = hca_recorder_next(recorder);

    record->kind = HCA_RECORD_EVENT;
    record->event = event;
    record->len = number;
    record->arg[0] = a;
    record->arg[1] = b;
    record->arg[2] = c;
}

/* The first and the last @half bytes of @len, which are all of them. */
#define HCA_RECORD_HALVES(to, from, len, half)                                 \
    do {                                                                       \
        memcpy((to), (from), (half));                                          \
        memcpy((to) + (len) - (half), (from) + (len) - (half), (half));        \
    } while (0)

/* A copy of a size that the compiler knows takes a fraction of any other's. */
static inline void hca_record_copy(uint8_t *to, const uint8_t *from, size_t len)
{
    if (len >= HCA_RECORD_HEAD) {
        memcpy(to, from, HCA_RECORD_HEAD);
    } else if (len >= HCA_RECORD_HEAD / 2) {
        HCA_RECORD_HALVES(to, from, len, HCA_RECORD_HEAD / 2);
    } else if (len >= HCA_RECORD_HEAD / 4) {
        HCA_RECORD_HALVES(to, from, len, HCA_RECORD_HEAD / 4);
    } else {
        memcpy(to, from, len);
    }
}

static inline HcaRecord *hca_recorder_packet(HcaRecorder *recorder,
                                             HcaRecordKind kind,
                                             const uint8_t *packet, size_t len)
{
    HcaRecord *record = hca_recorder_next(recorder);

    record->kind = kind;
    record->fault = HCA_RECORD_NO_FAULT;
    record->len = len;
    hca_record_copy(record->head, packet, len);
    return record;
}

/* What is saved, in this order; there may be no recorder. */
extern const HcaSection hca_record_section, hca_recorder_section;

#endif /* HCA_RECORDER_H */
