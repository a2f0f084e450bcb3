/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For tests that look inside a card: all of its rooms. */
#ifndef LIB_INSIDE_H
#define LIB_INSIDE_H

#include "../../abi/rdma_hca_cmd.h"
#include "../../abi/rdma_hca_cxt.h"
#include "../../abi/rdma_hca_eth.h"
#include "../../abi/rdma_hca_regs.h"
#include "../../abi/rdma_hca_wqe.h"
#include "../card.h"
#include "../counters.h"
#include "../cxtmgt/cxtmgt.h"
#include "../front/ceu/ceu.h"
#include "../front/format.h"
#include "../hca.h"
#include "../link/link.h"
#include "../port/port_int.h"
#include "../requester/requester.h"
#include "../responder/responder.h"
#include "../send/send.h"
#include "../v2p/v2p.h"

#endif /* LIB_INSIDE_H */
