/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A port: its link, and the packets that come by it. While one of them finds no
 * room where it has to go, the port takes nothing more, and the cable is full in
 * the end: back-pressure.
 */
#include "switch_int.h"

/* Of a turn: packets, and bytes of them. */
#define SHARE 256
#define SHARE_BYTES (128 * 1024)

#define NS_PER_MS 1000000ll

void sw_port_init(HcaSwitch *sw, unsigned number)
{
    SwPort *port = &sw->port[number];

    port->sw = sw;
    port->number = number;
    for (unsigned vl = 0; vl < HCA_NUM_DATA_VLS; vl++) {
        port->queue[vl].size = sw->config.queue_size;
    }
    if (number) {
        port->link = hca_link_new(HCA_LINK_LAYER_IB, HCA_CABLE_CARD,
                                  &HCA_HOST(&sw->link_ops, port));
        port->enabled = true;
        hca_link_set_patience(port->link, sw->config.move_ms * NS_PER_MS);
        hca_link_set_managed(port->link, true);
        hca_link_enable(port->link, true);
    }
}

void sw_port_destroy(SwPort *port)
{
    for (unsigned vl = 0; vl < HCA_NUM_DATA_VLS; vl++) {
        sw_queue_free(&port->queue[vl]);
    }
    hca_link_free(port->link);
}

/* The link */

static void lose(SwPort *port)
{
    port->trained = false;
    sw_output_lose(port);
}

void sw_port_watch(SwPort *port)
{
    HcaNode *node = port->sw->node;
    unsigned downs = hca_link_downs(port->link);
    bool up = port->enabled && hca_link_is_up(port->link);

    /* It may have been down for a moment. */
    if (port->trained && (!up || downs != port->downs)) {
        lose(port);
        hca_node_link(node, port->number, false);
    }
    port->downs = downs;
    if (up && !port->trained) {
        port->trained = true;
        hca_node_link(node, port->number, true);
    }
    if (hca_link_rx_failed(port->link) && !port->failed) {
        port->failed = true;
        sw_say(port->sw, "port %u: the peer broke the framing", port->number);
        port->sw->ops->drop(port->sw->opaque, port->number);
    }
}

/*
 * Training takes no time: if the peer is there and wants to, the link is up
 * again when this returns. The peer is told of both.
 */
void sw_port_set_link(SwPort *port, bool poll)
{
    lose(port);
    hca_link_enable(port->link, false);
    port->enabled = poll;
    if (poll) {
        hca_link_enable(port->link, true);
    }
    sw_port_watch(port);
}

/* What was received lies in the link's buffer, which is used anew. */
static void forget_held(SwPort *port)
{
    if (port->left) {
        port->left = 0;
        port->sw->inputs_held &= ~(UINT64_C(1) << port->number);
        sw_drop(port, SW_DROP_LINK_LOST);
    }
}

void sw_port_cable(SwPort *port, bool up)
{
    if (!hca_link_is_away(port->link)) {
        forget_held(port);
    }
    port->cabled = up;
    port->readable = up;
    port->writable = false;
    port->failed = false;
    hca_link_set_up(port->link, up);
    sw_port_watch(port);
}

/* Packets */

static void take(SwPort *port, const uint8_t *data, size_t len)
{
    HcaSwitch *sw = port->sw;
    SwPacket packet = {
        .data = data,
        .len = len,
        .in = port->number,
        .arrived = sw->now,
    };
    SwDrop why = sw_packet_parse(&packet, sw->config.mtu,
                                 sw_num_vls(sw_info(port)->operational_vls));

    if (why == SW_NO_DROP && packet.vl != hca_link_rx_vl(port->link)) {
        why = SW_DROP_MALFORMED;
    }
    sw_count_rx(port, &packet);
    hca_node_packet(sw->node, port->number, why != SW_DROP_VCRC);
    if (why == SW_NO_DROP) {
        sw_forward(port, &packet);
    } else {
        sw_drop(port, why);
    }
}

static bool has_received(const SwPort *port)
{
    return port->cabled && !port->left &&
           (port->readable || hca_link_rx_pending(port->link));
}

bool sw_port_receive(SwPort *port)
{
    size_t bytes = 0;

    for (unsigned i = 0; has_received(port); i++) {
        const uint8_t *data;
        bool loopback;
        size_t len;

        if (i == SHARE || bytes >= SHARE_BYTES) {
            return true;
        }
        port->readable = true;
        data = hca_link_receive(port->link, &len, &loopback);
        sw_port_watch(port);
        if (!data) {
            port->readable = false;
            return has_received(port);
        }
        bytes += len;
        take(port, data, len);
    }
    return false;
}

void sw_port_retry(SwPort *port)
{
    HcaSwitch *sw = port->sw;

    port->left = sw_deliver(sw, &port->held, port->left);
    if (!port->left) {
        sw->inputs_held &= ~(UINT64_C(1) << port->number);
    }
}
