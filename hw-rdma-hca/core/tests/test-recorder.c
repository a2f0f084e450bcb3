/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flight recorder: what it holds, as lines and as a capture; when the
 * machine is told that something broke; and what queues hold, in words.
 */
#include <inttypes.h>
#include <stdio.h>

#include "lib-bed.h"
#include "lib-pcapng.h"
#include "lib-state.h"
#include "lib-subnet.h"
#include "lib-transfer.h"

#define SEND RDMA_HCA_OPCODE_SEND
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define ENTRIES 1024
#define NS_PER_LINE_SECOND UINT64_C(1000000000)

/* A connection of cards whose recorders have @entries; CQs of 2^@log_cq. */
static Bed *new_bed_as(uint32_t entries, unsigned log_cq)
{
    BedConfig config = bed_connection(HCA_SERVICE_RC);
    HcaConfig cards[2];

    for (unsigned i = 0; i < 2; i++) {
        lab_config(&cards[i], i);
        cards[i].recorder = entries;
    }
    config.seed = 7100;
    config.cards = cards;
    config.bystander = false;
    config.own_cq = log_cq != 0;
    config.log_cq = log_cq;
    return bed_new_as(&config);
}

static Bed *new_bed(uint32_t entries)
{
    return new_bed_as(entries, 0);
}

/* Lines of a text */

static void add_line(void *opaque, const char *line)
{
    g_assert_null(strchr(line, '\n'));
    g_ptr_array_add(opaque, g_strdup(line));
}

static GPtrArray *recorded(const Bed *bed, unsigned side)
{
    GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);

    hca_recorder_visit(bed->lab->host[side].hca, add_line, lines);
    return lines;
}

static GPtrArray *queues(const Bed *bed, unsigned side)
{
    GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);

    hca_queues_visit(bed->lab->host[side].hca, add_line, lines);
    return lines;
}

static const char *line_at(const GPtrArray *lines, unsigned i)
{
    return g_ptr_array_index(lines, i);
}

/* The first line from @*at on that has @part; @*at is then behind it. */
static const char *find(const GPtrArray *lines, unsigned *at, const char *part)
{
    while (*at < lines->len) {
        const char *line = line_at(lines, (*at)++);

        if (strstr(line, part)) {
            return line;
        }
    }
    return NULL;
}

