/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The card's end of the cable, in place of the LinkLayer that the engine
 * document (section 6) connects to by FIFOs of 72-bit words.
 *
 * Transmit. Packets are written one behind the other into one buffer, which
 * is put on the cable by as few writes as it takes. While it does not take
 * all, nothing more is sent to the peer: back-pressure instead of loss, as
 * with the prog_full signals of the FIFOs.
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

#define TX_SIZE (256 * 1024)
#define RX_SIZE (256 * 1024)
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
    bool tx_blocked;            /* the cable did not take all */
    size_t tx_at;               /* first byte that the cable did not take */
    size_t tx_end;              /* after the last byte of a whole packet */

    uint8_t tx[TX_SIZE];
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

static void tx_clear(HcaLink *link)
{
    link->tx_blocked = false;
    link->tx_at = 0;
    link->tx_end = 0;
}

/* The stream is broken; the host takes the link down soon. */
static void tx_fail(HcaLink *link)
{
    link->tx_failed = true;
    tx_clear(link);
}

/* As link_writev of the host; 0 when the cable takes nothing, now or ever. */
static size_t cable_write(HcaLink *link, uint8_t *data, size_t len)
{
    struct iovec iov = { data, len };
    ssize_t n;

    do {
        n = link->ops->link_writev(link->opaque, &iov, 1);
    } while (n == -EINTR);
    if (n > 0) {
        link->counters.tx_writes++;
        return n;
    }
    if (n == -EAGAIN) {
        link->counters.tx_waits++;
    } else {
        tx_fail(link);
    }
    return 0;
}

void hca_link_flush(HcaLink *link)
{
    if (!link->up || link->tx_failed) {
        return;
    }
    while (link->tx_at < link->tx_end) {
        size_t n = cable_write(link, link->tx + link->tx_at,
                               link->tx_end - link->tx_at);

        if (!n) {
            link->tx_blocked = !link->tx_failed;
            return;
        }
        link->tx_at += n;
    }
    tx_clear(link);
}

bool hca_link_tx_blocked(const HcaLink *link)
{
    return link->tx_blocked;
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
    return !hca_link_tx_blocked(link) &&
           TX_SIZE - link->tx_end >= HCA_FRAME_MAX_SIZE;
}

uint8_t *hca_link_open(HcaLink *link, bool loopback)
{
    return loopback ? hca_loopback_open(link->loopback)
                    : link->tx + link->tx_end + HCA_FRAME_HEADER_SIZE;
}

static void close_to_peer(HcaLink *link, unsigned vl, size_t len)
{
    if (!has_peer(link)) {
        link->counters.tx_discarded++;
        return;
    }
    hca_frame_write_header(link->tx + link->tx_end, HCA_FRAME_PACKET, vl, len);
    link->tx_end += HCA_FRAME_HEADER_SIZE + len;
    link->counters.tx_packets++;
    link->counters.tx_bytes += len;
}

void hca_link_close(HcaLink *link, bool loopback, unsigned vl, size_t len)
{
    if (loopback) {
        hca_loopback_close(link->loopback, len);
        link->counters.loopback_packets++;
    } else {
        close_to_peer(link, vl, len);
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
        if (link->greeted) {
            link->counters.peers++;
        } else {
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
    link->counters.rx_reads++;
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
 * arrived or that no write has touched: each side must still find every frame
 * where it expects it.
 */
void hca_link_clear(HcaLink *link)
{
    size_t len;

    if (!link->tx_blocked) {
        tx_clear(link);
    }
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
    tx_clear(link);
    if (up) {
        link->tx_end = hca_frame_write_greeting(link->tx, HCA_LINK_LAYER_IB);
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

void hca_link_reset_counters(HcaLink *link)
{
    memset(&link->counters, 0, sizeof(link->counters));
}
