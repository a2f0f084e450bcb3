/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The RAM that a card may reach by DMA, looked up without the BQL.
 *
 * A MemoryListener on the function's DMA address space keeps the map, as
 * vhost does. It holds RAM and ROM only: the BARs of a device, the card's own
 * among them, are not in it, so that DMA never turns into MMIO. (Some devices
 * have BARs of RAM; those of an rdma-hca are not in it either.) Nor is what a
 * vIOMMU translates, see rdma-hca-iommu.h.
 * While bus mastering is off the address space, and so the map, is empty.
 */
#ifndef RDMA_HCA_RAM_H
#define RDMA_HCA_RAM_H

#include "qemu/rcu.h"
#include "rdma-hca-compat.h"

typedef struct RdmaHcaRamSection {
    hwaddr addr;   /* bus address */
    uint64_t size; /* bytes, not 0 */
    uint8_t *host;
    MemoryRegion *mr; /* referenced */
    hwaddr mr_offset;
    bool writable;
} RdmaHcaRamSection;

typedef struct RdmaHcaRamMap {
    struct rcu_head rcu;
    unsigned count;
    RdmaHcaRamSection section[]; /* by ascending address, disjoint */
} RdmaHcaRamMap;

typedef struct RdmaHcaRam {
    MemoryListener listener;
    GArray *sections;   /* being collected by the listener */
    RdmaHcaRamMap *map; /* RCU */
    bool translated;    /* somebody asks the vIOMMU for the rest */
    void (*changed)(void *opaque);
    void *opaque;
} RdmaHcaRam;

/*
 * Follow @as. @changed is called with the BQL each time that the map has
 * become another one; it may wait for the users of the former map. NULL:
 * nobody is to know. @translated: whoever uses the map knows what to do for
 * what is not in it because a vIOMMU translates it.
 */
void rdma_hca_ram_init(RdmaHcaRam *ram, AddressSpace *as, const char *name,
                       bool translated, void (*changed)(void *opaque),
                       void *opaque);
void rdma_hca_ram_cleanup(RdmaHcaRam *ram);

/* The map of now; valid until the caller's RCU critical section ends. */
static inline const RdmaHcaRamMap *rdma_hca_ram_map(const RdmaHcaRam *ram)
{
    return qatomic_rcu_read(&ram->map);
}

/*
 * The section that holds bus address @addr, or NULL. @hint is the caller's
 * memory of the last one found; it may start as 0 and needs no other care.
 */
const RdmaHcaRamSection *rdma_hca_ram_find(const RdmaHcaRamMap *map,
                                           hwaddr addr, unsigned *hint);

/*
 * @len bytes from @addr on, all in @section, were written through its host
 * pointer: log them as dirty and drop code that TCG translated from them.
 */
void rdma_hca_ram_written(AddressSpace *as, const RdmaHcaRamSection *section,
                          hwaddr addr, uint64_t len);

#endif /* RDMA_HCA_RAM_H */
