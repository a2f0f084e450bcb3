/* SPDX-License-Identifier: GPL-2.0-or-later */
/* loopback: a bounded queue of packets for the card's own address. */
#ifndef HCA_LINK_LOOPBACK_H
#define HCA_LINK_LOOPBACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../state.h"

typedef struct HcaLoopback HcaLoopback;

HcaLoopback *hca_loopback_new(void);
void hca_loopback_free(HcaLoopback *loopback);
void hca_loopback_clear(HcaLoopback *loopback);

/* Whether the longest packet fits. */
bool hca_loopback_can_put(const HcaLoopback *loopback);

/*
 * Append a packet: room for HCA_FRAME_MAX_PACKET bytes, then how many were
 * written there.
 */
uint8_t *hca_loopback_open(HcaLoopback *loopback);
void hca_loopback_close(HcaLoopback *loopback, size_t len);

/* The oldest packet, valid until the next call or clear; NULL if none. */
const uint8_t *hca_loopback_get(HcaLoopback *loopback, size_t *len);

bool hca_loopback_is_empty(const HcaLoopback *loopback);

/* All packets that get() has not given, as hca_state_put_packet() has them. */
extern const HcaStruct hca_loopback_struct;
void hca_loopback_save(const HcaLoopback *loopback, GArray *bytes);
/* @n bytes of such; *@count: how many. False: they are none, or too many. */
bool hca_loopback_load(HcaLoopback *loopback, const uint8_t *bytes, uint32_t n,
                       unsigned *count);

#endif /* HCA_LINK_LOOPBACK_H */
