/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-host.h"

#include "../card.h"
#include "../v2p/v2p.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../abi/rdma_hca_regs.h"
#include "lib-cable.h"
#include "lib-lie.h"
#include "lib-state.h"

#define STEP_NS 100      /* a call of hca_run() takes this long */
#define MAX_STEPS 500000 /* without coming to rest */
#define PAGES_PER_BLOCK (HOST_BLOCK_SIZE / HOST_PAGE_SIZE)

/* RAM in pieces that are apart for the sanitizer too. */
typedef struct HostBlock {
    uint8_t *ram;
    uint64_t bus;
    bool rom;
    uint16_t dirty; /* one bit a page */
} HostBlock;

uint32_t lab_seed(uint32_t seed)
{
    const char *text = g_getenv("HCA_SEED");

    if (text) {
        seed = strtoul(text, NULL, 0);
    }
    g_test_message("HCA_SEED=%u", seed);
    return seed;
}

static void small_config(HcaConfig *config, unsigned side)
{
    hca_config_init(config);
    config->log_qps = 8;
    config->log_cqs = 8;
    config->log_eqs = 3;
    config->log_srqs = 6;
    config->log_srq_wqes = 12;
    config->log_mpts = 10;
    config->log_mtts = 14;
    config->log_pds = 8;
    config->lid = 0x10 + side;
    config->guid = UINT64_C(0x0200c0fffe000000) + side;
    config->num_vectors = 8;
    config->device_memory = 65536;
    config->swpb_elements = 4096; /* the document's */
}

void lab_config_roce(HcaConfig *config, unsigned side)
{
    static const uint8_t mac[6] = { 0x02, 0x00, 0xc0, 0xff, 0xee };

    small_config(config, side);
    config->link_layer = HCA_LINK_LAYER_ROCE;
    config->cable = HCA_CABLE_SEGMENT;
    memcpy(config->mac, mac, sizeof(mac));
    config->mac[5] = 0x10 + side;
    config->log_gids = 4;
    config->osq_per_qp = 16; /* the document's */
}

void lab_config(HcaConfig *config, unsigned side)
{
    if (test_is_roce()) {
        lab_config_roce(config, side);
    } else {
        small_config(config, side);
    }
}

/* ---- memory ---- */

static HostBlock *host_block(Host *host, uint64_t bus)
{
    bool high = bus >= HOST_HIGH_BASE;
    GPtrArray *blocks = high ? host->high_blocks : host->low_blocks;
    uint64_t n = (high ? bus - HOST_HIGH_BASE : bus) / HOST_BLOCK_SIZE;

    return n < blocks->len ? g_ptr_array_index(blocks, n) : NULL;
}

static void host_block_free(gpointer data)
{
    HostBlock *block = data;

    if (block) {
        g_free(block->ram);
        g_free(block);
    }
}

/* Blocks are added now here and now there, and every other place is a hole. */
static HostBlock *host_block_new(Host *host)
{
    GPtrArray *blocks = host->bump_high ? host->high_blocks : host->low_blocks;
    HostBlock *block = g_new0(HostBlock, 1);

    g_ptr_array_add(blocks, NULL);
    block->bus = (uint64_t)blocks->len * HOST_BLOCK_SIZE;
    block->bus += host->bump_high ? HOST_HIGH_BASE : 0;
    g_assert_cmphex(block->bus & 0xffffffff, <, HOST_MMIO_BASE);
    block->ram = g_malloc0(HOST_BLOCK_SIZE);
    g_ptr_array_add(blocks, block);
    host->bump_high = !host->bump_high;
    return block;
}

uint64_t host_alloc(Host *host, unsigned npages)
{
    uint64_t bus;

    g_assert_cmpuint(npages, >=, 1);
    g_assert_cmpuint(npages, <=, PAGES_PER_BLOCK);
    if (npages == 1 && host->free_pages->len) {
        guint i = g_rand_int_range(host->lab->rand, 0, host->free_pages->len);

        bus = g_array_index(host->free_pages, uint64_t, i);
        g_array_remove_index_fast(host->free_pages, i);
        host_fill(host, bus, 0, HOST_PAGE_SIZE);
        return bus;
    }
    if (host->bump_end - host->bump < (uint64_t)npages * HOST_PAGE_SIZE) {
        HostBlock *block;

        for (; host->bump < host->bump_end; host->bump += HOST_PAGE_SIZE) {
            g_array_append_val(host->free_pages, host->bump);
        }
        block = host_block_new(host);
        host->bump = block->bus;
        host->bump_end = block->bus + HOST_BLOCK_SIZE;
    }
    bus = host->bump;
    host->bump += (uint64_t)npages * HOST_PAGE_SIZE;
    if (npages == 1 && g_rand_boolean(host->lab->rand)) {
        /* Give out a later one first, so that neighbours are rare. */
        uint64_t kept = bus;

        if (host->bump < host->bump_end) {
            bus = host->bump;
            host->bump += HOST_PAGE_SIZE;
            g_array_append_val(host->free_pages, kept);
        }
    }
    return bus;
}

