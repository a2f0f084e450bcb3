/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory management against a model of it: regions and windows are registered,
 * bound, invalidated by both sides, and used by the peer, at random, over a
 * cable that loses packets. The model says of each request how it ends, and
 * what is in memory then.
 */
#include <string.h>

#include "lib-mem.h"
#include "lib-test.h"

enum {
    REGIONS = 4,
    WINDOWS = 6,
    PAGES = 4,
    ROUNDS = 1500,
};

#define MW_BIND RDMA_HCA_ACCESS_MW_BIND
#define ZERO_BASED RDMA_HCA_ACCESS_ZERO_BASED
#define LOCAL_WRITE RDMA_HCA_ACCESS_LOCAL_WRITE
#define REMOTE                                                                 \
    (RDMA_HCA_ACCESS_REMOTE_WRITE | RDMA_HCA_ACCESS_REMOTE_READ |              \
     RDMA_HCA_ACCESS_REMOTE_ATOMIC)
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE

typedef struct Region {
    Mr *mr; /* va, len and key are the present ones */
    uint64_t list;
    uint8_t *image; /* of its pages */
    bool valid;
    uint32_t access;
    unsigned windows;
} Region;

typedef struct Window {
    unsigned type;
    uint32_t key;
    Region *region; /* NULL: bound to nothing */
    uint64_t va;
    uint64_t len;
    uint32_t access;
    uint32_t qpn; /* type 2 */
} Window;

typedef struct Model {
    Pair *pair;
    Driver *drv;
    Qp *qp[2];
    uint32_t qpn[2][2];
    unsigned connections;
    Region region[REGIONS];
    Window window[WINDOWS];
    unsigned ended[2]; /* well, and not */
} Model;

static uint32_t pick(Model *m, uint32_t end)
{
    return pair_rand(m->pair, 0, end);
}

static bool often(Model *m)
{
    return pick(m, 8);
}

/* Rights at random, mostly many. */
static uint32_t pick_access(Model *m, uint32_t of)
{
    return of & (often(m) ? ~(often(m) ? ZERO_BASED : 0) : pick(m, 64));
}

/* QPs have two numbers by turns: some windows are their QP's again. */
static Qp *new_qp(Model *m, unsigned side)
{
    uint32_t *qpn = &m->qpn[m->connections % 2][side];
    QpConfig config;
    Qp *qp;

    if (!*qpn) {
        qp = pair_new_qp(m->pair, side, RDMA_HCA_QP_ST_RC);
        *qpn = qp->qpn;
        return qp;
    }
    qp_config_init(&config, m->pair->pd[side], m->pair->cq[side]);
    return qp_new_number(m->pair->drv[side], &config, *qpn);
}

static void connect(Model *m)
{
    QpAttr attr;

    m->qp[0] = new_qp(m, 0);
    m->qp[1] = new_qp(m, 1);
    m->connections++;
    qp_attr_init(&attr);
    qp_connect(m->qp[0], m->qp[1], &attr);
}

/* How a request of side @side's QP ended; a broken connection is replaced. */
static void ended(Model *m, unsigned side, uint8_t syndrome)
{
    m->ended[syndrome != 0]++;
    if (syndrome) {
        lab_run(m->pair->lab);
        qp_destroy(m->qp[0]);
        qp_destroy(m->qp[1]);
        connect(m);
    }
}

static void do_op(Model *m, unsigned side, const SendWr *wr, bool good,
                  uint8_t syndrome)
{
    mem_do(m->qp[side], wr, good ? 0 : syndrome);
    ended(m, side, good ? 0 : syndrome);
}

static void try_register(Model *m, Region *r)
{
    uint64_t va = ((uint64_t)pick(m, 1 << 20) << 16) + pick(m, 4096);
    uint64_t len = pick(m, PAGES * HOST_PAGE_SIZE + 100);
    uint32_t access = pick_access(m,
                                  LOCAL_WRITE | REMOTE | MW_BIND | ZERO_BASED);
    uint32_t key = mem_next_key(r->mr->key);
    bool good = !r->valid &&
                (access & LOCAL_WRITE ||
                 !(access & REMOTE & ~RDMA_HCA_ACCESS_REMOTE_READ)) &&
                va % HOST_PAGE_SIZE + len <= PAGES * HOST_PAGE_SIZE;
    Mr mr = *r->mr;
    SendWr wr;

    mr.key = key;
    wr = mem_reg_wr(&mr, r->list, va, len, access);
    do_op(m, 1, &wr, good, RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR);
    if (good) {
        r->valid = true;
        r->access = access;
        r->mr->key = key;
        r->mr->va = va;
        r->mr->len = len;
    }
}

