/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the requester makes of Read and atomic responses, be they in order,
 * wrong, late or twice (engine document, figures 3.20 and 3.22).
 */
#include "../requester/multi_queue.h"
#include "lib-requester.h"

#define MTU BED_MTU
#define PSN BED_PSN
#define SEND RDMA_HCA_OPCODE_SEND
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define READ RDMA_HCA_OPCODE_RDMA_READ
#define FETCH_ADD RDMA_HCA_OPCODE_ATOMIC_FA
#define SYNDROME(name) RDMA_HCA_SYNDROME_##name

/* ---- figure 3.20: Read and atomic responses; figure 3.22 ---- */

static void post_read_in(Bed *bed, uint64_t wr_id, const uint32_t *len,
                         unsigned n)
{
    Sge sge[8];
    SendWr wr = bed_wr(bed, sge, READ, wr_id, len[0]);

    for (unsigned i = 0; i < n; i++) {
        sge[i] = mr_sge(bed->mr, wr_id * 4096 + i * 1024, len[i]);
    }
    wr.nsge = n;
    bed_post_wr(bed, &wr);
    bed_forget_requests(bed);
}

/* READ_SCATTER, READ_UPDATE_ENTRY, CXT_WB, RESET_TIMER: room is left in it. */
static void test_update_entry(void)
{
    const uint32_t len[] = { 2 * MTU + 50 };
    Bed *bed = bed_new();

    post_read_in(bed, 1, len, 1);
    bed_pass_time(bed);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN, 0, MTU);
    g_assert_cmpuint(hca_mq_reb_head(bed->hca, bed->hqp)->len, ==, MTU + 50);
    g_assert_cmphex(hca_mq_reb_head(bed->hca, bed->hqp)->va, ==,
                    bed->mr->va + 4096 + MTU);
    bed_expect_timer_reset(bed);
    bed_expect_upsn(bed, PSN + 1);
    bed_pass_time(bed);
    bed_respond(bed, HCA_READ_RESP_MIDDLE, PSN + 1, MTU, MTU);
    g_assert_cmpuint(hca_mq_reb_head(bed->hca, bed->hqp)->len, ==, 50);
    bed_expect_timer_reset(bed);
    bed_expect_none(bed);
    bed_respond(bed, HCA_READ_RESP_LAST, PSN + 2, 2 * MTU, 50);
    bed_expect_done(bed, 1);
    bed_expect_region(bed, 4096, 0, 2 * MTU + 50);
    bed_free(bed);
}

/* READ_RELEASE_ENTRY, READ_FETCH_ENTRY: the packet goes on in the next. */
static void test_next_entry(void)
{
    const uint32_t len[] = { 100, 100, 100 };
    Bed *bed = bed_new();

    post_read_in(bed, 1, len, 3);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN, 0, MTU);
    g_assert_cmpuint(bed->hqp->req.reb.count, ==, 1);
    bed_respond(bed, HCA_READ_RESP_LAST, PSN + 1, MTU, 300 - MTU);
    g_assert_cmpuint(bed->hqp->req.reb.count, ==, 0);
    bed_expect_done(bed, 1);
    bed_expect_region(bed, 4096, 0, 100);
    bed_expect_region(bed, 4096 + 1024, 100, 100);
    bed_expect_region(bed, 4096 + 2048, 200, 100);
    bed_free(bed);
}

/* READ_RELEASE_ENTRY, IDLE: it is full, and more is to come. */
static void test_entry_fits_middle(void)
{
    const uint32_t len[] = { MTU, MTU, 10 };
    Bed *bed = bed_new();

    post_read_in(bed, 1, len, 3);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN, 0, MTU);
    g_assert_cmpuint(bed->hqp->req.reb.count, ==, 2);
    bed_respond(bed, HCA_READ_RESP_MIDDLE, PSN + 1, MTU, MTU);
    g_assert_cmpuint(bed->hqp->req.reb.count, ==, 1);
    bed_expect_none(bed);
    bed_respond(bed, HCA_READ_RESP_LAST, PSN + 2, 2 * MTU, 10);
    bed_expect_done(bed, 1);
    bed_free(bed);
}

