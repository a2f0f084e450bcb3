/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The states of ReqTransCore_Thread_2 (its document, state table): which ones
 * each kind of request and each completion goes through, as they are traced.
 *
 * The arcs of the table that wait for a handshake do not exist: whoever is
 * asked answers at once. What takes its time in software, room in an event
 * queue, waits in the CQ.
 */
#include <string.h>

#include "../cxtmgt/completion.h"
#include "lib-requester.h"

#define PSN BED_PSN
#define SEND RDMA_HCA_OPCODE_SEND
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define FETCH_ADD RDMA_HCA_OPCODE_ATOMIC_FA
#define CMP_SWAP RDMA_HCA_OPCODE_ATOMIC_CS
#define ATOMIC_WRITE RDMA_HCA_OPCODE_ATOMIC_WRITE
#define FLUSH RDMA_HCA_OPCODE_FLUSH

/*
 * What a path looks like: its states in turn, IDLE before and behind.
 *   J judge, B bypass, D data MR
 *   c CQ request, C CQ response, M CQ MR
 *   e EQ request, r EQ response, E EQ MR
 */
static char letter(unsigned state)
{
    static const char of[] = {
        [HCA_RT_IDLE] = 'I',        [HCA_RT_JUDGE] = 'J',
        [HCA_RT_BYPASS] = 'B',      [HCA_RT_FETCH_DATA_MR] = 'D',
        [HCA_RT_CQ_REQ] = 'c',      [HCA_RT_CQ_RESP] = 'C',
        [HCA_RT_FETCH_CQ_MR] = 'M', [HCA_RT_FETCH_EQ_MR] = 'E',
        [HCA_RT_EQ_REQ] = 'e',      [HCA_RT_EQ_RESP] = 'r',
    };

    g_assert_cmpuint(state, >=, HCA_RT_IDLE);
    g_assert_cmpuint(state, <, sizeof(of));
    return of[state];
}

typedef struct Path {
    GString *text;
    unsigned state; /* where the last arc led to */
    uint64_t last;  /* the last argument of the last arc */
} Path;

static void hear(void *opaque, unsigned side, const HcaTrace *trace)
{
    Path *path = opaque;

    if (side != 0 || trace->event != HCA_TRACE_REQ_TRANS) {
        return;
    }
    /* Arcs follow one another; from IDLE on both machines begin anew. */
    if (path->state == HCA_RT_IDLE) {
        g_assert_true(trace->arg[0] == HCA_RT_JUDGE ||
                      trace->arg[0] == HCA_RT_CQ_REQ);
    } else {
        g_assert_cmpuint(trace->arg[0], ==, path->state);
    }
    g_string_append_c(path->text, letter(trace->arg[0]));
    path->state = trace->arg[1];
    path->last = trace->arg[2];
    if (path->state == HCA_RT_IDLE) {
        g_string_append_c(path->text, 'I');
    }
}

static void path_begin(Path *path, Bed *bed)
{
    path->text = g_string_new(NULL);
    path->state = HCA_RT_IDLE;
    lab_listen(bed->pair->lab, hear, path);
}

/* What has been traced since the last look. */
static void expect_path(Path *path, const char *want)
{
    g_assert_cmpstr(path->text->str, ==, want);
    g_assert_cmpuint(path->state, ==, HCA_RT_IDLE);
    g_string_truncate(path->text, 0);
}

static void path_end(Path *path, Bed *bed)
{
    lab_listen(bed->pair->lab, NULL, NULL);
    g_string_free(path->text, TRUE);
}

/* ---- requests ---- */

/* One packet of each kind; RC completes when it is acknowledged. */
static void test_rc(void)
{
    static const struct {
        uint8_t opcode;
        unsigned flags;
        const char *path;
    } kind[] = {
        { SEND, 0, "JDI" },
        { WRITE, 0, "JDI" },
        { SEND, SEND_INLINE, "JBI" },
        { WRITE, SEND_INLINE, "JBI" },
        { READ, 0, "JBI" },
        { FETCH_ADD, 0, "JBI" },
        { CMP_SWAP, 0, "JBI" },
        { ATOMIC_WRITE, 0, "JDI" },
        { ATOMIC_WRITE, SEND_INLINE, "JBI" },
        { FLUSH, 0, "JBI" },
    };
    Bed *bed = bed_new();
    Path path;

    path_begin(&path, bed);
    for (unsigned i = 0; i < G_N_ELEMENTS(kind); i++) {
        Sge sge;
        SendWr wr = bed_wr(bed, &sge, kind[i].opcode, i, 8);

        wr.flags |= kind[i].flags;
        wr.inline_data = bed->data;
        wr.inline_len = 8;
        wr.flush = RDMA_HCA_FLUSH_TYPE_GLOBAL;
        bed_post_wr(bed, &wr);
        expect_path(&path, kind[i].path);
        g_assert_cmpuint(path.last, ==, HCA_V2P_SUCCESS);
        if (kind[i].opcode == READ) {
            bed_respond(bed, HCA_READ_RESP_ONLY, PSN + i, 0, 8);
        } else if (kind[i].opcode == FETCH_ADD || kind[i].opcode == CMP_SWAP) {
            bed_atomic_ack(bed, PSN + i, 1);
        } else if (kind[i].opcode == ATOMIC_WRITE || kind[i].opcode == FLUSH) {
            bed_respond(bed, HCA_READ_RESP_ONLY, PSN + i, 0, 0);
        } else {
            bed_ack(bed, PSN + i);
        }
        expect_path(&path, "cCMI");
        g_assert_cmpuint(path.last, ==, bed->cq->cqn);
        bed_expect_done(bed, i);
    }
    bed_forget_requests(bed);
    path_end(&path, bed);
    bed_free(bed);
}

