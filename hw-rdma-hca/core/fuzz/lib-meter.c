/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-meter.h"

#include <inttypes.h>
#include <sanitizer/allocator_interface.h>
#include <stdio.h>
#include <stdlib.h>

#include "../eth/eth.h"
#include "../hca_state.h"
#include "lib-fuzz.h"
#include "lib-machine.h"

Meter meter;
void (*meter_between)(void);

/* Of a card. libFuzzer has a thread of its own, which frees what it likes. */
static _Thread_local bool inside;

static void on_malloc(const volatile void *p, size_t size)
{
    if (inside) {
        meter.live += __sanitizer_get_allocated_size(p);
        meter.most_live = MAX(meter.most_live, meter.live);
    }
}

static void on_free(const volatile void *p)
{
    if (inside && p) {
        meter.live -= __sanitizer_get_allocated_size(p);
    }
}

static void report(void)
{
    fprintf(stderr,
            "METER turns: at most %u pieces of work, %u %% of what they may, "
            "and %" PRIu64 " steps, %u %%; cards: at most %zu bytes\n",
            meter.most_work, meter.most_percent, meter.most_steps,
            meter.most_steps_percent, meter.most_live);
}

void meter_init(void)
{
    g_setenv("G_SLICE", "always-malloc", TRUE);
    __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
    atexit(report);
}

/* The compiler's hook: the card takes another branch. */
void __wrap___sanitizer_cov_trace_pc(void);
void __wrap___sanitizer_cov_trace_pc(void)
{
    meter.steps += inside;
    if (meter_between) {
        meter_between();
    }
}

void meter_work(unsigned n)
{
    meter.work += n;
}

bool meter_pause(void)
{
    bool was = inside;

    inside = false;
    return was;
}

void meter_resume(bool was)
{
    inside = was;
}

static unsigned command_work(uint32_t op, uint64_t in_modifier)
{
    bool mtt = op == RDMA_HCA_CMD_READ_MTT || op == RDMA_HCA_CMD_WRITE_MTT;

    return METER_COMMAND +
           (mtt ? METER_MTT * MIN(in_modifier, RDMA_HCA_MTT_MAX_ENTRIES) : 0);
}

/* Pages are mapped one by one, whoever they belong to. */
static uint32_t command_steps(const Hca *hca, uint32_t op, uint64_t in_modifier)
{
    if (hca->config.personality == HCA_PERSONALITY_MTHCA) {
        return op == RDMA_HCA_CMD_MAP_ICM || op == RDMA_HCA_CMD_UNMAP_ICM
                   ? METER_CACHES + METER_ANY_PAGE * METER_MOST_PAGES
                   : 0;
    }
    switch (op) {
    case RDMA_HCA_CMD_MAP_ICM:
        return METER_PAGE * RDMA_HCA_ICM_PAGE_NUM *
               MIN(in_modifier, RDMA_HCA_ICM_MAX_ENTRIES);
    case RDMA_HCA_CMD_UNMAP_ICM:
        return METER_PAGE * MIN(in_modifier, METER_MOST_PAGES);
    default:
        return 0;
    }
}

void meter_done(const Hca *hca, const HcaTrace *trace)
{
    switch (trace->event) {
    case HCA_TRACE_COMMAND:
        meter.allowed += command_work(trace->qpn, trace->arg[0]);
        meter.looks += command_steps(hca, trace->qpn, trace->arg[0]);
        break;
    case HCA_TRACE_PACKET_TX:
    case HCA_TRACE_PACKET_RX:
    case HCA_TRACE_WQE:
        meter.allowed += METER_PACKET;
        break;
    case HCA_TRACE_MEM_OP:
        meter.allowed += METER_MEM_OP;
        break;
    case HCA_TRACE_CQE:
    case HCA_TRACE_EQE:
    case HCA_TRACE_QP_STATE:
    case HCA_TRACE_TIMEOUT:
        meter.allowed += METER_ENTRY;
        break;
    }
}

/* Whether the card has Ethernet rings, which then have a share of its turns. */
static bool has_rings(const Hca *hca)
{
    return hca && hca->eth && hca_eth_running(hca->eth);
}

/* Look-ups of pieces until now. A card that is not there, or is new, has none. */
static uint64_t pieces(const Hca *hca)
{
    return hca ? hca_v2p_counters(hca->v2p)->pieces : 0;
}

/* Of a reset, and of a card's making: each entry of its tables is looked at. */
static uint64_t table_steps(const HcaConfig *config)
{
    return METER_TABLES + METER_NUMBER * ((UINT64_C(1) << config->log_qps) +
                                          (UINT64_C(1) << config->log_cqs) +
                                          (UINT64_C(1) << config->log_srqs));
}

/* @hca: NULL if it is not there yet. */
static void enter(const Hca *hca, bool all_tables)
{
    meter.work = 0;
    meter.steps = 0;
    meter.allowed = METER_TURN + (has_rings(hca) ? METER_ETHERNET : 0);
    meter.looks = all_tables && hca ? table_steps(&hca->config)
                  : all_tables      ? METER_TABLES
                                    : METER_LOOKS;
    meter.pieces = pieces(hca);
    inside = true;
}

