/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * MSI-X messages, and what a plan of faults does to them. One that is late is
 * overtaken by those behind it, as messages of different vectors may be.
 */
#include <string.h>

#include "../fault/host_faults.h"
#include "v2p_int.h"

#define MAX_LATE 64
/* One that comes twice does so apart, or who delivers it joins the two. */
#define AGAIN_NS 10000

typedef struct LateInterrupt {
    int64_t at_ns;
    unsigned vector;
} LateInterrupt;

typedef struct HcaLateInterrupts {
    unsigned count;
    LateInterrupt late[MAX_LATE]; /* in no order */
} HcaLateInterrupts;

HcaLateInterrupts *hca_late_interrupts_new(void)
{
    return g_new0(HcaLateInterrupts, 1);
}

static void send(HcaV2p *v2p, unsigned vector)
{
    v2p->host.ops->msix_notify(v2p->host.opaque, vector);
}

static void be_late(HcaV2p *v2p, unsigned vector, uint64_t delay_ns)
{
    HcaLateInterrupts *late = v2p->late_interrupts;

    if (late->count == MAX_LATE) {
        v2p->faults->counters.held_full++;
        send(v2p, vector);
        return;
    }
    late->late[late->count++] = (LateInterrupt) {
        .at_ns = v2p->host.ops->clock_ns(v2p->host.opaque) + delay_ns,
        .vector = vector,
    };
}

void hca_v2p_notify(HcaV2p *v2p, unsigned vector)
{
    const HcaFaultSubject subject = {
        .place = HCA_FAULT_INTERRUPT,
        .actions = UINT16_MAX,
        .number = vector,
    };
    const HcaFaultRule *rule = hca_host_fault(v2p->faults, &subject);

    if (!rule) {
        send(v2p, vector);
    } else if (rule->action == HCA_FAULT_DELAY) {
        be_late(v2p, vector, rule->delay_ns);
    } else if (rule->action == HCA_FAULT_DUPLICATE) {
        send(v2p, vector);
        be_late(v2p, vector, AGAIN_NS);
    } /* else it is lost */
}

void hca_late_interrupts_run(HcaV2p *v2p)
{
    HcaLateInterrupts *late = v2p->late_interrupts;
    int64_t now;

    if (!late || !late->count) {
        return;
    }
    now = v2p->host.ops->clock_ns(v2p->host.opaque);
    for (unsigned i = 0; i < late->count;) {
        if (late->late[i].at_ns > now) {
            i++;
        } else {
            send(v2p, late->late[i].vector);
            late->late[i] = late->late[--late->count];
        }
    }
}

int64_t hca_late_interrupts_deadline(const HcaV2p *v2p)
{
    const HcaLateInterrupts *late = v2p->late_interrupts;
    int64_t at = INT64_MAX;

    for (unsigned i = 0; late && i < late->count; i++) {
        at = MIN(at, late->late[i].at_ns);
    }
    return at;
}

void hca_late_interrupts_forget(HcaV2p *v2p)
{
    if (v2p->late_interrupts) {
        v2p->late_interrupts->count = 0;
    }
}

/* State */

static const HcaField late_fields[] = {
    HCA_SAVED(LateInterrupt, at_ns),
    HCA_SAVED(LateInterrupt, vector),
};
static const HcaStruct late_struct = HCA_STRUCT(LateInterrupt, late_fields);

static const HcaField late_ones_fields[] = {
    HCA_ELSEWHERE(HcaLateInterrupts, count),
    HCA_ELSEWHERE(HcaLateInterrupts, late),
};
static const HcaStruct late_ones_struct = HCA_STRUCT(HcaLateInterrupts,
                                                     late_ones_fields);

static void save_late(void *room, GArray *records)
{
    const HcaV2p *v2p = room;
    const HcaLateInterrupts *late = v2p->late_interrupts;

    if (late) {
        g_array_append_vals(records, late->late, late->count);
    }
}

/* One of a vector that there is not does nothing. */
static bool load_late(void *room, const void *records, uint32_t n,
                      HcaStateError *error)
{
    const HcaV2p *v2p = room;
    HcaLateInterrupts *late = v2p->late_interrupts;

    if (!late || n > MAX_LATE) {
        return hca_state_refuse(error, "%u late interrupts", n);
    }
    memcpy(late->late, records, n * sizeof(late->late[0]));
    late->count = n;
    return true;
}

const HcaSection hca_late_interrupt_section = HCA_SECTION(
    "late-interrupt", 1, &late_struct, save_late, load_late, &late_ones_struct);
