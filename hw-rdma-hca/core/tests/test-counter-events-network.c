/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every counter of the port, the link with its faults and capture, and the
 * Ethernet function moves when what it counts happens.
 */
#include <string.h>

#include "../hca_int.h"
#include "../link/framing.h"
#include "../wire/crc.h"
#include "lib-counter-events.h"
#include "lib-nic.h"

#define SEND RDMA_HCA_OPCODE_SEND
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define FIRST_PSN 0x123456 /* qp_attr_init()'s */

static void inject_bytes(Bed *bed, const uint8_t *packet, size_t len,
                         uint8_t marks)
{
    uint8_t header[HCA_FRAME_HEADER_SIZE];

    hca_frame_write_header(header, HCA_FRAME_PACKET, 0, len);
    header[0] |= marks;
    lab_cable_inject(bed->lab, 0, header, sizeof(header));
    lab_cable_inject(bed->lab, 0, packet, len);
}

static size_t build(HcaPacket *packet, uint8_t *bytes)
{
    size_t len;

    memset(bytes, 0, HCA_MAX_PACKET_SIZE);
    len = hca_ib_build(packet, bytes) + packet->payload_len;
    return hca_ib_seal(packet, bytes, len);
}

/* ---- port and link ---- */

/* Put the right VCRC on @len bytes that were changed. */
static void fix_vcrc(uint8_t *bytes, size_t len)
{
    uint16_t vcrc = hca_vcrc_update(HCA_VCRC_INIT, bytes, len - HCA_VCRC_SIZE);

    bytes[len - 2] = vcrc;
    bytes[len - 1] = vcrc >> 8;
}

/* PortRcvErrors, as a performance manager has it. */
static uint64_t receive_errors(const Bed *bed, unsigned side)
{
    const HcaNode *node = hca_port_node(bed->lab->host[side].hca->port);
    HcaPmaCounters counters;

    node->ops->counters(node->opaque, HCA_PORT_NUMBER, &counters);
    return counters.value[HCA_PMA_RCV_ERRORS];
}

/* The first five are errors of the link's (IBA 16.1.3.5). */
static void test_drop_malformed(void)
{
    static const char *const name[] = {
        "port_drop_short",  "port_drop_parse_length", "port_drop_version",
        "port_drop_lnh",    "port_drop_vcrc",         "port_drop_icrc",
        "port_drop_opcode",
    };
    Bed *bed;

    bed = events_new_rc(NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(name); i++) {
        HcaPacket packet = events_forge(bed, HCA_SEND_ONLY, FIRST_PSN);
        uint8_t bytes[HCA_MAX_PACKET_SIZE];
        size_t len = build(&packet, bytes);

        switch (i) {
        case 0:
            len = HCA_LRH_SIZE;
            break;
        case 1:
            bytes[5]++;
            break;
        case 2:
            bytes[0] |= 1;
            break;
        case 3:
            bytes[1] &= ~3;
            break;
        case 4:
            bytes[len - 1] ^= 1;
            break;
        case 5:
            bytes[len - HCA_VCRC_SIZE - 1] ^= 1;
            break;
        default:
            bytes[HCA_LRH_SIZE] = 0x40; /* RD */
            len = hca_ib_seal(&packet, bytes,
                              len - HCA_VCRC_SIZE - HCA_ICRC_SIZE);
        }
        if (i != 0 && i != 4) {
            fix_vcrc(bytes, len);
        }
        bed_counted(bed, 1, name[i], 0);
        inject_bytes(bed, bytes, len, 0);
        bed_run(bed);
        bed_counted(bed, 1, name[i], 1);
        g_assert_cmpuint(receive_errors(bed, 1), ==, MIN(i + 1, 5));
    }
    events_look_and_free(bed);
}

