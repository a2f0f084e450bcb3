/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-fabric.h"

#include <errno.h>
#include <string.h>

#include "core/link/framing.h"
#include "core/wire/crc.h"

#define CAPACITY (64 * 1024)

/* Ends of cables */

static void end_init(End *end, Fabric *fabric)
{
    end->fabric = fabric;
    end->in = g_byte_array_new();
    end->capacity = fabric->capacity;
}

static size_t end_room(const End *end)
{
    const End *peer = end->peer;

    return peer->in->len < peer->capacity ? peer->capacity - peer->in->len : 0;
}

static ssize_t end_writev(End *end, const struct iovec *iov)
{
    size_t n;

    if (!end->peer) {
        return -EPIPE;
    }
    n = MIN(end_room(end), iov->iov_len);
    if (!n) {
        return -EAGAIN;
    }
    g_byte_array_append(end->peer->in, iov->iov_base, n);
    end->fabric->moved += n;
    return n;
}

static ssize_t end_readv(End *end, const struct iovec *iov)
{
    size_t n = MIN(end->in->len, iov->iov_len);

    if (!end->peer) {
        return 0;
    }
    if (!n) {
        return -EAGAIN;
    }
    memcpy(iov->iov_base, end->in->data, n);
    g_byte_array_remove_range(end->in, 0, n);
    end->fabric->moved += n;
    return n;
}

/* Switches */

static int64_t box_now(void *opaque)
{
    return ((Box *)opaque)->fabric->now;
}

static ssize_t box_writev(void *opaque, unsigned port, const struct iovec *iov,
                          int iovcnt)
{
    g_assert_cmpint(iovcnt, ==, 1);
    return end_writev(&((Box *)opaque)->end[port], iov);
}

static ssize_t box_readv(void *opaque, unsigned port, const struct iovec *iov,
                         int iovcnt)
{
    g_assert_cmpint(iovcnt, ==, 1);
    return end_readv(&((Box *)opaque)->end[port], iov);
}

static void box_drop(void *opaque, unsigned port)
{
    ((Box *)opaque)->end[port].cut = true;
}

static bool box_capture(void *opaque, unsigned port, const void *data,
                        size_t len)
{
    g_byte_array_append(((Box *)opaque)->capture[port], data, len);
    return true;
}

static void box_say(void *opaque, const char *line)
{
    Box *box = opaque;

    g_string_append_printf(box->log, "%s\n", line);
}

static const HcaSwitchOps box_ops = {
    .now = box_now,
    .writev = box_writev,
    .readv = box_readv,
    .drop = box_drop,
    .capture = box_capture,
    .warn = box_say,
    .say = box_say,
};

Box *fabric_switch_with(Fabric *fabric, const HcaSwitchConfig *config)
{
    Box *box = g_new0(Box, 1);

    g_assert_null(hca_switch_config_check(config));
    box->fabric = fabric;
    box->log = g_string_new(NULL);
    for (unsigned i = 0; i <= HCA_SWITCH_MAX_PORTS; i++) {
        end_init(&box->end[i], fabric);
        box->capture[i] = g_byte_array_new();
    }
    box->sw = hca_switch_new(config, &box_ops, box);
    box->node = hca_switch_node(box->sw);
    g_ptr_array_add(fabric->boxes, box);
    return box;
}

Box *fabric_switch(Fabric *fabric, unsigned ports)
{
    HcaSwitchConfig config;

    hca_switch_config_init(&config);
    config.num_ports = ports;
    config.guid = HCA_SWITCH_DEFAULT_GUID + fabric->boxes->len + 1;
    return fabric_switch_with(fabric, &config);
}

static void box_free(gpointer data)
{
    Box *box = data;

    hca_switch_free(box->sw);
    for (unsigned i = 0; i <= HCA_SWITCH_MAX_PORTS; i++) {
        g_byte_array_unref(box->end[i].in);
        g_byte_array_unref(box->capture[i]);
    }
    g_string_free(box->log, TRUE);
    g_free(box);
}

bool box_run(Box *box)
{
    for (unsigned i = 1; i <= box->node->num_ports; i++) {
        if (box->end[i].peer && box->end[i].in->len &&
            hca_switch_wants_read(box->sw, i)) {
            hca_switch_readable(box->sw, i);
        }
        if (box->end[i].peer && end_room(&box->end[i]) &&
            hca_switch_wants_write(box->sw, i)) {
            hca_switch_writable(box->sw, i);
        }
    }
    return hca_switch_run(box->sw);
}

