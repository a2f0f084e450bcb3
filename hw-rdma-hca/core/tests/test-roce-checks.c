/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The receive checks of the RoCE engine document (its table 2.5.2, RC_CHK), row
 * by row, on whole cards: what a packet that fails one leads to, and that a
 * fault on one QP leaves the others alone (bed_free() asks the bystanders).
 */
#include <string.h>

#include "../wire/bytes.h"
#include "../wire/headers.h"
#include "lib-bed.h"

#define SEND RDMA_HCA_OPCODE_SEND
#define WRITE RDMA_HCA_OPCODE_RDMA_WRITE
#define RC RDMA_HCA_QP_ST_RC
#define UD RDMA_HCA_QP_ST_UD
/* qp_attr_init()'s */
#define QKEY 0x11111111
#define FIRST_PSN 0x123456

/*
 * The request fails on side 0 so, and on side 1 the QP with this event, which
 * an interrupt announces.
 */
static void expect_fatal(Bed *bed, uint8_t syndrome, const char *nak,
                         uint8_t event)
{
    struct rdma_hca_eqe eqe;

    bed_expect_end(bed, 0, syndrome);
    bed_counted(bed, 1, nak, 1);
    g_assert_cmpuint(qp_state(bed->qps[0]), ==, RDMA_HCA_QP_STATE_ERR);
    g_assert_cmpuint(qp_state(bed->qps[1]), ==, RDMA_HCA_QP_STATE_ERR);
    if (event) {
        g_assert_cmpuint(bed->lab->host[1].msix[EQ_ASYNC], ==,
                         bed->interrupts + 1);
        g_assert_true(driver_event(bed->drv[1], event, &eqe));
        g_assert_cmphex(GUINT32_FROM_LE(eqe.qp.qpn), ==, bed->qps[1]->qpn);
        g_assert_false(driver_event(bed->drv[1], event, NULL));
    }
}

static void expect_invalid(Bed *bed)
{
    expect_fatal(bed, RDMA_HCA_SYNDROME_REMOTE_INVAL_REQ_ERR,
                 "responder_nak_tx_invalid", RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR);
}

/* Dropped without a word once; the retry gets through. */
static void check_drop(BedEdit *edit, const char *reason)
{
    Bed *bed;

    bed = bed_new_roce(RC, NULL, NULL);
    bed_set_weather(bed, 0, (BedWeather) { .nth = 1, .edit = edit });
    bed_request(bed, 0, WRITE, 64);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 1, reason, 1);
    g_assert_cmpuint(bed->seen[1], ==, 0);
    bed_expect_end(bed, 0, 0);
    bed_counted(bed, 0, "requester_timeouts", 1);
    bed_free(bed);
}

/* ---- OPCODE ---- */

static void make_middle(HcaPacket *packet)
{
    packet->opcode = HCA_SEND_MIDDLE;
}

static void make_write_last(HcaPacket *packet)
{
    packet->opcode = HCA_WRITE_LAST;
}

static void test_opcode(void)
{
    static BedEdit *const edits[] = { make_middle, make_write_last };

    for (unsigned i = 0; i < G_N_ELEMENTS(edits); i++) {
        Bed *bed;

        bed = bed_new_roce(RC, NULL, NULL);
        bed_post_recvs(bed, 1, 4096);
        bed_set_weather(bed, 0, (BedWeather) { .nth = 1, .edit = edits[i] });
        bed_request(bed, 0, SEND, 1024);
        bed_post_requests(bed, 1);
        bed_run(bed);
        expect_invalid(bed);
        bed_free(bed);
    }
}

static void make_uc(HcaPacket *packet)
{
    packet->opcode = HCA_BTH_UC << 5 | HCA_SEND_MIDDLE;
}

/* Of another service: not for this QP at all. */
static void test_opcode_service(void)
{
    Bed *bed;

    bed = bed_new_roce(RC, NULL, NULL);
    bed_post_recvs(bed, 1, 4096);
    bed_set_weather(bed, 0, (BedWeather) { .nth = 1, .edit = make_uc });
    bed_request(bed, 0, SEND, 1024);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 1, "port_drop_service", 1);
    bed_expect_end(bed, 0, 0);
    bed_free(bed);
}

