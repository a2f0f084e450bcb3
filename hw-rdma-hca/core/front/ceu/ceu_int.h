/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of the command unit. */
#ifndef HCA_CEU_INT_H
#define HCA_CEU_INT_H

#include "../../../abi/rdma_hca_cmd.h"
#include "../../../abi/rdma_hca_cxt.h"
#include "../../../abi/rdma_hca_regs.h"
#include "../../cxtmgt/cxtmgt.h"
#include "../../port/port.h"
#include "../../v2p/v2p.h"
#include "../interface.h"
#include "../words.h"
#include "ceu.h"

/* States of CEU_ctrl (CEU document, figure 2-3), and one of a faulty card. */
typedef enum HcaCeuState {
    HCA_CEU_IDLE,
    HCA_CEU_STALLED, /* the command takes a time, or never ends */
    HCA_CEU_DECODE,
    HCA_CEU_GET_INBOX,
    HCA_CEU_EXECUTE,
} HcaCeuState;

typedef struct HcaCommandRow HcaCommandRow;

/* The command in hand. Mailboxes are as in guest memory: big-endian words. */
typedef struct HcaCommand {
    const HcaCommandRow *row;
    uint64_t in_param;
    uint32_t in_modifier;
    uint64_t out_param;
    uint16_t token;
    uint16_t op;
    uint8_t op_modifier;
    bool event; /* complete by an event */
    bool has_inbox;
    uint8_t status;
    uint32_t inbox[RDMA_HCA_MAILBOX_SIZE / 4];
    uint32_t outbox[RDMA_HCA_MAILBOX_SIZE / 4];
} HcaCommand;

/* Executes cmd and returns its status; fills the outbox if there is one. */
typedef uint8_t HcaCommandFn(HcaCeu *ceu, HcaCommand *cmd);

/*
 * Length in bytes of a mailbox that depends on the command; 0: the command
 * asks for more than there can be.
 */
typedef uint32_t HcaMailboxLenFn(const HcaCommand *cmd);

/* States of the card in which a command is legal. */
#define HCA_CEU_BEFORE_INIT 1u
#define HCA_CEU_AFTER_INIT 2u
#define HCA_CEU_ANY (HCA_CEU_BEFORE_INIT | HCA_CEU_AFTER_INIT)

struct HcaCommandRow {
    uint16_t op;
    uint8_t op_modifier; /* 0: any */
    const char *name;
    uint8_t legal;
    uint16_t inbox; /* bytes, 0: none */
    uint16_t outbox;
    HcaMailboxLenFn *inbox_len; /* in place of the above */
    HcaMailboxLenFn *outbox_len;
    bool no_inbox_modifier;     /* RDMA_HCA_MODIFY_NO_INBOX: no inbox */
    bool roce;                  /* BAD_OP on an InfiniBand card */
    bool ib;                    /* BAD_OP on a RoCE card */
    HcaQpTransition transition; /* MODIFY_QP */
    HcaCommandFn *execute;
};

struct HcaCommandTable {
    const HcaCommandRow *rows;
    unsigned number;
    uint8_t (*status)(uint8_t status); /* as it is told; NULL: as it is */
};

struct HcaCeu {
    Hca *hca;
    uint32_t hcr[RDMA_HCA_HCR_SIZE / 4]; /* atomic */
    HcaCeuState state;
    HcaV2pAsk ask;       /* for the mailbox */
    int64_t stalled_til; /* STALLED: clock_ns; INT64_MAX: for ever */
    HcaCommand cmd;
    bool waiting;     /* a command does, for @behind late doorbells */
    uint64_t behind;  /* in all, rung or not */
    bool initialised; /* INIT_HCA done */
    /* Where doorbell records are in ICM: of UAR 0; and bytes of each, a log. */
    uint64_t uarc_base;
    uint8_t uarc_log;
    HcaEventPlace event; /* of the last command */
    HcaCeuCounters counters;
    uint64_t ignored_writes; /* atomic */
};

/* hcr.c: the card's side. False if no command waits. */
bool hca_hcr_fetch(HcaCeu *ceu, HcaCommand *cmd);
/* Store the outcome and give the registers back to software. */
void hca_hcr_complete(HcaCeu *ceu, const HcaCommand *cmd);
/* The command that waits wants an event. */
bool hca_hcr_wants_event(const HcaCeu *ceu);

/* acc_local.c */
HcaCommandFn hca_ceu_query_dev_lim, hca_ceu_query_fw, hca_ceu_query_adapter,
    hca_ceu_query_port, hca_ceu_init_ib, hca_ceu_close_ib, hca_ceu_nop,
    hca_ceu_diag_rprt;
/* acc_addr.c */
HcaCommandFn hca_ceu_set_gid, hca_ceu_set_mtu, hca_ceu_write_mgm,
    hca_ceu_read_mgm, hca_ceu_add_flow, hca_ceu_remove_flow;
/* acc_mgmt.c */
HcaMailboxLenFn hca_ceu_mad_inbox_len;
HcaCommandFn hca_ceu_set_ib, hca_ceu_set_node_desc, hca_ceu_conf_special_qp,
    hca_ceu_mad_ifc;
/* acc_eth.c */
HcaCommandFn hca_ceu_setup_eth, hca_ceu_stop_eth, hca_ceu_set_rx_mode,
    hca_ceu_set_rss, hca_ceu_modify_eth, hca_ceu_set_pause;
/* acc_cm.c */
HcaCommandFn hca_ceu_map_icm_cm, hca_ceu_unmap_icm_cm, hca_ceu_sw2hw_cq,
    hca_ceu_hw2sw_cq, hca_ceu_query_cq, hca_ceu_resize_cq, hca_ceu_modify_cq,
    hca_ceu_sw2hw_eq, hca_ceu_hw2sw_eq, hca_ceu_query_eq, hca_ceu_map_eq,
    hca_ceu_sw2hw_srq, hca_ceu_hw2sw_srq, hca_ceu_query_srq, hca_ceu_resize_srq,
    hca_ceu_arm_srq, hca_ceu_modify_qp, hca_ceu_query_qp,
    hca_ceu_set_qp_counters, hca_ceu_query_qp_counters;
/* wr_v2p.c */
HcaCommandFn hca_ceu_map_icm_v2p, hca_ceu_unmap_icm_v2p, hca_ceu_sw2hw_mpt,
    hca_ceu_hw2sw_mpt, hca_ceu_query_mpt, hca_ceu_write_mtt, hca_ceu_read_mtt,
    hca_ceu_sync_tpt;
/* wr_both.c */
HcaCommandFn hca_ceu_init_hca, hca_ceu_close_hca;

/*
 * MAP_ICM, for both units: map all entries of the inbox by @map, or none;
 * @unmap takes back.
 */
typedef uint8_t HcaMapIcmFn(Hca *hca, uint64_t virt, uint64_t page,
                            uint32_t npages);
typedef uint8_t HcaUnmapIcmFn(Hca *hca, uint64_t virt, uint32_t npages);
uint8_t hca_ceu_map_entries(HcaCeu *ceu, const HcaCommand *cmd,
                            HcaMapIcmFn *map, HcaUnmapIcmFn *unmap);

#endif /* HCA_CEU_INT_H */
