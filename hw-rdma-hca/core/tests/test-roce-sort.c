/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RoCE cards among others: which frames the engine takes and which the Ethernet
 * function, multicast groups, the port, reset, sizes of frames.
 */
#include <string.h>

#include "../../abi/rdma_hca_eth.h"
#include "../link/framing.h"
#include "../wire/headers.h"
#include "lib-watch.h"

#define SEND RDMA_HCA_OPCODE_SEND
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE

#define FAR 32768 /* where data go to, in the peer's region */

/* A frame out of nowhere, to side 1. */
static void watch_inject(Watch *watch, const uint8_t *frame, size_t len)
{
    uint8_t header[HCA_FRAME_HEADER_SIZE];

    hca_frame_write_header(header, HCA_FRAME_PACKET, 0, len);
    lab_cable_inject(watch->pair->lab, 0, header, sizeof(header));
    lab_cable_inject(watch->pair->lab, 0, frame, len);
    watch_run(watch);
}

static void watch_inject_packet(Watch *watch, HcaPacket *packet)
{
    uint8_t frame[HCA_MAX_ROCE_HEADER_SIZE + 256 + HCA_MAX_TRAILER_SIZE] = {
        0
    };
    size_t len = hca_roce_build(packet, frame) + packet->payload_len;

    watch_inject(watch, frame, hca_roce_seal(packet, frame, len));
}

static const uint8_t mgid4[16] = {
    [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 0x81, [14] = 2, [15] = 3
};
static const uint8_t mgid6[16] = {
    0xff, 0x0e, [12] = 0x12, [13] = 0x34, [14] = 0x56, [15] = 0x78
};

static UdAddress group_of(const uint8_t *mgid, uint8_t index)
{
    UdAddress ud = { .roce.sgid_index = index, .qkey = WATCH_QKEY };

    ud_address_to_group(&ud, mgid);
    return ud;
}

/* Receives for @n datagram QPs, then how many of them came. */
static void post_receives(Watch *watch, unsigned side, Qp *const *qp,
                          unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        pair_post_recv(watch->pair, side, qp[i], 100 + i, FAR + 1000 * i, 500);
    }
}

static unsigned take_receives(Watch *watch, unsigned side)
{
    unsigned n = 0;
    Wc wc;

    watch_run(watch);
    while (cq_poll(watch->pair->cq[side], &wc)) {
        g_assert_cmphex(wc.syndrome, ==, 0);
        n += !wc.is_send;
    }
    return n;
}

/*
 * To all members on both cards, the sender included (IBA 10.5.2), once each;
 * not to who left, nor to a QP that is in no state for it.
 */
static void check_multicast(const uint8_t *mgid, uint8_t index)
{
    Qp *near[2], *far[3];
    UdAddress ud = group_of(mgid, index);
    QpAttr attr;
    Watch watch;

    watch_init(&watch, 160);
    near[0] = pair_new_ud(watch.pair, 0);
    near[1] = pair_new_ud(watch.pair, 0);
    far[0] = pair_new_ud(watch.pair, 1);
    far[1] = pair_new_ud(watch.pair, 1);
    qp_attr_init(&attr);
    far[2] = pair_new_qp(watch.pair, 1, RDMA_HCA_QP_ST_UD); /* in RST */
    post_receives(&watch, 0, near, 2);
    post_receives(&watch, 1, far, 3);
    /* To nobody here; there the engine leaves it alone. */
    watch_post_datagram(&watch, near[0], 0, SEND, &ud, 100);
    g_assert_cmpuint(take_receives(&watch, 0), ==, 0);
    g_assert_cmpuint(take_receives(&watch, 1), ==, 0);
    g_assert_cmpuint(watch_left_alone(&watch), ==, 1);

    g_assert_cmphex(
        driver_write_mgm(watch.drv[0], 3, mgid, (const Qp *const *)near, 2), ==,
        0);
    g_assert_cmphex(
        driver_write_mgm(watch.drv[1], 63, mgid, (const Qp *const *)far, 3), ==,
        0);
    watch_post_datagram(&watch, near[0], 0, SEND, &ud, 100);
    g_assert_cmpuint(take_receives(&watch, 0), ==, 2);
    g_assert_cmpuint(take_receives(&watch, 1), ==, 2);
    g_assert_cmpuint(card_counter(watch.hca[1], "port_rx_multicast"), ==, 1);

    /* Another Q_Key; one member has left; one has no receive. */
    post_receives(&watch, 1, far, 1);
    ud.qkey++;
    watch_post_datagram(&watch, near[0], 0, SEND, &ud, 100);
    g_assert_cmpuint(take_receives(&watch, 1), ==, 0);
    g_assert_cmpuint(watch_drops(&watch, 1, HCA_DROP_QKEY), ==, 2);
    ud.qkey--;
    watch_post_datagram(&watch, near[0], 0, SEND, &ud, 100);
    g_assert_cmpuint(take_receives(&watch, 1), ==, 1);
    g_assert_cmpuint(watch_drops(&watch, 1, HCA_DROP_NO_WQE), ==, 1);
    post_receives(&watch, 1, far, 2);
    g_assert_cmphex(
        driver_write_mgm(watch.drv[1], 63, mgid, (const Qp *const *)&far[1], 1),
        ==, 0);
    watch_post_datagram(&watch, near[0], 0, SEND, &ud, 100);
    g_assert_cmpuint(take_receives(&watch, 1), ==, 1);
    watch_free(&watch);
}

