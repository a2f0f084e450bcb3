/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the services have in common, between two whole cards: the limits that
 * the card names, and the paths that a packet may take.
 */
#include <string.h>

#include "lib-pair.h"

#define SEND RDMA_HCA_OPCODE_SEND
#define SEND_IMM RDMA_HCA_OPCODE_SEND_IMM
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define WRITE_IMM RDMA_HCA_OPCODE_RDMA_WRITE_IMM
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define RC RDMA_HCA_QP_ST_RC
#define UC RDMA_HCA_QP_ST_UC
#define UD RDMA_HCA_QP_ST_UD

#define GRH_SIZE 40
#define QKEY 0x11111111u
#define NOBODY 0x99
#define AREA 65536u
#define LONG_PSN 0xffff00u

/* Two QPs, on two cards or on one, and how they reach each other. */
typedef struct Route {
    Pair *pair;
    uint8_t service;
    unsigned side[2];
    Qp *qp[2];
    uint16_t dlid; /* of QP 1, for QP 0 */
    bool grh;
} Route;

static Hca *card_of(const Route *s, unsigned i)
{
    return s->pair->lab->host[s->side[i]].hca;
}

static uint16_t lid_of(const Route *s, unsigned i)
{
    return s->pair->lab->host[s->side[i]].config.lid;
}

static void gid_of(const Route *s, unsigned i, uint8_t *raw)
{
    driver_gid(s->pair->drv[s->side[i]], raw);
}

static void connect_one(Route *s, unsigned i, QpAttr attr)
{
    attr.dlid = i ? lid_of(s, 0) : s->dlid;
    attr.dest_qpn = s->qp[!i]->qpn;
    attr.grh = s->grh;
    gid_of(s, !i, attr.dgid);
    qp_bring_up(s->qp[i], &attr);
}

/* @dlid: where QP 0 sends, 0: to QP 1. */
static Route *route_new(uint8_t service, bool loopback, bool grh, uint16_t dlid)
{
    Route *s = g_new0(Route, 1);
    QpAttr attr;

    s->pair = pair_new(71, AREA);
    s->service = service;
    s->grh = grh;
    s->side[1] = loopback ? 0 : 1;
    s->dlid = dlid ? dlid : lid_of(s, 1);
    qp_attr_init(&attr);
    for (unsigned i = 0; i < 2; i++) {
        unsigned side = s->side[i];
        QpConfig config;

        qp_config_init(&config, s->pair->pd[side], s->pair->cq[side]);
        config.service = service;
        config.log_sq_entry = 10;
        config.log_rq_entry = 9;
        s->qp[i] = qp_new(s->pair->drv[side], &config);
    }
    for (unsigned i = 0; i < 2; i++) {
        connect_one(s, i, attr);
    }
    return s;
}

static void route_free(Route *s)
{
    pair_free(s->pair);
    g_free(s);
}

static UdAddress address(const Route *s)
{
    UdAddress ud = {
        .dlid = s->dlid,
        .grh = s->grh,
        .dqpn = s->qp[1]->qpn,
        .qkey = QKEY,
    };

    gid_of(s, 1, ud.dgid);
    return ud;
}

/* The next completion of QP @i, whichever queue it comes from. */
static void expect_ok(Route *s, unsigned i, bool is_send)
{
    Wc wc;

    g_assert_true(cq_wait(s->qp[i]->send_cq, &wc, PAIR_PATIENCE));
    g_assert_cmphex(wc.syndrome, ==, 0);
    g_assert_cmphex(wc.qpn, ==, s->qp[i]->qpn);
    g_assert_cmpint(wc.is_send, ==, is_send);
}

/* Receives complete before the Sends that fill them are acknowledged, but on
 * one card both completions may be in one queue, in either order. */
static void expect_both(Route *s, bool receive)
{
    unsigned seen[2] = { 0, 0 };
    Wc wc;

    for (unsigned n = receive ? 2 : 1; n; n--) {
        bool from_1 = receive && s->side[1] && !seen[0];
        Cq *cq = s->qp[from_1 ? 1 : 0]->send_cq;

        g_assert_true(cq_wait(cq, &wc, PAIR_PATIENCE));
        g_assert_cmphex(wc.syndrome, ==, 0);
        seen[wc.is_send]++;
    }
    g_assert_cmpuint(seen[0], ==, receive);
    g_assert_cmpuint(seen[1], ==, 1);
}

static void post_recv(Route *s, uint64_t at, uint32_t len)
{
    Sge sge = mr_sge(s->pair->mr[s->side[1]], at, len);
    RecvWr wr = { .wr_id = 1, .nsge = 1, .sge = &sge };

    g_assert_true(qp_post_recv(s->qp[1], &wr, 1));
}