/* One has it; @where is where the next has to follow. */
static void has(const GPtrArray *lines, unsigned *at, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
static void has(const GPtrArray *lines, unsigned *at, const char *format, ...)
{
    g_autofree char *part = NULL;
    va_list args;

    va_start(args, format);
    part = g_strdup_vprintf(format, args);
    va_end(args);
    if (!find(lines, at, part)) {
        for (unsigned i = 0; i < lines->len; i++) {
            g_test_message("%s", line_at(lines, i));
        }
        g_test_message("no line has \"%s\"", part);
        g_test_fail();
    }
}

static unsigned count(const GPtrArray *lines, const char *part)
{
    unsigned n = 0;

    for (unsigned i = 0; i < lines->len; i++) {
        n += strstr(line_at(lines, i), part) != NULL;
    }
    return n;
}

static int64_t time_of(const char *line)
{
    guint64 s, ns;

    g_assert_cmpint(sscanf(line, "%" SCNu64 ".%9" SCNu64, &s, &ns), ==, 2);
    return s * NS_PER_LINE_SECOND + ns;
}

static void send_one(Bed *bed, uint32_t len)
{
    bed_post_recvs(bed, 1, len);
    bed_request(bed, 0, SEND, len);
    bed_post_requests(bed, 1);
    bed_expect_end(bed, 0, 0);
    bed_expect_end(bed, 1, 0);
}

/* What it holds */

static void test_off(void)
{
    Bed *bed = new_bed(0);
    GPtrArray *lines;

    send_one(bed, 100);
    lines = recorded(bed, 0);
    g_assert_cmpuint(lines->len, ==, 0);
    g_assert_null(hca_recorder_pcapng(bed->lab->host[0].hca));
    g_ptr_array_unref(lines);
    bed_free(bed);
}

/* A Send at both ends: each has what happened there, in its order. */
static void test_exchange(void)
{
    Bed *bed = new_bed(ENTRIES);
    uint32_t qpn[2] = { bed->qps[0]->qpn, bed->qps[1]->qpn };
    GPtrArray *lines;
    unsigned at = 0;

    send_one(bed, 100);
    lines = recorded(bed, 0);
    has(lines, &at, "COMMAND opcode 0x");
    has(lines, &at, "QP_STATE qpn 0x%x old RTR new RTS", qpn[0]);
    has(lines, &at, "WQE qpn 0x%x offset 0x0 opcode 0xa length 100", qpn[0]);
    has(lines, &at, "TX   dqpn 0x%x RC_SEND_ONLY psn 0x", qpn[1]);
    has(lines, &at, "RX   dqpn 0x%x RC_ACK psn 0x", qpn[0]);
    has(lines, &at, "CQE cqn 0x%x qpn 0x%x opcode 0xa syndrome 0x0",
        bed->cqs[0]->cqn, qpn[0]);
    g_ptr_array_unref(lines);
    lines = recorded(bed, 1);
    at = 0;
    has(lines, &at, "RX   dqpn 0x%x RC_SEND_ONLY psn 0x", qpn[1]);
    has(lines, &at, "CQE cqn 0x%x qpn 0x%x", bed->cqs[1]->cqn, qpn[1]);
    has(lines, &at, "TX   dqpn 0x%x RC_ACK psn 0x", qpn[0]);
    g_assert_cmpuint(count(lines, " ack 0x"), ==, 1);
    g_ptr_array_unref(lines);
    bed_free(bed);
}

/* Full, it has the last ones, whatever the ring's place. */
static void test_wraps(void)
{
    Bed *bed = new_bed(16);

    for (unsigned i = 0; i < 40; i++) {
        GPtrArray *lines;
        unsigned at = 0;

        send_one(bed, 8 + i);
        lines = recorded(bed, 0);
        g_assert_cmpuint(lines->len, ==, 16);
        has(lines, &at, "length %u", 8 + i);
        for (unsigned l = 1; l < lines->len; l++) {
            g_assert_cmpint(time_of(line_at(lines, l - 1)), <=,
                            time_of(line_at(lines, l)));
        }
        g_ptr_array_unref(lines);
    }
    bed_free(bed);
}

/* A card that had nothing to do: what comes then has the time of then. */
static void test_time(void)
{
    Bed *bed = new_bed(ENTRIES);
    GPtrArray *lines;
    unsigned at = 0;
    int64_t before;

    send_one(bed, 100);
    lab_sleep(bed->lab, 5 * NS_PER_S);
    before = bed->lab->now;
    send_one(bed, 200);
    lines = recorded(bed, 0);
    g_assert_nonnull(find(lines, &at, "length 100"));
    g_assert_cmpint(time_of(find(lines, &at, "WQE")), >=, before);
    g_assert_cmpint(time_of(find(lines, &at, "CQE")), <=, bed->lab->now);
    g_ptr_array_unref(lines);
    bed_free(bed);
}

static void test_loopback(void)
{
    HcaConfig cards[2];
    GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);
    unsigned at = 0;
    UdAddress to;
    SendWr wr;
    Sge sge;
    Pair *pair;
    Qp *qp;
    Wc wc;

    for (unsigned i = 0; i < 2; i++) {
        lab_config(&cards[i], i);
        cards[i].recorder = ENTRIES;
    }
    pair = pair_new_with(7101, 65536, cards, NULL, NULL);
    qp = pair_new_ud(pair, 0);
    to = transfer_address(qp, test_is_roce());
    pair_post_recv(pair, 0, qp, 1, 4096, 4096);
    wr = pair_send(pair, 0, SEND, 2, &sge, 0, 64, 0);
    wr.ud = &to;
    g_assert_true(qp_post_send(qp, &wr, 1));
    for (unsigned i = 0; i < 2; i++) {
        g_assert_true(cq_wait(pair->cq[0], &wc, PAIR_PATIENCE));
    }
    hca_recorder_visit(pair->lab->host[0].hca, add_line, lines);
    has(lines, &at, "LOOP dqpn 0x%x UD_SEND_ONLY", qp->qpn);
    g_assert_cmpuint(count(lines, " TX "), ==, 0);
    g_assert_cmpuint(count(lines, " RX "), ==, 0);
    g_ptr_array_unref(lines);
    pair_free(pair);
}

