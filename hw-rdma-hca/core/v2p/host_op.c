/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * HostOp (VirtToPhys document 5.4): DMA of tables, WQEs and data.
 *
 * The document's seven DMA channels are independent so that none blocks
 * another; here every one is a copy from or to mapped memory that ends before
 * the next begins, and only the counting tells them apart.
 */
#include <glib.h>
#include <string.h>

#include "v2p_int.h"

static void *map(HcaV2p *v2p, uint64_t bus, uint64_t *len, bool is_write)
{
    return v2p->ops->dma_map(v2p->opaque, bus, len, is_write);
}

static void wrote(HcaV2p *v2p, uint64_t bus, uint64_t len)
{
    v2p->ops->dma_written(v2p->opaque, bus, len);
    v2p->counters.writes[v2p->channel]++;
    v2p->counters.write_bytes[v2p->channel] += len;
}

/* Whether @len bytes at @bus end before the last bus address does. */
static bool fits(uint64_t bus, uint64_t len)
{
    return !len || len - 1 <= UINT64_MAX - bus;
}

bool hca_host_read(HcaV2p *v2p, uint64_t bus, void *buf, uint64_t len)
{
    uint8_t *to = buf;

    while (len) {
        uint64_t piece = len;
        const void *from = map(v2p, bus, &piece, false);

        if (!from) {
            return false;
        }
        memcpy(to, from, piece);
        v2p->counters.reads[v2p->channel]++;
        v2p->counters.read_bytes[v2p->channel] += piece;
        to += piece;
        bus += piece;
        len -= piece;
    }
    return true;
}

bool hca_host_write(HcaV2p *v2p, uint64_t bus, const void *buf, uint64_t len)
{
    const uint8_t *from = buf;

    while (len) {
        uint64_t piece = len;
        void *to = map(v2p, bus, &piece, true);

        if (!to) {
            return false;
        }
        memcpy(to, from, piece);
        wrote(v2p, bus, piece);
        from += piece;
        bus += piece;
        len -= piece;
    }
    return true;
}

bool hca_host_write_entry(HcaV2p *v2p, uint64_t bus, const void *entry,
                          uint32_t len)
{
    const uint8_t *from = entry;
    uint32_t body = len - sizeof(uint32_t);
    uint64_t piece = len;
    uint8_t *to = map(v2p, bus, &piece, true);
    uint32_t last;

    if (!to) {
        return false;
    }
    if (piece < len || ((uintptr_t)to + body) % sizeof(last)) {
        /* In two pieces of memory, or not aligned as entries are. */
        if (!hca_host_write(v2p, bus, entry, body)) {
            return false;
        }
        __atomic_thread_fence(__ATOMIC_RELEASE);
        return hca_host_write(v2p, bus + body, from + body, sizeof(last));
    }
    memcpy(to, from, body);
    memcpy(&last, from + body, sizeof(last));
    __atomic_store_n((uint32_t *)(to + body), last, __ATOMIC_RELEASE);
    wrote(v2p, bus, len);
    return true;
}

uint64_t *hca_host_map_atomic(HcaV2p *v2p, uint64_t bus)
{
    uint64_t len = sizeof(uint64_t);
    void *p = map(v2p, bus, &len, true);

    if (!p || len < sizeof(uint64_t) || (uintptr_t)p % sizeof(uint64_t)) {
        return NULL;
    }
    return p;
}

void hca_host_wrote_atomic(HcaV2p *v2p, uint64_t bus)
{
    wrote(v2p, bus, sizeof(uint64_t));
}

bool hca_dma_writable(HcaV2p *v2p, uint64_t addr, uint32_t len)
{
    if (!fits(addr, len)) {
        return false;
    }
    while (len) {
        uint64_t piece = len;

        if (!map(v2p, addr, &piece, true)) {
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
    return fits(addr, len) && hca_host_read(v2p, addr, buf, len);
}

bool hca_dma_write(HcaV2p *v2p, HcaV2pChannel channel, uint64_t addr,
                   const void *buf, uint32_t len)
{
    hca_v2p_select(v2p, channel);
    return fits(addr, len) && hca_host_write(v2p, addr, buf, len);
}