void host_free_page(Host *host, uint64_t bus)
{
    g_assert_nonnull(host_block(host, bus));
    g_array_append_val(host->free_pages, bus);
}

void host_set_rom(Host *host, uint64_t bus)
{
    host_block(host, bus)->rom = true;
}

/* The memory behind @bus and how many of @len bytes lie there together. */
static uint8_t *host_ram(Host *host, uint64_t bus, size_t *len)
{
    HostBlock *block = host_block(host, bus);
    size_t at = bus % HOST_BLOCK_SIZE;

    g_assert_nonnull(block);
    *len = MIN(*len, HOST_BLOCK_SIZE - at);
    return block->ram + at;
}

void host_read(Host *host, uint64_t bus, void *buf, size_t len)
{
    for (size_t n; len; bus += n, buf = (uint8_t *)buf + n, len -= n) {
        n = len;
        memcpy(buf, host_ram(host, bus, &n), n);
    }
}

void host_write(Host *host, uint64_t bus, const void *buf, size_t len)
{
    for (size_t n; len; bus += n, buf = (const uint8_t *)buf + n, len -= n) {
        uint8_t *ram;

        n = len;
        ram = host_ram(host, bus, &n);
        memcpy(ram, buf, n);
    }
}

void host_fill(Host *host, uint64_t bus, int byte, size_t len)
{
    for (size_t n; len; bus += n, len -= n) {
        uint8_t *ram;

        n = len;
        ram = host_ram(host, bus, &n);
        memset(ram, byte, n);
    }
}

uint32_t host_read_le32(Host *host, uint64_t bus)
{
    uint32_t value;

    host_read(host, bus, &value, sizeof(value));
    return GUINT32_FROM_LE(value);
}

void host_write_le32(Host *host, uint64_t bus, uint32_t value)
{
    value = GUINT32_TO_LE(value);
    host_write(host, bus, &value, sizeof(value));
}

void host_clear_dirty(Host *host)
{
    GPtrArray *all[] = { host->low_blocks, host->high_blocks };

    for (unsigned i = 0; i < G_N_ELEMENTS(all); i++) {
        for (guint n = 0; n < all[i]->len; n++) {
            HostBlock *block = g_ptr_array_index(all[i], n);

            if (block) {
                block->dirty = 0;
            }
        }
    }
}

bool host_is_dirty(Host *host, uint64_t bus)
{
    unsigned page = bus % HOST_BLOCK_SIZE / HOST_PAGE_SIZE;

    return host_block(host, bus)->dirty & 1u << page;
}

/* ---- what the card asks of its machine ---- */

static bool is_mmio(uint64_t addr)
{
    return addr >= HOST_MMIO_BASE && addr - HOST_MMIO_BASE < HOST_MMIO_SIZE;
}

static void *op_dma_map(void *opaque, uint64_t addr, uint64_t *len,
                        bool is_write)
{
    Host *host = opaque;
    HostBlock *block = host_block(host, addr);
    uint64_t at = addr % HOST_BLOCK_SIZE;

    g_assert_cmpuint(*len, >, 0);
    if (is_mmio(addr)) {
        host->mmio_hits++;
        return NULL;
    }
    if (!block || (is_write && block->rom)) {
        return NULL;
    }
    *len = MIN(*len, HOST_BLOCK_SIZE - at);
    return block->ram + at;
}

static void op_dma_written(void *opaque, uint64_t addr, uint64_t len)
{
    Host *host = opaque;
    HostBlock *block = host_block(host, addr);
    uint64_t at = addr % HOST_BLOCK_SIZE;

    g_assert_nonnull(block);
    g_assert_cmpuint(len, <=, HOST_BLOCK_SIZE - at);
    for (uint64_t page = at / HOST_PAGE_SIZE;
         len && page <= (at + len - 1) / HOST_PAGE_SIZE; page++) {
        block->dirty |= 1u << page;
    }
}

