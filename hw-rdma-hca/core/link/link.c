/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The card's end of the cable, in place of the LinkLayer that the engine
 * document (section 6) connects to by FIFOs of 72-bit words.
 *
 * Transmit. Packets are collected in a batch that one gathered write puts on
 * the cable: what is short lies in an arena, what is long stays where it is.
 * The part of a batch that the cable does not take moves to the stash, and
 * nothing more is sent to the peer until the stash is empty: back-pressure
 * instead of loss, as with the prog_full signals of the FIFOs.
 *
 * Receive. One read fills a buffer with as many packets as there are; they are
 * handed out where they lie.
 *
 * All memory is allocated by hca_link_new(). The virtual lane is carried, but
 * all lanes share one queue.
 */
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "framing.h"
#include "link.h"
#include "loopback.h"

#define BATCH_SIZE (256 * 1024)
#define BATCH_IOV 1024          /* IOV_MAX */
#define RX_SIZE (256 * 1024)
/* Pieces of payload up to this size are cheaper to copy than to gather. */
#define COPY_MAX 512
/* Reads for one packet: a peer that sends nothing useful gets no more. */
#define RX_READS 16
/* While the cable is silent it is asked once in so many loopback packets. */
#define RX_REST 64

struct HcaLink {
    const HcaHostOps *ops;
    void *opaque;
    HcaLoopback *loopback;
    HcaLinkCounters counters;

    bool up;                    /* there is a stream */
    bool greeted;               /* the peer's greeting has arrived */
    bool rx_failed;             /* the peer broke the framing */
    bool tx_failed;             /* the stream takes nothing, for good */
    bool rx_unfinished;         /* stopped reading before the cable was empty */
    bool loopback_turn;         /* who was asked first last time */
    unsigned rx_rest;           /* loopback packets before the next read */

    size_t rx_at;               /* first byte not handed out */
    size_t rx_end;              /* after the last byte received */
    size_t batch_bytes;
    size_t arena_used;
    int batch_iovcnt;
    size_t stash_at;            /* first byte not taken by the cable */
    size_t stash_end;

    struct iovec batch[BATCH_IOV];
    uint8_t arena[BATCH_SIZE];
    uint8_t stash[BATCH_SIZE];
    uint8_t rx[RX_SIZE];
};

HcaLink *hca_link_new(const HcaHostOps *ops, void *opaque)
{
    HcaLink *link = g_new0(HcaLink, 1);

    link->ops = ops;
    link->opaque = opaque;
    link->loopback = hca_loopback_new();
    return link;
}

void hca_link_free(HcaLink *link)
{
    if (link) {
        hca_loopback_free(link->loopback);
        g_free(link);
    }
}

/* Transmit */

static void batch_clear(HcaLink *link)
{
    link->batch_bytes = 0;
    link->batch_iovcnt = 0;
    link->arena_used = 0;
}

static void stash_clear(HcaLink *link)
{
    link->stash_at = 0;
    link->stash_end = 0;
}

/* The stream is broken; the host takes the link down soon. */
static void tx_fail(HcaLink *link)
{
    link->tx_failed = true;
    batch_clear(link);
    stash_clear(link);
}

/* Whether @len bytes at @data continue the last piece of the batch. */
static bool batch_continues(const HcaLink *link, const uint8_t *data)
{
    const struct iovec *last;

    if (!link->batch_iovcnt) {
        return false;
    }
    last = &link->batch[link->batch_iovcnt - 1];
    return (const uint8_t *)last->iov_base + last->iov_len == data;
}

static void batch_refer(HcaLink *link, const void *data, size_t len)
{
    if (batch_continues(link, data)) {
        link->batch[link->batch_iovcnt - 1].iov_len += len;
    } else {
        link->batch[link->batch_iovcnt].iov_base = (void *)data;
        link->batch[link->batch_iovcnt++].iov_len = len;
    }
    link->batch_bytes += len;
}

static void batch_copy(HcaLink *link, const void *data, size_t len)
{
    uint8_t *copy = link->arena + link->arena_used;

    if (len) {
        memcpy(copy, data, len);
        link->arena_used += len;
        batch_refer(link, copy, len);
    }
}

static void batch_add(HcaLink *link, const struct iovec *piece)
{
    if (piece->iov_len <= COPY_MAX) {
        batch_copy(link, piece->iov_base, piece->iov_len);
    } else {
        batch_refer(link, piece->iov_base, piece->iov_len);
    }
}

/* As link_writev of the host; 0 when the cable takes nothing, now or ever. */
static size_t cable_write(HcaLink *link, const struct iovec *iov, int iovcnt)
{
    ssize_t n;

    do {
        n = link->ops->link_writev(link->opaque, iov, iovcnt);
    } while (n == -EINTR);
    if (n > 0) {
        return n;
    }
    if (n == -EAGAIN) {
        link->counters.tx_waits++;
    } else {
        tx_fail(link);
    }
    return 0;
}