/* Packets that are sound but not for the QP as it is. */
static void test_drop_headers(void)
{
    static const char *const name[] = {
        "port_drop_lid",      "port_drop_qpn",       "port_drop_service",
        "port_drop_pkey",     "port_drop_source",    "port_drop_ghost",
        "port_drop_qp_state", "port_drop_port_down",
    };
    Bed *bed;

    bed = events_new_rc(NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(name); i++) {
        HcaPacket packet = events_forge(bed, HCA_SEND_ONLY, FIRST_PSN);

        switch (i) {
        case 0:
            packet.dlid++;
            break;
        case 1:
            packet.dest_qp = 0xabcdef;
            break;
        case 2:
            packet.opcode |= HCA_BTH_UC << 5;
            break;
        case 3:
            packet.pkey = 0x8001;
            break;
        case 4:
            packet.slid++;
            break;
        case 5:
            packet.opcode = HCA_ACK;
            break;
        case 6:
            g_assert_cmphex(qp_to_err(bed->qps[1]), ==, 0);
            break;
        default:
            g_assert_cmphex(driver_cmd(bed->drv[1], RDMA_HCA_CMD_CLOSE_IB, 0, 1,
                                       0, 0, NULL),
                            ==, 0);
        }
        bed_counted(bed, 1, name[i], 0);
        bed_inject(bed, 0, &packet);
        bed_counted(bed, 1, name[i], 1);
    }
    events_look_and_free(bed);
}

/* UC, where a message with a fault is dropped and the next one is not. */
static void test_drop_uc(void)
{
    static const char *const name[] = {
        "port_drop_no_wqe",
        "port_drop_length",
        "port_drop_opcode_seq",
        "port_drop_access",
    };
    Bed *bed;

    bed = events_new_by(RDMA_HCA_QP_ST_UC, NULL, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(name); i++) {
        static const uint8_t operation[] = { HCA_SEND_ONLY, HCA_WRITE_ONLY,
                                             HCA_SEND_MIDDLE, HCA_WRITE_ONLY };
        HcaPacket packet = events_forge(bed, HCA_BTH_UC << 5 | operation[i],
                                        FIRST_PSN + i);

        packet.payload_len = 8;
        packet.dma_len = i == 1 ? 9 : 8;
        packet.rkey ^= i == 3 ? 0x155 : 0;
        bed_counted(bed, 1, name[i], 0);
        bed_inject(bed, 0, &packet);
        bed_counted(bed, 1, name[i], 1);
    }
    events_look_and_free(bed);
}

static void test_drop_qkey(void)
{
    HcaPacket packet;
    Bed *bed;

    bed = events_new_by(RDMA_HCA_QP_ST_UD, NULL, NULL);
    packet = events_forge(bed, HCA_BTH_UD << 5 | HCA_SEND_ONLY, 0);
    packet.qkey++;
    bed_inject(bed, 0, &packet);
    bed_counted(bed, 1, "port_drop_qkey", 1);
    events_look_and_free(bed);
}

/* To a multicast group that nobody has joined. */
static void test_drop_group(void)
{
    HcaPacket packet;
    Bed *bed;

    bed = events_new_by(RDMA_HCA_QP_ST_UD, NULL, NULL);
    packet = events_forge(bed, HCA_BTH_UD << 5 | HCA_SEND_ONLY, 0);
    packet.dlid = 0xc001;
    packet.has_grh = true;
    packet.dgid.raw[0] = 0xff;
    packet.dest_qp = HCA_QPN_MULTICAST;
    bed_inject(bed, 0, &packet);
    bed_counted(bed, 1, "port_drop_group", 1);
    events_look_and_free(bed);
}

/* Reads asked for again, more at a time than the peer may have. */
static void test_drop_resources(void)
{
    HcaPacket packet;
    QpAttr attr;
    Bed *bed;

    qp_attr_init(&attr);
    attr.max_dest_rd_atomic = 1;
    bed = events_new_rc(&attr);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 2; i++) {
            packet = events_forge(bed, HCA_READ_REQUEST, FIRST_PSN + i);
            packet.dma_len = 8;
            bed_put_from(bed, 0, &packet);
            if (!round) {
                bed_run(bed);
            }
        }
    }
    bed_run(bed);
    bed_counted(bed, 1, "responder_duplicates", 2);
    bed_counted(bed, 1, "port_drop_resources", 1);
    events_look_and_free(bed);
}

