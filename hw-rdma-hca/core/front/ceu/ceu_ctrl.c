/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CEU_ctrl (CEU document 2.2, figure 2-3): the machine that takes a command
 * from the HCR through DECODE and GET_INBOX to EXECUTE, by the table of
 * commands that the card's programming interface has.
 *
 * Beyond the document: completion by event, statuses.
 */
#include <string.h>

#include "../../fault/host_faults.h"
#include "../bars.h"
#include "ceu_int.h"

/* Mailboxes are aligned as the entries in them are grouped, half a beat. */
#define MAILBOX_ALIGN 16

/* The command's row; NULL and a status if the card has none. */
static const HcaCommandRow *find_row(const HcaCeu *ceu, const HcaCommand *cmd,
                                     uint8_t *status)
{
    const HcaCommandTable *table = ceu->hca->interface->commands;
    bool roce = hca_config_is_roce(&ceu->hca->config);

    *status = RDMA_HCA_STAT_BAD_OP;
    for (unsigned i = 0; i < table->number; i++) {
        const HcaCommandRow *row = &table->rows[i];

        if (row->op != cmd->op || (row->roce && !roce) || (row->ib && roce)) {
            continue;
        }
        if (!row->op_modifier || row->op_modifier == cmd->op_modifier) {
            *status = RDMA_HCA_STAT_OK;
            return row;
        }
        *status = RDMA_HCA_STAT_BAD_PARAM;
    }
    return NULL;
}

static uint32_t inbox_len(const HcaCommand *cmd)
{
    return cmd->row->inbox_len ? cmd->row->inbox_len(cmd) : cmd->row->inbox;
}

static uint32_t outbox_len(const HcaCommand *cmd)
{
    return cmd->row->outbox_len ? cmd->row->outbox_len(cmd) : cmd->row->outbox;
}

static bool wants_inbox(const HcaCommand *cmd)
{
    if (cmd->row->no_inbox_modifier &&
        cmd->op_modifier == RDMA_HCA_MODIFY_NO_INBOX) {
        return false;
    }
    return cmd->row->inbox || cmd->row->inbox_len;
}

static bool wants_outbox(const HcaCommand *cmd)
{
    return cmd->row->outbox || cmd->row->outbox_len;
}

/* A command that cannot go on: its status, and the machine stands still. */
static void finish(HcaCeu *ceu, uint8_t status)
{
    ceu->cmd.status = status;
    ceu->state = HCA_CEU_IDLE;
}

static void refuse_mailbox(HcaCeu *ceu)
{
    ceu->counters.mailboxes_refused++;
    finish(ceu, RDMA_HCA_STAT_BAD_PARAM);
}

static void decode(HcaCeu *ceu)
{
    HcaCommand *cmd = &ceu->cmd;
    uint8_t now = ceu->initialised ? HCA_CEU_AFTER_INIT : HCA_CEU_BEFORE_INIT;
    uint8_t status;

    cmd->row = find_row(ceu, cmd, &status);
    if (!cmd->row) {
        ceu->counters.unknown++;
        finish(ceu, status);
    } else if (!(cmd->row->legal & now)) {
        finish(ceu, RDMA_HCA_STAT_BAD_SYS_STATE);
    } else if (wants_outbox(cmd) &&
               (!outbox_len(cmd) || cmd->out_param % MAILBOX_ALIGN)) {
        refuse_mailbox(ceu);
    } else {
        cmd->has_inbox = wants_inbox(cmd);
        ceu->state = cmd->has_inbox ? HCA_CEU_GET_INBOX : HCA_CEU_EXECUTE;
    }
}

static bool inbox_is_here(HcaCeu *ceu, uint32_t len)
{
    HcaMatchInfo info = {
        .flags = HCA_V2P_BUS_ADDR,
        .va = ceu->cmd.in_param,
        .len = len,
    };

    return hca_v2p_ask(ceu->hca->v2p, &ceu->ask, 0, HCA_V2P_CEU, HCA_V2P_FETCH,
                       &info);
}

static void get_inbox(HcaCeu *ceu)
{
    HcaCommand *cmd = &ceu->cmd;
    uint32_t len = inbox_len(cmd);

    if (len && !inbox_is_here(ceu, len)) {
        return; /* until it is */
    }
    hca_v2p_ask_done(&ceu->ask);
    if (!len || cmd->in_param % MAILBOX_ALIGN ||
        !hca_dma_read(ceu->hca->v2p, HCA_V2P_CEU, cmd->in_param, cmd->inbox,
                      len)) {
        refuse_mailbox(ceu);
    } else {
        ceu->state = HCA_CEU_EXECUTE;
    }
}

static void execute(HcaCeu *ceu)
{
    HcaCommand *cmd = &ceu->cmd;
    uint32_t len = outbox_len(cmd);
    uint8_t status;

    memset(cmd->outbox, 0, len);
    status = cmd->row->execute(ceu, cmd);
    if (!status && len &&
        !hca_dma_write(ceu->hca->v2p, HCA_V2P_CEU, cmd->out_param, cmd->outbox,
                       len)) {
        refuse_mailbox(ceu);
    } else {
        finish(ceu, status);
    }
}

