/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-lie.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../card.h"
#include "../counters.h"
#include "../port/port_int.h"
#include "lib-cable.h"
#include "lib-state.h"

static void change_bytes(Input *in, uint8_t *value, uint32_t size)
{
    uint64_t odd = take_odd(in);

    for (uint32_t i = 0; i < size; i++) {
        value[i] = odd >> i % 8 * 8;
    }
}

static bool is_child;

/* For HCA_TRACE, or for a parent. */
static void say(const char *of, const char *what)
{
    if (is_child || g_getenv("HCA_TRACE")) {
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

/* It may send what is no frame, which a tap could not cut. */
static void let_lie(Host *host)
{
    cable_untap(host->lab);
    host->kicked = true;
}

bool lie_in_state(Input *in, Host *host)
{
    HcaState *state = state_save(host->hca);
    HcaStateError error;
    bool taken;

    for (unsigned n = 1 + take_below(in, 6); n; n--) {
        lie(in, state);
    }
    taken = hca_load(host->hca, state, &error);
    say("state", taken ? "taken" : error.text);
    hca_state_free(state);
    let_lie(host);
    return taken;
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
        let_lie(host);
    }
}

/* ---- children ---- */

#define MOST_TURNS 30000 /* until both cards rest */
#define SECONDS 60       /* for which a child may live */
#define ROUNDS 4
#define ROUND_NS (300 * NS_PER_MS)
#define INPUT 96 /* bytes: enough for some lies */
#define LIES 6
#define MOST_MOMENTS 40 /* of a process */

static void end(const char *wrong)
{
    fprintf(stderr, "lie: %s\n", wrong);
    fflush(stderr);
    _exit(1);
}

static void see_line(void *opaque, const char *line)
{
    *(size_t *)opaque += strlen(line);
}

static void see_counter(void *opaque, const HcaCounter *counter)
{
    *(size_t *)opaque += counter->value;
}

/* From where it saved @state, which is freed. */
static void go_on(Host *host, HcaState *state)
{
    HcaStateError error;

    if (!hca_load(host->hca, state, &error)) {
        fprintf(stderr, "%s\n", error.text);
        end("the card does not load what it saves");
    }
    hca_state_free(state);
    host->kicked = true;
}

/* What people and the next migration would see of it. */
static void look(Host *host)
{
    HcaState *state = state_save(host->hca);
    size_t sum = 0;

    hca_queues_visit(host->hca, see_line, &sum);
    hca_recorder_visit(host->hca, see_line, &sum);
    hca_counters_visit(host->hca, see_counter, &sum);
    go_on(host, state);
}

/* What a reset has nothing to do with: the cable and its faults, what has been. */
static const StateLie outlives[] = {
    { "record", 0, NULL, 0, NULL },
    { "recorder", 0, NULL, 0, NULL },
    { "host-faults", 0, NULL, 0, NULL },
    { "fault-rule", 0, NULL, 0, NULL },
    { "script", 0, NULL, 0, NULL },
    { "link", 0, NULL, 0, NULL },
    { "injector", 0, NULL, 0, NULL },
    { "cable-rule", 0, NULL, 0, NULL },
    { "link-tx", 0, NULL, 0, NULL },
    { "link-rx", 0, NULL, 0, NULL },
    { "card", 1, "timers_stand", 0, NULL },
    { "card", 1, "timers_stood_at", 0, NULL },
    { "card", 1, "late", 0, NULL },
    { "node", 1, "node.next_tid", 0, NULL },
    { "port", 1, "port.downs", 0, NULL },
    { "port", 1, "port.limited", 0, NULL },
    { "cxtmgt", 1, "srq_lives", 0, NULL },
    { "bars", 1, "reset", 0, NULL },
};

/* Of a card that has been reset, as it has to be. */
static GByteArray *reset_bytes(Host *host)
{
    HcaState *state = state_save(host->hca);

    for (unsigned i = 0; i < G_N_ELEMENTS(outlives); i++) {
        state_tell(state, &outlives[i]);
    }
    return state_write(state);
}

/* What a reset makes of @host's card, which stays what it is. */
static GByteArray *bytes_if_reset(Host *host)
{
    HcaState *state = state_save(host->hca);
    GByteArray *bytes;

    hca_reset(host->hca);
    bytes = reset_bytes(host);
    go_on(host, state);
    return bytes;
}

/* What the peer says goes on, too: whether a manager has the port. */
static void expect_reset(Host *host, const GByteArray *should_be, bool managed)
{
    if (host->hca->port->managed == managed) {
        g_autoptr(GByteArray) is = reset_bytes(host);

        state_expect(should_be, is);
    }
}

static void rest(Lab *lab)
{
    if (!lab_rests_within(lab, MOST_TURNS)) {
        end("the cards do not come to rest");
    }
}

/* What is done to the card of a child. */
typedef enum Deed {
    LEFT_ALONE,
    LOADED, /* what it saves itself */
    LIED_TO,
} Deed;

G_NORETURN static void be_child(Host *host, Deed deed, Input in)
{
    g_autoptr(GByteArray) reset = NULL;
    bool managed = host->hca->port->managed;
    Lab *lab = host->lab;

    is_child = true;
    alarm(SECONDS);
    lab->reload = lab->moves = lab->lies = 0;
    cable_untap(lab);
    lab_listen(lab, NULL, NULL);
    if (deed != LEFT_ALONE) {
        reset = bytes_if_reset(host);
    }
    if (deed == LIED_TO && !lie_in_state(&in, host)) {
        expect_reset(host, reset, managed);
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (deed != LEFT_ALONE) {
            look(host);
        }
        rest(lab);
        lab->now += ROUND_NS;
    }
    hca_reset(host->hca);
    if (reset) {
        expect_reset(host, reset, managed);
    }
    rest(lab);
    hca_free(host->hca);
    _exit(0);
}

/* The status of a child, and in @log what it said. */
static int have_child(Host *host, Deed deed, Input in, GString *log)
{
    FILE *said = tmpfile();
    char part[4096];
    int status;
    pid_t pid;
    size_t n;

    g_assert_nonnull(said);
    fflush(NULL);
    pid = fork();
    g_assert_cmpint(pid, >=, 0);
    if (!pid) {
        dup2(fileno(said), STDOUT_FILENO);
        dup2(fileno(said), STDERR_FILENO);
        be_child(host, deed, in);
    }
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    rewind(said);
    while ((n = fread(part, 1, sizeof(part), said))) {
        g_string_append_len(log, part, n);
    }
    fclose(said);
    return status;
}

/* Not where a card that is left alone does not come to rest so soon. */
void lie_in_children(Host *host)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(host->lab->steps);
    static unsigned moments;
    uint8_t bytes[INPUT];

    if (++moments > MOST_MOMENTS) {
        return;
    }
    for (unsigned i = 0; i < LIED_TO + LIES; i++) {
        Deed deed = MIN(i, LIED_TO);
        g_autoptr(GString) log = g_string_new(NULL);
        int status;

        for (unsigned n = 0; n < INPUT; n++) {
            bytes[n] = g_rand_int(rand);
        }
        status = have_child(host, deed, (Input) { bytes, INPUT }, log);
        if (status && deed == LEFT_ALONE) {
            return;
        }
        if (status) {
            g_error("%s\nstatus 0x%x of a card that took a %s", log->str,
                    status, deed == LOADED ? "state" : "lie");
        }
    }
}
