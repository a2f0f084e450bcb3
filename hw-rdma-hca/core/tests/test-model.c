/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two cards and a bad cable against the reference model of the verbs: all
 * services, all operations, 64 QPs on each side whose PSNs wrap, some of them
 * with a shared receive queue. An XRC connection is one of each way. Others
 * lend each other memory, and take it back or have it given back. Every
 * completion and, in the end, every byte has to be as the model has it; also
 * where memory takes its time, and fails now and then, and where a plan has work
 * requests fail.
 *
 * A run is repeated by its seed (HCA_SEED). HCA_MESSAGES: so many messages in
 * each case, in place of a quarter of its own number, or all of it with LONG=1.
 */
#include <stdlib.h>
#include <string.h>

#include "lib-bad-cable.h"
#include "lib-card.h"
#include "lib-lease.h"
#include "lib-model.h"
#include "lib-move.h"
#include "lib-pair.h"

#define NUM_QPS 64 /* on each side */
#define NUM_SERVICES (RDMA_HCA_QP_ST_UD + 1)
#define NUM_CQS 8
#define NUM_SRQS 3 /* on each side: one of RC, then XRC */
#define SRQ_WINDOW 64
#define SRQ_SLOT 16384u
#define DOMAIN 77
#define WINDOW 16 /* messages of a QP that are not complete */
#define NUM_COUNTERS 4
#define MAX_INLINE 150
#define ROUND 5000     /* messages between two looks at the clock */
#define EVENT_TURNS 61 /* turns between two looks at the events */
#define UD_SLOT 2048u
#define PATIENCE (100 * NS_PER_S)
#define DEATHBED 50 /* looks at a connection that should break by itself */

typedef struct Weather {
    const char *name;
    uint32_t seed;
    unsigned messages;
    CableWeather cable;
    unsigned deaths; /* of connections, in 10000 turns */
    bool small_card; /* buffers and caches are always full */
    bool roce;
    unsigned late; /* memory answers up to so many ns later */
    unsigned dma;  /* of 10000 accesses to some pages, how many fail */
    /* Of 10000 work requests of some QPs, how many suffer of each kind. */
    unsigned verbs;
    unsigned reload; /* one turn of so many is another card's that goes on */
    unsigned moves;  /* and in front of one of so many the machine moves */
} Weather;

/*
 * A QP and its memory: what it sends and what it reads into, where it
 * receives, and what its peer reaches. Slot n belongs to message n modulo
 * WINDOW: it is used again when that message is complete.
 */
typedef struct Station {
    ModelQp model;        /* first, as the cable finds it by number */
    struct Station *peer; /* the same place on the other side */
    unsigned side;
    uint8_t service; /* RC: also of XRC */
    bool xrc;
    Qp *target_qp; /* XRC: that the peer's initiator sends to */
    uint32_t slot;
    ModelRegion near, recv, target;
    Lease lease; /* of the target, to the peer */
    bool lazy;   /* often has no receive posted */
    unsigned posted, sent, recv_posted, received;
    ModelList last_read; /* of the message before, if it was one */
    uint32_t last_read_len;
    bool queued;    /* in Storm.ready */
    bool dying;     /* nothing more is posted */
    unsigned looks; /* at it, since then */
    /* Of the queues: a WQE has failed, those after it are flushed. */
    bool send_failed, recv_failed;
} Station;

/* A shared receive queue and its memory. */
typedef struct Pool {
    ModelSrq model;
    ModelRegion recv;
    unsigned posted;
    GArray *free_slots; /* unsigned; a receive's number says its slot */
} Pool;

/* A completion queue, and what its events have to be. */
typedef struct Watch {
    Cq *cq;
    enum {
        UNARMED,
        ARMED_ANY,
        ARMED_SOLICITED
    } arm;
    unsigned completions, solicited; /* since it was armed */
    unsigned events;
} Watch;

typedef struct Storm {
    const Weather *weather;
    unsigned messages;
    Pair *pair;
    GRand *rand; /* the traffic's */
    BadCable cable;
    Station station[2][NUM_QPS];
    Pool pool[2][NUM_SRQS];
    uint32_t xrc_pd[2]; /* of the pools that are of XRC */
    Watch watch[2][NUM_CQS];
    GQueue ready;                /* Stations that may have room */
    unsigned left[NUM_SERVICES]; /* messages to post in this round */
    bool last_round;
    unsigned turns;
    unsigned dying, deaths; /* connections, now and in all */
    unsigned leases;
} Storm;

static uint32_t pick(Storm *s, uint32_t begin, uint32_t end)
{
    return begin + g_rand_int(s->rand) % (end - begin);
}

/* ---- the traffic ---- */

/* Split @len of @slot bytes at @at into pieces with gaps between them. */
static ModelList split_slot(Storm *s, ModelRegion *region, uint64_t at,
                            uint32_t slot, uint32_t len)
{
    ModelList list = { .region = region, .nsge = pick(s, 1, MODEL_MAX_SGE) };
    uint32_t room = slot - len;

    for (unsigned i = 0; i < list.nsge; i++) {
        uint32_t gap = pick(s, 0, MIN(room, 64) + 1);
        uint32_t take = i + 1 == list.nsge ? len : pick(s, 0, len + 1);

        list.sge[i] = mr_sge(region->mr, at + gap, take);
        at += gap + take;
        room -= gap;
        len -= take;
    }
    return list;
}

/* Those of the station's slot @n. */
static ModelList split(Storm *s, ModelRegion *region, const Station *st,
                       unsigned n, uint32_t len)
{
    return split_slot(s, region, n % WINDOW * (uint64_t)st->slot, st->slot,
                      len);
}

static bool carries(uint8_t opcode)
{
    return opcode != RDMA_HCA_OPCODE_RDMA_READ &&
           opcode != RDMA_HCA_OPCODE_ATOMIC_CS &&
           opcode != RDMA_HCA_OPCODE_ATOMIC_FA;
}

/* Leases */

/* The station lends, or takes back; false: not now. */
static bool manage_lease(Storm *s, Station *st, SendWr *post)
{
    Lease *lease = &st->lease;

    if (lease->kind == LEASE_NONE || pick(s, 0, 4)) {
        return false;
    }
    if (lease->state == LEASE_FREE) {
        *post = lease_make(lease, st->posted);
        s->leases++;
        return true;
    }
    /* Messages that have been posted may use it; those that come do not. */
    if (lease->state == LEASE_LENT && pick(s, 0, 8) == 0) {
        lease->state = LEASE_CLOSING;
        lease->last_use = st->peer->posted;
    }
    if (lease->state == LEASE_CLOSING && st->peer->sent >= lease->last_use) {
        *post = lease_end(lease, st->posted);
        return true;
    }
    return false;
}

