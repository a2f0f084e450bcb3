/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of VirtToPhys. */
#ifndef HCA_V2P_INT_H
#define HCA_V2P_INT_H

#include "mpt_check.h"
#include "tpt_cache.h"

struct HcaV2p {
    const HcaMptFormat *format;
    HcaHost host;
    unsigned max_log_mpts;
    uint64_t nmtts; /* entries of the MTT */

    bool ready; /* INIT_HCA gave the tables' places */
    unsigned log_mpts;
    uint64_t mpt_base; /* card-virtual */
    uint64_t mtt_base;
    HcaTptMdata *mdata;
    HcaTptCache *mpt_ram;
    HcaTptCache *mtt_ram;
    /*
     * One bit for each MPT entry in hardware ownership. What is in ICM is in
     * the guest's reach, or left over from the system before; an entry counts
     * only if SW2HW_MPT has put it there.
     */
    uint64_t *owned;
    uint8_t *dev_mem;
    uint64_t dev_mem_size; /* bytes, 0: there is none */
    uint32_t live_mpts;
    uint32_t bound_windows;
    HcaV2pChannel channel; /* of the request in hand (5.2.2.1) */
    HcaV2pCounters counters;
    /* Copies that hca_v2p_map() makes: those of a packet and of the next. */
    uint8_t copies[2 * HCA_V2P_MAX_MAP];
    uint32_t copies_at;
    uint64_t share_end;              /* of counters.pieces */
    struct HcaV2pRequests *requests; /* NULL: memory does not take its time */
    struct HcaPosted *posted;        /* the same */
    HcaTptCacheCounters unseen;      /* look-ups that have been counted */
    HcaHostFaults *faults;           /* NULL: none are ever looked for */
    struct HcaLateInterrupts *late_interrupts; /* NULL without @faults */
    bool ctx;     /* it is for a table, or a context, that memory is reached */
    bool peeking; /* hca_v2p_peek() */
};

#define HCA_MTTS_PER_LINE (HCA_TPT_LINE / HCA_MTT_SIZE)

/* Take a request of @channel in hand. */
static inline void hca_v2p_select(HcaV2p *v2p, HcaV2pChannel channel)
{
    v2p->channel = channel;
    v2p->counters.requests[channel]++;
}

/* The entry that @key names. */
static inline uint32_t hca_mpt_index(const HcaV2p *v2p, uint32_t key)
{
    return key >> HCA_KEY_SHIFT & ((1u << v2p->log_mpts) - 1);
}

static inline bool hca_mpt_owned(const HcaV2p *v2p, uint32_t index)
{
    return v2p->owned[index / 64] >> (index % 64) & 1;
}

/* Whether the entry that @key names, *@index, is in hardware ownership. */
static inline bool hca_v2p_owns(const HcaV2p *v2p, uint32_t key,
                                uint32_t *index)
{
    *index = v2p->ready ? hca_mpt_index(v2p, key) : 0;
    return v2p->ready && hca_mpt_owned(v2p, *index);
}

/*
 * virt_to_phys.c: the entry that @key names, if it is in hardware ownership and
 * can be reached; else NULL. Valid until the next entry is asked for.
 */
const HcaMpt *hca_v2p_find_mpt(HcaV2p *v2p, uint32_t key);

/*
 * ceu_parser.c: whether @n MTT entries from @index on are in the table; and
 * write them, all or none. False: one is not in the table, or cannot be reached.
 */
bool hca_mtts_in_table(const HcaV2p *v2p, uint64_t index, uint64_t n);
bool hca_mtts_write(HcaV2p *v2p, uint64_t index, const uint64_t *addr,
                    unsigned n);

/* mem_mgt.c: @window, an entry that was read, is bound to nothing any more. */
void hca_v2p_unbind(HcaV2p *v2p, HcaMpt *window);

/* The region of @key's entry, which is in the cache. */
const HcaRegion *hca_v2p_peek_region(HcaV2p *v2p, uint32_t key);

/* Forget all regions and what is cached of the tables. */
void hca_v2p_forget(HcaV2p *v2p);

