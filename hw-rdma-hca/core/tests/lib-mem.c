/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-mem.h"

#include <string.h>

#include "lib-driver-parts.h"

#define RESULT_AT 0 /* where mem_try() has its data, in the side's region */

static void sw2hw_mpt(const Mr *mr, const struct rdma_hca_mpt *mpt)
{
    driver_must(driver_cmd_in(mr->drv, RDMA_HCA_CMD_SW2HW_MPT, mpt,
                              sizeof(*mpt), mr_index(mr), 0));
}

static void sw2hw(const Mr *mr, uint32_t flags, uint64_t length,
                  uint32_t entries)
{
    struct rdma_hca_mpt mpt = good_mpt(mr->key, flags, mr->pd, 0, length,
                                       mr->mtt);

    mpt.mtt_sz = GUINT32_TO_BE(entries);
    sw2hw_mpt(mr, &mpt);
}

static void hw2sw(const Mr *mr)
{
    driver_must(driver_cmd(mr->drv, RDMA_HCA_CMD_HW2SW_MPT, 0, mr_index(mr), 0,
                           0, NULL));
}

void mem_region_renew(Mr *mr)
{
    hw2sw(mr);
    sw2hw(mr,
          RDMA_HCA_MPT_REGION | RDMA_HCA_MPT_MIO | RDMA_HCA_MPT_FAST_REG |
              RDMA_HCA_MPT_FREE,
          0, mr->npages);
}

Mr *mem_region_new(Driver *drv, uint32_t pd, unsigned npages)
{
    Mr *mr = mr_new(drv, pd, 0, (uint64_t)npages * HOST_PAGE_SIZE, 0);

    mem_region_renew(mr);
    return mr;
}

Mr *mem_pieces_new(Driver *drv, uint32_t pd, unsigned npieces)
{
    unsigned entries = 2 * npieces;
    Mr *mr = mr_new(drv, pd, 0, (uint64_t)entries * HOST_PAGE_SIZE, 0);

    hw2sw(mr);
    sw2hw(mr,
          RDMA_HCA_MPT_REGION | RDMA_HCA_MPT_MIO | RDMA_HCA_MPT_FAST_REG |
              RDMA_HCA_MPT_FREE | RDMA_HCA_MPT_PIECES,
          0, entries);
    return mr;
}

void mem_pieces_make_valid(Mr *mr, const MemPiece *piece, unsigned npieces,
                           uint64_t va, uint32_t access)
{
    const uint64_t len = piece[npieces - 1].end;
    struct rdma_hca_mpt mpt = good_mpt(mr->key,
                                       RDMA_HCA_MPT_REGION | RDMA_HCA_MPT_MIO |
                                           RDMA_HCA_MPT_FAST_REG |
                                           RDMA_HCA_MPT_PIECES | access,
                                       mr->pd, va, len, mr->mtt);
    uint64_t *pairs = g_new(uint64_t, 2 * npieces);

    for (unsigned i = 0; i < npieces; i++) {
        pairs[2 * i] = piece[i].bus;
        pairs[2 * i + 1] = piece[i].end;
    }
    hw2sw(mr);
    mtts_write(mr->drv, mr->mtt, pairs, 2 * npieces);
    g_free(pairs);
    mpt.mtt_sz = GUINT32_TO_BE(mr->npages);
    mpt.pieces = GUINT32_TO_BE(npieces);
    sw2hw_mpt(mr, &mpt);
}

Mr *mem_null_new(Driver *drv, uint32_t pd, uint64_t va, uint64_t length)
{
    Mr *mr = mr_new(drv, pd, 0, HOST_PAGE_SIZE, 0);
    struct rdma_hca_mpt mpt = good_mpt(mr->key,
                                       RDMA_HCA_MPT_REGION | RDMA_HCA_MPT_MIO |
                                           RDMA_HCA_MPT_NULL |
                                           RDMA_HCA_ACCESS_LOCAL_WRITE,
                                       pd, va, length, 0);

    hw2sw(mr);
    sw2hw_mpt(mr, &mpt);
    return mr;
}

