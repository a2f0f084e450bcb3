/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Checks: what does not hold is printed and counted, and the case goes on.
 */
#ifndef LIB_CHECK_H
#define LIB_CHECK_H

#include <errno.h>
#include <stdbool.h>

#define CHECK(cond) check_that(__func__, __LINE__, #cond, cond)
#define CHECK_EQ(a, b) check_equal(__func__, __LINE__, #a, a, b)

/* @call returns NULL, with @error in errno. */
#define CHECK_FAILS(call, error)                                               \
	do {                                                                   \
		errno = 0;                                                     \
		CHECK(!(call));                                                \
		CHECK_EQ(errno, error);                                        \
	} while (0)

/* Checks that have failed, of all cases so far. */
extern int check_failures;

/* What the macros are made of. */
void check_that(const char *func, int line, const char *what, bool holds);
void check_equal(const char *func, int line, const char *what,
		 unsigned long long is, unsigned long long expected);

/* @object; if there is none, the program ends: nothing can be tried with it. */
void *check_made(void *object, const char *what);

#endif /* LIB_CHECK_H */
