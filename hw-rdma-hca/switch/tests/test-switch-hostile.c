/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peers that send what they like: the switch goes on, others do not notice, and
 * nothing grows without bounds. The seed is GLib's (--seed).
 */
#include "core/link/framing.h"
#include "core/tests/lib-test.h"
#include "lib-fabric.h"

#include <string.h>

#define N 4
/* Station 1 is the bad one; 2 and 3 go on. */
static const Parcel good = { .slid = 2, .dlid = 3, .size = 200 };

static unsigned rounds(unsigned n)
{
    return n * (g_getenv("LONG") && *g_getenv("LONG") == '1' ? 50 : 1);
}

typedef struct Scene {
    Fabric *fabric;
    Station *s[N];
    Box *box, *second;
    GRand *rand;
} Scene;

/* Port 4 leads to another switch, so that routes have somewhere to go. */
static Scene scene_new(void)
{
    Scene scene = { .fabric = fabric_new() };

    scene.box = fabric_star(scene.fabric, N, scene.s);
    scene.second = fabric_switch(scene.fabric, 3);
    fabric_pull(&scene.s[3]->end);
    fabric_join_boxes(scene.box, 4, scene.second, 2);
    box_set_states(scene.box, HCA_PORT_ACTIVE);
    scene.box->node->port[0].info.lid = 9;
    scene.rand = g_rand_new_with_seed(g_test_rand_int());
    return scene;
}

static void scene_free(Scene *scene)
{
    g_rand_free(scene->rand);
    fabric_free(scene->fabric);
}

/* A connection that must not notice. */
static void goes_on(Scene *scene)
{
    station_count(scene->s[2]);
    station_send(scene->s[1], &good);
    fabric_run(scene->fabric);
    station_expect(scene->s[2], &good);
}

/* The bad one's cable may have been dropped for what it carried. */
static void come_back(Scene *scene)
{
    station_count(scene->s[0]);
    if (!scene->s[0]->end.peer) {
        fabric_join(scene->s[0], scene->box, 1);
    }
    scene->box->node->port[1].info.state = HCA_PORT_ACTIVE;
}

/* Bytes that are no frames. */
static void bytes(void)
{
    Scene scene = scene_new();
    uint8_t noise[700];

    for (unsigned i = 0; i < rounds(300); i++) {
        come_back(&scene);
        random_fill(scene.rand, noise, sizeof(noise));
        if (i % 2) { /* a good header of what is not there */
            hca_frame_write_header(noise, g_rand_int_range(scene.rand, 1, 4),
                                   g_rand_int_range(scene.rand, 0, 16),
                                   g_rand_int_range(scene.rand, 1, 9217));
        }
        station_inject(scene.s[0], noise,
                       g_rand_int_range(scene.rand, 1, sizeof(noise)));
        fabric_run(scene.fabric);
        goes_on(&scene);
    }
    scene_free(&scene);
}

/* Frames of noise; half of them have a good LRH and VCRC. */
static void packets(void)
{
    Scene scene = scene_new();

    for (unsigned i = 0; i < rounds(2000); i++) {
        GByteArray *packet = g_byte_array_new();

        come_back(&scene);
        g_byte_array_set_size(packet, g_rand_int_range(scene.rand, 1, 9217));
        random_fill(scene.rand, packet->data, packet->len);
        if (i % 2 && packet->len > 100) {
            g_byte_array_set_size(packet, (packet->len & ~3u) - 2);
            packet->data[0] &= 0xf0;
            packet->data[1] |= 2;
            put_be16(packet->data + 2, g_rand_int_range(scene.rand, 0, 12));
            put_be16(packet->data + 4, (packet->len - 2) / 4);
            packet_seal(packet, g_rand_boolean(scene.rand));
        }
        station_send_bytes(scene.s[0], packet->data, packet->len);
        fabric_run(scene.fabric);
        g_byte_array_unref(packet);
        if (i % 16 == 0) {
            goes_on(&scene);
        }
    }
    scene_free(&scene);
}

static void send_forged(Scene *scene, Mad *mad, uint16_t slid, uint16_t dlid)
{
    station_send_smp(scene->s[0], mad, slid, dlid);
    fabric_run(scene->fabric);
    come_back(scene);
}