static SendWr lease_message(Station *st, const SendWr *post, ModelSend *wr)
{
    *wr = (ModelSend) {
        .wr_id = st->posted++,
        .opcode = post->opcode,
        .signalled = true,
    };
    st->last_read.nsge = 0;
    return *post;
}

/* How message @wr reaches the peer's memory: some by what it has lent. */
static void pick_key(Storm *s, const Station *peer, const ModelSend *wr,
                     SendWr *post)
{
    const Lease *lease = &peer->lease;

    if (lease->state == LEASE_LENT && pick(s, 0, 2)) {
        post->raddr = lease_va(lease, wr->remote_at);
        post->rkey = lease->key;
    } else {
        post->raddr = wr->remote->mr->va + wr->remote_at;
        post->rkey = wr->remote->mr->key;
    }
}

/* A Send gives back what the peer has lent: what came before may use it. */
static void pick_return(Storm *s, Station *peer, ModelSend *wr)
{
    if (wr->opcode == RDMA_HCA_OPCODE_SEND && lease_can_return(&peer->lease) &&
        pick(s, 0, 4) == 0) {
        wr->opcode = RDMA_HCA_OPCODE_SEND_INV;
        wr->inv_rkey = peer->lease.key;
        peer->lease.state = LEASE_ENDING;
    }
}

/* Mostly short ones. */
static uint32_t pick_len(Storm *s, const Station *st, uint8_t opcode)
{
    uint32_t dice = pick(s, 0, 32), max = st->slot - 64;

    if (wr_is_atomic(opcode)) {
        return sizeof(uint64_t);
    }
    if (dice < 2) {
        return 0;
    }
    if (dice < 22) {
        return pick(s, 1, 65);
    }
    if (dice < 30) {
        return pick(s, 1, 513);
    }
    return pick(s, 1, max + 1);
}

static void pick_atomic(Storm *s, Station *st, ModelSend *wr)
{
    uint64_t now;

    wr->remote_at = WINDOW * (uint64_t)st->slot +
                    pick(s, 0, NUM_COUNTERS) * sizeof(uint64_t);
    memcpy(&now, wr->remote->image + wr->remote_at, sizeof(now));
    /* Half of the swaps may come true. */
    wr->compare = GUINT64_FROM_LE(now) + pick(s, 0, 2);
    wr->swap_add = (uint64_t)g_rand_int(s->rand) << 32 | g_rand_int(s->rand);
}

/*
 * What a Read brings is sent on by the next message, which is fenced: it has
 * to wait for the Read.
 */
static bool sends_on(Storm *s, const Station *st, const ModelSend *wr)
{
    return st->service == RDMA_HCA_QP_ST_RC && carries(wr->opcode) &&
           st->last_read.nsge && pick(s, 0, 2);
}

/* The other QP that a UD message goes to. */
static Station *pick_peer(Storm *s, const Station *st)
{
    return &s->station[!st->side][pick(s, 3 * NUM_QPS / 4, NUM_QPS)];
}

/* XRC: the peer's queue that the message names, if it takes a receive or not. */
static void pick_srq(Storm *s, const Station *st, ModelSend *wr, SendWr *post)
{
    Pool *pool = &s->pool[!st->side][pick(s, 1, NUM_SRQS)];

    post->xrc = true;
    post->srqn = pool->model.srq->srqn;
    if (wr_takes_receive(wr->opcode)) {
        wr->srq = &pool->model;
    }
}

/* The station's next message; @data is room for inline data. */
static SendWr next_message(Storm *s, Station *st, ModelSend *wr, uint8_t *data)
{
    unsigned n = st->posted;
    Station *peer;
    SendWr post;

    if (manage_lease(s, st, &post)) {
        return lease_message(st, &post, wr);
    }
    st->posted++;
    *wr = (ModelSend) {
        .wr_id = n,
        .opcode = model_pick_opcode(s->rand, st->service),
        .signalled = pick(s, 0, 4) == 0 || n % (WINDOW / 2) == 0,
        .solicited = pick(s, 0, 4) == 0,
        .imm_be = g_rand_int(s->rand),
    };
    wr->len = pick_len(s, st, wr->opcode);
    if (st->service == RDMA_HCA_QP_ST_UD) {
        peer = pick_peer(s, st);
        wr->to = &peer->model;
    } else {
        peer = st->peer;
        wr->remote = &peer->target;
        wr->remote_at = n % WINDOW * (uint64_t)st->slot + pick(s, 0, 64);
        pick_return(s, peer, wr);
    }
    post = (SendWr) {
        .wr_id = n,
        .opcode = wr->opcode,
        .flags = (wr->signalled ? SEND_SIGNALED : 0) |
                 (wr->solicited ? SEND_SOLICITED : 0) |
                 (pick(s, 0, 8) ? 0 : SEND_FENCE),
        .imm_be = wr->imm_be,
    };
    if (st->xrc) {
        pick_srq(s, st, wr, &post);
    }
    if (wr_is_atomic(wr->opcode)) {
        pick_atomic(s, st, wr);
        post.swap_add = wr->swap_add;
        post.compare = wr->compare;
    }
    if (wr->inv_rkey) { /* fenced: Reads may still be on their way back */
        post.rkey = wr->inv_rkey;
        post.flags |= SEND_FENCE;
    } else if (wr->remote) {
        pick_key(s, peer, wr, &post);
    }
    if (sends_on(s, st, wr)) {
        wr->local = st->last_read;
        wr->len = st->last_read_len;
        post.flags |= SEND_FENCE;
    } else if (carries(wr->opcode)) {
        random_fill(s->rand, data, wr->len);
        if (wr->len <= MAX_INLINE && pick(s, 0, 3) == 0) {
            wr->inline_data = data;
            post.flags |= SEND_INLINE;
            post.inline_data = data;
            post.inline_len = wr->len;
        } else {
            wr->local = split(s, &st->near, st, n, wr->len);
            model_list_fill(&wr->local, data, wr->len);
        }
    } else {
        wr->local = split(s, &st->near, st, n, wr->len);
    }
    st->last_read.nsge = 0;
    if (!carries(wr->opcode)) {
        st->last_read = wr->local;
        st->last_read_len = wr->len;
    }
    post.nsge = wr->local.nsge;
    post.sge = wr->local.sge;
    return post;
}

/*
 * How many messages may be posted. Senders of UC and UD, which wait for nobody,
 * are held back while many of their messages would find no receive.
 */
static unsigned send_room(const Station *st)
{
    if (st->dying || (st->service != RDMA_HCA_QP_ST_RC &&
                      st->peer->model.recvs.length < WINDOW / 2)) {
        return 0;
    }
    return WINDOW - 1 - (st->posted - st->sent);
}

