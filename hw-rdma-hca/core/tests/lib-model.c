/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-model.h"

#include <string.h>

#define GRH_SIZE 40

/* A send that was posted. */
typedef struct Message {
    ModelSend wr;
    uint8_t *data; /* copied when it was posted, or NULL */
} Message;

/* A completion that is to come. */
typedef struct Done {
    uint64_t wr_id;
    uint8_t opcode; /* of the CQE */
    uint32_t byte_len;
    uint32_t imm_be;
    bool has_imm;
    uint32_t inv_rkey; /* 0: none */
    bool solicited;
    uint32_t rqpn;
    uint16_t rlid;
    uint64_t number;   /* RC send: it was executed before */
    ModelSrq *srq;     /* whose receive it got is not known yet, */
    uint8_t *data;     /* but what is in it, or NULL */
    ModelList touched; /* what the request wrote, */
    uint32_t len;      /* so many bytes of it */
    uint32_t unknown;  /* of which the first may be anything */
} Done;

bool model_qp_is_reliable(const ModelQp *qp)
{
    return qp->qp->service == RDMA_HCA_QP_ST_RC ||
           qp->qp->service == RDMA_HCA_QP_ST_XRC_INI;
}

static bool is_write(uint8_t opcode)
{
    return opcode == RDMA_HCA_OPCODE_RDMA_WRITE ||
           opcode == RDMA_HCA_OPCODE_RDMA_WRITE_IMM;
}

/* BTH opcode of a packet (IBA table 35). */
static uint8_t bth_opcode(uint8_t service, uint8_t opcode, bool first,
                          bool last)
{
    static const uint8_t bth_service[] = {
        [RDMA_HCA_QP_ST_RC] = HCA_BTH_RC,
        [RDMA_HCA_QP_ST_UC] = HCA_BTH_UC,
        [RDMA_HCA_QP_ST_UD] = HCA_BTH_UD,
        [RDMA_HCA_QP_ST_XRC_INI] = HCA_BTH_XRC,
    };
    uint8_t op;

    if (wr_is_send(opcode)) {
        op = first ? (last ? HCA_SEND_ONLY : HCA_SEND_FIRST)
                   : (last ? HCA_SEND_LAST : HCA_SEND_MIDDLE);
    } else {
        op = first ? (last ? HCA_WRITE_ONLY : HCA_WRITE_FIRST)
                   : (last ? HCA_WRITE_LAST : HCA_WRITE_MIDDLE);
    }
    if (last && opcode == RDMA_HCA_OPCODE_SEND_INV) {
        op = first ? HCA_SEND_ONLY_INV : HCA_SEND_LAST_INV;
    }
    /* "With immediate" follows each of the four that end a message. */
    return bth_service[service] << 5 | (op + (last && wr_has_imm(opcode)));
}

/* ---- memory ---- */

void model_region_init(ModelRegion *region, Mr *mr, GRand *rand)
{
    region->mr = mr;
    region->image = g_malloc(mr->len);
    random_fill(rand, region->image, mr->len);
    mr_write(mr, 0, region->image, mr->len);
}

void model_region_destroy(ModelRegion *region)
{
    g_free(region->image);
}

void model_region_sync(ModelRegion *region)
{
    mr_read(region->mr, 0, region->image, region->mr->len);
}

static void check_bytes(const ModelRegion *region, uint64_t at, uint32_t len)
{
    uint8_t now[4096];

    for (uint32_t n; len; at += n, len -= n) {
        n = MIN(len, sizeof(now));
        mr_read(region->mr, at, now, n);
        for (uint32_t i = 0; memcmp(now, region->image + at, n) && i < n; i++) {
            if (now[i] != region->image[at + i]) {
                g_error("byte %#" G_GINT64_MODIFIER "x of region %#x is %#x, "
                        "not %#x",
                        at + i, region->mr->key, now[i], region->image[at + i]);
            }
        }
    }
}

