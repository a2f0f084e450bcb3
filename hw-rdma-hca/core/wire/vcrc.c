/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Variant CRC (IBA 7.8.2): CRC-16 with polynomial 0x100b over the whole packet
 * from LRH to ICRC, the least significant bit of each byte first, so that the
 * polynomial stands in reverse here; all ones at the start and complemented at
 * the end.
 *
 * By tables, 16 bytes at a time: slice[n][b] is what byte b does to the CRC of
 * a message in which n bytes follow it, and the effects of 16 bytes add up
 * (exclusive or), which a processor looks up in parallel. Where it multiplies
 * without carries, there are quicker ways: crc_fold.c.
 */
#include "crc.h"
#include "crc_way.h"

#define SLICES 16
/* Fewer bytes cost less in two passes. */
#define BOTH_MIN 192

static uint16_t slice[SLICES][256];

static uint16_t shift_byte(uint16_t crc)
{
    for (unsigned bit = 0; bit < 8; bit++) {
        crc = crc >> 1 ^ (crc & 1 ? HCA_VCRC_POLYNOMIAL : 0);
    }
    return crc;
}

static void init_slices(void)
{
    for (unsigned b = 0; b < 256; b++) {
        slice[0][b] = shift_byte(b);
        for (unsigned n = 1; n < SLICES; n++) {
            slice[n][b] = shift_byte(slice[n - 1][b]);
        }
    }
}

static inline uint16_t update_block(uint16_t crc, const uint8_t *p)
{
    uint16_t sum = slice[SLICES - 1][(p[0] ^ crc) & 0xff] ^
                   slice[SLICES - 2][p[1] ^ crc >> 8];

    for (unsigned i = 2; i < SLICES; i++) {
        sum ^= slice[SLICES - 1 - i][p[i]];
    }
    return sum;
}

static uint16_t update_slices(uint16_t crc, const uint8_t *p, size_t len)
{
    for (; len >= SLICES; len -= SLICES, p += SLICES) {
        crc = update_block(crc, p);
    }
    for (; len; len--, p++) {
        crc = crc >> 8 ^ slice[0][(crc ^ *p) & 0xff];
    }
    return crc;
}

static void update_both(uint32_t *icrc, uint16_t *vcrc, const uint8_t *p,
                        size_t len)
{
    *icrc = ~hca_icrc_update(~*icrc, p, len);
    *vcrc = update_slices(*vcrc, p, len);
}

static bool always(void)
{
    return true;
}

static const HcaCrcWay by_tables = {
    .name = "tables",
    .usable = always,
    .vcrc = update_slices,
    .both = update_both,
};

/* The slowest first. */
static const HcaCrcWay *const ways[] = {
    &by_tables,
#ifdef __x86_64__
    &hca_crc_fold_128,
    &hca_crc_fold_256,
#endif
};

#define NUM_WAYS (sizeof(ways) / sizeof(ways[0]))

/* Those of this processor, the quickest first. */
static const HcaCrcWay *usable[NUM_WAYS];

const HcaCrcWay *hca_crc_way(unsigned i)
{
    return i < NUM_WAYS ? ways[i] : NULL;
}

/* Before main(), so that the tables never change while they are used. */
static void __attribute__((constructor)) init_tables(void)
{
    unsigned n = 0;

    init_slices();
    for (unsigned i = NUM_WAYS; i--;) {
        if (ways[i]->usable()) {
            usable[n++] = ways[i];
        }
    }
}

const HcaCrcWay *hca_crc_way_for(size_t len)
{
    const HcaCrcWay *const *way = usable;

    while (len < (*way)->least) {
        way++;
    }
    return *way;
}

uint16_t hca_vcrc_update(uint16_t crc, const void *data, size_t len)
{
    return ~hca_crc_way_for(len)->vcrc(~crc, data, len);
}

void hca_crcs_update(uint32_t *icrc, uint16_t *vcrc, const void *data,
                     size_t len)
{
    if (len < BOTH_MIN) {
        *icrc = hca_icrc_update(*icrc, data, len);
        *vcrc = hca_vcrc_update(*vcrc, data, len);
        return;
    }
    *icrc = ~*icrc;
    *vcrc = ~*vcrc;
    hca_crc_way_for(len)->both(icrc, vcrc, data, len);
    *icrc = ~*icrc;
    *vcrc = ~*vcrc;
}
