/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib-machine.h"
#include "lib-make.h"

#define MR_LEN 12000 /* neither begins nor ends with a page */
#define REGION_LEN 6000
#define KNOWN 0x5a /* what memory holds that may be read */
#define LOG_CQ 6
#define XRC_DOMAIN 3
#define LOG_SMALL_CQ 4
#define LOG_SMALL_EQ 1
#define RESET_TURNS 64
#define TIMER_TURNS 200

/* Memory with less rights than all. */
typedef struct FuzzSecret {
    unsigned side;
    uint64_t bus; /* within a page */
    uint32_t len;
    bool kept;   /* must not change */
    bool hidden; /* must not leave */
} FuzzSecret;

static Canary canary;

void fuzz_fail(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    fputs("fuzz: ", stderr);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    abort();
}

static void say_nothing(const char *text)
{
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    meter_init();
    g_set_print_handler(say_nothing);
    return 0;
}

/* ---- secrets ---- */

/* No input can hold what it is the hash of. The same from either end. */
static void make_canary(const uint8_t *data, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
    }
    for (unsigned i = 0; i < 4; i++) {
        canary.byte[i] = canary.byte[7 - i] = hash >> (32 + 8 * i) | 1;
    }
}

/* What is in a secret's memory; the canary begins anew every eight bytes. */
static const uint8_t *content(const FuzzSecret *secret)
{
    static uint8_t hidden[HOST_PAGE_SIZE + sizeof(canary)];
    static uint8_t known[HOST_PAGE_SIZE];

    if (!secret->hidden) {
        memset(known, KNOWN, sizeof(known));
        return known;
    }
    if (memcmp(hidden, &canary, sizeof(canary))) {
        for (size_t i = 0; i < sizeof(hidden); i += sizeof(canary)) {
            memcpy(hidden + i, &canary, sizeof(canary));
        }
    }
    return hidden + secret->bus % sizeof(canary);
}

static void add_secret(Fuzz *f, const FuzzSecret *secret)
{
    host_write(&f->lab->host[secret->side], secret->bus, content(secret),
               secret->len);
    g_array_append_val(f->secrets, *secret);
}

void fuzz_add_secret(Fuzz *f, unsigned side, uint64_t bus, uint32_t len)
{
    add_secret(f, &(FuzzSecret) { side, bus, len, true, true });
}

/* All of a region. */
static void add_region(Fuzz *f, unsigned side, const Mr *mr, bool kept,
                       bool hidden)
{
    for (uint64_t at = 0, n; at < mr->len; at += n) {
        n = HOST_PAGE_SIZE - (mr->va + at) % HOST_PAGE_SIZE;
        n = MIN(n, mr->len - at);
        add_secret(f, &(FuzzSecret) { side, mr_bus(mr, at), n, kept, hidden });
    }
}

/* What is beside a region, in its first and its last page. */
static void add_margins(Fuzz *f, unsigned side, const Mr *mr)
{
    uint32_t before = mr->va % HOST_PAGE_SIZE;
    uint32_t end = (mr->va + mr->len) % HOST_PAGE_SIZE;

    add_secret(
        f, &(FuzzSecret) { side, mr_bus(mr, 0) - before, before, true, true });
    if (end) {
        add_secret(f, &(FuzzSecret) { side, mr_bus(mr, mr->len - 1) + 1,
                                      HOST_PAGE_SIZE - end, true, true });
    }
}

static void check_kept(Fuzz *f, const FuzzSecret *secret)
{
    uint8_t page[HOST_PAGE_SIZE];

    host_read(&f->lab->host[secret->side], secret->bus, page, secret->len);
    if (memcmp(page, content(secret), secret->len)) {
        fuzz_fail("memory that nobody may write has changed: %u bytes at "
                  "%#" G_GINT64_MODIFIER "x of machine %u",
                  secret->len, secret->bus, secret->side);
    }
}