/* A packet that the plan of faults has dropped is there, and says so. */
static void test_fault(void)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);
    Bed *bed = new_bed(ENTRIES);
    GPtrArray *lines;
    unsigned at = 0;

    plan.rule[0].count = 1;
    plan.rule[0].directions = 1u << HCA_FAULT_TX;
    bed_set_faults(bed, 0, &plan);
    send_one(bed, 100);
    lines = recorded(bed, 0);
    has(lines, &at, "FAULT dqpn 0x%x direction 0 action 0 rule 0",
        bed->qps[1]->qpn);
    g_assert_true(g_str_has_suffix(find(lines, &at, "TX   dqpn"),
                                   "fault: dropped (rule 0)"));
    has(lines, &at, "TIMEOUT qpn 0x%x", bed->qps[0]->qpn);
    has(lines, &at, "RETRANSMIT qpn 0x%x", bed->qps[0]->qpn);
    g_assert_false(g_str_has_suffix(find(lines, &at, "TX   dqpn"), ")"));
    g_ptr_array_unref(lines);
    bed_free(bed);
}

/* A MAD's header is among what is kept. */
static void test_mad(void)
{
    HcaConfig config[2];
    GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);
    unsigned at = 0;
    Subnet *s;

    subnet_config(config, HCA_MANAGED_ON, HCA_MANAGED_ON);
    config[0].recorder = config[1].recorder = ENTRIES;
    s = subnet_new_with(7102, config);
    subnet_take(s, 0, SUBNET_SMI);
    subnet_get(s, HCA_ATTR_NODE_INFO, 0);
    hca_recorder_visit(subnet_card(s, 0), add_line, lines);
    has(lines, &at, "sqpn 0x0 mad class 0x81 method 0x01 attribute 0x0011");
    has(lines, &at, "mad class 0x81 method 0x81 attribute 0x0011");
    g_ptr_array_unref(lines);
    subnet_free(s);
}

/* A reset leaves what there is: it may be what one wants to know about. */
static void test_outlives_reset(void)
{
    Bed *bed = new_bed(ENTRIES);
    GPtrArray *lines;
    unsigned at = 0;

    send_one(bed, 100);
    hca_reset(bed->lab->host[0].hca);
    lines = recorded(bed, 0);
    has(lines, &at, "TX   dqpn 0x%x", bed->qps[1]->qpn);
    has(lines, &at, "RESET card 0");
    g_ptr_array_unref(lines);
    bed_free(bed);
}

/* What there is not, of a state. */
typedef struct Odd {
    uint8_t kind;
    const char *field;
    uint8_t value;
    const char *text;
} Odd;

static const Odd odds[] = {
    { HCA_RECORD_EVENT, "event", HCA_TRACE_NEVENTS, "? number 0x" },
    { HCA_RECORD_EVENT, "event", UINT8_MAX, "? number 0x" },
    { HCA_RECORD_TX, "fault", HCA_FAULT_NPACKET_ACTIONS, "fault: ? (rule " },
    { HCA_RECORD_RX, "fault", HCA_RECORD_NO_FAULT - 1, "fault: ? (rule " },
};

