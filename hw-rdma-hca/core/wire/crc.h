/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The two CRCs of an IB packet (IBA 7.8). */
#ifndef HCA_WIRE_CRC_H
#define HCA_WIRE_CRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HCA_ICRC_INIT 0
#define HCA_VCRC_INIT 0

/*
 * The CRC of more bytes behind those that have @crc; the first time @crc is
 * the INIT value. Both go into the packet least significant byte first.
 */
uint32_t hca_icrc_update(uint32_t crc, const void *data, size_t len);
uint16_t hca_vcrc_update(uint16_t crc, const void *data, size_t len);
/* Both of the same bytes, in one pass where that is possible. */
void hca_crcs_update(uint32_t *icrc, uint16_t *vcrc, const void *data,
                     size_t len);

/*
 * ICRC of the first headers of a packet, LRH, [GRH,] BTH, with the fields left
 * out that change on the way. The caller goes on with what follows BTH.
 */
uint32_t hca_icrc_masked_headers(const uint8_t *lrh, bool has_grh);

/* The same of a RoCEv2 packet: IP (@is_ipv4: without options), UDP, BTH. */
uint32_t hca_icrc_masked_ip_headers(const uint8_t *ip, bool is_ipv4);

#endif /* HCA_WIRE_CRC_H */