static void box_cut(Box *box)
{
    for (unsigned i = 1; i <= box->node->num_ports; i++) {
        if (box->end[i].cut) {
            fabric_pull(&box->end[i]);
        }
    }
}

/* Stations */

static int64_t station_now(void *opaque)
{
    return ((Station *)opaque)->fabric->now;
}

static ssize_t station_writev(void *opaque, const struct iovec *iov, int iovcnt)
{
    return end_writev(&((Station *)opaque)->end, iov);
}

static ssize_t station_readv(void *opaque, const struct iovec *iov, int iovcnt)
{
    return end_readv(&((Station *)opaque)->end, iov);
}

static void station_warn(void *opaque, const char *message)
{
    g_test_message("station: %s", message);
}

static const HcaHostOps station_ops = {
    .clock_ns = station_now,
    .link_writev = station_writev,
    .link_readv = station_readv,
    .warn = station_warn,
};

Station *fabric_station(Fabric *fabric)
{
    Station *station = g_new0(Station, 1);

    station->fabric = fabric;
    end_init(&station->end, fabric);
    station->link = hca_link_new(HCA_LINK_LAYER_IB, HCA_CABLE_CARD,
                                 &HCA_HOST(&station_ops, station));
    hca_link_set_patience(station->link, 10 * NS_PER_S);
    hca_link_set_managed(station->link, true);
    hca_link_enable(station->link, true);
    station->tid = (uint64_t)(fabric->stations->len + 1) << 32;
    g_ptr_array_add(fabric->stations, station);
    return station;
}

static void packet_unref(gpointer packet)
{
    g_byte_array_unref(packet);
}

static void station_free(gpointer data)
{
    Station *station = data;

    g_queue_clear_full(&station->received, packet_unref);
    hca_link_free(station->link);
    g_byte_array_unref(station->end.in);
    g_free(station);
}

static void station_run(Station *station)
{
    const uint8_t *data;
    bool loopback;
    size_t len;

    if (!station->end.peer) {
        return;
    }
    hca_link_flush(station->link);
    while (!station->deaf &&
           (data = hca_link_receive(station->link, &len, &loopback))) {
        GByteArray *packet = g_byte_array_new();

        g_byte_array_append(packet, data, len);
        g_queue_push_tail(&station->received, packet);
    }
    hca_link_flush(station->link);
}

/* Cables */

static Station *station_of(End *end)
{
    GPtrArray *stations = end->fabric->stations;

    for (unsigned i = 0; i < stations->len; i++) {
        Station *station = g_ptr_array_index(stations, i);

        if (&station->end == end) {
            return station;
        }
    }
    return NULL;
}

static void end_tell(End *end, bool up)
{
    Fabric *fabric = end->fabric;
    Station *station = station_of(end);

    end->cut = false;
    if (station) {
        hca_link_set_up(station->link, up);
    }
    for (unsigned i = 0; i < fabric->boxes->len; i++) {
        Box *box = g_ptr_array_index(fabric->boxes, i);

        if (end > &box->end[0] && end <= &box->end[box->node->num_ports]) {
            hca_switch_cable(box->sw, end - box->end, up);
        }
    }
}

static void join(End *a, End *b)
{
    g_assert_null(a->peer);
    g_assert_null(b->peer);
    a->peer = b;
    b->peer = a;
    g_byte_array_set_size(a->in, 0);
    g_byte_array_set_size(b->in, 0);
    end_tell(a, true);
    end_tell(b, true);
}

void fabric_join(Station *station, Box *box, unsigned port)
{
    join(&box->end[port], &station->end);
    fabric_run(box->fabric);
}

void fabric_join_boxes(Box *a, unsigned port_a, Box *b, unsigned port_b)
{
    join(&a->end[port_a], &b->end[port_b]);
    fabric_run(a->fabric);
}

void fabric_pull(End *end)
{
    End *peer = end->peer;

    if (peer) {
        end->peer = NULL;
        peer->peer = NULL;
        end_tell(end, false);
        end_tell(peer, false);
    }
}

/* The fabric */