static void test_link(void)
{
    static const uint8_t noise[64];
    uint8_t bytes[HCA_MAX_PACKET_SIZE];
    HcaPacket packet;
    QpAttr attr;
    Bed *bed;

    bed = events_new_rc(NULL);
    bed_counted(bed, 0, "link_up", 1);
    bed_counted(bed, 0, "link_peers", 1);
    packet = events_forge(bed, HCA_SEND_ONLY, FIRST_PSN);
    inject_bytes(bed, bytes, build(&packet, bytes), HCA_FRAME_ERROR);
    bed_run(bed);
    bed_counted(bed, 1, "link_rx_marked_bad", 1);
    bed_counted(bed, 1, "link_rx_packets", 0);
    events_request(bed, 0, WRITE, 5000);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "link_tx_packets", 5);
    bed_counted(bed, 1, "link_rx_packets", 5);
    bed_counted(bed, 1, "link_rx_bytes", bed_counter(bed, 0, "link_tx_bytes"));
    events_expect_some(bed, 0, "link_tx_writes");
    events_expect_some(bed, 1, "link_rx_reads");
    lab_cable_inject(bed->lab, 0, noise, sizeof(noise));
    bed_run(bed);
    bed_counted(bed, 1, "link_rx_frame_errors", 1);
    bed_counted(bed, 1, "link_up", 0);

    lab_cable(bed->lab, false);
    events_request(bed, 0, WRITE, 100);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "link_tx_discarded", 1);

    /* To itself. */
    bed_connect(bed, &bed->config.attr);
    g_assert_cmphex(qp_to_rst(bed->qps[0]), ==, 0);
    qp_attr_init(&attr);
    attr.rq_psn = attr.sq_psn;
    qp_connect(bed->qps[0], bed->qps[0], &attr);
    events_request(bed, 0, WRITE, 100);
    bed->wr[0].rkey = bed->pair->mr[0]->key;
    bed->wr[0].raddr = bed->pair->mr[0]->va;
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "link_loopback_packets", 2);
    events_look_and_free(bed);
}

/* The other end says that it moves, and does not come back. */
static void test_moves(void)
{
    Bed *bed = events_new_rc(NULL);

    g_assert_true(hca_depart(bed->lab->host[0].hca));
    hca_drain(bed->lab->host[0].hca);
    bed_run(bed);
    bed_counted(bed, 1, "link_moves", 1);
    bed_counted(bed, 1, "link_up", 1);
    lab_sleep(bed->lab, 11 * NS_PER_S);
    bed_counted(bed, 1, "link_moves_lost", 1);
    bed_counted(bed, 1, "link_up", 0);
    events_look_and_free(bed);
}

/* ---- RoCE ---- */

/* A good frame over IPv4 with one byte changed. */
static void test_roce_malformed(void)
{
    static const struct {
        const char *name;
        size_t at; /* from IP on */
        uint8_t mask;
        uint8_t checksum_mask; /* what makes up for it */
    } cases[] = {
        { "port_drop_fragment", 6, 0x20, 0x20 },
        { "port_drop_ip_header", 8, 0x01, 0 },
        { "port_drop_udp", 25, 0x04, 0 },
    };
    Bed *bed;

    bed = bed_new_roce(RDMA_HCA_QP_ST_RC, NULL, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        HcaPacket packet = { .opcode = HCA_ACK };
        uint8_t frame[256];
        size_t len;

        bed_headers_along(bed, 1, GID_IPV4, &packet);
        len = hca_roce_seal(&packet, frame, hca_roce_build(&packet, frame));
        frame[14 + cases[i].at] ^= cases[i].mask;
        frame[14 + 10] ^= cases[i].checksum_mask;
        bed_inject_frame(bed, 1, frame, len);
        bed_counted(bed, 0, cases[i].name, 1);
    }
    events_look_and_free(bed);
}

