/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Framing of the cable (engine document 6).
 *
 * The document's link layer takes a packet in words of 72 bits: eight bytes of
 * data and a control byte that marks the start of a packet (S), its end (T),
 * an end in error (E), the number of valid bytes and the virtual lane. A
 * stream has no words to mark, so one control byte serves a whole packet and
 * a length replaces the valid-byte count:
 *
 *     byte 0   S 0x80, T 0x40, E 0x20; the other bits 0
 *     byte 1   virtual lane, 0 to 15 (the document has 0 to 3; LRH has four
 *              bits, and management packets use lane 15)
 *     byte 2   frame type: 1 greeting, 2 packet, 3 state, 4 move
 *     byte 3   0
 *     byte 4-7 length of the body in bytes, big-endian, 1 to 9216
 *     body     the packet as on an InfiniBand link, LRH to VCRC; or an
 *              Ethernet frame without FCS; of a state one byte, see below; of a
 *              move one byte, 0
 *
 * S and T are always both set: a packet is never split over frames. Each of two
 * cards on a cable begins its stream with one greeting and sends no other (on a
 * segment there is none: many may be there):
 *
 *     byte 0-7   "rdma-hca"
 *     byte 8-9   version, big-endian: 4
 *     byte 10    link layer: 1 InfiniBand, 2 Ethernet
 *     byte 11    state: 1 if the port is enabled, 0 if it is not
 *     byte 12    1 if this end is left to a subnet manager, else 0 (InfiniBand)
 *     byte 13    bit 0: this end waits for a peer that moves; bit 1: it goes on
 *                with what another stream has left
 *     byte 14-15 0
 *     byte 16-23 a number of this stream's own
 *     byte 24-31 if it goes on: both numbers of the stream that it was, XOR; else 0
 *
 * A state frame tells that byte 11 has changed. Packets come from an enabled port
 * alone. A move ends what comes from an end that moves to another machine, and the
 * answer of its peer is a move, too: move.c.
 *
 * Version 3 ends with byte 15, byte 13 is 0, and knows no moves. Who is greeted so
 * greets so the next time, because its peer has ended the stream.
 *
 * QEMU's -netdev stream knows Ethernet frames alone, each behind its length in
 * four bytes, big-endian.
 */
#include <string.h>

#include "../wire/bytes.h"
#include "framing.h"

#define VERSION 4
#define OLD_VERSION 3
#define VERSION_OFFSET 8
#define STATE_OFFSET 11
#define MANAGED_OFFSET 12
#define FLAGS_OFFSET 13
#define NONCE_OFFSET 16
#define TOKEN_OFFSET 24
#define FLAG_WAITS 0x01
#define FLAG_RESUMES 0x02
#define OLD_GREETING_SIZE 16
#define MARKS (HCA_FRAME_START | HCA_FRAME_END)

static const uint8_t magic[8] = { 'r', 'd', 'm', 'a', '-', 'h', 'c', 'a' };

void hca_frame_write_header(uint8_t *header, HcaFrameType type, unsigned vl,
                            size_t len)
{
    header[0] = MARKS;
    header[1] = vl;
    header[2] = type;
    header[3] = 0;
    put_be32(header + 4, len);
}

static size_t greeting_size(const HcaGreeting *greeting)
{
    return greeting->old ? OLD_GREETING_SIZE : HCA_FRAME_GREETING_SIZE;
}

static void write_greeting(uint8_t *body, HcaLinkLayer link_layer,
                           const HcaGreeting *greeting)
{
    memset(body, 0, greeting_size(greeting));
    memcpy(body, magic, sizeof(magic));
    put_be16(body + VERSION_OFFSET, greeting->old ? OLD_VERSION : VERSION);
    body[10] = link_layer;
    body[STATE_OFFSET] = greeting->enabled;
    body[MANAGED_OFFSET] = greeting->managed;
    if (!greeting->old) {
        body[FLAGS_OFFSET] = (greeting->waits ? FLAG_WAITS : 0) |
                             (greeting->resumes ? FLAG_RESUMES : 0);
        put_be64(body + NONCE_OFFSET, greeting->nonce);
        put_be64(body + TOKEN_OFFSET, greeting->token);
    }
}

size_t hca_frame_write_greeting(uint8_t *out, HcaLinkLayer link_layer,
                                const HcaGreeting *greeting)
{
    size_t len = greeting_size(greeting);

    hca_frame_write_header(out, HCA_FRAME_GREETING, 0, len);
    write_greeting(out + HCA_FRAME_HEADER_SIZE, link_layer, greeting);
    return HCA_FRAME_HEADER_SIZE + len;
}

/* Whether @frame is of @type, of a good link, and has @len bytes. */
static bool is_plain(const HcaFrame *frame, HcaFrameType type, size_t len)
{
    return frame->type == type && !frame->error && frame->vl == 0 &&
           frame->len == len;
}

