/* SPDX-License-Identifier: GPL-2.0-or-later OR Linux-OpenIB */
/*
 * rdma-hca programming interface: integer types and field access.
 *
 * These headers are the only definition of the interface. The device model,
 * the kernel driver, the rdma-core provider and the tests include them as
 * they are. docs/abi.md says what each field means.
 *
 * A layout is a structure of big-endian (__be32) or little-endian (__le32)
 * words as the interface document gives them. A field inside a word is a
 * mask of contiguous bits of the word's value in host byte order; convert
 * the word first, then use RDMA_HCA_GET() and RDMA_HCA_PREP().
 */
#ifndef RDMA_HCA_TYPES_H
#define RDMA_HCA_TYPES_H

#ifdef __linux__
#include <linux/types.h>
#else
#include <stdint.h>
typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef uint64_t __u64;
typedef uint16_t __le16;
typedef uint32_t __le32;
typedef uint64_t __le64;
typedef uint16_t __be16;
typedef uint32_t __be32;
typedef uint64_t __be64;
#ifndef __aligned_u64
#define __aligned_u64 __u64 __attribute__((aligned(8)))
#endif
#endif

/* Bits @hi down to @lo of a 32-bit word. */
#define RDMA_HCA_MASK(hi, lo) \
	((0xffffffffu >> (31 - (hi))) & (0xffffffffu << (lo)))

/* The value of field @mask in @word (host byte order). */
#define RDMA_HCA_GET(mask, word) \
	(((__u32)(word) & (mask)) / ((mask) & (0u - (mask))))

/* @value placed in field @mask; bits that do not fit are cut off. */
#define RDMA_HCA_PREP(mask, value) \
	(((__u32)(value) * ((mask) & (0u - (mask)))) & (mask))

/* A 64-bit address stored as two 32-bit words is always high word first. */
#define RDMA_HCA_HI32(v) ((__u32)((__u64)(v) >> 32))
#define RDMA_HCA_LO32(v) ((__u32)(v))

#endif /* RDMA_HCA_TYPES_H */
