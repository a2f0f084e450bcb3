/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-bad-cable.h"

#include <string.h>

#include "../link/framing.h"
#include "lib-card.h"

#define MAX_HELD 64

/* A packet that others overtake. */
typedef struct Held {
    unsigned overtakers; /* still to pass it */
    bool modelled;
    ModelPacket packet;
    uint8_t *frame; /* with its header */
    size_t len;     /* of the packet */
} Held;

static HcaPort *port_of(const BadCable *c)
{
    return c->lab->host[0].hca->port;
}

static void held_free(gpointer data)
{
    Held *held = data;

    g_free(held->frame);
    g_free(held);
}

/* Whether the model lets the packet arrive; RC it does not ask about. */
static bool arrives(BadCable *c, bool modelled, const ModelPacket *p)
{
    bool taken = !modelled || model_packet_arrives(p);

    c->refused += !taken;
    return taken;
}

static void hold(BadCable *c, unsigned from, bool modelled,
                 const ModelPacket *p, const uint8_t *packet, size_t len)
{
    Held *held = g_new(Held, 1);

    *held = (Held) {
        .overtakers = g_rand_int_range(c->dice, 1, 40),
        .modelled = modelled,
        .packet = *p,
        .frame = g_malloc(HCA_FRAME_HEADER_SIZE + len),
        .len = len,
    };
    hca_frame_write_header(held->frame, HCA_FRAME_PACKET, 0, len);
    memcpy(held->frame + HCA_FRAME_HEADER_SIZE, packet, len);
    if (modelled) {
        const uint8_t *copy = held->frame + HCA_FRAME_HEADER_SIZE;

        held->packet.payload = copy + (p->payload - packet);
    }
    g_queue_push_tail(&c->held[from], held);
}

/* One more packet passes those that are held back. */
static void overtake(BadCable *c, unsigned from)
{
    for (GList *item = c->held[from].head, *next; item; item = next) {
        Held *held = item->data;

        next = item->next;
        if (--held->overtakers) {
            continue;
        }
        if (arrives(c, held->modelled, &held->packet)) {
            lab_cable_inject(c->lab, from, held->frame,
                             HCA_FRAME_HEADER_SIZE + held->len);
        }
        g_queue_delete_link(&c->held[from], item);
        held_free(held);
    }
}

/*
 * A few bits, or a burst that both CRCs detect for sure. A RoCE frame has no CRC
 * of its own here: only what the ICRC covers, and not what fills the frame up.
 */
static void corrupt(BadCable *c, uint8_t *packet, size_t len)
{
    bool roce = hca_port_is_roce(port_of(c));
    size_t begin = roce ? hca_roce_bth(packet, len) + 8 - packet : 0;
    size_t end = len - (roce && len == 60 ? 2 : 0);
    unsigned bit = g_rand_int_range(c->dice, begin * 8, end * 8);
    unsigned bits = g_rand_int_range(c->dice, 1, 17);

    packet[bit / 8] ^= 1u << bit % 8;
    for (unsigned i = 1; i < bits && ++bit < end * 8; i++) {
        packet[bit / 8] ^= g_rand_boolean(c->dice) << bit % 8;
    }
    c->corrupted++;
}

/* What comes before a datagram's payload in the receive buffer. */
static void grh_of(ModelPacket *p, const HcaPacket *packet,
                   const uint8_t *frame)
{
    p->has_grh = packet->has_grh;
    if (packet->ip_header && packet->is_ipv4) {
        memcpy(p->grh + 20, packet->ip_header, 20);
    } else if (packet->ip_header) {
        memcpy(p->grh, packet->ip_header, 40);
    } else if (packet->has_grh) {
        memcpy(p->grh, frame + HCA_LRH_SIZE, 40);
    }
}

/* The model's view of a packet of UC or UD; false: of RC. */
static bool leaves(BadCable *c, unsigned from, const uint8_t *frame, size_t len,
                   ModelPacket *p)
{
    HcaPacket packet = { 0 };
    ModelQp *to, *sender;

    g_assert_cmpint(hca_port_parse(port_of(c), &packet, frame, len), ==,
                    HCA_PARSE_OK);
    to = bad_cable_find(c, !from, packet.dest_qp);
    g_assert_nonnull(to);
    if (model_qp_is_reliable(to)) {
        return false;
    }
    sender = to->qp->service == RDMA_HCA_QP_ST_UD
                 ? bad_cable_find(c, from, packet.src_qp)
                 : to->peer;
    g_assert_nonnull(sender);
    *p = model_packet_leaves(sender, &packet);
    grh_of(p, &packet, frame);
    return true;
}

static CableFate fate(BadCable *c, unsigned from, uint8_t *packet, size_t len,
                      bool modelled, const ModelPacket *p)
{
    const CableWeather *w = c->weather;
    int dice = g_rand_int_range(c->dice, 0, 10000);
    bool once, twice;

    if ((dice -= w->drop) < 0) {
        c->dropped++;
        return CABLE_DROP;
    }
    if (c->held[from].length < MAX_HELD && (dice -= w->overtaken) < 0) {
        c->overtaken++;
        hold(c, from, modelled, p, packet, len);
        return CABLE_DROP;
    }
    if ((dice -= w->corrupt) < 0) {
        corrupt(c, packet, len);
        return CABLE_DELIVER;
    }
    if (!modelled && (dice -= w->delay) < 0) {
        c->delayed++;
        c->lab->delay_ns = g_rand_int_range(c->dice, 1, 1000) * NS_PER_US;
        return CABLE_DELAY;
    }
    once = arrives(c, modelled, p);
    twice = (dice -= w->duplicate) < 0 && arrives(c, modelled, p);
    c->duplicated += once && twice;
    return once && twice   ? CABLE_DUPLICATE
           : once || twice ? CABLE_DELIVER
                           : CABLE_DROP;
}

CableFate bad_cable_tap(void *opaque, unsigned from, uint8_t *packet,
                        size_t len)
{
    BadCable *c = opaque;
    ModelPacket p = { 0 };
    bool modelled = leaves(c, from, packet, len, &p);

    overtake(c, from);
    if (!c->bad) {
        return arrives(c, modelled, &p) ? CABLE_DELIVER : CABLE_DROP;
    }
    return fate(c, from, packet, len, modelled, &p);
}

void bad_cable_init(BadCable *cable, const CableWeather *weather, uint32_t seed)
{
    *cable = (BadCable) {
        .weather = weather,
        .dice = g_rand_new_with_seed(seed),
        .by_qpn = { g_hash_table_new(NULL, NULL),
                    g_hash_table_new(NULL, NULL) },
    };
}

void bad_cable_destroy(BadCable *cable)
{
    for (unsigned side = 0; side < 2; side++) {
        g_queue_clear_full(&cable->held[side], held_free);
        g_hash_table_destroy(cable->by_qpn[side]);
    }
    g_rand_free(cable->dice);
}

void bad_cable_add(BadCable *cable, unsigned side, uint32_t qpn, ModelQp *qp)
{
    g_hash_table_insert(cable->by_qpn[side], GUINT_TO_POINTER(qpn), qp);
}

ModelQp *bad_cable_find(const BadCable *cable, unsigned side, uint32_t qpn)
{
    return g_hash_table_lookup(cable->by_qpn[side], GUINT_TO_POINTER(qpn));
}