/* The page without what is hidden in it. */
static void read_public(Fuzz *f, unsigned side, uint64_t bus, uint8_t *page)
{
    host_read(&f->lab->host[side], bus, page, HOST_PAGE_SIZE);
    for (guint i = 0; i < f->secrets->len; i++) {
        FuzzSecret *secret = &g_array_index(f->secrets, FuzzSecret, i);

        if (secret->side == side && secret->bus - bus < HOST_PAGE_SIZE) {
            memset(page + (secret->bus - bus), 0, secret->len);
        }
    }
}

static gint compare_pages(gconstpointer a, gconstpointer b)
{
    const uint64_t *first = a, *second = b;

    return *first < *second ? -1 : *first > *second;
}

/* Nothing that is hidden is in memory that a card has written. */
static void check_hidden(Fuzz *f, unsigned side)
{
    g_autoptr(GArray) pages = g_array_copy((GArray *)machine_written(side));
    uint8_t page[HOST_PAGE_SIZE];

    g_array_sort(pages, compare_pages);
    for (guint i = 0; i < pages->len; i++) {
        uint64_t bus = g_array_index(pages, uint64_t, i);

        if (i && bus == g_array_index(pages, uint64_t, i - 1)) {
            continue;
        }
        read_public(f, side, bus, page);
        if (canary_is_in(&canary, page, sizeof(page))) {
            fuzz_fail("card %u writes to %#" G_GINT64_MODIFIER
                      "x what nobody may read",
                      side, bus);
        }
    }
}

/* Device memory: regions of it are a driver's to make, and one there is. */

#define DEV_MEM_START 64u
#define DEV_MEM_LEN 1024u

static bool has_dev_mem(const Fuzz *f, unsigned side)
{
    return f->lab->host[side].config.device_memory >=
           DEV_MEM_START + DEV_MEM_LEN;
}

static bool is_shown(const Fuzz *f, unsigned side, uint32_t at)
{
    return has_dev_mem(f, side) && at >= DEV_MEM_START &&
           at < DEV_MEM_START + DEV_MEM_LEN;
}

static bool has_dev_mem_secret(const Fuzz *f, unsigned side)
{
    return f->guest[side] != FUZZ_GUEST_DRIVER;
}

static void hide_dev_mem(Fuzz *f, unsigned side)
{
    Host *host = &f->lab->host[side];

    for (uint32_t at = 0; at < host->config.device_memory;
         at += sizeof(canary)) {
        if (!is_shown(f, side, at)) {
            memcpy(host->dev_mem + at, &canary, sizeof(canary));
        }
    }
}

static void check_dev_mem(Fuzz *f, unsigned side)
{
    const Host *host = &f->lab->host[side];

    for (uint32_t at = 0; at < host->config.device_memory;
         at += sizeof(canary)) {
        if (!is_shown(f, side, at) &&
            memcmp(host->dev_mem + at, &canary, sizeof(canary))) {
            fuzz_fail("device memory of machine %u has changed at %#x", side,
                      at);
        }
    }
}

static void check_secrets(Fuzz *f)
{
    for (guint i = 0; i < f->secrets->len; i++) {
        FuzzSecret *secret = &g_array_index(f->secrets, FuzzSecret, i);

        if (secret->kept) {
            check_kept(f, secret);
        }
    }
    for (unsigned side = 0; side < 2; side++) {
        check_hidden(f, side);
        if (has_dev_mem_secret(f, side)) {
            check_dev_mem(f, side);
        }
    }
}

/* ---- the two machines ---- */

void fuzz_config(HcaConfig *config, unsigned side, bool roce)
{
    lab_config_roce(config, side);
    config->link_layer = roce ? HCA_LINK_LAYER_ROCE : HCA_LINK_LAYER_IB;
    config->cable = roce ? HCA_CABLE_SEGMENT : HCA_CABLE_CARD;
    config->log_qps = 4;
    config->log_cqs = 3;
    config->log_eqs = 3;
    config->log_srqs = 3;
    config->log_srq_wqes = 5;
    config->log_mpts = 6;
    config->log_mtts = 8;
    config->log_pds = 3;
    config->log_sq_slots = 15;
    config->log_gids = 3;
    config->log_flows = 3;
    config->cache_ways = 1;
    config->mpt_cache_size = config->mtt_cache_size = 256;
    config->rpb_elements = 16;
    config->reb_elements = 64;
    config->swpb_elements = 512;
}

