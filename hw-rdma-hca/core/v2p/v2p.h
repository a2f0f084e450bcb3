/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VirtToPhys: from (key, virtual address, length, access) to host memory.
 *
 * No other unit reads or writes guest memory that a key protects. Sections
 * are those of the VirtToPhys document.
 *
 * virt_to_phys.c       4: the unit assembled; requests of the engine
 * ceu_parser.c         5.1: requests of the command unit
 * tptmdata.c           5.3: ICM mappings and bases of the TPT; also used, as
 *                      ctxmdata, by the context manager (its document 5.3)
 * tpt_cache.c          5.5: one set-associative write-back LRU cache, used as
 *                      mpt_ram and as mtt_ram
 * mpt_check.c          5.6: the checks of a request against its MPT entry
 * mem_mgt.c            IBA 10.6: registration, windows, invalidation by work
 *                      requests
 * host_op.c            5.4: DMA reads and writes by channel
 *
 * request_scheduler.c  5.2, 5.6.3.2: channels that wait, and those that go on
 * mtt_ram_ctl.c        5.7.3.2, 6: the three paths behind the MPT
 * host_channels.c      5.4: lines on their way, writes that are posted
 * interrupts.c         MSI-X messages, behind what was written before them
 *
 * The three before that are for memory that takes its time. Memory that does not
 * (set_late() was not called) answers a unit when it asks, before the next one
 * does, and they have no part in it.
 */
#ifndef HCA_V2P_H
#define HCA_V2P_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "../host.h"
#include "../mem_op.h"
#include "../state.h"
#include "../verbs.h"

typedef struct HcaV2p HcaV2p;
typedef struct HcaTptMdata HcaTptMdata;
typedef struct HcaHostFaults HcaHostFaults;

/* Who asks (3.2): the command unit and the seven channels of the engine. */
typedef enum HcaV2pChannel {
    HCA_V2P_CEU,
    HCA_V2P_DB,     /* Doorbell Processing: SQ WQE */
    HCA_V2P_WP_WQE, /* WQE Parser: SQ WQE */
    HCA_V2P_WP_ND,  /* WQE Parser: network data */
    HCA_V2P_RTC,    /* Requester Trans Control: CQE */
    HCA_V2P_RRC,    /* Requester Recv Control: read response, CQE */
    HCA_V2P_RWM,    /* RQ WQE Manager */
    HCA_V2P_EE,     /* Execution Engine: data, CQE, EQE */
    HCA_V2P_NCHANNELS
} HcaV2pChannel;

/*
 * Outcome of a request (engine document, table 7.7). Checked in the order
 * KEY, PD, FLAGS, LENGTH (5.5.3).
 */
typedef enum HcaV2pState {
    HCA_V2P_SUCCESS = 0,
    HCA_V2P_LENGTH_ERR = 1, /* outside the region, or of its pages */
    HCA_V2P_KEY_ERR = 2,    /* no region of the hardware has this key */
    HCA_V2P_FLAGS_ERR = 3,  /* access not allowed */
    HCA_V2P_PD_ERR = 4,
    HCA_V2P_DMA_ERR = 5, /* ours: neither RAM nor device memory */
    HCA_V2P_NSTATES
} HcaV2pState;

/* Match-Info flags besides the access bits RDMA_HCA_ACCESS_* (2.1). */
#define HCA_V2P_ABSOLUTE_ADDR (1u << 27)
#define HCA_V2P_RELATIVE_ADDR (1u << 26) /* va counts from the start */
#define HCA_V2P_BUS_ADDR (1u << 25)      /* no region: key and pd say nothing */

/*
 * Match-Info (2.1). @flags: one addressing mode, and the access that the
 * region must allow: none (local read) or HCA_ACCESS_LOCAL_WRITE,
 * REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC, those of a FLUSH.
 */
typedef struct HcaMatchInfo {
    uint32_t flags;
    uint32_t pd;
    uint32_t key;
    uint32_t len;
    uint64_t va;
    uint32_t qpn; /* of a peer's request */
} HcaMatchInfo;

/* Pages of ICM; pages of a region are these or larger, up to 2^31 bytes. */
#define HCA_ICM_PAGE_SHIFT 12
#define HCA_MPT_PAGE_SHIFT_MIN 12
#define HCA_MPT_PAGE_SHIFT_MAX 31
/* More than this only if physical. */
#define HCA_MPT_MAX_LENGTH (UINT64_C(1) << 63)
/* Bytes in ICM. */
#define HCA_MPT_SIZE 64
#define HCA_MTT_SIZE 8

