/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The life of a flight recorder, and how it is read. */
#include "recorder.h"

#include <glib.h>

HcaRecorder *hca_recorder_new(uint32_t entries,
                              int64_t (*clock_ns)(void *opaque), void *opaque)
{
    HcaRecorder *recorder = g_new0(HcaRecorder, 1);
    size_t size = entries * sizeof(HcaRecord);

    recorder->ring = g_aligned_alloc0(1, size, _Alignof(HcaRecord));
    recorder->mask = entries - 1;
    recorder->late = true;
    recorder->clock_ns = clock_ns;
    recorder->opaque = opaque;
    return recorder;
}

void hca_recorder_free(HcaRecorder *recorder)
{
    if (recorder) {
        g_aligned_free(recorder->ring);
        g_free(recorder);
    }
}

/* Before the ring is full the oldest places are those not used yet. */
const HcaRecord *hca_recorder_get(const HcaRecorder *recorder, uint32_t i)
{
    uint32_t entries = recorder->mask + 1;
    bool full = recorder->ring[recorder->mask].kind != HCA_RECORD_NONE;
    uint32_t first = full ? recorder->next : 0;

    if (i >= (full ? entries : recorder->next)) {
        return NULL;
    }
    return &recorder->ring[(first + i) & recorder->mask];
}