static void *op_dev_mem(void *opaque)
{
    Host *host = opaque;

    g_assert_nonnull(host->dev_mem);
    return host->dev_mem;
}

static void op_dev_mem_written(void *opaque, uint64_t offset, uint64_t len)
{
    Host *host = opaque;

    g_assert_cmpuint(len, >, 0);
    g_assert_cmpuint(offset, <=, host->config.device_memory);
    g_assert_cmpuint(len, <=, host->config.device_memory - offset);
    for (uint64_t page = offset / HOST_PAGE_SIZE;
         page <= (offset + len - 1) / HOST_PAGE_SIZE; page++) {
        host->dev_mem_dirty[page] = 1;
    }
}

static void op_msix_notify(void *opaque, unsigned vector)
{
    Host *host = opaque;

    if (vector == HCA_VECTOR_PIN) {
        host->pin = true;
    } else if (vector < MIN(host->config.num_vectors, HOST_MAX_VECTORS)) {
        host->msix[vector]++;
    } else {
        host->msix_bad++;
    }
}

static int64_t op_clock_ns(void *opaque)
{
    Host *host = opaque;

    return (host->stopped ? host->stopped_at : host->lab->now) - host->behind;
}

static uint64_t op_nonce(void *opaque)
{
    Host *host = opaque;

    return ++host->lab->nonces * UINT64_C(0x9e3779b97f4a7c15);
}

static void op_timer_mod(void *opaque, int64_t deadline_ns)
{
    Host *host = opaque;

    host->deadline = deadline_ns;
}

static ssize_t op_link_writev(void *opaque, const struct iovec *iov, int iovcnt)
{
    Host *host = opaque;

    if (host->before_write) {
        host->before_write(host->before_write_opaque);
    }
    return cable_writev(host->lab, host->side, iov, iovcnt);
}

static ssize_t op_link_readv(void *opaque, const struct iovec *iov, int iovcnt)
{
    Host *host = opaque;

    return cable_readv(host->lab, host->side, iov, iovcnt);
}

static bool op_capture_write(void *opaque, const void *data, size_t len)
{
    Host *host = opaque;

    g_assert_cmpuint(len, >, 0);
    if (host->capture_limit - host->capture->len < len) {
        return false;
    }
    g_byte_array_append(host->capture, data, len);
    return true;
}

static void print_trace(const Host *host, const HcaTrace *trace)
{
    fprintf(stderr,
            "# %" G_GINT64_FORMAT " card %u %s %#x %#" G_GINT64_MODIFIER
            "x %#" G_GINT64_MODIFIER "x %#" G_GINT64_MODIFIER "x\n",
            host->lab->now, host->side, hca_trace_name(trace->event),
            trace->qpn, trace->arg[0], trace->arg[1], trace->arg[2]);
}

static void op_trace(void *opaque, const HcaTrace *trace)
{
    Host *host = opaque;

    if (g_getenv("HCA_TRACE")) {
        print_trace(host, trace);
    }
    if (host->lab->listener) {
        host->lab->listener(host->lab->listener_opaque, host->side, trace);
    }
}

static void op_warn(void *opaque, const char *message)
{
    Host *host = opaque;

    g_test_message("card %u: %s", host->side, message);
    g_ptr_array_add(host->warnings, g_strdup(message));
}

static uint64_t op_bar0_base(void *opaque)
{
    return HOST_MMIO_BASE;
}

static const HcaHostOps host_ops = {
    .bar0_base = op_bar0_base,
    .dma_map = op_dma_map,
    .dma_written = op_dma_written,
    .dev_mem = op_dev_mem,
    .dev_mem_written = op_dev_mem_written,
    .msix_notify = op_msix_notify,
    .clock_ns = op_clock_ns,
    .nonce = op_nonce,
    .timer_mod = op_timer_mod,
    .link_writev = op_link_writev,
    .link_readv = op_link_readv,
    .capture_write = op_capture_write,
    .warn = op_warn,
};

/*
 * HCA_MEMORY_LATENCY_NS: the same tests with memory that takes its time. Those
 * that count turns, or judge times, are not for that.
 */
static void be_late(HcaConfig *config)
{
    const char *ns = g_getenv("HCA_MEMORY_LATENCY_NS");

    if (ns) {
        config->memory_latency_ns = g_ascii_strtoull(ns, NULL, 0);
    }
}