/* One that does not want to hear itself: others of its card do, and it them. */
static void test_multicast_of_ones_own(void)
{
    UdAddress ud = group_of(mgid4, GID_IPV4);
    struct rdma_hca_qpc qpc;
    Qp *qp[2], *far;
    QpAttr attr;
    Watch watch;

    watch_init(&watch, 164);
    qp_attr_init(&attr);
    qp[0] = pair_new_qp(watch.pair, 0, RDMA_HCA_QP_ST_UD);
    qp[0]->block_loopback = true;
    qp_bring_up(qp[0], &attr);
    qp[1] = pair_new_ud(watch.pair, 0);
    g_assert_cmphex(qp_query(qp[0], &qpc), ==, 0);
    g_assert_cmphex(GUINT32_FROM_BE(qpc.flags) & RDMA_HCA_QPC_BLOCK_LOOPBACK,
                    !=, 0);
    g_assert_cmphex(
        driver_write_mgm(watch.drv[0], 3, mgid4, (const Qp *const *)qp, 2), ==,
        0);
    for (unsigned sender = 0; sender < 2; sender++) {
        post_receives(&watch, 0, qp, 2);
        watch_post_datagram(&watch, qp[sender], 0, SEND, &ud, 100);
        g_assert_cmpuint(take_receives(&watch, 0), ==, sender ? 2 : 1);
    }
    /* Of the other card, whatever number its sender has. */
    post_receives(&watch, 0, qp, 2);
    far = pair_new_ud(watch.pair, 1);
    watch_post_datagram(&watch, far, 1, SEND, &ud, 100);
    g_assert_cmpuint(take_receives(&watch, 0), ==, 2);
    watch_free(&watch);
}

static void test_multicast(void)
{
    check_multicast(mgid4, GID_IPV4);
    check_multicast(mgid6, GID_IPV6);
    check_multicast(mgid4, GID_VLAN_IPV4);
    check_multicast(mgid6, GID_VLAN_IPV6);
}

/* Frames to a group that its members must not get. */
static void test_multicast_refused(void)
{
    HcaPacket good, packet;
    UdAddress ud = group_of(mgid4, GID_IPV4);
    Qp *qp, *rc[2];
    QpAttr attr;
    Watch watch;

    watch_init(&watch, 161);
    qp = pair_new_ud(watch.pair, 1);
    qp_attr_init(&attr);
    pair_connect_service(watch.pair, RDMA_HCA_QP_ST_RC, &attr, rc);
    g_assert_cmphex(driver_write_mgm(watch.drv[1], 0, mgid4,
                                     (const Qp *const[]) { qp, rc[1] }, 2),
                    ==, 0);
    post_receives(&watch, 1, &qp, 1);
    watch_post_datagram(&watch, pair_new_ud(watch.pair, 0), 0, SEND, &ud, 4);
    g_assert_cmpuint(take_receives(&watch, 1), ==, 1);
    /* A connection is no member, whatever the group says. */
    g_assert_cmpuint(watch_drops(&watch, 1, HCA_DROP_SERVICE), ==, 1);
    hca_roce_parse(&good, watch.last[0], watch.last_len[0]);
    post_receives(&watch, 1, &qp, 1);

    packet = good;
    packet.dest_qp = qp->qpn;
    watch_inject_packet(&watch, &packet);
    g_assert_cmpuint(watch_drops(&watch, 1, HCA_DROP_QPN), ==, 1);
    /* A VLAN in which the card has no interface; its own frame come back. */
    packet = good;
    packet.has_vlan = true;
    packet.vlan_tci = 77;
    watch_inject_packet(&watch, &packet);
    packet = good;
    memcpy(packet.smac, watch.drv[1]->gid[0].mac, sizeof(packet.smac));
    watch_inject_packet(&watch, &packet);
    g_assert_cmpuint(watch_left_alone(&watch), ==, 2);
    /* A single address, and the QP number of all groups. */
    packet = good;
    memcpy(packet.dgid.raw, watch.drv[1]->gid[GID_IPV4].gid, 16);
    memcpy(packet.dmac, watch.drv[1]->gid[GID_IPV4].mac, 6);
    watch_inject_packet(&watch, &packet);
    g_assert_cmpuint(watch_drops(&watch, 1, HCA_DROP_QPN), ==, 2);
    watch_expect_nothing(&watch, 1);
    watch_inject_packet(&watch, &good);
    g_assert_cmpuint(take_receives(&watch, 1), ==, 1);
    watch_free(&watch);
}

