/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Multicast groups of a card with the interface of an InfiniHost III Lx: hash
 * chains, which software keeps as ib_mthca does.
 */
#include <string.h>

#include "../port/mcast_chains.h"
#include "lib-card.h"
#include "lib-mthca-pair.h"
#include "lib-state.h"
#include "lib-test.h"

#define QKEY 0x11111111u
#define MLID 0xc001u
#define BUCKETS 4096u
#define LEN 100
#define GRH 40

/* Side 0 sends to groups that QPs of side 1 are in. */
typedef struct Bed {
    MthcaPair pair;
    Mthca *m; /* of side 1 */
    uint32_t sent, received;
    uint32_t next_entry; /* that no chain has had */
} Bed;

static void bed_init(Bed *bed)
{
    *bed = (Bed) { .next_entry = BUCKETS };
    mthca_pair_init(&bed->pair, MTHCA_QPC_SERVICE_UD);
    bed->m = bed->pair.side[1].m;
    mthca_side_fill(&bed->pair.side[0], bed->pair.lab->rand);
}

static void bed_free(Bed *bed)
{
    mthca_pair_free(&bed->pair);
}

static HcaGid mgid_of(uint32_t number)
{
    HcaGid gid;

    put_be64(gid.raw, 0xff12401bffff0000ull);
    put_be64(gid.raw + 8, number);
    return gid;
}

/* ---- as ib_mthca keeps them ---- */

static uint32_t hash_of(Bed *bed, const HcaGid *mgid)
{
    uint64_t hash;

    host_write(bed->m->host, bed->m->mbox_in, mgid->raw, 16);
    mthca_must(mthca_cmd(bed->m, MTHCA_CMD_MGID_HASH, bed->m->mbox_in, 0, 0, 0,
                         &hash));
    g_assert_cmpuint(hash, <, BUCKETS);
    return hash;
}

static struct mthca_mgm read_entry(Bed *bed, uint32_t index)
{
    struct mthca_mgm mgm;

    mthca_must(mthca_cmd_out(bed->m, RDMA_HCA_CMD_READ_MGM, &mgm, sizeof(mgm),
                             index, 0));
    return mgm;
}

static uint8_t write_entry(Bed *bed, uint32_t index,
                           const struct mthca_mgm *mgm)
{
    return mthca_cmd_in(bed->m, RDMA_HCA_CMD_WRITE_MGM, mgm, sizeof(*mgm),
                        index, 0);
}

static bool is_of(const struct mthca_mgm *mgm, const HcaGid *mgid)
{
    return memcmp(mgm->mgid, mgid->raw, 16) == 0;
}

/* The entry of @mgid, or the last one of its chain. */
static uint32_t walk(Bed *bed, const HcaGid *mgid, struct mthca_mgm *mgm)
{
    uint32_t index = hash_of(bed, mgid);

    *mgm = read_entry(bed, index);
    while (!is_of(mgm, mgid) && mgm->next) {
        index = GUINT32_FROM_BE(mgm->next) >> 6;
        *mgm = read_entry(bed, index);
    }
    return index;
}

static void attach(Bed *bed, const HcaGid *mgid, uint32_t qpn)
{
    static const uint8_t zero[16];
    struct mthca_mgm mgm;
    uint32_t index = walk(bed, mgid, &mgm), last = index;
    unsigned n = 0;

    if (!is_of(&mgm, mgid)) {
        bool empty = memcmp(mgm.mgid, zero, sizeof(zero)) == 0;

        if (!empty) { /* another group's: one behind it */
            index = bed->next_entry++;
            memset(&mgm, 0, sizeof(mgm));
        }
        memcpy(mgm.mgid, mgid->raw, 16);
    }
    while (mgm.qp[n]) {
        n++;
    }
    mgm.qp[n] = GUINT32_TO_BE(MTHCA_MGM_VALID | qpn);
    mthca_must(write_entry(bed, index, &mgm));
    if (index != last) {
        mgm = read_entry(bed, last);
        mgm.next = GUINT32_TO_BE(index << 6);
        mthca_must(write_entry(bed, last, &mgm));
    }
}

/* The last one takes its place, and stays to be written over by nobody. */
static void detach(Bed *bed, const HcaGid *mgid, uint32_t qpn)
{
    struct mthca_mgm mgm;
    uint32_t index = walk(bed, mgid, &mgm);
    unsigned n = 0, at = 0;

    g_assert_true(is_of(&mgm, mgid));
    while (mgm.qp[n]) {
        if ((GUINT32_FROM_BE(mgm.qp[n]) & MTHCA_MGM_QPN) == qpn) {
            at = n;
        }
        n++;
    }
    mgm.qp[at] = mgm.qp[n - 1];
    mgm.qp[n - 1] = 0;
    mthca_must(write_entry(bed, index, &mgm));
}

