/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whole RoCE cards: every operation along every kind of path, with the
 * addresses of each frame on the cable; datagrams and QP1; the GID table while
 * it is in use.
 *
 * What does not depend on the link layer is tested between RoCE cards by
 * test-rc.c, test-errors.c, test-loss.c and test-model.c.
 */
#include <string.h>

#include "../../abi/rdma_hca_eth.h"
#include "../link/framing.h"
#include "../wire/headers.h"
#include "lib-watch.h"

#define SEND RDMA_HCA_OPCODE_SEND
#define SEND_IMM RDMA_HCA_OPCODE_SEND_IMM
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define WRITE_IMM RDMA_HCA_OPCODE_RDMA_WRITE_IMM
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define ADD RDMA_HCA_OPCODE_ATOMIC_FA

#define FAR 32768 /* where data go to, in the peer's region */
#define HEADER 40 /* before a datagram */
#define GSI_QKEY 0x80010000u
#define BAD_ADDRESS 7 /* vendor error, HcaWqeCheck */

/* ---- every operation along every path ---- */

typedef struct PathCase {
    const WatchKind *kind;
    uint8_t service;
    uint8_t mtu;
} PathCase;

/* One message from side 0, or Read by it; the data arrive, nothing else does. */
static void transfer(Watch *watch, Qp *qp[2], uint8_t opcode, uint32_t len)
{
    Pair *pair = watch->pair;
    g_autofree uint8_t *data = pair_data(pair, len);
    g_autofree uint8_t *image = mr_image(pair->mr[1]);
    g_autofree uint8_t *got = g_malloc(len + 1);
    SendWr wr;
    Sge sge;
    Wc wc;

    wr = pair_send(pair, 0, opcode, 2, &sge, 0, len, FAR);
    if (opcode == READ) {
        mr_write(pair->mr[1], FAR, data, len);
    } else {
        mr_write(pair->mr[0], 0, data, len);
    }
    memcpy(image + FAR, data, len);
    if (wr_takes_receive(opcode)) {
        pair_post_recv(pair, 1, qp[1], 3, FAR, len);
    }
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    cq_expect(pair->cq[0], &wc, 2, 0);
    if (wr_takes_receive(opcode)) {
        cq_expect(pair->cq[1], &wc, 3, 0);
        g_assert_cmpuint(wc.byte_len, ==, len);
        g_assert_true(wc.grh && wc.ipv4 == watch->kind->ipv4);
        g_assert_true(wc.has_vlan == (watch->kind->vlan != 0));
        g_assert_cmpuint(wc.vlan, ==, watch->kind->vlan);
    }
    watch_run(watch); /* UC completes before the data are there */
    mr_read(pair->mr[0], 0, got, len);
    g_assert_cmpmem(got, len, data, len);
    mr_check_image(pair->mr[1], image);
    watch_expect_nothing(watch, 0);
    watch_expect_nothing(watch, 1);
}

static void test_path(const void *opaque)
{
    static const uint8_t opcodes[] = { SEND, SEND_IMM, WRITE, WRITE_IMM, READ };
    const PathCase *c = opaque;
    uint32_t mtu = 128u << c->mtu;
    const uint32_t sizes[] = { 0, 1, mtu - 1, mtu, mtu + 1, 2 * mtu + 5 };
    QpAttr attr;
    Qp *qp[2];
    Watch watch;

    watch_init(&watch, 100 + c->mtu);
    watch_attr(&attr, c->kind);
    attr.mtu = c->mtu;
    pair_connect_service(watch.pair, c->service, &attr, qp);
    watch.kind = c->kind;
    for (unsigned op = 0; op < G_N_ELEMENTS(opcodes); op++) {
        if (opcodes[op] == READ && c->service != RDMA_HCA_QP_ST_RC) {
            continue;
        }
        for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
            transfer(&watch, qp, opcodes[op], sizes[i]);
        }
    }
    g_assert_cmpuint(watch.frames[0], >, 0);
    watch_free(&watch);
}

