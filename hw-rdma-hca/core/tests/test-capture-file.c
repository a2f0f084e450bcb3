/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The capture file: its blocks taken apart one by one, and what is in it held
 * against what passed the cable.
 *
 * The packets of two cards on a cable with all faults are left in $HCA_CAPTURE,
 * or in rdma-hca.pcapng (of RoCE cards: rdma-hca-roce.pcapng) in the build
 * folder of the tests, for scripts/check-capture. With $HCA_CAPTURE, name one of
 * the two by -p.
 */
#include <stdio.h>
#include <string.h>

#include "../link/capture.h"
#include "../link/link.h"
#include "../wire/bytes.h"
#include "../wire/wire.h"
#include "lib-nic.h"
#include "lib-pair.h"
#include "lib-pcap.h"
#include "lib-pcapng.h"

#define INBOUND 1
#define OUTBOUND 2
#define ERF_SIZE 16

/* ---- reading ---- */

typedef struct Record {
    uint64_t time;
    const uint8_t *data;
    size_t len;
    uint32_t direction;
    char *comment; /* NULL: none */
} Record;

static void check_header(const GByteArray *file, size_t *at, unsigned link_type)
{
    PcapngBlock b;

    g_assert_true(pcapng_next(file, at, &b));
    pcapng_check_section(&b, "rdma-hca");
    g_assert_true(pcapng_next(file, at, &b));
    pcapng_check_interface(&b, link_type, "cable");
}

static void read_record(const PcapngBlock *b, Record *record)
{
    PcapngPacket packet = pcapng_packet(b);
    const uint8_t *value;
    size_t n = 0;

    g_assert_cmpuint(packet.interface, ==, 0);
    g_assert_cmpuint(packet.kept, ==, packet.len);
    record->time = packet.time;
    record->data = packet.data;
    record->len = packet.len;
    value = pcapng_only_option(b, PCAPNG_PACKET_FLAGS, &n);
    g_assert_nonnull(value);
    g_assert_cmpuint(n, ==, 4);
    record->direction = pcapng_le32(value);
    value = pcapng_only_option(b, PCAPNG_COMMENT, &n);
    record->comment = value ? g_strndup((const char *)value, n) : NULL;
}

/* Take the header of Endace's off. */
static void unwrap_erf(Record *record)
{
    const uint8_t *erf = record->data;
    uint64_t ns;

    g_assert_cmpuint(record->len, >, ERF_SIZE);
    record->data += ERF_SIZE;
    record->len -= ERF_SIZE;
    ns = ((uint64_t)pcapng_le32(erf) * NS_PER_S) >> 32;
    ns += (uint64_t)pcapng_le32(erf + 4) * NS_PER_S;
    g_assert_cmpuint(record->time - ns, <=, 1);
    g_assert_cmpuint(erf[8], ==, 21);
    g_assert_cmphex(erf[9], ==, 4);
    g_assert_cmpuint(get_be16(erf + 10), ==, ERF_SIZE + record->len);
    g_assert_cmpuint(get_be16(erf + 12), ==, 0);
    g_assert_cmpuint(get_be16(erf + 14), ==, record->len);
}

static void record_clear(gpointer record)
{
    g_free(((Record *)record)->comment);
}

/* All records of a file of one section. */
static GArray *read_file(const GByteArray *file, unsigned link_type)
{
    GArray *records = g_array_new(FALSE, FALSE, sizeof(Record));
    uint64_t time = 0;
    size_t at = 0;
    PcapngBlock b;

    g_array_set_clear_func(records, record_clear);
    check_header(file, &at, link_type);
    while (pcapng_next(file, &at, &b)) {
        Record record;

        read_record(&b, &record);
        if (link_type == HCA_PCAPNG_IB) {
            unwrap_erf(&record);
        }
        g_assert_cmpuint(record.time, >=, time);
        time = record.time;
        g_array_append_val(records, record);
    }
    return records;
}

static Record *record_at(GArray *records, unsigned i)
{
    return &g_array_index(records, Record, i);
}

/* ---- the format ---- */

typedef struct Machine {
    HcaHostOps ops;
    HcaCapture *capture;
    GByteArray *file;
    size_t limit;
    int64_t now;
    unsigned writes, warnings;
} Machine;

