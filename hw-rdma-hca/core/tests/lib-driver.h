/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A driver for the cards of a Lab. It uses what a driver in a guest has, and
 * nothing else: registers, doorbells, and structures in its machine's memory.
 *
 * Commands return their status; functions that a sound card cannot refuse
 * check it themselves. Objects belong to the Driver and go with it.
 */
#ifndef LIB_DRIVER_H
#define LIB_DRIVER_H

#include "../../abi/rdma_hca_cmd.h"
#include "../../abi/rdma_hca_cxt.h"
#include "../../abi/rdma_hca_regs.h"
#include "../../abi/rdma_hca_wqe.h"
#include "../wire/packet.h"
#include "lib-host.h"

typedef struct Driver Driver;
typedef struct Mr Mr;
typedef struct Cq Cq;
typedef struct Qp Qp;
typedef struct Srq Srq;
typedef struct Eq Eq;

/* Access flags of a region for everything. */
#define ACCESS_ALL                                                             \
    (RDMA_HCA_ACCESS_LOCAL_WRITE | RDMA_HCA_ACCESS_REMOTE_WRITE |              \
     RDMA_HCA_ACCESS_REMOTE_READ | RDMA_HCA_ACCESS_REMOTE_ATOMIC)

/* Which event queue takes what. */
enum {
    EQ_COMP,
    EQ_ASYNC,
    EQ_CMD,
    NUM_EQS
};

struct Eq {
    uint32_t eqn;
    Mr *mr;
    unsigned log_size;
    uint32_t ci; /* counts without wrapping */
};

/* A table in the card's virtual ICM space. */
typedef struct IcmTable {
    uint64_t base;
    uint64_t size;
    uint8_t kind; /* RDMA_HCA_ICM_* */
} IcmTable;

enum {
    ICM_QPC,
    ICM_CQC,
    ICM_EQC,
    ICM_SRQC,
    ICM_MPT,
    ICM_MTT,
    NUM_ICM_TABLES
};

/* An entry of a RoCE card's GID table. */
typedef struct Gid {
    uint8_t gid[16]; /* IPv4 as ::ffff:a.b.c.d */
    uint8_t mac[6];
    uint16_t vlan; /* 0: none */
} Gid;

/* The entries that driver_new() makes. IPv4 ends in 1 + side. */
enum {
    GID_LINK_LOCAL, /* fe80::, of the MAC */
    GID_IPV4,       /* 10.0.0.x */
    GID_IPV6,       /* fd00::x */
    GID_VLAN_IPV4,  /* 10.5.0.x in VLAN_ID */
    GID_VLAN_IPV6,  /* fd05::x in VLAN_ID */
    NUM_GIDS
};
#define VLAN_ID 5

struct Driver {
    Host *host;
    bool roce;
    Gid gid[NUM_GIDS];           /* as written last */
    struct rdma_hca_dev_lim lim; /* as it came */
    unsigned log_mpts;
    uint64_t mbox_in; /* bus addresses */
    uint64_t mbox_out;
    bool cmd_events; /* complete commands by event */
    uint16_t token;
    uint32_t next_pd, next_cqn, next_qpn, next_srqn, next_mtt;
    uint32_t generation; /* high bits of the next key */
    GArray *free_cqns;
    GArray *free_mpts; /* MPT indices */
    GArray *free_mtts; /* MttRange */
    IcmTable icm[NUM_ICM_TABLES];
    GArray *icm_pages;    /* bus addresses */
    uint64_t record_page; /* of doorbell records */
    unsigned record_at;
    uint32_t kernel_pd; /* of queues and their buffers */
    Eq eq[NUM_EQS];
    GHashTable *qps; /* by number */
    GHashTable *srqs;
    GPtrArray *mrs, *cqs;
    GQueue events; /* EQEs of EQ_ASYNC and EQ_COMP not taken */
};

/* A registered piece of memory: pages from all over the machine. */
struct Mr {
    Driver *drv;
    uint32_t key; /* L_Key and R_Key */
    uint32_t pd;
    uint64_t va; /* of its first byte */
    uint64_t len;
    unsigned page_shift;
    unsigned npages;
    uint64_t *page; /* bus addresses */
    uint32_t mtt;
    bool registered;
};

struct Cq {
    Driver *drv;
    uint32_t cqn;
    uint32_t uar;
    Mr *mr;
    uint64_t start; /* of the ring in its region */
    unsigned log_size;
    uint32_t ci;        /* counts without wrapping */
    uint64_t ci_record; /* bus address, 0: by doorbell */
};

typedef struct Ring {
    Mr *mr;
    unsigned log_entry;
    unsigned entries;    /* power of two, 0: no such queue */
    uint32_t head, tail; /* posted, completed; without wrapping */
    uint64_t *wr_id;
} Ring;

