/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The assembled card: its life, and what the machine around it may do. */
#include "hca.h"

#include "cxtmgt/cxtmgt.h"
#include "dispatch.h"
#include "eth/eth.h"
#include "fault/host_faults.h"
#include "front/bars.h"
#include "front/ceu/ceu.h"
#include "front/interface.h"
#include "hca_int.h"
#include "link/link.h"
#include "port/port.h"
#include "requester/requester.h"
#include "responder/responder.h"
#include "script.h"
#include "send/send.h"
#include "strict.h"
#include "v2p/v2p.h"

#define NS_PER_MS 1000000ll

bool hca_reset_wanted(const Hca *hca)
{
    return hca_bars_reset_wanted(hca->bars);
}

bool hca_command_wanted(const Hca *hca)
{
    return hca_reset_wanted(hca) || hca_ceu_wanted(hca->ceu);
}

/* What is recorded from now on has another time. */
static void end_turn(Hca *hca)
{
    HcaRecorder *recorder = hca->host.recorder;

    if (!recorder) {
        return;
    }
    recorder->late = true;
    if (recorder->broke && !recorder->told) {
        recorder->told = true;
        if (hca->host.ops->recorder_dump) {
            hca->host.ops->recorder_dump(hca->host.opaque);
        }
    }
}

void hca_run_command(Hca *hca)
{
    if (hca_reset_wanted(hca)) {
        hca_reset(hca);
        hca_bars_reset_done(hca->bars);
    }
    hca_ceu_run(hca->ceu);
    end_turn(hca);
}

bool hca_run_data(Hca *hca)
{
    bool more = hca_dispatch_run(hca);

    end_turn(hca);
    return more;
}

bool hca_run(Hca *hca)
{
    hca_run_command(hca);
    return hca_run_data(hca);
}

/* The cable */

void hca_link_up(Hca *hca)
{
    hca_link_set_up(hca->link, true);
    if (hca->announces) {
        hca->announces = !hca_eth_announce(hca->eth);
    }
}

void hca_link_down(Hca *hca)
{
    hca_link_set_up(hca->link, false);
    if (!hca_link_is_away(hca->link)) {
        hca_dispatch_cable_gone(hca);
    }
    hca_dispatch_watch_port(hca);
}

bool hca_depart(Hca *hca)
{
    return hca_link_depart(hca->link);
}

bool hca_drain(Hca *hca)
{
    return hca_link_drain(hca->link);
}

void hca_arrive(Hca *hca)
{
    hca_link_arrive(hca->link);
    hca->announces = hca->config.cable == HCA_CABLE_NETDEV;
    hca_dispatch_watch_port(hca);
    hca_dispatch_set_alarm(hca);
}

bool hca_link_waits(const Hca *hca)
{
    return hca_link_is_away(hca->link);
}

void hca_link_writable(Hca *hca)
{
    hca_link_flush(hca->link);
    hca_link_flush_capture(hca->link);
}

bool hca_link_failed(const Hca *hca)
{
    return hca_link_rx_failed(hca->link);
}

bool hca_expects_peers(const Hca *hca)
{
    return hca->late || hca->timers_of_peers;
}

bool hca_link_settled(const Hca *hca)
{
    return hca_link_is_greeted(hca->link);
}

void hca_be_late(Hca *hca)
{
    hca_v2p_set_late(hca->v2p, hca->config.memory_latency_ns,
                     hca->config.memory_bandwidth, hca_dispatch_answered, hca);
    hca_dispatch_be_late(hca);
}

/* Beside packets' own faults, a capture says what went wrong in front of them. */
static void note_fault(void *opaque, unsigned rule,
                       const HcaFaultSubject *subject, HcaFaultAction action)
{
    Hca *hca = opaque;

    if (hca_link_is_captured(hca->link)) {
        g_autofree char *text = g_strdup_printf(
            "fault: %s %s 0x%" G_GINT64_MODIFIER "x (rule %u)",
            hca_fault_place_text(subject->place), hca_fault_action_text(action),
            hca_fault_what(subject), rule);

        hca_link_note(hca->link, text);
    }
}

static void take_plan(Hca *hca, const HcaFaultPlan *plan, unsigned kept)
{
    hca_host_faults_set_plan(hca->faults, plan, kept);
    hca_script_begin(hca, kept);
    if (hca_host_faults_delay_dma(plan)) {
        hca_be_late(hca);
    }
    hca_dispatch_set_alarm(hca); /* what was held back leaves now */
}

void hca_set_faults(Hca *hca, const HcaFaultPlan *plan)
{
    hca_link_set_faults(hca->link, plan);
    take_plan(hca, plan, 0);
}

void hca_add_faults(Hca *hca, const HcaFaultPlan *plan, unsigned kept)
{
    if (!kept) {
        hca_set_faults(hca, plan);
        return;
    }
    hca_link_add_faults(hca->link, plan, kept);
    take_plan(hca, plan, kept);
}

