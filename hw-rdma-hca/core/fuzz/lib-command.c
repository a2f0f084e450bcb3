/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lib-command.h"

#include <string.h>

#include "../../abi/rdma_hca_eth.h"
#include "lib-make.h"
#include "lib-manage.h"
#include "lib-nic.h"

/* Numbers that the driver does not get to. */
#define SPARE_QPN 14 /* and 15 */
#define SPARE_CQN 7
#define SPARE_SRQN 7
#define FAR_NUMBER 0x1000 /* of no table */
#define PAGE_END 0xec0    /* an entry here lies across pages */
#define SPARE_MTT 240

typedef struct Row {
    uint16_t op;
    uint8_t op_modifier;
    void (*make)(Fuzz *f, FuzzCommand *command);
} Row;

/* Words of a structure that lies in a mailbox. */
static void set_inbox(FuzzCommand *command, const void *box, size_t size)
{
    uint32_t word;

    g_assert_cmpuint(size, <=, sizeof(command->word));
    command->nwords = size / 4;
    for (unsigned i = 0; i < command->nwords; i++) {
        memcpy(&word, (const uint8_t *)box + i * 4, 4);
        command->word[i] = GUINT32_FROM_BE(word);
    }
}

static void make_plain(Fuzz *f, FuzzCommand *command)
{
}

static void make_port(Fuzz *f, FuzzCommand *command)
{
    command->in_modifier = 1;
}

static void make_number(Fuzz *f, FuzzCommand *command)
{
    command->in_modifier = take8(&f->in);
    command->op_modifier = take_below(&f->in, 3);
}

/* ---- ICM ---- */

static void make_init_hca(Fuzz *f, FuzzCommand *command)
{
    const IcmTable *icm = f->pair->drv[0]->icm;
    const struct rdma_hca_init_hca init = {
        .qpc_base_h = GUINT32_TO_BE(icm[ICM_QPC].base >> 32),
        .qpc_base_l = GUINT32_TO_BE(icm[ICM_QPC].base | 4),
        .cqc_base_h = GUINT32_TO_BE(icm[ICM_CQC].base >> 32),
        .cqc_base_l = GUINT32_TO_BE(icm[ICM_CQC].base | 3),
        .eqc_base_h = GUINT32_TO_BE(icm[ICM_EQC].base >> 32),
        .eqc_base_l = GUINT32_TO_BE(icm[ICM_EQC].base | 3),
        .srqc_base_h = GUINT32_TO_BE(icm[ICM_SRQC].base >> 32),
        .srqc_base_l = GUINT32_TO_BE(icm[ICM_SRQC].base | 3),
        .mpt_base_h = GUINT32_TO_BE(icm[ICM_MPT].base >> 32),
        .mpt_base_l = GUINT32_TO_BE(icm[ICM_MPT].base | 6),
        .mtt_base_h = GUINT32_TO_BE(icm[ICM_MTT].base >> 32),
        .mtt_base_l = GUINT32_TO_BE(icm[ICM_MTT].base),
    };

    set_inbox(command, &init, sizeof(init));
}

static uint64_t take_icm(Fuzz *f)
{
    const IcmTable *table =
        &f->pair->drv[0]->icm[take_below(&f->in, NUM_ICM_TABLES)];

    return (table->base & ~(uint64_t)(HOST_PAGE_SIZE - 1)) +
           take_below(&f->in, 4) * HOST_PAGE_SIZE;
}

