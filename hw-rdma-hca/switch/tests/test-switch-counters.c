/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters as a performance manager sees them, by GMPs; and faults and captures
 * of a port's cable.
 */
#include "core/tests/lib-test.h"
#include "lib-fabric.h"

#include <string.h>

#define LID 9
#define PORT_SELECT 1
#define SELECT 2
#define ALL_PORTS 0xff

static const Parcel parcel = { .slid = 1, .dlid = 2, .size = 100 };
/* LRH, BTH, DETH, payload, ICRC. */
#define WORDS ((8 + 12 + 8 + 100 + 4) / 4)

/* One counter: where it lies, and how wide it is. */
typedef struct Field {
    unsigned byte, bits, shift;
} Field;

static const Field rcv_errors = { 8, 16, 0 };
static const Field remote_errors = { 10, 16, 0 };
static const Field relay_errors = { 12, 16, 0 };
static const Field xmit_discards = { 14, 16, 0 };
static const Field link_downed = { 7, 8, 0 };
static const Field integrity = { 19, 4, 4 };
static const Field xmit_data = { 24, 32, 0 };
static const Field rcv_data = { 28, 32, 0 };
static const Field xmit_pkts = { 32, 32, 0 };
static const Field rcv_pkts = { 36, 32, 0 };
static const Field xmit_wait = { 40, 32, 0 };

static uint64_t field(const uint8_t *data, Field f)
{
    switch (f.bits) {
    case 4:
        return data[f.byte] >> f.shift & 0xf;
    case 8:
        return data[f.byte];
    case 16:
        return get_be16(data + f.byte);
    case 32:
        return get_be32(data + f.byte);
    default:
        return get_be64(data + f.byte);
    }
}

/* Of the switch of LID 9, asked by station 3; data of the answer. */
static uint16_t pma(Station *s, uint8_t method, uint16_t attribute,
                    uint8_t port, uint16_t select, uint8_t *data)
{
    Mad mad;

    smp_init(&mad, s, method, attribute, 0, NULL, 0);
    mad.bytes[HCA_MAD_CLASS] = HCA_CLASS_PERF;
    mad.bytes[HCA_MAD_DATA + PORT_SELECT] = port;
    put_be16(mad.bytes + HCA_MAD_DATA + SELECT, select);
    station_send_gmp(s, &mad, 3, LID);
    fabric_run(s->fabric);
    g_assert_true(station_take_mad(s, &mad));
    memcpy(data, mad.bytes + HCA_MAD_DATA, HCA_MAD_SIZE - HCA_MAD_DATA);
    return get_be16(mad.bytes + HCA_MAD_STATUS);
}

static uint64_t port_counter(Station *s, uint8_t port, Field f)
{
    uint8_t data[HCA_MAD_SIZE];

    g_assert_cmphex(
        pma(s, HCA_METHOD_GET, HCA_ATTR_PORT_COUNTERS, port, 0, data), ==, 0);
    return field(data, f);
}

static Box *star(Fabric *fabric, Station **s)
{
    Box *box = fabric_star(fabric, 3, s);

    box->node->port[0].info.lid = LID;
    return box;
}

/* Packets and words, from LRH to ICRC, both ways; SMPs, too. */
static void data(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    uint8_t info[HCA_MAD_SIZE];

    star(fabric, s);
    for (unsigned i = 0; i < 10; i++) {
        station_send(s[0], &parcel);
    }
    fabric_run(fabric);
    g_assert_cmpuint(port_counter(s[2], 1, rcv_pkts), ==, 10);
    g_assert_cmpuint(port_counter(s[2], 1, rcv_data), ==, 10 * WORDS);
    g_assert_cmpuint(port_counter(s[2], 1, xmit_pkts), ==, 0);
    g_assert_cmpuint(port_counter(s[2], 2, xmit_pkts), ==, 10);
    g_assert_cmpuint(port_counter(s[2], 2, xmit_data), ==, 10 * WORDS);
    g_assert_cmpuint(port_counter(s[2], 2, rcv_pkts), ==, 0);
    smp_get(s[0], NULL, 0, HCA_ATTR_NODE_INFO, 0, info);
    g_assert_cmpuint(port_counter(s[2], 1, rcv_data), ==, 10 * WORDS + 72);
    g_assert_cmpuint(port_counter(s[2], 1, xmit_data), ==, 72);
    g_assert_cmpuint(port_counter(s[2], 1, xmit_pkts), ==, 1);
    fabric_free(fabric);
}

