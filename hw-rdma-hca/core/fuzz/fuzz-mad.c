/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Management: MADs for a channel adapter and a switch that are nodes alone, for
 * nodes whose M_Key their senders do not have, and for a card, by its cable, by
 * commands, and from QP 0 and QP 1 that are its guest's; while links come and go,
 * time passes and the cards have work. Both guests are good.
 */
#include <string.h>

#include "lib-frame.h"
#include "lib-mad.h"
#include "lib-manage.h"

#define SWITCH_PORTS 6
#define KEYS 2 /* nodes that are protected */
#define SPECIAL_QPN 14

typedef struct Managed {
    MadBench *node[2]; /* a CA, a switch */
    MadBench *kept[KEYS];
    GByteArray *image[KEYS];
    Qp *special[2]; /* of machine 0 */
    uint8_t frame[FRAME_MOST];
} Managed;

static Managed managed;

/* ---- nodes ---- */

static unsigned take_port(Fuzz *f, const MadBench *b, bool with_0)
{
    unsigned first = mad_is_switch(b) && with_0 ? 0 : 1;

    return first + take_below(&f->in, b->node->num_ports + 1 - first);
}

static void check_port(const HcaNode *node, unsigned number)
{
    const HcaPortInfo *info = &node->port[number].info;

    if (info->state < 1 || info->state > 4 || info->phys_state < 1 ||
        info->phys_state > 5 || info->lid >= 0xc000 || info->sm_lid >= 0xc000 ||
        info->lmc > 7 || (info->state != 1) != (info->phys_state == 5)) {
        fuzz_fail("port %u is in no state: %u, %u, LID %#x", number,
                  info->state, info->phys_state, info->lid);
    }
}

static void check_node(const HcaNode *node)
{
    for (unsigned i = node->type == HCA_NODE_CA; i <= node->num_ports; i++) {
        check_port(node, i);
    }
    if (node->ntraps > HCA_NODE_TRAPS || node->nnotices > HCA_NODE_NOTICES) {
        fuzz_fail("more traps than there is room for");
    }
}

static void check_way(const HcaNode *node, HcaSmiAction action, unsigned out)
{
    if (action == HCA_SMI_FORWARD && out > node->num_ports) {
        fuzz_fail("a route leaves by port %u of %u", out, node->num_ports);
    }
}

/* As who owns a node hands it one. */
static void give(MadBench *b, unsigned in_port, uint8_t *mad)
{
    bool directed = mad[HCA_MAD_CLASS] == HCA_CLASS_SUBN_DIRECTED;
    HcaSmiAction action = HCA_SMI_LOCAL;
    unsigned out = 0;

    if (directed) {
        action = hca_smi_receive(b->node, in_port, mad, &out);
        check_way(b->node, action, out);
    }
    if (action == HCA_SMI_LOCAL &&
        hca_node_answer(b->node, in_port, b->local, mad, b->reply) ==
            HCA_MAD_REPLY &&
        directed) {
        action = hca_smi_respond(b->node, b->reply, &out);
        check_way(b->node, action, out);
    }
    check_node(b->node);
}

static MadBench *take_node(Fuzz *f)
{
    return managed.node[take_bool(&f->in)];
}

static void act_node(Fuzz *f)
{
    MadBench *b = take_node(f);
    unsigned in_port = take_port(f, b, true);
    uint8_t mad[HCA_MAD_SIZE];

    fuzz_take_mad(f, b->node, mad);
    give(b, in_port, mad);
}

/* As it came, without a word of good in it. */
static void act_noise(Fuzz *f)
{
    MadBench *b = take_node(f);
    unsigned in_port = take_port(f, b, true);
    uint8_t mad[HCA_MAD_SIZE];

    take_bytes(&f->in, mad, 1 + take_below(&f->in, 64));
    give(b, in_port, mad);
}

static void act_key(Fuzz *f, MadBench *b)
{
    uint8_t gids[32] = { 0 };
    HcaKeyViolation bad = {
        .slid = take8(&f->in),
        .key = take_odd(&f->in),
        .sl = take_below(&f->in, 16),
        .src_qp = 0x123456,
    };

    if (take_bool(&f->in)) {
        bad.sgid = gids;
        bad.dgid = gids + 16;
    }
    if (take_bool(&f->in)) {
        hca_node_bad_pkey(b->node, take_port(f, b, true), &bad);
    } else {
        hca_node_bad_qkey(b->node, hca_node_mgmt_port(b->node), &bad);
    }
}