void hca_fault_state(const Hca *hca, unsigned i, HcaFaultState *state)
{
    const HcaFaults *faults = &hca->faults->faults;

    if (faults->plan.rule[i].place == HCA_FAULT_CABLE) {
        hca_link_fault_state(hca->link, i, &state->matched, &state->done);
    } else {
        state->matched = faults->state[i].matched;
        state->done = faults->state[i].faults;
    }
}

void hca_limit_capture(Hca *hca, uint64_t max_bytes)
{
    hca_link_limit_capture(hca->link, max_bytes);
}

void hca_start_capture(Hca *hca)
{
    hca_link_start_capture(hca->link);
}

/* Life */

static HcaHost host_of(const HcaConfig *config, const HcaHostOps *ops,
                       void *opaque)
{
    HcaHost host = { ops, opaque, NULL };

    if (config->recorder) {
        host.recorder = hca_recorder_new(config->recorder, ops->clock_ns,
                                         opaque);
    }
    return host;
}

Hca *hca_new(const HcaConfig *settings, const HcaHostOps *ops, void *opaque)
{
    Hca *hca = g_new0(Hca, 1);
    const HcaConfig *config = &hca->config;
    const HcaHost *host = &hca->host;

    hca->config = *settings;
    hca_config_settle(&hca->config);
    hca->host = host_of(config, ops, opaque);
    hca->interface = hca_front_interface(config->personality);
    hca->format = hca->interface->format;
    hca_card_init(hca);
    hca->link = hca_link_new(config->link_layer, config->cable, host);
    hca_link_set_patience(hca->link, config->move_limit_ms * NS_PER_MS);
    hca->v2p = hca_v2p_new(hca->format->mpt, host, config->log_mpts,
                           config->log_mtts, config->mpt_cache_size,
                           config->mtt_cache_size, config->cache_ways);
    if (config->device_memory) {
        hca_v2p_set_dev_mem(hca->v2p, ops->dev_mem(opaque),
                            config->device_memory);
    }
    hca->faults = hca_host_faults_new(host);
    hca->faults->note = note_fault;
    hca->faults->note_opaque = hca;
    hca->script = hca_script_new();
    hca->strict = hca_strict_new(config);
    hca_v2p_set_faults(hca->v2p, hca->faults);
    if (config->memory_latency_ns || config->memory_bandwidth) {
        hca_be_late(hca);
    }
    hca->port = hca_port_new(config, hca->link, host);
    hca->cm = hca_cxtmgt_new(hca->format->cxt, config, hca->v2p, hca->port,
                             host, hca_dispatch_qp_state, hca);
    hca_cxtmgt_set_faults(hca->cm, hca->faults);
    hca->requester = hca_requester_new(config);
    hca->responder = hca_responder_new();
    hca->send = hca_send_new();
    hca->eth = hca_config_is_roce(config) ? hca_eth_new(hca) : NULL;
    hca->ceu = hca_ceu_new(hca);
    hca->bars = hca_bars_new();
    return hca;
}

void hca_free(Hca *hca)
{
    hca_cxtmgt_reset(hca->cm);
    hca_bars_free(hca->bars);
    hca_ceu_free(hca->ceu);
    if (hca->eth) {
        hca_eth_free(hca->eth);
    }
    hca_send_free(hca->send);
    hca_responder_free(hca->responder);
    hca_requester_free(hca->requester);
    hca_cxtmgt_free(hca->cm);
    hca_port_free(hca->port);
    hca_v2p_free(hca->v2p);
    hca_strict_free(hca->strict);
    hca_script_free(hca->script);
    hca_host_faults_free(hca->faults);
    hca_link_free(hca->link);
    hca_dispatch_cleanup(hca);
    hca_card_cleanup(hca);
    hca_recorder_free(hca->host.recorder);
    g_free(hca);
}

void hca_reset(Hca *hca)
{
    hca_trace(hca, HCA_TRACE_RESET, 0, 0, 0, 0);
    hca_cxtmgt_reset(hca->cm);
    hca_strict_reset(hca->strict, &hca->config);
    hca_v2p_reset(hca->v2p);
    hca_ceu_reset(hca->ceu);
    hca_port_reset(hca->port);
    if (hca->eth) {
        hca_eth_reset(hca->eth);
    }
    hca_dispatch_forget(hca);
    hca_link_clear(hca->link);
    hca_link_reset_counters(hca->link);
    hca->faults->counters = (HcaHostFaultCounters) { 0 };
    hca_requester_reset(hca->requester);
    hca_responder_reset(hca->responder);
    hca_send_reset(hca->send);
    hca_bars_reset(hca->bars);
    if (hca->host.recorder) {
        hca->host.recorder->broke = hca->host.recorder->told = false;
    }
    hca_dispatch_set_alarm(hca);
}
