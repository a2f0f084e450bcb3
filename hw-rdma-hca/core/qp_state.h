/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is saved of a QP: one list for all of it, as qp.h has one structure. Each
 * engine sees to its part when it is loaded. Lists of what other structures have,
 * too, are for all.
 */
#ifndef HCA_QP_STATE_H
#define HCA_QP_STATE_H

#include "qp.h"
#include "state.h"

extern const HcaStruct hca_qp_struct;
extern const HcaStruct hca_path_struct;
extern const HcaStruct hca_sge_struct;
extern const HcaStruct hca_wqe_ref_struct;
extern const HcaStruct hca_planned_struct;
extern const HcaStruct hca_mem_op_struct;
extern const HcaStruct hca_recv_queue_struct;
/* Of CQs and Ethernet rings, too: a deadline, if it runs. */
extern const HcaStruct hca_timer_struct;
/* Of which there is as much as is in use: they have sections of their own. */
extern const HcaStruct hca_wqe_struct;
extern const HcaStruct hca_recv_wqe_struct;
extern const HcaStruct hca_resp_struct;
extern const HcaStruct hca_replay_struct;

#endif /* HCA_QP_STATE_H */