/* Port 0: what ends at the switch, and each hop of a directed route, both ways. */
static void own(void)
{
    static const uint8_t path[] = { 2 };
    Fabric *fabric = fabric_new();
    Station *s[3];
    uint8_t info[HCA_MAD_SIZE];
    Mad mad;

    star(fabric, s);
    station_send(s[0], &parcel);
    fabric_run(fabric);
    g_assert_cmpuint(port_counter(s[2], 0, rcv_pkts), ==, 1); /* the question */
    g_assert_cmpuint(port_counter(s[2], 0, xmit_pkts), ==, 1);
    smp_get(s[0], NULL, 0, HCA_ATTR_NODE_INFO, 0, info);
    smp_init(&mad, s[0], HCA_METHOD_GET, HCA_ATTR_NODE_INFO, 0, path, 1);
    station_send_smp(s[0], &mad, HCA_LID_PERMISSIVE, HCA_LID_PERMISSIVE);
    fabric_run(fabric);
    g_assert_cmpuint(port_counter(s[2], 0, rcv_pkts), ==, 5);
    g_assert_cmpuint(port_counter(s[2], 0, xmit_pkts), ==, 5);
    fabric_free(fabric);
}

/* 64 bits, unicast and multicast apart. */
static void extended(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = star(fabric, s);
    uint8_t info[HCA_MAD_SIZE];
    Parcel group = parcel;

    box->node->mft[1] = 0x4;
    group.dlid = 0xc001;
    station_send(s[0], &group);
    station_send(s[0], &group);
    station_send(s[0], &parcel);
    fabric_run(fabric);
    g_assert_cmphex(
        pma(s[2], HCA_METHOD_GET, HCA_ATTR_PORT_COUNTERS_EXT, 1, 0, info), ==,
        0);
    g_assert_cmpuint(get_be64(info + 16), ==, 3 * WORDS);
    g_assert_cmpuint(get_be64(info + 32), ==, 3);
    g_assert_cmpuint(get_be64(info + 48), ==, 1);
    g_assert_cmpuint(get_be64(info + 64), ==, 2);
    pma(s[2], HCA_METHOD_GET, HCA_ATTR_PORT_COUNTERS_EXT, 2, 0, info);
    g_assert_cmpuint(get_be64(info + 8), ==, 3 * WORDS);
    g_assert_cmpuint(get_be64(info + 24), ==, 3);
    g_assert_cmpuint(get_be64(info + 40), ==, 1);
    g_assert_cmpuint(get_be64(info + 56), ==, 2);
    fabric_free(fabric);
}

/* Each kind of loss, at its port. */
static void errors(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = star(fabric, s);
    GByteArray *packet = parcel_pack(&parcel);
    Parcel p = parcel;

    packet->data[30] ^= 1;
    station_send_bytes(s[0], packet->data, packet->len);
    p.dlid = 99;
    station_send(s[0], &p);
    p.dlid = 2;
    box->node->port[2].info.mtu = 1;
    p.size = 1000;
    station_send(s[0], &p);
    fabric_run(fabric);
    g_assert_cmpuint(port_counter(s[2], 1, rcv_errors), ==, 1);
    g_assert_cmpuint(port_counter(s[2], 1, relay_errors), ==, 1);
    g_assert_cmpuint(port_counter(s[2], 2, xmit_discards), ==, 1);
    g_assert_cmpuint(port_counter(s[2], 1, xmit_discards), ==, 0);
    g_assert_cmpuint(port_counter(s[2], 1, remote_errors), ==, 0);
    fabric_pull(&s[1]->end);
    fabric_join(s[1], box, 2);
    g_assert_cmpuint(port_counter(s[2], 2, link_downed), ==, 1);
    g_byte_array_unref(packet);
    fabric_free(fabric);
}

