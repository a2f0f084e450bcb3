/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * MultiQueue (engine document 3.4.3): three pools shared by all QPs, and in
 * each QP a queue in each pool (HcaMqList).
 *
 * SWPB  Send and Write packets that are not acknowledged
 * RPB   requests that a response answers (Reads, atomics, FLUSH) and has not
 * REB   the scatter entries of those
 *
 * The pools have the document's sizes and count as the document counts, so
 * that flow control is the card's; but an element refers to guest memory
 * where the document's holds 32 bytes of it. Beyond them each QP has
 * room of its own for some packets and Reads: QPs whose peers do not answer may
 * hold all of a pool, and must not hold up the others.
 */
#ifndef HCA_MULTI_QUEUE_H
#define HCA_MULTI_QUEUE_H

#include "requester.h"

/*
 * A Send or Write packet as it was sent: what of the WQE metadata
 * (ReqTransCore_Thread_2 document, "WQE fields and offsets") says more than
 * the QP does.
 */
typedef struct HcaSentPacket {
    uint32_t psn;
    uint32_t wqe_offset; /* bytes in the send queue */
    uint8_t wqe_opcode;
    uint8_t operation; /* HcaBthOperation */
    union {
        struct {
            bool local : 1; /* none: a local operation, at the next one's PSN */
            bool last : 1;  /* of its message */
            bool signalled : 1;
            bool solicited : 1;
        };
        uint8_t flags; /* all of these */
    };
    HcaPlanned planned; /* LOST, ANSWER */
    uint16_t nrefs;     /* pieces of the payload */
    uint16_t len;       /* bytes of it */
    uint32_t msg_len;
    uint32_t imm_be;
    uint32_t rkey;
    uint32_t srqn;
    uint32_t sum; /* strict: of its payload, as it was sent first */
    uint64_t raddr;
} HcaSentPacket;

G_STATIC_ASSERT(sizeof(HcaSentPacket) == 48);

/*
 * A request that a response answers, as it was sent, and how far it is. The
 * value of an atomic write is kept, so that it is the same each time.
 */
typedef struct HcaSentRead {
    uint32_t psn;  /* of the first response */
    uint32_t npsn; /* responses */
    uint8_t wqe_opcode;
    bool signalled;
    uint32_t wqe_offset;
    uint64_t raddr;
    uint32_t rkey;
    uint32_t len;      /* of the responses */
    uint32_t received; /* bytes */
    uint32_t answered; /* responses */
    uint32_t asked;    /* those that had come when it was sent last */
    HcaPlanned planned;
    uint64_t swap_add;
    uint64_t compare;
    uint64_t value; /* atomic write: as it lay in memory */
    uint32_t feth;  /* FLUSH */
    uint32_t flush_len;
    uint32_t srqn;
    uint16_t nentries; /* in the REB */
} HcaSentRead;

HcaMultiQueue *hca_mq_new(const HcaConfig *config);
void hca_mq_free(HcaMultiQueue *mq);
/* The peaks begin again. */
void hca_mq_reset_peaks(HcaMultiQueue *mq);
/* Forget @qp: all its elements are free again. */
void hca_mq_forget(Hca *hca, HcaQp *qp);

/* Whether @qp may put a packet of @len bytes in @nrefs pieces (3.4.1.1.3.2.3).
 * If not, it is given a turn when there is room for it, which is then kept for
 * it until it asks again, or hca_mq_stop_waiting(). */
bool hca_mq_swpb_room(Hca *hca, HcaQp *qp, uint32_t len, unsigned nrefs);
/* Whether there is room for one more Read with @nentries scatter entries. */
bool hca_mq_read_room(Hca *hca, HcaQp *qp, unsigned nentries);

/* @qp does not want to put anything now: who waits behind it may. */
void hca_mq_stop_waiting(Hca *hca, HcaQp *qp);

/* Append; only when there is room. */
void hca_mq_swpb_insert(Hca *hca, HcaQp *qp, const HcaSentPacket *packet,
                        const HcaSge *refs);
void hca_mq_read_insert(Hca *hca, HcaQp *qp, const HcaSentRead *read,
                        const HcaSge *entries);

/* The first of a queue, or NULL. */
HcaSentPacket *hca_mq_swpb_head(Hca *hca, HcaQp *qp);
HcaSentRead *hca_mq_rpb_head(Hca *hca, HcaQp *qp);
HcaSge *hca_mq_reb_head(Hca *hca, HcaQp *qp);
/* The @nth of those that are left, or NULL. */
const HcaSge *hca_mq_reb_at(Hca *hca, HcaQp *qp, unsigned nth);

/* Release the first of a queue; a Read takes its scatter entries along. */
void hca_mq_swpb_release(Hca *hca, HcaQp *qp);
void hca_mq_rpb_release(Hca *hca, HcaQp *qp);
void hca_mq_reb_release(Hca *hca, HcaQp *qp);

/* Walking a queue by index (HCA_MQ_NONE: the end). */
HcaSentPacket *hca_mq_swpb_at(Hca *hca, uint32_t index, uint32_t *next);
HcaSentRead *hca_mq_rpb_at(Hca *hca, uint32_t index, uint32_t *next);
/* The pieces of a packet's payload; returns their number. */
unsigned hca_mq_swpb_refs(Hca *hca, uint32_t index, HcaSge *refs);

/*
 * For a state that is loaded: whether there is memory for one more packet or Read,
 * whosever it is; whether no QP has what others are to have; and pieces and entries
 * of what was inserted without.
 */
bool hca_mq_swpb_holds(const Hca *hca, unsigned nrefs);
bool hca_mq_read_holds(const Hca *hca, unsigned nentries);
bool hca_mq_shares_ok(const Hca *hca);
void hca_mq_swpb_set_refs(Hca *hca, uint32_t index, const HcaSge *refs);
void hca_mq_reb_save(Hca *hca, HcaQp *qp, GArray *records);
void hca_mq_reb_load(Hca *hca, HcaQp *qp, const HcaSge *entries);
extern const HcaStruct hca_mq_struct, hca_mq_pool_struct, hca_mq_packet_struct;
extern const HcaStruct hca_mq_read_struct, hca_mq_entry_struct;

#endif /* HCA_MULTI_QUEUE_H */
