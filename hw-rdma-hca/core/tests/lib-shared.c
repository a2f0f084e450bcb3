/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE /* memfd_create() */
#include "lib-shared.h"

#include <glib.h>
#include <sys/mman.h>
#include <unistd.h>

#define GUARD 65536 /* bytes on each side; a page, wherever */

static void *map(int fd, int protection)
{
    size_t size = hca_shared_block_size();
    uint8_t *place = mmap(NULL, size + 2 * GUARD, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *block;

    g_assert_true(place != MAP_FAILED);
    block = mmap(place + GUARD, size, protection, MAP_SHARED | MAP_FIXED, fd,
                 0);
    g_assert_true(block == place + GUARD);
    return block;
}

static void unmap(const void *block)
{
    munmap((uint8_t *)block - GUARD, hca_shared_block_size() + 2 * GUARD);
}

void shared_memory_init(SharedMemory *memory)
{
    int fd = memfd_create("shared-ring", MFD_CLOEXEC);

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(ftruncate(fd, hca_shared_block_size()), ==, 0);
    memory->own = map(fd, PROT_READ | PROT_WRITE);
    memory->seen = map(fd, PROT_READ);
    close(fd);
}

void shared_memory_destroy(SharedMemory *memory)
{
    unmap(memory->own);
    unmap(memory->seen);
}

/* @end sends from @start on, to @peer. No mark lies behind a beginning. */
static void start_at(HcaSharedEnd *end, HcaSharedEnd *peer, uint64_t start)
{
    end->own->produced = GUINT64_TO_LE(start);
    end->own->wake_at_consumed = GUINT64_TO_LE(start);
    end->produced = end->checked_produced = start;
    end->peer_consumed = end->wake_at_consumed = start;
    peer->own->consumed = GUINT64_TO_LE(start);
    peer->own->wake_at_produced = GUINT64_TO_LE(start);
    peer->consumed = peer->checked_consumed = start;
    peer->peer_produced = peer->wake_at_produced = start;
}

void shared_pair_restart(SharedPair *pair, const uint64_t start[2])
{
    for (unsigned i = 0; i < 2; i++) {
        hca_shared_block_init(pair->memory[i].own);
        g_assert_true(hca_shared_block_ok(pair->memory[i].seen));
        hca_shared_open(&pair->end[i], pair->memory[i].own,
                        pair->memory[!i].seen);
    }
    for (unsigned i = 0; i < 2; i++) {
        if (start[i]) {
            start_at(&pair->end[i], &pair->end[!i], start[i]);
        }
    }
}

void shared_pair_init(SharedPair *pair, const uint64_t start[2])
{
    for (unsigned i = 0; i < 2; i++) {
        shared_memory_init(&pair->memory[i]);
    }
    shared_pair_restart(pair, start);
}

void shared_pair_destroy(SharedPair *pair)
{
    for (unsigned i = 0; i < 2; i++) {
        shared_memory_destroy(&pair->memory[i]);
    }
}

void shared_pattern(uint64_t at, uint8_t *to, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        uint64_t place = at + i;

        to[i] = place ^ place >> 8 ^ place >> 15 ^ place >> 21;
    }
}
