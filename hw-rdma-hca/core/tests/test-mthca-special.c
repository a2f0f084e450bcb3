/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QP 0 and QP 1 of cards with the interface of an InfiniHost III Lx: packets whose
 * headers software has written.
 */
#include <string.h>

#include "../cxtmgt/cxtmgt.h"
#include "lib-card.h"
#include "lib-mthca-pair.h"
#include "lib-test.h"

#define SMI_QPN 0x00000au
#define GSI_QPN 0x00000cu
#define HEADERS 0 /* in the region for data; */
#define PAYLOAD 4096
#define RECEIVED 8192
#define GRH 40
#define LID(side) (1 + (side))

typedef struct Bed {
    MthcaPair pair;
    bool smi; /* QP 0, or QP 1 */
    uint32_t sent, received;
} Bed;

static HcaSpecial special_of(const Bed *bed)
{
    return bed->smi ? HCA_SPECIAL_SMI : HCA_SPECIAL_GSI;
}

static uint8_t conf(Mthca *m, const Bed *bed, uint32_t qpn)
{
    return mthca_cmd(m, RDMA_HCA_CMD_CONF_SPECIAL_QP, 0, qpn, !bed->smi, 0,
                     NULL);
}

static void open_side(Bed *bed, unsigned side)
{
    MthcaSide *s = &bed->pair.side[side];

    mthca_side_open(s, &bed->pair.lab->host[side], MTHCA_QPC_SERVICE_MLX,
                    false);
    s->qp.qpn = bed->smi ? SMI_QPN : GSI_QPN;
    mthca_must(conf(s->m, bed, s->qp.qpn));
    mthca_must(mthca_qp_to_init(s->m, &s->qp));
    mthca_must(mthca_qp_to_rtr(s->m, &s->qp, 0, 0));
    mthca_must(mthca_qp_to_rts(s->m, &s->qp));
}

static void bed_init(Bed *bed, bool smi, uint32_t latency)
{
    HcaConfig config[2];

    *bed = (Bed) { .smi = smi };
    for (unsigned side = 0; side < 2; side++) {
        lab_config(&config[side], side);
        config[side].personality = HCA_PERSONALITY_MTHCA;
        config[side].memory_latency_ns = latency;
        config[side].num_pkeys = 2;
        config[side].pkeys[1] = 0x8123;
        config[side].lid = LID(side);
    }
    bed->pair.lab = lab_new(31, config);
    lab_cable(bed->pair.lab, true);
    open_side(bed, 0);
    open_side(bed, 1);
    lab_run(bed->pair.lab);
    mthca_side_fill(&bed->pair.side[0], bed->pair.lab->rand);
    g_assert_cmpuint(
        hca_cxtmgt_special(bed->pair.lab->host[0].hca->cm, special_of(bed)), ==,
        smi ? SMI_QPN : GSI_QPN);
}

static void bed_free(Bed *bed)
{
    mthca_pair_free(&bed->pair);
}

/* What side 0 writes in front of a MAD for side 1, as ib_mthca does it. */
static HcaPacket headers_of(const Bed *bed)
{
    return (HcaPacket) {
        .vl = bed->smi ? 15 : 0,
        .dlid = bed->smi ? 0xffff : LID(1),
        .slid = bed->smi ? 0xffff : 0,
        .opcode = 0x64, /* UD SEND only */
        .mig_req = true,
        .pkey = bed->smi ? 0xffff : 0x8123,
        .dest_qp = !bed->smi,
        .src_qp = !bed->smi,
        .qkey = bed->smi ? 0 : 0x80010000,
        .psn = 77,
        .payload_len = 256,
    };
}

/* @len: of the headers, whatever they are; their region's key, or another. */
static void send_headers(Bed *bed, const uint8_t *headers, uint32_t len,
                         uint32_t lkey)
{
    MthcaSide *s = &bed->pair.side[0];
    MthcaSge sge[] = { mthca_side_sge(s, HEADERS, len),
                       mthca_side_sge(s, PAYLOAD, 100),
                       mthca_side_sge(s, PAYLOAD + 100, 156) };

    if (lkey) {
        sge[0].lkey = lkey;
    }
    host_write(s->m->host, s->data->page[0], headers, len);
    mthca_post_mlx(s->m, &s->qp, sge, 3, true);
    mthca_ring_send(s->m, &s->qp, 1);
}

