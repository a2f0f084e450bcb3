/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whole RoCE cards: every operation along every kind of path, with the
 * addresses of each frame on the cable; datagrams, multicast and QP1; which
 * frames the engine takes and which the Ethernet function; the GID table while
 * it is in use.
 *
 * What does not depend on the link layer is tested between RoCE cards by
 * test-rc.c, test-errors.c, test-loss.c and test-model.c.
 */
#include <string.h>

#include "lib-inside.h"
#include "../eth/eth.h"
#include "../link/framing.h"
#include "../wire/headers.h"
#include "lib-pair.h"

#define SEND RDMA_HCA_OPCODE_SEND
#define SEND_IMM RDMA_HCA_OPCODE_SEND_IMM
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define WRITE_IMM RDMA_HCA_OPCODE_RDMA_WRITE_IMM
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define ADD RDMA_HCA_OPCODE_ATOMIC_FA

#define MR_LEN 65536
#define FAR 32768 /* where data go to, in the peer's region */
#define HEADER 40 /* before a datagram */
#define QKEY 0x11111111u
#define GSI_QKEY 0x80010000u
#define BAD_ADDRESS 7 /* vendor error, HcaWqeCheck */

/* A kind of path: an entry of the GID table, or the document's own. */
typedef struct Kind {
    const char *name;
    uint8_t index;
    bool document;
    bool ipv4;
    uint16_t vlan;
} Kind;

static const Kind kinds[] = {
    { "link-local", GID_LINK_LOCAL, false, false, 0 },
    { "ipv4", GID_IPV4, false, true, 0 },
    { "ipv6", GID_IPV6, false, false, 0 },
    { "vlan-ipv4", GID_VLAN_IPV4, false, true, VLAN_ID },
    { "vlan-ipv6", GID_VLAN_IPV6, false, false, VLAN_ID },
    { "document", GID_IPV4, true, true, 0 },
};

typedef struct Bed {
    Pair *pair;
    Driver *drv[2];
    Hca *hca[2];
    const Kind *kind;         /* of all frames, if not NULL */
    uint8_t tclass, priority; /* and these */
    uint64_t frames[2];       /* sent by each side */
    uint8_t last[2][HCA_LINK_MAX_PACKET];
    size_t last_len[2];
} Bed;

/* ---- the cable ---- */

/* Every address in a frame is the one that its path's table entry says. */
static void check_frame(const Bed *bed, unsigned from, const HcaPacket *packet)
{
    const Gid *source = &bed->drv[from]->gid[bed->kind->index];
    const Gid *dest = &bed->drv[!from]->gid[bed->kind->index];
    unsigned ecn = bed->tclass & HCA_ECN_MASK;

    g_assert_cmpmem(packet->smac, 6, source->mac, 6);
    g_assert_cmpmem(packet->dmac, 6, dest->mac, 6);
    g_assert_cmpmem(packet->sgid.raw, 16, source->gid, 16);
    g_assert_cmpmem(packet->dgid.raw, 16, dest->gid, 16);
    g_assert_true(packet->is_ipv4 == bed->kind->ipv4);
    g_assert_true(packet->has_vlan == (bed->kind->vlan != 0));
    if (packet->has_vlan) {
        g_assert_cmpuint(packet->vlan_tci, ==,
                         bed->priority << 13 | bed->kind->vlan);
    }
    g_assert_cmphex(packet->tclass, ==, bed->tclass | (ecn ? 0 : HCA_ECN_ECT0));
    g_assert_cmpuint(packet->hop_limit, ==, 64);
    g_assert_cmpuint(packet->udp_sport, >=, 0xc000);
}

static CableFate tap(void *opaque, unsigned from, uint8_t *frame, size_t len)
{
    Bed *bed = opaque;
    HcaPacket packet;

    g_assert_cmpint(hca_roce_parse(&packet, frame, len), ==, HCA_PARSE_OK);
    if (bed->kind) {
        check_frame(bed, from, &packet);
    }
    bed->frames[from]++;
    memcpy(bed->last[from], frame, len);
    bed->last_len[from] = len;
    return CABLE_DELIVER;
}

static void bed_init(Bed *bed, uint32_t seed)
{
    memset(bed, 0, sizeof(*bed));
    bed->pair = pair_new_roce(seed, MR_LEN, tap, bed);
    for (unsigned i = 0; i < 2; i++) {
        bed->drv[i] = bed->pair->drv[i];
        bed->hca[i] = bed->pair->lab->host[i].hca;
    }
}

static void bed_free(Bed *bed)
{
    pair_free(bed->pair);
}

static void run(Bed *bed)
{
    lab_run(bed->pair->lab);
}

/* A frame out of nowhere, to side 1. */
static void inject(Bed *bed, const uint8_t *frame, size_t len)
{
    uint8_t header[HCA_FRAME_HEADER_SIZE];

    hca_frame_write_header(header, HCA_FRAME_PACKET, 0, len);
    lab_cable_inject(bed->pair->lab, 0, header, sizeof(header));
    lab_cable_inject(bed->pair->lab, 0, frame, len);
    run(bed);
}

static void inject_packet(Bed *bed, HcaPacket *packet)
{
    uint8_t frame[HCA_MAX_ROCE_HEADER_SIZE + 256 + HCA_MAX_TRAILER_SIZE] = {
        0
    };
    size_t len = hca_roce_build(packet, frame) + packet->payload_len;

    inject(bed, frame, hca_roce_seal(packet, frame, len));
}

static uint64_t drops(const Bed *bed, unsigned side, HcaDropReason reason)
{
    return hca_port_counters(bed->hca[side]->port)->drops[reason];
}

/* Frames that the engine of side 1 left to the Ethernet function. */
static uint64_t left_alone(const Bed *bed)
{
    const HcaEthCounters *eth = hca_eth_counters(bed->hca[1]->eth);

    return eth->rx_filtered + eth->rx_no_buffer + eth->rx_errors;
}

/* ---- queue pairs ---- */

static Qp *new_qp(Bed *bed, unsigned side, uint8_t service)
{
    QpConfig config;

    qp_config_init(&config, bed->pair->pd[side], bed->pair->cq[side]);
    config.service = service;
    return qp_new(bed->drv[side], &config);
}

static void attr_of(QpAttr *attr, const Kind *kind)
{
    qp_attr_init(attr);
    attr->roce.sgid_index = kind->index;
    attr->roce.document = kind->document;
}

static void connect_qps(Bed *bed, uint8_t service, const QpAttr *attr,
                        Qp *qp[2])
{
    qp[0] = new_qp(bed, 0, service);
    qp[1] = new_qp(bed, 1, service);
    qp_connect(qp[0], qp[1], attr);
}

/* A datagram QP in RTS. */
static Qp *new_ud(Bed *bed, unsigned side)
{
    Qp *qp = new_qp(bed, side, RDMA_HCA_QP_ST_UD);
    QpAttr attr;

    qp_attr_init(&attr);
    g_assert_cmphex(qp_to_init(qp, &attr), ==, 0);
    g_assert_cmphex(qp_to_rtr(qp, &attr), ==, 0);
    g_assert_cmphex(qp_to_rts(qp, &attr), ==, 0);
    return qp;
}

