/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory that an InfiniHost III Lx gets from its driver: areas for its firmware,
 * of which this card takes no notice; and ICM, one space for all tables, which
 * comes and goes in chunks while the card works. A chunk may be mapped over
 * another one, and an unmapping may run over holes and what lies behind.
 */
#include "../../port/mcast_chains.h"
#include "mthca.h"

/* Pages of 4 KiB that the firmware asks for: one of each, as some drivers map
 * them in any case. */
#define AUX_PAGES 1

/* No HCA-attached memory. */
uint8_t hca_mthca_enable_lam(HcaCeu *ceu, HcaCommand *cmd)
{
    return MTHCA_STAT_LAM_NOT_PRE;
}

static const struct mthca_icm_entry *entries_of(const HcaCommand *cmd)
{
    return (const void *)cmd->inbox;
}

typedef struct Chunk {
    uint64_t virt;
    uint64_t page;
    uint32_t npages;
} Chunk;

/* False: it is not aligned to its size. */
static bool get_chunk(const struct mthca_icm_entry *entry, Chunk *chunk)
{
    uint64_t page = hca_join_be(entry->page_h, entry->page_l);
    unsigned log_pages = page & MTHCA_ICM_LOG_PAGES;
    uint64_t size = UINT64_C(1) << (log_pages + RDMA_HCA_ICM_PAGE_SHIFT);

    *chunk = (Chunk) {
        .virt = hca_join_be(entry->virt_h, entry->virt_l),
        .page = page & ~(uint64_t)((1u << RDMA_HCA_ICM_PAGE_SHIFT) - 1),
        .npages = 1u << log_pages,
    };
    return chunk->virt % size == 0 && chunk->page % size == 0;
}

/* No command maps more than the whole space. */
static bool chunks_ok(const HcaCommand *cmd)
{
    uint64_t pages = 0;
    Chunk chunk;

    for (uint32_t i = 0; i < cmd->in_modifier; i++) {
        if (!get_chunk(&entries_of(cmd)[i], &chunk)) {
            return false;
        }
        pages += chunk.npages;
    }
    return pages <= HCA_ICM_MAX_PAGES;
}

uint8_t hca_mthca_map_area(HcaCeu *ceu, HcaCommand *cmd)
{
    return chunks_ok(cmd) ? HCA_STAT_OK : HCA_STAT_BAD_PARAM;
}

uint8_t hca_mthca_unmap_area(HcaCeu *ceu, HcaCommand *cmd)
{
    return HCA_STAT_OK;
}

uint8_t hca_mthca_set_icm_size(HcaCeu *ceu, HcaCommand *cmd)
{
    if (cmd->in_param > (uint64_t)HCA_ICM_MAX_PAGES << HCA_ICM_PAGE_SHIFT) {
        return HCA_STAT_EXCEED_LIM;
    }
    cmd->out_param = AUX_PAGES;
    return HCA_STAT_OK;
}

/* What is there of a range, in both units that use ICM, goes. */
static uint8_t forget(Hca *hca, uint64_t virt, uint32_t npages)
{
    uint8_t status = hca_v2p_clear_icm(hca->v2p, virt, npages);

    return status ? status : hca_cxtmgt_clear_icm(hca->cm, virt, npages);
}

static uint8_t map(Hca *hca, const Chunk *chunk)
{
    uint8_t status = forget(hca, chunk->virt, chunk->npages);

    if (!status) {
        status = hca_v2p_map_icm(hca->v2p, chunk->virt, chunk->page,
                                 chunk->npages);
    }
    if (!status) {
        status = hca_cxtmgt_map_icm(hca->cm, chunk->virt, chunk->page,
                                    chunk->npages);
    }
    return status;
}

/* Those in front of one that is refused stay, as a new one is no change. */
uint8_t hca_mthca_map_icm(HcaCeu *ceu, HcaCommand *cmd)
{
    uint8_t status = chunks_ok(cmd) ? HCA_STAT_OK : HCA_STAT_BAD_PARAM;

    for (uint32_t i = 0; !status && i < cmd->in_modifier; i++) {
        Chunk chunk;

        get_chunk(&entries_of(cmd)[i], &chunk);
        status = map(ceu->hca, &chunk);
    }
    return status;
}

uint8_t hca_mthca_unmap_icm(HcaCeu *ceu, HcaCommand *cmd)
{
    return forget(ceu->hca, cmd->in_param, cmd->in_modifier);
}