/* A region or a window: an MPT entry (5.6.2). */
typedef struct HcaMpt {
    bool sw_owns;  /* neither: the entry is software's */
    bool region;   /* else a window */
    bool free;     /* not valid as yet, or any more */
    bool fast_reg; /* registered and invalidated by work requests */
    bool physical; /* its addresses are bus addresses, */
    bool dev_mem;  /* or offsets in device memory */
    bool pieces;   /* its MTT entries are pairs: address, and end in region */
    bool null;     /* it has no memory */
    bool local;    /* local access is allowed */
    bool bind_enable;
    bool window2;        /* a window of type 2 */
    uint16_t access;     /* HCA_ACCESS_* */
    uint32_t page_shift; /* log of bytes; any value: not checked */
    uint32_t key;
    uint32_t pd;
    uint64_t start;
    uint64_t length;
    uint64_t mtt_seg; /* index of the first MTT entry */
    uint32_t mtt_sz;  /* their number, 0: not given */
    uint32_t npieces; /* PIECES: pairs that are in use */
    uint32_t windows; /* region: those bound to it */
    /* Bound window: its region, where in that it begins, and (type 2) its QP. */
    uint32_t lkey;
    uint64_t offset;
    uint32_t qpn;
} HcaMpt;

/* How an entry lies in ICM: HCA_MPT_SIZE bytes. */
typedef struct HcaMptFormat {
    /*
     * Software writes MTT entries by itself, where they lie in ICM, and then
     * SW2HW_MPT; those of all of ICM are one table. Else by WRITE_MTT.
     */
    bool mtts_are_software;
    uint64_t mtt_present; /* bits that an entry of a page has */
    /* Doorbell records: big-endian ones at ICM addresses, or the bus's. */
    bool records_in_icm;
    void (*decode)(HcaMpt *mpt, const void *entry);
    void (*encode)(const HcaMpt *mpt, void *entry);
} HcaMptFormat;

/* What memory is needed for (5.4.4, 5.4.5). */
typedef enum HcaV2pUse {
    HCA_V2P_CHECK,  /* not at all: its region is looked at */
    HCA_V2P_FETCH,  /* reading */
    HCA_V2P_STORE,  /* writing */
    HCA_V2P_MODIFY, /* an atomic */
} HcaV2pUse;

/* The three paths behind the MPT, none of which blocks another (6). */
typedef enum HcaMttPath {
    HCA_MTT_READ_WQE,
    HCA_MTT_READ_DATA,
    HCA_MTT_WRITE,
    HCA_MTT_NPATHS
} HcaMttPath;

/* How far a request is; see request_scheduler.c and mtt_ram_ctl.c. */
typedef enum HcaV2pStage {
    HCA_V2P_IDLE,       /* there is none */
    HCA_V2P_QUEUED,     /* in the FIFO of its channel (5.2) */
    HCA_V2P_MPT_MISS,   /* in the PendingFIFO; its channel waits (5.6.3.2) */
    HCA_V2P_MTT_QUEUED, /* behind others of its path (6) */
    HCA_V2P_MTT_MISS,   /* its path waits (5.7.3.2) */
    HCA_V2P_DMA,        /* on its way (5.4) */
    HCA_V2P_ANSWERED,
    HCA_V2P_NSTAGES
} HcaV2pStage;

/*
 * The place of one who asks for memory that takes its time. Who owns it sets
 * @owner and @unit, clears the rest, and has it forgotten before it goes.
 */
typedef struct HcaV2pAsk {
    void *owner;
    unsigned unit; /* of the owner's */
    /* The rest is VirtToPhys's. */
    HcaV2pStage stage;
    unsigned answered; /* requests of the step in hand */
    HcaV2pChannel channel;
    HcaV2pUse use;
    HcaMatchInfo info;
    GList link;
    unsigned path;
    bool has_way; /* the line that is missing, in the cache */
    uint64_t mtt, mtt_end;
    int64_t since, ready_at;
} HcaV2pAsk;

/* @ask has been answered: its owner tries its step again. */
typedef void HcaV2pAnswerFn(void *opaque, HcaV2pAsk *ask);

/* @log_* and sizes as in HcaConfig. */
HcaV2p *hca_v2p_new(const HcaMptFormat *format, const HcaHost *host,
                    unsigned log_mpts, unsigned log_mtts,
                    uint32_t mpt_cache_size, uint32_t mtt_cache_size,
                    uint32_t ways);
/* Device memory of @size bytes; there is none before. A reset leaves it alone. */
void hca_v2p_set_dev_mem(HcaV2p *v2p, void *mem, uint64_t size);
/* What goes wrong with memory and interrupts. Call at most once. */
void hca_v2p_set_faults(HcaV2p *v2p, HcaHostFaults *faults);
void hca_v2p_free(HcaV2p *v2p);
void hca_v2p_reset(HcaV2p *v2p);

