/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "lib-pcapng.h"

/* Type and length; the length once more. */
#define HEAD 8
#define TAIL 4

uint32_t pcapng_le16(const uint8_t *p)
{
    return p[0] | p[1] << 8;
}

uint32_t pcapng_le32(const uint8_t *p)
{
    return pcapng_le16(p) | pcapng_le16(p + 2) << 16;
}

static size_t padded(size_t len)
{
    return (len + 3) & ~(size_t)3;
}

static void check_padding(const uint8_t *p, size_t len)
{
    for (size_t i = len; i < padded(len); i++) {
        g_assert_cmpuint(p[i], ==, 0);
    }
}

/* Bytes of a body, which has @len of them, in front of its options. */
static size_t fixed_size(const PcapngBlock *block, size_t len)
{
    switch (block->type) {
    case PCAPNG_SECTION:
        return 16;
    case PCAPNG_INTERFACE:
        return 8;
    case PCAPNG_PACKET:
        g_assert_cmpuint(len, >=, 20);
        return 20 + padded(pcapng_le32(block->body + 12));
    }
    g_assert_not_reached();
}

bool pcapng_next(const GByteArray *file, size_t *at, PcapngBlock *block)
{
    const uint8_t *p = file->data + *at;
    size_t left = file->len - *at, len, fixed;

    if (!left) {
        return false;
    }
    g_assert_cmpuint(left, >=, HEAD + TAIL);
    len = pcapng_le32(p + 4);
    g_assert_cmpuint(len, >=, HEAD + TAIL);
    g_assert_cmpuint(len, <=, left);
    g_assert_cmpuint(len % 4, ==, 0);
    g_assert_cmpuint(pcapng_le32(p + len - TAIL), ==, len);

    block->type = pcapng_le32(p);
    block->body = p + HEAD;
    fixed = fixed_size(block, len - HEAD - TAIL);
    g_assert_cmpuint(fixed, <=, len - HEAD - TAIL);
    block->options = block->body + fixed;
    block->end = p + len - TAIL;
    *at += len;
    return true;
}

const uint8_t *pcapng_option(const PcapngBlock *block, unsigned code,
                             unsigned nth, size_t *len)
{
    const uint8_t *p = block->options, *found = NULL;

    for (;;) {
        size_t left = block->end - p, n;

        g_assert_cmpuint(left, >=, 4);
        n = pcapng_le16(p + 2);
        if (pcapng_le16(p) == 0) { /* the end of options */
            g_assert_cmpuint(n, ==, 0);
            g_assert_cmpuint(left, ==, 4);
            return found;
        }
        g_assert_cmpuint(left - 4, >=, padded(n));
        check_padding(p + 4, n);
        if (pcapng_le16(p) == code && nth-- == 0) {
            found = p + 4;
            *len = n;
        }
        p += 4 + padded(n);
    }
}

const uint8_t *pcapng_only_option(const PcapngBlock *block, unsigned code,
                                  size_t *len)
{
    size_t other;

    g_assert_null(pcapng_option(block, code, 1, &other));
    return pcapng_option(block, code, 0, len);
}

/* There is one such option, and that is its value. */
static void check_option(const PcapngBlock *block, unsigned code,
                         const char *value)
{
    size_t len = 0;
    const uint8_t *found = pcapng_only_option(block, code, &len);

    g_assert_nonnull(found);
    g_assert_cmpmem(found, len, value, strlen(value));
}

void pcapng_check_section(const PcapngBlock *block, const char *program)
{
    const uint8_t *p = block->body;

    g_assert_cmphex(block->type, ==, PCAPNG_SECTION);
    g_assert_cmphex(pcapng_le32(p), ==, 0x1a2b3c4d);
    g_assert_cmpuint(pcapng_le16(p + 4), ==, 1);
    g_assert_cmpuint(pcapng_le16(p + 6), ==, 0);
    /* Of a length that nobody knew when it began. */
    g_assert_cmphex(pcapng_le32(p + 8), ==, UINT32_MAX);
    g_assert_cmphex(pcapng_le32(p + 12), ==, UINT32_MAX);
    check_option(block, PCAPNG_PROGRAM, program);
}

void pcapng_check_interface(const PcapngBlock *block, unsigned link_type,
                            const char *name)
{
    g_assert_cmphex(block->type, ==, PCAPNG_INTERFACE);
    g_assert_cmpuint(pcapng_le16(block->body), ==, link_type);
    g_assert_cmpuint(pcapng_le16(block->body + 2), ==, 0);
    g_assert_cmpuint(pcapng_le32(block->body + 4), ==, 0);
    check_option(block, PCAPNG_INTERFACE_NAME, name);
    check_option(block, PCAPNG_TIME_UNIT, "\x09");
}

PcapngPacket pcapng_packet(const PcapngBlock *block)
{
    const uint8_t *p = block->body;
    PcapngPacket packet;

    g_assert_cmphex(block->type, ==, PCAPNG_PACKET);
    packet = (PcapngPacket) {
        .interface = pcapng_le32(p),
        .time = (uint64_t)pcapng_le32(p + 4) << 32 | pcapng_le32(p + 8),
        .data = p + 20,
        .kept = pcapng_le32(p + 12),
        .len = pcapng_le32(p + 16),
    };
    g_assert_cmpuint(packet.kept, <=, packet.len);
    check_padding(packet.data, packet.kept);
    return packet;
}
