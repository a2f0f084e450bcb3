/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of a card: defaults and checks. */
#include <glib.h>
#include <string.h>

#include "../abi/rdma_hca_sizes.h"
#include "config.h"
#include "port/gid_table.h"

void hca_config_init(HcaConfig *config)
{
    *config = (HcaConfig) {
        .log_qps = 14,
        .log_cqs = 14,
        .log_eqs = 5,
        .log_mpts = 15,
        .log_mtts = 20,
        .log_pds = 15,
        .mpt_cache_size = 512 * 1024,
        .mtt_cache_size = 512 * 1024,
        .cache_ways = 2,
        .rpb_elements = 512,
        .reb_elements = 16384,
        .swpb_elements = 4096,
        .link_layer = HCA_LINK_LAYER_IB,
        .lid = 1,
        .mac = { 0x52, 0x54, 0x00, 0x12, 0x34, 0x56 },
        .log_gids = 6,
        .osq_per_qp = 16,
        .cnp_timer_us = 1000,
        .cnp_interval_us = 50,
        .ack_policy = HCA_ACK_COALESCED,
        .max_mtu = 5,
        .num_pkeys = 1,
        .pkeys = { HCA_DEFAULT_PKEY },
        .guid = 0x525400fffe000001ull,
        .num_vectors = RDMA_HCA_MAX_EQS,
    };
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

/* What only a RoCE card has. */
static const char *check_roce(const HcaConfig *c)
{
    static const uint8_t zero[6];

    if ((c->mac[0] & 1) || !memcmp(c->mac, zero, sizeof(zero))) {
        return "mac must be a unicast address, and not zero";
    }
    if (c->log_gids > HCA_MAX_LOG_GIDS) {
        return "log-gids must be from 0 to 8";
    }
    if (c->osq_per_qp < 1 || c->osq_per_qp > 32768) {
        return "osq-per-qp must be from 1 to 32768";
    }
    if (c->cnp_timer_us < 1 || c->cnp_timer_us > 1000 * 1000) {
        return "cnp-timer-us must be from 1 to 1000000";
    }
    if (c->cnp_interval_us > 1000 * 1000) {
        return "cnp-interval-us must be from 0 to 1000000";
    }
    return NULL;
}

static const char *check_link(const HcaConfig *c)
{
    switch (c->link_layer) {
    case HCA_LINK_LAYER_ROCE:
        return check_roce(c);
    case HCA_LINK_LAYER_IB:
        return c->lid < 1 || c->lid > 0xbfff
                   ? "lid must be a unicast LID, from 1 to 49151"
                   : NULL;
    default:
        return "link-layer must be ib or roce";
    }
}

const char *hca_config_check(const HcaConfig *c)
{
    const char *message;

    if (c->log_qps < 2 || c->log_qps > 16) {
        return "log-qps must be from 2 to 16";
    }
    if (c->log_cqs < 1 || c->log_cqs > 16) {
        return "log-cqs must be from 1 to 16";
    }
    if (c->log_eqs < 1 || c->log_eqs > 5) {
        return "log-eqs must be from 1 to 5";
    }
    if (c->log_mpts < 4 || c->log_mpts > 20) {
        return "log-mpts must be from 4 to 20";
    }
    if (c->log_mtts < 4 || c->log_mtts > 24) {
        return "log-mtts must be from 4 to 24";
    }
    if (c->log_pds < 1 || c->log_pds > 24) {
        return "log-pds must be from 1 to 24";
    }
    if (!is_power_of_two(c->cache_ways) || c->cache_ways > 16) {
        return "cache-ways must be a power of two from 1 to 16";
    }
    if (!is_power_of_two(c->mpt_cache_size) ||
        c->mpt_cache_size / 64 < c->cache_ways ||
        c->mpt_cache_size > 64 * 1024 * 1024) {
        return "mpt-cache-size must be a power of two from 64 bytes a way to "
               "64 MiB";
    }
    if (!is_power_of_two(c->mtt_cache_size) ||
        c->mtt_cache_size / 64 < c->cache_ways ||
        c->mtt_cache_size > 64 * 1024 * 1024) {
        return "mtt-cache-size must be a power of two from 64 bytes a way to "
               "64 MiB";
    }
    if (!is_power_of_two(c->rpb_elements) || c->rpb_elements > 32768) {
        return "rpb-elements must be a power of two up to 32768";
    }
    if (!is_power_of_two(c->reb_elements) || c->reb_elements < 32 ||
        c->reb_elements > 32768) {
        return "reb-elements must be a power of two from 32 to 32768";
    }
    /* A packet of 4096 bytes takes 130 elements. */
    if (!is_power_of_two(c->swpb_elements) || c->swpb_elements < 512 ||
        c->swpb_elements > 32768) {
        return "swpb-elements must be a power of two from 512 to 32768";
    }
    if (c->ack_policy >= HCA_ACK_NPOLICIES) {
        return "ack-policy must be coalesced, requested or each";
    }
    if (c->max_mtu < 1 || c->max_mtu > 5) {
        return "max-mtu must be from 1 (256 bytes) to 5 (4096 bytes)";
    }
    if (c->num_vectors < 1 || c->num_vectors > 2048) {
        return "vectors must be from 1 to 2048";
    }
    message = pkeys_check(c);
    return message ? message : check_link(c);
}
