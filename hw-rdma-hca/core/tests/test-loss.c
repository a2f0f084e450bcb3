/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A bad cable: packets are lost, doubled, delayed, overtaken and changed, at
 * random with a fixed seed. Whatever happens to packets, each work request
 * completes once and in order, and memory is what the requests make of it.
 */
#include <string.h>

#include "lib-pair.h"

#define SLOT 8192
#define SLOTS 32
#define NUM_OPS 6

/* Of 10000 packets, how many suffer. */
typedef struct Weather {
    const char *name;
    uint32_t seed;
    unsigned drop, duplicate, delay, corrupt;
    unsigned messages;
    unsigned num_qps;
    uint8_t mtu;
} Weather;

typedef struct Injector {
    const Weather *weather;
    GRand *rand;
    bool on;
    unsigned dropped, duplicated, delayed, corrupted;
} Injector;

static CableFate inject(void *opaque, unsigned from, uint8_t *packet,
                        size_t len)
{
    Injector *injector = opaque;
    const Weather *w = injector->weather;
    int dice;

    if (!injector->on) {
        return CABLE_DELIVER;
    }
    dice = g_rand_int_range(injector->rand, 0, 10000);
    if ((dice -= w->drop) < 0) {
        injector->dropped++;
        return CABLE_DROP;
    }
    if ((dice -= w->duplicate) < 0) {
        injector->duplicated++;
        return CABLE_DUPLICATE;
    }
    if ((dice -= w->delay) < 0) {
        injector->delayed++;
        return CABLE_DELAY;
    }
    if ((dice -= w->corrupt) < 0) {
        unsigned bit = g_rand_int_range(injector->rand, 0, len * 8);

        packet[bit / 8] ^= 1u << bit % 8;
        injector->corrupted++;
    }
    return CABLE_DELIVER;
}

/* ---- the traffic, and a model of what it does to memory ---- */

/*
 * What a QP sends to its peer; each connection has a flow in both directions.
 * [0] is the requester's side here, whichever machine that is. Slot n of a
 * region belongs to message n, modulo SLOTS: it is not used again until that
 * message is complete on both sides. There are two regions a side: what is
 * sent or read, and where data arrive; only the latter changes. Besides there
 * is a number that atomics count up.
 */
typedef struct Flow {
    unsigned from; /* the requester's machine */
    Qp *qp[2];
    Mr *source[2], *target[2], *counter;
    uint8_t *expected[2]; /* what target[i] has to be in the end */
    uint8_t *content[2];  /* of source[i] */
    unsigned posted, sent, received, recv_posted;
    uint64_t count;        /* atomics so far */
    GArray *recv_expected; /* RecvExpected, in order */
} Flow;

typedef struct RecvExpected {
    unsigned message;
    uint32_t len;
    bool imm;
} RecvExpected;

typedef struct Storm {
    const Weather *weather;
    Pair *pair;
    Flow *flow;
    unsigned num_flows;
    GHashTable *by_completion; /* Flow, by completion_key() */
} Storm;

static gpointer completion_key(unsigned side, uint32_t qpn, bool is_send)
{
    return GUINT_TO_POINTER(qpn << 2 | side << 1 | is_send);
}

/* What message @n is: all of it follows from the seed. */
typedef struct Message {
    uint8_t opcode;
    uint32_t len;
    bool signalled;
} Message;

static Message message(const Storm *s, const Flow *f, unsigned n)
{
    static const uint8_t opcode[NUM_OPS] = {
        RDMA_HCA_OPCODE_SEND,       RDMA_HCA_OPCODE_SEND_IMM,
        RDMA_HCA_OPCODE_RDMA_WRITE, RDMA_HCA_OPCODE_RDMA_WRITE_IMM,
        RDMA_HCA_OPCODE_RDMA_READ,  RDMA_HCA_OPCODE_ATOMIC_FA,
    };
    Message m;
    uint32_t x = s->pair->lab->seed * 2654435761u + n * 40503u +
                 f->qp[0]->qpn * 2 + f->from;

    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    m = (Message) {
        .opcode = opcode[x % NUM_OPS],
        .len = x / 64 % 4 ? x / 1024 % 300 : x / 1024 % SLOT,
        .signalled = x / 8 % 4 == 0 || n % 16 == 15 ||
                     n + 1 == s->weather->messages,
    };
    if (m.opcode == RDMA_HCA_OPCODE_ATOMIC_FA) {
        m.len = sizeof(uint64_t);
    }
    return m;
}

