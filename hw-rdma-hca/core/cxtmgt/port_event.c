/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events of the port. Of changes of its state the last two that leave it as it
 * is wait for room in their EQ; of what a manager has changed, all in one.
 */
#include "cxtmgt_int.h"

/* A place for another change; if both wait, the two are no news together. */
static HcaEventPlace *free_place(HcaCxtMgt *cm)
{
    HcaEventPlace *place = cm->port_events.change;

    if (place[0].waits && place[1].waits) {
        hca_eq_forget(cm, &place[0]);
        hca_eq_forget(cm, &place[1]);
    }
    return place[0].waits ? &place[1] : &place[0];
}

void hca_port_change_event(HcaCxtMgt *cm, uint8_t subtype)
{
    HcaEvent event = {
        .type = HCA_EVENT_PORT_CHANGE,
        .subtype = subtype,
        .number = RDMA_HCA_NUM_PORTS,
    };
    HcaPortEvents *port = &cm->port_events;

    if (port->last && port->last->waits &&
        port->last->event.subtype == subtype) {
        return;
    }
    port->last = free_place(cm);
    hca_eq_event(cm, &event, port->last);
}

void hca_port_mng_event(HcaCxtMgt *cm, uint32_t changes)
{
    HcaEvent event = {
        .type = HCA_EVENT_PORT_MNG,
        .number = RDMA_HCA_NUM_PORTS,
        .syndrome = changes,
    };
    HcaEventPlace *place = &cm->port_events.mng;

    if (place->waits) {
        place->event.syndrome |= changes;
    } else {
        hca_eq_event(cm, &event, place);
    }
}