/*
 * Have memory take its time from now on: so long until what is asked for comes,
 * so many bytes in a microsecond each way (0: no limit). @answer is called from
 * hca_v2p_run().
 */
void hca_v2p_set_late(HcaV2p *v2p, uint64_t latency_ns, uint64_t bandwidth,
                      HcaV2pAnswerFn *answer, void *opaque);

/*
 * Whether the @nth thing that a step of @ask's owner needs is there. False: it
 * has been asked for, and the step is to be given up, without a trace, until
 * @ask is answered; and then to be tried from its beginning. When it has been
 * done, hca_v2p_ask_done(). Without set_late() all is there.
 */
bool hca_v2p_ask(HcaV2p *v2p, HcaV2pAsk *ask, unsigned nth,
                 HcaV2pChannel channel, HcaV2pUse use,
                 const HcaMatchInfo *info);
static inline void hca_v2p_ask_done(HcaV2pAsk *ask)
{
    ask->answered = 0;
}
static inline bool hca_v2p_ask_waits(const HcaV2pAsk *ask)
{
    return ask->stage != HCA_V2P_IDLE && ask->stage != HCA_V2P_ANSWERED;
}
void hca_v2p_ask_forget(HcaV2p *v2p, HcaV2pAsk *ask);

/* Requests go on as far as they can by now; true if some were answered. */
bool hca_v2p_run(HcaV2p *v2p);
/* When to call it again; INT64_MAX: when something is asked for. */
int64_t hca_v2p_deadline(const HcaV2p *v2p);

/* An interrupt, behind all that was written before it. */
void hca_v2p_interrupt(HcaV2p *v2p, unsigned vector);
/* All that was written has arrived. */
void hca_v2p_settle(HcaV2p *v2p);

/*
 * As hca_v2p_read(), to know what to ask for, by what is in the caches: nothing
 * is counted or fetched, and no fault is looked for, as this is not the read that
 * takes effect.
 */
HcaV2pState hca_v2p_peek(HcaV2p *v2p, const HcaMatchInfo *info, void *buf);

/* Only the checks. A request of length 0 succeeds, whatever its key. */
HcaV2pState hca_v2p_check(HcaV2p *v2p, HcaV2pChannel channel,
                          const HcaMatchInfo *info);

/*
 * The checks of a FLUSH, which needs a key whatever its length; if it is of the
 * @whole region, address and length are not looked at.
 */
HcaV2pState hca_v2p_check_flush(HcaV2p *v2p, HcaV2pChannel channel,
                                const HcaMatchInfo *info, bool whole);

/* What a request may be for whose memory is found by hca_v2p_map(). */
#define HCA_V2P_MAX_MAP 9216

/*
 * Find the memory of a request for reading. On entry *@iovcnt is the room in
 * @iov, on return the pieces used. Pieces that lie together are joined.
 * Running out of room is HCA_V2P_LENGTH_ERR. Pointers as dma_map's; pieces of
 * a region that has such are copied, and pointers are good until as many bytes
 * as HCA_V2P_MAX_MAP have been asked for.
 */
HcaV2pState hca_v2p_map(HcaV2p *v2p, HcaV2pChannel channel,
                        const HcaMatchInfo *info, struct iovec *iov,
                        unsigned *iovcnt);

/* Copy info->len bytes from or to guest memory. Nothing on an error of the
 * checks; on HCA_V2P_DMA_ERR what lies before the bad page may be done. */
HcaV2pState hca_v2p_read(HcaV2p *v2p, HcaV2pChannel channel,
                         const HcaMatchInfo *info, void *buf);
HcaV2pState hca_v2p_write(HcaV2p *v2p, HcaV2pChannel channel,
                          const HcaMatchInfo *info, const void *buf);

/*
 * Write a queue entry, of at least 8 bytes: as hca_v2p_write(), but the last
 * four, in which its owner is, become visible to the guest after the others.
 */
HcaV2pState hca_v2p_write_entry(HcaV2p *v2p, HcaV2pChannel channel,
                                const HcaMatchInfo *info, const void *entry);

/*
 * An atomic on 8 naturally aligned bytes (info->len is 8), atomic against
 * the guest's processors; guest byte order is little-endian. *@old is the
 * value before.
 */
HcaV2pState hca_v2p_fetch_add(HcaV2p *v2p, HcaV2pChannel channel,
                              const HcaMatchInfo *info, uint64_t add,
                              uint64_t *old);