static UdAddress address_of(Storm *s, const Station *st, const Qp *qp)
{
    UdAddress ud = {
        .grh = pick(s, 0, 2),
        .dqpn = qp->qpn,
        /* The QP's own, or spelt out. */
        .qkey = pick(s, 0, 2) ? 0x11111111 : 0x80000000,
    };

    if (s->weather->roce) {
        ud.roce.sgid_index = pick(s, 0, NUM_GIDS);
        ud.roce.document = pick(s, 0, 4) == 0;
    } else {
        driver_gid(qp->drv, ud.dgid);
    }
    ud_address_to(&ud, st->model.qp->drv, qp->drv);
    return ud;
}

/* A chain of up to four messages. Returns false if there was no room. */
static bool post_sends(Storm *s, Station *st)
{
    static uint8_t data[4][32768];
    unsigned room = send_room(st);
    unsigned n = pick(s, 1, 5);
    ModelSend wr[4];
    UdAddress ud[4];
    SendWr post[4];

    n = MIN(MIN(n, room), s->left[st->service]);
    for (unsigned i = 0; i < n; i++) {
        post[i] = next_message(s, st, &wr[i], data[i]);
        model_post_send(&st->model, &wr[i]);
        if (wr[i].to) {
            ud[i] = address_of(s, st, wr[i].to->qp);
            post[i].ud = &ud[i];
        }
    }
    if (n) {
        s->left[st->service] -= n;
        g_assert_true(qp_post_send(st->model.qp, post, n));
    }
    return n;
}

/* All that there is room for, in slots of any order. */
static void post_pool(Storm *s, Pool *pool)
{
    GArray *free = pool->free_slots;

    while (free->len) {
        guint at = pick(s, 0, free->len);
        unsigned slot = g_array_index(free, unsigned, at);
        ModelRecv wr = {
            .wr_id = (uint64_t)pool->posted++ * SRQ_WINDOW + slot,
            .local = split_slot(s, &pool->recv, slot * (uint64_t)SRQ_SLOT,
                                SRQ_SLOT, SRQ_SLOT - 8),
        };
        RecvWr post = {
            .wr_id = wr.wr_id,
            .nsge = wr.local.nsge,
            .sge = wr.local.sge,
        };

        g_array_remove_index_fast(free, at);
        model_post_srq(&pool->model, &wr);
        g_assert_true(srq_post(pool->model.srq, &post, 1));
    }
}

/* Those of the station's side, often late. */
static void post_pools(Storm *s, const Station *st)
{
    for (unsigned i = 0; i < NUM_SRQS; i++) {
        if (pick(s, 0, 8) == 0) {
            post_pool(s, &s->pool[st->side][i]);
        }
    }
}

static void post_recvs(Storm *s, Station *st)
{
    unsigned room = WINDOW - (st->recv_posted - st->received);
    uint32_t len = st->slot - 8;
    RecvWr post[WINDOW];
    ModelRecv wr[WINDOW];

    if (st->dying || (st->lazy && pick(s, 0, 4))) {
        return;
    }
    for (unsigned i = 0; i < room; i++) {
        unsigned n = st->recv_posted++;

        wr[i].wr_id = n;
        wr[i].local = split(s, &st->recv, st, n, len);
        post[i] = (RecvWr) {
            .wr_id = n,
            .nsge = wr[i].local.nsge,
            .sge = wr[i].local.sge,
        };
        model_post_recv(&st->model, &wr[i]);
    }
    g_assert_true(qp_post_recv(st->model.qp, post, room));
}

static void serve(Storm *s, Station *st)
{
    if (st->xrc || st->model.srq) {
        post_pools(s, st);
    } else {
        post_recvs(s, st);
    }
    for (unsigned n = 0; n < 3 && post_sends(s, st); n++) {
    }
}

/* ---- completions and events ---- */

/* The last of a queue is signalled: it tells that all before it have ended. */
static void post_last(Station *st)
{
    ModelSend wr = {
        .wr_id = st->posted,
        .opcode = RDMA_HCA_OPCODE_RDMA_WRITE,
        .signalled = true,
        .remote = &st->peer->target,
    };
    SendWr post = {
        .wr_id = st->posted++,
        .opcode = wr.opcode,
        .flags = SEND_SIGNALED,
        .raddr = wr.remote->mr->va,
        .rkey = wr.remote->mr->key,
    };

    model_post_send(&st->model, &wr);
    g_assert_true(qp_post_send(st->model.qp, &post, 1));
}

/* Nothing more is posted, and both sides are watched. */
static void begin_dying(Storm *s, Station *st)
{
    st->dying = st->peer->dying = true;
    st->looks = st->peer->looks = 0;
    s->dying++;
}

/* Whether a first completion in error can come of a fault. */
static bool tells_of_fault(const Weather *weather, const Wc *wc)
{
    switch (wc->syndrome) {
    case RDMA_HCA_SYNDROME_LOCAL_PROT_ERR:
    case RDMA_HCA_SYNDROME_REMOTE_OP_ERR:
    case RDMA_HCA_SYNDROME_WR_FLUSH_ERR:
        return weather->dma || weather->verbs;
    case RDMA_HCA_SYNDROME_BAD_RESP_ERR:
    case RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR:
    case RDMA_HCA_SYNDROME_REMOTE_INVAL_REQ_ERR:
    case RDMA_HCA_SYNDROME_GENERAL_ERR:
        return weather->verbs;
    default:
        return false;
    }
}

/* Something has failed, of which the last of its requests will tell. */
static void die_of_fault(Storm *s, Station *st, const Wc *wc)
{
    if (st->xrc || !tells_of_fault(s->weather, wc)) {
        g_error("QP %#x: a work request ended with %#x", wc->qpn, wc->syndrome);
    }
    begin_dying(s, st);
    post_last(st);
    post_last(st->peer);
}

