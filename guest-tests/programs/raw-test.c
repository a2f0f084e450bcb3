/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: raw-test CASE                              raw packet QPs and flow rules, on one card
 *        raw-test send DMAC DADDR PORT FIRST COUNT  UDP datagrams by IPv4, as frames, to a rule's port or another one
 *        raw-test receive PORT COUNT                takes COUNT of them by a rule of MAC address, IP and UDP, and tells
 *        raw-test sniff FILE                        counts what passes, until there is a file of that name
 */
#define _GNU_SOURCE
#include "common.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <linux/capability.h>
#include <unistd.h>

#define SLOT 10240u /* a receive: any frame */
#define SLOTS 256u
#define ROCE_PORT 4791
#define DATA 200u /* bytes of a datagram */
#define QUIET_MS 300

static struct device device;
static struct region memory;
static struct ibv_cq_ex *cq;

/* --- frames ------------------------------------------------------------------------------------------------------- */

static const uint8_t group[6] = { 1, 0, 0x5e, 1, 2, 3 };
static const uint8_t nobody[6] = { 2, 0, 0, 0, 0, 0x77 };

struct frame {
    uint8_t dmac[6], smac[6];
    uint16_t type;
    uint8_t version, tos;
    uint16_t total, id, fragment;
    uint8_t ttl, protocol;
    uint16_t checksum;
    uint32_t saddr, daddr;
    uint16_t sport, dport, length, udp_checksum;
    uint32_t number;
    uint8_t data[DATA];
} __attribute__((packed));

static uint16_t ip_checksum(const void *header)
{
    const uint16_t *word = header;
    uint32_t sum = 0;

    for (int i = 0; i < 10; i++) {
        sum += word[i];
    }
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return ~sum;
}

static struct frame make_frame(const uint8_t *dmac, uint32_t daddr, uint16_t port, uint32_t number)
{
    struct frame frame = {
        .smac = { 2, 0, 0, 0, 0, 0x99 },
        .type = htons(0x0800),
        .version = 0x45,
        .total = htons(sizeof(frame) - 14),
        .ttl = 64,
        .protocol = IPPROTO_UDP,
        .saddr = htonl(0x0a636363),
        .daddr = daddr,
        .sport = htons(7777),
        .dport = htons(port),
        .length = htons(sizeof(frame) - 34),
        .number = htonl(number),
    };

    memcpy(frame.dmac, dmac, 6);
    memset(frame.data, number, DATA);
    frame.checksum = ip_checksum(&frame.version);
    return frame;
}

/* --- queues ------------------------------------------------------------------------------------------------------- */

static struct ibv_qp *try_raw(unsigned int sends)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = ibv_cq_ex_to_cq(cq),
        .recv_cq = ibv_cq_ex_to_cq(cq),
        .cap = { .max_send_wr = sends, .max_recv_wr = SLOTS, .max_send_sge = 2, .max_recv_sge = 2,
                 .max_inline_data = sends ? 64 : 0 },
        .qp_type = IBV_QPT_RAW_PACKET,
    };

    return ibv_create_qp(device.pd, &attr);
}

static void raw_to(struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1 };

    check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | (state == IBV_QPS_INIT ? IBV_QP_PORT : 0)));
}

static void bring_up(struct ibv_qp *qp)
{
    raw_to(qp, IBV_QPS_INIT);
    raw_to(qp, IBV_QPS_RTR);
    raw_to(qp, IBV_QPS_RTS);
}

static struct ibv_qp *create_raw(void)
{
    struct ibv_qp *qp = try_raw(64);

    check(qp);
    bring_up(qp);
    return qp;
}

static void post_slot(struct ibv_qp *qp, unsigned int slot)
{
    post_recv(qp, slot, sge_of(&memory, slot * SLOT, SLOT));
}

/* A signalled frame, from the end of the memory. */
static void post_frame(struct ibv_qp *qp, const void *frame, uint32_t length, unsigned int flags)
{
    struct ibv_sge sge = sge_of(&memory, SLOTS * SLOT, length);
    struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED | flags, .wr_id = 0x5e4d,
                              .sg_list = &sge, .num_sge = 1 };
    struct ibv_send_wr *bad;

    memcpy(memory.addr + SLOTS * SLOT, frame, length);
    check(!ibv_post_send(qp, &wr, &bad));
}