static void test_path_atomic(const void *opaque)
{
    const WatchKind *kind = opaque;
    uint64_t value = GUINT64_TO_LE(40);
    uint64_t at;
    QpAttr attr;
    SendWr wr;
    Qp *qp[2];
    Watch watch;
    Sge sge;
    Wc wc;

    watch_init(&watch, 110);
    watch_attr(&attr, kind);
    pair_connect_service(watch.pair, RDMA_HCA_QP_ST_RC, &attr, qp);
    watch.kind = kind;
    at = -watch.pair->mr[1]->va & 7;
    mr_write(watch.pair->mr[1], at, &value, sizeof(value));
    wr = pair_send(watch.pair, 0, ADD, 1, &sge, 0, sizeof(value), at);
    wr.swap_add = 2;
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    cq_expect(watch.pair->cq[0], &wc, 1, 0);
    mr_read(watch.pair->mr[0], 0, &value, sizeof(value));
    g_assert_cmpuint(GUINT64_FROM_LE(value), ==, 40);
    mr_read(watch.pair->mr[1], at, &value, sizeof(value));
    g_assert_cmpuint(GUINT64_FROM_LE(value), ==, 42);
    watch_free(&watch);
}

/* The 40 bytes in front of a datagram, against the frame on the cable. */
static void check_header(Watch *watch, const WatchKind *kind, uint64_t at)
{
    const uint8_t *ip = watch->last[0] + (kind->vlan ? 18 : 14);
    uint8_t header[HEADER], expected[HEADER] = { 0 };

    if (kind->ipv4) {
        memcpy(expected + 20, ip, 20);
    } else {
        memcpy(expected, ip, 40);
    }
    mr_read(watch->pair->mr[1], at, header, sizeof(header));
    g_assert_cmpmem(header, sizeof(header), expected, sizeof(expected));
}

static void test_datagram(const void *opaque)
{
    static const uint32_t sizes[] = { 0, 1, 2, 3, 100, 4095, 4096 };
    const WatchKind *kind = opaque;
    Qp *from, *to;
    UdAddress ud;
    Watch watch;
    Wc wc;

    watch_init(&watch, 120);
    from = pair_new_ud(watch.pair, 0);
    to = pair_new_ud(watch.pair, 1);
    ud = watch_ud(&watch, kind, 0, to);
    ud.sl = watch.priority = 6;
    ud.tclass = watch.tclass = kind->ipv4 ? 0x48 : 0x49;
    watch.kind = kind;
    for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autofree uint8_t *data = pair_data(watch.pair, sizes[i]);
        g_autofree uint8_t *got = g_malloc(sizes[i] + 1);

        mr_write(watch.pair->mr[0], 0, data, sizes[i]);
        pair_post_recv(watch.pair, 1, to, 5, FAR, HEADER + sizes[i]);
        watch_post_datagram(&watch, from, 0, i % 2 ? SEND_IMM : SEND, &ud,
                            sizes[i]);
        watch_expect_sent(&watch, 0);
        cq_expect(watch.pair->cq[1], &wc, 5, 0);
        g_assert_cmpuint(wc.byte_len, ==, HEADER + sizes[i]);
        g_assert_cmphex(wc.rqpn, ==, from->qpn);
        g_assert_true(wc.grh && wc.ipv4 == kind->ipv4);
        g_assert_true(wc.has_vlan == (kind->vlan != 0));
        g_assert_cmpuint(wc.vlan, ==, kind->vlan);
        g_assert_cmpuint(wc.sl, ==, kind->vlan ? 6 : 0);
        if (i % 2) {
            g_assert_cmphex(wc.imm_be, ==, GUINT32_TO_BE(0x01020304));
        }
        mr_read(watch.pair->mr[1], FAR + HEADER, got, sizes[i]);
        g_assert_cmpmem(got, sizes[i], data, sizes[i]);
        check_header(&watch, kind, FAR);
    }
    watch_free(&watch);
}

