/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values of 64 bits that lie in two words; the high one comes first. */
#ifndef HCA_FRONT_WORDS_H
#define HCA_FRONT_WORDS_H

#include <glib.h>

#include "../../abi/rdma_hca_types.h"

static inline uint64_t hca_join_be(__be32 high, __be32 low)
{
    return (uint64_t)GUINT32_FROM_BE(high) << 32 | GUINT32_FROM_BE(low);
}

static inline uint64_t hca_join_le(__le32 high, __le32 low)
{
    return (uint64_t)GUINT32_FROM_LE(high) << 32 | GUINT32_FROM_LE(low);
}

#endif /* HCA_FRONT_WORDS_H */
