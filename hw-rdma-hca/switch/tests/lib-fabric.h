/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Switches and stations (ends of cables that a test speaks for) in one process.
 * Time is the fabric's, and passes when the test lets it.
 */
#ifndef LIB_FABRIC_H
#define LIB_FABRIC_H

#include "core/wire/bytes.h"
#include "core/wire/wire.h"
#include "switch/switch.h"

#define NS_PER_US 1000ll
#define NS_PER_MS 1000000ll
#define NS_PER_S 1000000000ll

typedef struct Fabric Fabric;

/* One end of a cable: what it has to read, and who reads what it writes. */
typedef struct End {
    Fabric *fabric;
    struct End *peer; /* NULL: no cable */
    GByteArray *in;
    size_t capacity;
    bool cut; /* its owner wants the cable to go */
} End;

typedef struct Box {
    Fabric *fabric;
    HcaSwitch *sw;
    HcaNode *node;
    End end[HCA_SWITCH_MAX_PORTS + 1];
    GByteArray *capture[HCA_SWITCH_MAX_PORTS + 1];
    GString *log;
} Box;

typedef struct Station {
    Fabric *fabric;
    HcaLink *link;
    End end;
    GQueue received; /* of GByteArray: packets, LRH to VCRC */
    bool deaf;       /* it does not read */
    uint64_t tid;
} Station;

struct Fabric {
    int64_t now;
    GPtrArray *boxes, *stations;
    uint64_t moved;  /* bytes */
    size_t capacity; /* of new cables */
};

Fabric *fabric_new(void);
void fabric_free(Fabric *fabric);

/* @name, @guid: the switch's number in the fabric, from 1 on. */
Box *fabric_switch(Fabric *fabric, unsigned ports);
Box *fabric_switch_with(Fabric *fabric, const HcaSwitchConfig *config);
Station *fabric_station(Fabric *fabric);

/* Plug a cable in, pull it out. */
void fabric_join(Station *station, Box *box, unsigned port);
void fabric_join_boxes(Box *a, unsigned port_a, Box *b, unsigned port_b);
void fabric_pull(End *end);

/* One turn of a switch alone; true: it has more to do. */
bool box_run(Box *box);
/* Until nothing moves any more. */
void fabric_run(Fabric *fabric);
/* Time passes; what is due happens when it is. */
void fabric_advance(Fabric *fabric, int64_t ns);

/*
 * A switch with @n stations on ports 1.. @n of LIDs 1.. @n, LFT set, all ports
 * Active.
 */
Box *fabric_star(Fabric *fabric, unsigned n, Station **stations);
/* The trained ports of a switch go to @state without a manager. */
void box_set_states(Box *box, HcaPortState state);
uint64_t box_counter(Box *box, unsigned port, HcaPmaCounter counter);
/* Of the report: as "drop.mtu". */
uint64_t box_reported(Box *box, unsigned port, const char *name);

/* Packets */

/* An UD packet; what is not given is 0. */
typedef struct Parcel {
    uint16_t slid, dlid;
    uint8_t vl, sl;
    uint16_t pkey; /* 0: the default key */
    uint32_t dest_qp, src_qp, qkey;
    size_t size;   /* of the payload */
    uint32_t mark; /* its first bytes */
    bool grh;
} Parcel;

/* LRH to VCRC; the caller frees it. */
GByteArray *parcel_pack(const Parcel *parcel);
void station_send(Station *station, const Parcel *parcel);
/* Any bytes as a packet of the cable; any bytes as they are. */
void station_send_bytes(Station *station, const void *packet, size_t len);
void station_inject(Station *station, const void *bytes, size_t len);
/* Recompute VCRC, and with @icrc ICRC, after a packet was changed. */
void packet_seal(GByteArray *packet, bool icrc);

/* The next packet that has arrived, or NULL; the caller frees it. */
GByteArray *station_take(Station *station);
/* The next one is this, but for LRH.VL and VCRC; it is freed. */
void station_expect(Station *station, const Parcel *parcel);
void station_expect_vl(Station *station, const Parcel *parcel, unsigned vl);
void station_expect_nothing(Station *station);
/* How many have arrived; they are freed. */
unsigned station_count(Station *station);

/* MADs */

typedef struct Mad {
    uint8_t bytes[HCA_MAD_SIZE];
    HcaPacket packet; /* of one that has arrived */
} Mad;

/* An SMP; @path are the ports behind the station's own, NULL: by LIDs. */
void smp_init(Mad *mad, Station *station, uint8_t method, uint16_t attribute,
              uint32_t modifier, const uint8_t *path, unsigned hops);
void station_send_smp(Station *station, const Mad *mad, uint16_t slid,
                      uint16_t dlid);
void station_send_gmp(Station *station, const Mad *mad, uint16_t slid,
                      uint16_t dlid);
/* The next packet is a MAD; false: there is none. */
bool station_take_mad(Station *station, Mad *mad);

/*
 * A request by directed route and its answer; returns the status without D.
 * Fails if there is no answer.
 */
uint16_t smp_get(Station *station, const uint8_t *path, unsigned hops,
                 uint16_t attribute, uint32_t modifier, uint8_t *data);
uint16_t smp_set(Station *station, const uint8_t *path, unsigned hops,
                 uint16_t attribute, uint32_t modifier, uint8_t *data);

#endif /* LIB_FABRIC_H */
