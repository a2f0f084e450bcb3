/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * SMPs and GMPs: by directed route through switches, by LIDs, by both, to port 0
 * as a hop; and what the switch does not answer.
 */
#include "core/tests/lib-test.h"
#include "lib-fabric.h"

#include <string.h>

#define PATH(...)                                                              \
    ((const uint8_t[]) { __VA_ARGS__ }), sizeof((uint8_t[]) { __VA_ARGS__ })
#define SELF NULL, 0
/* NodeInfo */
#define NODE_TYPE 2
#define NODE_GUID 12
#define LOCAL_PORT 36

/*
 * A row: station a at port 3 of the first switch, b at port 5 of the last; each
 * switch is joined by its port 7 to port 2 of the next.
 */
typedef struct Row {
    Fabric *fabric;
    Station *a, *b;
    Box *box[3];
    unsigned n;
} Row;

static Row row_new(unsigned n)
{
    Row row = { .fabric = fabric_new(), .n = n };

    row.a = fabric_station(row.fabric);
    row.b = fabric_station(row.fabric);
    for (unsigned i = 0; i < n; i++) {
        row.box[i] = fabric_switch(row.fabric, 8);
    }
    fabric_join(row.a, row.box[0], 3);
    for (unsigned i = 0; i + 1 < n; i++) {
        fabric_join_boxes(row.box[i], 7, row.box[i + 1], 2);
    }
    fabric_join(row.b, row.box[n - 1], 5);
    return row;
}

/* LIDs: a 1, b 2, switches from 11 on; ways to all of them. */
static Row row_with_lids(unsigned n)
{
    Row row = row_new(n);

    for (unsigned i = 0; i < n; i++) {
        HcaNode *node = row.box[i]->node;

        node->port[0].info.lid = 11 + i;
        node->switch_info.lft_top = 20;
        node->lft[1] = i ? 2 : 3;
        node->lft[2] = i + 1 < n ? 7 : 5;
        for (unsigned j = 0; j < n; j++) {
            node->lft[11 + j] = j == i ? 0 : j < i ? 2 : 7;
        }
    }
    return row;
}

static void expect_node(const uint8_t *info, const Box *box, unsigned in)
{
    g_assert_cmpuint(info[NODE_TYPE], ==, HCA_NODE_SWITCH);
    g_assert_cmphex(get_be64(info + NODE_GUID), ==, box->node->node_guid);
    g_assert_cmpuint(info[LOCAL_PORT], ==, in);
}

/* Directed routes */

static void directed(void)
{
    Row row = row_new(3);
    uint8_t info[HCA_SMP_DATA_SIZE];

    g_assert_cmphex(smp_get(row.a, SELF, HCA_ATTR_NODE_INFO, 0, info), ==, 0);
    expect_node(info, row.box[0], 3);
    smp_get(row.a, PATH(7), HCA_ATTR_NODE_INFO, 0, info);
    expect_node(info, row.box[1], 2);
    smp_get(row.a, PATH(7, 7), HCA_ATTR_NODE_INFO, 0, info);
    expect_node(info, row.box[2], 2);
    smp_get(row.b, SELF, HCA_ATTR_NODE_INFO, 0, info);
    expect_node(info, row.box[2], 5);
    smp_get(row.b, PATH(2, 2), HCA_ATTR_NODE_INFO, 0, info);
    expect_node(info, row.box[0], 7);
    /* There and back. */
    smp_get(row.a, PATH(7, 7, 2, 2), HCA_ATTR_NODE_INFO, 0, info);
    expect_node(info, row.box[0], 7);
    /* Out of the port that it came in by: to the station, and back again. */
    fabric_free(row.fabric);
}