static void send_frame(struct ibv_qp *qp, const void *frame, uint32_t length)
{
    post_frame(qp, frame, length, 0);
    expect_completion(cq, 0x5e4d, IBV_WC_SUCCESS);
}

/* The frame that was sent has come to that slot, too: two completions, in any order. */
static void expect_both(struct ibv_qp *qp, unsigned int slot, const void *frame, uint32_t length)
{
    for (int i = 0; i < 2; i++) {
        struct ibv_wc wc = next_completion(cq);

        check(wc.status == IBV_WC_SUCCESS);
        if (wc.wr_id == 0x5e4d) {
            check(wc.opcode == IBV_WC_SEND);
            continue;
        }
        check(wc.wr_id == slot && wc.opcode == IBV_WC_RECV && wc.qp_num == qp->qp_num && !wc.wc_flags);
        check(wc.byte_len == length && !memcmp(memory.addr + slot * SLOT, frame, length));
    }
}

static void expect_quiet(void)
{
    struct ibv_wc wc;

    usleep(QUIET_MS * 1000);
    check(ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc) == 0);
}

/* --- rules -------------------------------------------------------------------------------------------------------- */

struct rule {
    struct ibv_flow_attr attr;
    struct ibv_flow_spec_eth eth;
    struct ibv_flow_spec_ipv4_ext ip;
    struct ibv_flow_spec_tcp_udp udp;
};
_Static_assert(sizeof(struct rule) == sizeof(struct ibv_flow_attr) + sizeof(struct ibv_flow_spec_eth) +
               sizeof(struct ibv_flow_spec_ipv4_ext) + sizeof(struct ibv_flow_spec_tcp_udp), "without gaps");

/* Of a destination MAC address, and a port of UDP. */
static struct rule make_rule(const uint8_t *dmac, uint32_t daddr, uint16_t port)
{
    struct rule rule = {
        .attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 3, .port = 1 },
        .eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth), .val.ether_type = htons(0x0800),
                 .mask.ether_type = 0xffff },
        .ip = { .type = IBV_FLOW_SPEC_IPV4_EXT, .size = sizeof(rule.ip), .val = { .dst_ip = daddr },
                .mask = { .dst_ip = daddr ? 0xffffffff : 0 } },
        .udp = { .type = IBV_FLOW_SPEC_UDP, .size = sizeof(rule.udp), .val.dst_port = htons(port),
                 .mask.dst_port = 0xffff },
    };

    memcpy(rule.eth.val.dst_mac, dmac, 6);
    memset(rule.eth.mask.dst_mac, 0xff, 6);
    return rule;
}

struct tagged_rule {
    struct rule rule;
    struct ibv_flow_spec_action_tag tag;
};
_Static_assert(sizeof(struct tagged_rule) == sizeof(struct rule) + sizeof(struct ibv_flow_spec_action_tag), "without gaps");

static struct tagged_rule make_tagged_rule(const uint8_t *dmac, uint16_t port, uint32_t tag)
{
    struct tagged_rule rule = {
        .rule = make_rule(dmac, 0, port),
        .tag = { .type = IBV_FLOW_SPEC_ACTION_TAG, .size = sizeof(rule.tag), .tag_id = tag },
    };

    rule.rule.attr.size = sizeof(rule);
    rule.rule.attr.num_of_specs++;
    return rule;
}

static struct ibv_flow *add_rule(struct ibv_qp *qp, struct rule *rule)
{
    struct ibv_flow *flow = ibv_create_flow(qp, &rule->attr);

    check(flow);
    return flow;
}

static struct ibv_flow *plain_rule(struct ibv_qp *qp, enum ibv_flow_attr_type type)
{
    struct ibv_flow_attr attr = { .type = type, .size = sizeof(attr), .port = 1 };
    struct ibv_flow *flow = ibv_create_flow(qp, &attr);

