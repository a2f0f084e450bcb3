/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A peer that means harm: noise in the stream, forged and cut packets, packets
 * that do not come from the connected peer.
 */
#include <string.h>

#include "../link/framing.h"
#include "lib-noise.h"
#include "lib-scene.h"

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

    scene_init_victim(&s, 1301);
    for (unsigned round = 0; round < 600; round++) {
        uint8_t noise[600];
        size_t len = pair_rand(s.pair, 1, sizeof(noise) / 4) * 4;

        noise_fill(&s, noise, len);
        if (round & 1) {
            hca_frame_write_header(noise, HCA_FRAME_PACKET, round & 15,
                                   noise_odd32(&s));
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
    uint32_t len = pair_rand(s->pair, 0, 3) ? noise32(s) % 1100
                                            : noise32(s) % 4097;
    HcaPacket packet;
    size_t n;

    noise_fill(s, &packet, sizeof(packet));
    packet.vl = 0;
    packet.has_grh = pair_rand(s->pair, 0, 8) == 0;
    packet.dlid = s->pair->lab->host[0].config.lid;
    if (pair_rand(s->pair, 0, 8)) {
        packet.slid = s->pair->lab->host[1].config.lid;
    }
    packet.opcode = noise32(s) % (pair_rand(s->pair, 0, 4) ? 0x1e : 0x100);
    packet.solicited = noise32(s) & 1;
    packet.mig_req = noise32(s) & 1;
    packet.fecn = packet.becn = false;
    packet.ack_req = noise32(s) & 1;
    packet.pkey = pair_rand(s->pair, 0, 8) ? 0xffff : noise_odd32(s);
    packet.dest_qp = pair_rand(s->pair, 0, 8) ? s->victim[0]->qpn
                                              : noise_odd32(s) & 0xffffff;
    if (packet.dest_qp == s->bystander[0]->qpn) {
        packet.dest_qp = s->victim[0]->qpn;
    }
    packet.psn = (0x123456 + noise_odd32(s)) & HCA_PSN_MASK;
    packet.msn &= HCA_PSN_MASK;
    packet.src_qp &= 0xffffff;
    packet.rkey = pair_rand(s->pair, 0, 2) ? s->pair->mr[0]->key
                                           : noise_odd32(s);
    packet.va = pair_rand(s->pair, 0, 2)
                    ? s->pair->mr[0]->va + noise32(s) % 70000
                    : noise_odd32(s);
    packet.dma_len = pair_rand(s->pair, 0, 2) ? len : noise_odd32(s);
    packet.payload = payload;
    packet.payload_len = len;
    n = hca_ib_build(&packet, out);
    memcpy(out + n, payload, len);
    return hca_ib_seal(&packet, out, n + len);
}

static void test_forged_packets(void)
{
    Scene s;

    scene_init_victim(&s, 1302);
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
        scene_revive_victim(&s);
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
    Scene s;
    Wc wc;

    scene_init_victim(&s, 1304);
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
    g_assert_cmpuint(pair_drops(s.pair, 0, HCA_DROP_SOURCE), ==, 1);
    g_assert_cmpuint(pair_drops(s.pair, 0, HCA_DROP_PKEY), ==, 1);
    scene_revive_victim(&s);
    scene_free(&s);
}

/* The peer is not ready, but somebody else says that all has arrived. */
static void test_wrong_acknowledger(void)
{
    SendWr wr;
    Sge sge;
    Scene s;
    Wc wc;

    scene_init_victim(&s, 1305);
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
    scene_revive_victim(&s);
    scene_free(&s);
}

/* A sound packet cut at each byte, with its frame honest about it. */
static void test_cut_packets(void)
{
    Scene s;
    uint8_t packet[HCA_MAX_PACKET_SIZE];

    scene_init_victim(&s, 1303);
    for (unsigned round = 0; round < 12; round++) {
        size_t len = forge(&s, packet);

        len = MIN(len, 200);
        for (size_t n = 1; n <= len; n++) {
            inject_packet(&s, packet, n);
        }
        lab_run(s.pair->lab);
    }
    scene_check(&s);
    scene_revive_victim(&s);
    scene_free(&s);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/bad-wire/stream-noise", test_stream_noise);
    test_add("/bad-wire/forged-packets", test_forged_packets);
    test_add("/bad-wire/wrong-source", test_wrong_source);
    test_add("/bad-wire/wrong-acknowledger", test_wrong_acknowledger);
    test_add("/bad-wire/cut-packets", test_cut_packets);
    return g_test_run();
}
