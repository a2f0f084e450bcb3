/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two rings in shared memory. See shared_ring.h.
 *
 * A position is published when the bytes before it are done with: the writer's
 * when they are in the ring, the reader's when they have been copied out. What
 * the peer shows is read once into an HcaSharedEnd and judged there. A position
 * may go forward, by no more than the ring has bytes for it (the reader's), or
 * room (the writer's). Otherwise nothing depends on it: offsets into a ring are
 * those of the own position.
 *
 * Sleeping is showing a mark, the position of the peer's from which on this end
 * is to be woken. Who moves its position over a mark, that is from before it to
 * it or beyond it, sends the wake-up. So a mark never has to be taken back, it
 * serves one time, and one that was set when the position had already passed it
 * costs nothing. No mark is lost:
 *
 *     the sleeper            the other
 *     shows its mark         publishes its position
 *     barrier                barrier
 *     looks at the position  looks at the mark
 *
 * One of the two, or both, see what the other has written.
 */
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "shared_ring.h"

#define MAGIC UINT64_C(0x676e69722d616368) /* "hca-ring" */
#define VERSION 1
#define RING_SIZE HCA_SHARED_RING_SIZE

G_STATIC_ASSERT((RING_SIZE & (RING_SIZE - 1)) == 0);
G_STATIC_ASSERT(RING_SIZE % HCA_SHARED_PAGE == 0);
G_STATIC_ASSERT(offsetof(HcaSharedBlock, magic) == 0);
G_STATIC_ASSERT(offsetof(HcaSharedBlock, version) == 8);
G_STATIC_ASSERT(offsetof(HcaSharedBlock, ring_size) == 12);
G_STATIC_ASSERT(offsetof(HcaSharedBlock, accepted) == 128);
G_STATIC_ASSERT(offsetof(HcaSharedBlock, switched) == 132);
G_STATIC_ASSERT(offsetof(HcaSharedBlock, switched_at) == 136);
G_STATIC_ASSERT(offsetof(HcaSharedBlock, produced) == 256);
G_STATIC_ASSERT(offsetof(HcaSharedBlock, consumed) == 384);
G_STATIC_ASSERT(offsetof(HcaSharedBlock, wake_at_produced) == 512);
G_STATIC_ASSERT(offsetof(HcaSharedBlock, wake_at_consumed) == 520);
G_STATIC_ASSERT(offsetof(HcaSharedBlock, ring) == HCA_SHARED_PAGE);
G_STATIC_ASSERT(sizeof(HcaSharedBlock) == HCA_SHARED_PAGE + RING_SIZE);
/* Nobody may see half of a position. */
G_STATIC_ASSERT(__atomic_always_lock_free(sizeof(uint64_t), 0));

/*
 * A field that was published: what was written before it is there, too. GLib's
 * macros may evaluate what they are given more than once.
 */
static uint64_t get64(const uint64_t *field)
{
    uint64_t value = __atomic_load_n(field, __ATOMIC_ACQUIRE);

    return GUINT64_FROM_LE(value);
}

static uint32_t get32(const uint32_t *field)
{
    uint32_t value = __atomic_load_n(field, __ATOMIC_ACQUIRE);

    return GUINT32_FROM_LE(value);
}

static void publish64(uint64_t *field, uint64_t value)
{
    __atomic_store_n(field, GUINT64_TO_LE(value), __ATOMIC_RELEASE);
}

static void publish32(uint32_t *field, uint32_t value)
{
    __atomic_store_n(field, GUINT32_TO_LE(value), __ATOMIC_RELEASE);
}

/* ---- blocks ---- */

size_t hca_shared_block_size(void)
{
    return sizeof(HcaSharedBlock);
}

void hca_shared_block_init(void *block)
{
    HcaSharedBlock *own = block;

    memset(own, 0, offsetof(HcaSharedBlock, ring));
    own->version = GUINT32_TO_LE(VERSION);
    own->ring_size = GUINT32_TO_LE(RING_SIZE);
    publish64(&own->magic, MAGIC);
}

bool hca_shared_block_ok(const void *peer_block)
{
    const HcaSharedBlock *peer = peer_block;

    return get64(&peer->magic) == MAGIC && get32(&peer->version) == VERSION &&
           get32(&peer->ring_size) == RING_SIZE;
}

void hca_shared_open(HcaSharedEnd *end, void *own, const void *peer)
{
    *end = (HcaSharedEnd) { .own = own, .peer = peer };
}

/* ---- positions and marks ---- */

/* Bytes that can be written, and read, by what was seen last. */
static size_t room_of(const HcaSharedEnd *end)
{
    return RING_SIZE - (end->produced - end->peer_consumed);
}

static size_t available_of(const HcaSharedEnd *end)
{
    return end->peer_produced - end->consumed;
}

/* See how far the peer has got; it can have gone forward by @most. */
static int see(HcaSharedEnd *end, const uint64_t *field, uint64_t *seen,
               size_t most)
{
    uint64_t now = get64(field);

    if (now - *seen > most) {
        end->broken = true;
        return -EPROTO;
    }
    *seen = now;
    return 0;
}

static int see_consumed(HcaSharedEnd *end)
{
    return see(end, &end->peer->consumed, &end->peer_consumed,
               RING_SIZE - room_of(end));
}

static int see_produced(HcaSharedEnd *end)
{
    return see(end, &end->peer->produced, &end->peer_produced,
               RING_SIZE - available_of(end));
}

/* Before the last look at the peer's position: now it is asked to wake us. */
static void show_mark(uint64_t *field, uint64_t *shown, uint64_t mark)
{
    if (*shown == mark) {
        return;
    }
    *shown = mark;
    publish64(field, mark);
    /* Pairs with that of hca_shared_take_wake(). */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static int sleep_for_room(HcaSharedEnd *end)
{
    show_mark(&end->own->wake_at_consumed, &end->wake_at_consumed,
              end->peer_consumed + HCA_SHARED_WAKE_ROOM);
    if (see_consumed(end)) {
        return -EPROTO;
    }
    return room_of(end) ? 0 : -EAGAIN;
}

static int sleep_for_bytes(HcaSharedEnd *end)
{
    show_mark(&end->own->wake_at_produced, &end->wake_at_produced,
              end->consumed + 1);
    if (see_produced(end)) {
        return -EPROTO;
    }
    return available_of(end) ? 0 : -EAGAIN;
}

/* Room for @wanted bytes, or at least for some. */
static int find_room(HcaSharedEnd *end, size_t wanted)
{
    int error = 0;

    if (room_of(end) < wanted && see_consumed(end)) {
        return -EPROTO;
    }
    if (!room_of(end)) {
        error = end->awake ? -EAGAIN : sleep_for_room(end);
    }
    end->wants_room = error == -EAGAIN;
    return error;
}

static int find_bytes(HcaSharedEnd *end, size_t wanted)
{
    int error = 0;

    if (available_of(end) < wanted && see_produced(end)) {
        return -EPROTO;
    }
    if (!available_of(end)) {
        error = end->awake ? -EAGAIN : sleep_for_bytes(end);
    }
    end->wants_bytes = error == -EAGAIN;
    return error;
}

void hca_shared_set_awake(HcaSharedEnd *end, bool awake)
{
    end->awake = awake;
    if (awake || end->broken) {
        return;
    }
    if (end->wants_room) {
        sleep_for_room(end);
    }
    if (end->wants_bytes) {
        sleep_for_bytes(end);
    }
}

bool hca_shared_is_ready(HcaSharedEnd *end)
{
    if (end->broken || (end->wants_bytes && see_produced(end)) ||
        (end->wants_room && see_consumed(end))) {
        return true;
    }
    return (end->wants_bytes && available_of(end)) ||
           (end->wants_room && room_of(end) >= HCA_SHARED_WAKE_ROOM);
}

/* Whether @mark lies behind @before and not behind @now. */
static bool passed(uint64_t mark, uint64_t before, uint64_t now)
{
    return now - mark < now - before;
}

bool hca_shared_take_wake(HcaSharedEnd *end)
{
    bool due = end->has_switched;

    if (end->broken) {
        return false;
    }
    end->has_switched = false;
    if (end->checked_produced == end->produced &&
        end->checked_consumed == end->consumed) {
        return due;
    }
    /* Pairs with that of show_mark(). */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    due |= passed(get64(&end->peer->wake_at_produced), end->checked_produced,
                  end->produced);
    due |= passed(get64(&end->peer->wake_at_consumed), end->checked_consumed,
                  end->consumed);
    end->checked_produced = end->produced;
    end->checked_consumed = end->consumed;
    return due;
}

/* ---- bytes ---- */

/* No more than a ring can hold. */
static size_t total_of(const struct iovec *iov, int iovcnt)
{
    size_t left = RING_SIZE;

    for (int i = 0; i < iovcnt && left; i++) {
        left -= MIN(left, iov[i].iov_len);
    }
    return RING_SIZE - left;
}

static void copy_in(uint8_t *ring, uint64_t at, const uint8_t *from, size_t len)
{
    size_t offset = at % RING_SIZE;
    size_t first = MIN(len, RING_SIZE - offset);

    memcpy(ring + offset, from, first);
    if (first < len) {
        memcpy(ring, from + first, len - first);
    }
}

static void copy_out(const uint8_t *ring, uint64_t at, uint8_t *to, size_t len)
{
    size_t offset = at % RING_SIZE;
    size_t first = MIN(len, RING_SIZE - offset);

    memcpy(to, ring + offset, first);
    if (first < len) {
        memcpy(to + first, ring, len - first);
    }
}

ssize_t hca_shared_writev(HcaSharedEnd *end, const struct iovec *iov,
                          int iovcnt)
{
    size_t left = total_of(iov, iovcnt), n;
    uint64_t before = end->produced;
    int error;

    if (end->broken) {
        return -EPROTO;
    }
    if (!left) {
        return 0;
    }
    error = find_room(end, left);
    if (error) {
        return error;
    }
    for (left = MIN(left, room_of(end)); left; iov++, left -= n) {
        n = MIN(left, iov->iov_len);
        if (n) {
            copy_in(end->own->ring, end->produced, iov->iov_base, n);
        }
        end->produced += n;
    }
    publish64(&end->own->produced, end->produced);
    return end->produced - before;
}

ssize_t hca_shared_readv(HcaSharedEnd *end, const struct iovec *iov, int iovcnt)
{
    size_t left = total_of(iov, iovcnt), n;
    uint64_t before = end->consumed;
    int error;

    if (end->broken) {
        return -EPROTO;
    }
    if (!left) {
        return 0;
    }
    error = find_bytes(end, left);
    if (error) {
        return error;
    }
    for (left = MIN(left, available_of(end)); left; iov++, left -= n) {
        n = MIN(left, iov->iov_len);
        if (n) {
            copy_out(end->peer->ring, end->consumed, iov->iov_base, n);
        }
        end->consumed += n;
    }
    publish64(&end->own->consumed, end->consumed);
    return end->consumed - before;
}

/* ---- from the stream to the rings ---- */

void hca_shared_accept(HcaSharedEnd *end)
{
    publish32(&end->own->accepted, 1);
}

bool hca_shared_is_accepted(HcaSharedEnd *end)
{
    if (!end->peer_accepted) {
        end->peer_accepted = get32(&end->peer->accepted) == 1;
    }
    return end->peer_accepted;
}

void hca_shared_switch(HcaSharedEnd *end, uint64_t stream_bytes)
{
    end->own->switched_at = GUINT64_TO_LE(stream_bytes);
    publish32(&end->own->switched, 1);
    end->has_switched = true;
}

bool hca_shared_peer_switched(HcaSharedEnd *end, uint64_t *stream_bytes)
{
    if (!end->peer_switched && get32(&end->peer->switched) == 1) {
        end->peer_switched_at = get64(&end->peer->switched_at);
        end->peer_switched = true;
    }
    if (end->peer_switched) {
        *stream_bytes = end->peer_switched_at;
    }
    return end->peer_switched;
}
