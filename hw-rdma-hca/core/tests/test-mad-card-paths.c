/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a manager gives a port, as packets show it: LIDs and path bits, SLs and
 * VLs, P_Keys, GIDs; who is told of it, and how the port tells its manager.
 */
#include <string.h>

#include "lib-subnet.h"

#define PKEYS 0x16
#define GUIDS 0x14
#define SL_TO_VL 0x17
#define PORT_INFO 0x15
#define QKEY 0x11111111
#define MNG(name) RDMA_HCA_PORT_MNG_##name

static uint16_t slid(const SubnetFrame *frame)
{
    return get_be16(frame->data + 6);
}

static uint64_t count(const Subnet *s, unsigned side, const char *name)
{
    return pair_counter(s->pair, side, name);
}

static void post(Subnet *s, unsigned side, Qp *qp)
{
    pair_post_recv(s->pair, side, qp, 8, SUBNET_DATA + 4096, 1024);
}

/* ---- LIDs ---- */

static void set_lmc(Subnet *s, uint16_t lid0, uint16_t lid1, uint8_t lmc)
{
    subnet_bring_up(s);
    subnet_set_lid(s, 0, lid0, lmc);
    subnet_set_lid(s, 1, lid1, lmc);
}

/* All LIDs of a port arrive, from all LIDs of the other; and no more. */
static void test_lmc(gconstpointer data)
{
    uint8_t lmc = GPOINTER_TO_UINT(data);
    unsigned lids = 1u << lmc;
    Subnet *s = subnet_new(9101 + lmc);
    Qp *qp[2];
    UdAddress to;
    Wc wc;

    set_lmc(s, 0x400, 0x800, lmc);
    qp[0] = subnet_ud(s, 0);
    qp[1] = subnet_ud(s, 1);
    to = (UdAddress) { .dqpn = qp[1]->qpn, .qkey = QKEY };
    for (unsigned i = 0; i < lids; i++) {
        SubnetFrame *frame;

        to.dlid = 0x800 + i;
        to.path_bits = (i * 5 + 3) % lids;
        post(s, 1, qp[1]);
        subnet_watch(s);
        subnet_send_data(s, qp[0], &to);
        g_assert_true(subnet_receive_data(s, qp[1], &wc));
        g_assert_cmpuint(wc.path_bits, ==, i);
        g_assert_cmphex(wc.rlid, ==, 0x400 + to.path_bits);
        frame = subnet_next_frame(s, 0);
        g_assert_cmphex(slid(frame), ==, 0x400 + to.path_bits);
        g_free(frame);
    }
    for (unsigned i = 0; i < 2; i++) {
        uint64_t drops = pair_drops(s->pair, 1, HCA_DROP_LID);

        to.dlid = i ? 0x800 + lids : 0x7ff;
        subnet_send_data(s, qp[0], &to);
        g_assert_cmpuint(pair_drops(s->pair, 1, HCA_DROP_LID), ==, drops + 1);
    }
    subnet_free(s);
}

/* Path bits beyond the LMC do not count, nor do those of the LID itself. */
static void test_lmc_bits(void)
{
    Subnet *s = subnet_new(9110);
    Qp *qp[2];
    UdAddress to;
    Wc wc;

    set_lmc(s, 0x403, 0x802, 2);
    qp[0] = subnet_ud(s, 0);
    qp[1] = subnet_ud(s, 1);
    to = (UdAddress) { .dqpn = qp[1]->qpn, .qkey = QKEY };
    for (unsigned i = 0; i < 128; i++) {
        to.dlid = 0x800 + i % 4;
        to.path_bits = i;
        post(s, 1, qp[1]);
        subnet_send_data(s, qp[0], &to);
        g_assert_true(subnet_receive_data(s, qp[1], &wc));
        g_assert_cmpuint(wc.path_bits, ==, i % 4);
        g_assert_cmphex(wc.rlid, ==, 0x400 + i % 4);
    }
    subnet_free(s);
}