void model_region_check(const ModelRegion *region)
{
    check_bytes(region, 0, region->mr->len);
}

/* What is done with each piece of a list. */
typedef void PieceFn(const ModelRegion *region, uint64_t at, uint8_t *data,
                     uint32_t len);

/* For bytes @from to @from + @len of the list; @data belongs to the first. */
static void for_pieces(const ModelList *list, uint32_t from, uint32_t len,
                       uint8_t *data, PieceFn *fn)
{
    for (unsigned i = 0; i < list->nsge && len; i++) {
        const Sge *sge = &list->sge[i];
        uint32_t skip = MIN(from, sge->len);
        uint32_t n = MIN(len, sge->len - skip);

        fn(list->region, sge->va - list->region->mr->va + skip, data, n);
        from -= skip;
        data += data ? n : 0;
        len -= n;
    }
    g_assert_cmpuint(len, ==, 0);
}

static void image_to_data(const ModelRegion *region, uint64_t at, uint8_t *data,
                          uint32_t len)
{
    memcpy(data, region->image + at, len);
}

static void data_to_image(const ModelRegion *region, uint64_t at, uint8_t *data,
                          uint32_t len)
{
    memcpy(region->image + at, data, len);
}

static void data_to_both(const ModelRegion *region, uint64_t at, uint8_t *data,
                         uint32_t len)
{
    memcpy(region->image + at, data, len);
    mr_write(region->mr, at, data, len);
}

static void memory_to_image(const ModelRegion *region, uint64_t at,
                            uint8_t *data, uint32_t len)
{
    mr_read(region->mr, at, region->image + at, len);
}

static void check_piece(const ModelRegion *region, uint64_t at, uint8_t *data,
                        uint32_t len)
{
    check_bytes(region, at, len);
}

void model_list_fill(const ModelList *list, const uint8_t *data, uint32_t len)
{
    for_pieces(list, 0, len, (uint8_t *)data, data_to_both);
}

/* ---- completions ---- */

static Done *expect_done(GQueue *queue, const Done *done)
{
    Done *copy = g_memdup2(done, sizeof(*done));

    g_queue_push_tail(queue, copy);
    return copy;
}

static void done_free(gpointer data)
{
    Done *done = data;

    g_free(done->data);
    g_free(done);
}

/* A receive of @srq is used by a message of @wr->len bytes; @data is in it. */
static void expect_shared(ModelQp *to, ModelSrq *srq, const ModelQp *from,
                          const ModelSend *wr, uint8_t bth, uint8_t *data)
{
    bool xrc = from->qp->service == RDMA_HCA_QP_ST_XRC_INI;
    Done done = {
        .opcode = bth,
        .byte_len = wr->len,
        .imm_be = wr->imm_be,
        .has_imm = wr_has_imm(wr->opcode),
        .inv_rkey = wr->inv_rkey,
        .solicited = wr->solicited,
        .rqpn = xrc ? srq->srq->srqn : from->qp->qpn,
        .rlid = from->qp->drv->roce ? 0 : from->qp->drv->host->config.lid,
        .srq = srq,
        .data = data,
        .len = data ? wr->len : 0,
    };

    expect_done(&to->recv_done, &done);
}

/* The receive at the head of @to's queue is used up by a message. */
static Done *expect_recv(ModelQp *to, const ModelQp *from, uint8_t opcode,
                         uint8_t bth, uint32_t imm_be, bool solicited,
                         uint32_t byte_len, uint32_t written, uint32_t unknown)
{
    g_autofree ModelRecv *recv = g_queue_pop_head(&to->recvs);
    Done done = {
        .wr_id = recv->wr_id,
        .opcode = bth,
        .byte_len = byte_len,
        .imm_be = imm_be,
        .has_imm = wr_has_imm(opcode),
        .solicited = solicited,
        .rqpn = from->qp->qpn,
        .rlid = from->qp->drv->roce ? 0 : from->qp->drv->host->config.lid,
        .touched = recv->local,
        .len = written,
        .unknown = unknown,
    };

    return expect_done(&to->recv_done, &done);
}

