/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of the agents. */
#ifndef HCA_MAD_INT_H
#define HCA_MAD_INT_H

#include <glib.h>
#include <string.h>

#include "node.h"

/* A request to the subnet management agent, and its answer. */
typedef struct HcaSmp {
    unsigned in_port;
    bool set;
    uint32_t modifier;
    const uint8_t *data; /* of a Set: what is to be */
    uint8_t *answer;     /* HCA_SMP_DATA_SIZE bytes, zero at first */
} HcaSmp;

/*
 * Do what a Set says, as far as it is valid, and write what there is then to the
 * answer; returns a status.
 */
typedef uint16_t HcaSmaFn(HcaNode *node, HcaSmp *smp);

/* port_info.c */
HcaSmaFn hca_sma_port_info;
/* What a port begins with; a link's physical state and what a host has set stay. */
void hca_port_info_reset(HcaNode *node, unsigned port);
/* tables.c */
HcaSmaFn hca_sma_pkeys, hca_sma_guids, hca_sma_sl_to_vl, hca_sma_vl_arb,
    hca_sma_led;
/* switch_tables.c */
HcaSmaFn hca_sma_switch_info, hca_sma_lft, hca_sma_mft;
void hca_switch_tables_reset(HcaNode *node);
/* notice.c */
HcaSmaFn hca_sma_notice;

/* A switch's external port has no keys, LID and description of its own. */
static inline bool hca_node_is_end(const HcaNode *node, unsigned port)
{
    return node->type == HCA_NODE_CA || port == 0;
}
static inline bool hca_node_has_link(const HcaNode *node, unsigned port)
{
    return node->type == HCA_NODE_CA || port != 0;
}

static inline int64_t hca_node_now(const HcaNode *node)
{
    return node->ops->now(node->opaque);
}

static inline void hca_node_tell(HcaNode *node, unsigned port, unsigned what)
{
    if (what) {
        node->ops->changed(node->opaque, port, what);
    }
}

/* The link is given up, by a manager; it trains anew if @poll. */
void hca_node_retrain(HcaNode *node, unsigned port, HcaPortPhysState to);
/* How many data VLs a code of VLCap and OperationalVLs stands for. */
unsigned hca_num_vls(uint8_t code);

/* sma.c: leases of the M_Key. */
void hca_mkey_tick(HcaNode *node);
int64_t hca_mkey_deadline(const HcaNode *node);

/* notice.c: a notice of the node's, about @details (from byte 10 on). */
typedef struct HcaNotice {
    uint16_t number;
    uint8_t type; /* HCA_NOTICE_* */
    const uint8_t *details;
    size_t len;
} HcaNotice;

#define HCA_NOTICE_URGENT 1
#define HCA_NOTICE_SECURITY 2
#define HCA_NOTICE_INFORMATIONAL 4
#define HCA_NOTICE_DETAILS 10

void hca_notice_raise(HcaNode *node, const HcaNotice *notice);
/* The manager has seen the trap that @mad is a copy of. */
void hca_notice_repress(HcaNode *node, const uint8_t *mad);
void hca_notice_tick(HcaNode *node);
int64_t hca_notice_deadline(const HcaNode *node);
void hca_notice_reset(HcaNode *node);

/* sma.c, pma.c: the agents. */
HcaMadVerdict hca_sma_answer(HcaNode *node, unsigned in_port, bool local,
                             const uint8_t *mad, uint8_t *reply);
HcaMadVerdict hca_pma_answer(HcaNode *node, unsigned in_port,
                             const uint8_t *mad, uint8_t *reply);

#endif /* HCA_MAD_INT_H */
