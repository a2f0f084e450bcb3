/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets in words, as far as their first bytes say it. */
#include "../front/packet_text.h"
#include "../wire/bytes.h"
#include "lib-test.h"

typedef struct PacketText {
    const HcaEncap *encap;
    uint8_t bytes[48];
    unsigned kept;
    const char *text;
} PacketText;

static const PacketText packet_texts[] = {
    { &hca_encap_ib,
      { [1] = 2, 0, 7, [7] = 9, HCA_SEND_ONLY, [15] = 5, 0x80, 0, 1, 2 },
      20,
      "dqpn 0x5 RC_SEND_ONLY psn 0x102 ackreq lid 9 > 7 length 100" },
    /* A service or an operation that is none. */
    { &hca_encap_ib,
      { [1] = 2, [8] = 0xff },
      20,
      "dqpn 0x0 opcode 0xff psn 0x0 lid 0 > 0 length 100" },
    { &hca_encap_ib,
      { [1] = 2, [8] = 0x1f },
      20,
      "dqpn 0x0 opcode 0x1f psn 0x0 lid 0 > 0 length 100" },
    /* Headers that are not known to their end. */
    { &hca_encap_ib,
      { [1] = 2, [8] = HCA_ACK, [20] = 0x60 },
      23,
      "dqpn 0x0 RC_ACK psn 0x0 lid 0 > 0 length 100" },
    { &hca_encap_ib,
      { [1] = 2, [8] = HCA_ACK, [20] = 0x61, 0, 0, 3 },
      24,
      "dqpn 0x0 RC_ACK psn 0x0 nak 0x61 msn 0x3 lid 0 > 0 length 100" },
    { &hca_encap_ib,
      { [1] = 2, [8] = HCA_ACK, [20] = 0x40, 0, 0, 3 },
      24,
      "dqpn 0x0 RC_ACK psn 0x0 aeth 0x40 msn 0x3 lid 0 > 0 length 100" },
    { &hca_encap_ib,
      { [1] = 2 },
      19,
      "no transport header lid 0 > 0 length 100" },
    { &hca_encap_ib,
      { [1] = 0 },
      40,
      "no transport header lid 0 > 0 length 100" },
    { &hca_encap_ib, { 0 }, 7, "no transport header length 100" },
    { &hca_encap_roce, { [12] = 0x08, 6 }, 40, "ethertype 0x0806 length 100" },
    { &hca_encap_roce, { 0 }, 13, "no transport header length 100" },
};

static void test_packet_text(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(packet_texts); i++) {
        const PacketText *row = &packet_texts[i];
        /* So that nothing behind them is read. */
        g_autofree uint8_t *bytes = g_memdup2(row->bytes, row->kept);
        GString *text = g_string_new(NULL);

        hca_packet_text(text, row->encap, bytes, row->kept, 100);
        g_assert_cmpstr(text->str, ==, row->text);
        g_string_free(text, TRUE);
    }
}

/* Of congestion, in each version of IP. */
static void test_cnp_text(void)
{
    static const uint8_t versions[] = { 4, 6 };

    for (unsigned i = 0; i < G_N_ELEMENTS(versions); i++) {
        uint8_t frame[14 + 40 + 8 + HCA_BTH_SIZE] = { 0 };
        bool ipv6 = versions[i] == 6;
        uint8_t *ip = frame + 14, *udp = ip + (ipv6 ? 40 : 20);
        size_t len = udp + 8 + HCA_BTH_SIZE - frame;
        GString *text = g_string_new(NULL);

        put_be16(frame + 12, ipv6 ? 0x86dd : 0x0800);
        ip[0] = ipv6 ? 0x60 : 0x45;
        ip[ipv6 ? 6 : 9] = 17;
        put_be16(ip + (ipv6 ? 4 : 2), frame + len - (ipv6 ? udp : ip));
        put_be16(udp + 2, 4791);
        put_be16(udp + 4, 8 + HCA_BTH_SIZE);
        udp[8] = HCA_BTH_CNP;
        udp[8 + 7] = 6;
        hca_packet_text(text, &hca_encap_roce, frame, len, 100);
        g_assert_cmpstr(text->str, ==, "dqpn 0x6 CNP psn 0x0 length 100");
        g_string_free(text, TRUE);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/packet-text/first-bytes", test_packet_text);
    test_add("/packet-text/cnp", test_cnp_text);
    return g_test_run();
}
