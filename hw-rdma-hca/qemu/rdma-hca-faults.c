/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults of a cable, of the host and of verbs: from their QAPI form to the card's.
 */
#include "qemu/osdep.h"
#include <math.h>
#include "qemu/cutils.h"
#include "qemu/sockets.h"
#include "qapi/error.h"
#include "qapi/qapi-visit-rdma-hca.h"
#include "qapi/qobject-input-visitor.h"
#include "qapi/qobject-output-visitor.h"
#include "qobject/qjson.h"
#include "qobject/qobject.h"
#include "rdma-hca-faults.h"
#include "../core/v2p/v2p.h"
#include "../core/verbs.h"

static HcaFaultPlace place(const RdmaHcaFault *fault)
{
    static const HcaFaultPlace places[RDMA_HCA_FAULT_PLACE__MAX] = {
        [RDMA_HCA_FAULT_PLACE_CABLE] = HCA_FAULT_CABLE,
        [RDMA_HCA_FAULT_PLACE_DMA] = HCA_FAULT_DMA,
        [RDMA_HCA_FAULT_PLACE_COMMAND] = HCA_FAULT_COMMAND,
        [RDMA_HCA_FAULT_PLACE_INTERRUPT] = HCA_FAULT_INTERRUPT,
        [RDMA_HCA_FAULT_PLACE_DOORBELL] = HCA_FAULT_DOORBELL,
        [RDMA_HCA_FAULT_PLACE_EVENT_QUEUE] = HCA_FAULT_EVENT,
        [RDMA_HCA_FAULT_PLACE_SEND] = HCA_FAULT_SEND_WR,
        [RDMA_HCA_FAULT_PLACE_RECEIVE] = HCA_FAULT_RECEIVE,
        [RDMA_HCA_FAULT_PLACE_REQUEST] = HCA_FAULT_REQUEST,
        [RDMA_HCA_FAULT_PLACE_ANSWER] = HCA_FAULT_ANSWER,
        [RDMA_HCA_FAULT_PLACE_COMPLETION] = HCA_FAULT_COMPLETION,
        [RDMA_HCA_FAULT_PLACE_CARD] = HCA_FAULT_CARD,
    };

    return fault->has_place ? places[fault->place] : HCA_FAULT_CABLE;
}

