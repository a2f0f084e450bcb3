/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A driver for cards with the interface of an InfiniHost III Lx, in the order in
 * which ib_mthca probes: commands by polling, then by events; ICM in chunks; MTT
 * entries by plain stores.
 */
#ifndef LIB_MTHCA_H
#define LIB_MTHCA_H

#include "../../abi/mthca/mthca_cmd.h"
#include "../../abi/mthca/mthca_cxt.h"
#include "../../abi/mthca/mthca_regs.h"
#include "../../abi/mthca/mthca_wqe.h"
#include "../verbs.h"
#include "lib-host.h"

/* Doorbell records of a UAR page, bytes in ICM. */
#define MTHCA_UARC_SIZE 0x40000

/* Which event queue takes what, and its vector. */
enum {
    MTHCA_EQ_COMP,
    MTHCA_EQ_ASYNC,
    MTHCA_EQ_CMD,
    MTHCA_NUM_EQS
};

/* Tables in ICM, of which some are the card's own or not used at all. */
typedef enum MthcaTable {
    MTHCA_UARC,
    MTHCA_MTT,
    MTHCA_QPC,
    MTHCA_RDB,
    MTHCA_MPT,
    MTHCA_CQC,
    MTHCA_SRQC,
    MTHCA_EQPC,
    MTHCA_MCG,
    MTHCA_UAR_SCRATCH,
    MTHCA_EEC,
    MTHCA_EEEC,
    MTHCA_EQC,
    MTHCA_NTABLES
} MthcaTable;

typedef struct MthcaPlace {
    uint64_t base; /* ICM address */
    uint64_t size; /* bytes */
    unsigned log_num;
} MthcaPlace;

/* A region: @npages pages of its machine, from address 0 on. */
typedef struct MthcaMr {
    uint32_t index; /* with its tag, as in the table */
    uint32_t key;   /* as users have it */
    uint32_t mtt;   /* first entry */
    unsigned npages;
    uint64_t *page; /* bus addresses */
} MthcaMr;

typedef struct MthcaEq {
    uint32_t eqn;
    MthcaMr *mr;
    unsigned log_size;
    uint32_t ci; /* counts without wrapping */
} MthcaEq;

typedef struct MthcaCq {
    uint32_t cqn; /* with its tag */
    MthcaMr *mr;
    bool on_bus; /* told by bus address, as iPXE does; @mr is one page */
    unsigned log_size;
    uint32_t uar;
    uint32_t ci_record, arm_record; /* indices */
    uint32_t ci;                    /* counts without wrapping */
} MthcaCq;

/* A shared receive queue: its free entries are a list, as ib_mthca keeps it. */
typedef struct MthcaSrq {
    uint32_t srqn;
    MthcaMr *mr;
    unsigned log_size, log_stride; /* entries, bytes of one */
    uint32_t uar;
    uint32_t record; /* index */
    uint32_t posted; /* without wrapping */
    uint32_t first_free, last_free;
} MthcaSrq;

/* A QP whose queues lie in one region, the receive queue first. */
typedef struct MthcaQp {
    uint32_t qpn;    /* with its tag */
    uint8_t service; /* MTHCA_QPC_SERVICE_* */
    MthcaCq *send_cq, *recv_cq;
    MthcaMr *mr;
    bool on_bus;             /* in the region of all memory; @mr is one page */
    unsigned log_sq, log_rq; /* entries */
    unsigned log_stride;     /* of both, bytes */
    uint32_t uar;
    uint32_t sq_record, rq_record; /* indices */
    uint32_t sq_head, rq_head;     /* posted, without wrapping */
    uint32_t sq_psn, rq_psn;       /* to begin with */
    bool signals_all;
    MthcaSrq *srq; /* in place of a receive queue, or NULL */
} MthcaQp;

/* A work request. @sge: addresses of regions. */
typedef struct MthcaSge {
    uint64_t va;
    uint32_t len, lkey;
} MthcaSge;

