/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The documents' programming interface, as one table. */
#include "format.h"

#include "../../abi/rdma_hca_sizes.h"
#include "../cxtmgt/cxt_format.h"
#include "ceu/ceu.h"
#include "contexts.h"
#include "entries.h"

const HcaCxtFormat hca_cxt_format = {
    .qpc_size = RDMA_HCA_QPC_SIZE,
    .cqc_size = RDMA_HCA_CQC_SIZE,
    .eqc_size = RDMA_HCA_EQC_SIZE,
    .srqc_size = RDMA_HCA_SRQC_SIZE,
    .put_qp = hca_front_put_qp,
    .put_cq = hca_front_put_cq,
    .put_eq = hca_front_put_eq,
    .put_srq = hca_front_put_srq,
    .cqe_size = RDMA_HCA_CQE_SIZE,
    .eqe_size = RDMA_HCA_EQE_SIZE,
    .put_cqe = hca_front_put_cqe,
    .put_eqe = hca_front_put_eqe,
};

const HcaFormat hca_format = {
    .cxt = &hca_cxt_format,
    .wqe = &hca_wqe_format,
    .mpt = &hca_mpt_format,
    .eth = &hca_eth_format,
};

const HcaInterface hca_interface = {
    .registers = &hca_registers,
    .commands = &hca_commands,
    .format = &hca_format,
};
