/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a card is made with: defaults, checks, and the table of options.
 */
#include "config.h"

#include <glib.h>
#include <string.h>

#include "../abi/rdma_hca_sizes.h"

/* Bytes of a line of both caches. */
#define CACHE_LINE 64

#define SHAPE_ANY ""
#define SHAPE_POWER "a power of two "
#define SHAPE_NONE_OR_POWER "0 or a power of two "
#define SUFFIX_NONE ""
#define SUFFIX_BYTES " bytes"
#define SUFFIX_MS " milliseconds"
#define SUFFIX_US " microseconds"
#define SUFFIX_NS " nanoseconds"
#define IS_POWER_ANY false
#define IS_POWER_POWER true
#define IS_POWER_NONE_OR_POWER true
#define MAY_BE_0_ANY false
#define MAY_BE_0_POWER false
#define MAY_BE_0_NONE_OR_POWER true
#define IS_ROCE_BOTH false
#define IS_ROCE_ROCE true

#define LIMITS(least, most, shape, unit)                                       \
    SHAPE_##shape "from " G_STRINGIFY(least) " to " G_STRINGIFY(most)          \
        SUFFIX_##unit

#define OPTION(field, option, value, low, high, shape, of_unit, layer, what)   \
    {                                                                          \
        .name = option,                                                        \
        .text = what,                                                          \
        .limits = LIMITS(low, high, shape, of_unit),                           \
        .message = option " must be " LIMITS(low, high, shape, of_unit),       \
        .offset = offsetof(HcaConfig, field),                                  \
        .initial = value,                                                      \
        .least = low,                                                          \
        .most = high,                                                          \
        .power_of_two = IS_POWER_##shape,                                      \
        .may_be_0 = MAY_BE_0_##shape,                                          \
        .roce = IS_ROCE_##layer,                                               \
        .unit = HCA_UNIT_##of_unit,                                            \
    },

static const HcaOption options[] = { HCA_OPTIONS(OPTION) };

const HcaOption *hca_config_options(unsigned *number)
{
    *number = G_N_ELEMENTS(options);
    return options;
}

/* QEMU's OUI, and the PCI device's ID. */
static const HcaIdentity native = { 0x525400, 0x10f0, 1 };
/* As that card says, by which programs know its kind. */
static const HcaIdentity mthca = { 0x0002c9, 25204, 0xa0 };

void hca_config_init(HcaConfig *config)
{
    *config = (HcaConfig) {
        .identity = native,
        .link_layer = HCA_LINK_LAYER_IB,
        .cable = HCA_CABLE_CARD,
        .lid = 1,
        .mac = { 0x52, 0x54, 0x00, 0x12, 0x34, 0x56 },
        .ack_policy = HCA_ACK_COALESCED,
        .max_mtu = 5,
        .num_pkeys = 1,
        .pkeys = { HCA_DEFAULT_PKEY },
        .guid = 0x525400fffe000001ull,
        .num_vectors = RDMA_HCA_MAX_EQS,
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(options); i++) {
        const HcaOption *option = &options[i];

        G_STRUCT_MEMBER(uint32_t, config, option->offset) = option->initial;
    }
}

/* Whether each entry of the P_Key table is of a partition (IBA 10.9.1.2). */
static const char *pkeys_check(const HcaConfig *c)
{
    if (c->num_pkeys < 1 || c->num_pkeys > RDMA_HCA_MAX_PKEYS) {
        return "pkeys must be from 1 to 32 keys";
    }
    for (unsigned i = 0; i < c->num_pkeys; i++) {
        if (!(c->pkeys[i] & 0x7fff)) {
            return "pkeys must be 16-bit P_Keys, other than 0 and 0x8000, "
                   "separated by colons";
        }
    }
    return NULL;
}

/* A P_Key in the way that C writes numbers; 0: it is none. */
static uint16_t parse_pkey(const char *text)
{
    guint64 value;
    char *end;

    if (!g_ascii_isdigit(text[0])) {
        return 0;
    }
    value = g_ascii_strtoull(text, &end, 0);
    return !*end && value <= UINT16_MAX ? value : 0;
}

const char *hca_config_set_pkeys(HcaConfig *config, const char *list)
{
    g_auto(GStrv) text = g_strsplit(list, ":", RDMA_HCA_MAX_PKEYS + 1);
    unsigned n = g_strv_length(text);

    if (n > RDMA_HCA_MAX_PKEYS) {
        return "pkeys takes no more than 32 keys";
    }
    config->num_pkeys = n;
    memset(config->pkeys, 0, sizeof(config->pkeys));
    for (unsigned i = 0; i < n; i++) {
        config->pkeys[i] = parse_pkey(text[i]);
    }
    return pkeys_check(config);
}

