/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two rings in shared memory: bytes, wherever in the ring they are; who sleeps,
 * and who is woken; a peer whose positions cannot be.
 */
#include <errno.h>
#include <glib.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "lib-shared.h"
#include "lib-test.h"

#define SIZE ((ssize_t)HCA_SHARED_RING_SIZE)
#define ROOM ((ssize_t)HCA_SHARED_WAKE_ROOM)

/* A pair whose ends test cases call by name, and what they have exchanged. */
static SharedPair pair;
static HcaSharedEnd *const writer = &pair.end[0];
static HcaSharedEnd *const reader = &pair.end[1];
static HcaSharedBlock *writers, *readers; /* what each shows */
static uint8_t sent[2 * SIZE], received[2 * SIZE];

static void begin_at(uint64_t start)
{
    shared_pair_init(&pair, (uint64_t[2]) { start, start });
    writers = pair.memory[0].own;
    readers = pair.memory[1].own;
}

static void begin(void)
{
    begin_at(0);
}

static void end(void)
{
    shared_pair_destroy(&pair);
}

/* Whatever is in memory. */
static ssize_t put_any(HcaSharedEnd *end, size_t len)
{
    struct iovec iov = { sent, len };

    return hca_shared_writev(end, &iov, 1);
}

/* The bytes of the end's position. */
static ssize_t put(HcaSharedEnd *end, size_t len)
{
    shared_pattern(end->produced, sent, len);
    return put_any(end, len);
}

static ssize_t get(HcaSharedEnd *end, size_t len)
{
    struct iovec iov = { received, len };

    return hca_shared_readv(end, &iov, 1);
}

/* The reader gets so many, and they are those of its position. */
static void expect(size_t len)
{
    uint64_t at = reader->consumed;

    memset(received, 0xee, len + 64);
    g_assert_cmpint(get(reader, len), ==, len);
    shared_pattern(at, sent, len);
    g_assert_cmpmem(received, len, sent, len);
    for (unsigned i = 0; i < 64; i++) {
        g_assert_cmphex(received[len + i], ==, 0xee);
    }
}

/* ---- blocks ---- */

static void test_block(void)
{
    HcaSharedBlock *block = g_malloc(sizeof(*block) + HCA_SHARED_PAGE);
    HcaSharedBlock *own = (void *)(((uintptr_t)block | 4095) + 1);

    g_assert_cmpuint(hca_shared_block_size(), ==, 4096 + SIZE);
    memset(own, 0xff, HCA_SHARED_PAGE + 1);
    g_assert_false(hca_shared_block_ok(own));
    hca_shared_block_init(own);
    g_assert_true(hca_shared_block_ok(own));
    g_assert_cmpmem(own, 8, "hca-ring", 8);
    for (unsigned i = 16; i < HCA_SHARED_PAGE; i++) {
        g_assert_cmphex(((uint8_t *)own)[i], ==, 0);
    }
    g_assert_cmphex(own->ring[0], ==, 0xff);
    for (unsigned i = 0; i < 16; i++) {
        ((uint8_t *)own)[i] ^= 1;
        g_assert_false(hca_shared_block_ok(own));
        ((uint8_t *)own)[i] ^= 1;
    }
    g_assert_true(hca_shared_block_ok(own));
    g_free(block);
}

/* ---- bytes ---- */

static void test_empty(void)
{
    begin();
    g_assert_cmpint(get(reader, 0), ==, 0);
    g_assert_cmpint(hca_shared_readv(reader, NULL, 0), ==, 0);
    g_assert_cmpuint(readers->wake_at_produced, ==, 0); /* it does not sleep */
    g_assert_cmpint(get(reader, 1), ==, -EAGAIN);
    g_assert_cmpint(get(reader, SIZE), ==, -EAGAIN);
    g_assert_cmpint(put(writer, 5), ==, 5);
    expect(5);
    g_assert_cmpint(get(reader, 1), ==, -EAGAIN);
    g_assert_cmpuint(readers->consumed, ==, 5);
    end();
}

