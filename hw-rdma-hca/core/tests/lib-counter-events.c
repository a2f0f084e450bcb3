/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-counter-events.h"
#include "lib-mem.h"

#include <string.h>

/* Which program has to move which counters: the first row that fits. */
static const struct {
    const char *unit;
    const char *name; /* NULL: all of the unit */
    EventsSubject subject;
} movers[] = {
    { "cxtmgt", "event_congestion", EVENTS_ENGINES },
    { "cxtmgt", "event_sq_drained", EVENTS_ENGINES },
    { "cxtmgt", "event_wq_inval_req_error", EVENTS_ENGINES },
    { "link", "tx_waits", EVENTS_ENGINES },
    { "send", "wqe_bad_address", EVENTS_NETWORK },
    { "send", NULL, EVENTS_ENGINES },
    { "requester", NULL, EVENTS_ENGINES },
    { "responder", NULL, EVENTS_ENGINES },
    { "ceu", "status_bad_pkt", EVENTS_MANAGEMENT },
    { "ceu", NULL, EVENTS_HOST },
    { "cxtmgt", "event_port_mng", EVENTS_MANAGEMENT },
    { "cxtmgt", "event_path_mig", EVENTS_ENGINES },
    { "cxtmgt", "event_path_mig_failed", EVENTS_ENGINES },
    { "cxtmgt", NULL, EVENTS_HOST },
    { "v2p", NULL, EVENTS_HOST },
    { "port", "drop_mgmt", EVENTS_MANAGEMENT },
    { "port", "drop_fault", EVENTS_ENGINES },
    { "port", "tx_inactive", EVENTS_MANAGEMENT },
    { "port", "tx_mgmt_full", EVENTS_MANAGEMENT },
    { "port", "tx_multicast", EVENTS_MANAGEMENT },
    { "port", "rx_multicast_all", EVENTS_MANAGEMENT },
    { "port", "vl15_dropped", EVENTS_MANAGEMENT },
    { "port", "qp1_dropped", EVENTS_MANAGEMENT },
    { "port", NULL, EVENTS_NETWORK },
    { "link", "tx_wait_ns", EVENTS_MANAGEMENT },
    { "link", "rx_unheard", EVENTS_ENGINES },
    { "link", NULL, EVENTS_NETWORK },
    { "mgmt", NULL, EVENTS_MANAGEMENT },
    { "fault", "tx_down", EVENTS_ENGINES },
    { "fault", "rx_down", EVENTS_ENGINES },
    { "fault", NULL, EVENTS_NETWORK },
    { "host_fault", NULL, EVENTS_HOST },
    { "verb_fault", NULL, EVENTS_ENGINES },
    { "capture", NULL, EVENTS_NETWORK },
    { "ethernet", NULL, EVENTS_NETWORK },
};

/* Counters that were not 0 in some test. */
static bool *moved;

Bed *events_new_by(uint8_t service, const QpAttr *attr, const HcaConfig *cards)
{
    BedConfig config = bed_connection(service);

    config.seed = 77;
    config.bystander = false;
    config.own_cq = false;
    config.cards = cards;
    if (attr) {
        config.attr = *attr;
    }
    return bed_new_as(&config);
}

Bed *events_new_rc(const QpAttr *attr)
{
    return events_new_by(RDMA_HCA_QP_ST_RC, attr, NULL);
}

void events_look_lab(Lab *lab)
{
    for (unsigned side = 0; side < 2; side++) {
        for (unsigned i = 0; i < hca_counters_number(); i++) {
            HcaCounter counter;

            hca_counter_get(lab->host[side].hca, i, &counter);
            moved[i] |= counter.value != 0;
        }
    }
}

void events_look(Bed *bed)
{
    events_look_lab(bed->lab);
}

void events_look_and_free(Bed *bed)
{
    events_look(bed);
    bed_free(bed);
}

void events_expect_some(const Bed *bed, unsigned side, const char *name)
{
    if (!bed_counter(bed, side, name)) {
        g_error("%s of side %u is 0", name, side);
    }
}

SendWr *events_request(Bed *bed, unsigned i, uint8_t opcode, uint32_t len)
{
    /* Atomics want an aligned address. */
    uint64_t aligned = 4096 - (bed->pair->mr[1]->va & 4095);

    bed->wr[i] = pair_send(bed->pair, 0, opcode, i, &bed->sge[i], 0, len,
                           aligned);
    return &bed->wr[i];
}

void events_post_recv(Bed *bed, uint32_t len)
{
    pair_post_recv(bed->pair, 1, bed->qps[1], 0, 0, len);
}

