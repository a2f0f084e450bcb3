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
 * All memory is allocated by hca_link_new(), but for that of a plan of faults
 * and a capture. The virtual lane is carried, but all lanes share one queue.
 */
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "capture.h"
#include "fault_int.h"
#include "framing.h"
#include "link.h"
#include "loopback.h"

#define TX_SIZE (256 * 1024)
#define RX_SIZE (256 * 1024)
/* Reads for one packet: a peer that sends nothing useful gets no more. */
#define RX_READS 16
/* While the cable is silent it is asked once in so many loopback packets. */
#define RX_REST 64
/* Packets that faults may swallow while one is looked for. */
#define RX_SWALLOW 128

struct HcaLink {
    HcaLinkLayer link_layer;
    const HcaHostOps *ops;
    void *opaque;
    HcaLoopback *loopback;
    HcaLoopback *tap; /* copies of what is sent, NULL: none */
    HcaInjector *faults;
    HcaCapture *capture;
    HcaLinkCounters counters;

    bool up;                 /* there is a stream */
    bool greeted;            /* the peer's greeting has arrived, if any */
    bool peer_enabled;       /* as the peer said last */
    bool enabled;            /* the own port */
    bool told;               /* that it is, as the stream says so far */
    bool was_disabled;       /* since then, maybe for a moment */
    unsigned downs;          /* times that the link went down */
    bool rx_failed;          /* the peer broke the framing */
    bool tx_failed;          /* the stream takes nothing, for good */
    bool rx_unfinished;      /* stopped reading before the cable was empty */
    bool loopback_turn;      /* who was asked first last time */
    unsigned rx_rest;        /* loopback packets before the next read */
    unsigned rx_swallowed;   /* by faults, since a packet was asked for */
    const uint8_t *rx_again; /* handed out, to be so once more */
    size_t rx_again_len;
    HcaFault rx_again_fault;
    HcaHeld *rx_lent; /* where the packet handed out last lies */

    size_t rx_at;      /* first byte not handed out */
    size_t rx_end;     /* after the last byte received */
    bool tx_blocked;   /* the cable did not take all */
    size_t tx_at;      /* first byte that the cable did not take */
    size_t tx_end;     /* after the last byte of a whole packet */
    uint64_t tx_gone;  /* bytes that were in front of tx_at, ever */
    int64_t pause_end; /* nothing is sent until then; 0: no pause */

    uint8_t *tx;
    uint8_t *rx;
    uint8_t *lost; /* where packets are built that nobody gets */
};

static const HcaEncap *encap_of(HcaLinkLayer link_layer)
{
    return link_layer == HCA_LINK_LAYER_ROCE ? &hca_encap_roce : &hca_encap_ib;
}

HcaLink *hca_link_new(HcaLinkLayer link_layer, const HcaHostOps *ops,
                      void *opaque)
{
    HcaLink *link = g_new0(HcaLink, 1);

    link->link_layer = link_layer;
    link->ops = ops;
    link->opaque = opaque;
    link->loopback = hca_loopback_new();
    link->faults = hca_injector_new(ops, opaque, encap_of(link_layer));
    link->capture = hca_capture_new(ops, opaque);
    link->tx = g_malloc0(TX_SIZE);
    link->rx = g_malloc0(RX_SIZE);
    link->lost = g_malloc0(HCA_FRAME_MAX_PACKET);
    return link;
}

void hca_link_free(HcaLink *link)
{
    if (link) {
        hca_loopback_free(link->loopback);
        hca_loopback_free(link->tap);
        hca_injector_free(link->faults);
        hca_capture_free(link->capture);
        g_free(link->tx);
        g_free(link->rx);
        g_free(link->lost);
        g_free(link);
    }
}

/* @fault: what was done to the packet, or NULL. */
static void record(HcaLink *link, bool sent, const uint8_t *packet, size_t len,
                   const HcaFault *fault)
{
    char text[HCA_FAULT_TEXT_SIZE];

    if (!hca_capture_is_watching(link->capture)) {
        return;
    }
    if (fault) {
        hca_fault_describe(fault, text);
    }
    hca_capture_packet(link->capture, sent, packet, len, fault ? text : NULL);
}

/* Transmit */

static void tx_clear(HcaLink *link)
{
    link->tx_gone += link->tx_end - link->tx_at;
    link->tx_blocked = false;
    link->tx_at = 0;
    link->tx_end = 0;
}

