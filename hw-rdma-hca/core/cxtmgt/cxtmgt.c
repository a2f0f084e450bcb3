/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The context manager (its document 4.3): the unit assembled. The document's
 * request controller (5.2) gives the command unit, then each engine unit in
 * turn, access to the key data; here they follow one another in hca_run().
 */
#include <string.h>

#include "cxtmgt_int.h"

HcaCxtMgt *hca_cxtmgt_new(const HcaCxtFormat *format, const HcaConfig *config,
                          HcaV2p *v2p, HcaPort *port, const HcaHost *host,
                          HcaQpStateFn *state_fn, void *state_opaque)
{
    HcaCxtMgt *cm = g_new0(HcaCxtMgt, 1);

    cm->format = format;
    cm->config = config;
    cm->v2p = v2p;
    cm->port = port;
    cm->host = *host;
    cm->state_fn = state_fn;
    cm->state_opaque = state_opaque;
    cm->ctxmdata = hca_mdata_new(HCA_ICM_MAX_PAGES);
    cm->qps = g_new0(HcaQp *, 1u << config->log_qps);
    cm->cqs = g_new0(HcaCq *, 1u << config->log_cqs);
    cm->srqs = g_new0(HcaSrq *, 1u << config->log_srqs);
    hca_eq_init(cm);
    hca_moderation_init(cm);
    hca_qp_counters_init(cm);
    return cm;
}

void hca_cxtmgt_set_faults(HcaCxtMgt *cm, HcaHostFaults *faults)
{
    cm->faults = faults;
}

void hca_cxtmgt_free(HcaCxtMgt *cm)
{
    hca_cxtmgt_close(cm);
    hca_mdata_free(cm->ctxmdata);
    hca_moderation_cleanup(cm);
    hca_qp_counters_cleanup(cm);
    g_free(cm->qps);
    g_free(cm->cqs);
    g_free(cm->srqs);
    g_free(cm);
}

void hca_cxtmgt_reset(HcaCxtMgt *cm)
{
    hca_cxtmgt_close(cm);
    hca_mdata_clear(cm->ctxmdata);
    memset(&cm->counters, 0, sizeof(cm->counters));
    hca_qp_counters_reset(cm);
}

/* Whether @table lies in the space. */
static bool table_ok(const HcaCxtTable *table)
{
    uint64_t space = (uint64_t)HCA_ICM_MAX_PAGES << HCA_ICM_PAGE_SHIFT;

    return table->base % table->entry_size == 0 && table->base < space &&
           ((uint64_t)table->entry_size << table->log_num) <=
               space - table->base;
}

static HcaCxtTable table(const HcaCxtPlace *place, unsigned entry_size)
{
    return (HcaCxtTable) { place->base, place->log_num, entry_size };
}

static bool within_limits(const HcaConfig *config, const HcaCxtPlaces *places)
{
    return places->qpc.log_num <= config->log_qps &&
           places->cqc.log_num <= config->log_cqs &&
           places->eqc.log_num <= config->log_eqs &&
           places->srqc.log_num <= config->log_srqs;
}

uint8_t hca_cxtmgt_init(HcaCxtMgt *cm, const HcaCxtPlaces *places)
{
    HcaCxtTable qpc = table(&places->qpc, cm->format->qpc_size);
    HcaCxtTable cqc = table(&places->cqc, cm->format->cqc_size);
    HcaCxtTable eqc = table(&places->eqc, cm->format->eqc_size);
    HcaCxtTable srqc = table(&places->srqc, cm->format->srqc_size);

    if (!within_limits(cm->config, places)) {
        return HCA_STAT_EXCEED_LIM;
    }
    if (!table_ok(&qpc) || !table_ok(&cqc) || !table_ok(&eqc) ||
        !table_ok(&srqc)) {
        return HCA_STAT_BAD_PARAM;
    }
    cm->qpc = qpc;
    cm->cqc = cqc;
    cm->eqc = eqc;
    cm->srqc = srqc;
    cm->ready = true;
    return HCA_STAT_OK;
}

void hca_cxtmgt_close(HcaCxtMgt *cm)
{
    if (!cm->ready) {
        return;
    }
    hca_qp_free_all(cm);
    hca_srq_free_all(cm);
    hca_cq_free_all(cm);
    hca_eq_free_all(cm);
    memset(cm->special, 0, sizeof(cm->special));
    cm->ready = false;
}

HcaCxtCounters *hca_cxt_counters(HcaCxtMgt *cm)
{
    return &cm->counters;
}

const HcaCxtLive *hca_cxt_live(const HcaCxtMgt *cm)
{
    return &cm->live;
}

uint64_t hca_cxt_live_pages(const HcaCxtMgt *cm)
{
    return hca_mdata_pages(cm->ctxmdata);
}

unsigned hca_cxt_waiting_events(const HcaCxtMgt *cm)
{
    return hca_eq_waiting(cm);
}