static void make_map_icm(Fuzz *f, FuzzCommand *command)
{
    struct rdma_hca_icm_entry entry[4] = { 0 };
    GArray *pages = f->pair->drv[0]->icm_pages;

    command->in_modifier = 1 + take_below(&f->in, G_N_ELEMENTS(entry));
    for (unsigned i = 0; i < command->in_modifier; i++) {
        uint64_t virt = take_bool(&f->in)
                            ? take_icm(f)
                            : take_below(&f->in, 512) * HOST_PAGE_SIZE;
        uint64_t page = g_array_index(pages, uint64_t,
                                      take8(&f->in) % pages->len);

        entry[RDMA_HCA_ICM_SLOT(i)] = (struct rdma_hca_icm_entry) {
            .virt_h = GUINT32_TO_BE(virt >> 32),
            .virt_l = GUINT32_TO_BE(virt),
            .page_h = GUINT32_TO_BE(page >> 32),
            .page_l = GUINT32_TO_BE(page | (1 + take_below(&f->in, 2))),
        };
    }
    set_inbox(command, entry, sizeof(entry));
}

static void make_unmap_icm(Fuzz *f, FuzzCommand *command)
{
    command->in_param = take_icm(f);
    command->in_modifier = 1 + take_below(&f->in, 4);
}

/* ---- memory ---- */

static uint32_t take_mpt(Fuzz *f)
{
    uint8_t which = take_below(&f->in, 5 + FUZZ_NREGIONS);

    if (which == 4 + FUZZ_NREGIONS) {
        return FAR_NUMBER;
    }
    return which < 4 ? FUZZ_SPARE_MPT + which : mr_index(f->mr[0][which - 4]);
}

static void make_mpt(Fuzz *f, FuzzCommand *command)
{
    static const uint32_t kinds[] = {
        RDMA_HCA_MPT_PHYSICAL,
        0,
        RDMA_HCA_ACCESS_MW_BIND,
        RDMA_HCA_MPT_FAST_REG,
    };
    uint32_t index = FUZZ_SPARE_MPT + take_below(&f->in, 4);
    uint32_t kind = take8(&f->in);
    uint64_t start = kind & 3 ? 0x1234 : f->pair->mr[0]->page[0];
    struct rdma_hca_mpt mpt = good_mpt(
        GOOD_KEY(index),
        RDMA_HCA_MPT_MIO | RDMA_HCA_MPT_REGION | ACCESS_ALL | kinds[kind & 3],
        f->pair->pd[0], kind & 4 ? 0 : start, 0x4000, SPARE_MTT);

    mpt.mtt_sz = GUINT32_TO_BE(16);
    mpt.page_size = GUINT32_TO_BE(kind >> 3 & 3);
    if (kind & 32) {
        mpt.flags |= GUINT32_TO_BE(RDMA_HCA_MPT_PIECES);
        mpt.pieces = GUINT32_TO_BE(kind >> 6);
    }
    command->in_modifier = index;
    set_inbox(command, &mpt, sizeof(mpt));
}

/* Of device memory, in it or near its end. */
static void make_dev_mem(Fuzz *f, FuzzCommand *command)
{
    uint32_t index = FUZZ_SPARE_MPT + take_below(&f->in, 4);
    uint32_t kind = take8(&f->in), size = f->lab->host[0].config.device_memory;
    uint64_t start = kind & 1 ? size - take_below(&f->in, 128) : take8(&f->in);
    struct rdma_hca_mpt mpt = good_mpt(
        GOOD_KEY(index),
        RDMA_HCA_MPT_MIO | RDMA_HCA_MPT_REGION | RDMA_HCA_MPT_DEV_MEM |
            ACCESS_ALL | (kind & 2 ? 0 : RDMA_HCA_MPT_PHYSICAL) |
            (kind & 4 ? RDMA_HCA_ACCESS_ZERO_BASED : 0) |
            (kind & 8 ? RDMA_HCA_ACCESS_MW_BIND : 0),
        f->pair->pd[0], start, kind & 1 ? take_below(&f->in, 128) : 0x4000, 0);

    command->in_modifier = index;
    set_inbox(command, &mpt, sizeof(mpt));
}

static void make_mpt_number(Fuzz *f, FuzzCommand *command)
{
    command->in_modifier = take_mpt(f);
}