/* A connection along other than the base LIDs, and to itself. */
static void test_lmc_rc(void)
{
    Subnet *s = subnet_new(9111);
    Qp *qp[2];

    set_lmc(s, 0x400, 0x800, 3);
    for (unsigned i = 0; i < 8; i++) {
        for (unsigned side = 0; side < 2; side++) {
            qp[side] = pair_new_qp(s->pair, side, RDMA_HCA_QP_ST_RC);
        }
        for (unsigned side = 0; side < 2; side++) {
            QpAttr attr;

            qp_attr_init(&attr);
            attr.dest_qpn = qp[!side]->qpn;
            attr.dlid = side ? 0x400 + i : 0x800 + (7 - i);
            attr.path_bits = side ? 7 - i : i;
            qp_bring_up(qp[side], &attr);
        }
        pair_check_works(s->pair, qp, 0);
        pair_check_works(s->pair, qp, 1);
        qp_destroy(qp[0]);
        qp_destroy(qp[1]);
    }
    g_assert_cmpuint(pair_drops(s->pair, 0, HCA_DROP_SOURCE), ==, 0);
    subnet_free(s);
}

/* Each of one's own LIDs turns round. */
static void test_lmc_loopback(void)
{
    Subnet *s = subnet_new(9112);
    UdAddress to;
    Qp *qp;
    Wc wc;

    set_lmc(s, 0x400, 0x800, 3);
    qp = subnet_ud(s, 0);
    subnet_watch(s);
    for (unsigned i = 0; i < 8; i++) {
        to = (UdAddress) { .dlid = 0x400 + i, .dqpn = qp->qpn, .qkey = QKEY };
        post(s, 0, qp);
        subnet_send_data(s, qp, &to);
        g_assert_true(subnet_receive_data(s, qp, &wc));
        g_assert_cmpuint(wc.path_bits, ==, i);
    }
    subnet_no_frames(s);
    subnet_free(s);
}

/* The LID changes under a QP: what comes to the old one is nobody's. */
static void test_lid_moves(void)
{
    Subnet *s = subnet_new(9113);

    subnet_bring_up(s);
    subnet_set_lid(s, 1, 0x777, 0);
    g_assert_false(subnet_passes(s, 0, SUBNET_LID(1)));
    g_assert_true(subnet_passes(s, 0, 0x777));
    g_assert_true(subnet_passes(s, 1, SUBNET_LID(0)));
    subnet_free(s);
}

/* ---- SL and VL ---- */

/* VL of what side 0 sends with @sl; -1: nothing left. */
static int vl_of(Subnet *s, Qp *qp[2], uint8_t sl)
{
    UdAddress to = {
        .dlid = SUBNET_LID(1), .dqpn = qp[1]->qpn, .qkey = QKEY, .sl = sl
    };
    SubnetFrame *frame;
    int vl;
    Wc wc;

    post(s, 1, qp[1]);
    subnet_watch(s);
    subnet_send_data(s, qp[0], &to);
    if (!s->frames.length) {
        g_assert_false(subnet_receive_data(s, qp[1], &wc));
        return -1;
    }
    g_assert_true(subnet_receive_data(s, qp[1], &wc));
    g_assert_cmpuint(wc.sl, ==, sl);
    frame = subnet_next_frame(s, 0);
    g_assert_cmpuint(frame->data[1] >> 4, ==, sl);
    vl = subnet_frame_vl(frame);
    g_free(frame);
    return vl;
}