/* The stream is broken; the host takes the link down soon. */
static void tx_fail(HcaLink *link)
{
    link->tx_failed = true;
    tx_clear(link);
    hca_injector_forget(link->faults, HCA_FAULT_TX);
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

/* False when the cable did not take all. */
static bool tx_write(HcaLink *link)
{
    while (link->tx_at < link->tx_end) {
        size_t n = cable_write(link, link->tx + link->tx_at,
                               link->tx_end - link->tx_at);

        if (!n) {
            link->tx_blocked = !link->tx_failed;
            return false;
        }
        link->tx_at += n;
        link->tx_gone += n;
    }
    tx_clear(link);
    return true;
}

bool hca_link_tx_blocked(const HcaLink *link)
{
    return link->tx_blocked;
}

uint64_t hca_link_tx_mark(const HcaLink *link)
{
    return link->tx_gone + (link->tx_end - link->tx_at);
}

bool hca_link_tx_passed(const HcaLink *link, uint64_t mark)
{
    return mark <= link->tx_gone;
}

static bool is_roce(const HcaLink *link)
{
    return link->link_layer == HCA_LINK_LAYER_ROCE;
}

/* Whether a packet that is sent now can arrive. */
static bool has_peer(const HcaLink *link)
{
    return hca_link_is_up(link) && !link->tx_failed &&
           (link->enabled || is_roce(link));
}

static uint8_t *tx_place(HcaLink *link)
{
    return link->tx + link->tx_end + HCA_FRAME_HEADER_SIZE;
}

/* The packet at tx_place() goes. */
static void tx_put(HcaLink *link, unsigned vl, size_t len,
                   const HcaFault *fault)
{
    record(link, true, tx_place(link), len, fault);
    hca_frame_write_header(link->tx + link->tx_end, HCA_FRAME_PACKET, vl, len);
    link->tx_end += HCA_FRAME_HEADER_SIZE + len;
    link->counters.tx_packets++;
    link->counters.tx_bytes += len;
}

static void tx_put_copy(HcaLink *link, unsigned vl, const uint8_t *packet,
                        size_t len, const HcaFault *fault)
{
    memcpy(tx_place(link), packet, len);
    tx_put(link, vl, len, fault);
}

static bool tx_takes(const HcaLink *link, size_t size)
{
    return !link->tx_blocked && TX_SIZE - link->tx_end >= size;
}

/* Packets that were held back and are due, as far as there is room. */
static void tx_put_due(HcaLink *link)
{
    HcaHeld *held;

    if (!has_peer(link)) {
        return;
    }
    while (tx_takes(link, HCA_FRAME_MAX_SIZE) &&
           (held = hca_injector_take_due(link->faults, HCA_FAULT_TX))) {
        tx_put_copy(link, held->vl, held->packet, held->len, &held->fault);
        hca_injector_give_back(link->faults, HCA_FAULT_TX, held);
    }
}

static void tx_put_state(HcaLink *link, bool enabled)
{
    link->tx_end += hca_frame_write_state(link->tx + link->tx_end, enabled);
    link->told = enabled;
}

/*
 * Tell the peer what has become of the port, if it has not been told: also that
 * it was disabled for a while. Without room now it is told later, in one.
 */
static void tx_tell(HcaLink *link)
{
    if (!link->up || link->tx_failed || is_roce(link) ||
        !tx_takes(link, 2 * HCA_STATE_FRAME_SIZE)) {
        return;
    }
    if (link->told && link->was_disabled) {
        tx_put_state(link, false);
    }
    if (link->told != link->enabled) {
        tx_put_state(link, link->enabled);
    }
    link->was_disabled = false;
}

void hca_link_flush(HcaLink *link)
{
    if (!link->up || link->tx_failed) {
        return;
    }
    do {
        tx_tell(link);
        if (!tx_write(link)) {
            return;
        }
        if (link->faults->on) {
            tx_put_due(link);
        }
        tx_tell(link);
    } while (link->tx_at < link->tx_end);
}

/* For a packet with its second copy. Those held back that find none wait. */
static bool tx_has_room(const HcaLink *link)
{
    return tx_takes(link, (link->faults->on ? 2 : 1) * HCA_FRAME_MAX_SIZE);
}

bool hca_link_can_send(const HcaLink *link, bool loopback)
{
    if (loopback) {
        return hca_loopback_can_put(link->loopback);
    }
    if (!has_peer(link)) {
        return true; /* and lost */
    }
    if (link->pause_end || (link->tap && !hca_loopback_can_put(link->tap))) {
        return false;
    }
    return tx_has_room(link);
}

uint8_t *hca_link_open(HcaLink *link, bool loopback)
{
    if (loopback) {
        return hca_loopback_open(link->loopback);
    }
    return has_peer(link) ? tx_place(link) : link->lost;
}

/* The packet at tx_place() meets the plan of faults. */
static void tx_faulty(HcaLink *link, unsigned vl, size_t len)
{
    uint8_t *packet = tx_place(link);
    HcaFault fault = hca_injector_treat(link->faults, HCA_FAULT_TX, packet, len,
                                        vl);

    switch (fault.action) {
    case HCA_FAULT_DROP:
        record(link, true, packet, len, &fault);
        return;
    case HCA_FAULT_REORDER:
    case HCA_FAULT_DELAY:
        return;
    case HCA_FAULT_DUPLICATE:
        tx_put(link, vl, len, NULL);
        tx_put_copy(link, vl, packet, len, &fault);
        break;
    case HCA_FAULT_CORRUPT:
    case HCA_FAULT_MARK:
        tx_put(link, vl, len, &fault);
        break;
    case HCA_FAULT_NACTIONS:
        tx_put(link, vl, len, NULL);
        break;
    }
    tx_put_due(link);
}

static void tx_put_faulty(HcaLink *link, unsigned vl, size_t len)
{
    if (link->faults->on) {
        tx_faulty(link, vl, len);
    } else {
        tx_put(link, vl, len, NULL);
    }
}

static void close_to_peer(HcaLink *link, unsigned vl, size_t len)
{
    if (!has_peer(link)) {
        link->counters.tx_discarded++;
        return;
    }
    if (link->tap) {
        memcpy(hca_loopback_open(link->tap), tx_place(link), len);
        hca_loopback_close(link->tap, len);
    }
    tx_put_faulty(link, vl, len);
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

void hca_link_pause(HcaLink *link, int64_t ns)
{
    link->pause_end = ns ? link->ops->clock_ns(link->opaque) + ns : 0;
}

bool hca_link_is_paused(const HcaLink *link)
{
    return link->pause_end != 0;
}

bool hca_link_send_control(HcaLink *link, const uint8_t *frame, size_t len)
{
    if (!has_peer(link) || !tx_has_room(link)) {
        return false;
    }
    memcpy(tx_place(link), frame, len);
    tx_put_faulty(link, 0, len);
    return true;
}

void hca_link_set_tap(HcaLink *link, bool on)
{
    if (on && !link->tap) {
        link->tap = hca_loopback_new();
    } else if (!on) {
        hca_loopback_free(link->tap);
        link->tap = NULL;
    }
}

const uint8_t *hca_link_tapped(HcaLink *link, size_t *len)
{
    return link->tap ? hca_loopback_get(link->tap, len) : NULL;
}

/* Receive */

static void rx_fail(HcaLink *link)
{
    link->rx_failed = true;
    link->counters.rx_frame_errors++;
}

static void set_peer_enabled(HcaLink *link, bool enabled)
{
    link->downs += link->peer_enabled && !enabled;
    link->peer_enabled = enabled;
}

/* The first frame. */
static void rx_greeting(HcaLink *link, const HcaFrame *frame)
{
    bool enabled;

    link->greeted = hca_frame_read_greeting(frame, link->link_layer, &enabled);
    if (link->greeted) {
        link->counters.peers++;
        set_peer_enabled(link, enabled);
    } else {
        rx_fail(link);
    }
}

/* Whether there is a packet in a frame, to be handed out. */
static bool rx_frame(HcaLink *link, const HcaFrame *frame)
{
    bool enabled;

    if (!link->greeted) {
        rx_greeting(link, frame);
        return false;
    }
    if (hca_frame_read_state(frame, &enabled)) {
        set_peer_enabled(link, enabled);
        return false;
    }
    if (frame->type != HCA_FRAME_PACKET || !link->peer_enabled) {
        rx_fail(link);
        return false;
    }
    if (frame->error) {
        link->counters.rx_marked_bad++;
        return false;
    }
    return true;
}

/* The next packet that has arrived whole. */
static uint8_t *rx_packet(HcaLink *link, size_t *len)
{
    uint8_t *packet = NULL;

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
            *len = frame.len;
            if (rx_frame(link, &frame)) {
                packet = link->rx + link->rx_at - frame.len;
            }
        }
    }
    return packet;
}