/* What the latest version has. */
static void read_rest(const uint8_t *body, HcaGreeting *greeting)
{
    greeting->waits = body[FLAGS_OFFSET] & FLAG_WAITS;
    greeting->resumes = body[FLAGS_OFFSET] & FLAG_RESUMES;
    greeting->nonce = get_be64(body + NONCE_OFFSET);
    greeting->token = greeting->resumes ? get_be64(body + TOKEN_OFFSET) : 0;
}

bool hca_frame_read_greeting(const HcaFrame *frame, HcaLinkLayer link_layer,
                             HcaGreeting *greeting)
{
    uint8_t expected[HCA_FRAME_GREETING_SIZE];

    *greeting = (HcaGreeting) { .old = frame->len == OLD_GREETING_SIZE };
    if (!is_plain(frame, HCA_FRAME_GREETING, greeting_size(greeting))) {
        return false;
    }
    greeting->enabled = frame->body[STATE_OFFSET] & 1;
    greeting->managed = link_layer == HCA_LINK_LAYER_IB &&
                        frame->body[MANAGED_OFFSET] & 1;
    if (!greeting->old) {
        read_rest(frame->body, greeting);
    }
    write_greeting(expected, link_layer, greeting);
    return memcmp(frame->body, expected, frame->len) == 0;
}

size_t hca_frame_write_state(uint8_t *out, bool enabled)
{
    hca_frame_write_header(out, HCA_FRAME_STATE, 0, 1);
    out[HCA_FRAME_HEADER_SIZE] = enabled;
    return HCA_STATE_FRAME_SIZE;
}

bool hca_frame_read_state(const HcaFrame *frame, bool *enabled)
{
    if (!is_plain(frame, HCA_FRAME_STATE, 1)) {
        return false;
    }
    *enabled = frame->body[0] & 1;
    return frame->body[0] <= 1;
}

size_t hca_frame_write_move(uint8_t *out)
{
    hca_frame_write_header(out, HCA_FRAME_MOVE, 0, 1);
    out[HCA_FRAME_HEADER_SIZE] = 0;
    return HCA_MOVE_FRAME_SIZE;
}

bool hca_frame_is_move(const HcaFrame *frame)
{
    return is_plain(frame, HCA_FRAME_MOVE, 1) && frame->body[0] == 0;
}

static bool header_is_valid(const uint8_t *header, size_t body_len)
{
    return (header[0] & ~HCA_FRAME_ERROR) == MARKS &&
           header[1] <= HCA_FRAME_MAX_VL && header[2] >= HCA_FRAME_GREETING &&
           header[2] <= HCA_FRAME_MOVE && header[3] == 0 && body_len >= 1 &&
           body_len <= HCA_FRAME_MAX_PACKET;
}

int hca_frame_read(HcaFrame *frame, const uint8_t *data, size_t len)
{
    size_t body_len;

    if (len < HCA_FRAME_HEADER_SIZE) {
        return 0;
    }
    body_len = get_be32(data + 4);
    if (!header_is_valid(data, body_len)) {
        return -1;
    }
    if (len - HCA_FRAME_HEADER_SIZE < body_len) {
        return 0;
    }
    frame->type = data[2];
    frame->error = data[0] & HCA_FRAME_ERROR;
    frame->vl = data[1];
    frame->body = data + HCA_FRAME_HEADER_SIZE;
    frame->len = body_len;
    return HCA_FRAME_HEADER_SIZE + body_len;
}

/* QEMU's -netdev stream */

static void netdev_write_header(uint8_t *header, HcaFrameType type, unsigned vl,
                                size_t len)
{
    put_be32(header, len);
}

/* Who has offloads may send more than a link takes: that is lost. */
static int netdev_read(HcaFrame *frame, const uint8_t *data, size_t len)
{
    size_t body_len;

    if (len < HCA_NETDEV_HEADER_SIZE) {
        return 0;
    }
    body_len = get_be32(data);
    if (body_len > HCA_NETDEV_MAX_FRAME) {
        return -1;
    }
    if (len - HCA_NETDEV_HEADER_SIZE < body_len) {
        return 0;
    }
    frame->type = HCA_FRAME_PACKET;
    frame->error = !body_len || body_len > HCA_FRAME_MAX_PACKET;
    frame->vl = 0;
    frame->body = data + HCA_NETDEV_HEADER_SIZE;
    frame->len = body_len;
    return HCA_NETDEV_HEADER_SIZE + body_len;
}

const HcaFraming *hca_framing(HcaCableProtocol protocol)
{
    static const HcaFraming framings[] = {
        [HCA_CABLE_CARD] = { true, HCA_FRAME_HEADER_SIZE,
                             hca_frame_write_header, hca_frame_read },
        [HCA_CABLE_SEGMENT] = { false, HCA_FRAME_HEADER_SIZE,
                                hca_frame_write_header, hca_frame_read },
        [HCA_CABLE_NETDEV] = { false, HCA_NETDEV_HEADER_SIZE,
                               netdev_write_header, netdev_read },
    };

    return &framings[protocol];
}
