/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-driver-parts.h"

#include <string.h>

void srq_config_init(SrqConfig *config, uint32_t pd)
{
    *config = (SrqConfig) { .pd = pd, .entries = 64, .log_entry = 7 };
}

void srq_config_xrc(SrqConfig *config, Cq *cq, uint32_t xrcd)
{
    config->xrc = true;
    config->cq = cq;
    config->xrcd = xrcd;
}

static uint8_t give_to_card(Srq *srq, const SrqConfig *config)
{
    struct rdma_hca_srqc srqc = good_srqc(config->pd, srq->mr->key,
                                          srq->entries << srq->log_entry,
                                          srq->log_entry, srq->record);

    if (srq->xrc) {
        srqc.flags |= GUINT32_TO_BE(RDMA_HCA_SRQC_XRC);
        srqc.cqn = GUINT32_TO_BE(srq->cq->cqn);
        srqc.xrcd = GUINT32_TO_BE(srq->xrcd);
    }
    return driver_cmd_in(srq->drv, RDMA_HCA_CMD_SW2HW_SRQ, &srqc, sizeof(srqc),
                         srq->srqn, 0);
}

/* Any number of entries will do: a place is counted in bytes. */
Srq *srq_new_number(Driver *drv, const SrqConfig *config, uint32_t srqn)
{
    Srq *srq = g_new0(Srq, 1);

    srq->drv = drv;
    srq->srqn = srqn;
    srq->log_entry = config->log_entry;
    srq->entries = config->entries;
    srq->record = record_new(drv);
    srq->xrc = config->xrc;
    srq->cq = config->cq;
    srq->xrcd = config->xrcd;
    srq->wr_id = g_new0(uint64_t, srq->entries);
    srq->used = g_new0(bool, srq->entries);
    srq->free_tags = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (uint32_t i = 0; i < srq->entries; i++) {
        g_array_append_val(srq->free_tags, i);
    }
    srq->mr = mr_new(drv, config->pd, UINT64_C(0x8000000000) + srqn * 0x1000000,
                     (uint64_t)srq->entries << srq->log_entry, 0);
    g_assert_null(g_hash_table_lookup(drv->srqs, GUINT_TO_POINTER(srqn)));
    driver_must(give_to_card(srq, config));
    g_hash_table_insert(drv->srqs, GUINT_TO_POINTER(srqn), srq);
    return srq;
}

Srq *srq_new(Driver *drv, const SrqConfig *config)
{
    return srq_new_number(drv, config, drv->next_srqn++);
}

void srq_free(Srq *srq)
{
    g_array_free(srq->free_tags, TRUE);
    g_free(srq->used);
    g_free(srq->wr_id);
    g_free(srq);
}

uint8_t srq_destroy(Srq *srq)
{
    uint8_t status = driver_cmd(srq->drv, RDMA_HCA_CMD_HW2SW_SRQ, 0, srq->srqn,
                                0, 0, NULL);

    if (status == RDMA_HCA_STAT_OK) {
        if (srq->mr->registered) {
            driver_must(mr_deregister(srq->mr));
        }
        g_hash_table_remove(srq->drv->srqs, GUINT_TO_POINTER(srq->srqn));
        srq_free(srq);
    }
    return status;
}

uint8_t srq_query(Srq *srq, struct rdma_hca_srqc *srqc)
{
    return driver_cmd_out(srq->drv, RDMA_HCA_CMD_QUERY_SRQ, srqc, sizeof(*srqc),
                          srq->srqn, 0);
}

uint8_t srq_arm(Srq *srq, uint32_t limit)
{
    return driver_cmd(srq->drv, RDMA_HCA_CMD_ARM_SRQ, limit, srq->srqn, 0, 0,
                      NULL);
}

unsigned srq_room(const Srq *srq)
{
    return srq->free_tags->len;
}

/* Any tag that is free, so that nobody can take it for a place. */
static uint32_t tag_alloc(Srq *srq)
{
    GArray *free = srq->free_tags;
    guint at = g_rand_int_range(srq->drv->host->lab->rand, 0, free->len);
    uint32_t tag = g_array_index(free, uint32_t, at);

    g_array_remove_index_fast(free, at);
    g_assert_false(srq->used[tag]);
    srq->used[tag] = true;
    return tag;
}

static void write_wqe(Srq *srq, const RecvWr *wr)
{
    uint32_t tag = tag_alloc(srq);
    uint64_t at = (uint64_t)(srq->head++ % srq->entries) << srq->log_entry;
    uint32_t next = srq->head % srq->entries << srq->log_entry;
    GByteArray *wqe = build_recv(wr, 1u << srq->log_entry, next, SRQ_TAG + tag);

    srq->wr_id[tag] = wr->wr_id;
    mr_write(srq->mr, at, wqe->data, wqe->len);
    g_byte_array_unref(wqe);
}

bool srq_post(Srq *srq, const RecvWr *wr, unsigned n)
{
    if (n > srq_room(srq)) {
        return false;
    }
    for (unsigned i = 0; i < n; i++) {
        write_wqe(srq, &wr[i]);
    }
    host_write_le32(srq->drv->host, srq->record, srq->head & 0xffff);
    return true;
}

uint64_t srq_complete(Srq *srq, uint32_t tag)
{
    uint32_t index = tag - SRQ_TAG;

    g_assert_cmphex(index, <, srq->entries);
    /* Never one that has not been posted, nor one twice. */
    g_assert_true(srq->used[index]);
    srq->used[index] = false;
    g_array_append_val(srq->free_tags, index);
    return srq->wr_id[index];
}

void srq_forget(Srq *srq)
{
    for (uint32_t i = 0; i < srq->entries; i++) {
        if (srq->used[i]) {
            srq_complete(srq, SRQ_TAG + i);
        }
    }
}
