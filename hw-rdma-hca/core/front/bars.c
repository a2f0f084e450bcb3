/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The BARs; see bars.h. */
#include "bars.h"

#include <glib.h>
#include <string.h>

#include "../../abi/rdma_hca_regs.h"
#include "../../abi/rdma_hca_wqe.h"
#include "../card.h"
#include "../cxtmgt/cxtmgt.h"
#include "../eth/eth.h"
#include "../fault/host_faults.h"
#include "../send/send.h"
#include "ceu/ceu.h"
#include "contexts.h"

/* The two 64-bit doorbells of a UAR page. */
enum {
    UAR_SEND,
    UAR_CQ,
    NUAR_DOORBELLS
};

/* Doorbells that are late, and those behind them. */
#define MAX_LATE 256

typedef struct LateDoorbell {
    int64_t at_ns;
    uint64_t value;
    uint32_t offset;
    uint8_t bar, size;
} LateDoorbell;

struct HcaBars {
    int reset; /* the reset register; atomic */
    /* Low words of doorbells written in halves: each page keeps its own. */
    uint32_t uar_low[RDMA_HCA_NUM_UARS][NUAR_DOORBELLS];
    uint64_t rung_late; /* of those that were late, since a reset */
    unsigned late_head, nlate;
    LateDoorbell late[MAX_LATE];
};

HcaBars *hca_bars_new(void)
{
    return g_new0(HcaBars, 1);
}

void hca_bars_free(HcaBars *bars)
{
    g_free(bars);
}

void hca_bars_reset(HcaBars *bars)
{
    memset(bars->uar_low, 0, sizeof(bars->uar_low));
    bars->nlate = 0;
    bars->rung_late = 0;
}

bool hca_bars_reset_wanted(const HcaBars *bars)
{
    return g_atomic_int_get(&bars->reset);
}

void hca_bars_reset_done(HcaBars *bars)
{
    g_atomic_int_set(&bars->reset, 0);
}

/* BAR 0 */

/* Whether @offset is in the @size bytes from @begin on, and where. */
static bool is_in(uint32_t offset, uint32_t begin, uint32_t size, uint32_t *at)
{
    *at = offset - begin;
    return offset >= begin && *at < size;
}

uint32_t hca_bar0_read(const Hca *hca, uint32_t offset)
{
    uint32_t at;

    if (is_in(offset, RDMA_HCA_HCR, RDMA_HCA_HCR_SIZE, &at)) {
        return hca_ceu_read(hca->ceu, at);
    }
    return offset == RDMA_HCA_RESET && hca_bars_reset_wanted(hca->bars);
}

bool hca_bar0_write(Hca *hca, uint32_t offset, uint32_t value)
{
    uint32_t at;

    if (is_in(offset, RDMA_HCA_HCR, RDMA_HCA_HCR_SIZE, &at)) {
        return hca_ceu_write(hca->ceu, at, value);
    }
    if (offset == RDMA_HCA_RESET && (value & 1)) {
        g_atomic_int_set(&hca->bars->reset, 1);
        return true;
    }
    return false;
}

/* Doorbells */

static bool is_eq_doorbell(uint32_t offset, uint32_t *at)
{
    return is_in(offset, RDMA_HCA_EQ_DB,
                 RDMA_HCA_MAX_EQS * RDMA_HCA_EQ_DB_STRIDE, at);
}

static bool is_eth_doorbell(uint32_t offset, uint32_t *at)
{
    return is_in(offset, RDMA_HCA_ETH_DB,
                 RDMA_HCA_ETH_MAX_QUEUES * RDMA_HCA_ETH_DB_STRIDE, at);
}

bool hca_bar0_is_doorbell(uint32_t offset)
{
    uint32_t at;

    return is_eq_doorbell(offset, &at) || is_eth_doorbell(offset, &at);
}

static void eq_doorbell(Hca *hca, uint32_t eqn, uint32_t value)
{
    hca_eq_doorbell(hca->cm, eqn, RDMA_HCA_GET(RDMA_HCA_EQ_DB_CI, value),
                    value & RDMA_HCA_EQ_DB_ARM);
}

static HcaEthDoorbell eth_doorbell(uint32_t at)
{
    switch (at % RDMA_HCA_ETH_DB_STRIDE) {
    case RDMA_HCA_ETH_DB_TX_TAIL:
        return HCA_ETH_TX_TAIL;
    case RDMA_HCA_ETH_DB_RX_TAIL:
        return HCA_ETH_RX_TAIL;
    case RDMA_HCA_ETH_DB_TX_ARM:
        return HCA_ETH_TX_ARM;
    case RDMA_HCA_ETH_DB_RX_ARM:
        return HCA_ETH_RX_ARM;
    default:
        return HCA_ETH_NO_DOORBELL;
    }
}

static void bar0_doorbell(Hca *hca, uint32_t offset, uint32_t value)
{
    uint32_t at;

    if (is_eq_doorbell(offset, &at)) {
        eq_doorbell(hca, at / RDMA_HCA_EQ_DB_STRIDE, value);
    } else if (hca->eth && is_eth_doorbell(offset, &at)) {
        hca_eth_doorbell(hca->eth, at / RDMA_HCA_ETH_DB_STRIDE,
                         eth_doorbell(at), value);
    }
}

