/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Moderation of completion events (MODIFY_CQ, ours): the event of a CQ that is
 * armed for the next entry waits until a number of entries have come that have
 * been neither consumed nor told of, or for a while after the first of them.
 *
 * Who arms when such entries are there already is told at once, an error and
 * an entry that was asked for as a solicited one do not wait: so the rules of
 * arming hold (docs/abi.md). An event of a moderated CQ tells of all entries.
 */
#include "cxtmgt_int.h"

#define NS_PER_US 1000
#define TIMER_BUDGET 256 /* events of a turn */

/* There is a place for each CQ. */
void hca_moderation_init(HcaCxtMgt *cm)
{
    cm->cq_timers.slot = g_new(HcaHeapNode *, 1u << cm->config->log_cqs);
}

void hca_moderation_cleanup(HcaCxtMgt *cm)
{
    g_free(cm->cq_timers.slot);
}

bool hca_cq_is_moderated(const HcaCq *cq)
{
    return cq->event_count && cq->event_period_us;
}

static bool has_enough(const HcaCq *cq)
{
    return !hca_cq_is_moderated(cq) || hca_cq_untold(cq) >= cq->event_count;
}

static int64_t period_end(HcaCxtMgt *cm, const HcaCq *cq)
{
    return cm->host.ops->clock_ns(cm->host.opaque) +
           (int64_t)cq->event_period_us * NS_PER_US;
}

bool hca_cq_hold(HcaCxtMgt *cm, HcaCq *cq)
{
    if (has_enough(cq)) {
        return false;
    }
    cm->counters.cq_held++;
    if (cq->timer.slot < 0) {
        hca_heap_put(&cm->cq_timers, &cq->timer, period_end(cm, cq));
    }
    return true;
}

void hca_cq_stop_timer(HcaCxtMgt *cm, HcaCq *cq)
{
    hca_heap_remove(&cm->cq_timers, &cq->timer);
}

/* An event that waits comes no later than it would have. */
static void apply(HcaCxtMgt *cm, HcaCq *cq)
{
    int64_t end;

    if (cq->timer.slot < 0) {
        return;
    }
    if (has_enough(cq)) {
        hca_cq_fire(cm, cq);
        hca_eq_completion(cm, cq);
        return;
    }
    end = period_end(cm, cq);
    hca_heap_put(&cm->cq_timers, &cq->timer, MIN(end, cq->timer.key));
}

uint8_t hca_cxtmgt_modify_cq(HcaCxtMgt *cm, uint32_t cqn, uint16_t count,
                             uint16_t period_us)
{
    HcaCq *cq;
    uint8_t status = hca_cq_owned(cm, cqn, &cq);

    if (status) {
        return status;
    }
    if (!hca_cxt_writable(cm, &cm->cqc, cqn)) {
        return HCA_STAT_BAD_SEG_PARAM;
    }
    cq->event_count = count;
    cq->event_period_us = period_us;
    apply(cm, cq);
    hca_cq_write_context(cm, cq);
    return HCA_STAT_OK;
}

int64_t hca_cxtmgt_deadline(const HcaCxtMgt *cm)
{
    const HcaHeapNode *first = hca_heap_first(&cm->cq_timers);

    return first ? first->key : INT64_MAX;
}

/* A timer runs only while its CQ is armed and has entries to tell of. */
bool hca_cxtmgt_run_timers(HcaCxtMgt *cm)
{
    int64_t now;

    if (!hca_heap_first(&cm->cq_timers)) {
        return false;
    }
    now = cm->host.ops->clock_ns(cm->host.opaque);
    for (unsigned n = 0; n < TIMER_BUDGET; n++) {
        HcaHeapNode *first = hca_heap_first(&cm->cq_timers);
        HcaCq *cq;

        if (!first || first->key > now) {
            return false;
        }
        cq = HCA_HEAP_ENTRY(first, HcaCq, timer);
        cm->counters.cq_periods++;
        hca_cq_fire(cm, cq);
        hca_eq_completion(cm, cq);
    }
    return true;
}
