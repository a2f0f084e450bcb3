/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The subnet management interface: where an SMP by directed route goes, for
 * every hop pointer and hop count, against the cases of C14-9 and C14-13 as the
 * specification has them, in a table of this test's own.
 */
#include <string.h>

#include "lib-mad.h"
#include "lib-test.h"

#define PERMISSIVE 0xffff
#define RESPONSE 0x8000

/* Where the pieces of an SMP lie. */
#define STATUS 4
#define POINTER 6
#define COUNT 7
#define DR_SLID 32
#define DR_DLID 34
#define INITIAL 128
#define RETURN 192

/* What a case does. */
typedef enum Way {
    TO_NODE,    /* to the agent or manager of this node */
    BY_INITIAL, /* out of the port that the initial path has */
    BY_RETURN,
    IF_DLID, /* to the node if DrDLID is permissive, else by LIDs */
    IF_SLID,
    LOST,
} Way;

typedef struct Case {
    bool response;
    bool (*fits)(unsigned pointer, unsigned count);
    bool switch_only;
    bool not_from_wire; /* with a permissive DrSLID; CAs never */
    bool records;       /* ReturnPath[pointer] = the port that it came in by */
    int step;
    Way way;
} Case;

static bool at_start(unsigned pointer, unsigned count)
{
    return count > 0 && pointer == 0;
}

static bool on_its_way(unsigned pointer, unsigned count)
{
    return 0 < pointer && pointer < count;
}

static bool at_end(unsigned pointer, unsigned count)
{
    return pointer == count && count > 0;
}

static bool no_hops(unsigned pointer, unsigned count)
{
    return pointer == 0 && count == 0;
}

static bool beyond_end(unsigned pointer, unsigned count)
{
    return pointer == count + 1;
}

static bool answer_at_end(unsigned pointer, unsigned count)
{
    return count > 0 && pointer == count + 1;
}

static bool on_its_way_back(unsigned pointer, unsigned count)
{
    return 2 <= pointer && pointer <= count;
}

static bool at_one(unsigned pointer, unsigned count)
{
    return pointer == 1;
}

static bool at_zero(unsigned pointer, unsigned count)
{
    return pointer == 0;
}

/* The first that fits. */
static const Case cases[] = {
    { false, at_start, false, true, false, 1, BY_INITIAL },
    { false, on_its_way, true, false, true, 1, BY_INITIAL },
    { false, at_end, false, false, true, 1, IF_DLID },
    { false, no_hops, false, false, false, 1, IF_DLID },
    { false, beyond_end, false, false, false, 0, TO_NODE },
    { true, answer_at_end, false, false, false, -1, BY_RETURN },
    { true, on_its_way_back, true, false, false, -1, BY_RETURN },
    { true, at_one, false, false, false, -1, IF_SLID },
    { true, at_zero, false, false, false, 0, TO_NODE },
};

typedef struct Outcome {
    HcaSmiAction action;
    unsigned port;
    uint8_t mad[HCA_MAD_SIZE];
} Outcome;

static HcaSmiAction by_path(const HcaNode *node, unsigned port)
{
    bool is_switch = node->type == HCA_NODE_SWITCH;

    return port > node->num_ports || (!is_switch && port == 0)
               ? HCA_SMI_DROP
               : HCA_SMI_FORWARD;
}

static HcaSmiAction by_lid(const HcaNode *node, const uint8_t *lid)
{
    if (get_be16(lid) == PERMISSIVE) {
        return HCA_SMI_LOCAL;
    }
    return node->type == HCA_NODE_SWITCH ? HCA_SMI_ROUTE : HCA_SMI_DROP;
}

static void take(const HcaNode *node, const Case *c, Outcome *out)
{
    uint8_t *mad = out->mad;

    switch (c->way) {
    case TO_NODE:
        out->action = HCA_SMI_LOCAL;
        break;
    case BY_INITIAL:
    case BY_RETURN:
        out->port =
            mad[(c->way == BY_INITIAL ? INITIAL : RETURN) + mad[POINTER]];
        out->action = by_path(node, out->port);
        break;
    case IF_DLID:
        out->action = by_lid(node, mad + DR_DLID);
        break;
    case IF_SLID:
        out->action = by_lid(node, mad + DR_SLID);
        break;
    case LOST:
        break;
    }
}

