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

/* At least as many as there are entries. */
static void add_tags(Srq *srq)
{
    if (srq->entries <= srq->tags) {
        return;
    }
    srq->wr_id = g_renew(uint64_t, srq->wr_id, srq->entries);
    srq->used = g_renew(bool, srq->used, srq->entries);
    for (; srq->tags < srq->entries; srq->tags++) {
        srq->used[srq->tags] = false;
        g_array_append_val(srq->free_tags, srq->tags);
    }
}

static Mr *new_ring(Driver *drv, uint32_t pd, uint32_t srqn, uint64_t len)
{
    return mr_new(drv, pd, UINT64_C(0x8000000000) + srqn * 0x1000000, len, 0);
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
    srq->free_tags = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    add_tags(srq);
    srq->mr = new_ring(drv, config->pd, srqn,
                       (uint64_t)srq->entries << srq->log_entry);
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

/* WQE n is in slot n modulo their number, in both rings. */
static void copy_slots(const Srq *srq, Mr *to, unsigned entries)
{
    uint8_t slot[RDMA_HCA_MAX_RECV_WQE_SIZE];
    uint32_t n = MIN(MIN(entries, srq->entries), srq->head);
    size_t size = (size_t)1 << srq->log_entry;

    for (uint32_t i = srq->head - n; i != srq->head; i++) {
        mr_read(srq->mr, i % srq->entries * size, slot, size);
        mr_write(to, i % entries * size, slot, size);
    }
}

uint8_t srq_resize(Srq *srq, unsigned entries)
{
    uint64_t len = (uint64_t)entries << srq->log_entry;
    Mr *ring = new_ring(srq->drv, srq->mr->pd, srq->srqn, len);
    struct rdma_hca_resize_srq resize = {
        .len = GUINT32_TO_BE(len),
        .lkey = GUINT32_TO_BE(ring->key),
    };
    uint8_t status;

    copy_slots(srq, ring, entries);
    status = driver_cmd_in(srq->drv, RDMA_HCA_CMD_RESIZE_SRQ, &resize,
                           sizeof(resize), srq->srqn, 0);
    if (status) {
        driver_must(mr_deregister(ring));
        return status;
    }
    driver_must(mr_deregister(srq->mr));
    srq->mr = ring;
    srq->entries = entries;
    add_tags(srq);
    return RDMA_HCA_STAT_OK;
}

uint8_t srq_arm(Srq *srq, uint32_t limit)
{
    return driver_cmd(srq->drv, RDMA_HCA_CMD_ARM_SRQ, limit, srq->srqn, 0, 0,
                      NULL);
}

unsigned srq_room(const Srq *srq)
{
    unsigned used = srq->tags - srq->free_tags->len;

    return srq->entries - MIN(used, srq->entries);
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

    if (srq->doubtful && (index >= srq->tags || !srq->used[index])) {
        return 0;
    }
    g_assert_cmphex(index, <, srq->tags);
    /* Never one that has not been posted, nor one twice. */
    g_assert_true(srq->used[index]);
    srq->used[index] = false;
    g_array_append_val(srq->free_tags, index);
    return srq->wr_id[index];
}

void srq_forget(Srq *srq)
{
    for (uint32_t i = 0; i < srq->tags; i++) {
        if (srq->used[i]) {
            srq_complete(srq, SRQ_TAG + i);
        }
    }
}
