/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-bed.h"

#include <string.h>

#include "../link/framing.h"

#define LOG_CQ 8
#define CQ_UAR 2 /* not the one of a Pair */
/* The most that a frame has beside its payload. */
#define OVERHEAD (HCA_MAX_ROCE_HEADER_SIZE + HCA_MAX_TRAILER_SIZE)

static const HcaEncap *encap_of(const Bed *bed)
{
    return bed->pair->lab->host[0].config.link_layer == HCA_LINK_LAYER_ROCE
               ? &hca_encap_roce
               : &hca_encap_ib;
}

/* ---- the cable ---- */

static void take_down(Bed *bed, const HcaPacket *packet)
{
    BedPacket *heard = g_new0(BedPacket, 1);

    heard->packet = *packet;
    memcpy(heard->data, packet->payload, packet->payload_len);
    heard->time = bed->lab->now;
    g_queue_push_tail(&bed->heard, heard);
}

static void rewrite(const HcaEncap *encap, HcaPacket *packet, uint8_t *frame,
                    size_t len, BedEdit *edit)
{
    g_autofree uint8_t *again = g_malloc(OVERHEAD + packet->payload_len);
    size_t at;

    edit(packet);
    at = encap->build(packet, again);
    if (packet->payload_len) {
        memcpy(again + at, packet->payload, packet->payload_len);
    }
    g_assert_cmpuint(encap->seal(packet, again, at + packet->payload_len), ==,
                     len);
    memcpy(frame, again, len);
}

static CableFate treat(Bed *bed, unsigned from, HcaPacket *packet,
                       uint8_t *frame, size_t len)
{
    const BedWeather *weather = &bed->weather[from];
    const HcaEncap *encap = encap_of(bed);

    bed->seen[from]++;
    if (packet->opcode == HCA_BTH_CNP) {
        bed->cnps[from]++;
        bed->cnp = *packet;
    }
    if (weather->lost) {
        return CABLE_DROP;
    }
    if (weather->nth &&
        (bed->seen[from] < weather->nth || bed->seen[from] > weather->last)) {
        return CABLE_DELIVER;
    }
    if (weather->edit) {
        rewrite(encap, packet, frame, len, weather->edit);
    }
    if (weather->mark) {
        g_assert_true(encap->mark(frame, len));
    }
    return weather->fate;
}

static CableFate tap(void *opaque, unsigned from, uint8_t *frame, size_t len)
{
    Bed *bed = opaque;
    HcaParseError error;
    HcaPacket packet;

    error = encap_of(bed)->parse(&packet, frame, len);
    if (bed->config.alone && from == bed->side) {
        g_assert_cmpint(error, ==, HCA_PARSE_OK);
        take_down(bed, &packet);
        return CABLE_DROP;
    }
    return error == HCA_PARSE_OK ? treat(bed, from, &packet, frame, len)
                                 : CABLE_DELIVER;
}

void bed_set_weather(Bed *bed, unsigned side, BedWeather weather)
{
    if (weather.nth && !weather.last) {
        weather.last = weather.nth;
    }
    bed->weather[side] = weather;
    bed->seen[side] = bed->cnps[side] = 0;
}

/* ---- set-up ---- */

static BedConfig alone(uint8_t service, unsigned side, uint32_t seed)
{
    BedConfig config = {
        .seed = seed,
        .side = side,
        .alone = true,
        .area = BED_AREA,
        .service = service,
    };

    qp_attr_init(&config.attr);
    config.attr.mtu = 1;
    return config;
}

BedConfig bed_requester(uint8_t service)
{
    BedConfig config = alone(service, 0, 61);

    config.attr.sq_psn = BED_PSN;
    config.attr.timeout = BED_TIMEOUT;
    config.attr.retry_cnt = 3;
    config.attr.rnr_retry = 3;
    if (service == RDMA_HCA_QP_ST_UD) {
        config.attr.mtu = 5;
    }
    return config;
}

BedConfig bed_responder(uint8_t service)
{
    BedConfig config = alone(service, 1, 41);

    config.own_cq = true;
    config.log_cq = LOG_CQ;
    config.rq_entries = 16;
    config.log_rq_entry = 7;
    config.attr.access = RDMA_HCA_ACCESS_REMOTE_WRITE |
                         RDMA_HCA_ACCESS_REMOTE_READ |
                         RDMA_HCA_ACCESS_REMOTE_ATOMIC;
    config.attr.max_dest_rd_atomic = 4;
    config.attr.rq_psn = BED_RQ_PSN;
    config.attr.min_rnr_timer = BED_RNR_CODE;
    return config;
}

