/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TPTMetaData (VirtToPhys document 5.3) and, used a second time, ctxmdata's
 * store (context document 5.3): where the pages of card-virtual memory are.
 *
 * The document has one RAM of 512 entries of 52 + 1 bits for each table, found
 * by the address less the table's base. Here all tables of a kind share one
 * map of two levels, so that tables may have any size and place.
 */
#include <glib.h>

#include "v2p.h"

#define PAGE_SHIFT HCA_ICM_PAGE_SHIFT
#define PAGE_OFFSET ((1u << PAGE_SHIFT) - 1)
#define LEAF_SHIFT 9
#define LEAF_SIZE (1u << LEAF_SHIFT)
/* In an entry beside the page's bus address. */
#define ENTRY_VALID 1u

struct HcaTptMdata {
    uint64_t max_pages;
    uint64_t nleaves;
    uint64_t mapped; /* pages */
    uint64_t **leaves;
};

HcaTptMdata *hca_mdata_new(uint64_t max_pages)
{
    HcaTptMdata *mdata = g_new0(HcaTptMdata, 1);

    mdata->max_pages = max_pages;
    mdata->nleaves = (max_pages + LEAF_SIZE - 1) >> LEAF_SHIFT;
    mdata->leaves = g_new0(uint64_t *, mdata->nleaves);
    return mdata;
}

void hca_mdata_free(HcaTptMdata *mdata)
{
    hca_mdata_clear(mdata);
    g_free(mdata->leaves);
    g_free(mdata);
}

void hca_mdata_clear(HcaTptMdata *mdata)
{
    for (uint64_t i = 0; i < mdata->nleaves; i++) {
        g_clear_pointer(&mdata->leaves[i], g_free);
    }
    mdata->mapped = 0;
}

static uint64_t get_entry(const HcaTptMdata *mdata, uint64_t index)
{
    const uint64_t *leaf = mdata->leaves[index >> LEAF_SHIFT];

    return leaf ? leaf[index & (LEAF_SIZE - 1)] : 0;
}

static void set_entry(HcaTptMdata *mdata, uint64_t index, uint64_t entry)
{
    uint64_t **leaf = &mdata->leaves[index >> LEAF_SHIFT];

    if (!*leaf) {
        *leaf = g_new0(uint64_t, LEAF_SIZE);
    }
    (*leaf)[index & (LEAF_SIZE - 1)] = entry;
}

bool hca_mdata_has(const HcaTptMdata *mdata, uint64_t virt, uint32_t npages)
{
    uint64_t first = virt >> PAGE_SHIFT;

    return !(virt & PAGE_OFFSET) && npages && first < mdata->max_pages &&
           npages <= mdata->max_pages - first;
}

/* Whether all pages of a range that is good are mapped, or all are not. */
static bool range_is(const HcaTptMdata *mdata, uint64_t virt, uint32_t npages,
                     bool mapped)
{
    uint64_t first = virt >> PAGE_SHIFT;

    for (uint32_t i = 0; i < npages; i++) {
        if ((get_entry(mdata, first + i) != 0) != mapped) {
            return false;
        }
    }
    return true;
}

uint8_t hca_mdata_map(HcaTptMdata *mdata, uint64_t virt, uint64_t page,
                      uint32_t npages)
{
    if (!hca_mdata_has(mdata, virt, npages) || (page & PAGE_OFFSET) ||
        npages - 1 > (UINT64_MAX >> PAGE_SHIFT) - (page >> PAGE_SHIFT) ||
        !range_is(mdata, virt, npages, false)) {
        return HCA_STAT_BAD_PARAM;
    }
    for (uint32_t i = 0; i < npages; i++) {
        set_entry(mdata, (virt >> PAGE_SHIFT) + i,
                  (page + ((uint64_t)i << PAGE_SHIFT)) | ENTRY_VALID);
    }
    mdata->mapped += npages;
    return HCA_STAT_OK;
}

