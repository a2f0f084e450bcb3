/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A laboratory for whole cards in one process: two machines with a card
 * each, a cable between them, and a clock that a test moves.
 *
 * Everything is deterministic for a seed (HCA_SEED in the environment
 * overrides the test's). HCA_TRACE in the environment prints what the cards
 * trace.
 */
#ifndef LIB_HOST_H
#define LIB_HOST_H

#include <glib.h>

#include "../hca.h"
#include "lib-test.h"

#define HOST_PAGE_SIZE 4096u
#define HOST_BLOCK_SIZE 65536u     /* RAM lies together only within one */
#define HOST_MMIO_BASE 0xfe000000u /* another device's registers */
#define HOST_MMIO_SIZE 0x01000000u
#define HOST_HIGH_BASE (UINT64_C(1) << 32)
#define HOST_MAX_VECTORS 64

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

typedef struct Lab Lab;
typedef struct Host Host;

/* A machine. Bus addresses begin above 0 and have holes; see host_alloc(). */
struct Host {
    Lab *lab;
    unsigned side; /* 0 or 1 */
    HcaConfig config;
    HcaHostOps ops;
    Hca *hca;
    GPtrArray *low_blocks; /* HostBlock below 4 GiB, by number */
    GPtrArray *high_blocks;
    GArray *free_pages; /* bus addresses of single pages */
    uint64_t bump;      /* next page of the block in use */
    uint64_t bump_end;
    bool bump_high;                  /* the next block comes from high memory */
    uint64_t msix[HOST_MAX_VECTORS]; /* messages sent, by vector */
    uint64_t msix_bad;
    bool pin;           /* the interrupt pin is raised */
    uint64_t mmio_hits; /* DMA refused because it met MMIO */
    int64_t deadline;   /* of its own clock */
    bool kicked;        /* hca_run() has to be called */
    bool stopped;       /* it stands still, and so does its clock, */
    int64_t stopped_at;
    int64_t behind; /* the lab's for all times that it stood still */
    /* Stands for a processor that writes memory just before a link_writev. */
    void (*before_write)(void *opaque);
    void *before_write_opaque;
    uint8_t *dev_mem;       /* config.device_memory bytes */
    uint8_t *dev_mem_dirty; /* one for each page of it that was written */
    GPtrArray *warnings;
    GByteArray *capture;  /* what the card captured */
    size_t capture_limit; /* bytes that it may have: no limit */
};

/* What becomes of a packet on the cable. */
typedef enum CableFate {
    CABLE_DELIVER,
    CABLE_DROP,
    CABLE_DUPLICATE,
    CABLE_DELAY, /* until delay_ns later; others overtake */
} CableFate;

/*
 * Sees each packet (LRH to VCRC, or an Ethernet frame) that machine @from
 * sends, may change its bytes in place, and decides on its fate.
 */
typedef CableFate CableTap(void *opaque, unsigned from, uint8_t *packet,
                           size_t len);

/* Hears what the card of machine @side traces. */
typedef void LabListener(void *opaque, unsigned side, const HcaTrace *trace);

struct Lab {
    uint32_t seed;
    GRand *rand;
    int64_t now; /* the clock of both machines, ns */
    uint64_t nonces;
    Host host[2];
    /* The cable. */
    bool up;
    size_t capacity;     /* bytes in flight in each direction */
    bool short_io;       /* reads and writes are cut at random */
    GByteArray *pipe[2]; /* written by machine [i], not read yet */
    size_t pipe_at[2];
    bool want_write[2]; /* machine [i] met a full pipe */
    unsigned
        refusals[2];   /* writes of machine [i] that find none, before room */
    unsigned reads[2]; /* of machine [i] in this run */
    /* Cutting the stream into packets, when somebody wants to see them. */
    CableTap *tap;
    void *tap_opaque;
    int64_t delay_ns; /* of CABLE_DELAY */
    GByteArray *unparsed[2];
    GQueue delayed; /* CableDelayed, in order of time */
    uint64_t steps; /* calls of hca_run() so far */
    /*
     * One turn of so many, in the mean, is in front of another card that goes on
     * (host_reload()); 0: none is. HCA_RELOAD in the environment, for tests that do
     * not look into cards but by a Bed.
     */
    unsigned reload;
    uint64_t reloads;
    /* The same of turns in front of which the whole machine moves: lib-move.h. */
    unsigned moves;
    uint64_t moved;
    int64_t away_ns; /* for that long, at most */
    void (*move)(Lab *lab, unsigned side);
    void (*reloaded)(void *opaque); /* NULL, or told of it */
    void *reloaded_opaque;
    /* The same of turns in front of which states lie: lib-lie.h, HCA_LIES. */
    unsigned lies;
    LabListener *listener; /* see lab_listen() */
    void *listener_opaque;
};

/* Seed of a test: HCA_SEED, or @seed. Printed for the one who repeats it. */
uint32_t lab_seed(uint32_t seed);

/*
 * A small card that is quick to set up: every size a few hundred entries. A
 * RoCE card if test_is_roce().
 */
void lab_config(HcaConfig *config, unsigned side);
/* The same, always as a RoCE card. */
void lab_config_roce(HcaConfig *config, unsigned side);

/* Two machines with cards after @config[0] and [1] (NULL: lab_config()). */
Lab *lab_new(uint32_t seed, const HcaConfig *config);
/* Checks on the way out that no card warned without being asked to. */
void lab_free(Lab *lab);

/* Plug or unplug the cable: what is in flight is lost. */
void lab_cable(Lab *lab, bool up);
/* See and treat each packet. Set while the cable is unplugged, or idle. */
void lab_tap(Lab *lab, CableTap *tap, void *opaque);
/* Write raw bytes into the stream from machine @from, behind its back. */
void lab_cable_inject(Lab *lab, unsigned from, const void *data, size_t len);

/*
 * Run both cards until neither has anything to do at the present time. A
 * card that never comes to rest fails the test.
 */
void lab_run(Lab *lab);
/* One call of hca_run() of one card. False if both are at rest. */
bool lab_step(Lab *lab);
/* Whether both rest before @steps of those have been done. */
bool lab_rests_within(Lab *lab, unsigned steps);
/* Run for @ns, or until nothing is left to do: then less has passed. */
void lab_run_for(Lab *lab, int64_t ns);
/* Let @ns pass, with all timers in their order. */
void lab_sleep(Lab *lab, int64_t ns);
/*
 * Run until @done(opaque), jumping from timer to timer. False if it has not
 * come true within @ns, or nothing is left that could make it so.
 */
typedef bool LabDone(void *opaque);
bool lab_wait(Lab *lab, LabDone *done, void *opaque, int64_t ns);

/* Hear what the cards trace, from now on; NULL: no more. */
void lab_listen(Lab *lab, LabListener *listener, void *opaque);

/* Power the machine's card off and on: hca_reset() behind the driver's back. */
void host_reset(Host *host);

/* The machine stands still, or goes on. */
void host_set_running(Host *host, bool running);
/* One call of hca_run(), of a machine that does not. */
void host_run(Host *host);

/*
 * Its card is saved and thrown away; another one goes on in its place, between two
 * turns and with the same cable. Nobody may hold on to anything of the old one. What
 * the new one would save is what it has loaded.
 */
void host_reload(Host *host);

/* The faults of its card from now on, a plan that is right; NULL: none. */
void host_set_faults(Host *host, const HcaFaultPlan *plan);

/*
 * @npages pages (1 to 16) that lie together, zeroed; the bus address. What
 * consecutive calls return lies anywhere.
 */
uint64_t host_alloc(Host *host, unsigned npages);
void host_free_page(Host *host, uint64_t bus);
/* Make the block of @bus read-only memory. */
void host_set_rom(Host *host, uint64_t bus);

/* What the machine's processor reads and writes; fails on a hole. */
void host_read(Host *host, uint64_t bus, void *buf, size_t len);
void host_write(Host *host, uint64_t bus, const void *buf, size_t len);
void host_fill(Host *host, uint64_t bus, int byte, size_t len);
uint32_t host_read_le32(Host *host, uint64_t bus);
void host_write_le32(Host *host, uint64_t bus, uint32_t value);

/* Pages that the card said it has written (dma_written()). */
void host_clear_dirty(Host *host);
bool host_is_dirty(Host *host, uint64_t bus);

/* Registers and doorbells, as the machine's processor reaches them. */
uint32_t host_bar0_read(Host *host, uint32_t offset);
void host_bar0_write(Host *host, uint32_t offset, uint32_t value);
void host_uar_write32(Host *host, uint32_t offset, uint32_t value);
void host_uar_write64(Host *host, uint32_t offset, uint64_t value);
uint32_t host_uar_read32(Host *host, uint32_t offset);
uint64_t host_uar_read64(Host *host, uint32_t offset);

#endif /* LIB_HOST_H */