static void test_sl_to_vl(void)
{
    static const uint8_t map[16] = { 0, 1, 2, 3, 4, 5,  6,  7,
                                     7, 6, 5, 4, 8, 14, 15, 0 };
    Subnet *s = subnet_new(9120);
    uint8_t table[64] = { 0 };
    uint64_t lost;
    Qp *qp[2];

    subnet_bring_up(s);
    qp[0] = subnet_ud(s, 0);
    qp[1] = subnet_ud(s, 1);
    for (unsigned i = 0; i < 8; i++) {
        table[i] = map[2 * i] << 4 | map[2 * i + 1];
    }
    for (unsigned sl = 0; sl < 16; sl++) {
        g_assert_cmpint(vl_of(s, qp, sl), ==, 0);
    }
    g_assert_cmphex(subnet_set_own(s, 0, SL_TO_VL, 0, table), ==, 0);
    lost = count(s, 0, "port_tx_unreachable");
    for (unsigned sl = 0; sl < 16; sl++) {
        g_assert_cmpint(vl_of(s, qp, sl), ==, map[sl] < 8 ? map[sl] : -1);
    }
    g_assert_cmpuint(count(s, 0, "port_tx_unreachable"), ==, lost + 3);
    subnet_free(s);
}

static void test_operational_vls(void)
{
    static const uint8_t vls[] = { 0, 1, 2, 4, 8 };
    Subnet *s = subnet_new(9121);
    uint8_t table[64], info[64];
    Qp *qp[2];

    subnet_bring_up(s);
    qp[0] = subnet_ud(s, 0);
    qp[1] = subnet_ud(s, 1);
    for (unsigned i = 0; i < 8; i++) {
        table[i] = 0x11 * (2 * i) + 1;
    }
    g_assert_cmphex(subnet_set_own(s, 0, SL_TO_VL, 0, table), ==, 0);
    for (unsigned code = 4; code; code--) {
        subnet_port_info(s, 0, info);
        info[43] = (info[43] & 0x0f) | code << 4;
        subnet_set_port_info(s, 0, info);
        for (int sl = 0; sl < 16; sl++) {
            g_assert_cmpint(vl_of(s, qp, sl), ==, sl < vls[code] ? sl : -1);
        }
    }
    subnet_free(s);
}

/* What answers goes by the map of its own port. */
static void test_vl_of_answers(void)
{
    Subnet *s = subnet_new(9122);
    uint8_t table[64] = { 0 };
    SubnetFrame *frame;
    QpAttr attr;
    Qp *qp[2];

    subnet_bring_up(s);
    table[3] = 0x05; /* SL 6: VL 0, SL 7: VL 5 */
    g_assert_cmphex(subnet_set_own(s, 1, SL_TO_VL, 0, table), ==, 0);
    for (unsigned side = 0; side < 2; side++) {
        qp[side] = pair_new_qp(s->pair, side, RDMA_HCA_QP_ST_RC);
    }
    for (unsigned side = 0; side < 2; side++) {
        qp_attr_init(&attr);
        attr.dest_qpn = qp[!side]->qpn;
        attr.dlid = SUBNET_LID(!side);
        attr.sl = 7;
        qp_bring_up(qp[side], &attr);
    }
    subnet_watch(s);
    pair_check_works(s->pair, qp, 0);
    frame = subnet_next_frame(s, 0);
    g_assert_cmpuint(subnet_frame_vl(frame), ==, 0);
    g_free(frame);
    frame = subnet_next_frame(s, 1);
    g_assert_cmpuint(subnet_frame_vl(frame), ==, 5);
    g_assert_cmpuint(frame->data[1] >> 4, ==, 7);
    g_free(frame);
    subnet_free(s);
}

/* ---- P_Keys ---- */

static void set_pkey(Subnet *s, unsigned side, unsigned index, uint16_t key)
{
    uint8_t table[64];

    memcpy(table, subnet_get_own(s, side, PKEYS, 0), 64);
    put_be16(table + 2 * index, key);
    g_assert_cmphex(subnet_set_own(s, side, PKEYS, 0, table), ==, 0);
}

static Qp *ud_with_pkey(Subnet *s, unsigned side, uint8_t index)
{
    Qp *qp = pair_new_qp(s->pair, side, RDMA_HCA_QP_ST_UD);
    QpAttr attr;

    qp_attr_init(&attr);
    attr.pkey_index = index;
    qp_bring_up(qp, &attr);
    return qp;
}

