/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two rings in shared memory with a thread at each end, which sleeps only when
 * it is told to: one wake-up that is missing, and the program hangs.
 */
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "lib-shared.h"
#include "lib-test.h"

typedef struct Bell {
    GMutex lock;
    GCond cond;
    bool rung;
} Bell;

static void bell_ring(Bell *bell)
{
    g_mutex_lock(&bell->lock);
    bell->rung = true;
    g_cond_signal(&bell->cond);
    g_mutex_unlock(&bell->lock);
}

static void bell_wait(Bell *bell)
{
    g_mutex_lock(&bell->lock);
    while (!bell->rung) {
        g_cond_wait(&bell->cond, &bell->lock);
    }
    bell->rung = false;
    g_mutex_unlock(&bell->lock);
}

typedef struct Party {
    HcaSharedEnd *end;
    Bell bell;
    struct Party *peer;
    GRand *rand;
    unsigned polls;  /* looks before it sleeps; 0: it does not poll */
    size_t most;     /* bytes in one call */
    uint64_t to_put; /* and to get */
    uint64_t to_get;
    uint8_t *bytes, *expected; /* @most */
} Party;

static bool party_puts(Party *party)
{
    struct iovec iov[2] = { { party->bytes, 0 } };
    size_t len;
    ssize_t n;

    if (!party->to_put) {
        return false;
    }
    len = g_rand_int_range(party->rand, 1, party->most + 1);
    len = MIN(len, party->to_put);
    shared_pattern(party->end->produced, party->bytes, len);
    iov[0].iov_len = len / 3;
    iov[1] = (struct iovec) { party->bytes + len / 3, len - len / 3 };
    n = hca_shared_writev(party->end, iov, 2);
    g_assert_true(n > 0 || n == -EAGAIN);
    party->to_put -= MAX(n, 0);
    return n > 0;
}

static bool party_gets(Party *party)
{
    uint64_t at = party->end->consumed;
    struct iovec iov = { party->bytes, 0 };
    ssize_t n;

    if (!party->to_get) {
        return false;
    }
    iov.iov_len = g_rand_int_range(party->rand, 1, party->most + 1);
    n = hca_shared_readv(party->end, &iov, 1);
    g_assert_true(n > 0 || n == -EAGAIN);
    if (n > 0) {
        shared_pattern(at, party->expected, n);
        g_assert_cmpmem(party->bytes, n, party->expected, n);
    }
    party->to_get -= MAX(n, 0);
    return n > 0;
}

/* Look for a while, then sleep if there is still nothing. */
static void party_rests(Party *party)
{
    if (party->polls) {
        for (unsigned i = 0; i < party->polls; i++) {
            if (hca_shared_is_ready(party->end)) {
                return;
            }
        }
        hca_shared_set_awake(party->end, false);
        if (!hca_shared_is_ready(party->end)) {
            bell_wait(&party->bell);
        }
        hca_shared_set_awake(party->end, true);
    } else {
        bell_wait(&party->bell);
    }
}

static void *party_run(void *opaque)
{
    Party *party = opaque;

    while (party->to_put || party->to_get) {
        bool more = party_puts(party);

        more |= party_gets(party);
        if (hca_shared_take_wake(party->end)) {
            bell_ring(&party->peer->bell);
        }
        if (!more && (party->to_put || party->to_get)) {
            party_rests(party);
        }
    }
    return NULL;
}

/* The same, and looks for itself now and then. */
static void *poller_run(void *opaque)
{
    Party *party = opaque;

    party->polls = g_rand_int_range(party->rand, 1, 200);
    hca_shared_set_awake(party->end, true);
    return party_run(party);
}

static void check_threads(GThreadFunc run, const size_t most[2],
                          const uint64_t total[2])
{
    GThread *threads[2];
    Party party[2];
    SharedPair pair;

    shared_pair_init(&pair, (uint64_t[2]) { 0, 0 });
    memset(party, 0, sizeof(party));
    for (unsigned i = 0; i < 2; i++) {
        party[i] = (Party) {
            .end = &pair.end[i],
            .peer = &party[!i],
            .rand = g_rand_new_with_seed(i),
            .most = most[i],
            .to_put = total[i],
            .to_get = total[!i],
            .bytes = g_malloc(most[i]),
            .expected = g_malloc(most[i]),
        };
        g_mutex_init(&party[i].bell.lock);
        g_cond_init(&party[i].bell.cond);
    }
    for (unsigned i = 0; i < 2; i++) {
        threads[i] = g_thread_new("party", run, &party[i]);
    }
    for (unsigned i = 0; i < 2; i++) {
        g_thread_join(threads[i]);
    }
    for (unsigned i = 0; i < 2; i++) {
        g_mutex_clear(&party[i].bell.lock);
        g_cond_clear(&party[i].bell.cond);
        g_rand_free(party[i].rand);
        g_free(party[i].bytes);
        g_free(party[i].expected);
    }
    shared_pair_destroy(&pair);
}

#define MIB (1024 * 1024)

/* The ring runs empty again and again. */
static void test_threads_small(void)
{
    check_threads(party_run, (size_t[2]) { 30, 100 },
                  (uint64_t[2]) { 2 * MIB, 3 * MIB });
}

/* And full: the reader takes little, the writer much. */
static void test_threads_full(void)
{
    check_threads(party_run, (size_t[2]) { 2 * MIB, 60000 },
                  (uint64_t[2]) { 40 * MIB, 0 });
}

static void test_threads_both(void)
{
    check_threads(party_run, (size_t[2]) { 3 * MIB, 700000 },
                  (uint64_t[2]) { 50 * MIB, 50 * MIB });
}

/* Byte by byte. */
static void test_threads_bytes(void)
{
    check_threads(party_run, (size_t[2]) { 1, 1 },
                  (uint64_t[2]) { 200000, 200000 });
}

/*
 * Ends that do nothing else, and are equally fast: they meet at the empty ring
 * all the time, and would soon sleep both if a barrier were missing.
 */
static void *racer_run(void *opaque)
{
    static uint8_t bytes[2][4096];
    Party *racer = opaque;
    struct iovec iov = { bytes[racer->to_put > 0], 4096 };

    for (uint64_t left = racer->to_put + racer->to_get; left;) {
        ssize_t n = racer->to_put ? hca_shared_writev(racer->end, &iov, 1)
                                  : hca_shared_readv(racer->end, &iov, 1);

        if (n == -EAGAIN) {
            bell_wait(&racer->bell);
            continue;
        }
        g_assert_cmpint(n, >, 0);
        left -= n;
        if (hca_shared_take_wake(racer->end)) {
            bell_ring(&racer->peer->bell);
        }
    }
    return NULL;
}

static void test_threads_race(void)
{
    check_threads(racer_run, (size_t[2]) { 1, 1 },
                  (uint64_t[2]) { 1024 * (uint64_t)MIB, 0 });
}

static void test_threads_polling(void)
{
    check_threads(poller_run, (size_t[2]) { 30, 100 },
                  (uint64_t[2]) { 2 * MIB, 3 * MIB });
    check_threads(poller_run, (size_t[2]) { 3 * MIB, 700000 },
                  (uint64_t[2]) { 50 * MIB, 50 * MIB });
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/shared/threads/small", test_threads_small);
    test_add("/shared/threads/full", test_threads_full);
    test_add("/shared/threads/both", test_threads_both);
    test_add("/shared/threads/bytes", test_threads_bytes);
    test_add("/shared/threads/race", test_threads_race);
    test_add("/shared/threads/polling", test_threads_polling);
    return g_test_run();
}
