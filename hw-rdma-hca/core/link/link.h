/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * link: the cable. Packets in, packets out, lossless by back-pressure.
 *
 * framing.c   the frame around a packet on the stream: the start, end and
 *             error marks and the virtual lane of the 72-bit link interface
 *             (engine document 6), length; the greeting
 * link.c      a link as a whole: how the stream comes and goes, the ports at its
 *             ends, faults and captures
 * tx.c        the transmit buffer: one write for many packets
 * rx.c        the receive buffer: one read for many packets
 * move.c      an end that goes on in another machine: the other one waits
 * loopback.c  packets for the card's own address
 * shared_ring.c  bytes to a peer on the same host, by memory that both have
 * fault.c     what a plan of faults does to the packets of the cable
 * capture.c   the same packets as a file
 */
#ifndef HCA_LINK_H
#define HCA_LINK_H

#include <sys/uio.h>

#include "../config.h"
#include "../fault/fault.h"
#include "../host.h"
#include "capture.h"

typedef struct HcaLink HcaLink;

/* On the cable: sent behind the fault injector, received in front of it. */
typedef struct HcaLinkCounters {
    uint64_t tx_packets, tx_bytes, rx_packets, rx_bytes;
    uint64_t tx_writes, rx_reads; /* that the cable took part in */
    uint64_t tx_waits;            /* the cable took no more */
    uint64_t loopback_packets;
    uint64_t rx_frame_errors; /* marks, lengths, greeting that cannot be */
    uint64_t rx_marked_bad;   /* dropped: marked in error by the sender */
    uint64_t rx_unheard;      /* the same: the link was down at this end */
    uint64_t tx_discarded;    /* no peer */
    uint64_t tx_wait_ns;      /* the time of that, up to now */
    uint64_t peers;           /* whose greeting was good, if there is one */
    uint64_t moves;           /* that an end has begun, with notice */
    uint64_t moves_lost;      /* and that the link went down in */
} HcaLinkCounters;

/* @protocol: of the streams; InfiniBand has HCA_CABLE_CARD alone. */
HcaLink *hca_link_new(HcaLinkLayer link_layer, HcaCableProtocol protocol,
                      const HcaHost *host);
void hca_link_free(HcaLink *link);

/*
 * Forget everything in flight or held back, both ways, loopback too: nothing of
 * it leaves any more. The peer sees the link go down.
 */
void hca_link_clear(HcaLink *link);

/*
 * The own port: the peer's link is up while it is enabled. RoCE: no effect, it
 * always is, as a network card's link is.
 */
void hca_link_enable(HcaLink *link, bool enabled);

/*
 * Whether this end is left to a subnet manager, as the next greeting says; and
 * whether the peer's is, as its last greeting said (RoCE: neither).
 */
void hca_link_set_managed(HcaLink *link, bool managed);
bool hca_link_peer_is_managed(const HcaLink *link);

/* The peer is there (its stream begins), or is gone. */
void hca_link_set_up(HcaLink *link, bool up);
/* The peer's greeting has arrived and was good, if the protocol has one. */
bool hca_link_is_greeted(const HcaLink *link);
/*
 * True once the peer has greeted and while its port is enabled (without a
 * greeting: from the beginning). False again when the link went down.
 */
bool hca_link_is_up(const HcaLink *link);
/* How often it went down; this may happen twice in one turn. */
unsigned hca_link_downs(const HcaLink *link);

/*
 * Moves. An end whose state is going to be saved says so, and the other one waits
 * as long as its patience is: the link is up, takes no packets, and goes on with a
 * stream that has the right token. Only if either end has some patience; 0: none.
 * What the next greeting says.
 */
void hca_link_set_patience(HcaLink *link, int64_t ns);
/* An end is away: the other one's, or this one after hca_link_depart(). */
bool hca_link_is_away(const HcaLink *link);
/*
 * This end is going to move. False: the other one would not wait, and the stream
 * may stay. Otherwise call hca_link_drain() until it is true, or for as long as one
 * likes: what is on its way then is lost. Then the stream ends (hca_link_set_up()).
 */
bool hca_link_depart(HcaLink *link);
bool hca_link_drain(HcaLink *link);
/* A state was loaded: this end is somewhere else, and looks for the other one. */
void hca_link_arrive(HcaLink *link);

/*
 * Whether one more packet can be sent now, to the peer or by loopback. If
 * not, it can after hca_link_flush(), or when the cable or the receiver has
 * taken some (hca_link_tx_blocked() tells), or when a pause is over.
 */
bool hca_link_can_send(const HcaLink *link, bool loopback);

/*
 * The same for a packet of up to HCA_LINK_MAX_MGMT bytes on VL 15, which has room
 * of its own: also while the cable takes nothing, and no matter what waits (IBA
 * 7.6.4). If there is none it is to be dropped.
 */
#define HCA_LINK_MAX_MGMT 512
bool hca_link_can_send_mgmt(const HcaLink *link, bool loopback);