    check(flow);
    return flow;
}

/* --- cases -------------------------------------------------------------------------------------------------------- */

/* A multicast of one's own turns round to those whose rules match; so do short and long ones, and inline data. */
static void test_self(void)
{
    struct ibv_qp *sender = create_raw(), *taker = create_raw();
    struct frame frame = make_frame(group, htonl(0xe0010203), 1234, 7);
    struct rule rule = make_rule(group, htonl(0xe0010203), 1234);
    struct ibv_flow *flow = add_rule(taker, &rule);
    uint8_t padded[60] = { 0 };
    uint8_t *large = calloc(1, 9018);

    post_slot(taker, 0);
    post_frame(sender, &frame, sizeof(frame), 0);
    expect_both(taker, 0, &frame, sizeof(frame));
    frame.dport = htons(1235);
    post_slot(taker, 1);
    send_frame(sender, &frame, sizeof(frame));
    expect_quiet();
    check(!ibv_destroy_flow(flow));

    rule.attr.num_of_specs = 1;
    rule.eth.mask.ether_type = 0;
    flow = add_rule(taker, &rule);
    memcpy(padded, &frame, 14);
    post_frame(sender, &frame, 14, IBV_SEND_INLINE);
    expect_both(taker, 1, padded, 60);
    memcpy(large, &frame, sizeof(frame));
    memset(large + 9000, 0x5a, 18);
    post_slot(taker, 2);
    post_frame(sender, large, 9018, 0);
    expect_both(taker, 2, large, 9018);
    check(!ibv_destroy_flow(flow));
    send_frame(sender, &frame, sizeof(frame));
    expect_quiet();
    free(large);
    check(!ibv_destroy_qp(sender) && !ibv_destroy_qp(taker));
}

/* The better priority has a frame alone, unless its rule lets frames go on. */
static void test_priority(void)
{
    struct ibv_qp *qp[3] = { create_raw(), create_raw(), create_raw() };
    struct frame frame = make_frame(group, htonl(0xe0010203), 1234, 7);
    struct rule rule = make_rule(group, 0, 1234);
    struct ibv_flow *first, *second;

    rule.attr.priority = 2;
    second = add_rule(qp[2], &rule);
    rule.attr.priority = 1;
    first = add_rule(qp[1], &rule);
    for (int i = 1; i < 3; i++) {
        post_slot(qp[i], i);
        post_slot(qp[i], i);
    }
    post_frame(qp[0], &frame, sizeof(frame), 0);
    expect_both(qp[1], 1, &frame, sizeof(frame));
    expect_quiet();
    check(!ibv_destroy_flow(first));
    post_frame(qp[0], &frame, sizeof(frame), 0);
    expect_both(qp[2], 2, &frame, sizeof(frame));

    rule.attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
    first = add_rule(qp[1], &rule);
    post_frame(qp[0], &frame, sizeof(frame), 0);
    for (int i = 0; i < 3; i++) {
        check(next_completion(cq).status == IBV_WC_SUCCESS);
    }
    expect_quiet();
    check(!ibv_destroy_flow(first) && !ibv_destroy_flow(second));
    for (int i = 0; i < 3; i++) {
        check(!ibv_destroy_qp(qp[i]));
    }
}

/* Completions say by which rule a frame came; of rules without a tag, and of sends, they say 0. */
static void test_tags(void)
{
    struct tagged_rule tagged = make_tagged_rule(group, 1, 0xfedcba98);
    struct rule plain = make_rule(group, 0, 2);
    struct ibv_cq_init_attr_ex attr = { .cqe = 16, .wc_flags = IBV_WC_EX_WITH_FLOW_TAG };
    struct ibv_cq_ex *other = cq;
    struct ibv_poll_cq_attr poll = {};
    struct ibv_flow *flow[2];
    struct ibv_qp *qp;

    cq = ibv_create_cq_ex(device.context, &attr);
    check(cq);
    qp = create_raw();
    flow[0] = add_rule(qp, &tagged.rule);
    flow[1] = add_rule(qp, &plain);
    for (uint16_t port = 1; port <= 2; port++) {
        struct frame frame = make_frame(group, htonl(0xe0010203), port, 7);

        post_slot(qp, port);
        post_frame(qp, &frame, sizeof(frame), 0);
        for (int i = 0; i < 2; i++) {
            while (ibv_start_poll(cq, &poll) == ENOENT) {
            }
            check(cq->status == IBV_WC_SUCCESS);
            check(ibv_wc_read_flow_tag(cq) == (cq->wr_id == 1 ? 0xfedcba98 : 0));
            ibv_end_poll(cq);
        }
    }
    check(!ibv_destroy_flow(flow[0]) && !ibv_destroy_flow(flow[1]));
    check(!ibv_destroy_qp(qp));
    destroy_cq(cq);
    cq = other;
}

