/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-subnet.h"

#include <string.h>

#include "../link/framing.h"
#include "../wire/wire.h"

#define SLOT 512u
#define LOG_CQ 6
#define FIRST_QPN 200 /* of special QPs */
#define PATIENCE (2 * NS_PER_S)
#define DATA_QKEY 0x11111111

/* ---- life ---- */

static CableFate see(void *opaque, unsigned from, uint8_t *packet, size_t len)
{
    Subnet *s = opaque;
    SubnetFrame *frame;

    if (s->watched) {
        frame = g_new0(SubnetFrame, 1);
        frame->from = from;
        frame->len = len;
        g_assert_cmpuint(len, <=, sizeof(frame->data));
        memcpy(frame->data, packet, len);
        g_queue_push_tail(&s->frames, frame);
    }
    return CABLE_DELIVER;
}

void subnet_config(HcaConfig config[2], HcaManaged a, HcaManaged b)
{
    lab_config(&config[0], 0);
    lab_config(&config[1], 1);
    config[0].managed = a;
    config[1].managed = b;
}

Subnet *subnet_new_with(uint32_t seed, const HcaConfig *config)
{
    Subnet *s = g_new0(Subnet, 1);

    g_queue_init(&s->frames);
    s->tid = UINT64_C(0x1122334400000000);
    s->pair = pair_new_managed(seed, SUBNET_AREA, config, see, s);
    s->lab = s->pair->lab;
    return s;
}

Subnet *subnet_new(uint32_t seed)
{
    HcaConfig config[2];

    subnet_config(config, HCA_MANAGED_ON, HCA_MANAGED_ON);
    return subnet_new_with(seed, config);
}

void subnet_free(Subnet *s)
{
    g_queue_clear_full(&s->frames, g_free);
    pair_free(s->pair);
    g_free(s);
}

Hca *subnet_card(const Subnet *s, unsigned side)
{
    return s->lab->host[side].hca;
}

HcaNodePort *subnet_node_port(const Subnet *s, unsigned side)
{
    return &subnet_card(s, side)->port->node->port[HCA_PORT_NUMBER];
}

uint64_t subnet_guid(const Subnet *s, unsigned side)
{
    return s->lab->host[side].config.guid;
}

/* ---- special QPs ---- */

uint8_t subnet_conf(Subnet *s, unsigned side, unsigned which, uint32_t qpn)
{
    return driver_cmd(s->pair->drv[side], RDMA_HCA_CMD_CONF_SPECIAL_QP, 0, qpn,
                      which, 0, NULL);
}

static Qp *special_new(Subnet *s, unsigned side, unsigned which)
{
    SubnetPort *port = &s->port[side][which];
    QpConfig config;
    QpAttr attr;
    Qp *qp;

    qp_config_init(&config, s->pair->pd[side], s->pair->cq[side]);
    config.service = RDMA_HCA_QP_ST_UD;
    config.send_cq = port->send_cq;
    config.recv_cq = port->recv_cq;
    qp = qp_new_number(s->pair->drv[side], &config, FIRST_QPN + which);
    qp_attr_init(&attr);
    attr.qkey = which == SUBNET_GSI ? SUBNET_QKEY : 0;
    qp_bring_up(qp, &attr);
    return qp;
}

void subnet_take(Subnet *s, unsigned side, unsigned which)
{
    SubnetPort *port = &s->port[side][which];
    Driver *drv = s->pair->drv[side];

    g_assert_cmphex(subnet_conf(s, side, which, FIRST_QPN + which), ==, 0);
    if (!port->send_cq) {
        port->send_cq = cq_new(drv, LOG_CQ, RDMA_HCA_UAR_KERNEL + 1);
        port->recv_cq = cq_new(drv, LOG_CQ, RDMA_HCA_UAR_KERNEL + 1);
    }
    port->qp = special_new(s, side, which);
    subnet_post_recvs(s, side, which);
}

void subnet_give_up(Subnet *s, unsigned side, unsigned which)
{
    qp_destroy(s->port[side][which].qp);
    s->port[side][which].qp = NULL;
    g_assert_cmphex(subnet_conf(s, side, which, 0), ==, 0);
}

static uint64_t slot_of(unsigned which, uint64_t n)
{
    return (which * (SUBNET_RECVS + 1) + n) * SLOT;
}

static void post_recv(Subnet *s, unsigned side, unsigned which, uint64_t n)
{
    pair_post_recv(s->pair, side, s->port[side][which].qp, n, slot_of(which, n),
                   SUBNET_GRH + HCA_MAD_SIZE);
}

