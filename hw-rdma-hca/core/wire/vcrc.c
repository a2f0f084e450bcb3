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
 *
 * Where the processor multiplies without carries, long pieces are folded
 * first: a block of 16 bytes is replaced by a remainder of the same effect at
 * the place of a later block, until one block is left.
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

#ifdef __x86_64__
#include <immintrin.h>

#define BLOCK sizeof(__m128i)
#define LANES 4
#define FOLD_MIN (2 * LANES * BLOCK)
#define TARGET_FOLD __attribute__((target("pclmul,sse4.1")))

static bool can_fold;
static uint64_t fold_1[2];     /* one block further; low and high half */
static uint64_t fold_lanes[2]; /* LANES blocks further */

/* x^n modulo the polynomial, bits reversed, as the high end of 64 bits. */
static uint64_t power(unsigned n)
{
    uint16_t crc = 0x8000; /* x^0 */

    while (n--) {
        crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL_REVERSED : 0);
    }
    return (uint64_t)crc << 48;
}

/*
 * With bits reversed, the low half of a block has the higher terms: it stands
 * 64 terms above the high half. A product of reversed factors comes out one
 * term too high, hence the 1.
 */
static void init_fold(void)
{
    __builtin_cpu_init();
    can_fold = __builtin_cpu_supports("pclmul") &&
               __builtin_cpu_supports("sse4.1");
    fold_1[0] = power(128 + 64 - 1);
    fold_1[1] = power(128 - 1);
    fold_lanes[0] = power(LANES * 128 + 64 - 1);
    fold_lanes[1] = power(LANES * 128 - 1);
}

static inline TARGET_FOLD __m128i load(const void *p)
{
    return _mm_loadu_si128(p);
}

/* @block moved to the place of @next, and added to it. */
static inline TARGET_FOLD __m128i fold(__m128i block, __m128i by, __m128i next)
{
    __m128i low = _mm_clmulepi64_si128(block, by, 0x00);
    __m128i high = _mm_clmulepi64_si128(block, by, 0x11);

    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* @len: FOLD_MIN or more. */
static TARGET_FOLD uint16_t update_folding(uint16_t crc, const uint8_t *p,
                                           size_t len)
{
    __m128i by = load(fold_lanes);
    __m128i lane[LANES];
    uint8_t last[BLOCK];

    for (unsigned i = 0; i < LANES; i++) {
        lane[i] = load(p + i * BLOCK);
    }
    lane[0] = _mm_xor_si128(lane[0], _mm_cvtsi32_si128(crc));
    for (p += LANES * BLOCK, len -= LANES * BLOCK; len >= LANES * BLOCK;
         p += LANES * BLOCK, len -= LANES * BLOCK) {
        for (unsigned i = 0; i < LANES; i++) {
            lane[i] = fold(lane[i], by, load(p + i * BLOCK));
        }
    }
    by = load(fold_1);
    for (unsigned i = 1; i < LANES; i++) {
        lane[i] = fold(lane[i - 1], by, lane[i]);
    }
    for (; len >= BLOCK; p += BLOCK, len -= BLOCK) {
        lane[LANES - 1] = fold(lane[LANES - 1], by, load(p));
    }
    _mm_storeu_si128((__m128i *)last, lane[LANES - 1]);
    return update_slices(update_block(0, last), p, len);
}
#endif

/* Before main(), so that the tables never change while they are used. */
static void __attribute__((constructor)) init_tables(void)
{
    init_slices();
#ifdef __x86_64__
    init_fold();
#endif
}

uint16_t hca_vcrc_update(uint16_t crc, const void *data, size_t len)
{
    crc = ~crc;
#ifdef __x86_64__
    if (can_fold && len >= FOLD_MIN) {
        return ~update_folding(crc, data, len);
    }
#endif
    return ~update_slices(crc, data, len);
}
