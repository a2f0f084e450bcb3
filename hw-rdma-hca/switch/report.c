/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ports and counters as text: words of name=value, lines of port name value. */
#include "switch_int.h"

static const char *const state_names[] = {
    [HCA_PORT_DOWN] = "down",
    [HCA_PORT_INIT] = "init",
    [HCA_PORT_ARMED] = "armed",
    [HCA_PORT_ACTIVE] = "active",
};

const char *sw_state_name(unsigned state)
{
    return state < G_N_ELEMENTS(state_names) && state_names[state]
               ? state_names[state]
               : "?";
}

static const char *link_name(const SwPort *port)
{
    if (hca_link_is_away(port->link)) {
        return "away";
    }
    if (!port->cabled) {
        return "none";
    }
    if (!hca_link_is_greeted(port->link)) {
        return "greeting";
    }
    return port->trained ? "up" : "down";
}

static const char *peer_name(const SwPort *port)
{
    if (!hca_link_is_greeted(port->link)) {
        return "none";
    }
    return hca_link_peer_is_managed(port->link) ? "managed" : "unmanaged";
}

static unsigned packets_waiting(const SwPort *port)
{
    unsigned packets = 0;

    for (unsigned vl = 0; vl < HCA_NUM_DATA_VLS; vl++) {
        packets += port->queue[vl].packets;
    }
    return packets;
}

static void report_self(const HcaSwitch *sw, GString *out)
{
    const HcaPortInfo *info = sw_info(&sw->port[0]);

    g_string_append_printf(
        out, "port=0 guid=0x%016" G_GINT64_MODIFIER "x lid=%u sm-lid=%u\n",
        (guint64)sw->node->node_guid, info->lid, info->sm_lid);
}

void hca_switch_report_port(const HcaSwitch *sw, unsigned number, GString *out)
{
    const SwPort *port = &sw->port[number];
    const HcaPortInfo *info = sw_info(port);

    if (!number) {
        report_self(sw, out);
        return;
    }
    g_string_append_printf(
        out,
        "port=%u state=%s link=%s peer=%s mtu=%u vls=%u waiting=%u held=%d\n",
        number, sw_state_name(info->state), link_name(port), peer_name(port),
        128u << info->mtu, sw_num_vls(info->operational_vls),
        packets_waiting(port), port->left != 0);
}

static void line(GString *out, unsigned port, const char *name, uint64_t value)
{
    if (value) {
        g_string_append_printf(out, "%u %s %" G_GUINT64_FORMAT "\n", port, name,
                               (guint64)value);
    }
}

/* As the specification calls them. */
static const char *const pma_names[HCA_PMA_NCOUNTERS] = {
    [HCA_PMA_SYMBOL_ERRORS] = "SymbolErrorCounter",
    [HCA_PMA_LINK_RECOVERIES] = "LinkErrorRecoveryCounter",
    [HCA_PMA_LINK_DOWNED] = "LinkDownedCounter",
    [HCA_PMA_RCV_ERRORS] = "PortRcvErrors",
    [HCA_PMA_RCV_REMOTE_ERRORS] = "PortRcvRemotePhysicalErrors",
    [HCA_PMA_RCV_RELAY_ERRORS] = "PortRcvSwitchRelayErrors",
    [HCA_PMA_XMIT_DISCARDS] = "PortXmitDiscards",
    [HCA_PMA_XMIT_CONSTRAINT] = "PortXmitConstraintErrors",
    [HCA_PMA_RCV_CONSTRAINT] = "PortRcvConstraintErrors",
    [HCA_PMA_INTEGRITY_ERRORS] = "LocalLinkIntegrityErrors",
    [HCA_PMA_OVERRUN_ERRORS] = "ExcessiveBufferOverrunErrors",
    [HCA_PMA_VL15_DROPPED] = "VL15Dropped",
    [HCA_PMA_XMIT_DATA] = "PortXmitData",
    [HCA_PMA_RCV_DATA] = "PortRcvData",
    [HCA_PMA_XMIT_PKTS] = "PortXmitPkts",
    [HCA_PMA_RCV_PKTS] = "PortRcvPkts",
    [HCA_PMA_XMIT_WAIT] = "PortXmitWait",
    [HCA_PMA_QP1_DROPPED] = "QP1Dropped",
    [HCA_PMA_UNICAST_XMIT] = "PortUnicastXmitPkts",
    [HCA_PMA_UNICAST_RCV] = "PortUnicastRcvPkts",
    [HCA_PMA_MULTICAST_XMIT] = "PortMulticastXmitPkts",
    [HCA_PMA_MULTICAST_RCV] = "PortMulticastRcvPkts",
};