/* A shared receive queue. Its tags are no numbers that would do as places. */
#define SRQ_TAG 0xa5000000u
struct Srq {
    Driver *drv;
    uint32_t srqn;
    Mr *mr;
    unsigned log_entry;
    unsigned entries;
    unsigned tags;     /* at least as many */
    uint32_t head;     /* posted, without wrapping */
    uint64_t record;   /* posted count: bus address */
    uint64_t *wr_id;   /* by tag */
    GArray *free_tags; /* uint32_t, less SRQ_TAG */
    bool *used;        /* tags posted and not completed */
    bool doubtful;     /* others write to its memory: tags may be anything */
    bool xrc;
    Cq *cq; /* XRC: of completions */
    uint32_t xrcd;
};

typedef struct SrqConfig {
    uint32_t pd;
    unsigned entries, log_entry;
    bool xrc;
    Cq *cq;
    uint32_t xrcd;
} SrqConfig;

struct Qp {
    Driver *drv;
    uint32_t qpn;
    bool privileged;
    bool block_loopback; /* UD */
    uint8_t service;     /* RDMA_HCA_QP_ST_* */
    uint32_t uar;
    uint32_t pd;
    Cq *send_cq, *recv_cq;
    Ring sq, rq;
    uint64_t rq_record; /* posted count: bus address */
    Srq *srq;           /* in place of rq */
    uint32_t xrcd;      /* XRC_TGT */
    uint32_t counter_set;
};

typedef struct QpConfig {
    uint8_t service;
    bool privileged;
    uint32_t pd;
    uint32_t uar;
    Cq *send_cq, *recv_cq;
    unsigned sq_entries, rq_entries;
    unsigned log_sq_entry, log_rq_entry;
    Srq *srq;
    uint32_t xrcd; /* XRC_TGT */
    uint32_t counter_set;
} QpConfig;

/* The part of a path that only RoCE has, but for the source GID. */
typedef struct RocePath {
    bool document;      /* the document's addresses, no GRH */
    uint8_t sgid_index; /* InfiniBand, too: with a GRH */
    uint8_t hop_limit;  /* 0: 64 */
    uint32_t flow_label;
    uint8_t dmac[6], smac[6];
    uint32_t dip, sip;
} RocePath;

/* Attributes of ibv_modify_qp() from INIT to RTS. */
typedef struct QpAttr {
    uint16_t access; /* RDMA_HCA_ACCESS_REMOTE_*, _FLUSH_* */
    uint8_t mtu;     /* IB MTU code */
    uint16_t dlid;
    uint8_t path_bits; /* of the SLID */
    uint8_t sl;
    bool grh;
    uint8_t dgid[16];
    uint8_t tclass;
    RocePath roce;
    uint32_t dest_qpn;
    uint32_t sq_psn, rq_psn;
    uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
    uint8_t max_rd_atomic, max_dest_rd_atomic;
    uint32_t qkey;
    uint8_t pkey_index;
} QpAttr;

typedef struct Sge {
    uint64_t va;
    uint32_t len;
    uint32_t lkey;
} Sge;

enum {
    SEND_SIGNALED = 1,
    SEND_SOLICITED = 2,
    SEND_FENCE = 4,
    SEND_INLINE = 8, /* inline_data, inline_len in place of sge */
};

/* The only GID of the card of @drv. */
void driver_gid(const Driver *drv, uint8_t gid[16]);

/* Where a UD message goes: an address handle, QP number and Q_Key. */
typedef struct UdAddress {
    uint16_t dlid;
    uint8_t path_bits;   /* of the SLID */
    uint16_t pkey_index; /* of QP 1 */
    uint8_t sl;
    bool grh;
    uint8_t dgid[16];
    uint8_t tclass;
    RocePath roce;
    uint32_t dqpn;
    uint32_t qkey;
} UdAddress;

typedef struct SendWr {
    uint64_t wr_id;
    uint8_t opcode; /* RDMA_HCA_OPCODE_* */
    unsigned flags; /* SEND_* */
    uint32_t imm_be;
    uint64_t raddr;
    uint32_t rkey; /* SEND_INV: to be invalidated */
    uint64_t swap_add, compare;
    uint32_t flush_len, flush; /* FLUSH: type and level as in its unit */
    const UdAddress *ud;       /* UD only */
    bool xrc;                  /* XRC_INI: there is an xrc_unit */
    uint32_t srqn;
    const void *inline_data;
    uint32_t inline_len;
    unsigned nsge;
    const Sge *sge;
    /* What follows next_unit, of operations on memory (lib-mem). */
    uint8_t unit[sizeof(struct rdma_hca_fast_reg_unit)];
    unsigned unit_size;
} SendWr;