static void stash_drain(HcaLink *link)
{
    while (link->stash_at < link->stash_end) {
        struct iovec iov = {
            .iov_base = link->stash + link->stash_at,
            .iov_len = link->stash_end - link->stash_at,
        };
        size_t n = cable_write(link, &iov, 1);

        if (!n) {
            return;
        }
        link->stash_at += n;
    }
    stash_clear(link);
}

/* Skip @n bytes of the batch from piece @first on; the piece then first. */
static int batch_skip(HcaLink *link, int first, size_t n)
{
    while (first < link->batch_iovcnt && n >= link->batch[first].iov_len) {
        n -= link->batch[first++].iov_len;
    }
    if (n) {
        link->batch[first].iov_base =
            (uint8_t *)link->batch[first].iov_base + n;
        link->batch[first].iov_len -= n;
    }
    return first;
}

static void batch_stash(HcaLink *link, int first)
{
    for (int i = first; i < link->batch_iovcnt; i++) {
        memcpy(link->stash + link->stash_end, link->batch[i].iov_base,
               link->batch[i].iov_len);
        link->stash_end += link->batch[i].iov_len;
    }
}

static void batch_write(HcaLink *link)
{
    int first = 0;

    while (first < link->batch_iovcnt) {
        size_t n = cable_write(link, link->batch + first,
                               link->batch_iovcnt - first);

        if (!n) {
            break;
        }
        first = batch_skip(link, first, n);
    }
    batch_stash(link, first);
    batch_clear(link);
}

void hca_link_flush(HcaLink *link)
{
    if (!link->up || link->tx_failed) {
        return;
    }
    stash_drain(link);
    if (!hca_link_tx_blocked(link)) {
        batch_write(link);
    }
}

bool hca_link_tx_blocked(const HcaLink *link)
{
    return link->stash_end > 0;
}

static bool has_peer(const HcaLink *link)
{
    return hca_link_is_up(link) && !link->tx_failed;
}

bool hca_link_can_send(const HcaLink *link, bool loopback)
{
    if (loopback) {
        return hca_loopback_can_put(link->loopback);
    }
    if (!has_peer(link)) {
        return true;            /* and lost */
    }
    /* Copied pieces that meet are one, so header and trailer add two. */
    return !hca_link_tx_blocked(link) &&
           BATCH_SIZE - link->batch_bytes >= HCA_FRAME_MAX_SIZE &&
           BATCH_IOV - link->batch_iovcnt >= HCA_LINK_MAX_IOV + 2;
}

static void send_to_peer(HcaLink *link, unsigned vl, const struct iovec *piece,
                         unsigned count, size_t len)
{
    uint8_t frame_header[HCA_FRAME_HEADER_SIZE];

    if (!has_peer(link)) {
        link->counters.tx_discarded++;
        return;
    }
    hca_frame_write_header(frame_header, HCA_FRAME_PACKET, vl, len);
    batch_copy(link, frame_header, sizeof(frame_header));
    for (unsigned i = 0; i < count; i++) {
        batch_add(link, &piece[i]);
    }
    link->counters.tx_packets++;
    link->counters.tx_bytes += len;
}

void hca_link_send(HcaLink *link, bool loopback, unsigned vl,
                   const void *header, size_t header_len,
                   const struct iovec *payload, unsigned iovcnt,
                   const void *trailer, size_t trailer_len)
{
    struct iovec piece[HCA_LINK_MAX_IOV + 2];
    unsigned count = iovcnt + 2;
    size_t len = 0;

    g_return_if_fail(iovcnt <= HCA_LINK_MAX_IOV && vl <= HCA_FRAME_MAX_VL);
    g_return_if_fail(hca_link_can_send(link, loopback));
    piece[0].iov_base = (void *)header;
    piece[0].iov_len = header_len;
    if (iovcnt) {
        memcpy(piece + 1, payload, iovcnt * sizeof(*payload));
    }
    piece[count - 1].iov_base = (void *)trailer;
    piece[count - 1].iov_len = trailer_len;
    for (unsigned i = 0; i < count; i++) {
        len += piece[i].iov_len;
    }
    g_return_if_fail(len >= 1 && len <= HCA_FRAME_MAX_PACKET);

    if (loopback) {
        hca_loopback_put(link->loopback, piece, count);
        link->counters.loopback_packets++;
    } else {
        send_to_peer(link, vl, piece, count, len);
    }
}

/* Receive */

static void rx_fail(HcaLink *link)
{
    link->rx_failed = true;
    link->counters.rx_frame_errors++;
}

