/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * MultiQueue (engine document 3.4.3, figures 3.7 to 3.10).
 *
 * A packet takes two elements for its header metadata and one for each 32
 * bytes of payload, as in the document; more only if it lies in so many
 * pieces that their references (two an element) need it.
 */
#include "multi_queue.h"

#define ELEMENT_SIZE 32
#define HEADER_ELEMENTS 2
#define REFS_PER_ELEMENT 2

typedef struct SwpbElement {
    uint16_t next;              /* packet of the QP, or more references */
    uint16_t refs;              /* header: the first element of references */
    union {
        HcaSentPacket packet;
        HcaSge ref[REFS_PER_ELEMENT];
    };
} SwpbElement;

typedef struct RpbElement {
    uint16_t next;
    HcaSentRead read;
} RpbElement;

typedef struct RebElement {
    uint16_t next;
    HcaSge entry;
} RebElement;

/* A free list: a stack of indices (the document's Free FIFO). */
typedef struct FreeList {
    uint16_t *index;
    uint32_t count;
} FreeList;

struct HcaMultiQueue {
    SwpbElement *swpb;
    RpbElement *rpb;
    RebElement *reb;
    FreeList swpb_free;
    FreeList rpb_free;
    FreeList reb_free;
    uint32_t swpb_size;
    uint32_t swpb_used;         /* as the document counts */
    GQueue waiting;             /* QPs that found no room, by pool_link */
};

static void free_list_init(FreeList *list, uint32_t size)
{
    list->index = g_new(uint16_t, size);
    list->count = 0;
    while (size) {
        list->index[list->count++] = --size;
    }
}

static uint16_t free_list_pop(FreeList *list)
{
    return list->index[--list->count];
}

static void free_list_push(FreeList *list, uint16_t index)
{
    list->index[list->count++] = index;
}

HcaMultiQueue *hca_mq_new(const HcaConfig *config)
{
    HcaMultiQueue *mq = g_new0(HcaMultiQueue, 1);

    mq->swpb = g_new0(SwpbElement, config->swpb_elements);
    mq->rpb = g_new0(RpbElement, config->rpb_elements);
    mq->reb = g_new0(RebElement, config->reb_elements);
    mq->swpb_size = config->swpb_elements;
    free_list_init(&mq->swpb_free, config->swpb_elements);
    free_list_init(&mq->rpb_free, config->rpb_elements);
    free_list_init(&mq->reb_free, config->reb_elements);
    return mq;
}

void hca_mq_free(HcaMultiQueue *mq)
{
    g_free(mq->swpb);
    g_free(mq->rpb);
    g_free(mq->reb);
    g_free(mq->swpb_free.index);
    g_free(mq->rpb_free.index);
    g_free(mq->reb_free.index);
    g_free(mq);
}

static void wait_for_room(HcaMultiQueue *mq, HcaQp *qp)
{
    if (!qp->pool_queued) {
        qp->pool_queued = true;
        qp->pool_link.data = qp;
        g_queue_push_tail_link(&mq->waiting, &qp->pool_link);
    }
}

/* Room was made: whoever waits may look again, the longest waiting first. */
static void room_made(Hca *hca)
{
    HcaMultiQueue *mq = hca->mq;
    GList *link;

    while ((link = g_queue_pop_head_link(&mq->waiting))) {
        HcaQp *qp = link->data;

        qp->pool_queued = false;
        hca_schedule_send(hca, qp);
    }
}

static uint32_t elements_of(uint32_t len, unsigned nrefs)
{
    uint32_t for_payload = len / ELEMENT_SIZE + (len % ELEMENT_SIZE != 0);
    uint32_t for_refs = (nrefs + REFS_PER_ELEMENT - 1) / REFS_PER_ELEMENT;

    return HEADER_ELEMENTS + MAX(for_payload, for_refs);
}

/*
 * QPs share the pool by a dynamic threshold: one that holds elements gets
 * more only while that leaves it at most twice what is free. A busy QP alone
 * has two thirds of the pool, and a newcomer always finds room soon.
 */
bool hca_mq_swpb_room(Hca *hca, HcaQp *qp, uint32_t len, unsigned nrefs)
{
    HcaMultiQueue *mq = hca->mq;
    uint32_t need = elements_of(len, nrefs);
    uint32_t left = mq->swpb_size - mq->swpb_used;

    if (need <= left && (!qp->req.swpb_elements ||
                         qp->req.swpb_elements + need <= 2 * (left - need))) {
        return true;
    }
    wait_for_room(mq, qp);
    return false;
}

bool hca_mq_read_room(Hca *hca, HcaQp *qp, unsigned nentries)
{
    HcaMultiQueue *mq = hca->mq;

    if (mq->rpb_free.count && mq->reb_free.count >= nentries) {
        return true;
    }
    wait_for_room(mq, qp);
    return false;
}

/* @index, whose next is none, becomes the last; @tail_next links the old one */
static void list_append(HcaMqList *list, uint16_t index, uint16_t *tail_next)
{
    if (list->count) {
        *tail_next = index;
    } else {
        list->head = index;
    }
    list->tail = index;
    list->count++;
}

static uint16_t list_remove(HcaMqList *list, uint16_t next)
{
    uint16_t index = list->head;

    list->head = next;
    list->count--;
    return index;
}

