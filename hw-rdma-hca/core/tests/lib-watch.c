/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-watch.h"

#include <string.h>

#include "../wire/wire.h"

const WatchKind watch_kinds[NUM_WATCH_KINDS] = {
    { "link-local", GID_LINK_LOCAL, false, false, 0 },
    { "ipv4", GID_IPV4, false, true, 0 },
    { "ipv6", GID_IPV6, false, false, 0 },
    { "vlan-ipv4", GID_VLAN_IPV4, false, true, VLAN_ID },
    { "vlan-ipv6", GID_VLAN_IPV6, false, false, VLAN_ID },
    { "document", GID_IPV4, true, true, 0 },
};

/* Every address in a frame is the one that its path's table entry says. */
static void check_frame(const Watch *watch, unsigned from,
                        const HcaPacket *packet)
{
    const Gid *source = &watch->drv[from]->gid[watch->kind->index];
    const Gid *dest = &watch->drv[!from]->gid[watch->kind->index];
    unsigned ecn = watch->tclass & HCA_ECN_MASK;

    g_assert_cmpmem(packet->smac, 6, source->mac, 6);
    g_assert_cmpmem(packet->dmac, 6, dest->mac, 6);
    g_assert_cmpmem(packet->sgid.raw, 16, source->gid, 16);
    g_assert_cmpmem(packet->dgid.raw, 16, dest->gid, 16);
    g_assert_true(packet->is_ipv4 == watch->kind->ipv4);
    g_assert_true(packet->has_vlan == (watch->kind->vlan != 0));
    if (packet->has_vlan) {
        g_assert_cmpuint(packet->vlan_tci, ==,
                         watch->priority << 13 | watch->kind->vlan);
    }
    g_assert_cmphex(packet->tclass, ==,
                    watch->tclass | (ecn ? 0 : HCA_ECN_ECT0));
    g_assert_cmpuint(packet->hop_limit, ==, 64);
    g_assert_cmpuint(packet->udp_sport, >=, 0xc000);
}

static CableFate tap(void *opaque, unsigned from, uint8_t *frame, size_t len)
{
    Watch *watch = opaque;
    HcaPacket packet;

    g_assert_cmpint(hca_roce_parse(&packet, frame, len), ==, HCA_PARSE_OK);
    if (watch->kind) {
        check_frame(watch, from, &packet);
    }
    watch->frames[from]++;
    memcpy(watch->last[from], frame, len);
    watch->last_len[from] = len;
    return CABLE_DELIVER;
}

void watch_init(Watch *watch, uint32_t seed)
{
    memset(watch, 0, sizeof(*watch));
    watch->pair = pair_new_roce(seed, WATCH_MR_LEN, tap, watch);
    for (unsigned i = 0; i < 2; i++) {
        watch->drv[i] = watch->pair->drv[i];
        watch->hca[i] = watch->pair->lab->host[i].hca;
    }
}

void watch_free(Watch *watch)
{
    pair_free(watch->pair);
}

void watch_run(Watch *watch)
{
    lab_run(watch->pair->lab);
}

uint64_t watch_drops(const Watch *watch, unsigned side, HcaDropReason reason)
{
    return card_drops(watch->hca[side], reason);
}

/* Frames that the engine of side 1 left to the Ethernet function. */
uint64_t watch_left_alone(const Watch *watch)
{
    const Hca *hca = watch->hca[1];

    return card_counter(hca, "ethernet_rx_filtered") +
           card_counter(hca, "ethernet_rx_no_buffer") +
           card_counter(hca, "ethernet_rx_errors");
}

void watch_attr(QpAttr *attr, const WatchKind *kind)
{
    qp_attr_init(attr);
    attr->roce.sgid_index = kind->index;
    attr->roce.document = kind->document;
}

UdAddress watch_ud(Watch *watch, const WatchKind *kind, unsigned from,
                   const Qp *to)
{
    UdAddress ud = {
        .roce.sgid_index = kind->index,
        .roce.document = kind->document,
        .dqpn = to->qpn,
        .qkey = WATCH_QKEY,
    };

    ud_address_to(&ud, watch->drv[from], to->drv);
    return ud;
}

void watch_post_datagram(Watch *watch, Qp *qp, unsigned side, uint8_t opcode,
                         const UdAddress *ud, uint32_t len)
{
    Sge sge;
    SendWr wr = pair_send(watch->pair, side, opcode, 1, &sge, 0, len, 0);

    wr.ud = ud;
    g_assert_true(qp_post_send(qp, &wr, 1));
    watch_run(watch);
}

void watch_expect_sent(Watch *watch, unsigned side)
{
    Wc wc;

    cq_expect(watch->pair->cq[side], &wc, 1, 0);
    g_assert_true(wc.is_send);
}

void watch_expect_nothing(Watch *watch, unsigned side)
{
    Wc wc;

    watch_run(watch);
    g_assert_false(cq_poll(watch->pair->cq[side], &wc));
}
