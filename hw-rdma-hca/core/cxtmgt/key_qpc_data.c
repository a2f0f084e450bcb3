/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * key_qpc_data (context document 5.4): the QP contexts on the card; MODIFY_QP
 * and QUERY_QP (interface document 3.2.6).
 *
 * A QP is here while its state is not RST; MODIFY_QP judges everything before
 * it changes anything.
 */
#include "../qp_state.h"
#include "cxtmgt_int.h"
#include "recv_queue.h"

/* The place of @qpn, which another one may have; NULL: there is no such number. */
static HcaQp **place_of(const HcaCxtMgt *cm, uint32_t qpn)
{
    uint32_t index;

    return hca_index_of(cm, &cm->qpc, qpn, &index) ? &cm->qps[index] : NULL;
}

HcaQp *hca_qp_peek(const HcaCxtMgt *cm, uint32_t qpn)
{
    HcaQp **place = place_of(cm, qpn);

    return place && *place && (*place)->qpn == qpn ? *place : NULL;
}

HcaQp *hca_qp_next(const HcaCxtMgt *cm, const HcaQp *qp)
{
    HcaQp **end = cm->qps + (cm->ready ? 1u << cm->qpc.log_num : 0);

    for (HcaQp **place = qp ? place_of(cm, qp->qpn) + 1 : cm->qps; place < end;
         place++) {
        if (*place) {
            return *place;
        }
    }
    return NULL;
}

HcaQp *hca_qp_find(HcaCxtMgt *cm, uint32_t qpn)
{
    cm->counters.qpc_lookups++;
    return hca_qp_peek(cm, qpn);
}

static bool write_context(HcaCxtMgt *cm, const HcaQp *qp)
{
    uint8_t cxt[HCA_MAX_CXT_SIZE];

    cm->format->put_qp(qp->qpn, qp, cxt);
    return hca_cxt_write(cm, &cm->qpc, qp->qpn, cxt);
}

/* The queues of a QP that exists do. */
static void use_queues(HcaCxtMgt *cm, const HcaQp *qp, int by)
{
    const HcaServiceRow *service = hca_service(qp->attr.service);

    if (service->sends) {
        hca_cq_find(cm, qp->attr.sq_cqn)->queues += by;
    }
    if (service->receives) {
        hca_cq_find(cm, qp->attr.rq_cqn)->queues += by;
    }
    if (qp->srq) {
        qp->srq->qps += by;
    }
}

static void add_qp(HcaCxtMgt *cm, HcaQp *qp)
{
    *place_of(cm, qp->qpn) = qp;
    cm->live.qps++;
    cm->live.sq_slots += hca_qp_doorbells(&qp->attr);
    qp->srq = qp->attr.uses_srq ? hca_srq_find(cm, qp->attr.srqn) : NULL;
    use_queues(cm, qp, 1);
}

/* Types of events, by their places. */
static const uint8_t event_types[HCA_QP_EVENTS] = {
    HCA_EVENT_WQ_CATAS_ERROR,   HCA_EVENT_WQ_INVAL_REQ_ERROR,
    HCA_EVENT_WQ_ACCESS_ERROR,  HCA_EVENT_COMM_EST,
    HCA_EVENT_SQ_DRAINED,       HCA_EVENT_CONGESTION,
    HCA_EVENT_LAST_WQE_REACHED, HCA_EVENT_PATH_MIG,
    HCA_EVENT_PATH_MIG_FAILED,
};

HcaEventPlace *hca_qp_event_place(HcaQp *qp, uint8_t type)
{
    for (unsigned i = 0; i < HCA_QP_EVENTS; i++) {
        if (event_types[i] == type) {
            return &qp->event[i];
        }
    }
    return NULL;
}

void hca_qp_event(HcaCxtMgt *cm, HcaQp *qp, uint8_t type)
{
    HcaEvent event = { .type = type, .number = qp->qpn };

    hca_eq_event(cm, &event, hca_qp_event_place(qp, type));
}

static void remove_qp(HcaCxtMgt *cm, HcaQp *qp)
{
    for (unsigned i = 0; i < HCA_QP_EVENTS; i++) {
        hca_eq_forget(&qp->event[i]);
    }
    use_queues(cm, qp, -1);
    cm->live.qps--;
    cm->live.sq_slots -= hca_qp_doorbells(&qp->attr);
    *place_of(cm, qp->qpn) = NULL;
    g_free(qp);
}

static void enter_state(HcaCxtMgt *cm, HcaQp *qp, uint8_t state)
{
    uint8_t old_state = qp->state;

    qp->state = state;
    cm->state_fn(cm->state_opaque, qp, old_state);
}

/* Change the state and tell the engines. The QP is gone after one to RST. */
static void change_state(HcaCxtMgt *cm, HcaQp *qp, uint8_t state)
{
    enter_state(cm, qp, state);
    write_context(cm, qp);
    if (qp->state == HCA_QP_RST) {
        remove_qp(cm, qp);
    }
}

