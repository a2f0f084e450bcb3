/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses, as QP contexts and address vectors have them. */
#ifndef HCA_FRONT_PATH_H
#define HCA_FRONT_PATH_H

#include "../path.h"

/* Their words, in host byte order. */
typedef struct HcaFrontAddresses {
    uint32_t low; /* 31:16 DLID or DMAC[15:0], 15:0 SLID or SMAC[15:0] */
    uint32_t smac_h;
    uint32_t dmac_h;
    uint32_t sip;
    uint32_t dip;
    const uint8_t *dgid; /* 16 bytes, network order */
} HcaFrontAddresses;

/*
 * Fill in the addresses of @path, those that its link layer uses; the rest
 * of it is set, and all addresses are 0.
 */
void hca_front_path(HcaPath *path, bool roce, const HcaFrontAddresses *from);

#endif /* HCA_FRONT_PATH_H */