/* UC and UD go on from the data, or the bypass, to the completion. */
static void test_ucud(const void *opaque)
{
    uint8_t service = GPOINTER_TO_UINT(opaque);
    Bed *bed = bed_new_service(service);
    UdAddress ud = { .dlid = bed->peer.slid,
                     .dqpn = BED_PEER_QPN,
                     .qkey = BED_QKEY };
    Path path;

    path_begin(&path, bed);
    for (unsigned i = 0; i < 4; i++) {
        Sge sge;
        SendWr wr = bed_wr(bed, &sge, SEND, i, 8);
        bool in_line = i & 1, signalled = i & 2;

        wr.flags = (in_line ? SEND_INLINE : 0) |
                   (signalled ? SEND_SIGNALED : 0);
        wr.inline_data = bed->data;
        wr.inline_len = 8;
        wr.ud = service == RDMA_HCA_QP_ST_UD ? &ud : NULL;
        bed_post_wr(bed, &wr);
        if (signalled) {
            expect_path(&path, in_line ? "JBIcCMI" : "JDIcCMI");
            bed_expect_done(bed, i);
        } else {
            expect_path(&path, in_line ? "JBI" : "JDI");
        }
    }
    bed_forget_requests(bed);
    path_end(&path, bed);
    bed_free(bed);
}

/* Each packet of a message goes its way, each that is sent again, too. */
static void test_packets(void)
{
    Bed *bed = bed_new();
    Path path;

    path_begin(&path, bed);
    bed_post(bed, WRITE, 1, 3 * BED_MTU);
    expect_path(&path, "JDIJDIJDI");
    bed_nak(bed, PSN + 1, HCA_AETH(HCA_AETH_NAK, HCA_NAK_PSN_SEQ));
    expect_path(&path, "JDIJDI");
    bed_ack(bed, PSN + 2);
    expect_path(&path, "cCMI");
    bed_expect_done(bed, 1);
    bed_forget_requests(bed);
    path_end(&path, bed);
    bed_free(bed);
}

/* FETCH_DATA_MR, IDLE with an error: the region went away meanwhile. */
static void test_refused(void)
{
    Bed *bed = bed_new();
    Path path;

    bed_post(bed, WRITE, 1, 100);
    bed_forget_requests(bed);
    g_assert_cmphex(mr_deregister(bed->mr), ==, 0);
    path_begin(&path, bed);
    bed_nak(bed, PSN, HCA_AETH(HCA_AETH_NAK, HCA_NAK_PSN_SEQ));
    g_assert_true(g_str_has_prefix(path.text->str, "JDIcCMI"));
    bed_expect_broken(bed, 1, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR, 0);
    path_end(&path, bed);
    bed_free(bed);
}

/* ---- completions ---- */

/* An event: for the next entry, or the next that is solicited or in error. */
static void test_event(void)
{
    Bed *bed = bed_new();
    struct rdma_hca_eqe eqe;
    Path path;

    path_begin(&path, bed);
    cq_arm(bed->cq, false);
    for (unsigned i = 1; i <= 2; i++) {
        bed_post(bed, WRITE, i, 8);
        expect_path(&path, "JDI");
        bed_ack(bed, PSN + i - 1);
        expect_path(&path, i == 1 ? "cCMerEI" : "cCMI");
        bed_expect_done(bed, i);
    }
    g_assert_true(driver_event(bed->pair->drv[0], RDMA_HCA_EVENT_COMP, &eqe));
    g_assert_cmphex(GUINT32_FROM_LE(eqe.cq.cqn), ==, bed->cq->cqn);
    cq_arm(bed->cq, true);
    bed_post(bed, WRITE, 3, 8);
    bed_ack(bed, PSN + 2);
    expect_path(&path, "JDIcCMI");
    bed_expect_done(bed, 3);
    bed_post_bad(bed, 4);
    expect_path(&path, "cCMerEI");
    bed_expect_broken(bed, 4, RDMA_HCA_SYNDROME_LOCAL_PROT_ERR, 0);
    bed_forget_requests(bed);
    path_end(&path, bed);
    bed_free(bed);
}