typedef struct MthcaWr {
    uint8_t opcode; /* HCA_OP_* */
    bool signalled, solicited, fence;
    uint32_t imm;
    uint64_t raddr;
    uint32_t rkey;
    uint64_t swap_add, compare;
    unsigned nsge;
    MthcaSge sge[4];
    const void *inline_data; /* in place of entries, */
    uint32_t inline_len;
    /* UD */
    uint16_t dlid;
    uint32_t dqpn, qkey;
    const uint8_t *dgid; /* NULL: without GRH */
} MthcaWr;

typedef struct Mthca {
    Host *host;
    uint64_t mbox_in, mbox_out; /* bus addresses */
    bool events;                /* commands complete by event */
    bool intx;                  /* EQs raise the pin, and send no messages */
    uint16_t token;
    uint8_t fw[256], lim[256], adapter[256]; /* as they came */
    MthcaPlace place[MTHCA_NTABLES];
    uint64_t icm_size;
    GHashTable *icm; /* ICM page to bus address + 1 */
    uint32_t next_mtt, next_mpt;
    uint32_t pd;
    uint32_t physical; /* key of all memory */
    MthcaEq eq[MTHCA_NUM_EQS];
    GPtrArray *mrs;
} Mthca;

/* Machines with such cards; @latency_ns: of their memory. */
Lab *mthca_lab(uint32_t seed, uint32_t latency_ns);

/* Before its probe; then the steps, each of which checks what the card says. */
Mthca *mthca_new(Host *host);
void mthca_free(Mthca *m);
/* Machines of which the first has a driver, before its probe; the end of both. */
Lab *mthca_lab_with(Mthca **m, uint32_t seed, uint32_t latency_ns);
void mthca_lab_free(Lab *lab, Mthca *m);
void mthca_query(Mthca *m);      /* reset to QUERY_DEV_LIM */
void mthca_map_tables(Mthca *m); /* SET_ICM_SIZE, MAP_ICM_AUX, MAP_ICM */
void mthca_init(Mthca *m);       /* INIT_HCA to the physical region */
void mthca_make_eqs(
    Mthca *m);              /* three of them; commands by event from here on */
void mthca_probe(Mthca *m); /* all of that */
/* In the order of ib_mthca's remove; commands are polled again. */
void mthca_remove(Mthca *m);

/* It is 0. */
void mthca_must(uint8_t status);
/* A command; its status. @out: OUT_PARAM of an immediate answer, or NULL. */
uint8_t mthca_cmd(Mthca *m, uint16_t op, uint64_t in_param,
                  uint32_t in_modifier, uint8_t op_modifier, uint64_t out_param,
                  uint64_t *out);
uint8_t mthca_cmd_in(Mthca *m, uint16_t op, const void *inbox, size_t len,
                     uint32_t in_modifier, uint8_t op_modifier);
uint8_t mthca_cmd_out(Mthca *m, uint16_t op, void *outbox, size_t len,
                      uint32_t in_modifier, uint8_t op_modifier);

/* MAP_ICM of one chunk of 2^@log_pages pages, and UNMAP_ICM. */
uint8_t mthca_map(Mthca *m, uint64_t virt, uint64_t bus, unsigned log_pages);
uint8_t mthca_unmap(Mthca *m, uint64_t virt, unsigned npages);
/* The bus address of an ICM address, which is mapped. */
uint64_t mthca_icm_bus(Mthca *m, uint64_t virt);

/* Registers of BAR 0, as values. */
uint32_t mthca_read(Mthca *m, uint32_t offset);
void mthca_write(Mthca *m, uint32_t offset, uint32_t value);

/* A region of fresh pages, with @tag above its index; or on pages of its own. */
MthcaMr *mthca_mr(Mthca *m, unsigned npages, uint32_t tag);
void mthca_write_mtt(Mthca *m, MthcaMr *mr);
/* The bus address of its byte @at. */
uint64_t mthca_mr_bus(const MthcaMr *mr, uint64_t at);
uint8_t mthca_sw2hw_mpt(Mthca *m, MthcaMr *mr);
uint8_t mthca_hw2sw_mpt(Mthca *m, MthcaMr *mr);
void mthca_put_mpt(const MthcaMr *mr, uint64_t mtt_base, uint32_t pd,
                   struct mthca_mpt *mpt);

