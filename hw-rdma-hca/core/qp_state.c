/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is saved of a QP, and of what its parts are made of (state.h). */
#include "qp_state.h"

static const HcaField path_fields[] = {
    HCA_SAVED(HcaPath, dlid),
    HCA_SAVED(HcaPath, sl),
    HCA_SAVED(HcaPath, path_bits),
    HCA_SAVED(HcaPath, grh),
    HCA_SAVED(HcaPath, smp),
    HCA_SAVED(HcaPath, pkey_index),
    HCA_SAVED(HcaPath, sgid_index),
    HCA_SAVED(HcaPath, tclass),
    HCA_SAVED(HcaPath, hop_limit),
    HCA_SAVED(HcaPath, flow_label),
    HCA_SAVED_ARRAY(HcaPath, dgid.raw, dgid.raw[0]),
    HCA_SAVED_ARRAY(HcaPath, dmac, dmac[0]),
    HCA_SAVED_ARRAY(HcaPath, smac, smac[0]),
    HCA_SAVED(HcaPath, sip),
};
const HcaStruct hca_path_struct = HCA_STRUCT(HcaPath, path_fields);

static const HcaField qp_attr_fields[] = {
    HCA_SAVED(HcaQpAttr, service),
    HCA_SAVED(HcaQpAttr, privileged),
    HCA_SAVED(HcaQpAttr, block_loopback),
    HCA_SAVED(HcaQpAttr, pd),
    HCA_SAVED(HcaQpAttr, uar),
    HCA_SAVED(HcaQpAttr, sq_cqn),
    HCA_SAVED(HcaQpAttr, rq_cqn),
    HCA_SAVED(HcaQpAttr, sq_lkey),
    HCA_SAVED(HcaQpAttr, sq_len),
    HCA_SAVED(HcaQpAttr, sq_entry_log),
    HCA_ELSEWHERE(HcaQpAttr, signals_all),
    HCA_SAVED(HcaQpAttr, rq_lkey),
    HCA_SAVED(HcaQpAttr, rq_len),
    HCA_SAVED(HcaQpAttr, rq_entry_log),
    HCA_ELSEWHERE(HcaQpAttr, wq_base),
    HCA_ELSEWHERE(HcaQpAttr, sq_offset),
    HCA_ELSEWHERE(HcaQpAttr, rq_offset),
    HCA_SAVED(HcaQpAttr, rq_db),
    HCA_SAVED(HcaQpAttr, uses_srq),
    HCA_SAVED(HcaQpAttr, srqn),
    HCA_SAVED(HcaQpAttr, xrcd),
    HCA_SAVED(HcaQpAttr, counter_set),
    HCA_SAVED(HcaQpAttr, mtu),
    HCA_SAVED(HcaQpAttr, log_max_msg),
    HCA_SAVED_STRUCT(HcaQpAttr, path, hca_path_struct),
    HCA_SAVED(HcaQpAttr, slid),
    HCA_SAVED(HcaQpAttr, static_rate),
    HCA_SAVED_ARRAY(HcaQpAttr, alt_path, alt_path[0]),
    HCA_SAVED(HcaQpAttr, pkey_index),
    HCA_SAVED(HcaQpAttr, port),
    HCA_SAVED(HcaQpAttr, qkey),
    HCA_SAVED(HcaQpAttr, access),
    HCA_SAVED(HcaQpAttr, remote_qpn),
    HCA_SAVED(HcaQpAttr, rq_psn),
    HCA_SAVED(HcaQpAttr, sq_psn),
    HCA_SAVED(HcaQpAttr, sra_max),
    HCA_SAVED(HcaQpAttr, rra_max),
    HCA_SAVED(HcaQpAttr, retry_count),
    HCA_SAVED(HcaQpAttr, rnr_retry),
    HCA_SAVED(HcaQpAttr, ack_timeout),
    HCA_SAVED(HcaQpAttr, min_rnr_timer),
};
static const HcaStruct qp_attr_struct = HCA_STRUCT(HcaQpAttr, qp_attr_fields);

static const HcaField sge_fields[] = {
    HCA_SAVED(HcaSge, va),
    HCA_SAVED(HcaSge, lkey),
    HCA_SAVED(HcaSge, len),
    HCA_SAVED(HcaSge, relative),
};
const HcaStruct hca_sge_struct = HCA_STRUCT(HcaSge, sge_fields);

