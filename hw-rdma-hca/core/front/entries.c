/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CQEs and EQEs; see entries.h. */
#include "entries.h"

#include "../../abi/rdma_hca_wqe.h"

#define CQE(field, value) RDMA_HCA_PREP(RDMA_HCA_CQE_##field, value)

/* One of the link layers leaves each field 0 that is not its own. */
static uint32_t path_word(const HcaSource *source)
{
    return CQE(RLID, source->lid) | CQE(HAS_VLAN, source->vlan != 0) |
           CQE(VLAN, source->vlan) | CQE(GRH, source->grh) |
           CQE(MLPATH, source->path_bits) | CQE(IPV4, source->ipv4) |
           CQE(SL, source->sl);
}

void hca_front_put_cqe(const HcaCompletion *completion, int64_t time, void *cqe)
{
    uint8_t opcode = completion->syndrome ? RDMA_HCA_OPCODE_INVALID
                                          : completion->opcode;
    struct rdma_hca_cqe entry = {
        .my_qpn = GUINT32_TO_LE(completion->qpn),
        .time_l = GUINT32_TO_LE(RDMA_HCA_LO32(time)),
        .rqpn = GUINT32_TO_LE(completion->remote_qpn),
        .rlid_path = GUINT32_TO_LE(path_word(&completion->source)),
        .imm = completion->imm_be,
        .byte_cnt = GUINT32_TO_LE(completion->byte_cnt),
        .wqe = GUINT32_TO_LE(completion->wqe),
        .ctrl = GUINT32_TO_LE(
            CQE(OWNER, RDMA_HCA_OWNER_SW) | CQE(XRC, completion->xrc) |
            CQE(TIME_H, RDMA_HCA_HI32(time)) |
            CQE(IS_SEND, completion->is_send) | CQE(OPCODE, opcode)),
    };

    if (completion->inv_rkey) {
        entry.inv_rkey = GUINT32_TO_LE(completion->inv_rkey);
    }
    if (completion->flow_tag) {
        entry.flow_tag = GUINT32_TO_LE(completion->flow_tag);
    }
    if (completion->has_pkey_index) {
        entry.pkey_index = GUINT32_TO_LE(
            CQE(PKEY_INDEX, completion->pkey_index));
    }
    if (completion->syndrome) {
        entry.err = GUINT32_TO_LE(CQE(VENDOR_ERR, completion->vendor_err) |
                                  CQE(SYNDROME, completion->syndrome));
    }
    memcpy(cqe, &entry, sizeof(entry));
}

void hca_front_put_eqe(const HcaEvent *event, void *eqe)
{
    struct rdma_hca_eqe entry = {
        .type = event->type,
        .subtype = event->subtype,
        .owner = RDMA_HCA_OWNER_SW,
    };

    /* QPN, CQN, SRQN, port and token have the same place. */
    entry.raw[0] = GUINT32_TO_LE(event->number);
    if (event->type == HCA_EVENT_CQ_ERROR) {
        entry.cq.syndrome = GUINT32_TO_LE(event->syndrome);
    } else if (event->type == HCA_EVENT_PORT_MNG) {
        entry.port.changes = GUINT32_TO_LE(event->syndrome);
    } else if (event->type == HCA_EVENT_CMD) {
        entry.cmd.status = GUINT32_TO_LE(event->status);
        entry.cmd.out_param_h = GUINT32_TO_LE(RDMA_HCA_HI32(event->out_param));
        entry.cmd.out_param_l = GUINT32_TO_LE(RDMA_HCA_LO32(event->out_param));
    }
    memcpy(eqe, &entry, sizeof(entry));
}