uint64_t mem_list_new(Driver *drv, const uint64_t *entry, unsigned n)
{
    unsigned npages = (n * sizeof(*entry) + HOST_PAGE_SIZE - 1) /
                      HOST_PAGE_SIZE;
    uint64_t list = host_alloc(drv->host, MAX(npages, 1));

    for (unsigned i = 0; i < n; i++) {
        uint64_t le = GUINT64_TO_LE(entry[i]);

        host_write(drv->host, list + i * sizeof(le), &le, sizeof(le));
    }
    return list;
}

uint64_t mem_piece_list_new(Driver *drv, const MemPiece *piece, unsigned n)
{
    G_STATIC_ASSERT(sizeof(*piece) == 2 * sizeof(uint64_t));
    return mem_list_new(drv, (const uint64_t *)piece, 2 * n);
}

uint32_t mem_next_key(uint32_t key)
{
    return (key & RDMA_HCA_KEY_INDEX) | ((key + 1) & RDMA_HCA_KEY_BYTE);
}

struct rdma_hca_fast_reg_unit *mem_reg_unit(SendWr *wr)
{
    return (void *)wr->unit;
}

struct rdma_hca_bind_unit *mem_bind_unit(SendWr *wr)
{
    return (void *)wr->unit;
}

static SendWr mem_wr(uint8_t opcode, const void *unit, unsigned size)
{
    SendWr wr = {
        .wr_id = 0x3e3,
        .opcode = opcode,
        .flags = SEND_SIGNALED,
        .unit_size = size,
    };

    memcpy(wr.unit, unit, size);
    return wr;
}

#define LOW(v) GUINT32_TO_LE(RDMA_HCA_LO32(v))
#define HIGH(v) GUINT32_TO_LE(RDMA_HCA_HI32(v))

SendWr mem_reg_wr(const Mr *mr, uint64_t list, uint64_t va, uint64_t len,
                  uint32_t access)
{
    struct rdma_hca_fast_reg_unit unit = {
        .access = GUINT32_TO_LE(access),
        .key = GUINT32_TO_LE(mr->key),
        .list_l = LOW(list),
        .list_h = HIGH(list),
        .start_l = LOW(va),
        .start_h = HIGH(va),
        .length_l = LOW(len),
        .length_h = HIGH(len),
        .page_size = GUINT32_TO_LE(mr->page_shift),
        .entries = GUINT32_TO_LE(mr->npages),
    };

    return mem_wr(RDMA_HCA_OPCODE_REG_MR, &unit, sizeof(unit));
}

SendWr mem_reg_pieces_wr(const Mr *mr, uint64_t list, unsigned npieces,
                         uint64_t va, uint64_t len, uint32_t access)
{
    SendWr wr = mem_reg_wr(mr, list, va, len, access);

    mem_reg_unit(&wr)->entries = GUINT32_TO_LE(npieces);
    return wr;
}

SendWr mem_inv_wr(uint32_t key)
{
    struct rdma_hca_inv_unit unit = { .key = GUINT32_TO_LE(key) };

    return mem_wr(RDMA_HCA_OPCODE_LOCAL_INV, &unit, sizeof(unit));
}

SendWr mem_bind_wr(unsigned type, uint32_t rkey, const Mr *mr, uint64_t va,
                   uint64_t len, uint32_t access)
{
    struct rdma_hca_bind_unit unit = {
        .access = GUINT32_TO_LE(access),
        .type = GUINT32_TO_LE(type),
        .rkey = GUINT32_TO_LE(rkey),
        .lkey = GUINT32_TO_LE(mr ? mr->key : 0),
        .addr_l = LOW(va),
        .addr_h = HIGH(va),
        .length_l = LOW(len),
        .length_h = HIGH(len),
    };

    return mem_wr(RDMA_HCA_OPCODE_BIND_MW, &unit, sizeof(unit));
}

SendWr mem_send_inv_wr(uint32_t key)
{
    SendWr wr = mem_wr(RDMA_HCA_OPCODE_SEND_INV, "", 0);

    wr.rkey = key;
    return wr;
}

uint8_t mem_do(Qp *qp, const SendWr *wr, uint8_t syndrome)
{
    Wc wc;

    g_assert_true(qp_post_send(qp, wr, 1));
    cq_expect(qp->send_cq, &wc, wr->wr_id, syndrome);
    g_assert_true(wc.is_send);
    if (!syndrome) {
        g_assert_cmphex(wc.opcode, ==, wr->opcode);
    }
    return wc.vendor_err;
}