/* Datagrams that lead nowhere, to a group, and one whose source has gone. */
static void test_roce_addresses(void)
{
    static const uint8_t mgid[16] = { 0xff, 0x0e, [15] = 1 };
    UdAddress ud = { .qkey = 0x11111111 };
    Gid gid;
    Bed *bed;
    Qp *to;

    bed = bed_new_roce(RDMA_HCA_QP_ST_UD, NULL, NULL);
    to = bed->qps[1];
    ud_address_to_group(&ud, mgid);
    g_assert_cmphex(
        driver_write_mgm(bed->drv[1], 0, mgid, (const Qp *const *)&to, 1), ==,
        0);
    bed_request(bed, 0, SEND, 64)->ud = &ud;
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 1, "port_rx_multicast", 1);
    ud.roce.sgid_index = 15;
    bed_request(bed, 0, SEND, 64)->ud = &ud;
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "send_wqe_bad_address", 1);
    events_look_and_free(bed);

    bed = bed_new_roce(RDMA_HCA_QP_ST_RC, NULL, NULL);
    gid = bed->drv[0]->gid[0];
    g_assert_cmphex(driver_set_gid(bed->drv[0], 0, NULL), ==, 0);
    bed_request(bed, 0, WRITE, 64);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "port_tx_unreachable", 1);
    g_assert_cmphex(driver_set_gid(bed->drv[0], 0, &gid), ==, 0);
    events_look_and_free(bed);
}

/* ---- the Ethernet function ---- */

/* A UDP datagram over IPv6 to all, with its checksum still to be made. */
static size_t udp_frame(uint8_t *frame)
{
    static const uint8_t headers[] = {
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0,  0,  0,
        9,    0x86, 0xdd, 0x60, 0,    0,    0, 0, 16, 17, 64,
    };

    memset(frame, 0, 70);
    memcpy(frame, headers, sizeof(headers));
    frame[59] = 16;      /* UDP length */
    frame[61] = 16 + 17; /* sum of the pseudo-header */
    return 70;
}

/* A hash, two segments, an interrupt that waits. */
static void spread_and_cut(Bed *bed, Nic *const *nic)
{
    uint8_t frame[54 + 100] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
    static const uint8_t headers[] = { 0x08, 0, 0x45, 0, 0,  140,
                                       0,    0, 0,    0, 64, 6 };

    memcpy(frame + 12, headers, sizeof(headers));
    frame[14 + 20 + 12] = 0x50;
    host_write(nic[0]->host, nic[0]->buffer, frame, sizeof(frame));
    g_assert_cmphex(nic_stop(nic[1]), ==, 0);
    g_assert_cmphex(nic_start(nic[1]), ==, 0);
    g_assert_cmphex(nic_set_rss(nic[1], RDMA_HCA_RSS_ALL, 1), ==, 0);
    g_assert_cmphex(nic_moderate(nic[1], 0, 0, 9, 9), ==, 0);
    nic_doorbell(nic[1], RDMA_HCA_ETH_DB_RX_ARM, 0);
    nic_put_tso(nic[0], 64, 54, 14, 34);
    nic_put_tx(nic[0], nic[0]->buffer, sizeof(frame), RDMA_HCA_ETH_TX_LAST);
    nic_ring_tx(nic[0]);
    lab_run(bed->lab);
    bed_counted(bed, 0, "ethernet_tx_tso", 1);
    bed_counted(bed, 0, "ethernet_tx_segments", 2);
    bed_counted(bed, 1, "ethernet_rx_hashed", 2);
    bed_counted(bed, 1, "ethernet_interrupts_held", 1);
    events_look(bed);
}