/* Table 3-1-7, and table 7.1 of the engine document. */
static void send_doorbell(Hca *hca, uint32_t uar, uint32_t low, uint32_t high)
{
    HcaWqeRef ref = {
        .offset = RDMA_HCA_GET(RDMA_HCA_SEND_DB_SQ_HEAD, low) *
                  RDMA_HCA_WQE_UNIT,
        .size = RDMA_HCA_GET(RDMA_HCA_SEND_DB_SIZE, high) * RDMA_HCA_WQE_UNIT,
        .opcode = RDMA_HCA_GET(RDMA_HCA_SEND_DB_OPCODE, low),
        .fence = RDMA_HCA_GET(RDMA_HCA_SEND_DB_FENCE, low),
    };

    hca_send_doorbell(hca, uar, RDMA_HCA_GET(RDMA_HCA_SEND_DB_QPN, high), &ref);
}

static void cq_doorbell(Hca *hca, uint32_t uar, uint32_t low, uint32_t high)
{
    hca_cq_doorbell(hca->cm, uar, RDMA_HCA_GET(RDMA_HCA_CQ_DB_CQN, low),
                    hca_front_cq_arm(low), high);
}

static void uar_doorbell(Hca *hca, uint32_t uar, unsigned doorbell,
                         uint32_t low, uint32_t high)
{
    if (doorbell == UAR_SEND) {
        send_doorbell(hca, uar, low, high);
    } else {
        cq_doorbell(hca, uar, low, high);
    }
}

static void uar_write(Hca *hca, uint32_t offset, uint64_t value, unsigned size)
{
    uint32_t uar = offset / RDMA_HCA_UAR_PAGE_SIZE;
    uint32_t at = offset % RDMA_HCA_UAR_PAGE_SIZE;
    uint32_t reg = at - at % 8;
    unsigned doorbell = reg == RDMA_HCA_CQ_DB ? UAR_CQ : UAR_SEND;
    uint32_t *low;

    if (uar >= RDMA_HCA_NUM_UARS ||
        (reg != RDMA_HCA_SEND_DB && reg != RDMA_HCA_CQ_DB)) {
        return;
    }
    low = &hca->bars->uar_low[uar][doorbell];
    if (size == 8) {
        uar_doorbell(hca, uar, doorbell, value, value >> 32);
    } else if (at != reg) {
        uar_doorbell(hca, uar, doorbell, *low, value);
    } else {
        *low = value;
    }
}

/* Doorbells are for writing only; each page has the clock. */
uint64_t hca_bar2_read(Hca *hca, uint32_t offset, unsigned size)
{
    uint32_t at = offset % RDMA_HCA_UAR_PAGE_SIZE;
    uint64_t now;

    if (at - at % 8 != RDMA_HCA_CLOCK) {
        return 0;
    }
    now = hca_now(hca);
    if (size == 8) {
        return now;
    }
    return at == RDMA_HCA_CLOCK ? RDMA_HCA_LO32(now) : RDMA_HCA_HI32(now);
}

static void ring(Hca *hca, const LateDoorbell *db)
{
    if (db->bar == RDMA_HCA_BAR0) {
        bar0_doorbell(hca, db->offset, db->value);
    } else {
        uar_write(hca, db->offset, db->value, db->size);
    }
}

/* Doorbells that are late */

/* The QP that it is for; UINT32_MAX: it is no send doorbell, or half a one. */
static uint32_t send_qpn(const LateDoorbell *db)
{
    uint32_t at = db->offset % RDMA_HCA_UAR_PAGE_SIZE;

    if (db->bar == RDMA_HCA_BAR0 || at - at % 8 != RDMA_HCA_SEND_DB ||
        (db->size != 8 && at % 8 == 0)) {
        return UINT32_MAX;
    }
    return RDMA_HCA_GET(
        RDMA_HCA_SEND_DB_QPN,
        (uint32_t)(db->size == 8 ? db->value >> 32 : db->value));
}

static uint64_t delay_of(Hca *hca, const LateDoorbell *db)
{
    const HcaFaultSubject subject = {
        .place = HCA_FAULT_DOORBELL,
        .actions = UINT16_MAX,
        .number = send_qpn(db),
    };
    const HcaFaultRule *rule = hca_host_fault(hca->faults, &subject);

    return rule ? rule->delay_ns : 0;
}

static void ring_first(Hca *hca)
{
    HcaBars *bars = hca->bars;
    LateDoorbell db = bars->late[bars->late_head];

    bars->late_head = (bars->late_head + 1) % MAX_LATE;
    bars->nlate--;
    bars->rung_late++;
    ring(hca, &db);
}

static void put_late(Hca *hca, const LateDoorbell *db)
{
    HcaBars *bars = hca->bars;

    if (bars->nlate == MAX_LATE) {
        hca->faults->counters.held_full++;
        ring_first(hca);
    }
    bars->late[(bars->late_head + bars->nlate++) % MAX_LATE] = *db;
}

