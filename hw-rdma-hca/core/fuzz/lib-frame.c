/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-frame.h"

#include <string.h>

#include "../link/framing.h"
#include "../wire/bytes.h"
#include "../wire/crc.h"

#define ETH_HEADER 14
#define VLAN_TAG 4

/* Where the IP header begins. @len: of the frame. */
static size_t ip_at(const uint8_t *frame, size_t len)
{
    bool has_vlan = len >= ETH_HEADER + VLAN_TAG &&
                    get_be16(frame + 12) == 0x8100;

    return ETH_HEADER + (has_vlan ? VLAN_TAG : 0);
}

static bool is_ipv4(const uint8_t *ip)
{
    return ip[0] >> 4 == 4;
}

static size_t ip_header_size(const uint8_t *ip)
{
    return is_ipv4(ip) ? HCA_IPV4_HEADER_SIZE : HCA_IPV6_HEADER_SIZE;
}

static void put_icrc(uint8_t *at, uint32_t crc)
{
    for (unsigned i = 0; i < HCA_ICRC_SIZE; i++) {
        at[i] = crc >> 8 * i;
    }
}

static void mend_ib(uint8_t *frame, size_t len)
{
    bool has_grh = (frame[1] & 3) == 3;
    size_t masked = HCA_LRH_SIZE + (has_grh ? HCA_GRH_SIZE : 0) + HCA_BTH_SIZE;
    size_t trailer = HCA_ICRC_SIZE + HCA_VCRC_SIZE;
    uint16_t vcrc;

    if (len < HCA_LRH_SIZE + HCA_VCRC_SIZE) {
        return;
    }
    if (len >= masked + trailer) {
        put_icrc(frame + len - trailer,
                 hca_icrc_update(hca_icrc_masked_headers(frame, has_grh),
                                 frame + masked, len - trailer - masked));
    }
    vcrc = hca_vcrc_update(HCA_VCRC_INIT, frame, len - HCA_VCRC_SIZE);
    frame[len - 2] = vcrc;
    frame[len - 1] = vcrc >> 8;
}

static void mend_ipv4_header(uint8_t *ip)
{
    uint32_t sum = 0;

    put_be16(ip + 10, 0);
    for (unsigned i = 0; i < HCA_IPV4_HEADER_SIZE; i += 2) {
        sum += get_be16(ip + i);
    }
    sum = (sum & 0xffff) + (sum >> 16);
    put_be16(ip + 10, ~((sum & 0xffff) + (sum >> 16)));
}

/* @len: from the IP header on; the end of UDP is where its length says. */
static void mend_ip(uint8_t *ip, size_t len)
{
    size_t header = ip_header_size(ip);
    size_t masked = header + HCA_UDP_HEADER_SIZE + HCA_BTH_SIZE;
    size_t end;

    if (len < masked + HCA_ICRC_SIZE) {
        return;
    }
    put_be16(ip + header + 6, 0); /* no checksum */
    if (is_ipv4(ip)) {
        mend_ipv4_header(ip);
    }
    end = header + get_be16(ip + header + 4);
    if (end >= masked + HCA_ICRC_SIZE && end <= len) {
        put_icrc(ip + end - HCA_ICRC_SIZE,
                 hca_icrc_update(hca_icrc_masked_ip_headers(ip, is_ipv4(ip)),
                                 ip + masked, end - HCA_ICRC_SIZE - masked));
    }
}

void frame_mend(bool roce, uint8_t *frame, size_t len)
{
    size_t at = ip_at(frame, len);

    if (!roce) {
        mend_ib(frame, len);
        return;
    }
    if (len > at) {
        mend_ip(frame + at, len - at);
    }
}

void frame_edit(Fuzz *f, uint8_t *frame, size_t len)
{
    unsigned n = 1 + take_below(&f->in, 4);

    for (; n; n--) {
        size_t at = take_below(&f->in, take_bool(&f->in) ? len : 96);

        if (at < len) {
            frame[at] ^= take8(&f->in);
        }
    }
}

static uint8_t *ip_of(uint8_t *frame)
{
    return frame + ip_at(frame, FRAME_MOST);
}

static uint8_t *udp_of(uint8_t *frame)
{
    uint8_t *ip = ip_of(frame);

    return ip + ip_header_size(ip);
}

