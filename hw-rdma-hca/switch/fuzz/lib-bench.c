/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE /* memmem() */
#include "lib-bench.h"

#include <errno.h>
#include <inttypes.h>
#include <sanitizer/allocator_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire/bytes.h"
#include "core/wire/crc.h"

#define MOST_DEADLINES 20000

int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct {
    bool inside; /* of the switch */
    uint64_t steps, most_steps;
    size_t live_before, most_live;
} meter;

/* What nobody without the key may change, as it was. */
static struct {
    HcaSwitchInfo info;
    HcaNodePort port[BENCH_PORTS + 1];
    uint8_t sl_to_vl[BENCH_PORTS + 1][BENCH_PORTS + 1][HCA_NUM_SLS];
    uint8_t lft[HCA_LFT_SIZE];
    uint64_t mft[HCA_MFT_SIZE];
} kept;

void bench_fail(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    fputs("fuzz: ", stderr);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    abort();
}

bool bench_traces(void)
{
    static int traces = -1;

    if (traces < 0) {
        traces = g_getenv("HCA_TRACE") != NULL;
    }
    return traces;
}

/* Meter */

/* The compiler's hook: the switch takes another branch. */
void __wrap___sanitizer_cov_trace_pc(void);
void __wrap___sanitizer_cov_trace_pc(void)
{
    meter.steps += meter.inside;
}

static void report(void)
{
    fprintf(stderr,
            "METER turns: at most %" PRIu64 " steps; the switch: at most %zu "
            "bytes\n",
            meter.most_steps, meter.most_live);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    g_setenv("G_SLICE", "always-malloc", TRUE);
    atexit(report);
    return 0;
}

static void check_meter(void)
{
    size_t live = __sanitizer_get_current_allocated_bytes() - meter.live_before;

    meter.most_steps = MAX(meter.most_steps, meter.steps);
    meter.most_live = MAX(meter.most_live, live);
    if (meter.steps > BENCH_MOST_STEPS) {
        bench_fail("a turn has %" PRIu64 " steps", meter.steps);
    }
    if (live > BENCH_MOST_LIVE) {
        bench_fail("the switch has allocated %zu bytes", live);
    }
}

/* What leaves */

static void check_packet(const Bench *b, unsigned port, const HcaFrame *frame)
{
    const uint8_t *lrh = frame->body;
    size_t len = frame->len - HCA_VCRC_SIZE;
    uint16_t vcrc;

    if (frame->len < HCA_LRH_SIZE + HCA_BTH_SIZE + HCA_ICRC_SIZE) {
        bench_fail("port %u sends a packet of %zu bytes", port, frame->len);
    }
    vcrc = hca_vcrc_update(HCA_VCRC_INIT, lrh, len);
    if (lrh[len] != (vcrc & 0xff) || lrh[len + 1] != vcrc >> 8) {
        bench_fail("port %u sends a wrong VCRC", port);
    }
    if (frame->error || frame->vl != lrh[0] >> 4 ||
        (get_be16(lrh + 4) & 0x7ffu) * 4 != len) {
        bench_fail("port %u sends what its frame or LRH does not say", port);
    }
}

static void check_secret(const Bench *b, unsigned port, const HcaFrame *frame)
{
    uint8_t key[8];

    put_be64(key, b->key);
    if (b->protected && memmem(frame->body, frame->len, key, sizeof(key))) {
        bench_fail("port %u sends the M_Key", port);
    }
}

static void see_frame(Bench *b, unsigned port, const HcaFrame *frame)
{
    Cable *cable = &b->cable[port];

    if ((frame->type == HCA_FRAME_GREETING) == cable->greeted) {
        bench_fail("port %u does not greet once, and first", port);
    }
    cable->greeted = true;
    if (frame->type == HCA_FRAME_PACKET) {
        if (!b->spoiled) {
            check_packet(b, port, frame);
        }
        check_secret(b, port, frame);
        memcpy(cable->packet, frame->body, frame->len);
        cable->packet_len = frame->len;
    }
}

static void see_frames(Bench *b, unsigned port)
{
    Cable *cable = &b->cable[port];
    size_t at = 0;
    HcaFrame frame;
    int size;

    while ((size = hca_frame_read(&frame, cable->out + at,
                                  cable->out_len - at)) > 0) {
        see_frame(b, port, &frame);
        at += size;
    }
    if (size < 0) {
        bench_fail("port %u breaks the framing", port);
    }
    cable->out_len -= at;
    memmove(cable->out, cable->out + at, cable->out_len);
}