/* Of RC, but unknown to it (IBA 9.9.3). */
static void test_opcode_reserved(void)
{
    for (unsigned opcode = HCA_SEND_ONLY_INV + 1; opcode < 32; opcode++) {
        HcaPacket packet = { .opcode = HCA_SEND_ONLY, .ack_req = true };
        uint8_t frame[HCA_MAX_ROCE_HEADER_SIZE + HCA_MAX_TRAILER_SIZE];
        struct rdma_hca_eqe eqe;
        Bed *bed;
        size_t len;

        if (opcode == HCA_FLUSH || opcode == HCA_ATOMIC_WRITE) {
            continue;
        }
        bed = bed_new_roce(RC, NULL, NULL);
        bed_headers(bed, 0, &packet);
        packet.psn = FIRST_PSN;
        len = hca_roce_build(&packet, frame);
        frame[len - HCA_BTH_SIZE] = opcode;
        bed_inject_frame(bed, 0, frame, hca_roce_seal(&packet, frame, len));
        bed_counted(bed, 1, "responder_nak_tx_invalid", 1);
        g_assert_cmpuint(qp_state(bed->qps[1]), ==, RDMA_HCA_QP_STATE_ERR);
        g_assert_true(
            driver_event(bed->drv[1], RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR, &eqe));
        bed_free(bed);
    }
}

/* ---- Length ---- */

/* Send: no more than the receive buffer. */
static void test_length_receive_buffer(void)
{
    Bed *bed;

    bed = bed_new_roce(RC, NULL, NULL);
    bed_post_recvs(bed, 1, 63);
    bed_request(bed, 0, SEND, 64);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_expect_end(bed, 1, RDMA_HCA_SYNDROME_LOCAL_LENGTH_ERR);
    expect_fatal(bed, RDMA_HCA_SYNDROME_REMOTE_INVAL_REQ_ERR,
                 "responder_nak_tx_invalid", 0);
    bed_free(bed);
}

static void make_first(HcaPacket *packet)
{
    packet->opcode = HCA_SEND_FIRST;
}

/* First and Middle: the MTU, which 1023 and 1000 bytes are not. */
static void test_length_first(void)
{
    Bed *bed;

    bed = bed_new_roce(RC, NULL, NULL);
    bed_post_recvs(bed, 1, 4096);
    bed_set_weather(bed, 0, (BedWeather) { .nth = 1, .edit = make_first });
    bed_request(bed, 0, SEND, 1023);
    bed_post_requests(bed, 1);
    bed_run(bed);
    expect_invalid(bed);
    bed_free(bed);
}

static void test_length_middle(void)
{
    Bed *bed;

    bed = bed_new_roce(RC, NULL, NULL);
    bed_post_recvs(bed, 1, 4096);
    bed_set_weather(bed, 0, (BedWeather) { .nth = 2, .edit = make_middle });
    bed_request(bed, 0, SEND, 2024);
    bed_post_requests(bed, 1);
    bed_run(bed);
    expect_invalid(bed);
    bed_free(bed);
}

/* Connect anew: the requester's MTU is 1024, the responder's 256. */
static void shrink_mtu(Bed *bed)
{
    for (unsigned i = 0; i < 2; i++) {
        QpAttr attr;

        g_assert_cmphex(qp_to_err(bed->qps[i]), ==, 0);
        g_assert_cmphex(qp_to_rst(bed->qps[i]), ==, 0);
        qp_attr_init(&attr);
        attr.mtu = i ? 1 : 3;
        attr.dest_qpn = bed->qps[!i]->qpn;
        qp_attr_to(&attr, bed->drv[i], bed->drv[!i]);
        qp_bring_up(bed->qps[i], &attr);
    }
}

static void make_last(HcaPacket *packet)
{
    packet->opcode = HCA_SEND_LAST;
}

/* A First of 256 bytes, and a Last of @len, of two messages. */
static void send_first_and_last(Bed *bed, uint32_t len)
{
    shrink_mtu(bed);
    bed_post_recvs(bed, 1, 4096);
    bed_set_weather(bed, 0, (BedWeather) { .nth = 1, .edit = make_first });
    bed_request(bed, 0, SEND, 256);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_expect_end(bed, 0, 0);
    bed_set_weather(bed, 0, (BedWeather) { .nth = 1, .edit = make_last });
    bed_request(bed, 0, SEND, len);
    bed_post_requests(bed, 1);
    bed_run(bed);
}