/* Each hop pointer and count, both directions, with and without LIDs. */
static void hops(void)
{
    Scene scene = scene_new();
    Mad mad;

    smp_init(&mad, scene.s[0], HCA_METHOD_GET, HCA_ATTR_NODE_INFO, 0,
             (const uint8_t *)"", 0);
    for (unsigned pointer = 0; pointer < 256; pointer++) {
        for (unsigned hop_count = 0; hop_count < 256;
             hop_count += hop_count < 66 ? 1 : 63) {
            unsigned kind = g_rand_int_range(scene.rand, 0, 16);

            for (unsigned i = 0; i < 64; i++) {
                uint8_t port = g_rand_int_range(scene.rand, 0, 6);

                mad.bytes[HCA_SMP_INITIAL_PATH + i] = port;
                mad.bytes[HCA_SMP_RETURN_PATH + i] = g_rand_int_range(
                    scene.rand, 0, 6);
            }
            mad.bytes[HCA_SMP_HOP_POINTER] = pointer;
            mad.bytes[HCA_SMP_HOP_COUNT] = hop_count;
            mad.bytes[HCA_MAD_STATUS] = kind & 1 ? 0x80 : 0;
            mad.bytes[HCA_MAD_METHOD] = kind & 1 ? HCA_METHOD_GET_RESP
                                                 : HCA_METHOD_GET;
            put_be16(mad.bytes + HCA_SMP_DR_SLID, kind & 2 ? 9 : 0xffff);
            put_be16(mad.bytes + HCA_SMP_DR_DLID, kind & 4 ? 9 : 0xffff);
            send_forged(&scene, &mad, kind & 8 ? 1 : 0xffff,
                        kind & 8 ? 9 : 0xffff);
        }
        goes_on(&scene);
    }
    scene_free(&scene);
}

/*
 * Every attribute, with any modifier and data: the manager's word is law, so
 * that others may well be cut off; but then it is as it was again.
 */
static void attributes(void)
{
    static const uint16_t known[] = {
        HCA_ATTR_NOTICE,
        HCA_ATTR_NODE_DESC,
        HCA_ATTR_NODE_INFO,
        HCA_ATTR_SWITCH_INFO,
        HCA_ATTR_GUID_INFO,
        HCA_ATTR_PORT_INFO,
        HCA_ATTR_PKEY_TABLE,
        HCA_ATTR_SL_TO_VL,
        HCA_ATTR_VL_ARB,
        HCA_ATTR_LINEAR_FDB,
        HCA_ATTR_MCAST_FDB,
        HCA_ATTR_SM_INFO,
        HCA_ATTR_LED_INFO,
        HCA_ATTR_PORT_COUNTERS,
        HCA_ATTR_PORT_COUNTERS_EXT,
        0x0013,
        0x0033,
        0xff90,
    };
    Scene scene = scene_new();
    Mad mad;

    for (unsigned i = 0; i < rounds(5000); i++) {
        unsigned kind = g_rand_int(scene.rand);
        uint32_t modifier = g_rand_int(scene.rand);

        if (kind & 1) {
            modifier &= kind & 2 ? 0x3 : 0x30003;
        }
        smp_init(&mad, scene.s[0],
                 kind & 4 ? HCA_METHOD_SET : g_rand_int(scene.rand),
                 known[g_rand_int_range(scene.rand, 0, G_N_ELEMENTS(known))],
                 modifier, kind & 8 ? NULL : (const uint8_t *)"\4",
                 kind >> 4 & 1);
        random_fill(scene.rand, mad.bytes + HCA_MAD_DATA, HCA_SMP_DATA_SIZE);
        if (kind & 32) {
            mad.bytes[HCA_MAD_CLASS] = HCA_CLASS_PERF;
            station_send_gmp(scene.s[0], &mad, 1, 9);
        } else {
            station_send_smp(scene.s[0], &mad, kind & 8 ? 1 : 0xffff,
                             kind & 8 ? 9 : 0xffff);
        }
        fabric_advance(scene.fabric, 10 * NS_PER_MS);
        /* M_Key and the station's own port would end the game. */
        scene.box->node->port[0].info.m_key = 0;
        scene.second->node->port[0].info.m_key = 0;
        if (!hca_link_is_up(scene.s[0]->link)) {
            scene_free(&scene);
            scene = scene_new();
        }
        come_back(&scene);
    }
    scene_free(&scene);
    scene = scene_new();
    goes_on(&scene);
    scene_free(&scene);
}

