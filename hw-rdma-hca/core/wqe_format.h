/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a programming interface lays out work queue entries; front/ fills it.
 * Bytes are the card's copy of what lay in guest memory.
 */
#ifndef HCA_WQE_FORMAT_H
#define HCA_WQE_FORMAT_H

#include "qp.h"

typedef enum HcaRecvSlot {
    HCA_SLOT_EMPTY,
    HCA_SLOT_LAST, /* a WQE that says that none follows */
    HCA_SLOT_WQE,
} HcaRecvSlot;

typedef struct HcaWqeFormat {
    /*
     * How a send WQE begins, RDMA_HCA_WQE_UNIT bytes at the least: what it
     * says of itself, and the next one of its chain; @next has size 0 if there
     * is none, be it by wqe->ref.count.
     */
    void (*parse_header)(const uint8_t *bytes, HcaWqe *wqe, HcaWqeRef *next);
    /*
     * UD: the peer's path on an InfiniBand or a RoCE port, QPN and Q_Key as
     * given. False: units are missing or senseless.
     */
    bool (*parse_peer)(const uint8_t *bytes, bool roce, HcaWqe *wqe);
    /*
     * All that follows, as wqe->ref.opcode and @service say: remote address,
     * operands, what to flush, entries and the message's length, or what to do
     * to memory. Inline data are an entry in the send queue's region, whose L_Key
     * is @lkey. False: units are missing, too many or senseless. Only after
     * parse_peer() has been content.
     */
    bool (*parse_units)(const uint8_t *bytes, HcaService service, uint32_t lkey,
                        HcaWqe *wqe);
    /*
     * QP 0 and QP 1: where the packet's own headers are, and the entries behind
     * them. False: it is no such WQE. NULL: theirs are like those of others.
     */
    bool (*parse_special)(const uint8_t *bytes, HcaWqe *wqe, HcaSge *headers);
    /* What a slot holds, where no posted count says it. */
    HcaRecvSlot (*recv_slot)(const uint8_t *slot);
    /*
     * The tag, and the entries, of the receive WQE in a slot of @size bytes; its
     * other fields are set. False: it is no WQE.
     */
    bool (*parse_recv)(const uint8_t *slot, uint32_t size, HcaRecvWqe *wqe);
    /* Where the WQE behind it is in a shared queue, if those are lists. */
    uint32_t (*recv_link)(const uint8_t *slot);
} HcaWqeFormat;

#endif /* HCA_WQE_FORMAT_H */
