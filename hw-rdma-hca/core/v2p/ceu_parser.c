/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CEU parser (VirtToPhys document 5.1): what the command unit does to the
 * TPT's metadata and tables. See table 2.2 for the requests.
 */
#include <glib.h>
#include <string.h>

#include "v2p_int.h"

/* WR_ICMMAP_EN. */
uint8_t hca_v2p_init(HcaV2p *v2p, uint64_t mpt_base, unsigned log_mpts,
                     uint64_t mtt_base)
{
    uint64_t space = (uint64_t)HCA_ICM_MAX_PAGES << HCA_ICM_PAGE_SHIFT;

    if (log_mpts > v2p->max_log_mpts) {
        return HCA_STAT_EXCEED_LIM;
    }
    if (mpt_base % HCA_TPT_LINE || mtt_base % HCA_TPT_LINE ||
        mpt_base >= space || mtt_base >= space ||
        ((uint64_t)HCA_MPT_SIZE << log_mpts) > space - mpt_base) {
        return HCA_STAT_BAD_PARAM;
    }
    hca_v2p_forget(v2p);
    v2p->mpt_base = mpt_base;
    v2p->log_mpts = log_mpts;
    v2p->mtt_base = mtt_base;
    v2p->ready = true;
    return HCA_STAT_OK;
}

/* WR_ICMMAP_DIS. */
void hca_v2p_close(HcaV2p *v2p)
{
    hca_v2p_forget(v2p);
}

/* MAP_ICM_EN. */
uint8_t hca_v2p_map_icm(HcaV2p *v2p, uint64_t virt, uint64_t page,
                        uint32_t npages)
{
    return hca_mdata_map(v2p->mdata, virt, page, npages);
}

/* The lines of a table at @base that lie from @virt on in @npages pages. */
typedef struct Lines {
    uint64_t first;
    uint64_t end;
} Lines;

static uint64_t line_at(uint64_t base, uint64_t virt)
{
    return virt > base ? (virt - base) / HCA_TPT_LINE : 0;
}

static Lines lines_of(uint64_t base, uint64_t virt, uint32_t npages)
{
    uint64_t end = virt + ((uint64_t)npages << HCA_ICM_PAGE_SHIFT);

    return (Lines) { line_at(base, virt), line_at(base, end) };
}

/* What is cached of the pages goes back to them; false: some could not. */
static bool write_back(HcaV2p *v2p, uint64_t virt, uint32_t npages)
{
    Lines mpts = lines_of(v2p->mpt_base, virt, npages);
    Lines mtts = lines_of(v2p->mtt_base, virt, npages);
    bool ok = hca_tpt_cache_flush(v2p->mpt_ram, mpts.first, mpts.end);

    return hca_tpt_cache_flush(v2p->mtt_ram, mtts.first, mtts.end) && ok;
}

static void drop(HcaV2p *v2p, uint64_t virt, uint32_t npages)
{
    Lines mpts = lines_of(v2p->mpt_base, virt, npages);
    Lines mtts = lines_of(v2p->mtt_base, virt, npages);

    hca_tpt_cache_drop(v2p->mpt_ram, mpts.first, mpts.end);
    hca_tpt_cache_drop(v2p->mtt_ram, mtts.first, mtts.end);
}

/* MAP_ICM_DIS. */
uint8_t hca_v2p_unmap_icm(HcaV2p *v2p, uint64_t virt, uint32_t npages)
{
    hca_v2p_select(v2p, HCA_V2P_CEU);
    if (!hca_mdata_is_mapped(v2p->mdata, virt, npages)) {
        return HCA_STAT_BAD_PARAM;
    }
    if (!write_back(v2p, virt, npages)) {
        return HCA_STAT_BAD_SEG_PARAM;
    }
    drop(v2p, virt, npages);
    return hca_mdata_unmap(v2p->mdata, virt, npages);
}

uint8_t hca_v2p_clear_icm(HcaV2p *v2p, uint64_t virt, uint32_t npages)
{
    hca_v2p_select(v2p, HCA_V2P_CEU);
    if (!hca_mdata_has(v2p->mdata, virt, npages)) {
        return HCA_STAT_BAD_PARAM;
    }
    write_back(v2p, virt, npages);
    drop(v2p, virt, npages);
    return hca_mdata_clear_range(v2p->mdata, virt, npages);
}

static bool index_ok(const HcaV2p *v2p, uint32_t index)
{
    return v2p->ready && index < UINT64_C(1) << v2p->log_mpts;
}

static void set_owned(HcaV2p *v2p, uint32_t index, bool owned)
{
    uint64_t bit = UINT64_C(1) << index % 64;

    if (owned) {
        v2p->owned[index / 64] |= bit;
        v2p->live_mpts++;
    } else {
        v2p->owned[index / 64] &= ~bit;
        v2p->live_mpts--;
    }
}