static UdAddress ud_of(Bed *bed, const Kind *kind, unsigned from, const Qp *to)
{
    UdAddress ud = {
        .roce.sgid_index = kind->index,
        .roce.document = kind->document,
        .dqpn = to->qpn,
        .qkey = QKEY,
    };

    ud_address_to(&ud, bed->drv[from], to->drv);
    return ud;
}

static void post_datagram(Bed *bed, Qp *qp, unsigned side, uint8_t opcode,
                          const UdAddress *ud, uint32_t len)
{
    Sge sge;
    SendWr wr = pair_send(bed->pair, side, opcode, 1, &sge, 0, len, 0);

    wr.ud = ud;
    g_assert_true(qp_post_send(qp, &wr, 1));
    run(bed);
}

static void expect_sent(Bed *bed, unsigned side)
{
    Wc wc;

    cq_expect(bed->pair->cq[side], &wc, 1, 0);
    g_assert_true(wc.is_send);
}

static void expect_nothing(Bed *bed, unsigned side)
{
    Wc wc;

    run(bed);
    g_assert_false(cq_poll(bed->pair->cq[side], &wc));
}

/* ---- every operation along every path ---- */

typedef struct PathCase {
    const Kind *kind;
    uint8_t service;
    uint8_t mtu;
} PathCase;

static bool takes_receive(uint8_t opcode)
{
    return opcode == SEND || opcode == SEND_IMM || opcode == WRITE_IMM;
}

/* One message from side 0, or Read by it; the data arrive, nothing else does. */
static void transfer(Bed *bed, Qp *qp[2], uint8_t opcode, uint32_t len)
{
    Pair *pair = bed->pair;
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
    if (takes_receive(opcode)) {
        pair_post_recv(pair, 1, qp[1], 3, FAR, len);
    }
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    cq_expect(pair->cq[0], &wc, 2, 0);
    if (takes_receive(opcode)) {
        cq_expect(pair->cq[1], &wc, 3, 0);
        g_assert_cmpuint(wc.byte_len, ==, len);
        g_assert_true(wc.grh && wc.ipv4 == bed->kind->ipv4);
        g_assert_true(wc.has_vlan == (bed->kind->vlan != 0));
        g_assert_cmpuint(wc.vlan, ==, bed->kind->vlan);
    }
    run(bed); /* UC completes before the data are there */
    mr_read(pair->mr[0], 0, got, len);
    g_assert_cmpmem(got, len, data, len);
    mr_check_image(pair->mr[1], image);
    expect_nothing(bed, 0);
    expect_nothing(bed, 1);
}

static void test_path(const void *opaque)
{
    static const uint8_t opcodes[] = { SEND, SEND_IMM, WRITE, WRITE_IMM, READ };
    const PathCase *c = opaque;
    uint32_t mtu = 128u << c->mtu;
    const uint32_t sizes[] = { 0, 1, mtu - 1, mtu, mtu + 1, 2 * mtu + 5 };
    QpAttr attr;
    Qp *qp[2];
    Bed bed;

    bed_init(&bed, 100 + c->mtu);
    attr_of(&attr, c->kind);
    attr.mtu = c->mtu;
    connect_qps(&bed, c->service, &attr, qp);
    bed.kind = c->kind;
    for (unsigned op = 0; op < G_N_ELEMENTS(opcodes); op++) {
        if (opcodes[op] == READ && c->service != RDMA_HCA_QP_ST_RC) {
            continue;
        }
        for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
            transfer(&bed, qp, opcodes[op], sizes[i]);
        }
    }
    g_assert_cmpuint(bed.frames[0], >, 0);
    bed_free(&bed);
}

static void test_path_atomic(const void *opaque)
{
    const Kind *kind = opaque;
    uint64_t value = GUINT64_TO_LE(40);
    uint64_t at;
    QpAttr attr;
    SendWr wr;
    Qp *qp[2];
    Bed bed;
    Sge sge;
    Wc wc;

    bed_init(&bed, 110);
    attr_of(&attr, kind);
    connect_qps(&bed, RDMA_HCA_QP_ST_RC, &attr, qp);
    bed.kind = kind;
    at = -bed.pair->mr[1]->va & 7;
    mr_write(bed.pair->mr[1], at, &value, sizeof(value));
    wr = pair_send(bed.pair, 0, ADD, 1, &sge, 0, sizeof(value), at);
    wr.swap_add = 2;
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    cq_expect(bed.pair->cq[0], &wc, 1, 0);
    mr_read(bed.pair->mr[0], 0, &value, sizeof(value));
    g_assert_cmpuint(GUINT64_FROM_LE(value), ==, 40);
    mr_read(bed.pair->mr[1], at, &value, sizeof(value));
    g_assert_cmpuint(GUINT64_FROM_LE(value), ==, 42);
    bed_free(&bed);
}

/* The 40 bytes in front of a datagram, against the frame on the cable. */
static void check_header(Bed *bed, const Kind *kind, uint64_t at)
{
    const uint8_t *ip = bed->last[0] + (kind->vlan ? 18 : 14);
    uint8_t header[HEADER], expected[HEADER] = { 0 };

    if (kind->ipv4) {
        memcpy(expected + 20, ip, 20);
    } else {
        memcpy(expected, ip, 40);
    }
    mr_read(bed->pair->mr[1], at, header, sizeof(header));
    g_assert_cmpmem(header, sizeof(header), expected, sizeof(expected));
}

static void test_datagram(const void *opaque)
{
    static const uint32_t sizes[] = { 0, 1, 2, 3, 100, 4095, 4096 };
    const Kind *kind = opaque;
    Qp *from, *to;
    UdAddress ud;
    Bed bed;
    Wc wc;

    bed_init(&bed, 120);
    from = new_ud(&bed, 0);
    to = new_ud(&bed, 1);
    ud = ud_of(&bed, kind, 0, to);
    ud.sl = bed.priority = 6;
    ud.tclass = bed.tclass = kind->ipv4 ? 0x48 : 0x49;
    bed.kind = kind;
    for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autofree uint8_t *data = pair_data(bed.pair, sizes[i]);
        g_autofree uint8_t *got = g_malloc(sizes[i] + 1);

        mr_write(bed.pair->mr[0], 0, data, sizes[i]);
        pair_post_recv(bed.pair, 1, to, 5, FAR, HEADER + sizes[i]);
        post_datagram(&bed, from, 0, i % 2 ? SEND_IMM : SEND, &ud, sizes[i]);
        expect_sent(&bed, 0);
        cq_expect(bed.pair->cq[1], &wc, 5, 0);
        g_assert_cmpuint(wc.byte_len, ==, HEADER + sizes[i]);
        g_assert_cmphex(wc.rqpn, ==, from->qpn);
        g_assert_true(wc.grh && wc.ipv4 == kind->ipv4);
        g_assert_true(wc.has_vlan == (kind->vlan != 0));
        g_assert_cmpuint(wc.vlan, ==, kind->vlan);
        g_assert_cmpuint(wc.sl, ==, kind->vlan ? 6 : 0);
        if (i % 2) {
            g_assert_cmphex(wc.imm_be, ==, GUINT32_TO_BE(0x01020304));
        }
        mr_read(bed.pair->mr[1], FAR + HEADER, got, sizes[i]);
        g_assert_cmpmem(got, sizes[i], data, sizes[i]);
        check_header(&bed, kind, FAR);
    }
    bed_free(&bed);
}

