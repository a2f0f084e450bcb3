/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A subnet of two InfiniBand cards on a cable: QP 0 and QP 1 in the hands of
 * software, the manager that it is, and the frames that it sees.
 */
#ifndef LIB_SUBNET_H
#define LIB_SUBNET_H

#include "../mad/mad.h"
#include "lib-pair.h"

#define SUBNET_SMI 0
#define SUBNET_GSI 1
#define SUBNET_AREA 131072u /* of each side's region */
#define SUBNET_DATA 65536u  /* where what is not of QP 0 and QP 1 may lie */
#define SUBNET_RECVS 8      /* that a special QP has, of 296 bytes */
#define SUBNET_GRH 40
#define SUBNET_QKEY 0x80010000u
/* LIDs that subnet_bring_up() gives; the manager is at side 0. */
#define SUBNET_LID(side) (0x40u + 0x10 * (side))

/* A packet on the cable: LRH to VCRC. */
typedef struct SubnetFrame {
    unsigned from;
    size_t len;
    uint8_t data[HCA_MAX_PACKET_SIZE];
} SubnetFrame;

typedef struct SubnetPort {
    Qp *qp;
    Cq *send_cq, *recv_cq;
    bool no_recv; /* a receive that was used is not posted again */
} SubnetPort;

typedef struct Subnet {
    Pair *pair;
    Lab *lab;
    SubnetPort port[2][2]; /* by side, SMI and GSI; without a QP at first */
    GQueue frames;         /* SubnetFrame, from subnet_watch() on */
    bool watched;
    uint64_t tid;
    uint64_t m_key; /* of SMPs */
    uint8_t mad[HCA_MAD_SIZE];
    uint8_t reply[HCA_MAD_SIZE];
} Subnet;

/* Two cards that are left to a manager; the cable is in, ports are Init. */
Subnet *subnet_new(uint32_t seed);
Subnet *subnet_new_with(uint32_t seed, const HcaConfig *config);
void subnet_config(HcaConfig config[2], HcaManaged a, HcaManaged b);
void subnet_free(Subnet *s);
Hca *subnet_card(const Subnet *s, unsigned side);
HcaNodePort *subnet_node_port(const Subnet *s, unsigned side);
uint64_t subnet_guid(const Subnet *s, unsigned side);

/* Software takes QP 0 or QP 1 of a side, and gives it up. */
uint8_t subnet_conf(Subnet *s, unsigned side, unsigned which, uint32_t qpn);
void subnet_take(Subnet *s, unsigned side, unsigned which);
void subnet_give_up(Subnet *s, unsigned side, unsigned which);
/* SUBNET_RECVS receives. */
void subnet_post_recvs(Subnet *s, unsigned side, unsigned which);

/* Post @mad; the completion is taken. The usual addresses. */
void subnet_send(Subnet *s, unsigned side, unsigned which, const UdAddress *to,
                 const uint8_t *mad);
UdAddress subnet_to_smi(uint16_t lid);
UdAddress subnet_to_gsi(uint16_t lid);
/* The next MAD that came; false: none, whatever time passes. */
bool subnet_receive(Subnet *s, unsigned side, unsigned which, Wc *wc,
                    uint8_t grh[SUBNET_GRH], uint8_t mad[HCA_MAD_SIZE]);
void subnet_expect_none(Subnet *s, unsigned side, unsigned which);

/* Begin an SMP in s->mad: by directed route one hop from side 0, or by LIDs. */
uint8_t *subnet_smp(Subnet *s, uint8_t class, uint8_t method,
                    uint16_t attribute, uint32_t modifier);
/* s->mad from QP 0 of side 0 to side 1 and back, by directed route; status. */
uint16_t subnet_ask(Subnet *s);
uint16_t subnet_set(Subnet *s, uint16_t attribute, uint32_t modifier,
                    const void *data);
const uint8_t *subnet_get(Subnet *s, uint16_t attribute, uint32_t modifier);

/* @data is NodeInfo of a side's card. */
void subnet_expect_node_info(const Subnet *s, const uint8_t *data,
                             unsigned side);

/* Of a side's own card, by MAD_IFC: s->mad; a Set, a Get, without an M_Key. */
uint8_t subnet_mad_ifc(Subnet *s, unsigned side, uint8_t op_modifier);
uint16_t subnet_set_own(Subnet *s, unsigned side, uint16_t attribute,
                        uint32_t modifier, const void *data);
const uint8_t *subnet_get_own(Subnet *s, unsigned side, uint16_t attribute,
                              uint32_t modifier);

/* PortInfo of a side with LIDs that are good, and no state: to be changed. */
void subnet_port_info(Subnet *s, unsigned side, uint8_t info[64]);
void subnet_set_port_info(Subnet *s, unsigned side, const uint8_t info[64]);
void subnet_set_state(Subnet *s, unsigned side, uint8_t state);
void subnet_set_lid(Subnet *s, unsigned side, uint16_t lid, uint8_t lmc);
unsigned subnet_state(Subnet *s, unsigned side);
/* All that a manager does: LIDs, then Armed, then Active. */
void subnet_bring_up(Subnet *s);
/* What QUERY_PORT says. */
void subnet_query(Subnet *s, unsigned side, struct rdma_hca_port *port);

/* Take down frames from now on; the next one of a side, g_free() it. */
void subnet_watch(Subnet *s);
SubnetFrame *subnet_next_frame(Subnet *s, unsigned from);
void subnet_no_frames(Subnet *s);
static inline unsigned subnet_frame_vl(const SubnetFrame *frame)
{
    return frame->data[0] >> 4;
}
/* A frame of side @from's that was never sent; then the cards come to rest. */
void subnet_put(Subnet *s, unsigned from, HcaPacket *packet,
                const void *payload);
void subnet_inject(Subnet *s, unsigned from, HcaPacket *packet,
                   const void *payload);
/* An SMP, or GMP, of side 0 for side 1, right as far as it goes. */
HcaPacket subnet_packet(Subnet *s, unsigned which);

/* An ordinary UD QP, and a message of side @from's to another. */
Qp *subnet_ud(Subnet *s, unsigned side);
void subnet_send_data(Subnet *s, Qp *from, const UdAddress *to);
bool subnet_receive_data(Subnet *s, Qp *qp, Wc *wc);
/* Whether a message passes from side @from to the other's @lid. */
bool subnet_passes(Subnet *s, unsigned from, uint16_t lid);
/* PORT_MNG since the last look: all bits. */
uint32_t subnet_changes(Subnet *s, unsigned side);

#endif /* LIB_SUBNET_H */