bool hca_mtts_in_table(const HcaV2p *v2p, uint64_t index, uint64_t n)
{
    return !n || (index < v2p->nmtts && n <= v2p->nmtts - index);
}

/*
 * Whether a region's MTT entries are in the table, and are as many as it
 * needs. A work request will write those of one that is for that.
 */
static bool mtts_ok(const HcaV2p *v2p, const HcaMpt *mpt)
{
    uint64_t pages = hca_mpt_pages(mpt);
    uint64_t entries = MAX(pages,
                           mpt->fast_reg || mpt->pieces ? mpt->mtt_sz : 0);

    return hca_mtts_in_table(v2p, mpt->mtt_seg, entries) &&
           (!mpt->mtt_sz || pages <= mpt->mtt_sz) &&
           mpt->npieces <= RDMA_HCA_MAX_PAGE_LIST &&
           mpt->npieces <= mpt->mtt_sz / 2;
}

/* Whether what it is for makes sense together. */
static bool kind_ok(const HcaMpt *mpt)
{
    bool no_table = mpt->physical || mpt->null;

    if (mpt->dev_mem && !mpt->physical) {
        return false;
    }
    if (mpt->free && (!mpt->fast_reg || mpt->length)) {
        return false;
    }
    if (no_table && (mpt->fast_reg || mpt->pieces)) {
        return false;
    }
    return !mpt->null || (!mpt->physical && !mpt->bind_enable &&
                          !(mpt->access & HCA_REMOTE_ACCESS));
}

/* Whether it lies in device memory, if it is to. */
static bool dev_mem_ok(const HcaV2p *v2p, const HcaMpt *mpt)
{
    return !mpt->dev_mem ||
           (v2p->dev_mem_size && mpt->start <= v2p->dev_mem_size &&
            mpt->length <= v2p->dev_mem_size - mpt->start);
}

static bool region_ok(const HcaV2p *v2p, const HcaMpt *mpt)
{
    return !(mpt->access & HCA_ACCESS_ON_DEMAND) &&
           hca_region_access_ok(mpt->access) && kind_ok(mpt) &&
           hca_mpt_shape_ok(mpt) && mtts_ok(v2p, mpt) && dev_mem_ok(v2p, mpt);
}

/* What software has written to its entries since they were last read counts. */
static void forget_mtts(HcaV2p *v2p, const HcaMpt *mpt)
{
    uint64_t pages = hca_mpt_pages(mpt);

    if (v2p->format->mtts_are_software && pages) {
        hca_tpt_cache_drop(v2p->mtt_ram, mpt->mtt_seg / HCA_MTTS_PER_LINE,
                           (mpt->mtt_seg + pages - 1) / HCA_MTTS_PER_LINE + 1);
    }
}

/* WR_MPT_WRITE. */
uint8_t hca_v2p_write_mpt(HcaV2p *v2p, uint32_t index, const HcaMpt *mpt)
{
    HcaMpt entry = *mpt;
    void *line;

    hca_v2p_select(v2p, HCA_V2P_CEU);
    if (!index_ok(v2p, index)) {
        return HCA_STAT_BAD_INDEX;
    }
    if (hca_mpt_owned(v2p, index)) {
        return HCA_STAT_BAD_RESOURCE;
    }
    if (hca_mpt_index(v2p, mpt->key) != index ||
        (mpt->region && !region_ok(v2p, mpt))) {
        return HCA_STAT_BAD_PARAM;
    }
    line = hca_tpt_cache_write(v2p->mpt_ram, index);
    if (!line) {
        return HCA_STAT_BAD_SEG_PARAM;
    }
    entry.sw_owns = false;
    entry.windows = 0;
    if (entry.region) {
        forget_mtts(v2p, &entry);
    } else {
        hca_mpt_make_window(&entry);
    }
    v2p->format->encode(&entry, line);
    set_owned(v2p, index, true);
    return HCA_STAT_OK;
}

/* An entry is software's again. False: its table cannot be told. */
static bool give_back(HcaV2p *v2p, uint32_t index, HcaMpt *mpt)
{
    void *line = hca_tpt_cache_write(v2p->mpt_ram, index);
    HcaMpt entry = *mpt;

    if (!line) {
        return false;
    }
    if (!mpt->region) {
        hca_mpt_make_window(&entry);
    }
    entry.sw_owns = true;
    v2p->format->encode(&entry, line);
    if (!mpt->region) {
        hca_v2p_unbind(v2p, mpt);
    }
    return true;
}

/* Whether the page that the table has @index in is mapped. */
static bool mpt_mapped(HcaV2p *v2p, uint32_t index)
{
    uint64_t bus;

    return hca_v2p_line_bus(v2p, v2p->mpt_ram, index, &bus);
}

