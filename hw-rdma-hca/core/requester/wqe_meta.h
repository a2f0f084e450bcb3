/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * WQE metadata: the 576 bits that go with each packet through the requester
 * (ReqTransCore_Thread_2 document, "WQE fields and offsets"). Host byte order.
 */
#ifndef HCA_WQE_META_H
#define HCA_WQE_META_H

#include <glib.h>
#include <stddef.h>

#include "../../abi/rdma_hca_types.h"

typedef struct HcaWqeMeta {
    uint32_t local;  /* HCA_META_LOCAL_QPN, VERBS_OPCODE */
    uint32_t remote; /* REMOTE_QPN, NET_OPCODE, SERVICE_TYPE */
    uint32_t flags;  /* FENCE and following */
    uint8_t dmac[6]; /* Ethernet only */
    uint8_t smac[6];
    uint32_t dip;
    uint32_t sip;
    uint32_t immediate; /* as on the wire */
    uint32_t lkey;      /* of the packet's first entry, */
    uint32_t laddr_l;   /* and its address */
    uint32_t laddr_h;
    uint32_t rkey;
    uint32_t raddr_l;
    uint32_t raddr_h;
    uint32_t msg_length;    /* bytes */
    uint16_t packet_length; /* bytes of payload */
    uint16_t reserved;
    uint32_t payload_buffer_addr; /* index in the SWPB, once it is there */
} HcaWqeMeta;

#define HCA_META_LOCAL_QPN RDMA_HCA_MASK(23, 0)
#define HCA_META_VERBS_OPCODE RDMA_HCA_MASK(28, 24) /* RDMA_HCA_OPCODE_* */
#define HCA_META_REMOTE_QPN RDMA_HCA_MASK(23, 0)
#define HCA_META_NET_OPCODE RDMA_HCA_MASK(28, 24)   /* HcaBthOperation */
#define HCA_META_SERVICE_TYPE RDMA_HCA_MASK(31, 29) /* RDMA_HCA_QP_ST_* */
#define HCA_META_FENCE RDMA_HCA_MASK(0, 0)
#define HCA_META_SOLICITED RDMA_HCA_MASK(1, 1)
#define HCA_META_WQE_HEAD RDMA_HCA_MASK(2, 2) /* first packet */
#define HCA_META_WQE_TAIL RDMA_HCA_MASK(3, 3) /* last packet */
#define HCA_META_INLINE RDMA_HCA_MASK(4, 4)
#define HCA_META_WQE_OFFSET RDMA_HCA_MASK(31, 8) /* 16-byte units */

/* The document's bit ranges. */
#define HCA_META_ASSERT(member, mask, first, last)                             \
    G_STATIC_ASSERT(offsetof(HcaWqeMeta, member) * 8 + __builtin_ctz(mask) ==  \
                        (first) &&                                             \
                    __builtin_popcount(mask) == (last) - (first) + 1)
#define HCA_META_ASSERT_WHOLE(member, first, last)                             \
    G_STATIC_ASSERT(offsetof(HcaWqeMeta, member) * 8 == (first) &&             \
                    sizeof(((HcaWqeMeta *)0)->member) * 8 ==                   \
                        (last) - (first) + 1)

HCA_META_ASSERT(local, HCA_META_LOCAL_QPN, 0, 23);
HCA_META_ASSERT(local, HCA_META_VERBS_OPCODE, 24, 28);
HCA_META_ASSERT(remote, HCA_META_REMOTE_QPN, 32, 55);
HCA_META_ASSERT(remote, HCA_META_NET_OPCODE, 56, 60);
HCA_META_ASSERT(remote, HCA_META_SERVICE_TYPE, 61, 63);
HCA_META_ASSERT(flags, HCA_META_FENCE, 64, 64);
HCA_META_ASSERT(flags, HCA_META_SOLICITED, 65, 65);
HCA_META_ASSERT(flags, HCA_META_WQE_HEAD, 66, 66);
HCA_META_ASSERT(flags, HCA_META_WQE_TAIL, 67, 67);
HCA_META_ASSERT(flags, HCA_META_INLINE, 68, 68);
HCA_META_ASSERT(flags, HCA_META_WQE_OFFSET, 72, 95);
HCA_META_ASSERT_WHOLE(dmac, 96, 143);
HCA_META_ASSERT_WHOLE(smac, 144, 191);
HCA_META_ASSERT_WHOLE(dip, 192, 223);
HCA_META_ASSERT_WHOLE(sip, 224, 255);
HCA_META_ASSERT_WHOLE(immediate, 256, 287);
HCA_META_ASSERT_WHOLE(lkey, 288, 319);
HCA_META_ASSERT_WHOLE(laddr_l, 320, 351);
HCA_META_ASSERT_WHOLE(laddr_h, 352, 383);
HCA_META_ASSERT_WHOLE(rkey, 384, 415);
HCA_META_ASSERT_WHOLE(raddr_l, 416, 447);
HCA_META_ASSERT_WHOLE(raddr_h, 448, 479);
HCA_META_ASSERT_WHOLE(msg_length, 480, 511);
HCA_META_ASSERT_WHOLE(packet_length, 512, 527);
HCA_META_ASSERT_WHOLE(payload_buffer_addr, 544, 575);
G_STATIC_ASSERT(sizeof(HcaWqeMeta) * 8 == 576);

static inline uint8_t hca_meta_opcode(const HcaWqeMeta *meta)
{
    return RDMA_HCA_GET(HCA_META_VERBS_OPCODE, meta->local);
}

/* Bytes in the send queue. */
static inline uint32_t hca_meta_wqe_offset(const HcaWqeMeta *meta)
{
    return RDMA_HCA_GET(HCA_META_WQE_OFFSET, meta->flags) * 16;
}

static inline bool hca_meta_is_tail(const HcaWqeMeta *meta)
{
    return meta->flags & HCA_META_WQE_TAIL;
}

static inline uint64_t hca_meta_raddr(const HcaWqeMeta *meta)
{
    return (uint64_t)meta->raddr_h << 32 | meta->raddr_l;
}

#endif /* HCA_WQE_META_H */
