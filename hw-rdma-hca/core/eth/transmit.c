/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Transmit: from descriptors to a frame in the link's buffer.
 *
 * A frame is taken when it lies wholly behind the tail. One that cannot be
 * sent ends with ERROR in its last descriptor, and the ring goes on. What is
 * in the frame is not looked at, be it a RoCE packet.
 */
#include <string.h>

#include "eth_int.h"

G_STATIC_ASSERT(HCA_ETH_MAX_FRAME <= HCA_LINK_MAX_PACKET);

typedef struct Pieces {
    HcaEthTxDesc desc[HCA_ETH_MAX_PIECES];
    unsigned count;
    bool whole; /* the last one is the frame's last */
} Pieces;

/* Memory or, with a ring that is not RAM, the ring itself is of no use. */
static void ring_fails(HcaEth *eth)
{
    eth->tx.running = false;
    eth->counters.tx_errors++;
}

/*
 * The pieces of the next frame, or as many of them as a frame can have. False
 * if its end is not there yet.
 */
static bool fetch_pieces(HcaEth *eth, Pieces *pieces)
{
    unsigned n = MIN(hca_eth_ring_level(&eth->tx), HCA_ETH_MAX_PIECES);

    pieces->whole = false;
    for (pieces->count = 0; pieces->count < n && !pieces->whole;) {
        HcaEthTxDesc *desc = &pieces->desc[pieces->count];
        uint64_t addr;
        const void *slot = hca_eth_ring_slot(
            eth, &eth->tx, eth->tx.head + pieces->count, &addr);

        if (!slot) {
            ring_fails(eth);
            return false;
        }
        eth->hca->format->eth->read_tx(slot, desc);
        pieces->count++;
        pieces->whole = desc->last;
    }
    return pieces->whole || n == HCA_ETH_MAX_PIECES;
}

/* Give the pieces back; @good is for the last one. */
static void complete(HcaEth *eth, unsigned count, bool good)
{
    while (count--) {
        uint64_t addr;
        void *slot = hca_eth_ring_slot(eth, &eth->tx, eth->tx.head, &addr);

        if (!slot) {
            ring_fails(eth);
            return;
        }
        eth->hca->format->eth->tx_done(slot, count || good);
        hca_eth_ring_done(eth, addr);
        eth->tx.head++;
    }
}

static bool copy_from_guest(const Hca *hca, uint8_t *to, uint64_t addr,
                            uint64_t len)
{
    while (len) {
        uint64_t n = len;
        const void *from = hca->ops->dma_map(hca->opaque, addr, &n, false);

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

/* The frame's length, or 0 if it is too short or too long, or not RAM. */
static size_t gather(HcaEth *eth, const Pieces *pieces, uint8_t *frame)
{
    size_t len = 0;

    for (unsigned i = 0; i < pieces->count; i++) {
        const HcaEthTxDesc *desc = &pieces->desc[i];

        if (desc->len > HCA_ETH_MAX_FRAME - len ||
            !copy_from_guest(eth->hca, frame + len, desc->addr, desc->len)) {
            return 0;
        }
        len += desc->len;
    }
    return len >= HCA_ETH_HEADER_SIZE ? len : 0;
}

static bool send_frame(HcaEth *eth, const Pieces *pieces)
{
    const HcaEthTxDesc *first = &pieces->desc[0];
    HcaLink *link = eth->hca->link;
    uint8_t *frame = hca_link_open(link, false);
    size_t len = gather(eth, pieces, frame);

    if (!len || (first->checksum &&
                 !hca_eth_checksum_fill(frame, len, first->csum_start,
                                        first->csum_offset))) {
        return false;
    }
    if (len < HCA_ETH_MIN_FRAME) {
        memset(frame + len, 0, HCA_ETH_MIN_FRAME - len);
        len = HCA_ETH_MIN_FRAME;
    }
    hca_link_close(link, false, 0, len);
    eth->counters.tx_frames++;
    eth->counters.tx_bytes += len;
    return true;
}

/* A frame, or the part of one with too many pieces. False: not all there. */
static bool run_frame(HcaEth *eth)
{
    Pieces pieces;
    bool sent;

    if (!fetch_pieces(eth, &pieces)) {
        return false;
    }
    sent = pieces.whole && !eth->tx_discard && send_frame(eth, &pieces);
    eth->counters.tx_errors += !sent && !eth->tx_discard;
    eth->tx_discard = !pieces.whole;
    complete(eth, pieces.count, sent || !pieces.whole);
    return true;
}

static bool link_takes_frame(HcaLink *link)
{
    if (!hca_link_can_send(link, false)) {
        hca_link_flush(link);
    }
    return hca_link_can_send(link, false);
}

bool hca_eth_run(HcaEth *eth, unsigned budget)
{
    bool more;

    do {
        more = eth->tx.running && hca_eth_ring_level(&eth->tx) &&
               link_takes_frame(eth->hca->link);
    } while (more && budget-- && (more = run_frame(eth)));
    hca_eth_ring_notify(eth, &eth->tx);
    return more;
}