/* ---- paths ---- */

typedef struct PathCase {
    const char *name;
    uint8_t service;
    bool loopback, grh;
} PathCase;

/* One message of each kind that the service has, and its data arrive. */
static void test_path(const void *opaque)
{
    static const uint8_t opcode[] = { SEND, SEND_IMM, WRITE, WRITE_IMM, READ };
    static const unsigned n[] = { [RC] = 5, [UC] = 4, [UD] = 2 };
    const PathCase *c = opaque;
    Route *s = route_new(c->service, c->loopback, c->grh, 0);
    const uint32_t len = c->service == UD ? 1500 : 5000;
    const uint32_t skip = c->service == UD ? GRH_SIZE : 0;
    Mr *near = s->pair->mr[0], *far = s->pair->mr[s->side[1]];
    g_autofree uint8_t *got = g_malloc(len);
    UdAddress ud = address(s);

    if (c->loopback) {
        lab_cable(s->pair->lab, false);
    }
    for (unsigned i = 0; i < n[c->service]; i++) {
        bool read = opcode[i] == READ;
        g_autofree uint8_t *data = pair_data(s->pair, len);
        Sge sge = mr_sge(near, 0, len);
        SendWr wr = {
            .opcode = opcode[i],
            .flags = SEND_SIGNALED,
            .raddr = far->va + 20000 + skip,
            .rkey = far->key,
            .ud = c->service == UD ? &ud : NULL,
            .nsge = 1,
            .sge = &sge,
        };

        mr_fill(near, 0, 0, len);
        mr_fill(far, 20000, 0, len + skip);
        mr_write(read ? far : near, read ? 20000 : 0, data, len);
        if (wr_takes_receive(opcode[i])) {
            post_recv(s, 20000, len + skip);
        }
        g_assert_true(qp_post_send(s->qp[0], &wr, 1));
        expect_both(s, wr_takes_receive(opcode[i]));
        lab_run(s->pair->lab);
        mr_read(read ? near : far, read ? 0 : 20000 + skip, got, len);
        g_assert_cmpmem(got, len, data, len);
    }
    route_free(s);
}

/* RC gives up in time, UC and UD do not know. The next one is not held up. */
static void test_nobody(const void *opaque)
{
    const PathCase *c = opaque;
    Route *s = route_new(c->service, false, c->grh, NOBODY);
    UdAddress ud = address(s);
    Sge sge = mr_sge(s->pair->mr[0], 0, 1000);
    SendWr wr = {
        .wr_id = 7,
        .opcode = SEND,
        .flags = SEND_SIGNALED,
        .ud = c->service == UD ? &ud : NULL,
        .nsge = 1,
        .sge = &sge,
    };
    Wc wc;

    post_recv(s, 0, 2000);
    g_assert_true(qp_post_send(s->qp[0], &wr, 1));
    if (c->service == RC) {
        cq_expect(s->qp[0]->send_cq, &wc, 7, RDMA_HCA_SYNDROME_RETRY_EXC_ERR);
        g_assert_cmpuint(qp_state(s->qp[0]), ==, RDMA_HCA_QP_STATE_ERR);
    } else {
        expect_ok(s, 0, true);
        g_assert_cmpuint(qp_state(s->qp[0]), ==, RDMA_HCA_QP_STATE_RTS);
    }
    cq_expect_none(s->qp[1]->recv_cq);
    g_assert_cmpuint(card_drops(card_of(s, 1), HCA_DROP_LID), >, 0);
    route_free(s);
}

/* ---- limits ---- */

/* As much inline data as the card says that any WQE takes. */
static void test_inline(const void *opaque)
{
    const PathCase *c = opaque;
    Route *s = route_new(c->service, false, false, 0);
    uint32_t len = RDMA_HCA_GET(
        RDMA_HCA_DEV_LIM_MAX_INLINE,
        GUINT32_FROM_BE(s->pair->drv[0]->lim.rd_atomic_inline));
    g_autofree uint8_t *data = pair_data(s->pair, len);
    g_autofree uint8_t *got = g_malloc(len);
    const uint32_t skip = c->service == UD ? GRH_SIZE : 0;
    UdAddress ud = address(s);
    SendWr wr = {
        .opcode = SEND,
        .flags = SEND_SIGNALED | SEND_INLINE,
        .ud = c->service == UD ? &ud : NULL,
        .inline_data = data,
        .inline_len = len,
    };

    g_assert_cmpuint(len, >, 900);
    post_recv(s, 0, len + skip);
    g_assert_true(qp_post_send(s->qp[0], &wr, 1));
    expect_both(s, true);
    mr_read(s->pair->mr[1], skip, got, len);
    g_assert_cmpmem(got, len, data, len);
    route_free(s);
}