static void act_happen(Fuzz *f)
{
    MadBench *b = take_node(f);
    unsigned port = take_port(f, b, false);

    switch (take_below(&f->in, 9)) {
    case 0:
        hca_node_link(b->node, port, take_bool(&f->in));
        break;
    case 1:
        hca_node_activate(b->node, port);
        break;
    case 2:
        act_key(f, b);
        break;
    case 3:
        for (unsigned n = take8(&f->in); n; n--) {
            hca_node_packet(b->node, port, n % 3 == 0);
        }
        break;
    case 4:
        hca_node_enable(b->node, port, take_bool(&f->in));
        break;
    case 5:
        b->no_way = take_bool(&f->in);
        b->no_peer = take_bool(&f->in);
        break;
    case 6:
        hca_node_set_capabilities(b->node, hca_node_mgmt_port(b->node),
                                  take_odd(&f->in));
        break;
    case 7:
        hca_node_reset(b->node);
        break;
    default:
        b->now += (int64_t)1 << take_below(&f->in, 44);
        hca_node_tick(b->node);
        mad_clear_sent(b);
        break;
    }
    check_node(b->node);
}

/* All that may be set of a node, but for what packets and leases change. */
static GByteArray *image_of(const HcaNode *node)
{
    GByteArray *image = g_byte_array_new();

    for (unsigned i = 0; i <= node->num_ports; i++) {
        const HcaNodePort *port = &node->port[i];
        HcaPortInfo info = port->info;
        unsigned inputs = mad_inputs(node);

        info.m_key_violations = 0;
        g_byte_array_append(image, (void *)&info, sizeof(info));
        g_byte_array_append(image, (void *)port->pkeys, sizeof(port->pkeys));
        g_byte_array_append(image, (void *)port->guids, sizeof(port->guids));
        g_byte_array_append(image, (void *)port->sl_to_vl,
                            inputs * sizeof(*port->sl_to_vl));
        g_byte_array_append(image, (void *)port->vl_arb, sizeof(port->vl_arb));
        g_byte_array_append(image, (void *)&port->led, sizeof(port->led));
    }
    g_byte_array_append(image, (void *)&node->switch_info,
                        sizeof(node->switch_info));
    if (node->type == HCA_NODE_SWITCH) {
        g_byte_array_append(image, node->lft, HCA_LFT_SIZE);
        g_byte_array_append(image, (void *)node->mft,
                            HCA_MFT_SIZE * sizeof(*node->mft));
    }
    return image;
}

/* From who has not the key. */
static void act_kept(Fuzz *f)
{
    MadBench *b = managed.kept[take_below(&f->in, KEYS)];
    unsigned in_port = take_port(f, b, true);
    uint8_t mad[HCA_MAD_SIZE];

    fuzz_take_mad(f, b->node, mad);
    if (get_be64(mad + HCA_SMP_MKEY) == FUZZ_M_KEY) {
        put_be64(mad + HCA_SMP_MKEY, take_bool(&f->in));
    }
    give(b, in_port, mad);
}

static MadBench *new_kept(HcaNodeType type)
{
    MadBench *b = mad_bench_new_ports(type,
                                      type == HCA_NODE_CA ? 1 : SWITCH_PORTS);
    unsigned mgmt = hca_node_mgmt_port(b->node);
    uint8_t info[64];

    mad_configure(b, 0x12, 0x34);
    mad_good_info(b, mgmt, info);
    put_be64(info, FUZZ_M_KEY);
    mad_put_bits(info, 34, 7, 6, type == HCA_NODE_CA ? 1 : 3);
    mad_set_port_info(b, mgmt, info);
    return b;
}

static void check_kept(void)
{
    for (unsigned i = 0; i < KEYS; i++) {
        GByteArray *now = image_of(managed.kept[i]->node);

        if (now->len != managed.image[i]->len ||
            memcmp(now->data, managed.image[i]->data, now->len)) {
            fuzz_fail("node %u was changed without its M_Key", i);
        }
        g_byte_array_unref(now);
    }
}

/* ---- a card ---- */

static HcaNode *node_of_card(const Fuzz *f)
{
    return f->lab->host[0].hca->port->node;
}