static Mr *region(Fuzz *f, unsigned side, uint32_t pd, unsigned i,
                  uint32_t access)
{
    return mr_new(f->pair->drv[side], pd, 0x100000 * i + 0x321, REGION_LEN,
                  access);
}

static void add_pieces(Fuzz *f, unsigned side)
{
    Driver *drv = f->pair->drv[side];
    Mr *mr = mem_pieces_new(drv, f->pair->pd[side], FUZZ_NPIECES);
    const MemPiece piece[FUZZ_NPIECES] = {
        { mr->page[0] + 100, 1 },
        { mr->page[1], 2 },
        { mr->page[3] + 7, 3 },
        { mr->page[4] + 4000, 90 },
        { mr->page[0] + 101, 200 },
        { mr->page[6], 300 },
        { mr->page[2] + 96, FUZZ_PIECES_LEN },
    };

    mem_pieces_make_valid(mr, piece, FUZZ_NPIECES, FUZZ_MEM_VA, ACCESS_ALL);
    f->pieces[side] = mr;
    f->piece_list[side] = mem_piece_list_new(drv, piece, FUZZ_NPIECES);
    f->mem_key[side][FUZZ_PIECES] = mr->key;
}

/* Not with options that leave no room for it: then the key is of nothing. */
static void add_dev_mem(Fuzz *f, unsigned side)
{
    Mr *mr = &f->dev_mem[side];

    mr->va = 0;
    mr->len = DEV_MEM_LEN;
    if (has_dev_mem(f, side)) {
        mem_dev_mem_new(f->pair->drv[side], f->pair->pd[side], DEV_MEM_START,
                        DEV_MEM_LEN, ACCESS_ALL | RDMA_HCA_ACCESS_ZERO_BASED,
                        &f->mem_key[side][FUZZ_DEV_MEM]);
    }
}

/*
 * A window of type 2 is its QP's alone (IBA 10.6.7.2.2). That one has broken,
 * so whoever names the key, be it a QP of the same protection domain or its
 * peer, does not come by it.
 */
static void add_claimed(Fuzz *f, unsigned side)
{
    Driver *drv = f->pair->drv[side];
    uint32_t pd = f->pair->pd[side];
    Mr *mr = region(f, side, pd, 5,
                    RDMA_HCA_ACCESS_LOCAL_WRITE | RDMA_HCA_ACCESS_MW_BIND);
    QpConfig config;
    QpAttr attr;
    Qp *qp;

    qp_config_init(&config, pd, f->pair->cq[side]);
    config.sq_entries = config.rq_entries = 1;
    qp = qp_new(drv, &config);
    fuzz_attr(&attr);
    attr.dest_qpn = qp->qpn;
    qp_attr_to(&attr, drv, f->pair->drv[!side]);
    g_assert_cmphex(qp_to_init(qp, &attr), ==, 0);
    g_assert_cmphex(qp_to_rtr(qp, &attr), ==, 0);
    g_assert_cmphex(qp_to_rts(qp, &attr), ==, 0);
    f->mem_key[side][FUZZ_CLAIMED] = mem_bind(
        qp, 2, mem_window_new(drv, pd, 2), mr, mr->va, mr->len,
        ACCESS_ALL & ~RDMA_HCA_ACCESS_LOCAL_WRITE);
    g_assert_cmphex(qp_to_err(qp), ==, 0);
    f->claimed[side] = mr;
    f->mem[side][FUZZ_CLAIMED] = mr;
}

/* What an entry can have of memory that is nowhere: messages are to end soon. */
#define NULL_LEN (64 * 1024)

