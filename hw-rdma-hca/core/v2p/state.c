/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is saved of VirtToPhys. Requests for memory that takes its time are asked
 * for again by who made them. Of the caches the dirty lines are saved: what is
 * clean lies in ICM, and memory must not change while a state is saved.
 */
#include <string.h>

#include "requests.h"

/* The unit */

static const HcaField unit_fields[] = {
    HCA_DERIVED(HcaV2p, format),
    HCA_DERIVED(HcaV2p, host),
    HCA_DERIVED(HcaV2p, max_log_mpts),
    HCA_DERIVED(HcaV2p, nmtts),
    HCA_SAVED(HcaV2p, ready),
    HCA_SAVED(HcaV2p, log_mpts),
    HCA_SAVED(HcaV2p, mpt_base),
    HCA_SAVED(HcaV2p, mtt_base),
    HCA_ELSEWHERE(HcaV2p, mdata),
    HCA_ELSEWHERE(HcaV2p, mpt_ram),
    HCA_ELSEWHERE(HcaV2p, mtt_ram),
    HCA_ELSEWHERE(HcaV2p, owned),
    HCA_ELSEWHERE(HcaV2p, dev_mem),
    HCA_DERIVED(HcaV2p, dev_mem_size),
    HCA_DERIVED(HcaV2p, live_mpts),
    HCA_SAVED(HcaV2p, bound_windows),
    HCA_ANEW(HcaV2p, channel),
    HCA_COUNTED(HcaV2p, counters),
    HCA_ANEW(HcaV2p, copies),
    HCA_ANEW(HcaV2p, copies_at),
    HCA_ANEW(HcaV2p, share_end),
    HCA_ANEW(HcaV2p, requests),
    HCA_ANEW(HcaV2p, posted),
    HCA_ANEW(HcaV2p, unseen),
    HCA_DERIVED(HcaV2p, faults),
    HCA_ELSEWHERE(HcaV2p, late_interrupts),
    HCA_ANEW(HcaV2p, ctx),
    HCA_ANEW(HcaV2p, peeking),
};
static const HcaStruct unit_struct = HCA_STRUCT(HcaV2p, unit_fields);

/* Of tables that there are not any more nothing is left. */
static void save_unit(void *room, GArray *records)
{
    static const HcaV2p none;
    const HcaV2p *v2p = room;

    g_array_append_vals(records, v2p->ready ? v2p : &none, 1);
}

static bool load_unit(void *room, const void *records, uint32_t n,
                      HcaStateError *error)
{
    HcaV2p *v2p = room;
    const HcaV2p *from = records;

    if (!hca_state_is_one(n, error)) {
        return false;
    }
    if (!from->ready) {
        return true;
    }
    if (hca_v2p_init(v2p, from->mpt_base, from->log_mpts, from->mtt_base) !=
        HCA_STAT_OK) {
        return hca_state_refuse(error, "no such tables");
    }
    v2p->bound_windows = from->bound_windows;
    return true;
}

const HcaSection hca_v2p_section = HCA_SECTION("v2p", 1, &unit_struct,
                                               save_unit, load_unit);

static void save_icm(void *room, GArray *records)
{
    hca_mdata_save(((HcaV2p *)room)->mdata, records);
}

static bool load_icm(void *room, const void *records, uint32_t n,
                     HcaStateError *error)
{
    return hca_mdata_load(((HcaV2p *)room)->mdata, records, n, error);
}

const HcaSection hca_v2p_icm_section = HCA_SECTION(
    "v2p-icm", 1, &hca_mdata_run_struct, save_icm, load_icm, &hca_mdata_struct);

/* Entries of the MPT in hardware ownership: words of the bits that are set */

typedef struct Owned {
    uint32_t word;
    uint64_t bits;
} Owned;

static const HcaField owned_fields[] = {
    HCA_SAVED(Owned, word),
    HCA_SAVED(Owned, bits),
};
static const HcaStruct owned_struct = HCA_STRUCT(Owned, owned_fields);

static uint64_t words(const HcaV2p *v2p)
{
    return ((UINT64_C(1) << v2p->log_mpts) + 63) / 64;
}