/* To a station at the end of the row, which answers; the return path is full. */
static void to_station(void)
{
    Row row = row_new(3);
    Mad mad, answer;

    smp_init(&mad, row.a, HCA_METHOD_GET, HCA_ATTR_NODE_INFO, 0, PATH(7, 7, 5));
    station_send_smp(row.a, &mad, HCA_LID_PERMISSIVE, HCA_LID_PERMISSIVE);
    fabric_run(row.fabric);
    g_assert_true(station_take_mad(row.b, &mad));
    g_assert_cmpuint(mad.bytes[HCA_SMP_HOP_POINTER], ==, 4);
    g_assert_cmpmem(mad.bytes + HCA_SMP_RETURN_PATH + 1, 3,
                    ((uint8_t[]) { 3, 2, 2 }), 3);
    g_assert_cmpuint(mad.packet.vl, ==, HCA_VL_MGMT);
    g_assert_cmpuint(mad.packet.slid, ==, HCA_LID_PERMISSIVE);
    g_assert_cmphex(mad.packet.pkey, ==, 0xffff);
    /* The station's part: its own port, D, and the first step back. */
    mad.bytes[HCA_SMP_RETURN_PATH + 4] = 1;
    mad.bytes[HCA_MAD_METHOD] = HCA_METHOD_GET_RESP;
    mad.bytes[HCA_MAD_STATUS] = 0x80;
    station_send_smp(row.b, &mad, HCA_LID_PERMISSIVE, HCA_LID_PERMISSIVE);
    fabric_run(row.fabric);
    g_assert_true(station_take_mad(row.a, &answer));
    g_assert_cmpuint(answer.bytes[HCA_SMP_HOP_POINTER], ==, 1);
    g_assert_cmpmem(answer.bytes + 8, 248, mad.bytes + 8, 248);
    fabric_free(row.fabric);
}

/* 63 hops, to and fro; and the 64th. */
static void longest(void)
{
    Row row = row_new(2);
    uint8_t path[HCA_SMP_MAX_HOPS];
    uint8_t info[HCA_SMP_DATA_SIZE];
    Mad mad;

    for (unsigned i = 0; i < sizeof(path); i++) {
        path[i] = i % 2 ? 2 : 7;
    }
    smp_get(row.a, path, HCA_SMP_MAX_HOPS - 1, HCA_ATTR_NODE_INFO, 0, info);
    expect_node(info, row.box[0], 7);
    smp_init(&mad, row.a, HCA_METHOD_GET, HCA_ATTR_NODE_INFO, 0, path,
             HCA_SMP_MAX_HOPS - 1);
    mad.bytes[HCA_SMP_HOP_COUNT] = HCA_SMP_MAX_HOPS + 1;
    station_send_smp(row.a, &mad, HCA_LID_PERMISSIVE, HCA_LID_PERMISSIVE);
    fabric_run(row.fabric);
    station_expect_nothing(row.a);
    fabric_free(row.fabric);
}

/* Routes that lead nowhere: no answer, and nothing else breaks. */
static void dead_ends(void)
{
    Row row = row_new(2);
    uint8_t info[HCA_SMP_DATA_SIZE];
    const uint8_t ports[] = { 1, 8, 9, 48, 255 };
    Mad mad;

    for (unsigned i = 0; i < G_N_ELEMENTS(ports); i++) {
        smp_init(&mad, row.a, HCA_METHOD_GET, HCA_ATTR_NODE_INFO, 0,
                 PATH(7, ports[i]));
        station_send_smp(row.a, &mad, HCA_LID_PERMISSIVE, HCA_LID_PERMISSIVE);
    }
    /* From a cable a route cannot begin. */
    smp_init(&mad, row.a, HCA_METHOD_GET, HCA_ATTR_NODE_INFO, 0, PATH(7));
    mad.bytes[HCA_SMP_HOP_POINTER] = 0;
    station_send_smp(row.a, &mad, HCA_LID_PERMISSIVE, HCA_LID_PERMISSIVE);
    fabric_run(row.fabric);
    station_expect_nothing(row.a);
    station_expect_nothing(row.b);
    smp_get(row.a, PATH(7), HCA_ATTR_NODE_INFO, 0, info);
    expect_node(info, row.box[1], 2);
    fabric_free(row.fabric);
}

