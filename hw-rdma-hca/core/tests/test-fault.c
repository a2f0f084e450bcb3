/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fault injector: a link whose peer is the test, each case in both
 * directions.
 */
#include <errno.h>
#include <string.h>

#include "../link/framing.h"
#include "../wire/bytes.h"
#include "../wire/wire.h"
#include "lib-pair.h"

#define TX HCA_FAULT_TX
#define RX HCA_FAULT_RX
#define BOTH (1u << TX | 1u << RX)
#define BTH_AT HCA_LRH_SIZE
#define QPN 5
#define ETH_HEADER_SIZE 14
#define VLAN_TAG_SIZE 4
#define MAX_ROCE_FRAME 256

/* ---- a link on the bench ---- */

typedef struct Bench {
    HcaHostOps ops;
    HcaLinkLayer layer;
    HcaLink *link;
    GByteArray *out, *in;
    size_t out_at, in_at;
    size_t room; /* bytes that the cable takes */
    int64_t now;
    unsigned clock_reads;
    GArray *traces;
} Bench;

static ssize_t op_writev(void *opaque, const struct iovec *iov, int iovcnt)
{
    Bench *b = opaque;
    size_t n = MIN(iov[0].iov_len, b->room);

    g_assert_cmpint(iovcnt, ==, 1);
    if (!n) {
        return -EAGAIN;
    }
    b->room -= n;
    g_byte_array_append(b->out, iov[0].iov_base, n);
    return n;
}

static ssize_t op_readv(void *opaque, const struct iovec *iov, int iovcnt)
{
    Bench *b = opaque;
    size_t n = MIN(iov[0].iov_len, b->in->len - b->in_at);

    g_assert_cmpuint(iov[0].iov_len, >=, HCA_FRAME_MAX_SIZE);
    if (!n) {
        return -EAGAIN;
    }
    memcpy(iov[0].iov_base, b->in->data + b->in_at, n);
    b->in_at += n;
    return n;
}

static int64_t op_clock(void *opaque)
{
    Bench *b = opaque;

    b->clock_reads++;
    return b->now;
}

static void op_trace(void *opaque, const HcaTrace *trace)
{
    g_array_append_val(((Bench *)opaque)->traces, *trace);
}

static void put_frame(Bench *b, const uint8_t *packet, size_t len)
{
    uint8_t header[HCA_FRAME_HEADER_SIZE];

    hca_frame_write_header(header, HCA_FRAME_PACKET, 0, len);
    g_byte_array_append(b->in, header, sizeof(header));
    g_byte_array_append(b->in, packet, len);
}

static void bench_up(Bench *b)
{
    uint8_t greeting[HCA_GREETING_FRAME_SIZE];
    bool loopback;
    size_t len;

    g_byte_array_set_size(b->in, 0);
    g_byte_array_set_size(b->out, 0);
    b->in_at = 0;
    b->room = SIZE_MAX;
    hca_link_set_up(b->link, true);
    b->out_at = b->out->len;
    if (b->layer == HCA_LINK_LAYER_ROCE) {
        g_assert_cmpuint(b->out->len, ==, 0);
        return;
    }
    g_assert_cmpuint(b->out->len, ==, HCA_GREETING_FRAME_SIZE);
    hca_frame_write_greeting(greeting, HCA_LINK_LAYER_IB, true);
    g_byte_array_append(b->in, greeting, sizeof(greeting));
    g_assert_null(hca_link_receive(b->link, &len, &loopback));
    g_assert_true(hca_link_is_up(b->link));
}

static void bench_init_layer(Bench *b, HcaLinkLayer layer)
{
    *b = (Bench) {
        .layer = layer,
        .ops = { .link_writev = op_writev,
                 .link_readv = op_readv,
                 .clock_ns = op_clock,
                 .trace = op_trace },
        .out = g_byte_array_new(),
        .in = g_byte_array_new(),
        .now = NS_PER_S,
        .traces = g_array_new(FALSE, FALSE, sizeof(HcaTrace)),
    };
    b->link = hca_link_new(layer, &b->ops, b);
    hca_link_enable(b->link, true);
    bench_up(b);
}

static void bench_init(Bench *b)
{
    bench_init_layer(b, HCA_LINK_LAYER_IB);
}

static void bench_free(Bench *b)
{
    hca_link_free(b->link);
    g_byte_array_unref(b->out);
    g_byte_array_unref(b->in);
    g_array_unref(b->traces);
}

/* The packets leave or arrive; what becomes of them is seen by expect(). */
static void pass(Bench *b, HcaFaultDirection d, const uint8_t *packet,
                 size_t len)
{
    if (d == RX) {
        put_frame(b, packet, len);
        return;
    }
    g_assert_true(hca_link_can_send(b->link, false));
    memcpy(hca_link_open(b->link, false), packet, len);
    hca_link_close(b->link, false, 3, len);
}

/* The next packet that comes out behind the injector, or NULL. */
static const uint8_t *next_out(Bench *b, HcaFaultDirection d, size_t *len)
{
    const uint8_t *packet;
    HcaFrame frame;
    bool loopback;
    int size;

    if (d == RX) {
        do {
            packet = hca_link_receive(b->link, len, &loopback);
        } while (!packet && hca_link_rx_pending(b->link));
        return packet;
    }
    do {
        size = hca_frame_read(&frame, b->out->data + b->out_at,
                              b->out->len - b->out_at);
        g_assert_cmpint(size, >=, 0);
        b->out_at += size;
    } while (size && frame.type == HCA_FRAME_STATE); /* of a reset */
    *len = frame.len;
    g_assert_true(!size || frame.vl == 3);
    return size ? frame.body : NULL;
}

/* A packet of @opcode with an AETH that fits it, if it has one. */
static size_t make(uint8_t *bytes, uint8_t opcode, uint32_t qpn, uint32_t psn,
                   uint8_t syndrome)
{
    HcaPacket packet = {
        .dlid = 1,
        .slid = 2,
        .opcode = opcode,
        .pkey = 0xffff,
        .dest_qp = qpn,
        .psn = psn,
        .syndrome = syndrome,
    };

    return hca_ib_seal(&packet, bytes, hca_ib_build(&packet, bytes));
}

static void pass_one(Bench *b, HcaFaultDirection d, uint8_t opcode,
                     uint32_t qpn, uint32_t psn)
{
    uint8_t bytes[HCA_MAX_PACKET_SIZE];

    pass(b, d, bytes, make(bytes, opcode, qpn, psn, 0));
}

static void pass_psns(Bench *b, HcaFaultDirection d, uint32_t first,
                      uint32_t last)
{
    for (uint32_t psn = first; psn <= last; psn++) {
        pass_one(b, d, HCA_SEND_ONLY, QPN, psn);
    }
}

/* The PSNs of what comes out now, all of it: "1 2 4". */
static char *psns_out(Bench *b, HcaFaultDirection d)
{
    GString *got = g_string_new("");
    const uint8_t *packet;
    size_t len;

    hca_link_flush(b->link);
    while ((packet = next_out(b, d, &len))) {
        g_assert_cmpuint(len, >=, BTH_AT + HCA_BTH_SIZE);
        g_string_append_printf(got, "%s%u", got->len ? " " : "",
                               get_be24(packet + BTH_AT + 9));
    }
    return g_string_free(got, FALSE);
}

