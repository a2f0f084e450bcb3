/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What tests see of a card behind its machine's back: its counters, by their
 * names, and what it knows of a QP.
 */
#ifndef LIB_CARD_H
#define LIB_CARD_H

#include "../../abi/rdma_hca_cmd.h"
#include "../../abi/rdma_hca_cxt.h"
#include "../../abi/rdma_hca_eth.h"
#include "../../abi/rdma_hca_regs.h"
#include "../../abi/rdma_hca_wqe.h"
#include "../card.h"
#include "../counters.h"
#include "../cxtmgt/cxtmgt.h"
#include "../front/ceu/ceu.h"
#include "../front/contexts.h"
#include "../front/format.h"
#include "../hca.h"
#include "../link/link.h"
#include "../port/port_int.h"
#include "../requester/requester.h"
#include "../responder/responder.h"
#include "../send/send.h"
#include "../v2p/v2p.h"

/* A counter: unit, '_' and name, as in docs/counters.md. */
uint64_t card_counter(const Hca *hca, const char *name);
/* It has to be @n. @who: for the message. */
void card_counted(const Hca *hca, const char *who, const char *name,
                  uint64_t n);
/* Packets received and dropped without an answer. */
uint64_t card_drops(const Hca *hca, HcaDropReason reason);

/* QP @qpn, which has to be there. */
HcaQp *card_qp(Hca *hca, uint32_t qpn);

/* A rule for all packets of both directions. */
HcaFaultPlan fault_plan(HcaFaultAction action);

#endif /* LIB_CARD_H */
