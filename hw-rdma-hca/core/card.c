/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QPs' turns and timers; see card.h. */
#include "card.h"

static const char *const trace_names[] = {
#define TRACE_NAME(name) #name,
    HCA_TRACE_EVENTS(TRACE_NAME)
#undef TRACE_NAME
};

const char *hca_trace_name(unsigned event)
{
    return event < G_N_ELEMENTS(trace_names) ? trace_names[event] : NULL;
}

/* Life */

/* There is a place in the heap for each QP. */
void hca_card_init(Hca *hca)
{
    g_queue_init(&hca->send_queue);
    g_queue_init(&hca->resp_queue);
    hca->timers.slot = g_new(HcaQp *, 1u << hca->config.log_qps);
    hca->alarm = INT64_MAX;
}

void hca_card_cleanup(Hca *hca)
{
    g_free(hca->timers.slot);
}

void hca_card_add_qp(HcaQp *qp)
{
    qp->send_link.data = qp;
    qp->resp_link.data = qp;
    qp->pool_link.data = qp;
    for (unsigned i = 0; i < HCA_NTIMERS; i++) {
        qp->deadline[i] = INT64_MAX;
    }
    qp->timer_slot = -1;
}

/* Run queues */

void hca_schedule_send(Hca *hca, HcaQp *qp)
{
    if (!qp->send_queued) {
        qp->send_queued = true;
        g_queue_push_tail_link(&hca->send_queue, &qp->send_link);
    }
}

void hca_schedule_resp(Hca *hca, HcaQp *qp)
{
    if (!qp->resp_queued) {
        qp->resp_queued = true;
        g_queue_push_tail_link(&hca->resp_queue, &qp->resp_link);
    }
}

/* Timers: a binary heap of QPs by timer_at; each QP knows its place. */

static void heap_put(HcaTimerHeap *heap, unsigned slot, HcaQp *qp)
{
    heap->slot[slot] = qp;
    qp->timer_slot = slot;
}

static void heap_up(HcaTimerHeap *heap, unsigned slot, HcaQp *qp)
{
    while (slot) {
        unsigned parent = (slot - 1) / 2;

        if (heap->slot[parent]->timer_at <= qp->timer_at) {
            break;
        }
        heap_put(heap, slot, heap->slot[parent]);
        slot = parent;
    }
    heap_put(heap, slot, qp);
}

static void heap_down(HcaTimerHeap *heap, unsigned slot, HcaQp *qp)
{
    for (;;) {
        unsigned child = 2 * slot + 1;

        if (child + 1 < heap->count &&
            heap->slot[child + 1]->timer_at < heap->slot[child]->timer_at) {
            child++;
        }
        if (child >= heap->count ||
            heap->slot[child]->timer_at >= qp->timer_at) {
            break;
        }
        heap_put(heap, slot, heap->slot[child]);
        slot = child;
    }
    heap_put(heap, slot, qp);
}

static void heap_remove(HcaTimerHeap *heap, HcaQp *qp)
{
    unsigned slot = qp->timer_slot;
    HcaQp *last;

    if (qp->timer_slot < 0) {
        return;
    }
    qp->timer_slot = -1;
    last = heap->slot[--heap->count];
    if (last != qp) {
        heap_up(heap, slot, last);
        heap_down(heap, last->timer_slot, last);
    }
}

void hca_timer_set(Hca *hca, HcaQp *qp, HcaQpTimer timer, int64_t deadline)
{
    HcaTimerHeap *heap = &hca->timers;
    int64_t was = qp->timer_at;
    int64_t at = INT64_MAX;

    qp->deadline[timer] = deadline;
    for (unsigned i = 0; i < HCA_NTIMERS; i++) {
        at = MIN(at, qp->deadline[i]);
    }
    qp->timer_at = at;
    if (at == INT64_MAX) {
        heap_remove(heap, qp);
    } else if (qp->timer_slot < 0) {
        heap_up(heap, heap->count++, qp);
    } else if (at < was) {
        heap_up(heap, qp->timer_slot, qp);
    } else if (at > was) {
        heap_down(heap, qp->timer_slot, qp);
    }
}

void hca_timer_stop(Hca *hca, HcaQp *qp, HcaQpTimer timer)
{
    hca_timer_set(hca, qp, timer, INT64_MAX);
}

bool hca_timer_take(Hca *hca, HcaQp *qp, HcaQpTimer timer, int64_t now)
{
    bool ended = qp->deadline[timer] <= now;

    if (ended) {
        hca_timer_stop(hca, qp, timer);
    }
    return ended;
}

HcaQp *hca_timer_first(const Hca *hca)
{
    return hca->timers.count ? hca->timers.slot[0] : NULL;
}

void hca_card_forget_qp(Hca *hca, HcaQp *qp)
{
    for (unsigned i = 0; i < HCA_NTIMERS; i++) {
        hca_timer_stop(hca, qp, i);
    }
    if (qp->send_queued) {
        g_queue_unlink(&hca->send_queue, &qp->send_link);
        qp->send_queued = false;
    }
    if (qp->resp_queued) {
        g_queue_unlink(&hca->resp_queue, &qp->resp_link);
        qp->resp_queued = false;
    }
}
