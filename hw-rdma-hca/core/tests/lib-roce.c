/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-roce.h"

#include <string.h>

#include "../counters.h"
#include "../link/framing.h"

#define MR_LEN 65536
#define LOG_CQ 8
#define MAX_FRAME                                                              \
    (HCA_MAX_ROCE_HEADER_SIZE + HCA_MAX_MTU + HCA_MAX_TRAILER_SIZE)

static void rewrite(uint8_t *frame, size_t len, RoceEdit *edit)
{
    uint8_t again[MAX_FRAME];
    HcaPacket packet;
    size_t at;

    g_assert_cmpint(hca_roce_parse(&packet, frame, len), ==, HCA_PARSE_OK);
    edit(&packet);
    at = hca_roce_build(&packet, again);
    if (packet.payload_len) {
        memcpy(again + at, packet.payload, packet.payload_len);
    }
    g_assert_cmpuint(hca_roce_seal(&packet, again, at + packet.payload_len), ==,
                     len);
    memcpy(frame, again, len);
}

static CableFate tap(void *opaque, unsigned from, uint8_t *frame, size_t len)
{
    RoceBed *bed = opaque;
    const RoceWeather *weather = &bed->weather[from];
    HcaPacket packet;

    if (hca_roce_parse(&packet, frame, len) != HCA_PARSE_OK) {
        return CABLE_DELIVER;
    }
    bed->seen[from]++;
    if (packet.opcode == HCA_BTH_CNP) {
        bed->cnps[from]++;
        bed->cnp = packet;
    }
    if (weather->lost) {
        return CABLE_DROP;
    }
    if (weather->nth &&
        (bed->seen[from] < weather->nth || bed->seen[from] > weather->last)) {
        return CABLE_DELIVER;
    }
    if (weather->edit) {
        rewrite(frame, len, weather->edit);
    }
    if (weather->mark) {
        g_assert_true(hca_roce_mark(frame, len));
    }
    return weather->fate;
}

void roce_init(RoceBed *bed, const HcaConfig config[2], uint8_t service,
               const QpAttr *attr)
{
    HcaConfig usual[2];
    QpAttr defaults;

    memset(bed, 0, sizeof(*bed));
    lab_config_roce(&usual[0], 0);
    lab_config_roce(&usual[1], 1);
    bed->pair = pair_new_with(5, MR_LEN, config ? config : usual, tap, bed);
    bed->lab = bed->pair->lab;
    qp_attr_init(&defaults);
    for (unsigned i = 0; i < 2; i++) {
        QpConfig qp_config;

        bed->drv[i] = bed->pair->drv[i];
        bed->cq[i] = cq_new(bed->drv[i], LOG_CQ, 2);
        qp_config_init(&qp_config, bed->pair->pd[i], bed->cq[i]);
        qp_config.service = service;
        bed->qp[i] = qp_new(bed->drv[i], &qp_config);
    }
    qp_connect(bed->qp[0], bed->qp[1], attr ? attr : &defaults);
    pair_connect(bed->pair, NULL, bed->bystander);
    driver_poll_eq(bed->drv[1], EQ_ASYNC);
    bed->interrupts = bed->lab->host[1].msix[EQ_ASYNC];
}

void roce_free(RoceBed *bed)
{
    for (unsigned i = 0; i < 2; i++) {
        roce_weather(bed, i, (RoceWeather) { .nth = 0 });
    }
    pair_check_works(bed->pair, bed->bystander, 0);
    pair_check_works(bed->pair, bed->bystander, 1);
    pair_free(bed->pair);
}

void roce_weather(RoceBed *bed, unsigned side, RoceWeather weather)
{
    if (weather.nth && !weather.last) {
        weather.last = weather.nth;
    }
    bed->weather[side] = weather;
    bed->seen[side] = bed->cnps[side] = 0;
}

