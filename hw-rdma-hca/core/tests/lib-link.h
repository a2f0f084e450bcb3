/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two links joined by a pipe in memory that takes and gives as few bytes as it
 * likes; packets that are known by their number.
 */
#ifndef LIB_LINK_H
#define LIB_LINK_H

#include <glib.h>

#include "../link/framing.h"
#include "../link/link.h"

/* One direction of a stream. */
typedef struct LinkPipe {
    GByteArray *bytes;
    size_t at; /* first byte not read */
    size_t capacity;
    size_t chunk;           /* one call moves at most this, at random; 0 all */
    int error;              /* what writes return instead, once if EINTR */
    unsigned writes, reads; /* calls that moved bytes */
    unsigned empty_reads;
    GRand *rand;
} LinkPipe;

typedef struct LinkEnd {
    HcaLink *link;
    LinkPipe *in, *out;
    struct LinkCable *cable;
} LinkEnd;

typedef struct LinkCable {
    LinkPipe pipe[2]; /* of each end: what it has sent */
    LinkEnd end[2];
    int64_t now;
    uint64_t nonces;
    bool greets; /* a stream begins with greetings */
    bool lanes;  /* frames have lanes */
} LinkCable;

/*
 * Both ports enabled; no stream yet. An InfiniBand cable, or that of the case:
 * link_test_add() adds one for each kind of cable.
 */
void link_cable_init(LinkCable *cable);
void link_test_add(const char *path, GTestFunc test);
void link_cable_destroy(LinkCable *cable);
/* A new stream, until both ends are up; or none. */
void link_cable_set_up(LinkCable *cable, bool up);
/* What has not been read is lost. */
void link_pipe_empty(LinkPipe *pipe);

const uint8_t *link_receive(LinkEnd *end, size_t *len);
/* Receive until there is nothing; no packet is expected. */
void link_receive_nothing(LinkEnd *end);

typedef struct Packet {
    unsigned vl;
    size_t len;
    uint8_t data[HCA_FRAME_MAX_PACKET];
} Packet;

/* What a cable is to links. */
typedef struct LinkKind {
    const char *name;
    HcaLinkLayer layer;
    HcaCableProtocol protocol;
} LinkKind;
extern const LinkKind link_kind_ib, link_kind_roce, link_kind_segment,
    link_kind_netdev;
void link_cable_init_kind(LinkCable *cable, const LinkKind *kind);

/* Number @seed; its lane is the lowest four bits of that. */
void packet_sized(Packet *packet, uint32_t seed, size_t len);
/* Most are short, as acknowledgements are; some are as long as can be. */
void packet_random(Packet *packet, uint32_t seed);
void packet_send(HcaLink *link, bool loopback, const Packet *packet);
void packet_check(const Packet *packet, const uint8_t *got, size_t len);
void packet_expect(LinkEnd *end, const Packet *packet);

/*
 * A stream of random packets, the first of which is number @stream. Send from
 * @sent on, until the link takes no more, or take what there is from @received
 * on; how many it is then.
 */
unsigned link_send_some(LinkEnd *end, uint32_t stream, unsigned sent,
                        unsigned total, unsigned batch);
unsigned link_receive_some(LinkEnd *end, uint32_t stream, unsigned received);

#endif /* LIB_LINK_H */
