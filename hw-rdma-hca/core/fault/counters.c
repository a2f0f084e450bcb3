/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Faults of the host's side, and of verbs: how many there were, by kind. */
#include "../counter_table.h"
#include "host_faults.h"

#define FAULT(number, name, PLACE, ACTION, text)                               \
    HCA_COUNTER(number, name, HcaHostFaultCounters,                            \
                injected[HCA_FAULT_##PLACE][HCA_FAULT_##ACTION],               \
                text " by a plan of faults")

static const void *counters(const void *room)
{
    return &((const HcaHostFaults *)room)->counters;
}

/* Of places from @first to @last. */
static uint64_t sum_of(const HcaHostFaults *faults, HcaFaultPlace first,
                       HcaFaultPlace last)
{
    uint64_t sum = 0;

    for (unsigned place = first; place <= last; place++) {
        for (unsigned i = 0; i < HCA_FAULT_NACTIONS; i++) {
            sum += faults->counters.injected[place][i];
        }
    }
    return sum;
}

HCA_GAUGE_FN(all_of_host, HcaHostFaults,
             sum_of(room, HCA_FAULT_DMA, HCA_FAULT_EVENT))
HCA_GAUGE_FN(all_of_verbs, HcaHostFaults,
             sum_of(room, HCA_FAULT_SEND_WR, HCA_FAULT_CARD))

static const HcaCounterRow rows[] = {
    FAULT(535, "dma_fail", DMA, FAIL, "accesses to memory refused"),
    FAULT(536, "dma_delay", DMA, DELAY, "accesses to memory made late"),
    FAULT(537, "command_fail", COMMAND, FAIL,
          "commands that were not executed"),
    FAULT(538, "command_delay", COMMAND, DELAY, "commands made late"),
    FAULT(539, "command_hang", COMMAND, HANG, "commands that do not end"),
    FAULT(540, "interrupt_drop", INTERRUPT, DROP, "interrupts lost"),
    FAULT(541, "interrupt_duplicate", INTERRUPT, DUPLICATE,
          "interrupts doubled"),
    FAULT(542, "interrupt_delay", INTERRUPT, DELAY, "interrupts made late"),
    FAULT(543, "doorbell_delay", DOORBELL, DELAY, "doorbells made late"),
    FAULT(544, "event_overflow", EVENT, OVERFLOW,
          "event queues that overflowed"),
    HCA_COUNTER(545, "held_full", HcaHostFaultCounters, held_full,
                "interrupts and doorbells not late for want of room"),
    HCA_GAUGE(571, "all", CUMULATIVE, all_of_host, "all of these faults"),
};

static const HcaCounterRow verb_rows[] = {
    FAULT(549, "send_fail", SEND_WR, FAIL, "send work requests failed"),
    FAULT(550, "send_break", SEND_WR, BREAK,
          "QPs broken at a send work request"),
    FAULT(551, "receive_fail", RECEIVE, FAIL, "receives failed"),
    FAULT(552, "receive_break", RECEIVE, BREAK,
          "QPs and SRQs broken at a receive"),
    FAULT(553, "receive_rnr", RECEIVE, RNR, "receives not found"),
    FAULT(554, "request_fail", REQUEST, FAIL, "requests refused"),
    FAULT(555, "request_drop", REQUEST, DROP, "requests taken no notice of"),
    FAULT(556, "answer_drop", ANSWER, DROP, "answers not given"),
    FAULT(557, "answer_delay", ANSWER, DELAY, "answers made late"),
    FAULT(558, "completion_fail", COMPLETION, FAIL, "completions not written"),
    FAULT(559, "completion_overflow", COMPLETION, OVERFLOW,
          "CQs that overflowed"),
    FAULT(566, "card_raise", CARD, RAISE, "events raised"),
    FAULT(567, "card_down", CARD, DOWN, "times that the link went down"),
    HCA_GAUGE(572, "all", CUMULATIVE, all_of_verbs, "all of these faults"),
};

const HcaCounterTable hca_verb_fault_counter_table = {
    .unit = "verb_fault",
    .counters = counters,
    .rows = verb_rows,
    .nrows = G_N_ELEMENTS(verb_rows),
};

const HcaCounterTable hca_host_fault_counter_table = {
    .unit = "host_fault",
    .counters = counters,
    .rows = rows,
    .nrows = G_N_ELEMENTS(rows),
};