void hca_mq_swpb_insert(Hca *hca, HcaQp *qp, const HcaSentPacket *packet,
                        const HcaSge *refs)
{
    HcaMultiQueue *mq = hca->mq;
    HcaMqList *list = &qp->req.swpb;
    uint32_t used = elements_of(packet->len, packet->nrefs);
    uint16_t index = free_list_pop(&mq->swpb_free);
    uint16_t *link = &mq->swpb[index].refs;

    mq->swpb[index].next = HCA_MQ_NONE;
    mq->swpb[index].packet = *packet;
    for (unsigned i = 0; i < packet->nrefs; i++) {
        if (i % REFS_PER_ELEMENT == 0) {
            *link = free_list_pop(&mq->swpb_free);
            link = &mq->swpb[*link].next;
        }
    }
    *link = HCA_MQ_NONE;
    link = &mq->swpb[index].refs;
    for (unsigned i = 0; i < packet->nrefs; i++) {
        mq->swpb[*link].ref[i % REFS_PER_ELEMENT] = refs[i];
        if (i % REFS_PER_ELEMENT == REFS_PER_ELEMENT - 1) {
            link = &mq->swpb[*link].next;
        }
    }
    list_append(list, index, &mq->swpb[list->tail].next);
    qp->req.swpb_elements += used;
    mq->swpb_used += used;
}

void hca_mq_swpb_release(Hca *hca, HcaQp *qp)
{
    HcaMultiQueue *mq = hca->mq;
    uint16_t head = qp->req.swpb.head;
    SwpbElement *element = &mq->swpb[head];
    uint32_t used = elements_of(element->packet.len, element->packet.nrefs);

    if (qp->req.resend_swpb == head) {
        qp->req.resend_swpb = element->next;
    }
    for (uint16_t ref = element->refs; ref != HCA_MQ_NONE;) {
        uint16_t next = mq->swpb[ref].next;

        free_list_push(&mq->swpb_free, ref);
        ref = next;
    }
    free_list_push(&mq->swpb_free,
                   list_remove(&qp->req.swpb, element->next));
    qp->req.swpb_elements -= used;
    mq->swpb_used -= used;
    room_made(hca);
}

void hca_mq_read_insert(Hca *hca, HcaQp *qp, const HcaSentRead *read,
                        const HcaSge *entries)
{
    HcaMultiQueue *mq = hca->mq;
    HcaMqList *list = &qp->req.rpb;
    uint16_t index = free_list_pop(&mq->rpb_free);

    mq->rpb[index].next = HCA_MQ_NONE;
    mq->rpb[index].read = *read;
    list_append(list, index, &mq->rpb[list->tail].next);

    list = &qp->req.reb;
    for (unsigned i = 0; i < read->nentries; i++) {
        index = free_list_pop(&mq->reb_free);
        mq->reb[index].next = HCA_MQ_NONE;
        mq->reb[index].entry = entries[i];
        list_append(list, index, &mq->reb[list->tail].next);
    }
}

void hca_mq_reb_release(Hca *hca, HcaQp *qp)
{
    HcaMultiQueue *mq = hca->mq;
    uint16_t head = qp->req.reb.head;

    mq->rpb[qp->req.rpb.head].read.nentries--;
    free_list_push(&mq->reb_free,
                   list_remove(&qp->req.reb, mq->reb[head].next));
    room_made(hca);
}

void hca_mq_rpb_release(Hca *hca, HcaQp *qp)
{
    HcaMultiQueue *mq = hca->mq;
    uint16_t head = qp->req.rpb.head;

    while (mq->rpb[head].read.nentries) {
        hca_mq_reb_release(hca, qp);
    }
    if (qp->req.resend_rpb == head) {
        qp->req.resend_rpb = mq->rpb[head].next;
    }
    free_list_push(&mq->rpb_free,
                   list_remove(&qp->req.rpb, mq->rpb[head].next));
    room_made(hca);
}

HcaSentPacket *hca_mq_swpb_head(Hca *hca, HcaQp *qp)
{
    return qp->req.swpb.count ? &hca->mq->swpb[qp->req.swpb.head].packet
                              : NULL;
}

HcaSentRead *hca_mq_rpb_head(Hca *hca, HcaQp *qp)
{
    return qp->req.rpb.count ? &hca->mq->rpb[qp->req.rpb.head].read : NULL;
}

/* The first entry that the first Read still needs. */
HcaSge *hca_mq_reb_head(Hca *hca, HcaQp *qp)
{
    HcaSentRead *read = hca_mq_rpb_head(hca, qp);

    return read && read->nentries ? &hca->mq->reb[qp->req.reb.head].entry
                                  : NULL;
}

HcaSentPacket *hca_mq_swpb_at(Hca *hca, uint16_t index, uint16_t *next)
{
    *next = hca->mq->swpb[index].next;
    return &hca->mq->swpb[index].packet;
}

HcaSentRead *hca_mq_rpb_at(Hca *hca, uint16_t index, uint16_t *next)
{
    *next = hca->mq->rpb[index].next;
    return &hca->mq->rpb[index].read;
}

unsigned hca_mq_swpb_refs(Hca *hca, uint16_t index, HcaSge *refs)
{
    const SwpbElement *header = &hca->mq->swpb[index];
    uint16_t at = header->refs;

    for (unsigned i = 0; i < header->packet.nrefs; i++) {
        refs[i] = hca->mq->swpb[at].ref[i % REFS_PER_ELEMENT];
        if (i % REFS_PER_ELEMENT == REFS_PER_ELEMENT - 1) {
            at = hca->mq->swpb[at].next;
        }
    }
    return header->packet.nrefs;
}

void hca_mq_forget(Hca *hca, HcaQp *qp)
{
    if (qp->pool_queued) {
        g_queue_unlink(&hca->mq->waiting, &qp->pool_link);
        qp->pool_queued = false;
    }
    while (qp->req.swpb.count) {
        hca_mq_swpb_release(hca, qp);
    }
    while (qp->req.rpb.count) {
        hca_mq_rpb_release(hca, qp);
    }
}