static void make_mtt(Fuzz *f, FuzzCommand *command)
{
    uint8_t n = 1 + take_below(&f->in, 12);
    uint64_t bus = f->pair->mr[0]->page[0];

    command->nwords = 8 + 2 * 12;
    command->in_modifier = n;
    command->word[7] = SPARE_MTT + take_below(&f->in, 8);
    for (unsigned i = 0; i < 12; i++) {
        command->word[8 + RDMA_HCA_MTT_SLOT(i) * 2] = bus >> 32;
        command->word[9 + RDMA_HCA_MTT_SLOT(i) * 2] = bus;
    }
}

static void make_read_mtt(Fuzz *f, FuzzCommand *command)
{
    command->in_param = take8(&f->in);
    command->in_modifier = 1 + take8(&f->in);
}

/* ---- queues ---- */

static uint32_t take_eqn(Fuzz *f)
{
    uint8_t which = take_below(&f->in, 6);

    if (which >= 4) {
        return which == 4 ? FUZZ_COMP_EQN : FAR_NUMBER;
    }
    return which < NUM_EQS ? f->pair->drv[0]->eq[which].eqn : FUZZ_SPARE_EQN;
}

static void make_eq(Fuzz *f, FuzzCommand *command)
{
    uint8_t size = take_below(&f->in, 32);
    struct rdma_hca_eqc eqc = good_eqc(f->pair->pd[0], f->pair->mr[0]->key,
                                       size & 16 ? PAGE_END : 0, size & 7);

    command->in_modifier = FUZZ_SPARE_EQN;
    set_inbox(command, &eqc, sizeof(eqc));
}

static void make_eq_number(Fuzz *f, FuzzCommand *command)
{
    command->in_modifier = take_eqn(f);
}

static void make_map_eq(Fuzz *f, FuzzCommand *command)
{
    command->in_modifier = take_eqn(f) |
                           (take_bool(&f->in) ? RDMA_HCA_MAP_EQ_UNMAP : 0);
    command->in_param = take32(&f->in);
}

static uint32_t take_cqn(Fuzz *f)
{
    uint8_t which = take_below(&f->in, 8);

    return which == 7  ? FAR_NUMBER
           : which & 1 ? SPARE_CQN
                       : f->pair->cq[0]->cqn;
}

static void make_cq(Fuzz *f, FuzzCommand *command)
{
    uint8_t size = take_below(&f->in, 32);
    struct rdma_hca_cqc cqc = good_cqc(f->pair->pd[0], f->pair->mr[0]->key,
                                       size & 16 ? PAGE_END : 0x200, size & 7,
                                       1, take_eqn(f));

    cqc.cqn = GUINT32_TO_BE(SPARE_CQN);
    command->in_modifier = SPARE_CQN;
    set_inbox(command, &cqc, sizeof(cqc));
}

static void make_cq_number(Fuzz *f, FuzzCommand *command)
{
    command->in_modifier = take_cqn(f);
}

static void make_resize(Fuzz *f, FuzzCommand *command)
{
    command->in_modifier = take_cqn(f);
    command->nwords = 8;
    command->word[0] = RDMA_HCA_PREP(RDMA_HCA_RESIZE_CQ_LOGSIZE,
                                     take_below(&f->in, 10));
    command->word[1] = f->mr[0][take_below(&f->in, FUZZ_NREGIONS)]->key;
}

/* Periods of all lengths, and more entries than there is room for. */
static void make_moderation(Fuzz *f, FuzzCommand *command)
{
    command->in_modifier = take_cqn(f);
    command->in_param = take32(&f->in);
    if (take_bool(&f->in)) {
        command->in_param &= 0x000f00ff;
    }
}

static uint32_t take_srqn(Fuzz *f)
{
    uint8_t which = take_below(&f->in, 1 + FUZZ_NSRQS);

    return which < FUZZ_NSRQS ? f->srq[which][0]->srqn : SPARE_SRQN;
}

