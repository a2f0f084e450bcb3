/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guests and peers that mean harm: garbage in registers, doorbells, work
 * queues, mailboxes, context memory and on the cable. Nothing may crash, leak
 * or go on for ever; what a process does to its own queues harms nobody else;
 * and after a reset the card is as good as new.
 */
#include <string.h>

#include "lib-inside.h"
#include "../link/framing.h"
#include "lib-pair.h"

/* A victim connection of UAR page 3 beside one that must not notice. */
typedef struct Scene {
    Pair *pair;
    Qp *victim[2];
    Qp *bystander[2];
    Cq *victim_cq[2];
} Scene;

static void scene_connect_victim(Scene *s)
{
    QpAttr attr;

    qp_attr_init(&attr);
    attr.timeout = 8;
    attr.retry_cnt = 1;
    attr.rnr_retry = 1;
    g_assert_cmphex(qp_to_rst(s->victim[0]), ==, 0);
    g_assert_cmphex(qp_to_rst(s->victim[1]), ==, 0);
    qp_connect(s->victim[0], s->victim[1], &attr);
}

static void scene_init(Scene *s, uint32_t seed)
{
    s->pair = pair_new(seed, 65536);
    pair_connect(s->pair, NULL, s->bystander);
    for (unsigned i = 0; i < 2; i++) {
        QpConfig config;

        s->victim_cq[i] = cq_new(s->pair->drv[i], 6, 3);
        qp_config_init(&config, s->pair->pd[i], s->victim_cq[i]);
        config.sq_entries = config.rq_entries = 16;
        s->victim[i] = qp_new(s->pair->drv[i], &config);
    }
    scene_connect_victim(s);
}

static void scene_check(Scene *s)
{
    pair_check_works(s->pair, s->bystander, 0);
    pair_check_works(s->pair, s->bystander, 1);
}

static void scene_free(Scene *s)
{
    scene_check(s);
    pair_free(s->pair);
}

static uint32_t rand32(Scene *s)
{
    return g_rand_int(s->pair->lab->rand);
}

/* 0, all ones, small, one bit, or anything. */
static uint32_t odd32(Scene *s)
{
    uint32_t x = rand32(s);

    switch (pair_rand(s->pair, 0, 6)) {
    case 0:
        return 0;
    case 1:
        return UINT32_MAX;
    case 2:
        return x % 64;
    case 3:
        return 1u << x % 32;
    case 4:
        return x & 0xffff;
    default:
        return x;
    }
}

static void fill_odd(Scene *s, void *buf, size_t len)
{
    for (size_t i = 0; i + 4 <= len; i += 4) {
        uint32_t word = odd32(s);

        memcpy((uint8_t *)buf + i, &word, 4);
    }
}

/*
 * Let the victim's mess come to an end and make it a QP again. Its CQ may
 * have overrun, which is its own business: it gets a new one.
 */
static void revive_victim(Scene *s)
{
    lab_sleep(s->pair->lab, 50 * NS_PER_MS);
    for (unsigned i = 0; i < 2; i++) {
        Driver *drv = s->pair->drv[i];
        Cq *old = s->victim_cq[i];

        g_assert_cmphex(qp_to_rst(s->victim[i]), ==, 0);
        s->victim_cq[i] = cq_new(drv, 6, 3);
        s->victim[i]->send_cq = s->victim[i]->recv_cq = s->victim_cq[i];
        g_assert_cmphex(cq_destroy(old), ==, 0);
        driver_poll_eq(drv, EQ_COMP);
        driver_poll_eq(drv, EQ_ASYNC);
        g_queue_clear_full(&drv->events, g_free);
    }
    scene_connect_victim(s);
}

/* ---- what a process can write ---- */

/* Mostly what belongs to the victim: its QPN, its page, its offsets. */
static void random_send_doorbell(Scene *s)
{
    Qp *qp = s->victim[0];
    uint32_t low = odd32(s), high = odd32(s), uar = qp->uar;

    if (pair_rand(s->pair, 0, 8)) {
        high = RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, qp->qpn) | (high & 0x3f);
        low = (low & 0x3f) | RDMA_HCA_PREP(RDMA_HCA_SEND_DB_SQ_HEAD,
                                           pair_rand(s->pair, 0, 300) * 4);
    }
    host_uar_write64(qp->drv->host, uar * RDMA_HCA_UAR_PAGE_SIZE,
                     (uint64_t)high << 32 | low);
}

