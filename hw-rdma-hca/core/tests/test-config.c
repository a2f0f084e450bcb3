/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of options: what hca_config_init() sets and hca_config_check()
 * lets pass.
 */
#include <string.h>

#include "../config.h"
#include <glib.h>

static uint32_t *field(HcaConfig *config, const HcaOption *option)
{
    return &G_STRUCT_MEMBER(uint32_t, config, option->offset);
}

/* A RoCE card, which has all options, and room below for any cache. */
static void config_init(HcaConfig *config)
{
    hca_config_init(config);
    config->link_layer = HCA_LINK_LAYER_ROCE;
    config->cache_ways = 1;
}

static const char *check_with(const HcaOption *option, uint32_t value)
{
    HcaConfig config;

    config_init(&config);
    *field(&config, option) = value;
    return hca_config_check(&config);
}

static void test_defaults(void)
{
    HcaConfig config;
    unsigned number;
    const HcaOption *options = hca_config_options(&number);

    hca_config_init(&config);
    g_assert_null(hca_config_check(&config));
    for (unsigned i = 0; i < number; i++) {
        g_assert_cmpuint(*field(&config, &options[i]), ==, options[i].initial);
    }
    config.link_layer = HCA_LINK_LAYER_ROCE;
    g_assert_null(hca_config_check(&config));
}

/* As the documents of the RDMA engine (RPB, REB) and of VirtToPhys have them. */
static void test_documents(void)
{
    HcaConfig config;

    hca_config_init(&config);
    g_assert_cmpuint(config.rpb_elements, ==, 512);
    g_assert_cmpuint(config.reb_elements, ==, 16384);
    g_assert_cmpuint(config.log_qps, ==, 14);
    g_assert_cmpuint(config.log_mpts, ==, 15);
    g_assert_cmpuint(config.cache_ways, ==, 2);
    g_assert_cmpuint(config.mpt_cache_size, ==, 512 * 1024);
    g_assert_cmpuint(config.mtt_cache_size, ==, 512 * 1024);
}

/* Each limit, and what is next to it. */
static void test_limits(void)
{
    unsigned number;
    const HcaOption *options = hca_config_options(&number);

    for (unsigned i = 0; i < number; i++) {
        const HcaOption *o = &options[i];
        g_autofree char *start = g_strdup_printf("%s must be ", o->name);
        g_autofree char *range = g_strdup_printf("from %u to %u", o->least,
                                                 o->most);

        g_test_message("%s", o->message);
        g_assert_true(g_str_has_prefix(o->message, start));
        g_assert_true(g_str_has_suffix(o->message, o->limits));
        g_assert_nonnull(strstr(o->limits, range));
        g_assert_null(check_with(o, o->least));
        g_assert_cmpstr(check_with(o, 0), ==,
                        o->may_be_0 || !o->least ? NULL : o->message);
        g_assert_null(check_with(o, o->most));
        g_assert_cmpstr(check_with(o, o->most + 1), ==, o->message);
        if (o->least) {
            g_assert_cmpstr(check_with(o, o->least - 1), ==, o->message);
        }
        g_assert_cmpstr(check_with(o, o->most - 1), ==,
                        o->power_of_two ? o->message : NULL);
    }
}

/* An InfiniBand card has no use for some of them, whatever their value. */
static void test_link_layer(void)
{
    unsigned number, roce = 0;
    const HcaOption *options = hca_config_options(&number);

    for (unsigned i = 0; i < number; i++) {
        HcaConfig config;

        config_init(&config);
        config.link_layer = HCA_LINK_LAYER_IB;
        *field(&config, &options[i]) = options[i].most + 1;
        g_assert_cmpstr(hca_config_check(&config), ==,
                        options[i].roce ? NULL : options[i].message);
        roce += options[i].roce;
    }
    g_assert_cmpuint(roce, >, 0);
    g_assert_cmpuint(roce, <, number);
}

/* A cache with more ways than lines. */
static void test_caches(void)
{
    HcaConfig config;

    hca_config_init(&config);
    config.cache_ways = 16;
    config.mpt_cache_size = config.mtt_cache_size = 16 * 64;
    g_assert_null(hca_config_check(&config));
    config.mpt_cache_size /= 2;
    g_assert_true(
        g_str_has_prefix(hca_config_check(&config), "mpt-cache-size must be "));
    config.mpt_cache_size *= 2;
    config.mtt_cache_size /= 2;
    g_assert_true(
        g_str_has_prefix(hca_config_check(&config), "mtt-cache-size must be "));
}

/* Who manages a port: the peer says so, unless somebody says otherwise. */
static void test_managed(void)
{
    HcaConfig config;

    hca_config_init(&config);
    g_assert_cmpint(config.managed, ==, HCA_MANAGED_AUTO);
    for (unsigned i = 0; i < 6; i++) {
        config.managed = i;
        g_assert_cmpstr(hca_config_check(&config), ==,
                        i < 3 ? NULL : "managed must be on, off or auto");
    }
}

/* What another programming interface needs. */
static void test_personality(void)
{
    HcaConfig config;

    hca_config_init(&config);
    config.lid = 1;
    config.link_layer = HCA_LINK_LAYER_IB;
    config.num_vectors = 3;
    g_assert_cmpint(config.personality, ==, HCA_PERSONALITY_NATIVE);
    config.personality = HCA_PERSONALITY_MTHCA;
    g_assert_null(hca_config_check(&config));
    config.num_vectors = 2;
    g_assert_cmpstr(hca_config_check(&config), ==,
                    "personality=mthca needs 3 vectors");
    config.num_vectors = 3;
    config.link_layer = HCA_LINK_LAYER_ROCE;
    config.mac[5] = 1;
    g_assert_cmpstr(hca_config_check(&config), ==,
                    "personality=mthca has InfiniBand alone: link-layer=ib");
    config.personality = HCA_NPERSONALITIES;
    g_assert_cmpstr(hca_config_check(&config), ==,
                    "personality must be native or mthca");
}

/* Tables of the sizes that drivers take for granted, or larger ones. */
static void test_settle(void)
{
    HcaConfig config, native;

    hca_config_init(&native);
    config = native;
    hca_config_settle(&config);
    g_assert_cmpmem(&config, sizeof(config), &native, sizeof(native));
    config.personality = HCA_PERSONALITY_MTHCA;
    config.log_mpts = 20;
    hca_config_settle(&config);
    g_assert_cmpuint(config.log_qps, ==, 16);
    g_assert_cmpuint(config.log_cqs, ==, 16);
    g_assert_cmpuint(config.log_srqs, ==, 13);
    g_assert_cmpuint(config.log_eqs, ==, 5);
    g_assert_cmpuint(config.log_mpts, ==, 20);
    g_assert_cmpuint(config.log_pds, ==, 24);
    g_assert_cmpuint(config.max_mtu, ==, 4);
    g_assert_cmpuint(config.device_memory, ==, 0);
    g_assert_cmphex(config.identity.vendor_id, ==, 0x2c9);
    g_assert_cmpuint(config.identity.device_id, ==, 25204);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/config/defaults", test_defaults);
    g_test_add_func("/config/documents", test_documents);
    g_test_add_func("/config/limits", test_limits);
    g_test_add_func("/config/link-layer", test_link_layer);
    g_test_add_func("/config/caches", test_caches);
    g_test_add_func("/config/managed", test_managed);
    g_test_add_func("/config/personality", test_personality);
    g_test_add_func("/config/settle", test_settle);
    return g_test_run();
}
