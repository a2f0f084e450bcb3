/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two cards with the interface of an InfiniHost III Lx and a bad cable against
 * the reference model of the verbs: all that this interface has words for. The
 * model knows no driver, but what it reads of one: see Station.
 */
#include <string.h>

#include "lib-bad-cable.h"
#include "lib-card.h"
#include "lib-mthca-pair.h"
#include "lib-test.h"

#define NUM_QPS 16   /* on each side: */
#define NUM_RC 8     /* of which... */
#define NUM_SHARED 2 /* ...have a shared receive queue */
#define NUM_UC 4
#define NUM_CQS 4 /* each of QPs that are neighbours */
#define LOG_WQES 4
#define WINDOW 12 /* messages of a QP that are not complete */
#define SLOT 4096u
#define UD_LEN 1024u
#define QKEY 0x11111111u
#define UAR MTHCA_SIDE_UAR
#define LOG_SRQ 5
#define MAX_INLINE 40u
#define PATIENCE (100 * NS_PER_S)

typedef struct Weather {
    const char *name;
    uint32_t seed;
    unsigned messages; /* of each QP */
    CableWeather cable;
    uint32_t late;   /* ns that memory takes */
    unsigned reload; /* one turn of so many is another card's that goes on */
} Weather;

/* A QP, as this interface's driver has it, and as the model is told of it. */
typedef struct Station {
    ModelQp model; /* first, as the cable finds it by number */
    struct Station *peer;
    unsigned side;
    MthcaQp hw;
    Qp qp;
    Mr mr[3];
    ModelRegion near, recv, target;
    uint64_t send_id[1 << LOG_WQES], recv_id[1 << LOG_WQES];
    unsigned posted, sent, recv_posted, received;
} Station;

/* A shared receive queue; a receive's number is that of its WQE at first. */
typedef struct Pool {
    ModelSrq model;
    MthcaSrq hw;
    Srq srq;
    Mr mr;
    ModelRegion recv;
    uint64_t id[1 << LOG_SRQ];
    unsigned posted, free;
} Pool;

typedef struct Storm {
    const Weather *weather;
    Lab *lab;
    GRand *rand;
    BadCable cable;
    Mthca *m[2];
    MthcaCq cq[2][NUM_CQS];
    Driver drv[2]; /* of the model's regions and QPs: whose they are */
    Station station[2][NUM_QPS];
    Pool pool[2];
} Storm;

static uint32_t pick(Storm *s, uint32_t begin, uint32_t end)
{
    return begin + g_rand_int(s->rand) % (end - begin);
}

/* ---- the set-up ---- */

static ModelRegion make_region(Storm *s, unsigned side, Mr *mr, unsigned slots)
{
    MthcaMr *own = mthca_mr(s->m[side], slots * SLOT / HOST_PAGE_SIZE,
                            pick(s, 0, 0x7fff));
    ModelRegion region;

    *mr = (Mr) {
        .drv = &s->drv[side],
        .key = own->key,
        .len = slots * (uint64_t)SLOT,
        .page_shift = 12,
        .npages = own->npages,
        .page = own->page,
    };
    model_region_init(&region, mr, s->rand);
    return region;
}

static uint8_t service_of(unsigned i)
{
    return i < NUM_RC            ? MTHCA_QPC_SERVICE_RC
           : i < NUM_RC + NUM_UC ? MTHCA_QPC_SERVICE_UC
                                 : MTHCA_QPC_SERVICE_UD;
}

static uint8_t model_service(uint8_t service)
{
    return service == MTHCA_QPC_SERVICE_RC   ? RDMA_HCA_QP_ST_RC
           : service == MTHCA_QPC_SERVICE_UC ? RDMA_HCA_QP_ST_UC
                                             : RDMA_HCA_QP_ST_UD;
}

static void make_pool(Storm *s, unsigned side)
{
    Pool *pool = &s->pool[side];

    pool->hw = (MthcaSrq) {
        .srqn = 3,
        .mr = mthca_mr(s->m[side], 1, 0),
        .log_size = LOG_SRQ,
        .log_stride = 7,
        .uar = UAR,
        .record = 0x7e00,
    };
    mthca_must(mthca_sw2hw_srq(s->m[side], &pool->hw));
    pool->srq = (Srq) { .srqn = pool->hw.srqn };
    /* One entry always stays free: software's list has an end. */
    pool->free = (1 << LOG_SRQ) - 1;
    pool->recv = make_region(s, side, &pool->mr, 1 << LOG_SRQ);
    model_srq_init(&pool->model, &pool->srq, NUM_SHARED);
}

