/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loopback: packets for the card's own address turn round in front of the cable,
 * with the same headers and CRCs as any other, so that nothing behind the link
 * can tell them apart. (The documents do not say how a card talks to itself;
 * the verbs require that it can.)
 *
 * A ring of records, each a length and a packet that lies in one piece. A
 * record that would run over the end begins at the start again; a length of 0
 * marks the gap.
 */
#include <glib.h>
#include <string.h>

#include "framing.h"
#include "loopback.h"

#define RING_SIZE (256 * 1024)
#define LENGTH_SIZE sizeof(uint32_t)
/* Aligned, so that a length never runs over the end of the ring. */
#define RECORD_SIZE(len)                                                       \
    ((LENGTH_SIZE + (len) + LENGTH_SIZE - 1) & ~(LENGTH_SIZE - 1))

struct HcaLoopback {
    size_t head; /* where the oldest record begins */
    size_t used; /* bytes of records and gaps from head on */
    size_t lent; /* size of the record that get() returned */
    _Alignas(uint32_t) uint8_t ring[RING_SIZE];
};

HcaLoopback *hca_loopback_new(void)
{
    return g_new0(HcaLoopback, 1);
}

void hca_loopback_free(HcaLoopback *loopback)
{
    g_free(loopback);
}

void hca_loopback_clear(HcaLoopback *loopback)
{
    loopback->head = 0;
    loopback->used = 0;
    loopback->lent = 0;
}

static size_t tail_of(const HcaLoopback *loopback)
{
    return (loopback->head + loopback->used) % RING_SIZE;
}

/* The unused bytes that a record of @size at @tail would have to skip. */
static size_t gap_at(size_t tail, size_t size)
{
    return RING_SIZE - tail < size ? RING_SIZE - tail : 0;
}

bool hca_loopback_can_put(const HcaLoopback *loopback)
{
    size_t size = RECORD_SIZE(HCA_FRAME_MAX_PACKET);

    return RING_SIZE - loopback->used >= size + gap_at(tail_of(loopback), size);
}

static void put_length(HcaLoopback *loopback, size_t at, uint32_t len)
{
    memcpy(loopback->ring + at, &len, sizeof(len));
}

static uint32_t get_length(const HcaLoopback *loopback, size_t at)
{
    uint32_t len;

    memcpy(&len, loopback->ring + at, sizeof(len));
    return len;
}

/* Where the next record begins, if it may be of any length. */
static size_t next_record(const HcaLoopback *loopback)
{
    size_t tail = tail_of(loopback);

    return gap_at(tail, RECORD_SIZE(HCA_FRAME_MAX_PACKET)) ? 0 : tail;
}

uint8_t *hca_loopback_open(HcaLoopback *loopback)
{
    return loopback->ring + next_record(loopback) + LENGTH_SIZE;
}

void hca_loopback_close(HcaLoopback *loopback, size_t len)
{
    size_t tail = tail_of(loopback);
    size_t gap = gap_at(tail, RECORD_SIZE(HCA_FRAME_MAX_PACKET));

    if (gap) {
        put_length(loopback, tail, 0);
        loopback->used += gap;
    }
    put_length(loopback, gap ? 0 : tail, len);
    loopback->used += RECORD_SIZE(len);
}

static void drop_head(HcaLoopback *loopback, size_t size)
{
    loopback->head = (loopback->head + size) % RING_SIZE;
    loopback->used -= size;
}

const uint8_t *hca_loopback_get(HcaLoopback *loopback, size_t *len)
{
    drop_head(loopback, loopback->lent);
    loopback->lent = 0;
    if (!loopback->used) {
        loopback->head = 0; /* memory that is still in the caches */
        return NULL;
    }
    if (get_length(loopback, loopback->head) == 0) {
        drop_head(loopback, RING_SIZE - loopback->head);
    }
    *len = get_length(loopback, loopback->head);
    loopback->lent = RECORD_SIZE(*len);
    return loopback->ring + loopback->head + LENGTH_SIZE;
}

bool hca_loopback_is_empty(const HcaLoopback *loopback)
{
    return loopback->used == loopback->lent;
}

static const HcaField loopback_fields[] = {
    HCA_DERIVED(HcaLoopback, head),
    HCA_DERIVED(HcaLoopback, used),
    HCA_ANEW(HcaLoopback, lent),
    HCA_ELSEWHERE(HcaLoopback, ring),
};
const HcaStruct hca_loopback_struct = HCA_STRUCT(HcaLoopback, loopback_fields);

void hca_loopback_save(const HcaLoopback *loopback, GArray *bytes)
{
    size_t at = (loopback->head + loopback->lent) % RING_SIZE;
    size_t left = loopback->used - loopback->lent;

    while (left) {
        uint32_t len = get_length(loopback, at);
        size_t size = len ? RECORD_SIZE(len) : RING_SIZE - at;

        if (len) {
            hca_state_put_packet(bytes, loopback->ring + at + LENGTH_SIZE, len);
        }
        at = (at + size) % RING_SIZE;
        left -= size;
    }
}

bool hca_loopback_load(HcaLoopback *loopback, const uint8_t *bytes, uint32_t n,
                       unsigned *count)
{
    for (*count = 0; n; (*count)++) {
        size_t len;
        const uint8_t *packet = hca_state_get_packet(
            &bytes, &n, HCA_FRAME_MAX_PACKET, &len);

        if (!packet || !len || !hca_loopback_can_put(loopback)) {
            return false;
        }
        memcpy(hca_loopback_open(loopback), packet, len);
        hca_loopback_close(loopback, len);
    }
    return true;
}
