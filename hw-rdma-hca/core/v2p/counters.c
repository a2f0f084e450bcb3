/* SPDX-License-Identifier: GPL-2.0-or-later */
/* VirtToPhys: what it counts. */
#include "../counter_table.h"
#include "v2p.h"

#define COUNTER(number, name, field, text)                                     \
    HCA_COUNTER(number, name, HcaV2pCounters, field, text)
#define CHANNEL(number, n, c)                                                  \
    COUNTER(number, "requests_" n, requests[HCA_V2P_##c],                      \
            "requests of channel " #c),                                        \
        COUNTER((number) + 1, "pended_" n, pended[HCA_V2P_##c],                \
                "waits of " #c " for a refill"),                               \
        COUNTER((number) + 2, "reads_" n, reads[HCA_V2P_##c],                  \
                "DMA reads of " #c),                                           \
        COUNTER((number) + 3, "read_bytes_" n, read_bytes[HCA_V2P_##c],        \
                "bytes that " #c " read"),                                     \
        COUNTER((number) + 4, "writes_" n, writes[HCA_V2P_##c],                \
                "DMA writes of " #c),                                          \
        COUNTER((number) + 5, "write_bytes_" n, write_bytes[HCA_V2P_##c],      \
                "bytes that " #c " wrote")
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
};

const HcaCounterTable hca_v2p_counter_table = {
    .unit = "v2p",
    .counters = counters,
    .rows = rows,
    .nrows = G_N_ELEMENTS(rows),
};