static void random_uar_write(Scene *s)
{
    Host *host = &s->pair->lab->host[0];
    uint32_t page = pair_rand(s->pair, 0, 4) ? 3
                                             : rand32(s) % RDMA_HCA_NUM_UARS;
    uint32_t at = pair_rand(s->pair, 0, 2) ? pair_rand(s->pair, 0, 12) * 4
                                           : rand32(s) % 1024 * 4;

    /* Pages 1 (the bystander's) and 0 (the kernel's) are not mapped here. */
    page = page < 3 ? 3 : page;
    if (at % 8 == 0 && pair_rand(s->pair, 0, 2)) {
        host_uar_write64(host, page * RDMA_HCA_UAR_PAGE_SIZE + at,
                         (uint64_t)odd32(s) << 32 | odd32(s));
    } else {
        host_uar_write32(host, page * RDMA_HCA_UAR_PAGE_SIZE + at, odd32(s));
    }
}

static void random_ring(Scene *s, Mr *mr)
{
    g_autofree uint8_t *data = g_malloc(mr->len);

    fill_odd(s, data, mr->len);
    mr_write(mr, 0, data, mr->len);
}

static void test_doorbells(void)
{
    Scene s;

    scene_init(&s, 1001);
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 50; i++) {
            random_send_doorbell(&s);
            random_uar_write(&s);
        }
        lab_run(s.pair->lab);
        scene_check(&s);
        revive_victim(&s);
    }
    scene_free(&s);
}

/* Both queues full of noise, any doorbell, any posted count. */
static void test_work_queues(void)
{
    Scene s;

    scene_init(&s, 1002);
    for (unsigned round = 0; round < 300; round++) {
        random_ring(&s, s.victim[0]->sq.mr);
        random_ring(&s, s.victim[1]->rq.mr);
        host_write_le32(&s.pair->lab->host[1], s.victim[1]->rq_record,
                        odd32(&s));
        for (unsigned i = 0; i < 10; i++) {
            random_send_doorbell(&s);
        }
        lab_run(s.pair->lab);
        scene_check(&s);
        revive_victim(&s);
    }
    scene_free(&s);
}

/* Sound WQEs with one word changed: these get further than noise. */
static void test_changed_wqes(void)
{
    static const uint8_t opcode[] = {
        RDMA_HCA_OPCODE_SEND,       RDMA_HCA_OPCODE_SEND_IMM,
        RDMA_HCA_OPCODE_RDMA_WRITE, RDMA_HCA_OPCODE_RDMA_WRITE_IMM,
        RDMA_HCA_OPCODE_RDMA_READ,  RDMA_HCA_OPCODE_ATOMIC_CS,
    };
    Scene s;

    scene_init(&s, 1003);
    for (unsigned round = 0; round < 600; round++) {
        uint32_t low, high, word;
        SendWr wr[4];
        Sge sge[4];

        for (unsigned i = 0; i < 4; i++) {
            wr[i] = pair_send(s.pair, 0, opcode[rand32(&s) % 6], i, &sge[i],
                              i * 10000, rand32(&s) % 5000, 0);
            pair_post_recv(s.pair, 1, s.victim[1], i, 0, 4096);
        }
        word = odd32(&s);
        mr_write(s.victim[1]->rq.mr, pair_rand(s.pair, 0, 64) * 4, &word, 4);
        g_assert_true(qp_write_send(s.victim[0], wr, 4, &low, &high));
        word = odd32(&s);
        mr_write(s.victim[0]->sq.mr, pair_rand(s.pair, 0, 256) * 4, &word, 4);
        qp_ring(s.victim[0], low, high);
        lab_run(s.pair->lab);
        if (round % 10 == 0) {
            scene_check(&s);
        }
        revive_victim(&s);
    }
    scene_free(&s);
}

