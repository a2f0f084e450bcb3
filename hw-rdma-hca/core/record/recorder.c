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
