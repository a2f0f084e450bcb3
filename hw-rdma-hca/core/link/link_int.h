/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of a link, which its two directions share. */
#ifndef HCA_LINK_INT_H
#define HCA_LINK_INT_H

#include "capture.h"
#include "fault_int.h"
#include "framing.h"
#include "link.h"
#include "loopback.h"

#define HCA_LINK_TX_SIZE (256 * 1024)
#define HCA_LINK_RX_SIZE (256 * 1024)

struct HcaLink {
    HcaLinkLayer link_layer;
    const HcaFraming *framing;
    HcaHost host;
    HcaLoopback *loopback;
    HcaLoopback *tap; /* copies of what is sent, NULL: none */
    HcaInjector *faults;
    HcaCapture *capture;
    HcaLinkCounters counters;

    bool up;           /* there is a stream */
    bool away;         /* an end moves, see move.c */
    bool greeted;      /* the peer's greeting has arrived, if any */
    bool peer_enabled; /* as the peer said last */
    bool enabled;      /* the own port */
    bool managed;      /* it is left to a subnet manager, */
    bool peer_managed; /* and so is the peer's */
    bool told;         /* that it is, as the stream says so far */
    bool was_disabled; /* since then, maybe for a moment */
    unsigned downs;    /* times that the link went down */
    /* By a fault: ends that are down, the end of that, and how it was. */
    uint8_t down_ends;
    int64_t down_end;
    HcaFaultDown down;
    bool goes_down;          /* behind the packet that was handed out, */
    unsigned goes_down_by;   /* by this rule */
    bool rx_failed;          /* the peer broke the framing */
    bool tx_failed;          /* the stream takes nothing, for good */
    bool rx_changed;         /* the peer's port, since nothing was received */
    bool rx_waits;           /* it would once more: see hca_link_receive() */
    bool rx_unfinished;      /* the cable has not said yet that it is empty */
    bool loopback_turn;      /* who was asked first last time */
    unsigned rx_rest;        /* loopback packets before the next read */
    unsigned rx_swallowed;   /* by faults, since a packet was asked for */
    const uint8_t *rx_again; /* handed out, to be so once more */
    size_t rx_again_len;
    HcaFault rx_again_fault;
    HcaHeld *rx_lent; /* where the packet handed out last lies */
    uint8_t rx_vl;    /* of its frame */

    size_t rx_at;       /* first byte not handed out */
    size_t rx_end;      /* after the last byte received */
    bool tx_blocked;    /* the cable did not take all */
    int64_t blocked_at; /* since then; or counted up to then */
    size_t tx_at;       /* first byte that the cable did not take */
    size_t tx_end;      /* after the last byte of a whole packet */
    uint64_t tx_gone;   /* bytes that were in front of tx_at, ever */
    int64_t pause_end;  /* nothing is sent until then; 0: no pause */

    /* Moves: how this end greets, and what was said on this stream. */
    int64_t patience_ns; /* waits so long for a peer that moves; 0: does not */
    bool greets_old;     /* the last peer was of an old version */
    bool told_waits;     /* that this end would */
    bool can_move;       /* either end would wait */
    bool resumed;        /* with this stream, and nothing has come since */
    bool told_move;      /* nothing more leaves */
    bool heard_move;     /* nothing more comes */
    int64_t away_end;    /* when the link goes down, instead */
    uint64_t nonce;      /* said by the own greeting */
    uint64_t token;      /* of the stream that is, or that was when one left */
    uint64_t next_token; /* once something has come */
    GByteArray *old; /* came by the stream of before, whole frames; or NULL */
    size_t old_at;   /* of them: first byte that is not in rx */
    size_t old_left; /* bytes of them that have not been handed out */

    uint8_t *tx;
    uint8_t *rx;
    uint8_t *lost; /* where packets are built that nobody gets */
};

static inline bool hca_link_is_roce(const HcaLink *link)
{
    return link->link_layer == HCA_LINK_LAYER_ROCE;
}