static void test_full(void)
{
    begin();
    g_assert_cmpint(put(writer, 2 * SIZE), ==, SIZE);
    g_assert_cmpint(put(writer, 0), ==, 0);
    g_assert_cmpint(hca_shared_writev(writer, NULL, 0), ==, 0);
    g_assert_cmpuint(writers->wake_at_consumed, ==, 0); /* it does not sleep */
    g_assert_cmpint(put(writer, 1), ==, -EAGAIN);
    g_assert_cmpuint(writers->produced, ==, SIZE);
    expect(1);
    g_assert_cmpint(put(writer, 2), ==, 1);
    g_assert_cmpint(put(writer, 2), ==, -EAGAIN);
    expect(SIZE);
    g_assert_cmpint(get(reader, 1), ==, -EAGAIN);
    g_assert_cmpint(put(writer, SIZE - 1), ==, SIZE - 1);
    g_assert_cmpint(put(writer, 3), ==, 1);
    memset(received, 0, sizeof(received));
    g_assert_cmpint(get(reader, 2 * SIZE), ==, SIZE);
    shared_pattern(SIZE + 1, sent, SIZE);
    g_assert_cmpmem(received, SIZE, sent, SIZE);
    end();
}

/* Each place near the end, each length from none across it to some. */
static void test_wrap(void)
{
    begin();
    for (unsigned before = 0; before <= 66; before++) {
        uint64_t start[2] = { SIZE - before };

        for (size_t len = 1; len < 140; len++) {
            shared_pair_restart(&pair, start);
            memset(writers->ring, 0, 256);
            memset(writers->ring + SIZE - 256, 0, 256);
            g_assert_cmpint(put(writer, len), ==, len);
            for (uint64_t at = start[0]; at < start[0] + len; at++) {
                shared_pattern(at, sent, 1);
                g_assert_cmphex(writers->ring[at % SIZE], ==, sent[0]);
            }
            g_assert_cmphex(writers->ring[(start[0] + len) % SIZE], ==, 0);
            expect(len);
        }
    }
    end();
}

static unsigned cut_up(GRand *rand, uint8_t *base, size_t len,
                       struct iovec *iov, unsigned most)
{
    unsigned n = 0;

    for (size_t at = 0; at < len; n++) {
        size_t part = g_rand_int_range(rand, 0, 100);

        part = n == most - 1 ? len - at : MIN(part, len - at);
        iov[n] = (struct iovec) { part ? base + at : NULL, part };
        at += part;
    }
    return n;
}

static void test_iovecs(void)
{
    GRand *rand = g_rand_new_with_seed(3);
    struct iovec iov[200];

    begin_at(SIZE - 1000);
    for (unsigned i = 0; i < 1000; i++) {
        size_t len = g_rand_int_range(rand, 1, 9000);
        uint64_t at = writer->produced;
        unsigned n;

        shared_pattern(at, sent, len);
        n = cut_up(rand, sent, len, iov, G_N_ELEMENTS(iov));
        g_assert_cmpint(hca_shared_writev(writer, iov, n), ==, len);
        memset(received, 0, len);
        n = cut_up(rand, received, len, iov, G_N_ELEMENTS(iov));
        g_assert_cmpint(hca_shared_readv(reader, iov, n), ==, len);
        g_assert_cmpmem(received, len, sent, len);
    }
    g_rand_free(rand);
    end();
}

/* Lengths whose sum is none, and an end in the middle of an element. */
static void test_iovecs_long(void)
{
    struct iovec iov[] = { { sent, 100 },
                           { sent + 100, SIZE_MAX - 10 },
                           { sent, SIZE_MAX } };

    begin();
    shared_pattern(0, sent, SIZE);
    g_assert_cmpint(hca_shared_writev(writer, iov, 3), ==, SIZE);
    iov[0].iov_base = received;
    iov[0].iov_len = SIZE_MAX;
    g_assert_cmpint(hca_shared_readv(reader, iov, 3), ==, SIZE);
    g_assert_cmpmem(received, SIZE, sent, SIZE);
    end();
}

