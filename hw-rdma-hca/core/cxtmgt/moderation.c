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
bool hca_cq_moderate(HcaCxtMgt *cm, HcaCq *cq, uint16_t count,
                     uint16_t period_us)
{
    cq->event_count = count;
    cq->event_period_us = period_us;
    if (cq->timer.slot < 0) {
        return false;
    }
    if (!has_enough(cq)) {
        int64_t end = period_end(cm, cq);

        hca_heap_put(&cm->cq_timers, &cq->timer, MIN(end, cq->timer.key));
        return false;
    }
    return true;
}

int64_t hca_cxtmgt_deadline(const HcaCxtMgt *cm)
{
    const HcaHeapNode *first = hca_heap_first(&cm->cq_timers);

    return first ? first->key : INT64_MAX;
}

/* A timer runs only while its CQ is armed and has entries to tell of. */
HcaCq *hca_cq_next_due(HcaCxtMgt *cm, int64_t now)
{
    HcaHeapNode *first = hca_heap_first(&cm->cq_timers);

    if (!first || first->key > now) {
        return NULL;
    }
    cm->counters.cq_periods++;
    return HCA_HEAP_ENTRY(first, HcaCq, timer);
}
