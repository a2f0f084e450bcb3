/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the engine calls states, services, operations and their outcomes.
 *
 * Numbers are those that the documents give; front/ knows what a programming
 * interface calls them.
 */
#ifndef HCA_VERBS_H
#define HCA_VERBS_H

#include <stdbool.h>
#include <stdint.h>

/* For the sizes alone that the engine shares with its software. */
#include "../abi/rdma_hca_sizes.h"

/* XRC domains, logarithm to base 2: numbers, of which no table is kept. */
#define HCA_LOG_XRCDS 16
#define HCA_LOG_COUNTER_SETS 8

/* QP states (interface document, table 3-2-42). */
typedef enum HcaQpState {
    HCA_QP_RST = 0,
    HCA_QP_INIT = 1,
    HCA_QP_RTR = 2,
    HCA_QP_RTS = 3,
    HCA_QP_SQE = 4,
    HCA_QP_SQD = 5,
    HCA_QP_ERR = 6,
} HcaQpState;

/* QP transitions (table A1-2). */
typedef enum HcaQpTransition {
    HCA_QP_RST2INIT,
    HCA_QP_INIT2RTR,
    HCA_QP_RTR2RTS,
    HCA_QP_RTS2RTS,
    HCA_QP_SQERR2RTS,
    HCA_QP_2ERR,
    HCA_QP_RTS2SQD,
    HCA_QP_SQD2RTS,
    HCA_QP_ERR2RST,
    HCA_QP_INIT2INIT,
    HCA_QP_SQD2SQD,
    HCA_QP_NTRANSITIONS
} HcaQpTransition;

/* Services; see service.h. */
typedef enum HcaService {
    HCA_SERVICE_RC = 0,
    HCA_SERVICE_UC = 1,
    HCA_SERVICE_RD = 2, /* none of ours */
    HCA_SERVICE_UD = 3,
    HCA_SERVICE_XRC_INI = 5,
    HCA_SERVICE_XRC_TGT = 6,
    HCA_SERVICE_RAW = 7, /* Ethernet frames, of a RoCE card */
    HCA_NSERVICES = 8
} HcaService;

/* Operations of send WQEs (table 3-3-3). */
typedef enum HcaOpcode {
    HCA_OP_NOP = 0x00,
    HCA_OP_SEND_INV = 0x01,
    HCA_OP_RDMA_WRITE = 0x08,
    HCA_OP_RDMA_WRITE_IMM = 0x09,
    HCA_OP_SEND = 0x0a,
    HCA_OP_SEND_IMM = 0x0b,
    HCA_OP_RDMA_READ = 0x10,
    HCA_OP_ATOMIC_CS = 0x11,
    HCA_OP_ATOMIC_FA = 0x12,
    HCA_OP_ATOMIC_WRITE = 0x13,
    HCA_OP_FLUSH = 0x14,
    HCA_OP_BIND_MW = 0x18,
    HCA_OP_REG_MR = 0x19,
    HCA_OP_LOCAL_INV = 0x1b,
    HCA_NOPCODES = 0x20
} HcaOpcode;

/*
 * How a WQE ends; 0: well (second table 3-3-3, and from 0x30 on what verbs have
 * beside). What neither the card nor its peers have a reason for (reliable
 * datagrams, tag matching) comes of a plan of faults alone.
 */
typedef enum HcaSyndrome {
    HCA_SYNDROME_LOCAL_LENGTH_ERR = 0x01,
    HCA_SYNDROME_LOCAL_QP_OP_ERR = 0x02,
    HCA_SYNDROME_LOCAL_EEC_OP_ERR = 0x03,
    HCA_SYNDROME_LOCAL_PROT_ERR = 0x04,
    HCA_SYNDROME_WR_FLUSH_ERR = 0x05,
    HCA_SYNDROME_MW_BIND_ERR = 0x06,
    HCA_SYNDROME_BAD_RESP_ERR = 0x10,
    HCA_SYNDROME_LOCAL_ACCESS_ERR = 0x11,
    HCA_SYNDROME_REMOTE_INVAL_REQ_ERR = 0x12,
    HCA_SYNDROME_REMOTE_ACCESS_ERR = 0x13,
    HCA_SYNDROME_REMOTE_OP_ERR = 0x14,
    HCA_SYNDROME_RETRY_EXC_ERR = 0x15,
    HCA_SYNDROME_RNR_RETRY_EXC_ERR = 0x16,
    HCA_SYNDROME_LOCAL_RDD_VIOL_ERR = 0x20,
    HCA_SYNDROME_REMOTE_INVAL_RD_REQ_ERR = 0x21,
    HCA_SYNDROME_REMOTE_ABORTED_ERR = 0x22,
    HCA_SYNDROME_INVAL_EECN_ERR = 0x23,
    HCA_SYNDROME_INVAL_EEC_STATE_ERR = 0x24,
    HCA_SYNDROME_FATAL_ERR = 0x30,
    HCA_SYNDROME_RESP_TIMEOUT_ERR = 0x31,
    HCA_SYNDROME_GENERAL_ERR = 0x32,
    HCA_SYNDROME_TM_ERR = 0x33,
    HCA_SYNDROME_TM_RNDV_INCOMPLETE = 0x34,
} HcaSyndrome;