/* READ_RELEASE_ENTRY, COMPLETION, CXT_WB, CLEAR_TIMER */
static void test_entry_fits_last(void)
{
    const uint32_t len[] = { 100 };
    Bed *bed = bed_new();

    post_read_in(bed, 1, len, 1);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 100);
    bed_expect_done(bed, 1);
    bed_expect_region(bed, 4096, 0, 100);
    bed_expect_timer_off(bed);
    bed_free(bed);
}

/* COMPLETION, CXT_WB, RESET_TIMER: requests are left. */
static void test_last_resets_timer(void)
{
    Bed *bed = bed_new();

    bed_post(bed, READ, 1, 100);
    bed_post(bed, WRITE, 2, 100);
    bed_forget_requests(bed);
    bed_pass_time(bed);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 100);
    bed_expect_done(bed, 1);
    bed_expect_timer_reset(bed);
    bed_ack(bed, PSN + 1);
    bed_expect_done(bed, 2);
    bed_free(bed);
}

/*
 * It is not what was asked for. This is found before an entry is looked for, so
 * none is ever missing.
 */
static void test_wrong_length(void)
{
    static const struct {
        uint32_t want;
        uint8_t op;
        uint32_t got;
    } bad[] = {
        { 100, HCA_READ_RESP_ONLY, 101 },
        { 100, HCA_READ_RESP_ONLY, 99 },
        { 100, HCA_READ_RESP_FIRST, MTU },
        { 300, HCA_READ_RESP_ONLY, MTU },
        { 300, HCA_READ_RESP_FIRST, MTU - 1 },
        { 300, HCA_READ_RESP_FIRST, MTU + 1 },
        { 0, HCA_READ_RESP_ONLY, 1 },
        { MTU, HCA_READ_RESP_FIRST, MTU },
        { 100, HCA_ATOMIC_ACK, 0 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        Bed *bed = bed_new();
        g_autofree uint8_t *before = NULL;

        bed_post(bed, READ, 1, bad[i].want);
        bed_post(bed, WRITE, 2, 1);
        bed_forget_requests(bed);
        before = mr_image(bed->mr);
        if (bad[i].op == HCA_ATOMIC_ACK) {
            bed_atomic_ack(bed, PSN, 1);
        } else {
            bed_respond(bed, bad[i].op, PSN, 0, bad[i].got);
        }
        bed_expect_broken(bed, 1, SYNDROME(BAD_RESP_ERR), 1);
        mr_check_image(bed->mr, before);
        bed_free(bed);
    }
}

/*
 * First or Only where the answer begins, and nowhere else: @op is the last of
 * what comes to a Read of three packets, or of one.
 */
static void check_order(unsigned before, unsigned packets, uint8_t op)
{
    Bed *bed = bed_new();
    uint32_t last = before + 1 == packets;
    g_autofree uint8_t *image = NULL;

    bed_post(bed, READ, 1, (packets - 1) * MTU + 10);
    bed_forget_requests(bed);
    for (unsigned i = 0; i < before; i++) {
        bed_respond(bed, i ? HCA_READ_RESP_MIDDLE : HCA_READ_RESP_FIRST,
                    PSN + i, 0, MTU);
    }
    image = mr_image(bed->mr);
    bed_respond(bed, op, PSN + before, 0, last ? 10 : MTU);
    bed_expect_broken(bed, 1, SYNDROME(BAD_RESP_ERR), 0);
    mr_check_image(bed->mr, image);
    bed_free(bed);
}

static void test_wrong_order(void)
{
    check_order(0, 3, HCA_READ_RESP_MIDDLE);
    check_order(1, 3, HCA_READ_RESP_FIRST);
    check_order(2, 3, HCA_READ_RESP_ONLY);
    check_order(0, 1, HCA_READ_RESP_LAST);
    /* And as it was: a Middle where a Last is due. */
    check_order(2, 3, HCA_READ_RESP_MIDDLE);
    check_order(1, 3, HCA_READ_RESP_LAST);
}

/* A Read that is asked for again begins anew, and only there. */
static void test_order_asked_again(void)
{
    Bed *bed = bed_new();

    bed_post(bed, READ, 1, 5 * MTU);
    bed_forget_requests(bed);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN, 0, MTU);
    lab_sleep(bed->pair->lab, BED_TIMEOUT_NS + NS_PER_MS);
    bed_expect_read(bed, PSN + 1, MTU, 4 * MTU);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN + 1, MTU, MTU);
    bed_expect_none(bed);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN + 2, 2 * MTU, MTU);
    bed_expect_broken(bed, 1, SYNDROME(BAD_RESP_ERR), 0);
    bed_free(bed);
}