/* Packets of one QP keep their source port; QPs have different ones. */
static void test_flows(void)
{
    QpAttr attr;
    Watch watch;
    GHashTable *ports = g_hash_table_new(NULL, NULL);

    watch_init(&watch, 125);
    qp_attr_init(&attr);
    for (unsigned i = 0; i < 16; i++) {
        unsigned port = 0;
        Qp *qp[2];

        pair_connect_service(watch.pair, RDMA_HCA_QP_ST_RC, &attr, qp);
        for (unsigned n = 0; n < 3; n++) {
            for (unsigned side = 0; side < 2; side++) {
                HcaPacket packet;

                pair_check_works(watch.pair, qp, 0);
                hca_roce_parse(&packet, watch.last[side], watch.last_len[side]);
                g_assert_true(!port || port == packet.udp_sport);
                port = packet.udp_sport;
            }
        }
        g_hash_table_add(ports, GUINT_TO_POINTER(port));
    }
    g_assert_cmpuint(g_hash_table_size(ports), >, 8);
    g_hash_table_destroy(ports);
    watch_free(&watch);
}

/* The last frame of side @from has what its path says; its source port. */
static uint16_t check_path_fields(Watch *watch, unsigned from,
                                  const WatchKind *kind, const RocePath *path)
{
    HcaPacket packet;

    g_assert_cmpint(
        hca_roce_parse(&packet, watch->last[from], watch->last_len[from]), ==,
        HCA_PARSE_OK);
    g_assert_cmphex(packet.tclass, ==, 0x5c | HCA_ECN_ECT0);
    g_assert_cmpuint(packet.hop_limit, ==, path->hop_limit);
    g_assert_cmphex(packet.flow_label, ==, kind->ipv4 ? 0 : path->flow_label);
    g_assert_cmpuint(packet.vlan_tci, ==,
                     kind->vlan ? 5 << 13 | kind->vlan : 0);
    return packet.udp_sport;
}

/* Traffic class, hop limit, flow label, priority; requests and answers. */
static void test_path_fields(const void *opaque)
{
    const WatchKind *kind = opaque;
    uint16_t port[3];
    QpAttr attr;
    Qp *qp[2], *to;
    UdAddress ud;
    Watch watch;

    watch_init(&watch, 126);
    watch_attr(&attr, kind);
    attr.sl = 5;
    attr.tclass = 0x5c;
    attr.roce.hop_limit = 3;
    for (unsigned i = 0; i < G_N_ELEMENTS(port); i++) {
        /* The flow label alone decides on the port. */
        attr.roce.flow_label = i < 2 ? 0xabcde : 0x12345;
        pair_connect_service(watch.pair, RDMA_HCA_QP_ST_RC, &attr, qp);
        pair_check_works(watch.pair, qp, 0);
        port[i] = check_path_fields(&watch, 0, kind, &attr.roce);
        g_assert_cmphex(check_path_fields(&watch, 1, kind, &attr.roce), ==,
                        port[i]);
    }
    g_assert_cmphex(port[0], ==, port[1]);
    g_assert_cmphex(port[0], !=, port[2]);

    to = pair_new_ud(watch.pair, 1);
    ud = watch_ud(&watch, kind, 0, to);
    ud.sl = 5;
    ud.tclass = 0x5c;
    ud.roce.hop_limit = 255;
    ud.roce.flow_label = 0xabcde;
    watch_post_datagram(&watch, pair_new_ud(watch.pair, 0), 0, SEND, &ud, 10);
    watch_expect_sent(&watch, 0);
    g_assert_cmphex(check_path_fields(&watch, 0, kind, &ud.roce), ==, port[0]);
    watch_free(&watch);
}

/* ---- to oneself ---- */

