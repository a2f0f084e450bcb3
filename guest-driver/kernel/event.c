// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the card's events (interface document 3.2.4) mean, and who is told:
 * in the thread of event queue 0, but for completions, which come in the
 * interrupt of another (eq.c).
 */
#include "cq.h"
#include "device.h"
#include "netdev.h"
#include "qp.h"
#include "srq.h"

static void rhca_tell(struct rhca_dev *dev, enum ib_event_type type)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.element.port_num = RHCA_PORT,
		.event = type,
	};

	if (rhca_has_users(dev))
		ib_dispatch_event(&event);
}

static void rhca_port_event(struct rhca_dev *dev, u8 subtype)
{
	/* There the port is what the interface makes of the link. */
	if (rhca_is_roce(dev))
		rhca_eth_update_link(dev);
	else if (subtype == RDMA_HCA_PORT_CHANGE_ACTIVE)
		rhca_tell(dev, IB_EVENT_PORT_ACTIVE);
	else
		rhca_tell(dev, IB_EVENT_PORT_ERR);
}

/* Who registers anew finds the LIDs and tables that others were told of. */
static void rhca_port_mng_event(struct rhca_dev *dev, u32 changes)
{
	static const struct {
		u32 change;
		enum ib_event_type type;
	} table[] = {
		{ RDMA_HCA_PORT_MNG_LID,	IB_EVENT_LID_CHANGE },
		{ RDMA_HCA_PORT_MNG_SM,		IB_EVENT_SM_CHANGE },
		{ RDMA_HCA_PORT_MNG_PKEYS,	IB_EVENT_PKEY_CHANGE },
		{ RDMA_HCA_PORT_MNG_GIDS,	IB_EVENT_GID_CHANGE },
		{ RDMA_HCA_PORT_MNG_REREGISTER,	IB_EVENT_CLIENT_REREGISTER },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(table); i++)
		if (changes & table[i].change)
			rhca_tell(dev, table[i].type);
}

void rhca_event(struct rhca_dev *dev, const struct rdma_hca_eqe *eqe)
{
	switch (eqe->type) {
	case RDMA_HCA_EVENT_COMP:
		rhca_cq_completion(dev, le32_to_cpu(eqe->cq.cqn));
		break;
	case RDMA_HCA_EVENT_PATH_MIG:
	case RDMA_HCA_EVENT_PATH_MIG_FAILED:
	case RDMA_HCA_EVENT_COMM_EST:
	case RDMA_HCA_EVENT_SQ_DRAINED:
	case RDMA_HCA_EVENT_WQ_CATAS_ERROR:
	case RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR:
	case RDMA_HCA_EVENT_WQ_ACCESS_ERROR:
	case RDMA_HCA_EVENT_LAST_WQE_REACHED:
		rhca_qp_event(dev, le32_to_cpu(eqe->qp.qpn), eqe->type);
		break;
	case RDMA_HCA_EVENT_CQ_ERROR:
		rhca_cq_error(dev, le32_to_cpu(eqe->cq.cqn),
			      le32_to_cpu(eqe->cq.syndrome));
		break;
	case RDMA_HCA_EVENT_SRQ_LIMIT:
	case RDMA_HCA_EVENT_SRQ_CATAS_ERROR:
		rhca_srq_event(dev, le32_to_cpu(eqe->srq.srqn), eqe->type);
		break;
	case RDMA_HCA_EVENT_PORT_CHANGE:
		rhca_port_event(dev, eqe->subtype);
		break;
	case RDMA_HCA_EVENT_PORT_MNG:
		rhca_port_mng_event(dev, le32_to_cpu(eqe->port.changes));
		break;
	case RDMA_HCA_EVENT_CONGESTION:
		dev_dbg(&dev->pdev->dev, "congestion on the path of QP %#x\n",
			le32_to_cpu(eqe->qp.qpn));
		break;
	case RDMA_HCA_EVENT_EQ_OVERFLOW:
		rhca_fail(dev, "an event queue has overflowed");
		break;
	case RDMA_HCA_EVENT_LOCAL_CATAS_ERROR:
		rhca_fail(dev, "an event queue could not be written");
		break;
	default:
		dev_warn_ratelimited(&dev->pdev->dev,
				     "event %#x subtype %#x not handled\n",
				     eqe->type, eqe->subtype);
	}
}
