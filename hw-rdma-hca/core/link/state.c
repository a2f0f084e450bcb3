/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is saved of the link: with the stream that it has, what came of that and
 * has not been read, and what has not left. Who has another cable afterwards takes
 * the link down and up.
 */
#include <glib.h>
#include <string.h>

#include "link_int.h"

static const HcaField fault_fields[] = {
    HCA_SAVED(HcaFault, action),
    HCA_SAVED(HcaFault, rule),
    HCA_SAVED(HcaFault, offset),
    HCA_SAVED(HcaFault, mask),
};
static const HcaStruct fault_struct = HCA_STRUCT(HcaFault, fault_fields);

static const HcaField link_fields[] = {
    HCA_DERIVED(HcaLink, link_layer),
    HCA_DERIVED(HcaLink, framing),
    HCA_DERIVED(HcaLink, host),
    HCA_ELSEWHERE(HcaLink, loopback),
    HCA_ANEW(HcaLink, tap),
    HCA_ELSEWHERE(HcaLink, faults),
    HCA_ANEW(HcaLink, capture),
    HCA_COUNTED(HcaLink, counters),
    HCA_SAVED(HcaLink, up),
    HCA_SAVED(HcaLink, away),
    HCA_SAVED(HcaLink, greeted),
    HCA_SAVED(HcaLink, peer_enabled),
    HCA_SAVED(HcaLink, enabled),
    HCA_DERIVED(HcaLink, managed),
    HCA_SAVED(HcaLink, peer_managed),
    HCA_SAVED(HcaLink, told),
    HCA_SAVED(HcaLink, was_disabled),
    HCA_SAVED(HcaLink, downs),
    HCA_SAVED(HcaLink, down_ends),
    HCA_SAVED(HcaLink, down_end),
    HCA_SAVED_STRUCT(HcaLink, down, hca_fault_down_struct),
    HCA_SAVED(HcaLink, goes_down),
    HCA_SAVED(HcaLink, goes_down_by),
    HCA_SAVED(HcaLink, rx_failed),
    HCA_SAVED(HcaLink, tx_failed),
    HCA_ANEW(HcaLink, rx_changed),
    HCA_ANEW(HcaLink, rx_waits),
    HCA_SAVED(HcaLink, rx_unfinished),
    HCA_SAVED(HcaLink, loopback_turn),
    HCA_SAVED(HcaLink, rx_rest),
    HCA_ANEW(HcaLink, rx_swallowed),
    HCA_ELSEWHERE(HcaLink, rx_again),
    HCA_ELSEWHERE(HcaLink, rx_again_len),
    HCA_SAVED_STRUCT(HcaLink, rx_again_fault, fault_struct),
    HCA_ANEW(HcaLink, rx_lent),
    HCA_ANEW(HcaLink, rx_vl),
    HCA_ELSEWHERE(HcaLink, rx_at),
    HCA_ELSEWHERE(HcaLink, rx_end),
    HCA_SAVED(HcaLink, tx_blocked),
    HCA_SAVED(HcaLink, blocked_at),
    HCA_ELSEWHERE(HcaLink, tx_at),
    HCA_ELSEWHERE(HcaLink, tx_end),
    HCA_SAVED(HcaLink, tx_gone),
    HCA_SAVED(HcaLink, pause_end),
    HCA_DERIVED(HcaLink, patience_ns),
    HCA_SAVED(HcaLink, greets_old),
    HCA_SAVED(HcaLink, told_waits),
    HCA_SAVED(HcaLink, can_move),
    HCA_SAVED(HcaLink, resumed),
    HCA_SAVED(HcaLink, told_move),
    HCA_SAVED(HcaLink, heard_move),
    HCA_SAVED(HcaLink, away_end),
    HCA_SAVED(HcaLink, nonce),
    HCA_SAVED(HcaLink, token),
    HCA_SAVED(HcaLink, next_token),
    HCA_ELSEWHERE(HcaLink, old),
    HCA_ELSEWHERE(HcaLink, old_at),
    HCA_SAVED(HcaLink, old_left),
    HCA_ELSEWHERE(HcaLink, tx),
    HCA_ELSEWHERE(HcaLink, rx),
    HCA_ANEW(HcaLink, lost),
};
static const HcaStruct link_struct = HCA_STRUCT(HcaLink, link_fields);

/* A wait that goes on is counted up to now, as it will be with the counters. */
static void save_link(void *room, GArray *records)
{
    hca_link_tx_count_wait(room);
    g_array_append_vals(records, room, 1);
}

/* Nobody enables the link of RoCE: it is. */
static bool link_ok(const HcaLink *link, const HcaLink *from)
{
    return !(from->down_ends & ~HCA_FAULT_BOTH_ENDS) &&
           from->goes_down_by < HCA_FAULT_MAX_RULES &&
           from->rx_again_fault.action <= HCA_FAULT_NPACKET_ACTIONS &&
           (from->enabled || !hca_link_is_roce(link));
}