/* Positions that come to the end of their 64 bits, and all that is made of them. */
static void test_limit(void)
{
    for (unsigned before = 0; before < 3; before++) {
        begin_at(UINT64_MAX - before * SIZE / 2);
        g_assert_cmpint(get(reader, 1), ==, -EAGAIN);
        for (unsigned i = 0; i < 3; i++) {
            g_assert_cmpint(put(writer, SIZE), ==, SIZE);
            g_assert_true(hca_shared_take_wake(writer));
            g_assert_cmpint(put(writer, 1), ==, -EAGAIN);
            expect(ROOM - 1);
            g_assert_false(hca_shared_take_wake(reader));
            expect(SIZE - ROOM + 1);
            g_assert_true(hca_shared_take_wake(reader));
            g_assert_false(hca_shared_take_wake(reader));
            g_assert_cmpint(get(reader, 1), ==, -EAGAIN);
        }
        end();
    }
}

/* ---- sleep ---- */

static void test_wake_reader(void)
{
    begin();
    g_assert_false(hca_shared_take_wake(writer));
    put(writer, 10);
    g_assert_false(hca_shared_take_wake(writer)); /* nobody sleeps */
    expect(10);
    put(writer, 10);
    g_assert_false(hca_shared_take_wake(writer));
    expect(10);
    g_assert_cmpint(get(reader, 10), ==, -EAGAIN);
    g_assert_false(hca_shared_take_wake(writer)); /* and nothing was written */
    put(writer, 1);
    g_assert_true(hca_shared_take_wake(writer));
    g_assert_false(hca_shared_take_wake(writer));
    put(writer, 1);
    g_assert_false(hca_shared_take_wake(writer)); /* it is under way */
    g_assert_cmpint(get(reader, 10), ==, 2);
    put(writer, 1);
    g_assert_false(hca_shared_take_wake(writer));
    expect(1);
    for (unsigned i = 0; i < 3; i++) {
        g_assert_cmpint(get(reader, 10), ==, -EAGAIN);
    }
    put(writer, 1);
    put(writer, 1);
    g_assert_true(hca_shared_take_wake(writer));
    g_assert_false(hca_shared_take_wake(writer));
    end();
}

/* It comes for itself, before it is woken, and sleeps again. */
static void test_wake_early_reader(void)
{
    begin();
    g_assert_cmpint(get(reader, 1), ==, -EAGAIN);
    put(writer, 10);
    expect(10);
    g_assert_cmpint(get(reader, 1), ==, -EAGAIN);
    /* There is nothing to read: the wake-up is kept for what comes. */
    g_assert_false(hca_shared_take_wake(writer));
    put(writer, 1);
    g_assert_true(hca_shared_take_wake(writer));
    /* Woken for what it has found meanwhile: nothing is lost by that. */
    expect(1);
    g_assert_cmpint(get(reader, 1), ==, -EAGAIN);
    put(writer, 1);
    g_assert_true(hca_shared_take_wake(writer));
    end();
}

static void test_wake_writer(void)
{
    begin();
    put(writer, SIZE);
    expect(100);
    g_assert_false(hca_shared_take_wake(reader)); /* nobody sleeps */
    put(writer, 100);
    for (unsigned i = 0; i < 3; i++) {
        g_assert_cmpint(put(writer, 1), ==, -EAGAIN);
    }
    g_assert_false(hca_shared_take_wake(reader));
    expect(ROOM - 1);
    g_assert_false(hca_shared_take_wake(reader));
    expect(1);
    g_assert_true(hca_shared_take_wake(reader));
    g_assert_false(hca_shared_take_wake(reader));
    expect(SIZE - ROOM);
    g_assert_false(hca_shared_take_wake(reader)); /* it is under way */
    end();
}

