/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a card asks of its host (core/host.h), in the card's thread with the lock. */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/atomic.h"
#include "qemu/bitmap.h"
#include "qemu/error-report.h"
#include "qemu/guest-random.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "rdma-hca-thread.h"

#define WARN_INTERVAL_NS NANOSECONDS_PER_SECOND
#define WARN_BURST 32

static const RdmaHcaRamSection *find_ram(RdmaHcaThread *thread, uint64_t addr,
                                         bool is_write)
{
    const RdmaHcaRamSection *section;

    if (thread->unplugged) {
        return NULL;
    }
    section = rdma_hca_ram_find(thread->map, addr, &thread->map_hint);
    return section || !thread->iommu
               ? section
               : rdma_hca_iommu_find(thread->iommu, addr, is_write);
}

static void *host_dma_map(void *opaque, uint64_t addr, uint64_t *len,
                          bool is_write)
{
    RdmaHcaThread *thread = opaque;
    const RdmaHcaRamSection *section = find_ram(thread, addr, is_write);
    uint64_t offset;

    if (!section || (is_write && !section->writable)) {
        return NULL;
    }
    offset = addr - section->addr;
    *len = MIN(*len, section->size - offset);
    return section->host + offset;
}

static void host_dma_written(void *opaque, uint64_t addr, uint64_t len)
{
    RdmaHcaThread *thread = opaque;
    const RdmaHcaRamSection *section = find_ram(thread, addr, true);

    if (section && len && len <= section->size - (addr - section->addr)) {
        rdma_hca_ram_written(pci_get_address_space(thread->pci), section, addr,
                             len);
    }
}

static void *host_dev_mem(void *opaque)
{
    RdmaHcaThread *thread = opaque;

    return thread->dev_mem.host;
}

static void host_dev_mem_written(void *opaque, uint64_t offset, uint64_t len)
{
    RdmaHcaThread *thread = opaque;

    if (thread->unplugged) {
        return;
    }
    rdma_hca_ram_written(pci_get_address_space(thread->pci), &thread->dev_mem,
                         offset, len);
}

static uint64_t host_bar0_base(void *opaque)
{
    RdmaHcaThread *thread = opaque;

    return qatomic_read_u64(&thread->bar0_base);
}

static void host_msix_notify(void *opaque, unsigned vector)
{
    RdmaHcaThread *thread = opaque;

    if (vector == HCA_VECTOR_PIN) {
        qatomic_set(&thread->pin, thread->has_pin);
    } else if (vector < thread->num_vectors) {
        set_bit_atomic(vector, thread->vectors);
    } else {
        return;
    }
    if (!thread->here) {
        qemu_bh_schedule(thread->msix_bh);
    }
}

static int64_t host_clock_ns(void *opaque)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

static uint64_t host_nonce(void *opaque)
{
    uint64_t nonce;

    qemu_guest_getrandom_nofail(&nonce, sizeof(nonce));
    return nonce;
}

static void host_timer_mod(void *opaque, int64_t deadline_ns)
{
    RdmaHcaThread *thread = opaque;

    if (deadline_ns == INT64_MAX) {
        timer_del(thread->timer);
    } else {
        timer_mod_ns(thread->timer, MAX(deadline_ns, 0));
    }
}

static ssize_t host_link_writev(void *opaque, const struct iovec *iov,
                                int iovcnt)
{
    RdmaHcaThread *thread = opaque;

    return rdma_hca_cable_writev(thread->cable, iov, iovcnt);
}

static ssize_t host_link_readv(void *opaque, const struct iovec *iov,
                               int iovcnt)
{
    RdmaHcaThread *thread = opaque;

    return rdma_hca_cable_readv(thread->cable, iov, iovcnt);
}

static void host_link_forget(void *opaque)
{
    RdmaHcaThread *thread = opaque;

    rdma_hca_cable_forget(thread->cable);
}

static bool host_capture_write(void *opaque, const void *data, size_t len)
{
    RdmaHcaThread *thread = opaque;

    if (qemu_write_full(thread->capture_fd, data, len) == len) {
        return true;
    }
    warn_report("rdma-hca %s: cannot write the capture: %s", thread->name,
                strerror(errno));
    return false;
}

/*
 * A hostile guest or peer must not fill the user's disk: a line a second, or
 * WARN_BURST at once after as many seconds without.
 */
static bool may_warn(RdmaHcaThread *thread)
{
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_REALTIME);

    if (now < thread->warn_after_ns) {
        return false;
    }
    thread->warn_after_ns = MAX(thread->warn_after_ns,
                                now - (WARN_BURST - 1) * WARN_INTERVAL_NS) +
                            WARN_INTERVAL_NS;
    return true;
}

static void host_warn(void *opaque, const char *message)
{
    RdmaHcaThread *thread = opaque;

    if (!may_warn(thread)) {
        thread->warnings_held++;
        return;
    }
    if (thread->warnings_held) {
        warn_report("rdma-hca %s: %u warnings were left out", thread->name,
                    thread->warnings_held);
        thread->warnings_held = 0;
    }
    warn_report("rdma-hca %s: %s", thread->name, message);
}

bool rdma_hca_write_file(const char *path, const GByteArray *data, Error **errp)
{
    int fd = qemu_create(path, O_WRONLY | O_TRUNC | O_BINARY, 0644, errp);
    bool written;

    if (fd < 0) {
        return false;
    }
    written = qemu_write_full(fd, data->data, data->len) == data->len;
    if (!written) {
        error_setg_errno(errp, errno, "Could not write '%s'", path);
    }
    qemu_close(fd);
    return written;
}

/* A guest may break and reset its card at will: warn as of anything else. */
static void host_recorder_dump(void *opaque)
{
    RdmaHcaThread *thread = opaque;
    g_autoptr(GByteArray) data = NULL;
    g_autofree char *message = NULL;
    Error *err = NULL;

    if (!thread->recorder_path) {
        return;
    }
    data = hca_recorder_pcapng(thread->hca);
    if (!rdma_hca_write_file(thread->recorder_path, data, &err)) {
        message = g_strdup_printf("the flight recorder was not written: %s",
                                  error_get_pretty(err));
        host_warn(thread, message);
        error_free(err);
    }
}

const HcaHostOps rdma_hca_host_ops = {
    .dma_map = host_dma_map,
    .dma_written = host_dma_written,
    .dev_mem = host_dev_mem,
    .dev_mem_written = host_dev_mem_written,
    .bar0_base = host_bar0_base,
    .msix_notify = host_msix_notify,
    .clock_ns = host_clock_ns,
    .nonce = host_nonce,
    .timer_mod = host_timer_mod,
    .link_writev = host_link_writev,
    .link_readv = host_link_readv,
    .link_forget = host_link_forget,
    .capture_write = host_capture_write,
    .trace = rdma_hca_trace,
    .recorder_dump = host_recorder_dump,
    .warn = host_warn,
};