/* Of all these the memory is where that of @bindable is, but for device memory. */
static void add_mem(Fuzz *f, unsigned side)
{
    Driver *drv = f->pair->drv[side];
    uint32_t pd = f->pair->pd[side];

    for (unsigned i = 0; i < FUZZ_NMEM_KEYS; i++) {
        f->mem[side][i] = f->bindable[side];
    }
    f->mem[side][FUZZ_DEV_MEM] = &f->dev_mem[side];
    f->fast[side] = mem_region_new(drv, pd, 2);
    f->list[side] = mem_list_new(drv, f->fast[side]->page, 2);
    f->mem_key[side][FUZZ_FAST] = f->fast[side]->key;
    f->mem_key[side][FUZZ_WINDOW1] = mem_window_new(drv, pd, 1);
    f->mem_key[side][FUZZ_WINDOW2] = mem_window_new(drv, pd, 2);
    add_pieces(f, side);
    add_dev_mem(f, side);
    f->mem_key[side][FUZZ_NULL] =
        mem_null_new(drv, pd, f->bindable[side]->va, NULL_LEN)->key;
}

static void add_regions(Fuzz *f, unsigned side)
{
    Driver *drv = f->pair->drv[side];
    uint32_t pd = f->pair->pd[side];
    Mr **mr = f->mr[side];

    mr[FUZZ_ALL] = f->pair->mr[side];
    mr[FUZZ_READABLE] = region(f, side, pd, 1, RDMA_HCA_ACCESS_REMOTE_READ);
    mr[FUZZ_WRITABLE] = region(f, side, pd, 2,
                               RDMA_HCA_ACCESS_LOCAL_WRITE |
                                   RDMA_HCA_ACCESS_REMOTE_WRITE |
                                   RDMA_HCA_ACCESS_FLUSH);
    mr[FUZZ_LOCAL] = region(f, side, pd, 3, RDMA_HCA_ACCESS_LOCAL_WRITE);
    mr[FUZZ_ALIEN] = region(f, side, pd_new(drv), 4, ACCESS_ALL);
    f->bindable[side] = mr_new(drv, pd, FUZZ_MEM_VA, 2 * HOST_PAGE_SIZE,
                               ACCESS_ALL | RDMA_HCA_ACCESS_MW_BIND);
    add_mem(f, side);
}

static void add_secrets(Fuzz *f, unsigned side)
{
    Host *host = &f->lab->host[side];
    Mr **mr = f->mr[side];
    uint64_t bus;

    if (f->guest[side] == FUZZ_GUEST_DRIVER) {
        bus = host_alloc(host, HOST_BLOCK_SIZE / HOST_PAGE_SIZE);
        add_secret(f, &(FuzzSecret) { side, bus, HOST_PAGE_SIZE, true, false });
        host_set_rom(host, bus);
        return;
    }
    add_region(f, side, mr[FUZZ_ALIEN], true, true);
    for (unsigned i = 0; i < FUZZ_NREGIONS; i++) {
        add_margins(f, side, mr[i]);
    }
    add_secret(f, &(FuzzSecret) { side, host_alloc(host, 1), HOST_PAGE_SIZE,
                                  true, true });
    if (f->guest[side] == FUZZ_GUEST_GOOD) {
        add_region(f, side, mr[FUZZ_READABLE], true, false);
        add_region(f, side, mr[FUZZ_WRITABLE], false, true);
        add_region(f, side, mr[FUZZ_LOCAL], true, true);
        add_region(f, side, f->claimed[side], true, true);
    }
}

void fuzz_attr(QpAttr *attr)
{
    qp_attr_init(attr);
    attr->mtu = 1;
    attr->timeout = 8; /* 1 ms */
    attr->retry_cnt = 2;
    attr->rnr_retry = 2;
    attr->min_rnr_timer = 1;
    attr->access |= RDMA_HCA_ACCESS_FLUSH;
}

static void add_srqs(Fuzz *f, unsigned side)
{
    SrqConfig config;

    srq_config_init(&config, f->pair->pd[side]);
    config.entries = 16;
    f->srq[FUZZ_SRQ][side] = srq_new(f->pair->drv[side], &config);
    srq_config_xrc(&config, f->pair->cq[side], XRC_DOMAIN);
    f->srq[FUZZ_SRQ_XRC][side] = srq_new(f->pair->drv[side], &config);
    for (unsigned i = 0; i < FUZZ_NSRQS; i++) {
        f->srq[i][side]->doubtful = f->guest[side] != FUZZ_GUEST_GOOD;
    }
}