HcaV2pState hca_v2p_cmp_swap(HcaV2p *v2p, HcaV2pChannel channel,
                             const HcaMatchInfo *info, uint64_t compare,
                             uint64_t swap, uint64_t *old);

/* The same, and nobody asks what was there; @value as it lies in memory. */
HcaV2pState hca_v2p_atomic_write(HcaV2p *v2p, HcaV2pChannel channel,
                                 const HcaMatchInfo *info, uint64_t value);

/*
 * Work requests on memory of @pd (IBA 10.6, 10.7.2). What is refused changes
 * nothing; LENGTH_ERR: length, place or list of pages; KEY_ERR: key, or the
 * state of its entry; FLAGS_ERR: rights, or the kind of the entry; PD_ERR: PD,
 * or QP.
 */
HcaV2pState hca_v2p_fast_reg(HcaV2p *v2p, HcaV2pChannel channel, uint32_t pd,
                             const HcaMemOp *op);
HcaV2pState hca_v2p_bind(HcaV2p *v2p, HcaV2pChannel channel, uint32_t pd,
                         uint32_t qpn, const HcaMemOp *op);

typedef struct HcaInvalidation {
    uint32_t key;
    uint32_t pd;
    uint32_t qpn;
    bool remote; /* asked for by the peer of that QP */
} HcaInvalidation;

HcaV2pState hca_v2p_invalidate(HcaV2p *v2p, HcaV2pChannel channel,
                               const HcaInvalidation *inv);

/*
 * Plain bus addresses, for what the kernel driver vouches for: mailboxes and
 * doorbell records. False when any byte is not RAM.
 */
bool hca_dma_read(HcaV2p *v2p, HcaV2pChannel channel, uint64_t addr, void *buf,
                  uint32_t len);
bool hca_dma_write(HcaV2p *v2p, HcaV2pChannel channel, uint64_t addr,
                   const void *buf, uint32_t len);
/*
 * The first word of a doorbell record; @place is what software says. Whether it
 * is there, as by hca_v2p_ask().
 */
bool hca_record_read(HcaV2p *v2p, HcaV2pChannel channel, uint64_t place,
                     uint32_t *word);
bool hca_record_is_here(HcaV2p *v2p, HcaV2pAsk *ask, unsigned nth,
                        HcaV2pChannel channel, uint64_t place);
/* The same of a context. */
bool hca_dma_write_ctx(HcaV2p *v2p, uint64_t addr, const void *buf,
                       uint32_t len);
/* Whether hca_dma_write() would succeed now. */
bool hca_dma_writable(HcaV2p *v2p, uint64_t addr, uint32_t len);

/* The command unit's side (3.1); each returns a command status. */
uint8_t hca_v2p_init(HcaV2p *v2p, uint64_t mpt_base, unsigned log_mpts,
                     uint64_t mtt_base);
void hca_v2p_close(HcaV2p *v2p);
uint8_t hca_v2p_map_icm(HcaV2p *v2p, uint64_t virt, uint64_t page,
                        uint32_t npages);
uint8_t hca_v2p_unmap_icm(HcaV2p *v2p, uint64_t virt, uint32_t npages);
/* The same where not all need be mapped; what cannot be written back is lost. */
uint8_t hca_v2p_clear_icm(HcaV2p *v2p, uint64_t virt, uint32_t npages);
uint8_t hca_v2p_write_mpt(HcaV2p *v2p, uint32_t index, const HcaMpt *mpt);
uint8_t hca_v2p_invalidate_mpt(HcaV2p *v2p, uint32_t index);
uint8_t hca_v2p_query_mpt(HcaV2p *v2p, uint32_t index, HcaMpt *mpt);
uint8_t hca_v2p_write_mtt(HcaV2p *v2p, uint64_t index, const uint64_t *addr,
                          unsigned n);
uint8_t hca_v2p_read_mtt(HcaV2p *v2p, uint64_t index, uint64_t *addr,
                         unsigned n);
/* SYNC_TPT: write back what is dirty. BAD_SEG_PARAM if some could not be. */
uint8_t hca_v2p_sync(HcaV2p *v2p);

/* Regions in hardware ownership now. */
uint32_t hca_v2p_live_mpts(const HcaV2p *v2p);
/* Windows that are bound now. */
uint32_t hca_v2p_bound_windows(const HcaV2p *v2p);
/* Pages mapped for the TPT now. */
uint64_t hca_v2p_live_pages(const HcaV2p *v2p);

/* Pages in each of the two card-virtual spaces, contexts and TPT. */
#define HCA_ICM_MAX_PAGES (1u << 20)