/* A chain that bites its own tail. */
static void test_chain_loop(void)
{
    for (unsigned len = 1; len <= 3; len++) {
        Scene s;
        Ring *ring;

        scene_init(&s, 1004);
        ring = &s.victim[0]->sq;
        for (unsigned i = 0; i < len; i++) {
            unsigned next = (i + 1) % len;
            struct rdma_hca_next_unit unit = {
                .nda_nop = GUINT32_TO_LE(
                    RDMA_HCA_PREP(RDMA_HCA_NEXT_NDA,
                                  (next << ring->log_entry) / 64) |
                    (i & 1 ? RDMA_HCA_OPCODE_NOP : RDMA_HCA_OPCODE_SEND)),
                .nee_nds = GUINT32_TO_LE(1),
            };

            mr_write(ring->mr, i << ring->log_entry, &unit, sizeof(unit));
        }
        qp_ring(s.victim[0], RDMA_HCA_OPCODE_SEND,
                RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, s.victim[0]->qpn) | 1);
        lab_run(s.pair->lab);
        scene_check(&s);
        revive_victim(&s);
        scene_free(&s);
    }
}

/* More doorbells than the send queue has places. */
static void test_doorbell_flood(void)
{
    Scene s;

    scene_init(&s, 1005);
    for (unsigned i = 0; i < 5000; i++) {
        qp_ring(s.victim[0], RDMA_HCA_OPCODE_SEND,
                RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, s.victim[0]->qpn) | 1);
    }
    lab_run(s.pair->lab);
    scene_check(&s);
    revive_victim(&s);
    scene_free(&s);
}

/* Completions that nobody takes, consumer indices that make no sense. */
static void test_cq_abuse(void)
{
    Scene s;

    scene_init(&s, 1006);
    for (unsigned round = 0; round < 20; round++) {
        Cq *cq = s.victim_cq[0];

        for (unsigned i = 0; i < 20; i++) {
            uint32_t low = RDMA_HCA_PREP(RDMA_HCA_CQ_DB_CMD, rand32(&s) % 4) |
                           cq->cqn;

            host_uar_write64(&s.pair->lab->host[0],
                             cq->uar * RDMA_HCA_UAR_PAGE_SIZE + RDMA_HCA_CQ_DB,
                             (uint64_t)odd32(&s) << 32 | low);
            if (cq->ci_record) {
                host_write_le32(&s.pair->lab->host[0], cq->ci_record,
                                odd32(&s));
            }
            for (unsigned n = 0; n < 10; n++) {
                qp_ring(s.victim[0], RDMA_HCA_OPCODE_NOP,
                        RDMA_HCA_PREP(RDMA_HCA_SEND_DB_QPN, s.victim[0]->qpn) |
                            1);
            }
            lab_run(s.pair->lab);
        }
        scene_check(&s);
        revive_victim(&s);
    }
    scene_free(&s);
}

/* Regions whose pages are another device's registers, holes, or ROM. */
static void test_bad_pages(void)
{
    static const uint64_t bad[] = {
        HOST_MMIO_BASE,
        HOST_MMIO_BASE + HOST_MMIO_SIZE - 4096,
        0,
        UINT64_C(0xfffffffffffff000),
        UINT64_C(1) << 52,
        0x7ffff000,
    };

    for (unsigned b = 0; b < G_N_ELEMENTS(bad); b++) {
        for (unsigned what = 0; what < 5; what++) {
            static const char *const where[] = { "source", "target", "sq", "rq",
                                                 "cq" };
            struct rdma_hca_mtt_mailbox *mbox;
            Scene s;
            Mr *mr;
            SendWr wr;
            Sge sge;

            scene_init(&s, 1007);
            mr = (Mr *[]) { mr_new(s.pair->drv[0], s.pair->pd[0], 0x10000, 4096,
                                   ACCESS_ALL),
                            mr_new(s.pair->drv[1], s.pair->pd[1], 0x10000, 4096,
                                   ACCESS_ALL),
                            s.victim[0]->sq.mr, s.victim[1]->rq.mr,
                            s.victim_cq[0]->mr }[what];
            g_test_message("%s at %#" G_GINT64_MODIFIER "x", where[what],
                           bad[b]);
            mbox = g_malloc0(sizeof(*mbox) + 4 * 8);
            mbox->start_index_l = GUINT32_TO_BE(mr->mtt);
            mbox->entry[3].addr_h = GUINT32_TO_BE(RDMA_HCA_HI32(bad[b]));
            mbox->entry[3].addr_l = GUINT32_TO_BE(RDMA_HCA_LO32(bad[b]));
            driver_cmd_in(mr->drv, RDMA_HCA_CMD_WRITE_MTT, mbox,
                          sizeof(*mbox) + 4 * 8, 1, 0);
            g_free(mbox);
            pair_post_recv(s.pair, 1, s.victim[1], 1, 0, 4096);
            wr = pair_send(s.pair, 0, RDMA_HCA_OPCODE_SEND, 1, &sge, 0, 100, 0);
            if (what == 0) {
                sge = mr_sge(mr, 0, 100);
            } else if (what == 1) {
                wr.opcode = RDMA_HCA_OPCODE_RDMA_WRITE;
                wr.raddr = mr->va;
                wr.rkey = mr->key;
            }
            g_assert_true(qp_post_send(s.victim[0], &wr, 1));
            lab_sleep(s.pair->lab, NS_PER_S);
            scene_check(&s);
            pair_free(s.pair);
        }
    }
}