static Qp *new_qp(Fuzz *f, unsigned side, unsigned which)
{
    static const uint8_t service[FUZZ_NQPS][2] = {
        [FUZZ_RC] = { RDMA_HCA_QP_ST_RC, RDMA_HCA_QP_ST_RC },
        [FUZZ_UC] = { RDMA_HCA_QP_ST_UC, RDMA_HCA_QP_ST_UC },
        [FUZZ_UD] = { RDMA_HCA_QP_ST_UD, RDMA_HCA_QP_ST_UD },
        [FUZZ_SHARED] = { RDMA_HCA_QP_ST_RC, RDMA_HCA_QP_ST_RC },
        [FUZZ_XRC] = { RDMA_HCA_QP_ST_XRC_TGT, RDMA_HCA_QP_ST_XRC_INI },
        [FUZZ_XRC_BACK] = { RDMA_HCA_QP_ST_XRC_INI, RDMA_HCA_QP_ST_XRC_TGT },
    };
    QpConfig config;

    qp_config_init(&config, f->pair->pd[side], f->pair->cq[side]);
    config.service = service[which][side];
    config.privileged = f->guest[side] != FUZZ_GUEST_PROGRAM;
    config.sq_entries = config.rq_entries = 16;
    if (which == FUZZ_SHARED) {
        config.srq = f->srq[FUZZ_SRQ][side];
    } else if (which >= FUZZ_XRC) {
        config.rq_entries = 0;
        config.recv_cq = NULL;
    }
    if (config.service == RDMA_HCA_QP_ST_XRC_TGT) {
        config.sq_entries = 0;
        config.send_cq = NULL;
        config.xrcd = XRC_DOMAIN;
    }
    return qp_new(f->pair->drv[side], &config);
}

bool fuzz_bring_up(Fuzz *f, unsigned side, unsigned which, const QpAttr *attr)
{
    Qp *qp = f->qp[which][side];
    QpAttr own = *attr;

    own.dest_qpn = f->qp[which][!side]->qpn;
    qp_attr_to(&own, qp->drv, f->pair->drv[!side]);
    if (side) {
        own.sq_psn = attr->rq_psn;
        own.rq_psn = attr->sq_psn;
    }
    return !qp_to_init(qp, &own) && !qp_to_rtr(qp, &own) &&
           !qp_to_rts(qp, &own);
}

uint8_t fuzz_make_eq(const Mr *mr, uint32_t eqn, unsigned log_size)
{
    struct rdma_hca_eqc eqc = good_eqc(mr->pd, mr->key, 0, log_size);

    return driver_cmd_in(mr->drv, RDMA_HCA_CMD_SW2HW_EQ, &eqc, sizeof(eqc), eqn,
                         0);
}

/* A CQ that may overrun, and whose events may have to wait. */
static Cq *new_small_cq(Driver *drv)
{
    const Mr *mr = mr_new(drv, drv->kernel_pd, 0x7000000, HOST_PAGE_SIZE,
                          RDMA_HCA_ACCESS_LOCAL_WRITE);
    uint32_t usual = drv->eq[EQ_COMP].eqn;
    Cq *cq;

    g_assert_cmphex(fuzz_make_eq(mr, FUZZ_COMP_EQN, LOG_SMALL_EQ), ==, 0);
    drv->eq[EQ_COMP].eqn = FUZZ_COMP_EQN;
    cq = cq_new(drv, LOG_SMALL_CQ, RDMA_HCA_UAR_KERNEL + 1);
    drv->eq[EQ_COMP].eqn = usual;
    return cq;
}

