/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The BARs (interface document 3.1): registers and doorbells. */
#ifndef HCA_FRONT_BARS_H
#define HCA_FRONT_BARS_H

#include <stdbool.h>
#include <stdint.h>

#include "../state.h"

typedef struct Hca Hca;
typedef struct HcaBars HcaBars;

/*
 * BAR 0. @offset is aligned to 4 and less than RDMA_HCA_BAR0_SIZE; values are
 * those of a little-endian bus in host byte order. From any thread, one at a time (the machine's I/O
 * lock). A write may leave work for the card's thread, which then has to call
 * hca_run(): returns true if so.
 */
uint32_t hca_bar0_read(const Hca *hca, uint32_t offset);
bool hca_bar0_write(Hca *hca, uint32_t offset, uint32_t value);
/* Whether the register there is the one that resets. */
bool hca_bar0_is_reset(const Hca *hca, uint32_t offset);
/* Whether it is away because of that: configuration space reads as ones. From any thread. */
bool hca_is_away(const Hca *hca);
/* Whether a write there lowers the interrupt pin (host.h), if the card has one. */
bool hca_bar0_clears_pin(const Hca *hca, uint32_t offset);
bool hca_has_pin(const Hca *hca);

/*
 * A doorbell: a write of @size (4 or 8) bytes at @offset, aligned to @size, of
 * BAR 2, or of BAR 0 where hca_bar0_is_doorbell() says so; hca_bar0_write()
 * does not take those. The caller calls hca_run() after one or more.
 */
bool hca_bar0_is_doorbell(const Hca *hca, uint32_t offset);
void hca_doorbell(Hca *hca, unsigned bar, uint32_t offset, uint64_t value,
                  unsigned size);

/*
 * A read of @size (4 or 8) bytes at @offset, aligned to @size, of BAR 2. From
 * any thread.
 */
uint64_t hca_bar2_read(Hca *hca, uint32_t offset, unsigned size);

/* The card's side. */

/* Whether @offset is in the @size bytes from @begin on, and where. */
static inline bool hca_offset_in(uint32_t offset, uint32_t begin, uint32_t size,
                                 uint32_t *at)
{
    *at = offset - begin;
    return offset >= begin && *at < size;
}

HcaBars *hca_bars_new(void);
void hca_bars_free(HcaBars *bars);
void hca_bars_reset(HcaBars *bars);

/*
 * Doorbells that a plan of faults has come late are rung when it is time; true
 * if some were. How many there have been since the last reset, whether the first @n
 * of them have been rung, and when the next one's time is.
 */
bool hca_bars_ring_late(Hca *hca);
uint64_t hca_bars_late_doorbells(const HcaBars *bars);
bool hca_bars_have_rung(const HcaBars *bars, uint64_t n);
int64_t hca_bars_deadline(const HcaBars *bars);

/* Whether software has written the reset register; tell it that all is over. */
bool hca_bars_reset_wanted(const HcaBars *bars);
void hca_bars_reset_done(HcaBars *bars);

/* What is saved. */
extern const HcaSection hca_bars_section, hca_half_doorbell_section,
    hca_late_doorbell_section;

#endif /* HCA_FRONT_BARS_H */