/* The first record becomes @odd. */
static void load_odd(Hca *hca, const Odd *odd)
{
    const StateLie kind = { "record", -1, "kind", odd->kind, NULL };
    const StateLie value = { "record", -1, odd->field, odd->value, NULL };
    HcaState *state = state_save(hca);
    HcaStateError error;

    state_tell(state, &kind);
    state_tell(state, &value);
    g_assert_true(hca_load(hca, state, &error));
    hca_state_free(state);
}

static void test_odd(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(odds); i++) {
        Bed *bed = new_bed(ENTRIES);
        Hca *hca = bed->lab->host[0].hca;
        GPtrArray *lines;
        unsigned at = 0;

        load_odd(hca, &odds[i]);
        lines = recorded(bed, 0);
        has(lines, &at, "%s", odds[i].text);
        g_assert_cmpuint(at, ==, 1);
        g_byte_array_unref(hca_recorder_pcapng(hca));
        g_ptr_array_unref(lines);
        bed_free(bed);
    }
}

static int64_t no_time(void *opaque)
{
    return 7;
}

/* The first bytes of a packet, however long it is, and no byte more. */
static void test_lengths(void)
{
    HcaRecorder *recorder = hca_recorder_new(16, no_time, NULL);
    uint8_t packet[200];

    for (unsigned i = 0; i < sizeof(packet); i++) {
        packet[i] = i + 1;
    }
    for (unsigned len = 1; len <= sizeof(packet); len++) {
        unsigned kept = MIN(len, HCA_RECORD_HEAD);
        g_autofree uint8_t *exact = g_memdup2(packet, len);
        HcaRecord *record;

        memset(recorder->ring.records, 0, 16 * sizeof(HcaRecord));
        record = hca_recorder_packet(recorder, HCA_RECORD_RX, exact, len);
        g_assert_cmpuint(record->len, ==, len);
        g_assert_cmpint(record->at_ns, ==, 7);
        g_assert_cmpmem(record->head, kept, packet, kept);
        for (unsigned i = kept; i < HCA_RECORD_HEAD; i++) {
            g_assert_cmpuint(record->head[i], ==, 0);
        }
    }
    hca_recorder_free(recorder);
}

static void record_numbers(HcaRecorder *recorder, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        hca_recorder_event(recorder, HCA_TRACE_RESET, i, 0, 0, 0);
    }
}

/* It holds @from to @to, but for those before @again that are after @until. */
static void holds(const HcaRecorder *recorder, unsigned from, unsigned until,
                  unsigned again, unsigned to)
{
    const HcaRecord *record;
    uint32_t i = 0;

    for (unsigned number = from; number < to; number++) {
        if (number == until) {
            number = again;
        }
        record = hca_recorder_get(recorder, i++);
        g_assert_nonnull(record);
        g_assert_cmpuint(record->len, ==, number);
    }
    g_assert_null(hca_recorder_get(recorder, i));
}

/* As much before as after what breaks outlives whatever follows. */
static void test_keeps(void)
{
    HcaRecorder *recorder = hca_recorder_new(16, no_time, NULL);

    record_numbers(recorder, 0, 100);
    hca_recorder_broke(recorder);
    holds(recorder, 84, 100, 100, 100);
    record_numbers(recorder, 100, 107);
    hca_recorder_broke(recorder); /* follows from the first */
    record_numbers(recorder, 107, 108);
    holds(recorder, 92, 108, 108, 108);
    record_numbers(recorder, 108, 120);
    holds(recorder, 92, 120, 120, 120);
    record_numbers(recorder, 120, 1000);
    holds(recorder, 92, 108, 984, 1000);
    /* What breaks next takes its place. */
    hca_recorder_broke(recorder);
    record_numbers(recorder, 1000, 1008);
    holds(recorder, 92, 108, 992, 1008);
    record_numbers(recorder, 1008, 1100);
    holds(recorder, 992, 1008, 1084, 1100);
    hca_recorder_free(recorder);
}