Fabric *fabric_new(void)
{
    Fabric *fabric = g_new0(Fabric, 1);

    fabric->now = NS_PER_S;
    fabric->capacity = CAPACITY;
    fabric->boxes = g_ptr_array_new_with_free_func(box_free);
    fabric->stations = g_ptr_array_new_with_free_func(station_free);
    return fabric;
}

void fabric_free(Fabric *fabric)
{
    g_ptr_array_unref(fabric->stations);
    g_ptr_array_unref(fabric->boxes);
    g_free(fabric);
}

/* True: something moved. */
static bool run_once(Fabric *fabric)
{
    uint64_t moved = fabric->moved;
    bool more = false;

    for (unsigned i = 0; i < fabric->boxes->len; i++) {
        more |= box_run(g_ptr_array_index(fabric->boxes, i));
    }
    for (unsigned i = 0; i < fabric->stations->len; i++) {
        station_run(g_ptr_array_index(fabric->stations, i));
    }
    for (unsigned i = 0; i < fabric->boxes->len; i++) {
        box_cut(g_ptr_array_index(fabric->boxes, i));
    }
    return more || fabric->moved != moved;
}

void fabric_run(Fabric *fabric)
{
    unsigned turns = 0;

    while (run_once(fabric)) {
        g_assert_cmpuint(turns++, <, 1000000);
    }
}

static int64_t next_deadline(const Fabric *fabric)
{
    int64_t next = INT64_MAX;

    for (unsigned i = 0; i < fabric->boxes->len; i++) {
        Box *box = g_ptr_array_index(fabric->boxes, i);

        next = MIN(next, hca_switch_deadline(box->sw));
    }
    return next;
}

void fabric_advance(Fabric *fabric, int64_t ns)
{
    int64_t end = fabric->now + ns;
    int64_t next;

    fabric_run(fabric);
    while ((next = next_deadline(fabric)) <= end) {
        fabric->now = MAX(next, fabric->now);
        fabric_run(fabric);
        g_assert_cmpint(next_deadline(fabric), >, fabric->now);
    }
    fabric->now = end;
    fabric_run(fabric);
}

/* Convenience */

void box_set_states(Box *box, HcaPortState state)
{
    for (unsigned i = 1; i <= box->node->num_ports; i++) {
        HcaPortInfo *info = &box->node->port[i].info;

        if (info->state != HCA_PORT_DOWN) {
            info->state = state;
        }
    }
}

Box *fabric_star(Fabric *fabric, unsigned n, Station **stations)
{
    Box *box = fabric_switch(fabric, n);

    box->node->switch_info.lft_top = n;
    box->node->switch_info.life_time = 31;
    for (unsigned i = 0; i < n; i++) {
        stations[i] = fabric_station(fabric);
        fabric_join(stations[i], box, i + 1);
        box->node->lft[i + 1] = i + 1;
        g_assert_cmpuint(box->node->port[i + 1].info.state, ==, HCA_PORT_INIT);
    }
    box_set_states(box, HCA_PORT_ACTIVE);
    return box;
}

uint64_t box_counter(Box *box, unsigned port, HcaPmaCounter counter)
{
    HcaPmaCounters counters;

    box->node->ops->counters(box->node->opaque, port, &counters);
    return counters.value[counter];
}

uint64_t box_reported(Box *box, unsigned port, const char *name)
{
    GString *report = g_string_new(NULL);
    char *begin = g_strdup_printf("\n%u %s ", port, name);
    const char *at;
    uint64_t value;

    g_string_append_c(report, '\n');
    hca_switch_report_counters(box->sw, port, report);
    at = strstr(report->str, begin);
    value = at ? g_ascii_strtoull(at + strlen(begin), NULL, 10) : 0;
    g_free(begin);
    g_string_free(report, TRUE);
    return value;
}

/* Packets */

static HcaPacket packet_of(const Parcel *parcel)
{
    HcaPacket packet = {
        .vl = parcel->vl,
        .sl = parcel->sl,
        .slid = parcel->slid,
        .dlid = parcel->dlid,
        .has_grh = parcel->grh,
        .opcode = HCA_BTH_OPCODE(HCA_BTH_UD, HCA_SEND_ONLY),
        .pkey = parcel->pkey ? parcel->pkey : 0xffff,
        .dest_qp = parcel->dest_qp,
        .src_qp = parcel->src_qp,
        .qkey = parcel->qkey,
        .payload_len = parcel->size,
    };

    memset(packet.sgid.raw, 0x51, sizeof(packet.sgid.raw));
    memset(packet.dgid.raw, 0xd1, sizeof(packet.dgid.raw));
    return packet;
}