/* The own port, as the peer is told. */
static inline bool hca_link_shows_enabled(const HcaLink *link)
{
    return link->enabled && !(link->down_ends & HCA_FAULT_PEER_END);
}

/* What hca_link_is_greeted() and hca_link_is_up() say: asked for each packet. */
static inline bool hca_link_peer_has_greeted(const HcaLink *link)
{
    return link->up && link->greeted && !link->rx_failed;
}

static inline bool hca_link_peer_is_up(const HcaLink *link)
{
    return (link->away || hca_link_peer_has_greeted(link)) &&
           link->peer_enabled && !(link->down_ends & HCA_FAULT_OWN_END);
}

/* @fault: what was done to the packet, or NULL. */
static inline void hca_link_record(HcaLink *link, bool sent,
                                   const uint8_t *packet, size_t len,
                                   const HcaFault *fault)
{
    char text[HCA_FAULT_TEXT_SIZE];

    if (link->host.recorder) {
        HcaRecord *record = hca_recorder_packet(
            link->host.recorder, sent ? HCA_RECORD_TX : HCA_RECORD_RX, packet,
            len);

        if (fault) {
            record->fault = fault->action;
            record->rule = fault->rule;
        }
    }
    if (!hca_capture_is_watching(link->capture)) {
        return;
    }
    if (fault) {
        hca_fault_describe(fault, text);
    }
    hca_capture_packet(link->capture, sent, packet, len, fault ? text : NULL);
}

/* link.c: a packet has the link go down, by rule @rule of the plan of faults. */
void hca_link_packet_took_down(HcaLink *link, unsigned rule);

/* rx.c */
/* The peer said that its port is enabled, or is not. */
void hca_link_set_peer_enabled(HcaLink *link, bool enabled);
/* The first frame of a stream. */
void hca_link_rx_greeting(HcaLink *link, const HcaFrame *frame);

/* move.c */
/* What is to be said by the greeting of a stream that begins. */
void hca_link_move_greet(HcaLink *link, HcaGreeting *greeting);
/* The peer's, which was good. */
void hca_link_move_greeted(HcaLink *link, const HcaGreeting *greeting);
/* A frame has come, no greeting: it says that this stream goes on. */
static inline void hca_link_move_heard(HcaLink *link)
{
    if (link->resumed) {
        link->resumed = false;
        link->token = link->next_token;
    }
}
/* A stream ends. */
void hca_link_move_end(HcaLink *link);
/* The peer says that it moves. False: it may not. */
bool hca_link_move_asked(HcaLink *link);
/* An end is away, and will not come: the link is down. */
void hca_link_move_lost(HcaLink *link);
/* The answer to that, or what is to be answered, if there is room. */
void hca_link_move_tell(HcaLink *link);
/* Bytes of before to @to, of @room; 0: there are none. */
size_t hca_link_take_old(HcaLink *link, uint8_t *to, size_t room);
void hca_link_forget_old(HcaLink *link);

/* tx.c */
/* Of a wait that goes on: up to now. */
void hca_link_tx_count_wait(HcaLink *link);
/* A stream begins, or has ended: nothing waits for it. */
void hca_link_tx_begin(HcaLink *link);
/* Forget what has not left, as far as the peer can do without it. */
void hca_link_tx_forget(HcaLink *link);
/* The first frame. */
void hca_link_tx_greet(HcaLink *link);
/*
 * Tell the peer what has become of the port, if it has not been told: also that
 * it was disabled for a while. Without room now it is told later, in one.
 */
void hca_link_tx_tell(HcaLink *link);
/* Packets that were held back and are due, as far as there is room. */
void hca_link_tx_put_due(HcaLink *link);

/* rx.c */
/* A stream begins, or has ended: nothing has come of it. */
void hca_link_rx_begin(HcaLink *link);
/* Forget the packets that have come. */
void hca_link_rx_forget(HcaLink *link);

#endif /* HCA_LINK_INT_H */