static void send_packet(Bed *bed, HcaPacket *packet)
{
    uint8_t headers[HCA_MAX_HEADER_SIZE];
    size_t len = hca_ib_build(packet, headers);

    send_headers(bed, headers, len, 0);
}

static void post_recv(Bed *bed)
{
    MthcaSide *s = &bed->pair.side[1];
    MthcaSge to = mthca_side_sge(s, RECEIVED, GRH + 256);

    mthca_post_recv(s->m, &s->qp, &to, 1);
}

/* What was sent has come, and how. */
static struct mthca_cqe take_both(Bed *bed)
{
    struct mthca_cqe cqe;

    mthca_side_take_send(&bed->pair.side[0], bed->sent++);
    cqe = mthca_side_take_recv(&bed->pair.side[1], bed->received++, GRH + 256);
    mthca_pair_same(&bed->pair, PAYLOAD, RECEIVED + GRH, 256);
    g_assert_cmphex(GUINT32_FROM_BE(cqe.rqpn) & 0xffffff, ==, !bed->smi);
    return cqe;
}

/* By directed route, from who has no LID to who has none. */
static void check_smp(uint32_t latency)
{
    Bed bed;

    bed_init(&bed, true, latency);
    for (unsigned i = 0; i < 5; i++) {
        HcaPacket packet = headers_of(&bed);
        uint8_t class = 0x81;
        struct mthca_cqe cqe;

        host_write(bed.pair.side[0].m->host,
                   bed.pair.side[0].data->page[PAYLOAD / 4096] + 1, &class, 1);
        post_recv(&bed);
        send_packet(&bed, &packet);
        cqe = take_both(&bed);
        g_assert_cmphex(GUINT32_FROM_BE(cqe.rlid_path) & 0xffff, ==, 0xffff);
    }
    bed_free(&bed);
}

static void test_smp(void)
{
    check_smp(0);
}

static void test_smp_late(void)
{
    check_smp(2000);
}

static HcaGid gid_of(const Bed *bed, unsigned side)
{
    HcaGid gid;

    put_be64(gid.raw, 0xfe80ull << 48);
    put_be64(gid.raw + 8, bed->pair.lab->host[side].config.guid);
    return gid;
}

/* The P_Key's index is told; the source's LID is the card's, whatever is said. */
static void test_gmp(void)
{
    Bed bed;

    bed_init(&bed, false, 0);
    for (unsigned i = 0; i < 4; i++) {
        HcaPacket packet = headers_of(&bed);
        struct mthca_cqe cqe;

        if (i & 1) {
            packet.pkey = 0xffff;
        }
        if (i & 2) {
            packet.has_grh = true;
            packet.hop_limit = 9;
            packet.sgid = gid_of(&bed, 0);
            packet.dgid = gid_of(&bed, 1);
        }
        post_recv(&bed);
        send_packet(&bed, &packet);
        cqe = take_both(&bed);
        g_assert_cmphex(GUINT16_FROM_BE(cqe.pkey_index), ==, !(i & 1));
        g_assert_cmphex(GUINT32_FROM_BE(cqe.rlid_path), ==,
                        LID(0) | (i & 2 ? 1u << 23 : 0));
    }
    bed_free(&bed);
}

/* The place for an ICRC may be in the last entry, as iPXE has it. */
static void test_icrc_in_entry(void)
{
    Bed bed;
    HcaPacket packet;
    uint8_t headers[HCA_MAX_HEADER_SIZE];
    MthcaSide *s;
    MthcaSge sge[2];

    bed_init(&bed, false, 0);
    s = &bed.pair.side[0];
    packet = headers_of(&bed);
    sge[0] = mthca_side_sge(s, HEADERS, hca_ib_build(&packet, headers));
    sge[1] = mthca_side_sge(s, PAYLOAD, 256 + 4);
    host_write(s->m->host, s->data->page[0], headers, sge[0].len);
    post_recv(&bed);
    mthca_post_mlx(s->m, &s->qp, sge, 2, false);
    mthca_ring_send(s->m, &s->qp, 1);
    take_both(&bed);
    bed_free(&bed);
}