static bool op_capture_write(void *opaque, const void *data, size_t len)
{
    Machine *m = opaque;

    m->writes++;
    if (m->limit - m->file->len < len) {
        return false;
    }
    g_byte_array_append(m->file, data, len);
    return true;
}

static int64_t op_clock(void *opaque)
{
    return ((Machine *)opaque)->now;
}

static void op_warn(void *opaque, const char *message)
{
    ((Machine *)opaque)->warnings++;
}

static void machine_init(Machine *m)
{
    *m = (Machine) {
        .ops = { .capture_write = op_capture_write,
                 .clock_ns = op_clock,
                 .warn = op_warn },
        .file = g_byte_array_new(),
        .limit = SIZE_MAX,
        .now = INT64_C(0x123456789abcdef),
    };
    m->capture = hca_capture_new(&HCA_HOST(&m->ops, m));
}

static void machine_free(Machine *m)
{
    hca_capture_free(m->capture);
    g_byte_array_unref(m->file);
}

/* Every length up to the longest, with and without a comment of any length. */
static void check_lengths(HcaPcapngLinkType link_type)
{
    uint8_t packet[HCA_LINK_MAX_PACKET];
    const unsigned step = 61;
    unsigned n = 0;
    GArray *records;
    char text[64];
    Machine m;

    for (size_t i = 0; i < sizeof(packet); i++) {
        packet[i] = i * 7 + 1;
    }
    machine_init(&m);
    hca_capture_start(m.capture, link_type);
    g_assert_true(hca_capture_is_on(m.capture));
    for (size_t len = 1; len <= sizeof(packet); len += step, n++) {
        memset(text, 'a' + n % 26, sizeof(text));
        text[n % sizeof(text)] = '\0';
        hca_capture_packet(m.capture, n % 2, packet, len, n % 3 ? text : NULL);
        m.now += 1 + n * NS_PER_S;
    }
    hca_capture_flush(m.capture);
    records = read_file(m.file, link_type);
    g_assert_cmpuint(records->len, ==, n);
    m.now = INT64_C(0x123456789abcdef);
    for (unsigned i = 0; i < n; i++) {
        Record *record = record_at(records, i);

        g_assert_cmpuint(record->time, ==, m.now);
        g_assert_cmpmem(record->data, record->len, packet, 1 + i * step);
        g_assert_cmpuint(record->direction, ==, i % 2 ? OUTBOUND : INBOUND);
        if (i % 3) {
            g_assert_cmpuint(strlen(record->comment), ==, i % sizeof(text));
        } else {
            g_assert_null(record->comment);
        }
        m.now += 1 + i * NS_PER_S;
    }
    g_assert_cmpuint(hca_capture_counters(m.capture)->packets, ==, n);
    g_assert_cmpuint(hca_capture_counters(m.capture)->bytes, ==, m.file->len);
    g_array_unref(records);
    machine_free(&m);
}

static void test_lengths_ib(void)
{
    check_lengths(HCA_PCAPNG_IB);
}

static void test_lengths_ethernet(void)
{
    check_lengths(HCA_PCAPNG_ETHERNET);
}

/* The host is asked seldom; what is buffered is not lost. */
static void test_buffer(void)
{
    uint8_t packet[HCA_LINK_MAX_PACKET] = { 0 };
    const unsigned n = 1000;
    GArray *records;
    Machine m;

    machine_init(&m);
    hca_capture_packet(m.capture, true, packet, sizeof(packet), NULL);
    g_assert_cmpuint(m.writes, ==, 0); /* not started */
    hca_capture_start(m.capture, HCA_PCAPNG_IB);
    for (unsigned i = 0; i < n; i++) {
        put_be16(packet, i);
        hca_capture_packet(m.capture, true, packet, sizeof(packet), NULL);
    }
    g_assert_cmpuint(m.writes, <, n / 20);
    hca_capture_flush(m.capture);
    m.writes = 0;
    hca_capture_flush(m.capture);
    g_assert_cmpuint(m.writes, ==, 0);
    records = read_file(m.file, HCA_PCAPNG_IB);
    g_assert_cmpuint(records->len, ==, n);
    for (unsigned i = 0; i < n; i++) {
        g_assert_cmpuint(get_be16(record_at(records, i)->data), ==, i);
    }
    g_array_unref(records);

    /* What is left at the end. */
    hca_capture_packet(m.capture, true, packet, sizeof(packet), NULL);
    g_clear_pointer(&m.capture, hca_capture_free);
    records = read_file(m.file, HCA_PCAPNG_IB);
    g_assert_cmpuint(records->len, ==, n + 1);
    g_array_unref(records);
    machine_free(&m);
}