/* A sniffer, as tcpdump has it: without a send queue, in RTR. */
static void test_sniffer(void)
{
    struct ibv_qp *sender = create_raw(), *sniffer = try_raw(0);
    struct frame frame = make_frame(nobody, htonl(0x0a010203), 1234, 7);
    struct ibv_flow *flow;

    check(sniffer);
    raw_to(sniffer, IBV_QPS_INIT);
    raw_to(sniffer, IBV_QPS_RTR);
    flow = plain_rule(sniffer, IBV_FLOW_ATTR_SNIFFER);
    for (unsigned int i = 0; i < SLOTS; i++) {
        post_slot(sniffer, i);
    }
    post_frame(sender, &frame, sizeof(frame), 0);
    for (bool seen = false; !seen;) { /* the interface may talk, too */
        struct ibv_wc wc = next_completion(cq);

        check(wc.status == IBV_WC_SUCCESS);
        seen = wc.qp_num == sniffer->qp_num && wc.byte_len == sizeof(frame) &&
               !memcmp(memory.addr + wc.wr_id * SLOT, &frame, sizeof(frame));
    }
    check(!ibv_destroy_flow(flow));
    check(!ibv_destroy_qp(sniffer) && !ibv_destroy_qp(sender));
}

static void expect_refused(struct ibv_qp *qp, struct rule *rule, int err)
{
    errno = 0;
    check(!ibv_create_flow(qp, &rule->attr) && errno == err);
}

static void test_refused_rules(void)
{
    struct ibv_qp *qp = create_raw();
    struct ibv_qp *ud = create_qp(&device, cq, IBV_QPT_UD, 4, 0);
    struct tagged_rule tagged = make_tagged_rule(group, 1234, 1);
    struct rule good = make_rule(group, 0, 1234), rule;

    expect_refused(ud, &good, EOPNOTSUPP);
    rule = good;
    rule.attr.port = 2;
    expect_refused(qp, &rule, EINVAL);
    rule = good;
    rule.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
    expect_refused(qp, &rule, EOPNOTSUPP);
    rule = good;
    rule.attr.type = IBV_FLOW_ATTR_ALL_DEFAULT;
    expect_refused(qp, &rule, EINVAL);
    rule = good;
    rule.eth.type |= IBV_FLOW_SPEC_INNER;
    expect_refused(qp, &rule, EOPNOTSUPP);
    rule = good;
    rule.ip.mask.flags = 1;
    expect_refused(qp, &rule, EOPNOTSUPP);
    tagged.tag.type = IBV_FLOW_SPEC_ACTION_DROP;
    tagged.tag.size = sizeof(struct ibv_flow_spec_action_drop);
    expect_refused(qp, &tagged.rule, EOPNOTSUPP);
    rule = good; /* TCP, says IP */
    rule.ip.val.proto = IPPROTO_TCP;
    rule.ip.mask.proto = 0xff;
    expect_refused(qp, &rule, EINVAL);
    check(!ibv_destroy_qp(ud) && !ibv_destroy_qp(qp));
}