static void make_srq(Fuzz *f, FuzzCommand *command)
{
    uint8_t kind = take8(&f->in);
    struct rdma_hca_srqc srqc = good_srqc(f->pair->pd[0], f->pair->mr[0]->key,
                                          (1 + (kind & 15)) << 7, 7,
                                          f->srq[FUZZ_SRQ][0]->record);

    if (kind & 16) {
        srqc.flags |= GUINT32_TO_BE(RDMA_HCA_SRQC_XRC);
        srqc.cqn = GUINT32_TO_BE(take_cqn(f));
        srqc.xrcd = GUINT32_TO_BE(f->srq[FUZZ_SRQ_XRC][0]->xrcd);
    }
    command->in_modifier = SPARE_SRQN;
    set_inbox(command, &srqc, sizeof(srqc));
}

static void make_srq_number(Fuzz *f, FuzzCommand *command)
{
    command->in_modifier = take_srqn(f);
}

/* To any number of slots, mostly a power of two. */
static void make_resize_srq(Fuzz *f, FuzzCommand *command)
{
    uint8_t kind = take8(&f->in);
    const struct rdma_hca_resize_srq resize = {
        .len = GUINT32_TO_BE(kind & 0x80 ? kind << 7 : 0x80 << (kind & 7)),
        .lkey = GUINT32_TO_BE(f->mr[0][take_below(&f->in, FUZZ_NREGIONS)]->key),
    };

    command->in_modifier = take_srqn(f);
    set_inbox(command, &resize, sizeof(resize));
}

static void make_arm_srq(Fuzz *f, FuzzCommand *command)
{
    command->in_modifier = take_srqn(f);
    command->in_param = take_below(&f->in, 18);
}

/* ---- queue pairs ---- */

/* With an SRQ; or XRC, which has no queues, or one; or raw packets. */
static void share(Fuzz *f, struct rdma_hca_qpc *qpc, uint32_t qpn, uint8_t kind)
{
    bool target = qpn & 1;

    if ((kind >> 3 & 3) == RDMA_HCA_QP_ST_RD) {
        qpc->flags &= GUINT32_TO_BE(~RDMA_HCA_QPC_SERVICE);
        qpc->flags |= GUINT32_TO_BE(RDMA_HCA_PREP(
            RDMA_HCA_QPC_SERVICE,
            target ? RDMA_HCA_QP_ST_XRC_TGT : RDMA_HCA_QP_ST_XRC_INI));
        qpc->rcv_wqe_len = 0;
        qpc->snd_wqe_len = target ? 0 : qpc->snd_wqe_len;
        qpc->xrcd = GUINT32_TO_BE(f->srq[FUZZ_SRQ_XRC][0]->xrcd);
    } else if (f->roce && (kind & 0x78) == (2 << 5 | RDMA_HCA_QP_ST_UD << 3)) {
        qpc->flags |= GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_QPC_SERVICE, RDMA_HCA_QP_ST_RAW));
    } else if ((kind & 0x60) == 0x60) {
        qpc->rcv_wqe_len = 0;
        qpc->srq = GUINT32_TO_BE(
            RDMA_HCA_QPC_USES_SRQ |
            (target ? SPARE_SRQN : f->srq[FUZZ_SRQ][0]->srqn));
    }
}

static uint32_t take_qpn(Fuzz *f)
{
    uint8_t which = take_below(&f->in, 5 + FUZZ_NQPS);

    if (which >= 2 + FUZZ_NQPS) { /* special, or none */
        which -= 2 + FUZZ_NQPS;
        return which == 2 ? FAR_NUMBER : which;
    }
    return which < 2 ? SPARE_QPN + which : f->qp[which - 2][0]->qpn;
}