static void apply(const HcaNode *node, const Case *c, unsigned in_port,
                  Outcome *out)
{
    bool is_switch = node->type == HCA_NODE_SWITCH;
    uint8_t *mad = out->mad;

    if (c->switch_only && !is_switch) {
        return;
    }
    if (c->not_from_wire && in_port &&
        (!is_switch || get_be16(mad + DR_SLID) == PERMISSIVE)) {
        return;
    }
    if (c->records) {
        mad[RETURN + mad[POINTER]] = in_port;
    }
    mad[POINTER] += c->step;
    take(node, c, out);
}

static Outcome expected(const HcaNode *node, unsigned in_port,
                        const uint8_t *mad)
{
    bool response = get_be16(mad + STATUS) & RESPONSE;
    Outcome out = { .action = HCA_SMI_DROP };

    memcpy(out.mad, mad, HCA_MAD_SIZE);
    if (mad[COUNT] >= 64) {
        return out;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        if (cases[i].response == response &&
            cases[i].fits(mad[POINTER], mad[COUNT])) {
            apply(node, &cases[i], in_port, &out);
            break;
        }
    }
    return out;
}

static void compare(const Outcome *want, const uint8_t *mad,
                    HcaSmiAction action, unsigned port)
{
    if (action != want->action) {
        g_error("pointer %u count %u: action %d, not %d", mad[POINTER],
                mad[COUNT], action, want->action);
    }
    if (action == HCA_SMI_FORWARD) {
        g_assert_cmpuint(port, ==, want->port);
    }
    if (action != HCA_SMI_DROP) {
        g_assert_cmpmem(mad, HCA_MAD_SIZE, want->mad, HCA_MAD_SIZE);
    }
}

static void try_smp(HcaNode *node, unsigned in_port, const uint8_t *mad)
{
    Outcome want = expected(node, in_port, mad);
    uint64_t errors = node->counters.route_errors;
    uint8_t copy[HCA_MAD_SIZE];
    unsigned port = UINT_MAX;
    HcaSmiAction action;

    memcpy(copy, mad, HCA_MAD_SIZE);
    action = hca_smi_receive(node, in_port, copy, &port);
    compare(&want, copy, action, port);
    g_assert_cmpuint(node->counters.route_errors - errors, ==,
                     want.action == HCA_SMI_DROP);
}

/* All that goes in, of which the paths are at random. */
static void make_smp(MadBench *b, uint16_t status, uint16_t slid, uint16_t dlid,
                     unsigned most_port)
{
    b->class = 0x81;
    mad_request(b, status & RESPONSE ? 0x81 : 0x01, 0x11, 0);
    put_be16(b->mad + STATUS, status);
    put_be16(b->mad + DR_SLID, slid);
    put_be16(b->mad + DR_DLID, dlid);
    for (unsigned i = 0; i < 64; i++) {
        b->mad[64 + i] = g_test_rand_int();
        b->mad[INITIAL + i] = g_test_rand_int_range(0, most_port + 1);
        b->mad[RETURN + i] = g_test_rand_int_range(0, most_port + 1);
    }
}

static void try_all(MadBench *b, unsigned in_port)
{
    for (unsigned pointer = 0; pointer < 256; pointer++) {
        for (unsigned count = 0; count < 256; count++) {
            b->mad[POINTER] = pointer;
            b->mad[COUNT] = count;
            try_smp(b->node, in_port, b->mad);
        }
    }
}

typedef struct Kind {
    HcaNodeType type;
    unsigned ports;
    const char *name;
} Kind;

static const Kind kinds[] = {
    { HCA_NODE_CA, 1, "ca" },
    { HCA_NODE_SWITCH, 1, "switch-1" },
    { HCA_NODE_SWITCH, 8, "switch-8" },
    { HCA_NODE_SWITCH, 36, "switch-36" },
};

/* A status that is not 0 does not make a request a response. */
static const uint16_t statuses[] = { 0, 0x001c, RESPONSE, RESPONSE | 0x000c };

