/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a plan of faults may say. */
#include <glib.h>

#include "../verbs.h"
#include "../wire/headers.h"
#include "fault.h"
#include "status.h"

/* SDR, DDR or QDR; MTU codes of InfiniBand. */
#define MAX_SPEED 4
#define MAX_MTU 5

static const char *check_down(const HcaFaultDown *down)
{
    if (down->ends & ~HCA_FAULT_BOTH_ENDS) {
        return "ends must name the own end, the peer's or both";
    }
    if (down->down_ns > HCA_FAULT_MAX_DELAY_NS ||
        down->up_ns > HCA_FAULT_MAX_DELAY_NS) {
        return "down-ns and up-ns must be at most 3600000000000 (an hour)";
    }
    if (down->speed > MAX_SPEED || (down->speed & (down->speed - 1))) {
        return "speed must be sdr, ddr or qdr";
    }
    return down->mtu > MAX_MTU ? "mtu must be one of InfiniBand's" : NULL;
}

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
    if (rule->action == HCA_FAULT_DOWN) {
        return check_down(&rule->down);
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

static bool number_ok(bool match, uint32_t number)
{
    return !match || number <= HCA_QPN_MULTICAST;
}

static const char *check_verbs(const HcaFaultRule *rule)
{
    if (!number_ok(rule->match_qpn, rule->qpn) ||
        !number_ok(rule->match_peer_qpn, rule->peer_qpn) ||
        !number_ok(rule->match_cqn, rule->cqn) ||
        !number_ok(rule->match_srqn, rule->srqn)) {
        return "qpn, peer-qpn, cqn and srqn must be at most 0xffffff";
    }
    if (rule->kinds >> HCA_FAULT_NKINDS) {
        return "kinds must be of the kinds of packets that there are";
    }
    return NULL;
}

static const char *check_send_wr(const HcaFaultRule *rule)
{
    const HcaFaultStatus *status = hca_fault_status(rule->status);

    if (rule->action == HCA_FAULT_FAIL && !(status && status->way)) {
        return "wc-status must be one that a send work request can have; what "
               "only the peer can say is for a plan of its card";
    }
    return check_verbs(rule);
}

static const char *check_receive(const HcaFaultRule *rule)
{
    const HcaFaultStatus *status = hca_fault_status(rule->status);

    if (rule->action == HCA_FAULT_FAIL && !(status && status->receive)) {
        return "wc-status must be one that a receive can have";
    }
    return check_verbs(rule);
}

/* Whose number an event needs. */
static bool has_number(const HcaFaultRule *rule)
{
    switch (rule->event) {
    case HCA_FAULT_QP_FATAL ... HCA_FAULT_LAST_WQE_REACHED:
        return rule->match_qpn;
    case HCA_FAULT_CQ_ERR:
        return rule->match_cqn;
    case HCA_FAULT_SRQ_ERR:
    case HCA_FAULT_SRQ_LIMIT:
        return rule->match_srqn;
    default:
        return true;
    }
}

static const char *check_card(const HcaFaultRule *rule)
{
    if (rule->action == HCA_FAULT_DOWN) {
        return rule->count != 1 && !rule->down.down_ns
                   ? "down-ns must be at least 1 if the link comes up again"
                   : check_down(&rule->down);
    }
    if (rule->event == HCA_FAULT_NO_EVENT ||
        (unsigned)rule->event >= HCA_FAULT_NEVENTS) {
        return "event must say what is raised";
    }
    if (!has_number(rule)) {
        return "qpn, cqn or srqn must say whose event it is";
    }
    return check_verbs(rule);
}

static const char *check_request(const HcaFaultRule *rule)
{
    const HcaFaultStatus *status = hca_fault_status(rule->status);

    if (rule->action == HCA_FAULT_FAIL && !(status && status->request)) {
        return "wc-status of a request must be rem-inv-req-err, "
               "rem-access-err, rem-op-err or rem-inv-rd-req-err";
    }
    return check_verbs(rule);
}

typedef struct Place {
    uint16_t actions; /* bits */
    const char *wrong_action;
    const char *(*check)(const HcaFaultRule *rule);
} Place;

#define ACTION(a) (1u << HCA_FAULT_##a)

static const Place places[HCA_FAULT_NPLACES] = {
    [HCA_FAULT_CABLE] = { ((1u << HCA_FAULT_NPACKET_ACTIONS) - 1) |
                              ACTION(DOWN),
                          "action must be drop, duplicate, reorder, delay, "
                          "corrupt, mark or down",
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
    [HCA_FAULT_SEND_WR] = { ACTION(FAIL) | ACTION(BREAK),
                            "action of a send must be fail or break",
                            check_send_wr },
    [HCA_FAULT_RECEIVE] = { ACTION(FAIL) | ACTION(BREAK) | ACTION(RNR),
                            "action of a receive must be fail, break or rnr",
                            check_receive },
    [HCA_FAULT_REQUEST] = { ACTION(FAIL) | ACTION(DROP),
                            "action of a request must be fail or drop",
                            check_request },
    [HCA_FAULT_ANSWER] = { ACTION(DROP) | ACTION(DELAY),
                           "action of an answer must be drop or delay",
                           check_verbs },
    [HCA_FAULT_COMPLETION] = { ACTION(FAIL) | ACTION(OVERFLOW),
                               "action of a completion must be fail or "
                               "overflow",
                               check_verbs },
    [HCA_FAULT_CARD] = { ACTION(RAISE) | ACTION(DOWN),
                         "action of a card must be raise or down", check_card },
};

static const char *check_rule(const HcaFaultRule *rule)
{
    bool delays = rule->action == HCA_FAULT_DELAY;
    const Place *place;

    if ((unsigned)rule->place >= HCA_FAULT_NPLACES) {
        return "place must be cable, dma, command, interrupt, doorbell, "
               "event-queue, send, receive, request, answer, completion or "
               "card";
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
    if (rule->after_ns > HCA_FAULT_MAX_DELAY_NS ||
        rule->for_ns > HCA_FAULT_MAX_DELAY_NS) {
        return "after-ns and for-ns must be at most 3600000000000 (an hour)";
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