void subnet_post_recvs(Subnet *s, unsigned side, unsigned which)
{
    for (unsigned i = 0; i < SUBNET_RECVS; i++) {
        post_recv(s, side, which, i);
    }
}

void subnet_send(Subnet *s, unsigned side, unsigned which, const UdAddress *to,
                 const uint8_t *mad)
{
    SubnetPort *port = &s->port[side][which];
    uint64_t at = slot_of(which, SUBNET_RECVS);
    SendWr wr;
    Sge sge;
    Wc wc;

    mr_write(s->pair->mr[side], at, mad, HCA_MAD_SIZE);
    wr = pair_send(s->pair, side, RDMA_HCA_OPCODE_SEND, 1, &sge, at,
                   HCA_MAD_SIZE, 0);
    wr.ud = to;
    g_assert_true(qp_post_send(port->qp, &wr, 1));
    cq_expect(port->send_cq, &wc, 1, 0);
}

UdAddress subnet_to_smi(uint16_t lid)
{
    return (UdAddress) { .dlid = lid };
}

UdAddress subnet_to_gsi(uint16_t lid)
{
    return (UdAddress) { .dlid = lid, .dqpn = 1, .qkey = SUBNET_QKEY };
}

bool subnet_receive(Subnet *s, unsigned side, unsigned which, Wc *wc,
                    uint8_t grh[SUBNET_GRH], uint8_t mad[HCA_MAD_SIZE])
{
    SubnetPort *port = &s->port[side][which];
    Mr *mr = s->pair->mr[side];

    if (!cq_wait(port->recv_cq, wc, PATIENCE)) {
        return false;
    }
    g_assert_cmphex(wc->syndrome, ==, 0);
    g_assert_cmpuint(wc->byte_len, ==, SUBNET_GRH + HCA_MAD_SIZE);
    if (grh) {
        mr_read(mr, slot_of(which, wc->wr_id), grh, SUBNET_GRH);
    }
    mr_read(mr, slot_of(which, wc->wr_id) + SUBNET_GRH, mad, HCA_MAD_SIZE);
    if (!port->no_recv) {
        post_recv(s, side, which, wc->wr_id);
    }
    return true;
}

void subnet_expect_none(Subnet *s, unsigned side, unsigned which)
{
    cq_expect_none(s->port[side][which].recv_cq);
}

/* ---- a manager ---- */

uint8_t *subnet_smp(Subnet *s, uint8_t class, uint8_t method,
                    uint16_t attribute, uint32_t modifier)
{
    uint8_t *mad = s->mad;

    memset(mad, 0, HCA_MAD_SIZE);
    mad[0] = 1;
    mad[1] = class;
    mad[2] = 1;
    mad[3] = method;
    put_be64(mad + 8, ++s->tid);
    put_be16(mad + 16, attribute);
    put_be32(mad + 20, modifier);
    put_be64(mad + 24, class == HCA_CLASS_PERF ? 0 : s->m_key);
    if (class == HCA_CLASS_SUBN_DIRECTED) {
        mad[6] = 1; /* it has left the requester, */
        mad[7] = 1; /* for the other end of the cable */
        put_be16(mad + 32, 0xffff);
        put_be16(mad + 34, 0xffff);
        mad[128 + 1] = 1;
    }
    return mad + 64;
}

uint16_t subnet_ask(Subnet *s)
{
    UdAddress to = subnet_to_smi(0xffff);
    Wc wc;

    if (!s->port[0][SUBNET_SMI].qp) {
        subnet_take(s, 0, SUBNET_SMI);
    }
    subnet_send(s, 0, SUBNET_SMI, &to, s->mad);
    g_assert_true(subnet_receive(s, 0, SUBNET_SMI, &wc, NULL, s->reply));
    g_assert_cmphex(s->reply[3], ==, HCA_METHOD_GET_RESP);
    g_assert_cmphex(get_be64(s->reply + 8), ==, s->tid);
    g_assert_cmphex(s->reply[4] & 0x80, ==, 0x80);
    return get_be16(s->reply + 4) & 0x7fff;
}

uint16_t subnet_set(Subnet *s, uint16_t attribute, uint32_t modifier,
                    const void *data)
{
    memcpy(subnet_smp(s, HCA_CLASS_SUBN_DIRECTED, HCA_METHOD_SET, attribute,
                      modifier),
           data, 64);
    return subnet_ask(s);
}

