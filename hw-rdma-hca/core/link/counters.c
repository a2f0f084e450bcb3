/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The link, its faults and its capture: what they count. */
#include "../counter_table.h"
#include "link.h"

#define LINK(number, name, field, text)                                        \
    HCA_COUNTER(number, name, HcaLinkCounters, field, text)
#define FAULT(number, name, field, text)                                       \
    HCA_COUNTER(number, name, HcaFaultCounters, field, text)
#define FAULTS(number, d, D, what)                                             \
    FAULT(number, d "_drop", injected[HCA_FAULT_##D][HCA_FAULT_DROP],          \
          what " packets dropped by a plan of faults"),                        \
        FAULT((number) + 1, d "_duplicate",                                    \
              injected[HCA_FAULT_##D][HCA_FAULT_DUPLICATE],                    \
              what " packets doubled"),                                        \
        FAULT((number) + 2, d "_reorder",                                      \
              injected[HCA_FAULT_##D][HCA_FAULT_REORDER],                      \
              what " packets held back for others to pass"),                   \
        FAULT((number) + 3, d "_delay",                                        \
              injected[HCA_FAULT_##D][HCA_FAULT_DELAY],                        \
              what " packets held back for a time"),                           \
        FAULT((number) + 4, d "_corrupt",                                      \
              injected[HCA_FAULT_##D][HCA_FAULT_CORRUPT],                      \
              what " packets with bits inverted")
#define CAPTURE(number, name, field, text)                                     \
    HCA_COUNTER(number, name, HcaCaptureCounters, field, text)

HCA_GAUGE_FN(link_up, HcaLink, hca_link_is_up(room))
HCA_GAUGE_FN(held, HcaLink, hca_link_held(room))
HCA_GAUGE_FN(captured, HcaLink, hca_link_is_captured(room))

static uint64_t all_faults(const void *room)
{
    const HcaFaultCounters *counters = hca_link_fault_counters(room);
    uint64_t sum = 0;

    for (unsigned d = 0; d < HCA_FAULT_NDIRECTIONS; d++) {
        for (unsigned i = 0; i < HCA_FAULT_NPACKET_ACTIONS; i++) {
            sum += counters->injected[d][i];
        }
        sum += counters->downs[d];
    }
    return sum;
}

static const void *link_counters(const void *room)
{
    return hca_link_counters((HcaLink *)room);
}

static const void *fault_counters(const void *room)
{
    return hca_link_fault_counters(room);
}

static const void *capture_counters(const void *room)
{
    return hca_link_capture_counters(room);
}

static const HcaCounterRow link_rows[] = {
    HCA_GAUGE(278, "up", INSTANT, link_up, "1 while the peer is there"),
    LINK(279, "peers", peers, "times that a peer came, or the link"),
    LINK(280, "tx_packets", tx_packets, "packets sent to the peer"),
    LINK(281, "tx_bytes", tx_bytes, "bytes of them"),
    LINK(282, "tx_writes", tx_writes, "writes to the cable"),
    LINK(283, "tx_waits", tx_waits, "times that the cable was full"),
    LINK(284, "tx_discarded", tx_discarded, "packets lost for want of a peer"),
    LINK(413, "tx_wait_ns", tx_wait_ns, "nanoseconds that the cable was full"),
    LINK(285, "rx_packets", rx_packets, "packets from the peer"),
    LINK(286, "rx_bytes", rx_bytes, "bytes of them"),
    LINK(287, "rx_reads", rx_reads, "reads from the cable"),
    LINK(288, "rx_frame_errors", rx_frame_errors, "breaks of the framing"),
    LINK(289, "rx_marked_bad", rx_marked_bad, "packets marked bad by the peer"),
    LINK(565, "rx_unheard", rx_unheard,
         "packets lost because the link was down at this end"),
    LINK(573, "moves", moves, "times that an end moved, with notice"),
    LINK(574, "moves_lost", moves_lost, "of these, that the link went down in"),
    LINK(290, "loopback_packets", loopback_packets,
         "packets to the own address"),
};

const HcaCounterTable hca_link_counter_table = {
    .unit = "link",
    .counters = link_counters,
    .rows = link_rows,
    .nrows = G_N_ELEMENTS(link_rows),
};

static const HcaCounterRow fault_rows[] = {
    FAULTS(291, "tx", TX, "sent"),
    FAULTS(296, "rx", RX, "received"),
    FAULT(301, "held_full", held_full,
          "packets not held back for want of room"),
    HCA_GAUGE(302, "held", INSTANT, held, "packets held back"),
    FAULT(337, "tx_mark", injected[HCA_FAULT_TX][HCA_FAULT_MARK],
          "sent packets marked as having met congestion"),
    FAULT(563, "tx_down", downs[HCA_FAULT_TX],
          "times that the link went down at a packet sent"),
    FAULT(564, "rx_down", downs[HCA_FAULT_RX],
          "times that the link went down at a packet received"),
    FAULT(338, "rx_mark", injected[HCA_FAULT_RX][HCA_FAULT_MARK],
          "received packets marked as having met congestion"),
    HCA_GAUGE(570, "all", CUMULATIVE, all_faults, "all of these"),
};

const HcaCounterTable hca_fault_counter_table = {
    .unit = "fault",
    .counters = fault_counters,
    .rows = fault_rows,
    .nrows = G_N_ELEMENTS(fault_rows),
};

static const HcaCounterRow capture_rows[] = {
    HCA_GAUGE(303, "on", INSTANT, captured, "1 while packets are captured"),
    CAPTURE(304, "packets", packets, "packets captured"),
    CAPTURE(305, "bytes", bytes, "bytes of the capture's file"),
    CAPTURE(340, "missed", missed, "packets after the file reached its size"),
};

const HcaCounterTable hca_capture_counter_table = {
    .unit = "capture",
    .counters = capture_counters,
    .rows = capture_rows,
    .nrows = G_N_ELEMENTS(capture_rows),
};
