/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Variant CRC (IBA 7.8.2): CRC-16 with polynomial 0x100b over the whole packet
 * from LRH to ICRC, the least significant bit of each byte first, so that the
 * polynomial stands in reverse here; all ones at the start and complemented at
 * the end.
 *
 * 16 bytes at a time: slice[n][b] is what byte b does to the CRC of a message
 * in which n bytes follow it, and the effects of 16 bytes add up (exclusive
 * or), which a processor looks up in parallel.
 */
#include "crc.h"

#define POLYNOMIAL_REVERSED 0xd008
#define SLICES 16

static uint16_t slice[SLICES][256];

static uint16_t shift_byte(uint16_t crc)
{
    for (unsigned bit = 0; bit < 8; bit++) {
        crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL_REVERSED : 0);
    }
    return crc;
}

/* Before main(), so that the table never changes while it is used. */
static void __attribute__((constructor)) init_slices(void)
{
    for (unsigned b = 0; b < 256; b++) {
        slice[0][b] = shift_byte(b);
        for (unsigned n = 1; n < SLICES; n++) {
            slice[n][b] = shift_byte(slice[n - 1][b]);
        }
    }
}

static inline uint16_t update_slices(uint16_t crc, const uint8_t *p)
{
    uint16_t sum = slice[SLICES - 1][(p[0] ^ crc) & 0xff] ^
                   slice[SLICES - 2][p[1] ^ crc >> 8];

    for (unsigned i = 2; i < SLICES; i++) {
        sum ^= slice[SLICES - 1 - i][p[i]];
    }
    return sum;
}

uint16_t hca_vcrc_update(uint16_t crc, const void *data, size_t len)
{
    const uint8_t *p = data;

    crc = ~crc;
    for (; len >= SLICES; len -= SLICES, p += SLICES) {
        crc = update_slices(crc, p);
    }
    for (; len; len--, p++) {
        crc = crc >> 8 ^ slice[0][(crc ^ *p) & 0xff];
    }
    return ~crc;
}
