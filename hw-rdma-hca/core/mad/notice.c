/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Notices (IBA 13.4.8 to 13.4.11, 14.2.5.1). Each is kept to be asked for, and
 * sent to the manager as a trap: no more often than one in SubnetTimeOut (o14-2),
 * again until it is repressed, but a few times only, as there may be nobody.
 *
 * Who may send packets may cause as many security notices as he likes: they
 * have no more than half of the places, and wait for all others.
 */
#include "mad_int.h"

#define SEND_TIMES 5
#define GENERIC 0x80
#define TIMEOUT_UNIT 4096 /* ns */
#define TOGGLE 0x8000
#define TYPE_MASK 0x7f

/* Whether there is somebody to tell, and a way (o14-3.2.1). */
static bool can_tell(const HcaNode *node)
{
    const HcaPortInfo *info = &node->port[hca_node_mgmt_port(node)].info;

    return info->lid && info->sm_lid && info->state == HCA_PORT_ACTIVE;
}

static void write_notice(const HcaNode *node, const HcaNotice *notice,
                         uint8_t *out)
{
    const HcaPortInfo *info = &node->port[hca_node_mgmt_port(node)].info;

    memset(out, 0, HCA_NOTICE_SIZE);
    out[0] = GENERIC | notice->type;
    put_be24(out + 1, node->type); /* ProducerType: CA 1, switch 2 */
    put_be16(out + 4, notice->number);
    put_be16(out + 6, info->lid);
    memcpy(out + HCA_NOTICE_DETAILS, notice->details, notice->len);
}

static bool is_waiting(const HcaNode *node, const uint8_t *notice)
{
    for (unsigned i = 0; i < node->ntraps; i++) {
        if (!memcmp(node->trap[i].notice, notice, HCA_NOTICE_SIZE)) {
            return true;
        }
    }
    return false;
}

static bool is_security(const uint8_t *notice)
{
    return (notice[0] & TYPE_MASK) == HCA_NOTICE_SECURITY;
}

/* Whether @notice finds a place in one of @places, of which @n are taken; they
 * are @stride bytes apart. */
static bool has_place(const uint8_t *notice, const uint8_t *taken,
                      size_t stride, unsigned n, unsigned places)
{
    unsigned security = 0;

    for (unsigned i = 0; i < n; i++) {
        security += is_security(taken + i * stride);
    }
    return n < places && (!is_security(notice) || security < places / 2);
}

static void add_trap(HcaNode *node, const uint8_t *notice)
{
    HcaTrap *trap = &node->trap[node->ntraps];

    if (is_waiting(node, notice)) {
        return;
    }
    if (!has_place(notice, node->trap[0].notice, sizeof(*trap), node->ntraps,
                   HCA_NODE_TRAPS)) {
        node->counters.traps_lost++;
        return;
    }
    *trap = (HcaTrap) { .tid = ++node->next_tid };
    memcpy(trap->notice, notice, HCA_NOTICE_SIZE);
    node->ntraps++;
}

void hca_notice_raise(HcaNode *node, const HcaNotice *notice)
{
    uint8_t bytes[HCA_NOTICE_SIZE];

    write_notice(node, notice, bytes);
    if (has_place(bytes, node->notice[0], HCA_NOTICE_SIZE, node->nnotices,
                  HCA_NODE_NOTICES)) {
        memcpy(node->notice[node->nnotices++], bytes, HCA_NOTICE_SIZE);
    }
    if (can_tell(node)) {
        add_trap(node, bytes);
    }
}

static void remove_trap(HcaNode *node, unsigned i)
{
    node->ntraps--;
    memmove(&node->trap[i], &node->trap[i + 1],
            (node->ntraps - i) * sizeof(node->trap[0]));
}

