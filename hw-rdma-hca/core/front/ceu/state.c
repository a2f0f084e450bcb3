/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is saved of the command unit. A command that has begun has done nothing
 * before EXECUTE, in which it does not wait: it is read once more from the
 * registers, which software cannot write meanwhile, and decoded.
 */
#include "ceu_int.h"

typedef struct State {
    HcaCeu ceu;
    bool event_waits; /* that of the last command */
    HcaEvent event;
} State;

static const HcaField ceu_fields[] = {
    HCA_DERIVED(HcaCeu, hca),         HCA_SAVED_ARRAY(HcaCeu, hcr, hcr[0]),
    HCA_SAVED(HcaCeu, state),         HCA_ANEW(HcaCeu, ask),
    HCA_SAVED(HcaCeu, stalled_til),   HCA_DERIVED(HcaCeu, cmd),
    HCA_SAVED(HcaCeu, waiting),       HCA_SAVED(HcaCeu, behind),
    HCA_SAVED(HcaCeu, initialised),   HCA_ELSEWHERE(HcaCeu, event),
    HCA_ELSEWHERE(HcaCeu, uarc_base), HCA_ELSEWHERE(HcaCeu, uarc_log),
    HCA_COUNTED(HcaCeu, counters),    HCA_SAVED(HcaCeu, ignored_writes),
};
static const HcaStruct ceu_struct = HCA_STRUCT(HcaCeu, ceu_fields);

static const HcaField state_fields[] = {
    HCA_SAVED_STRUCT(State, ceu, ceu_struct),
    HCA_SAVED(State, event_waits),
    HCA_SAVED_STRUCT(State, event, hca_event_struct),
};
static const HcaStruct state_struct = HCA_STRUCT(State, state_fields);

static void save_ceu(void *room, GArray *records)
{
    const HcaCeu *ceu = room;
    State *state;

    g_array_set_size(records, 1);
    state = &g_array_index(records, State, 0);
    hca_struct_take(&ceu_struct, &state->ceu, ceu);
    if (ceu->state != HCA_CEU_IDLE && ceu->state != HCA_CEU_STALLED) {
        state->ceu.state = HCA_CEU_DECODE;
    }
    state->event_waits = hca_event_waits(&ceu->event);
    state->event = ceu->event.event;
}

/* What is in hand. */
static bool begin_again(HcaCeu *ceu, const HcaCeu *from)
{
    switch (from->state) {
    case HCA_CEU_IDLE:
        return true;
    case HCA_CEU_STALLED:
        ceu->state = HCA_CEU_STALLED;
        break;
    case HCA_CEU_DECODE:
        ceu->state = HCA_CEU_DECODE;
        break;
    default:
        return false;
    }
    return hca_hcr_fetch(ceu, &ceu->cmd);
}

static bool load_ceu(void *room, const void *records, uint32_t n,
                     HcaStateError *error)
{
    HcaCeu *ceu = room;
    const State *state = records;

    if (!hca_state_is_one(n, error)) {
        return false;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(ceu->hcr); i++) {
        __atomic_store_n(&ceu->hcr[i], state->ceu.hcr[i], __ATOMIC_RELEASE);
    }
    ceu->stalled_til = state->ceu.stalled_til;
    ceu->waiting = state->ceu.waiting;
    ceu->behind = state->ceu.behind;
    ceu->initialised = state->ceu.initialised;
    __atomic_store_n(&ceu->ignored_writes, state->ceu.ignored_writes,
                     __ATOMIC_RELAXED);
    if (!begin_again(ceu, &state->ceu)) {
        return hca_state_refuse(error, "no command is in hand");
    }
    if (state->event_waits &&
        (state->event.type != HCA_EVENT_CMD ||
         !hca_eq_wait(ceu->hca->cm, &state->event, &ceu->event))) {
        return hca_state_refuse(error, "no event of a command");
    }
    return true;
}

const HcaSection hca_ceu_section = HCA_SECTION("ceu", 1, &state_struct,
                                               save_ceu, load_ceu);

/* Where doorbell records are in ICM */

typedef struct Uarc {
    uint64_t base;
    uint8_t log;
} Uarc;

static const HcaField uarc_fields[] = {
    HCA_SAVED(Uarc, base),
    HCA_SAVED(Uarc, log),
};
static const HcaStruct uarc_struct = HCA_STRUCT(Uarc, uarc_fields);

static void save_uarc(void *room, GArray *records)
{
    const HcaCeu *ceu = room;
    Uarc uarc = { ceu->uarc_base, ceu->uarc_log };

    if (uarc.log) {
        g_array_append_val(records, uarc);
    }
}

static bool load_uarc(void *room, const void *records, uint32_t n,
                      HcaStateError *error)
{
    HcaCeu *ceu = room;
    const Uarc *uarc = records;

    if (!n) {
        return true;
    }
    if (!hca_state_is_one(n, error)) {
        return false;
    }
    if (uarc->log >= 32) {
        return hca_state_refuse(error, "pages of 2^%u bytes", uarc->log);
    }
    ceu->uarc_base = uarc->base;
    ceu->uarc_log = uarc->log;
    return true;
}

const HcaSection hca_uarc_section = HCA_SECTION("uarc", 1, &uarc_struct,
                                                save_uarc, load_uarc);
