/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory management by work requests: regions that are for it, windows, lists
 * of pages, and the work requests on them.
 */
#ifndef LIB_MEM_H
#define LIB_MEM_H

#include "lib-pair.h"

/* A pair of a list of pieces. */
typedef struct MemPiece {
    uint64_t bus;
    uint64_t end; /* from the start of the region */
} MemPiece;

/* A free region with place for @npages pages and as many pages of memory. Its
 * va and len are those that mem_register() gives it. */
Mr *mem_region_new(Driver *drv, uint32_t pd, unsigned npages);
/* It is free again, whatever has become of it. */
void mem_region_renew(Mr *mr);
/* The same for @npieces pieces, without memory of its own. */
Mr *mem_pieces_new(Driver *drv, uint32_t pd, unsigned npieces);
/* What a REG_MR would do, by commands. */
void mem_pieces_make_valid(Mr *mr, const MemPiece *piece, unsigned npieces,
                           uint64_t va, uint32_t access);
/* One that reads as 0, of @pd. */
Mr *mem_null_new(Driver *drv, uint32_t pd, uint64_t va, uint64_t length);
/* SW2HW_MPT of a region of device memory: the status, and its key. */
uint8_t mem_dev_mem_new(Driver *drv, uint32_t pd, uint64_t start,
                        uint64_t length, uint32_t access, uint32_t *key);
/* A list of @n addresses in memory: its bus address. */
uint64_t mem_list_new(Driver *drv, const uint64_t *entry, unsigned n);
uint64_t mem_piece_list_new(Driver *drv, const MemPiece *piece, unsigned n);

/* A key that differs from @key in the consumer's byte. */
uint32_t mem_next_key(uint32_t key);

/* Work requests, signalled. REG_MR of all pages of @mr, with its present key. */
SendWr mem_reg_wr(const Mr *mr, uint64_t list, uint64_t va, uint64_t len,
                  uint32_t access);
/* The same of a region of pieces, with a list of @npieces. */
SendWr mem_reg_pieces_wr(const Mr *mr, uint64_t list, unsigned npieces,
                         uint64_t va, uint64_t len, uint32_t access);
SendWr mem_inv_wr(uint32_t key);
SendWr mem_bind_wr(unsigned type, uint32_t rkey, const Mr *mr, uint64_t va,
                   uint64_t len, uint32_t access);
SendWr mem_send_inv_wr(uint32_t key);
/* The units in them, to change. */
struct rdma_hca_fast_reg_unit *mem_reg_unit(SendWr *wr);
struct rdma_hca_bind_unit *mem_bind_unit(SendWr *wr);

/* Post @wr; it ends with this syndrome. Returns the vendor code. */
uint8_t mem_do(Qp *qp, const SendWr *wr, uint8_t syndrome);
/* Make @mr valid with its next key. */
void mem_register(Qp *qp, Mr *mr, uint64_t va, uint64_t len, uint32_t access);
void mem_invalidate(Qp *qp, const Mr *mr);

/* A window of @type: its key, with which it is not bound. */
uint32_t mem_window_new(Driver *drv, uint32_t pd, unsigned type);
/* HW2SW_MPT of a window, or a region of device memory. */
uint8_t mem_window_free(Driver *drv, uint32_t key);
/* Bind it with its next key, which is returned. */
uint32_t mem_bind(Qp *qp, unsigned type, uint32_t window, const Mr *mr,
                  uint64_t va, uint64_t len, uint32_t access);

/* The entry that @key names. */
struct rdma_hca_mpt mem_query(Driver *drv, uint32_t key);
/* Whether it is free, and how many windows are bound to it. */
bool mem_is_free(Driver *drv, uint32_t key);
uint32_t mem_windows(Driver *drv, uint32_t key);

/* One RDMA Write or Read of @len bytes at @va; it ends with this syndrome. */
void mem_try(Pair *pair, Qp *qp, unsigned side, uint8_t opcode, uint32_t rkey,
             uint64_t va, uint32_t len, uint8_t syndrome);

#endif /* LIB_MEM_H */
