/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A reference model of the verbs: what work requests make of memory and how
 * they complete. It knows neither cards nor time.
 *
 * A request of a reliable connection takes effect once and in order, as soon
 * as the peer has a receive for it. Which receive of a shared queue a message
 * has got is the card's to say, and told by its completion; but it takes them in
 * the order in which they were posted. Messages of UC and UD take effect packet
 * by packet: who owns the cable says which packets leave and which arrive.
 * Requests that manage memory complete in their turn; what they are good for is
 * seen by those that use the keys.
 *
 * All functions fail the test when the card does not do as the model does.
 */
#ifndef LIB_MODEL_H
#define LIB_MODEL_H

#include "../wire/packet.h"
#include "lib-driver.h"

#define MODEL_MAX_SGE 6

typedef struct ModelQp ModelQp;
typedef struct ModelSrq ModelSrq;

/* A region and what has to be in it. */
typedef struct ModelRegion {
    Mr *mr;
    uint8_t *image;
} ModelRegion;

/* Pieces of a region: a gather or scatter list. */
typedef struct ModelList {
    ModelRegion *region;
    unsigned nsge;
    Sge sge[MODEL_MAX_SGE];
} ModelList;

typedef struct ModelSend {
    uint64_t wr_id;
    uint8_t opcode; /* RDMA_HCA_OPCODE_* */
    bool signalled;
    bool solicited;
    uint32_t imm_be;
    uint32_t inv_rkey; /* Send with invalidate */
    uint32_t len;
    ModelList local;
    const uint8_t *inline_data; /* in place of @local, or NULL */
    ModelRegion *remote;        /* RDMA and atomics */
    uint64_t remote_at;
    uint64_t swap_add, compare;
    ModelQp *to;   /* UD */
    ModelSrq *srq; /* XRC */
} ModelSend;

typedef struct ModelRecv {
    uint64_t wr_id;
    ModelList local;
} ModelRecv;

/* A shared receive queue, of reliable connections. */
struct ModelSrq {
    Srq *srq;
    unsigned users; /* QPs that take receives from it */
    GQueue recvs;   /* ModelRecv: posted and not complete, in that order */
};

struct ModelQp {
    Qp *qp;
    ModelSrq *srq; /* in place of @recvs */
    uint32_t mtu;
    ModelQp *peer;               /* RC, UC */
    GQueue sends;                /* Message: not executed, or not all sent */
    GQueue recvs;                /* ModelRecv: not used yet */
    GQueue send_done, recv_done; /* Done: completions still to come */
    uint64_t posted, executed;   /* sends */
    /* UC, UD: the message whose packets leave. */
    uint32_t next_psn;
    uint32_t left; /* bytes of it that have */
    /* UC: the message that arrives. */
    uint32_t expected_psn;
    bool in_message;
};

/* A packet of UC or UD on its way. */
typedef struct ModelPacket {
    ModelQp *from, *to;
    uint32_t psn;
    uint8_t opcode; /* RDMA_HCA_OPCODE_* of its message */
    uint8_t bth_opcode;
    bool first, last;
    bool solicited;
    uint32_t imm_be;
    ModelRegion *remote; /* Write: where its payload goes */
    uint64_t remote_at;
    uint32_t offset; /* of its payload in the message */
    const uint8_t *payload;
    uint32_t len;
    bool has_grh; /* UD: 40 bytes come before the payload */
    uint8_t grh[40];
} ModelPacket;

/* @mr filled with random bytes. */
void model_region_init(ModelRegion *region, Mr *mr, GRand *rand);
void model_region_destroy(ModelRegion *region);
/* Whatever is there now has to be there. */
void model_region_sync(ModelRegion *region);
/* Every byte of it. */
void model_region_check(const ModelRegion *region);
/* Write @data to the pieces, in the model and in the machine. */
void model_list_fill(const ModelList *list, const uint8_t *data, uint32_t len);

void model_qp_init(ModelQp *qp, Qp *own, uint32_t mtu, uint32_t sq_psn,
                   uint32_t rq_psn);
void model_qp_destroy(ModelQp *qp);
/* Its number begins anew: all that was posted is gone. */
void model_qp_reset(ModelQp *qp, uint32_t sq_psn, uint32_t rq_psn);
void model_srq_init(ModelSrq *model, Srq *srq, unsigned users);
void model_srq_destroy(ModelSrq *srq);
void model_post_srq(ModelSrq *srq, const ModelRecv *recv);
/* A receive ended in an error: whatever was written to it. */
void model_srq_error(ModelSrq *srq, const Wc *wc);
/* Of a connection whose messages all arrive. */
bool model_qp_is_reliable(const ModelQp *qp);
/* Whether every completion that is to come has come. */
bool model_qp_idle(const ModelQp *qp);

/* One of those that a service has: RDMA_HCA_OPCODE_*. */
uint8_t model_pick_opcode(GRand *rand, uint8_t service);
void model_post_send(ModelQp *qp, const ModelSend *send);
void model_post_recv(ModelQp *qp, const ModelRecv *recv);
/* The next completion of @qp. @solicited: it wakes who waits for such. */
void model_complete(ModelQp *qp, const Wc *wc, bool *solicited);

/* A UC or UD packet of @from leaves the card, as the next one has to be. */
ModelPacket model_packet_leaves(ModelQp *from, const HcaPacket *packet);
/*
 * It arrives. False: there is no receive for it; it has not arrived, and must
 * not.
 */
bool model_packet_arrives(const ModelPacket *packet);

#endif /* LIB_MODEL_H */