/* It comes for itself, takes what room there is, and sleeps again. */
static void test_wake_early_writer(void)
{
    begin();
    put(writer, SIZE);
    g_assert_cmpint(put(writer, 1), ==, -EAGAIN);
    expect(ROOM);
    put(writer, ROOM);
    g_assert_cmpint(put(writer, 1), ==, -EAGAIN);
    /* There is no room: the wake-up is kept for when there is. */
    g_assert_false(hca_shared_take_wake(reader));
    expect(ROOM - 1);
    g_assert_cmpint(put(writer, 10), ==, 10);
    g_assert_false(hca_shared_take_wake(reader));
    expect(1);
    g_assert_true(hca_shared_take_wake(reader));
    end();
}

/* Who is awake asks for no wake-up, and finds out what there is. */
static void test_awake_reader(void)
{
    begin();
    hca_shared_set_awake(reader, true);
    g_assert_false(hca_shared_is_ready(reader)); /* it has not asked */
    g_assert_cmpint(get(reader, 10), ==, -EAGAIN);
    g_assert_cmpuint(readers->wake_at_produced, ==, 0);
    g_assert_false(hca_shared_is_ready(reader));
    put(writer, 10);
    g_assert_false(hca_shared_take_wake(writer));
    g_assert_true(hca_shared_is_ready(reader));
    expect(4);
    g_assert_false(hca_shared_is_ready(reader)); /* it reads on by itself */
    expect(6);
    g_assert_cmpint(get(reader, 10), ==, -EAGAIN);
    hca_shared_set_awake(reader, false);
    g_assert_cmpuint(readers->wake_at_produced, ==, 11);
    g_assert_false(hca_shared_is_ready(reader));
    put(writer, 1);
    g_assert_true(hca_shared_take_wake(writer));
    g_assert_true(hca_shared_is_ready(reader));
    expect(1);
    end();
}

static void test_awake_writer(void)
{
    begin();
    hca_shared_set_awake(writer, true);
    put(writer, SIZE);
    expect(ROOM);
    g_assert_false(hca_shared_is_ready(writer)); /* it has not asked */
    put(writer, ROOM);
    g_assert_cmpint(put(writer, 1), ==, -EAGAIN);
    g_assert_cmpuint(writers->wake_at_consumed, ==, 0);
    expect(ROOM - 1);
    g_assert_false(hca_shared_is_ready(writer));
    expect(1);
    g_assert_false(hca_shared_take_wake(reader));
    g_assert_true(hca_shared_is_ready(writer));
    put(writer, ROOM);
    g_assert_cmpint(put(writer, 1), ==, -EAGAIN);
    hca_shared_set_awake(writer, false);
    g_assert_cmpuint(writers->wake_at_consumed, ==, 3 * ROOM);
    expect(ROOM);
    g_assert_true(hca_shared_take_wake(reader));
    end();
}

/* What comes just before it sleeps it finds when it looks once more. */
static void test_awake_sleeps_late(void)
{
    begin();
    hca_shared_set_awake(reader, true);
    g_assert_cmpint(get(reader, 1), ==, -EAGAIN);
    put(writer, 1);
    g_assert_false(hca_shared_take_wake(writer));
    hca_shared_set_awake(reader, false);
    g_assert_true(hca_shared_is_ready(reader));
    expect(1);
    end();
}

/* Who has asked for nothing sleeps for nothing; a broken end is ready. */
static void test_awake_idle(void)
{
    begin();
    hca_shared_set_awake(reader, true);
    hca_shared_set_awake(reader, false);
    g_assert_cmpuint(readers->wake_at_produced, ==, 0);
    g_assert_cmpuint(readers->wake_at_consumed, ==, 0);
    g_assert_cmpint(get(reader, 1), ==, -EAGAIN);
    writers->produced = SIZE + 1;
    g_assert_true(hca_shared_is_ready(reader));
    g_assert_cmpint(get(reader, 1), ==, -EPROTO);
    hca_shared_set_awake(reader, true);
    hca_shared_set_awake(reader, false);
    g_assert_true(hca_shared_is_ready(reader));
    end();
}