/* @hca: NULL if it is gone. */
static void leave(const Hca *hca)
{
    uint64_t steps;

    inside = false;
    if (pieces(hca) > meter.pieces) {
        meter.allowed += METER_PIECE * (pieces(hca) - meter.pieces);
    }
    meter.most_work = MAX(meter.most_work, meter.work);
    meter.most_percent = MAX(meter.most_percent,
                             meter.work * 100 / meter.allowed);
    steps = meter.looks + (uint64_t)meter.allowed * METER_STEPS;
    meter.most_steps = MAX(meter.most_steps, meter.steps);
    meter.most_steps_percent = MAX(meter.most_steps_percent,
                                   meter.steps * 100 / steps);
    if (meter.steps > steps) {
        fuzz_fail("a turn of the card has %" PRIu64 " steps, and %" PRIu64
                  " are due",
                  meter.steps, steps);
    }
    if (meter.work > meter.allowed) {
        fuzz_fail("a turn of the card has %u pieces of work, and %u are due",
                  meter.work, meter.allowed);
    }
    if (meter.live > meter.allowed_live) {
        fuzz_fail("the cards have allocated %zu bytes", meter.live);
    }
}

/* In place of the functions of hca.h: the linker's --wrap. */

#define METERED(name, parameters, arguments)                                   \
    void __real_##name parameters;                                             \
    void __wrap_##name parameters;                                             \
    void __wrap_##name parameters                                              \
    {                                                                          \
        enter(hca, hca_reset_wanted(hca));                                     \
        __real_##name arguments;                                               \
        leave(hca);                                                            \
    }

#define METERED_VALUE(type, name, parameters, arguments)                       \
    type __real_##name parameters;                                             \
    type __wrap_##name parameters;                                             \
    type __wrap_##name parameters                                              \
    {                                                                          \
        type result;                                                           \
                                                                               \
        enter(hca, hca_reset_wanted(hca));                                     \
        result = __real_##name arguments;                                      \
        leave(hca);                                                            \
        return result;                                                         \
    }

Hca *__real_hca_new(const HcaConfig *config, const HcaHostOps *ops,
                    void *opaque);
Hca *__wrap_hca_new(const HcaConfig *config, const HcaHostOps *ops,
                    void *opaque);
Hca *__wrap_hca_new(const HcaConfig *config, const HcaHostOps *ops,
                    void *opaque)
{
    Hca *hca;

    machine_watch(opaque);
    enter(NULL, true);
    hca = __real_hca_new(config, ops, opaque);
    meter.looks = table_steps(&hca->config);
    meter.allowed_live = METER_MOST_LIVE +
                         ((size_t)METER_QP_LIVE << hca->config.log_qps);
    leave(hca);
    return hca;
}

void __real_hca_free(Hca *hca);
void __wrap_hca_free(Hca *hca);
void __wrap_hca_free(Hca *hca)
{
    enter(hca, true);
    __real_hca_free(hca);
    leave(NULL);
}

void __real_hca_reset(Hca *hca);
void __wrap_hca_reset(Hca *hca);
void __wrap_hca_reset(Hca *hca)
{
    if (inside) { /* of hca_load() */
        __real_hca_reset(hca);
        return;
    }
    enter(hca, true);
    __real_hca_reset(hca);
    leave(hca);
}

/* Bytes of all its records. */
static size_t size_of(const HcaState *state)
{
    size_t size = 0;

    for (unsigned i = 0; i < hca_state_nsections(); i++) {
        size += (size_t)state->records[i]->len *
                hca_state_section(i)->record->size;
    }
    return size;
}

/* A state is as large as it is. */
bool __real_hca_load(Hca *hca, const HcaState *state, HcaStateError *error);
bool __wrap_hca_load(Hca *hca, const HcaState *state, HcaStateError *error);
bool __wrap_hca_load(Hca *hca, const HcaState *state, HcaStateError *error)
{
    bool ok;

    enter(hca, true);
    meter.looks += METER_STATE * size_of(state);
    ok = __real_hca_load(hca, state, error);
    leave(hca);
    return ok;
}

METERED_VALUE(bool, hca_run, (Hca * hca), (hca))
METERED_VALUE(bool, hca_bar0_write,
              (Hca * hca, uint32_t offset, uint32_t value),
              (hca, offset, value))
METERED(hca_doorbell,
        (Hca * hca, unsigned bar, uint32_t offset, uint64_t value,
         unsigned size),
        (hca, bar, offset, value, size))
METERED(hca_link_up, (Hca * hca), (hca))
METERED(hca_link_down, (Hca * hca), (hca))
METERED(hca_link_writable, (Hca * hca), (hca))
METERED_VALUE(bool, hca_depart, (Hca * hca), (hca))
METERED_VALUE(bool, hca_drain, (Hca * hca), (hca))
METERED(hca_set_faults, (Hca * hca, const HcaFaultPlan *plan), (hca, plan))
METERED(hca_start_capture, (Hca * hca), (hca))
