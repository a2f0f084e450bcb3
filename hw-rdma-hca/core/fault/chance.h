/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chance, whose state is one number, so that it can be saved: SplitMix64 (Steele,
 * Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
 */
#ifndef HCA_CHANCE_H
#define HCA_CHANCE_H

#include <stdint.h>

typedef struct HcaChance {
    uint64_t state;
} HcaChance;

static inline uint64_t hca_chance_mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* One of many streams of a seed's. */
static inline HcaChance hca_chance(uint32_t seed, uint32_t stream)
{
    return (HcaChance) { hca_chance_mix((uint64_t)stream << 32 | seed) };
}

static inline uint32_t hca_chance_draw(HcaChance *chance)
{
    chance->state += UINT64_C(0x9e3779b97f4a7c15);
    return hca_chance_mix(chance->state) >> 32;
}

#endif /* HCA_CHANCE_H */
