/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * acc_cm (CEU document 2.2, figure 2-5): commands of the context manager; and
 * the entries of MAP_ICM, which wr_v2p has in common with it.
 */
#include "../contexts.h"
#include "ceu_int.h"

static const struct rdma_hca_icm_entry *icm_entry(const HcaCommand *cmd,
                                                  uint32_t i)
{
    const struct rdma_hca_icm_entry *entries = (const void *)cmd->inbox;

    return &entries[RDMA_HCA_ICM_SLOT(i)];
}

static uint64_t entry_virt(const struct rdma_hca_icm_entry *entry)
{
    return hca_join_be(entry->virt_h, entry->virt_l);
}

static uint32_t entry_pages(const struct rdma_hca_icm_entry *entry)
{
    return RDMA_HCA_GET(RDMA_HCA_ICM_PAGE_NUM, GUINT32_FROM_BE(entry->page_l));
}

uint8_t hca_ceu_map_entries(HcaCeu *ceu, const HcaCommand *cmd,
                            HcaMapIcmFn *map, HcaUnmapIcmFn *unmap)
{
    for (uint32_t i = 0; i < cmd->in_modifier; i++) {
        const struct rdma_hca_icm_entry *entry = icm_entry(cmd, i);
        uint64_t page = hca_join_be(entry->page_h, entry->page_l) &
                        ~(uint64_t)RDMA_HCA_ICM_PAGE_NUM;
        uint8_t status = map(ceu->hca, entry_virt(entry), page,
                             entry_pages(entry));

        if (status) {
            while (i--) {
                entry = icm_entry(cmd, i);
                unmap(ceu->hca, entry_virt(entry), entry_pages(entry));
            }
            return status;
        }
    }
    return RDMA_HCA_STAT_OK;
}

static uint8_t map_cxt(Hca *hca, uint64_t virt, uint64_t page, uint32_t npages)
{
    return hca_cxtmgt_map_icm(hca->cm, virt, page, npages);
}

static uint8_t unmap_cxt(Hca *hca, uint64_t virt, uint32_t npages)
{
    return hca_cxtmgt_unmap_icm(hca->cm, virt, npages);
}

uint8_t hca_ceu_map_icm_cm(HcaCeu *ceu, HcaCommand *cmd)
{
    return hca_ceu_map_entries(ceu, cmd, map_cxt, unmap_cxt);
}

uint8_t hca_ceu_unmap_icm_cm(HcaCeu *ceu, HcaCommand *cmd)
{
    return unmap_cxt(ceu->hca, cmd->in_param, cmd->in_modifier);
}

uint8_t hca_ceu_sw2hw_cq(HcaCeu *ceu, HcaCommand *cmd)
{
    HcaCqAttr attr;
    bool ok = hca_front_get_cq((const void *)cmd->inbox, &attr);

    return hca_cxtmgt_sw2hw_cq(ceu->hca->cm, cmd->in_modifier,
                               ok ? &attr : NULL);
}

uint8_t hca_ceu_hw2sw_cq(HcaCeu *ceu, HcaCommand *cmd)
{
    return hca_cxtmgt_hw2sw_cq(ceu->hca->cm, cmd->in_modifier);
}

uint8_t hca_ceu_query_cq(HcaCeu *ceu, HcaCommand *cmd)
{
    return hca_cxtmgt_query_cq(ceu->hca->cm, cmd->in_modifier, cmd->outbox);
}

uint8_t hca_ceu_resize_cq(HcaCeu *ceu, HcaCommand *cmd)
{
    const struct rdma_hca_resize_cq *resize = (const void *)cmd->inbox;

    return hca_cxtmgt_resize_cq(ceu->hca->cm, cmd->in_modifier,
                                RDMA_HCA_GET(RDMA_HCA_RESIZE_CQ_LOGSIZE,
                                             GUINT32_FROM_BE(resize->logsize)),
                                GUINT32_FROM_BE(resize->lkey));
}

uint8_t hca_ceu_modify_cq(HcaCeu *ceu, HcaCommand *cmd)
{
    return hca_cxtmgt_modify_cq(
        ceu->hca->cm, cmd->in_modifier,
        RDMA_HCA_GET(RDMA_HCA_MODERATION_COUNT, cmd->in_param),
        RDMA_HCA_GET(RDMA_HCA_MODERATION_PERIOD, cmd->in_param));
}

uint8_t hca_ceu_sw2hw_eq(HcaCeu *ceu, HcaCommand *cmd)
{
    HcaEqAttr attr;
    bool ok = hca_front_get_eq((const void *)cmd->inbox, &attr);

    return hca_cxtmgt_sw2hw_eq(ceu->hca->cm, cmd->in_modifier,
                               ok ? &attr : NULL);
}

uint8_t hca_ceu_hw2sw_eq(HcaCeu *ceu, HcaCommand *cmd)
{
    return hca_cxtmgt_hw2sw_eq(ceu->hca->cm, cmd->in_modifier);
}

