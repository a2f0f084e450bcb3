/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of counters: it is whole, its numbers stay, DIAG_RPRT reports it,
 * and in a run without errors every value is the one that the run explains.
 * That each counter moves when it should is in test-counter-events-*.c.
 */
#include <string.h>

#include "lib-card.h"
#include "../counters.h"
#include "lib-pair.h"

#define NO_SUCH UINT64_MAX

/* The value of a counter by its name in DIAG_RPRT. */
static uint64_t value(const Hca *hca, const char *name)
{
    for (unsigned i = 0; i < hca_counters_number(); i++) {
        g_autofree char *full = NULL;
        HcaCounter counter;

        hca_counter_get(hca, i, &counter);
        full = g_strdup_printf("%s_%s", counter.unit, counter.name);
        if (g_str_equal(full, name)) {
            return counter.value;
        }
    }
    return NO_SUCH;
}

static uint64_t *all_values(const Hca *hca)
{
    uint64_t *values = g_new(uint64_t, hca_counters_number());

    for (unsigned i = 0; i < hca_counters_number(); i++) {
        HcaCounter counter;

        hca_counter_get(hca, i, &counter);
        values[i] = counter.value;
    }
    return values;
}

/* ---- the table ---- */

static bool is_name(const char *name)
{
    return *name && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") ==
                        strlen(name);
}

static void test_names(void)
{
    GHashTable *seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                             NULL);
    Pair *pair = pair_new(1, 4096);

    for (unsigned i = 0; i < hca_counters_number(); i++) {
        HcaCounter counter;
        char *full;

        hca_counter_get(pair->lab->host[0].hca, i, &counter);
        g_assert_true(is_name(counter.unit) && is_name(counter.name));
        g_assert_cmpuint(strlen(counter.text), >, 0);
        full = g_strdup_printf("%s_%s", counter.unit, counter.name);
        g_assert_cmpuint(strlen(full), <, RDMA_HCA_DIAG_NAME_SIZE);
        g_assert_true(g_hash_table_add(seen, full));
    }
    g_hash_table_destroy(seen);
    pair_free(pair);
}

typedef struct Visit {
    const char *unit;
    GHashTable *units; /* left behind */
    unsigned n;
} Visit;

static void visit(void *opaque, const HcaCounter *counter)
{
    Visit *v = opaque;

    if (g_strcmp0(v->unit, counter->unit)) {
        v->unit = counter->unit;
        g_assert_true(g_hash_table_add(v->units, (char *)counter->unit));
    }
    v->n++;
}

/* A unit's counters come together, and all of them once. */
static void test_visit(void)
{
    Visit v = { .units = g_hash_table_new(g_str_hash, g_str_equal) };
    Pair *pair = pair_new(2, 4096);

    hca_counters_visit(pair->lab->host[0].hca, visit, &v);
    g_assert_cmpuint(v.n, ==, hca_counters_number());
    g_hash_table_destroy(v.units);
    pair_free(pair);
}

/*
 * Numbers are for ever. When this fails a row was put elsewhere than at the
 * end. After adding rows at the end, raise both constants.
 */
#define FROZEN 575
#define FROZEN_SUM "90c7675c28f2f8910c6aa7901a7e2b06"

static void test_numbers(void)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_MD5);
    Pair *pair = pair_new(3, 4096);

    g_assert_cmpuint(hca_counters_number(), >=, FROZEN);
    for (unsigned i = 0; i < FROZEN; i++) {
        HcaCounter counter;

        hca_counter_get(pair->lab->host[0].hca, i, &counter);
        g_checksum_update(sum, (const void *)counter.unit, -1);
        g_checksum_update(sum, (const void *)counter.name,
                          strlen(counter.name) + 1);
    }
    g_assert_cmpstr(g_checksum_get_string(sum), ==, FROZEN_SUM);
    pair_free(pair);
}

/* Rows that are sums of others. */
static bool is_sum(const HcaCounter *counter)
{
    static const char *const cause[] = { "channel", "mpt", "path", "mtt",
                                         "host" };
    const char *name = counter->name;

    if (g_str_has_suffix(counter->unit, "fault") && g_str_equal(name, "all")) {
        return true;
    }
    if (!g_str_equal(counter->unit, "v2p") || !g_str_has_prefix(name, "wait")) {
        return false;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(cause); i++) {
        if (g_str_has_suffix(name, cause[i])) {
            return true;
        }
    }
    return false;
}

