/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hostile program on machine 0: it has a protection domain, a page of
 * doorbells, regions, and its queues in its own memory. It cannot give the
 * card commands. Memory of others, of its machine or of the peer, is not its
 * business.
 */
#include "lib-fuzz.h"

#define PLACE 16

/* Sixteen bytes of the program's that the card looks at, or its region. */
static uint64_t take_place(Fuzz *f)
{
    unsigned number = fuzz_take_qp(f);
    Qp *qp = f->qp[number][0];
    const Srq *srq = fuzz_srq_of(f, 0, number);
    const Mr *sq = qp->sq.mr ? qp->sq.mr : f->qp[FUZZ_RC][0]->sq.mr;
    const Mr *rq = srq ? srq->mr : f->qp[FUZZ_RC][0]->rq.mr;
    const Mr *mr[] = { sq, sq, qp->rq.mr ? qp->rq.mr : rq, f->pair->cq[0]->mr,
                       f->mr[0][FUZZ_ALL] };
    unsigned which = take_below(&f->in, G_N_ELEMENTS(mr) + 1);
    uint64_t first, at;

    if (which == G_N_ELEMENTS(mr)) {
        return (srq ? srq->record : qp->rq_record) & ~(uint64_t)(PLACE - 1);
    }
    first = -mr[which]->va % PLACE;
    at = first + take_below(&f->in, (mr[which]->len - first) / PLACE) * PLACE;
    return mr_bus(mr[which], at);
}

static void act_scribble(Fuzz *f)
{
    uint64_t place = take_place(f);
    uint32_t words[PLACE / 4];
    unsigned n = 1 + take_below(&f->in, G_N_ELEMENTS(words));

    for (unsigned i = 0; i < n; i++) {
        words[i] = take_odd(&f->in);
    }
    host_write(&f->lab->host[0], place, words, n * 4);
}

/* The same while the card works. */
static void act_scribble_later(Fuzz *f)
{
    uint64_t place = take_place(f);
    uint64_t value = take_odd(&f->in);

    place += take_bool(&f->in) * 8;
    machine_plan_write(0, take_below(&f->in, 64), place, &value, 8);
}

/* A WQE as it is in the input, and its doorbell. */
static void act_wqe(Fuzz *f)
{
    Qp *qp = fuzz_take_sender(f, 0);
    uint32_t slot = take_below(&f->in, qp->sq.entries);
    unsigned n = take_below(&f->in, 33) * 2;
    uint32_t low = take8(&f->in) & 0x3f;

    low |= RDMA_HCA_PREP(RDMA_HCA_SEND_DB_SQ_HEAD, slot << (8 - 4));
    for (unsigned i = 0; i < n && f->in.left; i++) {
        uint32_t word = GUINT32_TO_LE(take_odd(&f->in));

        mr_write(qp->sq.mr, slot * 256 + i % 64 * 4, &word, 4);
    }
    qp_ring(qp, low,
            RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, qp->qpn) |
                RDMA_HCA_PREP(RDMA_HCA_SEND_DB_SIZE, take8(&f->in)));
}

/* The program's page of doorbells. */
static void act_doorbell(Fuzz *f)
{
    uint32_t page = f->pair->cq[0]->uar * RDMA_HCA_UAR_PAGE_SIZE;
    uint32_t at = take_bool(&f->in) ? RDMA_HCA_CQ_DB : RDMA_HCA_SEND_DB;
    uint64_t low = take_odd(&f->in), high = take_odd(&f->in);

    if (take_bool(&f->in)) {
        host_uar_write64(&f->lab->host[0], page + at, high << 32 | low);
    } else {
        at = take_below(&f->in, RDMA_HCA_UAR_PAGE_SIZE) & ~3u;
        host_uar_write32(&f->lab->host[0], page + at, low);
    }
    fuzz_read_uar(f, page + at - at % 8);
}

static void act_cq_doorbell(Fuzz *f)
{
    const Cq *cq = f->pair->cq[0];

    host_uar_write64(
        &f->lab->host[0], cq->uar * RDMA_HCA_UAR_PAGE_SIZE + RDMA_HCA_CQ_DB,
        take_odd(&f->in) << 32 |
            RDMA_HCA_PREP(RDMA_HCA_CQ_DB_CMD, take_below(&f->in, 4)) | cq->cqn);
}

static const FuzzAction actions[] = {
    { "send", fuzz_act_send },
    { "recv", fuzz_act_recv },
    { "exchange", fuzz_act_exchange },
    { "exchange", fuzz_act_exchange },
    { "arm", fuzz_act_arm },
    { "scribble", act_scribble },
    { "scribble later", act_scribble_later },
    { "wqe", act_wqe },
    { "doorbell", act_doorbell },
    { "cq doorbell", act_cq_doorbell },
    { "poll", fuzz_act_poll },
    { "turns", fuzz_act_turns },
    { "rest", fuzz_act_rest },
    { "time", fuzz_act_time },
    { "revive", fuzz_act_revive },
    { "modify", fuzz_act_modify },
    { "group", fuzz_act_group },
    { "cable", fuzz_act_cable },
    { "events", fuzz_act_events },
    { "multicast", fuzz_act_multicast },
    { "region", fuzz_act_region },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Fuzz f;

    fuzz_begin(&f, data, size, FUZZ_GUEST_PROGRAM);
    fuzz_play(&f, actions, G_N_ELEMENTS(actions));
    fuzz_end(&f);
    return 0;
}
