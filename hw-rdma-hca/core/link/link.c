/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The card's end of the cable, in place of the LinkLayer that the engine
 * document (section 6) connects to by FIFOs of 72-bit words: how it comes and
 * goes, and its state.
 *
 * All memory is allocated by hca_link_new(), but for that of a plan of faults
 * and a capture. The virtual lane is carried, but all lanes share one queue.
 */
#include <glib.h>
#include <string.h>

#include "link_int.h"

static const HcaEncap *encap_of(HcaLinkLayer link_layer)
{
    return link_layer == HCA_LINK_LAYER_ROCE ? &hca_encap_roce : &hca_encap_ib;
}

HcaLink *hca_link_new(HcaLinkLayer link_layer, HcaCableProtocol protocol,
                      const HcaHost *host)
{
    HcaLink *link = g_new0(HcaLink, 1);

    link->link_layer = link_layer;
    link->framing = hca_framing(protocol);
    link->enabled = hca_link_is_roce(link);
    link->host = *host;
    link->loopback = hca_loopback_new();
    link->faults = hca_injector_new(host, encap_of(link_layer));
    link->capture = hca_capture_new(host);
    link->tx = g_malloc0(HCA_LINK_TX_SIZE);
    link->rx = g_malloc0(HCA_LINK_RX_SIZE);
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
        hca_link_forget_old(link);
        g_free(link->tx);
        g_free(link->rx);
        g_free(link->lost);
        g_free(link);
    }
}

/* Faults and capture */

static void come_up(HcaLink *link)
{
    link->down_ends = 0;
    link->down_end = 0;
    hca_link_tx_tell(link);
}

void hca_link_set_faults(HcaLink *link, const HcaFaultPlan *plan)
{
    hca_injector_set_plan(link->faults, plan, 0);
    link->goes_down = false;
    if (link->down_ends) {
        come_up(link);
        hca_link_flush(link);
    }
    link->down = (HcaFaultDown) { 0 };
}

void hca_link_add_faults(HcaLink *link, const HcaFaultPlan *plan, unsigned kept)
{
    hca_injector_set_plan(link->faults, plan, kept);
}

void hca_link_fault_state(const HcaLink *link, unsigned i, uint64_t *matched,
                          uint64_t *done)
{
    *matched = link->faults->faults.state[i].matched;
    *done = link->faults->faults.state[i].faults;
}

/* What is on its way in the card's buffers, and held back there. */
static void lose_all(HcaLink *link)
{
    hca_link_tx_forget(link);
    hca_injector_forget(link->faults, HCA_FAULT_TX);
    hca_injector_forget(link->faults, HCA_FAULT_RX);
    link->rx_again = NULL;
    hca_link_rx_forget(link);
}

bool hca_link_go_down(HcaLink *link, const HcaFaultDown *down)
{
    uint8_t ends = down->ends ? down->ends : HCA_FAULT_BOTH_ENDS;

    if (link->down_ends) {
        return false;
    }
    if (!down->delivered) {
        lose_all(link);
    }
    link->downs += hca_link_is_up(link) && ends & HCA_FAULT_OWN_END;
    link->down = *down;
    link->down_ends = ends;
    link->down_end = down->down_ns
                         ? link->host.ops->clock_ns(link->host.opaque) +
                               (int64_t)down->down_ns
                         : INT64_MAX;
    link->was_disabled |= (ends & HCA_FAULT_PEER_END) != 0;
    hca_link_tx_tell(link);
    return true;
}

void hca_link_packet_took_down(HcaLink *link, unsigned rule)
{
    hca_link_go_down(link, &link->faults->faults.plan.rule[rule].down);
}

void hca_link_limits(const HcaLink *link, uint8_t *speed, uint8_t *mtu)
{
    *speed = link->down.speed;
    *mtu = link->down.mtu;
}