static void see(Bench *b, unsigned port, const uint8_t *bytes, size_t len)
{
    Cable *cable = &b->cable[port];

    while (len) {
        size_t n = MIN(len, sizeof(cable->out) - cable->out_len);

        memcpy(cable->out + cable->out_len, bytes, n);
        cable->out_len += n;
        bytes += n;
        len -= n;
        see_frames(b, port);
    }
}

/* What the switch asks for */

static int64_t op_now(void *opaque)
{
    return ((Bench *)opaque)->now;
}

/* Errors that are none but once; others are the end of the stream. */
static int next_error(Cable *cable)
{
    int error = cable->error;

    if (!cable->plugged) {
        return -EPIPE;
    }
    if (error == -EINTR || error == -EAGAIN) {
        cable->error = 0;
    } else if (error) {
        cable->cut = true;
    }
    return error;
}

static size_t next_piece(Cable *cable, size_t len)
{
    if (cable->pieces && len) {
        cable->pieces--;
        return MIN(len, cable->piece);
    }
    return len;
}

static ssize_t op_writev(void *opaque, unsigned port, const struct iovec *iov,
                         int iovcnt)
{
    Bench *b = opaque;
    Cable *cable = &b->cable[port];
    int error = next_error(cable);
    bool inside = meter.inside;
    size_t n;

    if (error) {
        return error;
    }
    n = next_piece(cable, MIN(iov->iov_len, cable->room));
    if (!n) {
        return -EAGAIN;
    }
    if (cable->room != SIZE_MAX) {
        cable->room -= n;
    }
    b->moved += n;
    meter.inside = false;
    see(b, port, iov->iov_base, n);
    meter.inside = inside;
    return n;
}

static ssize_t op_readv(void *opaque, unsigned port, const struct iovec *iov,
                        int iovcnt)
{
    Bench *b = opaque;
    Cable *cable = &b->cable[port];
    int error = next_error(cable);
    size_t n;

    if (error) {
        return error;
    }
    n = next_piece(cable, MIN(iov->iov_len, cable->len - cable->at));
    if (!n) {
        return -EAGAIN;
    }
    memcpy(iov->iov_base, cable->in + cable->at, n);
    cable->at += n;
    b->moved += n;
    return n;
}

static void op_drop(void *opaque, unsigned port)
{
    ((Bench *)opaque)->cable[port].cut = true;
}

static bool op_capture(void *opaque, unsigned port, const void *data,
                       size_t len)
{
    return true;
}

static void op_say(void *opaque, const char *line)
{
    if (bench_traces()) {
        fprintf(stderr, "  %s\n", line);
    }
}

static const HcaSwitchOps ops = {
    .now = op_now,
    .writev = op_writev,
    .readv = op_readv,
    .drop = op_drop,
    .capture = op_capture,
    .warn = op_say,
    .say = op_say,
};

/* Protection */

/* Without what changes by itself. */
static HcaPortInfo lasting(const HcaPortInfo *info)
{
    HcaPortInfo out = *info;

    out.state = out.phys_state = 0;
    out.m_key_violations = out.p_key_violations = out.q_key_violations = 0;
    return out;
}

static void keep(const Bench *b)
{
    const HcaNode *node = b->node;

    kept.info = node->switch_info;
    memcpy(kept.lft, node->lft, sizeof(kept.lft));
    memcpy(kept.mft, node->mft, sizeof(kept.mft));
    for (unsigned i = 0; i <= BENCH_PORTS; i++) {
        memcpy(&kept.port[i], &node->port[i], sizeof(kept.port[i]));
        memcpy(kept.sl_to_vl[i], node->port[i].sl_to_vl,
               sizeof(kept.sl_to_vl[i]));
    }
}

#define SAME(a, b) (memcmp(&(a), &(b), sizeof(a)) == 0)

/* Armed and Disabled are a manager's doing. */
static bool state_is_free(const HcaPortInfo *now, const HcaPortInfo *before)
{
    return (now->state != HCA_PORT_ARMED || before->state == HCA_PORT_ARMED) &&
           (now->phys_state == HCA_PORT_PHYS_DISABLED) ==
               (before->phys_state == HCA_PORT_PHYS_DISABLED);
}