/* As many entries as the card says, on both sides; every service. */
static void test_lists(const void *opaque)
{
    const PathCase *c = opaque;
    Route *s = route_new(c->service, false, false, 0);
    const struct rdma_hca_dev_lim *lim = &s->pair->drv[0]->lim;
    unsigned n = RDMA_HCA_GET(RDMA_HCA_DEV_LIM_MAX_SG,
                              GUINT32_FROM_BE(lim->max_sg_desc_sz));
    unsigned nrecv = RDMA_HCA_GET(RDMA_HCA_DEV_LIM_MAX_SG,
                                  GUINT32_FROM_BE(lim->max_sg_desc_sz_rq));
    g_autofree uint8_t *data = pair_data(s->pair, n * 50);
    g_autofree uint8_t *got = g_malloc(n * 50);
    g_autofree Sge *from = g_new(Sge, n), *to = g_new(Sge, nrecv);
    UdAddress ud = address(s);
    SendWr wr = {
        .opcode = SEND,
        .flags = SEND_SIGNALED,
        .ud = c->service == UD ? &ud : NULL,
        .nsge = n,
        .sge = from,
    };
    RecvWr recv = { .nsge = nrecv, .sge = to };
    uint32_t skip = c->service == UD ? GRH_SIZE : 0;

    g_assert_cmpuint(n, >=, 30);
    for (unsigned i = 0; i < n; i++) {
        from[i] = mr_sge(s->pair->mr[0], i * 1000, 50);
    }
    for (unsigned i = 0; i < nrecv; i++) {
        to[i] = mr_sge(s->pair->mr[1], i * 1000, i ? 50 : 50 + skip);
    }
    sges_write(s->pair->mr[0], from, n, data);
    g_assert_true(qp_post_recv(s->qp[1], &recv, 1));
    g_assert_true(qp_post_send(s->qp[0], &wr, 1));
    expect_both(s, true);
    to[0] = mr_sge(s->pair->mr[1], skip, 50);
    sges_read(s->pair->mr[1], to, n, got);
    g_assert_cmpmem(got, n * 50, data, n * 50);
    route_free(s);
}

/* A list as long as the queried maximum for a Read, too. */
static void test_read_list(void)
{
    Route *s = route_new(RC, false, false, 0);
    g_autofree uint8_t *data = pair_data(s->pair, RDMA_HCA_MAX_SGE * 300);
    g_autofree uint8_t *got = g_malloc(RDMA_HCA_MAX_SGE * 300);
    Sge sge[RDMA_HCA_MAX_SGE];
    SendWr wr = {
        .opcode = READ,
        .flags = SEND_SIGNALED,
        .raddr = s->pair->mr[1]->va,
        .rkey = s->pair->mr[1]->key,
        .nsge = RDMA_HCA_MAX_SGE,
        .sge = sge,
    };

    for (unsigned i = 0; i < RDMA_HCA_MAX_SGE; i++) {
        sge[i] = mr_sge(s->pair->mr[0], i * 1000, 300);
    }
    mr_write(s->pair->mr[1], 0, data, RDMA_HCA_MAX_SGE * 300);
    g_assert_true(qp_post_send(s->qp[0], &wr, 1));
    expect_ok(s, 0, true);
    sges_read(s->pair->mr[0], sge, RDMA_HCA_MAX_SGE, got);
    g_assert_cmpmem(got, sizeof(sge) / sizeof(*sge) * 300, data,
                    RDMA_HCA_MAX_SGE * 300);
    route_free(s);
}

/* ---- the longest messages ---- */

typedef struct LongCase {
    const char *name;
    uint8_t service, opcode, mtu;
    uint32_t len;
} LongCase;

/* More steps than cq_wait() has the patience for at once. */
static void wait_long(Cq *cq, Wc *wc, uint64_t wr_id)
{
    unsigned waits = 0;

    while (!cq_wait(cq, wc, 10 * NS_PER_MS)) {
        g_assert_cmpuint(++waits, <, 1000);
    }
    g_assert_cmphex(wc->syndrome, ==, 0);
    g_assert_cmpuint(wc->wr_id, ==, wr_id);
}