static void expect_send(ModelQp *qp, const ModelSend *wr)
{
    Done done = {
        .wr_id = wr->wr_id,
        .opcode = wr->opcode,
        .byte_len = wr->len,
        .number = qp->posted,
        .touched = wr->local,
    };

    if (!wr->signalled) {
        return;
    }
    if (wr->opcode == RDMA_HCA_OPCODE_RDMA_READ ||
        wr->opcode == RDMA_HCA_OPCODE_ATOMIC_CS ||
        wr->opcode == RDMA_HCA_OPCODE_ATOMIC_FA) {
        done.len = wr->len;
    }
    if (is_write(wr->opcode) && model_qp_is_reliable(qp)) {
        done.touched = (ModelList) {
            .region = wr->remote,
            .nsge = 1,
            .sge = { mr_sge(wr->remote->mr, wr->remote_at, wr->len) },
        };
        done.len = wr->len;
    }
    expect_done(&qp->send_done, &done);
}

/* The receive with this number; the older ones that are left are in use. */
static ModelRecv *take_shared(ModelSrq *srq, uint64_t wr_id)
{
    unsigned older = 0;

    for (GList *item = srq->recvs.head; item; item = item->next, older++) {
        ModelRecv *recv = item->data;

        if (recv->wr_id == wr_id) {
            g_assert_cmpuint(older, <, srq->users);
            g_queue_delete_link(&srq->recvs, item);
            return recv;
        }
    }
    g_assert_not_reached();
}

/* The completion says which receive the message has got. */
static void know_receive(Done *done, const Wc *wc)
{
    g_autofree ModelRecv *recv = take_shared(done->srq, wc->wr_id);

    done->wr_id = wc->wr_id;
    done->touched = recv->local;
    for_pieces(&done->touched, 0, done->len, done->data, data_to_image);
}

void model_complete(ModelQp *qp, const Wc *wc, bool *solicited)
{
    Done *done = g_queue_pop_head(wc->is_send ? &qp->send_done
                                              : &qp->recv_done);

    g_assert_cmphex(wc->syndrome, ==, 0);
    g_assert_nonnull(done);
    if (done->srq) {
        know_receive(done, wc);
    }
    g_assert_cmpuint(wc->wr_id, ==, done->wr_id);
    g_assert_cmphex(wc->opcode, ==, done->opcode);
    g_assert_cmpuint(wc->byte_len, ==, done->byte_len);
    if (done->has_imm) {
        g_assert_cmphex(wc->imm_be, ==, done->imm_be);
    }
    if (done->inv_rkey) {
        g_assert_cmphex(wc->inv_rkey, ==, done->inv_rkey);
    }
    if (wc->is_send) {
        g_assert_true(!model_qp_is_reliable(qp) || done->number < qp->executed);
    } else {
        g_assert_cmphex(wc->rqpn, ==, done->rqpn);
        g_assert_cmphex(wc->rlid, ==, done->rlid);
    }
    for_pieces(&done->touched, 0, done->unknown, NULL, memory_to_image);
    for_pieces(&done->touched, 0, done->len, NULL, check_piece);
    *solicited = done->solicited;
    done_free(done);
}

/* ---- reliable connections ---- */

static void message_free(gpointer data)
{
    Message *message = data;

    g_free(message->data);
    g_free(message);
}

/* The bytes that a Send or Write carries; g_free() them. */
static uint8_t *payload(const Message *message)
{
    uint32_t len = message->wr.len;
    uint8_t *data;

    if (message->data) {
        return g_memdup2(message->data, len + 1);
    }
    data = g_malloc(len + 1);
    for_pieces(&message->wr.local, 0, len, data, image_to_data);
    return data;
}

