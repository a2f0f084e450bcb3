/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CRCs by multiplication without carries. A block of 16 bytes is folded: a
 * remainder of the same effect is added to a later block in its place. Where
 * there is much, several lanes of blocks, next to each other, are folded at
 * once over all of them. The last block is divided by the polynomial.
 *
 * What is folded modulo the product of both polynomials is right for both: the
 * two CRCs of a packet cost one pass over it.
 *
 * All polynomials have their bits in reverse: the lowest bit is the highest
 * term.
 */
#include "crc_way.h"

#ifdef __x86_64__
#include <immintrin.h>

#define BLOCK sizeof(__m128i)
#define PAIR sizeof(__m256i)
#define LANES 4
#define VCRC_BITS 16
#define ICRC_BITS 32
#define BOTH_BITS 48
#define TARGET_128 __attribute__((target("pclmul,sse4.1")))
#define TARGET_256 __attribute__((target("vpclmulqdq,pclmul,avx2")))

/* What folds a block over others: its low and its high half. */
typedef struct Factors {
    uint64_t half[2];
} Factors;

/* To fold modulo a polynomial. */
typedef struct Modulus {
    Factors over_1, over_2, over_4, over_8; /* blocks */
} Modulus;

typedef struct Divisor {
    uint64_t polynomial;
    uint64_t inverse; /* modulo 64 bits */
} Divisor;

static Modulus vcrc_modulus, icrc_modulus, both_modulus;
static Divisor vcrc_divisor, icrc_divisor;
static uint64_t icrc_inverse; /* modulo VCRC's, times 2^128: see join() */

/* Polynomials, when the program starts */

/* With the highest term. */
static uint64_t whole(uint32_t polynomial)
{
    return (uint64_t)polynomial << 1 | 1;
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
    uint64_t product = 0;

    for (; b; b >>= 1, a <<= 1) {
        product ^= b & 1 ? a : 0;
    }
    return product;
}

/* x^n modulo a polynomial of @bits, as the high end of 64 bits. */
static uint64_t power(uint64_t polynomial, unsigned bits, unsigned n)
{
    uint64_t rest = UINT64_C(1) << (bits - 1); /* x^0 */

    while (n--) {
        rest = rest >> 1 ^ (rest & 1 ? polynomial >> 1 : 0);
    }
    return rest << (64 - bits);
}

/*
 * The low half of a block stands 64 terms above the high half. A product comes
 * out one term too high, hence the 1.
 */
static Factors factors(uint64_t polynomial, unsigned bits, unsigned blocks)
{
    return (Factors) { {
        power(polynomial, bits, blocks * 128 + 64 - 1),
        power(polynomial, bits, blocks * 128 - 1),
    } };
}

static Modulus modulus(uint64_t polynomial, unsigned bits)
{
    return (Modulus) {
        .over_1 = factors(polynomial, bits, 1),
        .over_2 = factors(polynomial, bits, 2),
        .over_4 = factors(polynomial, bits, 4),
        .over_8 = factors(polynomial, bits, 8),
    };
}

static Divisor divisor(uint64_t polynomial)
{
    uint64_t inverse = 0, left = 1;

    for (unsigned i = 0; i < 64; i++) {
        if (left >> i & 1) {
            inverse |= UINT64_C(1) << i;
            left ^= polynomial << i;
        }
    }
    return (Divisor) { polynomial, inverse };
}

/* Modulo VCRC's polynomial, with bits in their usual order. */
static uint64_t rest_of(uint64_t value)
{
    for (unsigned i = 63; i >= VCRC_BITS; i--) {
        value ^= value >> i & 1 ? vcrc_divisor.polynomial << (i - VCRC_BITS)
                                : 0;
    }
    return value;
}

static void swap(uint64_t pair[2])
{
    uint64_t first = pair[0];

    pair[0] = pair[1];
    pair[1] = first;
}

/* 1 / @value modulo VCRC's polynomial, by Euclid: rest[i] is times[i] * @value. */
static uint64_t inverse_of(uint64_t value)
{
    uint64_t rest[2] = { vcrc_divisor.polynomial, rest_of(value) };
    uint64_t times[2] = { 0, 1 };

    while (rest[1] != 1) {
        unsigned shift = __builtin_clzll(rest[1]) - __builtin_clzll(rest[0]);

        rest[0] ^= rest[1] << shift;
        times[0] ^= times[1] << shift;
        if (rest[0] < rest[1]) {
            swap(rest);
            swap(times);
        }
    }
    return times[1];
}

/* 2^128 / ICRC's polynomial, modulo VCRC's. */
static uint64_t find_icrc_inverse(void)
{
    uint64_t inverse = inverse_of(icrc_divisor.polynomial);

    for (unsigned i = 0; i < 128; i++) {
        inverse = rest_of(inverse << 1);
    }
    return inverse;
}