/* INIT_HCA */

static HcaCxtPlace place(__be32 high, __be32 low)
{
    return (HcaCxtPlace) {
        .base = hca_join_be(high, low) & ~(uint64_t)MTHCA_INIT_LOG_NUM,
        .log_num = RDMA_HCA_GET(MTHCA_INIT_LOG_NUM, GUINT32_FROM_BE(low)),
    };
}

/* MTT entries have ICM addresses: their table is the space. */
static uint8_t init_v2p(Hca *hca, const struct mthca_init_hca *init)
{
    return hca_v2p_init(
        hca->v2p, hca_join_be(init->mpt_base_h, init->mpt_base_l),
        RDMA_HCA_GET(MTHCA_INIT_MPT_LOG_NUM, GUINT32_FROM_BE(init->mpt_log_sz)),
        0);
}

/* The results of atomics would lie in another order. */
static bool host_ok(const struct mthca_init_hca *init)
{
    return !(GUINT32_FROM_BE(init->flags2) & MTHCA_INIT_BIG_ENDIAN);
}

/* The logarithm of a UAR page's records, bytes. */
static unsigned uarc_log(const struct mthca_init_hca *init)
{
    return RDMA_HCA_ICM_PAGE_SHIFT +
           RDMA_HCA_GET(MTHCA_INIT_LOG_UARC, GUINT32_FROM_BE(init->uar_sizes));
}

/* All records are in the space. */
static bool uarc_ok(const struct mthca_init_hca *init)
{
    uint64_t space = (uint64_t)HCA_ICM_MAX_PAGES << HCA_ICM_PAGE_SHIFT;
    uint64_t base = hca_join_be(init->uarc_base_h, init->uarc_base_l);

    return base < space && uarc_log(init) <= MTHCA_MAX_LOG_UARC &&
           RDMA_HCA_NUM_UARS <= (space - base) >> uarc_log(init);
}

/* The table of multicast groups, whose entries are this card's own; or none. */
static bool init_groups(Hca *hca, const struct mthca_init_hca *init)
{
    unsigned number = 1u << RDMA_HCA_GET(
                          MTHCA_INIT_MGM_LOG_NUM,
                          GUINT32_FROM_BE(init->mgm_log_table_sz));
    unsigned buckets = RDMA_HCA_GET(MTHCA_INIT_MGM_BUCKETS,
                                    GUINT32_FROM_BE(init->mgm_hash_sz));

    hca_mcast_chains_end(hca->port);
    return !buckets || hca_mcast_chains_begin(hca->port, number, buckets);
}

bool hca_mthca_record(const HcaCeu *ceu, uint32_t uar, uint32_t index,
                      uint64_t *record)
{
    uint64_t size = UINT64_C(1) << ceu->uarc_log;

    *record = ceu->uarc_base + uar * size + (uint64_t)index * MTHCA_RECORD_SIZE;
    /* At 0 there is none, as for the rest of the card. */
    return uar < RDMA_HCA_NUM_UARS && index < size / MTHCA_RECORD_SIZE &&
           *record;
}

uint8_t hca_mthca_init_hca(HcaCeu *ceu, HcaCommand *cmd)
{
    const struct mthca_init_hca *init = (const void *)cmd->inbox;
    HcaCxtPlaces places = {
        .qpc = place(init->qpc_base_h, init->qpc_base_l),
        .cqc = place(init->cqc_base_h, init->cqc_base_l),
        .eqc = place(init->eqc_base_h, init->eqc_base_l),
        .srqc = place(init->srqc_base_h, init->srqc_base_l),
    };
    Hca *hca = ceu->hca;
    uint8_t status;

    /* Some drivers have room for more EQs than they were told of. */
    places.eqc.log_num = MIN(places.eqc.log_num, hca->config.log_eqs);
    if (!host_ok(init) || !uarc_ok(init) || !init_groups(hca, init)) {
        return HCA_STAT_BAD_PARAM;
    }
    status = init_v2p(hca, init);
    if (status) {
        return status;
    }
    status = hca_cxtmgt_init(hca->cm, &places);
    if (status) {
        hca_v2p_close(hca->v2p);
        return status;
    }
    ceu->initialised = true;
    ceu->uarc_base = hca_join_be(init->uarc_base_h, init->uarc_base_l);
    ceu->uarc_log = uarc_log(init);
    return HCA_STAT_OK;
}
