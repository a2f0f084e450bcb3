/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A QP on the bench, of either link layer. The test says on which side it is:
 * side 0 asks, side 1 answers.
 *
 * The other side has a QP of its own, and the test decides by the weather what
 * becomes of the packets between them; or it has none. Then its card only
 * lends its end of the cable: the test speaks for the peer, whatever PSN and
 * opcode it likes, and what the QP under test says is taken down.
 */
#ifndef LIB_BED_H
#define LIB_BED_H

#include "lib-card.h"
#include "lib-pair.h"

#define BED_MTU 256u         /* of RC and UC, against a peer that is no QP */
#define BED_PSN 0xfffffcu    /* the requester's first; wraps in most tests */
#define BED_RQ_PSN 0xfffff0u /* the first that a responder expects */
#define BED_RNR_CODE 12
#define BED_PEER_QPN 0xabcdeu
#define BED_AREA 131072u
#define BED_RADDR UINT64_C(0x123456789a00)
#define BED_RKEY 0xfeedu
#define BED_QKEY 0x11111111u
#define BED_TIMEOUT 14       /* ack timeout code: 67 ms */
#define BED_VENDOR_ERR 0x5au /* of a planned fault */

/* Where an atomic may be. */
#define ROUND_UP8(addr) (((addr) + 7) & ~UINT64_C(7))

/* A packet of the QP under test, taken down. */
typedef struct BedPacket {
    HcaPacket packet;
    uint8_t data[HCA_MAX_MTU];
    int64_t time;
} BedPacket;

/* Change a packet; its lengths and opcode format have to stay as they are. */
typedef void BedEdit(HcaPacket *packet);

/* What happens to packets of one side. */
typedef struct BedWeather {
    bool lost;     /* all of them */
    unsigned nth;  /* what follows is for its nth, from 1 on... */
    unsigned last; /* ...to its last-th; 0: all of them */
    bool mark;     /* CE */
    BedEdit *edit;
    CableFate fate;
} BedWeather;

typedef struct BedConfig {
    uint32_t seed;
    unsigned side;          /* of the QP under test */
    bool alone;             /* the other side has none */
    bool bystander;         /* a connection beside it that must not suffer */
    const HcaConfig *cards; /* both, or NULL: lab_config() */
    uint64_t area;          /* bytes of each side's region */
    bool own_cq;            /* of the QP alone, or the Pair's */
    unsigned log_cq;
    uint8_t service;
    unsigned rq_entries, log_rq_entry;
    QpAttr attr;
    bool stay_in_rtr; /* alone */
} BedConfig;

typedef struct Bed {
    BedConfig config;
    Pair *pair;
    Lab *lab;
    Driver *drv[2];
    Qp *qps[2]; /* the other side's is NULL, if there is none */
    Cq *cqs[2];
    Qp *bystander[2];
    /* The side under test. */
    unsigned side;
    uint8_t service;
    Hca *hca;
    HcaQp *hqp; /* what the card knows of the QP */
    Qp *qp;
    Cq *cq;
    Mr *mr;
    /* The cable. */
    BedWeather weather[2];
    unsigned seen[2];    /* packets since the weather was set */
    unsigned cnps[2];    /* CNPs among them */
    HcaPacket cnp;       /* the last one; its pointers are dead */
    uint64_t interrupts; /* of side 1 for events, when set up */
    /* Requests of a QP with a peer. */
    SendWr wr[64];
    Sge sge[64];
    /* A peer that is no QP. */
    HcaPacket peer; /* the network headers and P_Key of what it says */
    uint32_t psn;   /* of its next request */
    uint32_t msn;   /* of its next response */
    GQueue heard;   /* BedPacket */
    uint8_t *data;  /* BED_AREA bytes: what its packets carry */
} Bed;

/* A requester, a responder without a peer; a connection with a bystander. */
BedConfig bed_requester(uint8_t service);
BedConfig bed_responder(uint8_t service);
BedConfig bed_connection(uint8_t service);

