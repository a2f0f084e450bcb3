/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Management datagrams (IBA 13.4, 14.2, 16.1): what lies where, and the numbers.
 * A MAD is always 256 bytes, an attribute of an SMP or of performance management
 * lies in the 64, or 192, bytes from 64 on.
 */
#ifndef HCA_MAD_H
#define HCA_MAD_H

#include <stdbool.h>

#include "../../abi/rdma_hca_sizes.h"
#include "../wire/bytes.h"
#include "../wire/packet.h"

#define HCA_MAD_SIZE RDMA_HCA_MAD_SIZE
#define HCA_MAD_DATA 64
#define HCA_SMP_DATA_SIZE 64

/* The common header. */
#define HCA_MAD_BASE_VERSION 0
#define HCA_MAD_CLASS 1
#define HCA_MAD_CLASS_VERSION 2
#define HCA_MAD_METHOD 3
#define HCA_MAD_STATUS 4
#define HCA_MAD_TID 8
#define HCA_MAD_ATTRIBUTE 16
#define HCA_MAD_MODIFIER 20
/* Of an SMP. */
#define HCA_SMP_HOP_POINTER 6
#define HCA_SMP_HOP_COUNT 7
#define HCA_SMP_MKEY 24
#define HCA_SMP_DR_SLID 32
#define HCA_SMP_DR_DLID 34
#define HCA_SMP_INITIAL_PATH 128
#define HCA_SMP_RETURN_PATH 192
#define HCA_SMP_MAX_HOPS 63

#define HCA_MAD_VERSION 1

typedef enum HcaMadClass {
    HCA_CLASS_SUBN_LID = 0x01,
    HCA_CLASS_SUBN_ADM = 0x03,
    HCA_CLASS_PERF = 0x04,
    HCA_CLASS_SUBN_DIRECTED = 0x81,
} HcaMadClass;

#define HCA_METHOD_GET 0x01
#define HCA_METHOD_SET 0x02
#define HCA_METHOD_SEND 0x03
#define HCA_METHOD_TRAP 0x05
#define HCA_METHOD_REPORT 0x06
#define HCA_METHOD_TRAP_REPRESS 0x07
#define HCA_METHOD_RESPONSE 0x80 /* bit */
#define HCA_METHOD_GET_RESP (HCA_METHOD_RESPONSE | HCA_METHOD_GET)

/* Status (IBA 13.4.7); in an SMP by directed route bit 15 is its direction. */
#define HCA_MAD_OK 0x0000
#define HCA_MAD_BAD_VERSION 0x0004
#define HCA_MAD_BAD_METHOD 0x0008
#define HCA_MAD_BAD_ATTRIBUTE 0x000c /* or with this method */
#define HCA_MAD_BAD_VALUE 0x001c
#define HCA_SMP_DIRECTION 0x8000

/* Attributes of the subnet management agent (IBA 14.2.5). */
typedef enum HcaSmaAttribute {
    HCA_ATTR_NOTICE = 0x0002,
    HCA_ATTR_NODE_DESC = 0x0010,
    HCA_ATTR_NODE_INFO = 0x0011,
    HCA_ATTR_SWITCH_INFO = 0x0012,
    HCA_ATTR_GUID_INFO = 0x0014,
    HCA_ATTR_PORT_INFO = 0x0015,
    HCA_ATTR_PKEY_TABLE = 0x0016,
    HCA_ATTR_SL_TO_VL = 0x0017,
    HCA_ATTR_VL_ARB = 0x0018,
    HCA_ATTR_LINEAR_FDB = 0x0019,
    HCA_ATTR_MCAST_FDB = 0x001b,
    HCA_ATTR_SM_INFO = 0x0020,
    HCA_ATTR_LED_INFO = 0x0031,
} HcaSmaAttribute;

/* Attributes of the performance management agent (IBA 16.1.3). */
typedef enum HcaPmaAttribute {
    HCA_ATTR_CLASS_PORT_INFO = 0x0001,
    HCA_ATTR_PORT_COUNTERS = 0x0012,
    HCA_ATTR_PORT_COUNTERS_EXT = 0x001d,
} HcaPmaAttribute;

/* Traps (IBA 14.2.5.1). */
#define HCA_TRAP_LINK_STATE 128
#define HCA_TRAP_INTEGRITY 129
#define HCA_TRAP_LOCAL_CHANGE 144
#define HCA_TRAP_BAD_MKEY 256
#define HCA_TRAP_BAD_PKEY 257
#define HCA_TRAP_BAD_QKEY 258
#define HCA_TRAP_SWITCH_BAD_PKEY 259

#define HCA_QKEY_GSI 0x80010000u
#define HCA_LID_FIRST_MULTICAST 0xc000
/* Of a subnet without a manager (IBA 4.1.1): link-local. */
#define HCA_DEFAULT_GID_PREFIX 0xfe80000000000000ull
#define HCA_NUM_VLS 16
/* VL 15 is none of these: what waits there goes before all of them. */
#define HCA_NUM_DATA_VLS 15
#define HCA_VL_MGMT 15

static inline uint16_t hca_mad_attribute(const uint8_t *mad)
{
    return get_be16(mad + HCA_MAD_ATTRIBUTE);
}

static inline uint32_t hca_mad_modifier(const uint8_t *mad)
{
    return get_be32(mad + HCA_MAD_MODIFIER);
}

/* What is sent to managers, or is an answer, is none of an agent's. */
static inline bool hca_mad_is_for_agent(const uint8_t *mad)
{
    uint8_t method = mad[HCA_MAD_METHOD];

    return !(method & HCA_METHOD_RESPONSE) && method != HCA_METHOD_SEND &&
           method != HCA_METHOD_TRAP && method != HCA_METHOD_REPORT;
}

/* Whether it travels by LIDs or by directed route: it is an SMP. */
static inline bool hca_mad_is_smp(const uint8_t *mad)
{
    return mad[HCA_MAD_CLASS] == HCA_CLASS_SUBN_LID ||
           mad[HCA_MAD_CLASS] == HCA_CLASS_SUBN_DIRECTED;
}

/* Whether one by directed route is on its way back. */
static inline bool hca_smp_is_response(const uint8_t *mad)
{
    return get_be16(mad + HCA_MAD_STATUS) & HCA_SMP_DIRECTION;
}

#endif /* HCA_MAD_H */