/* A Read response for an atomic. */
static void test_wrong_kind(void)
{
    Bed *bed = bed_new();

    bed_post(bed, FETCH_ADD, 1, 8);
    bed_forget_requests(bed);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 8);
    bed_expect_broken(bed, 1, SYNDROME(BAD_RESP_ERR), 0);
    bed_free(bed);
}

/* The memory that a Read goes to went away: figure 3.20 has no arc for it. */
static void test_entry_refused(void)
{
    const uint32_t len[] = { 400 };
    Bed *bed = bed_new();

    post_read_in(bed, 1, len, 1);
    bed_post(bed, WRITE, 2, 0);
    bed_forget_requests(bed);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN, 0, MTU);
    g_assert_cmphex(mr_deregister(bed->mr), ==, 0);
    bed_respond(bed, HCA_READ_RESP_LAST, PSN + 1, MTU, 400 - MTU);
    bed_expect_broken(bed, 1, SYNDROME(LOCAL_PROT_ERR), 1);
    bed_free(bed);
}

/* READ_IMPLICIT_RELEASE, READ_FETCH_ENTRY */
static void test_read_implicit_release(void)
{
    Bed *bed = bed_new();

    bed_post(bed, SEND, 1, 300);
    bed_post(bed, WRITE, 2, 100);
    bed_post(bed, READ, 3, 100);
    bed_forget_requests(bed);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 3, 0, 100);
    for (unsigned i = 1; i <= 3; i++) {
        bed_expect_done(bed, i);
    }
    bed_expect_region(bed, 3 * 4096, 0, 100);
    bed_free(bed);
}

/* READ_IMPLICIT_RELEASE, READ_RETRANS: an earlier Read's answer is lost. */
static void test_read_implicit_release_lost(void)
{
    Bed *bed = bed_new();

    bed_post(bed, WRITE, 1, 100);
    bed_post(bed, READ, 2, 100);
    bed_post(bed, READ, 3, 100);
    bed_forget_requests(bed);
    bed_pass_time(bed);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 2, 0, 100);
    bed_expect_done(bed, 1);
    bed_expect_none(bed);
    bed_expect_read(bed, PSN + 1, 0, 100);
    bed_expect_read(bed, PSN + 2, 0, 100);
    bed_expect_timer_reset(bed);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 1, 100, 100);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 2, 200, 100);
    bed_expect_done(bed, 2);
    bed_expect_done(bed, 3);
    bed_expect_region(bed, 2 * 4096, 100, 100);
    bed_expect_region(bed, 3 * 4096, 200, 100);
    bed_free(bed);
}

/* READ_RETRANS, CXT_WB, RESET_TIMER: First or Only, and UPSN is a Read */
static void test_first_read_lost(void)
{
    Bed *bed = bed_new();

    bed_post(bed, READ, 1, 100);
    bed_post(bed, FETCH_ADD, 2, 8);
    bed_post(bed, WRITE, 3, 8);
    bed_forget_requests(bed);
    bed_pass_time(bed);
    bed_atomic_ack(bed, PSN + 1, 5);
    bed_expect_none(bed);
    bed_expect_read(bed, PSN, 0, 100);
    bed_expect_request(bed, HCA_FETCH_ADD, PSN + 1);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN + 2);
    bed_expect_timer_reset(bed);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 100);
    bed_atomic_ack(bed, PSN + 1, 0x0102030405060708);
    bed_ack(bed, PSN + 2);
    for (unsigned i = 1; i <= 3; i++) {
        bed_expect_done(bed, i);
    }
    {
        uint64_t old;

        mr_read(bed->mr, 2 * 4096, &old, sizeof(old));
        g_assert_cmphex(GUINT64_FROM_LE(old), ==, 0x0102030405060708);
    }
    bed_free(bed);
}