static bool is_power_of_two(uint32_t n)
{
    return n && !(n & (n - 1));
}

static bool value_ok(const HcaOption *option, uint32_t value)
{
    return (option->may_be_0 && !value) ||
           (value >= option->least && value <= option->most &&
            (!option->power_of_two || is_power_of_two(value)));
}

static const char *check_options(const HcaConfig *c)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(options); i++) {
        const HcaOption *option = &options[i];
        uint32_t value = G_STRUCT_MEMBER(uint32_t, c, option->offset);

        if (option->roce && !hca_config_is_roce(c)) {
            continue;
        }
        if (!value_ok(option, value)) {
            return option->message;
        }
    }
    return NULL;
}

/* Each way of a cache has a line at least. */
static const char *check_caches(const HcaConfig *c)
{
    if (c->mpt_cache_size / CACHE_LINE < c->cache_ways) {
        return "mpt-cache-size must be 64 bytes a way at least";
    }
    if (c->mtt_cache_size / CACHE_LINE < c->cache_ways) {
        return "mtt-cache-size must be 64 bytes a way at least";
    }
    return NULL;
}

static const char *check_link(const HcaConfig *c)
{
    static const uint8_t zero[6];

    switch (c->link_layer) {
    case HCA_LINK_LAYER_ROCE:
        return (c->mac[0] & 1) || !memcmp(c->mac, zero, sizeof(zero))
                   ? "mac must be a unicast address, and not zero"
                   : NULL;
    case HCA_LINK_LAYER_IB:
        return c->lid < 1 || c->lid > 0xbfff
                   ? "lid must be a unicast LID, from 1 to 49151"
                   : NULL;
    default:
        return "link-layer must be ib or roce";
    }
}

static const char *check_personality(const HcaConfig *c)
{
    if (c->personality >= HCA_NPERSONALITIES) {
        return "personality must be native or mthca";
    }
    if (c->personality == HCA_PERSONALITY_NATIVE) {
        return NULL;
    }
    if (hca_config_is_roce(c)) {
        return "personality=mthca has InfiniBand alone: link-layer=ib";
    }
    return c->num_vectors < 3 ? "personality=mthca needs 3 vectors" : NULL;
}

static const char *check_cable(const HcaConfig *c)
{
    return c->cable >= HCA_CABLE_NPROTOCOLS ||
                   (c->cable != HCA_CABLE_CARD && !hca_config_is_roce(c))
               ? "cable must be one between cards, as link-layer=ib has no other"
               : NULL;
}

/* What is not a plain number, or is given in another way. */
static const char *check_others(const HcaConfig *c)
{
    if (c->ack_policy >= HCA_ACK_NPOLICIES) {
        return "ack-policy must be coalesced, requested or each";
    }
    if (c->max_mtu < 1 || c->max_mtu > 5) {
        return "max-mtu must be from 1 (256 bytes) to 5 (4096 bytes)";
    }
    if (c->managed >= HCA_MANAGED_NCHOICES) {
        return "managed must be on, off or auto";
    }
    if (c->num_vectors < 1 || c->num_vectors > 2048) {
        return "vectors must be from 1 to 2048";
    }
    return NULL;
}

/*
 * Logarithms: what ib_mthca's own profile has, and PDs that have tags. That card
 * has no larger MTU, and no memory for programs.
 */
void hca_config_settle(HcaConfig *config)
{
    if (config->personality == HCA_PERSONALITY_MTHCA) {
        config->log_qps = MAX(config->log_qps, 16);
        config->log_cqs = MAX(config->log_cqs, 16);
        config->log_srqs = MAX(config->log_srqs, 13);
        config->log_srq_wqes = MAX(config->log_srq_wqes, 15);
        config->log_eqs = MAX(config->log_eqs, 5);
        config->log_mpts = MAX(config->log_mpts, 17);
        config->log_pds = MAX(config->log_pds, 24);
        config->max_mtu = MIN(config->max_mtu, 4); /* 2048 bytes */
        config->device_memory = 0;
        config->identity = mthca;
    }
}

const char *hca_config_check(const HcaConfig *config)
{
    static const char *(*const checks[])(const HcaConfig *) = {
        check_options, check_caches, check_others,      pkeys_check,
        check_link,    check_cable,  check_personality,
    };
    const char *message = NULL;

    for (unsigned i = 0; i < G_N_ELEMENTS(checks) && !message; i++) {
        message = checks[i](config);
    }
    return message;
}
