/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How queue pairs share the cable that all have something to send on: as many
 * bytes each, as long as all have.
 */
#include <string.h>

#include "lib-pair.h"
#include "lib-test.h"

#define QPS 64
#define LOG_CQ_SIZE 13

typedef struct Share {
    Pair *pair;
    Qp *qp[QPS][2];
    uint64_t total, sum; /* bytes of requests */
    uint64_t sent[QPS];
    uint64_t start[QPS]; /* the same, after a quarter of the total */
    unsigned spread;     /* percent, before the last quarter */
} Share;

static uint32_t destination(const uint8_t *packet)
{
    /* Behind LRH, or Ethernet, IPv4 or IPv6, and UDP. */
    bool ipv6 = packet[14] >> 4 == 6;
    const uint8_t *bth = packet + (!test_is_roce() ? 8 : ipv6 ? 62 : 42);

    return (uint32_t)bth[5] << 16 | bth[6] << 8 | bth[7];
}

/* Percent of the most that the least is behind, since @start. */
static unsigned spread(const Share *share)
{
    uint64_t least = UINT64_MAX, most = 1;

    for (unsigned i = 0; i < QPS; i++) {
        least = MIN(least, share->sent[i] - share->start[i]);
        most = MAX(most, share->sent[i] - share->start[i]);
    }
    return 100 * (most - least) / most;
}

/* Whose packet it is, of those that QPs of the first card send; QPS: nobody's. */
static unsigned owner(const Share *share, unsigned from, const uint8_t *packet)
{
    unsigned i = from ? QPS : 0;

    while (i < QPS &&
           !(share->qp[i][1] && share->qp[i][1]->qpn == destination(packet))) {
        i++;
    }
    return i;
}

static CableFate on_packet(void *opaque, unsigned from, uint8_t *packet,
                           size_t len)
{
    Share *share = opaque;
    unsigned i = owner(share, from, packet);

    if (i < QPS) {
        share->sent[i] += len;
        share->sum += len;
        if (share->sum < share->total / 4) {
            memcpy(share->start, share->sent, sizeof(share->start));
        } else if (share->sum < share->total / 4 * 3) {
            share->spread = spread(share);
        }
    }
    return CABLE_DELIVER;
}

static void share_open(Share *share)
{
    HcaConfig config[2];

    *share = (Share) { 0 };
    for (unsigned i = 0; i < 2; i++) {
        lab_config(&config[i], i);
        config[i].log_qps = 8;
        config[i].osq_per_qp = 1024;
    }
    share->pair = pair_new_with(1, 65536, config, on_packet, share);
    for (unsigned i = 0; i < 2; i++) {
        share->pair->cq[i] = cq_new(share->pair->drv[i], LOG_CQ_SIZE,
                                    RDMA_HCA_UAR_KERNEL + 1);
    }
    for (unsigned i = 0; i < QPS; i++) {
        pair_connect(share->pair, NULL, share->qp[i]);
    }
}

/*
 * Each has @n Writes of @len bytes. What those do that were first is over when a
 * quarter has been sent, and all still have something before the last quarter.
 */
static void check_share(unsigned n, uint32_t len)
{
    Share share;
    Wc wc;

    share_open(&share);
    share.total = (uint64_t)QPS * n * len;
    for (unsigned i = 0; i < QPS; i++) {
        for (unsigned k = 0; k < n; k++) {
            Sge sge;
            SendWr wr = pair_send(share.pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, k,
                                  &sge, 0, len, 0);

            g_assert_true(qp_post_send(share.qp[i][0], &wr, 1));
        }
    }
    for (unsigned i = 0; i < QPS * n; i++) {
        g_assert_true(cq_wait(share.pair->cq[0], &wc, PAIR_PATIENCE));
        g_assert_cmphex(wc.syndrome, ==, 0);
    }
    g_test_message("%u messages of %u bytes: %u %%", n, len, share.spread);
    g_assert_cmpuint(share.sum, >=, share.total);
    g_assert_cmpuint(share.spread, <=, 10);
    pair_free(share.pair);
}

static void test_long(void)
{
    check_share(32, 65536);
}

static void test_packets(void)
{
    check_share(60, 4096);
}

static void test_short(void)
{
    check_share(60, 64);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/share/long", test_long);
    test_add_each_link("/share/packets", test_packets);
    test_add_each_link("/share/short", test_short);
    return g_test_run();
}
