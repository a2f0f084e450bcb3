/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * HostOp (VirtToPhys document 5.4): DMA of tables, WQEs and data; and device
 * memory, which the document does not have.
 *
 * The document's seven DMA channels are independent so that none blocks
 * another; here every one is a copy from or to mapped memory that ends before
 * the next begins, and only the counting tells them apart.
 */
#include <glib.h>
#include <string.h>

#include "v2p_int.h"

/*
 * What a region's entry said of its place has been checked; but the entry has
 * been in the guest's reach since.
 */
static void *map_dev_mem(HcaV2p *v2p, uint64_t offset, uint64_t *len)
{
    if (offset >= v2p->dev_mem_size) {
        return NULL;
    }
    *len = MIN(*len, v2p->dev_mem_size - offset);
    return v2p->dev_mem + offset;
}

static void *map(HcaV2p *v2p, HcaPlace at, uint64_t *len, bool is_write)
{
    return at.dev_mem ? map_dev_mem(v2p, at.addr, len)
                      : v2p->ops->dma_map(v2p->opaque, at.addr, len, is_write);
}

static void wrote(HcaV2p *v2p, HcaPlace at, uint64_t len)
{
    if (at.dev_mem) {
        v2p->ops->dev_mem_written(v2p->opaque, at.addr, len);
        v2p->counters.dev_mem_write_bytes += len;
    } else {
        v2p->ops->dma_written(v2p->opaque, at.addr, len);
        v2p->counters.writes[v2p->channel]++;
        v2p->counters.write_bytes[v2p->channel] += len;
    }
}

/* Whether @len bytes at @bus end before the last bus address does. */
static bool fits(uint64_t bus, uint64_t len)
{
    return !len || len - 1 <= UINT64_MAX - bus;
}

void *hca_host_map(HcaV2p *v2p, HcaPlace at, uint64_t *len)
{
    return map(v2p, at, len, false);
}

void hca_host_mapped(HcaV2p *v2p, bool dev_mem, unsigned n, uint64_t len)
{
    if (dev_mem) {
        v2p->counters.dev_mem_read_bytes += len;
    } else {
        v2p->counters.reads[v2p->channel] += n;
        v2p->counters.read_bytes[v2p->channel] += len;
    }
}

bool hca_host_read(HcaV2p *v2p, HcaPlace at, void *buf, uint64_t len)
{
    uint8_t *to = buf;

    while (len) {
        uint64_t piece = len;
        const void *from = map(v2p, at, &piece, false);

        if (!from) {
            return false;
        }
        memcpy(to, from, piece);
        hca_host_mapped(v2p, at.dev_mem, 1, piece);
        to += piece;
        at.addr += piece;
        len -= piece;
    }
    return true;
}

bool hca_host_write(HcaV2p *v2p, HcaPlace at, const void *buf, uint64_t len)
{
    const uint8_t *from = buf;

    while (len) {
        uint64_t piece = len;
        void *to = map(v2p, at, &piece, true);

        if (!to) {
            return false;
        }
        memcpy(to, from, piece);
        wrote(v2p, at, piece);
        from += piece;
        at.addr += piece;
        len -= piece;
    }
    return true;
}

bool hca_host_write_entry(HcaV2p *v2p, HcaPlace at, const void *entry,
                          uint32_t len)
{
    const uint8_t *from = entry;
    uint32_t body = len - sizeof(uint32_t);
    uint64_t piece = len;
    uint8_t *to = map(v2p, at, &piece, true);
    uint32_t last;

    if (!to) {
        return false;
    }
    if (piece < len || ((uintptr_t)to + body) % sizeof(last)) {
        /* In two pieces of memory, or not aligned as entries are. */
        if (!hca_host_write(v2p, at, entry, body)) {
            return false;
        }
        __atomic_thread_fence(__ATOMIC_RELEASE);
        at.addr += body;
        return hca_host_write(v2p, at, from + body, sizeof(last));
    }
    memcpy(to, from, body);
    memcpy(&last, from + body, sizeof(last));
    __atomic_store_n((uint32_t *)(to + body), last, __ATOMIC_RELEASE);
    wrote(v2p, at, len);
    return true;
}

uint64_t *hca_host_map_atomic(HcaV2p *v2p, HcaPlace at)
{
    uint64_t len = sizeof(uint64_t);
    void *p = map(v2p, at, &len, true);

    if (!p || len < sizeof(uint64_t) || (uintptr_t)p % sizeof(uint64_t)) {
        return NULL;
    }
    return p;
}

void hca_host_wrote_atomic(HcaV2p *v2p, HcaPlace at)
{
    wrote(v2p, at, sizeof(uint64_t));
}

bool hca_dma_writable(HcaV2p *v2p, uint64_t addr, uint32_t len)
{
    if (!fits(addr, len)) {
        return false;
    }
    while (len) {
        uint64_t piece = len;

        if (!map(v2p, hca_on_bus(addr), &piece, true)) {
            return false;
        }
        addr += piece;
        len -= piece;
    }
    return true;
}

bool hca_dma_read(HcaV2p *v2p, HcaV2pChannel channel, uint64_t addr, void *buf,
                  uint32_t len)
{
    hca_v2p_select(v2p, channel);
    return fits(addr, len) && hca_host_read(v2p, hca_on_bus(addr), buf, len);
}

bool hca_dma_write(HcaV2p *v2p, HcaV2pChannel channel, uint64_t addr,
                   const void *buf, uint32_t len)
{
    hca_v2p_select(v2p, channel);
    return fits(addr, len) && hca_host_write(v2p, hca_on_bus(addr), buf, len);
}