static GByteArray *pack(HcaPacket *packet, const void *payload)
{
    GByteArray *out = g_byte_array_new();
    size_t len;

    g_byte_array_set_size(out, HCA_MAX_HEADER_SIZE + packet->payload_len +
                                   HCA_MAX_TRAILER_SIZE);
    len = hca_ib_build(packet, out->data);
    memcpy(out->data + len, payload, packet->payload_len);
    len = hca_ib_seal(packet, out->data, len + packet->payload_len);
    g_byte_array_set_size(out, len);
    return out;
}

GByteArray *parcel_pack(const Parcel *parcel)
{
    HcaPacket packet = packet_of(parcel);
    uint8_t *payload = g_malloc0(parcel->size + sizeof(parcel->mark));
    GByteArray *out;

    for (size_t i = 0; i < parcel->size; i++) {
        payload[i] = i * 7;
    }
    memcpy(payload, &parcel->mark, MIN(sizeof(parcel->mark), parcel->size));
    out = pack(&packet, payload);
    g_free(payload);
    return out;
}

void station_send_bytes(Station *station, const void *packet, size_t len)
{
    unsigned vl = *(const uint8_t *)packet >> 4;

    g_assert_true(hca_link_can_send(station->link, false));
    memcpy(hca_link_open(station->link, false), packet, len);
    hca_link_close(station->link, false, vl, len);
}

void station_send(Station *station, const Parcel *parcel)
{
    GByteArray *packet = parcel_pack(parcel);

    station_send_bytes(station, packet->data, packet->len);
    g_byte_array_unref(packet);
}

void station_inject(Station *station, const void *bytes, size_t len)
{
    hca_link_flush(station->link);
    g_byte_array_append(station->end.peer->in, bytes, len);
    station->fabric->moved += len;
}

void packet_seal(GByteArray *packet, bool icrc)
{
    HcaPacket headers = { .has_grh = (packet->data[1] & 3) == 3 };
    size_t len = packet->len - HCA_ICRC_SIZE - HCA_VCRC_SIZE;
    uint8_t kept[HCA_ICRC_SIZE];

    memcpy(kept, packet->data + len, sizeof(kept));
    hca_ib_seal(&headers, packet->data, len);
    if (!icrc) {
        uint8_t *lrh = packet->data;
        uint16_t vcrc;

        memcpy(lrh + len, kept, sizeof(kept));
        len += sizeof(kept);
        vcrc = hca_vcrc_update(HCA_VCRC_INIT, lrh, len);
        lrh[len] = vcrc;
        lrh[len + 1] = vcrc >> 8;
    }
}

GByteArray *station_take(Station *station)
{
    return g_queue_pop_head(&station->received);
}

void station_expect_vl(Station *station, const Parcel *parcel, unsigned vl)
{
    GByteArray *got = station_take(station);
    Parcel changed = *parcel;
    GByteArray *want;

    changed.vl = vl;
    want = parcel_pack(&changed);
    g_assert_nonnull(got);
    g_assert_cmpmem(got->data, got->len, want->data, want->len);
    g_byte_array_unref(got);
    g_byte_array_unref(want);
}

void station_expect(Station *station, const Parcel *parcel)
{
    station_expect_vl(station, parcel, parcel->vl);
}

void station_expect_nothing(Station *station)
{
    g_assert_cmpuint(station->received.length, ==, 0);
}

unsigned station_count(Station *station)
{
    unsigned n = station->received.length;

    g_queue_clear_full(&station->received, packet_unref);
    return n;
}

/* MADs */

void smp_init(Mad *mad, Station *station, uint8_t method, uint16_t attribute,
              uint32_t modifier, const uint8_t *path, unsigned hops)
{
    uint8_t *p = mad->bytes;

    memset(mad, 0, sizeof(*mad));
    p[HCA_MAD_BASE_VERSION] = HCA_MAD_VERSION;
    p[HCA_MAD_CLASS] = path ? HCA_CLASS_SUBN_DIRECTED : HCA_CLASS_SUBN_LID;
    p[HCA_MAD_CLASS_VERSION] = 1;
    p[HCA_MAD_METHOD] = method;
    put_be64(p + HCA_MAD_TID, ++station->tid);
    put_be16(p + HCA_MAD_ATTRIBUTE, attribute);
    put_be32(p + HCA_MAD_MODIFIER, modifier);
    if (path) {
        p[HCA_SMP_HOP_POINTER] = 1;
        p[HCA_SMP_HOP_COUNT] = hops + 1;
        put_be16(p + HCA_SMP_DR_SLID, HCA_LID_PERMISSIVE);
        put_be16(p + HCA_SMP_DR_DLID, HCA_LID_PERMISSIVE);
        p[HCA_SMP_INITIAL_PATH + 1] = 1;
        memcpy(p + HCA_SMP_INITIAL_PATH + 2, path, hops);
    }
}