/* Where the peer is, as qp_to_rtr() says it. */
static void set_path(Fuzz *f, struct rdma_hca_qpc *qpc)
{
    const Driver *peer = f->pair->drv[1];
    const Gid *gid = &peer->gid[GID_IPV6];

    if (f->roce) {
        qpc->rnr_retry_path |= GUINT32_TO_BE(RDMA_HCA_QPC_GRH);
        qpc->ackto_path |= GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_QPC_SGID_INDEX, GID_IPV6) |
            RDMA_HCA_PREP(RDMA_HCA_QPC_HOP_LIMIT, 64));
        memcpy(qpc->rgid, gid->gid, sizeof(gid->gid));
        memcpy(&qpc->dmac_h, gid->mac, 4);
        memcpy(&qpc->dlid_slid, gid->mac + 4, 2);
    } else {
        qpc->dlid_slid = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_QPC_DLID, peer->host->config.lid));
    }
}

/* Attributes beside those that a transition has to have. */
static uint32_t take_mask(Fuzz *f)
{
    uint32_t first = take_below(&f->in, 32), second = take_below(&f->in, 32);

    return 1u << first | 1u << second;
}

/* What any transition takes. */
void fuzz_make_qp(Fuzz *f, FuzzCommand *command)
{
    uint32_t qpn = take_qpn(f), kind = take8(&f->in);
    uint32_t mask = kind & 0x80 ? take_mask(f) : 0;
    const Mr *mr = f->pair->mr[0];
    struct rdma_hca_qpc qpc = {
        .opt_param_mask = GUINT32_TO_BE(mask),
        .flags = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_QPC_STATE, kind & 7) |
            RDMA_HCA_PREP(RDMA_HCA_QPC_SERVICE, kind >> 3 & 3)),
        .mtu_msgmax_sz = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_QPC_MTU, 1 + (kind >> 5 & 3)) |
            RDMA_HCA_PREP(RDMA_HCA_QPC_MSGMAX, 31) |
            RDMA_HCA_PREP(RDMA_HCA_QPC_SQ_ENTRY_SZ, 6) |
            RDMA_HCA_PREP(RDMA_HCA_QPC_RQ_ENTRY_SZ, 6)),
        .usr_page = GUINT32_TO_BE(1),
        .local_qpn = GUINT32_TO_BE(qpn),
        .remote_qpn = GUINT32_TO_BE(f->qp[FUZZ_RC][1]->qpn),
        .port_pkey = GUINT32_TO_BE(RDMA_HCA_PREP(RDMA_HCA_QPC_PORT, 1)),
        .rnr_retry_path = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_QPC_RNR_RETRY, 2) |
            RDMA_HCA_PREP(RDMA_HCA_QPC_RETRY_COUNT, 2)),
        .ackto_path = GUINT32_TO_BE(RDMA_HCA_PREP(RDMA_HCA_QPC_ACK_TIMEOUT, 8)),
        .pd = GUINT32_TO_BE(f->pair->pd[0]),
        .params1 = GUINT32_TO_BE(RDMA_HCA_PREP(RDMA_HCA_QPC_SRA_MAX, 4) |
                                 RDMA_HCA_PREP(RDMA_HCA_QPC_RRA_MAX, 4) |
                                 RDMA_HCA_PREP(RDMA_HCA_QPC_ACCESS, 0xe)),
        .next_send_psn = GUINT32_TO_BE(0x123456),
        .cqn_snd = GUINT32_TO_BE(f->pair->cq[0]->cqn),
        .snd_wqe_base_l = GUINT32_TO_BE(mr->key),
        .snd_wqe_len = GUINT32_TO_BE(1024),
        .rnr_nextrecvpsn = GUINT32_TO_BE(0x123456),
        .cqn_rcv = GUINT32_TO_BE(take_cqn(f)),
        .rcv_wqe_base_l = GUINT32_TO_BE(mr->key),
        .rcv_wqe_len = GUINT32_TO_BE(1024),
        .qkey = GUINT32_TO_BE(0x11111111),
    };

    share(f, &qpc, qpn, kind);
    set_path(f, &qpc);
    command->in_modifier = qpn;
    set_inbox(command, &qpc, sizeof(qpc));
}