/*
 * Send one packet: hca_link_open() gives room for HCA_LINK_MAX_PACKET bytes,
 * hca_link_close() says how many have been written there: LRH to VCRC, or an
 * Ethernet frame without FCS, at least its 14 bytes of header. Call only after
 * hca_link_can_send(). Without a peer the packet is lost and counted. A packet
 * that is not closed is not sent.
 */
#define HCA_LINK_MAX_PACKET HCA_FAULT_MAX_PACKET
uint8_t *hca_link_open(HcaLink *link, bool loopback);
void hca_link_close(HcaLink *link, bool loopback, unsigned vl, size_t len);

/*
 * Nothing more can be sent to the peer for so long from now on; 0: it can again.
 * What was sent before leaves. The end of it is one of hca_link_deadline().
 */
void hca_link_pause(HcaLink *link, int64_t ns);
bool hca_link_is_paused(const HcaLink *link);
/*
 * Send a frame that no pause holds back and no tap sees. False: there is no
 * room now, or no peer.
 */
bool hca_link_send_control(HcaLink *link, const uint8_t *frame, size_t len);

/* Write what was sent to the cable, as much as it takes now. */
void hca_link_flush(HcaLink *link);

/* True while bytes wait for the cable: nothing more can be sent to the peer. */
bool hca_link_tx_blocked(const HcaLink *link);

/*
 * A mark behind what has been sent to the peer so far, and whether the cable
 * has taken all in front of it (or it is lost: no peer). 0 is always passed.
 */
uint64_t hca_link_tx_mark(const HcaLink *link);
bool hca_link_tx_passed(const HcaLink *link, uint64_t mark);

/*
 * The next received packet, of the peer or by loopback (in turn), or NULL: then
 * look at the link, as a second change of it is not read in front of that. Reads
 * the cable as needed. The packet is valid until the next call. *@len is
 * its length.
 */
const uint8_t *hca_link_receive(HcaLink *link, size_t *len, bool *loopback);

/* The lane of the frame that the last one of the peer's came in. */
unsigned hca_link_rx_vl(const HcaLink *link);

/*
 * Whether hca_link_receive() may return packets: some are buffered, or the cable
 * has not said since the last read that it is empty. It tells nobody of what it
 * had before it said so.
 */
bool hca_link_rx_pending(const HcaLink *link);

/* The peer broke the framing: the host should drop the stream. */
bool hca_link_rx_failed(const HcaLink *link);

/*
 * Keep a copy of each packet that is sent to the peer, as it is before the plan
 * of faults, for hca_link_tapped(); off forgets them. While there is no room for
 * another one nothing can be sent.
 */
void hca_link_set_tap(HcaLink *link, bool on);
/* The oldest copy, valid until the next call, or NULL. */
const uint8_t *hca_link_tapped(HcaLink *link, size_t *len);

/*
 * The plan of faults; packets that are held back leave with the next
 * hca_link_tick().
 */
void hca_link_set_faults(HcaLink *link, const HcaFaultPlan *plan);
/* The same with rules behind those that there are, @kept, which go on. */
void hca_link_add_faults(HcaLink *link, const HcaFaultPlan *plan,
                         unsigned kept);
/* How often rule @i, of the cable, has matched and has been done. */
void hca_link_fault_state(const HcaLink *link, unsigned i, uint64_t *matched,
                          uint64_t *done);

/*
 * The link goes down by a fault, at the ends that it names: this one is as
 * without a peer, and the peer is told that the port is disabled. False: it is
 * down by a fault already. A new plan of faults has it come up.
 */
bool hca_link_go_down(HcaLink *link, const HcaFaultDown *down);
/* What the last fault of this kind left it with: speed and MTU codes, 0: all. */
void hca_link_limits(const HcaLink *link, uint8_t *speed, uint8_t *mtu);

/*
 * Packets whose time has come leave, a link that went down for a time comes up, one
 * that waits for who is away does no longer, and a pause ends. True: it has come up,
 * or gone down. When the next one's time has come, or INT64_MAX.
 */
bool hca_link_tick(HcaLink *link);
int64_t hca_link_deadline(const HcaLink *link);

/*
 * Capture what passes the cable, or no more; what is buffered goes to the file.
 */
void hca_link_limit_capture(HcaLink *link, uint64_t max_bytes);
void hca_link_start_capture(HcaLink *link);
void hca_link_stop_capture(HcaLink *link);
void hca_link_flush_capture(HcaLink *link);
bool hca_link_is_captured(const HcaLink *link);
/* The next packet that is captured has a comment that says so. */
void hca_link_note(HcaLink *link, const char *text);

/* As they are now; ask anew for later ones. */
const HcaLinkCounters *hca_link_counters(HcaLink *link);
const HcaFaultCounters *hca_link_fault_counters(const HcaLink *link);
const HcaCaptureCounters *hca_link_capture_counters(const HcaLink *link);
/* Packets that are held back, of both directions. */
unsigned hca_link_held(const HcaLink *link);
void hca_link_reset_counters(HcaLink *link);

/* state.c: what is saved, in this order. */
extern const HcaSection hca_link_section, hca_link_tx_section,
    hca_link_rx_section, hca_loopback_section, hca_injector_section,
    hca_cable_rule_section, hca_held_section, hca_doubled_section;

#endif /* HCA_LINK_H */
