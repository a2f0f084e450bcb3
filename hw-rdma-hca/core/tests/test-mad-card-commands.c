/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands of an InfiniBand port's management: CONF_SPECIAL_QP, MAD_IFC, SET_IB,
 * SET_NODE_DESC.
 */
#include <string.h>

#include "lib-subnet.h"

#define GET 0x01
#define SET 0x02
#define DIRECTED 0x81
#define LID_ROUTED 0x01
#define NODE_INFO 0x11
#define PORT_INFO 0x15

static uint64_t count(const Subnet *s, unsigned side, const char *name)
{
    return pair_counter(s->pair, side, name);
}

/* ---- CONF_SPECIAL_QP ---- */

static void test_conf_special_qp(void)
{
    Subnet *s = subnet_new(9020);
    uint32_t qpn;

    for (unsigned which = 2; which < 256; which++) {
        g_assert_cmphex(subnet_conf(s, 0, which, 10), ==,
                        RDMA_HCA_STAT_BAD_PARAM);
    }
    for (unsigned which = 0; which < 2; which++) {
        g_assert_cmphex(subnet_conf(s, 0, which, 1), ==,
                        RDMA_HCA_STAT_BAD_INDEX);
        g_assert_cmphex(subnet_conf(s, 0, which, 1u << 8), ==,
                        RDMA_HCA_STAT_BAD_INDEX);
        g_assert_cmphex(subnet_conf(s, 0, which, UINT32_MAX), ==,
                        RDMA_HCA_STAT_BAD_INDEX);
        g_assert_cmphex(subnet_conf(s, 0, which, 0), ==, 0);
    }
    qpn = subnet_ud(s, 0)->qpn; /* is no more in RST */
    g_assert_cmphex(subnet_conf(s, 0, 0, qpn), ==, RDMA_HCA_STAT_BAD_QP_STATE);
    subnet_take(s, 0, SUBNET_SMI);
    qpn = s->port[0][SUBNET_SMI].qp->qpn;
    g_assert_cmphex(subnet_conf(s, 0, 0, 99), ==, RDMA_HCA_STAT_BAD_QP_STATE);
    g_assert_cmphex(subnet_conf(s, 0, 0, 0), ==, RDMA_HCA_STAT_BAD_QP_STATE);
    g_assert_cmphex(subnet_conf(s, 0, 1, qpn), ==, RDMA_HCA_STAT_BAD_QP_STATE);
    qp_destroy(s->port[0][SUBNET_SMI].qp);
    g_assert_cmphex(subnet_conf(s, 0, 0, qpn), ==, 0); /* the same again */
    g_assert_cmphex(subnet_conf(s, 0, 1, qpn), ==, RDMA_HCA_STAT_BAD_RESOURCE);
    g_assert_cmphex(subnet_conf(s, 0, 0, 99), ==, 0);
    g_assert_cmphex(subnet_conf(s, 0, 1, qpn), ==, 0);
    subnet_free(s);
}

/* A number has been said, and there is no QP: what comes is nobody's. */
static void test_special_absent(void)
{
    Subnet *s = subnet_new(9023);

    subnet_bring_up(s);
    for (unsigned which = 0; which < 2; which++) {
        HcaPacket packet = subnet_packet(s, which);

        g_assert_cmphex(subnet_conf(s, 1, which, 100 + which), ==, 0);
        subnet_smp(s, which ? HCA_CLASS_PERF : DIRECTED, GET, NODE_INFO, 0);
        subnet_watch(s);
        subnet_inject(s, 0, &packet, s->mad);
        subnet_no_frames(s);
        g_assert_cmpuint(pair_drops(s->pair, 1, HCA_DROP_QPN), ==, which + 1);
    }
    subnet_free(s);
}

