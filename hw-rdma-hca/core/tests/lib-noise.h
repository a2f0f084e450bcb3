/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a guest that means harm may write, at random. */
#ifndef LIB_NOISE_H
#define LIB_NOISE_H

#include "lib-scene.h"

uint32_t noise32(Scene *s);
/* 0, all ones, small, one bit, or anything. */
uint32_t noise_odd32(Scene *s);
/* @len bytes of such words. */
void noise_fill(Scene *s, void *buf, size_t len);

/* Mostly what belongs to the victim: its QPN, its page, its offsets. */
void noise_send_doorbell(Scene *s);
/* An address of RAM now and then, with a mailbox of noise behind it. */
uint64_t noise_mailbox(Scene *s);
/* A command of such arguments, which has to end; the opcode of one. */
void noise_command(Scene *s, uint16_t op);
uint16_t noise_opcode(Scene *s);

#endif /* LIB_NOISE_H */