static void expect(Bench *b, HcaFaultDirection d, const char *psns)
{
    g_autofree char *got = psns_out(b, d);

    g_assert_cmpstr(got, ==, psns);
}

static void let_pass(Bench *b, int64_t ns)
{
    b->now += ns;
    hca_link_tick(b->link);
}

static uint64_t injected(Bench *b, HcaFaultDirection d, HcaFaultAction action)
{
    return hca_link_fault_counters(b->link)->injected[d][action];
}

static void set(Bench *b, const HcaFaultPlan *plan)
{
    g_assert_null(hca_fault_check(plan));
    hca_link_set_faults(b->link, plan);
}

static void set_none(Bench *b)
{
    HcaFaultPlan none = { 0 };

    set(b, &none);
}

typedef void Case(Bench *b, HcaFaultDirection d);

static void on_link(Case *test, HcaLinkLayer layer)
{
    for (HcaFaultDirection d = 0; d < HCA_FAULT_NDIRECTIONS; d++) {
        Bench b;

        g_test_message("%s", d == TX ? "tx" : "rx");
        bench_init_layer(&b, layer);
        test(&b, d);
        bench_free(&b);
    }
}

static void in_both_directions(gconstpointer data)
{
    on_link(*(Case *const *)data, HCA_LINK_LAYER_IB);
}

static void in_both_directions_roce(gconstpointer data)
{
    on_link(*(Case *const *)data, HCA_LINK_LAYER_ROCE);
}

/* ---- the plan ---- */

/* @field has to be named in what is wrong with the plan. */
static void refuse(const HcaFaultPlan *plan, const char *field)
{
    const char *wrong = hca_fault_check(plan);

    g_assert_nonnull(wrong);
    g_assert_nonnull(strstr(wrong, field));
}

#define REFUSE(base, field, value, name)                                       \
    do {                                                                       \
        HcaFaultPlan wrong = (base);                                           \
                                                                               \
        wrong.rule[0].field = (value);                                         \
        refuse(&wrong, name);                                                  \
    } while (0)

static void test_check(void)
{
    HcaFaultPlan drop = fault_plan(HCA_FAULT_DROP);
    HcaFaultPlan delay = fault_plan(HCA_FAULT_DELAY);
    HcaFaultPlan reorder = fault_plan(HCA_FAULT_REORDER);
    HcaFaultPlan corrupt = fault_plan(HCA_FAULT_CORRUPT);
    HcaFaultPlan plan = { 0 };

    g_assert_null(hca_fault_check(&plan));
    for (unsigned i = 0; i < HCA_FAULT_NACTIONS; i++) {
        plan = fault_plan(i);
        g_assert_null(hca_fault_check(&plan));
    }
    REFUSE(drop, action, HCA_FAULT_NACTIONS, "action");
    REFUSE(drop, directions, 0, "directions");
    REFUSE(drop, directions, 4, "directions");
    REFUSE(drop, kinds, 1u << HCA_FAULT_NKINDS, "kinds");
    REFUSE(drop, probability, HCA_FAULT_ALWAYS + 1, "probability");
    drop.rule[0].match_qpn = drop.rule[0].match_psn = true;
    g_assert_null(hca_fault_check(&drop));
    REFUSE(drop, qpn, 0x1000000, "qpn");
    REFUSE(drop, psn_first, 0x1000000, "psn-first");
    REFUSE(drop, psn_last, 0x1000000, "psn-last");
    REFUSE(delay, delay_ns, 0, "delay-ns");
    REFUSE(delay, delay_ns, HCA_FAULT_MAX_DELAY_NS + 1, "delay-ns");
    REFUSE(reorder, delay_ns, UINT64_MAX, "delay-ns");
    REFUSE(corrupt, offset, HCA_LINK_MAX_PACKET, "offset");

    /* The limits themselves, in the last rule of the longest plan. */
    plan = fault_plan(HCA_FAULT_DELAY);
    plan.nrules = HCA_FAULT_MAX_RULES;
    for (unsigned i = 1; i < HCA_FAULT_MAX_RULES; i++) {
        plan.rule[i] = plan.rule[0];
    }
    plan.rule[31].delay_ns = HCA_FAULT_MAX_DELAY_NS;
    g_assert_null(hca_fault_check(&plan));
    plan.rule[31].delay_ns++;
    refuse(&plan, "delay-ns");
    plan.rule[31].delay_ns--;
    plan.nrules++;
    refuse(&plan, "32 rules");
}

static void case_none(Bench *b, HcaFaultDirection d)
{
    set_none(b);
    pass_psns(b, d, 1, 5);
    let_pass(b, NS_PER_S);
    expect(b, d, "1 2 3 4 5");
    g_assert_cmpuint(b->clock_reads, ==, 0);
    g_assert_cmpint(hca_link_deadline(b->link), ==, INT64_MAX);
    g_assert_cmpuint(b->traces->len, ==, 0);
}

/* ---- actions ---- */

static void case_drop(Bench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);

    plan.rule[0].match_psn = true;
    plan.rule[0].psn_first = plan.rule[0].psn_last = 2;
    set(b, &plan);
    pass_psns(b, d, 1, 3);
    expect(b, d, "1 3");
    g_assert_cmpuint(injected(b, d, HCA_FAULT_DROP), ==, 1);
    g_assert_cmpuint(b->traces->len, ==, 1);
    g_assert_cmpuint(g_array_index(b->traces, HcaTrace, 0).qpn, ==, QPN);
    g_assert_cmpuint(g_array_index(b->traces, HcaTrace, 0).arg[0], ==, d);
    g_assert_cmpuint(hca_link_counters(b->link)->rx_packets, ==,
                     d == RX ? 3 : 0);
    g_assert_cmpuint(hca_link_counters(b->link)->tx_packets, ==,
                     d == TX ? 2 : 0);
    hca_link_reset_counters(b->link);
    g_assert_cmpuint(injected(b, d, HCA_FAULT_DROP), ==, 0);
}

static void case_duplicate(Bench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DUPLICATE);

    plan.rule[0].skip = 1;
    set(b, &plan);
    pass_psns(b, d, 1, 3);
    expect(b, d, "1 2 2 3 3");
    g_assert_cmpuint(injected(b, d, HCA_FAULT_DUPLICATE), ==, 2);
    /* A second copy comes although the plan has gone. */
    pass_psns(b, d, 4, 4);
    if (d == RX) {
        size_t len;

        g_assert_nonnull(next_out(b, d, &len));
        set_none(b);
        g_assert_true(hca_link_rx_pending(b->link));
        expect(b, d, "4");
    }
}

