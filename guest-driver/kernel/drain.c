// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Waiting until all that a user in the kernel has posted to a QP has ended. A
 * marker behind it all ends last. That of the RDMA core is an RDMA Write, which
 * a QP of datagrams does not take, and nothing can be posted to a card that has
 * failed; there, the driver itself ends what is in the queues (poll.c). So it
 * does if a card does not end what it has: who waits may free memory afterwards.
 */
#include "cq.h"
#include "qp.h"

#define RHCA_DRAIN_SECS	10

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

/* Wait for the end, for a time in which the card ought to end something. */
static bool rhca_marker_wait_some(struct ib_cq *cq, struct rhca_marker *marker)
{
	int n;

	if (cq->poll_ctx != IB_POLL_DIRECT)
		return wait_for_completion_timeout(&marker->done,
						   RHCA_DRAIN_SECS * HZ);
	/* Nobody else polls. */
	for (n = 0; n < 10 * RHCA_DRAIN_SECS; n++) {
		if (wait_for_completion_timeout(&marker->done, HZ / 10))
			return true;
		ib_process_cq_direct(cq, -1);
	}
	return false;
}

/* What is in the CQ is for its user to take, however long that takes. */
static void rhca_marker_wait(struct ib_cq *cq, struct rhca_wq *wq,
			     struct rhca_marker *marker)
{
	struct rhca_dev *dev = to_rhca(cq->device);
	u32 tail = READ_ONCE(wq->tail);

	while (!rhca_marker_wait_some(cq, marker)) {
		if (tail == READ_ONCE(wq->tail) &&
		    tail != READ_ONCE(wq->head) && !rhca_cq_has_entry(cq))
			rhca_fail(dev, "it does not end what was posted");
		tail = READ_ONCE(wq->tail);
	}
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
	if (err)
		rhca_fail(dev, "it does not end a queue pair's work");
	init_completion(&marker.done);
	err = post(to_rhca_qp(ibqp), &marker.cqe);
	if (err) {
		WARN_ONCE(err, "no room for the end of a drain: %d\n", err);
		return;
	}
	/* A failure before the marker was there, has not told of it. */
	if (rhca_failed(dev) || READ_ONCE(to_rhca_cq(cq)->failed))
		rhca_flush_soon(dev);
	rhca_marker_wait(cq, wq, &marker);
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