/* Where memory is: on the bus, or in device memory. */
typedef struct HcaPlace {
    uint64_t addr;
    bool dev_mem;
} HcaPlace;

static inline HcaPlace hca_on_bus(uint64_t addr)
{
    return (HcaPlace) { .addr = addr };
}

/*
 * host_op.c: memory of the request in hand. False where there is none: the bus
 * address is not RAM, or device memory ends. An entry is written as
 * hca_v2p_write_entry() says.
 */
bool hca_host_read(HcaV2p *v2p, HcaPlace at, void *buf, uint64_t len);
bool hca_host_write(HcaV2p *v2p, HcaPlace at, const void *buf, uint64_t len);
bool hca_host_write_entry(HcaV2p *v2p, HcaPlace at, const void *entry,
                          uint32_t len);
/* The same at once, an entry or not. */
bool hca_host_write_now(HcaV2p *v2p, HcaPlace at, const void *buf, uint64_t len,
                        bool entry);
/* As dma_map's, for reading. */
void *hca_host_map(HcaV2p *v2p, HcaPlace at, uint64_t *len);
/* The same as read and write, of a line of a table. */
bool hca_host_read_line(HcaV2p *v2p, uint64_t bus, void *line);
bool hca_host_write_line(HcaV2p *v2p, uint64_t bus, const void *line);
/* @n pieces of @len bytes in all were mapped, and will be read. */
void hca_host_mapped(HcaV2p *v2p, bool dev_mem, unsigned n, uint64_t len);
/* 8 bytes of writable memory at a multiple of 8, or NULL. */
uint64_t *hca_host_map_atomic(HcaV2p *v2p, HcaPlace at);
void hca_host_wrote_atomic(HcaV2p *v2p, HcaPlace at);

/* host_channels.c: writes on their way. */
typedef struct HcaPosted HcaPosted;
/* More bytes than are ever written at a time. */
#define HCA_POSTED_BYTES (256 * 1024)
HcaPosted *hca_posted_new(void);
/* @len bytes, at most HCA_POSTED_BYTES, go to where there is memory now. */
void hca_posted_put(HcaV2p *v2p, HcaPlace at, const void *buf, uint32_t len,
                    bool entry);
/* Those that meet @len bytes at @at arrive, and all before them. */
void hca_posted_settle(HcaV2p *v2p, HcaPlace at, uint64_t len);
void hca_posted_forget(HcaV2p *v2p);
void hca_posted_run(HcaV2p *v2p, int64_t now);
int64_t hca_posted_deadline(const HcaV2p *v2p);
unsigned hca_posted_count(const HcaV2p *v2p);

/* interrupts.c: message @vector, now; those that are late; a reset. */
struct HcaLateInterrupts *hca_late_interrupts_new(void);
void hca_v2p_notify(HcaV2p *v2p, unsigned vector);
void hca_late_interrupts_run(HcaV2p *v2p);
int64_t hca_late_interrupts_deadline(const HcaV2p *v2p);
void hca_late_interrupts_forget(HcaV2p *v2p);

/* host_op.c: for whom a channel reads (5.4.4). */
static inline bool hca_v2p_reads_wqes(HcaV2pChannel channel)
{
    return channel == HCA_V2P_DB || channel == HCA_V2P_WP_WQE ||
           channel == HCA_V2P_RWM;
}
/* How late @len bytes at bus address @bus are, for @channel: ns. */
uint64_t hca_dma_delay(HcaV2p *v2p, HcaV2pChannel channel, bool ctx,
                       bool is_write, uint64_t bus, uint64_t len);

/* virt_to_phys.c: the same of the latest of a request's pieces of memory. */
uint64_t hca_v2p_delay(HcaV2p *v2p, HcaV2pChannel channel, bool is_write,
                       const HcaMatchInfo *info);

/* virt_to_phys.c: where @line of a cache's table is. False: it is not mapped. */
bool hca_v2p_line_bus(HcaV2p *v2p, const HcaTptCache *cache, uint64_t line,
                      uint64_t *bus);

/* request_scheduler.c: a reset. */
void hca_v2p_forget_asks(HcaV2p *v2p);

#endif /* HCA_V2P_INT_H */