static bool arrives(Subnet *s, Qp *qp[2])
{
    UdAddress to = { .dlid = SUBNET_LID(1), .dqpn = qp[1]->qpn, .qkey = QKEY };
    Wc wc;

    post(s, 1, qp[1]);
    subnet_send_data(s, qp[0], &to);
    return subnet_receive_data(s, qp[1], &wc);
}

/* A QP has an index; its key is what the table has there now. */
static void test_pkeys(void)
{
    Subnet *s = subnet_new(9130);
    uint64_t lost;
    QpAttr attr;
    Qp *qp[2], *bad;

    subnet_bring_up(s);
    qp[0] = ud_with_pkey(s, 0, 3);
    qp[1] = ud_with_pkey(s, 1, 31);
    bad = pair_new_qp(s->pair, 0, RDMA_HCA_QP_ST_UD);
    qp_attr_init(&attr);
    attr.pkey_index = 32;
    g_assert_cmphex(qp_to_init(bad, &attr), ==, RDMA_HCA_STAT_BAD_PARAM);
    lost = count(s, 0, "port_tx_unreachable");
    g_assert_false(arrives(s, qp));
    g_assert_cmpuint(count(s, 0, "port_tx_unreachable"), ==, lost + 1);
    set_pkey(s, 0, 3, 0x8abc);
    g_assert_false(arrives(s, qp));
    g_assert_cmpuint(pair_drops(s->pair, 1, HCA_DROP_PKEY), ==, 1);
    set_pkey(s, 1, 31, 0x0abc);
    g_assert_true(arrives(s, qp));
    set_pkey(s, 0, 3, 0x0abc); /* two limited members */
    g_assert_false(arrives(s, qp));
    set_pkey(s, 1, 31, 0x8abc);
    g_assert_true(arrives(s, qp));
    g_assert_cmpuint(pair_drops(s->pair, 1, HCA_DROP_PKEY), ==, 2);
    g_assert_cmpuint(subnet_node_port(s, 1)->info.p_key_violations, ==, 2);
    subnet_free(s);
}

/* 0x8000 and 0 are no keys, though a manager may write them. */
static void test_pkeys_invalid(void)
{
    Subnet *s = subnet_new(9131);
    Qp *qp[2];

    subnet_bring_up(s);
    qp[0] = ud_with_pkey(s, 0, 1);
    qp[1] = ud_with_pkey(s, 1, 1);
    for (unsigned side = 0; side < 2; side++) {
        set_pkey(s, side, 1, 0x8000);
    }
    g_assert_false(arrives(s, qp));
    subnet_free(s);
}

/* ---- GIDs ---- */

#define ALIAS UINT64_C(0x0a0b0c0d0e0f1011)
#define PREFIX UINT64_C(0xfec0000000000077)
#define LOCAL UINT64_C(0xfe80000000000000)

static void set_guid(Subnet *s, unsigned side, unsigned index, uint64_t guid)
{
    uint8_t table[64];

    memcpy(table, subnet_get_own(s, side, GUIDS, 0), 64);
    put_be64(table + 8 * index, guid);
    g_assert_cmphex(subnet_set_own(s, side, GUIDS, 0, table), ==, 0);
}

static void set_prefix(Subnet *s, unsigned side, uint64_t prefix)
{
    uint8_t info[64];

    subnet_port_info(s, side, info);
    put_be64(info + 8, prefix);
    subnet_set_port_info(s, side, info);
}

static void put_gid(uint8_t gid[16], uint64_t prefix, uint64_t guid)
{
    put_be64(gid, prefix);
    put_be64(gid + 8, guid);
}