/* ---- what a kernel can write ---- */

static void recover(Scene *s)
{
    for (unsigned i = 0; i < 2; i++) {
        Pair *pair = s->pair;
        Host *host = &pair->lab->host[i];

        driver_free(pair->drv[i]);
        host_bar0_write(host, RDMA_HCA_RESET, 1);
        lab_run(pair->lab);
        pair->drv[i] = driver_new(host);
        pair->pd[i] = pd_new(pair->drv[i]);
        pair->cq[i] = cq_new(pair->drv[i], 6, 1);
        pair->mr[i] = mr_new(pair->drv[i], pair->pd[i], 0x1000, 4096,
                             ACCESS_ALL);
    }
    lab_run(s->pair->lab);
    pair_connect(s->pair, NULL, s->bystander);
    scene_check(s);
}

/* An address of RAM now and then, with a mailbox of noise behind it. */
static uint64_t random_mailbox(Scene *s)
{
    Driver *drv = s->pair->drv[0];
    uint8_t data[1024];

    if (pair_rand(s->pair, 0, 6) == 0) {
        return (uint64_t)odd32(s) << 32 | odd32(s);
    }
    fill_odd(s, data, sizeof(data));
    host_write(drv->host, drv->mbox_in, data, sizeof(data));
    return drv->mbox_in;
}

static void random_command(Scene *s, uint16_t op)
{
    Host *host = &s->pair->lab->host[0];
    uint64_t in = random_mailbox(s);
    uint64_t out = pair_rand(s->pair, 0, 4) ? s->pair->drv[0]->mbox_out
                                            : odd32(s);
    const uint32_t reg[] = {
        in >> 32,
        in,
        odd32(s),
        out >> 32,
        out,
        odd32(s),
        RDMA_HCA_HCR_GO | (odd32(s) & RDMA_HCA_HCR_OP_MODIFIER) |
            (odd32(s) & RDMA_HCA_HCR_EVENT) | op,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(reg); i++) {
        host_bar0_write(host, RDMA_HCA_HCR + i * 4, reg[i]);
    }
    lab_run(s->pair->lab);
    g_assert_false(host_bar0_read(host, RDMA_HCA_HCR + RDMA_HCA_HCR_CTRL) &
                   RDMA_HCA_HCR_GO);
}

static const uint16_t commands[] = {
    0x003, 0x004, 0x006, 0x007, 0x008, 0x009, 0x00a, 0x00d, 0x00e, 0x00f,
    0x010, 0x011, 0x012, 0x013, 0x014, 0x015, 0x016, 0x017, 0x018, 0x019,
    0x01a, 0x01b, 0x01c, 0x01d, 0x01e, 0x01f, 0x020, 0x021, 0x022, 0x023,
    0x024, 0x02c, 0x02d, 0x02f, 0x030, 0x031, 0x038, 0x043, 0xff9, 0xffa,
};

static void test_commands(void)
{
    Scene s;

    scene_init(&s, 1101);
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 400; i++) {
            random_command(&s, commands[rand32(&s) % G_N_ELEMENTS(commands)]);
        }
        recover(&s);
    }
    scene_free(&s);
}

/* Every opcode: on a running card, and on one that is fresh from reset. */
static void test_all_opcodes(void)
{
    Scene s;

    scene_init(&s, 1102);
    for (unsigned op = 0; op <= 0xfff; op++) {
        random_command(&s, op);
    }
    recover(&s);
    host_bar0_write(&s.pair->lab->host[0], RDMA_HCA_RESET, 1);
    for (unsigned op = 0; op <= 0xfff; op++) {
        random_command(&s, op);
    }
    recover(&s);
    scene_free(&s);
}

