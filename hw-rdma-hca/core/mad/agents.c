/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who answers a MAD: the agent of its class. What is asked of a class that nobody
 * here manages (baseboard, devices, congestion, vendors) is refused; what is not
 * asked is not answered (IBA 13.4.5, 13.5.3).
 */
#include "mad_int.h"

static bool is_request(const uint8_t *mad)
{
    return mad[HCA_MAD_METHOD] == HCA_METHOD_GET ||
           mad[HCA_MAD_METHOD] == HCA_METHOD_SET;
}

static HcaMadVerdict refuse(HcaNode *node, const uint8_t *mad, uint8_t *reply)
{
    memcpy(reply, mad, HCA_MAD_SIZE);
    reply[HCA_MAD_METHOD] = HCA_METHOD_GET_RESP;
    put_be16(reply + HCA_MAD_STATUS, HCA_MAD_BAD_ATTRIBUTE);
    node->counters.refused++;
    return HCA_MAD_REPLY;
}

HcaMadVerdict hca_node_answer(HcaNode *node, unsigned in_port, bool local,
                              const uint8_t *mad, uint8_t *reply)
{
    if (mad[HCA_MAD_BASE_VERSION] != HCA_MAD_VERSION) {
        return HCA_MAD_DROP;
    }
    if (hca_mad_is_smp(mad)) {
        return hca_sma_answer(node, in_port, local, mad, reply);
    }
    if (mad[HCA_MAD_CLASS] == HCA_CLASS_PERF) {
        return hca_pma_answer(node, in_port, mad, reply);
    }
    return is_request(mad) ? refuse(node, mad, reply) : HCA_MAD_DROP;
}