static void send_mad(Station *station, const Mad *mad, HcaPacket packet)
{
    GByteArray *out;

    packet.opcode = HCA_BTH_OPCODE(HCA_BTH_UD, HCA_SEND_ONLY);
    packet.pkey = 0xffff;
    packet.payload_len = HCA_MAD_SIZE;
    out = pack(&packet, mad->bytes);
    station_send_bytes(station, out->data, out->len);
    g_byte_array_unref(out);
}

void station_send_smp(Station *station, const Mad *mad, uint16_t slid,
                      uint16_t dlid)
{
    send_mad(station, mad,
             (HcaPacket) { .vl = HCA_VL_MGMT, .slid = slid, .dlid = dlid });
}

void station_send_gmp(Station *station, const Mad *mad, uint16_t slid,
                      uint16_t dlid)
{
    send_mad(station, mad,
             (HcaPacket) {
                 .slid = slid,
                 .dlid = dlid,
                 .dest_qp = 1,
                 .src_qp = 1,
                 .qkey = HCA_QKEY_GSI,
             });
}

bool station_take_mad(Station *station, Mad *mad)
{
    GByteArray *got = station_take(station);

    if (!got) {
        return false;
    }
    g_assert_cmpint(hca_ib_parse(&mad->packet, got->data, got->len), ==,
                    HCA_PARSE_OK);
    g_assert_cmpuint(mad->packet.payload_len, ==, HCA_MAD_SIZE);
    memcpy(mad->bytes, mad->packet.payload, HCA_MAD_SIZE);
    mad->packet.payload = NULL;
    g_byte_array_unref(got);
    return true;
}

static uint16_t smp(Station *station, Mad *mad, uint8_t *data)
{
    Mad answer;

    station_send_smp(station, mad, HCA_LID_PERMISSIVE, HCA_LID_PERMISSIVE);
    fabric_run(station->fabric);
    g_assert_true(station_take_mad(station, &answer));
    g_assert_cmpuint(answer.packet.vl, ==, HCA_VL_MGMT);
    g_assert_cmpuint(answer.packet.dlid, ==, HCA_LID_PERMISSIVE);
    g_assert_cmphex(answer.bytes[HCA_MAD_METHOD], ==, HCA_METHOD_GET_RESP);
    g_assert_cmpuint(answer.bytes[HCA_SMP_HOP_POINTER], ==, 1);
    g_assert_cmpmem(answer.bytes + HCA_MAD_TID, 8, mad->bytes + HCA_MAD_TID, 8);
    g_assert_cmphex(answer.bytes[HCA_MAD_STATUS] & 0x80, ==, 0x80);
    if (data) {
        memcpy(data, answer.bytes + HCA_MAD_DATA, HCA_SMP_DATA_SIZE);
    }
    return get_be16(answer.bytes + HCA_MAD_STATUS) & 0x7fff;
}

uint16_t smp_get(Station *station, const uint8_t *path, unsigned hops,
                 uint16_t attribute, uint32_t modifier, uint8_t *data)
{
    Mad mad;

    smp_init(&mad, station, HCA_METHOD_GET, attribute, modifier,
             path ? path : (const uint8_t *)"", hops);
    return smp(station, &mad, data);
}

uint16_t smp_set(Station *station, const uint8_t *path, unsigned hops,
                 uint16_t attribute, uint32_t modifier, uint8_t *data)
{
    Mad mad;

    smp_init(&mad, station, HCA_METHOD_SET, attribute, modifier,
             path ? path : (const uint8_t *)"", hops);
    memcpy(mad.bytes + HCA_MAD_DATA, data, HCA_SMP_DATA_SIZE);
    return smp(station, &mad, data);
}