/* How many rows show the word at @at, which nobody else has the value of. */
static unsigned rows_of(const Hca *hca, uint64_t *at)
{
    const uint64_t magic = UINT64_C(0x7e57000000000000) + (uintptr_t)at;
    uint64_t was = *at;
    unsigned n = 0;

    *at = magic;
    for (unsigned i = 0; i < hca_counters_number(); i++) {
        HcaCounter counter;

        hca_counter_get(hca, i, &counter);
        n += counter.value == magic && !is_sum(&counter);
    }
    *at = was;
    return n;
}

static void check_structure(const Hca *hca, const void *structure, size_t size,
                            const void *sparse, size_t sparse_size)
{
    uint64_t *word = (uint64_t *)structure;

    for (size_t i = 0; i < size / sizeof(*word); i++) {
        bool in_sparse = (const char *)&word[i] >= (const char *)sparse &&
                         (const char *)&word[i] <
                             (const char *)sparse + sparse_size;
        unsigned n = rows_of(hca, &word[i]);

        g_assert_cmpuint(n, <=, 1);
        if (!in_sparse && n != 1) {
            g_error("no row for word %zu of a structure of %zu bytes", i, size);
        }
    }
}

/*
 * Every field of the units' structures has one row. Arrays by a number of
 * the programming interface have rows for the numbers in use.
 */
static void test_whole(void)
{
    Pair *pair = pair_new(4, 4096);
    Hca *hca = pair->lab->host[0].hca;
    HcaSendCounters *send = &hca->send->counters;
    HcaResponderCounters *resp = &hca->responder->counters;
    const HcaCxtCounters *cxt = hca_cxt_counters(hca->cm);
    const HcaCeuCounters *ceu = hca_ceu_counters(hca->ceu);
    /* Codes that the card itself never sends. */
    uint64_t *unsent = &resp->nak_codes_tx[HCA_NAK_INVALID_RD];

    check_structure(hca, send, sizeof(*send), send->wqe_opcodes,
                    sizeof(send->wqe_opcodes));
    check_structure(hca, &hca->requester->counters,
                    sizeof(HcaRequesterCounters), NULL, 0);
    check_structure(hca, resp, sizeof(*resp), unsent, 2 * sizeof(*unsent));
    check_structure(hca, hca_port_counters(hca->port), sizeof(HcaPortCounters),
                    NULL, 0);
    check_structure(hca, cxt, sizeof(*cxt), cxt->eqe_types,
                    sizeof(cxt->eqe_types));
    check_structure(hca, hca_v2p_counters(hca->v2p), sizeof(HcaV2pCounters),
                    NULL, 0);
    check_structure(hca, hca_link_counters(hca->link), sizeof(HcaLinkCounters),
                    NULL, 0);
    check_structure(hca, hca_link_fault_counters(hca->link),
                    sizeof(HcaFaultCounters), NULL, 0);
    check_structure(hca, hca_link_capture_counters(hca->link),
                    sizeof(HcaCaptureCounters), NULL, 0);
    check_structure(hca, &hca->port->node->counters, sizeof(HcaNodeCounters),
                    NULL, 0);
    for (unsigned op = 0; op < G_N_ELEMENTS(ceu->opcodes); op++) {
        bool known = hca_ceu_command_name(&hca_interface, op) ||
                     hca_ceu_command_name(
                         hca_front_interface(HCA_PERSONALITY_MTHCA), op);

        g_assert_cmpuint(rows_of(hca, (uint64_t *)&ceu->opcodes[op]), ==,
                         known);
    }
    pair_free(pair);
}

/* ---- DIAG_RPRT ---- */

static uint64_t diag_value(const struct rdma_hca_diag *diag, unsigned slot)
{
    return (uint64_t)GUINT32_FROM_BE(diag->value[slot].h) << 32 |
           GUINT32_FROM_BE(diag->value[slot].l);
}

static uint8_t diag(Pair *pair, struct rdma_hca_diag *out, uint32_t first,
                    uint8_t what)
{
    return driver_cmd_out(pair->drv[0], RDMA_HCA_CMD_DIAG_RPRT, out,
                          sizeof(*out), first, what);
}

static void check_header(const struct rdma_hca_diag *out, uint32_t first,
                         uint32_t room)
{
    uint32_t number = hca_counters_number();

    g_assert_cmpuint(GUINT32_FROM_BE(out->total), ==, number);
    g_assert_cmpuint(GUINT32_FROM_BE(out->first), ==, first);
    g_assert_cmpuint(GUINT32_FROM_BE(out->count), ==,
                     MIN(number - first, room));
    g_assert_cmpuint(out->reserved, ==, 0);
}

