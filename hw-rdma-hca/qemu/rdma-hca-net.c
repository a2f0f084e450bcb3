/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A cable that is a netdev. See rdma-hca-net.h.
 */
#include "qemu/osdep.h"
#include "../core/link/framing.h"
#include "qemu/iov.h"
#include "qemu/lockable.h"
#include "qemu/main-loop.h"
#include "qemu/rcu.h"
#include "rdma-hca-cable.h"
#include "rdma-hca-net.h"
#include "rdma-hca-ring.h"
#include "trace.h"

/* Frames that one run of a bottom half sends. */
#define SEND_BUDGET 256
/* What is left of a frame that is too long. */
#define STUMP_SIZE 14

struct RdmaHcaNet {
    RdmaHcaCable cable; /* what it is a kind of */
    struct rcu_head rcu;

    /* The main loop's. */
    NICState *nic;
    bool queued; /* a frame waits in the netdev's queue */
    QEMUBH *send_bh;
    QEMUBH *room_bh;

    /* Shared. */
    RdmaHcaRing tx; /* the card writes, the main loop reads */
    RdmaHcaRing rx;
    bool tx_kicked; /* atomic: send_bh is going to look */
    bool rx_kicked; /* atomic: readable_bh is */
    bool carrier;   /* atomic; set in the main loop */

    /* The card's. */
    QEMUBH *readable_bh;
    QEMUBH *writable_bh;
    QEMUBH *carrier_bh;
    bool started; /* the main loop reads it, with the BQL */
    bool up;      /* as last told */
};

/*
 * One wake-up for many frames: after putting one into a ring, net_kick(); the
 * bottom half says net_kicked() before it looks.
 */
static void net_kick(bool *kicked, QEMUBH *bh)
{
    if (!qatomic_xchg(kicked, true)) {
        qemu_bh_schedule(bh);
    }
}

static void net_kicked(bool *kicked)
{
    qatomic_set(kicked, false);
    smp_mb();
}

/* ---- the card's thread ---- */

static void net_readable_bh(void *opaque)
{
    RdmaHcaNet *net = opaque;

    QEMU_LOCK_GUARD(net->cable.lock);
    net_kicked(&net->rx_kicked);
    if (net->started && net->up) {
        net->cable.events->readable(net->cable.opaque);
    }
}

static void net_writable_bh(void *opaque)
{
    RdmaHcaNet *net = opaque;

    QEMU_LOCK_GUARD(net->cable.lock);
    if (net->started && net->up) {
        net->cable.events->writable(net->cable.opaque);
    }
}

static void net_make_room(RdmaHcaNet *net)
{
    if (rdma_hca_ring_unstarve(&net->rx)) {
        qemu_bh_schedule(net->room_bh);
    }
}

static void net_carrier_bh(void *opaque)
{
    RdmaHcaNet *net = opaque;
    bool carrier = qatomic_read(&net->carrier);

    QEMU_LOCK_GUARD(net->cable.lock);
    if (!net->started || net->up == carrier) {
        return;
    }
    net->up = carrier;
    if (carrier) {
        net->cable.events->up(net->cable.opaque);
    } else {
        rdma_hca_ring_discard(&net->rx);
        net_make_room(net);
        net->cable.events->down(net->cable.opaque);
    }
}

static void net_start(RdmaHcaCable *cable)
{
    RdmaHcaNet *net = RDMA_HCA_NET(cable);

    net->started = true;
    qemu_bh_schedule(net->carrier_bh);
    /* What was waited for may have come: let all sides look. */
    net_kick(&net->rx_kicked, net->readable_bh);
    qemu_bh_schedule(net->writable_bh);
    qemu_bh_schedule(net->send_bh);
    qemu_bh_schedule(net->room_bh);
}

static void net_stop(RdmaHcaCable *cable)
{
    RDMA_HCA_NET(cable)->started = false;
}

static void net_close(RdmaHcaCable *cable)
{
    RdmaHcaNet *net = RDMA_HCA_NET(cable);

    net->up = false;
    qemu_bh_delete(g_steal_pointer(&net->readable_bh));
    qemu_bh_delete(g_steal_pointer(&net->writable_bh));
    qemu_bh_delete(g_steal_pointer(&net->carrier_bh));
}

/* The frame at @offset, as far as its header tells; false: no room for it. */
static bool net_put_frame(RdmaHcaNet *net, const struct iovec *iov, int iovcnt,
                          size_t offset, size_t *len)
{
    uint8_t header[HCA_FRAME_HEADER_SIZE];
    uint8_t *record;

    iov_to_buf(iov, iovcnt, offset, header, sizeof(header));
    *len = sizeof(header) + ldl_be_p(header + 4);
    record = rdma_hca_ring_reserve(&net->tx, *len);
    if (!record) {
        return false;
    }
    iov_to_buf(iov, iovcnt, offset, record, *len);
    rdma_hca_ring_commit(&net->tx, *len);
    return true;
}

