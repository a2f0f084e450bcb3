/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The peer of a ring in shared memory, who shows what it likes: positions, marks
 * and flags that can be and that cannot, before our calls and in the middle of
 * them, between any two steps. What we do has to fit what we say of it; the
 * peer's block may not be written, and next to both there is nothing.
 */
#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib-input.h"
#include "lib-meter.h"
#include "lib-machine.h"
#include "lib-shared.h"

#define SIZE ((size_t)HCA_SHARED_RING_SIZE)
#define MOST_IOVECS 8
#define MOST_RACES 4
/* Of a call, and more for each piece of memory that it copies. */
#define MOST_STEPS 64
#define STEPS_PER_IOVEC 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Something that the peer changes in its block. */
typedef struct Scribble {
    enum {
        PRODUCED,
        CONSUMED,
        WAKE_AT_PRODUCED,
        WAKE_AT_CONSUMED,
        SWITCHED,
        SWITCHED_AT,
        ACCEPTED,
        RING,
        NFIELDS
    } field;
    uint64_t value;
} Scribble;

typedef struct Race {
    unsigned step; /* of the next call */
    Scribble scribble;
} Race;

static SharedPair pair;
static HcaSharedEnd *const us = &pair.end[0];
static HcaSharedBlock *own, *peer; /* what we show, and what the peer does */

static Input in;
static Race races[MOST_RACES];
static unsigned nraces;
static bool raced; /* in the last call */
static unsigned steps;

/* What there should be, beside what the end knows itself. */
static struct {
    bool accepted, switched;
    uint64_t switched_at;
    bool peer_accepted, peer_switched;
    uint64_t peer_switched_at;
    uint8_t ring[SIZE]; /* our own */
} expected;

static uint8_t source[MOST_IOVECS * 1000 + SIZE], target[2 * SIZE];

/* ---- what the peer does ---- */

static void scribble(const Scribble *s)
{
    uint64_t *const fields64[NFIELDS] = {
        [PRODUCED] = &peer->produced,
        [CONSUMED] = &peer->consumed,
        [WAKE_AT_PRODUCED] = &peer->wake_at_produced,
        [WAKE_AT_CONSUMED] = &peer->wake_at_consumed,
        [SWITCHED_AT] = &peer->switched_at,
    };

    if (s->field == RING) {
        memset(peer->ring + s->value % (SIZE - 64), s->value >> 32, 64);
    } else if (fields64[s->field]) {
        *fields64[s->field] = s->value;
    } else {
        *(s->field == SWITCHED ? &peer->switched : &peer->accepted) = s->value;
    }
}

/* Positions near ours, for the most part. */
static uint64_t take_position(void)
{
    uint8_t kind = take8(&in);
    const uint64_t near[] = { us->produced, us->consumed, us->peer_produced,
                              us->peer_consumed };
    uint64_t base = near[kind & 3];

    switch (kind >> 2 & 7) {
    case 0:
        return base + take8(&in);
    case 1:
        return base + SIZE;
    case 2:
        return base + take16(&in) * 33;
    case 3:
        return base + SIZE + 1;
    case 4:
        return base - 1 - take8(&in);
    case 5:
        return base - SIZE - 1 + take_below(&in, 3);
    case 6:
        return base + take_odd(&in);
    default:
        return take_odd(&in);
    }
}

static Scribble take_scribble(void)
{
    Scribble s = { .field = take_below(&in, NFIELDS) };

    if (s.field == SWITCHED || s.field == ACCEPTED) {
        s.value = take_below(&in, 3);
    } else {
        s.value = take_position();
    }
    return s;
}

/* Between two steps of ours. */
static void between(void)
{
    for (unsigned i = 0; i < nraces; i++) {
        if (races[i].step == steps) {
            scribble(&races[i].scribble);
            raced = true;
        }
    }
    steps++;
}

static void begin_call(void)
{
    steps = 0;
    raced = false;
    meter_between = between;
}

static void end_call(unsigned niovecs)
{
    meter_between = NULL;
    nraces = 0;
    g_assert_cmpuint(steps, <=, MOST_STEPS + niovecs * STEPS_PER_IOVEC);
}

/* ---- what has to be true ---- */

