/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Transmit: from descriptors to a frame in the link's buffer.
 *
 * A frame is taken when it lies wholly behind the tail. One that cannot be
 * sent ends with ERROR in its last descriptor, and the ring goes on. What is
 * in the frame is not looked at, be it a RoCE packet, unless it is to be cut
 * into TCP segments. Each of these is a frame to the link and to the budget;
 * one that meets memory that is not RAM ends those behind it.
 */
#include <string.h>

#include "eth_int.h"

/* Frames of a ring before the next ring's. */
#define RING_SHARE 16

G_STATIC_ASSERT(HCA_ETH_MAX_FRAME <= HCA_LINK_MAX_PACKET);

/* Memory or, with a ring that is not RAM, the ring itself is of no use. */
static void ring_fails(HcaEth *eth, HcaEthQueue *queue)
{
    queue->tx.running = false;
    eth->counters.tx_errors++;
}

/*
 * The pieces of the next frame, or as many of them as a frame can have. False
 * if its end is not there yet.
 */
static bool fetch_pieces(HcaEth *eth, HcaEthQueue *queue)
{
    HcaEthPieces *pieces = &queue->pieces;
    HcaEthRing *tx = &queue->tx;
    unsigned n = MIN(hca_eth_ring_level(tx), HCA_ETH_MAX_PIECES);

    pieces->whole = false;
    for (pieces->count = 0; pieces->count < n && !pieces->whole;) {
        HcaEthTxDesc *desc = &pieces->desc[pieces->count];
        uint64_t addr;
        const void *slot = hca_eth_ring_slot(eth, tx, tx->head + pieces->count,
                                             &addr);

        if (!slot) {
            ring_fails(eth, queue);
            return false;
        }
        eth->hca->format->eth->read_tx(slot, desc);
        pieces->count++;
        pieces->whole = desc->last;
    }
    return pieces->whole || n == HCA_ETH_MAX_PIECES;
}

/* Give the pieces back; @good is for the last one. */
static void complete(HcaEth *eth, HcaEthQueue *queue, bool good)
{
    HcaEthRing *tx = &queue->tx;

    for (unsigned left = queue->pieces.count; left--;) {
        uint64_t addr;
        void *slot = hca_eth_ring_slot(eth, tx, tx->head, &addr);

        if (!slot) {
            ring_fails(eth, queue);
            return;
        }
        eth->hca->format->eth->tx_done(slot, left || good);
        hca_eth_ring_done(eth, addr);
        tx->head++;
    }
    hca_eth_ring_frame_done(tx);
}

static bool copy_from_guest(const Hca *hca, uint8_t *to, uint64_t addr,
                            uint64_t len)
{
    while (len) {
        uint64_t n = len;
        const void *from = hca->host.ops->dma_map(hca->host.opaque, addr, &n,
                                                  false);

        if (!from) {
            return false;
        }
        memcpy(to, from, n);
        to += n;
        addr += n;
        len -= n;
    }
    return true;
}

/* Add the frame in the link's buffer to what is sent. */
static void put_frame(HcaEth *eth, uint8_t *frame, size_t len)
{
    if (len < HCA_ETH_MIN_FRAME) {
        memset(frame + len, 0, HCA_ETH_MIN_FRAME - len);
        len = HCA_ETH_MIN_FRAME;
    }
    hca_link_close(eth->hca->link, false, 0, len);
    eth->counters.tx_frames++;
    eth->counters.tx_bytes += len;
}

/* A frame as it is */

/* The frame's length, or 0 if it is too short or too long, or not RAM. */
static size_t gather(HcaEth *eth, const HcaEthPieces *pieces, uint8_t *frame)
{
    size_t len = 0;

    for (unsigned i = 0; i < pieces->count; i++) {
        const HcaEthTxDesc *desc = &pieces->desc[i];

        if (desc->tso || desc->len > HCA_ETH_MAX_FRAME - len ||
            !copy_from_guest(eth->hca, frame + len, desc->addr, desc->len)) {
            return 0;
        }
        len += desc->len;
    }
    return len >= HCA_ETH_HEADER_SIZE ? len : 0;
}

static bool send_frame(HcaEth *eth, const HcaEthPieces *pieces)
{
    const HcaEthTxDesc *first = &pieces->desc[0];
    uint8_t *frame = hca_link_open(eth->hca->link, false);
    size_t len = gather(eth, pieces, frame);

    if (!len || (first->checksum &&
                 !hca_eth_checksum_fill(frame, len, first->csum_start,
                                        first->csum_offset))) {
        return false;
    }
    put_frame(eth, frame, len);
    return true;
}

/* A frame that is cut into TCP segments */

/* The next @len bytes, which are there, from where the last ones ended. */
static bool take_bytes(HcaEth *eth, HcaEthQueue *queue, uint8_t *to, size_t len)
{
    HcaEthTso *tso = &queue->tso;

    while (len) {
        const HcaEthTxDesc *desc = &queue->pieces.desc[tso->piece];
        size_t n = MIN(len, desc->len - tso->at);

        if (!copy_from_guest(eth->hca, to, desc->addr + tso->at, n)) {
            return false;
        }
        to += n;
        len -= n;
        tso->at += n;
        if (tso->at == desc->len) {
            tso->piece++;
            tso->at = 0;
        }
    }
    return true;
}