/* A ring that runs short stops the peer, until nobody waits for it any more. */
static void run_short(Bed *bed, Nic *const *nic)
{
    uint8_t frame[60] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

    g_assert_cmphex(nic_stop(nic[1]), ==, 0);
    g_assert_cmphex(nic_start(nic[1]), ==, 0);
    g_assert_cmphex(nic_set_pause(nic[0], true, false), ==, 0);
    g_assert_cmphex(nic_set_pause(nic[1], false, true), ==, 0);
    host_write(nic[0]->host, nic[0]->buffer, frame, sizeof(frame));
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned n = 0; n < 9; n++) {
            nic_put_tx(nic[0], nic[0]->buffer, sizeof(frame),
                       RDMA_HCA_ETH_TX_LAST);
        }
        nic_ring_tx(nic[0]);
        lab_run(bed->lab);
    }
    bed_counted(bed, 1, "ethernet_rx_waited", 3);
    bed_counted(bed, 1, "ethernet_tx_pause", 1);
    bed_counted(bed, 0, "ethernet_rx_pause", 1);
    bed_counted(bed, 0, "ethernet_tx_stopped", 1);
    lab_sleep(bed->lab, 9 * NS_PER_S);
    bed_counted(bed, 1, "ethernet_pause_given_up", 1);
    bed_counted(bed, 1, "ethernet_rx_no_buffer", 2 + 3);
    frame[12] = 0x88;
    frame[13] = 0x08;
    nic_send(nic[0], frame, sizeof(frame));
    lab_run(bed->lab);
    bed_counted(bed, 1, "ethernet_rx_control_ignored", 1);
    events_look(bed);
}

static void test_ethernet(void)
{
    uint8_t frame[70];
    size_t len = udp_frame(frame);
    Nic *nic[2];
    Bed *bed;

    bed = bed_new_roce(RDMA_HCA_QP_ST_RC, NULL, NULL);
    for (unsigned i = 0; i < 2; i++) {
        nic[i] = nic_new(bed->drv[i], 4);
        g_assert_cmphex(nic_set_rx_mode(nic[i], 0, NULL, 0), ==, 0);
    }
    host_write(nic[0]->host, nic[0]->buffer, frame, len);
    for (unsigned i = 0; i < 17; i++) { /* the peer has 15 buffers */
        nic_put_tx(nic[0], nic[0]->buffer, len, RDMA_HCA_ETH_TX_LAST);
        nic_want_checksum(nic[0], 54, 6);
        nic_ring_tx(nic[0]);
        lab_run(bed->lab);
    }
    nic_doorbell(nic[0], RDMA_HCA_ETH_DB_TX_ARM, 16); /* it is done */
    nic_doorbell(nic[0], RDMA_HCA_ETH_DB_TX_TAIL, 0);
    nic_put_tx(nic[0], nic[0]->buffer, 3, RDMA_HCA_ETH_TX_LAST);
    nic_ring_tx(nic[0]);
    lab_run(bed->lab);
    bed_counted(bed, 0, "ethernet_running", 1);
    bed_counted(bed, 0, "ethernet_tx_frames", 17);
    bed_counted(bed, 0, "ethernet_tx_bytes", 17 * len);
    bed_counted(bed, 0, "ethernet_tx_errors", 1);
    bed_counted(bed, 0, "ethernet_interrupts", 1);
    bed_counted(bed, 0, "ethernet_bad_doorbells", 1);
    bed_counted(bed, 1, "ethernet_rx_frames", 15);
    bed_counted(bed, 1, "ethernet_rx_bytes", 15 * len);
    bed_counted(bed, 1, "ethernet_rx_checksum_ok", 15);
    bed_counted(bed, 1, "ethernet_rx_no_buffer", 2);
    events_look(bed);

    frame[5] = 0xfe; /* a group of others */
    nic_send(nic[0], frame, len);
    lab_run(bed->lab);
    bed_counted(bed, 1, "ethernet_rx_filtered", 1);
    frame[5] = 0xff;
    nic[1]->rx_next = nic[1]->rx_tail;
    nic_put_rx(nic[1], HOST_MMIO_BASE, 100);
    nic_ring_rx(nic[1]);
    nic_send(nic[0], frame, len);
    lab_run(bed->lab);
    bed_counted(bed, 1, "ethernet_rx_errors", 1);
    events_look(bed);
    spread_and_cut(bed, nic);
    run_short(bed, nic);
    nic_free(nic[0]);
    nic_free(nic[1]);
    bed_free(bed);
}