/* One step of the machine. */
static void step(HcaCeu *ceu)
{
    switch (ceu->state) {
    case HCA_CEU_IDLE:
        break;
    case HCA_CEU_STALLED:
        ceu->state = HCA_CEU_DECODE;
        break;
    case HCA_CEU_DECODE:
        decode(ceu);
        break;
    case HCA_CEU_GET_INBOX:
        get_inbox(ceu);
        break;
    case HCA_CEU_EXECUTE:
        execute(ceu);
        break;
    }
}

static void complete(HcaCeu *ceu)
{
    const HcaCommand *cmd = &ceu->cmd;
    HcaEvent event = {
        .type = HCA_EVENT_CMD,
        .number = cmd->token,
        .status = cmd->status,
        .out_param = cmd->out_param,
    };

    ceu->counters.commands++;
    ceu->counters.opcodes[cmd->op]++;
    ceu->counters.status[cmd->status]++;
    hca_trace(ceu->hca, HCA_TRACE_COMMAND, cmd->op, cmd->in_modifier,
              cmd->op_modifier, cmd->status);
    /* Who sees GO cleared sees what was written, too: reads do not pass writes. */
    hca_v2p_settle(ceu->hca->v2p);
    /* First the registers: who gets the event may use them at once. */
    hca_hcr_complete(ceu, cmd);
    if (cmd->event) {
        hca_eq_event(ceu->hca->cm, &event, &ceu->event);
    }
}

static bool is_stalled(const HcaCeu *ceu)
{
    return ceu->state == HCA_CEU_STALLED &&
           hca_now(ceu->hca) < ceu->stalled_til;
}

/* What a plan of faults has in mind for a command that begins. */
static void begin_faulty(HcaCeu *ceu, const HcaFaultRule *rule)
{
    if (rule->action == HCA_FAULT_FAIL) {
        finish(ceu, rule->status);
        complete(ceu);
    } else {
        ceu->state = HCA_CEU_STALLED;
        ceu->stalled_til = rule->action == HCA_FAULT_HANG
                               ? INT64_MAX
                               : hca_now(ceu->hca) + (int64_t)rule->delay_ns;
    }
}

/* Writes do not pass one another: a doorbell before it that is late, is so for it. */
static bool waits_for_doorbells(HcaCeu *ceu)
{
    const HcaBars *bars = ceu->hca->bars;

    if (!ceu->waiting) {
        ceu->waiting = true;
        ceu->behind = hca_bars_late_doorbells(bars);
    }
    return !hca_bars_have_rung(bars, ceu->behind);
}

/* A command to begin with, or none. */
static void begin(HcaCeu *ceu)
{
    HcaFaultSubject subject = {
        .place = HCA_FAULT_COMMAND,
        .actions = UINT16_MAX,
    };
    const HcaFaultRule *rule;

    if (!hca_hcr_fetch(ceu, &ceu->cmd) || waits_for_doorbells(ceu)) {
        return;
    }
    /* The event of the one before has not found room yet. */
    if (hca_hcr_wants_event(ceu) && hca_ceu_event_waits(ceu)) {
        return;
    }
    ceu->waiting = false;
    subject.number = ceu->cmd.op;
    rule = hca_host_fault(ceu->hca->faults, &subject);
    if (rule) {
        begin_faulty(ceu, rule);
    } else {
        ceu->state = HCA_CEU_DECODE;
    }
}

void hca_ceu_run(HcaCeu *ceu)
{
    if (ceu->state == HCA_CEU_IDLE) {
        begin(ceu);
    }
    if (ceu->state == HCA_CEU_IDLE || is_stalled(ceu)) {
        return;
    }
    do {
        step(ceu);
    } while (ceu->state != HCA_CEU_IDLE && !hca_v2p_ask_waits(&ceu->ask));
    if (ceu->state == HCA_CEU_IDLE) {
        complete(ceu);
    }
}

int64_t hca_ceu_deadline(const HcaCeu *ceu)
{
    return ceu->state == HCA_CEU_STALLED ? ceu->stalled_til : INT64_MAX;
}

HcaCeu *hca_ceu_new(Hca *hca)
{
    HcaCeu *ceu = g_new0(HcaCeu, 1);

    ceu->hca = hca;
    ceu->ask = (HcaV2pAsk) { .owner = ceu, .unit = HCA_ASK_COMMAND };
    return ceu;
}

void hca_ceu_free(HcaCeu *ceu)
{
    g_free(ceu);
}

void hca_ceu_reset(HcaCeu *ceu)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(ceu->hcr); i++) {
        __atomic_store_n(&ceu->hcr[i], 0, __ATOMIC_RELEASE);
    }
    ceu->state = HCA_CEU_IDLE;
    ceu->stalled_til = 0;
    ceu->waiting = false;
    ceu->behind = 0;
    hca_v2p_ask_forget(ceu->hca->v2p, &ceu->ask);
    ceu->initialised = false;
    ceu->uarc_base = ceu->uarc_log = 0;
    memset(&ceu->counters, 0, sizeof(ceu->counters));
    __atomic_store_n(&ceu->ignored_writes, 0, __ATOMIC_RELAXED);
}

bool hca_ceu_event_waits(const HcaCeu *ceu)
{
    return hca_event_waits(&ceu->event);
}

bool hca_ceu_initialised(const HcaCeu *ceu)
{
    return ceu->initialised;
}

const HcaCeuCounters *hca_ceu_counters(HcaCeu *ceu)
{
    ceu->counters.ignored_writes = __atomic_load_n(&ceu->ignored_writes,
                                                   __ATOMIC_RELAXED);
    return &ceu->counters;
}
