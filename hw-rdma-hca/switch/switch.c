/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A switch: its life, and one turn of it. */
#include "switch_int.h"

#define DEVICE_ID 0x10f1
#define REVISION 1
#define VENDOR_ID 0x525400
#define WIDTH_4X 2
#define SPEEDS_TO_QDR 7

/* Data VLs by their code (PortInfo.VLCap, IBA 14.2.5.6). */
static const uint8_t num_vls[] = { 0, 1, 2, 4, 8, 15 };

unsigned sw_num_vls(unsigned code)
{
    return code < G_N_ELEMENTS(num_vls) ? num_vls[code] : 0;
}

/* 0: there is none. */
static unsigned vls_code(unsigned vls)
{
    for (unsigned code = 1; code < G_N_ELEMENTS(num_vls); code++) {
        if (num_vls[code] == vls) {
            return code;
        }
    }
    return 0;
}

static unsigned mtu_code(unsigned mtu)
{
    for (unsigned code = 1; code <= 5; code++) {
        if (128u << code == mtu) {
            return code;
        }
    }
    return 0;
}

void hca_switch_config_init(HcaSwitchConfig *config)
{
    *config = (HcaSwitchConfig) {
        .num_ports = 8,
        .guid = HCA_SWITCH_DEFAULT_GUID + 1,
        .name = "hca-switch",
        .mtu = 4096,
        .vls = 8,
        .queue_size = 128 * 1024,
        .move_ms = HCA_SWITCH_DEFAULT_MOVE_MS,
    };
}

const char *hca_switch_config_check(const HcaSwitchConfig *config)
{
    G_STATIC_ASSERT(HCA_SWITCH_MAX_PORTS == 48 && HCA_NODE_DESC_SIZE == 64);

    if (config->num_ports < 1 || config->num_ports > HCA_SWITCH_MAX_PORTS) {
        return "a switch has 1 to 48 ports";
    }
    if (!config->guid) {
        return "guid must not be 0";
    }
    if (!mtu_code(config->mtu)) {
        return "mtu must be 256, 512, 1024, 2048 or 4096";
    }
    if (!vls_code(config->vls)) {
        return "vls must be 1, 2, 4, 8 or 15";
    }
    if (config->queue_size < HCA_SWITCH_MIN_QUEUE ||
        config->queue_size > HCA_SWITCH_MAX_QUEUE) {
        return "a queue has 16 KiB to 16 MiB";
    }
    if (strlen(config->name) > HCA_NODE_DESC_SIZE) {
        return "name must have at most 64 bytes";
    }
    return NULL;
}

/* What links ask for */

static ssize_t link_writev(void *opaque, const struct iovec *iov, int iovcnt)
{
    SwPort *port = opaque;

    return port->sw->ops->writev(port->sw->opaque, port->number, iov, iovcnt);
}

static ssize_t link_readv(void *opaque, const struct iovec *iov, int iovcnt)
{
    SwPort *port = opaque;

    return port->sw->ops->readv(port->sw->opaque, port->number, iov, iovcnt);
}

static int64_t link_clock(void *opaque)
{
    const SwPort *port = opaque;

    return port->sw->ops->now(port->sw->opaque);
}

static bool link_capture(void *opaque, const void *data, size_t len)
{
    SwPort *port = opaque;

    return port->sw->ops->capture(port->sw->opaque, port->number, data, len);
}

static void link_warn(void *opaque, const char *message)
{
    const SwPort *port = opaque;
    char *line = g_strdup_printf("port %u: %s", port->number, message);

    port->sw->ops->warn(port->sw->opaque, line);
    g_free(line);
}

/* Life */

static HcaNode *new_node(HcaSwitch *sw, const HcaSwitchConfig *config)
{
    HcaNodeSetup setup = {
        .type = HCA_NODE_SWITCH,
        .num_ports = config->num_ports,
        .guid = config->guid,
        .device_id = DEVICE_ID,
        .revision = REVISION,
        .vendor_id = VENDOR_ID,
        .description = config->name,
        .mtu_cap = mtu_code(config->mtu),
        .vl_cap = vls_code(config->vls),
        .width = WIDTH_4X,
        .speeds = SPEEDS_TO_QDR,
    };

    return hca_node_new(&setup, &sw_node_ops, sw);
}

HcaSwitch *hca_switch_new(const HcaSwitchConfig *config,
                          const HcaSwitchOps *ops, void *opaque)
{
    HcaSwitch *sw = g_new0(HcaSwitch, 1);

    sw->config = *config;
    sw->config.name = NULL; /* the node has it */
    sw->ops = ops;
    sw->opaque = opaque;
    sw->link_ops = (HcaHostOps) {
        .clock_ns = link_clock,
        .link_writev = link_writev,
        .link_readv = link_readv,
        .capture_write = ops->capture ? link_capture : NULL,
        .warn = link_warn,
    };
    sw->num_ports = config->num_ports;
    sw->all = (UINT64_C(1) << (sw->num_ports + 1)) - 1;
    sw->now = ops->now(opaque);
    sw->node = new_node(sw, config);
    sw->port = g_new0(SwPort, sw->num_ports + 1);
    for (unsigned i = 0; i <= sw->num_ports; i++) {
        sw_port_init(sw, i);
    }
    return sw;
}

