/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What counters come to: rows that name counters, and their texts. */
#include "../counters.h"
#include "../front/derived.h"
#include "lib-pair.h"

static bool has_counter(const Hca *hca, const char *unit, const char *name)
{
    for (unsigned i = 0; i < hca_counters_number(); i++) {
        HcaCounter counter;

        hca_counter_get(hca, i, &counter);
        if (g_str_equal(counter.unit, unit) &&
            g_str_equal(counter.name, name)) {
            return true;
        }
    }
    return false;
}

static void test_counters(void)
{
    Pair *pair = pair_new(1, 4096);
    const Hca *hca = pair->lab->host[0].hca;
    unsigned n;
    const HcaDerived *row = hca_derived(&n);

    for (unsigned i = 0; i < n; i++, row++) {
        g_assert_true(has_counter(hca, row->unit, row->first));
        g_assert_cmpint(row->second == NULL, ==,
                        row->form == HCA_DERIVED_VALUE);
        if (row->second) {
            g_assert_true(has_counter(hca, row->unit, row->second));
        }
    }
    pair_free(pair);
}

/* A row has a name of its own in its line, and a line is in one place. */
static void test_lines(void)
{
    g_autoptr(GHashTable)
        names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable)
        lines = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autofree char *last = g_strdup("");
    unsigned n;
    const HcaDerived *row = hca_derived(&n);

    for (unsigned i = 0; i < n; i++, row++) {
        char *line = g_strdup_printf("%s %s", row->unit, row->subject);

        g_assert_true(
            g_hash_table_add(names, g_strdup_printf("%s %s", line, row->name)));
        if (!g_str_equal(line, last)) {
            g_assert_true(g_hash_table_add(lines, g_strdup(line)));
        }
        g_free(last);
        last = line;
    }
}

static void expect_text(HcaDerivedForm form, uint64_t first, uint64_t second,
                        const char *text)
{
    HcaDerived row = { .name = "x", .form = form };
    g_autofree char *found = hca_derived_text(&row, first, second);

    g_assert_cmpstr(found, ==, text);
}

static void test_texts(void)
{
    expect_text(HCA_DERIVED_RATE, 0, 0, NULL);
    expect_text(HCA_DERIVED_RATE, 0, 7, "x 0.0 %");
    expect_text(HCA_DERIVED_RATE, 7, 0, "x 100.0 %");
    expect_text(HCA_DERIVED_RATE, 2, 1, "x 66.7 %");
    expect_text(HCA_DERIVED_RATE, UINT64_MAX, UINT64_MAX, "x 50.0 %");
    expect_text(HCA_DERIVED_OF, 0, 16, NULL);
    expect_text(HCA_DERIVED_OF, 3, 16, "x 3 of 16");
    expect_text(HCA_DERIVED_MEAN, 0, 0, NULL);
    expect_text(HCA_DERIVED_MEAN, 1999, 2, "x 999 ns x 2");
    expect_text(HCA_DERIVED_VALUE, 0, 0, NULL);
    expect_text(HCA_DERIVED_VALUE, 5, 0, "x 5");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/derived/counters", test_counters);
    test_add("/derived/lines", test_lines);
    test_add("/derived/texts", test_texts);
    return g_test_run();
}
