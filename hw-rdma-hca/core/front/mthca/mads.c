/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The port of an InfiniHost III Lx: MAD_IFC, and its end. */
#include "../../mad/mad.h"
#include "../../port/port.h"
#include "mthca.h"

/* That a directed answer is on its way back (D, IBA 14.2.1.2) the driver says:
 * it takes another status than 0 for a refusal. */
uint8_t hca_mthca_mad_ifc(HcaCeu *ceu, HcaCommand *cmd)
{
    uint8_t status = hca_ceu_mad_ifc(ceu, cmd);
    uint8_t *mad = (uint8_t *)cmd->outbox;

    if (!status && mad[HCA_MAD_CLASS] == HCA_CLASS_SUBN_DIRECTED) {
        put_be16(mad + HCA_MAD_STATUS,
                 get_be16(mad + HCA_MAD_STATUS) & ~HCA_SMP_DIRECTION);
    }
    return status;
}

/* No event tells a driver what it has done: the last it does is to close the port. */
uint8_t hca_mthca_close_ib(HcaCeu *ceu, HcaCommand *cmd)
{
    uint8_t status = hca_ceu_close_ib(ceu, cmd);

    if (!status) {
        hca_port_state_told(ceu->hca->port);
    }
    return status;
}