/* Traffic all the while, in both directions. */
static void keep_busy(Scene *s)
{
    for (unsigned side = 0; side < 2; side++) {
        for (unsigned i = 0; i < 4; i++) {
            SendWr wr;
            Sge sge;

            wr = pair_send(s->pair, side,
                           i & 1 ? RDMA_HCA_OPCODE_RDMA_READ
                                 : RDMA_HCA_OPCODE_RDMA_WRITE,
                           i, &sge, 0, 20000, 20000);
            qp_post_send(s->victim[side], &wr, 1);
        }
    }
    for (unsigned i = 0; i < 20; i++) {
        lab_step(s->pair->lab);
    }
}

static void test_commands_under_traffic(void)
{
    Scene s;

    for (unsigned round = 0; round < 30; round++) {
        scene_init(&s, 1110 + round);
        for (unsigned i = 0; i < 30; i++) {
            keep_busy(&s);
            random_command(&s, commands[rand32(&s) % G_N_ELEMENTS(commands)]);
        }
        recover(&s);
        scene_free(&s);
    }
}

static void test_registers(void)
{
    Scene s;

    scene_init(&s, 1103);
    for (uint32_t at = 0; at < RDMA_HCA_BAR0_SIZE; at += 4) {
        host_bar0_read(&s.pair->lab->host[0], at);
    }
    for (unsigned i = 0; i < 20000; i++) {
        uint32_t at = rand32(&s) % RDMA_HCA_BAR0_SIZE;

        switch (pair_rand(s.pair, 0, 4)) {
        case 0:
            at = RDMA_HCA_HCR + at % 64;
            break;
        case 1:
            at = RDMA_HCA_EQ_DB + at % 256;
            break;
        case 2:
            at = RDMA_HCA_RESET - 16 + at % 32;
            break;
        }
        host_bar0_write(&s.pair->lab->host[0], at & ~3u, odd32(&s));
        random_uar_write(&s);
        if (i % 16 == 0) {
            lab_run(s.pair->lab);
        }
    }
    recover(&s);
    scene_free(&s);
}

/* The guest scribbles over the contexts that it gave to the card. */
static void test_icm(void)
{
    for (unsigned round = 0; round < 25; round++) {
        Scene s;
        GArray *pages;

        scene_init(&s, 1200 + round);
        pages = s.pair->drv[0]->icm_pages;
        for (unsigned i = 0; i < 40; i++) {
            for (unsigned n = 0; n < 1 + round * 20; n++) {
                uint64_t bus = g_array_index(pages, uint64_t,
                                             rand32(&s) % pages->len);

                host_write_le32(&s.pair->lab->host[0],
                                bus + rand32(&s) % 1024 * 4, odd32(&s));
            }
            keep_busy(&s);
            if (i % 8 == 7) {
                random_command(&s, RDMA_HCA_CMD_SYNC_TPT);
                random_command(&s, RDMA_HCA_CMD_QUERY_QP);
            }
        }
        recover(&s);
        scene_free(&s);
    }
}

/* ---- what a peer can send ---- */

static void replug(Scene *s)
{
    lab_cable(s->pair->lab, false);
    lab_run(s->pair->lab);
    lab_cable(s->pair->lab, true);
    lab_run(s->pair->lab);
}

/* Bytes that are no frames: the stream is given up, the next one works. */
static void test_stream_noise(void)
{
    Scene s;

    scene_init(&s, 1301);
    for (unsigned round = 0; round < 600; round++) {
        uint8_t noise[600];
        size_t len = pair_rand(s.pair, 1, sizeof(noise) / 4) * 4;

        fill_odd(&s, noise, len);
        if (round & 1) {
            hca_frame_write_header(noise, HCA_FRAME_PACKET, round & 15,
                                   odd32(&s));
        }
        if (round & 2) {
            lab_cable(s.pair->lab, true); /* before the greeting */
        }
        lab_cable_inject(s.pair->lab, round >> 2 & 1, noise, len);
        lab_run(s.pair->lab);
        replug(&s);
    }
    scene_free(&s);
}