/* The number before is stored, as the machine stores numbers. */
static void execute_atomic(const ModelSend *wr)
{
    uint8_t *place = wr->remote->image + wr->remote_at;
    uint64_t old, new;

    memcpy(&old, place, sizeof(old));
    new = GUINT64_FROM_LE(old);
    if (wr->opcode == RDMA_HCA_OPCODE_ATOMIC_FA) {
        new += wr->swap_add;
    } else if (new == wr->compare) {
        new = wr->swap_add;
    }
    new = GUINT64_TO_LE(new);
    memcpy(place, &new, sizeof(new));
    for_pieces(&wr->local, 0, sizeof(old), (uint8_t *)&old, data_to_image);
}

/* Where the message finds its receive, or NULL: in the peer's own queue. */
static ModelSrq *shared_queue(const ModelQp *qp, const ModelSend *wr)
{
    return wr->srq ? wr->srq : qp->peer->srq;
}

static void execute_shared(ModelQp *qp, const Message *message)
{
    const ModelSend *wr = &message->wr;
    bool one = wr->len <= qp->mtu;

    expect_shared(qp->peer, shared_queue(qp, wr), qp, wr,
                  bth_opcode(qp->qp->service, wr->opcode, one, true),
                  wr_is_send(wr->opcode) ? payload(message) : NULL);
}

static void execute_message(ModelQp *qp, const Message *message)
{
    const ModelSend *wr = &message->wr;
    g_autofree uint8_t *data = NULL;

    switch (wr->opcode) {
    case RDMA_HCA_OPCODE_SEND:
    case RDMA_HCA_OPCODE_SEND_IMM:
    case RDMA_HCA_OPCODE_SEND_INV: {
        const ModelRecv *recv = g_queue_peek_head(&qp->peer->recvs);

        if (shared_queue(qp, wr)) {
            break;
        }
        data = payload(message);
        for_pieces(&recv->local, 0, wr->len, data, data_to_image);
        break;
    }
    case RDMA_HCA_OPCODE_RDMA_WRITE:
    case RDMA_HCA_OPCODE_RDMA_WRITE_IMM:
        data = payload(message);
        memcpy(wr->remote->image + wr->remote_at, data, wr->len);
        break;
    case RDMA_HCA_OPCODE_RDMA_READ:
        for_pieces(&wr->local, 0, wr->len, wr->remote->image + wr->remote_at,
                   data_to_image);
        break;
    case RDMA_HCA_OPCODE_ATOMIC_CS:
    case RDMA_HCA_OPCODE_ATOMIC_FA:
        execute_atomic(wr);
        break;
    }
    if (wr_takes_receive(wr->opcode) && shared_queue(qp, wr)) {
        execute_shared(qp, message);
    } else if (wr_takes_receive(wr->opcode)) {
        bool one = wr->len <= qp->mtu;
        Done *done = expect_recv(
            qp->peer, qp, wr->opcode,
            bth_opcode(RDMA_HCA_QP_ST_RC, wr->opcode, one, true), wr->imm_be,
            wr->solicited, wr->len, wr_is_send(wr->opcode) ? wr->len : 0, 0);

        done->inv_rkey = wr->inv_rkey;
    }
}

/*
 * A Send needs a receive. One of a shared queue will come, and nobody else
 * sees whether it was there before.
 */
static bool can_execute(const ModelQp *qp, const ModelSend *wr)
{
    return !wr_takes_receive(wr->opcode) || shared_queue(qp, wr) ||
           qp->peer->recvs.length;
}

/* Execute what can be executed. */
static void execute(ModelQp *qp)
{
    Message *message;

    while ((message = g_queue_peek_head(&qp->sends)) &&
           can_execute(qp, &message->wr)) {
        execute_message(qp, message);
        message_free(g_queue_pop_head(&qp->sends));
        qp->executed++;
    }
}

/* ---- UC and UD ---- */