static bool load_link(void *room, const void *records, uint32_t n,
                      HcaStateError *error)
{
    HcaLink *link = room;

    if (n != 1 || !link_ok(link, records)) {
        return hca_state_refuse(error, "no such link");
    }
    hca_struct_take(&link_struct, link, records);
    return true;
}

const HcaSection hca_link_section = HCA_SECTION("link", 1, &link_struct,
                                                save_link, load_link);

/* Bytes that have not left; that have come and have not been read */

static void save_tx(void *room, GArray *bytes)
{
    const HcaLink *link = room;

    g_array_append_vals(bytes, link->tx + link->tx_at,
                        link->tx_end - link->tx_at);
}

static bool load_tx(void *room, const void *records, uint32_t n,
                    HcaStateError *error)
{
    HcaLink *link = room;

    if (n > HCA_LINK_TX_SIZE) {
        return hca_state_refuse(error, "%u bytes", n);
    }
    memcpy(link->tx, records, n);
    link->tx_at = 0;
    link->tx_end = n;
    return true;
}

const HcaSection hca_link_tx_section = HCA_SECTION(
    "link-tx", 1, &hca_byte_struct, save_tx, load_tx);

static void save_rx(void *room, GArray *bytes)
{
    const HcaLink *link = room;

    g_array_append_vals(bytes, link->rx + link->rx_at,
                        link->rx_end - link->rx_at);
    if (link->old) {
        g_array_append_vals(bytes, link->old->data + link->old_at,
                            link->old->len - link->old_at);
    }
}

static bool are_frames(const uint8_t *bytes, uint32_t n)
{
    while (n) {
        HcaFrame frame;
        int size = hca_frame_read(&frame, bytes, n);

        if (size <= 0) {
            return false;
        }
        bytes += size;
        n -= size;
    }
    return true;
}

static bool load_rx(void *room, const void *records, uint32_t n,
                    HcaStateError *error)
{
    HcaLink *link = room;

    if (link->old_left) {
        if (link->old_left != n || !link->framing->greets ||
            !are_frames(records, n)) {
            return hca_state_refuse(error, "what is no frames");
        }
        link->old = g_byte_array_new();
        g_byte_array_append(link->old, records, n);
        return true;
    }
    if (n > HCA_LINK_RX_SIZE) {
        return hca_state_refuse(error, "%u bytes", n);
    }
    memcpy(link->rx, records, n);
    link->rx_at = 0;
    link->rx_end = n;
    return true;
}

const HcaSection hca_link_rx_section = HCA_SECTION(
    "link-rx", 1, &hca_byte_struct, save_rx, load_rx);

/* Packets that turn round */

static void save_loopback(void *room, GArray *bytes)
{
    hca_loopback_save(((HcaLink *)room)->loopback, bytes);
}

static bool load_loopback(void *room, const void *records, uint32_t n,
                          HcaStateError *error)
{
    unsigned count;

    return hca_loopback_load(((HcaLink *)room)->loopback, records, n, &count) ||
           hca_state_refuse(error, "packets that cannot be");
}

const HcaSection hca_loopback_section = HCA_SECTION(
    "loopback", 1, &hca_byte_struct, save_loopback, load_loopback,
    &hca_loopback_struct);

/* The injector: rules, chance, packets that are held back */

static const HcaField side_fields[] = {
    HCA_SAVED_STRUCT(HcaInjectorSide, chance, hca_chance_struct),
    HCA_DERIVED(HcaInjectorSide, slots),
    HCA_DERIVED(HcaInjectorSide, free),
    HCA_ELSEWHERE(HcaInjectorSide, waiting),
    HCA_ELSEWHERE(HcaInjectorSide, due),
    HCA_SAVED(HcaInjectorSide, number),
};
static const HcaStruct side_struct = HCA_STRUCT(HcaInjectorSide, side_fields);

static const HcaField injector_fields[] = {
    HCA_DERIVED(HcaInjector, host),
    HCA_DERIVED(HcaInjector, encap),
    HCA_DERIVED(HcaInjector, on),
    HCA_DERIVED(HcaInjector, held),
    HCA_ELSEWHERE(HcaInjector, faults),
    HCA_SAVED_STRUCTS(HcaInjector, side, side[0], side_struct),
    HCA_COUNTED(HcaInjector, counters),
};
static const HcaStruct injector_struct = HCA_STRUCT(HcaInjector,
                                                    injector_fields);

static void save_injector(void *room, GArray *records)
{
    g_array_append_vals(records, ((HcaLink *)room)->faults, 1);
}

