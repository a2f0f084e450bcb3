/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "lib-ram.h"

static bool in_ram(uint64_t bus)
{
    return bus >= RAM_BASE && bus - RAM_BASE < RAM_SIZE;
}

static void *dma_map(void *opaque, uint64_t addr, uint64_t *len, bool is_write)
{
    Ram *ram = opaque;
    uint64_t offset = addr - RAM_BASE;

    g_assert_cmpuint(*len, >, 0);
    if (!in_ram(addr) || (is_write && offset < RAM_PAGE)) {
        return NULL;
    }
    *len = MIN(*len, ram->piece - offset % ram->piece);
    *len = MIN(*len, RAM_SIZE - offset);
    return ram->bytes + offset;
}

static void dma_written(void *opaque, uint64_t addr, uint64_t len)
{
    Ram *ram = opaque;

    g_assert_true(in_ram(addr) && len && in_ram(addr + len - 1));
    for (uint64_t page = (addr - RAM_BASE) / RAM_PAGE;
         page <= (addr + len - 1 - RAM_BASE) / RAM_PAGE; page++) {
        ram->dirty[page] = 1;
    }
}

static void msix_notify(void *opaque, unsigned vector)
{
    Ram *ram = opaque;

    if (vector < RAM_VECTORS) {
        ram->msix[vector]++;
    } else {
        ram->msix_bad++;
    }
}

static int64_t clock_ns(void *opaque)
{
    return ((Ram *)opaque)->now;
}

static void timer_mod(void *opaque, int64_t deadline_ns)
{
}

static ssize_t link_writev(void *opaque, const struct iovec *iov, int iovcnt)
{
    return -11; /* EAGAIN: there is no cable */
}

static ssize_t link_readv(void *opaque, const struct iovec *iov, int iovcnt)
{
    return -11;
}

static void warn(void *opaque, const char *message)
{
    g_test_message("%s", message);
}

Ram *ram_new(void)
{
    Ram *ram = g_new0(Ram, 1);

    ram->ops = (HcaHostOps) {
        .dma_map = dma_map,
        .dma_written = dma_written,
        .msix_notify = msix_notify,
        .clock_ns = clock_ns,
        .timer_mod = timer_mod,
        .link_writev = link_writev,
        .link_readv = link_readv,
        .warn = warn,
    };
    ram->bytes = g_malloc0(RAM_SIZE);
    ram->dirty = g_malloc0(RAM_SIZE / RAM_PAGE);
    ram->piece = 65536;
    ram->bump = RAM_BASE + RAM_PAGE;
    return ram;
}

void ram_free(Ram *ram)
{
    g_free(ram->bytes);
    g_free(ram->dirty);
    g_free(ram);
}

uint64_t ram_alloc(Ram *ram, unsigned npages)
{
    uint64_t bus = ram->bump;

    ram->bump += (uint64_t)npages * RAM_PAGE;
    g_assert_cmphex(ram->bump, <=, RAM_BASE + RAM_SIZE);
    memset(ram_at(ram, bus), 0, (size_t)npages * RAM_PAGE);
    return bus;
}

void *ram_at(Ram *ram, uint64_t bus)
{
    g_assert_true(in_ram(bus));
    return ram->bytes + (bus - RAM_BASE);
}

uint8_t ram_write_mpt(HcaV2p *v2p, uint32_t index,
                      const struct rdma_hca_mpt *mailbox)
{
    HcaMpt mpt;

    hca_mpt_format.decode(&mpt, mailbox);
    return hca_v2p_write_mpt(v2p, index, &mpt);
}

uint8_t ram_query_mpt(HcaV2p *v2p, uint32_t index, struct rdma_hca_mpt *mailbox)
{
    HcaMpt mpt;
    uint8_t status = hca_v2p_query_mpt(v2p, index, &mpt);

    if (!status) {
        hca_mpt_format.encode(&mpt, mailbox);
    }
    return status;
}
