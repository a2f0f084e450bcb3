/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ways to compute CRCs, each right for any processor that has it. */
#ifndef HCA_WIRE_CRC_WAY_H
#define HCA_WIRE_CRC_WAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bits in reverse, without the highest term. */
#define HCA_VCRC_POLYNOMIAL 0xd008u
#define HCA_ICRC_POLYNOMIAL 0xedb88320u

/* Of @len bytes, @least or more. Registers are not complemented. */
typedef struct HcaCrcWay {
    const char *name;
    size_t least;
    bool (*usable)(void);
    uint16_t (*vcrc)(uint16_t vcrc, const uint8_t *p, size_t len);
    void (*both)(uint32_t *icrc, uint16_t *vcrc, const uint8_t *p, size_t len);
    /* NULL: no quicker than libdeflate's. */
    uint32_t (*icrc)(uint32_t icrc, const uint8_t *p, size_t len);
} HcaCrcWay;

/* Way @i: later ones are quicker. NULL: there are no more. */
const HcaCrcWay *hca_crc_way(unsigned i);
/* The quickest that this processor has for @len bytes. */
const HcaCrcWay *hca_crc_way_for(size_t len);

/* crc_fold.c */
extern const HcaCrcWay hca_crc_fold_128, hca_crc_fold_256;

#endif /* HCA_WIRE_CRC_WAY_H */