void hca_qp_set_state(HcaCxtMgt *cm, HcaQp *qp, uint8_t state)
{
    if (qp->state != state) {
        change_state(cm, qp, state);
        hca_host_broke(&cm->host);
    }
}

/* Not written: after a reset what was ICM may be somebody else's memory. */
void hca_qp_free_all(HcaCxtMgt *cm)
{
    for (uint32_t i = 0; i < 1u << cm->qpc.log_num; i++) {
        if (cm->qps[i]) {
            enter_state(cm, cm->qps[i], HCA_QP_RST);
            remove_qp(cm, cm->qps[i]);
        }
    }
}

/* What beside its attributes a QP has in its first state. */
static HcaQp *new_qp(uint32_t qpn)
{
    HcaQp *qp = g_new0(HcaQp, 1);

    qp->qpn = qpn;
    qp->state = HCA_QP_RST;
    return qp;
}

static HcaSpecial special_of(const HcaCxtMgt *cm, uint32_t qpn)
{
    for (HcaSpecial i = HCA_SPECIAL_SMI; i < HCA_NSPECIALS; i++) {
        if (cm->special[i] == qpn) {
            return i;
        }
    }
    return HCA_SPECIAL_NONE;
}

/*
 * QP 0 and QP 1 of a RoCE port (RoCEv2 annex A17.7): there is no subnet manager,
 * and management datagrams are datagrams. On InfiniBand they are not numbers of
 * QPs: CONF_SPECIAL_QP says which take their place.
 */
static uint8_t check_special(const HcaCxtMgt *cm, uint32_t qpn, uint8_t service)
{
    bool special = qpn == 1 || special_of(cm, qpn) != HCA_SPECIAL_NONE;

    if (qpn == 0 || (qpn == 1 && !hca_port_is_roce(cm->port))) {
        return HCA_STAT_BAD_INDEX;
    }
    return !special || service == HCA_SERVICE_UD ? HCA_STAT_OK
                                                 : HCA_STAT_BAD_PARAM;
}

uint8_t hca_cxtmgt_set_special(HcaCxtMgt *cm, HcaSpecial special, uint32_t qpn)
{
    uint32_t old = cm->special[special];
    HcaQp **place = place_of(cm, qpn);

    if (!place || qpn == 1) {
        return HCA_STAT_BAD_INDEX;
    }
    if (*place || hca_qp_peek(cm, old)) {
        return HCA_STAT_BAD_QP_STATE;
    }
    if (qpn && qpn != old && special_of(cm, qpn) != HCA_SPECIAL_NONE) {
        return HCA_STAT_BAD_RESOURCE;
    }
    cm->special[special] = qpn;
    return HCA_STAT_OK;
}

uint32_t hca_cxtmgt_special(const HcaCxtMgt *cm, HcaSpecial special)
{
    return cm->special[special];
}

/*
 * Whether the card has memory for the doorbells of such a QP. That of a queue
 * is the guest's to claim, so there is a limit to what all may have.
 */
static bool have_slots(const HcaCxtMgt *cm, const HcaQpAttr *attr)
{
    uint32_t all = 1u << cm->config->log_sq_slots;

    return hca_qp_doorbells(attr) <= all - cm->live.sq_slots;
}

/* RST2INIT. */
static uint8_t create_qp(HcaCxtMgt *cm, uint32_t qpn, const HcaQpChange *change)
{
    const HcaQpTransitionRow *row = &hca_qp_transitions[change->transition];
    uint8_t service = change->attr->service;
    uint32_t attrs;
    uint8_t status;
    HcaQp *qp;

    if (!hca_service_exists(service)) {
        return HCA_STAT_BAD_PARAM;
    }
    status = check_special(cm, qpn, service);
    if (!status) {
        status = hca_qp_attrs(row, service, change, &attrs);
    }
    if (!status) {
        status = hca_qp_check(cm, change->attr, attrs);
    }
    if (!status && !have_slots(cm, change->attr)) {
        status = HCA_STAT_EXCEED_LIM;
    }
    if (status) {
        return status;
    }
    qp = new_qp(qpn);
    qp->special = special_of(cm, qpn);
    hca_qp_take(cm, qp, change->attr, attrs);
    if (!write_context(cm, qp)) {
        g_free(qp);
        return HCA_STAT_BAD_SEG_PARAM;
    }
    add_qp(cm, qp);
    change_state(cm, qp, row->to);
    return HCA_STAT_OK;
}

/* Judge the attributes that come: which are taken. */
static uint8_t judge_attrs(HcaCxtMgt *cm, const HcaQp *qp,
                           const HcaQpChange *change, uint32_t *attrs)
{
    uint8_t status;

    *attrs = 0;
    if (!change->attr) {
        return HCA_STAT_OK;
    }
    status = hca_qp_attrs(&hca_qp_transitions[change->transition],
                          qp->attr.service, change, attrs);
    return status ? status : hca_qp_check(cm, change->attr, *attrs);
}

/*
 * What goes to ERR or RST has to go there, wherever ICM is. Anything else
 * happens only if ICM can be told of it.
 */
