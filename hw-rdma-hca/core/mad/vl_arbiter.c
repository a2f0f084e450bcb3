/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two tables of lanes and weights go round, each by itself. The high one goes
 * first, until it has sent so many bytes (VLHighLimit) while the low one had
 * something; then that sends a packet.
 *
 * What is in no table goes when nothing else does, in turn: so do all lanes
 * while the tables are empty, as they are before a manager writes them.
 */
#include <glib.h>

#include "vl_arbiter.h"

#define WEIGHT_UNIT 64
#define HIGH_UNIT 4096
#define HIGH_UNLIMITED 255
#define ENTRIES (2 * HCA_VL_ARB_ENTRIES)

/* Parts of the table (VLArbitrationTable, 14.2.5.9). */
#define LOW 0
#define HIGH 2

static const HcaVlWeight *entry_of(const HcaNodePort *port, unsigned part,
                                   unsigned i)
{
    return &port->vl_arb[part + i / HCA_VL_ARB_ENTRIES][i % HCA_VL_ARB_ENTRIES];
}

static bool can_go(const HcaVlWeight *entry, uint16_t waiting)
{
    return entry->weight && (waiting >> entry->vl & 1);
}

/*
 * The entry whose turn it is, if it has weight left and something to send, or
 * the next one that has. False: no entry of the table can go.
 */
static bool find(const HcaVlTable *table, const HcaNodePort *port,
                 unsigned part, uint16_t waiting, unsigned *found)
{
    for (unsigned i = table->left ? 0 : 1; i <= ENTRIES; i++) {
        *found = (table->entry + i) % ENTRIES;
        if (can_go(entry_of(port, part, *found), waiting)) {
            return true;
        }
    }
    return false;
}

static unsigned begin(HcaVlArbiter *arbiter, HcaVlTable *table,
                      const HcaVlWeight *entry, unsigned found)
{
    if (found != table->entry || !table->left) {
        table->entry = found;
        table->left = entry->weight * WEIGHT_UNIT;
    }
    arbiter->turn = table;
    return entry->vl;
}

static unsigned in_turn(HcaVlArbiter *arbiter, uint16_t waiting)
{
    arbiter->turn = NULL;
    do {
        arbiter->last = (arbiter->last + 1) % HCA_NUM_DATA_VLS;
    } while (!(waiting >> arbiter->last & 1));
    return arbiter->last;
}

static bool high_is_limited(const HcaNodePort *port)
{
    return port->info.vl_high_limit != HIGH_UNLIMITED;
}

/* The low table's turn is over: so many bytes, one packet at least. */
static void renew_high(HcaVlArbiter *arbiter, const HcaNodePort *port)
{
    arbiter->high_left = MAX(port->info.vl_high_limit * HIGH_UNIT, 1);
}

/* The high table has its turn; what it sends is limited while @low waits. */
static unsigned high_turn(HcaVlArbiter *arbiter, const HcaNodePort *port,
                          unsigned found, bool low, unsigned *left)
{
    unsigned vl = begin(arbiter, &arbiter->high, entry_of(port, HIGH, found),
                        found);

    arbiter->limited = low && high_is_limited(port);
    *left = arbiter->limited
                ? MIN((int64_t)arbiter->high.left, arbiter->high_left)
                : arbiter->high.left;
    return vl;
}

/* The low table has its turn: for a packet, if @high waits. */
static unsigned low_turn(HcaVlArbiter *arbiter, const HcaNodePort *port,
                         unsigned found, bool high, unsigned *left)
{
    unsigned vl = begin(arbiter, &arbiter->low, entry_of(port, LOW, found),
                        found);

    *left = high ? 1 : arbiter->low.left;
    return vl;
}

unsigned hca_vl_arbiter_next(HcaVlArbiter *arbiter, const HcaNodePort *port,
                             uint16_t waiting, unsigned *left)
{
    unsigned low_entry, high_entry;
    bool low = find(&arbiter->low, port, LOW, waiting, &low_entry);
    bool high = find(&arbiter->high, port, HIGH, waiting, &high_entry);

    if (high && (!low || !high_is_limited(port) || arbiter->high_left > 0)) {
        return high_turn(arbiter, port, high_entry, low, left);
    }
    renew_high(arbiter, port);
    arbiter->limited = false;
    if (low) {
        return low_turn(arbiter, port, low_entry, high, left);
    }
    *left = 0;
    return in_turn(arbiter, waiting);
}

void hca_vl_arbiter_sent(HcaVlArbiter *arbiter, uint64_t len)
{
    if (arbiter->turn) {
        arbiter->turn->left -= MIN(arbiter->turn->left, len);
    }
    if (arbiter->limited) {
        arbiter->high_left -= len;
    }
}