/* A hop to port 0 ends at the switch, which the SMP enters by port 0. */
static void port_0_hop(void)
{
    Row row = row_new(2);
    uint8_t info[HCA_SMP_DATA_SIZE];

    smp_get(row.a, PATH(0), HCA_ATTR_NODE_INFO, 0, info);
    expect_node(info, row.box[0], 0);
    smp_get(row.a, PATH(0, 0, 0), HCA_ATTR_NODE_INFO, 0, info);
    expect_node(info, row.box[0], 0);
    smp_get(row.a, PATH(7, 0), HCA_ATTR_NODE_INFO, 0, info);
    expect_node(info, row.box[1], 0);
    smp_get(row.a, PATH(0, 7, 0, 0), HCA_ATTR_NODE_INFO, 0, info);
    expect_node(info, row.box[1], 0);
    smp_get(row.a, PATH(0, 7), HCA_ATTR_NODE_INFO, 0, info);
    expect_node(info, row.box[1], 2);
    fabric_free(row.fabric);
}

/* Two SMPs leave by the port that they came in by: a route may turn round. */
static void turn_round(void)
{
    Row row = row_new(2);
    uint8_t info[HCA_SMP_DATA_SIZE];

    smp_get(row.a, PATH(7, 2), HCA_ATTR_NODE_INFO, 0, info);
    expect_node(info, row.box[0], 7);
    smp_get(row.a, PATH(7, 2, 7), HCA_ATTR_NODE_INFO, 0, info);
    expect_node(info, row.box[1], 2);
    fabric_free(row.fabric);
}

/* With the switch's own LID as DLID, too. */
static void directed_to_lid(void)
{
    Row row = row_with_lids(1);
    Mad mad;

    smp_init(&mad, row.a, HCA_METHOD_GET, HCA_ATTR_NODE_INFO, 0, PATH());
    station_send_smp(row.a, &mad, 1, 11);
    fabric_run(row.fabric);
    g_assert_true(station_take_mad(row.a, &mad));
    expect_node(mad.bytes + HCA_MAD_DATA, row.box[0], 3);
    fabric_free(row.fabric);
}

/* By LIDs */

static void by_lid(void)
{
    Row row = row_with_lids(3);

    for (unsigned i = 0; i < 3; i++) {
        Mad mad, answer;

        smp_init(&mad, row.a, HCA_METHOD_GET, HCA_ATTR_NODE_INFO, 0, NULL, 0);
        station_send_smp(row.a, &mad, 1, 11 + i);
        fabric_run(row.fabric);
        g_assert_true(station_take_mad(row.a, &answer));
        g_assert_cmpuint(answer.packet.slid, ==, 11 + i);
        g_assert_cmpuint(answer.packet.dlid, ==, 1);
        g_assert_cmpuint(answer.packet.vl, ==, HCA_VL_MGMT);
        g_assert_cmphex(answer.bytes[HCA_MAD_METHOD], ==, HCA_METHOD_GET_RESP);
        g_assert_cmphex(get_be16(answer.bytes + HCA_MAD_STATUS), ==, 0);
        g_assert_cmpmem(answer.bytes + HCA_MAD_TID, 12, mad.bytes + HCA_MAD_TID,
                        12);
        expect_node(answer.bytes + HCA_MAD_DATA, row.box[i], i ? 2 : 3);
    }
    /* Through all of them to the other station. */
    {
        Mad mad, got;

        smp_init(&mad, row.a, HCA_METHOD_TRAP, HCA_ATTR_NOTICE, 0, NULL, 0);
        station_send_smp(row.a, &mad, 1, 2);
        fabric_run(row.fabric);
        g_assert_true(station_take_mad(row.b, &got));
        g_assert_cmpmem(got.bytes, HCA_MAD_SIZE, mad.bytes, HCA_MAD_SIZE);
    }
    fabric_free(row.fabric);
}

/* An answer that has no way, or to nobody. */
static void no_way_back(void)
{
    Row row = row_with_lids(1);
    const uint16_t slids[] = { 0, 11, 19, 21, 0xbfff, 0xc000, 0xffff };
    Mad mad;

    for (unsigned i = 0; i < G_N_ELEMENTS(slids); i++) {
        smp_init(&mad, row.a, HCA_METHOD_GET, HCA_ATTR_NODE_INFO, 0, NULL, 0);
        station_send_smp(row.a, &mad, slids[i], 11);
        fabric_run(row.fabric);
        station_expect_nothing(row.a);
    }
    g_assert_cmpuint(box_reported(row.box[0], 0, "drop.no-route"), ==,
                     G_N_ELEMENTS(slids));
    fabric_free(row.fabric);
}