/* Only a datagram QP may be one. */
static void test_special_service(void)
{
    static const uint8_t services[] = { RDMA_HCA_QP_ST_RC, RDMA_HCA_QP_ST_UC };
    Subnet *s = subnet_new(9021);

    for (unsigned which = 0; which < 2; which++) {
        g_assert_cmphex(subnet_conf(s, 0, which, 100 + which), ==, 0);
        for (unsigned i = 0; i < G_N_ELEMENTS(services); i++) {
            QpConfig config;
            QpAttr attr;
            Qp *qp;

            qp_config_init(&config, s->pair->pd[0], s->pair->cq[0]);
            config.service = services[i];
            qp = qp_new_number(s->pair->drv[0], &config, 100 + which);
            qp_attr_init(&attr);
            g_assert_cmphex(qp_to_init(qp, &attr), ==, RDMA_HCA_STAT_BAD_PARAM);
            qp_destroy(qp);
        }
    }
    subnet_free(s);
}

/* A QP with the number that a special one had is an ordinary one. */
static void test_special_number_again(void)
{
    Subnet *s = subnet_new(9022);
    Qp *qp[2];
    UdAddress to;
    uint32_t qpn;
    Wc wc;

    subnet_bring_up(s);
    subnet_take(s, 1, SUBNET_GSI);
    qpn = s->port[1][SUBNET_GSI].qp->qpn;
    subnet_give_up(s, 1, SUBNET_GSI);
    qp[0] = subnet_ud(s, 0);
    qp[1] = subnet_ud(s, 1);
    to = (UdAddress) { .dlid = SUBNET_LID(1),
                       .dqpn = qp[1]->qpn,
                       .qkey = 0x11111111 };
    g_assert_cmpuint(qp[1]->qpn, !=, qpn);
    pair_post_recv(s->pair, 1, qp[1], 3, SUBNET_DATA, 1024);
    subnet_send_data(s, qp[0], &to);
    g_assert_true(subnet_receive_data(s, qp[1], &wc));
    g_assert_cmpuint(wc.rqpn, ==, qp[0]->qpn);
    subnet_free(s);
}

/* ---- MAD_IFC ---- */

static void test_mad_ifc(void)
{
    Subnet *s = subnet_new(9030);

    subnet_smp(s, DIRECTED, GET, NODE_INFO, 0);
    g_assert_cmphex(subnet_mad_ifc(s, 0, 0), ==, 0);
    subnet_expect_node_info(s, s->reply + 64, 0);
    g_assert_cmphex(get_be16(s->reply + 4), ==, 0x8000);
    subnet_smp(s, HCA_CLASS_PERF, GET, 0x12, 0)[1] = 1;
    g_assert_cmphex(subnet_mad_ifc(s, 0, 0), ==, 0);
    g_assert_cmphex(get_be16(s->reply + 4), ==, 0);
    /* A status in the answer is no error of the command. */
    subnet_smp(s, LID_ROUTED, GET, 0x20, 0);
    g_assert_cmphex(subnet_mad_ifc(s, 0, 0), ==, 0);
    g_assert_cmphex(get_be16(s->reply + 4), ==, 0x000c);
    subnet_free(s);
}

/* What is not answered: BAD_PKT, and the outbox is left alone. */
static void test_mad_ifc_bad_pkt(void)
{
    static const uint8_t methods[] = { 0x03, 0x05, 0x06, 0x07, 0x81, 0x87 };
    Subnet *s = subnet_new(9031);

    for (unsigned i = 0; i < G_N_ELEMENTS(methods); i++) {
        subnet_smp(s, LID_ROUTED, methods[i], NODE_INFO, 0);
        g_assert_cmphex(subnet_mad_ifc(s, 0, 0), ==, RDMA_HCA_STAT_BAD_PKT);
    }
    subnet_smp(s, LID_ROUTED, GET, NODE_INFO, 0);
    s->mad[0] = 2;
    g_assert_cmphex(subnet_mad_ifc(s, 0, 0), ==, RDMA_HCA_STAT_BAD_PKT);
    g_assert_cmpuint(count(s, 0, "ceu_status_bad_pkt"), ==,
                     G_N_ELEMENTS(methods) + 1);
    subnet_free(s);
}

