/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The life of a flight recorder, and how it is read. */
#include "recorder.h"

#include <glib.h>

static HcaRecord *new_records(uint32_t entries)
{
    return g_aligned_alloc0(entries, sizeof(HcaRecord), _Alignof(HcaRecord));
}

HcaRecorder *hca_recorder_new(uint32_t entries,
                              int64_t (*clock_ns)(void *opaque), void *opaque)
{
    HcaRecorder *recorder = g_new0(HcaRecorder, 1);

    recorder->ring.records = new_records(entries);
    recorder->kept.records = new_records(entries);
    recorder->mask = entries - 1;
    recorder->keep_at = HCA_RECORDER_NEVER;
    recorder->late = true;
    recorder->clock_ns = clock_ns;
    recorder->opaque = opaque;
    return recorder;
}

void hca_recorder_free(HcaRecorder *recorder)
{
    if (recorder) {
        g_aligned_free(recorder->ring.records);
        g_aligned_free(recorder->kept.records);
        g_free(recorder);
    }
}

void hca_recorder_keep(HcaRecorder *recorder)
{
    HcaRecordRing full = recorder->ring;

    recorder->ring = recorder->kept;
    recorder->ring.begin = recorder->ring.end = full.end;
    recorder->kept = full;
    recorder->keep_at = HCA_RECORDER_NEVER;
}

static uint32_t held(const HcaRecorder *recorder, const HcaRecordRing *ring)
{
    return MIN(ring->end - ring->begin, UINT64_C(1) + recorder->mask);
}

const HcaRecord *hca_recorder_get(const HcaRecorder *recorder, uint32_t i)
{
    const HcaRecordRing *ring = &recorder->kept;
    uint32_t n = held(recorder, ring);

    if (i >= n) {
        i -= n;
        ring = &recorder->ring;
        n = held(recorder, ring);
    }
    return i < n ? &ring->records[(ring->end - n + i) & recorder->mask] : NULL;
}

/* State */

/* A record, and of which ring; an event's arguments are its first bytes. */
typedef struct Saved {
    int64_t at_ns;
    uint32_t len;
    uint8_t kind, event, fault, rule;
    uint8_t head[HCA_RECORD_HEAD];
    bool kept;
} Saved;

static const HcaField of_record_fields[] = {
    HCA_ELSEWHERE(HcaRecord, at_ns), HCA_ELSEWHERE(HcaRecord, kind),
    HCA_ELSEWHERE(HcaRecord, event), HCA_ELSEWHERE(HcaRecord, fault),
    HCA_ELSEWHERE(HcaRecord, rule),  HCA_ELSEWHERE(HcaRecord, len),
    HCA_ELSEWHERE(HcaRecord, head),
};
static const HcaStruct record_struct = HCA_STRUCT(HcaRecord, of_record_fields);

static const HcaField saved_fields[] = {
    HCA_SAVED(Saved, at_ns),
    HCA_SAVED(Saved, len),
    HCA_SAVED(Saved, kind),
    HCA_SAVED(Saved, event),
    HCA_SAVED(Saved, fault),
    HCA_SAVED(Saved, rule),
    HCA_SAVED_ARRAY(Saved, head, head[0]),
    HCA_SAVED(Saved, kept),
};
static const HcaStruct saved_struct = HCA_STRUCT(Saved, saved_fields);

static Saved saved_of(const HcaRecord *record, bool kept)
{
    Saved saved = {
        .at_ns = record->at_ns,
        .len = record->len,
        .kind = record->kind,
        .event = record->event,
        .fault = record->fault,
        .rule = record->rule,
        .kept = kept,
    };

    memcpy(saved.head, record->head, sizeof(saved.head));
    return saved;
}

static HcaRecord record_of(const Saved *saved)
{
    HcaRecord record = {
        .at_ns = saved->at_ns,
        .len = saved->len,
        .kind = saved->kind,
        .event = saved->event,
        .fault = saved->fault,
        .rule = saved->rule,
    };

    memcpy(record.head, saved->head, sizeof(record.head));
    return record;
}