/* Combined routes: smpquery -c, and their mirror image */

/* By LIDs to @lid, then by @path; DrSLID is who asks. */
static void init_combined(Mad *mad, Station *station, const uint8_t *path,
                          unsigned hops)
{
    smp_init(mad, station, HCA_METHOD_GET, HCA_ATTR_NODE_INFO, 0, path, hops);
    mad->bytes[HCA_SMP_HOP_POINTER] = 0;
    mad->bytes[HCA_SMP_HOP_COUNT] = hops;
    put_be16(mad->bytes + HCA_SMP_DR_SLID, 1);
    memset(mad->bytes + HCA_SMP_INITIAL_PATH, 0, 64);
    memcpy(mad->bytes + HCA_SMP_INITIAL_PATH + 1, path, hops);
}

static void expect_combined(Row *row, const Mad *mad, unsigned to,
                            const Box *at, unsigned in)
{
    Mad answer;

    station_send_smp(row->a, mad, 1, to);
    fabric_run(row->fabric);
    g_assert_true(station_take_mad(row->a, &answer));
    g_assert_cmphex(get_be16(answer.bytes + HCA_MAD_STATUS), ==, 0x8000);
    g_assert_cmpuint(answer.packet.dlid, ==, 1);
    g_assert_cmpuint(answer.bytes[HCA_SMP_HOP_POINTER], ==, 0);
    expect_node(answer.bytes + HCA_MAD_DATA, at, in);
    station_expect_nothing(row->a);
}

static void combined(void)
{
    Row row = row_with_lids(3);
    Mad mad;

    init_combined(&mad, row.a, PATH(7));
    expect_combined(&row, &mad, 11, row.box[1], 2);
    expect_combined(&row, &mad, 12, row.box[2], 2);
    init_combined(&mad, row.a, PATH(7, 2, 2));
    expect_combined(&row, &mad, 12, row.box[0], 7);
    init_combined(&mad, row.a, PATH(0));
    expect_combined(&row, &mad, 12, row.box[1], 0);
    init_combined(&mad, row.a, PATH());
    expect_combined(&row, &mad, 13, row.box[2], 2);
    fabric_free(row.fabric);
}

/* By directed route to a switch, from there by LIDs to another one. */
static void lids_behind(void)
{
    Row row = row_with_lids(3);

    for (unsigned to = 11; to <= 13; to++) {
        Mad mad, answer;

        smp_init(&mad, row.a, HCA_METHOD_GET, HCA_ATTR_NODE_INFO, 0, PATH(7));
        put_be16(mad.bytes + HCA_SMP_DR_DLID, to);
        station_send_smp(row.a, &mad, HCA_LID_PERMISSIVE, HCA_LID_PERMISSIVE);
        fabric_run(row.fabric);
        g_assert_true(station_take_mad(row.a, &answer));
        g_assert_cmphex(get_be16(answer.bytes + HCA_MAD_STATUS), ==, 0x8000);
        g_assert_cmpuint(answer.bytes[HCA_SMP_HOP_POINTER], ==, 1);
        /* The first is entered by 7, the second by itself, the third by 2. */
        expect_node(answer.bytes + HCA_MAD_DATA, row.box[to - 11],
                    to == 11   ? 7
                    : to == 12 ? 0
                               : 2);
        station_expect_nothing(row.a);
    }
    fabric_free(row.fabric);
}

