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

/*
 * What a QP has for itself, be the pool full or not: one packet and one Read, of
 * as many pieces as there can be; or more, up to a part of what the pool counts
 * and to this much memory beside it (16 packets and 8 Reads of few pieces).
 */
#define OWN_SWPB_PART 16
#define OWN_RPB_PART 64
#define OWN_REB_PART 64
#define OWN_SWPB 32
#define OWN_RPB 8
#define OWN_REB 32
G_STATIC_ASSERT(OWN_SWPB >= 1 + RDMA_HCA_MAX_SGE / REFS_PER_ELEMENT &&
                OWN_REB >= RDMA_HCA_MAX_SGE);

typedef struct SwpbElement {
    uint32_t next; /* packet of the QP, or more references */
    uint32_t refs; /* header: the first element of references */
    union {
        HcaSentPacket packet;
        HcaSge ref[REFS_PER_ELEMENT];
    };
} SwpbElement;

typedef struct RpbElement {
    uint32_t next;
    HcaSentRead read;
} RpbElement;

typedef struct RebElement {
    uint32_t next;
    HcaSge entry;
} RebElement;

/*
 * A free list (the document's Free FIFO): a stack of indices that came back,
 * and the first that was never out. Memory of elements beyond that has never
 * been touched.
 */
typedef struct FreeList {
    uint32_t *index;
    uint32_t count;
    uint32_t fresh;
} FreeList;

/* A pool as the document counts it, and the QPs that found no room. */
typedef struct Pool {
    uint32_t size;
    HcaMqUse use;
    uint32_t promised; /* to QPs that have been given a turn for it */
    HcaHeap waiting;   /* by what has to be free (pool_wait) */
} Pool;

enum {
    POOL_SWPB,
    POOL_RPB,
    POOL_REB,
    NPOOLS
};

struct HcaMultiQueue {
    SwpbElement *swpb;
    RpbElement *rpb;
    RebElement *reb;
    FreeList swpb_free;
    FreeList rpb_free;
    FreeList reb_free;
    Pool pool[NPOOLS];
};

static uint32_t free_list_pop(FreeList *list)
{
    return list->count ? list->index[--list->count] : list->fresh++;
}

static void free_list_push(FreeList *list, uint32_t index)
{
    list->index[list->count++] = index;
}

HcaMultiQueue *hca_mq_new(const HcaConfig *config)
{
    HcaMultiQueue *mq = g_new0(HcaMultiQueue, 1);
    size_t qps = (size_t)1 << config->log_qps;
    size_t swpb = config->swpb_elements + qps * OWN_SWPB;
    size_t rpb = config->rpb_elements + qps * OWN_RPB;
    size_t reb = config->reb_elements + qps * OWN_REB;

    mq->pool[POOL_SWPB].size = config->swpb_elements;
    mq->pool[POOL_RPB].size = config->rpb_elements;
    mq->pool[POOL_REB].size = config->reb_elements;
    for (unsigned i = 0; i < NPOOLS; i++) {
        mq->pool[i].waiting.slot = g_new(HcaHeapNode *, qps);
    }
    mq->swpb = g_new0(SwpbElement, swpb);
    mq->rpb = g_new0(RpbElement, rpb);
    mq->reb = g_new0(RebElement, reb);
    mq->swpb_free.index = g_new0(uint32_t, swpb);
    mq->rpb_free.index = g_new0(uint32_t, rpb);
    mq->reb_free.index = g_new0(uint32_t, reb);
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
    for (unsigned i = 0; i < NPOOLS; i++) {
        g_free(mq->pool[i].waiting.slot);
    }
    g_free(mq);
}

static uint32_t elements_of(uint32_t len, unsigned nrefs)
{
    uint32_t for_payload = len / ELEMENT_SIZE + (len % ELEMENT_SIZE != 0);
    uint32_t for_refs = (nrefs + REFS_PER_ELEMENT - 1) / REFS_PER_ELEMENT;

    return HEADER_ELEMENTS + MAX(for_payload, for_refs);
}

/* What a packet takes of the pool's memory: no more than what it counts for. */
static uint32_t memory_of(unsigned nrefs)
{
    return 1 + (nrefs + REFS_PER_ELEMENT - 1) / REFS_PER_ELEMENT;
}