/* A host that takes no more: one warning, and that is the end. */
static void test_full(void)
{
    uint8_t packet[HCA_LINK_MAX_PACKET] = { 0 };
    size_t at = 0;
    Machine m;

    machine_init(&m);
    m.limit = 600 * 1024;
    hca_capture_start(m.capture, HCA_PCAPNG_IB);
    for (unsigned i = 0; i < 1000; i++) {
        hca_capture_packet(m.capture, true, packet, sizeof(packet), NULL);
        if (!hca_capture_is_on(m.capture)) {
            unsigned writes = m.writes;

            hca_capture_flush(m.capture);
            g_assert_cmpuint(m.writes, ==, writes);
        }
    }
    g_assert_false(hca_capture_is_on(m.capture));
    g_assert_cmpuint(m.warnings, ==, 1);
    g_assert_cmpuint(hca_capture_counters(m.capture)->bytes, ==, m.file->len);
    /* What it took is whole. */
    g_array_unref(read_file(m.file, HCA_PCAPNG_IB));

    /* A new one begins with a header; a host without room ends it at once. */
    g_byte_array_set_size(m.file, 0);
    hca_capture_start(m.capture, HCA_PCAPNG_IB);
    g_assert_true(hca_capture_is_on(m.capture));
    check_header(m.file, &at, HCA_PCAPNG_IB);
    m.limit = m.file->len;
    hca_capture_start(m.capture, HCA_PCAPNG_IB);
    g_assert_false(hca_capture_is_on(m.capture));
    g_assert_cmpuint(m.warnings, ==, 2);
    machine_free(&m);
}

/* At its size the file ends with a whole packet; the others are counted. */
static void test_limit(void)
{
    uint8_t packet[1000] = { 0 };
    GArray *records;
    size_t header;
    Machine m;

    machine_init(&m);
    hca_capture_start(m.capture, HCA_PCAPNG_IB);
    header = m.file->len;
    hca_capture_packet(m.capture, true, packet, sizeof(packet), NULL);
    hca_capture_flush(m.capture);
    for (int over = -1; over <= 1; over++) {
        size_t size = m.file->len - header;
        uint64_t limit = header + 5 * size + over;
        unsigned fit = over < 0 ? 4 : 5;

        machine_free(&m);
        machine_init(&m);
        hca_capture_limit(m.capture, limit);
        hca_capture_start(m.capture, HCA_PCAPNG_IB);
        for (unsigned i = 0; i < 8; i++) {
            hca_capture_packet(m.capture, true, packet, sizeof(packet), NULL);
        }
        hca_capture_flush(m.capture);
        g_assert_false(hca_capture_is_on(m.capture));
        g_assert_cmpuint(m.warnings, ==, 1);
        g_assert_cmpuint(m.file->len, <=, limit);
        g_assert_cmpuint(hca_capture_counters(m.capture)->packets, ==, fit);
        g_assert_cmpuint(hca_capture_counters(m.capture)->missed, ==, 8 - fit);
        records = read_file(m.file, HCA_PCAPNG_IB);
        g_assert_cmpuint(records->len, ==, fit);
        g_array_unref(records);
        g_byte_array_set_size(m.file, header + size);
    }
    machine_free(&m);
}