static void report_pma(HcaSwitch *sw, unsigned number, GString *out)
{
    const HcaNodePort *port = &sw->node->port[number];
    HcaPmaCounters counters;

    sw_counters(&sw->port[number], &counters);
    counters.value[HCA_PMA_LINK_DOWNED] = port->downs;
    counters.value[HCA_PMA_INTEGRITY_ERRORS] = port->integrity_errors;
    for (unsigned i = 0; i < HCA_PMA_NCOUNTERS; i++) {
        line(out, number, pma_names[i], counters.value[i]);
    }
}

static void report_faults(const SwPort *port, GString *out)
{
    static const char *const actions[HCA_FAULT_NPACKET_ACTIONS] = {
        [HCA_FAULT_DROP] = "drop",       [HCA_FAULT_DUPLICATE] = "duplicate",
        [HCA_FAULT_REORDER] = "reorder", [HCA_FAULT_DELAY] = "delay",
        [HCA_FAULT_CORRUPT] = "corrupt", [HCA_FAULT_MARK] = "mark",
    };
    static const char *const directions[HCA_FAULT_NDIRECTIONS] = {
        [HCA_FAULT_TX] = "tx",
        [HCA_FAULT_RX] = "rx",
    };
    const HcaFaultCounters *faults = hca_link_fault_counters(port->link);

    for (unsigned d = 0; d < HCA_FAULT_NDIRECTIONS; d++) {
        for (unsigned a = 0; a < HCA_FAULT_NPACKET_ACTIONS; a++) {
            char *name = g_strdup_printf("fault.%s.%s", directions[d],
                                         actions[a]);

            line(out, port->number, name, faults->injected[d][a]);
            g_free(name);
        }
    }
}

static void report_link(const SwPort *port, GString *out)
{
    const HcaLinkCounters *link = hca_link_counters(port->link);
    const HcaCaptureCounters *capture = hca_link_capture_counters(port->link);

    line(out, port->number, "link.peers", link->peers);
    line(out, port->number, "link.frame-errors", link->rx_frame_errors);
    line(out, port->number, "link.reads", link->rx_reads);
    line(out, port->number, "link.writes", link->tx_writes);
    line(out, port->number, "link.waits", link->tx_waits);
    line(out, port->number, "capture.packets", capture->packets);
    line(out, port->number, "capture.missed", capture->missed);
    report_faults(port, out);
}

/* What the agents count is the switch's. */
static void report_agents(const HcaNode *node, GString *out)
{
    const HcaNodeCounters *c = &node->counters;

    line(out, 0, "agent.smps", c->smps);
    line(out, 0, "agent.gmps", c->gmps);
    line(out, 0, "agent.refused", c->refused);
    line(out, 0, "agent.mkey-violations", c->mkey_violations);
    line(out, 0, "agent.route-errors", c->route_errors);
    line(out, 0, "agent.traps", c->traps);
    line(out, 0, "agent.traps-repressed", c->traps_repressed);
    line(out, 0, "agent.traps-lost", c->traps_lost);
}

void hca_switch_report_counters(HcaSwitch *sw, unsigned number, GString *out)
{
    const SwPort *port = &sw->port[number];

    report_pma(sw, number, out);
    for (unsigned why = 0; why < SW_NDROPS; why++) {
        char *name = g_strdup_printf("drop.%s", sw_drop_name(why));

        line(out, number, name, port->counters.dropped[why]);
        g_free(name);
    }
    line(out, number, "queued", port->counters.queued);
    if (port->link) {
        report_link(port, out);
    } else {
        report_agents(sw->node, out);
    }
}
