/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Management datagrams that are good, to be made worse. */
#ifndef LIB_MANAGE_H
#define LIB_MANAGE_H

#include "../mad/node.h"
#include "lib-fuzz.h"

/* The M_Key that a manager of these targets gives. */
#define FUZZ_M_KEY UINT64_C(0x1122334455667788)

/*
 * A MAD of the input's choice for @node, whose Set begins with what there is; with
 * the node's M_Key, if the input does not say otherwise.
 */
void fuzz_take_mad(Fuzz *f, HcaNode *node, uint8_t mad[HCA_MAD_SIZE]);

#endif /* LIB_MANAGE_H */