/* The same to a station, which answers the switch at the end of the route. */
static void lids_behind_to_station(void)
{
    Row row = row_with_lids(3);
    Mad mad, answer;

    smp_init(&mad, row.a, HCA_METHOD_GET, HCA_ATTR_NODE_INFO, 0, PATH(7));
    put_be16(mad.bytes + HCA_SMP_DR_DLID, 2);
    station_send_smp(row.a, &mad, HCA_LID_PERMISSIVE, HCA_LID_PERMISSIVE);
    fabric_run(row.fabric);
    g_assert_true(station_take_mad(row.b, &mad));
    g_assert_cmpuint(mad.packet.slid, ==, 12);
    g_assert_cmpuint(mad.packet.dlid, ==, 2);
    g_assert_cmpuint(mad.bytes[HCA_SMP_HOP_POINTER], ==, 3);
    mad.bytes[HCA_MAD_METHOD] = HCA_METHOD_GET_RESP;
    mad.bytes[HCA_MAD_STATUS] = 0x80;
    station_send_smp(row.b, &mad, 2, 12);
    fabric_run(row.fabric);
    g_assert_true(station_take_mad(row.a, &answer));
    g_assert_cmpuint(answer.bytes[HCA_SMP_HOP_POINTER], ==, 1);
    g_assert_cmpuint(answer.packet.dlid, ==, HCA_LID_PERMISSIVE);
    fabric_free(row.fabric);
}

/* What is not answered */

static void expect_silence(Row *row, const Mad *mad, HcaPacket packet,
                           const char *drop)
{
    uint64_t before = box_reported(row->box[0], 3, drop);
    Parcel parcel = {
        .vl = packet.vl,
        .slid = packet.slid,
        .dlid = packet.dlid,
        .pkey = packet.pkey,
        .dest_qp = packet.dest_qp,
        .src_qp = packet.src_qp,
        .qkey = packet.qkey,
        .size = HCA_MAD_SIZE,
    };
    GByteArray *bytes = parcel_pack(&parcel);

    memcpy(bytes->data + HCA_LRH_SIZE + HCA_BTH_SIZE + 8, mad->bytes,
           HCA_MAD_SIZE);
    packet_seal(bytes, true);
    station_send_bytes(row->a, bytes->data, bytes->len);
    fabric_run(row->fabric);
    station_expect_nothing(row->a);
    g_assert_cmpuint(box_reported(row->box[0], 3, drop), ==, before + 1);
    g_byte_array_unref(bytes);
}

static void wrong_packets(void)
{
    Row row = row_with_lids(1);
    HcaPacket smp = { .vl = HCA_VL_MGMT, .slid = 1, .dlid = 11 };
    HcaPacket gmp = {
        .slid = 1,
        .dlid = 11,
        .dest_qp = 1,
        .src_qp = 1,
        .qkey = HCA_QKEY_GSI,
    };
    HcaPacket p;
    Mad mad, pma;

    box_set_states(row.box[0], HCA_PORT_ACTIVE);
    smp_init(&mad, row.a, HCA_METHOD_GET, HCA_ATTR_NODE_INFO, 0, NULL, 0);
    pma = mad;
    pma.bytes[HCA_MAD_CLASS] = HCA_CLASS_PERF;
    p = smp;
    p.dlid = HCA_LID_PERMISSIVE; /* by LIDs, to no LID */
    expect_silence(&row, &mad, p, "drop.agent");
    p = smp;
    p.vl = 0;
    expect_silence(&row, &mad, p, "drop.agent");
    p = smp;
    p.src_qp = 1;
    expect_silence(&row, &mad, p, "drop.agent");
    expect_silence(&row, &pma, smp, "drop.agent");
    p = smp;
    p.dest_qp = 2;
    expect_silence(&row, &mad, p, "drop.agent");
    p = gmp;
    p.vl = HCA_VL_MGMT;
    expect_silence(&row, &pma, p, "drop.agent");
    expect_silence(&row, &mad, gmp, "drop.agent");
    p = gmp;
    p.qkey = 0x80010001;
    expect_silence(&row, &pma, p, "drop.agent");
    g_assert_cmpuint(row.box[0]->node->port[0].info.q_key_violations, ==, 1);
    p = gmp;
    p.pkey = 0x8123;
    expect_silence(&row, &pma, p, "drop.agent");
    g_assert_cmpuint(row.box[0]->node->port[0].info.p_key_violations, ==, 1);
    fabric_free(row.fabric);
}

