/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The Ethernet function: what it counts. */
#include "../counter_table.h"
#include "eth.h"

#define COUNTER(number, name, field, text)                                     \
    HCA_COUNTER(number, name, HcaEthCounters, field, text)
/* On an InfiniBand card. */
static const HcaEthCounters none;

HCA_GAUGE_FN(eth_running, HcaEth, room ? hca_eth_running(room) : 0)

static const void *counters(const void *room)
{
    return room ? hca_eth_counters(room) : &none;
}

static const HcaCounterRow rows[] = {
    HCA_GAUGE(318, "running", INSTANT, eth_running,
              "1 while the rings are set up"),
    COUNTER(319, "tx_frames", tx_frames, "frames sent"),
    COUNTER(320, "tx_bytes", tx_bytes, "bytes of them"),
    COUNTER(321, "tx_errors", tx_errors, "frames that could not be sent"),
    COUNTER(322, "rx_frames", rx_frames, "frames received"),
    COUNTER(323, "rx_bytes", rx_bytes, "bytes of them"),
    COUNTER(324, "rx_checksum_ok", rx_checksum_ok,
            "of them, TCP and UDP verified"),
    COUNTER(325, "rx_filtered", rx_filtered, "frames not for this interface"),
    COUNTER(326, "rx_no_buffer", rx_no_buffer,
            "frames lost: no buffer, or one too small"),
    COUNTER(327, "rx_errors", rx_errors,
            "frames lost: no header, or memory refused"),
    COUNTER(328, "interrupts", interrupts, "interrupts sent"),
    COUNTER(329, "bad_doorbells", bad_doorbells, "doorbells of no meaning"),
    COUNTER(384, "tx_tso", tx_tso, "frames cut into TCP segments"),
    COUNTER(385, "tx_segments", tx_segments, "of the frames sent, such"),
    COUNTER(386, "rx_hashed", rx_hashed, "of the frames received, with a hash"),
    COUNTER(387, "interrupts_held", interrupts_held,
            "interrupts that waited for more frames"),
    COUNTER(391, "rx_pause", rx_pause, "PAUSE frames received"),
    COUNTER(392, "tx_pause", tx_pause, "PAUSE frames sent"),
    COUNTER(393, "rx_control_ignored", rx_control_ignored,
            "MAC control frames that are no PAUSE to this card"),
    COUNTER(394, "tx_stopped", tx_stopped,
            "times that a PAUSE frame stopped the port"),
    COUNTER(395, "rx_waited", rx_waited,
            "frames that waited for a buffer while the peer was to stop"),
    COUNTER(396, "pause_given_up", pause_given_up,
            "receive rings for which the peer was not stopped any longer"),
};

const HcaCounterTable hca_eth_counter_table = {
    .unit = "ethernet",
    .counters = counters,
    .rows = rows,
    .nrows = G_N_ELEMENTS(rows),
};
