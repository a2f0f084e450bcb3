/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-responder.h"

#define MTU BED_MTU

Bed *resp_new_service(uint8_t service)
{
    BedConfig config = bed_responder(service);

    return bed_new_as(&config);
}

Bed *resp_new(void)
{
    return resp_new_service(RDMA_HCA_QP_ST_RC);
}

HcaPacket request_make(Bed *bed, uint8_t op, uint32_t len)
{
    static const uint8_t bth_service[] = {
        [RDMA_HCA_QP_ST_RC] = HCA_BTH_RC,
        [RDMA_HCA_QP_ST_UC] = HCA_BTH_UC,
        [RDMA_HCA_QP_ST_UD] = HCA_BTH_UD,
    };

    return (HcaPacket) {
        .opcode = bth_service[bed->service] << 5 | op,
        .ack_req = true,
        .dest_qp = bed->qp->qpn,
        .psn = bed->psn,
        .qkey = 0x11111111,
        .src_qp = 0x4321,
        .rkey = bed->mr->key,
        .va = bed->mr->va,
        .dma_len = len,
        .payload_len = len,
        .imm_be = 0x44332211,
    };
}

HcaPacket request_make_read(Bed *bed, uint32_t offset, uint32_t len)
{
    HcaPacket packet = request_make(bed, HCA_READ_REQUEST, len);

    packet.payload_len = 0;
    packet.va += offset;
    return packet;
}

HcaPacket request_make_atomic(Bed *bed, uint8_t op)
{
    HcaPacket packet = request_make(bed, op, 0);

    packet.va = (packet.va + 7) & ~UINT64_C(7);
    return packet;
}

void request_put(Bed *bed, HcaPacket *packet, uint32_t at)
{
    bed_put(bed, packet, at);
    lab_run(bed->lab);
}

void request_send_at(Bed *bed, uint8_t op, uint32_t at, uint32_t len)
{
    HcaPacket packet = request_make(bed, op, len);

    request_put(bed, &packet, at);
    bed->psn = hca_psn_add(bed->psn, 1);
}

void request_send(Bed *bed, uint8_t op, uint32_t len)
{
    request_send_at(bed, op, 0, len);
}

void request_give(Bed *bed, HcaPacket *packet, uint32_t at)
{
    packet->slid = bed->peer.slid;
    packet->pkey = HCA_DEFAULT_PKEY;
    packet->payload = bed->data + at;
    hca_responder_receive(bed->hca, bed->hqp, packet);
    bed->psn = hca_psn_add(packet->psn, 1);
}

void resp_run(Bed *bed)
{
    bed->lab->host[1].kicked = true;
    lab_run(bed->lab);
}

void resp_expect_ack(Bed *bed, uint32_t psn, uint32_t msn)
{
    g_autofree BedPacket *answer = bed_next(bed, HCA_ACK, psn);

    g_assert_cmphex(HCA_AETH_KIND(answer->packet.syndrome), ==, HCA_AETH_ACK);
    g_assert_cmphex(answer->packet.msn, ==, msn);
}

void resp_expect_placed(Bed *bed, uint32_t psn, uint32_t msn)
{
    resp_expect_read(bed, psn, 0, 0, msn);
}

void resp_expect_nak(Bed *bed, uint32_t psn, uint8_t syndrome)
{
    g_autofree BedPacket *answer = bed_next(bed, HCA_ACK, psn);

    g_assert_cmphex(answer->packet.syndrome, ==, syndrome);
}

void resp_expect_read(Bed *bed, uint32_t psn, uint32_t offset, uint32_t len,
                      uint32_t msn)
{
    g_autofree uint8_t *want = g_malloc(len + 1);
    uint32_t done = 0;

    mr_read(bed->mr, offset, want, len);
    do {
        uint32_t n = MIN(len - done, MTU);
        bool last = done + n == len;
        uint8_t op = last ? HCA_READ_RESP_LAST : HCA_READ_RESP_MIDDLE;
        g_autofree BedPacket *answer = NULL;

        if (!done) {
            op = last ? HCA_READ_RESP_ONLY : HCA_READ_RESP_FIRST;
        }
        answer = bed_next(bed, op, psn);
        g_assert_cmpmem(answer->data, answer->packet.payload_len, want + done,
                        n);
        if (op != HCA_READ_RESP_MIDDLE) {
            g_assert_cmphex(answer->packet.msn, ==, msn);
        }
        psn = hca_psn_add(psn, 1);
        done += n;
    } while (done < len);
}

void resp_expect_broken(Bed *bed, uint8_t event)
{
    static const uint8_t events[] = {
        RDMA_HCA_EVENT_WQ_CATAS_ERROR,
        RDMA_HCA_EVENT_WQ_INVAL_REQ_ERROR,
        RDMA_HCA_EVENT_WQ_ACCESS_ERROR,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(events); i++) {
        struct rdma_hca_eqe eqe;

        if (events[i] == event) {
            g_assert_true(driver_event(bed->drv[1], event, &eqe));
            g_assert_cmphex(GUINT32_FROM_LE(eqe.qp.qpn), ==, bed->qp->qpn);
        }
        g_assert_cmpuint(driver_count_events(bed->drv[1], events[i]), ==, 0);
    }
    g_assert_cmpuint(bed->hqp->state, ==, RDMA_HCA_QP_STATE_ERR);
}

void resp_post_recv(Bed *bed, uint64_t wr_id, uint64_t at, uint32_t len)
{
    pair_post_recv(bed->pair, 1, bed->qp, wr_id, at, len);
}

void resp_expect_recv(Bed *bed, uint64_t wr_id, uint8_t opcode,
                      uint32_t byte_len)
{
    Wc wc;

    cq_expect(bed->cq, &wc, wr_id, 0);
    g_assert_false(wc.is_send);
    g_assert_cmphex(wc.opcode, ==, opcode);
    g_assert_cmpuint(wc.byte_len, ==, byte_len);
    g_assert_cmphex(wc.qpn, ==, bed->qp->qpn);
    g_assert_cmphex(wc.rlid, ==, bed->peer.slid);
}

void resp_expect_recv_error(Bed *bed, uint64_t wr_id, uint8_t syndrome)
{
    Wc wc;

    cq_expect(bed->cq, &wc, wr_id, syndrome);
    g_assert_cmphex(wc.opcode, ==, RDMA_HCA_OPCODE_INVALID);
}

uint64_t resp_atomic_word(Bed *bed)
{
    uint64_t value;

    mr_read(bed->mr, -bed->mr->va & 7, &value, sizeof(value));
    return GUINT64_FROM_LE(value);
}

void resp_expect_atomic(Bed *bed, uint32_t psn, uint64_t old, uint32_t msn)
{
    g_autofree BedPacket *answer = bed_next(bed, HCA_ATOMIC_ACK, psn);

    g_assert_cmphex(answer->packet.atomic_ack, ==, old);
    g_assert_cmphex(answer->packet.msn, ==, msn);
}

void request_give_op(Bed *bed, uint8_t op, uint32_t len)
{
    HcaPacket packet = request_make(bed, op, len);

    request_give(bed, &packet, 0);
}

uint32_t resp_waiting(const Bed *bed)
{
    return bed->hqp->resp.ring_tail - bed->hqp->resp.ring_head;
}