ModelPacket model_packet_leaves(ModelQp *from, const HcaPacket *packet)
{
    Message *message = g_queue_peek_head(&from->sends);
    uint8_t service = from->qp->service;
    const ModelSend *wr = &message->wr;
    ModelPacket p;

    g_assert_nonnull(message);
    p = (ModelPacket) {
        .from = from,
        .to = service == RDMA_HCA_QP_ST_UD ? wr->to : from->peer,
        .psn = from->next_psn,
        .opcode = wr->opcode,
        .first = !from->left,
        .len = MIN(wr->len - from->left, from->mtu),
        .imm_be = wr->imm_be,
        .remote = wr->remote,
        .remote_at = wr->remote_at + from->left,
        .offset = from->left,
        .payload = packet->payload,
    };
    from->left += p.len;
    p.last = from->left == wr->len;
    p.solicited = wr->solicited && p.last && wr_takes_receive(wr->opcode);
    p.bth_opcode = bth_opcode(service, wr->opcode, p.first, p.last);
    from->next_psn = hca_psn_add(from->next_psn, 1);

    g_assert_cmphex(packet->psn, ==, p.psn);
    g_assert_cmphex(packet->opcode, ==, p.bth_opcode);
    g_assert_cmphex(packet->dest_qp, ==, p.to->qp->qpn);
    g_assert_cmpint(packet->solicited, ==, p.solicited);
    g_assert_cmpmem(packet->payload, packet->payload_len,
                    message->data + p.offset, p.len);
    if (p.last) {
        message_free(g_queue_pop_head(&from->sends));
        from->left = 0;
    }
    return p;
}

/* The packet's payload and place in the receive at the head of the queue. */
static void scatter(const ModelPacket *p, uint32_t at)
{
    const ModelRecv *recv = g_queue_peek_head(&p->to->recvs);

    for_pieces(&recv->local, at, p->len, (uint8_t *)p->payload, data_to_image);
}

/* IBA 9.8.2.2: a message of which a packet is missing is lost. */
static void uc_arrives(const ModelPacket *p)
{
    ModelQp *to = p->to;
    bool in_order = p->psn == to->expected_psn;

    to->expected_psn = hca_psn_add(p->psn, 1);
    if (p->first) {
        to->in_message = true;
    } else if (!in_order) {
        to->in_message = false;
    }
    if (!to->in_message) {
        return;
    }
    if (wr_is_send(p->opcode)) {
        scatter(p, p->offset);
    } else {
        memcpy(p->remote->image + p->remote_at, p->payload, p->len);
    }
    if (p->last) {
        to->in_message = false;
    }
    if (p->last && wr_takes_receive(p->opcode)) {
        uint32_t len = p->offset + p->len;

        expect_recv(to, p->from, p->opcode, p->bth_opcode, p->imm_be,
                    p->solicited, len, wr_is_send(p->opcode) ? len : 0, 0);
    }
}

/* The first 40 bytes are the GRH's, if there is one. */
static void ud_arrives(const ModelPacket *p)
{
    const ModelRecv *recv = g_queue_peek_head(&p->to->recvs);

    if (p->has_grh) {
        for_pieces(&recv->local, 0, GRH_SIZE, (uint8_t *)p->grh, data_to_image);
    }
    scatter(p, GRH_SIZE);
    expect_recv(p->to, p->from, p->opcode, p->bth_opcode, p->imm_be,
                p->solicited, GRH_SIZE + p->len, GRH_SIZE + p->len,
                p->has_grh ? 0 : GRH_SIZE);
}

bool model_packet_arrives(const ModelPacket *p)
{
    bool needs_recv = wr_is_send(p->opcode) ? p->first
                                            : p->last && wr_has_imm(p->opcode);

    if (needs_recv && !p->to->recvs.length) {
        return false;
    }
    if (p->to->qp->service == RDMA_HCA_QP_ST_UC) {
        uc_arrives(p);
    } else {
        ud_arrives(p);
    }
    return true;
}

