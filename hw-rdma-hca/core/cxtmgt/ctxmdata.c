/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ctxmdata and writectx (context document 5.3, 5.6): where a context lies in
 * ICM, and its writing.
 *
 * Departures. The store is VirtToPhys's (tptmdata.c), one for the three
 * tables. There is no readctx (5.5): all that a context holds is in the key
 * data, so the card never has to believe what the guest could have written
 * over it. The engines' PSNs are written when the state changes, not with
 * every packet; QUERY_QP has them live.
 */
#include "cxtmgt_int.h"

uint8_t hca_cxtmgt_map_icm(HcaCxtMgt *cm, uint64_t virt, uint64_t page,
                           uint32_t npages)
{
    return hca_mdata_map(cm->ctxmdata, virt, page, npages);
}

uint8_t hca_cxtmgt_unmap_icm(HcaCxtMgt *cm, uint64_t virt, uint32_t npages)
{
    return hca_mdata_unmap(cm->ctxmdata, virt, npages);
}

uint8_t hca_cxtmgt_clear_icm(HcaCxtMgt *cm, uint64_t virt, uint32_t npages)
{
    return hca_mdata_clear_range(cm->ctxmdata, virt, npages);
}

static bool find_place(HcaCxtMgt *cm, const HcaCxtTable *table, uint32_t index,
                       uint64_t *bus)
{
    uint32_t mask = (1u << table->log_num) - 1;
    uint64_t virt = table->base + (uint64_t)(index & mask) * table->entry_size;

    return hca_mdata_lookup(cm->ctxmdata, virt, bus);
}

bool hca_cxt_writable(HcaCxtMgt *cm, const HcaCxtTable *table, uint32_t index)
{
    uint64_t bus;
    bool ok = find_place(cm, table, index, &bus) &&
              hca_dma_writable(cm->v2p, bus, table->entry_size);

    cm->counters.icm_write_errors += !ok;
    return ok;
}

bool hca_cxt_write(HcaCxtMgt *cm, const HcaCxtTable *table, uint32_t index,
                   const void *cxt)
{
    uint64_t bus;

    if (!find_place(cm, table, index, &bus) ||
        !hca_dma_write_ctx(cm->v2p, bus, cxt, table->entry_size)) {
        cm->counters.icm_write_errors++;
        return false;
    }
    cm->counters.icm_writes++;
    return true;
}