/* One WQE fails; those behind it are flushed, each of them and in order. */
static void take_error(Storm *s, Station *st, const Wc *wc)
{
    bool *failed = wc->is_send ? &st->send_failed : &st->recv_failed;
    ModelSrq *shared = wc->is_send ? NULL : st->model.srq;

    if (!st->dying) {
        die_of_fault(s, st, wc);
    }
    if (*failed) {
        g_assert_cmphex(wc->syndrome, ==, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    }
    if (wc->is_send) {
        /* Those before the first that fails may be unsignalled. */
        g_assert_cmpuint(wc->wr_id, >=, st->sent);
        g_assert_true(!*failed || wc->wr_id == st->sent);
    } else if (shared) { /* the one that it had */
        g_assert_false(*failed);
        model_srq_error(shared, wc);
    } else {
        g_assert_cmpuint(wc->wr_id, ==, st->received);
    }
    *failed = true;
}

/* The slot of a receive of a shared queue is free again. */
static void give_slot(Storm *s, const Station *st, const Wc *wc)
{
    unsigned slot = wc->wr_id % SRQ_WINDOW;
    uint32_t srqn = wc->xrc ? wc->rqpn : st->model.srq->srq->srqn;

    for (unsigned i = 0; i < NUM_SRQS; i++) {
        Pool *pool = &s->pool[st->side][i];

        if (pool->model.srq->srqn == srqn) {
            g_array_append_val(pool->free_slots, slot);
            return;
        }
    }
    g_assert_not_reached();
}

static void tell_lease(Station *st, const Wc *wc)
{
    Lease *lease = &st->lease;

    if (lease->kind == LEASE_NONE) {
        return;
    }
    if (wc->is_send) {
        lease_complete(lease, wc->wr_id);
    } else if (HCA_BTH_OPERATION(wc->opcode) == HCA_SEND_LAST_INV ||
               HCA_BTH_OPERATION(wc->opcode) == HCA_SEND_ONLY_INV) {
        lease_returned(lease, wc->inv_rkey);
    }
}

/* All that the card has written is in memory. */
static void settle(Storm *s, unsigned side)
{
    hca_v2p_settle(s->pair->lab->host[side].hca->v2p);
}

static void take_completion(Storm *s, unsigned side, Watch *watch, const Wc *wc)
{
    Station *st = (Station *)bad_cable_find(&s->cable, side, wc->qpn);
    bool solicited;

    /*
     * That a request is complete does not say that what it wrote at the peer's
     * is in memory yet; but what is used of it there afterwards is, as if this
     * machine had told that one by a message, which takes longer.
     */
    settle(s, !side);
    if (wc->syndrome) {
        take_error(s, st, wc);
        solicited = true;
    } else {
        g_assert_false(wc->is_send ? st->send_failed : st->recv_failed);
        model_complete(&st->model, wc, &solicited);
    }
    watch->completions++;
    watch->solicited += solicited;
    if (!wc->syndrome) {
        tell_lease(st, wc);
    }
    if (wc->is_send) {
        st->sent = wc->wr_id + 1;
    } else if (st->xrc || st->model.srq) {
        give_slot(s, st, wc);
    } else {
        st->received++;
    }
    if (!st->queued) {
        st->queued = true;
        g_queue_push_tail(&s->ready, st);
    }
}

static void take_completions(Storm *s)
{
    Wc wc;

    for (unsigned i = 0; i < 2 * NUM_CQS; i++) {
        Watch *watch = &s->watch[i % 2][i / 2];

        while (cq_poll(watch->cq, &wc)) {
            take_completion(s, i % 2, watch, &wc);
        }
    }
}

static void take_events(Storm *s, unsigned side)
{
    struct rdma_hca_eqe eqe;

    while (driver_event(s->pair->drv[side], RDMA_HCA_EVENT_COMP, &eqe)) {
        Watch *watch = NULL;

        for (unsigned i = 0; i < NUM_CQS; i++) {
            if (s->watch[side][i].cq->cqn == GUINT32_FROM_LE(eqe.cq.cqn)) {
                watch = &s->watch[side][i];
            }
        }
        g_assert_nonnull(watch);
        watch->events++;
    }
}

/* Completions and events of one moment: what gives leases back runs cards. */
static void take_all(Storm *s)
{
    uint64_t steps;

    do {
        steps = s->pair->lab->steps;
        settle(s, 0);
        settle(s, 1);
        take_completions(s);
    } while (s->pair->lab->steps != steps);
    take_events(s, 0);
    take_events(s, 1);
}

/* One event for each arm that was answered, and none else. */
static void check_events(Storm *s)
{
    take_all(s);
    for (unsigned i = 0; i < 2 * NUM_CQS; i++) {
        Watch *watch = &s->watch[i % 2][i / 2];
        bool fired = (watch->arm == ARMED_ANY && watch->completions) ||
                     (watch->arm == ARMED_SOLICITED && watch->solicited);

        g_assert_cmpuint(watch->events, ==, fired);
        if (fired || watch->arm == UNARMED) {
            watch->arm = pick(s, UNARMED, ARMED_SOLICITED + 1);
            watch->completions = watch->solicited = watch->events = 0;
            if (watch->arm != UNARMED) {
                cq_arm(watch->cq, watch->arm == ARMED_SOLICITED);
            }
        }
    }
}

static bool all_idle(const Storm *s)
{
    for (unsigned i = 0; i < 2 * NUM_QPS; i++) {
        if (!model_qp_idle(&s->station[i % 2][i / 2].model)) {
            return false;
        }
    }
    return true;
}

static uint8_t service_of(unsigned i)
{
    return i < NUM_QPS / 2       ? RDMA_HCA_QP_ST_RC
           : i < 3 * NUM_QPS / 4 ? RDMA_HCA_QP_ST_UC
                                 : RDMA_HCA_QP_ST_UD;
}

/* The attributes of pair @i's next connection, with PSNs of its own. */
static void pick_attr(Storm *s, unsigned i, QpAttr *attr)
{
    qp_attr_init(attr);
    attr->mtu = service_of(i) == RDMA_HCA_QP_ST_UD ? 5 : 1 + i % 5;
    /* About a millisecond; memory may keep all packets waiting for longer. */
    attr->timeout = s->weather->late ? 12 : 8;
    attr->min_rnr_timer = 1;
    attr->max_rd_atomic = 1 + i % HCA_MAX_RD_ATOMIC;
    attr->max_dest_rd_atomic = attr->max_rd_atomic;
    attr->roce.sgid_index = i % NUM_GIDS;
    attr->roce.document = i % (NUM_GIDS + 1) == NUM_GIDS;
    attr->sq_psn = g_rand_int(s->rand) & HCA_PSN_MASK;
    attr->rq_psn = g_rand_int(s->rand) & HCA_PSN_MASK;
}

/* ---- the end of a connection, and the next in its place ---- */

/* A request that fails on one side or the other, whatever was before it. */
static void post_killer(Storm *s, Station *st)
{
    Sge sge = mr_sge(st->near.mr, 0, 8);
    SendWr wr = {
        .wr_id = st->posted++,
        .opcode = RDMA_HCA_OPCODE_RDMA_WRITE,
        .raddr = st->peer->target.mr->va,
        .rkey = st->peer->target.mr->key,
        .nsge = 1,
        .sge = &sge,
    };

    switch (pick(s, 0, 4)) {
    case 0:
        wr.rkey ^= 0x100000;
        break;
    case 1:
        sge.lkey ^= 0x100000;
        break;
    case 2:
        wr.opcode = RDMA_HCA_OPCODE_RDMA_READ;
        wr.raddr -= 1;
        break;
    case 3:
        wr.opcode = RDMA_HCA_OPCODE_ATOMIC_FA;
        wr.raddr += 4;
        break;
    }
    g_assert_true(qp_post_send(st->model.qp, &wr, 1));
}

static void kill_connection(Storm *s)
{
    Station *st = &s->station[pick(s, 0, 2)][pick(s, 0, NUM_QPS / 2)];
    bool by_request = pick(s, 0, 4);

    if (st->dying || st->xrc) {
        return;
    }
    begin_dying(s, st);
    if (by_request) {
        post_killer(s, st);
    }
    post_last(st);
    post_last(st->peer);
    if (!by_request) {
        g_assert_cmphex(qp_to_err(st->model.qp), ==, 0);
    }
}

/* Of a shared queue it has had all that it will, when it is in ERR. */
static bool is_over(const Station *st)
{
    bool received = st->model.srq
                        ? qp_state(st->model.qp) == RDMA_HCA_QP_STATE_ERR
                        : st->received == st->recv_posted;

    return st->sent == st->posted && received;
}

static void begin_again(Station *st, const QpAttr *attr)
{
    st->dying = st->send_failed = st->recv_failed = false;
    st->last_read.nsge = 0;
    model_qp_reset(&st->model, st->side ? attr->rq_psn : attr->sq_psn,
                   st->side ? attr->sq_psn : attr->rq_psn);
    model_region_sync(&st->near);
    model_region_sync(&st->recv);
    model_region_sync(&st->target);
    lease_renew(&st->lease);
}

/* As a connection manager would: the other side is told, then all is reset. */
static void tend(Storm *s, unsigned i)
{
    Station *st = &s->station[0][i];
    Station *peer = st->peer;
    QpAttr attr;

    /* A Send for which no receive will be posted keeps it alive for ever. */
    if (++st->looks > DEATHBED || st->send_failed || st->recv_failed) {
        g_assert_cmphex(qp_to_err(peer->model.qp), ==, 0);
    }
    if (st->looks > DEATHBED || peer->send_failed || peer->recv_failed) {
        g_assert_cmphex(qp_to_err(st->model.qp), ==, 0);
    }
    take_completions(s);
    if (!is_over(st) || !is_over(peer)) {
        return;
    }
    g_assert_cmphex(qp_to_rst(st->model.qp), ==, 0);
    g_assert_cmphex(qp_to_rst(peer->model.qp), ==, 0);
    pick_attr(s, i, &attr);
    begin_again(st, &attr);
    begin_again(peer, &attr);
    qp_connect(st->model.qp, peer->model.qp, &attr);
    s->dying--;
    s->deaths++;
}

static void tend_all(Storm *s)
{
    for (unsigned i = 0; s->dying && i < NUM_QPS / 2; i++) {
        if (s->station[0][i].dying) {
            tend(s, i);
        }
    }
}

static bool turn(void *opaque)
{
    Storm *s = opaque;
    Station *st;

    take_completions(s);
    if (s->turns++ % EVENT_TURNS == 0) {
        check_events(s);
        tend_all(s);
    }
    if (s->weather->deaths && !s->last_round &&
        pick(s, 0, 10000) < s->weather->deaths) {
        kill_connection(s);
    }
    while ((st = g_queue_pop_head(&s->ready))) {
        st->queued = false;
        serve(s, st);
    }
    serve(s, &s->station[pick(s, 0, 2)][pick(s, 0, NUM_QPS)]);
    return !s->left[RDMA_HCA_QP_ST_RC] && !s->left[RDMA_HCA_QP_ST_UC] &&
           !s->left[RDMA_HCA_QP_ST_UD] &&
           (!s->last_round || (!s->dying && all_idle(s)));
}

/* @n more messages, half of them of RC; the last: until all is complete. */
static void run_round(Storm *s, unsigned n, bool last)
{
    s->left[RDMA_HCA_QP_ST_UC] = n / 4;
    s->left[RDMA_HCA_QP_ST_UD] = n / 4;
    s->left[RDMA_HCA_QP_ST_RC] = n - 2 * (n / 4);
    s->last_round = last;
    for (unsigned at_rest = 0; !lab_wait(s->pair->lab, turn, s, PATIENCE);
         at_rest++) {
        /* Nothing moves, as everybody waits for somebody lazy. */
        g_assert_cmpuint(at_rest, <, 1000);
        for (unsigned i = 0; i < 2 * NUM_QPS; i++) {
            serve(s, &s->station[i % 2][i / 2]);
        }
    }
}

/* ---- beginning and end ---- */

/* Of the reliable connections a quarter shares receives, another is XRC. */
static bool is_shared(unsigned i)
{
    return service_of(i) == RDMA_HCA_QP_ST_RC && i % 4 == 2;
}

static bool is_xrc(unsigned i)
{
    return service_of(i) == RDMA_HCA_QP_ST_RC && i % 4 == 3;
}

static void make_qp(Storm *s, unsigned side, unsigned i, uint8_t service,
                    Qp **qp)
{
    QpConfig config;

    qp_config_init(&config, s->pair->pd[side], s->watch[side][i % NUM_CQS].cq);
    config.service = service;
    config.sq_entries = 2 * WINDOW;
    config.rq_entries = WINDOW;
    if (is_shared(i)) { /* one CQ: who came first is seen first */
        config.srq = s->pool[side][0].model.srq;
        config.recv_cq = s->watch[side][5].cq;
    } else if (is_xrc(i)) {
        config.service = RDMA_HCA_QP_ST_XRC_INI;
        config.rq_entries = 0;
        config.recv_cq = NULL;
    }
    *qp = qp_new(s->pair->drv[side], &config);
}

static Qp *make_target(Storm *s, unsigned side)
{
    QpConfig config;

    qp_config_init(&config, s->pair->pd[side], s->watch[side][0].cq);
    config.service = RDMA_HCA_QP_ST_XRC_TGT;
    config.sq_entries = config.rq_entries = 0;
    config.send_cq = config.recv_cq = NULL;
    config.xrcd = DOMAIN;
    return qp_new(s->pair->drv[side], &config);
}

/* Each initiator has a target of its own on the other side. */
static void make_xrc(Storm *s, unsigned i, Qp *qp[2], const QpAttr *attr)
{
    for (unsigned side = 0; side < 2; side++) {
        Station *st = &s->station[!side][i];

        st->xrc = true;
        st->target_qp = make_target(s, !side);
        qp_connect(qp[side], st->target_qp, attr);
        bad_cable_add(&s->cable, !side, st->target_qp->qpn, &st->model);
    }
}

static void make_pool(Storm *s, unsigned side, unsigned i)
{
    Driver *drv = s->pair->drv[side];
    uint32_t pd = i ? s->xrc_pd[side] : pd_new(drv);
    Pool *pool = &s->pool[side][i];
    SrqConfig config;

    srq_config_init(&config, pd);
    config.entries = SRQ_WINDOW;
    if (i) {
        srq_config_xrc(&config, s->watch[side][5].cq, DOMAIN);
    }
    model_srq_init(&pool->model, srq_new(drv, &config), NUM_QPS / 8);
    model_region_init(&pool->recv,
                      mr_new(drv, pd, UINT64_C(0x100000) * (i + 1),
                             SRQ_WINDOW * SRQ_SLOT,
                             RDMA_HCA_ACCESS_LOCAL_WRITE),
                      s->rand);
    pool->free_slots = g_array_new(FALSE, FALSE, sizeof(unsigned));
    for (unsigned slot = 0; slot < SRQ_WINDOW; slot++) {
        g_array_append_val(pool->free_slots, slot);
    }
}

static ModelRegion make_region(Storm *s, const Station *st, Qp *qp, unsigned n,
                               uint32_t pd, uint32_t access)
{
    ModelRegion region;
    uint64_t va = UINT64_C(0x100000000) * (qp->qpn * 4 + n) + 0x128 * n;

    model_region_init(
        &region,
        mr_new(qp->drv, pd, va,
               WINDOW * st->slot + NUM_COUNTERS * sizeof(uint64_t), access),
        s->rand);
    return region;
}

/* Of the reliable connections all but XRC's lend, each kind some. */
static LeaseKind lease_of(unsigned i)
{
    return service_of(i) != RDMA_HCA_QP_ST_RC || is_xrc(i)
               ? LEASE_NONE
               : LEASE_REGION + i / 4 % (LEASE_KINDS - LEASE_REGION);
}

static void make_station(Storm *s, unsigned side, unsigned i, Qp *qp,
                         const QpAttr *attr)
{
    Station *st = &s->station[side][i];
    uint32_t mtu = 128u << attr->mtu;
    uint32_t pd = s->pair->pd[side];
    /* What peers write is of the QP's domain, or of the SRQs'. */
    uint32_t target_pd = is_xrc(i) ? s->xrc_pd[side] : pd;

    st->side = side;
    st->service = service_of(i);
    st->slot = st->service == RDMA_HCA_QP_ST_UD ? UD_SLOT : 1024u << i % 5;
    st->lazy = st->service == RDMA_HCA_QP_ST_RC && i % 4 == 1;
    model_qp_init(&st->model, qp, mtu, side ? attr->rq_psn : attr->sq_psn,
                  side ? attr->sq_psn : attr->rq_psn);
    st->model.srq = is_shared(i) ? &s->pool[side][0].model : NULL;
    st->near = make_region(s, st, qp, 0, pd, RDMA_HCA_ACCESS_LOCAL_WRITE);
    st->recv = make_region(s, st, qp, 1, pd, RDMA_HCA_ACCESS_LOCAL_WRITE);
    st->target = make_region(s, st, qp, 2, target_pd,
                             ACCESS_ALL | RDMA_HCA_ACCESS_MW_BIND);
    lease_init(&st->lease, lease_of(i), st->target.mr);
    bad_cable_add(&s->cable, side, qp->qpn, &st->model);
}

/* QP @i of each side; those of RC and UC are connected with each other. */
static void make_pair(Storm *s, unsigned i)
{
    QpAttr attr;
    Qp *qp[2];

    make_qp(s, 0, i, service_of(i), &qp[0]);
    make_qp(s, 1, i, service_of(i), &qp[1]);
    pick_attr(s, i, &attr);
    attr.sq_psn = HCA_PSN_MASK - pick(s, 0, 500);
    attr.rq_psn = HCA_PSN_MASK - pick(s, 0, 500);
    if (is_xrc(i)) {
        make_xrc(s, i, qp, &attr);
    } else {
        qp_connect(qp[0], qp[1], &attr);
    }
    make_station(s, 0, i, qp[0], &attr);
    make_station(s, 1, i, qp[1], &attr);
    for (unsigned side = 0; side < 2; side++) {
        Station *st = &s->station[side][i];

        st->peer = &s->station[!side][i];
        st->model.peer = &st->peer->model;
    }
}

/* Of the regions of a connection, one page each fails now and then. */
static void fail_page(const Storm *s, HcaFaultPlan *plan,
                      const ModelRegion *region)
{
    uint64_t page = g_rand_int(s->cable.dice) % region->mr->npages;

    plan->rule[plan->nrules++] = (HcaFaultRule) {
        .place = HCA_FAULT_DMA,
        .action = HCA_FAULT_FAIL,
        .match_addr = true,
        .addr_first = region->mr->page[page],
        .addr_last = region->mr->page[page] + HOST_PAGE_SIZE - 1,
        .probability = HCA_FAULT_ALWAYS / 10000 * s->weather->dma,
    };
}

/* All kinds that leave CQs and shared queues alone. */
static const HcaFaultRule verb_faults[] = {
    { .place = HCA_FAULT_SEND_WR,
      .action = HCA_FAULT_FAIL,
      .status = RDMA_HCA_SYNDROME_LOCAL_PROT_ERR },
    { .place = HCA_FAULT_SEND_WR,
      .action = HCA_FAULT_FAIL,
      .status = RDMA_HCA_SYNDROME_BAD_RESP_ERR },
    { .place = HCA_FAULT_SEND_WR,
      .action = HCA_FAULT_FAIL,
      .status = RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR },
    { .place = HCA_FAULT_SEND_WR,
      .action = HCA_FAULT_FAIL,
      .status = RDMA_HCA_SYNDROME_REMOTE_INVAL_REQ_ERR },
    { .place = HCA_FAULT_SEND_WR, .action = HCA_FAULT_BREAK },
    { .place = HCA_FAULT_RECEIVE,
      .action = HCA_FAULT_FAIL,
      .status = RDMA_HCA_SYNDROME_GENERAL_ERR },
    { .place = HCA_FAULT_RECEIVE, .action = HCA_FAULT_RNR },
    { .place = HCA_FAULT_REQUEST,
      .action = HCA_FAULT_FAIL,
      .status = RDMA_HCA_SYNDROME_REMOTE_OP_ERR },
    { .place = HCA_FAULT_REQUEST, .action = HCA_FAULT_DROP },
    { .place = HCA_FAULT_ANSWER, .action = HCA_FAULT_DROP },
    { .place = HCA_FAULT_ANSWER,
      .action = HCA_FAULT_DELAY,
      .delay_ns = NS_PER_MS },
};

static void fail_verbs(const Storm *s, HcaFaultPlan *plan, const Station *st)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(verb_faults); i++) {
        HcaFaultRule *rule = &plan->rule[plan->nrules++];

        *rule = verb_faults[i];
        rule->match_qpn = true;
        rule->qpn = st->model.qp->qpn;
        rule->probability = HCA_FAULT_ALWAYS / 10000 * s->weather->verbs;
    }
}