static void connect(Fuzz *f)
{
    QpAttr attr;

    if (f->guest[0] != FUZZ_GUEST_GOOD) {
        f->pair->cq[0] = new_small_cq(f->pair->drv[0]);
    }
    fuzz_attr(&attr);
    add_srqs(f, 0);
    add_srqs(f, 1);
    for (unsigned which = 0; which < FUZZ_NQPS; which++) {
        f->qp[which][0] = new_qp(f, 0, which);
        f->qp[which][1] = new_qp(f, 1, which);
        g_assert_true(fuzz_bring_up(f, 0, which, &attr));
        g_assert_true(fuzz_bring_up(f, 1, which, &attr));
    }
    add_claimed(f, 0);
    add_claimed(f, 1);
}

/* What cards share is made by the first look, and is not theirs. */
static void warm_up(Fuzz *f)
{
    static bool warm;

    if (!warm) {
        card_counter(f->lab->host[0].hca, "cxtmgt_qps");
        warm = true;
    }
}

void fuzz_begin_with(Fuzz *f, const uint8_t *data, size_t size, FuzzGuest first,
                     const HcaConfig *config)
{
    make_canary(data, size);
    f->roce = hca_config_is_roce(&config[0]);
    f->guest[0] = first;
    f->guest[1] = FUZZ_GUEST_GOOD;
    f->pair = pair_new_with(1, MR_LEN, config, NULL, NULL);
    f->lab = f->pair->lab;
    warm_up(f);
    f->secrets = g_array_new(FALSE, FALSE, sizeof(FuzzSecret));
    for (unsigned side = 0; side < 2; side++) {
        add_regions(f, side);
    }
    connect(f);
    for (unsigned side = 0; side < 2; side++) {
        add_secrets(f, side);
        if (has_dev_mem_secret(f, side)) {
            hide_dev_mem(f, side);
        }
    }
    machine_hide(&canary);
}

void fuzz_begin(Fuzz *f, const uint8_t *data, size_t size, FuzzGuest first)
{
    HcaConfig config[2];
    bool roce;

    *f = (Fuzz) { .in = { data, size } };
    roce = take_bool(&f->in);
    fuzz_config(&config[0], 0, roce);
    fuzz_config(&config[1], 1, roce);
    fuzz_begin_with(f, data, size, first, config);
}

void fuzz_play(Fuzz *f, const FuzzAction *actions, unsigned n)
{
    bool told = g_getenv("HCA_TRACE");

    while (f->in.left) {
        const FuzzAction *action = &actions[take_below(&f->in, n)];

        if (told) {
            fprintf(stderr, "# %s\n", action->name);
        }
        action->act(f);
    }
}

/* ---- turns and time ---- */

void fuzz_rest(Fuzz *f)
{
    if (!lab_rests_within(f->lab, FUZZ_MOST_TURNS)) {
        fuzz_fail("the cards do not come to rest");
    }
}

void fuzz_sleep(Fuzz *f, int64_t ns)
{
    int64_t end = f->lab->now + ns;

    fuzz_rest(f);
    for (unsigned n = 0; n < TIMER_TURNS; n++) {
        int64_t next = MIN(f->lab->host[0].deadline, f->lab->host[1].deadline);

        if (next >= end) {
            break;
        }
        f->lab->now = MAX(f->lab->now, next);
        fuzz_rest(f);
    }
    f->lab->now = MAX(f->lab->now, end);
    fuzz_rest(f);
}

/* ---- the end ---- */

static void reset(Fuzz *f, Host *host)
{
    host_bar0_write(host, RDMA_HCA_RESET, 1);
    for (unsigned n = 0; host_bar0_read(host, RDMA_HCA_RESET); n++) {
        if (n == RESET_TURNS || !lab_step(f->lab)) {
            fuzz_fail("the reset of card %u does not end", host->side);
        }
    }
}

static void renew(Fuzz *f, unsigned side)
{
    Host *host = &f->lab->host[side];
    Pair *pair = f->pair;

    driver_free(pair->drv[side]);
    reset(f, host);
    pair->drv[side] = driver_new(host);
    pair->pd[side] = pd_new(pair->drv[side]);
    pair->cq[side] = cq_new(pair->drv[side], LOG_CQ, RDMA_HCA_UAR_KERNEL + 1);
    pair->mr[side] = mr_new(pair->drv[side], pair->pd[side], 0x1000, 4096,
                            ACCESS_ALL);
}

