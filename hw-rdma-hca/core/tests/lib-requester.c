/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-requester.h"

#include <string.h>

void bed_attr_init(QpAttr *attr)
{
    *attr = bed_requester(RDMA_HCA_QP_ST_RC).attr;
}

static Bed *new_bed(const BedConfig *config)
{
    Bed *bed = bed_new_as(config);
    g_autofree uint8_t *fill = pair_data(bed->pair, BED_AREA);

    mr_write(bed->mr, 0, fill, BED_AREA);
    return bed;
}

Bed *bed_new_with(uint8_t service, const QpAttr *attr, const HcaConfig *cards)
{
    BedConfig config = bed_requester(service);
    Bed *bed;

    config.attr = *attr;
    config.cards = cards;
    bed = new_bed(&config);
    if (service == RDMA_HCA_QP_ST_RC) {
        bed_ack(bed, attr->sq_psn - 1);
    }
    return bed;
}

Bed *bed_new_credits(void)
{
    BedConfig config = bed_requester(RDMA_HCA_QP_ST_RC);

    return new_bed(&config);
}

Bed *bed_new_service(uint8_t service)
{
    BedConfig config = bed_requester(service);

    return bed_new_with(service, &config.attr, NULL);
}

Bed *bed_new(void)
{
    return bed_new_service(RDMA_HCA_QP_ST_RC);
}

/* ---- work requests ---- */

SendWr bed_wr(Bed *bed, Sge *sge, uint8_t opcode, uint64_t wr_id, uint32_t len)
{
    *sge = mr_sge(bed->mr, wr_id * 4096, len);
    return (SendWr) {
        .wr_id = wr_id,
        .opcode = opcode,
        .flags = SEND_SIGNALED,
        .imm_be = 0x44332211,
        .raddr = BED_RADDR,
        .rkey = BED_RKEY,
        .swap_add = 0x1111222233334444,
        .compare = 0x5555666677778888,
        .nsge = 1,
        .sge = sge,
    };
}

void bed_post_wr(Bed *bed, const SendWr *wr)
{
    g_assert_true(qp_post_send(bed->qp, wr, 1));
    bed_run(bed);
}

void bed_post_flags(Bed *bed, uint8_t opcode, uint64_t wr_id, uint32_t len,
                    unsigned flags)
{
    Sge sge;
    SendWr wr = bed_wr(bed, &sge, opcode, wr_id, len);

    wr.flags = flags;
    bed_post_wr(bed, &wr);
}

void bed_post(Bed *bed, uint8_t opcode, uint64_t wr_id, uint32_t len)
{
    bed_post_flags(bed, opcode, wr_id, len, SEND_SIGNALED);
}

void bed_post_bad(Bed *bed, uint64_t wr_id)
{
    Sge sge;
    SendWr wr = bed_wr(bed, &sge,
                       bed->service == RDMA_HCA_QP_ST_UD
                           ? RDMA_HCA_OPCODE_SEND
                           : RDMA_HCA_OPCODE_RDMA_WRITE,
                       wr_id, 100);
    UdAddress ud = { .dlid = 0x11, .dqpn = BED_PEER_QPN };

    sge.lkey = 0xbad;
    wr.ud = bed->service == RDMA_HCA_QP_ST_UD ? &ud : NULL;
    bed_post_wr(bed, &wr);
}

void bed_post_ud(Bed *bed, uint64_t wr_id, uint32_t len)
{
    UdAddress ud = { .dlid = bed->peer.slid,
                     .dqpn = BED_PEER_QPN,
                     .qkey = BED_QKEY };
    Sge sge;
    SendWr wr = bed_wr(bed, &sge, RDMA_HCA_OPCODE_SEND, wr_id, len);

    wr.ud = &ud;
    bed_post_wr(bed, &wr);
}

/* ---- what the requester sends ---- */

void bed_expect_request(Bed *bed, uint8_t op, uint32_t psn)
{
    g_free(bed_next(bed, op, psn));
}

void bed_expect_payload(Bed *bed, uint8_t op, uint32_t psn, uint32_t at,
                        uint32_t len)
{
    g_autofree BedPacket *request = bed_next(bed, op, psn);
    g_autofree uint8_t *want = g_malloc(len + 1);

    mr_read(bed->mr, at, want, len);
    g_assert_cmpmem(request->data, request->packet.payload_len, want, len);
}

void bed_expect_read(Bed *bed, uint32_t psn, uint32_t offset, uint32_t len)
{
    g_autofree BedPacket *request = bed_next(bed, HCA_READ_REQUEST, psn);

    g_assert_cmphex(request->packet.va, ==, BED_RADDR + offset);
    g_assert_cmphex(request->packet.rkey, ==, BED_RKEY);
    g_assert_cmpuint(request->packet.dma_len, ==, len);
}

void bed_forget_requests(Bed *bed)
{
    bed_run(bed);
    g_queue_clear_full(&bed->heard, g_free);
}

/* ---- what the peer says ---- */

void bed_say_packet(Bed *bed, HcaPacket *packet, uint32_t at)
{
    bed_put(bed, packet, at);
    bed_run(bed);
}

void bed_say(Bed *bed, uint8_t op, uint32_t psn, uint8_t syndrome)
{
    HcaPacket packet = {
        .opcode = op,
        .psn = psn,
        .syndrome = syndrome,
        .msn = ++bed->msn,
    };

    bed_say_packet(bed, &packet, 0);
}

