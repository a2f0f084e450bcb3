/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a plan of faults has for certain times. An event comes with what it tells:
 * a QP that is fatally wrong is in ERR, a CQ or SRQ that failed takes no more. One
 * of something that there is not is not raised, and not counted.
 */
#include "script.h"

#include "cxtmgt/cxtmgt.h"
#include "fault/host_faults.h"
#include "link/link.h"
#include "mad/node.h"
#include "port/port.h"

/* A rule that is still to be done. */
typedef struct Task {
    unsigned rule;
    int64_t at;
    uint32_t left; /* times; 0: no end */
} Task;

struct HcaScript {
    unsigned ntasks;
    Task task[HCA_FAULT_MAX_RULES];
};

HcaScript *hca_script_new(void)
{
    return g_new0(HcaScript, 1);
}

void hca_script_free(HcaScript *script)
{
    g_free(script);
}

static const HcaFaultRule *rule_of(const Hca *hca, const Task *task)
{
    return &hca->faults->faults.plan.rule[task->rule];
}

void hca_script_begin(Hca *hca, unsigned kept)
{
    const HcaFaultPlan *plan = &hca->faults->faults.plan;
    HcaScript *script = hca->script;
    int64_t now = 0;

    script->ntasks = kept ? script->ntasks : 0;
    for (unsigned i = kept; i < plan->nrules; i++) {
        const HcaFaultRule *rule = &plan->rule[i];

        if (rule->place != HCA_FAULT_CARD) {
            continue;
        }
        now = now ? now : hca_now(hca);
        script->task[script->ntasks++] = (Task) {
            .rule = i,
            .at = now + (int64_t)rule->after_ns,
            .left = rule->action == HCA_FAULT_DOWN ? rule->count : 1,
        };
    }
}

/* Events */

typedef struct EventRow {
    uint8_t type;     /* HcaEventType */
    bool breaks;      /* of a QP: it is in ERR then */
    uint32_t changes; /* of the port: HCA_CHANGED_* */
} EventRow;

static const EventRow events[HCA_FAULT_NEVENTS] = {
    [HCA_FAULT_QP_FATAL] = { HCA_EVENT_WQ_CATAS_ERROR, true },
    [HCA_FAULT_QP_REQ_ERR] = { HCA_EVENT_WQ_INVAL_REQ_ERROR, true },
    [HCA_FAULT_QP_ACCESS_ERR] = { HCA_EVENT_WQ_ACCESS_ERROR, true },
    [HCA_FAULT_COMM_EST] = { HCA_EVENT_COMM_EST },
    [HCA_FAULT_SQ_DRAINED] = { HCA_EVENT_SQ_DRAINED },
    [HCA_FAULT_PATH_MIG] = { HCA_EVENT_PATH_MIG },
    [HCA_FAULT_PATH_MIG_ERR] = { HCA_EVENT_PATH_MIG_FAILED },
    [HCA_FAULT_LAST_WQE_REACHED] = { HCA_EVENT_LAST_WQE_REACHED },
    [HCA_FAULT_LID_CHANGE] = { HCA_EVENT_PORT_MNG, false, HCA_CHANGED_LID },
    [HCA_FAULT_SM_CHANGE] = { HCA_EVENT_PORT_MNG, false, HCA_CHANGED_SM },
    [HCA_FAULT_PKEY_CHANGE] = { HCA_EVENT_PORT_MNG, false, HCA_CHANGED_PKEYS },
    [HCA_FAULT_GID_CHANGE] = { HCA_EVENT_PORT_MNG, false, HCA_CHANGED_GIDS },
    [HCA_FAULT_REREGISTER] = { HCA_EVENT_PORT_MNG, false,
                               HCA_CHANGED_REREGISTER },
};

static bool raise_of_qp(Hca *hca, uint32_t qpn, const EventRow *event)
{
    HcaQp *qp = hca_qp_find(hca->cm, qpn);

    if (!qp || (event->breaks && qp->state == HCA_QP_ERR)) {
        return false;
    }
    hca_qp_event(hca->cm, qp, event->type);
    if (event->breaks) {
        hca_qp_set_state(hca->cm, qp, HCA_QP_ERR);
    }
    return true;
}

static bool raise_of_srq(Hca *hca, uint32_t srqn, HcaFaultEvent event)
{
    HcaSrq *srq = hca_srq_peek(hca->cm, srqn);

    if (!srq || srq->failed) {
        return false;
    }
    if (event == HCA_FAULT_SRQ_ERR) {
        hca_srq_break(hca->cm, srq);
    } else {
        hca_srq_tell_limit(hca->cm, srq);
    }
    return true;
}