/* Nothing in our control part but what we mean to show. */
static void check_shown(void)
{
    static HcaSharedBlock image;

    hca_shared_block_init(&image);
    image.accepted = expected.accepted;
    image.switched = expected.switched;
    image.switched_at = expected.switched_at;
    image.produced = us->produced;
    image.consumed = us->consumed;
    image.wake_at_produced = us->wake_at_produced;
    image.wake_at_consumed = us->wake_at_consumed;
    g_assert_true(memcmp(&image, own, HCA_SHARED_PAGE) == 0);
    g_assert_cmpuint(us->produced - us->peer_consumed, <=, SIZE);
    g_assert_cmpuint(us->peer_produced - us->consumed, <=, SIZE);
}

/* A broken end does nothing. */
static void check_broken(const HcaSharedEnd *before, ssize_t n)
{
    g_assert_true(us->broken);
    g_assert_cmpint(n, ==, -EPROTO);
    g_assert_cmpuint(us->produced, ==, before->produced);
    g_assert_cmpuint(us->consumed, ==, before->consumed);
    if (before->broken) {
        g_assert_true(memcmp(us, before, sizeof(*us)) == 0);
    }
}

/*
 * What a call comes to that looks at a position of the peer's once: it wants
 * @total of @there bytes, which may become @shown more, and no more than
 * @most.
 */
static ssize_t result(size_t total, size_t there, uint64_t shown, size_t most)
{
    total = MIN(total, SIZE);
    if (us->broken && total == 0) {
        return -EPROTO;
    }
    if (there < total) {
        if (shown > most) {
            return -EPROTO;
        }
        there += shown;
    }
    return total == 0 ? 0 : there ? (ssize_t)MIN(there, total) : -EAGAIN;
}

static size_t take_length(void)
{
    uint8_t kind = take8(&in);

    switch (kind & 7) {
    case 0:
        return take8(&in);
    case 1:
        return take16(&in);
    case 2:
        return take16(&in) * 33;
    case 3:
        return SIZE - take8(&in);
    case 4:
        return SIZE / 2 - 100 + take8(&in);
    case 5:
        return kind & 8 ? SIZE_MAX - take8(&in) : 0;
    case 6:
        return take_odd(&in);
    default:
        return 1;
    }
}

/* Pieces whose lengths are the input's, each of them in memory of its own. */
static unsigned take_lengths(struct iovec *iov, size_t *total)
{
    unsigned n = 1 + take_below(&in, MOST_IOVECS);

    n = n > MOST_IOVECS / 2 ? 1 : n;
    *total = 0;
    for (unsigned i = 0; i < n; i++) {
        iov[i].iov_len = take_length();
        *total += MIN(iov[i].iov_len, SIZE);
    }
    return n;
}

/* ---- what we do ---- */

/* Our ring has what the call was given. */
static void note_written(const struct iovec *iov, uint64_t at, size_t n)
{
    for (; n; iov++) {
        size_t part = MIN(n, iov->iov_len);
        const uint8_t *from = iov->iov_base;

        for (size_t i = 0, run; i < part; i += run) {
            size_t offset = (at + i) % SIZE;

            run = MIN(part - i, SIZE - offset);
            memcpy(expected.ring + offset, from + i, run);
            g_assert_true(memcmp(own->ring + offset, from + i, run) == 0);
        }
        at += part;
        n -= part;
    }
}

static void check_written(const HcaSharedEnd *before, const struct iovec *iov,
                          size_t total, ssize_t n)
{
    if (before->broken || n == -EPROTO) {
        check_broken(before, n);
        return;
    }
    g_assert_false(us->broken);
    if (n == -EAGAIN) {
        g_assert_cmpuint(us->produced, ==, before->produced);
        g_assert_cmpuint(us->produced - us->peer_consumed, ==, SIZE);
        g_assert_true(us->wants_room);
        if (!us->awake) {
            g_assert_cmpuint(us->wake_at_consumed - us->peer_consumed, ==,
                             HCA_SHARED_WAKE_ROOM);
        }
        return;
    }
    g_assert_cmpuint(n, <=, MIN(total, SIZE));
    g_assert_true(n > 0 || total == 0);
    g_assert_cmpuint(us->produced, ==, before->produced + n);
    g_assert_cmpuint(us->peer_consumed - before->peer_consumed, <=,
                     before->produced - before->peer_consumed);
    note_written(iov, before->produced, n);
}