/* 2ERR, RTS2SQD, ERR2RST: without a mailbox. */
static void make_qp_number(Fuzz *f, FuzzCommand *command)
{
    command->in_modifier = take_qpn(f) |
                           (take_bool(&f->in) ? RDMA_HCA_RTS2SQD_EVENT : 0);
    command->op_modifier = RDMA_HCA_MODIFY_NO_INBOX;
}

static void make_set_counters(Fuzz *f, FuzzCommand *command)
{
    command->in_modifier = take_qpn(f);
    command->in_param = take8(&f->in);
}

static void make_query_qp(Fuzz *f, FuzzCommand *command)
{
    command->in_modifier = take_qpn(f);
}

/* ---- the port ---- */

static void make_gid(Fuzz *f, FuzzCommand *command)
{
    struct rdma_hca_gid_entry entry = {
        .gid = { 0xfd, [15] = 9 },
        .type_vlan = GUINT32_TO_BE(
            RDMA_HCA_PREP(RDMA_HCA_GID_TYPE, RDMA_HCA_GID_TYPE_ROCE_V2)),
        .mac_h = GUINT32_TO_BE(0x02000001),
    };

    command->in_modifier = take_below(&f->in, 9);
    set_inbox(command, &entry, sizeof(entry));
}

static void make_mgm(Fuzz *f, FuzzCommand *command)
{
    uint8_t n = take_below(&f->in, RDMA_HCA_MGM_MAX_QPS + 2);

    command->in_modifier = take_below(&f->in, 66);
    command->nwords = 64;
    command->word[0] = 0xff12401b;
    command->word[3] = 7;
    command->word[4] = n;
    for (unsigned i = 8; i < 64; i++) {
        command->word[i] = f->qp[FUZZ_UD][0]->qpn;
    }
}

static void make_setup_eth(Fuzz *f, FuzzCommand *command)
{
    uint64_t bus = f->pair->mr[0]->page[0];

    command->nwords = 16;
    command->word[0] = command->word[2] = bus >> 32;
    command->word[1] = command->word[3] = bus;
    command->word[4] = 4 << 16 | 4;
}

static void make_rx_mode(Fuzz *f, FuzzCommand *command)
{
    command->nwords = 16;
    command->word[0] = take_below(&f->in, 4);
    command->word[1] = take8(&f->in);
    command->word[2] = 0x02000001;
}

/* Of the first bytes of a frame, any; of any queue pair. */
static void make_flow(Fuzz *f, FuzzCommand *command)
{
    uint8_t kind = take8(&f->in), at = take_below(&f->in, 14);

    command->in_modifier = take_below(&f->in, 10);
    command->nwords = 36;
    command->word[0] = take_qpn(f);
    command->word[1] = (kind & 3) << 16 | (kind >> 2 & 7) |
                       (kind & 0x80 ? RDMA_HCA_FLOW_DONT_TRAP : 0);
    command->word[4 + at] = take32(&f->in);
    command->word[20 + at] = kind & 0x40 ? take32(&f->in) : 0;
}

static void make_flow_number(Fuzz *f, FuzzCommand *command)
{
    command->in_modifier = take_below(&f->in, 10);
}

/* Of the rings that an interface has at most, any. */
static void make_rss(Fuzz *f, FuzzCommand *command)
{
    uint8_t kind = take8(&f->in), at = take_below(&f->in, 32);

    command->nwords = sizeof(struct rdma_hca_rss) / 4;
    command->word[0] = kind & RDMA_HCA_RSS_ALL;
    command->word[4] = take32(&f->in);
    for (unsigned i = 0; i < 32; i++) {
        command->word[16 + i] = 0x00010203 * (kind >> 6 & 1);
    }
    command->word[16 + at] = take32(&f->in) & (kind & 0x80 ? ~0u : 0x07070707);
}

/* Of a pair of rings. */
static void make_modify_eth(Fuzz *f, FuzzCommand *command)
{
    command->in_modifier = take_below(&f->in, RDMA_HCA_ETH_MAX_QUEUES + 1);
    command->in_param = (uint64_t)take32(&f->in) << 32;
    command->in_param |= take32(&f->in);
    if (take_bool(&f->in)) {
        command->in_param &= 0x000f00ff000f00ff;
    }
}