/* What an opcode has. */
bool wr_is_send(uint8_t opcode);
bool wr_is_atomic(uint8_t opcode);
/* Of eight bytes: an atomic, or an atomic Write. */
bool wr_is_of_eight(uint8_t opcode);
bool wr_has_imm(uint8_t opcode);
bool wr_takes_receive(uint8_t opcode);

typedef struct RecvWr {
    uint64_t wr_id;
    unsigned nsge;
    const Sge *sge;
} RecvWr;

typedef struct Wc {
    uint64_t wr_id;
    uint32_t qpn;
    bool is_send;
    uint8_t opcode;   /* as in the CQE */
    uint8_t syndrome; /* 0: success */
    uint8_t vendor_err;
    uint32_t byte_len;
    uint32_t imm_be;
    uint32_t inv_rkey; /* of a Send with invalidate */
    uint32_t flow_tag; /* of a frame, that of its rule */
    uint32_t rqpn;     /* XRC: the SRQN */
    bool xrc;
    uint16_t rlid; /* InfiniBand */
    uint8_t path_bits;
    uint16_t pkey_index; /* QP 1 */
    bool grh;
    uint8_t sl;
    bool has_vlan, ipv4; /* RoCE */
    uint16_t vlan;
    uint64_t time; /* as in the CQE */
} Wc;

/*
 * Bring the card up as far as INIT_IB: limits, ICM, EQs, everything a probe
 * does. Commands are polled for; see driver_cmd_events().
 */
Driver *driver_new(Host *host);
/* Forget everything, without a word to the card. */
void driver_free(Driver *drv);
/* Take the card down by commands, all objects first. */
void driver_close(Driver *drv);
void driver_cmd_events(Driver *drv, bool on);

/* One command. @out: what it put in OUT_PARAM, or NULL. */
uint8_t driver_cmd(Driver *drv, uint16_t op, uint64_t in_param,
                   uint32_t in_modifier, uint8_t op_modifier,
                   uint64_t out_param, uint64_t *out);
/* With an inbox of @len bytes; or with an outbox. */
uint8_t driver_cmd_in(Driver *drv, uint16_t op, const void *inbox, size_t len,
                      uint32_t in_modifier, uint8_t op_modifier);
/* The key of a new region of all bus addresses. */
uint32_t driver_physical_region(Driver *drv, uint32_t pd);
uint8_t driver_cmd_out(Driver *drv, uint16_t op, void *outbox, size_t len,
                       uint32_t in_modifier, uint8_t op_modifier);

/* QUERY_PORT's state: an enum ibv_port_state. */
unsigned driver_port_state(Driver *drv);

/* SET_GID; @gid NULL: empty the entry. */
uint8_t driver_set_gid(Driver *drv, unsigned index, const Gid *gid);
/* The headers of a RoCE packet between two machines' addresses @gid. */
void driver_roce_headers(const Driver *from, const Driver *to, unsigned gid,
                         HcaPacket *packet);
/* WRITE_MGM: group @index is @mgid with @n QPs. */
uint8_t driver_write_mgm(Driver *drv, unsigned index, const uint8_t *mgid,
                         const Qp *const *qp, unsigned n);

/* The next asynchronous event of @type not taken yet; false: none. */
bool driver_event(Driver *drv, uint8_t type, struct rdma_hca_eqe *eqe);
/* How many of @type there are; takes them all. */
unsigned driver_count_events(Driver *drv, uint8_t type);
/* Take new entries of one EQ; arms it again. Returns how many. */
unsigned driver_poll_eq(Driver *drv, unsigned which);

uint32_t pd_new(Driver *drv);

/* Register @len bytes of new memory at virtual address @va. */
Mr *mr_new(Driver *drv, uint32_t pd, uint64_t va, uint64_t len,
           uint32_t access);
/* The same with pages of 2^@page_shift bytes (12 to 16). */
Mr *mr_new_pages(Driver *drv, uint32_t pd, uint64_t va, uint64_t len,
                 uint32_t access, unsigned page_shift);
/* The same 64 KiB of memory over and over: a region longer than memory. */
Mr *mr_new_repeated(Driver *drv, uint32_t pd, uint64_t va, uint64_t len,
                    uint32_t access);
/* HW2SW_MPT; the memory stays readable until the Driver goes. */
uint8_t mr_deregister(Mr *mr);
/* WRITE_MTT of @count entries from @index on. */
void mtts_write(Driver *drv, uint32_t index, const uint64_t *entry,
                unsigned count);
/* The number of its MPT entry. */
uint32_t mr_index(const Mr *mr);
void mr_read(Mr *mr, uint64_t offset, void *buf, size_t len);
void mr_write(Mr *mr, uint64_t offset, const void *buf, size_t len);
void mr_fill(Mr *mr, uint64_t offset, int byte, size_t len);
/* Bus address of the byte at @offset. */
uint64_t mr_bus(const Mr *mr, uint64_t offset);
/* The region as an Sge: @len bytes at @offset. */
Sge mr_sge(const Mr *mr, uint64_t offset, uint32_t len);

