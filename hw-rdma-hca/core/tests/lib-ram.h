/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A machine of nothing but memory, for the tests of a single unit: what
 * HcaHostOps needs, with no card and no cable.
 *
 * Bus addresses: RAM_SIZE bytes at RAM_BASE, of which the first page is
 * read-only. Everything else is a hole. Memory is handed out in pieces that
 * end at multiples of ram->piece.
 */
#ifndef LIB_RAM_H
#define LIB_RAM_H

#include <glib.h>

#include "../../abi/rdma_hca_cxt.h"
#include "../front/format.h"
#include "../host.h"
#include "../v2p/v2p.h"

#define RAM_PAGE 4096u
#define RAM_BASE UINT64_C(0x40000000)
#define RAM_SIZE (32u << 20)
#define RAM_ROM RAM_BASE
#define RAM_HOLE UINT64_C(0xfe000000)
#define RAM_VECTORS 32

typedef struct Ram {
    HcaHostOps ops; /* opaque is the Ram */
    uint8_t *bytes;
    uint8_t *dirty; /* one for each page */
    uint64_t piece; /* 64 KiB */
    uint64_t bump;  /* next page of ram_alloc() */
    int64_t now;
    unsigned msix[RAM_VECTORS];
    unsigned msix_bad;
} Ram;

Ram *ram_new(void);
void ram_free(Ram *ram);
/* @npages zeroed pages that lie together: the bus address. */
uint64_t ram_alloc(Ram *ram, unsigned npages);
/* SW2HW_MPT and QUERY_MPT of a mailbox; return a status. */
uint8_t ram_write_mpt(HcaV2p *v2p, uint32_t index,
                      const struct rdma_hca_mpt *mailbox);
uint8_t ram_query_mpt(HcaV2p *v2p, uint32_t index,
                      struct rdma_hca_mpt *mailbox);

/* The byte at @bus, which is RAM. */
void *ram_at(Ram *ram, uint64_t bus);

#endif /* LIB_RAM_H */