/* Last: no more than the MTU, and not nothing (IBA 9.7.4.1.6). */
static void test_length_last(void)
{
    static const struct {
        uint32_t len;
        bool good;
    } c[] = { { 257, false }, { 0, false }, { 256, true }, { 1, true } };

    for (unsigned i = 0; i < G_N_ELEMENTS(c); i++) {
        Bed *bed;

        bed = bed_new_roce(RC, NULL, NULL);
        send_first_and_last(bed, c[i].len);
        if (c[i].good) {
            bed_expect_end(bed, 0, 0);
            bed_expect_end(bed, 1, 0);
        } else {
            expect_invalid(bed);
        }
        bed_free(bed);
    }
}

static void longer(HcaPacket *packet)
{
    packet->dma_len++;
}

static void shorter(HcaPacket *packet)
{
    packet->dma_len--;
}

/* A Write brings what its RETH says. */
static void test_length_write(void)
{
    static BedEdit *const edits[] = { longer, shorter };

    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(edits); i++) {
        Bed *bed;

        bed = bed_new_roce(RC, NULL, NULL);
        bed_set_weather(bed, 0,
                        (BedWeather) { .nth = 1, .edit = edits[i / 2] });
        bed_request(bed, 0, WRITE, i % 2 ? 64 : 1024 + 64);
        bed_post_requests(bed, 1);
        bed_run(bed);
        expect_invalid(bed);
        bed_free(bed);
    }
}

/* Last and Only: no more than the MTU, which here the peer has smaller. */
static void test_length_only(void)
{
    Bed *bed;

    bed = bed_new_roce(RC, NULL, NULL);
    shrink_mtu(bed);
    bed_post_recvs(bed, 2, 4096);
    bed_request(bed, 0, SEND, 256);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_expect_end(bed, 0, 0);
    bed_expect_end(bed, 1, 0);
    bed_request(bed, 0, SEND, 257);
    bed_post_requests(bed, 1);
    bed_run(bed);
    expect_invalid(bed);
    bed_free(bed);
}

/* ---- PKEY ---- */

static void other_pkey(HcaPacket *packet)
{
    packet->pkey = 0xfffe;
}

static void limited_pkey(HcaPacket *packet)
{
    packet->pkey = 0x7fff;
}

static void test_pkey(void)
{
    Bed *bed;

    check_drop(other_pkey, "port_drop_pkey");
    /* A limited member and a full one may talk. */
    bed = bed_new_roce(RC, NULL, NULL);
    bed_set_weather(bed, 0, (BedWeather) { .nth = 1, .edit = limited_pkey });
    bed_request(bed, 0, WRITE, 64);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_expect_end(bed, 0, 0);
    bed_counted(bed, 0, "requester_timeouts", 0);
    bed_free(bed);
}

/* Limited members may talk to full ones, and not to each other. */
static void test_pkey_limited(void)
{
    static const uint16_t members[][2] = {
        { 0x8001, 0x8001 },
        { 0x8001, 1 },
        { 1, 0x8001 },
        { 1, 1 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(members); i++) {
        HcaConfig config[2];
        QpAttr attr;
        Bed *bed;

        for (unsigned side = 0; side < 2; side++) {
            lab_config_roce(&config[side], side);
            config[side].num_pkeys = 2;
            config[side].pkeys[1] = members[i][side];
        }
        qp_attr_init(&attr);
        attr.pkey_index = 1;
        bed = bed_new_roce(RC, &attr, config);
        bed_request(bed, 0, WRITE, 64);
        bed_post_requests(bed, 1);
        bed_run(bed);
        bed_counted(bed, 1, "port_drop_pkey", i == 3);
        bed_counted(bed, 1, "responder_writes", i != 3);
        bed_free(bed);
    }
}

/* ---- DestQP ---- */

static void to_nobody(HcaPacket *packet)
{
    packet->dest_qp = 0xabcdef;
}

static void to_qp0(HcaPacket *packet)
{
    packet->dest_qp = 0;
}

static void to_qp1(HcaPacket *packet)
{
    packet->dest_qp = 1;
}

static void test_dest_qp(void)
{
    check_drop(to_nobody, "port_drop_qpn");
    check_drop(to_qp0, "port_drop_qpn");
    check_drop(to_qp1, "port_drop_qpn");
}

/* Known, but not enabled. */
static void test_dest_qp_state(void)
{
    Bed *bed;

    bed = bed_new_roce(RC, NULL, NULL);
    g_assert_cmphex(qp_to_err(bed->qps[1]), ==, 0);
    bed_request(bed, 0, WRITE, 64);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 1, "port_drop_qp_state", 1);
    g_assert_cmpuint(bed_counter(bed, 1, "responder_naks_tx"), ==, 0);
    bed_free(bed);
}

