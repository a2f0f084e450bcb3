/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The BARs; see bars.h. */
#include "bars.h"

#include <glib.h>
#include <string.h>

#include "../../abi/rdma_hca_regs.h"
#include "../card.h"
#include "../cxtmgt/cxt_format.h"
#include "../fault/host_faults.h"
#include "ceu/ceu.h"
#include "interface.h"

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
    /* First words of doorbells written in halves: each page keeps its own. */
    uint32_t uar_first[RDMA_HCA_NUM_UARS][HCA_NUAR_DOORBELLS];
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
    memset(bars->uar_first, 0, sizeof(bars->uar_first));
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

static const HcaRegisters *registers_of(const Hca *hca)
{
    return hca->interface->registers;
}

/* A register's value from or to the order that it has on the bus. */
static uint32_t in_order(const HcaRegisters *registers, uint32_t value)
{
    return registers->big_endian ? GUINT32_SWAP_LE_BE(value) : value;
}

/* BAR 0 */

uint32_t hca_bar0_read(const Hca *hca, uint32_t offset)
{
    const HcaRegisters *registers = registers_of(hca);
    uint32_t value = 0, at;

    if (hca_offset_in(offset, registers->hcr, RDMA_HCA_HCR_SIZE, &at)) {
        value = hca_ceu_read(hca->ceu, at);
    } else if (offset == registers->reset) {
        value = hca_bars_reset_wanted(hca->bars);
    } else if (registers->read) {
        value = registers->read(hca, offset);
    }
    return in_order(registers, value);
}

static bool write_reset(Hca *hca, uint32_t value)
{
    if (value & 1) {
        g_atomic_int_set(&hca->bars->reset, 1);
    }
    return value & 1;
}

bool hca_bar0_write(Hca *hca, uint32_t offset, uint32_t value)
{
    const HcaRegisters *registers = registers_of(hca);
    uint32_t at;

    value = in_order(registers, value);
    if (hca_offset_in(offset, registers->hcr, RDMA_HCA_HCR_SIZE, &at)) {
        return hca_ceu_write(hca->ceu, at, value);
    }
    return offset == registers->reset && write_reset(hca, value);
}

bool hca_bar0_is_reset(const Hca *hca, uint32_t offset)
{
    return offset == registers_of(hca)->reset;
}

bool hca_is_away(const Hca *hca)
{
    return registers_of(hca)->goes_away && hca_bars_reset_wanted(hca->bars);
}

bool hca_bar0_clears_pin(const Hca *hca, uint32_t offset)
{
    const HcaRegisters *registers = registers_of(hca);
    uint32_t at;

    return hca_offset_in(offset, registers->clear_pin,
                         registers->clear_pin_size, &at);
}

bool hca_has_pin(const Hca *hca)
{
    return hca->interface->format->cxt->has_pin;
}

bool hca_bar0_is_doorbell(const Hca *hca, uint32_t offset)
{
    return registers_of(hca)->is_doorbell(offset);
}

/* BAR 2 */

/* Which doorbell of its page lies at @reg; HCA_NUAR_DOORBELLS: none does. */
static HcaUarDoorbell doorbell_at(const HcaRegisters *registers, uint32_t reg)
{
    HcaUarDoorbell doorbell = 0;

    while (doorbell < HCA_NUAR_DOORBELLS && registers->uar[doorbell] != reg) {
        doorbell++;
    }
    return doorbell;
}

static void uar_write(Hca *hca, uint32_t offset, uint64_t value, unsigned size)
{
    const HcaRegisters *registers = registers_of(hca);
    uint32_t uar = offset / RDMA_HCA_UAR_PAGE_SIZE;
    uint32_t at = offset % RDMA_HCA_UAR_PAGE_SIZE;
    HcaUarDoorbell doorbell = doorbell_at(registers, at - at % 8);
    uint32_t low = in_order(registers, value);
    uint32_t *first;

    if (uar >= RDMA_HCA_NUM_UARS || doorbell == HCA_NUAR_DOORBELLS) {
        return;
    }
    first = &hca->bars->uar_first[uar][doorbell];
    if (size == 8) {
        registers->ring_uar(hca, uar, doorbell, low,
                            in_order(registers, value >> 32));
    } else if (at % 8) {
        registers->ring_uar(hca, uar, doorbell, *first, low);
    } else {
        *first = low;
    }
}

uint64_t hca_bar2_read(Hca *hca, uint32_t offset, unsigned size)
{
    const HcaRegisters *registers = registers_of(hca);

    return registers->read_uar
               ? registers->read_uar(hca, offset % RDMA_HCA_UAR_PAGE_SIZE, size)
               : 0;
}

static void ring(Hca *hca, const LateDoorbell *db)
{
    const HcaRegisters *registers = registers_of(hca);

    if (db->bar == RDMA_HCA_BAR0) {
        registers->ring(hca, db->offset, in_order(registers, db->value));
    } else {
        uar_write(hca, db->offset, db->value, db->size);
    }
}

/* Doorbells that are late */

/* The QP that it is for; UINT32_MAX: it is no send doorbell, or half a one. */
static uint32_t send_qpn(const Hca *hca, const LateDoorbell *db)
{
    const HcaRegisters *registers = registers_of(hca);
    uint32_t at = db->offset % RDMA_HCA_UAR_PAGE_SIZE;
    uint32_t second = db->size == 8 ? db->value >> 32 : db->value;

    if (db->bar == RDMA_HCA_BAR0 ||
        doorbell_at(registers, at - at % 8) != HCA_UAR_SEND ||
        (db->size != 8 && at % 8 == 0)) {
        return UINT32_MAX;
    }
    return registers->send_qpn(in_order(registers, db->value),
                               in_order(registers, second));
}

static uint64_t delay_of(Hca *hca, const LateDoorbell *db)
{
    const HcaFaultSubject subject = {
        .place = HCA_FAULT_DOORBELL,
        .actions = UINT16_MAX,
        .number = send_qpn(hca, db),
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
        for (unsigned i = 0; i < HCA_NUAR_DOORBELLS; i++) {
            Half half = { uar, i, bars->uar_first[uar][i] };

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
            half->doorbell >= HCA_NUAR_DOORBELLS) {
            return hca_state_refuse(error, "no such doorbell");
        }
        bars->uar_first[half->uar][half->doorbell] = half->low;
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
    HCA_SAVED(HcaBars, reset),     HCA_ELSEWHERE(HcaBars, uar_first),
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