static bool is_read(const Message *m)
{
    return m->opcode == RDMA_HCA_OPCODE_RDMA_READ;
}

/* Receives go to the second half of the target, in their own order. */
static uint64_t recv_slot(unsigned n)
{
    return (SLOTS + n % SLOTS) * (uint64_t)SLOT;
}

static void flow_init(Storm *s, Flow *f, Qp *const qp[2], unsigned from)
{
    f->from = from;
    f->recv_expected = g_array_new(FALSE, FALSE, sizeof(RecvExpected));
    for (unsigned i = 0; i < 2; i++) {
        unsigned side = i ^ from;
        Driver *drv = s->pair->drv[side];
        uint32_t pd = s->pair->pd[side];
        uint64_t va;

        f->qp[i] = qp[side];
        va = UINT64_C(0x10000000) * f->qp[i]->qpn;
        f->source[i] = mr_new(drv, pd, va, SLOTS * SLOT,
                              RDMA_HCA_ACCESS_REMOTE_READ);
        f->target[i] = mr_new(drv, pd, va + 0x8000100, 2 * SLOTS * SLOT,
                              RDMA_HCA_ACCESS_LOCAL_WRITE |
                                  RDMA_HCA_ACCESS_REMOTE_WRITE);
        f->content[i] = pair_data(s->pair, SLOTS * SLOT);
        mr_write(f->source[i], 0, f->content[i], SLOTS * SLOT);
        f->expected[i] = mr_image(f->target[i]);
        if (i) {
            f->counter = mr_new(drv, pd, va + 0x7000000, sizeof(f->count),
                                RDMA_HCA_ACCESS_LOCAL_WRITE |
                                    RDMA_HCA_ACCESS_REMOTE_ATOMIC);
        }
        g_hash_table_insert(s->by_completion,
                            completion_key(side, f->qp[i]->qpn, i == 0), f);
    }
}

static void flow_free(Flow *f)
{
    for (unsigned i = 0; i < 2; i++) {
        g_free(f->content[i]);
        g_free(f->expected[i]);
    }
    g_array_free(f->recv_expected, TRUE);
}

/* Note in the model what message @n will have done. */
static void flow_model(Flow *f, const Message *m, unsigned n)
{
    uint64_t slot = n % SLOTS * (uint64_t)SLOT;

    if (is_read(m)) {
        memcpy(f->expected[0] + slot, f->content[1] + slot, m->len);
        return;
    }
    if (wr_is_atomic(m->opcode)) {
        uint64_t before = GUINT64_TO_LE(f->count);

        f->count++;
        memcpy(f->expected[0] + slot, &before, sizeof(before));
        return;
    }
    if (wr_takes_receive(m->opcode)) {
        RecvExpected recv = { n, m->len, wr_has_imm(m->opcode) };

        if (m->opcode != RDMA_HCA_OPCODE_RDMA_WRITE_IMM) {
            memcpy(f->expected[1] + recv_slot(f->recv_expected->len),
                   f->content[0] + slot, m->len);
        }
        g_array_append_val(f->recv_expected, recv);
    }
    if (m->opcode != RDMA_HCA_OPCODE_SEND &&
        m->opcode != RDMA_HCA_OPCODE_SEND_IMM) {
        memcpy(f->expected[1] + slot, f->content[0] + slot, m->len);
    }
}

static void flow_post_recvs(Flow *f)
{
    while (f->recv_posted - f->received < SLOTS) {
        Sge sge = { f->target[1]->va + recv_slot(f->recv_posted), SLOT,
                    f->target[1]->key };
        RecvWr wr = { .wr_id = f->recv_posted, .nsge = 1, .sge = &sge };

        g_assert_true(qp_post_recv(f->qp[1], &wr, 1));
        f->recv_posted++;
    }
}

static SendWr flow_send(Flow *f, const Message *m, unsigned n, Sge *sge)
{
    uint64_t slot = n % SLOTS * (uint64_t)SLOT;
    bool reads = is_read(m) || wr_is_atomic(m->opcode);
    Mr *near = reads ? f->target[0] : f->source[0];
    Mr *far = is_read(m) ? f->source[1] : f->target[1];

    *sge = mr_sge(near, slot, m->len);
    return (SendWr) {
        .wr_id = n,
        .opcode = m->opcode,
        .flags = m->signalled ? SEND_SIGNALED : 0,
        .imm_be = GUINT32_TO_BE(n),
        .raddr = wr_is_atomic(m->opcode) ? f->counter->va : far->va + slot,
        .rkey = wr_is_atomic(m->opcode) ? f->counter->key : far->key,
        .swap_add = 1,
        .nsge = 1,
        .sge = sge,
    };
}