static bool may_write(HcaCxtMgt *cm, const HcaQp *qp, uint8_t to)
{
    return to == HCA_QP_ERR || to == HCA_QP_RST ||
           hca_cxt_writable(cm, &cm->qpc, qp->qpn);
}

static uint8_t change_qp(HcaCxtMgt *cm, HcaQp *qp, const HcaQpChange *change)
{
    uint8_t to = hca_qp_transitions[change->transition].to;
    uint32_t attrs;
    uint8_t status = judge_attrs(cm, qp, change, &attrs);

    if (!status && !may_write(cm, qp, to)) {
        status = HCA_STAT_BAD_SEG_PARAM;
    }
    if (status) {
        return status;
    }
    if (attrs) {
        hca_qp_take(cm, qp, change->attr, attrs);
    }
    if (to == qp->state) {
        write_context(cm, qp);
        return HCA_STAT_OK;
    }
    if (to == HCA_QP_SQD) {
        qp->sqd_event = change->sqd_event ||
                        (attrs & HCA_QP_ATTR_EN_SQD_ASYNC_NOTIFY);
    }
    change_state(cm, qp, to);
    return HCA_STAT_OK;
}

/* Attributes of a send queue change when nothing of it is on its way. */
static bool is_legal(const HcaQp *qp, const HcaQpChange *change)
{
    const HcaQpTransitionRow *row = &hca_qp_transitions[change->transition];

    if (change->transition == HCA_QP_SQD2SQD && qp && !qp->req.drained) {
        return false;
    }
    return row->from & 1u << (qp ? qp->state : HCA_QP_RST);
}

static uint8_t modify_qp(HcaCxtMgt *cm, uint32_t qpn, const HcaQpChange *change)
{
    const HcaQpTransitionRow *row = &hca_qp_transitions[change->transition];
    HcaQp **place = place_of(cm, qpn);
    HcaQp *qp;

    /* Nor is it one while another one has its place. */
    if (!place || (*place && (*place)->qpn != qpn)) {
        return HCA_STAT_BAD_INDEX;
    }
    qp = *place;
    if (!is_legal(qp, change)) {
        return HCA_STAT_BAD_QP_STATE;
    }
    if (!change->attr && !row->attrs_optional) {
        return HCA_STAT_BAD_PARAM;
    }
    if (qp) {
        return change_qp(cm, qp, change);
    }
    return row->to == HCA_QP_RST ? HCA_STAT_OK : create_qp(cm, qpn, change);
}

uint8_t hca_cxtmgt_modify_qp(HcaCxtMgt *cm, uint32_t qpn,
                             const HcaQpChange *change)
{
    uint8_t status = modify_qp(cm, qpn, change);

    if (status) {
        cm->counters.transitions_refused++;
    } else {
        cm->counters.transitions++;
    }
    return status;
}

uint8_t hca_cxtmgt_query_qp(HcaCxtMgt *cm, uint32_t qpn, void *cxt)
{
    if (!place_of(cm, qpn)) {
        return HCA_STAT_BAD_INDEX;
    }
    cm->format->put_qp(qpn, hca_qp_peek(cm, qpn), cxt);
    return HCA_STAT_OK;
}

uint8_t hca_cxtmgt_set_qp_counters(HcaCxtMgt *cm, uint32_t qpn, uint64_t set)
{
    HcaQp *qp;

    if (!place_of(cm, qpn) || !hca_qp_counter_set_ok(set)) {
        return HCA_STAT_BAD_INDEX;
    }
    qp = hca_qp_peek(cm, qpn);
    if (!qp) {
        return HCA_STAT_BAD_RES_STATE;
    }
    if (!hca_cxt_writable(cm, &cm->qpc, qpn)) {
        return HCA_STAT_BAD_SEG_PARAM;
    }
    qp->attr.counter_set = set;
    hca_qp_find_counters(cm, qp);
    write_context(cm, qp);
    return HCA_STAT_OK;
}

/* State */

/* As it was saved: in a state of a QP that exists, with attributes that can be. */
static bool can_be(HcaCxtMgt *cm, const HcaQp *qp)
{
    HcaQp **place = place_of(cm, qp->qpn);

    return place && !*place && qp->state > HCA_QP_RST &&
           qp->state <= HCA_QP_ERR && hca_service_exists(qp->attr.service) &&
           check_special(cm, qp->qpn, qp->attr.service) == HCA_STAT_OK &&
           hca_qp_attr_ok(cm, qp) && have_slots(cm, &qp->attr);
}

bool hca_qp_add(HcaCxtMgt *cm, const HcaQp *from)
{
    HcaQp *qp = g_new0(HcaQp, 1);

    hca_struct_take(&hca_qp_struct, qp, from);
    if (!can_be(cm, qp)) {
        g_free(qp);
        return false;
    }
    qp->special = special_of(cm, qp->qpn);
    hca_qp_derive(cm, qp);
    if (!hca_recv_queue_ok(&qp->rq)) {
        g_free(qp);
        return false;
    }
    add_qp(cm, qp);
    return true;
}