/* Packets of one QP keep their source port; QPs have different ones. */
static void test_flows(void)
{
    QpAttr attr;
    Bed bed;
    GHashTable *ports = g_hash_table_new(NULL, NULL);

    bed_init(&bed, 125);
    qp_attr_init(&attr);
    for (unsigned i = 0; i < 16; i++) {
        unsigned port = 0;
        Qp *qp[2];

        connect_qps(&bed, RDMA_HCA_QP_ST_RC, &attr, qp);
        for (unsigned n = 0; n < 3; n++) {
            for (unsigned side = 0; side < 2; side++) {
                HcaPacket packet;

                pair_check_works(bed.pair, qp, 0);
                hca_roce_parse(&packet, bed.last[side], bed.last_len[side]);
                g_assert_true(!port || port == packet.udp_sport);
                port = packet.udp_sport;
            }
        }
        g_hash_table_add(ports, GUINT_TO_POINTER(port));
    }
    g_assert_cmpuint(g_hash_table_size(ports), >, 8);
    g_hash_table_destroy(ports);
    bed_free(&bed);
}

/* The last frame of side @from has what its path says; its source port. */
static uint16_t check_path_fields(Bed *bed, unsigned from, const Kind *kind,
                                  const RocePath *path)
{
    HcaPacket packet;

    g_assert_cmpint(
        hca_roce_parse(&packet, bed->last[from], bed->last_len[from]), ==,
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
    const Kind *kind = opaque;
    uint16_t port[3];
    QpAttr attr;
    Qp *qp[2], *to;
    UdAddress ud;
    Bed bed;

    bed_init(&bed, 126);
    attr_of(&attr, kind);
    attr.sl = 5;
    attr.tclass = 0x5c;
    attr.roce.hop_limit = 3;
    for (unsigned i = 0; i < G_N_ELEMENTS(port); i++) {
        /* The flow label alone decides on the port. */
        attr.roce.flow_label = i < 2 ? 0xabcde : 0x12345;
        connect_qps(&bed, RDMA_HCA_QP_ST_RC, &attr, qp);
        pair_check_works(bed.pair, qp, 0);
        port[i] = check_path_fields(&bed, 0, kind, &attr.roce);
        g_assert_cmphex(check_path_fields(&bed, 1, kind, &attr.roce), ==,
                        port[i]);
    }
    g_assert_cmphex(port[0], ==, port[1]);
    g_assert_cmphex(port[0], !=, port[2]);

    to = new_ud(&bed, 1);
    ud = ud_of(&bed, kind, 0, to);
    ud.sl = 5;
    ud.tclass = 0x5c;
    ud.roce.hop_limit = 255;
    ud.roce.flow_label = 0xabcde;
    post_datagram(&bed, new_ud(&bed, 0), 0, SEND, &ud, 10);
    expect_sent(&bed, 0);
    g_assert_cmphex(check_path_fields(&bed, 0, kind, &ud.roce), ==, port[0]);
    bed_free(&bed);
}

/* ---- to oneself ---- */

static void test_loopback(const void *opaque)
{
    const Kind *kind = opaque;
    Qp *qp, *to;
    QpAttr attr;
    UdAddress ud;
    SendWr wr;
    Bed bed;
    Sge sge;
    Wc wc;

    bed_init(&bed, 130);
    attr_of(&attr, kind);
    attr.rq_psn = attr.sq_psn;
    qp = new_qp(&bed, 0, RDMA_HCA_QP_ST_RC);
    qp_connect(qp, qp, &attr);
    wr = pair_send(bed.pair, 0, WRITE, 1, &sge, 0, 5000, 0);
    wr.rkey = bed.pair->mr[0]->key;
    wr.raddr = bed.pair->mr[0]->va + FAR;
    g_assert_true(qp_post_send(qp, &wr, 1));
    expect_sent(&bed, 0);

    to = new_ud(&bed, 0);
    ud = ud_of(&bed, kind, 0, to);
    pair_post_recv(bed.pair, 0, to, 7, FAR, HEADER + 100);
    post_datagram(&bed, to, 0, SEND, &ud, 100);
    /* Completions of one CQ: sent first. */
    expect_sent(&bed, 0);
    cq_expect(bed.pair->cq[0], &wc, 7, 0);
    g_assert_cmpuint(wc.byte_len, ==, HEADER + 100);
    g_assert_cmpuint(bed.frames[0] + bed.frames[1], ==, 0);
    bed_free(&bed);
}

/* An address that is no longer the card's own leads to the cable. */
static void test_loopback_ends(void)
{
    Bed bed;
    Gid other;
    UdAddress ud;
    Qp *qp;

    bed_init(&bed, 131);
    qp = new_ud(&bed, 0);
    ud = ud_of(&bed, &kinds[2], 0, qp);
    other = bed.drv[0]->gid[GID_IPV6];
    other.gid[14] = 1;
    g_assert_cmphex(driver_set_gid(bed.drv[0], GID_IPV6, &other), ==, 0);
    post_datagram(&bed, qp, 0, SEND, &ud, 10);
    expect_sent(&bed, 0);
    g_assert_cmpuint(bed.frames[0], ==, 1);
    g_assert_cmpuint(left_alone(&bed), ==, 1);
    bed_free(&bed);
}

/* ---- the GID table ---- */

static uint8_t set_raw(Bed *bed, unsigned index,
                       const struct rdma_hca_gid_entry *entry)
{
    return driver_cmd_in(bed->drv[0], RDMA_HCA_CMD_SET_GID, entry,
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
    Bed bed;

    bed_init(&bed, 140);
    g_assert_cmphex(set_raw(&bed, 15, &entry), ==, RDMA_HCA_STAT_OK);
    g_assert_cmphex(set_raw(&bed, 16, &entry), ==, RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(set_raw(&bed, UINT32_MAX, &entry), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    for (unsigned type = 0; type < 16; type++) {
        bool known = type == RDMA_HCA_GID_TYPE_NONE ||
                     type == RDMA_HCA_GID_TYPE_ROCE_V2;

        entry.type_vlan = GUINT32_TO_BE(RDMA_HCA_PREP(RDMA_HCA_GID_TYPE, type));
        g_assert_cmphex(set_raw(&bed, 14, &entry), ==,
                        known ? RDMA_HCA_STAT_OK : RDMA_HCA_STAT_BAD_PARAM);
    }
    entry = good;
    entry.mac_h = GUINT32_TO_BE(0x03000001);
    g_assert_cmphex(set_raw(&bed, 14, &entry), ==, RDMA_HCA_STAT_BAD_PARAM);
    entry.mac_h = 0;
    g_assert_cmphex(set_raw(&bed, 14, &entry), ==, RDMA_HCA_STAT_BAD_PARAM);
    entry = good;
    entry.gid[0] = 0xff;
    g_assert_cmphex(set_raw(&bed, 14, &entry), ==, RDMA_HCA_STAT_BAD_PARAM);
    memset(entry.gid, 0, sizeof(entry.gid));
    g_assert_cmphex(set_raw(&bed, 14, &entry), ==, RDMA_HCA_STAT_BAD_PARAM);
    entry = good;
    entry.type_vlan |= GUINT32_TO_BE(RDMA_HCA_GID_HAS_VLAN | 0xfff);
    g_assert_cmphex(set_raw(&bed, 14, &entry), ==, RDMA_HCA_STAT_BAD_PARAM);
    /* What is refused changes nothing. */
    g_assert_cmphex(set_raw(&bed, 15, &entry), ==, RDMA_HCA_STAT_BAD_PARAM);
    g_assert_nonnull(hca_gid_get(bed.hca[0]->port, 15));
    g_assert_cmphex(set_raw(&bed, 15, &empty), ==, RDMA_HCA_STAT_OK);
    g_assert_null(hca_gid_get(bed.hca[0]->port, 15));
    bed_free(&bed);
}

/* What RoCE has and InfiniBand has not, and the other way round. */
static void test_queries(void)
{
    static const uint8_t guid[8] = { 0x00, 0x00, 0xc0, 0xff,
                                     0xfe, 0xff, 0xee, 0x10 };
    struct rdma_hca_gid_entry entry = { 0 };
    struct rdma_hca_port port;
    Pair *ib = pair_new(141, 4096);
    Bed bed;

    bed_init(&bed, 141);
    g_assert_cmphex(driver_cmd_out(bed.drv[0], RDMA_HCA_CMD_QUERY_PORT, &port,
                                   sizeof(port), 1, 0),
                    ==, 0);
    g_assert_cmpuint(GUINT32_FROM_BE(port.link_layer), ==,
                     RDMA_HCA_LINK_LAYER_ROCE);
    g_assert_cmpuint(port.lid, ==, 0);
    g_assert_cmpmem(&port.mac_h, 6, bed.pair->lab->host[0].config.mac, 6);
    g_assert_cmpmem(&port.guid_h, 8, guid, 8);
    g_assert_cmpuint(GUINT32_FROM_BE(port.eth), ==, RDMA_HCA_ETH_MAX_MTU);
    g_assert_cmpuint(
        RDMA_HCA_GET(RDMA_HCA_DEV_LIM_MAX_GIDS,
                     GUINT32_FROM_BE(bed.drv[0]->lim.max_pds_gids_pkeys)),
        ==, 4);
    g_assert_true(bed.drv[0]->roce && !ib->drv[0]->roce);
    g_assert_cmphex(driver_cmd_in(ib->drv[0], RDMA_HCA_CMD_SET_GID, &entry,
                                  sizeof(entry), 0, 0),
                    ==, RDMA_HCA_STAT_BAD_OP);
    pair_free(ib);
    bed_free(&bed);
}

/* An index that is none is refused; an entry may still be empty. */
static void test_source_index(void)
{
    QpAttr attr;
    SendWr wr;
    Qp *qp[2];
    Bed bed;
    Sge sge;
    Wc wc;

    bed_init(&bed, 142);
    qp_attr_init(&attr);
    attr.timeout = 8;
    attr.retry_cnt = 2;
    connect_qps(&bed, RDMA_HCA_QP_ST_RC, &attr, qp);
    g_assert_cmphex(qp_to_rst(qp[0]), ==, 0);
    g_assert_cmphex(qp_to_init(qp[0], &attr), ==, 0);
    qp_attr_to(&attr, bed.drv[0], bed.drv[1]);
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
    qp_attr_to(&attr, bed.drv[0], bed.drv[1]);
    attr.roce.sgid_index = 15;
    g_assert_cmphex(qp_to_rtr(qp[0], &attr), ==, 0);
    g_assert_cmphex(qp_to_rts(qp[0], &attr), ==, 0);
    wr = pair_send(bed.pair, 0, WRITE, 1, &sge, 0, 10, FAR);
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    cq_expect(bed.pair->cq[0], &wc, 1, RDMA_HCA_SYNDROME_RETRY_EXC_ERR);
    g_assert_cmpuint(bed.frames[0], ==, 0);
    g_assert_cmpuint(hca_port_counters(bed.hca[0]->port)->tx_unreachable, ==,
                     3);
    bed_free(&bed);
}

/* A datagram that has no source address fails, and the next one does not. */
static void test_datagram_source(void)
{
    UdAddress good, bad;
    Qp *from, *to;
    Bed bed;
    Wc wc;

    bed_init(&bed, 143);
    from = new_ud(&bed, 0);
    to = new_ud(&bed, 1);
    good = ud_of(&bed, &kinds[1], 0, to);
    for (unsigned i = 0; i < 3; i++) {
        static const uint8_t index[] = { 15, 255, GID_IPV6 };

        bad = good;
        bad.roce.sgid_index = index[i];
        post_datagram(&bed, from, 0, SEND, &bad, 10);
        cq_expect(bed.pair->cq[0], &wc, 1, RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR);
        g_assert_cmpuint(wc.vendor_err, ==, BAD_ADDRESS);
        g_assert_cmpuint(qp_state(from), ==, RDMA_HCA_QP_STATE_SQE);
        g_assert_cmphex(qp_sqe_to_rts(from), ==, 0);
        g_assert_cmpuint(bed.frames[0], ==, 0);
    }
    post_datagram(&bed, from, 0, SEND, &good, 10);
    expect_sent(&bed, 0);
    g_assert_cmpuint(bed.frames[0], ==, 1);
    bed_free(&bed);
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
    Bed bed;
    Sge sge;
    Wc wc;

    bed_init(&bed, 144);
    attr_of(&attr, &kinds[1]);
    connect_qps(&bed, RDMA_HCA_QP_ST_RC, &attr, qp);
    pair_check_works(bed.pair, qp, 0);
    old = new = bed.drv[0]->gid[GID_IPV4];
    new.gid[14] = 7;
    g_assert_cmphex(driver_set_gid(bed.drv[0], GID_IPV4, &new), ==, 0);
    wr = pair_send(bed.pair, 0, WRITE, 1, &sge, 0, 3000, FAR);
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    run(&bed);
    g_assert_cmpuint(drops(&bed, 1, HCA_DROP_SOURCE), ==, 3);
    expect_nothing(&bed, 0);
    g_assert_cmphex(driver_set_gid(bed.drv[0], GID_IPV4, &old), ==, 0);
    cq_expect(bed.pair->cq[0], &wc, 1, 0);
    pair_check_works(bed.pair, qp, 1);

    /* Emptied, it neither sends nor is spoken to. */
    g_assert_cmphex(driver_set_gid(bed.drv[0], GID_IPV4, NULL), ==, 0);
    bed.frames[0] = 0;
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    run(&bed);
    g_assert_cmpuint(bed.frames[0], ==, 0);
    g_assert_cmphex(driver_set_gid(bed.drv[0], GID_IPV4, &old), ==, 0);
    cq_expect(bed.pair->cq[0], &wc, 1, 0);
    bed_free(&bed);
}

/* ---- QP1 ---- */

static void test_special_qps(void)
{
    Qp *qp[2], *zero, *one;
    QpConfig config;
    UdAddress ud;
    QpAttr attr;
    Bed bed;
    Wc wc;

    bed_init(&bed, 150);
    qp_attr_init(&attr);
    attr.qkey = GSI_QKEY;
    qp_config_init(&config, bed.pair->pd[0], bed.pair->cq[0]);
    one = qp_new_number(bed.drv[0], &config, 1);
    g_assert_cmphex(qp_to_init(one, &attr), ==, RDMA_HCA_STAT_BAD_PARAM);
    qp_destroy(one);
    config.service = RDMA_HCA_QP_ST_UD;
    zero = qp_new_number(bed.drv[0], &config, 0);
    g_assert_cmphex(qp_to_init(zero, &attr), ==, RDMA_HCA_STAT_BAD_INDEX);
    for (unsigned i = 0; i < 2; i++) {
        qp_config_init(&config, bed.pair->pd[i], bed.pair->cq[i]);
        config.service = RDMA_HCA_QP_ST_UD;
        qp[i] = qp_new_number(bed.drv[i], &config, 1);
        g_assert_cmphex(qp_to_init(qp[i], &attr), ==, 0);
        g_assert_cmphex(qp_to_rtr(qp[i], &attr), ==, 0);
        g_assert_cmphex(qp_to_rts(qp[i], &attr), ==, 0);
    }
    /* A management datagram; bit 31 of its Q_Key asks for the QP's own. */
    ud = ud_of(&bed, &kinds[1], 0, qp[1]);
    ud.qkey = GSI_QKEY;
    pair_post_recv(bed.pair, 1, qp[1], 4, FAR, HEADER + 256);
    post_datagram(&bed, qp[0], 0, SEND, &ud, 256);
    expect_sent(&bed, 0);
    cq_expect(bed.pair->cq[1], &wc, 4, 0);
    g_assert_cmpuint(wc.rqpn, ==, 1);
    g_assert_cmpuint(wc.byte_len, ==, HEADER + 256);
    /* An ordinary Q_Key does not reach it. */
    ud.qkey = 0x10000;
    pair_post_recv(bed.pair, 1, qp[1], 4, FAR, HEADER + 256);
    post_datagram(&bed, qp[0], 0, SEND, &ud, 256);
    expect_sent(&bed, 0);
    expect_nothing(&bed, 1);
    g_assert_cmpuint(drops(&bed, 1, HCA_DROP_QKEY), ==, 1);
    bed_free(&bed);
}

/* ---- multicast ---- */

static const uint8_t mgid4[16] = {
    [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 0x81, [14] = 2, [15] = 3
};
static const uint8_t mgid6[16] = {
    0xff, 0x0e, [12] = 0x12, [13] = 0x34, [14] = 0x56, [15] = 0x78
};

static UdAddress group_of(const uint8_t *mgid, uint8_t index)
{
    UdAddress ud = { .roce.sgid_index = index, .qkey = QKEY };

    ud_address_to_group(&ud, mgid);
    return ud;
}

/* Receives for @n datagram QPs, then how many of them came. */
static void post_receives(Bed *bed, unsigned side, Qp *const *qp, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        pair_post_recv(bed->pair, side, qp[i], 100 + i, FAR + 1000 * i, 500);
    }
}

static unsigned take_receives(Bed *bed, unsigned side)
{
    unsigned n = 0;
    Wc wc;

    run(bed);
    while (cq_poll(bed->pair->cq[side], &wc)) {
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
    Bed bed;

    bed_init(&bed, 160);
    near[0] = new_ud(&bed, 0);
    near[1] = new_ud(&bed, 0);
    far[0] = new_ud(&bed, 1);
    far[1] = new_ud(&bed, 1);
    qp_attr_init(&attr);
    far[2] = new_qp(&bed, 1, RDMA_HCA_QP_ST_UD); /* in RST */
    post_receives(&bed, 0, near, 2);
    post_receives(&bed, 1, far, 3);
    /* To nobody here; there the engine leaves it alone. */
    post_datagram(&bed, near[0], 0, SEND, &ud, 100);
    g_assert_cmpuint(take_receives(&bed, 0), ==, 0);
    g_assert_cmpuint(take_receives(&bed, 1), ==, 0);
    g_assert_cmpuint(left_alone(&bed), ==, 1);

    g_assert_cmphex(
        driver_write_mgm(bed.drv[0], 3, mgid, (const Qp *const *)near, 2), ==,
        0);
    g_assert_cmphex(
        driver_write_mgm(bed.drv[1], 63, mgid, (const Qp *const *)far, 3), ==,
        0);
    post_datagram(&bed, near[0], 0, SEND, &ud, 100);
    g_assert_cmpuint(take_receives(&bed, 0), ==, 2);
    g_assert_cmpuint(take_receives(&bed, 1), ==, 2);
    g_assert_cmpuint(hca_port_counters(bed.hca[1]->port)->rx_multicast, ==, 1);

    /* Another Q_Key; one member has left; one has no receive. */
    post_receives(&bed, 1, far, 1);
    ud.qkey++;
    post_datagram(&bed, near[0], 0, SEND, &ud, 100);
    g_assert_cmpuint(take_receives(&bed, 1), ==, 0);
    g_assert_cmpuint(drops(&bed, 1, HCA_DROP_QKEY), ==, 2);
    ud.qkey--;
    post_datagram(&bed, near[0], 0, SEND, &ud, 100);
    g_assert_cmpuint(take_receives(&bed, 1), ==, 1);
    g_assert_cmpuint(drops(&bed, 1, HCA_DROP_NO_WQE), ==, 1);
    post_receives(&bed, 1, far, 2);
    g_assert_cmphex(
        driver_write_mgm(bed.drv[1], 63, mgid, (const Qp *const *)&far[1], 1),
        ==, 0);
    post_datagram(&bed, near[0], 0, SEND, &ud, 100);
    g_assert_cmpuint(take_receives(&bed, 1), ==, 1);
    bed_free(&bed);
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
    Bed bed;

    bed_init(&bed, 161);
    qp = new_ud(&bed, 1);
    qp_attr_init(&attr);
    connect_qps(&bed, RDMA_HCA_QP_ST_RC, &attr, rc);
    g_assert_cmphex(driver_write_mgm(bed.drv[1], 0, mgid4,
                                     (const Qp *const[]) { qp, rc[1] }, 2),
                    ==, 0);
    post_receives(&bed, 1, &qp, 1);
    post_datagram(&bed, new_ud(&bed, 0), 0, SEND, &ud, 4);
    g_assert_cmpuint(take_receives(&bed, 1), ==, 1);
    /* A connection is no member, whatever the group says. */
    g_assert_cmpuint(drops(&bed, 1, HCA_DROP_SERVICE), ==, 1);
    hca_roce_parse(&good, bed.last[0], bed.last_len[0]);
    post_receives(&bed, 1, &qp, 1);

    packet = good;
    packet.dest_qp = qp->qpn;
    inject_packet(&bed, &packet);
    g_assert_cmpuint(drops(&bed, 1, HCA_DROP_QPN), ==, 1);
    /* A VLAN in which the card has no interface; its own frame come back. */
    packet = good;
    packet.has_vlan = true;
    packet.vlan_tci = 77;
    inject_packet(&bed, &packet);
    packet = good;
    memcpy(packet.smac, bed.drv[1]->gid[0].mac, sizeof(packet.smac));
    inject_packet(&bed, &packet);
    g_assert_cmpuint(left_alone(&bed), ==, 2);
    /* A single address, and the QP number of all groups. */
    packet = good;
    memcpy(packet.dgid.raw, bed.drv[1]->gid[GID_IPV4].gid, 16);
    memcpy(packet.dmac, bed.drv[1]->gid[GID_IPV4].mac, 6);
    inject_packet(&bed, &packet);
    g_assert_cmpuint(drops(&bed, 1, HCA_DROP_QPN), ==, 2);
    expect_nothing(&bed, 1);
    inject_packet(&bed, &good);
    g_assert_cmpuint(take_receives(&bed, 1), ==, 1);
    bed_free(&bed);
}

static uint8_t write_mgm(Bed *bed, uint32_t index, const uint8_t *mgid,
                         uint32_t count, const uint32_t *qpn, unsigned n)
{
    uint32_t box[RDMA_HCA_MGM_SIZE / 4] = { 0 };
    struct rdma_hca_mgm *mgm = (void *)box;

    memcpy(mgm->mgid, mgid, sizeof(mgm->mgid));
    mgm->count = GUINT32_TO_BE(count);
    for (unsigned i = 0; i < n; i++) {
        mgm->qpn[i] = GUINT32_TO_BE(qpn[i]);
    }
    return driver_cmd_in(bed->drv[0], RDMA_HCA_CMD_WRITE_MGM, box, sizeof(box),
                         index, 0);
}

static void test_mgm(void)
{
    static const uint8_t unicast[16] = { 0xfd, [15] = 1 };
    uint32_t qpn[RDMA_HCA_MGM_MAX_QPS];
    uint32_t box[RDMA_HCA_MGM_SIZE / 4];
    struct rdma_hca_mgm *mgm = (void *)box;
    Bed bed;

    bed_init(&bed, 162);
    for (unsigned i = 0; i < G_N_ELEMENTS(qpn); i++) {
        qpn[i] = 2 + i;
    }
    g_assert_cmphex(write_mgm(&bed, 64, mgid4, 1, qpn, 1), ==,
                    RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(write_mgm(&bed, 0, unicast, 1, qpn, 1), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(write_mgm(&bed, 0, mgid4, 57, qpn, 56), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    g_assert_cmphex(write_mgm(&bed, 0, mgid4, UINT32_MAX, qpn, 56), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    qpn[55] = qpn[3];
    g_assert_cmphex(write_mgm(&bed, 0, mgid4, 56, qpn, 56), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    qpn[55] = 0x100; /* of 2^8 QPs */
    g_assert_cmphex(write_mgm(&bed, 0, mgid4, 56, qpn, 56), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    qpn[55] = 0xff;
    g_assert_cmphex(write_mgm(&bed, 9, mgid4, 56, qpn, 56), ==, 0);
    g_assert_cmphex(write_mgm(&bed, 8, mgid4, 1, qpn, 1), ==,
                    RDMA_HCA_STAT_BAD_RESOURCE);
    g_assert_cmphex(write_mgm(&bed, 8, mgid6, 1, qpn, 1), ==, 0);
    g_assert_cmphex(driver_cmd_out(bed.drv[0], RDMA_HCA_CMD_READ_MGM, box,
                                   sizeof(box), 9, 0),
                    ==, 0);
    g_assert_cmpmem(mgm->mgid, 16, mgid4, 16);
    g_assert_cmpuint(GUINT32_FROM_BE(mgm->count), ==, 56);
    for (unsigned i = 0; i < G_N_ELEMENTS(qpn); i++) {
        g_assert_cmphex(GUINT32_FROM_BE(mgm->qpn[i]), ==, qpn[i]);
    }
    g_assert_cmphex(driver_cmd_out(bed.drv[0], RDMA_HCA_CMD_READ_MGM, box,
                                   sizeof(box), 64, 0),
                    ==, RDMA_HCA_STAT_BAD_INDEX);
    /* Freed, its MGID may go elsewhere. */
    g_assert_cmphex(write_mgm(&bed, 9, mgid4, 0, qpn, 0), ==, 0);
    g_assert_cmphex(write_mgm(&bed, 8, mgid4, 1, qpn, 1), ==, 0);
    bed_free(&bed);
}

/* The same on InfiniBand: a multicast LID, and a GRH that names the group. */
static void test_multicast_ib(void)
{
    UdAddress ud = { .dlid = 0xc123, .dqpn = 0xffffff, .qkey = QKEY };
    Bed bed = { .pair = pair_new(163, MR_LEN) };
    Qp *near, *far[2];

    for (unsigned i = 0; i < 2; i++) {
        bed.drv[i] = bed.pair->drv[i];
        bed.hca[i] = bed.pair->lab->host[i].hca;
    }
    near = new_ud(&bed, 0);
    far[0] = new_ud(&bed, 1);
    far[1] = new_ud(&bed, 1);
    ud.grh = true;
    memcpy(ud.dgid, mgid6, sizeof(ud.dgid));
    post_receives(&bed, 0, &near, 1);
    post_receives(&bed, 1, far, 2);
    post_datagram(&bed, near, 0, SEND, &ud, 100);
    g_assert_cmpuint(drops(&bed, 1, HCA_DROP_GROUP), ==, 1);
    g_assert_cmphex(
        driver_write_mgm(bed.drv[0], 0, mgid6, (const Qp *const *)&near, 1), ==,
        0);
    g_assert_cmphex(
        driver_write_mgm(bed.drv[1], 0, mgid6, (const Qp *const *)far, 2), ==,
        0);
    post_datagram(&bed, near, 0, SEND, &ud, 100);
    g_assert_cmpuint(take_receives(&bed, 0), ==, 1);
    g_assert_cmpuint(take_receives(&bed, 1), ==, 2);
    /* No GRH; a LID that is all; the permissive one. */
    post_receives(&bed, 1, far, 2);
    ud.grh = false;
    post_datagram(&bed, near, 0, SEND, &ud, 100);
    ud.grh = true;
    ud.dlid = 0xffff;
    post_datagram(&bed, near, 0, SEND, &ud, 100);
    g_assert_cmpuint(take_receives(&bed, 1), ==, 0);
    g_assert_cmpuint(drops(&bed, 1, HCA_DROP_LID), ==, 2);
    pair_free(bed.pair);
}

/* ---- which frames are whose ---- */

/* A Write that side 1 would execute. */
static HcaPacket good_write(Bed *bed, Qp *qp[2])
{
    HcaPacket packet;
    SendWr wr;
    Sge sge;
    Wc wc;

    wr = pair_send(bed->pair, 0, WRITE, 1, &sge, 0, 64, FAR);
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    cq_expect(bed->pair->cq[0], &wc, 1, 0);
    g_assert_cmpint(hca_roce_parse(&packet, bed->last[0], bed->last_len[0]), ==,
                    HCA_PARSE_OK);
    return packet;
}

/* Frames to other addresses are the Ethernet function's. */
static void test_foreign_addresses(void)
{
    HcaPacket good, packet;
    uint64_t received;
    QpAttr attr;
    Qp *qp[2];
    Bed bed;

    bed_init(&bed, 170);
    attr_of(&attr, &kinds[1]);
    connect_qps(&bed, RDMA_HCA_QP_ST_RC, &attr, qp);
    good = good_write(&bed, qp);
    received = hca_port_counters(bed.hca[1]->port)->rx_packets;
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
            memcpy(packet.dgid.raw, bed.drv[1]->gid[GID_VLAN_IPV4].gid, 16);
        }
        inject_packet(&bed, &packet);
        g_assert_cmpuint(left_alone(&bed), ==, i + 1);
        g_assert_cmpuint(hca_port_counters(bed.hca[1]->port)->rx_packets, ==,
                         received);
    }
    /* A priority tag is none: a duplicate, which is acknowledged. */
    packet = good;
    packet.has_vlan = true;
    packet.vlan_tci = 3 << 13;
    inject_packet(&bed, &packet);
    g_assert_cmpuint(bed.hca[1]->responder->counters.duplicates, ==, 1);
    bed_free(&bed);
}

/* To the card, but not from the QP's peer or not to the QP's address. */
static void test_foreign_peers(void)
{
    HcaPacket good, packet;
    QpAttr attr;
    Qp *qp[2];
    Bed bed;

    for (unsigned k = 1; k < G_N_ELEMENTS(kinds); k += 4) {
        bed_init(&bed, 171);
        attr_of(&attr, &kinds[k]);
        connect_qps(&bed, RDMA_HCA_QP_ST_RC, &attr, qp);
        good = good_write(&bed, qp);
        for (unsigned i = 0; i < 4; i++) {
            packet = good;
            packet.opcode = i < 2 ? HCA_WRITE_ONLY : HCA_ACK;
            packet.payload_len = i < 2 ? packet.payload_len : 0;
            packet.psn++;
            if (i % 2) {
                packet.sgid.raw[15] = 77;
            } else { /* another one of the card's */
                packet.is_ipv4 = false;
                memcpy(packet.dgid.raw, bed.drv[1]->gid[GID_IPV6].gid, 16);
                packet.sgid.raw[0] = 0xfd;
            }
            inject_packet(&bed, &packet);
            g_assert_cmpuint(drops(&bed, 1, HCA_DROP_SOURCE), ==, i + 1);
        }
        pair_check_works(bed.pair, qp, 0);
        bed_free(&bed);
    }
}

/* Frames that are no RoCE, of each length. */
static void test_ethernet(void)
{
    uint8_t frame[256];
    Bed bed;

    bed_init(&bed, 172);
    for (unsigned len = 1; len <= sizeof(frame); len++) {
        for (unsigned i = 0; i < len; i++) {
            frame[i] = g_rand_int(bed.pair->lab->rand);
        }
        if (len > 14) { /* ARP */
            frame[12] = 0x08;
            frame[13] = 0x06;
        }
        inject(&bed, frame, len);
        g_assert_cmpuint(left_alone(&bed), ==, len);
    }
    g_assert_cmpuint(hca_port_counters(bed.hca[1]->port)->rx_packets, ==, 0);
    bed_free(&bed);
}

/* The longest frame that an interface has, in both directions. */
static void test_jumbo(void)
{
    static uint8_t frame[RDMA_HCA_ETH_MAX_MTU + RDMA_HCA_ETH_HEADER_SIZE];
    Bed bed;

    bed_init(&bed, 173);
    for (unsigned i = 0; i < 100; i++) {
        inject(&bed, frame, sizeof(frame));
    }
    g_assert_cmpuint(left_alone(&bed), ==, 100);
    g_assert_true(hca_link_is_up(bed.hca[1]->link));
    bed_free(&bed);
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
    Bed bed;

    bed_init(&bed, 174);
    attr_of(&attr, &kinds[1]);
    connect_qps(&bed, RDMA_HCA_QP_ST_RC, &attr, qp);
    good = good_write(&bed, qp);
    for (unsigned i = 0; i < G_N_ELEMENTS(faults); i++) {
        uint8_t frame[HCA_LINK_MAX_PACKET];

        memcpy(frame, bed.last[0], bed.last_len[0]);
        frame[faults[i].at] ^= faults[i].mask;
        inject(&bed, frame, bed.last_len[0]);
        g_assert_cmpuint(drops(&bed, 1, faults[i].reason), ==, 1);
    }
    g_assert_cmpuint(left_alone(&bed), ==, 0);
    /* To another card it is not ours to count. */
    good.dmac[5]++;
    good.opcode = 0x40; /* RD */
    inject_packet(&bed, &good);
    g_assert_cmpuint(left_alone(&bed), ==, 1);
    good.dmac[5]--;
    inject_packet(&bed, &good);
    g_assert_cmpuint(drops(&bed, 1, HCA_DROP_PARSE_OPCODE), ==, 1);
    bed_free(&bed);
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
    Bed bed;

    bed_init(&bed, 175);
    attr_of(&attr, &kinds[1]);
    connect_qps(&bed, RDMA_HCA_QP_ST_RC, &attr, bystander);
    aside = mr_new(bed.drv[1], bed.pair->pd[1], 0x1000, 4096, 0);
    image = mr_image(aside);
    for (unsigned i = 0; i < 5000; i++) {
        GRand *rand = bed.pair->lab->rand;
        uint8_t frame[HCA_LINK_MAX_PACKET];
        HcaOpcodeFormat format;
        HcaPacket packet;
        size_t len;

        if (i % 500 == 0) { /* it may have broken: another one */
            attr_of(&attr, &kinds[i / 500 % G_N_ELEMENTS(kinds)]);
            connect_qps(&bed, RDMA_HCA_QP_ST_RC, &attr, qp);
            good_write(&bed, qp);
        }
        len = bed.last_len[0];
        memcpy(frame, bed.last[0], len);
        for (unsigned n = g_rand_int_range(rand, 1, 4); n; n--) {
            frame[g_rand_int_range(rand, 0, len)] = g_rand_int(rand);
        }
        if (i % 4 == 0) {
            len = g_rand_int_range(rand, 1, len);
        }
        if (i % 2 && !hca_roce_parse(&packet, bed.last[0], len)) {
            packet.opcode = i % 16 == 1 ? HCA_BTH_CNP : g_rand_int(rand) % 0x18;
            packet.tclass = g_rand_int(rand);
            packet.psn += g_rand_int_range(rand, -2, 3);
            packet.va += g_rand_int_range(rand, -70000, 70000);
            packet.payload_len = packet.opcode == HCA_BTH_CNP
                                     ? 0
                                     : g_rand_int_range(rand, 0, 64);
            if (packet.opcode == HCA_BTH_CNP ||
                hca_opcode_format(packet.opcode, &format)) {
                inject_packet(&bed, &packet);
            }
        } else {
            inject(&bed, frame, len);
        }
    }
    g_assert_cmpuint(bed.hca[1]->requester->counters.cnp_rx, >, 0);
    g_assert_cmpuint(bed.hca[1]->responder->counters.ecn_marked_rx, >, 0);
    mr_check_image(aside, image);
    bed.kind = NULL;
    pair_check_works(bed.pair, bystander, 0);
    pair_check_works(bed.pair, bystander, 1);
    bed_free(&bed);
}

/* ---- the port ---- */

/* There is no greeting; a port that is not enabled takes Ethernet only. */
static void test_port(void)
{
    static const uint8_t arp[60] = { [12] = 0x08, [13] = 0x06 };
    HcaPacket good;
    QpAttr attr;
    Qp *qp[2];
    Bed bed;

    bed_init(&bed, 180);
    qp_attr_init(&attr);
    connect_qps(&bed, RDMA_HCA_QP_ST_RC, &attr, qp);
    good = good_write(&bed, qp);
    lab_cable(bed.pair->lab, false);
    g_assert_cmpuint(driver_port_state(bed.drv[0]), ==, 1);
    lab_cable(bed.pair->lab, true);
    g_assert_cmpuint(driver_port_state(bed.drv[0]), ==, 4);
    run(&bed);
    g_assert_cmpuint(hca_link_counters(bed.hca[0]->link)->peers, ==, 2);
    pair_check_works(bed.pair, qp, 0);

    g_assert_cmphex(
        driver_cmd(bed.drv[1], RDMA_HCA_CMD_CLOSE_IB, 0, 1, 0, 0, NULL), ==, 0);
    inject_packet(&bed, &good);
    g_assert_cmpuint(drops(&bed, 1, HCA_DROP_PORT_DOWN), ==, 1);
    inject(&bed, arp, sizeof(arp));
    g_assert_cmpuint(left_alone(&bed), ==, 1);
    bed_free(&bed);
}

static void set_up_again(Bed *bed)
{
    Pair *pair = bed->pair;

    for (unsigned i = 0; i < 2; i++) {
        Host *host = &pair->lab->host[i];

        pair->drv[i] = bed->drv[i] = driver_new(host);
        pair->pd[i] = pd_new(pair->drv[i]);
        pair->cq[i] = cq_new(pair->drv[i], 6, 1);
        pair->mr[i] = mr_new(pair->drv[i], pair->pd[i], 0x1000, MR_LEN,
                             ACCESS_ALL);
    }
    run(bed);
}

/* After a reset, and after CLOSE_HCA, no address and no group is left. */
static void check_forgotten(bool by_reset)
{
    QpAttr attr;
    Qp *qp[2], *ud;
    Bed bed;

    bed_init(&bed, 181);
    ud = new_ud(&bed, 1);
    g_assert_cmphex(
        driver_write_mgm(bed.drv[1], 0, mgid4, (const Qp *const *)&ud, 1), ==,
        0);
    qp_attr_init(&attr);
    connect_qps(&bed, RDMA_HCA_QP_ST_RC, &attr, qp);
    good_write(&bed, qp);
    for (unsigned i = 0; i < 2; i++) {
        if (by_reset) {
            driver_free(bed.drv[i]);
            host_bar0_write(&bed.pair->lab->host[i], RDMA_HCA_RESET, 1);
            run(&bed);
        } else {
            driver_close(bed.drv[i]);
        }
        g_assert_cmpuint(bed.hca[i]->port->gids.end, ==, 0);
        g_assert_cmpuint(bed.hca[i]->port->mcast.end, ==, 0);
    }
    inject(&bed, bed.last[0], bed.last_len[0]);
    g_assert_cmpuint(left_alone(&bed), ==, 1);
    set_up_again(&bed);
    connect_qps(&bed, RDMA_HCA_QP_ST_RC, &attr, qp);
    pair_check_works(bed.pair, qp, 0);
    bed_free(&bed);
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
    pair = pair_new_with(182, MR_LEN, config, NULL, NULL);
    qp_attr_init(&attr);
    for (unsigned i = 0; i < 2; i++) {
        qp_config_init(&qp_config, pair->pd[i], pair->cq[i]);
        qp[i] = qp_new_number(pair->drv[i], &qp_config, qps - 1);
        /* The highest number is the first in the list, the next one the last. */
        free_mpts = pair->drv[i]->free_mpts;
        g_array_append_val(free_mpts, g_array_index(free_mpts, uint32_t, 0));
        g_array_remove_index(free_mpts, 0);
        pair->mr[i] = mr_new(pair->drv[i], pair->pd[i], 0x1000, MR_LEN,
                             ACCESS_ALL);
        g_assert_cmphex(pair->mr[i]->key & (mpts - 1), ==, mpts - 1);
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

static void add_paths(void)
{
    static const uint8_t mtus[] = { 1, 3, 5 };

    for (unsigned k = 0; k < G_N_ELEMENTS(kinds); k++) {
        const Kind *kind = &kinds[k];
        g_autofree char *atomic = g_strdup_printf("/roce/atomic/%s",
                                                  kind->name);
        g_autofree char *ud = g_strdup_printf("/roce/ud/%s", kind->name);
        g_autofree char *self = g_strdup_printf("/roce/loopback/%s",
                                                kind->name);
        g_autofree char *fields = g_strdup_printf("/roce/path-fields/%s",
                                                  kind->name);

        for (unsigned i = 0; i < 2 * G_N_ELEMENTS(mtus); i++) {
            PathCase c = {
                .kind = kind,
                .service = i % 2 ? RDMA_HCA_QP_ST_UC : RDMA_HCA_QP_ST_RC,
                .mtu = mtus[i / 2],
            };
            g_autofree char *path = g_strdup_printf("/roce/%s/%s/mtu%u",
                                                    i % 2 ? "uc" : "rc",
                                                    kind->name, 128u << c.mtu);

            g_test_add_data_func_full(path, g_memdup2(&c, sizeof(c)), test_path,
                                      g_free);
        }
        g_test_add_data_func(atomic, kind, test_path_atomic);
        g_test_add_data_func(ud, kind, test_datagram);
        g_test_add_data_func(self, kind, test_loopback);
        g_test_add_data_func(fields, kind, test_path_fields);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add_paths();
    g_test_add_func("/roce/flows", test_flows);
    g_test_add_func("/roce/loopback-ends", test_loopback_ends);
    g_test_add_func("/roce/gid/set", test_set_gid);
    g_test_add_func("/roce/gid/source-index", test_source_index);
    g_test_add_func("/roce/gid/datagram-source", test_datagram_source);
    g_test_add_func("/roce/gid/changes", test_gid_changes);
    g_test_add_func("/roce/queries", test_queries);
    g_test_add_func("/roce/special-qps", test_special_qps);
    g_test_add_func("/roce/multicast/members", test_multicast);
    g_test_add_func("/roce/multicast/refused", test_multicast_refused);
    g_test_add_func("/roce/multicast/commands", test_mgm);
    g_test_add_func("/roce/multicast/infiniband", test_multicast_ib);
    g_test_add_func("/roce/sort/addresses", test_foreign_addresses);
    g_test_add_func("/roce/sort/peers", test_foreign_peers);
    g_test_add_func("/roce/sort/ethernet", test_ethernet);
    g_test_add_func("/roce/sort/jumbo", test_jumbo);
    g_test_add_func("/roce/sort/malformed", test_malformed);
    g_test_add_func("/roce/sort/noise", test_noise);
    g_test_add_func("/roce/port", test_port);
    g_test_add_func("/roce/reset", test_reset);
    g_test_add_func("/roce/config", test_config);
    g_test_add_func("/roce/sizes", test_sizes);
    return g_test_run();
}