/* The card writes whole frames, of lengths that a link has. */
static ssize_t net_writev(RdmaHcaCable *cable, const struct iovec *iov,
                          int iovcnt)
{
    RdmaHcaNet *net = RDMA_HCA_NET(cable);
    size_t total = iov_size(iov, iovcnt);
    size_t done = 0, len;

    if (!net->up) {
        return -EPIPE;
    }
    while (done < total && net_put_frame(net, iov, iovcnt, done, &len)) {
        done += len;
    }
    if (!done) {
        return -EAGAIN;
    }
    net_kick(&net->tx_kicked, net->send_bh);
    return done;
}

static ssize_t net_readv(RdmaHcaCable *cable, const struct iovec *iov,
                         int iovcnt)
{
    RdmaHcaNet *net = RDMA_HCA_NET(cable);
    size_t room = iov_size(iov, iovcnt);
    size_t done = 0;
    const uint8_t *record;
    uint32_t len;

    if (!net->up) {
        return -EPIPE;
    }
    while ((record = rdma_hca_ring_peek(&net->rx, &len)) &&
           len <= room - done) {
        iov_from_buf(iov, iovcnt, done, record, len);
        done += len;
        rdma_hca_ring_release(&net->rx);
    }
    net_make_room(net);
    if (record) {
        /* The card may not ask for more by itself. */
        net_kick(&net->rx_kicked, net->readable_bh);
    }
    return done ? done : -EAGAIN;
}

/*
 * The card was reset: frames of before it, both ways. What the netdev has
 * taken is on its way.
 */
static void net_forget(RdmaHcaCable *cable)
{
    RdmaHcaNet *net = RDMA_HCA_NET(cable);

    rdma_hca_ring_forget(&net->tx);
    net_kick(&net->tx_kicked, net->send_bh);
    rdma_hca_ring_discard(&net->rx);
    net_make_room(net);
}

/*
 * ---- the main loop: from the card to the netdev ----
 *
 * What a frame leads to at the other NICs of a hub may end with this card
 * unplugged: after a frame nothing but the struct and its rings is sure to be
 * there.
 */

static void net_schedule(QEMUBH *bh)
{
    if (bh) {
        qemu_bh_schedule(bh);
    }
}

static void net_sent(NetClientState *nc, ssize_t len)
{
    RdmaHcaNet *net = qemu_get_nic_opaque(nc);

    net->queued = false;
    net_schedule(net->send_bh);
}

/* False if nothing (more) can be sent now. */
static bool net_send_frame(RdmaHcaNet *net)
{
    const uint8_t *record;
    uint32_t len;

    if (!net->started || net->queued) {
        return false;
    }
    record = rdma_hca_ring_peek(&net->tx, &len);
    if (!record) {
        return false;
    }
    /* 0: the netdev has taken a copy, and no more until net_sent(). */
    net->queued = !qemu_send_packet_async(
        qemu_get_queue(net->nic), record + HCA_FRAME_HEADER_SIZE,
        len - HCA_FRAME_HEADER_SIZE, net_sent);
    rdma_hca_ring_release(&net->tx);
    if (net->queued && net->started) {
        trace_rdma_hca_net_tx_full(qemu_get_queue(net->nic)->name);
    }
    return true;
}

static void net_send_bh(void *opaque)
{
    RdmaHcaNet *net = opaque;
    unsigned n = 0;

    net_kicked(&net->tx_kicked);
    while (n < SEND_BUDGET && net_send_frame(net)) {
        n++;
    }
    if (n == SEND_BUDGET) {
        net_schedule(net->send_bh);
    }
    if (rdma_hca_ring_unstarve(&net->tx)) {
        net_schedule(net->writable_bh);
    }
}

/* ---- the main loop: from the netdev to the card ---- */

static void net_room_bh(void *opaque)
{
    RdmaHcaNet *net = opaque;

    qemu_flush_queued_packets(qemu_get_queue(net->nic));
}

static bool net_can_receive(NetClientState *nc)
{
    RdmaHcaNet *net = qemu_get_nic_opaque(nc);

    return net->started;
}

/*
 * A frame that is longer than any the card takes is cut off and marked, as on
 * a real link; the card counts it.
 */
static bool net_store(RdmaHcaNet *net, const uint8_t *frame, size_t size)
{
    bool too_long = size > HCA_FRAME_MAX_PACKET;
    size_t len = too_long ? STUMP_SIZE : size;
    uint8_t *record = rdma_hca_ring_reserve(&net->rx,
                                            HCA_FRAME_HEADER_SIZE + len);

    if (!record) {
        return false;
    }
    hca_frame_write_header(record, HCA_FRAME_PACKET, 0, len);
    if (too_long) {
        record[0] |= HCA_FRAME_ERROR;
    }
    memcpy(record + HCA_FRAME_HEADER_SIZE, frame, len);
    rdma_hca_ring_commit(&net->rx, HCA_FRAME_HEADER_SIZE + len);
    return true;
}