/* Receives take the same chain. */
static void test_receive(void)
{
    Bed *bed = bed_new();
    Path path;

    pair_post_recv(bed->pair, 0, bed->qp, 7, 0, 100);
    cq_arm(bed->cq, false);
    bed_run(bed);
    path_begin(&path, bed);
    g_assert_cmphex(qp_to_err(bed->qp), ==, 0);
    bed_run(bed);
    expect_path(&path, "cCMerEI");
    {
        Wc wc;

        g_assert_true(cq_poll(bed->cq, &wc));
        g_assert_cmpuint(wc.wr_id, ==, 7);
    }
    path_end(&path, bed);
    bed_free(bed);
}

/* CQ_REQ, IDLE: the queue is full. FETCH_CQ_MR, IDLE: it is not writable. */
static void test_cq_lost(const void *opaque)
{
    bool unwritable = GPOINTER_TO_UINT(opaque);
    Bed *bed = bed_new();
    Cq *cq = cq_new(bed->pair->drv[0], 1, 1);
    QpConfig config;
    QpAttr attr;
    Path path;
    Qp *qp;

    qp_config_init(&config, bed->pair->pd[0], cq);
    qp = qp_new(bed->pair->drv[0], &config);
    bed_attr_init(&attr);
    attr.dlid = bed->peer.slid;
    attr.dest_qpn = BED_PEER_QPN;
    qp_bring_up(qp, &attr);
    if (unwritable) {
        g_assert_cmphex(mr_deregister(cq->mr), ==, 0);
    }
    path_begin(&path, bed);
    for (unsigned i = 0; i < 3; i++) {
        SendWr nop = { .opcode = RDMA_HCA_OPCODE_NOP, .flags = SEND_SIGNALED };

        g_assert_true(qp_post_send(qp, &nop, 1));
        bed_run(bed);
    }
    /* Broken by the first that is lost; those after it are lost, too. */
    expect_path(&path, unwritable ? "cCMIcIcI" : "cCMIcCMIcI");
    g_assert_cmpuint(qp_state(qp), ==, RDMA_HCA_QP_STATE_ERR);
    g_assert_cmpuint(
        driver_count_events(bed->pair->drv[0], RDMA_HCA_EVENT_CQ_ERROR), ==, 1);
    path_end(&path, bed);
    bed_free(bed);
}

/* EQ_REQ, IDLE: no room. The event comes when there is. */
static void test_eq_full(void)
{
    Bed *bed = bed_new();
    Driver *drv = bed->pair->drv[0];
    unsigned size = 1u << drv->eq[EQ_COMP].log_size, n = 0;
    Path path;

    path_begin(&path, bed);
    for (bool full = false; !full; n++) {
        SendWr nop = { .wr_id = n,
                       .opcode = RDMA_HCA_OPCODE_NOP,
                       .flags = SEND_SIGNALED };

        g_assert_cmpuint(n, <=, size);
        cq_arm(bed->cq, false);
        bed_post_wr(bed, &nop);
        full = strcmp(path.text->str, "cCMerEI");
        expect_path(&path, full ? "cCMeI" : "cCMerEI");
        bed_expect_done(bed, n);
    }
    g_assert_cmpuint(driver_poll_eq(drv, EQ_COMP), ==, n - 1);
    bed_run(bed);
    g_assert_cmpuint(driver_poll_eq(drv, EQ_COMP), ==, 1);
    path_end(&path, bed);
    bed_free(bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/req-trans/request/rc", test_rc);
    test_add_data("/req-trans/request/uc", GUINT_TO_POINTER(RDMA_HCA_QP_ST_UC),
                  test_ucud);
    test_add_data("/req-trans/request/ud", GUINT_TO_POINTER(RDMA_HCA_QP_ST_UD),
                  test_ucud);
    test_add("/req-trans/request/packets", test_packets);
    test_add("/req-trans/request/refused", test_refused);
    test_add("/req-trans/completion/event", test_event);
    test_add("/req-trans/completion/receive", test_receive);
    test_add_data("/req-trans/completion/cq-full", GUINT_TO_POINTER(false),
                  test_cq_lost);
    test_add_data("/req-trans/completion/cq-unwritable", GUINT_TO_POINTER(true),
                  test_cq_lost);
    test_add("/req-trans/completion/eq-full", test_eq_full);
    return g_test_run();
}