static void wrong_icrc(void)
{
    Row row = row_with_lids(1);
    Parcel parcel = {
        .vl = HCA_VL_MGMT, .slid = 1, .dlid = 11, .size = HCA_MAD_SIZE
    };
    GByteArray *bytes = parcel_pack(&parcel);

    bytes->data[100] ^= 1;
    packet_seal(bytes, false);
    station_send_bytes(row.a, bytes->data, bytes->len);
    fabric_run(row.fabric);
    g_assert_cmpuint(box_reported(row.box[0], 3, "drop.corrupt"), ==, 1);
    g_assert_cmpuint(box_counter(row.box[0], 3, HCA_PMA_RCV_ERRORS), ==, 1);
    g_byte_array_unref(bytes);
    fabric_free(row.fabric);
}

/* A response or a trap to the switch is nobody's there. */
static void for_nobody(void)
{
    Row row = row_with_lids(1);
    const uint8_t methods[] = { 0x81, 0x05, 0x07, 0x06, 0x86, 0x03 };
    Mad mad;

    for (unsigned i = 0; i < G_N_ELEMENTS(methods); i++) {
        Mad answer;

        smp_init(&mad, row.a, methods[i], HCA_ATTR_NODE_INFO, 0, NULL, 0);
        station_send_smp(row.a, &mad, 1, 11);
        fabric_run(row.fabric);
        while (station_take_mad(row.a, &answer)) {
            /* Refused, at most. */
            g_assert_cmphex(get_be16(answer.bytes + HCA_MAD_STATUS), ==,
                            HCA_MAD_BAD_METHOD);
            g_assert_cmphex(methods[i], !=, HCA_METHOD_GET_RESP);
            g_assert_cmphex(methods[i], !=, HCA_METHOD_TRAP);
        }
    }
    fabric_free(row.fabric);
}

/* GMPs */

static void gmp(void)
{
    Row row = row_with_lids(2);
    Mad mad, answer;

    box_set_states(row.box[0], HCA_PORT_ACTIVE);
    box_set_states(row.box[1], HCA_PORT_ACTIVE);
    for (unsigned i = 0; i < 2; i++) {
        smp_init(&mad, row.a, HCA_METHOD_GET, HCA_ATTR_CLASS_PORT_INFO, 0, NULL,
                 0);
        mad.bytes[HCA_MAD_CLASS] = HCA_CLASS_PERF;
        station_send_gmp(row.a, &mad, 1, 11 + i);
        fabric_run(row.fabric);
        g_assert_true(station_take_mad(row.a, &answer));
        g_assert_cmpuint(answer.packet.vl, ==, 0);
        g_assert_cmpuint(answer.packet.slid, ==, 11 + i);
        g_assert_cmpuint(answer.packet.dlid, ==, 1);
        g_assert_cmpuint(answer.packet.dest_qp, ==, 1);
        g_assert_cmpuint(answer.packet.src_qp, ==, 1);
        g_assert_cmphex(answer.packet.qkey, ==, HCA_QKEY_GSI);
        g_assert_cmphex(answer.packet.pkey, ==, 0xffff);
        g_assert_false(answer.packet.has_grh);
        g_assert_cmphex(get_be16(answer.bytes + HCA_MAD_STATUS), ==, 0);
        g_assert_cmphex(answer.bytes[HCA_MAD_METHOD], ==, HCA_METHOD_GET_RESP);
    }
    /* Not before the port is Active. */
    box_set_states(row.box[0], HCA_PORT_INIT);
    station_send_gmp(row.a, &mad, 1, 11);
    fabric_run(row.fabric);
    station_expect_nothing(row.a);
    fabric_free(row.fabric);
}

