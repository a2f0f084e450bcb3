/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Header checks of the ExecutionEngine (engine document 4.4.1.1.1, figure
 * 4.3): what a packet must be before it is executed.
 *
 * dispatch.c has found the QP and judged its state and the service type. Checks
 * that figure 4.3 lacks (P_Key, source, position in the message, lengths) are
 * those of IBA 9.6.1, 9.7.4 and 9.8. Where the figure refuses an opcode before
 * it looks at the PSN, a packet of a reliable connection is judged by its PSN
 * first: only the expected one may break the connection (IBA 9.7.4.1).
 */
#include "units.h"

#define RC (1u << HCA_SERVICE_RC | 1u << HCA_SERVICE_XRC_TGT)
#define UC (1u << HCA_SERVICE_UC)
#define UD (1u << HCA_SERVICE_UD)

#define SEND(s, ...)                                                           \
    {                                                                          \
        .services = (s), .kind = HCA_REQUEST_SEND, __VA_ARGS__                 \
    }
#define WRITE(...)                                                             \
    {                                                                          \
        .services = RC | UC, .kind = HCA_REQUEST_WRITE,                        \
        .access = HCA_ACCESS_REMOTE_WRITE, __VA_ARGS__                         \
    }
#define SINGLE(k, a)                                                           \
    {                                                                          \
        .services = RC, .kind = (k), .access = (a), .first = true,             \
        .last = true                                                           \
    }

static const HcaOperation operations[32] = {
    [HCA_SEND_FIRST] = SEND(RC | UC, .first = true),
    [HCA_SEND_MIDDLE] = SEND(RC | UC, .first = false),
    [HCA_SEND_LAST] = SEND(RC | UC, .last = true),
    [HCA_SEND_LAST_IMM] = SEND(RC | UC, .last = true, .imm = true),
    [HCA_SEND_ONLY] = SEND(RC | UC | UD, .first = true, .last = true),
    [HCA_SEND_ONLY_IMM] = SEND(RC | UC | UD, .first = true, .last = true,
                               .imm = true),
    [HCA_WRITE_FIRST] = WRITE(.first = true),
    [HCA_WRITE_MIDDLE] = WRITE(.first = false),
    [HCA_WRITE_LAST] = WRITE(.last = true),
    [HCA_WRITE_LAST_IMM] = WRITE(.last = true, .imm = true),
    [HCA_WRITE_ONLY] = WRITE(.first = true, .last = true),
    [HCA_WRITE_ONLY_IMM] = WRITE(.first = true, .last = true, .imm = true),
    [HCA_READ_REQUEST] = SINGLE(HCA_REQUEST_READ, HCA_ACCESS_REMOTE_READ),
    [HCA_CMP_SWAP] = SINGLE(HCA_REQUEST_ATOMIC, HCA_ACCESS_REMOTE_ATOMIC),
    [HCA_FETCH_ADD] = SINGLE(HCA_REQUEST_ATOMIC, HCA_ACCESS_REMOTE_ATOMIC),
    [HCA_SEND_LAST_INV] = SEND(RC, .last = true, .invalidates = true),
    [HCA_SEND_ONLY_INV] = SEND(RC, .first = true, .last = true,
                               .invalidates = true),
    [HCA_FLUSH] = SINGLE(HCA_REQUEST_FLUSH, 0),
    [HCA_ATOMIC_WRITE] = SINGLE(HCA_REQUEST_ATOMIC_WRITE,
                                HCA_ACCESS_REMOTE_WRITE),
};

/* Unknown to RC, and refused (9.9.3). */
static const HcaOperation reserved = SEND(RC, .first = true, .last = true,
                                          .refused = true);

const HcaOperation *hca_operation(uint8_t opcode)
{
    const HcaOperation *op = &operations[HCA_BTH_OPERATION(opcode)];

    return op->services ? op : &reserved;
}

/* A FLUSH needs nothing that the responder has a limited number of. */
bool hca_operation_counts(const HcaOperation *op)
{
    return op->kind == HCA_REQUEST_READ || op->kind == HCA_REQUEST_ATOMIC ||
           op->kind == HCA_REQUEST_ATOMIC_WRITE;
}

uint32_t hca_operation_access(const HcaOperation *op, const HcaPacket *packet)
{
    return op->kind == HCA_REQUEST_FLUSH
               ? HCA_FLUSH_NEEDS(HCA_FETH_TYPES(packet->feth))
               : op->access;
}

static bool from_peer(const Hca *hca, const HcaQp *qp, const HcaPacket *packet)
{
    return qp->attr.service == HCA_SERVICE_UD ||
           hca_port_came_along(hca->port, &qp->attr.path, packet);
}

