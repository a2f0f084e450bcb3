/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How every test program names its cases: a case runs as it is, or on each
 * link layer, first with InfiniBand cards and then, as /roce@path, with RoCE
 * cards. Order and meaning of the arguments are those of g_test_add_func() and
 * g_test_add_data_func().
 */
#ifndef LIB_TEST_H
#define LIB_TEST_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

void test_add(const char *path, GTestFunc test);
void test_add_data(const char *path, gconstpointer data, GTestDataFunc test);
void test_add_each_link(const char *path, GTestFunc test);
void test_add_data_each_link(const char *path, gconstpointer data,
                             GTestDataFunc test);

/* For cases that a loop makes: a path, a copy of @data; kept until the end. */
const char *test_named(const char *format, ...) G_GNUC_PRINTF(1, 2);
gconstpointer test_copy(gconstpointer data, size_t size);

/* @len bytes at random. */
void random_fill(GRand *rand, void *data, size_t len);

/* Whether the case that runs is one of RoCE cards. */
bool test_is_roce(void);

#endif /* LIB_TEST_H */