/* ---- queue pairs ---- */

void model_qp_init(ModelQp *qp, Qp *own, uint32_t mtu, uint32_t sq_psn,
                   uint32_t rq_psn)
{
    *qp = (ModelQp) {
        .qp = own,
        .mtu = mtu,
        .next_psn = sq_psn,
        .expected_psn = rq_psn,
    };
}

void model_qp_destroy(ModelQp *qp)
{
    g_queue_clear_full(&qp->sends, message_free);
    g_queue_clear_full(&qp->recvs, g_free);
    g_queue_clear_full(&qp->send_done, done_free);
    g_queue_clear_full(&qp->recv_done, done_free);
}

void model_qp_reset(ModelQp *qp, uint32_t sq_psn, uint32_t rq_psn)
{
    ModelQp *peer = qp->peer;
    ModelSrq *srq = qp->srq;

    model_qp_destroy(qp);
    model_qp_init(qp, qp->qp, qp->mtu, sq_psn, rq_psn);
    qp->peer = peer;
    qp->srq = srq;
}

bool model_qp_idle(const ModelQp *qp)
{
    return !qp->sends.length && !qp->send_done.length && !qp->recv_done.length;
}

uint8_t model_pick_opcode(GRand *rand, uint8_t service)
{
    static const uint8_t opcode[] = {
        RDMA_HCA_OPCODE_SEND,       RDMA_HCA_OPCODE_SEND_IMM,
        RDMA_HCA_OPCODE_RDMA_WRITE, RDMA_HCA_OPCODE_RDMA_WRITE_IMM,
        RDMA_HCA_OPCODE_RDMA_READ,  RDMA_HCA_OPCODE_ATOMIC_FA,
        RDMA_HCA_OPCODE_ATOMIC_CS,
    };
    static const unsigned n[] = {
        [RDMA_HCA_QP_ST_RC] = 7,
        [RDMA_HCA_QP_ST_UC] = 4,
        [RDMA_HCA_QP_ST_UD] = 2,
    };

    return opcode[g_rand_int(rand) % n[service]];
}

void model_post_send(ModelQp *qp, const ModelSend *send)
{
    Message *message = g_new0(Message, 1);

    message->wr = *send;
    if (send->inline_data) {
        message->data = g_memdup2(send->inline_data, send->len + 1);
    } else if (!model_qp_is_reliable(qp)) {
        message->data = payload(message);
    }
    expect_send(qp, send);
    qp->posted++;
    g_queue_push_tail(&qp->sends, message);
    if (model_qp_is_reliable(qp)) {
        execute(qp);
    }
}

void model_post_recv(ModelQp *qp, const ModelRecv *recv)
{
    g_queue_push_tail(&qp->recvs, g_memdup2(recv, sizeof(*recv)));
    if (qp->qp->service == RDMA_HCA_QP_ST_RC) {
        execute(qp->peer);
    }
}

/* ---- shared receive queues ---- */

void model_srq_init(ModelSrq *model, Srq *srq, unsigned users)
{
    *model = (ModelSrq) { .srq = srq, .users = users };
}

void model_srq_destroy(ModelSrq *srq)
{
    g_queue_clear_full(&srq->recvs, g_free);
}

void model_post_srq(ModelSrq *srq, const ModelRecv *recv)
{
    g_queue_push_tail(&srq->recvs, g_memdup2(recv, sizeof(*recv)));
}

static uint32_t list_len(const ModelList *list)
{
    uint32_t len = 0;

    for (unsigned i = 0; i < list->nsge; i++) {
        len += list->sge[i].len;
    }
    return len;
}

void model_srq_error(ModelSrq *srq, const Wc *wc)
{
    g_autofree ModelRecv *recv = take_shared(srq, wc->wr_id);

    for_pieces(&recv->local, 0, list_len(&recv->local), NULL, memory_to_image);
}