/* The same, counted. */
static uint8_t *rx_arrived(HcaLink *link, size_t *len)
{
    uint8_t *packet = rx_packet(link, len);

    if (packet) {
        link->counters.rx_packets++;
        link->counters.rx_bytes += *len;
    }
    return packet;
}

/* A packet that came earlier and is to be handed out now. */
static const uint8_t *rx_kept(HcaLink *link, size_t *len)
{
    const uint8_t *packet = link->rx_again;
    HcaHeld *held;

    if (packet) {
        link->rx_again = NULL;
        *len = link->rx_again_len;
        record(link, false, packet, *len, &link->rx_again_fault);
        return packet;
    }
    held = hca_injector_take_due(link->faults, HCA_FAULT_RX);
    if (!held) {
        return NULL;
    }
    link->rx_lent = held;
    *len = held->len;
    record(link, false, held->packet, *len, &held->fault);
    return held->packet;
}

/* A packet that arrived meets the plan of faults; NULL if it goes no further. */
static const uint8_t *rx_treat(HcaLink *link, uint8_t *packet, size_t len)
{
    HcaFault fault = hca_injector_treat(link->faults, HCA_FAULT_RX, packet, len,
                                        0);

    switch (fault.action) {
    case HCA_FAULT_DROP:
        record(link, false, packet, len, &fault);
        return NULL;
    case HCA_FAULT_REORDER:
    case HCA_FAULT_DELAY:
        return NULL;
    case HCA_FAULT_DUPLICATE:
        link->rx_again = packet;
        link->rx_again_len = len;
        link->rx_again_fault = fault;
        break;
    case HCA_FAULT_CORRUPT:
    case HCA_FAULT_MARK:
        record(link, false, packet, len, &fault);
        return packet;
    case HCA_FAULT_NACTIONS:
        break;
    }
    record(link, false, packet, len, NULL);
    return packet;
}

