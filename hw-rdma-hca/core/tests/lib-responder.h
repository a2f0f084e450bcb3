/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A responder on the bench without a peer: requests are made up here, whatever
 * their PSN and opcode, and what it answers is taken down.
 */
#ifndef LIB_RESPONDER_H
#define LIB_RESPONDER_H

#include "lib-bed.h"

Bed *resp_new_service(uint8_t service);
/* RC. */
Bed *resp_new(void);

/* ---- what the peer asks ---- */

/* A request with the next PSN, of @op and the bed's service. */
HcaPacket request_make(Bed *bed, uint8_t op, uint32_t len);
/* A Read of @len bytes at @offset of the region. */
HcaPacket request_make_read(Bed *bed, uint32_t offset, uint32_t len);
/* An atomic on the first aligned 8 bytes of the region. */
HcaPacket request_make_atomic(Bed *bed, uint8_t op);
/* Send it; then the cards come to rest. */
void request_put(Bed *bed, HcaPacket *packet, uint32_t at);
/* Send one of @op with @len bytes from @at; the next has the next PSN. */
void request_send_at(Bed *bed, uint8_t op, uint32_t at, uint32_t len);
/* The same from 0. */
void request_send(Bed *bed, uint8_t op, uint32_t len);
/* Give the packet to the responder alone; its answer stays in the ring. */
void request_give(Bed *bed, HcaPacket *packet, uint32_t at);
/* The same of one of @op. */
void request_give_op(Bed *bed, uint8_t op, uint32_t len);

/* ---- what the responder does ---- */

/* Let the responder's card send what waits. */
void resp_run(Bed *bed);
void resp_expect_ack(Bed *bed, uint32_t psn, uint32_t msn);
/* The answer to an atomic write or a FLUSH: a Read response without data. */
void resp_expect_placed(Bed *bed, uint32_t psn, uint32_t msn);
void resp_expect_nak(Bed *bed, uint32_t psn, uint8_t syndrome);
/* The responses to a Read of @len bytes at @offset, from @psn on. */
void resp_expect_read(Bed *bed, uint32_t psn, uint32_t offset, uint32_t len,
                      uint32_t msn);
/* The QP has broken, with this event (0: none of its own). */
void resp_expect_broken(Bed *bed, uint8_t event);
void resp_post_recv(Bed *bed, uint64_t wr_id, uint64_t at, uint32_t len);
void resp_expect_recv(Bed *bed, uint64_t wr_id, uint8_t opcode,
                      uint32_t byte_len);
void resp_expect_recv_error(Bed *bed, uint64_t wr_id, uint8_t syndrome);
/* What atomics of request_make_atomic() change. */
uint64_t resp_atomic_word(Bed *bed);
void resp_expect_atomic(Bed *bed, uint32_t psn, uint64_t old, uint32_t msn);
/* Entries of its ring. */
uint32_t resp_waiting(const Bed *bed);

#endif /* LIB_RESPONDER_H */