static void make_cq(Storm *s, unsigned side, unsigned i)
{
    s->cq[side][i] = (MthcaCq) {
        .cqn = MTHCA_SIDE_CQN + i + (pick(s, 0, 0xc0) << 16),
        .mr = mthca_mr(s->m[side], 2, 0),
        .log_size = 8,
        .uar = UAR,
        .ci_record = 0x7fff - i,
        .arm_record = 2 * i,
    };
    mthca_must(mthca_sw2hw_cq(s->m[side], &s->cq[side][i]));
}

static void make_station(Storm *s, unsigned side, unsigned i)
{
    Station *st = &s->station[side][i];
    Mthca *m = s->m[side];
    MthcaCq *cq = &s->cq[side][i / (NUM_QPS / NUM_CQS)];
    bool shared = i < NUM_SHARED;

    st->side = side;
    st->hw = (MthcaQp) {
        .qpn = MTHCA_SIDE_QPN + i + (pick(s, 0, 0x80) << 16),
        .service = service_of(i),
        .send_cq = cq,
        .recv_cq = cq,
        .mr = mthca_mr(m, 1, 0),
        .log_sq = LOG_WQES,
        .log_rq = LOG_WQES,
        .log_stride = 7,
        .uar = UAR,
        .sq_record = 2 * i + 1,
        .rq_record = 0x7f00 + i,
        .srq = shared ? &s->pool[side].hw : NULL,
    };
    mthca_must(mthca_qp_to_init(m, &st->hw));
    st->qp = (Qp) {
        .drv = &s->drv[side],
        .qpn = st->hw.qpn,
        .service = model_service(st->hw.service),
    };
    st->near = make_region(s, side, &st->mr[0], WINDOW);
    st->recv = make_region(s, side, &st->mr[1], WINDOW);
    st->target = make_region(s, side, &st->mr[2], WINDOW);
    bad_cable_add(&s->cable, side, st->qp.qpn, &st->model);
}

/* PSNs wrap soon. */
static void connect(Storm *s, unsigned i)
{
    uint32_t psn[2] = { (0 - pick(s, 0, 64)) & HCA_PSN_MASK,
                        (0 - pick(s, 0, 64)) & HCA_PSN_MASK };

    for (unsigned side = 0; side < 2; side++) {
        Station *st = &s->station[side][i], *peer = &s->station[!side][i];
        bool ud = st->hw.service == MTHCA_QPC_SERVICE_UD;

        st->peer = peer;
        st->hw.sq_psn = psn[side];
        st->hw.rq_psn = psn[!side];
        mthca_must(mthca_qp_to_rtr(
            s->m[side], &st->hw, s->lab->host[!side].config.lid, peer->qp.qpn));
        mthca_must(mthca_qp_to_rts(s->m[side], &st->hw));
        model_qp_init(&st->model, &st->qp, ud ? 2048 : 1024, psn[side],
                      psn[!side]);
        st->model.peer = &peer->model;
        st->model.srq = st->hw.srq ? &s->pool[side].model : NULL;
    }
}

static Storm *storm_new(const Weather *weather)
{
    Storm *s = g_new0(Storm, 1);
    uint32_t seed = lab_seed(weather->seed);

    s->weather = weather;
    s->rand = g_rand_new_with_seed(seed);
    s->lab = mthca_lab(weather->seed, weather->late);
    bad_cable_init(&s->cable, &weather->cable, seed + 1);
    s->cable.lab = s->lab;
    lab_tap(s->lab, bad_cable_tap, &s->cable);
    lab_cable(s->lab, true);
    for (unsigned side = 0; side < 2; side++) {
        s->m[side] = mthca_new(&s->lab->host[side]);
        s->drv[side].host = &s->lab->host[side];
        mthca_probe(s->m[side]);
        mthca_must(
            mthca_cmd(s->m[side], RDMA_HCA_CMD_INIT_IB, 0, 1, 0, 0, NULL));
        make_pool(s, side);
        for (unsigned i = 0; i < NUM_CQS; i++) {
            make_cq(s, side, i);
        }
        for (unsigned i = 0; i < NUM_QPS; i++) {
            make_station(s, side, i);
        }
    }
    for (unsigned i = 0; i < NUM_QPS; i++) {
        connect(s, i);
    }
    lab_run(s->lab);
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
    for (unsigned side = 0; side < 2; side++) {
        model_region_destroy(&s->pool[side].recv);
        model_srq_destroy(&s->pool[side].model);
        mthca_free(s->m[side]);
    }
    bad_cable_destroy(&s->cable);
    lab_free(s->lab);
    g_rand_free(s->rand);
    g_free(s);
}