static const HcaField wqe_ref_fields[] = {
    HCA_SAVED(HcaWqeRef, offset),    HCA_SAVED(HcaWqeRef, size),
    HCA_SAVED(HcaWqeRef, opcode),    HCA_SAVED(HcaWqeRef, fence),
    HCA_ELSEWHERE(HcaWqeRef, count),
};
const HcaStruct hca_wqe_ref_struct = HCA_STRUCT(HcaWqeRef, wqe_ref_fields);

static const HcaField mem_op_fields[] = {
    HCA_SAVED(HcaMemOp, key),        HCA_SAVED(HcaMemOp, access),
    HCA_SAVED(HcaMemOp, start),      HCA_SAVED(HcaMemOp, length),
    HCA_SAVED(HcaMemOp, list),       HCA_SAVED(HcaMemOp, entries),
    HCA_SAVED(HcaMemOp, page_shift), HCA_SAVED(HcaMemOp, type),
    HCA_SAVED(HcaMemOp, lkey),
};
const HcaStruct hca_mem_op_struct = HCA_STRUCT(HcaMemOp, mem_op_fields);

static const HcaField planned_fields[] = {
    HCA_SAVED(HcaPlanned, way),
    HCA_SAVED(HcaPlanned, syndrome),
    HCA_SAVED(HcaPlanned, vendor_err),
};
const HcaStruct hca_planned_struct = HCA_STRUCT(HcaPlanned, planned_fields);

static const HcaField wqe_fields[] = {
    HCA_SAVED_STRUCT(HcaWqe, ref, hca_wqe_ref_struct),
    HCA_SAVED(HcaWqe, signalled),
    HCA_SAVED(HcaWqe, solicited),
    HCA_SAVED(HcaWqe, syndrome),
    HCA_SAVED(HcaWqe, vendor_err),
    HCA_SAVED(HcaWqe, nsge),
    HCA_SAVED(HcaWqe, sge_at),
    HCA_SAVED(HcaWqe, sge_done),
    HCA_SAVED(HcaWqe, sent),
    HCA_SAVED(HcaWqe, msg_len),
    HCA_SAVED(HcaWqe, imm_be),
    HCA_SAVED(HcaWqe, raddr),
    HCA_SAVED(HcaWqe, rkey),
    HCA_SAVED_STRUCT(HcaWqe, planned, hca_planned_struct),
    HCA_SAVED(HcaWqe, swap_add),
    HCA_SAVED(HcaWqe, compare),
    HCA_SAVED(HcaWqe, feth),
    HCA_SAVED(HcaWqe, flush_len),
    HCA_SAVED(HcaWqe, srqn),
    HCA_SAVED_STRUCT(HcaWqe, path, hca_path_struct),
    HCA_SAVED(HcaWqe, dqpn),
    HCA_SAVED(HcaWqe, qkey),
    HCA_SAVED_STRUCTS(HcaWqe, sge, sge[0], hca_sge_struct),
    HCA_ELSEWHERE(HcaWqe, mem), /* in the place of @sge */
};
const HcaStruct hca_wqe_struct = HCA_STRUCT(HcaWqe, wqe_fields);

static const HcaField send_queue_fields[] = {
    HCA_ELSEWHERE(HcaSendQueue, doorbells),
    HCA_DERIVED(HcaSendQueue, doorbell_mask),
    HCA_SAVED(HcaSendQueue, doorbell_head),
    HCA_ELSEWHERE(HcaSendQueue, doorbell_tail),
    HCA_SAVED(HcaSendQueue, indicator),
    HCA_SAVED_STRUCT(HcaSendQueue, chained, hca_wqe_ref_struct),
    HCA_SAVED(HcaSendQueue, chain_len),
    HCA_SAVED(HcaSendQueue, taken),
    HCA_SAVED(HcaSendQueue, ended),
    HCA_SAVED(HcaSendQueue, wqe_valid),
    HCA_SAVED(HcaSendQueue, flushing),
    HCA_SAVED(HcaSendQueue, flush_end),
    HCA_ELSEWHERE(HcaSendQueue, wqe),
};
static const HcaStruct send_queue_struct = HCA_STRUCT(HcaSendQueue,
                                                      send_queue_fields);

static const HcaField barrier_fields[] = {
    HCA_SAVED(HcaBarrier, pending),
    HCA_SAVED(HcaBarrier, signalled),
    HCA_SAVED(HcaBarrier, syndrome),
    HCA_SAVED(HcaBarrier, vendor_err),
    HCA_SAVED_STRUCT(HcaBarrier, ref, hca_wqe_ref_struct),
    HCA_SAVED_STRUCT(HcaBarrier, mem, hca_mem_op_struct),
};
static const HcaStruct barrier_struct = HCA_STRUCT(HcaBarrier, barrier_fields);

