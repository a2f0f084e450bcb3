/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bytes that a fuzzer made, taken from the front. Behind the end there are
 * zeros, so that every input is a whole one.
 */
#ifndef LIB_INPUT_H
#define LIB_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Input {
    const uint8_t *at;
    size_t left;
} Input;

uint8_t take8(Input *in);
uint16_t take16(Input *in);
uint32_t take32(Input *in);
uint64_t take64(Input *in);
bool take_bool(Input *in);
/* A number below @n (1 to 65536), of a byte if that is enough. */
uint32_t take_below(Input *in, uint32_t n);
/*
 * A number as those who look for mistakes write them: 0, all ones, small, near
 * a power of two, or anything.
 */
uint64_t take_odd(Input *in);
void take_bytes(Input *in, void *to, size_t len);

#endif /* LIB_INPUT_H */