/* More bad packets in a row than the threshold: LocalLinkIntegrityErrors. */
static void local_integrity(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = star(fabric, s);
    GByteArray *packet = parcel_pack(&parcel);

    box->node->port[1].info.local_phy_errors = 4;
    packet->data[30] ^= 1;
    for (unsigned i = 0; i < 5; i++) {
        station_send_bytes(s[0], packet->data, packet->len);
    }
    fabric_run(fabric);
    g_assert_cmpuint(port_counter(s[2], 1, integrity), ==, 1);
    for (unsigned i = 0; i < 20; i++) {
        station_send_bytes(s[0], packet->data, packet->len);
        station_send(s[0], &parcel);
    }
    fabric_run(fabric);
    g_assert_cmpuint(port_counter(s[2], 1, integrity), ==, 1);
    g_byte_array_unref(packet);
    fabric_free(fabric);
}

/* All ports together; ports that there are not; clearing. */
static void select_ports(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    uint8_t info[HCA_MAD_SIZE];

    star(fabric, s);
    for (unsigned i = 0; i < 4; i++) {
        station_send(s[0], &parcel);
    }
    fabric_run(fabric);
    g_assert_cmpuint(port_counter(s[2], ALL_PORTS, rcv_pkts), >=, 4);
    g_assert_cmphex(
        pma(s[2], HCA_METHOD_GET, HCA_ATTR_PORT_COUNTERS, 4, 0, info), ==,
        HCA_MAD_BAD_VALUE);
    g_assert_cmphex(
        pma(s[2], HCA_METHOD_SET, HCA_ATTR_PORT_COUNTERS, 1, 1u << 15, info),
        ==, 0);
    g_assert_cmpuint(field(info, rcv_pkts), ==, 0);
    g_assert_cmpuint(field(info, rcv_data), ==, 4 * WORDS);
    station_send(s[0], &parcel);
    fabric_run(fabric);
    g_assert_cmpuint(port_counter(s[2], 1, rcv_pkts), ==, 1);
    /* Port 0 is the switch itself: what it was asked, and has answered. */
    g_assert_cmpuint(port_counter(s[2], 0, rcv_pkts), ==, 5);
    g_assert_cmpuint(port_counter(s[2], 0, xmit_pkts), ==, 5);
    fabric_free(fabric);
}

/* Microseconds in which the cable took nothing. */
static void wait(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = star(fabric, s);
    Parcel p = parcel;

    box->node->port[2].info.hoq_life = 31;
    p.size = 4096;
    s[1]->deaf = true;
    while (!hca_switch_wants_write(box->sw, 2)) {
        station_send(s[0], &p);
        fabric_run(fabric);
    }
    fabric_advance(fabric, 7 * NS_PER_MS);
    s[1]->deaf = false;
    fabric_run(fabric);
    fabric_advance(fabric, 7 * NS_PER_MS);
    g_assert_cmpuint(port_counter(s[2], 2, xmit_wait), ==, 7000);
    g_assert_cmpuint(port_counter(s[2], 1, xmit_wait), ==, 0);
    fabric_free(fabric);
}

/* A plan of faults at a port, both ways. */
static void faults(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = star(fabric, s);
    HcaFaultPlan plan = {
        .nrules = 2,
        .rule = { { .action = HCA_FAULT_DROP,
                    .directions = 1 << HCA_FAULT_RX,
                    .every = 2,
                    .probability = HCA_FAULT_ALWAYS },
                  { .action = HCA_FAULT_CORRUPT,
                    .directions = 1 << HCA_FAULT_RX,
                    .offset = -1,
                    .probability = HCA_FAULT_ALWAYS } },
    };
    HcaFaultPlan none = { 0 };

    g_assert_null(hca_fault_check(&plan));
    hca_link_set_faults(hca_switch_link(box->sw, 1), &plan);
    for (unsigned i = 0; i < 10; i++) {
        station_send(s[0], &parcel);
    }
    fabric_run(fabric);
    station_expect_nothing(s[1]);
    g_assert_cmpuint(box_reported(box, 1, "fault.rx.drop"), ==, 5);
    g_assert_cmpuint(box_reported(box, 1, "fault.rx.corrupt"), ==, 5);
    g_assert_cmpuint(box_counter(box, 1, HCA_PMA_RCV_ERRORS), ==, 5);
    hca_link_set_faults(hca_switch_link(box->sw, 1), &none);
    plan.nrules = 1;
    plan.rule[0].directions = 1 << HCA_FAULT_TX;
    plan.rule[0].action = HCA_FAULT_DUPLICATE;
    hca_link_set_faults(hca_switch_link(box->sw, 2), &plan);
    for (unsigned i = 0; i < 10; i++) {
        station_send(s[0], &parcel);
    }
    fabric_run(fabric);
    g_assert_cmpuint(station_count(s[1]), ==, 15);
    fabric_free(fabric);
}