static bool port_is_same(const HcaNode *node, unsigned i)
{
    const HcaNodePort *now = &node->port[i], *before = &kept.port[i];
    HcaPortInfo info = lasting(&now->info), old = lasting(&before->info);

    return SAME(info, old) && SAME(now->pkeys, before->pkeys) &&
           SAME(now->guids, before->guids) &&
           SAME(now->vl_arb, before->vl_arb) && now->led == before->led &&
           !memcmp(now->sl_to_vl, kept.sl_to_vl[i], sizeof(kept.sl_to_vl[i])) &&
           state_is_free(&now->info, &before->info);
}

static void check_protected(const Bench *b)
{
    const HcaNode *node = b->node;
    HcaSwitchInfo info = node->switch_info;

    if (!b->protected) {
        return;
    }
    info.port_state_change = kept.info.port_state_change;
    if (!SAME(info, kept.info) ||
        memcmp(node->lft, kept.lft, sizeof(kept.lft)) ||
        memcmp(node->mft, kept.mft, sizeof(kept.mft))) {
        bench_fail("the switch was configured without the M_Key");
    }
    for (unsigned i = 0; i <= BENCH_PORTS; i++) {
        if (!port_is_same(node, i)) {
            bench_fail("port %u was configured without the M_Key", i);
        }
    }
}

void bench_protect(Bench *b, uint8_t protect)
{
    HcaNodePort *port = &b->node->port[0];

    port->info.m_key = b->key;
    port->info.m_key_protect = protect;
    port->info.m_key_lease = 0;
    port->lease_end = 0;
    b->protected = true;
    keep(b);
}

/* Turns */

static void tell_ready(Bench *b)
{
    for (unsigned i = 1; i <= BENCH_PORTS; i++) {
        const Cable *cable = &b->cable[i];

        if (!cable->plugged) {
            continue;
        }
        if (cable->at < cable->len && hca_switch_wants_read(b->sw, i)) {
            hca_switch_readable(b->sw, i);
        }
        if (cable->room && hca_switch_wants_write(b->sw, i)) {
            hca_switch_writable(b->sw, i);
        }
    }
}

/* True: the switch has been told of one. */
static bool pull_cut(Bench *b)
{
    bool pulled = false;

    for (unsigned i = 1; i <= BENCH_PORTS; i++) {
        if (b->cable[i].cut) {
            bench_unplug(b, i);
            pulled = true;
        }
    }
    return pulled;
}

static bool turn(Bench *b)
{
    bool more;

    tell_ready(b);
    meter.steps = 0;
    meter.inside = true;
    more = hca_switch_run(b->sw);
    meter.inside = false;
    check_meter();
    more |= pull_cut(b);
    check_protected(b);
    return more;
}

void bench_turn(Bench *b)
{
    turn(b);
}

void bench_rest(Bench *b)
{
    uint64_t before;
    unsigned turns = 0;
    bool more;

    do {
        before = b->moved;
        more = turn(b);
        if (turns++ == BENCH_MOST_TURNS) {
            bench_fail("the switch does not come to rest");
        }
    } while (more || b->moved != before);
}

void bench_sleep(Bench *b, int64_t ns)
{
    int64_t end = b->now + ns, next;

    bench_rest(b);
    for (unsigned i = 0; (next = hca_switch_deadline(b->sw)) <= end; i++) {
        if (i == MOST_DEADLINES || (i && next <= b->now)) {
            bench_fail("what is due is not done");
        }
        b->now = MAX(b->now, next);
        bench_rest(b);
    }
    b->now = end;
    bench_rest(b);
}

/* Cables */

void bench_put(Bench *b, unsigned port, const void *bytes, size_t len)
{
    Cable *cable = &b->cable[port];

    if (cable->at == cable->len) {
        cable->at = cable->len = 0;
    }
    if (cable->plugged && sizeof(cable->in) - cable->len >= len) {
        memcpy(cable->in + cable->len, bytes, len);
        cable->len += len;
    }
}

void bench_put_packet(Bench *b, unsigned port, unsigned vl,
                      const uint8_t *packet, size_t len)
{
    Cable *cable = &b->cable[port];
    uint8_t header[HCA_FRAME_HEADER_SIZE];

    if (sizeof(cable->in) - cable->len < sizeof(header) + len) {
        return;
    }
    hca_frame_write_header(header, HCA_FRAME_PACKET, vl, len);
    bench_put(b, port, header, sizeof(header));
    bench_put(b, port, packet, len);
}

