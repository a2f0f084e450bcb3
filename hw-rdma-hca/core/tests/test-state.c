/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state of a card: what it does while it is saved and loaded at each of its
 * turns, which cards take it, and that one that lies is refused, with the reason,
 * and leaves a card that was reset. test-model.c has it in traffic, fuzz-state.c
 * lies at random.
 */
#include <string.h>

#include "lib-bed.h"
#include "lib-mem.h"
#include "lib-state.h"

#define SEND RDMA_HCA_OPCODE_SEND
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define READ RDMA_HCA_OPCODE_RDMA_READ

static void attr_init(QpAttr *attr)
{
    qp_attr_init(attr);
    attr->timeout = BED_TIMEOUT;
}

static Bed *bed_new(unsigned recorder)
{
    BedConfig config = bed_connection(RDMA_HCA_QP_ST_RC);
    HcaConfig cards[2];

    for (unsigned i = 0; i < 2; i++) {
        lab_config(&cards[i], i);
        cards[i].recorder = recorder;
        cards[i].strict = true;
    }
    config.seed = 4600;
    config.cards = cards;
    config.bystander = false;
    attr_init(&config.attr);
    return bed_new_as(&config);
}

/*
 * Packets and Reads that are out, the first packet held back, receives that wait:
 * the peer is silent.
 */
static Bed *bed_new_busy(unsigned recorder)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_CABLE, HCA_FAULT_DELAY, 0);
    Bed *bed = bed_new(recorder);

    plan.rule[0].directions = 1u << HCA_FAULT_TX;
    plan.rule[0].delay_ns = NS_PER_S;
    bed_set_faults(bed, 0, &plan);
    bed_set_weather(bed, 1, (BedWeather) { .lost = true });
    bed_post_recvs(bed, 4, 4096);
    bed_request(bed, 0, SEND, 3000);
    bed_request(bed, 1, WRITE, 3000);
    bed_request(bed, 2, READ, 3000);
    bed_post_requests(bed, 3);
    bed_run(bed);
    return bed;
}

/* Another card, after @config. */
static Hca *card_new(Host *host, const HcaConfig *config)
{
    return hca_new(config, &host->ops, host);
}

/* ---- at each turn ---- */

typedef struct Work {
    const char *name;
    uint8_t opcode;
    uint32_t len;
    bool receives;
} Work;

static const Work works[] = {
    { "send", SEND, 5000, true },
    { "send-imm", RDMA_HCA_OPCODE_SEND_IMM, 300, true },
    { "write", WRITE, 5000, false },
    { "write-imm", RDMA_HCA_OPCODE_RDMA_WRITE_IMM, 5000, true },
    { "read", READ, 5000, false },
    { "cas", RDMA_HCA_OPCODE_ATOMIC_CS, 8, false },
    { "faa", RDMA_HCA_OPCODE_ATOMIC_FA, 8, false },
};

static void each_turn(Bed *bed, const Work *work)
{
    Wc wc;

    for (unsigned i = 0; i < 2; i++) {
        bed_set_weather(
            bed, i, (BedWeather) { .nth = 3, .last = 3, .fate = CABLE_DROP });
    }
    bed_post_recvs(bed, work->receives ? 8 : 0, 8192);
    for (unsigned i = 0; i < 8; i++) {
        SendWr *wr = bed_request(bed, i, work->opcode, work->len);

        wr->raddr = ROUND_UP8(wr->raddr);
    }
    bed_post_requests(bed, 8);
    for (unsigned i = 0; i < 8; i++) {
        cq_expect(bed->cqs[0], &wc, i, 0);
        if (work->receives) {
            cq_expect(bed->cqs[1], &wc, i, 0);
        }
    }
}

/* A packet is lost each way, in each round. */
static void test_each_turn(const void *opaque)
{
    Bed *bed = bed_new(64);

    bed->lab->reload = 1;
    for (unsigned i = 0; i < 4; i++) {
        each_turn(bed, opaque);
    }
    cq_expect_none(bed->cqs[0]);
    cq_expect_none(bed->cqs[1]);
    g_assert_cmpuint(bed->lab->reloads, >, 30);
    bed->lab->reload = 0;
    bed_free(bed);
}