/* What both need is taken at once; a write wakes no writer, a read no reader. */
static void test_wake_both(void)
{
    begin();
    put(writer, SIZE);
    g_assert_cmpint(put(writer, 1), ==, -EAGAIN);
    g_assert_cmpint(get(writer, 1), ==, -EAGAIN);
    expect(SIZE);
    put(reader, 7);
    g_assert_true(hca_shared_take_wake(reader));
    g_assert_false(hca_shared_take_wake(reader));
    g_assert_cmpint(get(writer, 10), ==, 7);

    put(writer, SIZE);
    g_assert_cmpint(put(writer, 1), ==, -EAGAIN);
    g_assert_cmpint(get(writer, 1), ==, -EAGAIN);
    put(reader, 7);
    g_assert_true(hca_shared_take_wake(reader));
    put(reader, 7);
    g_assert_false(hca_shared_take_wake(reader));
    expect(ROOM);
    g_assert_true(hca_shared_take_wake(reader));
    end();
}

/* ---- at the very moment when an end goes to sleep ---- */

/* What the peer does then. */
static void (*meanwhile)(void);

static void set_writable(HcaSharedEnd *end, bool writable)
{
    mprotect(end->own, HCA_SHARED_PAGE,
             PROT_READ | (writable ? PROT_WRITE : 0));
}

/* The end shows a mark, where it may not write yet. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    HcaSharedEnd *sleeper = NULL;

    for (unsigned i = 0; i < 2; i++) {
        uint8_t *page = (uint8_t *)pair.end[i].own;

        if ((uint8_t *)info->si_addr >= page &&
            (uint8_t *)info->si_addr < page + HCA_SHARED_PAGE) {
            sleeper = &pair.end[i];
        }
    }
    if (!meanwhile || !sleeper) {
        signal(SIGSEGV, SIG_DFL); /* a mistake: fault again */
        return;
    }
    set_writable(sleeper, true);
    meanwhile();
    meanwhile = NULL;
}

static ssize_t interrupted(HcaSharedEnd *end,
                           ssize_t (*call)(HcaSharedEnd *end, size_t len),
                           void (*peer)(void))
{
    struct sigaction action = { .sa_sigaction = on_fault,
                                .sa_flags = SA_SIGINFO };
    struct sigaction old;
    ssize_t n;

    sigaction(SIGSEGV, &action, &old);
    meanwhile = peer;
    set_writable(end, false);
    n = call(end, 100);
    g_assert_null(meanwhile); /* it has slept */
    sigaction(SIGSEGV, &old, NULL);
    return n;
}

static void peer_writes(void)
{
    put(writer, 30);
    g_assert_false(hca_shared_take_wake(writer)); /* it cannot see the mark */
}

static void peer_reads(void)
{
    get(reader, 30);
    g_assert_false(hca_shared_take_wake(reader));
}

static void peer_writes_too_much(void)
{
    writers->produced = writer->produced + SIZE + 1;
}

static void peer_reads_too_much(void)
{
    readers->consumed = writer->produced + 1;
}

static void test_moment(void)
{
    begin();
    g_assert_cmpint(interrupted(reader, get, peer_writes), ==, 30);
    g_assert_cmpint(get(reader, 1), ==, -EAGAIN);
    put(writer, SIZE);
    g_assert_true(hca_shared_take_wake(writer));
    g_assert_cmpint(interrupted(writer, put, peer_reads), ==, 30);
    g_assert_cmpint(put(writer, 1), ==, -EAGAIN);
    get(reader, ROOM);
    g_assert_true(hca_shared_take_wake(reader));
    end();
}

static void test_moment_impossible(void)
{
    begin();
    put(writer, SIZE);
    g_assert_cmpint(interrupted(writer, put, peer_reads_too_much), ==, -EPROTO);
    expect(SIZE);
    g_assert_cmpint(interrupted(reader, get, peer_writes_too_much), ==,
                    -EPROTO);
    g_assert_true(writer->broken && reader->broken);
    end();
}

/* ---- accept and switch ---- */