static void test_loopback(const void *opaque)
{
    const WatchKind *kind = opaque;
    Qp *qp, *to;
    QpAttr attr;
    UdAddress ud;
    SendWr wr;
    Watch watch;
    Sge sge;
    Wc wc;

    watch_init(&watch, 130);
    watch_attr(&attr, kind);
    attr.rq_psn = attr.sq_psn;
    qp = pair_new_qp(watch.pair, 0, RDMA_HCA_QP_ST_RC);
    qp_connect(qp, qp, &attr);
    wr = pair_send(watch.pair, 0, WRITE, 1, &sge, 0, 5000, 0);
    wr.rkey = watch.pair->mr[0]->key;
    wr.raddr = watch.pair->mr[0]->va + FAR;
    g_assert_true(qp_post_send(qp, &wr, 1));
    watch_expect_sent(&watch, 0);

    to = pair_new_ud(watch.pair, 0);
    ud = watch_ud(&watch, kind, 0, to);
    pair_post_recv(watch.pair, 0, to, 7, FAR, HEADER + 100);
    watch_post_datagram(&watch, to, 0, SEND, &ud, 100);
    /* Completions of one CQ: sent first. */
    watch_expect_sent(&watch, 0);
    cq_expect(watch.pair->cq[0], &wc, 7, 0);
    g_assert_cmpuint(wc.byte_len, ==, HEADER + 100);
    g_assert_cmpuint(watch.frames[0] + watch.frames[1], ==, 0);
    watch_free(&watch);
}

/* An address that is no longer the card's own leads to the cable. */
static void test_loopback_ends(void)
{
    Watch watch;
    Gid other;
    UdAddress ud;
    Qp *qp;

    watch_init(&watch, 131);
    qp = pair_new_ud(watch.pair, 0);
    ud = watch_ud(&watch, &watch_kinds[2], 0, qp);
    other = watch.drv[0]->gid[GID_IPV6];
    other.gid[14] = 1;
    g_assert_cmphex(driver_set_gid(watch.drv[0], GID_IPV6, &other), ==, 0);
    watch_post_datagram(&watch, qp, 0, SEND, &ud, 10);
    watch_expect_sent(&watch, 0);
    g_assert_cmpuint(watch.frames[0], ==, 1);
    g_assert_cmpuint(watch_left_alone(&watch), ==, 1);
    watch_free(&watch);
}

/* ---- the GID table ---- */

static uint8_t set_raw(Watch *watch, unsigned index,
                       const struct rdma_hca_gid_entry *entry)
{
    return driver_cmd_in(watch->drv[0], RDMA_HCA_CMD_SET_GID, entry,
                         sizeof(*entry), index, 0);
}

