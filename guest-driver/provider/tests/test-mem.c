// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Pages of doorbell records. */
#include "cases.h"
#include "lib-check.h"
#include "lib-objects.h"

void test_records(void)
{
	__le32 *record[200];
	size_t i, j;

	for (i = 0; i < 200; i++) {
		record[i] = rhca_record_alloc(&ctx, NULL);
		CHECK_EQ(*record[i], 0);
		*record[i] = htole32(~0u);
		for (j = 0; j < i; j++)
			CHECK(record[i] != record[j]);
	}
	for (i = 0; i < 200; i += 2)
		rhca_record_free(&ctx, NULL, record[i]);
	for (i = 0; i < 200; i += 2) {
		record[i] = rhca_record_alloc(&ctx, NULL);
		CHECK_EQ(*record[i], 0);
	}
	for (i = 0; i < 200; i++)
		rhca_record_free(&ctx, NULL, record[i]);
}
