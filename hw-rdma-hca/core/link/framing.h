/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * framing: what surrounds a packet on the stream. See framing.c for the
 * format.
 */
#ifndef HCA_LINK_FRAMING_H
#define HCA_LINK_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "link.h"

#define HCA_FRAME_HEADER_SIZE 8
/* No packet of a link is longer: an interface MTU of 9000 fits well. */
#define HCA_FRAME_MAX_PACKET HCA_LINK_MAX_PACKET
#define HCA_FRAME_MAX_SIZE (HCA_FRAME_HEADER_SIZE + HCA_FRAME_MAX_PACKET)
#define HCA_FRAME_MAX_VL 15
/* QEMU's -netdev stream: its header, and the longest frame that is one. */
#define HCA_NETDEV_HEADER_SIZE 4
#define HCA_NETDEV_MAX_FRAME 69632
#define HCA_FRAME_GREETING_SIZE 32

/* Marks: the control bits of the 72-bit link interface, at its places. */
#define HCA_FRAME_START 0x80 /* S */
#define HCA_FRAME_END 0x40   /* T */
#define HCA_FRAME_ERROR 0x20 /* E: ends, but must not be used */

typedef enum HcaFrameType {
    HCA_FRAME_GREETING = 1,
    HCA_FRAME_PACKET = 2,
    HCA_FRAME_STATE = 3,
    HCA_FRAME_MOVE = 4,
} HcaFrameType;

typedef struct HcaFrame {
    HcaFrameType type;
    bool error; /* marked so by the sender */
    uint8_t vl;
    const uint8_t *body; /* the packet or other content, in the stream */
    size_t len;
} HcaFrame;

/*
 * A format, and what begins a stream of it. @read may mark a frame as in error
 * that is longer than HCA_FRAME_MAX_PACKET. Only a format that @greets has
 * frames of other types than HCA_FRAME_PACKET, and error marks and lanes of the
 * sender's are of the format of cards.
 */
typedef struct HcaFraming {
    bool greets; /* a greeting begins the stream, and states may follow */
    uint8_t header_size; /* bytes in front of a body */
    /* As hca_frame_write_header() and hca_frame_read(). */
    void (*write_header)(uint8_t *header, HcaFrameType type, unsigned vl,
                         size_t len);
    int (*read)(HcaFrame *frame, const uint8_t *data, size_t len);
} HcaFraming;

const HcaFraming *hca_framing(HcaCableProtocol protocol);

/* Of cards: write the header of a frame whose body of @len bytes follows it. */
void hca_frame_write_header(uint8_t *header, HcaFrameType type, unsigned vl,
                            size_t len);

/* What a greeting says of the end that it comes from. */
typedef struct HcaGreeting {
    bool enabled; /* its port */
    bool managed; /* it is left to a subnet manager */
    bool old;     /* of version 3, which has nothing of what follows */
    bool waits;   /* for a peer that says that it moves */
    bool resumes; /* it goes on where the stream of @token was left */
    uint64_t nonce;
    uint64_t token; /* 0, if it does not resume */
} HcaGreeting;

/* Write a whole greeting frame; returns its size. */
#define HCA_GREETING_FRAME_SIZE                                                \
    (HCA_FRAME_HEADER_SIZE + HCA_FRAME_GREETING_SIZE)
size_t hca_frame_write_greeting(uint8_t *out, HcaLinkLayer link_layer,
                                const HcaGreeting *greeting);

/* Whether @frame is the greeting of a peer that we can talk to. */
bool hca_frame_read_greeting(const HcaFrame *frame, HcaLinkLayer link_layer,
                             HcaGreeting *greeting);

/* The same of a frame that says that the port has been enabled, or disabled. */
#define HCA_STATE_FRAME_SIZE (HCA_FRAME_HEADER_SIZE + 1)
size_t hca_frame_write_state(uint8_t *out, bool enabled);
bool hca_frame_read_state(const HcaFrame *frame, bool *enabled);

/* The same of one that says that nothing follows it on this stream. */
#define HCA_MOVE_FRAME_SIZE (HCA_FRAME_HEADER_SIZE + 1)
size_t hca_frame_write_move(uint8_t *out);
bool hca_frame_is_move(const HcaFrame *frame);

/*
 * The frame at @data, of which @len bytes have arrived. Returns its size in
 * the stream, 0 if it is not all there yet, or -1 if it cannot be a frame.
 */
int hca_frame_read(HcaFrame *frame, const uint8_t *data, size_t len);

#endif /* HCA_LINK_FRAMING_H */
