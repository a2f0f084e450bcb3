/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The interface of an InfiniHost III Lx, as one table. */
#include "mthca.h"

#include "../../cxtmgt/cxt_format.h"

static const HcaCxtFormat cxt_format = {
    .tagged_numbers = true,
    .linked_srqs = true,
    .has_pin = true,
    .qpc_size = MTHCA_QPC_SIZE,
    .cqc_size = MTHCA_CQC_SIZE,
    .eqc_size = MTHCA_EQC_SIZE,
    .srqc_size = MTHCA_SRQC_SIZE,
    .put_qp = hca_mthca_put_qp,
    .put_srq = hca_mthca_put_srq,
    .put_cq = hca_mthca_put_cq,
    .put_eq = hca_mthca_put_eq,
    .cqe_size = MTHCA_CQE_SIZE,
    .eqe_size = MTHCA_EQE_SIZE,
    .put_cqe = hca_mthca_put_cqe,
    .put_eqe = hca_mthca_put_eqe,
};

static const HcaFormat format = {
    .cxt = &cxt_format,
    .wqe = &hca_mthca_wqe_format,
    .mpt = &hca_mthca_mpt_format,
};

const HcaInterface hca_mthca_interface = {
    .registers = &hca_mthca_registers,
    .commands = &hca_mthca_commands,
    .format = &format,
};