/* What breaks early, and twice at once. */
static void test_keeps_beginning(void)
{
    HcaRecorder *recorder = hca_recorder_new(16, no_time, NULL);

    holds(recorder, 0, 0, 0, 0);
    hca_recorder_broke(recorder);
    record_numbers(recorder, 0, 3);
    holds(recorder, 0, 3, 3, 3);
    record_numbers(recorder, 3, 8);
    hca_recorder_broke(recorder);
    record_numbers(recorder, 8, 9);
    hca_recorder_broke(recorder);
    holds(recorder, 0, 9, 9, 9);
    record_numbers(recorder, 9, 17);
    holds(recorder, 0, 17, 17, 17);
    record_numbers(recorder, 17, 18);
    holds(recorder, 8, 18, 18, 18);
    hca_recorder_free(recorder);
}

/* As a capture */

typedef struct Blocks {
    unsigned packets, cut;
    GPtrArray *comments; /* their texts */
} Blocks;

static void add_comments(GPtrArray *found, const PcapngBlock *block)
{
    const uint8_t *comment;
    size_t len;

    for (unsigned i = 0;
         (comment = pcapng_option(block, PCAPNG_COMMENT, i, &len)); i++) {
        g_ptr_array_add(found, g_strndup((const char *)comment, len));
    }
}

static Blocks read_blocks(const GByteArray *file)
{
    Blocks b = { .comments = g_ptr_array_new_with_free_func(g_free) };
    PcapngBlock block;

    for (size_t at = 0; pcapng_next(file, &at, &block);) {
        if (block.type == PCAPNG_PACKET) {
            PcapngPacket packet = pcapng_packet(&block);

            b.packets++;
            b.cut += packet.kept < packet.len;
        }
        add_comments(b.comments, &block);
    }
    return b;
}

/* A comment is the line that is no packet's, in the lines' order. */
static void check_comments(const GPtrArray *comments, const GPtrArray *lines)
{
    guint n = 0;

    for (guint i = 0; i < lines->len; i++) {
        const char *line = lines->pdata[i];

        if (!strstr(line, " TX ") && !strstr(line, " RX ")) {
            g_assert_cmpuint(n, <, comments->len);
            g_assert_cmpstr(comments->pdata[n++], ==, line);
        }
    }
    g_assert_cmpuint(n, ==, comments->len);
}

static void test_pcapng(void)
{
    Bed *bed = new_bed(256);
    g_autoptr(GByteArray) file = NULL;
    GPtrArray *lines;
    unsigned packets;
    Blocks blocks;

    send_one(bed, 8);
    send_one(bed, 1000);
    file = hca_recorder_pcapng(bed->lab->host[0].hca);
    lines = recorded(bed, 0);
    blocks = read_blocks(file);
    packets = count(lines, " TX ") + count(lines, " RX ");
    g_assert_cmpuint(packets, >=, 4);
    g_assert_cmpuint(blocks.packets, ==, packets);
    check_comments(blocks.comments, lines);
    g_assert_cmpuint(blocks.cut, >=, 1);
    g_assert_cmpuint(blocks.cut, <, packets);
    g_ptr_array_unref(blocks.comments);
    g_ptr_array_unref(lines);
    bed_free(bed);
}

/* What breaks */

static unsigned dumps[2];

static void op_dump(void *opaque)
{
    const Host *host = opaque;
    GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GByteArray) file = hca_recorder_pcapng(host->hca);
    g_autoptr(GPtrArray) comments = read_blocks(file).comments;

    hca_recorder_visit(host->hca, add_line, lines);
    g_assert_cmpuint(lines->len, >, 0);
    g_assert_cmpuint(comments->len, >, 0);
    dumps[host->side]++;
    g_ptr_array_unref(lines);
}

static Bed *new_bed_dumping(unsigned log_cq)
{
    Bed *bed = new_bed_as(ENTRIES, log_cq);

    for (unsigned i = 0; i < 2; i++) {
        bed->lab->host[i].ops.recorder_dump = op_dump;
        dumps[i] = 0;
    }
    return bed;
}