static void save_ring(const HcaRecorder *recorder, const HcaRecordRing *ring,
                      GArray *records)
{
    for (uint64_t i = ring->end - held(recorder, ring); i < ring->end; i++) {
        Saved saved = saved_of(&ring->records[i & recorder->mask],
                               ring == &recorder->kept);

        g_array_append_val(records, saved);
    }
}

static void save_records(void *room, GArray *records)
{
    const HcaRecorder *recorder = room;

    if (recorder) {
        save_ring(recorder, &recorder->kept, records);
        save_ring(recorder, &recorder->ring, records);
    }
}

/* What happened is not known here: who writes it down looks. */
static bool are_records(const Saved *saved, uint32_t n)
{
    for (; n; n--, saved++) {
        if (saved->kind < HCA_RECORD_EVENT ||
            saved->kind > HCA_RECORD_LOOPBACK) {
            return false;
        }
    }
    return true;
}

/* A recorder of another size has the last ones, and none has none. */
static bool load_records(void *room, const void *records, uint32_t n,
                         HcaStateError *error)
{
    HcaRecorder *recorder = room;
    const Saved *saved = records;

    if (!are_records(records, n)) {
        return hca_state_refuse(error, "what is no record");
    }
    if (recorder) {
        recorder->ring.begin = recorder->ring.end = 0;
        recorder->kept.begin = recorder->kept.end = 0;
        recorder->keep_at = HCA_RECORDER_NEVER;
    }
    for (; n && recorder; n--, saved++) {
        HcaRecordRing *ring = saved->kept ? &recorder->kept : &recorder->ring;

        ring->records[ring->end++ & recorder->mask] = record_of(saved);
    }
    return true;
}

const HcaSection hca_record_section = HCA_SECTION(
    "record", 1, &saved_struct, save_records, load_records, &record_struct);

typedef struct State {
    uint64_t until_kept; /* records, or HCA_RECORDER_NEVER */
    bool broke, told;
} State;

static const HcaField state_fields[] = {
    HCA_SAVED(State, until_kept),
    HCA_SAVED(State, broke),
    HCA_SAVED(State, told),
};
static const HcaStruct state_struct = HCA_STRUCT(State, state_fields);

static const HcaField recorder_fields[] = {
    HCA_ELSEWHERE(HcaRecorder, ring),    HCA_DERIVED(HcaRecorder, mask),
    HCA_ELSEWHERE(HcaRecorder, keep_at), HCA_ELSEWHERE(HcaRecorder, kept),
    HCA_ANEW(HcaRecorder, now),          HCA_ANEW(HcaRecorder, late),
    HCA_ELSEWHERE(HcaRecorder, broke),   HCA_ELSEWHERE(HcaRecorder, told),
    HCA_DERIVED(HcaRecorder, clock_ns),  HCA_DERIVED(HcaRecorder, opaque),
};
static const HcaStruct recorder_struct = HCA_STRUCT(HcaRecorder,
                                                    recorder_fields);

static const HcaField ring_fields[] = {
    HCA_ELSEWHERE(HcaRecordRing, records),
    HCA_ANEW(HcaRecordRing, begin),
    HCA_DERIVED(HcaRecordRing, end),
};
static const HcaStruct ring_struct = HCA_STRUCT(HcaRecordRing, ring_fields);

static void save_state(void *room, GArray *records)
{
    const HcaRecorder *recorder = room;
    State state = { 0 };

    if (recorder) {
        state = (State) { recorder->keep_at, recorder->broke, recorder->told };
        if (recorder->keep_at != HCA_RECORDER_NEVER) {
            state.until_kept -= recorder->ring.end;
        }
        g_array_append_val(records, state);
    }
}

static bool load_state(void *room, const void *records, uint32_t n,
                       HcaStateError *error)
{
    HcaRecorder *recorder = room;
    const State *state = records;

    if (n > 1) {
        return hca_state_refuse(error, "%u records", n);
    }
    if (!n || !recorder) {
        return true;
    }
    recorder->broke = state->broke;
    recorder->told = state->told;
    if (state->until_kept <= recorder->mask) {
        recorder->keep_at = recorder->ring.end + state->until_kept;
    }
    return true;
}

const HcaSection hca_recorder_section = HCA_SECTION(
    "recorder", 1, &state_struct, save_state, load_state, &recorder_struct,
    &ring_struct);