/*
 * READ_RETRANS: Middle or Last, and UPSN < RPSN. The Read goes on from where
 * its answer broke off.
 */
static void test_middle_lost(void)
{
    Bed *bed = bed_new();

    bed_post(bed, READ, 1, 4 * MTU);
    bed_forget_requests(bed);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN, 0, MTU);
    bed_pass_time(bed);
    bed_respond(bed, HCA_READ_RESP_MIDDLE, PSN + 2, 2 * MTU, MTU);
    bed_expect_read(bed, PSN + 1, MTU, 3 * MTU);
    bed_expect_timer_reset(bed);
    bed_respond(bed, HCA_READ_RESP_LAST, PSN + 3, 3 * MTU, MTU);
    bed_expect_quiet(bed);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN + 1, MTU, MTU);
    bed_respond(bed, HCA_READ_RESP_MIDDLE, PSN + 2, 2 * MTU, MTU);
    bed_respond(bed, HCA_READ_RESP_LAST, PSN + 3, 3 * MTU, MTU);
    bed_expect_done(bed, 1);
    bed_expect_region(bed, 4096, 0, 4 * MTU);
    bed_free(bed);
}

/* ---- responses that come late, twice or not at all ---- */

/* Responses of the first answer mix with those of the second. */
static void test_partial_retry(void)
{
    Bed *bed = bed_new();

    bed_post(bed, READ, 1, 5 * MTU);
    bed_post(bed, READ, 2, 0);
    bed_forget_requests(bed);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN, 0, MTU);
    bed_respond(bed, HCA_READ_RESP_MIDDLE, PSN + 1, MTU, MTU);
    lab_sleep(bed->pair->lab, BED_TIMEOUT_NS + NS_PER_MS);
    bed_expect_read(bed, PSN + 2, 2 * MTU, 3 * MTU);
    bed_expect_read(bed, PSN + 5, 0, 0);
    /* The late rest of the first answer serves as well. */
    bed_respond(bed, HCA_READ_RESP_MIDDLE, PSN + 2, 2 * MTU, MTU);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN + 2, 2 * MTU, MTU);
    bed_respond(bed, HCA_READ_RESP_MIDDLE, PSN + 3, 3 * MTU, MTU);
    bed_respond(bed, HCA_READ_RESP_MIDDLE, PSN + 3, 3 * MTU, MTU);
    bed_respond(bed, HCA_READ_RESP_LAST, PSN + 4, 4 * MTU, MTU);
    bed_expect_done(bed, 1);
    bed_respond(bed, HCA_READ_RESP_LAST, PSN + 4, 4 * MTU, MTU);
    bed_expect_drops(bed, HCA_DROP_DUPLICATE, 3);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 5, 0, 0);
    bed_expect_done(bed, 2);
    bed_expect_region(bed, 4096, 0, 5 * MTU);
    bed_free(bed);
}

/* A response to a Send, or to what was answered: nothing happens. */
static void test_ghosts(void)
{
    Bed *bed = bed_new();
    g_autofree uint8_t *before = NULL;

    bed_post(bed, READ, 1, 100);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 100);
    bed_expect_done(bed, 1);
    bed_post(bed, SEND, 2, 100);
    bed_post(bed, READ, 3, 100);
    bed_forget_requests(bed);
    before = mr_image(bed->mr);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN, 0, 100);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 1, 0, 100);
    bed_atomic_ack(bed, PSN + 1, 1);
    bed_expect_drops(bed, HCA_DROP_DUPLICATE, 1);
    bed_expect_drops(bed, HCA_DROP_GHOST, 2);
    mr_check_image(bed->mr, before);
    bed_expect_none(bed);
    bed_ack(bed, PSN + 1);
    bed_respond(bed, HCA_READ_RESP_ONLY, PSN + 2, 0, 100);
    bed_expect_done(bed, 2);
    bed_expect_done(bed, 3);
    bed_free(bed);
}