static void act_write(void)
{
    struct iovec iov[MOST_IOVECS];
    size_t total;
    unsigned niovecs = take_lengths(iov, &total);
    HcaSharedEnd before = *us;
    size_t used = before.produced - before.peer_consumed;
    ssize_t n, quiet = result(total, SIZE - used,
                              peer->consumed - before.peer_consumed, used);

    for (unsigned i = 0; i < niovecs; i++) {
        iov[i].iov_base = iov[i].iov_len ? source + i * 1000 : NULL;
    }
    begin_call();
    n = hca_shared_writev(us, iov, niovecs);
    end_call(niovecs);
    check_written(&before, iov, total, n);
    if (!raced && !before.broken) {
        g_assert_cmpint(n, ==, quiet);
    }
}

/* @n bytes have been given, and nothing lies behind them. */
static void check_given(const uint8_t *to, size_t wanted, uint64_t at, size_t n)
{
    size_t offset = at % SIZE, first = MIN(n, SIZE - offset);

    if (!raced) {
        g_assert_true(memcmp(to, peer->ring + offset, first) == 0);
        g_assert_true(memcmp(to + first, peer->ring, n - first) == 0);
    }
    for (size_t i = n; i < MIN(wanted, n + 64); i++) {
        g_assert_cmphex(to[i], ==, 0xa5);
    }
}

static void check_read(const HcaSharedEnd *before, size_t total, ssize_t n)
{
    if (before->broken || n == -EPROTO) {
        check_broken(before, n);
        return;
    }
    g_assert_false(us->broken);
    if (n == -EAGAIN) {
        g_assert_cmpuint(us->consumed, ==, before->consumed);
        g_assert_cmpuint(us->peer_produced, ==, us->consumed);
        g_assert_true(us->wants_bytes);
        if (!us->awake) {
            g_assert_cmpuint(us->wake_at_produced, ==, us->consumed + 1);
        }
        return;
    }
    g_assert_cmpuint(n, <=, MIN(total, SIZE));
    g_assert_true(n > 0 || total == 0);
    g_assert_cmpuint(us->consumed, ==, before->consumed + n);
    g_assert_cmpuint(us->peer_produced - before->peer_produced, <=,
                     SIZE - (before->peer_produced - before->consumed));
}

/* The pieces of a read follow each other, up to the end of all memory. */
static uint8_t *place(struct iovec *iov, unsigned n, size_t total)
{
    uint8_t *begin = target + sizeof(target) - MIN(total, SIZE), *to = begin;

    for (unsigned i = 0; i < n; i++) {
        size_t left = target + sizeof(target) - to;

        iov[i].iov_base = iov[i].iov_len ? to : NULL;
        to += MIN(left, iov[i].iov_len);
    }
    memset(begin, 0xa5, MIN(total, SIZE));
    return begin;
}

static void act_read(void)
{
    struct iovec iov[MOST_IOVECS];
    size_t total;
    unsigned niovecs = take_lengths(iov, &total);
    uint8_t *begin = place(iov, niovecs, total);
    HcaSharedEnd before = *us;
    size_t there = before.peer_produced - before.consumed;
    ssize_t n,
        quiet = result(total, there, peer->produced - before.peer_produced,
                       SIZE - there);

    begin_call();
    n = hca_shared_readv(us, iov, niovecs);
    end_call(niovecs);
    check_read(&before, total, n);
    check_given(begin, MIN(total, SIZE), before.consumed, MAX(n, 0));
    if (!raced && !before.broken) {
        g_assert_cmpint(n, ==, quiet);
    }
}

/* Whether the way from @before to @now leads over @mark. */
static bool leads_over(uint64_t before, uint64_t now, uint64_t mark)
{
    return mark - before - 1 < now - before;
}

static void act_wake(void)
{
    HcaSharedEnd before = *us;
    bool quiet = before.has_switched ||
                 leads_over(before.checked_produced, before.produced,
                            peer->wake_at_produced) ||
                 leads_over(before.checked_consumed, before.consumed,
                            peer->wake_at_consumed);
    bool due;

    begin_call();
    due = hca_shared_take_wake(us);
    end_call(0);
    if (before.broken) {
        check_broken(&before, -EPROTO);
        g_assert_false(due);
        return;
    }
    g_assert_true(raced || due == quiet);
    begin_call();
    g_assert_false(hca_shared_take_wake(us));
    end_call(0);
}

/* Nothing is there that was missing, as far as the peer has shown us. */
static bool is_quiet(void)
{
    return (!us->wants_bytes || us->peer_produced == us->consumed) &&
           (!us->wants_room ||
            SIZE - (us->produced - us->peer_consumed) < HCA_SHARED_WAKE_ROOM);
}