bool hca_link_tick(HcaLink *link)
{
    bool changed = false;

    if (link->faults->held) {
        hca_injector_tick(link->faults);
        hca_link_tx_put_due(link);
    }
    if (link->down_ends &&
        link->down_end <= link->host.ops->clock_ns(link->host.opaque)) {
        come_up(link);
        changed = true;
    }
    if (link->away &&
        link->away_end <= link->host.ops->clock_ns(link->host.opaque)) {
        hca_link_move_lost(link);
        changed = true;
    }
    if (link->pause_end &&
        link->pause_end <= link->host.ops->clock_ns(link->host.opaque)) {
        link->pause_end = 0;
    }
    return changed;
}

int64_t hca_link_deadline(const HcaLink *link)
{
    int64_t due = link->faults->held ? hca_injector_deadline(link->faults)
                                     : INT64_MAX;

    due = link->down_ends ? MIN(due, link->down_end) : due;
    due = link->away ? MIN(due, link->away_end) : due;
    return link->pause_end ? MIN(due, link->pause_end) : due;
}

void hca_link_limit_capture(HcaLink *link, uint64_t max_bytes)
{
    hca_capture_limit(link->capture, max_bytes);
}

void hca_link_start_capture(HcaLink *link)
{
    hca_capture_start(link->capture, hca_link_is_roce(link)
                                         ? HCA_PCAPNG_ETHERNET
                                         : HCA_PCAPNG_IB);
}

void hca_link_stop_capture(HcaLink *link)
{
    hca_capture_stop(link->capture);
}

void hca_link_flush_capture(HcaLink *link)
{
    hca_capture_flush(link->capture);
}

void hca_link_note(HcaLink *link, const char *text)
{
    hca_capture_note(link->capture, text);
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

void hca_link_enable(HcaLink *link, bool enabled)
{
    if (hca_link_is_roce(link)) {
        return;
    }
    link->enabled = enabled;
    link->was_disabled |= !enabled;
    hca_link_tx_tell(link);
}

void hca_link_clear(HcaLink *link)
{
    hca_link_tx_forget(link);
    if (link->host.ops->link_forget) {
        link->host.ops->link_forget(link->host.opaque);
    }
    hca_loopback_clear(link->loopback);
    hca_link_set_tap(link, false);
    hca_link_pause(link, 0);
    clear_faults(link);
    hca_link_rx_forget(link);
    /* What was to be told may be among what was forgotten. */
    link->told_move = false;
    link->told = true;
    link->was_disabled = true;
    hca_link_tx_tell(link);
}

void hca_link_set_up(HcaLink *link, bool up)
{
    if (link->up) {
        hca_link_move_end(link);
    }
    link->up = up;
    hca_link_rx_begin(link);
    hca_link_tx_begin(link);
    hca_link_pause(link, 0);
    if (!link->away) {
        clear_faults(link);
    }
    if (!up) {
        return;
    }
    if (link->framing->greets) {
        hca_link_tx_greet(link);
        hca_link_flush(link);
    } else {
        link->greeted = true;
        link->away = false;
        link->peer_enabled = true;
        link->counters.peers++;
    }
}

void hca_link_set_managed(HcaLink *link, bool managed)
{
    link->managed = managed;
}

bool hca_link_peer_is_managed(const HcaLink *link)
{
    return link->peer_managed;
}

bool hca_link_is_greeted(const HcaLink *link)
{
    return hca_link_peer_has_greeted(link);
}

bool hca_link_is_up(const HcaLink *link)
{
    return hca_link_peer_is_up(link);
}

unsigned hca_link_downs(const HcaLink *link)
{
    return link->downs;
}

const HcaLinkCounters *hca_link_counters(HcaLink *link)
{
    hca_link_tx_count_wait(link);
    return &link->counters;
}

void hca_link_reset_counters(HcaLink *link)
{
    hca_link_tx_count_wait(link);
    memset(&link->counters, 0, sizeof(link->counters));
    memset(&link->faults->counters, 0, sizeof(link->faults->counters));
    hca_capture_reset_counters(link->capture);
}