static void case_corrupt_byte(Bench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_CORRUPT);
    uint8_t sent[HCA_MAX_PACKET_SIZE];
    size_t len, size = make(sent, HCA_SEND_ONLY, QPN, 7, 0);
    const uint8_t *got;

    plan.rule[0].offset = size - 1;
    plan.rule[0].mask = 0x81;
    set(b, &plan);
    pass(b, d, sent, size - 1); /* too short, does not match */
    pass(b, d, sent, size);
    hca_link_flush(b->link);
    got = next_out(b, d, &len);
    g_assert_cmpmem(got, len, sent, size - 1);
    got = next_out(b, d, &len);
    sent[size - 1] ^= 0x81;
    g_assert_cmpmem(got, len, sent, size);
    g_assert_cmpuint(injected(b, d, HCA_FAULT_CORRUPT), ==, 1);
}

/* One bit of any byte; all bytes and bits have their turn. */
static void case_corrupt_by_chance(Bench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_CORRUPT);
    uint8_t sent[HCA_MAX_PACKET_SIZE], seen[HCA_MAX_PACKET_SIZE] = { 0 };
    size_t size = make(sent, HCA_SEND_ONLY, QPN, 7, 0);

    set(b, &plan);
    for (unsigned n = 0; n < 2000; n++) {
        const uint8_t *got;
        unsigned bits = 0;
        size_t len;

        pass(b, d, sent, size);
        hca_link_flush(b->link);
        got = next_out(b, d, &len);
        g_assert_cmpuint(len, ==, size);
        for (size_t i = 0; i < len; i++) {
            bits += __builtin_popcount(got[i] ^ sent[i]);
            seen[i] |= got[i] ^ sent[i];
        }
        g_assert_cmpuint(bits, ==, 1);
    }
    for (size_t i = 0; i < size; i++) {
        g_assert_cmphex(seen[i], !=, 0);
    }
}

static void case_reorder(Bench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_REORDER);

    plan.rule[0].distance = 2;
    plan.rule[0].count = 1;
    set(b, &plan);
    pass_psns(b, d, 1, 4);
    expect(b, d, "2 3 1 4");
    g_assert_cmpuint(injected(b, d, HCA_FAULT_REORDER), ==, 1);

    plan.rule[0].distance = 0; /* as 1 */
    set(b, &plan);
    pass_psns(b, d, 1, 2);
    expect(b, d, "2 1");

    /* Nobody comes: after a millisecond, or as long as the rule says. */
    set(b, &plan);
    pass_psns(b, d, 5, 5);
    expect(b, d, "");
    g_assert_cmpint(hca_link_deadline(b->link), ==, b->now + NS_PER_MS);
    let_pass(b, NS_PER_MS - 1);
    expect(b, d, "");
    let_pass(b, 1);
    expect(b, d, "5");
    plan.rule[0].delay_ns = 70;
    set(b, &plan);
    pass_psns(b, d, 6, 6);
    expect(b, d, "");
    let_pass(b, 70);
    expect(b, d, "6");
}

static void case_delay(Bench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DELAY);

    plan.nrules = 2;
    plan.rule[0].count = 2;
    plan.rule[1] = plan.rule[0];
    plan.rule[1].count = 1;
    plan.rule[1].delay_ns = 40;
    set(b, &plan);
    pass_psns(b, d, 1, 4);
    expect(b, d, "4");
    g_assert_cmpuint(hca_link_held(b->link), ==, 3);
    g_assert_cmpint(hca_link_deadline(b->link), ==, b->now + 40);
    let_pass(b, 39);
    expect(b, d, "");
    let_pass(b, 1);
    expect(b, d, "3");
    g_assert_cmpint(hca_link_deadline(b->link), ==, b->now + 60);
    let_pass(b, 60);
    expect(b, d, "1 2");
    g_assert_cmpint(hca_link_deadline(b->link), ==, INT64_MAX);
    g_assert_cmpuint(injected(b, d, HCA_FAULT_DELAY), ==, 3);

    /* Late: in the order in which they should have left. */
    set(b, &plan);
    pass_psns(b, d, 1, 3);
    expect(b, d, "");
    let_pass(b, NS_PER_S);
    expect(b, d, "3 1 2");
    g_assert_cmpuint(hca_link_held(b->link), ==, 0);
}

/* ---- what a rule matches ---- */

static bool dropped(Bench *b, HcaFaultDirection d, const uint8_t *packet,
                    size_t size)
{
    size_t len;

    pass(b, d, packet, size);
    hca_link_flush(b->link);
    return !next_out(b, d, &len);
}

static const struct {
    uint8_t opcode, syndrome;
    HcaFaultKind kind;
} kinds[] = {
    { HCA_SEND_FIRST, 0, HCA_FAULT_SEND },
    { HCA_SEND_LAST_IMM, 0, HCA_FAULT_SEND },
    { HCA_SEND_ONLY_INV, 0, HCA_FAULT_SEND },
    { HCA_BTH_UC << 5 | HCA_SEND_MIDDLE, 0, HCA_FAULT_SEND },
    { HCA_BTH_UD << 5 | HCA_SEND_ONLY, 0, HCA_FAULT_SEND },
    { HCA_WRITE_FIRST, 0, HCA_FAULT_WRITE },
    { HCA_WRITE_ONLY_IMM, 0, HCA_FAULT_WRITE },
    { HCA_BTH_UC << 5 | HCA_WRITE_LAST, 0, HCA_FAULT_WRITE },
    { HCA_READ_REQUEST, 0, HCA_FAULT_READ_REQUEST },
    { HCA_READ_RESP_FIRST, 0, HCA_FAULT_READ_RESPONSE },
    { HCA_READ_RESP_MIDDLE, 0, HCA_FAULT_READ_RESPONSE },
    { HCA_READ_RESP_ONLY, 0, HCA_FAULT_READ_RESPONSE },
    { HCA_CMP_SWAP, 0, HCA_FAULT_ATOMIC },
    { HCA_FETCH_ADD, 0, HCA_FAULT_ATOMIC },
    { HCA_ATOMIC_ACK, 0, HCA_FAULT_ATOMIC_RESPONSE },
    { HCA_ACK, HCA_AETH(HCA_AETH_ACK, 31), HCA_FAULT_ACK },
    { HCA_ACK, HCA_AETH(HCA_AETH_RNR, 1), HCA_FAULT_RNR_NAK },
    { HCA_ACK, HCA_AETH(HCA_AETH_NAK, HCA_NAK_PSN_SEQ), HCA_FAULT_NAK },
    { HCA_ACK, HCA_AETH(2, 0), HCA_FAULT_NAK },
    { 0x15, 0, HCA_FAULT_OTHER }, /* reserved */
    { HCA_BTH_RD << 5 | HCA_SEND_ONLY, 0, HCA_FAULT_OTHER },
    { HCA_BTH_UD << 5 | HCA_WRITE_ONLY, 0, HCA_FAULT_OTHER },
};