BedConfig bed_connection(uint8_t service)
{
    BedConfig config = {
        .seed = 5,
        .bystander = true,
        .area = 65536,
        .own_cq = true,
        .log_cq = LOG_CQ,
        .service = service,
    };

    qp_attr_init(&config.attr);
    return config;
}

static void new_cq(Bed *bed, unsigned side, const BedConfig *config)
{
    bed->cqs[side] = config->own_cq
                         ? cq_new(bed->drv[side], config->log_cq, CQ_UAR)
                         : bed->pair->cq[side];
}

static Qp *new_qp(Bed *bed, unsigned side, const BedConfig *config)
{
    QpConfig qp;

    qp_config_init(&qp, bed->pair->pd[side], bed->cqs[side]);
    qp.service = config->service;
    if (config->rq_entries) {
        qp.rq_entries = config->rq_entries;
        qp.log_rq_entry = config->log_rq_entry;
    }
    return bed->qps[side] = qp_new(bed->drv[side], &qp);
}

static void look_at_qp(Bed *bed)
{
    bed->qp = bed->qps[bed->side];
    bed->cq = bed->cqs[bed->side];
    bed->hqp = card_qp(bed->hca, bed->qp->qpn);
}

/* There is another card. */
static void look_again(void *opaque)
{
    Bed *bed = opaque;

    bed->hca = bed->lab->host[bed->side].hca;
    bed->hqp = bed->qp ? hca_qp_peek(bed->hca->cm, bed->qp->qpn) : NULL;
}

void bed_make_qp(Bed *bed, const BedConfig *config)
{
    QpAttr attr = config->attr;
    Qp *qp;

    new_cq(bed, bed->side, config);
    qp = new_qp(bed, bed->side, config);
    attr.dest_qpn = BED_PEER_QPN;
    qp_attr_to(&attr, bed->drv[bed->side], bed->drv[!bed->side]);
    g_assert_cmphex(qp_to_init(qp, &attr), ==, 0);
    g_assert_cmphex(qp_to_rtr(qp, &attr), ==, 0);
    if (!config->stay_in_rtr) {
        g_assert_cmphex(qp_to_rts(qp, &attr), ==, 0);
    }
    look_at_qp(bed);
}

static void make_peer(Bed *bed)
{
    bed->data = pair_data(bed->pair, BED_AREA);
    bed_make_qp(bed, &bed->config);
    bed_headers(bed, !bed->side, &bed->peer);
    bed->psn = bed->config.attr.rq_psn;
}

void bed_connect(Bed *bed, const QpAttr *attr)
{
    for (unsigned i = 0; i < 2; i++) {
        new_qp(bed, i, &bed->config);
    }
    qp_connect(bed->qps[0], bed->qps[1], attr);
    look_at_qp(bed);
}

HcaFaultPlan bed_fault(HcaFaultPlace place, HcaFaultAction action,
                       uint8_t status)
{
    return (HcaFaultPlan) {
        .nrules = 1,
        .rule[0] = { .place = place,
                     .action = action,
                     .status = status,
                     .vendor_err = BED_VENDOR_ERR,
                     .probability = HCA_FAULT_ALWAYS,
                     .count = 1 },
    };
}

void bed_set_faults(Bed *bed, unsigned side, const HcaFaultPlan *plan)
{
    host_set_faults(&bed->lab->host[side], plan);
}

void bed_revive(Bed *bed)
{
    QpAttr attr;

    qp_attr_init(&attr);
    attr.sq_psn = pair_rand(bed->pair, 0, 1 << 24);
    attr.rq_psn = pair_rand(bed->pair, 0, 1 << 24);
    for (unsigned i = 0; i < 2; i++) {
        bed_set_faults(bed, i, NULL);
        g_assert_cmphex(qp_to_rst(bed->qps[i]), ==, 0);
    }
    qp_connect(bed->qps[0], bed->qps[1], &attr);
    pair_check_works(bed->pair, bed->qps, 0);
    pair_check_works(bed->pair, bed->qps, 1);
}