void hca_notice_repress(HcaNode *node, const uint8_t *mad)
{
    for (unsigned i = 0; i < node->ntraps; i++) {
        if (node->trap[i].tid == get_be64(mad + HCA_MAD_TID)) {
            node->counters.traps_repressed++;
            remove_trap(node, i);
            return;
        }
    }
}

static bool send(HcaNode *node, const HcaTrap *trap)
{
    const HcaPortInfo *info = &node->port[hca_node_mgmt_port(node)].info;
    uint8_t mad[HCA_MAD_SIZE] = { 0 };

    mad[HCA_MAD_BASE_VERSION] = HCA_MAD_VERSION;
    mad[HCA_MAD_CLASS] = HCA_CLASS_SUBN_LID;
    mad[HCA_MAD_CLASS_VERSION] = 1;
    mad[HCA_MAD_METHOD] = HCA_METHOD_TRAP;
    put_be64(mad + HCA_MAD_TID, trap->tid);
    put_be16(mad + HCA_MAD_ATTRIBUTE, HCA_ATTR_NOTICE);
    memcpy(mad + HCA_MAD_DATA, trap->notice, HCA_NOTICE_SIZE);
    return node->ops->send_smp(node->opaque, info->sm_lid, info->sm_sl, mad);
}

static int64_t period(const HcaNode *node)
{
    const HcaPortInfo *info = &node->port[hca_node_mgmt_port(node)].info;

    return (int64_t)TIMEOUT_UNIT << info->subnet_timeout;
}

/* The one that was sent least often; security last, and the oldest first. */
static unsigned next_trap(const HcaNode *node)
{
    unsigned best = 0;

    for (unsigned i = 1; i < node->ntraps; i++) {
        const HcaTrap *a = &node->trap[i], *b = &node->trap[best];
        bool later = is_security(a->notice), before = is_security(b->notice);

        if (a->sent < b->sent || (a->sent == b->sent && later < before)) {
            best = i;
        }
    }
    return best;
}

/* One goes, and to the end of those that wait. */
static void send_next(HcaNode *node)
{
    unsigned i = next_trap(node);
    HcaTrap trap = node->trap[i];

    node->counters.traps += send(node, &trap);
    remove_trap(node, i);
    if (++trap.sent < SEND_TIMES) {
        node->trap[node->ntraps++] = trap;
    }
}

/* Who has lost the manager has nobody to tell of what was. */
void hca_notice_tick(HcaNode *node)
{
    int64_t now;

    if (!node->ntraps) {
        return;
    }
    if (!can_tell(node)) {
        node->ntraps = 0;
        return;
    }
    now = hca_node_now(node);
    if (now >= node->next_trap) {
        node->next_trap = now + period(node);
        send_next(node);
    }
}

int64_t hca_notice_deadline(const HcaNode *node)
{
    return node->ntraps ? node->next_trap : INT64_MAX;
}

void hca_notice_reset(HcaNode *node)
{
    node->ntraps = 0;
    memset(node->trap, 0, sizeof(node->trap));
    node->nnotices = 0;
    memset(node->notice, 0, sizeof(node->notice));
    node->notice_toggle = false;
    node->next_trap = 0;
}

/*
 * Get: the oldest notice, and how many there are. Set, with the toggle bit that
 * came with it, takes it away (IBA 13.4.10).
 */
uint16_t hca_sma_notice(HcaNode *node, HcaSmp *smp)
{
    bool toggle = get_be16(smp->data + 8) & TOGGLE;

    if (smp->set && node->nnotices && toggle == node->notice_toggle) {
        node->nnotices--;
        memmove(node->notice[0], node->notice[1],
                node->nnotices * HCA_NOTICE_SIZE);
        node->notice_toggle = !toggle;
    }
    if (node->nnotices) {
        memcpy(smp->answer, node->notice[0], HCA_NOTICE_SIZE);
    }
    put_be16(smp->answer + 8,
             (node->notice_toggle ? TOGGLE : 0) | node->nnotices);
    return HCA_MAD_OK;
}