/* WR_MPT_INVALID. */
uint8_t hca_v2p_invalidate_mpt(HcaV2p *v2p, uint32_t index)
{
    const void *line;
    HcaMpt mpt;

    hca_v2p_select(v2p, HCA_V2P_CEU);
    if (!index_ok(v2p, index)) {
        return HCA_STAT_BAD_INDEX;
    }
    if (!hca_mpt_owned(v2p, index)) {
        return HCA_STAT_BAD_RES_STATE;
    }
    line = hca_tpt_cache_read(v2p->mpt_ram, index);
    if (line) {
        v2p->format->decode(&mpt, line);
        if (mpt.region && mpt.windows) {
            return HCA_STAT_REG_BOUND;
        }
    }
    /* If the table's page has gone the entry has gone with it. */
    if (line ? !give_back(v2p, index, &mpt) : mpt_mapped(v2p, index)) {
        return HCA_STAT_BAD_SEG_PARAM;
    }
    set_owned(v2p, index, false);
    return HCA_STAT_OK;
}

uint8_t hca_v2p_query_mpt(HcaV2p *v2p, uint32_t index, HcaMpt *mpt)
{
    const void *line;

    hca_v2p_select(v2p, HCA_V2P_CEU);
    if (!index_ok(v2p, index)) {
        return HCA_STAT_BAD_INDEX;
    }
    line = hca_tpt_cache_read(v2p->mpt_ram, index);
    if (!line) {
        return HCA_STAT_BAD_SEG_PARAM;
    }
    v2p->format->decode(mpt, line);
    if (!hca_mpt_owned(v2p, index)) {
        mpt->sw_owns = true;
    }
    return HCA_STAT_OK;
}

static uint8_t check_mtts(HcaV2p *v2p, uint64_t index, unsigned n)
{
    hca_v2p_select(v2p, HCA_V2P_CEU);
    if (!v2p->ready || index >= v2p->nmtts ||
        !hca_mtts_in_table(v2p, index, n)) {
        return HCA_STAT_BAD_INDEX;
    }
    return HCA_STAT_OK;
}

/* Whether all lines with these entries can be had: all or nothing. */
static bool mtts_mapped(HcaV2p *v2p, uint64_t index, unsigned n)
{
    for (uint64_t line = index / HCA_MTTS_PER_LINE;
         line <= (index + n - 1) / HCA_MTTS_PER_LINE; line++) {
        if (!hca_tpt_cache_read(v2p->mtt_ram, line)) {
            return false;
        }
    }
    return true;
}

bool hca_mtts_write(HcaV2p *v2p, uint64_t index, const uint64_t *addr,
                    unsigned n)
{
    uint64_t *line = NULL;

    if (!n) {
        return true;
    }
    if (!hca_mtts_in_table(v2p, index, n) || !mtts_mapped(v2p, index, n)) {
        return false;
    }
    for (unsigned i = 0; i < n; i++, index++) {
        if (!line || index % HCA_MTTS_PER_LINE == 0) {
            line = hca_tpt_cache_write(v2p->mtt_ram, index / HCA_MTTS_PER_LINE);
        }
        if (!line) {
            return false;
        }
        line[index % HCA_MTTS_PER_LINE] = GUINT64_TO_BE(addr[i]);
    }
    return true;
}

/* WR_MTT_WRITE. */
uint8_t hca_v2p_write_mtt(HcaV2p *v2p, uint64_t index, const uint64_t *addr,
                          unsigned n)
{
    uint8_t status = check_mtts(v2p, index, n);

    if (status) {
        return status;
    }
    return hca_mtts_write(v2p, index, addr, n) ? HCA_STAT_OK
                                               : HCA_STAT_BAD_SEG_PARAM;
}

uint8_t hca_v2p_read_mtt(HcaV2p *v2p, uint64_t index, uint64_t *addr,
                         unsigned n)
{
    uint8_t status = check_mtts(v2p, index, n);

    if (status) {
        return status;
    }
    for (unsigned i = 0; i < n; i++, index++) {
        const uint64_t *line = hca_tpt_cache_read(v2p->mtt_ram,
                                                  index / HCA_MTTS_PER_LINE);

        if (!line) {
            return HCA_STAT_BAD_SEG_PARAM;
        }
        addr[i] = GUINT64_FROM_BE(line[index % HCA_MTTS_PER_LINE]);
    }
    return HCA_STAT_OK;
}

uint8_t hca_v2p_sync(HcaV2p *v2p)
{
    bool ok;

    hca_v2p_select(v2p, HCA_V2P_CEU);
    ok = hca_tpt_cache_sync(v2p->mpt_ram);
    ok &= hca_tpt_cache_sync(v2p->mtt_ram);
    return ok ? HCA_STAT_OK : HCA_STAT_BAD_SEG_PARAM;
}
