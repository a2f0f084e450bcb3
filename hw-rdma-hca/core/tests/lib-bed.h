/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A requester on the bench. Card 0 is the requester. Card 1 only lends its end
 * of the cable: responses are made up and sent from there, whatever their PSN
 * and opcode, and a tap takes down what card 0 requests.
 */
#ifndef LIB_BED_H
#define LIB_BED_H

#include "lib-inside.h"
#include "lib-pair.h"

#define BED_MTU 256u      /* of RC and UC */
#define BED_PSN 0xfffffcu /* the first; wraps in most tests */
#define BED_PEER_QPN 0xabcdeu
#define BED_AREA 131072u
#define BED_RADDR UINT64_C(0x123456789a00)
#define BED_RKEY 0xfeedu
#define BED_QKEY 0x11111111u
#define BED_TIMEOUT 14 /* ack timeout code: 67 ms */

/* A request, as the tap saw it. */
typedef struct BedRequest {
    HcaPacket packet;
    uint8_t data[HCA_MAX_MTU];
    int64_t time;
} BedRequest;

typedef struct Bed {
    Pair *pair;
    Hca *hca;      /* card 0 */
    Hca *peer_hca; /* card 1 */
    HcaQp peer;    /* what FrameEncap wants of the sender */
    Qp *qp;
    HcaQp *hqp;
    Cq *cq;
    Mr *mr;
    uint8_t service;
    uint32_t msn;
    GQueue requests;        /* BedRequest */
    uint8_t data[BED_AREA]; /* what responses carry */
} Bed;

/* BED_TIMEOUT, three retries of each kind. */
void bed_attr_init(QpAttr *attr);
/* A requester of @service in RTS. @config: of both cards, or NULL. */
Bed *bed_new_with(uint8_t service, const QpAttr *attr, const HcaConfig *config);
Bed *bed_new(void);
Bed *bed_new_service(uint8_t service);
/* Nothing more may have been requested or completed. */
void bed_free(Bed *bed);
/* Let both cards come to rest. */
void bed_run(Bed *bed);

/* Message @wr_id of @len bytes, from or to 4096 * @wr_id of the region. */
SendWr bed_wr(Bed *bed, Sge *sge, uint8_t opcode, uint64_t wr_id, uint32_t len);
void bed_post_wr(Bed *bed, const SendWr *wr);
void bed_post_flags(Bed *bed, uint8_t opcode, uint64_t wr_id, uint32_t len,
                    unsigned flags);
void bed_post(Bed *bed, uint8_t opcode, uint64_t wr_id, uint32_t len);
/* One that fails its checks: a list entry with a key of nothing. */
void bed_post_bad(Bed *bed, uint64_t wr_id);
void bed_post_ud(Bed *bed, uint64_t wr_id, uint32_t len);

/* The next request has to be this one; g_free() it. */
BedRequest *bed_next_request(Bed *bed, uint8_t op, uint32_t psn);
void bed_expect_request(Bed *bed, uint8_t op, uint32_t psn);
/* One that carries @len bytes from @at of the region on. */
void bed_expect_payload(Bed *bed, uint8_t op, uint32_t psn, uint32_t at,
                        uint32_t len);
/* A Read request for @len bytes, @offset bytes behind where it began. */
void bed_expect_read(Bed *bed, uint32_t psn, uint32_t offset, uint32_t len);
void bed_expect_quiet(Bed *bed);
void bed_forget_requests(Bed *bed);

/* What the peer says; then the cards come to rest. */
void bed_say_packet(Bed *bed, HcaPacket *packet, uint32_t at);
void bed_say(Bed *bed, uint8_t op, uint32_t psn, uint8_t syndrome);
void bed_ack(Bed *bed, uint32_t psn);
void bed_nak(Bed *bed, uint32_t psn, uint8_t syndrome);
/* A Read response with @len bytes from @at of bed->data on. */
void bed_respond(Bed *bed, uint8_t op, uint32_t psn, uint32_t at, uint32_t len);
void bed_atomic_ack(Bed *bed, uint32_t psn, uint64_t value);

/* The next completion, which has to be there. */
void bed_expect_wc(Bed *bed, uint64_t wr_id, uint8_t syndrome);
void bed_expect_done(Bed *bed, uint64_t wr_id);
void bed_expect_none(Bed *bed);
void bed_expect_state(Bed *bed, unsigned state);
/* Message @wr_id fails, the @n after it are flushed, and the QP is broken. */
void bed_expect_broken(Bed *bed, uint64_t wr_id, uint8_t syndrome, unsigned n);
void bed_expect_drops(Bed *bed, HcaDropReason reason, uint64_t n);

#endif /* LIB_BED_H */
