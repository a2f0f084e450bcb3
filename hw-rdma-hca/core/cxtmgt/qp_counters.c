/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is counted for QPs: each counts in one set of a table, and several may
 * in the same. Names are those that other cards have for the same.
 */
#include "cxtmgt_int.h"

#define NUM_SETS (1u << HCA_LOG_COUNTER_SETS)

typedef struct Row {
    const char *name;
    size_t offset;
} Row;

#define ROW(name, field)                                                       \
    {                                                                          \
        name, offsetof(HcaQpCounters, field)                                   \
    }

/* A row keeps its place: new ones come behind. */
static const Row rows[] = {
    ROW("tx_packets", tx_packets),
    ROW("tx_bytes", tx_bytes),
    ROW("rx_packets", rx_packets),
    ROW("rx_bytes", rx_bytes),
    ROW("rx_write_requests", write_requests),
    ROW("rx_read_requests", read_requests),
    ROW("rx_atomic_requests", atomic_requests),
    ROW("out_of_buffer", out_of_buffer),
    ROW("out_of_sequence", out_of_sequence),
    ROW("duplicate_request", duplicates),
    ROW("rnr_nak_retry_err", rnrs_rx),
    ROW("packet_seq_err", psn_naks_rx),
    ROW("local_ack_timeout_err", timeouts),
    ROW("retransmissions", retransmissions),
    ROW("req_cqe_error", sends_failed),
    ROW("req_cqe_flush_error", sends_flushed),
    ROW("resp_cqe_error", receives_failed),
    ROW("resp_cqe_flush_error", receives_flushed),
};

void hca_qp_counters_init(HcaCxtMgt *cm)
{
    cm->qp_counters = g_new0(HcaQpCounters, NUM_SETS);
}

void hca_qp_counters_cleanup(HcaCxtMgt *cm)
{
    g_free(cm->qp_counters);
}

void hca_qp_counters_reset(HcaCxtMgt *cm)
{
    memset(cm->qp_counters, 0, NUM_SETS * sizeof(*cm->qp_counters));
}

bool hca_qp_counter_set_ok(uint64_t set)
{
    return set < NUM_SETS;
}

HcaQpCounters *hca_qp_counter_set(HcaCxtMgt *cm, uint32_t set)
{
    return hca_qp_counter_set_ok(set) ? &cm->qp_counters[set] : NULL;
}

void hca_qp_find_counters(const HcaCxtMgt *cm, HcaQp *qp)
{
    qp->counters = &cm->qp_counters[qp->attr.counter_set];
}

unsigned hca_qp_counters_number(void)
{
    return G_N_ELEMENTS(rows);
}

const char *hca_qp_counter_name(unsigned i)
{
    return rows[i].name;
}

uint64_t hca_qp_counter_value(const HcaQpCounters *counters, unsigned i)
{
    return *(const uint64_t *)((const char *)counters + rows[i].offset);
}