static void inject_packet(Scene *s, const uint8_t *packet, size_t len)
{
    uint8_t header[HCA_FRAME_HEADER_SIZE];

    hca_frame_write_header(header, HCA_FRAME_PACKET, 0, len);
    lab_cable_inject(s->pair->lab, 1, header, sizeof(header));
    lab_cable_inject(s->pair->lab, 1, packet, len);
}

/* A packet of odd fields for the victim, with all its CRCs right. */
static size_t forge(Scene *s, uint8_t *out)
{
    uint8_t payload[4096] = { 0 };
    uint32_t len = pair_rand(s->pair, 0, 3) ? rand32(s) % 1100
                                            : rand32(s) % 4097;
    HcaPacket packet;
    size_t n;

    fill_odd(s, &packet, sizeof(packet));
    packet.vl = 0;
    packet.has_grh = pair_rand(s->pair, 0, 8) == 0;
    packet.dlid = s->pair->lab->host[0].config.lid;
    if (pair_rand(s->pair, 0, 8)) {
        packet.slid = s->pair->lab->host[1].config.lid;
    }
    packet.opcode = rand32(s) % (pair_rand(s->pair, 0, 4) ? 0x18 : 0x100);
    packet.solicited = rand32(s) & 1;
    packet.mig_req = rand32(s) & 1;
    packet.fecn = packet.becn = false;
    packet.ack_req = rand32(s) & 1;
    packet.pkey = pair_rand(s->pair, 0, 8) ? 0xffff : odd32(s);
    packet.dest_qp = pair_rand(s->pair, 0, 8) ? s->victim[0]->qpn
                                              : odd32(s) & 0xffffff;
    if (packet.dest_qp == s->bystander[0]->qpn) {
        packet.dest_qp = s->victim[0]->qpn;
    }
    packet.psn = (0x123456 + odd32(s)) & HCA_PSN_MASK;
    packet.msn &= HCA_PSN_MASK;
    packet.src_qp &= 0xffffff;
    packet.rkey = pair_rand(s->pair, 0, 2) ? s->pair->mr[0]->key : odd32(s);
    packet.va = pair_rand(s->pair, 0, 2)
                    ? s->pair->mr[0]->va + rand32(s) % 70000
                    : odd32(s);
    packet.dma_len = pair_rand(s->pair, 0, 2) ? len : odd32(s);
    packet.payload = payload;
    packet.payload_len = len;
    n = hca_ib_build(&packet, out);
    memcpy(out + n, payload, len);
    return hca_ib_seal(&packet, out, n + len);
}

static void test_forged_packets(void)
{
    Scene s;

    scene_init(&s, 1302);
    for (unsigned round = 0; round < 300; round++) {
        SendWr wr[2];
        Sge sge[2];

        for (unsigned i = 0; i < 8; i++) {
            pair_post_recv(s.pair, 0, s.victim[0], i, 0, 4096);
        }
        wr[0] = pair_send(s.pair, 0, RDMA_HCA_OPCODE_RDMA_READ, 0, &sge[0], 0,
                          5000, 0);
        wr[1] = pair_send(s.pair, 0, RDMA_HCA_OPCODE_RDMA_WRITE, 1, &sge[1], 0,
                          5000, 0);
        g_assert_true(qp_post_send(s.victim[0], wr, 2));
        for (unsigned i = 0; i < 60; i++) {
            uint8_t packet[HCA_MAX_PACKET_SIZE];
            size_t len = forge(&s, packet);

            inject_packet(&s, packet, len);
            if (i % 4 == 0) {
                lab_run(s.pair->lab);
            }
        }
        lab_run(s.pair->lab);
        if (round % 8 == 0) {
            scene_check(&s);
        }
        revive_victim(&s);
    }
    scene_free(&s);
}

static void inject_built(Scene *s, HcaPacket *packet)
{
    uint8_t bytes[HCA_MAX_PACKET_SIZE] = { 0 };
    size_t len = hca_ib_build(packet, bytes) + packet->payload_len;

    inject_packet(s, bytes, hca_ib_seal(packet, bytes, len));
    lab_run(s->pair->lab);
}