/* Events (table 3-2-25). */
typedef enum HcaEventType {
    HCA_EVENT_COMP = 0x00,
    HCA_EVENT_PATH_MIG = 0x01, /* by a plan of faults alone, and... */
    HCA_EVENT_COMM_EST = 0x02,
    HCA_EVENT_SQ_DRAINED = 0x03,
    HCA_EVENT_CQ_ERROR = 0x04,
    HCA_EVENT_WQ_CATAS_ERROR = 0x05,
    HCA_EVENT_PATH_MIG_FAILED = 0x07,   /* ...this: there are no two paths */
    HCA_EVENT_LOCAL_CATAS_ERROR = 0x08, /* an EQ could not be written */
    HCA_EVENT_PORT_CHANGE = 0x09,
    HCA_EVENT_CMD = 0x0a,
    HCA_EVENT_EQ_OVERFLOW = 0x0f, /* an EQ had no room: a fault */
    HCA_EVENT_WQ_INVAL_REQ_ERROR = 0x10,
    HCA_EVENT_WQ_ACCESS_ERROR = 0x11,
    HCA_EVENT_SRQ_CATAS_ERROR = 0x12, /* its memory was refused */
    HCA_EVENT_LAST_WQE_REACHED = 0x13,
    HCA_EVENT_SRQ_LIMIT = 0x14,
    HCA_EVENT_CONGESTION = 0x15, /* ours: a QP got a CNP */
    HCA_EVENT_PORT_MNG = 0x1d,   /* ours: a manager has changed the port */
} HcaEventType;

/* Subtypes of PORT_CHANGE, syndromes of CQ_ERROR. */
#define HCA_PORT_CHANGE_DOWN 1
#define HCA_PORT_CHANGE_ACTIVE 4
#define HCA_CQ_ERROR_OVERRUN 1
#define HCA_CQ_ERROR_ACCESS 2

/* Access rights of a region, and those that a QP gives its peer. */
#define HCA_ACCESS_LOCAL_WRITE (1u << 0)
#define HCA_ACCESS_REMOTE_WRITE (1u << 1)
#define HCA_ACCESS_REMOTE_READ (1u << 2)
#define HCA_ACCESS_REMOTE_ATOMIC (1u << 3)
#define HCA_ACCESS_MW_BIND (1u << 4)
#define HCA_ACCESS_ZERO_BASED (1u << 5)
#define HCA_ACCESS_ON_DEMAND (1u << 6)
#define HCA_ACCESS_FLUSH_GLOBAL (1u << 8)
#define HCA_ACCESS_FLUSH_PERSISTENT (1u << 9)
#define HCA_FLUSH_ACCESS (HCA_ACCESS_FLUSH_GLOBAL | HCA_ACCESS_FLUSH_PERSISTENT)
/* Rights to what a peer does with data; and to all that it does. */
#define HCA_REMOTE_DATA_ACCESS                                                 \
    (HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_READ |                        \
     HCA_ACCESS_REMOTE_ATOMIC)
#define HCA_REMOTE_ACCESS (HCA_REMOTE_DATA_ACCESS | HCA_FLUSH_ACCESS)

/* Whether a region may have them: a peer may write to nothing that its owner
 * may not (IBA 10.6.3.1). */
static inline bool hca_region_access_ok(uint32_t access)
{
    return (access & HCA_ACCESS_LOCAL_WRITE) ||
           !(access & (HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_ATOMIC));
}

/*
 * A FLUSH (IBA annex A19): what has to become of the data, bits; and of which,
 * those of a range or of all of the region.
 */
#define HCA_FLUSH_GLOBAL (1u << 0)
#define HCA_FLUSH_PERSISTENT (1u << 1)
#define HCA_FLUSH_TYPES (HCA_FLUSH_GLOBAL | HCA_FLUSH_PERSISTENT)
#define HCA_FLUSH_RANGE 0
#define HCA_FLUSH_REGION 1
/* The rights that one of these types needs. */
#define HCA_FLUSH_NEEDS(types) ((uint32_t)(types) << 8)

/* Whether there is such a FLUSH: of any numbers. */
static inline bool hca_flush_is_known(uint32_t types, uint32_t level)
{
    return types && !(types & ~HCA_FLUSH_TYPES) && level <= HCA_FLUSH_REGION;
}

/* A key: the number of its entry, and a byte of its consumer's. */
#define HCA_KEY_SHIFT 8
#define HCA_KEY_BYTE 0xffu

/* What a command is answered (table 3-1-5). */
typedef enum HcaStatus {
    HCA_STAT_OK = 0x00,
    HCA_STAT_BAD_OP = 0x02,
    HCA_STAT_BAD_PARAM = 0x03,
    HCA_STAT_BAD_SYS_STATE = 0x04,
    HCA_STAT_BAD_RESOURCE = 0x06,
    HCA_STAT_RESOURCE_BUSY = 0x07,
    HCA_STAT_EXCEED_LIM = 0x08,
    HCA_STAT_BAD_RES_STATE = 0x09,
    HCA_STAT_BAD_INDEX = 0x0a,
    HCA_STAT_BAD_QP_STATE = 0x10,
    HCA_STAT_BAD_SEG_PARAM = 0x20,
    HCA_STAT_REG_BOUND = 0x21,
    HCA_STAT_BAD_SIZE = 0x40,
} HcaStatus;

#endif /* HCA_VERBS_H */