/* It is whole; what comes afterwards is nobody's. A new one may begin. */
static void test_stop(void)
{
    uint8_t packet[100] = { 0 };
    GArray *records;
    Machine m;

    machine_init(&m);
    hca_capture_stop(m.capture); /* nothing to stop */
    for (unsigned i = 0; i < 2; i++) {
        g_byte_array_set_size(m.file, 0);
        hca_capture_limit(m.capture, i ? 1000 : 0);
        hca_capture_start(m.capture, HCA_PCAPNG_IB);
        for (unsigned j = 0; j < 10; j++) {
            hca_capture_packet(m.capture, true, packet, sizeof(packet), NULL);
        }
        g_assert_cmpint(hca_capture_is_on(m.capture), ==, !i); /* or full */
        hca_capture_stop(m.capture);
        g_assert_false(hca_capture_is_on(m.capture));
        g_assert_false(hca_capture_is_watching(m.capture));
        hca_capture_reset_counters(m.capture);
        hca_capture_packet(m.capture, true, packet, sizeof(packet), NULL);
        hca_capture_flush(m.capture);
        g_assert_cmpuint(hca_capture_counters(m.capture)->missed, ==, 0);
        g_assert_cmpuint(m.warnings, ==, i);
        records = read_file(m.file, HCA_PCAPNG_IB);
        g_assert_cmpint(records->len < 10, ==, i);
        g_array_unref(records);
    }
    machine_free(&m);
}

static void test_no_host(void)
{
    uint8_t packet[4] = { 0 };
    Machine m;

    machine_init(&m);
    m.ops.capture_write = NULL;
    hca_capture_start(m.capture, HCA_PCAPNG_IB);
    g_assert_false(hca_capture_is_on(m.capture));
    hca_capture_packet(m.capture, true, packet, sizeof(packet), NULL);
    hca_capture_flush(m.capture);
    g_assert_cmpuint(hca_capture_counters(m.capture)->packets, ==, 0);
    machine_free(&m);
}

/* ---- cards ---- */

/* What the cable carried from each side. */
static CableFate keep(void *opaque, unsigned from, uint8_t *bytes, size_t len)
{
    GPtrArray **seen = opaque;

    g_ptr_array_add(seen[from], g_bytes_new(bytes, len));
    return CABLE_DELIVER;
}

static void check_same(const Record *record, GPtrArray *seen, unsigned i)
{
    gsize len;
    const void *data;

    g_assert_cmpuint(i, <, seen->len);
    data = g_bytes_get_data(g_ptr_array_index(seen, i), &len);
    g_assert_cmpmem(record->data, record->len, data, len);
}

static void exchange(Pair *pair, Qp *qp[2], unsigned rounds)
{
    g_autofree uint8_t *data = pair_data(pair, pair->mr[1]->len);

    mr_write(pair->mr[1], 0, data, pair->mr[1]->len);
    for (unsigned i = 0; i < rounds; i++) {
        SendWr wr;
        Sge sge;
        Wc wc;

        wr = pair_send(pair, 0,
                       i % 2 ? RDMA_HCA_OPCODE_RDMA_READ
                             : RDMA_HCA_OPCODE_RDMA_WRITE,
                       i, &sge, 0, 8000, i % 2 ? 0 : 16384);
        g_assert_true(qp_post_send(qp[0], &wr, 1));
        cq_expect(pair->cq[0], &wc, i, 0);
        pair_check_works(pair, qp, i % 2);
    }
    lab_sleep(pair->lab, NS_PER_S);
}

typedef struct Cable {
    Pair *pair;
    HcaPcapngLinkType link_type;
    GPtrArray *seen[2];
    Qp *qp[2];
} Cable;

static void cable_init(Cable *c, uint32_t seed)
{
    for (unsigned i = 0; i < 2; i++) {
        c->seen[i] = g_ptr_array_new_with_free_func(
            (GDestroyNotify)g_bytes_unref);
    }
    c->pair = pair_new_with(seed, 32768, NULL, keep, c->seen);
    c->link_type = c->pair->drv[0]->roce ? HCA_PCAPNG_ETHERNET : HCA_PCAPNG_IB;
    pair_connect(c->pair, NULL, c->qp);
}

static void cable_free(Cable *c)
{
    pair_free(c->pair);
    g_ptr_array_unref(c->seen[0]);
    g_ptr_array_unref(c->seen[1]);
}