static uint8_t write_mgm(Watch *watch, uint32_t index, const uint8_t *mgid,
                         uint32_t count, const uint32_t *qpn, unsigned n)
{
    uint32_t box[RDMA_HCA_MGM_SIZE / 4] = { 0 };
    struct rdma_hca_mgm *mgm = (void *)box;

    memcpy(mgm->mgid, mgid, sizeof(mgm->mgid));
    mgm->count = GUINT32_TO_BE(count);
    for (unsigned i = 0; i < n; i++) {
        mgm->qpn[i] = GUINT32_TO_BE(qpn[i]);
    }
    return driver_cmd_in(watch->drv[0], RDMA_HCA_CMD_WRITE_MGM, box,
                         sizeof(box), index, 0);
}

static void test_mgm(void)
{
    static const uint8_t unicast[16] = { 0xfd, [15] = 1 };
    uint32_t qpn[RDMA_HCA_MGM_MAX_QPS];
    uint32_t box[RDMA_HCA_MGM_SIZE / 4];
    struct rdma_hca_mgm *mgm = (void *)box;
    Watch watch;

    watch_init(&watch, 162);
    for (unsigned i = 0; i < G_N_ELEMENTS(qpn); i++) {
        qpn[i] = 2 + i;
    }
    g_assert_cmphex(write_mgm(&watch, 64, mgid4, 1, qpn, 1), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(write_mgm(&watch, 0, unicast, 1, qpn, 1), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(write_mgm(&watch, 0, mgid4, 57, qpn, 56), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(write_mgm(&watch, 0, mgid4, UINT32_MAX, qpn, 56), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    qpn[55] = qpn[3];
    g_assert_cmphex(write_mgm(&watch, 0, mgid4, 56, qpn, 56), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    qpn[55] = 0x100; /* of 2^8 QPs */
    g_assert_cmphex(write_mgm(&watch, 0, mgid4, 56, qpn, 56), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    qpn[55] = 0xff;
    g_assert_cmphex(write_mgm(&watch, 9, mgid4, 56, qpn, 56), ==, 0);
    g_assert_cmphex(write_mgm(&watch, 8, mgid4, 1, qpn, 1), ==,
                    RDMA_HCA_STAT_BAD_RESOURCE);
    g_assert_cmphex(write_mgm(&watch, 8, mgid6, 1, qpn, 1), ==, 0);
    g_assert_cmphex(driver_cmd_out(watch.drv[0], RDMA_HCA_CMD_READ_MGM, box,
                                   sizeof(box), 9, 0),
                    ==, 0);
    g_assert_cmpmem(mgm->mgid, 16, mgid4, 16);
    g_assert_cmpuint(GUINT32_FROM_BE(mgm->count), ==, 56);
    for (unsigned i = 0; i < G_N_ELEMENTS(qpn); i++) {
        g_assert_cmphex(GUINT32_FROM_BE(mgm->qpn[i]), ==, qpn[i]);
    }
    g_assert_cmphex(driver_cmd_out(watch.drv[0], RDMA_HCA_CMD_READ_MGM, box,
                                   sizeof(box), 64, 0),
                    ==, RDMA_HCA_STAT_BAD_INDEX);
    /* Freed, its MGID may go elsewhere. */
    g_assert_cmphex(write_mgm(&watch, 9, mgid4, 0, qpn, 0), ==, 0);
    g_assert_cmphex(write_mgm(&watch, 8, mgid4, 1, qpn, 1), ==, 0);
    watch_free(&watch);
}

/* The same on InfiniBand: a multicast LID, and a GRH that names the group. */
static void test_multicast_ib(void)
{
    UdAddress ud = { .dlid = 0xc123, .dqpn = 0xffffff, .qkey = WATCH_QKEY };
    Watch watch = { .pair = pair_new(163, WATCH_MR_LEN) };
    Qp *near, *far[2];

    for (unsigned i = 0; i < 2; i++) {
        watch.drv[i] = watch.pair->drv[i];
        watch.hca[i] = watch.pair->lab->host[i].hca;
    }
    near = pair_new_ud(watch.pair, 0);
    far[0] = pair_new_ud(watch.pair, 1);
    far[1] = pair_new_ud(watch.pair, 1);
    ud.grh = true;
    memcpy(ud.dgid, mgid6, sizeof(ud.dgid));
    post_receives(&watch, 0, &near, 1);
    post_receives(&watch, 1, far, 2);
    watch_post_datagram(&watch, near, 0, SEND, &ud, 100);
    g_assert_cmpuint(watch_drops(&watch, 1, HCA_DROP_GROUP), ==, 1);
    g_assert_cmphex(
        driver_write_mgm(watch.drv[0], 0, mgid6, (const Qp *const *)&near, 1),
        ==, 0);
    g_assert_cmphex(
        driver_write_mgm(watch.drv[1], 0, mgid6, (const Qp *const *)far, 2), ==,
        0);
    watch_post_datagram(&watch, near, 0, SEND, &ud, 100);
    g_assert_cmpuint(take_receives(&watch, 0), ==, 1);
    g_assert_cmpuint(take_receives(&watch, 1), ==, 2);
    /* No GRH; a LID that is all; the permissive one. */
    post_receives(&watch, 1, far, 2);
    ud.grh = false;
    watch_post_datagram(&watch, near, 0, SEND, &ud, 100);
    ud.grh = true;
    ud.dlid = 0xffff;
    watch_post_datagram(&watch, near, 0, SEND, &ud, 100);
    g_assert_cmpuint(take_receives(&watch, 1), ==, 0);
    g_assert_cmpuint(watch_drops(&watch, 1, HCA_DROP_LID), ==, 2);
    pair_free(watch.pair);
}

/*
 * A packet to a group is as many as there are members: what a turn takes does
 * not depend on how a neighbour addresses its packets.
 */
static void test_multicast_turn(void)
{
    const unsigned members = 20, packets = 200, share = 128;
    uint8_t header[HCA_FRAME_HEADER_SIZE];
    UdAddress ud = group_of(mgid6, GID_IPV6);
    uint64_t before, now = 0;
    Qp *near, *far[20];
    Watch watch;

    watch_init(&watch, 164);
    near = pair_new_ud(watch.pair, 0);
    for (unsigned i = 0; i < members; i++) {
        far[i] = pair_new_ud(watch.pair, 1);
    }
    g_assert_cmphex(driver_write_mgm(watch.drv[1], 0, mgid6,
                                     (const Qp *const *)far, members),
                    ==, 0);
    watch_post_datagram(&watch, near, 0, SEND, &ud, 100);
    watch_run(&watch);
    before = card_counter(watch.hca[1], "port_rx_multicast");
    g_assert_cmpuint(before, ==, 1);
    hca_frame_write_header(header, HCA_FRAME_PACKET, 0, watch.last_len[0]);
    for (unsigned i = 0; i < packets; i++) {
        lab_cable_inject(watch.pair->lab, 0, header, sizeof(header));
        lab_cable_inject(watch.pair->lab, 0, watch.last[0], watch.last_len[0]);
    }
    while (now < 1 + packets) {
        bool more = hca_run(watch.hca[1]);

        now = card_counter(watch.hca[1], "port_rx_multicast");
        g_assert_true(more || now == 1 + packets);
        g_assert_cmpuint(now, >, before);
        g_assert_cmpuint((now - before) * members, <, share + members);
        before = now;
    }
    watch_free(&watch);
}

/* A Write that side 1 would execute. */
static HcaPacket good_write(Watch *watch, Qp *qp[2])
{
    HcaPacket packet;
    SendWr wr;
    Sge sge;
    Wc wc;

    wr = pair_send(watch->pair, 0, WRITE, 1, &sge, 0, 64, FAR);
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    cq_expect(watch->pair->cq[0], &wc, 1, 0);
    g_assert_cmpint(hca_roce_parse(&packet, watch->last[0], watch->last_len[0]),
                    ==, HCA_PARSE_OK);
    return packet;
}

/* Frames to other addresses are the Ethernet function's. */
static void test_foreign_addresses(void)
{
    HcaPacket good, packet;
    uint64_t received;
    QpAttr attr;
    Qp *qp[2];
    Watch watch;

    watch_init(&watch, 170);
    watch_attr(&attr, &watch_kinds[1]);
    pair_connect_service(watch.pair, RDMA_HCA_QP_ST_RC, &attr, qp);
    good = good_write(&watch, qp);
    received = card_counter(watch.hca[1], "port_rx_packets");
    for (unsigned i = 0; i < 5; i++) {
        packet = good;
        switch (i) {
        case 0:
            packet.dgid.raw[15]++;
            break;
        case 3: /* an IPv4 address inside IPv6 */
            packet.is_ipv4 = false;
            break;
        case 1:
            packet.dmac[5]++;
            break;
        case 2:
            packet.has_vlan = true;
            packet.vlan_tci = VLAN_ID + 1;
            break;
        default: /* an address of another VLAN */
            memcpy(packet.dgid.raw, watch.drv[1]->gid[GID_VLAN_IPV4].gid, 16);
        }
        watch_inject_packet(&watch, &packet);
        g_assert_cmpuint(watch_left_alone(&watch), ==, i + 1);
        g_assert_cmpuint(card_counter(watch.hca[1], "port_rx_packets"), ==,
                         received);
    }
    /* A priority tag is none: a duplicate, which is acknowledged. */
    packet = good;
    packet.has_vlan = true;
    packet.vlan_tci = 3 << 13;
    watch_inject_packet(&watch, &packet);
    g_assert_cmpuint(card_counter(watch.hca[1], "responder_duplicates"), ==, 1);
    watch_free(&watch);
}

/* To the card, but not from the QP's peer or not to the QP's address. */
static void test_foreign_peers(void)
{
    HcaPacket good, packet;
    QpAttr attr;
    Qp *qp[2];
    Watch watch;

    for (unsigned k = 1; k < NUM_WATCH_KINDS; k += 4) {
        watch_init(&watch, 171);
        watch_attr(&attr, &watch_kinds[k]);
        pair_connect_service(watch.pair, RDMA_HCA_QP_ST_RC, &attr, qp);
        good = good_write(&watch, qp);
        for (unsigned i = 0; i < 4; i++) {
            packet = good;
            packet.opcode = i < 2 ? HCA_WRITE_ONLY : HCA_ACK;
            packet.payload_len = i < 2 ? packet.payload_len : 0;
            packet.psn++;
            if (i % 2) {
                packet.sgid.raw[15] = 77;
            } else { /* another one of the card's */
                packet.is_ipv4 = false;
                memcpy(packet.dgid.raw, watch.drv[1]->gid[GID_IPV6].gid, 16);
                packet.sgid.raw[0] = 0xfd;
            }
            watch_inject_packet(&watch, &packet);
            g_assert_cmpuint(watch_drops(&watch, 1, HCA_DROP_SOURCE), ==,
                             i + 1);
        }
        pair_check_works(watch.pair, qp, 0);
        watch_free(&watch);
    }
}

/* Frames that are no RoCE, of each length. */
static void test_ethernet(void)
{
    uint8_t frame[256];
    Watch watch;

    watch_init(&watch, 172);
    for (unsigned len = 1; len <= sizeof(frame); len++) {
        for (unsigned i = 0; i < len; i++) {
            frame[i] = g_rand_int(watch.pair->lab->rand);
        }
        if (len > 14) { /* ARP */
            frame[12] = 0x08;
            frame[13] = 0x06;
        }
        watch_inject(&watch, frame, len);
        g_assert_cmpuint(watch_left_alone(&watch), ==, len);
    }
    g_assert_cmpuint(card_counter(watch.hca[1], "port_rx_packets"), ==, 0);
    watch_free(&watch);
}

/* The longest frame that an interface has, in both directions. */
static void test_jumbo(void)
{
    static uint8_t frame[RDMA_HCA_ETH_MAX_MTU + RDMA_HCA_ETH_HEADER_SIZE];
    Watch watch;

    watch_init(&watch, 173);
    for (unsigned i = 0; i < 100; i++) {
        watch_inject(&watch, frame, sizeof(frame));
    }
    g_assert_cmpuint(watch_left_alone(&watch), ==, 100);
    g_assert_true(hca_link_is_up(watch.hca[1]->link));
    watch_free(&watch);
}

/* RoCE frames to the card that are broken: counted by kind, nobody else's. */
static void test_malformed(void)
{
    static const struct {
        HcaDropReason reason;
        unsigned at; /* byte of the frame */
        uint8_t mask;
    } faults[] = {
        { HCA_DROP_PARSE_IP_HEADER, 14 + 10, 0xff }, /* checksum */
        { HCA_DROP_PARSE_ICRC, 14 + 28 + 9, 0x01 },  /* PSN */
        { HCA_DROP_PARSE_UDP, 14 + 20 + 5, 0x04 },   /* length */
    };
    HcaPacket good;
    QpAttr attr;
    Qp *qp[2];
    Watch watch;

    watch_init(&watch, 174);
    watch_attr(&attr, &watch_kinds[1]);
    pair_connect_service(watch.pair, RDMA_HCA_QP_ST_RC, &attr, qp);
    good = good_write(&watch, qp);
    for (unsigned i = 0; i < G_N_ELEMENTS(faults); i++) {
        uint8_t frame[HCA_LINK_MAX_PACKET];

        memcpy(frame, watch.last[0], watch.last_len[0]);
        frame[faults[i].at] ^= faults[i].mask;
        watch_inject(&watch, frame, watch.last_len[0]);
        g_assert_cmpuint(watch_drops(&watch, 1, faults[i].reason), ==, 1);
    }
    g_assert_cmpuint(watch_left_alone(&watch), ==, 0);
    /* To another card it is not ours to count. */
    good.dmac[5]++;
    good.opcode = 0x40; /* RD */
    watch_inject_packet(&watch, &good);
    g_assert_cmpuint(watch_left_alone(&watch), ==, 1);
    good.dmac[5]--;
    watch_inject_packet(&watch, &good);
    g_assert_cmpuint(watch_drops(&watch, 1, HCA_DROP_PARSE_OPCODE), ==, 1);
    watch_free(&watch);
}

/*
 * Frames of a connection, cut, and changed in a few places, half of them with
 * an ICRC that says so. The connection they hit may break, the card must not,
 * nor a byte of memory that is not the peer's to write.
 */
static void test_noise(void)
{
    g_autofree uint8_t *image = NULL;
    QpAttr attr;
    Qp *qp[2], *bystander[2];
    Mr *aside;
    Watch watch;

    watch_init(&watch, 175);
    watch_attr(&attr, &watch_kinds[1]);
    pair_connect_service(watch.pair, RDMA_HCA_QP_ST_RC, &attr, bystander);
    aside = mr_new(watch.drv[1], watch.pair->pd[1], 0x1000, 4096, 0);
    image = mr_image(aside);
    for (unsigned i = 0; i < 5000; i++) {
        GRand *rand = watch.pair->lab->rand;
        uint8_t frame[HCA_LINK_MAX_PACKET];
        HcaOpcodeFormat format;
        HcaPacket packet;
        size_t len;

        if (i % 500 == 0) { /* it may have broken: another one */
            watch_attr(&attr, &watch_kinds[i / 500 % NUM_WATCH_KINDS]);
            pair_connect_service(watch.pair, RDMA_HCA_QP_ST_RC, &attr, qp);
            good_write(&watch, qp);
        }
        len = watch.last_len[0];
        memcpy(frame, watch.last[0], len);
        for (unsigned n = g_rand_int_range(rand, 1, 4); n; n--) {
            frame[g_rand_int_range(rand, 0, len)] = g_rand_int(rand);
        }
        if (i % 4 == 0) {
            len = g_rand_int_range(rand, 1, len);
        }
        if (i % 2 && !hca_roce_parse(&packet, watch.last[0], len)) {
            packet.opcode = i % 16 == 1 ? HCA_BTH_CNP : g_rand_int(rand) % 0x18;
            packet.tclass = g_rand_int(rand);
            packet.psn += g_rand_int_range(rand, -2, 3);
            packet.va += g_rand_int_range(rand, -70000, 70000);
            packet.payload_len = packet.opcode == HCA_BTH_CNP
                                     ? 0
                                     : g_rand_int_range(rand, 0, 64);
            if (packet.opcode == HCA_BTH_CNP ||
                hca_opcode_format(packet.opcode, &format)) {
                watch_inject_packet(&watch, &packet);
            }
        } else {
            watch_inject(&watch, frame, len);
        }
    }
    g_assert_cmpuint(card_counter(watch.hca[1], "requester_cnp_rx"), >, 0);
    g_assert_cmpuint(card_counter(watch.hca[1], "responder_ecn_marked_rx"), >,
                     0);
    mr_check_image(aside, image);
    watch.kind = NULL;
    pair_check_works(watch.pair, bystander, 0);
    pair_check_works(watch.pair, bystander, 1);
    watch_free(&watch);
}

/* There is no greeting; a port that is not enabled takes Ethernet only. */
static void test_port(void)
{
    static const uint8_t arp[60] = { [12] = 0x08, [13] = 0x06 };
    HcaPacket good;
    QpAttr attr;
    Qp *qp[2];
    Watch watch;

    watch_init(&watch, 180);
    qp_attr_init(&attr);
    pair_connect_service(watch.pair, RDMA_HCA_QP_ST_RC, &attr, qp);
    good = good_write(&watch, qp);
    lab_cable(watch.pair->lab, false);
    g_assert_cmpuint(driver_port_state(watch.drv[0]), ==, 1);
    lab_cable(watch.pair->lab, true);
    g_assert_cmpuint(driver_port_state(watch.drv[0]), ==, 4);
    watch_run(&watch);
    g_assert_cmpuint(hca_link_counters(watch.hca[0]->link)->peers, ==, 2);
    pair_check_works(watch.pair, qp, 0);

    g_assert_cmphex(
        driver_cmd(watch.drv[1], RDMA_HCA_CMD_CLOSE_IB, 0, 1, 0, 0, NULL), ==,
        0);
    watch_inject_packet(&watch, &good);
    g_assert_cmpuint(watch_drops(&watch, 1, HCA_DROP_PORT_DOWN), ==, 1);
    watch_inject(&watch, arp, sizeof(arp));
    g_assert_cmpuint(watch_left_alone(&watch), ==, 1);
    watch_free(&watch);
}

static void set_up_again(Watch *watch)
{
    Pair *pair = watch->pair;

    for (unsigned i = 0; i < 2; i++) {
        Host *host = &pair->lab->host[i];

        pair->drv[i] = watch->drv[i] = driver_new(host);
        pair->pd[i] = pd_new(pair->drv[i]);
        pair->cq[i] = cq_new(pair->drv[i], 6, 1);
        pair->mr[i] = mr_new(pair->drv[i], pair->pd[i], 0x1000, WATCH_MR_LEN,
                             ACCESS_ALL);
    }
    watch_run(watch);
}

/* After a reset, and after CLOSE_HCA, no address and no group is left. */
static void check_forgotten(bool by_reset)
{
    QpAttr attr;
    Qp *qp[2], *ud;
    Watch watch;

    watch_init(&watch, 181);
    ud = pair_new_ud(watch.pair, 1);
    g_assert_cmphex(
        driver_write_mgm(watch.drv[1], 0, mgid4, (const Qp *const *)&ud, 1), ==,
        0);
    qp_attr_init(&attr);
    pair_connect_service(watch.pair, RDMA_HCA_QP_ST_RC, &attr, qp);
    good_write(&watch, qp);
    for (unsigned i = 0; i < 2; i++) {
        if (by_reset) {
            driver_free(watch.drv[i]);
            host_bar0_write(&watch.pair->lab->host[i], RDMA_HCA_RESET, 1);
            watch_run(&watch);
        } else {
            driver_close(watch.drv[i]);
        }
        g_assert_cmpuint(watch.hca[i]->port->gids.end, ==, 0);
        g_assert_cmpuint(watch.hca[i]->port->mcast.end, ==, 0);
    }
    watch_inject(&watch, watch.last[0], watch.last_len[0]);
    g_assert_cmpuint(watch_left_alone(&watch), ==, 1);
    set_up_again(&watch);
    pair_connect_service(watch.pair, RDMA_HCA_QP_ST_RC, &attr, qp);
    pair_check_works(watch.pair, qp, 0);
    watch_free(&watch);
}

static void test_reset(void)
{
    check_forgotten(true);
    check_forgotten(false);
}

static void check_config(void (*spoil)(HcaConfig *), const char *name)
{
    const char *message;
    HcaConfig config;

    lab_config_roce(&config, 0);
    g_assert_null(hca_config_check(&config));
    spoil(&config);
    message = hca_config_check(&config);
    g_assert_nonnull(message);
    g_assert_true(g_str_has_prefix(message, name));
}

#define SPOIL(fn, statement)                                                   \
    static void fn(HcaConfig *c)                                               \
    {                                                                          \
        statement;                                                             \
    }

SPOIL(spoil_multicast_mac, c->mac[0] = 1)
SPOIL(spoil_zero_mac, memset(c->mac, 0, 6))
SPOIL(spoil_gids, c->log_gids = 9)
SPOIL(spoil_osq_low, c->osq_per_qp = 0)
SPOIL(spoil_osq_high, c->osq_per_qp = 32769)
SPOIL(spoil_timer_low, c->cnp_timer_us = 0)
SPOIL(spoil_timer_high, c->cnp_timer_us = 1000001)
SPOIL(spoil_interval, c->cnp_interval_us = 1000001)
SPOIL(spoil_link_layer, c->link_layer = 3)
SPOIL(spoil_cable, c->cable = HCA_CABLE_NPROTOCOLS)
SPOIL(spoil_ack_policy, c->ack_policy = HCA_ACK_NPOLICIES)
SPOIL(spoil_qps_low, c->log_qps = 1)
SPOIL(spoil_qps_high, c->log_qps = 17)
SPOIL(spoil_mpts_low, c->log_mpts = 3)
SPOIL(spoil_mpts_high, c->log_mpts = 21)

static void test_config(void)
{
    HcaConfig config;

    check_config(spoil_multicast_mac, "mac ");
    check_config(spoil_zero_mac, "mac ");
    check_config(spoil_gids, "log-gids ");
    check_config(spoil_osq_low, "osq-per-qp ");
    check_config(spoil_osq_high, "osq-per-qp ");
    check_config(spoil_timer_low, "cnp-timer-us ");
    check_config(spoil_timer_high, "cnp-timer-us ");
    check_config(spoil_interval, "cnp-interval-us ");
    check_config(spoil_link_layer, "link-layer ");
    check_config(spoil_cable, "cable ");
    check_config(spoil_ack_policy, "ack-policy ");
    check_config(spoil_qps_low, "log-qps ");
    check_config(spoil_qps_high, "log-qps ");
    check_config(spoil_mpts_low, "log-mpts ");
    check_config(spoil_mpts_high, "log-mpts ");
    /* What the other link layer has does not matter. */
    lab_config_roce(&config, 0);
    config.lid = 0;
    g_assert_null(hca_config_check(&config));
    hca_config_init(&config);
    g_assert_cmpint(config.link_layer, ==, HCA_LINK_LAYER_IB);
    memset(config.mac, 0, sizeof(config.mac));
    g_assert_null(hca_config_check(&config));
    config.cable = HCA_CABLE_NETDEV;
    g_assert_true(g_str_has_prefix(hca_config_check(&config), "cable "));
}

/* A card of 2^@log_qps QPs and 2^@log_mpts regions has the last of each. */
static void check_sizes(uint8_t log_qps, uint8_t log_mpts)
{
    uint32_t qps = 1u << log_qps, mpts = 1u << log_mpts;
    HcaConfig config[2];
    QpConfig qp_config;
    GArray *free_mpts;
    Qp *qp[2], *beyond;
    Pair *pair;
    QpAttr attr;

    for (unsigned i = 0; i < 2; i++) {
        lab_config_roce(&config[i], i);
        config[i].log_qps = log_qps;
        config[i].log_mpts = log_mpts;
        g_assert_null(hca_config_check(&config[i]));
    }
    pair = pair_new_with(182, WATCH_MR_LEN, config, NULL, NULL);
    qp_attr_init(&attr);
    for (unsigned i = 0; i < 2; i++) {
        qp_config_init(&qp_config, pair->pd[i], pair->cq[i]);
        qp[i] = qp_new_number(pair->drv[i], &qp_config, qps - 1);
        /* The highest number is the first in the list, the next one the last. */
        free_mpts = pair->drv[i]->free_mpts;
        g_array_append_val(free_mpts, g_array_index(free_mpts, uint32_t, 0));
        g_array_remove_index(free_mpts, 0);
        pair->mr[i] = mr_new(pair->drv[i], pair->pd[i], 0x1000, WATCH_MR_LEN,
                             ACCESS_ALL);
        g_assert_cmphex(mr_index(pair->mr[i]), ==, mpts - 1);
    }
    qp_connect(qp[0], qp[1], &attr);
    pair_check_works(pair, qp, 0);
    pair_check_works(pair, qp, 1);
    qp_config_init(&qp_config, pair->pd[0], pair->cq[0]);
    beyond = qp_new_number(pair->drv[0], &qp_config, qps);
    g_assert_cmphex(qp_to_init(beyond, &attr), ==, RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(
        driver_cmd(pair->drv[0], RDMA_HCA_CMD_HW2SW_MPT, 0, mpts, 0, 0, NULL),
        ==, RDMA_HCA_STAT_BAD_INDEX);
    pair_free(pair);
}

/* What the engine document has (7.5), and less and more. */
static void test_sizes(void)
{
    check_sizes(4, 5);
    check_sizes(8, 8);
    check_sizes(12, 14);
    check_sizes(14, 15);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/roce/multicast/members", test_multicast);
    test_add("/roce/multicast/not-oneself", test_multicast_of_ones_own);
    test_add("/roce/multicast/share-of-turn", test_multicast_turn);
    test_add("/roce/multicast/refused", test_multicast_refused);
    test_add("/roce/multicast/commands", test_mgm);
    test_add("/roce/multicast/infiniband", test_multicast_ib);
    test_add("/roce/sort/addresses", test_foreign_addresses);
    test_add("/roce/sort/peers", test_foreign_peers);
    test_add("/roce/sort/ethernet", test_ethernet);
    test_add("/roce/sort/jumbo", test_jumbo);
    test_add("/roce/sort/malformed", test_malformed);
    test_add("/roce/sort/noise", test_noise);
    test_add("/roce/port", test_port);
    test_add("/roce/reset", test_reset);
    test_add("/roce/config", test_config);
    test_add("/roce/sizes", test_sizes);
    return g_test_run();
}