static void __attribute__((constructor)) init(void)
{
    vcrc_divisor = divisor(whole(HCA_VCRC_POLYNOMIAL));
    icrc_divisor = divisor(whole(HCA_ICRC_POLYNOMIAL));
    vcrc_modulus = modulus(vcrc_divisor.polynomial, VCRC_BITS);
    icrc_modulus = modulus(icrc_divisor.polynomial, ICRC_BITS);
    both_modulus = modulus(
        multiply(vcrc_divisor.polynomial, icrc_divisor.polynomial), BOTH_BITS);
    icrc_inverse = find_icrc_inverse();
}

/* One block at a time */

static inline TARGET_128 __m128i load(const void *p)
{
    return _mm_loadu_si128(p);
}

/* @block moved to the place of @next, and added to it. */
static inline TARGET_128 __m128i fold(__m128i block, __m128i by, __m128i next)
{
    __m128i low = _mm_clmulepi64_si128(block, by, 0x00);
    __m128i high = _mm_clmulepi64_si128(block, by, 0x11);

    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* Fold @len bytes, whole blocks, into @block, which is before them. */
static inline TARGET_128 __m128i fold_blocks(const Modulus *m, __m128i block,
                                             const uint8_t *p, size_t len)
{
    __m128i by = load(&m->over_1);

    for (; len; p += BLOCK, len -= BLOCK) {
        block = fold(block, by, load(p));
    }
    return block;
}

/*
 * The beginning of @len bytes (BLOCK or more), so that whole blocks are left:
 * zeros in front of a message change nothing, and @first is added to its first
 * bits. The result is in the place of the block that ends behind *@taken.
 */
static inline TARGET_128 __m128i begin(const Modulus *m, uint64_t first,
                                       const uint8_t *p, size_t len,
                                       size_t *taken)
{
    static const uint8_t shift[2 * BLOCK - 1] = {
        0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
        0x80, 0x80, 0x80, 0x80, 0x80, 0,    1,    2,    3,    4,    5,
        6,    7,    8,    9,    10,   11,   12,   13,   14,
    };
    size_t odd = len % BLOCK;
    uint64_t rest = odd < sizeof(first) ? first >> 8 * odd : 0;
    __m128i block = _mm_xor_si128(load(p), _mm_cvtsi64_si128(first));
    __m128i next = _mm_xor_si128(load(p + odd), _mm_cvtsi64_si128(rest));

    *taken = odd + BLOCK;
    block = _mm_shuffle_epi8(block, load(shift + odd));
    return fold(block, load(&m->over_1), next);
}

/* All @len bytes, with @first, as one block. */
static inline TARGET_128 __m128i fold_128(const Modulus *m, uint64_t first,
                                          const uint8_t *p, size_t len)
{
    size_t taken;
    __m128i block = begin(m, first, p, len, &taken);

    p += taken;
    len -= taken;
    if (len >= 2 * LANES * BLOCK) {
        __m128i by = load(&m->over_4);
        __m128i lane[LANES] = { block };

        for (unsigned i = 1; i < LANES; i++, p += BLOCK, len -= BLOCK) {
            lane[i] = load(p);
        }
        for (; len >= LANES * BLOCK; len -= LANES * BLOCK) {
            for (unsigned i = 0; i < LANES; i++, p += BLOCK) {
                lane[i] = fold(lane[i], by, load(p));
            }
        }
        by = load(&m->over_1);
        block = lane[0];
        for (unsigned i = 1; i < LANES; i++) {
            block = fold(block, by, lane[i]);
        }
    }
    return fold_blocks(m, block, p, len);
}

/* What is added to @value so that its low half is zero: a multiple. */
static inline TARGET_128 __m128i multiple(const Divisor *d, __m128i value)
{
    const __m128i by = load(d);

    value = _mm_clmulepi64_si128(value, by, 0x10);
    return _mm_clmulepi64_si128(value, by, 0x00);
}

/* The remainder of @block, with as many zeros behind it as that has bits. */
static inline TARGET_128 __m128i divide(const Divisor *d, __m128i block)
{
    block = _mm_xor_si128(block, multiple(d, block));
    return multiple(d, _mm_srli_si128(block, 8));
}

static inline TARGET_128 uint16_t vcrc_of(__m128i block)
{
    return _mm_extract_epi16(divide(&vcrc_divisor, block), 4);
}

static inline TARGET_128 uint32_t icrc_of(__m128i block)
{
    return _mm_extract_epi32(divide(&icrc_divisor, block), 2);
}

/*
 * What has the effect of @icrc modulo the one polynomial and that of @vcrc
 * modulo the other, in the place of a message's first bits: @icrc and such a
 * multiple of its polynomial that the rest is one of the other. The remainder
 * is taken from the low end, which divides by 2^64 each time.
 */
static inline TARGET_128 uint64_t join(uint32_t icrc, uint16_t vcrc)
{
    const __m128i by = _mm_set_epi64x(icrc_divisor.polynomial, icrc_inverse);
    __m128i times = _mm_cvtsi64_si128(icrc ^ vcrc);

    times = _mm_srli_si128(multiple(&vcrc_divisor, times), 8);
    times = _mm_clmulepi64_si128(times, by, 0x00);
    times = _mm_srli_si128(multiple(&vcrc_divisor, times), 8);
    times = _mm_clmulepi64_si128(times, by, 0x10);
    return icrc ^ _mm_cvtsi128_si64(times);
}

static TARGET_128 uint16_t vcrc_128(uint16_t vcrc, const uint8_t *p, size_t len)
{
    return vcrc_of(fold_128(&vcrc_modulus, vcrc, p, len));
}

static TARGET_128 void both_128(uint32_t *icrc, uint16_t *vcrc,
                                const uint8_t *p, size_t len)
{
    __m128i block = fold_128(&both_modulus, join(*icrc, *vcrc), p, len);

    *icrc = icrc_of(block);
    *vcrc = vcrc_of(block);
}

static bool usable_128(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

const HcaCrcWay hca_crc_fold_128 = {
    .name = "128 bits",
    .least = BLOCK,
    .usable = usable_128,
    .vcrc = vcrc_128,
    .both = both_128,
};

/* Two blocks at a time */

static inline TARGET_256 __m256i load_pair(const void *p)
{
    return _mm256_loadu_si256(p);
}

static inline TARGET_256 __m256i load_factors(const Factors *factors)
{
    return _mm256_broadcastsi128_si256(load(factors));
}

static inline TARGET_256 __m256i fold_pair(__m256i pair, __m256i by,
                                           __m256i next)
{
    __m256i low = _mm256_clmulepi64_epi128(pair, by, 0x00);
    __m256i high = _mm256_clmulepi64_epi128(pair, by, 0x11);

    return _mm256_xor_si256(_mm256_xor_si256(low, high), next);
}

static inline TARGET_256 __m128i fold_256(const Modulus *m, uint64_t first,
                                          const uint8_t *p, size_t len)
{
    __m256i by = load_factors(&m->over_8);
    __m256i lane[LANES];
    size_t taken;
    __m128i block = begin(m, first, p, len, &taken);

    p += taken - BLOCK;
    len -= taken - BLOCK;
    for (unsigned i = 0; i < LANES; i++, p += PAIR, len -= PAIR) {
        lane[i] = load_pair(p);
    }
    lane[0] = _mm256_inserti128_si256(lane[0], block, 0);
    for (; len >= LANES * PAIR; len -= LANES * PAIR) {
        for (unsigned i = 0; i < LANES; i++, p += PAIR) {
            lane[i] = fold_pair(lane[i], by, load_pair(p));
        }
    }
    by = load_factors(&m->over_2);
    for (unsigned i = 1; i < LANES; i++) {
        lane[i] = fold_pair(lane[i - 1], by, lane[i]);
    }
    block = fold(_mm256_castsi256_si128(lane[LANES - 1]), load(&m->over_1),
                 _mm256_extracti128_si256(lane[LANES - 1], 1));
    return fold_blocks(m, block, p, len);
}

static TARGET_256 uint16_t vcrc_256(uint16_t vcrc, const uint8_t *p, size_t len)
{
    return vcrc_of(fold_256(&vcrc_modulus, vcrc, p, len));
}

static TARGET_256 void both_256(uint32_t *icrc, uint16_t *vcrc,
                                const uint8_t *p, size_t len)
{
    __m128i block = fold_256(&both_modulus, join(*icrc, *vcrc), p, len);

    *icrc = icrc_of(block);
    *vcrc = vcrc_of(block);
}

static TARGET_256 uint32_t icrc_256(uint32_t icrc, const uint8_t *p, size_t len)
{
    return icrc_of(fold_256(&icrc_modulus, icrc, p, len));
}

static bool usable_256(void)
{
    return usable_128() && __builtin_cpu_supports("avx2") &&
           __builtin_cpu_supports("vpclmulqdq");
}

const HcaCrcWay hca_crc_fold_256 = {
    .name = "256 bits",
    .least = 3 * LANES * PAIR,
    .usable = usable_256,
    .vcrc = vcrc_256,
    .both = both_256,
    .icrc = icrc_256,
};
#endif