/* On a good cable: both ends have the same, which is what passed it. */
static void test_cards(void)
{
    Cable c;

    cable_init(&c, 5001);
    for (unsigned i = 0; i < 2; i++) {
        hca_start_capture(c.pair->lab->host[i].hca);
    }
    exchange(c.pair, c.qp, 10);
    for (unsigned i = 0; i < 2; i++) {
        GArray *records = read_file(c.pair->lab->host[i].capture, c.link_type);
        unsigned n[2] = { 0 };

        for (unsigned r = 0; r < records->len; r++) {
            Record *record = record_at(records, r);
            unsigned from = record->direction == OUTBOUND ? i : !i;

            g_assert_null(record->comment);
            g_assert_cmpuint(record->time, <=, c.pair->lab->now);
            check_same(record, c.seen[from], n[from]++);
        }
        g_assert_cmpuint(n[0], ==, c.seen[0]->len);
        g_assert_cmpuint(n[1], ==, c.seen[1]->len);
        g_assert_cmpuint(pair_counter(c.pair, i, "capture_packets"), ==,
                         records->len);
        g_assert_cmpuint(pair_counter(c.pair, i, "capture_bytes"), ==,
                         c.pair->lab->host[i].capture->len);
        g_assert_cmpuint(pair_counter(c.pair, i, "capture_on"), ==, 1);
        g_array_unref(records);
    }
    cable_free(&c);
}

static const char *const actions[HCA_FAULT_NPACKET_ACTIONS] = {
    "drop", "duplicate", "reorder", "delay", "corrupt", "mark",
};
static const char *const comments[HCA_FAULT_NPACKET_ACTIONS] = {
    "fault: dropped (rule 0)",   "fault: duplicate (rule 1)",
    "fault: reordered (rule 2)", "fault: delayed (rule 3)",
    "fault: corrupted byte ",    "fault: marked (rule 5)",
};

static HcaFaultAction action_of(const Record *record)
{
    unsigned action = 0;

    while (action < HCA_FAULT_NPACKET_ACTIONS &&
           (!record->comment ||
            !g_str_has_prefix(record->comment, comments[action]))) {
        action++;
    }
    g_assert_true(!record->comment || action < HCA_FAULT_NPACKET_ACTIONS);
    return action;
}

/* Nothing covers a frame's MACs and pad, and what routers may change. */
static void check_corrupt(const Record *record, HcaPcapngLinkType link_type)
{
    const HcaEncap *encap = link_type == HCA_PCAPNG_IB ? &hca_encap_ib
                                                       : &hca_encap_roce;
    unsigned at, mask, rule;
    uint8_t bytes[HCA_LINK_MAX_PACKET];
    HcaPacket packet;

    g_assert_cmpint(sscanf(record->comment,
                           "fault: corrupted byte %u, bits 0x%2x (rule %u)",
                           &at, &mask, &rule),
                    ==, 3);
    g_assert_cmpuint(rule, ==, 4);
    g_assert_cmpuint(at, <, record->len);
    memcpy(bytes, record->data, record->len);
    if (link_type == HCA_PCAPNG_IB) {
        g_assert_cmpint(encap->parse(&packet, bytes, record->len), !=,
                        HCA_PARSE_OK);
    }
    bytes[at] ^= mask;
    g_assert_cmpint(encap->parse(&packet, bytes, record->len), ==,
                    HCA_PARSE_OK);
}

static void check_marked(const Record *record)
{
    HcaPacket packet;

    g_assert_cmpint(hca_roce_parse(&packet, record->data, record->len), ==,
                    HCA_PARSE_OK);
    g_assert_cmphex(packet.tclass & HCA_ECN_MASK, ==, HCA_ECN_CE);
}

static void leave_file(const GByteArray *file, const char *name)
{
    g_autofree char *path = pcap_path(name);
    g_autoptr(GError) error = NULL;

    g_file_set_contents(path, (const char *)file->data, file->len, &error);
    g_assert_no_error(error);
}

static HcaFaultPlan all_faults(uint32_t seed)
{
    HcaFaultPlan plan = { .seed = seed, .nrules = HCA_FAULT_NPACKET_ACTIONS };

    for (unsigned i = 0; i < HCA_FAULT_NPACKET_ACTIONS; i++) {
        plan.rule[i] = (HcaFaultRule) {
            .action = i,
            .directions = 1u << HCA_FAULT_TX | 1u << HCA_FAULT_RX,
            .probability = HCA_FAULT_ALWAYS / 20,
            .offset = -1,
            .delay_ns = i == HCA_FAULT_DELAY ? 20 * NS_PER_US : 0,
        };
    }
    return plan;
}