static void test_accept(void)
{
    begin();
    g_assert_false(hca_shared_is_accepted(writer));
    readers->accepted = 2;
    g_assert_false(hca_shared_is_accepted(writer));
    readers->accepted = 0;
    hca_shared_accept(reader);
    g_assert_cmpuint(readers->accepted, ==, 1);
    g_assert_false(hca_shared_is_accepted(reader)); /* the other one's */
    g_assert_true(hca_shared_is_accepted(writer));
    readers->accepted = 0;
    g_assert_true(hca_shared_is_accepted(writer));
    end();
}

static void test_switch(void)
{
    uint64_t bytes = 5;

    begin();
    g_assert_false(hca_shared_peer_switched(reader, &bytes));
    g_assert_cmpuint(bytes, ==, 5);
    writers->switched = 2;
    g_assert_false(hca_shared_peer_switched(reader, &bytes));
    writers->switched = 0;
    hca_shared_switch(writer, UINT64_C(0x123456789abcdef0));
    g_assert_true(hca_shared_take_wake(writer)); /* from its stream */
    g_assert_false(hca_shared_take_wake(writer));
    g_assert_false(hca_shared_peer_switched(writer, &bytes));
    g_assert_true(hca_shared_peer_switched(reader, &bytes));
    g_assert_cmphex(bytes, ==, UINT64_C(0x123456789abcdef0));
    writers->switched_at = 7;
    g_assert_true(hca_shared_peer_switched(reader, &bytes));
    g_assert_cmphex(bytes, ==, UINT64_C(0x123456789abcdef0));
    writers->switched = 0;
    bytes = 0;
    g_assert_true(hca_shared_peer_switched(reader, &bytes));
    g_assert_cmphex(bytes, ==, UINT64_C(0x123456789abcdef0));
    end();
}

/* With bytes, and none of them wake the peer once more. */
static void test_switch_and_write(void)
{
    begin();
    hca_shared_switch(writer, 0);
    put(writer, 10);
    g_assert_true(hca_shared_take_wake(writer));
    g_assert_false(hca_shared_take_wake(writer));
    put(writer, 10);
    g_assert_false(hca_shared_take_wake(writer));
    expect(20);
    end();
}

/* ---- positions that cannot be ---- */

static void check_broken(HcaSharedEnd *end)
{
    HcaSharedEnd before;
    uint64_t produced = end->own->produced, consumed = end->own->consumed;

    g_assert_true(end->broken);
    before = *end;
    for (unsigned i = 0; i < 2; i++) {
        g_assert_cmpint(put(end, 1), ==, -EPROTO);
        g_assert_cmpint(put(end, 0), ==, -EPROTO);
        g_assert_cmpint(get(end, 1), ==, -EPROTO);
        g_assert_cmpint(get(end, 0), ==, -EPROTO);
        g_assert_false(hca_shared_take_wake(end));
        /* Nor is it better when the peer is. */
        pair.memory[end == reader ? 0 : 1].own->produced = end->consumed + 1;
        pair.memory[end == reader ? 0 : 1].own->consumed = end->produced;
    }
    g_assert_cmpmem(end, sizeof(*end), &before, sizeof(before));
    g_assert_cmpuint(end->own->produced, ==, produced);
    g_assert_cmpuint(end->own->consumed, ==, consumed);
}

/* So many bytes are in the ring, and neither end has seen the other move. */
static void begin_used(uint64_t start, size_t used)
{
    begin_at(start);
    g_assert_cmpint(put_any(writer, used), ==, used);
}

static const size_t uses[] = { 0, 1, SIZE / 2, SIZE - 1, SIZE };
static const uint64_t starts[] = { SIZE, SIZE + 5, UINT64_MAX - SIZE / 3, 0,
                                   UINT64_C(1) << 63 };
static const uint64_t beyond[] = { 1,
                                   SIZE,
                                   SIZE + 1,
                                   UINT64_C(1) << 32,
                                   UINT64_C(1) << 63,
                                   UINT64_MAX - 2 * SIZE };

