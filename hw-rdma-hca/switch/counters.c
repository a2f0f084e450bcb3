/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is counted. Each drop has a counter of its own; what a performance
 * manager sees of it is in the table (IBA 16.1.3.5).
 */
#include "switch_int.h"

#define NOBODY HCA_PMA_NCOUNTERS

typedef struct DropRow {
    const char *name;
    const char *text;
    HcaPmaCounter counter; /* of the port that it is counted at */
} DropRow;

static const DropRow rows[SW_NDROPS] = {
    [SW_DROP_VCRC] = { "vcrc", "wrong VCRC", HCA_PMA_RCV_ERRORS },
    [SW_DROP_MALFORMED] = { "malformed", "length, version or VL",
                            HCA_PMA_RCV_ERRORS },
    [SW_DROP_RAW] = { "raw", "no IBA transport", HCA_PMA_RCV_CONSTRAINT },
    [SW_DROP_IN_STATE] = { "in-state", "port not Armed or Active", NOBODY },
    [SW_DROP_IN_PKEY] = { "in-pkey", "P_Key, inbound", HCA_PMA_RCV_CONSTRAINT },
    [SW_DROP_NO_ROUTE] = { "no-route", "no port for its DLID",
                           HCA_PMA_RCV_RELAY_ERRORS },
    [SW_DROP_SAME_PORT] = { "same-port", "it would go back",
                            HCA_PMA_RCV_RELAY_ERRORS },
    [SW_DROP_SL] = { "sl", "no VL for its SL", HCA_PMA_RCV_RELAY_ERRORS },
    [SW_DROP_OUT_STATE] = { "out-state", "port not Active",
                            HCA_PMA_XMIT_DISCARDS },
    [SW_DROP_MTU] = { "mtu", "longer than the MTU", HCA_PMA_XMIT_DISCARDS },
    [SW_DROP_OUT_PKEY] = { "out-pkey", "P_Key, outbound",
                           HCA_PMA_XMIT_CONSTRAINT },
    [SW_DROP_LIFETIME] = { "lifetime", "too long in the switch",
                           HCA_PMA_XMIT_DISCARDS },
    [SW_DROP_HOQ] = { "hoq", "too long at the head of its queue",
                      HCA_PMA_XMIT_DISCARDS },
    [SW_DROP_STALLED] = { "stalled", "its VL is stalled",
                          HCA_PMA_XMIT_DISCARDS },
    [SW_DROP_LINK_LOST] = { "link-lost", "the link went down",
                            HCA_PMA_XMIT_DISCARDS },
    [SW_DROP_VL15] = { "vl15", "no room on VL 15", HCA_PMA_VL15_DROPPED },
    [SW_DROP_OWN] = { "own", "no room for the switch's own",
                      HCA_PMA_XMIT_DISCARDS },
    [SW_DROP_AGENT] = { "agent", "to the switch, for no agent", NOBODY },
    [SW_DROP_CORRUPT] = { "corrupt", "to the switch, wrong ICRC",
                          HCA_PMA_RCV_ERRORS },
};

const char *sw_drop_name(SwDrop why)
{
    return rows[why].name;
}

void sw_drop(SwPort *port, SwDrop why)
{
    port->counters.dropped[why]++;
    if (port->sw->ops->say) {
        sw_say(port->sw, "port %u: dropped: %s", port->number, rows[why].text);
    }
}

/* Without VCRC; what is shorter than that counts as nothing. */
static uint64_t words_of(size_t len)
{
    return len > HCA_VCRC_SIZE ? (len - HCA_VCRC_SIZE) / 4 : 0;
}

void sw_count_rx(SwPort *port, const SwPacket *packet)
{
    SwCounters *c = &port->counters;

    c->rx_packets++;
    c->rx_words += words_of(packet->len);
    c->rx_multicast += sw_is_multicast(packet->dlid);
}

void sw_count_tx(SwPort *port, uint16_t dlid, size_t len)
{
    SwCounters *c = &port->counters;

    c->tx_packets++;
    c->tx_words += words_of(len);
    c->tx_multicast += sw_is_multicast(dlid);
}

static void add_drops(const SwPort *port, uint64_t *value)
{
    for (unsigned why = 0; why < SW_NDROPS; why++) {
        if (rows[why].counter != NOBODY) {
            value[rows[why].counter] += port->counters.dropped[why];
        }
    }
}

static void add_link(const SwPort *port, uint64_t *value)
{
    const HcaLinkCounters *link = hca_link_counters(port->link);

    value[HCA_PMA_RCV_REMOTE_ERRORS] += link->rx_marked_bad;
    value[HCA_PMA_RCV_ERRORS] += link->rx_frame_errors;
    value[HCA_PMA_XMIT_DISCARDS] += link->tx_discarded;
    value[HCA_PMA_XMIT_WAIT] += link->tx_wait_ns / 1000;
}

void sw_counters(const SwPort *port, HcaPmaCounters *counters)
{
    const SwCounters *c = &port->counters;
    uint64_t *value = counters->value;

    memset(counters, 0, sizeof(*counters));
    value[HCA_PMA_XMIT_DATA] = c->tx_words;
    value[HCA_PMA_RCV_DATA] = c->rx_words;
    value[HCA_PMA_XMIT_PKTS] = c->tx_packets;
    value[HCA_PMA_RCV_PKTS] = c->rx_packets;
    value[HCA_PMA_UNICAST_XMIT] = c->tx_packets - c->tx_multicast;
    value[HCA_PMA_UNICAST_RCV] = c->rx_packets - c->rx_multicast;
    value[HCA_PMA_MULTICAST_XMIT] = c->tx_multicast;
    value[HCA_PMA_MULTICAST_RCV] = c->rx_multicast;
    add_drops(port, value);
    if (port->link) {
        add_link(port, value);
    }
}
