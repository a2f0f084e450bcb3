/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inside of the fault injector, for tx.c and rx.c: they show each packet to
 * the injector, do to it what that says, and ask for those held back.
 */
#ifndef HCA_LINK_FAULT_INT_H
#define HCA_LINK_FAULT_INT_H

#include <glib.h>

#include "../fault/faults.h"
#include "../host.h"
#include "../wire/wire.h"
#include "link.h"

/* What happens to a packet. */
typedef struct HcaFault {
    HcaFaultAction action; /* HCA_FAULT_NPACKET_ACTIONS: nothing */
    unsigned rule;         /* from 0 on, of the plan of that time */
    size_t offset;         /* CORRUPT */
    uint8_t mask;
} HcaFault;

/* A packet that is held back. */
typedef struct HcaHeld {
    GList link;
    uint64_t number;  /* of its direction, in the order of their coming */
    uint32_t left;    /* REORDER: later packets that have yet to pass */
    int64_t deadline; /* when it leaves at the latest */
    HcaFault fault;
    uint8_t vl;
    size_t len;
    uint8_t packet[HCA_LINK_MAX_PACKET];
} HcaHeld;

typedef struct HcaInjectorSide {
    HcaChance chance;
    HcaHeld *slots; /* HCA_FAULT_MAX_HELD; NULL: never needed */
    GQueue free;
    GQueue waiting;  /* in the order of their coming */
    GQueue due;      /* in the order in which they leave */
    uint64_t number; /* of the next packet */
} HcaInjectorSide;

typedef struct HcaInjector {
    HcaHost host;
    const HcaEncap *encap;
    bool on;       /* there are rules or packets held */
    unsigned held; /* slots that are not free */
    HcaFaults faults;
    HcaInjectorSide side[HCA_FAULT_NDIRECTIONS];
    HcaFaultCounters counters;
} HcaInjector;

HcaInjector *hca_injector_new(const HcaHost *host, const HcaEncap *encap);
void hca_injector_free(HcaInjector *injector);

/* As hca_faults_begin(). If none is kept, packets that are held are due at once. */
void hca_injector_set_plan(HcaInjector *injector, const HcaFaultPlan *plan,
                           unsigned kept);

/*
 * Judge @packet: its bits are inverted in place; one to be held back is copied.
 * The caller does the rest: it has to pass on what is not dropped or held, and
 * then those that are due.
 */
HcaFault hca_injector_treat(HcaInjector *injector, HcaFaultDirection direction,
                            uint8_t *packet, size_t len, uint8_t vl);

/* For a packet's comment in the capture. */
#define HCA_FAULT_TEXT_SIZE 80
void hca_fault_describe(const HcaFault *fault, char text[HCA_FAULT_TEXT_SIZE]);

/* Packets whose time has come are due; when the next one's is. */
void hca_injector_tick(HcaInjector *injector);
int64_t hca_injector_deadline(const HcaInjector *injector);

/*
 * The next packet that is due, or NULL; it passes now. Give its slot back
 * afterwards.
 */
bool hca_injector_is_due(const HcaInjector *injector,
                         HcaFaultDirection direction);
HcaHeld *hca_injector_take_due(HcaInjector *injector,
                               HcaFaultDirection direction);
void hca_injector_give_back(HcaInjector *injector, HcaFaultDirection direction,
                            HcaHeld *held);

/* Forget what is held; slots that are lent remain so. */
void hca_injector_forget(HcaInjector *injector, HcaFaultDirection direction);

/*
 * As they were saved: the plan; a packet that is held back, behind those that are,
 * or due (NULL: there is no room), which the caller fills in.
 */
bool hca_injector_load(HcaInjector *injector, const void *records, uint32_t n,
                       HcaStateError *error);
HcaHeld *hca_injector_add_held(HcaInjector *injector,
                               HcaFaultDirection direction, bool due);

#endif /* HCA_LINK_FAULT_INT_H */