/* ---- requests ---- */

/* @len bytes somewhere in a slot, in up to three pieces. */
static ModelList split(Storm *s, ModelRegion *region, unsigned slot,
                       uint32_t len)
{
    uint64_t at = slot * (uint64_t)SLOT + pick(s, 0, SLOT - len + 1);
    ModelList list = { .region = region };

    for (unsigned left = pick(s, 1, 4); len; left--) {
        uint32_t n = left == 1 ? len : pick(s, 1, len + 1);

        list.sge[list.nsge++] = mr_sge(region->mr, at, n);
        at += n;
        len -= n;
    }
    return list;
}

static unsigned put_list(const ModelList *list, MthcaSge *sge)
{
    for (unsigned i = 0; i < list->nsge; i++) {
        sge[i] = (MthcaSge) { list->sge[i].va, list->sge[i].len,
                              list->sge[i].lkey };
    }
    return list->nsge;
}

static uint32_t pick_len(Storm *s, const Station *st, uint8_t opcode)
{
    uint32_t most = st->qp.service == RDMA_HCA_QP_ST_UD ? UD_LEN : SLOT - 64;

    return wr_is_atomic(opcode) ? sizeof(uint64_t)
           : pick(s, 0, 4)      ? pick(s, 0, 200)
                                : pick(s, 0, most + 1);
}

/* What the next message is; slots are used again when it is complete. */
static ModelSend next_message(Storm *s, Station *st)
{
    uint8_t opcode = model_pick_opcode(s->rand, st->qp.service);
    unsigned slot = st->posted % WINDOW;
    ModelSend wr = {
        .wr_id = st->posted,
        .opcode = opcode,
        .signalled = slot % 4 == 3 || pick(s, 0, 2),
        .solicited = wr_takes_receive(opcode) && pick(s, 0, 2),
        .imm_be = g_rand_int(s->rand),
        .len = pick_len(s, st, opcode),
    };

    wr.local = split(s, &st->near, slot, wr.len);
    if (!wr_is_send(opcode)) {
        wr.remote = &st->peer->target;
        wr.remote_at = slot * (uint64_t)SLOT + pick(s, 0, 8) * 8;
    }
    if (wr_is_atomic(opcode)) {
        memcpy(&wr.compare, wr.remote->image + wr.remote_at, 8);
        wr.compare = GUINT64_FROM_LE(wr.compare) + pick(s, 0, 2);
        wr.swap_add = (uint64_t)g_rand_int(s->rand) << 32 | pick(s, 0, 99);
    }
    if (st->qp.service == RDMA_HCA_QP_ST_UD) {
        wr.to = &s->station[!st->side][pick(s, NUM_RC + NUM_UC, NUM_QPS)].model;
    }
    return wr;
}

static void address(Storm *s, const Station *st, const ModelSend *wr,
                    const uint8_t *dgid, MthcaWr *post)
{
    post->dlid = s->lab->host[!st->side].config.lid;
    post->dqpn = wr->to->qp->qpn;
    post->qkey = QKEY;
    post->dgid = pick(s, 0, 3) ? NULL : dgid;
}