/* ---- messages ---- */

static void send_to(Bed *bed, const HcaGid *mgid)
{
    MthcaSide *from = &bed->pair.side[0];
    MthcaWr wr = { .opcode = HCA_OP_SEND,
                   .signalled = true,
                   .nsge = 1,
                   .sge = { mthca_side_sge(from, 8 * bed->sent, LEN) },
                   .dlid = MLID,
                   .dqpn = 0xffffff,
                   .qkey = QKEY,
                   .dgid = mgid->raw };

    mthca_side_send(from, &wr);
    mthca_side_take_send(from, bed->sent++);
    lab_run(bed->pair.lab);
}

static void expect(Bed *bed, const HcaGid *mgid, bool comes)
{
    MthcaSide *to = &bed->pair.side[1];
    MthcaSge sge = mthca_side_sge(to, 0, GRH + LEN);
    uint32_t va = 8 * bed->sent;

    if (comes) {
        mthca_post_recv(to->m, &to->qp, &sge, 1);
    }
    send_to(bed, mgid);
    if (comes) {
        mthca_side_take_recv(to, bed->received++, GRH + LEN);
        mthca_pair_same(&bed->pair, va, GRH, LEN);
    } else {
        mthca_side_take_none(to);
    }
}

static void test_groups(void)
{
    Bed bed;
    HcaGid mgid[3] = { mgid_of(1), mgid_of(2), mgid_of(3) };
    uint32_t qpn;

    bed_init(&bed);
    qpn = bed.pair.side[1].qp.qpn;
    attach(&bed, &mgid[0], qpn);
    attach(&bed, &mgid[1], qpn);
    for (unsigned i = 0; i < 3; i++) {
        expect(&bed, &mgid[i], i < 2);
    }
    detach(&bed, &mgid[0], qpn);
    expect(&bed, &mgid[0], false);
    expect(&bed, &mgid[1], true);
    /* Of the number that its place had in another life. */
    attach(&bed, &mgid[0], qpn ^ 0x10000);
    expect(&bed, &mgid[0], false);
    bed_free(&bed);
}

/* Others of the same bucket as @first. */
static void find_neighbours(Bed *bed, uint32_t first, HcaGid *mgid, unsigned n)
{
    HcaGid own = mgid_of(first);
    uint32_t bucket = hash_of(bed, &own);

    for (unsigned found = 0; found < n;) {
        mgid[found] = mgid_of(++first);
        found += hca_mcast_hash(bed->m->host->hca->port, &mgid[found]) ==
                 bucket;
    }
}

/* One after the other in a chain: each is found, be those before it empty. */
static void test_chain(void)
{
    Bed bed;
    HcaGid mgid[4];
    uint32_t qpn;

    bed_init(&bed);
    qpn = bed.pair.side[1].qp.qpn;
    mgid[0] = mgid_of(7);
    find_neighbours(&bed, 7, mgid + 1, 3);
    for (unsigned i = 0; i < 4; i++) {
        attach(&bed, &mgid[i], qpn);
    }
    g_assert_cmpuint(bed.next_entry, ==, BUCKETS + 3);
    for (unsigned i = 0; i < 4; i++) {
        expect(&bed, &mgid[i], true);
    }
    detach(&bed, &mgid[0], qpn);
    detach(&bed, &mgid[2], qpn);
    for (unsigned i = 0; i < 4; i++) {
        expect(&bed, &mgid[i], i & 1);
    }
    bed_free(&bed);
}

/* What no chain leads to any more has its MGID and QPs: it is not looked for. */
static void test_stale(void)
{
    Bed bed;
    HcaGid mgid[2];
    struct mthca_mgm mgm;
    uint32_t bucket, qpn;

    bed_init(&bed);
    qpn = bed.pair.side[1].qp.qpn;
    mgid[0] = mgid_of(7);
    find_neighbours(&bed, 7, mgid + 1, 1);
    attach(&bed, &mgid[0], qpn);
    attach(&bed, &mgid[1], qpn);
    bucket = hash_of(&bed, &mgid[0]);
    mgm = read_entry(&bed, bucket);
    g_assert_cmphex(GUINT32_FROM_BE(mgm.next), ==, BUCKETS << 6);
    mgm.next = 0;
    mthca_must(write_entry(&bed, bucket, &mgm));
    mgm = read_entry(&bed, BUCKETS);
    g_assert_true(is_of(&mgm, &mgid[1]));
    expect(&bed, &mgid[0], true);
    expect(&bed, &mgid[1], false);
    bed_free(&bed);
}

