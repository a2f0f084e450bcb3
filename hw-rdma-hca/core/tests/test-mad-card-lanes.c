/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which virtual lane of a card sends next (IBA 7.6.9), as the frames on its
 * cable show it: streams of Writes on several lanes, all of which wait.
 */
#include <string.h>

#include "lib-subnet.h"

#define SL_TO_VL 0x17
#define LOW 0
#define HIGH 2
#define LANES 8
#define LEN 32768u  /* of a Write: */
#define PACKETS 32u /* of 1024 bytes of payload, */
#define FRAME 1050u /* but for the first one's RETH */
#define WRITES 4u

typedef struct Lanes {
    Subnet *s;
    HcaNodePort *port;
} Lanes;

static void lanes_setup(Lanes *l, uint32_t seed)
{
    uint8_t table[64] = { 0x01, 0x23, 0x45, 0x67 };

    l->s = subnet_new(seed);
    subnet_bring_up(l->s);
    g_assert_cmphex(subnet_set_own(l->s, 0, SL_TO_VL, 0, table), ==, 0);
    g_assert_cmphex(subnet_set_own(l->s, 1, SL_TO_VL, 0, table), ==, 0);
    l->port = subnet_node_port(l->s, 0);
}

/* Connected, of SL @vl; it has sent something, so its lane is known. */
static void connect(Lanes *l, uint8_t service, unsigned vl, Qp *qp[2])
{
    for (unsigned side = 0; side < 2; side++) {
        qp[side] = pair_new_qp(l->s->pair, side, service);
    }
    for (unsigned side = 0; side < 2; side++) {
        QpAttr attr;

        qp_attr_init(&attr);
        attr.dest_qpn = qp[!side]->qpn;
        attr.dlid = SUBNET_LID(!side);
        attr.sl = vl;
        qp_bring_up(qp[side], &attr);
    }
    pair_check_works(l->s->pair, qp, 0);
}

/* Post what takes WRITES * PACKETS packets of side 0, or of side 1's Reads. */
static void post_all(Lanes *l, Qp *qp, unsigned side, uint8_t opcode)
{
    for (unsigned i = 0; i < WRITES; i++) {
        Sge sge;
        SendWr wr = pair_send(l->s->pair, side, opcode, i, &sge, SUBNET_DATA,
                              LEN, SUBNET_DATA);

        wr.flags &= ~SEND_SIGNALED;
        g_assert_true(qp_post_send(qp, &wr, 1));
    }
}

static Qp *writer(Lanes *l, unsigned vl)
{
    Qp *qp[2];

    connect(l, RDMA_HCA_QP_ST_UC, vl, qp);
    return qp[0];
}

static void post_writes(Lanes *l, Qp *qp)
{
    post_all(l, qp, 0, RDMA_HCA_OPCODE_RDMA_WRITE);
}

/* How many of each VL there are among the next @n frames of side 0. */
static void count(Lanes *l, unsigned n, unsigned of_vl[LANES])
{
    memset(of_vl, 0, LANES * sizeof(*of_vl));
    for (unsigned i = 0; i < n; i++) {
        SubnetFrame *frame = subnet_next_frame(l->s, 0);

        g_assert_nonnull(frame);
        of_vl[subnet_frame_vl(frame)]++;
        g_free(frame);
    }
}

static void no_more(const Lanes *l)
{
    for (const GList *item = l->s->frames.head; item; item = item->next) {
        g_assert_cmpuint(((const SubnetFrame *)item->data)->from, ==, 1);
    }
}

static void run(Lanes *l)
{
    subnet_watch(l->s);
    lab_run(l->s->lab);
}

/* Without tables lanes take turns, whatever is in each. */
static void in_turn(void)
{
    unsigned of_vl[LANES], rest[LANES];
    Qp *qp[4];
    Lanes l;

    lanes_setup(&l, 9801);
    for (unsigned i = 0; i < 4; i++) {
        qp[i] = writer(&l, i ? 1 : 5);
    }
    for (unsigned i = 0; i < 4; i++) {
        post_writes(&l, qp[i]);
    }
    run(&l);
    count(&l, 2 * WRITES * PACKETS, of_vl);
    g_assert_cmpuint(of_vl[1], <=, of_vl[5] + 16);
    g_assert_cmpuint(of_vl[5], <=, of_vl[1] + 16);
    count(&l, 2 * WRITES * PACKETS, rest);
    g_assert_cmpuint(of_vl[1] + rest[1], ==, 3 * WRITES * PACKETS);
    g_assert_cmpuint(of_vl[5] + rest[5], ==, WRITES * PACKETS);
    subnet_no_frames(l.s);
    subnet_free(l.s);
}

