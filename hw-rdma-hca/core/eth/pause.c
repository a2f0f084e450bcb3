/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flow control of the link by PAUSE frames (IEEE 802.3 annex 31B), each way by
 * itself.
 *
 * As a receiver of them the port stands still, all that it sends: the link has
 * the time. MAC control frames end here, whatever they say (clause 31.5).
 *
 * As a sender the card goes by its receive rings, once in a turn. What is on its
 * way when the peer is told waits in a bounded queue, as in a port's buffer. A
 * ring that nobody refills is given up: it must not stop the segment for ever.
 */
#include <string.h>

#include "../wire/bytes.h"
#include "eth_int.h"

#define MAC_CONTROL 0x8808 /* EtherType */
#define OPCODE_PAUSE 1
#define TYPE_AT 12
#define OPCODE_AT 14
#define TIME_AT 16
#define PAUSE_SIZE 18 /* what of a frame has a meaning */
/* A quantum is 512 bit times. */
#define QUANTA_NS(quanta) ((int64_t)(quanta)*512 / HCA_ETH_GBITS)
#define MOST_QUANTA 0xffff
/* Told to stop, the peer is told again after half of that time. */
#define AGAIN_NS (QUANTA_NS(MOST_QUANTA) / 2)
/* A ring that has not been refilled for so long is given up. */
#define GIVE_UP_NS INT64_C(8000000000)
/* A ring is short below 1/SHORT of its size, until it has more than 1/ENOUGH. */
#define SHORT 8
#define ENOUGH 4
/* Frames that have waited, in a turn. */
#define DELIVER_SHARE 32

static const uint8_t control_group[HCA_ETH_MAC_SIZE] = { 0x01, 0x80, 0xc2,
                                                         0,    0,    1 };

void hca_pause_init(HcaPause *pause)
{
    pause->again_at = INT64_MAX;
}

/* Received */

static bool is_for(const HcaEth *eth, const uint8_t *frame)
{
    const uint8_t *mac = eth->filter.mac;

    return memcmp(frame, control_group, HCA_ETH_MAC_SIZE) == 0 ||
           memcmp(frame, mac, HCA_ETH_MAC_SIZE) == 0;
}

/* A segment may hand a frame back to who sent it. */
static bool is_pause(const HcaEth *eth, const uint8_t *frame, size_t len)
{
    const uint8_t *from = frame + HCA_ETH_MAC_SIZE;

    return len >= PAUSE_SIZE && get_be16(frame + OPCODE_AT) == OPCODE_PAUSE &&
           is_for(eth, frame) &&
           memcmp(from, eth->filter.mac, HCA_ETH_MAC_SIZE) != 0;
}

static void take_pause(HcaEth *eth, uint16_t quanta)
{
    eth->counters.rx_pause++;
    if (!eth->pause.rx) {
        return;
    }
    eth->counters.tx_stopped += quanta && !hca_link_is_paused(eth->hca->link);
    hca_link_pause(eth->hca->link, QUANTA_NS(quanta));
}

bool hca_eth_take_control(HcaEth *eth, const uint8_t *frame, size_t len)
{
    if (get_be16(frame + TYPE_AT) != MAC_CONTROL) {
        return false;
    }
    if (is_pause(eth, frame, len)) {
        take_pause(eth, get_be16(frame + TIME_AT));
    } else {
        eth->counters.rx_control_ignored++;
    }
    return true;
}

/* Sent */

static bool send_pause(HcaEth *eth, uint16_t quanta)
{
    uint8_t frame[HCA_ETH_MIN_FRAME] = { 0 };
    bool sent;

    memcpy(frame, control_group, HCA_ETH_MAC_SIZE);
    memcpy(frame + HCA_ETH_MAC_SIZE, eth->filter.mac, HCA_ETH_MAC_SIZE);
    put_be16(frame + TYPE_AT, MAC_CONTROL);
    put_be16(frame + OPCODE_AT, OPCODE_PAUSE);
    put_be16(frame + TIME_AT, quanta);
    sent = hca_link_send_control(eth->hca->link, frame, sizeof(frame));
    eth->counters.tx_pause += sent;
    return sent;
}

/* Without room on the link it is tried again in the next turn. */
static void stop_peer(HcaEth *eth, int64_t now)
{
    HcaPause *pause = &eth->pause;

    if (!pause->told || now >= pause->again_at) {
        pause->told = send_pause(eth, MOST_QUANTA);
        pause->again_at = now + AGAIN_NS;
    }
}

/* Nor does it matter much if there is none: the peer's time runs out. */
static void release_peer(HcaEth *eth)
{
    HcaPause *pause = &eth->pause;

    pause->told = pause->told && !send_pause(eth, 0);
    pause->again_at = INT64_MAX;
}