/* ---- raw packets ---- */

static void add_flow(Bed *bed, const Qp *qp, unsigned index, uint32_t kind)
{
    struct rdma_hca_flow flow = {
        .qpn = GUINT32_TO_BE(qp->qpn),
        .kind_priority = GUINT32_TO_BE(RDMA_HCA_PREP(RDMA_HCA_FLOW_KIND, kind)),
    };

    g_assert_cmphex(driver_cmd_in(bed->drv[0], RDMA_HCA_CMD_SET_FLOW, &flow,
                                  sizeof(flow), index, RDMA_HCA_SET_FLOW_ADD),
                    ==, 0);
}

/* One QP sends to its group, and sniffs; another one takes what turns round. */
static void test_raw(void)
{
    static const uint8_t frame[64] = { 1, 0, 0x5e, [5] = 1, [12] = 0x88, 0xb5 };
    Sge sge;
    SendWr wr = { .opcode = RDMA_HCA_OPCODE_SEND, .sge = &sge, .nsge = 1 };
    Qp *qp[2];
    Bed *bed;

    bed = bed_new_roce(RDMA_HCA_QP_ST_RC, NULL, NULL);
    for (unsigned i = 0; i < 2; i++) {
        QpAttr attr;

        qp[i] = pair_new_qp(bed->pair, 0, RDMA_HCA_QP_ST_RAW);
        qp_attr_init(&attr);
        qp_bring_up(qp[i], &attr);
        pair_post_recv(bed->pair, 0, qp[i], i, 4096 * i, 128);
    }
    add_flow(bed, qp[0], 0, RDMA_HCA_FLOW_SNIFFER);
    add_flow(bed, qp[1], 1, RDMA_HCA_FLOW_NORMAL);
    bed_counted(bed, 0, "port_flow_rules", 2);
    events_look(bed);
    mr_write(bed->pair->mr[0], 8192, frame, sizeof(frame));
    sge = mr_sge(bed->pair->mr[0], 8192, sizeof(frame));
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    lab_run(bed->lab);
    bed_counted(bed, 0, "port_tx_frames", 1);
    bed_counted(bed, 0, "port_flow_sniffed", 1);
    bed_counted(bed, 0, "port_flow_steered", 1);
    for (unsigned i = 0; i < 2; i++) {
        Wc wc;

        g_assert_true(cq_poll(bed->pair->cq[0], &wc));
        g_assert_cmphex(wc.syndrome, ==, 0);
    }
    events_look_and_free(bed);
}

/* ---- faults and the capture ---- */

static void set_fault(Bed *bed, HcaFaultAction action,
                      HcaFaultDirection direction)
{
    HcaFaultPlan plan = {
        .nrules = 1,
        .rule[0] = { .action = action,
                     .directions = 1u << direction,
                     .probability = HCA_FAULT_ALWAYS,
                     .count = 1,
                     .delay_ns = NS_PER_MS,
                     .offset = -1 },
    };

    bed_set_faults(bed, 0, &plan);
}