/* To a GID of side 1, from entry @source of side 0; the GRH that came. */
static bool arrives_with_grh(Subnet *s, Qp *qp[2], uint8_t source,
                             uint64_t prefix, uint64_t guid,
                             uint8_t grh[SUBNET_GRH])
{
    UdAddress to = { .dlid = SUBNET_LID(1),
                     .dqpn = qp[1]->qpn,
                     .qkey = QKEY,
                     .grh = true,
                     .tclass = 0x5a,
                     .roce = { .sgid_index = source, .hop_limit = 9 } };
    Wc wc;

    put_gid(to.dgid, prefix, guid);
    post(s, 1, qp[1]);
    subnet_send_data(s, qp[0], &to);
    if (!subnet_receive_data(s, qp[1], &wc)) {
        return false;
    }
    g_assert_true(wc.grh);
    mr_read(s->pair->mr[1], SUBNET_DATA + 4096, grh, SUBNET_GRH);
    g_assert_cmphex(get_be64(grh + 24), ==, prefix);
    g_assert_cmphex(get_be64(grh + 32), ==, guid);
    return true;
}

static void test_gids(void)
{
    Subnet *s = subnet_new(9140);
    uint64_t guid[2], drops;
    uint8_t grh[SUBNET_GRH];
    Qp *qp[2];

    subnet_bring_up(s);
    for (unsigned side = 0; side < 2; side++) {
        guid[side] = s->lab->host[side].config.guid;
        qp[side] = subnet_ud(s, side);
    }
    g_assert_true(arrives_with_grh(s, qp, 0, LOCAL, guid[1], grh));
    g_assert_cmphex(get_be64(grh + 16), ==, guid[0]);
    drops = pair_drops(s->pair, 1, HCA_DROP_LID);
    g_assert_false(arrives_with_grh(s, qp, 0, LOCAL, ALIAS, grh));
    g_assert_cmpuint(pair_drops(s->pair, 1, HCA_DROP_LID), ==, drops + 1);
    set_guid(s, 1, 2, ALIAS);
    g_assert_true(arrives_with_grh(s, qp, 0, LOCAL, ALIAS, grh));
    set_guid(s, 0, 7, ALIAS + 1);
    g_assert_true(arrives_with_grh(s, qp, 7, LOCAL, ALIAS, grh));
    g_assert_cmphex(get_be64(grh + 8), ==, LOCAL);
    g_assert_cmphex(get_be64(grh + 16), ==, ALIAS + 1);
    set_guid(s, 1, 2, 0);
    g_assert_false(arrives_with_grh(s, qp, 0, LOCAL, ALIAS, grh));
    subnet_free(s);
}

/* All GIDs have the prefix; the link-local one is always heard (IBA 4.1.1). */
static void test_prefix(void)
{
    Subnet *s = subnet_new(9141);
    uint64_t guid = s->lab->host[1].config.guid;
    uint8_t grh[SUBNET_GRH];
    Qp *qp[2];

    subnet_bring_up(s);
    qp[0] = subnet_ud(s, 0);
    qp[1] = subnet_ud(s, 1);
    set_guid(s, 1, 1, ALIAS);
    g_assert_false(arrives_with_grh(s, qp, 0, PREFIX, guid, grh));
    set_prefix(s, 1, PREFIX);
    set_prefix(s, 0, PREFIX);
    g_assert_true(arrives_with_grh(s, qp, 0, PREFIX, guid, grh));
    g_assert_cmphex(get_be64(grh + 8), ==, PREFIX);
    g_assert_true(arrives_with_grh(s, qp, 0, PREFIX, ALIAS, grh));
    g_assert_true(arrives_with_grh(s, qp, 0, LOCAL, guid, grh));
    g_assert_true(arrives_with_grh(s, qp, 0, LOCAL, ALIAS, grh));
    g_assert_false(arrives_with_grh(s, qp, 0, PREFIX + 1, guid, grh));
    subnet_free(s);
}

/* A source that there is not: a UD request ends in an error. */
static void test_no_source(void)
{
    Subnet *s = subnet_new(9142);
    UdAddress to = { .dlid = SUBNET_LID(1), .dqpn = 5, .grh = true };
    SendWr wr;
    Sge sge;
    Qp *qp;
    Wc wc;

    subnet_bring_up(s);
    qp = subnet_ud(s, 0);
    to.roce.sgid_index = 4;
    wr = pair_send(s->pair, 0, RDMA_HCA_OPCODE_SEND, 6, &sge, SUBNET_DATA, 10,
                   0);
    wr.ud = &to;
    g_assert_true(qp_post_send(qp, &wr, 1));
    cq_expect(s->pair->cq[0], &wc, 6, RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR);
    g_assert_cmpuint(count(s, 0, "send_wqe_bad_address"), ==, 1);
    subnet_free(s);
}