static void save_owned(void *room, GArray *records)
{
    const HcaV2p *v2p = room;

    for (uint64_t i = 0; v2p->ready && i < words(v2p); i++) {
        Owned owned = { i, v2p->owned[i] };

        if (owned.bits) {
            g_array_append_val(records, owned);
        }
    }
}

static bool load_owned(void *room, const void *records, uint32_t n,
                       HcaStateError *error)
{
    HcaV2p *v2p = room;
    const Owned *owned = records;
    uint64_t all = v2p->log_mpts < 6
                       ? (UINT64_C(1) << (1u << v2p->log_mpts)) - 1
                       : UINT64_MAX;

    for (; n; n--, owned++) {
        if (!v2p->ready || owned->word >= words(v2p) || owned->bits & ~all ||
            v2p->owned[owned->word]) {
            return hca_state_refuse(error, "no such entries");
        }
        v2p->owned[owned->word] = owned->bits;
        v2p->live_mpts += __builtin_popcountll(owned->bits);
    }
    return true;
}

const HcaSection hca_mpt_section = HCA_SECTION("mpt", 1, &owned_struct,
                                               save_owned, load_owned);

/* Lines of the caches that have not been written back */

typedef struct Line {
    bool mtt; /* of which cache */
    uint64_t number;
    uint8_t data[HCA_TPT_LINE];
} Line;

static const HcaField line_fields[] = {
    HCA_SAVED(Line, mtt),
    HCA_SAVED(Line, number),
    HCA_SAVED_ARRAY(Line, data, data[0]),
};
static const HcaStruct line_struct = HCA_STRUCT(Line, line_fields);

static const HcaField cache_fields[] = {
    HCA_DERIVED(HcaTptCache, ways),
    HCA_DERIVED(HcaTptCache, set_mask),
    HCA_ANEW(HcaTptCache, peeking),
    HCA_DERIVED(HcaTptCache, used),
    HCA_ANEW(HcaTptCache, clock),
    HCA_ANEW(HcaTptCache, tags),
    HCA_ELSEWHERE(HcaTptCache, data),
    HCA_DERIVED(HcaTptCache, decoded),
    HCA_DERIVED(HcaTptCache, decoded_size),
    HCA_DERIVED(HcaTptCache, ops),
    HCA_DERIVED(HcaTptCache, opaque),
    HCA_COUNTED(HcaTptCache, counters),
    HCA_COUNTED(HcaTptCache, sync_counters),
};
static const HcaStruct cache_struct = HCA_STRUCT(HcaTptCache, cache_fields);

static void save_cache(const HcaTptCache *cache, bool mtt, GArray *records)
{
    for (uint32_t i = 0; i < hca_tpt_cache_lines(cache); i++) {
        const HcaTptTag *tag = &cache->tags[i];
        Line line = { .mtt = mtt, .number = tag->line };

        if (tag->line != HCA_TPT_NO_LINE && tag->dirty) {
            memcpy(line.data, cache->data[i], sizeof(line.data));
            g_array_append_val(records, line);
        }
    }
}

static void save_lines(void *room, GArray *records)
{
    const HcaV2p *v2p = room;

    save_cache(v2p->mpt_ram, false, records);
    save_cache(v2p->mtt_ram, true, records);
}

static bool line_ok(const HcaV2p *v2p, const Line *line)
{
    uint64_t lines = line->mtt ? (v2p->nmtts + HCA_MTTS_PER_LINE - 1) /
                                     HCA_MTTS_PER_LINE
                               : UINT64_C(1) << v2p->log_mpts;

    return v2p->ready && line->number < lines;
}

static bool load_lines(void *room, const void *records, uint32_t n,
                       HcaStateError *error)
{
    HcaV2p *v2p = room;
    const Line *line = records;

    for (; n; n--, line++) {
        HcaTptCache *cache = line->mtt ? v2p->mtt_ram : v2p->mpt_ram;

        if (!line_ok(v2p, line) ||
            !hca_tpt_cache_put(cache, line->number, line->data)) {
            return hca_state_refuse(error, "no place for a line");
        }
    }
    return true;
}

const HcaSection hca_tpt_line_section = HCA_SECTION(
    "tpt-line", 1, &line_struct, save_lines, load_lines, &cache_struct);