static void test_every_hop(gconstpointer opaque)
{
    static const uint16_t lids[] = { PERMISSIVE, 0, 7, 0xbfff, 0xfffe };
    const Kind *kind = opaque;
    MadBench *b = mad_bench_new_ports(kind->type, kind->ports);

    for (unsigned round = 0; round < 40; round++) {
        unsigned in_port = g_test_rand_int_range(0, kind->ports + 1);
        uint16_t slid = lids[g_test_rand_int_range(0, 5)];
        uint16_t dlid = lids[g_test_rand_int_range(0, 5)];

        /* The paths have ports that there are, or some that there are not. */
        make_smp(b, statuses[round % 4], round & 4 ? slid : PERMISSIVE,
                 round & 8 ? dlid : PERMISSIVE, round & 16 ? kind->ports : 255);
        try_all(b, in_port);
        try_all(b, 0);
    }
    mad_bench_free(b);
}

/* The ports at the edges, at each place of a path. */
static void test_every_port(gconstpointer opaque)
{
    const Kind *kind = opaque;
    MadBench *b = mad_bench_new_ports(kind->type, kind->ports);

    for (unsigned round = 0; round < 4; round++) {
        make_smp(b, statuses[round], PERMISSIVE, PERMISSIVE, kind->ports);
        b->mad[COUNT] = 63;
        for (unsigned hop = 0; hop <= 64; hop++) {
            for (unsigned port = 0; port < 256; port++) {
                b->mad[POINTER] = hop;
                memset(b->mad + INITIAL, port, 64);
                memset(b->mad + RETURN, port, 64);
                try_smp(b->node, hop ? 1 : 0, b->mad);
            }
        }
    }
    mad_bench_free(b);
}

/*
 * The answer of a node is a response that has come nowhere yet. What began by
 * LIDs and had no hop ends by LIDs, at a switch.
 */
static void test_respond(gconstpointer opaque)
{
    const Kind *kind = opaque;
    MadBench *b = mad_bench_new_ports(kind->type, kind->ports);

    for (unsigned count = 0; count < 64; count++) {
        for (unsigned round = 0; round < 8; round++) {
            uint8_t copy[HCA_MAD_SIZE];
            unsigned port = UINT_MAX;
            HcaSmiAction action;
            Outcome want;

            make_smp(b, RESPONSE, round & 1 ? 0x33 : PERMISSIVE, PERMISSIVE,
                     round & 2 ? kind->ports : 255);
            b->mad[COUNT] = count;
            b->mad[POINTER] = count + 1;
            want = expected(b->node, 0, b->mad);
            memcpy(copy, b->mad, HCA_MAD_SIZE);
            action = hca_smi_respond(b->node, copy, &port);
            compare(&want, copy, action, port);
        }
    }
    mad_bench_free(b);
}

/* ---- routes ---- */

/* Through @n switches to a CA and back: what each hop makes of it. */
static void test_way(gconstpointer opaque)
{
    unsigned n = GPOINTER_TO_UINT(opaque);
    MadBench *sw = mad_bench_new_ports(HCA_NODE_SWITCH, 8);
    MadBench *ca = mad_bench_new(HCA_NODE_CA);
    uint8_t mad[HCA_MAD_SIZE];
    unsigned port;

    make_smp(ca, 0, PERMISSIVE, PERMISSIVE, 8);
    memcpy(mad, ca->mad, HCA_MAD_SIZE);
    mad[COUNT] = n + 1;
    mad[POINTER] = 0;
    mad[INITIAL + 1] = 1;
    for (unsigned i = 0; i < n; i++) {
        mad[INITIAL + 2 + i] = 1 + i % 8;
    }
    memset(mad + RETURN, 0, 64);
    g_assert_cmpint(hca_smi_receive(ca->node, 0, mad, &port), ==,
                    HCA_SMI_FORWARD);
    g_assert_cmpuint(port, ==, 1);
    for (unsigned i = 0; i < n; i++) {
        g_assert_cmpint(hca_smi_receive(sw->node, 8 - i % 8, mad, &port), ==,
                        HCA_SMI_FORWARD);
        g_assert_cmpuint(port, ==, 1 + i % 8);
        g_assert_cmpuint(mad[RETURN + 1 + i], ==, 8 - i % 8);
    }
    g_assert_cmpint(hca_smi_receive(ca->node, 1, mad, &port), ==,
                    HCA_SMI_LOCAL);
    g_assert_cmpuint(mad[POINTER], ==, n + 2);
    put_be16(mad + STATUS, RESPONSE);
    g_assert_cmpint(hca_smi_respond(ca->node, mad, &port), ==, HCA_SMI_FORWARD);
    g_assert_cmpuint(port, ==, 1);
    for (unsigned i = n; i--;) {
        g_assert_cmpint(hca_smi_receive(sw->node, 1 + i % 8, mad, &port), ==,
                        HCA_SMI_FORWARD);
        g_assert_cmpuint(port, ==, 8 - i % 8);
    }
    g_assert_cmpint(hca_smi_receive(ca->node, 1, mad, &port), ==,
                    HCA_SMI_LOCAL);
    g_assert_cmpuint(mad[POINTER], ==, 0);
    mad_bench_free(sw);
    mad_bench_free(ca);
}