/*
 * ICM mappings (5.3.4; context document 5.3): card-virtual 4 KiB pages to
 * bus pages. @max_pages bounds the space: virt < max_pages << 12.
 */
HcaTptMdata *hca_mdata_new(uint64_t max_pages);
void hca_mdata_free(HcaTptMdata *mdata);
void hca_mdata_clear(HcaTptMdata *mdata);
/* Whether these are pages of the space, one at least. */
bool hca_mdata_has(const HcaTptMdata *mdata, uint64_t virt, uint32_t npages);
/* Status as of MAP_ICM and UNMAP_ICM: all or nothing. */
uint8_t hca_mdata_map(HcaTptMdata *mdata, uint64_t virt, uint64_t page,
                      uint32_t npages);
uint8_t hca_mdata_unmap(HcaTptMdata *mdata, uint64_t virt, uint32_t npages);
/* The same where not all need be mapped. */
uint8_t hca_mdata_clear_range(HcaTptMdata *mdata, uint64_t virt,
                              uint32_t npages);
/* Whether hca_mdata_unmap() would unmap all of it. */
bool hca_mdata_is_mapped(const HcaTptMdata *mdata, uint64_t virt,
                         uint32_t npages);
/* Bus address of the byte at @virt; false if its page is not mapped. */
bool hca_mdata_lookup(const HcaTptMdata *mdata, uint64_t virt, uint64_t *bus);
/* Pages mapped now. */
uint64_t hca_mdata_pages(const HcaTptMdata *mdata);

/* What is mapped, as records of this structure; see state.h. */
extern const HcaStruct hca_mdata_struct, hca_mdata_run_struct;
void hca_mdata_save(const HcaTptMdata *mdata, GArray *records);
bool hca_mdata_load(HcaTptMdata *mdata, const void *records, uint32_t n,
                    HcaStateError *error);

typedef struct HcaTptCacheCounters {
    uint64_t hits, misses, refills;
    uint64_t write_backs;
    uint64_t write_back_errors; /* the table is not mapped or not RAM */
} HcaTptCacheCounters;

/*
 * How often and how long requests waited, by cause: the stage that they waited
 * in, from QUEUED on. A wait is counted when it is over, which is found in the
 * card's first turn after that; one of no time is none, and nor is one for a
 * turn of the card alone.
 */
#define HCA_V2P_NCAUSES (HCA_V2P_ANSWERED - HCA_V2P_QUEUED)
typedef struct HcaV2pWaits {
    uint64_t times[HCA_V2P_NCAUSES];
    uint64_t ns[HCA_V2P_NCAUSES];
} HcaV2pWaits;

typedef struct HcaV2pCounters {
    uint64_t requests[HCA_V2P_NCHANNELS];
    uint64_t pended[HCA_V2P_NCHANNELS]; /* waited for a refill */
    uint64_t reads[HCA_V2P_NCHANNELS];  /* pieces of memory read */
    uint64_t writes[HCA_V2P_NCHANNELS];
    uint64_t read_bytes[HCA_V2P_NCHANNELS];
    uint64_t write_bytes[HCA_V2P_NCHANNELS];
    uint64_t dev_mem_read_bytes, dev_mem_write_bytes; /* not of the above */
    uint64_t failed[HCA_V2P_NSTATES];
    uint64_t fast_regs, binds, local_invs, remote_invs, mem_ops_refused;
    uint64_t pieces; /* looked up */
    HcaTptCacheCounters mpt, mtt;
    HcaV2pWaits waits[HCA_V2P_NCHANNELS];
    uint64_t forgotten;    /* requests whose last wait is in none of them */
    uint64_t posted_lost;  /* writes that arrived where nothing is any more */
    uint64_t posted_early; /* those that arrived to make room */
    /* The most requests at a time. */
    uint64_t fifo_peak[HCA_V2P_NCHANNELS];
    uint64_t path_peak[HCA_MTT_NPATHS];
    uint64_t away_peak[HCA_MTT_NPATHS];
    uint64_t posted_peak;
} HcaV2pCounters;

const HcaV2pCounters *hca_v2p_counters(const HcaV2p *v2p);

/*
 * Requests look up one piece of memory after the other, and those may be as
 * short as a byte. So each share of a card's turn is over with the packet that
 * brings it to this many, too.
 */
#define HCA_V2P_SHARE_PIECES 8192
void hca_v2p_begin_share(HcaV2p *v2p);
bool hca_v2p_share_is_over(const HcaV2p *v2p);

/* What is saved, in this order. */
extern const HcaSection hca_v2p_section, hca_v2p_icm_section, hca_mpt_section,
    hca_tpt_line_section, hca_late_interrupt_section;

#endif /* HCA_V2P_H */