static ssize_t net_receive(NetClientState *nc, const uint8_t *frame,
                           size_t size)
{
    RdmaHcaNet *net = qemu_get_nic_opaque(nc);

    /* 0 would mean that there is no room for it. */
    if (!size) {
        return -1;
    }
    /* A card that is not there, or does not listen, hears nothing. */
    if (!net->started || !qatomic_read(&net->carrier)) {
        return size;
    }
    if (!net_store(net, frame, size)) {
        trace_rdma_hca_net_rx_full(nc->name);
        return 0; /* net_room_bh() asks for it again */
    }
    net_kick(&net->rx_kicked, net->readable_bh);
    return size;
}

/* ---- the main loop: state ---- */

static void net_link_status_changed(NetClientState *nc)
{
    RdmaHcaNet *net = qemu_get_nic_opaque(nc);

    qatomic_set(&net->carrier, nc->peer && !nc->link_down);
    trace_rdma_hca_net_carrier(nc->name, net->carrier);
    net_schedule(net->carrier_bh);
}

static NetClientInfo net_info = {
    .type = NET_CLIENT_DRIVER_NIC,
    .size = sizeof(NICState),
    .can_receive = net_can_receive,
    .receive = net_receive,
    .link_status_changed = net_link_status_changed,
};

RdmaHcaNet *rdma_hca_net_new(DeviceState *dev, NICConf *conf)
{
    RdmaHcaNet *net = RDMA_HCA_NET(object_new(TYPE_RDMA_HCA_NET));
    NetClientState *nc;

    net->send_bh = qemu_bh_new_guarded(net_send_bh, net,
                                       &dev->mem_reentrancy_guard);
    net->room_bh = qemu_bh_new(net_room_bh, net);
    net->nic = qemu_new_nic(&net_info, conf, object_get_typename(OBJECT(dev)),
                            dev->id, &dev->mem_reentrancy_guard, net);
    nc = qemu_get_queue(net->nic);
    qemu_format_nic_info_str(nc, conf->macaddr.a);
    net_link_status_changed(nc);
    return net;
}

static void net_reclaim(struct rcu_head *rcu)
{
    object_unref(OBJECT(container_of(rcu, RdmaHcaNet, rcu)));
}

void rdma_hca_net_free(RdmaHcaNet *net)
{
    qemu_bh_delete(g_steal_pointer(&net->send_bh));
    qemu_bh_delete(g_steal_pointer(&net->room_bh));
    /* The netdev must not call net_sent() for a NIC that is gone. */
    qemu_purge_queued_packets(qemu_get_queue(net->nic));
    qemu_del_nic(net->nic);
    /* Not before whoever holds the BQL now, maybe net_send_bh(), is done. */
    call_rcu1(&net->rcu, net_reclaim);
}

static HcaCableProtocol net_protocol(const RdmaHcaCable *cable)
{
    return HCA_CABLE_SEGMENT;
}

static void net_plug(RdmaHcaCable *cable)
{
    RdmaHcaNet *net = RDMA_HCA_NET(cable);

    net->readable_bh = aio_bh_new(cable->ctx, net_readable_bh, net);
    net->writable_bh = aio_bh_new(cable->ctx, net_writable_bh, net);
    net->carrier_bh = aio_bh_new(cable->ctx, net_carrier_bh, net);
}

/* ---- the object ---- */

static void net_init(Object *obj)
{
    RdmaHcaNet *net = RDMA_HCA_NET(obj);

    rdma_hca_ring_init(&net->tx);
    rdma_hca_ring_init(&net->rx);
}

static void net_finalize(Object *obj)
{
    RdmaHcaNet *net = RDMA_HCA_NET(obj);

    rdma_hca_ring_destroy(&net->tx);
    rdma_hca_ring_destroy(&net->rx);
}

static void net_class_init(ObjectClass *klass, RDMA_HCA_CLASS_DATA *data)
{
    RdmaHcaCableClass *cc = RDMA_HCA_CABLE_CLASS(klass);

    cc->protocol = net_protocol;
    cc->plug = net_plug;
    cc->start = net_start;
    cc->stop = net_stop;
    cc->close = net_close;
    cc->writev = net_writev;
    cc->readv = net_readv;
    cc->forget = net_forget;
}

static const TypeInfo net_types[] = {
    {
        .name = TYPE_RDMA_HCA_NET,
        .parent = TYPE_RDMA_HCA_CABLE,
        .instance_size = sizeof(RdmaHcaNet),
        .instance_init = net_init,
        .instance_finalize = net_finalize,
        .class_init = net_class_init,
    },
};

DEFINE_TYPES(net_types)