static const HcaField requester_fields[] = {
    HCA_SAVED(HcaRequester, next_psn),
    HCA_SAVED(HcaRequester, unacked_psn),
    HCA_SAVED(HcaRequester, ssn),
    HCA_SAVED(HcaRequester, lsn),
    HCA_SAVED(HcaRequester, no_credits),
    HCA_ELSEWHERE(HcaRequester, swpb),
    HCA_ELSEWHERE(HcaRequester, rpb),
    HCA_ELSEWHERE(HcaRequester, reb),
    HCA_DERIVED(HcaRequester, locals),
    HCA_SAVED(HcaRequester, retransmit),
    HCA_ELSEWHERE(HcaRequester, resend_swpb),
    HCA_ELSEWHERE(HcaRequester, resend_rpb),
    HCA_SAVED(HcaRequester, loss_seen),
    HCA_SAVED(HcaRequester, loss_psn),
    HCA_SAVED(HcaRequester, retries_left),
    HCA_SAVED(HcaRequester, rnr_retries_left),
    HCA_SAVED(HcaRequester, rnr_wait),
    HCA_SAVED(HcaRequester, rnr_psn),
    HCA_SAVED(HcaRequester, fail_syndrome),
    HCA_SAVED(HcaRequester, fail_vendor_err),
    HCA_SAVED(HcaRequester, drained),
    HCA_SAVED(HcaRequester, congested),
    HCA_SAVED_STRUCT(HcaRequester, barrier, barrier_struct),
    HCA_DERIVED(HcaRequester, swpb_elements),
    HCA_DERIVED(HcaRequester, swpb_memory),
    HCA_SAVED(HcaRequester, timer_mark),
};
static const HcaStruct requester_struct = HCA_STRUCT(HcaRequester,
                                                     requester_fields);

static const HcaField resp_fields[] = {
    HCA_SAVED(HcaResp, kind),    HCA_SAVED(HcaResp, syndrome),
    HCA_SAVED(HcaResp, psn),     HCA_SAVED(HcaResp, msn),
    HCA_SAVED(HcaResp, pd),      HCA_SAVED(HcaResp, rkey),
    HCA_SAVED(HcaResp, va),      HCA_SAVED(HcaResp, len),
    HCA_SAVED(HcaResp, started), HCA_SAVED(HcaResp, duplicate),
    HCA_SAVED(HcaResp, counts),  HCA_SAVED(HcaResp, atomic_ack),
};
const HcaStruct hca_resp_struct = HCA_STRUCT(HcaResp, resp_fields);

static const HcaField replay_fields[] = {
    HCA_SAVED(HcaReplay, valid),
    HCA_SAVED(HcaReplay, psn),
    HCA_SAVED(HcaReplay, atomic_ack),
};
const HcaStruct hca_replay_struct = HCA_STRUCT(HcaReplay, replay_fields);

static const HcaField recv_queue_fields[] = {
    HCA_DERIVED(HcaRecvQueue, pd),         HCA_DERIVED(HcaRecvQueue, lkey),
    HCA_DERIVED(HcaRecvQueue, base),       HCA_DERIVED(HcaRecvQueue, len),
    HCA_DERIVED(HcaRecvQueue, entry_log),  HCA_DERIVED(HcaRecvQueue, linked),
    HCA_DERIVED(HcaRecvQueue, record),     HCA_SAVED(HcaRecvQueue, offset),
    HCA_SAVED(HcaRecvQueue, consumed),     HCA_SAVED(HcaRecvQueue, posted),
    HCA_ANEW(HcaRecvQueue, prefetched),    HCA_ANEW(HcaRecvQueue, buffer_at),
    HCA_ANEW(HcaRecvQueue, buffer_offset), HCA_ANEW(HcaRecvQueue, buffer),
};
const HcaStruct hca_recv_queue_struct = HCA_STRUCT(HcaRecvQueue,
                                                   recv_queue_fields);