/* By weight: of VL 1 three times as much as of VL 2; VL 3, of none, is last. */
static void weights(gconstpointer part)
{
    HcaVlWeight *entry;
    unsigned of_vl[LANES];
    Qp *qp[3];
    Lanes l;

    lanes_setup(&l, 9802 + GPOINTER_TO_UINT(part));
    entry = l.port->vl_arb[GPOINTER_TO_UINT(part)];
    entry[0] = (HcaVlWeight) { 1, 97 };
    entry[1] = (HcaVlWeight) { 2, 32 };
    entry[2] = (HcaVlWeight) { 3, 0 };
    l.port->info.vl_high_limit = 255;
    for (unsigned i = 0; i < 3; i++) {
        qp[i] = writer(&l, 3 - i);
    }
    for (unsigned i = 0; i < 3; i++) {
        post_writes(&l, qp[i]);
    }
    run(&l);
    count(&l, 160, of_vl);
    /* Six packets for 97 * 64 bytes, two for 32 * 64. */
    g_assert_cmpuint(of_vl[3], ==, 0);
    g_assert_cmpuint(of_vl[1], >=, 114);
    g_assert_cmpuint(of_vl[1], <=, 126);
    count(&l, 2 * WRITES * PACKETS - 160, of_vl);
    g_assert_cmpuint(of_vl[3], ==, 0);
    count(&l, WRITES * PACKETS, of_vl);
    g_assert_cmpuint(of_vl[3], ==, WRITES * PACKETS);
    subnet_free(l.s);
}

/* The high table first, as far as its limit goes while the low one has some. */
static void high_limit(gconstpointer limit)
{
    unsigned value = GPOINTER_TO_UINT(limit);
    unsigned high = value ? (4096 * value + FRAME - 1) / FRAME : 1;
    unsigned n = WRITES * PACKETS;
    unsigned of_vl[LANES];
    Qp *qp[2];
    Lanes l;

    lanes_setup(&l, 9810 + value);
    l.port->vl_arb[HIGH][0] = (HcaVlWeight) { 1, 255 };
    l.port->vl_arb[LOW][0] = (HcaVlWeight) { 2, 255 };
    l.port->info.vl_high_limit = value;
    qp[0] = writer(&l, 2);
    qp[1] = writer(&l, 1);
    post_writes(&l, qp[0]);
    post_writes(&l, qp[1]);
    run(&l);
    count(&l, n, of_vl);
    if (value == 255) {
        g_assert_cmpuint(of_vl[1], ==, n);
    } else {
        g_assert_cmpuint(of_vl[1], >=, n * high / (high + 1) - 2);
        g_assert_cmpuint(of_vl[1], <=, n * high / (high + 1) + high);
        g_assert_cmpuint(of_vl[2], >, 0);
    }
    count(&l, n, of_vl);
    subnet_no_frames(l.s);
    subnet_free(l.s);
}

/* Responses are data of their lane as requests are: both wait, from some time on. */
static void responses(void)
{
    unsigned of_vl[LANES], before = 0;
    Qp *reader[2], *qp[2];
    Lanes l;

    lanes_setup(&l, 9820);
    l.port->vl_arb[LOW][0] = (HcaVlWeight) { 1, 97 };
    l.port->vl_arb[LOW][1] = (HcaVlWeight) { 2, 32 };
    connect(&l, RDMA_HCA_QP_ST_RC, 1, reader);
    pair_check_works(l.s->pair, reader, 1);
    qp[0] = writer(&l, 2);
    qp[1] = writer(&l, 2);
    post_all(&l, reader[1], 1, RDMA_HCA_OPCODE_RDMA_READ);
    post_writes(&l, qp[0]);
    post_writes(&l, qp[1]);
    run(&l);
    do {
        count(&l, 1, of_vl);
        before += of_vl[2];
    } while (of_vl[2]);
    g_assert_cmpuint(before, <, WRITES * PACKETS);
    count(&l, 80, of_vl);
    g_assert_cmpuint(of_vl[1], >=, 56);
    g_assert_cmpuint(of_vl[1], <=, 64);
    count(&l, 3 * WRITES * PACKETS - 81 - before, of_vl);
    no_more(&l);
    subnet_free(l.s);
}