static void add_faults(const Storm *s, HcaFaultPlan *plan, const Station *st)
{
    if (s->weather->dma && plan->nrules <= HCA_FAULT_MAX_RULES - 3) {
        fail_page(s, plan, &st->near);
        fail_page(s, plan, &st->recv);
        fail_page(s, plan, &st->target);
    }
    if (s->weather->verbs &&
        plan->nrules <= HCA_FAULT_MAX_RULES - G_N_ELEMENTS(verb_faults)) {
        fail_verbs(s, plan, st);
    }
}

/*
 * Each side has faults of its host or its verbs, for some connections of RC that
 * can begin anew: @on, or no more.
 */
static void set_faults(Storm *s, bool on)
{
    for (unsigned side = 0; side < 2; side++) {
        HcaFaultPlan plan = { .seed = s->weather->seed };

        for (unsigned i = 0; on && i < NUM_QPS; i++) {
            Station *st = &s->station[side][i];

            if (st->service == RDMA_HCA_QP_ST_RC && !st->xrc) {
                add_faults(s, &plan, st);
            }
        }
        host_set_faults(&s->pair->lab->host[side], &plan);
    }
}

static Storm *storm_new(const Weather *weather)
{
    uint32_t seed = lab_seed(weather->seed);
    const char *messages = g_getenv("HCA_MESSAGES");
    bool all = g_strcmp0(g_getenv("LONG"), "1") == 0;
    Storm *s = g_new0(Storm, 1);
    HcaConfig config[2];

    s->weather = weather;
    s->messages = messages ? strtoul(messages, NULL, 0)
                           : weather->messages / (all ? 1 : 4);
    s->rand = g_rand_new_with_seed(seed);
    bad_cable_init(&s->cable, &weather->cable, seed + 1);
    for (unsigned side = 0; side < 2; side++) {
        (weather->roce ? lab_config_roce : lab_config)(&config[side], side);
        if (weather->moves) {
            config[side].cable = HCA_CABLE_CARD; /* others do not wait */
        }
        config[side].log_mtts = 16;
        if (weather->small_card) {
            config[side].swpb_elements = 512;
            config[side].rpb_elements = 16;
            config[side].reb_elements = 64;
            config[side].mpt_cache_size = 4096;
            config[side].mtt_cache_size = 4096;
        }
        if (weather->late) {
            config[side].memory_latency_ns = 1 + g_rand_int(s->rand) %
                                                     weather->late;
            config[side].memory_bandwidth = 2000 + g_rand_int(s->rand) % 20000;
        }
    }
    s->pair = pair_new_with(weather->seed, 4096, config, bad_cable_tap,
                            &s->cable);
    s->cable.lab = s->pair->lab;
    for (unsigned i = 0; i < 2 * NUM_CQS; i++) {
        s->watch[i % 2][i / 2].cq = cq_new(s->pair->drv[i % 2], 9, 1 + i / 8);
    }
    for (unsigned side = 0; side < 2; side++) {
        s->xrc_pd[side] = pd_new(s->pair->drv[side]);
    }
    for (unsigned i = 0; i < 2 * NUM_SRQS; i++) {
        make_pool(s, i % 2, i / 2);
    }
    for (unsigned i = 0; i < NUM_QPS; i++) {
        make_pair(s, i);
    }
    return s;
}