uint8_t hca_ceu_query_eq(HcaCeu *ceu, HcaCommand *cmd)
{
    return hca_cxtmgt_query_eq(ceu->hca->cm, cmd->in_modifier, cmd->outbox);
}

uint8_t hca_ceu_map_eq(HcaCeu *ceu, HcaCommand *cmd)
{
    return hca_cxtmgt_map_eq(
        ceu->hca->cm, RDMA_HCA_GET(RDMA_HCA_MAP_EQ_EQN, cmd->in_modifier),
        cmd->in_param, cmd->in_modifier & RDMA_HCA_MAP_EQ_UNMAP);
}

uint8_t hca_ceu_sw2hw_srq(HcaCeu *ceu, HcaCommand *cmd)
{
    HcaSrqAttr attr;
    bool ok = hca_front_get_srq((const void *)cmd->inbox, &attr);

    return hca_cxtmgt_sw2hw_srq(ceu->hca->cm, cmd->in_modifier,
                                ok ? &attr : NULL);
}

uint8_t hca_ceu_hw2sw_srq(HcaCeu *ceu, HcaCommand *cmd)
{
    return hca_cxtmgt_hw2sw_srq(ceu->hca->cm, cmd->in_modifier);
}

uint8_t hca_ceu_query_srq(HcaCeu *ceu, HcaCommand *cmd)
{
    return hca_cxtmgt_query_srq(ceu->hca->cm, cmd->in_modifier, cmd->outbox);
}

uint8_t hca_ceu_resize_srq(HcaCeu *ceu, HcaCommand *cmd)
{
    const struct rdma_hca_resize_srq *resize = (const void *)cmd->inbox;

    return hca_cxtmgt_resize_srq(ceu->hca->cm, cmd->in_modifier,
                                 GUINT32_FROM_BE(resize->len),
                                 GUINT32_FROM_BE(resize->lkey));
}

uint8_t hca_ceu_arm_srq(HcaCeu *ceu, HcaCommand *cmd)
{
    return hca_cxtmgt_arm_srq(ceu->hca->cm, cmd->in_modifier, cmd->in_param);
}

uint8_t hca_ceu_modify_qp(HcaCeu *ceu, HcaCommand *cmd)
{
    const struct rdma_hca_qpc *qpc = (const void *)cmd->inbox;
    HcaQpChange change = { .transition = cmd->row->transition };
    uint32_t qpn = cmd->in_modifier;
    HcaQpAttr attr;

    if (cmd->has_inbox && cmd->op_modifier) {
        return RDMA_HCA_STAT_BAD_PARAM;
    }
    if (change.transition == HCA_QP_RTS2SQD) {
        change.sqd_event = qpn & RDMA_HCA_RTS2SQD_EVENT;
        qpn &= ~RDMA_HCA_RTS2SQD_EVENT;
    }
    if (cmd->has_inbox) {
        hca_front_get_qp(qpc, hca_port_is_roce(ceu->hca->port), &attr);
        change.attr = &attr;
        change.mask = GUINT32_FROM_BE(qpc->opt_param_mask);
    }
    return hca_cxtmgt_modify_qp(ceu->hca->cm, qpn, &change);
}

uint8_t hca_ceu_query_qp(HcaCeu *ceu, HcaCommand *cmd)
{
    return hca_cxtmgt_query_qp(ceu->hca->cm, cmd->in_modifier, cmd->outbox);
}

uint8_t hca_ceu_set_qp_counters(HcaCeu *ceu, HcaCommand *cmd)
{
    return hca_cxtmgt_set_qp_counters(ceu->hca->cm, cmd->in_modifier,
                                      cmd->in_param);
}

uint8_t hca_ceu_query_qp_counters(HcaCeu *ceu, HcaCommand *cmd)
{
    struct rdma_hca_diag *diag = (void *)cmd->outbox;
    HcaQpCounters *set = hca_qp_counter_set(ceu->hca->cm, cmd->in_modifier);
    unsigned number = hca_qp_counters_number();

    if (cmd->op_modifier > RDMA_HCA_QP_COUNTERS_CLEAR) {
        return RDMA_HCA_STAT_BAD_PARAM;
    }
    if (!set) {
        return RDMA_HCA_STAT_BAD_INDEX;
    }
    diag->total = diag->count = GUINT32_TO_BE(number);
    for (unsigned i = 0; i < number; i++) {
        uint64_t value = hca_qp_counter_value(set, i);

        if (cmd->op_modifier == RDMA_HCA_DIAG_NAMES) {
            g_strlcpy(diag->name[i], hca_qp_counter_name(i),
                      RDMA_HCA_DIAG_NAME_SIZE);
            continue;
        }
        diag->value[i].h = GUINT32_TO_BE(RDMA_HCA_HI32(value));
        diag->value[i].l = GUINT32_TO_BE(RDMA_HCA_LO32(value));
    }
    if (cmd->op_modifier == RDMA_HCA_QP_COUNTERS_CLEAR) {
        *set = (HcaQpCounters) { 0 };
    }
    return RDMA_HCA_STAT_OK;
}