static void add_to(uint8_t *field, int by)
{
    put_be16(field, get_be16(field) + by);
}

/* To the lengths that the headers tell. */
static void add_length(bool roce, uint8_t *frame, int by)
{
    uint8_t *ip = ip_of(frame);

    if (roce) {
        add_to(ip + (is_ipv4(ip) ? 2 : 4), by);
        add_to(udp_of(frame) + 4, by);
        return;
    }
    add_to(frame + 4, by / 4);
    if ((frame[1] & 3) == 3) {
        add_to(frame + HCA_LRH_SIZE + 4, by);
    }
}

/* Say that more fragments follow, or that this is one. */
static size_t make_fragment(uint8_t *frame, size_t len)
{
    uint8_t *ip = ip_of(frame), *udp = udp_of(frame);

    if (is_ipv4(ip)) {
        ip[6] |= 0x20;
        return len;
    }
    memmove(udp + 8, udp, len - (udp - frame));
    memset(udp, 0, 8);
    udp[0] = ip[6];
    ip[6] = 44;
    return len + 8;
}

/* A byte behind Ethernet, or from LRH on, that is not an address's. */
static void spoil_field(Fuzz *f, uint8_t *frame)
{
    static const uint8_t roce[] = { 0, 1, 2, 4, 6, 9, 20, 22, 24, 40, 42, 44 };
    static const uint8_t ib[] = { 0, 1, 2, 4, 5, 8, 9, 12, 14, 16, 48, 49 };
    unsigned field = take_below(&f->in, G_N_ELEMENTS(ib));

    if (f->roce) {
        ip_of(frame)[roce[field]] ^= take8(&f->in);
    } else {
        frame[ib[field]] ^= take8(&f->in);
    }
}

size_t frame_spoil(Fuzz *f, uint8_t *frame, size_t len)
{
    size_t by;

    switch (take_below(&f->in, 5)) {
    case 0: /* shorter, as it says */
        by = take_below(&f->in, 64) * 4;
        by = MIN(by, len - 16);
        add_length(f->roce, frame, -(int)by);
        len -= by;
        break;
    case 1: /* not as long as it says */
        add_length(f->roce, frame, (int)take8(&f->in) - 128);
        break;
    case 2:
        spoil_field(f, frame);
        break;
    case 3:
        len = f->roce ? make_fragment(frame, len) : len - 4;
        break;
    default: /* with a checksum of UDP */
        frame_mend(f->roce, frame, len);
        if (f->roce) {
            put_be16(udp_of(frame) + 6, take16(&f->in));
        }
        return len;
    }
    frame_mend(f->roce, frame, len);
    return len;
}

void frame_headers(Fuzz *f, unsigned from, unsigned which, unsigned gid,
                   HcaPacket *packet)
{
    if (f->roce) {
        driver_roce_headers(f->pair->drv[from], f->pair->drv[!from],
                            gid % NUM_GIDS, packet);
    } else {
        packet->slid = f->lab->host[from].config.lid;
        packet->dlid = f->lab->host[!from].config.lid;
        packet->has_grh = gid & 1;
        driver_gid(f->pair->drv[from], packet->sgid.raw);
        driver_gid(f->pair->drv[!from], packet->dgid.raw);
    }
    packet->pkey = HCA_DEFAULT_PKEY;
    packet->dest_qp = f->qp[which][!from]->qpn;
    packet->src_qp = f->qp[which][from]->qpn;
    packet->qkey = 0x11111111;
}

size_t frame_build(bool roce, HcaPacket *packet, uint8_t *frame)
{
    const HcaEncap *encap = roce ? &hca_encap_roce : &hca_encap_ib;
    size_t len = encap->build(packet, frame);

    memset(frame + len, 0xda, packet->payload_len);
    return encap->seal(packet, frame, len + packet->payload_len);
}

CableFate frame_deliver(void *opaque, unsigned from, uint8_t *packet,
                        size_t len)
{
    return CABLE_DELIVER;
}

void frame_inject(Fuzz *f, unsigned from, const uint8_t *frame, size_t len)
{
    uint8_t header[HCA_FRAME_HEADER_SIZE];

    hca_frame_write_header(header, HCA_FRAME_PACKET, 0, len);
    lab_cable_inject(f->lab, from, header, sizeof(header));
    lab_cable_inject(f->lab, from, frame, len);
}
