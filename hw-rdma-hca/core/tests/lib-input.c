/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-input.h"

#include <glib.h>
#include <string.h>

void take_bytes(Input *in, void *to, size_t len)
{
    size_t n = MIN(len, in->left);

    if (n) {
        memcpy(to, in->at, n);
        in->at += n;
        in->left -= n;
    }
    memset((uint8_t *)to + n, 0, len - n);
}

uint8_t take8(Input *in)
{
    uint8_t value;

    take_bytes(in, &value, sizeof(value));
    return value;
}

uint16_t take16(Input *in)
{
    uint16_t value;

    take_bytes(in, &value, sizeof(value));
    return GUINT16_FROM_LE(value);
}

uint32_t take32(Input *in)
{
    uint32_t value;

    take_bytes(in, &value, sizeof(value));
    return GUINT32_FROM_LE(value);
}

uint64_t take64(Input *in)
{
    uint64_t value;

    take_bytes(in, &value, sizeof(value));
    return GUINT64_FROM_LE(value);
}

bool take_bool(Input *in)
{
    return take8(in) & 1;
}

uint32_t take_below(Input *in, uint32_t n)
{
    return (n <= 256 ? take8(in) : take16(in)) % n;
}

uint64_t take_odd(Input *in)
{
    uint8_t kind = take8(in);

    switch (kind >> 6) {
    case 0: /* small */
        return kind;
    case 1: /* around a power of two, or 0 less a little */
        return (UINT64_C(2) << (kind & 63)) - 1 + take_below(in, 3);
    case 2:
        return kind & 1 ? take16(in) : take32(in);
    default:
        return take64(in);
    }
}