static void check_consumed(uint64_t start, size_t used)
{
    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(beyond); i++) {
        begin_used(start, used);
        put_any(writer, SIZE - used);
        readers->consumed = i & 1 ? writer->produced + beyond[i / 2]
                                  : start - beyond[i / 2];
        g_assert_cmpint(put(writer, 1), ==, -EPROTO);
        check_broken(writer);
        end();
    }
    begin_used(start, used);
    readers->consumed = writer->produced;
    g_assert_cmpint(put_any(writer, SIZE), ==, SIZE);
    end();
}

static void test_impossible_consumed(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(uses); i++) {
        for (unsigned k = 0; k < G_N_ELEMENTS(starts); k++) {
            check_consumed(starts[k], uses[i]);
        }
    }
}

static void check_produced(uint64_t start, size_t used)
{
    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(beyond); i++) {
        begin_used(start, used);
        g_assert_cmpint(get(reader, used), ==, used); /* as much is seen */
        put_any(writer, 10);
        writers->produced = i & 1 ? start + used + SIZE + beyond[i / 2]
                                  : start + used - beyond[i / 2];
        g_assert_cmpint(get(reader, 1), ==, -EPROTO);
        check_broken(reader);
        end();
    }
    begin_used(start, used);
    writers->produced = start + SIZE;
    g_assert_cmpint(get(reader, SIZE), ==, SIZE);
    end();
}

/* Back, but not so far as to what has been read. */
static void check_produced_back(size_t seen, size_t back)
{
    begin();
    put_any(writer, seen);
    get(reader, 1);
    writers->produced = seen - back;
    g_assert_cmpint(get(reader, SIZE), ==, -EPROTO);
    check_broken(reader);
    end();
}

/* The same of room: back, and the ring would not be too full. */
static void test_impossible_back(void)
{
    check_produced_back(10, 1);
    check_produced_back(10, 9);
    check_produced_back(SIZE, 1);
    begin();
    put_any(writer, SIZE);
    get(reader, 100);
    put_any(writer, 60);
    readers->consumed = 99;
    g_assert_cmpint(put(writer, 100), ==, -EPROTO);
    check_broken(writer);
    end();
}

/* By one byte, though there is some room, and something to read. */
static void test_impossible_by_one(void)
{
    begin_used(0, 10);
    readers->consumed = 11;
    g_assert_cmpint(put(writer, SIZE), ==, -EPROTO);
    check_broken(writer);
    g_assert_cmpint(get(reader, 4), ==, 4);
    writers->produced = 4 + SIZE + 1;
    g_assert_cmpint(get(reader, SIZE), ==, -EPROTO);
    check_broken(reader);
    end();
}

static void test_impossible_produced(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(uses); i++) {
        for (unsigned k = 0; k < G_N_ELEMENTS(starts); k++) {
            check_produced(starts[k], uses[i]);
        }
    }
}

/* What has been seen is good for as much as that, whatever is shown later. */
static void test_seen_once(void)
{
    begin();
    put(writer, 100);
    expect(40);
    writers->produced = 30;
    expect(60);
    readers->consumed = SIZE + 1;
    g_assert_cmpint(put(writer, SIZE - 100), ==, SIZE - 100);
    g_assert_cmpint(put(writer, 1), ==, -EPROTO);
    end();
}

/* ---- at random ---- */

typedef struct Model {
    GRand *rand;
    GByteArray *bytes[2]; /* unread, from each end */
    bool sleeps_to_read[2], sleeps_to_write[2];
    bool woken[2];
} Model;

static size_t random_length(GRand *rand)
{
    switch (g_rand_int_range(rand, 0, 4)) {
    case 0:
        return g_rand_int_range(rand, 1, 10);
    case 1:
        return g_rand_int_range(rand, 1, 5000);
    default:
        return g_rand_int_range(rand, 1, SIZE * 5 / 4);
    }
}