static void case_kinds(Bench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);
    unsigned seen = 0;

    for (unsigned kind = 0; kind < HCA_FAULT_NKINDS; kind++) {
        plan.rule[0].kinds = 1u << kind;
        set(b, &plan);
        for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
            uint8_t bytes[HCA_MAX_PACKET_SIZE];
            size_t len = make(bytes, kinds[i].opcode, QPN, 1,
                              kinds[i].syndrome);

            g_test_message("opcode %#x, syndrome %#x, kind %u", kinds[i].opcode,
                           kinds[i].syndrome, kind);
            g_assert_cmpint(dropped(b, d, bytes, len), ==,
                            kinds[i].kind == kind);
            seen |= 1u << kinds[i].kind;
        }
    }
    g_assert_cmphex(seen, ==, (1u << HCA_FAULT_NKINDS) - 1);
}

/* BTH is behind a GRH, too; no BTH matches no number. */
static void case_numbers(Bench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);
    HcaFaultRule *rule = plan.rule;
    HcaPacket global = {
        .has_grh = true, .opcode = HCA_ACK, .dest_qp = QPN, .psn = 9
    };
    uint8_t bytes[HCA_MAX_PACKET_SIZE];
    size_t len;

    rule->match_opcode = rule->match_qpn = rule->match_psn = true;
    rule->opcode = HCA_ACK;
    rule->qpn = QPN;
    rule->psn_first = rule->psn_last = 9;
    set(b, &plan);
    len = make(bytes, HCA_ACK, QPN, 9, 0);
    g_assert_true(dropped(b, d, bytes, len));
    bytes[1] &= ~3; /* LNH: raw, no BTH */
    g_assert_false(dropped(b, d, bytes, len));
    len = make(bytes, HCA_READ_REQUEST, QPN, 9, 0);
    g_assert_false(dropped(b, d, bytes, len));
    len = make(bytes, HCA_ACK, QPN + 1, 9, 0);
    g_assert_false(dropped(b, d, bytes, len));
    len = make(bytes, HCA_ACK, QPN, 8, 0);
    g_assert_false(dropped(b, d, bytes, len));
    len = hca_ib_seal(&global, bytes, hca_ib_build(&global, bytes));
    g_assert_true(dropped(b, d, bytes, len));
}

static void case_psn_range(Bench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);
    static const uint32_t psn[] = { 0,        1,        2,       0x7fffff,
                                    0xfffffd, 0xfffffe, 0xffffff };

    plan.rule[0].match_psn = true;
    plan.rule[0].psn_first = 0xfffffe;
    plan.rule[0].psn_last = 1;
    set(b, &plan);
    for (unsigned i = 0; i < G_N_ELEMENTS(psn); i++) {
        pass_one(b, d, HCA_SEND_ONLY, QPN, psn[i]);
    }
    expect(b, d, "2 8388607 16777213");
    plan.rule[0].psn_first = 1;
    plan.rule[0].psn_last = 0x7fffff;
    set(b, &plan);
    for (unsigned i = 0; i < G_N_ELEMENTS(psn); i++) {
        pass_one(b, d, HCA_SEND_ONLY, QPN, psn[i]);
    }
    expect(b, d, "0 16777213 16777214 16777215");
}

static void case_direction(Bench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);

    plan.rule[0].directions = 1u << !d;
    set(b, &plan);
    pass_psns(b, d, 1, 3);
    expect(b, d, "1 2 3");
    plan.rule[0].directions = 1u << d;
    set(b, &plan);
    pass_psns(b, d, 1, 3);
    expect(b, d, "");
}

/* ---- which of those it takes ---- */

static void case_select(Bench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);

    plan.rule[0].skip = 2;
    plan.rule[0].every = 3;
    set(b, &plan);
    pass_psns(b, d, 1, 12);
    expect(b, d, "1 2 3 4 6 7 9 10 12");
    plan.rule[0].count = 2;
    set(b, &plan); /* begins anew */
    pass_psns(b, d, 1, 12);
    expect(b, d, "1 2 3 4 6 7 9 10 11 12");
    /* Only packets that match are counted. */
    plan.rule[0] = (HcaFaultRule) {
        .directions = BOTH,
        .kinds = 1u << HCA_FAULT_ACK,
        .every = 2,
        .probability = HCA_FAULT_ALWAYS,
    };
    set(b, &plan);
    for (unsigned psn = 1; psn <= 12; psn++) {
        pass_one(b, d, psn % 3 ? HCA_SEND_ONLY : HCA_ACK, QPN, psn);
    }
    expect(b, d, "1 2 3 4 5 7 8 9 10 11");
}

static void case_probability(Bench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);

    plan.rule[0].probability = 0;
    set(b, &plan);
    pass_psns(b, d, 1, 3);
    expect(b, d, "1 2 3");
    plan.rule[0].probability = HCA_FAULT_ALWAYS / 100;
    set(b, &plan);
    for (unsigned i = 0; i < 100; i++) {
        g_autofree char *got = NULL;

        pass_psns(b, d, 1, 100);
        got = psns_out(b, d);
    }
    /* 100 are expected; four standard deviations. */
    g_assert_cmpuint(injected(b, d, HCA_FAULT_DROP), >=, 60);
    g_assert_cmpuint(injected(b, d, HCA_FAULT_DROP), <=, 140);
}

/* The first rule that fires acts; the next sees what the first left. */
static void case_first_rule(Bench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);

    plan.nrules = 2;
    plan.rule[1] = plan.rule[0];
    plan.rule[0].every = 2;
    plan.rule[1].action = HCA_FAULT_DUPLICATE;
    plan.rule[1].every = 2;
    set(b, &plan);
    pass_psns(b, d, 1, 8);
    expect(b, d, "1 3 3 5 7 7");
}

static char *faults_of(uint32_t seed, HcaFaultDirection d, bool disturb)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);
    char *got;
    Bench b;

    plan.seed = seed;
    plan.rule[0].probability = HCA_FAULT_ALWAYS / 2;
    bench_init(&b);
    set(&b, &plan);
    for (uint32_t psn = 1; psn <= 64; psn++) {
        pass_psns(&b, d, psn, psn);
        if (disturb) {
            g_autofree char *other = NULL;

            pass_psns(&b, !d, psn, psn);
            other = psns_out(&b, !d);
        }
    }
    got = psns_out(&b, d);
    bench_free(&b);
    return got;
}

/* By the seed alone: what goes the other way does not matter. */
static void test_seed(void)
{
    g_autofree char *first = faults_of(7, TX, false);
    g_autofree char *again = faults_of(7, TX, true);
    g_autofree char *other = faults_of(8, TX, false);
    g_autofree char *rx = faults_of(7, RX, false);

    g_assert_cmpstr(first, ==, again);
    g_assert_cmpstr(first, !=, other);
    g_assert_cmpstr(first, !=, rx);
}

/* ---- packets that are held back ---- */