static bool may_bind(const Window *w, const Region *r, uint64_t va,
                     uint64_t len, uint32_t access)
{
    if (w->type == 2 && (w->region || !len)) {
        return false;
    }
    if (!len) {
        return true;
    }
    return r->valid && (r->access & MW_BIND) && !(r->access & ZERO_BASED) &&
           va >= r->mr->va && va + len <= r->mr->va + r->mr->len &&
           (w->type == 2 || !(access & ZERO_BASED)) &&
           (!(access & ~RDMA_HCA_ACCESS_REMOTE_READ & REMOTE) ||
            (r->access & LOCAL_WRITE));
}

static void unbind(Window *w)
{
    if (w->region) {
        w->region->windows--;
    }
    w->region = NULL;
}

static void try_bind(Model *m, Window *w)
{
    Region *r = &m->region[pick(m, REGIONS)];
    uint64_t at = pick(m, r->mr->len + 1);
    uint64_t len = pick(m, r->mr->len - at + (often(m) ? 1 : 100));
    uint64_t va = r->mr->va + at;
    uint32_t access = pick_access(m, REMOTE | ZERO_BASED);
    uint32_t key = mem_next_key(w->key);
    bool good = may_bind(w, r, va, len, access);
    SendWr wr = mem_bind_wr(w->type, key, r->mr, va, len, access);
    uint32_t qpn = m->qp[1]->qpn;

    do_op(m, 1, &wr, good, RDMA_HCA_SYNDROME_MW_BIND_ERR);
    if (!good) {
        return;
    }
    unbind(w);
    w->key = key;
    if (len) {
        w->region = r;
        w->va = va;
        w->len = len;
        w->access = access;
        w->qpn = qpn;
        r->windows++;
    }
}

static void try_invalidate_region(Model *m, Region *r, bool remote)
{
    bool good = remote ? r->valid && !r->windows && (r->access & REMOTE)
                       : !r->valid || !r->windows;
    SendWr wr = remote ? mem_send_inv_wr(r->mr->key) : mem_inv_wr(r->mr->key);

    do_op(m, !remote, &wr, good,
          remote ? RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR
                 : RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR);
    if (good) {
        r->valid = false;
    }
}

static void try_invalidate_window(Model *m, Window *w, bool remote)
{
    bool own = w->region && w->qpn == m->qp[1]->qpn;
    bool good = w->type == 2 && (own || (!remote && !w->region));
    SendWr wr = remote ? mem_send_inv_wr(w->key) : mem_inv_wr(w->key);

    do_op(m, !remote, &wr, good,
          remote ? RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR
                 : RDMA_HCA_SYNDROME_LOCAL_QP_OP_ERR);
    if (good) {
        unbind(w);
    }
}

/* By the peer: each has a receive, whether it is used or not. */
static void try_invalidate(Model *m)
{
    bool remote = pick(m, 2);
    bool window = pick(m, 2);
    uint32_t posted = m->qp[1]->rq.head - m->qp[1]->rq.tail;

    if (remote && !posted) {
        pair_post_recv(m->pair, 1, m->qp[1], 1, 0, 64);
    }
    if (window) {
        try_invalidate_window(m, &m->window[pick(m, WINDOWS)], remote);
    } else {
        try_invalidate_region(m, &m->region[pick(m, REGIONS)], remote);
    }
}

/* What a peer may do: with which key, where, and where that is in memory. */
typedef struct Grant {
    Region *region;
    uint32_t key;
    uint32_t access;
    uint64_t va;  /* that the peer names for... */
    uint64_t at;  /* ...this byte of the region */
    uint64_t len; /* 0: nothing */
} Grant;

static Grant grant_of_region(Region *r)
{
    return (Grant) {
        .region = r,
        .key = r->mr->key,
        .access = r->access,
        .va = r->access & ZERO_BASED ? 0 : r->mr->va,
        .len = r->valid ? r->mr->len : 0,
    };
}

static Grant grant_of_window(Model *m, Window *w)
{
    bool own = w->region && (w->type == 1 || w->qpn == m->qp[1]->qpn);

    return (Grant) {
        .region = w->region,
        .key = w->key,
        .access = w->access,
        .va = w->access & ZERO_BASED ? 0 : w->va,
        .at = own ? w->va - w->region->mr->va : 0,
        .len = own ? w->len : 0,
    };
}