static void model_write(Model *model, unsigned side)
{
    GByteArray *bytes = model->bytes[side];
    size_t len = random_length(model->rand), room = SIZE - bytes->len;
    ssize_t n = put(&pair.end[side], len);

    g_assert_cmpint(n, ==, room ? (ssize_t)MIN(len, room) : -EAGAIN);
    model->sleeps_to_write[side] = n == -EAGAIN;
    if (n > 0) {
        g_byte_array_append(bytes, sent, n);
    }
}

static void model_read(Model *model, unsigned side)
{
    GByteArray *bytes = model->bytes[!side];
    size_t len = random_length(model->rand);
    ssize_t n = get(&pair.end[side], len);

    g_assert_cmpint(n, ==,
                    bytes->len ? (ssize_t)MIN(len, bytes->len) : -EAGAIN);
    model->sleeps_to_read[side] = n == -EAGAIN;
    if (n > 0) {
        g_assert_cmpmem(received, n, bytes->data, n);
        g_byte_array_remove_range(bytes, 0, n);
    }
}

/* Nobody sleeps in vain. An end that is woken does both. */
static void model_wake(Model *model, unsigned side)
{
    unsigned peer = !side;

    if (hca_shared_take_wake(&pair.end[side])) {
        model->sleeps_to_read[peer] = model->sleeps_to_write[peer] = false;
    }
    if (model->sleeps_to_read[peer]) {
        g_assert_cmpuint(model->bytes[side]->len, ==, 0);
    }
    if (model->sleeps_to_write[peer]) {
        g_assert_cmpuint(model->bytes[peer]->len, >, SIZE - ROOM);
    }
}

static void test_model(void)
{
    Model model = { .rand = g_rand_new_with_seed(11) };

    shared_pair_init(&pair, (uint64_t[2]) { 0, UINT64_MAX - 20 * SIZE });
    for (unsigned i = 0; i < 2; i++) {
        model.bytes[i] = g_byte_array_new();
    }
    for (unsigned i = 0; i < 1500; i++) {
        unsigned side = g_rand_int_range(model.rand, 0, 2);

        for (unsigned n = g_rand_int_range(model.rand, 1, 4); n; n--) {
            if (g_rand_boolean(model.rand)) {
                model_write(&model, side);
            } else {
                model_read(&model, side);
            }
        }
        model_wake(&model, side);
    }
    for (unsigned i = 0; i < 2; i++) {
        g_byte_array_free(model.bytes[i], TRUE);
    }
    g_rand_free(model.rand);
    end();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/shared/block", test_block);
    test_add("/shared/empty", test_empty);
    test_add("/shared/full", test_full);
    test_add("/shared/wrap", test_wrap);
    test_add("/shared/iovecs", test_iovecs);
    test_add("/shared/iovecs/long", test_iovecs_long);
    test_add("/shared/limit", test_limit);
    test_add("/shared/wake/reader", test_wake_reader);
    test_add("/shared/wake/early-reader", test_wake_early_reader);
    test_add("/shared/wake/writer", test_wake_writer);
    test_add("/shared/wake/early-writer", test_wake_early_writer);
    test_add("/shared/wake/both", test_wake_both);
    test_add("/shared/awake/reader", test_awake_reader);
    test_add("/shared/awake/writer", test_awake_writer);
    test_add("/shared/awake/sleeps-late", test_awake_sleeps_late);
    test_add("/shared/awake/idle", test_awake_idle);
    test_add("/shared/moment", test_moment);
    test_add("/shared/moment/impossible", test_moment_impossible);
    test_add("/shared/accept", test_accept);
    test_add("/shared/switch", test_switch);
    test_add("/shared/switch/write", test_switch_and_write);
    test_add("/shared/impossible/consumed", test_impossible_consumed);
    test_add("/shared/impossible/produced", test_impossible_produced);
    test_add("/shared/impossible/back", test_impossible_back);
    test_add("/shared/impossible/by-one", test_impossible_by_one);
    test_add("/shared/seen-once", test_seen_once);
    test_add("/shared/model", test_model);
    return g_test_run();
}