/* Frames that wait */

void hca_pause_hold(HcaEth *eth, const uint8_t *frame, size_t len)
{
    HcaPause *pause = &eth->pause;

    if (!hca_loopback_can_put(pause->held)) {
        eth->counters.rx_no_buffer++;
        return;
    }
    memcpy(hca_loopback_open(pause->held), frame, len);
    hca_loopback_close(pause->held, len);
    pause->num_held++;
    eth->counters.rx_waited++;
}

void hca_pause_forget(HcaEth *eth)
{
    HcaPause *pause = &eth->pause;

    eth->counters.rx_no_buffer += pause->num_held;
    pause->num_held = 0;
    pause->first = NULL;
    if (pause->held) {
        hca_loopback_clear(pause->held);
    }
}

/* The oldest one; false: it has to wait. */
static bool deliver_first(HcaEth *eth)
{
    HcaPause *pause = &eth->pause;

    if (!pause->first) {
        pause->first = hca_loopback_get(pause->held, &pause->first_len);
    }
    if (!hca_eth_deliver(eth, pause->first, pause->first_len)) {
        return false;
    }
    pause->first = NULL;
    pause->num_held--;
    return true;
}

/* True: there are more than this turn's share. */
static bool deliver(HcaEth *eth)
{
    for (unsigned n = 0; n < DELIVER_SHARE; n++) {
        if (!eth->pause.num_held || !deliver_first(eth)) {
            return false;
        }
    }
    return eth->pause.num_held;
}

/* Receive rings */

static void become_short(HcaEthRing *ring, int64_t now)
{
    ring->supply = HCA_ETH_SUPPLY_SHORT;
    ring->short_tail = ring->tail;
    ring->short_since = now;
}

static void look_at_short(HcaEth *eth, HcaEthRing *ring, int64_t now)
{
    if (ring->tail != ring->short_tail) {
        become_short(ring, now); /* refilled in part: it has its time again */
    } else if (now - ring->short_since >= GIVE_UP_NS) {
        ring->supply = HCA_ETH_SUPPLY_GIVEN_UP;
        eth->counters.pause_given_up++;
    }
}

/* Whether the peer is to stop for its sake. */
static bool is_short(HcaEth *eth, HcaEthRing *ring, int64_t now)
{
    uint32_t level = hca_eth_ring_level(ring), size = hca_eth_ring_size(ring);

    if (!ring->running || !ring->posted) {
        return false;
    }
    if (level > size / ENOUGH) {
        ring->supply = HCA_ETH_SUPPLY_ENOUGH;
    } else if (ring->supply == HCA_ETH_SUPPLY_SHORT) {
        look_at_short(eth, ring, now);
    } else if (ring->supply == HCA_ETH_SUPPLY_ENOUGH && level < size / SHORT) {
        become_short(ring, now);
    }
    return ring->supply == HCA_ETH_SUPPLY_SHORT;
}

/* Whether one of them is. */
static bool look_at_rings(HcaEth *eth, int64_t now)
{
    bool any = false;

    for (unsigned i = 0; i < HCA_ETH_MAX_QUEUES; i++) {
        any |= is_short(eth, &eth->queue[i].rx, now);
    }
    return any;
}

bool hca_eth_run_pause(HcaEth *eth)
{
    int64_t now;
    bool more;

    if (!eth->pause.tx) {
        return false;
    }
    now = hca_now(eth->hca);
    look_at_rings(eth, now); /* who is given up is not waited for */
    more = deliver(eth);
    if (look_at_rings(eth, now) || more) {
        stop_peer(eth, now);
    } else {
        release_peer(eth);
    }
    return more;
}

/* The command */

static void enable_tx(HcaEth *eth)
{
    eth->pause.held = hca_loopback_new();
    for (unsigned i = 0; i < HCA_ETH_MAX_QUEUES; i++) {
        eth->queue[i].rx.supply = HCA_ETH_SUPPLY_ENOUGH;
    }
}

static void disable_tx(HcaEth *eth)
{
    release_peer(eth);
    hca_pause_forget(eth);
    hca_loopback_free(eth->pause.held);
    eth->pause.held = NULL;
    eth->pause.told = false;
}

void hca_eth_set_pause(HcaEth *eth, bool rx, bool tx)
{
    bool had_tx = eth->pause.tx;

    eth->pause.rx = rx;
    eth->pause.tx = tx;
    if (!rx) {
        hca_link_pause(eth->hca->link, 0);
    }
    if (tx && !had_tx) {
        enable_tx(eth);
    } else if (had_tx && !tx) {
        disable_tx(eth);
    }
}