static void try_access(Model *m)
{
    Grant g = pick(m, 2) ? grant_of_region(&m->region[pick(m, REGIONS)])
                         : grant_of_window(m, &m->window[pick(m, WINDOWS)]);
    uint8_t opcode = pick(m, 2) ? READ : WRITE;
    uint32_t right = opcode == READ ? RDMA_HCA_ACCESS_REMOTE_READ
                                    : RDMA_HCA_ACCESS_REMOTE_WRITE;
    uint64_t at = g.len ? pick(m, g.len) : 0;
    uint32_t len = 1 + pick(m, g.len - at + !often(m) * 10 + !g.len);
    bool good = (g.access & right) && at + len <= g.len;
    uint8_t syndrome = good ? 0 : RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR;
    uint8_t *data = pair_data(m->pair, len);
    uint8_t *got = g_malloc0(len);
    uint8_t *there = NULL;

    if (good) {
        there = g.region->image + g.region->mr->va % HOST_PAGE_SIZE + g.at + at;
    }
    mr_write(m->pair->mr[0], 0, data, len);
    mem_try(m->pair, m->qp[0], 0, opcode, g.key, g.va + at, len, syndrome);
    if (good && opcode == WRITE) {
        memcpy(there, data, len);
    } else if (good) {
        mr_read(m->pair->mr[0], 0, got, len);
        g_assert_cmpmem(got, len, there, len);
    }
    ended(m, 0, syndrome);
    g_free(data);
    g_free(got);
}

static void replace_window(Model *m, Window *w)
{
    g_assert_cmphex(mem_window_free(m->drv, w->key), ==, 0);
    unbind(w);
    w->type = 1 + pick(m, 2);
    w->key = mem_window_new(m->drv, m->pair->pd[1], w->type);
}

/* All memory is as the model has it, and so are the entries. */
static void check_all(Model *m)
{
    uint8_t page[HOST_PAGE_SIZE];

    for (unsigned i = 0; i < REGIONS; i++) {
        Region *r = &m->region[i];

        for (unsigned j = 0; j < PAGES; j++) {
            host_read(m->drv->host, r->mr->page[j], page, sizeof(page));
            g_assert_cmpmem(page, sizeof(page), r->image + j * sizeof(page),
                            sizeof(page));
        }
        g_assert_true(mem_is_free(m->drv, r->mr->key) != r->valid);
        g_assert_cmpuint(mem_windows(m->drv, r->mr->key), ==, r->windows);
    }
}

static void model_init(Model *m, uint32_t seed)
{
    *m = (Model) { .pair = pair_new(seed, 65536) };
    m->drv = m->pair->drv[1];
    connect(m);
    for (unsigned i = 0; i < REGIONS; i++) {
        Region *r = &m->region[i];

        r->mr = mem_region_new(m->drv, m->pair->pd[1], PAGES);
        r->list = mem_list_new(m->drv, r->mr->page, PAGES);
        r->image = g_malloc0(PAGES * HOST_PAGE_SIZE);
        r->mr->len = 0;
        for (unsigned j = 0; j < PAGES; j++) {
            host_fill(m->drv->host, r->mr->page[j], 0, HOST_PAGE_SIZE);
        }
    }
    for (unsigned i = 0; i < WINDOWS; i++) {
        m->window[i].type = 1 + i % 2;
        m->window[i].key = mem_window_new(m->drv, m->pair->pd[1], 1 + i % 2);
    }
}

static void model_free(Model *m)
{
    for (unsigned i = 0; i < REGIONS; i++) {
        g_free(m->region[i].image);
    }
    pair_free(m->pair);
}

static void step(Model *m)
{
    Wc wc;

    switch (pick(m, 12)) {
    case 0:
    case 1:
        try_register(m, &m->region[pick(m, REGIONS)]);
        break;
    case 2:
    case 3:
    case 4:
        try_bind(m, &m->window[pick(m, WINDOWS)]);
        break;
    case 5:
        try_invalidate(m);
        break;
    case 6:
        replace_window(m, &m->window[pick(m, WINDOWS)]);
        break;
    default:
        try_access(m);
        break;
    }
    lab_run(m->pair->lab);
    while (cq_poll(m->pair->cq[1], &wc)) { /* receives, flushed ones too */
        g_assert_false(wc.is_send);
    }
}

static void run(uint32_t seed, unsigned percent)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);
    Model m;

    model_init(&m, seed);
    if (percent) {
        /* Requests alone: a NAK that is lost does not come again. */
        plan.rule[0].directions = 1u << HCA_FAULT_TX;
        plan.rule[0].probability = HCA_FAULT_ALWAYS / 100 * percent;
        host_set_faults(&m.pair->lab->host[0], &plan);
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        step(&m);
        if (i % 50 == 0) {
            check_all(&m);
        }
    }
    check_all(&m);
    g_assert_cmpuint(m.ended[0], >, ROUNDS / 4);
    g_assert_cmpuint(m.ended[1], >, ROUNDS / 20);
    model_free(&m);
}

static void test_good_cable(void)
{
    run(7000, 0);
}

static void test_bad_cable(void)
{
    run(7001, 5);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add_each_link("/mem-model/good-cable", test_good_cable);
    test_add_each_link("/mem-model/bad-cable", test_bad_cable);
    return g_test_run();
}