static void host_init(Host *host, Lab *lab, unsigned side,
                      const HcaConfig *config)
{
    host->lab = lab;
    host->side = side;
    host->config = *config;
    be_late(&host->config);
    host->low_blocks = g_ptr_array_new_with_free_func(host_block_free);
    host->high_blocks = g_ptr_array_new_with_free_func(host_block_free);
    host->free_pages = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    host->deadline = INT64_MAX;
    host->warnings = g_ptr_array_new_with_free_func(g_free);
    host->dev_mem = g_malloc0(config->device_memory);
    host->dev_mem_dirty = g_malloc0(config->device_memory / HOST_PAGE_SIZE);
    host->capture = g_byte_array_new();
    host->capture_limit = SIZE_MAX;
    g_assert_null(hca_config_check(config));
    host->ops = host_ops;
    host->ops.trace = g_getenv("HCA_TRACE") ? op_trace : NULL;
    host->hca = hca_new(&host->config, &host->ops, host);
}

static void host_destroy(Host *host)
{
    hca_free(host->hca);
    g_ptr_array_free(host->low_blocks, TRUE);
    g_ptr_array_free(host->high_blocks, TRUE);
    g_array_free(host->free_pages, TRUE);
    g_ptr_array_free(host->warnings, TRUE);
    g_byte_array_unref(host->capture);
    g_free(host->dev_mem);
    g_free(host->dev_mem_dirty);
}

void lab_listen(Lab *lab, LabListener *listener, void *opaque)
{
    lab->listener = listener;
    lab->listener_opaque = opaque;
    lab->host[0].ops.trace = op_trace;
    lab->host[1].ops.trace = op_trace;
}

void host_reset(Host *host)
{
    hca_reset(host->hca);
    host->kicked = true;
}

void host_set_running(Host *host, bool running)
{
    if (running) {
        host->behind += host->lab->now - host->stopped_at;
    } else {
        host->stopped_at = host->lab->now;
    }
    host->stopped = !running;
    host->kicked = true;
}

void host_reload(Host *host)
{
    g_autoptr(GByteArray) before = NULL;
    g_autoptr(GByteArray) after = NULL;
    HcaStateError error;
    HcaState *state;

    before = state_write(state_save(host->hca));
    hca_free(host->hca);
    host->hca = hca_new(&host->config, &host->ops, host);
    state = state_read(before->data, before->len, &error);
    if (!state || !hca_load(host->hca, state, &error)) {
        g_error("not loaded: %s", error.text);
    }
    hca_state_free(state);
    after = state_write(state_save(host->hca));
    state_expect(before, after);
    host->kicked = true;
}

void host_set_faults(Host *host, const HcaFaultPlan *plan)
{
    static const HcaFaultPlan none;

    plan = plan ? plan : &none;
    g_assert_null(hca_fault_check(plan));
    hca_set_faults(host->hca, plan);
}

uint32_t host_bar0_read(Host *host, uint32_t offset)
{
    return hca_bar0_read(host->hca, offset);
}

void host_bar0_write(Host *host, uint32_t offset, uint32_t value)
{
    if (hca_bar0_is_doorbell(host->hca, offset)) {
        hca_doorbell(host->hca, RDMA_HCA_BAR0, offset, value, 4);
        host->kicked = true;
    } else if (hca_bar0_write(host->hca, offset, value)) {
        host->kicked = true;
    }
}

void host_uar_write32(Host *host, uint32_t offset, uint32_t value)
{
    hca_doorbell(host->hca, RDMA_HCA_BAR2, offset, value, 4);
    host->kicked = true;
}

void host_uar_write64(Host *host, uint32_t offset, uint64_t value)
{
    hca_doorbell(host->hca, RDMA_HCA_BAR2, offset, value, 8);
    host->kicked = true;
}

/* ---- the two machines together ---- */

/* In the environment; 0: it is not there. */
static unsigned number_of(const char *name)
{
    return g_getenv(name) ? strtoul(g_getenv(name), NULL, 0) : 0;
}

Lab *lab_new(uint32_t seed, const HcaConfig *config)
{
    Lab *lab = g_new0(Lab, 1);

    lab->seed = lab_seed(seed);
    lab->rand = g_rand_new_with_seed(lab->seed);
    lab->now = NS_PER_S;
    lab->short_io = true;
    lab->reload = number_of("HCA_RELOAD");
    lab->lies = number_of("HCA_LIES");
    cable_init(lab);
    for (unsigned i = 0; i < 2; i++) {
        HcaConfig own;

        lab_config(&own, i);
        host_init(&lab->host[i], lab, i, config ? &config[i] : &own);
    }
    return lab;
}