static bool load_injector(void *room, const void *records, uint32_t n,
                          HcaStateError *error)
{
    HcaLink *link = room;

    if (!hca_state_is_one(n, error)) {
        return false;
    }
    hca_struct_take(&injector_struct, link->faults, records);
    return true;
}

const HcaSection hca_injector_section = HCA_SECTION(
    "injector", 1, &injector_struct, save_injector, load_injector);

static void save_rules(void *room, GArray *records)
{
    hca_faults_save(&((HcaLink *)room)->faults->faults, records);
}

static bool load_rules(void *room, const void *records, uint32_t n,
                       HcaStateError *error)
{
    HcaLink *link = room;

    return hca_injector_load(link->faults, records, n, error);
}

const HcaSection hca_cable_rule_section = HCA_SECTION(
    "cable-rule", 1, &hca_fault_rule_struct, save_rules, load_rules);

typedef struct Held {
    uint8_t direction;
    bool due;
    uint64_t number;
    uint32_t left;
    int64_t deadline;
    HcaFault fault;
    uint8_t vl;
    uint32_t len;
    uint8_t packet[HCA_LINK_MAX_PACKET];
} Held;

static const HcaField held_fields[] = {
    HCA_SAVED(Held, direction),
    HCA_SAVED(Held, due),
    HCA_SAVED(Held, number),
    HCA_SAVED(Held, left),
    HCA_SAVED(Held, deadline),
    HCA_SAVED_STRUCT(Held, fault, fault_struct),
    HCA_SAVED(Held, vl),
    HCA_SAVED(Held, len),
    HCA_SAVED_ARRAY(Held, packet, packet[0]),
};
static const HcaStruct held_struct = HCA_STRUCT(Held, held_fields);

static void save_list(uint8_t direction, bool due, const GQueue *list,
                      GArray *records)
{
    for (const GList *l = list->head; l; l = l->next) {
        const HcaHeld *held = l->data;
        Held *to;

        g_array_set_size(records, records->len + 1);
        to = &g_array_index(records, Held, records->len - 1);
        *to = (Held) {
            .direction = direction,
            .due = due,
            .number = held->number,
            .left = held->left,
            .deadline = held->deadline,
            .fault = held->fault,
            .vl = held->vl,
            .len = held->len,
        };
        memcpy(to->packet, held->packet, held->len);
    }
}

static void save_held(void *room, GArray *records)
{
    const HcaInjector *injector = ((HcaLink *)room)->faults;

    for (unsigned i = 0; i < HCA_FAULT_NDIRECTIONS; i++) {
        save_list(i, true, &injector->side[i].due, records);
        save_list(i, false, &injector->side[i].waiting, records);
    }
}

static bool held_ok(const Held *held)
{
    return held->direction < HCA_FAULT_NDIRECTIONS && held->len &&
           held->len <= HCA_LINK_MAX_PACKET &&
           held->fault.action < HCA_FAULT_NPACKET_ACTIONS &&
           held->fault.rule < HCA_FAULT_MAX_RULES && held->vl <= 15;
}

static bool load_held(void *room, const void *records, uint32_t n,
                      HcaStateError *error)
{
    HcaLink *link = room;
    const Held *from = records;

    for (; n; n--, from++) {
        HcaHeld *held = held_ok(from)
                            ? hca_injector_add_held(link->faults,
                                                    from->direction, from->due)
                            : NULL;

        if (!held) {
            return hca_state_refuse(error, "packets that cannot be held");
        }
        held->number = from->number;
        held->left = from->left;
        held->deadline = from->deadline;
        held->fault = from->fault;
        held->vl = from->vl;
        held->len = from->len;
        memcpy(held->packet, from->packet, from->len);
    }
    return true;
}

const HcaSection hca_held_section = HCA_SECTION("held", 1, &held_struct,
                                                save_held, load_held);

/* The second copy of a packet that a fault has doubled */

static void save_again(void *room, GArray *bytes)
{
    const HcaLink *link = room;

    if (link->rx_again) {
        g_array_append_vals(bytes, link->rx_again, link->rx_again_len);
    }
}

/* It lies in front of what has not been read. */
static bool load_again(void *room, const void *records, uint32_t n,
                       HcaStateError *error)
{
    HcaLink *link = room;
    size_t rest = link->rx_end - link->rx_at;

    if (!n) {
        return true;
    }
    if (n > HCA_LINK_MAX_PACKET || n > HCA_LINK_RX_SIZE - rest) {
        return hca_state_refuse(error, "%u bytes", n);
    }
    memmove(link->rx + n, link->rx + link->rx_at, rest);
    memcpy(link->rx, records, n);
    link->rx_again = link->rx;
    link->rx_again_len = n;
    link->rx_at = n;
    link->rx_end = n + rest;
    return true;
}

const HcaSection hca_doubled_section = HCA_SECTION(
    "doubled", 1, &hca_byte_struct, save_again, load_again);