void fuzz_start_over(Fuzz *f, unsigned side)
{
    QpAttr attr;

    renew(f, side);
    add_regions(f, side);
    add_srqs(f, side);
    fuzz_attr(&attr);
    for (unsigned which = 0; which < FUZZ_NQPS; which++) {
        f->qp[which][side] = new_qp(f, side, which);
        /* A peer that has not noticed may repeat what it had no right to. */
        g_assert_true(fuzz_bring_up(f, side, which, &attr) ||
                      qp_state(f->qp[which][side]) == RDMA_HCA_QP_STATE_ERR);
    }
    add_claimed(f, side);
}

/* What the peer receives has to be what was sent. */
static void check_datagram(Fuzz *f)
{
    static const char text[] = "a datagram";
    char got[sizeof(text)] = "";
    Pair *pair = f->pair;
    Qp *qp[2] = { new_qp(f, 0, FUZZ_UD), new_qp(f, 1, FUZZ_UD) };
    UdAddress ud = { .qkey = 0x11111111 };
    SendWr wr;
    QpAttr attr;
    Sge sge;
    Wc wc;

    fuzz_attr(&attr);
    qp_bring_up(qp[0], &attr);
    qp_bring_up(qp[1], &attr);
    ud.dqpn = qp[1]->qpn;
    ud_address_to(&ud, pair->drv[0], pair->drv[1]);
    mr_write(pair->mr[0], 0, text, sizeof(text));
    pair_post_recv(pair, 1, qp[1], 1, 0, 256);
    wr = pair_send(pair, 0, RDMA_HCA_OPCODE_SEND, 2, &sge, 0, sizeof(text), 0);
    wr.ud = &ud;
    g_assert_true(qp_post_send(qp[0], &wr, 1));
    cq_expect(pair->cq[0], &wc, 2, 0);
    cq_expect(pair->cq[1], &wc, 1, 0);
    mr_read(pair->mr[1], 40, got, sizeof(got)); /* behind GRH */
    g_assert_cmpmem(got, sizeof(got), text, sizeof(text));
}

static void check_works(Fuzz *f)
{
    QpAttr attr;

    lab_cable(f->lab, false);
    lab_tap(f->lab, NULL, NULL);
    for (unsigned side = 0; side < 2; side++) {
        host_set_faults(&f->lab->host[side], NULL);
        renew(f, side);
    }
    lab_cable(f->lab, true);
    fuzz_rest(f);
    fuzz_attr(&attr);
    f->qp[FUZZ_RC][0] = new_qp(f, 0, FUZZ_RC);
    f->qp[FUZZ_RC][1] = new_qp(f, 1, FUZZ_RC);
    g_assert_true(fuzz_bring_up(f, 0, FUZZ_RC, &attr));
    g_assert_true(fuzz_bring_up(f, 1, FUZZ_RC, &attr));
    pair_check_works(f->pair, f->qp[FUZZ_RC], 0);
    pair_check_works(f->pair, f->qp[FUZZ_RC], 1);
    check_datagram(f);
}

/* As the machine's monitor shows them. */
static void check_counter(void *opaque, const HcaCounter *counter)
{
    if (!counter->unit || !counter->name || !counter->text) {
        fuzz_fail("a counter of card %u has no name", ((Host *)opaque)->side);
    }
}

static void check_counters(Fuzz *f)
{
    for (unsigned side = 0; side < 2; side++) {
        Host *host = &f->lab->host[side];

        hca_counters_visit(host->hca, check_counter, host);
    }
}

void fuzz_end(Fuzz *f)
{
    machine_plan_nothing();
    fuzz_sleep(f, NS_PER_S);
    check_secrets(f);
    check_counters(f);
    check_works(f);
    pair_free(f->pair);
    machine_forget();
    g_array_unref(f->secrets);
    if (meter.live) {
        fuzz_fail("the cards are gone and keep %zu bytes", meter.live);
    }
}