/* As many rules as there can be; what is given back can be had again. A QP that has rules stays. */
static void test_all_rules(void)
{
    struct ibv_qp *qp = create_raw();
    struct rule rule = make_rule(nobody, 0, 1234);
    struct ibv_flow *flow[1025];
    unsigned int n = 0;

    while (n < 1025 && (flow[n] = ibv_create_flow(qp, &rule.attr))) {
        n++;
    }
    check(errno == ENOMEM && n == 256);
    check(ibv_destroy_qp(qp) == EBUSY);
    check(!ibv_destroy_flow(flow[100]));
    flow[100] = add_rule(qp, &rule);
    for (unsigned int i = 0; i < n; i++) {
        check(!ibv_destroy_flow(flow[i]));
    }
    check(!ibv_destroy_qp(qp));
}

/* What a process leaves behind goes with it. */
static void test_left_behind(void)
{
    struct rule rule = make_rule(nobody, 0, 1234);

    for (int i = 0; i < 20; i++) {
        struct ibv_qp *qp = create_raw();

        add_rule(qp, &rule);
        plain_rule(qp, IBV_FLOW_ATTR_SNIFFER);
    }
    exit(0);
}

/* Who may not see or say everything on the network may not here. */
static void test_unprivileged(void)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2];
    struct ibv_qp *qp = create_raw();
    struct rule rule = make_rule(nobody, 0, 1234);

    check(!syscall(SYS_capget, &header, data));
    data[0].effective &= ~(1u << CAP_NET_RAW);
    check(!syscall(SYS_capset, &header, data));
    check(!try_raw(4) && errno == EPERM);
    expect_refused(qp, &rule, EPERM);
    check(!ibv_destroy_qp(qp));
}

/* Receives of any length break nothing; states and errors are as of datagrams. */
static void test_errors(void)
{
    struct ibv_qp *sender = create_raw(), *taker = create_raw();
    struct frame frame = make_frame(group, 0, 1234, 7);
    struct rule rule = make_rule(group, 0, 1234);
    struct ibv_flow *flow = add_rule(taker, &rule);

    post_recv(taker, 1, sge_of(&memory, SLOT, 100)); /* too small: dropped, and kept */
    send_frame(sender, &frame, sizeof(frame));
    expect_quiet();
    check(state_of(taker) == IBV_QPS_RTS);
    raw_to(taker, IBV_QPS_ERR);
    expect_completion(cq, 1, IBV_WC_WR_FLUSH_ERR);
    raw_to(taker, IBV_QPS_RESET);
    bring_up(taker);
    post_slot(taker, 3);
    post_frame(sender, &frame, sizeof(frame), 0); /* the rule is still there */
    expect_both(taker, 3, &frame, sizeof(frame));

    post_frame(sender, &frame, 13, 0);
    expect_completion(cq, 0x5e4d, IBV_WC_LOC_LEN_ERR);
    check(state_of(sender) == IBV_QPS_SQE);
    raw_to(sender, IBV_QPS_RTS);
    send_frame(sender, &frame, sizeof(frame));
    check(!ibv_destroy_flow(flow) && !ibv_destroy_qp(taker) && !ibv_destroy_qp(sender));
}

/* --- two machines ------------------------------------------------------------------------------------------------- */

static void run_send(const char *dmac, const char *daddr, unsigned int port, unsigned int first, unsigned int count)
{
    struct ibv_qp *qp = create_raw();
    uint8_t mac[6];

    check(sscanf(dmac, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4], &mac[5]) == 6);
    for (unsigned int i = first; i < first + count; i++) {
        struct frame frame = make_frame(mac, inet_addr(daddr), port, i);

        send_frame(qp, &frame, sizeof(frame));
    }
    check(!ibv_destroy_qp(qp));
}

/* The interface's address, by the link-local GID that it has (RFC 4291, appendix A). */
static void own_mac(uint8_t *mac)
{
    const uint8_t *eui = device.gid.raw + 8;

    memcpy(mac, (uint8_t[]) { eui[0] ^ 2, eui[1], eui[2], eui[5], eui[6], eui[7] }, 6);
}