/* ---- cards that take it ---- */

static bool next_value(const HcaOption *option, uint32_t *value)
{
    uint32_t was = *value;

    if (option->power_of_two) {
        *value = was && was <= option->most / 2 ? was * 2 : option->least;
    } else {
        *value = was < option->most ? was + 1 : option->least;
    }
    return *value != was;
}

static bool is_no_matter(const char *name)
{
    return strstr(name, "memory-latency") || strstr(name, "memory-bandwidth") ||
           strcmp(name, "move-limit-ms") == 0 || strcmp(name, "recorder") == 0;
}

/* A card with one option that is another one. */
static void try_config(Host *host, const HcaState *state, HcaConfig *config,
                       const char *name)
{
    Hca *hca = card_new(host, config);
    HcaStateError error;
    bool ok = hca_load(hca, state, &error);

    if (is_no_matter(name)) {
        g_assert_true(ok);
    } else {
        g_autofree char *begin = g_strdup_printf("option: %s is ", name);

        g_assert_false(ok);
        g_assert_true(g_str_has_prefix(error.text, begin));
        g_assert_nonnull(strstr(error.text, " here"));
    }
    hca_free(hca);
}

static void test_options(void)
{
    Bed *bed = bed_new_busy(64);
    Host *host = &bed->lab->host[0];
    HcaState *state = state_save(host->hca);
    HcaConfig config;
    unsigned n;
    const HcaOption *options = hca_config_options(&n);

    for (unsigned i = 0; i < n; i++) {
        config = host->config;
        if (next_value(&options[i], &G_STRUCT_MEMBER(uint32_t, &config,
                                                     options[i].offset))) {
            try_config(host, state, &config, options[i].name);
        }
    }
    config = host->config;
    config.guid++;
    try_config(host, state, &config, "guid");
    config = host->config;
    config.managed = HCA_MANAGED_ON;
    try_config(host, state, &config, "managed");
    config = host->config;
    config.num_vectors--;
    try_config(host, state, &config, "vectors");
    hca_state_free(state);
    bed_free(bed);
}

/* Two programming interfaces, with all else the same. */
static void test_personality(void)
{
    Bed *bed = bed_new_busy(64);
    Host *host = &bed->lab->host[0];
    HcaConfig config = host->config;
    HcaState *state;
    Hca *hca;

    config.personality = HCA_PERSONALITY_MTHCA;
    hca_config_settle(&config);
    config.personality = HCA_PERSONALITY_NATIVE;
    hca = card_new(host, &config);
    state = state_save(hca);
    hca_free(hca);
    config.personality = HCA_PERSONALITY_MTHCA;
    try_config(host, state, &config, "personality");
    hca_state_free(state);
    bed_free(bed);
}

/* A version that did not have it has not saved it. */
static bool take_option_out(HcaState *state, const char *name)
{
    GArray *records = state->records[0];

    for (unsigned i = 0; i < records->len; i++) {
        if (strcmp(records->data + i * g_array_get_element_size(records),
                   name) == 0) {
            g_array_remove_index(records, i);
            return true;
        }
    }
    return false;
}

/* What is not saved is as if there was no such option. */
static void test_fewer_options(void)
{
    Bed *bed = bed_new_busy(64);
    Host *host = &bed->lab->host[0];
    unsigned n, taken = 0, refused = 0;
    const HcaOption *options = hca_config_options(&n);

    for (unsigned i = 0; i < n; i++) {
        uint32_t value = G_STRUCT_MEMBER(uint32_t, &host->config,
                                         options[i].offset);
        HcaState *state = state_save(host->hca);
        HcaStateError error;

        if (take_option_out(state, options[i].name)) {
            Hca *hca = card_new(host, &host->config);
            bool ok = hca_load(hca, state, &error);

            g_assert_true(ok == (value == options[i].initial));
            taken += ok;
            refused += !ok;
            hca_free(hca);
        }
        hca_state_free(state);
    }
    g_assert_cmpuint(taken, >, 2);
    g_assert_cmpuint(refused, >, 2);
    bed_free(bed);
}