void lab_free(Lab *lab)
{
    host_destroy(&lab->host[0]);
    host_destroy(&lab->host[1]);
    cable_destroy(lab);
    g_rand_free(lab->rand);
    g_free(lab);
}

/* Of the lab's clock. */
static int64_t host_deadline(const Host *host)
{
    return host->stopped || host->deadline == INT64_MAX
               ? INT64_MAX
               : host->deadline + host->behind;
}

static void lab_wake_timers(Lab *lab)
{
    for (unsigned i = 0; i < 2; i++) {
        Host *host = &lab->host[i];

        if (host_deadline(host) <= lab->now) {
            host->deadline = INT64_MAX;
            host->kicked = true;
        }
    }
}

void host_run(Host *host)
{
    Lab *lab = host->lab;

    cable_before_run(lab, host->side);
    host->kicked = false;
    if (hca_run(host->hca)) {
        host->kicked = true;
    }
    cable_after_run(lab, host->side);
}

static bool host_is_due(const Host *host)
{
    return host->kicked && !host->stopped;
}

bool lab_step(Lab *lab)
{
    Host *host = &lab->host[g_rand_boolean(lab->rand)];

    lab_wake_timers(lab);
    cable_release_delayed(lab);
    if (!host_is_due(host)) {
        host = &lab->host[!host->side];
    }
    if (!host_is_due(host)) {
        return false;
    }
    lab->now += STEP_NS;
    lab->steps++;
    if (lab->moves && g_rand_int(lab->rand) % lab->moves == 0) {
        lab->moved++;
        lab->move(lab, host->side);
    }
    if (lab->reload && g_rand_int(lab->rand) % lab->reload == 0) {
        host_reload(host);
        lab->reloads++;
        if (lab->reloaded) {
            lab->reloaded(lab->reloaded_opaque);
        }
    }
    if (lab->lies && g_rand_int(lab->rand) % lab->lies == 0) {
        lie_in_children(host);
    }
    host_run(host);
    return true;
}

bool lab_rests_within(Lab *lab, unsigned steps)
{
    while (steps--) {
        if (!lab_step(lab)) {
            return true;
        }
    }
    return false;
}

/* Whether memory is on its way, for which time has to pass. */
static bool lab_await_memory(Lab *lab)
{
    int64_t next = INT64_MAX;

    for (unsigned i = 0; i < 2; i++) {
        if (lab->host[i].hca && lab->host[i].hca->late) {
            next = MIN(next, hca_v2p_deadline(lab->host[i].hca->v2p));
        }
    }
    lab->now = next == INT64_MAX ? lab->now : MAX(lab->now, next);
    return next != INT64_MAX;
}

void lab_run(Lab *lab)
{
    unsigned n = 0;

    do {
        while (lab_step(lab)) {
            g_assert_cmpuint(++n, <, MAX_STEPS);
        }
    } while (lab_await_memory(lab));
}

/* The next moment at which something is due, INT64_MAX: none. */
static int64_t lab_next_event(Lab *lab)
{
    int64_t next = cable_next_delayed(lab);

    for (unsigned i = 0; i < 2; i++) {
        next = MIN(next, host_deadline(&lab->host[i]));
    }
    return next;
}

static bool never(void *opaque)
{
    return false;
}

bool lab_wait(Lab *lab, LabDone *done, void *opaque, int64_t ns)
{
    int64_t end = lab->now + ns;
    unsigned n = 0;

    while (!done(opaque)) {
        int64_t next;

        if (lab_step(lab)) {
            g_assert_cmpuint(++n, <, MAX_STEPS);
            if (lab->now > end) {
                return done(opaque);
            }
            continue;
        }
        next = lab_next_event(lab);
        if (next == INT64_MAX || next > end) {
            return false;
        }
        lab->now = MAX(lab->now, next);
        n = 0;
    }
    return true;
}

void lab_run_for(Lab *lab, int64_t ns)
{
    lab_wait(lab, never, NULL, ns);
}

void lab_sleep(Lab *lab, int64_t ns)
{
    int64_t end = lab->now + ns;

    lab_run_for(lab, ns);
    lab->now = MAX(lab->now, end);
    lab_run(lab);
}

uint32_t host_uar_read32(Host *host, uint32_t offset)
{
    return hca_bar2_read(host->hca, offset, 4);
}

uint64_t host_uar_read64(Host *host, uint32_t offset)
{
    return hca_bar2_read(host->hca, offset, 8);
}