/* Each waits for two; one that leaves counts for those before it. */
static void case_held_chain(Bench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_REORDER);

    plan.nrules = 2;
    plan.rule[0].count = 1;
    plan.rule[0].distance = 2;
    plan.rule[1] = plan.rule[0];
    plan.rule[1].distance = 1;
    set(b, &plan);
    pass_psns(b, d, 1, 4);
    expect(b, d, "3 2 1 4");
    /* But not for those behind it. */
    plan.rule[0].action = HCA_FAULT_DELAY;
    plan.rule[0].delay_ns = 100;
    set(b, &plan);
    pass_psns(b, d, 1, 2);
    expect(b, d, "");
    let_pass(b, 100);
    expect(b, d, "1");
    pass_psns(b, d, 3, 3);
    expect(b, d, "3 2");
    plan.rule[0] = plan.rule[1];
    /* Dropped packets pass nothing; a pair counts as one. */
    plan.rule[0].distance = 2;
    plan.rule[1].action = HCA_FAULT_DROP;
    plan.rule[2] = plan.rule[1];
    plan.rule[2].action = HCA_FAULT_DUPLICATE;
    plan.nrules = 3;
    set(b, &plan);
    pass_psns(b, d, 1, 5);
    expect(b, d, "3 3 4 1 5");
}

static void case_held_full(Bench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DELAY);
    g_autofree char *got = NULL;

    set(b, &plan);
    pass_psns(b, d, 1, HCA_FAULT_MAX_HELD + 3);
    expect(b, d, "65 66 67");
    g_assert_cmpuint(hca_link_fault_counters(b->link)->held_full, ==, 3);
    g_assert_cmpuint(injected(b, d, HCA_FAULT_DELAY), ==, HCA_FAULT_MAX_HELD);
    let_pass(b, 100);
    got = psns_out(b, d);
    g_assert_true(g_str_has_prefix(got, "1 2 3 4 "));
    g_assert_true(g_str_has_suffix(got, " 62 63 64"));
    pass_psns(b, d, 1, 1);
    expect(b, d, "");
}

static void case_held_plan_replaced(Bench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DELAY);
    HcaFaultPlan drop = fault_plan(HCA_FAULT_DROP);

    plan.rule[0].delay_ns = HCA_FAULT_MAX_DELAY_NS;
    plan.rule[0].count = 2;
    plan.rule[0].skip = 1;
    set(b, &plan);
    pass_psns(b, d, 1, 4);
    expect(b, d, "1 4");
    b->now += 10;
    set(b, &drop);
    g_assert_cmpint(hca_link_deadline(b->link), ==, b->now);
    let_pass(b, 0);
    expect(b, d, "2 3"); /* not judged again */
    set(b, &plan);
    pass_psns(b, d, 5, 7);
    expect(b, d, "5");
    set_none(b);
    let_pass(b, 0);
    expect(b, d, "6 7");
    g_assert_cmpint(hca_link_deadline(b->link), ==, INT64_MAX);
}

static void forget_by_clear(Bench *b)
{
    hca_link_clear(b->link);
}

static void forget_by_down(Bench *b)
{
    hca_link_set_up(b->link, false);
    bench_up(b);
}

/* Neither packets that wait nor those that are due nor a second copy. */
static void check_forgotten(Bench *b, HcaFaultDirection d,
                            void (*forget)(Bench *b))
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DELAY);
    HcaFaultPlan twice = fault_plan(HCA_FAULT_DUPLICATE);

    for (unsigned due = 0; due < 2; due++) {
        set(b, &plan);
        b->room = 0;
        pass_psns(b, d, 1, 3);
        if (d == RX) {
            expect(b, d, "");
        } else {
            hca_link_flush(b->link);
        }
        let_pass(b, due ? 100 : 0);
        g_assert_cmpuint(hca_link_held(b->link), ==, due && d == TX ? 0 : 3);
        forget(b);
        b->room = SIZE_MAX;
        g_assert_cmpuint(hca_link_held(b->link), ==, 0);
        let_pass(b, NS_PER_S);
        expect(b, d, "");
        set_none(b);
    }
    set(b, &twice);
    pass_psns(b, d, 1, 1);
    if (d == RX) {
        size_t len;

        g_assert_nonnull(next_out(b, d, &len));
        forget(b);
        g_assert_false(hca_link_rx_pending(b->link));
        expect(b, d, "");
    }
}

static void case_held_cleared(Bench *b, HcaFaultDirection d)
{
    check_forgotten(b, d, forget_by_clear);
}

static void case_held_down(Bench *b, HcaFaultDirection d)
{
    check_forgotten(b, d, forget_by_down);
}

/* The cable is full when they are due: they leave when it is not. */
static void test_held_blocked(void)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DELAY);
    Bench b;

    bench_init(&b);
    plan.rule[0].count = HCA_FAULT_MAX_HELD;
    set(&b, &plan);
    pass_psns(&b, TX, 1, HCA_FAULT_MAX_HELD + 1);
    b.room = 10;
    hca_link_flush(b.link);
    g_assert_true(hca_link_tx_blocked(b.link));
    let_pass(&b, 100);
    g_assert_false(hca_link_can_send(b.link, false));
    g_assert_cmpuint(hca_link_held(b.link), ==, HCA_FAULT_MAX_HELD);
    b.room = 100; /* the buffer, but not all that follows */
    hca_link_flush(b.link);
    g_assert_true(hca_link_tx_blocked(b.link));
    g_assert_cmpuint(hca_link_held(b.link), ==, 0);
    b.room = SIZE_MAX;
    hca_link_flush(b.link);
    g_assert_true(hca_link_can_send(b.link, false));
    g_assert_cmpuint(hca_link_counters(b.link)->tx_packets, ==,
                     HCA_FAULT_MAX_HELD + 1);
    bench_free(&b);
}

/* A stream that broke takes nothing along. */
static ssize_t op_writev_broken(void *opaque, const struct iovec *iov,
                                int iovcnt)
{
    return -EPIPE;
}

static void test_held_broken(void)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DELAY);
    Bench b;

    bench_init(&b);
    plan.rule[0].count = 2;
    set(&b, &plan);
    pass_psns(&b, TX, 1, 3);
    b.ops.link_writev = op_writev_broken;
    hca_link_flush(b.link);
    g_assert_cmpuint(hca_link_held(b.link), ==, 0);
    let_pass(&b, NS_PER_S);
    b.ops.link_writev = op_writev;
    forget_by_down(&b);
    expect(&b, TX, "");
    bench_free(&b);
}

/* ---- bounds ---- */

/* All of the longest packets twice: can_send() knows of both. */
static void test_room(void)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DUPLICATE);
    uint8_t bytes[HCA_LINK_MAX_PACKET] = { 0 };
    unsigned n = 0;
    Bench b;

    bench_init(&b);
    plan.rule[0].skip = 1; /* so that there is room for an odd number */
    set(&b, &plan);
    b.room = 0;
    while (hca_link_can_send(b.link, false)) {
        bytes[0] = n++;
        pass(&b, TX, bytes, sizeof(bytes));
    }
    /* 28 frames fit. */
    g_assert_cmpuint(hca_link_counters(b.link)->tx_packets, ==, 27);
    b.room = SIZE_MAX;
    hca_link_flush(b.link);
    for (unsigned i = 1; i < 2 * n; i++) {
        size_t len;
        const uint8_t *got = next_out(&b, TX, &len);

        g_assert_cmpuint(len, ==, sizeof(bytes));
        g_assert_cmpuint(got[0], ==, i / 2);
    }
    bench_free(&b);
}