/* All names, in as many mailboxes as it takes. */
static void test_diag_names(void)
{
    Pair *pair = pair_new(5, 4096);
    struct rdma_hca_diag *out = g_new(struct rdma_hca_diag, 1);
    uint32_t first = 0;

    while (first < hca_counters_number()) {
        g_assert_cmphex(diag(pair, out, first, RDMA_HCA_DIAG_NAMES), ==, 0);
        check_header(out, first, RDMA_HCA_DIAG_MAX_NAMES);
        for (unsigned i = 0; i < GUINT32_FROM_BE(out->count); i++, first++) {
            HcaCounter counter;
            g_autofree char *name = NULL;

            hca_counter_get(pair->lab->host[0].hca, first, &counter);
            name = g_strdup_printf("%s_%s", counter.unit, counter.name);
            g_assert_cmpstr(out->name[i], ==, name);
        }
    }
    g_free(out);
    pair_free(pair);
}

/* Values from any number on, those of DIAG_RPRT itself excepted. */
static void test_diag_values(void)
{
    Pair *pair = pair_new(6, 4096);
    const Hca *hca = pair->lab->host[0].hca;
    struct rdma_hca_diag *out = g_new(struct rdma_hca_diag, 1);

    for (uint32_t first = 0; first < hca_counters_number(); first++) {
        uint64_t commands = value(hca, "ceu_commands");
        uint64_t *now;

        g_assert_cmphex(diag(pair, out, first, RDMA_HCA_DIAG_VALUES), ==, 0);
        check_header(out, first, RDMA_HCA_DIAG_MAX_VALUES);
        now = all_values(hca);
        for (unsigned i = 0; i < GUINT32_FROM_BE(out->count); i++) {
            HcaCounter counter;

            hca_counter_get(hca, first + i, &counter);
            if (!strcmp(counter.name, "commands")) {
                g_assert_cmpuint(diag_value(out, i), ==, commands);
            } else if (strcmp(counter.name, "status_ok") &&
                       strcmp(counter.name, "cmd_diag_rprt") &&
                       strcmp(counter.name, "writes_ceu") &&
                       strcmp(counter.name, "write_bytes_ceu") &&
                       strcmp(counter.name, "requests_ceu")) {
                g_assert_cmpuint(diag_value(out, i), ==, now[first + i]);
            }
        }
        g_free(now);
    }
    g_free(out);
    pair_free(pair);
}

static void test_diag_refused(void)
{
    Pair *pair = pair_new(7, 4096);
    struct rdma_hca_diag *out = g_new(struct rdma_hca_diag, 1);
    uint32_t number = hca_counters_number();

    for (unsigned what = 0; what < 2; what++) {
        g_assert_cmphex(diag(pair, out, number - 1, what), ==, 0);
        g_assert_cmphex(diag(pair, out, number, what), ==,
                        RDMA_HCA_STAT_BAD_INDEX);
        g_assert_cmphex(diag(pair, out, UINT32_MAX, what), ==,
                        RDMA_HCA_STAT_BAD_INDEX);
    }
    for (unsigned what = 2; what < 256; what++) {
        g_assert_cmphex(diag(pair, out, 0, what), ==, RDMA_HCA_STAT_BAD_PARAM);
    }
    g_assert_cmphex(driver_cmd(pair->drv[0], RDMA_HCA_CMD_DIAG_RPRT, 0, 0, 0,
                               HOST_MMIO_BASE, NULL),
                    ==, RDMA_HCA_STAT_BAD_PARAM);
    g_free(out);
    pair_free(pair);
}

/* ---- a run without errors ---- */

typedef struct Expected {
    const char *name;
    uint64_t change[2]; /* of the side that asks, of the other */
} Expected;

static void check_changes(Pair *pair, uint64_t *before[2],
                          const Expected *expected, unsigned n)
{
    for (unsigned side = 0; side < 2; side++) {
        const Hca *hca = pair->lab->host[side].hca;

        for (unsigned i = 0; i < hca_counters_number(); i++) {
            g_autofree char *name = NULL;
            uint64_t change = 0;
            HcaCounter counter;

            hca_counter_get(hca, i, &counter);
            name = g_strdup_printf("%s_%s", counter.unit, counter.name);
            for (unsigned e = 0; e < n; e++) {
                if (g_str_equal(expected[e].name, name)) {
                    change = expected[e].change[side];
                }
            }
            /* What depends on how the run was cut into turns. */
            if (g_str_has_prefix(name, "v2p_") ||
                g_str_has_prefix(name, "link_") ||
                g_str_has_suffix(name, "_record_reads") ||
                g_str_has_suffix(name, "_lookups") ||
                g_str_has_suffix(name, "_peak")) {
                continue;
            }
            if (counter.value - before[side][i] != change) {
                g_error("side %u: %s moved by %" G_GUINT64_FORMAT
                        " and not %" G_GUINT64_FORMAT,
                        side, name, counter.value - before[side][i], change);
            }
        }
        g_free(before[side]);
    }
}

