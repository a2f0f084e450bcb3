/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A state that lies: machine 0's card is saved while it works, somebody changes
 * what was saved, and the card is to go on from there. What it refuses leaves a
 * card that was reset; what it takes has to be a card as good as any other. Honest
 * states are in between, of both cards.
 *
 * Whoever sends a state sends the machine's memory, too: machine 0 has no secrets.
 */
#include <stdio.h>
#include <string.h>

#include "lib-fuzz.h"
#include "lib-machine.h"
#include "lib-state.h"

/* ---- lies ---- */

static void change_bytes(Fuzz *f, uint8_t *value, uint32_t size)
{
    uint64_t odd = take_odd(&f->in);

    for (uint32_t i = 0; i < size; i++) {
        value[i] = odd >> i % 8 * 8;
    }
}

/* For HCA_TRACE. */
static void say(const char *of, const char *what)
{
    if (g_getenv("HCA_TRACE")) {
        fprintf(stderr, "lie: %s, %s\n", of, what);
    }
}

/* A member that is saved, however deep it lies. */
static void change_field(Fuzz *f, const HcaStruct *type, uint8_t *record)
{
    const HcaField *field = &type->fields[take_below(&f->in, type->nfields)];
    uint8_t *at = record + field->offset;

    say(type->type, field->name);

    if (field->use != HCA_FIELD_SAVED) {
        return;
    }
    at += (size_t)take_below(&f->in, MIN(field->number, 65536)) * field->size;
    if (field->kind == HCA_FIELD_STRUCT) {
        change_field(f, field->of, at);
    } else if (take_bool(&f->in)) {
        change_bytes(f, at, field->size);
    } else {
        at[take_below(&f->in, field->size)] ^= 1u << take_below(&f->in, 8);
    }
}

static uint8_t *take_record(Fuzz *f, GArray *records)
{
    unsigned i = take_below(&f->in, MIN(records->len, 65536));

    return (uint8_t *)records->data +
           (size_t)i * g_array_get_element_size(records);
}

/* One less, one more, or another one. */
static void lie(Fuzz *f, HcaState *state)
{
    unsigned i = take_below(&f->in, hca_state_nsections());
    const HcaStruct *type = hca_state_section(i)->record;
    GArray *records = state->records[i];
    unsigned what = take_below(&f->in, 8);

    say(hca_state_section(i)->name, what > 2 ? "a member" : "records");
    if (what == 0) {
        g_array_set_size(records, records->len + 1 + take_below(&f->in, 4));
    }
    if (!records->len) {
        return;
    }
    if (what == 1) {
        g_array_set_size(records, take_below(&f->in, MIN(records->len, 65536)));
    } else if (what == 2) {
        memcpy(take_record(f, records), take_record(f, records), type->size);
    } else {
        change_field(f, type, take_record(f, records));
    }
}

static void act_lie(Fuzz *f)
{
    Host *host = &f->lab->host[0];
    HcaStateError error;
    HcaState *state;

    state = state_save(host->hca);
    for (unsigned n = 1 + take_below(&f->in, 6); n; n--) {
        lie(f, state);
    }
    say("state", hca_load(host->hca, state, &error) ? "taken" : error.text);
    hca_state_free(state);
    host->kicked = true;
}

/* ---- the truth ---- */

static void act_reload(Fuzz *f)
{
    host_reload(&f->lab->host[take_bool(&f->in)]);
}

/* Bytes that somebody has changed are no state, or one that lies. */
static void act_bytes(Fuzz *f)
{
    Host *host = &f->lab->host[0];
    g_autoptr(GByteArray) bytes = state_write(state_save(host->hca));
    HcaStateError error;
    HcaState *state;

    for (unsigned n = take_below(&f->in, 4); n; n--) {
        bytes->data[take32(&f->in) % bytes->len] = take8(&f->in);
    }
    state = state_read(bytes->data, bytes->len - take_below(&f->in, 2), &error);
    if (state) {
        hca_load(host->hca, state, &error);
        hca_state_free(state);
        host->kicked = true;
    }
}

static void act_start_over(Fuzz *f)
{
    fuzz_start_over(f, 0);
}

static const FuzzAction actions[] = {
    { "lie", act_lie },
    { "lie", act_lie },
    { "lie", act_lie },
    { "bytes", act_bytes },
    { "reload", act_reload },
    { "start over", act_start_over },
    { "send", fuzz_act_send },
    { "exchange", fuzz_act_exchange },
    { "recv", fuzz_act_recv },
    { "arm", fuzz_act_arm },
    { "poll", fuzz_act_poll },
    { "turns", fuzz_act_turns },
    { "rest", fuzz_act_rest },
    { "time", fuzz_act_time },
    { "revive", fuzz_act_revive },
    { "modify", fuzz_act_modify },
    { "group", fuzz_act_group },
    { "cable", fuzz_act_cable },
    { "events", fuzz_act_events },
    { "multicast", fuzz_act_multicast },
    { "gid", fuzz_act_gid },
    { "region", fuzz_act_region },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Fuzz f;

    fuzz_begin(&f, data, size, FUZZ_GUEST_DRIVER);
    fuzz_play(&f, actions, G_N_ELEMENTS(actions));
    fuzz_end(&f);
    return 0;
}