static void storm_free(Storm *s)
{
    for (unsigned i = 0; i < 2 * NUM_QPS; i++) {
        Station *st = &s->station[i % 2][i / 2];

        model_region_destroy(&st->near);
        model_region_destroy(&st->recv);
        model_region_destroy(&st->target);
        model_qp_destroy(&st->model);
    }
    for (unsigned i = 0; i < 2 * NUM_SRQS; i++) {
        Pool *pool = &s->pool[i % 2][i / 2];

        model_region_destroy(&pool->recv);
        model_srq_destroy(&pool->model);
        g_array_free(pool->free_slots, TRUE);
    }
    bad_cable_destroy(&s->cable);
    pair_free(s->pair);
    g_rand_free(s->rand);
    g_free(s);
}

static uint64_t drops(const Storm *s, HcaDropReason first, HcaDropReason last)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < 2; i++) {
        for (unsigned reason = first; reason <= last; reason++) {
            n += pair_drops(s->pair, i, reason);
        }
    }
    return n;
}

static bool comes_late(const Weather *w)
{
    return w->cable.duplicate || w->cable.overtaken || w->cable.delay;
}

/* Nothing comes any more, and all memory is as it has to be. */
static void check_end(Storm *s)
{
    Wc wc;

    lab_sleep(s->pair->lab, NS_PER_S);
    check_events(s);
    for (unsigned i = 0; i < 2 * NUM_CQS; i++) {
        g_assert_false(cq_poll(s->watch[i % 2][i / 2].cq, &wc));
    }
    for (unsigned i = 0; i < 2 * NUM_QPS; i++) {
        const Station *st = &s->station[i % 2][i / 2];

        g_assert_true(model_qp_idle(&st->model));
        model_region_check(&st->near);
        model_region_check(&st->recv);
        model_region_check(&st->target);
        g_assert_cmpuint(qp_state(st->model.qp), ==, RDMA_HCA_QP_STATE_RTS);
    }
    for (unsigned i = 0; i < 2 * NUM_SRQS; i++) {
        model_region_check(&s->pool[i % 2][i / 2].recv);
    }
    /* The CRCs find each corrupted packet, and no other is dropped for it. */
    g_assert_cmpuint(drops(s, HCA_DROP_PARSE_SHORT, HCA_DROP_PARSE_UDP), ==,
                     s->cable.corrupted);
    g_assert_cmpuint(drops(s, HCA_DROP_SERVICE, HCA_DROP_SOURCE), ==, 0);
    if (!s->weather->deaths) {
        g_assert_cmpuint(drops(s, HCA_DROP_LID, HCA_DROP_QP_STATE), ==, 0);
    }
    /*
     * A Read that comes again when it is long over may find its key gone, or
     * look like an old one of the next QP.
     */
    if (!s->weather->deaths && !comes_late(s->weather)) {
        g_assert_cmpuint(drops(s, HCA_DROP_ACCESS, HCA_DROP_ACCESS), ==, 0);
    }
    g_assert_cmpuint(drops(s, HCA_DROP_NO_WQE, HCA_DROP_LENGTH), ==, 0);
}