static const HcaField recv_wqe_fields[] = {
    HCA_SAVED(HcaRecvWqe, offset),
    HCA_SAVED(HcaRecvWqe, tag),
    HCA_SAVED(HcaRecvWqe, pd),
    HCA_SAVED(HcaRecvWqe, srqn),
    HCA_SAVED(HcaRecvWqe, life),
    HCA_SAVED(HcaRecvWqe, nsge),
    HCA_SAVED(HcaRecvWqe, sge_at),
    HCA_SAVED(HcaRecvWqe, sge_done),
    HCA_SAVED_STRUCTS(HcaRecvWqe, sge, sge[0], hca_sge_struct),
};
const HcaStruct hca_recv_wqe_struct = HCA_STRUCT(HcaRecvWqe, recv_wqe_fields);

static const HcaField responder_fields[] = {
    HCA_SAVED(HcaResponder, expected_psn),
    HCA_SAVED(HcaResponder, msn),
    HCA_SAVED(HcaResponder, nak_sent),
    HCA_SAVED(HcaResponder, nak_owed),
    HCA_SAVED(HcaResponder, comm_est),
    HCA_SAVED(HcaResponder, in_message),
    HCA_SAVED(HcaResponder, message),
    HCA_SAVED(HcaResponder, message_len),
    HCA_SAVED(HcaResponder, remote_pd),
    HCA_SAVED(HcaResponder, write_va),
    HCA_SAVED(HcaResponder, write_pd),
    HCA_SAVED(HcaResponder, write_rkey),
    HCA_SAVED(HcaResponder, write_left),
    HCA_SAVED(HcaResponder, wqe_valid),
    HCA_SAVED(HcaResponder, waited),
    HCA_SAVED(HcaResponder, cnp_owed),
    HCA_SAVED(HcaResponder, ring_head),
    HCA_ELSEWHERE(HcaResponder, ring_tail),
    HCA_SAVED(HcaResponder, replay_next),
    HCA_DERIVED(HcaResponder, rd_atomic),
    HCA_SAVED(HcaResponder, cnp_next),
    HCA_SAVED(HcaResponder, cnp_qpn),
    HCA_SAVED(HcaResponder, flushed),
    HCA_SAVED(HcaResponder, flush_delay),
    HCA_SAVED_STRUCT(HcaResponder, cnp_path, hca_path_struct),
    HCA_ELSEWHERE(HcaResponder, ring),
    HCA_ELSEWHERE(HcaResponder, replay),
    HCA_ELSEWHERE(HcaResponder, wqe),
};
static const HcaStruct responder_struct = HCA_STRUCT(HcaResponder,
                                                     responder_fields);

static const HcaField qp_fields[] = {
    HCA_SAVED(HcaQp, qpn),
    HCA_DERIVED(HcaQp, special),
    HCA_SAVED(HcaQp, state),
    HCA_SAVED(HcaQp, sqd_event),
    HCA_SAVED_STRUCT(HcaQp, attr, qp_attr_struct),
    HCA_SAVED_ARRAY(HcaQp, deadline, deadline[0]),
    HCA_DERIVED(HcaQp, pmtu),
    HCA_DERIVED(HcaQp, max_msg),
    HCA_DERIVED(HcaQp, srq),
    HCA_DERIVED(HcaQp, counters),
    HCA_ANEW(HcaQp, send_turn),
    HCA_ANEW(HcaQp, resp_turn),
    HCA_DERIVED(HcaQp, timer),
    HCA_SAVED(HcaQp, lane),
    HCA_ANEW(HcaQp, pool),
    HCA_ANEW(HcaQp, pool_promised),
    HCA_ANEW(HcaQp, pool_need),
    HCA_ANEW(HcaQp, pool_wait),
    HCA_SAVED_STRUCT(HcaQp, req, requester_struct),
    HCA_SAVED_STRUCT(HcaQp, send, send_queue_struct),
    HCA_SAVED_STRUCT(HcaQp, resp, responder_struct),
    HCA_SAVED_STRUCT(HcaQp, rq, hca_recv_queue_struct),
    HCA_ELSEWHERE(HcaQp, event),
    HCA_SAVED(HcaQp, strict_told),
    HCA_SAVED(HcaQp, strict_lived),
    HCA_ANEW(HcaQp, send_ask),
    HCA_ANEW(HcaQp, resp_ask),
};
const HcaStruct hca_qp_struct = HCA_STRUCT(HcaQp, qp_fields);

static const HcaField timer_fields[] = {
    HCA_SAVED(HcaHeapNode, key),
    HCA_SAVED(HcaHeapNode, slot), /* hca_heap_save(): whether it runs */
};
const HcaStruct hca_timer_struct = HCA_STRUCT(HcaHeapNode, timer_fields);
