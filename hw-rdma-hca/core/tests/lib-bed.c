/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-bed.h"

#include <string.h>

#include "../port/frame_encap.h"

static CableFate listen(void *opaque, unsigned from, uint8_t *frame, size_t len)
{
    Bed *bed = opaque;

    if (from == 0) {
        BedRequest *request = g_new0(BedRequest, 1);

        g_assert_cmpint(hca_ib_parse(&request->packet, frame, len), ==,
                        HCA_PARSE_OK);
        memcpy(request->data, request->packet.payload,
               request->packet.payload_len);
        request->time = bed->pair->lab->now;
        g_queue_push_tail(&bed->requests, request);
        return CABLE_DROP;
    }
    return CABLE_DELIVER;
}

void bed_attr_init(QpAttr *attr)
{
    qp_attr_init(attr);
    attr->mtu = 1;
    attr->sq_psn = BED_PSN;
    attr->timeout = BED_TIMEOUT;
    attr->retry_cnt = 3;
    attr->rnr_retry = 3;
}

static void make_qp(Bed *bed, const QpAttr *attr)
{
    QpAttr own = *attr;
    QpConfig config;

    qp_config_init(&config, bed->pair->pd[0], bed->cq);
    config.service = bed->service;
    bed->qp = qp_new(bed->pair->drv[0], &config);
    own.dlid = bed->peer_hca->config.lid;
    own.dest_qpn = BED_PEER_QPN;
    g_assert_cmphex(qp_to_init(bed->qp, &own), ==, 0);
    g_assert_cmphex(qp_to_rtr(bed->qp, &own), ==, 0);
    g_assert_cmphex(qp_to_rts(bed->qp, &own), ==, 0);
    bed->hqp = hca_qp_find(bed->hca->cm, bed->qp->qpn);
}

Bed *bed_new_with(uint8_t service, const QpAttr *attr, const HcaConfig *config)
{
    Bed *bed = g_new0(Bed, 1);

    bed->pair = pair_new_with(61, BED_AREA, config, listen, bed);
    bed->hca = bed->pair->lab->host[0].hca;
    bed->peer_hca = bed->pair->lab->host[1].hca;
    bed->mr = bed->pair->mr[0];
    bed->cq = bed->pair->cq[0];
    bed->service = service;
    bed->peer_hca->port->pkeys[0] = HCA_DEFAULT_PKEY;
    bed->peer.attr.path.dlid = bed->hca->config.lid;
    for (unsigned i = 0; i < BED_AREA; i++) {
        uint8_t byte = g_rand_int(bed->pair->lab->rand);

        bed->data[i] = g_rand_int(bed->pair->lab->rand);
        mr_write(bed->mr, i, &byte, 1);
    }
    make_qp(bed, attr);
    return bed;
}

Bed *bed_new(void)
{
    QpAttr attr;

    bed_attr_init(&attr);
    return bed_new_with(RDMA_HCA_QP_ST_RC, &attr, NULL);
}

Bed *bed_new_service(uint8_t service)
{
    QpAttr attr;

    bed_attr_init(&attr);
    if (service == RDMA_HCA_QP_ST_UD) {
        attr.mtu = 5;
    }
    return bed_new_with(service, &attr, NULL);
}

void bed_run(Bed *bed)
{
    lab_run(bed->pair->lab);
}

void bed_free(Bed *bed)
{
    Wc wc;

    bed_run(bed);
    g_assert_cmpuint(bed->requests.length, ==, 0);
    g_assert_false(cq_poll(bed->cq, &wc));
    pair_free(bed->pair);
    g_free(bed);
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
    UdAddress ud = { .dlid = bed->peer_hca->config.lid,
                     .dqpn = BED_PEER_QPN,
                     .qkey = BED_QKEY };
    Sge sge;
    SendWr wr = bed_wr(bed, &sge, RDMA_HCA_OPCODE_SEND, wr_id, len);

    wr.ud = &ud;
    bed_post_wr(bed, &wr);
}

/* ---- what the requester sends ---- */

BedRequest *bed_next_request(Bed *bed, uint8_t op, uint32_t psn)
{
    static const uint8_t bth_service[] = {
        [RDMA_HCA_QP_ST_RC] = HCA_BTH_RC,
        [RDMA_HCA_QP_ST_UC] = HCA_BTH_UC,
        [RDMA_HCA_QP_ST_UD] = HCA_BTH_UD,
    };
    BedRequest *request = g_queue_pop_head(&bed->requests);

    g_assert_nonnull(request);
    g_assert_cmphex(request->packet.opcode, ==,
                    bth_service[bed->service] << 5 | op);
    g_assert_cmphex(request->packet.psn, ==, psn & HCA_PSN_MASK);
    g_assert_cmphex(request->packet.dest_qp, ==, BED_PEER_QPN);
    return request;
}

void bed_expect_request(Bed *bed, uint8_t op, uint32_t psn)
{
    g_free(bed_next_request(bed, op, psn));
}

void bed_expect_payload(Bed *bed, uint8_t op, uint32_t psn, uint32_t at,
                        uint32_t len)
{
    g_autofree BedRequest *request = bed_next_request(bed, op, psn);
    g_autofree uint8_t *want = g_malloc(len + 1);

    mr_read(bed->mr, at, want, len);
    g_assert_cmpmem(request->data, request->packet.payload_len, want, len);
}

void bed_expect_read(Bed *bed, uint32_t psn, uint32_t offset, uint32_t len)
{
    g_autofree BedRequest *request = bed_next_request(bed, HCA_READ_REQUEST,
                                                      psn);

    g_assert_cmphex(request->packet.va, ==, BED_RADDR + offset);
    g_assert_cmphex(request->packet.rkey, ==, BED_RKEY);
    g_assert_cmpuint(request->packet.dma_len, ==, len);
}

void bed_expect_quiet(Bed *bed)
{
    bed_run(bed);
    g_assert_cmpuint(bed->requests.length, ==, 0);
}

void bed_forget_requests(Bed *bed)
{
    bed_run(bed);
    g_queue_clear_full(&bed->requests, g_free);
}

/* ---- what the peer says ---- */

void bed_say_packet(Bed *bed, HcaPacket *packet, uint32_t at)
{
    struct iovec iov = { bed->data + at, packet->payload_len };

    packet->dest_qp = bed->qp->qpn;
    packet->psn &= HCA_PSN_MASK;
    hca_frame_send(bed->peer_hca->port, &bed->peer, &bed->peer.attr.path,
                   packet, &iov, packet->payload_len ? 1 : 0);
    bed->pair->lab->host[1].kicked = true;
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

void bed_expect_none(Bed *bed)
{
    Wc wc;

    bed_run(bed);
    g_assert_false(cq_poll(bed->cq, &wc));
}

void bed_expect_state(Bed *bed, unsigned state)
{
    g_assert_cmpuint(qp_state(bed->qp), ==, state);
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

void bed_expect_drops(Bed *bed, HcaDropReason reason, uint64_t n)
{
    g_assert_cmpuint(hca_port_counters(bed->hca->port)->drops[reason], ==, n);
}