/* Of an SMP neither is looked at (IBA 13.5.1.5); QP 1 is in each partition. */
static bool pkey_ok(const Hca *hca, const HcaQp *qp, const HcaPacket *packet)
{
    unsigned index;

    switch (qp->special) {
    case HCA_SPECIAL_SMI:
        return true;
    case HCA_SPECIAL_GSI:
        return hca_port_find_pkey(hca->port, packet->pkey, &index);
    default:
        return hca_port_takes_pkey(hca->port, qp->attr.pkey_index,
                                   packet->pkey);
    }
}

static bool qkey_ok(const HcaQp *qp, const HcaPacket *packet)
{
    return qp->attr.service != HCA_SERVICE_UD ||
           qp->special == HCA_SPECIAL_SMI || packet->qkey == qp->attr.qkey;
}

bool hca_check_headers(Hca *hca, HcaQp *qp, const HcaPacket *packet,
                       const HcaOperation *op)
{
    if (!pkey_ok(hca, qp, packet)) {
        hca_drop(hca->port, packet, HCA_DROP_PKEY);
    } else if (!from_peer(hca, qp, packet)) {
        hca_drop(hca->port, packet, HCA_DROP_SOURCE);
    } else if (!qkey_ok(qp, packet)) {
        hca_drop(hca->port, packet, HCA_DROP_QKEY);
    } else if (!(op->services & (1u << qp->attr.service))) {
        hca_drop(hca->port, packet, HCA_DROP_SERVICE);
    } else {
        return true;
    }
    return false;
}

/* IBA 9.7.4.1.3: Only, or First, Middle and Last of one kind. */
static bool in_place(const HcaResponder *resp, const HcaOperation *op)
{
    return op->first ? !resp->in_message
                     : resp->in_message && resp->message == op->kind;
}

/* IBA 9.7.4.1.6: what the packet's place in the message lets it carry. */
static bool payload_fits(const HcaQp *qp, uint32_t len, const HcaOperation *op)
{
    if (!op->last) {
        return len == qp->pmtu;
    }
    return len <= qp->pmtu && (op->first || len);
}

/* A Write brings what its first packet said, no more and no less. */
static bool write_length_ok(const HcaQp *qp, const HcaPacket *packet,
                            const HcaOperation *op)
{
    uint32_t left = op->first ? packet->dma_len : qp->resp.write_left;

    return left <= qp->max_msg && (op->last ? packet->payload_len == left
                                            : packet->payload_len < left);
}

static bool length_ok(const HcaQp *qp, const HcaPacket *packet,
                      const HcaOperation *op)
{
    uint32_t len = packet->payload_len;

    switch (op->kind) {
    case HCA_REQUEST_SEND:
        return payload_fits(qp, len, op) &&
               len <= qp->max_msg - qp->resp.message_len;
    case HCA_REQUEST_WRITE:
        return payload_fits(qp, len, op) && write_length_ok(qp, packet, op);
    case HCA_REQUEST_READ:
        return !len && packet->dma_len <= qp->max_msg;
    case HCA_REQUEST_FLUSH:
        return !len && (packet->dma_len <= qp->max_msg ||
                        HCA_FETH_LEVEL(packet->feth) == HCA_FLUSH_REGION);
    case HCA_REQUEST_ATOMIC_WRITE:
        return len == sizeof(uint64_t) && packet->dma_len == len;
    default:
        return !len;
    }
}

/* Whether the QP serves it, and there is such a one. */
static bool is_served(const HcaQp *qp, const HcaPacket *packet,
                      const HcaOperation *op)
{
    return !op->refused &&
           !(hca_operation_access(op, packet) & ~qp->attr.access) &&
           (op->kind != HCA_REQUEST_FLUSH ||
            hca_flush_is_known(HCA_FETH_TYPES(packet->feth),
                               HCA_FETH_LEVEL(packet->feth)));
}

static bool has_operand(const HcaOperation *op)
{
    return op->kind == HCA_REQUEST_ATOMIC ||
           op->kind == HCA_REQUEST_ATOMIC_WRITE;
}

HcaOutcome hca_check_request(const HcaQp *qp, const HcaPacket *packet,
                             const HcaOperation *op)
{
    if (!in_place(&qp->resp, op)) {
        return HCA_EXE_OPCODE;
    }
    if (!is_served(qp, packet, op)) {
        return HCA_EXE_FORBIDDEN;
    }
    if (!length_ok(qp, packet, op)) {
        return HCA_EXE_LENGTH;
    }
    if (hca_operation_counts(op) && qp->resp.rd_atomic >= qp->attr.rra_max) {
        return HCA_EXE_RESOURCES;
    }
    if (has_operand(op) && packet->va % sizeof(uint64_t)) {
        return HCA_EXE_ALIGNMENT;
    }
    return HCA_EXE_OK;
}