static void act_awake(void)
{
    bool ready;

    begin_call();
    if (take_bool(&in)) {
        hca_shared_set_awake(us, take_bool(&in));
        end_call(0);
        return;
    }
    ready = hca_shared_is_ready(us);
    end_call(0);
    g_assert_true(us->broken || ready == !is_quiet());
    g_assert_true(ready || !us->broken);
    if (!ready && !raced) {
        g_assert_true(!us->wants_bytes || peer->produced == us->consumed);
    }
}

static void act_accept(void)
{
    bool accepted;

    if (take_bool(&in)) {
        hca_shared_accept(us);
        expected.accepted = true;
        return;
    }
    begin_call();
    accepted = hca_shared_is_accepted(us);
    end_call(0);
    g_assert_true(accepted || !expected.peer_accepted);
    g_assert_true(raced ||
                  accepted == (expected.peer_accepted || peer->accepted == 1));
    expected.peer_accepted = accepted;
}

static void act_switch(void)
{
    uint64_t bytes = 0;
    bool switched;

    if (take_bool(&in)) {
        expected.switched_at = take_odd(&in);
        expected.switched = true;
        hca_shared_switch(us, expected.switched_at);
        return;
    }
    begin_call();
    switched = hca_shared_peer_switched(us, &bytes);
    end_call(0);
    if (expected.peer_switched) {
        g_assert_true(switched);
        g_assert_cmpuint(bytes, ==, expected.peer_switched_at);
    } else if (!raced) {
        g_assert_true(switched == (peer->switched == 1));
        g_assert_true(!switched || bytes == peer->switched_at);
    }
    expected.peer_switched = switched;
    expected.peer_switched_at = bytes;
}

/* ---- what the peer does, as it should ---- */

static void act_put(void)
{
    uint64_t room = SIZE - (peer->produced - us->consumed);

    if (room <= SIZE) {
        peer->produced += MIN(take_length(), room);
    }
}

static void act_get(void)
{
    uint64_t there = us->produced - peer->consumed;

    if (there <= SIZE) {
        peer->consumed += MIN(take_length(), there);
    }
}

static void act_sleep(void)
{
    if (take_bool(&in)) {
        peer->wake_at_produced = us->produced + 1;
    } else {
        peer->wake_at_consumed = us->consumed + take16(&in) * 9;
    }
}

/* ---- and as it likes ---- */

static void act_scribble(void)
{
    Scribble s = take_scribble();

    scribble(&s);
}

static void act_race(void)
{
    Race race = { .step = take_below(&in, 16), .scribble = take_scribble() };

    if (nraces < MOST_RACES) {
        races[nraces++] = race;
    }
}

/* Positions where rings, and numbers, end. */
static uint64_t take_start(void)
{
    uint8_t kind = take8(&in);

    switch (kind & 3) {
    case 0:
        return 0;
    case 1:
        return SIZE - take8(&in);
    case 2:
        return UINT64_MAX - take16(&in) * (kind >> 2);
    default:
        return take_odd(&in);
    }
}

/* Two new ends, in the same memory. */
static void act_restart(void)
{
    uint64_t start[2];

    start[0] = take_start();
    start[1] = take_start();
    shared_pair_restart(&pair, start);
    nraces = 0;
    memset(&expected, 0, offsetof(typeof(expected), ring));
}

static const struct {
    const char *name;
    void (*act)(void);
} actions[] = {
    { "write", act_write },     { "read", act_read },
    { "put", act_put },         { "get", act_get },
    { "wake", act_wake },       { "sleep", act_sleep },
    { "race", act_race },       { "scribble", act_scribble },
    { "accept", act_accept },   { "switch", act_switch },
    { "restart", act_restart }, { "awake", act_awake },
};

static void make_memory(void)
{
    static const uint64_t from_zero[2];

    if (own) {
        return;
    }
    shared_pair_init(&pair, from_zero);
    own = pair.memory[0].own;
    peer = pair.memory[1].own;
    shared_pattern(12345, source, sizeof(source));
    shared_pattern(54321, peer->ring, SIZE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool traces = g_getenv("HCA_TRACE") != NULL;

    make_memory();
    in = (Input) { data, size };
    act_restart();
    while (in.left) {
        unsigned which = take_below(&in, G_N_ELEMENTS(actions));

        if (traces) {
            fprintf(stderr, "%s\n", actions[which].name);
        }
        actions[which].act();
        check_shown();
    }
    g_assert_true(memcmp(expected.ring, own->ring, SIZE) == 0);
    return 0;
}