static void test_mad_ifc_mkey(void)
{
    Subnet *s = subnet_new(9032);
    uint8_t info[64];

    subnet_port_info(s, 0, info);
    put_be64(info, 0x77);
    info[34] |= 0x80; /* protection 2 */
    subnet_set_port_info(s, 0, info);
    for (unsigned op_modifier = 0; op_modifier < 8; op_modifier++) {
        bool ignore = op_modifier & RDMA_HCA_MAD_IGNORE_MKEY;

        for (uint64_t key = 0x76; key <= 0x77; key++) {
            s->m_key = key;
            subnet_smp(s, LID_ROUTED, GET, PORT_INFO, 0);
            g_assert_cmphex(subnet_mad_ifc(s, 0, op_modifier), ==,
                            ignore || key == 0x77 ? 0 : RDMA_HCA_STAT_BAD_PKT);
        }
    }
    g_assert_cmpuint(count(s, 0, "mgmt_mkey_violations"), ==, 4);
    subnet_free(s);
}

/* Port in the low half of IN_MODIFIER, SLID in the high; what is behind a MAD. */
static void test_mad_ifc_modifiers(void)
{
    Subnet *s = subnet_new(9033);
    Driver *drv = s->pair->drv[0];
    struct rdma_hca_mad_ifc box;

    memset(&box, 0xa5, sizeof(box));
    subnet_smp(s, LID_ROUTED, GET, NODE_INFO, 0);
    memcpy(box.mad, s->mad, HCA_MAD_SIZE);
    host_write(drv->host, drv->mbox_in, &box, sizeof(box));
    for (uint32_t port = 0; port < 0x300; port++) {
        for (unsigned extended = 0; extended < 2; extended++) {
            uint8_t status = driver_cmd(
                drv, RDMA_HCA_CMD_MAD_IFC, drv->mbox_in, port | port << 20,
                extended ? RDMA_HCA_MAD_EXTENDED : 0, drv->mbox_out, NULL);

            g_assert_cmphex(status, ==,
                            port == 1 ? 0 : RDMA_HCA_STAT_BAD_INDEX);
        }
    }
    host_read(drv->host, drv->mbox_out, s->reply, HCA_MAD_SIZE);
    subnet_expect_node_info(s, s->reply + 64, 0);
    /* The longer inbox has to be memory, too. */
    g_assert_cmphex(driver_cmd(drv, RDMA_HCA_CMD_MAD_IFC, HOST_MMIO_BASE - 256,
                               1, RDMA_HCA_MAD_EXTENDED, drv->mbox_out, NULL),
                    ==, RDMA_HCA_STAT_BAD_PARAM);
    subnet_free(s);
}

/* ---- SET_IB, SET_NODE_DESC ---- */

static uint8_t set_ib(Subnet *s, uint32_t port, uint32_t flags, uint32_t mask,
                      uint64_t guid)
{
    struct rdma_hca_set_ib set = {
        .flags = GUINT32_TO_BE(flags),
        .cap_mask = GUINT32_TO_BE(mask),
        .guid_h = GUINT32_TO_BE(RDMA_HCA_HI32(guid)),
        .guid_l = GUINT32_TO_BE(RDMA_HCA_LO32(guid)),
    };

    return driver_cmd_in(s->pair->drv[0], RDMA_HCA_CMD_SET_IB, &set,
                         sizeof(set), port, 0);
}

static uint32_t cap_mask(Subnet *s)
{
    return get_be32(subnet_get_own(s, 0, PORT_INFO, 1) + 20);
}

/* IsSM, CM, SNMP, device management, vendor class, boot management. */
#define SOFTWARE 0x009b0002u

