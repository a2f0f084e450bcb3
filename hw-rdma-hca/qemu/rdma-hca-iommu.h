/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The RAM that a card behind a vIOMMU may reach by DMA: bus addresses as the
 * vIOMMU translates them.
 *
 * To translate takes the BQL: a fault is an interrupt, and an IOMMU may swap the
 * function's address space for another one. Nobody holds the BQL for the card's
 * own thread, so such a card has its turns in the main loop. As changes of the
 * IOMMU and invalidations need the BQL, too, a translation stays good for a
 * turn, and is kept no longer: there is none to be invalidated.
 *
 * What a translation leads to is RAM by the map of the system's memory, with the
 * rules of rdma-hca-ram.h.
 */
#ifndef RDMA_HCA_IOMMU_H
#define RDMA_HCA_IOMMU_H

#include "rdma-hca-ram.h"

#define RDMA_HCA_IOTLB_ENTRIES 512 /* a power of two */

/* What one translation leads to, for one kind of access. */
typedef struct RdmaHcaIotlbEntry {
    uint64_t turn; /* 0: none */
    bool is_write;
    RdmaHcaRamSection ram; /* by bus addresses */
} RdmaHcaIotlbEntry;

typedef struct RdmaHcaIommu {
    AddressSpace *as;      /* of the function */
    const RdmaHcaRam *own; /* what it reaches untranslated */
    RdmaHcaRam system;
    unsigned hint; /* of rdma_hca_ram_find() */
    uint64_t turn;
    RdmaHcaIotlbEntry entry[RDMA_HCA_IOTLB_ENTRIES];
} RdmaHcaIommu;

/* Whether the function is behind a vIOMMU. */
bool rdma_hca_iommu_translates(PCIDevice *pci);

/*
 * All of these are called with the BQL held. @own follows @as, but need not yet.
 */
RdmaHcaIommu *rdma_hca_iommu_new(AddressSpace *as, const RdmaHcaRam *own);
void rdma_hca_iommu_free(RdmaHcaIommu *iommu);

/* A turn begins. */
void rdma_hca_iommu_begin(RdmaHcaIommu *iommu);

/*
 * The RAM behind bus address @addr, or NULL: the vIOMMU does not let the card
 * read (write) there, or it is no RAM. It is valid to the end of the turn, and
 * of the caller's RCU critical section; the entry may be another one's after
 * the next call.
 */
const RdmaHcaRamSection *rdma_hca_iommu_find(RdmaHcaIommu *iommu, hwaddr addr,
                                             bool is_write);

#endif /* RDMA_HCA_IOMMU_H */