static const uint8_t *rx_faulty(HcaLink *link, size_t *len)
{
    const uint8_t *packet;

    if (link->rx_lent) {
        hca_injector_give_back(link->faults, HCA_FAULT_RX, link->rx_lent);
        link->rx_lent = NULL;
    }
    packet = rx_kept(link, len);
    while (!packet && link->rx_swallowed < RX_SWALLOW) {
        uint8_t *arrived = rx_arrived(link, len);

        if (!arrived) {
            break;
        }
        packet = rx_treat(link, arrived, *len);
        link->rx_swallowed += !packet;
    }
    return packet;
}

/* The next packet for the card, of those that the cable has given. */
static const uint8_t *rx_next(HcaLink *link, size_t *len)
{
    const uint8_t *packet;

    if (link->faults->on || link->rx_again) {
        return rx_faulty(link, len);
    }
    packet = rx_arrived(link, len);
    if (packet) {
        record(link, false, packet, *len, NULL);
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

    if (link->rx_failed) {
        return NULL;
    }
    link->rx_unfinished = false;
    link->rx_swallowed = 0;
    packet = rx_next(link, len);
    for (unsigned reads = 0; !packet && !link->rx_failed; reads++) {
        if (link->rx_rest) {
            return NULL;
        }
        if (reads == RX_READS || link->rx_swallowed == RX_SWALLOW) {
            link->rx_unfinished = true;
            return NULL;
        }
        if (!rx_fill(link)) {
            link->rx_rest = RX_REST;
            return NULL;
        }
        packet = rx_next(link, len);
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
           (link->rx_unfinished || link->rx_again ||
            hca_injector_is_due(link->faults, HCA_FAULT_RX) ||
            hca_frame_read(&frame, link->rx + link->rx_at,
                           link->rx_end - link->rx_at) != 0);
}

bool hca_link_rx_failed(const HcaLink *link)
{
    return link->rx_failed;
}

/* Faults and capture */

void hca_link_set_faults(HcaLink *link, const HcaFaultPlan *plan)
{
    hca_injector_set_plan(link->faults, plan);
}

void hca_link_tick(HcaLink *link)
{
    if (link->faults->held) {
        hca_injector_tick(link->faults);
        tx_put_due(link);
    }
    if (link->pause_end &&
        link->pause_end <= link->ops->clock_ns(link->opaque)) {
        link->pause_end = 0;
    }
}

int64_t hca_link_deadline(const HcaLink *link)
{
    int64_t due = link->faults->held ? hca_injector_deadline(link->faults)
                                     : INT64_MAX;

    return link->pause_end ? MIN(due, link->pause_end) : due;
}

void hca_link_limit_capture(HcaLink *link, uint64_t max_bytes)
{
    hca_capture_limit(link->capture, max_bytes);
}

void hca_link_start_capture(HcaLink *link)
{
    hca_capture_start(link->capture,
                      is_roce(link) ? HCA_CAPTURE_ETHERNET : HCA_CAPTURE_IB);
}

void hca_link_flush_capture(HcaLink *link)
{
    hca_capture_flush(link->capture);
}

bool hca_link_is_captured(const HcaLink *link)
{
    return hca_capture_is_on(link->capture);
}

const HcaFaultCounters *hca_link_fault_counters(const HcaLink *link)
{
    return &link->faults->counters;
}

const HcaCaptureCounters *hca_link_capture_counters(const HcaLink *link)
{
    return hca_capture_counters(link->capture);
}

unsigned hca_link_held(const HcaLink *link)
{
    return link->faults->held;
}

/* State */

/* Forget what faults hold back. */
static void clear_faults(HcaLink *link)
{
    hca_injector_forget(link->faults, HCA_FAULT_TX);
    hca_injector_forget(link->faults, HCA_FAULT_RX);
    link->rx_again = NULL;
}

/*
 * What was written in part has to end, and the greeting has to come: each side
 * must still find every frame where it expects it. But of a packet zeros are
 * enough, which fail its CRCs.
 */
static void tx_forget(HcaLink *link)
{
    size_t at = 0, body = 0;
    HcaFrame frame = { 0 };

    if (!link->tx_blocked) {
        tx_clear(link);
        return;
    }
    while (at < link->tx_end && (at < link->tx_at || !link->tx_at)) {
        int size = hca_frame_read(&frame, link->tx + at, link->tx_end - at);

        if (!link->tx_at && frame.type != HCA_FRAME_GREETING) {
            break;
        }
        body = MAX(at + HCA_FRAME_HEADER_SIZE, link->tx_at);
        at += size;
    }
    link->tx_end = at;
    if (link->tx_at == link->tx_end) {
        tx_clear(link);
    } else if (frame.type == HCA_FRAME_PACKET) {
        memset(link->tx + body, 0, link->tx_end - body);
    }
}

void hca_link_enable(HcaLink *link, bool enabled)
{
    link->enabled = enabled;
    link->was_disabled |= !enabled;
    tx_tell(link);
}

void hca_link_clear(HcaLink *link)
{
    size_t len;

    tx_forget(link);
    if (link->ops->link_forget) {
        link->ops->link_forget(link->opaque);
    }
    hca_loopback_clear(link->loopback);
    hca_link_set_tap(link, false);
    hca_link_pause(link, 0);
    clear_faults(link);
    while (rx_packet(link, &len)) {
        /* forgotten */
    }
    /* What was to be told may be among what was forgotten. */
    link->told = true;
    link->was_disabled = true;
    tx_tell(link);
}

void hca_link_set_up(HcaLink *link, bool up)
{
    link->up = up;
    link->greeted = false;
    set_peer_enabled(link, false);
    link->rx_failed = false;
    link->tx_failed = false;
    link->rx_unfinished = false;
    link->rx_rest = 0;
    link->rx_at = 0;
    link->rx_end = 0;
    tx_clear(link);
    hca_link_pause(link, 0);
    clear_faults(link);
    if (!up) {
        return;
    }
    if (is_roce(link)) {
        link->greeted = true;
        link->peer_enabled = true;
        link->counters.peers++;
    } else {
        link->tx_end = hca_frame_write_greeting(link->tx, link->link_layer,
                                                link->enabled);
        link->told = link->enabled;
        link->was_disabled = false;
        hca_link_flush(link);
    }
}

bool hca_link_is_greeted(const HcaLink *link)
{
    return link->up && link->greeted && !link->rx_failed;
}

bool hca_link_is_up(const HcaLink *link)
{
    return hca_link_is_greeted(link) && link->peer_enabled;
}

unsigned hca_link_downs(const HcaLink *link)
{
    return link->downs;
}

const HcaLinkCounters *hca_link_counters(const HcaLink *link)
{
    return &link->counters;
}

void hca_link_reset_counters(HcaLink *link)
{
    memset(&link->counters, 0, sizeof(link->counters));
    memset(&link->faults->counters, 0, sizeof(link->faults->counters));
    hca_capture_reset_counters(link->capture);
}
