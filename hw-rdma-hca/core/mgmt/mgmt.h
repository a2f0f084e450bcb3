/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The management interfaces of an InfiniBand port: QP 0 (subnet management, IBA
 * 13.5.1) and QP 1 (general services, IBA 13.5.3). Software takes their place by
 * CONF_SPECIAL_QP, and has the card's agents answer by MAD_IFC; while it has
 * not, the agents answer what arrives by themselves.
 */
#ifndef HCA_MGMT_H
#define HCA_MGMT_H

#include "../card.h"
#include "../cxtmgt/cxtmgt.h"
#include "../port/port.h"

/* Whether @packet is one of theirs, or pretends to be. */
static inline bool hca_mgmt_is_for(const Hca *hca, const HcaPacket *packet)
{
    return (packet->vl == HCA_VL_MGMT || packet->dest_qp <= 1) &&
           !hca_port_is_roce(hca->port);
}

/*
 * A packet that has come to the port's LID, or the permissive one. The QP that
 * is to have it, or NULL: it has been answered, or dropped.
 */
HcaQp *hca_mgmt_receive(Hca *hca, const HcaPacket *packet);

#endif /* HCA_MGMT_H */
