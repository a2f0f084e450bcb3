/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Transmit. Packets are written one behind the other into one buffer, which
 * is put on the cable by as few writes as it takes. While it does not take
 * all, nothing more is sent to the peer: back-pressure instead of loss, as
 * with the prog_full signals of the FIFOs.
 */
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "link_int.h"

/* Of the transmit buffer: for packets on VL 15. */
#define TX_MGMT_ROOM (32 * 1024)

void hca_link_tx_count_wait(HcaLink *link)
{
    int64_t now;

    if (link->tx_blocked) {
        now = link->host.ops->clock_ns(link->host.opaque);
        link->counters.tx_wait_ns += (uint64_t)now - (uint64_t)link->blocked_at;
        link->blocked_at = now;
    }
}

static void set_blocked(HcaLink *link, bool blocked)
{
    if (blocked == link->tx_blocked) {
        return;
    }
    hca_link_tx_count_wait(link);
    if (blocked) {
        link->blocked_at = link->host.ops->clock_ns(link->host.opaque);
    }
    link->tx_blocked = blocked;
}

static void tx_clear(HcaLink *link)
{
    link->tx_gone += link->tx_end - link->tx_at;
    set_blocked(link, false);
    link->tx_at = 0;
    link->tx_end = 0;
}

void hca_link_tx_begin(HcaLink *link)
{
    link->tx_failed = false;
    tx_clear(link);
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
        n = link->host.ops->link_writev(link->host.opaque, &iov, 1);
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
            set_blocked(link, !link->tx_failed);
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

/* Whether a packet that is sent now can arrive; or later, with who is away. */
static bool has_peer(const HcaLink *link)
{
    return hca_link_peer_is_up(link) && (link->away || !link->tx_failed) &&
           hca_link_shows_enabled(link);
}

static uint8_t *tx_place(HcaLink *link)
{
    return link->tx + link->tx_end + link->framing->header_size;
}

/* The packet at tx_place() goes. */
static void tx_put(HcaLink *link, unsigned vl, size_t len,
                   const HcaFault *fault)
{
    hca_link_record(link, true, tx_place(link), len, fault);
    link->framing->write_header(link->tx + link->tx_end, HCA_FRAME_PACKET, vl,
                                len);
    link->tx_end += link->framing->header_size + len;
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
    return !link->tx_blocked && !link->away &&
           HCA_LINK_TX_SIZE - TX_MGMT_ROOM >= link->tx_end + size;
}

void hca_link_tx_put_due(HcaLink *link)
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

void hca_link_tx_tell(HcaLink *link)
{
    if (link->away) {
        hca_link_move_tell(link);
        return;
    }
    if (!link->up || link->tx_failed || !link->framing->greets ||
        !tx_takes(link, 2 * HCA_STATE_FRAME_SIZE)) {
        return;
    }
    if (link->told && link->was_disabled) {
        tx_put_state(link, false);
    }
    if (link->told != hca_link_shows_enabled(link)) {
        tx_put_state(link, hca_link_shows_enabled(link));
    }
    link->was_disabled = false;
}

void hca_link_tx_greet(HcaLink *link)
{
    HcaGreeting greeting = {
        .enabled = hca_link_shows_enabled(link) &&
                   !(link->away && link->was_disabled),
        .managed = link->managed,
    };

    hca_link_move_greet(link, &greeting);
    link->tx_end = hca_frame_write_greeting(link->tx, link->link_layer,
                                            &greeting);
    link->told = greeting.enabled;
    link->was_disabled = false;
}

void hca_link_flush(HcaLink *link)
{
    if (!link->up || link->tx_failed) {
        return;
    }
    do {
        hca_link_tx_tell(link);
        if (!tx_write(link)) {
            return;
        }
        if (link->faults->on) {
            hca_link_tx_put_due(link);
        }
        hca_link_tx_tell(link);
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

/* With its second copy. */
bool hca_link_can_send_mgmt(const HcaLink *link, bool loopback)
{
    return loopback ? hca_loopback_can_put(link->loopback)
                    : !has_peer(link) ||
                          (!link->away &&
                           HCA_LINK_TX_SIZE - link->tx_end >=
                               2 * (HCA_FRAME_HEADER_SIZE + HCA_LINK_MAX_MGMT));
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
        hca_link_record(link, true, packet, len, &fault);
        return;
    case HCA_FAULT_REORDER:
    case HCA_FAULT_DELAY:
        return;
    case HCA_FAULT_DOWN:
        tx_put(link, vl, len, &fault); /* with what else is on its way */
        hca_link_packet_took_down(link, fault.rule);
        return;
    case HCA_FAULT_DUPLICATE:
        tx_put(link, vl, len, NULL);
        tx_put_copy(link, vl, packet, len, &fault);
        break;
    case HCA_FAULT_CORRUPT:
    case HCA_FAULT_MARK:
        tx_put(link, vl, len, &fault);
        break;
    default: /* nothing */
        tx_put(link, vl, len, NULL);
        break;
    }
    hca_link_tx_put_due(link);
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
        if (link->host.recorder) {
            hca_recorder_packet(link->host.recorder, HCA_RECORD_LOOPBACK,
                                hca_loopback_open(link->loopback), len);
        }
        hca_loopback_close(link->loopback, len);
        link->counters.loopback_packets++;
    } else {
        close_to_peer(link, vl, len);
    }
}

void hca_link_pause(HcaLink *link, int64_t ns)
{
    link->pause_end = ns ? link->host.ops->clock_ns(link->host.opaque) + ns : 0;
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

/*
 * What was written in part has to end, and the greeting has to come: each side
 * must still find every frame where it expects it. But of a packet zeros are
 * enough, which fail its CRCs. A state may begin with the rest of a frame, of which
 * nobody knows the end: then all of it goes.
 */
void hca_link_tx_forget(HcaLink *link)
{
    size_t at = 0, body = 0;
    HcaFrame frame = { 0 };

    if (!link->tx_blocked) {
        tx_clear(link);
        return;
    }
    while (at < link->tx_end && (at < link->tx_at || !link->tx_at)) {
        int size = link->framing->read(&frame, link->tx + at,
                                       link->tx_end - at);

        if (size <= 0) {
            return;
        }
        if (!link->tx_at && frame.type != HCA_FRAME_GREETING) {
            break;
        }
        body = MAX(at + link->framing->header_size, link->tx_at);
        at += size;
    }
    link->tx_end = at;
    if (link->tx_at == link->tx_end) {
        tx_clear(link);
    } else if (frame.type == HCA_FRAME_PACKET) {
        memset(link->tx + body, 0, link->tx_end - body);
    }
}