static void random_port(GRand *rand, HcaNodePort *port)
{
    for (unsigned in = 0; in <= N; in++) {
        for (unsigned sl = 0; sl < HCA_NUM_SLS; sl++) {
            port->sl_to_vl[in][sl] = g_rand_int_range(rand, 0, 16);
        }
    }
    for (unsigned part = 0; part < HCA_VL_ARB_PARTS; part++) {
        for (unsigned i = 0; i < HCA_VL_ARB_ENTRIES; i++) {
            port->vl_arb[part][i] = (HcaVlWeight) {
                .vl = g_rand_int_range(rand, 0, 16),
                .weight = g_rand_int(rand),
            };
        }
    }
    port->info.hoq_life = g_rand_int_range(rand, 0, 32);
    port->info.vl_stall_count = g_rand_int_range(rand, 0, 8);
    port->info.mtu = g_rand_int_range(rand, 1, 6);
    port->info.vl_high_limit = g_rand_int(rand);
}

/* Data to all there is, under tables at random. */
static void tables(void)
{
    Scene scene = scene_new();
    HcaNode *node = scene.box->node;

    for (unsigned i = 0; i < rounds(300); i++) {
        random_fill(scene.rand, node->lft, 64);
        random_fill(scene.rand, node->mft, 64 * sizeof(*node->mft));
        for (unsigned port = 1; port <= N; port++) {
            random_port(scene.rand, &node->port[port]);
        }
        node->switch_info.lft_top = 64;
        node->switch_info.life_time = g_rand_int_range(scene.rand, 0, 32);
        random_fill(scene.rand, &node->switch_info.default_mcast_primary, 1);
        for (unsigned j = 0; j < 40; j++) {
            Parcel p = {
                .slid = 1,
                .dlid = g_rand_boolean(scene.rand)
                            ? g_rand_int_range(scene.rand, 0, 65)
                            : g_rand_int_range(scene.rand, 0xc000, 0xc041),
                .sl = g_rand_int_range(scene.rand, 0, 16),
                .vl = g_rand_int_range(scene.rand, 0, 16),
                .size = g_rand_int_range(scene.rand, 4, 4097),
            };

            if (hca_link_can_send(scene.s[0]->link, false)) {
                station_send(scene.s[0], &p);
            }
        }
        scene.s[1]->deaf = g_rand_boolean(scene.rand);
        scene.s[2]->deaf = g_rand_boolean(scene.rand);
        fabric_advance(scene.fabric, g_rand_int_range(scene.rand, 0, 50000000));
        for (unsigned j = 0; j < 3; j++) {
            station_count(scene.s[j]);
        }
    }
    scene_free(&scene);
}

/* Links that come and go at any moment, with data on them. */
static void bounces(void)
{
    Scene scene = scene_new();
    Parcel p = { .slid = 1, .size = 3000 };

    for (unsigned i = 0; i < rounds(1000); i++) {
        unsigned who = g_rand_int_range(scene.rand, 0, 3);
        Station *s = scene.s[who];

        for (unsigned j = 0; j < 20; j++) {
            Station *from = scene.s[g_rand_int_range(scene.rand, 0, 3)];

            p.dlid = g_rand_int_range(scene.rand, 1, 4);
            if (hca_link_can_send(from->link, false)) {
                station_send(from, &p);
            }
        }
        s->deaf = g_rand_boolean(scene.rand);
        switch (g_rand_int_range(scene.rand, 0, 4)) {
        case 0:
            hca_link_enable(s->link, g_rand_boolean(scene.rand));
            break;
        case 1:
            if (s->end.peer) {
                fabric_pull(&s->end);
            } else {
                fabric_join(s, scene.box, who + 1);
            }
            break;
        case 2:
            box_set_states(scene.box, g_rand_int_range(scene.rand, 2, 5));
            break;
        case 3:
            scene.box->node->ops->set_link(scene.box->node->opaque, who + 1,
                                           g_rand_boolean(scene.rand));
            break;
        }
        fabric_advance(scene.fabric, g_rand_int_range(scene.rand, 0, 1000000));
        for (unsigned j = 0; j < 3; j++) {
            station_count(scene.s[j]);
        }
    }
    scene_free(&scene);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/switch/hostile/bytes", bytes);
    test_add("/switch/hostile/packets", packets);
    test_add("/switch/hostile/hops", hops);
    test_add("/switch/hostile/attributes", attributes);
    test_add("/switch/hostile/tables", tables);
    test_add("/switch/hostile/bounces", bounces);
    return g_test_run();
}
