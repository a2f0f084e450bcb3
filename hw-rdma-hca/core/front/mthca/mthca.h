/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The programming interface of a mem-free InfiniHost III Lx: what Linux's
 * ib_mthca, rdma-core's libmthca and iPXE's arbel drive.
 *
 * Layouts are in abi/mthca/.
 *
 * interface.c     it as one table
 * registers.c     registers and doorbells
 * commands.c      the table of commands, statuses
 * query.c         what the card is: QUERY_FW, QUERY_DEV_LIM, QUERY_ADAPTER
 * icm.c           firmware's memory, ICM, and where in it tables are
 * regions.c       MPT entries
 * completion_queues.c, event_queues.c, queue_pairs.c, shared_queues.c
 *                 contexts, and entries of queues
 * mads.c          MAD_IFC, and the end of the port
 * multicast.c     groups, in hash chains
 * wqe.c           work queue entries
 */
#ifndef HCA_MTHCA_H
#define HCA_MTHCA_H

#include "../../v2p/v2p.h"
#include "../ceu/ceu_int.h"
#include "../../../abi/mthca/mthca_cmd.h"
#include "../../../abi/mthca/mthca_cxt.h"
#include "../../../abi/mthca/mthca_regs.h"

/* What QUERY_ADAPTER calls the interrupt pin: a bit of the clear register. */
#define MTHCA_INTA_PIN 31

extern const HcaInterface hca_mthca_interface;

/* Of the room only. */

extern const HcaRegisters hca_mthca_registers;
extern const HcaCommandTable hca_mthca_commands;
extern const HcaMptFormat hca_mthca_mpt_format;
extern const struct HcaWqeFormat hca_mthca_wqe_format;

/* query.c */
HcaCommandFn hca_mthca_query_fw, hca_mthca_query_dev_lim,
    hca_mthca_query_adapter;
/* icm.c */
HcaCommandFn hca_mthca_enable_lam, hca_mthca_map_area, hca_mthca_unmap_area,
    hca_mthca_set_icm_size, hca_mthca_map_icm, hca_mthca_unmap_icm,
    hca_mthca_init_hca;
/* The ICM address of a doorbell record; false: there is no such one. */
bool hca_mthca_record(const HcaCeu *ceu, uint32_t uar, uint32_t index,
                      uint64_t *record);
/* regions.c */
HcaCommandFn hca_mthca_sw2hw_mpt, hca_mthca_hw2sw_mpt;
/* completion_queues.c */
HcaCommandFn hca_mthca_sw2hw_cq, hca_mthca_hw2sw_cq, hca_mthca_resize_cq;
void hca_mthca_put_cq(const HcaCq *cq, void *cxt);
void hca_mthca_put_cqe(const HcaCompletion *completion, int64_t time,
                       void *cqe);
/* shared_queues.c */
HcaCommandFn hca_mthca_sw2hw_srq, hca_mthca_hw2sw_srq;
void hca_mthca_put_srq(const HcaSrq *srq, void *cxt);
/* mads.c */
HcaCommandFn hca_mthca_mad_ifc, hca_mthca_close_ib;
/* multicast.c */
HcaCommandFn hca_mthca_write_mgm, hca_mthca_read_mgm, hca_mthca_mgid_hash;
/* queue_pairs.c */
HcaCommandFn hca_mthca_modify_qp, hca_mthca_query_qp, hca_mthca_destroy_qp;
void hca_mthca_put_qp(uint32_t qpn, const HcaQp *qp, void *cxt);
/* event_queues.c */
HcaCommandFn hca_mthca_sw2hw_eq, hca_mthca_hw2sw_eq;
void hca_mthca_put_eq(const HcaEq *eq, uint64_t events, void *cxt);
void hca_mthca_put_eqe(const HcaEvent *event, void *eqe);
/* A status, as contexts of EQs and CQs have it. */
uint8_t hca_mthca_queue_status(HcaQueueStatus status);

/* The card's status as this interface has it. */
uint8_t hca_mthca_status(uint8_t status);

#endif /* HCA_MTHCA_H */