/* One chain of up to four messages; false: no room or none left. */
static bool flow_post_sends(Storm *s, Flow *f)
{
    unsigned count = pair_rand(s->pair, 1, 5);
    SendWr wr[4];
    Sge sge[4];

    count = MIN(count, s->weather->messages - f->posted);
    if (!count || f->posted + count - f->sent > SLOTS) {
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        unsigned n = f->posted++;
        Message m = message(s, f, n);

        wr[i] = flow_send(f, &m, n, &sge[i]);
        flow_model(f, &m, n);
    }
    g_assert_true(qp_post_send(f->qp[0], wr, count));
    return true;
}

static void flow_check_send(Storm *s, Flow *f, const Wc *wc)
{
    g_assert_true(wc->is_send);
    g_assert_cmphex(wc->syndrome, ==, 0);
    while (!message(s, f, f->sent).signalled) {
        f->sent++;
    }
    g_assert_cmpuint(wc->wr_id, ==, f->sent);
    g_assert_cmphex(wc->opcode, ==, message(s, f, f->sent).opcode);
    f->sent++;
}

static void flow_check_recv(Flow *f, const Wc *wc)
{
    const RecvExpected *recv;

    g_assert_false(wc->is_send);
    g_assert_cmphex(wc->syndrome, ==, 0);
    g_assert_cmpuint(f->received, <, f->recv_expected->len);
    recv = &g_array_index(f->recv_expected, RecvExpected, f->received);
    g_assert_cmpuint(wc->wr_id, ==, f->received);
    g_assert_cmpuint(wc->byte_len, ==, recv->len);
    if (recv->imm) {
        g_assert_cmpuint(GUINT32_FROM_BE(wc->imm_be), ==, recv->message);
    }
    f->received++;
}

static void storm_poll(Storm *s, unsigned side)
{
    Wc wc;

    while (cq_poll(s->pair->cq[side], &wc)) {
        Flow *f = g_hash_table_lookup(s->by_completion,
                                      completion_key(side, wc.qpn, wc.is_send));

        g_assert_nonnull(f);
        if (wc.is_send) {
            flow_check_send(s, f, &wc);
        } else {
            flow_check_recv(f, &wc);
        }
    }
}

static bool storm_turn(void *opaque)
{
    Storm *s = opaque;
    bool done = true;

    storm_poll(s, 0);
    storm_poll(s, 1);
    for (unsigned i = 0; i < s->num_flows; i++) {
        Flow *f = &s->flow[i];

        flow_post_recvs(f);
        while (flow_post_sends(s, f)) {
        }
        done &= f->sent == s->weather->messages &&
                f->received == f->recv_expected->len;
    }
    return done;
}

static void storm_begin(Storm *s, const Weather *weather, Injector *injector)
{
    QpAttr attr;
    Qp *qp[2];

    s->weather = weather;
    s->pair = pair_new_with(weather->seed, 4096, NULL, inject, injector);
    s->num_flows = 2 * weather->num_qps;
    s->flow = g_new0(Flow, s->num_flows);
    s->by_completion = g_hash_table_new(NULL, NULL);
    qp_attr_init(&attr);
    attr.mtu = weather->mtu;
    attr.timeout = 8; /* about a millisecond */
    attr.min_rnr_timer = 1;
    attr.sq_psn = 0xffff00;
    for (unsigned i = 0; i < s->num_flows; i++) {
        if (i % 2 == 0) {
            pair_connect(s->pair, &attr, qp);
        }
        flow_init(s, &s->flow[i], qp, i % 2);
    }
}

static void storm_end(Storm *s)
{
    cq_expect_none(s->pair->cq[0]);
    cq_expect_none(s->pair->cq[1]);
    for (unsigned i = 0; i < s->num_flows; i++) {
        Flow *f = &s->flow[i];
        uint64_t count;

        mr_check_image(f->target[0], f->expected[0]);
        mr_check_image(f->target[1], f->expected[1]);
        mr_check_image(f->source[0], f->content[0]);
        mr_check_image(f->source[1], f->content[1]);
        mr_read(f->counter, 0, &count, sizeof(count));
        g_assert_cmpuint(GUINT64_FROM_LE(count), ==, f->count);
        flow_free(f);
    }
    g_hash_table_destroy(s->by_completion);
    g_free(s->flow);
    pair_free(s->pair);
}