/* The key by which it came, its SL, its GRH, its QP. */
static void gmp_answers_in_kind(void)
{
    Row row = row_with_lids(1);
    HcaNodePort *port = &row.box[0]->node->port[0];
    Parcel parcel = {
        .slid = 1,
        .dlid = 11,
        .sl = 5,
        .pkey = 0x0123, /* limited */
        .dest_qp = 1,
        .src_qp = 0x77,
        .qkey = HCA_QKEY_GSI,
        .size = HCA_MAD_SIZE,
        .grh = true,
    };
    GByteArray *bytes = parcel_pack(&parcel);
    Mad mad, answer;

    port->pkeys[7] = 0x8123;
    box_set_states(row.box[0], HCA_PORT_ACTIVE);
    smp_init(&mad, row.a, HCA_METHOD_GET, HCA_ATTR_CLASS_PORT_INFO, 0, NULL, 0);
    mad.bytes[HCA_MAD_CLASS] = HCA_CLASS_PERF;
    memcpy(bytes->data + HCA_LRH_SIZE + HCA_GRH_SIZE + HCA_BTH_SIZE + 8,
           mad.bytes, HCA_MAD_SIZE);
    packet_seal(bytes, true);
    station_send_bytes(row.a, bytes->data, bytes->len);
    fabric_run(row.fabric);
    g_assert_true(station_take_mad(row.a, &answer));
    g_assert_cmphex(answer.packet.pkey, ==, 0x8123);
    g_assert_cmpuint(answer.packet.sl, ==, 5);
    g_assert_cmpuint(answer.packet.dest_qp, ==, 0x77);
    g_assert_true(answer.packet.has_grh);
    g_assert_cmphex(answer.packet.dgid.raw[0], ==, 0x51);
    g_assert_cmphex(answer.packet.sgid.raw[0], ==, 0xd1);
    g_byte_array_unref(bytes);
    fabric_free(row.fabric);
}

/* Management goes on while a cable takes no more data. */
static void passes_blocked_cable(void)
{
    Fabric *fabric = fabric_new();
    Station *s[2];
    Box *box = fabric_star(fabric, 2, s);
    Parcel p = { .slid = 1, .dlid = 2, .size = 4096 };
    unsigned answers = 0;
    Mad mad;

    box->node->port[2].info.hoq_life = 31;
    s[1]->deaf = true;
    for (unsigned i = 0; i < 30; i++) {
        station_send(s[0], &p);
        fabric_run(fabric);
    }
    for (unsigned i = 0; i < 50; i++) {
        smp_init(&mad, s[1], HCA_METHOD_GET, HCA_ATTR_NODE_INFO, 0, PATH());
        station_send_smp(s[1], &mad, HCA_LID_PERMISSIVE, HCA_LID_PERMISSIVE);
        fabric_run(fabric);
    }
    s[1]->deaf = false;
    fabric_run(fabric);
    while (!g_queue_is_empty(&s[1]->received)) {
        GByteArray *packet = station_take(s[1]);

        answers += packet->data[0] >> 4 == HCA_VL_MGMT;
        g_byte_array_unref(packet);
    }
    g_assert_cmpuint(answers, ==, 50);
    /* But there is an end to the room for it. */
    s[1]->deaf = true;
    for (unsigned i = 0; i < 30; i++) {
        station_send(s[0], &p);
        fabric_run(fabric);
    }
    for (unsigned i = 0; i < 1200; i++) {
        station_send_smp(s[1], &mad, HCA_LID_PERMISSIVE, HCA_LID_PERMISSIVE);
        fabric_run(fabric);
    }
    g_assert_cmpuint(box_counter(box, 2, HCA_PMA_VL15_DROPPED), >, 0);
    fabric_free(fabric);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/switch/smp/directed", directed);
    test_add("/switch/smp/to-station", to_station);
    test_add("/switch/smp/longest", longest);
    test_add("/switch/smp/dead-ends", dead_ends);
    test_add("/switch/smp/port-0-hop", port_0_hop);
    test_add("/switch/smp/turn-round", turn_round);
    test_add("/switch/smp/directed-to-lid", directed_to_lid);
    test_add("/switch/smp/by-lid", by_lid);
    test_add("/switch/smp/no-way-back", no_way_back);
    test_add("/switch/smp/combined", combined);
    test_add("/switch/smp/lids-behind", lids_behind);
    test_add("/switch/smp/lids-behind-to-station", lids_behind_to_station);
    test_add("/switch/smp/wrong-packets", wrong_packets);
    test_add("/switch/smp/wrong-icrc", wrong_icrc);
    test_add("/switch/smp/for-nobody", for_nobody);
    test_add("/switch/smp/gmp", gmp);
    test_add("/switch/smp/gmp-answers-in-kind", gmp_answers_in_kind);
    test_add("/switch/smp/passes-blocked-cable", passes_blocked_cable);
    return g_test_run();
}