/* More are due at once than the buffer takes. */
static void test_room_due(void)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_REORDER);
    uint8_t bytes[HCA_LINK_MAX_PACKET] = { 0 };
    Bench b;

    bench_init(&b);
    plan.rule[0].count = HCA_FAULT_MAX_HELD;
    set(&b, &plan);
    b.room = 0;
    for (unsigned i = 0; i <= HCA_FAULT_MAX_HELD; i++) {
        bytes[0] = i;
        pass(&b, TX, bytes, sizeof(bytes));
    }
    g_assert_cmpuint(hca_link_held(b.link), >, 0);
    g_assert_false(hca_link_can_send(b.link, false));
    b.room = SIZE_MAX;
    hca_link_flush(b.link);
    g_assert_cmpuint(hca_link_held(b.link), ==, 0);
    g_assert_true(hca_link_can_send(b.link, false));
    for (unsigned i = 0; i <= HCA_FAULT_MAX_HELD; i++) {
        size_t len;

        g_assert_cmpuint(next_out(&b, TX, &len)[0], ==,
                         (i + HCA_FAULT_MAX_HELD) % (HCA_FAULT_MAX_HELD + 1));
    }
    bench_free(&b);
}

/* One call swallows a bounded number, and says that there is more. */
static void test_swallow(void)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);
    bool loopback;
    size_t len;
    Bench b;

    bench_init(&b);
    set(&b, &plan);
    pass_psns(&b, RX, 1, 10000); /* more than the buffer takes */
    do {
        uint64_t before = injected(&b, RX, HCA_FAULT_DROP);

        g_assert_null(hca_link_receive(b.link, &len, &loopback));
        g_assert_cmpuint(injected(&b, RX, HCA_FAULT_DROP) - before, <=, 128);
    } while (hca_link_rx_pending(b.link));
    g_assert_cmpuint(injected(&b, RX, HCA_FAULT_DROP), ==, 10000);
    bench_free(&b);
}

/* Whatever is too short to be a packet is of kind OTHER, and treated. */
static void case_short(Bench *b, HcaFaultDirection d)
{
    uint8_t bytes[64];

    for (unsigned action = 0; action < HCA_FAULT_MARK; action++) {
        HcaFaultPlan plan = fault_plan(action);

        plan.rule[0].kinds = 1u << HCA_FAULT_OTHER;
        set(b, &plan);
        for (unsigned lnh = 0; lnh < 4; lnh++) {
            size_t bth = lnh == 3 ? 48 : 8;
            uint64_t before = injected(b, d, action);
            size_t most = lnh < 2 ? sizeof(bytes) : bth + HCA_BTH_SIZE - 1;
            size_t len;

            memset(bytes, HCA_SEND_ONLY, sizeof(bytes));
            bytes[1] = lnh;
            for (size_t size = 1; size <= most; size++) {
                pass(b, d, bytes, size);
                hca_link_flush(b->link);
                while (next_out(b, d, &len)) {
                }
                let_pass(b, NS_PER_S);
                hca_link_flush(b->link);
                while (next_out(b, d, &len)) {
                }
            }
            g_assert_cmpuint(injected(b, d, action) - before, ==, most);
        }
    }
    /* An acknowledgement that ends before its AETH is none. */
    memset(bytes, 0, sizeof(bytes));
    bytes[1] = 2;
    bytes[BTH_AT] = HCA_ACK;
    set_none(b);
    for (unsigned i = 0; i < 2; i++) {
        HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);

        plan.rule[0].kinds = 1u << (i ? HCA_FAULT_ACK : HCA_FAULT_OTHER);
        set(b, &plan);
        g_assert_cmpint(dropped(b, d, bytes, 8 + 12 + 3 + i), ==, true);
        g_assert_cmpint(dropped(b, d, bytes, 8 + 12 + 3 + !i), ==, false);
    }
}

/* ---- RoCEv2 ---- */

/* The four shapes that a frame has in front of UDP. */
typedef struct Shape {
    bool is_ipv4, has_vlan;
} Shape;

static const Shape shapes[] = {
    { true, false },
    { true, true },
    { false, false },
    { false, true },
};

static size_t ip_at(const Shape *shape)
{
    return ETH_HEADER_SIZE + (shape->has_vlan ? VLAN_TAG_SIZE : 0);
}

static size_t roce_bth_at(const Shape *shape)
{
    return ip_at(shape) + HCA_UDP_HEADER_SIZE +
           (shape->is_ipv4 ? HCA_IPV4_HEADER_SIZE : HCA_IPV6_HEADER_SIZE);
}

/* A frame of @opcode with five bytes of payload. */
static size_t make_roce(uint8_t *frame, const Shape *shape, uint8_t opcode,
                        uint8_t tclass, uint32_t psn)
{
    HcaPacket packet = {
        .is_ipv4 = shape->is_ipv4,
        .has_vlan = shape->has_vlan,
        .vlan_tci = 5,
        .dmac = { 2, [5] = 1 },
        .smac = { 2, [5] = 2 },
        .sgid.raw = { 0xfd, [10] = 0xff, 0xff, 10, [15] = 2 },
        .dgid.raw = { 0xfd, [10] = 0xff, 0xff, 10, [15] = 1 },
        .tclass = tclass,
        .hop_limit = 64,
        .flow_label = 0x12345,
        .udp_sport = 0xc001,
        .opcode = opcode,
        .pkey = 0xffff,
        .dest_qp = QPN,
        .psn = psn,
        .payload_len = opcode == HCA_SEND_ONLY ? 5 : 0,
    };
    size_t len = hca_roce_build(&packet, frame);

    memset(frame + len, 0xa5, packet.payload_len);
    return hca_roce_seal(&packet, frame, len + packet.payload_len);
}

/* The frame as it comes out behind the injector; NULL: it does not. */
static const uint8_t *through(Bench *b, HcaFaultDirection d,
                              const uint8_t *frame, size_t len)
{
    const uint8_t *got;
    size_t got_len;

    pass(b, d, frame, len);
    hca_link_flush(b->link);
    got = next_out(b, d, &got_len);
    g_assert_true(!got || got_len == len);
    return got;
}

static bool is_marked(Bench *b, HcaFaultDirection d, const uint8_t *frame,
                      size_t len)
{
    const uint8_t *got = through(b, d, frame, len);
    HcaPacket packet;

    /* IPv4's checksum and ICRC are good. */
    g_assert_cmpint(hca_roce_parse(&packet, got, len), ==, HCA_PARSE_OK);
    return (packet.tclass & HCA_ECN_MASK) == HCA_ECN_CE;
}