/* By the cable: on VL 15 to QP 0, or to QP 1, or not quite so. */
static void act_packet(Fuzz *f)
{
    uint8_t odd = take8(&f->in), *frame = managed.frame;
    bool gmp = odd & 1;
    HcaPacket packet = {
        .vl = gmp ? 0 : 15,
        .slid = gmp || odd & 2 ? f->lab->host[1].config.lid : 0xffff,
        .dlid = gmp || odd & 2 ? node_of_card(f)->port[1].info.lid : 0xffff,
        .opcode = HCA_BTH_OPCODE(HCA_BTH_UD, HCA_SEND_ONLY),
        .pkey = HCA_DEFAULT_PKEY,
        .dest_qp = gmp,
        .src_qp = gmp,
        .qkey = gmp ? HCA_QKEY_GSI : 0,
        .payload_len = HCA_MAD_SIZE,
    };
    size_t len;

    if (odd & 4) {
        packet.vl = take_below(&f->in, 16);
        packet.sl = take_below(&f->in, 16);
        packet.dest_qp = take_below(&f->in, 4);
        packet.payload_len = 4 * take8(&f->in);
    }
    if (odd & 8) {
        packet.pkey = take_odd(&f->in);
        packet.qkey = take_odd(&f->in);
    }
    if (odd & 16) {
        packet.has_grh = true;
        driver_gid(f->pair->drv[1], packet.sgid.raw);
        driver_gid(f->pair->drv[0], packet.dgid.raw);
    }
    len = hca_encap_ib.build(&packet, frame);
    memset(frame + len, 0, packet.payload_len);
    if (packet.payload_len >= HCA_MAD_SIZE) {
        fuzz_take_mad(f, node_of_card(f), frame + len);
    }
    len = hca_encap_ib.seal(&packet, frame, len + packet.payload_len);
    if (odd & 32) {
        frame_edit(f, frame, len);
        frame_mend(false, frame, len);
    }
    frame_inject(f, 1, frame, len);
    if (odd & 64) {
        fuzz_rest(f);
    }
}

static void act_command(Fuzz *f)
{
    Driver *drv = f->pair->drv[0];
    uint8_t mad[HCA_MAD_SIZE], op_modifier = take8(&f->in) & 7;

    fuzz_take_mad(f, node_of_card(f), mad);
    host_write(drv->host, drv->mbox_in, mad, sizeof(mad));
    driver_cmd(drv, RDMA_HCA_CMD_MAD_IFC, drv->mbox_in, 1, op_modifier,
               drv->mbox_out, NULL);
}

static void act_host(Fuzz *f)
{
    struct rdma_hca_set_ib set = { .cap_mask = take32(&f->in) };
    char text[RDMA_HCA_NODE_DESC_SIZE];
    Driver *drv = f->pair->drv[0];

    set.flags = GUINT32_TO_BE(take8(&f->in) | (uint32_t)take8(&f->in) << 16);
    memset(text, take8(&f->in), sizeof(text));
    driver_cmd_in(drv, RDMA_HCA_CMD_SET_IB, &set, sizeof(set), 1, 0);
    driver_cmd_in(drv, RDMA_HCA_CMD_SET_NODE_DESC, text, sizeof(text), 0, 0);
}

/* QP 0 or QP 1 is taken by the guest, or given up. */
static void act_special(Fuzz *f)
{
    unsigned which = take_bool(&f->in);
    Driver *drv = f->pair->drv[0];
    Qp **qp = &managed.special[which];
    QpConfig config;
    QpAttr attr;

    if (*qp) {
        qp_destroy(*qp);
        *qp = NULL;
        return;
    }
    driver_cmd(drv, RDMA_HCA_CMD_CONF_SPECIAL_QP, 0,
               take_below(&f->in, 4) ? 0 : SPECIAL_QPN + which, which, 0, NULL);
    driver_cmd(drv, RDMA_HCA_CMD_CONF_SPECIAL_QP, 0, SPECIAL_QPN + which, which,
               0, NULL);
    qp_config_init(&config, f->pair->pd[0], f->pair->cq[0]);
    config.service = RDMA_HCA_QP_ST_UD;
    config.sq_entries = config.rq_entries = 16;
    *qp = qp_new_number(drv, &config, SPECIAL_QPN + which);
    fuzz_attr(&attr);
    attr.qkey = which ? HCA_QKEY_GSI : 0;
    if (qp_to_init(*qp, &attr) || qp_to_rtr(*qp, &attr) ||
        qp_to_rts(*qp, &attr)) {
        return; /* a manager has taken its P_Key away */
    }
    for (unsigned i = take_below(&f->in, 8); i; i--) {
        Sge sge = mr_sge(f->mr[0][FUZZ_ALL], 1000, 296);
        RecvWr wr = { .nsge = 1, .sge = &sge };

        qp_post_recv(*qp, &wr, 1);
    }
}