/* An ACK in the middle of a Read's PSNs is no answer to it. */
static void test_ack_for_read(void)
{
    Bed *bed = bed_new();

    bed_post(bed, READ, 1, 3 * MTU);
    bed_forget_requests(bed);
    bed_ack(bed, PSN + 1);
    bed_expect_read(bed, PSN, 0, 3 * MTU);
    bed_expect_none(bed);
    bed_ack(bed, PSN + 2);
    bed_expect_quiet(bed);
    bed_expect_none(bed);
    bed_respond(bed, HCA_READ_RESP_FIRST, PSN, 0, MTU);
    bed_respond(bed, HCA_READ_RESP_MIDDLE, PSN + 1, MTU, MTU);
    bed_respond(bed, HCA_READ_RESP_LAST, PSN + 2, 2 * MTU, MTU);
    bed_expect_done(bed, 1);
    bed_free(bed);
}

/*
 * Memory that a packet came from is gone when it has to be sent again: those
 * before it are not at fault.
 */
static void test_resend_refused(void)
{
    Bed *bed = bed_new();
    Mr *mr = mr_new(bed->pair->drv[0], bed->pair->pd[0], 0x1000, 4096, 0);
    Sge sge;
    SendWr wr;

    bed_post(bed, WRITE, 1, 100);
    wr = bed_wr(bed, &sge, WRITE, 2, 100);
    sge = mr_sge(mr, 0, 100);
    bed_post_wr(bed, &wr);
    bed_post(bed, WRITE, 3, 100);
    bed_forget_requests(bed);
    g_assert_cmphex(mr_deregister(mr), ==, 0);
    lab_sleep(bed->pair->lab, BED_TIMEOUT_NS + NS_PER_MS);
    bed_expect_request(bed, HCA_WRITE_ONLY, PSN);
    bed_expect_quiet(bed);
    bed_expect_none(bed);
    bed_ack(bed, PSN);
    bed_expect_done(bed, 1);
    bed_expect_broken(bed, 2, SYNDROME(LOCAL_PROT_ERR), 1);
    bed_free(bed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/requester/fig-3.20/update-entry", test_update_entry);
    test_add("/requester/fig-3.20/next-entry", test_next_entry);
    test_add("/requester/fig-3.20/entry-fits-middle", test_entry_fits_middle);
    test_add("/requester/fig-3.20/entry-fits-last", test_entry_fits_last);
    test_add("/requester/fig-3.20/last-resets-timer", test_last_resets_timer);
    test_add("/requester/fig-3.20/wrong-kind", test_wrong_kind);
    test_add("/requester/fig-3.20/entry-refused", test_entry_refused);
    test_add("/requester/fig-3.20/implicit-release",
             test_read_implicit_release);
    test_add("/requester/fig-3.20/implicit-release-retrans",
             test_read_implicit_release_lost);
    test_add("/requester/fig-3.20/retrans-first", test_first_read_lost);
    test_add("/requester/fig-3.20/retrans-middle", test_middle_lost);
    test_add("/requester/fig-3.22/fetch-and-release", test_next_entry);
    test_add("/requester/fig-3.22/update", test_update_entry);
    test_add("/requester/read/wrong-length", test_wrong_length);
    test_add("/requester/read/wrong-order", test_wrong_order);
    test_add("/requester/read/wrong-order-asked-again", test_order_asked_again);
    test_add("/requester/read/partial-retry", test_partial_retry);
    test_add("/requester/read/ghosts", test_ghosts);
    test_add("/requester/read/ack-is-no-answer", test_ack_for_read);
    test_add("/requester/resend/refused", test_resend_refused);
    return g_test_run();
}
