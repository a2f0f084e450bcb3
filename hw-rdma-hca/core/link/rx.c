/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive. One read fills a buffer with as many packets as there are; they are
 * handed out where they lie.
 */
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "link_int.h"

/* Reads for one packet: a peer that sends nothing useful gets no more. */
#define RX_READS 16
/* While the cable is silent it is asked once in so many loopback packets. */
#define RX_REST 64
/* Packets that faults may swallow while one is looked for. */
#define RX_SWALLOW 128

static void rx_fail(HcaLink *link)
{
    hca_link_move_lost(link);
    link->rx_failed = true;
    link->counters.rx_frame_errors++;
}

void hca_link_set_peer_enabled(HcaLink *link, bool enabled)
{
    link->downs += link->peer_enabled && !enabled;
    link->rx_changed |= link->peer_enabled != enabled;
    link->peer_enabled = enabled;
}

void hca_link_rx_begin(HcaLink *link)
{
    link->greeted = false;
    if (!link->away) {
        hca_link_set_peer_enabled(link, false);
        hca_link_forget_old(link);
    }
    link->rx_failed = false;
    link->rx_unfinished = false;
    link->rx_rest = 0;
    if (!link->old_left) {
        link->rx_at = 0;
        link->rx_end = 0;
    }
}

void hca_link_rx_greeting(HcaLink *link, const HcaFrame *frame)
{
    HcaGreeting greeting;

    link->greeted = hca_frame_read_greeting(frame, link->link_layer, &greeting);
    if (link->greeted) {
        link->counters.peers++;
        link->peer_managed = greeting.managed;
        hca_link_move_greeted(link, &greeting);
        hca_link_set_peer_enabled(link, greeting.enabled);
    } else {
        rx_fail(link);
    }
}

/* Frames of the peer's that are no packets. */
static bool rx_control(HcaLink *link, const HcaFrame *frame)
{
    bool enabled;

    if (hca_frame_read_state(frame, &enabled)) {
        hca_link_set_peer_enabled(link, enabled);
        return true;
    }
    return hca_frame_is_move(frame) && hca_link_move_asked(link);
}

/* Whether there is a packet in a frame, to be handed out. */
static bool rx_frame(HcaLink *link, const HcaFrame *frame)
{
    if (!link->greeted && !link->old_left) {
        hca_link_rx_greeting(link, frame);
        return false;
    }
    hca_link_move_heard(link);
    if (link->heard_move && !link->old_left) {
        rx_fail(link);
        return false;
    }
    if (link->framing->greets && rx_control(link, frame)) {
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
    if (link->down_ends & HCA_FAULT_OWN_END) {
        link->counters.rx_unheard++;
        return false;
    }
    return true;
}

/* Whether the frame changes the peer's port once more, before anybody has seen
 * what it became last. */
static bool rx_outruns(const HcaLink *link, const HcaFrame *frame)
{
    bool enabled;

    return link->rx_changed && link->greeted && link->framing->greets &&
           hca_frame_read_state(frame, &enabled) &&
           enabled != link->peer_enabled;
}

/* The next packet that has arrived whole. */
static uint8_t *rx_packet(HcaLink *link, size_t *len)
{
    uint8_t *packet = NULL;

    link->rx_waits = false;
    while (!packet && !link->rx_failed && !link->rx_waits) {
        HcaFrame frame;
        int size = link->framing->read(&frame, link->rx + link->rx_at,
                                       link->rx_end - link->rx_at);

        if (size < 0) {
            rx_fail(link);
        } else if (size == 0) {
            break;
        } else if (rx_outruns(link, &frame)) {
            link->rx_waits = true;
        } else {
            link->rx_at += size;
            *len = frame.len;
            link->rx_vl = frame.vl;
            if (rx_frame(link, &frame)) {
                packet = link->rx + link->rx_at - frame.len;
            }
            link->old_left -= MIN(link->old_left, (size_t)size);
        }
    }
    return packet;
}

void hca_link_rx_forget(HcaLink *link)
{
    size_t len;

    hca_link_forget_old(link);
    do {
        link->rx_changed = false;
    } while (rx_packet(link, &len) || link->rx_waits);
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
        hca_link_record(link, false, packet, *len, &link->rx_again_fault);
        return packet;
    }
    held = hca_injector_take_due(link->faults, HCA_FAULT_RX);
    if (!held) {
        return NULL;
    }
    link->rx_lent = held;
    link->rx_vl = held->vl;
    *len = held->len;
    hca_link_record(link, false, held->packet, *len, &held->fault);
    return held->packet;
}