static void post_send(Storm *s, Station *st)
{
    ModelSend wr = next_message(s, st);
    uint8_t data[MAX_INLINE + 1], dgid[16];
    MthcaWr post = {
        .opcode = wr.opcode,
        .signalled = wr.signalled,
        .solicited = wr.solicited,
        .fence = st->qp.service == RDMA_HCA_QP_ST_RC && pick(s, 0, 4) == 0,
        .imm = GUINT32_FROM_BE(wr.imm_be),
        .swap_add = wr.swap_add,
        .compare = wr.compare,
    };
    uint32_t at = st->hw.sq_head % (1 << LOG_WQES);

    if (wr.remote) {
        post.raddr = wr.remote_at;
        post.rkey = wr.remote->mr->key;
    } else if (wr.len && wr.len <= MAX_INLINE && pick(s, 0, 2)) {
        random_fill(s->rand, data, sizeof(data));
        wr.inline_data = post.inline_data = data;
        post.inline_len = wr.len;
    }
    if (wr.to) {
        driver_gid(&s->drv[!st->side], dgid);
        address(s, st, &wr, dgid, &post);
    }
    post.nsge = wr.inline_data ? 0 : put_list(&wr.local, post.sge);
    st->send_id[at] = st->posted++;
    model_post_send(&st->model, &wr);
    mthca_post_send(s->m[st->side], &st->hw, &post);
}

/* A chain of some of those that there is room for, with one doorbell. */
static void post_sends(Storm *s, Station *st)
{
    unsigned room = MIN(WINDOW - (st->posted - st->sent),
                        s->weather->messages - st->posted);
    unsigned n = room ? pick(s, 1, MIN(room, 5) + 1) : 0;

    for (unsigned i = 0; i < n; i++) {
        post_send(s, st);
    }
    if (n) {
        mthca_ring_send(s->m[st->side], &st->hw, n);
    }
}

static void post_recvs(Storm *s, Station *st)
{
    while (!st->hw.srq && st->recv_posted - st->received < WINDOW) {
        ModelRecv wr = {
            .wr_id = st->recv_posted,
            .local = split(s, &st->recv, st->recv_posted % WINDOW, SLOT - 8),
        };
        MthcaSge sge[4];

        st->recv_id[st->hw.rq_head % (1 << LOG_WQES)] = st->recv_posted++;
        model_post_recv(&st->model, &wr);
        mthca_post_recv(s->m[st->side], &st->hw, sge, put_list(&wr.local, sge));
    }
}

static void post_pool(Storm *s, unsigned side)
{
    Pool *pool = &s->pool[side];

    for (; pool->free && pick(s, 0, 8); pool->free--) {
        uint32_t index = pool->hw.first_free;
        ModelRecv wr = {
            .wr_id = pool->posted++,
            .local = split(s, &pool->recv, index, SLOT - 8),
        };
        MthcaSge sge[4];

        pool->id[index] = wr.wr_id;
        model_post_srq(&pool->model, &wr);
        g_assert_cmpuint(mthca_srq_post(s->m[side], &pool->hw, sge,
                                        put_list(&wr.local, sge)),
                         ==, index);
    }
}

/* ---- completions ---- */

/* Of which request: by the place of its WQE. */
static uint64_t find_id(Storm *s, Station *st, bool is_send, uint32_t wqe)
{
    uint32_t at = wqe >> 7;

    if (!is_send && st->hw.srq) {
        Pool *pool = &s->pool[st->side];

        mthca_srq_release(s->m[st->side], &pool->hw, at);
        pool->free++;
        return pool->id[at];
    }
    at -= is_send && !st->hw.srq ? 1 << LOG_WQES : 0;
    g_assert_cmpuint(at, <, 1 << LOG_WQES);
    return is_send ? st->send_id[at] : st->recv_id[at];
}

static void take(Storm *s, unsigned side, const struct mthca_cqe *cqe)
{
    Wc wc = {
        .is_send = cqe->is_send == MTHCA_CQE_IS_SEND,
        .qpn = GUINT32_FROM_BE(cqe->my_qpn),
        .opcode = cqe->opcode,
        .byte_len = GUINT32_FROM_BE(cqe->byte_cnt),
        .imm_be = cqe->imm,
        .rqpn = GUINT32_FROM_BE(cqe->rqpn),
        .rlid = GUINT32_FROM_BE(cqe->rlid_path),
    };
    Station *st = (Station *)bad_cable_find(&s->cable, side, wc.qpn);
    bool solicited;

    g_assert_cmphex(cqe->opcode, <, MTHCA_CQE_ERROR_RECV);
    wc.wr_id = find_id(s, st, wc.is_send, GUINT32_FROM_BE(cqe->wqe));
    model_complete(&st->model, &wc, &solicited);
    if (wc.is_send) {
        st->sent = wc.wr_id + 1;
    } else {
        st->received++;
    }
}