/* A connection by alias GIDs, both ways. */
static void test_gids_rc(void)
{
    Subnet *s = subnet_new(9143);
    Qp *qp[2];

    subnet_bring_up(s);
    set_guid(s, 0, 3, ALIAS);
    set_guid(s, 1, 5, ALIAS + 1);
    for (unsigned side = 0; side < 2; side++) {
        qp[side] = pair_new_qp(s->pair, side, RDMA_HCA_QP_ST_RC);
    }
    for (unsigned side = 0; side < 2; side++) {
        QpAttr attr;

        qp_attr_init(&attr);
        attr.dest_qpn = qp[!side]->qpn;
        attr.dlid = SUBNET_LID(!side);
        attr.grh = true;
        attr.roce.sgid_index = side ? 5 : 3;
        put_gid(attr.dgid, LOCAL, side ? ALIAS : ALIAS + 1);
        qp_bring_up(qp[side], &attr);
    }
    pair_check_works(s->pair, qp, 0);
    pair_check_works(s->pair, qp, 1);
    g_assert_cmpuint(pair_drops(s->pair, 0, HCA_DROP_SOURCE), ==, 0);
    g_assert_cmpuint(pair_drops(s->pair, 1, HCA_DROP_SOURCE), ==, 0);
    subnet_free(s);
}

/* ---- events ---- */

static void change_field(Subnet *s, unsigned byte, uint8_t mask, uint8_t value)
{
    uint8_t info[64];

    subnet_port_info(s, 1, info);
    info[byte] = (info[byte] & ~mask) | value;
    subnet_set_port_info(s, 1, info);
}

/* Each change by a manager is told, by its bit; what is no change is not. */
static void test_events(void)
{
    static const struct {
        unsigned byte;
        uint8_t mask, value;
        uint32_t changes;
    } sets[] = {
        { 17, 0xff, 0x33, MNG(LID) },  { 34, 0x07, 0x02, MNG(LID) },
        { 19, 0xff, 0x44, MNG(SM) },   { 36, 0x0f, 0x03, MNG(SM) },
        { 15, 0xff, 0x55, MNG(GIDS) }, { 51, 0x80, 0x80, MNG(REREGISTER) },
        { 51, 0x1f, 0x11, 0 },         { 38, 0xff, 0x11, 0 },
        { 27, 0xff, 0x11, 0 },
    };
    Subnet *s = subnet_new(9150);

    subnet_bring_up(s);
    g_assert_cmphex(subnet_changes(s, 1), ==, MNG(LID) | MNG(SM));
    for (unsigned i = 0; i < G_N_ELEMENTS(sets); i++) {
        change_field(s, sets[i].byte, sets[i].mask, sets[i].value);
        g_assert_cmphex(subnet_changes(s, 1), ==, sets[i].changes);
        if (sets[i].changes != MNG(REREGISTER)) {
            change_field(s, sets[i].byte, sets[i].mask, sets[i].value);
            g_assert_cmphex(subnet_changes(s, 1), ==, 0);
        }
    }
    set_pkey(s, 1, 4, 0x8123);
    g_assert_cmphex(subnet_changes(s, 1), ==, MNG(PKEYS));
    set_pkey(s, 1, 4, 0x8123);
    g_assert_cmphex(subnet_changes(s, 1), ==, 0);
    set_guid(s, 1, 4, 0x8123);
    g_assert_cmphex(subnet_changes(s, 1), ==, MNG(GIDS));
    subnet_set_state(s, 1, HCA_PORT_ARMED); /* PORT_CHANGE tells of states */
    g_assert_cmphex(subnet_changes(s, 1), ==, 0);
    subnet_free(s);
}