/* ---- RQ almost full ---- */

static void test_rnr(void)
{
    Bed *bed;

    bed = bed_new_roce(RC, NULL, NULL);
    bed_request(bed, 0, SEND, 64);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 1, "responder_rnrs_tx", 1);
    bed_counted(bed, 0, "requester_rnrs_rx", 1);
    bed_post_recvs(bed, 1, 64);
    bed_expect_end(bed, 0, 0);
    bed_expect_end(bed, 1, 0);
    bed_free(bed);
}

/* ---- WRITE MRT: R_Key, protection domain, range, right ---- */

static void no_key(Bed *bed, SendWr *wr)
{
    wr->rkey ^= 0x155;
}

static void other_pd(Bed *bed, SendWr *wr)
{
    const Mr *mr = bed->pair->mr[1];

    wr->rkey = mr_new(bed->drv[1], pd_new(bed->drv[1]), mr->va, mr->len,
                      ACCESS_ALL)
                   ->key;
}

static void beyond_end(Bed *bed, SendWr *wr)
{
    wr->raddr = bed->pair->mr[1]->va + bed->pair->mr[1]->len - 63;
}

static void before_start(Bed *bed, SendWr *wr)
{
    wr->raddr = bed->pair->mr[1]->va - 1;
}

static void read_only(Bed *bed, SendWr *wr)
{
    const Mr *mr = mr_new(bed->drv[1], bed->pair->pd[1], 0x1000, 4096,
                          RDMA_HCA_ACCESS_REMOTE_READ);

    wr->rkey = mr->key;
    wr->raddr = mr->va;
}

static void test_write_mrt(void)
{
    static void (*const spoil[])(Bed *, SendWr *) = {
        no_key, other_pd, beyond_end, before_start, read_only,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(spoil); i++) {
        g_autofree uint8_t *image = NULL;
        Bed *bed;

        bed = bed_new_roce(RC, NULL, NULL);
        mr_fill(bed->pair->mr[0], 0, 0x5a, 64);
        image = mr_image(bed->pair->mr[1]);
        spoil[i](bed, bed_request(bed, 0, WRITE, 64));
        bed_post_requests(bed, 1);
        bed_run(bed);
        expect_fatal(bed, RDMA_HCA_SYNDROME_REMOTE_ACCESS_ERR,
                     "responder_nak_tx_access", RDMA_HCA_EVENT_WQ_ACCESS_ERROR);
        mr_check_image(bed->pair->mr[1], image);
        bed_free(bed);
    }
}

/* ---- CQ: overflow is fatal to its queue pairs and tells software ---- */

static void test_cq_overflow(void)
{
    struct rdma_hca_eqe eqe;
    QpConfig config;
    QpAttr attr;
    Bed *bed;
    Cq *tiny;

    bed = bed_new_roce(RC, NULL, NULL);
    tiny = cq_new(bed->drv[1], 2, 2);
    for (unsigned i = 0; i < 2; i++) {
        qp_config_init(&config, bed->pair->pd[i], i ? tiny : bed->cqs[0]);
        bed->qps[i] = qp_new(bed->drv[i], &config);
    }
    qp_attr_init(&attr);
    qp_connect(bed->qps[0], bed->qps[1], &attr);
    bed_post_recvs(bed, 5, 64);
    for (unsigned i = 0; i < 5; i++) {
        bed_request(bed, i, SEND, 64);
    }
    bed_post_requests(bed, 5);
    bed_run(bed);
    g_assert_cmpuint(bed->lab->host[1].msix[EQ_ASYNC], >, bed->interrupts);
    g_assert_true(driver_event(bed->drv[1], RDMA_HCA_EVENT_CQ_ERROR, &eqe));
    g_assert_cmphex(GUINT32_FROM_LE(eqe.cq.cqn), ==, tiny->cqn);
    g_assert_cmpuint(qp_state(bed->qps[1]), ==, RDMA_HCA_QP_STATE_ERR);
    bed_counted(bed, 1, "responder_nak_tx_operation", 1);
    bed_counted(bed, 1, "cxtmgt_cq_overruns", 1);
    bed_free(bed);
}

/* ---- RX Push Bresp: a write that memory refuses ---- */