SendWr *roce_request(RoceBed *bed, unsigned i, uint8_t opcode, uint32_t len)
{
    bed->wr[i] = pair_send(bed->pair, 0, opcode, i, &bed->sge[i], 0, len, 0);
    return &bed->wr[i];
}

void roce_post(RoceBed *bed, unsigned n)
{
    g_assert_true(qp_post_send(bed->qp[0], bed->wr, n));
}

void roce_post_recv(RoceBed *bed, unsigned n, uint32_t len)
{
    for (unsigned i = 0; i < n; i++) {
        pair_post_recv(bed->pair, 1, bed->qp[1], i, 0, len);
    }
}

static bool never(void *opaque)
{
    return false;
}

void roce_run(RoceBed *bed, int64_t ns)
{
    if (ns) {
        lab_wait(bed->lab, never, NULL, ns);
    } else {
        lab_run(bed->lab);
    }
}

void roce_expect(RoceBed *bed, unsigned side, uint8_t syndrome)
{
    Wc wc;

    g_assert_true(cq_wait(bed->cq[side], &wc, PAIR_PATIENCE));
    g_assert_cmphex(wc.syndrome, ==, syndrome);
    g_assert_cmphex(wc.qpn, ==, bed->qp[side]->qpn);
}

uint64_t roce_counter(RoceBed *bed, unsigned side, const char *name)
{
    for (unsigned i = 0; i < hca_counters_number(); i++) {
        g_autofree char *full = NULL;
        HcaCounter counter;

        hca_counter_get(bed->lab->host[side].hca, i, &counter);
        full = g_strdup_printf("%s_%s", counter.unit, counter.name);
        if (g_str_equal(full, name)) {
            return counter.value;
        }
    }
    g_error("no counter %s", name);
}

void roce_counted(RoceBed *bed, unsigned side, const char *name, uint64_t n)
{
    if (roce_counter(bed, side, name) != n) {
        g_error("%s of side %u is %" G_GUINT64_FORMAT
                " and not %" G_GUINT64_FORMAT,
                name, side, roce_counter(bed, side, name), n);
    }
}

void roce_headers(RoceBed *bed, unsigned from, HcaPacket *packet)
{
    roce_headers_along(bed, from, GID_LINK_LOCAL, packet);
}

void roce_headers_along(RoceBed *bed, unsigned from, unsigned gid,
                        HcaPacket *packet)
{
    const Gid *source = &bed->drv[from]->gid[gid];
    const Gid *dest = &bed->drv[!from]->gid[gid];

    packet->is_ipv4 = gid == GID_IPV4 || gid == GID_VLAN_IPV4;
    packet->has_vlan = source->vlan;
    packet->vlan_tci = source->vlan;
    memcpy(packet->sgid.raw, source->gid, sizeof(packet->sgid));
    memcpy(packet->dgid.raw, dest->gid, sizeof(packet->dgid));
    memcpy(packet->smac, source->mac, sizeof(packet->smac));
    memcpy(packet->dmac, dest->mac, sizeof(packet->dmac));
    packet->udp_sport = 0xc000;
    packet->hop_limit = 64;
    packet->pkey = 0xffff;
    packet->dest_qp = bed->qp[!from]->qpn;
}

void roce_inject(RoceBed *bed, unsigned from, HcaPacket *packet)
{
    uint8_t frame[MAX_FRAME];
    size_t len = hca_roce_build(packet, frame);

    memset(frame + len, 0, packet->payload_len);
    len = hca_roce_seal(packet, frame, len + packet->payload_len);
    roce_inject_frame(bed, from, frame, len);
}

void roce_inject_frame(RoceBed *bed, unsigned from, const uint8_t *frame,
                       size_t len)
{
    uint8_t header[HCA_FRAME_HEADER_SIZE];

    hca_frame_write_header(header, HCA_FRAME_PACKET, 0, len);
    lab_cable_inject(bed->lab, from, header, sizeof(header));
    lab_cable_inject(bed->lab, from, frame, len);
    lab_run(bed->lab);
}