Bed *bed_new_as(const BedConfig *config)
{
    Bed *bed = g_new0(Bed, 1);

    bed->config = *config;
    bed->side = config->side;
    bed->service = config->service;
    bed->pair = pair_new_with(config->seed, config->area, config->cards, NULL,
                              NULL);
    bed->lab = bed->pair->lab;
    for (unsigned i = 0; i < 2; i++) {
        bed->drv[i] = bed->pair->drv[i];
    }
    bed->hca = bed->lab->host[bed->side].hca;
    bed->lab->reloaded = look_again;
    bed->lab->reloaded_opaque = bed;
    bed->mr = bed->pair->mr[bed->side];
    lab_tap(bed->lab, tap, bed);
    if (config->alone) {
        make_peer(bed);
    } else {
        for (unsigned i = 0; i < 2; i++) {
            new_cq(bed, i, config);
        }
        bed_connect(bed, &config->attr);
    }
    if (config->bystander) {
        pair_connect(bed->pair, NULL, bed->bystander);
    }
    bed->config.cards = NULL; /* the caller's */
    driver_poll_eq(bed->drv[1], EQ_ASYNC);
    bed->interrupts = bed->lab->host[1].msix[EQ_ASYNC];
    return bed;
}

Bed *bed_new_rc(uint32_t seed, const QpAttr *attr)
{
    BedConfig config = bed_connection(RDMA_HCA_QP_ST_RC);

    config.seed = seed;
    if (attr) {
        config.attr = *attr;
    }
    return bed_new_as(&config);
}

Bed *bed_new_roce(uint8_t service, const QpAttr *attr, const HcaConfig *cards)
{
    BedConfig config = bed_connection(service);
    HcaConfig usual[2];

    lab_config_roce(&usual[0], 0);
    lab_config_roce(&usual[1], 1);
    config.cards = cards ? cards : usual;
    if (attr) {
        config.attr = *attr;
    }
    return bed_new_as(&config);
}

void bed_free(Bed *bed)
{
    bed_expect_quiet(bed);
    if (bed->config.bystander) {
        for (unsigned i = 0; i < 2; i++) {
            bed_set_weather(bed, i, (BedWeather) { .nth = 0 });
        }
        pair_check_works(bed->pair, bed->bystander, 0);
        pair_check_works(bed->pair, bed->bystander, 1);
    }
    bed_drop(bed);
}

void bed_drop(Bed *bed)
{
    pair_free(bed->pair);
    g_free(bed->data);
    g_free(bed);
}

void bed_run(Bed *bed)
{
    lab_run(bed->lab);
}

void bed_run_for(Bed *bed, int64_t ns)
{
    lab_run_for(bed->lab, ns);
}

/* ---- what comes of it ---- */

uint64_t bed_counter(const Bed *bed, unsigned side, const char *name)
{
    return pair_counter(bed->pair, side, name);
}

void bed_counted(const Bed *bed, unsigned side, const char *name, uint64_t n)
{
    card_counted(bed->lab->host[side].hca, side ? "side 1" : "side 0", name, n);
}

void bed_expect_drops(const Bed *bed, HcaDropReason reason, uint64_t n)
{
    g_assert_cmpuint(card_drops(bed->hca, reason), ==, n);
}

void bed_expect_state(Bed *bed, unsigned state)
{
    g_assert_cmpuint(qp_state(bed->qp), ==, state);
}

void bed_expect_none(Bed *bed)
{
    Wc wc;

    bed_run(bed);
    g_assert_false(cq_poll(bed->cq, &wc));
}

/* ---- a frame out of nowhere ---- */

void bed_headers_along(const Bed *bed, unsigned from, unsigned gid,
                       HcaPacket *packet)
{
    driver_roce_headers(bed->drv[from], bed->drv[!from], gid, packet);
    packet->pkey = HCA_DEFAULT_PKEY;
    packet->dest_qp = bed->qps[!from]->qpn;
}

void bed_headers(const Bed *bed, unsigned from, HcaPacket *packet)
{
    if (bed->drv[from]->roce) {
        bed_headers_along(bed, from, GID_LINK_LOCAL, packet);
        return;
    }
    packet->slid = bed->lab->host[from].config.lid;
    packet->dlid = bed->lab->host[!from].config.lid;
    driver_gid(bed->drv[from], packet->sgid.raw);
    packet->pkey = HCA_DEFAULT_PKEY;
    packet->dest_qp = bed->qps[!from]->qpn;
}

static void put_frame(Bed *bed, unsigned from, const uint8_t *frame, size_t len)
{
    uint8_t header[HCA_FRAME_HEADER_SIZE];

    hca_frame_write_header(header, HCA_FRAME_PACKET, 0, len);
    lab_cable_inject(bed->lab, from, header, sizeof(header));
    lab_cable_inject(bed->lab, from, frame, len);
}

void bed_put_from(Bed *bed, unsigned from, HcaPacket *packet)
{
    const HcaEncap *encap = encap_of(bed);
    g_autofree uint8_t *frame = g_malloc0(OVERHEAD + packet->payload_len);
    size_t len = encap->build(packet, frame);

    if (packet->payload && packet->payload_len) {
        memcpy(frame + len, packet->payload, packet->payload_len);
    }
    len = encap->seal(packet, frame, len + packet->payload_len);
    put_frame(bed, from, frame, len);
}