/*
 * The link goes down with this packet: at once, and it is lost, or behind it, when
 * the card has dealt with it.
 */
static const uint8_t *rx_last(HcaLink *link, const HcaFault *fault,
                              const uint8_t *packet, size_t len)
{
    const HcaFaultDown *down =
        &link->faults->faults.plan.rule[fault->rule].down;

    hca_link_record(link, false, packet, len, fault);
    if (!down->delivered) {
        hca_link_go_down(link, down);
        return NULL;
    }
    link->goes_down = true;
    link->goes_down_by = fault->rule;
    return packet;
}

/* A packet that arrived meets the plan of faults; NULL if it goes no further. */
static const uint8_t *rx_treat(HcaLink *link, uint8_t *packet, size_t len)
{
    HcaFault fault = hca_injector_treat(link->faults, HCA_FAULT_RX, packet, len,
                                        link->rx_vl);

    switch (fault.action) {
    case HCA_FAULT_DROP:
        hca_link_record(link, false, packet, len, &fault);
        return NULL;
    case HCA_FAULT_REORDER:
    case HCA_FAULT_DELAY:
        return NULL;
    case HCA_FAULT_DOWN:
        return rx_last(link, &fault, packet, len);
    case HCA_FAULT_DUPLICATE:
        link->rx_again = packet;
        link->rx_again_len = len;
        link->rx_again_fault = fault;
        break;
    case HCA_FAULT_CORRUPT:
    case HCA_FAULT_MARK:
        hca_link_record(link, false, packet, len, &fault);
        return packet;
    default: /* nothing */
        break;
    }
    hca_link_record(link, false, packet, len, NULL);
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
        hca_link_record(link, false, packet, *len, NULL);
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
    if (link->old) {
        link->rx_end += hca_link_take_old(link, link->rx + link->rx_end,
                                          HCA_LINK_RX_SIZE - link->rx_end);
        link->rx_unfinished = true;
        return true;
    }
    if (!link->up) {
        return false;
    }
    iov.iov_base = link->rx + link->rx_end;
    iov.iov_len = HCA_LINK_RX_SIZE - link->rx_end;
    do {
        n = link->host.ops->link_readv(link->host.opaque, &iov, 1);
    } while (n == -EINTR);
    link->rx_unfinished = n > 0;
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

    if (link->goes_down) {
        link->goes_down = false;
        hca_link_packet_took_down(link, link->goes_down_by);
    }
    if (link->rx_failed) {
        return NULL;
    }
    link->rx_swallowed = 0;
    packet = rx_next(link, len);
    for (unsigned reads = 0; !packet && !link->rx_failed; reads++) {
        if (link->rx_rest) {
            return NULL;
        }
        if (link->rx_waits || reads == RX_READS ||
            link->rx_swallowed == RX_SWALLOW) {
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
        } else if (link->up || link->old_left) {
            packet = receive_from_peer(link, len);
        }
        if (packet) {
            *loopback = link->loopback_turn;
            return packet;
        }
    }
    link->rx_rest = 0;
    link->rx_changed = false;
    return NULL;
}

unsigned hca_link_rx_vl(const HcaLink *link)
{
    return link->rx_vl;
}

bool hca_link_rx_pending(const HcaLink *link)
{
    HcaFrame frame;

    if (!hca_loopback_is_empty(link->loopback)) {
        return true;
    }
    return (link->up || link->old_left) && !link->rx_failed &&
           (link->rx_unfinished || link->rx_again ||
            hca_injector_is_due(link->faults, HCA_FAULT_RX) ||
            link->framing->read(&frame, link->rx + link->rx_at,
                                link->rx_end - link->rx_at) != 0);
}

bool hca_link_rx_failed(const HcaLink *link)
{
    return link->rx_failed;
}