/*
 * Three Sends of three packets, a Write of two, a Read of two, an atomic, all
 * in a chain. Everything that moves is accounted for; nothing else moves.
 */
static void test_run(void)
{
    Expected expected[] = {
        /* As many acknowledgements as the turns make of it, see below. */
        { "responder_acks_tx", { 0, 0 } },
        { "requester_acks_rx", { 0, 0 } },
        { "port_tx_packets", { 13, 3 } },
        { "port_rx_packets", { 3, 13 } },
        { "send_doorbells", { 1, 0 } },
        { "send_wqes", { 6, 0 } },
        { "send_wqes_chained", { 5, 0 } },
        { "send_wqe_send", { 3, 0 } },
        { "send_wqe_write", { 1, 0 } },
        { "send_wqe_read", { 1, 0 } },
        { "send_wqe_fetch_add", { 1, 0 } },
        { "send_wqe_good", { 6, 0 } },
        { "requester_packets_sent", { 11, 0 } },
        { "requester_reads_sent", { 2, 0 } },
        { "requester_responses_rx", { 3, 0 } },
        /* The second Send, until the first answer tells credits. */
        { "requester_wait_credits", { 1, 0 } },
        { "requester_wqes_completed", { 6, 0 } },
        { "responder_sends", { 0, 9 } },
        { "responder_writes", { 0, 2 } },
        { "responder_reads", { 0, 1 } },
        { "responder_atomics", { 0, 1 } },
        { "responder_executed", { 0, 13 } },
        { "responder_read_responses_tx", { 0, 2 } },
        { "responder_atomic_responses_tx", { 0, 1 } },
        { "responder_rq_fetches", { 0, 1 } },
        { "responder_receives_completed", { 0, 3 } },
        { "cxtmgt_cqes", { 6, 3 } },
        /* A CQ without a record is told by doorbell. */
        { "cxtmgt_cq_doorbells", { 6, 3 } },
    };
    Pair *pair = pair_new(8, 65536);
    uint64_t *before[2];
    uint64_t acks;
    SendWr wr[6];
    Sge sge[6];
    Qp *qp[2];
    Wc wc;

    pair_connect(pair, NULL, qp);
    for (unsigned i = 0; i < 3; i++) {
        pair_post_recv(pair, 1, qp[1], i, i * 4096, 4096);
        wr[i] = pair_send(pair, 0, RDMA_HCA_OPCODE_SEND, i, &sge[i], 0, 3000,
                          0);
    }
    wr[3] = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, 3, &sge[3], 0, 2000,
                      16384);
    wr[4] = pair_send(pair, 0, RDMA_HCA_OPCODE_RDMA_READ, 4, &sge[4], 0, 2000,
                      16384);
    wr[5] = pair_send(pair, 0, RDMA_HCA_OPCODE_ATOMIC_FA, 5, &sge[5], 0, 8,
                      4096 - (pair->mr[1]->va & 4095));
    lab_run(pair->lab);
    for (unsigned side = 0; side < 2; side++) {
        before[side] = all_values(pair->lab->host[side].hca);
    }
    acks = value(pair->lab->host[1].hca, "responder_acks_tx");
    g_assert_true(qp_post_send(qp[0], wr, 6));
    for (unsigned i = 0; i < 3; i++) {
        cq_expect(pair->cq[1], &wc, i, 0);
    }
    for (unsigned i = 0; i < 6; i++) {
        cq_expect(pair->cq[0], &wc, i, 0);
    }
    lab_run(pair->lab);
    acks = value(pair->lab->host[1].hca, "responder_acks_tx") - acks;
    g_assert_cmpuint(acks, >=, 1);
    g_assert_cmpuint(acks, <=, 11);
    expected[0].change[1] += acks;
    expected[1].change[0] += acks;
    expected[2].change[1] += acks;
    expected[3].change[0] += acks;
    check_changes(pair, before, expected, G_N_ELEMENTS(expected));
    pair_free(pair);
}

/* ---- live resources ---- */

static const char *const gauges[] = {
    "send_qps_scheduled",
    "requester_swpb_used",
    "requester_rpb_used",
    "requester_reb_used",
    "requester_qps_waiting",
    "requester_timers",
    "responder_qps_scheduled",
    "cxtmgt_qps",
    "cxtmgt_cqs",
    "cxtmgt_eqs",
    "cxtmgt_icm_pages",
    "cxtmgt_events_waiting",
    "v2p_mpts",
    "v2p_icm_pages",
};

