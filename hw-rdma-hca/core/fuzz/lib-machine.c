/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-machine.h"

#include <string.h>

#include "lib-fuzz.h"

#define MOST_PLANS 16

/* What happens at a look-up of memory to come. */
typedef struct Plan {
    unsigned lookups; /* to go */
    unsigned times;   /* look-ups that fail; 0: a write */
    uint64_t bus;
    unsigned len;
    uint8_t data[MACHINE_MOST_DATA];
} Plan;

typedef struct Machine {
    Host *host;
    HcaHostOps ops; /* the lab's */
    GArray *written;
    uint64_t last_written;
    Plan plan[MOST_PLANS];
    unsigned nplans;
    unsigned fails;   /* look-ups from now on that find no memory */
    uint8_t tail[16]; /* of what was said on the cable */
    size_t tail_len;
} Machine;

static Machine machine[2];
static const Canary *hidden;

/* No instrumentation: most of a target's time would go here. */
__attribute__((no_sanitize("address", "undefined"))) bool canary_is_in(
    const Canary *canary, const uint8_t *data, size_t len)
{
    uint64_t word, here;

    memcpy(&word, canary, sizeof(word));
    for (size_t i = 0; i + sizeof(word) <= len; i++) {
        __builtin_memcpy(&here, data + i, sizeof(here));
        if (here == word) {
            return true;
        }
    }
    return false;
}

/* ---- memory ---- */

static void note_written(Machine *m, uint64_t addr, uint64_t len)
{
    uint64_t page = addr & ~(uint64_t)(HOST_PAGE_SIZE - 1);

    for (; page < addr + len; page += HOST_PAGE_SIZE) {
        if (page != m->last_written) {
            g_array_append_val(m->written, page);
            m->last_written = page;
        }
    }
}

static bool is_memory(Machine *m, uint64_t bus, uint64_t len)
{
    uint64_t n = len;

    return m->ops.dma_map(m->host, bus, &n, false) && n == len;
}

static void carry_out(Machine *m, const Plan *plan)
{
    if (plan->times) {
        m->fails = plan->times;
    } else if (is_memory(m, plan->bus, plan->len)) {
        host_write(m->host, plan->bus, plan->data, plan->len);
    }
}

static void count_plans(Machine *m)
{
    for (unsigned i = 0; i < m->nplans;) {
        if (m->plan[i].lookups) {
            m->plan[i++].lookups--;
        } else {
            carry_out(m, &m->plan[i]);
            m->plan[i] = m->plan[--m->nplans];
        }
    }
}

static void *on_dma_map(void *opaque, uint64_t addr, uint64_t *len,
                        bool is_write)
{
    Host *host = opaque;
    Machine *m = &machine[host->side];
    bool was = meter_pause();
    void *found = NULL;

    meter_work(1);
    count_plans(m);
    if (m->fails) {
        m->fails--;
    } else {
        found = m->ops.dma_map(opaque, addr, len, is_write);
    }
    if (found && is_write) {
        note_written(m, addr, *len);
    }
    meter_resume(was);
    return found;
}

static void add_plan(unsigned side, const Plan *plan)
{
    Machine *m = &machine[side];

    if (m->nplans < MOST_PLANS) {
        m->plan[m->nplans++] = *plan;
    }
}

void machine_plan_write(unsigned side, unsigned lookups, uint64_t bus,
                        const void *data, unsigned len)
{
    Plan plan = { .lookups = lookups, .bus = bus, .len = len };

    g_assert_cmpuint(len, <=, sizeof(plan.data));
    memcpy(plan.data, data, len);
    add_plan(side, &plan);
}

void machine_plan_failure(unsigned side, unsigned lookups, unsigned times)
{
    Plan plan = { .lookups = lookups, .times = times };

    add_plan(side, &plan);
}

void machine_plan_nothing(void)
{
    for (unsigned i = 0; i < 2; i++) {
        machine[i].nplans = 0;
        machine[i].fails = 0;
    }
}

const GArray *machine_written(unsigned side)
{
    return machine[side].written;
}

