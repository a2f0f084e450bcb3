/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The card's own programming interface, as one table. */
#include "format.h"

const HcaFormat hca_format = {
    .wqe = &hca_wqe_format,
    .eth = &hca_eth_format,
};
