/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-test.h"

#include <string.h>

typedef struct RoceTest {
    GTestFunc test;
    GTestDataFunc data_test; /* or this one, with... */
    gconstpointer data;
} RoceTest;

static bool on_roce;

/* What cases refer to: the program's, so it is no leak. */
static GSList *kept;

static gpointer keep(gpointer data)
{
    kept = g_slist_prepend(kept, data);
    return data;
}

const char *test_named(const char *format, ...)
{
    va_list ap;
    char *path;

    va_start(ap, format);
    path = g_strdup_vprintf(format, ap);
    va_end(ap);
    return keep(path);
}

gconstpointer test_copy(gconstpointer data, size_t size)
{
    return keep(g_memdup2(data, size));
}

void random_fill(GRand *rand, void *data, size_t len)
{
    uint8_t *to = data;

    for (size_t i = 0; i < len; i += sizeof(uint32_t)) {
        uint32_t word = g_rand_int(rand);

        memcpy(to + i, &word, MIN(len - i, sizeof(word)));
    }
}

bool test_is_roce(void)
{
    return on_roce;
}

void test_add(const char *path, GTestFunc test)
{
    g_test_add_func(path, test);
}

void test_add_data(const char *path, gconstpointer data, GTestDataFunc test)
{
    g_test_add_data_func(path, data, test);
}

static void run_on_roce(gconstpointer opaque)
{
    const RoceTest *test = opaque;

    on_roce = true;
    if (test->data_test) {
        test->data_test(test->data);
    } else {
        test->test();
    }
    on_roce = false;
}

static void add_on_roce(const char *path, RoceTest test)
{
    test_add_data(test_named("/roce%s", path), test_copy(&test, sizeof(test)),
                  run_on_roce);
}

void test_add_each_link(const char *path, GTestFunc test)
{
    test_add(path, test);
    add_on_roce(path, (RoceTest) { .test = test });
}

void test_add_data_each_link(const char *path, gconstpointer data,
                             GTestDataFunc test)
{
    test_add_data(path, data, test);
    add_on_roce(path, (RoceTest) { .data_test = test, .data = data });
}