static bool raise_of_cq(Hca *hca, uint32_t cqn)
{
    HcaCq *cq = hca_cq_peek(hca->cm, cqn);

    if (!cq || cq->status != HCA_QUEUE_OK) {
        return false;
    }
    hca_cq_break(hca->cm, cq, HCA_QUEUE_OVERFLOW);
    return true;
}

/* Managers change nothing of a RoCE card's. */
static bool raise_of_port(Hca *hca, uint32_t changes)
{
    if (hca_port_is_roce(hca->port) || !hca_port_is_enabled(hca->port)) {
        return false;
    }
    if (changes == HCA_CHANGED_GIDS) {
        hca_port_turn_last_guid(hca->port); /* who is told looks for it */
    } else {
        hca_port_mng_event(hca->cm, changes);
    }
    return true;
}

static bool raise_event(Hca *hca, const HcaFaultRule *rule)
{
    const EventRow *event = &events[rule->event];

    switch (rule->event) {
    case HCA_FAULT_CQ_ERR:
        return raise_of_cq(hca, rule->cqn);
    case HCA_FAULT_SRQ_ERR:
    case HCA_FAULT_SRQ_LIMIT:
        return raise_of_srq(hca, rule->srqn, rule->event);
    case HCA_FAULT_DEVICE_FATAL:
        return hca_eq_break_one(hca->cm);
    default:
        return event->changes ? raise_of_port(hca, event->changes)
                              : raise_of_qp(hca, rule->qpn, event);
    }
}

static uint32_t number_of(const HcaFaultRule *rule)
{
    if (rule->match_qpn) {
        return rule->qpn;
    }
    return rule->match_cqn ? rule->cqn : rule->srqn;
}

/* Tasks */

/* When it has to be done again, if it has. */
static void next(HcaScript *script, unsigned i, const HcaFaultRule *rule)
{
    Task *task = &script->task[i];

    if (task->left == 1) {
        *task = script->task[--script->ntasks];
        return;
    }
    task->left -= task->left != 0;
    task->at += rule->down.down_ns + rule->down.up_ns;
}

static void carry_out(Hca *hca, unsigned i)
{
    unsigned number = hca->script->task[i].rule;
    const HcaFaultRule *rule = rule_of(hca, &hca->script->task[i]);
    bool done = rule->action == HCA_FAULT_DOWN
                    ? hca_link_go_down(hca->link, &rule->down)
                    : raise_event(hca, rule);

    if (done) {
        hca_host_faults_did(hca->faults, number, number_of(rule));
    }
    next(hca->script, i, rule);
}

/* One step of each that is due: of a link, what follows is in another turn. */
bool hca_script_run(Hca *hca)
{
    HcaScript *script = hca->script;
    bool any = false;
    int64_t now;

    if (!script->ntasks) {
        return false;
    }
    now = hca_now(hca);
    for (unsigned i = script->ntasks; i > 0; i--) {
        if (script->task[i - 1].at <= now) {
            carry_out(hca, i - 1);
            any = true;
        }
    }
    return any;
}

int64_t hca_script_deadline(const Hca *hca)
{
    const HcaScript *script = hca->script;
    int64_t at = INT64_MAX;

    for (unsigned i = 0; i < script->ntasks; i++) {
        at = MIN(at, script->task[i].at);
    }
    return at;
}

/* State */

static const HcaField task_fields[] = {
    HCA_SAVED(Task, rule),
    HCA_SAVED(Task, at),
    HCA_SAVED(Task, left),
};
static const HcaStruct task_struct = HCA_STRUCT(Task, task_fields);

static const HcaField script_fields[] = {
    HCA_ELSEWHERE(HcaScript, ntasks),
    HCA_ELSEWHERE(HcaScript, task),
};
static const HcaStruct script_struct = HCA_STRUCT(HcaScript, script_fields);

static void save_tasks(void *room, GArray *records)
{
    const HcaScript *script = ((Hca *)room)->script;

    g_array_append_vals(records, script->task, script->ntasks);
}

static bool load_tasks(void *room, const void *records, uint32_t n,
                       HcaStateError *error)
{
    const Hca *hca = room;
    const Task *task = records;
    const HcaFaultPlan *plan = &hca->faults->faults.plan;

    if (n > HCA_FAULT_MAX_RULES) {
        return hca_state_refuse(error, "%u tasks", n);
    }
    hca->script->ntasks = 0;
    for (unsigned i = 0; i < n; i++) {
        if (task[i].rule >= plan->nrules ||
            plan->rule[task[i].rule].place != HCA_FAULT_CARD) {
            return hca_state_refuse(error, "rule %u is no task", task[i].rule);
        }
        hca->script->task[hca->script->ntasks++] = task[i];
    }
    return true;
}

const HcaSection hca_script_section = HCA_SECTION(
    "script", 1, &task_struct, save_tasks, load_tasks, &script_struct);