HcaPacket events_forge(Bed *bed, uint8_t opcode, uint32_t psn)
{
    return (HcaPacket) {
        .opcode = opcode,
        .dlid = bed->lab->host[1].config.lid,
        .slid = bed->lab->host[0].config.lid,
        .pkey = HCA_DEFAULT_PKEY,
        .dest_qp = bed->qps[1]->qpn,
        .psn = psn,
        .ack_req = true,
        .rkey = bed->pair->mr[1]->key,
        .va = bed->pair->mr[1]->va,
        .qkey = 0x11111111,
    };
}

void events_memory_management(void)
{
    const uint64_t va = 0x10000;
    Bed *bed = events_new_rc(NULL);
    Mr *mr = mem_region_new(bed->drv[1], bed->pair->pd[1], 2);
    uint32_t window = mem_window_new(bed->drv[1], bed->pair->pd[1], 2);
    SendWr wr;
    Wc wc;

    mem_register(bed->qps[1], mr, va, 4096,
                 ACCESS_ALL | RDMA_HCA_ACCESS_MW_BIND);
    window = mem_bind(bed->qps[1], 2, window, mr, va, 64,
                      RDMA_HCA_ACCESS_REMOTE_READ);
    bed_counted(bed, 1, "v2p_windows", 1);
    events_look(bed);
    wr = mem_inv_wr(window);
    mem_do(bed->qps[1], &wr, 0);
    bed_counted(bed, 1, "v2p_windows", 0);
    events_post_recv(bed, 64);
    wr = mem_send_inv_wr(mr->key);
    mem_do(bed->qps[0], &wr, 0);
    cq_expect(bed->cqs[1], &wc, 0, 0);
    bed_counted(bed, 1, "v2p_mem_ops_refused", 0);
    events_post_recv(bed, 64);
    mem_do(bed->qps[0], &wr, RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR);
    bed_counted(bed, 1, "v2p_fast_regs", 1);
    bed_counted(bed, 1, "v2p_binds", 1);
    bed_counted(bed, 1, "v2p_local_invs", 1);
    bed_counted(bed, 1, "v2p_remote_invs", 1);
    bed_counted(bed, 1, "v2p_mem_ops_refused", 1);
    bed_counted(bed, 1, "responder_refused_invalidation", 1);
    bed_counted(bed, 0, "send_wqe_send_inv", 2);
    bed_counted(bed, 1, "send_wqe_reg_mr", 1);
    bed_counted(bed, 1, "send_wqe_bind", 1);
    bed_counted(bed, 1, "send_wqe_local_inv", 1);
    events_look_and_free(bed);
}

/* ---- all of them ---- */

/* Channels that only read; they write when a refill displaces a line. */
static bool may_rest(const HcaCounter *counter)
{
    static const char *const readers[] = { "db", "wp_wqe", "wp_nd", "rwm" };

    for (unsigned i = 0; i < G_N_ELEMENTS(readers); i++) {
        g_autofree char *writes = g_strdup_printf("writes_%s", readers[i]);
        g_autofree char *bytes = g_strdup_printf("write_bytes_%s", readers[i]);

        if (g_str_equal(counter->name, writes) ||
            g_str_equal(counter->name, bytes)) {
            return true;
        }
    }
    return false;
}

static EventsSubject mover(const HcaCounter *counter)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(movers); i++) {
        if (g_str_equal(movers[i].unit, counter->unit) &&
            (!movers[i].name || g_str_equal(movers[i].name, counter->name))) {
            return movers[i].subject;
        }
    }
    g_error("no program moves the counters of %s", counter->unit);
}

static void test_all_moved(EventsSubject subject)
{
    unsigned resting = 0;
    Bed *bed;

    bed = events_new_rc(NULL);
    for (unsigned i = 0; i < hca_counters_number(); i++) {
        HcaCounter counter;

        hca_counter_get(bed->lab->host[0].hca, i, &counter);
        if (mover(&counter) == subject && !moved[i] && !may_rest(&counter)) {
            g_test_message("%s_%s never moved", counter.unit, counter.name);
            resting++;
        }
    }
    events_look_and_free(bed);
    g_assert_cmpuint(resting, ==, 0);
}

/* All tests in one: which counters have moved is known at their end. */
static void test_every_counter(gconstpointer opaque)
{
    const EventsProgram *program = opaque;

    memset(moved, 0, hca_counters_number() * sizeof(*moved));
    for (unsigned i = 0; i < program->n; i++) {
        program->tests[i].test();
    }
    test_all_moved(program->subject);
}

int events_main(int argc, char **argv, const EventsProgram *program)
{
    int status;

    g_test_init(&argc, &argv, NULL);
    moved = g_new0(bool, hca_counters_number());
    for (unsigned i = 0; i < program->n; i++) {
        const char *path = test_named("/counter-events/%s",
                                      program->tests[i].path);

        test_add(path, program->tests[i].test);
    }
    test_add_data("/counter-events/every-counter", program, test_every_counter);
    status = g_test_run();
    g_free(moved);
    return status;
}