void bed_inject(Bed *bed, unsigned from, HcaPacket *packet)
{
    bed_put_from(bed, from, packet);
    bed_run(bed);
}

void bed_inject_frame(Bed *bed, unsigned from, const uint8_t *frame, size_t len)
{
    put_frame(bed, from, frame, len);
    bed_run(bed);
}

/* ---- two QPs ---- */

SendWr *bed_request(Bed *bed, unsigned i, uint8_t opcode, uint32_t len)
{
    bed->wr[i] = pair_send(bed->pair, 0, opcode, i, &bed->sge[i], 0, len, 0);
    return &bed->wr[i];
}

void bed_post_requests(Bed *bed, unsigned n)
{
    g_assert_true(qp_post_send(bed->qps[0], bed->wr, n));
}

void bed_post_recvs(Bed *bed, unsigned n, uint32_t len)
{
    bed_post_recvs_on(bed, 1, 0, n, len);
}

void bed_post_recvs_on(Bed *bed, unsigned side, uint64_t first, unsigned n,
                       uint32_t len)
{
    for (unsigned i = 0; i < n; i++) {
        pair_post_recv(bed->pair, side, bed->qps[side], first + i, 0, len);
    }
}

void bed_expect_end(Bed *bed, unsigned side, uint8_t syndrome)
{
    Wc wc;

    g_assert_true(cq_wait(bed->cqs[side], &wc, PAIR_PATIENCE));
    g_assert_cmphex(wc.syndrome, ==, syndrome);
    g_assert_cmphex(wc.qpn, ==, bed->qps[side]->qpn);
}

/* ---- one QP ---- */

/* @packet comes along the way that @headers says. */
static void put_headers(HcaPacket *packet, const HcaPacket *headers)
{
    packet->slid = headers->slid;
    packet->dlid = headers->dlid;
    packet->sl = headers->sl;
    packet->vl = headers->vl;
    packet->has_grh = headers->has_grh;
    packet->tclass = headers->tclass;
    packet->flow_label = headers->flow_label;
    packet->hop_limit = headers->hop_limit;
    packet->sgid = headers->sgid;
    packet->dgid = headers->dgid;
    packet->is_ipv4 = headers->is_ipv4;
    packet->has_vlan = headers->has_vlan;
    packet->vlan_tci = headers->vlan_tci;
    packet->udp_sport = headers->udp_sport;
    memcpy(packet->smac, headers->smac, sizeof(packet->smac));
    memcpy(packet->dmac, headers->dmac, sizeof(packet->dmac));
    packet->pkey = headers->pkey;
    packet->dest_qp = headers->dest_qp;
}

void bed_put(Bed *bed, HcaPacket *packet, uint32_t at)
{
    put_headers(packet, &bed->peer);
    packet->dest_qp = bed->qp->qpn;
    packet->psn &= HCA_PSN_MASK;
    packet->payload = bed->data + at;
    bed_put_from(bed, !bed->side, packet);
}

BedPacket *bed_next(Bed *bed, uint8_t op, uint32_t psn)
{
    static const uint8_t bth_service[] = {
        [RDMA_HCA_QP_ST_RC] = HCA_BTH_RC,
        [RDMA_HCA_QP_ST_UC] = HCA_BTH_UC,
        [RDMA_HCA_QP_ST_UD] = HCA_BTH_UD,
    };
    BedPacket *heard = g_queue_pop_head(&bed->heard);

    g_assert_nonnull(heard);
    g_assert_cmphex(heard->packet.opcode, ==,
                    bth_service[bed->service] << 5 | op);
    g_assert_cmphex(heard->packet.psn, ==, psn & HCA_PSN_MASK);
    g_assert_cmphex(heard->packet.dest_qp, ==, BED_PEER_QPN);
    /* The path is always MIGRATED (IBA 17.2.8), and congestion is told by CNPs. */
    g_assert_true(heard->packet.mig_req);
    g_assert_false(heard->packet.fecn || heard->packet.becn);
    return heard;
}

void bed_expect_quiet(Bed *bed)
{
    bed_run(bed);
    g_assert_cmpuint(bed->heard.length, ==, 0);
}

void bed_expect_region(Bed *bed, uint32_t to, uint32_t at, uint32_t len)
{
    g_autofree uint8_t *got = g_malloc(len + 1);

    mr_read(bed->mr, to, got, len);
    g_assert_cmpmem(got, len, bed->data + at, len);
}