/* The other link layer's. */
static void test_link_layer(void)
{
    Bed *bed = bed_new(64);
    Host *host = &bed->lab->host[0];
    HcaState *state = state_save(host->hca);
    HcaStateError error;
    HcaConfig config;
    Hca *hca;

    lab_config(&config, 0);
    config.link_layer = test_is_roce() ? HCA_LINK_LAYER_IB
                                       : HCA_LINK_LAYER_ROCE;
    hca = card_new(host, &config);
    g_assert_false(hca_load(hca, state, &error));
    g_assert_true(g_str_has_prefix(error.text, "option: "));
    hca_free(hca);
    hca_state_free(state);
    bed_free(bed);
}

static void count_records(void *opaque, const char *line)
{
    ++*(unsigned *)opaque;
}

/* A recorder of another size has the last ones. */
static void test_recorder(void)
{
    Bed *bed = bed_new_busy(64);
    Host *host = &bed->lab->host[0];
    HcaState *state = state_save(host->hca);
    HcaConfig config = host->config;
    unsigned most[] = { 64, 8, 0 };

    for (unsigned i = 0; i < G_N_ELEMENTS(most); i++) {
        HcaStateError error;
        unsigned n = 0;
        Hca *hca;

        config.recorder = most[i];
        hca = card_new(host, &config);
        g_assert_true(hca_load(hca, state, &error));
        hca_recorder_visit(hca, count_records, &n);
        g_assert_cmpuint(n > 0, ==, most[i] > 0);
        g_assert_cmpuint(n, <=, 2 * most[i] + 2);
        hca_free(hca);
    }
    hca_state_free(state);
    bed_free(bed);
}

/* ---- lies ---- */

#define BAD_QPN 99999