static HcaFaultAction action(const RdmaHcaFault *fault)
{
    static const HcaFaultAction actions[RDMA_HCA_FAULT_ACTION__MAX] = {
        [RDMA_HCA_FAULT_ACTION_DROP] = HCA_FAULT_DROP,
        [RDMA_HCA_FAULT_ACTION_DUPLICATE] = HCA_FAULT_DUPLICATE,
        [RDMA_HCA_FAULT_ACTION_REORDER] = HCA_FAULT_REORDER,
        [RDMA_HCA_FAULT_ACTION_DELAY] = HCA_FAULT_DELAY,
        [RDMA_HCA_FAULT_ACTION_CORRUPT] = HCA_FAULT_CORRUPT,
        [RDMA_HCA_FAULT_ACTION_MARK] = HCA_FAULT_MARK,
        [RDMA_HCA_FAULT_ACTION_FAIL] = HCA_FAULT_FAIL,
        [RDMA_HCA_FAULT_ACTION_HANG] = HCA_FAULT_HANG,
        [RDMA_HCA_FAULT_ACTION_OVERFLOW] = HCA_FAULT_OVERFLOW,
        [RDMA_HCA_FAULT_ACTION_BREAK] = HCA_FAULT_BREAK,
        [RDMA_HCA_FAULT_ACTION_RNR] = HCA_FAULT_RNR,
        [RDMA_HCA_FAULT_ACTION_RAISE] = HCA_FAULT_RAISE,
        [RDMA_HCA_FAULT_ACTION_DOWN] = HCA_FAULT_DOWN,
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

static uint8_t units(const RdmaHcaFault *fault)
{
    static const HcaV2pChannel unit[RDMA_HCA_DMA_UNIT__MAX] = {
        [RDMA_HCA_DMA_UNIT_CEU] = HCA_V2P_CEU,
        [RDMA_HCA_DMA_UNIT_DB] = HCA_V2P_DB,
        [RDMA_HCA_DMA_UNIT_WQE_PARSER] = HCA_V2P_WP_WQE,
        [RDMA_HCA_DMA_UNIT_DATA] = HCA_V2P_WP_ND,
        [RDMA_HCA_DMA_UNIT_RTC] = HCA_V2P_RTC,
        [RDMA_HCA_DMA_UNIT_RRC] = HCA_V2P_RRC,
        [RDMA_HCA_DMA_UNIT_RWM] = HCA_V2P_RWM,
        [RDMA_HCA_DMA_UNIT_EE] = HCA_V2P_EE,
    };
    uint8_t mask = 0;

    for (RdmaHcaDmaUnitList *l = fault->units; l; l = l->next) {
        mask |= 1 << unit[l->value];
    }
    return mask;
}

static uint8_t channels(const RdmaHcaFault *fault)
{
    static const HcaFaultChannel channel[RDMA_HCA_DMA_CHANNEL__MAX] = {
        [RDMA_HCA_DMA_CHANNEL_READ_CTX] = HCA_FAULT_READ_CTX,
        [RDMA_HCA_DMA_CHANNEL_WRITE_CTX] = HCA_FAULT_WRITE_CTX,
        [RDMA_HCA_DMA_CHANNEL_READ_WQE] = HCA_FAULT_READ_WQE,
        [RDMA_HCA_DMA_CHANNEL_READ_DATA] = HCA_FAULT_READ_DATA,
        [RDMA_HCA_DMA_CHANNEL_WRITE_DATA] = HCA_FAULT_WRITE_DATA,
    };
    uint8_t mask = 0;

    for (RdmaHcaDmaChannelList *l = fault->channels; l; l = l->next) {
        mask |= 1 << channel[l->value];
    }
    return mask;
}

static uint8_t services(const RdmaHcaFault *fault)
{
    static const HcaService service[RDMA_HCA_QP_TYPE__MAX] = {
        [RDMA_HCA_QP_TYPE_RC] = HCA_SERVICE_RC,
        [RDMA_HCA_QP_TYPE_UC] = HCA_SERVICE_UC,
        [RDMA_HCA_QP_TYPE_UD] = HCA_SERVICE_UD,
        [RDMA_HCA_QP_TYPE_XRC_SEND] = HCA_SERVICE_XRC_INI,
        [RDMA_HCA_QP_TYPE_XRC_RECV] = HCA_SERVICE_XRC_TGT,
        [RDMA_HCA_QP_TYPE_RAW_PACKET] = HCA_SERVICE_RAW,
    };
    uint8_t mask = 0;

    for (RdmaHcaQpTypeList *l = fault->qp_types; l; l = l->next) {
        mask |= 1 << service[l->value];
    }
    return mask;
}

static uint32_t operations(const RdmaHcaFault *fault)
{
    static const uint8_t operation[RDMA_HCA_OPERATION__MAX] = {
        [RDMA_HCA_OPERATION_SEND] = HCA_OP_SEND,
        [RDMA_HCA_OPERATION_SEND_IMM] = HCA_OP_SEND_IMM,
        [RDMA_HCA_OPERATION_SEND_INV] = HCA_OP_SEND_INV,
        [RDMA_HCA_OPERATION_WRITE] = HCA_OP_RDMA_WRITE,
        [RDMA_HCA_OPERATION_WRITE_IMM] = HCA_OP_RDMA_WRITE_IMM,
        [RDMA_HCA_OPERATION_READ] = HCA_OP_RDMA_READ,
        [RDMA_HCA_OPERATION_COMPARE_SWAP] = HCA_OP_ATOMIC_CS,
        [RDMA_HCA_OPERATION_FETCH_ADD] = HCA_OP_ATOMIC_FA,
        [RDMA_HCA_OPERATION_ATOMIC_WRITE] = HCA_OP_ATOMIC_WRITE,
        [RDMA_HCA_OPERATION_FLUSH] = HCA_OP_FLUSH,
        [RDMA_HCA_OPERATION_BIND_MW] = HCA_OP_BIND_MW,
        [RDMA_HCA_OPERATION_REG_MR] = HCA_OP_REG_MR,
        [RDMA_HCA_OPERATION_LOCAL_INV] = HCA_OP_LOCAL_INV,
        [RDMA_HCA_OPERATION_RECV] = HCA_FAULT_OP_RECV,
    };
    uint32_t mask = 0;

    for (RdmaHcaOperationList *l = fault->operations; l; l = l->next) {
        mask |= 1u << operation[l->value];
    }
    return mask;
}

static uint8_t status(const RdmaHcaFault *fault)
{
    static const uint8_t statuses[RDMA_HCA_WC_STATUS__MAX] = {
#define STATUS(name, syndrome)                                                 \
    [RDMA_HCA_WC_STATUS_##name] = HCA_SYNDROME_##syndrome
        STATUS(LOC_LEN_ERR, LOCAL_LENGTH_ERR),
        STATUS(LOC_QP_OP_ERR, LOCAL_QP_OP_ERR),
        STATUS(LOC_EEC_OP_ERR, LOCAL_EEC_OP_ERR),
        STATUS(LOC_PROT_ERR, LOCAL_PROT_ERR),
        STATUS(MW_BIND_ERR, MW_BIND_ERR),
        STATUS(BAD_RESP_ERR, BAD_RESP_ERR),
        STATUS(LOC_ACCESS_ERR, LOCAL_ACCESS_ERR),
        STATUS(REM_INV_REQ_ERR, REMOTE_INVAL_REQ_ERR),
        STATUS(REM_ACCESS_ERR, REMOTE_ACCESS_ERR),
        STATUS(REM_OP_ERR, REMOTE_OP_ERR),
        STATUS(RETRY_EXC_ERR, RETRY_EXC_ERR),
        STATUS(LOC_RDD_VIOL_ERR, LOCAL_RDD_VIOL_ERR),
        STATUS(REM_INV_RD_REQ_ERR, REMOTE_INVAL_RD_REQ_ERR),
        STATUS(REM_ABORT_ERR, REMOTE_ABORTED_ERR),
        STATUS(INV_EECN_ERR, INVAL_EECN_ERR),
        STATUS(INV_EEC_STATE_ERR, INVAL_EEC_STATE_ERR),
        STATUS(FATAL_ERR, FATAL_ERR),
        STATUS(RESP_TIMEOUT_ERR, RESP_TIMEOUT_ERR),
        STATUS(GENERAL_ERR, GENERAL_ERR),
        STATUS(TM_ERR, TM_ERR),
        STATUS(TM_RNDV_INCOMPLETE, TM_RNDV_INCOMPLETE),
#undef STATUS
    };

    return fault->has_wc_status ? statuses[fault->wc_status] : fault->status;
}

static HcaFaultEvent event(const RdmaHcaFault *fault)
{
    static const HcaFaultEvent events[RDMA_HCA_FAULT_EVENT__MAX] = {
        [RDMA_HCA_FAULT_EVENT_QP_FATAL] = HCA_FAULT_QP_FATAL,
        [RDMA_HCA_FAULT_EVENT_QP_REQ_ERR] = HCA_FAULT_QP_REQ_ERR,
        [RDMA_HCA_FAULT_EVENT_QP_ACCESS_ERR] = HCA_FAULT_QP_ACCESS_ERR,
        [RDMA_HCA_FAULT_EVENT_COMM_EST] = HCA_FAULT_COMM_EST,
        [RDMA_HCA_FAULT_EVENT_SQ_DRAINED] = HCA_FAULT_SQ_DRAINED,
        [RDMA_HCA_FAULT_EVENT_PATH_MIG] = HCA_FAULT_PATH_MIG,
        [RDMA_HCA_FAULT_EVENT_PATH_MIG_ERR] = HCA_FAULT_PATH_MIG_ERR,
        [RDMA_HCA_FAULT_EVENT_QP_LAST_WQE_REACHED] = HCA_FAULT_LAST_WQE_REACHED,
        [RDMA_HCA_FAULT_EVENT_CQ_ERR] = HCA_FAULT_CQ_ERR,
        [RDMA_HCA_FAULT_EVENT_SRQ_ERR] = HCA_FAULT_SRQ_ERR,
        [RDMA_HCA_FAULT_EVENT_SRQ_LIMIT_REACHED] = HCA_FAULT_SRQ_LIMIT,
        [RDMA_HCA_FAULT_EVENT_LID_CHANGE] = HCA_FAULT_LID_CHANGE,
        [RDMA_HCA_FAULT_EVENT_SM_CHANGE] = HCA_FAULT_SM_CHANGE,
        [RDMA_HCA_FAULT_EVENT_PKEY_CHANGE] = HCA_FAULT_PKEY_CHANGE,
        [RDMA_HCA_FAULT_EVENT_GID_CHANGE] = HCA_FAULT_GID_CHANGE,
        [RDMA_HCA_FAULT_EVENT_CLIENT_REREGISTER] = HCA_FAULT_REREGISTER,
        [RDMA_HCA_FAULT_EVENT_DEVICE_FATAL] = HCA_FAULT_DEVICE_FATAL,
    };

    return fault->has_event ? events[fault->event] : HCA_FAULT_NO_EVENT;
}

/* The code of an MTU, 0: the card's; one that is none becomes a wrong code. */
static uint8_t mtu_code(const RdmaHcaFault *fault)
{
    if (!fault->has_mtu) {
        return 0;
    }
    for (unsigned code = 1; code <= 5; code++) {
        if (fault->mtu == 128u << code) {
            return code;
        }
    }
    return UINT8_MAX;
}

static HcaFaultDown down(const RdmaHcaFault *fault)
{
    static const uint8_t ends[RDMA_HCA_LINK_ENDS__MAX] = {
        [RDMA_HCA_LINK_ENDS_BOTH] = HCA_FAULT_BOTH_ENDS,
        [RDMA_HCA_LINK_ENDS_OWN] = HCA_FAULT_OWN_END,
        [RDMA_HCA_LINK_ENDS_PEER] = HCA_FAULT_PEER_END,
    };

    return (HcaFaultDown) {
        .down_ns = fault->down_ns,
        .up_ns = fault->up_ns,
        .ends = fault->has_ends ? ends[fault->ends] : 0,
        .delivered = fault->has_in_flight &&
                     fault->in_flight == RDMA_HCA_IN_FLIGHT_DELIVERED,
        .speed = fault->has_speed ? 1u << fault->speed : 0,
        .mtu = mtu_code(fault),
    };
}

/* A LID, an address of IP, or a GID, which looks like one of version 6. */
static bool peer(const char *text, HcaFaultPeer *peer)
{
    unsigned lid;

    *peer = (HcaFaultPeer) { 0 };
    if (!text) {
        return true;
    }
    if (qemu_strtoui(text, NULL, 0, &lid) == 0) {
        peer->lid = lid;
        return lid && lid <= UINT16_MAX;
    }
    peer->match_gid = true;
    if (inet_pton(AF_INET, text, peer->gid.raw + 12) == 1) {
        memset(peer->gid.raw + 10, 0xff, 2);
        return true;
    }
    return inet_pton(AF_INET6, text, peer->gid.raw) == 1;
}

/* What its place has in common with others: the number of a thing. */
static bool match_number(const RdmaHcaFault *fault, uint32_t *number)
{
    switch (place(fault)) {
    case HCA_FAULT_COMMAND:
        *number = fault->opcode;
        return fault->has_opcode;
    case HCA_FAULT_INTERRUPT:
        *number = fault->vector;
        return fault->has_vector;
    case HCA_FAULT_DOORBELL:
        *number = fault->qpn;
        return fault->has_qpn;
    case HCA_FAULT_EVENT:
        *number = fault->eqn;
        return fault->has_eqn;
    default:
        return false;
    }
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
    uint32_t number = 0;
    HcaFaultPeer its_peer;

    peer(fault->peer, &its_peer);
    return (HcaFaultRule) {
        .place = place(fault),
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
        .units = units(fault),
        .channels = channels(fault),
        .match_addr = fault->has_address_first,
        .addr_first = fault->address_first,
        .addr_last = fault->has_address_last ? fault->address_last
                                             : fault->address_first,
        .match_number = match_number(fault, &number),
        .number = number,
        .skip = fault->skip,
        .every = fault->every,
        .probability = probability(fault),
        .count = fault->count,
        .distance = fault->distance,
        .delay_ns = fault->delay_ns,
        .offset = fault->has_offset ? fault->offset : -1,
        .mask = fault->mask,
        .services = services(fault),
        .operations = operations(fault),
        .match_peer_qpn = fault->has_peer_qpn,
        .peer_qpn = fault->peer_qpn,
        .peer = its_peer,
        .match_cqn = fault->has_cqn,
        .cqn = fault->cqn,
        .match_srqn = fault->has_srqn,
        .srqn = fault->srqn,
        .after_ns = fault->after_ns,
        .for_ns = fault->for_ns,
        .status = status(fault),
        .vendor_err = fault->vendor_error,
        .event = event(fault),
        .down = down(fault),
    };
}

/* Fields, and the places that know them. */
#define AT(place) (1u << RDMA_HCA_FAULT_PLACE_##place)
#define VERBS                                                                  \
    (AT(SEND) | AT(RECEIVE) | AT(REQUEST) | AT(ANSWER) | AT(COMPLETION))
#define LINK (AT(CABLE) | AT(CARD))
#define FIELD(field, name, places)                                             \
    {                                                                          \
        offsetof(RdmaHcaFault, has_##field), name, places                      \
    }

static const struct {
    size_t has;
    const char *name;
    unsigned places;
} fields[] = {
    FIELD(direction, "direction", AT(CABLE)),
    FIELD(kinds, "kinds", AT(CABLE) | AT(ANSWER)),
    FIELD(opcode, "opcode", AT(CABLE) | AT(COMMAND)),
    FIELD(qpn, "qpn", AT(CABLE) | AT(DOORBELL) | VERBS | AT(CARD)),
    FIELD(psn_first, "psn-first", AT(CABLE)),
    FIELD(psn_last, "psn-last", AT(CABLE)),
    FIELD(units, "units", AT(DMA)),
    FIELD(channels, "channels", AT(DMA)),
    FIELD(address_first, "address-first", AT(DMA)),
    FIELD(address_last, "address-last", AT(DMA)),
    FIELD(vector, "vector", AT(INTERRUPT)),
    FIELD(eqn, "eqn", AT(EVENT_QUEUE)),
    FIELD(distance, "distance", AT(CABLE)),
    FIELD(offset, "offset", AT(CABLE)),
    FIELD(mask, "mask", AT(CABLE)),
    FIELD(status, "status", AT(COMMAND)),
    FIELD(qp_types, "qp-types", VERBS),
    FIELD(operations, "operations", VERBS & ~AT(ANSWER)),
    FIELD(peer_qpn, "peer-qpn", VERBS),
    FIELD(cqn, "cqn", (VERBS & ~AT(ANSWER)) | AT(CARD)),
    FIELD(srqn, "srqn", AT(RECEIVE) | AT(CARD)),
    FIELD(wc_status, "wc-status", AT(SEND) | AT(RECEIVE) | AT(REQUEST)),
    FIELD(vendor_error, "vendor-error", AT(SEND) | AT(RECEIVE)),
    FIELD(for_ns, "for-ns", ~AT(CARD)),
    FIELD(skip, "skip", ~AT(CARD)),
    FIELD(every, "every", ~AT(CARD)),
    FIELD(probability, "probability", ~AT(CARD)),
    FIELD(event, "event", AT(CARD)),
    FIELD(down_ns, "down-ns", LINK),
    FIELD(up_ns, "up-ns", AT(CARD)),
    FIELD(ends, "ends", LINK),
    FIELD(in_flight, "in-flight", LINK),
    FIELD(speed, "speed", LINK),
    FIELD(mtu, "mtu", LINK),
};

/* Whether @fault says only what means something at its place. */
static bool check_fields(const RdmaHcaFault *fault, Error **errp)
{
    RdmaHcaFaultPlace at = fault->has_place ? fault->place
                                            : RDMA_HCA_FAULT_PLACE_CABLE;
    HcaFaultPeer its_peer;

    for (unsigned i = 0; i < ARRAY_SIZE(fields); i++) {
        if (*(const bool *)((const char *)fault + fields[i].has) &&
            !(fields[i].places >> at & 1)) {
            error_setg(errp, "%s means nothing at place %s", fields[i].name,
                       RdmaHcaFaultPlace_str(at));
            return false;
        }
    }
    if (fault->peer && !(VERBS >> at & 1)) {
        error_setg(errp, "peer means nothing at place %s",
                   RdmaHcaFaultPlace_str(at));
        return false;
    }
    if (!peer(fault->peer, &its_peer)) {
        error_setg(errp, "peer must be a LID, an IP address or a GID");
        return false;
    }
    if (fault->has_psn_last && !fault->has_psn_first) {
        error_setg(errp, "psn-last needs psn-first");
        return false;
    }
    if (fault->has_address_last && !fault->has_address_first) {
        error_setg(errp, "address-last needs address-first");
        return false;
    }
    if (at == RDMA_HCA_FAULT_PLACE_CABLE && fault->opcode > UINT8_MAX) {
        error_setg(errp, "opcode of a packet must be at most 255");
        return false;
    }
    return true;
}

bool rdma_hca_fault_plan(const RdmaHcaFaultList *faults, uint32_t seed,
                         HcaFaultPlan *plan, Error **errp)
{
    const char *message;

    *plan = (HcaFaultPlan) { .seed = seed };
    for (const RdmaHcaFaultList *l = faults; l; l = l->next) {
        if (!check_fields(l->value, errp)) {
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

char *rdma_hca_faults_text(RdmaHcaFaultList *faults)
{
    QObject *object;
    GString *text;
    Visitor *v = qobject_output_visitor_new(&object);

    visit_type_RdmaHcaFaultList(v, NULL, &faults, &error_abort);
    visit_complete(v, &object);
    visit_free(v);
    text = qobject_to_json(object);
    qobject_unref(object);
    return g_string_free(text, false);
}

bool rdma_hca_faults_parse(const char *text, RdmaHcaFaultList **faults,
                           Error **errp)
{
    QObject *object = qobject_from_json(text, errp);
    Visitor *v;
    bool ok;

    if (!object) {
        return false;
    }
    v = qobject_input_visitor_new(object);
    ok = visit_type_RdmaHcaFaultList(v, NULL, faults, errp);
    visit_free(v);
    qobject_unref(object);
    return ok;
}