/* What a QP wants of a pool, and what it has of it already. */
typedef struct Want {
    unsigned pool;
    uint32_t held;
    uint32_t need;
    bool own; /* it fits into what the QP has for itself */
} Want;

/*
 * QPs share a pool by a dynamic threshold: one that holds more than its own gets
 * more only while that leaves it at most twice what is free. A busy QP alone has
 * two thirds of the pool, and a newcomer soon finds room. Those whose peers do
 * not answer keep what they have, so each QP has something of its own.
 */
static uint32_t has_to_be_free(const Want *want)
{
    return want->own ? 0 : want->need + (want->held + want->need + 1) / 2;
}

static uint32_t free_of(const Pool *pool)
{
    uint32_t taken = pool->use.used + pool->promised;

    return taken < pool->size ? pool->size - taken : 0;
}

/*
 * Room was made: as many of those that wait as it is enough for have a turn,
 * and nobody else gets it before. Who wants least is first; who holds much
 * wants much, and less with each answer of its own.
 */
static void wake(Hca *hca, Pool *pool)
{
    HcaHeapNode *first;

    while ((first = hca_heap_first(&pool->waiting)) &&
           first->key <= free_of(pool)) {
        HcaQp *qp = HCA_HEAP_QP(first, pool_wait);

        hca_heap_remove(&pool->waiting, first);
        qp->pool_promised = true;
        pool->promised += qp->pool_need;
        hca_schedule_send(hca, qp);
    }
}

/* @qp waits no more. The pool that it had a promise of, or NULL. */
static Pool *end_wait(HcaMultiQueue *mq, HcaQp *qp)
{
    Pool *pool = &mq->pool[qp->pool];

    hca_heap_remove(&pool->waiting, &qp->pool_wait);
    if (!qp->pool_promised) {
        return NULL;
    }
    qp->pool_promised = false;
    pool->promised -= qp->pool_need;
    return pool;
}

void hca_mq_stop_waiting(Hca *hca, HcaQp *qp)
{
    Pool *given_back = end_wait(hca->requester->mq, qp);

    if (given_back) {
        wake(hca, given_back);
    }
}

/* Whether there is all of @wants; else @qp waits for the first that is not. */
static bool has_room(Hca *hca, HcaQp *qp, const Want *wants, unsigned n)
{
    HcaMultiQueue *mq = hca->requester->mq;
    Pool *given_back = end_wait(mq, qp);

    for (unsigned i = 0; i < n; i++) {
        Pool *pool = &mq->pool[wants[i].pool];
        uint32_t least = has_to_be_free(&wants[i]);

        if (least > free_of(pool)) {
            qp->pool = wants[i].pool;
            qp->pool_need = wants[i].need;
            hca_heap_put(&pool->waiting, &qp->pool_wait, least);
            if (given_back) {
                wake(hca, given_back);
            }
            return false;
        }
    }
    return true;
}

static bool is_part(const HcaMultiQueue *mq, unsigned pool, unsigned part,
                    uint32_t elements)
{
    return elements <= mq->pool[pool].size / part;
}

bool hca_mq_swpb_room(Hca *hca, HcaQp *qp, uint32_t len, unsigned nrefs)
{
    const HcaMultiQueue *mq = hca->requester->mq;
    const HcaRequester *req = &qp->req;
    uint32_t need = elements_of(len, nrefs);
    Want want = {
        .pool = POOL_SWPB,
        .held = req->swpb_elements,
        .need = need,
        .own = !req->swpb_elements ||
               (is_part(mq, POOL_SWPB, OWN_SWPB_PART,
                        req->swpb_elements + need) &&
                req->swpb_memory + memory_of(nrefs) <= OWN_SWPB),
    };

    return has_room(hca, qp, &want, 1);
}

bool hca_mq_read_room(Hca *hca, HcaQp *qp, unsigned nentries)
{
    const HcaMultiQueue *mq = hca->requester->mq;
    uint32_t reads = qp->req.rpb.count;
    uint32_t entries = qp->req.reb.count;
    bool own = !reads ||
               (is_part(mq, POOL_RPB, OWN_RPB_PART, reads + 1) &&
                is_part(mq, POOL_REB, OWN_REB_PART, entries + nentries) &&
                reads < OWN_RPB && entries + nentries <= OWN_REB);
    Want wants[] = {
        { .pool = POOL_RPB, .held = reads, .need = 1, .own = own },
        { .pool = POOL_REB, .held = entries, .need = nentries, .own = own },
    };

    return has_room(hca, qp, wants, G_N_ELEMENTS(wants));
}

