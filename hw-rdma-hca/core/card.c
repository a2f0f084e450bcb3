/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QPs' turns and timers; see card.h. */
#include "card.h"

static const char *const trace_names[] = {
#define TRACE_NAME(name, ...) #name,
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
    hca->timers.slot = g_new(HcaHeapNode *, 1u << hca->config.log_qps);
    hca->alarm = INT64_MAX;
}

void hca_card_cleanup(Hca *hca)
{
    g_free(hca->timers.slot);
}

void hca_card_add_qp(HcaQp *qp)
{
    qp->send_turn.link.data = qp;
    qp->resp_turn.link.data = qp;
    for (unsigned i = 0; i < HCA_NTIMERS; i++) {
        qp->deadline[i] = INT64_MAX;
    }
    qp->timer.slot = -1;
    qp->pool_wait.slot = -1;
    qp->send_ask = (HcaV2pAsk) { .owner = qp, .unit = HCA_ASK_SEND };
    qp->resp_ask = (HcaV2pAsk) { .owner = qp, .unit = HCA_ASK_RESP };
}

/* Run queues */

static void remove_node(HcaRunQueue *queue, HcaRunNode *node)
{
    GQueue *lane = &queue->lane[node->lane];

    node->queued = false;
    g_queue_unlink(lane, &node->link);
    if (!lane->length) {
        queue->lanes &= ~(1u << node->lane);
    }
    queue->length--;
}

void hca_run_queue_put(HcaRunQueue *queue, HcaRunNode *node, unsigned lane)
{
    if (node->queued) {
        remove_node(queue, node);
    }
    node->queued = true;
    node->lane = lane;
    g_queue_push_tail_link(&queue->lane[lane], &node->link);
    queue->lanes |= 1u << lane;
    queue->length++;
}

HcaQp *hca_run_queue_take(HcaRunQueue *queue, unsigned lane)
{
    GList *link = queue->lane[lane].head;
    HcaRunNode *node = (HcaRunNode *)link; /* its first member */

    remove_node(queue, node);
    return link->data;
}

void hca_schedule_send(Hca *hca, HcaQp *qp)
{
    if (!qp->send_turn.queued) {
        hca_run_queue_put(&hca->send_queue, &qp->send_turn, qp->lane);
    }
}

void hca_schedule_resp(Hca *hca, HcaQp *qp)
{
    if (!qp->resp_turn.queued) {
        hca_run_queue_put(&hca->resp_queue, &qp->resp_turn, qp->lane);
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

    if (timer != HCA_TIMER_FLUSH) {
        hca->timers_of_peers += (deadline != INT64_MAX) -
                                hca_timer_runs(qp, timer);
    }
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

/* A time that a state has told may be any. */
static int64_t later(int64_t deadline, int64_t ns)
{
    return MIN(deadline, INT64_MAX - 1 - ns) + ns;
}

/* The same for all: which of them is first remains. */
void hca_timers_delay(Hca *hca, int64_t ns)
{
    for (unsigned i = 0; i < hca->timers.count; i++) {
        HcaHeapNode *node = hca->timers.slot[i];
        HcaQp *qp = HCA_HEAP_QP(node, timer);

        node->key = later(node->key, ns);
        for (unsigned timer = 0; timer < HCA_NTIMERS; timer++) {
            if (hca_timer_runs(qp, timer)) {
                qp->deadline[timer] = later(qp->deadline[timer], ns);
            }
        }
    }
}

void hca_card_forget_qp(Hca *hca, HcaQp *qp)
{
    for (unsigned i = 0; i < HCA_NTIMERS; i++) {
        hca_timer_stop(hca, qp, i);
    }
    hca_v2p_ask_forget(hca->v2p, &qp->send_ask);
    hca_v2p_ask_forget(hca->v2p, &qp->resp_ask);
    if (qp->send_turn.queued) {
        remove_node(&hca->send_queue, &qp->send_turn);
    }
    if (qp->resp_turn.queued) {
        remove_node(&hca->resp_queue, &qp->resp_turn);
    }
}