static void test_write_error(void)
{
    SendWr *wr;
    Bed *bed;

    bed = bed_new_roce(RC, NULL, NULL);
    wr = bed_request(bed, 0, WRITE, 64);
    wr->rkey = driver_physical_region(bed->drv[1], bed->pair->pd[1]);
    wr->raddr = HOST_MMIO_BASE;
    bed_post_requests(bed, 1);
    bed_run(bed);
    expect_fatal(bed, RDMA_HCA_SYNDROME_REMOTE_OP_ERR,
                 "responder_nak_tx_operation", RDMA_HCA_EVENT_WQ_CATAS_ERROR);
    bed_free(bed);
}

/* ---- PSN ---- */

/* Ahead: one NAK, and the requester goes back. */
static void test_psn_retry(void)
{
    Bed *bed;

    bed = bed_new_roce(RC, NULL, NULL);
    bed_set_weather(bed, 0, (BedWeather) { .nth = 2, .fate = CABLE_DROP });
    bed_request(bed, 0, WRITE, 5000);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_expect_end(bed, 0, 0);
    bed_counted(bed, 1, "responder_nak_tx_psn", 1);
    bed_counted(bed, 0, "requester_retransmissions", 4);
    bed_counted(bed, 0, "requester_timeouts", 0);
    bed_free(bed);
}

/* Behind: acknowledged again, executed once. */
static void test_psn_duplicate(void)
{
    Bed *bed;
    Wc wc;

    bed = bed_new_roce(RC, NULL, NULL);
    bed_post_recvs(bed, 2, 64);
    bed_set_weather(bed, 0, (BedWeather) { .nth = 1, .fate = CABLE_DUPLICATE });
    bed_request(bed, 0, SEND, 64);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_expect_end(bed, 0, 0);
    bed_expect_end(bed, 1, 0);
    bed_counted(bed, 1, "responder_duplicates", 1);
    g_assert_false(cq_poll(bed->cqs[1], &wc));
    bed_free(bed);
}

/* ---- UD: the same checks lead to silence (IBA 9.8.3) ---- */

static void other_qkey(HcaPacket *packet)
{
    packet->qkey++;
}

static void test_datagram(void)
{
    static const struct {
        const char *reason;
        uint32_t receive; /* bytes, 0: none posted */
        BedEdit *edit;
    } c[] = {
        { "port_drop_no_wqe", 0, NULL },
        { "port_drop_length", 40 + 63, NULL },
        { "port_drop_qkey", 256, other_qkey },
        { "port_drop_pkey", 256, other_pkey },
        { "port_drop_qpn", 256, to_nobody },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(c); i++) {
        UdAddress ud = { .qkey = QKEY };
        Bed *bed;

        bed = bed_new_roce(UD, NULL, NULL);
        ud_address_to(&ud, bed->drv[0], bed->drv[1]);
        ud.dqpn = bed->qps[1]->qpn;
        if (c[i].receive) {
            bed_post_recvs(bed, 1, c[i].receive);
        }
        bed_set_weather(bed, 0, (BedWeather) { .nth = 1, .edit = c[i].edit });
        bed_request(bed, 0, SEND, 64)->ud = &ud;
        bed_post_requests(bed, 1);
        bed_run(bed);
        bed_counted(bed, 1, c[i].reason, 1);
        bed_expect_end(bed, 0, 0);
        g_assert_cmpuint(bed->seen[1], ==, 0);
        g_assert_cmpuint(qp_state(bed->qps[0]), ==, RDMA_HCA_QP_STATE_RTS);
        bed_free(bed);
    }
}

/* ---- ICRC and headers: RX_PKT_PROC ---- */

typedef struct Malformed {
    const char *reason;
    size_t at; /* from IP on */
    uint8_t mask;
} Malformed;

static const Malformed malformed_ipv4[] = {
    { "port_drop_version", 0, 0x20 },
    { "port_drop_ip_header", 0, 0x01 },
    { "port_drop_fragment", 6, 0x20 },
    { "port_drop_parse_length", 2, 0x80 },
    { "port_drop_parse_length", 3, 0x80 },
    { "port_drop_udp", 25, 0x04 },
    { "port_drop_udp", 26, 0x01 },
    { "port_drop_icrc", 20, 0x01 },
    { "port_drop_icrc", 40, 0x01 },
    { "port_drop_icrc", 60, 0x80 },
};

