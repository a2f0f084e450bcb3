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
    hca->timers.slot = g_new(HcaHeapNode *, 1u << hca->config.log_qps);
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
    for (unsigned i = 0; i < HCA_NTIMERS; i++) {
        qp->deadline[i] = INT64_MAX;
    }
    qp->timer.slot = -1;
    qp->pool_wait.slot = -1;
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

/* Binary heaps; each node knows its place. */

static void heap_set(HcaHeap *heap, unsigned slot, HcaHeapNode *node)
{
    heap->slot[slot] = node;
    node->slot = slot;
}

static void heap_up(HcaHeap *heap, unsigned slot, HcaHeapNode *node)
{
    while (slot) {
        unsigned parent = (slot - 1) / 2;

        if (heap->slot[parent]->key <= node->key) {
            break;
        }
        heap_set(heap, slot, heap->slot[parent]);
        slot = parent;
    }
    heap_set(heap, slot, node);
}

static void heap_down(HcaHeap *heap, unsigned slot, HcaHeapNode *node)
{
    for (;;) {
        unsigned child = 2 * slot + 1;

        if (child + 1 < heap->count &&
            heap->slot[child + 1]->key < heap->slot[child]->key) {
            child++;
        }
        if (child >= heap->count || heap->slot[child]->key >= node->key) {
            break;
        }
        heap_set(heap, slot, heap->slot[child]);
        slot = child;
    }
    heap_set(heap, slot, node);
}

void hca_heap_put(HcaHeap *heap, HcaHeapNode *node, int64_t key)
{
    unsigned slot = node->slot < 0 ? heap->count++ : (unsigned)node->slot;

    node->key = key;
    heap_up(heap, slot, node);
    heap_down(heap, node->slot, node);
}

void hca_heap_remove(HcaHeap *heap, HcaHeapNode *node)
{
    unsigned slot = node->slot;
    HcaHeapNode *last;

    if (node->slot < 0) {
        return;
    }
    node->slot = -1;
    last = heap->slot[--heap->count];
    if (last != node) {
        heap_up(heap, slot, last);
        heap_down(heap, last->slot, last);
    }
}

/* Timers */

void hca_timer_set(Hca *hca, HcaQp *qp, HcaQpTimer timer, int64_t deadline)
{
    int64_t at = INT64_MAX;

    qp->deadline[timer] = deadline;
    for (unsigned i = 0; i < HCA_NTIMERS; i++) {
        at = MIN(at, qp->deadline[i]);
    }
    if (at == INT64_MAX) {
        hca_heap_remove(&hca->timers, &qp->timer);
    } else {
        hca_heap_put(&hca->timers, &qp->timer, at);
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
    HcaHeapNode *first = hca_heap_first(&hca->timers);

    return first ? HCA_HEAP_QP(first, timer) : NULL;
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