static const StateLie lies[] = {
    { "sq-place", 1, "qpn", BAD_QPN, "QP 99999" },
    { "rq-place", 1, "qpn", BAD_QPN, "QP 99999" },
    { "wqe-count", 1, "qpn", BAD_QPN, "nothing to count" },
    { "uarc", 2, NULL, 0, "2 records" },
    { "uarc", 1, "log", 32, "pages of 2^32" },
    { "option", 0, NULL, 0, "is not known there and" },
    { "option", 3, NULL, 0, "is not known there and" },
    { "option", -1, "name", 'x', "is not known here" },
    { "option", -1, "value", 77777, "is 77777 there" },
    { "card", 0, NULL, 0, "0 records" },
    { "card", 2, NULL, 0, "2 records" },
    { "record", -1, "kind", HCA_RECORD_NONE, "no record" },
    { "record", -1, "kind", HCA_RECORD_LOOPBACK + 1, "no record" },
    { "recorder", 2, NULL, 0, "2 records" },
    { "host-faults", 0, NULL, 0, "0 records" },
    { "fault-rule", 1000, NULL, 0, "1000 rules" },
    { "fault-rule", -1, "rule.place", HCA_FAULT_NPLACES, "must" },
    { "link", 0, NULL, 0, "no such link" },
    { "link", 1, "down_ends", 4, "no such link" },
    { "injector", 2, NULL, 0, "2 records" },
    { "cable-rule", 1000, NULL, 0, "1000 rules" },
    { "held", 2, NULL, 0, "cannot be held" },
    { "held", -1, "direction", HCA_FAULT_NDIRECTIONS, "cannot be held" },
    { "held", -1, "len", 0, "cannot be held" },
    { "held", -1, "len", HCA_LINK_MAX_PACKET + 1, "cannot be held" },
    { "held", -1, "vl", 16, "cannot be held" },
    { "held", -1, "fault.action", HCA_FAULT_NPACKET_ACTIONS, "cannot be held" },
    { "held", -1, "fault.rule", HCA_FAULT_MAX_RULES, "cannot be held" },
    { "link-tx", 4 << 20, NULL, 0, "4194304 bytes" },
    { "link-rx", 4 << 20, NULL, 0, "4194304 bytes" },
    { "doubled", 65535, NULL, 0, "65535 bytes" },
    { "loopback", 3, NULL, 0, "packets that cannot be" },
    { "loopback", 4, NULL, 0, "packets that cannot be" },
    { "loopback", 8, "value", 5, "packets that cannot be" },
    { "node", 0, NULL, 0, "0 records" },
    { "node", 1, "port.info.state", 9, "no such node" },
    { "node", 1, "node.ntraps", 1000, "no such node" },
    { "node", 1, "sl_to_vl", 16, "no such node" },
    { "port", 0, NULL, 0, "no such port" },
    { "port", 1, "port.told", 99, "no such port" },
    { "port", 1, "port.arbiter.last", 16, "no such port" },
    { "gid", 1, "index", 60000, "no GID 60000" },
    { "mcast-group", 1, "index", 255, "no group 255" },
    { "mcast-chains", 2, NULL, 0, "no such chains" },
    { "mcast-chains", 1, "number", 8193, "no such chains" },
    { "mcast-chain-entry", 1, "index", 5, "no entry 5 of a chain" },
    { "flow", 1, "index", 60000, "no flow rule 60000" },
    { "v2p", 2, NULL, 0, "2 records" },
    { "v2p", 1, "log_mpts", 60, "no such tables" },
    { "v2p", 1, "mtt_base", 1, "no such tables" },
    { "v2p-icm", -1, "virt", UINT64_MAX, "cannot be mapped" },
    { "v2p-icm", -1, "npages", UINT32_MAX, "cannot be mapped" },
    { "mpt", -1, "word", UINT32_MAX, "no such entries" },
    { "tpt-line", 1, "number", UINT64_MAX, "no place for a line" },
    { "late-interrupt", 65535, NULL, 0, "65535 late interrupts" },
    { "cxtmgt", 0, NULL, 0, "0 records" },
    { "cxtmgt", 1, "qpc.log_num", 63, "no such tables" },
    { "cxtmgt", 1, "cqc.base", 1, "no such tables" },
    { "cxtmgt", 1, "special", BAD_QPN, "no such special QPs" },
    { "cxtmgt", 1, "event_eq", 250, "events to EQ 250" },
    { "cxt-icm", -1, "virt", UINT64_MAX, "cannot be mapped" },
    { "eq", -1, "eqn", 200, "EQ 200 cannot be" },
    { "eq-on-bus", 1, "eqn", 200, "no EQ 200 on the bus" },
    { "cq", -1, "cqn", BAD_QPN, "CQ 99999 cannot be" },
    { "cq", -1, "attr.eqn", 7, "cannot be" },
    { "cq-on-bus", 1, "cqn", BAD_QPN, "no CQ 99999 on the bus" },
    { "srq", 1, "srqn", BAD_QPN, "SRQ 99999 cannot be" },
    { "qp-counters", 1, "number", BAD_QPN, "counters of set 99999" },
    { "qp", -1, "qpn", BAD_QPN, "QP 99999 cannot be" },
    { "qp", -1, "state", 99, "cannot be" },
    { "qp", -1, "attr.service", 99, "cannot be" },
    { "qp", -1, "attr.sq_cqn", BAD_QPN, "cannot be" },
    { "qp", -1, "req.next_psn", 0x1000000, "cannot be" },
    { "qp", -1, "req.unacked_psn", 0x1000000, "cannot be" },
    { "qp", -1, "req.barrier.ref.opcode", HCA_NOPCODES, "cannot be" },
    { "qp", -1, "send.chained.opcode", HCA_NOPCODES, "cannot be" },
    { "qp", -1, "resp.expected_psn", 0x1000000, "cannot be" },
    { "qp", -1, "resp.replay_next", HCA_MAX_RD_ATOMIC, "cannot be" },
    { "qp", -1, "resp.message", HCA_NREQUEST_KINDS, "cannot be" },
    { "qp", -1, "resp.cnp_owed", true, "cannot be" }, /* InfiniBand */
    { "doorbell", 1, "qpn", BAD_QPN, "no room in QP 99999" },
    { "wqe", 1, "qpn", BAD_QPN, "a WQE of QP 99999" },
    { "sent", -1, "qpn", BAD_QPN, "a packet of QP 99999" },
    { "sent", -1, "packet.wqe_opcode", HCA_NOPCODES, "a packet of QP" },
    { "sent", -1, "packet.psn", 0x1000000, "a packet of QP" },
    { "sent", -1, "packet.nrefs", RDMA_HCA_MAX_SGE + 1, "a packet of QP" },
    { "sent", -1, "packet.len", 1024 + 1, "a packet of QP" },
    { "sent", -1, "packet.planned.way", HCA_PLANNED_ANSWER + 1, "a packet of" },
    { "sent", -1, "packet.operation", 31, "a packet of QP" },
    { "sent-piece", -1, "len", UINT32_MAX, "pieces of QP" },
    { "sent-piece", 0, NULL, 0, "pieces of QP" },
    { "sent-piece", 1000, NULL, 0, "pieces of no packet" },
    { "read", -1, "qpn", BAD_QPN, "a Read of QP 99999" },
    { "read", -1, "read.wqe_opcode", HCA_NOPCODES, "a Read of QP" },
    { "read", -1, "read.psn", 0x1000000, "a Read of QP" },
    { "read", -1, "read.npsn", 0, "a Read of QP" },
    { "read", -1, "read.npsn", 0x800000, "a Read of QP" },
    { "read", -1, "read.answered", 0x7fffff, "a Read of QP" },
    { "read", -1, "read.asked", 0x7fffff, "a Read of QP" },
    { "read", -1, "read.received", 3001, "a Read of QP" },
    { "read", -1, "read.nentries", RDMA_HCA_MAX_SGE + 1, "a Read of QP" },
    { "read", -1, "read.planned.way", HCA_PLANNED_ANSWER + 1, "a Read of QP" },
    { "read-entry", 0, NULL, 0, "entries of QP" },
    { "read-entry", 1000, NULL, 0, "entries of no Read" },
    { "answer", 1, "qpn", BAD_QPN, "an answer of QP 99999" },
    { "replay", 1, "qpn", BAD_QPN, "an atomic of QP 99999" },
    { "receive", 1, "qpn", BAD_QPN, "a receive of QP 99999" },
    { "event", 1, "number", BAD_QPN, "of 99999" },
    { "strict", 1, "qpn", HCA_QPN_MASK + 1, "QP 16777216" },
    { "eth-queue", 1, "number", 99, "no queue 99" },
    { "eth", 2, NULL, 0, "no such function" },
    { "eth-held", 5, NULL, 0, "frames that cannot wait" },
    { "script", 1000, NULL, 0, "1000 tasks" },
    { "script", 1, NULL, 0, "rule 0 is no task" },
    { "bars", 0, NULL, 0, "0 records" },
    { "half-doorbell", 1, "uar", UINT32_MAX, "no such doorbell" },
    { "half-doorbell", 1, "doorbell", 255, "no such doorbell" },
    { "late-doorbell", 1 << 20, NULL, 0, "1048576 late doorbells" },
    { "ceu", 2, NULL, 0, "2 records" },
    { "ceu", 1, "ceu.state", 99, "no command is in hand" },
    { "ceu", 1, "event_waits", 1, "no event of a command" },
    { "arrived", 1, NULL, 0, "a packet that cannot wait" },
};