/* A key that there is not: the requester's QP breaks, and the responder's. */
static void break_qps(Bed *bed)
{
    bed_request(bed, 0, WRITE, 64)->rkey ^= 0x80;
    bed_post_requests(bed, 1);
    bed_expect_end(bed, 0, RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR);
}

static void test_dump_qp(void)
{
    Bed *bed = new_bed_dumping(0);
    unsigned at = 0;
    GPtrArray *lines;

    send_one(bed, 100);
    g_assert_cmpuint(dumps[0] + dumps[1], ==, 0);
    break_qps(bed);
    g_assert_cmpuint(dumps[0], ==, 1);
    g_assert_cmpuint(dumps[1], ==, 1);
    lines = recorded(bed, 0);
    has(lines, &at, "NAK_RX qpn 0x%x", bed->qps[0]->qpn);
    has(lines, &at, "QP_STATE qpn 0x%x old RTS new ERR", bed->qps[0]->qpn);
    g_ptr_array_unref(lines);
    /* Once is enough... */
    bed_revive(bed);
    break_qps(bed);
    g_assert_cmpuint(dumps[0], ==, 1);
    g_assert_cmpuint(dumps[1], ==, 1);
    bed_revive(bed);
    bed_free(bed);
}

/* ...until the card is reset. */
static void test_dump_again(void)
{
    Bed *bed = new_bed_dumping(0);
    HcaRecorder *recorder = bed->lab->host[0].hca->host.recorder;

    break_qps(bed);
    g_assert_true(recorder->broke && recorder->told);
    hca_reset(bed->lab->host[0].hca);
    g_assert_false(recorder->broke || recorder->told);
    bed_free(bed);
}

/* Software that ends its QPs breaks nothing. */
static void test_no_dump(void)
{
    Bed *bed = new_bed_dumping(0);

    g_assert_cmphex(qp_to_err(bed->qps[0]), ==, 0);
    g_assert_cmphex(qp_to_err(bed->qps[1]), ==, 0);
    bed_revive(bed);
    g_assert_cmpuint(dumps[0] + dumps[1], ==, 0);
    bed_free(bed);
}

/* Of a QP that broke, what is sent later leaves that and how; a move, too. */
static void test_break_is_kept(void)
{
    Bed *bed = new_bed(64);
    uint32_t qpn = bed->qps[0]->qpn;
    GPtrArray *lines, *moved;
    unsigned at = 0;

    break_qps(bed);
    bed_revive(bed);
    for (unsigned i = 0; i < 100; i++) {
        send_one(bed, 8 + i);
    }
    lines = recorded(bed, 0);
    g_assert_cmpuint(lines->len, ==, 128);
    has(lines, &at, "TX   dqpn 0x%x RC_WRITE_ONLY", bed->qps[1]->qpn);
    has(lines, &at, "NAK_RX qpn 0x%x", qpn);
    has(lines, &at, "QP_STATE qpn 0x%x old RTS new ERR", qpn);
    has(lines, &at, "length 107");
    for (unsigned l = 1; l < lines->len; l++) {
        g_assert_cmpint(time_of(line_at(lines, l - 1)), <=,
                        time_of(line_at(lines, l)));
    }
    host_reload(&bed->lab->host[0]);
    moved = recorded(bed, 0);
    g_assert_cmpuint(moved->len, ==, lines->len);
    for (unsigned l = 0; l < lines->len; l++) {
        g_assert_cmpstr(line_at(moved, l), ==, line_at(lines, l));
    }
    g_ptr_array_unref(moved);
    g_ptr_array_unref(lines);
    bed_free(bed);
}

static void test_dump_eq(void)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_OVERFLOW);
    Bed *bed = new_bed_dumping(0);

    plan.rule[0].place = HCA_FAULT_EVENT;
    bed_set_faults(bed, 1, &plan);
    cq_arm(bed->cqs[1], false);
    pair_check_works(bed->pair, bed->qps, 0);
    g_assert_cmpuint(dumps[0], ==, 0);
    g_assert_cmpuint(dumps[1], ==, 1);
    bed_revive(bed);
    bed_free(bed);
}