/* Bytes of all pieces; 0: one of them is none. */
static size_t whole_length(const HcaEthPieces *pieces)
{
    size_t len = 0;

    for (unsigned i = 1; i < pieces->count; i++) {
        if (pieces->desc[i].tso) {
            return 0;
        }
        len += pieces->desc[i].len;
    }
    return len;
}

/* Read the headers, and judge them. */
static bool begin_tso(HcaEth *eth, HcaEthQueue *queue)
{
    const HcaEthTxDesc *desc = &queue->pieces.desc[0];
    size_t len = whole_length(&queue->pieces);
    HcaEthTso *tso = &queue->tso;

    if (len > HCA_ETH_MAX_TSO || desc->header_len >= len ||
        desc->mss < HCA_ETH_MIN_MSS ||
        desc->header_len > HCA_ETH_MAX_TSO_HEADER ||
        desc->header_len + desc->mss > HCA_ETH_MAX_FRAME) {
        return false;
    }
    tso->piece = 1;
    tso->at = 0;
    tso->sent = 0;
    tso->segments = 0;
    tso->mss = desc->mss;
    tso->header_len = desc->header_len;
    tso->ip_start = desc->ip_start;
    tso->tcp_start = desc->tcp_start;
    if (!take_bytes(eth, queue, tso->header, desc->header_len) ||
        !hca_eth_tso_check(tso)) {
        return false;
    }
    tso->left = len - desc->header_len;
    eth->counters.tx_tso++;
    return true;
}

static bool send_segment(HcaEth *eth, HcaEthQueue *queue)
{
    HcaEthTso *tso = &queue->tso;
    uint8_t *frame = hca_link_open(eth->hca->link, false);
    uint16_t len = MIN(tso->left, tso->mss);

    if (!take_bytes(eth, queue, frame + tso->header_len, len)) {
        tso->left = 0;
        return false;
    }
    hca_eth_tso_headers(tso, frame, len);
    put_frame(eth, frame, tso->header_len + len);
    tso->segments++;
    tso->sent += len;
    tso->left -= len;
    eth->counters.tx_segments++;
    return true;
}

/* Whichever it is */

static bool send_next(HcaEth *eth, HcaEthQueue *queue)
{
    if (!queue->tso.left && !queue->pieces.desc[0].tso) {
        return send_frame(eth, &queue->pieces);
    }
    return (queue->tso.left || begin_tso(eth, queue)) &&
           send_segment(eth, queue);
}

/* The end of the frame in hand, or of the part of one with too many pieces. */
static void end_frame(HcaEth *eth, HcaEthQueue *queue, bool sent)
{
    bool whole = queue->pieces.whole;

    eth->counters.tx_errors += !sent && !queue->tx_discard;
    queue->tx_discard = !whole;
    complete(eth, queue, sent || !whole);
}

/* A frame, a segment, or a part of a frame. False: it is not all there. */
static bool run_frame(HcaEth *eth, HcaEthQueue *queue)
{
    bool sent;

    if (!queue->tso.left && !fetch_pieces(eth, queue)) {
        return false;
    }
    sent = queue->pieces.whole && !queue->tx_discard && send_next(eth, queue);
    if (!queue->tso.left) {
        end_frame(eth, queue, sent);
    }
    return true;
}

static bool link_takes_frame(HcaEth *eth)
{
    HcaLink *link = eth->hca->link;

    if (!hca_link_can_send(link, false)) {
        hca_link_flush(link);
    }
    if (!hca_link_can_send(link, false)) {
        eth->tx_waits = true;
        return false;
    }
    return true;
}

/* At most @share frames. True if the ring could go on at once. */
static bool run_ring(HcaEth *eth, HcaEthQueue *queue, unsigned share,
                     unsigned *sent)
{
    bool more;

    do {
        more = queue->tx.running && hca_eth_ring_level(&queue->tx) &&
               link_takes_frame(eth);
    } while (more && share-- && (++*sent, more = run_frame(eth, queue)));
    hca_eth_ring_notify(eth, &queue->tx);
    return more;
}

/*
 * Each ring has its share once, if the cable takes so much: the next turn begins
 * behind the ring that had something last. True if one of them could go on.
 */
static bool run_rings(HcaEth *eth, unsigned budget, unsigned *sent)
{
    unsigned first = eth->tx_turn;
    bool more = false;

    for (unsigned i = 0; i < HCA_ETH_MAX_QUEUES; i++) {
        unsigned number = (first + i) % HCA_ETH_MAX_QUEUES;
        unsigned before = *sent;

        more |= run_ring(eth, &eth->queue[number],
                         MIN(RING_SHARE, budget - *sent), sent);
        if (*sent != before) {
            eth->tx_turn = number + 1;
        }
    }
    return more;
}

bool hca_eth_run(HcaEth *eth, unsigned budget)
{
    unsigned sent = 0;
    bool more;

    eth->tx_waits = false;
    do {
        more = run_rings(eth, budget, &sent);
    } while (more && sent < budget);
    return more;
}

bool hca_eth_waits(const HcaEth *eth)
{
    return eth->tx_waits;
}