static void make_set_pause(Fuzz *f, FuzzCommand *command)
{
    command->in_param = take_below(&f->in, 5);
}

static void make_set_mtu(Fuzz *f, FuzzCommand *command)
{
    command->in_param = take_below(&f->in, 7);
}

/* Management of an InfiniBand port. */
static void make_mad_ifc(Fuzz *f, FuzzCommand *command)
{
    uint8_t mad[HCA_MAD_SIZE];

    fuzz_take_mad(f, f->lab->host[0].hca->port->node, mad);
    command->in_modifier = 1;
    command->nwords = HCA_MAD_SIZE / 4;
    for (unsigned i = 0; i < command->nwords; i++) {
        command->word[i] = get_be32(mad + 4 * i);
    }
}

static void make_set_ib(Fuzz *f, FuzzCommand *command)
{
    command->in_modifier = 1;
    command->nwords = sizeof(struct rdma_hca_set_ib) / 4;
    command->word[0] = take_odd(&f->in);
    command->word[1] = take_odd(&f->in);
}

static void make_node_desc(Fuzz *f, FuzzCommand *command)
{
    command->nwords = RDMA_HCA_NODE_DESC_SIZE / 4;
    command->word[0] = take32(&f->in);
    command->word[15] = take8(&f->in);
}

static void make_more_eth(Fuzz *f, FuzzCommand *command)
{
    make_setup_eth(f, command);
    command->in_modifier = take_below(&f->in, RDMA_HCA_ETH_MAX_QUEUES + 1);
}

#define ROW(cmd, ...)                                                          \
    {                                                                          \
        RDMA_HCA_CMD_##cmd, __VA_ARGS__                                        \
    }

