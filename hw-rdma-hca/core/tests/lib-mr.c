/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-driver-parts.h"

#include <string.h>

uint32_t pd_new(Driver *drv)
{
    return drv->next_pd++;
}

static uint32_t mtt_alloc(Driver *drv, uint32_t count)
{
    for (guint i = 0; i < drv->free_mtts->len; i++) {
        MttRange *range = &g_array_index(drv->free_mtts, MttRange, i);
        uint32_t first = range->first;

        if (range->count >= count) {
            range->first += count;
            range->count -= count;
            if (!range->count) {
                g_array_remove_index(drv->free_mtts, i);
            }
            return first;
        }
    }
    g_error("out of MTT entries");
}

void mtts_write(Driver *drv, uint32_t index, const uint64_t *entry,
                unsigned count)
{
    struct rdma_hca_mtt_mailbox *mbox = g_malloc0(RDMA_HCA_MAILBOX_SIZE);

    for (unsigned done = 0; done < count;) {
        unsigned n = MIN(count - done, RDMA_HCA_MTT_MAX_ENTRIES);

        mbox->start_index_h = 0;
        mbox->start_index_l = GUINT32_TO_BE(index + done);
        for (unsigned i = 0; i < n; i++) {
            uint64_t value = entry[done + i];

            mbox->entry[RDMA_HCA_MTT_SLOT(i)].addr_h = GUINT32_TO_BE(
                RDMA_HCA_HI32(value));
            mbox->entry[RDMA_HCA_MTT_SLOT(i)].addr_l = GUINT32_TO_BE(
                RDMA_HCA_LO32(value));
        }
        driver_must(driver_cmd_in(drv, RDMA_HCA_CMD_WRITE_MTT, mbox,
                                  RDMA_HCA_MAILBOX_SIZE, n, 0));
        done += n;
    }
    g_free(mbox);
}

uint32_t mr_index(const Mr *mr)
{
    return KEY_INDEX(mr->key, mr->drv->log_mpts);
}

static uint32_t access_flags(uint32_t access)
{
    return (access & ~RDMA_HCA_ACCESS_FLUSH) |
           RDMA_HCA_PREP(RDMA_HCA_MPT_FLUSH,
                         RDMA_HCA_GET(RDMA_HCA_ACCESS_FLUSH, access));
}

static void write_mpt(Mr *mr, uint32_t access)
{
    struct rdma_hca_mpt mpt = good_mpt(
        mr->key, RDMA_HCA_MPT_MIO | RDMA_HCA_MPT_REGION | access_flags(access),
        mr->pd, mr->va, mr->len, mr->mtt);

    mpt.page_size = GUINT32_TO_BE(mr->page_shift - RDMA_HCA_MPT_PAGE_SHIFT_MIN);
    mpt.mtt_sz = GUINT32_TO_BE(mr->npages);
    driver_must(driver_cmd_in(mr->drv, RDMA_HCA_CMD_SW2HW_MPT, &mpt,
                              sizeof(mpt), mr_index(mr), 0));
}

/* A key of entry @index that it has not had for long: laps are counted in the
 * consumer's byte and above the index. */
static uint32_t mr_new_key(Driver *drv, uint32_t index)
{
    uint32_t lap = drv->generation++;

    return (lap >> 8 << drv->log_mpts | index) << 8 | (lap & RDMA_HCA_KEY_BYTE);
}

/* @repeated: all pages are the same one. */
static Mr *mr_make(Driver *drv, uint32_t pd, uint64_t va, uint64_t len,
                   uint32_t access, unsigned page_shift, bool repeated)
{
    uint64_t page_size = UINT64_C(1) << page_shift;
    Mr *mr = g_new0(Mr, 1);
    guint last = drv->free_mpts->len - 1;

    g_assert_cmpuint(drv->free_mpts->len, >, 0);
    mr->drv = drv;
    mr->key = mr_new_key(drv, g_array_index(drv->free_mpts, uint32_t, last));
    g_array_set_size(drv->free_mpts, last);
    mr->pd = pd;
    mr->va = va;
    mr->len = len;
    mr->page_shift = page_shift;
    mr->npages = ((va & (page_size - 1)) + len + page_size - 1) >> page_shift;
    mr->npages = MAX(mr->npages, 1);
    mr->page = g_new(uint64_t, mr->npages);
    for (unsigned i = 0; i < mr->npages; i++) {
        mr->page[i] = repeated && i
                          ? mr->page[0]
                          : host_alloc(drv->host, page_size / HOST_PAGE_SIZE);
    }
    mr->mtt = mtt_alloc(drv, mr->npages);
    mr->registered = true;
    g_ptr_array_add(drv->mrs, mr);
    mtts_write(mr->drv, mr->mtt, mr->page, mr->npages);
    write_mpt(mr, access);
    return mr;
}