/* But for what the cable has carried, ever. */
static GByteArray *bytes_of_card(Host *host)
{
    const StateLie nothing = { "link", 1, "tx_gone", 0, NULL };
    HcaState *state = state_save(host->hca);

    state_tell(state, &nothing);
    return state_write(state);
}

static void test_lie(const void *opaque)
{
    const StateLie *lie = opaque;
    Bed *bed = bed_new_busy(0);
    Host *host = &bed->lab->host[0];
    HcaState *state = state_save(host->hca);
    g_autoptr(GByteArray) should_be = NULL;
    g_autoptr(GByteArray) is = NULL;
    g_autofree char *begin = g_strdup_printf("%s: ", lie->section);
    HcaStateError error;

    hca_reset(host->hca);
    should_be = bytes_of_card(host);
    g_assert_true(hca_load(host->hca, state, &error));
    state_tell(state, lie);
    g_assert_false(hca_load(host->hca, state, &error));
    g_test_message("%s", error.text);
    g_assert_true(g_str_has_prefix(error.text, begin));
    g_assert_nonnull(strstr(error.text, lie->why));
    is = bytes_of_card(host);
    state_expect(should_be, is);
    hca_state_free(state);
    bed_drop(bed);
}

/* Times may be any: they are far away, or over. */
static void test_any_time(void)
{
    static const uint64_t times[] = {
        0, 1, INT64_MAX - 1, INT64_MAX, (uint64_t)INT64_MIN, UINT64_MAX
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(times); i++) {
        const StateLie told[] = {
            { "card", 1, "timers_stand", true, NULL },
            { "card", 1, "timers_stood_at", times[i], NULL },
            { "link", 1, "tx_blocked", true, NULL },
            { "link", 1, "blocked_at", times[i], NULL },
            { "link", 1, "away_end", times[i], NULL },
            { "qp", -1, "deadline", times[i], NULL },
        };
        Bed *bed = bed_new_busy(0);
        Host *host = &bed->lab->host[0];
        HcaState *state = state_save(host->hca);
        HcaStateError error;

        for (unsigned n = 0; n < G_N_ELEMENTS(told); n++) {
            state_tell(state, &told[n]);
        }
        g_assert_true(hca_load(host->hca, state, &error));
        hca_run(host->hca);
        g_assert_false(host->hca->timers_stand);
        hca_state_free(state);
        bed_drop(bed);
    }
}