static void test_set_gid(void)
{
    static const struct rdma_hca_gid_entry empty;
    struct rdma_hca_gid_entry entry = {
        .gid = { 0xfd, [15] = 9 },
        .type_vlan = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_GID_TYPE, RDMA_HCA_GID_TYPE_ROCE_V2)),
        .mac_h = GUINT32_TO_BE(0x02000001),
    };
    struct rdma_hca_gid_entry good = entry;
    Watch watch;

    watch_init(&watch, 140);
    g_assert_cmphex(set_raw(&watch, 15, &entry), ==, RDMA_HCA_STAT_OK);
    g_assert_cmphex(set_raw(&watch, 16, &entry), ==, RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(set_raw(&watch, UINT32_MAX, &entry), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    for (unsigned type = 0; type < 16; type++) {
        bool known = type == RDMA_HCA_GID_TYPE_NONE ||
                     type == RDMA_HCA_GID_TYPE_ROCE_V2;

        entry.type_vlan = GUINT32_TO_BE(RDMA_HCA_PREP(RDMA_HCA_GID_TYPE, type));
        g_assert_cmphex(set_raw(&watch, 14, &entry), ==,
                        known ? RDMA_HCA_STAT_OK : RDMA_HCA_STAT_BAD_PARAM);
    }
    entry = good;
    entry.mac_h = GUINT32_TO_BE(0x03000001);
    g_assert_cmphex(set_raw(&watch, 14, &entry), ==, RDMA_HCA_STAT_BAD_PARAM);
    entry.mac_h = 0;
    g_assert_cmphex(set_raw(&watch, 14, &entry), ==, RDMA_HCA_STAT_BAD_PARAM);
    entry = good;
    entry.gid[0] = 0xff;
    g_assert_cmphex(set_raw(&watch, 14, &entry), ==, RDMA_HCA_STAT_BAD_PARAM);
    memset(entry.gid, 0, sizeof(entry.gid));
    g_assert_cmphex(set_raw(&watch, 14, &entry), ==, RDMA_HCA_STAT_BAD_PARAM);
    entry = good;
    entry.type_vlan |= GUINT32_TO_BE(RDMA_HCA_GID_HAS_VLAN | 0xfff);
    g_assert_cmphex(set_raw(&watch, 14, &entry), ==, RDMA_HCA_STAT_BAD_PARAM);
    /* What is refused changes nothing. */
    g_assert_cmphex(set_raw(&watch, 15, &entry), ==, RDMA_HCA_STAT_BAD_PARAM);
    g_assert_nonnull(hca_gid_get(watch.hca[0]->port, 15));
    g_assert_cmphex(set_raw(&watch, 15, &empty), ==, RDMA_HCA_STAT_OK);
    g_assert_null(hca_gid_get(watch.hca[0]->port, 15));
    watch_free(&watch);
}

/* What RoCE has and InfiniBand has not, and the other way round. */
static void test_queries(void)
{
    uint64_t guid;
    struct rdma_hca_gid_entry entry = { 0 };
    struct rdma_hca_port port;
    Pair *ib = pair_new(141, 4096);
    Watch watch;

    watch_init(&watch, 141);
    guid = GUINT64_TO_BE(watch.pair->lab->host[0].config.guid);
    g_assert_cmphex(driver_cmd_out(watch.drv[0], RDMA_HCA_CMD_QUERY_PORT, &port,
                                   sizeof(port), 1, 0),
                    ==, 0);
    g_assert_cmpuint(GUINT32_FROM_BE(port.link_layer), ==,
                     RDMA_HCA_LINK_LAYER_ROCE);
    g_assert_cmpuint(port.lid, ==, 0);
    g_assert_cmpmem(&port.mac_h, 6, watch.pair->lab->host[0].config.mac, 6);
    /* The option's, whatever the MAC is. */
    g_assert_cmpmem(&port.guid_h, 8, &guid, 8);
    g_assert_cmpuint(
        RDMA_HCA_GET(RDMA_HCA_PORT_ETH_MAX_MTU, GUINT32_FROM_BE(port.eth)), ==,
        RDMA_HCA_ETH_MAX_MTU);
    g_assert_cmpuint(
        RDMA_HCA_GET(RDMA_HCA_PORT_ETH_QUEUES, GUINT32_FROM_BE(port.eth)), ==,
        RDMA_HCA_ETH_MAX_QUEUES);
    g_assert_cmpuint(
        RDMA_HCA_GET(RDMA_HCA_DEV_LIM_MAX_GIDS,
                     GUINT32_FROM_BE(watch.drv[0]->lim.max_pds_gids_pkeys)),
        ==, 4);
    g_assert_true(watch.drv[0]->roce && !ib->drv[0]->roce);
    g_assert_cmphex(driver_cmd_in(ib->drv[0], RDMA_HCA_CMD_SET_GID, &entry,
                                  sizeof(entry), 0, 0),
                    ==, RDMA_HCA_STAT_BAD_OP);
    pair_free(ib);
    watch_free(&watch);
}

/* An index that is none is refused; an entry may still be empty. */
static void test_source_index(void)
{
    QpAttr attr;
    SendWr wr;
    Qp *qp[2];
    Watch watch;
    Sge sge;
    Wc wc;

    watch_init(&watch, 142);
    qp_attr_init(&attr);
    attr.timeout = 8;
    attr.retry_cnt = 2;
    pair_connect_service(watch.pair, RDMA_HCA_QP_ST_RC, &attr, qp);
    g_assert_cmphex(qp_to_rst(qp[0]), ==, 0);
    g_assert_cmphex(qp_to_init(qp[0], &attr), ==, 0);
    qp_attr_to(&attr, watch.drv[0], watch.drv[1]);
    attr.dest_qpn = qp[1]->qpn;
    attr.roce.sgid_index = 16;
    g_assert_cmphex(qp_to_rtr(qp[0], &attr), ==, RDMA_HCA_STAT_BAD_PARAM);
    attr.roce.sgid_index = 0;
    attr.dgid[0] = 0xff; /* a group is no peer */
    g_assert_cmphex(qp_to_rtr(qp[0], &attr), ==, RDMA_HCA_STAT_BAD_PARAM);
    attr.grh = false;
    attr.roce.document = true;
    attr.roce.dip = 0xef000001;
    g_assert_cmphex(qp_to_rtr(qp[0], &attr), ==, RDMA_HCA_STAT_BAD_PARAM);
    attr.roce.document = false;
    qp_attr_to(&attr, watch.drv[0], watch.drv[1]);
    attr.roce.sgid_index = 15;
    g_assert_cmphex(qp_to_rtr(qp[0], &attr), ==, 0);
    g_assert_cmphex(qp_to_rts(qp[0], &attr), ==, 0);
    wr = pair_send(watch.pair, 0, WRITE, 1, &sge, 0, 10, FAR);
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    cq_expect(watch.pair->cq[0], &wc, 1, RDMA_HCA_SYNDROME_RETRY_EXC_ERR);
    g_assert_cmpuint(watch.frames[0], ==, 0);
    g_assert_cmpuint(card_counter(watch.hca[0], "port_tx_unreachable"), ==, 3);
    watch_free(&watch);
}

/* A datagram that cannot be sent fails, and the QP can go on. */
static void expect_no_address(Watch *watch, Qp *from, const UdAddress *bad)
{
    Wc wc;

    watch_post_datagram(watch, from, 0, SEND, bad, 10);
    cq_expect(watch->pair->cq[0], &wc, 1, RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR);
    g_assert_cmpuint(wc.vendor_err, ==, BAD_ADDRESS);
    g_assert_cmpuint(qp_state(from), ==, RDMA_HCA_QP_STATE_SQE);
    g_assert_cmphex(qp_sqe_to_rts(from), ==, 0);
    g_assert_cmpuint(watch->frames[0], ==, 0);
}

/* A datagram that has no source address fails, and the next one does not. */
static void test_datagram_source(void)
{
    UdAddress good, bad;
    Qp *from, *to;
    Watch watch;

    watch_init(&watch, 143);
    from = pair_new_ud(watch.pair, 0);
    to = pair_new_ud(watch.pair, 1);
    good = watch_ud(&watch, &watch_kinds[1], 0, to);
    for (unsigned i = 0; i < 3; i++) {
        static const uint8_t index[] = { 15, 255, GID_IPV6 };

        bad = good;
        bad.roce.sgid_index = index[i];
        expect_no_address(&watch, from, &bad);
    }
    watch_post_datagram(&watch, from, 0, SEND, &good, 10);
    watch_expect_sent(&watch, 0);
    g_assert_cmpuint(watch.frames[0], ==, 1);
    watch_free(&watch);
}

/* Sources that the port does not have together, in a path of the document's. */
static RocePath forged_path(const Watch *watch, const RocePath *good,
                            unsigned what)
{
    RocePath path = *good;

    switch (what) {
    case 0: /* the peer */
        path.sip = good->dip;
        memcpy(path.smac, good->dmac, sizeof(path.smac));
        break;
    case 1:
        path.sip++;
        break;
    case 2:
        path.sip = 0;
        break;
    case 3:
        path.smac[5]++;
        break;
    case 4: /* its own, but in a VLAN, which this form cannot name */
        path.sip = 10u << 24 | 5 << 16 |
                   watch->drv[0]->gid[GID_VLAN_IPV4].gid[15];
        break;
    }
    return path;
}

#define FORGED_PATHS 5

/*
 * A process writes its own WQEs: what it names as their source has to be what
 * the kernel has put into the table.
 */
static void test_forged_datagram(void)
{
    UdAddress good, bad;
    Qp *from, *to;
    Watch watch;

    watch_init(&watch, 145);
    from = pair_new_ud(watch.pair, 0);
    to = pair_new_ud(watch.pair, 1);
    good = watch_ud(&watch, &watch_kinds[5], 0, to);
    for (unsigned i = 0; i < FORGED_PATHS; i++) {
        bad = good;
        bad.roce = forged_path(&watch, &good.roce, i);
        expect_no_address(&watch, from, &bad);
    }
    watch_post_datagram(&watch, from, 0, SEND, &good, 10);
    watch_expect_sent(&watch, 0);
    g_assert_cmpuint(watch.frames[0], ==, 1);
    watch_free(&watch);
}

/* Of a connection nothing leaves, as from an entry that is empty. */
static void test_forged_connection(void)
{
    QpAttr attr;
    SendWr wr;
    Qp *qp[2];
    Watch watch;
    Sge sge;
    Wc wc;

    watch_init(&watch, 146);
    watch_attr(&attr, &watch_kinds[5]);
    attr.timeout = 8;
    attr.retry_cnt = 1;
    pair_connect_service(watch.pair, RDMA_HCA_QP_ST_RC, &attr, qp);
    for (unsigned i = 0; i < FORGED_PATHS; i++) {
        QpAttr bad = attr;

        g_assert_cmphex(qp_to_rst(qp[0]), ==, 0);
        g_assert_cmphex(qp_to_init(qp[0], &bad), ==, 0);
        qp_attr_to(&bad, watch.drv[0], watch.drv[1]);
        bad.dest_qpn = qp[1]->qpn;
        bad.roce = forged_path(&watch, &bad.roce, i);
        g_assert_cmphex(qp_to_rtr(qp[0], &bad), ==, 0);
        g_assert_cmphex(qp_to_rts(qp[0], &bad), ==, 0);
        wr = pair_send(watch.pair, 0, WRITE, 1, &sge, 0, 10, FAR);
        g_assert_true(qp_post_send(qp[0], &wr, 1));
        cq_expect(watch.pair->cq[0], &wc, 1, RDMA_HCA_SYNDROME_RETRY_EXC_ERR);
        g_assert_cmpuint(watch.frames[0], ==, 0);
    }
    watch_free(&watch);
}

/*
 * The interface's address changes under a connection: what comes from the new
 * one is not the peer's, until the old one is back; then all goes on.
 */
static void test_gid_changes(void)
{
    Gid old, new;
    QpAttr attr;
    SendWr wr;
    Qp *qp[2];
    Watch watch;
    Sge sge;
    Wc wc;

    watch_init(&watch, 144);
    watch_attr(&attr, &watch_kinds[1]);
    pair_connect_service(watch.pair, RDMA_HCA_QP_ST_RC, &attr, qp);
    pair_check_works(watch.pair, qp, 0);
    old = new = watch.drv[0]->gid[GID_IPV4];
    new.gid[14] = 7;
    g_assert_cmphex(driver_set_gid(watch.drv[0], GID_IPV4, &new), ==, 0);
    wr = pair_send(watch.pair, 0, WRITE, 1, &sge, 0, 3000, FAR);
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    watch_run(&watch);
    g_assert_cmpuint(watch_drops(&watch, 1, HCA_DROP_SOURCE), ==, 3);
    watch_expect_nothing(&watch, 0);
    g_assert_cmphex(driver_set_gid(watch.drv[0], GID_IPV4, &old), ==, 0);
    cq_expect(watch.pair->cq[0], &wc, 1, 0);
    pair_check_works(watch.pair, qp, 1);

    /* Emptied, it neither sends nor is spoken to. */
    g_assert_cmphex(driver_set_gid(watch.drv[0], GID_IPV4, NULL), ==, 0);
    watch.frames[0] = 0;
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    watch_run(&watch);
    g_assert_cmpuint(watch.frames[0], ==, 0);
    g_assert_cmphex(driver_set_gid(watch.drv[0], GID_IPV4, &old), ==, 0);
    cq_expect(watch.pair->cq[0], &wc, 1, 0);
    watch_free(&watch);
}

/* ---- QP1 ---- */

static void test_special_qps(void)
{
    Qp *qp[2], *zero, *one;
    QpConfig config;
    UdAddress ud;
    QpAttr attr;
    Watch watch;
    Wc wc;

    watch_init(&watch, 150);
    qp_attr_init(&attr);
    attr.qkey = GSI_QKEY;
    qp_config_init(&config, watch.pair->pd[0], watch.pair->cq[0]);
    one = qp_new_number(watch.drv[0], &config, 1);
    g_assert_cmphex(qp_to_init(one, &attr), ==, RDMA_HCA_STAT_BAD_PARAM);
    qp_destroy(one);
    config.service = RDMA_HCA_QP_ST_UD;
    zero = qp_new_number(watch.drv[0], &config, 0);
    g_assert_cmphex(qp_to_init(zero, &attr), ==, RDMA_HCA_STAT_BAD_INDEX);
    for (unsigned i = 0; i < 2; i++) {
        qp_config_init(&config, watch.pair->pd[i], watch.pair->cq[i]);
        config.service = RDMA_HCA_QP_ST_UD;
        qp[i] = qp_new_number(watch.drv[i], &config, 1);
        qp_bring_up(qp[i], &attr);
    }
    /* A management datagram; bit 31 of its Q_Key asks for the QP's own. */
    ud = watch_ud(&watch, &watch_kinds[1], 0, qp[1]);
    ud.qkey = GSI_QKEY;
    pair_post_recv(watch.pair, 1, qp[1], 4, FAR, HEADER + 256);
    watch_post_datagram(&watch, qp[0], 0, SEND, &ud, 256);
    watch_expect_sent(&watch, 0);
    cq_expect(watch.pair->cq[1], &wc, 4, 0);
    g_assert_cmpuint(wc.rqpn, ==, 1);
    g_assert_cmpuint(wc.byte_len, ==, HEADER + 256);
    /* An ordinary Q_Key does not reach it. */
    ud.qkey = 0x10000;
    pair_post_recv(watch.pair, 1, qp[1], 4, FAR, HEADER + 256);
    watch_post_datagram(&watch, qp[0], 0, SEND, &ud, 256);
    watch_expect_sent(&watch, 0);
    watch_expect_nothing(&watch, 1);
    g_assert_cmpuint(watch_drops(&watch, 1, HCA_DROP_QKEY), ==, 1);
    watch_free(&watch);
}

static void add_paths(void)
{
    static const uint8_t mtus[] = { 1, 3, 5 };

    for (unsigned k = 0; k < NUM_WATCH_KINDS; k++) {
        const WatchKind *kind = &watch_kinds[k];
        const char *atomic = test_named("/roce/atomic/%s", kind->name);
        const char *ud = test_named("/roce/ud/%s", kind->name);
        const char *self = test_named("/roce/loopback/%s", kind->name);
        const char *fields = test_named("/roce/path-fields/%s", kind->name);

        for (unsigned i = 0; i < 2 * G_N_ELEMENTS(mtus); i++) {
            PathCase c = {
                .kind = kind,
                .service = i % 2 ? RDMA_HCA_QP_ST_UC : RDMA_HCA_QP_ST_RC,
                .mtu = mtus[i / 2],
            };
            const char *path = test_named("/roce/%s/%s/mtu%u",
                                          i % 2 ? "uc" : "rc", kind->name,
                                          128u << c.mtu);

            test_add_data(path, test_copy(&c, sizeof(c)), test_path);
        }
        test_add_data(atomic, kind, test_path_atomic);
        test_add_data(ud, kind, test_datagram);
        test_add_data(self, kind, test_loopback);
        test_add_data(fields, kind, test_path_fields);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add_paths();
    test_add("/roce/flows", test_flows);
    test_add("/roce/loopback-ends", test_loopback_ends);
    test_add("/roce/gid/set", test_set_gid);
    test_add("/roce/gid/source-index", test_source_index);
    test_add("/roce/gid/datagram-source", test_datagram_source);
    test_add("/roce/gid/forged/datagram", test_forged_datagram);
    test_add("/roce/gid/forged/connection", test_forged_connection);
    test_add("/roce/gid/changes", test_gid_changes);
    test_add("/roce/queries", test_queries);
    test_add("/roce/special-qps", test_special_qps);
    return g_test_run();
}
