// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Waiting until all that a user in the kernel has posted to a QP has ended. A
 * marker behind it all ends last. That of the RDMA core is an RDMA Write, which
 * a QP of datagrams does not take, and nothing can be posted to a card that has
 * failed; there, the driver itself ends what is in the queues (poll.c).
 */
#include "cq.h"
#include "qp.h"

struct rhca_marker {
	struct ib_cqe cqe;
	struct completion done;
};

static void rhca_marker_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rhca_marker *marker = container_of(wc->wr_cqe,
						  struct rhca_marker, cqe);

	complete(&marker->done);
}

static void rhca_marker_wait(struct ib_cq *cq, struct rhca_marker *marker)
{
	if (cq->poll_ctx != IB_POLL_DIRECT) {
		wait_for_completion(&marker->done);
		return;
	}
	/* Nobody else polls. */
	while (!wait_for_completion_timeout(&marker->done, HZ / 10))
		ib_process_cq_direct(cq, -1);
}

static void rhca_drain(struct ib_qp *ibqp, struct rhca_wq *wq,
		       struct ib_cq *cq,
		       int (*post)(struct rhca_qp *qp, struct ib_cqe *cqe))
{
	struct rhca_marker marker = { .cqe.done = rhca_marker_done };
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct rhca_dev *dev = to_rhca(ibqp->device);
	int err;

	/* A queue without entries, or of a QP in RESET, has nothing to end. */
	if (!wq->len || to_rhca_qp(ibqp)->state == IB_QPS_RESET)
		return;
	err = ib_modify_qp(ibqp, &attr, IB_QP_STATE);
	if (err && !rhca_failed(dev)) {
		WARN_ONCE(err, "QP to be drained stays as it is: %d\n", err);
		return;
	}
	init_completion(&marker.done);
	err = post(to_rhca_qp(ibqp), &marker.cqe);
	if (err) {
		WARN_ONCE(err, "no room for the end of a drain: %d\n", err);
		return;
	}
	/* A failure before the marker was there, has not told of it. */
	if (rhca_failed(dev))
		schedule_work(&dev->flush);
	rhca_marker_wait(cq, &marker);
}

void rhca_drain_sq(struct ib_qp *ibqp)
{
	rhca_drain(ibqp, &to_rhca_qp(ibqp)->sq, ibqp->send_cq,
		   rhca_post_send_marker);
}

void rhca_drain_rq(struct ib_qp *ibqp)
{
	rhca_drain(ibqp, &to_rhca_qp(ibqp)->rq, ibqp->recv_cq,
		   rhca_post_recv_marker);
}