/* Nothing but the ECN field changes, and the checksum that covers it. */
static void case_mark(Bench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_MARK);

    set(b, &plan);
    for (unsigned i = 0; i < G_N_ELEMENTS(shapes) * 256; i++) {
        const Shape *shape = &shapes[i / 256];
        uint8_t tclass = i, frame[MAX_ROCE_FRAME], marked[MAX_ROCE_FRAME];
        size_t len = make_roce(frame, shape, HCA_SEND_ONLY, tclass, i);
        const uint8_t *got;
        HcaPacket packet;

        make_roce(marked, shape, HCA_SEND_ONLY, tclass | HCA_ECN_CE, i);
        got = through(b, d, frame, len);
        g_assert_cmpmem(got, len, marked, len);
        g_assert_cmpint(hca_roce_parse(&packet, got, len), ==, HCA_PARSE_OK);
        g_assert_cmphex(packet.tclass, ==, tclass | HCA_ECN_CE);
        g_assert_cmpuint(injected(b, d, HCA_FAULT_MARK), ==, i + 1);
    }
    g_assert_cmpuint(injected(b, !d, HCA_FAULT_MARK), ==, 0);
    g_assert_cmpuint(g_array_index(b->traces, HcaTrace, 0).qpn, ==, QPN);
    g_assert_cmpuint(g_array_index(b->traces, HcaTrace, 0).arg[1], ==,
                     HCA_FAULT_MARK);
}

/* A frame with UDP to @port and no more than a word behind it. */
static size_t make_udp(uint8_t *frame, const Shape *shape, uint16_t port)
{
    size_t udp = roce_bth_at(shape) - HCA_UDP_HEADER_SIZE;
    size_t len = make_roce(frame, shape, HCA_SEND_ONLY, 0, 1);

    put_be16(frame + udp + 2, port);
    return len;
}

static size_t make_arp(uint8_t *frame)
{
    memset(frame, 0, 60);
    memset(frame, 0xff, 6);
    put_be16(frame + 12, 0x0806);
    return 60;
}

/* skip, every, count and PSNs; frames that have no mark are not counted. */
static void case_mark_selection(Bench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_MARK);
    g_autoptr(GString) marked = g_string_new("");
    uint8_t frame[MAX_ROCE_FRAME], arp[60];

    make_arp(arp);
    plan.rule[0].skip = 1;
    plan.rule[0].every = 3;
    plan.rule[0].count = 2;
    set(b, &plan);
    for (uint32_t psn = 1; psn <= 12; psn++) {
        size_t len = make_roce(frame, &shapes[psn % 4], HCA_SEND_ONLY,
                               HCA_ECN_ECT0, psn);

        g_assert_cmpmem(through(b, d, arp, sizeof(arp)), sizeof(arp), arp,
                        sizeof(arp));
        if (is_marked(b, d, frame, len)) {
            g_string_append_printf(marked, " %u", psn);
        }
    }
    g_assert_cmpstr(marked->str, ==, " 4 7");
    plan = fault_plan(HCA_FAULT_MARK);
    plan.rule[0].match_psn = true;
    plan.rule[0].psn_first = plan.rule[0].psn_last = 9;
    plan.rule[0].kinds = 1u << HCA_FAULT_SEND;
    set(b, &plan);
    for (uint32_t psn = 8; psn <= 10; psn++) {
        size_t len = make_roce(frame, shapes, HCA_SEND_ONLY, HCA_ECN_ECT0, psn);

        g_assert_cmpint(is_marked(b, d, frame, len), ==, psn == 9);
    }
}

/* What has no BTH behind UDP's port passes as it is; the next rule sees it. */
static void case_mark_not_roce(Bench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_MARK);
    uint8_t frame[MAX_ROCE_FRAME];
    uint64_t frames = 0;
    size_t len;

    plan.nrules = 2;
    plan.rule[1] = fault_plan(HCA_FAULT_DUPLICATE).rule[0];
    set(b, &plan);
    for (unsigned i = 0; i < G_N_ELEMENTS(shapes); i++) {
        const Shape *shape = &shapes[i];

        len = make_udp(frame, shape, HCA_ROCE_UDP_PORT + 1);
        g_assert_cmpmem(through(b, d, frame, len), len, frame, len);
        g_assert_nonnull(next_out(b, d, &len));
        frames++;
        make_roce(frame, shape, HCA_SEND_ONLY, 0, 1);
        for (len = 1; len < roce_bth_at(shape) + HCA_BTH_SIZE; len++) {
            size_t again;

            g_assert_cmpmem(through(b, d, frame, len), len, frame, len);
            g_assert_nonnull(next_out(b, d, &again));
            frames++;
        }
    }
    /* A later fragment: its port cannot be seen. */
    len = make_roce(frame, shapes, HCA_SEND_ONLY, 0, 1);
    frame[ETH_HEADER_SIZE + 7] = 1;
    g_assert_cmpmem(through(b, d, frame, len), len, frame, len);
    g_assert_nonnull(next_out(b, d, &len));
    len = make_arp(frame);
    g_assert_cmpmem(through(b, d, frame, len), len, frame, len);
    g_assert_nonnull(next_out(b, d, &len));
    frames += 2;
    g_assert_cmpuint(injected(b, d, HCA_FAULT_MARK), ==, 0);
    g_assert_cmpuint(injected(b, d, HCA_FAULT_DUPLICATE), ==, frames);
}

static void case_mark_infiniband(Bench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_MARK);
    HcaPacket global = { .has_grh = true,
                         .tclass = HCA_ECN_ECT0,
                         .opcode = HCA_ACK,
                         .dest_qp = QPN };
    uint8_t bytes[HCA_MAX_PACKET_SIZE];
    size_t len = hca_ib_seal(&global, bytes, hca_ib_build(&global, bytes));

    plan.nrules = 2;
    plan.rule[1] = fault_plan(HCA_FAULT_DROP).rule[0];
    plan.rule[1].every = 2;
    set(b, &plan);
    for (unsigned i = 0; i < 4; i++) {
        const uint8_t *got = through(b, d, bytes, len);

        g_assert_cmpint(!got, ==, i % 2);
        if (got) {
            g_assert_cmpmem(got, len, bytes, len);
        }
    }
    g_assert_cmpuint(injected(b, d, HCA_FAULT_MARK), ==, 0);
}

/* Rules find BTH behind all headers. A CNP has numbers, and no kind. */
static void case_roce_numbers(Bench *b, HcaFaultDirection d)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);
    HcaFaultRule *rule = plan.rule;
    uint8_t frame[MAX_ROCE_FRAME];
    size_t len;

    rule->match_opcode = rule->match_qpn = rule->match_psn = true;
    rule->opcode = HCA_SEND_ONLY;
    rule->qpn = QPN;
    rule->psn_first = rule->psn_last = 9;
    rule->kinds = 1u << HCA_FAULT_SEND;
    set(b, &plan);
    for (unsigned i = 0; i < G_N_ELEMENTS(shapes); i++) {
        len = make_roce(frame, &shapes[i], HCA_SEND_ONLY, 0, 9);
        g_assert_true(dropped(b, d, frame, len));
        len = make_roce(frame, &shapes[i], HCA_SEND_ONLY, 0, 8);
        g_assert_false(dropped(b, d, frame, len));
        len = make_udp(frame, &shapes[i], 53);
        g_assert_false(dropped(b, d, frame, len));
    }
    rule->opcode = HCA_BTH_CNP;
    rule->kinds = 1u << HCA_FAULT_OTHER;
    set(b, &plan);
    for (unsigned i = 0; i < G_N_ELEMENTS(shapes); i++) {
        len = make_roce(frame, &shapes[i], HCA_BTH_CNP, 0, 9);
        g_assert_true(dropped(b, d, frame, len));
    }
}

