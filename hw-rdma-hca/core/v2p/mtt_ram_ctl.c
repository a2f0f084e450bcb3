/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mtt_ram_ctl (VirtToPhys document 5.7.3.2, 6) and the reads and writes of data
 * behind it (5.4.4, 5.4.5).
 *
 * Three paths, for reads of WQEs, reads of data, and writes, each in its order:
 * one whose line is missing is blocked, and the others go on.
 *
 * Departures. The document's mtt_ram has one line on its way at a time; here
 * each path may have one, which is what the blocks of chapter 6 are for. A
 * region that consists of pieces is searched when its memory is touched, at
 * once.
 */
#include <glib.h>

#include "../fault/host_faults.h"
#include "requests.h"

/* Which of the document's DMA channels serves @ask (5.4.4). */
static HcaMttPath path_of(const HcaV2pAsk *ask)
{
    if (ask->use == HCA_V2P_STORE || ask->use == HCA_V2P_MODIFY) {
        return HCA_MTT_WRITE;
    }
    return hca_v2p_reads_wqes(ask->channel) ? HCA_MTT_READ_WQE
                                            : HCA_MTT_READ_DATA;
}

void hca_mtt_put(HcaV2p *v2p, HcaV2pAsk *ask)
{
    ask->path = path_of(ask);
    hca_queue_put(&v2p->requests->path[ask->path], ask,
                  &v2p->counters.path_peak[ask->path]);
    hca_v2p_enter(v2p, ask, HCA_V2P_MTT_QUEUED);
}

/* How much later than others the memory of a read is, by a fault. */
static uint64_t delay_of(HcaV2p *v2p, const HcaV2pAsk *ask)
{
    bool modify = ask->use == HCA_V2P_MODIFY;

    return hca_host_faults_at(v2p->faults, HCA_FAULT_DMA)
               ? hca_v2p_delay(v2p, ask->channel, modify, &ask->info)
               : 0;
}

/*
 * A write is posted: who writes goes on when there is room on the way. Reads,
 * and atomics, come back.
 */
static void go_to_host(HcaV2p *v2p, HcaV2pAsk *ask)
{
    HcaV2pRequests *r = v2p->requests;

    if (ask->use == HCA_V2P_STORE) {
        ask->ready_at = MAX(r->now, r->writes_free_at);
    } else {
        ask->ready_at = hca_host_arrival(r, &r->reads_free_at, ask->info.len) +
                        delay_of(v2p, ask);
    }
    hca_queue_put(&r->away[ask->path], ask,
                  &v2p->counters.away_peak[ask->path]);
    hca_v2p_enter(v2p, ask, HCA_V2P_DMA);
}

/* lookup_result_proc, for a line that was missing. True: it goes on. */
static bool line_came(HcaV2p *v2p, HcaV2pAsk *ask)
{
    uint64_t line = ask->mtt / HCA_MTTS_PER_LINE;

    if (hca_tpt_cache_peek(v2p->mtt_ram, line)) {
        return true;
    }
    if (!ask->has_way) {
        ask->has_way = hca_fill_begin(v2p, v2p->mtt_ram, line, ask->channel);
        return false;
    }
    /* One that cannot be read never comes: who asked finds out. */
    return !hca_tpt_cache_awaits(v2p->mtt_ram, line);
}

/* init_lookup, line by line. False: the path is blocked. */
static bool look_up(HcaV2p *v2p, HcaV2pAsk *ask)
{
    bool waited = ask->stage == HCA_V2P_MTT_MISS;

    if (waited && !line_came(v2p, ask)) {
        return false;
    }
    while (ask->mtt < ask->mtt_end) {
        uint64_t line = ask->mtt / HCA_MTTS_PER_LINE;

        if (!waited && !hca_tpt_cache_hits(v2p->mtt_ram, line)) {
            v2p->counters.pended[ask->channel]++;
            hca_v2p_enter(v2p, ask, HCA_V2P_MTT_MISS);
            ask->has_way = hca_fill_begin(v2p, v2p->mtt_ram, line,
                                          ask->channel);
            return false;
        }
        waited = false;
        ask->mtt = (line + 1) * HCA_MTTS_PER_LINE;
    }
    return true;
}

static void run_path(HcaV2p *v2p, HcaMttPath path)
{
    HcaV2pRequests *r = v2p->requests;
    GList *head;

    while ((head = r->path[path].head) && look_up(v2p, head->data)) {
        g_queue_unlink(&r->path[path], head);
        go_to_host(v2p, head->data);
    }
    while ((head = r->away[path].head)) {
        HcaV2pAsk *ask = head->data;

        if (ask->ready_at > r->now) {
            break;
        }
        g_queue_unlink(&r->away[path], head);
        hca_v2p_answer(v2p, ask);
    }
}

void hca_mtt_run(HcaV2p *v2p)
{
    for (unsigned i = 0; i < HCA_MTT_NPATHS; i++) {
        run_path(v2p, i);
    }
}
