/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a plan of faults may say. */
#include <glib.h>

#include "../wire/headers.h"
#include "fault.h"

static const char *check_packet(const HcaFaultRule *rule)
{
    G_STATIC_ASSERT(HCA_FAULT_MAX_PACKET == 9216);

    if (!rule->directions || rule->directions >> HCA_FAULT_NDIRECTIONS) {
        return "directions must name tx, rx or both";
    }
    if (rule->kinds >> HCA_FAULT_NKINDS) {
        return "kinds must be of the kinds of packets that there are";
    }
    if (rule->match_qpn && rule->qpn > HCA_QPN_MULTICAST) {
        return "qpn must be at most 0xffffff";
    }
    if (rule->match_psn &&
        (rule->psn_first > HCA_PSN_MASK || rule->psn_last > HCA_PSN_MASK)) {
        return "psn-first and psn-last must be at most 0xffffff";
    }
    if (rule->action == HCA_FAULT_CORRUPT &&
        rule->offset >= HCA_FAULT_MAX_PACKET) {
        return "offset must be less than 9216, the longest packet";
    }
    return NULL;
}

static const char *check_dma(const HcaFaultRule *rule)
{
    if (rule->channels >> HCA_FAULT_NCHANNELS) {
        return "channels must be of those that there are";
    }
    if (rule->match_addr && rule->addr_first > rule->addr_last) {
        return "address-last must not be less than address-first";
    }
    return NULL;
}

/* The largest opcode of a command that the HCR has room for. */
#define MAX_OPCODE 0xfff

static const char *check_command(const HcaFaultRule *rule)
{
    if (rule->match_number && rule->number > MAX_OPCODE) {
        return "opcode of a command must be at most 0xfff";
    }
    if (rule->action == HCA_FAULT_FAIL && !rule->status) {
        return "status must say with what the command ends, and not be 0";
    }
    return NULL;
}

static const char *check_doorbell(const HcaFaultRule *rule)
{
    return rule->match_number && rule->number > HCA_QPN_MULTICAST
               ? "qpn must be at most 0xffffff"
               : NULL;
}

static const char *check_number(const HcaFaultRule *rule)
{
    return NULL; /* one that there is not never matches */
}

typedef struct Place {
    uint16_t actions; /* bits */
    const char *wrong_action;
    const char *(*check)(const HcaFaultRule *rule);
} Place;

#define ACTION(a) (1u << HCA_FAULT_##a)

static const Place places[HCA_FAULT_NPLACES] = {
    [HCA_FAULT_CABLE] = { (1u << HCA_FAULT_NPACKET_ACTIONS) - 1,
                          "action must be drop, duplicate, reorder, delay, "
                          "corrupt or mark",
                          check_packet },
    [HCA_FAULT_DMA] = { ACTION(FAIL) | ACTION(DELAY),
                        "action of a dma must be fail or delay", check_dma },
    [HCA_FAULT_COMMAND] = { ACTION(FAIL) | ACTION(DELAY) | ACTION(HANG),
                            "action of a command must be fail, delay or hang",
                            check_command },
    [HCA_FAULT_INTERRUPT] = { ACTION(DROP) | ACTION(DUPLICATE) | ACTION(DELAY),
                              "action of an interrupt must be drop, duplicate "
                              "or delay",
                              check_number },
    [HCA_FAULT_DOORBELL] = { ACTION(DELAY),
                             "action of a doorbell must be delay",
                             check_doorbell },
    [HCA_FAULT_EVENT] = { ACTION(OVERFLOW),
                          "action of an event-queue must be overflow",
                          check_number },
};

static const char *check_rule(const HcaFaultRule *rule)
{
    bool delays = rule->action == HCA_FAULT_DELAY;
    const Place *place;

    if ((unsigned)rule->place >= HCA_FAULT_NPLACES) {
        return "place must be cable, dma, command, interrupt, doorbell or "
               "event-queue";
    }
    place = &places[rule->place];
    if ((unsigned)rule->action >= HCA_FAULT_NACTIONS ||
        !(place->actions >> rule->action & 1)) {
        return place->wrong_action;
    }
    if (rule->probability > HCA_FAULT_ALWAYS) {
        return "probability must be from 0 to 1";
    }
    if (delays && !rule->delay_ns) {
        return "delay-ns must be at least 1";
    }
    if ((delays || rule->action == HCA_FAULT_REORDER) &&
        rule->delay_ns > HCA_FAULT_MAX_DELAY_NS) {
        return "delay-ns must be at most 3600000000000 (an hour)";
    }
    return place->check(rule);
}

const char *hca_fault_check(const HcaFaultPlan *plan)
{
    G_STATIC_ASSERT(HCA_FAULT_MAX_RULES == 32 &&
                    HCA_FAULT_MAX_DELAY_NS == UINT64_C(3600000000000));

    if (plan->nrules > HCA_FAULT_MAX_RULES) {
        return "there must be at most 32 rules";
    }
    for (unsigned i = 0; i < plan->nrules; i++) {
        const char *wrong = check_rule(&plan->rule[i]);

        if (wrong) {
            return wrong;
        }
    }
    return NULL;
}