const uint8_t *subnet_get(Subnet *s, uint16_t attribute, uint32_t modifier)
{
    subnet_smp(s, HCA_CLASS_SUBN_DIRECTED, HCA_METHOD_GET, attribute, modifier);
    g_assert_cmphex(subnet_ask(s), ==, 0);
    return s->reply + 64;
}

void subnet_expect_node_info(const Subnet *s, const uint8_t *data,
                             unsigned side)
{
    g_assert_cmpuint(data[2], ==, 1); /* a CA of one port */
    g_assert_cmpuint(data[3], ==, 1);
    for (unsigned at = 4; at <= 20; at += 8) {
        g_assert_cmphex(get_be64(data + at), ==, subnet_guid(s, side));
    }
    g_assert_cmpuint(get_be16(data + 28), ==, 32);
    g_assert_cmpuint(data[36], ==, 1);
}

uint8_t subnet_mad_ifc(Subnet *s, unsigned side, uint8_t op_modifier)
{
    Driver *drv = s->pair->drv[side];
    uint8_t status;

    host_write(drv->host, drv->mbox_in, s->mad, HCA_MAD_SIZE);
    status = driver_cmd(drv, RDMA_HCA_CMD_MAD_IFC, drv->mbox_in, 1, op_modifier,
                        drv->mbox_out, NULL);
    host_read(drv->host, drv->mbox_out, s->reply, HCA_MAD_SIZE);
    return status;
}

uint16_t subnet_set_own(Subnet *s, unsigned side, uint16_t attribute,
                        uint32_t modifier, const void *data)
{
    memcpy(
        subnet_smp(s, HCA_CLASS_SUBN_LID, HCA_METHOD_SET, attribute, modifier),
        data, 64);
    g_assert_cmphex(subnet_mad_ifc(s, side, RDMA_HCA_MAD_IGNORE_MKEY), ==, 0);
    return get_be16(s->reply + 4);
}

const uint8_t *subnet_get_own(Subnet *s, unsigned side, uint16_t attribute,
                              uint32_t modifier)
{
    subnet_smp(s, HCA_CLASS_SUBN_LID, HCA_METHOD_GET, attribute, modifier);
    g_assert_cmphex(subnet_mad_ifc(s, side, RDMA_HCA_MAD_IGNORE_MKEY), ==, 0);
    return s->reply + 64;
}

void subnet_port_info(Subnet *s, unsigned side, uint8_t info[64])
{
    memcpy(info, side ? subnet_get(s, 0x15, 1) : subnet_get_own(s, 0, 0x15, 1),
           64);
    if (!get_be16(info + 16)) {
        put_be16(info + 16, SUBNET_LID(side));
    }
    if (!get_be16(info + 18)) {
        put_be16(info + 18, SUBNET_LID(0));
    }
    info[32] &= 0xf0; /* PortState, PortPhysicalState: no change */
    info[33] &= 0x0f;
}

void subnet_set_port_info(Subnet *s, unsigned side, const uint8_t info[64])
{
    uint16_t status = side ? subnet_set(s, 0x15, 1, info)
                           : subnet_set_own(s, 0, 0x15, 1, info);

    g_assert_cmphex(status, ==, 0);
}

void subnet_set_state(Subnet *s, unsigned side, uint8_t state)
{
    uint8_t info[64];

    subnet_port_info(s, side, info);
    info[32] |= state;
    subnet_set_port_info(s, side, info);
}

void subnet_set_lid(Subnet *s, unsigned side, uint16_t lid, uint8_t lmc)
{
    uint8_t info[64];

    subnet_port_info(s, side, info);
    put_be16(info + 16, lid);
    info[34] = (info[34] & 0xf8) | lmc;
    subnet_set_port_info(s, side, info);
}

unsigned subnet_state(Subnet *s, unsigned side)
{
    return driver_port_state(s->pair->drv[side]);
}

void subnet_bring_up(Subnet *s)
{
    for (unsigned side = 0; side < 2; side++) {
        subnet_set_lid(s, side, SUBNET_LID(side), 0);
    }
    for (uint8_t state = HCA_PORT_ARMED; state <= HCA_PORT_ACTIVE; state++) {
        subnet_set_state(s, 0, state);
        subnet_set_state(s, 1, state);
    }
    g_assert_cmpuint(subnet_state(s, 0), ==, HCA_PORT_ACTIVE);
    g_assert_cmpuint(subnet_state(s, 1), ==, HCA_PORT_ACTIVE);
}