static const Row rows[] = {
    ROW(QUERY_DEV_LIM, 0, make_plain),
    ROW(QUERY_FW, 0, make_plain),
    ROW(QUERY_ADAPTER, 0, make_plain),
    ROW(QUERY_PORT, 0, make_port),
    ROW(NOP, 0, make_plain),
    ROW(DIAG_RPRT, 0, make_number),
    ROW(INIT_IB, 0, make_port),
    ROW(CLOSE_IB, 0, make_port),
    ROW(INIT_HCA, 0, make_init_hca),
    ROW(CLOSE_HCA, 0, make_plain),
    ROW(MAP_ICM, RDMA_HCA_ICM_CXT, make_map_icm),
    ROW(MAP_ICM, RDMA_HCA_ICM_TPT, make_map_icm),
    ROW(UNMAP_ICM, RDMA_HCA_ICM_CXT, make_unmap_icm),
    ROW(UNMAP_ICM, RDMA_HCA_ICM_TPT, make_unmap_icm),
    ROW(SW2HW_MPT, 0, make_mpt),
    ROW(QUERY_MPT, 0, make_mpt_number),
    ROW(HW2SW_MPT, 0, make_mpt_number),
    ROW(WRITE_MTT, 0, make_mtt),
    ROW(READ_MTT, 0, make_read_mtt),
    ROW(SYNC_TPT, 0, make_number),
    ROW(MAP_EQ, 0, make_map_eq),
    ROW(SW2HW_EQ, 0, make_eq),
    ROW(HW2SW_EQ, 0, make_eq_number),
    ROW(QUERY_EQ, 0, make_eq_number),
    ROW(SW2HW_CQ, 0, make_cq),
    ROW(HW2SW_CQ, 0, make_cq_number),
    ROW(QUERY_CQ, 0, make_cq_number),
    ROW(RESIZE_CQ, 0, make_resize),
    ROW(RST2INIT_QPEE, 0, fuzz_make_qp),
    ROW(INIT2INIT_QPEE, 0, fuzz_make_qp),
    ROW(INIT2RTR_QPEE, 0, fuzz_make_qp),
    ROW(RTR2RTS_QPEE, 0, fuzz_make_qp),
    ROW(RTS2RTS_QPEE, 0, fuzz_make_qp),
    ROW(SQERR2RTS_QPEE, 0, fuzz_make_qp),
    ROW(SQD2SQD_QPEE, 0, fuzz_make_qp),
    ROW(SQD2RTS_QPEE, 0, fuzz_make_qp),
    ROW(2ERR_QPEE, 0, make_qp_number),
    ROW(RTS2SQD_QPEE, 0, make_qp_number),
    ROW(ERR2RST_QPEE, 0, make_qp_number),
    ROW(QUERY_QP, 0, make_query_qp),
    ROW(SET_GID, 0, make_gid),
    ROW(SETUP_ETH, RDMA_HCA_SETUP_ETH_START, make_setup_eth),
    ROW(SETUP_ETH, RDMA_HCA_SETUP_ETH_STOP, make_plain),
    ROW(SET_RX_MODE, 0, make_rx_mode),
    ROW(WRITE_MGM, 0, make_mgm),
    ROW(READ_MGM, 0, make_number),
    ROW(CONF_SPECIAL_QP, 0, make_number),
    ROW(MAD_IFC, 0, make_plain),
    ROW(MODIFY_CQ, 0, make_moderation),
    ROW(SW2HW_SRQ, 0, make_srq),
    ROW(HW2SW_SRQ, 0, make_srq_number),
    ROW(QUERY_SRQ, 0, make_srq_number),
    ROW(ARM_SRQ, 0, make_arm_srq),
    ROW(RESIZE_SRQ, 0, make_resize_srq),
    ROW(SW2HW_MPT, 0, make_dev_mem),
    ROW(SET_FLOW, RDMA_HCA_SET_FLOW_ADD, make_flow),
    ROW(SET_FLOW, RDMA_HCA_SET_FLOW_REMOVE, make_flow_number),
    ROW(SET_RSS, 0, make_rss),
    ROW(MODIFY_ETH, 0, make_modify_eth),
    ROW(SETUP_ETH, RDMA_HCA_SETUP_ETH_START, make_more_eth),
    ROW(SET_QP_COUNTERS, 0, make_set_counters),
    ROW(QUERY_QP_COUNTERS, 0, make_number),
    ROW(SET_PAUSE, 0, make_set_pause),
    ROW(SET_MTU, 0, make_set_mtu),
    ROW(MAD_IFC, RDMA_HCA_MAD_IGNORE_MKEY, make_mad_ifc),
    ROW(CONF_SPECIAL_QP, RDMA_HCA_SPECIAL_GSI, make_number),
    ROW(SET_IB, 0, make_set_ib),
    ROW(SET_NODE_DESC, 0, make_node_desc),
};

void fuzz_take_command(Fuzz *f, FuzzCommand *command)
{
    const Row *row = &rows[take_below(&f->in, G_N_ELEMENTS(rows))];

    *command = (FuzzCommand) { .op = row->op, .op_modifier = row->op_modifier };
    row->make(f, command);
}

void fuzz_small_eq(Fuzz *f, FuzzCommand *make, FuzzCommand *map)
{
    *make = (FuzzCommand) { .op = RDMA_HCA_CMD_SW2HW_EQ };
    make_eq(f, make);
    *map = (FuzzCommand) {
        .op = RDMA_HCA_CMD_MAP_EQ,
        .in_modifier = FUZZ_SPARE_EQN,
        .in_param = UINT32_MAX,
    };
}

void fuzz_write_inbox(Fuzz *f, const FuzzCommand *command)
{
    uint32_t word[COMMAND_WORDS];

    for (unsigned i = 0; i < command->nwords; i++) {
        word[i] = GUINT32_TO_BE(command->word[i]);
    }
    if (command->nwords) {
        host_write(&f->lab->host[0], f->pair->drv[0]->mbox_in, word,
                   command->nwords * 4);
    }
}