void hca_switch_free(HcaSwitch *sw)
{
    if (sw) {
        for (unsigned i = 0; i <= sw->num_ports; i++) {
            sw_port_destroy(&sw->port[i]);
        }
        hca_node_free(sw->node);
        g_free(sw->port);
        g_free(sw);
    }
}

/* Cables */

void hca_switch_cable(HcaSwitch *sw, unsigned port, bool up)
{
    sw->now = sw->ops->now(sw->opaque);
    sw_port_cable(&sw->port[port], up);
}

void hca_switch_readable(HcaSwitch *sw, unsigned port)
{
    sw->port[port].readable = true;
}

void hca_switch_writable(HcaSwitch *sw, unsigned port)
{
    sw->port[port].writable = true;
}

bool hca_switch_wants_read(const HcaSwitch *sw, unsigned port)
{
    const SwPort *p = &sw->port[port];

    return p->cabled && !p->left && !p->failed;
}

bool hca_switch_wants_write(const HcaSwitch *sw, unsigned port)
{
    return hca_link_tx_blocked(sw->port[port].link);
}

bool hca_switch_is_greeted(const HcaSwitch *sw, unsigned port)
{
    return hca_link_is_greeted(sw->port[port].link);
}

HcaNode *hca_switch_node(HcaSwitch *sw)
{
    return sw->node;
}

HcaLink *hca_switch_link(HcaSwitch *sw, unsigned port)
{
    return sw->port[port].link;
}

/* A turn */

/* What waits goes first, so that there is room again. */
static void send_waiting(HcaSwitch *sw)
{
    for (unsigned i = 1; i <= sw->num_ports; i++) {
        SwPort *port = &sw->port[i];

        if (port->writable) {
            port->writable = false;
            hca_link_flush(port->link);
        }
        if (hca_link_tick(port->link)) {
            sw_port_watch(port);
        }
        if (port->waiting) {
            sw_output_run(port);
        }
    }
}

/* True: one of them has found room, and its port reads again. */
static bool retry_held(HcaSwitch *sw)
{
    uint64_t held = sw->inputs_held;

    for (uint64_t ports = held; ports; ports &= ports - 1) {
        sw_port_retry(&sw->port[__builtin_ctzll(ports)]);
    }
    return sw->inputs_held != held;
}

/* Each turn another port is the first one. */
static bool receive(HcaSwitch *sw)
{
    bool more = false;

    sw->first = sw->first % sw->num_ports + 1;
    for (unsigned i = 0; i < sw->num_ports; i++) {
        unsigned number = (sw->first - 1 + i) % sw->num_ports + 1;

        more |= sw_port_receive(&sw->port[number]);
    }
    return more;
}

static void finish(HcaSwitch *sw)
{
    for (unsigned i = 1; i <= sw->num_ports; i++) {
        sw_output_run(&sw->port[i]);
        hca_link_flush_capture(sw->port[i].link);
    }
}

bool hca_switch_run(HcaSwitch *sw)
{
    bool more;

    sw->now = sw->ops->now(sw->opaque);
    send_waiting(sw);
    retry_held(sw);
    more = receive(sw);
    hca_node_tick(sw->node);
    finish(sw);
    return retry_held(sw) || more;
}

/* Of a packet that waits where it came in. */
static int64_t held_deadline(const SwPort *port)
{
    int64_t first = INT64_MAX;

    for (uint64_t ports = port->left; ports; ports &= ports - 1) {
        const SwPort *out = &port->sw->port[__builtin_ctzll(ports)];

        first = MIN(first, sw_output_patience(out, port->held.arrived));
    }
    return first;
}

int64_t hca_switch_deadline(const HcaSwitch *sw)
{
    int64_t first = hca_node_deadline(sw->node);

    for (unsigned i = 1; i <= sw->num_ports; i++) {
        const SwPort *port = &sw->port[i];

        first = MIN(first, hca_link_deadline(port->link));
        first = MIN(first, held_deadline(port));
        if (port->waiting) {
            first = MIN(first, sw_output_deadline(port));
        }
    }
    return first;
}

void sw_say(HcaSwitch *sw, const char *format, ...)
{
    va_list ap;
    char *line;

    if (!sw->ops->say) {
        return;
    }
    va_start(ap, format);
    line = g_strdup_vprintf(format, ap);
    va_end(ap);
    sw->ops->say(sw->opaque, line);
    g_free(line);
}