static void report(const Storm *s, gint64 began)
{
    double seconds = (g_get_monotonic_time() - began) / 1e6;
    uint64_t again = 0, timeouts = 0, failed = 0, planned = 0;

    for (unsigned i = 0; i < 2; i++) {
        planned += pair_counter(s->pair, i, "verb_fault_send_fail");
        planned += pair_counter(s->pair, i, "verb_fault_receive_fail");
        planned += pair_counter(s->pair, i, "verb_fault_request_fail");
        failed += pair_counter(s->pair, i, "host_fault_dma_fail");
        again += pair_counter(s->pair, i, "requester_retransmissions");
        timeouts += pair_counter(s->pair, i, "requester_timeouts");
    }
    g_assert_true(failed || !s->weather->dma);
    g_assert_true(planned || !s->weather->verbs);
    g_test_message(
        "%u messages in %.1f s, %" G_GINT64_FORMAT " ms of the "
        "cards: %u lost, %u doubled, %u overtaken, %u delayed, "
        "%u corrupted, %u not received, %u leases, %u deaths; %" G_GUINT64_FORMAT
        " sent again, %" G_GUINT64_FORMAT " time-outs, %" G_GUINT64_FORMAT
        " failures of memory, %" G_GUINT64_FORMAT " of verbs",
        s->messages, seconds, (s->pair->lab->now - NS_PER_S) / NS_PER_MS,
        s->cable.dropped, s->cable.duplicated, s->cable.overtaken,
        s->cable.delayed, s->cable.corrupted, s->cable.refused, s->leases,
        s->deaths, again, timeouts, failed, planned);
}

