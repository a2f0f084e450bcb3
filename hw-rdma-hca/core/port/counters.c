/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The port: what it counts. */
#include "../counter_table.h"
#include "port.h"

#define COUNTER(number, name, field, text)                                     \
    HCA_COUNTER(number, name, HcaPortCounters, field, text)
#define DROP(number, name, d, t)                                               \
    COUNTER(number, "drop_" name, drops[HCA_DROP_##d], "packets dropped: " t)

HCA_GAUGE_FN(flow_rules, HcaPort, hca_flow_count(room))

static const void *counters(const void *room)
{
    return hca_port_counters((HcaPort *)room);
}

static const HcaCounterRow rows[] = {
    COUNTER(253, "tx_packets", tx_packets, "packets made"),
    COUNTER(254, "rx_packets", rx_packets, "packets received"),
    DROP(255, "short", PARSE_SHORT, "too short"),
    DROP(256, "parse_length", PARSE_LENGTH, "lengths that disagree"),
    DROP(257, "version", PARSE_VERSION, "header version"),
    DROP(258, "lnh", PARSE_LNH, "not an InfiniBand transport"),
    DROP(259, "opcode", PARSE_OPCODE, "opcode unknown"),
    DROP(260, "vcrc", PARSE_VCRC, "wrong VCRC"),
    DROP(261, "icrc", PARSE_ICRC, "wrong ICRC"),
    DROP(262, "lid", LID, "not for this LID or address"),
    DROP(263, "port_down", PORT_DOWN, "port not enabled"),
    DROP(264, "qpn", QPN, "no such QP"),
    DROP(265, "qp_state", QP_STATE, "QP state takes no packets"),
    DROP(266, "service", SERVICE, "opcode of another service"),
    DROP(267, "pkey", PKEY, "P_Key"),
    DROP(268, "qkey", QKEY, "Q_Key"),
    DROP(269, "source", SOURCE, "not from the connected peer"),
    DROP(270, "duplicate", DUPLICATE, "received before, nothing to answer"),
    DROP(271, "psn", PSN, "out of sequence"),
    DROP(272, "ghost", GHOST, "answer to nothing outstanding"),
    DROP(273, "no_wqe", NO_WQE, "no receive WQE (UC, UD)"),
    DROP(274, "length", LENGTH, "does not fit (UC, UD)"),
    DROP(275, "opcode_seq", OPCODE_SEQ, "out of place in a message (UC)"),
    DROP(276, "access", ACCESS, "memory refused"),
    DROP(277, "resources", RESOURCES, "no room to answer"),
    COUNTER(310, "tx_unreachable", tx_unreachable,
            "packets lost for want of a source, P_Key or VL"),
    COUNTER(311, "rx_multicast", rx_multicast, "packets to groups of the card"),
    DROP(312, "group", GROUP, "multicast to no group of the card"),
    DROP(313, "fragment", PARSE_FRAGMENT, "RoCEv2 in IP fragments"),
    DROP(314, "ip_header", PARSE_IP_HEADER, "IP options or checksum"),
    DROP(315, "udp", PARSE_UDP, "UDP length or checksum"),
    COUNTER(376, "tx_frames", tx_frames, "frames of raw packet QPs sent"),
    COUNTER(377, "flow_steered", flow_steered,
            "frames that rules gave to raw packet QPs"),
    COUNTER(378, "flow_sniffed", flow_sniffed,
            "copies that sniffers among them got"),
    DROP(406, "mgmt", MGMT, "not as those of QP 0 and QP 1 are"),
    DROP(560, "fault", FAULT, "by a plan of faults"),
    COUNTER(407, "tx_inactive", tx_inactive,
            "packets lost because the port was not active"),
    COUNTER(408, "tx_mgmt_full", tx_mgmt_full,
            "packets lost for want of room on VL 15"),
    COUNTER(409, "tx_multicast", tx_multicast,
            "packets to groups, sent to the peer"),
    COUNTER(410, "rx_multicast_all", rx_multicast_all,
            "packets to any group, from the peer"),
    COUNTER(411, "vl15_dropped", vl15_dropped,
            "packets that found no receive WQE of QP 0"),
    COUNTER(412, "qp1_dropped", qp1_dropped,
            "packets that found no receive WQE of QP 1"),
    HCA_GAUGE(379, "flow_rules", INSTANT, flow_rules, "flow rules"),
};

const HcaCounterTable hca_port_counter_table = {
    .unit = "port",
    .counters = counters,
    .rows = rows,
    .nrows = G_N_ELEMENTS(rows),
};