/* A RoCEv2 frame that ends anywhere in front of its ICRC is still treated. */
static void case_roce_short(Bench *b, HcaFaultDirection d)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(shapes) * HCA_FAULT_MARK; i++) {
        const Shape *shape = &shapes[i % G_N_ELEMENTS(shapes)];
        HcaFaultAction action = i / G_N_ELEMENTS(shapes);
        HcaFaultPlan plan = fault_plan(action);
        uint64_t before = injected(b, d, action);
        uint8_t frame[MAX_ROCE_FRAME];
        size_t len = make_roce(frame, shape, HCA_ACK, 0, 1), got;

        set(b, &plan);
        for (size_t size = 1; size <= len; size++) {
            pass(b, d, frame, size);
            hca_link_flush(b->link);
            while (next_out(b, d, &got)) {
            }
            let_pass(b, NS_PER_S);
            hca_link_flush(b->link);
            while (next_out(b, d, &got)) {
            }
        }
        g_assert_cmpuint(injected(b, d, action) - before, ==, len);
    }
}

/* The greeting and the card's packets to itself do not pass the cable. */
static void test_not_cable(void)
{
    HcaFaultPlan plan = fault_plan(HCA_FAULT_DROP);
    uint8_t bytes[HCA_MAX_PACKET_SIZE];
    size_t len, size = make(bytes, HCA_SEND_ONLY, QPN, 1, 0);
    bool loopback;
    Bench b;

    bench_init(&b);
    set(&b, &plan);
    forget_by_down(&b);
    memcpy(hca_link_open(b.link, true), bytes, size);
    hca_link_close(b.link, true, 0, size);
    g_assert_nonnull(hca_link_receive(b.link, &len, &loopback));
    g_assert_true(loopback);
    g_assert_cmpuint(injected(&b, TX, HCA_FAULT_DROP) +
                         injected(&b, RX, HCA_FAULT_DROP),
                     ==, 0);
    bench_free(&b);
}

/* ---- anything ---- */

static void random_plan(GRand *rand, HcaFaultPlan *plan)
{
    memset(plan, 0, sizeof(*plan));
    plan->seed = g_rand_int(rand);
    plan->nrules = g_rand_int_range(rand, 0, 6);
    for (unsigned i = 0; i < plan->nrules; i++) {
        plan->rule[i] = (HcaFaultRule) {
            .action = g_rand_int_range(rand, 0, HCA_FAULT_NACTIONS),
            .directions = g_rand_int_range(rand, 1, 4),
            .kinds = g_rand_boolean(rand) ? g_rand_int(rand) & 0x3ff : 0,
            .every = g_rand_int_range(rand, 0, 4),
            .probability = g_rand_int(rand),
            .count = g_rand_int_range(rand, 0, 50),
            .distance = g_rand_int_range(rand, 0, 90),
            .delay_ns = g_rand_int_range(rand, 1, 1000),
            .offset = g_rand_int_range(rand, -2, HCA_LINK_MAX_PACKET),
        };
    }
    g_assert_null(hca_fault_check(plan));
}

/* No packet is lost or made but by the faults that are counted. */
static void check_balance(Bench *b, HcaFaultDirection d, uint64_t passed,
                          uint64_t came)
{
    g_assert_cmpuint(came, ==,
                     passed - injected(b, d, HCA_FAULT_DROP) +
                         injected(b, d, HCA_FAULT_DUPLICATE));
}

static void test_random(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(lab_seed(4));
    uint64_t passed[2] = { 0 }, came[2] = { 0 };
    HcaFaultPlan plan;
    Bench b;

    bench_init(&b);
    for (unsigned n = 0; n < 100000; n++) {
        HcaFaultDirection d = g_rand_boolean(rand);
        uint8_t bytes[256];
        size_t len;

        if (n % 200 == 0) {
            random_plan(rand, &plan);
            set(&b, &plan);
        }
        for (size_t i = 0; i < sizeof(bytes); i++) {
            bytes[i] = g_rand_int(rand);
        }
        bytes[8] &= 0x1f;
        if (d == TX && !hca_link_can_send(b.link, false)) {
            hca_link_flush(b.link);
        } else {
            pass(&b, d, bytes, g_rand_int_range(rand, 1, sizeof(bytes)));
            passed[d]++;
        }
        if (g_rand_int_range(rand, 0, 8) == 0) {
            let_pass(&b, g_rand_int_range(rand, 0, 300));
            hca_link_flush(b.link);
            for (d = 0; d < 2; d++) {
                while (next_out(&b, d, &len)) {
                    came[d]++;
                }
            }
        }
    }
    set_none(&b);
    let_pass(&b, 0);
    hca_link_flush(b.link);
    for (HcaFaultDirection d = 0; d < 2; d++) {
        size_t len;

        while (next_out(&b, d, &len)) {
            came[d]++;
        }
        check_balance(&b, d, passed[d], came[d]);
    }
    g_assert_cmpuint(hca_link_held(b.link), ==, 0);
    bench_free(&b);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        Case *test;
    } cases[] = {
        { "none", case_none },
        { "drop", case_drop },
        { "duplicate", case_duplicate },
        { "corrupt/byte", case_corrupt_byte },
        { "corrupt/by-chance", case_corrupt_by_chance },
        { "reorder", case_reorder },
        { "delay", case_delay },
        { "match/kinds", case_kinds },
        { "match/numbers", case_numbers },
        { "match/psn-range", case_psn_range },
        { "match/direction", case_direction },
        { "select/skip-every-count", case_select },
        { "select/probability", case_probability },
        { "select/first-rule", case_first_rule },
        { "held/chain", case_held_chain },
        { "held/full", case_held_full },
        { "held/plan-replaced", case_held_plan_replaced },
        { "held/cleared", case_held_cleared },
        { "held/down", case_held_down },
        { "short", case_short },
        { "mark/infiniband", case_mark_infiniband },
    }, roce_cases[] = {
        { "mark/frames", case_mark },
        { "mark/selection", case_mark_selection },
        { "mark/not-rocev2", case_mark_not_roce },
        { "match/numbers", case_roce_numbers },
        { "short", case_roce_short },
    };

    g_test_init(&argc, &argv, NULL);
    test_add("/fault/check", test_check);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *path = test_named("/fault/%s", cases[i].name);

        test_add_data(path, &cases[i].test, in_both_directions);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(roce_cases); i++) {
        const char *path = test_named("/roce/fault/%s", roce_cases[i].name);

        test_add_data(path, &roce_cases[i].test, in_both_directions_roce);
    }
    test_add("/fault/seed", test_seed);
    test_add("/fault/held/blocked", test_held_blocked);
    test_add("/fault/held/broken", test_held_broken);
    test_add("/fault/room/twice", test_room);
    test_add("/fault/room/due", test_room_due);
    test_add("/fault/swallow", test_swallow);
    test_add("/fault/not-on-the-cable", test_not_cable);
    test_add("/fault/random", test_random);
    return g_test_run();
}