Mr *mr_new_pages(Driver *drv, uint32_t pd, uint64_t va, uint64_t len,
                 uint32_t access, unsigned page_shift)
{
    return mr_make(drv, pd, va, len, access, page_shift, false);
}

Mr *mr_new_repeated(Driver *drv, uint32_t pd, uint64_t va, uint64_t len,
                    uint32_t access)
{
    return mr_make(drv, pd, va, len, access, 16, true);
}

Mr *mr_new(Driver *drv, uint32_t pd, uint64_t va, uint64_t len, uint32_t access)
{
    return mr_new_pages(drv, pd, va, len, access, 12);
}

uint8_t mr_deregister(Mr *mr)
{
    MttRange range = { mr->mtt, mr->npages };
    uint32_t index = mr_index(mr);
    uint8_t status = driver_cmd(mr->drv, RDMA_HCA_CMD_HW2SW_MPT, 0, index, 0, 0,
                                NULL);

    if (status == RDMA_HCA_STAT_OK) {
        mr->registered = false;
        g_array_append_val(mr->drv->free_mpts, index);
        g_array_append_val(mr->drv->free_mtts, range);
    }
    return status;
}

uint64_t mr_bus(const Mr *mr, uint64_t offset)
{
    uint64_t page_size = UINT64_C(1) << mr->page_shift;
    uint64_t at = (mr->va & (page_size - 1)) + offset;

    g_assert_cmpuint(offset, <=, mr->len);
    return mr->page[at >> mr->page_shift] + (at & (page_size - 1));
}

/* How much of @len bytes at @offset lies in one page. */
static size_t in_page(const Mr *mr, uint64_t offset, size_t len)
{
    uint64_t page_size = UINT64_C(1) << mr->page_shift;

    return MIN(len, page_size - ((mr->va + offset) & (page_size - 1)));
}

void mr_read(Mr *mr, uint64_t offset, void *buf, size_t len)
{
    g_assert_cmpuint(len, <=, mr->len - offset);
    for (size_t n; len; offset += n, buf = (uint8_t *)buf + n, len -= n) {
        n = in_page(mr, offset, len);
        host_read(mr->drv->host, mr_bus(mr, offset), buf, n);
    }
}

void mr_write(Mr *mr, uint64_t offset, const void *buf, size_t len)
{
    g_assert_cmpuint(len, <=, mr->len - offset);
    for (size_t n; len; offset += n, buf = (const uint8_t *)buf + n, len -= n) {
        n = in_page(mr, offset, len);
        host_write(mr->drv->host, mr_bus(mr, offset), buf, n);
    }
}

void mr_fill(Mr *mr, uint64_t offset, int byte, size_t len)
{
    g_assert_cmpuint(len, <=, mr->len - offset);
    for (size_t n; len; offset += n, len -= n) {
        n = in_page(mr, offset, len);
        host_fill(mr->drv->host, mr_bus(mr, offset), byte, n);
    }
}

Sge mr_sge(const Mr *mr, uint64_t offset, uint32_t len)
{
    return (Sge) { .va = mr->va + offset, .len = len, .lkey = mr->key };
}

/* A 32-bit doorbell record. */
uint64_t record_new(Driver *drv)
{
    if (!drv->record_page || drv->record_at == HOST_PAGE_SIZE) {
        drv->record_page = host_alloc(drv->host, 1);
        drv->record_at = 0;
    }
    drv->record_at += 8;
    return drv->record_page + drv->record_at - 8;
}