bool hca_mdata_is_mapped(const HcaTptMdata *mdata, uint64_t virt,
                         uint32_t npages)
{
    return hca_mdata_has(mdata, virt, npages) &&
           range_is(mdata, virt, npages, true);
}

uint8_t hca_mdata_unmap(HcaTptMdata *mdata, uint64_t virt, uint32_t npages)
{
    if (!hca_mdata_is_mapped(mdata, virt, npages)) {
        return HCA_STAT_BAD_PARAM;
    }
    for (uint32_t i = 0; i < npages; i++) {
        set_entry(mdata, (virt >> PAGE_SHIFT) + i, 0);
    }
    mdata->mapped -= npages;
    return HCA_STAT_OK;
}

uint8_t hca_mdata_clear_range(HcaTptMdata *mdata, uint64_t virt,
                              uint32_t npages)
{
    uint64_t first = virt >> PAGE_SHIFT;

    if (!hca_mdata_has(mdata, virt, npages)) {
        return HCA_STAT_BAD_PARAM;
    }
    for (uint64_t i = first; i < first + npages; i++) {
        if (get_entry(mdata, i)) {
            set_entry(mdata, i, 0);
            mdata->mapped--;
        }
    }
    return HCA_STAT_OK;
}

bool hca_mdata_lookup(const HcaTptMdata *mdata, uint64_t virt, uint64_t *bus)
{
    uint64_t index = virt >> PAGE_SHIFT;
    uint64_t entry = index < mdata->max_pages ? get_entry(mdata, index) : 0;

    if (!entry) {
        return false;
    }
    *bus = (entry & ~(uint64_t)PAGE_OFFSET) | (virt & PAGE_OFFSET);
    return true;
}

uint64_t hca_mdata_pages(const HcaTptMdata *mdata)
{
    return mdata->mapped;
}

/* State */

/* Pages that lie together on both sides. */
typedef struct Run {
    uint64_t virt;
    uint64_t page;
    uint32_t npages;
} Run;

static const HcaField run_fields[] = {
    HCA_SAVED(Run, virt),
    HCA_SAVED(Run, page),
    HCA_SAVED(Run, npages),
};
const HcaStruct hca_mdata_run_struct = HCA_STRUCT(Run, run_fields);

static const HcaField mdata_fields[] = {
    HCA_DERIVED(HcaTptMdata, max_pages),
    HCA_DERIVED(HcaTptMdata, nleaves),
    HCA_DERIVED(HcaTptMdata, mapped),
    HCA_ELSEWHERE(HcaTptMdata, leaves),
};
const HcaStruct hca_mdata_struct = HCA_STRUCT(HcaTptMdata, mdata_fields);

static void save_page(GArray *runs, uint64_t virt, uint64_t page)
{
    Run *last = runs->len ? &g_array_index(runs, Run, runs->len - 1) : NULL;
    Run run = { virt, page, 1 };

    if (last && virt - last->virt == (uint64_t)last->npages << PAGE_SHIFT &&
        page - last->page == (uint64_t)last->npages << PAGE_SHIFT) {
        last->npages++;
    } else {
        g_array_append_val(runs, run);
    }
}

void hca_mdata_save(const HcaTptMdata *mdata, GArray *records)
{
    for (uint64_t i = 0; i < mdata->nleaves; i++) {
        for (unsigned j = 0; mdata->leaves[i] && j < LEAF_SIZE; j++) {
            uint64_t entry = mdata->leaves[i][j];

            if (entry) {
                save_page(records, (i * LEAF_SIZE + j) << PAGE_SHIFT,
                          entry & ~(uint64_t)PAGE_OFFSET);
            }
        }
    }
}

bool hca_mdata_load(HcaTptMdata *mdata, const void *records, uint32_t n,
                    HcaStateError *error)
{
    const Run *run = records;

    for (; n; n--, run++) {
        if (hca_mdata_map(mdata, run->virt, run->page, run->npages) !=
            HCA_STAT_OK) {
            return hca_state_refuse(error, "pages that cannot be mapped");
        }
    }
    return true;
}