/* While the queue is full they become one. */
static void test_events_join(void)
{
    Subnet *s = subnet_new(9151);
    Driver *drv = s->pair->drv[1];
    unsigned n = 0, entries = 1u << drv->eq[EQ_ASYNC].log_size;
    struct rdma_hca_eqe eqe;
    uint32_t changes = 0;

    subnet_bring_up(s);
    subnet_changes(s, 1);
    for (unsigned i = 0; i < entries + 20; i++) {
        set_pkey(s, 1, 2, 0x8000 + i + 1);
    }
    set_guid(s, 1, 3, ALIAS);
    lab_run(s->lab);
    g_assert_cmpuint(count(s, 1, "cxtmgt_events_waiting"), ==, 1);
    while (driver_event(drv, RDMA_HCA_EVENT_PORT_MNG, &eqe)) {
        lab_run(s->lab);
        changes |= GUINT32_FROM_LE(eqe.port.changes);
        n++;
    }
    g_assert_cmpuint(n, ==, entries + 1);
    g_assert_cmphex(changes, ==, MNG(PKEYS) | MNG(GIDS));
    g_assert_cmpuint(count(s, 1, "cxtmgt_event_port_mng"), >=, n);
    subnet_free(s);
}

/* The driver looks up what it was told of: the tables have it. */
static void test_events_after(void)
{
    Subnet *s = subnet_new(9152);
    struct rdma_hca_port port;

    subnet_bring_up(s);
    set_pkey(s, 1, 30, 0x8123);
    set_guid(s, 1, 6, ALIAS);
    g_assert_cmphex(subnet_changes(s, 1), !=, 0);
    subnet_query(s, 1, &port);
    g_assert_cmphex(
        RDMA_HCA_GET(RDMA_HCA_PORT_PKEY(30), GUINT32_FROM_BE(port.pkeys[15])),
        ==, 0x8123);
    g_assert_cmphex(GUINT32_FROM_BE(port.guids[6].h), ==, RDMA_HCA_HI32(ALIAS));
    g_assert_cmphex(GUINT32_FROM_BE(port.guids[6].l), ==, RDMA_HCA_LO32(ALIAS));
    subnet_free(s);
}

/* ---- traps ---- */

static void violate(Subnet *s, bool qkey)
{
    Qp *qp[2] = { subnet_ud(s, 0), subnet_ud(s, 1) };
    UdAddress to = { .dlid = SUBNET_LID(1),
                     .dqpn = qp[1]->qpn,
                     .qkey = qkey ? 0x22222222 : QKEY };

    if (!qkey) {
        qp_destroy(qp[0]);
        set_pkey(s, 0, 1, 0x8777);
        qp[0] = ud_with_pkey(s, 0, 1);
    }
    subnet_send_data(s, qp[0], &to);
    qp_destroy(qp[0]);
    qp_destroy(qp[1]);
}