static void check_never_down(const Storm *s)
{
    for (unsigned i = 0; i < 2; i++) {
        g_assert_cmpuint(pair_counter(s->pair, i, "link_moves"), >, 0);
        g_assert_cmpuint(pair_counter(s->pair, i, "link_moves_lost"), ==, 0);
        g_assert_cmpuint(hca_link_downs(s->pair->lab->host[i].hca->link), ==,
                         0);
    }
}

static void test_storm(const void *opaque)
{
    const Weather *weather = opaque;
    gint64 began = g_get_monotonic_time();
    Storm *s = storm_new(weather);

    s->cable.bad = true;
    if (weather->reload) {
        s->pair->lab->reload = weather->reload;
    }
    if (weather->moves) {
        s->pair->lab->moves = weather->moves;
        s->pair->lab->move = move_somewhere;
        /* Late memory has much to do in little time. */
        s->pair->lab->away_ns = weather->late ? 20 * NS_PER_MS : NS_PER_S;
    }
    set_faults(s, weather->dma || weather->verbs);
    for (unsigned left = s->messages; left; left -= MIN(left, ROUND)) {
        if (left <= ROUND) {
            set_faults(s, false);
        }
        run_round(s, MIN(left, ROUND), left <= ROUND);
    }
    s->cable.bad = false;
    check_end(s);
    g_test_message("%" G_GUINT64_FORMAT
                   " times another card, %" G_GUINT64_FORMAT
                   " times another machine",
                   s->pair->lab->reloads, s->pair->lab->moved);
    if (weather->reload) {
        g_assert_cmpuint(s->pair->lab->reloads, >, s->messages / 100);
    }
    if (weather->moves) {
        g_assert_cmpuint(s->pair->lab->moved, >, s->messages / 500);
        check_never_down(s);
    }
    report(s, began);
    storm_free(s);
}

/* Of 10000 packets: lost, doubled, overtaken, delayed, changed. */
#define CABLE(lost, doubled, over, late, changed)                              \
    .cable = { .drop = (lost),                                                 \
               .duplicate = (doubled),                                         \
               .overtaken = (over),                                            \
               .delay = (late),                                                \
               .corrupt = (changed) }
#define BAD_CABLE CABLE(50, 50, 50, 50, 50)

/* clang-format off */
static const Weather weathers[] = {
    { .name = "fine", .seed = 1, .messages = 250000 },
    { .name = "loss", .seed = 2, .messages = 200000, CABLE(100, 0, 0, 0, 0) },
    { .name = "order", .seed = 3, .messages = 200000,
      CABLE(0, 0, 100, 100, 0) },
    { .name = "doubles", .seed = 4, .messages = 100000,
      CABLE(0, 300, 50, 50, 0) },
    { .name = "corruption", .seed = 5, .messages = 100000,
      CABLE(0, 0, 0, 0, 200) },
    { .name = "everything", .seed = 6, .messages = 200000,
      CABLE(100, 100, 50, 50, 100) },
    { .name = "tempest", .seed = 7, .messages = 100000,
      CABLE(400, 200, 200, 200, 400) },
    { .name = "small-card", .seed = 8, .messages = 100000, BAD_CABLE,
      .small_card = true },
    { .name = "deaths", .seed = 9, .messages = 100000,
      CABLE(100, 100, 100, 100, 100), .deaths = 100 },
    { .name = "roce/fine", .seed = 10, .messages = 50000, .roce = true },
    { .name = "roce/everything", .seed = 11, .messages = 100000,
      CABLE(100, 100, 50, 50, 100), .roce = true },
    { .name = "roce/small-card", .seed = 12, .messages = 50000, BAD_CABLE,
      .small_card = true, .roce = true },
    { .name = "roce/deaths", .seed = 13, .messages = 50000,
      CABLE(100, 100, 100, 100, 100), .deaths = 100, .roce = true },
    { .name = "late", .seed = 14, .messages = 50000,
      CABLE(100, 100, 50, 50, 100), .small_card = true, .late = 5000 },
    { .name = "host", .seed = 15, .messages = 50000, BAD_CABLE, .deaths = 20,
      .small_card = true, .late = 5000, .dma = 5000 },
    { .name = "roce/host", .seed = 16, .messages = 30000, BAD_CABLE,
      .deaths = 20, .small_card = true, .roce = true, .late = 5000,
      .dma = 5000 },
    { .name = "verbs", .seed = 17, .messages = 60000, BAD_CABLE, .deaths = 20,
      .verbs = 1500 },
    { .name = "roce/verbs", .seed = 18, .messages = 40000, BAD_CABLE,
      .deaths = 20, .small_card = true, .roce = true, .verbs = 1500 },
    { .name = "reload", .seed = 19, .messages = 60000, BAD_CABLE, .deaths = 20,
      .reload = 8 },
    { .name = "reload-late", .seed = 20, .messages = 24000, BAD_CABLE,
      .deaths = 20, .small_card = true, .late = 5000, .dma = 5000,
      .reload = 250 },
    { .name = "roce/reload", .seed = 21, .messages = 60000, BAD_CABLE,
      .deaths = 20, .roce = true, .verbs = 1500, .reload = 8 },
    { .name = "moves", .seed = 22, .messages = 40000, .moves = 4 },
    { .name = "moves-late", .seed = 23, .messages = 40000, BAD_CABLE,
      .deaths = 20, .small_card = true, .late = 5000, .dma = 5000,
      .moves = 500 },
    { .name = "roce/moves", .seed = 24, .messages = 40000, BAD_CABLE,
      .deaths = 20, .roce = true, .verbs = 1500, .moves = 4 },
};
/* clang-format on */

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(weathers); i++) {
        const char *path = test_named("/model/%s", weathers[i].name);

        test_add_data(path, &weathers[i], test_storm);
    }
    return g_test_run();
}
