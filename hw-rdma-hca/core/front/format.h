/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of the documents' programming interface (abi/). */
#ifndef HCA_FRONT_FORMAT_H
#define HCA_FRONT_FORMAT_H

#include "interface.h"

extern const HcaRegisters hca_registers;
extern const HcaFormat hca_format;

extern const struct HcaCxtFormat hca_cxt_format;
extern const struct HcaWqeFormat hca_wqe_format;
extern const struct HcaMptFormat hca_mpt_format;
extern const struct HcaEthFormat hca_eth_format;

#endif /* HCA_FRONT_FORMAT_H */