static void use_more(Pool *pool, uint32_t n)
{
    pool->use.used += n;
    pool->use.peak = MAX(pool->use.peak, pool->use.used);
}

static void use_less(Hca *hca, Pool *pool, uint32_t n)
{
    pool->use.used -= n;
    wake(hca, pool);
}

/* @index, whose next is none, becomes the last; @tail_next links the old one */
static void list_append(HcaMqList *list, uint32_t index, uint32_t *tail_next)
{
    if (list->count) {
        *tail_next = index;
    } else {
        list->head = index;
    }
    list->tail = index;
    list->count++;
}

static uint32_t list_remove(HcaMqList *list, uint32_t next)
{
    uint32_t index = list->head;

    list->head = next;
    list->count--;
    return index;
}

void hca_mq_swpb_set_refs(Hca *hca, uint32_t index, const HcaSge *refs)
{
    HcaMultiQueue *mq = hca->requester->mq;
    uint32_t at = mq->swpb[index].refs;

    for (unsigned i = 0; i < mq->swpb[index].packet.nrefs; i++) {
        mq->swpb[at].ref[i % REFS_PER_ELEMENT] = refs[i];
        if (i % REFS_PER_ELEMENT == REFS_PER_ELEMENT - 1) {
            at = mq->swpb[at].next;
        }
    }
}

void hca_mq_swpb_insert(Hca *hca, HcaQp *qp, const HcaSentPacket *packet,
                        const HcaSge *refs)
{
    HcaMultiQueue *mq = hca->requester->mq;
    HcaMqList *list = &qp->req.swpb;
    uint32_t used = elements_of(packet->len, packet->nrefs);
    uint32_t index = free_list_pop(&mq->swpb_free);
    uint32_t *link = &mq->swpb[index].refs;

    mq->swpb[index].next = HCA_MQ_NONE;
    mq->swpb[index].packet = *packet;
    for (unsigned i = 0; i < packet->nrefs; i++) {
        if (i % REFS_PER_ELEMENT == 0) {
            *link = free_list_pop(&mq->swpb_free);
            link = &mq->swpb[*link].next;
        }
    }
    *link = HCA_MQ_NONE;
    hca_mq_swpb_set_refs(hca, index, refs);
    list_append(list, index, &mq->swpb[list->tail].next);
    qp->req.locals += packet->local;
    qp->req.swpb_elements += used;
    qp->req.swpb_memory += memory_of(packet->nrefs);
    use_more(&mq->pool[POOL_SWPB], used);
}

void hca_mq_swpb_release(Hca *hca, HcaQp *qp)
{
    HcaMultiQueue *mq = hca->requester->mq;
    uint32_t head = qp->req.swpb.head;
    SwpbElement *element = &mq->swpb[head];
    uint32_t used = elements_of(element->packet.len, element->packet.nrefs);

    if (qp->req.resend_swpb == head) {
        qp->req.resend_swpb = element->next;
    }
    qp->req.locals -= element->packet.local;
    qp->req.swpb_memory -= memory_of(element->packet.nrefs);
    for (uint32_t ref = element->refs; ref != HCA_MQ_NONE;) {
        uint32_t next = mq->swpb[ref].next;

        free_list_push(&mq->swpb_free, ref);
        ref = next;
    }
    free_list_push(&mq->swpb_free, list_remove(&qp->req.swpb, element->next));
    qp->req.swpb_elements -= used;
    use_less(hca, &mq->pool[POOL_SWPB], used);
}

void hca_mq_read_insert(Hca *hca, HcaQp *qp, const HcaSentRead *read,
                        const HcaSge *entries)
{
    HcaMultiQueue *mq = hca->requester->mq;
    HcaMqList *list = &qp->req.rpb;
    uint32_t index = free_list_pop(&mq->rpb_free);

    mq->rpb[index].next = HCA_MQ_NONE;
    mq->rpb[index].read = *read;
    list_append(list, index, &mq->rpb[list->tail].next);
    use_more(&mq->pool[POOL_RPB], 1);
    use_more(&mq->pool[POOL_REB], read->nentries);

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
    HcaMultiQueue *mq = hca->requester->mq;
    uint32_t head = qp->req.reb.head;

    mq->rpb[qp->req.rpb.head].read.nentries--;
    free_list_push(&mq->reb_free,
                   list_remove(&qp->req.reb, mq->reb[head].next));
    use_less(hca, &mq->pool[POOL_REB], 1);
}