/*
 * A ring of entries at the beginning of @mr, as EQs and CQs are: make all the
 * card's; take the next one, given back, or false: there is none.
 */
void mthca_ring_clear(Mthca *m, const MthcaMr *mr, unsigned log_size);
bool mthca_ring_take(Mthca *m, const MthcaMr *mr, unsigned log_size,
                     uint32_t *ci, void *entry);

/* An EQ in a region. @pin: as QUERY_ADAPTER calls it; 0: by messages. */
void mthca_put_eqc(const MthcaEq *eq, uint32_t pd, uint8_t pin,
                   struct mthca_eqc *eqc);
uint8_t mthca_sw2hw_eq(Mthca *m, MthcaEq *eq);
uint8_t mthca_hw2sw_eq(Mthca *m, MthcaEq *eq);
/* The next entry of @eq, given back to the card; false: there is none. */
bool mthca_eq_take(Mthca *m, MthcaEq *eq, struct mthca_eqe *eqe);
void mthca_eq_arm(Mthca *m, uint32_t eqs);

/* A CQ in a region, whose records' pages are mapped if they are not. */
void mthca_put_cqc(const MthcaCq *cq, uint32_t pd, uint32_t eqn,
                   struct mthca_cqc *cqc);
uint8_t mthca_sw2hw_cq(Mthca *m, MthcaCq *cq);
uint8_t mthca_hw2sw_cq(Mthca *m, MthcaCq *cq);
/* The next entry, given back; false: there is none. */
bool mthca_cq_take(Mthca *m, MthcaCq *cq, struct mthca_cqe *cqe);
/* Write its consumer counter to its record. */
void mthca_cq_consume(Mthca *m, MthcaCq *cq);
/* Ring: MTHCA_CQ_DB_ARM_*; in one write or in two. */
void mthca_cq_arm(Mthca *m, const MthcaCq *cq, uint32_t how, bool in_halves);

/* An SRQ, of which all entries are free. */
void mthca_put_srqc(const MthcaSrq *srq, uint32_t pd, struct mthca_srqc *srqc);
uint8_t mthca_sw2hw_srq(Mthca *m, MthcaSrq *srq);
uint8_t mthca_hw2sw_srq(Mthca *m, const MthcaSrq *srq);
uint8_t mthca_srq_query(Mthca *m, const MthcaSrq *srq, struct mthca_srqc *srqc);
/* Post to the first free entry, whose number is returned; one is free again. */
uint32_t mthca_srq_post(Mthca *m, MthcaSrq *srq, const MthcaSge *sge,
                        unsigned nsge);
void mthca_srq_release(Mthca *m, MthcaSrq *srq, uint32_t index);

/* From RESET to RTS, to a peer's QP; each step gives its status. */
uint8_t mthca_qp_to_init(Mthca *m, MthcaQp *qp);
uint8_t mthca_qp_to_rtr(Mthca *m, MthcaQp *qp, uint16_t dlid, uint32_t dqpn);
uint8_t mthca_qp_to_rts(Mthca *m, MthcaQp *qp);
uint8_t mthca_qp_modify(Mthca *m, const MthcaQp *qp, uint16_t op,
                        const struct mthca_qp_mailbox *box);
uint8_t mthca_qp_query(Mthca *m, const MthcaQp *qp,
                       struct mthca_qp_mailbox *box);
uint8_t mthca_qp_destroy(Mthca *m, const MthcaQp *qp);

/* Post, without a doorbell; then ring for the last @count. */
void mthca_post_send(Mthca *m, MthcaQp *qp, const MthcaWr *wr);
/* Of QP 0 or QP 1: entries for headers and payload; @icrc: and room for one. */
void mthca_post_mlx(Mthca *m, MthcaQp *qp, const MthcaSge *sge, unsigned nsge,
                    bool icrc);
void mthca_ring_send(Mthca *m, const MthcaQp *qp, unsigned count);
void mthca_post_recv(Mthca *m, MthcaQp *qp, const MthcaSge *sge, unsigned nsge);

#endif /* LIB_MTHCA_H */
