/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Packets that wait, in the order of their coming: a ring of records, each a
 * header and a packet that lies in one piece. A record that would run over the
 * end begins at the start again; a header of length 0 marks the gap.
 */
#include <string.h>

#include "switch_int.h"

typedef struct Record {
    uint64_t len; /* of the packet; 0: a gap up to the end */
    int64_t arrived;
} Record;

/* Sizes are multiples of a header, so that one never runs over the end. */
static size_t record_size(size_t len)
{
    return (2 * sizeof(Record) + len - 1) / sizeof(Record) * sizeof(Record);
}

static Record *record_at(const SwQueue *queue, size_t at)
{
    return (Record *)(queue->ring + at);
}

static void allocate(SwQueue *queue)
{
    queue->size -= queue->size % sizeof(Record);
    queue->ring = g_malloc(queue->size);
}

/* Where a record of @size goes; the gap in front of it. */
static size_t place(const SwQueue *queue, size_t size, size_t *gap)
{
    size_t tail = (queue->head + queue->used) % queue->size;

    *gap = queue->size - tail < size ? queue->size - tail : 0;
    return *gap ? 0 : tail;
}

bool sw_queue_put(SwQueue *queue, const SwPacket *packet, int64_t now)
{
    size_t size = record_size(packet->len);
    size_t at, gap;

    if (!queue->ring) {
        allocate(queue);
    }
    at = place(queue, size, &gap);
    if (queue->size - queue->used < gap ||
        queue->size - queue->used - gap < size) {
        return false;
    }
    if (gap) {
        record_at(queue, queue->size - gap)->len = 0;
    }
    *record_at(queue, at) = (Record) { packet->len, packet->arrived };
    memcpy(record_at(queue, at) + 1, packet->data, packet->len);
    queue->used += gap + size;
    if (queue->packets++ == 0) {
        queue->head_since = now;
    }
    return true;
}

/* There is one. */
static Record *oldest(const SwQueue *queue, size_t *gap)
{
    Record *record = record_at(queue, queue->head);

    *gap = record->len ? 0 : queue->size - queue->head;
    return *gap ? record_at(queue, 0) : record;
}

bool sw_queue_peek(const SwQueue *queue, SwQueued *packet)
{
    const Record *record;
    size_t gap;

    if (!queue->packets) {
        return false;
    }
    record = oldest(queue, &gap);
    packet->data = (const uint8_t *)(record + 1);
    packet->len = record->len;
    packet->arrived = record->arrived;
    return true;
}

void sw_queue_drop(SwQueue *queue, int64_t now)
{
    size_t gap;
    size_t size = record_size(oldest(queue, &gap)->len) + gap;

    queue->head = (queue->head + size) % queue->size;
    queue->used -= size;
    queue->packets--;
    queue->head_since = now;
    if (!queue->packets) {
        queue->head = 0; /* memory that is still in the caches */
        queue->used = 0;
    }
}

void sw_queue_clear(SwQueue *queue)
{
    queue->head = 0;
    queue->used = 0;
    queue->packets = 0;
    queue->hoq_drops = 0;
    queue->stalled_until = 0;
}

void sw_queue_free(SwQueue *queue)
{
    g_free(queue->ring);
    queue->ring = NULL;
}
