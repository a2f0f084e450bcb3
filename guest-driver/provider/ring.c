// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The rings of QPs and SRQs: their slots, their memory, and what they hold at
 * first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <util/util.h>

#include "rhca.h"

void rhca_size_wq(struct rhca_wq *wq, uint32_t wqe_size, uint32_t wrs)
{
	uint32_t slot = max_t(uint32_t, roundup_pow_of_two(wqe_size),
			      RDMA_HCA_WQE_ALIGN);

	wq->shift = ilog32(slot - 1);
	wq->entries = wrs ? roundup_pow_of_two(wrs) : 0;
}

/* A receive WQE also has the unit of zeros that ends its list. */
void rhca_size_recv(struct rhca_wq *wq, uint32_t *wrs, uint32_t *sges,
		    uint32_t most)
{
	uint32_t data = sizeof(struct rdma_hca_data_unit);
	uint32_t head = sizeof(struct rdma_hca_next_unit) + data;

	rhca_size_wq(wq, head + *sges * data, *wrs);
	*wrs = wq->entries;
	*sges = min_t(uint32_t, ((1u << wq->shift) - head) / data, most);
}

int rhca_wq_init(struct rhca_wq *wq, struct rhca_pd *parent,
		 enum rhca_resource resource)
{
	int err;

	err = rhca_buf_alloc(&wq->buf, (size_t)wq->entries << wq->shift, parent,
			     resource);
	if (err)
		return err;
	if (wq->entries) {
		wq->wr_id = calloc(wq->entries, sizeof(*wq->wr_id));
		if (!wq->wr_id) {
			rhca_buf_free(&wq->buf);
			return ENOMEM;
		}
	}
	pthread_spin_init(&wq->lock, PTHREAD_PROCESS_PRIVATE);
	wq->single_threaded = rhca_is_single_threaded(parent);
	return 0;
}

void rhca_wq_destroy(struct rhca_wq *wq)
{
	pthread_spin_destroy(&wq->lock);
	free(wq->wr_id);
	rhca_buf_free(&wq->buf);
}

void rhca_wq_reset(struct rhca_wq *wq)
{
	memset(wq->buf.addr, 0, (size_t)wq->entries << wq->shift);
	wq->head = 0;
	atomic_store_explicit(&wq->tail, 0, memory_order_release);
}

/*
 * A receive WQE tells the size of the next one (engine document 4.4.2); 0
 * would say that there is none, whatever is posted later. All have a slot.
 */
static void rhca_recv_link(struct rhca_wq *rq)
{
	struct rdma_hca_next_unit *next;
	uint32_t i;

	for (i = 0; i < rq->entries; i++) {
		next = rhca_wq_slot(rq, i);
		next->nda_nop = htole32(rhca_wq_offset(rq, i + 1) &
					RDMA_HCA_NEXT_NDA);
		next->nee_nds = htole32(
			FIELD_PREP(RDMA_HCA_NEXT_NDS,
				   (1u << rq->shift) / RDMA_HCA_WQE_UNIT));
		next->flags = htole32(RDMA_HCA_WQE_CQ_UPDATE);
	}
}

void rhca_recv_reset(struct rhca_wq *rq)
{
	rhca_wq_reset(rq);
	rhca_recv_link(rq);
}

/* Which slot is next is the ring's; the rest of a WQE is the same. */
void rhca_recv_copy(const struct rhca_wq *from, struct rhca_wq *to, uint32_t n)
{
	size_t size = ((size_t)1 << from->shift) -
		      sizeof(struct rdma_hca_next_unit);
	const struct rdma_hca_next_unit *old;
	struct rdma_hca_next_unit *wqe;
	uint32_t i;

	for (i = from->head - n; i != from->head; i++) {
		old = rhca_wq_slot(from, i);
		wqe = rhca_wq_slot(to, i);
		wqe->tag = old->tag;
		memcpy(wqe + 1, old + 1, size);
	}
}
