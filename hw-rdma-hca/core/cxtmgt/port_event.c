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

    if (hca_event_waits(&place[0]) && hca_event_waits(&place[1])) {
        hca_eq_forget(&place[0]);
        hca_eq_forget(&place[1]);
    }
    return hca_event_waits(&place[0]) ? &place[1] : &place[0];
}

void hca_port_change_event(HcaCxtMgt *cm, uint8_t subtype)
{
    HcaEvent event = {
        .type = HCA_EVENT_PORT_CHANGE,
        .subtype = subtype,
        .number = RDMA_HCA_NUM_PORTS,
    };
    const HcaEventPlace *last = g_queue_peek_tail(&cm->waiting[event.type]);

    if (!last || last->event.subtype != subtype) {
        hca_eq_event(cm, &event, free_place(cm));
    }
}

void hca_port_mng_event(HcaCxtMgt *cm, uint32_t changes)
{
    HcaEvent event = {
        .type = HCA_EVENT_PORT_MNG,
        .number = RDMA_HCA_NUM_PORTS,
        .syndrome = changes,
    };
    HcaEventPlace *place = &cm->port_events.mng;

    if (hca_event_waits(place)) {
        place->event.syndrome |= changes;
    } else {
        hca_eq_event(cm, &event, place);
    }
}