/* All is right with it, but it does not come from the connected peer. */
static void test_wrong_source(void)
{
    const uint64_t *drops;
    Scene s;
    Wc wc;

    scene_init(&s, 1304);
    drops = hca_port_counters(s.pair->lab->host[0].hca->port)->drops;
    pair_post_recv(s.pair, 0, s.victim[0], 1, 0, 4096);
    for (unsigned wrong = 0; wrong < 3; wrong++) {
        HcaPacket packet = {
            .opcode = HCA_SEND_ONLY,
            .dlid = s.pair->lab->host[0].config.lid,
            .slid = s.pair->lab->host[1].config.lid + (wrong == 0),
            .pkey = wrong == 1 ? 0x8001 : HCA_DEFAULT_PKEY,
            .dest_qp = s.victim[0]->qpn,
            .psn = 0x123456,
            .payload_len = 4,
        };

        inject_built(&s, &packet);
        g_assert_cmpint(cq_poll(s.victim_cq[0], &wc), ==, wrong == 2);
    }
    g_assert_cmpuint(drops[HCA_DROP_SOURCE], ==, 1);
    g_assert_cmpuint(drops[HCA_DROP_PKEY], ==, 1);
    revive_victim(&s);
    scene_free(&s);
}

/* The peer is not ready, but somebody else says that all has arrived. */
static void test_wrong_acknowledger(void)
{
    SendWr wr;
    Sge sge;
    Scene s;
    Wc wc;

    scene_init(&s, 1305);
    wr = pair_send(s.pair, 0, RDMA_HCA_OPCODE_SEND, 1, &sge, 0, 100, 0);
    g_assert_true(qp_post_send(s.victim[0], &wr, 1));
    lab_run(s.pair->lab);
    for (unsigned wrong = 0; wrong < 3; wrong++) {
        HcaPacket packet = {
            .opcode = HCA_ACK,
            .dlid = s.pair->lab->host[0].config.lid,
            .slid = s.pair->lab->host[1].config.lid + (wrong == 0),
            .pkey = wrong == 1 ? 0x8001 : HCA_DEFAULT_PKEY,
            .dest_qp = s.victim[0]->qpn,
            .psn = 0x123456,
            .syndrome = HCA_AETH(HCA_AETH_ACK, HCA_AETH_CREDITS_INVALID),
            .msn = 1,
        };

        inject_built(&s, &packet);
        g_assert_cmpint(cq_poll(s.victim_cq[0], &wc), ==, wrong == 2);
    }
    revive_victim(&s);
    scene_free(&s);
}

/* A sound packet cut at each byte, with its frame honest about it. */
static void test_cut_packets(void)
{
    Scene s;
    uint8_t packet[HCA_MAX_PACKET_SIZE];

    scene_init(&s, 1303);
    for (unsigned round = 0; round < 12; round++) {
        size_t len = forge(&s, packet);

        len = MIN(len, 200);
        for (size_t n = 1; n <= len; n++) {
            inject_packet(&s, packet, n);
        }
        lab_run(s.pair->lab);
    }
    scene_check(&s);
    revive_victim(&s);
    scene_free(&s);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    lab_add_test("/hostile/process/doorbells", test_doorbells);
    lab_add_test("/hostile/process/work-queues", test_work_queues);
    lab_add_test("/hostile/process/changed-wqes", test_changed_wqes);
    lab_add_test("/hostile/process/chain-loop", test_chain_loop);
    lab_add_test("/hostile/process/doorbell-flood", test_doorbell_flood);
    lab_add_test("/hostile/process/cq-abuse", test_cq_abuse);
    lab_add_test("/hostile/kernel/bad-pages", test_bad_pages);
    lab_add_test("/hostile/kernel/commands", test_commands);
    lab_add_test("/hostile/kernel/all-opcodes", test_all_opcodes);
    lab_add_test("/hostile/kernel/commands-under-traffic",
                 test_commands_under_traffic);
    lab_add_test("/hostile/kernel/registers", test_registers);
    lab_add_test("/hostile/kernel/icm", test_icm);
    g_test_add_func("/hostile/peer/stream-noise", test_stream_noise);
    g_test_add_func("/hostile/peer/forged-packets", test_forged_packets);
    g_test_add_func("/hostile/peer/wrong-source", test_wrong_source);
    g_test_add_func("/hostile/peer/wrong-acknowledger",
                    test_wrong_acknowledger);
    g_test_add_func("/hostile/peer/cut-packets", test_cut_packets);
    return g_test_run();
}
