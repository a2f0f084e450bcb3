// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib-check.h"

int check_failures;

void check_that(const char *func, int line, const char *what, bool holds)
{
	if (holds)
		return;
	check_failures++;
	printf("# %s:%d: %s\n", func, line, what);
}

void check_equal(const char *func, int line, const char *what,
		 unsigned long long is, unsigned long long expected)
{
	if (is == expected)
		return;
	check_failures++;
	printf("# %s:%d: %s is %#llx, not %#llx\n", func, line, what, is,
	       expected);
}

void *check_made(void *object, const char *what)
{
	if (!object) {
		printf("# no %s: %s\n", what, strerror(errno));
		exit(1);
	}
	return object;
}