void hca_mq_rpb_release(Hca *hca, HcaQp *qp)
{
    HcaMultiQueue *mq = hca->requester->mq;
    uint32_t head = qp->req.rpb.head;

    while (mq->rpb[head].read.nentries) {
        hca_mq_reb_release(hca, qp);
    }
    if (qp->req.resend_rpb == head) {
        qp->req.resend_rpb = mq->rpb[head].next;
    }
    free_list_push(&mq->rpb_free,
                   list_remove(&qp->req.rpb, mq->rpb[head].next));
    use_less(hca, &mq->pool[POOL_RPB], 1);
}

HcaSentPacket *hca_mq_swpb_head(Hca *hca, HcaQp *qp)
{
    return qp->req.swpb.count
               ? &hca->requester->mq->swpb[qp->req.swpb.head].packet
               : NULL;
}

HcaSentRead *hca_mq_rpb_head(Hca *hca, HcaQp *qp)
{
    return qp->req.rpb.count ? &hca->requester->mq->rpb[qp->req.rpb.head].read
                             : NULL;
}

/* The first entry that the first Read still needs. */
HcaSge *hca_mq_reb_head(Hca *hca, HcaQp *qp)
{
    HcaSentRead *read = hca_mq_rpb_head(hca, qp);

    return read && read->nentries
               ? &hca->requester->mq->reb[qp->req.reb.head].entry
               : NULL;
}

const HcaSge *hca_mq_reb_at(Hca *hca, HcaQp *qp, unsigned nth)
{
    const HcaSentRead *read = hca_mq_rpb_head(hca, qp);
    const RebElement *reb = hca->requester->mq->reb;
    uint32_t index = qp->req.reb.head;

    if (!read || nth >= read->nentries) {
        return NULL;
    }
    while (nth--) {
        index = reb[index].next;
    }
    return &reb[index].entry;
}

HcaSentPacket *hca_mq_swpb_at(Hca *hca, uint32_t index, uint32_t *next)
{
    *next = hca->requester->mq->swpb[index].next;
    return &hca->requester->mq->swpb[index].packet;
}

HcaSentRead *hca_mq_rpb_at(Hca *hca, uint32_t index, uint32_t *next)
{
    *next = hca->requester->mq->rpb[index].next;
    return &hca->requester->mq->rpb[index].read;
}

unsigned hca_mq_swpb_refs(Hca *hca, uint32_t index, HcaSge *refs)
{
    const SwpbElement *header = &hca->requester->mq->swpb[index];
    uint32_t at = header->refs;

    for (unsigned i = 0; i < header->packet.nrefs; i++) {
        refs[i] = hca->requester->mq->swpb[at].ref[i % REFS_PER_ELEMENT];
        if (i % REFS_PER_ELEMENT == REFS_PER_ELEMENT - 1) {
            at = hca->requester->mq->swpb[at].next;
        }
    }
    return header->packet.nrefs;
}

void hca_mq_forget(Hca *hca, HcaQp *qp)
{
    hca_mq_stop_waiting(hca, qp);
    while (qp->req.swpb.count) {
        hca_mq_swpb_release(hca, qp);
    }
    while (qp->req.rpb.count) {
        hca_mq_rpb_release(hca, qp);
    }
}

void hca_mq_gauges(const HcaMultiQueue *mq, HcaMqGauges *gauges)
{
    *gauges = (HcaMqGauges) {
        .swpb = mq->pool[POOL_SWPB].use,
        .rpb = mq->pool[POOL_RPB].use,
        .reb = mq->pool[POOL_REB].use,
    };
    for (unsigned i = 0; i < NPOOLS; i++) {
        gauges->waiting += mq->pool[i].waiting.count;
    }
}

void hca_mq_reset_peaks(HcaMultiQueue *mq)
{
    for (unsigned i = 0; i < NPOOLS; i++) {
        mq->pool[i].use.peak = mq->pool[i].use.used;
    }
}

/* State */