static bool take_all(Storm *s)
{
    bool any = false;

    for (unsigned side = 0; side < 2; side++) {
        hca_v2p_settle(s->lab->host[side].hca->v2p);
    }
    for (unsigned i = 0; i < 2 * NUM_CQS; i++) {
        MthcaCq *cq = &s->cq[i % 2][i / 2];
        struct mthca_cqe cqe;
        uint32_t before = cq->ci;

        while (mthca_cq_take(s->m[i % 2], cq, &cqe)) {
            take(s, i % 2, &cqe);
        }
        mthca_cq_consume(s->m[i % 2], cq);
        any |= cq->ci != before;
    }
    return any;
}

static bool something(void *opaque)
{
    return take_all(opaque);
}

static bool all_done(const Storm *s)
{
    for (unsigned i = 0; i < 2 * NUM_QPS; i++) {
        const Station *st = &s->station[i % 2][i / 2];

        if (st->posted < s->weather->messages || !model_qp_idle(&st->model)) {
            return false;
        }
    }
    return true;
}

static void serve(Storm *s)
{
    for (unsigned side = 0; side < 2; side++) {
        post_pool(s, side);
        for (unsigned i = 0; i < NUM_QPS; i++) {
            post_recvs(s, &s->station[side][i]);
            post_sends(s, &s->station[side][i]);
        }
    }
}

/* Nothing comes any more; all memory, and all QPs, are as they have to be. */
static void check_end(Storm *s)
{
    lab_sleep(s->lab, NS_PER_S);
    g_assert_false(take_all(s));
    for (unsigned i = 0; i < 2 * NUM_QPS; i++) {
        Station *st = &s->station[i % 2][i / 2];
        struct mthca_qp_mailbox box;

        model_region_check(&st->near);
        model_region_check(&st->recv);
        model_region_check(&st->target);
        mthca_must(mthca_qp_query(s->m[st->side], &st->hw, &box));
        g_assert_cmphex(GUINT32_FROM_BE(box.qpc.flags) >> 28, ==,
                        RDMA_HCA_QP_STATE_RTS);
    }
    for (unsigned side = 0; side < 2; side++) {
        model_region_check(&s->pool[side].recv);
    }
}

static void test_storm(const void *opaque)
{
    const Weather *weather = opaque;
    Storm *s = storm_new(weather);

    s->cable.bad = true;
    s->lab->reload = weather->reload;
    while (!all_done(s)) {
        serve(s);
        g_assert_true(lab_wait(s->lab, something, s, PATIENCE) || all_done(s));
    }
    s->cable.bad = false;
    s->lab->reload = 0;
    check_end(s);
    g_test_message("%u lost, %u doubled, %u overtaken, %u delayed, "
                   "%u corrupted, %u not received; %" G_GUINT64_FORMAT
                   " times another card",
                   s->cable.dropped, s->cable.duplicated, s->cable.overtaken,
                   s->cable.delayed, s->cable.corrupted, s->cable.refused,
                   s->lab->reloads);
    storm_free(s);
}

static const Weather weathers[] = {
    { .name = "fine", .seed = 1, .messages = 1000 },
    { .name = "loss", .seed = 2, .messages = 500, .cable = { .drop = 300 } },
    { .name = "everything",
      .seed = 3,
      .messages = 500,
      .cable = { 100, 100, 50, 50, 100 } },
    { .name = "tempest",
      .seed = 4,
      .messages = 300,
      .cable = { 400, 200, 200, 200, 400 } },
    { .name = "late",
      .seed = 5,
      .messages = 200,
      .cable = { 100, 100, 50, 50, 100 },
      .late = 3000 },
    { .name = "reload",
      .seed = 6,
      .messages = 200,
      .cable = { 50, 50, 50, 50, 50 },
      .reload = 8 },
};

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(weathers); i++) {
        const char *path = test_named("/mthca/model/%s", weathers[i].name);

        test_add_data(path, &weathers[i], test_storm);
    }
    return g_test_run();
}