/* The memory of both sides is 64 KiB that a region repeats. */
static Pair *long_pair(const LongCase *c, Mr *mr[2], Qp *qp[2])
{
    HcaConfig config[2];
    QpAttr attr;
    Pair *pair;

    for (unsigned i = 0; i < 2; i++) {
        lab_config(&config[i], i);
        config[i].log_mtts = 17;
    }
    pair = pair_new_with(72, 4096, config, NULL, NULL);
    for (unsigned i = 0; i < 2; i++) {
        QpConfig queue;

        mr[i] = mr_new_repeated(pair->drv[i], pair->pd[i], AREA, c->len,
                                ACCESS_ALL);
        qp_config_init(&queue, pair->pd[i], pair->cq[i]);
        queue.service = c->service;
        qp[i] = qp_new(pair->drv[i], &queue);
    }
    qp_attr_init(&attr);
    attr.mtu = c->mtu;
    attr.sq_psn = LONG_PSN;
    qp_connect(qp[0], qp[1], &attr);
    return pair;
}

/* In two entries on each side: one has less than 2 GiB. */
static void post_long(const LongCase *c, Mr *mr[2], Qp *qp[2])
{
    uint32_t half = c->len / 2;
    Sge near[2] = { mr_sge(mr[0], 0, c->len - half),
                    mr_sge(mr[0], c->len - half, half) };
    Sge far[2] = { mr_sge(mr[1], 0, half), mr_sge(mr[1], half, c->len - half) };
    RecvWr recv = { .wr_id = 2, .nsge = 2, .sge = far };
    SendWr wr = {
        .wr_id = 1,
        .opcode = c->opcode,
        .flags = SEND_SIGNALED,
        .raddr = far[0].va,
        .rkey = mr[1]->key,
        .nsge = 2,
        .sge = near,
    };

    g_assert_true(qp_post_recv(qp[1], &recv, 1));
    g_assert_true(qp_post_send(qp[0], &wr, 1));
}

/*
 * What arrives last has to be right, and the PSNs say that nothing is
 * missing.
 */
static void test_longest(const void *opaque)
{
    const LongCase *c = opaque;
    uint32_t psns = (c->len + (128u << c->mtu) - 1) / (128u << c->mtu);
    bool read = c->opcode == READ;
    g_autofree uint8_t *data = NULL, *got = g_malloc(AREA);
    const HcaQp *sender;
    Pair *pair;
    Mr *mr[2];
    Qp *qp[2];
    Wc wc;

    pair = long_pair(c, mr, qp);
    data = pair_data(pair, AREA);
    mr_write(mr[read], 0, data, AREA);
    post_long(c, mr, qp);
    wait_long(pair->cq[0], &wc, 1);
    g_assert_cmpuint(wc.byte_len, ==, c->len);
    if (wr_takes_receive(c->opcode)) {
        wait_long(pair->cq[1], &wc, 2);
        g_assert_cmpuint(wc.byte_len, ==, c->len);
    }
    mr_read(mr[!read], 0, got, AREA);
    g_assert_cmpmem(got, AREA, data, AREA);
    sender = card_qp(pair->lab->host[0].hca, qp[0]->qpn);
    g_assert_cmphex(sender->req.next_psn, ==, hca_psn_add(LONG_PSN, psns));
    pair_free(pair);
}

static const LongCase longest[] = {
    { "read/2G", RC, READ, 5, 1u << 31 },
    { "send/2G", RC, SEND_IMM, 5, INT32_MAX },
    { "write/2G", RC, WRITE, 5, INT32_MAX },
    { "uc/2G", UC, SEND, 5, INT32_MAX },
    { "read/mtu256", RC, READ, 1, 1u << 31 },
};

static const PathCase services[] = {
    { "rc", RC, false, false },
    { "uc", UC, false, false },
    { "ud", UD, false, false },
};

static const PathCase paths[] = {
    { "cable/rc", RC, false, false },
    { "cable/uc", UC, false, false },
    { "cable/ud", UD, false, false },
    { "grh/rc", RC, false, true },
    { "grh/uc", UC, false, true },
    { "grh/ud", UD, false, true },
    { "loopback/rc", RC, true, false },
    { "loopback/uc", UC, true, false },
    { "loopback/ud", UD, true, false },
    { "loopback-grh/rc", RC, true, true },
    { "loopback-grh/uc", UC, true, true },
    { "loopback-grh/ud", UD, true, true },
};

static void add(const char *group, const PathCase *c, GTestDataFunc fn)
{
    const char *path = test_named("/services/%s/%s", group, c->name);

    test_add_data(path, c, fn);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(paths); i++) {
        add("path", &paths[i], test_path);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(services); i++) {
        add("nobody", &services[i], test_nobody);
        add("inline", &services[i], test_inline);
        add("lists", &services[i], test_lists);
    }
    test_add("/services/lists/read", test_read_list);
    for (unsigned i = 0; i < G_N_ELEMENTS(longest); i++) {
        const char *path = test_named("/services/longest/%s", longest[i].name);

        test_add_data(path, &longest[i], test_longest);
    }
    return g_test_run();
}