static void run_receive(unsigned int port, unsigned int count)
{
    struct ibv_qp *qp = create_raw();
    struct ibv_flow *flow;
    struct rule rule;
    uint8_t mac[6];

    own_mac(mac);
    for (unsigned int i = 0; i < SLOTS; i++) {
        post_slot(qp, i);
    }
    rule = make_rule(mac, 0, port);
    flow = add_rule(qp, &rule);
    printf("ready\n");
    fflush(stdout);
    for (unsigned int i = 0; i < count; i++) {
        struct ibv_wc wc = next_completion(cq);
        const struct frame *frame = (void *)(memory.addr + wc.wr_id * SLOT);

        check(wc.status == IBV_WC_SUCCESS && wc.byte_len == sizeof(*frame));
        check(ntohl(frame->number) == i && frame->dport == htons(port) && frame->data[DATA - 1] == (uint8_t)i);
        post_slot(qp, wc.wr_id);
        if ((i + 1) % 100 == 0) {
            printf("%u received\n", i + 1);
            fflush(stdout);
        }
    }
    check(!ibv_destroy_flow(flow) && !ibv_destroy_qp(qp));
}

/* RoCEv2 by IPv4, and what else passes, from here and to here. */
static void run_sniff(const char *end)
{
    struct ibv_qp *qp = try_raw(0);
    unsigned int roce[2] = { 0 }, other[2] = { 0 };
    struct ibv_flow *flow;
    uint8_t mac[6];

    check(qp);
    own_mac(mac);
    raw_to(qp, IBV_QPS_INIT);
    raw_to(qp, IBV_QPS_RTR);
    for (unsigned int i = 0; i < SLOTS; i++) {
        post_slot(qp, i);
    }
    flow = plain_rule(qp, IBV_FLOW_ATTR_SNIFFER);
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        const struct frame *frame;
        struct ibv_wc wc;
        bool sent;

        if (ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc) != 1) {
            if (!access(end, F_OK)) {
                break;
            }
            usleep(1000);
            continue;
        }
        check(wc.status == IBV_WC_SUCCESS);
        frame = (void *)(memory.addr + wc.wr_id * SLOT);
        sent = !memcmp(frame->smac, mac, 6);
        if (frame->type == htons(0x0800) && frame->protocol == IPPROTO_UDP && frame->dport == htons(ROCE_PORT)) {
            roce[sent]++;
        } else {
            other[sent]++;
        }
        post_slot(qp, wc.wr_id);
    }
    printf("roce received %u sent %u other received %u sent %u\n", roce[0], roce[1], other[0], other[1]);
    check(!ibv_destroy_flow(flow) && !ibv_destroy_qp(qp));
}

/* --- main --------------------------------------------------------------------------------------------------------- */

static const struct test_case cases[] = {
    { "self", test_self },
    { "priority", test_priority },
    { "tags", test_tags },
    { "sniffer", test_sniffer },
    { "refused_rules", test_refused_rules },
    { "all_rules", test_all_rules },
    { "left_behind", test_left_behind },
    { "unprivileged", test_unprivileged },
    { "errors", test_errors },
    { NULL, NULL },
};

/* One end of two machines: whether there is such a one. */
static bool run_end(int argc, char **argv)
{
    if (argc == 7 && !strcmp(argv[1], "send")) {
        run_send(argv[2], argv[3], atoi(argv[4]), atoi(argv[5]), atoi(argv[6]));
        return true;
    }
    if (argc == 4 && !strcmp(argv[1], "receive")) {
        run_receive(atoi(argv[2]), atoi(argv[3]));
        return true;
    }
    if (argc == 3 && !strcmp(argv[1], "sniff")) {
        run_sniff(argv[2]);
        return true;
    }
    return false;
}

static void begin(void)
{
    create_region(&device, &memory, (SLOTS + 1) * SLOT);
    cq = create_cq(&device, 4 * SLOTS);
}

static void end(void)
{
    destroy_cq(cq);
    destroy_region(&memory);
}

int main(int argc, char **argv)
{
    bool known;

    if (argc <= 2) {
        return run_case(argc, argv, cases, &device, begin, end);
    }
    open_device(&device);
    begin();
    known = run_end(argc, argv);
    end();
    close_device(&device);
    if (!known) {
        fprintf(stderr, "usage: raw-test CASE\n");
    }
    return known ? 0 : 2;
}