/* By LIDs to a switch, one hop further and back, and by LIDs again. */
static void test_combined(void)
{
    MadBench *sw = mad_bench_new_ports(HCA_NODE_SWITCH, 8);
    MadBench *ca = mad_bench_new(HCA_NODE_CA);
    uint8_t *mad = sw->mad;
    unsigned port;

    make_smp(sw, 0, 0x21, PERMISSIVE, 8);
    mad[COUNT] = 1;
    mad[POINTER] = 0;
    mad[INITIAL + 1] = 5;
    g_assert_cmpint(hca_smi_receive(sw->node, 3, mad, &port), ==,
                    HCA_SMI_FORWARD);
    g_assert_cmpuint(port, ==, 5);
    g_assert_cmpint(hca_smi_receive(ca->node, 1, mad, &port), ==,
                    HCA_SMI_LOCAL);
    put_be16(mad + STATUS, RESPONSE);
    g_assert_cmpint(hca_smi_respond(ca->node, mad, &port), ==, HCA_SMI_FORWARD);
    g_assert_cmpint(hca_smi_receive(sw->node, 5, mad, &port), ==,
                    HCA_SMI_ROUTE);
    g_assert_cmpuint(mad[POINTER], ==, 0);
    mad_bench_free(sw);
    mad_bench_free(ca);
}

/* ibtracert: a hop to port 0 of a switch is one to the switch itself. */
static void test_port_0(void)
{
    MadBench *sw = mad_bench_new_ports(HCA_NODE_SWITCH, 8);
    uint8_t *mad = sw->mad;
    unsigned port;

    make_smp(sw, 0, PERMISSIVE, PERMISSIVE, 8);
    mad[COUNT] = 2;
    mad[POINTER] = 1;
    mad[INITIAL + 2] = 0;
    g_assert_cmpint(hca_smi_receive(sw->node, 4, mad, &port), ==,
                    HCA_SMI_FORWARD);
    g_assert_cmpuint(port, ==, 0);
    g_assert_cmpint(hca_smi_receive(sw->node, 0, mad, &port), ==,
                    HCA_SMI_LOCAL);
    g_assert_cmpuint(mad[RETURN + 1], ==, 4);
    g_assert_cmpuint(mad[RETURN + 2], ==, 0);
    put_be16(mad + STATUS, RESPONSE);
    g_assert_cmpint(hca_smi_respond(sw->node, mad, &port), ==, HCA_SMI_FORWARD);
    g_assert_cmpuint(port, ==, 0);
    g_assert_cmpint(hca_smi_receive(sw->node, 0, mad, &port), ==,
                    HCA_SMI_FORWARD);
    g_assert_cmpuint(port, ==, 4);
    mad_bench_free(sw);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        const Kind *kind = &kinds[i];

        test_add_data(test_named("/mad/smi/%s/hops", kind->name), kind,
                      test_every_hop);
        test_add_data(test_named("/mad/smi/%s/ports", kind->name), kind,
                      test_every_port);
        test_add_data(test_named("/mad/smi/%s/respond", kind->name), kind,
                      test_respond);
    }
    for (unsigned n = 0; n < 63; n += n < 3 ? 1 : 59) {
        test_add_data(test_named("/mad/smi/way/%u", n), GUINT_TO_POINTER(n),
                      test_way);
    }
    test_add("/mad/smi/combined", test_combined);
    test_add("/mad/smi/port-0", test_port_0);
    return g_test_run();
}