Bed *bed_new_as(const BedConfig *config);
/* A connection of RC; NULL: the usual attributes. */
Bed *bed_new_rc(uint32_t seed, const QpAttr *attr);
/* A connection of RoCE cards; NULL: the usual attributes, the usual cards. */
Bed *bed_new_roce(uint8_t service, const QpAttr *attr, const HcaConfig *cards);
/* Nothing more may have been taken down; the bystanders still work. */
void bed_free(Bed *bed);
/* Without a look at it. */
void bed_drop(Bed *bed);
/* New QPs in place of the last: one without a peer, with a CQ; or two. */
void bed_make_qp(Bed *bed, const BedConfig *config);
void bed_connect(Bed *bed, const QpAttr *attr);
/* The same QPs by RST, INIT, RTR, RTS, and no more faults: they work. */
void bed_revive(Bed *bed);

/* A plan of one fault; @status: of what fails. */
HcaFaultPlan bed_fault(HcaFaultPlace place, HcaFaultAction action,
                       uint8_t status);
/* The faults of a side's card from now on; NULL: none. */
void bed_set_faults(Bed *bed, unsigned side, const HcaFaultPlan *plan);

/* Let both cards come to rest; or let time pass, as long as there is work. */
void bed_run(Bed *bed);
void bed_run_for(Bed *bed, int64_t ns);

/* A counter of a side's card, by its name. */
uint64_t bed_counter(const Bed *bed, unsigned side, const char *name);
void bed_counted(const Bed *bed, unsigned side, const char *name, uint64_t n);
/* Of the side under test. */
void bed_expect_drops(const Bed *bed, HcaDropReason reason, uint64_t n);
void bed_expect_state(Bed *bed, unsigned state);
void bed_expect_none(Bed *bed);

/* ---- a frame out of nowhere ---- */

/* The network headers of what @from's QP sends to its peer. */
void bed_headers(const Bed *bed, unsigned from, HcaPacket *packet);
/* RoCE: along another entry of the GID tables. */
void bed_headers_along(const Bed *bed, unsigned from, unsigned gid,
                       HcaPacket *packet);
/* A frame with @packet, as if from side @from; no payload: zeros. */
void bed_put_from(Bed *bed, unsigned from, HcaPacket *packet);
/* Then the cards come to rest. */
void bed_inject(Bed *bed, unsigned from, HcaPacket *packet);
/* The same of a frame as it is. */
void bed_inject_frame(Bed *bed, unsigned from, const uint8_t *frame,
                      size_t len);

/* ---- two QPs ---- */

/* From now on; the counts begin anew. */
void bed_set_weather(Bed *bed, unsigned side, BedWeather weather);

/* @n requests of @len bytes from side 0, by one doorbell. */
SendWr *bed_request(Bed *bed, unsigned i, uint8_t opcode, uint32_t len);
void bed_post_requests(Bed *bed, unsigned n);
/* @n receives of @len bytes on side 1. */
void bed_post_recvs(Bed *bed, unsigned n, uint32_t len);
/* The same on @side, with wr_id from @first on. */
void bed_post_recvs_on(Bed *bed, unsigned side, uint64_t first, unsigned n,
                       uint32_t len);
/* The next completion of side @side's QP. */
void bed_expect_end(Bed *bed, unsigned side, uint8_t syndrome);

/* ---- one QP ---- */

/* The peer says @packet with data from @at of bed->data on; not run yet. */
void bed_put(Bed *bed, HcaPacket *packet, uint32_t at);
/* The next packet of the QP under test has to be this one; g_free() it. */
BedPacket *bed_next(Bed *bed, uint8_t op, uint32_t psn);
void bed_expect_quiet(Bed *bed);
/* @len bytes at @to of the region are those at @at of bed->data. */
void bed_expect_region(Bed *bed, uint32_t to, uint32_t at, uint32_t len);

#endif /* LIB_BED_H */