void bench_plug(Bench *b, unsigned port)
{
    HcaGreeting greeting = { .enabled = true, .managed = true };
    uint8_t frame[HCA_GREETING_FRAME_SIZE];
    Cable *cable = &b->cable[port];

    if (cable->plugged) {
        return;
    }
    cable->plugged = true;
    cable->greeted = false;
    cable->cut = false;
    cable->error = 0;
    cable->at = cable->len = cable->out_len = 0;
    hca_frame_write_greeting(frame, HCA_LINK_LAYER_IB, &greeting);
    bench_put(b, port, frame, sizeof(frame));
    hca_switch_cable(b->sw, port, true);
}

void bench_unplug(Bench *b, unsigned port)
{
    Cable *cable = &b->cable[port];

    cable->cut = false;
    if (cable->plugged) {
        cable->plugged = false;
        hca_switch_cable(b->sw, port, false);
    }
}

size_t bench_pack(HcaPacket *packet, const uint8_t *payload, uint8_t *out)
{
    size_t len = hca_ib_build(packet, out);

    memcpy(out + len, payload, packet->payload_len);
    return hca_ib_seal(packet, out, len + packet->payload_len);
}

/* Life */

static void manage_port(HcaNodePort *port)
{
    HcaPortInfo *info = &port->info;

    if (info->state != HCA_PORT_DOWN) {
        info->state = HCA_PORT_ACTIVE;
    }
    info->mtu = info->mtu_cap;
    info->operational_vls = info->vl_cap;
    info->hoq_life = 31;
    info->enforce_in = info->enforce_out = 0;
    memset(port->vl_arb, 0, sizeof(port->vl_arb));
    memset(port->sl_to_vl, 0, sizeof(kept.sl_to_vl[0]));
}

void bench_manage(Bench *b)
{
    HcaNode *node = b->node;

    node->port[0].info.lid = BENCH_SWITCH_LID;
    node->port[0].info.sm_lid = 1;
    node->switch_info.lft_top = BENCH_PORTS;
    node->switch_info.life_time = 31;
    node->mft[0] = ~UINT64_C(0);
    for (unsigned i = 1; i <= BENCH_PORTS; i++) {
        node->lft[i] = i;
        manage_port(&node->port[i]);
    }
    keep(b);
}

static void configure(Bench *b, HcaSwitchConfig *config)
{
    static const unsigned vls[] = { 8, 15, 1, 2, 4 };

    hca_switch_config_init(config);
    config->num_ports = BENCH_PORTS;
    config->queue_size = HCA_SWITCH_MIN_QUEUE;
    config->mtu = 4096 >> take_below(&b->in, 5);
    config->vls = vls[take_below(&b->in, G_N_ELEMENTS(vls))];
}

/* Never 0, and of no input: who writes it does not have its hash. */
static uint64_t hash_of(const uint8_t *data, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
    }
    return hash | 1;
}

static void reset_cable(Cable *cable)
{
    cable->plugged = cable->cut = false;
    cable->room = SIZE_MAX;
    cable->pieces = 0;
    cable->error = 0;
    cable->packet_len = 0;
}

void bench_begin(Bench *b, const uint8_t *data, size_t size)
{
    HcaSwitchConfig config;

    b->in = (Input) { data, size };
    b->now = NS_PER_S;
    b->spoiled = b->protected = false;
    b->key = hash_of(data, size);
    configure(b, &config);
    meter.live_before = __sanitizer_get_current_allocated_bytes();
    b->sw = hca_switch_new(&config, &ops, b);
    b->node = hca_switch_node(b->sw);
    for (unsigned i = 1; i <= BENCH_PORTS; i++) {
        reset_cable(&b->cable[i]);
        bench_plug(b, i);
    }
    bench_rest(b);
    bench_manage(b);
}

