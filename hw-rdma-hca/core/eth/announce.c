/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a card is that has moved: bridges learn it from a frame of its address. It is
 * a RARP request (RFC 903), as QEMU has it for its own network cards.
 */
#include <string.h>

#include "../wire/bytes.h"
#include "eth_int.h"

#define TYPE_AT 12u
#define TYPE_RARP 0x8035
#define BODY_AT 14u
#define HARDWARE_ETHERNET 1
#define PROTOCOL_IPV4 0x0800
#define REQUEST_REVERSE 3
/* In the body: hardware and protocol addresses of who sends, and of whom it asks for. */
#define SENDER_AT 8u
#define TARGET_AT 18u

bool hca_eth_announce(HcaEth *eth)
{
    const uint8_t *mac = eth->filter.mac;
    uint8_t frame[HCA_ETH_MIN_FRAME] = { 0 };
    uint8_t *body = frame + BODY_AT;

    memset(frame, 0xff, HCA_ETH_MAC_SIZE);
    memcpy(frame + HCA_ETH_MAC_SIZE, mac, HCA_ETH_MAC_SIZE);
    put_be16(frame + TYPE_AT, TYPE_RARP);
    put_be16(body, HARDWARE_ETHERNET);
    put_be16(body + 2, PROTOCOL_IPV4);
    body[4] = HCA_ETH_MAC_SIZE;
    body[5] = 4;
    put_be16(body + 6, REQUEST_REVERSE);
    memcpy(body + SENDER_AT, mac, HCA_ETH_MAC_SIZE);
    memcpy(body + TARGET_AT, mac, HCA_ETH_MAC_SIZE);
    return hca_link_send_control(eth->hca->link, frame, sizeof(frame));
}