static void act_post(Fuzz *f)
{
    unsigned which = take_bool(&f->in);
    Qp *qp = managed.special[which];
    uint8_t odd = take8(&f->in), mad[HCA_MAD_SIZE];
    Sge sge = mr_sge(f->mr[0][FUZZ_ALL], 2000, HCA_MAD_SIZE);
    UdAddress to = {
        .dlid = which ? f->lab->host[1].config.lid : 0xffff,
        .dqpn = which,
        .qkey = HCA_QKEY_GSI,
    };
    SendWr wr = { .opcode = RDMA_HCA_OPCODE_SEND,
                  .flags = SEND_SIGNALED,
                  .ud = &to,
                  .nsge = 1,
                  .sge = &sge };

    if (!qp) {
        return;
    }
    if (odd & 1) {
        to.dlid = take16(&f->in);
        to.path_bits = take8(&f->in);
        to.pkey_index = take8(&f->in);
        to.sl = take8(&f->in) & 15;
    }
    if (odd & 2) {
        to.grh = true;
        to.roce.sgid_index = take_below(&f->in, 9);
        driver_gid(f->pair->drv[1], to.dgid);
        to.dgid[0] ^= take8(&f->in);
    }
    if (odd & 4) {
        sge.len = take16(&f->in) % 5000;
    }
    fuzz_take_mad(f, node_of_card(f), mad);
    mr_write(f->mr[0][FUZZ_ALL], 2000, mad, sizeof(mad));
    for (unsigned i = 1 + (odd >> 4); i; i--) {
        qp_post_send(qp, &wr, 1);
    }
}

/* The peer that is plugged in next is managed, or not. */
static void act_managed(Fuzz *f)
{
    lab_cable(f->lab, false);
    fuzz_rest(f);
    hca_link_set_managed(f->lab->host[1].hca->link, take_bool(&f->in));
    lab_cable(f->lab, true);
    fuzz_rest(f);
}

static const FuzzAction actions[] = {
    { "node", act_node },          { "packet", act_packet },
    { "command", act_command },    { "happen", act_happen },
    { "kept", act_kept },          { "special", act_special },
    { "post", act_post },          { "managed", act_managed },
    { "host", act_host },          { "noise", act_noise },
    { "send", fuzz_act_send },     { "recv", fuzz_act_recv },
    { "poll", fuzz_act_poll },     { "turns", fuzz_act_turns },
    { "rest", fuzz_act_rest },     { "time", fuzz_act_time },
    { "revive", fuzz_act_revive }, { "cable", fuzz_act_cable },
    { "events", fuzz_act_events }, { "exchange", fuzz_act_exchange },
    { "group", fuzz_act_group },   { "multicast", fuzz_act_multicast },
};

static void begin(Fuzz *f, const uint8_t *data, size_t size)
{
    HcaConfig config[2];

    *f = (Fuzz) { .in = { data, size } };
    fuzz_config(&config[0], 0, false);
    fuzz_config(&config[1], 1, false);
    fuzz_begin_with(f, data, size, FUZZ_GUEST_GOOD, config);
    lab_tap(f->lab, frame_deliver, NULL);
    memset(&managed, 0, sizeof(managed));
    managed.node[0] = mad_bench_new_ports(HCA_NODE_CA, 1);
    managed.node[1] = mad_bench_new_ports(HCA_NODE_SWITCH, SWITCH_PORTS);
    managed.kept[0] = new_kept(HCA_NODE_CA);
    managed.kept[1] = new_kept(HCA_NODE_SWITCH);
    for (unsigned i = 0; i < KEYS; i++) {
        managed.image[i] = image_of(managed.kept[i]->node);
    }
}

static void end(Fuzz *f)
{
    check_kept();
    check_node(node_of_card(f));
    for (unsigned i = 0; i < KEYS; i++) {
        mad_bench_free(managed.kept[i]);
        g_byte_array_unref(managed.image[i]);
    }
    for (unsigned i = 0; i < 2; i++) {
        mad_bench_free(managed.node[i]);
    }
    hca_link_set_managed(f->lab->host[1].hca->link, false);
    fuzz_end(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Fuzz f;

    begin(&f, data, size);
    fuzz_play(&f, actions, G_N_ELEMENTS(actions));
    end(&f);
    return 0;
}