/* The end: all goes, what was disabled may train again, and all comes back. */
static void start_over(Bench *b)
{
    HcaFaultPlan none = { 0 };

    for (unsigned i = 1; i <= BENCH_PORTS; i++) {
        hca_link_set_faults(hca_switch_link(b->sw, i), &none);
        hca_link_stop_capture(hca_switch_link(b->sw, i));
        bench_unplug(b, i);
        reset_cable(&b->cable[i]);
    }
    bench_sleep(b, NS_PER_S);
    b->protected = false; /* from here on it is who has the key */
    b->spoiled = false;
    for (unsigned i = 1; i <= BENCH_PORTS; i++) {
        HcaPortInfo *info = &b->node->port[i].info;

        if (info->phys_state == HCA_PORT_PHYS_DISABLED) {
            info->phys_state = HCA_PORT_PHYS_POLLING;
            b->node->ops->set_link(b->node->opaque, i, true);
        }
        bench_plug(b, i);
        bench_rest(b);
        if (info->state != HCA_PORT_INIT) {
            bench_fail("port %u does not come up", i);
        }
    }
}

/* NodeInfo, by directed route. */
static void check_answers(Bench *b, unsigned port)
{
    HcaPacket packet = {
        .vl = HCA_VL_MGMT,
        .slid = HCA_LID_PERMISSIVE,
        .dlid = HCA_LID_PERMISSIVE,
        .opcode = HCA_BTH_OPCODE(HCA_BTH_UD, HCA_SEND_ONLY),
        .pkey = 0xffff,
        .payload_len = HCA_MAD_SIZE,
    };
    uint8_t mad[HCA_MAD_SIZE] = { 1, HCA_CLASS_SUBN_DIRECTED, 1,
                                  HCA_METHOD_GET };
    uint8_t out[HCA_MAX_HEADER_SIZE + HCA_MAD_SIZE + HCA_MAX_TRAILER_SIZE];
    Cable *cable = &b->cable[port];

    put_be16(mad + HCA_MAD_ATTRIBUTE, HCA_ATTR_NODE_INFO);
    put_be64(mad + HCA_SMP_MKEY, b->node->port[0].info.m_key);
    mad[HCA_SMP_HOP_POINTER] = mad[HCA_SMP_HOP_COUNT] = 1;
    memset(mad + HCA_SMP_DR_SLID, 0xff, 4);
    bench_put_packet(b, port, HCA_VL_MGMT, out, bench_pack(&packet, mad, out));
    cable->packet_len = 0;
    bench_rest(b);
    if (!cable->packet_len ||
        hca_ib_parse(&packet, cable->packet, cable->packet_len) !=
            HCA_PARSE_OK ||
        packet.payload[HCA_MAD_METHOD] != HCA_METHOD_GET_RESP ||
        get_be16(packet.payload + HCA_MAD_STATUS) != HCA_SMP_DIRECTION ||
        packet.payload[HCA_MAD_DATA + 36] != port) {
        bench_fail("port %u does not answer", port);
    }
}

static void check_forwards(Bench *b, unsigned from, unsigned to)
{
    static const uint8_t payload[100] = { 1, 2, 3 };
    HcaPacket packet = {
        .slid = from,
        .dlid = to,
        .opcode = HCA_BTH_OPCODE(HCA_BTH_UD, HCA_SEND_ONLY),
        .pkey = 0xffff,
        .payload_len = sizeof(payload),
    };
    uint8_t out[HCA_MAX_HEADER_SIZE + sizeof(payload) + HCA_MAX_TRAILER_SIZE];
    size_t len = bench_pack(&packet, payload, out);
    Cable *cable = &b->cable[to];

    cable->packet_len = 0;
    bench_put_packet(b, from, 0, out, len);
    bench_rest(b);
    if (cable->packet_len != len || memcmp(cable->packet, out, len)) {
        bench_fail("nothing comes from port %u to port %u", from, to);
    }
}

static void check_reports(Bench *b)
{
    GString *text = g_string_new(NULL);

    for (unsigned i = 0; i <= BENCH_PORTS; i++) {
        hca_switch_report_port(b->sw, i, text);
        hca_switch_report_counters(b->sw, i, text);
    }
    g_string_free(text, TRUE);
}

void bench_end(Bench *b)
{
    start_over(b);
    for (unsigned i = 1; i <= BENCH_PORTS; i++) {
        check_answers(b, i);
    }
    bench_manage(b);
    for (unsigned i = 1; i <= BENCH_PORTS; i++) {
        check_forwards(b, i, i % BENCH_PORTS + 1);
    }
    check_reports(b);
    hca_switch_free(b->sw);
}
