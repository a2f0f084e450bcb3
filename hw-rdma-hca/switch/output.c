/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A packet at the port that it leaves by: whether it may (IBA 18.2.5.1), on
 * which virtual lane, and how long it waits for a cable that takes no more.
 *
 * It is copied once, from the receive buffer of one link into the transmit
 * buffer of another, while that has room. Otherwise it waits in the queue of its
 * lane; and when that is full, where it came from, which reads no more until
 * then: a switch loses nothing for want of room. But a packet that is at the
 * head of a queue for longer than HOQLife is dropped, and so is one that finds
 * no room for as long; after VLStallCount of them in a row all of that lane are
 * for 8 times as long (IBA 18.2.5.4).
 */
#include <string.h>

#include "../core/wire/bytes.h"
#include "../core/wire/crc.h"
#include "switch_int.h"

#define TIME_UNIT 4096 /* ns */
#define NO_LIMIT 20    /* codes from here on */
#define STALL_TIMES 8

/* ns of a code of HOQLife or LifeTimeValue. */
static int64_t time_limit(uint8_t code)
{
    return code >= NO_LIMIT ? INT64_MAX : (int64_t)TIME_UNIT << code;
}

static bool is_over(int64_t since, int64_t limit, int64_t now)
{
    return now - since > limit;
}

static const HcaNodePort *node_port(const SwPort *port)
{
    return &port->sw->node->port[port->number];
}

static int64_t life_time(const SwPort *port)
{
    return time_limit(port->sw->node->switch_info.life_time);
}

static int64_t hoq_life(const SwPort *port)
{
    return time_limit(sw_info(port)->hoq_life);
}

/* Sending */

static void set_vl(uint8_t *packet, size_t len, unsigned vl)
{
    uint16_t vcrc;

    if (packet[0] >> 4 == vl) {
        return;
    }
    packet[0] = vl << 4 | (packet[0] & 0x0f);
    len -= HCA_VCRC_SIZE;
    vcrc = hca_vcrc_update(HCA_VCRC_INIT, packet, len);
    packet[len] = vcrc;
    packet[len + 1] = vcrc >> 8;
}

/* The link has room. */
static void send(SwPort *port, const uint8_t *data, size_t len, unsigned vl)
{
    uint8_t *packet = hca_link_open(port->link, false);

    memcpy(packet, data, len);
    set_vl(packet, len, vl);
    sw_count_tx(port, get_be16(packet + 2), len);
    hca_link_close(port->link, false, vl, len);
}

/* Perhaps after one more write. */
static bool can_send(SwPort *port)
{
    if (hca_link_can_send(port->link, false)) {
        return true;
    }
    if (hca_link_tx_blocked(port->link)) {
        return false;
    }
    hca_link_flush(port->link);
    return hca_link_can_send(port->link, false);
}

static void send_mgmt(SwPort *out, const SwPacket *packet)
{
    if (hca_link_can_send_mgmt(out->link, false)) {
        send(out, packet->data, packet->len, HCA_VL_MGMT);
    } else {
        sw_drop(&out->sw->port[packet->in], SW_DROP_VL15);
    }
}

/* What may leave */

static unsigned mtu_bytes(unsigned code)
{
    return 128u << code;
}

/* The port's table is that of the end node there, which receives. */
static bool pkey_may_leave(const SwPort *out, const SwPacket *packet)
{
    const HcaNodePort *port = node_port(out);

    return !port->info.enforce_out ||
           sw_find_pkey(port, hca_pkey_match,
                        get_be16(sw_packet_bth(packet) + 2));
}

/* Down is no state to send in, but for the answer to who has asked for it. */
static bool state_is_good(const SwPort *out, bool mgmt)
{
    unsigned state = sw_info(out)->state;
    bool closing = out->sw->closing >> out->number & 1;

    return out->trained && (state == HCA_PORT_ACTIVE ||
                            (mgmt && (state != HCA_PORT_DOWN || closing)));
}

static SwDrop judge(const SwPort *out, const SwPacket *packet)
{
    const HcaPortInfo *info = sw_info(out);
    bool mgmt = packet->vl == HCA_VL_MGMT;

    if (!state_is_good(out, mgmt)) {
        return SW_DROP_OUT_STATE;
    }
    if (!mgmt && is_over(packet->arrived, life_time(out), out->sw->now)) {
        return SW_DROP_LIFETIME; /* it has waited where it came in */
    }
    if (packet->len - HCA_VCRC_SIZE > mtu_bytes(info->mtu) + SW_HEADER_ROOM) {
        return SW_DROP_MTU;
    }
    return mgmt || pkey_may_leave(out, packet) ? SW_NO_DROP : SW_DROP_OUT_PKEY;
}

static void refuse(SwPort *out, const SwPacket *packet, SwDrop why)
{
    if (why == SW_DROP_OUT_PKEY) {
        HcaKeyViolation violation = sw_packet_violation(packet);

        hca_node_bad_pkey(out->sw->node, out->number, &violation);
    }
    sw_drop(out, why);
}

/* Queues */

static bool is_stalled(SwQueue *queue, int64_t now)
{
    if (queue->stalled_until && now >= queue->stalled_until) {
        queue->stalled_until = 0;
        queue->hoq_drops = 0;
    }
    return queue->stalled_until != 0;
}