void mem_register(Qp *qp, Mr *mr, uint64_t va, uint64_t len, uint32_t access)
{
    uint64_t list = mem_list_new(mr->drv, mr->page, mr->npages);
    SendWr wr;

    mr->key = mem_next_key(mr->key);
    mr->va = va;
    mr->len = len;
    wr = mem_reg_wr(mr, list, va, len, access);
    mem_do(qp, &wr, 0);
}

void mem_invalidate(Qp *qp, const Mr *mr)
{
    SendWr wr = mem_inv_wr(mr->key);

    mem_do(qp, &wr, 0);
}

/* An entry that has no translation. */
static uint8_t entry_new(Driver *drv, uint32_t flags, uint32_t pd,
                         uint64_t start, uint64_t length, uint32_t *key)
{
    guint last = drv->free_mpts->len - 1;
    uint32_t index = g_array_index(drv->free_mpts, uint32_t, last);
    struct rdma_hca_mpt mpt;
    uint8_t status;

    *key = GOOD_KEY(index);
    mpt = good_mpt(*key, flags, pd, start, length, 0);
    status = driver_cmd_in(drv, RDMA_HCA_CMD_SW2HW_MPT, &mpt, sizeof(mpt),
                           index, 0);
    if (!status) {
        g_array_set_size(drv->free_mpts, last);
    }
    return status;
}

uint32_t mem_window_new(Driver *drv, uint32_t pd, unsigned type)
{
    uint32_t key;

    driver_must(
        entry_new(drv, type == 2 ? RDMA_HCA_MPT_WINDOW2 : 0, pd, 0, 0, &key));
    return key;
}

uint8_t mem_dev_mem_new(Driver *drv, uint32_t pd, uint64_t start,
                        uint64_t length, uint32_t access, uint32_t *key)
{
    return entry_new(drv,
                     RDMA_HCA_MPT_REGION | RDMA_HCA_MPT_MIO |
                         RDMA_HCA_MPT_PHYSICAL | RDMA_HCA_MPT_DEV_MEM | access,
                     pd, start, length, key);
}

static uint32_t index_of(const Driver *drv, uint32_t key)
{
    return KEY_INDEX(key, drv->log_mpts);
}

uint8_t mem_window_free(Driver *drv, uint32_t key)
{
    uint32_t index = index_of(drv, key);
    uint8_t status = driver_cmd(drv, RDMA_HCA_CMD_HW2SW_MPT, 0, index, 0, 0,
                                NULL);

    if (!status) {
        g_array_append_val(drv->free_mpts, index);
    }
    return status;
}

uint32_t mem_bind(Qp *qp, unsigned type, uint32_t window, const Mr *mr,
                  uint64_t va, uint64_t len, uint32_t access)
{
    uint32_t key = mem_next_key(window);
    SendWr wr = mem_bind_wr(type, key, mr, va, len, access);

    mem_do(qp, &wr, 0);
    return key;
}

struct rdma_hca_mpt mem_query(Driver *drv, uint32_t key)
{
    struct rdma_hca_mpt mpt;

    driver_must(driver_cmd_out(drv, RDMA_HCA_CMD_QUERY_MPT, &mpt, sizeof(mpt),
                               index_of(drv, key), 0));
    return mpt;
}

bool mem_is_free(Driver *drv, uint32_t key)
{
    struct rdma_hca_mpt mpt = mem_query(drv, key);

    g_assert_cmphex(GUINT32_FROM_BE(mpt.key), ==, key);
    return GUINT32_FROM_BE(mpt.flags) & RDMA_HCA_MPT_FREE;
}

uint32_t mem_windows(Driver *drv, uint32_t key)
{
    struct rdma_hca_mpt mpt = mem_query(drv, key);

    return GUINT32_FROM_BE(mpt.window_count);
}

void mem_try(Pair *pair, Qp *qp, unsigned side, uint8_t opcode, uint32_t rkey,
             uint64_t va, uint32_t len, uint8_t syndrome)
{
    Sge sge;
    SendWr wr = pair_send(pair, side, opcode, 0x717, &sge, RESULT_AT, len, 0);
    Wc wc;

    wr.sge = &sge;
    wr.raddr = va;
    wr.rkey = rkey;
    g_assert_true(qp_post_send(qp, &wr, 1));
    cq_expect(qp->send_cq, &wc, wr.wr_id, syndrome);
}