/* Packets that are held back leave when their time has come. */
static void delays(void)
{
    for (unsigned direction = 0; direction < 2; direction++) {
        Fabric *fabric = fabric_new();
        Station *s[3];
        Box *box = star(fabric, s);
        HcaFaultPlan plan = {
            .nrules = 1,
            .rule = { { .action = HCA_FAULT_DELAY,
                        .directions = 1 << direction,
                        .delay_ns = 5 * NS_PER_MS,
                        .probability = HCA_FAULT_ALWAYS } },
        };
        unsigned port = direction == HCA_FAULT_TX ? 2 : 1;

        hca_link_set_faults(hca_switch_link(box->sw, port), &plan);
        station_send(s[0], &parcel);
        fabric_advance(fabric, 5 * NS_PER_MS - 1);
        station_expect_nothing(s[1]);
        fabric_advance(fabric, 1);
        station_expect(s[1], &parcel);
        fabric_free(fabric);
    }
}

/* What passes a port's cable is captured, in the same turn. */
static void capture(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = star(fabric, s);
    GByteArray *packet = parcel_pack(&parcel);
    guint header;

    hca_link_start_capture(hca_switch_link(box->sw, 2));
    header = box->capture[2]->len;
    g_assert_cmpuint(header, >, 0);
    station_send(s[0], &parcel);
    fabric_run(fabric);
    g_assert_cmpuint(box->capture[1]->len, ==, 0);
    g_assert_cmpuint(box->capture[2]->len, >, header + packet->len);
    g_assert_cmpuint(box_reported(box, 2, "capture.packets"), ==, 1);
    g_byte_array_unref(packet);
    fabric_free(fabric);
}

/* What is reported of ports. */
static void report(void)
{
    Fabric *fabric = fabric_new();
    Station *s[3];
    Box *box = star(fabric, s);
    GString *out = g_string_new(NULL);

    fabric_pull(&s[1]->end);
    hca_link_enable(s[2]->link, false);
    fabric_run(fabric);
    for (unsigned i = 0; i <= 3; i++) {
        hca_switch_report_port(box->sw, i, out);
    }
    g_assert_cmpstr(out->str, ==,
                    "port=0 guid=0x525400fffe800001 lid=9 sm-lid=0\n"
                    "port=1 state=active link=up peer=managed mtu=4096 vls=8 "
                    "waiting=0 held=0\n"
                    "port=2 state=down link=none peer=none mtu=4096 vls=8 "
                    "waiting=0 held=0\n"
                    "port=3 state=down link=down peer=managed mtu=4096 vls=8 "
                    "waiting=0 held=0\n");
    g_string_free(out, TRUE);
    g_assert_nonnull(strstr(box->log->str, "port 2: down\n"));
    fabric_free(fabric);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/switch/counters/data", data);
    test_add("/switch/counters/own", own);
    test_add("/switch/counters/extended", extended);
    test_add("/switch/counters/errors", errors);
    test_add("/switch/counters/integrity", local_integrity);
    test_add("/switch/counters/select", select_ports);
    test_add("/switch/counters/wait", wait);
    test_add("/switch/counters/faults", faults);
    test_add("/switch/counters/delays", delays);
    test_add("/switch/counters/capture", capture);
    test_add("/switch/counters/report", report);
    return g_test_run();
}
