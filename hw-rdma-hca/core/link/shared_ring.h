/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * shared_ring: bytes between two cards of one host through memory that they
 * share, once they have met on a stream.
 *
 * Each end has a block of memory that it alone writes and that the peer maps for
 * reading. It holds a ring of bytes, which are those that this end sends, and a
 * control part: how far this end has filled its own ring and emptied the peer's.
 * So an end that goes wild spoils no memory but its own; what it shows may be
 * anything, and change at any time.
 *
 * An end that finds nothing to read, or no room to write, sleeps and says so in
 * its control part. Whoever changes that finds out by hca_shared_take_wake() and
 * sends a wake-up by its own means.
 *
 * Both ends begin on their stream. When the peer shows that it reads the ring,
 * an end may switch: it shows after how many bytes of the stream it goes on in
 * the ring. Each direction switches for itself.
 *
 * All functions but those of blocks are for one thread at a time.
 */
#ifndef HCA_LINK_SHARED_RING_H
#define HCA_LINK_SHARED_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define HCA_SHARED_RING_SIZE (2u * 1024 * 1024) /* bytes; a power of two */
/* A writer that found no room is woken when so many bytes are free. */
#define HCA_SHARED_WAKE_ROOM (HCA_SHARED_RING_SIZE / 4)

/* ---- blocks ---- */

/* Processors fetch lines of 64 bytes by twos; others have lines of 128. */
#define HCA_SHARED_LINE 128
#define HCA_SHARED_PAGE 4096

/*
 * What a block is. Little-endian; positions are bytes since the block was made
 * and do not wrap at the ring's size. Only shared_ring.c reads and writes this.
 */
typedef struct HcaSharedBlock {
    /* Never change. */
    uint64_t magic;
    uint32_t version;
    uint32_t ring_size; /* bytes */

    /* Change once. */
    _Alignas(HCA_SHARED_LINE) uint32_t accepted; /* 1: reads the peer's ring */
    uint32_t switched;                           /* 1: switched_at is valid */
    uint64_t switched_at; /* bytes of the stream before those of the ring */

    _Alignas(HCA_SHARED_LINE) uint64_t produced; /* in this block's ring */
    _Alignas(HCA_SHARED_LINE) uint64_t consumed; /* of the peer's ring */

    /* When the peer's position gets here this end is to be woken. */
    _Alignas(HCA_SHARED_LINE) uint64_t wake_at_produced;
    uint64_t wake_at_consumed;

    _Alignas(HCA_SHARED_PAGE) uint8_t ring[HCA_SHARED_RING_SIZE];
} HcaSharedBlock;

/* Bytes of a block. A mapping of the peer's has to have as many. */
size_t hca_shared_block_size(void);

/*
 * Make the control part of a block of this end's, before anybody else has it.
 * @block is aligned to HCA_SHARED_PAGE. The ring stays as it is: new memory, or
 * what the peer may see.
 */
void hca_shared_block_init(void *block);

/*
 * Whether @peer_block, of hca_shared_block_size() bytes, is a block that we can
 * read. That its memory stays there is for the caller to make sure.
 */
bool hca_shared_block_ok(const void *peer_block);

/* ---- an end ---- */

/* Private, but for unit tests. Here nothing is the peer's to change. */
typedef struct HcaSharedEnd {
    HcaSharedBlock *own;
    const HcaSharedBlock *peer;

    /* What this end sends. */
    uint64_t produced;
    uint64_t peer_consumed;    /* as seen last, and possible */
    uint64_t checked_produced; /* as of the last look for a sleeper */
    uint64_t wake_at_consumed; /* as shown */

    /* What the peer sends. */
    uint64_t consumed;
    uint64_t peer_produced;
    uint64_t checked_consumed;
    uint64_t wake_at_produced;

    /* Of the last write, and read: it was -EAGAIN. */
    bool wants_room;
    bool wants_bytes;
    bool awake; /* the caller looks for that by itself */

    uint64_t peer_switched_at;
    bool peer_switched;
    bool peer_accepted;
    bool has_switched; /* the peer is to be woken for that */
    bool broken;
} HcaSharedEnd;

/*
 * Begin. @own is fresh from hca_shared_block_init(), @peer passed
 * hca_shared_block_ok(); both are the caller's, and stay mapped as long as @end
 * is used. There is nothing to close: unmap them.
 */
void hca_shared_open(HcaSharedEnd *end, void *own, const void *peer);

/*
 * As writev() and readv() on a non-blocking stream: how many bytes were taken or
 * given, fewer than asked for if need be; 0 only if @iov holds none. Take the
 * wake-up afterwards.
 *
 * -EAGAIN: no room, or nothing. Unless this end is awake the peer has been shown
 * that it sleeps for it, and sends one wake-up when that has changed: a reader's
 * for the first byte, a writer's for HCA_SHARED_WAKE_ROOM. To try before is
 * allowed.
 *
 * -EPROTO: the peer's position is none that can be. The end is broken: nothing
 * is read, written or woken any more.
 */
ssize_t hca_shared_writev(HcaSharedEnd *end, const struct iovec *iov,
                          int iovcnt);
ssize_t hca_shared_readv(HcaSharedEnd *end, const struct iovec *iov,
                         int iovcnt);

/*
 * An end that is awake asks for no wake-ups, as it looks again and again itself,
 * by hca_shared_is_ready(). Before it sleeps it is to say so, and look once more:
 * what -EAGAIN was the answer to is then waited for as that says.
 */
void hca_shared_set_awake(HcaSharedEnd *end, bool awake);
/*
 * Whether what the last read, or the last write, found missing is there: bytes,
 * or HCA_SHARED_WAKE_ROOM more room. True as well if the end is broken.
 */
bool hca_shared_is_ready(HcaSharedEnd *end);

/*
 * After any number of writes, reads and a switch, and before this end rests:
 * whether the peer sleeps for one of them, and so is to be sent a wake-up now.
 * True once for each sleep of the peer's; who ignores it leaves the peer asleep.
 */
bool hca_shared_take_wake(HcaSharedEnd *end);

/* ---- from the stream to the rings ---- */

/* Show that this end has the peer's block and will read its ring. */
void hca_shared_accept(HcaSharedEnd *end);
/* Whether the peer has shown that; once true it stays so. */
bool hca_shared_is_accepted(HcaSharedEnd *end);

/*
 * Show that what this end sends goes on in the ring, after @stream_bytes bytes of
 * its stream. Once, when the peer has accepted, and before the first write. Take
 * the wake-up: the peer may sleep for its stream.
 */
void hca_shared_switch(HcaSharedEnd *end, uint64_t stream_bytes);

/*
 * Whether the peer has shown that. *@stream_bytes is then what it said first,
 * which may be any number: less than the stream has brought is for the caller to
 * refuse. Do not read the ring before so many bytes of the stream.
 */
bool hca_shared_peer_switched(HcaSharedEnd *end, uint64_t *stream_bytes);

#endif /* HCA_LINK_SHARED_RING_H */