/* False: it is full. */
static bool enqueue(SwPort *out, const SwPacket *packet, unsigned vl)
{
    SwQueue *queue = &out->queue[vl];

    if (!sw_queue_put(queue, packet, out->sw->now)) {
        return false;
    }
    out->waiting |= 1u << vl;
    out->counters.queued++;
    return true;
}

static void dequeue(SwPort *out, unsigned vl)
{
    sw_queue_drop(&out->queue[vl], out->sw->now);
    if (!out->queue[vl].packets) {
        out->waiting &= ~(1u << vl);
    }
}

static void drop_all(SwPort *out, unsigned vl, SwDrop why)
{
    while (out->queue[vl].packets) {
        dequeue(out, vl);
        sw_drop(out, why);
    }
}

/* One more in a row has been at the head for too long. */
static void count_hoq_drop(SwPort *out, unsigned vl, int64_t limit)
{
    SwQueue *queue = &out->queue[vl];
    unsigned most = sw_info(out)->vl_stall_count;

    queue->hoq_drops++;
    if (most && queue->hoq_drops >= most) {
        queue->stalled_until = out->sw->now + STALL_TIMES * limit;
        sw_say(out->sw, "port %u: VL %u is stalled", out->number, vl);
        drop_all(out, vl, SW_DROP_STALLED);
    }
}

/* No room. False: it may still wait; true: it has done so for too long. */
static bool give_up(SwPort *out, const SwPacket *packet, unsigned vl)
{
    int64_t limit = hoq_life(out);

    if (!is_over(packet->arrived, limit, out->sw->now)) {
        return false;
    }
    sw_drop(out, SW_DROP_HOQ);
    count_hoq_drop(out, vl, limit);
    return true;
}

static bool send_data(SwPort *out, const SwPacket *packet)
{
    unsigned vl = hca_node_vl(out->sw->node, packet->in, out->number,
                              packet->sl);

    if (vl >= HCA_NUM_DATA_VLS) {
        sw_drop(&out->sw->port[packet->in], SW_DROP_SL);
        return true;
    }
    if (is_stalled(&out->queue[vl], out->sw->now)) {
        sw_drop(out, SW_DROP_STALLED);
        return true;
    }
    if (!out->waiting && can_send(out)) {
        send(out, packet->data, packet->len, vl);
        return true;
    }
    return enqueue(out, packet, vl) || give_up(out, packet, vl);
}

bool sw_output(SwPort *out, const SwPacket *packet)
{
    SwDrop why = judge(out, packet);

    if (why != SW_NO_DROP) {
        refuse(out, packet, why);
        return true;
    }
    if (packet->vl == HCA_VL_MGMT) {
        send_mgmt(out, packet);
        return true;
    }
    return send_data(out, packet);
}

/* Time */

/* Drop the oldest packet of a lane if its time is over; false: it is not. */
static bool expire_one(SwPort *out, unsigned vl)
{
    int64_t now = out->sw->now;
    int64_t hoq = hoq_life(out);
    SwQueue *queue = &out->queue[vl];
    SwQueued oldest;

    if (!sw_queue_peek(queue, &oldest)) {
        return false;
    }
    if (is_over(oldest.arrived, life_time(out), now)) {
        dequeue(out, vl);
        sw_drop(out, SW_DROP_LIFETIME);
        return true;
    }
    if (is_over(queue->head_since, hoq, now)) {
        dequeue(out, vl);
        sw_drop(out, SW_DROP_HOQ);
        count_hoq_drop(out, vl, hoq);
        return true;
    }
    return false;
}

static void expire(SwPort *out)
{
    for (uint16_t vls = out->waiting; vls; vls &= vls - 1) {
        while (expire_one(out, __builtin_ctz(vls))) {
            /* and the one behind it */
        }
    }
}

static int64_t add_time(int64_t since, int64_t limit)
{
    return limit == INT64_MAX ? INT64_MAX : since + limit + 1;
}

int64_t sw_output_patience(const SwPort *out, int64_t since)
{
    return add_time(since, hoq_life(out));
}

int64_t sw_output_deadline(const SwPort *out)
{
    int64_t first = INT64_MAX;

    for (uint16_t vls = out->waiting; vls; vls &= vls - 1) {
        const SwQueue *queue = &out->queue[__builtin_ctz(vls)];
        SwQueued oldest;

        sw_queue_peek(queue, &oldest);
        first = MIN(first, add_time(queue->head_since, hoq_life(out)));
        first = MIN(first, add_time(oldest.arrived, life_time(out)));
    }
    return first;
}

/* A turn */

static void send_next(SwPort *out)
{
    SwQueued oldest;
    unsigned vl, left;

    vl = hca_vl_arbiter_next(&out->arbiter, node_port(out), out->waiting,
                             &left);
    sw_queue_peek(&out->queue[vl], &oldest);
    hca_vl_arbiter_sent(&out->arbiter, oldest.len);
    send(out, oldest.data, oldest.len, vl);
    out->queue[vl].hoq_drops = 0;
    dequeue(out, vl);
}

void sw_output_run(SwPort *out)
{
    expire(out);
    while (out->waiting && can_send(out)) {
        send_next(out);
    }
    /* Not each turn again while the cable takes nothing: it will tell. */
    if (!hca_link_tx_blocked(out->link)) {
        hca_link_flush(out->link);
    }
}

void sw_output_lose(SwPort *out)
{
    for (unsigned vl = 0; vl < HCA_NUM_DATA_VLS; vl++) {
        drop_all(out, vl, SW_DROP_LINK_LOST);
        sw_queue_clear(&out->queue[vl]);
    }
}