/* To the manager, on VL 15, until it is repressed. */
static void test_traps(gconstpointer data)
{
    bool qkey = GPOINTER_TO_UINT(data);
    Subnet *s = subnet_new(9160);
    UdAddress to = subnet_to_smi(SUBNET_LID(1));
    uint8_t mad[HCA_MAD_SIZE], again[HCA_MAD_SIZE];
    SubnetFrame *frame;
    Wc wc;

    subnet_bring_up(s);
    subnet_watch(s);
    violate(s, qkey);
    g_free(subnet_next_frame(s, 0));
    g_assert_true(subnet_receive(s, 0, SUBNET_SMI, &wc, NULL, mad));
    g_assert_cmphex(wc.rlid, ==, SUBNET_LID(1));
    g_assert_cmpuint(wc.rqpn, ==, 0);
    g_assert_cmpmem(mad, 4, "\1\1\1\5", 4);
    g_assert_cmpuint(get_be16(mad + 16), ==, 2);
    g_assert_cmpuint(get_be16(mad + 68), ==, qkey ? 258 : 257);
    g_assert_cmphex(get_be16(mad + 70), ==, SUBNET_LID(1));
    g_assert_cmphex(get_be16(mad + 76), ==, SUBNET_LID(0)); /* LID1, LID2 */
    g_assert_cmphex(get_be16(mad + 78), ==, SUBNET_LID(1));
    g_assert_cmphex(get_be32(mad + 80), ==, qkey ? 0x22222222 : 0x8777);
    frame = subnet_next_frame(s, 1);
    g_assert_cmpuint(subnet_frame_vl(frame), ==, 15);
    g_assert_cmphex(get_be16(frame->data + 2), ==, SUBNET_LID(0));
    g_assert_cmphex(slid(frame), ==, SUBNET_LID(1));
    g_free(frame);
    /* The same again after 4.096 us * 2^18. */
    g_assert_true(subnet_receive(s, 0, SUBNET_SMI, &wc, NULL, again));
    g_assert_cmpmem(mad, sizeof(mad), again, sizeof(again));
    mad[3] = HCA_METHOD_TRAP_REPRESS;
    subnet_send(s, 0, SUBNET_SMI, &to, mad);
    lab_sleep(s->lab, 60 * NS_PER_S);
    subnet_expect_none(s, 0, SUBNET_SMI);
    g_assert_cmpuint(count(s, 1, "mgmt_traps_repressed"), ==, 1);
    g_assert_cmpuint(count(s, 1, "mgmt_traps"), ==, 2);
    subnet_free(s);
}

/* SET_IB of a card that is managed: trap 144. */
static void test_trap_144(void)
{
    struct rdma_hca_set_ib set = { .cap_mask = GUINT32_TO_BE(2) };
    Subnet *s = subnet_new(9161);
    uint8_t mad[HCA_MAD_SIZE];
    Wc wc;

    subnet_bring_up(s);
    for (unsigned i = 0; i < 2; i++) { /* again is no change */
        g_assert_cmphex(driver_cmd_in(s->pair->drv[1], RDMA_HCA_CMD_SET_IB,
                                      &set, sizeof(set), 1, 0),
                        ==, 0);
    }
    g_assert_true(subnet_receive(s, 0, SUBNET_SMI, &wc, NULL, mad));
    g_assert_cmpuint(get_be16(mad + 68), ==, 144);
    g_assert_cmphex(get_be32(mad + 80) & 2, ==, 2);
    g_assert_cmpuint(count(s, 1, "mgmt_traps_waiting"), ==, 1);
    subnet_free(s);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned lmc = 0; lmc < 8; lmc++) {
        test_add_data(test_named("/mad/card/lid/lmc/%u", lmc),
                      GUINT_TO_POINTER(lmc), test_lmc);
    }
    test_add("/mad/card/lid/bits", test_lmc_bits);
    test_add("/mad/card/lid/rc", test_lmc_rc);
    test_add("/mad/card/lid/loopback", test_lmc_loopback);
    test_add("/mad/card/lid/moves", test_lid_moves);
    test_add("/mad/card/vl/map", test_sl_to_vl);
    test_add("/mad/card/vl/operational", test_operational_vls);
    test_add("/mad/card/vl/answers", test_vl_of_answers);
    test_add("/mad/card/pkey/table", test_pkeys);
    test_add("/mad/card/pkey/invalid", test_pkeys_invalid);
    test_add("/mad/card/gid/alias", test_gids);
    test_add("/mad/card/gid/prefix", test_prefix);
    test_add("/mad/card/gid/none", test_no_source);
    test_add("/mad/card/gid/rc", test_gids_rc);
    test_add("/mad/card/event/each", test_events);
    test_add("/mad/card/event/join", test_events_join);
    test_add("/mad/card/event/after", test_events_after);
    test_add_data("/mad/card/trap/257", GUINT_TO_POINTER(false), test_traps);
    test_add_data("/mad/card/trap/258", GUINT_TO_POINTER(true), test_traps);
    test_add("/mad/card/trap/144", test_trap_144);
    return g_test_run();
}