/* An overrun: more ends than the queue has room for. */
static void test_dump_cq(void)
{
    Bed *bed = new_bed_dumping(1);
    unsigned at = 0;
    GPtrArray *lines;

    for (unsigned i = 0; i < 4; i++) {
        bed_request(bed, i, WRITE, 64);
    }
    bed_post_requests(bed, 4);
    bed_run(bed);
    g_assert_cmpuint(dumps[0], ==, 1);
    g_assert_cmpuint(dumps[1], ==, 0);
    lines = recorded(bed, 0);
    has(lines, &at, "CQ_ERROR cqn 0x%x", bed->cqs[0]->cqn);
    g_ptr_array_unref(lines);
    bed_free(bed);
}

/* What queues hold */

static void test_queues(void)
{
    Bed *bed = new_bed(0);
    uint32_t qpn[2] = { bed->qps[0]->qpn, bed->qps[1]->qpn };
    GPtrArray *lines = queues(bed, 0);
    unsigned at = 0;

    has(lines, &at, "qp 0x%x RC RTS dqpn 0x%x", qpn[0], qpn[1]);
    has(lines, &at, "cq 0x%x ok", bed->cqs[0]->cqn);
    has(lines, &at, "eq 0x");
    g_assert_cmpuint(count(lines, " wait"), ==, 0);
    g_assert_cmpuint(count(lines, "outstanding"), ==, 0);
    g_ptr_array_unref(lines);
    /* A request that is lost, and receives that nobody takes. */
    bed_set_weather(bed, 0, (BedWeather) { .lost = true });
    bed_post_recvs(bed, 3, 100);
    bed_request(bed, 0, SEND, 100);
    bed_post_requests(bed, 1);
    bed_run(bed);
    lines = queues(bed, 0);
    at = 0;
    has(lines, &at, "outstanding 1 reads 0");
    at = 0;
    has(lines, &at, "loss timer");
    g_ptr_array_unref(lines);
    g_assert_cmphex(qp_to_err(bed->qps[0]), ==, 0);
    lines = queues(bed, 0);
    at = 0;
    has(lines, &at, "qp 0x%x RC ERR", qpn[0]);
    g_ptr_array_unref(lines);
    bed_expect_end(bed, 0, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    bed_set_weather(bed, 0, (BedWeather) { 0 });
    bed_revive(bed);
    bed_free(bed);
}

/* It is no look-up that counts, and a card that is reset has none. */
static void test_queues_quiet(void)
{
    Bed *bed = new_bed(0);
    uint64_t before = bed_counter(bed, 0, "cxtmgt_cqc_lookups");
    GPtrArray *lines = queues(bed, 0);

    g_assert_cmpuint(lines->len, >, 0);
    bed_counted(bed, 0, "cxtmgt_cqc_lookups", before);
    g_ptr_array_unref(lines);
    hca_reset(bed->lab->host[0].hca);
    lines = queues(bed, 0);
    g_assert_cmpuint(lines->len, ==, 0);
    g_ptr_array_unref(lines);
    bed_free(bed);
}

/* What is in hand is seen between two turns. */
static void test_queues_in_hand(void)
{
    static const char *const parts[] = { " wqe 0x",       " chained 0x",
                                         " owes ",        " reads 1 ",
                                         " in a message", " send turn" };
    bool seen[G_N_ELEMENTS(parts)] = { false };
    Bed *bed = new_bed(0);
    Wc wc;

    bed_post_recvs(bed, 4, 20000);
    for (unsigned i = 0; i < 8; i++) {
        bed_request(bed, i, i % 2 ? RDMA_HCA_OPCODE_RDMA_READ : SEND, 20000);
    }
    bed_post_requests(bed, 8);
    while (lab_step(bed->lab)) {
        for (unsigned side = 0; side < 2; side++) {
            GPtrArray *lines = queues(bed, side);

            for (unsigned i = 0; i < G_N_ELEMENTS(parts); i++) {
                seen[i] |= count(lines, parts[i]) > 0;
            }
            g_ptr_array_unref(lines);
        }
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(parts); i++) {
        g_test_message("%s: %d", parts[i], seen[i]);
        g_assert_true(seen[i]);
    }
    for (unsigned i = 0; i < 8; i++) {
        cq_expect(bed->cqs[0], &wc, i, 0);
    }
    bed_free(bed);
}

static void expect_srq(const Bed *bed, const char *line)
{
    GPtrArray *lines = queues(bed, 1);
    unsigned at = 0;

    has(lines, &at, "%s", line);
    g_ptr_array_unref(lines);
}

/* A shared receive queue: armed, of a QP, and one that fails. */
static void test_queues_srq(void)
{
    HcaFaultPlan plan = bed_fault(HCA_FAULT_RECEIVE, HCA_FAULT_BREAK, 0);
    Bed *bed = new_bed(0);
    SrqConfig config;
    QpConfig qp_config;
    RecvWr wr = { 0 };
    QpAttr attr;
    Qp *qp[2];
    Srq *srq;
    Wc wc;

    srq_config_init(&config, bed->pair->pd[1]);
    srq = srq_new_number(bed->drv[1], &config, 5);
    expect_srq(bed, "srq 0x5 ok receives taken 0 of 0 limit 0 qps 0");
    for (unsigned i = 0; i < 3; i++) {
        g_assert_true(srq_post(srq, &wr, 1));
    }
    g_assert_cmphex(srq_arm(srq, 1), ==, 0);
    qp_config_init(&qp_config, bed->pair->pd[1], bed->pair->cq[1]);
    qp_config.srq = srq;
    qp[0] = pair_new_qp(bed->pair, 0, RDMA_HCA_QP_ST_RC);
    qp[1] = qp_new(bed->drv[1], &qp_config);
    qp_attr_init(&attr);
    qp_connect(qp[0], qp[1], &attr);
    expect_srq(bed, " srq 0x5");
    expect_srq(bed, "srq 0x5 ok receives taken 0 of 3 limit 1 qps 1");
    bed_set_faults(bed, 1, &plan);
    bed->wr[0] = pair_send(bed->pair, 0, SEND, 0, bed->sge, 0, 0, 0);
    g_assert_true(qp_post_send(qp[0], bed->wr, 1));
    bed_run(bed);
    expect_srq(bed, "srq 0x5 failed receives taken ");
    bed_set_faults(bed, 1, NULL);
    cq_expect(bed->cqs[0], &wc, 0, RDMA_HCA_SYNDROME_REMOTE_OP_ERR);
    bed_free(bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/recorder/off", test_off);
    test_add_each_link("/recorder/exchange", test_exchange);
    test_add("/recorder/wraps", test_wraps);
    test_add("/recorder/time", test_time);
    test_add_each_link("/recorder/loopback", test_loopback);
    test_add_each_link("/recorder/fault", test_fault);
    test_add("/recorder/mad", test_mad);
    test_add("/recorder/outlives-reset", test_outlives_reset);
    test_add("/recorder/odd", test_odd);
    test_add("/recorder/lengths", test_lengths);
    test_add("/recorder/keeps", test_keeps);
    test_add("/recorder/keeps-beginning", test_keeps_beginning);
    test_add_each_link("/recorder/pcapng", test_pcapng);
    test_add("/recorder/break-is-kept", test_break_is_kept);
    test_add("/recorder/dump/qp", test_dump_qp);
    test_add("/recorder/dump/again", test_dump_again);
    test_add("/recorder/dump/none", test_no_dump);
    test_add("/recorder/dump/cq", test_dump_cq);
    test_add("/recorder/dump/eq", test_dump_eq);
    test_add_each_link("/recorder/queues", test_queues);
    test_add("/recorder/queues/in-hand", test_queues_in_hand);
    test_add("/recorder/queues/srq", test_queues_srq);
    test_add("/recorder/queues/quiet", test_queues_quiet);
    return g_test_run();
}