/*
 * With all faults: each is in the file where the counters say that it was, and
 * what was sent is in the file as it was on the cable.
 */
static void test_faults(void)
{
    HcaFaultPlan plan = all_faults(lab_seed(6));
    uint64_t n[2][HCA_FAULT_NPACKET_ACTIONS + 1] = { 0 };
    unsigned on_cable = 0, end;
    GArray *records;
    Host *host;
    Cable c;

    cable_init(&c, 5002);
    /* An InfiniBand packet has no place for a mark. */
    end = c.link_type == HCA_PCAPNG_IB ? HCA_FAULT_MARK
                                       : HCA_FAULT_NPACKET_ACTIONS;
    host = &c.pair->lab->host[0];
    hca_start_capture(host->hca);
    host_set_faults(host, &plan);
    exchange(c.pair, c.qp, 60);
    host_set_faults(host, NULL);
    lab_run(c.pair->lab);
    records = read_file(host->capture, c.link_type);
    for (unsigned i = 0; i < records->len; i++) {
        Record *record = record_at(records, i);
        bool rx = record->direction == INBOUND;
        HcaFaultAction action = action_of(record);

        n[rx][action]++;
        if (action == HCA_FAULT_CORRUPT) {
            check_corrupt(record, c.link_type);
        } else if (action != HCA_FAULT_NPACKET_ACTIONS) {
            g_assert_cmpstr(record->comment, ==, comments[action]);
        }
        if (action == HCA_FAULT_MARK) {
            check_marked(record);
        }
        if (!rx && action != HCA_FAULT_DROP) {
            check_same(record, c.seen[0], on_cable++);
        }
    }
    g_assert_cmpuint(on_cable, ==, c.seen[0]->len);
    for (unsigned i = 0; i < end; i++) {
        g_autofree char *tx = g_strdup_printf("fault_tx_%s", actions[i]);
        g_autofree char *rx = g_strdup_printf("fault_rx_%s", actions[i]);

        g_assert_cmpuint(n[0][i], >, 0);
        g_assert_cmpuint(n[0][i], ==, pair_counter(c.pair, 0, tx));
        g_assert_cmpuint(n[1][i], >, 0);
        g_assert_cmpuint(n[1][i], ==, pair_counter(c.pair, 0, rx));
    }
    leave_file(host->capture, c.link_type == HCA_PCAPNG_IB
                                  ? "rdma-hca.pcapng"
                                  : "rdma-hca-roce.pcapng");
    g_array_unref(records);
    cable_free(&c);
}

/* A Write of @side to its peer, or to itself if the QP is its own. */
static void post_write(Cable *c, unsigned side, Qp *qp, bool own)
{
    const Mr *to = c->pair->mr[own ? side : !side];
    SendWr wr;
    Sge sge;

    wr = pair_send(c->pair, side, RDMA_HCA_OPCODE_RDMA_WRITE, 1, &sge, 0, 100,
                   0);
    wr.rkey = to->key;
    wr.raddr = to->va;
    g_assert_true(qp_post_send(qp, &wr, 1));
    lab_run(c->pair->lab);
}

/* A packet to the card itself does not pass the cable. */
static void test_loopback(void)
{
    QpConfig config;
    QpAttr attr;
    size_t before;
    Host *host;
    Cable c;
    Qp *self;
    Wc wc;

    cable_init(&c, 5003);
    host = &c.pair->lab->host[0];
    hca_start_capture(host->hca);
    before = host->capture->len;
    qp_config_init(&config, c.pair->pd[0], c.pair->cq[0]);
    self = qp_new(c.pair->drv[0], &config);
    qp_attr_init(&attr);
    qp_connect(self, self, &attr);
    post_write(&c, 0, self, true);
    cq_expect(c.pair->cq[0], &wc, 1, 0);
    g_assert_cmpuint(host->capture->len, ==, before);
    pair_check_works(c.pair, c.qp, 0);
    g_assert_cmpuint(host->capture->len, >, before);
    cable_free(&c);
}

