/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory of zeros, on the way of each packet. */
#ifndef HCA_CLEAR_H
#define HCA_CLEAR_H

#include <stddef.h>
#include <string.h>

/*
 * A compiler that knows a middling size puts a repeated store in the place of
 * memset(), which takes longer to begin than the C library takes for all of it.
 * So it is not told.
 */
static inline void hca_clear(void *p, size_t size)
{
    __asm__("" : "+r"(size));
    memset(p, 0, size);
}

#endif /* HCA_CLEAR_H */