/* One fault of each kind and direction, of a events_request or of its answer. */
static void check_faults(Bed *bed, HcaFaultAction end)
{
    static const char *const names[HCA_FAULT_NPACKET_ACTIONS] = {
        "drop", "duplicate", "reorder", "delay", "corrupt", "mark",
    };

    for (unsigned i = 0; i < 2 * end; i++) {
        g_autofree char *name = g_strdup_printf(
            "fault_%s_%s", i % 2 ? "rx" : "tx", names[i / 2]);

        bed_counted(bed, 0, name, 0);
        set_fault(bed, i / 2, i % 2);
        events_request(bed, 0, WRITE, 100);
        bed_post_requests(bed, 1);
        lab_sleep(bed->lab, NS_PER_S);
        bed_counted(bed, 0, name, 1);
        bed_counted(bed, 0, "requester_wqes_completed", i + 1);
    }
    bed_counted(bed, 0, "fault_held", 0);
}

/* An InfiniBand packet has no place for a mark. */
static void test_faults(void)
{
    Bed *bed;

    bed = events_new_rc(NULL);
    check_faults(bed, HCA_FAULT_MARK);
    events_look_and_free(bed);
}

static void test_faults_roce(void)
{
    HcaConfig config[2];
    Bed *bed;

    lab_config_roce(&config[0], 0);
    lab_config_roce(&config[1], 1);
    bed = events_new_by(RDMA_HCA_QP_ST_RC, NULL, config);
    check_faults(bed, HCA_FAULT_NPACKET_ACTIONS);
    events_look_and_free(bed);
}

/* More packets at a time than are held back. */
static void test_faults_held(void)
{
    HcaFaultPlan plan = {
        .nrules = 1,
        .rule[0] = { .action = HCA_FAULT_DELAY,
                     .directions = 1u << HCA_FAULT_TX,
                     .probability = HCA_FAULT_ALWAYS,
                     .delay_ns = NS_PER_S },
    };
    const unsigned packets = HCA_FAULT_MAX_HELD + 5;
    QpAttr attr;
    Bed *bed;

    qp_attr_init(&attr);
    attr.mtu = 1; /* 256 bytes */
    bed = events_new_rc(&attr);
    bed_set_faults(bed, 0, &plan);
    events_request(bed, 0, WRITE, packets * 256);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "fault_held", HCA_FAULT_MAX_HELD);
    events_expect_some(bed, 0, "fault_held_full");
    events_look_and_free(bed);
}

static void test_capture(void)
{
    Bed *bed;

    bed = events_new_rc(NULL);
    bed_counted(bed, 0, "capture_on", 0);
    events_request(bed, 0, WRITE, 100);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "capture_packets", 0);
    hca_start_capture(bed->lab->host[0].hca);
    bed_counted(bed, 0, "capture_on", 1);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "capture_packets", 2);
    bed_counted(bed, 0, "capture_bytes", bed->lab->host[0].capture->len);
    events_look_and_free(bed);

    bed = events_new_rc(NULL);
    hca_limit_capture(bed->lab->host[0].hca, 1);
    hca_start_capture(bed->lab->host[0].hca);
    events_request(bed, 0, WRITE, 100);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 0, "capture_missed", 2);
    events_look_and_free(bed);
}

static const EventsTest tests[] = {
    { "port/malformed", test_drop_malformed },
    { "port/headers", test_drop_headers },
    { "port/uc", test_drop_uc },
    { "port/qkey", test_drop_qkey },
    { "port/resources", test_drop_resources },
    { "link", test_link },
    { "moves", test_moves },
    { "port/group", test_drop_group },
    { "roce/malformed", test_roce_malformed },
    { "roce/addresses", test_roce_addresses },
    { "ethernet", test_ethernet },
    { "raw", test_raw },
    { "faults/each", test_faults },
    { "faults/each-roce", test_faults_roce },
    { "faults/held", test_faults_held },
    { "capture", test_capture },
};

int main(int argc, char **argv)
{
    const EventsProgram program = { EVENTS_NETWORK, tests,
                                    G_N_ELEMENTS(tests) };

    return events_main(argc, argv, &program);
}