static const HcaField mq_fields[] = {
    HCA_ELSEWHERE(HcaMultiQueue, swpb),   HCA_ELSEWHERE(HcaMultiQueue, rpb),
    HCA_ELSEWHERE(HcaMultiQueue, reb),    HCA_DERIVED(HcaMultiQueue, swpb_free),
    HCA_DERIVED(HcaMultiQueue, rpb_free), HCA_DERIVED(HcaMultiQueue, reb_free),
    HCA_ELSEWHERE(HcaMultiQueue, pool),
};
const HcaStruct hca_mq_struct = HCA_STRUCT(HcaMultiQueue, mq_fields);

static const HcaField pool_fields[] = {
    HCA_DERIVED(Pool, size),
    HCA_COUNTED(Pool, use),
    HCA_ANEW(Pool, promised),
    HCA_ANEW(Pool, waiting),
};
const HcaStruct hca_mq_pool_struct = HCA_STRUCT(Pool, pool_fields);

static const HcaField packet_fields[] = {
    HCA_DERIVED(SwpbElement, next),
    HCA_DERIVED(SwpbElement, refs),
    HCA_ELSEWHERE(SwpbElement, packet),
    HCA_ELSEWHERE(SwpbElement, ref),
};
const HcaStruct hca_mq_packet_struct = HCA_STRUCT(SwpbElement, packet_fields);

static const HcaField read_fields[] = {
    HCA_DERIVED(RpbElement, next),
    HCA_ELSEWHERE(RpbElement, read),
};
const HcaStruct hca_mq_read_struct = HCA_STRUCT(RpbElement, read_fields);

static const HcaField entry_fields[] = {
    HCA_DERIVED(RebElement, next),
    HCA_ELSEWHERE(RebElement, entry),
};
const HcaStruct hca_mq_entry_struct = HCA_STRUCT(RebElement, entry_fields);

/* Elements that can still be had. */
static uint32_t left(const FreeList *list, uint64_t all)
{
    return all - list->fresh + list->count;
}

static uint64_t with_own(const Hca *hca, unsigned pool, unsigned own)
{
    return hca->requester->mq->pool[pool].size +
           ((uint64_t)own << hca->config.log_qps);
}

bool hca_mq_swpb_holds(const Hca *hca, unsigned nrefs)
{
    return memory_of(nrefs) <= left(&hca->requester->mq->swpb_free,
                                    with_own(hca, POOL_SWPB, OWN_SWPB));
}

bool hca_mq_read_holds(const Hca *hca, unsigned nentries)
{
    const HcaMultiQueue *mq = hca->requester->mq;

    return left(&mq->rpb_free, with_own(hca, POOL_RPB, OWN_RPB)) &&
           nentries <= left(&mq->reb_free, with_own(hca, POOL_REB, OWN_REB));
}

static uint32_t beyond(uint32_t has, uint32_t own)
{
    return has > own ? has - own : 0;
}

/* What QPs have beyond their own is in the pool: so all will find their own. */
bool hca_mq_shares_ok(const Hca *hca)
{
    const HcaMultiQueue *mq = hca->requester->mq;
    uint64_t swpb = 0, rpb = 0, reb = 0;

    for (HcaQp *qp = hca_qp_next(hca->cm, NULL); qp;
         qp = hca_qp_next(hca->cm, qp)) {
        swpb += beyond(qp->req.swpb_memory, OWN_SWPB);
        rpb += beyond(qp->req.rpb.count, OWN_RPB);
        reb += beyond(qp->req.reb.count, OWN_REB);
    }
    return swpb <= mq->pool[POOL_SWPB].size && rpb <= mq->pool[POOL_RPB].size &&
           reb <= mq->pool[POOL_REB].size;
}

void hca_mq_reb_save(Hca *hca, HcaQp *qp, GArray *records)
{
    const RebElement *reb = hca->requester->mq->reb;
    uint32_t at = qp->req.reb.head;

    for (uint32_t n = qp->req.reb.count; n; n--, at = reb[at].next) {
        g_array_append_val(records, reb[at].entry);
    }
}

void hca_mq_reb_load(Hca *hca, HcaQp *qp, const HcaSge *entries)
{
    RebElement *reb = hca->requester->mq->reb;
    uint32_t at = qp->req.reb.head;

    for (uint32_t n = qp->req.reb.count; n; n--, at = reb[at].next) {
        reb[at].entry = *entries++;
    }
}