uint64_t hca_bars_late_doorbells(const HcaBars *bars)
{
    return bars->rung_late + bars->nlate;
}

bool hca_bars_have_rung(const HcaBars *bars, uint64_t n)
{
    return bars->rung_late >= n;
}

int64_t hca_bars_deadline(const HcaBars *bars)
{
    return bars->nlate ? bars->late[bars->late_head].at_ns : INT64_MAX;
}

bool hca_bars_ring_late(Hca *hca)
{
    bool any = false;

    while (hca->bars->nlate && hca_bars_deadline(hca->bars) <= hca_now(hca)) {
        ring_first(hca);
        any = true;
    }
    return any;
}

void hca_doorbell(Hca *hca, unsigned bar, uint32_t offset, uint64_t value,
                  unsigned size)
{
    LateDoorbell db = {
        .value = value, .offset = offset, .bar = bar, .size = size
    };
    uint64_t delay = 0;

    if (hca_host_faults_at(hca->faults, HCA_FAULT_DOORBELL)) {
        delay = delay_of(hca, &db);
    }
    if (delay || hca->bars->nlate) {
        db.at_ns = hca_now(hca) + (int64_t)delay;
        put_late(hca, &db);
    } else {
        ring(hca, &db);
    }
}

/* State */

/* A half that waits for the other one. */
typedef struct Half {
    uint32_t uar;
    uint8_t doorbell;
    uint32_t low;
} Half;

static const HcaField half_fields[] = {
    HCA_SAVED(Half, uar),
    HCA_SAVED(Half, doorbell),
    HCA_SAVED(Half, low),
};
static const HcaStruct half_struct = HCA_STRUCT(Half, half_fields);

static void save_halves(void *room, GArray *records)
{
    const HcaBars *bars = room;

    for (uint32_t uar = 0; uar < RDMA_HCA_NUM_UARS; uar++) {
        for (unsigned i = 0; i < NUAR_DOORBELLS; i++) {
            Half half = { uar, i, bars->uar_low[uar][i] };

            if (half.low) {
                g_array_append_val(records, half);
            }
        }
    }
}

static bool load_halves(void *room, const void *records, uint32_t n,
                        HcaStateError *error)
{
    HcaBars *bars = room;
    const Half *half = records;

    for (; n; n--, half++) {
        if (half->uar >= RDMA_HCA_NUM_UARS ||
            half->doorbell >= NUAR_DOORBELLS) {
            return hca_state_refuse(error, "no such doorbell");
        }
        bars->uar_low[half->uar][half->doorbell] = half->low;
    }
    return true;
}

const HcaSection hca_half_doorbell_section = HCA_SECTION(
    "half-doorbell", 1, &half_struct, save_halves, load_halves);

static const HcaField late_fields[] = {
    HCA_SAVED(LateDoorbell, at_ns),  HCA_SAVED(LateDoorbell, value),
    HCA_SAVED(LateDoorbell, offset), HCA_SAVED(LateDoorbell, bar),
    HCA_SAVED(LateDoorbell, size),
};
static const HcaStruct late_struct = HCA_STRUCT(LateDoorbell, late_fields);

static void save_late(void *room, GArray *records)
{
    const HcaBars *bars = room;

    for (unsigned i = 0; i < bars->nlate; i++) {
        g_array_append_val(records,
                           bars->late[(bars->late_head + i) % MAX_LATE]);
    }
}

/* What cannot be a doorbell is none to uar_write() and bar0_doorbell(), either. */
static bool load_late(void *room, const void *records, uint32_t n,
                      HcaStateError *error)
{
    HcaBars *bars = room;

    if (n > MAX_LATE) {
        return hca_state_refuse(error, "%u late doorbells", n);
    }
    memcpy(bars->late, records, n * sizeof(bars->late[0]));
    bars->late_head = 0;
    bars->nlate = n;
    return true;
}

const HcaSection hca_late_doorbell_section = HCA_SECTION(
    "late-doorbell", 1, &late_struct, save_late, load_late);

static const HcaField bars_fields[] = {
    HCA_SAVED(HcaBars, reset),     HCA_ELSEWHERE(HcaBars, uar_low),
    HCA_SAVED(HcaBars, rung_late), HCA_DERIVED(HcaBars, late_head),
    HCA_ELSEWHERE(HcaBars, nlate), HCA_ELSEWHERE(HcaBars, late),
};
static const HcaStruct bars_struct = HCA_STRUCT(HcaBars, bars_fields);

static bool load_bars(void *room, const void *records, uint32_t n,
                      HcaStateError *error)
{
    HcaBars *bars = room;
    const HcaBars *from = records;

    if (!hca_state_is_one(n, error)) {
        return false;
    }
    g_atomic_int_set(&bars->reset, from->reset);
    bars->rung_late = from->rung_late;
    return true;
}

const HcaSection hca_bars_section = HCA_SECTION("bars", 1, &bars_struct,
                                                hca_state_save_room, load_bars);