void subnet_query(Subnet *s, unsigned side, struct rdma_hca_port *port)
{
    g_assert_cmphex(driver_cmd_out(s->pair->drv[side], RDMA_HCA_CMD_QUERY_PORT,
                                   port, sizeof(*port), 1, 0),
                    ==, 0);
}

/* ---- frames ---- */

void subnet_watch(Subnet *s)
{
    g_queue_clear_full(&s->frames, g_free);
    g_queue_init(&s->frames);
    s->watched = true;
}

SubnetFrame *subnet_next_frame(Subnet *s, unsigned from)
{
    for (GList *item = s->frames.head; item; item = item->next) {
        SubnetFrame *frame = item->data;

        if (frame->from == from) {
            g_queue_delete_link(&s->frames, item);
            return frame;
        }
    }
    g_error("no frame from side %u", from);
}

void subnet_no_frames(Subnet *s)
{
    g_assert_cmpuint(s->frames.length, ==, 0);
}

void subnet_put(Subnet *s, unsigned from, HcaPacket *packet,
                const void *payload)
{
    uint8_t frame[HCA_MAX_PACKET_SIZE], header[HCA_FRAME_HEADER_SIZE];
    size_t len = hca_ib_build(packet, frame);

    memcpy(frame + len, payload, packet->payload_len);
    len = hca_ib_seal(packet, frame, len + packet->payload_len);
    hca_frame_write_header(header, HCA_FRAME_PACKET, packet->vl, len);
    lab_cable_inject(s->lab, from, header, sizeof(header));
    lab_cable_inject(s->lab, from, frame, len);
}

void subnet_inject(Subnet *s, unsigned from, HcaPacket *packet,
                   const void *payload)
{
    subnet_put(s, from, packet, payload);
    lab_run(s->lab);
}

HcaPacket subnet_packet(Subnet *s, unsigned which)
{
    return (HcaPacket) {
        .vl = which == SUBNET_SMI ? 15 : 0,
        .slid = which == SUBNET_SMI ? 0xffff : SUBNET_LID(0),
        .dlid = which == SUBNET_SMI ? 0xffff : SUBNET_LID(1),
        .opcode = HCA_BTH_OPCODE(HCA_BTH_UD, HCA_SEND_ONLY),
        .pkey = HCA_DEFAULT_PKEY,
        .dest_qp = which,
        .src_qp = which,
        .qkey = which == SUBNET_SMI ? 0 : SUBNET_QKEY,
        .payload_len = HCA_MAD_SIZE,
    };
}

/* ---- data ---- */

Qp *subnet_ud(Subnet *s, unsigned side)
{
    return pair_new_ud(s->pair, side);
}

static unsigned side_of(const Subnet *s, const Qp *qp)
{
    return qp->drv == s->pair->drv[1];
}

void subnet_send_data(Subnet *s, Qp *from, const UdAddress *to)
{
    unsigned side = side_of(s, from);
    SendWr wr;
    Sge sge;
    Wc wc;

    wr = pair_send(s->pair, side, RDMA_HCA_OPCODE_SEND, 7, &sge, SUBNET_DATA,
                   100, 0);
    wr.ud = to;
    g_assert_true(qp_post_send(from, &wr, 1));
    cq_expect(s->pair->cq[side], &wc, 7, 0);
    lab_run(s->lab);
}

bool subnet_receive_data(Subnet *s, Qp *qp, Wc *wc)
{
    lab_run(s->lab);
    return cq_poll(s->pair->cq[side_of(s, qp)], wc);
}

bool subnet_passes(Subnet *s, unsigned from, uint16_t lid)
{
    Qp *qp[2] = { subnet_ud(s, 0), subnet_ud(s, 1) };
    UdAddress to = { .dlid = lid, .dqpn = qp[!from]->qpn, .qkey = DATA_QKEY };
    bool passed;
    Wc wc;

    pair_post_recv(s->pair, !from, qp[!from], 8, SUBNET_DATA, 1024);
    subnet_send_data(s, qp[from], &to);
    passed = subnet_receive_data(s, qp[!from], &wc);
    qp_destroy(qp[0]);
    qp_destroy(qp[1]);
    return passed;
}

uint32_t subnet_changes(Subnet *s, unsigned side)
{
    struct rdma_hca_eqe eqe;
    uint32_t changes = 0;

    lab_run(s->lab);
    while (driver_event(s->pair->drv[side], RDMA_HCA_EVENT_PORT_MNG, &eqe)) {
        g_assert_cmpuint(GUINT32_FROM_LE(eqe.port.port), ==, 1);
        changes |= GUINT32_FROM_LE(eqe.port.changes);
    }
    return changes;
}