/* 56 QPs; a list ends with the first that is not valid. */
static void test_full(void)
{
    Bed bed;
    HcaGid mgid = mgid_of(5);
    struct mthca_mgm mgm = { 0 }, back;
    uint32_t index, qpn;

    bed_init(&bed);
    qpn = bed.pair.side[1].qp.qpn;
    index = hash_of(&bed, &mgid);
    memcpy(mgm.mgid, mgid.raw, 16);
    for (unsigned i = 0; i < 56; i++) {
        mgm.qp[i] = GUINT32_TO_BE(MTHCA_MGM_VALID | (0x50000 + i));
    }
    mgm.qp[55] = GUINT32_TO_BE(MTHCA_MGM_VALID | qpn);
    mthca_must(write_entry(&bed, index, &mgm));
    back = read_entry(&bed, index);
    g_assert_cmpmem(&back, sizeof(back), &mgm, sizeof(mgm));
    expect(&bed, &mgid, true);
    mgm.qp[20] &= ~GUINT32_TO_BE(MTHCA_MGM_VALID);
    mthca_must(write_entry(&bed, index, &mgm));
    expect(&bed, &mgid, false);
    back = read_entry(&bed, index);
    g_assert_cmphex(back.qp[19], !=, 0);
    g_assert_cmphex(back.qp[21], ==, 0);
    bed_free(&bed);
}

static void test_refused(void)
{
    Bed bed;
    struct mthca_mgm mgm = { .next = GUINT32_TO_BE(8192u << 6) };

    bed_init(&bed);
    g_assert_cmphex(write_entry(&bed, 8191, &mgm), ==, RDMA_HCA_STAT_BAD_PARAM);
    mgm.next = GUINT32_TO_BE(8191u << 6);
    mthca_must(write_entry(&bed, 8191, &mgm));
    g_assert_cmphex(write_entry(&bed, 8192, &mgm), ==, RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(
        mthca_cmd_out(bed.m, RDMA_HCA_CMD_READ_MGM, &mgm, sizeof(mgm), 8192, 0),
        ==, RDMA_HCA_STAT_BAD_INDEX);
    bed_free(&bed);
}

/* Chains in circles, all in one. */
static void test_circles(void)
{
    Bed bed;
    HcaGid mgid = mgid_of(9), other = mgid_of(10);
    struct mthca_mgm mgm = { 0 };
    uint32_t bucket;

    bed_init(&bed);
    bucket = hash_of(&bed, &mgid);
    memcpy(mgm.mgid, other.raw, 16);
    mgm.next = GUINT32_TO_BE(bucket << 6); /* of itself */
    mthca_must(write_entry(&bed, bucket, &mgm));
    expect(&bed, &mgid, false);
    for (uint32_t i = 0; i < 8192; i++) { /* of all */
        mgm.next = GUINT32_TO_BE((i % 8191 + 1) << 6);
        mthca_must(write_entry(&bed, i, &mgm));
    }
    expect(&bed, &mgid, false);
    g_assert_cmpuint(card_drops(bed.m->host->hca, HCA_DROP_GROUP), ==, 2);
    bed_free(&bed);
}

/* Another card goes on with them. */
static void test_state(void)
{
    Bed bed;
    HcaGid mgid[2];

    bed_init(&bed);
    mgid[0] = mgid_of(7);
    find_neighbours(&bed, 7, mgid + 1, 1);
    attach(&bed, &mgid[0], 0x123);
    attach(&bed, &mgid[1], bed.pair.side[1].qp.qpn);
    host_reload(bed.m->host);
    expect(&bed, &mgid[1], true);
    expect(&bed, &mgid[0], false);
    bed_free(&bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/mthca/multicast/groups", test_groups);
    test_add("/mthca/multicast/chain", test_chain);
    test_add("/mthca/multicast/stale", test_stale);
    test_add("/mthca/multicast/full", test_full);
    test_add("/mthca/multicast/refused", test_refused);
    test_add("/mthca/multicast/circles", test_circles);
    test_add("/mthca/multicast/state", test_state);
    return g_test_run();
}
