/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All counters and gauges: the rooms' tables as one. */
#include "counters.h"

#include "card.h"

/* A table, and where its room is in a card. */
typedef struct Unit {
    const HcaCounterTable *table;
    const void *(*room)(const Hca *hca);
} Unit;

#define ROOM_FN(fn, value)                                                     \
    static const void *fn(const Hca *hca)                                      \
    {                                                                          \
        return value;                                                          \
    }

ROOM_FN(card, hca)
ROOM_FN(ceu, hca->ceu)
ROOM_FN(cxtmgt, hca->cm)
ROOM_FN(v2p, hca->v2p)
ROOM_FN(port, hca->port)
ROOM_FN(cable, hca->link)
ROOM_FN(host_faults, hca->faults)
ROOM_FN(ethernet, hca->eth)

/* In the order in which they are shown: of the data path. */
static const Unit units[] = {
    { &hca_ceu_counter_table, ceu },
    { &hca_send_counter_table, card },
    { &hca_requester_counter_table, card },
    { &hca_responder_counter_table, card },
    { &hca_cxtmgt_counter_table, cxtmgt },
    { &hca_v2p_counter_table, v2p },
    { &hca_port_counter_table, port },
    { &hca_link_counter_table, cable },
    { &hca_fault_counter_table, cable },
    { &hca_host_fault_counter_table, host_faults },
    { &hca_verb_fault_counter_table, host_faults },
    { &hca_capture_counter_table, cable },
    { &hca_eth_counter_table, ethernet },
    { &hca_mgmt_counter_table, port },
};

static void read_row(const Hca *hca, const Unit *unit, const HcaCounterRow *row,
                     HcaCounter *counter)
{
    const void *room = unit->room(hca);
    const char *counters;

    *counter = (HcaCounter) {
        .unit = unit->table->unit,
        .name = row->name,
        .text = row->text,
        .kind = row->kind,
    };
    if (row->gauge) {
        counter->value = row->gauge(room);
    } else {
        counters = unit->table->counters(room);
        counter->value = *(const uint64_t *)(counters + row->offset);
    }
}

unsigned hca_counters_number(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(units); i++) {
        n += units[i].table->nrows;
    }
    return n;
}

/* Where a counter is, by its number. */
typedef struct Place {
    const Unit *unit;
    const HcaCounterRow *row;
} Place;

/* Numbers have no gap, and no two rows have the same. */
static Place *make_places(void)
{
    unsigned n = hca_counters_number();
    Place *places = g_new0(Place, n);

    for (unsigned i = 0; i < G_N_ELEMENTS(units); i++) {
        const HcaCounterTable *table = units[i].table;

        for (unsigned j = 0; j < table->nrows; j++) {
            const HcaCounterRow *row = &table->rows[j];

            g_assert(row->number < n && !places[row->number].row);
            places[row->number] = (Place) { &units[i], row };
        }
    }
    return places;
}

/* The tables are the same for all cards and as long as the process lives. */
static const Place *places(void)
{
    static Place *made;

    if (g_once_init_enter(&made)) {
        g_once_init_leave(&made, make_places());
    }
    return made;
}

void hca_counter_get(const Hca *hca, unsigned index, HcaCounter *counter)
{
    const Place *place = &places()[index];

    read_row(hca, place->unit, place->row, counter);
}

void hca_counters_visit(const Hca *hca, HcaCounterFn *fn, void *opaque)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(units); i++) {
        const HcaCounterTable *table = units[i].table;

        for (unsigned j = 0; j < table->nrows; j++) {
            HcaCounter counter;

            read_row(hca, &units[i], &table->rows[j], &counter);
            fn(opaque, &counter);
        }
    }
}

/* Where it is kept; NULL: nowhere. */
static uint64_t *value_of(const Hca *hca, unsigned index)
{
    const Place *place = &places()[index];
    const void *room = place->unit->room(hca);

    if (!room || place->row->gauge) {
        return NULL;
    }
    return (uint64_t *)((const char *)place->unit->table->counters(room) +
                        place->row->offset);
}

bool hca_counter_saved(const Hca *hca, unsigned index, uint64_t *value)
{
    const uint64_t *at = value_of(hca, index);

    *value = at ? *at : 0;
    return *value;
}

void hca_counter_set(Hca *hca, uint32_t index, uint64_t value)
{
    uint64_t *at = index < hca_counters_number() ? value_of(hca, index) : NULL;

    if (at) {
        *at = value;
    }
}