/* Each is there while its resource is held, and gone with it. */
static void test_gauges(void)
{
    Pair *pair = pair_new(9, 65536);
    Hca *hca[2] = { pair->lab->host[0].hca, pair->lab->host[1].hca };
    uint64_t before[G_N_ELEMENTS(gauges)];
    uint64_t cqs = value(hca[0], "cxtmgt_cqs");
    Qp *qp[4][2];

    for (unsigned i = 0; i < G_N_ELEMENTS(gauges); i++) {
        before[i] = value(hca[0], gauges[i]);
        g_assert_cmpuint(before[i], !=, NO_SUCH);
    }
    g_assert_cmpuint(value(hca[0], "cxtmgt_eqs"), ==, NUM_EQS);
    for (unsigned i = 0; i < G_N_ELEMENTS(qp); i++) {
        SendWr wr[3];
        Sge sge[3];

        pair_connect(pair, NULL, qp[i]);
        for (unsigned n = 0; n < 3; n++) {
            wr[n] = pair_send(pair, 0,
                              n & 1 ? RDMA_HCA_OPCODE_RDMA_READ
                                    : RDMA_HCA_OPCODE_RDMA_WRITE,
                              n, &sge[n], 0, 30000, 0);
        }
        g_assert_true(qp_post_send(qp[i][0], wr, 3));
    }
    lab_step(pair->lab);
    lab_step(pair->lab);
    g_assert_cmpuint(value(hca[0], "cxtmgt_qps"), ==, 4);
    g_assert_cmpuint(value(hca[0], "requester_swpb_used"), >, 0);
    g_assert_cmpuint(value(hca[0], "requester_timers"), >, 0);
    lab_run(pair->lab);
    g_assert_cmpuint(value(hca[0], "requester_swpb_used"), ==, 0);
    g_assert_cmpuint(value(hca[0], "requester_rpb_used"), ==, 0);
    g_assert_cmpuint(value(hca[0], "requester_reb_used"), ==, 0);
    g_assert_cmpuint(value(hca[0], "requester_timers"), ==, 0);
    g_assert_cmpuint(value(hca[0], "requester_swpb_peak"), >, 0);
    g_assert_cmpuint(value(hca[0], "requester_rpb_peak"), >, 0);
    g_assert_cmpuint(value(hca[0], "requester_reb_peak"), >, 0);
    g_assert_cmpuint(value(hca[0], "cxtmgt_cqs"), ==, cqs);
    for (unsigned i = 0; i < G_N_ELEMENTS(qp); i++) {
        qp_destroy(qp[i][0]);
        qp_destroy(qp[i][1]);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(gauges); i++) {
        g_assert_cmpuint(value(hca[0], gauges[i]), ==, before[i]);
    }
    for (unsigned side = 0; side < 2; side++) {
        driver_close(pair->drv[side]);
        for (unsigned i = 0; i < G_N_ELEMENTS(gauges); i++) {
            g_assert_cmpuint(value(hca[side], gauges[i]), ==, 0);
        }
    }
    lab_free(pair->lab);
    g_free(pair);
}

/* A reset begins everything again; the cable is still there. */
static void test_reset(void)
{
    Pair *pair = pair_new(10, 65536);
    const Hca *hca = pair->lab->host[0].hca;
    uint64_t *before = all_values(hca);
    Qp *qp[2];

    pair_connect(pair, NULL, qp);
    pair_check_works(pair, qp, 0);
    host_reset(&pair->lab->host[0]);
    for (unsigned i = 0; i < hca_counters_number(); i++) {
        HcaCounter counter;

        hca_counter_get(hca, i, &counter);
        if (g_str_has_suffix(counter.name, "_capacity")) {
            g_assert_cmpuint(counter.value, >, 0);
            g_assert_cmpuint(counter.value, ==, before[i]);
            continue;
        }
        g_assert_cmpuint(counter.value, ==,
                         !strcmp(counter.unit, "link") &&
                             !strcmp(counter.name, "up"));
    }
    g_free(before);
    pair_free(pair);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/counters/table/names", test_names);
    test_add("/counters/table/visit", test_visit);
    test_add("/counters/table/numbers", test_numbers);
    test_add("/counters/table/whole", test_whole);
    test_add("/counters/diag/names", test_diag_names);
    test_add("/counters/diag/values", test_diag_values);
    test_add("/counters/diag/refused", test_diag_refused);
    test_add("/counters/run", test_run);
    test_add("/counters/gauges", test_gauges);
    test_add("/counters/reset", test_reset);
    return g_test_run();
}
