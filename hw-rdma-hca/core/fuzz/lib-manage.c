/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-manage.h"

#include <string.h>

/* What of it is not as it should be. */
enum {
    ODD_HEADER = 0x01,
    ODD_MODIFIER = 0x02,
    ODD_KEY = 0x04,
    ODD_ROUTE = 0x08,
    ODD_DATA = 0x10,
    ODD_BYTES = 0x20,
};

static uint8_t take_class(Fuzz *f)
{
    static const uint8_t classes[] = { 0x81, 0x01, 0x04, 0x03, 0x07, 0x21 };

    return classes[take_below(&f->in, G_N_ELEMENTS(classes))];
}

static uint8_t take_method(Fuzz *f)
{
    static const uint8_t methods[] = { 0x02, 0x01, 0x07, 0x81, 0x05, 0x03 };

    return methods[take_below(&f->in, G_N_ELEMENTS(methods))];
}

static uint16_t take_attribute(Fuzz *f, uint8_t class)
{
    static const uint8_t subnet[] = {
        0x15, 0x16, 0x14, 0x17, 0x18, 0x12, 0x19,
        0x1b, 0x31, 0x02, 0x11, 0x10, 0x20, 0x30
    };
    static const uint8_t perf[] = { 0x12, 0x1d, 0x01, 0x10 };

    return class == 0x04 ? perf[take_below(&f->in, G_N_ELEMENTS(perf))]
                         : subnet[take_below(&f->in, G_N_ELEMENTS(subnet))];
}

/* Ports in both halves, blocks, parts. */
static uint32_t take_modifier(Fuzz *f)
{
    uint32_t kind = take8(&f->in);

    switch (kind >> 6) {
    case 0:
        return kind & 0x3f;
    case 1:
        return (kind & 0x3f) << 16 | take8(&f->in);
    case 2:
        return take16(&f->in);
    default:
        return take_odd(&f->in);
    }
}

/* One hop along the cable, there; or anything. */
static void put_route(Fuzz *f, bool odd, uint8_t *mad)
{
    mad[HCA_SMP_HOP_POINTER] = 1;
    mad[HCA_SMP_HOP_COUNT] = 1;
    put_be16(mad + HCA_SMP_DR_SLID, 0xffff);
    put_be16(mad + HCA_SMP_DR_DLID, 0xffff);
    mad[HCA_SMP_INITIAL_PATH + 1] = 1;
    if (!odd) {
        return;
    }
    mad[HCA_SMP_HOP_POINTER] = take8(&f->in);
    mad[HCA_SMP_HOP_COUNT] = take8(&f->in);
    mad[HCA_MAD_STATUS] = take_bool(&f->in) ? 0x80 : 0;
    put_be16(mad + HCA_SMP_DR_SLID, ~take16(&f->in));
    put_be16(mad + HCA_SMP_DR_DLID, ~take16(&f->in));
    memset(mad + HCA_SMP_INITIAL_PATH, take8(&f->in), 64);
    memset(mad + HCA_SMP_RETURN_PATH, take8(&f->in), 64);
}

/* What the attribute is now, so that a Set changes what the input says. */
static void put_present(HcaNode *node, uint8_t *mad)
{
    uint8_t get[HCA_MAD_SIZE], reply[HCA_MAD_SIZE];

    memcpy(get, mad, sizeof(get));
    get[HCA_MAD_METHOD] = HCA_METHOD_GET;
    if (hca_node_answer(node, 1, true, get, reply) == HCA_MAD_REPLY) {
        memcpy(mad + HCA_MAD_DATA, reply + HCA_MAD_DATA, HCA_SMP_DATA_SIZE);
    }
    if (get_be16(mad + HCA_MAD_ATTRIBUTE) == HCA_ATTR_PORT_INFO) {
        mad[HCA_MAD_DATA + 32] &= 0xf0; /* no change of state */
        mad[HCA_MAD_DATA + 33] &= 0x0f;
    }
}

static void edit(Fuzz *f, uint8_t *bytes, unsigned len)
{
    unsigned n = 1 + take_below(&f->in, 4);

    for (; n; n--) {
        unsigned at = take_below(&f->in, len);

        bytes[at] = take8(&f->in);
    }
}

void fuzz_take_mad(Fuzz *f, HcaNode *node, uint8_t mad[HCA_MAD_SIZE])
{
    unsigned mgmt = hca_node_mgmt_port(node);
    uint8_t odd = take8(&f->in);

    memset(mad, 0, HCA_MAD_SIZE);
    mad[HCA_MAD_BASE_VERSION] = 1;
    mad[HCA_MAD_CLASS] = take_class(f);
    mad[HCA_MAD_CLASS_VERSION] = 1;
    mad[HCA_MAD_METHOD] = take_method(f);
    put_be64(mad + HCA_MAD_TID, node->next_tid);
    put_be16(mad + HCA_MAD_ATTRIBUTE, take_attribute(f, mad[HCA_MAD_CLASS]));
    put_be64(mad + HCA_SMP_MKEY, node->port[mgmt].info.m_key);
    if (odd & ODD_MODIFIER) {
        put_be32(mad + HCA_MAD_MODIFIER, take_modifier(f));
    }
    if (mad[HCA_MAD_CLASS] == HCA_CLASS_SUBN_DIRECTED) {
        put_route(f, odd & ODD_ROUTE, mad);
    }
    put_present(node, mad);
    if (odd & ODD_DATA) {
        edit(f, mad + HCA_MAD_DATA, HCA_SMP_DATA_SIZE);
    }
    if (odd & ODD_KEY) {
        put_be64(mad + HCA_SMP_MKEY, take_odd(&f->in));
    }
    if (odd & ODD_HEADER) {
        edit(f, mad, HCA_SMP_MKEY);
    }
    if (odd & ODD_BYTES) {
        edit(f, mad, HCA_MAD_SIZE);
    }
}