static void test_storm(const void *opaque)
{
    const Weather *weather = opaque;
    Injector injector = {
        .weather = weather,
        .rand = g_rand_new_with_seed(lab_seed(weather->seed)),
    };
    Storm s;

    storm_begin(&s, weather, &injector);
    injector.on = true;
    g_assert_true(lab_wait(s.pair->lab, storm_turn, &s, 10000 * NS_PER_S));
    injector.on = false;
    g_test_message("%u lost, %u doubled, %u delayed, %u corrupted; "
                   "%" G_GUINT64_FORMAT " sent again, %" G_GUINT64_FORMAT
                   " time-outs, %" G_GINT64_FORMAT " ms",
                   injector.dropped, injector.duplicated, injector.delayed,
                   injector.corrupted,
                   pair_counter(s.pair, 0, "requester_retransmissions"),
                   pair_counter(s.pair, 0, "requester_timeouts"),
                   (s.pair->lab->now - NS_PER_S) / NS_PER_MS);
    g_assert_true(!weather->drop || injector.dropped);
    g_assert_true(!weather->corrupt || injector.corrupted);
    storm_end(&s);
    g_rand_free(injector.rand);
}

/* ---- single faults, each at every place of a short exchange ---- */

typedef struct OneFault {
    CableFate fate;
    bool corrupt;
    unsigned at; /* which packet, both directions counted */
    unsigned seen;
} OneFault;

static CableFate inject_one(void *opaque, unsigned from, uint8_t *packet,
                            size_t len)
{
    OneFault *one = opaque;

    if (one->seen++ != one->at) {
        return CABLE_DELIVER;
    }
    if (one->corrupt) {
        packet[len / 2] ^= 0x10;
    }
    return one->fate;
}

/* A Write, a Read, a Send and a Read with several packets each. */
static void exchange(Pair *pair, Qp *qp[2])
{
    static const uint8_t opcode[] = {
        RDMA_HCA_OPCODE_RDMA_WRITE, RDMA_HCA_OPCODE_RDMA_READ,
        RDMA_HCA_OPCODE_SEND,       RDMA_HCA_OPCODE_ATOMIC_FA,
        RDMA_HCA_OPCODE_RDMA_READ,  RDMA_HCA_OPCODE_RDMA_WRITE_IMM,
    };
    enum {
        N = G_N_ELEMENTS(opcode)
    };
    g_autofree uint8_t *data = pair_data(pair, N * SLOT);
    g_autofree uint8_t *image = NULL, *near = NULL;
    uint64_t aligned = 40 * SLOT - (pair->mr[1]->va & 7), counter = 5;
    SendWr wr[N];
    Sge sge[N];
    Wc wc;

    mr_write(pair->mr[0], 0, data, N * SLOT);
    mr_write(pair->mr[1], aligned, &counter, 8);
    near = mr_image(pair->mr[0]);
    image = mr_image(pair->mr[1]);
    for (unsigned i = 0; i < N; i++) {
        wr[i] = pair_send(pair, 0, opcode[i], i, &sge[i], i * SLOT, 700,
                          i * SLOT);
    }
    sge[3].len = 8;
    wr[3].raddr = pair->mr[1]->va + aligned;
    wr[3].swap_add = 3;
    memcpy(image, data, 700);
    memcpy(near + SLOT, image + SLOT, 700);
    memcpy(image + 20 * SLOT, data + 2 * SLOT, 700);
    memcpy(near + 3 * SLOT, &counter, 8);
    counter += 3;
    memcpy(image + aligned, &counter, 8);
    memcpy(near + 4 * SLOT, image + 4 * SLOT, 700);
    memcpy(image + 5 * SLOT, data + 5 * SLOT, 700);
    pair_post_recv(pair, 1, qp[1], 100, 20 * SLOT, SLOT);
    pair_post_recv(pair, 1, qp[1], 101, 21 * SLOT, SLOT);
    g_assert_true(qp_post_send(qp[0], wr, N));
    for (unsigned i = 0; i < N; i++) {
        cq_expect(pair->cq[0], &wc, i, 0);
    }
    cq_expect(pair->cq[1], &wc, 100, 0);
    g_assert_cmpuint(wc.byte_len, ==, 700);
    cq_expect(pair->cq[1], &wc, 101, 0);
    cq_expect_none(pair->cq[0]);
    cq_expect_none(pair->cq[1]);
    mr_check_image(pair->mr[0], near);
    mr_check_image(pair->mr[1], image);
}