static bool is_read_response(const SubnetFrame *frame)
{
    unsigned opcode = frame->data[8];

    return opcode >= HCA_BTH_OPCODE(HCA_BTH_RC, HCA_READ_RESP_FIRST) &&
           opcode <= HCA_BTH_OPCODE(HCA_BTH_RC, HCA_READ_RESP_ONLY);
}

/* Where in the frames of a lane the last of its Reads' responses is, and all. */
static unsigned last_response(const Lanes *l, unsigned vl, unsigned *all)
{
    unsigned last = 0;

    *all = 0;
    for (const GList *item = l->s->frames.head; item; item = item->next) {
        const SubnetFrame *frame = item->data;

        if (!frame->from && subnet_frame_vl(frame) == vl) {
            ++*all;
            last = is_read_response(frame) ? *all : last;
        }
    }
    return last;
}

/* A lane's Reads are answered while it sends Writes, as does another one. */
static void both_kinds(gconstpointer data)
{
    unsigned vl = GPOINTER_TO_UINT(data);
    Qp *reader[2], *qp[6];
    unsigned last, all;
    Lanes l;

    lanes_setup(&l, 9821 + vl);
    connect(&l, RDMA_HCA_QP_ST_RC, vl, reader);
    pair_check_works(l.s->pair, reader, 1);
    for (unsigned i = 0; i < G_N_ELEMENTS(qp); i++) {
        qp[i] = writer(&l, 1 + i % 2);
    }
    post_all(&l, reader[1], 1, RDMA_HCA_OPCODE_RDMA_READ);
    for (unsigned i = 0; i < G_N_ELEMENTS(qp); i++) {
        post_writes(&l, qp[i]);
    }
    run(&l);
    last = last_response(&l, vl, &all);
    g_assert_cmpuint(all, ==, 4 * WRITES * PACKETS);
    g_assert_cmpuint(last, >=, WRITES * PACKETS);
    g_assert_cmpuint(last, <, all - 16);
    subnet_free(l.s);
}

/* QPs that wait for the cable in several lanes may go away. */
static void reset_while_blocked(void)
{
    const Hca *card;
    unsigned of_vl[LANES];
    Qp *qp[4];
    Lanes l;

    lanes_setup(&l, 9822);
    card = subnet_card(l.s, 0);
    for (unsigned i = 0; i < 4; i++) {
        qp[i] = writer(&l, 1 + i % 2);
    }
    for (unsigned i = 0; i < 4; i++) {
        post_writes(&l, qp[i]);
    }
    g_assert_true(lab_step(l.s->lab));
    g_assert_cmpuint(card->send_queue.length, ==, 4);
    for (unsigned i = 0; i < 4; i += 3) {
        g_assert_cmphex(qp_to_err(qp[i]), ==, 0);
        g_assert_cmphex(qp_to_rst(qp[i]), ==, 0);
    }
    lab_run(l.s->lab);
    g_assert_cmpuint(card->send_queue.length, ==, 0);
    post_writes(&l, qp[1]);
    post_writes(&l, qp[2]);
    run(&l);
    count(&l, 2 * WRITES * PACKETS, of_vl);
    g_assert_cmpuint(of_vl[1], ==, WRITES * PACKETS);
    g_assert_cmpuint(of_vl[2], ==, WRITES * PACKETS);
    subnet_no_frames(l.s);
    subnet_free(l.s);
}

int main(int argc, char **argv)
{
    static const unsigned limits[] = { 0, 1, 3, 255 };

    g_test_init(&argc, &argv, NULL);
    test_add("/mad/card/lanes/in-turn", in_turn);
    test_add_data("/mad/card/lanes/weights/low", GUINT_TO_POINTER(LOW),
                  weights);
    test_add_data("/mad/card/lanes/weights/high", GUINT_TO_POINTER(HIGH),
                  weights);
    for (unsigned i = 0; i < G_N_ELEMENTS(limits); i++) {
        test_add_data(test_named("/mad/card/lanes/high-limit/%u", limits[i]),
                      GUINT_TO_POINTER(limits[i]), high_limit);
    }
    test_add("/mad/card/lanes/responses", responses);
    test_add_data("/mad/card/lanes/both-kinds/1", GUINT_TO_POINTER(1),
                  both_kinds);
    test_add_data("/mad/card/lanes/both-kinds/2", GUINT_TO_POINTER(2),
                  both_kinds);
    test_add("/mad/card/lanes/reset", reset_while_blocked);
    return g_test_run();
}