/* Each section that can refuse has a lie here. */
static void test_all_lie(void)
{
    for (unsigned i = 0; i < hca_state_nsections(); i++) {
        const char *name = hca_state_section(i)->name;
        bool found = strcmp(name, "counter") == 0;

        for (unsigned n = 0; !found && n < G_N_ELEMENTS(lies); n++) {
            found = strcmp(lies[n].section, name) == 0;
        }
        if (!found) {
            g_error("no lie of section %s", name);
        }
    }
}

/* ---- bytes ---- */

/* What ends early, or is of another version, is no state. */
static void test_bytes(void)
{
    Bed *bed = bed_new_busy(64);
    g_autoptr(GByteArray)
        bytes = state_write(state_save(bed->lab->host[0].hca));
    HcaStateError error;

    for (unsigned len = 0; len < bytes->len; len += 1 + len / 100) {
        g_autofree uint8_t *part = g_memdup2(bytes->data, len);

        g_assert_null(state_read(part, len, &error));
        g_assert_true(g_str_has_prefix(error.text, "no section "));
    }
    bytes->data[24]++; /* of the first section, behind its name */
    g_assert_null(state_read(bytes->data, bytes->len, &error));
    bed_free(bed);
}

/* A counter that this card does not have is nobody's. */
static void test_counter(void)
{
    Bed *bed = bed_new(64);
    Host *host = &bed->lab->host[0];
    HcaState *state = state_save(host->hca);
    StateLie lie = { "counter", -1, "number", UINT32_MAX, NULL };
    HcaStateError error;

    state_tell(state, &lie);
    g_assert_true(hca_load(host->hca, state, &error));
    hca_state_free(state);
    host->kicked = true;
    bed->lab->reloaded(bed);
    bed_free(bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(works); i++) {
        test_add_data_each_link(
            test_named("/state/each-turn/%s", works[i].name), &works[i],
            test_each_turn);
    }
    test_add_each_link("/state/options", test_options);
    test_add("/state/personality", test_personality);
    test_add_each_link("/state/fewer-options", test_fewer_options);
    test_add_each_link("/state/link-layer", test_link_layer);
    test_add_each_link("/state/recorder", test_recorder);
    for (unsigned i = 0; i < G_N_ELEMENTS(lies); i++) {
        test_add_data(test_named("/state/lie/%s-%u", lies[i].section, i),
                      &lies[i], test_lie);
    }
    test_add("/state/lie/all", test_all_lie);
    test_add("/state/any-time", test_any_time);
    test_add_each_link("/state/bytes", test_bytes);
    test_add_each_link("/state/counter", test_counter);
    return g_test_run();
}