static void test_one_fault(const void *opaque)
{
    OneFault one = *(const OneFault *)opaque;
    unsigned packets = UINT_MAX;

    for (unsigned at = 0; at < packets; at++) {
        Pair *pair;
        QpAttr attr;
        Qp *qp[2];

        one.at = UINT_MAX;
        pair = pair_new_with(900, 48 * SLOT, NULL, inject_one, &one);
        pair->lab->delay_ns = at % 2 ? 30 * NS_PER_US : 3 * NS_PER_MS;
        qp_attr_init(&attr);
        attr.mtu = 1;
        attr.timeout = 9;
        attr.sq_psn = 0xfffffd;
        pair_connect(pair, &attr, qp);
        one.seen = 0;
        one.at = at;
        exchange(pair, qp);
        packets = MIN(packets, one.seen);
        pair_free(pair);
    }
    g_assert_cmpuint(packets, >, 15);
    g_test_message("%u places", packets);
}

/* ---- a loss that a NAK tells of ---- */

/* Loses three packets of machine 0, each once. */
static CableFate lose_three(void *opaque, unsigned from, uint8_t *packet,
                            size_t len)
{
    static const unsigned lost[] = { 20, 90, 150 };
    unsigned *seen = opaque;

    if (from == 0) {
        ++*seen;
        for (unsigned i = 0; i < G_N_ELEMENTS(lost); i++) {
            if (*seen == lost[i]) {
                return CABLE_DROP;
            }
        }
    }
    return CABLE_DELIVER;
}

/* One NAK for each, and no time-out: IBA 9.7.5.2.8. */
static void test_nak_recovers(void)
{
    unsigned seen = 0;
    Pair *pair = pair_new_with(950, 512 * 1024, NULL, lose_three, &seen);
    QpAttr attr;
    SendWr wr;
    Sge sge;
    Qp *qp[2];
    Wc wc;

    qp_attr_init(&attr);
    attr.timeout = 20;
    pair_connect(pair, &attr, qp);
    wr = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, 1, &sge, 0, 400000, 0);
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    cq_expect(pair->cq[0], &wc, 1, 0);
    g_assert_cmpuint(pair_counter(pair, 0, "requester_timeouts"), ==, 0);
    g_assert_cmpuint(pair_counter(pair, 0, "requester_naks_rx"), ==, 3);
    g_assert_cmpuint(pair_counter(pair, 1, "responder_naks_tx"), ==, 3);
    pair_free(pair);
}

static const Weather weathers[] = {
    { "fine", 1, 0, 0, 0, 0, 1500, 2, 3 },
    { "loss-0.1", 2, 10, 0, 0, 0, 1500, 4, 3 },
    { "loss-1", 3, 100, 0, 0, 0, 1500, 4, 2 },
    { "loss-5", 4, 500, 0, 0, 0, 500, 4, 3 },
    { "duplicates", 5, 0, 500, 0, 0, 1000, 3, 1 },
    { "reordering", 6, 0, 0, 300, 0, 1000, 3, 3 },
    { "corruption", 7, 0, 0, 0, 200, 1000, 3, 5 },
    { "everything", 8, 100, 100, 100, 100, 1000, 4, 3 },
    { "everything-again", 9, 200, 200, 200, 200, 500, 8, 1 },
};

static const struct {
    const char *name;
    OneFault fault;
} faults[] = {
    { "drop", { .fate = CABLE_DROP } },
    { "duplicate", { .fate = CABLE_DUPLICATE } },
    { "delay", { .fate = CABLE_DELAY } },
    { "corrupt", { .fate = CABLE_DELIVER, .corrupt = true } },
};

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(faults); i++) {
        const char *path = test_named("/loss/one/%s", faults[i].name);

        test_add_data_each_link(path, &faults[i].fault, test_one_fault);
    }
    test_add_each_link("/loss/nak-recovers", test_nak_recovers);
    for (unsigned i = 0; i < G_N_ELEMENTS(weathers); i++) {
        const char *path = test_named("/loss/storm/%s", weathers[i].name);

        test_add_data_each_link(path, &weathers[i], test_storm);
    }
    return g_test_run();
}
