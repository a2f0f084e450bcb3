/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-lie.h"

#include <stdio.h>
#include <string.h>

#include "lib-state.h"

static void change_bytes(Input *in, uint8_t *value, uint32_t size)
{
    uint64_t odd = take_odd(in);

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
static void change_field(Input *in, const HcaStruct *type, uint8_t *record)
{
    const HcaField *field = &type->fields[take_below(in, type->nfields)];
    uint8_t *at = record + field->offset;

    say(type->type, field->name);

    if (field->use != HCA_FIELD_SAVED) {
        return;
    }
    at += (size_t)take_below(in, MIN(field->number, 65536)) * field->size;
    if (field->kind == HCA_FIELD_STRUCT) {
        change_field(in, field->of, at);
    } else if (take_bool(in)) {
        change_bytes(in, at, field->size);
    } else {
        at[take_below(in, field->size)] ^= 1u << take_below(in, 8);
    }
}

static uint8_t *take_record(Input *in, GArray *records)
{
    unsigned i = take_below(in, MIN(records->len, 65536));

    return (uint8_t *)records->data +
           (size_t)i * g_array_get_element_size(records);
}

/* One less, one more, or another one. */
static void lie(Input *in, HcaState *state)
{
    unsigned i = take_below(in, hca_state_nsections());
    const HcaStruct *type = hca_state_section(i)->record;
    GArray *records = state->records[i];
    unsigned what = take_below(in, 8);

    say(hca_state_section(i)->name, what > 2 ? "a member" : "records");
    if (what == 0) {
        g_array_set_size(records, records->len + 1 + take_below(in, 4));
    }
    if (!records->len) {
        return;
    }
    if (what == 1) {
        g_array_set_size(records, take_below(in, MIN(records->len, 65536)));
    } else if (what == 2) {
        memcpy(take_record(in, records), take_record(in, records), type->size);
    } else {
        change_field(in, type, take_record(in, records));
    }
}

void lie_in_state(Input *in, Host *host)
{
    HcaState *state = state_save(host->hca);
    HcaStateError error;

    for (unsigned n = 1 + take_below(in, 6); n; n--) {
        lie(in, state);
    }
    say("state", hca_load(host->hca, state, &error) ? "taken" : error.text);
    hca_state_free(state);
    host->kicked = true;
}

void lie_in_bytes(Input *in, Host *host)
{
    g_autoptr(GByteArray) bytes = state_write(state_save(host->hca));
    HcaStateError error;
    HcaState *state;

    for (unsigned n = take_below(in, 4); n; n--) {
        bytes->data[take32(in) % bytes->len] = take8(in);
    }
    state = state_read(bytes->data, bytes->len - take_below(in, 2), &error);
    if (state) {
        hca_load(host->hca, state, &error);
        hca_state_free(state);
        host->kicked = true;
    }
}
