/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * HostOp (VirtToPhys document 5.4): DMA of tables, WQEs and data; and device
 * memory, which the document does not have.
 *
 * The document's seven DMA channels are independent so that none blocks
 * another; here every one is a copy from or to mapped memory. What comes or
 * arrives late (host_channels.c) is copied when its time has come. So only the
 * counting, and faults, tell them apart.
 */
#include <glib.h>
#include <string.h>

#include "../fault/host_faults.h"
#include "v2p_int.h"

/* Faults */

static const HcaFaultRule *find_fault(HcaV2p *v2p, HcaFaultAction action,
                                      HcaV2pChannel unit, bool ctx,
                                      bool is_write, uint64_t bus, uint64_t len)
{
    HcaFaultSubject subject = {
        .place = HCA_FAULT_DMA,
        .actions = 1u << action,
        .unit = unit,
        .addr = bus,
        .len = len,
    };

    G_STATIC_ASSERT(HCA_FAULT_NUNITS == HCA_V2P_NCHANNELS);
    if (ctx) {
        subject.channel = is_write ? HCA_FAULT_WRITE_CTX : HCA_FAULT_READ_CTX;
    } else if (is_write) {
        subject.channel = HCA_FAULT_WRITE_DATA;
    } else {
        subject.channel = hca_v2p_reads_wqes(unit) ? HCA_FAULT_READ_WQE
                                                   : HCA_FAULT_READ_DATA;
    }
    return hca_host_faults_judge(v2p->faults, &subject);
}

/* Whether the host refuses @len bytes at @at. It never has device memory. */
static inline bool fails(HcaV2p *v2p, HcaPlace at, uint64_t len, bool is_write)
{
    return hca_host_faults_at(v2p->faults, HCA_FAULT_DMA) && !at.dev_mem &&
           !v2p->peeking &&
           find_fault(v2p, HCA_FAULT_FAIL, v2p->channel, v2p->ctx, is_write,
                      at.addr, len);
}

uint64_t hca_dma_delay(HcaV2p *v2p, HcaV2pChannel channel, bool ctx,
                       bool is_write, uint64_t bus, uint64_t len)
{
    const HcaFaultRule *rule = NULL;

    if (hca_host_faults_at(v2p->faults, HCA_FAULT_DMA)) {
        rule = find_fault(v2p, HCA_FAULT_DELAY, channel, ctx, is_write, bus,
                          len);
    }
    return rule ? rule->delay_ns : 0;
}

/* Memory */

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
                      : v2p->host.ops->dma_map(v2p->host.opaque, at.addr, len,
                                               is_write);
}

static void wrote(HcaV2p *v2p, HcaPlace at, uint64_t len)
{
    if (at.dev_mem) {
        v2p->host.ops->dev_mem_written(v2p->host.opaque, at.addr, len);
        v2p->counters.dev_mem_write_bytes += len;
    } else {
        v2p->host.ops->dma_written(v2p->host.opaque, at.addr, len);
        v2p->counters.writes[v2p->channel]++;
        v2p->counters.write_bytes[v2p->channel] += len;
    }
}

/* Whether @len bytes at @bus end before the last bus address does. */
static bool fits(uint64_t bus, uint64_t len)
{
    return !len || len - 1 <= UINT64_MAX - bus;
}

/* What is on its way to @len bytes at @at is there before they are looked at. */
static void settle(HcaV2p *v2p, HcaPlace at, uint64_t len)
{
    if (v2p->posted) {
        hca_posted_settle(v2p, at, len);
    }
}

void *hca_host_map(HcaV2p *v2p, HcaPlace at, uint64_t *len)
{
    if (fails(v2p, at, *len, false)) {
        return NULL;
    }
    settle(v2p, at, *len);
    return map(v2p, at, len, false);
}

void hca_host_mapped(HcaV2p *v2p, bool dev_mem, unsigned n, uint64_t len)
{
    if (v2p->peeking) {
        return;
    }
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

    if (fails(v2p, at, len, false)) {
        return false;
    }
    settle(v2p, at, len);
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

static bool write_now(HcaV2p *v2p, HcaPlace at, const void *buf, uint64_t len)
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

static bool write_entry_now(HcaV2p *v2p, HcaPlace at, const void *entry,
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
        if (!write_now(v2p, at, entry, body)) {
            return false;
        }
        __atomic_thread_fence(__ATOMIC_RELEASE);
        at.addr += body;
        return write_now(v2p, at, from + body, sizeof(last));
    }
    memcpy(to, from, body);
    memcpy(&last, from + body, sizeof(last));
    __atomic_store_n((uint32_t *)(to + body), last, __ATOMIC_RELEASE);
    wrote(v2p, at, len);
    return true;
}

bool hca_host_write_now(HcaV2p *v2p, HcaPlace at, const void *buf, uint64_t len,
                        bool entry)
{
    return entry ? write_entry_now(v2p, at, buf, len)
                 : write_now(v2p, at, buf, len);
}

/* Whether there is memory for all of it. */
static bool writable(HcaV2p *v2p, HcaPlace at, uint64_t len)
{
    while (len) {
        uint64_t piece = len;

        if (!map(v2p, at, &piece, true)) {
            return false;
        }
        at.addr += piece;
        len -= piece;
    }
    return true;
}

static bool write_late(HcaV2p *v2p, HcaPlace at, const void *buf, uint64_t len,
                       bool entry)
{
    if (len > HCA_POSTED_BYTES) {
        hca_v2p_settle(v2p);
        return hca_host_write_now(v2p, at, buf, len, entry);
    }
    if (!writable(v2p, at, len)) {
        return false;
    }
    hca_posted_put(v2p, at, buf, len, entry);
    return true;
}

bool hca_host_write(HcaV2p *v2p, HcaPlace at, const void *buf, uint64_t len)
{
    if (fails(v2p, at, len, true)) {
        return false;
    }
    return v2p->posted ? write_late(v2p, at, buf, len, false)
                       : write_now(v2p, at, buf, len);
}

bool hca_host_write_entry(HcaV2p *v2p, HcaPlace at, const void *entry,
                          uint32_t len)
{
    if (fails(v2p, at, len, true)) {
        return false;
    }
    return v2p->posted ? write_late(v2p, at, entry, len, true)
                       : write_entry_now(v2p, at, entry, len);
}

uint64_t *hca_host_map_atomic(HcaV2p *v2p, HcaPlace at)
{
    uint64_t len = sizeof(uint64_t);
    void *p;

    if (fails(v2p, at, len, true)) {
        return NULL;
    }
    hca_v2p_settle(v2p); /* it does not overtake what was written before */
    p = map(v2p, at, &len, true);
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
    return fits(addr, len) && writable(v2p, hca_on_bus(addr), len);
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

bool hca_dma_write_ctx(HcaV2p *v2p, uint64_t addr, const void *buf,
                       uint32_t len)
{
    bool ok;

    v2p->ctx = true;
    ok = hca_dma_write(v2p, HCA_V2P_CEU, addr, buf, len);
    v2p->ctx = false;
    return ok;
}

bool hca_host_read_line(HcaV2p *v2p, uint64_t bus, void *line)
{
    bool ok;

    v2p->ctx = true;
    ok = hca_host_read(v2p, hca_on_bus(bus), line, HCA_TPT_LINE);
    v2p->ctx = false;
    return ok;
}

bool hca_host_write_line(HcaV2p *v2p, uint64_t bus, const void *line)
{
    bool ok;

    v2p->ctx = true;
    ok = hca_host_write(v2p, hca_on_bus(bus), line, HCA_TPT_LINE);
    v2p->ctx = false;
    return ok;
}
