/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the user of a card gives it: options, with P_Keys as text, plans of
 * faults and captures. Those that pass the checks have to make a card that
 * works; sizes are then cut so that cards stay small.
 */
#include <string.h>

#include "lib-frame.h"

#define MOST_LOG 6
#define MOST_BYTES 4096

/* ---- options ---- */

static uint32_t take_value(Fuzz *f, const HcaOption *option)
{
    switch (take_below(&f->in, 8)) {
    case 0:
        return option->least;
    case 1:
        return option->most;
    case 2:
        return option->least - 1;
    case 3:
        return option->most + 1;
    case 4:
        return take_odd(&f->in);
    case 5:
        return option->least + take8(&f->in);
    case 6:
        return 1u << take_below(&f->in, 32);
    default:
        return option->initial;
    }
}

/* Some options, and what is not a plain number. */
static void take_options(Fuzz *f, HcaConfig *config)
{
    unsigned number;
    const HcaOption *options = hca_config_options(&number);
    char text[72];

    for (unsigned n = take_below(&f->in, 8); n; n--) {
        const HcaOption *option = &options[take_below(&f->in, number)];

        G_STRUCT_MEMBER(uint32_t, config, option->offset) = take_value(f,
                                                                       option);
    }
    switch (take_below(&f->in, 8)) {
    case 0:
        take_bytes(&f->in, text, sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        hca_config_set_pkeys(config, text);
        break;
    case 1:
        config->lid = take_odd(&f->in);
        break;
    case 2:
        take_bytes(&f->in, config->mac, sizeof(config->mac));
        break;
    case 3:
        config->ack_policy = take_below(&f->in, HCA_ACK_NPOLICIES + 1);
        break;
    case 4:
        config->max_mtu = take8(&f->in);
        break;
    case 5:
        config->num_vectors = take_odd(&f->in);
        break;
    case 6:
        config->link_layer = take_below(&f->in, 4);
        break;
    }
}

static void bound(uint32_t *value, uint32_t least, uint32_t most)
{
    *value = CLAMP(*value, least, most);
}

/* A card that the driver of the tests can drive, of the same kind. */
static void cut(HcaConfig *config, const HcaConfig *small)
{
    bound(&config->log_qps, small->log_qps, MOST_LOG);
    bound(&config->log_cqs, small->log_cqs, MOST_LOG);
    bound(&config->log_eqs, small->log_eqs, 5);
    bound(&config->log_srqs, small->log_srqs, MOST_LOG);
    bound(&config->log_srq_wqes, small->log_srq_wqes, 15);
    bound(&config->log_mpts, small->log_mpts, 8);
    bound(&config->log_mtts, small->log_mtts, 10);
    bound(&config->log_pds, small->log_pds, 24);
    bound(&config->log_sq_slots, small->log_sq_slots, 16);
    bound(&config->log_gids, small->log_gids, HCA_MAX_LOG_GIDS);
    bound(&config->log_flows, small->log_flows, HCA_MAX_LOG_FLOWS);
    bound(&config->mpt_cache_size, 0, MOST_BYTES);
    bound(&config->mtt_cache_size, 0, MOST_BYTES);
    bound(&config->device_memory, 0, MOST_BYTES);
    bound(&config->recorder, 0, 1024);
    /* Memory that is slower than a peer's patience is no fault of the card's. */
    bound(&config->memory_latency_ns, 0, 20000);
    if (config->memory_bandwidth) {
        bound(&config->memory_bandwidth, 1000, UINT32_MAX);
    }
    bound(&config->num_vectors, small->num_vectors, 2048);
    /* As the connections of the tests have it. */
    config->pkeys[0] = HCA_DEFAULT_PKEY;
    config->lid = small->lid;
    memcpy(config->mac, small->mac, sizeof(config->mac));
    config->link_layer = small->link_layer;
}

static void take_config(Fuzz *f, unsigned side, bool roce, HcaConfig *config)
{
    HcaConfig small;

    fuzz_config(&small, side, roce);
    *config = small;
    take_options(f, config);
    if (!hca_config_check(config)) {
        cut(config, &small);
    }
    /* What is good for one link layer need not be for the other. */
    if (hca_config_check(config)) {
        *config = small;
    }
}

/* ---- faults ---- */

static void take_rule(Fuzz *f, HcaFaultRule *rule)
{
    uint8_t odd = take8(&f->in);

    *rule = (HcaFaultRule) {
        .action = take_below(&f->in, HCA_FAULT_NPACKET_ACTIONS),
        .directions = 3,
        .probability = HCA_FAULT_ALWAYS,
        .offset = -1,
    };
    if (odd & 1) {
        rule->directions = take8(&f->in);
        rule->kinds = take16(&f->in);
    }
    if (odd & 2) {
        rule->match_opcode = rule->match_qpn = true;
        rule->opcode = take8(&f->in);
        rule->qpn = 2 + take_below(&f->in, FUZZ_NQPS);
    }
    if (odd & 4) {
        rule->match_psn = true;
        rule->psn_first = 0x123456 + take_below(&f->in, 16);
        rule->psn_last = rule->psn_first + take_odd(&f->in);
    }
    if (odd & 8) {
        rule->skip = take8(&f->in);
        rule->every = take_odd(&f->in);
        rule->count = take_below(&f->in, 8);
    }
    if (odd & 16) {
        rule->probability = take_odd(&f->in);
    }
    if (odd & 32) {
        rule->distance = take_odd(&f->in);
        rule->delay_ns = take_odd(&f->in);
    }
    if (odd & 64) {
        rule->offset = take_odd(&f->in);
        rule->mask = take8(&f->in);
    }
    if (odd & 128) {
        rule->action = take8(&f->in);
    }
}

/* As the user does: a plan that does not pass the check is refused. */
static void give_plan(Host *host, const HcaFaultPlan *plan)
{
    if (!hca_fault_check(plan)) {
        host_set_faults(host, plan);
        host->kicked = true;
    }
}

static void act_faults(Fuzz *f)
{
    Host *host = &f->lab->host[fuzz_take_side(f)];
    HcaFaultPlan plan = { .seed = take8(&f->in) };

    plan.nrules = take_below(&f->in, 4);
    if (plan.nrules == 3) {
        plan.nrules = take_below(&f->in, HCA_FAULT_MAX_RULES + 2);
    }
    for (unsigned i = 0; i < MIN(plan.nrules, HCA_FAULT_MAX_RULES); i++) {
        take_rule(f, &plan.rule[i]);
    }
    give_plan(host, &plan);
}

/*
 * Of the host's side. Commands are left alone: the driver here expects that
 * they end.
 */
static void take_host_rule(Fuzz *f, HcaFaultRule *rule)
{
    static const struct {
        HcaFaultPlace place;
        HcaFaultAction action;
    } what[] = {
        { HCA_FAULT_DMA, HCA_FAULT_FAIL },
        { HCA_FAULT_DMA, HCA_FAULT_DELAY },
        { HCA_FAULT_INTERRUPT, HCA_FAULT_DROP },
        { HCA_FAULT_INTERRUPT, HCA_FAULT_DUPLICATE },
        { HCA_FAULT_INTERRUPT, HCA_FAULT_DELAY },
        { HCA_FAULT_DOORBELL, HCA_FAULT_DELAY },
        { HCA_FAULT_EVENT, HCA_FAULT_OVERFLOW },
    };
    unsigned i = take_below(&f->in, G_N_ELEMENTS(what));

    *rule = (HcaFaultRule) {
        .place = what[i].place,
        .action = what[i].action,
        .units = take8(&f->in) & ~(1u << HCA_V2P_CEU),
        .channels = take_below(&f->in, 1u << HCA_FAULT_NCHANNELS),
        .match_number = take_below(&f->in, 2),
        .number = take_odd(&f->in),
        .skip = take8(&f->in),
        .count = 1 + take_below(&f->in, 8),
        .probability = HCA_FAULT_ALWAYS,
        .delay_ns = 1 + take_below(&f->in, NS_PER_MS),
    };
    if (!rule->units) {
        rule->units = 1u << HCA_V2P_EE;
    }
}

/* Of verbs: any status, which need not be one that the place has. */
static void take_verb_rule(Fuzz *f, HcaFaultRule *rule)
{
    static const HcaFaultAction actions[] = {
        HCA_FAULT_FAIL,  HCA_FAULT_BREAK,    HCA_FAULT_RNR,   HCA_FAULT_DROP,
        HCA_FAULT_DELAY, HCA_FAULT_OVERFLOW, HCA_FAULT_RAISE, HCA_FAULT_DOWN,
    };
    uint8_t odd = take8(&f->in);

    *rule = (HcaFaultRule) {
        .place = HCA_FAULT_SEND_WR +
                 take_below(&f->in, HCA_FAULT_NPLACES - HCA_FAULT_SEND_WR),
        .action = actions[take_below(&f->in, G_N_ELEMENTS(actions))],
        .status = take_below(&f->in, 64),
        .vendor_err = odd,
        .skip = take_below(&f->in, 8),
        .count = take_below(&f->in, 4),
        .probability = HCA_FAULT_ALWAYS,
        .delay_ns = 1 + take_below(&f->in, NS_PER_MS),
    };
    if (odd & 1) {
        rule->match_qpn = true;
        rule->qpn = 2 + take_below(&f->in, FUZZ_NQPS);
    }
    if (odd & 2) {
        rule->services = take8(&f->in);
        rule->operations = take_odd(&f->in);
    }
    if (odd & 4) {
        rule->for_ns = take_below(&f->in, NS_PER_MS);
        rule->after_ns = take_below(&f->in, NS_PER_MS);
    }
    if (rule->place == HCA_FAULT_CARD) {
        rule->event = take_below(&f->in, HCA_FAULT_NEVENTS + 1);
        rule->match_qpn = rule->match_cqn = rule->match_srqn = true;
        rule->qpn = 2 + take_below(&f->in, FUZZ_NQPS);
        rule->cqn = rule->srqn = take_below(&f->in, 4);
        rule->down = (HcaFaultDown) {
            .down_ns = take_below(&f->in, NS_PER_MS),
            .up_ns = take_below(&f->in, NS_PER_MS),
            .ends = take_below(&f->in, 4),
            .delivered = odd & 1,
            .speed = take_below(&f->in, 6),
            .mtu = take_below(&f->in, 7),
        };
    }
    if (odd & 8) {
        rule->peer.lid = take_below(&f->in, 4);
        rule->peer.match_gid = odd & 16;
    }
}

static void act_verb_faults(Fuzz *f)
{
    Host *host = &f->lab->host[fuzz_take_side(f)];
    HcaFaultPlan plan = { .nrules = 1 + take_below(&f->in, 4) };

    for (unsigned i = 0; i < plan.nrules; i++) {
        take_verb_rule(f, &plan.rule[i]);
    }
    give_plan(host, &plan);
}

static void act_host_faults(Fuzz *f)
{
    Host *host = &f->lab->host[fuzz_take_side(f)];
    HcaFaultPlan plan = { .nrules = 1 + take_below(&f->in, 4) };

    for (unsigned i = 0; i < plan.nrules; i++) {
        take_host_rule(f, &plan.rule[i]);
    }
    give_plan(host, &plan);
}

static void act_capture(Fuzz *f)
{
    Host *host = &f->lab->host[fuzz_take_side(f)];

    host->capture_limit = host->capture->len + take_below(&f->in, 65536);
    hca_start_capture(host->hca);
    host->kicked = true;
}

/* One that ends with its file. */
static void act_short_capture(Fuzz *f)
{
    Host *host = &f->lab->host[fuzz_take_side(f)];

    hca_limit_capture(host->hca, take_below(&f->in, 8192));
    hca_start_capture(host->hca);
    host->kicked = true;
}

/* A packet between the cards' own that only looks like one. */
static void act_noise(Fuzz *f)
{
    static uint8_t frame[FRAME_MOST];
    unsigned from = fuzz_take_side(f), which = fuzz_take_qp(f);
    HcaPacket packet = { .opcode = take8(&f->in), .psn = 0x123456 };
    size_t len;

    frame_headers(f, from, which, take8(&f->in), &packet);
    packet.syndrome = take8(&f->in);
    len = frame_build(f->roce, &packet, frame);
    len = frame_spoil(f, frame, len);
    if (take_below(&f->in, 4) == 0) {
        len = 1 + take_below(&f->in, MIN(len, 64));
    }
    frame_inject(f, from, frame, len);
}

/* What the new driver sets up has to succeed: without the old one's faults. */
static void act_reset(Fuzz *f)
{
    unsigned side = fuzz_take_side(f);

    host_set_faults(&f->lab->host[side], NULL);
    fuzz_start_over(f, side);
}

static const FuzzAction actions[] = {
    { "faults", act_faults },
    { "faults", act_faults },
    { "capture", act_capture },
    { "reset", act_reset },
    { "send", fuzz_act_send },
    { "send", fuzz_act_send },
    { "recv", fuzz_act_recv },
    { "poll", fuzz_act_poll },
    { "turns", fuzz_act_turns },
    { "rest", fuzz_act_rest },
    { "time", fuzz_act_time },
    { "revive", fuzz_act_revive },
    { "modify", fuzz_act_modify },
    { "group", fuzz_act_group },
    { "cable", fuzz_act_cable },
    { "short capture", act_short_capture },
    { "noise", act_noise },
    { "exchange", fuzz_act_exchange },
    { "gid", fuzz_act_gid },
    { "multicast", fuzz_act_multicast },
    { "host faults", act_host_faults },
    { "verb faults", act_verb_faults },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Fuzz f = { .in = { data, size } };
    HcaConfig config[2];
    bool roce = take_bool(&f.in);

    take_config(&f, 0, roce, &config[0]);
    take_config(&f, 1, roce, &config[1]);
    fuzz_begin_with(&f, data, size, FUZZ_GUEST_GOOD, config);
    fuzz_play(&f, actions, G_N_ELEMENTS(actions));
    fuzz_end(&f);
    return 0;
}
