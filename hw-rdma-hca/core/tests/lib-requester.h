/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A requester on the bench without a peer: it posts, the test answers.
 */
#ifndef LIB_REQUESTER_H
#define LIB_REQUESTER_H

#include "lib-bed.h"

#define BED_TIMEOUT_NS (INT64_C(4096) << BED_TIMEOUT)

/* BED_TIMEOUT, three retries of each kind. */
void bed_attr_init(QpAttr *attr);
/* In RTS; an RC peer has said that it tells no credits. @cards: configuration
 * of both, or NULL. */
Bed *bed_new_with(uint8_t service, const QpAttr *attr, const HcaConfig *cards);
Bed *bed_new_service(uint8_t service);
/* RC. */
Bed *bed_new(void);
/* RC, of whose peer's credits nothing is known. */
Bed *bed_new_credits(void);

/* Message @wr_id of @len bytes, from or to 4096 * @wr_id of the region. */
SendWr bed_wr(Bed *bed, Sge *sge, uint8_t opcode, uint64_t wr_id, uint32_t len);
void bed_post_wr(Bed *bed, const SendWr *wr);
void bed_post_flags(Bed *bed, uint8_t opcode, uint64_t wr_id, uint32_t len,
                    unsigned flags);
void bed_post(Bed *bed, uint8_t opcode, uint64_t wr_id, uint32_t len);
/* One that fails its checks: a list entry with a key of nothing. */
void bed_post_bad(Bed *bed, uint64_t wr_id);
void bed_post_ud(Bed *bed, uint64_t wr_id, uint32_t len);

void bed_expect_request(Bed *bed, uint8_t op, uint32_t psn);
/* One that carries @len bytes from @at of the region on. */
void bed_expect_payload(Bed *bed, uint8_t op, uint32_t psn, uint32_t at,
                        uint32_t len);
/* A Read request for @len bytes, @offset bytes behind where it began. */
void bed_expect_read(Bed *bed, uint32_t psn, uint32_t offset, uint32_t len);
void bed_forget_requests(Bed *bed);

/* What the peer says; then the cards come to rest. */
void bed_say_packet(Bed *bed, HcaPacket *packet, uint32_t at);
void bed_say(Bed *bed, uint8_t op, uint32_t psn, uint8_t syndrome);
void bed_ack(Bed *bed, uint32_t psn);
void bed_nak(Bed *bed, uint32_t psn, uint8_t syndrome);
/* A Read response with @len bytes from @at of bed->data on. */
void bed_respond(Bed *bed, uint8_t op, uint32_t psn, uint32_t at, uint32_t len);
/* The answer to an atomic write or a FLUSH: a Read response without data. */
void bed_say_placed(Bed *bed, uint32_t psn);
void bed_atomic_ack(Bed *bed, uint32_t psn, uint64_t value);

/* The next completion, which has to be there. */
void bed_expect_wc(Bed *bed, uint64_t wr_id, uint8_t syndrome);
void bed_expect_done(Bed *bed, uint64_t wr_id);
/* Message @wr_id fails, the @n after it are flushed, and the QP is broken. */
void bed_expect_broken(Bed *bed, uint64_t wr_id, uint8_t syndrome, unsigned n);
/* The next completion is this error of the card's own, and the QP is broken; the
 * bed is freed. */
void bed_expect_refused(Bed *bed, uint8_t syndrome, uint8_t vendor_err);

/* The first PSN that is not acknowledged. */
void bed_expect_upsn(Bed *bed, uint32_t psn);
void bed_expect_timer_off(Bed *bed);
/* The loss timer was set again in the last microseconds. */
void bed_expect_timer_reset(Bed *bed);
/* Time passes, so that a timer that is set again can be told from others. */
void bed_pass_time(Bed *bed);
/* More QPs of the bed's kind: they hold what of a pool they are let have. */
void bed_post_from_others(Bed *bed, const QpAttr *attr, Qp **other, unsigned n,
                          const SendWr *wr);

#endif /* LIB_REQUESTER_H */