/* A CQ of 2^@log_size entries of UAR page @uar. */
Cq *cq_new(Driver *drv, unsigned log_size, uint32_t uar);
uint8_t cq_destroy(Cq *cq);
/* RESIZE_CQ to 2^@log_size entries; those not polled yet move along. */
uint8_t cq_resize(Cq *cq, unsigned log_size);
/* MODIFY_CQ: an event for @count entries, or @period_us after the first. */
uint8_t cq_moderate(Cq *cq, uint16_t count, uint16_t period_us);
uint8_t cq_query(Cq *cq, struct rdma_hca_cqc *cqc);
/* Take the oldest completion. False: none. */
bool cq_poll(Cq *cq, Wc *wc);
/* Ask for one event: ibv_req_notify_cq(). */
void cq_arm(Cq *cq, bool solicited_only);
/* Let the card know how far the queue has been read. */
void cq_update_ci(Cq *cq);
/* Run the lab until a completion comes, at most @ns. */
bool cq_wait(Cq *cq, Wc *wc, int64_t ns);

void srq_config_init(SrqConfig *config, uint32_t pd);
/* XRC: with its domain, and the CQ of its completions. */
void srq_config_xrc(SrqConfig *config, Cq *cq, uint32_t xrcd);
Srq *srq_new(Driver *drv, const SrqConfig *config);
/* The same with a number that is to be used again. */
Srq *srq_new_number(Driver *drv, const SrqConfig *config, uint32_t srqn);
uint8_t srq_destroy(Srq *srq);
uint8_t srq_query(Srq *srq, struct rdma_hca_srqc *srqc);
/* To a power of two of entries; what is posted moves along. */
uint8_t srq_resize(Srq *srq, unsigned entries);
uint8_t srq_arm(Srq *srq, uint32_t limit);
/* False: no room (ENOMEM), none posted. */
bool srq_post(Srq *srq, const RecvWr *wr, unsigned n);
unsigned srq_room(const Srq *srq);
/* All that was posted is as if it had completed. */
void srq_forget(Srq *srq);

void qp_config_init(QpConfig *config, uint32_t pd, Cq *cq);
Qp *qp_new(Driver *drv, const QpConfig *config);
/* The same with a number that is to be used again. */
Qp *qp_new_number(Driver *drv, const QpConfig *config, uint32_t qpn);
/* To RST; entries of it are taken out of its CQs. */
void qp_destroy(Qp *qp);

void qp_attr_init(QpAttr *attr);
/* From RST to RTS, whom nothing may refuse. */
void qp_bring_up(Qp *qp, const QpAttr *attr);
uint8_t qp_to_init(Qp *qp, const QpAttr *attr);
uint8_t qp_to_rtr(Qp *qp, const QpAttr *attr);
uint8_t qp_to_rts(Qp *qp, const QpAttr *attr);
/* ERR, by 2ERR; RST, by ERR2RST, with the rings emptied. */
uint8_t qp_to_err(Qp *qp);
uint8_t qp_to_rst(Qp *qp);
/* SQD, with an SQ_DRAINED event if asked for; and back to RTS; from SQE. */
uint8_t qp_to_sqd(Qp *qp, bool event);
uint8_t qp_sqd_to_rts(Qp *qp);
uint8_t qp_sqe_to_rts(Qp *qp);
uint8_t qp_query(Qp *qp, struct rdma_hca_qpc *qpc);
unsigned qp_state(Qp *qp);
/* All the way to RTS with each other. @attr: of both, but for the peer. */
void qp_connect(Qp *a, Qp *b, const QpAttr *attr);
/*
 * The path from @from to the same entry of the GID table, or LID, of @to; with
 * roce.document set, from GID_IPV4 to GID_IPV4 the document's way.
 */
void qp_attr_to(QpAttr *attr, const Driver *from, const Driver *to);
void ud_address_to(UdAddress *ud, const Driver *from, const Driver *to);
/* RoCE: the path to a multicast group. */
void ud_address_to_group(UdAddress *ud, const uint8_t *mgid);

/* One doorbell for a chain of @n. False: no room (ENOMEM), none posted. */
bool qp_post_send(Qp *qp, const SendWr *wr, unsigned n);
bool qp_post_recv(Qp *qp, const RecvWr *wr, unsigned n);
/* Room left. */
unsigned qp_send_room(const Qp *qp);
/* Write the WQEs without a doorbell; what the doorbell would be. */
bool qp_write_send(Qp *qp, const SendWr *wr, unsigned n, uint32_t *low,
                   uint32_t *high);
void qp_ring(Qp *qp, uint32_t low, uint32_t high);

#endif /* LIB_DRIVER_H */