/* ---- the rest ---- */

/* Said on the cable: a secret may lie across two writes. */
static void listen_to(Machine *m, const uint8_t *data, size_t len)
{
    uint8_t seam[2 * sizeof(m->tail)];
    size_t head = MIN(len, sizeof(m->tail));

    memcpy(seam, m->tail, m->tail_len);
    memcpy(seam + m->tail_len, data, head);
    if (hidden && (canary_is_in(hidden, seam, m->tail_len + head) ||
                   canary_is_in(hidden, data, len))) {
        fuzz_fail("card %u sends memory that nobody may read", m->host->side);
    }
    m->tail_len = head;
    memcpy(m->tail, data + len - head, head);
}

static ssize_t on_link_writev(void *opaque, const struct iovec *iov, int iovcnt)
{
    Host *host = opaque;
    Machine *m = &machine[host->side];
    bool was = meter_pause();
    ssize_t n;

    g_assert_cmpint(iovcnt, ==, 1);
    n = m->ops.link_writev(opaque, iov, iovcnt);
    if (n > 0) {
        listen_to(m, iov->iov_base, n);
    }
    meter_work(1);
    meter_resume(was);
    return n;
}

static ssize_t on_link_readv(void *opaque, const struct iovec *iov, int iovcnt)
{
    Host *host = opaque;
    bool was = meter_pause();
    ssize_t n = machine[host->side].ops.link_readv(opaque, iov, iovcnt);

    meter_work(1);
    meter_resume(was);
    return n;
}

/* What was taken is on its way. */
static void on_link_forget(void *opaque)
{
    meter_work(1);
}

static void on_msix_notify(void *opaque, unsigned vector)
{
    Host *host = opaque;

    meter_work(1);
    machine[host->side].ops.msix_notify(opaque, vector);
}

static bool on_capture_write(void *opaque, const void *data, size_t len)
{
    Host *host = opaque;
    bool was = meter_pause();
    bool taken = machine[host->side].ops.capture_write(opaque, data, len);

    meter_work(1);
    meter_resume(was);
    return taken;
}

/* As the machine's log does. */
static void check_name(const Host *host, const HcaTrace *trace)
{
    if (!hca_trace_name(trace->event) ||
        (trace->event == HCA_TRACE_COMMAND && trace->arg[2] == 0 &&
         !hca_ceu_command_name(host->hca->interface, trace->qpn))) {
        fuzz_fail("event %u of %#x has no name", trace->event, trace->qpn);
    }
}

static void on_trace(void *opaque, const HcaTrace *trace)
{
    Host *host = opaque;
    Machine *m = &machine[host->side];
    bool was = meter_pause();

    meter_done(host->hca, trace);
    check_name(host, trace);
    if (m->ops.trace) {
        m->ops.trace(opaque, trace);
    }
    meter_resume(was);
}

static void on_warn(void *opaque, const char *message)
{
    Host *host = opaque;
    bool was = meter_pause();

    machine[host->side].ops.warn(opaque, message);
    meter_resume(was);
}

void machine_hide(const Canary *canary)
{
    hidden = canary;
}

void machine_watch(Host *host)
{
    Machine *m = &machine[host->side];

    if (host->ops.dma_map == on_dma_map) { /* another card in its place */
        return;
    }
    *m = (Machine) {
        .host = host,
        .ops = host->ops,
        .written = g_array_new(FALSE, FALSE, sizeof(uint64_t)),
        .last_written = UINT64_MAX,
    };
    host->ops.dma_map = on_dma_map;
    host->ops.link_writev = on_link_writev;
    host->ops.link_readv = on_link_readv;
    host->ops.link_forget = on_link_forget;
    host->ops.msix_notify = on_msix_notify;
    host->ops.capture_write = on_capture_write;
    host->ops.trace = on_trace;
    host->ops.warn = on_warn;
}

void machine_forget(void)
{
    for (unsigned i = 0; i < 2; i++) {
        g_clear_pointer(&machine[i].written, g_array_unref);
    }
    hidden = NULL;
}