static void test_reset(void)
{
    GArray *records;
    Host *host;
    Cable c;

    cable_init(&c, 5005);
    host = &c.pair->lab->host[0];
    hca_start_capture(host->hca);
    pair_check_works(c.pair, c.qp, 0);
    driver_free(c.pair->drv[0]);
    host_reset(host);
    lab_run(c.pair->lab);
    g_assert_cmpuint(pair_counter(c.pair, 0, "capture_packets"), ==, 0);
    g_assert_cmpuint(pair_counter(c.pair, 0, "capture_on"), ==, 1);
    c.pair->drv[0] = driver_new(host); /* the peer's link is up again */
    c.pair->pd[0] = pd_new(c.pair->drv[0]);
    c.pair->cq[0] = cq_new(c.pair->drv[0], 8, 1);
    c.pair->mr[0] = mr_new(c.pair->drv[0], c.pair->pd[0], 0x10000, 65536,
                           ACCESS_ALL);
    lab_run(c.pair->lab);
    post_write(&c, 1, c.qp[1], false);
    g_assert_cmpuint(pair_counter(c.pair, 0, "capture_packets"), ==, 1);
    records = read_file(host->capture, c.link_type);
    g_assert_cmpuint(records->len, ==, 3);
    g_assert_cmpuint(record_at(records, 2)->direction, ==, INBOUND);
    g_array_unref(records);
    cable_free(&c);
}

/* The card goes on when the host takes no more. */
static void test_card_full(void)
{
    Cable c;
    Host *host;

    cable_init(&c, 5004);
    host = &c.pair->lab->host[0];
    host->capture_limit = 20000;
    hca_start_capture(host->hca);
    exchange(c.pair, c.qp, 10);
    g_assert_cmpuint(host->warnings->len, ==, 1);
    g_assert_cmpuint(pair_counter(c.pair, 0, "capture_on"), ==, 0);
    g_array_unref(read_file(host->capture, c.link_type));
    cable_free(&c);
}

/* Frames of the network interface are in the file like the engine's. */
static void test_interface(void)
{
    uint8_t frame[60] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, [12] = 8, 6 };
    g_autoptr(GByteArray) got = NULL;
    HcaConfig config[2];
    Nic *nic[2];
    Pair *pair;

    lab_config_roce(&config[0], 0);
    lab_config_roce(&config[1], 1);
    pair = pair_new_with(5006, 4096, config, NULL, NULL);
    for (unsigned i = 0; i < 2; i++) {
        nic[i] = nic_new(pair->drv[i], 4);
        hca_start_capture(pair->lab->host[i].hca);
    }
    nic_send(nic[0], frame, sizeof(frame));
    lab_run(pair->lab);
    got = nic_receive(nic[1], NULL);
    g_assert_cmpmem(got->data, got->len, frame, sizeof(frame));
    for (unsigned i = 0; i < 2; i++) {
        GArray *records = read_file(pair->lab->host[i].capture,
                                    HCA_PCAPNG_ETHERNET);
        const Record *record = record_at(records, 0);

        g_assert_cmpuint(records->len, ==, 1);
        g_assert_cmpmem(record->data, record->len, frame, sizeof(frame));
        g_assert_cmpuint(record->direction, ==, i ? INBOUND : OUTBOUND);
        g_array_unref(records);
        nic_free(nic[i]);
    }
    pair_free(pair);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/capture-file/format/infiniband", test_lengths_ib);
    test_add("/capture-file/format/ethernet", test_lengths_ethernet);
    test_add("/capture-file/buffer", test_buffer);
    test_add("/capture-file/full", test_full);
    test_add("/capture-file/limit", test_limit);
    test_add("/capture-file/stop", test_stop);
    test_add("/capture-file/no-host", test_no_host);
    test_add_each_link("/capture-file/cards/good-cable", test_cards);
    test_add_each_link("/capture-file/cards/faults", test_faults);
    test_add_each_link("/capture-file/cards/loopback", test_loopback);
    test_add_each_link("/capture-file/cards/reset", test_reset);
    test_add_each_link("/capture-file/cards/full", test_card_full);
    test_add("/roce/capture-file/cards/interface", test_interface);
    return g_test_run();
}