static void test_set_ib_caps(void)
{
    Subnet *s = subnet_new(9040);
    struct rdma_hca_port port;
    uint32_t own = cap_mask(s);

    g_assert_cmphex(own & SOFTWARE, ==, 0);
    for (unsigned i = 0; i < 32; i++) {
        g_assert_cmphex(set_ib(s, 1, 0, 1u << i, 0), ==, 0);
        g_assert_cmphex(cap_mask(s), ==, own | (SOFTWARE & 1u << i));
    }
    g_assert_cmphex(set_ib(s, 1, 0, UINT32_MAX, 0), ==, 0);
    g_assert_cmphex(cap_mask(s), ==, own | SOFTWARE);
    subnet_query(s, 0, &port);
    g_assert_cmphex(GUINT32_FROM_BE(port.cap_mask), ==, own | SOFTWARE);
    g_assert_cmphex(set_ib(s, 1, 0, 0, 0), ==, 0);
    g_assert_cmphex(cap_mask(s), ==, own);
    g_assert_cmphex(set_ib(s, 0, 0, 2, 0), ==, RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(set_ib(s, 2, 0, 2, 0), ==, RDMA_HCA_STAT_BAD_INDEX);
    g_assert_cmphex(cap_mask(s), ==, own);
    subnet_free(s);
}

static void test_set_ib_flags(void)
{
    const HcaKeyViolation bad = { .key = 1 };
    Subnet *s = subnet_new(9041);
    const uint8_t *info;

    hca_node_bad_qkey(subnet_card(s, 0)->port->node, 1, &bad);
    g_assert_cmphex(set_ib(s, 1, 0, 0, 0x1234), ==, 0);
    info = subnet_get_own(s, 0, PORT_INFO, 1);
    g_assert_cmpuint(get_be16(info + 48), ==, 1);
    g_assert_cmphex(get_be64(subnet_get_own(s, 0, NODE_INFO, 0) + 4), ==,
                    subnet_guid(s, 0));
    g_assert_cmphex(set_ib(s, 1, RDMA_HCA_SET_IB_RESET_QKEY, 0, 0x1234), ==, 0);
    info = subnet_get_own(s, 0, PORT_INFO, 1);
    g_assert_cmpuint(get_be16(info + 48), ==, 0);
    g_assert_cmphex(set_ib(s, 1, RDMA_HCA_SET_IB_SYSTEM_GUID, 0,
                           UINT64_C(0x123456789abcdef0)),
                    ==, 0);
    info = subnet_get_own(s, 0, NODE_INFO, 0);
    g_assert_cmphex(get_be64(info + 4), ==, UINT64_C(0x123456789abcdef0));
    g_assert_cmphex(get_be64(info + 12), ==, subnet_guid(s, 0));
    subnet_free(s);
}

static void test_set_node_desc(void)
{
    Subnet *s = subnet_new(9042);
    char text[64] = "guest hca0";

    g_assert_cmphex(driver_cmd_in(s->pair->drv[1], RDMA_HCA_CMD_SET_NODE_DESC,
                                  text, sizeof(text), 0, 0),
                    ==, 0);
    g_assert_cmpmem(subnet_get(s, 0x10, 0), 64, text, 64);
    memset(text, 0xff, sizeof(text)); /* no end */
    g_assert_cmphex(driver_cmd_in(s->pair->drv[1], RDMA_HCA_CMD_SET_NODE_DESC,
                                  text, sizeof(text), 0, 0),
                    ==, 0);
    g_assert_cmpmem(subnet_get(s, 0x10, 0), 64, text, 64);
    subnet_free(s);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    test_add("/mad/card/special/command", test_conf_special_qp);
    test_add("/mad/card/special/absent", test_special_absent);
    test_add("/mad/card/special/service", test_special_service);
    test_add("/mad/card/special/again", test_special_number_again);
    test_add("/mad/card/mad-ifc/answers", test_mad_ifc);
    test_add("/mad/card/mad-ifc/bad-pkt", test_mad_ifc_bad_pkt);
    test_add("/mad/card/mad-ifc/mkey", test_mad_ifc_mkey);
    test_add("/mad/card/mad-ifc/modifiers", test_mad_ifc_modifiers);
    test_add("/mad/card/set-ib/capabilities", test_set_ib_caps);
    test_add("/mad/card/set-ib/flags", test_set_ib_flags);
    test_add("/mad/card/set-node-desc", test_set_node_desc);
    return g_test_run();
}