static void test_query(void)
{
    Bed bed;
    struct mthca_qp_mailbox box;

    bed_init(&bed, true, 0);
    mthca_must(mthca_qp_query(bed.pair.side[0].m, &bed.pair.side[0].qp, &box));
    g_assert_cmphex(GUINT32_FROM_BE(box.qpc.flags) >> 16 & 7, ==, 7);
    bed_free(&bed);
}

/* Their service is theirs alone, and they have no other. */
static void test_service(void)
{
    Bed bed;
    MthcaSide *s;
    MthcaQp other;

    bed_init(&bed, false, 0);
    s = &bed.pair.side[0];
    other = s->qp;
    other.qpn += 2;
    g_assert_cmphex(mthca_qp_to_init(s->m, &other), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    mthca_must(mthca_qp_destroy(s->m, &s->qp));
    s->qp.service = MTHCA_QPC_SERVICE_UD;
    g_assert_cmphex(mthca_qp_to_init(s->m, &s->qp), ==,
                    RDMA_HCA_STAT_BAD_PARAM);
    s->qp.service = MTHCA_QPC_SERVICE_MLX;
    mthca_must(mthca_qp_to_init(s->m, &s->qp));
    bed_free(&bed);
}

static void take_error(Bed *bed, uint8_t syndrome)
{
    struct mthca_cqe cqe = mthca_side_take(&bed->pair.side[0]);

    g_assert_cmphex(cqe.opcode, ==, MTHCA_CQE_ERROR_SEND);
    g_assert_cmphex(cqe.syndrome, ==, syndrome);
    mthca_side_take_none(&bed->pair.side[1]);
}

/* Headers that are none, each by one thing. */
static void test_bad_headers(void)
{
    static const struct {
        unsigned at;
        uint8_t flip;
        int more; /* bytes of them */
        uint8_t syndrome;
    } wrong[] = {
        { 0, 0x01, 0, HCA_SYNDROME_LOCAL_QP_OP_ERR },  /* LVer */
        { 1, 0x02, 0, HCA_SYNDROME_LOCAL_QP_OP_ERR },  /* LNH: raw */
        { 1, 0x01, 0, HCA_SYNDROME_LOCAL_QP_OP_ERR },  /* a GRH, without */
        { 4, 0x07, 0, HCA_SYNDROME_LOCAL_QP_OP_ERR },  /* longer than it is */
        { 5, 0x48, 0, HCA_SYNDROME_LOCAL_QP_OP_ERR },  /* shorter than itself */
        { 5, 0x08, 0, HCA_SYNDROME_LOCAL_LENGTH_ERR }, /* no whole MAD */
        { 8, 0x60, 0, HCA_SYNDROME_LOCAL_QP_OP_ERR },  /* a SEND of RC */
        { 9, 0x01, 0, HCA_SYNDROME_LOCAL_QP_OP_ERR },  /* TVer */
        { 10, 0x01, 0, HCA_SYNDROME_LOCAL_QP_OP_ERR }, /* not our P_Key */
        { 10, 0x80, 0, HCA_SYNDROME_LOCAL_QP_OP_ERR }, /* as its limited one */
        { 0, 0, -1, HCA_SYNDROME_LOCAL_QP_OP_ERR },
        { 0, 0, -9, HCA_SYNDROME_LOCAL_QP_OP_ERR },
        { 0, 0, 4, HCA_SYNDROME_LOCAL_QP_OP_ERR },
        { 0, 0, 200, HCA_SYNDROME_LOCAL_QP_OP_ERR },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(wrong); i++) {
        uint8_t headers[512] = { 0 };
        HcaPacket packet;
        size_t len;
        Bed bed;

        bed_init(&bed, false, 0);
        packet = headers_of(&bed);
        len = hca_ib_build(&packet, headers);
        headers[wrong[i].at] ^= wrong[i].flip;
        post_recv(&bed);
        send_headers(&bed, headers, len + wrong[i].more, 0);
        take_error(&bed, wrong[i].syndrome);
        bed_free(&bed);
    }
}

/* A source that is not the card's; headers in nobody's memory. */
static void test_bad_source(void)
{
    Bed bed;
    HcaPacket packet;
    uint8_t headers[HCA_MAX_HEADER_SIZE];

    bed_init(&bed, false, 0);
    packet = headers_of(&bed);
    packet.has_grh = true;
    packet.sgid = packet.dgid = gid_of(&bed, 1);
    send_packet(&bed, &packet);
    take_error(&bed, HCA_SYNDROME_LOCAL_QP_OP_ERR);
    bed_free(&bed);

    bed_init(&bed, false, 0);
    packet = headers_of(&bed);
    send_headers(&bed, headers, hca_ib_build(&packet, headers),
                 bed.pair.side[0].data->key ^ 0x80000000);
    take_error(&bed, HCA_SYNDROME_LOCAL_PROT_ERR);
    bed_free(&bed);
}

/* Headers at random, and WQEs: the QP is begun anew each time, the card goes on. */
static void test_garbage(void)
{
    Bed bed;
    MthcaSide *s;
    GRand *rand;

    bed_init(&bed, false, 0);
    s = &bed.pair.side[0];
    rand = bed.pair.lab->rand;
    for (unsigned round = 0; round < 300; round++) {
        uint8_t headers[HCA_MAX_HEADER_SIZE];
        uint32_t len = g_rand_int_range(rand, 0, sizeof(headers) + 1);
        HcaPacket packet = headers_of(&bed);

        hca_ib_build(&packet, headers);
        for (unsigned i = g_rand_int_range(rand, 0, 4); i; i--) {
            headers[g_rand_int_range(rand, 0, 28)] = g_rand_int(rand);
        }
        if (round & 1) {
            uint8_t page[HOST_PAGE_SIZE];

            random_fill(rand, page, sizeof(page));
            host_write(s->m->host, s->qp.mr->page[1], page, sizeof(page));
        }
        send_headers(&bed, headers, len, 0);
        lab_run_for(bed.pair.lab, NS_PER_MS);
        mthca_must(mthca_qp_destroy(s->m, &s->qp));
        mthca_must(mthca_qp_to_init(s->m, &s->qp));
        mthca_must(mthca_qp_to_rtr(s->m, &s->qp, 0, 0));
        mthca_must(mthca_qp_to_rts(s->m, &s->qp));
        s->cq.ci = hca_cq_peek(s->m->host->hca->cm, s->cq.cqn)->producer_index;
        mthca_cq_consume(s->m, &s->cq);
    }
    bed_free(&bed);
}

/* That an answer goes back by a directed route, the driver says. */
static void test_direction(void)
{
    Bed bed;
    Mthca *m;
    uint8_t mad[256] = { 1, 0x81, 1, 1, [17] = 0x11 };

    bed_init(&bed, true, 0);
    m = bed.pair.side[0].m;
    host_write(m->host, m->mbox_in, mad, sizeof(mad));
    mthca_must(mthca_cmd(m, RDMA_HCA_CMD_MAD_IFC, m->mbox_in, 1, 3, m->mbox_out,
                         NULL));
    host_read(m->host, m->mbox_out, mad, sizeof(mad));
    g_assert_cmphex(mad[3], ==, 0x81);
    g_assert_cmphex(mad[4], ==, 0);
    g_assert_cmphex(mad[5], ==, 0);
    bed_free(&bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/mthca/special/smp", test_smp);
    test_add("/mthca/special/smp-late", test_smp_late);
    test_add("/mthca/special/gmp", test_gmp);
    test_add("/mthca/special/icrc-in-entry", test_icrc_in_entry);
    test_add("/mthca/special/query", test_query);
    test_add("/mthca/special/service", test_service);
    test_add("/mthca/special/bad-headers", test_bad_headers);
    test_add("/mthca/special/bad-source", test_bad_source);
    test_add("/mthca/special/garbage", test_garbage);
    test_add("/mthca/special/direction", test_direction);
    return g_test_run();
}