/* What to do with a frame: the packet in it, or NULL if there is none. */
static const uint8_t *rx_frame(HcaLink *link, const HcaFrame *frame)
{
    if (!link->greeted) {
        link->greeted = hca_frame_greeting_matches(frame, HCA_LINK_LAYER_IB);
        if (!link->greeted) {
            rx_fail(link);
        }
        return NULL;
    }
    if (frame->type != HCA_FRAME_PACKET) {
        rx_fail(link);
        return NULL;
    }
    if (frame->error) {
        link->counters.rx_marked_bad++;
        return NULL;
    }
    return frame->body;
}

/* The next packet that has arrived whole. */
static const uint8_t *rx_packet(HcaLink *link, size_t *len)
{
    const uint8_t *packet = NULL;

    while (!packet && !link->rx_failed) {
        HcaFrame frame;
        int size = hca_frame_read(&frame, link->rx + link->rx_at,
                                  link->rx_end - link->rx_at);

        if (size < 0) {
            rx_fail(link);
        } else if (size == 0) {
            break;
        } else {
            link->rx_at += size;
            packet = rx_frame(link, &frame);
            *len = frame.len;
        }
    }
    return packet;
}

/*
 * Read what the cable has, behind the incomplete frame that is left, which
 * moves to the front. False if there is nothing now.
 */
static bool rx_fill(HcaLink *link)
{
    struct iovec iov;
    ssize_t n;

    link->rx_end -= link->rx_at;
    memmove(link->rx, link->rx + link->rx_at, link->rx_end);
    link->rx_at = 0;
    iov.iov_base = link->rx + link->rx_end;
    iov.iov_len = RX_SIZE - link->rx_end;
    do {
        n = link->ops->link_readv(link->opaque, &iov, 1);
    } while (n == -EINTR);
    if (n <= 0) {
        return false;
    }
    link->rx_end += n;
    return true;
}

static const uint8_t *receive_from_peer(HcaLink *link, size_t *len)
{
    const uint8_t *packet;

    link->rx_unfinished = false;
    packet = rx_packet(link, len);
    for (unsigned reads = 0; !packet && !link->rx_failed; reads++) {
        if (link->rx_rest) {
            return NULL;
        }
        if (reads == RX_READS) {
            link->rx_unfinished = true;
            return NULL;
        }
        if (!rx_fill(link)) {
            link->rx_rest = RX_REST;
            return NULL;
        }
        packet = rx_packet(link, len);
    }
    if (packet) {
        link->counters.rx_packets++;
        link->counters.rx_bytes += *len;
    }
    return packet;
}

static const uint8_t *receive_from_self(HcaLink *link, size_t *len)
{
    if (link->rx_rest) {
        link->rx_rest--;
    }
    return hca_loopback_get(link->loopback, len);
}

const uint8_t *hca_link_receive(HcaLink *link, size_t *len, bool *loopback)
{
    for (unsigned i = 0; i < 2; i++) {
        const uint8_t *packet = NULL;

        link->loopback_turn = !link->loopback_turn;
        if (link->loopback_turn) {
            packet = receive_from_self(link, len);
        } else if (link->up) {
            packet = receive_from_peer(link, len);
        }
        if (packet) {
            *loopback = link->loopback_turn;
            return packet;
        }
    }
    link->rx_rest = 0;
    return NULL;
}

bool hca_link_rx_pending(const HcaLink *link)
{
    HcaFrame frame;

    if (!hca_loopback_is_empty(link->loopback)) {
        return true;
    }
    return link->up && !link->rx_failed &&
           (link->rx_unfinished ||
            hca_frame_read(&frame, link->rx + link->rx_at,
                           link->rx_end - link->rx_at) != 0);
}

bool hca_link_rx_failed(const HcaLink *link)
{
    return link->rx_failed;
}

/* State */

/*
 * Bytes of the stream are left alone, but for the whole packets that have
 * arrived: the peer must still find every frame where it expects it.
 */
void hca_link_clear(HcaLink *link)
{
    size_t len;

    batch_clear(link);
    hca_loopback_clear(link->loopback);
    while (rx_packet(link, &len)) {
        /* forgotten */
    }
}

void hca_link_set_up(HcaLink *link, bool up)
{
    link->up = up;
    link->greeted = false;
    link->rx_failed = false;
    link->tx_failed = false;
    link->rx_unfinished = false;
    link->rx_rest = 0;
    link->rx_at = 0;
    link->rx_end = 0;
    batch_clear(link);
    stash_clear(link);
    if (up) {
        uint8_t greeting[HCA_GREETING_FRAME_SIZE];

        batch_copy(link, greeting,
                   hca_frame_write_greeting(greeting, HCA_LINK_LAYER_IB));
        hca_link_flush(link);
    }
}

bool hca_link_is_up(const HcaLink *link)
{
    return link->up && link->greeted && !link->rx_failed;
}

const HcaLinkCounters *hca_link_counters(const HcaLink *link)
{
    return &link->counters;
}