static const Malformed malformed_ipv6[] = {
    { "port_drop_version", 0, 0x10 }, { "port_drop_parse_length", 4, 0x80 },
    { "port_drop_udp", 45, 0x04 },    { "port_drop_udp", 46, 0x01 },
    { "port_drop_icrc", 40, 0x01 },   { "port_drop_icrc", 60, 0x01 },
    { "port_drop_icrc", 80, 0x80 },
};

/* Not repaired, unlike that of the others. */
static const Malformed wrong_checksum = { "port_drop_ip_header", 10, 0xff };

static const Malformed *damage;

static size_t ip_at(const uint8_t *frame)
{
    return get_be16(frame + 12) == 0x8100 ? 18 : 14;
}

static void set_ip_checksum(uint8_t *ip)
{
    uint32_t sum = 0;

    put_be16(ip + 10, 0);
    for (unsigned i = 0; i < HCA_IPV4_HEADER_SIZE; i += 2) {
        sum += get_be16(ip + i);
    }
    sum = (sum & 0xffff) + (sum >> 16);
    put_be16(ip + 10, ~(sum + (sum >> 16)));
}

static CableFate damage_first(void *opaque, unsigned from, uint8_t *frame,
                              size_t len)
{
    uint8_t *ip = frame + ip_at(frame);

    if (from == 0 && damage) {
        ip[damage->at] ^= damage->mask;
        if (get_be16(ip - 2) == 0x0800 && damage != &wrong_checksum) {
            set_ip_checksum(ip);
        }
        damage = NULL;
    }
    return CABLE_DELIVER;
}

static Bed *bed_new_along(unsigned gid)
{
    QpAttr attr;

    qp_attr_init(&attr);
    attr.roce.sgid_index = gid;
    return bed_new_roce(RC, &attr, NULL);
}

/* Counted by its kind and dropped; the connection gets over it. */
static void check_malformed(unsigned gid, const Malformed *malformed)
{
    Bed *bed;

    bed = bed_new_along(gid);
    damage = malformed;
    lab_tap(bed->lab, damage_first, NULL);
    bed_request(bed, 0, WRITE, 64);
    bed_post_requests(bed, 1);
    bed_run(bed);
    bed_counted(bed, 1, malformed->reason, 1);
    bed_expect_end(bed, 0, 0);
    bed_counted(bed, 1, "responder_writes", 1);
    bed_free(bed);
}

static void test_malformed_ipv4(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(malformed_ipv4); i++) {
        check_malformed(GID_IPV4, &malformed_ipv4[i]);
        check_malformed(GID_VLAN_IPV4, &malformed_ipv4[i]);
    }
    check_malformed(GID_IPV4, &wrong_checksum);
    check_malformed(GID_VLAN_IPV4, &wrong_checksum);
}

static void test_malformed_ipv6(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(malformed_ipv6); i++) {
        check_malformed(GID_LINK_LOCAL, &malformed_ipv6[i]);
        check_malformed(GID_VLAN_IPV6, &malformed_ipv6[i]);
    }
}

/* A Write with immediate data that the responder waits for. */
static size_t make_write(Bed *bed, unsigned gid, HcaPacket *packet,
                         uint8_t *frame)
{
    const Mr *mr = bed->pair->mr[1];
    size_t len;

    *packet = (HcaPacket) {
        .opcode = HCA_WRITE_ONLY_IMM,
        .psn = FIRST_PSN,
        .va = mr->va,
        .rkey = mr->key,
        .dma_len = 24,
        .payload_len = 24,
    };
    bed_headers_along(bed, 0, gid, packet);
    len = hca_roce_build(packet, frame);
    memset(frame + len, 0, packet->payload_len);
    return hca_roce_seal(packet, frame, len + packet->payload_len);
}

/* IP, UDP and ICRC say that the frame is whole with @len bytes. */
static void repair(uint8_t *frame, const HcaPacket *packet, size_t len)
{
    uint8_t *ip = frame + ip_at(frame);
    size_t header = packet->is_ipv4 ? HCA_IPV4_HEADER_SIZE
                                    : HCA_IPV6_HEADER_SIZE;
    uint8_t *bth = ip + header + HCA_UDP_HEADER_SIZE;
    HcaPacket whole = *packet;

    if (packet->is_ipv4) {
        put_be16(ip + 2, len - (ip - frame));
        set_ip_checksum(ip);
    } else {
        put_be16(ip + 4, len - (ip - frame) - header);
    }
    put_be16(ip + header + 4, len - (ip - frame) - header);
    if (len >= (size_t)(bth - frame) + HCA_BTH_SIZE + HCA_ICRC_SIZE) {
        whole.pad = 0;
        hca_roce_seal(&whole, frame, len - HCA_ICRC_SIZE);
    }
}