void bed_ack(Bed *bed, uint32_t psn)
{
    bed_say(bed, HCA_ACK, psn,
            HCA_AETH(HCA_AETH_ACK, HCA_AETH_CREDITS_INVALID));
}

void bed_nak(Bed *bed, uint32_t psn, uint8_t syndrome)
{
    bed_say(bed, HCA_ACK, psn, syndrome);
}

void bed_respond(Bed *bed, uint8_t op, uint32_t psn, uint32_t at, uint32_t len)
{
    HcaPacket packet = {
        .opcode = op,
        .psn = psn,
        .syndrome = HCA_AETH(HCA_AETH_ACK, HCA_AETH_CREDITS_INVALID),
        .payload_len = len,
    };

    bed_say_packet(bed, &packet, at);
}

void bed_say_placed(Bed *bed, uint32_t psn)
{
    bed_respond(bed, HCA_READ_RESP_ONLY, psn, 0, 0);
}

void bed_atomic_ack(Bed *bed, uint32_t psn, uint64_t value)
{
    HcaPacket packet = {
        .opcode = HCA_ATOMIC_ACK,
        .psn = psn,
        .syndrome = HCA_AETH(HCA_AETH_ACK, HCA_AETH_CREDITS_INVALID),
        .atomic_ack = value,
    };

    bed_say_packet(bed, &packet, 0);
}

/* ---- what comes of it ---- */

void bed_expect_wc(Bed *bed, uint64_t wr_id, uint8_t syndrome)
{
    Wc wc;

    bed_run(bed);
    g_assert_true(cq_poll(bed->cq, &wc));
    g_assert_cmpuint(wc.wr_id, ==, wr_id);
    g_assert_cmphex(wc.syndrome, ==, syndrome);
    g_assert_true(wc.is_send);
}

void bed_expect_done(Bed *bed, uint64_t wr_id)
{
    bed_expect_wc(bed, wr_id, 0);
}

void bed_expect_broken(Bed *bed, uint64_t wr_id, uint8_t syndrome, unsigned n)
{
    bed_expect_wc(bed, wr_id, syndrome);
    for (unsigned i = 1; i <= n; i++) {
        bed_expect_wc(bed, wr_id + i, RDMA_HCA_SYNDROME_WR_FLUSH_ERR);
    }
    bed_expect_none(bed);
    bed_expect_state(bed, RDMA_HCA_QP_STATE_ERR);
    g_assert_cmpint(bed->hqp->deadline[HCA_TIMER_LOSS], ==, INT64_MAX);
    g_assert_cmpint(bed->hqp->deadline[HCA_TIMER_RNR], ==, INT64_MAX);
}

void bed_expect_refused(Bed *bed, uint8_t syndrome, uint8_t vendor_err)
{
    Wc wc;

    bed_run(bed);
    g_assert_true(cq_poll(bed->cq, &wc));
    g_assert_cmphex(wc.syndrome, ==, syndrome);
    g_assert_cmpuint(wc.vendor_err, ==, vendor_err);
    bed_expect_state(bed, RDMA_HCA_QP_STATE_ERR);
    bed_free(bed);
}

void bed_expect_upsn(Bed *bed, uint32_t psn)
{
    g_assert_cmphex(bed->hqp->req.unacked_psn, ==, psn & HCA_PSN_MASK);
}

void bed_expect_timer_off(Bed *bed)
{
    g_assert_cmpint(bed->hqp->deadline[HCA_TIMER_LOSS], ==, INT64_MAX);
    g_assert_cmpint(bed->hqp->deadline[HCA_TIMER_RNR], ==, INT64_MAX);
}

void bed_expect_timer_reset(Bed *bed)
{
    int64_t left = bed->hqp->deadline[HCA_TIMER_LOSS] - bed->pair->lab->now;

    g_assert_cmpint(left, <=, BED_TIMEOUT_NS);
    g_assert_cmpint(left, >, BED_TIMEOUT_NS - 100 * NS_PER_US);
}

void bed_pass_time(Bed *bed)
{
    lab_sleep(bed->pair->lab, NS_PER_MS);
}

void bed_post_from_others(Bed *bed, const QpAttr *attr, Qp **other, unsigned n,
                          const SendWr *wr)
{
    for (unsigned i = 0; i < n; i++) {
        QpConfig config;
        QpAttr own = *attr;

        own.dlid = bed->peer.slid;
        own.dest_qpn = BED_PEER_QPN;
        qp_config_init(&config, bed->pair->pd[0], bed->cq);
        other[i] = qp_new(bed->pair->drv[0], &config);
        g_assert_cmphex(qp_to_init(other[i], &own), ==, 0);
        g_assert_cmphex(qp_to_rtr(other[i], &own), ==, 0);
        g_assert_cmphex(qp_to_rts(other[i], &own), ==, 0);
        g_assert_true(qp_post_send(other[i], wr, 1));
        bed_run(bed);
        bed_expect_request(bed,
                           wr->opcode == RDMA_HCA_OPCODE_RDMA_READ
                               ? HCA_READ_REQUEST
                               : HCA_WRITE_ONLY,
                           BED_PSN);
    }
}
