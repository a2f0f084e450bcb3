/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The faults of a cable: from their QAPI form to the card's.
 */
#include "qemu/osdep.h"
#include <math.h>
#include "qapi/error.h"
#include "rdma-hca-faults.h"

static HcaFaultAction action(const RdmaHcaFault *fault)
{
    static const HcaFaultAction actions[RDMA_HCA_FAULT_ACTION__MAX] = {
        [RDMA_HCA_FAULT_ACTION_DROP] = HCA_FAULT_DROP,
        [RDMA_HCA_FAULT_ACTION_DUPLICATE] = HCA_FAULT_DUPLICATE,
        [RDMA_HCA_FAULT_ACTION_REORDER] = HCA_FAULT_REORDER,
        [RDMA_HCA_FAULT_ACTION_DELAY] = HCA_FAULT_DELAY,
        [RDMA_HCA_FAULT_ACTION_CORRUPT] = HCA_FAULT_CORRUPT,
        [RDMA_HCA_FAULT_ACTION_MARK] = HCA_FAULT_MARK,
    };

    return actions[fault->action];
}

static uint8_t directions(const RdmaHcaFault *fault)
{
    if (fault->has_direction) {
        switch (fault->direction) {
        case RDMA_HCA_FAULT_DIRECTION_TX:
            return 1 << HCA_FAULT_TX;
        case RDMA_HCA_FAULT_DIRECTION_RX:
            return 1 << HCA_FAULT_RX;
        default:
            break;
        }
    }
    return 1 << HCA_FAULT_TX | 1 << HCA_FAULT_RX;
}

static uint16_t kinds(const RdmaHcaFault *fault)
{
    static const HcaFaultKind kind[RDMA_HCA_PACKET_KIND__MAX] = {
        [RDMA_HCA_PACKET_KIND_SEND] = HCA_FAULT_SEND,
        [RDMA_HCA_PACKET_KIND_WRITE] = HCA_FAULT_WRITE,
        [RDMA_HCA_PACKET_KIND_READ_REQUEST] = HCA_FAULT_READ_REQUEST,
        [RDMA_HCA_PACKET_KIND_READ_RESPONSE] = HCA_FAULT_READ_RESPONSE,
        [RDMA_HCA_PACKET_KIND_ATOMIC] = HCA_FAULT_ATOMIC,
        [RDMA_HCA_PACKET_KIND_ATOMIC_RESPONSE] = HCA_FAULT_ATOMIC_RESPONSE,
        [RDMA_HCA_PACKET_KIND_ACK] = HCA_FAULT_ACK,
        [RDMA_HCA_PACKET_KIND_RNR_NAK] = HCA_FAULT_RNR_NAK,
        [RDMA_HCA_PACKET_KIND_NAK] = HCA_FAULT_NAK,
        [RDMA_HCA_PACKET_KIND_OTHER] = HCA_FAULT_OTHER,
    };
    uint16_t mask = 0;

    for (RdmaHcaPacketKindList *l = fault->kinds; l; l = l->next) {
        mask |= 1 << kind[l->value];
    }
    return mask;
}

/* What is no probability becomes one that hca_fault_check() refuses. */
static uint64_t probability(const RdmaHcaFault *fault)
{
    if (!fault->has_probability) {
        return HCA_FAULT_ALWAYS;
    }
    if (!(fault->probability >= 0 && fault->probability <= 1)) {
        return UINT64_MAX;
    }
    /* Upwards: what is not impossible does not become so. */
    return ceil(fault->probability * HCA_FAULT_ALWAYS);
}

static HcaFaultRule rule(const RdmaHcaFault *fault)
{
    return (HcaFaultRule) {
        .action = action(fault),
        .directions = directions(fault),
        .kinds = kinds(fault),
        .match_opcode = fault->has_opcode,
        .opcode = fault->opcode,
        .match_qpn = fault->has_qpn,
        .qpn = fault->qpn,
        .match_psn = fault->has_psn_first,
        .psn_first = fault->psn_first,
        .psn_last = fault->has_psn_last ? fault->psn_last : fault->psn_first,
        .skip = fault->skip,
        .every = fault->every,
        .probability = probability(fault),
        .count = fault->count,
        .distance = fault->distance,
        .delay_ns = fault->delay_ns,
        .offset = fault->has_offset ? fault->offset : -1,
        .mask = fault->mask,
    };
}

bool rdma_hca_fault_plan(const RdmaHcaFaultList *faults, uint32_t seed,
                         HcaFaultPlan *plan, Error **errp)
{
    const char *message;

    *plan = (HcaFaultPlan) { .seed = seed };
    for (const RdmaHcaFaultList *l = faults; l; l = l->next) {
        if (l->value->has_psn_last && !l->value->has_psn_first) {
            error_setg(errp, "psn-last needs psn-first");
            return false;
        }
        if (plan->nrules == HCA_FAULT_MAX_RULES) {
            error_setg(errp, "faults may have %d rules at most",
                       HCA_FAULT_MAX_RULES);
            return false;
        }
        plan->rule[plan->nrules++] = rule(l->value);
    }
    message = hca_fault_check(plan);
    if (message) {
        error_setg(errp, "%s", message);
    }
    return !message;
}