/* What drops a frame that ends at @n; NULL: it is not taken for RoCEv2. */
static const char *reason_of_cut(const HcaPacket *packet, size_t n,
                                 bool repaired)
{
    size_t udp = (packet->has_vlan ? 18 : 14) + (packet->is_ipv4
                                                     ? HCA_IPV4_HEADER_SIZE
                                                     : HCA_IPV6_HEADER_SIZE);
    size_t bth = udp + HCA_UDP_HEADER_SIZE;

    if (n < udp + 4) {
        return NULL;
    }
    if (!repaired) {
        return "port_drop_parse_length";
    }
    return n < bth + HCA_BTH_SIZE + HCA_ICRC_SIZE || (n - bth) % 4 == 0
               ? "port_drop_short"
               : "port_drop_parse_length";
}

/* Cut at each byte: as it is, and with lengths and ICRC that fit the cut. */
static void check_truncated(unsigned gid, bool repaired)
{
    g_autofree uint8_t *image = NULL;
    uint8_t frame[256], cut[256];
    HcaPacket packet;
    Bed *bed;
    size_t len, end;

    bed = bed_new_along(gid);
    mr_fill(bed->pair->mr[1], 0, 0x5a, 64);
    image = mr_image(bed->pair->mr[1]);
    len = make_write(bed, gid, &packet, frame);
    /* Cut in its payload, a repaired packet would be another good one. */
    end = repaired ? len - packet.payload_len : len;
    for (size_t n = 1; n < end; n++) {
        const char *reason = reason_of_cut(&packet, n, repaired);
        uint64_t before = reason ? bed_counter(bed, 1, reason) : 0;
        uint64_t rx = bed_counter(bed, 1, "port_rx_packets");

        memcpy(cut, frame, len);
        if (repaired && reason) {
            repair(cut, &packet, n);
        }
        bed_inject_frame(bed, 0, cut, n);
        bed_counted(bed, 1, "port_rx_packets", rx + !!reason);
        if (reason) {
            bed_counted(bed, 1, reason, before + 1);
        }
    }
    bed_counted(bed, 1, "responder_executed", 0);
    mr_check_image(bed->pair->mr[1], image);
    bed_post_recvs(bed, 1, 0);
    bed_inject_frame(bed, 0, frame, len);
    bed_counted(bed, 1, "responder_writes", 1);
    bed_free(bed);
}

static void test_truncated(void)
{
    for (unsigned gid = 0; gid < NUM_GIDS; gid++) {
        check_truncated(gid, false);
        check_truncated(gid, true);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/roce-checks/opcode", test_opcode);
    test_add("/roce-checks/opcode-service", test_opcode_service);
    test_add("/roce-checks/opcode-reserved", test_opcode_reserved);
    test_add("/roce-checks/length/receive-buffer", test_length_receive_buffer);
    test_add("/roce-checks/length/first", test_length_first);
    test_add("/roce-checks/length/middle", test_length_middle);
    test_add("/roce-checks/length/only", test_length_only);
    test_add("/roce-checks/length/last", test_length_last);
    test_add("/roce-checks/length/write", test_length_write);
    test_add("/roce-checks/pkey", test_pkey);
    test_add("/roce-checks/pkey-limited", test_pkey_limited);
    test_add("/roce-checks/dest-qp", test_dest_qp);
    test_add("/roce-checks/dest-qp-state", test_dest_qp_state);
    test_add("/roce-checks/rq-full-rnr", test_rnr);
    test_add("/roce-checks/write-mrt", test_write_mrt);
    test_add("/roce-checks/cq-overflow", test_cq_overflow);
    test_add("/roce-checks/write-error", test_write_error);
    test_add("/roce-checks/psn/retry", test_psn_retry);
    test_add("/roce-checks/psn/duplicate", test_psn_duplicate);
    test_add("/roce-checks/datagram", test_datagram);
    test_add("/roce-checks/malformed/ipv4", test_malformed_ipv4);
    test_add("/roce-checks/malformed/ipv6", test_malformed_ipv6);
    test_add("/roce-checks/malformed/truncated", test_truncated);
    return g_test_run();
}
