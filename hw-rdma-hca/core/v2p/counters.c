/* SPDX-License-Identifier: GPL-2.0-or-later */
/* VirtToPhys: what it counts. */
#include "../counter_table.h"
#include "v2p_int.h"

#define COUNTER(number, name, field, text)                                     \
    HCA_COUNTER(number, name, HcaV2pCounters, field, text)
#define CHANNEL(number, n, c)                                                  \
    COUNTER(number, "requests_" n, requests[HCA_V2P_##c],                      \
            "requests of channel " #c),                                        \
        COUNTER((number) + 1, "pended_" n, pended[HCA_V2P_##c],                \
                "lines read for requests of " #c),                             \
        COUNTER((number) + 2, "reads_" n, reads[HCA_V2P_##c],                  \
                "DMA reads of " #c),                                           \
        COUNTER((number) + 3, "read_bytes_" n, read_bytes[HCA_V2P_##c],        \
                "bytes that " #c " read"),                                     \
        COUNTER((number) + 4, "writes_" n, writes[HCA_V2P_##c],                \
                "DMA writes of " #c),                                          \
        COUNTER((number) + 5, "write_bytes_" n, write_bytes[HCA_V2P_##c],      \
                "bytes that " #c " wrote")
/* What requests waited for, while memory takes its time: all channels', */
#define WAIT(number, name, STAGE, text)                                        \
    HCA_GAUGE(number, "waits_" name, CUMULATIVE, waits_##STAGE,                \
              "waits of requests " text),                                      \
        HCA_GAUGE((number) + 1, "wait_ns_" name, CUMULATIVE, wait_ns_##STAGE,  \
                  "nanoseconds of them")
#define WAIT_FNS(STAGE)                                                        \
    HCA_GAUGE_FN(waits_##STAGE, HcaV2p,                                        \
                 all_waits(room, HCA_V2P_##STAGE, false))                      \
    HCA_GAUGE_FN(wait_ns_##STAGE, HcaV2p,                                      \
                 all_waits(room, HCA_V2P_##STAGE, true))
/* and each one's. */
#define WAIT_OF(number, n, c, name, STAGE, text)                               \
    COUNTER(number, "waits_" name "_" n,                                       \
            waits[HCA_V2P_##c].times[HCA_V2P_##STAGE - HCA_V2P_QUEUED],        \
            "waits of " #c " " text),                                          \
        COUNTER((number) + 1, "wait_ns_" name "_" n,                           \
                waits[HCA_V2P_##c].ns[HCA_V2P_##STAGE - HCA_V2P_QUEUED],       \
                "nanoseconds of them")
#define WAITS_OF(number, n, c)                                                 \
    WAIT_OF(number, n, c, "channel", QUEUED, "behind its own MPT miss"),       \
        WAIT_OF((number) + 2, n, c, "mpt", MPT_MISS, "for an MPT entry"),      \
        WAIT_OF((number) + 4, n, c, "path", MTT_QUEUED,                        \
                "behind an MTT miss of its path"),                             \
        WAIT_OF((number) + 6, n, c, "mtt", MTT_MISS, "for an MTT line"),       \
        WAIT_OF((number) + 8, n, c, "host", DMA, "for the machine's memory")
#define PEAK(number, name, field, text)                                        \
    HCA_PEAK(number, name, HcaV2pCounters, field, text)
#define FIFO(number, n, c)                                                     \
    PEAK(number, "fifo_peak_" n, fifo_peak[HCA_V2P_##c],                       \
         "most requests in the FIFO of " #c)
#define PATH(number, n, p, text)                                               \
    PEAK(number, "path_peak_" n, path_peak[HCA_MTT_##p],                       \
         "most requests in the path of " text)
#define AWAY(number, n, p, text)                                               \
    PEAK(number, "away_peak_" n, away_peak[HCA_MTT_##p],                       \
         "most requests on their way, of " text)
#define CACHE(number, c, C)                                                    \
    COUNTER(number, #c "_hits", c.hits, C " cache hits"),                      \
        COUNTER((number) + 1, #c "_misses", c.misses, C " cache misses"),      \
        COUNTER((number) + 2, #c "_refills", c.refills,                        \
                C " lines read from ICM"),                                     \
        COUNTER((number) + 3, #c "_write_backs", c.write_backs,                \
                C " lines written to ICM"),                                    \
        COUNTER((number) + 4, #c "_write_back_errors", c.write_back_errors,    \
                C " lines that ICM did not take")

HCA_GAUGE_FN(mpts, HcaV2p, hca_v2p_live_mpts(room))
HCA_GAUGE_FN(windows, HcaV2p, hca_v2p_bound_windows(room))
HCA_GAUGE_FN(tpt_pages, HcaV2p, hca_v2p_live_pages(room))
HCA_GAUGE_FN(mpt_lines, HcaV2p, room->mpt_ram->used)
HCA_GAUGE_FN(mtt_lines, HcaV2p, room->mtt_ram->used)
HCA_GAUGE_FN(mpt_capacity, HcaV2p, hca_tpt_cache_lines(room->mpt_ram))
HCA_GAUGE_FN(mtt_capacity, HcaV2p, hca_tpt_cache_lines(room->mtt_ram))
HCA_GAUGE_FN(posted, HcaV2p, hca_posted_count(room))

/* How often all channels have waited in @stage; or for how long, in ns. */
static uint64_t all_waits(const HcaV2p *v2p, HcaV2pStage stage, bool ns)
{
    unsigned cause = stage - HCA_V2P_QUEUED;
    uint64_t sum = 0;

    for (unsigned i = 0; i < HCA_V2P_NCHANNELS; i++) {
        const HcaV2pWaits *waits = &v2p->counters.waits[i];

        sum += ns ? waits->ns[cause] : waits->times[cause];
    }
    return sum;
}

WAIT_FNS(QUEUED)
WAIT_FNS(MPT_MISS)
WAIT_FNS(MTT_QUEUED)
WAIT_FNS(MTT_MISS)
WAIT_FNS(DMA)

static const void *counters(const void *room)
{
    return hca_v2p_counters(room);
}

static const HcaCounterRow rows[] = {
    HCA_GAUGE(187, "mpts", INSTANT, mpts, "regions owned by the card"),
    HCA_GAUGE(188, "icm_pages", INSTANT, tpt_pages,
              "ICM pages mapped for the MPT and MTT"),
    CACHE(189, mpt, "MPT"),
    CACHE(194, mtt, "MTT"),
    COUNTER(199, "passed", failed[HCA_V2P_SUCCESS],
            "requests that failed no check"),
    COUNTER(200, "failed_key", failed[HCA_V2P_KEY_ERR],
            "requests with a bad key"),
    COUNTER(201, "failed_flags", failed[HCA_V2P_FLAGS_ERR],
            "requests for access not allowed"),
    COUNTER(202, "failed_pd", failed[HCA_V2P_PD_ERR],
            "requests of another protection domain"),
    COUNTER(203, "failed_length", failed[HCA_V2P_LENGTH_ERR],
            "requests outside their region"),
    COUNTER(204, "failed_dma", failed[HCA_V2P_DMA_ERR],
            "requests that led to what is no memory"),
    CHANNEL(205, "ceu", CEU),
    CHANNEL(211, "db", DB),
    CHANNEL(217, "wp_wqe", WP_WQE),
    CHANNEL(223, "wp_nd", WP_ND),
    CHANNEL(229, "rtc", RTC),
    CHANNEL(235, "rrc", RRC),
    CHANNEL(241, "rwm", RWM),
    CHANNEL(247, "ee", EE),
    COUNTER(342, "fast_regs", fast_regs, "regions registered by work requests"),
    COUNTER(343, "binds", binds, "windows bound or unbound by work requests"),
    COUNTER(344, "local_invs", local_invs, "keys invalidated by work requests"),
    COUNTER(345, "remote_invs", remote_invs, "keys invalidated by peers"),
    COUNTER(346, "mem_ops_refused", mem_ops_refused,
            "registrations, binds and invalidations refused"),
    HCA_GAUGE(347, "windows", INSTANT, windows, "windows bound"),
    COUNTER(370, "dev_mem_read_bytes", dev_mem_read_bytes,
            "bytes read from device memory"),
    COUNTER(371, "dev_mem_write_bytes", dev_mem_write_bytes,
            "bytes written to device memory"),
    COUNTER(381, "pieces", pieces,
            "look-ups of pieces, in regions that consist of such"),
    WAIT(420, "channel", QUEUED, "behind an MPT miss of their channel"),
    WAIT(422, "mpt", MPT_MISS, "for an MPT entry"),
    WAIT(424, "path", MTT_QUEUED, "behind an MTT miss of their path"),
    WAIT(426, "mtt", MTT_MISS, "for an MTT line"),
    WAIT(428, "host", DMA, "for the machine's memory"),
    COUNTER(430, "posted_lost", posted_lost,
            "writes that came to where no memory is any more"),
    WAITS_OF(431, "ceu", CEU),
    WAITS_OF(441, "db", DB),
    WAITS_OF(451, "wp_wqe", WP_WQE),
    WAITS_OF(461, "wp_nd", WP_ND),
    WAITS_OF(471, "rtc", RTC),
    WAITS_OF(481, "rrc", RRC),
    WAITS_OF(491, "rwm", RWM),
    WAITS_OF(501, "ee", EE),
    COUNTER(511, "forgotten", forgotten,
            "requests given up before they were answered"),
    FIFO(512, "ceu", CEU),
    FIFO(513, "db", DB),
    FIFO(514, "wp_wqe", WP_WQE),
    FIFO(515, "wp_nd", WP_ND),
    FIFO(516, "rtc", RTC),
    FIFO(517, "rrc", RRC),
    FIFO(518, "rwm", RWM),
    FIFO(519, "ee", EE),
    PATH(520, "wqe", READ_WQE, "reads of WQEs"),
    PATH(521, "data", READ_DATA, "reads of data"),
    PATH(522, "write", WRITE, "writes"),
    AWAY(523, "wqe", READ_WQE, "reads of WQEs"),
    AWAY(524, "data", READ_DATA, "reads of data"),
    AWAY(525, "write", WRITE, "writes and atomics"),
    HCA_GAUGE(526, "posted", INSTANT, posted,
              "writes and interrupts on their way"),
    PEAK(527, "posted_peak", posted_peak,
         "most writes and interrupts on their way"),
    HCA_GAUGE(528, "mpt_lines", INSTANT, mpt_lines,
              "MPT cache lines in use, or kept for what is on its way"),
    HCA_GAUGE(529, "mpt_capacity", INSTANT, mpt_capacity,
              "MPT cache lines that there are"),
    HCA_GAUGE(530, "mtt_lines", INSTANT, mtt_lines,
              "MTT cache lines in use, or kept for what is on its way"),
    HCA_GAUGE(531, "mtt_capacity", INSTANT, mtt_capacity,
              "MTT cache lines that there are"),
    COUNTER(547, "posted_early", posted_early,
            "writes and interrupts that came early, to make room for others"),
};

const HcaCounterTable hca_v2p_counter_table = {
    .unit = "v2p",
    .counters = counters,
    .rows = rows,
    .nrows = G_N_ELEMENTS(rows),
};
