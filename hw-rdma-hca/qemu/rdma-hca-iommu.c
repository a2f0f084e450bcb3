/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The RAM that a card behind a vIOMMU may reach. See rdma-hca-iommu.h.
 */
#include "qemu/osdep.h"
#include "hw/pci/pci.h"
#include "hw/remote/machine.h"
#include "rdma-hca-compat.h"
#include "rdma-hca-iommu.h"

#define IOTLB_PAGE_BITS 12

/*
 * A vfio-user server has an address space for each device that it serves, with
 * the client's RAM in it and nothing that translates.
 */
bool rdma_hca_iommu_translates(PCIDevice *pci)
{
    return pci_device_iommu_address_space(pci) != &address_space_memory &&
           !object_dynamic_cast(qdev_get_machine(), TYPE_REMOTE_MACHINE);
}

RdmaHcaIommu *rdma_hca_iommu_new(AddressSpace *as, const RdmaHcaRam *own)
{
    RdmaHcaIommu *iommu = g_new0(RdmaHcaIommu, 1);

    iommu->as = as;
    iommu->own = own;
    rdma_hca_ram_init(&iommu->system, &address_space_memory, "rdma-hca-system",
                      true, NULL, NULL);
    return iommu;
}

void rdma_hca_iommu_free(RdmaHcaIommu *iommu)
{
    rdma_hca_ram_cleanup(&iommu->system);
    g_free(iommu);
}

void rdma_hca_iommu_begin(RdmaHcaIommu *iommu)
{
    iommu->turn++;
}

static RdmaHcaIotlbEntry *slot_of(RdmaHcaIommu *iommu, hwaddr addr,
                                  bool is_write)
{
    hwaddr page = addr >> IOTLB_PAGE_BITS;

    return &iommu->entry[(page * 2 + is_write) % RDMA_HCA_IOTLB_ENTRIES];
}

static bool entry_is_of(const RdmaHcaIommu *iommu,
                        const RdmaHcaIotlbEntry *entry, hwaddr addr,
                        bool is_write)
{
    return entry->turn == iommu->turn && entry->is_write == is_write &&
           addr >= entry->ram.addr && addr - entry->ram.addr < entry->ram.size;
}

/* The map of what a translation leads to. */
static const RdmaHcaRamMap *map_of(const RdmaHcaIommu *iommu,
                                   const AddressSpace *target)
{
    if (target == &address_space_memory) {
        return rdma_hca_ram_map(&iommu->system);
    }
    /* An IOMMU that has stopped to translate, maybe just now. */
    return target == iommu->as ? rdma_hca_ram_map(iommu->own) : NULL;
}

/* What @section and the translation of @addr to @target have in common. */
static RdmaHcaRamSection cut(const RdmaHcaRamSection *section, hwaddr addr,
                             hwaddr target, hwaddr mask)
{
    hwaddr offset = target - section->addr;
    hwaddr before = MIN(addr & mask, offset);
    hwaddr after = MIN(mask - (addr & mask), section->size - 1 - offset);

    return (RdmaHcaRamSection) {
        .addr = addr - before,
        .size = before + after + 1,
        .host = section->host + offset - before,
        .mr = section->mr,
        .mr_offset = section->mr_offset + offset - before,
        .writable = section->writable,
    };
}

static bool translate(RdmaHcaIommu *iommu, hwaddr addr, bool is_write,
                      RdmaHcaRamSection *ram)
{
    IOMMUTLBEntry tlb = address_space_get_iotlb_entry(iommu->as, addr, is_write,
                                                      MEMTXATTRS_UNSPECIFIED);
    const RdmaHcaRamMap *map = map_of(iommu, tlb.target_as);
    hwaddr target = tlb.translated_addr | (addr & tlb.addr_mask);
    const RdmaHcaRamSection *section;

    if (!map || tlb.perm == IOMMU_NONE) {
        return false;
    }
    section = rdma_hca_ram_find(map, target, &iommu->hint);
    if (!section || (is_write && !section->writable)) {
        return false;
    }
    *ram = cut(section, addr, target, tlb.addr_mask);
    return true;
}

const RdmaHcaRamSection *rdma_hca_iommu_find(RdmaHcaIommu *iommu, hwaddr addr,
                                             bool is_write)
{
    RdmaHcaIotlbEntry *entry = slot_of(iommu, addr, is_write);

    if (!entry_is_of(iommu, entry, addr, is_write)) {
        entry->turn = 0;
        if (!translate(iommu, addr, is_write, &entry->ram)) {
            return NULL;
        }
        entry->is_write = is_write;
        entry->turn = iommu->turn;
    }
    return &entry->ram;
}
